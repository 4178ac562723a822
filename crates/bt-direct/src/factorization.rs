//! What every factorization can do: solve with A, Aᵀ, Aᴴ, take new values, tell its determinant, condition and costs.

use bt_formats::{Monitor, Op, RealScalar, Scalar};
use faer::MatMut;

use crate::error::Result;
use crate::estimate::{columns, rcond_by};
use crate::given::Given;

/// Numbers kept from a factorization.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FactorStats {
    /// ‖A‖₁ of the matrix that was factored.
    pub norm_one: f64,
    /// Element growth max|U| / max|A|: large values (say above 1e6) cost as many digits.
    pub growth: f64,
    /// Smallest pivot modulus.
    pub min_pivot: f64,
    /// Pivots replaced by a boosted value.
    pub boosted_pivots: usize,
    /// Stored values of the factors.
    pub nnz: usize,
    /// Bytes of the factors and pivot arrays.
    pub bytes: usize,
    /// Floating-point operations of the factorization, counted from the sizes (real operations on real scalars).
    pub flops: f64,
}

impl FactorStats {
    /// Of factors that are no more those of any matrix.
    pub(crate) fn void(self) -> Self {
        Self { norm_one: f64::NAN, growth: f64::NAN, min_pivot: f64::NAN, ..self }
    }
}

/// det A = `sign`·exp(`log_abs`), with |sign| = 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDet<T> {
    /// Sign, or for complex scalars the unit phase; 0 when A is singular.
    pub sign: T,
    /// log|det A|, natural.
    pub log_abs: f64,
}

impl<T: Scalar> LogDet<T> {
    /// Of the identity.
    pub fn one() -> Self {
        Self { sign: bt_formats::one(), log_abs: 0.0 }
    }

    /// Of factors that are no more those of any matrix.
    pub(crate) fn void() -> Self {
        Self { sign: T::nan_impl(), log_abs: f64::NAN }
    }

    /// Multiplies the determinant by `factor`.
    pub fn multiply(&mut self, factor: T) {
        let modulus = factor.abs();
        if modulus == bt_formats::zero() {
            (self.sign, self.log_abs) = (bt_formats::zero(), f64::NEG_INFINITY);
        } else {
            self.sign *= T::from_parts(factor.re() / modulus, factor.im() / modulus);
            self.log_abs += modulus.to_f64().ln();
        }
    }

    /// Multiplies the determinant by −1.
    pub fn negate(&mut self) {
        self.sign = -self.sign;
    }
}

/// A factored n × n matrix A.
///
/// Solves allocate nothing (tested) and may run from several threads at once.
pub trait Factorization<T: Scalar>: Send + Sync {
    /// Size n.
    fn n(&self) -> usize;

    /// Name of the method, as the command spells it.
    fn method(&self) -> &'static str;

    /// X ← op(A)⁻¹·X for the columns of `x`, n × nrhs with contiguous columns.
    ///
    /// # Panics
    /// When `x` has not n rows, or its columns are not contiguous.
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>);

    /// X ← A⁻¹·X.
    fn solve_in_place(&self, x: MatMut<'_, T>) {
        self.solve_op_in_place(Op::Identity, x);
    }

    /// X ← A⁻ᵀ·X.
    fn solve_transpose_in_place(&self, x: MatMut<'_, T>) {
        self.solve_op_in_place(Op::Transpose, x);
    }

    /// X ← A⁻ᴴ·X.
    fn solve_adjoint_in_place(&self, x: MatMut<'_, T>) {
        self.solve_op_in_place(Op::Adjoint, x);
    }

    /// x ← A⁻¹·x for one vector.
    fn solve_vec_in_place(&self, x: &mut [T]) {
        let n = x.len();
        self.solve_in_place(MatMut::from_column_major_slice_mut(x, n, 1));
    }

    /// Factors another matrix of the same size and structure, in the order and the memory of these factors: A ← `a`.
    ///
    /// What was found from the structure alone is kept, scalings and pivots are chosen anew. The numbers are those that the method's own
    /// `refactor` finds, which takes nothing but the format that the method works on; here any format is taken, and one that is not the
    /// method's is converted before. `a` is read only.
    ///
    /// # Errors
    /// As the constructor of the method; [`FactorError::Input`](crate::FactorError::Input) on another size, and for an entry or a pattern
    /// that has no place in these factors; [`FactorError::Stopped`](crate::FactorError::Stopped) when the monitor says so. The factors are
    /// void then: solves give NaN until a refactorisation succeeds; or, where `a` was refused before anything was done, what they were.
    ///
    /// # Cost
    /// The elimination. The format that the method works on takes no memory beside that of the factors, but for what new pivots fill;
    /// another one that of the matrix in the method's format. Methods that nobody uses for speed (`exact-lu`) begin anew.
    ///
    /// # Example
    /// ```
    /// use bt_direct::{BandLu, Factorization, Given};
    /// use bt_formats::{Band, Csr};
    /// let matrix = |corner: f64| Csr::from_dense(faer::mat![[corner, 1.0], [1.0, 2.0]].as_ref());
    /// let mut factors: Box<dyn Factorization<f64>> = Box::new(BandLu::new(&Band::from_csr(&matrix(2.0)?)?)?);
    /// factors.refactor(Given::Csr(&matrix(1.0)?), &mut ())?;
    /// let mut x = [3.0, 5.0];
    /// factors.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [1.0, 2.0]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()>;

    /// Growth, pivots, sizes.
    fn stats(&self) -> FactorStats;

    /// log|det A| and the sign.
    fn log_det(&self) -> LogDet<T>;

    /// Estimate of the reciprocal condition number 1 / (‖A‖₁‖A⁻¹‖₁) by the block estimator of Higham and Tisseur (see
    /// [`condition`](crate::condition)).
    ///
    /// # Cost
    /// Mostly five solves, with A and Aᴴ in turn, of two right-hand sides each, and memory for five vectors.
    fn rcond(&self) -> f64 {
        rcond(self)
    }
}

/// 1 / (‖A‖₁·est‖A⁻¹‖₁); 0 when a solve overflows or the factors are void, 1 for n = 0.
///
/// # Cost
/// Two to six solves with A, one to five with Aᴴ, of two right-hand sides each.
#[inline(never)]
pub fn rcond<T: Scalar, F: Factorization<T> + ?Sized>(factors: &F) -> f64 {
    let n = factors.n();
    if n == 0 {
        return 1.0;
    }
    let norm_a = factors.stats().norm_one;
    if !(norm_a.is_finite() && norm_a > 0.0) {
        return 0.0;
    }
    rcond_by(n, norm_a, &mut |op, x| factors.solve_op_in_place(op, columns(x, n)))
}

impl<T: Scalar, F: Factorization<T> + ?Sized> Factorization<T> for Box<F> {
    fn n(&self) -> usize {
        (**self).n()
    }
    fn method(&self) -> &'static str {
        (**self).method()
    }
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        (**self).solve_op_in_place(op, x);
    }
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        (**self).refactor(a, monitor)
    }
    fn stats(&self) -> FactorStats {
        (**self).stats()
    }
    fn log_det(&self) -> LogDet<T> {
        (**self).log_det()
    }
    fn rcond(&self) -> f64 {
        (**self).rcond()
    }
}
