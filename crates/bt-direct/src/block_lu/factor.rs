//! Elimination: one panel after the other, each loaded just before it is needed.

use bt_formats::{BlockTridiagonal, Couplings, DiagonalBlocks, Monitor, Progress, RealScalar, Scalar, one, zero};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

use super::{BlockLu, Kernels, METHOD, Stop, next_size};
use crate::band_lu::kernels::{LANES, axpy_minus, index_of_max, max_lanes, sum_and_max};
use crate::error::{FactorError, SingularKind, Singularity};
use crate::factorization::FactorStats;
use crate::pivot::Pivot;
use crate::refine::unit_roundoff;

/// Blocks with fewer rows than this (and the next block too) are faster in plain loops than in faer's kernels.
const BLOCKED_FROM: usize = 16;

/// Work space of faer's LU of a block of `k` rows.
pub(super) fn scratch<T: Scalar>(k: usize) -> StackReq {
    lu_in_place_scratch::<u32, T>(k, k, Par::Seq, faer::prelude::default())
}

/// The panel of one block and its G, with what the next block takes from them.
struct Front<'a, T> {
    k: usize,
    next: usize,
    panel: &'a mut [T],
    g: &'a mut [T],
    pivots: &'a mut [u32],
}

impl<T: Scalar> BlockLu<T> {
    pub(super) fn factor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<(), Stop> {
        let m = self.partition.n_blocks();
        let arch = pulp::Arch::new();
        let Self { partition, kernels, values, starts, pivots, sums, permutation, memory, .. } = self;
        sums.fill(0.0);
        let (mut max_a, mut growth, mut worst, mut min_pivot) = (0.0f64, 0.0f64, 0, f64::INFINITY);
        for j in 0..m {
            if monitor.observe(Progress::Step { phase: "setup", done: j, total: m }).is_break() {
                return Err(FactorError::Stopped.into());
            }
            let (k, next) = (partition.size(j), next_size(partition, j));
            let range = partition.range(j);
            let (before, after) = values.split_at_mut(starts[j]);
            let (panel, g) = after[..starts[j + 1] - starts[j]].split_at_mut((k + next) * k);
            arch.dispatch(|| load(a, j, panel, g, &mut sums[range.start..range.end + next], &mut max_a));
            if !max_a.is_finite() {
                return Err(Stop::NonFinite);
            }
            // D̃ⱼ ← Dⱼ − Hⱼ₋₁·Gⱼ₋₁
            if j > 0 {
                let last = partition.size(j - 1);
                let (last_panel, last_g) = before[starts[j - 1]..].split_at((last + k) * last);
                if blocked(*kernels, last, k) {
                    let h = MatRef::from_column_major_slice(last_panel, last + k, last).subrows(last, k);
                    let mut d = MatMut::from_column_major_slice_mut(panel, k + next, k).subrows_mut(0, k);
                    let g = MatRef::from_column_major_slice(last_g, last, k);
                    matmul(d.as_mut(), Accum::Add, h, g, -one::<T>(), Par::Seq);
                } else {
                    arch.dispatch(|| subtract_product(last_panel, last_g, last, k, panel, k + next));
                }
            }
            let mut front = Front { k, next, panel, g, pivots: &mut pivots[range.clone()] };
            let failed = if blocked(*kernels, k, next) {
                front.eliminate_blocked(permutation, memory)
            } else {
                arch.dispatch(|| front.eliminate())
            };
            if let Some(row) = failed {
                return Err(no_pivot(j, row, range.start, j + 1 == m).into());
            }
            let measures = arch.dispatch(|| front.measure());
            if measures.0.is_nan() || measures.0 > growth {
                (growth, worst) = (measures.0, j);
            }
            min_pivot = min_pivot.min_nan(measures.1);
            if !growth.is_finite() {
                return Err(too_much_growth(j, growth).into());
            }
        }
        let growth = if max_a > 0.0 { growth / max_a } else { 1.0 };
        if growth > 1.0 / unit_roundoff::<T>().sqrt() {
            return Err(too_much_growth(worst, growth).into());
        }
        let norm_one = sums.iter().copied().fold(0.0, f64::max_nan);
        if !norm_one.is_finite() {
            return Err(Stop::NonFinite);
        }
        self.stats = FactorStats {
            norm_one,
            growth,
            min_pivot,
            boosted_pivots: 0,
            nnz: values.len(),
            bytes: size_of_val(&**values) + size_of_val(&**pivots) + size_of_val(&**starts),
            flops: Self::flops(partition),
        };
        Ok(())
    }
}

