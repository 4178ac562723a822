//! LU of a band matrix without interchanges, with diagonal boosting on request.
//!
//! E. Polizzi and A. Sameh, A parallel hybrid banded system solver: the SPIKE algorithm, Parallel Comput. 32 (2006)
//! 177–194, §2.1, doi:10.1016/j.parco.2005.07.005. A pivot of modulus ≤ 0_ε·‖A‖₁ is replaced by itself ± ε·‖A‖₁, in
//! its own direction (+ at zero); a boosted factorization is inexact and belongs behind refinement or in a
//! preconditioner.
//!
//! Departures: without boosting every row is watched. Step k makes errors of the size u·|lᵢₖ|·max|uₖ| in row i; once
//! that exceeds √u times the row of A, half of its digits are gone and the factorization breaks down, naming the row.
//! Diagonally dominant and Hermitian positive definite matrices never get there (N. J. Higham, Accuracy and Stability
//! of Numerical Algorithms, 2nd ed., §9.6, doi:10.1137/1.9780898718027).
//!
//! Storage: n(kl + ku + 1) values, or the matrix's own; n moduli of rows while factoring. Narrow bands of doubles stay in
//! registers (`registers.rs`) on AVX-512 and AVX2; on AVX-512 others go from the left by groups of columns (`groups.rs`) with
//! some 64(p + 1)(q + 1) values, p = ⌈kl/8⌉ and q = ⌈ku/8⌉. Elsewhere there is a window (`window.rs`) of 64h(h + 1) + 128(p + 2)
//! values, h = p + q + 1. Where that were more than 4 MiB, bands of 32 diagonals and more on either side have a dense panel of 16
//! columns of kl + 24 values and 16 rows of 8. Cost: 2n·kl(ku + ½) flops to factor, 2n(kl + ku + ½) a right-hand side.
//!
//! | file | case |
//! |---|---|
//! | `registers.rs` | doubles in eight lanes, 1 ≤ kl ≤ 8 and 1 ≤ ku ≤ 16: what a step changes in registers |
//! | `groups.rs` | wider bands of doubles on AVX-512, up to 512 KiB of tiles: eight columns at a time, from the left |
//! | `window.rs` | all others, up to 4 MiB of window: eight columns and eight rows at a time |
//! | `panels.rs` | the rest, 32 diagonals and more on either side: panels of 16 columns; with fewer on one side column by column, here |
//! | `partial.rs` | factors of a part of a matrix, for methods on partitions |

/// A step for each lane k, a constant in each: arrays of vectors stay in registers.
macro_rules! each_lane {
    (|$k:ident| $step:block) => {
        each_lane!(|$k| $step 0 1 2 3 4 5 6 7)
    };
    (|$k:ident| $step:block $($lane:literal)*) => {
        $({
            const $k: usize = $lane;
            $step
        })*
    };
}

#[cfg(target_arch = "x86_64")]
mod groups;
mod panels;
mod partial;
#[cfg(target_arch = "x86_64")]
mod registers;
mod window;

use std::ops::Range;

use bt_formats::{Band, Csr, LinearOperator, Monitor, Op, Progress, RealScalar, Scalar, zero};
use faer::MatMut;

use crate::band_lu::end::{Place, divide};
use crate::band_lu::kernels::{LANES, axpy_minus, mul_add, reduce, sum_and_max};
use crate::band_lu::source::{self, AHEAD, Source};
use crate::band_lu::substitution;
use crate::band_lu::triangles::{Factor, Multipliers, Triangles};
use crate::columns::check_size;
use crate::error::{self, FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines;
use crate::memory::{reserve, zeros};
use crate::pivot::Pivot;
use crate::refine::unit_roundoff;

/// Which pivots are boosted, and by how much; both are relative to ‖A‖₁.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boosting {
    /// 0_ε: pivots of modulus ≤ `zero`·‖A‖₁ are boosted.
    pub zero: f64,
    /// ε: a boosted pivot moves by `eps`·‖A‖₁.
    pub eps: f64,
}

