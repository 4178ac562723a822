//! Block compressed sparse rows: compressed rows of dense k × k blocks, k = 1 … 6.
//!
//! For systems with k unknowns at every node of a mesh: one index serves k² values, and a product takes k elements of x at a
//! time, with loops compiled for each k.
//!
//! Storage for p blocks of values of s bytes: 4(nrows/k + 1) + (4 + s·k²)·p bytes. Beside compressed rows of as many doubles that is
//! (8 + 4/k²)/12 of the bytes; 2 × 2 blocks win as long as less than a quarter of their places hold zeros.
//!
//! A row is summed block after block, columns increasing, into one sum.

use faer::{MatMut, MatRef};

use crate::convert::{nonzeros, try_zeros};
use crate::coo::check_shape;
use crate::csr::{Csr, check_nnz, check_pattern};
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::products::{
    RowProduct, column, column_mut, conj_if, finish, product, product_many, scale, tile_rows, tile_rows_many,
};
use crate::scalar::Scalar;

/// Largest k.
pub(crate) const LARGEST: usize = 6;

/// An `nrows` × `ncols` matrix by rows of dense k × k blocks.
///
/// Values lie block after block, each by columns. Places of a block where the matrix has no entry hold zeros.
///
/// ```text
/// [ 6 0 | 2 1 ]      row_ptr = 0 2 3
/// [ 1 9 | 0 3 ]      col_idx = 0 1 | 1
/// [ ---------- ]
/// [ 0 0 | 4 5 ]      values  = 6 1 0 9   2 0 1 3 | 4 7 5 8
/// [ 0 0 | 7 8 ]
/// ```
///
/// ```
/// use bt_formats::{Bcsr, Csr, LinearOperator};
/// let (ptr, cols) = (vec![0, 3, 6, 8, 10], vec![0, 2, 3, 0, 1, 3, 2, 3, 2, 3]);
/// let a = Csr::new(4, 4, ptr, cols, vec![6., 2., 1., 1., 9., 3., 4., 5., 7., 8.])?;
/// let b = Bcsr::from_csr(&a, 2)?;
/// assert_eq!((b.row_ptr(), b.col_idx()), (&[0, 2, 3][..], &[0, 1, 1][..]));
/// assert_eq!(b.values(), [6., 1., 0., 9., 2., 0., 1., 3., 4., 7., 5., 8.]);
/// assert_eq!(b.zeros(), 2);
/// let mut y = [0.0; 4];
/// b.apply(1.0, &[1.0; 4], 0.0, &mut y);
/// assert_eq!(y, [9.0, 13.0, 9.0, 15.0]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bcsr<T> {
    nrows: usize,
    ncols: usize,
    block_size: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Bcsr<T> {
    /// From pointers and columns of blocks, and their values, all invariants checked.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] for a block size that is not 1 … 6 or does not divide rows and columns, or naming the block row
    /// when pointers decrease, a block column is out of range, unsorted or repeated; [`Error::DimensionMismatch`] on a wrong number of
    /// values; [`Error::TooLarge`] beyond 32-bit indices.
    pub fn new(
        nrows: usize,
        ncols: usize,
        block_size: usize,
        row_ptr: Vec<u32>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        check_shape(nrows, ncols)?;
        check_block_size(nrows, ncols, block_size)?;
        check_nnz(col_idx.len())?;
        check_pattern(nrows / block_size, ncols / block_size, &row_ptr, &col_idx, "block ")?;
        let expected = col_idx.len().saturating_mul(block_size * block_size);
        if values.len() != expected {
            return Err(Error::DimensionMismatch { what: "values of the blocks", expected, found: values.len() });
        }
        Ok(Self { nrows, ncols, block_size, row_ptr, col_idx, values })
    }

    /// From a sparse matrix, with the k × k blocks that its stored entries meet. [`Bcsr::zeros`] counts what they hold beside them,
    /// [`crate::detect::block_size`] finds a k for which that is little.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] for a block size that is not 1 … 6 or does not divide rows and columns; [`Error::TooLarge`] or
    /// [`Error::NotEnoughMemory`] when the blocks do not fit memory.
    ///
    /// # Cost
    /// O(nnz + values stored), and an index of 4 bytes a block column for the time of the call.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>, block_size: usize) -> Result<Self> {
        let (nrows, ncols, k) = (a.nrows(), a.ncols(), block_size);
        check_block_size(nrows, ncols, k)?;
        let mut row_ptr: Vec<u32> = try_zeros(nrows / k + 1, "pointers of block rows")?;
        // place[j]: 1 + the last block row that has met block column j, then the place of that block.
        let mut place: Vec<u32> = try_zeros(ncols / k, "an index of block columns")?;
        for i in 0..nrows / k {
            row_ptr[i + 1] = row_ptr[i];
            for &j in (i * k..(i + 1) * k).flat_map(|row| a.row(row).0) {
                let last = &mut place[j as usize / k];
                row_ptr[i + 1] += u32::from(*last != i as u32 + 1);
                *last = i as u32 + 1;
            }
        }
        let blocks = row_ptr[nrows / k] as usize;
        let mut col_idx: Vec<u32> = try_zeros(blocks, "columns of blocks")?;
        let mut values: Vec<T> = try_zeros(blocks.saturating_mul(k * k), "blocks")?;
        for i in 0..nrows / k {
            let (start, end) = (row_ptr[i] as usize, row_ptr[i + 1] as usize);
            merge_columns(a, i, k, &mut col_idx[start..end]);
            for (p, &j) in (start..end).zip(&col_idx[start..end]) {
                place[j as usize] = p as u32;
            }
            for row in i * k..(i + 1) * k {
                let (cols, vals) = a.row(row);
                for (&j, &v) in cols.iter().zip(vals) {
                    let (j, column) = (j as usize / k, j as usize % k);
                    values[(place[j] as usize * k + column) * k + row % k] = v;
                }
            }
        }
        Ok(Self { nrows, ncols, block_size, row_ptr, col_idx, values })
    }

    /// The non-zeros by rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit pointers.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        nonzeros(self)
    }

    /// Rows and columns of a block, k.
    pub fn block_size(&self) -> usize {
        self.block_size
    }
    /// Pointers of block rows, `nrows/k + 1` of them.
    pub fn row_ptr(&self) -> &[u32] {
        &self.row_ptr
    }
    /// Columns of blocks, increasing within a block row.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }
    /// Values, block after block in the order of `col_idx`, each by columns.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Values for overwriting; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
    /// Block columns and values of block row `i`.
    #[inline]
    pub fn block_row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
        let square = self.block_size * self.block_size;
        (&self.col_idx[range.clone()], &self.values[range.start * square..range.end * square])
    }
    /// Block columns of block row `i`, and its values for overwriting.
    pub fn block_row_mut(&mut self, i: usize) -> (&[u32], &mut [T]) {
        let range = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
        let square = self.block_size * self.block_size;
        (&self.col_idx[range.clone()], &mut self.values[range.start * square..range.end * square])
    }
    /// Stored values that are exactly zero. O(nnz).
    pub fn zeros(&self) -> usize {
        self.values.iter().filter(|v| **v == zero()).count()
    }

    /// # Errors
    /// [`Error::NonFinite`] with the place of the first NaN or infinity in the order of storage.
    pub fn check_finite(&self) -> Result<()> {
        let Some(p) = self.values.iter().position(|v| !Scalar::is_finite(*v)) else { return Ok(()) };
        let (k, block) = (self.block_size, p / (self.block_size * self.block_size));
        let row = self.row_ptr.partition_point(|&q| q as usize <= block) - 1;
        let col = self.col_idx[block] as usize * k + p / k % k;
        Err(Error::NonFinite { what: "matrix", row: row * k + p % k, col, value: self.values[p].to_string() })
    }
}

