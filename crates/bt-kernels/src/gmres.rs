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
//! The basis is made by classical Gram–Schmidt done twice, in two reductions (`kernels/gmres.cu`): the host's version leaves the
//! second out where little cancels, which the device could tell only by a further one. A step is six launches, or, where all rows
//! fit on the device at once, a part of one cooperative launch for 32; the bits are the same. Rotations are made by one thread of
//! the device; the host reads residual norms once in 32 steps or at the end of a cycle. It may then end the cycle at any of them,
//! so that a monitor or a limit of steps ends a run after the same step as on the processor; a limit of time does after the steps
//! that are done. Scaling by powers of two is as in [`crate::DeviceCg`].
//!
//! Several right-hand sides go through their cycles in step: each launch has a row of thread blocks for every one that goes on, with a
//! basis, a matrix R and a state of its own, and the bits that it has alone. One that has ended, or waits for the next cycle, has no row.
//! They do not share their spaces, as in [`bt_iter::Lockstep`].
//!
//! Preconditioners of the device are the same in every step: FGMRES gives what GMRES does, saves one application of M a cycle,
//! and goes on where a cycle made no progress. Where M is I or diagonal, Z is V or M⁻¹·V, and is not kept.
//!
//! Storage: the matrix; for each right-hand side at a time (m + 4)·n values, with another M n more, FGMRES m·n more, (m + 1) sums for each
//! thread block, m² + 6m + 6 numbers.
//! Traffic of step k: nnz(s + 4) + 4n bytes of the matrix, (3k + 6)·n values of vectors, and one gather.

use std::cell::RefCell;

use bt_formats::{Bytes, Csr, LinearOperator, Monitor, Outcome, SolveReport, StopCriterion};
use bt_iter::ColumnMonitor;
use faer::{MatMut, MatRef};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::krylov::{Common, Persistent, RECORD, check_vector, slices};
use crate::preconditioner::{DevicePreconditioner, InverseFacts, Made};

mod run;

