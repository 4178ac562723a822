//! Watching a solve: cancellation, the residual history, and a progress bar on a terminal.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use blocktri::{CancelToken, Monitor, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line on stderr that says what is going on; nothing where stderr is no terminal.
pub struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    /// A spinner with a message, shown when `wanted` and stderr is a terminal.
    pub fn spinner(wanted: bool, message: String) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.set_message(message);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar: Some(bar) }
    }

    /// What it says.
    fn message(&self) -> String {
        self.bar.as_ref().map(ProgressBar::message).unwrap_or_default()
    }

    /// Turns into a bar, filled by a fraction.
    pub fn show(&self, fraction: f64, message: String) {
        let Some(bar) = &self.bar else { return };
        if bar.length().is_none() {
            bar.set_length(STEPS);
            if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan/dim} {msg} [{elapsed}]") {
                bar.set_style(style);
            }
        }
        // A NaN casts to 0.
        bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        bar.set_message(message);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Residuals of one right-hand side: (iteration, relative residual).
pub type Curve = Vec<(usize, f64)>;

/// The monitor of the command.
pub struct Watch {
    cancel: CancelToken,
    line: Line,
    tolerance: f64,
    /// One curve for each right-hand side, where they are wanted.
    curves: Option<Vec<Curve>>,
    /// The right-hand side being told of, where the method says which.
    column: Option<usize>,
    throttle: Throttle,
}

/// Terminals need no more than this.
const REDRAW: Duration = Duration::from_millis(100);
/// Length of the bar, in steps.
const STEPS: u64 = 1000;

/// Lets what can be drawn through, ten times a second at most.
struct Throttle {
    drawn: Instant,
}

impl Throttle {
    /// Whether this is to be drawn now. Which right-hand side it is about is no picture: it must not use up the turn of
    /// the iteration that follows.
    fn lets_through(&mut self, progress: Progress, now: Instant) -> bool {
        let drawable = matches!(progress, Progress::Iteration { .. } | Progress::Step { .. });
        let due = drawable && now.saturating_duration_since(self.drawn) >= REDRAW;
        if due {
            self.drawn = now;
        }
        due
    }
}

/// How far it is, from 0 to 1, and in words where the line does not say already what goes on.
fn frame(progress: Progress, column: Option<usize>, tolerance: f64) -> Option<(f64, Option<String>)> {
    match progress {
        Progress::Iteration { index, residual } => {
            // Residuals fall geometrically: the bar is linear in the logarithm.
            let fraction = residual.ln() / tolerance.ln();
            let which = column.filter(|j| *j > 0).map(|j| format!("right-hand side {}, ", j + 1)).unwrap_or_default();
            Some((fraction, Some(format!("{which}iteration {index}, residual {residual:.1e} of {tolerance:.0e}"))))
        }
        Progress::Step { phase, done, total } => {
            let what = match phase {
                "read" => None,
                "setup" => Some("factoring"),
                other => Some(other),
            };
            Some((done as f64 / total.max(1) as f64, what.map(str::to_owned)))
        }
        _ => None,
    }
}

impl Watch {
    /// Stops when `cancel` says so.
    pub fn new(cancel: CancelToken, line: Line, tolerance: f64) -> Self {
        Self { cancel, line, tolerance, curves: None, column: None, throttle: Throttle { drawn: Instant::now() } }
    }

    /// Records the residuals from now on.
    pub fn record(&mut self) {
        self.curves = Some(Vec::new());
    }

    /// The residuals recorded.
    pub fn into_curves(self) -> Vec<Curve> {
        self.curves.unwrap_or_default()
    }
}

impl Monitor for Watch {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        match (progress, &mut self.curves) {
            (Progress::Column(j), _) => self.column = Some(j),
            (Progress::Iteration { index, residual }, Some(curves)) => {
                // Without a word on the right-hand side the next one starts where the count starts again.
                let goes_on = |curve: &Curve| curve.last().is_some_and(|&(last, _)| last < index);
                let j = self.column.unwrap_or(curves.len() - usize::from(curves.last().is_some_and(goes_on)));
                curves.resize_with(curves.len().max(j + 1), Vec::new);
                curves[j].push((index, residual));
            }
            _ => {}
        }
        if self.line.bar.is_some()
            && self.throttle.lets_through(progress, Instant::now())
            && let Some((fraction, message)) = frame(progress, self.column, self.tolerance)
        {
            let message = message.unwrap_or_else(|| self.line.message());
            self.line.show(fraction, message);
        }
        self.cancel.observe(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_split_where_the_count_starts_again() {
        let mut watch = Watch::new(CancelToken::new(), Line::spinner(false, String::new()), 1e-8);
        watch.record();
        for (index, residual) in [(0, 1.0), (1, 0.1), (0, 2.0), (1, 0.2)] {
            assert!(watch.observe(Progress::Iteration { index, residual }).is_continue());
        }
        assert_eq!(watch.into_curves(), [vec![(0, 1.0), (1, 0.1)], vec![(0, 2.0), (1, 0.2)]]);
    }

    #[test]
    fn curves_of_columns_side_by_side_stay_apart() {
        let mut watch = Watch::new(CancelToken::new(), Line::spinner(false, String::new()), 1e-8);
        watch.record();
        for (column, index, residual) in [(1, 0, 2.0), (0, 0, 1.0), (1, 1, 0.2), (0, 1, 0.1)] {
            assert!(watch.observe(Progress::Column(column)).is_continue());
            assert!(watch.observe(Progress::Iteration { index, residual }).is_continue());
        }
        assert_eq!(watch.into_curves(), [vec![(0, 1.0), (1, 0.1)], vec![(0, 2.0), (1, 0.2)]]);
    }

    #[test]
    fn a_bar_shows_between_columns() {
        let start = Instant::now();
        let mut throttle = Throttle { drawn: start };
        let iteration = |index| Progress::Iteration { index, residual: 1e-4 };
        // What a Krylov method tells: a column, then its iteration, every 60 ms.
        let shown: Vec<_> = (1..=5u32)
            .flat_map(|k| [(k, Progress::Column(1)), (k, iteration(k as usize))])
            .filter(|&(k, progress)| throttle.lets_through(progress, start + k * Duration::from_millis(60)))
            .map(|(_, progress)| progress)
            .collect();
        assert_eq!(shown, [iteration(2), iteration(4)]);
        let (fraction, text) = frame(shown[0], Some(1), 1e-8).unwrap();
        assert!((fraction - 0.5).abs() < 1e-12);
        assert_eq!(text.as_deref(), Some("right-hand side 2, iteration 2, residual 1.0e-4 of 1e-8"));
        let step = Progress::Step { phase: "setup", done: 1, total: 4 };
        assert_eq!(frame(step, None, 1e-8), Some((0.25, Some("factoring".into()))));
        let read = Progress::Step { phase: "read", done: 1, total: 2 };
        assert_eq!(frame(read, None, 1e-8), Some((0.5, None)), "the line names the file");
        assert_eq!(frame(Progress::Column(0), None, 1e-8), None);
    }

    #[test]
    fn a_raised_flag_stops() {
        let cancel = CancelToken::new();
        let mut watch = Watch::new(cancel.clone(), Line::spinner(false, String::new()), 1e-8);
        cancel.cancel();
        assert!(watch.observe(Progress::Step { phase: "setup", done: 1, total: 2 }).is_break());
    }
}
