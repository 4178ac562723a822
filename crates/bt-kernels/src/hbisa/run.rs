//! A run of the iteration on the device, for one right-hand side or several: the host's part of it.
//!
//! The launches are common to all right-hand sides. After each chunk of sweeps the host reads their norms, and judges each as the
//! iteration on the host would; one that has ended is read at once, and its thread blocks idle from then on.

use std::ops::ControlFlow;
use std::time::Instant;

use bt_formats::{Breakdown, Monitor, Outcome, Progress, Scalar, SolveReport, StopCriterion, observe_column};
use bt_iter::{Rate, StopRule};

use super::DeviceHbisa;
use crate::device::{Device, DeviceError, DeviceScalar, DeviceVec, Result, Shape};
use crate::krylov::{AT, BEST, CHUNK, FIELDS, HISTORY, STOP, state_of};
use crate::scaled::Exponents;

/// Field of the state beside the shared ones: the norm of the last iterate, see kernels/hbisa.cu.
pub(super) const NORM: usize = 1;
/// Behind the norms: what they are held against, in their own scale.
const RTOL: usize = 2 * FIELDS + HISTORY;
pub(super) const ATOL: usize = RTOL + 1;
/// Values of the state of one right-hand side.
pub(super) const STATE: usize = ATOL + 1;
/// Value of STOP with which thread blocks idle: LIMIT of the kernels.
const LIMIT: f64 = 3.0;

/// What the right-hand sides of a run have, one after the other.
pub(super) struct Vectors<T: DeviceScalar> {
    /// Right-hand sides in use; there may be room for more.
    pub columns: usize,
    pub b: DeviceVec<T>,
    /// Three iterates that take turns: number i is at i mod 3.
    pub x: DeviceVec<T>,
    pub best: DeviceVec<T>,
    /// D·x where D is not tridiagonal.
    pub image: Option<DeviceVec<T>>,
    pub parts: DeviceVec<f64>,
    pub state: DeviceVec<f64>,
}

impl<T: DeviceScalar> Vectors<T> {
    /// Of n values each.
    pub fn new(device: &Device, n: usize, tridiagonal: bool, shape: Shape, columns: usize) -> Result<Self> {
        let n = n.saturating_mul(columns);
        Ok(Self {
            columns,
            b: DeviceVec::uninitialized(device, n)?,
            x: DeviceVec::uninitialized(device, n.saturating_mul(3))?,
            best: DeviceVec::uninitialized(device, n)?,
            image: if tridiagonal { None } else { Some(DeviceVec::zeros(device, n)?) },
            parts: DeviceVec::uninitialized(device, 4 * 3 * shape.blocks as usize * columns)?,
            state: DeviceVec::uninitialized(device, STATE * columns)?,
        })
    }

    fn room(&self) -> usize {
        self.state.len() / STATE
    }

    pub fn bytes(&self) -> usize {
        let values = [&self.b, &self.x, &self.best].into_iter().chain(&self.image).map(DeviceVec::bytes).sum::<usize>();
        values + self.parts.bytes() + self.state.bytes()
    }
}

/// Names the column that the next observation is of, where there are several.
pub(super) struct Told<'m> {
    pub monitor: &'m mut dyn Monitor,
    pub column: Option<usize>,
}

impl Told<'_> {
    pub fn plus(&mut self, j: usize) -> Told<'_> {
        Told { monitor: &mut *self.monitor, column: self.column.map(|first| first + j) }
    }
}

impl Monitor for Told<'_> {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        match self.column {
            Some(column) => observe_column(self.monitor, column, progress),
            None => self.monitor.observe(progress),
        }
    }
}

/// One right-hand side on its way.
struct Column<'v, T> {
    b: &'v [T],
    x: &'v mut [T],
    exponents: Exponents,
    norm_r0: f64,
    /// The norm of the residual that is small enough.
    threshold: f64,
    /// What norms are told relative to.
    baseline: f64,
    rate: Rate,
    /// The last norm that the host has judged, and of which iterate it is.
    newest: (u32, f64),
    outcome: Option<Outcome>,
    report: Option<SolveReport>,
}

