//! HBISA on the device: Jacobi and red–black sweeps.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (6) and (7); sweeps, stopping rules and
//! report are those of [`bt_iter::Hbisa`]. A thread block takes a matrix block, up to 1024 rows, or several small ones into
//! shared memory and solves them there: a tridiagonal one by parallel cyclic reduction or another [`BlockSolver`]; a dense or
//! banded one, and a tridiagonal one that needs row interchanges, with dense factors L·U = P·D, which the host makes and the
//! device keeps in global memory (`kernels/hbisa.cu`).
//!
//! Departures: of tridiagonal blocks the residual of an iterate is computed, t − D·x, not carried along; it is known one sweep later.
//! The host reads norms every 32 sweeps, where a monitor, a time limit or divergence ends the run. Where all thread blocks fit on the
//! device at once, and no block has over 512 rows, a chunk is one cooperative launch; otherwise a sweep is one launch for Jacobi, two
//! for red–black. Both give the same bits. Several right-hand sides are swept by the same launches, each with norms and an end of its
//! own. [`SplitHbisa`] has blocks on several devices, and on the host.
//!
//! Storage: D and the couplings, 5n values for each right-hand side that there has been room for at once; a factored block of k rows k² values
//! and k indices, and n values more for each right-hand side where D is not tridiagonal. Traffic of a sweep with z coupling entries of s
//! bytes: z(s + 4) + 4n + 6s·n bytes and gathers; s·k² + 4k more for each factored block.
//!
//! | file | case |
//! |---|---|
//! | `piece.rs` | blocks on one device, all or consecutive ones, with their factors and vectors |
//! | `run.rs` | all blocks on one device: the host's part of a run, for one right-hand side or several |
//! | `split.rs` | blocks on several devices, and on the processor beside them |

mod piece;
mod run;
mod split;

use std::time::Instant;

use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, Error as InputError, LinearOperator, Monitor, Note, Op, Outcome,
    PhaseTimes, SolveReport, StopCriterion, certify, norm2, one,
};
use bt_iter::{Rate, StopRule, Sweep};
use faer::{MatMut, MatRef};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Kernel, Result, Shape};
use crate::krylov::{check_vector, slices};
use crate::scaled::Exponents;
use crate::tridiagonal::BlockSolver;
use piece::{Piece, Share, Source};
use run::Told;
pub use split::SplitHbisa;

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
    iteration: Iteration<'a, T>,
    solver: BlockSolver,
    exponents: Exponents,
    piece: Piece<T>,
    arrived: DeviceVec<u32>,
    all: Kernel,
    persistent: bool,
    /// Right-hand sides at once.
    group: usize,
}

/// What is iterated on and by which rule, wherever the sweeps are made.
#[derive(Clone, Copy)]
struct Iteration<'a, T: DeviceScalar> {
    a: &'a BlockTridiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
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
        let iteration = Iteration::new(a, sweep, rule)?;
        let source = Source::new(a)?;
        let piece = Piece::new(device, a, &source, 0..a.n_blocks(), sweep, Share::ThreadBlocks)?;
        let all = source.kernel(device, "all")?;
        let Shape { blocks, threads, .. } = piece.shape;
        let resident = if source.largest <= LARGEST_PERSISTENT { all.resident_blocks(threads, 0)? } else { 0 };
        let fits = blocks <= resident;
        if schedule == Schedule::Persistent && !fits {
            return refuse("schedule", format!("the device does not hold {blocks} blocks of {threads} at once"));
        }
        let persistent = fits && schedule != Schedule::Launches;
        Ok(Self {
            iteration,
            solver: BlockSolver::default(),
            exponents: source.exponents,
            piece,
            arrived: DeviceVec::uninitialized(device, 1)?,
            all,
            persistent,
            group: if persistent { COLUMNS.min(resident / blocks) } else { COLUMNS } as usize,
        })
    }

    /// The same iteration with another solver of the tridiagonal blocks that need no row interchanges; the paper has cyclic reduction.
    /// The answer differs by rounding.
    pub fn with_solver(self, solver: BlockSolver) -> Self {
        Self { solver, ..self }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let [matrix, factors] = self.piece.bytes();
        Bytes { matrix, factors, workspace: self.piece.vectors.bytes() + self.arrived.bytes() }
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
        let n = self.iteration.a.n();
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
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
        let (b, mut x) = slices(self.iteration.a.n(), b, x.as_mut())?;
        let count = b.len();
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

    /// `count` sweeps from `first` on; the device stops earlier by itself.
    fn sweeps(&mut self, first: u32, count: u32, limit: u32) -> Result<()> {
        let Iteration { sweep, rule, .. } = self.iteration;
        let words = self.piece.words(sweep, rule, self.solver);
        if self.persistent {
            self.arrived.copy_from(&[0])?;
            let [first, count, limit] = [first, count, limit].map(Arg::from);
            let args = [Arg::Struct(&words), first, count, limit, self.arrived.arg()];
            return self.all.launch_together(self.piece.grid(), &args);
        }
        for step in first..first + count {
            for colour in 0..colours(sweep) {
                self.piece.half_sweep(&words, [step, colour, limit])?;
            }
        }
        Ok(())
    }
}

impl<'a, T: DeviceScalar> Iteration<'a, T> {
    /// [`InputError::InvalidStructure`] for what is not on a device.
    fn new(a: &'a BlockTridiagonal<T>, sweep: Sweep, rule: StopRule) -> Result<Self> {
        if !matches!(sweep, Sweep::Jacobi | Sweep::RedBlack) {
            return refuse("sweep", format!("{} is not on the device; hbisa and hbisa-redblack are", sweep.name()));
        }
        let largest = a.partition().min_max_size().1;
        if largest > LARGEST {
            return refuse("blocks", format!("one has {largest} rows; a thread block takes {LARGEST}"));
        }
        Ok(Self { a, sweep, rule })
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
        (bytes, interchanged): (Bytes, usize),
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
        if interchanged > 0 {
            notes.push(Note::InterchangedBlocks { blocks: interchanged });
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
            bytes,
            notes,
        }
    }
}

fn refuse<T>(what: &'static str, why: String) -> Result<T> {
    Err(DeviceError::from(InputError::InvalidStructure { what, why }))
}

/// Colours of the blocks.
fn colours(sweep: Sweep) -> u32 {
    if sweep == Sweep::RedBlack { 2 } else { 1 }
}
