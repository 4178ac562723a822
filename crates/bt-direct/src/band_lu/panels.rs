//! Wide bands, kl > 32: by panels of columns, in LAPACK's layout.
//!
//! A panel of nb columns is copied to a dense (kl + nb) × nb array, zeros where it leaves the band, and factored there
//! with whole-row exchanges. L is written back column by column as it stood before later exchanges, which is how the
//! solves expect it. The trailing columns, eight at a time, then take the panel's exchanges, the unit triangular solve
//! X ← L₁₁⁻¹·X, and the update Y ← Y − L₂₁·X in register blocks. A column whose top rows lie above its storage has
//! zeros there: neither exchanges nor the solve touch them. Columns beyond the last one eliminated take the same steps;
//! what they hold below U afterwards is the Schur complement.

use bt_formats::{Reals, RealsMut, Scalar, zero};
use pulp::Simd;

use super::end::{End, divide, filled};
use super::kernels::{axpy_minus, block_update, index_of_max, solve_rows};
use crate::block_lu::simd;
use crate::error::Result;

/// Trailing columns updated together.
pub(crate) const GROUP: usize = 8;

/// The exchanges of a panel composed, in rows of the panel.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    /// Where the rows of the panel come from.
    sources: Vec<u32>,
    /// (to, from) of the rows below the panel that one of its first rows goes to, and how many there are.
    moves: Vec<(u32, u32)>,
    moved: usize,
}

impl Exchanges {
    pub(super) fn new(panel: usize) -> Result<Self> {
        Ok(Self { sources: filled(panel, 0)?, moves: filled(panel, (0, 0))?, moved: 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.sources) + size_of_val(&*self.moves)
    }

    /// Composes the exchanges of row k with row `pivots[k] − first`. A row below the panel only ever receives one of
    /// the panel's own rows, which are read before they are overwritten.
    fn compose(&mut self, pivots: &[u32], first: usize) {
        let nb = pivots.len();
        for (source, k) in self.sources[..nb].iter_mut().zip(0..) {
            *source = k;
        }
        self.moved = 0;
        for (k, &pivot) in pivots.iter().enumerate() {
            let p = pivot as usize - first;
            let from = self.sources[k];
            if p < nb {
                self.sources.swap(k, p);
            } else if let Some(moved) = self.moves[..self.moved].iter_mut().find(|m| m.0 as usize == p) {
                self.sources[k] = std::mem::replace(&mut moved.1, from);
            } else {
                self.moves[self.moved] = (p as u32, from);
                self.moved += 1;
                self.sources[k] = p as u32;
            }
        }
    }
}

impl<T: Scalar> End<T> {
    /// Eliminates the columns first..last, at most a panel.
    #[inline(always)]
    pub(super) fn eliminate_panel<const FUSED: bool, S: Simd>(&mut self, s: S, first: usize, last: usize) {
        if !self.factor_panel::<FUSED>(first, last) {
            return;
        }
        self.exchanges.compose(&self.pivots[first..last], first);
        let mut c = last;
        while c < self.found.reach {
            let width = self.found.reach - c;
            if width >= GROUP {
                self.update_columns::<GROUP, FUSED, S>(s, first, last, c);
                c += GROUP;
            } else if width >= 4 {
                self.update_columns::<4, FUSED, S>(s, first, last, c);
                c += 4;
            } else {
                self.update_columns::<1, FUSED, S>(s, first, last, c);
                c += 1;
            }
        }
    }

    /// Rows from one column of the panel's array to the next.
    #[inline(always)]
    fn panel_stride(&self) -> usize {
        self.shape.kl + self.tuning.strip()
    }

    /// Factors the panel in its dense copy and writes U and L back. False when a column has no pivot.
    #[inline(always)]
    fn factor_panel<const FUSED: bool>(&mut self, first: usize, last: usize) -> bool {
        let (shape, kl, ldp) = (self.shape, self.shape.kl, self.panel_stride());
        let (nb, m) = (last - first, (last + kl).min(shape.rows) - first);
        // Rows first.. of the panel.
        for k in 0..nb {
            let rows = m.min(k + kl + 1);
            let start = shape.at(first, first + k);
            let column = &mut self.scratch[k * ldp..k * ldp + m];
            column[..rows].copy_from_slice(&self.values[start..start + rows]);
            column[rows..].fill(zero());
        }
        for k in 0..nb {
            let j = first + k;
            let end = m.min(k + kl + 1);
            let p = k + index_of_max(&self.scratch[k * ldp + k..k * ldp + end]);
            self.note_pivot(j, first + p);
            let (left, right) = self.scratch.split_at_mut((k + 1) * ldp);
            let (before, column) = left.split_at_mut(k * ldp);
            let right = &mut right[..(nb - k - 1) * ldp];
            // Whole rows of the panel, L included.
            if p != k {
                column.swap(k, p);
                for c in before.chunks_exact_mut(ldp).chain(right.chunks_exact_mut(ldp)) {
                    c.swap(k, p);
                }
            }
            let pivot = column[k];
            if pivot == zero() {
                self.found.singular = Some(j);
                return false;
            }
            let l = &mut column[k + 1..end];
            divide(l, pivot);
            for c in right.chunks_exact_mut(ldp) {
                axpy_minus::<T, FUSED>(c[k], l, &mut c[k + 1..end]);
            }
            // Column k is final up to later exchanges, which the solves apply themselves.
            let start = shape.at(first, j);
            self.values[start..start + end].copy_from_slice(&self.scratch[k * ldp..k * ldp + end]);
            self.count(j, pivot);
        }
        true
    }