/// Block columns of block row `i` of A, increasing, each once: as many as `cols` has room for.
fn merge_columns<T: Scalar>(a: &Csr<T>, i: usize, k: usize, cols: &mut [u32]) {
    let mut rest = [&[][..]; LARGEST];
    for (rest, row) in rest.iter_mut().zip(i * k..(i + 1) * k) {
        *rest = a.row(row).0;
    }
    for col in cols {
        let next = rest.iter().filter_map(|cols| cols.first()).min().map_or(0, |&j| j / k as u32);
        *col = next;
        for rest in &mut rest {
            *rest = &rest[rest.iter().take_while(|j| **j / k as u32 == next).count()..];
        }
    }
}

fn check_block_size(nrows: usize, ncols: usize, k: usize) -> Result<()> {
    let why = if !(1..=LARGEST).contains(&k) {
        format!("{k} is not between 1 and {LARGEST}")
    } else if !nrows.is_multiple_of(k) || !ncols.is_multiple_of(k) {
        format!("blocks of {k} rows and columns do not divide a {nrows} × {ncols} matrix; use compressed rows")
    } else {
        return Ok(());
    };
    Err(Error::InvalidStructure { what: "block size", why })
}

impl<T: Scalar> LinearOperator<T> for Bcsr<T> {
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

impl<T: Scalar> Matrix<T> for Bcsr<T> {
    /// All places of the blocks.
    fn nnz(&self) -> usize {
        self.values.len()
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.row_ptr) + size_of_val(&*self.col_idx) + size_of_val(&*self.values)
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        let k = self.block_size;
        for row in 0..self.nrows {
            let (cols, values) = self.block_row(row / k);
            for (&j, block) in cols.iter().zip(values.chunks_exact(k * k)) {
                for column in 0..k {
                    visit(row, j as usize * k + column, block[column * k + row % k]);
                }
            }
        }
    }
}

