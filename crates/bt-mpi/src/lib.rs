//! Floor 5 of blocktri: [`bt_parallel::Comm`] over MPI, and the program `blocktri-mpi`. No numerics.
//!
//! Without the feature `mpi` this crate is empty, so that the workspace builds on machines without MPI. With it the build needs an MPI
//! (OpenMPI, MPICH and their kin) with its headers, and libclang: on Debian `apt install libopenmpi-dev openmpi-bin libclang-dev`.
//!
//! ```text
//! mpirun -n 8 program ──▶ MpiComm::start() ──▶ every method of bt-parallel, on rows that the ranks have or read
//! ```

#[cfg(feature = "mpi")]
mod collectives;
#[cfg(feature = "mpi")]
mod comm;
#[cfg(feature = "mpi")]
mod messages;

#[cfg(feature = "mpi")]
pub use comm::MpiComm;
