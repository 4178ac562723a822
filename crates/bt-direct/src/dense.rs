//! Dense matrices as the other files see them: a view that has products and norms, and the measures taken before a
//! factorization.
//!
//! The measures are one pass over A: largest column sum of moduli, largest modulus, and whether every entry is finite.
//! Columns are measured in groups of fixed size, so that the result has the same bits for any number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bt_formats::{Error, LinearOperator, Matrix, Op, Par, RealScalar, Run, Scalar, zero};
use faer::{Accum, Conj, MatMut, MatRef};

use crate::columns::check_size;
use crate::error::{FactorError, Result};
use crate::lines;

/// Columns measured, and rows multiplied, by one task.
const GROUP: usize = 64;
/// Partial sums of a column: enough registers to hide the latency of an addition.
const WIDE: usize = 32;

/// A dense matrix, borrowed: what [`refine`](crate::refine()) and certificates need to know of it.
///
/// ```
/// use bt_direct::{DenseMatrix, Factorization, Rbt, Refinement, refine};
/// use bt_formats::Op;
/// use faer::mat;
/// let a = mat![[0.0, 2.0], [1.0, 0.0]];
/// let b = mat![[6.0], [5.0]];
/// let f = Rbt::new(a.as_ref())?;
/// let mut x = b.clone();
/// f.solve_in_place(x.as_mut());
/// let done = refine(&DenseMatrix::new(a.as_ref()), &f, Op::Identity, b.as_ref(), &mut x, Refinement::Auto);
/// assert!(done.certificate.backward_error < 1e-15);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DenseMatrix<'a, T> {
    a: MatRef<'a, T>,
}

impl<'a, T: Scalar> DenseMatrix<'a, T> {
    /// A view of `a`.
    pub fn new(a: MatRef<'a, T>) -> Self {
        Self { a }
    }

    /// The matrix.
    pub fn as_mat(&self) -> MatRef<'a, T> {
        self.a
    }

    /// Some rows, a column after the other, where columns lie in one piece.
    pub fn runs(self, rows: Range<usize>) -> Option<impl Iterator<Item = Run<'a, T>>> {
        let Self { a } = self;
        let (row, count) = (rows.start, rows.len());
        (a.row_stride() == 1).then(|| {
            a.col_iter().enumerate().map(move |(column, values)| {
                let values = values.try_as_col_major().expect("a row stride of one").as_slice();
                Run::Columns { row, rows: count, column, stride: count, values: &values[rows.clone()] }
            })
        })
    }
}

impl<T: Scalar> LinearOperator<T> for DenseMatrix<'_, T> {
    fn nrows(&self) -> usize {
        self.a.nrows()
    }
    fn ncols(&self) -> usize {
        self.a.ncols()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(self.bytes()));
    }
}

impl<T: Scalar> Matrix<T> for DenseMatrix<'_, T> {
    fn nnz(&self) -> usize {
        self.a.nrows() * self.a.ncols()
    }

    fn bytes(&self) -> usize {
        self.nnz() * size_of::<T>()
    }

    fn apply_op(&self, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
        let (nrows, ncols) = op.shape(self.a.nrows(), self.a.ncols());
        assert_eq!((x.len(), y.len()), (ncols, nrows), "lengths of x and y");
        if beta == zero() {
            y.fill(zero());
        } else {
            for v in y.iter_mut() {
                *v *= beta;
            }
        }
        let x = MatRef::from_column_major_slice(x, ncols, 1);
        product(self.a, op, alpha, x, MatMut::from_column_major_slice_mut(y, nrows, 1), par);
    }

    fn runs_of(&self, rows: Range<usize>) -> Option<Box<dyn Iterator<Item = Run<'_, T>> + '_>> {
        Some(Box::new(self.runs(rows)?))
    }

    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, T)) {
        for i in 0..self.a.nrows() {
            for j in 0..self.a.ncols() {
                visit(i, j, self.a[(i, j)]);
            }
        }
    }
}

