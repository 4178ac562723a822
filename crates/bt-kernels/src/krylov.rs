//! What the Krylov methods on a device share: the system there, and the loop of the host around their steps.
//!
//! A step is a number of launches that leave a new iterate and its residual norm. The device stops by itself; the host reads state
//! and norms once in [`CHUNK`] steps, shows the norms to the monitor, and checks every claim of convergence against b − A·x.

use std::sync::Arc;

use bt_formats::{
    Bcsr, Breakdown, Bytes, Csr, Error as InputError, LinearOperator, Matrix, Monitor, Outcome, Scalar, SolveReport,
    StopCriterion, norm2, one,
};
use bt_iter::Watch;
use faer::{MatMut, MatRef};

use crate::bcsr::DeviceBcsr;
use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::preconditioner::{DevicePreconditioner, Made};
use crate::scaled::Exponents;
use crate::spmv::{DeviceCsr, RowRule};
use crate::sweep::Step;

/// Steps between looks of the host; the kernels keep twice as many norms.
pub(crate) const CHUNK: u32 = 32;
pub(crate) const HISTORY: usize = 64;
/// Fields of a copy of the state, of which there are two: see kernels/device.h.
pub(crate) const FIELDS: usize = 9;
/// Squares of norms: of the residual, and of that of the iterate set aside.
pub(crate) const RR: usize = 1;
pub(crate) const BEST: usize = 2;
pub(crate) const STOP: usize = 3;
const STOP_LATER: usize = 4;
pub(crate) const AT: usize = 6;
/// Values of a state: two copies of the fields, then the norms.
pub(crate) const RECORD: usize = 2 * FIELDS + HISTORY;

/// Restarts with a new shadow residual before an inner product of zero is a breakdown.
const RESTARTS: usize = 3;

/// The system on the device, the preconditioner, the vectors, and the state of a run.
pub(crate) struct Common<'a, T: DeviceScalar> {
    a: &'a Csr<T>,
    pub exponents: Exponents,
    matrix: OnDevice<T>,
    pub precond: Made<T>,
    pub x: DeviceVec<T>,
    pub b: DeviceVec<T>,
    pub best: DeviceVec<T>,
    /// Vectors and sums of the method: only addresses are needed.
    vectors: DeviceVec<T>,
    sums: DeviceVec<f64>,
    /// Blocks that have come to the barriers of a cooperative launch.
    pub arrived: DeviceVec<u32>,
    /// Two copies of the state, then the norms.
    pub state: DeviceVec<f64>,
    /// Right-hand sides that there is room for: everything above that a run writes is there so many times, one after the other.
    room: usize,
    /// Of every kernel, so that the sums of one are read by the next.
    pub shape: Shape,
    /// Lanes of a row; 0 where A is of blocks.
    pub lanes: u32,
}

/// A, scaled, for products.
enum OnDevice<T: DeviceScalar> {
    Rows(Arc<DeviceCsr<T>>),
    /// Blocks of so many rows.
    Blocks(DeviceBcsr<T>, usize),
}

impl<T: DeviceScalar> OnDevice<T> {
    /// By the blocks that the preconditioner is made of, where they take no more bytes than compressed rows; and lanes of a row.
    fn new(device: &Device, a: &Csr<T>, precond: &DevicePreconditioner) -> Result<(Self, u32)> {
        if let DevicePreconditioner::BlockSsorAi { block_size, .. } = *precond
            && block_size > 1
            && let Ok(blocks) = Bcsr::from_csr(a, block_size)
            && blocks.bytes() <= a.bytes()
        {
            return Ok((Self::Blocks(DeviceBcsr::new(device, &blocks)?, block_size), 0));
        }
        let rule = RowRule::for_sums(a);
        Ok((Self::Rows(Arc::new(DeviceCsr::with_options(device, a, rule)?)), rule.lanes()))
    }

