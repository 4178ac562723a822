//! Rows as they come, cut into segments.
//!
//! A run is a segment whose rows are each the row before it moved along the diagonal by one, as those of a line of a grid: its
//! entries stand in diagonals, whose columns nobody has to look up. In a mixed segment rows wait for earlier segments and, all
//! but the first or none, for the row just before. What it takes from earlier ones is one loop over its entries, which knows
//! nothing of rows and has no branch that could be mispredicted; then the rows take from each other, by way of a register. Where
//! rows have few entries (narrow segments) each is done at once, with as many steps as the longest may need: those that a row lacks
//! are an entry of zero.

use std::cell::Cell;
use std::hint::select_unpredictable;
use std::ops::Range;

use bt_formats::{Scalar, mul_add, zero};
use pulp::Simd;

use super::Triangle;
use super::pipeline::{Block, Pipeline};

/// Rows of a mixed segment, at most.
const MIXED: usize = 128;
/// Rows of a run, at most: what is done with them first stays in the cache.
const LONGEST: usize = 1024;
/// Rows of a run, at least.
const SHORTEST: usize = 16;
/// Entries of the rows of a run, at most, without one next to the diagonal.
const WIDEST: usize = 4;
/// Entries of the rows of a narrow segment, at most.
const NARROW: usize = 3;
/// Added to the places of entries that are not taken from earlier segments: sums that nobody asks for, one a row, since a
/// single one would make all rows wait for each other.
const ASIDE: u8 = 128;

/// Whether rows of a segment wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    No,
    /// Each but the first, in a run the first, too, for the one before it.
    Chain,
}

impl Wait {
    /// Of row k, when it waits for no row from `latest` on.
    #[inline(always)]
    fn of(k: usize, latest: usize) -> Self {
        if k > 0 && latest == k { Self::Chain } else { Self::No }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mixed,
    /// As mixed, each row but the first waiting for the one before, with [`NARROW`] entries at most.
    Narrow,
    RowRun,
}

#[derive(Clone, Debug)]
struct Segment {
    /// Rows of the solve when it ends.
    end: u32,
    kind: Kind,
    wait: Wait,
}

/// Rows as they come, cut in the order of the solve.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    /// The place in its mixed segment of each entry's row; [`ASIDE`] and that for entries next to the diagonal in a chain.
    places: Vec<u8>,
    /// How threads share them, where it pays.
    pipeline: Option<Pipeline>,
}

impl Segments {
    pub(super) fn new(rows: &Strict<'_>) -> Self {
        Self::cut(rows, rows.n, LONGEST)
    }

    /// To be shared by so many threads, where it pays.
    pub(super) fn shared(rows: &Strict<'_>, threads: usize) -> Option<Self> {
        Self::in_blocks(rows, Pipeline::block(rows, threads)?, threads)
    }

    fn in_blocks(rows: &Strict<'_>, block: usize, threads: usize) -> Option<Self> {
        let cut = Self::cut(rows, block, (block / (4 * threads)).clamp(SHORTEST, LONGEST));
        let ends: Vec<_> = cut.all.iter().map(|s| s.end as usize).collect();
        let pipeline = Pipeline::new(rows, block, &ends, threads)?;
        Some(Self { pipeline: Some(pipeline), ..cut })
    }

    /// Segments that end with blocks of so many rows, and runs of at most `longest` rows.
    fn cut(rows: &Strict<'_>, block: usize, longest: usize) -> Self {
        let mut out = Self { all: Vec::new(), places: vec![0; rows.idx.len()], pipeline: None };
        for start in (0..rows.n).step_by(block.max(1)) {
            let (mut done, end) = (start, rows.n.min(start + block));
            // A run of twice as many rows has one of these rows and those after it.
            for probe in (start..end).step_by(SHORTEST) {
                if probe < done || !rows.moved(probe, probe + SHORTEST - 1) {
                    continue;
                }
                let run = rows.run(probe, done..end);
                if run.len() < SHORTEST {
                    continue;
                }
                out.mix(rows, done, run.start);
                let wait = rows.wait(run.start);
                let ends = run.clone().step_by(longest).skip(1).chain([run.end]);
                out.all.extend(ends.map(|end| Segment { end: end as u32, kind: Kind::RowRun, wait }));
                done = run.end;
            }
            out.mix(rows, done, end);
        }
        out.all.shrink_to_fit();
        out
    }

