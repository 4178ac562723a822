//! Iterations as candidates of `auto`: tried where they may be faster than every direct method, and given up as soon as they are not.
//!
//! The first steps are the probe. After n of them, which took the residual from r₀ to rₙ, the whole is predicted to take
//! n·ln(r₀/goal)/ln(r₀/rₙ) steps, by the least residual so far. It goes on while that is less than the steps which the fastest direct
//! method would pay for, so that a probe that fails costs a quarter of that method at most, half of it where no residual was smaller than
//! the first, and one that goes on for too long as much as it. Steps are counted, not
//! timed: the same system goes the same way on every run.
//!
//! An answer at rounding level is reached by iterative refinement around the iteration, x ← x + d with A·d ≈ b − A·x, the residual in
//! twice the precision (see [`bt_direct::refine()`]).

use std::ops::ControlFlow;
use std::time::Instant;

use bt_direct::refine::unit_roundoff;
use bt_formats::{
    Bytes, Certificate, Csr, Dia, Matrix, Monitor, Note, Op, Outcome, PhaseTimes, Progress, Scalar, SolveReport,
    StopCriterion, certify, certify_with_residual, zero,
};
use bt_iter::{Lockstep, Preconditioner};
use faer::{Mat, MatRef};

use crate::cost::Machine;
use crate::error::Error;
use crate::iterate::lockstep;
use crate::method::{Accuracy, Krylov, Method};
use crate::options::SolveOptions;
use crate::plan::{Candidate, GAIN, LEAST_STEPS, Plan, choice};
use crate::precondition::preconditioner;
use crate::solve::Solution;
use crate::unit::Unit;
use crate::verdict::{judge, too_large};

/// What became of it.
pub(crate) enum Probed<T: Scalar> {
    /// The system is solved to the accuracy asked, or the monitor stopped it.
    Solved(Box<Solution<T>>),
    /// It was given up, why, and the seconds that all its steps were predicted to take by then.
    GivenUp { why: Note, seconds: f64 },
    /// A direct method is predicted to be faster.
    NotTried,
}

/// Corrections x ← x + d, at most.
const CORRECTIONS: usize = 12;

/// Steps of an iteration where no direct method is possible, at most.
const UNLIMITED: f64 = 20_000.0;

/// Solves A·X = B by the fastest iteration of the plan, if that may be faster than its direct methods: where `known` seconds were
/// predicted by an earlier try, if these are fewer.
pub(crate) fn iterated<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    plan: &Plan,
    known: f64,
    accuracy: Accuracy,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Probed<T>, Error> {
    let iterative = |c: &&Candidate| matches!(c.method, Method::Krylov(_));
    let Some(candidate) = plan.possible().find(iterative) else { return Ok(Probed::NotTried) };
    let Method::Krylov(given) = &candidate.method else { return Ok(Probed::NotTried) };
    let direct = plan.direct().map(|(c, _)| c.seconds).into_iter().chain(plan.before_orders).reduce(f64::min);
    let columns = b.ncols() as f64;
    // Before anything is ordered the plan has made sure of the gain.
    let gain = if plan.before_orders.is_some() { 1.0 } else { GAIN };
    let least = known.max(gain * columns * candidate.seconds);
    if direct.is_some_and(|direct| least > direct) || !Unit::of(a, b).is_one() {
        return Ok(Probed::NotTried);
    }
    let a_step = Machine::here().rate(candidate.work.kernel).step * candidate.work.steps / LEAST_STEPS;
    let affordable = direct.map_or(UNLIMITED, |direct| direct / (columns * a_step)).min(UNLIMITED);
    let run = Run { a, given, accuracy, affordable: affordable as usize };
    let mut notes = vec![choice(candidate, &plan.candidates)];
    match run.solve(b, options, monitor, &mut notes)? {
        Ok(solution) => Ok(Probed::Solved(Box::new(solution))),
        Err(GivenUp { why, steps }) => {
            let why = Note::IterationGivenUp {
                method: given.method.name(),
                preconditioner: given.precond.to_string(),
                why,
                direct_seconds: direct,
            };
            Ok(Probed::GivenUp { why, seconds: columns * steps * a_step })
        }
    }
}

