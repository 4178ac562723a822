//! The iterative methods as the facade runs them: order, blocks or preconditioner, right-hand sides side by side or in turn.

use std::sync::Arc;
use std::time::Instant;

use bt_direct::{FactorError, Place, Singularity};
use bt_formats::detect::line_partition;
use bt_formats::{
    Bcsr, BlockTridiagonal, Breakdown, Certificate, Csr, Dia, Error as InputError, HybridLayout, LinearOperator,
    Matrix, Monitor, Note, Op, Outcome, Partition, PhaseTimes, Progress, RealScalar, Scalar, SolveReport,
    StopCriterion, norm2, zero,
};
use bt_iter::{Asymmetry, Hbisa, Lockstep, Preconditioner, QuasiBlockTridiagonal, StopRule};
use faer::{Mat, MatMut, MatRef};

use crate::error::Error;
use crate::factors::{BlockSummary, matching, partition, transform};
use crate::method::{BlockIteration, Krylov, KrylovMethod, Method, Precision};
use crate::options::{Blocks, Reorder, SolveOptions};
use crate::precondition::{Split, node_size, preconditioner, single};
use crate::preconditioners::Precond;
use crate::reduced;
use crate::reordered::Transform;
use crate::solve::Solution;
use crate::unit::Unit;
use crate::verdict::at_rounding_level;

/// The iterative methods.
#[inline(never)]
pub(crate) fn iterate<T: Scalar>(
    a: &Csr<T>,
    b: &Mat<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let b = b.as_ref();
    match &options.method {
        Method::Krylov(given) => krylov(a, b, given, options, monitor),
        Method::Blocks(given) => block_iteration(a, b, given, options, monitor),
        direct => unreachable!("{direct} does not iterate"),
    }
}

/// HBISA on blocks of the pattern.
fn block_iteration<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    given: &BlockIteration,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    if (0..a.nrows()).any(|i| a.get(i, i) == zero()) {
        matching(a)?;
    }
    let unit = Unit::of(a, b);
    let mut notes = Vec::new();
    let (mut work, transform, reorder) = ordered(a, options, &mut notes)?;
    unit.remove(work.values_mut());
    let stop = unit.criterion(&given.stop);
    let partition = blocks_of(&work, options, transform.is_identity())?;
    let summary = BlockSummary::of(&partition);
    if summary.count == 1 && summary.max > 1 {
        notes.push(Note::OneBlock);
    }
    let (hybrid, quasi);
    let reorder_time;
    let made = match BlockTridiagonal::from_csr(&work, partition.clone(), HybridLayout::default()) {
        Ok(blocks) => {
            hybrid = blocks;
            reorder_time = start.elapsed();
            Hbisa::new(&hybrid, given.sweep, given.rule)
        }
        // Given blocks that do not hold everything.
        Err(InputError::OutsideStructure { .. }) => {
            quasi = QuasiBlockTridiagonal::new(&work, partition, HybridLayout::default())?;
            reorder_time = start.elapsed();
            Hbisa::quasi(&quasi, given.sweep, given.rule)
        }
        Err(other) => return Err(other.into()),
    };
    let mut method = made.map_err(|e| match e {
        // A itself may be regular.
        FactorError::Singular(Singularity { block: Some(block), .. }) if summary.count > 1 => {
            let reason = format!("diagonal block {block} (from 0) is singular, and every step solves with it");
            let failure = FactorError::breakdown(options.method.name(), Place::Block(block), reason);
            transform.in_given_order(failure.into())
        }
        other => transform.in_given_order(other.into()),
    })?;
    let mut step = |rhs: &[T], y: &mut [T], monitor: &mut dyn Monitor| {
        Ok(unit.without(rhs, |rhs| method.solve(rhs, y, &stop, monitor)))
    };
    let (x, mut report) = columns(a, b, &transform, (given.rule, &given.stop), monitor, &mut step)?;
    report.times.reorder = reorder_time;
    let warnings = rows_left(&report);
    report.notes.splice(0..0, notes);
    report.notes.extend(warnings.iter().cloned());
    Ok(Solution { reorder, blocks: Some(summary), warnings, ..Solution::of(x, report) })
}

