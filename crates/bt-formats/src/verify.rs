//! The certificate: residuals and backward errors recomputed from A.
//!
//! Normwise (Rigal & Gaches, J. ACM 14, 1967, doi:10.1145/321406.321416) and componentwise (Oettli & Prager,
//! Numer. Math. 6, 1964, doi:10.1007/BF01386090) backward errors, from a residual in twice the working precision (see
//! `residual.rs`): what is reported is the error of x and not that of its evaluation. Norms have exponents of their own, so
//! that entries at either end of the range give finite and honest answers. Cost: one pass over A a column.

use faer::{MatMut, MatRef};

use crate::operator::{Matrix, Op, zero};
use crate::report::Certificate;
use crate::residual::{Residual, Totals, runs, totals};
use crate::scalar::{self, RealScalar, Scalar};
use crate::scaled::Scaled;

/// How good the columns of `x` are as solutions of op(A)·X = B; the worst column counts.
///
/// A zero denominator with a zero residual counts as 0; an x, A or b that is not finite gives infinity.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
pub fn certify<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op, x: MatRef<'_, T>, b: MatRef<'_, T>) -> Certificate {
    certify_columns(a, op, x, b, None, Scaled::ZERO)
}

/// As [`certify`], with R ← B − op(A)·X, rounded once from twice the precision; NaN where x is not finite.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
#[inline(never)]
pub fn certify_with_residual<T: Scalar, A: Matrix<T> + ?Sized>(
    a: &A,
    op: Op,
    x: MatRef<'_, T>,
    b: MatRef<'_, T>,
    r: MatMut<'_, T>,
) -> Certificate {
    assert_eq!((r.nrows(), r.ncols()), (b.nrows(), b.ncols()), "shapes of R and B");
    certify_columns(a, op, x, b, Some(r), Scaled::ZERO)
}

/// As [`certify`], less what rounding an exact solution to numbers of its type may have cost where it reaches below the
/// normal ones: rᵢ counts where it exceeds Σⱼ|aᵢⱼ|·η, η the smallest subnormal number. An x without such small numbers
/// has the same certificate to within n·η/|x|.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
pub fn certify_beyond_underflow<T: Scalar, A: Matrix<T> + ?Sized>(
    a: &A,
    op: Op,
    x: MatRef<'_, T>,
    b: MatRef<'_, T>,
) -> Certificate {
    // η = ulp(1)·(smallest normal number)
    let eta = Scaled::new(T::Real::EPSILON.to_f64()) * Scaled::new(T::Real::MIN_POSITIVE.to_f64());
    certify_columns(a, op, x, b, None, eta)
}

#[inline(never)]
fn certify_columns<T: Scalar, A: Matrix<T> + ?Sized>(
    a: &A,
    op: Op,
    x: MatRef<'_, T>,
    b: MatRef<'_, T>,
    mut r: Option<MatMut<'_, T>>,
    slack: Scaled,
) -> Certificate {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    assert_eq!((x.nrows(), b.nrows(), x.ncols()), (ncols, nrows, b.ncols()), "shapes of X and B");
    let mut worst = Certificate::default();
    for j in 0..x.ncols() {
        let xj = x.col(j).try_as_col_major().expect("columns of X must be contiguous").as_slice();
        let bj = b.col(j).try_as_col_major().expect("columns of B must be contiguous").as_slice();
        let mut rj = r.as_mut().map(|r| {
            let r = r.as_mut().col_mut(j).try_as_col_major_mut().expect("columns of R must be contiguous");
            r.as_slice_mut()
        });
        let plain = (op == Op::Identity && slack.is_zero()).then(|| match a.as_rows() {
            Some(a) => totals(a, xj, bj, rj.as_deref_mut()),
            None => runs::totals(a, xj, bj, rj.as_deref_mut()),
        });
        let plain = plain.flatten().and_then(|totals| in_doubles(totals, xj, bj));
        let own = plain.unwrap_or_else(|| {
            let residual = Residual::new(a, op, xj, bj);
            match (&residual, rj) {
                (Some(residual), Some(r)) => residual.store(r),
                (None, Some(r)) => r.fill(T::rounded(f64::NAN, f64::NAN)),
                _ => {}
            }
            residual.map_or(NOT_FINITE, |residual| with_exponents(&residual, xj, bj, slack))
        });
        worst.relative_residual = worst.relative_residual.max(own.relative_residual);
        worst.backward_error = worst.backward_error.max(own.backward_error);
        worst.componentwise_backward_error = worst.componentwise_backward_error.max(own.componentwise_backward_error);
    }
    worst
}

