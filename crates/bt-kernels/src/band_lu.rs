//! Band LU with partial pivoting on the device, for batches of systems of any sizes and bandwidths.
//!
//! P·A = L·U as LAPACK's `gbtrf` keeps it, the exchanges and multipliers in the order they were made (E. Anderson et al., LAPACK
//! Users' Guide, 3rd ed., §5.3.3), as [`bt_direct::BandLu`] does it. A thread block takes a system column by column; the kl + ku + 1
//! columns at work lie in its shared memory where they fit into 48 KiB, else in the cache. A single system uses one multiprocessor:
//! [`crate::DeviceSpike`] cuts it into a batch.
//!
//! Storage: n(2kl + ku + 1) values and 4 bytes a row. Cost of the factorization: at most 2n·kl(kl + ku + 1) flops, 2n(2kl + ku + 1)
//! values of traffic; of a solve: 2n(2kl + ku) flops, n(2kl + ku + 1) values for each right-hand side.

use bt_direct::{BandLu, FactorError};
use bt_formats::{Band, Error as InputError};
use faer::MatMut;

use crate::block_lu::check_finite;
use crate::checked::{DirectReport, by_columns, check_batch, failures, solve_systems};
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

/// Bytes of shared memory that every device gives a block.
const SHARED: usize = 48 << 10;
/// Of these the kernel's own.
const RESERVED: usize = 64;

/// Factored band systems on a device.
///
/// ```
/// use bt_formats::Band;
/// use bt_kernels::{Device, DeviceBandLu};
/// let mut a = Band::zeros(3, 1, 1)?;
/// for (i, j, v) in [(0, 1, 2.0), (1, 0, 3.0), (1, 2, 1.0), (2, 1, 4.0), (2, 2, 5.0)] {
///     *a.get_mut(i, j) = v;
/// }
/// if let Ok(device) = Device::open(0) {
///     let mut x = faer::mat![[2.0], [4.0], [9.0]];
///     let reports = DeviceBandLu::new(&device, &[&a])?.solve_in_place(x.as_mut())?;
///     assert!(reports[0].is_ok());
///     assert_eq!(x, faer::mat![[1.0], [1.0], [1.0]]);
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceBandLu<'a, T: DeviceScalar> {
    systems: Vec<&'a Band<T>>,
    factors: BandFactors<T>,
}

