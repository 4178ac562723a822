//! Compressed sparse rows: 32-bit indices, sorted columns, no duplicates; validated at construction.
//!
//! Storage: 4(nrows + 1) + (4 + size of T)·nnz bytes. A product streams them once, or with [`Csr::index_by_diagonals`] the
//! values and a shorter index. Clones share what neither changes.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use faer::{MatMut, MatRef};

use crate::coo::{Coo, check_shape};
use crate::error::{Error, Result};
use crate::kernels::sparse_rows;
use crate::operator::{LinearOperator, Matrix, Op, Par, one, zero};
use crate::permutation::Permutation;
use crate::products::{
    RowProduct, column, column_mut, conj_if, product, product_many, scale, tile_rows, tile_rows_many,
};
use crate::reorder::MinimumDegree;
use crate::scalar::Scalar;
use crate::slice_index::SliceIndex;
use crate::survey::Survey;

/// A sparse matrix by rows.
///
/// ```text
/// [ 6 0 2 ]      row_ptr = 0 2 4 5
/// [ 1 9 0 ]      col_idx = 0 2 | 0 1 | 2
/// [ 0 0 4 ]      values  = 6 2 | 1 9 | 4
/// ```
///
/// ```
/// use bt_formats::{Csr, LinearOperator};
/// let a = Csr::new(3, 3, vec![0, 2, 4, 5], vec![0, 2, 0, 1, 2], vec![6.0, 2.0, 1.0, 9.0, 4.0])?;
/// let mut y = [0.0; 3];
/// a.apply(1.0, &[1.0, 1.0, 1.0], 0.0, &mut y);
/// assert_eq!(y, [8.0, 10.0, 4.0]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csr<T> {
    nrows: usize,
    ncols: usize,
    pattern: Arc<Pattern>,
    values: Arc<Vec<T>>,
    /// The pattern once more; it never changes, so neither does this.
    index: Option<Arc<SliceIndex>>,
    /// What one pass has told, until a value changes.
    survey: OnceLock<Arc<Survey>>,
}

/// Where the entries stand.
#[derive(Debug)]
struct Pattern {
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    /// An order that depends on nothing else, once somebody wants it.
    minimum_degree: OnceLock<Arc<MinimumDegree>>,
}

impl Pattern {
    fn new(row_ptr: Vec<u32>, col_idx: Vec<u32>) -> Self {
        Self { row_ptr, col_idx, minimum_degree: OnceLock::new() }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.row_ptr == other.row_ptr && self.col_idx == other.col_idx
    }
}

/// The same entries; an index by diagonals is no part of the matrix.
impl<T: PartialEq> PartialEq for Csr<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.nrows, self.ncols) == (other.nrows, other.ncols)
            && (Arc::ptr_eq(&self.pattern, &other.pattern) || self.pattern == other.pattern)
            && self.values == other.values
    }
}

fn invalid(what: &'static str, why: String) -> Error {
    Error::InvalidStructure { what, why }
}

pub(crate) fn check_nnz(nnz: usize) -> Result<()> {
    if nnz >= u32::MAX as usize {
        return Err(Error::TooLarge {
            what: "a sparse matrix",
            needed: format!("{nnz} entries"),
            limit: format!("the {} of 32-bit pointers", u32::MAX - 1),
        });
    }
    Ok(())
}

