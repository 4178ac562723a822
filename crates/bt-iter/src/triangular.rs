//! Sparse triangular solves, the kernel of all incomplete factorizations: row by row, or by level schedule for threads.
//!
//! Row by row the rows stay as they come, cut into segments of rows that wait for earlier segments and, all but the first or
//! none, for the row just before. What a segment takes from earlier ones is one loop over its entries, which knows nothing of
//! rows and has no branch that could be mispredicted; then the rows take from each other, by way of a register.
//!
//! Row i of a triangle waits for the rows that its entries name; the rows of one level wait for none of each other. By level
//! schedule rows are stored level by level, so that a level is a contiguous piece of the work vector that reads earlier
//! pieces only: threads share it without locks. E. Anderson, Y. Saad, Int. J. High Speed Comput. 1 (1989),
//! doi:10.1142/S0129053389000056. It is taken where three threads or more make the factors and half of the rows lie in levels
//! wide enough to be shared. A row is summed towards the diagonal in both: the same bits, whoever makes them and solves.
//!
//! Where there are many levels of few rows, Jacobi sweeps take their place: x₀ = D⁻¹·z, xₖ₊₁ = D⁻¹·(z − N·xₖ), all rows at once.
//! N is nilpotent: as many sweeps as there are levels, less one, are the solve itself, to the same bits; fewer are a fixed linear
//! operator near it. H. Anzt, E. Chow, J. Dongarra, Euro-Par 2015, LNCS 9233, 650–661, doi:10.1007/978-3-662-48096-0_50.
//!
//! Storage: for values of s bytes s + 5 bytes an entry, 4 a row, 8 a segment; by level schedule s + 4 an entry, 12 a row, 4 a
//! level. Cost: 2 flops an entry, and again for each sweep.

use std::ops::Range;

use bt_formats::{Scalar, zero};
use rayon::prelude::*;

/// Rows of a level from which on threads share it.
const PARALLEL: usize = 2048;
/// Threads from which on levels are made: by levels, with positions and permutations, a row costs about twice as much as in
/// segments.
const THREADS: usize = 3;
/// Rows of a segment, at most.
const SEGMENT: usize = 128;
/// Added to the places of entries that are not taken from earlier segments: sums that nobody asks for, one a row, since a
/// single one would make all rows wait for each other.
const ASIDE: u8 = 128;

/// Which triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Triangle {
    /// Entries left of the diagonal, rows from the first on.
    Lower,
    /// Entries right of the diagonal, rows from the last on.
    Upper,
}

/// A strict triangle in compressed rows: row i is `row_ptr[i]..row_ptr[i + 1]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<T> {
    pub ptr: Vec<u32>,
    pub idx: Vec<u32>,
    pub val: Vec<T>,
}

/// Whether rows of a segment wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    No,
    /// Each but the first for the one before it.
    Chain,
}

#[derive(Clone, Debug)]
struct Segment {
    /// Rows of the solve when it ends.
    end: u32,
    wait: Wait,
}

/// Rows as they come, cut in the order of the solve.
#[derive(Clone, Debug, Default)]
struct Segments {
    segments: Vec<Segment>,
    /// The place in its segment of each entry's row; [`ASIDE`] and that for entries next to the diagonal in a chain.
    places: Vec<u8>,
}

/// How rows are stored.
#[derive(Clone, Debug)]
enum Layout {
    /// The position of a row is its number.
    Natural(Segments),
    ByLevels(Levels),
}

/// Rows level by level.
#[derive(Clone, Debug)]
struct Levels {
    /// Row at each position, levels one after another.
    order: Vec<u32>,
    /// Position of each row.
    position: Vec<u32>,
    /// First position of each level, and n.
    starts: Vec<u32>,
}

/// A triangle I + N or D + N, N strict, ready to solve with.
#[derive(Clone, Debug)]
pub(crate) struct SparseTriangle<T> {
    triangle: Triangle,
    layout: Layout,
    ptr: Vec<u32>,
    /// Positions, not columns, in the order of the columns.
    pub idx: Vec<u32>,
    pub val: Vec<T>,
    /// Reciprocal diagonal by position; empty for a unit triangle.
    pub reciprocals: Vec<T>,
}

