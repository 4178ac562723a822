//! One step: partial pivoting in a panel of kⱼ + kⱼ₊₁ rows, and what it does to the columns on its right.

use bt_formats::{RealScalar, Scalar, one, zero};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use crate::band_lu::kernels::axpy_minus;
use crate::block_lu::panel::{exchanges, usable};
use crate::lines;
use crate::pivot::Pivot;

/// Blocks of this many columns are faster in faer's kernels than in own loops.
const BLOCKED_FROM: usize = 32;

/// Work space of faer's LU of a panel.
pub(super) fn scratch<T: Scalar>(rows: usize, columns: usize) -> StackReq {
    lu_in_place_scratch::<u32, T>(rows, columns, Par::Seq, faer::prelude::default())
}

/// Why elimination ends.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// In this column of the panel.
    NoPivot(usize),
    Overflow,
}

pub(super) struct Measured {
    /// max|U|.
    pub(super) largest: f64,
    pub(super) min_pivot: f64,
}

/// [D̃; L], to become [L\U; H].
pub(super) struct Panel<'a, T> {
    pub(super) values: &'a mut [T],
    pub(super) k: usize,
    pub(super) next: usize,
    pub(super) pivots: &'a mut [u32],
}

/// Columns on the right of a panel: `k` rows on top, `k` apart, and `next` rows at the bottom, `ld` apart.
pub(super) struct Trailing<'a, T> {
    pub(super) top: &'a mut [T],
    pub(super) bottom: &'a mut [T],
    pub(super) ld: usize,
    pub(super) columns: usize,
}

impl<T: Scalar> Panel<'_, T> {
    pub(super) fn eliminate(&mut self, permutation: &mut [u32], memory: &mut MemBuffer) -> Result<Measured, Stop> {
        let (k, rows) = (self.k, self.k + self.next);
        let failed = if k < BLOCKED_FROM {
            lines::dispatch::<T, _>(Loops { panel: self.values, rows, pivots: self.pivots })
        } else {
            let (forward, rest) = permutation.split_at_mut(rows);
            let (inverse, rest) = rest.split_at_mut(rows);
            let mut panel = MatMut::from_column_major_slice_mut(&mut *self.values, rows, k);
            lu_in_place(panel.as_mut(), forward, inverse, Par::Seq, MemStack::new(memory), faer::prelude::default());
            exchanges(forward, rest, self.pivots);
            // faer goes on through a zero pivot; what follows it is not finite, what precedes it is sound.
            (0..k).find(|&r| !usable(panel[(r, r)]))
        };
        if let Some(r) = failed {
            return Err(if self.values[r * rows + r] == zero() { Stop::NoPivot(r) } else { Stop::Overflow });
        }
        let mut found = Measured { largest: 0.0, min_pivot: f64::INFINITY };
        for (c, column) in self.values.chunks_exact(rows).enumerate() {
            found.largest = found.largest.max_nan(size(&column[..=c]));
            found.min_pivot = found.min_pivot.min(column[c].abs().to_f64());
        }
        if found.largest.is_finite() { Ok(found) } else { Err(Stop::Overflow) }
    }

    /// Exchanges, top ← L⁻¹·top, bottom ← bottom − H·top; the largest modulus.
    pub(super) fn update(&self, right: Trailing<'_, T>) -> f64 {
        let Self { k, next, .. } = *self;
        let Trailing { top, bottom, ld, columns } = right;
        if columns == 0 {
            return 0.0;
        }
        for c in 0..columns {
            let (top, bottom) = (&mut top[c * k..(c + 1) * k], &mut bottom[c * ld..c * ld + next]);
            for (r, &p) in self.pivots.iter().enumerate() {
                match (p as usize).checked_sub(k) {
                    Some(below) => std::mem::swap(&mut top[r], &mut bottom[below]),
                    None => top.swap(r, p as usize),
                }
            }
        }
        if k < BLOCKED_FROM {
            let panel = &*self.values;
            lines::dispatch::<T, _>(Update { panel, k, next, top: &mut *top, bottom: &mut *bottom, ld });
        } else {
            let (l, h) = MatRef::from_column_major_slice(&*self.values, k + next, k).split_at_row(k);
            let mut g = MatMut::from_column_major_slice_mut(&mut *top, k, columns);
            solve_unit_lower_triangular_in_place(l, g.as_mut(), Par::Seq);
            let below = MatMut::from_column_major_slice_with_stride_mut(&mut *bottom, next, columns, ld);
            matmul(below, Accum::Add, h, g.as_ref(), -one::<T>(), Par::Seq);
        }
        let carried = (0..columns).map(|c| size(&bottom[c * ld..c * ld + next])).fold(0.0, f64::max_nan);
        size(top).max_nan(carried)
    }
}

/// Largest |re| + |im|; NaN where there is one.
fn size<T: Scalar>(values: &[T]) -> f64 {
    values.iter().fold(zero::<T::Real>(), |m, v| m.max_nan(v.abs1())).to_f64()
}

/// Right-looking elimination by columns; the column without a usable pivot.
struct Loops<'a, T> {
    panel: &'a mut [T],
    rows: usize,
    pivots: &'a mut [u32],
}

impl<T: Scalar> pulp::WithSimd for Loops<'_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Loops<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Option<usize> {
        let Self { panel, rows, pivots } = self;
        for c in 0..pivots.len() {
            let (done, ahead) = panel.split_at_mut((c + 1) * rows);
            let (before, column) = done.split_at_mut(c * rows);
            let mut p = c;
            for r in c + 1..rows {
                if column[r].abs1() > column[p].abs1() {
                    p = r;
                }
            }
            pivots[c] = p as u32;
            column.swap(c, p);
            if !usable(column[c]) {
                return Some(c);
            }
            if p != c {
                before.chunks_exact_mut(rows).for_each(|column| column.swap(c, p));
                ahead.chunks_exact_mut(rows).take(pivots.len() - c - 1).for_each(|column| column.swap(c, p));
            }
            let divisor = Pivot::new(column[c]);
            column[c + 1..].iter_mut().for_each(|v| *v = divisor.divide(*v));
            for other in ahead.chunks_exact_mut(rows) {
                axpy_minus::<T, FUSED>(other[c], &column[c + 1..], &mut other[c + 1..]);
            }
        }
        None
    }
}

struct Update<'a, T> {
    panel: &'a [T],
    k: usize,
    next: usize,
    top: &'a mut [T],
    bottom: &'a mut [T],
    ld: usize,
}

impl<T: Scalar> pulp::WithSimd for Update<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Update<'_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { panel, k, next, top, bottom, ld } = self;
        for (i, top) in top.chunks_exact_mut(k).enumerate() {
            let bottom = &mut bottom[i * ld..i * ld + next];
            for (c, column) in panel.chunks_exact(k + next).enumerate() {
                let v = top[c];
                axpy_minus::<T, FUSED>(v, &column[c + 1..k], &mut top[c + 1..]);
                axpy_minus::<T, FUSED>(v, &column[k..], bottom);
            }
        }
    }
}
