//! Conversions: every format has a `from_csr` and a `to_csr`, so that any two are one step apart.
//!
//! Formats that store places rather than entries (diagonals, bands, dense blocks) give back their non-zeros; triplets
//! and compressed rows keep explicit zeros. Sizes are checked before memory is taken.

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::kernels::{ask_for_huge_pages, zeros};
use crate::memory;
use crate::operator::{Matrix, zero};
use crate::scalar::Scalar;

/// `len` default values (zeros), or an error when the memory cannot be had.
pub(crate) fn try_zeros<T: Copy + Default>(len: usize, what: &'static str) -> Result<Vec<T>> {
    memory::ask((len as u64).saturating_mul(size_of::<T>() as u64), what)?;
    zeros(len).map_err(|_| too_large(what, len))
}

/// No values yet, in memory for `len` of them.
pub(crate) fn try_room<T>(len: usize, what: &'static str) -> Result<Vec<T>> {
    memory::ask((len as u64).saturating_mul(size_of::<T>() as u64), what)?;
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| too_large(what, len))?;
    ask_for_huge_pages(&values);
    Ok(values)
}

/// The error for memory that could not be had.
pub(crate) fn too_large(what: &'static str, len: usize) -> Error {
    Error::TooLarge { what, needed: format!("{len} values"), limit: "the memory there is".into() }
}

/// The entries of a matrix that are not exactly zero, by rows. Two passes, O(entries).
#[inline(never)]
pub(crate) fn nonzeros<T: Scalar>(a: &impl Matrix<T>) -> Result<Csr<T>> {
    let mut row_ptr: Vec<u32> = try_zeros(a.nrows() + 1, "row pointers")?;
    let mut nnz = 0usize;
    a.for_each_entry(&mut |i, _, v| {
        if v != zero() {
            nnz += 1;
            row_ptr[i + 1] = nnz.min(u32::MAX as usize) as u32;
        }
    });
    // A row without entries ends where the one before it does.
    for i in 0..a.nrows() {
        row_ptr[i + 1] = row_ptr[i + 1].max(row_ptr[i]);
    }
    let mut cols: Vec<u32> = try_zeros(nnz, "compressed rows")?;
    let mut values: Vec<T> = try_zeros(nnz, "compressed rows")?;
    let mut k = 0;
    a.for_each_entry(&mut |_, j, v| {
        if v != zero() {
            (cols[k], values[k]) = (j as u32, v);
            k += 1;
        }
    });
    Csr::new(a.nrows(), a.ncols(), row_ptr, cols, values)
}
