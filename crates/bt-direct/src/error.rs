//! Why a factorization could not be made.

use std::fmt;

/// Result of a factorization.
pub type Result<T, E = FactorError> = std::result::Result<T, E>;

/// What kind of singularity was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingularKind {
    /// No choice of values in this pattern is nonsingular.
    Structural,
    /// Elimination found a column without a pivot: every candidate is exactly zero.
    Numerical,
}

/// Where a matrix is singular. Indices count from 0 in the matrix that was factored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Singularity {
    /// Structural or numerical.
    pub kind: SingularKind,
    /// Column in which no pivot exists.
    pub column: usize,
    /// Block of that column, where the method works on blocks.
    pub block: Option<usize>,
}

impl fmt::Display for Singularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SingularKind::Structural => "structurally singular",
            SingularKind::Numerical => "singular",
        };
        write!(f, "the matrix is {kind}: no pivot in column {} (from 0)", self.column)?;
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        Ok(())
    }
}

/// Why a factorization could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactorError {
    /// The matrix is singular.
    #[error("{0}")]
    Singular(Singularity),
    /// A pivot (block) is unusable for this method although the matrix may be nonsingular; another method is needed.
    #[error("{method} breaks down: {reason}")]
    Breakdown {
        /// Method, as the command spells it.
        method: &'static str,
        /// What was met and where.
        reason: String,
    },
    /// The library beneath failed in a way it does not name (a panic or a garbage result), caught here.
    #[error("{method} failed: {reason}")]
    Failed {
        /// Method, as the command spells it.
        method: &'static str,
        /// What was caught.
        reason: String,
    },
    /// A monitor stopped the factorization.
    #[error("stopped by request during factorization")]
    Stopped,
    /// Unusable input.
    #[error(transparent)]
    Input(#[from] bt_formats::Error),
}
