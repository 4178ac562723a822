//! Iterative refinement around an iteration, within a budget of steps: x ← x + d with A·d ≈ b − A·x, the residual in twice the precision (see
//! [`bt_direct::refine()`]), until the answer is at rounding level or as accurate as was asked.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

use bt_direct::refine::unit_roundoff;
use bt_formats::{
    Bytes, Certificate, Csr, Dia, LinearOperator, Matrix, Monitor, Note, Op, Outcome, PhaseTimes, Progress, Scalar,
    SolveReport, StopCriterion, certify, certify_with_residual, zero,
};
use faer::{Mat, MatRef};

use crate::candidate::LEAST_STEPS;
use crate::columns::lockstep;
use crate::error::Error;
use crate::method::{Accuracy, Krylov};
use crate::options::SolveOptions;
use crate::precondition::preconditioner;
use crate::solution::Solution;
use crate::verdict::{judge, too_large};

/// Corrections x ← x + d, at most.
const CORRECTIONS: usize = 12;

/// Steps of an iteration where no direct method is possible, at most.
pub(crate) const UNLIMITED: f64 = 20_000.0;

/// An iteration under way.
pub(crate) struct Run<'a, T: Scalar> {
    pub a: &'a Csr<T>,
    pub given: &'a Krylov,
    pub accuracy: Accuracy,
    pub budget: RefCell<Budget<'a>>,
}

/// Steps that an iteration may take.
pub(crate) struct Budget<'l> {
    /// Those that the fastest direct method would pay for.
    pub steps: usize,
    /// The same after so many steps, once orders have been made; once.
    pub further: Option<&'l mut dyn FnMut(usize) -> Result<usize, Error>>,
}

/// A·d ≈ r, from d = 0.
type Correct<'a, T> =
    Box<dyn FnMut(&[T], &mut [T], &StopCriterion, &mut dyn Monitor) -> Result<SolveReport, Error> + 'a>;

/// The Krylov method inside of the refinement.
pub(crate) struct Inner<'a, T> {
    pub solve: Correct<'a, T>,
    pub bytes: Bytes,
}

/// How one column ended.
enum End {
    Good,
    Stopped,
    GivenUp(GivenUp),
}

/// Why an iteration was given up, and how many steps it was predicted to take.
pub(crate) struct GivenUp {
    pub why: String,
    pub steps: f64,
}

impl<'a, T: Scalar> Run<'a, T> {
    /// The same of the same matrix as another type, with what is left of the budget.
    #[cfg(feature = "cuda")]
    pub fn on<R: Scalar>(&self, a: &'a Csr<R>) -> Run<'a, R> {
        let mut budget = self.budget.borrow_mut();
        let left = Budget { steps: budget.steps, further: budget.further.take() };
        Run { a, given: self.given, accuracy: self.accuracy, budget: RefCell::new(left) }
    }

    /// The method on the processor.
    pub fn on_processor(&self, options: &SolveOptions, notes: &mut Vec<Note>) -> Result<Inner<'a, T>, Error> {
        // The format of the fastest products; without the memory for it A as it is will do.
        let diagonals = Dia::where_full(self.a).unwrap_or_default();
        let more = diagonals.as_ref().map_or(0, Matrix::bytes);
        let operator: Box<dyn Matrix<T>> = if let Some(diagonals) = diagonals {
            Box::new(diagonals)
        } else {
            let mut indexed = self.a.clone();
            indexed.index_by_diagonals().unwrap_or_default();
            Box::new(indexed)
        };
        let (mut m, _) = preconditioner(self.a, None, &None, true, self.given, options, notes)?;
        let mut method = lockstep(self.given.method, self.a.nrows(), 1, notes);
        let bytes = Bytes { matrix: self.a.bytes() + more, factors: m.bytes(), workspace: method.bytes() };
        let solve = move |r: &[T], d: &mut [T], stop: &StopCriterion, monitor: &mut dyn Monitor| {
            Ok(method.solve_one(&*operator, &mut *m, r, d, stop, monitor)?)
        };
        Ok(Inner { solve: Box::new(solve), bytes })
    }