    /// Of pointers, columns and values.
    fn addresses(&self) -> [u64; 3] {
        match self {
            Self::Rows(rows) => rows.addresses(),
            Self::Blocks(blocks, _) => blocks.addresses(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.bytes(),
            Self::Blocks(blocks, _) => blocks.bytes(),
        }
    }
}

/// Many steps in one cooperative launch.
pub(crate) struct Persistent {
    kernel: Kernel,
    /// The parts that M is made of, of each application in a step.
    words: Option<DeviceVec<u64>>,
    parts: u32,
    /// Thread blocks that the device holds at once.
    resident: u32,
}

impl Persistent {
    /// Whether it takes so many rows of so many thread blocks, the one that the parts of M are made for (`first`) or others.
    pub fn takes(&self, blocks: u32, rows: usize, first: bool) -> bool {
        (self.words.is_none() || first) && blocks as usize * rows <= self.resident as usize
    }
}

impl<'a, T: DeviceScalar> Common<'a, T> {
    /// Copies A, scaled, to the device, and makes M of it. `vectors` of n values, a number that M may decide on, and `sums` of as many
    /// values as there are blocks are the method's.
    pub fn new(
        device: &Device,
        a: &'a Csr<T>,
        precond: &DevicePreconditioner,
        vectors: impl FnOnce(&Made<T>) -> usize,
        sums: usize,
    ) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = a.nrows();
        let exponents = Exponents::of(a.values());
        let scaled = Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), exponents.matrix(a.values()))?;
        let (matrix, lanes) = OnDevice::new(device, &scaled, precond)?;
        let rows = || match &matrix {
            OnDevice::Rows(rows) => Ok(Arc::clone(rows)),
            OnDevice::Blocks(..) => Ok(Arc::new(DeviceCsr::new(device, &scaled)?)),
        };
        let made = |a: &Csr<T>| Made::new(device, a, rows, precond);
        // What is wrong is told with the values of A as it was given.
        let precond = made(&scaled).map_err(|e| made(a).err().unwrap_or(e))?;
        let shape = Shape::over(n as u64 * u64::from(lanes.max(1)));
        let vectors = vectors(&precond);
        let memory = || DeviceVec::uninitialized(device, n);
        Ok(Self {
            a,
            exponents,
            matrix,
            precond,
            x: memory()?,
            b: memory()?,
            best: memory()?,
            vectors: DeviceVec::uninitialized(device, vectors.saturating_mul(n))?,
            sums: DeviceVec::uninitialized(device, sums.saturating_mul(shape.blocks as usize))?,
            arrived: DeviceVec::uninitialized(device, 1)?,
            state: DeviceVec::uninitialized(device, RECORD)?,
            room: 1,
            shape,
            lanes,
        })
    }

    pub fn n(&self) -> usize {
        self.a.nrows()
    }

    pub fn room(&self) -> usize {
        self.room
    }

    /// Room for so many right-hand sides. After an error there is what there was.
    pub fn widen(&mut self, columns: usize) -> Result<()> {
        let (device, room) = (self.x.device().clone(), self.room);
        let values = |v: &DeviceVec<T>| DeviceVec::uninitialized(&device, (v.len() / room).saturating_mul(columns));
        let numbers = |v: &DeviceVec<f64>| DeviceVec::uninitialized(&device, (v.len() / room).saturating_mul(columns));
        let vectors = (values(&self.x)?, values(&self.b)?, values(&self.best)?, values(&self.vectors)?);
        let (sums, state) = (numbers(&self.sums)?, numbers(&self.state)?);
        self.arrived = DeviceVec::uninitialized(&device, columns)?;
        (self.x, self.b, self.best, self.vectors) = vectors;
        (self.sums, self.state, self.room) = (sums, state, columns);
        Ok(())
    }

    /// The kernel for many steps in one launch, if that is how they are to be done. `applications`: addresses of r and z of each z ← M⁻¹·r
    /// in a step.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] where that is asked for and cannot be; errors of the device.
    pub fn persistent(
        &self,
        schedule: Schedule,
        family: Family,
        method: &str,
        applications: &[[u64; 2]],
    ) -> Result<Option<Persistent>> {
        let device = self.x.device();
        let m = self.precond.elsewhere();
        if self.lanes == 0 {
            return Self::by_launches(schedule);
        }
        let swept: Option<Vec<Vec<Step>>> = m.and_then(|m| applications.iter().map(|&[r, z]| m.parts(r, z)).collect());
        let kind = if swept.is_some() { "swept" } else { "all" };
        let kernel = device.kernel(family, &format!("{method}_{kind}_{}_{}", self.lanes, T::SUFFIX))?;
        if !self.is_persistent(schedule, &kernel, m.is_none() || swept.is_some())? {
            return Ok(None);
        }
        let words: Vec<u64> = swept.iter().flatten().flatten().flat_map(Step::words).collect();
        let parts = words.len() / Step::WORDS / applications.len();
        let words = if parts > 0 { Some(DeviceVec::from_slice(device, &words)?) } else { None };
        let resident = kernel.resident_blocks(self.shape.threads, self.shape.shared)?;
        Ok(Some(Persistent { kernel, words, parts: parts as u32, resident }))
    }

    /// Steps first .. first + count in one launch.
    pub fn launch_persistent(
        &mut self,
        all: &Persistent,
        system: &[u64],
        [first, count, limit]: [u32; 3],
        fresh: bool,
        threshold: f64,
    ) -> Result<()> {
        let [a, b, c, d] = [first, count, limit, fresh.into()].map(Arg::from);
        self.launch_all(all, 1, &[Arg::Struct(system), a, b, c, d, threshold.arg().0])
    }

    /// The cooperative launch of so many rows, with the arguments that the method has before those of its barriers and of M.
    pub fn launch_all(&mut self, all: &Persistent, rows: u32, args: &[Arg<'_>]) -> Result<()> {
        self.arrived.copy_range_from(0, &vec![0; rows as usize])?;
        let mut args = [args, &[self.arrived.arg()]].concat();
        if let Some(words) = &all.words {
            args.extend([words.arg(), Arg::from(all.parts)]);
        }
        all.kernel.launch_together(Shape { rows, ..self.shape }, &args)
    }

    /// Whether many steps are to be one launch of `all`, which does without other launches or not.
    fn is_persistent(&self, schedule: Schedule, all: &Kernel, alone: bool) -> Result<bool> {
        let Shape { blocks, threads, shared, .. } = self.shape;
        let fits = blocks <= all.resident_blocks(threads, shared)?;
        // A grid that strides is better off in launches: each of its parts is short.
        let small = self.n() as u64 * u64::from(self.lanes) <= u64::from(blocks) * u64::from(threads);
        let why = match schedule {
            Schedule::Auto => return Ok(fits && small && alone),
            Schedule::Persistent if fits && alone => return Ok(true),
            Schedule::Persistent if alone => format!("the device does not hold {blocks} blocks at once"),
            _ => return Self::by_launches(schedule).map(|_| false),
        };
        Err(InputError::InvalidStructure { what: "schedule", why }.into())
    }

    /// Steps are launches, as those of a preconditioner with launches of its own have to be.
    fn by_launches(schedule: Schedule) -> Result<Option<Persistent>> {
        if schedule == Schedule::Persistent {
            let why = "the preconditioner has launches of its own".into();
            return Err(InputError::InvalidStructure { what: "schedule", why }.into());
        }
        Ok(None)
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        let vectors = 3 * self.x.bytes() + self.vectors.bytes() + self.sums.bytes();
        Bytes {
            matrix: self.matrix.bytes(),
            factors: self.precond.bytes(),
            workspace: vectors + self.state.bytes() + self.arrived.bytes(),
        }
    }

    /// The first word of struct System of the kernels, and what follows: the matrix and 1 / diag(A).
    pub fn system(&self) -> [u64; 5] {
        let [ptr, col, val] = self.matrix.addresses();
        [self.n() as u64 | self.precond.code() << 32, ptr, col, val, self.precond.diagonal()]
    }

    /// Rows of a block of A, where it is in blocks.
    pub fn block_rows(&self) -> Option<usize> {
        match self.matrix {
            OnDevice::Rows(_) => None,
            OnDevice::Blocks(_, size) => Some(size),
        }
    }

    /// The same for the kernels: 0 where A is in compressed rows.
    pub fn block_size(&self) -> u64 {
        self.block_rows().unwrap_or_default() as u64
    }

    /// Address of vector k of the method.
    pub fn vector(&self, k: usize) -> u64 {
        self.vectors.address() + (k * self.n() * size_of::<T>()) as u64
    }

    /// Values of the method's vectors of one right-hand side.
    pub fn vector_values(&self) -> usize {
        self.vectors.len() / self.room
    }

    /// Address of sum k of the method, one value a block.
    pub fn sum(&self, k: usize) -> u64 {
        self.sums.address() + (k * self.shape.blocks as usize * 8) as u64
    }

    /// Address of the copy of the state that `step` writes.
    pub fn state_at(&self, step: u32) -> u64 {
        self.state.address() + u64::from(step % 2) * FIELDS as u64 * 8
    }

    /// z ← M⁻¹·r where M has launches of its own: whether it has. `now` is where the state of the run is, 0 before the first step.
    pub fn precondition(&self, r: u64, z: u64, now: u64) -> Result<bool> {
        let Some(m) = self.precond.elsewhere() else { return Ok(false) };
        m.enqueue(r, z, now)?;
        Ok(true)
    }

    /// Addresses of the state and of the norms.
    pub fn state(&self) -> [u64; 2] {
        let state = self.state.address();
        [state, state + 2 * FIELDS as u64 * 8]
    }

    /// b and x, scaled, to the device.
    pub fn load(&mut self, b: &[T], x: &[T]) -> Result<Exponents> {
        self.exponents = self.load_column(0, b, x)?;
        Ok(self.exponents)
    }

    /// Those of one of several right-hand sides.
    pub fn load_column(&mut self, column: usize, b: &[T], x: &[T]) -> Result<Exponents> {
        let (exponents, first) = (self.exponents.with_rhs(b), column * self.n());
        self.b.copy_range_from(first, &exponents.rhs(b))?;
        self.x.copy_range_from(first, &exponents.to_scaled(x))?;
        Ok(exponents)
    }

    /// r ← b − A·x on the host; ‖r‖₂
    pub fn host_residual(&self, b: &[T], x: &[T], r: &mut [T]) -> f64 {
        host_residual(self.a, b, x, r)
    }
}

