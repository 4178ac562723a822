//! Elimination from one end of the matrix, up to its other end or to columns that are left over.
//!
//! Narrow bands: the kl rows that are not yet pivots live in a window: columns of lanes, aligned and padded to whole
//! registers, a row in the same lane until it becomes a pivot. The row that enters takes its lane, so that no row is
//! ever exchanged in the window; where LAPACK would have it is kept as a number, and L and U are written out in
//! LAPACK's positions, once. Wide bands are copied into the factors' storage and eliminated there.
//!
//! Seen from the far end rows and columns count backwards: J·A·J has the bandwidths of A swapped, and elimination from
//! there is partial pivoting in another order of the columns.

use std::ops::Range;

use bt_formats::{Numbers, RealScalar, Scalar, zero};

use super::kernels::{LANES, reduce, sum_and_max};
use super::{METHOD, Tuning};
use crate::block_lu::simd;
use crate::error::{self, FactorError, Result};
use crate::lines::{self, Lines};
use crate::memory::reserve;

/// Lanes of a column, aligned to a cache line: an aligned AVX-512 register for doubles.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Lanes<T>(pub(crate) [T; LANES]);

/// Running results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<T: Scalar> {
    pub(super) norm_one: T::Real,
    /// max|A| and max|U| lane by lane, in |re| + |im|.
    pub(super) max_a: [T::Real; LANES],
    pub(super) max_u: [T::Real; LANES],
    pub(super) min_pivot: T::Real,
    pub(super) flops: f64,
    /// First column without a pivot, as seen from this end.
    pub(super) singular: Option<usize>,
    /// Columns measured.
    pub(super) measured: usize,
    /// One past the last column that the rows eliminated so far reach.
    pub(super) reach: usize,
}

impl<T: Scalar> Default for Found<T> {
    fn default() -> Self {
        Self {
            norm_one: zero(),
            max_a: [zero(); LANES],
            max_u: [zero(); LANES],
            min_pivot: T::Real::INFINITY,
            flops: 0.0,
            singular: None,
            measured: 0,
            reach: 0,
        }
    }
}

impl<T: Scalar> Found<T> {
    pub(super) fn max_a(&self) -> T::Real {
        reduce(self.max_a, RealScalar::max_nan)
    }
    pub(super) fn max_u(&self) -> T::Real {
        reduce(self.max_u, RealScalar::max_nan)
    }
}

/// What one end has to do, as seen from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EndSizes {
    /// Size of the whole matrix.
    pub(super) n: usize,
    pub(super) kl: usize,
    pub(super) ku: usize,
    /// Columns to eliminate, rows that may be pivots, columns that these rows reach.
    pub(super) cols: usize,
    pub(super) rows: usize,
    pub(super) ncols: usize,
    /// Columns whose entries it looks at before they are used: all that lie between the ends belong to the first.
    pub(super) looks_at: usize,
    pub(super) direction: Direction,
    pub(super) place: Place,
    /// The column of A with which its source begins, counted from the first end.
    pub(super) source_first: usize,
}

/// Where the multipliers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// Behind U in its columns, as in LAPACK, where A may stand at first.
    BehindU,
    /// In an array of their own: a substitution reads one factor in order.
    Apart,
}

