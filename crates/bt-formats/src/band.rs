//! Band matrices in LAPACK's GB layout, with room for the fill of partial pivoting.

use std::ops::Range;
use std::sync::Arc;

use faer::{MatMut, MatRef};

use crate::convert::{nonzeros, try_room, try_zeros};
use crate::coo::check_shape;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::products::{RowProduct, dot, product, product_many, scale};
use crate::run::Run;
use crate::scalar::Scalar;
use crate::scatter::{Entries, Place, ROWS, is_large, write_columns};

/// An n × n matrix with `kl` sub-diagonals and `ku` super-diagonals.
///
/// Column j occupies `ldab = 2·kl + ku + 1` consecutive values; A(i, j) stands at `[j·ldab + kl + ku + i − j]`.
/// The first `kl` values of a column are room for the fill of row interchanges and hold zeros:
///
/// ```text
/// kl = 1, ku = 1, n = 4          fill   *   *   +   +
/// [ 11 12       ]                ku     *  12  23  34
/// [ 21 22 23    ]                diag  11  22  33  44
/// [    32 33 34 ]                kl    21  32  43   *
/// [       43 44 ]
/// ```
///
/// Clones share the values until one is written to.
#[derive(Clone, Debug, PartialEq)]
pub struct Band<T> {
    n: usize,
    kl: usize,
    ku: usize,
    values: Arc<Vec<T>>,
}

/// What rows of `a` have in these columns, R rows at a time; `place` is that of the diagonal.
fn write_rows<T: Scalar, const R: usize>(
    a: &Csr<T>,
    place: Place,
    (kl, ku): (usize, usize),
    columns: &Range<usize>,
    to: &mut [T],
) -> Result<()> {
    let last = (columns.end + kl).min(a.nrows());
    for first in (columns.start.saturating_sub(ku)..last).step_by(R) {
        let mut rows = [Entries::default(); R];
        for (i, row) in (first..last).zip(&mut rows) {
            *row = within(inside(a.row(i), i, (kl, ku))?, columns);
        }
        write_columns(to, Place { first: place.first + first - columns.start, ..place }, &mut rows);
    }
    Ok(())
}

/// The entries of a row in these columns.
#[inline(always)]
fn within<'a, T>((cols, values): Entries<'a, T>, columns: &Range<usize>) -> Entries<'a, T> {
    let is_in = |col: Option<&u32>| col.is_none_or(|&c| columns.contains(&(c as usize)));
    if is_in(cols.first()) && is_in(cols.last()) {
        return (cols, values);
    }
    let [from, end] = [columns.start, columns.end].map(|c| cols.partition_point(|&col| (col as usize) < c));
    (&cols[from..end], &values[from..end])
}

