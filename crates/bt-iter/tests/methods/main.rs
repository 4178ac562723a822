//! All tests of this crate in one program: each program compiles anew what it calls of generic code.

use bt_testkit::alloc::CountingAllocator;

mod allocations;
mod arms;
mod band_spike;
mod block_ssor_ai;
mod common;
mod cyclically_reduced;
mod hbisa;
mod hbisa_accelerated;
mod incomplete;
mod krylov;
mod lockstep;
mod mixed_precision;
mod preconditioners;
mod refactor;
mod units;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