/// From which end the rows and columns count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl EndSizes {
    pub(super) fn kv(&self) -> usize {
        self.kl + self.ku
    }
    /// Values of a column of the factors: U with its fill, the diagonal, L unless that is apart.
    #[inline(always)]
    pub(super) fn ld(&self) -> usize {
        match self.place {
            Place::BehindU => self.kv() + 1 + self.kl,
            Place::Apart => self.kv() + 1,
        }
    }
    /// Index of (i, j) in the factors. Meaningless outside the band, though it never underflows for i ≥ j − kl − ku − 1.
    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> usize {
        j * (self.ld() - 1) + self.kv() + i
    }
    /// The multipliers of step j from the first on, in the factors or an array of their own.
    #[inline(always)]
    pub(super) fn multipliers<'a, T>(&self, j: usize, values: &'a mut [T], lower: &'a mut [T]) -> &'a mut [T] {
        match self.place {
            Place::BehindU => &mut values[self.at(j, j) + 1..],
            Place::Apart => &mut lower[j * self.kl..],
        }
    }
    /// Numbers of a column of A in LAPACK's layout: from this end forwards it has kl sub-diagonals, backwards ku.
    #[inline(always)]
    pub(super) fn source_ld(&self) -> usize {
        self.kv() + self.source_room() + 1
    }
    /// Where A's column j, as seen from this end, begins there; 0 when there is none.
    pub(super) fn source_column(&self, j: usize) -> usize {
        let j = match self.direction {
            Direction::Forward => j,
            Direction::Backward => self.n.saturating_sub(j + 1),
        };
        j.saturating_sub(self.source_first) * self.source_ld()
    }
    /// Where its entries are.
    #[inline(always)]
    pub(super) fn source_entries(&self, j: usize) -> Range<usize> {
        let [a, b] = [j.saturating_sub(self.ku), (j + self.kl).min(self.n - 1)].map(|i| self.source_at(i, j));
        a.min(b)..a.max(b) + 1
    }
    /// Numbers with which its columns begin there, the room for fill.
    pub(super) fn source_room(&self) -> usize {
        match self.direction {
            Direction::Forward => self.kl,
            Direction::Backward => self.ku,
        }
    }
    /// Index of A(i, j), as seen from this end, in the band A in LAPACK's layout.
    #[inline(always)]
    pub(super) fn source_at(&self, i: usize, j: usize) -> usize {
        let (i, j) = match self.direction {
            Direction::Forward => (i, j),
            Direction::Backward => (self.n - 1 - i, self.n - 1 - j),
        };
        // Differences of places are asked for where the source has none.
        (j * (self.source_ld() - 1) + self.kv() + i).wrapping_sub(self.source_first * self.source_ld())
    }
}

/// One end: its factors and its workspace.
#[derive(Clone, Debug)]
pub(super) struct End<T: Scalar> {
    pub(super) shape: EndSizes,
    pub(super) tuning: Tuning,
    /// Columns of U, the diagonal and L; of the columns left over, the rows of U.
    pub(super) values: Lines<T>,
    /// Columns of kl multipliers, where they are apart.
    pub(super) lower: Lines<T>,
    /// Row exchanged with row j at step j.
    pub(super) pivots: Vec<u32>,
    /// First row of each column of U that exchanges and fill reach.
    pub(super) tops: Vec<u32>,
    /// Narrow bands: columns of lanes, those of a strip and the kl + ku behind it.
    pub(super) window: Vec<Lanes<T>>,
    /// Narrow bands: lane of the row at a position, modulo its length, a power of two; and the position of the row in a lane.
    pub(super) lane_at: Vec<u32>,
    pub(super) position: Vec<u32>,
    /// Narrow bands: the pivot and its row, then zeros.
    pub(super) u: Vec<[T; LANES]>,
    /// The row that enters; of wide bands a panel, (kl + panel) × panel, column-major.
    pub(super) scratch: Lines<T>,
    /// Columns of A, where it is given by rows.
    pub(super) own_columns: Vec<T>,
    /// Wide bands: U of a panel in a group of columns, by rows, and the panel's exchanges.
    pub(super) group: Vec<[T; GROUP]>,
    pub(super) exchanges: Exchanges,
    pub(super) found: Found<T>,
}

impl<T: Scalar> End<T> {
    pub(super) fn new(shape: EndSizes, values: Option<Vec<T>>) -> Result<Self> {
        Self::tuned(shape, Tuning::of(shape.kl), values)
    }

