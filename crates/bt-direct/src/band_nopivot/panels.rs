//! Bands of 32 diagonals and more on either side that are too wide for groups and the window: by panels of columns, as in
//! `band_lu/panels.rs` but without exchanges. The operations on an element and their order are those of elimination column by
//! column; in single precision panels fuse products and sums.
//!
//! A panel is factored in a dense copy, in vectors that all begin at multiples of their length from the head of a column: in the
//! band they would begin one row further with every column, and each would wait for two stores.

use std::ops::Range;

use bt_formats::{RealScalar, Scalar, zero};
use pulp::Simd;

use super::{Stop, Strip, boost, plus_product};
use crate::band_lu::end::GROUP;
use crate::band_lu::end::divide;
use crate::band_lu::kernels::{LANES, reduce};
use crate::band_lu::narrow::Loops;
use crate::band_lu::panels::Panel;

/// Columns of a panel.
pub(super) const PANEL: usize = 16;

/// From one column of the dense copy to the next.
fn stride(kl: usize) -> usize {
    (kl + PANEL).next_multiple_of(LANES)
}

/// Values of scratch: the dense copy. None for bands that are narrow on one side, which go column by column.
pub(super) fn scratch(kl: usize, ku: usize) -> usize {
    if kl.min(ku) < 2 * PANEL { 0 } else { stride(kl).saturating_mul(PANEL) }
}

impl<T: Scalar> Strip<'_, T> {
    /// Eliminates the strip panel by panel.
    #[inline(always)]
    pub(super) fn eliminate_panels<const FUSED: bool, S: Simd>(&mut self, s: S, panel: &mut [T]) -> Option<Stop> {
        let mut first = self.first;
        while first < self.last {
            let end = (first + PANEL).min(self.last);
            let mut largest = [zero::<T::Real>(); PANEL];
            let (last, stopped) = self.factor_panel::<FUSED>(panel, first..end, &mut largest);
            // What comes before a column without a pivot may have gone wrong already.
            self.apply_panel::<FUSED, S>(s, panel, first, last, &mut largest);
            let mut noted = (first..last).zip(largest);
            let stopped = noted.find_map(|(j, largest)| self.check(j, largest)).or(stopped);
            if stopped.is_some() {
                return stopped;
            }
            first = last;
        }
        None
    }

    /// Factors the columns in the dense copy and writes them back. The end of those that have pivots, and why the next has none;
    /// `largest` ← the largest |u| in each row of their columns.
    #[inline(always)]
    fn factor_panel<const FUSED: bool>(
        &mut self,
        panel: &mut [T],
        columns: Range<usize>,
        largest: &mut [T::Real; PANEL],
    ) -> (usize, Option<Stop>) {
        let lu = &mut *self.lu;
        let (kl, first, nb) = (lu.kl, columns.start, columns.len());
        let (ld, m) = (stride(kl), (columns.end + kl).min(lu.n) - first);
        let at = |k: usize| (first + k) * lu.ld + lu.diagonal - k;
        let panel = &mut panel[..ld * nb];
        for (k, column) in panel.chunks_exact_mut(ld).enumerate() {
            let rows = m.min(k + kl + 1);
            column[..rows].copy_from_slice(&lu.values[at(k)..at(k) + rows]);
            column[rows..].fill(zero());
        }
        let mut done = nb;
        let mut stopped = None;
        for k in 0..nb {
            let (column, rest) = panel[k * ld..].split_at_mut(ld);
            let pivot = match self.threshold {
                Some(threshold) => boost(column[k], threshold, &mut self.found.boosted),
                None => column[k],
            };
            if pivot == zero() || !Scalar::is_finite(pivot) {
                (done, stopped) = (k, Some(Stop::pivot(first + k, pivot)));
                break;
            }
            column[k] = pivot;
            self.found.min_pivot = self.found.min_pivot.min_nan(pivot.abs());
            divide(&mut column[k + 1..], pivot);
            // The vector that the row below the pivot is in, without what lies above, and those behind it.
            let v = (k + 1) / LANES;
            let Some((head, tail)) = column.as_chunks::<LANES>().0[v..].split_first() else { continue };
            let mut l = *head;
            l[..k + 1 - v * LANES].fill(zero());
            for other in rest.chunks_exact_mut(ld) {
                let minus_u = -other[k];
                let others = &mut other.as_chunks_mut::<LANES>().0[v..=v + tail.len()];
                let (first, others) = others.split_first_mut().expect("as many vectors as in the pivot's column");
                *first = plus_product::<T, FUSED>(*first, &l, minus_u);
                for (y, l) in others.iter_mut().zip(tail) {
                    *y = plus_product::<T, FUSED>(*y, l, minus_u);
                }
            }
        }
        for (k, column) in panel.chunks_exact(ld).take(done).enumerate() {
            let rows = m.min(k + kl + 1);
            lu.values[at(k)..at(k) + rows].copy_from_slice(&column[..rows]);
            for (largest, u) in largest.iter_mut().zip(&column[..=k]) {
                *largest = largest.max_nan(u.abs1());
            }
        }
        (first + done, stopped)
    }

    /// Applies the columns first..last to those behind them.
    #[inline(always)]
    fn apply_panel<const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
        panel: &[T],
        first: usize,
        last: usize,
        largest: &mut [T::Real; PANEL],
    ) {
        let lu = &mut *self.lu;
        let (nb, step) = (last - first, lu.ld - 1);
        let (ld, rows) = (stride(lu.kl), (last + lu.kl).min(lu.n) - first);
        let panel = Panel { values: panel, ld, columns: nb, rows };
        let end = (last + lu.ku).min(lu.n);
        let mut c = last;
        macro_rules! columns {
            ($($columns:literal)*) => {$(
                while nb > 0 && end.saturating_sub(c) >= $columns {
                    let base = c * lu.ld + lu.diagonal + first - c;
                    // Rows above a column's storage are zero.
                    let absent = |i: usize| (c + i).saturating_sub(lu.ku + first).min(nb);
                    let mut x = [[zero::<T>(); GROUP]; PANEL];
                    for i in 0..$columns {
                        let from = absent(i);
                        let stored = &lu.values[base + i * step + from..base + i * step + nb];
                        for (x, &v) in x[from..nb].iter_mut().zip(stored) {
                            x[i] = v;
                        }
                    }
                    panel.apply::<$columns, FUSED, S, _>(s, Loops::<FUSED>, &mut x[..nb], &mut lu.values, base, step, std::array::from_fn(absent));
                    for (largest, x) in largest.iter_mut().zip(&x[..nb]) {
                        *largest = largest.max_nan(reduce(x.map(Scalar::abs1), RealScalar::max_nan));
                    }
                    c += $columns;
                }
            )*};
        }
        columns!(8 4 1);
    }
}
