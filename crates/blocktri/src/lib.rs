//! Block-tridiagonal, banded and tridiagonal systems, and the sparse systems around them: one call that picks a good
//! method, says why, and returns an answer with a certificate.

mod analyze;
mod any;
mod auto;
mod calibrate;
mod components;
mod cost;
mod counts;
mod deadline;
mod direct;
mod equilibrated;
mod error;
mod factors;
mod gpu;
mod held;
#[cfg(not(test))]
#[doc(hidden)]
pub mod instances;
mod iterate;
mod memory;
mod method;
mod options;
mod plan;
mod precondition;
mod preconditioners;
mod probe;
mod reduced;
mod reordered;
mod rows;
mod setting;
mod solve;
mod solver;
mod unit;
mod verdict;
mod zeros;

pub use faer;

pub use analyze::{Analysis, Explanation, FormatBytes, HybridSummary, RcmStructure, analyze, explain};
pub use any::{
    AnyColumns, AnyLogDet, AnyMatrix, AnyPreconditioner, AnyScalar, AnySelectedInverse, AnySolution, AnySolver,
};
pub use bt_direct::spike::TridiagonalSolver;
pub use bt_direct::{
    Cyclic, FactorError, FactorStats, Factorization, Given, Inertia, LogDet, Place, RbtOptions, Refinement,
    SelectedInverse, SingularKind, Singularity,
};
pub use bt_formats::detect::Structure;
pub use bt_formats::{
    Band, Baseline, BlockTridiagonal, Breakdown, Bytes, CancelToken, Certificate, Coo, CouplingKind, Csr, DiagonalKind,
    Error as InputError, Monitor, Note, NoteValue, Op, Outcome, Partition, Permutation, PhaseTimes, Progress, Scalar,
    ScalarKind, Scaled, SolveReport, StopCriterion, Tridiagonal, c32, c64,
};
pub use bt_iter::{
    ArmsOptions, BlockForm, DroppedFill, IlutOptions, LastSolver, Overlap, Preconditioner, PreconditionerKind,
    Relaxation, RowOrder, Series, StopRule, Sweep, Triangles, TriangularSolves,
};
pub use calibrate::calibrate;
pub use cost::{Kernel, Machine, Rate, Work};
pub use direct::{DIRECT, Direct, DirectRow, Family, Needs};
pub use error::Error;
pub use factors::BlockSummary;
pub use gpu::OpenDevice;
pub use method::{Accuracy, Auto, BlockIteration, Factoring, Krylov, KrylovMethod, Method, Precision};
pub use options::{Blocks, Condition, DeviceChoice, Fallback, Gpus, HostBlocks, Reorder, SolveOptions};
pub use plan::Candidate;
pub use precondition::precondition;
pub use preconditioners::{CentralBand, Local, Precond};
pub use setting::Setting;
pub use solve::{Solution, solve};
pub use solver::Solver;
