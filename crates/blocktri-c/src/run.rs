//! Where work runs: small work on the calling thread, other work in a pool of so many threads.
//!
//! Pools are kept by process and size, never rayon's global one, since the threads of a pool do not live on in a forked process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::status::{Failure, Result, blocktri_status};

/// Rows times right-hand sides up to which work stays on the calling thread.
const SMALL: usize = 512;
/// Threads at most.
const MOST_THREADS: usize = 1024;

/// Pools by process and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// The pool of so many threads; of as many as the machine has where that is 0.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);
    if threads > MOST_THREADS {
        return Err(Failure::argument(format!("{threads} threads are more than {MOST_THREADS}")));
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("blocktri-{i}")).build();
    let made = Arc::new(made.map_err(|e| Failure {
        status: blocktri_status::BLOCKTRI_OUT_OF_MEMORY,
        message: format!("no threads to be had: {e}"),
    })?);
    pools.insert(key, Arc::clone(&made));
    Ok(made)
}

/// Runs `work`, whose size is its rows times its right-hand sides, on `threads` threads.
pub(crate) fn run<R: Send>(threads: usize, size: usize, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    // Within a pool, as in a monitor that solves, work stays there.
    if size <= SMALL || rayon::current_thread_index().is_some() {
        return work();
    }
    pool(threads)?.install(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_the_threads_asked_for() {
        let threads =
            |asked, size| run(asked, size, || Ok(rayon::current_thread_index().map(|_| rayon::current_num_threads())));
        assert_eq!(threads(3, SMALL + 1).unwrap(), Some(3));
        assert_eq!(threads(3, SMALL).unwrap(), None);
        assert!(threads(MOST_THREADS + 1, SMALL + 1).unwrap_err().message.contains("more than 1024"));
    }
}
