//! Lines of memory: numbers that begin with one, lines read or asked for before they are worked on; and loops that are functions of
//! their own.

use std::ops::{Deref, DerefMut, Range};

use bt_formats::{Scalar, ScalarKind, prefetch};
use pulp::{Simd, WithSimd};

use crate::error::Result;
use crate::memory::zeros;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Numbers of which the first begins a cache line. The allocator puts large arrays 16 bytes behind one, where every other vector of 32
/// bytes, and every one of 64, is in two lines.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    values: Vec<T>,
    start: usize,
}

impl<T: Copy + Default> Lines<T> {
    /// # Errors
    /// [`Error::TooLarge`](bt_formats::Error::TooLarge) when there is not the memory.
    pub(crate) fn zeros(n: usize) -> Result<Self> {
        let room = LINE / size_of::<T>() - 1;
        let mut values: Vec<T> = zeros(n.saturating_add(room))?;
        // A number longer than its alignment may begin no line.
        let start = values.as_ptr().align_offset(LINE).min(room);
        values.truncate(start + n);
        Ok(Self { values, start })
    }
}

impl<T> From<Vec<T>> for Lines<T> {
    /// These numbers, wherever they begin.
    fn from(values: Vec<T>) -> Self {
        Self { values, start: 0 }
    }
}

impl<T: Copy + Default> Clone for Lines<T> {
    fn clone(&self) -> Self {
        let mut values = vec![T::default(); self.len() + LINE / size_of::<T>() - 1];
        let start = values.as_ptr().align_offset(LINE).min(values.len() - self.len());
        values.truncate(start + self.len());
        values[start..].copy_from_slice(self);
        Self { values, start }
    }
}

impl<T> Deref for Lines<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values[self.start..]
    }
}

impl<T> DerefMut for Lines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..]
    }
}

/// Bytes along which the hardware reads ahead at most: a page.
pub(crate) const PAGE: usize = 4096;

/// Reads a value of every cache line in order, which leaves them in the second-level cache. The hardware looks ahead along
/// a few long streams, and not along the dozens of short ones of systems or pieces side by side.
pub(crate) fn read<T: Copy>(values: &[T]) {
    for v in values.iter().step_by(LINE / size_of::<T>()) {
        std::hint::black_box(*v);
    }
}

/// Asks for the cache lines of `values[part]`, as far as there are such values.
#[inline(always)]
pub(crate) fn fetch<T>(values: &[T], part: Range<usize>) {
    let mut at = part.start;
    while at < part.end {
        prefetch(values, at);
        at += LINE / size_of::<T>();
    }
}

/// Runs loops over arrays of T on the instruction sets that they gain by: for real numbers all there are. Complex numbers are taken
/// apart by shuffles, of which vectors of 512 bits make so many that loops take up to eight times as long with them (measured).
#[inline(always)]
pub(crate) fn dispatch<T: Scalar, W: WithSimd>(work: W) -> W::Output {
    if T::IS_REAL { bt_simd::dispatch(work) } else { bt_simd::dispatch_short(work) }
}

/// Whether T is of this kind: a constant, so that what it rules out is not compiled.
pub(crate) const fn is<T: Scalar>(kind: ScalarKind) -> bool {
    T::KIND as u8 == kind as u8
}

/// A loop as a function of its own: the compiler then has registers for it, and not for all of its surroundings at once.
#[inline(never)]
pub(crate) fn apart<S: Simd, W: WithSimd>(s: S, work: W) -> W::Output {
    s.vectorize(work)
}
