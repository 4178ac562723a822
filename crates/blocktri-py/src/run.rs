//! How work runs: without the interpreter's lock, on threads that a fork does not lose, and so that Ctrl-C ends it.
//!
//! Small work runs on the calling thread, and so does work that a call of Python from inside a pool asks for. Other work runs in
//! a pool of this module while the calling thread waits and asks for signals every 50 ms. On a signal the work is told to stop,
//! and is left behind where it has not stopped half a second later: it owns what it reads, and its result is dropped. Pools are
//! kept by process and size, never rayon's global one, since the threads of a pool do not live on in a forked process.

use std::any::Any;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blocktri::{CancelToken, Monitor, Progress};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Rows times right-hand sides up to which work stays on the calling thread.
const SMALL: usize = 512;
/// Between two looks at the signals.
const TICK: Duration = Duration::from_millis(50);
/// For work to stop after a signal.
const GRACE: Duration = Duration::from_millis(500);
/// Threads at most.
const MOST_THREADS: usize = 1024;

/// Whether this process was forked off one that may have had threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Called in a child process after a fork.
#[pyfunction]
pub fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Pools by process and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// The pool of so many threads, or of as many as the machine has.
fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);
    let threads = threads.unwrap_or(0);
    if threads > MOST_THREADS {
        return Err(PyValueError::new_err(format!("{threads} threads are more than {MOST_THREADS}")));
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("blocktri-{i}")).build();
    let made = Arc::new(made.map_err(|e| PyRuntimeError::new_err(format!("no threads to be had: {e}")))?);
    pools.insert(key, Arc::clone(&made));
    Ok(made)
}

/// The size of work on the structures whose work is known from their sizes: what takes longer than a few milliseconds is not small.
pub fn size_of_flops(flops: f64) -> usize {
    const FLOPS: f64 = 2e7;
    if flops <= FLOPS { 0 } else { usize::MAX }
}

/// Runs `work` on what the caller has borrowed, on `threads` threads. It must look at the monitor often: it is never left behind.
///
/// # Errors
/// As [`run`].
pub fn run_borrowed<R: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&mut dyn Monitor) -> R + Send,
) -> PyResult<R> {
    if rayon::current_thread_index().is_some() {
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut ()))));
        return done.map_err(|panic| bug(&*panic));
    }
    let pool = pool(threads)?;
    let token = CancelToken::new();
    let mut watched = token.clone();
    let (send, receive) = channel();
    let receive = Mutex::new(receive);
    let wait = |time: Duration| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time);
    thread::scope(|scope| {
        scope.spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&mut watched))));
            // The caller waits for it.
            let _ = send.send(done);
        });
        let mut raised = None;
        loop {
            match py.detach(|| wait(TICK)) {
                Ok(done) => return raised.map_or_else(|| done.map_err(|panic| bug(&*panic)), Err),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("a thread of blocktri died"));
                }
            }
            if raised.is_none()
                && let Err(error) = py.check_signals()
            {
                token.cancel();
                raised = Some(error);
            }
        }
    })
}

/// Runs `work`, whose size is its rows times its right-hand sides, on `threads` threads.
///
/// # Errors
/// What a signal handler raised, `KeyboardInterrupt` among it; `RuntimeError` where the work panicked, which is a bug.
pub fn run<R: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    size: usize,
    work: impl FnOnce(&mut dyn Monitor) -> R + Send + 'static,
) -> PyResult<R> {
    // A worker that waited for others of its pool could wait for ever.
    let on_worker = rayon::current_thread_index().is_some();
    if on_worker || (size <= SMALL && threads.is_none() && !FORKED.load(Ordering::Relaxed)) {
        let mut signals = Signals { next: Instant::now() + TICK, raised: None };
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut signals))));
        if let Some(raised) = signals.raised {
            return Err(raised);
        }
        return done.map_err(|panic| bug(&*panic));
    }
    let pool = pool(threads)?;
    let token = CancelToken::new();
    let (send, receive) = channel();
    let mut watched = token.clone();
    pool.spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut watched)));
        // Nobody listens any more after a signal.
        let _ = send.send(done);
    });
    let receive = Mutex::new(receive);
    let wait = |time: Duration| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time);
    loop {
        match py.detach(|| wait(TICK)) {
            Ok(done) => return done.map_err(|panic| bug(&*panic)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("a thread of blocktri died")),
        }
        if let Err(raised) = py.check_signals() {
            token.cancel();
            // Dropped either way; the wait spares the machine two solves at once where the first stops soon.
            let _ = py.detach(|| wait(GRACE));
            return Err(raised);
        }
    }
}

/// The exception for a panic.
fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("a bug in blocktri: {}", text.unwrap_or("it panicked")))
}

/// Asks for signals now and then, on the thread that may.
struct Signals {
    next: Instant,
    raised: Option<PyErr>,
}

impl Monitor for Signals {
    fn observe(&mut self, _: Progress) -> ControlFlow<()> {
        if self.raised.is_none() && Instant::now() >= self.next {
            self.next = Instant::now() + TICK;
            // A path to the method would be of one lifetime.
            #[allow(clippy::redundant_closure_for_method_calls, clippy::redundant_closure)]
            let checked = Python::attach(|py| py.check_signals());
            self.raised = checked.err();
        }
        if self.raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