impl<T: Scalar> SparseTriangle<T> {
    /// From the strict part and, unless it is a unit triangle, the reciprocals of the diagonal.
    pub fn new(strict: Rows<T>, reciprocals: Option<Vec<T>>, triangle: Triangle) -> Self {
        let n = strict.ptr.len() - 1;
        let levels = if n >= PARALLEL && rayon::current_num_threads() >= THREADS {
            Levels::new(&strict.ptr, &strict.idx, triangle, PARALLEL)
        } else {
            None
        };
        Self::with_levels(levels, strict, reciprocals.unwrap_or_default(), triangle)
    }

    fn with_levels(levels: Option<Levels>, strict: Rows<T>, reciprocals: Vec<T>, triangle: Triangle) -> Self {
        let Some(levels) = levels else {
            let Rows { ptr, idx, val } = strict;
            let layout = Layout::Natural(Segments::new(&ptr, &idx, triangle));
            return Self { triangle, layout, ptr, idx, val, reciprocals };
        };
        let Levels { order, position, .. } = &levels;
        let (mut ptr, mut idx, mut val) =
            (vec![0], Vec::with_capacity(strict.idx.len()), Vec::with_capacity(strict.val.len()));
        for &i in order {
            let row = strict.ptr[i as usize] as usize..strict.ptr[i as usize + 1] as usize;
            idx.extend(strict.idx[row.clone()].iter().map(|&j| position[j as usize]));
            val.extend_from_slice(&strict.val[row]);
            ptr.push(idx.len() as u32);
        }
        let reciprocals =
            if reciprocals.is_empty() { reciprocals } else { order.iter().map(|&i| reciprocals[i as usize]).collect() };
        Self { triangle, layout: Layout::ByLevels(levels), ptr, idx, val, reciprocals }
    }

    fn levels(&self) -> Option<&Levels> {
        match &self.layout {
            Layout::Natural(_) => None,
            Layout::ByLevels(levels) => Some(levels),
        }
    }

    /// Position of row i.
    #[inline(always)]
    pub fn position(&self, i: usize) -> usize {
        self.levels().map_or(i, |levels| levels.position[i] as usize)
    }

    /// Row at position p.
    #[inline(always)]
    pub fn row_at(&self, p: usize) -> usize {
        self.levels().map_or(p, |levels| levels.order[p] as usize)
    }

    /// Places of the entries of the row at position `p`, in the order of their columns.
    #[inline(always)]
    pub fn row(&self, p: usize) -> Range<usize> {
        self.ptr[p] as usize..self.ptr[p + 1] as usize
    }

    /// z ← (D + N)⁻¹·r, or of z where there is no r, with a work vector of n.
    pub fn solve(&self, r: Option<&[T]>, z: &mut [T], work: &mut [T]) {
        match &self.layout {
            Layout::Natural(segments) => self.row_by_row(segments, r, z),
            Layout::ByLevels(levels) => self.by_levels(levels, r, z, work),
        }
    }

    fn row_by_row(&self, Segments { segments, places }: &Segments, r: Option<&[T]>, z: &mut [T]) {
        let n = z.len();
        let (mut sums, mut first) = ([zero::<T>(); 256], 0);
        for segment in segments {
            let end = segment.end as usize;
            let own = &mut sums[..end - first];
            // s ← r − N·z, of z what earlier segments know
            let rows = match self.triangle {
                Triangle::Lower => first..end,
                Triangle::Upper => n - end..n - first,
            };
            own.copy_from_slice(&r.unwrap_or(z)[rows.clone()]);
            if self.triangle == Triangle::Upper {
                own.reverse();
            }
            let entries = self.ptr[rows.start] as usize..self.ptr[rows.end] as usize;
            let entries = self.idx[entries.clone()].iter().zip(&self.val[entries.clone()]).zip(&places[entries]);
            let mut take = |((&j, &v), &place): ((&u32, &T), &u8)| sums[place as usize] -= v * z[j as usize];
            match self.triangle {
                Triangle::Lower => entries.for_each(&mut take),
                Triangle::Upper => entries.rev().for_each(&mut take),
            }
            // zᵢ ← (sᵢ − nᵢ·z of the row before)/dᵢ
            let mut last = zero::<T>();
            for k in first..end {
                let i = self.triangle.row(k, n);
                let mut value = sums[k - first];
                if segment.wait == Wait::Chain && k > first {
                    value -= self.val[self.triangle.nearest(&self.ptr, i)] * last;
                }
                if let Some(&reciprocal) = self.reciprocals.get(i) {
                    value *= reciprocal;
                }
                z[i] = value;
                last = value;
            }
            first = end;
        }
    }

