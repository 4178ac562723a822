//! Sparse triangular solves by level schedule, the kernel of all incomplete factorizations.
//!
//! Row i of a triangle waits for the rows that its entries name; the rows of one level wait for none of each other. Rows
//! are stored level by level, so that a level is a contiguous piece of the work vector that reads earlier pieces only:
//! threads share it without locks, and each row is summed in the same order by any number of them.
//! E. Anderson, Y. Saad, Int. J. High Speed Comput. 1 (1989), doi:10.1142/S0129053389000056.
//!
//! Where there are many levels of few rows, Jacobi sweeps take their place: x₀ = D⁻¹·z, xₖ₊₁ = D⁻¹·(z − N·xₖ), all rows at once.
//! N is nilpotent: as many sweeps as there are levels, less one, are the solve itself, to the same bits; fewer are a fixed linear
//! operator near it. H. Anzt, E. Chow, J. Dongarra, Euro-Par 2015, LNCS 9233, 650–661, doi:10.1007/978-3-662-48096-0_50.
//!
//! Storage: s + 4 bytes an entry for values of s bytes, 12 bytes a row, 4 a level. Cost: 2 flops an entry, and again for each sweep.

use bt_formats::{Scalar, zero};
use rayon::prelude::*;

/// Rows of a level from which on threads share it.
const PARALLEL: usize = 2048;

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

/// A triangle I + N or D + N, N strict, ready to solve with.
#[derive(Clone, Debug)]
pub(crate) struct LevelTriangle<T> {
    /// Row at each position, levels one after another.
    pub order: Vec<u32>,
    /// Position of each row.
    pub position: Vec<u32>,
    /// First position of each level, and n.
    levels: Vec<u32>,
    ptr: Vec<u32>,
    /// Positions, not columns.
    pub idx: Vec<u32>,
    pub val: Vec<T>,
    /// Reciprocal diagonal by position; empty for a unit triangle.
    pub reciprocals: Vec<T>,
}

impl<T: Scalar> LevelTriangle<T> {
    /// From the strict part and, unless it is a unit triangle, the reciprocals of the diagonal.
    pub fn new(strict: &Rows<T>, reciprocals: Option<&[T]>, triangle: Triangle) -> Self {
        let n = strict.ptr.len() - 1;
        let row = |i: usize| strict.ptr[i] as usize..strict.ptr[i + 1] as usize;
        // level(i) = 1 + max level of the rows it waits for
        let mut level = vec![0u32; n];
        let mut count = 0;
        let mut visit = |i: usize| {
            let own = strict.idx[row(i)].iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
            level[i] = own;
            count = count.max(own + 1);
        };
        match triangle {
            Triangle::Lower => (0..n).for_each(&mut visit),
            Triangle::Upper => (0..n).rev().for_each(&mut visit),
        }
        let mut levels = vec![0u32; count as usize + 1];
        for &l in &level {
            levels[l as usize + 1] += 1;
        }
        for l in 1..levels.len() {
            levels[l] += levels[l - 1];
        }
        let mut next = levels.clone();
        let (mut order, mut position) = (vec![0u32; n], vec![0u32; n]);
        for i in 0..n {
            let place = &mut next[level[i] as usize];
            position[i] = *place;
            order[*place as usize] = i as u32;
            *place += 1;
        }
        let mut out = Self {
            order,
            position,
            levels,
            ptr: Vec::with_capacity(n + 1),
            idx: Vec::with_capacity(strict.idx.len()),
            val: Vec::with_capacity(strict.val.len()),
            reciprocals: Vec::new(),
        };
        out.ptr.push(0);
        for p in 0..n {
            let i = out.order[p] as usize;
            for e in row(i) {
                out.idx.push(out.position[strict.idx[e] as usize]);
                out.val.push(strict.val[e]);
            }
            out.ptr.push(out.idx.len() as u32);
        }
        if let Some(reciprocals) = reciprocals {
            out.reciprocals = out.order.iter().map(|&i| reciprocals[i as usize]).collect();
        }
        out
    }

    /// Places of the entries of the row at position `p`, in the order of their columns.
    pub fn row(&self, p: usize) -> std::ops::Range<usize> {
        self.ptr[p] as usize..self.ptr[p + 1] as usize
    }

