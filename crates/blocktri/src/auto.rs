//! `Method::Auto` as it runs: the candidates of the plan in turn, and stronger methods until the answer is good.

use std::time::{Duration, Instant};

use bt_direct::{FactorError, SingularKind, Singularity};
use bt_formats::{Csr, LinearOperator, Monitor, Note, Op, Outcome, Scalar, memory};
use faer::Mat;

use crate::direct::Direct;
use crate::error::Error;
use crate::factors::{Factored, check_precision, factor, transform};
use crate::gpu;
use crate::method::{Accuracy, Auto, Method, Precision};
use crate::options::{Blocks, DeviceChoice, Reorder, SolveOptions};
use crate::plan::{Candidate, Depth, Found, Plan, choice, plan};
use crate::probe::{self, Known, Probed};
use crate::reordered::Transform;
use crate::solve::{Solution, again_in_working_precision};
use crate::solver::{Planned, Solver, order_asked, prepared};
use crate::verdict::{DOUBLED_ROWS, at_rounding_level, is_soon_exact, proves_singular, too_large};

/// A·X = B by the method chosen, then by stronger ones until the answer is good.
pub(crate) fn solve<T: Scalar>(
    a: &Csr<T>,
    b: &Mat<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let Method::Auto(Auto { factoring, accuracy }) = options.method else {
        unreachable!("{} was asked for by name", options.method)
    };
    check_precision::<T>(&options.method)?;
    let start = Instant::now();
    let mut notes = Vec::new();
    let kept = prepared(a, &mut notes)?;
    let (mut plan, mut fixed) = planned(&kept, order_asked(options), options, Depth::UntilIterations, &mut notes)?;
    let mut known = Known::new();
    loop {
        gpu::weigh(&kept, options.device, &mut plan, &known);
        let mut later = None;
        let mut look = || {
            let (start, mut notes) = (Instant::now(), Vec::new());
            let depth = Depth::AfterIterations(plan.rcm.clone());
            let (plan, fixed) = planned(&kept, order_asked(options), options, depth, &mut notes)?;
            let found = plan.direct().map(|(c, _)| [c.seconds, c.seconds_after_order()]);
            later = Some((plan, fixed, notes, start.elapsed()));
            Ok(found)
        };
        let probed = probe::iterated(&kept, b.as_ref(), &plan, &known, accuracy, options, &mut look, monitor)?;
        let mut ordering = Duration::ZERO;
        if let Some((new, given, mut said, took)) = later {
            (plan, fixed, ordering) = (new, given, took);
            notes.append(&mut said);
        }
        match probed {
            Probed::Solved(mut answer) => {
                let times = &mut answer.report.times;
                times.solve = times.solve.saturating_sub(ordering);
                times.reorder = start.elapsed().saturating_sub(times.setup + times.solve);
                answer.report.notes.splice(0..0, plan.gpu.note(answer.device, &known).into_iter().chain(notes));
                answer.candidates = plan.candidates;
                return Ok(*answer);
            }
            Probed::GivenUp { mut why, known: mut found } => {
                notes.append(&mut why);
                known.append(&mut found);
            }
            Probed::NotTried => {}
        }
        if plan.before_orders.is_none() {
            break;
        }
        let depth = Depth::AfterIterations(plan.rcm.take());
        let opened = plan.gpu;
        (plan, fixed) = planned(&kept, order_asked(options), options, depth, &mut notes)?;
        plan.gpu = opened;
    }
    notes.splice(0..0, plan.gpu.note(DeviceChoice::Cpu, &known));
    let mut solver = Solver::of_plan(Planned { a: kept, plan, fixed, notes, start }, factoring, options, monitor)?;
    let first = solver.solve_checked(Op::Identity, b);
    if factoring.precision == Precision::Single && first.report.outcome == Outcome::Inaccurate {
        drop(solver);
        return again_in_working_precision(first, a, b, options, monitor);
    }
    let mut answer = first;
    // What the notes say is about the answer returned, then about the attempts around it.
    let mut attempts = Vec::new();
    let mut tried = (solver.factored.method, solver.factored.reorder);
    while answer.report.outcome == Outcome::Inaccurate {
        let Some(next) = stronger_step(tried, a) else { break };
        tried = next;
        let (method, reorder) = next;
        attempts.push(Note::StrongerTried {
            reached_by: answer.report.method,
            reached: too_large::<T>(&answer.report.certificate),
            tried: method.name(),
        });
        match solver.replace(method, reorder, monitor) {
            Ok(()) => {}
            Err(stopped @ Error::Factor(FactorError::Stopped)) => return Err(stopped),
            // Singular for the strongest pivoting: the weak answer is worth nothing.
            Err(singular @ Error::Singular(_)) if stronger_step(next, a).is_none() => return Err(singular),
            Err(failed) => {
                attempts.push(Note::StrongerFailed { method: method.name(), why: failed.to_string() });
                continue;
            }
        }
        let candidate = solver.solve_checked(Op::Identity, b);
        if is_better(&candidate, &answer) {
            answer = candidate;
        } else {
            let backward_error = candidate.report.certificate.backward_error;
            attempts.push(Note::AnswerKept { tried: method.name(), backward_error, kept: answer.report.method });
        }
    }
    if solver.is_doubtful() {
        // Rounding may have made it so: twice the precision tells, and has the digits.
        let found = answer.report.method;
        let mut next = Some((Direct::DenseLuDoubled, Reorder::Matching));
        while let Some((method, reorder)) = next {
            if solver.replace(method, reorder, monitor).is_ok() {
                let candidate = solver.solve_checked(Op::Identity, b);
                if candidate.report.outcome == Outcome::Converged {
                    answer = candidate;
                    attempts.push(Note::NearlySingular { found_by: found, factored_by: method.name() });
                    break;
                }
            }
            next = stronger_step((method, reorder), a);
        }
    }
    if let Accuracy::Residual(rtol) = accuracy
        && answer.report.outcome == Outcome::Inaccurate
        && answer.report.certificate.relative_residual <= rtol
    {
        answer.report.outcome = Outcome::Converged;
    }
    answer.report.notes.append(&mut attempts);
    Ok(answer)
}

