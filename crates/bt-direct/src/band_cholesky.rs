//! Cholesky factorization of a Hermitian positive definite band matrix.
//!
//! A = L·Lᴴ with L inside the band: `pbtrf` and `pbtrs` of LAPACK with the lower triangle. Always stable, no growth:
//! |lᵢⱼ|² ≤ aᵢᵢ (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §10.1,
//! doi:10.1137/1.9780898718027). That a is Hermitian is verified exactly, except where only the lower half is given.
//!
//! Storage: n(k + 1) values for half-bandwidth k, half of what LU needs, and n sums of columns. Cost: n·k(k + 2) flops
//! and n roots to factor, 4n(k + ½) flops a right-hand side.
//!
//! | file | case |
//! |---|---|
//! | `registers.rs` | doubles in eight lanes, k ≤ 8: column by column, what a step changes in registers |
//! | `tiles.rs` | wider ones: panels of eight columns, by tiles of 8 × 8 |
//! | `panels.rs` | all others, and where columns end within a tile: panels from k = 16 on, narrower bands column by column |
//! | `halves.rs` | both halves of A, of a band or of rows that have all its entries, which are compared on the way |
//! | `partial.rs` | factors of a part of a matrix, for methods on partitions |

mod halves;
mod panels;
mod partial;
mod registers;
mod tiles;

use std::ops::Range;

use bt_formats::{Band, Csr, LinearOperator, Monitor, Op, Progress, RealScalar, Scalar, zero};
use faer::MatMut;

use crate::band_lu::end::reciprocal;
use crate::band_lu::kernels::{LANES, reduce};
use crate::band_lu::substitution;
use crate::band_lu::triangles::{Factor, Multipliers, Triangles};
use crate::columns::check_size;
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines;
use crate::memory::zeros;
use crate::sparse_cholesky::hermitian_norm;
use halves::{Halves, beside};
use panels::Strip;
use registers::Stop;

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
    /// Room for a panel.
    panel: Vec<[T; panels::WIDTH]>,
    stats: FactorStats,
}

const METHOD: &str = "band-cholesky";

/// Where the lower half of A stands.
#[derive(Clone, Copy)]
enum Source<'a, T> {
    Band(&'a Band<T>),
    /// All entries of a band, by rows; what can be used of them is found out on the way.
    FullRows(&'a Csr<T>, Halves<'a, T>),
    /// A matrix that is known to be finite and Hermitian.
    Rows(&'a Csr<T>),
    /// In the place of L.
    Here,
}

impl<'a, T: Scalar> Source<'a, T> {
    /// # Errors
    /// Where A can be seen to be unusable.
    fn of_rows(a: &'a Csr<T>, k: usize) -> Result<Self> {
        if (registers::fit::<T>(k) || tiles::fit::<T>(k))
            && let Some(halves) = Halves::of_rows(a, k)
        {
            return Ok(Self::FullRows(a, halves));
        }
        hermitian_norm(a, &mut Vec::new())?;
        Ok(Self::Rows(a))
    }

    fn halves(self) -> Option<Halves<'a, T>> {
        match self {
            Self::Band(a) => Halves::of_band(a),
            Self::FullRows(_, halves) => Some(halves),
            Self::Rows(_) | Self::Here => None,
        }
    }
}

/// Multiply-adds between two calls of the monitor: well under a millisecond.
const WORK_BETWEEN_REPORTS: usize = 200_000;

/// Columns that the memory is asked for before they are read: it does not follow pieces of columns by itself.
const AHEAD: usize = 16;

