//! What preconditioners for Hermitian matrices ask of A before they use half of it.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, zero};

/// The diagonal of a finite Hermitian matrix with a positive diagonal.
///
/// # Errors
/// [`FactorError::Input`] when A is not square, not finite, or not Hermitian to 8 ulp, naming the entry;
/// [`FactorError::Breakdown`] naming the row whose diagonal entry is not positive, since A is not definite then.
pub(crate) fn positive_diagonal<T: Scalar>(a: &Csr<T>, method: &'static str) -> Result<Vec<T::Real>> {
    a.check_square()?;
    a.check_finite()?;
    let transpose = a.transpose();
    for i in 0..a.nrows() {
        let ((cols, vals), (rows, other)) = (a.row(i), transpose.row(i));
        let (mut p, mut q) = (0, 0);
        while p < cols.len() || q < rows.len() {
            let (j, k) = (cols.get(p).copied().unwrap_or(u32::MAX), rows.get(q).copied().unwrap_or(u32::MAX));
            // Missing entries are zeros.
            let v = if j <= k { vals[p] } else { zero() };
            let w = if k <= j { Scalar::conj(other[q]) } else { zero() };
            let off = Scalar::abs(v - w).to_f64();
            if off > 8.0 * T::Real::EPSILON.to_f64() * v.abs().max_nan(w.abs()).to_f64() {
                let j = j.min(k);
                let why =
                    format!("{method} needs a Hermitian matrix, but a({i}, {j}) = {v} and its mirror {w} (from 0)");
                return Err(Error::InvalidStructure { what: "matrix", why }.into());
            }
            p += usize::from(j <= k);
            q += usize::from(k <= j);
        }
    }
    (0..a.nrows())
        .map(|i| {
            let d = a.get(i, i).re();
            if d > zero() {
                return Ok(d);
            }
            let reason = format!("the diagonal entry {d} of row {i} (from 0) is not positive: A is not definite");
            Err(FactorError::Breakdown { method, reason })
        })
        .collect()
}

/// # Errors
/// [`Error::InvalidStructure`] unless 0 < ω < 2.
pub(crate) fn check_omega(omega: f64) -> Result<()> {
    if omega > 0.0 && omega < 2.0 {
        return Ok(());
    }
    Err(Error::InvalidStructure { what: "omega", why: format!("{omega} is not between 0 and 2") }.into())
}
