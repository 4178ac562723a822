//! Cholesky factorization of a Hermitian positive definite band matrix.
//!
//! A = L·Lᴴ with L inside the band: `pbtrf` and `pbtrs` of LAPACK with the lower triangle. Always stable, no growth:
//! |lᵢⱼ|² ≤ aᵢᵢ (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §10.1,
//! doi:10.1137/1.9780898718027). That a is Hermitian is verified exactly, except where only the lower half is given.
//!
//! Storage: n(k + 1) values for half-bandwidth k, half of what LU needs, and n sums of columns. Cost: n·k(k + 2) flops
//! and n roots to factor, 4n(k + ½) flops a right-hand side.

mod partial;

use bt_formats::{Band, Monitor, Op, Progress, RealScalar, Scalar, zero};
use faer::MatMut;

use crate::band_lu::kernels::axpy_minus;
use crate::band_lu::substitution::{self, Factor, Multipliers, Triangles};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::{check_size, reserve, zeros};

/// A = L·Lᴴ of a Hermitian positive definite band matrix.
///
/// ```text
/// k = 1        values, column after column
/// [ 4 2   ]    diagonal  l00 l11 l22        L = [ 2     ]
/// [ 2 5 2 ]    below     l10 l21  *             [ 1 2   ]
/// [   2 5 ]                                     [   1 2 ]
/// ```
///
/// ```
/// use bt_direct::{BandCholesky, Factorization};
/// use bt_formats::Band;
/// let mut a = Band::zeros(3, 1, 1)?;
/// for (i, j, v) in [(0, 0, 4.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 5.0), (1, 2, 2.0), (2, 1, 2.0), (2, 2, 5.0)] {
///     *a.get_mut(i, j) = v;
/// }
/// let cholesky = BandCholesky::new(&a)?;
/// let mut x = [6.0, 9.0, 7.0];
/// cholesky.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0; 3]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BandCholesky<T: Scalar> {
    n: usize,
    k: usize,
    /// Values of a column, and which of them is the diagonal.
    ld: usize,
    diagonal: usize,
    values: Vec<T>,
    /// Σᵢ|aᵢⱼ| of each column, of which only the lower half is stored.
    sums: Vec<T::Real>,
    stats: FactorStats,
}

const METHOD: &str = "band-cholesky";

/// Multiply-adds between two calls of the monitor: well under a millisecond.
const WORK_BETWEEN_REPORTS: usize = 200_000;

impl<T: Scalar> BandCholesky<T> {
    /// Factors the lower half of `a`, which must be Hermitian: aᵢⱼ = conj(aⱼᵢ) in every bit.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row whose pivot is not positive: `a` is not positive definite (use
    /// `band-lu`); [`FactorError::Input`] with the place when `a` is not Hermitian or not finite, or when memory is
    /// short.
    ///
    /// # Cost
    /// n·k(k + 2) flops, n(k + 1) values.
    pub fn new(a: &Band<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// As [`BandCholesky::new`], reporting `Progress::Step { phase: "factor", .. }` in columns.
    ///
    /// # Errors
    /// As [`BandCholesky::new`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn with_monitor(a: &Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let (n, k) = (a.n(), a.kl().max(a.ku()));
        let mut out = Self::allocate(n, k, k + 1, 0, zeros(n.saturating_mul(k + 1))?)?;
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors the Hermitian matrix whose lower triangle is `a` (no super-diagonals), in its own storage.
    ///
    /// # Errors
    /// As [`BandCholesky::new`]; [`FactorError::Input`] when `a` has super-diagonals.
    pub fn from_lower(a: Band<T>) -> Result<Self> {
        check_size("super-diagonals", 0, a.ku())?;
        let (n, k, ld) = (a.n(), a.kl(), a.ldab());
        let mut out = Self::allocate(n, k, ld, k, a.into_values())?;
        out.factor(&mut ())?;
        Ok(out)
    }

    fn allocate(n: usize, k: usize, ld: usize, diagonal: usize, values: Vec<T>) -> Result<Self> {
        let mut sums = Vec::new();
        reserve(&mut sums, n)?;
        sums.resize(n, zero());
        Ok(Self { n, k, ld, diagonal, values, sums, stats: FactorStats::default() })
    }

    /// Factors another Hermitian matrix of the same size and bandwidth in the same memory. After an error the factors
    /// are void: solves return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BandCholesky::new`], and [`FactorError::Input`] on another size or bandwidth.
    pub fn refactor(&mut self, a: &Band<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`BandCholesky::refactor`], observed as in [`BandCholesky::with_monitor`].
    ///
    /// # Errors
    /// As [`BandCholesky::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Band<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.n())?;
        check_size("half-bandwidth", self.k, a.kl().max(a.ku()))?;
        let outcome = self.copy_lower(a);
        if outcome.is_err() {
            self.void();
        }
        outcome?;
        self.factor(monitor)
    }

