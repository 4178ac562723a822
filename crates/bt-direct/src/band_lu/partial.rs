//! Band factors for methods that work on partitions: elimination of values written straight into the factors' storage,
//! and the last rows of solutions.
//!
//! When the right-hand side has non-zeros in its last w rows only, L⁻¹P touches no other rows, except that an exchange
//! may move one of them up by kl; and the last w rows of U⁻¹y need nothing from above. With kl zero rows before the
//! non-zeros, the tail costs 2w(2kl + ku) flops a right-hand side whatever n is.

use std::ops::Range;

use bt_formats::{Monitor, Scalar, zero};
use faer::MatMut;

use super::kernels::{axpy_minus, dot};
use super::source::Source;
use super::triangles::Triangles;
use super::{BandLu, End, Place, Tuning};
use crate::columns::for_each_column;
use crate::error::Result;
use crate::lines;
use crate::pivot::Pivot;

impl<T: Scalar> BandLu<T> {
    /// The memory for factors of any n × n matrix with these bandwidths, eliminated from one end; solves mean nothing
    /// before a factorization.
    pub(crate) fn empty(n: usize, kl: usize, ku: usize) -> Result<Self> {
        Self::one_ended(n, kl, ku, Tuning::of(kl), Place::BehindU, None)
    }

    /// Factors the matrix whose columns `fill(column, rows, values)` writes. Only for factors made by [`BandLu::empty`].
    pub(crate) fn refactor_from(
        &mut self,
        mut fill: impl FnMut(usize, Range<usize>, &mut [T]),
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let (n, kl, ku) = (self.n, self.kl, self.ku);
        let End { shape, values, .. } = &mut self.parts[0];
        for j in 0..n {
            let rows = j.saturating_sub(ku)..(j + kl + 1).min(n);
            let start = shape.at(rows.start, j);
            fill(j, rows.clone(), &mut values[start..start + rows.len()]);
        }
        self.factor(Source::Here, monitor)
    }

    /// Of factors made by [`BandLu::empty`].
    pub(crate) fn triangles(&self) -> Triangles<'_, T> {
        self.parts[0].triangles()
    }
}

/// Bounds of |A⁻¹·[0; X]| row by row, upwards from its last rows: `bounds` ends with those of the last `w` rows, row
/// sums or maxima alike. X as in [`solve_tail`]. Rounding aside, with M(U) the comparison matrix,
/// |U⁻¹y| ≤ M(U)⁻¹|y|: one substitution with moduli.
pub(crate) fn bound_above<T: Scalar>(lu: Triangles<'_, T>, hermitian: bool, w: usize, bounds: &mut [T::Real]) {
    lines::dispatch::<T, _>(bt_simd::Loops(
        #[inline(always)]
        || {
            let first = lu.rows - w;
            if hermitian {
                // rᵢ ← Σₖ |lₖᵢ|·rₖ / |lᵢᵢ|
                for i in (0..first).rev() {
                    let sum: T::Real = lu.l(i).iter().zip(&bounds[i + 1..]).map(|(l, &r)| l.abs() * r).sum();
                    bounds[i] = sum / lu.pivot(i).abs();
                }
                return;
            }
            bounds[..first].fill(zero());
            for j in (0..lu.rows).rev() {
                let top = lu.tops.get(j).map_or(j.saturating_sub(lu.above), |&t| t as usize);
                let diagonal = j * lu.ld + lu.diagonal;
                if j < first {
                    bounds[j] /= lu.values[diagonal].abs();
                }
                // r ← r + |uⱼ|·rⱼ in the rows whose bounds are not known yet
                let (rj, end) = (bounds[j], j.min(first));
                if top < end {
                    let u = &lu.values[diagonal + top - j..diagonal + end - j];
                    for (r, u) in bounds[top..end].iter_mut().zip(u) {
                        *r += u.abs() * rj;
                    }
                }
            }
        },
    ));
}

/// The last w rows of A⁻¹·[0; X] for A = L·U, or A = L·Lᴴ when `hermitian`. With exchanges, the first kl rows of X must
/// be zero unless it has all n rows: step j takes a row from as far as j + kl.
pub(crate) fn solve_tail<T: Scalar>(lu: Triangles<'_, T>, hermitian: bool, x: MatMut<'_, T>) {
    for_each_column(x, |x| lines::dispatch::<T, _>(Tail { lu, hermitian, x }));
}

/// One right-hand side, as work for a SIMD instruction set.
struct Tail<'a, 'x, T> {
    lu: Triangles<'a, T>,
    hermitian: bool,
    x: &'x mut [T],
}

impl<T: Scalar> pulp::WithSimd for Tail<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar> Tail<'_, '_, T> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (lu, x) = (self.lu, self.x);
        let w = x.len();
        let first = lu.rows - w;
        // y ← L⁻¹·P·x, rows counted from the first of the tail
        for i in 0..w {
            let (j, l) = (first + i, lu.l(first + i));
            if let Some(&p) = lu.pivots.get(j) {
                x.swap(i, p as usize - first);
            }
            if self.hermitian {
                x[i] = Pivot::new(lu.pivot(j)).divide(x[i]);
            }
            let xi = x[i];
            axpy_minus::<T, FUSED>(xi, l, &mut x[i + 1..=i + l.len()]);
        }
        if self.hermitian {
            // x ← L⁻ᴴ·y
            for i in (0..w).rev() {
                let l = lu.l(first + i);
                let sum = dot::<T, FUSED>(l, &x[i + 1..=i + l.len()], Scalar::conj);
                x[i] = Pivot::new(lu.pivot(first + i)).divide(x[i] - sum);
            }
            return;
        }
        // x ← U⁻¹·y
        for i in (0..w).rev() {
            let j = first + i;
            let top = lu.tops.get(j).map_or(j.saturating_sub(lu.above), |&t| t as usize).max(first) - first;
            let diagonal = j * lu.ld + lu.diagonal;
            let xi = Pivot::new(lu.values[diagonal]).divide(x[i]);
            x[i] = xi;
            axpy_minus::<T, FUSED>(xi, &lu.values[diagonal + top - i..diagonal], &mut x[top..i]);
        }
    }
}
