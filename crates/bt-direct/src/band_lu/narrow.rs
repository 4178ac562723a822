//! Narrow bands, kl ≤ 32: column by column, all lanes of the window in a few registers.
//!
//! The row that enters with a step is not in a lane yet. When it is the pivot, W ← W − l·uᵀ; otherwise it takes the
//! pivot's lane, and with its multiplier there the update is the same. The column to be searched next is updated
//! first: its pivot and multipliers, one long chain, are found while the other columns are updated.

use bt_formats::{RealScalar, Scalar, zero};

use super::end::{COLUMNS, Direction, End, EndSizes, Lanes, reciprocal};
use super::kernels::{LANES, max_lanes, mul_add, reduce};
use crate::pivot::Pivot;

/// Arithmetic on columns of lanes.
pub(super) trait Kernel<T: Scalar, const R: usize>: Copy {
    /// Multipliers in registers.
    type Multipliers: Copy;
    /// From memory.
    fn load(self, l: &[[T; LANES]; R]) -> Self::Multipliers;
    /// w ← w − l·u
    fn subtract(self, w: &mut [Lanes<T>; R], l: Self::Multipliers, u: T);
    /// Lane of a candidate that is the largest but for its last bits; R·LANES stands for the entering row. None when all are
    /// zero or hardly larger.
    fn pivot_lane(self, column: &[Lanes<T>; R], entering: T) -> Option<usize>;
    /// r·column, and r·entering in the lane.
    fn scaled(self, column: &[Lanes<T>; R], lane: usize, entering: T, r: T) -> [[T; LANES]; R];
    /// `max` ← max(`max`, |re u| + |im u|) place by place; a NaN somewhere when some u is not finite.
    fn note(self, u: &[[T; LANES]], max: &mut [T::Real; LANES]);
}

/// Loops that the compiler vectorises as it can, where there are not the vectors of `vectors.rs`.
#[derive(Clone, Copy)]
pub(crate) struct Loops<const FUSED: bool>;

impl<T: Scalar, const R: usize, const FUSED: bool> Kernel<T, R> for Loops<FUSED> {
    type Multipliers = [[T; LANES]; R];
    #[inline(always)]
    fn load(self, l: &[[T; LANES]; R]) -> [[T; LANES]; R] {
        *l
    }
    #[inline(always)]
    fn subtract(self, w: &mut [Lanes<T>; R], l: [[T; LANES]; R], u: T) {
        let minus_u = -u;
        for r in 0..R {
            for k in 0..LANES {
                w[r].0[k] = mul_add::<T, FUSED>(minus_u, l[r][k], w[r].0[k]);
            }
        }
    }
    #[inline(always)]
    fn pivot_lane(self, column: &[Lanes<T>; R], entering: T) -> Option<usize> {
        // Bits of the modulus, the last six replaced by 63 − lane: the largest key is the pivot's.
        let key = |v: T, lane: usize| (v.abs1().to_f64().to_bits().cast_signed() & !63) | (63 - lane as i64);
        let mut best = [0i64; LANES];
        for r in 0..R {
            for k in 0..LANES {
                best[k] = best[k].max(key(column[r].0[k], r * LANES + k));
            }
        }
        let best = reduce(best, i64::max).max(key(entering, R * LANES));
        (best >= 64).then_some(63 - (best & 63) as usize)
    }
    #[inline(always)]
    fn scaled(self, column: &[Lanes<T>; R], lane: usize, entering: T, r: T) -> [[T; LANES]; R] {
        let mut l = column.map(|c| c.0);
        if let Some(l) = l.as_flattened_mut().get_mut(lane) {
            *l = entering;
        }
        l.as_flattened_mut().iter_mut().for_each(|l| *l *= r);
        l
    }
    #[inline(always)]
    fn note(self, u: &[[T; LANES]], max: &mut [T::Real; LANES]) {
        max_lanes(u.as_flattened(), max);
    }
}

/// A column's pivot and multipliers.
struct Gauss<T, const R: usize> {
    /// Its lane; R·LANES stands for the entering row.
    lane: usize,
    pivot: T,
    /// The entering row's multiplier is in the lane that it takes.
    l: [[T; LANES]; R],
}

