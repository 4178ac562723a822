//! Products with hybrid storage: whole ones, cut at block boundaries, and the couplings of one block row alone.

use std::ops::Range;

use super::{BlockTridiagonal, Couplings, DiagonalBlocks, Window};
use crate::kernels::{Part, short_diagonal_parts, short_diagonal_rows, sparse_parts, sparse_rows};
use crate::operator::{Op, zero};
use crate::products::{RowProduct, dense_times, dense_transpose_times, diagonals_times, scale};
use crate::scalar::Scalar;

impl<T: Scalar> BlockTridiagonal<T> {
    /// r ← r − Lⱼ·xⱼ₋₁ with the whole vector `x` (length n) and the `r` of block j (length kⱼ). Nothing for j = 0.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn subtract_lower(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract(j, x, r, |w, c| c < w.start);
    }

    /// r ← r − Uⱼ·xⱼ₊₁ with the whole vector `x` (length n) and the `r` of block j (length kⱼ). Nothing for j = m − 1.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn subtract_upper(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract(j, x, r, |w, c| c >= w.end);
    }

    /// r ← r − Lⱼ·xⱼ₋₁ − Uⱼ·xⱼ₊₁ in one pass over the couplings of block row j. Allocates nothing.
    ///
    /// # Panics
    /// When a length is wrong.
    ///
    /// # Cost
    /// Two flops a coupling entry.
    pub fn subtract_couplings(&self, j: usize, x: &[T], r: &mut [T]) {
        self.subtract_rows(std::iter::once(j), None, x, r);
    }

    /// r ← b − (L + U)·x in several block rows, given in increasing order: `r` holds their rows, one block after the other, `b` and `x`
    /// have length n.
    ///
    /// # Panics
    /// As [`BlockTridiagonal::subtract_couplings`].
    pub fn couplings_residual(&self, blocks: impl Iterator<Item = usize>, b: &[T], x: &[T], r: &mut [T]) {
        assert_eq!(b.len(), self.n(), "length of b");
        self.subtract_rows(blocks, Some(b), x, r);
    }

    #[inline(always)]
    fn subtract_rows(&self, blocks: impl Iterator<Item = usize>, b: Option<&[T]>, x: &[T], r: &mut [T]) {
        let offsets = self.partition.offsets();
        let (mut blocks, mut rest) = (blocks.peekable(), r);
        // Consecutive blocks go together.
        let parts = std::iter::from_fn(|| {
            let first = blocks.next()?;
            let mut end = first + 1;
            while blocks.next_if_eq(&end).is_some() {
                end += 1;
            }
            let rows = offsets[first] as usize..offsets[end] as usize;
            let y = rest.split_off_mut(..rows.len()).expect("the rows of all blocks");
            Some(Part { first: rows.start, b: b.map(|b| &b[rows]), y })
        });
        match &*self.couplings {
            Couplings::Csr(a) => sparse_parts(a, None, -T::one(), x, T::one(), parts),
            Couplings::Diagonals(a) => short_diagonal_parts(a, None, -T::one(), x, T::one(), parts),
            _ => {
                for Part { first, mut y, .. } in parts.map(Part::in_place) {
                    let mut j = self.partition.block_of(first);
                    while !y.is_empty() {
                        let block = y.split_off_mut(..self.partition.size(j)).expect("whole blocks");
                        self.subtract(j, x, block, |_, _| true);
                        j += 1;
                    }
                }
            }
        }
        assert!(rest.is_empty(), "length of r");
    }

    /// r ← r − Σ v·x(c) over the coupling entries of block row j whose column is wanted.
    #[inline(always)]
    fn subtract(&self, j: usize, x: &[T], r: &mut [T], wanted: impl Fn(Window, usize) -> bool) {
        let w = Window::new(&self.partition, j);
        assert_eq!((x.len(), r.len()), (self.n(), w.size()), "lengths of x and r");
        match &*self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                let range = block_ptr[j] as usize..block_ptr[j + 1] as usize;
                let (rows, cols) = (&entries.rows()[range.clone()], &entries.cols()[range.clone()]);
                for ((&i, &c), &v) in rows.iter().zip(cols).zip(&entries.values()[range]) {
                    if wanted(w, c as usize) {
                        r[i as usize - w.start] -= v * x[c as usize];
                    }
                }
            }
            Couplings::Csr(a) => {
                for (i, ri) in (w.start..w.end).zip(r) {
                    let (cols, vals) = a.row(i);
                    let mut sum = zero::<T>();
                    for (&c, &v) in cols.iter().zip(vals) {
                        if wanted(w, c as usize) {
                            sum += v * x[c as usize];
                        }
                    }
                    *ri -= sum;
                }
            }
            // Diagonals to the left lie in block j − 1, others in block j + 1; any column there stands for them.
            Couplings::Diagonals(a) => {
                a.subtract(w.start..w.end, x, r, |offset| wanted(w, if offset < 0 { w.lo } else { w.end }));
            }
            Couplings::Dense { starts, values } => {
                let block = &values[starts[j]..starts[j + 1]];
                for (k, column) in block.chunks_exact(w.size()).enumerate() {
                    let c = w.global_col(k);
                    if wanted(w, c) {
                        let xc = x[c];
                        for (ri, &v) in r.iter_mut().zip(column) {
                            *ri -= v * xc;
                        }
                    }
                }
            }
        }
    }

    /// y ← α·(op(D)·x)[first..] + β·y for whole blocks of y.
    #[inline(never)]
    fn diagonal_rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        match &*self.diagonal {
            // The padding at block boundaries is zero, so the global triple may be applied as it stands.
            DiagonalBlocks::Tridiagonal(t) => t.rows(op, first, alpha, x, beta, y),
            DiagonalBlocks::Band { kl, ku, values } => {
                let offsets = -(*kl as isize)..=*ku as isize;
                diagonals_times(op, self.n(), values, &offsets, first, alpha, x, beta, y);
            }
            DiagonalBlocks::Dense { starts, values } => {
                scale(beta, y);
                self.for_each_block(first, y, |j, w, y| {
                    let (block, x) = (&values[starts[j]..starts[j + 1]], &x[w.start..w.end]);
                    if op == Op::Identity {
                        dense_times(block, alpha, x.iter().copied(), y);
                    } else {
                        dense_transpose_times(op, block, alpha, x, y);
                    }
                });
            }
        }
    }

    /// y ← y + α·(op(L + U)·x)[first..] for whole blocks of y. Column block j of L + U lies in block rows j − 1 and
    /// j + 1 alone, so that a transposed product needs no search either.
    #[inline(never)]
    fn add_couplings(&self, op: Op, first: usize, alpha: T, x: &[T], y: &mut [T]) {
        let last = first + y.len();
        let rows = if op == Op::Identity { first..last } else { self.row_neighbours(first, last) };
        match &*self.couplings {
            Couplings::Coo { entries, block_ptr } => {
                let block = |i: usize| block_ptr[self.partition.offsets().partition_point(|&o| (o as usize) < i)];
                entries.scatter(op, block(rows.start) as usize..block(rows.end) as usize, first, alpha, x, y);
            }
            Couplings::Csr(a) if op == Op::Identity => sparse_rows(a, None, first, alpha, x, T::one(), y),
            Couplings::Csr(a) => a.scatter(op, rows, first, alpha, x, y),
            Couplings::Diagonals(a) if op == Op::Identity => short_diagonal_rows(a, None, first, alpha, x, T::one(), y),
            Couplings::Diagonals(a) => a.scatter(op, rows, first, alpha, x, y),
            Couplings::Dense { starts, values } if op == Op::Identity => {
                self.for_each_block(first, y, |j, w, y| {
                    let x = x[w.lo..w.start].iter().chain(&x[w.end..w.hi]).copied();
                    dense_times(&values[starts[j]..starts[j + 1]], alpha, x, y);
                });
            }
            Couplings::Dense { starts, values } => {
                self.for_each_block(first, y, |j, w, y| {
                    // Block column j: Uⱼ₋₁ is the right part of block row j − 1, Lⱼ₊₁ the left part of row j + 1.
                    let mut add = |i: usize| {
                        let row = Window::new(&self.partition, i);
                        let k = row.size();
                        let block = &values[starts[i] + row.coupling_col(w.start) * k..];
                        dense_transpose_times(op, block, alpha, &x[row.start..row.end], y);
                    };
                    if j > 0 {
                        add(j - 1);
                    }
                    if j + 1 < self.n_blocks() {
                        add(j + 1);
                    }
                });
            }
        }
    }

    /// Rows of the blocks that `first..last` is made of and of their neighbours on both sides.
    fn row_neighbours(&self, first: usize, last: usize) -> Range<usize> {
        let offsets = self.partition.offsets();
        let before = offsets.partition_point(|&o| (o as usize) < first).saturating_sub(1);
        let after = offsets.partition_point(|&o| (o as usize) < last) + 1;
        offsets[before] as usize..offsets[after.min(offsets.len() - 1)] as usize
    }

    /// Calls `work(j, window, part of y)` for the blocks that `y`, the rows from `first`, is made of.
    #[inline(always)]
    fn for_each_block(&self, first: usize, mut y: &mut [T], mut work: impl FnMut(usize, Window, &mut [T])) {
        let mut j = self.partition.offsets().partition_point(|&o| (o as usize) < first);
        while !y.is_empty() {
            let w = Window::new(&self.partition, j);
            let (head, tail) = y.split_at_mut(w.size());
            work(j, w, head);
            (y, j) = (tail, j + 1);
        }
    }
}

