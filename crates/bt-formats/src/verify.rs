//! The certificate: residuals and backward errors recomputed from A.
//!
//! Normwise (Rigal & Gaches, J. ACM 14, 1967, doi:10.1145/321406.321416) and componentwise (Oettli & Prager,
//! Numer. Math. 6, 1964, doi:10.1007/BF01386090) backward errors. Cost: two products with A a column.

use faer::MatRef;

use crate::operator::{Matrix, Op, Par, one, zero};
use crate::report::Certificate;
use crate::scalar::{RealScalar, Scalar};

/// How good the columns of `x` are as solutions of op(A)·X = B; the worst column counts.
///
/// Values are scaled by powers of two before they are squared or multiplied, so that entries of 1e±300 give finite
/// and honest answers. A zero denominator with a zero residual counts as 0; a non-finite x gives infinity.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
pub fn certify<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op, x: MatRef<'_, T>, b: MatRef<'_, T>) -> Certificate {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    assert_eq!((x.nrows(), b.nrows(), x.ncols()), (ncols, nrows, b.ncols()), "shapes of X and B");
    let norm_a = match op {
        Op::Identity => a.norm_inf(),
        Op::Transpose | Op::Adjoint => a.norm_one(),
    }
    .to_f64();
    let par = Par::auto(a.bytes());
    let mut worst = Certificate::default();
    let mut r = vec![zero::<T>(); nrows];
    let mut denominator = vec![zero::<T::Real>(); nrows];
    let mut abs_x = vec![zero::<T::Real>(); ncols];
    for j in 0..x.ncols() {
        let xj = x.col(j).try_as_col_major().expect("columns of X must be contiguous").as_slice();
        let bj = b.col(j).try_as_col_major().expect("columns of B must be contiguous").as_slice();
        // r ← b − A·x
        r.copy_from_slice(bj);
        a.apply_op(op, -one::<T>(), xj, one(), &mut r, par);
        // d ← |A|·|x| + |b|
        abs_x.iter_mut().zip(xj).for_each(|(d, v)| *d = v.abs());
        denominator.iter_mut().zip(bj).for_each(|(d, v)| *d = v.abs());
        a.accumulate_abs(op, &abs_x, &mut denominator);

        let [norm_r, norm_x, norm_b] = [max_abs(&r), max_abs(xj), max_abs(bj)];
        let componentwise =
            r.iter().zip(&denominator).fold(0.0, |m: f64, (r, d)| m.max_nan(ratio(r.abs().to_f64(), d.to_f64())));
        worst.relative_residual = worst.relative_residual.max_nan(ratio(norm2(&r), norm2(bj)));
        worst.backward_error = worst.backward_error.max_nan(normwise(norm_r, norm_a, norm_x, norm_b));
        worst.componentwise_backward_error = worst.componentwise_backward_error.max_nan(componentwise);
    }
    let finite = |v: f64| if v.is_nan() { f64::INFINITY } else { v };
    Certificate {
        relative_residual: finite(worst.relative_residual),
        backward_error: finite(worst.backward_error),
        componentwise_backward_error: finite(worst.componentwise_backward_error),
    }
}

/// r / (a·x + b) without overflow of the product.
fn normwise(r: f64, a: f64, x: f64, b: f64) -> f64 {
    let product = a * x;
    if product.is_finite() && (product > f64::MIN_POSITIVE || a == 0.0 || x == 0.0) {
        return ratio(r, product + b);
    }
    if !(r.is_finite() && a.is_finite() && x.is_finite()) {
        return f64::INFINITY;
    }
    // Divide numerator and denominator by the larger factor first.
    let (large, small) = if a > x { (a, x) } else { (x, a) };
    ratio(r / large, small + b / large)
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if numerator == 0.0 && denominator.is_finite() {
        0.0
    } else if denominator.is_infinite() {
        f64::INFINITY
    } else {
        numerator / denominator
    }
}