impl<T: Scalar, const R: usize> Gauss<T, R> {
    /// Of a column and the entering row's value in it.
    #[inline(always)]
    fn of(kernel: impl Kernel<T, R>, column: &[Lanes<T>; R], entering: T) -> Self {
        let lane = kernel.pivot_lane(column, entering).unwrap_or_else(|| tiny_pivot_lane(column, entering));
        let pivot = if lane == R * LANES { entering } else { column[lane / LANES].0[lane % LANES] };
        let l = if let Some(r) = reciprocal(pivot) {
            kernel.scaled(column, lane, entering, r)
        } else {
            quotients(kernel, column, lane, entering, pivot)
        };
        Self { lane, pivot, l }
    }
}

/// As [`Kernel::scaled`] with r = 1/pivot, whose reciprocal over- or underflows.
#[cold]
fn quotients<T: Scalar, const R: usize>(
    kernel: impl Kernel<T, R>,
    column: &[Lanes<T>; R],
    lane: usize,
    entering: T,
    pivot: T,
) -> [[T; LANES]; R] {
    let mut l = kernel.scaled(column, lane, entering, T::rounded(1.0, 0.0));
    let divisor = Pivot::new(pivot);
    l.as_flattened_mut().iter_mut().for_each(|v| *v = divisor.divide(*v));
    l
}

/// Lane of the largest candidate, however small; NaN counts as larger than all.
#[cold]
pub(super) fn tiny_pivot_lane<T: Scalar, const R: usize>(column: &[Lanes<T>; R], entering: T) -> usize {
    let mut largest = (R * LANES, entering.abs1());
    for (i, v) in column.iter().flat_map(|c| c.0).enumerate() {
        if !(v.abs1() <= largest.1) {
            largest = (i, v.abs1());
        }
    }
    largest.0
}

impl<T: Scalar> End<T> {
    /// Eliminates the columns first..last; the window starts at column `first`.
    #[inline(always)]
    pub(super) fn eliminate_strip<const R: usize>(
        &mut self,
        kernel: impl Kernel<T, R>,
        source: Option<&[T]>,
        first: usize,
        last: usize,
    ) {
        self.load_row(source, first);
        let mut step = Gauss::of(kernel, &self.window.as_chunks::<R>().0[0], self.scratch[0]);
        for j in first..last {
            if step.pivot == zero() {
                self.found.singular = Some(j);
                return;
            }
            let t = j - first;
            self.note_step(j, &step);
            let reached = self.found.reach - j - 1;
            self.take_pivot_row(t, &step);
            let l = kernel.load(&step.l);
            let next = &mut self.window.as_chunks_mut::<R>().0[t + 1];
            kernel.subtract(next, l, self.u.as_flattened()[1]);
            let next = *next;
            if j + 1 < last {
                self.load_row(source, j + 1);
            }
            let following = Gauss::of(kernel, &next, self.scratch[0]);
            let others = self.window.as_chunks_mut::<R>().0[t + 2..].as_chunks_mut::<COLUMNS>().0;
            let groups = reached.saturating_sub(1).div_ceil(COLUMNS);
            for (w, u) in others[..groups].iter_mut().zip(self.u.as_flattened()[2..].as_chunks::<COLUMNS>().0) {
                for c in 0..COLUMNS {
                    kernel.subtract(&mut w[c], l, u[c]);
                }
            }
            kernel.note(&self.u, &mut self.found.max_u);
            self.write(j, &step);
            step = following;
        }
        self.slide::<R>(last - first);
    }

    /// The window goes on by so many columns of R registers.
    #[inline(always)]
    pub(super) fn slide<const R: usize>(&mut self, columns: usize) {
        let (done, kept) = (columns * R, self.shape.kv() * R);
        self.window.copy_within(done..done + kept, 0);
        self.window[kept..].fill(Lanes([zero(); LANES]));
    }

    /// Row j + kl: the columns j to j + kl + ku.
    #[inline(always)]
    fn load_row(&mut self, source: Option<&[T]>, j: usize) {
        let EndSizes { kl, ku, rows, ncols, direction, .. } = self.shape;
        let row = &mut self.scratch[..];
        let r = j + kl;
        if r >= rows {
            row.fill(zero());
            return;
        }
        let width = row.len().min(ncols - j);
        let (row, beyond) = row.split_at_mut(width);
        beyond.fill(zero());
        match (source, direction) {
            (None, _) => every(&self.values[self.shape.at(r, j)..], 2 * kl + ku, row),
            (Some(source), Direction::Forward) => every(&source[self.shape.source_at(r, j)..], 2 * kl + ku, row),
            (Some(source), Direction::Backward) => {
                every_backwards(&source[..=self.shape.source_at(r, j)], 2 * ku + kl, row);
            }
        }
    }

