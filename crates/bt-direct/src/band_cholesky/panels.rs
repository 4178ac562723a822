//! Elimination of the lower band by panels of eight columns.
//!
//! ```text
//! L_P ← columns of the panel, one after the other          A ← A − L_P·L_Pᴴ behind it, a column at a time
//! ```
//!
//! A panel is eliminated in a copy, whose columns all have the same rows, with zeros where a column of the band has not begun or
//! has ended: whole vectors are taken from whole vectors, and all eight columns from one behind in one pass over it. Where a
//! vector reaches beyond a column, into the next one, it subtracts zeros from what is there.

use std::array::from_fn;
use std::ops::Range;

use bt_formats::{RealScalar, Scalar, ScalarKind, mul_add, one, zero};

use super::BandCholesky;
use crate::band_lu::end::{divide, reciprocal};
use crate::band_lu::kernels::axpy_minus;
use crate::lines;

/// Columns of a panel, and rows worked on together: a register of eight doubles.
pub(super) const WIDTH: usize = 8;

/// The least half-bandwidth that is eliminated by panels: narrower ones gain in whole registers only.
pub(super) fn from<T: Scalar>() -> usize {
    if lines::is::<T>(ScalarKind::F64) { WIDTH + 1 } else { 2 * WIDTH }
}

/// The columns first..last, as work for a SIMD instruction set. Returns a row without a positive pivot, and the pivot.
pub(super) struct Strip<'a, T: Scalar> {
    pub cholesky: &'a mut BandCholesky<T>,
    pub min_pivot: &'a mut T::Real,
    /// [`room`] for a panel.
    pub panel: &'a mut [[T; WIDTH]],
    pub first: usize,
    pub last: usize,
}

/// Vectors of a panel of half-bandwidth k, if there are panels.
pub(super) fn room<T: Scalar>(k: usize) -> usize {
    if k < from::<T>() { 0 } else { WIDTH * rows(k) }
}

/// Rows of a panel, in eights: its own, k behind, and as many as a vector reaches beyond.
fn rows(k: usize) -> usize {
    (k + 2 * WIDTH).div_ceil(WIDTH)
}

/// y − a·x
#[inline(always)]
fn minus_product<T: Scalar, const FUSED: bool>(a: T, x: &[T; WIDTH], mut y: [T; WIDTH]) -> [T; WIDTH] {
    let minus = -a;
    for l in 0..WIDTH {
        y[l] = mul_add::<T, FUSED>(minus, x[l], y[l]);
    }
    y
}

impl<T: Scalar> pulp::WithSimd for Strip<'_, T> {
    type Output = Option<(usize, f64)>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> Self::Output {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.eliminate::<false>() } else { self.eliminate::<true>() }
    }
}

