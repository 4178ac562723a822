//! Block-tridiagonal, banded and tridiagonal systems, and the sparse systems around them: one call that picks a good
//! method, says why, and returns an answer with a certificate.

mod analyze;
mod any;
mod auto;
mod batch;
mod build;
mod calibrate;
mod candidate;
mod check;
mod columns;
mod components;
mod cost;
mod counts;
mod deadline;
mod direct;
mod equilibrated;
mod error;
mod extent;
mod factoring;
mod factors;
mod gpu;
mod held;
#[cfg(not(test))]
#[doc(hidden)]
pub mod instances;
mod iterate;
mod made;
mod memory;
mod method;
mod names;
mod options;
mod partition;
mod parts;
mod plan;
mod precondition;
mod preconditioners;
mod prepare;
mod probe;
mod ranges;
mod reduced;
mod refining;
mod regular;
mod reordered;
mod rows;
mod setting;
mod solution;
mod solve;
mod solver;
mod stored;
mod stronger;
mod structure;
mod unit;
mod verdict;
mod zeros;

pub use faer;

pub use analyze::{Analysis, Explanation, FormatBytes, HybridSummary, RcmStructure, analyze, explain};
pub use any::{
    AnyColumns, AnyLogDet, AnyMatrix, AnyPreconditioner, AnyScalar, AnySelectedInverse, AnySolution, AnySolver,
};
pub use batch::solve_batch;
pub use bt_direct::spike::TridiagonalSolver;
pub use bt_direct::{
    Cyclic, FactorError, FactorStats, Factorization, Given, Inertia, LogDet, Place, RbtOptions, Refinement,
    SelectedInverse, SingularKind, Singularity,
};
pub use bt_formats::detect::Structure;
pub use bt_formats::interop;
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
pub use candidate::Candidate;
pub use cost::{Kernel, Machine, Rate, Work};
pub use direct::{DIRECT, Direct, DirectRow, Family, Needs};
pub use error::Error;
pub use gpu::open::OpenDevice;
pub use method::{Accuracy, Auto, BlockIteration, Factoring, HostBlocks, Krylov, KrylovMethod, Method, Precision};
pub use options::{Blocks, Condition, DeviceChoice, Fallback, Gpus, Reorder, SolveOptions};
pub use partition::BlockSummary;
pub use precondition::precondition;
pub use preconditioners::{CentralBand, Local, Precond};
pub use setting::Setting;
pub use solution::{Answer, Solution};
pub use solve::solve;
pub use solver::Solver;
pub use stored::StoredMatrix;

/// The example of README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