impl<T: Scalar> RowProduct<T> for Bcsr<T> {
    #[inline(never)]
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        match self.block_size {
            1 => self.rows_of::<1>(op, first, alpha, x, beta, y),
            2 => self.rows_of::<2>(op, first, alpha, x, beta, y),
            3 => self.rows_of::<3>(op, first, alpha, x, beta, y),
            4 => self.rows_of::<4>(op, first, alpha, x, beta, y),
            5 => self.rows_of::<5>(op, first, alpha, x, beta, y),
            _ => self.rows_of::<LARGEST>(op, first, alpha, x, beta, y),
        }
    }

    /// Between blocks.
    fn cut(&self, row: usize) -> usize {
        row.next_multiple_of(self.block_size)
    }

    fn is_local(&self, op: Op) -> bool {
        op == Op::Identity
    }

    fn rows_many(&self, op: Op, first: usize, alpha: T, x: MatRef<'_, T>, beta: T, mut y: MatMut<'_, T>) {
        if op == Op::Identity {
            return tile_rows_many(self, tile_rows(self), op, first, alpha, x, beta, y);
        }
        for q in 0..x.ncols() {
            self.rows(op, first, alpha, column(x, q), beta, column_mut(&mut y, q));
        }
    }
}

impl<T: Scalar> Bcsr<T> {
    /// [`RowProduct::rows`] for K = k.
    fn rows_of<const K: usize>(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        if op != Op::Identity {
            scale(beta, y);
            return self.scatter::<K>(op, first / K, alpha, x.as_chunks::<K>().0, y.as_chunks_mut::<K>().0);
        }
        let (x, y) = (x.as_chunks::<K>().0, y.as_chunks_mut::<K>().0);
        bt_simd::dispatch_short(
            #[inline(always)]
            move || {
                // Taken over: a closure that could be called twice would not be inlined.
                let y = y;
                for (i, y) in (first / K..).zip(y) {
                    let (cols, values) = self.block_row(i);
                    let mut sums = [zero::<T>(); K];
                    for (&j, block) in cols.iter().zip(values.chunks_exact(K * K)) {
                        for (column, &x) in block.chunks_exact(K).zip(&x[j as usize]) {
                            sums.iter_mut().zip(column).for_each(|(s, &v)| *s += v * x);
                        }
                    }
                    finish(alpha, &sums, beta, y);
                }
            },
        );
    }

    /// y ← y + α·(op(A)·x)[first..], blocks from `first` on, from all block rows of A, which is transposed by op.
    fn scatter<const K: usize>(&self, op: Op, first: usize, alpha: T, x: &[[T; K]], y: &mut [[T; K]]) {
        let last = first + y.len();
        for (i, x) in x.iter().enumerate() {
            let (cols, values) = self.block_row(i);
            let start = cols.partition_point(|&j| (j as usize) < first);
            let end = start + cols[start..].partition_point(|&j| (j as usize) < last);
            let ax = x.map(|x| alpha * x);
            for (&j, block) in cols[start..end].iter().zip(values[start * K * K..].chunks_exact(K * K)) {
                for (y, column) in y[j as usize - first].iter_mut().zip(block.chunks_exact(K)) {
                    column.iter().zip(ax).for_each(|(&v, ax)| *y += conj_if(op, v) * ax);
                }
            }
        }
    }
}
