//! A limit on wall time, as a monitor: what is under way ends at its next observation.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bt_direct::FactorError;
use bt_formats::{Bytes, Csr, Monitor, Note, Op, Outcome, PhaseTimes, Progress, Scalar, SolveReport, certify};
use faer::{Mat, MatRef};

use crate::error::Error;
use crate::options::SolveOptions;
use crate::solution::Solution;

/// A monitor that also breaks when the time is over.
struct Deadline<'a> {
    monitor: &'a mut dyn Monitor,
    end: Option<Instant>,
    passed: bool,
}

impl Monitor for Deadline<'_> {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        let told = self.monitor.observe(progress);
        if told.is_continue() && self.end.is_some_and(|end| Instant::now() >= end) {
            self.passed = true;
            return ControlFlow::Break(());
        }
        told
    }
}

/// `solve` for `limit` at most. A factorization that the limit ends leaves x = 0, an iteration its best iterate.
pub(crate) fn within<T: Scalar>(
    limit: Duration,
    (a, b): (&Csr<T>, MatRef<'_, T>),
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
    solve: impl FnOnce(&SolveOptions, &mut dyn Monitor) -> Result<Solution<T>, Error>,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    // A limit beyond the end of the clock is none.
    let mut deadline = Deadline { monitor, end: start.checked_add(limit), passed: false };
    let unlimited = SolveOptions { time_limit: None, ..options.clone() };
    let note = |left| Note::TimeLimit { seconds: limit.as_secs_f64(), left };
    match solve(&unlimited, &mut deadline) {
        Ok(mut answer) if deadline.passed && answer.report.outcome == Outcome::Stopped => {
            answer.report.outcome = Outcome::TimeLimit;
            answer.report.notes.push(note("x is the best iterate so far"));
            Ok(answer)
        }
        Err(Error::Factor(FactorError::Stopped)) if deadline.passed => {
            let x = Mat::zeros(b.nrows(), b.ncols());
            let report = SolveReport {
                method: options.method.name(),
                outcome: Outcome::TimeLimit,
                iterations: 0,
                recurrence_residual: None,
                certificate: certify(a, Op::Identity, x.as_ref(), b),
                operator_applications: b.ncols(),
                preconditioner_applications: 0,
                times: PhaseTimes { setup: start.elapsed(), ..PhaseTimes::default() },
                bytes: Bytes::default(),
                notes: vec![note("factors were under way, and x is zero")],
            };
            Ok(Solution::of(x, report, options.method.clone()))
        }
        other => other,
    }
}