/// The part of row i that lies in the band; outside there may be zeros only.
#[inline(always)]
fn inside<T: Scalar>(row: Entries<'_, T>, i: usize, (kl, ku): (usize, usize)) -> Result<Entries<'_, T>> {
    let (cols, values) = row;
    let (lowest, highest) = (i.saturating_sub(kl), i + ku);
    if cols.first().is_none_or(|&c| c as usize >= lowest) && cols.last().is_none_or(|&c| c as usize <= highest) {
        return Ok(row);
    }
    let from = cols.partition_point(|&c| (c as usize) < lowest);
    let end = cols.partition_point(|&c| c as usize <= highest);
    let outside = (0..from).chain(end..cols.len()).find(|&k| values[k] != zero());
    match outside {
        None => Ok((&cols[from..end], &values[from..end])),
        Some(k) => {
            let why = format!("lies outside the band of {kl} sub- and {ku} super-diagonals");
            Err(Error::OutsideStructure { row: i, col: cols[k] as usize, why })
        }
    }
}

impl<T: Scalar> Band<T> {
    /// The zero matrix of the given size and bandwidths.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] when the storage cannot be had.
    pub fn zeros(n: usize, kl: usize, ku: usize) -> Result<Self> {
        check_shape(n, n)?;
        let ldab = kl.saturating_mul(2).saturating_add(ku).saturating_add(1);
        let values = Arc::new(try_zeros(n.saturating_mul(ldab), "band storage")?);
        Ok(Self { n, kl, ku, values })
    }

    /// From LAPACK's band storage without room for fill, in any strides: `ab` is (kl + ku + 1) × n with A(i, j) at
    /// (ku + i − j, j). The corners outside the matrix are not read.
    ///
    /// ```
    /// use bt_formats::Band;
    /// // [ 4 1   ]
    /// // [ 2 5 1 ]
    /// // [   2 6 ]
    /// let ab = faer::mat![[f64::NAN, 1.0, 1.0], [4.0, 5.0, 6.0], [2.0, 2.0, f64::NAN]];
    /// let a = Band::from_lapack(1, 1, ab.as_ref())?;
    /// assert_eq!((a.get(0, 1), a.get(2, 1), a.get(2, 2), a.get(0, 2)), (1.0, 2.0, 6.0, 0.0));
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::DimensionMismatch`] when `ab` has another number of rows; [`crate::Error::TooLarge`] when the storage
    /// cannot be had.
    pub fn from_lapack(kl: usize, ku: usize, ab: MatRef<'_, T>) -> Result<Self> {
        /// Columns that are put together in a cache: diagonals may lie far apart in `ab`.
        const TILE: usize = 64;
        let (rows, n) = (kl.saturating_add(ku).saturating_add(1), ab.ncols());
        if ab.nrows() != rows {
            let what = "rows of the band storage";
            return Err(Error::DimensionMismatch { what, expected: rows, found: ab.nrows() });
        }
        check_shape(n, n)?;
        let ldab = rows.saturating_add(kl);
        let mut values = try_room(n.saturating_mul(ldab), "band storage")?;
        let mut tile = try_zeros(TILE.min(n).saturating_mul(ldab), "band storage")?;
        for first in (0..n).step_by(TILE) {
            let end = (first + TILE).min(n);
            for r in 0..rows {
                // Row i = j + r − ku of the matrix, 0 ≤ i < n.
                let start = ku.saturating_sub(r).clamp(first, end);
                let inside = start..(n + ku).saturating_sub(r).clamp(start, end);
                let at = |j: usize| (j - first) * ldab + kl + r;
                (first..inside.start).chain(inside.end..end).for_each(|j| tile[at(j)] = zero());
                let diagonal = ab.row(r);
                match diagonal.try_as_row_major() {
                    Some(line) => inside.clone().zip(&line.as_slice()[inside]).for_each(|(j, &v)| tile[at(j)] = v),
                    None => inside.for_each(|j| tile[at(j)] = diagonal[j]),
                }
            }
            values.extend_from_slice(&tile[..(end - first) * ldab]);
        }
        Ok(Self { n, kl, ku, values: Arc::new(values) })
    }

    /// From a sparse matrix, with exactly the bandwidths its pattern has.
    ///
    /// # Errors
    /// [`crate::Error::NotSquare`]; [`crate::Error::TooLarge`] when the band does not fit memory.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let (mut kl, mut ku) = a.survey().bandwidth;
        if a.survey().zeros > 0 {
            for i in 0..a.nrows() {
                // Columns increase.
                let cols = a.row(i).0;
                if let (Some(&first), Some(&last)) = (cols.first(), cols.last()) {
                    kl = kl.max(i.saturating_sub(first as usize));
                    ku = ku.max((last as usize).saturating_sub(i));
                }
            }
        }
        let mut band = Self::zeros(a.nrows(), kl, ku)?;
        Self::write_columns(a, (kl, ku), kl, 0..a.nrows(), band.values_mut())?;
        Ok(band)
    }

    /// Some columns of `a` as a band of kl sub- and ku super-diagonals stores them, each with `room` numbers before it, into zeros:
    /// room + kl + ku + 1 numbers a column.
    ///
    /// ```
    /// use bt_formats::{Band, Csr};
    /// let a = Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, 1, 1, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    /// let mut columns = [0.0; 2 * 3];
    /// Band::write_columns(&a, (0, 1), 1, 1..3, &mut columns)?;
    /// assert_eq!(columns, [0.0, 2.0, 3.0, 0.0, 0.0, 4.0]);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::OutsideStructure`] names an entry of a row with one of the columns, not zero, outside of the band.
    ///
    /// # Panics
    /// When `columns` are not in `a`, or `to` has another length.
    pub fn write_columns(
        a: &Csr<T>,
        (kl, ku): (usize, usize),
        room: usize,
        columns: Range<usize>,
        to: &mut [T],
    ) -> Result<()> {
        let stride = room + kl + ku;
        assert!(
            columns.end <= a.ncols() && to.len() == columns.len() * (stride + 1),
            "columns there are, and their place"
        );
        let place = Place { first: room + ku, before: columns.start, stride };
        if is_large(stride) {
            write_rows::<T, ROWS>(a, place, (kl, ku), &columns, to)
        } else {
            write_rows::<T, 1>(a, place, (kl, ku), &columns, to)
        }
    }

    /// The non-zeros by rows.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] beyond 32-bit pointers.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        nonzeros(self)
    }

    /// Size n.
    pub fn n(&self) -> usize {
        self.n
    }
    /// Sub-diagonals.
    pub fn kl(&self) -> usize {
        self.kl
    }
    /// Super-diagonals.
    pub fn ku(&self) -> usize {
        self.ku
    }
    /// Values of one column, `2·kl + ku + 1`.
    pub fn ldab(&self) -> usize {
        2 * self.kl + self.ku + 1
    }
    /// The storage, column after column.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// The storage, for overwriting.
    pub fn values_mut(&mut self) -> &mut [T] {
        Arc::make_mut(&mut self.values).as_mut_slice()
    }
    /// The storage, taken.
    pub fn into_values(self) -> Vec<T> {
        Arc::unwrap_or_clone(self.values)
    }
    /// Entry (i, j); zero outside the band.
    pub fn get(&self, i: usize, j: usize) -> T {
        if i > j + self.kl || j > i + self.ku {
            zero()
        } else {
            self.values[j * self.ldab() + self.kl + self.ku + i - j]
        }
    }
    /// Entry (i, j) for writing.
    ///
    /// # Panics
    /// Outside the band.
    pub fn get_mut(&mut self, i: usize, j: usize) -> &mut T {
        assert!(i <= j + self.kl && j <= i + self.ku && i < self.n, "({i}, {j}) lies outside the band");
        let at = j * self.ldab() + self.kl + self.ku + i - j;
        &mut self.values_mut()[at]
    }
    /// Rows of column j inside the band, `start..end`.
    pub fn column_range(&self, j: usize) -> Range<usize> {
        j.saturating_sub(self.ku)..(j + self.kl + 1).min(self.n)
    }
}

