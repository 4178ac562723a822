//! Methods on a GPU: what of them there is, and the same answers and reports as on the processor.

use bt_direct::{Factorization, FallbackReason, RbtOptions};
use bt_formats::{BlockTridiagonal, Csr, LinearOperator, Matrix, Monitor, Scalar, Scaled};
use bt_iter::{ArmsOptions, LastSolver};
use faer::{Mat, MatRef};

use crate::direct::Direct;
use crate::error::Error;
use crate::method::Method;
use crate::options::{DeviceChoice, SolveOptions};
use crate::preconditioners::Precond;
use crate::solve::Solution;

/// Factors of a dense matrix, and why they are those of the processor, if they are.
type Dense<T> = (Box<dyn Factorization<T>>, Option<FallbackReason>);

/// Whether the method is the processor's, with dense factors on the device: rbt, or the last level of arms-rbt.
pub(crate) fn helps_processor(options: &SolveOptions) -> bool {
    match &options.method {
        Method::Direct(direct, _) => matches!(direct, Direct::Rbt { .. }),
        Method::Krylov(krylov) => is_arms_rbt(krylov.precond),
        _ => false,
    }
}

/// Whether the last level of ARMS is by butterflies.
fn is_arms_rbt(precond: Precond) -> bool {
    matches!(precond, Precond::Arms(ArmsOptions { last: LastSolver::Butterflies(_), .. }))
}

/// Bytes of A from which on iterations are the device's: the caches of a processor hold less.
const LARGE: usize = 32 << 20;
/// Rows from which on a dense matrix is factored there: below, copies take as long as the flops.
const MANY: usize = 2048;

/// Where `DeviceChoice::Auto` solves, and why.
pub(crate) fn choose<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> (DeviceChoice, String) {
    let why = match worthwhile(a, options) {
        Err(why) => why,
        Ok(why) => match fits(a, options) {
            Ok(gpu) => return (DeviceChoice::Gpu(0), format!("--device auto: {gpu}, since {why}")),
            Err(error) => error.to_string(),
        },
    };
    (DeviceChoice::Cpu, format!("--device auto: the processor, since {why}"))
}

/// Whether the work outweighs the copies to a device.
fn worthwhile<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> Result<String, String> {
    let (bytes, n) = (a.bytes(), a.nrows());
    match &options.method {
        Method::Direct(Direct::Rbt { .. }, _) if n >= MANY => Ok(format!("a dense matrix of {n} rows is factored")),
        Method::Direct(Direct::Rbt { .. }, _) => Err(format!("the matrix has fewer than {MANY} rows")),
        method if !method.is_iterative() => {
            Err(format!("a GPU has {method} too, but it reads A once, as the copy to it does"))
        }
        Method::Krylov(krylov) if is_arms_rbt(krylov.precond) => {
            Err("only the last level of arms-rbt would be the GPU's".into())
        }
        _ if bytes >= LARGE => Ok(format!("the matrix has {} MB", bytes >> 20)),
        _ => Err(format!("the matrix has {} KB, which its caches hold", bytes >> 10)),
    }
}

#[cfg(not(feature = "cuda"))]
fn fits<T: Scalar>(_: &Csr<T>, _: &SolveOptions) -> Result<String, Error> {
    Err(absent(0))
}

#[cfg(not(feature = "cuda"))]
fn absent(ordinal: u32) -> Error {
    Error::Device(format!("no GPU {ordinal}: this build is without the feature cuda"))
}

/// Random butterflies and elimination on device `ordinal`.
#[cfg(not(feature = "cuda"))]
pub(crate) fn rbt<T: Scalar>(_: &Mat<T>, ordinal: u32, _: RbtOptions) -> Result<Dense<T>, Error> {
    Err(absent(ordinal))
}

/// A note that names device `ordinal`; an error when it was lost in a solve, which left NaN.
#[cfg(not(feature = "cuda"))]
pub(crate) fn check(ordinal: u32) -> Result<String, Error> {
    Err(absent(ordinal))
}

/// Solves on device `ordinal`.
#[cfg(not(feature = "cuda"))]
pub(crate) fn solve<T: Scalar>(
    _: &Csr<T>,
    _: MatRef<'_, T>,
    ordinal: u32,
    _: &SolveOptions,
    _: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    Err(absent(ordinal))
}

