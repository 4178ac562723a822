//! One call: choose a method, solve, verify.

use bt_formats::{Csr, Monitor, Scalar, SolveReport};
use faer::{Mat, MatRef};

use crate::error::Error;
use crate::options::{Reorder, SolveOptions};

/// The blocks a method worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary {
    /// Number of blocks.
    pub count: usize,
    /// Smallest block.
    pub min: usize,
    /// Largest block.
    pub max: usize,
}

/// An answer and its report.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// X, n × nrhs.
    pub x: Mat<T>,
    /// What was done, how it ended, how good x is.
    pub report: SolveReport,
    /// The reordering that was used.
    pub reorder: Reorder,
    /// The blocks that were used, for methods on blocks.
    pub blocks: Option<BlockSummary>,
    /// Reciprocal condition number in the 1-norm (of the scaled matrix, where the method scales), direct methods only.
    pub rcond: Option<f64>,
    /// What the user must not overlook (also among the notes): an ill-conditioned matrix, an accuracy not reached.
    pub warnings: Vec<String>,
}

/// Solves A·X = B.
///
/// # Errors
/// [`Error`] on unusable input, a singular matrix, or a method that cannot factor it.
pub fn solve<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let _ = (a, b, options, monitor);
    Err(Error::Usage { message: "solve is under construction".into() })
}
