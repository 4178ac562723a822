//! What all Krylov methods share: the stopping rule, the true residual at every claim, the best iterate, the report.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bt_formats::{
    Baseline, Breakdown, Bytes, Certificate, Monitor, Note, Outcome, PhaseTimes, Progress, RealScalar, Scalar,
    SolveReport, StopCriterion,
};

use crate::blas1::scale;
use crate::system::System;

/// r ← s·r for a residual of norm ‖r‖₂ = `norm`; s. A power of two that brings the norm to [1, 2), so that inner products
/// of a system of any scale stay in the range, and 1 where they do anyway. Multiplication by s rounds nothing but what is
/// negligible beside the norm.
pub(crate) fn normalize<T: Scalar>(norm: f64, r: &mut [T]) -> f64 {
    let range = T::Real::MAX.to_f64().log2();
    let exponent = norm.log2().floor();
    if !exponent.is_finite() || exponent.abs() <= range / 8.0 {
        return 1.0;
    }
    // A reciprocal of s is a normal number too.
    let s = (-exponent).clamp(4.0 - range, range - 4.0).exp2();
    scale(T::rounded(s, 0.0), r);
    s
}

/// How a method goes on after an iteration.
pub(crate) enum Next {
    GoOn,
    /// From the true residual.
    Restart,
    End(Outcome),
}

/// Claims in a row that did not halve the true residual, after which the attainable accuracy is reached.
const IDLE_CLAIMS: usize = 3;
/// Times the target, or the rounding level, up to which an answer is `Loose`.
const LOOSE: f64 = 10.0;

/// Whether a residual norm meets a target: only finite numbers do, and only a finite target can be met.
pub fn meets(norm: f64, threshold: f64) -> bool {
    threshold.is_finite() && norm <= threshold
}

/// How a run that `ended` so has ended by the residual norm of the x that is returned. `attainable` is the norm that rounding leaves
/// in an evaluation of b − A·x: at that level an answer is at worst `Loose`.
///
/// ```
/// use bt_formats::Outcome;
/// use bt_iter::judge;
/// assert_eq!(judge(Outcome::IterationLimit, 1e-9, 1e-8, 1e-16), Outcome::Converged);
/// assert_eq!(judge(Outcome::Converged, 5e-8, 1e-8, 1e-16), Outcome::Loose);
/// assert_eq!(judge(Outcome::Converged, 1e-15, 0.0, 1e-15), Outcome::Loose);
/// assert_eq!(judge(Outcome::Converged, f64::INFINITY, f64::INFINITY, 1e-16), Outcome::FalseConvergence);
/// ```
pub fn judge(ended: Outcome, truth: f64, threshold: f64, attainable: f64) -> Outcome {
    let close = [threshold, attainable].into_iter().any(|level| meets(truth, LOOSE * level));
    match ended {
        Outcome::Stopped => ended,
        _ if meets(truth, threshold) => Outcome::Converged,
        Outcome::Converged | Outcome::Loose | Outcome::FalseConvergence | Outcome::Breakdown(Breakdown::Stagnated)
            if close =>
        {
            Outcome::Loose
        }
        Outcome::Converged | Outcome::Loose => Outcome::FalseConvergence,
        other => other,
    }
}

/// Counts, limits and the monitor of a running solve: what makes a report of a Krylov method, wherever it runs.
pub struct Watch<'a> {
    stop: &'a StopCriterion,
    monitor: &'a mut dyn Monitor,
    start: Instant,
    norm_b: f64,
    norm_r0: f64,
    baseline: f64,
    /// max(atol, rtol·baseline): the residual norm to reach.
    pub threshold: f64,
    /// ε of the scalars, which tells what rounding leaves of a residual; that of f64 unless set.
    pub epsilon: f64,
    /// Steps done.
    pub iterations: usize,
    /// Products with A.
    pub operator_applications: usize,
    /// Applications of M.
    pub preconditioner_applications: usize,
    /// The smallest true residual norm at a claim, and the claims since it was last halved.
    last_claim: f64,
    idle_claims: usize,
    /// For the report.
    pub notes: Vec<Note>,
}

