//! Reciprocal condition number by Hager's estimator in Higham's form.
//!
//! N. J. Higham, ACM TOMS 14 (1988) 381–396, doi:10.1145/50063.214386, Algorithms 4.1 (SONEST) and 5.1 (CONEST): power
//! iteration on the convex function x ↦ ‖Bx‖₁ over the unit ball, at most five steps, and an alternating vector of irregular moduli as a
//! safeguard. The estimate of ‖B‖₁ is a lower bound, almost always within a factor 3.
//!
//! Non-standard: the largest of the values met is returned, not the last; and [`rcond`] scales the vectors so that
//! neither A nor A⁻¹ over- or underflows. Memory: two vectors (one for complex scalars).

use bt_formats::{Matrix, Op, Par, RealScalar, Scalar, max_abs, one, zero};
use faer::MatMut;

use crate::factorization::Factorization;

/// Steps of the power iteration.
const MAX_STEPS: usize = 5;

/// 1 / (‖A‖₁·est‖A⁻¹‖₁); 0 when a solve overflows or the factors are void, 1 for n = 0.
///
/// # Cost
/// Three to seven solves with A, two to five with Aᴴ.
#[inline(never)]
pub fn rcond<T: Scalar, F: Factorization<T> + ?Sized>(factors: &F) -> f64 {
    let n = factors.n();
    if n == 0 {
        return 1.0;
    }
    let norm_a = factors.stats().norm_one;
    if !(norm_a.is_finite() && norm_a > 0.0) {
        return 0.0;
    }
    rcond_by(n, norm_a, &mut |op, x| factors.solve_op_in_place(op, MatMut::from_column_major_slice_mut(x, n, 1)))
}

/// As [`rcond`], of `a`, for factors that are only near those of A: every solve is refined with A, twice. `None` where
/// refinement does not halve its corrections: the condition number is then beyond what such factors can tell.
///
/// # Cost
/// Three times that of [`rcond`], and two products with A a solve.
#[inline(never)]
pub fn rcond_refined<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(
    a: &A,
    factors: &F,
) -> Option<f64> {
    let n = factors.n();
    let norm_a = a.norm_one().to_f64();
    if n == 0 || !(norm_a.is_finite() && norm_a > 0.0) {
        return Some(if n == 0 { 1.0 } else { 0.0 });
    }
    let par = Par::auto(a.bytes());
    let solve = |op: Op, x: &mut [T]| factors.solve_op_in_place(op, MatMut::from_column_major_slice_mut(x, n, 1));
    let mut contracts = true;
    let rcond = rcond_by(n, norm_a, &mut |op, x| {
        let b = x.to_vec();
        solve(op, x);
        let mut last = max_abs(x);
        for _ in 0..2 {
            // d ← op(F)⁻¹·(b − op(A)·x);  x ← x + d
            let mut d = b.clone();
            a.apply_op(op, -one::<T>(), x, one(), &mut d, par);
            solve(op, &mut d);
            let size = max_abs(&d);
            contracts &= size <= 0.5 * last;
            last = size;
            x.iter_mut().zip(&d).for_each(|(x, &d)| *x += d);
        }
    });
    contracts.then_some(rcond)
}

/// As [`rcond`], of `a`, where ‖A‖₁ overflows: of 2⁻⁶⁴·A, whose condition number is the same.
///
/// # Cost
/// As [`rcond`], and two passes over A.
#[inline(never)]
pub fn rcond_of_large<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(a: &A, factors: &F) -> f64 {
    let n = factors.n();
    rcond_scaled(a, factors, &vec![(-64f64).exp2(); n], &vec![1.0; n])
}

