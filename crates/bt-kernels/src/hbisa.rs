//! HBISA on the device: Jacobi and red–black sweeps.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (6) and (7); sweeps, stopping rules and
//! report are those of [`bt_iter::Hbisa`]. A thread block takes a matrix block, up to 1024 rows, into shared memory and solves it
//! there: a tridiagonal one by parallel cyclic reduction; a dense or banded one, and a tridiagonal one that needs row interchanges, with
//! dense factors L·U = P·D, which the host makes and the device keeps in global memory (`kernels/hbisa.cu`).
//!
//! Departures: of tridiagonal blocks the residual of an iterate is computed, t − D·x, not carried along; it is known one sweep later.
//! The host reads norms every 32 sweeps, where a monitor, a time limit or divergence ends the run. Where all thread blocks fit on the
//! device at once, and no block has over 512 rows, a chunk is one cooperative launch; otherwise a sweep is one launch for Jacobi, two
//! for red–black. Both give the same bits. [`DeviceHbisa::shared`] leaves a part of the blocks to the host.
//!
//! Storage: D and the couplings, 5n values; a factored block of k rows k² values and k indices, and n values more where D is not
//! tridiagonal. Traffic of a sweep with z coupling entries of s bytes: z(s + 4) + 4n + 6s·n bytes and gathers; s·k² + 4k more for each
//! factored block.

mod split;

use std::ops::ControlFlow;
use std::time::Instant;

use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, DiagonalBlocks, Error as InputError, LinearOperator, Matrix, Monitor,
    Op, Outcome, PhaseTimes, Progress, Scalar, SolveReport, StopCriterion, certify, norm2, one,
};
use bt_iter::{BlockDiagonal, Rate, StopRule, Sweep};
use faer::{Mat, MatRef};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::{AT, BEST, CHUNK, FIELDS, HISTORY, STOP, check_vector, state_of};
use crate::scaled::Exponents;
use crate::spmv::couplings;
pub use split::HostShare;

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
    factored: Option<Factored<T>>,
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
    /// The part of the processor, if it has one.
    host: Option<split::Host<T>>,
}

/// Dense factors of diagonal blocks: see struct Blocks of the kernels.
struct Factored<T: DeviceScalar> {
    starts: DeviceVec<u64>,
    factors: DeviceVec<T>,
    order: DeviceVec<u32>,
    /// D·x where D is not tridiagonal.
    image: Option<DeviceVec<T>>,
    count: usize,
}

/// The place of a block without factors.
const NONE: u64 = u64::MAX;

impl<T: DeviceScalar> Factored<T> {
    /// Factors, by partial pivoting, of the blocks of s·A that `chosen` names.
    fn new(device: &Device, a: &BlockTridiagonal<T>, e: Exponents, chosen: impl Fn(usize) -> bool) -> Result<Self> {
        let size = |j| a.partition().size(j);
        let total: usize = (0..a.n_blocks()).filter(|&j| chosen(j)).map(|j| size(j) * size(j)).sum();
        // Before the work: whether it fits.
        let mut on_device = DeviceVec::uninitialized(device, total)?;
        let (mut starts, mut factors, mut order) = (Vec::new(), Vec::with_capacity(total), Vec::new());
        for j in 0..a.n_blocks() {
            let k = size(j);
            if !chosen(j) {
                starts.push(NONE);
                order.extend(0..k as u32);
                continue;
            }
            let mut block = Mat::zeros(k, k);
            a.copy_diagonal_block(j, block.as_mut());
            let block = MatRef::from_column_major_slice(&e.matrix(&columns_of(&block)), k, k).to_owned();
            let lu = block.partial_piv_lu();
            let (l, u) = (lu.L(), lu.U());
            starts.push(factors.len() as u64);
            factors.extend((0..k * k).map(|at| {
                let (i, c) = (at % k, at / k);
                if i > c { l[(i, c)] } else { u[(i, c)] }
            }));
            order.extend(lu.P().arrays().0.iter().map(|&i| i as u32));
        }
        on_device.copy_from(&factors)?;
        let tridiagonal = matches!(a.diagonal(), DiagonalBlocks::Tridiagonal(_));
        Ok(Self {
            count: starts.iter().filter(|&&s| s != NONE).count(),
            starts: DeviceVec::from_slice(device, &starts)?,
            factors: on_device,
            order: DeviceVec::from_slice(device, &order)?,
            image: if tridiagonal { None } else { Some(DeviceVec::zeros(device, a.n())?) },
        })
    }

    fn bytes(&self) -> usize {
        let image = self.image.as_ref().map_or(0, DeviceVec::bytes);
        self.starts.bytes() + self.factors.bytes() + self.order.bytes() + image
    }
}

/// The values of a matrix, column after column.
fn columns_of<T: DeviceScalar>(a: &Mat<T>) -> Vec<T> {
    (0..a.ncols()).flat_map(|j| a.col_as_slice(j).iter().copied()).collect()
}

