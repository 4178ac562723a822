//! Narrow bands, kl ≤ 32: column by column, all lanes of the window in a few registers.
//!
//! The row that enters with a step is not in a lane yet. When it is the pivot, W ← W − l·uᵀ; otherwise it takes the
//! pivot's lane, and with its multiplier there the update is the same. The column to be searched next is updated
//! first, so that the search overlaps with the rest of the update.

use bt_formats::{Scalar, zero};

use super::end::{Direction, End, Lanes, Shape, key, reciprocal};
use super::kernels::{LANES, mul_add};
use crate::pivot::Pivot;

impl<T: Scalar> End<T> {
    /// Eliminates the columns first..last; the window starts at column `first`.
    #[inline(always)]
    pub(super) fn eliminate_strip<const V: usize, const FUSED: bool>(
        &mut self,
        source: Option<&[T]>,
        first: usize,
        last: usize,
    ) {
        for j in first..last {
            self.load_row(source, j);
            if !self.eliminate_column::<V, FUSED>(j, j - first) {
                return;
            }
        }
        // The window slides on.
        let (done, kv) = ((last - first) * V, self.shape.kv() * V);
        self.window.copy_within(done..done + kv, 0);
        self.window[kv..].fill(Lanes([zero(); LANES]));
    }

    /// Row j + kl: the columns j to j + kl + ku.
    #[inline(always)]
    fn load_row(&mut self, source: Option<&[T]>, j: usize) {
        let Shape { kl, ku, rows, ncols, direction, .. } = self.shape;
        let row = &mut self.scratch[..];
        let r = j + kl;
        if r >= rows {
            row.fill(zero());
            return;
        }
        let width = row.len().min(ncols - j);
        let row = &mut row[..width];
        let stride = (2 * kl + ku).max(1);
        match (source, direction) {
            (None, _) => {
                let from = &self.values[self.shape.at(r, j)..];
                row.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &from)| *to = from);
            }
            (Some(source), Direction::Forward) => {
                let from = &source[self.shape.source_at(r, j)..];
                row.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &from)| *to = from);
            }
            (Some(source), Direction::Backward) => {
                let from = &source[..=self.shape.source_at(r, j)];
                let stride = (2 * ku + kl).max(1);
                row.iter_mut().zip(from.iter().rev().step_by(stride)).for_each(|(to, &from)| *to = from);
            }
        }
    }

    /// Eliminates column j, column t of the window. False when it has no pivot.
    #[inline(always)]
    fn eliminate_column<const V: usize, const FUSED: bool>(&mut self, j: usize, t: usize) -> bool {
        let Shape { kl, ku, rows, ncols, .. } = self.shape;
        let column = self.window.as_chunks::<V>().0[t];
        let entering = self.scratch[0];
        let lane = pivot_lane(&column, entering);
        let fresh = lane == V * LANES;
        let pivot = if fresh { entering } else { column[lane / LANES].0[lane % LANES] };
        let position = if fresh { j + kl } else { self.position[lane] as usize };
        let mask = self.lane_at.len() - 1;
        if pivot == zero() {
            self.found.singular = Some(j);
            return false;
        }
        self.note_pivot(j, position);
        if kl > 0 {
            // The row at position j goes where the pivot was, and the entering row into the pivot's lane.
            let displaced = self.lane_at[j & mask];
            self.lane_at[position & mask] = displaced;
            self.position[displaced as usize] = position as u32;
            if !fresh {
                self.lane_at[(j + kl) & mask] = lane as u32;
                self.position[lane] = (j + kl) as u32;
            }
        }
        let reach = self.found.reach;
        self.count(j, pivot);

        // l ← column/pivot, with the multiplier of the entering row in the lane it takes.
        let mut l = column;
        if !fresh {
            l[lane / LANES].0[lane % LANES] = entering;
        }
        if let Some(r) = reciprocal(pivot) {
            for v in 0..V {
                for k in 0..LANES {
                    l[v].0[k] *= r;
                }
            }
        } else {
            let divisor = Pivot::new(pivot);
            for v in l.iter_mut().flat_map(|l| &mut l.0) {
                *v = divisor.divide(*v);
            }
        }

        // W ← W − l·uᵀ
        let stride = (2 * kl + ku).max(1);
        let diagonal = self.shape.at(j, j);
        let (window, row) = (&mut self.window.as_chunks_mut::<V>().0[t + 1..], &self.scratch[1..]);
        // Row j of U in the columns behind j; the last column has none.
        let behind = (diagonal + stride).min(self.values.len());
        let u = self.values[behind..].iter_mut().step_by(stride);
        let reached = reach - j - 1;
        if fresh {
            for ((w, &value), out) in window[..reached].iter_mut().zip(row).zip(u) {
                *out = value;
                subtract::<T, V, FUSED>(w, &l, value);
            }
        } else {
            let (inside, beyond) = window[..(kl + ku).min(ncols - 1 - j)].split_at_mut(reached);
            for ((w, &value), out) in inside.iter_mut().zip(row).zip(u) {
                let u = w[lane / LANES].0[lane % LANES];
                *out = u;
                // The entering row takes the lane.
                for v in 0..V {
                    for k in 0..LANES {
                        let old = w[v].0[k];
                        w[v].0[k] = if v * LANES + k == lane { value } else { old };
                    }
                }
                subtract::<T, V, FUSED>(w, &l, u);
            }
            for (w, &value) in beyond.iter_mut().zip(&row[reached..]) {
                w[lane / LANES].0[lane % LANES] = value;
            }
        }
        self.values[diagonal] = pivot;
        let below = kl.min(rows - 1 - j);
        for (i, out) in self.values[diagonal + 1..=diagonal + below].iter_mut().enumerate() {
            let lane = self.lane_at[(j + 1 + i) & mask] as usize;
            *out = l[(lane / LANES).min(V - 1)].0[lane % LANES];
        }
        true
    }
}

/// w ← w − l·u.
#[inline(always)]
fn subtract<T: Scalar, const V: usize, const FUSED: bool>(w: &mut [Lanes<T>; V], l: &[Lanes<T>; V], u: T) {
    let minus_u = -u;
    for v in 0..V {
        for k in 0..LANES {
            w[v].0[k] = mul_add::<T, FUSED>(minus_u, l[v].0[k], w[v].0[k]);
        }
    }
}

/// Lane of the largest |re| + |im|; V·LANES stands for the entering row.
#[inline(always)]
fn pivot_lane<T: Scalar, const V: usize>(column: &[Lanes<T>; V], entering: T) -> usize {
    let mut best = [0u64; LANES];
    for v in 0..V {
        for k in 0..LANES {
            best[k] = best[k].max(key(column[v].0[k], v * LANES + k));
        }
    }
    let best = super::kernels::reduce(best, u64::max).max(key(entering, V * LANES));
    if best >= 64 {
        return 63 - (best & 63) as usize;
    }
    // Sixty-four times the smallest denormal and less: the key does not tell them apart.
    let mut largest = (V * LANES, entering.abs1());
    for (i, v) in column.iter().flat_map(|c| c.0).enumerate() {
        if v.abs1() > largest.1 {
            largest = (i, v.abs1());
        }
    }
    largest.0
}
