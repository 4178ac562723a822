//! All tests of the facade in one program: each program compiles anew what it calls of generic code.

use bt_testkit::alloc::CountingAllocator;

mod auto;
mod choice;
mod cloud;
mod common;
mod components;
mod formats;
mod growth;
mod range;
mod solver;
mod units;
mod verdicts;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
