//! Substitution, block by block, all right-hand sides of a block while its factors are in the cache.
//!
//! bⱼ and bⱼ₊₁ are adjacent, so that a column of the panel [L̃ⱼ; Hⱼ] acts on one contiguous piece of the vector.

use bt_formats::{Op, Scalar};
use faer::MatMut;

use super::{BlockLu, next_size};
use crate::band_lu::kernels::{axpy_minus, dot};
use crate::pivot::Pivot;
use crate::tridiagonal_lu::for_each_column;

/// The factors of one block.
struct Block<'a, T> {
    k: usize,
    next: usize,
    panel: &'a [T],
    g: &'a [T],
    pivots: &'a [u32],
}

impl<T: Scalar> BlockLu<T> {
    fn block(&self, j: usize) -> Block<'_, T> {
        let (k, next) = (self.partition.size(j), next_size(&self.partition, j));
        let (panel, g) = self.values[self.starts[j]..self.starts[j + 1]].split_at((k + next) * k);
        Block { k, next, panel, g, pivots: &self.pivots[self.partition.range(j)] }
    }

    pub(super) fn solve(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.partition.n(), "rows of X");
        let arch = pulp::Arch::new();
        arch.dispatch(|| match op {
            Op::Identity => self.sweep(x, |b, x| b.forward(x), |b, x| b.backward(x)),
            Op::Transpose => {
                self.sweep(x, |b, x| b.transposed_forward(x, |v| v), |b, x| b.transposed_backward(x, |v| v));
            }
            Op::Adjoint => self.sweep(
                x,
                |b, x| b.transposed_forward(x, Scalar::conj),
                |b, x| b.transposed_backward(x, Scalar::conj),
            ),
        });
    }

    /// `forward` with every block from the first on, then `backward` from the last on; each sees bⱼ and bⱼ₊₁.
    #[inline(always)]
    fn sweep(
        &self,
        mut x: MatMut<'_, T>,
        forward: impl Fn(&Block<'_, T>, &mut [T]),
        backward: impl Fn(&Block<'_, T>, &mut [T]),
    ) {
        let m = self.partition.n_blocks();
        let rows = |j: usize, b: &Block<'_, T>| {
            let start = self.partition.range(j).start;
            start..start + b.k + b.next
        };
        for j in 0..m {
            let b = self.block(j);
            for_each_column(x.as_mut(), |x| forward(&b, &mut x[rows(j, &b)]));
        }
        for j in (0..m).rev() {
            let b = self.block(j);
            for_each_column(x.as_mut(), |x| backward(&b, &mut x[rows(j, &b)]));
        }
    }
}

impl<T: Scalar> Block<'_, T> {
    /// Column `c` of the panel.
    #[inline(always)]
    fn column(&self, c: usize) -> &[T] {
        let ld = self.k + self.next;
        &self.panel[c * ld..(c + 1) * ld]
    }

    /// Column `c` of G.
    #[inline(always)]
    fn coupling(&self, c: usize) -> &[T] {
        &self.g[c * self.k..(c + 1) * self.k]
    }

    /// bⱼ ← L̃⁻¹·P·bⱼ;  bⱼ₊₁ ← bⱼ₊₁ − H·bⱼ
    #[inline(always)]
    fn forward(&self, x: &mut [T]) {
        for (r, &p) in self.pivots.iter().enumerate() {
            x.swap(r, p as usize);
        }
        for c in 0..self.k {
            axpy_minus::<_, false>(x[c], &self.column(c)[c + 1..], &mut x[c + 1..]);
        }
    }

    /// xⱼ ← Ũ⁻¹·(bⱼ − G·xⱼ₊₁)
    #[inline(always)]
    fn backward(&self, x: &mut [T]) {
        let (x, after) = x.split_at_mut(self.k);
        for (c, &xc) in after.iter().enumerate() {
            axpy_minus::<_, false>(xc, self.coupling(c), x);
        }
        for c in (0..self.k).rev() {
            let column = self.column(c);
            x[c] = Pivot::new(column[c]).divide(x[c]);
            axpy_minus::<_, false>(x[c], &column[..c], &mut x[..c]);
        }
    }

    /// bⱼ ← Ũ⁻ᵀ·bⱼ;  bⱼ₊₁ ← bⱼ₊₁ − Gᵀ·bⱼ
    #[inline(always)]
    fn transposed_forward(&self, x: &mut [T], map: impl Fn(T) -> T) {
        let (x, after) = x.split_at_mut(self.k);
        for c in 0..self.k {
            let column = self.column(c);
            let sum = dot::<_, false>(&column[..c], &x[..c], &map);
            x[c] = Pivot::new(map(column[c])).divide(x[c] - sum);
        }
        for (c, xc) in after.iter_mut().enumerate() {
            *xc -= dot::<_, false>(self.coupling(c), x, &map);
        }
    }

    /// xⱼ ← Pᵀ·L̃⁻ᵀ·(bⱼ − Hᵀ·xⱼ₊₁)
    #[inline(always)]
    fn transposed_backward(&self, x: &mut [T], map: impl Fn(T) -> T) {
        for c in (0..self.k).rev() {
            let sum = dot::<_, false>(&self.column(c)[c + 1..], &x[c + 1..], &map);
            x[c] -= sum;
        }
        for (r, &p) in self.pivots.iter().enumerate().rev() {
            x.swap(r, p as usize);
        }
    }
}
