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
    // Bytes taken less bytes given back, and the largest value so far.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counting allocations and reallocations of each thread.
///
/// A test program opts in with `#[global_allocator]`; [`is_counting`] tells whether it did.
pub struct CountingAllocator;

fn note() {
    // A thread that is being torn down has no counter any more and needs none.
    let _ = COUNT.try_with(|c| c.set(c.get() + 1));
}

fn hold(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every method hands its arguments unchanged to `System`, which keeps the contract of `GlobalAlloc`; counting
// touches thread-local integers only and neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        hold(layout.size() as i64);
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        hold(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        hold(new_size as i64 - layout.size() as i64);
        // SAFETY: `ptr` came from `System` through this allocator, with this layout.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
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

/// What `f` returns, and the most bytes it held at one time beyond those held before, on this thread.
///
/// ```
/// use bt_testkit::alloc::{CountingAllocator, peak_bytes};
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let (v, peak) = peak_bytes(|| { drop(vec![0u8; 1000]); vec![0u8; 300] });
/// assert_eq!((v.len(), peak), (300, 1000));
/// ```
pub fn peak_bytes<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = f();
    (result, (PEAK.with(Cell::get) - before).max(0) as usize)
}

/// Whether [`CountingAllocator`] is the program's allocator, found out by an allocation.
pub fn is_counting() -> bool {
    count_allocations(|| std::hint::black_box(Box::new(0u8))).1 > 0
}
