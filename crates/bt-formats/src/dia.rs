//! Diagonal storage: offsets and row-aligned values.
//!
//! Storage: 4·d + s·d·nrows bytes for d diagonals of values of s bytes.

use crate::convert::{nonzeros, try_zeros};
use crate::coo::check_shape;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::products::{RowProduct, diagonals_times, product, product_many};
use crate::scalar::Scalar;

/// An `nrows` × `ncols` matrix by diagonals.
///
/// Diagonal d holds A(i, i + offsets\[d\]) at `values[d·nrows + i]`: an nrows × d table by columns, each aligned by
/// rows. Places where a diagonal leaves the matrix are padding and hold zeros.
///
/// ```text
/// [ 6 0 2 ]     offsets = -1  0  2
/// [ 1 9 0 ]     row 0:     *  6  2
/// [ 0 5 4 ]     row 1:     1  9  *
///               row 2:     5  4  *
/// ```
///
/// ```
/// use bt_formats::{Csr, Dia, LinearOperator};
/// let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 2, 0, 1, 1, 2], vec![6., 2., 1., 9., 5., 4.])?;
/// let d = Dia::from_csr(&a)?;
/// assert_eq!(d.offsets(), [-1, 0, 2]);
/// assert_eq!(d.values(), [0., 1., 5., 6., 9., 4., 2., 0., 0.]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dia<T> {
    nrows: usize,
    ncols: usize,
    offsets: Vec<i32>,
    values: Vec<T>,
}

impl<T: Scalar> Dia<T> {
    /// From increasing offsets and values; padding must be zero.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] on offsets that do not increase or lie outside the matrix, or on nonzero padding;
    /// [`Error::DimensionMismatch`] on a wrong number of values; [`Error::TooLarge`] beyond 31-bit sizes.
    pub fn new(nrows: usize, ncols: usize, offsets: Vec<i32>, values: Vec<T>) -> Result<Self> {
        check_dia_shape(nrows, ncols)?;
        let outside = |o: i32| i64::from(o) <= -(nrows as i64) || i64::from(o) >= ncols as i64;
        if let Some(&o) = offsets.iter().find(|&&o| outside(o)) {
            let why = format!("diagonal {o} does not meet a {nrows} × {ncols} matrix");
            return Err(Error::InvalidStructure { what: "offsets", why });
        }
        if let Some(k) = offsets.windows(2).position(|w| w[0] >= w[1]) {
            let why = format!("{} follows {}; they must increase", offsets[k + 1], offsets[k]);
            return Err(Error::InvalidStructure { what: "offsets", why });
        }
        if Some(values.len()) != nrows.checked_mul(offsets.len()) {
            let expected = nrows.saturating_mul(offsets.len());
            return Err(Error::DimensionMismatch { what: "values of the diagonals", expected, found: values.len() });
        }
        let out = Self { nrows, ncols, offsets, values };
        for (d, &o) in out.offsets.iter().enumerate() {
            let inside = out.row_range(o);
            let padding = |i: &usize| !inside.contains(i) && out.values[d * nrows + i] != zero();
            if let Some(i) = (0..nrows).find(padding) {
                let why = format!("diagonal {o} leaves the matrix at row {i} and must be zero there");
                return Err(Error::InvalidStructure { what: "padding", why });
            }
        }
        Ok(out)
    }

    /// Of a matrix whose products are faster by diagonals than by compressed rows: the entries fill at least seven eighths of
    /// the diagonals that they meet, as in finite differences on a regular grid. Worth its making from some ten products on.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the memory cannot be had.
    ///
    /// # Cost
    /// O(nnz + nrows + ncols), and as much again for the values.
    ///
    /// ```
    /// use bt_formats::{Csr, Dia};
    /// let a = Csr::<f64>::from_dense(faer::Mat::identity(9, 9).as_ref())?;
    /// assert!(Dia::where_full(&a)?.is_some());
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    #[inline(never)]
    pub fn where_full(a: &Csr<T>) -> Result<Option<Self>> {
        let (nrows, ncols) = (a.nrows(), a.ncols());
        let mut met = vec![false; (nrows + ncols).saturating_sub(1)];
        let mut count = 0usize;
        for i in 0..nrows {
            for &j in a.row(i).0 {
                count += usize::from(!std::mem::replace(&mut met[nrows - 1 + j as usize - i], true));
            }
            if count.saturating_mul(7 * nrows) > a.nnz().saturating_mul(8) {
                return Ok(None);
            }
        }
        Self::from_csr(a).map(Some)
    }

    /// From a sparse matrix, with the diagonals its pattern meets.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the diagonals do not fit memory, which scattered entries soon bring about.
    ///
    /// # Cost
    /// O(nnz + values stored).
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        let (nrows, ncols) = (a.nrows(), a.ncols());
        check_dia_shape(nrows, ncols)?;
        // place[nrows − 1 + offset]: first whether the diagonal is met, then its number.
        let mut place = vec![u32::MAX; (nrows + ncols).saturating_sub(1)];
        a.for_each_entry(&mut |i, j, _| place[nrows - 1 + j - i] = 0);
        let mut offsets = Vec::new();
        for (k, p) in place.iter_mut().enumerate().filter(|(_, p)| **p == 0) {
            *p = offsets.len() as u32;
            offsets.push((k as i64 - (nrows as i64 - 1)) as i32);
        }
        let mut values = try_zeros(nrows.saturating_mul(offsets.len()), "diagonal storage")?;
        a.for_each_entry(&mut |i, j, v| values[place[nrows - 1 + j - i] as usize * nrows + i] = v);
        Ok(Self { nrows, ncols, offsets, values })
    }

    /// The non-zeros by rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit pointers.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        nonzeros(self)
    }

    /// Offsets j − i of the diagonals, increasing.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }
    /// Values, diagonal after diagonal, `nrows` of each.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Rows in which the diagonal `offset` lies inside the matrix.
    fn row_range(&self, offset: i32) -> std::ops::Range<usize> {
        let o = i64::from(offset);
        let start = (-o).max(0);
        start as usize..(self.ncols as i64 - o).clamp(start, self.nrows as i64) as usize
    }
}

fn check_dia_shape(nrows: usize, ncols: usize) -> Result<()> {
    check_shape(nrows, ncols)?;
    if nrows.max(ncols) > i32::MAX as usize {
        return Err(Error::TooLarge {
            what: "diagonal storage",
            needed: format!("{nrows} × {ncols} rows and columns"),
            limit: format!("the {} of signed 32-bit offsets", i32::MAX),
        });
    }
    Ok(())
}

impl<T: Scalar> LinearOperator<T> for Dia<T> {
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

impl<T: Scalar> Matrix<T> for Dia<T> {
    fn nnz(&self) -> usize {
        self.offsets.iter().map(|&o| self.row_range(o).len()).sum()
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.offsets) + size_of_val(&*self.values)
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: T, x: faer::MatRef<'_, T>, beta: T, y: faer::MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for i in 0..self.nrows {
            for (d, &o) in self.offsets.iter().enumerate() {
                let j = i as i64 + i64::from(o);
                if (0..self.ncols as i64).contains(&j) {
                    visit(i, j as usize, self.values[d * self.nrows + i]);
                }
            }
        }
    }
}

impl<T: Scalar> RowProduct<T> for Dia<T> {
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        let offsets = self.offsets.iter().map(|&o| o as isize);
        diagonals_times(op, self.nrows, &self.values, &offsets, first, alpha, x, beta, y);
    }
}
