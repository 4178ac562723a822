//! Iterations as candidates of `auto`: tried where they may be faster than every direct method, and given up as soon as they are not.
//!
//! The first steps are the probe. After n of them, which took the residual from r₀ to rₙ, the whole is predicted to take
//! n·ln(r₀/goal)/ln(r₀/rₙ) steps, by the least residual so far. It goes on while that is less than the steps which the fastest direct
//! method would pay for (see [`refining`](crate::refining)). Where orders are not made yet, it waits while they are, and goes on if no direct
//! method is faster then. So a probe that fails costs a quarter of that method at most, half of it where no residual was smaller than the
//! first, and one that goes on for too long as much as it. Steps are counted, not timed: the same system goes the same way on every run.

use std::cell::RefCell;

use bt_formats::{Csr, Monitor, Note, Scalar};
use faer::MatRef;

use crate::candidate::{Candidate, Known, choice};
use crate::error::Error;
use crate::gpu;
use crate::gpu::card::Gpu;
use crate::method::{Accuracy, Krylov, Method};
use crate::options::SolveOptions;
use crate::plan::Plan;
use crate::refining::{Budget, GivenUp, Run, UNLIMITED};
use crate::solution::Solution;
use crate::unit::Unit;

/// What became of it.
pub(crate) enum Probed<T: Scalar> {
    /// The system is solved to the accuracy asked, or the monitor stopped it.
    Solved(Box<Solution<T>>),
    /// They were given up, why, and the seconds that all steps of each were predicted to take by then.
    GivenUp { why: Vec<Note>, known: Known },
    /// A direct method is predicted to be faster.
    NotTried,
}

/// Makes the orders, and tells what the fastest direct method takes then: in all, and after its order.
pub(crate) type Look<'l> = dyn FnMut() -> Result<Option<[f64; 2]>, Error> + 'l;

/// Solves A·X = B by an iteration of the plan, the fastest first, if that may be faster than its direct methods: where seconds are `known`
/// by an earlier try, if these are fewer.
pub(crate) fn iterated<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    plan: &Plan,
    known: &Known,
    accuracy: Accuracy,
    options: &SolveOptions,
    look: &mut Look<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Probed<T>, Error> {
    let (mut reasons, mut found) = (Vec::new(), Known::new());
    for candidate in plan.possible() {
        let Method::Krylov(given) = &candidate.method else { continue };
        let of_it = known.iter().filter(|(device, _)| *device == candidate.device);
        let least = of_it.map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        match tried(a, b, plan, (candidate, given), least, accuracy, options, look, monitor)? {
            Probed::GivenUp { mut why, mut known } => {
                reasons.append(&mut why);
                found.append(&mut known);
            }
            Probed::NotTried => {}
            Probed::Solved(mut answer) => {
                answer.report.notes.splice(0..0, reasons);
                return Ok(Probed::Solved(answer));
            }
        }
    }
    Ok(if reasons.is_empty() { Probed::NotTried } else { Probed::GivenUp { why: reasons, known: found } })
}

/// The same by one of them, of which `known` seconds are known.
fn tried<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    plan: &Plan,
    (candidate, given): (&Candidate, &Krylov),
    known: f64,
    accuracy: Accuracy,
    options: &SolveOptions,
    look: &mut Look<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Probed<T>, Error> {
    let limit = plan.limit();
    let columns = b.ncols() as f64;
    let (setup, a_step) = plan.pace(a, candidate, given.method);
    let least = known.max(plan.least_limit(a, candidate, given.method, columns));
    if limit.is_some_and(|limit| least > limit) || !Unit::of(a, b).is_one() {
        return Ok(Probed::NotTried);
    }
    let affordable = |seconds: f64| (seconds / (columns * a_step)).min(UNLIMITED) as usize;
    let mut direct = plan.direct().map(|(c, _)| c.seconds).filter(|_| plan.before_orders.is_none());
    // Where a GPU may compute, what it would take is weighed between two tries.
    let may_look = plan.before_orders.is_some() && matches!(plan.gpu, Gpu::NotAsked);
    let mut further = |done: usize| {
        let found = look()?;
        direct = found.map(|[all, _]| all);
        Ok(found.map_or(UNLIMITED as usize, |[_, left]| done + affordable(left)))
    };
    let budget = Budget {
        steps: limit.map_or(UNLIMITED as usize, |limit| affordable(limit - setup)),
        further: may_look.then_some(&mut further),
    };
    let run = Run { a, given, accuracy, budget: RefCell::new(budget) };
    let mut notes = vec![choice(candidate, &plan.candidates)];
    let solved = match &plan.gpu {
        Gpu::Open(card, _) if candidate.device.is_gpu() => gpu::probed(&run, card, b, monitor, &mut notes)?,
        _ => run.solve(b, |notes| run.on_processor(options, notes), monitor, &mut notes)?,
    };
    match solved {
        Ok(solution) => Ok(Probed::Solved(Box::new(Solution { device: candidate.device, ..solution }))),
        Err(GivenUp { why, steps }) => {
            let on = if candidate.device.is_gpu() { format!("on {}, ", candidate.device) } else { String::new() };
            let why = format!("{on}{why}");
            let why = Note::IterationGivenUp {
                method: given.method.name(),
                preconditioner: given.precond.to_string(),
                why,
                direct_seconds: direct,
            };
            let seconds = setup + columns * steps * a_step;
            Ok(Probed::GivenUp { why: vec![why], known: vec![(candidate.device, seconds)] })
        }
    }
}
