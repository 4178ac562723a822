//! Reciprocal condition numbers, of factors as they are and of a matrix that they are only near to, by the block estimator of Higham and Tisseur.
//!
//! N. J. Higham, F. Tisseur, SIAM J. Matrix Anal. Appl. 21 (2000) 1185–1201, doi:10.1137/S0895479899356080, Algorithm 2.4 with t = 2: Hager's
//! power iteration on the convex function x ↦ ‖Bx‖₁ over the unit ball, from two vectors at once, which go through
//! the factors together. The estimate of ‖B‖₁ is a lower bound, almost always within a factor 3.
//!
//! Non-standard: the second vector begins as the alternating one with which Higham's estimator for one vector ends (ACM TOMS 14 (1988)
//! 381–396, doi:10.1145/50063.214386), with irregular moduli; vectors that replace parallel ones are the same in every call; and [`rcond`]
//! scales the vectors so that neither A nor A⁻¹ over- or underflows. Memory: five vectors (three for complex scalars).

use bt_formats::{Matrix, Op, Par, RealScalar, Scalar, max_abs, one};

pub use crate::estimate::norm_one_estimate;
use crate::estimate::{columns, rcond_by};
use crate::factorization::Factorization;
pub use crate::factorization::rcond;

/// As [`rcond`], of `a`, for factors that are only near those of A: every solve is refined with A, twice. `None` where
/// refinement does not halve its corrections, unless they are below half the digits of x: the condition number is then beyond what such
/// factors can tell.
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
    let solve = |op: Op, x: &mut [T]| factors.solve_op_in_place(op, columns(x, n));
    let mut contracts = true;
    let rcond = rcond_by(n, norm_a, &mut |op, x| {
        let b = x.to_vec();
        solve(op, x);
        let mut last = max_abs(x);
        for _ in 0..2 {
            // d ← op(F)⁻¹·(b − op(A)·x);  x ← x + d
            let mut d = b.clone();
            for (d, x) in d.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
                a.apply_op(op, -one::<T>(), x, one(), d, par);
            }
            solve(op, &mut d);
            let size = max_abs(&d);
            // Corrections of x in its last digits are rounding errors of the residual, which do not become smaller.
            contracts &= size <= 0.5 * last || size <= T::Real::EPSILON.sqrt().to_f64() * max_abs(x);
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
        for (x, &f) in x.iter_mut().zip(by.iter().cycle()) {
            let f = factor(f);
            *x = T::rounded(x.re().to_f64() * f, x.im().to_f64() * f);
        }
    };
    rcond_by(factors.n(), norm, &mut |op, x: &mut [T]| {
        // (R·A·C)⁻¹ = C⁻¹·A⁻¹·R⁻¹
        let (before, after) = if op == Op::Identity { (rows, cols) } else { (cols, rows) };
        let s = middle(before, after);
        rescale(x, before, &|f| s / f);
        factors.solve_op_in_place(op, columns(x, rows.len()));
        rescale(x, after, &|f| 1.0 / (s * f));
    })
}

/// A power of two that moves the numbers 1 / rᵢ and cᵢ as far from both ends of the range as can be.
fn middle(r: &[f64], c: &[f64]) -> f64 {
    let exponents = r.iter().map(|r| -r.log2()).chain(c.iter().map(|c| c.log2()));
    let (least, most) = exponents.fold((f64::INFINITY, -f64::INFINITY), |(l, m), e| (l.min(e), m.max(e)));
    (-0.5 * (least + most)).round().clamp(-1000.0, 1000.0).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let at = |i: usize, j: usize| if op == Op::Identity { b[i][j] } else { b[j][i] };
            for x in x.as_chunks_mut::<2>().0 {
                *x = [at(0, 0) * x[0] + at(0, 1) * x[1], at(1, 0) * x[0] + at(1, 1) * x[1]];
            }
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