/// r ← b − A·x on the host; ‖r‖₂
fn host_residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], r: &mut [T]) -> f64 {
    r.copy_from_slice(b);
    a.apply(-one::<T>(), x, one(), r);
    norm2(r)
}

/// An iterate that there is.
#[derive(Clone, Copy)]
pub(crate) enum Iterate {
    Last,
    /// The one of the smallest norm before it.
    Aside,
}

/// The system of a run with its vectors, wherever they are.
pub(crate) trait Held<T: DeviceScalar> {
    /// A as the caller knows it.
    fn matrix(&self) -> &Csr<T>;
    /// b and x, scaled, to where they are needed.
    fn load(&mut self, b: &[T], x: &[T]) -> Result<Exponents>;
    fn write_state(&mut self, state: &[f64]) -> Result<()>;
    fn read_state(&self, state: &mut [f64]) -> Result<()>;
    /// `answer` ← an iterate, as the caller knows it.
    fn read(&self, which: Iterate, answer: &mut [T]) -> Result<()>;
    fn bytes(&self) -> Bytes;

    /// `answer` ← x, or the iterate set aside where that one is better or x is not finite. Its norm by the recurrence.
    fn take_best(&self, answer: &mut [T], norm: f64, best: f64) -> Result<f64> {
        let finite = |x: &[T]| x.iter().all(|v| Scalar::is_finite(*v));
        self.read(Iterate::Last, answer)?;
        if norm <= best && finite(answer) {
            return Ok(norm);
        }
        if best.is_finite() {
            self.read(Iterate::Aside, answer)?;
            if finite(answer) {
                return Ok(best);
            }
        } else if finite(answer) {
            return Ok(norm);
        }
        answer.fill(bt_formats::zero());
        Ok(f64::NAN)
    }
}