/// Of an x that is none.
const NOT_FINITE: Certificate = Certificate {
    relative_residual: f64::INFINITY,
    backward_error: f64::INFINITY,
    componentwise_backward_error: f64::INFINITY,
};

/// In doubles, where nothing on the way leaves their range: then all steps round alike.
fn in_doubles<T: Scalar>(rows: Totals, x: &[T], b: &[T]) -> Option<Certificate> {
    /// Squares and sums of squares, products and quotients of what lies between.
    const LEAST: f64 = 1e-140;
    const MOST: f64 = 1e140;
    let Totals { norm_r, squares, norm_a, componentwise } = rows;
    let (norm_x, norm_b) = (max_abs(x), max_abs(b));
    let inside = |v: f64| v > LEAST && v < MOST;
    if ![norm_a, norm_x, norm_b].into_iter().all(inside) || !(norm_r == 0.0 || inside(norm_r)) {
        return None;
    }
    Some(Certificate {
        relative_residual: squares.sqrt() / sum_of_squares(b).sqrt(),
        backward_error: norm_r / (norm_a * norm_x + norm_b),
        componentwise_backward_error: componentwise,
    })
}

/// Of finite x and b, with the residuals that exceed `slack` times their row sum.
#[inline(never)]
fn with_exponents<T: Scalar>(residual: &Residual, x: &[T], b: &[T], slack: Scaled) -> Certificate {
    let largest = |values: &[T]| values.iter().map(|&v| modulus(v)).fold(Scaled::ZERO, Scaled::max);
    let (mut norm_r, mut norm_a, mut componentwise) = (Scaled::ZERO, Scaled::ZERO, 0.0f64);
    let beyond = |r: Scaled, s: Scaled| if slack.is_zero() || r > s * slack { r } else { Scaled::ZERO };
    for [r, d, s] in residual.moduli() {
        let r = beyond(r, s);
        norm_r = norm_r.max(r);
        norm_a = norm_a.max(s);
        componentwise = componentwise.max(ratio(r, d));
    }
    let norm_r2 = norm2_scaled(|| residual.moduli().map(|[r, _, s]| beyond(r, s)));
    let norm_b2 = norm2_scaled(|| b.iter().map(|&v| modulus(v)));
    Certificate {
        relative_residual: ratio(norm_r2, norm_b2),
        // ‖r‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞)
        backward_error: ratio(norm_r, norm_a * largest(x) + largest(b)),
        componentwise_backward_error: componentwise,
    }
}

/// |v| of a finite number, which may itself be too large for one.
fn modulus<T: Scalar>(v: T) -> Scaled {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    let whole = scalar::modulus(re, im);
    if whole.is_finite() { Scaled::new(whole) } else { Scaled::with_exponent((re / 4.0).hypot(im / 4.0), 2) }
}

/// 0/0 is 0.
fn ratio(numerator: Scaled, denominator: Scaled) -> f64 {
    match (numerator.is_zero(), denominator.is_zero()) {
        (true, _) => 0.0,
        (false, true) => f64::INFINITY,
        (false, false) => (numerator / denominator).to_f64(),
    }
}

/// ‖v‖₂ of moduli.
fn norm2_scaled<I: Iterator<Item = Scaled>>(moduli: impl Fn() -> I) -> Scaled {
    let largest = moduli().fold(Scaled::ZERO, Scaled::max);
    if largest.is_zero() {
        return largest;
    }
    // Terms relative to a power of two are at most 4.
    let exponent = largest.exponent();
    let sum: f64 = moduli().map(|v| square(v.relative_to(exponent))).sum();
    Scaled::with_exponent(sum.sqrt(), exponent)
}

/// ‖x‖∞, NaN when an entry is NaN.
#[inline(never)]
pub fn max_abs<T: Scalar>(x: &[T]) -> f64 {
    let lanes = bt_simd::dispatch(bt_simd::Loops(
        #[inline(always)]
        || in_lanes(x, |m: T::Real, v| m.max_nan(v.abs())),
    ));
    lanes.into_iter().fold(0.0, |m: f64, v| m.max_nan(v.to_f64()))
}