    /// Copies the lower half and compares it with the upper one.
    fn copy_lower(&mut self, a: &Band<T>) -> Result<()> {
        for col in 0..self.n {
            for row in col..(col + self.k + 1).min(self.n) {
                let (value, mirrored) = (a.get(row, col), a.get(col, row));
                for (row, col, value) in [(row, col, value), (col, row, mirrored)] {
                    if !Scalar::is_finite(value) {
                        let value = value.to_string();
                        return Err(bt_formats::Error::NonFinite { what: "matrix", row, col, value }.into());
                    }
                }
                if value != Scalar::conj(mirrored) {
                    return Err(bt_formats::Error::InvalidStructure {
                        what: "matrix",
                        why: format!("it is not Hermitian: row {row}, column {col} is {value}, its mirror {mirrored}"),
                    }
                    .into());
                }
                let at = self.at(row, col);
                self.values[at] = value;
            }
        }
        Ok(())
    }

    /// Column j of L from the diagonal down to the end of the band or of the matrix.
    pub fn column(&self, j: usize) -> &[T] {
        let start = self.at(j, j);
        &self.values[start..start + (self.k + 1).min(self.n - j)]
    }

    #[inline(never)]
    fn factor(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        let outcome = self.eliminate_all(monitor);
        if outcome.is_err() {
            self.void();
        }
        outcome
    }

    /// Leaves factors that turn every right-hand side into NaN.
    fn void(&mut self) {
        for j in 0..self.n {
            self.values[j * self.ld + self.diagonal] = T::nan_impl();
        }
        self.stats = self.stats.void();
    }

