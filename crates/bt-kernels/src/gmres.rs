//! GMRES(m) and FGMRES(m) with right preconditioning on the device, for any nonsingular A.
//!
//! Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), doi:10.1137/0907058; flexible: Y. Saad, SIAM J. Sci. Comput. 14
//! (1993), doi:10.1137/0914028. Cycles, outcomes and report are those of [`bt_iter::Gmres`]: every cycle starts from b − A·x, a claim of
//! convergence is checked on the host with the A of the caller, an exhausted space, a singular one and a cycle without progress have names.
//!
//! ```text
//! x ∈ x₀ + span(Z),  A·Z = V·H̄,  zⱼ = M⁻¹vⱼ,  min ‖β·e₁ − H̄·y‖₂ by Givens rotations,  x = x₀ + Z·y
//! ```
//!
//! The basis is made by classical Gram–Schmidt done twice, in two reductions (`kernels/gmres.cu`): the host's version leaves the second
//! out where little cancels, which the device could tell only by a further one. A step is six launches, or, where all rows fit on the device at
//! once, a part of one cooperative launch for 32; the bits are the same. Rotations are made by one thread of the device; the host reads residual
//! norms once in 32 steps or at the end of a cycle. It may then end the cycle at any of them, so that a monitor or a limit of steps ends a run
//! after the same step as on the processor; a limit of time does after the steps that are done. Scaling by powers of two is as in [`crate::DeviceCg`].
//!
//! Preconditioners of the device are the same in every step: FGMRES gives what GMRES does, saves one application of M a cycle,
//! and goes on where a cycle made no progress. Where M is I or diagonal, Z is V or M⁻¹·V, and is not kept.
//!
//! Storage: the matrix, (m + 4)·n values; with another M n more, FGMRES m·n more; (m + 1) sums for each thread block, m² + 6m + 5 numbers.
//! Traffic of step k: nnz(s + 4) + 4n bytes of the matrix, (3k + 6)·n values of vectors, and one gather.

use bt_formats::{Breakdown, Bytes, Csr, LinearOperator, Monitor, Outcome, Scalar, SolveReport, StopCriterion, norm2};
use bt_iter::{Watch, meets};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::{AT, CHUNK, Common, FIELDS, HISTORY, Persistent, RR, STOP, check_vector, state_of};
use crate::preconditioner::{DevicePreconditioner, InverseFacts, Made};

/// Why a cycle stops, as kernels/device.h and kernels/gmres.cu number it.
const NON_FINITE: u32 = 2;
const SINGULAR: u32 = 9;

/// Which basis the solution is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// M⁻¹·(V·y): GMRES.
    Fixed,
    /// Z·y: FGMRES.
    Flexible,
}

/// The method on one matrix, which is on the device with the vectors.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_kernels::{Device, DeviceGmres, DevicePreconditioner, Schedule};
/// let a = Csr::from_dense(faer::mat![[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = [0.0; 3];
///     let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 30, Schedule::Auto)?;
///     let report = method.solve(&[2.0, 3.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 3));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceGmres<'a, T: DeviceScalar> {
    common: Common<'a, T>,
    basis: Basis,
    /// m
    restart: usize,
    /// Sums over all blocks, R and what belongs to it: only the address is needed.
    small: DeviceVec<f64>,
    kernels: Kernels,
    all: Option<Persistent>,
}

struct Kernels {
    start: Kernel,
    begin: Kernel,
    product: Kernel,
    project: Kernel,
    totals: Kernel,
    extend: Kernel,
    solve: Kernel,
    combine: Kernel,
    step: Kernel,
}

/// The state of a run that the host keeps.
struct Run<'a, T> {
    b: &'a [T],
    given: &'a [T],
    answer: Vec<T>,
    residual: Vec<T>,
    /// The true residual norm at the start of the cycle, and that of the recurrence.
    truth: f64,
    recurrence: f64,
    /// Cycles that have changed x.
    moves: usize,
}

impl<'a, T: DeviceScalar> DeviceGmres<'a, T> {
    /// GMRES(`restart`): copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// As [`crate::DeviceCg::new`].
    pub fn new(
        device: &Device,
        a: &'a Csr<T>,
        precond: &DevicePreconditioner,
        restart: usize,
        schedule: Schedule,
    ) -> Result<Self> {
        Self::with_basis(device, a, precond, (restart, Basis::Fixed), schedule)
    }

