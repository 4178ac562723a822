//! Tridiagonal matrices with two corners.

use std::ops::Range;

use bt_formats::{Csr, Error, LinearOperator, Matrix, Op, Par, Run, Scalar, Tridiagonal, zero};

use crate::error::Result;

/// A tridiagonal matrix with two corners, `upper_corner` at (0, n−1) and `lower_corner` at (n−1, 0):
///
/// ```text
/// [ d0 u0 .  c ]     c = upper_corner
/// [ l1 d1 u1 . ]
/// [ .  l2 d2 u2]
/// [ c' .  l3 d3]     c' = lower_corner
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Cyclic<T> {
    tridiagonal: Tridiagonal<T>,
    lower_corner: T,
    upper_corner: T,
}

impl<T: Scalar> Cyclic<T> {
    /// From its parts. Below three rows the corners coincide with other entries and must be zero.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] on a nonzero corner of a matrix of fewer than three rows.
    pub fn new(tridiagonal: Tridiagonal<T>, lower_corner: T, upper_corner: T) -> Result<Self, Error> {
        if tridiagonal.diag().len() < 3 && (lower_corner != zero() || upper_corner != zero()) {
            return Err(Error::InvalidStructure {
                what: "corners of a periodic matrix",
                why: "below three rows they coincide with other entries and must be zero".into(),
            });
        }
        Ok(Self { tridiagonal, lower_corner, upper_corner })
    }

    /// From a sparse matrix.
    ///
    /// # Errors
    /// [`Error::NotSquare`], or [`Error::OutsideStructure`] naming the first non-zero beyond three diagonals and two corners.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>) -> Result<Self, Error> {
        a.check_square()?;
        let n = a.nrows();
        let corner = |i: usize, j: usize| n >= 3 && (i, j) != (j, i) && i.min(j) == 0 && i.max(j) == n - 1;
        let mut inner = a.clone();
        let (row_ptr, cols) = (a.row_ptr().to_vec(), a.col_idx().to_vec());
        let (mut lower, mut upper) = (zero(), zero());
        for i in 0..n {
            for at in row_ptr[i] as usize..row_ptr[i + 1] as usize {
                let j = cols[at] as usize;
                if corner(i, j) {
                    let v = std::mem::take(&mut inner.values_mut()[at]);
                    if i == 0 { upper = v } else { lower = v }
                }
            }
        }
        Self::new(Tridiagonal::from_csr(&inner)?, lower, upper)
    }

    /// The three diagonals.
    pub fn tridiagonal(&self) -> &Tridiagonal<T> {
        &self.tridiagonal
    }
    /// Entry (n−1, 0).
    pub fn lower_corner(&self) -> T {
        self.lower_corner
    }
    /// Entry (0, n−1).
    pub fn upper_corner(&self) -> T {
        self.upper_corner
    }
    fn has_corners(&self) -> bool {
        self.tridiagonal.diag().len() >= 3
    }
}

impl<T: Scalar> LinearOperator<T> for Cyclic<T> {
    fn nrows(&self) -> usize {
        self.tridiagonal.nrows()
    }
    fn ncols(&self) -> usize {
        self.tridiagonal.ncols()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for Cyclic<T> {
    fn nnz(&self) -> usize {
        self.tridiagonal.nnz() + if self.has_corners() { 2 } else { 0 }
    }
    fn bytes(&self) -> usize {
        self.tridiagonal.bytes() + 2 * size_of::<T>()
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        self.tridiagonal.apply_op(op, alpha, x, beta, y, par);
        if let (true, [first, .., last]) = (self.has_corners(), y) {
            let (upper, lower) = match op {
                Op::Identity => (self.upper_corner, self.lower_corner),
                Op::Transpose => (self.lower_corner, self.upper_corner),
                Op::Adjoint => (Scalar::conj(self.lower_corner), Scalar::conj(self.upper_corner)),
            };
            *first += alpha * (upper * x[x.len() - 1]);
            *last += alpha * (lower * x[0]);
        }
    }
    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        let n = self.tridiagonal.diag().len();
        let corners = [(0, n.saturating_sub(1), &self.upper_corner), (n.saturating_sub(1), 0, &self.lower_corner)];
        let inside = corners.map(|(row, column, value)| {
            let values = std::slice::from_ref(value);
            (self.has_corners() && rows.contains(&row)).then_some(Run::Diagonal { row, column, values })
        });
        Some(Box::new(self.tridiagonal.runs_of(rows)?.chain(inside.into_iter().flatten())))
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        let n = self.tridiagonal.diag().len();
        let corners = self.has_corners();
        let mut begun = false;
        self.tridiagonal.for_each_entry(&mut |i, j, v| {
            // The lower corner opens the last row, the upper one closes the first.
            if corners && i == n - 1 && !std::mem::replace(&mut begun, true) {
                visit(n - 1, 0, self.lower_corner);
            }
            visit(i, j, v);
            if corners && (i, j) == (0, 1) {
                visit(0, n - 1, self.upper_corner);
            }
        });
    }
}
