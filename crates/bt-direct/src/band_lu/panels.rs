//! Wide bands, kl > 32: by panels of columns, in LAPACK's layout.
//!
//! A panel of nb columns is copied to a dense (kl + nb) × nb array, zeros where it leaves the band, and factored there with
//! whole-row exchanges, eight columns at a time: a column takes those of its group before it when its turn comes. L is written
//! back column by column as it stood before later exchanges, which is how the solves expect it. The trailing columns, eight at a
//! time, then take the panel's exchanges, the unit triangular solve X ← L₁₁⁻¹·X, and the update Y ← Y − L₂₁·X in register blocks.
//! A column whose top rows lie above its storage has zeros there: neither exchanges nor the solve touch them. Columns beyond the
//! last one eliminated take the same steps; what they hold below U afterwards is the Schur complement.

use std::array::from_fn;
use std::ops::Range;

use bt_formats::{Numbers, NumbersMut, RealScalar, Scalar, zero};
use pulp::Simd;

use super::end::{End, GROUP, divide, panel_stride};
use super::kernels::{block_update, index_of_max, max_lanes, mul_add, solve_rows};
use super::narrow::Loops;
use crate::block_lu::simd;
use crate::lines;

impl<T: Scalar> End<T> {
    /// Eliminates the columns first..last, at most a panel.
    #[inline(always)]
    pub(super) fn eliminate_panel<const FUSED: bool, S: Simd, K: PanelKernels<T>>(
        &mut self,
        s: S,
        kernels: K,
        source: &[T],
        first: usize,
        last: usize,
    ) {
        if !self.factor_panel::<FUSED, S, K>(s, kernels, first, last) {
            return;
        }
        self.exchanges.compose(&self.pivots[first..last], first);
        // What the next panel brings, and where it goes: asked for in parts, one with each group.
        let (shape, next) = (self.shape, last + self.shape.kv());
        let places = next * shape.ld()..(next + last - first) * shape.ld();
        let (a, b) = (shape.source_column(next), shape.source_column(next + last - first));
        let groups = (self.found.reach - last).div_ceil(GROUP);
        let part =
            |all: Range<usize>, g: usize| all.start + g * all.len() / groups..all.start + (g + 1) * all.len() / groups;
        let mut c = last;
        while c < self.found.reach {
            let (width, group) = (self.found.reach - c, (c - last) / GROUP);
            lines::fetch(&self.values, part(places.clone(), group));
            lines::fetch(source, part(a.min(b)..a.max(b), group));
            if width >= GROUP {
                self.update_columns::<GROUP, FUSED, S, K>(s, kernels, first, last, c);
                c += GROUP;
            } else if width >= 4 {
                self.update_columns::<4, FUSED, S, K>(s, kernels, first, last, c);
                c += 4;
            } else {
                self.update_columns::<1, FUSED, S, K>(s, kernels, first, last, c);
                c += 1;
            }
        }
    }

    /// Rows from one column of the panel's array to the next.
    #[inline(always)]
    fn panel_stride(&self) -> usize {
        panel_stride(self.shape.kl, self.tuning.strip())
    }

    /// Factors the panel in its dense copy, by groups of columns, and writes U and L back. False when a column has no pivot.
    #[inline(always)]
    fn factor_panel<const FUSED: bool, S: Simd, K: PanelKernels<T>>(
        &mut self,
        s: S,
        kernels: K,
        first: usize,
        last: usize,
    ) -> bool {
        let (shape, kl, ldp) = (self.shape, self.shape.kl, self.panel_stride());
        let (nb, m) = (last - first, (last + kl).min(shape.rows) - first);
        // Rows first.. of the panel.
        for k in 0..nb {
            let rows = m.min(k + kl + 1);
            let start = shape.at(first, first + k);
            let column = &mut self.scratch[k * ldp..(k + 1) * ldp];
            column[..rows].copy_from_slice(&self.values[start..start + rows]);
            column[rows..].fill(zero());
        }
        for group in (0..nb).step_by(GROUP) {
            let end = nb.min(group + GROUP);
            // Not by a closure, which would lose the instruction set.
            for k in group..end {
                if !self.factor_column::<FUSED, S, K>(s, kernels, first, k, group..end, nb, m) {
                    return false;
                }
            }
            let (left, right) = self.scratch.split_at_mut(end * ldp);
            let panel = Panel { values: &left[group * ldp + group..], ld: ldp, columns: end - group, rows: m - group };
            let mut c = 0;
            macro_rules! columns {
                ($($columns:literal)*) => {$(
                    while nb - end - c >= $columns {
                        let base = c * ldp + group;
                        let mut x = [[zero(); GROUP]; GROUP];
                        for (k, x) in x[..end - group].iter_mut().enumerate() {
                            for i in 0..$columns {
                                x[i] = right[base + i * ldp + k];
                            }
                        }
                        panel.apply::<$columns, FUSED, S, K>(s, kernels, &mut x[..end - group], right, base, ldp, [0; GROUP]);
                        c += $columns;
                    }
                )*};
            }
            columns!(8 4 1);
        }
        true
    }

