//! Preconditioners of distributed systems: z ← M⁻¹r, each rank with its rows.

mod local;
mod schur;
mod schwarz;

pub use local::LocalSolver;
pub use schur::{Schur, SchurOptions};
pub use schwarz::Schwarz;

use bt_iter::PreconditionerKind;

use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::Result;

/// An approximation M of a distributed A whose inverse is cheap to apply.
pub trait DistributedPreconditioner<T: Number> {
    /// Rows of this rank.
    fn rows(&self) -> usize;
    /// Name, as the command spells it.
    fn name(&self) -> &'static str;
    /// What a method may assume, the same on every rank.
    fn kind(&self) -> PreconditionerKind;
    /// z ← M⁻¹·r for the own rows. All ranks call.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Panics
    /// When a length is not that of the own rows.
    fn apply(&mut self, r: &[T], z: &mut [T]) -> Result<()>;
    /// Stored values of this rank.
    fn nnz(&self) -> usize;
    /// Bytes of all arrays of this rank.
    fn bytes(&self) -> usize;
}

/// The contract of [`DistributedPreconditioner::apply`] on lengths.
fn check_lengths<T>(m: usize, r: &[T], z: &[T]) {
    assert_eq!((r.len(), z.len()), (m, m), "lengths of r and z");
}

/// M = I.
///
/// ```
/// use bt_formats::Csr;
/// use bt_parallel::{DistributedCsr, DistributedPreconditioner, Division, Identity, SelfComm};
/// let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0])?;
/// let a = DistributedCsr::from_replicated(&SelfComm, &a, &Division::contiguous(1, 1))?;
/// let mut z = [0.0];
/// Identity::new(&a).apply(&[3.0], &mut z)?;
/// assert_eq!(z, [3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    rows: usize,
}

impl Identity {
    /// For the rows of `a`.
    pub fn new<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Self {
        Self { rows: a.rows().own().len() }
    }
}

impl<T: Number> DistributedPreconditioner<T> for Identity {
    fn rows(&self) -> usize {
        self.rows
    }
    fn name(&self) -> &'static str {
        "none"
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Identity
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) -> Result<()> {
        check_lengths(self.rows, r, z);
        z.copy_from_slice(r);
        Ok(())
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}
