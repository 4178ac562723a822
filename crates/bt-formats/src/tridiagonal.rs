//! Scalar tridiagonal matrices as three arrays.

use crate::convert::try_zeros;
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::scalar::Scalar;

/// A tridiagonal matrix in the layout of LAPACK's `gt` routines, padded to equal lengths:
///
/// ```text
/// [ d0 u0       ]      lower = · l1 l2      (lower[0] is 0)
/// [ l1 d1 u1    ]      diag  = d0 d1 d2
/// [    l2 d2    ]      upper = u0 u1 ·      (upper[n-1] is 0)
/// ```
///
/// Row i reads `lower[i]·x[i-1] + diag[i]·x[i] + upper[i]·x[i+1]`. 3n values.
#[derive(Clone, Debug, PartialEq)]
pub struct Tridiagonal<T> {
    lower: Vec<T>,
    diag: Vec<T>,
    upper: Vec<T>,
}

impl<T: Scalar> Tridiagonal<T> {
    /// From three arrays of length n; `lower[0]` and `upper[n-1]` must be zero.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] on unequal lengths, [`Error::InvalidStructure`] on nonzero padding.
    pub fn new(lower: Vec<T>, diag: Vec<T>, upper: Vec<T>) -> Result<Self> {
        for (what, len) in [("lower diagonal", lower.len()), ("upper diagonal", upper.len())] {
            if len != diag.len() {
                return Err(Error::DimensionMismatch { what, expected: diag.len(), found: len });
            }
        }
        if lower.first().is_some_and(|v| *v != zero()) || upper.last().is_some_and(|v| *v != zero()) {
            return Err(Error::InvalidStructure {
                what: "tridiagonal padding",
                why: "lower[0] and upper[n-1] lie outside the matrix and must be zero".into(),
            });
        }
        Ok(Self { lower, diag, upper })
    }

    /// The zero matrix.
    pub(crate) fn zeros(n: usize) -> Result<Self> {
        let zeros = || try_zeros(n, "three diagonals");
        Ok(Self { lower: zeros()?, diag: zeros()?, upper: zeros()? })
    }

    /// From a sparse matrix.
    ///
    /// # Errors
    /// [`Error::NotSquare`], or [`Error::OutsideStructure`] naming the first non-zero beyond the three diagonals.
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let n = a.nrows();
        let mut t = Self::zeros(n)?;
        for i in 0..n {
            let (cols, vals) = a.row(i);
            for (&j, &v) in cols.iter().zip(vals) {
                match j as isize - i as isize {
                    -1 => t.lower[i] = v,
                    0 => t.diag[i] = v,
                    1 => t.upper[i] = v,
                    _ if v == zero() => {}
                    _ => {
                        return Err(Error::OutsideStructure {
                            row: i,
                            col: j as usize,
                            why: "lies outside the three diagonals".into(),
                        });
                    }
                }
            }
        }
        Ok(t)
    }

    /// Sub-diagonal, `lower[0] = 0`.
    pub fn lower(&self) -> &[T] {
        &self.lower
    }
    /// Diagonal.
    pub fn diag(&self) -> &[T] {
        &self.diag
    }
    /// Super-diagonal, `upper[n-1] = 0`.
    pub fn upper(&self) -> &[T] {
        &self.upper
    }
    /// The three arrays (lower, diagonal, upper) for writing; the padding must stay zero.
    pub(crate) fn parts_mut(&mut self) -> [&mut [T]; 3] {
        [&mut self.lower, &mut self.diag, &mut self.upper]
    }
    /// The three arrays (lower, diagonal, upper).
    pub fn into_parts(self) -> (Vec<T>, Vec<T>, Vec<T>) {
        (self.lower, self.diag, self.upper)
    }
}

impl<T: Scalar> LinearOperator<T> for Tridiagonal<T> {
    fn nrows(&self) -> usize {
        self.diag.len()
    }
    fn ncols(&self) -> usize {
        self.diag.len()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for Tridiagonal<T> {
    fn nnz(&self) -> usize {
        (3 * self.diag.len()).saturating_sub(2)
    }
    fn bytes(&self) -> usize {
        3 * size_of_val(&*self.diag)
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], _par: Par) {
        let n = self.diag.len();
        assert_eq!((x.len(), y.len()), (n, n), "lengths of x and y");
        for i in 0..n {
            let mut sum = match op {
                Op::Identity | Op::Transpose => self.diag[i] * x[i],
                Op::Adjoint => Scalar::conj(self.diag[i]) * x[i],
            };
            if i > 0 {
                sum += x[i - 1]
                    * match op {
                        Op::Identity => self.lower[i],
                        Op::Transpose => self.upper[i - 1],
                        Op::Adjoint => Scalar::conj(self.upper[i - 1]),
                    };
            }
            if i + 1 < n {
                sum += x[i + 1]
                    * match op {
                        Op::Identity => self.upper[i],
                        Op::Transpose => self.lower[i + 1],
                        Op::Adjoint => Scalar::conj(self.lower[i + 1]),
                    };
            }
            y[i] = if beta == zero() { alpha * sum } else { alpha * sum + beta * y[i] };
        }
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        let n = self.diag.len();
        for i in 0..n {
            if i > 0 {
                visit(i, i - 1, self.lower[i]);
            }
            visit(i, i, self.diag[i]);
            if i + 1 < n {
                visit(i, i + 1, self.upper[i]);
            }
        }
    }
}
