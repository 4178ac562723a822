//! Band matrices in LAPACK's GB layout, with room for the fill of partial pivoting.

use crate::coo::check_shape;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::scalar::Scalar;

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
#[derive(Clone, Debug, PartialEq)]
pub struct Band<T> {
    n: usize,
    kl: usize,
    ku: usize,
    values: Vec<T>,
}

impl<T: Scalar> Band<T> {
    /// The zero matrix of the given size and bandwidths.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the storage cannot be had.
    pub fn zeros(n: usize, kl: usize, ku: usize) -> Result<Self> {
        check_shape(n, n)?;
        let needed = (2 * kl + ku + 1).checked_mul(n);
        let mut values = Vec::new();
        match needed {
            Some(len) if values.try_reserve_exact(len).is_ok() => values.resize(len, zero()),
            _ => {
                return Err(Error::TooLarge {
                    what: "band storage",
                    needed: format!("({} + 1) · {n} values", 2 * kl + ku),
                    limit: "the memory there is".into(),
                });
            }
        }
        Ok(Self { n, kl, ku, values })
    }

    /// From a sparse matrix, with exactly the bandwidths its pattern has.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::TooLarge`] when the band does not fit memory.
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let (mut kl, mut ku) = (0, 0);
        a.for_each_entry(&mut |i, j, _| {
            kl = kl.max(i.saturating_sub(j));
            ku = ku.max(j.saturating_sub(i));
        });
        let mut band = Self::zeros(a.nrows(), kl, ku)?;
        a.for_each_entry(&mut |i, j, v| *band.get_mut(i, j) = v);
        Ok(band)
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
        &mut self.values
    }
    /// The storage, taken.
    pub fn into_values(self) -> Vec<T> {
        self.values
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
        &mut self.values[at]
    }
    /// Rows of column j inside the band, `start..end`.
    pub fn column_range(&self, j: usize) -> std::ops::Range<usize> {
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
        size_of_val(&*self.values)
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], _par: Par) {
        assert_eq!((x.len(), y.len()), (self.n, self.n), "lengths of x and y");
        if beta == zero() {
            y.fill(zero());
        } else {
            y.iter_mut().for_each(|v| *v *= beta);
        }
        for j in 0..self.n {
            let rows = self.column_range(j);
            let start = j * self.ldab() + self.kl + self.ku + rows.start - j;
            let column = &self.values[start..start + rows.len()];
            match op {
                Op::Identity => {
                    let ax = alpha * x[j];
                    for (yi, &v) in y[rows].iter_mut().zip(column) {
                        *yi += v * ax;
                    }
                }
                Op::Transpose => y[j] += alpha * column.iter().zip(&x[rows]).map(|(&v, &xi)| v * xi).sum::<T>(),
                Op::Adjoint => {
                    y[j] += alpha * column.iter().zip(&x[rows]).map(|(&v, &xi)| Scalar::conj(v) * xi).sum::<T>();
                }
            }
        }
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for i in 0..self.n {
            for j in i.saturating_sub(self.kl)..(i + self.ku + 1).min(self.n) {
                visit(i, j, self.get(i, j));
            }
        }
    }
}
