//! Sparse triangular solves, the kernel of all incomplete factorizations: row by row, or by level schedule for threads.
//!
//! Row by row the rows stay as they come, cut into segments: `segments.rs`. Threads share them block by block where a row reaches
//! back far enough, and follow each other closely enough: `pipeline.rs`.
//!
//! Row i of a triangle waits for the rows that its entries name; the rows of one level wait for none of each other. By level
//! schedule rows are stored level by level, so that a level is a contiguous piece of the work vector that reads earlier
//! pieces only: threads share it without locks. E. Anderson, Y. Saad, Int. J. High Speed Comput. 1 (1989),
//! doi:10.1142/S0129053389000056. It is taken where blocks are no help, three threads or more make the factors and half of the rows
//! lie in levels wide enough to be shared. A row is summed towards the diagonal in all of them: the same bits, whoever makes them
//! and solves.
//!
//! Where there are many levels of few rows, Jacobi sweeps take their place: x₀ = D⁻¹·z, xₖ₊₁ = D⁻¹·z − N·xₖ, all rows at once.
//! N is nilpotent: as many sweeps as there are levels, less one, are the solve itself, to the same bits; fewer are a fixed linear
//! operator near it. H. Anzt, E. Chow, J. Dongarra, Euro-Par 2015, LNCS 9233, 650–661, doi:10.1007/978-3-662-48096-0_50.
//!
//! Storage: for values of s bytes s + 5 bytes an entry and one entry more, 4 a row, 8 a segment, 12 where threads share them; by level schedule
//! s + 4 an entry, 12 a row, 4 a level. Cost: 2 flops an entry, and again for each sweep.

mod pipeline;
mod segments;

use std::ops::Range;

use bt_formats::{Scalar, mul_add, zero};
use rayon::prelude::*;

use segments::{Segments, Strict, Values};

/// Rows of a level from which on threads share it.
const PARALLEL: usize = 2048;
/// Threads from which on levels are made: by levels, with positions and permutations, a row costs about twice as much as in
/// segments.
const THREADS: usize = 3;
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

/// A triangle I + N or D·(I + N), N strict, ready to solve with: divided by the diagonal before, a row waits for the one before by
/// no more than a product and a difference.
#[derive(Clone, Debug)]
pub(crate) struct SparseTriangle<T> {
    triangle: Triangle,
    layout: Layout,
    ptr: Vec<u32>,
    /// Positions, not columns, in the order of the columns. They stay as they are: `layout` says who may solve for which rows at the same
    /// time, and has been made from them.
    idx: Vec<u32>,
    val: Vec<T>,
    /// Reciprocal diagonal by position; empty for a unit triangle.
    reciprocals: Vec<T>,
}

impl<T: Scalar> SparseTriangle<T> {
    /// From the strict part and, unless it is a unit triangle, the reciprocals of the diagonal.
    pub fn new(strict: Rows<T>, reciprocals: Option<Vec<T>>, triangle: Triangle) -> Self {
        let (n, threads) = (strict.ptr.len() - 1, rayon::current_num_threads());
        let reciprocals = reciprocals.unwrap_or_default();
        let rows = Strict::new(&strict.ptr, &strict.idx, triangle);
        if let Some(segments) = Segments::shared(&rows, threads) {
            return Self::in_segments(segments, strict, reciprocals, triangle);
        }
        let wide = n >= PARALLEL && threads >= THREADS;
        match wide.then(|| Levels::new(&strict.ptr, &strict.idx, triangle, PARALLEL)).flatten() {
            Some(levels) => Self::in_levels(levels, &strict, reciprocals, triangle),
            None => Self::in_segments(Segments::new(&rows), strict, reciprocals, triangle),
        }
    }

    fn in_segments(segments: Segments, strict: Rows<T>, reciprocals: Vec<T>, triangle: Triangle) -> Self {
        let Rows { ptr, mut idx, mut val } = strict;
        // An entry of no row, for those that a narrow row lacks. It is subtracted first: −(−0)·z keeps the sign of z = −0, too.
        idx.reserve_exact(1);
        idx.push(0);
        val.reserve_exact(1);
        val.push(-zero::<T>());
        Self { triangle, layout: Layout::Natural(segments), ptr, idx, val, reciprocals }
    }

    fn in_levels(levels: Levels, strict: &Rows<T>, reciprocals: Vec<T>, triangle: Triangle) -> Self {
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

    /// Positions of the columns of the entries.
    #[inline(always)]
    pub fn positions(&self) -> &[u32] {
        &self.idx
    }

    /// The entries.
    #[inline(always)]
    pub fn values(&self) -> &[T] {
        &self.val
    }

    /// The entries, to be given other values in their places.
    #[inline(always)]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.val
    }

