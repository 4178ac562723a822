//! Substitution, block by block: a column at a time for few right-hand sides, faer's kernels for many.

use bt_formats::{Scalar, one};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef};

use super::BlockCholesky;
use crate::band_lu::kernels::{axpy_minus, dot};
use crate::pivot::Pivot;

/// x ← L⁻ᴴ·L⁻¹·x for one column.
pub(super) struct Column<'a, T: Scalar> {
    pub(super) cholesky: &'a BlockCholesky<T>,
    pub(super) x: &'a mut [T],
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
        let Self { cholesky: f, x } = self;
        for j in f.chain() {
            let (k, panel) = (f.order.size(j), f.panel(j));
            let (own, next) = f.two(j, x);
            for (c, column) in panel.chunks_exact(k + next.len()).enumerate() {
                let v = Pivot::new(column[c]).divide(own[c]);
                own[c] = v;
                axpy_minus::<T, FUSED>(v, &column[c + 1..k], &mut own[c + 1..]);
                axpy_minus::<T, FUSED>(v, &column[k..], next);
            }
        }
        for j in f.chain().rev() {
            let (k, panel) = (f.order.size(j), f.panel(j));
            let (own, next) = f.two(j, x);
            for (c, column) in panel.chunks_exact(k + next.len()).enumerate().rev() {
                let known = dot::<T, FUSED>(&column[c + 1..k], &own[c + 1..], Scalar::conj)
                    + dot::<T, FUSED>(&column[k..], next, Scalar::conj);
                own[c] = Pivot::new(column[c]).divide(own[c] - known);
            }
        }
    }
}

impl<T: Scalar> BlockCholesky<T> {
    /// The blocks in the order of elimination.
    fn chain(&self) -> impl DoubleEndedIterator<Item = usize> + use<T> {
        let (m, middle) = (self.order.n_blocks(), self.order.middle);
        (0..middle).chain((middle + 1..m).rev()).chain((m > 0).then_some(middle))
    }

    pub(super) fn panel(&self, j: usize) -> &[T] {
        &self.values[self.starts[j]..self.starts[j + 1]]
    }

    /// The rows of block j and of its neighbour towards the middle, which is empty for the middle.
    fn two<'x>(&self, j: usize, x: &'x mut [T]) -> (&'x mut [T], &'x mut [T]) {
        let own = self.order.rows(j);
        match self.order.toward(j).map(|t| self.order.rows(t)) {
            None => (&mut x[own], &mut []),
            Some(next) => {
                let (low, high) = x.split_at_mut(own.start.max(next.start));
                let (l, h) = (low.len() - if own.start < next.start { own.len() } else { next.len() }, own.len());
                if own.start < next.start {
                    (&mut low[l..], &mut high[..next.len()])
                } else {
                    (&mut high[..h], &mut low[l..])
                }
            }
        }
    }

    /// Several columns at once, by blocks.
    pub(super) fn solve_many(&self, mut x: MatMut<'_, T>) {
        let minus = -one::<T>();
        for inwards in [true, false] {
            let m = self.order.n_blocks();
            for step in 0..m {
                let j = self.chain().nth(if inwards { step } else { m - 1 - step }).expect("m blocks");
                let (k, next) = (self.order.size(j), self.order.next_size(j));
                let (l, h) = MatRef::from_column_major_slice(self.panel(j), k + next, k).split_at_row(k);
                let own = self.order.rows(j);
                let other = self.order.toward(j).map_or(own.end..own.end, |t| self.order.rows(t));
                let split = own.start.max(other.start);
                let (low, high) = x.as_mut().split_at_row_mut(split);
                let (mut mine, theirs) = if own.start < split {
                    let from = low.nrows() - k;
                    (low.subrows_mut(from, k), high.subrows_mut(0, next))
                } else {
                    let from = low.nrows() - next;
                    (high.subrows_mut(0, k), low.subrows_mut(from, next))
                };
                let seq = faer::Par::Seq;
                if inwards {
                    solve_lower_triangular_in_place(l, mine.as_mut(), seq);
                    matmul(theirs, Accum::Add, h, mine.as_ref(), minus, seq);
                } else {
                    matmul(mine.as_mut(), Accum::Add, h.adjoint(), theirs.as_ref(), minus, seq);
                    solve_upper_triangular_in_place(l.adjoint(), mine, seq);
                }
            }
        }
    }
}
