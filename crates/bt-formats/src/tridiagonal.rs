//! Scalar tridiagonal matrices as three arrays.

use std::ops::Range;
use std::sync::Arc;

use faer::{MatMut, MatRef};

use crate::convert::{nonzeros, try_zeros};
use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, Op, Par, zero};
use crate::products::{RowProduct, conj_if, product, product_many};
use crate::run::Run;
use crate::scalar::Scalar;

/// A tridiagonal matrix in the layout of LAPACK's `gt` routines, padded to equal lengths:
///
/// ```text
/// [ d0 u0       ]      lower = · l1 l2      (lower[0] is 0)
/// [ l1 d1 u1    ]      diag  = d0 d1 d2
/// [    l2 d2    ]      upper = u0 u1 ·      (upper[n-1] is 0)
/// ```
///
/// Row i reads `lower[i]·x[i-1] + diag[i]·x[i] + upper[i]·x[i+1]`. 3n values, which clones share until one is written to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tridiagonal<T> {
    lower: Arc<Vec<T>>,
    diag: Arc<Vec<T>>,
    upper: Arc<Vec<T>>,
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
        let [lower, diag, upper] = [lower, diag, upper].map(Arc::new);
        Ok(Self { lower, diag, upper })
    }

    /// The zero matrix.
    #[inline(never)]
    pub(crate) fn zeros(n: usize) -> Result<Self> {
        let zeros = || try_zeros(n, "three diagonals").map(Arc::new);
        Ok(Self { lower: zeros()?, diag: zeros()?, upper: zeros()? })
    }

    /// From a sparse matrix.
    ///
    /// # Errors
    /// [`Error::NotSquare`], or [`Error::OutsideStructure`] naming the first non-zero beyond the three diagonals.
    #[inline(never)]
    pub fn from_csr(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let n = a.nrows();
        let mut t = Self::zeros(n)?;
        let [lower, diag, upper] = t.parts_mut();
        for i in 0..n {
            let (cols, vals) = a.row(i);
            for (&j, &v) in cols.iter().zip(vals) {
                match j as isize - i as isize {
                    -1 => lower[i] = v,
                    0 => diag[i] = v,
                    1 => upper[i] = v,
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

    /// The non-zeros by rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 32-bit pointers.
    pub fn to_csr(&self) -> Result<Csr<T>> {
        nonzeros(self)
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
        [&mut self.lower, &mut self.diag, &mut self.upper].map(|part| Arc::make_mut(part).as_mut_slice())
    }
    /// The three arrays (lower, diagonal, upper).
    pub fn into_parts(self) -> (Vec<T>, Vec<T>, Vec<T>) {
        [self.lower, self.diag, self.upper].map(Arc::unwrap_or_clone).into()
    }

    /// Some rows.
    pub(crate) fn run_of(&self, rows: Range<usize>) -> Run<'_, T> {
        Run::Tridiagonal { rows, diagonals: [self.lower(), self.diag(), self.upper()] }
    }
}

/// Rows, some at a time: the sums of so many stay in a cache while diagonal after diagonal is added.
pub(crate) fn groups_of(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    const ROWS: usize = 512;
    let end = rows.end;
    rows.step_by(ROWS).map(move |first| first..(first + ROWS).min(end))
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
        3 * size_of_val(self.diag())
    }
    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        product(self, op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>, par: Par) {
        product_many(self, op, alpha, x, beta, y, par);
    }
    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        Some(Box::new(groups_of(rows).map(move |rows| self.run_of(rows))))
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

impl<T: Scalar> RowProduct<T> for Tridiagonal<T> {
    /// One pass over the three diagonals: 5·s bytes a row for values of s bytes, y written once.
    #[inline(never)]
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        let (lower, diag, upper) = (self.lower(), self.diag(), self.upper());
        // Row i of Aᵀ reads upper[i−1], diag[i], lower[i+1].
        let (left, shift_left, right, shift_right) = match op {
            Op::Identity => (lower, 0, upper, 0),
            Op::Transpose | Op::Adjoint => (upper, 1, lower, 1),
        };
        let n = diag.len();
        let sum = |l: T, xl: T, d: T, x: T, r: T, xr: T| conj_if(op, l) * xl + conj_if(op, d) * x + conj_if(op, r) * xr;
        let store = |sum: T, y: &mut T| *y = if beta == zero() { alpha * sum } else { alpha * sum + beta * *y };
        let end = first + y.len();
        // Rows 0 and n − 1 lack a neighbour; all others go as one stream.
        let edge = |i: usize, y: &mut T| {
            let (l, xl) = if i > 0 { (left[i - shift_left], x[i - 1]) } else { (zero(), zero()) };
            let (r, xr) = if i + 1 < n { (right[i + shift_right], x[i + 1]) } else { (zero(), zero()) };
            store(sum(l, xl, diag[i], x[i], r, xr), y);
        };
        let (start, stop) = (first.max(1).min(end), end.min(n.saturating_sub(1)).max(first));
        bt_simd::dispatch(bt_simd::Loops(
            #[inline(always)]
            || {
                if start < stop {
                    let left = &left[start - shift_left..stop - shift_left];
                    let right = &right[start + shift_right..stop + shift_right];
                    let (xl, xc, xr) = (&x[start - 1..stop - 1], &x[start..stop], &x[start + 1..=stop]);
                    let (diag, y) = (&diag[start..stop], &mut y[start - first..stop - first]);
                    for i in 0..y.len() {
                        store(sum(left[i], xl[i], diag[i], xc[i], right[i], xr[i]), &mut y[i]);
                    }
                }
            },
        ));
        if first == 0 && end > 0 {
            edge(0, &mut y[0]);
        }
        if end == n && n > 1 && first < end {
            edge(n - 1, &mut y[n - 1 - first]);
        }
    }
}
