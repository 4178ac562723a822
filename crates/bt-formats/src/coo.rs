//! Coordinate format: (row, column, value) triplets in any order, the format of assembly and of files.

use std::ops::Range;

use faer::{MatMut, MatRef};

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par};
use crate::products::{RowProduct, column, column_mut, conj_if, product, product_many, scale};
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
    #[inline(never)]
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

    /// The entries of a sparse matrix as sorted triplets.
    pub fn from_csr(a: &Csr<T>) -> Self {
        let pairs = a.row_ptr().windows(2).zip(0..);
        let rows = pairs.flat_map(|(p, i)| (p[0]..p[1]).map(move |_| i)).collect();
        let (cols, values) = (a.col_idx().to_vec(), a.values().to_vec());
        Self { nrows: a.nrows(), ncols: a.ncols(), rows, cols, values }
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

impl<T: Scalar> LinearOperator<T> for Coo<T> {
    fn nrows(&self) -> usize {
        self.nrows
    }
    fn ncols(&self) -> usize {
        self.ncols
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for Coo<T> {
    /// Triplets, duplicates counted.
    fn nnz(&self) -> usize {
        self.values.len()
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.cols) + size_of_val(&*self.values)
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }
    /// Triplets in any order are sorted first, on the side; duplicates are visited as their sum.
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        let place = |k: usize| (self.rows[k], self.cols[k]);
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        if !order.is_sorted_by_key(|&k| place(k)) {
            order.sort_by_key(|&k| place(k));
        }
        for same in order.chunk_by(|&a, &b| place(a) == place(b)) {
            let (i, j) = place(same[0]);
            visit(i as usize, j as usize, same.iter().map(|&k| self.values[k]).sum());
        }
    }
}

impl<T: Scalar> Coo<T> {
    /// y ← y + α·(op(A)·x)[first..] from a range of triplets, in their order.
    pub(crate) fn scatter(&self, op: Op, entries: Range<usize>, first: usize, alpha: T, x: &[T], y: &mut [T]) {
        let (to, from) = if op == Op::Identity { (&self.rows, &self.cols) } else { (&self.cols, &self.rows) };
        let (to, from) = (&to[entries.clone()], &from[entries.clone()]);
        for ((&i, &j), &v) in to.iter().zip(from).zip(&self.values[entries]) {
            // Triplets of other rows fall outside y, those before it by wrapping around.
            if let Some(y) = y.get_mut((i as usize).wrapping_sub(first)) {
                *y += conj_if(op, v) * (alpha * x[j as usize]);
            }
        }
    }
}

impl<T: Scalar> RowProduct<T> for Coo<T> {
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        scale(beta, y);
        self.scatter(op, 0..self.values.len(), first, alpha, x, y);
    }

    fn is_local(&self, _op: Op) -> bool {
        false
    }

    fn rows_many(&self, op: Op, first: usize, alpha: T, x: MatRef<'_, T>, beta: T, mut y: MatMut<'_, T>) {
        /// Triplets that all columns take before the next ones: 64 KiB of `f64`.
        const TILE: usize = 4096;
        for q in 0..x.ncols() {
            scale(beta, column_mut(&mut y, q));
        }
        for start in (0..self.values.len()).step_by(TILE) {
            let entries = start..(start + TILE).min(self.values.len());
            for q in 0..x.ncols() {
                self.scatter(op, entries.clone(), first, alpha, column(x, q), column_mut(&mut y, q));
            }
        }
    }
}