    /// Cuts rows `start..end` into narrow and mixed segments.
    fn mix(&mut self, rows: &Strict<'_>, start: usize, end: usize) {
        let (mut first, mut kind, mut wait) = (start, Kind::Narrow, Wait::No);
        for k in start..end {
            let [latest, second] = rows.latest(k);
            let of_last = Wait::of(k, latest);
            let fits = if rows.entries(k).len() <= NARROW { Kind::Narrow } else { Kind::Mixed };
            // What row k waits for is done before row `ready`, but for the row just before where it waits for that.
            let ready = if of_last == Wait::Chain { second } else { latest };
            let len = k - first;
            // Of one row, a segment is what the second makes of it.
            let next = if of_last == Wait::Chain && kind == Kind::Narrow { fits } else { Kind::Mixed };
            let goes_on = match if len > 1 { kind } else { next } {
                Kind::Narrow => next == Kind::Narrow,
                _ => ready <= first && (len < 2 || of_last == wait),
            };
            if len > 0 && (!goes_on || len == MIXED) {
                self.close(rows, first..k, kind, wait);
                first = k;
            }
            match k - first {
                0 => (kind, wait) = (fits, Wait::No),
                1 => (kind, wait) = (next, of_last),
                _ => {}
            }
        }
        if end > first {
            self.close(rows, first..end, kind, wait);
        }
    }

    /// Ends a segment; one without a row that waits for the one before is mixed.
    fn close(&mut self, rows: &Strict<'_>, of: Range<usize>, kind: Kind, wait: Wait) {
        let kind = if wait == Wait::Chain { kind } else { Kind::Mixed };
        self.all.push(Segment { end: of.end as u32, kind, wait });
        if kind == Kind::Narrow {
            return;
        }
        for k in of.clone() {
            let row = rows.entries(k);
            self.places[row.clone()].fill((k - of.start) as u8);
            if k > of.start && wait == Wait::Chain {
                self.places[if rows.triangle == Triangle::Lower { row.end - 1 } else { row.start }] += ASIDE;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let pipeline = self.pipeline.as_ref().map_or(0, Pipeline::bytes);
        size_of_val(&*self.all) + size_of_val(&*self.places) + pipeline
    }

    /// z ← (I + N)⁻¹·D⁻¹·r, or of z where there is no r.
    pub(super) fn solve<T: Scalar>(&mut self, t: &Values<'_, T>, r: Option<&[T]>, z: &mut [T]) {
        let z = Cell::from_mut(z).as_slice_of_cells();
        let Self { all, places, pipeline } = &*self;
        let solve = Solve { segments: all, places, t, r };
        match pipeline {
            Some(pipeline) if rayon::current_num_threads() > 1 => {
                pipeline.run(z, &|z| solve.dispatch(z, Some(pipeline)));
            }
            _ => solve.dispatch(z, None),
        }
    }
}

/// The places of a strict triangle, by rows of the solve.
pub(super) struct Strict<'p> {
    pub(super) ptr: &'p [u32],
    pub(super) idx: &'p [u32],
    pub(super) triangle: Triangle,
    pub(super) n: usize,
}

impl<'p> Strict<'p> {
    pub(super) fn new(ptr: &'p [u32], idx: &'p [u32], triangle: Triangle) -> Self {
        Self { ptr, idx, triangle, n: ptr.len() - 1 }
    }

    #[inline(always)]
    pub(super) fn entries(&self, k: usize) -> Range<usize> {
        let i = self.triangle.row(k, self.n);
        self.ptr[i] as usize..self.ptr[i + 1] as usize
    }

    /// Places of the entries of some rows.
    pub(super) fn places(&self, rows: Range<usize>) -> Range<usize> {
        match self.triangle {
            Triangle::Lower => self.ptr[rows.start] as usize..self.ptr[rows.end] as usize,
            Triangle::Upper => self.ptr[self.n - rows.end] as usize..self.ptr[self.n - rows.start] as usize,
        }
    }

    /// The earliest row that row k waits for.
    pub(super) fn earliest(&self, k: usize) -> Option<usize> {
        let row = &self.idx[self.entries(k)];
        let furthest = if self.triangle == Triangle::Lower { row.first() } else { row.last() };
        furthest.map(|&j| self.triangle.row(j as usize, self.n))
    }

