//! Floor 2 of blocktri: iterative solvers and preconditioners.

mod bicgstab;
mod blas1;
mod block_diagonal;
mod block_preconditioner;
mod cg;
mod gmres;
mod hbisa;
mod ilu0;
mod ilut;
mod incomplete_lu;
mod jacobi;
mod krylov;
mod preconditioner;
mod quasi;
mod triangular;

pub use bicgstab::BiCgStab;
pub use block_diagonal::BlockDiagonal;
pub use block_preconditioner::{BlockForm, BlockPreconditioner};
pub use cg::Cg;
pub use gmres::Gmres;
pub use hbisa::{Hbisa, Relaxation, StopRule, Sweep};
pub use ilu0::{DroppedFill, ilu0};
pub use ilut::{IlutOptions, ilut};
pub use incomplete_lu::IncompleteLu;
pub use jacobi::Jacobi;
pub use preconditioner::{Identity, Preconditioner, PreconditionerKind};
pub use quasi::QuasiBlockTridiagonal;
