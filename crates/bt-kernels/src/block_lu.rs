//! Block-tridiagonal LU with pivoting inside the diagonal blocks on the device, for batches of systems of any sizes.
//!
//! P·D = L·U, H = B·U⁻¹, G = L⁻¹·P·C, D' ← D' − H·G from the first block to the last (G. H. Golub, C. F. Van Loan, Matrix Computations,
//! 4th ed., §4.5.1), as [`bt_direct::BlockLu`] does it from both ends. A thread block takes a system, so that a single one uses one
//! multiprocessor: [`crate::DeviceSpike`] cuts it into a batch.
//!
//! Storage: Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ values, 4 bytes a row, 20 a block. Cost of the factorization: Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² flops, and
//! about 8sk²·⌈k/16⌉ bytes a block, from the cache where it holds four blocks; of a solve: 2 flops a stored value, read once for each
//! 8 right-hand sides.

use bt_direct::{BlockLu, FactorError};
use bt_formats::{BlockTridiagonal, Error as InputError, Matrix, Scalar};
use faer::MatMut;

use crate::checked::{DirectReport, by_columns, check_batch, failures, solve_systems};
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

/// As in kernels/block_lu.cu: rows of a block at most, columns of a panel, columns updated at a time, right-hand sides at a time.
const LARGEST: usize = 128;
const PANEL: usize = 16;
const CHUNK: usize = 64;
const COLUMNS: u32 = 8;

/// Factored block-tridiagonal systems on a device.
///
/// ```
/// use bt_formats::{BlockTridiagonal, Partition};
/// use bt_kernels::{Device, DeviceBlockLu};
/// // [ 0 1 | 1 ]
/// // [ 2 0 | 0 ]
/// // [ 1 1 | 4 ]   blocks of 2 and 1
/// let blocks = Partition::from_sizes([2, 1])?;
/// let (diagonal, couplings) = (vec![0.0, 2.0, 1.0, 0.0, 4.0], vec![1.0, 0.0, 1.0, 1.0]);
/// let a = BlockTridiagonal::from_dense_blocks(blocks, diagonal, couplings)?;
/// if let Ok(device) = Device::open(0) {
///     // Twice the same system.
///     let lu = DeviceBlockLu::new(&device, &[&a, &a])?;
///     let mut x = faer::mat![[2.0], [2.0], [6.0], [1.0], [0.0], [4.0]];
///     let reports = lu.solve_in_place(x.as_mut())?;
///     assert!(reports.iter().all(|report| report.is_ok()));
///     assert_eq!(x, faer::mat![[1.0], [1.0], [1.0], [0.0], [0.0], [1.0]]);
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceBlockLu<'a, T: DeviceScalar> {
    systems: Vec<&'a BlockTridiagonal<T>>,
    factors: BlockFactors<T>,
}

