//! One call: check, go to the device or the processor, solve, certify.

use bt_direct::Given;
use bt_formats::{Csr, LinearOperator, Monitor, Note, Op, Outcome, Scalar};
use bt_iter::Sweep;
use faer::MatRef;

use crate::check::{check_matrix, check_rhs};
use crate::deadline::within;
use crate::error::Error;
use crate::gpu::open::OpenDevice;
use crate::iterate::iterate;
use crate::method::{Factoring, HostBlocks, Method, Precision};
use crate::options::{DeviceChoice, SolveOptions};
use crate::regular::no_pivot;
use crate::solution::Solution;
use crate::solver::Solver;
use crate::verdict::{sum_to_zero, too_large};
use crate::{auto, gpu};

/// Solves A·X = B for the columns of `b`, n × nrhs.
///
/// With `Method::Auto` the candidate that is predicted to be fastest (see [`explain`](crate::explain)): a direct method in the
/// given or another order, or an iteration, given up where it takes longer. The answer is refined and its backward error computed
/// from A; when that is not at rounding level the next stronger method is taken. The notes say all of it.
///
/// A is given by compressed rows, or as [`Tridiagonal`](crate::Tridiagonal), [`Cyclic`](crate::Cyclic), [`Band`](crate::Band),
/// [`BlockTridiagonal`](crate::BlockTridiagonal) or a dense matrix of faer, which direct methods and `auto` factor as they stand
/// (see [`Solver::new`]).
///
/// # Errors
/// [`Error::Input`] when A is not square, empty, not finite or does not match B; [`Error::Singular`] with the place;
/// [`Error::Factor`] when the method asked for cannot factor this matrix; [`Error::Usage`] on options that contradict
/// the matrix. Non-convergence is no error but an [`Outcome`].
///
/// # Example
/// ```
/// use blocktri::{Csr, Outcome, SolveOptions, Tridiagonal, faer::mat, solve};
/// let a = Csr::from_dense(mat![[0.0, 2.0], [1.0, 0.0]].as_ref())?;
/// let b = mat![[2.0], [3.0]];
/// let answer = solve(&a, b.as_ref(), &SolveOptions::default(), &mut ())?;
/// assert_eq!(answer.report.outcome, Outcome::Converged);
/// assert_eq!((answer.x[(0, 0)], answer.x[(1, 0)]), (3.0, 1.0));
///
/// let a = Tridiagonal::new(vec![0.0, 1.0], vec![2.0, 4.0], vec![1.0, 0.0])?;
/// let answer = solve(&a, mat![[3.0], [5.0]].as_ref(), &SolveOptions::default(), &mut ())?;
/// assert_eq!((answer.x[(0, 0)], answer.x[(1, 0)]), (1.0, 1.0));
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn solve<'a, T: Scalar>(
    a: impl Into<Given<'a, T>>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    options.check()?;
    match a.into() {
        Given::Csr(a) => solve_rows(a, b, options, monitor),
        other => solve_format(other, b, options, monitor),
    }
}

fn solve_rows<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    check_matrix(a)?;
    check_shares(options)?;
    let b = check_rhs(a.nrows(), b)?;
    match options.time_limit {
        Some(limit) => within(limit, (a, b.as_ref()), options, monitor, |options, monitor| {
            solve_checked(a, b.as_ref(), options, monitor)
        }),
        None => solve_checked(a, b.as_ref(), options, monitor),
    }
}

/// In the format given, where that is the whole of it; by rows where the answer, or the matrix, is in doubt.
fn solve_format<T: Scalar>(
    a: Given<'_, T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let b = check_rhs(a.shape().0, b)?;
    if options.time_limit.is_none()
        && let Some(solver) = Solver::in_format(a, options, monitor)?
    {
        let answer = solver.solve_checked(Op::Identity, b.as_ref());
        if !options.method.is_auto() || (answer.report.outcome == Outcome::Converged && !solver.is_doubtful()) {
            return Ok(answer);
        }
    }
    solve_rows(&*a.csr()?, b.as_ref(), options, monitor)
}