impl<T: DeviceScalar> DeviceHbisa<'_, T> {
    /// Room for the vectors of so many columns, or of as many as are swept at once: how many. Larger ones stay.
    pub(super) fn reserve(&mut self, columns: usize) -> Result<usize> {
        let (device, n) = (self.piece.device().clone(), self.iteration.a.n());
        let (shape, tridiagonal) = (self.piece.shape, self.piece.vectors.image.is_none());
        let vectors = &mut self.piece.vectors;
        let mut group = columns.min(self.group).max(1);
        while group > vectors.room() {
            match Vectors::new(&device, n, tridiagonal, shape, group) {
                Ok(larger) => *vectors = larger,
                Err(DeviceError::OutOfMemory { .. }) => group = (group / 2).max(vectors.room()),
                Err(other) => return Err(other),
            }
        }
        vectors.columns = group;
        Ok(group)
    }

    /// Solves for columns that fit on the device together.
    pub(super) fn run(
        &mut self,
        b: &[&[T]],
        x: &mut [&mut [T]],
        stop: &StopCriterion,
        told: &mut Told<'_>,
    ) -> Result<Vec<SolveReport>> {
        let start = Instant::now();
        self.reserve(b.len())?;
        let mut runs: Vec<Column<T>> = b.iter().zip(x).map(|(b, x)| self.begin(b, x, stop)).collect();
        let mut states = self.load(&runs, stop)?;
        for (j, run) in runs.iter_mut().enumerate() {
            // The norm of x⁰ may be known, and enough.
            run.judge(run.newest, run.threshold, stop, &mut told.plus(j), start);
        }
        let limit = u32::try_from(stop.max_iters).unwrap_or(u32::MAX - 2 * CHUNK);
        let mut step = 0;
        loop {
            let mut idle = false;
            for (j, run) in runs.iter_mut().enumerate().filter(|(_, run)| run.report.is_none()) {
                let state = &mut states[j * STATE..][..STATE];
                if let Some(outcome) = run.outcome {
                    run.report = Some(self.end(j, run, outcome, state, step, start)?);
                    (state[STOP], state[FIELDS + STOP]) = (LIMIT, LIMIT);
                    idle = true;
                }
            }
            if runs.iter().all(|run| run.report.is_some()) {
                return Ok(runs.into_iter().filter_map(|run| run.report).collect());
            }
            if idle {
                self.piece.vectors.state.copy_range_from(0, &states)?;
            }
            // A norm is known one sweep later; the device stops by itself after the last.
            let count = CHUNK.min(limit.saturating_add(2) - step);
            self.sweeps(step, count, limit)?;
            step += count;
            self.piece.vectors.state.copy_range_to(0, &mut states)?;
            for (j, run) in runs.iter_mut().enumerate().filter(|(_, run)| run.report.is_none()) {
                run.catch_up(self.iteration.rule, &states[j * STATE..][..STATE], step, stop, &mut told.plus(j), start);
            }
        }
    }

    fn begin<'v>(&self, b: &'v [T], x: &'v mut [T], stop: &StopCriterion) -> Column<'v, T> {
        let (norm_r0, threshold, baseline) = self.iteration.measures(b, x, stop);
        let newest = (0, if self.iteration.rule == StopRule::Residual { norm_r0 } else { f64::INFINITY });
        let exponents = self.exponents.with_rhs(b);
        let rate = Rate::default();
        Column { b, x, exponents, norm_r0, threshold, baseline, rate, newest, outcome: None, report: None }
    }

    /// Right-hand sides, first iterates and states to the device: the states.
    fn load(&mut self, runs: &[Column<'_, T>], stop: &StopCriterion) -> Result<Vec<f64>> {
        let n = self.iteration.a.n();
        let (mut b, mut iterates) = (Vec::with_capacity(runs.len() * n), Vec::with_capacity(3 * runs.len() * n));
        let mut states = vec![0.0; runs.len() * STATE];
        for (j, (run, state)) in runs.iter().zip(states.chunks_mut(STATE)).enumerate() {
            let e = run.exponents;
            b.extend(e.rhs(run.b));
            iterates.extend(e.to_scaled(run.x));
            iterates.resize(3 * (j + 1) * n, T::default());
            match self.iteration.rule {
                StopRule::Residual => {
                    state[FIELDS + NORM] = e.scaled_norm(run.norm_r0);
                    state[ATOL] = e.scaled_norm(run.threshold);
                }
                StopRule::Update => {
                    state[FIELDS + NORM] = f64::INFINITY;
                    (state[RTOL], state[ATOL]) = (stop.rtol, e.scaled_solution(stop.atol));
                }
            }
        }
        self.piece.vectors.b.copy_range_from(0, &b)?;
        self.piece.vectors.x.copy_range_from(0, &iterates)?;
        self.piece.vectors.state.copy_range_from(0, &states)?;
        Ok(states)
    }

    /// The answer of column j, and the report.
    fn end(
        &self,
        j: usize,
        run: &mut Column<'_, T>,
        outcome: Outcome,
        state: &[f64],
        step: u32,
        start: Instant,
    ) -> Result<SolveReport> {
        let first = run.x.to_vec();
        let norm = if step == 0 { run.newest.1 } else { self.take_best(j, run, state, step)? };
        let mut outcome = if norm.is_nan() { Outcome::Breakdown(Breakdown::NonFinite) } else { outcome };
        self.iteration.not_worse_than(&first, run.b, run.x, &mut outcome);
        let iterations = run.newest.0 as usize;
        let made = (self.bytes(), self.piece.interchanged());
        Ok(self.iteration.report(run.b, run.x, outcome, iterations, norm, run.threshold, &run.rate, start, made))
    }

    /// x ← the iterate of the smallest norm: one of the last three, or the one set aside before them. Its norm.
    fn take_best(&self, j: usize, run: &mut Column<'_, T>, state: &[f64], step: u32) -> Result<f64> {
        let n = run.x.len();
        let last = state_of(state, step - 1);
        let at = last[AT] as u32;
        // Sweeps done: after a stop the last step made none.
        let done = match (last[STOP] as u32, self.iteration.rule) {
            (0, _) => step,
            (_, StopRule::Residual) => at + 1,
            (_, StopRule::Update) => at,
        };
        let norm_of = |v| run.norm(self.iteration.rule, v);
        let norm = |i: u32| if i == 0 { run.norm_r0 } else { norm_of(state[2 * FIELDS + i as usize % HISTORY]) };
        let candidates = (done.saturating_sub(2)..=at).rev().map(|i| (norm(i), Some(i)));
        let aside = (norm_of(last[BEST]), None);
        let better = |best: (f64, Option<u32>), other: (f64, Option<u32>)| if other.0 < best.0 { other } else { best };
        let (best, from) = candidates.chain([aside]).fold((f64::INFINITY, Some(0)), better);
        let mut answer = vec![T::default(); n];
        match from {
            // Where no norm is finite, x stays.
            Some(0) => return Ok(if best.is_finite() { best } else { run.newest.1 }),
            Some(i) => self.piece.vectors.x.copy_range_to((3 * j + (i % 3) as usize) * n, &mut answer)?,
            None => self.piece.vectors.best.copy_range_to(j * n, &mut answer)?,
        }
        run.exponents.restore(&mut answer);
        // x may leave the range although its scaled twin does not.
        if !answer.iter().all(|v| Scalar::is_finite(*v)) {
            return Ok(f64::NAN);
        }
        run.x.copy_from_slice(&answer);
        Ok(best)
    }
}