/// Whether pointers and columns are those of compressed rows; `of` is put before the rows and columns that an error names.
pub(crate) fn check_pattern(nrows: usize, ncols: usize, row_ptr: &[u32], col_idx: &[u32], of: &str) -> Result<()> {
    if row_ptr.len() != nrows + 1 || row_ptr[0] != 0 || row_ptr[nrows] as usize != col_idx.len() {
        return Err(invalid("row_ptr", format!("must hold {} pointers from 0 to {}", nrows + 1, col_idx.len())));
    }
    for i in 0..nrows {
        let (start, end) = (row_ptr[i] as usize, row_ptr[i + 1] as usize);
        if start > end || end > col_idx.len() {
            return Err(invalid("row_ptr", format!("decreases or overruns at {of}row {i}")));
        }
        let cols = &col_idx[start..end];
        if let Some(k) = cols.windows(2).position(|w| w[0] >= w[1]) {
            let why = format!("{of}column {} of {of}row {i} is repeated or out of order", cols[k + 1]);
            return Err(invalid("col_idx", why));
        }
        if cols.last().is_some_and(|&j| j as usize >= ncols) {
            return Err(invalid("col_idx", format!("{of}row {i} has a {of}column beyond {ncols}")));
        }
    }
    Ok(())
}

impl<T: Scalar> Csr<T> {
    /// From its three arrays, all invariants checked.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] naming the row when pointers decrease, a column is out of range, unsorted or
    /// repeated; [`Error::TooLarge`] beyond 32-bit indices.
    pub fn new(nrows: usize, ncols: usize, row_ptr: Vec<u32>, col_idx: Vec<u32>, values: Vec<T>) -> Result<Self> {
        Self::check_parts(nrows, ncols, &row_ptr, &col_idx, &values)?;
        Ok(Self::of_parts(nrows, ncols, row_ptr, col_idx, values))
    }

    fn of_parts(nrows: usize, ncols: usize, row_ptr: Vec<u32>, col_idx: Vec<u32>, values: Vec<T>) -> Self {
        let pattern = Arc::new(Pattern::new(row_ptr, col_idx));
        Self { nrows, ncols, pattern, values: Arc::new(values), index: None, survey: OnceLock::new() }
    }

    fn check_parts(nrows: usize, ncols: usize, row_ptr: &[u32], col_idx: &[u32], values: &[T]) -> Result<()> {
        check_shape(nrows, ncols)?;
        check_nnz(values.len())?;
        check_pattern(nrows, ncols, row_ptr, col_idx, "")?;
        if col_idx.len() != values.len() {
            return Err(Error::DimensionMismatch { what: "values", expected: col_idx.len(), found: values.len() });
        }
        Ok(())
    }

    /// From triplets in any order whose indices are known to be in range; duplicates are summed in file order.
    #[inline(never)]
    pub(crate) fn from_unsorted(nrows: usize, ncols: usize, rows: &[u32], cols: &[u32], values: &[T]) -> Result<Self> {
        check_nnz(values.len())?;
        // Counting sort by rows keeps the order of duplicates.
        let mut row_ptr = vec![0u32; nrows + 1];
        for &i in rows {
            row_ptr[i as usize + 1] += 1;
        }
        for i in 0..nrows {
            row_ptr[i + 1] += row_ptr[i];
        }
        let mut next = row_ptr.clone();
        let mut col_idx = vec![0u32; cols.len()];
        let mut sorted = vec![zero::<T>(); values.len()];
        for ((&i, &j), &v) in rows.iter().zip(cols).zip(values) {
            let k = &mut next[i as usize];
            col_idx[*k as usize] = j;
            sorted[*k as usize] = v;
            *k += 1;
        }
        // Each row: sort stably if needed, then sum runs of equal columns, compacting in place.
        let mut out = 0;
        let mut row: Vec<(u32, T)> = Vec::new();
        for i in 0..nrows {
            let (start, end) = (row_ptr[i] as usize, row_ptr[i + 1] as usize);
            row_ptr[i] = out as u32;
            let cols = &col_idx[start..end];
            if !cols.windows(2).all(|w| w[0] < w[1]) {
                row.clear();
                row.extend(cols.iter().copied().zip(sorted[start..end].iter().copied()));
                row.sort_by_key(|e| e.0);
                for (k, &(j, v)) in row.iter().enumerate() {
                    (col_idx[start + k], sorted[start + k]) = (j, v);
                }
            }
            for k in start..end {
                if out > row_ptr[i] as usize && col_idx[out - 1] == col_idx[k] {
                    let v = sorted[k];
                    sorted[out - 1] += v;
                } else {
                    (col_idx[out], sorted[out]) = (col_idx[k], sorted[k]);
                    out += 1;
                }
            }
        }
        row_ptr[nrows] = out as u32;
        col_idx.truncate(out);
        sorted.truncate(out);
        Ok(Self::of_parts(nrows, ncols, row_ptr, col_idx, sorted))
    }

