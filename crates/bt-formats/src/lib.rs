//! Floor 0 of blocktri: scalars, matrix formats, operators, Matrix Market files, structure detection, reordering.
//!
//! Formats: [`Coo`], [`Csr`], [`Bcsr`], [`Dia`], [`Band`], [`Tridiagonal`] and the hybrid [`BlockTridiagonal`]. All implement
//! [`LinearOperator`] and [`Matrix`]; every conversion between them is a method `to_…` or a constructor `from_…`.
#![cfg_attr(not(target_arch = "x86_64"), allow(unused, reason = "vectors of a certain length are of x86-64 only"))]

mod atomic_file;
mod band;
mod bcsr;
mod block_tridiagonal;
pub mod buffers;
mod convert;
mod coo;
mod csr;
pub mod detect;
mod dia;
mod doubled;
mod equilibrate;
mod error;
mod extremes;
mod foreign;
pub mod harwell_boeing;
pub mod interop;
mod join;
mod kernels;
pub mod matrix_market;
pub mod memory;
mod monitor;
mod note;
mod operator;
mod partition;
mod permutation;
mod petsc;
mod products;
mod read;
pub mod reorder;
mod report;
mod residual;
pub mod rounded;
mod run;
mod scalar;
pub mod scaled;
mod scatter;
mod sizes;
mod slice_index;
mod stop;
mod survey;
mod tridiagonal;
mod units;
mod verify;

pub use atomic_file::{PartialFile, write_atomically};
pub use band::Band;
pub use bcsr::Bcsr;
pub use block_tridiagonal::{
    BlockTridiagonal, CouplingKind, Couplings, DiagonalBlocks, DiagonalKind, HybridLayout, ShortDiagonals,
};
pub use coo::Coo;
pub use csr::Csr;
pub use dia::Dia;
pub use doubled::Doubled;
pub use equilibrate::{column_sizes, equilibrate, equilibrate_diagonal, equilibrate_symmetric};
pub use error::{Error, ParseKind, Result};
pub use extremes::Extremes;
pub use join::join;
pub use kernels::{HugePages, ask_for_huge_pages, prefetch, zeros};
pub use monitor::{CancelToken, Monitor, Progress, observe_column};
pub use note::{Note, NoteValue, seconds_in_words};
pub use operator::{LinearOperator, Matrix, Op, Par, mul_add, one, zero};
pub use partition::Partition;
pub use permutation::{Permutation, is_odd};
pub use read::{
    Columns, FileDense, FileMatrix, RhsInFile, System, read_columns, read_columns_from, read_matrix, read_matrix_with,
    read_system, read_system_from,
};
pub use report::{Breakdown, Bytes, Certificate, Outcome, PhaseTimes, SolveReport};
pub use rounded::Rounded;
pub use run::Run;
pub use scalar::{Numbers, NumbersMut, RealScalar, Scalar, ScalarKind, c32, c64};
pub use scaled::Scaled;
pub use stop::{Baseline, StopCriterion};
pub use survey::{DiagonalEntries, Survey, Weight};
pub use tridiagonal::Tridiagonal;
pub use units::units;
pub use verify::{certify, certify_beyond_underflow, certify_with_residual, max_abs, norm2};
