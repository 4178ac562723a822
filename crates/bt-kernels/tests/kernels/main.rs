//! Tests of the kernels in one program, but for those that change or count what the stand-in driver does for all: each program compiles anew
//! what it calls of generic code.

mod band_lu;
mod bcsr;
mod bicgstab;
mod blas1;
mod block_lu;
mod cg;
mod gmres;
mod hbisa;
mod ilut;
mod offloaded;
mod preconditioner;
mod rbt;
mod spike;
mod spmv;
mod stationary;
mod tridiagonal;
mod tridiagonal_once;

#[path = "../support/mod.rs"]
mod support;