    /// From arrays that are known to keep the invariants of [`Csr::new`].
    pub(crate) fn from_valid_parts(
        nrows: usize,
        ncols: usize,
        row_ptr: Vec<u32>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert!(Self::check_parts(nrows, ncols, &row_ptr, &col_idx, &values).is_ok());
        Self::of_parts(nrows, ncols, row_ptr, col_idx, values)
    }

    /// From a dense matrix, exact zeros left out.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit indices.
    #[inline(never)]
    pub fn from_dense(a: MatRef<'_, T>) -> Result<Self> {
        let mut coo = Coo::new(a.nrows(), a.ncols())?;
        for i in 0..a.nrows() {
            for j in 0..a.ncols() {
                if a[(i, j)] != zero() {
                    coo.push(i, j, a[(i, j)])?;
                }
            }
        }
        coo.to_csr()
    }

    /// Row pointers, `nrows + 1` of them.
    pub fn row_ptr(&self) -> &[u32] {
        &self.pattern.row_ptr
    }
    /// Column indices, increasing within a row.
    pub fn col_idx(&self) -> &[u32] {
        &self.pattern.col_idx
    }
    /// Values, in the order of `col_idx`.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Values for overwriting; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.survey.take();
        Arc::make_mut(&mut self.values).as_mut_slice()
    }
    /// The three arrays (row pointers, columns, values); those that a clone shares are copied.
    #[inline(never)]
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        let Pattern { row_ptr, col_idx, .. } =
            Arc::try_unwrap(self.pattern).unwrap_or_else(|p| Pattern::new(p.row_ptr.clone(), p.col_idx.clone()));
        (row_ptr, col_idx, Arc::unwrap_or_clone(self.values))
    }

    /// Whether the entries of `other` stand in the same places.
    pub fn has_pattern_of<U>(&self, other: &Csr<U>) -> bool {
        (self.nrows, self.ncols) == (other.nrows, other.ncols)
            && (Arc::ptr_eq(&self.pattern, &other.pattern) || self.pattern == other.pattern)
    }

    /// The minimum degree order of the pattern, made by the first call.
    pub(crate) fn minimum_degree_or(&self, make: impl FnOnce() -> Result<MinimumDegree>) -> Result<Arc<MinimumDegree>> {
        if let Some(known) = self.pattern.minimum_degree.get() {
            return Ok(known.clone());
        }
        let made = Arc::new(make()?);
        Ok(self.pattern.minimum_degree.get_or_init(|| made).clone())
    }

    /// What one pass over the entries tells; the first call makes it.
    pub fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| Arc::new(Survey::of(self)))
    }

    /// Adds a second index, by diagonals of eight rows, for the product y ← αAx + βy, and says whether it has: it does where
    /// the index takes at most half the bytes of the first, that is where neighbouring rows resemble each other, as in
    /// matrices of meshes and of the cloud model.
    ///
    /// With it a product reads 40 bytes for eight rows on up to eight diagonals instead of four bytes an entry and four a
    /// row, and x in consecutive pieces. The matrix and its values stay as they are, and so does every other operation;
    /// sums of rows are rounded in another order. The index is kept by clones and counted in `bytes`. Worth its making
    /// from some ten products on.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the memory cannot be had.
    ///
    /// # Cost
    /// O(z log z) for every eight rows of z entries, less where they resemble each other.
    ///
    /// ```
    /// use bt_formats::{Csr, LinearOperator, Matrix};
    /// let n = 100u32;
    /// let cols = (0..n).flat_map(|i| [i, (i + 40) % n]).map(|j| j.min(n - 1)).collect::<Vec<_>>();
    /// let cols = cols.chunks(2).flat_map(|c| [c[0].min(c[1]), c[0].max(c[1])]).collect();
    /// let mut a = Csr::new(100, 100, (0..=n).map(|i| 2 * i).collect(), cols, vec![1.0; 200])?;
    /// let plain = a.bytes();
    /// assert!(a.index_by_diagonals()?);
    /// assert!(a.bytes() > plain);
    /// let mut y = [0.0; 100];
    /// a.apply(1.0, &[1.0; 100], 0.0, &mut y);
    /// assert_eq!(y, [2.0; 100]);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn index_by_diagonals(&mut self) -> Result<bool> {
        if self.index.is_none() {
            // Half of the four bytes that each pointer and column takes.
            let Pattern { row_ptr, col_idx, .. } = &*self.pattern;
            let limit = 2 * (row_ptr.len() + col_idx.len());
            self.index = SliceIndex::new(row_ptr, col_idx, limit)?.map(Arc::new);
        }
        Ok(self.index.is_some())
    }

    /// The index by diagonals, if there is one.
    pub(crate) fn slice_index(&self) -> Option<&SliceIndex> {
        self.index.as_deref()
    }

    /// k, where A is square and its rows have all entries of a band of k diagonals on either side, and no others. O(n).
    ///
    /// ```
    /// use bt_formats::Csr;
    /// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
    /// assert_eq!(a.full_band(), Some(1));
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn full_band(&self) -> Option<usize> {
        let Pattern { row_ptr, col_idx, .. } = &*self.pattern;
        let n = self.nrows;
        if n != self.ncols || n == 0 || row_ptr[1] == 0 {
            return None;
        }
        let k = row_ptr[1] as usize - 1;
        // Columns increase: as many of them as there are places are all.
        let is_full = |i: usize| {
            let (first, last) = (i.saturating_sub(k), (i + k).min(n - 1));
            let (start, end) = (row_ptr[i] as usize, row_ptr[i + 1] as usize);
            end - start == last + 1 - first && col_idx[start] as usize == first
        };
        (0..n).all(is_full).then_some(k)
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let Pattern { row_ptr, col_idx, .. } = &*self.pattern;
        let range = row_ptr[i] as usize..row_ptr[i + 1] as usize;
        (&col_idx[range.clone()], &self.values[range])
    }

    /// Columns of row `i`, and its values for overwriting.
    pub fn row_mut(&mut self, i: usize) -> (&[u32], &mut [T]) {
        self.survey.take();
        let Pattern { row_ptr, col_idx, .. } = &*self.pattern;
        let range = row_ptr[i] as usize..row_ptr[i + 1] as usize;
        (&col_idx[range.clone()], &mut Arc::make_mut(&mut self.values)[range])
    }

    /// Entry (i, j), zero where nothing is stored. O(log of the row's length).
    pub fn get(&self, i: usize, j: usize) -> T {
        let (cols, vals) = self.row(i);
        cols.binary_search(&(j as u32)).map_or(zero(), |k| vals[k])
    }

    /// Aᵀ, by one counting sort: O(nnz + n).
    #[inline(never)]
    pub fn transpose(&self) -> Self {
        let mut row_ptr = vec![0u32; self.ncols + 1];
        for &j in self.col_idx() {
            row_ptr[j as usize + 1] += 1;
        }
        for j in 0..self.ncols {
            row_ptr[j + 1] += row_ptr[j];
        }
        let mut next = row_ptr.clone();
        let mut col_idx = vec![0u32; self.values.len()];
        let mut values = vec![zero::<T>(); self.values.len()];
        for i in 0..self.nrows {
            let (cols, vals) = self.row(i);
            for (&j, &v) in cols.iter().zip(vals) {
                let k = &mut next[j as usize];
                col_idx[*k as usize] = i as u32;
                values[*k as usize] = v;
                *k += 1;
            }
        }
        Self::of_parts(self.ncols, self.nrows, row_ptr, col_idx, values)
    }

    /// P A Qᵀ: entry (i, j) of the result is `A(rows.order()[i], cols.order()[j])`.
    ///
    /// # Panics
    /// When a permutation's length is not the matrix's size.
    #[inline(never)]
    pub fn permute(&self, rows: &Permutation, cols: &Permutation) -> Self {
        assert_eq!((rows.len(), cols.len()), (self.nrows, self.ncols), "lengths of the permutations");
        let mut row_ptr = Vec::with_capacity(self.nrows + 1);
        row_ptr.push(0u32);
        let mut col_idx = Vec::with_capacity(self.values.len());
        let mut values = Vec::with_capacity(self.values.len());
        let mut line: Vec<(u32, T)> = Vec::new();
        for &old in rows.order() {
            let (c, v) = self.row(old as usize);
            line.clear();
            line.extend(c.iter().zip(v).map(|(&j, &v)| (cols.position()[j as usize], v)));
            line.sort_unstable_by_key(|e| e.0);
            col_idx.extend(line.iter().map(|e| e.0));
            values.extend(line.iter().map(|e| e.1));
            row_ptr.push(col_idx.len() as u32);
        }
        Self::of_parts(self.nrows, self.ncols, row_ptr, col_idx, values)
    }

    /// R A C with the diagonal matrices R and C of real factors.
    ///
    /// # Panics
    /// When a length is not the matrix's size.
    pub fn scale(&self, row_factors: &[T::Real], col_factors: &[T::Real]) -> Self {
        assert_eq!((row_factors.len(), col_factors.len()), (self.nrows, self.ncols), "lengths of the factors");
        let mut out = self.clone();
        let values = out.values_mut();
        for i in 0..self.nrows {
            for k in self.row_ptr()[i] as usize..self.row_ptr()[i + 1] as usize {
                let (r, c) = (row_factors[i], col_factors[self.col_idx()[k] as usize]);
                // The product on the way lies between the number and the result.
                let towards_zero = values[k].abs1() >= one();
                let (first, second) = if (r <= c) == towards_zero { (r, c) } else { (c, r) };
                values[k] = values[k] * T::from_real(first) * T::from_real(second);
            }
        }
        out
    }

    /// The same matrix without stored zeros.
    #[inline(never)]
    pub fn without_zeros(&self) -> Self {
        let mut row_ptr = Vec::with_capacity(self.nrows + 1);
        row_ptr.push(0);
        let mut col_idx = Vec::with_capacity(self.values.len());
        let mut values = Vec::with_capacity(self.values.len());
        for i in 0..self.nrows {
            let (cols, vals) = self.row(i);
            for (&j, &v) in cols.iter().zip(vals).filter(|e| *e.1 != zero()) {
                col_idx.push(j);
                values.push(v);
            }
            row_ptr.push(col_idx.len() as u32);
        }
        Self::of_parts(self.nrows, self.ncols, row_ptr, col_idx, values)
    }

    /// The matrix in another scalar type.
    pub fn cast<U: Scalar>(&self) -> Csr<U> {
        Csr {
            nrows: self.nrows,
            ncols: self.ncols,
            pattern: self.pattern.clone(),
            values: Arc::new(self.values.iter().map(|v| v.cast()).collect()),
            index: self.index.clone(),
            survey: OnceLock::new(),
        }
    }

    /// Dense copy, for small matrices and oracles.
    pub fn to_dense(&self) -> faer::Mat<T> {
        let mut a = faer::Mat::zeros(self.nrows, self.ncols);
        self.for_each_entry(&mut |i, j, v| a[(i, j)] = v);
        a
    }

    /// # Errors
    /// [`Error::NonFinite`] with the place of the first NaN or infinity.
    pub fn check_finite(&self) -> Result<()> {
        if self.survey.get().is_some_and(|s| s.is_finite) {
            return Ok(());
        }
        let Some(k) = self.values.iter().position(|v| !Scalar::is_finite(*v)) else { return Ok(()) };
        let row = self.row_ptr().partition_point(|&p| p as usize <= k) - 1;
        let (col, value) = (self.col_idx()[k] as usize, self.values[k].to_string());
        Err(Error::NonFinite { what: "matrix", row, col, value })
    }

    /// # Errors
    /// [`Error::NotSquare`] unless rows and columns agree.
    pub fn check_square(&self) -> Result<()> {
        if self.nrows != self.ncols {
            return Err(Error::NotSquare { nrows: self.nrows, ncols: self.ncols });
        }
        Ok(())
    }
}

