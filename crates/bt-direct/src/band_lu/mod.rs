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

use bt_formats::{Band, Monitor, Op, Scalar, zero};
use faer::MatMut;

use crate::error::Result;
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::tridiagonal_lu::{check_size, reserve, zeros};

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
    /// Dense copy of a panel of columns.
    panel: Vec<T>,
    /// Rows of the trailing columns that a panel eliminates, a group of columns at a time.
    rows: Vec<[T; factor::GROUP]>,
    exchanges: factor::Exchanges,
    tuning: Tuning,
    stats: FactorStats,
}

/// Sizes that trade speed only; tests shrink them so that small matrices reach every path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tuning {
    /// Columns of a panel, at least 1 and at most kl + ku + 1.
    panel: usize,
    /// Work between two calls of the monitor.
    flops_between_reports: f64,
}

impl Tuning {
    /// Measured on AVX-512 in double precision.
    fn of(kl: usize, ku: usize) -> Self {
        let panel = match kl {
            0..16 => 1,
            16..48 => 8,
            48..96 => 16,
            _ => 24,
        };
        // Well under a millisecond.
        Self { panel: panel.min(kl + ku + 1), flops_between_reports: 2e5 }
    }
}

impl<T: Scalar> BandLu<T> {
    /// Factors a copy of `a`.
    ///
    /// # Errors
    /// [`crate::FactorError::Singular`] with the first column all of whose candidates are exactly zero;
    /// [`crate::FactorError::Input`] on a NaN or infinity, or when memory is short; [`crate::FactorError::Breakdown`] when
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
    /// As [`BandLu::new`]; [`crate::FactorError::Stopped`] when the monitor says so.
    pub fn with_monitor(a: &Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let target = Band::zeros(a.n(), a.kl(), a.ku())?;
        let mut lu = Self::allocate(target, Tuning::of(a.kl(), a.ku()))?;
        lu.factor(Some(a.values()), monitor)?;
        Ok(lu)
    }

    /// Factors `a` in its own storage, without a copy.
    ///
    /// # Errors
    /// As [`BandLu::new`].
    pub fn from_band(a: Band<T>) -> Result<Self> {
        let tuning = Tuning::of(a.kl(), a.ku());
        let mut lu = Self::allocate(a, tuning)?;
        lu.factor(None, &mut ())?;
        Ok(lu)
    }

    fn allocate(factors: Band<T>, tuning: Tuning) -> Result<Self> {
        let n = factors.n();
        let (mut pivots, mut tops, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut pivots, n)?;
        reserve(&mut tops, n)?;
        reserve(&mut rows, tuning.panel)?;
        pivots.resize(n, 0);
        tops.resize(n, 0);
        rows.resize(tuning.panel, [zero(); factor::GROUP]);
        let panel = zeros((factors.kl() + tuning.panel) * tuning.panel)?;
        let exchanges = factor::Exchanges::new(tuning.panel)?;
        Ok(Self { factors, pivots, tops, panel, rows, exchanges, tuning, stats: FactorStats::default() })
    }

    /// Factors another matrix of the same size and bandwidths in the same memory. After an error the factors are
    /// void: solves return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BandLu::new`], and [`crate::FactorError::Input`] on another size or bandwidth.
    pub fn refactor(&mut self, a: &Band<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`BandLu::refactor`], observed as in [`BandLu::with_monitor`].
    ///
    /// # Errors
    /// As [`BandLu::refactor`]; [`crate::FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Band<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.factors.n(), a.n())?;
        check_size("sub-diagonals", self.factors.kl(), a.kl())?;
        check_size("super-diagonals", self.factors.ku(), a.ku())?;
        self.factor(Some(a.values()), monitor)
    }

    fn factor(&mut self, source: Option<&[T]>, monitor: &mut dyn Monitor) -> Result<()> {
        let (n, kl, ku) = (self.factors.n(), self.factors.kl(), self.factors.ku());
        let elimination = factor::Elimination {
            n,
            kl,
            ku,
            values: self.factors.values_mut(),
            pivots: &mut self.pivots,
            tops: &mut self.tops,
            panel: &mut self.panel,
            rows: &mut self.rows,
            exchanges: &mut self.exchanges,
            source,
            tuning: self.tuning,
            found: factor::Found::default(),
        };
        match elimination.run(monitor) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::{c32, c64};
    use proptest::prelude::*;

    /// Every panel width performs the same operations on an element in the same order: the factors agree in all bits.
    fn same_factors<T: Scalar>(n: usize, kl: usize, ku: usize, panel: usize, seed: u64) {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let mut a = Band::<T>::zeros(n, kl, ku).unwrap();
        for j in 0..n {
            for i in a.column_range(j) {
                *a.get_mut(i, j) = T::from_parts(next(), next());
            }
        }
        let factors = |panel: usize| {
            let tuning = Tuning { panel, flops_between_reports: 0.0 };
            let mut lu = BandLu::allocate(Band::zeros(n, kl, ku).unwrap(), tuning).unwrap();
            lu.factor(Some(a.values()), &mut ()).unwrap();
            lu
        };
        let (one, other) = (factors(1), factors(panel.min(kl + ku + 1)));
        assert_eq!((&one.pivots, &one.tops), (&other.pivots, &other.tops));
        assert_eq!(one.factors, other.factors);
        assert_eq!(FactorStats { bytes: 0, ..one.stats }, FactorStats { bytes: 0, ..other.stats });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn panels_do_not_change_the_factors(
            n in 0usize..70, kl in 0usize..20, ku in 0usize..20, panel in 2usize..18, seed: u32,
        ) {
            let seed = u64::from(seed);
            same_factors::<f64>(n, kl, ku, panel, seed);
            same_factors::<f32>(n, kl, ku, panel, seed);
            same_factors::<c64>(n, kl, ku, panel, seed);
            same_factors::<c32>(n, kl, ku, panel, seed);
        }
    }
}