    fn by_levels(&self, levels: &Levels, r: Option<&[T]>, z: &mut [T], work: &mut [T]) {
        let parallel = rayon::current_num_threads() > 1;
        if parallel && rayon::current_thread_index().is_none() {
            // Into the pool once, and not again for every level.
            return rayon::join(|| self.by_levels(levels, r, z, work), || ()).0;
        }
        permute(parallel, r.unwrap_or(z), &levels.order, work);
        for level in levels.starts.windows(2) {
            let (start, end) = (level[0] as usize, level[1] as usize);
            let (done, rest) = work.split_at_mut(start);
            let own = &mut rest[..end - start];
            if parallel && own.len() >= PARALLEL {
                let size = own.len().div_ceil(rayon::current_num_threads()).max(PARALLEL / 4);
                own.par_chunks_mut(size).enumerate().for_each(|(c, chunk)| self.rows(start + c * size, done, chunk));
            } else {
                self.rows(start, done, own);
            }
        }
        permute(parallel, work, &levels.position, z);
    }

    /// Positions from `first` on: each needs only what is in `done`.
    fn rows(&self, first: usize, done: &[T], out: &mut [T]) {
        for (p, w) in (first..).zip(out) {
            let row = self.row(p);
            let entries = self.idx[row.clone()].iter().zip(&self.val[row]);
            *w = match self.triangle {
                Triangle::Lower => entries.fold(*w, |w, (&j, &v)| w - v * done[j as usize]),
                Triangle::Upper => entries.rev().fold(*w, |w, (&j, &v)| w - v * done[j as usize]),
            };
            if let Some(&reciprocal) = self.reciprocals.get(p) {
                *w *= reciprocal;
            }
        }
    }

    /// z ← what so many Jacobi sweeps make of (D + N)⁻¹·z, with three work vectors of n.
    pub fn sweep(&self, sweeps: usize, z: &mut [T], work: [&mut [T]; 3]) {
        let [rhs, mut x, mut next] = work;
        let parallel = rayon::current_num_threads() > 1 && rhs.len() >= PARALLEL;
        match self.levels() {
            Some(levels) => permute(parallel, z, &levels.order, rhs),
            None => rhs.copy_from_slice(z),
        }
        // x ← D⁻¹·z
        for (p, (x, w)) in x.iter_mut().zip(&*rhs).enumerate() {
            *x = self.reciprocals.get(p).map_or(*w, |&reciprocal| *w * reciprocal);
        }
        for _ in 0..sweeps {
            // x ← D⁻¹·(z − N·x)
            next.copy_from_slice(rhs);
            if parallel {
                next.par_chunks_mut(PARALLEL / 4)
                    .enumerate()
                    .for_each(|(c, chunk)| self.rows(c * (PARALLEL / 4), x, chunk));
            } else {
                self.rows(0, x, next);
            }
            std::mem::swap(&mut x, &mut next);
        }
        match self.levels() {
            Some(levels) => permute(parallel, x, &levels.position, z),
            None => z.copy_from_slice(x),
        }
    }

    /// Levels of rows that wait for none of each other. O(nnz) where rows are not stored by level.
    pub fn n_levels(&self) -> usize {
        match self.levels() {
            Some(levels) => levels.starts.len() - 1,
            None => level_of_rows(&self.ptr, &self.idx, self.triangle).1,
        }
    }

    pub fn nnz(&self) -> usize {
        self.val.len() + self.reciprocals.len()
    }

    pub fn bytes(&self) -> usize {
        let layout = match &self.layout {
            Layout::Natural(Segments { segments, places }) => size_of_val(&**segments) + size_of_val(&**places),
            Layout::ByLevels(Levels { order, position, starts }) => {
                [order, position, starts].map(|v| size_of_val(&**v)).iter().sum()
            }
        };
        let own = size_of_val(&*self.ptr) + size_of_val(&*self.idx);
        layout + own + size_of_val(&*self.val) + size_of_val(&*self.reciprocals)
    }
}

impl Triangle {
    /// Row k of the solve.
    #[inline(always)]
    fn row(self, k: usize, n: usize) -> usize {
        match self {
            Self::Lower => k,
            Self::Upper => n - 1 - k,
        }
    }

    /// The entry of row i, which has some, next to the diagonal.
    #[inline(always)]
    fn nearest(self, ptr: &[u32], i: usize) -> usize {
        match self {
            Self::Lower => ptr[i + 1] as usize - 1,
            Self::Upper => ptr[i] as usize,
        }
    }
}