    /// Applies the panel first..last to the columns c..c + C.
    #[inline(always)]
    fn update_columns<const C: usize, const FUSED: bool, S: Simd>(
        &mut self,
        s: S,
        first: usize,
        last: usize,
        c: usize,
    ) {
        let (shape, ldp) = (self.shape, self.panel_stride());
        let (nb, m) = (last - first, (last + shape.kl).min(shape.rows) - first);
        let (base, stride) = (shape.at(first, c), 2 * shape.kl + shape.ku);
        let sources = &self.exchanges.sources[..nb];
        let moves = &self.exchanges.moves[..self.exchanges.moved];
        let panel = &self.scratch[..];
        let values = &mut self.values[..];
        let x: &mut [[T; GROUP]] = &mut self.group[..nb];
        if C < GROUP {
            x.fill([zero(); GROUP]);
        }
        // X out of the columns with the exchanges applied. Rows above a column's storage are zero.
        let absent = |i: usize| (c + i).saturating_sub(shape.kv() + first).min(nb);
        for i in 0..C {
            let start = base + i * stride;
            let absent = absent(i);
            if absent == 0 {
                let column = &mut values[start..start + m];
                for (x, &from) in x.iter_mut().zip(sources) {
                    x[i] = column[from as usize];
                }
                for &(to, from) in moves {
                    column[to as usize] = column[from as usize];
                }
            } else {
                let row = |r: u32| if (r as usize) < absent { zero() } else { values[start + r as usize] };
                for (x, &from) in x.iter_mut().zip(sources) {
                    x[i] = row(from);
                }
                for &(to, from) in moves {
                    let value = if (from as usize) < absent { zero() } else { values[start + from as usize] };
                    values[start + to as usize] = value;
                }
            }
        }
        let panel = Panel { values: panel, ld: ldp, columns: nb, rows: m };
        panel.apply::<C, FUSED, S>(s, x, &mut self.by_columns, values, base, stride, absent);
    }
}

/// A factored panel: L₁₁ above L₂₁, column-major.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) ld: usize,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl<T: Scalar> Panel<'_, T> {
    /// X ← L₁₁⁻¹·X, which goes to C columns of `values`, `stride` apart, whose row of the panel's first is at `base`; the first
    /// `absent(i)` rows of column i are not stored. Then Y ← Y − L₂₁·X below them. `by_columns` is scratch for C columns of X.
    #[inline(always)]
    pub(crate) fn apply<const C: usize, const FUSED: bool, S: Simd>(
        self,
        s: S,
        x: &mut [[T; GROUP]],
        by_columns: &mut [T],
        values: &mut [T],
        base: usize,
        stride: usize,
        absent: impl Fn(usize) -> usize,
    ) {
        let Self { values: panel, ld: ldp, columns: nb, rows: m } = self;
        // X ← L₁₁⁻¹·X
        let mut k = 0;
        macro_rules! solve_by {
            ($rows:literal) => {
                while nb - k >= $rows {
                    let (done, rest) = x.split_at_mut(k);
                    solve_rows::<T, $rows, GROUP, FUSED>(done, &mut rest[..$rows], &panel[k..], ldp);
                    k += $rows;
                }
            };
        }
        solve_by!(8);
        solve_by!(4);
        solve_by!(1);
        let by_columns = &mut by_columns[..C * nb];
        for (i, column) in by_columns.chunks_exact_mut(nb).enumerate() {
            for (to, x) in column.iter_mut().zip(&*x) {
                *to = x[i];
            }
            let (start, absent) = (base + i * stride, absent(i));
            values[start + absent..start + nb].copy_from_slice(&column[absent..]);
        }
        // Y ← Y − L₂₁·X
        if m > nb && subtract_product(s, &mut values[base + nb..], stride, m - nb, &panel[nb..], ldp, by_columns, nb) {
            return;
        }
        let mut r = nb;
        macro_rules! rows_by {
            ($rows:literal) => {
                while m - r >= $rows {
                    let y = &mut values[base + r..];
                    block_update::<T, $rows, C, GROUP, FUSED>(y, stride, &panel[r..], ldp, x);
                    r += $rows;
                }
            };
        }
        rows_by!(16);
        rows_by!(8);
        rows_by!(4);
        rows_by!(1);
    }
}

/// Y ← Y − L·X in explicit vectors: `rows` rows of Y, column-major as L and X are, X of `depth` rows. False for complex numbers.
#[inline(always)]
fn subtract_product<T: Scalar, S: Simd>(
    s: S,
    y: &mut [T],
    ldy: usize,
    rows: usize,
    l: &[T],
    ldl: usize,
    x: &[T],
    depth: usize,
) -> bool {
    let width = x.len() / depth;
    match (T::reals_mut(y), T::reals(l), T::reals(x)) {
        (Some(RealsMut::F64(y)), Some(Reals::F64(l)), Some(Reals::F64(x))) => {
            simd::update(s, y, ldy, rows, width, l, ldl, x, depth, depth);
        }
        (Some(RealsMut::F32(y)), Some(Reals::F32(l)), Some(Reals::F32(x))) => {
            simd::update(s, y, ldy, rows, width, l, ldl, x, depth, depth);
        }
        _ => return false,
    }
    true
}