    /// FGMRES(`restart`), which keeps z for every step.
    ///
    /// # Errors
    /// As [`crate::DeviceCg::new`].
    pub fn flexible(
        device: &Device,
        a: &'a Csr<T>,
        precond: &DevicePreconditioner,
        restart: usize,
        schedule: Schedule,
    ) -> Result<Self> {
        Self::with_basis(device, a, precond, (restart, Basis::Flexible), schedule)
    }

    fn with_basis(
        device: &Device,
        a: &'a Csr<T>,
        precond: &DevicePreconditioner,
        (restart, basis): (usize, Basis),
        schedule: Schedule,
    ) -> Result<Self> {
        // More steps than unknowns there are not.
        let m = restart.clamp(1, a.nrows().max(1));
        // V, and z where it is made elsewhere
        let vectors = |made: &Made<T>| match basis {
            _ if made.elsewhere().is_none() => m + 1,
            Basis::Fixed => m + 2,
            Basis::Flexible => 2 * m + 1,
        };
        let common = Common::new(device, a, precond, vectors, m + 1)?;
        let (lanes, suffix) = (common.lanes, T::SUFFIX);
        let kernel = |name: &str| device.kernel(Family::Gmres, &format!("gmres_{name}_{suffix}"));
        let kernels = Kernels {
            start: kernel(&format!("start_{lanes}"))?,
            begin: kernel("begin")?,
            product: kernel(&format!("product_{lanes}"))?,
            project: kernel("project")?,
            totals: kernel("totals")?,
            extend: kernel("extend")?,
            solve: kernel("solve")?,
            combine: kernel("combine")?,
            step: kernel("move")?,
        };
        let small = DeviceVec::uninitialized(device, m.saturating_mul(m).saturating_add(6 * m + 5))?;
        let mut method = Self { common, basis, restart: m, small, kernels, all: None };
        let applied: Vec<_> = (0..m).map(|j| [method.v(j), method.z(j)]).collect();
        method.all = method.common.persistent(schedule, Family::Gmres, "gmres", &applied)?;
        Ok(method)
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let mut bytes = self.common.bytes();
        bytes.workspace += self.small.bytes();
        bytes
    }

    /// What the preconditioner is made of.
    pub fn preconditioner(&self) -> InverseFacts {
        self.common.precond.facts()
    }

    /// Whether a chunk of steps is one launch.
    pub fn is_persistent(&self) -> bool {
        self.all.is_some()
    }