/// ‖x‖₂, scaled against overflow and underflow; NaN when an entry is NaN.
#[inline(never)]
pub fn norm2<T: Scalar>(x: &[T]) -> f64 {
    let direct = sum_of_squares(x);
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

fn sum_of_squares<T: Scalar>(x: &[T]) -> f64 {
    in_lanes(x, |sum: f64, v| sum + square(v.re().to_f64()) + square(v.im().to_f64())).into_iter().sum()
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
    }

    /// The certificate of a system of one right-hand side.
    fn of<T: Scalar>(a: &Csr<T>, x: &[T], b: &[T]) -> Certificate {
        let column = |v: &[T]| faer::Mat::from_fn(v.len(), 1, |i, _| v[i]);
        certify(a, Op::Identity, column(x).as_ref(), column(b).as_ref())
    }

    #[test]
    fn errors_at_the_ends_of_the_range_are_those_of_the_same_system_in_the_middle() {
        // A·x = (2, 7) for x = (1, 2), b = (2, 8): r = (0, 1), ‖A‖∞ = 4, |A||x| + |b| = (4, 15).
        let system = |a: f64, x: f64, b: f64| {
            let m = Csr::from_dense(faer::mat![[0.0, a], [a, 3.0 * a]].as_ref()).unwrap();
            of(&m, &[x, 2.0 * x], &[2.0 * b, 8.0 * b])
        };
        let plain = system(1.0, 1.0, 1.0);
        assert_eq!((plain.backward_error, plain.componentwise_backward_error), (1.0 / 16.0, 1.0 / 15.0));
        assert_eq!(plain.relative_residual, 1.0 / 68f64.sqrt());
        let power = |e: i32| 2f64.powi(e / 2) * 2f64.powi(e - e / 2);
        for (ea, ex) in
            [(1020, 0), (1020, -1), (0, 1020), (-1070, 0), (0, -1070), (-600, -440), (-1060, 1020), (600, 400)]
        {
            let found = system(power(ea), power(ex), power(ea + ex));
            let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-14;
            assert!(close(found.backward_error, plain.backward_error), "{ea}, {ex}: {found:?}");
            assert!(
                close(found.componentwise_backward_error, plain.componentwise_backward_error),
                "{ea}, {ex}: {found:?}"
            );
            assert!(close(found.relative_residual, plain.relative_residual), "{ea}, {ex}: {found:?}");
        }
    }

    #[test]
    fn answers_below_the_normal_numbers_are_not_blamed_for_their_rounding() {
        // x = 5/3·2⁻¹⁰⁷⁴ is between two numbers: 2·2⁻¹⁰⁷⁴ is as near as can be.
        let a = Csr::from_dense(faer::mat![[3.0]].as_ref()).unwrap();
        let eta = 5e-324;
        let (x, b) = (faer::mat![[2.0 * eta]], faer::mat![[5.0 * eta]]);
        assert_eq!(certify(&a, Op::Identity, x.as_ref(), b.as_ref()).backward_error, 1.0 / 11.0);
        assert_eq!(certify_beyond_underflow(&a, Op::Identity, x.as_ref(), b.as_ref()), Certificate::default());
        // 4·2⁻¹⁰⁷⁴ is not.
        let wrong = faer::mat![[4.0 * eta]];
        assert_eq!(certify_beyond_underflow(&a, Op::Identity, wrong.as_ref(), b.as_ref()).backward_error, 7.0 / 17.0);
    }

    #[test]
    fn sums_that_overflow_are_no_errors() {
        // The row sum is 10·1e308, x is exact.
        let a = Csr::from_dense(
            faer::Mat::from_fn(10, 10, |i, j| if i == 0 { 1e308 } else { f64::from(u8::from(i == j)) }).as_ref(),
        )
        .unwrap();
        let x: Vec<f64> = (0..10).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
        let b: Vec<f64> = (0..10).map(|i| if i == 0 { 1e308 } else { 0.0 }).collect();
        assert_eq!(of(&a, &x, &b), Certificate::default());
        // ‖b‖₂ overflows, its entries do not.
        let eye = Csr::from_dense(faer::Mat::<f64>::identity(10, 10).as_ref()).unwrap();
        let b = [1.5e308; 10];
        assert_eq!(of(&eye, &b, &b), Certificate::default());
        assert_eq!(of(&eye, &[0.0; 10], &b).relative_residual, 1.0);
    }

    #[test]
    fn residuals_below_the_rounding_of_a_product_are_those_of_exact_arithmetic() {
        // 1e16·(1 + 2⁻⁵²)·1 − 1e16·1 cancels against b up to what a double product would have lost.
        let (one, next) = (1.0, 1.0 + f64::EPSILON);
        let a = Csr::from_dense(faer::mat![[1e16 * next, -1e16]].as_ref()).unwrap();
        let exact = 1e16 * next - 1e16;
        let x = faer::mat![[next], [one]];
        let b = faer::mat![[exact]];
        let found = certify(&a, Op::Identity, x.as_ref(), b.as_ref());
        // b − A·x = exact − (1e16·next)·next + 1e16, with (1e16·next)·next = 1e16 + 4 + rest
        let product = (1e16 * next) as i128 + ((1e16 * next) * f64::EPSILON) as i128;
        let rest = exact as i128 - product + 10i128.pow(16);
        assert!((found.relative_residual - (rest as f64 / exact).abs()).abs() < 0.3, "{found:?}, {rest}");
        assert!(found.relative_residual > 0.9);
    }

    #[test]
    fn what_the_evaluation_cannot_resolve_is_counted() {
        // 10⁶⁰·(1 − 1) + 1·1: the last term is lost in 106 bits, and so is b. Without the large terms all is exact.
        let a = Csr::from_dense(faer::mat![[0.1, -0.1, 1.0]].as_ref()).unwrap();
        let certificate = |large: f64| {
            let x = faer::mat![[large], [large], [1.0]];
            certify(&a, Op::Identity, x.as_ref(), faer::mat![[1.0]].as_ref()).relative_residual
        };
        assert!(certificate(1e60) > 1e20);
        assert_eq!(certificate(0.0), 0.0);
        // 10³⁰⁶·(1 − 1) + 10²⁰⁰ = 0 is wrong by 10²⁰⁰, which is not added to sums of 10³⁰⁶, and counts all the same.
        let a = Csr::from_dense(faer::mat![[1.0, -1.0, 1.0]].as_ref()).unwrap();
        let x = faer::mat![[1e306], [1e306], [1e200]];
        let found = certify(&a, Op::Identity, x.as_ref(), faer::mat![[0.0]].as_ref());
        assert!((1e-108..1e-104).contains(&found.backward_error), "{found:?}");
    }

    #[test]
    fn transposed_complex_and_single_systems() {
        use crate::scalar::{c32, c64};
        let c = c64::new;
        let a = Csr::from_dense(faer::mat![[c(1.0, 2.0), c(0.0, 1.0)], [c(0.0, 0.0), c(3.0, 4.0)]].as_ref()).unwrap();
        let x = faer::mat![[c(1.0, 1.0)], [c(2.0, 0.0)]];
        // Aᴴ·x = ((1 − 2i)(1 + i), −i(1 + i) + 2(3 − 4i)) = (3 − i, 7 − 9i)
        let b = faer::mat![[c(3.0, -1.0)], [c(7.0, -9.0)]];
        assert_eq!(certify(&a, Op::Adjoint, x.as_ref(), b.as_ref()), Certificate::default());
        let mut r = b.clone();
        let off = faer::mat![[c(3.0, -1.0)], [c(7.0, -8.0)]];
        let found = certify_with_residual(&a, Op::Adjoint, x.as_ref(), off.as_ref(), r.as_mut());
        assert_eq!((r[(0, 0)], r[(1, 0)]), (c(0.0, 0.0), c(0.0, 1.0)));
        assert!(found.backward_error > 0.0);
        // A residual below the last digit of a float.
        let single = Csr::from_dense(faer::mat![[c32::new(1.0, 0.0), c32::new(3e-9, 0.0)]].as_ref()).unwrap();
        let x = faer::mat![[c32::new(1.0, 0.0)], [c32::new(1.0, 0.0)]];
        let found = certify(&single, Op::Identity, x.as_ref(), faer::mat![[c32::new(1.0, 0.0)]].as_ref());
        assert!((found.relative_residual - 3e-9).abs() < 1e-15);
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
