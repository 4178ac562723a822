//! Norm of an inverse by the block estimator of Higham and Tisseur, see [`condition`](crate::condition).

use bt_formats::{Op, RealScalar, Scalar, one, zero};
use faer::MatMut;

/// Steps of the power iteration.
const MAX_STEPS: usize = 5;

/// Vectors that go through it at once.
const AT_ONCE: usize = 2;

/// Vectors one after the other, as a matrix of n rows.
pub(crate) fn columns<T>(x: &mut [T], n: usize) -> MatMut<'_, T> {
    let width = x.len() / n;
    MatMut::from_column_major_slice_mut(x, n, width)
}

/// 1 / (‖A‖₁·est‖A⁻¹‖₁) with the solves given.
pub(crate) fn rcond_by<T: Scalar>(n: usize, norm_a: f64, solve: &mut dyn FnMut(Op, &mut [T])) -> f64 {
    // A power of two s ≈ √‖A‖₁: solves of A·y = s·x pass through values of the size of s·κ, and end in y of the size
    // of κ/s, both as far from over- and underflow as can be.
    let scale = 2f64.powi((norm_a.log2() / 2.0).floor() as i32);
    let s = T::rounded(scale, 0.0);
    let estimate = estimate(n, &mut |op, x: &mut [T]| {
        for v in x.iter_mut() {
            *v *= s;
        }
        solve(op, x);
    });
    let condition = (norm_a / scale) * estimate;
    if condition.is_finite() && condition > 0.0 { (1.0 / condition).min(1.0) } else { 0.0 }
}

/// Lower bound of ‖B‖₁ for an n × n operator known by X ← B·X and X ← Bᴴ·X, where the columns of X, up to two, are given one after the
/// other. Infinite or NaN when a product is; 0 for n = 0.
///
/// # Example
/// ```
/// use bt_direct::condition::norm_one_estimate;
/// // B = diag(1, …, 9)
/// let norm = norm_one_estimate::<f64>(9, |_, columns| {
///     for x in columns.chunks_exact_mut(9) {
///         x.iter_mut().zip(1..).for_each(|(x, d)| *x *= f64::from(d));
///     }
/// });
/// assert_eq!(norm, 9.0);
/// ```
pub fn norm_one_estimate<T: Scalar>(n: usize, mut apply: impl FnMut(Op, &mut [T])) -> f64 {
    estimate(n, &mut apply)
}

/// [`norm_one_estimate`], compiled once for all operators.
#[inline(never)]
fn estimate<T: Scalar>(n: usize, apply: &mut dyn FnMut(Op, &mut [T])) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let mut x = first_vectors::<T>(n);
    let mut estimate = 0.0;
    // Numbers of the unit vectors in x, of the best of them, and of all that have been there.
    let (mut units, mut best, mut tried) = (Vec::new(), None, Vec::new());
    // Signs of the last products, for real scalars: the iteration has converged when they come again.
    let mut signs: Vec<T> = Vec::new();
    for step in 0..=MAX_STEPS {
        apply(Op::Identity, &mut x);
        let norms: Vec<f64> = x.chunks_exact(n).map(norm_one).collect();
        let next = norms.iter().copied().fold(0.0, f64::max_nan);
        if !next.is_finite() || n == 1 {
            return next;
        }
        if step > 0 && next <= estimate {
            break;
        }
        estimate = next;
        best = norms.iter().position(|&norm| norm == next).and_then(|at| units.get(at).copied()).or(best);
        if step == MAX_STEPS {
            break;
        }
        // Ξ ← sign(Y), without columns that have been there
        for v in &mut x {
            *v = sign(*v);
        }
        if T::IS_REAL {
            if x.chunks_exact(n).all(|column| signs.chunks_exact(n).any(|sign| parallel(sign, column))) {
                break;
            }
            replace_parallel(&mut x, n, &signs, step);
            signs.clone_from(&x);
        }
        // Z ← Bᴴ·Ξ;  the rows with the largest numbers name the next unit vectors, unless the best one is as good
        apply(Op::Adjoint, &mut x);
        let size = |i: usize| x[i..].iter().step_by(n).fold(0.0, |size: f64, v| size.max_nan(v.abs().to_f64()));
        let sizes: Vec<f64> = (0..n).map(size).collect();
        let largest = sizes.iter().copied().fold(0.0, f64::max_nan);
        if !largest.is_finite() {
            return largest;
        }
        if best.is_some_and(|best: usize| sizes[best] >= largest) {
            break;
        }
        units = largest_but(&sizes, &tried);
        if units.is_empty() {
            break;
        }
        tried.extend_from_slice(&units);
        // Y ← B·[eⱼ …]
        x.truncate(units.len() * n);
        x.fill(zero());
        for (column, &unit) in x.chunks_exact_mut(n).zip(&units) {
            column[unit] = one();
        }
    }
    estimate
}