    /// The solution by what is `made`, or why there is none.
    pub fn solve<'m>(
        &self,
        b: MatRef<'_, T>,
        made: impl FnOnce(&mut Vec<Note>) -> Result<Inner<'m, T>, Error>,
        monitor: &mut dyn Monitor,
        notes: &mut Vec<Note>,
    ) -> Result<Result<Solution<T>, GivenUp>, Error> {
        let start = Instant::now();
        let Inner { solve: mut correct, bytes } = match made(notes) {
            Ok(inner) => inner,
            Err(why) => return Ok(Err(GivenUp { why: why.to_string(), steps: f64::INFINITY })),
        };
        let setup = start.elapsed();
        let solving = Instant::now();
        let mut x = Mat::zeros(b.nrows(), b.ncols());
        let mut done = Done::default();
        let mut outcome = Outcome::Converged;
        for j in 0..b.ncols() {
            let mut told = |progress| match progress {
                Progress::Iteration { .. } if b.ncols() > 1 => bt_formats::observe_column(monitor, j, progress),
                other => monitor.observe(other),
            };
            let column = x.as_mut().subcols_mut(j, 1);
            match self.column(&mut correct, b.subcols(j, 1), column, &mut done, &mut told)? {
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
            bytes,
            notes: std::mem::take(notes),
        };
        Ok(Ok(Solution { precond: self.given.precond, ..Solution::of(x, report, self.given.clone()) }))
    }

    /// One right-hand side, from x = 0.
    fn column(
        &self,
        correct: &mut Correct<'_, T>,
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
        // r ← b − A·0, all of which is error where it is not zero.
        let mut r = b.to_owned();
        let error = if r.col_as_slice(0).iter().all(|v| *v == zero()) { 0.0 } else { 1.0 };
        let mut certificate =
            Certificate { relative_residual: error, backward_error: error, componentwise_backward_error: error };
        let before = done.steps;
        for _ in 0..CORRECTIONS {
            if self.is_good(x.as_ref(), b, &certificate) {
                return Ok(End::Good);
            }
            let reached = self.measure(&certificate);
            let spent = done.steps - before;
            let budget = self.budget.borrow();
            let left = if budget.further.is_some() { UNLIMITED as usize } else { budget.steps.saturating_sub(spent) };
            drop(budget);
            // A residual of 10⁻¹² of where it began is what a recurrence keeps to.
            let target = (goal / reached).clamp(1e-12, 1e-2);
            let stop = StopCriterion { rtol: target, max_iters: left, ..StopCriterion::default() };
            let decades = (reached / goal).max(1.0).ln();
            let (mut stopped, mut hopeless, mut failed) = (false, None, None);
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
                let mut budget = self.budget.borrow_mut();
                let exceeds = |steps: usize| {
                    let (done, all, steps) = ((spent + index) as f64, spent as f64 + predicted, steps as f64);
                    // A quarter is tried of what may be spent, and less the farther the prediction lies beyond; half where there is none.
                    let share = if predicted.is_finite() { 4.0 * (all / steps).max(1.0) } else { 2.0 };
                    index >= LEAST_STEPS as usize && all > steps && share * done >= steps
                };
                if exceeds(budget.steps)
                    && let Some(further) = budget.further.take()
                {
                    match further(spent + index) {
                        Ok(steps) => budget.steps = steps,
                        Err(error) => failed = Some(error),
                    }
                }
                if failed.is_none() && !exceeds(budget.steps) {
                    return ControlFlow::Continue(());
                }
                hopeless = Some(predicted);
                ControlFlow::Break(())
            };
            // A·d ≈ r;  x ← x + d
            let mut d = vec![zero::<T>(); n];
            let report = match correct(r.col_as_slice(0), &mut d, &stop, &mut watch) {
                Ok(report) => report,
                // Others may have the answer.
                Err(Error::Device(why)) => return Ok(End::GivenUp(GivenUp { why, steps: f64::INFINITY })),
                Err(other) => return Err(other),
            };
            if let Some(error) = failed {
                return Err(error);
            }
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
