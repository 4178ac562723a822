//! HBISA on the device: Jacobi and red–black sweeps over tridiagonal diagonal blocks.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (6) and (7); sweeps, stopping rules and
//! report are those of [`bt_iter::Hbisa`]. A thread block takes a matrix block, up to 1024 rows, into shared memory and solves it
//! there by parallel cyclic reduction (`kernels/hbisa.cu`).
//!
//! Departures: the reduction does not pivot, so that matrices whose blocks need interchanges are refused; the residual of an
//! iterate is computed, t − D·x, not carried along, and is known one sweep later. The host reads norms every 32 sweeps, where a
//! monitor, a time limit or divergence ends the run. Where all thread blocks fit on the device at once, and no block has over 512
//! rows, a chunk is one cooperative launch; otherwise a sweep is one launch for Jacobi, two for red–black. Both give the same bits.
//!
//! Storage: D and the couplings, 5n values. Traffic of a sweep with z coupling entries of s bytes: z(s + 4) + 4n + 6s·n bytes and
//! gathers.

use std::ops::ControlFlow;
use std::time::Instant;

use bt_direct::FactorError;
use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, DiagonalBlocks, Error as InputError, LinearOperator, Monitor, Op,
    Outcome, PhaseTimes, Progress, Scalar, SolveReport, StopCriterion, certify, norm2, one,
};
use bt_iter::{BlockDiagonal, Rate, StopRule, Sweep};
use faer::MatRef;

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::{AT, BEST, CHUNK, FIELDS, HISTORY, STOP, check_vector, state_of};
use crate::scaled::Exponents;
use crate::spmv::couplings;

/// Field of the state beside the shared ones: the norm of the last iterate, see kernels/hbisa.cu.
const NORM: usize = 1;
/// Rows of a block at most, and in one launch for many sweeps.
const LARGEST: usize = 1024;
const LARGEST_PERSISTENT: usize = 512;

/// The iteration on one matrix, which is on the device with the vectors.
///
/// ```
/// use bt_formats::{BlockTridiagonal, DiagonalKind, HybridLayout, Outcome, Partition, StopCriterion};
/// use bt_iter::{StopRule, Sweep};
/// use bt_kernels::{Device, DeviceHbisa, Schedule};
/// let a = bt_formats::Csr::from_dense(faer::mat![
///     [4.0, 1.0, 0.5, 0.0],
///     [1.0, 4.0, 0.0, 0.5],
///     [0.5, 0.0, 4.0, 1.0],
///     [0.0, 0.5, 1.0, 4.0],
/// ].as_ref())?;
/// let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
/// let a = BlockTridiagonal::from_csr(&a, Partition::uniform(4, 2)?, layout)?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = [0.0; 4];
///     let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto)?;
///     let report = method.solve(&[5.5; 4], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceHbisa<'a, T: DeviceScalar> {
    a: &'a BlockTridiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
    exponents: Exponents,
    first: DeviceVec<u32>,
    diagonal: DeviceVec<T>,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    b: DeviceVec<T>,
    /// Three iterates that take turns: number i is at i mod 3.
    x: DeviceVec<T>,
    best: DeviceVec<T>,
    parts: DeviceVec<f64>,
    state: DeviceVec<f64>,
    arrived: DeviceVec<u32>,
    half: Kernel,
    all: Kernel,
    shape: Shape,
    persistent: bool,
}

