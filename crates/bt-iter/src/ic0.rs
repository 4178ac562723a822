//! IC(0): the incomplete Cholesky factorization L·D·Lᴴ on the pattern of a Hermitian positive definite A.
//!
//! J. A. Meijerink, H. A. van der Vorst, Math. Comp. 31 (1977) 148–162, doi:10.1090/S0025-5718-1977-0438681-4. It exists for
//! M-matrices; for others a pivot may not be positive. Then A + α·diag(A) is factored instead, α = 10⁻³ and doubled until all
//! pivots are positive (T. A. Manteuffel, Math. Comp. 34 (1980) 473–497, doi:10.1090/S0025-5718-1980-0559197-0): the number of
//! breakdowns and α are reported. The modified variant adds dropped fill to the diagonal (I. Gustafsson, BIT 18 (1978),
//! doi:10.1007/BF01931691).
//!
//! Storage: that of ILU(0): Lᴴ is kept beside L, for level schedules by rows. Cost: that of ILU(0) an attempt.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, Scalar};

use crate::hermitian::positive_diagonal;
use crate::ilu0::DroppedFill;
use crate::incomplete_lu::IncompleteLu;
use crate::pattern_lu::{Eliminated, Pattern, Pivots, eliminate};
use crate::preconditioner::PreconditionerKind;

/// The first α tried after a breakdown.
const FIRST_SHIFT: f64 = 1e-3;
/// The last: A + 16·diag(A) is more diagonal than A.
const LAST_SHIFT: f64 = 16.0;

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
/// [`FactorError::Input`] when A is not square, not finite or not Hermitian; [`FactorError::Breakdown`] naming a row whose
/// diagonal entry is not positive, whose elements overflow, or whose pivot is not positive with the largest shift.
pub fn ic0<T: Scalar>(a: &Csr<T>, dropped: DroppedFill) -> Result<Ic0<T>> {
    let name = match dropped {
        DroppedFill::Forgotten => "ic0",
        DroppedFill::ToDiagonal => "mic0",
    };
    positive_diagonal(a, name)?;
    let pattern = Pattern { ptr: a.row_ptr(), idx: a.col_idx() };
    let (mut shift, mut breakdowns) = (0.0, 0);
    loop {
        match eliminate(a, &pattern, dropped, shift, Pivots::Positive, name)? {
            Eliminated::Done { lower, upper, reciprocals, .. } => {
                let factors = IncompleteLu::assemble(name, &lower, &upper, &reciprocals, 0);
                return Ok(Ic0 { factors: factors.claiming(PreconditionerKind::Spd), shift, breakdowns });
            }
            Eliminated::Stopped { row } if shift >= LAST_SHIFT => {
                let reason = format!("no positive pivot in row {row} (from 0), also of A + {shift}·diag(A)");
                return Err(FactorError::Breakdown { method: name, reason });
            }
            Eliminated::Stopped { .. } => {
                breakdowns += 1;
                shift = if shift == 0.0 { FIRST_SHIFT } else { 2.0 * shift };
            }
        }
    }
}
