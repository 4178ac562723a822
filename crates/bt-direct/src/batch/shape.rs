//! Where the values of a batch lie, tiles of them, and the pieces that threads work on.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bt_formats::{Error, Par, Scalar, zero};
use faer::{MatMut, MatRef};
use pulp::Simd;

use super::lanes::{BLOCK, Block, LANES, Lanes, TILE, Tile, transposed};
use crate::error::Result;
use crate::lines::{self, PAGE};
use crate::memory::reserve;

/// How the vectors of a batch of m systems lie in one array. The same for the three diagonals and for x.
///
/// ```text
/// two systems a, b of three rows      Strided      a0 a1 a2 b0 b1 b2
///                                     Interleaved  a0 b0 a1 b1 a2 b2
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// System after system: row i of system s at `[s·n + i]`; of an n₁ × n₂ field, its rows. Sizes may differ.
    #[default]
    Strided,
    /// Row i of all systems, then row i + 1: row i of system s at `[i·m + s]`; of a field, its columns. Equal sizes.
    Interleaved,
}

/// The sizes of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sizes {
    /// m systems of n rows.
    Equal { m: usize, n: usize },
    /// System s has the rows `offsets[s]..offsets[s + 1]`.
    Offsets(Vec<usize>),
    /// System s has these rows, `least` or more, with others between them.
    Spread { systems: Vec<Range<usize>>, least: usize },
}

impl Sizes {
    #[inline(always)]
    pub(super) fn n_systems(&self) -> usize {
        match self {
            Self::Equal { m, .. } => *m,
            Self::Offsets(offsets) => offsets.len() - 1,
            Self::Spread { systems, .. } => systems.len(),
        }
    }
    #[inline(always)]
    pub(super) fn size(&self, s: usize) -> usize {
        self.range(s).len()
    }
    /// The rows of system s.
    #[inline(always)]
    pub(super) fn range(&self, s: usize) -> Range<usize> {
        match self {
            Self::Equal { n, .. } => s * n..(s + 1) * n,
            Self::Offsets(offsets) => offsets[s]..offsets[s + 1],
            Self::Spread { systems, .. } => systems[s].clone(),
        }
    }
    /// The first system that is of another size in `other`, as many there.
    pub(super) fn differs(&self, other: &Self) -> Option<usize> {
        match (self, other) {
            (Self::Equal { n, .. }, Self::Equal { n: other, .. }) => (n != other).then_some(0),
            (Self::Equal { n, .. }, Self::Spread { systems, .. }) => systems.iter().position(|rows| rows.len() != *n),
            _ => (0..self.n_systems()).find(|&s| self.size(s) != other.size(s)),
        }
    }
    /// First row of system s.
    #[inline(always)]
    pub(super) fn start(&self, s: usize) -> usize {
        match self {
            Self::Equal { n, .. } => s * n,
            Self::Offsets(offsets) => offsets[s],
            Self::Spread { systems, .. } => systems[s].start,
        }
    }
    /// First rows of eight systems.
    #[inline(always)]
    fn starts(&self, s: usize) -> [usize; 8] {
        macro_rules! each {
            ($start:expr) => {
                std::array::from_fn(
                    #[inline(always)]
                    |k| $start(s + k),
                )
            };
        }
        match self {
            Self::Equal { n, .. } => each!(|s: usize| s * n),
            Self::Offsets(offsets) => each!(|s: usize| offsets[s]),
            Self::Spread { systems, .. } => each!(|s: usize| systems[s].start),
        }
    }
    /// [`Error::InvalidStructure`] where systems of different sizes are to be interleaved.
    pub(super) fn check_layout(&self, layout: Layout) -> Result<()> {
        match (self, layout) {
            (Self::Offsets(_) | Self::Spread { .. }, Layout::Interleaved) => Err(Error::InvalidStructure {
                what: "layout of a batch",
                why: "systems of different sizes cannot be interleaved".into(),
            }
            .into()),
            _ => Ok(()),
        }
    }
    pub(super) fn len(&self) -> usize {
        self.n_systems().checked_sub(1).map_or(0, |last| self.range(last).end)
    }
    /// Systems of group g.
    #[inline(always)]
    pub(super) fn group(&self, g: usize) -> Range<usize> {
        LANES * g..(LANES * (g + 1)).min(self.n_systems())
    }
    pub(super) fn n_groups(&self) -> usize {
        self.n_systems().div_ceil(LANES)
    }
    /// Rows of the largest system of a group, up to the next whole tile.
    pub(super) fn padded(&self, group: &Range<usize>) -> usize {
        let n = match self {
            Self::Equal { n, .. } => *n,
            Self::Offsets(_) | Self::Spread { .. } => group.clone().map(|s| self.size(s)).max().unwrap_or(0),
        };
        n.next_multiple_of(TILE)
    }
    /// The largest of [`Sizes::padded`].
    pub(super) fn most_rows(&self) -> usize {
        match self {
            Self::Equal { n, .. } => n.next_multiple_of(TILE),
            Self::Offsets(_) | Self::Spread { .. } => {
                (0..self.n_groups()).map(|g| self.padded(&self.group(g))).max().unwrap_or(0)
            }
        }
    }
}

