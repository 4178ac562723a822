//! The cycles of one right-hand side or several: the host's part of GMRES on the device.
//!
//! Cycles begin together. After each chunk of steps the host reads the states of all, and judges the norms of each as the method on the host
//! would. A cycle that ends before the others moves its x at once; if the right-hand side is not done, it waits for the next cycle.

use bt_formats::{Breakdown, Outcome, Scalar, SolveReport, StopCriterion, norm2};
use bt_iter::{ColumnMonitor, Watch, meets};

use super::{Basis, DeviceGmres, epsilon, numbers};
use crate::device::{DeviceScalar, DeviceVec, Result};
use crate::krylov::{AT, CHUNK, FIELDS, HISTORY, RECORD, RR, STOP, state_of};
use crate::scaled::Exponents;

/// Why a cycle stops, as kernels/device.h and kernels/gmres.cu number it.
const NON_FINITE: u32 = 2;
const SINGULAR: u32 = 9;

/// What a right-hand side does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Its next cycle begins with those of the others.
    Waiting,
    /// Its cycle goes on.
    Stepping,
    Ended(Outcome),
}

/// One right-hand side on its way.
struct Column<'v, T> {
    b: &'v [T],
    given: &'v mut [T],
    answer: Vec<T>,
    residual: Vec<T>,
    watch: Watch<'v>,
    exponents: Exponents,
    /// The true residual norm at the start of the cycle, and that of the recurrence.
    truth: f64,
    recurrence: f64,
    /// Cycles that have changed x.
    moves: usize,
    phase: Phase,
}

/// The end of a cycle: of which right-hand side, why unless it is full, and the columns of the basis that are usable.
struct CycleEnd {
    column: usize,
    why: Option<Outcome>,
    columns: usize,
}

impl CycleEnd {
    fn is_claim(&self) -> bool {
        self.why == Some(Outcome::Converged)
    }
}