/// Closer to an answer at rounding level, first in the norm, then row by row.
fn is_better<T: Scalar>(new: &Solution<T>, old: &Solution<T>) -> bool {
    if new.report.outcome != old.report.outcome {
        return new.report.outcome == Outcome::Converged;
    }
    let (new, old) = (new.report.certificate, old.report.certificate);
    if at_rounding_level::<T>(&new) && at_rounding_level::<T>(&old) {
        new.componentwise_backward_error < old.componentwise_backward_error
    } else {
        new.backward_error < old.backward_error
    }
}

/// The step after `tried` on the way of `auto` with n rows: at its end sparse LU, in its own order and then with the rows
/// matched, and for small systems dense LU in twice the precision, then exactly.
fn stronger_step<T: Scalar>((method, reorder): (Direct, Reorder), a: &Csr<T>) -> Option<(Direct, Reorder)> {
    match (method.row().stronger, method, reorder) {
        (Some(next @ Direct::TridiagonalLu), ..) => Some((next, Reorder::None)),
        (Some(Direct::SparseLu), ..) => Some((Direct::SparseLu, Reorder::None)),
        (Some(next), _, order) => Some((next, order)),
        (None, Direct::SparseLu, Reorder::Matching) if a.nrows() <= DOUBLED_ROWS => {
            Some((Direct::DenseLuDoubled, Reorder::Matching))
        }
        (None, Direct::SparseLu, Reorder::Matching) => None,
        (None, Direct::SparseLu, _) => Some((Direct::SparseLu, Reorder::Matching)),
        (None, Direct::DenseLuDoubled, _) if is_soon_exact(a) => Some((Direct::ExactLu, Reorder::None)),
        (None, ..) => None,
    }
}

/// What makes the matrix of a method of A, and the order that it stands for.
pub(crate) type Ordered<T> = (Transform<T>, Reorder);

/// What `auto` may do, in the order given where one is, which comes with the plan.
pub(crate) fn planned<T: Scalar>(
    a: &Csr<T>,
    reorder: Reorder,
    options: &SolveOptions,
    depth: Depth,
    notes: &mut Vec<Note>,
) -> Result<(Plan, Option<Ordered<T>>), Error> {
    if let Reorder::None | Reorder::Rcm | Reorder::Auto = reorder {
        return Ok((plan(a, reorder, &options.blocks, depth)?, None));
    }
    let (transform, given) = transform(a, None, reorder, notes)?;
    let mut plan = plan(&transform.apply(a), Reorder::None, &Blocks::Detect, depth)?;
    plan.candidates.iter_mut().for_each(|c| c.reorder = given);
    Ok((plan, Some((transform, given))))
}

/// What follows a method that broke down. Where that is block LU, which found no pivot inside a block, the fastest candidate that looks for
/// them further: the stronger method, a band in the same order, may be far from it. Otherwise the stronger method.
fn next_step<T: Scalar>(failed: (Direct, Reorder), candidates: &[Candidate], a: &Csr<T>) -> Option<(Direct, Reorder)> {
    let looks_further =
        |method: &Direct| matches!(method, Direct::BandLu | Direct::SparseLdl | Direct::SparseLu | Direct::DenseLu);
    let mut possible = candidates.iter().filter(|c| failed.0 == Direct::BlockLu && c.refused.is_none());
    let fastest = possible.find_map(|c| Some((c.direct().filter(looks_further)?, c.reorder)));
    fastest.or_else(|| stronger_step(failed, a))
}

