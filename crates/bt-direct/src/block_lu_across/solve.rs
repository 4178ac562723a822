//! Substitution, block by block: a column at a time for few right-hand sides, faer's kernels for many.

use bt_formats::{Op, Scalar, one};
use faer::linalg::matmul::{matmul, matmul_with_conj};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place,
};
use faer::{Accum, Conj, MatMut, MatRef, Par};

use super::{Block, BlockLuAcross};
use crate::band_lu::kernels::{axpy_minus, dot};
use crate::columns::for_each_column;
use crate::lines;
use crate::pivot::Pivot;

/// Right-hand sides, and columns of the largest block, from which on faer's kernels are faster.
const MANY: usize = 8;
const WIDE: usize = 32;

impl<T: Scalar> BlockLuAcross<T> {
    pub(super) fn solve(&self, op: Op, x: MatMut<'_, T>) {
        if x.ncols() >= MANY && self.partition.min_max_size().1 >= WIDE {
            match op {
                Op::Identity => self.solve_many(x),
                Op::Transpose => self.solve_many_transposed(x, Conj::No),
                Op::Adjoint => self.solve_many_transposed(x, Conj::Yes),
            }
            return;
        }
        for_each_column(x, |x| lines::dispatch::<T, _>(Column { lu: self, op, x }));
    }

    /// The rows of block j and the two after it, and the rest of these.
    fn rows<'x>(&self, j: usize, x: MatMut<'x, T>) -> [MatMut<'x, T>; 3] {
        let [k, next, after] = [0, 1, 2].map(|d| self.size(j + d));
        let rows = x.subrows_mut(self.partition.range(j).start, k + next + after);
        let (own, rest) = rows.split_at_row_mut(k);
        let (below, last) = rest.split_at_row_mut(next);
        [own, below, last]
    }

    fn solve_many(&self, mut x: MatMut<'_, T>) {
        let (m, minus, seq) = (self.partition.n_blocks(), -one::<T>(), Par::Seq);
        for j in 0..m {
            let Block { panel, pivots, .. } = self.block(j);
            let start = self.partition.range(j).start;
            for_each_column(x.as_mut(), |x| exchange(&mut x[start..], pivots));
            let (l, h) = panel.split_at_row(pivots.len());
            let [mut own, below, _] = self.rows(j, x.as_mut());
            solve_unit_lower_triangular_in_place(l, own.as_mut(), seq);
            matmul(below, Accum::Add, h, own.as_ref(), minus, seq);
        }
        for j in (0..m).rev() {
            let Block { panel, g, f, pivots } = self.block(j);
            let [mut own, below, last] = self.rows(j, x.as_mut());
            matmul(own.as_mut(), Accum::Add, g, below.as_ref(), minus, seq);
            matmul(own.as_mut(), Accum::Add, f, last.as_ref(), minus, seq);
            solve_upper_triangular_in_place(panel.subrows(0, pivots.len()), own, seq);
        }
    }

    fn solve_many_transposed(&self, mut x: MatMut<'_, T>, conj: Conj) {
        let (m, minus, seq) = (self.partition.n_blocks(), -one::<T>(), Par::Seq);
        let subtract = |y: MatMut<'_, T>, a: MatRef<'_, T>, x: MatRef<'_, T>| {
            matmul_with_conj(y, Accum::Add, a.transpose(), conj, x, Conj::No, minus, seq);
        };
        for j in 0..m {
            let Block { panel, g, f, pivots } = self.block(j);
            let [mut own, below, last] = self.rows(j, x.as_mut());
            let u = panel.subrows(0, pivots.len());
            solve_lower_triangular_in_place_with_conj(u.transpose(), conj, own.as_mut(), seq);
            subtract(below, g, own.as_ref());
            subtract(last, f, own.as_ref());
        }
        for j in (0..m).rev() {
            let Block { panel, pivots, .. } = self.block(j);
            let (l, h) = panel.split_at_row(pivots.len());
            let [mut own, below, _] = self.rows(j, x.as_mut());
            subtract(own.as_mut(), h, below.as_ref());
            solve_unit_upper_triangular_in_place_with_conj(l.transpose(), conj, own, seq);
            let start = self.partition.range(j).start;
            for_each_column(x.as_mut(), |x| exchange_back(&mut x[start..], pivots));
        }
    }
}

