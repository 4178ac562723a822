//! Vector operations of the Krylov methods, the same bits for any number of threads.
//!
//! A sum is taken over a fixed tree: the vector is halved down to leaves of [`LEAF`] elements, a leaf is summed in
//! [`LANES`] interleaved partial sums, and the halves are added on the way back. Large vectors walk the same tree with
//! rayon. Cost in bytes: what each line reads and writes, once.

use std::array::from_fn;

use bt_formats::{RealScalar, Scalar, ask_for_huge_pages, zero};

/// Elements of a leaf of the tree.
const LEAF: usize = 4096;
/// Partial sums of a leaf: two AVX-512 vectors of f64.
pub(crate) const LANES: usize = 16;
/// From this length on the halves go to different threads.
const PARALLEL: usize = 1 << 16;

/// The middle of a vector, on a multiple of the leaf, so that the tree depends on the length alone.
fn middle(n: usize) -> usize {
    (n / LEAF).div_ceil(2).max(1) * LEAF
}

/// Runs both, on two threads for long vectors.
pub(crate) fn join<A: Send, B: Send>(n: usize, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if n >= PARALLEL && rayon::current_num_threads() > 1 { bt_formats::join(a, b) } else { (a(), b()) }
}

/// One pass over vectors of one length: `f` takes the elements at a place of those that are read and of those that are
/// written, and gives the new ones and D terms. The sums of the terms.
///
/// Traffic: each vector once, those written twice.
pub(crate) fn pass<T: Scalar, const R: usize, const W: usize, const D: usize>(
    read: [&[T]; R],
    written: [&mut [T]; W],
    f: &(impl Fn([T; R], [T; W]) -> ([T; W], [T; D]) + Sync),
) -> [T; D] {
    let n = read.iter().map(|x| x.len()).chain(written.iter().map(|y| y.len())).max().unwrap_or(0);
    if n <= LEAF {
        return bt_simd::dispatch(
            #[inline(always)]
            || leaf(n, read, written, f),
        );
    }
    let halves = read.map(|x| x.split_at(middle(n)));
    let mut written = written.map(|y| {
        let (y0, y1) = y.split_at_mut(middle(n));
        (Some(y0), Some(y1))
    });
    let first = written.each_mut().map(|y| y.0.take().unwrap_or_default());
    let second = written.map(|y| y.1.unwrap_or_default());
    let (a, b) = join(n, || pass(halves.map(|x| x.0), first, f), || pass(halves.map(|x| x.1), second, f));
    from_fn(|d| a[d] + b[d])
}

/// A [`pass`] over n elements, to be inlined where the vectors are dispatched.
#[inline(always)]
pub(crate) fn leaf<T: Scalar, const R: usize, const W: usize, const D: usize>(
    n: usize,
    read: [&[T]; R],
    mut written: [&mut [T]; W],
    f: &impl Fn([T; R], [T; W]) -> ([T; W], [T; D]),
) -> [T; D] {
    let whole = n / LANES * LANES;
    let mut sums = [[zero::<T>(); LANES]; D];
    for i in (0..whole).step_by(LANES) {
        // Copies of the lanes, so that the compiler knows that nothing overlaps.
        let x: [[T; LANES]; R] = from_fn(|k| lanes(&read[k][i..]));
        let mut y: [[T; LANES]; W] = from_fn(|k| lanes(&written[k][i..]));
        for l in 0..LANES {
            let (new, terms) = f(from_fn(|k| x[k][l]), from_fn(|k| y[k][l]));
            (0..W).for_each(|k| y[k][l] = new[k]);
            (0..D).for_each(|d| sums[d][l] += terms[d]);
        }
        for k in 0..W {
            written[k][i..i + LANES].copy_from_slice(&y[k]);
        }
    }
    let mut sums = sums.map(|lanes| lanes.into_iter().sum::<T>());
    for i in whole..n {
        let (new, terms) = f(from_fn(|k| read[k][i]), from_fn(|k| written[k][i]));
        (0..W).for_each(|k| written[k][i] = new[k]);
        (0..D).for_each(|d| sums[d] += terms[d]);
    }
    sums
}