/// A GPU held open: solves on it need not open it again.
#[allow(missing_debug_implementations)]
pub struct OpenDevice(
    /// Closes it when dropped.
    #[cfg(feature = "cuda")]
    bt_kernels::Device,
);

impl OpenDevice {
    /// The NVIDIA GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Device`] when it is not there, and always without the feature `cuda`.
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        #[cfg(feature = "cuda")]
        return Ok(Self(bt_kernels::Device::open(ordinal)?));
        #[cfg(not(feature = "cuda"))]
        return Err(absent(ordinal));
    }

    /// π with πQ = 0, Σπ = 1 for each of many small chains whose blocks are levels of at most 38 states, by elimination without
    /// subtraction; in words why the GPU has none for one, which disturbs no other. Entries off the diagonal are rates, the
    /// diagonal is not read.
    ///
    /// ```
    /// use blocktri::{BlockTridiagonal, OpenDevice, Partition};
    /// // 0 ⇄ 1, up at rate 1 and down at rate 3
    /// let levels = Partition::from_sizes([1, 1])?;
    /// let q = BlockTridiagonal::from_dense_blocks(levels, vec![-1.0, -3.0], vec![1.0, 3.0])?;
    /// if let Ok(gpu) = OpenDevice::open(0) {
    ///     let pi = gpu.stationary(&[&q])?.remove(0).expect("an irreducible chain");
    ///     assert_eq!([pi[0].to_f64(), pi[1].to_f64()], [0.75, 0.25]);
    /// }
    /// # Ok::<(), blocktri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Input`] for a rate that is negative or not finite, and chains without states; [`Error::Device`].
    ///
    /// # Cost
    /// 2Σwₑ² flops a chain, wₑ the states before e in its level and in the level before; one launch for as many as fit on the device.
    pub fn stationary(&self, chains: &[&BlockTridiagonal<f64>]) -> Result<Vec<Result<Vec<Scaled>, String>>, Error> {
        #[cfg(feature = "cuda")]
        {
            let found = bt_kernels::stationary(&self.0, chains)?;
            Ok(found.into_iter().map(|pi| pi.map_err(|fault| fault.to_string())).collect())
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = chains;
            Err(absent(0))
        }
    }
}

#[cfg(feature = "cuda")]
use with_cuda::fits;
#[cfg(feature = "cuda")]
pub(crate) use with_cuda::{check, rbt, solve};

#[cfg(feature = "cuda")]
mod with_cuda {
    use std::any::Any;
    use std::time::{Duration, Instant};

    use bt_direct::{FactorError, Refinement};
    use bt_formats::{
        Band, BlockTridiagonal, Bytes, Error as InputError, HybridLayout, Op, Outcome, PhaseTimes, SolveReport, certify,
    };
    use bt_iter::{BlockForm, DroppedFill, StopRule, Sweep};
    use bt_kernels::{
        Device, DeviceBandLu, DeviceBiCgStab, DeviceBlockLu, DeviceCg, DeviceError, DeviceGmres, DeviceHbisa,
        DevicePreconditioner, DeviceRbt, DeviceScalar, DeviceSpike, DeviceTridiagonal, DirectReport, HostShare,
        InverseFacts, Schedule, SearchFacts, SolvedBy,
    };

    use super::{
        Csr, Dense, DeviceChoice, Direct, Error, LinearOperator, Mat, MatRef, Matrix, Method, Monitor, Precond,
        RbtOptions, Scalar, Solution, SolveOptions,
    };
    use crate::direct::{blocks, partition_note, tridiagonal};
    use crate::factors::{BlockSummary, transform};
    use crate::iterate::{blocks_of, check_hermitian, columns, merge, no_right_hand_side, ordered};
    use crate::method::{self, BlockIteration, Factoring, KrylovMethod, Precision, names};
    use crate::options::{Blocks, HostBlocks, Reorder};
    use crate::precondition::{incomplete_notes, node_size, shift_note, singular_block, sweep_blocks};
    use crate::reordered::Transform;
    use crate::solver::{order_asked, prepared};
    use crate::verdict::at_rounding_level;

    impl From<DeviceError> for Error {
        fn from(error: DeviceError) -> Self {
            match error {
                DeviceError::Input(e) => Self::Input(e),
                DeviceError::Factor(e) => e.into(),
                other => Self::Device(other.to_string()),
            }
        }
    }