impl<T: Scalar> RowProduct<T> for BlockTridiagonal<T> {
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        match (&*self.diagonal, &*self.couplings) {
            (DiagonalBlocks::Tridiagonal(t), Couplings::Csr(a)) if op == Op::Identity => {
                sparse_rows(a, Some(t), first, alpha, x, beta, y);
            }
            (DiagonalBlocks::Tridiagonal(t), Couplings::Diagonals(a)) if op == Op::Identity => {
                short_diagonal_rows(a, Some(t), first, alpha, x, beta, y);
            }
            _ => bt_simd::dispatch(bt_simd::Loops(
                #[inline(always)]
                || {
                    // In strips, so that y is still in the first-level cache when the couplings are added.
                    let mut start = 0;
                    while start < y.len() {
                        let end = (self.cut(first + start + STRIP) - first).min(y.len());
                        let y = &mut y[start..end];
                        self.diagonal_rows(op, first + start, alpha, x, beta, y);
                        self.add_couplings(op, first + start, alpha, x, y);
                        start = end;
                    }
                },
            )),
        }
    }

    fn cut(&self, row: usize) -> usize {
        let offsets = self.partition.offsets();
        let j = offsets.partition_point(|&o| (o as usize) < row);
        offsets[j.min(offsets.len() - 1)] as usize
    }
}

/// Rows whose y stays in the first-level cache.
const STRIP: usize = 1024;
