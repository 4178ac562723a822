//! Rows as they come, cut into segments.
//!
//! A run is a segment whose rows are each the row before it moved along the diagonal by one, as those of a line of a grid: its
//! entries stand in diagonals, whose columns nobody has to look up. In a mixed segment rows wait for earlier segments and, all
//! but the first or none, for the row just before. What it takes from earlier ones is one loop over its entries, which knows
//! nothing of rows and has no branch that could be mispredicted; then the rows take from each other, by way of a register.

use std::cell::Cell;
use std::ops::Range;

use bt_formats::{Scalar, mul_add, zero};
use pulp::Simd;

use super::{SparseTriangle, Triangle};

/// Rows of a mixed segment, at most.
const MIXED: usize = 128;
/// Rows of a run, at most: what is done with them first stays in the cache.
const LONGEST: usize = 1024;
/// Rows of a run, at least.
const SHORTEST: usize = 16;
/// Entries of the rows of a run, at most, without one next to the diagonal.
const WIDEST: usize = 4;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mixed,
    Run,
}

#[derive(Clone, Debug)]
struct Segment {
    /// Rows of the solve when it ends.
    end: u32,
    kind: Kind,
    wait: Wait,
}

/// Rows as they come, cut in the order of the solve.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    /// The place in its mixed segment of each entry's row; [`ASIDE`] and that for entries next to the diagonal in a chain.
    places: Vec<u8>,
}

impl Segments {
    pub(super) fn new(ptr: &[u32], idx: &[u32], triangle: Triangle) -> Self {
        let n = ptr.len() - 1;
        let rows = Strict { ptr, idx, triangle, n };
        let mut out = Self { segments: Vec::new(), places: vec![0; idx.len()] };
        let mut done = 0;
        // A run of twice as many rows has one of these rows and those after it.
        for probe in (0..n).step_by(SHORTEST) {
            if probe < done || !rows.moved(probe, probe + SHORTEST - 1) {
                continue;
            }
            let run = rows.run(probe, done);
            if run.len() < SHORTEST {
                continue;
            }
            out.mix(&rows, done, run.start);
            let wait = rows.wait(run.start);
            let ends = run.clone().step_by(LONGEST).skip(1).chain([run.end]);
            out.segments.extend(ends.map(|end| Segment { end: end as u32, kind: Kind::Run, wait }));
            done = run.end;
        }
        out.mix(&rows, done, n);
        out.segments.shrink_to_fit();
        out
    }

    /// Cuts rows `first..end` into mixed segments.
    fn mix(&mut self, rows: &Strict<'_>, mut first: usize, end: usize) {
        let mut wait = Wait::No;
        for k in first..end {
            // What row k waits for is done before row `ready`, but for the row just before where it waits for that.
            let [latest, second] = rows.latest(k);
            let of_last = rows.wait(k);
            let ready = if of_last == Wait::Chain { second } else { latest };
            let len = k - first;
            if len > 0 && (ready > first || len > 1 && of_last != wait || len == MIXED) {
                self.segments.push(Segment { end: k as u32, kind: Kind::Mixed, wait });
                first = k;
            }
            match k - first {
                0 => wait = Wait::No,
                1 => wait = of_last,
                _ => {}
            }
            let row = rows.entries(k);
            for e in row.clone() {
                self.places[e] = (k - first) as u8;
            }
            if k > first && wait == Wait::Chain {
                self.places[if rows.triangle == Triangle::Lower { row.end - 1 } else { row.start }] += ASIDE;
            }
        }
        if end > first {
            self.segments.push(Segment { end: end as u32, kind: Kind::Mixed, wait });
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.segments) + size_of_val(&*self.places)
    }

    /// z ← (I + N)⁻¹·D⁻¹·r, or of z where there is no r.
    pub(super) fn solve<T: Scalar>(&self, t: &SparseTriangle<T>, r: Option<&[T]>, z: &mut [T]) {
        pulp::Arch::new().dispatch(Solve { segments: self, t, r, z });
    }
}

/// The places of a strict triangle, by rows of the solve.
struct Strict<'p> {
    ptr: &'p [u32],
    idx: &'p [u32],
    triangle: Triangle,
    n: usize,
}

impl Strict<'_> {
    #[inline(always)]
    fn entries(&self, k: usize) -> Range<usize> {
        let i = self.triangle.row(k, self.n);
        self.ptr[i] as usize..self.ptr[i + 1] as usize
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
    fn wait(&self, k: usize) -> Wait {
        if k > 0 && self.latest(k)[0] == k { Wait::Chain } else { Wait::No }
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

    /// The rows from `first` on that are each the one before, moved along the diagonal, row `probe` among them; none where there
    /// are too many entries.
    fn run(&self, probe: usize, first: usize) -> Range<usize> {
        if self.entries(probe).len() > WIDEST + usize::from(self.wait(probe) == Wait::Chain) {
            return probe..probe;
        }
        let (mut start, mut end) = (probe, probe + 1);
        while start > first && self.moved(start - 1, start) {
            start -= 1;
        }
        while self.moved(end - 1, end) {
            end += 1;
        }
        start..end
    }
}

struct Solve<'s, T> {
    segments: &'s Segments,
    t: &'s SparseTriangle<T>,
    r: Option<&'s [T]>,
    z: &'s mut [T],
}