    pub(crate) fn solve<T: Scalar>(
        a: &Csr<T>,
        b: MatRef<'_, T>,
        ordinal: u32,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let device = Device::open(ordinal)?;
        supported(options)?;
        let b = b.to_owned();
        if let Some(solved) = as_real::<T, f64>(&device, a, &b, options, monitor) {
            return solved;
        }
        as_real::<T, f32>(&device, a, &b, options, monitor).unwrap_or_else(|| Err(complex()))
    }

    /// The name of device 0, if it is there, has the method and may have the memory.
    pub(super) fn fits<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> Result<String, Error> {
        let device = Device::open(0)?;
        if T::reals(&[]).is_none() {
            return Err(complex());
        }
        let needed = if matches!(options.method, Method::Direct(Direct::Rbt { .. }, _)) {
            2 * size_of::<T>() * a.nrows() * a.nrows()
        } else {
            supported(options)?;
            2 * a.bytes() + size_of::<T>().saturating_mul(a.nrows()).saturating_mul(vectors(&options.method, a.nrows()))
        };
        if needed > device.memory() {
            let (gb, name) = (needed >> 30, name(&device));
            return Err(Error::Usage { message: format!("about {gb} GB are more than {name}, has") });
        }
        Ok(name(&device))
    }

    /// Vectors of n values that a method has on the device, about.
    fn vectors(method: &Method, n: usize) -> usize {
        let basis = match method {
            Method::Krylov(krylov) => match krylov.method {
                KrylovMethod::Gmres { restart, .. } => restart.min(n),
                KrylovMethod::Fgmres { restart, .. } => 2 * restart.min(n),
                _ => 0,
            },
            _ => 0,
        };
        16 + basis
    }

    pub(crate) fn rbt<T: Scalar>(a: &Mat<T>, ordinal: u32, options: RbtOptions) -> Result<Dense<T>, Error> {
        let device = Device::open(ordinal)?;
        if let Some(made) = rbt_of_real::<T, f64>(&device, a, options) {
            return made;
        }
        rbt_of_real::<T, f32>(&device, a, options).unwrap_or_else(|| Err(complex()))
    }

    fn rbt_of_real<T: Scalar, R: DeviceScalar>(
        device: &Device,
        a: &Mat<T>,
        options: RbtOptions,
    ) -> Option<Result<Dense<T>, Error>> {
        let a: &dyn Any = a;
        let made = DeviceRbt::new(device, a.downcast_ref::<Mat<R>>()?.as_ref(), options).map_err(Error::from);
        let made: Result<Dense<R>, Error> = made.map(|rbt| {
            let reason = rbt.fallback();
            (Box::new(rbt) as _, reason)
        });
        let made: Box<dyn Any> = Box::new(made);
        made.downcast().ok().map(|made| *made)
    }

    pub(crate) fn check(ordinal: u32) -> Result<String, Error> {
        let device = Device::open(ordinal)?;
        device.synchronize("solving with its factors")?;
        Ok(format!("for dense factors there was {}", name(&device)))
    }

    /// The device as notes call it.
    fn name(device: &Device) -> String {
        format!("GPU {}, {}, with {} multiprocessors", device.ordinal(), device.name(), device.multiprocessors())
    }

    fn place(device: &Device) -> DeviceChoice {
        DeviceChoice::Gpu(device.ordinal())
    }

    fn complex() -> Error {
        Error::Usage { message: "on the GPU there is real arithmetic only; the matrix is complex".into() }
    }

    /// Solves if R is T: nothing is converted.
    fn as_real<T: Scalar, R: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: &Mat<T>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Option<Result<Solution<T>, Error>> {
        let (a, b): (&dyn Any, &dyn Any) = (a, b);
        let (a, b) = (a.downcast_ref::<Csr<R>>()?, b.downcast_ref::<Mat<R>>()?);
        let solved: Box<dyn Any> = Box::new(on(device, a, b.as_ref(), options, monitor));
        solved.downcast().ok().map(|solved| *solved)
    }

