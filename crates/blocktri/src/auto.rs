//! `Method::Auto` as it runs: the candidates of the plan in turn, and stronger methods until the answer is good.

use std::time::{Duration, Instant};

use bt_direct::FactorError;
use bt_formats::{Csr, Monitor, Note, Op, Outcome, Scalar};
use faer::MatRef;

use crate::candidate::Known;
use crate::direct::Direct;
use crate::error::Error;
use crate::factoring::check_precision;
use crate::gpu;
use crate::method::{Accuracy, Auto, Method, Precision};
use crate::options::{DeviceChoice, Reorder, SolveOptions};
use crate::plan::{Depth, Plan};
use crate::prepare::{order_asked, planned, prepared};
use crate::probe::{self, Probed};
use crate::reordered::Ordered;
use crate::solution::Solution;
use crate::solver::{Planned, Solver};
use crate::stronger::{is_last_word, stronger_step};
use crate::verdict::{at_rounding_level, too_large};

/// The plan with orders, made while an iteration waited for it.
struct Looked<T: Scalar> {
    plan: Plan,
    fixed: Option<Ordered<T>>,
    notes: Vec<Note>,
    took: Duration,
}

/// A·X = B by the method chosen, then by stronger ones until the answer is good.
pub(crate) fn solve<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
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
            let (plan, fixed) = planned(&kept, order_asked(options), options, plan.after_iterations(), &mut notes)?;
            let found = plan.direct().map(|(c, _)| [c.seconds, c.seconds_after_order()]);
            later = Some(Looked { plan, fixed, notes, took: start.elapsed() });
            Ok(found)
        };
        let probed = probe::iterated(&kept, b, &plan, &known, accuracy, options, &mut look, monitor)?;
        let mut ordering = Duration::ZERO;
        if let Some(mut looked) = later {
            notes.append(&mut looked.notes);
            (plan, fixed, ordering) = (looked.plan, looked.fixed, looked.took);
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
        let (depth, opened) = (plan.after_iterations(), plan.gpu);
        (plan, fixed) = planned(&kept, order_asked(options), options, depth, &mut notes)?;
        plan.gpu = opened;
    }
    notes.splice(0..0, plan.gpu.note(DeviceChoice::Cpu, &known));
    let mut solver = Solver::of_plan(Planned { a: kept, plan, fixed, notes, start }, factoring, options, monitor)?;
    let mut answer = solver.solve_checked(Op::Identity, b);
    // Factors in the precision of the matrix come before stronger methods.
    if factoring.precision == Precision::Single && answer.report.outcome == Outcome::Inaccurate {
        return Ok(answer);
    }
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
            Err(singular @ Error::Singular(_)) if is_last_word(next, a) => return Err(singular),
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