fn blocked(kernels: Kernels, k: usize, next: usize) -> bool {
    match kernels {
        Kernels::Auto => k >= BLOCKED_FROM || next >= BLOCKED_FROM,
        Kernels::Loops => false,
        Kernels::Blocked => true,
    }
}

/// Dⱼ and Lⱼ₊₁ into the panel, Uⱼ into G; column sums and the largest modulus of what was loaded.
#[inline(always)]
fn load<T: Scalar>(a: &BlockTridiagonal<T>, j: usize, panel: &mut [T], g: &mut [T], sums: &mut [f64], max: &mut f64) {
    let k = a.partition().size(j);
    let next = sums.len() - k;
    let ld = k + next;
    if let DiagonalBlocks::Dense { starts, values } = a.diagonal() {
        copy_columns(&values[starts[j]..], k, panel, ld);
    } else {
        a.copy_diagonal_block(j, MatMut::from_column_major_slice_mut(&mut *panel, ld, k).subrows_mut(0, k));
    }
    match a.couplings() {
        _ if next == 0 => {}
        Couplings::Dense { starts, values } => {
            // Block row j is [Lⱼ Uⱼ], block row j + 1 begins with Lⱼ₊₁.
            let before = if j > 0 { a.partition().size(j - 1) } else { 0 };
            copy_columns(&values[starts[j] + k * before..starts[j + 1]], k, g, k);
            copy_columns(&values[starts[j + 1]..starts[j + 1] + next * k], next, &mut panel[k..], ld);
        }
        _ => {
            a.copy_lower_block(j + 1, MatMut::from_column_major_slice_mut(&mut *panel, ld, k).subrows_mut(k, next));
            a.copy_upper_block(j, MatMut::from_column_major_slice_mut(&mut *g, k, next));
        }
    }
    for (column, sum) in panel.chunks_exact(ld).chain(g.chunks_exact(k)).zip(sums) {
        let mut lanes = [zero::<T::Real>(); LANES];
        *sum += sum_and_max(column, &mut lanes).to_f64();
        *max = lanes.iter().fold(*max, |m, lane| m.max_nan(lane.to_f64()));
    }
}

/// Columns of `k` contiguous values to the head of columns of `ld`.
#[inline(always)]
fn copy_columns<T: Scalar>(from: &[T], k: usize, to: &mut [T], ld: usize) {
    for (from, to) in from.chunks_exact(k).zip(to.chunks_mut(ld)) {
        to[..k].copy_from_slice(from);
    }
}

/// The largest |re vᵢ| + |im vᵢ|; NaN when one is.
#[inline(always)]
fn largest<T: Scalar>(values: &[T]) -> f64 {
    let mut lanes = [zero::<T::Real>(); LANES];
    max_lanes(values, &mut lanes);
    lanes.iter().fold(0.0, |m, lane| m.max_nan(lane.to_f64()))
}

/// D ← D − H·G with H the lower `k` rows of the last panel.
#[inline(always)]
fn subtract_product<T: Scalar>(panel: &[T], g: &[T], last: usize, k: usize, d: &mut [T], ld: usize) {
    for c in 0..k {
        let d = &mut d[c * ld..c * ld + k];
        let h = |r: usize| &panel[r * (last + k) + last..][..k];
        let g = &g[c * last..(c + 1) * last];
        // Four columns of H at a time: a quarter of the traffic of d.
        let mut r = 0;
        while r + 4 <= last {
            let (h0, h1, h2, h3) = (h(r), h(r + 1), h(r + 2), h(r + 3));
            for i in 0..k {
                d[i] -= h0[i] * g[r] + h1[i] * g[r + 1] + h2[i] * g[r + 2] + h3[i] * g[r + 3];
            }
            r += 4;
        }
        for r in r..last {
            axpy_minus::<_, false>(g[r], h(r), d);
        }
    }
}

