//! Substitution with a matrix that is triangular once its rows and columns are put in order: P·A·Q = M, lower triangular.
//!
//! The order is that of [`triangular_order`]; nothing is eliminated and nothing fills. Row by row backward stable whatever the
//! pivots (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Theorem 8.5, doi:10.1137/1.9780898718027).
//!
//! Storage: the nonzeros of A, four bytes each beside them, and three times four bytes a row. Cost: none to factor, 2·nnz flops
//! a right-hand side.

use bt_formats::detect::{TriangularOrder, triangular_order};
use bt_formats::{Csr, Error, LinearOperator, Matrix, Monitor, Op, RealScalar, Scalar, is_odd, zero};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::pivot::Pivot;
use crate::pool::Pool;

const METHOD: &str = "triangular";

/// A matrix that is triangular in some order of its rows and columns.
///
/// ```
/// use bt_direct::{Factorization, PermutedTriangular};
/// use bt_formats::Csr;
/// // [ 1   2 ]
/// // [   4   ]
/// // [   4 2 ]
/// let a = Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 2, 1, 1, 2], vec![1.0, 2.0, 4.0, 4.0, 2.0])?;
/// let t = PermutedTriangular::new(&a)?;
/// let mut x = [5.0, 4.0, 8.0];
/// t.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 1.0, 2.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct PermutedTriangular<T: Scalar> {
    order: TriangularOrder,
    /// Place of each column of A.
    place: Vec<u32>,
    /// M below its diagonal, by rows, and its diagonal.
    ptr: Vec<u32>,
    idx: Vec<u32>,
    values: Vec<T>,
    pivots: Vec<T>,
    sums: Vec<T::Real>,
    stats: FactorStats,
    scratch: Pool<Vec<T>>,
}

impl<T: Scalar> PermutedTriangular<T> {
    /// Finds the order of `a`.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square, not finite or too large for memory, or is not triangular in any order.
    ///
    /// # Cost
    /// O(nnz + n).
    #[inline(never)]
    pub fn new(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let order = triangular_order(a)?.ok_or_else(|| Error::InvalidStructure {
            what: "matrix",
            why: "it is not triangular in any order of its rows and columns; use sparse-lu".into(),
        })?;
        Self::with_order(a, order)
    }