impl<'a> Watch<'a> {
    /// Before the first iteration, with ‖b‖₂ and ‖b − A·x₀‖₂.
    pub fn new(stop: &'a StopCriterion, monitor: &'a mut dyn Monitor, norm_b: f64, norm_r0: f64) -> Self {
        let baseline = match stop.baseline {
            Baseline::Rhs if norm_b > 0.0 => norm_b,
            Baseline::InitialResidual if norm_r0 > 0.0 => norm_r0,
            _ => 1.0,
        };
        Self {
            stop,
            monitor,
            start: Instant::now(),
            norm_b,
            norm_r0,
            baseline,
            threshold: stop.threshold(norm_b, norm_r0),
            epsilon: f64::EPSILON,
            iterations: 0,
            operator_applications: 1,
            preconditioner_applications: 0,
            last_claim: f64::INFINITY,
            idle_claims: 0,
            notes: Vec::new(),
        }
    }

    /// The same for a method in the scalar T.
    pub(crate) fn of<T: Scalar>(
        stop: &'a StopCriterion,
        monitor: &'a mut dyn Monitor,
        norm_b: f64,
        norm_r0: f64,
    ) -> Self {
        Self { epsilon: T::Real::EPSILON.to_f64(), ..Self::new(stop, monitor, norm_b, norm_r0) }
    }

    /// After an iteration with the residual norm of the recurrence: why to end here, if there is a reason.
    pub fn verdict(&mut self, norm: f64) -> Option<Outcome> {
        let flow = self.monitor.observe(Progress::Iteration { index: self.iterations, residual: norm / self.baseline });
        if !norm.is_finite() {
            return Some(Outcome::Breakdown(Breakdown::NonFinite));
        }
        if meets(norm, self.threshold) {
            return Some(Outcome::Converged);
        }
        if let ControlFlow::Break(()) = flow {
            return Some(Outcome::Stopped);
        }
        if self.iterations >= self.stop.max_iters {
            return Some(Outcome::IterationLimit);
        }
        self.stop.time_limit.is_some_and(|limit| self.start.elapsed() >= limit).then_some(Outcome::TimeLimit)
    }

    /// What follows from the verdict on an iteration of a method by recurrences, x being up to date where there is one:
    /// end, go on, or go on from the true residual in r, since the recurrence met the tolerance and the truth did not.
    pub(crate) fn next<T: Scalar>(
        &mut self,
        verdict: Option<Outcome>,
        system: &System<'_, T>,
        x: &[T],
        r: &mut [T],
        residual: &mut f64,
    ) -> Next {
        match verdict {
            Some(Outcome::Converged) => {
                *residual = system.residual(x, r);
                self.operator_applications += 1;
                self.claim(*residual).map_or(Next::Restart, Next::End)
            }
            Some(outcome) => Next::End(outcome),
            None => Next::GoOn,
        }
    }

    /// The recurrence claims convergence and the true residual norm is `truth`: the outcome, or none when the iteration should go on
    /// from the true residual. It should while claims halve the truth, and for a few more: after that rounding eats what the
    /// recurrence gains, and the attainable accuracy is reached.
    pub fn claim(&mut self, truth: f64) -> Option<Outcome> {
        if !truth.is_finite() {
            return Some(Outcome::Breakdown(Breakdown::NonFinite));
        }
        if meets(truth, self.threshold) {
            return Some(Outcome::Converged);
        }
        self.idle_claims = if truth <= 0.5 * self.last_claim { 0 } else { self.idle_claims + 1 };
        self.last_claim = self.last_claim.min(truth);
        if self.idle_claims < IDLE_CLAIMS {
            return None;
        }
        self.notes.push(Note::AttainableAccuracy { relative_residual: self.last_claim / self.baseline });
        Some(Outcome::FalseConvergence)
    }