    /// The rows after the two latest that row k waits for; 0 where there are none.
    #[inline(always)]
    fn latest(&self, k: usize) -> [usize; 2] {
        let Range { start, end } = self.entries(k);
        [0, 1].map(|back| {
            let e = if self.triangle == Triangle::Lower { end.wrapping_sub(1 + back) } else { start + back };
            let after = self.idx.get(e).map_or(0, |&j| self.triangle.row(j as usize, self.n) + 1);
            if end - start > back { after } else { 0 }
        })
    }

    /// Whether row k waits for the one before.
    #[inline(always)]
    pub(super) fn wait(&self, k: usize) -> Wait {
        Wait::of(k, self.latest(k)[0])
    }

    /// Whether there is a row k and it is row j < k, moved along the diagonal.
    #[inline(always)]
    fn moved(&self, j: usize, k: usize) -> bool {
        if k >= self.n {
            return false;
        }
        let (one, other) = (self.entries(j), self.entries(k));
        let by = if self.triangle == Triangle::Lower { (k - j) as u32 } else { ((k - j) as u32).wrapping_neg() };
        one.len() == other.len() && one.zip(other).all(|(e, f)| self.idx[e].wrapping_add(by) == self.idx[f])
    }

    /// Those of `rows` that are each the one before, moved along the diagonal, row `probe` among them; none where there are too
    /// many entries.
    fn run(&self, probe: usize, rows: Range<usize>) -> Range<usize> {
        if self.entries(probe).len() > WIDEST + usize::from(self.wait(probe) == Wait::Chain) {
            return probe..probe;
        }
        let (mut start, mut end) = (probe, probe + 1);
        while start > rows.start && self.moved(start - 1, start) {
            start -= 1;
        }
        while end < rows.end && self.moved(end - 1, end) {
            end += 1;
        }
        start..end
    }
}

/// What there is to know of a triangle besides its places in segments.
pub(super) struct Values<'v, T> {
    pub(super) triangle: Triangle,
    pub(super) ptr: &'v [u32],
    pub(super) idx: &'v [u32],
    pub(super) val: &'v [T],
    pub(super) reciprocals: &'v [T],
}

/// A solve, whatever thread does which of its segments.
#[derive(Clone, Copy)]
struct Solve<'s, T> {
    segments: &'s [Segment],
    places: &'s [u8],
    t: &'s Values<'s, T>,
    r: Option<&'s [T]>,
}

impl<T: Scalar> Solve<'_, T> {
    fn dispatch(&self, z: &[Cell<T>], pipeline: Option<&Pipeline>) {
        bt_simd::dispatch(Share { solve: self, z, pipeline });
    }
}

/// What one thread does of it: the blocks that it takes, or all there is.
struct Share<'s, T> {
    solve: &'s Solve<'s, T>,
    z: &'s [Cell<T>],
    pipeline: Option<&'s Pipeline>,
}

