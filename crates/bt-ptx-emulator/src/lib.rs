//! A stand-in for the CUDA driver: it interprets PTX on the host, so that kernels and everything that launches them can be
//! tested where there is no GPU.
//!
//! As a shared library it exports the driver's C functions (`cuInit`, `cuLaunchKernel`, …) that `cust` 0.3.2 and
//! `bt-kernels` call; as a Rust library it is a [`Device`]. It reads the PTX 6.3 for sm_70 that clang writes: about 70
//! instructions with their types. What it does not know it refuses when the module is loaded, with the line.
//!
//! # What it shows
//!
//! - The committed PTX computes what it should: arithmetic is IEEE 754's, bit for bit.
//! - Nothing depends on the order of threads and blocks: a seed ([`Settings::seed`]) chooses another one, and interrupts
//!   threads at other places.
//! - Every access lies in a live allocation, in the block's shared memory or the thread's own, and is aligned.
//! - Nothing depends on memory or registers that were never written: they are poisoned with NaN, and a branch on a
//!   predicate that was never set is a fault.
//! - Shared memory has no races: two threads of a block at one byte, one of them writing, need `bar.sync` between them, or
//!   `bar.warp.sync` within a warp. With [`Races::Everywhere`] global memory is watched as well, within each launch: there
//!   fences with strong accesses of a flag order too, and a missing fence is found; so is `ld.global.nc` of what the same
//!   launch writes. The detector of global memory keeps little, so it misses some races; what it reports is one.
//! - All threads of a block come to the same barrier; warp-level operations name lanes that come to them. Both are meant
//!   strictly: a thread that exits before a barrier of its block, and a lane that is named but absent, are faults.
//! - Launches end: deadlocks, threads that spin on memory that nobody writes, and launches beyond a budget of operations
//!   are faults.
//!
//! A fault names kernel, PTX line, block and thread.
//!
//! # What it cannot show
//!
//! - **Memory model.** All accesses are in one order; what hardware does to a race is not shown, only that there is one.
//! - **Concurrency.** Work is done when it is enqueued, in the order of the calls: streams never overlap, and a missing
//!   synchronisation between streams, or with the host, is not noticed.
//! - **The driver's compiler**, its faults, its registers and spills; occupancy counts threads, blocks and shared memory.
//! - **Speed**: 10⁸ operations take about a second.
//!
//! # Waiting for other blocks
//!
//! Blocks of a cooperative launch take turns, all of them; of other launches a few at a time, in no particular order. A
//! thread that waits for another block has to read with `ld.volatile` (or `.relaxed`, `.acquire`), or with `atom.cas` or
//! `atom.exch`: after each of them the others have their turn. A barrier of the grid is built from these: an atomic
//! addition, and one thread of each block that spins until all have come, between two `bar.sync`.
//!
//! # Settings
//!
//! `BLOCKTRI_EMULATOR_DEVICES` (1 to 16), `_SEED`, `_MEMORY` (bytes), `_BUDGET` (operations of a launch), `_MULTIPROCESSORS`,
//! `_GLOBAL_RACES` (0 or 1) and `_LAUNCHES` (those that a device starts before it refuses) are read by `cuInit`. Functions of the
//! shared library change them later, and tell what happened:
//!
//! ```c
//! void bt_emulator_set_seed(uint64_t);
//! void bt_emulator_set_devices(unsigned);              // before one is opened
//! void bt_emulator_set_memory(size_t);                 // of every device
//! void bt_emulator_set_memory_of(unsigned device, size_t);
//! void bt_emulator_set_budget(uint64_t);
//! void bt_emulator_set_multiprocessors(unsigned);
//! void bt_emulator_set_global_races(int);
//! void bt_emulator_set_launches(uint64_t);             // that are started from now on, before any is refused
//! int bt_emulator_last_fault(char *text, size_t size); // gives the length of the message
//! uint64_t bt_emulator_operations(void);               // of all launches
//! uint64_t bt_emulator_traffic(unsigned device);       // bytes of global memory, each access counted
//! uint64_t bt_emulator_flops_single(unsigned device);  // on f32; a fused product with its addition counts as two
//! uint64_t bt_emulator_flops_double(unsigned device);  // on f64
//! ```
//!
//! Both kinds of this library define the driver's symbols: a program that defines them too must not name this crate.

mod decode;
mod device;
mod driver;
mod error;
mod exec;
mod memory;
mod op;
mod ptx;
mod random;

pub use device::{
    Device, Flops, KernelId, KernelInfo, LaunchError, MAX_BLOCKS_PER_MULTIPROCESSOR, MAX_THREADS_PER_BLOCK,
    MAX_THREADS_PER_MULTIPROCESSOR, ModuleId, Races, Residency, SHARED_PER_BLOCK, SHARED_PER_MULTIPROCESSOR, Settings,
    Shape,
};
pub use error::{DeviceError, Fault, FaultKind, LoadError};