/// The blocks given or found. Lines first: their tridiagonal blocks are large and cheap, and large blocks make the iteration
/// converge.
pub(crate) fn blocks_of<T: Scalar>(
    work: &Csr<T>,
    options: &SolveOptions,
    natural_order: bool,
) -> Result<Partition, Error> {
    let lines = if options.blocks == Blocks::Detect { line_partition(work)? } else { None };
    match lines {
        Some(lines) => Ok(lines),
        None => partition(work, &options.blocks, natural_order),
    }
}

/// CG and its flexible form, BiCGSTAB, GMRES and FGMRES.
fn krylov<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    given: &Krylov,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    if given.precond == Precond::BlockReduced {
        return reduced::solve(a, b, given, options, monitor);
    }
    let start = Instant::now();
    let mut notes = Vec::new();
    if given.method.is_symmetric() {
        check_hermitian(a, given.method, &mut notes)?;
    }
    let unit = Unit::of(a, b);
    let (mut work, transform, reorder) = ordered(a, options, &mut notes)?;
    unit.remove(work.values_mut());
    let reorder_time = start.elapsed();
    let single = single(&work, given)?;
    let identity = transform.is_identity();
    let split =
        if single.is_none() { Split::of(&work, identity, given.precond, &options.blocks, &mut notes)? } else { None };
    // The format of the fastest products; without the memory for it A as it is will do.
    let diagonals = Dia::where_full(&work).unwrap_or_default();
    let whole = split.as_ref().filter(|split| split.outside == 0).map(|split| Arc::clone(&split.blocks));
    let blocks = whole.filter(|blocks| diagonals.is_none() && blocks.bytes() < work.bytes());
    let nodes = if diagonals.is_none() { by_nodes(&work, identity, given, options)? } else { None };
    if diagonals.is_none() && blocks.is_none() && nodes.is_none() {
        work.index_by_diagonals().unwrap_or_default();
    }
    let operator: &dyn Matrix<T> = match (&diagonals, &blocks, &nodes) {
        (Some(diagonals), ..) => diagonals,
        (None, Some(blocks), _) => &**blocks,
        (None, None, Some(nodes)) => nodes,
        (None, None, None) => &work,
    };
    notes.extend(nodes.as_ref().map(|nodes| Note::ProductsByBlocks { rows: nodes.block_size() }));
    let (mut preconditioner, precond) = preconditioner(&work, split, &single, identity, given, options, &mut notes)
        .map_err(|e| transform.in_given_order(e))?;
    let m = &mut *preconditioner;
    let setup = start.elapsed().saturating_sub(reorder_time);
    let (x, mut report) = side_by_side(a, operator, (&transform, unit), m, b, given, monitor, &mut notes)?;
    (report.times.reorder, report.times.setup) = (reorder_time, setup);
    report.bytes.matrix = work.bytes() + diagonals.as_ref().map_or(0, Matrix::bytes);
    report.bytes.matrix += nodes.as_ref().map_or(0, Matrix::bytes);
    // What the preconditioner shares is among its bytes.
    report.bytes.matrix += blocks.as_ref().filter(|b| Arc::strong_count(b) == 1).map_or(0, |b| b.bytes());
    let warnings = rows_left(&report);
    report.notes.splice(0..0, notes);
    report.notes.extend(warnings.iter().cloned());
    Ok(Solution { reorder, precond, warnings, ..Solution::of(x, report) })
}

/// A by the blocks of nodes that its preconditioner is made of, where they take no more bytes than compressed rows.
fn by_nodes<T: Scalar>(
    work: &Csr<T>,
    identity: bool,
    given: &Krylov,
    options: &SolveOptions,
) -> Result<Option<Bcsr<T>>, Error> {
    let Precond::BlockSsorAi { .. } = given.precond else { return Ok(None) };
    // The preconditioner has the notes.
    let size = node_size(work, identity, given.precond, &options.blocks, &mut Vec::new())?;
    Ok(Bcsr::from_csr(work, size).ok().filter(|blocks| size > 1 && blocks.bytes() <= work.bytes()))
}