impl Segments {
    fn new(ptr: &[u32], idx: &[u32], triangle: Triangle) -> Self {
        let n = ptr.len() - 1;
        let mut out = Self { segments: Vec::new(), places: vec![0; idx.len()] };
        let (mut first, mut wait) = (0, Wait::No);
        for k in 0..n {
            let i = triangle.row(k, n);
            let row = ptr[i] as usize..ptr[i + 1] as usize;
            // Rows of the solve that this one waits for, the latest first.
            let waits = |back: usize| {
                (back < row.len()).then(|| {
                    let e = if triangle == Triangle::Lower { row.end - 1 - back } else { row.start + back };
                    triangle.row(idx[e] as usize, n)
                })
            };
            let of_last = if waits(0).is_some_and(|w| w + 1 == k) { Wait::Chain } else { Wait::No };
            let other = waits(usize::from(of_last == Wait::Chain));
            let fits = match k - first {
                0 => true,
                1 => other.is_none_or(|w| w < first),
                len => other.is_none_or(|w| w < first) && of_last == wait && len < SEGMENT,
            };
            if !fits {
                out.segments.push(Segment { end: k as u32, wait });
                first = k;
            }
            match k - first {
                0 => wait = Wait::No,
                1 => wait = of_last,
                _ => {}
            }
            out.places[row].fill((k - first) as u8);
            if k > first && wait == Wait::Chain {
                out.places[triangle.nearest(ptr, i)] += ASIDE;
            }
        }
        if n > 0 {
            out.segments.push(Segment { end: n as u32, wait });
        }
        out.segments.shrink_to_fit();
        out
    }
}

impl Levels {
    /// The schedule, if at least half of the rows lie in levels of at least `wide` rows.
    fn new(ptr: &[u32], idx: &[u32], triangle: Triangle, wide: usize) -> Option<Self> {
        let (level, count) = level_of_rows(ptr, idx, triangle);
        let n = level.len();
        let mut starts = vec![0u32; count + 1];
        for &l in &level {
            starts[l as usize + 1] += 1;
        }
        if 2 * starts.iter().filter(|&&rows| rows as usize >= wide).map(|&rows| rows as usize).sum::<usize>() < n {
            return None;
        }
        for l in 1..starts.len() {
            starts[l] += starts[l - 1];
        }
        let mut next = starts.clone();
        let (mut order, mut position) = (vec![0u32; n], vec![0u32; n]);
        for i in 0..n {
            let place = &mut next[level[i] as usize];
            position[i] = *place;
            order[*place as usize] = i as u32;
            *place += 1;
        }
        Some(Self { order, position, starts })
    }
}

/// The level of each row, and their number.
fn level_of_rows(ptr: &[u32], idx: &[u32], triangle: Triangle) -> (Vec<u32>, usize) {
    let n = ptr.len() - 1;
    // level(i) = 1 + max level of the rows it waits for
    let mut level = vec![0u32; n];
    let mut count = 0;
    let mut visit = |i: usize| {
        let row = &idx[ptr[i] as usize..ptr[i + 1] as usize];
        let own = row.iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
        level[i] = own;
        count = count.max(own as usize + 1);
    };
    match triangle {
        Triangle::Lower => (0..n).for_each(&mut visit),
        Triangle::Upper => (0..n).rev().for_each(&mut visit),
    }
    (level, count)
}

