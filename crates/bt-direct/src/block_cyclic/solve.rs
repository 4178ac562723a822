//! Substitution, level by level, all right-hand sides of a block while its factors are in the cache.
//!
//! On a level with step s the rows fall into pieces that can be worked on at the same time, in two ways: a block j left
//! out on the level together with the c = j + s after it, or with the a = j − s before it. Each is one pass over X; what
//! a piece does depends on nothing else in the pass, so that the bits do not depend on the threads.

use std::ops::Range;

use bt_formats::{Op, Par, Scalar};
use faer::MatMut;

use super::front::Front;
use super::{BlockCyclicReduction, halves, levels};
use crate::band_lu::kernels::{axpy_minus, dot};
use crate::columns::for_each_column;
use crate::lines;
use crate::pivot::Pivot;

/// Rows of a piece that is not worth splitting further, times right-hand sides.
const GRAIN: usize = 2048;

/// One pass over the pairs of a level: the rows of pair u are those from block `first + 2s·u` up to the next pair's.
struct Pass {
    first: usize,
    stride: usize,
    par: Par,
}

impl<T: Scalar> BlockCyclicReduction<T> {
    pub(super) fn solve(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.partition.n(), "rows of X");
        let adjoint = op == Op::Adjoint;
        self.substitute(x, move |v: T| if adjoint { v.conj() } else { v }, op != Op::Identity);
    }

    /// With A = L·U: L⁻¹ in the order of elimination, then U⁻¹ backwards; for Aᵀ = Uᵀ·Lᵀ the same with Uᵀ and Lᵀ.
    fn substitute(&self, mut x: MatMut<'_, T>, map: impl Fn(T) -> T + Copy + Sync, transposed: bool) {
        let m = self.partition.n_blocks();
        if m == 0 {
            return;
        }
        let par = Par::auto(size_of_val(&*self.values));
        // The last level is the root alone.
        let top = levels(m) - 1;
        for level in 0..top {
            let s = 1usize << level;
            let pass = |first| Pass { first, stride: 2 * s, par };
            self.for_each_piece(&pass(s), x.as_mut(), &|j, x| {
                let (front, pivots) = (self.front(j), self.pivots_of(j));
                let to_c = self.start_of(j + s) - self.start_of(j);
                let (b, after) = x.split_at_mut(to_c.min(x.len()));
                let b = &mut b[..front.k];
                if transposed {
                    front.upper_transposed(b, map);
                } else {
                    front.lower(pivots, b);
                }
                if front.kc > 0 {
                    let (c, from) = (&mut after[..front.kc], front.ka);
                    if transposed {
                        front.subtract_gt(from, b, c, map);
                    } else {
                        front.subtract_h(from, b, c);
                    }
                }
            });
            self.for_each_piece(&pass(0), x.as_mut(), &|a, x| {
                if a + s < m {
                    let front = self.front(a + s);
                    let (ba, rest) = x.split_at_mut(self.start_of(a + s) - self.start_of(a));
                    let (ba, b) = (&mut ba[..front.ka], &rest[..front.k]);
                    if transposed {
                        front.subtract_gt(0, b, ba, map);
                    } else {
                        front.subtract_h(0, b, ba);
                    }
                }
            });
        }
        let (root, pivots) = (self.front(0), self.pivots_of(0));
        for_each_column(x.as_mut(), |x| {
            let x = &mut x[..root.k];
            lines::dispatch::<T, _>(bt_simd::Loops(
                #[inline(always)]
                || {
                    if transposed {
                        root.upper_transposed(x, map);
                        root.lower_transposed(pivots, x, map);
                    } else {
                        root.lower(pivots, x);
                        root.upper(x);
                    }
                },
            ));
        });
        for level in (0..top).rev() {
            let s = 1usize << level;
            let pass = |first| Pass { first, stride: 2 * s, par };
            self.for_each_piece(&pass(0), x.as_mut(), &|a, x| {
                if a + s < m {
                    let front = self.front(a + s);
                    let (xa, rest) = x.split_at_mut(self.start_of(a + s) - self.start_of(a));
                    let (xa, b) = (&xa[..front.ka], &mut rest[..front.k]);
                    if transposed {
                        front.subtract_ht(0, xa, b, map);
                    } else {
                        front.subtract_g(0, xa, b);
                    }
                }
            });
            self.for_each_piece(&pass(s), x.as_mut(), &|j, x| {
                let (front, pivots) = (self.front(j), self.pivots_of(j));
                let to_c = self.start_of(j + s) - self.start_of(j);
                let (b, after) = x.split_at_mut(to_c.min(x.len()));
                let b = &mut b[..front.k];
                if front.kc > 0 {
                    let (c, from) = (&after[..front.kc], front.ka);
                    if transposed {
                        front.subtract_ht(from, c, b, map);
                    } else {
                        front.subtract_g(from, c, b);
                    }
                }
                if transposed {
                    front.lower_transposed(pivots, b, map);
                } else {
                    front.upper(b);
                }
            });
        }
    }

    /// `f` with the first block of every pair of the pass and each column of its rows.
    fn for_each_piece(&self, pass: &Pass, x: MatMut<'_, T>, f: &(impl Fn(usize, &mut [T]) + Sync)) {
        let m = self.partition.n_blocks();
        let n = x.nrows();
        let start = self.start_of(pass.first);
        let pairs = 0..m.saturating_sub(pass.first).div_ceil(pass.stride);
        self.split(pass, pairs, x.subrows_mut(start, n - start), f);
    }

    fn split(&self, pass: &Pass, pairs: Range<usize>, mut x: MatMut<'_, T>, f: &(impl Fn(usize, &mut [T]) + Sync)) {
        let row = |u: usize| self.start_of(pass.first + pass.stride * u);
        if pass.par == Par::Rayon && pairs.len() > 1 && x.nrows() * x.ncols() > GRAIN {
            let (left, right) = halves(&pairs);
            let (first, second) = x.split_at_row_mut(row(right.start) - row(left.start));
            bt_formats::join(|| self.split(pass, left, first, f), || self.split(pass, right, second, f));
            return;
        }
        let origin = row(pairs.start);
        lines::dispatch::<T, _>(
            #[inline(always)]
            || {
                for u in pairs {
                    let rows = x.as_mut().subrows_mut(row(u) - origin, row(u + 1) - row(u));
                    for_each_column(rows, |x| f(pass.first + pass.stride * u, x));
                }
            },
        );
    }
}

