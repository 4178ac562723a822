//! LU of a band matrix with partial pivoting, from both ends at once where the matrix is long enough for two threads.
//!
//! P·A = L·U is kept as LAPACK's `gbtrf` has it, the product of the exchanges and Gauss transformations in the order
//! they were made, so that L stays inside kl sub-diagonals; U has up to kl + ku super-diagonals. Departures: the rows
//! of a narrow band are eliminated in a window of their own and written out once; and a long matrix is eliminated in
//! the column order 0, 1, … m − 1 and n − 1, n − 2, … n − m', the few columns between last. Every candidate row of a
//! column of one half lies in that half, so this is partial pivoting in another order of the columns: as stable, and a
//! singular matrix is still found. The order depends on the sizes only, so that the bits do not depend on the number of
//! threads; more than two of them need another method, SPIKE.
//!
//! Storage: n(2kl + ku + 1) values, in place of the matrix for [`BandLu::from_band`], which eliminates from one end;
//! from two ends nothing is in place, the halves take n/2 columns of (2kl + ku + 1) and (2ku + kl + 1) values, and
//! workspace comes on top: of a narrow end kl(kl + ku + 32) values rounded up to registers, of a wide one a panel of at
//! most 32 columns of kl + 32 values, and between two ends a full matrix of kl + ku rows and a few more, 3(kl + ku)².
//! Cost: at most 2n·kl(kl + ku + 1) flops (from the far end kl and ku change places); a column of U is only as tall as
//! the exchanges made it, and a matrix that needs none costs 2n·kl(ku + 1). Backward stable up to the growth factor: N.
//! J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §9.5 (growth ≤ 2^(2k−1) for half-bandwidth k),
//! doi:10.1137/1.9780898718027.
//!
//! | file | case |
//! |---|---|
//! | `end.rs`, `eliminate.rs` | elimination from one end: what all of the following share; which of them some columns take |
//! | `source.rs` | what they take A from |
//! | `narrow.rs`, `vectors.rs` | kl ≤ 32: column by column, as loops and in explicit vectors |
//! | `two_steps.rs` | the same two columns at a time, doubles in eight lanes |
//! | `registers.rs` | kl ≤ 8 and kl + ku ≤ 16, doubles in eight lanes: the window in registers |
//! | `panels.rs`, `kernels.rs` | kl > 32: by panels, and their loops |
//! | `panel_registers.rs` | panels of doubles on AVX-512 |
//! | `partial.rs` | factors of a part of a matrix, for methods on partitions |
//! | `triangles.rs`, `substitution.rs` | the factors, and solves with some right-hand sides |
//! | `single.rs` | solves with one or two, narrow factors of doubles in eight lanes |
//! | `packed.rs`, `window.rs` | solves with many, side by side |

mod eliminate;
pub(crate) mod end;
pub(crate) mod kernels;
pub(crate) mod narrow;
mod packed;
#[cfg(target_arch = "x86_64")]
mod panel_registers;
pub(crate) mod panels;
pub(crate) mod partial;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod single;
pub(crate) mod source;
pub(crate) mod substitution;
pub(crate) mod triangles;
#[cfg(target_arch = "x86_64")]
pub(crate) mod two_steps;
mod vectors;
pub(crate) mod window;

use bt_formats::{Band, Csr, LinearOperator, Monitor, Op, Progress, RealScalar, Scalar};
use faer::MatMut;

use crate::columns::check_size;
use crate::error::{self, FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::reserve;
use crate::refine::{growth_limit, unit_roundoff};
use end::{Direction, End, EndSizes, Place};
use source::Source;
use substitution::reverse;
use triangles::{Factor, Multipliers, Step, Triangles};

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
pub struct BandLu<T: Scalar> {
    n: usize,
    kl: usize,
    ku: usize,
    /// One end, or the two ends and the middle, a full matrix.
    parts: Vec<End<T>>,
    stats: FactorStats,
}

const METHOD: &str = "band-lu";

/// Sizes that trade speed only; tests change them so that small matrices reach every path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tuning {
    /// Column by column, the lanes of a column in this many registers; columns between two looks at the input.
    Narrow {
        /// 1, 2 or 4.
        registers: usize,
        /// At least 1.
        strip: usize,
    },
    /// By panels of columns, in the factors' storage.
    Wide {
        /// At least 1; no more than kl + ku + 1 are taken.
        panel: usize,
    },
}

