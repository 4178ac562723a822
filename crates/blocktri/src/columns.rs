//! Right-hand sides as iterations take them: in order, side by side or in turn, each judged with the A of the caller.

use bt_formats::{
    Breakdown, Certificate, Csr, LinearOperator, Monitor, Note, Op, Outcome, PhaseTimes, RealScalar, Scalar,
    SolveReport, StopCriterion, norm2, zero,
};
use bt_iter::{Lockstep, StopRule};
use faer::{Mat, MatMut, MatRef};

use crate::error::Error;
use crate::method::{KrylovMethod, Precision};
use crate::options::{Reorder, SolveOptions};
use crate::prepare::transform;
use crate::reordered::Transform;
use crate::verdict::at_rounding_level;

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

/// The certificate of a column with the A of the caller, and the outcome that follows from it: the last word. Zero, where every
/// column starts, takes the place of an x that is worse.
pub(crate) fn judge_column<T: Scalar>(
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