impl<T: DeviceScalar> Held<T> for Common<'_, T> {
    fn matrix(&self) -> &Csr<T> {
        self.a
    }
    fn load(&mut self, b: &[T], x: &[T]) -> Result<Exponents> {
        Self::load(self, b, x)
    }
    fn write_state(&mut self, state: &[f64]) -> Result<()> {
        self.state.copy_from(state)
    }
    fn read_state(&self, state: &mut [f64]) -> Result<()> {
        self.state.copy_to(state)
    }
    fn read(&self, which: Iterate, answer: &mut [T]) -> Result<()> {
        match which {
            Iterate::Last => self.x.copy_to(answer)?,
            Iterate::Aside => self.best.copy_to(answer)?,
        }
        self.exponents.restore(answer);
        Ok(())
    }
    fn bytes(&self) -> Bytes {
        Self::bytes(self)
    }
}

/// A method's launches.
pub(crate) trait Steps<T: DeviceScalar> {
    /// What it iterates on.
    type Held: Held<T>;
    /// Name of the method.
    const NAME: &'static str;
    /// Products with A in a step, and applications of M.
    const PRODUCTS: usize;

    fn held(&mut self) -> &mut Self::Held;
    /// r ← b − A·x
    fn start(&mut self) -> Result<()>;
    /// Steps first .. first + count, fresh from the residual or not; the device stops at `limit`, or where the norm is at most
    /// `threshold`.
    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()>;
}

