//! One error type for the whole library.

use bt_direct::{FactorError, Singularity};

use crate::direct::DIRECT;

/// Why there is no answer. Non-convergence is no error: it is an outcome in the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input cannot be used.
    #[error(transparent)]
    Input(#[from] bt_formats::Error),
    /// The matrix is singular.
    #[error("{0}")]
    Singular(Singularity),
    /// The method asked for cannot factor this matrix.
    #[error(transparent)]
    Factor(FactorError),
    /// The options contradict each other or the matrix.
    #[error("{message}")]
    Usage {
        /// What is wrong, and what would do.
        message: String,
    },
    /// Factors are asked of a method that iterates.
    #[error("{method} is iterative and has no factors; call solve")]
    NoFactors {
        /// The method.
        method: &'static str,
    },
    /// No method fits the memory that may be taken.
    #[error("{message}")]
    NothingFits {
        /// What each would take, the least first.
        message: String,
    },
    /// The GPU is not there, or it failed.
    #[error("{0}")]
    Device(String),
    /// No method or preconditioner of that name.
    #[error("unknown {what} '{name}'")]
    UnknownName {
        /// What it was to be the name of.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
}

impl From<FactorError> for Error {
    fn from(error: FactorError) -> Self {
        match error {
            FactorError::Singular(place) => Self::Singular(place),
            FactorError::Input(input) => Self::Input(input),
            other => Self::Factor(other),
        }
    }
}

impl Error {
    /// What the user can do about it, where something is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Input(e) => e.help().map(str::to_owned),
            Self::Device(_) => Some("use the processor (device cpu)".into()),
            Self::NothingFits { .. } => Some("allow more memory".into()),
            Self::UnknownName { what, known, .. } => Some(format!("{what}s: {known}")),
            Self::Factor(FactorError::Breakdown { method, .. } | FactorError::Failed { method, .. }) => {
                let row = DIRECT.iter().find(|row| row.name == *method);
                Some(match row.and_then(|row| row.method.fallback()) {
                    Some(next) => format!("use the method auto, or let {next} take its place (fallback)"),
                    None => "use the method auto, which goes to stronger methods".into(),
                })
            }
            _ => None,
        }
    }
}