/// An iteration under way.
struct Run<'a, T: Scalar> {
    a: &'a Csr<T>,
    given: &'a Krylov,
    accuracy: Accuracy,
    /// Steps that the fastest direct method would pay for.
    affordable: usize,
}

/// How one column ended.
enum End {
    Good,
    Stopped,
    GivenUp(GivenUp),
}

/// Why an iteration was given up, and how many steps it was predicted to take.
struct GivenUp {
    why: String,
    steps: f64,
}

impl<T: Scalar> Run<'_, T> {
    /// The solution, or why there is none.
    fn solve(
        &self,
        b: MatRef<'_, T>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
        notes: &mut Vec<Note>,
    ) -> Result<Result<Solution<T>, GivenUp>, Error> {
        let start = Instant::now();
        // The format of the fastest products; without the memory for it A as it is will do.
        let diagonals = Dia::where_full(self.a).unwrap_or_default();
        let mut indexed;
        let operator: &dyn Matrix<T> = if let Some(diagonals) = &diagonals {
            diagonals
        } else {
            indexed = self.a.clone();
            indexed.index_by_diagonals().unwrap_or_default();
            &indexed
        };
        let mut m = match preconditioner(self.a, None, &None, true, self.given, options, notes) {
            Ok((m, _)) => m,
            Err(why) => return Ok(Err(GivenUp { why: why.to_string(), steps: f64::INFINITY })),
        };
        let setup = start.elapsed();
        let solving = Instant::now();
        let mut x = Mat::zeros(b.nrows(), b.ncols());
        let mut workspace = lockstep(self.given.method, b.nrows(), 1, notes);
        let mut done = Done::default();
        let mut outcome = Outcome::Converged;
        for j in 0..b.ncols() {
            let mut told = |progress| match progress {
                Progress::Iteration { .. } if b.ncols() > 1 => bt_formats::observe_column(monitor, j, progress),
                other => monitor.observe(other),
            };
            let column = x.as_mut().subcols_mut(j, 1);
            match self.column(operator, &mut *m, &mut workspace, b.subcols(j, 1), column, &mut done, &mut told)? {
                End::Good => {}
                End::Stopped => {
                    outcome = Outcome::Stopped;
                    break;
                }
                End::GivenUp(why) => return Ok(Err(why)),
            }
        }
        notes.push(Note::RefinedAround { corrections: done.corrections, method: self.given.method.name() });
        notes.push(Note::NoCondition);
        let report = SolveReport {
            method: self.given.method.name(),
            outcome,
            iterations: done.steps,
            recurrence_residual: None,
            certificate: certify(self.a, Op::Identity, x.as_ref(), b),
            operator_applications: done.products,
            preconditioner_applications: done.preconditioned,
            times: PhaseTimes { setup, solve: solving.elapsed(), ..PhaseTimes::default() },
            bytes: Bytes {
                matrix: self.a.bytes() + diagonals.as_ref().map_or(0, Matrix::bytes),
                factors: m.bytes(),
                workspace: workspace.bytes(),
            },
            notes: std::mem::take(notes),
        };
        drop(m);
        Ok(Ok(Solution { precond: self.given.precond, ..Solution::of(x, report) }))
    }

    /// One right-hand side, from x = 0.
    #[allow(clippy::too_many_arguments)] // the system, the method, and what watches it
    fn column(
        &self,
        operator: &dyn Matrix<T>,
        m: &mut dyn Preconditioner<T>,
        workspace: &mut Lockstep<T>,
        b: MatRef<'_, T>,
        mut x: faer::MatMut<'_, T>,
        done: &mut Done,
        monitor: &mut dyn Monitor,
    ) -> Result<End, Error> {
        let n = b.nrows();
        let goal = match self.accuracy {
            Accuracy::Rounding => 8.0 * unit_roundoff::<T>(),
            Accuracy::Residual(rtol) => rtol,
        };
        // r ← b − A·x
        let mut r = b.to_owned();
        let mut certificate = certify_with_residual(self.a, Op::Identity, x.as_ref(), b, r.as_mut());
        let before = done.steps;
        for _ in 0..CORRECTIONS {
            if self.is_good(x.as_ref(), b, &certificate) {
                return Ok(End::Good);
            }
            let reached = self.measure(&certificate);
            let spent = done.steps - before;
            let left = self.affordable.saturating_sub(spent);
            // A residual of 10⁻¹² of where it began is what a recurrence keeps to.
            let target = (goal / reached).clamp(1e-12, 1e-2);
            let stop = StopCriterion { rtol: target, max_iters: left, ..StopCriterion::default() };
            let decades = (reached / goal).max(1.0).ln();
            let (mut stopped, mut hopeless) = (false, None);
            // Residuals of BiCGSTAB jump: the least so far tells how far it is.
            let mut least = f64::INFINITY;
            let mut watch = |progress: Progress| {
                let Progress::Iteration { index, residual } = progress else { return ControlFlow::Continue(()) };
                if monitor
                    .observe(Progress::Iteration { index: spent + index, residual: residual * reached })
                    .is_break()
                {
                    stopped = true;
                    return ControlFlow::Break(());
                }
                least = least.min(residual);
                let predicted = if least < 1.0 { index as f64 * decades / -least.ln() } else { f64::INFINITY };
                let share = if predicted.is_finite() { 4 } else { 2 };
                let tried = index >= LEAST_STEPS as usize && share * (spent + index) >= self.affordable;
                if tried && spent as f64 + predicted > self.affordable as f64 {
                    hopeless = Some(predicted);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            };
            // A·d ≈ r;  x ← x + d
            let mut d = vec![zero::<T>(); n];
            let report = workspace.solve_one(operator, m, r.col_as_slice(0), &mut d, &stop, &mut watch)?;
            done.steps += report.iterations;
            done.products += report.operator_applications + 1;
            done.preconditioned += report.preconditioner_applications;
            done.corrections += 1;
            for (x, d) in x.as_mut().col_mut(0).iter_mut().zip(&d) {
                *x += *d;
            }
            let new = certify_with_residual(self.a, Op::Identity, x.as_ref(), b, r.as_mut());
            if stopped {
                return Ok(End::Stopped);
            }
            if let Some(predicted) = hopeless.filter(|_| !self.is_good(x.as_ref(), b, &new)) {
                let steps = if predicted.is_finite() { format!("{predicted:.0} more steps") } else { "no end".into() };
                let why = format!("after {} steps {steps} are predicted", done.steps - before);
                let steps = (done.steps - before) as f64 + predicted;
                return Ok(End::GivenUp(GivenUp { why, steps }));
            }
            let stagnated = !(self.measure(&new) <= 0.5 * reached)
                && !(new.componentwise_backward_error <= 0.5 * certificate.componentwise_backward_error);
            certificate = new;
            if stagnated && !self.is_good(x.as_ref(), b, &certificate) {
                break;
            }
        }
        if self.is_good(x.as_ref(), b, &certificate) {
            return Ok(End::Good);
        }
        let why = format!("it reached {} after {} steps", too_large::<T>(&certificate), done.steps - before);
        Ok(End::GivenUp(GivenUp { why, steps: f64::INFINITY }))
    }

    /// The figure that the goal is for.
    fn measure(&self, c: &Certificate) -> f64 {
        match self.accuracy {
            Accuracy::Rounding => c.backward_error,
            Accuracy::Residual(_) => c.relative_residual,
        }
    }

    fn is_good(&self, x: MatRef<'_, T>, b: MatRef<'_, T>, c: &Certificate) -> bool {
        let rounding = || judge((self.a, Op::Identity), x, b, c, || true) == Outcome::Converged;
        match self.accuracy {
            Accuracy::Rounding => rounding(),
            Accuracy::Residual(rtol) => c.relative_residual <= rtol || rounding(),
        }
    }
}

/// Work done so far.
#[derive(Default)]
struct Done {
    steps: usize,
    corrections: usize,
    products: usize,
    preconditioned: usize,
}