impl<T: Scalar> pulp::WithSimd for Share<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Share<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.solve.t.triangle {
            Triangle::Lower => self.parts::<FUSED, true>(),
            Triangle::Upper => self.parts::<FUSED, false>(),
        }
    }

    #[inline(always)]
    fn parts<const FUSED: bool, const LOWER: bool>(self) {
        let mut sums = [zero::<T>(); 256];
        let mut block = self.pipeline.map(Pipeline::take);
        loop {
            let numbers = match &block {
                None => 0..self.solve.segments.len(),
                Some(Some(block)) => block.segments(),
                Some(None) => return,
            };
            self.segments::<FUSED, LOWER>(numbers, block.as_mut().and_then(Option::as_mut), &mut sums);
            let Some(pipeline) = self.pipeline else { return };
            block = Some(pipeline.take());
        }
    }

    #[inline(always)]
    fn segments<const FUSED: bool, const LOWER: bool>(
        &self,
        numbers: Range<usize>,
        mut block: Option<&mut Block<'_>>,
        sums: &mut [T; 256],
    ) {
        let Self { solve: &Solve { segments, places, t, r }, z, .. } = *self;
        let n = z.len();
        let mut first = numbers.start.checked_sub(1).map_or(0, |s| segments[s].end as usize);
        for s in numbers {
            let segment = &segments[s];
            if let Some(block) = &mut block {
                block.wait(s);
            }
            let end = segment.end as usize;
            let rows = if LOWER { first..end } else { n - end..n - first };
            let own = &z[rows.clone()];
            let entries = t.ptr[rows.start] as usize..t.ptr[rows.end] as usize;
            let (idx, val) = (&t.idx[entries.clone()], &t.val[entries.clone()]);
            match segment.kind {
                Kind::RowRun => {
                    self.divided(own, &rows);
                    let columns = &idx[..idx.len() / rows.len()];
                    let run = RowRun { cells: z, first: rows.start, len: rows.len(), columns, val };
                    match (segment.wait, columns.len()) {
                        (Wait::No, 0) => {}
                        (Wait::No, 1) => run.solve::<FUSED, LOWER, false, 1>(),
                        (Wait::No, 2) => run.solve::<FUSED, LOWER, false, 2>(),
                        (Wait::No, 3) => run.solve::<FUSED, LOWER, false, 3>(),
                        (Wait::No, _) => run.solve::<FUSED, LOWER, false, WIDEST>(),
                        (Wait::Chain, 1) => run.solve::<FUSED, LOWER, true, 0>(),
                        (Wait::Chain, 2) => run.solve::<FUSED, LOWER, true, 1>(),
                        (Wait::Chain, 3) => run.solve::<FUSED, LOWER, true, 2>(),
                        (Wait::Chain, 4) => run.solve::<FUSED, LOWER, true, 3>(),
                        (Wait::Chain, _) => run.solve::<FUSED, LOWER, true, WIDEST>(),
                    }
                }
                Kind::Narrow => {
                    self.divided(own, &rows);
                    let (idx, val) = (&t.idx[..t.val.len()], t.val);
                    Narrow { cells: z, rows, ptr: t.ptr, idx, val }.solve::<FUSED, LOWER>();
                }
                Kind::Mixed => {
                    // s ← D⁻¹·r
                    let mine = &mut sums[..rows.len()];
                    match r {
                        Some(r) => mine.copy_from_slice(&r[rows.clone()]),
                        None => mine.iter_mut().zip(own).for_each(|(s, z)| *s = z.get()),
                    }
                    if !t.reciprocals.is_empty() {
                        mine.iter_mut().zip(&t.reciprocals[rows.clone()]).for_each(|(s, &d)| *s *= d);
                    }
                    if !LOWER {
                        mine.reverse();
                    }
                    // s ← s − N·z, of z what earlier segments know
                    let entries = idx.iter().zip(val).zip(&places[entries]);
                    if LOWER {
                        for ((&j, &v), &place) in entries {
                            let sum = &mut sums[place as usize];
                            *sum = mul_add::<T, FUSED>(-v, z[j as usize].get(), *sum);
                        }
                    } else {
                        for ((&j, &v), &place) in entries.rev() {
                            let sum = &mut sums[place as usize];
                            *sum = mul_add::<T, FUSED>(-v, z[j as usize].get(), *sum);
                        }
                    }
                    let (mine, ptr) = (&sums[..rows.len()], &t.ptr[rows.start..=rows.end]);
                    let place = |k: usize| if LOWER { k } else { mine.len() - 1 - k };
                    match segment.wait {
                        Wait::No => (0..mine.len()).for_each(|k| own[place(k)].set(mine[k])),
                        // zᵢ ← sᵢ − nᵢ·z of the row before
                        Wait::Chain => {
                            let mut last = mine[0];
                            own[place(0)].set(last);
                            for k in 1..mine.len() {
                                let i = place(k);
                                let nearest = if LOWER { ptr[i + 1] as usize - 1 } else { ptr[i] as usize };
                                last = mul_add::<T, FUSED>(-t.val[nearest], last, mine[k]);
                                own[i].set(last);
                            }
                        }
                    }
                }
            }
            if let Some(block) = &block {
                block.done(end);
            }
            first = end;
        }
    }

    /// z ← D⁻¹·r
    #[inline(always)]
    fn divided(&self, own: &[Cell<T>], rows: &Range<usize>) {
        let Solve { t, r, .. } = *self.solve;
        if let Some(r) = r {
            own.iter().zip(&r[rows.clone()]).for_each(|(z, &r)| z.set(r));
        }
        if !t.reciprocals.is_empty() {
            own.iter().zip(&t.reciprocals[rows.clone()]).for_each(|(z, &d)| z.set(z.get() * d));
        }
    }
}

/// Rows of a narrow segment, the result of each row in place of its right-hand side.
struct Narrow<'n, T> {
    cells: &'n [Cell<T>],
    rows: Range<usize>,
    ptr: &'n [u32],
    idx: &'n [u32],
    val: &'n [T],
}