    #[inline(never)]
    pub(super) fn tuned(shape: EndSizes, tuning: Tuning, values: Option<Vec<T>>) -> Result<Self> {
        let kv = shape.kv();
        let values = match values {
            Some(values) => values.into(),
            None => Lines::zeros(shape.ncols.saturating_mul(shape.ld()))?,
        };
        let lower = if shape.place == Place::Apart { shape.cols.saturating_mul(shape.kl) } else { 0 };
        // A panel's first row is in the band of its last column, or one above it.
        let tuning = match tuning {
            Tuning::Wide { panel } => Tuning::Wide { panel: panel.min(kv + 1) },
            narrow @ Tuning::Narrow { .. } => narrow,
        };
        // Columns are updated a few at a time: the window and u are padded.
        let (registers, columns, rows, u, scratch, group) = match tuning {
            Tuning::Narrow { registers, strip } => {
                let row = (kv + 1 + COLUMNS).div_ceil(LANES);
                (registers, strip + kv + 1 + COLUMNS, shape.kl + 2, row, kv + 1, 0)
            }
            Tuning::Wide { panel } => (0, 0, 1, 0, panel_stride(shape.kl, panel).saturating_mul(panel), panel),
        };
        let blank = Lanes([zero(); LANES]);
        Ok(Self {
            shape,
            tuning,
            values,
            lower: Lines::zeros(lower)?,
            pivots: filled(shape.cols, 0)?,
            tops: filled(shape.ncols, 0)?,
            window: filled(columns.saturating_mul(registers), blank)?,
            lane_at: filled(rows.next_power_of_two(), 0)?,
            position: filled(registers * LANES + 1, 0)?,
            u: filled(u, [zero(); LANES])?,
            scratch: Lines::zeros(scratch)?,
            own_columns: Vec::new(),
            group: filled(group, [zero(); GROUP])?,
            exchanges: Exchanges::new(group)?,
            found: Found::default(),
        })
    }