    /// Notes the pivot of column j and where rows are now.
    #[inline(always)]
    fn note_step<const R: usize>(&mut self, j: usize, step: &Gauss<T, R>) {
        let kl = self.shape.kl;
        let (lane, fresh) = (step.lane, step.lane == R * LANES);
        let position = if fresh { j + kl } else { self.position[lane] as usize };
        self.note_pivot(j, position);
        if kl > 0 {
            let mask = self.lane_at.len() - 1;
            // The row at position j goes where the pivot was, and the entering row into the pivot's lane.
            let displaced = self.lane_at[j & mask];
            self.lane_at[position & mask] = displaced;
            self.position[displaced as usize] = position as u32;
            if !fresh {
                self.lane_at[(j + kl) & mask] = lane as u32;
                self.position[lane] = (j + kl) as u32;
            }
        }
        self.count(j, step.pivot);
    }

    /// u ← the pivot and its row behind column t of the window; the entering row takes its lane.
    #[inline(always)]
    fn take_pivot_row<const R: usize>(&mut self, t: usize, step: &Gauss<T, R>) {
        let kv = self.shape.kv();
        let (pivot, u) = self.u.as_flattened_mut()[..=kv].split_first_mut().expect("room for a row");
        *pivot = step.pivot;
        let row = &self.scratch[1..=kv];
        if step.lane == R * LANES {
            u.copy_from_slice(row);
            return;
        }
        let window = &mut self.window.as_chunks_mut::<R>().0[t + 1..];
        let (r, k) = (step.lane / LANES, step.lane % LANES);
        for ((u, w), &row) in u.iter_mut().zip(window).zip(row) {
            *u = std::mem::replace(&mut w[r].0[k], row);
        }
    }

    /// Writes row j of U, zeros beyond its reach too, and column j of L.
    #[inline(always)]
    fn write<const R: usize>(&mut self, j: usize, step: &Gauss<T, R>) {
        let EndSizes { kl, ku, rows, ncols, .. } = self.shape;
        let (diagonal, stride) = (self.shape.at(j, j), self.shape.ld() - 1);
        let width = (kl + ku).min(ncols - 1 - j);
        to_every(&mut self.values[diagonal..], stride, &self.u.as_flattened()[..=width]);
        let below = kl.min(rows - 1 - j);
        let l = &mut self.shape.multipliers(j, &mut self.values, &mut self.lower)[..below];
        let (after, before) = self.lane_at.split_at((j + 1) & (self.lane_at.len() - 1));
        let (head, tail) = l.split_at_mut(below.min(before.len()));
        let multipliers = step.l.as_flattened();
        for (l, &lane) in head.iter_mut().zip(before) {
            *l = multipliers[lane as usize % (R * LANES)];
        }
        for (l, &lane) in tail.iter_mut().zip(after) {
            *l = multipliers[lane as usize % (R * LANES)];
        }
    }
}

/// to ← every `stride`-th number, four at a time: one check of bounds for them.
#[inline(always)]
fn every<T: Copy>(from: &[T], stride: usize, to: &mut [T]) {
    let (groups, rest) = to.as_chunks_mut::<4>();
    let done = 4 * groups.len() * stride;
    for (i, to) in groups.iter_mut().enumerate() {
        let from = &from[4 * i * stride..][..=3 * stride];
        *to = [from[0], from[stride], from[2 * stride], from[3 * stride]];
    }
    for (i, to) in rest.iter_mut().enumerate() {
        *to = from[done + i * stride];
    }
}

/// The same from the last number back.
#[inline(always)]
fn every_backwards<T: Copy>(from: &[T], stride: usize, to: &mut [T]) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = from[from.len() - 1 - i * stride];
    }
}

/// Every `stride`-th number ← from.
#[inline(always)]
fn to_every<T: Copy>(to: &mut [T], stride: usize, from: &[T]) {
    let (groups, rest) = from.as_chunks::<4>();
    let done = 4 * groups.len() * stride;
    for (i, &[a, b, c, d]) in groups.iter().enumerate() {
        let to = &mut to[4 * i * stride..][..=3 * stride];
        (to[0], to[stride], to[2 * stride], to[3 * stride]) = (a, b, c, d);
    }
    for (i, &from) in rest.iter().enumerate() {
        to[done + i * stride] = from;
    }
}
