//! Coordinate format: (row, column, value) triplets in any order, the format of assembly and of files.

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A sparse matrix as triplets. Duplicates are allowed and mean a sum; 16 bytes an `f64` entry.
///
/// ```
/// use bt_formats::Coo;
/// let mut a = Coo::new(2, 2)?;
/// a.push(0, 0, 1.0)?;
/// a.push(0, 0, 2.0)?;
/// a.push(1, 1, 5.0)?;
/// assert_eq!(a.to_csr()?.get(0, 0), 3.0);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T> {
    nrows: usize,
    ncols: usize,
    rows: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<T>,
}

/// Checks that a shape fits 32-bit indices.
pub(crate) fn check_shape(nrows: usize, ncols: usize) -> Result<()> {
    let largest = nrows.max(ncols);
    if largest >= u32::MAX as usize {
        return Err(Error::TooLarge {
            what: "a matrix",
            needed: format!("{nrows} × {ncols} rows and columns"),
            limit: format!("the {} of 32-bit indices", u32::MAX - 1),
        });
    }
    Ok(())
}

impl<T: Scalar> Coo<T> {
    /// An empty `nrows` × `ncols` matrix.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when a size exceeds 32-bit indices.
    pub fn new(nrows: usize, ncols: usize) -> Result<Self> {
        check_shape(nrows, ncols)?;
        Ok(Self { nrows, ncols, rows: Vec::new(), cols: Vec::new(), values: Vec::new() })
    }

    /// From three arrays of equal length, checked.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] on unequal lengths, [`Error::InvalidStructure`] on an index out of range.
    pub fn from_triplets(nrows: usize, ncols: usize, rows: Vec<u32>, cols: Vec<u32>, values: Vec<T>) -> Result<Self> {
        check_shape(nrows, ncols)?;
        for len in [rows.len(), cols.len()] {
            if len != values.len() {
                return Err(Error::DimensionMismatch { what: "triplet arrays", expected: values.len(), found: len });
            }
        }
        if let Some(k) = (0..rows.len()).find(|&k| rows[k] as usize >= nrows || cols[k] as usize >= ncols) {
            return Err(Error::InvalidStructure {
                what: "triplet",
                why: format!("entry {k} at ({}, {}) lies outside a {nrows} × {ncols} matrix", rows[k], cols[k]),
            });
        }
        Ok(Self { nrows, ncols, rows, cols, values })
    }

    /// Adds `value` at (`row`, `col`).
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when the place lies outside the matrix.
    pub fn push(&mut self, row: usize, col: usize, value: T) -> Result<()> {
        if row >= self.nrows || col >= self.ncols {
            return Err(Error::InvalidStructure {
                what: "triplet",
                why: format!("({row}, {col}) lies outside a {} × {} matrix", self.nrows, self.ncols),
            });
        }
        self.rows.push(row as u32);
        self.cols.push(col as u32);
        self.values.push(value);
        Ok(())
    }

    /// Rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }
    /// Columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }
    /// Row indices, from 0.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Column indices, from 0.
    pub fn cols(&self) -> &[u32] {
        &self.cols
    }
    /// Values.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Values for overwriting; the places stay.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
    /// The three arrays (rows, columns, values).
    pub fn into_triplets(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        (self.rows, self.cols, self.values)
    }

    /// Sorted by rows and columns, duplicates summed in the order they stand in.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there are more entries than 32-bit pointers can count.
    ///
    /// # Cost
    /// O(nnz + nrows) plus a sort of each row that is not sorted already.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        Csr::from_unsorted(self.nrows, self.ncols, &self.rows, &self.cols, &self.values)
    }
}