impl Tuning {
    /// Measured in double precision on AVX-512, the width of panels on AVX2.
    fn of(kl: usize) -> Self {
        match kl {
            0..=8 => Self::Narrow { registers: 1, strip: 32 },
            9..=16 => Self::Narrow { registers: 2, strip: 32 },
            17..=32 => Self::Narrow { registers: 4, strip: 32 },
            _ => Self::Wide { panel: 16 },
        }
    }

    /// Where the multipliers go when A is read elsewhere: wide bands are eliminated where their factors stay.
    fn place(self) -> Place {
        match self {
            Self::Narrow { .. } => Place::Apart,
            Self::Wide { .. } => Place::BehindU,
        }
    }

    /// Columns eliminated at a time.
    fn strip(self) -> usize {
        match self {
            Self::Narrow { strip, .. } => strip,
            Self::Wide { panel } => panel,
        }
    }
}

/// Columns of the two ends, and none when one end does it all.
fn halves(n: usize, kl: usize, ku: usize) -> Option<[usize; 2]> {
    // Short matrices: the middle would weigh too much, or waking a thread.
    let flops = 2.0 * n as f64 * kl as f64 * (kl + ku + 1) as f64;
    (kl > 0 && ku > 0 && n / 64 >= kl + ku && flops >= 4e6)
        .then(|| halves_of(n, kl, ku, [Tuning::of(kl), Tuning::of(ku)]))
}

/// Halves in whole strips.
fn halves_of(n: usize, kl: usize, ku: usize, tunings: [Tuning; 2]) -> [usize; 2] {
    let half = (n - kl - ku) / 2;
    tunings.map(|t| half / t.strip() * t.strip())
}

impl<T: Scalar> BandLu<T> {
    /// Factors a copy of `a`.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with a column all of whose candidates are exactly zero, the first one in the order of
    /// elimination; [`FactorError::Input`] on a NaN or infinity, or when memory is short; [`FactorError::Breakdown`] when
    /// elimination overflows, or leaves no pivot where elements have grown beyond 1/√u.
    ///
    /// # Cost
    /// 2n·kl(kl + ku + 1) flops at most, n(2kl + ku + 1) values. Two threads.
    pub fn new(a: &Band<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// As [`BandLu::new`], reporting `Progress::Step { phase: "setup", .. }` in columns.
    ///
    /// # Errors
    /// As [`BandLu::new`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn with_monitor(a: &Band<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let mut lu = Self::allocate(a.n(), a.kl(), a.ku())?;
        lu.factor(Source::Band(a.values()), monitor)?;
        Ok(lu)
    }