impl Boosting {
    /// 0_ε = u and ε = √u of the scalar.
    ///
    /// ```
    /// let boosting = bt_direct::Boosting::of::<f64>();
    /// assert_eq!(boosting.zero, f64::EPSILON / 2.0);
    /// assert_eq!(boosting.eps, boosting.zero.sqrt());
    /// ```
    pub fn of<T: Scalar>() -> Self {
        let u = unit_roundoff::<T>();
        Self { zero: u, eps: u.sqrt() }
    }
}

/// A = L·U of a band matrix, without interchanges.
///
/// ```
/// use bt_direct::{BandLuNoPivot, Factorization};
/// use bt_formats::Band;
/// let mut a = Band::zeros(3, 1, 1)?;
/// for (i, j, v) in [(0, 0, 4.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 7.0), (1, 2, 1.0), (2, 1, 4.0), (2, 2, 5.0)] {
///     *a.get_mut(i, j) = v;
/// }
/// let lu = BandLuNoPivot::new(&a)?;
/// let mut x = [6.0, 11.0, 9.0];
/// lu.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BandLuNoPivot<T: Scalar> {
    n: usize,
    kl: usize,
    ku: usize,
    /// Values of a column, and which of them is the diagonal.
    ld: usize,
    diagonal: usize,
    /// U on and above the diagonal, L below it unless that is apart.
    values: Vec<T>,
    /// Columns of kl multipliers, where they are apart.
    lower: Vec<T>,
    place: Place,
    /// Largest |re| + |im| of each row of A.
    rows: Vec<T::Real>,
    way: Way<T>,
    boosting: Option<Boosting>,
    stats: FactorStats,
}

/// How columns are eliminated, and memory for it.
#[derive(Clone, Debug)]
enum Way<T> {
    /// Narrow bands of doubles, on AVX-512 and AVX2.
    #[cfg(target_arch = "x86_64")]
    Registers,
    /// Wider ones, on AVX-512.
    #[cfg(target_arch = "x86_64")]
    Groups(Box<groups::Workspace>),
    /// All others but wide bands.
    Window(window::Workspace<T>),
    /// Wide bands: a panel and what it is applied to.
    Panels(Vec<T>),
    /// Bands wide on one side alone.
    Columns,
}

impl<T: Scalar> Way<T> {
    fn of(kl: usize, ku: usize) -> Result<Self> {
        #[cfg(target_arch = "x86_64")]
        if registers::fit::<T>(kl, ku) {
            return Ok(Self::Registers);
        } else if let Some(workspace) = groups::Workspace::new::<T>(kl, ku)? {
            return Ok(Self::Groups(Box::new(workspace)));
        }
        if let Some(workspace) = window::Workspace::new(kl, ku)? {
            return Ok(Self::Window(workspace));
        }
        let panel = zeros(panels::scratch(kl, ku))?;
        Ok(if panel.is_empty() { Self::Columns } else { Self::Panels(panel) })
    }

    fn bytes(&self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Groups(workspace) => workspace.bytes(),
            Self::Window(workspace) => workspace.bytes(),
            Self::Panels(panel) => size_of_val(&**panel),
            _ => 0,
        }
    }

    /// Whether A is read where it is, and columns can be measured shortly before their steps.
    fn reads_source(&self) -> bool {
        !matches!(self, Self::Panels(_) | Self::Columns)
    }

    /// Whether a matrix with boosting is read where it is, too.
    fn measures_source(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Self::Registers);
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }
}

/// Columns of `ld` numbers, in which A may stand.
struct Storage<T> {
    ld: usize,
    diagonal: usize,
    values: Vec<T>,
}

impl<T: Scalar> Storage<T> {
    /// Zeros for so many rows below the diagonal and above it.
    fn zeros(n: usize, below: usize, above: usize) -> Result<Self> {
        let ld = below + above + 1;
        Ok(Self { ld, diagonal: above, values: zeros(n.saturating_mul(ld))? })
    }
}

const METHOD: &str = "band-lu-nopivot";

/// Multiply-adds between two calls of the monitor: well under a millisecond.
const WORK_BETWEEN_REPORTS: usize = 200_000;

