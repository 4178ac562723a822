//! The SSOR preconditioner: one symmetric successive over-relaxation sweep by points.
//!
//! ```text
//! M = (D̄ + L)·D̄⁻¹·(D̄ + U)/(2 − ω),  D̄ = D/ω,  A = L + D + U
//! ```
//!
//! For Hermitian A this is K·Kᴴ with K = (2 − ω)^(−1/2)·(D̄ + L)·D̄^(−1/2), definite where D is positive. O. Axelsson, BIT 12
//! (1972) 443–467, doi:10.1007/BF01932955; Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.2.
//!
//! Storage and cost: those of [`IncompleteLu`] on the pattern of A.

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, Scalar, zero};

use crate::blas1::divide;
use crate::hermitian::{check_omega, check_positive};
use crate::incomplete_lu::{IncompleteLu, Rule, outside_pattern};
use crate::pattern_lu::Pattern;
use crate::preconditioner::PreconditionerKind;

/// The SSOR preconditioner of `a` with 0 < ω < 2; ω = 1 is symmetric Gauss–Seidel.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Preconditioner, PreconditionerKind, ssor};
/// // A diagonal matrix: M = D/(ω(2 − ω)).
/// let a = Csr::from_dense(faer::mat![[2.0, 0.0], [0.0, 4.0]].as_ref())?;
/// let mut m = ssor(&a, 1.5)?;
/// let mut z = [0.0; 2];
/// m.apply(&[2.0, 4.0], &mut z);
/// assert_eq!((z, m.kind()), ([0.75, 0.75], PreconditionerKind::Spd));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`FactorError::Input`] when A is not square or not finite, or ω is not between 0 and 2; [`FactorError::Breakdown`] naming
/// the row whose diagonal entry has no finite reciprocal.
#[inline(never)]
pub fn ssor<T: Scalar>(a: &Csr<T>, omega: f64) -> Result<IncompleteLu<T>> {
    check_omega(omega)?;
    let pattern = Pattern { ptr: a.row_ptr(), idx: a.col_idx() };
    IncompleteLu::on_pattern("ssor", Rule::Relaxed(omega), &pattern, a)
}

/// M = (I + L·D̄⁻¹)·D̄/(2 − ω)·(I + D̄⁻¹·U) in the triangles of `m`, which have the pattern of A.
pub(crate) fn relax<T: Scalar>(m: &mut IncompleteLu<T>, a: &Csr<T>, omega: f64) -> Result<()> {
    let IncompleteLu { lower, upper, work: inverses, .. } = m;
    let (w, unscale) = (T::rounded(omega, 0.0), T::rounded(2.0 - omega, 0.0));
    // D̄⁻¹
    for (i, inverse) in inverses.iter_mut().enumerate() {
        *inverse = divide(w, a.get(i, i));
        if a.get(i, i) == zero() || !Scalar::is_finite(*inverse) {
            let reason = format!("the diagonal entry of row {i} (from 0) has no reciprocal; use ilut or matching");
            return Err(FactorError::breakdown("ssor", Place::Row(i), reason));
        }
    }
    for i in 0..inverses.len() {
        let (p, q) = (lower.position(i), upper.position(i));
        let (mut left, mut right) = (lower.row(p), upper.row(q));
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals).filter(|(j, _)| **j as usize != i) {
            let (part, places) = if (j as usize) < i { (&mut *lower, &mut left) } else { (&mut *upper, &mut right) };
            // Columns increase on both sides; what A has no more is zero.
            let place = loop {
                let Some(e) = places.next() else { return Err(outside_pattern(i, j)) };
                if part.row_at(part.positions()[e] as usize) == j as usize {
                    break e;
                }
                part.values_mut()[e] = zero();
            };
            part.values_mut()[place] = v * inverses[i.min(j as usize)];
        }
        left.for_each(|e| lower.values_mut()[e] = zero());
        right.for_each(|e| upper.values_mut()[e] = zero());
        upper.reciprocals_mut()[q] = inverses[i] * unscale;
    }
    m.kind = if check_positive(a, "ssor").is_ok() { PreconditionerKind::Spd } else { PreconditionerKind::General };
    Ok(())
}
