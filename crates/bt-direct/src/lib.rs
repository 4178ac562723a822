//! Floor 1 of blocktri: direct solvers. A factorization is a value that solves with A, Aᵀ and Aᴴ as often as wanted.

pub mod band_lu;
pub mod block_lu;
pub mod condition;
mod error;
mod factorization;
mod pivot;
pub mod refine;
pub mod sparse_lu;
pub mod thomas;
pub mod tridiagonal_lu;

pub use band_lu::BandLu;
pub use block_lu::{BlockLu, Kernels};
pub use error::{FactorError, Result, SingularKind, Singularity};
pub use factorization::{FactorStats, Factorization, LogDet};
pub use refine::{Refined, Refinement, refine};
pub use sparse_lu::SparseLu;
pub use thomas::Thomas;
pub use tridiagonal_lu::TridiagonalLu;
