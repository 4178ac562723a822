//! LU of a tridiagonal matrix without pivoting: the Thomas algorithm.
//!
//! L. H. Thomas, Elliptic problems in linear difference equations over a network, Watson Sci. Comput. Lab. report,
//! 1949; stability: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §9.6,
//! doi:10.1137/1.9780898718027. Stable for diagonally dominant (by rows or columns), symmetric positive definite,
//! M- and totally nonnegative matrices; anything else is watched: row by row, the size of the terms that formed a
//! pivot is compared with the row of A, and the factorization breaks down once half the digits of a row are lost.
//!
//! Non-standard: the factors are A = L·D·W with W = D⁻¹U unit upper bidiagonal, so that no division stands in the recurrence of
//! the back substitution. Storage: 3n values, those of the matrix itself on request. Cost: 3n flops and 2n divisions to factor,
//! 4n flops and n divisions a right-hand side.

use std::cell::Cell;

use bt_formats::{Monitor, Op, RealScalar, Scalar, Tridiagonal, zero};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::{in_cells, input_norms, or_void};

/// A = L·D·W of a tridiagonal A, without pivoting.
///
/// ```text
/// L = [ 1          ]   D = [ d0       ]   W = [ 1 w0    ]     multipliers = · l1 l2
///     [ l1 1       ]       [    d1    ]       [   1  w1 ]     pivots      = d0 d1 d2
///     [    l2 1    ]       [       d2 ]       [      1  ]     ratios      = w0 w1 ·
/// ```
///
/// ```
/// use bt_direct::{Factorization, Thomas};
/// use bt_formats::Tridiagonal;
/// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
/// let mut x = [1.0, 0.0, 1.0];
/// Thomas::new(&a)?.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Thomas<T> {
    /// lᵢ, then l₀ = 0.
    multipliers: Vec<T>,
    /// dᵢ.
    pivots: Vec<T>,
    /// wᵢ = uᵢ/dᵢ.
    ratios: Vec<T>,
    stats: FactorStats,
}

impl<T: Scalar> Thomas<T> {
    const METHOD: &'static str = "thomas";