impl<T: DeviceScalar> DeviceGmres<'_, T> {
    /// Solves for right-hand sides that there is room for.
    pub(super) fn run(
        &mut self,
        b: &[&[T]],
        x: &mut [&mut [T]],
        stop: &StopCriterion,
        monitors: &mut [ColumnMonitor<'_, '_>],
    ) -> Result<Vec<SolveReport>> {
        let columns = b.iter().zip(x).zip(monitors);
        let mut runs: Vec<Column<T>> = columns.map(|((b, x), monitor)| self.begin(b, x, stop, monitor)).collect();
        for (column, run) in runs.iter_mut().enumerate().filter(|(_, run)| run.phase == Phase::Waiting) {
            self.load(column, run)?;
        }
        while runs.iter().any(|run| run.phase == Phase::Waiting) {
            for run in runs.iter_mut().filter(|run| run.phase == Phase::Waiting) {
                run.phase = Phase::Stepping;
            }
            self.cycle(&mut runs, stop.max_iters)?;
        }
        Ok(runs.into_iter().map(|run| self.report(run)).collect())
    }

    fn begin<'v>(
        &self,
        b: &'v [T],
        x: &'v mut [T],
        stop: &'v StopCriterion,
        monitor: &'v mut ColumnMonitor<'_, '_>,
    ) -> Column<'v, T> {
        let mut residual = b.to_vec();
        let truth = self.common.host_residual(b, x, &mut residual);
        let mut watch = Watch::new(stop, monitor, norm2(b), truth);
        watch.epsilon = epsilon::<T>();
        let phase = watch.verdict(truth).map_or(Phase::Waiting, Phase::Ended);
        let (answer, exponents) = (x.to_vec(), self.common.exponents);
        Column { b, given: x, answer, residual, watch, exponents, truth, recurrence: truth, moves: 0, phase }
    }

    /// b and x to the device, and what comes before the first cycle.
    fn load(&mut self, column: usize, run: &mut Column<'_, T>) -> Result<()> {
        run.exponents = self.common.load_column(column, run.b, run.given)?;
        self.common.state.copy_range_from(column * RECORD, &[0.0; RECORD])?;
        // Only a finite target can be met.
        let target = run.watch.threshold;
        let threshold = if target.is_finite() { run.exponents.scaled_norm(target) } else { 0.0 };
        let last = numbers(self.restart) * (column + 1) - 1;
        self.small.copy_range_from(last, &[threshold])?;
        self.start(column)
    }

    /// A cycle of all that step.
    fn cycle(&mut self, runs: &mut [Column<'_, T>], limit: usize) -> Result<()> {
        let mut j = 0;
        loop {
            let going: Vec<usize> = (0..runs.len()).filter(|&c| runs[c].phase == Phase::Stepping).collect();
            let Some(left) = going.iter().map(|&c| limit.saturating_sub(runs[c].watch.iterations).max(1)).max() else {
                return Ok(());
            };
            let count = (CHUNK as usize).min(self.restart - j).min(left);
            self.steps(&going, j as u32, count as u32)?;
            let states = self.states(runs.len())?;
            let mut ends = Vec::new();
            for column in going {
                let ended = runs[column].catch_up(&states[column * RECORD..][..RECORD], j, count);
                // After the last column of the basis the cycle is full.
                if let Some((why, columns)) = ended.or((j + count == self.restart).then_some((None, self.restart))) {
                    ends.push(CycleEnd { column, why, columns });
                }
            }
            j += count;
            self.end_cycles(runs, &ends)?;
        }
    }

    /// The ends of cycles: every x moves, and its residual is taken; whether to end there.
    fn end_cycles(&mut self, runs: &mut [Column<'_, T>], ends: &[CycleEnd]) -> Result<()> {
        for end in ends.iter().filter(|end| end.columns > 0) {
            self.move_x(end.column, end.columns)?;
            if !end.is_claim() {
                // The residual by the device, with which the next cycle begins.
                self.start(end.column)?;
            }
        }
        let told = ends.iter().any(|end| end.columns > 0 && !end.is_claim());
        let states = if told { self.states(runs.len())? } else { Vec::new() };
        for end in ends {
            let run = &mut runs[end.column];
            let before = run.truth;
            if end.columns > 0 {
                run.moves += 1;
                run.watch.preconditioner_applications += usize::from(self.basis == Basis::Fixed);
                run.watch.operator_applications += 1;
                run.truth = if end.is_claim() {
                    self.host_truth(end.column, run)?
                } else {
                    let state = &states[end.column * RECORD..][..RECORD];
                    run.exponents.norm(state_of(state, 0)[RR].sqrt())
                };
                if !end.is_claim() && meets(run.truth, run.watch.threshold) {
                    run.watch.operator_applications += 1;
                    run.truth = self.host_truth(end.column, run)?;
                }
            }
            let outcome = self.judge(end, before, run)?;
            run.phase = outcome.map_or(Phase::Waiting, Phase::Ended);
            if outcome.is_none() && end.is_claim() {
                run.watch.operator_applications += 1;
                self.start(end.column)?;
            }
        }
        Ok(())
    }

    /// Why the end of a cycle, which began with the norm `before`, is the end of the run, if it is; the answer is taken then.
    fn judge(&self, end: &CycleEnd, before: f64, run: &mut Column<'_, T>) -> Result<Option<Outcome>> {
        if !(run.truth <= before) {
            // R is singular to rounding: y was noise.
            run.truth = before;
            self.take(&self.common.best, end.column, run.moves.saturating_sub(1), run)?;
            let reason = if end.is_claim() { None } else { end.why };
            return Ok(Some(reason.unwrap_or(Outcome::Breakdown(Breakdown::Stagnated))));
        }
        let stagnates = self.basis == Basis::Fixed && run.truth >= before * (1.0 - 1e-12);
        let outcome = match end.why {
            Some(Outcome::Converged) => run.watch.claim(run.truth),
            Some(other) => Some(other),
            None if meets(run.truth, run.watch.threshold) => Some(Outcome::Converged),
            // The next cycle would start from the same residual and do the same.
            None if end.columns == 0 || stagnates => Some(Outcome::Breakdown(Breakdown::Stagnated)),
            None => None,
        };
        if outcome.is_some() {
            self.take(&self.common.x, end.column, run.moves, run)?;
        }
        Ok(outcome)
    }

    /// The answer ← `x` of the device after so many moves; the x given before the first, or where the range was left.
    fn take(&self, x: &DeviceVec<T>, column: usize, moves: usize, run: &mut Column<'_, T>) -> Result<()> {
        if moves > 0 {
            x.copy_range_to(column * self.common.n(), &mut run.answer)?;
            run.exponents.restore(&mut run.answer);
        }
        if moves == 0 || !finite(&run.answer) {
            run.answer.copy_from_slice(run.given);
        }
        Ok(())
    }

    /// ‖b − A·x‖₂ of x on the device, by the host; NaN where x left the range.
    fn host_truth(&self, column: usize, run: &mut Column<'_, T>) -> Result<f64> {
        self.common.x.copy_range_to(column * self.common.n(), &mut run.answer)?;
        run.exponents.restore(&mut run.answer);
        if !finite(&run.answer) {
            return Ok(f64::NAN);
        }
        Ok(self.common.host_residual(run.b, &run.answer, &mut run.residual))
    }

    /// Of the first right-hand sides.
    fn states(&self, count: usize) -> Result<Vec<f64>> {
        let mut states = vec![0.0; count * RECORD];
        self.common.state.copy_range_to(0, &mut states)?;
        Ok(states)
    }

    fn report(&self, run: Column<'_, T>) -> SolveReport {
        let Column { b, given, answer, mut residual, watch, recurrence, phase, .. } = run;
        let Phase::Ended(outcome) = phase else { unreachable!("a run goes on until it has ended") };
        let truth = self.common.host_residual(b, &answer, &mut residual);
        given.copy_from_slice(&answer);
        let name = if self.basis == Basis::Fixed { "gmres" } else { "fgmres" };
        watch.report(name, outcome, recurrence, truth, self.bytes())
    }
}

impl<T: DeviceScalar> Column<'_, T> {
    /// The norms of steps j .. j + count: why the cycle ends, unless for want of a direction, and the columns that are usable, if it ends.
    fn catch_up(&mut self, state: &[f64], j: usize, count: usize) -> Option<(Option<Outcome>, usize)> {
        let last = state_of(state, (j + count) as u32);
        let (at, why) = (last[AT] as usize, last[STOP] as u32);
        for step in j + 1..=at {
            self.watch.iterations += 1;
            self.watch.operator_applications += 1;
            self.watch.preconditioner_applications += 1;
            match why {
                NON_FINITE if step == at => {
                    return Some((Some(Outcome::Breakdown(Breakdown::NonFinite)), step - 1));
                }
                SINGULAR if step == at => {
                    return Some((Some(Outcome::Breakdown(Breakdown::SingularOperator)), step - 1));
                }
                _ => {}
            }
            self.recurrence = self.exponents.norm(state[2 * FIELDS + step % HISTORY]);
            // Out of time the steps that are done are taken along.
            let verdict = self.watch.verdict(self.recurrence);
            if let Some(outcome) = verdict.filter(|o| *o != Outcome::TimeLimit || step == at) {
                return Some((Some(outcome), step));
            }
        }
        // There is no next direction, or none from a residual that is zero or not finite.
        (why != 0).then(|| ((why == NON_FINITE).then_some(Outcome::Breakdown(Breakdown::NonFinite)), at))
    }
}

fn finite<T: Scalar>(x: &[T]) -> bool {
    x.iter().all(|v| Scalar::is_finite(*v))
}