/// As [`rcond`], of R·A·C for the diagonals of R and C given, which must not be zero.
///
/// # Cost
/// As [`rcond`], and a pass over A.
#[inline(never)]
pub fn rcond_scaled<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(
    a: &A,
    factors: &F,
    rows: &[f64],
    cols: &[f64],
) -> f64 {
    let mut sums = vec![0.0f64; factors.n()];
    a.for_each_entry(&mut |i, j, v| sums[j] += v.abs().to_f64() * rows[i] * cols[j]);
    let norm = sums.into_iter().fold(0.0, f64::max_nan);
    if !(norm.is_finite() && norm > 0.0) {
        return if factors.n() == 0 { 1.0 } else { 0.0 };
    }
    // By parts and in double: a complex division would square f, which may leave the range, as s may that of T.
    let rescale = |x: &mut [T], by: &[f64], factor: &dyn Fn(f64) -> f64| {
        for (x, &f) in x.iter_mut().zip(by) {
            let f = factor(f);
            *x = T::from_parts(x.re().to_f64() * f, x.im().to_f64() * f);
        }
    };
    rcond_by(factors.n(), norm, &mut |op, x: &mut [T]| {
        // (R·A·C)⁻¹ = C⁻¹·A⁻¹·R⁻¹
        let (before, after) = if op == Op::Identity { (rows, cols) } else { (cols, rows) };
        let s = middle(before, after);
        rescale(x, before, &|f| s / f);
        factors.solve_op_in_place(op, MatMut::from_column_major_slice_mut(x, rows.len(), 1));
        rescale(x, after, &|f| 1.0 / (s * f));
    })
}

/// A power of two that moves the numbers 1 / rᵢ and cᵢ as far from both ends of the range as can be.
fn middle(r: &[f64], c: &[f64]) -> f64 {
    let exponents = r.iter().map(|r| -r.log2()).chain(c.iter().map(|c| c.log2()));
    let (least, most) = exponents.fold((f64::INFINITY, -f64::INFINITY), |(l, m), e| (l.min(e), m.max(e)));
    (-0.5 * (least + most)).round().clamp(-1000.0, 1000.0).exp2()
}

/// 1 / (‖A‖₁·est‖A⁻¹‖₁) with the solves given.
fn rcond_by<T: Scalar>(n: usize, norm_a: f64, solve: &mut dyn FnMut(Op, &mut [T])) -> f64 {
    // A power of two s ≈ √‖A‖₁: solves of A·y = s·x pass through values of the size of s·κ, and end in y of the size
    // of κ/s, both as far from over- and underflow as can be.
    let scale = 2f64.powi((norm_a.log2() / 2.0).floor() as i32);
    let s = T::from_parts(scale, 0.0);
    let estimate = estimate(n, &mut |op, x: &mut [T]| {
        for v in x.iter_mut() {
            *v *= s;
        }
        solve(op, x);
    });
    let condition = (norm_a / scale) * estimate;
    if condition.is_finite() && condition > 0.0 { (1.0 / condition).min(1.0) } else { 0.0 }
}

/// Lower bound of ‖B‖₁ for an n × n operator known by x ← B·x and x ← Bᴴ·x. Infinite or NaN when a product is;
/// 0 for n = 0.
pub fn norm_one_estimate<T: Scalar>(n: usize, mut apply: impl FnMut(Op, &mut [T])) -> f64 {
    estimate(n, &mut apply)
}