#[inline(always)]
fn exchange<T>(x: &mut [T], pivots: &[u32]) {
    for (r, &p) in pivots.iter().enumerate() {
        x.swap(r, p as usize);
    }
}

#[inline(always)]
fn exchange_back<T>(x: &mut [T], pivots: &[u32]) {
    for (r, &p) in pivots.iter().enumerate().rev() {
        x.swap(r, p as usize);
    }
}

/// One column of X.
struct Column<'a, T: Scalar> {
    lu: &'a BlockLuAcross<T>,
    op: Op,
    x: &'a mut [T],
}

impl<T: Scalar> pulp::WithSimd for Column<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Column<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.op {
            Op::Identity => self.plain::<FUSED>(),
            Op::Adjoint if !T::IS_REAL => self.transposed::<FUSED>(Scalar::conj),
            Op::Transpose | Op::Adjoint => self.transposed::<FUSED>(|v| v),
        }
    }

    #[inline(always)]
    fn plain<const FUSED: bool>(self) {
        let Self { lu, x, .. } = self;
        let m = lu.partition.n_blocks();
        for j in 0..m {
            let (panel, _, pivots) = lu.slices(j);
            let x = &mut x[lu.partition.range(j).start..];
            exchange(x, pivots);
            let rows = pivots.len() + lu.size(j + 1);
            // The rows of block j and of block j + 1 are neighbours in X as in the panel.
            for (c, column) in panel.chunks_exact(rows).enumerate() {
                axpy_minus::<T, FUSED>(x[c], &column[c + 1..], &mut x[c + 1..rows]);
            }
        }
        for j in (0..m).rev() {
            let (panel, right, pivots) = lu.slices(j);
            let (k, rows) = (pivots.len(), pivots.len() + lu.size(j + 1));
            let (own, after) = x[lu.partition.range(j).start..].split_at_mut(k);
            // G and F are one matrix of k rows, next to each other as their unknowns are.
            for (column, &v) in right.chunks_exact(k).zip(&*after) {
                axpy_minus::<T, FUSED>(v, column, own);
            }
            for (c, column) in panel.chunks_exact(rows).enumerate().rev() {
                let v = Pivot::new(column[c]).divide(own[c]);
                own[c] = v;
                axpy_minus::<T, FUSED>(v, &column[..c], &mut own[..c]);
            }
        }
    }

    #[inline(always)]
    fn transposed<const FUSED: bool>(self, map: impl Fn(T) -> T + Copy) {
        let Self { lu, x, .. } = self;
        let m = lu.partition.n_blocks();
        for j in 0..m {
            let (panel, right, pivots) = lu.slices(j);
            let (k, rows) = (pivots.len(), pivots.len() + lu.size(j + 1));
            let (own, after) = x[lu.partition.range(j).start..].split_at_mut(k);
            for (c, column) in panel.chunks_exact(rows).enumerate() {
                let known = dot::<T, FUSED>(&column[..c], &own[..c], map);
                own[c] = Pivot::new(map(column[c])).divide(own[c] - known);
            }
            for (column, v) in right.chunks_exact(k).zip(after) {
                *v -= dot::<T, FUSED>(column, own, map);
            }
        }
        for j in (0..m).rev() {
            let (panel, _, pivots) = lu.slices(j);
            let rows = pivots.len() + lu.size(j + 1);
            let x = &mut x[lu.partition.range(j).start..];
            for (c, column) in panel.chunks_exact(rows).enumerate().rev() {
                x[c] -= dot::<T, FUSED>(&column[c + 1..], &x[c + 1..rows], map);
            }
            exchange_back(x, pivots);
        }
    }
}

impl<T: Scalar> BlockLuAcross<T> {
    /// [L\U; H], [G F], and the exchanges of block j.
    fn slices(&self, j: usize) -> (&[T], &[T], &[u32]) {
        let (k, next) = (self.size(j), self.size(j + 1));
        let (panel, right) = self.values[self.starts[j]..self.starts[j + 1]].split_at((k + next) * k);
        (panel, right, &self.pivots[self.partition.range(j)])
    }
}