/// Iterates from the `x` given; on every exit `x` is the iterate of the smallest residual seen.
pub(crate) fn solve<T: DeviceScalar, S: Steps<T>>(
    method: &mut S,
    b: &[T],
    x: &mut [T],
    stop: &StopCriterion,
    monitor: &mut dyn Monitor,
) -> Result<SolveReport> {
    let held = method.held();
    let n = held.matrix().nrows();
    check_vector("right-hand side", b, n)?;
    check_vector("x", x, n)?;
    let mut residual = b.to_vec();
    let norm_b = norm2(b);
    let norm_r0 = host_residual(held.matrix(), b, x, &mut residual);
    let mut watch = Watch::new(stop, monitor, norm_b, norm_r0);
    let exponents = held.load(b, x)?;
    let mut state = [0.0; 2 * FIELDS + HISTORY];
    (state[BEST], state[FIELDS + BEST]) = (f64::INFINITY, f64::INFINITY);
    held.write_state(&state)?;

    let limit = u32::try_from(stop.max_iters).unwrap_or(u32::MAX - CHUNK);
    let threshold = exponents.scaled_norm(watch.threshold);
    let mut answer = x.to_vec();
    // `step`: of the next direction; `seen`: of the next norm that the monitor has not seen.
    let (mut step, mut seen, mut fresh, mut restarts) = (0, 0, true, 0);
    let (outcome, recurrence) = loop {
        if fresh {
            method.start()?;
        }
        let count = CHUNK.min(limit.saturating_sub(step).saturating_add(1));
        method.steps(step, count, limit, fresh, threshold)?;
        method.held().read_state(&mut state)?;
        let last = state_of(&state, step + count - 1);
        let at = last[AT] as u32;
        let mut told = None;
        for s in seen..=at {
            watch.iterations = s as usize;
            if told.is_none() {
                told = watch.verdict(exponents.norm(state[2 * FIELDS + s as usize % HISTORY]));
            }
        }
        seen = at + 1;
        let why = if last[STOP] == 0.0 { last[STOP_LATER] } else { last[STOP] };
        let norm = exponents.norm(last[RR].sqrt());
        (step, fresh) = (step + count, false);
        match why as u32 {
            0 if matches!(told, Some(Outcome::Stopped | Outcome::TimeLimit)) => {
                // One more launch, for the step that x is behind.
                method.steps(step, 1, step, false, threshold)?;
                method.held().read_state(&mut state)?;
                watch.iterations = step as usize;
                let norm = exponents.norm(state_of(&state, step)[RR].sqrt());
                break (told.unwrap_or(Outcome::Stopped), norm);
            }
            0 => {}
            1 => {
                method.held().read(Iterate::Last, &mut answer)?;
                let truth = host_residual(method.held().matrix(), b, &answer, &mut residual);
                watch.operator_applications += 1;
                if let Some(outcome) = watch.claim(truth) {
                    break (outcome, truth);
                }
                (step, fresh) = (at, true);
            }
            2 => break (Outcome::Breakdown(Breakdown::NonFinite), norm),
            3 => {
                let told = told.filter(|t| matches!(t, Outcome::Stopped | Outcome::TimeLimit));
                break (told.unwrap_or(Outcome::IterationLimit), norm);
            }
            4 => break (Outcome::Breakdown(Breakdown::IndefinitePreconditioner), norm),
            5 => break (Outcome::Breakdown(Breakdown::IndefiniteOperator), norm),
            6 if restarts < RESTARTS => {
                restarts += 1;
                (step, fresh) = (at, true);
            }
            6 => break (Outcome::Breakdown(Breakdown::RhoZero), norm),
            _ => break (Outcome::Breakdown(Breakdown::OmegaZero), norm),
        }
    };
    watch.operator_applications += S::PRODUCTS * watch.iterations + restarts;
    watch.preconditioner_applications = S::PRODUCTS * watch.iterations;
    let best = exponents.norm(state_of(&state, 0)[BEST].min(state_of(&state, 1)[BEST]).sqrt());
    let recurrence = method.held().take_best(&mut answer, recurrence, best)?;
    let truth = host_residual(method.held().matrix(), b, &answer, &mut residual);
    x.copy_from_slice(&answer);
    let bytes = method.held().bytes();
    Ok(watch.report(S::NAME, outcome, recurrence, truth, bytes))
}