    /// Whether the preconditioner exists on the device.
    fn is_there(precond: &Precond) -> bool {
        matches!(
            precond,
            Precond::Auto
                | Precond::None
                | Precond::Jacobi
                | Precond::Blocks(BlockForm::Jacobi)
                | Precond::Ilu0 { fill: DroppedFill::Forgotten, .. }
                | Precond::Ic0 { fill: DroppedFill::Forgotten, .. }
                | Precond::Ilut { .. }
                | Precond::SsorAi { .. }
                | Precond::SsorAiMasked { .. }
                | Precond::BlockSsorAi { .. }
        )
    }

    /// Whether all that is asked for exists on the device.
    fn supported(options: &SolveOptions) -> Result<(), Error> {
        let no = |what: String| {
            Err(Error::Usage { message: format!("{what} is not on the GPU yet; use the processor (--device cpu)") })
        };
        match &options.method {
            Method::Blocks(BlockIteration { sweep: Sweep::Jacobi | Sweep::RedBlack, .. }) => Ok(()),
            Method::Direct(
                Direct::TridiagonalLu | Direct::BlockLu | Direct::BandLu | Direct::Spike { .. },
                Factoring { precision, refinement },
            ) => {
                if *precision != Precision::Working {
                    return no("--precision single for direct methods".into());
                }
                if *refinement != Refinement::Auto {
                    return no("--refine N".into());
                }
                Ok(())
            }
            Method::Krylov(krylov) if krylov.method != KrylovMethod::Fcg => {
                if let KrylovMethod::Gmres { basis: Precision::Single, .. }
                | KrylovMethod::Fgmres { basis: Precision::Single, .. } = krylov.method
                {
                    return no("a basis in single precision".into());
                }
                if krylov.precision != Precision::Working {
                    return no("a preconditioner in single precision under one in double".into());
                }
                if is_there(&krylov.precond) {
                    return Ok(());
                }
                let mut all = Precond::all();
                all.retain(is_there);
                no(format!("--precond {} (there are {})", krylov.precond, names(&all, Precond::name)))
            }
            other => no(format!(
                "--method {other} (there are cg, bicgstab, gmres, fgmres, hbisa, hbisa-redblack, tridiagonal-lu, block-lu, band-lu, spike, rbt)"
            )),
        }
    }

