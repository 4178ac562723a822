//! Vector operations of the Krylov methods, the same bits for any number of threads.
//!
//! A sum is taken over a fixed tree: the vector is halved down to leaves of [`LEAF`] elements, a leaf is summed in
//! [`LANES`] interleaved partial sums, and the halves are added on the way back. Large vectors walk the same tree with
//! rayon. Cost in bytes: what each line reads and writes, once.

use bt_formats::{RealScalar, Scalar, zero};

/// Elements of a leaf of the tree.
const LEAF: usize = 4096;
/// Partial sums of a leaf: two AVX-512 vectors of f64.
const LANES: usize = 16;
/// From this length on the halves go to different threads.
const PARALLEL: usize = 1 << 16;

/// The middle of a vector, on a multiple of the leaf, so that the tree depends on the length alone.
fn middle(n: usize) -> usize {
    (n / LEAF).div_ceil(2).max(1) * LEAF
}

/// Runs both, on two threads for long vectors.
fn join<A: Send, B: Send>(n: usize, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if n >= PARALLEL && rayon::current_num_threads() > 1 { rayon::join(a, b) } else { (a(), b()) }
}

/// xᴴy
pub(crate) fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    let n = x.len();
    if n <= LEAF {
        return pulp::Arch::new().dispatch(
            #[inline(always)]
            || dot_leaf(x, y),
        );
    }
    let ((x0, x1), (y0, y1)) = (x.split_at(middle(n)), y.split_at(middle(n)));
    let (a, b) = join(n, || dot(x0, y0), || dot(x1, y1));
    a + b
}

#[inline(always)]
fn dot_leaf<T: Scalar>(x: &[T], y: &[T]) -> T {
    let mut sums = [zero::<T>(); LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let tail = xs.remainder().iter().zip(ys.remainder());
    for (x, y) in xs.zip(ys) {
        for l in 0..LANES {
            sums[l] += x[l].conj_value() * y[l];
        }
    }
    let mut sum = zero::<T>();
    for s in sums {
        sum += s;
    }
    for (x, y) in tail {
        sum += x.conj_value() * *y;
    }
    sum
}

/// `Scalar::conj` under a name that faer's trait does not share.
trait ConjValue {
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
    T::from_parts((v.re() / s).to_f64(), (v.im() / s).to_f64())
}

/// ‖x‖₂; scaled where the squares overflow or vanish, NaN when an entry is NaN.
pub(crate) fn norm<T: Scalar>(x: &[T]) -> f64 {
    let square = dot(x, x).re().to_f64();
    let smallest = T::Real::MIN_POSITIVE.to_f64() / T::Real::EPSILON.to_f64();
    if square.is_finite() && square > smallest { square.sqrt() } else { bt_formats::norm2(x) }
}

/// y ← α·x + y
pub(crate) fn axpy<T: Scalar>(alpha: T, x: &[T], y: &mut [T]) {
    map(x, y, &|x, y| y + alpha * x);
}

/// y ← x + β·y
pub(crate) fn xpby<T: Scalar>(x: &[T], beta: T, y: &mut [T]) {
    map(x, y, &|x, y| x + beta * y);
}

/// x ← α·x
pub(crate) fn scale<T: Scalar>(alpha: T, x: &mut [T]) {
    let n = x.len();
    if n <= LEAF {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for x in x {
                    *x *= alpha;
                }
            },
        );
        return;
    }
    let (x0, x1) = x.split_at_mut(middle(n));
    join(n, || scale(alpha, x0), || scale(alpha, x1));
}

/// yᵢ ← f(xᵢ, yᵢ)
fn map<T: Scalar>(x: &[T], y: &mut [T], f: &(impl Fn(T, T) -> T + Sync)) {
    let n = x.len();
    if n <= LEAF {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (x, y) in x.iter().zip(y) {
                    *y = f(*x, *y);
                }
            },
        );
        return;
    }
    let ((x0, x1), (y0, y1)) = (x.split_at(middle(n)), y.split_at_mut(middle(n)));
    join(n, || map(x0, y0, f), || map(x1, y1, f));
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
            pool(2, || xpby(&x, -1.0, &mut z));
            assert!((0..n).all(|i| z[i] == x[i] - (y[i] + 2.0 * x[i])));
        }
    }

    #[test]
    fn norms_survive_extremes_and_dots_conjugate_the_first() {
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-30f32, 4e-30]) / 5e-30 - 1.0).abs() < 1e-6);
        assert!(norm(&[1.0, f64::NAN]).is_nan());
        let huge = c64::new(1e300, 1e300);
        assert!((divide(huge, huge) - c64::new(1.0, 0.0)).norm() < 1e-15);
        let i = c64::new(0.0, 1.0);
        assert_eq!(dot(&[i], &[c64::new(2.0, 0.0)]), c64::new(0.0, -2.0));
    }

    fn pool<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
    }
}