    /// Index of (i, j), i ≥ j.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> usize {
        j * self.ld + self.diagonal + i - j
    }

    /// ‖A‖₁ and max|A|.
    fn measure(&mut self) -> Result<(T::Real, T::Real)> {
        self.sums.fill(zero());
        let mut largest = zero::<T::Real>();
        for col in 0..self.n {
            let start = self.at(col, col);
            for (i, &v) in self.values[start..start + (self.k + 1).min(self.n - col)].iter().enumerate() {
                let modulus = v.abs();
                largest = largest.max_nan(v.abs1());
                self.sums[col] += modulus;
                if i > 0 {
                    self.sums[col + i] += modulus;
                }
                if !Scalar::is_finite(v) {
                    let value = v.to_string();
                    return Err(bt_formats::Error::NonFinite { what: "matrix", row: col + i, col, value }.into());
                }
            }
            if self.values[start].im() != zero() {
                return Err(bt_formats::Error::InvalidStructure {
                    what: "matrix",
                    why: format!("it is not Hermitian: the diagonal is {} in row {col}", self.values[start]),
                }
                .into());
            }
        }
        Ok((self.sums.iter().fold(zero(), |m: T::Real, &s| m.max_nan(s)), largest))
    }

    fn eliminate_all(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        let (n, k) = (self.n, self.k);
        let (norm, _) = self.measure()?;
        let mut min_pivot = T::Real::INFINITY;
        let strip = (WORK_BETWEEN_REPORTS / (k * k + 8)).max(1);
        let mut first = 0;
        while first < n {
            if monitor.observe(Progress::Step { phase: "factor", done: first, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            let last = (first + strip).min(n);
            let failed =
                lines::dispatch::<T, _>(Strip { cholesky: &mut *self, min_pivot: &mut min_pivot, first, last });
            if let Some((row, pivot)) = failed {
                let reason = format!(
                    "the pivot of row {row} (from 0) is {pivot:e}, not positive: the matrix is not positive definite; \
                     use band-lu"
                );
                return Err(FactorError::breakdown(METHOD, Place::Row(row), reason));
            }
            first = last;
        }
        let below = |j: usize| k.min(n - 1 - j);
        self.stats = FactorStats {
            norm_one: norm.to_f64(),
            // |lᵢⱼ|² ≤ aᵢᵢ: nothing grows.
            growth: 1.0,
            min_pivot: if n == 0 { 0.0 } else { min_pivot.to_f64() },
            boosted_pivots: 0,
            nnz: (0..n).map(|j| 1 + below(j)).sum(),
            bytes: size_of_val(&*self.values) + size_of_val(&*self.sums),
            flops: (0..n).map(|j| (below(j) * (below(j) + 2)) as f64).sum(),
        };
        Ok(())
    }

    pub(crate) fn triangle(&self) -> Triangles<'_, T> {
        Triangles {
            cols: self.n,
            rows: self.n,
            ncols: self.n,
            below: self.k,
            above: 0,
            ld: self.ld,
            diagonal: self.diagonal,
            values: &self.values,
            lower: Multipliers::behind(self.ld, self.diagonal, &self.values),
            pivots: &[],
            tops: &[],
            diagonal_of: Factor::Lower,
        }
    }
}

/// The columns first..last, as work for a SIMD instruction set. Returns a row without a positive pivot, and the pivot.
struct Strip<'a, T: Scalar> {
    cholesky: &'a mut BandCholesky<T>,
    min_pivot: &'a mut T::Real,
    first: usize,
    last: usize,
}

impl<T: Scalar> pulp::WithSimd for Strip<'_, T> {
    type Output = Option<(usize, f64)>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> Self::Output {
        for j in self.first..self.last {
            let failed = if S::IS_SCALAR || cfg!(target_family = "wasm") {
                self.eliminate::<false>(j)
            } else {
                self.eliminate::<true>(j)
            };
            if failed.is_some() {
                return failed;
            }
        }
        None
    }
}

impl<T: Scalar> Strip<'_, T> {
    /// Column j of L, and what it takes from the columns behind it.
    #[inline(always)]
    fn eliminate<const FUSED: bool>(&mut self, j: usize) -> Option<(usize, f64)> {
        let c = &mut *self.cholesky;
        let (below, ld) = (c.k.min(c.n - 1 - j), c.ld);
        let diagonal = c.at(j, j);
        let (column, ahead) = c.values[diagonal..].split_at_mut(below + 1);
        let pivot = column[0].re();
        if !(pivot > zero() && Scalar::is_finite(pivot.to_f64())) {
            return Some((j, pivot.to_f64()));
        }
        *self.min_pivot = self.min_pivot.min_nan(pivot);
        // lⱼⱼ ← √aⱼⱼ;  l ← l/lⱼⱼ
        let root = T::from_real(pivot.sqrt());
        column[0] = root;
        let divisor = Pivot::new(root);
        for v in &mut column[1..] {
            *v = divisor.divide(*v);
        }
        for i in 1..=below {
            // The lower half of column j + i: a ← a − l·conj(lᵢ).
            let start = i * ld - below - 1;
            let y = &mut ahead[start..=start + below - i];
            axpy_minus::<T, FUSED>(Scalar::conj(column[i]), &column[i..], y);
        }
        None
    }
}

impl<T: Scalar> Factorization<T> for BandCholesky<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        substitution::solve_hermitian(self.triangle(), op, x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.band(self.k, self.k)?, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.n {
            let root = self.values[j * self.ld + self.diagonal];
            det.multiply(root);
            det.multiply(root);
        }
        det
    }
}