impl<T: Scalar> LinearOperator<T> for Csr<T> {
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

impl<T: Scalar> Matrix<T> for Csr<T> {
    fn nnz(&self) -> usize {
        self.values.len()
    }

    fn as_rows(&self) -> Option<&Csr<T>> {
        Some(self)
    }

    fn bytes(&self) -> usize {
        let index = self.index.as_deref().map_or(0, SliceIndex::bytes);
        size_of_val(self.row_ptr()) + size_of_val(self.col_idx()) + size_of_val(self.values()) + index
    }

    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }

    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }

    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for i in 0..self.nrows {
            let (cols, vals) = self.row(i);
            for (&j, &v) in cols.iter().zip(vals) {
                visit(i, j as usize, v);
            }
        }
    }
}

impl<T: Scalar> RowProduct<T> for Csr<T> {
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        if op == Op::Identity {
            sparse_rows(self, None, first, alpha, x, beta, y);
        } else {
            scale(beta, y);
            self.scatter(op, 0..self.nrows, first, alpha, x, y);
        }
    }

    fn is_local(&self, op: Op) -> bool {
        op == Op::Identity
    }

    #[inline(never)]
    fn rows_many(&self, op: Op, first: usize, alpha: T, x: MatRef<'_, T>, beta: T, mut y: MatMut<'_, T>) {
        let tile = tile_rows(self);
        if op == Op::Identity {
            return tile_rows_many(self, tile, op, first, alpha, x, beta, y);
        }
        for q in 0..x.ncols() {
            scale(beta, column_mut(&mut y, q));
        }
        // Here A is cut into tiles of its own rows, not of the rows of op(A).
        for start in (0..self.nrows).step_by(tile) {
            let rows = start..(start + tile).min(self.nrows);
            for q in 0..x.ncols() {
                self.scatter(op, rows.clone(), first, alpha, column(x, q), column_mut(&mut y, q));
            }
        }
    }
}

impl<T: Scalar> Csr<T> {
    /// y ← y + α·(op(A)·x)[first..] from `rows` of A, which is transposed by op: they are passed over in order, and
    /// the part of each that falls into y is found by bisection.
    #[inline(never)]
    pub(crate) fn scatter(&self, op: Op, rows: Range<usize>, first: usize, alpha: T, x: &[T], y: &mut [T]) {
        let last = first + y.len();
        let whole = first == 0 && last == self.ncols;
        for i in rows {
            let (mut cols, mut vals) = self.row(i);
            if !whole {
                let start = cols.partition_point(|&j| (j as usize) < first);
                let end = start + cols[start..].partition_point(|&j| (j as usize) < last);
                (cols, vals) = (&cols[start..end], &vals[start..end]);
            }
            let ax = alpha * x[i];
            for (&j, &v) in cols.iter().zip(vals) {
                y[j as usize - first] += conj_if(op, v) * ax;
            }
        }
    }
}
