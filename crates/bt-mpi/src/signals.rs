//! Signals that end the program: the solve is asked to stop, which all ranks then agree on; after two seconds the process ends without that, rank 0
//! with a sentence and the others a moment later.
//!
//! mpirun passes SIGTERM on to all ranks and answers SIGINT with it. The thread that hears the signal makes no call of MPI.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use bt_formats::CancelToken;
use bt_parallel::Fault;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

/// How long ranks may take to agree.
const GRACE: Duration = Duration::from_secs(2);

/// The temporary file that exists now.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);
static CANCEL: OnceLock<CancelToken> = OnceLock::new();

/// Raised by the first signal.
pub fn cancel() -> CancelToken {
    CANCEL.get_or_init(CancelToken::new).clone()
}

/// Names the file to remove, or none any more.
pub fn set_temporary_file(path: Option<&Path>) {
    *TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner) = path.map(Path::to_owned);
}

/// Removes the output that was not finished.
pub fn remove_temporary_file() {
    if let Some(path) = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // It may be gone already.
        let _ = std::fs::remove_file(path);
    }
}

/// Says how an interrupted command ends, unless that was said.
pub fn tell_once(tell: impl FnOnce()) {
    static TOLD: Once = Once::new();
    TOLD.call_once(tell);
}

/// Hears signals on a thread of its own, which calls `late` where the ranks have not agreed in time.
///
/// # Errors
/// When the system refuses.
pub fn listen(late: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let refused = |error: std::io::Error| Fault::input(format!("cannot handle signals: {error}"));
    let cancel = cancel();
    let heard = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU];
    let mut signals = signal_hook::iterator::Signals::new(heard).map_err(refused)?;
    let wait = move || {
        if signals.forever().next().is_some() {
            cancel.cancel();
            std::thread::sleep(GRACE);
            remove_temporary_file();
            tell_once(late);
            std::process::exit(crate::INTERRUPTED.into());
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop).map_err(refused)
}