/// y ← y + α·op(A)·x by groups of rows of y.
#[inline(never)]
pub(crate) fn product<T: Scalar>(a: MatRef<'_, T>, op: Op, alpha: T, x: MatRef<'_, T>, y: MatMut<'_, T>, par: Par) {
    let n = y.nrows();
    if n > 4 * GROUP {
        let half = (n / 2).next_multiple_of(GROUP);
        let (top, bottom) = y.split_at_row_mut(half);
        let (a0, a1) = if op == Op::Identity { a.split_at_row(half) } else { a.split_at_col(half) };
        join(par, || product(a0, op, alpha, x, top, par), || product(a1, op, alpha, x, bottom, par));
        return;
    }
    let (a, conj) = match op {
        Op::Identity => (a, Conj::No),
        Op::Transpose => (a.transpose(), Conj::No),
        Op::Adjoint => (a.transpose(), Conj::Yes),
    };
    faer::linalg::matmul::matmul_with_conj(y, Accum::Add, a, conj, x, Conj::No, alpha, faer::Par::Seq);
}

/// Both, on the current rayon pool or one after the other.
pub(crate) fn join<A: Send, B: Send>(par: Par, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    match par {
        Par::Rayon => bt_formats::join(a, b),
        Par::Seq => (a(), b()),
    }
}

/// ‖A‖₁ and max(|re aᵢⱼ| + |im aᵢⱼ|).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) one: f64,
    pub(crate) max: f64,
}

impl Norms {
    /// s = 2^−⌊log₂ max|A|⌋, within the range of T: s·A has a largest entry near 1. 1 for A = 0.
    pub(crate) fn scale<T: Scalar>(&self) -> T::Real {
        if self.max == 0.0 {
            return bt_formats::one();
        }
        // 1/s is a normal number too.
        let limit = -<T::Real as RealScalar>::MIN_POSITIVE.to_f64().log2();
        T::Real::from_f64((-self.max.log2().floor()).clamp(-limit, limit).exp2())
    }
}

/// The norms of a square matrix of finite entries.
///
/// # Errors
/// [`FactorError::Input`] when it is not square, or naming the first entry (by columns) that is NaN or infinite;
/// [`FactorError::Failed`] when a norm overflows.
pub(crate) fn norms<T: Scalar>(method: &'static str, a: MatRef<'_, T>, par: Par) -> Result<Norms> {
    let found = norms_or_overflow(a, par)?;
    if found.one.is_finite() && found.max.is_finite() {
        return Ok(found);
    }
    Err(FactorError::Failed { method, reason: "the norm of the matrix overflows; scale it".into() })
}

/// The same, infinite where they overflow.
///
/// # Errors
/// [`FactorError::Input`] as there.
pub(crate) fn norms_or_overflow<T: Scalar>(a: MatRef<'_, T>, par: Par) -> Result<Norms> {
    check_size("columns of the matrix", a.nrows(), a.ncols())?;
    let found = measure(a, par);
    if found.one.is_finite() && found.max.is_finite() {
        return Ok(found);
    }
    for col in 0..a.ncols() {
        for row in 0..a.nrows() {
            if !Scalar::is_finite(a[(row, col)]) {
                let value = a[(row, col)].to_string();
                return Err(Error::NonFinite { what: "matrix", row, col, value }.into());
            }
        }
    }
    Ok(Norms { one: f64::INFINITY, ..found })
}

#[inline(never)]
fn measure<T: Scalar>(a: MatRef<'_, T>, par: Par) -> Norms {
    let n = a.ncols();
    if n > GROUP {
        let (left, right) = a.split_at_col((n / 2).next_multiple_of(GROUP));
        let (l, r) = join(par, || measure(left, par), || measure(right, par));
        return Norms { one: l.one.max_nan(r.one), max: l.max.max_nan(r.max) };
    }
    let mut found = Norms { one: 0.0, max: 0.0 };
    lines::dispatch::<T, _>(bt_simd::Loops(
        #[inline(always)]
        || {
            for j in 0..n {
                let (sum, max) = match a.col(j).try_as_col_major() {
                    Some(column) => sum_and_largest(column.as_slice()),
                    None => {
                        a.col(j).iter().fold((zero(), zero()), |(s, m), v| (s + Scalar::abs(*v), larger(v.abs1(), m)))
                    }
                };
                found.one = found.one.max_nan(sum.to_f64());
                found.max = larger(max.to_f64(), found.max);
            }
        },
    ));
    found
}