impl<T: Scalar> Front<'_, T> {
    /// b ← L̃⁻¹·P·b
    #[inline(always)]
    pub(crate) fn lower(&self, pivots: &[u32], b: &mut [T]) {
        for (r, &p) in pivots.iter().enumerate() {
            b.swap(r, p as usize);
        }
        for c in 0..self.k {
            axpy_minus::<_, false>(b[c], &self.column(c)[c + 1..self.k], &mut b[c + 1..]);
        }
    }

    /// b ← Ũ⁻¹·b
    #[inline(always)]
    pub(crate) fn upper(&self, b: &mut [T]) {
        for c in (0..self.k).rev() {
            let column = self.column(c);
            b[c] = Pivot::new(column[c]).divide(b[c]);
            axpy_minus::<_, false>(b[c], &column[..c], &mut b[..c]);
        }
    }

    /// b ← Ũ⁻ᵀ·b
    #[inline(always)]
    pub(crate) fn upper_transposed(&self, b: &mut [T], map: impl Fn(T) -> T) {
        for c in 0..self.k {
            let column = self.column(c);
            let sum = dot::<_, false>(&column[..c], &b[..c], &map);
            b[c] = Pivot::new(map(column[c])).divide(b[c] - sum);
        }
    }

    /// b ← Pᵀ·L̃⁻ᵀ·b
    #[inline(always)]
    pub(crate) fn lower_transposed(&self, pivots: &[u32], b: &mut [T], map: impl Fn(T) -> T) {
        for c in (0..self.k).rev() {
            let sum = dot::<_, false>(&self.column(c)[c + 1..self.k], &b[c + 1..], &map);
            b[c] -= sum;
        }
        for (r, &p) in pivots.iter().enumerate().rev() {
            b.swap(r, p as usize);
        }
    }

    /// y ← y − H·b for the rows of H from `from` on.
    #[inline(always)]
    fn subtract_h(&self, from: usize, b: &[T], y: &mut [T]) {
        let first = self.k + from;
        for (c, &v) in b.iter().enumerate() {
            axpy_minus::<_, false>(v, &self.column(c)[first..first + y.len()], y);
        }
    }

    /// b ← b − G·x for the columns of G from `from` on.
    #[inline(always)]
    fn subtract_g(&self, from: usize, x: &[T], b: &mut [T]) {
        for (c, &v) in x.iter().enumerate() {
            axpy_minus::<_, false>(v, self.coupling(from + c), b);
        }
    }

    /// b ← b − Hᵀ·x
    #[inline(always)]
    fn subtract_ht(&self, from: usize, x: &[T], b: &mut [T], map: impl Fn(T) -> T) {
        let first = self.k + from;
        for (c, v) in b.iter_mut().enumerate() {
            *v -= dot::<_, false>(&self.column(c)[first..first + x.len()], x, &map);
        }
    }

    /// y ← y − Gᵀ·b
    #[inline(always)]
    fn subtract_gt(&self, from: usize, b: &[T], y: &mut [T], map: impl Fn(T) -> T) {
        for (c, v) in y.iter_mut().enumerate() {
            *v -= dot::<_, false>(self.coupling(from + c), b, &map);
        }
    }
}