fn solve_checked<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let ordinal = match options.device {
        DeviceChoice::Cpu => return on_processor(a, b, options, monitor),
        DeviceChoice::Gpu(ordinal) => ordinal,
        DeviceChoice::Gpus(_) => return gpu::solve(a, b, options, monitor),
        // It weighs them beside each other.
        DeviceChoice::Auto if options.method.is_auto() => return on_processor(a, b, options, monitor),
        DeviceChoice::Auto => {
            let (device, why, _open) = gpu::choose(a, options);
            let mut answer = solve_checked(a, b, &SolveOptions { device, ..options.clone() }, monitor)?;
            answer.report.notes.insert(0, why);
            return Ok(answer);
        }
    };
    if !gpu::helps_processor(options) {
        return gpu::solve(a, b, options, monitor);
    }
    // Held open, so that what is factored there need not start it again.
    let open = OpenDevice::open(ordinal)?;
    let mut answer = on_processor(a, b, options, monitor)?;
    answer.report.notes.insert(0, gpu::check(&open)?);
    answer.device = options.device;
    Ok(answer)
}

/// Methods of the processor, parts of which may be on a device, and what `auto` takes. Where factors in single precision are too weak, the
/// whole is done again in the precision of the matrix.
fn on_processor<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let answer = attempt(a, b, options, monitor)?;
    let single = |factoring: &Factoring| factoring.precision == Precision::Single;
    let Some(factoring) = options.method.factoring().filter(single) else { return Ok(answer) };
    if answer.report.outcome != Outcome::Inaccurate {
        return Ok(answer);
    }
    let why = match answer.rcond {
        None => "do not tell the condition number".to_owned(),
        Some(_) => format!("reached {} only", too_large::<T>(&answer.report.certificate)),
    };
    drop(answer);
    let factoring = Factoring { precision: Precision::Working, ..factoring };
    let working = SolveOptions { method: options.method.clone().with_factoring(factoring)?, ..options.clone() };
    let mut answer = attempt(a, b, &working, monitor)?;
    answer.report.notes.push(Note::SingleFailed { why, scalar: T::KIND });
    Ok(answer)
}

fn attempt<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let mut answer = match options.method {
        Method::Auto(_) => auto::solve(a, b, options, monitor),
        Method::Direct(..) => return Ok(Solver::new(a, options, monitor)?.solve_checked(Op::Identity, b)),
        Method::Krylov(_) | Method::Blocks(_) => iterate(a, b, options, monitor).map_err(|e| match e {
            // Of a block or a subdomain: A itself may be regular.
            Error::Singular(place) => no_pivot(a, options.method.name(), place, options, monitor),
            other => other,
        }),
    }?;
    // An iteration solves a singular system that has solutions, and has no condition number to tell it by.
    if answer.report.outcome == Outcome::Converged
        && answer.method.is_iterative()
        && let Some(lines) = sum_to_zero(a)
    {
        let warning = Note::SumsToZero { lines };
        answer.report.notes.push(warning.clone());
        answer.warnings.push(warning);
    }
    Ok(answer)
}

/// The processor has a part of one kind of iteration only.
fn check_shares(options: &SolveOptions) -> Result<(), Error> {
    let Method::Blocks(blocks) = &options.method else { return Ok(()) };
    let shared = matches!(blocks.sweep, Sweep::Jacobi | Sweep::RedBlack);
    if blocks.host_blocks == HostBlocks::None || (shared && options.device.is_gpu()) {
        return Ok(());
    }
    let wrong = if shared { format!("device {}", options.device) } else { format!("method {}", options.method) };
    Err(Error::Usage { message: format!("host blocks are for hbisa and hbisa-redblack on a GPU, not for {wrong}") })
}