/// The copy of the state that `step` wrote.
pub(crate) fn state_of(state: &[f64], step: u32) -> &[f64] {
    &state[(step % 2) as usize * FIELDS..][..FIELDS]
}

pub(crate) fn check_vector<T: Scalar>(what: &'static str, v: &[T], expected: usize) -> Result<(), InputError> {
    if v.len() != expected {
        return Err(InputError::DimensionMismatch { what, expected, found: v.len() });
    }
    match v.iter().position(|&v| !Scalar::is_finite(v)) {
        Some(row) => Err(InputError::NonFinite { what, row, col: 0, value: v[row].to_string() }),
        None => Ok(()),
    }
}

/// Columns of B and of X.
pub(crate) type Columns<'v, T> = (Vec<&'v [T]>, Vec<&'v mut [T]>);

/// The contiguous columns of B and X, of n finite values each.
pub(crate) fn slices<'v, T: DeviceScalar>(n: usize, b: MatRef<'v, T>, x: MatMut<'v, T>) -> Result<Columns<'v, T>> {
    let (expected, found) = (b.ncols(), x.ncols());
    if found != expected {
        return Err(InputError::DimensionMismatch { what: "columns of X", expected, found }.into());
    }
    let contiguous = "columns must be contiguous";
    let b: Vec<&[T]> = b.col_iter().map(|b| b.try_as_col_major().expect(contiguous).as_slice()).collect();
    let x: Vec<&mut [T]> =
        x.col_iter_mut().map(|x| x.try_as_col_major_mut().expect(contiguous).as_slice_mut()).collect();
    for (b, x) in b.iter().zip(&x) {
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
    }
    Ok((b, x))
}
