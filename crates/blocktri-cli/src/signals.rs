//! Signals that end the program: told to whoever waits, so that temporary files go.
//!
//! A signal that is ignored at the start stays ignored: `nohup` relies on it for SIGHUP, shells without job control
//! for the SIGINT of background jobs. SIGXFSZ (`ulimit -f`) is caught and forgotten, so that the write that meets the
//! limit fails with a reason instead. SIGABRT, by which an allocation without a way to fail ends a program after its
//! message, ends this one with the exit code of too little memory, without an image of it on the disk.

use std::io;
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool, mpsc};

#[cfg(unix)]
use crate::exit::Exit;

/// Calls `tell` on every signal that ends programs, from a thread of its own.
///
/// # Errors
/// When the system refuses.
#[cfg(unix)]
pub fn listen(tell: impl Fn() + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{
        SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
    };
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    signal_hook::flag::register_conditional_shutdown(
        SIGABRT,
        Exit::Usage.code().into(),
        Arc::new(AtomicBool::new(true)),
    )?;
    let ending = [SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU];
    let heard = ending.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = signal_hook::iterator::Signals::new(heard)?;
    // The thread takes its memory before anybody counts how much is left.
    let (started, is_up) = mpsc::channel();
    let wait = move || {
        let _ = started.send(());
        signals.forever().for_each(|_| tell());
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait)?;
    is_up.recv().map_err(io::Error::other)
}

/// Calls `tell` on Ctrl-C and its like.
///
/// # Errors
/// When the system refuses.
#[cfg(not(unix))]
pub fn listen(tell: impl Fn() + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(tell).map_err(io::Error::other)
}

/// The set of ignored signals in a `/proc/self/status`, signal k as bit k − 1; none where there is no such file.
#[cfg(unix)]
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_their_mask() {
        // SIGHUP (1) and SIGPIPE (13).
        assert_eq!(ignored("Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored("SigIgn:\tnonsense\n"), 0);
        assert_eq!(ignored(""), 0);
    }
}