/// yᵢ ← x at place i.
fn permute<T: Scalar>(parallel: bool, x: &[T], places: &[u32], y: &mut [T]) {
    let take = |y: &mut T, &i: &u32| *y = x[i as usize];
    if parallel {
        y.par_iter_mut().zip(places).with_min_len(4 * PARALLEL).for_each(|(y, i)| take(y, i));
    } else {
        y.iter_mut().zip(places).for_each(|(y, i)| take(y, i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_dependencies() {
        // rows: 0 –, 1 ← 0, 2 –, 3 ← 1, 2
        let (ptr, idx) = ([0, 0, 1, 1, 3], [0, 1, 2]);
        let Levels { order, position, starts } = Levels::new(&ptr, &idx, Triangle::Lower, 1).unwrap();
        assert_eq!((order, position, starts), (vec![0, 2, 1, 3], vec![0, 2, 1, 3], vec![0, 2, 3, 4]));
        // Half of the rows in levels of two.
        assert!(Levels::new(&ptr, &idx, Triangle::Lower, 2).is_some());
        assert!(Levels::new(&ptr, &idx, Triangle::Lower, 3).is_none());
    }

    #[test]
    fn segments_are_cut_where_rows_wait() {
        // Rows 1 to 3 wait for the one before, 4 and 5 for row 0, 6 for 5 and 4.
        let (ptr, idx) = ([0, 0, 1, 2, 4, 5, 6, 8], [0, 1, 0, 2, 0, 0, 4, 5]);
        let Segments { segments, places } = Segments::new(&ptr, &idx, Triangle::Lower);
        let cuts: Vec<_> = segments.iter().map(|s| (s.end, s.wait)).collect();
        assert_eq!(cuts, [(3, Wait::Chain), (6, Wait::No), (7, Wait::No)]);
        assert_eq!(places, [ASIDE + 1, ASIDE + 2, 0, 0, 1, 2, 0, 0]);
    }

    #[test]
    fn all_layouts_have_the_same_bits() {
        let n = 900usize;
        for triangle in [Triangle::Lower, Triangle::Upper] {
            // Long chains, rows that wait for nobody, and some that wait for any.
            let mut strict = Rows { ptr: vec![0], ..Rows::default() };
            for i in 0..n {
                for j in 0..n {
                    let (d, strictly) = (i.abs_diff(j), (j < i) == (triangle == Triangle::Lower) && i != j);
                    let beside = d == 1 && (i / 300 != 1 || i % 7 < 2);
                    if strictly && (beside || d == 20 && i % 3 > 0 || (i * 31 + j * 17) % 997 < i / 300) {
                        strict.idx.push(j as u32);
                        strict.val.push(((i + 3 * j) % 11) as f64 / 16.0 - 0.3);
                    }
                }
                strict.ptr.push(strict.idx.len() as u32);
            }
            let reciprocals: Vec<f64> = (0..n).map(|i| 0.5 + (i % 5) as f64 / 8.0).collect();
            let r: Vec<f64> = (0..n).map(|i| (i % 13) as f64 - 6.0).collect();
            let solved = [None, Levels::new(&strict.ptr, &strict.idx, triangle, 1)].map(|levels| {
                let t = SparseTriangle::with_levels(levels, strict.clone(), reciprocals.clone(), triangle);
                let (mut z, mut in_place, mut work) = (vec![0.0; n], r.clone(), vec![0.0; n]);
                t.solve(Some(&r), &mut z, &mut work);
                t.solve(None, &mut in_place, &mut work);
                assert!(z == in_place);
                z
            });
            assert!(solved[0] == solved[1]);
            // (D + N)·z = r
            for i in 0..n {
                let row = strict.ptr[i] as usize..strict.ptr[i + 1] as usize;
                let terms = strict.idx[row.clone()].iter().zip(&strict.val[row]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), (&j, v)| {
                    let term = v * solved[0][j as usize];
                    (sum + term, size + term.abs())
                });
                let own = solved[0][i] / reciprocals[i];
                assert!((own + sum - r[i]).abs() <= 1e-14 * (own.abs() + size + r[i].abs()), "{triangle:?} {i}");
            }
        }
    }

    #[test]
    fn both_layouts_solve() {
        let lower = Rows { ptr: vec![0, 0, 1, 1, 3], idx: vec![0, 1, 2], val: vec![2.0, 3.0, 4.0] };
        let upper = Rows { ptr: vec![0, 2, 3, 3], idx: vec![1, 2, 2], val: vec![1.0, 1.0, 1.0] };
        for wide in [1, 9] {
            let levels = Levels::new(&lower.ptr, &lower.idx, Triangle::Lower, wide);
            assert_eq!(levels.is_some(), wide == 1);
            let t = SparseTriangle::with_levels(levels, lower.clone(), vec![], Triangle::Lower);
            let mut z = [0.0; 4];
            t.solve(Some(&[1.0, 5.0, 1.0, 20.0]), &mut z, &mut [0.0; 4]);
            // 5 − 2·1 = 3;  20 − 3·3 − 4·1 = 7
            assert_eq!((z, t.n_levels()), ([1.0, 3.0, 1.0, 7.0], 3));
            let levels = Levels::new(&upper.ptr, &upper.idx, Triangle::Upper, wide);
            let t = SparseTriangle::with_levels(levels, upper.clone(), vec![0.5, 0.5, 0.25], Triangle::Upper);
            let mut z = [6.0, 5.0, 4.0];
            t.solve(None, &mut z, &mut [0.0; 3]);
            // 4/4 = 1;  (5 − 1)/2 = 2;  (6 − 2 − 1)/2
            assert_eq!((z, t.n_levels()), ([1.5, 2.0, 1.0], 3));
        }
    }
}