    /// Bytes of all arrays.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.values)
            + size_of_val(&*self.lower)
            + size_of_val(&*self.pivots)
            + size_of_val(&*self.tops)
            + size_of_val(&*self.window)
            + size_of_val(&*self.lane_at)
            + size_of_val(&*self.position)
            + size_of_val(&*self.u)
            + size_of_val(&*self.scratch)
            + size_of_val(&*self.group)
            + self.exchanges.bytes()
    }

    /// Stored values of the factors that may differ from zero.
    pub(super) fn nnz(&self) -> usize {
        let EndSizes { kl, rows, cols, ncols, .. } = self.shape;
        let above: usize = (0..ncols).map(|j| j.min(cols) - (self.tops[j] as usize).min(cols)).sum();
        above + (0..cols).map(|j| 1 + kl.min(rows - 1 - j)).sum::<usize>()
    }

    /// Before the first step.
    pub(super) fn start(&mut self, source: Option<&[T]>) {
        self.found = Found::default();
        if let Tuning::Narrow { registers, .. } = self.tuning {
            self.fill_window(source, registers * LANES);
        }
        // Columns left over that nothing reaches have no rows in U.
        let cols = self.shape.cols;
        self.tops[cols..].fill(cols as u32);
    }

    /// The first kl rows stand in the first kl lanes.
    fn fill_window(&mut self, source: Option<&[T]>, lanes: usize) {
        let EndSizes { kl, ku, rows, ncols, .. } = self.shape;
        self.window.fill(Lanes([zero(); LANES]));
        for r in 0..kl.min(rows) {
            for c in r.saturating_sub(kl)..(r + ku + 1).min(ncols) {
                let at = c * lanes + r;
                self.window[at / LANES].0[at % LANES] = self.entry(source, r, c);
            }
        }
        let mask = self.lane_at.len() - 1;
        for r in 0..kl {
            self.lane_at[r & mask] = r as u32;
            self.position[r] = r as u32;
        }
    }

    /// A(i, j) of the matrix, as seen from this end.
    #[inline(always)]
    pub(super) fn entry(&self, source: Option<&[T]>, i: usize, j: usize) -> T {
        match source {
            Some(source) => source[self.shape.source_at(i, j)],
            None => self.values[self.shape.at(i, j)],
        }
    }

    /// Measures its columns before `end`, of wide bands copies them too, and refuses NaN and infinities.
    pub(super) fn measure(&mut self, source: Option<&[T]>, end: usize) -> Result<()> {
        let end = end.min(self.shape.looks_at.max(self.shape.ncols));
        let first = self.found.measured;
        lines::dispatch::<T, _>(Measure { end: self, source, first, last: end });
        self.found.measured = end.max(first);
        if Scalar::is_finite(self.found.max_a().to_f64()) {
            Ok(())
        } else {
            Err(self.unusable_input(source, first..end))
        }
    }

    /// Names a NaN or infinity in these columns; no elimination has touched them yet.
    fn unusable_input(&self, source: Option<&[T]>, columns: Range<usize>) -> FactorError {
        let EndSizes { n, kl, ku, direction, .. } = self.shape;
        // Where both parts of a complex entry are finite, their sum is not.
        let mut place = None;
        for j in columns {
            for i in j.saturating_sub(ku)..(j + kl + 1).min(n) {
                let value = self.entry(source, i, j);
                let (row, col) = match direction {
                    Direction::Forward => (i, j),
                    Direction::Backward => (n - 1 - i, n - 1 - j),
                };
                if !Scalar::is_finite(value) {
                    let value = value.to_string();
                    return bt_formats::Error::NonFinite { what: "matrix", row, col, value }.into();
                }
                if place.is_none() && !value.abs1().to_f64().is_finite() {
                    place = Some(error::Place::Column(col));
                }
            }
        }
        FactorError::overflow(METHOD, place)
    }

    /// Wide bands (narrow ones write whole rows): the columns first..last of U are complete, zeros above what was reached.
    #[inline(always)]
    pub(super) fn finish_columns(&mut self, first: usize, last: usize) {
        let (shape, cols) = (self.shape, self.shape.cols);
        if self.found.singular.is_some() || matches!(self.tuning, Tuning::Narrow { .. }) {
            return;
        }
        for j in first..last {
            let top = (self.tops[j] as usize).min(cols);
            let (column, from) = (j * shape.ld(), shape.at(top, j));
            let to = if j < cols { shape.at(j, j) + 1 } else { shape.at(cols, j) };
            self.values[column..from.min(to)].fill(zero());
        }
    }

    /// The kl rows left when all `cols` columns are eliminated: row at position cols + i, column cols + j.
    pub(super) fn left_over(&self, i: usize, j: usize) -> T {
        let cols = self.shape.cols;
        match self.tuning {
            // The window starts at the next column.
            Tuning::Narrow { registers, .. } => {
                let lane = self.lane_at[(cols + i) & (self.lane_at.len() - 1)] as usize;
                let at = j * registers * LANES + lane;
                self.window[at / LANES].0[at % LANES]
            }
            Tuning::Wide { .. } => self.values[self.shape.at(cols + i, cols + j)],
        }
    }

    /// Leaves factors that turn every right-hand side into NaN.
    pub(super) fn void(&mut self) {
        for j in 0..self.shape.cols {
            let diagonal = self.shape.at(j, j);
            self.values[diagonal] = T::nan_impl();
            self.pivots[j] = j as u32;
            self.tops[j] = j as u32;
        }
        for j in self.shape.cols..self.shape.ncols {
            self.tops[j] = self.shape.cols as u32;
        }
    }

    /// Notes that row `position` becomes the pivot of column j, and how far it reaches.
    #[inline(always)]
    pub(super) fn note_pivot(&mut self, j: usize, position: usize) {
        self.pivots[j] = position as u32;
        let reach = self.found.reach.max((position + self.shape.ku + 1).min(self.shape.ncols));
        self.tops[self.found.reach..reach].fill(j as u32);
        self.found.reach = reach;
    }

    /// Counts the step of column j.
    #[inline(always)]
    pub(super) fn count(&mut self, j: usize, pivot: T) {
        let below = self.shape.kl.min(self.shape.rows - 1 - j);
        self.found.flops += (below * (2 * (self.found.reach - j) - 1)) as f64;
        self.found.min_pivot = self.found.min_pivot.min_nan(pivot.abs());
    }
}

/// n copies of `value`.
pub(super) fn filled<V: Copy>(n: usize, value: V) -> Result<Vec<V>> {
    let mut out = Vec::new();
    reserve(&mut out, n)?;
    out.resize(n, value);
    Ok(out)
}

/// Factor that turns a division by p into a multiplication, where that neither overflows nor underflows.
#[inline(always)]
pub(crate) fn reciprocal<T: Scalar>(p: T) -> Option<T> {
    let modulus = p.abs1();
    let safe = modulus >= T::Real::MIN_POSITIVE && modulus * T::Real::MIN_POSITIVE <= T::Real::from_f64(0.5);
    safe.then(|| crate::pivot::inverse(p))
}

/// v ← v/p, by the reciprocal where there is one.
#[inline(always)]
pub(crate) fn divide<T: Scalar>(values: &mut [T], p: T) {
    if let Some(r) = reciprocal(p) {
        for v in values {
            *v *= r;
        }
    } else {
        let divisor = crate::pivot::Pivot::new(p);
        for v in values {
            *v = divisor.divide(*v);
        }
    }
}

