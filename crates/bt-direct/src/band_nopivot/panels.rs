//! Wide bands: by panels of columns, as in `band_lu/panels.rs` but without exchanges. The operations on an element and their
//! order are those of elimination column by column; in single precision panels fuse products and sums.

use bt_formats::{RealScalar, Scalar, zero};
use pulp::Simd;

use super::{Stop, Strip};
use crate::band_lu::panels::{GROUP, Panel};

/// Columns of a panel.
pub(super) const PANEL: usize = 16;

/// Values of scratch; none for narrow bands, which go column by column.
pub(super) fn scratch(kl: usize, ku: usize) -> usize {
    if kl.min(ku) < 2 * PANEL { 0 } else { (kl + PANEL).saturating_add(GROUP).saturating_mul(PANEL) }
}

impl<T: Scalar> Strip<'_, T> {
    /// Eliminates the strip panel by panel.
    #[inline(always)]
    pub(super) fn eliminate_panels<const FUSED: bool, S: Simd>(&mut self, s: S) -> Option<Stop> {
        let mut first = self.first;
        while first < self.last {
            let mut last = (first + PANEL).min(self.last);
            let mut largest = [zero::<T::Real>(); PANEL];
            let mut stopped = None;
            for j in first..last {
                stopped = self.eliminate::<FUSED>(j, last, &mut largest[j - first]);
                if stopped.is_some() {
                    // What comes before may have gone wrong already.
                    last = j;
                    break;
                }
            }
            self.apply_panel::<FUSED, S>(s, first, last, &mut largest);
            let mut noted = (first..last).zip(largest);
            stopped = noted.find_map(|(j, largest)| self.check(j, largest)).or(stopped);
            if stopped.is_some() {
                return stopped;
            }
            first = last;
        }
        None
    }

    /// Applies the columns first..last to those behind them.
    #[inline(always)]
    fn apply_panel<const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
        first: usize,
        last: usize,
        largest: &mut [T::Real; PANEL],
    ) {
        let lu = &mut *self.lu;
        let (nb, ldp, stride) = (last - first, lu.kl + PANEL, lu.ld - 1);
        let m = (last + lu.kl).min(lu.n) - first;
        let (panel, by_columns) = lu.panel.split_at_mut(ldp * PANEL);
        for (k, column) in panel.chunks_exact_mut(ldp).take(nb).enumerate() {
            let (rows, at) = (k + 1..m.min(k + lu.kl + 1), (first + k) * lu.ld + lu.diagonal);
            column[..=k].fill(zero());
            column[rows.clone()].copy_from_slice(&lu.values[at + 1..=at + rows.len()]);
            column[rows.end..m].fill(zero());
        }
        let panel = Panel { values: panel, ld: ldp, columns: nb, rows: m };
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
                        for k in absent(i)..nb {
                            x[k][i] = lu.values[base + i * stride + k];
                        }
                    }
                    panel.apply::<$columns, FUSED, S>(s, &mut x[..nb], by_columns, &mut lu.values, base, stride, absent);
                    for (largest, x) in largest.iter_mut().zip(&x[..nb]) {
                        for v in x {
                            *largest = largest.max_nan(v.abs1());
                        }
                    }
                    c += $columns;
                }
            )*};
        }
        columns!(8 4 1);
    }
}