/// The method asked for on `nrhs` columns, and a note where its basis is rounded.
pub(crate) fn lockstep<T: Scalar>(method: KrylovMethod, n: usize, nrhs: usize, notes: &mut Vec<Note>) -> Lockstep<T> {
    let mut is_rounded = |basis: Precision| {
        let rounded = basis == Precision::Single && size_of::<T::Single>() < size_of::<T>();
        if rounded {
            notes.push(Note::SingleBasis);
        }
        rounded
    };
    match method {
        KrylovMethod::Cg => Lockstep::cg(n, nrhs),
        KrylovMethod::Fcg => Lockstep::flexible_cg(n, nrhs),
        KrylovMethod::BiCgStab => Lockstep::bicgstab(n, nrhs),
        KrylovMethod::Gmres { restart, basis } if is_rounded(basis) => Lockstep::gmres_single_basis(n, nrhs, restart),
        KrylovMethod::Gmres { restart, .. } => Lockstep::gmres(n, nrhs, restart),
        KrylovMethod::Fgmres { restart, basis } if is_rounded(basis) => Lockstep::fgmres_single_basis(n, nrhs, restart),
        KrylovMethod::Fgmres { restart, .. } => Lockstep::fgmres(n, nrhs, restart),
    }
}

/// Columns side by side, at most.
const COLUMNS: usize = 16;
/// Bytes of their vectors, at most, where there is more than one.
const COLUMN_BYTES: usize = 1 << 30;

/// All right-hand sides from a zero start, in groups that share the products with A. Each is judged with the A of the caller.
#[allow(clippy::too_many_arguments)] // the system, the method, and what watches it
fn side_by_side<T: Scalar>(
    a: &Csr<T>,
    work: &dyn Matrix<T>,
    (transform, unit): (&Transform<T>, Unit),
    m: &mut dyn Preconditioner<T>,
    b: MatRef<'_, T>,
    given: &Krylov,
    monitor: &mut dyn Monitor,
    notes: &mut Vec<Note>,
) -> Result<(Mat<T>, SolveReport), Error> {
    let (n, nrhs) = (b.nrows(), b.ncols());
    let mut x = Mat::zeros(n, nrhs);
    let mut workspace = lockstep(given.method, n, 1, notes);
    let group = (COLUMN_BYTES / workspace.bytes().max(1)).clamp(1, COLUMNS).min(nrhs);
    if group > 1 {
        notes.push(Note::RightHandSidesTogether { columns: nrhs, at_a_time: group });
    }
    let mut total: Option<SolveReport> = None;
    let start = Instant::now();
    let stop = unit.criterion(&given.stop);
    for first in (0..nrhs).step_by(group.max(1)) {
        let width = group.min(nrhs - first);
        if width != workspace.nrhs() {
            workspace = lockstep(given.method, n, width, &mut Vec::new());
        }
        let (mut rhs, mut y) = (transform.gathered(b.subcols(first, width)), Mat::zeros(n, width));
        (0..width).for_each(|j| unit.remove(rhs.col_as_slice_mut(j)));
        let mut told = |progress| match progress {
            Progress::Column(j) => monitor.observe(Progress::Column(first + j)),
            other => monitor.observe(other),
        };
        let mut reports = workspace.solve(work, m, rhs.as_ref(), y.as_mut(), &stop, &mut told)?;
        transform.scatter_columns(&y, x.as_mut().subcols_mut(first, width));
        for (j, report) in reports.iter_mut().enumerate() {
            let (of, mut at) = (b.col(first + j), x.as_mut().subcols_mut(first + j, 1));
            let mut tighter = stop;
            for left in (0..=FURTHER).rev() {
                let claimed = report.outcome == Outcome::Converged;
                judge_column(a, at.as_mut(), of.as_mat(), (StopRule::Residual, &given.stop), report);
                if !claimed || left == 0 || report.outcome == Outcome::Converged {
                    break;
                }
                // The order of the terms, or a sharper evaluation, put it beyond the target: a step further.
                (tighter.rtol, tighter.atol) = (0.5 * tighter.rtol, 0.5 * tighter.atol);
                tighter.max_iters = stop.max_iters.saturating_sub(report.iterations);
                tighter.time_limit = stop.time_limit.map(|limit| limit.saturating_sub(start.elapsed()));
                let mut alone = lockstep(given.method, n, 1, &mut Vec::new());
                let more = alone.solve_one(work, m, rhs.col_as_slice(j), y.col_as_slice_mut(j), &tighter, &mut told)?;
                transform.scatter_columns(&y.as_ref().subcols(j, 1).to_owned(), at.as_mut());
                let (outcome, iterations) = (more.outcome, report.iterations + more.iterations);
                *report = SolveReport { outcome, iterations, ..merge(report.clone(), more) };
            }
        }
        let stopped = reports.iter().any(|report| report.outcome == Outcome::Stopped);
        total = total.into_iter().chain(reports).reduce(merge);
        if stopped {
            break;
        }
    }
    let mut report = total.ok_or_else(no_right_hand_side)?;
    (report.times.solve, report.bytes.workspace) = (start.elapsed(), workspace.bytes());
    Ok((x, report))
}