fn norm_one<T: Scalar>(x: &[T]) -> f64 {
    x.iter().map(|v| v.abs().to_f64()).sum()
}

/// (1, …, 1)/n, and an alternating vector that sees matrices on which the iteration from the first one stops early. Its moduli between 1 and
/// 2 belong to no pattern: equal steps, as Higham's have, are orthogonal to u = (1, 1, −1, −1), and hide a singular matrix with uᴴA = 0.
fn first_vectors<T: Scalar>(n: usize) -> Vec<T> {
    let mut x = vec![T::rounded(1.0 / n as f64, 0.0); n];
    if n > 1 {
        let size: f64 = (0..n).map(|i| 1.0 + scattered(i)).sum();
        let alternating = |i: usize| (1.0 + scattered(i)) / if i.is_multiple_of(2) { size } else { -size };
        x.extend((0..n).map(|i| T::rounded(alternating(i), 0.0)));
    }
    x
}

/// Whether two columns of signs are the same but for a factor of ±1.
fn parallel<T: Scalar>(a: &[T], b: &[T]) -> bool {
    a == b || a.iter().zip(b).all(|(&a, &b)| a == -b)
}

/// Columns that are parallel to one before them, or to one of `signs`, become others with signs that belong to no pattern.
fn replace_parallel<T: Scalar>(x: &mut [T], n: usize, signs: &[T], step: usize) {
    for at in 0..x.len() / n {
        let (before, column) = x[..(at + 1) * n].split_at_mut(at * n);
        let mut others = before.chunks_exact(n).chain(signs.chunks_exact(n));
        if others.any(|other| parallel(other, column)) {
            let from = (step * AT_ONCE + at + 1) * n;
            for (i, v) in column.iter_mut().enumerate() {
                *v = if scattered(from + i) < 0.5 { one() } else { -one::<T>() };
            }
        }
    }
}

/// Where the largest sizes are, in turn, but for places that have been tried.
fn largest_but(sizes: &[f64], tried: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(AT_ONCE + 1);
    for (i, size) in sizes.iter().enumerate() {
        let at = found.iter().position(|&other| *size > sizes[other]).unwrap_or(found.len());
        if at < AT_ONCE && !tried.contains(&i) {
            found.insert(at, i);
            found.truncate(AT_ONCE);
        }
    }
    found
}

/// A number from 0 to 1 that belongs to i (the finalizer of SplitMix64: G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014,
/// doi:10.1145/2660193.2660195).
fn scattered(i: usize) -> f64 {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}

/// z/|z|, and 1 for 0.
fn sign<T: Scalar>(v: T) -> T {
    let modulus = v.abs();
    if modulus == zero() { one() } else { T::from_parts(v.re() / modulus, v.im() / modulus) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_vector_with_a_pattern_is_seen() {
        // B = I + 10²⁰·v·uᵀ with u = (0, 0, 0, 0, 1, 1, −1, −1) and v = (1, −1, 0, …): nothing of it is seen from (1, …, 1) and e₀.
        let (u, v) = ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let found = norm_one_estimate(8, |op, x: &mut [f64]| {
            let (from, to) = if op == Op::Identity { (u, v) } else { (v, u) };
            for x in x.chunks_exact_mut(8) {
                let product: f64 = from.iter().zip(&*x).map(|(f, x)| f * x).sum();
                x.iter_mut().zip(to).for_each(|(x, t)| *x += 1e20 * product * t);
            }
        });
        assert!(found > 1e18, "{found:e}");
    }

    #[test]
    fn what_both_first_vectors_miss_is_seen_by_their_signs() {
        // B = I + 10⁶·c·cᵀ with c orthogonal to both of them: B·x = x for each, and an estimator for one vector, which takes the second for a
        // last look, ends with 1.
        let n = 12;
        let first = first_vectors::<f64>(n);
        let b = &first[n..];
        // (1, 1, 1) × (b₀, b₁, b₂)
        let mut c = vec![0.0; n];
        (c[0], c[1], c[2]) = (b[2] - b[1], b[0] - b[2], b[1] - b[0]);
        let product = |x: &[f64]| c.iter().zip(x).map(|(c, x)| c * x).sum::<f64>();
        assert!(first.chunks_exact(n).all(|x| product(x).abs() < 1e-16));
        let largest = c.iter().fold(0.0f64, |m, c| m.max(c.abs()));
        let norm = 1e6 * largest * c.iter().map(|c| c.abs()).sum::<f64>();
        let found = norm_one_estimate(n, |_, x: &mut [f64]| {
            for x in x.chunks_exact_mut(n) {
                let scale = 1e6 * product(x);
                x.iter_mut().zip(&c).for_each(|(x, c)| *x += scale * c);
            }
        });
        assert!(norm > 1e3 && (found / norm - 1.0).abs() < 1e-2, "{found} of {norm}");
    }
}