    /// Iterates from the `x` given towards the solution of A·x = b; exits as [`bt_iter::Gmres::solve`] does, with the last iterate, whose
    /// residual is recomputed on the host.
    ///
    /// # Errors
    /// As [`crate::DeviceCg::solve`].
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let n = self.common.n();
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
        let mut residual = b.to_vec();
        let truth = self.common.host_residual(b, x, &mut residual);
        let mut watch = Watch::new(stop, monitor, norm2(b), truth);
        watch.epsilon = epsilon::<T>();
        let mut run = Run { b, given: x, answer: x.to_vec(), residual, truth, recurrence: truth, moves: 0 };
        let outcome = match watch.verdict(truth) {
            Some(outcome) => outcome,
            None => self.cycles(&mut run, stop.max_iters, &mut watch)?,
        };
        let truth = self.common.host_residual(b, &run.answer, &mut run.residual);
        let Run { answer, recurrence, .. } = run;
        x.copy_from_slice(&answer);
        let name = if self.basis == Basis::Fixed { "gmres" } else { "fgmres" };
        Ok(watch.report(name, outcome, recurrence, truth, self.bytes()))
    }

    fn cycles(&mut self, run: &mut Run<'_, T>, limit: usize, watch: &mut Watch<'_>) -> Result<Outcome> {
        let exponents = self.common.load(run.b, run.given)?;
        self.common.state.copy_from(&[0.0; 2 * FIELDS + HISTORY])?;
        // Only a finite target can be met.
        let threshold = if watch.threshold.is_finite() { exponents.scaled_norm(watch.threshold) } else { 0.0 };
        self.start()?;
        loop {
            let ended = self.cycle(run, limit, threshold, watch)?;
            if let Some(outcome) = self.end_cycle(ended, run, watch)? {
                return Ok(outcome);
            }
        }
    }

    /// The steps of a cycle: why it ends, if it is not full, and the columns that are usable.
    fn cycle(
        &mut self,
        run: &mut Run<'_, T>,
        limit: usize,
        threshold: f64,
        watch: &mut Watch<'_>,
    ) -> Result<(Option<Outcome>, usize)> {
        let mut j = 0;
        while j < self.restart {
            let count = (CHUNK as usize).min(self.restart - j).min(limit.saturating_sub(watch.iterations).max(1));
            self.steps(j as u32, count as u32, threshold)?;
            let state = self.state()?;
            let last = state_of(&state, (j + count) as u32);
            let (at, why) = (last[AT] as usize, last[STOP] as u32);
            for step in j + 1..=at {
                watch.iterations += 1;
                watch.operator_applications += 1;
                watch.preconditioner_applications += 1;
                match why {
                    NON_FINITE if step == at => {
                        return Ok((Some(Outcome::Breakdown(Breakdown::NonFinite)), step - 1));
                    }
                    SINGULAR if step == at => {
                        return Ok((Some(Outcome::Breakdown(Breakdown::SingularOperator)), step - 1));
                    }
                    _ => {}
                }
                run.recurrence = self.common.exponents.norm(state[2 * FIELDS + step % HISTORY]);
                // Out of time the steps that are done are taken along.
                if let Some(outcome) = watch.verdict(run.recurrence).filter(|o| *o != Outcome::TimeLimit || step == at)
                {
                    return Ok((Some(outcome), step));
                }
            }
            if why != 0 {
                // There is no next direction, or none from a residual that is zero or not finite.
                let ended = (why == NON_FINITE).then_some(Outcome::Breakdown(Breakdown::NonFinite));
                return Ok((ended, at));
            }
            j += count;
        }
        Ok((None, self.restart))
    }

    /// The end of a cycle: x moves, and its residual is taken; whether to end there.
    fn end_cycle(
        &mut self,
        (ended, columns): (Option<Outcome>, usize),
        run: &mut Run<'_, T>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Outcome>> {
        let (before, claimed) = (run.truth, ended == Some(Outcome::Converged));
        if columns > 0 {
            self.move_x(columns)?;
            run.moves += 1;
            watch.preconditioner_applications += usize::from(self.basis == Basis::Fixed);
            watch.operator_applications += 1;
            run.truth = if claimed { self.host_truth(run)? } else { self.device_truth()? };
            if !claimed && meets(run.truth, watch.threshold) {
                watch.operator_applications += 1;
                run.truth = self.host_truth(run)?;
            }
        }
        if !(run.truth <= before) {
            // R is singular to rounding: y was noise.
            run.truth = before;
            self.take(&self.common.best, run.moves.saturating_sub(1), run)?;
            let reason = if claimed { None } else { ended };
            return Ok(Some(reason.unwrap_or(Outcome::Breakdown(Breakdown::Stagnated))));
        }
        let outcome = match ended {
            Some(Outcome::Converged) => watch.claim(run.truth),
            Some(other) => Some(other),
            None if meets(run.truth, watch.threshold) => Some(Outcome::Converged),
            // The next cycle would start from the same residual and do the same.
            None if columns == 0 || self.basis == Basis::Fixed && run.truth >= before * (1.0 - 1e-12) => {
                Some(Outcome::Breakdown(Breakdown::Stagnated))
            }
            None => None,
        };
        if outcome.is_some() {
            self.take(&self.common.x, run.moves, run)?;
        } else if claimed {
            watch.operator_applications += 1;
            self.start()?;
        }
        Ok(outcome)
    }

    /// The answer ← `x` of the device after so many moves; the x given before the first, or where the range was left.
    fn take(&self, x: &DeviceVec<T>, moves: usize, run: &mut Run<'_, T>) -> Result<()> {
        if moves > 0 {
            x.copy_to(&mut run.answer)?;
            self.common.exponents.restore(&mut run.answer);
        }
        if moves == 0 || !finite(&run.answer) {
            run.answer.copy_from_slice(run.given);
        }
        Ok(())
    }

    /// ‖b − A·x‖₂ of x on the device, by the host; NaN where x left the range.
    fn host_truth(&self, run: &mut Run<'_, T>) -> Result<f64> {
        self.common.x.copy_to(&mut run.answer)?;
        self.common.exponents.restore(&mut run.answer);
        if !finite(&run.answer) {
            return Ok(f64::NAN);
        }
        Ok(self.common.host_residual(run.b, &run.answer, &mut run.residual))
    }

    /// The same by the device, with which the next cycle begins.
    fn device_truth(&self) -> Result<f64> {
        self.start()?;
        Ok(self.common.exponents.norm(state_of(&self.state()?, 0)[RR].sqrt()))
    }

    fn state(&self) -> Result<[f64; 2 * FIELDS + HISTORY]> {
        let mut state = [0.0; 2 * FIELDS + HISTORY];
        self.common.state.copy_to(&mut state)?;
        Ok(state)
    }

    /// v₀ ← r/‖r‖₂ with r = b − A·x
    fn start(&self) -> Result<()> {
        let system = self.system();
        self.kernels.start.launch(self.common.shape, &[Arg::Struct(&system)])?;
        self.kernels.begin.launch(self.common.shape, &[Arg::Struct(&system)])
    }

    /// Steps j .. j + count, which the device ends where the norm is at most `threshold`, or there is no next direction.
    fn steps(&mut self, j: u32, count: u32, threshold: f64) -> Result<()> {
        let system = self.system();
        let (system, threshold, shape) = (Arg::Struct(&system), threshold.arg().0, self.common.shape);
        if let Some(all) = &self.all {
            return self.common.launch_all(all, &[system, Arg::from(j), Arg::from(count), threshold]);
        }
        let Kernels { product, project, totals, extend, .. } = &self.kernels;
        for step in j..j + count {
            let [j, first, second] = [step, 0, 1].map(Arg::from);
            self.common.precondition(self.v(step as usize), self.z(step as usize), self.common.state_at(step))?;
            product.launch(shape, &[system, j])?;
            for time in [first, second] {
                project.launch(shape, &[system, j, time])?;
                totals.launch(Shape::blocks(step + 2), &[system, j, time])?;
            }
            extend.launch(shape, &[system, j, threshold])?;
        }
        Ok(())
    }

    /// x ← x + M⁻¹·(V·y), or x + Z·y, with the first columns of the basis.
    fn move_x(&self, columns: usize) -> Result<()> {
        let (system, k, shape) = (self.system(), Arg::from(columns as u32), self.common.shape);
        let system = Arg::Struct(&system);
        let Kernels { solve, combine, step, .. } = &self.kernels;
        solve.launch(Shape::blocks(1), &[system, k])?;
        let elsewhere = self.common.precond.elsewhere().is_some();
        if elsewhere && self.basis == Basis::Fixed {
            // V·y in the place of the first column that it is not made of.
            let [sum, z] = [self.v(columns), self.z(0)];
            combine.launch(shape, &[system, k, Arg::Word(self.v(0)), Arg::Word(sum)])?;
            self.common.precondition(sum, z, 0)?;
            return step.launch(shape, &[system, Arg::Word(z)]);
        }
        let basis = if elsewhere { self.z(0) } else { self.v(0) };
        combine.launch(shape, &[system, k, Arg::Word(basis), Arg::Word(0)])
    }

    /// Address of column j of V.
    fn v(&self, j: usize) -> u64 {
        self.common.vector(j)
    }

    /// Address of zⱼ.
    fn z(&self, j: usize) -> u64 {
        self.common.vector(self.restart + 1 + if self.basis == Basis::Flexible { j } else { 0 })
    }

    /// struct System of the kernels.
    fn system(&self) -> [u64; 18] {
        let c = &self.common;
        let [head, ptr, col, val, inverse] = c.system();
        let [state, history] = c.state();
        let [b, x, before] = [&c.b, &c.x, &c.best].map(DeviceVec::address);
        let z_step = if self.basis == Basis::Flexible { c.n() as u64 } else { 0 };
        let total = self.small.address();
        let small = total + 2 * (self.restart as u64 + 2) * 8;
        let (m, blocks) = (self.restart as u64, u64::from(c.shape.blocks));
        let [v, z, part] = [self.v(0), self.z(0), c.sum(0)];
        let negligible = epsilon::<T>().to_bits();
        let sizes = blocks | m << 32;
        [
            head, ptr, col, val, inverse, b, x, before, v, z, z_step, part, total, small, state, history, sizes,
            negligible,
        ]
    }
}

fn epsilon<T: DeviceScalar>() -> f64 {
    if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

fn finite<T: Scalar>(x: &[T]) -> bool {
    x.iter().all(|v| Scalar::is_finite(*v))
}