impl<T: Scalar> Narrow<'_, T> {
    #[inline(always)]
    fn solve<const FUSED: bool, const LOWER: bool>(self) {
        let Self { cells, rows, ptr, .. } = &self;
        let steps = rows.clone().zip(&cells[rows.clone()]).zip(ptr[rows.start..=rows.end].windows(2));
        if LOWER { self.steps::<FUSED, LOWER>(steps) } else { self.steps::<FUSED, LOWER>(steps.rev()) }
    }

    /// All but the first wait for the one before.
    #[inline(always)]
    fn steps<'s, const FUSED: bool, const LOWER: bool>(
        &self,
        mut steps: impl Iterator<Item = ((usize, &'s Cell<T>), &'s [u32])>,
    ) where
        T: 's,
    {
        let Some(first) = steps.next() else { return };
        let mut last = self.row::<FUSED, LOWER, false>(first, zero());
        for step in steps {
            last = self.row::<FUSED, LOWER, true>(step, last);
        }
    }

    /// zᵢ ← zᵢ − Σ nᵢⱼ·zⱼ, the nearest of them `last` in a chain
    #[inline(always)]
    fn row<const FUSED: bool, const LOWER: bool, const CHAIN: bool>(
        &self,
        ((i, z), ends): ((usize, &Cell<T>), &[u32]),
        last: T,
    ) -> T {
        let Self { cells, idx, val, .. } = *self;
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        // The entry so many places from the nearest one.
        let place = |away: usize| if LOWER { end.wrapping_sub(1 + away) } else { start + away };
        let mut sum = z.get();
        for away in (usize::from(CHAIN)..NARROW).rev() {
            // Chosen without a branch, since nobody can foresee which rows lack an entry: 0·zᵢ instead, of what no other thread writes.
            let is_there = away < end - start;
            let e = select_unpredictable(is_there, place(away), val.len() - 1);
            let j = select_unpredictable(is_there, idx[e] as usize, i);
            sum = mul_add::<T, FUSED>(-val[e], cells[j].get(), sum);
        }
        if CHAIN {
            sum = mul_add::<T, FUSED>(-val[place(0)], last, sum);
        }
        z.set(sum);
        sum
    }
}

/// A run of rows, the result of each row in place of its right-hand side.
struct RowRun<'r, T> {
    cells: &'r [Cell<T>],
    first: usize,
    len: usize,
    /// Of the first row in storage.
    columns: &'r [u32],
    val: &'r [T],
}