impl<T: Scalar> BandLuNoPivot<T> {
    /// Factors a copy of `a`, without boosting.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row at a pivot that is zero, or when the row has lost half its digits (the
    /// matrix may well be regular: use `band-lu`); [`FactorError::Input`] on a NaN or infinity, or when memory is short.
    ///
    /// # Cost
    /// 2n·kl(ku + ½) flops, n(kl + ku + 1) values and n moduli.
    pub fn new(a: &Band<T>) -> Result<Self> {
        Self::with_options(a, None, &mut ())
    }

    /// Factors a copy of `a`, boosting small pivots where told to, and reports `Progress::Step { phase: "setup", .. }` in columns.
    /// [`FactorStats::boosted_pivots`] counts the pivots boosted; when it is not zero, A = L·U holds only up to the boosts, and solutions need
    /// refinement.
    ///
    /// # Errors
    /// Without boosting as [`BandLuNoPivot::new`]. With it [`FactorError::Input`] as there; [`FactorError::Breakdown`] when elimination
    /// overflows, or A is zero: growth is no error then, see [`FactorStats::growth`]. [`FactorError::Stopped`] when the monitor says so.
    pub fn with_options(a: &Band<T>, boosting: Option<Boosting>, monitor: &mut dyn Monitor) -> Result<Self> {
        let (n, kl, ku) = (a.n(), a.kl(), a.ku());
        let mut out = Self::allocate(n, kl, ku, None, boosting)?;
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors the band that has the nonzeros of `a`, without boosting and without a copy of it: some columns at a time are written where
    /// they stay in a cache, or all of them in the place of the factors.
    ///
    /// ```
    /// use bt_direct::{BandLuNoPivot, Factorization};
    /// use bt_formats::Csr;
    /// let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![5.0, 1.0, 6.0])?;
    /// let mut x = [5.0, 7.0];
    /// BandLuNoPivot::from_csr(&a, &mut ())?.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [1.0; 2]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`BandLuNoPivot::with_options`]; [`FactorError::Input`] when `a` is not square.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        a.check_square()?;
        let (kl, ku) = a.survey().bandwidth;
        let mut out = Self::allocate(a.nrows(), kl, ku, None, None)?;
        out.factor(Source::Rows(a), monitor)?;
        Ok(out)
    }

    /// Factors `a` in its own storage, without a copy where no clone shares it.
    ///
    /// # Errors
    /// As [`BandLuNoPivot::with_options`].
    pub fn from_band(a: Band<T>, boosting: Option<Boosting>) -> Result<Self> {
        let (n, kl, ku, ld) = (a.n(), a.kl(), a.ku(), a.ldab());
        let storage = Storage { ld, diagonal: kl + ku, values: a.into_values() };
        let mut out = Self::allocate(n, kl, ku, Some(storage), boosting)?;
        out.factor(Source::Here, &mut ())?;
        Ok(out)
    }

    #[inline(never)]
    fn allocate(
        n: usize,
        kl: usize,
        ku: usize,
        storage: Option<Storage<T>>,
        boosting: Option<Boosting>,
    ) -> Result<Self> {
        let mut rows = Vec::new();
        // Whole vectors, and zeros for those that a window has below the last row.
        let len = n.saturating_add(kl + 3 * LANES).next_multiple_of(LANES);
        reserve(&mut rows, len)?;
        rows.resize(len, zero());
        let way = Way::of(kl, ku)?;
        // Worked on elsewhere; columns of a line or so are read as fast in one piece.
        let apart = kl + ku > LANES && (way.measures_source() || (way.reads_source() && boosting.is_none()));
        let (place, storage, lower) = match storage {
            Some(storage) => (Place::BehindU, storage, 0),
            None if apart => (Place::Apart, Storage::zeros(n, 0, ku)?, n.saturating_mul(kl)),
            None => (Place::BehindU, Storage::zeros(n, kl, ku)?, 0),
        };
        let (lower, stats, Storage { ld, diagonal, values }) = (zeros(lower)?, FactorStats::default(), storage);
        Ok(Self { n, kl, ku, ld, diagonal, values, lower, place, rows, way, boosting, stats })
    }

