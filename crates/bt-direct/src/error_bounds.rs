//! Componentwise backward error of a solution, and a bound of its forward error, one of each a right-hand side.
//!
//! ```text
//! r = b − op(A)·x      f = |r| + (z + 1)·ε·(|op(A)|·|x| + |b|)      ‖x − x*‖∞ ≤ ‖ |op(A)⁻¹|·f ‖∞
//! ```
//!
//! with z the largest number of stored entries in a row of op(A): (z + 1)·ε bounds what rounding did to r itself. M.
//! Arioli, J. W. Demmel & I. S. Duff, SIAM J. Matrix Anal. Appl. 10 (1989) 165–190, doi:10.1137/0610013, §3; LAPACK's
//! xGERFS computes the same. ‖ |B|·f ‖∞ = ‖B·diag(f)‖∞ = ‖diag(f)·Bᴴ‖₁ is estimated with solves only, see [`crate::condition`].
//!
//! Non-standard: x is taken as it is (xGERFS refines it first; here [`crate::refine()`] does); the estimate is divided
//! between the solves by a power of two so that A of size 1e±300 neither over- nor underflows. The estimate is a lower
//! bound of the norm, almost always within a factor 3; the norm is an upper bound of the error, as a rule a hundred times
//! too large. Memory: ten vectors. Cost: two products with A, and three to eleven solves of two right-hand sides, a column.

use bt_formats::{Matrix, Op, Par, RealScalar, Scalar, one, zero};
use faer::MatRef;

use crate::estimate::{columns, norm_one_estimate};
use crate::factorization::Factorization;

/// How wrong one column of X may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBounds {
    /// Estimated bound of ‖x − x*‖∞ / ‖x‖∞ with x* the exact solution; infinite when x = 0 and b ≠ 0, or when a solve
    /// with the factors is not finite.
    pub forward: f64,
    /// maxᵢ |rᵢ| / (|op(A)|·|x| + |b|)ᵢ: the smallest relative change of the entries of A and b that makes x exact.
    pub backward: f64,
}

/// Bounds for every column of `x` as a solution of op(A)·X = B, with the factors of A: FERR and BERR of LAPACK.
///
/// `a` is n × n; `b` and `x` are n × nrhs with contiguous columns.
///
/// # Panics
/// When shapes disagree or columns are not contiguous.
///
/// # Cost
/// Two products, and three to eleven solves of two right-hand sides, a column; ten vectors of memory.
///
/// ```
/// use bt_direct::{Factorization, TridiagonalLu, error_bounds};
/// use bt_formats::{Op, Tridiagonal};
/// use faer::Mat;
/// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
/// let lu = TridiagonalLu::new(&a)?;
/// let b = Mat::from_fn(3, 1, |i, _| [1.0, 0.0, 1.0][i]);
/// let mut x = b.clone();
/// lu.solve_in_place(x.as_mut());
/// let bounds = error_bounds(&a, &lu, Op::Identity, b.as_ref(), x.as_ref())[0];
/// assert!(bounds.backward < 1e-15 && bounds.forward < 1e-14);
/// assert!((0..3).all(|i| (x[(i, 0)] - 1.0f64).abs() <= bounds.forward));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[inline(never)]
pub fn error_bounds<T: Scalar, A: Matrix<T> + ?Sized, F: Factorization<T> + ?Sized>(
    a: &A,
    factors: &F,
    op: Op,
    b: MatRef<'_, T>,
    x: MatRef<'_, T>,
) -> Vec<ErrorBounds> {
    let n = factors.n();
    assert_eq!((a.nrows(), a.ncols()), (n, n), "shape of A");
    assert_eq!((b.nrows(), x.nrows(), x.ncols()), (n, n, b.ncols()), "shapes of B and X");
    let par = Par::auto(a.bytes());
    let z = (longest_row(a, op) + 1) as f64;
    let epsilon = T::Real::EPSILON.to_f64();
    // Below this a denominator may have lost digits to underflow.
    let tiny = z * T::Real::MIN_POSITIVE.to_f64();
    let scale = power_of_two(factors.stats().norm_one);
    let (mut r, mut d) = (vec![zero::<T>(); n], vec![zero::<T::Real>(); n]);
    let mut abs_x = vec![zero::<T::Real>(); n];
    let mut f = vec![0.0f64; n];
    let column = |m: MatRef<'_, T>, j: usize| -> Vec<T> { (0..n).map(|i| m[(i, j)]).collect() };
    let mut out = Vec::with_capacity(x.ncols());
    for j in 0..x.ncols() {
        let (xj, bj) = (column(x, j), column(b, j));
        // r ← b − op(A)·x;  d ← |op(A)|·|x| + |b|
        r.copy_from_slice(&bj);
        a.apply_op(op, -one::<T>(), &xj, one(), &mut r, par);
        abs_x.iter_mut().zip(&xj).for_each(|(m, v)| *m = v.abs());
        d.iter_mut().zip(&bj).for_each(|(m, v)| *m = v.abs());
        a.accumulate_abs(op, &abs_x, &mut d);
        let norm_x = abs_x.iter().fold(0.0f64, |m, v| m.max_nan(v.to_f64()));
        let norm_b = bj.iter().fold(0.0f64, |m, v| m.max_nan(v.abs().to_f64()));
        if norm_x == 0.0 && norm_b == 0.0 {
            out.push(ErrorBounds { forward: 0.0, backward: 0.0 });
            continue;
        }
        let mut backward = 0.0f64;
        for i in 0..n {
            let (ri, di) = (r[i].abs().to_f64(), d[i].to_f64());
            let safe = if di > tiny / epsilon { 0.0 } else { tiny };
            if ri > 0.0 || !di.is_finite() {
                backward = backward.max_nan((ri + safe) / (di + safe));
            }
            f[i] = ri + z * epsilon * di + safe;
        }
        let norm = weighted_inverse_norm(factors, op, &f, scale);
        out.push(ErrorBounds {
            forward: infinite_unless_finite(norm / norm_x),
            backward: infinite_unless_finite(backward),
        });
    }
    out
}

