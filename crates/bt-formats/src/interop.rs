//! To and from sprs, faer and (feature `nalgebra-sparse`) nalgebra-sparse.
//!
//! | | to | from |
//! |---|---|---|
//! | sprs, 32-bit indices | [`sprs_view`], [`into_sprs`]: no copy | [`from_sprs`]: no copy when by rows |
//! | sprs, any indices | | [`copy_sprs`] |
//! | faer, sparse | [`faer_view`]: no copy | [`from_faer`]: no copy when sorted; [`copy_faer_columns`], any indices |
//! | faer, dense | [`Csr::to_dense`] | [`Csr::from_dense`] |
//! | nalgebra-sparse | `to_nalgebra` | `copy_nalgebra`, `copy_nalgebra_columns`: its indices are 64-bit |
//! | nalgebra, dense | | `nalgebra_view`: no copy |
//!
//! Whatever comes in is validated, in O(nnz); so are views going out, by the library they go to.

use faer::sparse::{SparseColMatRef, SparseRowMat, SparseRowMatRef, SymbolicSparseRowMatRef};
use sprs::{CsMatI, CsMatViewI, SpIndex};

use crate::coo::Coo;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::Scalar;

fn refused(what: &'static str, why: impl std::fmt::Display) -> Error {
    Error::InvalidStructure { what, why: why.to_string() }
}

/// The matrix as sprs sees it, without a copy.
///
/// # Errors
/// [`Error::InvalidStructure`] when sprs refuses the arrays.
///
/// ```
/// use bt_formats::{Csr, interop};
/// let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(interop::sprs_view(&a)?.get(1, 0), Some(&2.0));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn sprs_view<T: Scalar>(a: &Csr<T>) -> Result<CsMatViewI<'_, T, u32, u32>> {
    CsMatViewI::try_new((a.nrows(), a.ncols()), a.row_ptr(), a.col_idx(), a.values())
        .map_err(|(.., e)| refused("view for sprs", e))
}

/// The arrays handed over to sprs.
///
/// # Errors
/// [`Error::InvalidStructure`] when sprs refuses them.
pub fn into_sprs<T: Scalar>(a: Csr<T>) -> Result<CsMatI<T, u32, u32>> {
    let shape = (a.nrows(), a.ncols());
    let (row_ptr, col_idx, values) = a.into_parts();
    CsMatI::try_new(shape, row_ptr, col_idx, values).map_err(|(.., e)| refused("matrix for sprs", e))
}

/// From sprs with 32-bit indices: the arrays are taken over when stored by rows, transposed when by columns.
///
/// # Errors
/// As [`Csr::new`].
///
/// ```
/// use bt_formats::{Csr, interop};
/// let a = Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(interop::from_sprs(interop::into_sprs(a.clone())?)?, a);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn from_sprs<T: Scalar>(a: CsMatI<T, u32, u32>) -> Result<Csr<T>> {
    let (by_rows, nrows, ncols) = (a.is_csr(), a.rows(), a.cols());
    let (ptr, idx, values) = a.into_raw_storage();
    if by_rows {
        Csr::new(nrows, ncols, ptr, idx, values)
    } else {
        Ok(Csr::new(ncols, nrows, ptr, idx, values)?.transpose())
    }
}

/// From sprs with any indices, by rows or by columns; a copy.
///
/// # Errors
/// [`Error::TooLarge`] beyond 32-bit indices, otherwise as [`Csr::new`].
///
/// ```
/// use bt_formats::interop;
/// let mut t = sprs::TriMat::new((2, 2));
/// t.add_triplet(1, 0, 5.0);
/// let a = interop::copy_sprs(t.to_csc::<usize>().view())?;
/// assert_eq!(a.get(1, 0), 5.0);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn copy_sprs<T: Scalar, I: SpIndex, P: SpIndex>(a: CsMatViewI<'_, T, I, P>) -> Result<Csr<T>> {
    let (nrows, ncols) = (a.rows(), a.cols());
    let (outer, inner) = if a.is_csr() { (nrows, ncols) } else { (ncols, nrows) };
    let ptr = narrow(a.proper_indptr().iter().map(|p| p.index()))?;
    let by_outer = Csr::new(outer, inner, ptr, narrow(a.indices().iter().map(|i| i.index()))?, a.data().to_vec())?;
    Ok(if a.is_csr() { by_outer } else { by_outer.transpose() })
}

