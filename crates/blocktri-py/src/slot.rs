//! A value that one caller has at a time, taken on the thread of the caller.
//!
//! Work in a pool must not wait for a lock: a worker that waits inside parallel work may pick up other work in between, and that would wait
//! for what its own thread holds. So what work needs is taken before the work is handed over, and goes back when the work is done, also
//! where its caller has left it behind.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Between two looks at the signals.
const TICK: Duration = Duration::from_millis(50);
/// For a worker of a pool, which may be what the holder waits for.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    /// Addresses of what the work on this thread holds.
    static HELD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The value, or nothing while it is taken.
pub struct Slot<T>(Arc<(Mutex<Option<T>>, Condvar)>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send> Slot<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new((Mutex::new(Some(value)), Condvar::new())))
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Waits until the value is there, and takes it.
    ///
    /// # Errors
    /// What a signal handler raised; `RuntimeError` where the work that called this function has the value, or where a worker of a pool
    /// waited for too long.
    pub fn take(&self, py: Python<'_>) -> PyResult<Taken<T>> {
        if HELD.with_borrow(|held| held.contains(&self.address())) {
            return Err(PyRuntimeError::new_err("the object is in use by the solve that called this function"));
        }
        let start = Instant::now();
        loop {
            let found = py.detach(|| {
                let (value, returned) = &*self.0;
                let value = value.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = returned.wait_timeout_while(value, TICK, |value| value.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            if found.is_some() {
                return Ok(Taken { slot: self.clone(), value: found });
            }
            if rayon::current_thread_index().is_some() && start.elapsed() > PATIENCE {
                return Err(PyRuntimeError::new_err(
                    "the object is in use by another thread, which does not give it back",
                ));
            }
            py.check_signals()?;
        }
    }
}

/// A value on its way; it goes back when this is dropped.
pub struct Taken<T: Send> {
    slot: Slot<T>,
    value: Option<T>,
}

impl<T: Send> Taken<T> {
    /// Runs `work` on this thread, with a mark that it holds the value.
    pub fn held<R>(&mut self, work: impl FnOnce(&mut T) -> R) -> R {
        struct Unmark;
        impl Drop for Unmark {
            fn drop(&mut self) {
                HELD.with_borrow_mut(Vec::pop);
            }
        }
        HELD.with_borrow_mut(|held| held.push(self.slot.address()));
        let _unmark = Unmark;
        work(self)
    }
}

impl<T: Send> Drop for Taken<T> {
    fn drop(&mut self) {
        let (value, returned) = &*self.slot.0;
        *value.lock().unwrap_or_else(PoisonError::into_inner) = self.value.take();
        returned.notify_one();
    }
}

impl<T: Send> Deref for Taken<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> DerefMut for Taken<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is there until it is dropped")
    }
}