    /// Step k of a panel of m rows and `columns` columns, after those of its `group` before it; exchanges go through the whole panel.
    /// False when the column has no pivot.
    #[inline(always)]
    fn factor_column<const FUSED: bool, S: Simd, K: PanelKernels<T>>(
        &mut self,
        s: S,
        kernels: K,
        first: usize,
        k: usize,
        group: Range<usize>,
        columns: usize,
        m: usize,
    ) -> bool {
        let (shape, ldp, j) = (self.shape, self.panel_stride(), first + k);
        let end = m.min(k + shape.kl + 1);
        let (done, column) = self.scratch[..columns * ldp].split_at_mut(k * ldp);
        // None before the first of a group.
        let l = done.get(group.start * (ldp + 1)..).unwrap_or_default();
        let l = Panel { values: l, ld: ldp, columns: k - group.start, rows: m - group.start };
        let p = group.start + kernels.reduce(s, l, &mut column[group.start..ldp]);
        self.note_pivot(j, first + p);
        if p != k {
            // Whole rows of the panel, L included.
            for column in self.scratch[..columns * ldp].chunks_exact_mut(ldp) {
                column.swap(k, p);
            }
        }
        let column = &mut self.scratch[k * ldp..(k + 1) * ldp];
        let pivot = column[k];
        if pivot == zero() {
            self.found.singular = Some(j);
            return false;
        }
        // Whole vectors begin where those of other columns do.
        let (head, rest) = column[k + 1..end].split_at_mut(group.end.min(end) - k - 1);
        divide(head, pivot);
        divide(rest, pivot);
        // Column k is final up to later exchanges, which the solves apply themselves.
        let start = shape.at(first, j);
        self.values[start..start + end].copy_from_slice(&column[..end]);
        max_lanes(&column[..=k], &mut self.found.max_u);
        self.count(j, pivot);
        true
    }

