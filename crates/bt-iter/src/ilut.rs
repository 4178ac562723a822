//! ILUT(p, τ): incomplete LU with dropping by size and by number.
//!
//! Row i of L and U is computed with all fill; entries below τ·‖aᵢ‖₂ are dropped, first the multipliers, then the rest,
//! and of what is left the p largest of the L part and the p largest of the U part are kept, beside the diagonal.
//! Y. Saad, Numer. Linear Algebra Appl. 1 (1994) 387–402, doi:10.1002/nla.1680010405. Pivots follow the rule of
//! [`IncompleteLu`].
//!
//! Storage: at most (2p + 1)·n entries. Cost: the flops of the entries kept, and a heap of the pending columns of a row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, norm2, one, zero};

use crate::blas1::divide;
use crate::incomplete_lu::{IncompleteLu, Rule, usable_pivot};
use crate::triangular::Rows;

/// What ILUT keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IlutOptions {
    /// p: entries kept in a row of L, and in a row of U beside the diagonal.
    pub fill: usize,
    /// τ: entries below τ·‖aᵢ‖₂ are dropped.
    pub drop_tolerance: f64,
}

impl Default for IlutOptions {
    /// p = 20, τ = 10⁻³.
    fn default() -> Self {
        Self { fill: 20, drop_tolerance: 1e-3 }
    }
}

/// The ILUT(p, τ) preconditioner of `a`.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{IlutOptions, Preconditioner, ilut};
/// // Nothing is dropped: M = A.
/// let a = Csr::from_dense(faer::mat![[0.0, 1.0, 4.0], [4.0, 1.0, 0.0], [1.0, 4.0, 1.0]].as_ref())?;
/// let m = ilut(&a, IlutOptions { fill: 3, drop_tolerance: 0.0 })?;
/// assert_eq!(m.replaced_pivots(), 1);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`FactorError::Input`] when A is not square or not finite, or τ is negative or NaN; [`FactorError::Breakdown`]
/// naming the row where an element overflows.
#[inline(never)]
pub fn ilut<T: Scalar>(a: &Csr<T>, options: IlutOptions) -> Result<IncompleteLu<T>> {
    a.check_square()?;
    a.check_finite()?;
    let IlutOptions { fill, drop_tolerance } = options;
    if !(drop_tolerance >= 0.0) {
        return Err(Error::InvalidStructure {
            what: "drop tolerance",
            why: format!("{drop_tolerance} is not a number of at least 0"),
        }
        .into());
    }
    let n = a.nrows();
    let (mut lower, mut upper) = (Rows { ptr: vec![0], ..Rows::default() }, Rows { ptr: vec![0], ..Rows::default() });
    let mut reciprocals = Vec::with_capacity(n);
    let mut replaced = 0;
    // Row i scattered over its columns, and which columns it has by now.
    let (mut w, mut owner) = (vec![zero::<T>(); n], vec![u32::MAX; n]);
    let mut pending = BinaryHeap::new();
    let (mut left, mut right) = (Vec::<u32>::new(), Vec::<u32>::new());
    for i in 0..n {
        let (cols, vals) = a.row(i);
        let threshold = drop_tolerance * norm2(vals);
        let mut largest = zero::<T::Real>();
        left.clear();
        right.clear();
        (w[i], owner[i]) = (zero(), i as u32);
        for (&j, &v) in cols.iter().zip(vals) {
            (w[j as usize], owner[j as usize]) = (v, i as u32);
            largest = largest.max_nan(v.abs());
            match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => pending.push(Reverse(j)),
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => right.push(j),
            }
        }
        // Columns left of the diagonal in increasing order, those that fill brings included.
        while let Some(Reverse(k)) = pending.pop() {
            let k = k as usize;
            // lᵢₖ ← wₖ/dₖ
            let w_k = w[k];
            let l: T = w_k * reciprocals[k];
            if !(l.abs().to_f64() >= threshold) || l == zero() {
                continue;
            }
            w[k] = l;
            left.push(k as u32);
            // w ← w − lᵢₖ·dₖ·uₖ
            for e in upper.ptr[k] as usize..upper.ptr[k + 1] as usize {
                let j = upper.idx[e];
                if owner[j as usize] != i as u32 {
                    (w[j as usize], owner[j as usize]) = (zero(), i as u32);
                    if (j as usize) < i {
                        pending.push(Reverse(j));
                    } else {
                        right.push(j);
                    }
                }
                w[j as usize] -= w_k * upper.val[e];
            }
        }
        right.retain(|&j| w[j as usize].abs().to_f64() >= threshold && w[j as usize] != zero());
        keep_largest(&mut left, fill, &w);
        keep_largest(&mut right, fill, &w);
        let (pivot, was_replaced) = usable_pivot(w[i], largest);
        replaced += usize::from(was_replaced);
        let reciprocal = divide(one::<T>(), pivot);
        if !Scalar::is_finite(reciprocal) {
            return Err(FactorError::Breakdown {
                method: "ilut",
                reason: format!("elements overflow in row {i} (from 0); scale the matrix, or use matching"),
            });
        }
        for (part, rows, scale) in [(&left, &mut lower, one()), (&right, &mut upper, reciprocal)] {
            rows.idx.extend_from_slice(part);
            rows.val.extend(part.iter().map(|&j| w[j as usize] * scale));
            let end = u32::try_from(rows.idx.len()).map_err(|_| Error::TooLarge {
                what: "incomplete factors",
                needed: format!("{} entries", rows.idx.len()),
                limit: "32-bit pointers".into(),
            })?;
            rows.ptr.push(end);
        }
        reciprocals.push(reciprocal);
    }
    Ok(IncompleteLu::assemble("ilut", Rule::Dropping(options), lower, upper, reciprocals, replaced))
}

/// The `count` columns with the largest |w|, in increasing order; of equal ones the first.
pub(crate) fn keep_largest<T: Scalar>(columns: &mut Vec<u32>, count: usize, w: &[T]) {
    if columns.len() > count {
        let size = |j: u32| w[j as usize].abs().to_f64();
        if count > 0 {
            columns.select_nth_unstable_by(count - 1, |&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
        }
        columns.truncate(count);
    }
    columns.sort_unstable();
}