    /// Factors another matrix of the same size and bandwidths in the same memory, with the same boosting. After an
    /// error the factors are void: solves return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As the constructor, and [`FactorError::Input`] on another size or bandwidth.
    pub fn refactor(&mut self, a: &Band<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`BandLuNoPivot::refactor`], observed as in [`BandLuNoPivot::with_options`].
    ///
    /// # Errors
    /// As [`BandLuNoPivot::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Band<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.n())?;
        check_size("sub-diagonals", self.kl, a.kl())?;
        check_size("super-diagonals", self.ku, a.ku())?;
        if self.way.measures_source() || self.measures_ahead() {
            return self.factor(Source::Band(a.values()), monitor);
        }
        for j in 0..self.n {
            let rows = a.column_range(j);
            let from = j * a.ldab() + self.kl + self.ku + rows.start - j;
            let to = self.at(rows.start, j);
            self.values[to..to + rows.len()].copy_from_slice(&a.values()[from..from + rows.len()]);
        }
        self.factor(Source::Here, monitor)
    }

    /// Whether columns are measured shortly before their steps; boosting begins with the norm of A.
    fn measures_ahead(&self) -> bool {
        self.way.reads_source() && self.boosting.is_none()
    }

    /// Factors `source`, or what is in the place of the factors.
    #[inline(never)]
    fn factor(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let outcome = self.eliminate_all(source, monitor);
        if outcome.is_err() {
            for j in 0..self.n {
                self.values[j * self.ld + self.diagonal] = T::nan_impl();
            }
            self.stats = self.stats.void();
        }
        outcome
    }

    /// Index of (i, j). Meaningless outside the band.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> usize {
        j * self.ld + self.diagonal + i - j
    }

    /// Some rows of column j of the factors: those up to the diagonal, and those below it.
    #[inline(always)]
    fn split(&mut self, j: usize, rows: Range<usize>) -> [&mut [T]; 2] {
        let at = self.at(rows.start, j);
        let above = match self.place {
            Place::BehindU => rows.end,
            Place::Apart => rows.end.min(j + 1),
        };
        let below = j * self.kl..j * self.kl + rows.end - above;
        [&mut self.values[at..at + above - rows.start], self.lower.get_mut(below).unwrap_or_default()]
    }

    /// The multipliers of step j.
    #[inline(always)]
    fn multipliers(&self) -> Multipliers<'_, T> {
        match self.place {
            Place::BehindU => Multipliers::behind(self.ld, self.diagonal, &self.values),
            Place::Apart => Multipliers { ld: self.kl, first: 0, values: &self.lower },
        }
    }

    /// The rows of column j that are in the band.
    #[inline(always)]
    fn rows_of(&self, j: usize) -> Range<usize> {
        j.saturating_sub(self.ku)..(j + self.kl + 1).min(self.n)
    }

    /// Columns of A, or what is in the place of the factors.
    #[inline(always)]
    fn columns<'a>(&'a self, source: Option<Columns<'a, T>>) -> Columns<'a, T> {
        source.unwrap_or(Columns { values: &self.values, ld: self.ld, diagonal: self.diagonal, first: 0 })
    }

    /// Column j there: its first row and its values.
    #[inline(always)]
    fn column<'a>(&'a self, source: Option<Columns<'a, T>>, j: usize) -> (usize, &'a [T]) {
        let (rows, columns) = (self.rows_of(j), self.columns(source));
        let at = columns.diagonal(j) + rows.start - j;
        (rows.start, &columns.values[at..at + rows.len()])
    }

    /// All columns of A, if these are stored elsewhere.
    fn stored<'a>(&self, source: Source<'a, T>) -> Option<Columns<'a, T>> {
        let (ld, diagonal) = (2 * self.kl + self.ku + 1, self.kl + self.ku);
        match source {
            Source::Band(values) => Some(Columns { values, ld, diagonal, first: 0 }),
            Source::Here | Source::Rows(_) => None,
        }
    }

    /// The columns first..last of `a`, and those that steps in them reach.
    fn write<'a>(&self, a: &Csr<T>, first: usize, last: usize, own: &'a mut Vec<T>) -> Result<Columns<'a, T>> {
        let (kl, ku) = (self.kl, self.ku);
        // Rows are taken from whole vectors on, which may begin in the column before.
        let columns = first.saturating_sub(1)..self.n.min(last + kl + ku + AHEAD);
        let first = columns.start;
        source::write(a, (kl, ku), 0, columns, own)?;
        Ok(Columns { values: own, ld: kl + ku + 1, diagonal: ku, first })
    }

    /// ‖A‖₁, max|A| and the maxima of the rows, if all are finite.
    fn measure(&mut self, source: Source<'_, T>, found: &mut Found<T>) -> Result<()> {
        let (first, last, columns) = (0, self.n, self.stored(source));
        Strip { lu: &mut *self, source: columns, found: &mut *found, threshold: None, first, last }.measure();
        if !Scalar::is_finite(found.max_a().to_f64()) {
            return Err(self.non_finite(source, 0).unwrap_or_else(overflow));
        }
        found.measured = self.n;
        Ok(())
    }

    /// The first entry from column `first` on that is not finite.
    fn non_finite(&self, source: Source<'_, T>, first: usize) -> Option<FactorError> {
        let (col, row, value) = if let Source::Rows(a) = source {
            let entries =
                (0..self.n).flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (j as usize, i, v)));
            entries.filter(|&(j, _, v)| j >= first && !Scalar::is_finite(v)).min_by_key(|&(j, i, _)| (j, i))?
        } else {
            (first..self.n).find_map(|col| {
                let (top, values) = self.column(self.stored(source), col);
                (top..).zip(values).find(|(_, v)| !Scalar::is_finite(**v)).map(|(row, &v)| (col, row, v))
            })?
        };
        Some(bt_formats::Error::NonFinite { what: "matrix", row, col, value: value.to_string() }.into())
    }

    fn eliminate_all(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (n, kl, ku) = (self.n, self.kl, self.ku);
        let mut source = source;
        if let Source::Rows(a) = source
            && !self.measures_ahead()
        {
            self.values.fill(zero());
            Band::write_columns(a, (kl, ku), self.diagonal - ku, 0..n, &mut self.values)?;
            source = Source::Here;
        }
        let mut found = Found::default();
        if !(self.way.measures_source() && self.measures_ahead()) {
            self.rows.fill(zero());
        }
        if !self.measures_ahead() {
            self.measure(source, &mut found)?;
        }
        let threshold = self.boosting.map(|b| {
            let norm = found.norm.to_f64();
            (T::Real::from_f64(b.zero * norm), T::Real::from_f64(b.eps * norm))
        });
        let mut strip = (WORK_BETWEEN_REPORTS / (kl * ku + 8)).max(1).next_multiple_of(panels::PANEL);
        if let Source::Rows(_) = source {
            strip = strip.max(source.columns_at_once(kl + ku, panels::PANEL));
        }
        let (mut own, mut first) = (Vec::new(), 0);
        while first < n {
            if monitor.observe(Progress::Step { phase: "setup", done: first, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            let last = (first + strip).min(n);
            let columns = match source {
                Source::Rows(a) => Some(self.write(a, first, last, &mut own)?),
                stored => self.stored(stored),
            };
            Strip { lu: &mut *self, source: columns, found: &mut found, threshold, first, last }.run();
            if let Some(stop) = found.stopped {
                return Err(self.non_finite(source, found.measured).unwrap_or_else(|| stop.into()));
            }
            first = last;
        }
        if !Scalar::is_finite(found.max_u.to_f64()) {
            return Err(overflow());
        }
        // Before the last columns a step has kl rows below and ku columns to the right.
        let whole = n.saturating_sub(kl.max(ku));
        let widths = |j: usize| (kl.min(n - 1 - j), ku.min(n - 1 - j));
        self.stats = FactorStats {
            norm_one: found.norm.to_f64(),
            growth: if n == 0 { 1.0 } else { found.max_u.to_f64() / found.max_a().to_f64() },
            min_pivot: if n == 0 { 0.0 } else { found.min_pivot.to_f64() },
            boosted_pivots: found.boosted,
            nnz: whole * (1 + kl + ku) + (whole..n).map(|j| 1 + widths(j).0 + widths(j).1).sum::<usize>(),
            bytes: size_of_val(&*self.values) + size_of_val(&*self.lower) + size_of_val(&*self.rows) + self.way.bytes(),
            flops: (whole * kl * (2 * ku + 1)) as f64
                + (whole..n).map(|j| (widths(j).0 * (2 * widths(j).1 + 1)) as f64).sum::<f64>(),
        };
        Ok(())
    }

    pub(crate) fn triangles(&self) -> Triangles<'_, T> {
        Triangles {
            cols: self.n,
            rows: self.n,
            ncols: self.n,
            below: self.kl,
            above: self.ku,
            ld: self.ld,
            diagonal: self.diagonal,
            values: &self.values,
            lower: self.multipliers(),
            pivots: &[],
            tops: &[],
            diagonal_of: Factor::Upper,
        }
    }
}

