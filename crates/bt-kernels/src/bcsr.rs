//! y ← αAx + βy on the device for block compressed rows, and block SSOR-AI of order 2 made of such products (`kernels/bcsr.cu`).
//!
//! ```text
//! y ← r − N·r,  t ← r − N·y,  y ← (2−ω)·D̄⁻¹·t,  t ← y − Nᴴ·y,  z ← y − Nᴴ·t
//! ```
//!
//! as [`BlockSsorAi`], which makes N, D̄⁻¹ and Nᴴ on the host. R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590,
//! doi:10.1016/j.cam.2011.04.025.
//!
//! Storage: that of the host's, and two vectors of work. Traffic of an application for p blocks off the diagonal, k × k of values of s bytes:
//! 2p(s·k² + 4) + n(s·k + 4/k) + 20n/k + 14s·n bytes, where x is read once; 4p·k² + 2k·n + 13n flops; five launches.

use bt_formats::{Bcsr, Csr, Error as InputError, LinearOperator, one, zero};
use bt_iter::{BlockSsorAi, Preconditioner};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::preconditioner::{Apply, InverseFacts};

/// A matrix in block compressed rows on a device.
pub struct DeviceBcsr<T: DeviceScalar> {
    nrows: usize,
    ncols: usize,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    kernel: Kernel,
}

impl<T: DeviceScalar> DeviceBcsr<T> {
    /// A copy of `a`.
    ///
    /// # Errors
    /// Those of the device; [`InputError::NonFinite`] naming an entry.
    ///
    /// # Example
    /// ```
    /// use bt_formats::{Bcsr, Csr};
    /// use bt_kernels::{Device, DeviceBcsr, DeviceVec};
    /// let a = Bcsr::from_csr(&Csr::from_dense(faer::mat![[2.0, 1.0], [0.0, 4.0]].as_ref())?, 2)?;
    /// if let Ok(device) = Device::open(0) {
    ///     let x = DeviceVec::from_slice(&device, &[1.0, 1.0])?;
    ///     let mut y = DeviceVec::from_slice(&device, &[0.0, 0.0])?;
    ///     DeviceBcsr::new(&device, &a)?.apply(1.0, &x, 0.0, &mut y)?;
    ///     let mut host = [0.0; 2];
    ///     y.copy_to(&mut host)?;
    ///     assert_eq!(host, [3.0, 4.0]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(device: &Device, a: &Bcsr<T>) -> Result<Self> {
        a.check_finite()?;
        Ok(Self {
            nrows: a.nrows(),
            ncols: a.ncols(),
            row_ptr: DeviceVec::from_slice(device, a.row_ptr())?,
            col_idx: DeviceVec::from_slice(device, a.col_idx())?,
            values: DeviceVec::from_slice(device, a.values())?,
            kernel: device.kernel(Family::Bcsr, &format!("bcsr_{}_{}", a.block_size(), T::SUFFIX))?,
        })
    }

    /// Of block rows, block columns and values.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        [self.row_ptr.address(), self.col_idx.address(), self.values.address()]
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.row_ptr.bytes() + self.col_idx.bytes() + self.values.bytes()
    }

    /// y ← αAx + βy; x has as many elements as A has columns, y as A has rows. β = 0 never reads y.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device.
    ///
    /// # Cost
    /// p(s·k² + 4) + 4(n/k + 1) + s·(ncols + n) bytes of traffic for p blocks of values of s bytes, if x is read once, and s·n where β is
    /// not 0; 2p·k² flops; one launch.
    pub fn apply(&self, alpha: T, x: &DeviceVec<T>, beta: T, y: &mut DeviceVec<T>) -> Result<()> {
        for (what, expected, found) in [("length of x", self.ncols, x.len()), ("length of y", self.nrows, y.len())] {
            if expected != found {
                return Err(InputError::DimensionMismatch { what, expected, found }.into());
            }
        }
        self.enqueue(alpha, x.address(), beta, [y.address(); 2], 0)
    }

    /// y ← αAx + β·base, of addresses [base, y], unless the run whose state is at `now` has stopped; 0 is no run.
    fn enqueue(&self, alpha: T, x: u64, beta: T, [base, y]: [u64; 2], now: u64) -> Result<()> {
        let matrix = [Arg::from(self.nrows as u32), self.row_ptr.arg(), self.col_idx.arg(), self.values.arg()];
        let vectors = [alpha.arg().0, Arg::Word(x), beta.arg().0, Arg::Word(base), Arg::Word(y), Arg::Word(now)];
        self.kernel.launch(Shape::over(self.nrows as u64), &[&matrix[..], &vectors].concat())
    }
}

/// The preconditioner.
pub(crate) struct BlockInverse<T: DeviceScalar> {
    /// 2 − ω
    scale: T,
    lower: DeviceBcsr<T>,
    inverses: DeviceBcsr<T>,
    upper: DeviceBcsr<T>,
    nnz: usize,
    /// y and t.
    work: [DeviceVec<T>; 2],
}

impl<T: DeviceScalar> BlockInverse<T> {
    /// Of `a`, made by the host.
    ///
    /// # Errors
    /// As [`BlockSsorAi::with_options`]; errors of the device.
    pub fn new(device: &Device, a: &Csr<T>, block_size: usize, omega: f64) -> Result<Self> {
        let m = BlockSsorAi::with_options(a, block_size, omega)?;
        let [lower, inverses, upper] = m.parts().map(|part| DeviceBcsr::new(device, part));
        let work = || DeviceVec::uninitialized(device, a.nrows());
        Ok(Self {
            scale: T::rounded(2.0 - omega, 0.0),
            lower: lower?,
            inverses: inverses?,
            upper: upper?,
            nnz: m.nnz(),
            work: [work()?, work()?],
        })
    }
}

impl<T: DeviceScalar> Apply<T> for BlockInverse<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        let Self { scale, lower, inverses, upper, work, .. } = self;
        let [y, t] = work.each_ref().map(DeviceVec::address);
        let subtract = |n: &DeviceBcsr<T>, base, x, out| n.enqueue(-one::<T>(), x, one(), [base, out], now);
        subtract(lower, r, r, y)?;
        subtract(lower, r, y, t)?;
        inverses.enqueue(*scale, t, zero(), [0, y], now)?;
        subtract(upper, y, y, t)?;
        subtract(upper, y, t, z)
    }

    fn facts(&self) -> InverseFacts {
        InverseFacts { nnz: self.nnz, launches: 5, ..InverseFacts::default() }
    }

    fn bytes(&self) -> usize {
        let parts: usize = [&self.lower, &self.inverses, &self.upper].map(DeviceBcsr::bytes).iter().sum();
        parts + self.work.each_ref().map(DeviceVec::bytes).iter().sum::<usize>()
    }
}
