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

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, LinearOperator, Scalar, one, zero};

use crate::blas1::divide;
use crate::hermitian::{check_omega, positive_diagonal};
use crate::incomplete_lu::IncompleteLu;
use crate::preconditioner::PreconditionerKind;
use crate::triangular::Rows;

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
pub fn ssor<T: Scalar>(a: &Csr<T>, omega: f64) -> Result<IncompleteLu<T>> {
    check_omega(omega)?;
    a.check_square()?;
    a.check_finite()?;
    let n = a.nrows();
    let (w, scale) = (T::from_parts(omega, 0.0), T::from_parts(1.0 / (2.0 - omega), 0.0));
    // D̄⁻¹
    let inverses = (0..n)
        .map(|i| {
            let inverse = divide(w, a.get(i, i));
            if a.get(i, i) != zero() && Scalar::is_finite(inverse) {
                return Ok(inverse);
            }
            let reason = format!("the diagonal entry of row {i} (from 0) has no reciprocal; use ilut or matching");
            Err(FactorError::Breakdown { method: "ssor", reason })
        })
        .collect::<Result<Vec<T>>>()?;
    // M = (I + L·D̄⁻¹)·(D̄ + U)/(2 − ω)
    let (mut lower, mut upper) = (Rows { ptr: vec![0], ..Rows::default() }, Rows { ptr: vec![0], ..Rows::default() });
    for i in 0..n {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals) {
            if (j as usize) < i {
                lower.idx.push(j);
                lower.val.push(v * inverses[j as usize]);
            } else if (j as usize) > i {
                upper.idx.push(j);
                upper.val.push(v * scale);
            }
        }
        lower.ptr.push(lower.idx.len() as u32);
        upper.ptr.push(upper.idx.len() as u32);
    }
    let reciprocals: Vec<T> = inverses.iter().map(|&d| d * divide(one::<T>(), scale)).collect();
    let definite = positive_diagonal(a, "ssor").is_ok();
    let kind = if definite { PreconditionerKind::Spd } else { PreconditionerKind::General };
    Ok(IncompleteLu::assemble("ssor", &lower, &upper, &reciprocals, 0).claiming(kind))
}