    /// The reciprocal diagonal by position; empty for a unit triangle.
    #[inline(always)]
    pub fn reciprocals(&self) -> &[T] {
        &self.reciprocals
    }

    /// The reciprocal diagonal, to be given other values.
    #[inline(always)]
    pub fn reciprocals_mut(&mut self) -> &mut [T] {
        &mut self.reciprocals
    }

    /// z ← (I + N)⁻¹·D⁻¹·r, or of z where there is no r, with a work vector of n.
    pub fn solve(&mut self, r: Option<&[T]>, z: &mut [T], work: &mut [T]) {
        let Self { triangle, layout, ptr, idx, val, reciprocals } = self;
        match layout {
            Layout::Natural(segments) => {
                segments.solve(&Values { triangle: *triangle, ptr, idx, val, reciprocals }, r, z);
            }
            Layout::ByLevels(_) => self.by_levels(r, z, work),
        }
    }

    fn by_levels(&self, r: Option<&[T]>, z: &mut [T], work: &mut [T]) {
        let Some(levels) = self.levels() else { return };
        let parallel = rayon::current_num_threads() > 1;
        if parallel && rayon::current_thread_index().is_none() {
            // Into the pool once, and not again for every level.
            return rayon::join(|| self.by_levels(r, z, work), || ()).0;
        }
        permute(parallel, r.unwrap_or(z), &levels.order, work);
        self.scale(work);
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

    /// w ← D⁻¹·w, by position.
    fn scale(&self, w: &mut [T]) {
        for (w, &reciprocal) in w.iter_mut().zip(&self.reciprocals) {
            *w *= reciprocal;
        }
    }

    /// Positions from `first` on: each needs only what is in `done`.
    fn rows(&self, first: usize, done: &[T], out: &mut [T]) {
        bt_simd::dispatch(LevelRows { t: self, first, done, out });
    }

    /// z ← what so many Jacobi sweeps make of (I + N)⁻¹·D⁻¹·z, with three work vectors of n.
    pub fn sweep(&self, sweeps: usize, z: &mut [T], work: [&mut [T]; 3]) {
        let [rhs, mut x, mut next] = work;
        let parallel = rayon::current_num_threads() > 1 && rhs.len() >= PARALLEL;
        match self.levels() {
            Some(levels) => permute(parallel, z, &levels.order, rhs),
            None => rhs.copy_from_slice(z),
        }
        self.scale(rhs);
        x.copy_from_slice(rhs);
        for _ in 0..sweeps {
            // x ← D⁻¹·z − N·x
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
        self.ptr[self.ptr.len() - 1] as usize + self.reciprocals.len()
    }

    pub fn bytes(&self) -> usize {
        let layout = match &self.layout {
            Layout::Natural(segments) => segments.bytes(),
            Layout::ByLevels(Levels { order, position, starts }) => {
                [order, position, starts].map(|v| size_of_val(&**v)).iter().sum()
            }
        };
        let own = size_of_val(&*self.ptr) + size_of_val(&*self.idx);
        layout + own + size_of_val(&*self.val) + size_of_val(&*self.reciprocals)
    }
}

/// Rows that wait for none of each other.
struct LevelRows<'l, T> {
    t: &'l SparseTriangle<T>,
    first: usize,
    done: &'l [T],
    out: &'l mut [T],
}

impl<T: Scalar> pulp::WithSimd for LevelRows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> LevelRows<'_, T> {
    /// wᵢ ← wᵢ − Σ nᵢⱼ·zⱼ
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { t, first, done, out } = self;
        for (p, w) in (first..).zip(out) {
            let row = t.row(p);
            let entries = t.idx[row.clone()].iter().zip(&t.val[row]);
            if t.triangle == Triangle::Lower {
                for (&j, &v) in entries {
                    *w = mul_add::<T, FUSED>(-v, done[j as usize], *w);
                }
            } else {
                for (&j, &v) in entries.rev() {
                    *w = mul_add::<T, FUSED>(-v, done[j as usize], *w);
                }
            }
        }
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