/// Rows of a block.
const ROWS: usize = BLOCK * TILE;
// Halves of systems in all lanes: one for a row.
const _: () = assert!(2 * LANES == ROWS);

/// The block of some sources that is wanted two blocks after the one that begins with row `i` of a group, in this group or one after it:
/// asked for by its share with every row of the present block, before it is worked on. Systems of one size that have a block are; others
/// are read before they are worked on.
pub(super) struct Ask<'a, T> {
    /// Each with the place of the block's first row in the first lane.
    sources: [(&'a [T], usize); 4],
    n: usize,
    /// Halves of systems for a row.
    share: usize,
}

impl<'a, T: Scalar> Ask<'a, T> {
    #[inline(always)]
    pub(super) fn new(shape: &Sizes, group: &Range<usize>, i: usize, sources: [Source<'a, T>; 4]) -> Self {
        let (n, at, share) = match *shape {
            Sizes::Equal { n, .. } if n >= ROWS => {
                let (blocks, later) = (n.div_ceil(ROWS), i / ROWS + 2);
                let rows = ROWS.min(n.next_multiple_of(TILE) - i);
                (n, (group.start + later / blocks * LANES) * n + later % blocks * ROWS, ROWS.div_ceil(rows))
            }
            _ => (0, 0, 0),
        };
        let sources = sources.map(
            #[inline(always)]
            |source| match source {
                Source::Strided { values, base } => (values, at.saturating_sub(base)),
                Source::Interleaved { .. } => (&[][..], 0),
            },
        );
        Self { sources, n, share }
    }

    #[inline(always)]
    pub(super) fn with_row(&self, row: usize) {
        for half in row * self.share..((row + 1) * self.share).min(ROWS) {
            for &(values, first) in &self.sources {
                let at = first + half / 2 * self.n + half % 2 * (ROWS / 2);
                lines::fetch(values, at..at + ROWS / 2);
            }
        }
    }
}

/// Values of a batch for reading.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    /// The first value is row `base` among all.
    Strided { values: &'a [T], base: usize },
    /// n × systems, by rows; the first column is system `first`.
    Interleaved { values: MatRef<'a, T>, first: usize },
}

impl<'a, T: Scalar> Source<'a, T> {
    /// All of an array.
    pub(super) fn new(shape: &Sizes, layout: Layout, values: &'a [T]) -> Self {
        match (layout, shape) {
            (Layout::Interleaved, &Sizes::Equal { m, n }) => {
                Self::Interleaved { values: MatRef::from_row_major_slice(values, n, m), first: 0 }
            }
            _ => Self::Strided { values, base: 0 },
        }
    }

    /// Row `i` of system `s`.
    pub(super) fn get(&self, shape: &Sizes, s: usize, i: usize) -> T {
        match *self {
            Self::Strided { values, base } => values[shape.start(s) - base + i],
            Self::Interleaved { values, first } => values[(i, s - first)],
        }
    }

    /// Before rows from `i` on are worked on, where nothing is asked for: reads those of the group in order, a page of every
    /// system at a time. Groups of short systems are read several at a time.
    #[inline(always)]
    pub(super) fn read_ahead(&self, shape: &Sizes, group: &Range<usize>, i: usize) {
        let (&Self::Strided { values, base }, page) = (self, PAGE / size_of::<T>()) else { return };
        if !i.is_multiple_of(page) {
            return;
        }
        match *shape {
            Sizes::Equal { n, .. } if n >= ROWS => {}
            Sizes::Equal { n, .. } => {
                let groups = page / n.max(1);
                if (group.start / LANES).is_multiple_of(groups) {
                    let at = (group.start * n - base).min(values.len());
                    lines::read(&values[at..(at + groups * LANES * n).min(values.len())]);
                }
            }
            Sizes::Offsets(_) | Sizes::Spread { .. } => {
                for s in group.clone() {
                    let system = &values[shape.start(s) - base..shape.start(s + 1) - base];
                    lines::read(system.get(i..(i + page).min(system.len())).unwrap_or_default());
                }
            }
        }
    }

    /// The tiles from row `i` on, as many as a block holds and `rows` has: neighbouring tiles share cache lines, and the lines
    /// of a tile may all compete for one set.
    #[inline(always)]
    pub(super) fn block<S: Simd>(
        &self,
        simd: S,
        shape: &Sizes,
        group: &Range<usize>,
        rows: Range<usize>,
        pad: T,
        out: &mut Block<T>,
    ) {
        let tiles = (rows.len() / TILE).min(BLOCK);
        match *self {
            Self::Strided { values, base } if whole(shape, group, rows.start + (tiles - 1) * TILE) => {
                read_whole(simd, values, base, shape, group, rows.start, &mut out[..tiles]);
            }
            _ => {
                for (t, out) in out[..tiles].iter_mut().enumerate() {
                    self.tile(simd, shape, group, rows.start + t * TILE, pad, out);
                }
            }
        }
    }

    /// Rows `i..i + TILE` of a group; `pad` where a system has no such row and in lanes without a system.
    #[inline(always)]
    pub(super) fn tile<S: Simd>(
        &self,
        simd: S,
        shape: &Sizes,
        group: &Range<usize>,
        i: usize,
        pad: T,
        out: &mut Tile<T>,
    ) {
        match *self {
            Self::Strided { values, base } if whole(shape, group, i) => {
                read_whole(simd, values, base, shape, group, i, std::slice::from_mut(out));
            }
            Self::Strided { values, base } => edge(values, base, shape, group, i, pad, out),
            Self::Interleaved { values, first } => {
                for (k, out) in out.iter_mut().enumerate() {
                    if i + k >= values.nrows() {
                        out.0 = [pad; LANES];
                        continue;
                    }
                    let row = row(values, i + k);
                    let systems = &row[group.start - first..group.end - first];
                    if let Some(all) = systems.first_chunk::<LANES>() {
                        out.0 = *all;
                    } else {
                        out.0 = [pad; LANES];
                        out.0[..systems.len()].copy_from_slice(systems);
                    }
                }
            }
        }
    }
}

/// Tiles from row `i` on that all lanes have.
#[inline(always)]
fn read_whole<S: Simd, T: Scalar>(
    simd: S,
    values: &[T],
    base: usize,
    shape: &Sizes,
    group: &Range<usize>,
    i: usize,
    tiles: &mut [Tile<T>],
) {
    for half in 0..LANES / 8 {
        let starts = shape.starts(group.start + 8 * half);
        for (t, tile) in tiles.iter_mut().enumerate() {
            let systems = std::array::from_fn(
                #[inline(always)]
                |k| {
                    let at = starts[k] - base + i + t * TILE;
                    *values[at..].first_chunk::<8>().expect("eight rows")
                },
            );
            let rows = transposed(simd, systems);
            for k in 0..TILE {
                tile[k].0[8 * half..8 * half + 8].copy_from_slice(&rows[k]);
            }
        }
    }
}

/// Writes such tiles.
#[inline(always)]
fn write_whole<S: Simd, T: Scalar>(
    simd: S,
    values: &mut [T],
    base: usize,
    shape: &Sizes,
    group: &Range<usize>,
    i: usize,
    tiles: &[Tile<T>],
) {
    for half in 0..LANES / 8 {
        let starts = shape.starts(group.start + 8 * half);
        for (t, tile) in tiles.iter().enumerate() {
            let rows = std::array::from_fn(
                #[inline(always)]
                |k| *tile[k].0[8 * half..].first_chunk::<8>().expect("sixteen lanes"),
            );
            let systems = transposed(simd, rows);
            for k in 0..8 {
                let at = starts[k] - base + i + t * TILE;
                *values[at..].first_chunk_mut::<8>().expect("eight rows") = systems[k];
            }
        }
    }
}

/// A tile that some lanes end in, or have no system for.
#[inline(never)]
fn edge<T: Scalar>(
    values: &[T],
    base: usize,
    shape: &Sizes,
    group: &Range<usize>,
    i: usize,
    pad: T,
    out: &mut Tile<T>,
) {
    *out = [Lanes([pad; LANES]); TILE];
    for (lane, s) in group.clone().enumerate() {
        let rows = shape.range(s);
        let system = &values[rows.start - base..rows.end - base];
        for (out, &v) in out.iter_mut().zip(system.get(i..).unwrap_or_default()) {
            out.0[lane] = v;
        }
    }
}

/// Writes such a tile.
#[inline(never)]
fn store_edge<T: Scalar>(values: &mut [T], base: usize, shape: &Sizes, group: &Range<usize>, i: usize, tile: &Tile<T>) {
    for (lane, s) in group.clone().enumerate() {
        let rows = shape.range(s);
        let system = &mut values[rows.start - base..rows.end - base];
        for (v, tile) in system.get_mut(i..).unwrap_or_default().iter_mut().zip(tile) {
            *v = tile.0[lane];
        }
    }
}

#[inline(always)]
fn row<T>(values: MatRef<'_, T>, i: usize) -> &[T] {
    values.row(i).try_as_row_major().expect("interleaved values lie by rows").as_slice()
}

/// Values of some systems of a batch for reading and writing.
pub(super) enum Part<'a, T> {
    Strided { values: &'a mut [T], base: usize },
    Interleaved { values: MatMut<'a, T>, first: usize },
}

impl<'a, T: Scalar> Part<'a, T> {
    /// All of an array.
    pub(super) fn new(shape: &Sizes, layout: Layout, values: &'a mut [T]) -> Self {
        match (layout, shape) {
            (Layout::Interleaved, &Sizes::Equal { m, n }) => {
                Self::Interleaved { values: MatMut::from_row_major_slice_mut(values, n, m), first: 0 }
            }
            _ => Self::Strided { values, base: 0 },
        }
    }

    /// The systems before `s`, and the others.
    pub(super) fn split(self, shape: &Sizes, s: usize) -> (Self, Self) {
        match self {
            Self::Strided { values, base } => {
                let (a, b) = values.split_at_mut(shape.start(s) - base);
                (Self::Strided { values: a, base }, Self::Strided { values: b, base: shape.start(s) })
            }
            Self::Interleaved { values, first } => {
                let (a, b) = values.split_at_col_mut(s - first);
                (Self::Interleaved { values: a, first }, Self::Interleaved { values: b, first: s })
            }
        }
    }

    #[inline(always)]
    pub(super) fn source(&self) -> Source<'_, T> {
        match self {
            Self::Strided { values, base } => Source::Strided { values, base: *base },
            Self::Interleaved { values, first } => Source::Interleaved { values: values.as_ref(), first: *first },
        }
    }

    /// Row `i` of system `s` ← v.
    pub(super) fn set(&mut self, shape: &Sizes, s: usize, i: usize, v: T) {
        match self {
            Self::Strided { values, base } => values[shape.start(s) - *base + i] = v,
            Self::Interleaved { values, first } => values[(i, s - *first)] = v,
        }
    }

    /// Writes `rows` of a group, those that exist, but not the lanes in doubt.
    #[inline(always)]
    pub(super) fn store_block<S: Simd>(
        &mut self,
        simd: S,
        shape: &Sizes,
        group: &Range<usize>,
        rows: Range<usize>,
        doubtful: &[bool; LANES],
        block: &mut Block<T>,
    ) {
        let tiles = &mut block[..rows.len() / TILE];
        if doubtful.contains(&true) {
            self.spare(simd, shape, group, rows.start, doubtful, tiles);
        }
        match self {
            Self::Strided { values, base } if whole(shape, group, rows.end - TILE) => {
                write_whole(simd, values, *base, shape, group, rows.start, tiles);
            }
            _ => {
                for (t, tile) in tiles.iter().enumerate() {
                    self.store(simd, shape, group, rows.start + t * TILE, tile);
                }
            }
        }
    }

    /// Puts what x holds into the lanes in doubt of tiles from row `i` on, so that storing them does not change it.
    #[cold]
    #[inline(never)]
    fn spare<S: Simd>(
        &self,
        simd: S,
        shape: &Sizes,
        group: &Range<usize>,
        i: usize,
        doubtful: &[bool; LANES],
        tiles: &mut [Tile<T>],
    ) {
        let mut held = [Lanes::zero(); TILE];
        for (t, tile) in tiles.iter_mut().enumerate() {
            self.source().tile(simd, shape, group, i + t * TILE, zero(), &mut held);
            for (out, held) in tile.iter_mut().zip(&held) {
                for j in 0..LANES {
                    if doubtful[j] {
                        out.0[j] = held.0[j];
                    }
                }
            }
        }
    }

    /// Writes rows `i..i + TILE` of a group, those that exist.
    #[inline(always)]
    pub(super) fn store<S: Simd>(&mut self, simd: S, shape: &Sizes, group: &Range<usize>, i: usize, tile: &Tile<T>) {
        match self {
            Self::Strided { values, base } if whole(shape, group, i) => {
                write_whole(simd, values, *base, shape, group, i, std::slice::from_ref(tile));
            }
            Self::Strided { values, base } => store_edge(values, *base, shape, group, i, tile),
            Self::Interleaved { values, first } => {
                let n = values.nrows();
                for (k, lanes) in tile.iter().enumerate().take(n.saturating_sub(i)) {
                    let row = values.as_mut().row_mut(i + k);
                    let row = row.try_as_row_major_mut().expect("interleaved values lie by rows").as_slice_mut();
                    let systems = &mut row[group.start - *first..group.end - *first];
                    if let Some(all) = systems.first_chunk_mut::<LANES>() {
                        *all = lanes.0;
                    } else {
                        systems.copy_from_slice(&lanes.0[..systems.len()]);
                    }
                }
            }
        }
    }
}

impl<T: Scalar> Part<'_, T> {
    /// Keeps a tile of intermediate results in the places of rows `i..i + TILE`, for [`Part::kept`]: in any order, where
    /// the tile is whole.
    #[inline(always)]
    pub(super) fn keep<S: Simd>(&mut self, simd: S, shape: &Sizes, group: &Range<usize>, i: usize, tile: &Tile<T>) {
        match self {
            Self::Strided { values, base } if whole(shape, group, i) => {
                for half in 0..LANES / 8 {
                    let starts = shape.starts(group.start + 8 * half);
                    for (k, lanes) in tile.iter().enumerate() {
                        let at = starts[k] - *base + i;
                        values[at..at + 8].copy_from_slice(&lanes.0[8 * half..8 * half + 8]);
                    }
                }
            }
            _ => self.store(simd, shape, group, i, tile),
        }
    }

    /// The tile that [`Part::keep`] was given.
    #[inline(always)]
    pub(super) fn kept<S: Simd>(&self, simd: S, shape: &Sizes, group: &Range<usize>, i: usize, tile: &mut Tile<T>) {
        match self {
            Self::Strided { values, base } if whole(shape, group, i) => {
                for half in 0..LANES / 8 {
                    let starts = shape.starts(group.start + 8 * half);
                    for (k, lanes) in tile.iter_mut().enumerate() {
                        let at = starts[k] - *base + i;
                        lanes.0[8 * half..8 * half + 8].copy_from_slice(&values[at..at + 8]);
                    }
                }
            }
            _ => self.source().tile(simd, shape, group, i, zero(), tile),
        }
    }
}

/// Whether every lane has a system with all rows `i..i + TILE`.
#[inline(always)]
fn whole(shape: &Sizes, group: &Range<usize>, i: usize) -> bool {
    group.len() == LANES
        && match shape {
            Sizes::Equal { n, .. } => i + TILE <= *n,
            Sizes::Spread { least, .. } if i + TILE <= *least => true,
            Sizes::Offsets(_) | Sizes::Spread { .. } => group.clone().all(|s| i + TILE <= shape.size(s)),
        }
}

/// A buffer of a thread.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    rows: Vec<Lanes<T>>,
    values: Vec<T>,
}

impl<T: Scalar> Scratch<T> {
    /// As many buffers as there are threads, each of `rows` rows of lanes and `values` values.
    #[inline(never)]
    pub(super) fn pool(par: Par, rows: usize, values: usize) -> Result<Mutex<Vec<Self>>> {
        let mut pool = Vec::new();
        let threads = if par == Par::Rayon { rayon::current_num_threads() } else { 1 };
        for _ in 0..threads {
            pool.push(Self::new(rows, values)?);
        }
        Ok(Mutex::new(pool))
    }

    /// One buffer.
    pub(super) fn new(rows: usize, values: usize) -> Result<Self> {
        let mut buffer = Self { rows: Vec::new(), values: Vec::new() };
        reserve(&mut buffer.rows, rows)?;
        reserve(&mut buffer.values, values)?;
        buffer.rows.resize(rows, Lanes::zero());
        buffer.values.resize(values, zero());
        Ok(buffer)
    }

    /// Runs `f` with a buffer of the pool.
    pub(super) fn with<R>(pool: &Mutex<Vec<Self>>, f: impl FnOnce(&mut Self) -> R) -> R {
        let list = || pool.lock().unwrap_or_else(PoisonError::into_inner);
        // Never more pieces at a time than threads.
        let mut buffer = list().pop().expect("a buffer for every thread");
        let out = f(&mut buffer);
        list().push(buffer);
        out
    }

    pub(super) fn parts(&mut self) -> (&mut [Lanes<T>], &mut [T]) {
        (&mut self.rows, &mut self.values)
    }
}

/// Runs `piece` on ranges of whole groups, in halves as rayon finds threads for them; `cut` divides what the pieces write
/// before a group. What a piece computes for a system does not depend on the cut.
pub(super) fn pieces<P: Send>(
    shape: &Sizes,
    groups: Range<usize>,
    par: Par,
    part: P,
    cut: &(impl Fn(P, usize) -> (P, P) + Sync),
    piece: &(impl Fn(Range<usize>, P) + Sync),
) {
    // Some 64 Ki rows: a fraction of a millisecond.
    const ROWS: usize = 1 << 16;
    let last = shape.n_systems().min(LANES * groups.end);
    let rows =
        (LANES * groups.start..last).last().map_or(0, |s| shape.range(s).end - shape.start(LANES * groups.start));
    if par == Par::Seq || groups.len() < 2 || rows <= ROWS {
        if !groups.is_empty() {
            piece(groups, part);
        }
        return;
    }
    let middle = groups.start + groups.len() / 2;
    let (a, b) = cut(part, middle);
    bt_formats::join(
        || pieces(shape, groups.start..middle, par, a, cut, piece),
        || pieces(shape, middle..groups.end, par, b, cut, piece),
    );
}

/// [`Error::DimensionMismatch`] unless `values` hold the batch.
pub(super) fn check_len(what: &'static str, shape: &Sizes, values: usize) -> Result<()> {
    if values != shape.len() {
        return Err(Error::DimensionMismatch { what, expected: shape.len(), found: values }.into());
    }
    Ok(())
}
