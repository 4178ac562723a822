//! What a rank solves its own part with: the incomplete factors of [`bt_iter`], ARMS, or a direct method.

use bt_direct::{Result, SparseLu, SparseQr};
use bt_formats::{Csr, LinearOperator};
use bt_iter::{Arms, ArmsOptions, DroppedFill, Factored, Identity, IlutOptions, Preconditioner, ic0, ilu0, iluk, ilut};

use crate::comm::Number;

/// A solver of local systems, by name. Any other is a closure: the preconditioners take functions from the local matrix to a
/// [`Preconditioner`], of which [`Factored`] makes one of any factors of a direct method.
///
/// ```
/// use bt_formats::Csr;
/// use bt_parallel::LocalSolver;
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 2.0]].as_ref())?;
/// let mut z = [0.0; 2];
/// LocalSolver::SparseLu.of(&a)?.apply(&[3.0, 3.0], &mut z);
/// assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LocalSolver {
    /// Incomplete LU on the pattern of the matrix, [`bt_iter::ilu0`].
    Ilu0,
    /// Incomplete LU with fill of some levels, [`bt_iter::iluk`].
    IluK {
        /// Levels.
        level: usize,
    },
    /// Incomplete LU with dropping, [`bt_iter::ilut`].
    Ilut(IlutOptions),
    /// Incomplete Cholesky on the pattern, for Hermitian positive definite matrices: [`bt_iter::ic0`].
    Ic0,
    /// Multilevel elimination, [`bt_iter::Arms`].
    Arms(ArmsOptions),
    /// Sparse LU, which is exact: [`bt_direct::SparseLu`].
    SparseLu,
    /// Sparse QR, which is exact where elements grow in elimination: [`bt_direct::SparseQr`].
    SparseQr,
}

impl LocalSolver {
    /// The solver of a local matrix, which may have no rows.
    ///
    /// # Errors
    /// Those of the method.
    pub fn of<T: Number>(self, a: &Csr<T>) -> Result<Box<dyn Preconditioner<T>>> {
        if a.nrows() == 0 {
            return Ok(Box::new(Identity::new(0)));
        }
        Ok(match self {
            Self::Ilu0 => Box::new(ilu0(a, DroppedFill::Forgotten)?),
            Self::IluK { level } => Box::new(iluk(a, level, DroppedFill::Forgotten)?),
            Self::Ilut(options) => Box::new(ilut(a, options)?),
            Self::Ic0 => Box::new(ic0(a, DroppedFill::Forgotten)?.factors),
            Self::Arms(options) => Box::new(Arms::with_options(a, options)?),
            Self::SparseLu => Box::new(Factored::new(SparseLu::new(a)?)),
            Self::SparseQr => Box::new(Factored::new(SparseQr::new(a)?)),
        })
    }
}
