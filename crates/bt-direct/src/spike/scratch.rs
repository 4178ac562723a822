//! Buffers for solves that run on `&self`: one is there from the start, a further thread that solves at the same time
//! brings its own, once. Nobody ever waits for a buffer, so nested parallel work cannot block itself.

use std::sync::{Mutex, PoisonError};

use bt_formats::{Scalar, zero};

use crate::error::Result;
use crate::memory::zeros;

/// Buffers of one length.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    len: usize,
    pool: Mutex<Vec<Vec<T>>>,
}

impl<T: Scalar> Scratch<T> {
    pub(crate) fn new(len: usize) -> Result<Self> {
        let mut pool = Vec::with_capacity(16);
        pool.push(zeros(len)?);
        Ok(Self { len, pool: Mutex::new(pool) })
    }

    /// What `f` makes of a buffer, whose contents are arbitrary.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut [T]) -> R) -> R {
        let pool = || self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = pool().pop();
        let mut buffer = taken.unwrap_or_else(|| vec![zero(); self.len]);
        let result = f(&mut buffer);
        pool().push(buffer);
        result
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}
