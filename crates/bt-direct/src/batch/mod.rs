//! Batches: many independent small systems of one kind, solved side by side.
//!
//! Sixteen tridiagonal systems make a group, one in each lane of a vector; groups are divided among the threads of the
//! current rayon pool. Systems stored one after another are transposed in registers, eight rows of eight systems at a time.
//! The bits of a solution depend on its own system only: not on its neighbours, the layout, the threads or the machine's
//! vectors. Each system has its own verdict ([`SystemStatus`]): one that fails leaves NaN in its part of x and nothing in
//! the others.
//!
//! - [`TridiagonalBatch`]: matrices and, in one go, their solution, with or without pivoting;
//! - [`BatchLu`]: factors of a tridiagonal batch, for right-hand sides to come;
//! - [`BandBatch`]: factors of small band systems, or block-tridiagonal ones with tiny blocks, in lanes;
//! - [`FactorBatch`]: any factorization of any systems, threads over systems; [`BandSystems`], [`BlockTridiagonalBatch`].
//!
//! Thomas in lanes: L.-W. Chang, J. A. Stratton, H.-S. Kim, W.-M. W. Hwu, A scalable, numerically stable,
//! high-performance tridiagonal solver using GPUs, SC 2012, doi:10.1109/SC.2012.12, §2, has the interleaved layout; the
//! pivoted elimination is that of LAPACK's `gtsv`. Growth and limits: [`Thomas`](crate::Thomas), [`TridiagonalLu`](crate::TridiagonalLu).
//!
//! | file | case |
//! |---|---|
//! | `tridiagonal/` | tridiagonal systems in lanes |
//! | `band.rs` | small band systems, and block-tridiagonal ones with tiny blocks, in lanes |
//! | `systems.rs` | systems of any kind, each in factors of its own |
//! | `lanes.rs` | what lanes share: rows of sixteen systems, quotients, transposition |
//! | `shape.rs` | where values lie: layouts, sizes, tiles to read and write, pieces for threads |

mod band;
pub(crate) mod lanes;
mod shape;
mod systems;
mod tridiagonal;

use std::fmt;

pub use band::BandBatch;
pub use shape::Layout;
pub use systems::{BandSystems, BlockTridiagonalBatch, FactorBatch};
pub use tridiagonal::{BatchLu, Places, TridiagonalBatch};

/// Which elimination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pivoting {
    /// The Thomas algorithm, watched: a system that loses half the digits of a row breaks down.
    None,
    /// Neighbouring rows exchanged for the larger pivot: every nonsingular system is solved.
    #[default]
    Partial,
}

/// What became of one system of a batch. Rows and columns count from 0 in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemStatus {
    /// It is solved, or factored.
    Solved,
    /// It is singular: no pivot in this column.
    Singular {
        /// Column without a pivot.
        column: usize,
    },
    /// It may be regular, but this elimination loses half the digits of a row, or overflows: [`Pivoting::Partial`] goes on
    /// where [`Pivoting::None`] stops.
    Breakdown {
        /// Row whose pivot is unusable.
        row: usize,
    },
    /// A value of this row is NaN or infinite.
    NotFinite {
        /// The row.
        row: usize,
    },
}

impl fmt::Display for SystemStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Solved => f.write_str("solved"),
            Self::Singular { column } => write!(f, "singular: no pivot in column {column} (from 0)"),
            Self::Breakdown { row } => write!(f, "breaks down in row {row} (from 0); it may still be regular"),
            Self::NotFinite { row } => write!(f, "a value of row {row} (from 0) is not a finite number"),
        }
    }
}

/// A system that was not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its number in the batch, from 0.
    pub system: usize,
    /// Why.
    pub status: SystemStatus,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system {} (from 0): {}", self.system, self.status)
    }
}

/// The failures of a batch, by system. Empty where all went well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "systems that failed have NaN for a solution"]
pub struct Verdict {
    failures: Vec<Failure>,
}

impl Verdict {
    fn new(mut failures: Vec<Failure>) -> Self {
        failures.sort_unstable_by_key(|f| f.system);
        Self { failures }
    }

    /// Whether every system was solved.
    pub fn all_solved(&self) -> bool {
        self.failures.is_empty()
    }

    /// The systems that were not, in order.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Of one system.
    pub fn status(&self, system: usize) -> SystemStatus {
        let found = self.failures.binary_search_by_key(&system, |f| f.system);
        found.map_or(SystemStatus::Solved, |at| self.failures[at].status)
    }
}
