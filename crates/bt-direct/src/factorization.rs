//! What every factorization can do: solve with A, Aᵀ, Aᴴ, tell its determinant, condition and costs.

use bt_formats::{Op, RealScalar, Scalar};
use faer::MatMut;

use crate::condition;

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

    /// Multiplies the determinant by `factor`.
    pub fn multiply(&mut self, factor: T) {
        let modulus = factor.abs();
        if modulus == bt_formats::zero() {
            (self.sign, self.log_abs) = (bt_formats::zero(), f64::NEG_INFINITY);
        } else {
            self.sign *= T::from_parts((factor.re() / modulus).to_f64(), (factor.im() / modulus).to_f64());
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
/// Solves allocate nothing (tested) and may run from several threads at once. Refactorisation with new values in the
/// same pattern is an inherent method `refactor` of each type, since its argument differs.
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

    /// Growth, pivots, sizes.
    fn stats(&self) -> FactorStats;

    /// log|det A| and the sign.
    fn log_det(&self) -> LogDet<T>;

    /// Estimate of the reciprocal condition number 1 / (‖A‖₁‖A⁻¹‖₁) by Hager's method as Higham refined it.
    ///
    /// # Cost
    /// Four or five pairs of solves, and O(n) memory.
    fn rcond(&self) -> f64 {
        condition::rcond(self)
    }
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
