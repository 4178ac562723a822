//! Block-tridiagonal, banded and tridiagonal systems, and the sparse systems around them: one call that picks a good
//! method, says why, and returns an answer with a certificate.

mod analyze;
mod equilibrated;
mod error;
mod factors;
mod gpu;
#[cfg(not(test))]
#[doc(hidden)]
pub mod instances;
mod iterate;
mod memory;
mod options;
mod plan;
mod precondition;
mod reduced;
mod reordered;
mod solve;
mod unit;
mod verdict;
mod zeros;

pub use analyze::{Analysis, FormatBytes, HybridSummary, RcmStructure, analyze};
pub use bt_direct as direct;
pub use bt_formats as formats;
pub use bt_iter as iter;
#[cfg(feature = "cuda")]
pub use bt_kernels as kernels;
pub use bt_queue as queue;
pub use faer;

pub use bt_direct::{FactorError, Factorization, Refinement, SingularKind, Singularity};
pub use bt_formats::{
    Band, Baseline, Breakdown, CancelToken, Certificate, Coo, Csr, Monitor, Outcome, Partition, Progress, Scalar,
    SolveReport, StopCriterion, Tridiagonal, c32, c64,
};
pub use bt_iter::{ArmsOptions, IlutOptions, StopRule, TriangularSolves};
pub use error::Error;
pub use factors::BlockSummary;
pub use gpu::OpenDevice;
pub use options::{Blocks, DeviceChoice, HostBlocks, Local, Method, Precision, Precond, Reorder, SolveOptions};
pub use plan::Candidate;
pub use solve::{Solution, Solver, solve};