/// Columns to be measured, as work for a SIMD instruction set.
struct Measure<'a, T: Scalar> {
    end: &'a mut End<T>,
    source: Option<&'a [T]>,
    first: usize,
    last: usize,
}

impl<T: Scalar> pulp::WithSimd for Measure<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) {
        let Self { end, source, first, last } = self;
        let (mut max_f64, mut max_f32) = (s.splat_f64s(0.0), s.splat_f32s(0.0));
        let shape @ EndSizes { kl, ku, ncols, looks_at, direction, .. } = end.shape;
        let (ld, copied) = (shape.ld(), matches!(end.tuning, Tuning::Wide { .. }));
        let (mut norm, mut largest) = (end.found.norm_one, end.found.max_a);
        for j in first..last {
            let entries = shape.source_entries(j);
            let column = &source.unwrap_or(&end.values)[entries.clone()];
            if j < looks_at {
                let sum = match T::numbers(column) {
                    Numbers::F64(x) => simd::sum_and_max(s, x, &mut max_f64),
                    Numbers::F32(x) => f64::from(simd::sum_and_max(s, x, &mut max_f32)),
                    Numbers::C32(_) | Numbers::C64(_) => f64::NAN,
                };
                // A maximum in vectors may lose a NaN, which the sum shows.
                let sum = if sum.is_finite() { T::Real::from_f64(sum) } else { sum_and_max(column, &mut largest) };
                norm = norm.max_nan(sum);
            }
            if !copied || j >= ncols {
                continue;
            }
            // The room for fill holds zeros whatever the caller left there.
            end.values[j * ld..j * ld + kl].fill(zero());
            if let Some(source) = source {
                let (from, to) = (&source[entries], shape.at(j.saturating_sub(ku), j));
                let to = &mut end.values[to..to + from.len()];
                match direction {
                    Direction::Forward => to.copy_from_slice(from),
                    Direction::Backward => to.iter_mut().zip(from.iter().rev()).for_each(|(to, &from)| *to = from),
                }
            }
        }
        let in_vectors = s.reduce_max_f64s(max_f64).max(f64::from(s.reduce_max_f32s(max_f32)));
        largest[0] = largest[0].max_nan(T::Real::from_f64(in_vectors));
        (end.found.norm_one, end.found.max_a) = (norm, largest);
    }
}

/// Columns of the window that are updated together.
pub(super) const COLUMNS: usize = 4;

/// Trailing columns updated together.
pub(crate) const GROUP: usize = 8;

/// Rows from one column of a panel's array to the next: whole vectors.
pub(super) fn panel_stride(kl: usize, panel: usize) -> usize {
    (kl + panel).next_multiple_of(LANES)
}

/// The exchanges of a panel composed, in rows of the panel.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    /// Where the rows of the panel come from.
    pub(super) sources: Vec<u32>,
    /// (to, from) of the rows below the panel that one of its first rows goes to, and how many there are.
    pub(super) moves: Vec<(u32, u32)>,
    pub(super) moved: usize,
}

impl Exchanges {
    pub(super) fn new(panel: usize) -> Result<Self> {
        Ok(Self { sources: filled(panel, 0)?, moves: filled(panel, (0, 0))?, moved: 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.sources) + size_of_val(&*self.moves)
    }

    /// Composes the exchanges of row k with row `pivots[k] − first`. A row below the panel only ever receives one of
    /// the panel's own rows, which are read before they are overwritten.
    pub(super) fn compose(&mut self, pivots: &[u32], first: usize) {
        let nb = pivots.len();
        for (source, k) in self.sources[..nb].iter_mut().zip(0..) {
            *source = k;
        }
        self.moved = 0;
        for (k, &pivot) in pivots.iter().enumerate() {
            let p = pivot as usize - first;
            let from = self.sources[k];
            if p < nb {
                self.sources.swap(k, p);
            } else if let Some(moved) = self.moves[..self.moved].iter_mut().find(|m| m.0 as usize == p) {
                self.sources[k] = std::mem::replace(&mut moved.1, from);
            } else {
                self.moves[self.moved] = (p as u32, from);
                self.moved += 1;
                self.sources[k] = p as u32;
            }
        }
    }
}
