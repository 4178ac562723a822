//! Progress on a terminal, on rank 0, and cancellation on all.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bt_formats::{CancelToken, Monitor, Progress};

use crate::signals;

/// What a command is watched by.
pub struct Watch {
    cancel: CancelToken,
    shown: bool,
    rtol: f64,
    last: Instant,
}

impl Watch {
    /// With the tolerance that progress is told against.
    pub fn new(rtol: f64, wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        Self { cancel: signals::cancel(), shown, rtol, last: Instant::now() }
    }
}

impl Monitor for Watch {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if self.shown && self.last.elapsed() >= Duration::from_millis(100) {
            self.last = Instant::now();
            let line = match progress {
                Progress::Iteration { index, residual } => {
                    format!("iteration {index}, residual {residual:.1e} of {:.0e}", self.rtol)
                }
                Progress::Step { phase, done, total } => format!("{phase} {done} of {total}"),
                _ => String::new(),
            };
            // A terminal that has gone needs no progress.
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
        self.cancel.observe(progress)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