    /// Factors the band that has the nonzeros of `a`, without a copy of it: some columns at a time are written where they stay in a cache.
    ///
    /// ```
    /// use bt_direct::{BandLu, Factorization};
    /// use bt_formats::Csr;
    /// let a = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0])?;
    /// let mut x = [5.0, 6.0];
    /// BandLu::from_csr(&a, &mut ())?.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [1.0; 2]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`BandLu::with_monitor`]; [`FactorError::Input`] when `a` is not square.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        a.check_square()?;
        let (kl, ku) = a.survey().bandwidth;
        let mut lu = Self::allocate(a.nrows(), kl, ku)?;
        lu.factor(Source::Rows(a), monitor)?;
        Ok(lu)
    }

    fn allocate(n: usize, kl: usize, ku: usize) -> Result<Self> {
        match halves(n, kl, ku) {
            Some(cols) => Self::two_ended(n, kl, ku, cols, [Tuning::of(kl), Tuning::of(ku)]),
            None => Self::one_ended(n, kl, ku, Tuning::of(kl), Tuning::of(kl).place(), None),
        }
    }

    /// Factors `a` in its own storage, without a copy where no clone shares it, from one end and on one thread.
    ///
    /// # Errors
    /// As [`BandLu::new`].
    pub fn from_band(a: Band<T>) -> Result<Self> {
        let (n, kl, ku) = (a.n(), a.kl(), a.ku());
        let mut lu = Self::one_ended(n, kl, ku, Tuning::of(kl), Place::BehindU, Some(a.into_values()))?;
        lu.factor(Source::Here, &mut ())?;
        Ok(lu)
    }

    #[inline(never)]
    fn one_ended(n: usize, kl: usize, ku: usize, tuning: Tuning, place: Place, values: Option<Vec<T>>) -> Result<Self> {
        let shape = EndSizes {
            n,
            kl,
            ku,
            cols: n,
            rows: n,
            ncols: n,
            looks_at: n,
            direction: Direction::Forward,
            place,
            source_first: 0,
        };
        let mut parts = Vec::new();
        reserve(&mut parts, 1)?;
        parts.push(End::tuned(shape, tuning, values)?);
        Ok(Self { n, kl, ku, parts, stats: FactorStats::default() })
    }

    fn two_ended(n: usize, kl: usize, ku: usize, cols: [usize; 2], tunings: [Tuning; 2]) -> Result<Self> {
        let (kv, k) = (kl + ku, n - cols[0] - cols[1]);
        let shape = |kl, ku, cols, looks_at, direction, tuning: Tuning| {
            let (rows, ncols) = (cols + kl, cols + kv);
            EndSizes { n, kl, ku, cols, rows, ncols, looks_at, direction, place: tuning.place(), source_first: 0 }
        };
        let full = EndSizes {
            n: k,
            kl: k - 1,
            ku: k - 1,
            cols: k,
            rows: k,
            ncols: k,
            looks_at: k,
            direction: Direction::Forward,
            place: Place::BehindU,
            source_first: 0,
        };
        let [top, bottom] = tunings;
        let mut parts = Vec::new();
        reserve(&mut parts, 3)?;
        parts.push(End::tuned(shape(kl, ku, cols[0], cols[0] + k, Direction::Forward, top), top, None)?);
        parts.push(End::tuned(shape(ku, kl, cols[1], cols[1], Direction::Backward, bottom), bottom, None)?);
        parts.push(End::new(full, None)?);
        Ok(Self { n, kl, ku, parts, stats: FactorStats::default() })
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
        check_size("size of the matrix", self.n, a.n())?;
        check_size("sub-diagonals", self.kl, a.kl())?;
        check_size("super-diagonals", self.ku, a.ku())?;
        self.factor(Source::Band(a.values()), monitor)
    }

    /// The factors in LAPACK's layout, where they were made from one end in the place of the matrix ([`BandLu::from_band`]): n columns of
    /// 2kl + ku + 1 values, U with its diagonal in row kl + ku and the multipliers below; and the row exchanged with row j at step j, from 0.
    ///
    /// ```
    /// use bt_direct::BandLu;
    /// use bt_formats::Band;
    /// let mut a = Band::zeros(2, 1, 1)?;
    /// (*a.get_mut(1, 0), *a.get_mut(0, 1)) = (4.0, 2.0);
    /// let lu = BandLu::from_band(a)?;
    /// let (values, pivots) = lu.in_lapack_layout().unwrap();
    /// assert_eq!((values[2], values[4 + 2], pivots), (4.0, 2.0, &[1, 1][..]));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    pub fn in_lapack_layout(&self) -> Option<(&[T], &[u32])> {
        match &self.parts[..] {
            [one] if one.shape.place == Place::BehindU => Some((&one.values, &one.pivots)),
            _ => None,
        }
    }

    #[inline(never)]
    fn factor(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let outcome = self.eliminate(source, monitor);
        self.parts.iter_mut().for_each(|end| end.own_columns = Vec::new());
        if outcome.is_err() {
            self.parts.iter_mut().for_each(End::void);
            self.stats = self.stats.void();
        }
        outcome
    }

    fn eliminate(&mut self, source: Source<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let n = self.n;
        // Looking up costs nothing from one end; from two it means that they wait for each other.
        let rounds = if self.parts.len() == 1 { 2e5 } else { 2e7 };
        let per_column = 2.0 * (self.kl.max(self.ku) * (self.kl + self.ku + 1)) as f64 + 64.0;
        let columns = (rounds / per_column) as usize;
        let (middle, ends) = if self.parts.len() == 1 {
            (None, &mut self.parts[..])
        } else {
            let (ends, middle) = self.parts.split_at_mut(2);
            (Some(&mut middle[0]), ends)
        };
        let columns_of = |e: &End<T>| (columns / e.tuning.strip()).max(1) * e.tuning.strip();
        let total: usize = ends.iter().map(|e| e.shape.cols).max().unwrap_or(0);
        let round = ends.iter().map(columns_of).max().unwrap_or(1);
        let mut first = 0;
        for e in ends.iter_mut() {
            e.with_columns(source, 0..0, |e, a| {
                e.start(a);
                Ok(())
            })?;
        }
        while first < total {
            let done = ends.iter().map(|e| first.min(e.shape.cols)).sum();
            if monitor.observe(Progress::Step { phase: "setup", done, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            match ends {
                [one] => run(one, source, first, first + round)?,
                [one, other] => {
                    let (one, other) = bt_formats::join(
                        || run(one, source, first, first + round),
                        || run(other, source, first, first + round),
                    );
                    one.and(other)?;
                }
                _ => unreachable!("one end or two"),
            }
            first += round;
        }
        for e in ends.iter_mut() {
            let columns = e.found.measured.min(n)..e.shape.looks_at.max(e.shape.ncols);
            if !columns.is_empty() {
                e.with_columns(source, columns, |e, a| e.measure(a, n))?;
            }
            e.finish_columns(e.shape.cols, e.shape.ncols);
        }
        let column_of = |e: &End<T>| {
            let column = e.found.singular?;
            Some(if e.shape.direction == Direction::Forward { column } else { n - 1 - column })
        };
        // All of the input is looked at, even behind a column without a pivot.
        if let Some(column) = ends.iter().find_map(column_of) {
            return Err(self.no_pivot(column));
        }
        if let Some(middle) = middle {
            assemble(ends, middle, source)?;
            middle.start(None);
            let size = middle.shape.n;
            run(middle, Source::Here, 0, size).map_err(|_| FactorError::overflow(METHOD, None))?;
            if let Some(column) = middle.found.singular {
                return Err(self.no_pivot(self.parts[0].shape.cols + column));
            }
        }
        self.conclude()
    }

    /// max |U| and max |A|. The middle is no part of the input.
    fn largest(&self) -> (f64, f64) {
        let found = || self.parts.iter().map(|p| &p.found);
        let max_u = found().map(|f| f.max_u().to_f64()).fold(0.0, RealScalar::max_nan);
        (max_u, found().take(2).map(|f| f.max_a().to_f64()).fold(0.0, f64::max))
    }

    fn no_pivot(&self, column: usize) -> FactorError {
        let (max_u, max_a) = self.largest();
        FactorError::no_pivot(METHOD, column, None, max_u / max_a, growth_limit(unit_roundoff::<T>()))
    }

    /// The first column of U that is not finite, by its number in A.
    fn overflowed(&self) -> Option<usize> {
        self.parts.iter().enumerate().find_map(|(part, end)| {
            let u = end.triangles();
            let is_infinite = |v: &T| !v.abs1().to_f64().is_finite();
            let overflows = |&j: &usize| u.u(j).1.iter().any(is_infinite) || (j < u.cols && is_infinite(&u.pivot(j)));
            let column = (0..u.ncols).find(overflows)?;
            Some(match part {
                0 => column,
                1 => self.n - 1 - column,
                _ => self.parts[0].shape.cols + column,
            })
        })
    }

    fn conclude(&mut self) -> Result<()> {
        let (found, (max_u, max_a)) = (|| self.parts.iter().map(|p| &p.found), self.largest());
        if !Scalar::is_finite(max_u) {
            return Err(FactorError::overflow(METHOD, self.overflowed().map(error::Place::Column)));
        }
        let input = || found().take(2);
        self.stats = FactorStats {
            norm_one: input().map(|f| f.norm_one.to_f64()).fold(0.0, f64::max),
            growth: if self.n == 0 { 1.0 } else { max_u / max_a },
            min_pivot: if self.n == 0 {
                0.0
            } else {
                found().map(|f| f.min_pivot.to_f64()).fold(f64::INFINITY, f64::min)
            },
            boosted_pivots: 0,
            nnz: self.parts.iter().map(End::nnz).sum(),
            bytes: self.parts.iter().map(End::bytes).sum(),
            flops: found().map(|f| f.flops).sum(),
        };
        Ok(())
    }
}

/// Eliminates the columns first..last, as far as there are any.
fn run<T: Scalar>(end: &mut End<T>, source: Source<'_, T>, first: usize, last: usize) -> Result<()> {
    let (strip, last) = (end.tuning.strip(), last.min(end.shape.cols));
    let some = source.columns_at_once(end.shape.kv(), strip);
    let mut first = first;
    while first < last {
        let until = last.min(first.saturating_add(some));
        end.with_columns(source, first..until, |end, a| {
            while first < until {
                first = end.advance_in_registers(a, first, until);
                if first < until {
                    end.advance(a, first, (first + strip).min(until))?;
                    first += strip;
                }
            }
            Ok(())
        })?;
        first = until;
    }
    Ok(())
}

/// The rows that the ends leave over, and those between them.
fn assemble<T: Scalar>(ends: &mut [End<T>], middle: &mut End<T>, source: Source<'_, T>) -> Result<()> {
    let [top, bottom] = ends else { unreachable!("two ends") };
    let k = middle.shape.n;
    let (first, kl, ku) = (top.shape.cols, top.shape.kl, top.shape.ku);
    middle.values.fill(bt_formats::zero());
    let shape = middle.shape;
    let mut put = |i: usize, j: usize, value: T| middle.values[shape.at(i, j)] = value;
    for j in 0..kl + ku {
        for i in 0..kl {
            put(i, j, top.left_over(i, j));
        }
        for i in 0..ku {
            put(k - 1 - i, k - 1 - j, bottom.left_over(i, j));
        }
    }
    top.with_columns(source, first..first + k, |top, a| {
        for i in kl..k - ku {
            for j in i.saturating_sub(kl)..(i + ku + 1).min(k) {
                put(i, j, top.entry(a, first + i, first + j));
            }
        }
        Ok(())
    })
}

impl<T: Scalar> End<T> {
    fn triangles(&self) -> Triangles<'_, T> {
        let shape = &self.shape;
        Triangles {
            cols: shape.cols,
            rows: shape.rows,
            ncols: shape.ncols,
            below: shape.kl,
            above: shape.kv(),
            ld: shape.ld(),
            diagonal: shape.kv(),
            values: &self.values,
            lower: match shape.place {
                Place::BehindU => Multipliers::behind(shape.ld(), shape.kv(), &self.values),
                Place::Apart => Multipliers { ld: shape.kl, first: 0, values: &self.lower },
            },
            pivots: &self.pivots,
            tops: &self.tops,
            diagonal_of: Factor::Upper,
        }
    }
}