fn overflow() -> FactorError {
    FactorError::overflow(METHOD, None)
}

/// Where elimination ended early, and why.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// A pivot that is zero.
    ZeroPivot(usize),
    /// A pivot that is NaN or infinite.
    Overflow,
    /// A row in which terms of this size, relative to the row of A, were cancelled.
    Growth(usize, f64),
}

impl Stop {
    /// At a pivot of row j that is zero or not finite.
    fn pivot<T: Scalar>(j: usize, pivot: T) -> Self {
        if pivot == zero() { Self::ZeroPivot(j) } else { Self::Overflow }
    }
}

impl From<Stop> for FactorError {
    fn from(stop: Stop) -> Self {
        let (row, reason) = match stop {
            Stop::ZeroPivot(row) => (
                row,
                format!("the pivot of row {row} (from 0) is zero; band-lu exchanges rows, boosting replaces pivots"),
            ),
            Stop::Growth(row, by) => {
                (row, format!("row {row} (from 0) grows by {by:.1e} and loses half its digits; band-lu exchanges rows"))
            }
            Stop::Overflow => return overflow(),
        };
        Self::breakdown(METHOD, error::Place::Row(row), reason)
    }
}

/// ‖A‖₁ and max|A|, and the maxima of the rows, as work for a SIMD instruction set.
struct Measure<'a, T: Scalar> {
    lu: &'a mut BandLuNoPivot<T>,
    found: &'a mut Found<T>,
}