impl<'a, T: DeviceScalar> DeviceHbisa<'a, T> {
    /// Copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for another sweep than Jacobi and red–black, diagonal blocks that are not stored as
    /// tridiagonal, blocks of over 1024 rows, and `Schedule::Persistent` where the blocks do not fit on the device at once;
    /// [`FactorError::Singular`] naming a diagonal block, [`FactorError::Breakdown`] where blocks need row interchanges;
    /// [`InputError::NonFinite`]; errors of the device.
    pub fn new(
        device: &Device,
        a: &'a BlockTridiagonal<T>,
        sweep: Sweep,
        rule: StopRule,
        schedule: Schedule,
    ) -> Result<Self> {
        let refuse = |what, why: String| Err(DeviceError::from(InputError::InvalidStructure { what, why }));
        if !matches!(sweep, Sweep::Jacobi | Sweep::RedBlack) {
            return refuse("sweep", format!("{} is not on the device; hbisa and hbisa-redblack are", sweep.name()));
        }
        let DiagonalBlocks::Tridiagonal(d) = a.diagonal() else {
            return refuse("diagonal blocks", "the device solves tridiagonal ones".into());
        };
        let largest = a.partition().min_max_size().1;
        if largest > LARGEST {
            return refuse("blocks", format!("one has {largest} rows; a thread block takes {LARGEST}"));
        }
        // Finite entries, regular blocks, and whether they can do without interchanges.
        let pivoted = BlockDiagonal::new(a)?.pivoted_blocks();
        if pivoted > 0 {
            let reason = format!("{pivoted} diagonal blocks need row interchanges, which the device does not make");
            return Err(FactorError::Breakdown { method: sweep.name(), reason }.into());
        }
        let (row_ptr, col_idx, values) = couplings(a);
        let all_values: Vec<T> = [d.lower(), d.diag(), d.upper(), &values].concat();
        let exponents = Exponents::of(&all_values);
        let (colours, m, n) = (colours(sweep), a.n_blocks() as u32, a.n());
        let threads = (largest as u32).next_multiple_of(32);
        let shape = Shape { threads, ..Shape::blocks(m.div_ceil(colours)) };
        let kernel = |name| device.kernel(Family::Hbisa, &format!("hbisa_{name}_{}", T::SUFFIX));
        let (half, all) = (kernel("half")?, kernel("all")?);
        let fits = largest <= LARGEST_PERSISTENT && shape.blocks <= all.resident_blocks(threads, 0)?;
        if schedule == Schedule::Persistent && !fits {
            return refuse(
                "schedule",
                format!("the device does not hold {} blocks of {threads} at once", shape.blocks),
            );
        }
        Ok(Self {
            a,
            sweep,
            rule,
            exponents,
            first: DeviceVec::from_slice(device, a.partition().offsets())?,
            diagonal: DeviceVec::from_slice(device, &exponents.matrix(&all_values[..3 * n]))?,
            row_ptr: DeviceVec::from_slice(device, &row_ptr)?,
            col_idx: DeviceVec::from_slice(device, &col_idx)?,
            values: DeviceVec::from_slice(device, &exponents.matrix(&values))?,
            b: DeviceVec::uninitialized(device, n)?,
            x: DeviceVec::uninitialized(device, 3 * n)?,
            best: DeviceVec::uninitialized(device, n)?,
            parts: DeviceVec::uninitialized(device, 4 * 3 * shape.blocks as usize)?,
            state: DeviceVec::uninitialized(device, 2 * FIELDS + HISTORY)?,
            arrived: DeviceVec::uninitialized(device, 1)?,
            half,
            all,
            shape,
            persistent: fits && schedule != Schedule::Launches,
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let matrix = [&self.first, &self.row_ptr, &self.col_idx].map(DeviceVec::bytes).iter().sum::<usize>();
        let vectors = [&self.b, &self.x, &self.best].map(DeviceVec::bytes).iter().sum::<usize>();
        Bytes {
            matrix: matrix + self.diagonal.bytes() + self.values.bytes(),
            factors: 0,
            workspace: vectors + self.parts.bytes() + self.state.bytes() + self.arrived.bytes(),
        }
    }

    /// Whether a chunk of sweeps is one launch.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the best iterate: the one with the smallest norm that the rule saw.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`], [`InputError::NonFinite`]; errors of the device, after which `x` is as it was given.
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let n = self.a.n();
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
        let start = Instant::now();
        let mut residual = b.to_vec();
        self.a.apply(-one::<T>(), x, one(), &mut residual);
        let (norm_b, norm_r0) = (norm2(b), norm2(&residual));
        let threshold = stop.threshold(norm_b, norm_r0);
        let by_residual = self.rule == StopRule::Residual;
        let baseline = match (self.rule, stop.baseline) {
            (StopRule::Residual, Baseline::Rhs) if norm_b > 0.0 => norm_b,
            (StopRule::Residual, Baseline::InitialResidual) if norm_r0 > 0.0 => norm_r0,
            _ => 1.0,
        };
        self.exponents = self.exponents.with_rhs(b);
        let e = self.exponents;
        self.b.copy_from(&e.rhs(b))?;
        let mut iterates = e.to_scaled(x);
        iterates.resize(3 * n, T::default());
        self.x.copy_from(&iterates)?;
        let mut state = [0.0; 2 * FIELDS + HISTORY];
        state[FIELDS + NORM] = if by_residual { e.scaled_norm(norm_r0) } else { f64::INFINITY };
        self.state.copy_from(&state)?;

        let limit = u32::try_from(stop.max_iters).unwrap_or(u32::MAX - 2 * CHUNK);
        // What the kernels hold norms against, in their own scale.
        let tolerances =
            if by_residual { [0.0, e.scaled_norm(threshold)] } else { [stop.rtol, e.scaled_solution(stop.atol)] };
        let norm_of = |v| if by_residual { e.norm(v) } else { e.solution(v) };
        let mut rate = Rate::default();
        // The norm of x⁰ is known, and it may be enough.
        let mut newest = (0, if by_residual { norm_r0 } else { f64::INFINITY });
        let mut outcome = judge(newest, threshold, stop, &mut rate, baseline, monitor, start);
        let mut step = 0;
        while outcome.is_none() {
            // A norm is known one sweep later; the device stops by itself after the last.
            let count = CHUNK.min(limit.saturating_add(2) - step);
            self.sweeps(step, count, limit, tolerances)?;
            self.state.copy_to(&mut state)?;
            step += count;
            let last = state_of(&state, step - 1);
            while newest.0 < last[AT] as u32 && outcome.is_none() {
                let i = newest.0 + 1;
                newest = (i, norm_of(state[2 * FIELDS + i as usize % HISTORY]));
                // The target of the update rule moves with x, and is the kernels' affair.
                let target = if by_residual { threshold } else { -1.0 };
                outcome = judge(newest, target, stop, &mut rate, baseline, monitor, start);
            }
            if outcome.is_none() {
                outcome = match last[STOP] as u32 {
                    0 => None,
                    1 => Some(Outcome::Converged),
                    2 => Some(Outcome::Breakdown(Breakdown::NonFinite)),
                    _ => Some(Outcome::IterationLimit),
                };
            }
        }
        let norm = if step == 0 { newest.1 } else { self.take_best(x, newest.1, norm_r0, &state, step, &norm_of)? };
        let outcome = match outcome {
            Some(outcome) if !norm.is_nan() => outcome,
            _ => Outcome::Breakdown(Breakdown::NonFinite),
        };
        Ok(self.report(b, x, outcome, newest.0 as usize, norm, threshold, &rate, start))
    }

    /// x ← the iterate of the smallest norm: one of the last three, or the one set aside before them. Its norm.
    fn take_best(
        &self,
        x: &mut [T],
        newest: f64,
        norm_0: f64,
        state: &[f64],
        step: u32,
        norm_of: &dyn Fn(f64) -> f64,
    ) -> Result<f64> {
        let n = x.len();
        let last = state_of(state, step - 1);
        let at = last[AT] as u32;
        // Sweeps done: after a stop the last step made none.
        let done = match (last[STOP] as u32, self.rule) {
            (0, _) => step,
            (_, StopRule::Residual) => at + 1,
            (_, StopRule::Update) => at,
        };
        let norm = |i: u32| if i == 0 { norm_0 } else { norm_of(state[2 * FIELDS + i as usize % HISTORY]) };
        let candidates = (done.saturating_sub(2)..=at).rev().map(|i| (norm(i), Some(i)));
        let aside = (norm_of(last[BEST]), None);
        let better = |best: (f64, Option<u32>), other: (f64, Option<u32>)| if other.0 < best.0 { other } else { best };
        let (best, from) = candidates.chain([aside]).fold((f64::INFINITY, Some(0)), better);
        let mut answer = vec![T::default(); n];
        match from {
            // Where no norm is finite, x stays.
            Some(0) => return Ok(if best.is_finite() { best } else { newest }),
            Some(i) => {
                let mut all = vec![T::default(); 3 * n];
                self.x.copy_to(&mut all)?;
                answer.copy_from_slice(&all[(i % 3) as usize * n..][..n]);
            }
            None => self.best.copy_to(&mut answer)?,
        }
        self.exponents.restore(&mut answer);
        // x may leave the range although its scaled twin does not.
        if !answer.iter().all(|v| Scalar::is_finite(*v)) {
            return Ok(f64::NAN);
        }
        x.copy_from_slice(&answer);
        Ok(best)
    }

    /// `count` sweeps from `first` on; the device stops earlier by itself.
    fn sweeps(&mut self, first: u32, count: u32, limit: u32, [rtol, atol]: [f64; 2]) -> Result<()> {
        let (n, m) = (self.a.n() as u64, self.a.n_blocks() as u64);
        let colours = colours(self.sweep);
        let rule = u64::from(self.rule == StopRule::Update);
        let state = self.state.address();
        // struct Blocks of the kernels
        let blocks = [
            n | m << 32,
            self.first.address(),
            self.diagonal.address(),
            self.row_ptr.address(),
            self.col_idx.address(),
            self.values.address(),
            self.b.address(),
            self.x.address(),
            self.best.address(),
            self.parts.address(),
            state,
            state + 2 * FIELDS as u64 * 8,
            u64::from(colours) | rule << 32,
            rtol.to_bits(),
            atol.to_bits(),
        ];
        let blocks = Arg::Struct(&blocks);
        if self.persistent {
            self.arrived.copy_from(&[0])?;
            let args = [blocks, Arg::from(first), Arg::from(count), Arg::from(limit), self.arrived.arg()];
            return self.all.launch_together(self.shape, &args);
        }
        for step in first..first + count {
            for colour in 0..colours {
                let args = [blocks, Arg::from(step), Arg::from(colour), Arg::from(limit)];
                self.half.launch(self.shape, &args)?;
            }
        }
        Ok(())
    }

    fn report(
        &self,
        b: &[T],
        x: &[T],
        mut outcome: Outcome,
        iterations: usize,
        norm: f64,
        threshold: f64,
        rate: &Rate,
        start: Instant,
    ) -> SolveReport {
        let n = x.len();
        let column = |v| MatRef::from_column_major_slice(v, n, 1);
        let certificate = certify(self.a, Op::Identity, column(x), column(b));
        let truth = certificate.relative_residual * norm2(b);
        let by_residual = self.rule == StopRule::Residual;
        let mut notes = vec![if by_residual {
            "stopping rule: 2-norm of the true residual b − A·x".to_owned()
        } else {
            format!("stopping rule: ∞-norm of the update xⁱ⁺¹ − xⁱ, last {norm:.3e}; not a bound on the residual")
        }];
        if by_residual && outcome == Outcome::Converged && !(truth <= 10.0 * threshold) {
            outcome = Outcome::FalseConvergence;
            notes.push(format!("the device claimed {norm:.3e}, the recomputed residual is {truth:.3e}"));
        }
        if let Some(radius) = rate.radius() {
            let (rho, low, high) = (radius.rho, radius.low, radius.high);
            notes.push(format!("estimated spectral radius of the iteration: {rho:.6} ({low:.6} to {high:.6})"));
        }
        if let Outcome::Breakdown(reason) = outcome {
            notes.push(format!("{reason}; a direct method will do (block-lu, band-lu, sparse-lu)"));
        }
        SolveReport {
            method: self.sweep.name(),
            outcome,
            iterations,
            recurrence_residual: by_residual.then_some(norm),
            certificate,
            operator_applications: iterations + 2,
            preconditioner_applications: iterations,
            times: PhaseTimes { solve: start.elapsed(), ..PhaseTimes::default() },
            bytes: self.bytes(),
            notes,
        }
    }
}

/// Colours of the blocks.
fn colours(sweep: Sweep) -> u32 {
    if sweep == Sweep::RedBlack { 2 } else { 1 }
}

/// Why to end with the newest norm, as on the host.
fn judge(
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
