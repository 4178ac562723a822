//! Conversions: every format goes to and comes from [`Csr`](crate::Csr).

use crate::error::{Error, Result};
use crate::operator::zero;
use crate::scalar::Scalar;

/// `len` zeros, or an error when the memory cannot be had.
pub(crate) fn try_zeros<T: Scalar>(len: usize, what: &'static str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    if len.checked_mul(size_of::<T>()).is_none() || values.try_reserve_exact(len).is_err() {
        return Err(Error::TooLarge { what, needed: format!("{len} values"), limit: "the memory there is".into() });
    }
    values.resize(len, zero());
    Ok(values)
}