/// Runs that go on from a claim which the certificate does not bear out, at most.
const FURTHER: usize = 3;

/// The certificate of a column with the A of the caller, and the outcome that follows from it: the last word. Zero, where every
/// column starts, takes the place of an x that is worse.
fn judge_column<T: Scalar>(
    a: &Csr<T>,
    mut x: MatMut<'_, T>,
    b: MatRef<'_, T>,
    (rule, stop): (StopRule, &StopCriterion),
    report: &mut SolveReport,
) {
    let mut certificate = bt_formats::certify(a, Op::Identity, x.as_ref(), b);
    if !(certificate.relative_residual <= 1.0) {
        x.fill(zero());
        certificate = bt_formats::certify(a, Op::Identity, x.as_ref(), b);
        if rule == StopRule::Update && report.outcome == Outcome::Converged {
            report.outcome = Outcome::Breakdown(Breakdown::Diverged);
        }
    }
    report.certificate = certificate;
    if rule == StopRule::Residual {
        let reached = certificate.relative_residual;
        let norm_b = norm2(b.col(0).try_as_col_major().expect("contiguous columns").as_slice());
        let absolute = if stop.atol > 0.0 { stop.atol / norm_b } else { 0.0 };
        let attainable = if at_rounding_level::<T>(&certificate) { reached } else { 0.0 };
        report.outcome = bt_iter::judge(report.outcome, reached, stop.rtol.max(absolute), attainable);
    }
}

/// What an answer that counts as converged, by a norm over all rows, has left of rows in units far below the others.
fn rows_left(report: &SolveReport) -> Vec<Note> {
    /// A row whose residual is so much of its terms says nothing of its unknowns.
    const UNSOLVED: f64 = 0.1;
    let error = report.certificate.componentwise_backward_error;
    if report.outcome != Outcome::Converged || !(error > UNSOLVED) {
        return Vec::new();
    }
    vec![Note::RowNotSolved { componentwise_backward_error: error }]
}

/// Conjugate gradients take half of A for granted: what is off by more than rounding and printing explain is refused.
pub(crate) fn check_hermitian<T: Scalar>(a: &Csr<T>, method: KrylovMethod, notes: &mut Vec<Note>) -> Result<(), Error> {
    let Some(worst) = bt_iter::asymmetry(a) else { return Ok(()) };
    let epsilon = T::Real::EPSILON.to_f64();
    let Asymmetry { row, col, entry, mirror, relative } = worst;
    let pair = if row == col {
        format!("a({row}, {row}) = {} (from 0) is not real", number(entry))
    } else {
        format!("a({row}, {col}) = {} and a({col}, {row}) = {} (from 0)", number(entry), number(mirror))
    };
    if relative > epsilon.sqrt() {
        let why = format!("{method} needs a Hermitian matrix, but {pair}; use bicgstab, gmres, or auto");
        return Err(InputError::InvalidStructure { what: "matrix", why }.into());
    }
    if relative > 8.0 * epsilon {
        notes.push(Note::TakenAsHermitian { method: method.name(), relative, entries: pair });
    }
    Ok(())
}

/// A in the order asked for. Krylov methods and block iterations hardly feel a scaling, but the norm of the residual
/// does: without it the tolerance is held against b − A·x itself.
pub(crate) fn ordered<T: Scalar>(
    a: &Csr<T>,
    options: &SolveOptions,
    notes: &mut Vec<Note>,
) -> Result<(Csr<T>, Transform<T>, Reorder), Error> {
    let (transform, reorder) = match options.reorder {
        Reorder::Auto => (Transform::identity(a.nrows()), Reorder::None),
        other => transform(a, None, other, notes)?,
    };
    let transform = Transform { scaling: None, ..transform };
    let work = if transform.is_identity() { a.clone() } else { transform.apply(a) };
    Ok((work, transform, reorder))
}