/// Columns that are read, compared and eliminated at a time.
const MOST_AT_A_TIME: usize = 512;

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

    /// As [`BandCholesky::new`], reporting `Progress::Step { phase: "setup", .. }` in columns.
    ///
    /// # Errors
    /// As [`BandCholesky::new`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn with_monitor(a: &Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let (n, k) = (a.n(), a.kl().max(a.ku()));
        let mut out = Self::allocate(n, k, k + 1, 0, zeros(n.saturating_mul(k + 1))?)?;
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors a Hermitian matrix given by rows, whose half-bandwidth is that of its stored entries: no band is made of it.
    ///
    /// ```
    /// use bt_direct::{BandCholesky, Factorization};
    /// let a = bt_formats::Csr::from_dense(faer::mat![[4.0, 2.0], [2.0, 5.0]].as_ref())?;
    /// let mut x = [6.0, 7.0];
    /// BandCholesky::from_csr(&a, &mut ())?.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [1.0; 2]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`BandCholesky::with_monitor`].
    pub fn from_csr(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        a.check_square()?;
        let (n, k) = (a.nrows(), reach(a));
        let source = Source::of_rows(a, k)?;
        let mut out = Self::allocate(n, k, k + 1, 0, zeros(n.saturating_mul(k + 1))?)?;
        out.factor(source, monitor)?;
        Ok(out)
    }

    /// Factors the Hermitian matrix whose lower triangle is `a` (no super-diagonals), in its own storage where no clone shares it.
    ///
    /// # Errors
    /// As [`BandCholesky::new`]; [`FactorError::Input`] when `a` has super-diagonals.
    pub fn from_lower(a: Band<T>) -> Result<Self> {
        check_size("super-diagonals", 0, a.ku())?;
        let (n, k, ld) = (a.n(), a.kl(), a.ldab());
        let mut out = Self::allocate(n, k, ld, k, a.into_values())?;
        out.factor(Source::Here, &mut ())?;
        Ok(out)
    }

    fn allocate(n: usize, k: usize, ld: usize, diagonal: usize, values: Vec<T>) -> Result<Self> {
        let sums = zeros(n)?;
        let panel = zeros(panels::room::<T>(k))?;
        Ok(Self { n, k, ld, diagonal, values, sums, panel, stats: FactorStats::default() })
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
        self.factor(Source::Band(a), monitor)
    }

    /// Copies columns of the lower half, and adds their moduli to the sums.
    fn load(&mut self, source: Source<'_, T>, mut columns: Range<usize>) -> Result<()> {
        if let Some(halves) = source.halves().filter(|_| tiles::fit::<T>(self.k)) {
            let edge = columns.start..halves.first.next_multiple_of(LANES).clamp(columns.start, columns.end);
            self.copy(source, edge.clone())?;
            self.measure(edge.clone());
            columns.start = tiles::load(self, halves, edge.end..columns.end);
        }
        self.copy(source, columns.clone())?;
        self.measure(columns);
        Ok(())
    }

    /// Copies columns of the lower half.
    fn copy(&mut self, source: Source<'_, T>, columns: Range<usize>) -> Result<()> {
        match source {
            Source::Band(a) => self.copy_band(a, columns),
            Source::FullRows(a, _) => {
                if columns.clone().any(|col| !self.is_mirrored(a, col)) {
                    return Err(unusable_rows(a));
                }
                columns.for_each(|col| self.copy_row(a, col));
                Ok(())
            }
            Source::Rows(a) => {
                columns.for_each(|col| self.copy_row(a, col));
                Ok(())
            }
            Source::Here => Ok(()),
        }
    }

    /// Whether row and column j of a full band are finite and each other's mirrors.
    fn is_mirrored(&self, a: &Csr<T>, j: usize) -> bool {
        let (ptr, values) = (a.row_ptr(), a.values());
        (0..=self.k.min(self.n - 1 - j)).all(|d| {
            let (right, below) = (beside(ptr, self.k, j, d as isize), beside(ptr, self.k, j + d, -(d as isize)));
            values[right] == Scalar::conj(values[below]) && Scalar::is_finite(values[right])
        })
    }

    /// Column j of the lower half: the conjugate of row j from the diagonal on.
    fn copy_row(&mut self, a: &Csr<T>, j: usize) {
        let (start, below) = (self.at(j, j), self.k.min(self.n - 1 - j));
        let lower = &mut self.values[start..=start + below];
        let (cols, values) = a.row(j);
        let left = cols.partition_point(|&col| (col as usize) < j);
        let (cols, values) = (&cols[left..], &values[left..]);
        if cols.len() == lower.len() {
            // Columns increase: the row is full.
            lower.iter_mut().zip(values).for_each(|(l, &v)| *l = Scalar::conj(v));
        } else {
            lower.fill(zero());
            cols.iter().zip(values).for_each(|(&col, &v)| lower[col as usize - j] = Scalar::conj(v));
        }
    }

    /// Copies columns of the lower half and compares them with the upper one.
    fn copy_band(&mut self, a: &Band<T>, columns: Range<usize>) -> Result<()> {
        let (ldab, top, values) = (a.ldab(), a.kl() + a.ku(), a.values());
        let both = a.kl() == a.ku();
        for col in columns {
            let below = self.k.min(self.n - 1 - col);
            let start = self.at(col, col);
            let lower = &mut self.values[start..=start + below];
            let mut is_fine = true;
            if both {
                let ahead = (col + AHEAD) * ldab + a.kl();
                lines::fetch(values, ahead..(ahead + 2 * self.k + 1).min(values.len()));
                lower.copy_from_slice(&values[col * ldab + top..][..=below]);
                // Row `col` of the upper half stands one number higher in each column. What is equal to a finite number is finite.
                let row = values[col * ldab + top..].iter().step_by((ldab - 1).max(1));
                for (&v, &mirrored) in lower.iter().zip(row) {
                    is_fine &= v == Scalar::conj(mirrored) && Scalar::is_finite(v);
                }
            } else {
                for (i, v) in lower.iter_mut().enumerate() {
                    *v = a.get(col + i, col);
                    is_fine &= *v == Scalar::conj(a.get(col, col + i)) && Scalar::is_finite(*v);
                }
            }
            if !is_fine {
                return Err(self.unusable(a, col));
            }
        }
        Ok(())
    }

    /// What is wrong with row and column `col`.
    #[cold]
    fn unusable(&self, a: &Band<T>, col: usize) -> FactorError {
        for row in col..(col + self.k + 1).min(self.n) {
            let (value, mirrored) = (a.get(row, col), a.get(col, row));
            for (row, col, value) in [(row, col, value), (col, row, mirrored)] {
                if !Scalar::is_finite(value) {
                    let value = value.to_string();
                    return bt_formats::Error::NonFinite { what: "matrix", row, col, value }.into();
                }
            }
            if value != Scalar::conj(mirrored) {
                return bt_formats::Error::InvalidStructure {
                    what: "matrix",
                    why: format!("it is not Hermitian: row {row}, column {col} is {value}, its mirror {mirrored}"),
                }
                .into();
            }
        }
        unreachable!("column {col} has been found unusable")
    }

    /// Column j of L from the diagonal down to the end of the band or of the matrix.
    pub fn column(&self, j: usize) -> &[T] {
        let start = self.at(j, j);
        &self.values[start..start + (self.k + 1).min(self.n - j)]
    }

    #[inline(never)]
    fn factor(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let mut outcome = self.eliminate_all(source, monitor);
        if matches!(outcome, Err(FactorError::Breakdown { .. })) {
            // Input that cannot be used is told first, wherever it stands.
            outcome = self.copy(source, 0..self.n).and(outcome);
        }
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

    /// Adds the moduli of columns to their sums.
    fn measure(&mut self, columns: Range<usize>) {
        let (k, n, ld, diagonal) = (self.k, self.n, self.ld, self.diagonal);
        let (values, sums) = (&self.values, &mut self.sums);
        bt_simd::dispatch_short(bt_simd::Loops(
            #[inline(always)]
            || {
                for col in columns.clone() {
                    let column = &values[col * ld + diagonal..][..(k + 1).min(n - col)];
                    let (own, others) = sums[col..].split_first_mut().expect("a sum for every column");
                    for (sum, v) in others.iter_mut().zip(&column[1..]) {
                        *sum += v.abs();
                    }
                    let first = if k <= LANES { 0 } else { (col + 1) % LANES };
                    *own += column[0].abs() + sum_of_moduli(&column[1..], first);
                }
            },
        ));
    }

    /// Whether the lower triangle in place can be used.
    fn check(&self) -> Result<()> {
        for col in 0..self.n {
            let column = self.column(col);
            if let Some(i) = column.iter().position(|v| !Scalar::is_finite(*v)) {
                let value = column[i].to_string();
                return Err(bt_formats::Error::NonFinite { what: "matrix", row: col + i, col, value }.into());
            }
            if column[0].im() != zero() {
                return Err(bt_formats::Error::InvalidStructure {
                    what: "matrix",
                    why: format!("it is not Hermitian: the diagonal is {} in row {col}", column[0]),
                }
                .into());
            }
        }
        Ok(())
    }

    fn eliminate_all(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let mut panel = std::mem::take(&mut self.panel);
        let outcome = self.eliminate_in(&mut panel, source, monitor);
        self.panel = panel;
        outcome
    }

    fn eliminate_in(
        &mut self,
        panel: &mut [[T; panels::WIDTH]],
        source: Source<'_, T>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let (n, k) = (self.n, self.k);
        self.sums.fill(zero());
        let mut loaded = 0;
        if matches!(source, Source::Here) {
            self.check()?;
            loaded = n;
            if !registers::fit::<T>(k) {
                self.measure(0..n);
            }
        }
        let mut min_pivot = T::Real::INFINITY;
        let strip = (WORK_BETWEEN_REPORTS / (k * k + 8)).clamp(panels::WIDTH, MOST_AT_A_TIME);
        let strip = strip.next_multiple_of(panels::WIDTH);
        let mut first = 0;
        while first < n {
            if monitor.observe(Progress::Step { phase: "setup", done: first, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            let last = (first + strip).min(n);
            // What the columns are taken from has to be there, and is in the nearer caches then.
            let goal = (last + k).next_multiple_of(LANES).min(n).max(loaded);
            let failed = if registers::fit::<T>(k) {
                self.in_registers(source, loaded..goal, first..last, &mut min_pivot)?
            } else {
                self.load(source, loaded..goal)?;
                self.in_panels(source, goal, panel, first..last, &mut min_pivot)
            };
            let reached = if registers::fit::<T>(k) { last + registers::reach(k) } else { goal };
            loaded = loaded.max(reached.min(n));
            if let Some((row, pivot)) = failed {
                let reason = format!(
                    "the pivot of row {row} (from 0) is {pivot:e}, not positive: the matrix is not positive definite; \
                     use band-lu"
                );
                return Err(FactorError::breakdown(METHOD, Place::Row(row), reason));
            }
            first = last;
        }
        let norm = self.sums.iter().fold(zero(), |m: T::Real, &s| m.max_nan(s));
        let below = |j: usize| k.min(n - 1 - j);
        self.stats = FactorStats {
            norm_one: norm.to_f64(),
            // |lᵢⱼ|² ≤ aᵢᵢ: nothing grows.
            growth: 1.0,
            min_pivot: if n == 0 { 0.0 } else { min_pivot.to_f64() },
            boosted_pivots: 0,
            nnz: (0..n).map(|j| 1 + below(j)).sum(),
            bytes: size_of_val(&*self.values) + size_of_val(&*self.sums) + size_of_val(panel),
            flops: (0..n).map(|j| (below(j) * (below(j) + 2)) as f64).sum(),
        };
        Ok(())
    }

    /// Eliminates columns; those to be loaded are taken from A on the way, or copied before. Returns a row without a positive pivot, and the pivot.
    fn in_registers(
        &mut self,
        source: Source<'_, T>,
        load: Range<usize>,
        columns: Range<usize>,
        min_pivot: &mut T::Real,
    ) -> Result<Option<(usize, f64)>> {
        let within = |halves: &Halves<'_, T>| registers::are_within(halves, &columns, self.n, self.k);
        let halves = source.halves().filter(within);
        if halves.is_none() {
            self.copy(source, load)?;
        }
        match (registers::eliminate(self, halves, columns, min_pivot), source) {
            (Ok(()), _) => Ok(None),
            (Err(Stop::Pivot(row, pivot)), _) => Ok(Some((row, pivot))),
            (Err(Stop::Unusable(col)), Source::Band(a)) => Err(self.unusable(a, col)),
            (Err(Stop::Unusable(_)), Source::FullRows(a, _)) => Err(unusable_rows(a)),
            (Err(Stop::Unusable(col)), Source::Rows(_) | Source::Here) => unreachable!("column {col} is in place"),
        }
    }

    /// Eliminates columns; those before `loaded` are there. Returns a row without a positive pivot, and the pivot.
    fn in_panels(
        &mut self,
        source: Source<'_, T>,
        loaded: usize,
        panel: &mut [[T; panels::WIDTH]],
        mut columns: Range<usize>,
        min_pivot: &mut T::Real,
    ) -> Option<(usize, f64)> {
        let k = self.k;
        if tiles::fit::<T>(k) {
            // Something of the next k columns has been read.
            let next = source.halves().map_or((&[][..], 0), |halves| (halves.from(loaded + k), halves.ld));
            match tiles::eliminate(self, panel, columns.clone(), min_pivot, next) {
                Ok(first) => columns.start = first,
                Err(failed) => return Some(failed),
            }
        }
        let Range { start: first, end: last } = columns;
        let strip = Strip { cholesky: self, min_pivot, panel, first, last };
        // Registers of 512 bits take panels up to twice as long (measured).
        let is_short = k >= panels::from::<T>();
        if is_short { bt_simd::dispatch_short(strip) } else { lines::dispatch::<T, _>(strip) }
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

/// What a column is divided by.
struct Pivots<T: Scalar> {
    /// √d, whose reciprocal is a normal number.
    root: T::Real,
    /// 1/d, if that is one.
    reciprocal: Option<T>,
}

impl<T: Scalar> Pivots<T> {
    /// Of the pivot d, if it is one.
    #[inline(always)]
    fn of(d: T::Real) -> Option<Self> {
        let is_pivot = d > zero() && d.to_f64().is_finite();
        is_pivot.then(|| Self { root: d.sqrt(), reciprocal: reciprocal(T::from_real(d)) })
    }
}

/// What is wrong with rows of which something is.
#[cold]
fn unusable_rows<T: Scalar>(a: &Csr<T>) -> FactorError {
    hermitian_norm(a, &mut Vec::new()).expect_err("rows that are not finite, or not Hermitian")
}

/// Half-bandwidth of the stored entries right of the diagonal, zeros among them.
fn reach<T: Scalar>(a: &Csr<T>) -> usize {
    (0..a.nrows()).filter_map(|i| a.row(i).0.last().map(|&last| (last as usize).saturating_sub(i))).max().unwrap_or(0)
}

/// Σ|vᵢ|, in interleaved partial sums; v₀ is of the one numbered `first`.
#[inline(always)]
fn sum_of_moduli<T: Scalar>(values: &[T], first: usize) -> T::Real {
    let mut lanes = [zero::<T::Real>(); LANES];
    let (head, values) = values.split_at(values.len().min((LANES - first) % LANES));
    for (sum, v) in lanes[first..].iter_mut().zip(head) {
        *sum += v.abs();
    }
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            lanes[l] += chunk[l].abs();
        }
    }
    for (sum, v) in lanes.iter_mut().zip(rest) {
        *sum += v.abs();
    }
    reduce(lanes, |a, b| a + b)
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
        match a {
            Given::Csr(a) if (a.nrows(), a.ncols()) == (self.n, self.n) && reach(a) <= self.k => {
                let source = Source::of_rows(a, self.k).inspect_err(|_| self.void())?;
                self.factor(source, monitor)
            }
            other => self.refactor_with_monitor(&*other.band(self.k, self.k)?, monitor),
        }
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