    /// Applies the panel first..last to the columns c..c + C.
    #[inline(always)]
    fn update_columns<const C: usize, const FUSED: bool, S: Simd, K: PanelKernels<T>>(
        &mut self,
        s: S,
        kernels: K,
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
        // X out of the columns with the exchanges applied. Rows above a column's storage are zero; the last column has the fewest.
        let absent = |i: usize| (c + i).saturating_sub(shape.kv() + first).min(nb);
        if C == GROUP && absent(C - 1) == 0 && m <= stride {
            let mut columns = values[base..].chunks_mut(stride);
            let columns: [&mut [T]; GROUP] = from_fn(|_| &mut columns.next().expect("columns in the band")[..m]);
            for (x, &from) in x.iter_mut().zip(sources) {
                for i in 0..GROUP {
                    x[i] = columns[i][from as usize];
                }
            }
            for &(to, from) in moves {
                for i in 0..GROUP {
                    columns[i][to as usize] = columns[i][from as usize];
                }
            }
        } else {
            x.fill([zero(); GROUP]);
            for i in 0..C {
                let (start, absent) = (base + i * stride, absent(i));
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
        panel.apply::<C, FUSED, S, K>(s, kernels, x, values, base, stride, from_fn(absent));
        let mut max_u = self.found.max_u;
        for x in &*x {
            for i in 0..GROUP {
                max_u[i] = max_u[i].max_nan(x[i].abs1());
            }
        }
        self.found.max_u = max_u;
    }
}

/// What panels are made of but for products: loops, or explicit vectors in `panel_registers.rs`.
pub(crate) trait PanelKernels<T: Scalar>: Copy {
    /// X ← L⁻¹·X for eight columns, X by rows, L unit lower triangular and by columns.
    fn solve(self, x: &mut [[T; GROUP]], l: &[T], ldl: usize);
    /// Eight rows of X to the heads of columns `stride` apart.
    fn write(self, x: &[[T; GROUP]; GROUP], columns: &mut [T], stride: usize);
    /// What at most seven factored columns leave of the next, below zeros that fill up a vector: U in its first rows. The place of
    /// its pivot.
    fn reduce<S: Simd>(self, s: S, l: Panel<'_, T>, y: &mut [T]) -> usize;
}

impl<T: Scalar, const FUSED: bool> PanelKernels<T> for Loops<FUSED> {
    #[inline(always)]
    fn solve(self, x: &mut [[T; GROUP]], l: &[T], ldl: usize) {
        solve_from::<T, FUSED>(0, x, l, ldl);
    }
    #[inline(always)]
    fn write(self, x: &[[T; GROUP]; GROUP], columns: &mut [T], stride: usize) {
        for i in 0..GROUP {
            for (to, x) in columns[i * stride..][..GROUP].iter_mut().zip(x) {
                *to = x[i];
            }
        }
    }
    #[inline(always)]
    fn reduce<S: Simd>(self, s: S, l: Panel<'_, T>, y: &mut [T]) -> usize {
        let depth = l.columns;
        let (head, rest) = y[..l.rows].split_at_mut(GROUP.min(l.rows));
        let mut u = [[zero(); GROUP]; GROUP];
        for d in 0..depth {
            u[d][0] = head[d];
            for r in d + 1..head.len() {
                head[r] = mul_add::<T, FUSED>(-u[d][0], l.values[d * l.ld + r], head[r]);
            }
        }
        if depth > 0 && !rest.is_empty() {
            l.subtract_product::<1, FUSED, S>(s, head.len(), &u[..depth], rest, l.ld);
        }
        depth + index_of_max(&y[depth..])
    }
}

/// X ← L⁻¹·X, of which the first k rows are done.
#[inline(always)]
pub(super) fn solve_from<T: Scalar, const FUSED: bool>(mut k: usize, x: &mut [[T; GROUP]], l: &[T], ldl: usize) {
    macro_rules! solve_by {
        ($($rows:literal)*) => {$(
            while x.len() - k >= $rows {
                let (done, rest) = x.split_at_mut(k);
                solve_rows::<T, $rows, GROUP, FUSED>(done, &mut rest[..$rows], &l[k..], ldl);
                k += $rows;
            }
        )*};
    }
    solve_by!(8 4 1);
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
    /// `absent[i]` rows of column i are not stored. Then Y ← Y − L₂₁·X below them. A function of its own, since the whole of a panel in
    /// one takes the compiler ten times as long.
    #[inline(always)]
    pub(crate) fn apply<const C: usize, const FUSED: bool, S: Simd, K: PanelKernels<T>>(
        self,
        s: S,
        kernels: K,
        x: &mut [[T; GROUP]],
        values: &mut [T],
        base: usize,
        stride: usize,
        absent: [usize; GROUP],
    ) {
        lines::apart(s, Apply::<_, _, C, FUSED> { panel: self, kernels, x, values, base, stride, absent });
    }

    /// Y ← Y − L·X with the rows of the panel from `first` on: C columns of `y`, `stride` apart.
    #[inline(always)]
    fn subtract_product<const C: usize, const FUSED: bool, S: Simd>(
        self,
        s: S,
        first: usize,
        x: &[[T; GROUP]],
        y: &mut [T],
        stride: usize,
    ) {
        let Self { values: panel, ld: ldp, rows: m, .. } = self;
        if subtract_product::<T, C, S>(s, y, stride, m - first, &panel[first..], ldp, x) {
            return;
        }
        let mut r = first;
        macro_rules! rows_by {
            ($rows:literal) => {
                while m - r >= $rows {
                    let y = &mut y[r - first..];
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

/// See [`Panel::apply`].
struct Apply<'a, T, K, const C: usize, const FUSED: bool> {
    panel: Panel<'a, T>,
    kernels: K,
    x: &'a mut [[T; GROUP]],
    values: &'a mut [T],
    base: usize,
    stride: usize,
    absent: [usize; GROUP],
}

impl<T: Scalar, K: PanelKernels<T>, const C: usize, const FUSED: bool> pulp::WithSimd for Apply<'_, T, K, C, FUSED> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { panel, kernels, x, values, base, stride, absent } = self;
        let Panel { values: l, ld, columns: nb, rows: m } = panel;
        // X ← L₁₁⁻¹·X
        kernels.solve(x, l, ld);
        // The last column has the fewest rows.
        let mut k = 0;
        if C == GROUP && absent[C - 1] == 0 {
            for block in x.as_chunks().0 {
                kernels.write(block, &mut values[base + k..], stride);
                k += GROUP;
            }
        }
        for i in 0..C {
            let (start, absent) = (base + i * stride, absent[i].max(k));
            for (to, x) in values[start..start + nb].iter_mut().zip(&*x).skip(absent) {
                *to = x[i];
            }
        }
        // Y ← Y − L₂₁·X
        if m > nb {
            panel.subtract_product::<C, FUSED, S>(s, nb, x, &mut values[base + nb..], stride);
        }
    }
}

/// Y ← Y − L·X in explicit vectors: `rows` rows and C columns of Y, column-major as L is. False for complex numbers.
#[inline(always)]
fn subtract_product<T: Scalar, const C: usize, S: Simd>(
    s: S,
    y: &mut [T],
    ldy: usize,
    rows: usize,
    l: &[T],
    ldl: usize,
    x: &[[T; GROUP]],
) -> bool {
    match (T::numbers_mut(y), T::numbers(l), T::numbers(x.as_flattened())) {
        (NumbersMut::F64(y), Numbers::F64(l), Numbers::F64(x)) => {
            simd::update_eight(s, y, ldy, rows, C, l, ldl, x.as_chunks().0);
        }
        (NumbersMut::F32(y), Numbers::F32(l), Numbers::F32(x)) => {
            simd::update_eight(s, y, ldy, rows, C, l, ldl, x.as_chunks().0);
        }
        _ => return false,
    }
    true
}