impl<T: Scalar> pulp::WithSimd for Measure<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { lu, found } = self;
        let (mut norm, mut lanes) = (zero::<T::Real>(), [zero::<T::Real>(); LANES]);
        for first in (0..lu.n).step_by(LANES) {
            let columns = first..(first + LANES).min(lu.n);
            for j in columns.clone() {
                let rows = lu.rows_of(j);
                let start = lu.at(rows.start, j);
                norm = norm.max_nan(sum_and_max(&lu.values[start..start + rows.len()], &mut lanes));
            }
            // Row maxima in vectors that begin every eight rows, once for eight columns: from column to column they would begin
            // one row further, and each would wait for two stores.
            let top = first.saturating_sub(lu.ku.next_multiple_of(LANES));
            for r in (top..(columns.end + lu.kl).min(lu.n)).step_by(LANES) {
                for j in columns.clone() {
                    let rows = r.max(j.saturating_sub(lu.ku))..(r + LANES).min(j + lu.kl + 1).min(lu.n);
                    if rows.is_empty() {
                        continue;
                    }
                    let start = lu.at(rows.start, j);
                    let (maxima, values) = (&mut lu.rows[rows.clone()], &lu.values[start..start + rows.len()]);
                    if let (Ok(maxima), Ok(values)) =
                        (<&mut [T::Real; LANES]>::try_from(&mut *maxima), <&[T; LANES]>::try_from(values))
                    {
                        let mut larger = *maxima;
                        for k in 0..LANES {
                            larger[k] = larger[k].max_nan(values[k].abs1());
                        }
                        *maxima = larger;
                    } else {
                        maxima.iter_mut().zip(values).for_each(|(row, v)| *row = row.max_nan(v.abs1()));
                    }
                }
            }
        }
        (found.norm, found.max_a) = (norm, lanes);
    }
}

/// Running results.
struct Found<T: Scalar> {
    /// Columns measured: ‖·‖₁, and the largest |re| + |im| lane by lane.
    measured: usize,
    norm: T::Real,
    max_a: [T::Real; LANES],
    max_u: T::Real,
    min_pivot: T::Real,
    boosted: usize,
    stopped: Option<Stop>,
}

