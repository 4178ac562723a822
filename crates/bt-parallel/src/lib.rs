//! Floor 3 of blocktri: rows spread over ranks, which are processes of MPI, threads or one alone.
//!
//! A rank owns rows of A and the unknowns of the same numbers. All methods are generic over [`Comm`]: [`SelfComm`] is one rank,
//! [`ThreadComm`] any number of threads; nothing here knows MPI. Every call is made by all ranks with the same options, and returns on all of
//! them the same outcome or the same error ([`agree`]). With one rank products and Krylov methods have the bits of [`bt_formats`] and [`bt_iter`].
//!
//! ```text
//! rows of a program ──▶ DistributedCsr ──▶ Krylov with Schwarz or Schur │ Spike │ BlockIteration ──▶ x, certified over the whole system
//! Csr ──Division──▶     ▲                                                                    Lines: tridiagonal, without a matrix
//!                                  ╰▶ ChainEntries::check ──▶ StationaryDistribution ──▶ π, by its balance
//! ```

mod agreement;
mod chain;
mod clusters;
mod comm;
mod components;
mod csr;
mod error;
mod fetch;
mod halo;
mod hbisa;
mod krylov;
mod lines;
mod model;
mod partition;
mod precond;
mod product;
mod read;
mod rows;
mod self_comm;
mod site_expansion;
mod spike;
mod stationary;
#[cfg(feature = "suite")]
pub mod suite;
pub mod thread_comm;
mod timed;
mod write;

pub use chain::ChainEntries;
pub use comm::{Comm, Counter, Element, ElementKind, Number, Parts, Tag, Traffic};
pub use csr::DistributedCsr;
pub use error::{Error, Fault, FaultKind, Origin, Result, agree};
pub use halo::Halo;
pub use hbisa::{BlockIteration, BlockSweep};
pub use krylov::{Krylov, Method};
pub use lines::Lines;
pub use model::{Counts, Machine, Work};
pub use partition::{Division, Quality};
pub use precond::{DistributedPreconditioner, Identity, LocalSolver, Schur, SchurOptions, Schwarz};
pub use read::{RowRanges, entries_from_ranges, is_complex, read_columns_on_all, read_head_on_all};
pub use rows::{Owner, Rows};
pub use self_comm::SelfComm;
pub use spike::{Coupling, Spike, SpikeOptions};
pub use stationary::StationaryDistribution;
pub use thread_comm::{Patience, ThreadComm};
pub use timed::{Costs, Meter, RankCost, Spread, Timed};
pub use write::Target;
