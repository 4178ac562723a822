//! One tridiagonal system on the device, with partial pivoting, in two passes over memory.
//!
//! All unknowns but two of each piece of rows are eliminated, then pairs of neighbouring pieces are merged until one is left: Gaussian
//! elimination with scaled partial pivoting on A with its columns in another order, as [`bt_direct::tridiagonal_once`] does it with
//! one level of pieces. No piece, of odd length or even, can be singular unless A is, to underflow. (H. H. Wang, ACM Trans. Math.
//! Softw. 7 (1981), doi:10.1145/355945.355947; two passes and scaled pivoting: C. Klein, R. Strzodka, ICPP 2021,
//! doi:10.1145/3472456.3472484; the matrices to try it on: L.-W. Chang, J. A. Stratton, H.-S. Kim, W.-M. W. Hwu, SC 2012,
//! doi:10.1109/SC.2012.12.)
//!
//! Departures: two unknowns of a piece wait and not one, which makes pieces of any length safe; the coarse system is a tree of pairs in
//! shared memory and not a tridiagonal one, so that a tile of 960 rows (f32: 1984) leaves ten values.
//!
//! Storage: the three diagonals, nrhs vectors, and 0.013 values a row and column. Traffic a row and right-hand side: 9.04 values, of
//! which the diagonals of further right-hand sides come from the cache; 5 have to move. Flops a row: about 90. Launches: 3 up to
//! 61 440 rows (one up to 960), 5 up to 3.9·10⁶, 7 up to 2.5·10⁸.

use bt_direct::TridiagonalLu;
use bt_formats::{Error as InputError, Scalar, Tridiagonal};
use faer::MatMut;

use crate::checked::{DirectReport, MAX_BLOCKS, by_columns, solve_system};
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

/// Pieces of a tile, and tiles of a group, by the threads of a block.
const PIECES: u32 = 64;

/// A tridiagonal matrix on a device, to be solved with.
///
/// ```
/// use bt_formats::Tridiagonal;
/// use bt_kernels::{Device, DeviceTridiagonal, SolvedBy};
/// // [0 1; 1 0] has no pivot without an exchange.
/// let a = Tridiagonal::new(vec![0.0, 1.0], vec![0.0, 0.0], vec![1.0, 0.0])?;
/// if let Ok(device) = Device::open(0) {
///     let mut x = faer::mat![[3.0], [4.0]];
///     let report = DeviceTridiagonal::new(&device, &a)?.solve_in_place(x.as_mut())?;
///     assert_eq!((x, report.solved_by), (faer::mat![[4.0], [3.0]], SolvedBy::Device));
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceTridiagonal<'a, T: DeviceScalar> {
    a: &'a Tridiagonal<T>,
    device: Device,
    diagonals: [DeviceVec<T>; 3],
    /// Tiles of rows, groups of tiles, groups of those, as long as there is more than one group.
    counts: Vec<u32>,
    reduce: Kernel,
    merge: Kernel,
    spread: Kernel,
    solve: Kernel,
    work: Option<Levels<T>>,
    /// Right-hand sides of the host.
    x: Option<DeviceVec<T>>,
}

/// For a number of right-hand sides: ten values and two unknowns of each piece, level by level.
struct Levels<T: DeviceScalar> {
    columns: usize,
    levels: Vec<[DeviceVec<T>; 2]>,
}

impl<'a, T: DeviceScalar> DeviceTridiagonal<'a, T> {
    /// Copies the diagonals to the device.
    ///
    /// # Errors
    /// [`InputError::NonFinite`] with the place; [`InputError::TooLarge`] for 2³² rows; errors of the device.
    pub fn new(device: &Device, a: &'a Tridiagonal<T>) -> Result<Self> {
        let host = [a.lower(), a.diag(), a.upper()];
        for (shift, values) in host.iter().enumerate() {
            if let Some(row) = values.iter().position(|v| !Scalar::is_finite(*v)) {
                let (col, value) = (row + shift - 1, values[row].to_string());
                return Err(InputError::NonFinite { what: "matrix", row, col, value }.into());
            }
        }
        let n = a.diag().len();
        if n > u32::MAX as usize {
            let (what, limit) = ("a tridiagonal matrix on the GPU", "2^32 - 1 rows".into());
            return Err(InputError::TooLarge { what, needed: format!("{n} rows"), limit }.into());
        }
        let [lower, diag, upper] = host.map(|v| DeviceVec::from_slice(device, v));
        let rows = if size_of::<T>() == 8 { 15 } else { 31 };
        let mut counts = vec![(n as u32).div_ceil(PIECES * rows)];
        while let Some(&count) = counts.last()
            && count > PIECES
        {
            counts.push(count.div_ceil(PIECES));
        }
        let kernel = |name: &str| device.kernel(Family::TridiagonalOnce, &format!("tridiagonal_{name}_{}", T::SUFFIX));
        Ok(Self {
            a,
            device: device.clone(),
            diagonals: [lower?, diag?, upper?],
            counts,
            reduce: kernel("reduce")?,
            merge: kernel("merge")?,
            spread: kernel("spread")?,
            solve: kernel("solve")?,
            work: None,
            x: None,
        })
    }