/// The larger; the second when one is NaN.
#[inline(always)]
fn larger<R: RealScalar>(a: R, b: R) -> R {
    if a > b { a } else { b }
}

/// Norms gathered from columns in any order.
#[derive(Default)]
pub(crate) struct Gathered {
    // Non-negative numbers are ordered as their bits are; NaN comes last and sticks.
    one: AtomicU64,
    max: AtomicU64,
}

impl Gathered {
    /// Takes a column into account.
    #[inline(always)]
    pub(crate) fn note<T: Scalar>(&self, column: &[T]) {
        let (sum, max) = sum_and_largest(column);
        self.one.fetch_max(sum.to_f64().abs().to_bits(), Ordering::Relaxed);
        self.max.fetch_max(max.to_f64().to_bits(), Ordering::Relaxed);
    }

    /// The norms of what was noted.
    pub(crate) fn norms(&self) -> Norms {
        let value = |m: &AtomicU64| f64::from_bits(m.load(Ordering::Relaxed));
        Norms { one: value(&self.one), max: value(&self.max) }
    }
}

/// Σ|vᵢ| and max(|re vᵢ| + |im vᵢ|). The maximum passes over NaN; the sum does not.
#[inline(always)]
fn sum_and_largest<T: Scalar>(x: &[T]) -> (T::Real, T::Real) {
    let mut sums = [zero::<T::Real>(); WIDE];
    let mut maxima = [zero::<T::Real>(); WIDE];
    let (chunks, tail) = x.as_chunks::<WIDE>();
    for chunk in chunks {
        for k in 0..WIDE {
            sums[k] += Scalar::abs(chunk[k]);
            maxima[k] = larger(chunk[k].abs1(), maxima[k]);
        }
    }
    for (k, v) in tail.iter().enumerate() {
        sums[k] += Scalar::abs(*v);
        maxima[k] = larger(v.abs1(), maxima[k]);
    }
    (sums.into_iter().sum(), maxima.into_iter().fold(zero(), |m, v| larger(v, m)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;
    use faer::{Mat, mat};

    #[test]
    fn products_and_norms_by_hand() {
        let i = c64::new(0.0, 1.0);
        let one = c64::new(1.0, 0.0);
        let a = mat![[one, i + i], [-i, one * 3.0]];
        let view = DenseMatrix::new(a.as_ref());
        let mut y = [one, i];
        view.apply_op(Op::Adjoint, one, &[one, one], one, &mut y, Par::Seq);
        // conj(A)ᵀ·(1, 1) = (1 + i, 3 − 2i)
        assert_eq!(y, [one * 2.0 + i, one * 3.0 - i]);
        let found = norms("m", a.as_ref(), Par::Seq).unwrap();
        assert_eq!((found.one, found.max), (5.0, 3.0));
        assert_eq!(found.scale::<c64>(), 0.5);
        assert_eq!(norms("m", a.as_ref().transpose(), Par::Seq).unwrap().one, 4.0);
    }

    #[test]
    fn places_of_bad_entries() {
        let mut a = Mat::<f32>::zeros(200, 200);
        a[(7, 150)] = f32::NAN;
        let e = norms("m", a.as_ref(), Par::Seq).unwrap_err();
        assert!(e.to_string().contains("row 7, column 150"), "{e}");
        assert!(norms("m", a.as_ref().subcols(0, 3), Par::Seq).is_err());
    }

    #[test]
    fn scales_stay_in_range() {
        let of = |max| Norms { one: max, max };
        assert_eq!(of(0.0).scale::<f64>(), 1.0);
        for max in [5e-324, 1e-300, 1.0, 1e300, f64::MAX] {
            let s = of(max).scale::<f64>();
            assert!(s.is_normal() && s.recip().is_normal(), "{s:e}");
        }
        assert_eq!(of(2f64.powi(-140)).scale::<f32>(), 2f32.powi(126));
    }
}
