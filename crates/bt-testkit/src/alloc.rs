//! A global allocator that counts, to show that a solve allocates nothing.
//!
//! ```
//! use bt_testkit::alloc::{CountingAllocator, count_allocations};
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let (v, count) = count_allocations(|| vec![1, 2, 3]);
//! assert_eq!((v.len(), count), (3, 1));
//! ```
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constant and without a destructor: reading it never allocates.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting allocations and reallocations of each thread.
///
/// A test program opts in with `#[global_allocator]`; [`is_counting`] tells whether it did.
pub struct CountingAllocator;

fn note() {
    // A thread that is being torn down has no counter any more and needs none.
    let _ = COUNT.try_with(|c| c.set(c.get() + 1));
}

// SAFETY: every method hands its arguments unchanged to `System`, which keeps the contract of `GlobalAlloc`; counting
// touches a thread-local integer only and neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: `ptr` came from `System` through this allocator, with this layout.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System` through this allocator, with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// What `f` returns, and how often it allocated on this thread (other threads are not seen).
///
/// Always 0 when [`CountingAllocator`] is not the program's allocator: see [`is_counting`].
pub fn count_allocations<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let before = COUNT.with(Cell::get);
    let result = f();
    (result, COUNT.with(Cell::get) - before)
}

/// Whether [`CountingAllocator`] is the program's allocator, found out by an allocation.
pub fn is_counting() -> bool {
    count_allocations(|| std::hint::black_box(Box::new(0u8))).1 > 0
}
