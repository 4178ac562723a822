//! The iterative methods as the facade runs them: order, blocks or preconditioner, right-hand sides side by side or in turn.

use std::sync::Arc;
use std::time::Instant;

use bt_direct::{FactorError, Place, Singularity};
use bt_formats::{
    Bcsr, BlockTridiagonal, Csr, Dia, Error as InputError, HybridLayout, LinearOperator, Matrix, Monitor, Note,
    Outcome, Progress, Scalar, SolveReport, zero,
};
use bt_iter::{Hbisa, Preconditioner, QuasiBlockTridiagonal, StopRule};
use faer::{Mat, MatRef};

use crate::check::check_hermitian_for;
use crate::columns::{columns, judge_column, lockstep, merge, no_right_hand_side, ordered};
use crate::error::Error;
use crate::method::{BlockIteration, Krylov, Method};
use crate::options::SolveOptions;
use crate::partition::{BlockSummary, blocks_of};
use crate::precondition::{Split, node_size, preconditioner, single};
use crate::preconditioners::Precond;
use crate::prepare::matching;
use crate::reduced;
use crate::reordered::Transform;
use crate::solution::Solution;
use crate::unit::Unit;

/// The iterative methods.
#[inline(never)]
pub(crate) fn iterate<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
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
            Hbisa::with_options(&hybrid, given.sweep, given.rule)
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
    Ok(Solution { reorder, blocks: Some(summary), warnings, ..Solution::of(x, report, given.clone()) })
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
        check_hermitian_for(a, given.method, &mut notes)?;
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
    Ok(Solution { reorder, precond, warnings, ..Solution::of(x, report, given.clone()) })
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
