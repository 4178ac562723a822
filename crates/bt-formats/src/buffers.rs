//! The buffers of faer's products, taken while there is room.
//!
//! faer keeps a buffer for each thread, twice the size of the third cache (64 MiB where that has 32). A thread takes it at
//! its first large product, and the program ends there when it cannot be had: the allocation has no way to fail. Under
//! a limit on the address space (`ulimit -v`) a program therefore starts as many threads as leave seven eighths of the room to
//! its problem, and has them take their buffers at the start; [`memory::ask`] then judges by what is left beside them.

use std::cell::Cell;
use std::sync::Mutex;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use gemm_common::cache::CACHE_INFO;

use crate::error::{Error, Result};
use crate::memory;

/// The number of threads whose buffers take an eighth of the address space at most, one more beside them counted; `None` where the
/// address space has no limit, every processor's thread has room, or not one has.
pub fn threads_with_room() -> Option<usize> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let room = room_for(memory::address_space()?, of_a_thread());
    (1..threads).contains(&room).then_some(room)
}

/// Takes the buffers of this thread and of those of the current pool, where the address space has a limit and an eighth of it is room
/// for them. Where it is not, products may end the program later; smaller problems go without them.
pub fn take() {
    let Some(left) = memory::address_space() else { return };
    if room_for(left, of_a_thread()) < rayon::current_num_threads() {
        return;
    }
    take_all();
}

/// Whether products may be formed in this thread and shared with the current pool: where the address space had no limit when this was first
/// asked, or the buffers of all these threads are there now.
pub fn is_at_hand() -> bool {
    !memory::has_limited_addresses() || take_all()
}

/// Whether one product may be shared by several threads. A thread that waits for the parts of the others may begin another product
/// meanwhile, with a second buffer: there is none where the address space is limited.
pub fn may_be_shared() -> bool {
    !memory::has_limited_addresses()
}

/// Asks for the buffers of this thread and of the current pool before a method forms products of operands with up to so many rows.
///
/// # Errors
/// [`Error::NotEnoughMemory`] where the address space is limited and has no room for it.
pub fn ask(rows: usize, what: &str) -> Result<()> {
    /// Rows of operands whose products go without it, as measured.
    const SMALL: usize = 32;
    if rows <= SMALL || is_at_hand() {
        return Ok(());
    }
    let what = format!("the buffer for products of {what}, twice the last cache,");
    Err(Error::NotEnoughMemory { what, needed: of_a_thread(), available: memory::address_space().unwrap_or(0) })
}

/// Takes the buffers of this thread and of those of the current pool, while there is room.
fn take_all() -> bool {
    // A thread that starts takes room, too; all of them have, once each was here.
    rayon::broadcast(|_| ());
    take_own() && rayon::broadcast(|_| take_own()).into_iter().all(|taken| taken)
}

/// Takes the buffer of this thread if it can be had, one thread after the other: each looks whether there is room, and takes it.
fn take_own() -> bool {
    thread_local!(static TAKEN: Cell<bool> = const { Cell::new(false) });
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    // Looked at, since a reservation that nobody uses may be left out by the compiler.
    let is_had = || std::hint::black_box(Vec::<u8>::new()).try_reserve_exact(of_a_thread() as usize + SPARE).is_ok();
    if !TAKEN.get() && is_had() {
        multiply();
        TAKEN.set(true);
    }
    TAKEN.get()
}

/// What a product takes beside its buffer, by far, and the 64 MiB of addresses that a thread of glibc may reserve for itself meanwhile.
const SPARE: usize = 65 << 20;

/// Bytes of one buffer: both operands are packed into as much as the third cache holds.
fn of_a_thread() -> u64 {
    2 * CACHE_INFO[2].cache_bytes as u64
}

/// The least product that is not done without a buffer, by far.
fn multiply() {
    let a = Mat::<f64>::zeros(64, 64);
    let mut c = a.clone();
    matmul(c.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), 1.0, Par::Seq);
}

/// One less than there are buffers in an eighth of `left`.
fn room_for(left: u64, each: u64) -> usize {
    (left / 8 / each.max(1)).saturating_sub(1).min(1 << 16) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_eighths_of_the_room_are_left_to_the_problem() {
        assert_eq!(room_for(4 << 30, 64 << 20), 7);
        assert_eq!(room_for(800 << 20, 64 << 20), 0);
        assert_eq!(room_for(u64::MAX, 0), 1 << 16);
    }
}