/// A solve of one right-hand side from a zero start, in the order of the method.
pub(crate) type Step<'a, T> = dyn FnMut(&[T], &mut [T], &mut dyn Monitor) -> Result<SolveReport, Error> + 'a;

/// All right-hand sides, one after the other; the answer is certified with the A of the caller.
pub(crate) fn columns<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    transform: &Transform<T>,
    rule: (StopRule, &StopCriterion),
    monitor: &mut dyn Monitor,
    step: &mut Step<'_, T>,
) -> Result<(Mat<T>, SolveReport), Error> {
    let mut x = Mat::zeros(b.nrows(), b.ncols());
    let mut total: Option<SolveReport> = None;
    let mut y = vec![zero::<T>(); b.nrows()];
    let mut rhs = y.clone();
    for j in 0..b.ncols() {
        transform.gather(Op::Identity, b.col(j).try_as_col_major().expect("an owned matrix").as_slice(), &mut rhs);
        y.fill(zero());
        let mut report = step(&rhs, &mut y, monitor)?;
        transform.scatter(
            Op::Identity,
            &y,
            x.col_mut(j).try_as_col_major_mut().expect("an owned matrix").as_slice_mut(),
        );
        judge_column(a, x.as_mut().subcols_mut(j, 1), b.subcols(j, 1), rule, &mut report);
        let stopped = report.outcome == Outcome::Stopped;
        total = Some(match total {
            None => report,
            Some(before) => merge(before, report),
        });
        if stopped {
            break;
        }
    }
    Ok((x, total.ok_or_else(no_right_hand_side)?))
}

/// The same where the method takes all columns in one call, in its order, with a report for each that it has begun.
#[cfg(feature = "cuda")]
pub(crate) fn columns_together<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    transform: &Transform<T>,
    rule: (StopRule, &StopCriterion),
    solve: impl FnOnce(MatRef<'_, T>, MatMut<'_, T>) -> Result<Vec<SolveReport>, Error>,
) -> Result<(Mat<T>, SolveReport), Error> {
    let (mut x, mut y) = (Mat::zeros(b.nrows(), b.ncols()), Mat::zeros(b.nrows(), b.ncols()));
    let mut reports = solve(transform.gathered(b).as_ref(), y.as_mut())?;
    transform.scatter_columns(&y, x.as_mut());
    for (j, report) in reports.iter_mut().enumerate() {
        judge_column(a, x.as_mut().subcols_mut(j, 1), b.subcols(j, 1), rule, report);
    }
    Ok((x, reports.into_iter().reduce(merge).ok_or_else(no_right_hand_side)?))
}

pub(crate) fn no_right_hand_side() -> Error {
    Error::Usage { message: "there is no right-hand side".into() }
}

/// The report of several columns: work added up, the first failure's outcome and notes, the largest errors.
pub(crate) fn merge(before: SolveReport, last: SolveReport) -> SolveReport {
    let (worse, better) = if before.outcome == Outcome::Converged && last.outcome != Outcome::Converged {
        (last, before)
    } else {
        (before, last)
    };
    let (a, b) = (worse.certificate, better.certificate);
    let certificate = Certificate {
        relative_residual: a.relative_residual.max_nan(b.relative_residual),
        backward_error: a.backward_error.max_nan(b.backward_error),
        componentwise_backward_error: a.componentwise_backward_error.max_nan(b.componentwise_backward_error),
    };
    SolveReport {
        certificate,
        iterations: worse.iterations.max(better.iterations),
        operator_applications: worse.operator_applications + better.operator_applications,
        preconditioner_applications: worse.preconditioner_applications + better.preconditioner_applications,
        times: PhaseTimes { solve: worse.times.solve + better.times.solve, ..worse.times },
        ..worse
    }
}

/// A number at any end of the range, in few characters.
fn number<T: Scalar>(v: T) -> String {
    let (re, im) = (v.re().to_f64(), v.im().to_f64());
    if im == 0.0 { format!("{re:e}") } else { format!("{re:e}{im:+e}i") }
}
