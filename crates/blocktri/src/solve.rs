//! One call: choose a method, factor, solve, verify, and go to a stronger method when the answer is not good enough.

use std::time::Instant;

use bt_direct::refine::unit_roundoff;
use bt_direct::{FactorError, Factorization, Refinement, refine};
use bt_formats::{
    Bytes, Certificate, Csr, Error as InputError, LinearOperator, Matrix, Monitor, Op, Outcome, PhaseTimes, Scalar,
    SolveReport, zero,
};
use faer::{Mat, MatRef};

use crate::error::Error;
use crate::factors::{BlockSummary, Factored, factor, matching, transform};
use crate::gpu;
use crate::iterate::iterate;
use crate::options::{Blocks, DeviceChoice, HostBlocks, Method, Precision, Reorder, SolveOptions};
use crate::plan::{Plan, explain, plan};
use crate::reordered::Transform;

/// An answer and its report.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// X, n × nrhs.
    pub x: Mat<T>,
    /// What was done, how it ended, how good x is.
    pub report: SolveReport,
    /// The reordering that was used.
    pub reorder: Reorder,
    /// The preconditioner that was used; "none" for methods without one.
    pub precond: &'static str,
    /// The blocks that were used, for methods on blocks.
    pub blocks: Option<BlockSummary>,
    /// Reciprocal condition number of A in the 1-norm, direct methods only.
    pub rcond: Option<f64>,
    /// Where it was solved: never `Auto`.
    pub device: DeviceChoice,
    /// What the user must not overlook although the outcome is good (also among the notes): an ill-conditioned matrix, a
    /// method replaced by another.
    pub warnings: Vec<String>,
}

/// A factored system: factor once, solve as often as wanted, every answer refined and certified.
///
/// ```
/// use blocktri::{SolveOptions, Solver, faer::mat};
/// use blocktri::formats::Csr;
/// let a = Csr::from_dense(mat![[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
/// let solver = Solver::new(&a, &SolveOptions::default(), &mut ())?;
/// let b = mat![[3.0], [5.0], [5.0]];
/// let answer = solver.solve(b.as_ref())?;
/// assert!(answer.report.certificate.backward_error < 1e-15);
/// assert!((answer.x[(0, 0)] - 1.0f64).abs() < 1e-15);
/// # Ok::<(), blocktri::Error>(())
/// ```
pub struct Solver<T: Scalar> {
    a: Csr<T>,
    factored: Factored<T>,
    /// What is left to try, strongest last.
    options: SolveOptions,
    notes: Vec<String>,
    times: PhaseTimes,
}

/// Solves A·X = B for the columns of `b`, n × nrhs.
///
/// With `Method::Auto`: the cheapest of Thomas, tridiagonal LU, block LU, band LU (each in the given or the reverse
/// Cuthill–McKee order) and sparse LU by counted operations; the answer is refined and its backward error computed from
/// A; when that is not at rounding level the next stronger method is taken. The notes say all of it.
///
/// # Errors
/// [`Error::Input`] when A is not square, empty, not finite or does not match B; [`Error::Singular`] with the place;
/// [`Error::Factor`] when the method asked for cannot factor this matrix; [`Error::Usage`] on options that contradict
/// the matrix. Non-convergence is no error but an [`Outcome`].
///
/// # Example
/// ```
/// use blocktri::{Outcome, SolveOptions, faer::mat, solve};
/// use blocktri::formats::Csr;
/// let a = Csr::from_dense(mat![[0.0, 2.0], [1.0, 0.0]].as_ref())?;
/// let b = mat![[2.0], [3.0]];
/// let answer = solve(&a, b.as_ref(), &SolveOptions::default(), &mut ())?;
/// assert_eq!(answer.report.outcome, Outcome::Converged);
/// assert_eq!((answer.x[(0, 0)], answer.x[(1, 0)]), (3.0, 1.0));
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn solve<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    check_matrix(a)?;
    check_shares(options)?;
    let b = check_rhs(a, b)?;
    let ordinal = match options.device {
        DeviceChoice::Cpu => return on_processor(a, &b, options, monitor),
        DeviceChoice::Gpu(ordinal) => ordinal,
        DeviceChoice::Auto => {
            let (device, why) = gpu::choose(a, options);
            let mut answer = solve(a, b.as_ref(), &SolveOptions { device, ..options.clone() }, monitor)?;
            answer.report.notes.insert(0, why);
            return Ok(answer);
        }
    };
    if !gpu::helps_processor(options) {
        return gpu::solve(a, b.as_ref(), ordinal, options, monitor);
    }
    let mut answer = on_processor(a, &b, options, monitor)?;
    answer.report.notes.insert(0, gpu::check(ordinal)?);
    answer.device = options.device;
    Ok(answer)
}

