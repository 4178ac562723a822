//! LU elimination restricted to a given pattern: the numerical half of ILU(0), ILU(k) and IC(0), the first time and again.
//!
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.3 (Algorithm 10.4), doi:10.1137/1.9780898718003.
//!
//! Cost: 2 flops for every pair of places (i, k), (k, j) of the pattern, k < i, k < j. Nothing is allocated.

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, ask_for_huge_pages, one, zero};

use crate::blas1::{divide, zeros};
use crate::ilu0::DroppedFill;
use crate::incomplete_lu::{outside_pattern, usable_pivot};
use crate::triangular::{Rows, SparseTriangle};

/// Places of the factors by rows, columns increasing; those of A among them.
pub(crate) struct Pattern<'a> {
    pub ptr: &'a [u32],
    pub idx: &'a [u32],
}

impl Pattern<'_> {
    /// The places left of the diagonal and right of it, with zeros.
    pub fn triangles<T: Scalar>(&self) -> [Rows<T>; 2] {
        let n = self.ptr.len() - 1;
        let mut triangles = [0; 2].map(|_| {
            let idx = vec![0; self.idx.len()];
            ask_for_huge_pages(&idx);
            let mut ptr = Vec::with_capacity(n + 1);
            ptr.push(0);
            Rows { ptr, idx, ..Rows::default() }
        });
        let [lower, upper] = &mut triangles;
        let (mut left, mut right) = (0, 0);
        for i in 0..n {
            // Every column is written to both, and stays where it belongs: nothing to predict.
            for &j in &self.idx[self.ptr[i] as usize..self.ptr[i + 1] as usize] {
                (lower.idx[left], upper.idx[right]) = (j, j);
                left += usize::from((j as usize) < i);
                right += usize::from(j as usize > i);
            }
            lower.ptr.push(left as u32);
            upper.ptr.push(right as u32);
        }
        lower.idx.truncate(left);
        upper.idx.truncate(right);
        for part in &mut triangles {
            // With room for the entry that a triangle in segments adds.
            let entries = part.idx.len();
            part.idx.shrink_to(entries + 1);
            part.val = zeros(entries + 1);
            part.val.truncate(entries);
        }
        triangles
    }
}

/// What becomes of a pivot that cannot be divided by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pivots {
    /// It is replaced by the rule of [`usable_pivot`].
    Replaced,
    /// All have to be positive: the row of the first that is not ends the elimination.
    Positive,
}

/// Where the entries of A are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entries {
    /// In every place of the pattern, but for the diagonal.
    Everywhere,
    /// In some of them, unless one is outside.
    Within,
}

/// How the elimination ended.
pub(crate) enum Eliminated {
    /// With so many pivots replaced.
    Done { replaced: usize },
    /// In the row where no positive pivot is left.
    Stopped { row: usize },
}

/// M = L·D·U, both unit triangles, of A + shift·diag(A) on the pattern of `lower` and `upper`. Columns are counted by their position in `upper`
/// while a row is worked on: `w` holds the row, `owner` which row that is.
///
/// # Errors
/// [`FactorError::Input`] naming an entry of A outside the pattern; [`FactorError::Breakdown`] naming the row where an element
/// overflows.
#[allow(clippy::too_many_arguments)] // two factors, two buffers, and the rule
pub(crate) fn eliminate<T: Scalar>(
    (a, entries): (&Csr<T>, Entries),
    lower: &mut SparseTriangle<T>,
    upper: &mut SparseTriangle<T>,
    (w, owner): (&mut [T], &mut [u32]),
    dropped: DroppedFill,
    shift: f64,
    pivots: Pivots,
    method: &'static str,
) -> Result<Eliminated> {
    owner.fill(u32::MAX);
    let mut replaced = 0;
    for i in 0..a.nrows() {
        let (left, own) = (lower.row(lower.position(i)), upper.position(i));
        let right = upper.row(own);
        // The diagonal is a place whether it is stored or not.
        (w[own], owner[own]) = (zero(), i as u32);
        if entries == Entries::Within {
            for e in left.clone() {
                let k = upper.position(lower.row_at(lower.positions()[e] as usize));
                (w[k], owner[k]) = (zero(), i as u32);
            }
            for &j in &upper.positions()[right.clone()] {
                (w[j as usize], owner[j as usize]) = (zero(), i as u32);
            }
        }
        let mut largest = zero::<T::Real>();
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals) {
            let place = upper.position(j as usize);
            if entries == Entries::Within && owner[place] != i as u32 {
                return Err(outside_pattern(i, j));
            }
            (w[place], owner[place]) = (v, i as u32);
            largest = largest.max_nan(v.abs());
        }
        w[own] *= T::rounded(1.0 + shift, 0.0);
        let mut lost = zero::<T>();
        // |aᵢᵢ| + Σ|lᵢₖ·uₖᵢ|
        let mut terms = w[own].abs();
        for e in left {
            let before = w[own];
            // lᵢₖ ← wₖ/dₖ;  wⱼ ← wⱼ − wₖ·uₖⱼ on the pattern
            let k = upper.position(lower.row_at(lower.positions()[e] as usize));
            let w_k = w[k];
            for f in upper.row(k) {
                let j = upper.positions()[f] as usize;
                let product: T = w_k * upper.values()[f];
                // Outside the pattern w holds nothing: no branch that depends on the fill.
                w[j] -= product;
                if dropped == DroppedFill::ToDiagonal && owner[j] != i as u32 {
                    lost -= product;
                }
            }
            terms += (w[own] - before).abs();
            lower.values_mut()[e] = w_k * upper.reciprocals()[k];
        }
        if dropped == DroppedFill::ToDiagonal {
            w[own] += lost;
            terms += lost.abs();
        }
        let (pivot, was_replaced) = usable_pivot(w[own], terms, largest);
        if pivots == Pivots::Positive && (was_replaced || !(w[own].re() > zero())) {
            return Ok(Eliminated::Stopped { row: i });
        }
        replaced += usize::from(was_replaced);
        let reciprocal = divide(one::<T>(), pivot);
        if !Scalar::is_finite(reciprocal) {
            let reason = format!("elements overflow in row {i} (from 0); scale the matrix, or use matching");
            return Err(FactorError::breakdown(method, Place::Row(i), reason));
        }
        upper.reciprocals_mut()[own] = reciprocal;
        for e in right {
            upper.values_mut()[e] = w[upper.positions()[e] as usize] * reciprocal;
        }
    }
    Ok(Eliminated::Done { replaced })
}