    /// Bytes on the device: the diagonals, and what the last solve took.
    pub fn bytes(&self) -> usize {
        let levels = |w: &Levels<T>| w.levels.iter().flatten().map(DeviceVec::bytes).sum::<usize>();
        3 * self.diagonals[0].bytes()
            + self.work.as_ref().map_or(0, levels)
            + self.x.as_ref().map_or(0, DeviceVec::bytes)
    }

    /// X ← A⁻¹·X for the columns of `x`, contiguous, refined on the host with residuals from A. Where the backward error stays
    /// above 32u, the host solves the system by [`TridiagonalLu`].
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; [`InputError::NonFinite`] in a right-hand side; [`bt_direct::FactorError::Singular`] with
    /// the column; errors of the device. `x` is then as it was.
    ///
    /// # Cost
    /// 9.04 values of traffic and 75 flops a row and column, once or twice; a few products with A on the host.
    pub fn solve_in_place(&mut self, x: MatMut<'_, T>) -> Result<DirectReport> {
        let a = self.a;
        solve_system(a, x, |x| self.solve_once(x), TridiagonalLu::new)
    }

    /// X ← A⁻¹·X as the device computes it, neither refined nor checked: NaN where A is singular.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device, after which `x` is as it was, save for whole columns that are solved.
    pub fn solve_once(&mut self, x: MatMut<'_, T>) -> Result<()> {
        by_columns(self.a.diag().len(), x, self.counts[0] as usize, |columns, _| {
            let mut x = match self.x.take().filter(|x| x.len() == columns.len()) {
                Some(x) => x,
                None => DeviceVec::uninitialized(&self.device, columns.len())?,
            };
            x.copy_from(columns)?;
            self.solve_on_device(&mut x)?;
            x.copy_to(columns)?;
            self.x = Some(x);
            Ok(())
        })
    }

    /// The same for columns on the device, one after another, where they stay; the host does not wait.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`] unless `x` holds whole columns; [`InputError::TooLarge`] for too many at once; errors of the device.
    pub fn solve_on_device(&mut self, x: &mut DeviceVec<T>) -> Result<()> {
        let n = self.a.diag().len();
        let nrhs = x.len().checked_div(n).unwrap_or(0);
        if x.len() != nrhs * n {
            let what = "rows of the right-hand sides on the device";
            return Err(InputError::DimensionMismatch { what, expected: nrhs * n, found: x.len() }.into());
        }
        if nrhs > MAX_BLOCKS / self.counts[0].max(1) as usize {
            let (what, limit) = ("one launch on the GPU", "2^31 - 1 thread blocks".into());
            return Err(InputError::TooLarge { what, needed: format!("{nrhs} right-hand sides"), limit }.into());
        }
        if nrhs == 0 {
            return Ok(());
        }
        let work = match self.work.take().filter(|w| w.columns == nrhs) {
            Some(work) => self.work.insert(work),
            None => self.work.insert(Levels::new(&self.device, &self.counts, nrhs)?),
        };
        let (counts, tiles, nrhs) = (&self.counts, self.counts[0], nrhs as u32);
        let shape = |blocks: u32| Shape { blocks: blocks * nrhs, rows: 1, threads: PIECES, shared: 0 };
        let [lower, diag, upper] = self.diagonals.each_ref().map(DeviceVec::arg);
        let (n, x) = (Arg::from(n as u32), x.arg());
        let remains = |k: usize| work.levels[k][0].arg();
        // A kernel for one group does not read what is around it.
        let ends = |k: usize| work.levels.get(k).map_or(x, |level| level[1].arg());
        let system = |last| [n, tiles.into(), nrhs.into(), lower, diag, upper, x, last];
        if tiles > 1 {
            self.reduce.launch(shape(tiles), &system(remains(0)))?;
            for (k, &count) in counts.iter().enumerate().take(counts.len() - 1) {
                let args = [count.into(), nrhs.into(), remains(k), remains(k + 1)];
                self.merge.launch(shape(counts[k + 1]), &args)?;
            }
            for (k, &count) in counts.iter().enumerate().rev() {
                let args = [count.into(), nrhs.into(), remains(k), ends(k + 1), ends(k)];
                self.spread.launch(shape(count.div_ceil(PIECES)), &args)?;
            }
        }
        self.solve.launch(shape(tiles), &system(ends(0)))
    }
}

impl<T: DeviceScalar> Levels<T> {
    fn new(device: &Device, counts: &[u32], columns: usize) -> Result<Self> {
        let memory = |values: usize, count: u32| DeviceVec::uninitialized(device, values * count as usize * columns);
        // A tile alone needs no memory between the passes.
        let levels = counts.iter().filter(|_| counts[0] > 1);
        let levels = levels.map(|&count| Ok([memory(10, count)?, memory(2, count)?])).collect::<Result<_>>()?;
        Ok(Self { columns, levels })
    }
}