/// Methods of the processor, parts of which may be on a device.
fn on_processor<T: Scalar>(
    a: &Csr<T>,
    b: &Mat<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    if options.method.is_iterative() {
        return iterate(a, b, options, monitor);
    }
    let mut solver = Solver::new(a, options, monitor)?;
    let mut answer = solver.solve(b.as_ref())?;
    // What the notes say is about the answer returned, then about the attempts around it.
    let mut attempts = Vec::new();
    if solver.factored.precision == Precision::Single && answer.report.outcome == Outcome::Inaccurate {
        attempts.push(format!(
            "refinement with factors in single precision stagnated at a backward error of {:.1e}: factored in {} instead",
            answer.report.certificate.backward_error,
            T::KIND
        ));
        solver.options.precision = Precision::Working;
        solver.replace(solver.factored.method, solver.factored.reorder, monitor)?;
        answer = solver.solve(b.as_ref())?;
    }
    let mut tried = solver.factored.method;
    while options.method == Method::Auto && answer.report.outcome == Outcome::Inaccurate {
        let Some(next) = stronger(tried) else { break };
        tried = next;
        attempts.push(format!(
            "{} reached a backward error of {:.1e} only, above rounding level: {next} was tried",
            answer.report.method, answer.report.certificate.backward_error
        ));
        let reorder = match next {
            Method::TridiagonalLu => Reorder::None,
            Method::BandLu => solver.factored.reorder,
            _ => Reorder::Matching,
        };
        match solver.replace(next, reorder, monitor) {
            Ok(()) => {}
            // Singular for stronger pivoting: the weak answer is worth nothing.
            Err(end @ (Error::Singular(_) | Error::Factor(FactorError::Stopped))) => return Err(end),
            Err(failed) => {
                attempts.push(format!("{next}: {failed}"));
                continue;
            }
        }
        let candidate = solver.solve(b.as_ref())?;
        let reached = candidate.report.certificate.backward_error;
        if reached < answer.report.certificate.backward_error || answer.report.certificate.backward_error.is_nan() {
            answer = candidate;
        } else {
            attempts.push(format!("{next} reached {reached:.1e}: the answer of {} is kept", answer.report.method));
        }
    }
    answer.report.notes.append(&mut attempts);
    Ok(answer)
}

/// The method to fall back on when `weak` gives no good answer.
fn stronger(weak: Method) -> Option<Method> {
    match weak {
        Method::Thomas | Method::CyclicReduction | Method::Pcr | Method::SpikeLu | Method::SpikeDiagonalPivoting => {
            Some(Method::TridiagonalLu)
        }
        Method::BlockCholesky => Some(Method::BlockLu),
        Method::BlockRbt => Some(Method::BlockLuAcross),
        Method::BlockLu
        | Method::BlockCyclicReduction
        | Method::BandLuNoPivot
        | Method::BandCholesky
        | Method::Spike
        | Method::SpikeTruncated => Some(Method::BandLu),
        Method::Genp => Some(Method::DenseLu),
        Method::TridiagonalLu | Method::GSpike | Method::BandLu | Method::BlockLuAcross => Some(Method::SparseLu),
        _ => None,
    }
}

/// The processor has a part of one kind of iteration only.
fn check_shares(options: &SolveOptions) -> Result<(), Error> {
    let shared = matches!(options.method, Method::Hbisa | Method::HbisaRedBlack);
    let on_gpu = matches!(options.device, DeviceChoice::Gpu(_));
    if options.host_blocks == HostBlocks::None || (shared && on_gpu) {
        return Ok(());
    }
    let wrong = if shared { format!("--device {}", options.device) } else { format!("--method {}", options.method) };
    Err(Error::Usage {
        message: format!("--host-blocks is for hbisa and hbisa-redblack with --device gpu, not for {wrong}"),
    })
}

fn check_matrix<T: Scalar>(a: &Csr<T>) -> Result<(), Error> {
    a.check_square()?;
    if a.nrows() == 0 {
        return Err(Error::Usage { message: "the matrix is 0 × 0: there is nothing to solve".into() });
    }
    a.check_finite()?;
    Ok(())
}

/// Checks the right-hand sides and gives them contiguous columns.
fn check_rhs<T: Scalar>(a: &Csr<T>, b: MatRef<'_, T>) -> Result<Mat<T>, Error> {
    if b.nrows() != a.nrows() {
        return Err(InputError::DimensionMismatch {
            what: "rows of the right-hand side",
            expected: a.nrows(),
            found: b.nrows(),
        }
        .into());
    }
    for col in 0..b.ncols() {
        for row in 0..b.nrows() {
            let v = b[(row, col)];
            if !Scalar::is_finite(v) {
                return Err(InputError::NonFinite { what: "right-hand side", row, col, value: v.to_string() }.into());
            }
        }
    }
    if b.ncols() == 0 {
        return Err(Error::Usage { message: "there is no right-hand side".into() });
    }
    Ok(b.to_owned())
}

