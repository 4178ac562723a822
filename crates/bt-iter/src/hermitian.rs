//! What preconditioners for Hermitian matrices ask of A before they use half of it.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, zero};

/// Whether A is Hermitian with a positive diagonal. Nothing is allocated.
///
/// # Errors
/// [`FactorError::Input`] when A is not square, not finite, or not Hermitian to 8 ulp, naming the entry;
/// [`FactorError::Breakdown`] naming the row whose diagonal entry is not positive, since A is not definite then.
pub(crate) fn check_positive<T: Scalar>(a: &Csr<T>, method: &'static str) -> Result<()> {
    a.check_square()?;
    a.check_finite()?;
    for i in 0..a.nrows() {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals) {
            // Missing entries are zeros.
            let w = Scalar::conj(a.get(j as usize, i));
            let off = Scalar::abs(v - w).to_f64();
            if off > 8.0 * T::Real::EPSILON.to_f64() * v.abs().max_nan(w.abs()).to_f64() {
                let why =
                    format!("{method} needs a Hermitian matrix, but a({i}, {j}) = {v} and its mirror {w} (from 0)");
                return Err(Error::InvalidStructure { what: "matrix", why }.into());
            }
        }
    }
    for i in 0..a.nrows() {
        let d = a.get(i, i).re();
        if !(d > zero()) {
            let reason = format!("the diagonal entry {d} of row {i} (from 0) is not positive: A is not definite");
            return Err(FactorError::Breakdown { method, reason });
        }
    }
    Ok(())
}

/// The diagonal of a finite Hermitian matrix with a positive diagonal.
///
/// # Errors
/// As [`check_positive`].
pub(crate) fn positive_diagonal<T: Scalar>(a: &Csr<T>, method: &'static str) -> Result<Vec<T::Real>> {
    check_positive(a, method)?;
    Ok((0..a.nrows()).map(|i| a.get(i, i).re()).collect())
}

/// # Errors
/// [`Error::InvalidStructure`] unless 0 < ω < 2.
pub(crate) fn check_omega(omega: f64) -> Result<()> {
    if omega > 0.0 && omega < 2.0 {
        return Ok(());
    }
    Err(Error::InvalidStructure { what: "omega", why: format!("{omega} is not between 0 and 2") }.into())
}
