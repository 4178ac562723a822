//! The preconditioned conjugate gradient method on the device.
//!
//! M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952), doi:10.6028/jres.049.044. The recurrences, the outcomes and
//! the report are those of [`bt_iter::Cg`]; what differs is where scalars live and when the host looks.
//!
//! An iteration is two launches (`kernels/cg.cu`): the direction with its product, and the residual. α and β are formed on the
//! device, where also the stopping test is made; the host reads residual norms once in 32 iterations, shows them to the
//! monitor one by one, and asks for the next ones. A monitor or a time limit therefore ends a run up to that many iterations
//! later. Where all rows fit on the device at once, a chunk is one cooperative launch. Both give the same bits. A preconditioner other
//! than a diagonal has launches of its own between the two, and one more for rᵀz, or is a part of the cooperative launch.
//!
//! The system is scaled by powers of two, so that squares of residuals keep their range; sums are kept in double precision
//! for f32, too. Every claim of convergence is checked on the host against b − A·x of the caller's A.
//!
//! Storage: the matrix, 7n values (8n with a preconditioner), and the sums. Traffic of an iteration: nnz(s + 4) + 4n bytes of the
//! matrix, 10n values of vectors, and two gathers; that of the preconditioner beside it. [`SplitCg`] has rows on several devices.

mod split;

use bt_formats::{Bytes, Csr, Monitor, SolveReport, StopCriterion};

use crate::device::{Arg, Device, DeviceScalar, Family, Kernel, Result};
use crate::krylov::{self, Common, Persistent, Steps};
use crate::preconditioner::{DevicePreconditioner, InverseFacts, Made};
pub use split::SplitCg;

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
///     let mut cg = DeviceCg::new(&device, &a, &DevicePreconditioner::Jacobi, Schedule::Auto)?;
///     let report = cg.solve(&[5.0, 5.0, 3.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceCg<'a, T: DeviceScalar> {
    common: Common<'a, T>,
    kernels: Kernels,
    all: Option<Persistent>,
}

struct Kernels {
    start: Kernel,
    direction: Kernel,
    residual: Kernel,
    inner: Kernel,
}

impl Kernels {
    fn new<T: DeviceScalar>(device: &Device, lanes: u32) -> Result<Self> {
        let suffix = T::SUFFIX;
        let kernel = |name: &str| device.kernel(Family::Cg, name);
        Ok(Self {
            start: kernel(&format!("cg_start_{lanes}_{suffix}"))?,
            direction: kernel(&format!("cg_direction_{lanes}_{suffix}"))?,
            residual: kernel(&format!("cg_residual_{suffix}"))?,
            inner: kernel(&format!("cg_inner_{suffix}"))?,
        })
    }
}

impl<'a, T: DeviceScalar> DeviceCg<'a, T> {
    /// Copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// Those of [`DeviceInverse::new`](crate::DeviceInverse::new); [`DeviceError::OutOfMemory`](crate::DeviceError::OutOfMemory)
    /// and others of the device; [`bt_formats::Error::InvalidStructure`] for `Schedule::Persistent` where the rows do not fit at once, or the
    /// preconditioner has launches of its own: triangular solves by levels, tridiagonal blocks of over 256 rows.
    pub fn new(device: &Device, a: &'a Csr<T>, precond: &DevicePreconditioner, schedule: Schedule) -> Result<Self> {
        // r, both p, q, and z if it is another one than r
        let common = Common::new(device, a, precond, |m| if matches!(m, Made::Identity) { 4 } else { 5 }, 3)?;
        let kernels = Kernels::new::<T>(device, common.lanes)?;
        let mut method = Self { common, kernels, all: None };
        let applied = [[method.common.vector(0), method.z()]];
        method.all = method.common.persistent(schedule, Family::Cg, "cg", &applied)?;
        Ok(method)
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        self.common.bytes()
    }

    /// Rows of a block where products with A are by blocks, those of [`DevicePreconditioner::BlockSsorAi`], in no more bytes than by rows.
    pub fn block_rows(&self) -> Option<usize> {
        self.common.block_rows()
    }

    /// What the preconditioner is made of.
    pub fn preconditioner(&self) -> InverseFacts {
        self.common.precond.facts()
    }

    /// Whether a chunk of iterations is one launch.
    pub fn is_persistent(&self) -> bool {
        self.all.is_some()
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the iterate of the smallest residual seen, and its residual is recomputed on the host. The
    /// backward errors of the certificate are NaN: see [`bt_formats::certify`].
    ///
    /// # Errors
    /// [`bt_formats::Error::DimensionMismatch`], [`bt_formats::Error::NonFinite`]; errors of the device, after which `x` is as it was given.
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        krylov::solve(self, b, x, stop, monitor)
    }

    /// struct System of the kernels.
    fn system(&self) -> [u64; 17] {
        let c = &self.common;
        let [head, ptr, col, val, inverse] = c.system();
        let [x, best, blocks] = [c.x.address(), c.best.address(), u64::from(c.shape.blocks)];
        let [state, history] = c.state();
        let [r, p, q] = [0, 1, 3].map(|k| c.vector(k));
        let [part_r, part_q] = [0, 2].map(|k| c.sum(k));
        let z = self.z();
        let [sums, block] = [blocks | blocks << 32, c.block_size()];
        [head, ptr, col, val, inverse, x, r, z, p, q, best, part_r, part_q, state, history, sums, block]
    }

    /// Address of z.
    fn z(&self) -> u64 {
        self.common.vector(if self.common.precond.code() == 0 { 0 } else { 4 })
    }

    /// z ← M⁻¹·r and rᵀz where M has launches of its own.
    fn precondition(&self, now: u64) -> Result<()> {
        if self.common.precondition(self.common.vector(0), self.z(), now)? {
            self.kernels.inner.launch(self.common.shape, &[Arg::Struct(&self.system()), Arg::Word(now)])?;
        }
        Ok(())
    }
}

impl<'a, T: DeviceScalar> Steps<T> for DeviceCg<'a, T> {
    type Held = Common<'a, T>;
    const NAME: &'static str = "cg";
    const PRODUCTS: usize = 1;

    fn held(&mut self) -> &mut Common<'a, T> {
        &mut self.common
    }

    fn start(&mut self) -> Result<()> {
        self.kernels.start.launch(self.common.shape, &[Arg::Struct(&self.system()), self.common.b.arg()])?;
        self.precondition(0)
    }

    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()> {
        let system = self.system();
        if let Some(all) = &self.all {
            return self.common.launch_persistent(all, &system, [first, count, limit], fresh, threshold);
        }
        let (system, threshold, shape) = (Arg::Struct(&system), threshold.arg().0, self.common.shape);
        let number = Arg::from;
        for step in first..first + count {
            let new = u32::from(fresh && step == first);
            let args = [system, number(step), number(limit), number(new), threshold];
            self.kernels.direction.launch(shape, &args)?;
            self.kernels.residual.launch(shape, &[system, number(step)])?;
            self.precondition(self.common.state_at(step))?;
        }
        Ok(())
    }
}
