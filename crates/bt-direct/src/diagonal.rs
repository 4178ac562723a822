//! A diagonal matrix: xᵢ = bᵢ/aᵢᵢ.
//!
//! Storage: n values. Cost: none to factor, n divisions a right-hand side, each correctly rounded for real numbers.

use bt_formats::{Csr, Error, LinearOperator, Monitor, Op, RealScalar, Scalar, zero};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::pivot::Pivot;

/// The diagonal of a matrix that has nothing else.
///
/// ```
/// use bt_direct::{Diagonal, Factorization};
/// use bt_formats::Csr;
/// let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![2.0, -4.0])?;
/// let d = Diagonal::new(&a)?;
/// let mut x = [1.0, 2.0];
/// d.solve_vec_in_place(&mut x);
/// assert_eq!(x, [0.5, -0.5]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Diagonal<T> {
    values: Vec<T>,
    stats: FactorStats,
}

impl<T: Scalar> Diagonal<T> {
    /// Takes the diagonal of `a`; stored zeros elsewhere are looked over.
    ///
    /// # Errors
    /// [`FactorError::Singular`] naming the first zero on the diagonal; [`FactorError::Input`] when A is not square, not finite, or
    /// has a nonzero elsewhere, with its place.
    pub fn new(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let mut out = Self { values: zeros(a.nrows())?, stats: FactorStats::default() };
        out.refactor(a)?;
        Ok(out)
    }

    /// Takes another diagonal matrix of the same size. After an error solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`Diagonal::new`], and [`FactorError::Input`] on another size.
    #[inline(never)]
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        check_size("size of the matrix", self.values.len(), a.nrows())?;
        let done = self.load(a);
        if done.is_err() {
            self.values.fill(T::nan_impl());
            self.stats = self.stats.void();
        }
        done
    }

    fn load(&mut self, a: &Csr<T>) -> Result<()> {
        a.check_square()?;
        a.check_finite()?;
        let (mut norm, mut least) = (0.0f64, f64::INFINITY);
        for (row, own) in self.values.iter_mut().enumerate() {
            *own = zero();
            let (cols, values) = a.row(row);
            for (&col, &v) in cols.iter().zip(values).filter(|e| *e.1 != zero()) {
                if col as usize != row {
                    let why = "is not zero: the matrix is not diagonal".into();
                    return Err(Error::OutsideStructure { row, col: col as usize, why }.into());
                }
                *own = v;
            }
            if *own == zero() {
                let kind = if cols.binary_search(&(row as u32)).is_ok() {
                    SingularKind::Numerical
                } else {
                    SingularKind::Structural
                };
                return Err(FactorError::Singular(Singularity { kind, column: row, block: None }));
            }
            let modulus = own.abs().to_f64();
            (norm, least) = (norm.max(modulus), least.min(modulus));
        }
        let n = self.values.len();
        self.stats = FactorStats {
            norm_one: norm,
            growth: 1.0,
            min_pivot: if n == 0 { 0.0 } else { least },
            boosted_pivots: 0,
            nnz: n,
            bytes: size_of_val(&*self.values),
            flops: 0.0,
        };
        Ok(())
    }
}

impl<T: Scalar> Factorization<T> for Diagonal<T> {
    fn n(&self) -> usize {
        self.values.len()
    }

    fn method(&self) -> &'static str {
        "diagonal"
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.values.len(), "rows of X");
        for_each_column(x, |x| {
            for (x, &d) in x.iter_mut().zip(&self.values) {
                *x = Pivot::new(if op == Op::Adjoint { Scalar::conj(d) } else { d }).divide(*x);
            }
        });
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
        self.values.iter().for_each(|&d| det.multiply(d));
        det
    }

    /// minᵢ|aᵢᵢ| / maxᵢ|aᵢᵢ|, which is exact.
    fn rcond(&self) -> f64 {
        match self.values.len() {
            0 => 1.0,
            _ if self.stats.norm_one.is_nan() => 0.0,
            _ => self.stats.min_pivot / self.stats.norm_one,
        }
    }
}
