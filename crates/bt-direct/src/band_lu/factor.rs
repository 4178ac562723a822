//! Elimination by panels of columns.
//!
//! A panel of nb columns is copied to a dense (kl + nb) × nb array, zeros where it leaves the band, and factored there
//! with whole-row exchanges. L is written back column by column as it stood before later exchanges, which is how the
//! solves expect it. The trailing columns, C at a time, then take the panel's exchanges, the unit triangular solve
//! X ← L₁₁⁻¹X, and the update Y ← Y − L₂₁X in register blocks. A column whose top rows lie above its storage has zeros
//! there: neither exchanges nor the solve touch them.
//!
//! The matrix is copied and measured just ahead of elimination, so that it passes through the cache once.

use bt_formats::{Monitor, Progress, RealScalar, Scalar, zero};

use super::Tuning;
use super::kernels::{
    LANES, axpy_minus, block_update, index_of_max, max_lanes, mul_add, reduce, solve_rows, sum_and_max,
};
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::FactorStats;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::reserve;

/// Trailing columns updated together.
pub(super) const GROUP: usize = 8;

/// Columns eliminated one by one between two looks at the monitor and the input.
const STRIP: usize = 32;

/// What elimination works on, and what it has found so far.
pub(super) struct Elimination<'a, T: Scalar> {
    pub(super) n: usize,
    pub(super) kl: usize,
    pub(super) ku: usize,
    pub(super) values: &'a mut [T],
    pub(super) pivots: &'a mut [u32],
    pub(super) tops: &'a mut [u32],
    /// Panel (kl + nb) × nb, column-major, and nb rows of GROUP values.
    pub(super) panel: &'a mut [T],
    pub(super) rows: &'a mut [[T; GROUP]],
    pub(super) exchanges: &'a mut Exchanges,
    /// Where the values come from; none when they are in place already.
    pub(super) source: Option<&'a [T]>,
    pub(super) tuning: Tuning,
    pub(super) found: Found<T>,
}

/// The exchanges of a panel composed, in rows of the panel.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchanges {
    /// Where the rows of the panel and, while composing, the rows below them come from.
    sources: Vec<u32>,
    /// (to, from) of the rows below the panel that one of its first rows goes to.
    moves: Vec<(u32, u32)>,
}

impl Exchanges {
    pub(super) fn new(nb: usize) -> Result<Self> {
        let mut out = Self::default();
        reserve(&mut out.sources, nb)?;
        reserve(&mut out.moves, nb)?;
        Ok(out)
    }

    /// Composes the exchanges of row k with row `pivots[k] − first`. A row below the panel only ever receives one of
    /// the panel's own rows, which are read before they are overwritten.
    fn compose(&mut self, pivots: &[u32], first: usize) {
        let nb = pivots.len() as u32;
        self.sources.clear();
        self.sources.extend(0..nb);
        self.moves.clear();
        for k in 0..nb {
            let p = pivots[k as usize] - first as u32;
            let from = self.sources[k as usize];
            if p < nb {
                self.sources.swap(k as usize, p as usize);
            } else if let Some(moved) = self.moves.iter_mut().find(|m| m.0 == p) {
                self.sources[k as usize] = std::mem::replace(&mut moved.1, from);
            } else {
                self.moves.push((p, from));
                self.sources[k as usize] = p;
            }
        }
    }
}

/// Running results.
pub(super) struct Found<T: Scalar> {
    norm_one: T::Real,
    /// max|A| and max|U| lane by lane, in |re| + |im|.
    max_a: [T::Real; LANES],
    max_u: [T::Real; LANES],
    min_pivot: T::Real,
    flops: f64,
    singular: Option<usize>,
    /// Columns loaded, and those of them that were there before the last load.
    loaded: usize,
    checked: usize,
    /// One past the last column that the rows eliminated so far reach.
    reach: usize,
}

impl<T: Scalar> Default for Found<T> {
    fn default() -> Self {
        Self {
            norm_one: zero(),
            max_a: [zero(); LANES],
            max_u: [zero(); LANES],
            min_pivot: T::Real::INFINITY,
            flops: 0.0,
            singular: None,
            loaded: 0,
            checked: 0,
            reach: 0,
        }
    }
}

fn overflow() -> FactorError {
    FactorError::Breakdown { method: "band-lu", reason: "elimination overflows; scale the matrix down".into() }
}

