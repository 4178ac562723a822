//! The preconditioned conjugate gradient method on the device.
//!
//! M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952), doi:10.6028/jres.049.044. The recurrences, the outcomes and
//! the report are those of [`bt_iter::Cg`]; what differs is where scalars live and when the host looks.
//!
//! An iteration is two launches (`kernels/cg.cu`): the direction with its product, and the residual. α and β are formed on the
//! device, where also the stopping test is made; the host reads residual norms once in [`CHUNK`] iterations, shows them to the
//! monitor one by one, and asks for the next ones. A monitor or a time limit therefore ends a run up to that many iterations
//! later. Where all rows fit on the device at once, a chunk is one cooperative launch. Both give the same bits.
//!
//! The system is scaled by powers of two, so that squares of residuals keep their range; sums are kept in double precision
//! for f32, too. Every claim of convergence is checked on the host against b − A·x of the caller's A.
//!
//! Storage: the matrix, 7n values (8n with a diagonal preconditioner), and the sums. Traffic of an iteration: nnz(s + 4) + 4n
//! bytes of the matrix, 10n values of vectors, and two gathers.

use bt_formats::{
    Breakdown, Bytes, Csr, Error as InputError, LinearOperator, Monitor, Outcome, Scalar, SolveReport, StopCriterion,
    norm2, one,
};
use bt_iter::{Jacobi, Preconditioner, Watch};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::scaled::Exponents;
use crate::spmv::{DeviceCsr, RowRule};

/// Iterations between looks of the host; HISTORY of the kernel is twice as many.
const CHUNK: u32 = 32;
const HISTORY: usize = 64;
/// Fields of a copy of the state, of which there are two.
const FIELDS: usize = 7;
const RR: usize = 1;
const BEST: usize = 2;
const STOP: usize = 3;
const STOP_RESIDUAL: usize = 4;
const AT: usize = 6;

/// Preconditioners of device solvers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DevicePreconditioner {
    /// M = I.
    #[default]
    Identity,
    /// M = diag(A).
    Jacobi,
}

/// How the iterations are started on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Persistent where the rows fit on the device at once.
    #[default]
    Auto,
    /// Two launches an iteration.
    Launches,
    /// One cooperative launch for many iterations.
    Persistent,
}

/// The method on one matrix, which is on the device with the vectors.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_kernels::{Device, DeviceCg, DevicePreconditioner, Schedule};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = [0.0; 3];
///     let mut cg = DeviceCg::new(&device, &a, DevicePreconditioner::Jacobi, Schedule::Auto)?;
///     let report = cg.solve(&[5.0, 5.0, 3.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceCg<'a, T: DeviceScalar> {
    a: &'a Csr<T>,
    exponents: Exponents,
    matrix: DeviceCsr<T>,
    inverse: Option<DeviceVec<T>>,
    x: DeviceVec<T>,
    b: DeviceVec<T>,
    best: DeviceVec<T>,
    /// r, q, z if it is another one than r, and both p: only addresses are needed.
    vectors: DeviceVec<T>,
    sums: DeviceVec<f64>,
    /// Two copies of the state, then the norms.
    state: DeviceVec<f64>,
    arrived: DeviceVec<u32>,
    kernels: Kernels,
    shape: Shape,
    persistent: bool,
}

struct Kernels {
    start: Kernel,
    direction: Kernel,
    residual: Kernel,
    all: Kernel,
}

