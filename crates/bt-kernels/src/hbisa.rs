//! HBISA on the device: Jacobi and red–black sweeps.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (6) and (7); sweeps, stopping rules and
//! report are those of [`bt_iter::Hbisa`]. A thread block takes a matrix block, up to 1024 rows, into shared memory and solves it
//! there: a tridiagonal one by parallel cyclic reduction or another [`BlockSolver`]; a dense or banded one, and a tridiagonal one that needs row interchanges, with
//! dense factors L·U = P·D, which the host makes and the device keeps in global memory (`kernels/hbisa.cu`).
//!
//! Departures: of tridiagonal blocks the residual of an iterate is computed, t − D·x, not carried along; it is known one sweep later.
//! The host reads norms every 32 sweeps, where a monitor, a time limit or divergence ends the run. Where all thread blocks fit on the
//! device at once, and no block has over 512 rows, a chunk is one cooperative launch; otherwise a sweep is one launch for Jacobi, two
//! for red–black. Both give the same bits. Several right-hand sides are swept by the same launches, each with norms and an end of its
//! own. [`DeviceHbisa::shared`] leaves a part of the blocks to the host.
//!
//! Storage: D and the couplings, 5n values for each right-hand side that there has been room for at once; a factored block of k rows k² values
//! and k indices, and n values more for each right-hand side where D is not tridiagonal. Traffic of a sweep with z coupling entries of s
//! bytes: z(s + 4) + 4n + 6s·n bytes and gathers; s·k² + 4k more for each factored block.

mod run;
mod split;

use std::time::Instant;

use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, DiagonalBlocks, Error as InputError, LinearOperator, Matrix, Monitor,
    Note, Op, Outcome, PhaseTimes, Scalar, SolveReport, StopCriterion, certify, norm2, one,
};
use bt_iter::{BlockDiagonal, Rate, StopRule, Sweep};
use faer::{Mat, MatMut, MatRef};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::check_vector;
use crate::scaled::Exponents;
use crate::spmv::couplings;
use crate::tridiagonal::BlockSolver;
use run::{Told, Vectors};
pub use split::HostShare;

/// Rows of a block at most, and in one launch for many sweeps.
const LARGEST: usize = 1024;
const LARGEST_PERSISTENT: usize = 512;
/// Right-hand sides at once at most.
const COLUMNS: u32 = 32;

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
    solver: BlockSolver,
    exponents: Exponents,
    first: DeviceVec<u32>,
    diagonal: DeviceVec<T>,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    factored: Option<Factored<T>>,
    vectors: Vectors<T>,
    arrived: DeviceVec<u32>,
    half: Kernel,
    all: Kernel,
    /// Of one right-hand side.
    shape: Shape,
    persistent: bool,
    /// Right-hand sides at once.
    group: usize,
    /// The part of the processor, if it has one.
    host: Option<split::Host<T>>,
}

