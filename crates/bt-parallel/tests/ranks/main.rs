//! All tests of this crate in one program: each program compiles anew what it calls of generic code.

mod chain;
mod comm;
mod common;
mod costs;
mod csr;
mod hbisa;
mod krylov;
mod lines;
mod one_rank;
mod partition;
mod precond;
mod read;
mod spike;
mod stationary;
