//! LU elimination restricted to a given pattern: the numerical half of ILU(0), ILU(k) and IC(0).
//!
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.3 (Algorithm 10.4), doi:10.1137/1.9780898718003.
//!
//! Cost: 2 flops for every pair of places (i, k), (k, j) of the pattern, k < i, k < j.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, one, zero};

use crate::blas1::divide;
use crate::ilu0::DroppedFill;
use crate::incomplete_lu::usable_pivot;
use crate::triangular::Rows;

/// Places of the factors by rows, columns increasing; those of A among them.
pub(crate) struct Pattern<'a> {
    pub ptr: &'a [u32],
    pub idx: &'a [u32],
}

/// What becomes of a pivot that cannot be divided by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pivots {
    /// It is replaced by the rule of [`usable_pivot`].
    Replaced,
    /// All have to be positive: the row of the first that is not ends the elimination.
    Positive,
}

/// Factors, or the row where no positive pivot is left.
pub(crate) enum Eliminated<T> {
    Done { lower: Rows<T>, upper: Rows<T>, reciprocals: Vec<T>, replaced: usize },
    Stopped { row: usize },
}

/// M = L·U of A + shift·diag(A) on the pattern.
///
/// # Errors
/// [`FactorError::Breakdown`] naming the row where an element overflows.
pub(crate) fn eliminate<T: Scalar>(
    a: &Csr<T>,
    pattern: &Pattern<'_>,
    dropped: DroppedFill,
    shift: f64,
    pivots: Pivots,
    method: &'static str,
) -> Result<Eliminated<T>> {
    let n = a.nrows();
    let (mut lower, mut upper) = (Rows { ptr: vec![0], ..Rows::default() }, Rows { ptr: vec![0], ..Rows::default() });
    let mut reciprocals = Vec::with_capacity(n);
    let mut replaced = 0;
    // Row i scattered over its columns, and which columns it has.
    let (mut w, mut owner) = (vec![zero::<T>(); n], vec![u32::MAX; n]);
    for i in 0..n {
        let places = &pattern.idx[pattern.ptr[i] as usize..pattern.ptr[i + 1] as usize];
        for &j in places {
            (w[j as usize], owner[j as usize]) = (zero(), i as u32);
        }
        // The diagonal is a place whether it is stored or not.
        (w[i], owner[i]) = (zero(), i as u32);
        let mut largest = zero::<T::Real>();
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals) {
            w[j as usize] = v;
            largest = largest.max_nan(v.abs());
        }
        w[i] *= T::from_parts(1.0 + shift, 0.0);
        let mut lost = zero::<T>();
        for &k in places.iter().take_while(|&&k| (k as usize) < i) {
            let k = k as usize;
            // lᵢₖ ← wₖ/uₖₖ;  wⱼ ← wⱼ − lᵢₖ·uₖⱼ on the pattern
            let l: T = w[k] * reciprocals[k];
            w[k] = l;
            for e in upper.ptr[k] as usize..upper.ptr[k + 1] as usize {
                let j = upper.idx[e] as usize;
                let product: T = l * upper.val[e];
                if owner[j] == i as u32 {
                    w[j] -= product;
                } else {
                    lost -= product;
                }
            }
            lower.idx.push(k as u32);
            lower.val.push(l);
        }
        if dropped == DroppedFill::ToDiagonal {
            w[i] += lost;
        }
        for &j in places.iter().filter(|&&j| j as usize > i) {
            upper.idx.push(j);
            upper.val.push(w[j as usize]);
        }
        lower.ptr.push(lower.idx.len() as u32);
        upper.ptr.push(upper.idx.len() as u32);
        let (pivot, was_replaced) = usable_pivot(w[i], largest);
        if pivots == Pivots::Positive && (was_replaced || !(w[i].re() > zero())) {
            return Ok(Eliminated::Stopped { row: i });
        }
        replaced += usize::from(was_replaced);
        let reciprocal = divide(one::<T>(), pivot);
        if !Scalar::is_finite(reciprocal) {
            let reason = format!("elements overflow in row {i} (from 0); scale the matrix, or use matching");
            return Err(FactorError::Breakdown { method, reason });
        }
        reciprocals.push(reciprocal);
    }
    Ok(Eliminated::Done { lower, upper, reciprocals, replaced })
}