impl<T: Scalar> Strip<'_, T> {
    #[inline(always)]
    fn eliminate<const FUSED: bool>(&mut self) -> Option<(usize, f64)> {
        if self.cholesky.k < from::<T>() {
            for j in self.first..self.last {
                let failed = self.column::<FUSED>(j);
                if failed.is_some() {
                    return failed;
                }
            }
            return None;
        }
        let mut first = self.first;
        while first < self.last {
            let end = (first + WIDTH).min(self.last);
            self.load(first, end);
            let failed = self.panel::<FUSED>(first, end);
            if failed.is_some() {
                return failed;
            }
            self.store(first, end);
            self.behind::<FUSED>(end);
            first = end;
        }
        None
    }

    /// The pivot of row j, if it is one.
    #[inline(always)]
    fn root(&mut self, pivot: T, j: usize) -> Result<T, (usize, f64)> {
        let pivot = pivot.re();
        if !(pivot > zero() && pivot.to_f64().is_finite()) {
            return Err((j, pivot.to_f64()));
        }
        *self.min_pivot = self.min_pivot.min_nan(pivot);
        Ok(T::from_real(pivot.sqrt()))
    }

    /// Column j of L, and what it takes from the columns behind it.
    #[inline(always)]
    fn column<const FUSED: bool>(&mut self, j: usize) -> Option<(usize, f64)> {
        let diagonal = self.cholesky.at(j, j);
        let root = match self.root(self.cholesky.values[diagonal], j) {
            Ok(root) => root,
            Err(failed) => return Some(failed),
        };
        let c = &mut *self.cholesky;
        let (below, ld) = (c.k.min(c.n - 1 - j), c.ld);
        let (column, ahead) = c.values[diagonal..].split_at_mut(below + 1);
        // lⱼⱼ ← √aⱼⱼ;  l ← l/lⱼⱼ
        column[0] = root;
        divide(&mut column[1..], root);
        for i in 1..=below {
            // The lower half of column j + i: a ← a − l·conj(lᵢ).
            let start = i * ld - below - 1;
            let y = &mut ahead[start..=start + below - i];
            axpy_minus::<T, FUSED>(Scalar::conj(column[i]), &column[i..], y);
        }
        None
    }

    /// Rows of column j in a panel from `first` on, as they stand in it, and where they are in the band.
    #[inline(always)]
    fn place(&self, j: usize, first: usize) -> (Range<usize>, usize) {
        let c = &*self.cholesky;
        (j - first..(j + c.k + 1).min(c.n) - first, c.at(j, j))
    }

    #[inline(always)]
    fn load(&mut self, first: usize, end: usize) {
        let rows = rows(self.cholesky.k);
        for p in 0..WIDTH {
            let (part, start) = if first + p < end { self.place(first + p, first) } else { (0..0, 0) };
            let column = self.panel[p * rows..(p + 1) * rows].as_flattened_mut();
            column[..part.start].fill(zero());
            column[part.clone()].copy_from_slice(&self.cholesky.values[start..start + part.len()]);
            column[part.end..].fill(zero());
        }
    }

    #[inline(always)]
    fn store(&mut self, first: usize, end: usize) {
        let rows = rows(self.cholesky.k);
        for j in first..end {
            let (part, start) = self.place(j, first);
            let column = self.panel[(j - first) * rows..][..rows].as_flattened();
            self.cholesky.values[start..start + part.len()].copy_from_slice(&column[part]);
        }
    }

    /// The columns of L in the panel: L₁₁ of its own rows, then eight rows behind at a time, X ← X·L₁₁⁻ᴴ. What stands above the diagonal
    /// means nothing.
    #[inline(always)]
    fn panel<const FUSED: bool>(&mut self, first: usize, end: usize) -> Option<(usize, f64)> {
        let rows = rows(self.cholesky.k);
        let mut own = [[zero::<T>(); WIDTH]; WIDTH];
        for p in 0..WIDTH {
            own[p] = self.panel[p * rows];
        }
        for p in 0..end - first {
            let root = match self.root(own[p][p], first + p) {
                Ok(root) => root,
                Err(failed) => return Some(failed),
            };
            let mut column = own[p];
            divide(&mut column, root);
            column[p] = root;
            own[p] = column;
            for q in p + 1..WIDTH {
                own[q] = minus_product::<T, FUSED>(Scalar::conj(column[q]), &column, own[q]);
            }
        }
        for p in 0..WIDTH {
            self.panel[p * rows] = own[p];
            // Columns that are not there are those of the identity.
            if first + p >= end {
                own[p][p] = one();
            }
        }
        let roots: [T; WIDTH] = from_fn(|p| own[p][p]);
        let reciprocals: [Option<T>; WIDTH] = roots.map(reciprocal);
        let has_all = reciprocals.iter().all(Option::is_some);
        let reciprocals = reciprocals.map(Option::unwrap_or_default);
        for r in 1..rows {
            let mut x = [[zero::<T>(); WIDTH]; WIDTH];
            for p in 0..WIDTH {
                let mut v = self.panel[p * rows + r];
                for q in 0..p {
                    v = minus_product::<T, FUSED>(Scalar::conj(own[q][p]), &x[q], v);
                }
                if has_all {
                    for l in 0..WIDTH {
                        v[l] *= reciprocals[p];
                    }
                } else {
                    divide(&mut v, roots[p]);
                }
                x[p] = v;
                self.panel[p * rows + r] = v;
            }
        }
        None
    }

    /// a ← a − Σ l·conj(lₜ) over the columns l of the panel, for each column t from `end` on.
    #[inline(always)]
    fn behind<const FUSED: bool>(&mut self, end: usize) {
        let c = &mut *self.cholesky;
        let (rows, panel) = (rows(c.k) * WIDTH, self.panel.as_flattened());
        let last = (end + c.k).min(c.n);
        // Every other column first: a vector just stored beyond a column would wait for the next one's to be loaded.
        for parity in 0..2 {
            for t in (end + parity..last).step_by(2) {
                let at = t - end + WIDTH;
                let start = c.at(t, t);
                let len = (last - t).next_multiple_of(WIDTH).min(c.values.len() - start);
                let (ys, rest) = c.values[start..start + len].as_chunks_mut::<WIDTH>();
                let m = ys.len();
                let mut factors = [zero::<T>(); WIDTH];
                let xs: [&[[T; WIDTH]]; WIDTH] = from_fn(|p| &panel[p * rows + at..][..m * WIDTH].as_chunks().0[..m]);
                for p in 0..WIDTH {
                    factors[p] = -Scalar::conj(panel[p * rows + at]);
                }
                for q in 0..m {
                    let mut sums = ys[q];
                    for p in 0..WIDTH {
                        let x = &xs[p][q];
                        for l in 0..WIDTH {
                            sums[l] = mul_add::<T, FUSED>(factors[p], x[l], sums[l]);
                        }
                    }
                    ys[q] = sums;
                }
                for (r, y) in rest.iter_mut().enumerate() {
                    for p in 0..WIDTH {
                        *y = mul_add::<T, FUSED>(factors[p], panel[p * rows + at + m * WIDTH + r], *y);
                    }
                }
            }
        }
    }
}