/// One panel, as work for a SIMD instruction set.
struct Panel<'a, 'b, T: Scalar> {
    elimination: &'b mut Elimination<'a, T>,
    first: usize,
    last: usize,
}

impl<T: Scalar> pulp::WithSimd for Panel<'_, '_, T> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        if S::IS_SCALAR || cfg!(target_family = "wasm") {
            self.elimination.eliminate::<false>(self.first, self.last)
        } else {
            self.elimination.eliminate::<true>(self.first, self.last)
        }
    }
}

impl<T: Scalar> Elimination<'_, T> {
    /// Factors the whole matrix.
    pub(super) fn run(mut self, monitor: &mut dyn Monitor) -> Result<FactorStats> {
        let n = self.n;
        let arch = pulp::Arch::new();
        let mut first = 0;
        let mut silent = 0.0;
        while first < n {
            let work = self.found.flops + 64.0 * first as f64;
            if silent <= work {
                if monitor.observe(Progress::Step { phase: "factor", done: first, total: n }).is_break() {
                    return Err(FactorError::Stopped);
                }
                silent = work + self.tuning.flops_between_reports;
            }
            let last = (first + if self.tuning.panel == 1 { STRIP } else { self.tuning.panel }).min(n);
            if !arch.dispatch(Panel { elimination: &mut self, first, last }) {
                return Err(self.unusable_input());
            }
            first = last;
        }
        self.finish()
    }

    fn finish(self) -> Result<FactorStats> {
        let (n, found) = (self.n, &self.found);
        if let Some(column) = found.singular {
            return Err(FactorError::Singular(Singularity { kind: SingularKind::Numerical, column, block: None }));
        }
        let [max_a, max_u] = [found.max_a, found.max_u].map(|lanes| reduce(lanes, RealScalar::max_nan));
        if !Scalar::is_finite(max_u.to_f64()) {
            return Err(overflow());
        }
        let stored = |j: usize| j - self.tops[j] as usize + 1 + self.kl.min(n - 1 - j);
        let mut stats = FactorStats {
            norm_one: found.norm_one.to_f64(),
            growth: 1.0,
            min_pivot: 0.0,
            boosted_pivots: 0,
            nnz: (0..n).map(stored).sum(),
            bytes: size_of_val(&*self.values)
                + size_of_val(&*self.pivots)
                + size_of_val(&*self.tops)
                + size_of_val(&*self.panel)
                + size_of_val(&*self.rows),
            flops: found.flops,
        };
        if n > 0 {
            stats.growth = max_u.to_f64() / max_a.to_f64();
            stats.min_pivot = found.min_pivot.to_f64();
        }
        Ok(stats)
    }

    /// Index of A(i, j) in the band. Meaningless outside it, though it never underflows for i ≥ j − kl − ku − 1.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> usize {
        j * (2 * self.kl + self.ku) + self.kl + self.ku + i
    }

    /// Copies and measures the columns before `end`. False when an entry is not finite.
    #[inline(always)]
    fn load(&mut self, end: usize) -> bool {
        let (n, kl, ldab) = (self.n, self.kl, 2 * self.kl + self.ku + 1);
        for j in self.found.loaded..end {
            let rows = j.saturating_sub(self.ku)..(j + kl + 1).min(n);
            let (start, len) = (self.at(rows.start, j), rows.len());
            if let Some(source) = self.source {
                self.values[start..start + len].copy_from_slice(&source[start..start + len]);
            }
            // The room for fill holds zeros whatever the caller left there.
            self.values[j * ldab..j * ldab + kl].fill(zero());
            let column = &self.values[start..start + len];
            let sum = sum_and_max(column, &mut self.found.max_a);
            self.found.norm_one = self.found.norm_one.max_nan(sum);
        }
        self.found.checked = self.found.loaded;
        self.found.loaded = self.found.loaded.max(end);
        Scalar::is_finite(reduce(self.found.max_a, RealScalar::max_nan).to_f64())
    }

    /// Names the first NaN or infinity among the columns loaded last; no elimination has touched them yet.
    fn unusable_input(&self) -> FactorError {
        for col in self.found.checked..self.found.loaded {
            for row in col.saturating_sub(self.ku)..(col + self.kl + 1).min(self.n) {
                let value = self.values[self.at(row, col)];
                if !Scalar::is_finite(value) {
                    let value = value.to_string();
                    return bt_formats::Error::NonFinite { what: "matrix", row, col, value }.into();
                }
            }
        }
        // Both parts of a complex entry are finite, their sum is not.
        overflow()
    }

    /// Eliminates the columns first..last. False when the input is not finite.
    #[inline(always)]
    fn eliminate<const FUSED: bool>(&mut self, first: usize, last: usize) -> bool {
        if !self.load((last + self.kl + self.ku).min(self.n)) {
            return false;
        }
        if self.tuning.panel == 1 {
            // Loops, not closures: a closure that is not inlined loses the instruction set.
            for j in first..last {
                self.eliminate_column::<FUSED>(j);
            }
            return true;
        }
        let ldp = self.kl + self.tuning.panel;
        self.factor_panel::<FUSED>(first, last, ldp);
        self.exchanges.compose(&self.pivots[first..last], first);
        let mut c = last;
        while c < self.found.reach {
            let width = (self.found.reach - c).min(GROUP);
            if width == GROUP {
                self.update_columns::<GROUP, FUSED>(first, last, c, ldp);
                c += GROUP;
            } else if width >= 4 {
                self.update_columns::<4, FUSED>(first, last, c, ldp);
                c += 4;
            } else {
                self.update_columns::<1, FUSED>(first, last, c, ldp);
                c += 1;
            }
        }
        true
    }

    /// Eliminates column j in place: for narrow bands, whose columns are a register or two.
    #[inline(always)]
    fn eliminate_column<const FUSED: bool>(&mut self, j: usize) {
        let (n, kl, ku) = (self.n, self.kl, self.ku);
        let (diagonal, below, stride) = (self.at(j, j), kl.min(n - 1 - j), 2 * kl + ku);
        let ahead = &mut self.values[diagonal..];
        // Row j of column j + 1 follows after `stride` values; the last column has none behind it.
        let (column, right) = ahead.split_at_mut(stride.max(1).min(ahead.len()));
        let column = &mut column[..=below];
        let p = index_of_max(column);
        self.pivots[j] = (j + p) as u32;
        let reach = self.found.reach.max((j + p + ku + 1).min(n));
        self.tops[self.found.reach..reach].fill(j as u32);
        self.found.reach = reach;
        let pivot = column[p];
        if pivot == zero() {
            self.found.singular = self.found.singular.or(Some(j));
            return;
        }
        column.swap(0, p);
        let divisor = Pivot::new(pivot);
        for v in &mut column[1..] {
            *v = divisor.divide(*v);
        }
        let l = &column[1..];
        let mut max_u = pivot.abs1();
        for i in 0..reach - j - 1 {
            let y = &mut right[i * stride..=i * stride + below];
            // u ← the pivot row's element;  y ← y − u·l;  the element exchanged is put in its place afterwards.
            let (u, exchanged) = (y[p], y[0]);
            y[0] = u;
            axpy_minus::<T, FUSED>(u, l, &mut y[1..]);
            if p > 0 {
                y[p] = mul_add::<T, FUSED>(-u, l[p - 1], exchanged);
            }
            max_u = max_u.max_nan(u.abs1());
        }
        self.found.max_u[0] = self.found.max_u[0].max_nan(max_u);
        self.found.flops += (below * (2 * (reach - j) - 1)) as f64;
        self.found.min_pivot = self.found.min_pivot.min_nan(pivot.abs());
    }

    /// Factors the panel in its dense copy and writes U and L back.
    #[inline(always)]
    fn factor_panel<const FUSED: bool>(&mut self, first: usize, last: usize, ldp: usize) {
        let (n, kl, ku) = (self.n, self.kl, self.ku);
        let (nb, m) = (last - first, (last + kl).min(n) - first);
        // Rows first.. of the panel.
        for k in 0..nb {
            let rows = m.min(k + kl + 1);
            let start = self.at(first, first + k);
            let column = &mut self.panel[k * ldp..k * ldp + m];
            column[..rows].copy_from_slice(&self.values[start..start + rows]);
            column[rows..].fill(zero());
        }
        for k in 0..nb {
            let j = first + k;
            let end = m.min(k + kl + 1);
            let (left, right) = self.panel.split_at_mut((k + 1) * ldp);
            let (before, column) = left.split_at_mut(k * ldp);
            let p = k + index_of_max(&column[k..end]);
            self.pivots[j] = (first + p) as u32;
            // Exchange whole rows of the panel, L included, and note how far the pivot row reaches.
            let reach = self.found.reach.max((first + p + ku + 1).min(n));
            self.tops[self.found.reach..reach].fill(j as u32);
            self.found.reach = reach;
            if p != k {
                column.swap(k, p);
                for c in before.chunks_exact_mut(ldp).chain(right[..(nb - k - 1) * ldp].chunks_exact_mut(ldp)) {
                    c.swap(k, p);
                }
            }
            let pivot = column[k];
            if pivot == zero() {
                // No pivot, nothing to eliminate: all candidates are zero.
                self.found.singular = self.found.singular.or(Some(j));
            } else {
                let divisor = Pivot::new(pivot);
                for v in &mut column[k + 1..end] {
                    *v = divisor.divide(*v);
                }
                let l = &column[k + 1..end];
                for c in right[..(nb - k - 1) * ldp].chunks_exact_mut(ldp) {
                    axpy_minus::<T, FUSED>(c[k], l, &mut c[k + 1..end]);
                }
                self.found.flops += ((end - k - 1) * (2 * (reach - j) - 1)) as f64;
                self.found.min_pivot = self.found.min_pivot.min_nan(pivot.abs());
            }
            // Column k is final up to later exchanges, which the solves apply themselves.
            let start = self.at(first, j);
            self.values[start..start + end].copy_from_slice(&self.panel[k * ldp..k * ldp + end]);
            max_lanes(&self.panel[k * ldp..=k * ldp + k], &mut self.found.max_u);
        }
    }

    /// Applies the panel first..last to the columns c..c + C.
    #[inline(always)]
    fn update_columns<const C: usize, const FUSED: bool>(&mut self, first: usize, last: usize, c: usize, ldp: usize) {
        let kv = self.kl + self.ku;
        let (nb, m) = (last - first, (last + self.kl).min(self.n) - first);
        let stride = 2 * self.kl + self.ku;
        let base = self.at(first, c);
        let values = &mut self.values[..];
        let x: &mut [[T; GROUP]] = &mut self.rows[..nb];
        if C < GROUP {
            x.fill([zero(); GROUP]);
        }
        // X out of the columns with the exchanges applied. Rows above a column's storage are zero.
        for i in 0..C {
            let start = base + i * stride;
            let absent = (c + i).saturating_sub(kv + first).min(nb);
            if absent == 0 {
                let column = &mut values[start..start + m];
                for (x, &from) in x.iter_mut().zip(&self.exchanges.sources) {
                    x[i] = column[from as usize];
                }
                for &(to, from) in &self.exchanges.moves {
                    column[to as usize] = column[from as usize];
                }
            } else {
                let row = |r: u32| if (r as usize) < absent { zero() } else { values[start + r as usize] };
                for (x, &from) in x.iter_mut().zip(&self.exchanges.sources) {
                    x[i] = row(from);
                }
                for &(to, from) in &self.exchanges.moves {
                    let value = if (from as usize) < absent { zero() } else { values[start + from as usize] };
                    values[start + to as usize] = value;
                }
            }
        }
        // X ← L₁₁⁻¹·X
        let mut k = 0;
        macro_rules! solve_by {
            ($rows:literal) => {
                while nb - k >= $rows {
                    let (done, rest) = x.split_at_mut(k);
                    solve_rows::<T, $rows, GROUP, FUSED>(done, &mut rest[..$rows], &self.panel[k..], ldp);
                    k += $rows;
                }
            };
        }
        solve_by!(8);
        solve_by!(4);
        solve_by!(1);
        for x in x.iter() {
            max_lanes(x, &mut self.found.max_u);
        }
        for i in 0..C {
            let start = base + i * stride;
            let absent = (c + i).saturating_sub(kv + first).min(nb);
            for (value, x) in values[start + absent..start + nb].iter_mut().zip(&x[absent..]) {
                *value = x[i];
            }
        }
        // Y ← Y − L₂₁·X
        let mut r = nb;
        macro_rules! rows_by {
            ($rows:literal) => {
                while m - r >= $rows {
                    let y = &mut values[base + r..];
                    block_update::<T, $rows, C, GROUP, FUSED>(y, stride, &self.panel[r..], ldp, x);
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