/// The matrix as faer sees it, without a copy; its `transpose()` is Aᵀ by columns.
///
/// ```
/// use bt_formats::{Csr, interop};
/// let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(interop::faer_view(&a).to_dense(), a.to_dense());
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn faer_view<T: Scalar>(a: &Csr<T>) -> SparseRowMatRef<'_, u32, T> {
    let pattern = SymbolicSparseRowMatRef::new_checked(a.nrows(), a.ncols(), a.row_ptr(), None, a.col_idx());
    SparseRowMatRef::new(pattern, a.values())
}

/// From faer by rows: the arrays are taken over when they are compressed and sorted, else sorted and duplicates summed.
///
/// # Errors
/// [`Error::TooLarge`] beyond 32-bit indices.
///
/// ```
/// use bt_formats::interop;
/// use faer::sparse::{SparseRowMat, Triplet};
/// let entries = [Triplet::new(0, 1, 2.0), Triplet::new(1, 0, 3.0)];
/// let f = SparseRowMat::<u32, f64>::try_new_from_triplets(2, 2, &entries).unwrap();
/// assert_eq!(interop::from_faer(f)?.get(1, 0), 3.0);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn from_faer<T: Scalar>(a: SparseRowMat<u32, T>) -> Result<Csr<T>> {
    let view = a.as_ref();
    let sorted = |i: usize| view.symbolic().col_idx_of_row_raw(i).is_sorted_by(|a, b| a < b);
    if view.symbolic().row_nnz().is_some() || !(0..view.nrows()).all(sorted) {
        return copy_faer_columns(view.transpose()).map(|t| t.transpose());
    }
    let (pattern, mut values) = a.into_parts();
    let (nrows, ncols, row_ptr, _, mut col_idx) = pattern.into_parts();
    // faer allows room behind the last row.
    let nnz = row_ptr.last().map_or(0, |&p| p as usize);
    col_idx.truncate(nnz);
    values.truncate(nnz);
    Csr::new(nrows, ncols, row_ptr, col_idx, values)
}

/// From faer by columns, with any indices; a copy. Rows are sorted and duplicates summed where columns are not in order.
///
/// # Errors
/// [`Error::TooLarge`] beyond 32-bit indices.
///
/// ```
/// use bt_formats::interop;
/// use faer::sparse::{SparseColMat, Triplet};
/// let entries = [Triplet::new(0, 1, 2.0), Triplet::new(1, 0, 3.0)];
/// let f = SparseColMat::<usize, f64>::try_new_from_triplets(2, 2, &entries).unwrap();
/// assert_eq!(interop::copy_faer_columns(f.as_ref())?.get(1, 0), 3.0);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn copy_faer_columns<T: Scalar, I: faer::Index>(a: SparseColMatRef<'_, I, T>) -> Result<Csr<T>> {
    let pattern = a.symbolic();
    let column = |j: usize| pattern.row_idx_of_col_raw(j);
    let is_sorted = |j: usize| column(j).is_sorted_by(|a, b| a < b);
    if pattern.col_nnz().is_none() && (0..a.ncols()).all(is_sorted) {
        let pointers = narrow(pattern.col_ptr().iter().map(|p| p.zx()))?;
        let nnz = pointers.last().map_or(0, |&p| p as usize);
        let rows = narrow(pattern.row_idx()[..nnz].iter().map(|i| i.zx()))?;
        // The columns of A are the rows of Aᵀ.
        return Ok(Csr::new(a.ncols(), a.nrows(), pointers, rows, a.val()[..nnz].to_vec())?.transpose());
    }
    let mut coo = Coo::new(a.nrows(), a.ncols())?;
    for j in 0..a.ncols() {
        for (&i, &v) in column(j).iter().zip(a.val_of_col(j)) {
            coo.push(i.zx(), j, v)?;
        }
    }
    coo.to_csr()
}

