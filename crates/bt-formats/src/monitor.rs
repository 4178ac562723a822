//! Monitors: progress, history and cancellation of a running solve are one thing, an observer that may stop it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a running method reports.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// An iterative method finished iteration `index` (0 is the start) with this residual or update norm.
    Iteration {
        /// Iterations done.
        index: usize,
        /// The norm that the stopping rule looks at, relative to its baseline.
        residual: f64,
    },
    /// The iterations told from here on are those of this right-hand side, from 0.
    Column(usize),
    /// A direct method finished `done` of `total` units (columns, blocks) of a phase.
    Step {
        /// Name of the phase, as in the report's times.
        phase: &'static str,
        /// Units done.
        done: usize,
        /// Units in all.
        total: usize,
    },
}

/// Observes a solve and may end it. `ControlFlow::Break` asks it to stop: an iterative method then returns its best
/// iterate with the outcome `Stopped`, a factorization returns an error that says so.
///
/// Closures are monitors; `()` watches nothing.
///
/// ```
/// use std::ops::ControlFlow;
/// use bt_formats::{Monitor, Progress};
/// let mut history = Vec::new();
/// let mut monitor = |p: Progress| {
///     if let Progress::Iteration { residual, .. } = p { history.push(residual) }
///     ControlFlow::Continue(())
/// };
/// assert!(monitor.observe(Progress::Iteration { index: 0, residual: 1.0 }).is_continue());
/// assert_eq!(history, [1.0]);
/// ```
pub trait Monitor {
    /// Called after every iteration or unit of work.
    fn observe(&mut self, progress: Progress) -> ControlFlow<()>;
}

impl Monitor for () {
    fn observe(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(Progress) -> ControlFlow<()>> Monitor for F {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// Tells the column, then its progress: both, whatever the monitor says to the first.
///
/// ```
/// use std::ops::ControlFlow;
/// use bt_formats::{Progress, observe_column};
/// let mut told = Vec::new();
/// let mut monitor = |p: Progress| {
///     told.push(p);
///     ControlFlow::Break(())
/// };
/// let progress = Progress::Iteration { index: 0, residual: 1.0 };
/// assert!(observe_column(&mut monitor, 2, progress).is_break());
/// assert_eq!(told, [Progress::Column(2), progress]);
/// ```
pub fn observe_column(monitor: &mut dyn Monitor, column: usize, progress: Progress) -> ControlFlow<()> {
    let first = monitor.observe(Progress::Column(column));
    let second = monitor.observe(progress);
    if first.is_break() { first } else { second }
}

/// A flag that another thread (or a signal handler) raises to stop a solve at its next observation.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A lowered flag.
    pub fn new() -> Self {
        Self::default()
    }
    /// Raises the flag, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether the flag is up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Monitor for CancelToken {
    fn observe(&mut self, _: Progress) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
