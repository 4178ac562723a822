//! The buffers of faer's products, taken while there is room.
//!
//! faer keeps a buffer for each thread, twice the size of the third cache (64 MiB where that has 32). A thread takes it at
//! its first large product, and the program ends there when it cannot be had: the allocation has no way to fail. Under
//! a limit on the address space (`ulimit -v`) a program therefore starts as many threads as leave half of the room to
//! its problem, and has them take their buffers at the start; [`memory::ask`] then judges by what is left beside them.

use std::sync::Mutex;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use gemm_common::cache::CACHE_INFO;

use crate::memory;

/// The number of threads whose buffers leave half of the address space, one more beside them counted; `None` where the
/// address space has no limit or every processor's thread has room.
pub fn threads_with_room() -> Option<usize> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let room = room_for(memory::address_space()?, of_a_thread());
    (room < threads).then_some(room)
}

/// Takes the buffers of this thread and of those of the current pool, where the address space has a limit and as long
/// as it has room for them.
pub fn take() {
    if memory::address_space().is_none() {
        return;
    }
    // One thread after the other: each looks whether its buffer can be had, and takes it.
    let turn = Mutex::new(());
    let take = || {
        let _turn = turn.lock();
        if Vec::<u8>::new().try_reserve_exact(of_a_thread() as usize + SPARE).is_ok() {
            multiply();
        }
    };
    take();
    rayon::broadcast(|_| take());
}

/// What a product takes beside its buffer, by far.
const SPARE: usize = 1 << 20;

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

/// At least one thread, else one less than there are buffers in half of `left`.
fn room_for(left: u64, each: u64) -> usize {
    (left / 2 / each.max(1)).saturating_sub(1).clamp(1, 1 << 16) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_room_is_left_to_the_problem() {
        assert_eq!(room_for(800 << 20, 64 << 20), 5);
        assert_eq!(room_for(100 << 20, 64 << 20), 1);
        assert_eq!(room_for(u64::MAX, 0), 1 << 16);
    }
}