/// est ‖op(A)⁻¹·diag(f)‖∞ as the 1-norm of diag(f)·op(A)⁻ᴴ.
fn weighted_inverse_norm<T: Scalar, F: Factorization<T> + ?Sized>(factors: &F, op: Op, f: &[f64], scale: f64) -> f64 {
    let n = f.len();
    // s·x goes through the solve and f/s weighs the result: both are as far from the ends of the range as can be.
    let s = T::rounded(scale, 0.0);
    let times_s = |x: &mut [T]| x.iter_mut().for_each(|v| *v *= s);
    let weigh = |x: &mut [T]| x.iter_mut().zip(f.iter().cycle()).for_each(|(v, &f)| *v *= T::rounded(f / scale, 0.0));
    let solve = |op: Op, x: &mut [T]| factors.solve_op_in_place(op, columns(x, n));
    let conjugate = |x: &mut [T]| x.iter_mut().for_each(|v| *v = Scalar::conj(*v));
    // x ← (op(A)⁻¹)ᴴ·x
    let adjoint = |x: &mut [T]| match op {
        Op::Identity => solve(Op::Adjoint, x),
        Op::Adjoint => solve(Op::Identity, x),
        // (Aᵀ)⁻ᴴ = conj(A)⁻¹
        Op::Transpose => {
            conjugate(x);
            solve(Op::Identity, x);
            conjugate(x);
        }
    };
    norm_one_estimate(n, |product, x| {
        if product == Op::Identity {
            times_s(x);
            adjoint(x);
            weigh(x);
        } else {
            weigh(x);
            solve(op, x);
            times_s(x);
        }
    })
}

/// Stored entries of the longest row of op(A).
fn longest_row<T: Scalar, A: Matrix<T> + ?Sized>(a: &A, op: Op) -> usize {
    let mut counts = vec![0u32; a.nrows()];
    a.for_each_entry(&mut |i, j, _| counts[if op == Op::Identity { i } else { j }] += 1);
    counts.into_iter().max().unwrap_or(0) as usize
}

/// A power of two near √‖A‖₁.
fn power_of_two(norm: f64) -> f64 {
    if norm.is_finite() && norm > 0.0 { 2f64.powi((norm.log2() / 2.0).floor() as i32) } else { 1.0 }
}

fn infinite_unless_finite(v: f64) -> f64 {
    if v.is_finite() { v } else { f64::INFINITY }
}