impl<'a, T: DeviceScalar> DeviceCg<'a, T> {
    /// Copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// [`InputError::NotSquare`], [`InputError::NonFinite`]; [`bt_direct::FactorError::Breakdown`] naming a diagonal entry
    /// without reciprocal; [`DeviceError::OutOfMemory`](crate::DeviceError::OutOfMemory) and others of the device;
    /// [`InputError::InvalidStructure`] for `Schedule::Persistent` where the rows do not fit at once.
    pub fn new(device: &Device, a: &'a Csr<T>, precond: DevicePreconditioner, schedule: Schedule) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = a.nrows();
        let exponents = Exponents::of(a.values());
        let scaled = Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), exponents.matrix(a.values()))?;
        let rule = match RowRule::for_rows(a) {
            // Its groups do not carry the sums of the method along.
            RowRule::Segments => RowRule::Eight,
            other => other,
        };
        let inverse = match precond {
            DevicePreconditioner::Identity => None,
            DevicePreconditioner::Jacobi => {
                let (ones, mut inverse) = (vec![one::<T>(); n], vec![one::<T>(); n]);
                Jacobi::new(&scaled)?.apply(&ones, &mut inverse);
                Some(DeviceVec::from_slice(device, &inverse)?)
            }
        };
        let (lanes, suffix) = (rule.lanes(), T::SUFFIX);
        let kernel = |name: &str| device.kernel(Family::Cg, name);
        let kernels = Kernels {
            start: kernel(&format!("cg_start_{lanes}_{suffix}"))?,
            direction: kernel(&format!("cg_direction_{lanes}_{suffix}"))?,
            residual: kernel(&format!("cg_residual_{suffix}"))?,
            all: kernel(&format!("cg_all_{lanes}_{suffix}"))?,
        };
        let work = n as u64 * u64::from(lanes);
        let shape = Shape::over(work);
        let fits = shape.blocks <= kernels.all.resident_blocks(shape.threads, shape.shared)?;
        if schedule == Schedule::Persistent && !fits {
            let why = format!("the device does not hold {} blocks at once", shape.blocks);
            return Err(InputError::InvalidStructure { what: "schedule", why }.into());
        }
        let vectors = if inverse.is_some() { 5 } else { 4 };
        let memory = |len| DeviceVec::uninitialized(device, len);
        Ok(Self {
            a,
            exponents,
            matrix: DeviceCsr::with_rule(device, &scaled, rule)?,
            inverse,
            x: memory(n)?,
            b: memory(n)?,
            best: memory(n)?,
            vectors: memory(vectors * n)?,
            sums: DeviceVec::uninitialized(device, 3 * shape.blocks as usize)?,
            state: DeviceVec::uninitialized(device, 2 * FIELDS + HISTORY)?,
            arrived: DeviceVec::uninitialized(device, 1)?,
            kernels,
            shape,
            // A grid that strides is better off in launches: each of its parts is short.
            persistent: match schedule {
                Schedule::Auto => fits && work <= u64::from(shape.blocks) * u64::from(shape.threads),
                other => other == Schedule::Persistent,
            },
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        Bytes {
            matrix: self.matrix.bytes(),
            factors: self.inverse.as_ref().map_or(0, DeviceVec::bytes),
            workspace: 3 * self.x.bytes() + self.vectors.bytes() + self.sums.bytes() + self.state.bytes() + 4,
        }
    }

    /// Whether a chunk of iterations is one launch.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the iterate of the smallest residual seen, and its residual is recomputed on the host. The
    /// backward errors of the certificate are NaN: see [`bt_formats::certify`].
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
        let n = self.a.nrows();
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
        let mut residual = b.to_vec();
        let norm_b = norm2(b);
        let norm_r0 = self.host_residual(b, x, &mut residual);
        let mut watch = Watch::new(stop, monitor, norm_b, norm_r0);
        self.exponents = self.exponents.with_rhs(b);
        self.b.copy_from(&self.exponents.rhs(b))?;
        self.x.copy_from(&self.exponents.to_scaled(x))?;
        let mut state = [0.0; 2 * FIELDS + HISTORY];
        (state[BEST], state[FIELDS + BEST]) = (f64::INFINITY, f64::INFINITY);
        self.state.copy_from(&state)?;

        let limit = u32::try_from(stop.max_iters).unwrap_or(u32::MAX - CHUNK);
        let threshold = self.exponents.scaled_norm(watch.threshold);
        let mut answer = x.to_vec();
        // `step`: of the next direction; `seen`: of the next norm that the monitor has not seen.
        let (mut step, mut seen, mut fresh) = (0, 0, true);
        let (outcome, recurrence) = loop {
            if fresh {
                self.start()?;
            }
            let count = CHUNK.min(limit.saturating_sub(step).saturating_add(1));
            self.steps(step, count, limit, fresh, threshold)?;
            self.state.copy_to(&mut state)?;
            let last = state_of(&state, step + count - 1);
            let at = last[AT] as u32;
            let mut told = None;
            for s in seen..=at {
                watch.iterations = s as usize;
                if told.is_none() {
                    told = watch.verdict(self.exponents.norm(state[2 * FIELDS + s as usize % HISTORY]));
                }
            }
            seen = at + 1;
            watch.operator_applications = watch.operator_applications.max(at as usize + 1);
            let why = if last[STOP] == 0.0 { last[STOP_RESIDUAL] } else { last[STOP] };
            let norm = self.exponents.norm(last[RR].sqrt());
            (step, fresh) = (step + count, false);
            match why as u32 {
                0 if matches!(told, Some(Outcome::Stopped | Outcome::TimeLimit)) => {
                    // One more launch, for the step that x is behind.
                    self.steps(step, 1, step, false, threshold)?;
                    self.state.copy_to(&mut state)?;
                    watch.iterations = step as usize;
                    let norm = self.exponents.norm(state_of(&state, step)[RR].sqrt());
                    break (told.unwrap_or(Outcome::Stopped), norm);
                }
                0 => {}
                1 => {
                    self.x.copy_to(&mut answer)?;
                    self.exponents.restore(&mut answer);
                    let truth = self.host_residual(b, &answer, &mut residual);
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
                _ => break (Outcome::Breakdown(Breakdown::IndefiniteOperator), norm),
            }
        };
        watch.preconditioner_applications = watch.iterations;
        let best = self.exponents.norm(state_of(&state, 0)[BEST].min(state_of(&state, 1)[BEST]));
        let recurrence = self.take_best(&mut answer, recurrence, best)?;
        let truth = self.host_residual(b, &answer, &mut residual);
        x.copy_from_slice(&answer);
        let bytes = self.bytes();
        Ok(watch.report("cg", outcome, recurrence, truth, bytes))
    }

    /// `answer` ← x, or the iterate set aside where that one is better or x is not finite. Its norm by the recurrence.
    fn take_best(&self, answer: &mut [T], norm: f64, best: f64) -> Result<f64> {
        let finite = |x: &[T]| x.iter().all(|v| Scalar::is_finite(*v));
        self.x.copy_to(answer)?;
        self.exponents.restore(answer);
        if norm <= best && finite(answer) {
            return Ok(norm);
        }
        if best.is_finite() {
            self.best.copy_to(answer)?;
            self.exponents.restore(answer);
            if finite(answer) {
                return Ok(best);
            }
        } else if finite(answer) {
            return Ok(norm);
        }
        answer.fill(bt_formats::zero());
        Ok(f64::NAN)
    }

    /// r ← b − A·x on the host; ‖r‖₂
    fn host_residual(&self, b: &[T], x: &[T], r: &mut [T]) -> f64 {
        r.copy_from_slice(b);
        self.a.apply(-one::<T>(), x, one(), r);
        norm2(r)
    }

    /// struct System of the kernels.
    fn system(&self) -> [u64; 16] {
        let [ptr, col, val] = self.matrix.addresses();
        let n = self.a.nrows() as u64;
        let vector = |k: u64| self.vectors.address() + k * n * size_of::<T>() as u64;
        let inverse = self.inverse.as_ref().map_or(0, DeviceVec::address);
        let (sums, blocks) = (self.sums.address(), u64::from(self.shape.blocks));
        let (r, p, q) = (vector(0), vector(1), vector(3));
        let z = if inverse == 0 { r } else { vector(4) };
        let part_q = sums + 2 * blocks * 8;
        let history = self.state.address() + 2 * FIELDS as u64 * 8;
        let (x, best, state) = (self.x.address(), self.best.address(), self.state.address());
        [n, ptr, col, val, inverse, x, r, z, p, q, best, sums, part_q, state, history, blocks | blocks << 32]
    }

    fn start(&self) -> Result<()> {
        self.kernels.start.launch(self.shape, &[Arg::Struct(&self.system()), self.b.arg()])
    }

    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()> {
        let system = self.system();
        let (system, threshold) = (Arg::Struct(&system), threshold.arg().0);
        let number = Arg::from;
        if self.persistent {
            self.arrived.copy_from(&[0])?;
            let args = [system, number(first), number(count), number(limit), number(fresh.into()), threshold];
            return self.kernels.all.launch_together(self.shape, &[&args[..], &[self.arrived.arg()]].concat());
        }
        for step in first..first + count {
            let new = u32::from(fresh && step == first);
            let args = [system, number(step), number(limit), number(new), threshold];
            self.kernels.direction.launch(self.shape, &args)?;
            self.kernels.residual.launch(self.shape, &[system, number(step)])?;
        }
        Ok(())
    }
}

/// The copy of the state that `step` wrote.
fn state_of(state: &[f64], step: u32) -> &[f64] {
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
