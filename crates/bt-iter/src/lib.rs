//! Floor 2 of blocktri: iterative solvers and preconditioners.
//!
//! Feature `compiled`: as that of [`bt_direct`].

mod arms;
mod balanced;
mod band_spike;
mod bicgstab;
mod blas1;
mod block_diagonal;
mod block_preconditioner;
mod block_set;
mod block_ssor_ai;
mod cg;
mod cyclically_reduced;
mod gmres;
mod gram_schmidt;
mod hbisa;
mod hermitian;
mod ic0;
mod ilu0;
mod iluk;
mod ilut;
mod incomplete_lu;
#[cfg(all(any(debug_assertions, feature = "compiled"), not(test)))]
#[doc(hidden)]
pub mod instances;
mod jacobi;
mod krylov;
mod lockstep;
mod mixed_precision;
mod pattern_lu;
mod preconditioner;
mod quasi;
mod recurrence;
mod schwarz;
mod ssor;
mod ssor_ai;
mod ssor_ai_masked;
mod system;
mod triangular;

pub use arms::{Arms, ArmsOptions, LastFactors, LastLevel, LastSolver, LevelFacts, RowOrder};
pub use balanced::Balanced;
pub use band_spike::{BandOrder, BandSpike, BandSpikeOptions, BandSpikeReport, BandWidth, Diagonal};
pub use bicgstab::BiCgStab;
pub use block_diagonal::{BlockDiagonal, for_blocks};
pub use block_preconditioner::{BlockForm, BlockPreconditioner};
pub use block_ssor_ai::BlockSsorAi;
pub use cg::Cg;
pub use cyclically_reduced::{CyclicallyReduced, OnReduced};
pub use gmres::Gmres;
pub use hbisa::{Hbisa, Radius, Rate, Relaxation, StopRule, Sweep};
pub use hermitian::{Asymmetry, asymmetry, positive_diagonal};
pub use ic0::{Ic0, ic0};
pub use ilu0::{DroppedFill, ilu0};
pub use iluk::iluk;
pub use ilut::{IlutOptions, column_units, ilut};
pub use incomplete_lu::{IncompleteLu, TriangularSolves};
pub use jacobi::Jacobi;
pub use krylov::{Watch, judge, meets};
pub use lockstep::{ColumnMonitor, Lockstep};
pub use mixed_precision::MixedPrecision;
pub use preconditioner::{Identity, Preconditioner, PreconditionerKind, Refactor};
pub use quasi::QuasiBlockTridiagonal;
pub use schwarz::{Factored, Overlap, Schwarz, scale_of_rows};
pub use ssor::ssor;
pub use ssor_ai::{Series, SsorAi, Triangles};
pub use ssor_ai_masked::SsorAiMasked;
pub use system::KrylovSystem;