impl<T: Scalar> Default for Found<T> {
    fn default() -> Self {
        let (norm, max_a, max_u) = (zero(), [zero(); LANES], zero());
        Self { measured: 0, norm, max_a, max_u, min_pivot: T::Real::INFINITY, boosted: 0, stopped: None }
    }
}

impl<T: Scalar> Found<T> {
    fn max_a(&self) -> T::Real {
        reduce(self.max_a, RealScalar::max_nan)
    }
}

/// Columns of A, of `ld` numbers each, from column `first` on.
#[derive(Clone, Copy)]
struct Columns<'a, T> {
    values: &'a [T],
    ld: usize,
    diagonal: usize,
    first: usize,
}

impl<T> Columns<'_, T> {
    /// Where the diagonal entry of column j is. Meaningless for columns that there are not.
    #[inline(always)]
    fn diagonal(&self, j: usize) -> usize {
        j.wrapping_sub(self.first).wrapping_mul(self.ld).wrapping_add(self.diagonal)
    }
}

/// The columns first..last.
struct Strip<'a, T: Scalar> {
    lu: &'a mut BandLuNoPivot<T>,
    /// A, unless it is in the place of its factors.
    source: Option<Columns<'a, T>>,
    found: &'a mut Found<T>,
    /// 0_ε·‖A‖₁ and ε·‖A‖₁.
    threshold: Option<(T::Real, T::Real)>,
    first: usize,
    last: usize,
}

/// The elimination of a strip, as work for a SIMD instruction set.
struct Elimination<'a, 'b, T: Scalar> {
    strip: &'a mut Strip<'b, T>,
    way: &'a mut Way<T>,
}

impl<T: Scalar> pulp::WithSimd for Elimination<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) {
        let Self { strip, way } = self;
        strip.found.stopped = if S::IS_SCALAR || cfg!(target_family = "wasm") {
            strip.eliminate_all::<false, S>(s, way)
        } else {
            strip.eliminate_all::<true, S>(s, way)
        };
    }
}

/// The same in a window.
struct InWindow<'a, 'b, T: Scalar> {
    strip: &'a mut Strip<'b, T>,
    window: &'a mut window::Workspace<T>,
}

impl<T: Scalar> pulp::WithSimd for InWindow<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) {
        let Self { strip, window } = self;
        strip.found.stopped = if S::IS_SCALAR || cfg!(target_family = "wasm") {
            strip.eliminate_in_window::<false, S>(s, window)
        } else {
            strip.eliminate_in_window::<true, S>(s, window)
        };
    }
}