/// A copy for nalgebra-sparse.
///
/// # Errors
/// [`Error::InvalidStructure`] when it refuses the arrays.
///
/// ```
/// use bt_formats::{Csr, interop};
/// let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(interop::copy_nalgebra(&interop::to_nalgebra(&a)?)?, a);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[cfg(feature = "nalgebra-sparse")]
pub fn to_nalgebra<T: Scalar>(a: &Csr<T>) -> Result<nalgebra_sparse::CsrMatrix<T>> {
    let widen = |s: &[u32]| s.iter().map(|&v| v as usize).collect();
    let values = a.values().to_vec();
    nalgebra_sparse::CsrMatrix::try_from_csr_data(a.nrows(), a.ncols(), widen(a.row_ptr()), widen(a.col_idx()), values)
        .map_err(|e| refused("matrix for nalgebra-sparse", e))
}

/// A copy from nalgebra-sparse.
///
/// # Errors
/// [`Error::TooLarge`] beyond 32-bit indices.
#[cfg(feature = "nalgebra-sparse")]
pub fn copy_nalgebra<T: Scalar>(a: &nalgebra_sparse::CsrMatrix<T>) -> Result<Csr<T>> {
    let ptr = narrow(a.row_offsets().iter().copied())?;
    Csr::new(a.nrows(), a.ncols(), ptr, narrow(a.col_indices().iter().copied())?, a.values().to_vec())
}

/// A copy from nalgebra-sparse by columns.
///
/// # Errors
/// [`Error::TooLarge`] beyond 32-bit indices.
///
/// ```
/// use bt_formats::interop;
/// use nalgebra_sparse::{CooMatrix, CscMatrix};
/// let mut entries = CooMatrix::new(2, 2);
/// entries.push(1, 0, 5.0);
/// assert_eq!(interop::copy_nalgebra_columns(&CscMatrix::from(&entries))?.get(1, 0), 5.0);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[cfg(feature = "nalgebra-sparse")]
pub fn copy_nalgebra_columns<T: Scalar>(a: &nalgebra_sparse::CscMatrix<T>) -> Result<Csr<T>> {
    let pointers = narrow(a.col_offsets().iter().copied())?;
    let rows = narrow(a.row_indices().iter().copied())?;
    Ok(Csr::new(a.ncols(), a.nrows(), pointers, rows, a.values().to_vec())?.transpose())
}

/// A dense matrix of nalgebra as faer sees it, without a copy: what a solver takes as a matrix, and as right-hand sides.
///
/// ```
/// use bt_formats::interop;
/// use nalgebra_sparse::na::DMatrix;
/// let a = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(interop::nalgebra_view(&a)[(1, 0)], 3.0);
/// ```
#[cfg(feature = "nalgebra-sparse")]
pub fn nalgebra_view<T: Scalar>(a: &nalgebra_sparse::na::DMatrix<T>) -> faer::MatRef<'_, T> {
    faer::MatRef::from_column_major_slice(a.as_slice(), a.nrows(), a.ncols())
}

/// Indices as 32-bit ones.
fn narrow(indices: impl ExactSizeIterator<Item = usize>) -> Result<Vec<u32>> {
    indices
        .map(|i| {
            u32::try_from(i).map_err(|_| Error::TooLarge {
                what: "a sparse matrix",
                needed: format!("index {i}"),
                limit: format!("the {} of 32-bit indices", u32::MAX),
            })
        })
        .collect()
}