    /// The end of a method by recurrences: x ← the best of its last iterate, the one set aside and the start, each by its true
    /// residual, unless the last one meets the target; the report. `residual` is what the recurrence says of x.
    pub(crate) fn finish<T: Scalar>(
        self,
        method: &'static str,
        outcome: Outcome,
        residual: f64,
        system: &System<'_, T>,
        best: &mut Best<T>,
        x: &mut [T],
        r: &mut [T],
        workspace: usize,
    ) -> SolveReport {
        let mut of = |x: &[T]| if system.finite(x) { system.residual(x, r) } else { f64::INFINITY };
        // A claim was checked against the truth.
        let mut truth = if outcome == Outcome::Converged && system.finite(x) { residual } else { of(x) };
        if !meets(truth, self.threshold) {
            if best.norm.is_finite() {
                let aside = of(&best.x);
                if aside < truth || truth.is_nan() {
                    x.copy_from_slice(&best.x);
                    truth = aside;
                }
            }
            if !(truth <= self.norm_r0) || !truth.is_finite() {
                best.restart(x);
                truth = if self.norm_r0.is_finite() { self.norm_r0 } else { of(x) };
            }
        }
        self.report(method, outcome, residual, truth, system.bytes(workspace))
    }

    /// The report; `truth` is ‖b − A·x‖₂ of the x returned, which decides on the outcome, `recurrence` what the method believed.
    pub fn report(
        self,
        method: &'static str,
        outcome: Outcome,
        recurrence: f64,
        truth: f64,
        bytes: Bytes,
    ) -> SolveReport {
        let relative = if truth == 0.0 { 0.0 } else { truth / self.norm_b };
        SolveReport {
            method,
            outcome: judge(outcome, truth, self.threshold, self.epsilon * self.norm_b),
            iterations: self.iterations,
            recurrence_residual: Some(recurrence),
            // An operator without entries has no norm: whoever has the entries certifies.
            certificate: Certificate {
                relative_residual: relative,
                backward_error: f64::NAN,
                componentwise_backward_error: f64::NAN,
            },
            operator_applications: self.operator_applications,
            preconditioner_applications: self.preconditioner_applications,
            times: PhaseTimes { setup: Duration::ZERO, solve: self.start.elapsed(), ..PhaseTimes::default() },
            bytes,
            notes: self.notes,
        }
    }
}

/// The start, and the best iterate so far, kept only once a later one is worse: a run that only improves never copies.
pub(crate) struct Best<T> {
    x: Vec<T>,
    norm: f64,
    /// A start other than zero that has a residual.
    start: Option<Vec<T>>,
}

impl<T: Scalar> Best<T> {
    pub fn new(n: usize) -> Self {
        Self { x: vec![bt_formats::zero(); n], norm: f64::INFINITY, start: None }
    }
    /// Before the first step from x, with its residual norm. A start other than zero is copied.
    pub fn begin(&mut self, x: &[T], norm: f64) {
        self.norm = f64::INFINITY;
        let kept = norm.is_finite() && x.iter().any(|v| *v != bt_formats::zero());
        self.start = kept.then(|| x.to_vec());
    }
    /// Before x with this residual norm is left for one with `next`.
    pub fn leave(&mut self, system: &System<'_, T>, x: &[T], norm: f64, next: f64) {
        if !(next <= norm) && norm < self.norm && system.finite(x) {
            self.x.copy_from_slice(x);
            self.norm = norm;
        }
    }
    /// x ← the start, or zero where the start had no residual.
    fn restart(&self, x: &mut [T]) {
        match &self.start {
            Some(start) => x.copy_from_slice(start),
            None => x.fill(bt_formats::zero()),
        }
    }
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.x)
    }
}

/// Whether no entry is infinite or NaN: a component that A does not see may overflow while the residual stays small.
pub(crate) fn finite<T: Scalar>(x: &[T]) -> bool {
    x.iter().all(|v| Scalar::is_finite(*v))
}