impl<'a, T: DeviceScalar> DeviceBlockLu<'a, T> {
    /// Copies the systems to the device and factors them there.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for a block of over 128 rows; [`InputError::NonFinite`] with the place;
    /// [`InputError::TooLarge`] for 2³² rows or a size that is no size; errors of the device. A system without a pivot is none:
    /// see [`DeviceBlockLu::failed_blocks`].
    ///
    /// # Cost
    /// Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² flops; Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ values, 4 bytes a row and 20 a block are kept.
    pub fn new(device: &Device, systems: &[&'a BlockTridiagonal<T>]) -> Result<Self> {
        Ok(Self { factors: BlockFactors::new(device, systems)?, systems: systems.to_vec() })
    }

    /// For each system the block in which a pivot is missing, if one is. The host solves such systems.
    pub fn failed_blocks(&self) -> &[Option<usize>] {
        &self.factors.failed
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.factors.bytes()
    }

    /// X ← A⁻¹·X for the systems, whose rows follow each other in the contiguous columns of `x`, refined on the host with residuals
    /// from the matrices given. A system whose backward error stays above 32u is solved by the host, by [`BlockLu`]; where that
    /// fails, its part of `x` is NaN and its report the reason.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; [`InputError::NonFinite`] in a right-hand side; errors of the device. `x` is then as it was.
    ///
    /// # Cost
    /// 2 flops a stored value and right-hand side, the factors read once for each 8 of them; once to four times.
    pub fn solve_in_place(&self, x: MatMut<'_, T>) -> Result<Vec<Result<DirectReport, FactorError>>> {
        solve_systems(&self.systems, x, |x| self.factors.solve(x), BlockLu::new)
    }

    /// X ← A⁻¹·X as the device computes it, neither refined nor checked; NaN for systems without a pivot.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device, after which `x` is as it was, save for whole columns that are solved.
    pub fn solve_once(&self, x: MatMut<'_, T>) -> Result<()> {
        self.factors.solve(x)
    }
}

/// The factors without the matrices.
pub(crate) struct BlockFactors<T: DeviceScalar> {
    n: usize,
    m: usize,
    device: Device,
    /// First block of each system, first row of each block.
    tables: [DeviceVec<u32>; 2],
    /// First value of each block's panel and coupling.
    places: [DeviceVec<u64>; 2],
    panels: DeviceVec<T>,
    couplings: DeviceVec<T>,
    order: DeviceVec<u32>,
    status: DeviceVec<u32>,
    pub failed: Vec<Option<usize>>,
    solve_one: Kernel,
    solve: Kernel,
    threads: u32,
}

impl<T: DeviceScalar> BlockFactors<T> {
    pub fn new(device: &Device, systems: &[&BlockTridiagonal<T>]) -> Result<Self> {
        let (mut first, mut row) = (vec![0u32], vec![0u32]);
        let (mut panel, mut coupling) = (Vec::new(), Vec::new());
        let (mut panel_end, mut coupling_end, mut n, mut widest) = (0usize, 0usize, 0usize, 1usize);
        for (s, a) in systems.iter().enumerate() {
            let partition = a.partition();
            for (j, k) in partition.sizes().enumerate() {
                if k > LARGEST {
                    let why = format!("block {j} of system {s} has {k} rows; on the GPU {LARGEST} are the most");
                    return Err(InputError::InvalidStructure { what: "blocks", why }.into());
                }
                let below = if j + 1 < a.n_blocks() { partition.size(j + 1) } else { 0 };
                panel.push(panel_end as u64);
                coupling.push(coupling_end as u64);
                panel_end = panel_end.saturating_add((k + below) * k);
                coupling_end = coupling_end.saturating_add(below * k);
                widest = widest.max(k + below);
                n += k;
                row.push(n as u32);
            }
            first.push(panel.len() as u32);
        }
        check_batch(n, systems.len())?;
        // Memory of the device first: it is the scarcer.
        let mut panels = DeviceVec::uninitialized(device, panel_end)?;
        let mut couplings = DeviceVec::uninitialized(device, coupling_end)?;
        let (host_panels, host_couplings) = pack(systems, panel_end, coupling_end);
        for a in systems {
            check_finite(*a)?;
        }
        panels.copy_from(&host_panels)?;
        couplings.copy_from(&host_couplings)?;
        drop((host_panels, host_couplings));
        let kernel = |name: &str| device.kernel(Family::BlockLu, &format!("block_lu_{name}_{}", T::SUFFIX));
        let threads = (widest as u32).next_power_of_two().clamp(32, Shape::BLOCK);
        let mut factors = Self {
            n,
            m: systems.len(),
            device: device.clone(),
            tables: [DeviceVec::from_slice(device, &first)?, DeviceVec::from_slice(device, &row)?],
            places: [DeviceVec::from_slice(device, &panel)?, DeviceVec::from_slice(device, &coupling)?],
            panels,
            couplings,
            order: DeviceVec::uninitialized(device, n)?,
            status: DeviceVec::uninitialized(device, systems.len())?,
            failed: Vec::new(),
            solve_one: kernel("solve_one")?,
            solve: kernel("solve")?,
            threads,
        };
        if factors.m > 0 {
            let shared = size_of::<T>() * PANEL * (CHUNK + widest);
            let shape = Shape { blocks: factors.m as u32, rows: 1, threads, shared: shared as u32 };
            let args = [Arg::Struct(&factors.systems()), Arg::from(factors.m as u32)];
            kernel("factor")?.launch(shape, &args)?;
        }
        factors.failed = failures(&factors.status)?;
        Ok(factors)
    }

    /// Structure Systems of kernels/block_lu.cu.
    fn systems(&self) -> [u64; 8] {
        let [first, row] = self.tables.each_ref().map(DeviceVec::address);
        let [panel, coupling] = self.places.each_ref().map(DeviceVec::address);
        let values = [self.panels.address(), self.couplings.address()];
        [first, row, panel, coupling, values[0], values[1], self.order.address(), self.status.address()]
    }

    pub fn bytes(&self) -> usize {
        let indices = self.tables.iter().chain([&self.order, &self.status]).map(DeviceVec::bytes).sum::<usize>();
        let places = self.places.iter().map(DeviceVec::bytes).sum::<usize>();
        self.panels.bytes() + self.couplings.bytes() + indices + places
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
        let (kernel, groups) = if nrhs == 1 { (&self.solve_one, 1) } else { (&self.solve, nrhs.div_ceil(COLUMNS)) };
        let shape = Shape { blocks: self.m as u32 * groups, rows: 1, threads: self.threads, shared: 0 };
        kernel.launch(shape, &[Arg::Struct(&self.systems()), Arg::from(self.n as u32), nrhs.into(), x.arg()])
    }
}

/// [D; B] and C of all blocks, by columns, one after another.
fn pack<T: Scalar>(systems: &[&BlockTridiagonal<T>], panels: usize, couplings: usize) -> (Vec<T>, Vec<T>) {
    let (mut out, mut right) = (vec![T::default(); panels], vec![T::default(); couplings]);
    let (mut rest, mut right_rest) = (&mut out[..], &mut right[..]);
    for a in systems {
        for j in 0..a.n_blocks() {
            let k = a.partition().size(j);
            let below = if j + 1 < a.n_blocks() { a.partition().size(j + 1) } else { 0 };
            let (panel, after) = rest.split_at_mut((k + below) * k);
            let (coupling, right_after) = right_rest.split_at_mut(below * k);
            (rest, right_rest) = (after, right_after);
            let (d, b) = MatMut::from_column_major_slice_mut(panel, k + below, k).split_at_row_mut(k);
            a.copy_diagonal_block(j, d);
            if below > 0 {
                a.copy_lower_block(j + 1, b);
                a.copy_upper_block(j, MatMut::from_column_major_slice_mut(coupling, k, below));
            }
        }
    }
    (out, right)
}

/// [`InputError::NonFinite`] with the place of the first NaN or infinity.
pub(crate) fn check_finite<T: Scalar, A: Matrix<T>>(a: &A) -> Result<(), InputError> {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(InputError::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    found.map_or(Ok(()), Err)
}