#[inline(always)]
fn lanes<T: Scalar>(x: &[T]) -> [T; LANES] {
    let mut out = [zero(); LANES];
    out.copy_from_slice(&x[..LANES]);
    out
}

/// n zeros, in huge pages where they are many.
pub(crate) fn zeros<T: Scalar>(n: usize) -> Vec<T> {
    let zeros = vec![zero(); n];
    ask_for_huge_pages(&zeros);
    zeros
}

/// xᴴy
pub(crate) fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    let [sum] = pass([x, y], [], &|[x, y], []| ([], [x.conj_value() * y]));
    sum
}

/// `Scalar::conj` under a name that faer's trait does not share.
pub(crate) trait ConjValue {
    fn conj_value(self) -> Self;
}
impl<T: Scalar> ConjValue for T {
    #[inline(always)]
    fn conj_value(self) -> Self {
        Scalar::conj(self)
    }
}

/// v/d without overflow on the way: complex division as such squares the divisor.
#[inline(always)]
pub(crate) fn divide<T: Scalar>(v: T, d: T) -> T {
    let modulus = d.abs();
    over(v, modulus) * Scalar::conj(over(d, modulus))
}

/// v/s for a real s.
#[inline(always)]
pub(crate) fn over<T: Scalar>(v: T, s: T::Real) -> T {
    T::from_parts(v.re() / s, v.im() / s)
}

/// ‖x‖₂ of an x with xᴴx = `square`, or `scaled` where the square has left the range.
pub(crate) fn norm_of<T: Scalar>(square: T, scaled: impl FnOnce() -> f64) -> f64 {
    let square = square.re().to_f64();
    let smallest = T::Real::MIN_POSITIVE.to_f64() / T::Real::EPSILON.to_f64();
    if square.is_finite() && square > smallest { square.sqrt() } else { scaled() }
}

/// |x|² as a term of a pass.
#[inline(always)]
pub(crate) fn square<T: Scalar>(x: T) -> T {
    x.conj_value() * x
}

/// y ← α·x + y
pub(crate) fn axpy<T: Scalar>(alpha: T, x: &[T], y: &mut [T]) {
    pass([x], [y], &|[x], [y]| ([y + alpha * x], []));
}

/// x ← α·x
pub(crate) fn scale<T: Scalar>(alpha: T, x: &mut [T]) {
    pass([], [x], &|[], [x]| ([alpha * x], []));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    #[test]
    fn sums_are_right_and_do_not_depend_on_the_pool() {
        for n in [0, 1, 15, 16, 17, 4096, 4097, 8192, 100_001, 200_000] {
            let x: Vec<f64> = (0..n).map(|i| ((i * 37) % 101) as f64 - 50.0).collect();
            let y: Vec<f64> = (0..n).map(|i| 1.0 / (1 + i % 7) as f64).collect();
            let plain: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            let one = pool(1, || dot(&x, &y));
            assert!((one - plain).abs() <= 1e-9 * n as f64, "{n}: {one} {plain}");
            assert_eq!(one.to_bits(), pool(3, || dot(&x, &y)).to_bits(), "{n}");
            let mut z = y.clone();
            pool(2, || axpy(2.0, &x, &mut z));
            assert!((0..n).all(|i| z[i] == y[i] + 2.0 * x[i]));
        }
    }

    #[test]
    fn quotients_survive_extremes_and_dots_conjugate_the_first() {
        let huge = c64::new(1e300, 1e300);
        assert!((divide(huge, huge) - c64::new(1.0, 0.0)).norm() < 1e-15);
        let i = c64::new(0.0, 1.0);
        assert_eq!(dot(&[i], &[c64::new(2.0, 0.0)]), c64::new(0.0, -2.0));
    }

    fn pool<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
    }
}