/// x ← op(A)⁻¹·x from both ends: the middle is solved last, or first where the factors are transposed.
fn solve_two_ended<T: Scalar>(parts: &[End<T>], op: Op, mut x: MatMut<'_, T>) {
    let [top, bottom, middle] = [&parts[0], &parts[1], &parts[2]].map(End::triangles);
    let k = middle.cols;
    // Rows between the ends' belong to neither; they come with the far end, behind its own.
    let both = |step: Step, x: MatMut<'_, T>| {
        let (head, tail) = x.split_at_row_mut(top.rows);
        bt_formats::join(|| top.apply(step, head), || bottom.apply_from(Direction::Backward, step, tail));
    };
    if op == Op::Identity {
        both(Step::Lower, x.as_mut());
        substitution::solve(middle, op, x.as_mut().subrows_mut(top.cols, k));
        let (mut head, rest) = x.split_at_row_mut(top.cols);
        let (inner, mut tail) = rest.split_at_row_mut(k);
        let inner = inner.as_ref();
        bt_formats::join(
            || {
                let last = head.as_mut().subrows_mut(top.cols - top.reached(), top.reached());
                top.subtract_beyond(last, inner, |c| c);
                top.apply(Step::Upper, head);
            },
            || {
                let mut last = tail.as_mut().subrows_mut(0, bottom.reached());
                reverse(last.as_mut());
                bottom.subtract_beyond(last.as_mut(), inner, |c| k - 1 - c);
                reverse(last);
                bottom.apply_from(Direction::Backward, Step::Upper, tail);
            },
        );
    } else {
        let upper = Step::UpperTransposed(op);
        let (mut head, rest) = x.as_mut().split_at_row_mut(top.cols);
        let (mut inner, mut tail) = rest.split_at_row_mut(k);
        bt_formats::join(
            || top.apply(upper, head.as_mut()),
            || bottom.apply_from(Direction::Backward, upper, tail.as_mut()),
        );
        let last = head.as_ref().subrows(top.cols - top.reached(), top.reached());
        top.subtract_beyond_transposed(op, last, inner.as_mut(), |c| c);
        let mut last = tail.subrows_mut(0, bottom.reached());
        reverse(last.as_mut());
        bottom.subtract_beyond_transposed(op, last.as_ref(), inner.as_mut(), |c| k - 1 - c);
        reverse(last);
        substitution::solve(middle, op, inner);
        both(Step::LowerTransposed(op), x);
    }
}

impl<T: Scalar> Factorization<T> for BandLu<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        match &self.parts[..] {
            [one] => substitution::solve(one.triangles(), op, x),
            parts => solve_two_ended(parts, op, x),
        }
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        if let Given::Csr(a) = a {
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
        // A symmetric permutation, which the order of the columns is, leaves the determinant alone.
        let mut det = LogDet::one();
        for part in &self.parts {
            for j in 0..part.shape.cols {
                det.multiply(part.values[part.shape.at(j, j)]);
                if part.pivots[j] as usize != j {
                    det.negate();
                }
            }
        }
        det
    }
}

#[cfg(test)]
pub(crate) mod tests;