    fn on<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let mut solution = match &options.method {
            Method::Blocks(given) => hbisa(device, a, b, given, options, monitor)?,
            Method::Krylov(given) => krylov(device, a, b, given, options, monitor)?,
            Method::Direct(method, _) => direct(device, a, b, *method, options)?,
            Method::Auto(_) => unreachable!("auto is not on the GPU"),
        };
        solution.report.notes.insert(0, format!("computed on {}", name(device)));
        Ok(solution)
    }

    /// Puts into the report what came before the iteration.
    fn before(report: &mut SolveReport, reorder: Duration, setup: Duration, mut notes: Vec<String>) {
        (report.times.reorder, report.times.setup) = (reorder, setup);
        notes.append(&mut report.notes);
        report.notes = notes;
    }

    /// Jacobi or red–black sweeps on blocks of the pattern.
    fn hbisa<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        given: &BlockIteration,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let start = Instant::now();
        let mut notes = Vec::new();
        let (work, transform, reorder) = ordered(a, options, &mut notes)?;
        let partition = blocks_of(&work, options, transform.is_identity())?;
        let summary = BlockSummary::of(&partition);
        let blocks = BlockTridiagonal::from_csr(&work, partition, HybridLayout::default()).map_err(|e| match e {
            InputError::OutsideStructure { .. } => {
                Error::Usage { message: format!("on the GPU blocks couple to their neighbours only: {e}") }
            }
            other => other.into(),
        })?;
        let reorder_time = start.elapsed();
        let mut method = DeviceHbisa::new(device, &blocks, given.sweep, given.rule, Schedule::Auto)
            .map_err(|e| transform.in_given_order(e.into()))?
            .shared(share(given))?;
        let setup = start.elapsed().saturating_sub(reorder_time);
        if method.is_persistent() {
            notes.push("all blocks fit on the GPU at once: 32 sweeps are one launch".into());
        }
        let solving = Instant::now();
        let mut y = Mat::zeros(b.nrows(), b.ncols());
        let reports = method.solve_many(transform.gathered(b).as_ref(), y.as_mut(), &given.stop, monitor)?;
        let mut x = Mat::zeros(b.nrows(), b.ncols());
        transform.scatter_columns(&y, x.as_mut());
        let mut report = reports.into_iter().reduce(merge).ok_or_else(no_right_hand_side)?;
        report.times.solve = solving.elapsed();
        report.certificate = certify(a, Op::Identity, x.as_ref(), b);
        before(&mut report, reorder_time, setup, notes);
        Ok(Solution {
            x,
            report,
            reorder,
            precond: Precond::None,
            blocks: Some(summary),
            rcond: None,
            device: place(device),
            warnings: Vec::new(),
            candidates: Vec::new(),
        })
    }

    /// The processor's part.
    fn share(given: &BlockIteration) -> HostShare {
        match given.host_blocks {
            HostBlocks::None => HostShare::None,
            HostBlocks::Measured => HostShare::Measured,
            HostBlocks::Count(count) => HostShare::Blocks(count),
        }
    }

    /// Direct methods: factored and solved on the device, refined with residuals of the host.
    fn direct<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        method: Direct,
        options: &SolveOptions,
    ) -> Result<Solution<T>, Error> {
        let start = Instant::now();
        let mut notes = Vec::new();
        let a = &prepared(a, &mut notes)?;
        let (transform, reorder) = transform(a, Some(method), order_asked(options), &mut notes)?;
        direct_in_order(device, a, b, (method, options), (&transform, reorder), (start, notes))
            .map_err(|e| transform.in_given_order(e))
    }

    /// Places of errors are those of the reordered matrix.
    fn direct_in_order<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        (method, options): (Direct, &SolveOptions),
        (transform, reorder): (&Transform<T>, Reorder),
        (start, mut notes): (Instant, Vec<String>),
    ) -> Result<Solution<T>, Error> {
        let mut summary = None;
        let identity = transform.is_identity();
        let permuted = if identity { None } else { Some(transform.apply(a)) };
        let work = permuted.as_ref().unwrap_or(a);
        let reorder_time = start.elapsed();
        let mut y = transform.gathered(b);
        let setup = || start.elapsed().saturating_sub(reorder_time);
        // The report, bytes of the matrix and of the device, and the time that the factorization took.
        let solved = match method {
            Direct::TridiagonalLu => {
                let t = tridiagonal(work, method)?;
                let mut on_device = DeviceTridiagonal::new(device, &t)?;
                let setup = setup();
                on_device.solve_in_place(y.as_mut()).map(|report| (report, t.bytes(), on_device.bytes(), setup))
            }
            Direct::BlockLu => {
                let hybrid = blocks(work, method, &options.blocks, identity)?;
                summary = Some(BlockSummary::of(hybrid.partition()));
                let lu = DeviceBlockLu::new(device, &[&hybrid])?;
                let (setup, reports) = (setup(), lu.solve_in_place(y.as_mut()));
                reports.and_then(only).map(|report| (report, hybrid.bytes(), lu.bytes(), setup))
            }
            Direct::BandLu => {
                let band = Band::from_csr(work)?;
                let lu = DeviceBandLu::new(device, &[&band])?;
                let (setup, reports) = (setup(), lu.solve_in_place(y.as_mut()));
                reports.and_then(only).map(|report| (report, band.bytes(), lu.bytes(), setup))
            }
            _ => {
                let (hybrid, band);
                let partitions = if let Direct::Spike { partitions } = method { partitions } else { None };
                let (spike, bytes) = if options.blocks == Blocks::Detect {
                    band = Band::from_csr(work)?;
                    (DeviceSpike::band(device, &band, partitions)?, band.bytes())
                } else {
                    hybrid = blocks(work, method, &options.blocks, identity)?;
                    summary = Some(BlockSummary::of(hybrid.partition()));
                    (DeviceSpike::blocks(device, &hybrid, partitions)?, hybrid.bytes())
                };
                notes.push(partition_note(spike.partitions()));
                let setup = setup();
                spike.solve_in_place(y.as_mut()).map(|report| (report, bytes, spike.bytes(), setup))
            }
        };
        let (done, matrix, factors, setup) = solved?;
        if matches!(method, Direct::BlockLu | Direct::BandLu) {
            notes.push("one system is one thread block: --method spike uses all multiprocessors".into());
        }
        notes.push(format!(
            "{} step{} of iterative refinement kept",
            done.steps,
            if done.steps == 1 { "" } else { "s" }
        ));
        let mut warnings = Vec::new();
        if done.solved_by == SolvedBy::Host {
            let reached = done.device_error;
            warnings.push(format!(
                "the GPU reached a backward error of {reached:.1e} only: {method} on the processor solved the system"
            ));
        }
        let mut x = Mat::zeros(b.nrows(), b.ncols());
        transform.scatter_columns(&y, x.as_mut());
        let certificate = certify(a, Op::Identity, x.as_ref(), b);
        let outcome = if at_rounding_level::<T>(&certificate) { Outcome::Converged } else { Outcome::Inaccurate };
        if outcome == Outcome::Inaccurate {
            notes.push(format!("the backward error {:.1e} is not at rounding level", certificate.backward_error));
        }
        notes.extend(warnings.iter().cloned());
        let solve = start.elapsed().saturating_sub(reorder_time + setup);
        let report = SolveReport {
            method: method.name(),
            outcome,
            iterations: done.steps,
            recurrence_residual: None,
            certificate,
            operator_applications: done.operator_applications,
            preconditioner_applications: done.solves,
            times: PhaseTimes { reorder: reorder_time, setup, solve },
            bytes: Bytes { matrix, factors, workspace: 2 * size_of::<T>() * b.nrows() * b.ncols() },
            notes,
        };
        Ok(Solution {
            x,
            report,
            reorder,
            precond: Precond::None,
            blocks: summary,
            rcond: None,
            device: place(device),
            warnings,
            candidates: Vec::new(),
        })
    }

    /// The report of a batch of one.
    fn only(mut reports: Vec<Result<DirectReport, FactorError>>) -> Result<DirectReport, DeviceError> {
        Ok(reports.remove(0)?)
    }

    /// A solve of one right-hand side by a Krylov method.
    type Solve<'a, T> = Box<dyn FnMut(&[T], &mut [T], &mut dyn Monitor) -> Result<SolveReport, Error> + 'a>;

    /// A Krylov method on the device.
    struct Krylov<'a, T> {
        solve: Solve<'a, T>,
        facts: InverseFacts,
        persistent: bool,
    }

    /// CG, BiCGSTAB, GMRES and FGMRES.
    fn krylov<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        given: &method::Krylov,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let start = Instant::now();
        let mut notes = Vec::new();
        if given.method.is_symmetric() {
            check_hermitian(a, given.method, &mut notes)?;
        }
        let (work, transform, reorder) = ordered(a, options, &mut notes)?;
        let reorder_time = start.elapsed();
        let stop = &given.stop;
        // All of them have the same three calls.
        macro_rules! on_device {
            ($made:expr) => {{
                let mut made = $made?;
                let (facts, persistent) = (made.preconditioner(), made.is_persistent());
                Ok(Krylov { solve: Box::new(move |b, x, m| Ok(made.solve(b, x, stop, m)?)), facts, persistent })
            }};
        }
        let new = |precond: &DevicePreconditioner| -> Result<Krylov<'_, T>, DeviceError> {
            let (work, schedule) = (&work, Schedule::Auto);
            match given.method {
                KrylovMethod::Cg => on_device!(DeviceCg::new(device, work, precond, schedule)),
                KrylovMethod::Gmres { restart, .. } => {
                    on_device!(DeviceGmres::new(device, work, precond, restart, schedule))
                }
                KrylovMethod::Fgmres { restart, .. } => {
                    on_device!(DeviceGmres::flexible(device, work, precond, restart, schedule))
                }
                _ => on_device!(DeviceBiCgStab::new(device, work, precond, schedule)),
            }
        };
        let wanted = wanted(&work, transform.is_identity(), given, &options.blocks, &mut notes)?;
        let (mut made, precond) = match (new(&wanted), given.precond) {
            (Ok(made), Precond::Auto) => (made, Precond::Jacobi),
            (Err(DeviceError::Factor(why)), Precond::Auto) => {
                notes.push(format!("no preconditioner: {why}"));
                (new(&DevicePreconditioner::Identity)?, Precond::None)
            }
            (Err(DeviceError::Factor(why)), _) => {
                let blocks = if let DevicePreconditioner::BlockJacobi(p) = &wanted { p.n_blocks() } else { 1 };
                return Err(transform.in_given_order(singular_block(why, blocks, given.precond).into()));
            }
            (made, precond) => (made?, precond),
        };
        tell(made.facts, precond, &mut notes);
        let setup = start.elapsed().saturating_sub(reorder_time);
        if made.persistent {
            notes.push("all rows fit on the GPU at once: 32 iterations are one launch".into());
        }
        let (x, mut report) = columns(a, b, &transform, (StopRule::Residual, stop), monitor, &mut *made.solve)?;
        before(&mut report, reorder_time, setup, notes);
        Ok(Solution {
            x,
            report,
            reorder,
            precond,
            blocks: None,
            rcond: None,
            device: place(device),
            warnings: Vec::new(),
            candidates: Vec::new(),
        })
    }

    /// The preconditioner that the options ask for.
    fn wanted<T: Scalar>(
        work: &Csr<T>,
        identity: bool,
        given: &method::Krylov,
        blocks: &Blocks,
        notes: &mut Vec<String>,
    ) -> Result<DevicePreconditioner, Error> {
        let precond = given.precond;
        Ok(match precond {
            Precond::None => DevicePreconditioner::Identity,
            Precond::Blocks(_) => {
                DevicePreconditioner::BlockJacobi(sweep_blocks(work, identity, precond, blocks, notes)?)
            }
            Precond::Ilu0 { solves, .. } => DevicePreconditioner::Ilu0(solves),
            Precond::Ic0 { solves, .. } => DevicePreconditioner::Ic0(solves),
            Precond::Ilut { options, solves } if given.method.is_symmetric() => {
                notes.push("ilut in its symmetric form: its pattern with the transpose, and positive pivots".into());
                DevicePreconditioner::Ict(options, solves)
            }
            Precond::Ilut { options, solves } => DevicePreconditioner::Ilut(options, solves),
            Precond::SsorAi { omega, series, triangles } => DevicePreconditioner::SsorAi { omega, series, triangles },
            Precond::SsorAiMasked { omega } => DevicePreconditioner::SsorAiMasked { omega },
            Precond::BlockSsorAi { omega } => {
                let block_size = node_size(work, identity, precond, blocks, notes)?;
                DevicePreconditioner::BlockSsorAi { omega, block_size }
            }
            _ => DevicePreconditioner::Jacobi,
        })
    }

    /// What the preconditioner is made of, as on the processor.
    fn tell(facts: InverseFacts, precond: Precond, notes: &mut Vec<String>) {
        let (Precond::Ilu0 { solves, .. } | Precond::Ic0 { solves, .. } | Precond::Ilut { solves, .. }) = precond
        else {
            return;
        };
        if let Some(levels) = facts.levels {
            shift_note(precond.name(), facts.breakdowns, facts.shift, notes);
            incomplete_notes(precond.name(), facts.nnz, facts.replaced_pivots, || levels, solves, notes);
        }
        if let Some(SearchFacts { steps, left_over: [all, inside] }) = facts.search {
            notes.push(format!(
                "{steps} steps found its pattern; L·U misses {all:.1e} of a row of A in the mean, {inside:.1e} of it in the pattern"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Krylov, KrylovMethod};

    fn of(n: usize, method: impl Into<Method>) -> Result<String, String> {
        let ptr = (0..=n as u32).collect();
        let a = Csr::<f64>::new(n, n, ptr, (0..n as u32).collect(), vec![1.0; n]).expect("a diagonal matrix");
        worthwhile(&a, &SolveOptions::by(method))
    }

    #[test]
    fn the_work_has_to_outweigh_the_copies() {
        // 16 bytes a row with one entry
        assert_eq!(of(LARGE / 16, KrylovMethod::Cg), Ok("the matrix has 32 MB".into()));
        assert_eq!(of(64, KrylovMethod::Cg), Err("the matrix has 1 KB, which its caches hold".into()));
        assert!(of(LARGE / 16, Direct::BandLu).is_err_and(|why| why.contains("reads A once")));
        let gmres = "gmres".parse::<Method>().unwrap();
        let Method::Krylov(gmres) = gmres else { panic!("a Krylov method") };
        assert!(of(LARGE / 16, Krylov { precond: "arms-rbt".parse().unwrap(), ..gmres }).is_err());
        assert!(of(MANY, Direct::Rbt { seed: 1 }).is_ok());
        assert!(of(MANY - 1, Direct::Rbt { seed: 1 }).is_err());
    }
}