impl<T: Scalar> RowRun<'_, T> {
    /// With W entries a row, and one more next to the diagonal where the rows are a chain.
    #[inline(always)]
    fn solve<const FUSED: bool, const LOWER: bool, const CHAIN: bool, const W: usize>(self) {
        let Self { cells, first, len, columns, val } = self;
        let width = W + usize::from(CHAIN);
        let (near, far) = if LOWER { (W, 0) } else { (0, usize::from(CHAIN)) };
        let diagonals: [&[Cell<T>]; W] = std::array::from_fn(|d| &cells[columns[far + d] as usize..][..len]);
        let own = &cells[first..][..len];
        let val = &val[..len * width];
        let mut last = match (CHAIN, LOWER) {
            (false, _) => zero(),
            (true, true) => cells[first - 1].get(),
            (true, false) => cells[first + len].get(),
        };
        for k in 0..len {
            let k = if LOWER { k } else { len - 1 - k };
            let v = &val[k * width..][..width];
            let mut z = own[k].get();
            for d in 0..W {
                let d = if LOWER { d } else { W - 1 - d };
                z = mul_add::<T, FUSED>(-v[far + d], diagonals[d][k].get(), z);
            }
            if CHAIN {
                z = mul_add::<T, FUSED>(-v[near], last, z);
                last = z;
            }
            own[k].set(z);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_where_rows_wait() {
        // Rows 1 to 3 wait for the one before, 4 and 5 for row 0, 6 for 5 and 4, 7 for four of them, 6 among them.
        let (ptr, idx) = ([0, 0, 1, 2, 4, 5, 6, 8, 12], [0, 1, 0, 2, 0, 0, 4, 5, 0, 1, 2, 6]);
        let Segments { all, places, .. } = Segments::new(&Strict::new(&ptr, &idx, Triangle::Lower));
        let cuts: Vec<_> = all.iter().map(|s| (s.end, s.kind, s.wait)).collect();
        assert_eq!(cuts, [(4, Kind::Narrow, Wait::Chain), (6, Kind::Mixed, Wait::No), (8, Kind::Mixed, Wait::Chain)]);
        assert_eq!(places, [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, ASIDE + 1]);
    }

    #[test]
    fn runs_end_where_rows_differ() {
        // Rows 4 to 39 wait for the one before and the third before, row 40 for none, the rest for the one before.
        let (mut ptr, mut idx) = (vec![0], vec![]);
        for i in 0..2000u32 {
            match i {
                0..4 | 40 => {}
                4..40 => idx.extend([i - 3, i - 1]),
                _ => idx.push(i - 1),
            }
            ptr.push(idx.len() as u32);
        }
        let cuts: Vec<_> = Segments::new(&Strict::new(&ptr, &idx, Triangle::Lower))
            .all
            .iter()
            .map(|s| (s.end, s.kind, s.wait))
            .collect();
        let run = |end| (end, Kind::RowRun, Wait::Chain);
        assert_eq!(cuts, [(4, Kind::Mixed, Wait::No), run(40), (41, Kind::Mixed, Wait::No), run(1065), run(2000)]);
    }

    /// A grid of lines of so many points: rows take from the two (or, with the corner, three) nearest points of the line before, and
    /// from the point before.
    fn grid(lines: usize, len: usize, triangle: Triangle, corner: usize) -> (Vec<u32>, Vec<u32>) {
        let n = lines * len;
        let (mut ptr, mut idx) = (vec![0], vec![]);
        for i in 0..n {
            let k = triangle.row(i, n);
            let (line, at) = (k / len, k % len);
            let first = idx.len();
            if line > 0 {
                let near = at.max(1) - 1..=(at + corner).min(len - 1);
                idx.extend(near.map(|at| triangle.row((line - 1) * len + at, n) as u32));
            }
            if at > 0 {
                idx.push(triangle.row(k - 1, n) as u32);
            }
            idx[first..].sort_unstable();
            ptr.push(idx.len() as u32);
        }
        (ptr, idx)
    }

    #[test]
    fn blocks_are_lines() {
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let (ptr, idx) = grid(900, 600, triangle, 1);
            let rows = Strict::new(&ptr, &idx, triangle);
            assert_eq!(Pipeline::block(&rows, 2), Some(600));
            assert_eq!(Pipeline::block(&rows, 1), None);
        }
    }

    #[test]
    fn threads_in_blocks_have_the_bits_of_one() {
        let (lines, len, most, times) = if cfg!(miri) { (6, 128, 2, 1) } else { (40, 600, 4, 20) };
        for (triangle, corner) in
            [(Triangle::Lower, 0), (Triangle::Upper, 0), (Triangle::Lower, 1), (Triangle::Upper, 1)]
        {
            let n = lines * len;
            let (ptr, idx) = grid(lines, len, triangle, corner);
            let val: Vec<f64> = (0..idx.len()).map(|e| (e % 11) as f64 / 24.0 - 0.2).collect();
            let reciprocals: Vec<f64> = (0..n).map(|i| 0.5 + (i % 5) as f64 / 8.0).collect();
            let r: Vec<f64> = (0..n).map(|i| (i % 13) as f64 - 6.0).collect();
            let rows = Strict::new(&ptr, &idx, triangle);
            let values = Values { triangle, ptr: &ptr, idx: &idx, val: &val, reciprocals: &reciprocals };
            let mut alone = vec![0.0; n];
            Segments::new(&rows).solve(&values, Some(&r), &mut alone);
            for threads in (2..=most).step_by(2) {
                let mut segments = Segments::in_blocks(&rows, len, threads).unwrap();
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                for _ in 0..times {
                    let mut z = r.clone();
                    pool.install(|| segments.solve(&values, None, &mut z));
                    assert!(z == alone, "{triangle:?} {corner} {threads}");
                }
            }
        }
    }

    #[test]
    fn threads_do_not_wait_in_a_chain() {
        // Each row takes from the one before: blocks one after the other.
        let n = 5000;
        let (ptr, idx): (Vec<u32>, Vec<u32>) = ((0..=n).map(|i| i.max(1) - 1).collect(), (0..n - 1).collect());
        let rows = Strict::new(&ptr, &idx, Triangle::Lower);
        assert!(Segments::in_blocks(&rows, 500, 2).is_none());
    }
}
