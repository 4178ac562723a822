//! Batches of tridiagonal systems on the device.
//!
//! Interleaved systems take a thread each (Thomas's algorithm), neighbours in one stream of memory; systems one after another take
//! a thread block each (parallel cyclic reduction, R. W. Hockney, C. R. Jesshope, Parallel Computers, 1981, or another
//! [`BlockSolver`]), up to 1024 rows.
//! (The layouts and their reasons: L.-W. Chang, J. A. Stratton, H.-S. Kim, W.-M. W. Hwu, SC 2012, doi:10.1109/SC.2012.12.)
//!
//! Neither exchanges rows, so every system comes with its backward error, ‖b − A·x‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞), computed on the
//! device. Systems above 32u, or with a NaN, are solved again on the host with interchanges ([`TridiagonalBatch`]).
//!
//! Storage: the diagonals, b and x, interleaved one vector more. Traffic a row: 13 values interleaved, 5 otherwise.

use bt_direct::batch::{Failure, Layout, Pivoting, TridiagonalBatch};
use bt_formats::{Error as InputError, Scalar};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

/// Backward errors above this many units of rounding send a system to the host.
const DOUBTFUL: f64 = 32.0;
/// Rows of a system of a strided batch at most.
const LARGEST: usize = 1024;

/// How a thread block solves a tridiagonal system of k rows in shared memory, a row a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSolver {
    /// ⌈log₂ k⌉ steps in which every row is rid of two neighbours: at most 14k·⌈log₂ k⌉ + 4k flops.
    #[default]
    ParallelCyclicReduction,
    /// Every other row is eliminated until one is left, and back: 2⌈log₂ k⌉ steps, about 17k flops; in most steps most threads wait, and
    /// rows share banks of the memory (R. W. Hockney, J. ACM 12 (1965), doi:10.1145/321250.321259).
    CyclicReduction,
    /// One thread after the last of 2k steps, 8k flops: for blocks of a few rows.
    Thomas,
}

impl BlockSolver {
    /// Its number in the kernels.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::ParallelCyclicReduction => 0,
            Self::CyclicReduction => 1,
            Self::Thomas => 2,
        }
    }
}