impl<T: Scalar> Front<'_, T> {
    /// P·D̃ = L̃·Ũ, H ← L·Ũ⁻¹, G ← L̃⁻¹·P·U, column by column; the row without a pivot if there is one.
    #[inline(always)]
    fn eliminate(&mut self) -> Option<usize> {
        let (k, ld) = (self.k, self.k + self.next);
        for c in 0..k {
            let (done, rest) = self.panel.split_at_mut((c + 1) * ld);
            let column = &mut done[c * ld..];
            let p = c + index_of_max(&column[c..k]);
            self.pivots[c] = p as u32;
            if !usable(column[p]) {
                return Some(c);
            }
            column.swap(c, p);
            let pivot = Pivot::new(column[c]);
            column[c + 1..].iter_mut().for_each(|v| *v = pivot.divide(*v));
            for other in rest.chunks_exact_mut(ld) {
                other.swap(c, p);
                axpy_minus::<_, false>(other[c], &column[c + 1..], &mut other[c + 1..]);
            }
            // The columns to the left take part in the exchange.
            if p != c {
                for left in done[..c * ld].chunks_exact_mut(ld) {
                    left.swap(c, p);
                }
            }
        }
        for g in self.g.chunks_exact_mut(k) {
            for c in 0..k {
                g.swap(c, self.pivots[c] as usize);
            }
            for c in 0..k {
                axpy_minus::<_, false>(g[c], &self.panel[c * ld + c + 1..c * ld + k], &mut g[c + 1..]);
            }
        }
        None
    }

    /// The same with faer's kernels.
    fn eliminate_blocked(&mut self, permutation: &mut [u32], memory: &mut MemBuffer) -> Option<usize> {
        let (k, next) = (self.k, self.next);
        let (forward, rest) = permutation.split_at_mut(k);
        let (inverse, rest) = rest.split_at_mut(k);
        let (mut d, mut h) = MatMut::from_column_major_slice_mut(&mut *self.panel, k + next, k).split_at_row_mut(k);
        let stack = MemStack::new(memory);
        lu_in_place(d.as_mut(), forward, inverse, Par::Seq, stack, faer::prelude::default());
        exchanges(forward, rest, self.pivots);
        // faer goes on through a zero pivot; what follows it is not finite, what precedes it is sound.
        if let Some(row) = (0..k).find(|&r| !usable(d[(r, r)])) {
            return Some(row);
        }
        // Hᵀ ← Ũ⁻ᵀ·Lᵀ
        solve_lower_triangular_in_place(d.as_ref().transpose(), h.as_mut().transpose_mut(), Par::Seq);
        for g in self.g.chunks_exact_mut(k) {
            for (r, &p) in self.pivots.iter().enumerate() {
                g.swap(r, p as usize);
            }
        }
        let g = MatMut::from_column_major_slice_mut(&mut *self.g, k, next);
        solve_unit_lower_triangular_in_place(d.as_ref(), g, Par::Seq);
        None
    }

    /// max(|Ũ|, |H|·|G|) and the smallest pivot.
    #[inline(always)]
    fn measure(&self) -> (f64, f64) {
        let (k, ld) = (self.k, self.k + self.next);
        let (mut u, mut h, mut min_pivot) = (0.0f64, 0.0f64, f64::INFINITY);
        for (c, column) in self.panel.chunks_exact(ld).enumerate() {
            let u_column = largest(&column[..=c]);
            let h_column = largest(&column[k..]);
            u = u.max_nan(u_column);
            h = h.max_nan(h_column);
            min_pivot = min_pivot.min_nan(column[c].abs().to_f64());
        }
        let g = largest(self.g);
        (u.max_nan(h * g), min_pivot)
    }
}

/// A pivot that can be divided by.
#[inline(always)]
fn usable<T: Scalar>(p: T) -> bool {
    let size = p.abs1();
    size > T::Real::default() && Scalar::is_finite(p)
}

/// The row exchanges that make the permutation `forward` (row i of P·D is row `forward[i]` of D).
fn exchanges(forward: &[u32], work: &mut [u32], pivots: &mut [u32]) {
    let k = forward.len();
    // `at[r]`: where row r stands now; `row[i]`: which row stands at i.
    let (at, row) = work.split_at_mut(k);
    for i in 0..k {
        (at[i], row[i]) = (i as u32, i as u32);
    }
    for i in 0..k {
        let p = at[forward[i] as usize];
        pivots[i] = p;
        let moved = row[i];
        row[p as usize] = moved;
        at[moved as usize] = p;
        row[i] = forward[i];
    }
}

fn no_pivot(block: usize, row: usize, start: usize, last: bool) -> FactorError {
    if last {
        let column = start + row;
        return FactorError::Singular(Singularity { kind: SingularKind::Numerical, column, block: Some(block) });
    }
    FactorError::Breakdown {
        method: METHOD,
        reason: format!(
            "no pivot inside block {block} for its column {row}, column {} of the matrix (from 0); pivoting across \
             blocks is needed: band-lu",
            start + row
        ),
    }
}

fn too_much_growth(block: usize, growth: f64) -> FactorError {
    FactorError::Breakdown {
        method: METHOD,
        reason: format!(
            "elements grow by {growth:.1e} in block {block}: what elimination left of it is nearly singular; pivoting across \
             blocks is needed: band-lu"
        ),
    }
}