/// Dense factors of diagonal blocks: see struct Blocks of the kernels.
struct Factored<T: DeviceScalar> {
    starts: DeviceVec<u64>,
    factors: DeviceVec<T>,
    order: DeviceVec<u32>,
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
        Ok(Self {
            count: starts.iter().filter(|&&s| s != NONE).count(),
            starts: DeviceVec::from_slice(device, &starts)?,
            factors: on_device,
            order: DeviceVec::from_slice(device, &order)?,
        })
    }

    fn bytes(&self) -> usize {
        self.starts.bytes() + self.factors.bytes() + self.order.bytes()
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
        let (colours, m) = (colours(sweep), a.n_blocks() as u32);
        let threads = (largest as u32).next_multiple_of(32);
        let shape = Shape { threads, ..Shape::blocks(m.div_ceil(colours)) };
        let kind = if factored.is_some() { "_factored" } else { "" };
        let kernel = |name| device.kernel(Family::Hbisa, &format!("hbisa_{name}{kind}_{}", T::SUFFIX));
        let (half, all) = (kernel("half")?, kernel("all")?);
        let resident = if largest <= LARGEST_PERSISTENT { all.resident_blocks(threads, 0)? } else { 0 };
        let fits = shape.blocks <= resident;
        if schedule == Schedule::Persistent && !fits {
            return refuse(
                "schedule",
                format!("the device does not hold {} blocks of {threads} at once", shape.blocks),
            );
        }
        let persistent = fits && schedule != Schedule::Launches;
        Ok(Self {
            a,
            sweep,
            rule,
            solver: BlockSolver::default(),
            exponents,
            first: DeviceVec::from_slice(device, a.partition().offsets())?,
            diagonal: DeviceVec::from_slice(device, &exponents.matrix(&diagonals))?,
            row_ptr: DeviceVec::from_slice(device, &row_ptr)?,
            col_idx: DeviceVec::from_slice(device, &col_idx)?,
            values: DeviceVec::from_slice(device, &exponents.matrix(&values))?,
            factored,
            vectors: Vectors::new(device, a, shape, 1)?,
            arrived: DeviceVec::uninitialized(device, 1)?,
            half,
            all,
            shape,
            persistent,
            group: if persistent { COLUMNS.min(resident / shape.blocks) } else { COLUMNS } as usize,
            host: None,
        })
    }

    /// The same iteration with another solver of the tridiagonal blocks that need no row interchanges; the paper has cyclic reduction.
    /// The answer differs by rounding.
    pub fn with_solver(self, solver: BlockSolver) -> Self {
        Self { solver, ..self }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let matrix = [&self.first, &self.row_ptr, &self.col_idx].map(DeviceVec::bytes).iter().sum::<usize>();
        Bytes {
            matrix: matrix + self.diagonal.bytes() + self.values.bytes(),
            factors: self.factored.as_ref().map_or(0, Factored::bytes),
            workspace: self.vectors.bytes() + self.arrived.bytes(),
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
        check_vector("right-hand side", b, self.a.n())?;
        check_vector("x", x, self.a.n())?;
        let mut reports = self.run(&[b], &mut [x], stop, &mut Told { monitor, column: None })?;
        Ok(reports.remove(0))
    }

    /// As [`DeviceHbisa::solve`] for the contiguous columns of B and X, up to 32 at once, with the bits that each has alone: a report
    /// for each. The monitor hears which column the next norms are of; when it ends the run, columns not yet begun have no report.
    ///
    /// # Errors
    /// As [`DeviceHbisa::solve`]; columns that had ended when the device failed are solved.
    ///
    /// # Cost
    /// A chunk of sweeps is as many launches as for one right-hand side.
    pub fn solve_many(
        &mut self,
        b: MatRef<'_, T>,
        mut x: MatMut<'_, T>,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<SolveReport>> {
        let (n, count) = (self.a.n(), b.ncols());
        if x.ncols() != count {
            return Err(
                InputError::DimensionMismatch { what: "columns of X", expected: count, found: x.ncols() }.into()
            );
        }
        let contiguous = "columns must be contiguous";
        let b: Vec<&[T]> = b.col_iter().map(|b| b.try_as_col_major().expect(contiguous).as_slice()).collect();
        let mut x: Vec<&mut [T]> =
            x.as_mut().col_iter_mut().map(|x| x.try_as_col_major_mut().expect(contiguous).as_slice_mut()).collect();
        for (b, x) in b.iter().zip(&x) {
            check_vector("right-hand side", b, n)?;
            check_vector("x", x, n)?;
        }
        let group = self.reserve(count)?;
        let mut reports = Vec::with_capacity(count);
        for (b, x) in b.chunks(group).zip(x.chunks_mut(group)) {
            let column = (count > 1).then_some(reports.len());
            reports.extend(self.run(b, x, stop, &mut Told { monitor: &mut *monitor, column })?);
            if reports.iter().any(|report: &SolveReport| report.outcome == Outcome::Stopped) {
                break;
            }
        }
        Ok(reports)
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

    /// `count` sweeps from `first` on; the device stops earlier by itself.
    fn sweeps(&mut self, first: u32, count: u32, limit: u32) -> Result<()> {
        let words = self.words(self.a.n_blocks(), self.rule);
        let shape = Shape { blocks: self.shape.blocks * self.vectors.columns as u32, ..self.shape };
        if self.persistent {
            self.arrived.copy_from(&[0])?;
            let [first, count, limit] = [first, count, limit].map(Arg::from);
            return self.all.launch_together(shape, &[Arg::Struct(&words), first, count, limit, self.arrived.arg()]);
        }
        for step in first..first + count {
            for colour in 0..colours(self.sweep) {
                let [step, colour, limit] = [step, colour, limit].map(Arg::from);
                self.half.launch(shape, &[Arg::Struct(&words), step, colour, limit])?;
            }
        }
        Ok(())
    }

    /// struct Blocks of the kernels, of the first `m` blocks.
    fn words(&self, m: usize, rule: StopRule) -> [u64; 17] {
        let v = &self.vectors;
        let [starts, factors, order] =
            self.factored.as_ref().map_or([0; 3], |f| [f.starts.address(), f.factors.address(), f.order.address()]);
        [
            self.a.n() as u64 | (m as u64) << 32,
            self.first.address(),
            self.diagonal.address(),
            self.row_ptr.address(),
            self.col_idx.address(),
            self.values.address(),
            v.b.address(),
            v.x.address(),
            v.best.address(),
            starts,
            factors,
            order,
            v.image.as_ref().map_or(0, DeviceVec::address),
            v.parts.address(),
            v.state.address(),
            u64::from(colours(self.sweep)) | u64::from(rule == StopRule::Update) << 32,
            v.columns as u64 | u64::from(self.solver.code()) << 32,
        ]
    }

    /// x ← the start where its residual is smaller, whatever the rule looked at: it is an iterate too.
    fn not_worse_than(&self, first: &[T], b: &[T], x: &mut [T], outcome: &mut Outcome) {
        let relative = |x: &[T]| {
            let column = |v| MatRef::from_column_major_slice(v, b.len(), 1);
            certify(self.a, Op::Identity, column(x), column(b)).relative_residual
        };
        if !(relative(x) <= relative(first)) {
            x.copy_from_slice(first);
            if *outcome == Outcome::Converged {
                *outcome = Outcome::Breakdown(Breakdown::Diverged);
            }
        }
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
        let mut notes = vec![if by_residual { Note::StoppedByResidual } else { Note::StoppedByUpdate { last: norm } }];
        if by_residual && outcome == Outcome::Converged && !(truth <= 10.0 * threshold) {
            outcome = Outcome::FalseConvergence;
            notes.push(Note::ClaimedTooMuch { by: "device", claimed: norm, recomputed: truth });
        }
        if let Some(radius) = rate.radius() {
            let (rho, low, high) = (radius.rho, radius.low, radius.high);
            notes.push(Note::SpectralRadius { radius: rho, low, high });
        }
        if let Some(factored) = self.factored.as_ref().filter(|_| self.vectors.image.is_none()) {
            notes.push(Note::InterchangedBlocks { blocks: factored.count });
        }
        if let Outcome::Breakdown(reason) = outcome {
            notes.push(Note::DirectWillDo { why: reason.to_string(), cure: "a direct method will do" });
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
