//! BiCGSTAB with right preconditioning on the device, for any nonsingular A.
//!
//! H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), doi:10.1137/0913035. Recurrences, outcomes and report are those of
//! [`bt_iter::BiCgStab`], ω by the rule of Sleijpen & van der Vorst included, with restarts where (r̂, r) or (r̂, v) is negligible.
//!
//! An iteration is five launches (`kernels/bicgstab.cu`), or, where all rows fit on the device at once, a part of one cooperative launch for
//! 32; the bits are the same. α, β and ω are formed on the device; scaling, the host's looks and the check of
//! claims are as in [`crate::DeviceCg`].
//!
//! A preconditioner other than a diagonal has launches of its own, twice an iteration, or is a part of the
//! cooperative one.
//!
//! Storage: the matrix, 10n values (11n with a diagonal preconditioner), and the sums. Traffic of an iteration: 2·nnz(s + 4) + 8n bytes of
//! the matrix, 23n values of vectors (19n with another preconditioner, and its own), and two gathers.

use bt_formats::{Bytes, Csr, Monitor, SolveReport, StopCriterion};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceScalar, Family, Kernel, Result};
use crate::krylov::{self, Common, Persistent, Steps};
use crate::preconditioner::{DevicePreconditioner, InverseFacts};

/// The method on one matrix, which is on the device with the vectors.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_kernels::{Device, DeviceBiCgStab, DevicePreconditioner, Schedule};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [-2.0, 3.0, 1.0], [0.0, -1.0, 2.0]].as_ref())?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = [0.0; 3];
///     let mut method = DeviceBiCgStab::new(&device, &a, &DevicePreconditioner::Jacobi, Schedule::Auto)?;
///     let report = method.solve(&[5.0, 2.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceBiCgStab<'a, T: DeviceScalar> {
    common: Common<'a, T>,
    start: Kernel,
    /// The launches of a step, in order; the first takes more arguments.
    step: [Kernel; 5],
    all: Option<Persistent>,
}

impl<'a, T: DeviceScalar> DeviceBiCgStab<'a, T> {
    /// Copies A to the device and takes the memory for the vectors.
    ///
    /// # Errors
    /// As [`crate::DeviceCg::new`].
    pub fn new(device: &Device, a: &'a Csr<T>, precond: &DevicePreconditioner, schedule: Schedule) -> Result<Self> {
        // r, r̂, p, p̂, v, ŝ, t
        let common = Common::new(device, a, precond, |_| 7, 7)?;
        let (lanes, suffix) = (common.lanes, T::SUFFIX);
        let vector = |name: &str| device.kernel(Family::BiCgStab, &format!("bicgstab_{name}_{suffix}"));
        let product = |name: &str| vector(&format!("{name}_{lanes}"));
        // p̂ ← M⁻¹·p and ŝ ← M⁻¹·s, s in the place of r
        let applied = [[2, 3], [0, 5]].map(|pair| pair.map(|k| common.vector(k)));
        Ok(Self {
            all: common.persistent(schedule, Family::BiCgStab, "bicgstab", &applied)?,
            start: product("start")?,
            step: [vector("direction")?, product("first")?, vector("half")?, product("second")?, vector("residual")?],
            common,
        })
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
        let c = &self.common;
        let [head, ptr, col, val, inverse] = c.system();
        let [state, history] = c.state();
        let [r, shadow, p, p_hat, v, s_hat, t] = [0, 1, 2, 3, 4, 5, 6].map(|k| c.vector(k));
        let [part_r, part_v, part_s, part_t] = [0, 2, 4, 5].map(|k| c.sum(k));
        let blocks = u64::from(c.shape.blocks) | c.block_size() << 32;
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let (x, best) = (c.x.address(), c.best.address());
        [
            head,
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

impl<'a, T: DeviceScalar> Steps<T> for DeviceBiCgStab<'a, T> {
    type Held = Common<'a, T>;
    const NAME: &'static str = "bicgstab";
    const PRODUCTS: usize = 2;

    fn held(&mut self) -> &mut Common<'a, T> {
        &mut self.common
    }

    fn start(&mut self) -> Result<()> {
        self.start.launch(self.common.shape, &[Arg::Struct(&self.system()), self.common.b.arg()])
    }

    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()> {
        let system = self.system();
        if let Some(all) = &self.all {
            return self.common.launch_persistent(all, &system, [first, count, limit], fresh, threshold);
        }
        let (system, threshold, shape) = (Arg::Struct(&system), threshold.arg().0, self.common.shape);
        let [direction, first_product, half, second_product, residual] = &self.step;
        let [r, p, p_hat, s_hat] = [0, 2, 3, 5].map(|k| self.common.vector(k));
        for step in first..first + count {
            let (new, now) = (u32::from(fresh && step == first), self.common.state_at(step));
            let next = |kernel: &Kernel| kernel.launch(shape, &[system, Arg::from(step)]);
            direction.launch(shape, &[system, Arg::from(step), Arg::from(limit), Arg::from(new), threshold])?;
            self.common.precondition(p, p_hat, now)?;
            next(first_product)?;
            next(half)?;
            // s is in the place of r.
            self.common.precondition(r, s_hat, now)?;
            next(second_product)?;
            next(residual)?;
        }
        Ok(())
    }
}