impl<T: Scalar> pulp::WithSimd for Solve<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Solve<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.t.triangle {
            Triangle::Lower => self.segments::<FUSED, true>(),
            Triangle::Upper => self.segments::<FUSED, false>(),
        }
    }

    #[inline(always)]
    fn segments<const FUSED: bool, const LOWER: bool>(self) {
        let Self { segments, t, r, z } = self;
        let n = z.len();
        let mut sums = [zero::<T>(); 256];
        let mut first = 0;
        for segment in &segments.segments {
            let end = segment.end as usize;
            let rows = if LOWER { first..end } else { n - end..n - first };
            let entries = t.ptr[rows.start] as usize..t.ptr[rows.end] as usize;
            let (idx, val) = (&t.idx[entries.clone()], &t.val[entries.clone()]);
            match segment.kind {
                Kind::Run => {
                    let own = &mut z[rows.clone()];
                    if let Some(r) = r {
                        own.copy_from_slice(&r[rows.clone()]);
                    }
                    t.scale(rows.clone(), own);
                    let cells = Cell::from_mut(&mut *z).as_slice_of_cells();
                    let columns = &idx[..idx.len() / rows.len()];
                    let run = Run { cells, first: rows.start, len: rows.len(), columns, val };
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
                Kind::Mixed => {
                    let own = &mut sums[..rows.len()];
                    own.copy_from_slice(&r.unwrap_or(z)[rows.clone()]);
                    t.scale(rows.clone(), own);
                    if !LOWER {
                        own.reverse();
                    }
                    // s ← D⁻¹·r − N·z, of z what earlier segments know
                    let entries = idx.iter().zip(val).zip(&segments.places[entries]);
                    if LOWER {
                        for ((&j, &v), &place) in entries {
                            let sum = &mut sums[place as usize];
                            *sum = mul_add::<T, FUSED>(-v, z[j as usize], *sum);
                        }
                    } else {
                        for ((&j, &v), &place) in entries.rev() {
                            let sum = &mut sums[place as usize];
                            *sum = mul_add::<T, FUSED>(-v, z[j as usize], *sum);
                        }
                    }
                    let (sums, ptr, z) = (&sums[..rows.len()], &t.ptr[rows.start..=rows.end], &mut z[rows.clone()]);
                    match segment.wait {
                        Wait::No => {
                            z.copy_from_slice(sums);
                            if !LOWER {
                                z.reverse();
                            }
                        }
                        // zᵢ ← sᵢ − nᵢ·z of the row before
                        Wait::Chain => {
                            let mut last = sums[0];
                            let len = z.len();
                            z[if LOWER { 0 } else { len - 1 }] = last;
                            for k in 1..len {
                                let i = if LOWER { k } else { len - 1 - k };
                                let nearest = if LOWER { ptr[i + 1] as usize - 1 } else { ptr[i] as usize };
                                last = mul_add::<T, FUSED>(-t.val[nearest], last, sums[k]);
                                z[i] = last;
                            }
                        }
                    }
                }
            }
            first = end;
        }
    }
}

/// A run of rows, the result of each row in place of its right-hand side.
struct Run<'r, T> {
    cells: &'r [Cell<T>],
    first: usize,
    len: usize,
    /// Of the first row in storage.
    columns: &'r [u32],
    val: &'r [T],
}

impl<T: Scalar> Run<'_, T> {
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
        // Rows 1 to 3 wait for the one before, 4 and 5 for row 0, 6 for 5 and 4.
        let (ptr, idx) = ([0, 0, 1, 2, 4, 5, 6, 8], [0, 1, 0, 2, 0, 0, 4, 5]);
        let Segments { segments, places } = Segments::new(&ptr, &idx, Triangle::Lower);
        let cuts: Vec<_> = segments.iter().map(|s| (s.end, s.kind, s.wait)).collect();
        assert_eq!(cuts, [(3, Kind::Mixed, Wait::Chain), (6, Kind::Mixed, Wait::No), (7, Kind::Mixed, Wait::No)]);
        assert_eq!(places, [ASIDE + 1, ASIDE + 2, 0, 0, 1, 2, 0, 0]);
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
        let cuts: Vec<_> =
            Segments::new(&ptr, &idx, Triangle::Lower).segments.iter().map(|s| (s.end, s.kind, s.wait)).collect();
        let run = |end| (end, Kind::Run, Wait::Chain);
        assert_eq!(cuts, [(4, Kind::Mixed, Wait::No), run(40), (41, Kind::Mixed, Wait::No), run(1065), run(2000)]);
    }
}
