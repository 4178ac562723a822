//! One call: choose a method, factor, solve, verify, and go to a stronger method when the answer is not good enough.

use std::sync::OnceLock;
use std::time::Instant;

use bt_direct::refine::unit_roundoff;
use bt_direct::{
    BandLu, BlockLu, FactorError, Factorization, SingularKind, Singularity, SparseLu, Thomas, TridiagonalLu, refine,
};
use bt_formats::detect::{line_partition, natural_partition};
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching, rcm, spectral};
use bt_formats::{
    Band, BlockTridiagonal, Bytes, Certificate, Csr, Error as InputError, HybridLayout, LinearOperator, Matrix,
    Monitor, Op, Outcome, Partition, Permutation, PhaseTimes, RealScalar, Scalar, SolveReport, Tridiagonal, zero,
};
use bt_iter::{Hbisa, Sweep};
use faer::{Mat, MatRef};

use crate::error::Error;
use crate::options::{Blocks, Method, Reorder, SolveOptions};
use crate::plan::{Plan, explain, plan};
use crate::reordered::{Reordered, Scaling, Transform};

/// The blocks a method worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary {
    /// Number of blocks.
    pub count: usize,
    /// Smallest block.
    pub min: usize,
    /// Largest block.
    pub max: usize,
}

impl BlockSummary {
    pub(crate) fn of(partition: &Partition) -> Self {
        let (min, max) = partition.min_max_size();
        Self { count: partition.n_blocks(), min, max }
    }
}