    /// Factors `a`.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row at a pivot that is zero or has lost half the digits of its row
    /// (the matrix may well be regular: use `tridiagonal-lu`); [`FactorError::Input`] on a NaN or infinity.
    ///
    /// # Cost
    /// 3n flops, 2n divisions, 3n values.
    #[inline(never)]
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        let n = a.diag().len();
        let mut out =
            Self { multipliers: zeros(n)?, pivots: zeros(n)?, ratios: zeros(n)?, stats: FactorStats::default() };
        out.refactor(a)?;
        Ok(out)
    }

    /// Factors `a` in its own storage, without a copy: the factors take the places of the three diagonals.
    ///
    /// ```
    /// use bt_direct::{Factorization, Thomas};
    /// use bt_formats::Tridiagonal;
    /// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
    /// let mut x = [1.0, 0.0, 1.0];
    /// Thomas::from_tridiagonal(a)?.solve_vec_in_place(&mut x);
    /// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Thomas::new`].
    ///
    /// # Cost
    /// As [`Thomas::new`], without its memory where no clone shares the values.
    pub fn from_tridiagonal(a: Tridiagonal<T>) -> Result<Self> {
        let norms = input_norms(&a)?;
        let (multipliers, pivots, ratios) = a.into_parts();
        let mut out = Self { multipliers, pivots, ratios, stats: FactorStats::default() };
        out.factor(norms, None)?;
        Ok(out)
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`Thomas::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        check_size("size of the matrix", self.pivots.len(), a.diag().len())?;
        let outcome = input_norms(a).and_then(|norms| self.factor(norms, Some(a)));
        or_void(outcome, &mut self.pivots, &mut self.stats)
    }

    /// Factors `a`, or what stands where the factors will be: (lᵢ, dᵢ, uᵢ) is read before anything is written there.
    #[inline(never)]
    fn factor(&mut self, (norm_one, max_a): (f64, f64), a: Option<&Tridiagonal<T>>) -> Result<()> {
        let n = self.pivots.len();
        let [l, d, w] = [&mut self.multipliers, &mut self.pivots, &mut self.ratios].map(|v| in_cells(v));
        let made = match a {
            Some(a) => {
                let (lower, diag, upper) = (&a.lower()[..n], &a.diag()[..n], &a.upper()[..n]);
                eliminate(n, |i| [lower[i], diag[i], upper[i]], l, d, w)
            }
            None => eliminate(n, |i| [l[i].get(), d[i].get(), w[i].get()], l, d, w),
        };
        let (max_u, min_pivot) = made?;
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { max_u / max_a },
            min_pivot: if n == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: (3 * n).saturating_sub(2),
            bytes: 3 * n * size_of::<T>(),
            flops: 5.0 * n as f64,
        };
        Ok(())
    }

    /// L, D and W applied to one column.
    fn solve_column(&self, op: Op, x: &mut [T]) {
        let (l, d, w) = (&self.multipliers[..], &self.pivots[..], &self.ratios[..]);
        match op {
            Op::Identity => sweep(x, l, d, w, |v| v),
            // Aᵀ = Wᵀ·D·Lᵀ: the same sweeps with shifted arrays.
            Op::Adjoint if !T::IS_REAL => sweep_transposed(x, l, d, w, Scalar::conj),
            Op::Transpose | Op::Adjoint => sweep_transposed(x, l, d, w, |v| v),
        }
    }
}

/// The elimination; max|U| and the smallest pivot.
#[inline(always)]
fn eliminate<T: Scalar>(
    n: usize,
    row: impl Fn(usize) -> [T; 3],
    multipliers: &[Cell<T>],
    pivots: &[Cell<T>],
    ratios: &[Cell<T>],
) -> Result<(f64, f64)> {
    let (multipliers, pivots, ratios) = (&multipliers[..n], &pivots[..n], &ratios[..n]);
    // Half the digits of a row: ε^(−1/2).
    let limit = T::Real::EPSILON.sqrt();
    let (mut max_u, mut min_pivot) = (0.0f64, f64::INFINITY);
    let mut w = zero::<T>();
    let mut next = if n > 0 { row(0) } else { [zero(); 3] };
    for i in 0..n {
        let [lower, diag, upper] = next;
        if i + 1 < n {
            next = row(i + 1);
        }
        // lᵢuᵢ₋₁ = aᵢ·wᵢ₋₁;  dᵢ ← bᵢ − lᵢuᵢ₋₁
        let product = lower * w;
        let d = diag - product;
        let row = lower.abs1().max_nan(diag.abs1()).max_nan(upper.abs1());
        // |L||U| in row i against the row of A: rounding errors of the size ε·grown are made in it.
        let size = d.abs1();
        let grown = product.abs1().max_nan(size);
        if size == zero() || !Scalar::is_finite(d) || grown * limit > row {
            let method = Thomas::<T>::METHOD;
            return Err(FactorError::breakdown(method, Place::Row(i), breakdown(i, d, grown, row)));
        }
        let pivot = Pivot::new(d);
        w = pivot.divide(upper);
        pivots[i].set(d);
        ratios[i].set(w);
        if i + 1 < n {
            multipliers[i + 1].set(pivot.divide(next[0]));
        }
        max_u = max_u.max(size.to_f64()).max(upper.abs1().to_f64());
        min_pivot = min_pivot.min(d.abs().to_f64());
    }
    Ok((max_u, min_pivot))
}

fn breakdown<T: Scalar>(row: usize, d: T, grown: T::Real, of: T::Real) -> String {
    let advice = "the matrix may still be regular: use tridiagonal-lu, which pivots";
    if d == zero() {
        format!("the pivot of row {row} (from 0) is zero; {advice}")
    } else {
        format!("the terms of row {row} (from 0) grow from {of:e} to {grown:e} without pivoting; {advice}")
    }
}

/// x ← W⁻¹·D⁻¹·L⁻¹·x.
fn sweep<T: Scalar>(x: &mut [T], l: &[T], d: &[T], w: &[T], map: impl Fn(T) -> T) {
    let n = x.len();
    let (l, d, w) = (&l[..n], &d[..n], &w[..n]);
    // xᵢ ← xᵢ − lᵢ·xᵢ₋₁
    let mut last = zero::<T>();
    for i in 0..n {
        last = x[i] - if i == 0 { zero() } else { map(l[i]) * last };
        x[i] = last;
    }
    // xᵢ ← xᵢ/dᵢ − wᵢ·xᵢ₊₁
    let mut next = zero::<T>();
    for i in (0..n).rev() {
        let quotient = Pivot::new(map(d[i])).divide(x[i]);
        next = quotient - if i + 1 == n { zero() } else { map(w[i]) * next };
        x[i] = next;
    }
}

/// x ← L⁻ᵀ·D⁻¹·W⁻ᵀ·x.
fn sweep_transposed<T: Scalar>(x: &mut [T], l: &[T], d: &[T], w: &[T], map: impl Fn(T) -> T) {
    let n = x.len();
    // xᵢ ← xᵢ − wᵢ₋₁·xᵢ₋₁
    for i in 1..n {
        x[i] -= map(w[i - 1]) * x[i - 1];
    }
    // xᵢ ← xᵢ/dᵢ − lᵢ₊₁·xᵢ₊₁
    for i in (0..n).rev() {
        let quotient = Pivot::new(map(d[i])).divide(x[i]);
        x[i] = if i + 1 == n { quotient } else { quotient - map(l[i + 1]) * x[i + 1] };
    }
}

impl<T: Scalar> Factorization<T> for Thomas<T> {
    fn n(&self) -> usize {
        self.pivots.len()
    }
    fn method(&self) -> &'static str {
        Self::METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        for_each_column(x, |x| self.solve_column(op, x));
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> Result<()> {
        self.refactor(&*a.tridiagonal()?)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        self.pivots.iter().for_each(|&d| det.multiply(d));
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_checked_factors() {
        // [2 1 .; 4 5 3; . 6 10] = [1; 2 1; . 2 1]·diag(2, 3, 4)·[1 1/2; . 1 1; . . 1]
        let a = Tridiagonal::new(vec![0.0, 4.0, 6.0], vec![2.0, 5.0, 10.0], vec![1.0, 3.0, 0.0]).unwrap();
        let lu = Thomas::new(&a).unwrap();
        assert_eq!(lu.multipliers, [0.0, 2.0, 2.0]);
        assert_eq!(lu.pivots, [2.0, 3.0, 4.0]);
        assert_eq!(lu.ratios, [0.5, 1.0, 0.0]);
        let det = lu.log_det();
        assert_eq!((det.sign, det.log_abs), (1.0, 2f64.ln() + 3f64.ln() + 4f64.ln()));
        assert_eq!((lu.stats().growth, lu.stats().min_pivot, lu.stats().norm_one), (0.4, 2.0, 13.0));
    }

    #[test]
    fn zero_and_vanishing_pivots_break_down_with_their_row() {
        for (diag, row) in [(vec![1.0, 1.0, 5.0], 1), (vec![1e-12, 1.0, 5.0], 1), (vec![0.0, 1.0, 5.0], 0)] {
            let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], diag, vec![1.0, 1.0, 0.0]).unwrap();
            let error = Thomas::new(&a).unwrap_err();
            assert!(
                matches!(error, FactorError::Breakdown { place: Some(at), .. } if at == Place::Row(row)),
                "{error:?}"
            );
            let message = error.to_string();
            assert!(message.contains(&format!("row {row} ")) && message.contains("tridiagonal-lu"), "{message}");
        }
    }
}
