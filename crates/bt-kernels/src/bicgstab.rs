//! BiCGSTAB with right preconditioning on the device, for any nonsingular A.
//!
//! H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), doi:10.1137/0913035. Recurrences, outcomes and report are those of
//! [`bt_iter::BiCgStab`], ω by the rule of Sleijpen & van der Vorst included, with restarts where (r̂, r) or (r̂, v) is negligible.
//!
//! An iteration is five launches (`kernels/bicgstab.cu`), α, β and ω are formed on the device; scaling, the host's looks and the check of
//! claims are as in [`crate::DeviceCg`].
//!
//! Storage: the matrix, 10n values (11n with a diagonal preconditioner), and the sums. Traffic of an iteration: 2·nnz(s + 4) + 8n bytes of
//! the matrix, 23n values of vectors, and two gathers.

use bt_formats::{Bytes, Csr, Monitor, SolveReport, StopCriterion};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result};
use crate::krylov::{self, Common, DevicePreconditioner, Steps};

/// The method on one matrix, which is on the device with the vectors.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_kernels::{Device, DeviceBiCgStab, DevicePreconditioner};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [-2.0, 3.0, 1.0], [0.0, -1.0, 2.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = [0.0; 3];
///     let mut method = DeviceBiCgStab::new(&device, &a, DevicePreconditioner::Jacobi)?;
///     let report = method.solve(&[5.0, 2.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceBiCgStab<'a, T: DeviceScalar> {
    common: Common<'a, T>,
    /// r, r̂, p, p̂, v, ŝ, t: only addresses are needed.
    vectors: DeviceVec<T>,
    sums: DeviceVec<f64>,
    start: Kernel,
    /// The launches of a step, in order; the first takes more arguments.
    step: [Kernel; 5],
}

impl<'a, T: DeviceScalar> DeviceBiCgStab<'a, T> {
    /// Copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// As [`crate::DeviceCg::new`].
    pub fn new(device: &Device, a: &'a Csr<T>, precond: DevicePreconditioner) -> Result<Self> {
        let common = Common::new(device, a, precond)?;
        let (lanes, suffix) = (common.lanes, T::SUFFIX);
        let vector = |name: &str| device.kernel(Family::BiCgStab, &format!("bicgstab_{name}_{suffix}"));
        let product = |name: &str| vector(&format!("{name}_{lanes}"));
        Ok(Self {
            vectors: DeviceVec::uninitialized(device, 7 * common.n())?,
            sums: DeviceVec::uninitialized(device, 7 * common.shape.blocks as usize)?,
            start: product("start")?,
            step: [vector("direction")?, product("first")?, vector("half")?, product("second")?, vector("residual")?],
            common,
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> Bytes {
        Bytes {
            matrix: self.common.matrix.bytes(),
            factors: self.common.inverse.as_ref().map_or(0, DeviceVec::bytes),
            workspace: self.common.workspace() + self.vectors.bytes() + self.sums.bytes(),
        }
    }

    /// Iterates from the `x` given towards the solution of A·x = b; exits as [`crate::DeviceCg::solve`] does.
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
        krylov::solve(self, b, x, stop, monitor)
    }

    /// struct System of the kernels.
    fn system(&self) -> [u64; 22] {
        let Common { matrix, inverse, x, best, shape, .. } = &self.common;
        let n = self.common.n() as u64;
        let [ptr, col, val] = matrix.addresses();
        let inverse = inverse.as_ref().map_or(0, DeviceVec::address);
        let vector = |k: u64| self.vectors.address() + k * n * size_of::<T>() as u64;
        let blocks = u64::from(shape.blocks);
        let part = |k: u64| self.sums.address() + k * blocks * 8;
        let [state, history] = self.common.state();
        let [r, shadow, p, p_hat, v, s_hat, t] = [0, 1, 2, 3, 4, 5, 6].map(vector);
        let [part_r, part_v, part_s, part_t] = [0, 2, 4, 5].map(part);
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let (x, best) = (x.address(), best.address());
        [
            n,
            ptr,
            col,
            val,
            inverse,
            x,
            r,
            shadow,
            p,
            p_hat,
            v,
            s_hat,
            t,
            best,
            part_r,
            part_v,
            part_s,
            part_t,
            state,
            history,
            blocks,
            epsilon.to_bits(),
        ]
    }
}

impl<'a, T: DeviceScalar> Steps<'a, T> for DeviceBiCgStab<'a, T> {
    const NAME: &'static str = "bicgstab";
    const PRODUCTS: usize = 2;

    fn common(&mut self) -> &mut Common<'a, T> {
        &mut self.common
    }

    fn start(&self) -> Result<()> {
        self.start.launch(self.common.shape, &[Arg::Struct(&self.system()), self.common.b.arg()])
    }

    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()> {
        let system = self.system();
        let (system, threshold, shape) = (Arg::Struct(&system), threshold.arg().0, self.common.shape);
        let [direction, others @ ..] = &self.step;
        for step in first..first + count {
            let new = u32::from(fresh && step == first);
            direction.launch(shape, &[system, Arg::from(step), Arg::from(limit), Arg::from(new), threshold])?;
            for kernel in others {
                kernel.launch(shape, &[system, Arg::from(step)])?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> Bytes {
        DeviceBiCgStab::bytes(self)
    }
}