impl<'a, T: DeviceScalar> DeviceBandLu<'a, T> {
    /// Copies the systems to the device and factors them there.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for bands so wide that the unknowns at work do not fit shared memory;
    /// [`InputError::NonFinite`] with the place; [`InputError::TooLarge`] for 2³¹ rows; errors of the device. A singular system is
    /// none: see [`DeviceBandLu::singular_columns`].
    ///
    /// # Cost
    /// 2n·kl(kl + ku + 1) flops at most, 2n(2kl + ku + 1) values of traffic; n(2kl + ku + 1) values and 4n bytes are kept.
    pub fn new(device: &Device, systems: &[&'a Band<T>]) -> Result<Self> {
        Ok(Self { factors: BandFactors::new(device, systems)?, systems: systems.to_vec() })
    }

    /// For each system the first column without a pivot, if there is one.
    pub fn singular_columns(&self) -> &[Option<usize>] {
        &self.factors.failed
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.factors.bytes()
    }

    /// X ← A⁻¹·X for the systems, whose rows follow each other in the contiguous columns of `x`, refined on the host with residuals
    /// from the matrices given. A system whose backward error stays above 32u is solved by the host, by [`BandLu`]; where that
    /// fails, its part of `x` is NaN and its report the reason.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; [`InputError::NonFinite`] in a right-hand side; errors of the device. `x` is then as it was.
    ///
    /// # Cost
    /// 2n(2kl + ku) flops and n(2kl + ku + 1) values of traffic for each right-hand side, once to four times.
    pub fn solve_in_place(&self, x: MatMut<'_, T>) -> Result<Vec<Result<DirectReport, FactorError>>> {
        solve_systems(&self.systems, x, |x| self.factors.solve(x), BandLu::new)
    }

    /// X ← A⁻¹·X as the device computes it, neither refined nor checked; NaN for singular systems.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device, after which `x` is as it was, save for whole columns that are solved.
    pub fn solve_once(&self, x: MatMut<'_, T>) -> Result<()> {
        self.factors.solve(x)
    }
}

/// The factors without the matrices.
pub(crate) struct BandFactors<T: DeviceScalar> {
    n: usize,
    m: usize,
    device: Device,
    /// First row, kl and ku of each system.
    tables: [DeviceVec<u32>; 3],
    begin: DeviceVec<u64>,
    values: DeviceVec<T>,
    pivots: DeviceVec<u32>,
    status: DeviceVec<u32>,
    pub failed: Vec<Option<usize>>,
    solve: Kernel,
    /// Bytes of shared memory of a solve.
    window: u32,
}

impl<T: DeviceScalar> BandFactors<T> {
    pub fn new(device: &Device, systems: &[&Band<T>]) -> Result<Self> {
        let mut tables = [vec![0u32], Vec::new(), Vec::new()];
        let (mut begin, mut end, mut n) = (Vec::new(), 0usize, 0usize);
        // Values of shared memory: of a factorization that has its window there, of its multipliers alone, of a solve.
        let capacity = (SHARED - RESERVED) / size_of::<T>();
        let (mut factor, mut window, mut work) = (0, 1, 1);
        for (s, a) in systems.iter().enumerate() {
            let (kl, width) = (a.kl(), a.kl() + a.ku() + 1);
            if width > capacity {
                let why =
                    format!("system {s} has {} diagonals; on the GPU {capacity} are the most", a.kl() + a.ku() + 1);
                return Err(InputError::InvalidStructure { what: "bandwidths", why }.into());
            }
            let whole = kl + 1 + width * a.ldab();
            factor = factor.max(if whole <= capacity { whole } else { kl + 1 });
            (window, work) = (window.max(width), work.max(kl * width));
            begin.push(end as u64);
            end = end.saturating_add(a.values().len());
            n += a.n();
            tables[0].push(n as u32);
            tables[1].push(kl as u32);
            tables[2].push(a.ku() as u32);
        }
        check_batch(n, systems.len())?;
        let mut values = DeviceVec::uninitialized(device, end)?;
        for a in systems {
            check_finite(*a)?;
        }
        values.copy_from(&systems.iter().flat_map(|a| a.values()).copied().collect::<Vec<T>>())?;
        let [row, kl, ku] = tables.map(|table| DeviceVec::from_slice(device, &table));
        let mut factors = Self {
            n,
            m: systems.len(),
            device: device.clone(),
            tables: [row?, kl?, ku?],
            begin: DeviceVec::from_slice(device, &begin)?,
            values,
            pivots: DeviceVec::uninitialized(device, n)?,
            status: DeviceVec::uninitialized(device, systems.len())?,
            failed: Vec::new(),
            solve: device.kernel(Family::BandLu, &format!("band_lu_solve_{}", T::SUFFIX))?,
            window: (window * size_of::<T>()) as u32,
        };
        if factors.m > 0 {
            // A warp a column of the update, as many as there is work for.
            let threads = (work as u32).next_power_of_two().clamp(32, Shape::BLOCK);
            let shape = Shape { blocks: factors.m as u32, rows: 1, threads, shared: (factor * size_of::<T>()) as u32 };
            let args = [Arg::Struct(&factors.systems()), Arg::from(factors.m as u32), Arg::from(capacity as u32)];
            device.kernel(Family::BandLu, &format!("band_lu_factor_{}", T::SUFFIX))?.launch(shape, &args)?;
        }
        factors.failed = failures(&factors.status)?;
        Ok(factors)
    }

    /// Structure Systems of kernels/band_lu.cu.
    fn systems(&self) -> [u64; 7] {
        let [row, kl, ku] = self.tables.each_ref().map(DeviceVec::address);
        let rest = [self.begin.address(), self.values.address()];
        [row, kl, ku, rest[0], rest[1], self.pivots.address(), self.status.address()]
    }

    pub fn bytes(&self) -> usize {
        let indices = self.tables.iter().chain([&self.pivots, &self.status]).map(DeviceVec::bytes).sum::<usize>();
        self.values.bytes() + self.begin.bytes() + indices
    }

    pub fn solve(&self, x: MatMut<'_, T>) -> Result<()> {
        by_columns(self.n, x, self.m, |columns, nrhs| {
            let x = DeviceVec::from_slice(&self.device, columns)?;
            self.solve_on_device(&x, nrhs as u32)?;
            x.copy_to(columns)
        })
    }

    /// The same for columns that are there.
    pub fn solve_on_device(&self, x: &DeviceVec<T>, nrhs: u32) -> Result<()> {
        let shape = Shape { blocks: self.m as u32 * nrhs, rows: 1, threads: 32, shared: self.window };
        self.solve.launch(shape, &[Arg::Struct(&self.systems()), Arg::from(self.n as u32), nrhs.into(), x.arg()])
    }
}
