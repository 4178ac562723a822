//! Floor 3 of blocktri: products and whole solvers on an NVIDIA GPU.
//!
//! The kernels are CUDA C++ in `kernels/`, compiled in advance to PTX that travels inside this crate; the driver is loaded
//! when the first [`Device`] is opened. Building needs no CUDA, and a program with this crate starts without a driver.
//!
//! Data stay on the device for a whole solve, scalars too; sums are trees of fixed shape, so that a run has the same bits
//! every time and on every chip. The residual that a solver reports is recomputed on the host from A.

mod band_lu;
mod bcsr;
mod bicgstab;
mod blas1;
mod block_jacobi;
mod block_lu;
mod cg;
mod checked;
mod device;
mod gmres;
mod hbisa;
mod ilu0;
mod ilut;
mod krylov;
mod offloaded;
mod places;
mod preconditioner;
mod rbt;
mod scaled;
mod spike;
mod spmv;
mod ssor_ai;
mod stationary;
mod sweep;
mod tridiagonal;
mod tridiagonal_once;

pub use band_lu::DeviceBandLu;
pub use bcsr::DeviceBcsr;
pub use bicgstab::DeviceBiCgStab;
pub use blas1::{dot, update};
pub use block_lu::DeviceBlockLu;
pub use cg::{DeviceCg, Schedule, SplitCg};
pub use checked::{DirectReport, SolvedBy};
pub use device::{Device, DeviceError, DeviceScalar, DeviceVec, Result};
pub use gmres::DeviceGmres;
pub use hbisa::{DeviceHbisa, SplitHbisa};
pub use offloaded::{Offloaded, arms};
pub use places::{Place, Shares};
pub use preconditioner::{DeviceInverse, DevicePreconditioner, InverseFacts, SearchFacts};
pub use rbt::DeviceRbt;
pub use spike::DeviceSpike;
pub use spmv::{DeviceCsr, DeviceDia, DeviceHybrid, RowRule};
pub use stationary::{ChainFault, stationary};
pub use tridiagonal::{BatchReport, BlockSolver, DeviceTridiagonalBatch};
pub use tridiagonal_once::DeviceTridiagonal;