impl<T: DeviceScalar> Column<'_, T> {
    /// The norm of which the kernels know `v`.
    fn norm(&self, rule: StopRule, v: f64) -> f64 {
        if rule == StopRule::Residual { self.exponents.norm(v) } else { self.exponents.solution(v) }
    }

    /// Judges the norms that are new after `step` steps.
    fn catch_up(
        &mut self,
        rule: StopRule,
        state: &[f64],
        step: u32,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
        start: Instant,
    ) {
        let last = state_of(state, step - 1);
        // The target of the update rule moves with x, and is the kernels' affair.
        let target = if rule == StopRule::Residual { self.threshold } else { -1.0 };
        while self.newest.0 < last[AT] as u32 && self.outcome.is_none() {
            let i = self.newest.0 + 1;
            let norm = self.norm(rule, state[2 * FIELDS + i as usize % HISTORY]);
            self.judge((i, norm), target, stop, monitor, start);
        }
        if self.outcome.is_none() {
            self.outcome = match last[STOP] as u32 {
                0 => None,
                1 => Some(Outcome::Converged),
                2 => Some(Outcome::Breakdown(Breakdown::NonFinite)),
                _ => Some(Outcome::IterationLimit),
            };
        }
    }

    fn judge(
        &mut self,
        newest: (u32, f64),
        target: f64,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
        start: Instant,
    ) {
        self.newest = newest;
        self.outcome = judge(newest, target, stop, &mut self.rate, self.baseline, monitor, start);
    }
}

/// Why to end with the newest norm, as on the host.
pub(super) fn judge(
    (i, norm): (u32, f64),
    target: f64,
    stop: &StopCriterion,
    rate: &mut Rate,
    baseline: f64,
    monitor: &mut dyn Monitor,
    start: Instant,
) -> Option<Outcome> {
    let flow = monitor.observe(Progress::Iteration { index: i as usize, residual: norm / baseline });
    if norm <= target {
        return Some(Outcome::Converged);
    }
    if norm.is_nan() || (i > 0 && norm.is_infinite()) {
        return Some(Outcome::Breakdown(Breakdown::NonFinite));
    }
    if let ControlFlow::Break(()) = flow {
        return Some(Outcome::Stopped);
    }
    if rate.diverges(norm) {
        return Some(Outcome::Breakdown(Breakdown::Diverged));
    }
    rate.predict(norm, target, i as usize);
    if i as usize == stop.max_iters {
        return Some(Outcome::IterationLimit);
    }
    stop.time_limit.is_some_and(|limit| start.elapsed() >= limit).then_some(Outcome::TimeLimit)
}