impl<T: Scalar> LinearOperator<T> for Band<T> {
    fn nrows(&self) -> usize {
        self.n
    }
    fn ncols(&self) -> usize {
        self.n
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for Band<T> {
    fn nnz(&self) -> usize {
        (0..self.n).map(|j| self.column_range(j).len()).sum()
    }
    fn bytes(&self) -> usize {
        size_of_val(self.values())
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }
    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        let (n, kl, ku) = (self.n, self.kl, self.ku);
        Some(Box::new(std::iter::once(Run::Band { rows, n, kl, ku, values: &self.values })))
    }

    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for i in 0..self.n {
            for j in i.saturating_sub(self.kl)..(i + self.ku + 1).min(self.n) {
                visit(i, j, self.get(i, j));
            }
        }
    }
}

impl<T: Scalar> RowProduct<T> for Band<T> {
    #[inline(never)]
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        let end = first + y.len();
        // Column j inside the band, restricted to `rows`.
        let column = |j: usize, rows: &Range<usize>| {
            let start = j * self.ldab() + self.kl + self.ku + rows.start - j;
            &self.values[start..start + rows.len()]
        };
        bt_simd::dispatch(
            #[inline(always)]
            || {
                scale(beta, y);
                if op == Op::Identity {
                    // y ← y + (α·xⱼ)·aⱼ, the columns in order.
                    for j in first.saturating_sub(self.kl)..(end + self.ku).min(self.n) {
                        let rows = self.column_range(j);
                        let rows = rows.start.max(first)..rows.end.min(end);
                        let ax = alpha * x[j];
                        let y = &mut y[rows.start - first..rows.end - first];
                        for (y, &v) in y.iter_mut().zip(column(j, &rows)) {
                            *y += v * ax;
                        }
                    }
                } else {
                    for (j, y) in (first..).zip(y) {
                        let rows = self.column_range(j);
                        *y += alpha * dot(op, column(j, &rows), &x[rows]);
                    }
                }
            },
        );
    }
}