    fn made(
        levels: Option<Levels>,
        strict: Rows<f64>,
        reciprocals: Vec<f64>,
        triangle: Triangle,
    ) -> SparseTriangle<f64> {
        if let Some(levels) = levels {
            return SparseTriangle::in_levels(levels, &strict, reciprocals, triangle);
        }
        let segments = Segments::new(&Strict::new(&strict.ptr, &strict.idx, triangle));
        SparseTriangle::in_segments(segments, strict, reciprocals, triangle)
    }

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
            check_layouts(&strict, triangle);
        }
    }

    #[test]
    fn runs_have_the_same_bits() {
        let n = 480usize;
        for triangle in [Triangle::Lower, Triangle::Upper] {
            // Forty rows of every width, chains or not, that take from far and near.
            let mut strict = Rows { ptr: vec![0], ..Rows::default() };
            for i in 0..n {
                let k = triangle.row(i, n);
                let (width, chain) = (k / 40 % 6, k / 40 >= 6);
                let near = [1, 2, 5, 17, 41, 60].into_iter().skip(usize::from(!chain)).take(width + usize::from(chain));
                let mut row: Vec<_> = near.filter(|&d| d <= k).map(|d| triangle.row(k - d, n) as u32).collect();
                row.sort_unstable();
                strict.val.extend(row.iter().map(|&j| ((i + 3 * j as usize) % 11) as f64 / 16.0 - 0.3));
                strict.idx.extend(row);
                strict.ptr.push(strict.idx.len() as u32);
            }
            check_layouts(&strict, triangle);
        }
    }

    #[test]
    fn narrow_rows_have_the_same_bits() {
        let (n, k) = (320usize, 16);
        for triangle in [Triangle::Lower, Triangle::Upper] {
            // Chains of sixteen rows, each with none, one or two entries in the chain before.
            let mut strict = Rows { ptr: vec![0], ..Rows::default() };
            for i in 0..n {
                let place = triangle.row(i, n);
                let far = [k + 1, k - 1].into_iter().filter(|d| (place * 7 + d) % 3 > 0);
                let near = (place % k > 0).then_some(1);
                let mut row: Vec<_> =
                    far.chain(near).filter(|&d| d <= place).map(|d| triangle.row(place - d, n) as u32).collect();
                row.sort_unstable();
                strict.val.extend(row.iter().map(|&j| ((i + 3 * j as usize) % 11) as f64 / 16.0 - 0.3));
                strict.idx.extend(row);
                strict.ptr.push(strict.idx.len() as u32);
            }
            check_layouts(&strict, triangle);
        }
    }

    fn check_layouts(strict: &Rows<f64>, triangle: Triangle) {
        let n = strict.ptr.len() - 1;
        let reciprocals: Vec<f64> = (0..n).map(|i| 0.5 + (i % 5) as f64 / 8.0).collect();
        let r: Vec<f64> = (0..n).map(|i| (i % 13) as f64 - 6.0).collect();
        let solved = [None, Levels::new(&strict.ptr, &strict.idx, triangle, 1)].map(|levels| {
            let mut t = made(levels, strict.clone(), reciprocals.clone(), triangle);
            let (mut z, mut in_place, mut work) = (vec![0.0; n], r.clone(), vec![0.0; n]);
            t.solve(Some(&r), &mut z, &mut work);
            t.solve(None, &mut in_place, &mut work);
            assert!(z == in_place);
            z
        });
        assert!(solved[0] == solved[1]);
        // D·(I + N)·z = r
        for i in 0..n {
            let row = strict.ptr[i] as usize..strict.ptr[i + 1] as usize;
            let terms = strict.idx[row.clone()].iter().zip(&strict.val[row]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), (&j, v)| {
                let term = v * solved[0][j as usize];
                (sum + term, size + term.abs())
            });
            let scaled = r[i] * reciprocals[i];
            let error = (solved[0][i] + sum - scaled).abs();
            assert!(error <= 1e-14 * (solved[0][i].abs() + size + scaled.abs()), "{triangle:?} {i}");
        }
    }

    #[test]
    fn both_layouts_solve() {
        let lower = Rows { ptr: vec![0, 0, 1, 1, 3], idx: vec![0, 1, 2], val: vec![2.0, 3.0, 4.0] };
        let upper = Rows { ptr: vec![0, 2, 3, 3], idx: vec![1, 2, 2], val: vec![1.0, 1.0, 1.0] };
        for wide in [1, 9] {
            let levels = Levels::new(&lower.ptr, &lower.idx, Triangle::Lower, wide);
            assert_eq!(levels.is_some(), wide == 1);
            let mut t = made(levels, lower.clone(), vec![], Triangle::Lower);
            let mut z = [0.0; 4];
            t.solve(Some(&[1.0, 5.0, 1.0, 20.0]), &mut z, &mut [0.0; 4]);
            // 5 − 2·1 = 3;  20 − 3·3 − 4·1 = 7
            assert_eq!((z, t.n_levels()), ([1.0, 3.0, 1.0, 7.0], 3));
            let levels = Levels::new(&upper.ptr, &upper.idx, Triangle::Upper, wide);
            let mut t = made(levels, upper.clone(), vec![0.5, 0.5, 0.25], Triangle::Upper);
            let mut z = [6.0, 5.0, 4.0];
            t.solve(None, &mut z, &mut [0.0; 3]);
            // 4/4 = 1;  5/2 − 1 = 1.5;  6/2 − 1.5 − 1
            assert_eq!((z, t.n_levels()), ([0.5, 1.5, 1.0], 3));
        }
    }
}