/// Right-hand sides at once, at most.
const COLUMNS: usize = 32;

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
    schedule: Schedule,
    /// Sums over all blocks, R and what belongs to it, and the threshold.
    small: DeviceVec<f64>,
    /// The right-hand side of each row of thread blocks, and what is there.
    rows: DeviceVec<u32>,
    placed: Vec<usize>,
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
        let small = DeviceVec::uninitialized(device, numbers(m))?;
        let rows = DeviceVec::uninitialized(device, 1)?;
        let mut method =
            Self { common, basis, restart: m, schedule, small, rows, placed: Vec::new(), kernels, all: None };
        method.all = method.persistent()?;
        Ok(method)
    }

    /// Steps of the first right-hand side in one launch, if that is how they are to be done.
    fn persistent(&self) -> Result<Option<Persistent>> {
        let applied: Vec<_> = (0..self.restart).map(|j| [self.v(0, j), self.z(0, j)]).collect();
        self.common.persistent(self.schedule, Family::Gmres, "gmres", &applied)
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let mut bytes = self.common.bytes();
        bytes.workspace += self.small.bytes() + self.rows.bytes();
        bytes
    }

    /// Rows of a block where products with A are by blocks, those of [`DevicePreconditioner::BlockSsorAi`], in no more bytes than by rows.
    pub fn block_rows(&self) -> Option<usize> {
        self.common.block_rows()
    }

    /// What the preconditioner is made of.
    pub fn preconditioner(&self) -> InverseFacts {
        self.common.precond.facts()
    }

    /// Whether a chunk of steps is one launch.
    pub fn is_persistent(&self) -> bool {
        self.all.is_some()
    }

    /// Whether it is for so many right-hand sides in step.
    pub fn is_persistent_for(&self, columns: usize) -> bool {
        self.all.as_ref().is_some_and(|all| all.takes(self.common.shape.blocks, columns, columns == 1))
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
        let shared = RefCell::new(monitor);
        let mut reports = self.run(&[b], &mut [x], stop, &mut [ColumnMonitor::new(&shared, None)])?;
        Ok(reports.remove(0))
    }

    /// As [`DeviceGmres::solve`] for the contiguous columns of B and X, up to 32 at once or as many as the device has memory for, with the
    /// bits that each has alone: a report for each. The monitor hears which column the next norms are of; when it ends the run, columns
    /// not yet begun have no report. A limit of time is one for all columns of a group.
    ///
    /// # Panics
    /// When columns are not contiguous.
    ///
    /// # Errors
    /// As [`DeviceGmres::solve`]; columns of groups that had ended when the device failed are solved.
    ///
    /// # Cost
    /// A step is as many launches as for one right-hand side, and those of M for each; the end of a cycle has launches for each.
    ///
    /// # Example
    /// ```
    /// use bt_formats::{Csr, Outcome, StopCriterion};
    /// use bt_kernels::{Device, DeviceGmres, DevicePreconditioner, Schedule};
    /// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [0.0, 3.0]].as_ref())?;
    /// if let Ok(device) = Device::open(0) {
    ///     let (b, mut x) = (faer::mat![[3.0, 0.0], [3.0, 0.0]], faer::Mat::zeros(2, 2));
    ///     let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 30, Schedule::Auto)?;
    ///     let reports = method.solve_many(b.as_ref(), x.as_mut(), &StopCriterion::default(), &mut ())?;
    ///     assert!(reports.iter().all(|report| report.outcome == Outcome::Converged));
    ///     assert!((x - faer::mat![[1.0, 0.0], [1.0, 0.0f64]]).norm_max() < 1e-7);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve_many(
        &mut self,
        b: MatRef<'_, T>,
        mut x: MatMut<'_, T>,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<SolveReport>> {
        let (b, mut x) = slices(self.common.n(), b, x.as_mut())?;
        let count = b.len();
        let group = self.reserve(count)?;
        let shared = RefCell::new(monitor);
        let mut reports = Vec::with_capacity(count);
        for (b, x) in b.chunks(group).zip(x.chunks_mut(group)) {
            let number = |j: usize| (count > 1).then_some(reports.len() + j);
            let mut monitors: Vec<_> = (0..b.len()).map(|j| ColumnMonitor::new(&shared, number(j))).collect();
            reports.extend(self.run(b, x, stop, &mut monitors)?);
            if reports.iter().any(|report: &SolveReport| report.outcome == Outcome::Stopped) {
                break;
            }
        }
        Ok(reports)
    }

    /// Takes the memory for so many right-hand sides at once, up to 32, or for as many as the device has room for: how many. That for more
    /// stays, and [`DeviceGmres::solve_many`] does the same.
    ///
    /// # Errors
    /// Those of the device, but for a want of memory.
    pub fn reserve(&mut self, columns: usize) -> Result<usize> {
        let device = self.small.device().clone();
        let mut group = columns.clamp(1, COLUMNS);
        while group > self.common.room() {
            let small = DeviceVec::uninitialized(&device, numbers(self.restart).saturating_mul(group));
            let own = small.and_then(|small| Ok((small, DeviceVec::uninitialized(&device, group)?)));
            match own.and_then(|own| self.common.widen(group).map(|()| own)) {
                Ok(own) => {
                    (self.small, self.rows) = own;
                    self.placed.clear();
                    // It has addresses of vectors that are gone. Without the memory for another one steps are launches.
                    self.all = None;
                    self.all = match self.persistent() {
                        Err(DeviceError::OutOfMemory { .. }) if self.schedule != Schedule::Persistent => None,
                        made => made?,
                    };
                }
                Err(DeviceError::OutOfMemory { .. }) => group = (group / 2).max(self.common.room()),
                Err(other) => return Err(other),
            }
        }
        Ok(group)
    }

    /// v₀ ← r/‖r‖₂ with r = b − A·x, of one right-hand side.
    fn start(&self, column: usize) -> Result<()> {
        let system = self.system(column);
        self.kernels.start.launch(self.common.shape, &[Arg::Struct(&system)])?;
        self.kernels.begin.launch(self.common.shape, &[Arg::Struct(&system)])
    }

    /// Steps j .. j + count of these right-hand sides, which the device ends where a norm is small enough, or there is no next direction.
    fn steps(&mut self, going: &[usize], j: u32, count: u32) -> Result<()> {
        let several = going.len() > 1;
        if several && self.placed != going {
            self.rows.copy_range_from(0, &going.iter().map(|&c| c as u32).collect::<Vec<_>>())?;
            self.placed = going.to_vec();
        }
        let mut words = self.system(if several { 0 } else { going[0] });
        words[COLUMNS_WORD] = if several { self.rows.address() } else { 0 };
        let (system, rows) = (Arg::Struct(&words), going.len() as u32);
        let shape = Shape { rows, ..self.common.shape };
        if let Some(all) = self.all.as_ref().filter(|all| all.takes(shape.blocks, going.len(), going == [0])) {
            return self.common.launch_all(all, rows, &[system, Arg::from(j), Arg::from(count)]);
        }
        let Kernels { product, project, totals, extend, .. } = &self.kernels;
        for step in j..j + count {
            for &c in going {
                let [v, z] = [self.v(c, step as usize), self.z(c, step as usize)];
                self.common.precondition(v, z, self.state_at(c, step))?;
            }
            let [j, first, second] = [step, 0, 1].map(Arg::from);
            product.launch(shape, &[system, j])?;
            for time in [first, second] {
                project.launch(shape, &[system, j, time])?;
                totals.launch(Shape { rows, ..Shape::blocks(step + 2) }, &[system, j, time])?;
            }
            extend.launch(shape, &[system, j])?;
        }
        Ok(())
    }

    /// x ← x + M⁻¹·(V·y), or x + Z·y, with the first columns of the basis of one right-hand side.
    fn move_x(&self, column: usize, k: usize) -> Result<()> {
        let (words, count, shape) = (self.system(column), Arg::from(k as u32), self.common.shape);
        let system = Arg::Struct(&words);
        let Kernels { solve, combine, step, .. } = &self.kernels;
        solve.launch(Shape::blocks(1), &[system, count])?;
        let elsewhere = self.common.precond.elsewhere().is_some();
        if elsewhere && self.basis == Basis::Fixed {
            // V·y in the place of the first column that it is not made of.
            let [sum, z] = [self.v(column, k), self.z(column, 0)];
            combine.launch(shape, &[system, count, Arg::Word(self.v(column, 0)), Arg::Word(sum)])?;
            self.common.precondition(sum, z, 0)?;
            return step.launch(shape, &[system, Arg::Word(z)]);
        }
        let basis = if elsewhere { self.z(column, 0) } else { self.v(column, 0) };
        combine.launch(shape, &[system, count, Arg::Word(basis), Arg::Word(0)])
    }

    /// Address of column j of V.
    fn v(&self, column: usize, j: usize) -> u64 {
        self.common.vector(j) + (column * self.common.vector_values() * size_of::<T>()) as u64
    }

    /// Address of zⱼ.
    fn z(&self, column: usize, j: usize) -> u64 {
        self.v(column, self.restart + 1 + if self.basis == Basis::Flexible { j } else { 0 })
    }

    /// Address of the copy of the state that `step` writes.
    fn state_at(&self, column: usize, step: u32) -> u64 {
        self.common.state_at(step) + (column * RECORD * 8) as u64
    }

    /// struct System of the kernels, of one right-hand side.
    fn system(&self, column: usize) -> [u64; COLUMNS_WORD + 3] {
        let c = &self.common;
        let [head, ptr, col, val, inverse] = c.system();
        let behind = |address: u64, values: usize, bytes: usize| address + (column * values * bytes) as u64;
        let [state, history] = c.state().map(|address| behind(address, RECORD, 8));
        let [b, x, before] = [&c.b, &c.x, &c.best].map(|v| behind(v.address(), c.n(), size_of::<T>()));
        let z_step = if self.basis == Basis::Flexible { c.n() as u64 } else { 0 };
        let total = behind(self.small.address(), numbers(self.restart), 8);
        let small = total + 2 * (self.restart as u64 + 2) * 8;
        let (m, blocks) = (self.restart as u64, u64::from(c.shape.blocks));
        let [v, z] = [self.v(column, 0), self.z(column, 0)];
        let part = behind(c.sum(0), (self.restart + 1) * c.shape.blocks as usize, 8);
        let (sizes, vectors) = (blocks | m << 32, c.vector_values() as u64);
        let epsilon = epsilon::<T>().to_bits();
        [
            head,
            ptr,
            col,
            val,
            inverse,
            b,
            x,
            before,
            v,
            z,
            z_step,
            part,
            total,
            small,
            state,
            history,
            sizes,
            epsilon,
            0,
            vectors,
            c.block_size(),
        ]
    }
}

/// Where struct System has the right-hand sides of the rows.
const COLUMNS_WORD: usize = 18;

/// Numbers of a right-hand side beside its state: h and g, R, cosines, sines, the right-hand side of R·y, y, and the threshold.
fn numbers(m: usize) -> usize {
    m.saturating_mul(m).saturating_add(6 * m + 6)
}

fn epsilon<T: DeviceScalar>() -> f64 {
    if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}