    /// z ← (D + N)⁻¹·z with a work vector of n.
    pub fn solve(&self, z: &mut [T], work: &mut [T]) {
        let parallel = z.len() >= PARALLEL && rayon::current_num_threads() > 1;
        if parallel && rayon::current_thread_index().is_none() {
            // Into the pool once, and not again for every level.
            return rayon::join(|| self.solve(z, work), || ()).0;
        }
        permute(parallel, z, &self.order, work);
        for l in 0..self.levels.len() - 1 {
            let (start, end) = (self.levels[l] as usize, self.levels[l + 1] as usize);
            let (done, rest) = work.split_at_mut(start);
            let own = &mut rest[..end - start];
            if parallel && own.len() >= PARALLEL {
                let size = own.len().div_ceil(rayon::current_num_threads()).max(PARALLEL / 4);
                own.par_chunks_mut(size).enumerate().for_each(|(c, chunk)| self.rows(start + c * size, done, chunk));
            } else {
                self.rows(start, done, own);
            }
        }
        permute(parallel, work, &self.position, z);
    }

    /// Positions from `first` on: each needs only what is in `done`.
    fn rows(&self, first: usize, done: &[T], out: &mut [T]) {
        for (p, w) in (first..).zip(out) {
            let row = self.row(p);
            let mut sum = zero::<T>();
            for (&j, &v) in self.idx[row.clone()].iter().zip(&self.val[row]) {
                sum += v * done[j as usize];
            }
            *w -= sum;
            if let Some(&reciprocal) = self.reciprocals.get(p) {
                *w *= reciprocal;
            }
        }
    }

    /// z ← what so many Jacobi sweeps make of (D + N)⁻¹·z, with three work vectors of n.
    pub fn sweep(&self, sweeps: usize, z: &mut [T], work: [&mut [T]; 3]) {
        let [rhs, mut x, mut next] = work;
        // x ← D⁻¹·z
        for (p, (w, x)) in rhs.iter_mut().zip(&mut *x).enumerate() {
            *w = z[self.order[p] as usize];
            *x = self.reciprocals.get(p).map_or(*w, |&reciprocal| *w * reciprocal);
        }
        let parallel = rayon::current_num_threads() > 1 && rhs.len() >= PARALLEL;
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
        permute(parallel, x, &self.position, z);
    }

    pub fn nnz(&self) -> usize {
        self.val.len() + self.reciprocals.len()
    }

    pub fn n_levels(&self) -> usize {
        self.levels.len() - 1
    }

    pub fn bytes(&self) -> usize {
        [&self.order, &self.position, &self.levels, &self.ptr, &self.idx]
            .map(|v| size_of_val(&**v))
            .iter()
            .sum::<usize>()
            + size_of_val(&*self.val)
            + size_of_val(&*self.reciprocals)
    }
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
        let strict = Rows { ptr: vec![0, 0, 1, 1, 3], idx: vec![0, 1, 2], val: vec![2.0, 3.0, 4.0] };
        let t = LevelTriangle::new(&strict, None, Triangle::Lower);
        assert_eq!((t.n_levels(), &t.order[..], &t.levels[..]), (3, &[0, 2, 1, 3][..], &[0, 2, 3, 4][..]));
        let mut z = [1.0, 5.0, 1.0, 20.0];
        t.solve(&mut z, &mut [0.0; 4]);
        // 5 − 2·1 = 3;  20 − 3·3 − 4·1 = 7
        assert_eq!(z, [1.0, 3.0, 1.0, 7.0]);
        let strict = Rows { ptr: vec![0, 2, 3, 3], idx: vec![1, 2, 2], val: vec![1.0, 1.0, 1.0] };
        let t = LevelTriangle::new(&strict, Some(&[0.5, 0.5, 0.25]), Triangle::Upper);
        let mut z = [6.0, 5.0, 4.0];
        t.solve(&mut z, &mut [0.0; 3]);
        // 4/4 = 1;  (5 − 1)/2 = 2;  (6 − 2 − 1)/2
        assert_eq!(z, [1.5, 2.0, 1.0]);
    }
}