impl<T: Scalar> Solver<T> {
    /// Chooses (with `Method::Auto`) and factors.
    ///
    /// # Errors
    /// As [`solve`]; [`Error::Usage`] for an iterative method, which has no factors.
    pub fn new(a: &Csr<T>, options: &SolveOptions, monitor: &mut dyn Monitor) -> Result<Self, Error> {
        check_matrix(a)?;
        if options.method.is_iterative() {
            return Err(Error::Usage {
                message: format!("{} is iterative and has no factors; call solve", options.method),
            });
        }
        let start = Instant::now();
        let mut notes = Vec::new();
        let a = prepared(a, &mut notes)?;
        let mut times = PhaseTimes::default();
        let reorder = order_asked(options);
        let factored = match options.method {
            Method::Auto => {
                let fixed = match reorder {
                    Reorder::None | Reorder::Rcm | Reorder::Auto => None,
                    given => Some(transform(&a, Method::Auto, given, &mut notes)?),
                };
                let plan = match &fixed {
                    Some((transform, given)) => {
                        let mut plan = plan(&transform.apply(&a), Reorder::None, &Blocks::Detect)?;
                        plan.candidates.iter_mut().for_each(|c| c.reorder = *given);
                        plan
                    }
                    None => plan(&a, reorder, &options.blocks)?,
                };
                times.reorder = start.elapsed();
                automatic(&a, options, plan, fixed, &mut notes, monitor)?
            }
            method => {
                let transform = transform(&a, method, reorder, &mut notes)?;
                times.reorder = start.elapsed();
                named(&a, options, transform, &mut notes, monitor)?
            }
        };
        if options.blocks != Blocks::Detect && factored.blocks.is_none() {
            notes.push(format!("the given blocks were not used: {} does not work on blocks", factored.method));
        }
        times.setup = start.elapsed().saturating_sub(times.reorder);
        Ok(Self { a, factored, options: options.clone(), notes, times })
    }

    /// Solves for the columns of `b`, refines, and certifies the answer.
    ///
    /// # Errors
    /// [`Error::Input`] when `b` has not n rows or is not finite.
    pub fn solve(&self, b: MatRef<'_, T>) -> Result<Solution<T>, Error> {
        let b = check_rhs(&self.a, b)?;
        let start = Instant::now();
        let Factored { method, reorder, blocks, factors, matrix_bytes, precision, rcond, notes: made } = &self.factored;
        let mut x = b.clone();
        factors.solve_in_place(x.as_mut());
        let refinement = match (*precision, self.options.refinement) {
            (Precision::Single, Refinement::Auto) => Refinement::Stagnation,
            (_, asked) => asked,
        };
        let refined = refine(&self.a, &**factors, Op::Identity, b.as_ref(), &mut x, refinement);
        let solve_time = start.elapsed();
        let certificate = refined.certificate;
        let rcond = *rcond.get_or_init(|| factors.rcond());

        let mut notes = self.notes.clone();
        notes.extend_from_slice(made);
        let mut warnings = Vec::new();
        if !matches!(self.options.method, Method::Auto) && self.options.method != *method {
            warnings.push(format!("{} could not factor the matrix: {method} solved the system", self.options.method));
        }
        if *precision == Precision::Single {
            notes.push("factors in single precision".into());
        }
        let steps = refined.steps;
        notes.push(format!("{steps} step{} of iterative refinement kept", if steps == 1 { "" } else { "s" }));
        let stats = factors.stats();
        if stats.growth > 1e6 {
            notes.push(format!("element growth of the factorization: {:.1e}", stats.growth));
        }
        let outcome = if at_rounding_level::<T>(&certificate) { Outcome::Converged } else { Outcome::Inaccurate };
        if outcome == Outcome::Inaccurate {
            notes.push(format!("the backward error {:.1e} is not at rounding level", certificate.backward_error));
        }
        if rcond < 2.0 * unit_roundoff::<T>() {
            warnings.push(format!(
                "the matrix is singular to working precision (rcond {rcond:.1e}): x solves a nearby system exactly, but may have no correct digit"
            ));
        }
        notes.extend(warnings.iter().cloned());
        let report = SolveReport {
            method: method.name(),
            outcome,
            iterations: steps,
            recurrence_residual: None,
            certificate,
            operator_applications: refined.operator_applications,
            preconditioner_applications: refined.solves + b.ncols(),
            times: PhaseTimes { solve: solve_time, ..self.times },
            bytes: Bytes {
                matrix: *matrix_bytes,
                factors: stats.bytes,
                workspace: 2 * size_of::<T>() * b.nrows() * b.ncols(),
            },
            notes,
        };
        Ok(Solution {
            x,
            report,
            reorder: *reorder,
            precond: "none",
            blocks: *blocks,
            rcond: Some(rcond),
            device: DeviceChoice::Cpu,
            warnings,
        })
    }