/// The candidates of a plan in turn, then stronger methods, until one factors.
pub(crate) fn automatic<T: Scalar>(
    a: &Csr<T>,
    precision: Precision,
    options: &SolveOptions,
    plan: &Plan,
    mut fixed: Option<Ordered<T>>,
    notes: &mut Vec<Note>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let Some((chosen, mut method)) = plan.direct() else {
        return Err(does_not_fit(&plan.candidates));
    };
    notes.push(choice(chosen, &plan.candidates));
    let mut reorder = chosen.reorder;
    let (mut order, mut found) = (plan.rcm.as_ref(), plan.found.clone());
    // Where elimination with pivoting over all rows found no pivot, before the strongest method has had its say.
    let mut suspected: Option<Singularity> = None;
    loop {
        let mut transform = match (&fixed, reorder, order.take()) {
            (Some(given), ..) => given.clone(),
            (None, Reorder::Rcm, Some(p)) => (Transform::symmetric(p.clone()), Reorder::Rcm),
            (None, reorder, _) => transform(a, Some(method), reorder, notes)?,
        };
        if fixed.is_some() || reorder == Reorder::None {
            transform.0.found = found.clone();
        }
        let failure = match factor(a, method, transform, precision, options, monitor) {
            Ok(factored) => match suspected.filter(|_| proves_singular(a, &factored)) {
                None => return Ok(factored),
                Some(place) if stronger_step((method, reorder), a).is_none() => {
                    return Err(Error::Singular(place));
                }
                Some(_) => format!("{method} finds the matrix singular to working precision"),
            },
            Err(Error::Factor(e @ (FactorError::Breakdown { .. } | FactorError::Failed { .. }))) => e.to_string(),
            Err(Error::Singular(place)) => {
                // The pattern has a matching: where scaling broke it, entries have left the range.
                if place.kind == SingularKind::Numerical {
                    suspected = suspected.or(Some(place));
                }
                format!("{method} finds no pivot in column {} (from 0)", place.column)
            }
            // Numbers that a scaling took out of the range leave another structure.
            Err(Error::Usage { message }) => message,
            Err(other) => return Err(other),
        };
        let Some((next, next_order)) = next_step((method, reorder), &plan.candidates, a) else {
            return Err(match suspected {
                Some(place) => Error::Singular(place),
                None => Error::Factor(FactorError::Failed { method: method.name(), reason: failure }),
            });
        };
        notes.push(Note::HandedOver { to: next.name(), why: failure });
        (method, reorder) = (next, next_order);
        // As it is given, where it had another order: what is known of that says nothing here.
        if method == Direct::SparseLu && fixed.take().is_some() {
            found = Found::default();
        }
    }
}

/// No method fits: how much each would take, the least first.
fn does_not_fit(candidates: &[Candidate]) -> Error {
    let mut candidates: Vec<_> = candidates.iter().filter(|c| c.device == DeviceChoice::Cpu).collect();
    candidates.sort_by_key(|c| c.bytes);
    let needs = |c: &&Candidate| format!("{} needs {}", c.method, memory::in_words(c.bytes));
    let listed: Vec<_> = candidates.iter().map(needs).collect();
    let why = candidates.iter().find_map(|c| c.refused.as_deref()).unwrap_or("no direct method is among them");
    Error::Usage { message: format!("no method fits memory, {why}: {}; allow more with --memory", listed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Kernel, Work};

    fn candidate(method: Direct, reorder: Reorder, refused: Option<&str>) -> Candidate {
        let work = Work { kernel: Kernel::Band, steps: 1.0, flops: 1.0, moved: 0.0, ordered: 0.0, analysed: 0.0 };
        let (structure, refused) = (String::new(), refused.map(str::to_owned));
        let device = DeviceChoice::Cpu;
        Candidate { method: method.into(), device, reorder, work, seconds: 1.0, bytes: 1, structure, refused }
    }

    #[test]
    fn the_fastest_that_looks_for_pivots_further_follows_block_lu() {
        let a = Csr::<f64>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        let list = |refused| {
            [
                candidate(Direct::BlockCholesky, Reorder::Rcm, None),
                candidate(Direct::BlockLu, Reorder::Rcm, None),
                candidate(Direct::SparseLu, Reorder::None, refused),
                candidate(Direct::BandLu, Reorder::Rcm, None),
            ]
        };
        let next = |method, reorder, refused| next_step((method, reorder), &list(refused), &a);
        assert_eq!(next(Direct::BlockLu, Reorder::Rcm, None), Some((Direct::SparseLu, Reorder::None)));
        assert_eq!(next(Direct::BlockLu, Reorder::Rcm, Some("too large")), Some((Direct::BandLu, Reorder::Rcm)));
        // Others are followed by the stronger method, listed or not.
        assert_eq!(next(Direct::BlockCholesky, Reorder::Rcm, None), Some((Direct::BlockLu, Reorder::Rcm)));
        assert_eq!(next(Direct::BandLu, Reorder::Rcm, None), Some((Direct::SparseLu, Reorder::None)));
        let others =
            [candidate(Direct::Components, Reorder::None, None), candidate(Direct::DenseLu, Reorder::None, None)];
        for method in [Direct::Components, Direct::SparseLdl] {
            assert_eq!(next_step((method, Reorder::None), &others, &a), Some((Direct::SparseLu, Reorder::None)));
        }
    }
}