/// An answer and its report.
#[derive(Clone, Debug)]
pub struct Solution<T> {
    /// X, n × nrhs.
    pub x: Mat<T>,
    /// What was done, how it ended, how good x is.
    pub report: SolveReport,
    /// The reordering that was used.
    pub reorder: Reorder,
    /// The blocks that were used, for methods on blocks.
    pub blocks: Option<BlockSummary>,
    /// Reciprocal condition number of A in the 1-norm, direct methods only.
    pub rcond: Option<f64>,
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

/// Factors and what they were made from.
struct Factored<T: Scalar> {
    method: Method,
    reorder: Reorder,
    blocks: Option<BlockSummary>,
    factors: Box<dyn Factorization<T>>,
    matrix_bytes: usize,
    /// Estimated at the first solve: it depends on the factors alone.
    rcond: OnceLock<f64>,
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
    let b = check_rhs(a, b)?;
    if options.method.is_iterative() {
        return iterate(a, b.as_ref(), options, monitor);
    }
    let mut solver = Solver::new(a, options, monitor)?;
    let mut answer = solver.solve(b.as_ref())?;
    // What the notes say is about the answer returned, then about the attempts around it.
    let mut attempts = Vec::new();
    let mut tried = solver.factored.method;
    while options.method == Method::Auto && answer.report.outcome == Outcome::Inaccurate {
        let Some(next) = stronger(tried) else { break };
        tried = next;
        attempts.push(format!(
            "{} reached a backward error of {:.1e} only, above rounding level: {next} was tried",
            answer.report.method, answer.report.certificate.backward_error
        ));
        match solver.replace(next, monitor) {
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
        Method::Thomas => Some(Method::TridiagonalLu),
        Method::BlockLu => Some(Method::BandLu),
        Method::TridiagonalLu | Method::BandLu => Some(Method::SparseLu),
        _ => None,
    }
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
        // Entries that are stored but zero must not widen the structure.
        let a = if a.values().contains(&zero()) {
            let kept = a.without_zeros();
            notes.push(format!("{} stored entries are zero and were left out", a.nnz() - kept.nnz()));
            kept
        } else {
            a.clone()
        };
        if (0..a.nrows()).any(|i| a.get(i, i) == zero()) {
            matching(&a)?;
        }
        let mut times = PhaseTimes::default();
        // Given blocks are blocks of the given order.
        let reorder = match (&options.blocks, options.reorder) {
            (Blocks::Uniform(_) | Blocks::Sizes(_), Reorder::Auto) => Reorder::None,
            (_, reorder) => reorder,
        };
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
        let Factored { method, reorder, blocks, factors, matrix_bytes, rcond } = &self.factored;
        let mut x = b.clone();
        factors.solve_in_place(x.as_mut());
        let refined = refine(&self.a, &**factors, Op::Identity, b.as_ref(), &mut x, self.options.refinement);
        let solve_time = start.elapsed();
        let certificate = refined.certificate;
        let rcond = *rcond.get_or_init(|| factors.rcond());

        let mut notes = self.notes.clone();
        let mut warnings = Vec::new();
        if !matches!(self.options.method, Method::Auto) && self.options.method != *method {
            warnings.push(format!("{} could not factor the matrix: {method} solved the system", self.options.method));
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
        Ok(Solution { x, report, reorder: *reorder, blocks: *blocks, rcond: Some(rcond), warnings })
    }

    /// The factors, as solvers with A, Aᵀ, Aᴴ, determinant and condition estimate.
    pub fn factors(&self) -> &dyn Factorization<T> {
        &*self.factored.factors
    }

    /// Factors again by a stronger method, in an order that puts large entries on the diagonal.
    fn replace(&mut self, method: Method, monitor: &mut dyn Monitor) -> Result<(), Error> {
        let start = Instant::now();
        let reorder = match method {
            Method::TridiagonalLu => Reorder::None,
            Method::BandLu => self.factored.reorder,
            _ => Reorder::Matching,
        };
        let transform = transform(&self.a, method, reorder, &mut self.notes)?;
        self.factored = factor(&self.a, method, transform, &self.options.blocks, monitor)?;
        self.times.setup += start.elapsed();
        Ok(())
    }
}

/// Normwise backward error of a few units of roundoff.
fn at_rounding_level<T: Scalar>(c: &Certificate) -> bool {
    c.backward_error <= 32.0 * unit_roundoff::<T>()
}

/// # Errors
/// [`Error::Singular`] naming a column that no matching of rows and columns covers.
fn matching<T: Scalar>(a: &Csr<T>) -> Result<Matching<T::Real>, Error> {
    maximum_product_matching(a).map_err(|e| match e {
        MatchingError::Singular(deficiency) => Error::Singular(Singularity {
            kind: SingularKind::Structural,
            column: deficiency.unmatched_cols[0] as usize,
            block: None,
        }),
        MatchingError::Input(input) => Error::Input(input),
    })
}

/// The method asked for; where it meets a pivot that only it cannot use, the next stronger one in the same order.
fn named<T: Scalar>(
    a: &Csr<T>,
    options: &SolveOptions,
    transform: (Transform<T>, Reorder),
    notes: &mut Vec<String>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    match factor(a, options.method, transform.clone(), &options.blocks, monitor) {
        Err(Error::Factor(failure @ FactorError::Breakdown { .. })) => {
            let next = match options.method {
                Method::Thomas | Method::BlockLu => stronger(options.method),
                _ => None,
            };
            let Some(next) = next else { return Err(Error::Factor(failure)) };
            notes.push(format!("{failure}; handed over to {next}"));
            factor(a, next, transform, &options.blocks, monitor)
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
        let failure = match factor(a, method, transform, &options.blocks, monitor) {
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

/// The transform that `reorder` asks for, and which reordering that is when it was left to the method.
fn transform<T: Scalar>(
    a: &Csr<T>,
    method: Method,
    reorder: Reorder,
    notes: &mut Vec<String>,
) -> Result<(Transform<T>, Reorder), Error> {
    let n = a.nrows();
    let matched = || -> Result<Transform<T>, Error> {
        let m = matching(a)?;
        Ok(Transform {
            rows: m.rows,
            cols: Permutation::identity(n),
            scaling: Some(Scaling { rows: m.row_scale, cols: m.col_scale }),
        })
    };
    Ok(match reorder {
        Reorder::None => (Transform::identity(n), Reorder::None),
        Reorder::Rcm => (Transform::symmetric(rcm(a)?), Reorder::Rcm),
        Reorder::Spectral => (Transform::symmetric(spectral(a)?), Reorder::Spectral),
        Reorder::Matching => (matched()?, Reorder::Matching),
        Reorder::MatchingRcm => {
            let first = matched()?;
            let p = rcm(&first.apply(a))?;
            (first.then(&p), Reorder::MatchingRcm)
        }
        // A named method with the order left open: the cheaper of the given and the RCM order.
        Reorder::Auto => {
            let best = plan(a, Reorder::Auto, &Blocks::Detect)?;
            let chosen = best.candidates.iter().find(|c| c.method == method).map_or(Reorder::None, |c| c.reorder);
            match best.rcm {
                Some(p) if chosen == Reorder::Rcm => {
                    notes.push("the rcm order is cheaper than the given one".into());
                    (Transform::symmetric(p), Reorder::Rcm)
                }
                _ => (Transform::identity(n), Reorder::None),
            }
        }
    })
}

/// Factors A behind `transform` by one method.
fn factor<T: Scalar>(
    a: &Csr<T>,
    method: Method,
    (transform, reorder): (Transform<T>, Reorder),
    blocks: &Blocks,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let permuted;
    let identity = transform.is_identity();
    let work = if identity {
        a
    } else {
        permuted = transform.apply(a);
        &permuted
    };
    let made = factor_in_order(work, method, blocks, identity, monitor).map_err(|e| match e {
        // The place is told in the columns of A, not of its reordered form.
        Error::Singular(place) => {
            Error::Singular(Singularity { column: transform.cols.order()[place.column] as usize, ..place })
        }
        other => other,
    })?;
    let Factored { factors, .. } = made;
    let factors = if identity { factors } else { Box::new(Reordered::new(factors, transform, a.norm_one().to_f64())) };
    Ok(Factored { reorder, factors, ..made })
}

/// Factors the matrix as it stands.
fn factor_in_order<T: Scalar>(
    work: &Csr<T>,
    method: Method,
    blocks: &Blocks,
    identity: bool,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let mut summary = None;
    let (factors, matrix_bytes): (Box<dyn Factorization<T>>, usize) = match method {
        Method::Thomas => {
            let t = tridiagonal(work, method)?;
            (Box::new(Thomas::new(&t)?), t.bytes())
        }
        Method::TridiagonalLu => {
            let t = tridiagonal(work, method)?;
            (Box::new(TridiagonalLu::new(&t)?), t.bytes())
        }
        Method::BandLu => {
            let band = Band::from_csr(work)?;
            (Box::new(BandLu::with_monitor(&band, monitor)?), band.bytes())
        }
        Method::BlockLu => {
            let partition = partition(work, blocks, identity)?;
            summary = Some(BlockSummary::of(&partition));
            let hybrid = BlockTridiagonal::from_csr(work, partition, HybridLayout::default())?;
            (Box::new(BlockLu::with_monitor(&hybrid, monitor)?), hybrid.bytes())
        }
        _ => (Box::new(SparseLu::with_monitor(work, monitor)?), work.bytes()),
    };
    Ok(Factored { method, reorder: Reorder::None, blocks: summary, factors, matrix_bytes, rcond: OnceLock::new() })
}

fn tridiagonal<T: Scalar>(a: &Csr<T>, method: Method) -> Result<Tridiagonal<T>, Error> {
    Tridiagonal::from_csr(a).map_err(|e| match e {
        InputError::OutsideStructure { row, col, .. } => Error::Usage {
            message: format!(
                "{method} needs a tridiagonal matrix, but there is an entry at row {row}, column {col} (from 0); use band-lu or auto"
            ),
        },
        other => other.into(),
    })
}

/// The partition asked for. Given blocks are those of the matrix as given, so they exclude a reordering.
pub(crate) fn partition<T: Scalar>(a: &Csr<T>, blocks: &Blocks, identity: bool) -> Result<Partition, Error> {
    if *blocks != Blocks::Detect && !identity {
        return Err(Error::Usage {
            message: "given blocks belong to the given order; use them with --reorder none".into(),
        });
    }
    match blocks {
        Blocks::Detect => Ok(natural_partition(a)?),
        Blocks::Uniform(k) => Ok(Partition::uniform(a.nrows(), *k)?),
        Blocks::Sizes(sizes) => {
            let partition = Partition::from_sizes(sizes.iter().copied())?;
            if partition.n() != a.nrows() {
                return Err(InputError::DimensionMismatch {
                    what: "sum of the block sizes",
                    expected: a.nrows(),
                    found: partition.n(),
                }
                .into());
            }
            Ok(partition)
        }
    }
}

/// HBISA, column by column.
fn iterate<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    if (0..a.nrows()).any(|i| a.get(i, i) == zero()) {
        matching(a)?;
    }
    let sweep = if options.method == Method::Hbisa { Sweep::Jacobi } else { Sweep::GaussSeidel };
    let mut notes = Vec::new();
    let (transform, reorder) = match options.reorder {
        Reorder::Auto => (Transform::identity(a.nrows()), Reorder::None),
        other => transform(a, options.method, other, &mut notes)?,
    };
    // Block iterations do not feel a scaling (rows: (R·D)⁻¹R·N = D⁻¹N; columns: a similarity), but the norm of the
    // residual does: without it the tolerance is held against b − A·x itself.
    let transform = Transform { scaling: None, ..transform };
    let work = if transform.is_identity() { a.clone() } else { transform.apply(a) };
    // Lines first: their tridiagonal blocks are large and cheap, and large blocks make the iteration converge.
    let lines = if options.blocks == Blocks::Detect { line_partition(&work)? } else { None };
    let partition = match lines {
        Some(lines) => lines,
        None => partition(&work, &options.blocks, transform.is_identity())?,
    };
    let summary = BlockSummary::of(&partition);
    if summary.count == 1 && summary.max > 1 {
        notes.push("the whole matrix is one block: the iteration is a direct solve".into());
    }
    let hybrid = BlockTridiagonal::from_csr(&work, partition, HybridLayout::default())?;
    let reorder_time = start.elapsed();
    let mut method = Hbisa::new(&hybrid, sweep, options.stop_rule).map_err(|e| match e {
        // A itself may be regular.
        FactorError::Singular(Singularity { block: Some(block), .. }) if summary.count > 1 => FactorError::Breakdown {
            method: options.method.name(),
            reason: format!("diagonal block {block} (from 0) is singular, and every step solves with it"),
        },
        other => other,
    })?;
    let mut x = Mat::zeros(b.nrows(), b.ncols());
    let mut total: Option<SolveReport> = None;
    let mut y = vec![zero::<T>(); b.nrows()];
    let mut rhs = y.clone();
    for j in 0..b.ncols() {
        transform.gather(Op::Identity, b.col(j).try_as_col_major().expect("an owned matrix").as_slice(), &mut rhs);
        y.fill(zero());
        let report = method.solve(&rhs, &mut y, &options.stop, monitor);
        transform.scatter(
            Op::Identity,
            &y,
            x.col_mut(j).try_as_col_major_mut().expect("an owned matrix").as_slice_mut(),
        );
        let stopped = report.outcome == Outcome::Stopped;
        total = Some(match total {
            None => report,
            Some(before) => merge(before, report),
        });
        if stopped {
            break;
        }
    }
    let Some(mut report) = total else {
        return Err(Error::Usage { message: "there is no right-hand side".into() });
    };
    report.times.reorder = reorder_time;
    report.certificate = bt_formats::certify(a, Op::Identity, x.as_ref(), b);
    notes.append(&mut report.notes);
    report.notes = notes;
    Ok(Solution { x, report, reorder, blocks: Some(summary), rcond: None, warnings: Vec::new() })
}

/// The report of several columns: work added up, the first failure's outcome and notes.
fn merge(before: SolveReport, last: SolveReport) -> SolveReport {
    let (worse, better) = if before.outcome == Outcome::Converged && last.outcome != Outcome::Converged {
        (last, before)
    } else {
        (before, last)
    };
    SolveReport {
        iterations: worse.iterations.max(better.iterations),
        operator_applications: worse.operator_applications + better.operator_applications,
        preconditioner_applications: worse.preconditioner_applications + better.preconditioner_applications,
        times: PhaseTimes { solve: worse.times.solve + better.times.solve, ..worse.times },
        ..worse
    }
}