    /// The factors, as solvers with A, Aᵀ, Aᴴ, determinant and condition estimate.
    pub fn factors(&self) -> &dyn Factorization<T> {
        &*self.factored.factors
    }

    /// Factors again by another method, or in another order or precision.
    fn replace(&mut self, method: Method, reorder: Reorder, monitor: &mut dyn Monitor) -> Result<(), Error> {
        let start = Instant::now();
        let transform = transform(&self.a, method, reorder, &mut self.notes)?;
        self.factored = factor(&self.a, method, transform, &self.options, monitor)?;
        self.times.setup += start.elapsed();
        Ok(())
    }
}

/// A without stored zeros, which must not widen the structure; structurally regular.
pub(crate) fn prepared<T: Scalar>(a: &Csr<T>, notes: &mut Vec<String>) -> Result<Csr<T>, Error> {
    let kept = if a.values().contains(&zero()) {
        let kept = a.without_zeros();
        notes.push(format!("{} stored entries are zero and were left out", a.nnz() - kept.nnz()));
        kept
    } else {
        a.clone()
    };
    if (0..kept.nrows()).any(|i| kept.get(i, i) == zero()) {
        matching(&kept)?;
    }
    Ok(kept)
}

/// The reordering that direct methods are asked for: given blocks are blocks of the given order.
pub(crate) fn order_asked(options: &SolveOptions) -> Reorder {
    match (&options.blocks, options.reorder) {
        (Blocks::Uniform(_) | Blocks::Sizes(_), Reorder::Auto) => Reorder::None,
        (_, reorder) => reorder,
    }
}

/// Normwise backward error of a few units of roundoff.
pub(crate) fn at_rounding_level<T: Scalar>(c: &Certificate) -> bool {
    c.backward_error <= 32.0 * unit_roundoff::<T>()
}

/// The method asked for; where it meets a pivot that only it cannot use, the next stronger one in the same order.
fn named<T: Scalar>(
    a: &Csr<T>,
    options: &SolveOptions,
    transform: (Transform<T>, Reorder),
    notes: &mut Vec<String>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    match factor(a, options.method, transform.clone(), options, monitor) {
        Err(Error::Factor(failure @ FactorError::Breakdown { .. })) => {
            // What a pivoting method cannot factor, another cannot in the same order.
            let next = stronger(options.method).filter(|next| *next != Method::SparseLu);
            let Some(next) = next else { return Err(Error::Factor(failure)) };
            notes.push(format!("{failure}; handed over to {next}"));
            factor(a, next, transform, options, monitor)
        }
        result => result,
    }
}

/// The candidates of a plan in turn, then stronger methods, until one factors.
fn automatic<T: Scalar>(
    a: &Csr<T>,
    options: &SolveOptions,
    plan: Plan,
    mut fixed: Option<(Transform<T>, Reorder)>,
    notes: &mut Vec<String>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let Some(best) = plan.candidates.first().cloned() else {
        return Err(Error::Usage {
            message: format!("no direct method fits memory in the order '{}'; try --reorder auto", options.reorder),
        });
    };
    notes.push(explain(&plan.candidates));
    let mut method = best.method;
    let mut reorder = best.reorder;
    let mut order = plan.rcm;
    loop {
        let transform = match (&fixed, reorder, order.take()) {
            (Some(given), ..) => given.clone(),
            (None, Reorder::Rcm, Some(p)) => (Transform::symmetric(p), Reorder::Rcm),
            (None, reorder, _) => transform(a, method, reorder, notes)?,
        };
        let failure = match factor(a, method, transform, options, monitor) {
            Ok(factored) => return Ok(factored),
            Err(Error::Factor(e @ (FactorError::Breakdown { .. } | FactorError::Failed { .. }))) => e,
            Err(other) => return Err(other),
        };
        let Some(next) = stronger(method) else { return Err(Error::Factor(failure)) };
        notes.push(format!("{failure}; handed over to {next}"));
        method = next;
        if method == Method::SparseLu {
            (fixed, reorder) = (None, Reorder::Matching);
        }
    }
}
