//! ILU(0): the LU factorization on the pattern of A.
//!
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.3.2 (Algorithm 10.4),
//! doi:10.1137/1.9780898718003. A missing diagonal entry is part of the pattern. Pivots follow the rule of
//! [`IncompleteLu`]: replaced where they are too small, and counted.
//!
//! Cost: that of `pattern_lu.rs`.

use bt_direct::Result;
use bt_formats::{Csr, Scalar};

use crate::incomplete_lu::{IncompleteLu, Rule};
use crate::pattern_lu::Pattern;

/// What becomes of fill outside the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DroppedFill {
    /// It is forgotten: ILU(0).
    #[default]
    Forgotten,
    /// It is added to the diagonal, so that M·e = A·e for e = (1, …, 1): modified ILU(0).
    ToDiagonal,
}

/// The ILU(0) preconditioner of `a`.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{DroppedFill, Preconditioner, ilu0};
/// // A tridiagonal matrix has no fill: M = A.
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// let mut z = [0.0; 3];
/// ilu0(&a, DroppedFill::Forgotten)?.apply(&[3.0, 4.0, 3.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`bt_direct::FactorError::Input`] when A is not square or not finite; [`bt_direct::FactorError::Breakdown`] naming the row where an
/// element overflows.
pub fn ilu0<T: Scalar>(a: &Csr<T>, dropped: DroppedFill) -> Result<IncompleteLu<T>> {
    let name = match dropped {
        DroppedFill::Forgotten => "ilu0",
        DroppedFill::ToDiagonal => "milu0",
    };
    let pattern = Pattern { ptr: a.row_ptr(), idx: a.col_idx() };
    IncompleteLu::on_pattern(name, Rule::Pattern(dropped), &pattern, a)
}
