//! Large arrays in huge pages: sweeps along factors end at every 4 KiB page otherwise, for the hardware that reads ahead and for its table
//! of addresses, and a page that is touched for the first time costs the system as much as reading it costs a loop.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::TryReserveError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes from which on memory is asked for in huge pages: two of them at least are whole ones.
const LARGE: usize = 4 << 20;

/// Asks the system (Linux) to back the memory of a vector of 4 MiB and more, spare capacity included, by huge pages. For
/// fresh memory, before it is written.
pub fn ask_for_huge_pages<T>(memory: &Vec<T>) {
    advise(memory.as_ptr().cast(), memory.capacity() * size_of::<T>());
}

/// `start` and `bytes` are those of memory that is the caller's, or `start` is null.
fn advise(start: *const u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= LARGE && !start.is_null() {
        const PAGE: usize = 4096;
        let start = start.addr();
        let (first, end) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
        // SAFETY: this advice changes no byte of any page. A system without huge pages refuses it, which changes nothing either.
        let _ = unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes, LARGE);
}

/// The system's allocator, which asks for huge pages for everything large. For programs:
///
/// ```
/// #[global_allocator]
/// static MEMORY: bt_formats::HugePages = bt_formats::HugePages;
/// assert_eq!(vec![1.0; 1 << 20].iter().sum::<f64>(), f64::from(1 << 20));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

impl HugePages {
    /// From now on all threads take memory from one heap, which grows by what is missing and keeps what is given back for all of them, up to
    /// 64 MiB at its end; each would begin heaps of its own, of at most 64 MiB, and arrays of some hundred kilobytes would be pages that are fresh
    /// each time (glibc). For the first line of a program with few threads.
    pub fn share_one_heap() {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        for (what, value) in
            [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, 32 << 20), (libc::M_TRIM_THRESHOLD, 64 << 20)]
        {
            // SAFETY: it changes where memory is taken from, and none that has been taken.
            let _ = unsafe { libc::mallopt(what, value) };
            KEEPS.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether this program keeps what is given back.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Gives to the system what the program's heap keeps, if it does.
pub(crate) fn give_back() -> bool {
    let keeps = KEEPS.load(Ordering::Relaxed);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if keeps {
        // SAFETY: it changes no memory that is taken.
        let _ = unsafe { libc::malloc_trim(0) };
    }
    keeps
}

// SAFETY: all memory is the system's, which keeps the contract; the advice does not change it.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very function.
        let memory = unsafe { System.alloc(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { System.alloc_zeroed(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { System.realloc(memory, layout, size) };
        advise(memory, size);
        memory
    }
}

/// `len` zeros, in huge pages where they are many. Memory that comes fresh from the system is clear, and real numbers are not written once more.
///
/// # Errors
/// When there is not the memory.
///
/// ```
/// assert_eq!(bt_formats::zeros::<f64>(3).unwrap(), [0.0; 3]);
/// assert!(bt_formats::zeros::<f64>(usize::MAX).is_err());
/// ```
pub fn zeros<T: Copy + Default>(len: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(len)?;
    if len.saturating_mul(size_of::<T>()) < LARGE {
        values.resize(len, T::default());
        return Ok(values);
    }
    // That there is as much is known now; a vector made of zeros ends the program where there is not.
    drop(values);
    let values = vec![T::default(); len];
    ask_for_huge_pages(&values);
    Ok(values)
}