/// [`norm_one_estimate`], compiled once for all operators.
#[inline(never)]
fn estimate<T: Scalar>(n: usize, apply: &mut dyn FnMut(Op, &mut [T])) -> f64 {
    let norm = |x: &[T]| x.iter().map(|v| v.abs().to_f64()).sum::<f64>();
    let mut x = vec![T::from_parts(1.0 / n as f64, 0.0); n];
    apply(Op::Identity, &mut x);
    let mut estimate = norm(&x);
    if n <= 1 || !estimate.is_finite() {
        return estimate;
    }
    // Signs of the last product, for real scalars: the iteration has converged when they come again.
    let mut signs: Vec<T> = Vec::new();
    let mut unit = None;
    for _ in 0..MAX_STEPS {
        // ξ ← sign(y)
        for v in &mut x {
            *v = sign(*v);
        }
        if T::IS_REAL {
            if signs == x {
                break;
            }
            signs.clear();
            signs.extend_from_slice(&x);
        }
        // z ← Bᴴξ;  the largest |zⱼ| names the next unit vector, unless the last one is as good
        apply(Op::Adjoint, &mut x);
        let size = norm(&x);
        if !size.is_finite() {
            return size;
        }
        let j = (1..n).fold(0, |j, i| if x[i].abs() > x[j].abs() { i } else { j });
        if unit.is_some_and(|last: usize| x[j].abs() <= x[last].abs()) {
            break;
        }
        unit = Some(j);
        // y ← B·eⱼ
        x.fill(zero());
        x[j] = one();
        apply(Op::Identity, &mut x);
        let next = norm(&x);
        if !next.is_finite() {
            return next;
        }
        if next <= estimate {
            break;
        }
        estimate = next;
    }
    // An alternating vector catches matrices on which the iteration stops early. Its moduli between 1 and 2 belong to no pattern: equal
    // steps, as Higham's have, are orthogonal to u = (1, 1, −1, −1), and hide a singular matrix with uᴴA = 0.
    let mut size = 0.0;
    for (i, v) in x.iter_mut().enumerate() {
        let modulus = 1.0 + scattered(i);
        size += modulus;
        *v = T::from_parts(if i % 2 == 0 { modulus } else { -modulus }, 0.0);
    }
    apply(Op::Identity, &mut x);
    estimate.max_nan(norm(&x) / size)
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
    if modulus == zero() { one() } else { T::from_parts((v.re() / modulus).to_f64(), (v.im() / modulus).to_f64()) }
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
            let product: f64 = from.iter().zip(&*x).map(|(f, x)| f * x).sum();
            x.iter_mut().zip(to).for_each(|(x, t)| *x += 1e20 * product * t);
        });
        assert!(found > 1e18, "{found:e}");
    }

    #[test]
    fn factors_in_units_at_the_ends_of_the_range_are_scaled() {
        use bt_formats::c64;
        // [[3, 1], [1, 2]] with a column in units of 1e-306: its inverse has numbers of 1e306, and twice their moduli squared overflow.
        let a = faer::Mat::<c64>::from_fn(2, 2, |i, j| {
            let unit = if j == 0 { (-1016f64).exp2() } else { 1.0 };
            c64::new(0.0, unit * [[3.0, 1.0], [1.0, 2.0]][i][j])
        });
        let lu = crate::ExactLu::new(a.as_ref()).unwrap();
        let plain = bt_formats::Csr::from_dense(a.as_ref()).unwrap();
        let found = rcond_scaled(&plain, &lu, &[1.0, 1.0], &[1016f64.exp2(), 1.0]);
        // ‖A‖₁ = 4, ‖A⁻¹‖₁ = 4/5
        assert!((found - 5.0 / 16.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn exact_on_small_dense_matrices() {
        // B = [[1, 2], [3, −4]]: ‖B‖₁ = 6
        let b = [[1.0, 2.0], [3.0, -4.0]];
        let estimate = norm_one_estimate::<f64>(2, |op, x| {
            let [x0, x1] = [x[0], x[1]];
            let at = |i: usize, j: usize| if op == Op::Identity { b[i][j] } else { b[j][i] };
            (x[0], x[1]) = (at(0, 0) * x0 + at(0, 1) * x1, at(1, 0) * x0 + at(1, 1) * x1);
        });
        assert_eq!(estimate, 6.0);
    }

    #[test]
    fn overflow_and_nan_are_passed_on() {
        for bad in [f64::INFINITY, f64::NAN] {
            let adjoint_fails = norm_one_estimate::<f64>(3, |op, x| {
                if op == Op::Adjoint {
                    x[1] = bad;
                }
            });
            assert!(!adjoint_fails.is_finite());
            assert!(!norm_one_estimate::<f64>(3, |_, x| x[2] = bad).is_finite());
        }
        assert_eq!(norm_one_estimate::<f64>(0, |_, _| ()), 0.0);
        assert_eq!(norm_one_estimate::<f64>(1, |_, x| x[0] *= -3.0), 3.0);
    }
}
