//! IC(0): the incomplete Cholesky factorization L·D·Lᴴ on the pattern of a Hermitian positive definite A.
//!
//! J. A. Meijerink, H. A. van der Vorst, Math. Comp. 31 (1977) 148–162, doi:10.1090/S0025-5718-1977-0438681-4. It exists for
//! M-matrices; for others a pivot may not be positive. Then A + α·diag(A) is factored instead, α = 10⁻³ and doubled until all
//! pivots are positive (T. A. Manteuffel, Math. Comp. 34 (1980) 473–497, doi:10.1090/S0025-5718-1980-0559197-0): the number of
//! breakdowns and α are reported. The modified variant adds dropped fill to the diagonal (I. Gustafsson, BIT 18 (1978),
//! doi:10.1007/BF01931691).
//!
//! Storage: that of ILU(0): Lᴴ is kept beside L, for level schedules by rows. Cost: that of ILU(0) an attempt.

use bt_direct::Result;
use bt_formats::{Csr, Scalar};

use crate::ilu0::DroppedFill;
use crate::incomplete_lu::{IncompleteLu, Rule};
use crate::pattern_lu::Pattern;
use crate::preconditioner::{PreconditionerKind, Refactor};

/// An incomplete Cholesky factorization and what it took.
#[derive(Clone, Debug)]
pub struct Ic0<T> {
    /// The preconditioner, of kind `Spd`.
    pub factors: IncompleteLu<T>,
    /// α of the A + α·diag(A) that was factored; 0 where A itself was.
    pub shift: f64,
    /// Attempts that met a pivot that was not positive.
    pub breakdowns: usize,
}

/// The IC(0) preconditioner of `a`.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{DroppedFill, Preconditioner, ic0};
/// // A tridiagonal matrix has no fill: M = A.
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// let mut m = ic0(&a, DroppedFill::Forgotten)?;
/// let mut z = [0.0; 3];
/// m.factors.apply(&[3.0, 4.0, 3.0], &mut z);
/// assert!(m.breakdowns == 0 && z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`bt_direct::FactorError::Input`] when A is not square, not finite or not Hermitian; [`bt_direct::FactorError::Breakdown`] naming a row whose
/// diagonal entry is not positive, whose elements overflow, or whose pivot is not positive with the largest shift.
#[inline(never)]
pub fn ic0<T: Scalar>(a: &Csr<T>, dropped: DroppedFill) -> Result<Ic0<T>> {
    let name = match dropped {
        DroppedFill::Forgotten => "ic0",
        DroppedFill::ToDiagonal => "mic0",
    };
    let pattern = Pattern { ptr: a.row_ptr(), idx: a.col_idx() };
    let mut factors = IncompleteLu::on_pattern(name, Rule::Positive(dropped), &pattern, a)?;
    factors.kind = PreconditionerKind::Spd;
    let (shift, breakdowns) = factors.shift();
    Ok(Ic0 { factors, shift, breakdowns })
}

impl<T: Scalar> Ic0<T> {
    /// As `factors.refactor`, with the shift that it took.
    ///
    /// # Errors
    /// As [`ic0`], and [`bt_direct::FactorError::Input`] as [`Refactor::refactor`].
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.factors.refactor(a)?;
        (self.shift, self.breakdowns) = self.factors.shift();
        Ok(())
    }
}
