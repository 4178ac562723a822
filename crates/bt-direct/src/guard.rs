//! faer called with care: its panics are caught and not printed, and it gets the threads of the caller's pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use bt_formats::buffers;
use faer::Par;

/// As many threads as the pool of the caller has, where products may be shared.
pub(crate) fn parallelism() -> Par {
    match rayon::current_num_threads() {
        0 | 1 => Par::Seq,
        _ if !buffers::may_be_shared() => Par::Seq,
        threads => Par::rayon(threads),
    }
}

/// [`parallelism`] where `par` wants several threads.
pub(crate) fn parallelism_of(par: bt_formats::Par) -> Par {
    if par == bt_formats::Par::Rayon { parallelism() } else { Par::Seq }
}

/// [`parallelism`] where so many flops are to be done that threads pay.
pub(crate) fn parallelism_for(flops: f64) -> Par {
    const FEW: f64 = 1e7;
    if flops < FEW { Par::Seq } else { parallelism() }
}

/// `par` for one operation on dense blocks where it has so many flops that threads pay, which have to be woken up for it.
pub(crate) fn worth(par: Par, flops: f64) -> Par {
    const FEW: f64 = 4e7;
    if flops < FEW { Par::Seq } else { par }
}

/// Runs `work`; a panic gives `None`, and if it comes from faer it is not printed.
pub(crate) fn quietly<R>(work: impl FnOnce() -> R) -> Option<R> {
    // The panic hook is global, so it is wrapped once, and silent only for faer's own files while this runs.
    static INSTALL: Once = Once::new();
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    INSTALL.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let in_faer = info.location().is_some_and(|l| l.file().contains("faer-"));
            if !(in_faer && RUNNING.load(Ordering::Relaxed) > 0) {
                previous(info);
            }
        }));
    });
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let result = catch_unwind(AssertUnwindSafe(work));
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    result.ok()
}
