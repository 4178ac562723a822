//! `blocktri-mpi` under mpirun: answers beside those of one rank or by hand, exit codes, faults, what is left on the disk, and memory.
//!
//! Every run has a limit of time: nobody hangs. All in one program, which is linked once.

mod answers;
mod common;
#[cfg(feature = "cuda")]
mod devices;
mod faults;
mod reports;
mod reproduce;
mod signals;
mod stationary;
