//! Work space of solves, which may run from several threads at once and allocate nothing once each has run.

use std::sync::{Mutex, PoisonError};

/// Threads for which solves find room without a larger list.
const THREADS: usize = 64;

/// Work space: one for each thread that has solved at the same time as others.
#[derive(Debug)]
pub(crate) struct Pool<W>(Mutex<Vec<W>>);

impl<W> Pool<W> {
    pub fn new() -> Self {
        Self(Mutex::new(Vec::with_capacity(THREADS)))
    }

    /// What was given back last, which is still in the cache; a new one where all are in use.
    pub fn take(&self, make: impl FnOnce() -> W) -> W {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(make)
    }

    /// For the next one.
    pub fn put(&self, work: W) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }
}