/// ‖x‖∞, NaN when an entry is NaN.
pub fn max_abs<T: Scalar>(x: &[T]) -> f64 {
    in_lanes(x, |m: T::Real, v| m.max_nan(v.abs())).into_iter().fold(0.0, |m: f64, v| m.max_nan(v.to_f64()))
}

/// ‖x‖₂, scaled against overflow and underflow; NaN when an entry is NaN.
pub fn norm2<T: Scalar>(x: &[T]) -> f64 {
    let squares = in_lanes(x, |sum: f64, v| sum + square(v.re().to_f64()) + square(v.im().to_f64()));
    let direct: f64 = squares.into_iter().sum();
    if direct.is_finite() && direct > 1e-280 {
        return direct.sqrt();
    }
    let scale = max_abs(x);
    if scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    let scaled: f64 = x.iter().map(|v| square(v.re().to_f64() / scale) + square(v.im().to_f64() / scale)).sum();
    scale * scaled.sqrt()
}

/// What `add` makes of every sixteenth number, from the first, second, … one on.
#[inline(always)]
fn in_lanes<T: Scalar, R: num_traits::Zero + Copy>(x: &[T], add: impl Fn(R, T) -> R) -> [R; 16] {
    let mut lanes = [zero::<R>(); 16];
    let (groups, rest) = x.as_chunks::<16>();
    for group in groups {
        for l in 0..16 {
            lanes[l] = add(lanes[l], group[l]);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane = add(*lane, v);
    }
    lanes
}

fn square(x: f64) -> f64 {
    x * x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::Csr;

    #[test]
    fn exact_answer_has_no_error_and_wrong_one_shows() {
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 1.0, 4.0]).unwrap();
        let x = faer::mat![[1.0], [2.0]];
        let b = faer::mat![[4.0], [8.0]];
        assert_eq!(certify(&a, Op::Identity, x.as_ref(), b.as_ref()), Certificate::default());
        let wrong = faer::mat![[1.0], [f64::NAN]];
        assert_eq!(certify(&a, Op::Identity, wrong.as_ref(), b.as_ref()).backward_error, f64::INFINITY);
        // r = (−1, 0), ‖A‖∞‖x‖∞ + ‖b‖∞ = 4·2 + 8
        let near = faer::mat![[1.5], [2.0]];
        let c = certify(&a, Op::Identity, near.as_ref(), b.as_ref());
        assert_eq!(c.backward_error, 1.0 / 16.0);
        assert_eq!(c.componentwise_backward_error, 1.0 / 9.0);
    }

    #[test]
    fn extreme_scales_stay_finite() {
        assert_eq!(norm2(&[3e300, 4e300]), 5e300);
        assert!((norm2(&[3e-300, 4e-300]) / 5e-300 - 1.0).abs() < 1e-15);
        assert!((normwise(1e290, 1e300, 1e300, 1e300) - 1e-310).abs() < 1e-312);
        assert!((normwise(1e-300, 1e-200, 1e-200, 1e-300) - 1.0).abs() < 1e-12);
    }
    #[test]
    fn norms_of_every_length() {
        for n in 0..70 {
            let x: Vec<f64> = (0..n).map(|i| f64::from((7 * i) % 11) - 5.0).collect();
            let squares: f64 = x.iter().map(|v| v * v).sum();
            assert_eq!(norm2(&x), squares.sqrt());
            assert_eq!(max_abs(&x), x.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
            for i in 0..x.len() {
                let with = |v| x.iter().enumerate().map(|(k, x)| if k == i { v } else { *x }).collect::<Vec<f64>>();
                assert!(
                    max_abs(&with(f64::NAN)).is_nan() && norm2(&with(f64::NAN)).is_nan(),
                    "NaN at {i} of {n} was lost"
                );
                assert_eq!((max_abs(&with(-1e200)), norm2(&with(-1e200))), (1e200, 1e200));
                assert_eq!(norm2(&with(f64::NEG_INFINITY)), f64::INFINITY);
            }
        }
    }
}
