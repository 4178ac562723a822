//! LU of a band matrix with partial pivoting, in LAPACK's GB layout: the semantics of `gbtrf` and `gbtrs`.
//!
//! P·A = L·U is kept as the product of the exchanges and Gauss transformations in the order they were made, so that L
//! stays inside kl sub-diagonals; U has up to kl + ku super-diagonals. Storage: n(2kl + ku + 1) values, in place of
//! the matrix. Cost: at most 2n·kl(kl + ku + 1) flops; a column of U is only as tall as the exchanges made it, and a
//! matrix that needs none costs 2n·kl(ku + 1). Backward stable up to the growth factor: N. J. Higham, Accuracy and
//! Stability of Numerical Algorithms, 2nd ed., §9.5 (growth ≤ 2^(2k−1) for half-bandwidth k),
//! doi:10.1137/1.9780898718027.

mod factor;
pub(crate) mod kernels;
mod solve;

use bt_formats::{Band, Error, Monitor, Op, Scalar};
use faer::MatMut;

use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::tridiagonal_lu::{check_size, reserve};

/// P·A = L·U of a band matrix.
///
/// ```
/// use bt_direct::{BandLu, Factorization};
/// use bt_formats::Band;
/// let mut a = Band::zeros(3, 1, 1)?;
/// for (i, j, v) in [(0, 1, 2.0), (1, 0, 3.0), (1, 2, 1.0), (2, 1, 4.0), (2, 2, 5.0)] {
///     *a.get_mut(i, j) = v;
/// }
/// let lu = BandLu::new(&a)?;
/// let mut x = [2.0, 4.0, 9.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0; 3]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BandLu<T> {
    /// U in the rows above and on the diagonal, the multipliers of L below it.
    factors: Band<T>,
    /// Row exchanged with row j at step j.
    pivots: Vec<u32>,
    /// First row of each column of U that exchanges and fill reach.
    tops: Vec<u32>,
    stats: FactorStats,
}

impl<T: Scalar> BandLu<T> {
    /// Factors a copy of `a`.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column all of whose candidates are exactly zero;
    /// [`FactorError::Input`] on a NaN or infinity, or when memory is short; [`FactorError::Breakdown`] when
    /// elimination overflows.
    ///
    /// # Cost
    /// 2n·kl(kl + ku + 1) flops at most, n(2kl + ku + 1) values.
    pub fn new(a: &Band<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// As [`BandLu::new`], reporting `Progress::Step { phase: "factor", .. }` in columns.
    ///
    /// # Errors
    /// As [`BandLu::new`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn with_monitor(a: &Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let mut copy = Band::zeros(a.n(), a.kl(), a.ku())?;
        copy.values_mut().copy_from_slice(a.values());
        Self::factor_owned(copy, monitor)
    }

    /// Factors `a` in its own storage, without a copy.
    ///
    /// # Errors
    /// As [`BandLu::new`].
    pub fn from_band(a: Band<T>) -> Result<Self> {
        Self::factor_owned(a, &mut ())
    }

    fn factor_owned(a: Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.n();
        let (mut pivots, mut tops) = (Vec::new(), Vec::new());
        reserve(&mut pivots, n)?;
        reserve(&mut tops, n)?;
        pivots.resize(n, 0);
        tops.resize(n, 0);
        let mut lu = Self { factors: a, pivots, tops, stats: FactorStats::default() };
        lu.factor_in_place(monitor)?;
        Ok(lu)
    }

    /// Factors another matrix of the same size and bandwidths in the same memory. After an error the factors are
    /// void: solves return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BandLu::new`], and [`FactorError::Input`] on another size or bandwidth.
    pub fn refactor(&mut self, a: &Band<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`BandLu::refactor`], observed as in [`BandLu::with_monitor`].
    ///
    /// # Errors
    /// As [`BandLu::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Band<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.factors.n(), a.n())?;
        check_size("sub-diagonals", self.factors.kl(), a.kl())?;
        check_size("super-diagonals", self.factors.ku(), a.ku())?;
        self.factors.values_mut().copy_from_slice(a.values());
        self.factor_in_place(monitor)
    }

    fn factor_in_place(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        let outcome = factor::factor(&mut self.factors, &mut self.pivots, &mut self.tops, monitor);
        match outcome {
            Ok(stats) => {
                self.stats = stats;
                Ok(())
            }
            Err(error) => {
                self.void();
                Err(error)
            }
        }
    }

    /// Leaves factors that turn every right-hand side into NaN.
    fn void(&mut self) {
        let (n, ldab) = (self.factors.n(), self.factors.ldab());
        let kv = self.factors.kl() + self.factors.ku();
        let values = self.factors.values_mut();
        for j in 0..n {
            values[j * ldab + kv] = T::nan_impl();
            self.pivots[j] = j as u32;
            self.tops[j] = j as u32;
        }
        self.stats = FactorStats { norm_one: f64::NAN, growth: f64::NAN, min_pivot: f64::NAN, ..self.stats };
    }
}

impl<T: Scalar> Factorization<T> for BandLu<T> {
    fn n(&self) -> usize {
        self.factors.n()
    }
    fn method(&self) -> &'static str {
        "band-lu"
    }
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        solve::solve(&self.factors, &self.pivots, &self.tops, op, x);
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.n() {
            det.multiply(self.factors.get(j, j));
            if self.pivots[j] as usize != j {
                det.negate();
            }
        }
        det
    }
}

/// [`Error::NonFinite`] with the place of the first NaN or infinity in the band.
fn first_non_finite<T: Scalar>(a: &Band<T>) -> Option<FactorError> {
    for col in 0..a.n() {
        for row in a.column_range(col) {
            let value = a.get(row, col);
            if !Scalar::is_finite(value) {
                let value = value.to_string();
                return Some(Error::NonFinite { what: "matrix", row, col, value }.into());
            }
        }
    }
    None
}
