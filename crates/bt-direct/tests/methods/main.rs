//! All tests of this crate but one, in one program: each program compiles anew what it calls of generic code, and links all libraries.

use bt_testkit::alloc::CountingAllocator;

mod band_cholesky;
mod band_lu;
mod band_nopivot;
mod batch;
mod batch_band;
mod block_cholesky;
mod block_cyclic;
mod block_lu;
mod block_lu_across;
mod block_rbt;
mod bordered;
mod columns;
mod common;
mod condition;
mod contracts;
mod cyclic;
mod error_bounds;
mod inertia;
mod lowered;
mod memory;
mod rbt;
mod refactor;
mod refine;
mod selected_inverse;
mod sparse_cholesky;
mod sparse_ldl;
mod sparse_lu;
mod sparse_lu_blocked;
mod sparse_qr;
mod sparse_threads;
mod spike;
mod spike_tridiagonal;
mod structures;
mod thomas;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