    /// In an order that is known.
    ///
    /// # Errors
    /// As [`PermutedTriangular::refactor`], and when memory is short.
    ///
    /// # Panics
    /// When the order is not one of the rows and columns of A.
    pub fn with_order(a: &Csr<T>, order: TriangularOrder) -> Result<Self> {
        let n = a.nrows();
        let mut place = vec![0; n];
        order.cols.iter().enumerate().for_each(|(k, &j)| place[j as usize] = k as u32);
        let (mut ptr, mut idx, mut values) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut ptr, n + 1)?;
        reserve(&mut idx, a.nnz())?;
        reserve(&mut values, a.nnz())?;
        let scratch = Pool::new();
        let (pivots, sums) = (zeros(n)?, zeros(n)?);
        let mut out = Self { order, place, ptr, idx, values, pivots, sums, stats: FactorStats::default(), scratch };
        out.refactor(a)?;
        out.scratch.put(zeros(n)?);
        Ok(out)
    }

    /// Takes another matrix that is triangular in the same order. After an error solves give NaN until a refactorisation
    /// succeeds. Memory is taken only for entries that are new.
    ///
    /// # Errors
    /// [`FactorError::Singular`] naming the column of a zero on the diagonal of M; [`FactorError::Input`] on another size, when A is
    /// not finite, and with the place of a nonzero above the diagonal of M.
    #[inline(never)]
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        check_size("size of the matrix", self.pivots.len(), a.nrows())?;
        let done = self.load(a);
        if done.is_err() {
            self.pivots.fill(T::nan_impl());
            self.ptr.clear();
            self.ptr.resize(self.pivots.len() + 1, 0);
            self.stats = self.stats.void();
        }
        done
    }

    fn load(&mut self, a: &Csr<T>) -> Result<()> {
        a.check_square()?;
        a.check_finite()?;
        self.ptr.clear();
        self.idx.clear();
        self.values.clear();
        self.ptr.push(0);
        self.sums.fill(zero());
        let mut least = f64::INFINITY;
        for (k, &row) in self.order.rows.iter().enumerate() {
            let (cols, values) = a.row(row as usize);
            let mut pivot = zero();
            for (&col, &v) in cols.iter().zip(values) {
                self.sums[col as usize] += v.abs();
                let at = self.place[col as usize] as usize;
                if at == k {
                    pivot = v;
                } else if at < k {
                    self.idx.push(at as u32);
                    self.values.push(v);
                } else if v != zero() {
                    let why = "is not zero: the matrix is not triangular in the order of the first".into();
                    return Err(Error::OutsideStructure { row: row as usize, col: col as usize, why }.into());
                }
            }
            if pivot == zero() {
                let column = self.order.cols[k] as usize;
                let place = Singularity { kind: SingularKind::Numerical, column, block: None };
                return Err(FactorError::Singular(place));
            }
            self.pivots[k] = pivot;
            least = least.min(pivot.abs().to_f64());
            self.ptr.push(self.idx.len() as u32);
        }
        let n = self.pivots.len();
        self.stats = FactorStats {
            norm_one: self.sums.iter().fold(0.0, |m: f64, s| m.max_nan(s.to_f64())),
            growth: 1.0,
            min_pivot: if n == 0 { 0.0 } else { least },
            boosted_pivots: 0,
            nnz: self.values.len() + n,
            bytes: (self.ptr.len() + self.idx.len() + 3 * n) * size_of::<u32>()
                + size_of_val(&*self.values)
                + 2 * size_of_val(&*self.pivots)
                + size_of_val(&*self.sums),
            flops: 0.0,
        };
        Ok(())
    }

    fn row(&self, k: usize) -> impl DoubleEndedIterator<Item = (usize, T)> + '_ {
        let range = self.ptr[k] as usize..self.ptr[k + 1] as usize;
        self.idx[range.clone()].iter().zip(&self.values[range]).map(|(&l, &v)| (l as usize, v))
    }

    /// y ← M⁻¹·y.
    fn forward(&self, y: &mut [T]) {
        for k in 0..y.len() {
            let sum = self.row(k).fold(y[k], |s, (l, m)| s - m * y[l]);
            y[k] = Pivot::new(self.pivots[k]).divide(sum);
        }
    }

    /// z ← M⁻ᵀ·z, of the conjugate of M with `conj`.
    fn backward(&self, z: &mut [T], conj: impl Fn(T) -> T) {
        for k in (0..z.len()).rev() {
            z[k] = Pivot::new(conj(self.pivots[k])).divide(z[k]);
            let zk = z[k];
            self.row(k).for_each(|(l, m)| z[l] -= conj(m) * zk);
        }
    }
}

impl<T: Scalar> Factorization<T> for PermutedTriangular<T> {
    fn n(&self) -> usize {
        self.pivots.len()
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.pivots.len(), "rows of X");
        // A = Pᵀ·M·Qᵀ: A⁻¹ = Q·M⁻¹·P, A⁻ᵀ = Pᵀ·M⁻ᵀ·Qᵀ.
        let (from, to) = match op {
            Op::Identity => (&self.order.rows, &self.order.cols),
            Op::Transpose | Op::Adjoint => (&self.order.cols, &self.order.rows),
        };
        let mut y = self.scratch.take(|| vec![zero(); self.pivots.len()]);
        for_each_column(x, |x| {
            y.iter_mut().zip(from).for_each(|(y, &i)| *y = x[i as usize]);
            match op {
                Op::Identity => self.forward(&mut y),
                Op::Transpose => self.backward(&mut y, |v| v),
                Op::Adjoint => self.backward(&mut y, Scalar::conj),
            }
            y.iter().zip(to).for_each(|(&y, &i)| x[i as usize] = y);
        });
        self.scratch.put(y);
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> Result<()> {
        self.refactor(&*a.csr()?)
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        self.pivots.iter().for_each(|&d| det.multiply(d));
        if is_odd(&self.order.rows) != is_odd(&self.order.cols) {
            det.negate();
        }
        det
    }
}