impl<T: Scalar> Strip<'_, T> {
    fn run(mut self) {
        // Put back below: a strip has the whole of the factors.
        let mut way = std::mem::replace(&mut self.lu.way, Way::Columns);
        match &mut way {
            #[cfg(target_arch = "x86_64")]
            Way::Registers => self.found.stopped = registers::eliminate(&mut self),
            #[cfg(target_arch = "x86_64")]
            Way::Groups(workspace) => self.found.stopped = groups::eliminate(&mut self, workspace),
            Way::Window(window) => {
                lines::dispatch::<T, _>(InWindow { strip: &mut self, window });
            }
            way => lines::dispatch::<T, _>(Elimination { strip: &mut self, way }),
        }
        self.lu.way = way;
    }

    /// Only what is in registers has its source elsewhere.
    fn measure(mut self) {
        #[cfg(target_arch = "x86_64")]
        if let Way::Registers = self.lu.way {
            registers::measure(&mut self);
            return;
        }
        lines::dispatch::<T, _>(Measure { lu: self.lu, found: self.found });
    }

    #[inline(always)]
    fn eliminate_all<const FUSED: bool, S: pulp::Simd>(&mut self, s: S, way: &mut Way<T>) -> Option<Stop> {
        if let Way::Panels(panel) = way {
            return self.eliminate_panels::<FUSED, S>(s, panel);
        }
        for j in self.first..self.last {
            let mut largest = zero();
            let stopped = self.eliminate::<FUSED>(j, self.lu.n, &mut largest).or_else(|| self.check(j, largest));
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    /// Eliminates column j in place, in the columns before `end`; `largest` ← the largest |u| of its row there.
    #[inline(always)]
    fn eliminate<const FUSED: bool>(&mut self, j: usize, end: usize, largest: &mut T::Real) -> Option<Stop> {
        let lu = &mut *self.lu;
        let (below, right, stride) = (lu.kl.min(lu.n - 1 - j), lu.ku.min(end - 1 - j), lu.ld - 1);
        let diagonal = lu.at(j, j);
        let ahead = &mut lu.values[diagonal..];
        let (column, ahead) = ahead.split_at_mut(below + 1);
        let pivot = match self.threshold {
            Some(threshold) => boost(column[0], threshold, &mut self.found.boosted),
            None => column[0],
        };
        column[0] = pivot;
        if pivot == zero() || !Scalar::is_finite(pivot) {
            return Some(Stop::pivot(j, pivot));
        }
        divide(&mut column[1..], pivot);
        let l = &column[1..];
        for i in 1..=right {
            // Row j of column j + i, then the rows below it.
            let y = &mut ahead[i * stride - below - 1..i * stride];
            let u = y[0];
            *largest = largest.max_nan(u.abs1());
            axpy_minus::<T, FUSED>(u, l, &mut y[1..]);
        }
        *largest = largest.max_nan(pivot.abs1());
        self.found.min_pivot = self.found.min_pivot.min_nan(pivot.abs());
        None
    }

    /// Notes the largest element of row j of U, and whether rows below lose half their digits.
    #[inline(always)]
    fn check(&mut self, j: usize, largest: T::Real) -> Option<Stop> {
        self.found.max_u = self.found.max_u.max_nan(largest);
        if !Scalar::is_finite(largest.to_f64()) {
            return Some(Stop::Overflow);
        }
        if self.threshold.is_none() {
            // |lᵢₖ|·max|uₖ| against row i of A.
            let lu = &*self.lu;
            let (lower, limit) = (lu.multipliers(), T::Real::EPSILON.sqrt());
            let shrunk = largest * limit;
            let (start, below) = (lower.at(j), lu.kl.min(lu.n - 1 - j));
            let column = || lower.values[start..start + below].iter().zip(&lu.rows[j + 1..=j + below]);
            // All rows at once first: without a branch for each.
            if column().fold(true, |fine, (l, &row)| fine & (l.abs1() * shrunk <= row)) {
                return None;
            }
            for (i, (l, &row)) in (j + 1..).zip(column()) {
                let grown = l.abs1() * shrunk;
                if !(grown <= row) {
                    return Some(Stop::Growth(i, (grown / row / limit).to_f64()));
                }
            }
        }
        None
    }
}

/// y + l·u
#[inline(always)]
fn plus_product<T: Scalar, const FUSED: bool>(mut y: [T; LANES], l: &[T; LANES], u: T) -> [T; LANES] {
    for i in 0..LANES {
        y[i] = mul_add::<T, FUSED>(u, l[i], y[i]);
    }
    y
}

/// The pivot itself, or moved away from zero.
#[inline(always)]
fn boost<T: Scalar>(pivot: T, (tiny, step): (T::Real, T::Real), count: &mut usize) -> T {
    let modulus = pivot.abs();
    if modulus > tiny {
        return pivot;
    }
    *count += 1;
    // p ← p ± ε‖A‖₁, in p's own direction.
    if modulus == zero() {
        T::from_real(step)
    } else {
        pivot + Pivot::new(T::from_real(modulus)).divide(pivot) * T::from_real(step)
    }
}

impl<T: Scalar> Factorization<T> for BandLuNoPivot<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        substitution::solve(self.triangles(), op, x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        // Boosting begins with the norm of A, which factors apart do not have the place for.
        if let Given::Csr(a) = a
            && (self.measures_ahead() || self.place == Place::BehindU)
        {
            a.check_square()?;
            check_size("size of the matrix", self.n, a.nrows())?;
            return self.factor(Source::Rows(a), monitor);
        }
        self.refactor_with_monitor(&*a.band(self.kl, self.ku)?, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.n {
            det.multiply(self.values[j * self.ld + self.diagonal]);
        }
        det
    }
}

#[cfg(test)]
mod tests;