impl<'a, T: DeviceScalar> DeviceHbisa<'a, T> {
    /// Copies A to the device, with factors of the blocks that are not tridiagonal or need interchanges, and takes the memory for the
    /// vectors.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for another sweep than Jacobi and red–black, blocks of over 1024 rows, and
    /// `Schedule::Persistent` where the blocks do not fit on the device at once; [`FactorError::Singular`] naming a diagonal block;
    /// [`InputError::NonFinite`]; errors of the device.
    ///
    /// # Cost
    /// ⅔k³ flops on the host for each factored block of k rows.
    ///
    /// [`FactorError::Singular`]: bt_direct::FactorError::Singular
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
        let largest = a.partition().min_max_size().1;
        if largest > LARGEST {
            return refuse("blocks", format!("one has {largest} rows; a thread block takes {LARGEST}"));
        }
        // Finite entries, regular blocks, and whether they can do without interchanges.
        let checked = BlockDiagonal::new(a)?;
        let (row_ptr, col_idx, values) = couplings(a);
        let mut largest_value = vec![T::default()];
        a.for_each_entry(&mut |_, _, v| largest_value[0] = larger(largest_value[0], v));
        let exponents = Exponents::of(&largest_value);
        let (diagonals, factored) = match a.diagonal() {
            DiagonalBlocks::Tridiagonal(d) => {
                let some = checked.pivoted_blocks() > 0;
                let made =
                    if some { Some(Factored::new(device, a, exponents, |j| checked.is_pivoted(j))?) } else { None };
                ([d.lower(), d.diag(), d.upper()].concat(), made)
            }
            _ => (Vec::new(), Some(Factored::new(device, a, exponents, |_| true)?)),
        };
        drop(checked);
        let (colours, m, n) = (colours(sweep), a.n_blocks() as u32, a.n());
        let threads = (largest as u32).next_multiple_of(32);
        let shape = Shape { threads, ..Shape::blocks(m.div_ceil(colours)) };
        let kind = if factored.is_some() { "_factored" } else { "" };
        let kernel = |name| device.kernel(Family::Hbisa, &format!("hbisa_{name}{kind}_{}", T::SUFFIX));
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
            diagonal: DeviceVec::from_slice(device, &exponents.matrix(&diagonals))?,
            row_ptr: DeviceVec::from_slice(device, &row_ptr)?,
            col_idx: DeviceVec::from_slice(device, &col_idx)?,
            values: DeviceVec::from_slice(device, &exponents.matrix(&values))?,
            factored,
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
            host: None,
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let matrix = [&self.first, &self.row_ptr, &self.col_idx].map(DeviceVec::bytes).iter().sum::<usize>();
        let vectors = [&self.b, &self.x, &self.best].map(DeviceVec::bytes).iter().sum::<usize>();
        Bytes {
            matrix: matrix + self.diagonal.bytes() + self.values.bytes(),
            factors: self.factored.as_ref().map_or(0, Factored::bytes),
            workspace: vectors + self.parts.bytes() + self.state.bytes() + self.arrived.bytes(),
        }
    }

    /// Whether a chunk of sweeps is one launch.
    pub fn is_persistent(&self) -> bool {
        self.persistent && self.host.is_none()
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
        if let Some(host) = self.host.take() {
            let done = self.solve_split(&host, b, x, stop, monitor);
            self.host = Some(host);
            return done;
        }
        let start = Instant::now();
        let (norm_r0, threshold, baseline) = self.measures(b, x, stop);
        let by_residual = self.rule == StopRule::Residual;
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

    /// ‖b − A·x‖, the norm that is small enough, and what reported norms are relative to.
    fn measures(&self, b: &[T], x: &[T], stop: &StopCriterion) -> (f64, f64, f64) {
        let mut residual = b.to_vec();
        self.a.apply(-one::<T>(), x, one(), &mut residual);
        let (norm_b, norm_r0) = (norm2(b), norm2(&residual));
        let baseline = match (self.rule, stop.baseline) {
            (StopRule::Residual, Baseline::Rhs) if norm_b > 0.0 => norm_b,
            (StopRule::Residual, Baseline::InitialResidual) if norm_r0 > 0.0 => norm_r0,
            _ => 1.0,
        };
        (norm_r0, stop.threshold(norm_b, norm_r0), baseline)
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
    fn sweeps(&mut self, first: u32, count: u32, limit: u32, tolerances: [f64; 2]) -> Result<()> {
        if self.persistent {
            self.arrived.copy_from(&[0])?;
            let words = self.words(tolerances, self.a.n_blocks(), self.rule);
            let [first, count, limit] = [first, count, limit].map(Arg::from);
            return self
                .all
                .launch_together(self.shape, &[Arg::Struct(&words), first, count, limit, self.arrived.arg()]);
        }
        for step in first..first + count {
            for colour in 0..colours(self.sweep) {
                let words = self.words(tolerances, self.a.n_blocks(), self.rule);
                let [step, colour, limit] = [step, colour, limit].map(Arg::from);
                self.half.launch(self.shape, &[Arg::Struct(&words), step, colour, limit])?;
            }
        }
        Ok(())
    }

    /// struct Blocks of the kernels, of the first `m` blocks.
    fn words(&self, [rtol, atol]: [f64; 2], m: usize, rule: StopRule) -> [u64; 19] {
        let state = self.state.address();
        let [starts, factors, order, image] = self.factored.as_ref().map_or([0; 4], |f| {
            let image = f.image.as_ref().map_or(0, DeviceVec::address);
            [f.starts.address(), f.factors.address(), f.order.address(), image]
        });
        [
            self.a.n() as u64 | (m as u64) << 32,
            self.first.address(),
            self.diagonal.address(),
            self.row_ptr.address(),
            self.col_idx.address(),
            self.values.address(),
            self.b.address(),
            self.x.address(),
            self.best.address(),
            starts,
            factors,
            order,
            image,
            self.parts.address(),
            state,
            state + 2 * FIELDS as u64 * 8,
            u64::from(colours(self.sweep)) | u64::from(rule == StopRule::Update) << 32,
            rtol.to_bits(),
            atol.to_bits(),
        ]
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
        if let Some(factored) = self.factored.as_ref().filter(|f| f.image.is_none()) {
            notes.push(format!("{} diagonal blocks were factored with row interchanges", factored.count));
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

/// The one of the larger modulus.
fn larger<T: DeviceScalar>(a: T, b: T) -> T {
    if Scalar::abs(b) > Scalar::abs(a) { b } else { a }
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