/// m systems of n rows each on a device, the three diagonals in one [`Layout`] as in [`TridiagonalBatch`].
///
/// ```
/// use bt_direct::batch::Layout;
/// use bt_kernels::{Device, DeviceTridiagonalBatch};
/// // [2 1; 1 2] and [0 1; 4 0], which needs an interchange, one after the other
/// let (lower, diag, upper) = ([0.0, 1.0, 0.0, 4.0], [2.0, 2.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]);
/// if let Ok(device) = Device::open(0) {
///     let mut batch = DeviceTridiagonalBatch::new(&device, Layout::Strided, 2, &lower, &diag, &upper)?;
///     let mut x = [3.0, 3.0, 5.0, 8.0];
///     let report = batch.solve_in_place(&mut x)?;
///     assert_eq!((report.on_host, report.failures.len(), x), (vec![1], 0, [1.0, 1.0, 2.0, 5.0]));
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceTridiagonalBatch<'a, T: DeviceScalar> {
    layout: Layout,
    n: usize,
    m: usize,
    /// The caller's: systems in doubt are taken from them.
    host: [&'a [T]; 3],
    diagonals: [DeviceVec<T>; 3],
    b: DeviceVec<T>,
    x: DeviceVec<T>,
    scratch: Option<DeviceVec<T>>,
    errors: DeviceVec<f64>,
    kernel: Kernel,
    solver: BlockSolver,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchReport {
    /// Systems that the host solved again, in order, failures included.
    pub on_host: Vec<usize>,
    /// Systems without a solution, in order; their part of x is NaN.
    pub failures: Vec<Failure>,
}

impl<'a, T: DeviceScalar> DeviceTridiagonalBatch<'a, T> {
    /// Copies systems of `n` rows to the device, as many as the arrays hold. `lower` of a first and `upper` of a last row lie outside
    /// the systems and are not read.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`] when lengths differ; [`InputError::InvalidStructure`] when they are no multiple of n, or
    /// a strided batch has systems of over 1024 rows; [`InputError::TooLarge`] for 2³² systems or rows; errors of the device.
    pub fn new(
        device: &Device,
        layout: Layout,
        n: usize,
        lower: &'a [T],
        diag: &'a [T],
        upper: &'a [T],
    ) -> Result<Self> {
        let rows = diag.len();
        for (what, v) in [("lower diagonals", lower), ("upper diagonals", upper)] {
            if v.len() != rows {
                return Err(InputError::DimensionMismatch { what, expected: rows, found: v.len() }.into());
            }
        }
        let refuse = |why| Err(InputError::InvalidStructure { what: "tridiagonal batch", why }.into());
        if n == 0 || !rows.is_multiple_of(n) {
            return refuse(format!("{rows} rows are not systems of {n}"));
        }
        let m = rows / n;
        if n.max(m) > u32::MAX as usize {
            let (what, needed, limit) = ("a tridiagonal batch", format!("{m} systems of {n} rows"), "2^32 - 1".into());
            return Err(InputError::TooLarge { what, needed, limit }.into());
        }
        let name = match layout {
            Layout::Interleaved => "interleaved",
            Layout::Strided if n > LARGEST => {
                return refuse(format!("{n} rows one after another; a thread block takes {LARGEST}: interleave them"));
            }
            Layout::Strided => "strided",
        };
        let copy = |v| DeviceVec::from_slice(device, v);
        let memory = || DeviceVec::uninitialized(device, rows);
        Ok(Self {
            layout,
            n,
            m,
            host: [lower, diag, upper],
            diagonals: [copy(lower)?, copy(diag)?, copy(upper)?],
            b: memory()?,
            x: memory()?,
            scratch: if layout == Layout::Interleaved { Some(memory()?) } else { None },
            errors: DeviceVec::uninitialized(device, m)?,
            kernel: device.kernel(Family::Tridiagonal, &format!("tridiagonal_{name}_{}", T::SUFFIX))?,
            solver: if layout == Layout::Interleaved { BlockSolver::Thomas } else { BlockSolver::default() },
        })
    }

    /// The same batch, solved in another way.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for interleaved systems, which have a thread each and go by Thomas's algorithm.
    pub fn with_solver(self, solver: BlockSolver) -> Result<Self> {
        if self.layout == Layout::Interleaved && solver != BlockSolver::Thomas {
            let why = format!("{solver:?} is for a thread block; interleaved systems have a thread each");
            return Err(InputError::InvalidStructure { what: "solver", why }.into());
        }
        Ok(Self { solver, ..self })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        let vectors = 5 + usize::from(self.scratch.is_some());
        vectors * self.x.bytes() + self.errors.bytes()
    }

    /// b, in the layout of the batch, is replaced by x. A system that fails has NaN for x and disturbs no other.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device, after which `b` is as it was.
    pub fn solve_in_place(&mut self, b: &mut [T]) -> Result<BatchReport> {
        self.b.copy_from(b)?;
        self.solve_on_device()?;
        if self.m == 0 {
            return Ok(BatchReport::default());
        }
        let mut x = vec![T::default(); b.len()];
        self.x.copy_to(&mut x)?;
        let errors = self.backward_errors()?;
        let unit = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON } / 2.0;
        let mut report = BatchReport::default();
        for s in (0..self.m).filter(|&s| !(errors[s] <= DOUBTFUL * unit)) {
            report.on_host.push(s);
            self.again(s, b, &mut x, &mut report.failures)?;
        }
        b.copy_from_slice(&x);
        Ok(report)
    }

    /// Solves for the right-hand sides in [`DeviceTridiagonalBatch::vectors`]; the host does not wait. Without interchanges: the host
    /// judges by [`DeviceTridiagonalBatch::backward_errors`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn solve_on_device(&self) -> Result<()> {
        if self.m == 0 {
            return Ok(());
        }
        let sizes = [self.n, self.m].map(|v| Arg::from(v as u32));
        let [lower, diag, upper] = self.diagonals.each_ref().map(DeviceVec::arg);
        let (b_arg, x_arg, errors) = (self.b.arg(), self.x.arg(), self.errors.arg());
        let [n, m] = sizes;
        if let Some(scratch) = &self.scratch {
            let args = [n, m, lower, diag, upper, b_arg, scratch.arg(), x_arg, errors];
            self.kernel.launch(Shape::over(self.m as u64), &args)?;
        } else {
            let shape = Shape { threads: (self.n as u32).next_multiple_of(32), ..Shape::blocks(self.m as u32) };
            let solver = Arg::from(self.solver.code());
            self.kernel.launch(shape, &[n, m, lower, diag, upper, b_arg, x_arg, errors, solver])?;
        }
        Ok(())
    }

    /// The backward error of every system, of the last solve.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn backward_errors(&self) -> Result<Vec<f64>> {
        let mut errors = vec![0.0; self.m];
        self.errors.copy_to(&mut errors)?;
        Ok(errors)
    }

    /// The right-hand sides, in the layout of the batch, and their answers.
    pub fn vectors(&mut self) -> (&mut DeviceVec<T>, &DeviceVec<T>) {
        (&mut self.b, &self.x)
    }

    /// System s on the host, with interchanges.
    fn again(&self, s: usize, b: &[T], x: &mut [T], failures: &mut Vec<Failure>) -> Result<()> {
        let place = |i: usize| match self.layout {
            Layout::Strided => s * self.n + i,
            Layout::Interleaved => i * self.m + s,
        };
        let part = |v: &[T]| (0..self.n).map(|i| v[place(i)]).collect::<Vec<_>>();
        let [mut lower, diag, mut upper] = self.host.map(part);
        (lower[0], upper[self.n - 1]) = (T::default(), T::default());
        let mut column = part(b);
        let system = TridiagonalBatch::new(Layout::Strided, self.n, lower, diag, upper)?;
        let verdict = system.solve_in_place(&mut column, Pivoting::Partial)?;
        failures.extend(verdict.failures().iter().map(|f| Failure { system: s, status: f.status }));
        let solved = column.iter().all(|v| Scalar::is_finite(*v));
        debug_assert!(solved || !verdict.all_solved());
        for (i, v) in column.into_iter().enumerate() {
            x[place(i)] = v;
        }
        Ok(())
    }
}
