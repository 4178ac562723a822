//! A factored system: what [`Solver`] does with its factors.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bt_direct::refine::unit_roundoff;
use bt_direct::{
    BlockLu, FactorError, Factorization, Given, Inertia, LogDet, Refinement, RefinementVectors, SelectedInverse,
    error_bounds,
};
use bt_formats::detect::natural_partition;
use bt_formats::{
    BlockTridiagonal, Bytes, Certificate, Csr, Error as InputError, Monitor, Note, Op, Outcome, PhaseTimes, Scalar,
    SolveReport, max_abs,
};
use faer::{MatMut, MatRef};

use crate::candidate::{Candidate, choice};
use crate::check::{check_matrix, check_rhs, column};
use crate::direct::Direct;
use crate::error::Error;
use crate::factoring::{automatic, check_precision, factor, factor_in_format};
use crate::factors::Factored;
use crate::gpu;
use crate::held::{Format, Held, takes};
use crate::memory::ask_for_blocks;
use crate::method::{Factoring, Method, Precision};
use crate::options::{Blocks, Condition, DeviceChoice, Fallback, Reorder, SolveOptions};
use crate::plan::{Depth, Plan, plan_of_format};
use crate::preconditioners::Precond;
use crate::prepare::{order_asked, planned, prepared, transform};
use crate::regular::{is_singular_after_rounding, no_pivot};
use crate::reordered::Ordered;
use crate::solution::Solution;
use crate::stronger::DOUBLED_ROWS;
use crate::verdict::{doubtful, judge, rows_are_solved, too_large, working_precision};

mod refactor;
mod refined;

/// A factored system: factor once, solve as often as wanted, every answer refined and certified.
///
/// ```
/// use blocktri::{Csr, SolveOptions, Solver, faer::mat};
/// let a = Csr::from_dense(mat![[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
/// let solver = Solver::new(&a, &SolveOptions::default(), &mut ())?;
/// let b = mat![[3.0], [5.0], [5.0]];
/// let answer = solver.solve(b.as_ref())?;
/// assert!(answer.report.certificate.backward_error < 1e-15);
/// assert!((answer.x[(0, 0)] - 1.0f64).abs() < 1e-15);
/// # Ok::<(), blocktri::Error>(())
/// ```
pub struct Solver<T: Scalar> {
    a: Held<T>,
    pub(crate) factored: Factored<T>,
    factoring: Factoring,
    options: SolveOptions,
    /// What `auto` weighed, in its order.
    candidates: Vec<Candidate>,
    notes: Vec<Note>,
    times: PhaseTimes,
    /// Whether a solve has put the condition in doubt.
    doubt: OnceLock<bool>,
    /// See [`Solver::is_regular`].
    regular: OnceLock<bool>,
    /// Of the last solve, for the next.
    vectors: Mutex<RefinementVectors<T>>,
}

/// A matrix whose methods have been weighed.
pub(crate) struct Planned<T: Scalar> {
    pub a: Csr<T>,
    pub plan: Plan,
    /// The order given, where one is.
    pub fixed: Option<Ordered<T>>,
    pub notes: Vec<Note>,
    pub start: Instant,
}

impl<T: Scalar> Solver<T> {
    /// Chooses (with `Method::Auto`) and factors.
    ///
    /// A may be compressed rows, or a [`Tridiagonal`](bt_formats::Tridiagonal), a [`Band`](bt_formats::Band), a
    /// [`BlockTridiagonal`], a periodic [`Cyclic`](crate::Cyclic), or a dense matrix of faer, more than half of it not zero.
    /// Those are factored, multiplied and kept as they stand by methods for their format, which is where `auto` looks then; it
    /// and all other methods make rows of them where no such method will do: with another order, blocks of another size, lines in
    /// units far apart, where a pivot is missing.
    ///
    /// # Errors
    /// As [`solve`](crate::solve()); [`Error::NoFactors`] for an iterative method.
    ///
    /// # Example
    /// ```
    /// use blocktri::{SolveOptions, Solver, Tridiagonal, faer::mat};
    /// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
    /// let solver = Solver::new(&a, &SolveOptions::default(), &mut ())?;
    /// assert_eq!(solver.method().name(), "thomas"); // the matrix is dominant
    /// let answer = solver.solve(mat![[1.0], [0.0], [1.0f64]].as_ref())?;
    /// assert!((0..3).all(|i| (answer.x[(i, 0)] - 1.0).abs() < 1e-15));
    /// # Ok::<(), blocktri::Error>(())
    /// ```
    pub fn new<'a>(
        a: impl Into<Given<'a, T>>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Self, Error> {
        options.check()?;
        if options.device.is_gpu() && !gpu::helps_processor(options) {
            let (method, device) = (&options.method, options.device);
            let message = format!(
                "factors of {method} to keep are on the processor, not on device {device}: take the processor, rbt, or one call of solve"
            );
            return Err(Error::Usage { message });
        }
        match a.into() {
            Given::Csr(a) => Self::by_rows(a, options, monitor),
            other => match Self::in_format(other, options, monitor)? {
                Some(solver) => Ok(solver),
                None => Self::by_rows(&*other.csr()?, options, monitor),
            },
        }
    }

    /// By a method for the format given, if there is one that can.
    pub(crate) fn in_format(
        given: Given<'_, T>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Option<Self>, Error> {
        let (rows, cols) = given.shape();
        let as_it_stands = matches!(options.reorder, Reorder::None | Reorder::Auto)
            && options.blocks == Blocks::Detect
            && options.device == DeviceChoice::Cpu;
        let factoring = options.method.factoring().filter(|f| f.precision == Precision::Working && as_it_stands);
        let Some(factoring) = factoring.filter(|_| rows == cols && rows > 0) else { return Ok(None) };
        if matches!(options.method, Method::Direct(method, _) if !takes(given, method)) {
            return Ok(None);
        }
        let start = Instant::now();
        let Some(format) = Format::of(given)? else { return Ok(None) };
        let (mut method, candidates, mut notes) = if let Method::Direct(method, _) = options.method {
            (method, Vec::new(), Vec::new())
        } else {
            let plan = plan_of_format(&format);
            let Some((chosen, method)) = plan.direct() else { return Ok(None) };
            let note = choice(chosen, &plan.candidates);
            (method, plan.candidates, vec![note])
        };
        let chosen = start.elapsed();
        loop {
            match factor_in_format(format.given(), method, options, monitor) {
                Ok(factored) => {
                    let a = Held::in_format(format);
                    return Ok(Some(Self::made(a, factored, factoring, options, candidates, notes, (start, chosen))));
                }
                Err(stopped @ Error::Factor(FactorError::Stopped)) => return Err(stopped),
                Err(failure) => match method.fallback() {
                    Some(next) if options.method.is_auto() && is_of_method(&failure) && takes(given, next) => {
                        notes.push(Note::HandedOver { to: next.name(), why: failure.to_string() });
                        method = next;
                    }
                    // By rows the error is told, or another method found.
                    _ => return Ok(None),
                },
            }
        }
    }

    fn by_rows(a: &Csr<T>, options: &SolveOptions, monitor: &mut dyn Monitor) -> Result<Self, Error> {
        check_matrix(a)?;
        let Some(factoring) = options.method.factoring() else {
            return Err(Error::NoFactors { method: options.method.name() });
        };
        check_precision::<T>(&options.method)?;
        let start = Instant::now();
        let mut notes = Vec::new();
        let a = prepared(a, &mut notes)?;
        let Method::Direct(method, _) = options.method else {
            let (plan, fixed) = planned(&a, order_asked(options), options, Depth::All, &mut notes)?;
            return Self::of_plan(Planned { a, plan, fixed, notes, start }, factoring, options, monitor);
        };
        let transform = transform(&a, Some(method), order_asked(options), &mut notes)?;
        let reorder = start.elapsed();
        let factored = named(&a, method, factoring.precision, options, transform, &mut notes, monitor)?;
        Ok(Self::made(Held::Rows(a), factored, factoring, options, Vec::new(), notes, (start, reorder)))
    }

    /// By the fastest direct method of a plan.
    pub(crate) fn of_plan(
        planned: Planned<T>,
        factoring: Factoring,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Self, Error> {
        let Planned { a, plan, fixed, mut notes, start } = planned;
        let reorder = start.elapsed();
        let factored = automatic(&a, factoring.precision, options, &plan, fixed, &mut notes, monitor)?;
        Ok(Self::made(Held::Rows(a), factored, factoring, options, plan.candidates, notes, (start, reorder)))
    }

    fn made(
        a: Held<T>,
        factored: Factored<T>,
        factoring: Factoring,
        options: &SolveOptions,
        candidates: Vec<Candidate>,
        mut notes: Vec<Note>,
        (start, reorder): (Instant, Duration),
    ) -> Self {
        if options.blocks != Blocks::Detect && factored.blocks.is_none() {
            notes.push(Note::BlocksNotUsed { method: factored.method.name() });
        }
        let times = PhaseTimes { reorder, setup: start.elapsed().saturating_sub(reorder), ..PhaseTimes::default() };
        Self {
            a,
            factored,
            factoring,
            options: options.clone(),
            candidates,
            notes,
            times,
            doubt: OnceLock::new(),
            regular: OnceLock::new(),
            vectors: Mutex::default(),
        }
    }

    /// Solves A·X = B for the columns of `b`, refines, and certifies the answer.
    ///
    /// # Errors
    /// [`Error::Input`] when `b` has not n rows or is not finite.
    pub fn solve(&self, b: MatRef<'_, T>) -> Result<Solution<T>, Error> {
        self.solve_op(Op::Identity, b)
    }

    /// Solves Aᵀ·X = B.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_transposed(&self, b: MatRef<'_, T>) -> Result<Solution<T>, Error> {
        self.solve_op(Op::Transpose, b)
    }

    /// Solves A·X = B into `x`, n × nrhs, and reports. Where columns are contiguous, memory is taken for the report alone once a
    /// solve of this shape has been.
    ///
    /// # Errors
    /// As [`Solver::solve`], and when `x` has another shape than `b`; `x` is untouched then.
    pub fn solve_into(&self, b: MatRef<'_, T>, mut x: MatMut<'_, T>) -> Result<SolveReport, Error> {
        for (what, expected, found) in [("rows of X", b.nrows(), x.nrows()), ("columns of X", b.ncols(), x.ncols())] {
            if expected != found {
                return Err(InputError::DimensionMismatch { what, expected, found }.into());
            }
        }
        let b = check_rhs(self.a.n(), b)?;
        if x.as_ref().try_as_col_major().is_some() {
            let start = Instant::now();
            x.copy_from(b.as_ref());
            return Ok(self.solve_in_place(Op::Identity, b.as_ref(), x, start).report);
        }
        let solution = self.solve_checked(Op::Identity, b.as_ref());
        x.copy_from(solution.x);
        Ok(solution.report)
    }

    /// Solves op(A)·X = B.
    ///
    /// # Errors
    /// As [`Solver::solve`].
    pub fn solve_op(&self, op: Op, b: MatRef<'_, T>) -> Result<Solution<T>, Error> {
        Ok(self.solve_checked(op, check_rhs(self.a.n(), b)?.as_ref()))
    }

    /// The same for a right-hand side that has been checked.
    pub(crate) fn solve_checked(&self, op: Op, b: MatRef<'_, T>) -> Solution<T> {
        let start = Instant::now();
        let mut x = b.to_owned();
        let Told { report, rcond, warnings } = self.solve_in_place(op, b, x.as_mut(), start);
        let Factored { method, reorder, blocks, precision, .. } = &self.factored;
        Solution {
            x,
            report,
            method: Method::Direct(*method, Factoring { precision: *precision, ..self.factoring }),
            reorder: *reorder,
            precond: Precond::None,
            blocks: *blocks,
            rcond,
            // What replaced rbt is the processor's.
            device: match (method, self.options.device) {
                (Direct::Rbt { .. }, device) if device.is_gpu() => device,
                _ => DeviceChoice::Cpu,
            },
            warnings,
            candidates: self.candidates.clone(),
        }
    }

    /// op(A)·X = B for an X that comes as B, by columns; the solve began at `start`.
    fn solve_in_place(&self, op: Op, b: MatRef<'_, T>, mut x: MatMut<'_, T>, start: Instant) -> Told {
        let Factored { method, factors, matrix_bytes, precision, notes: made, .. } = &self.factored;
        let refinement = match (*precision, self.factoring.refinement) {
            (Precision::Single, Refinement::Auto) => Refinement::Stagnation,
            (_, asked) => asked,
        };
        // Another thread that solves meanwhile takes vectors of its own.
        let mut vectors = std::mem::take(&mut *self.kept_vectors());
        let refined = self.refined(op, b, x.as_mut(), refinement, &mut vectors);
        let x = x.as_ref();
        let solve_time = start.elapsed();
        let certificate = refined.certificate;
        let n = b.nrows();
        let in_doubt = self.options.condition == Condition::Always || self.is_in_doubt(op, vectors.residual(), x);
        let mut rcond = if in_doubt { self.factored.rcond(self.a.rows()) } else { None };
        let mut outcome = judge((self.a.as_matrix(), op), x, b, &certificate, || self.is_regular());
        let workspace = size_of::<T>() * n * b.ncols() + vectors.bytes();
        if vectors.bytes() <= factors.stats().bytes.max(KEPT_BYTES) {
            *self.kept_vectors() = vectors;
        }

        let mut notes = self.notes.clone();
        let is_replaced = |note: &&Note| matches!(note, Note::PivotedInstead { .. });
        notes.extend(made.iter().filter(|note| !is_replaced(note)).cloned());
        let mut warnings: Vec<Note> = made.iter().filter(is_replaced).cloned().collect();
        if let Method::Direct(asked, _) = &self.options.method
            && !asked.is_like(method)
        {
            warnings.push(Note::MethodReplaced { asked: asked.name(), by: method.name() });
        }
        if *precision == Precision::Single {
            notes.push(Note::SingleFactors);
        }
        let steps = refined.steps;
        notes.push(Note::Refined { steps });
        let stats = factors.stats();
        if stats.growth > 1e6 || self.factored.have_grown() {
            notes.push(Note::Growth { growth: stats.growth });
        }
        match rcond {
            None if in_doubt => {
                outcome = Outcome::Inaccurate;
                notes.push(Note::ConditionBeyondFactors);
            }
            // What is small may be the errors of factors that have grown: whether A is singular, others have to say.
            Some(found) if found < doubtful::<T>(n) && self.factored.have_grown() && outcome == Outcome::Inaccurate => {
                notes.push(Note::ConditionBeyondFactors);
            }
            Some(found) if found < doubtful::<T>(n) && self.factored.have_grown() && self.is_regular() => rcond = None,
            Some(rcond) if rcond < doubtful::<T>(n) && is_finite(x) => {
                self.tell_condition(op, rcond, b, x, &certificate, &mut notes, &mut warnings);
            }
            _ => {}
        }
        if !is_finite(x) {
            notes.push(Note::Overflow);
        } else if outcome == Outcome::Inaccurate && (rcond.is_some() || !in_doubt) {
            notes.push(Note::NotAtRoundingLevel { reached: too_large::<T>(&certificate) });
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
            bytes: Bytes { matrix: *matrix_bytes, factors: stats.bytes, workspace },
            notes,
        };
        Told { report, rcond, warnings }
    }

    fn kept_vectors(&self) -> MutexGuard<'_, RefinementVectors<T>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether rounding may have taken digits of x: d = op(F)⁻¹·r of the residual r, which is rounding all over, is of the size of
    /// the error, and tells in one solve what an estimate of the condition number does in five. Found out once per factorization, without a solve
    /// where dominance tells that half of the digits cannot be lost.
    fn is_in_doubt(&self, op: Op, r: MatRef<'_, T>, x: MatRef<'_, T>) -> bool {
        let n = x.nrows();
        if n <= DOUBLED_ROWS || self.factored.precision == Precision::Single || self.factored.rcond_is_known() {
            return true;
        }
        *self.doubt.get_or_init(|| {
            if self.a.rcond_bound() > unit_roundoff::<T>().sqrt() {
                return false;
            }
            let (mut d, x) = (r.subcols(0, 1).to_owned(), column(x, 0));
            self.factored.factors.solve_op_in_place(op, d.as_mut());
            let (largest_d, largest_x) = (max_abs(d.col_as_slice(0)), max_abs(x));
            // d may be √n times smaller than the error at its worst; without rounding it tells nothing.
            let limit = 1e-3 / (n as f64).powf(1.5);
            !(largest_d > 0.0 && largest_d <= limit.max(1e3 * unit_roundoff::<T>()) * largest_x)
        })
    }

    /// Whether A is regular to working precision in the best units. Where these factors deny it, the strongest have the last word:
    /// factors that lost a row in the units of others find every matrix singular.
    fn is_regular(&self) -> bool {
        // Factors in single precision do not tell whether the matrix is regular in double.
        if self.factored.precision == Precision::Single {
            return true;
        }
        *self.regular.get_or_init(|| {
            let limit = working_precision::<T>(self.a.n());
            let rcond = self.factored.rcond(self.a.rows());
            if rcond.is_some_and(|rcond| self.factored.scaled_rcond(self.a.rows()).max(rcond) > limit) {
                return true;
            }
            let is_strongest = match self.factored.method {
                Direct::DenseLuDoubled | Direct::ExactLu | Direct::SparseQr => true,
                Direct::SparseLu => {
                    let is_matched = self.factored.reorder == Reorder::Matching && self.a.n() > DOUBLED_ROWS;
                    is_matched && !self.factored.have_grown()
                }
                _ => false,
            };
            !is_strongest && !is_singular_after_rounding(self.a.rows(), &self.options)
        })
    }

    /// Whether a small system seems singular to working precision, to factors of less than twice the precision.
    pub(crate) fn is_doubtful(&self) -> bool {
        let n = self.a.n();
        let limit = doubtful::<T>(n);
        n <= DOUBLED_ROWS
            && !self.factored.method.is_beyond_rounding()
            && self.factored.rcond(self.a.rows()).is_some_and(|r| r < limit)
            && self.factored.scaled_rcond(self.a.rows()) < limit
    }

    /// A condition number beyond the working precision: the fault of units, which do no harm, or of the matrix.
    fn tell_condition(
        &self,
        op: Op,
        rcond: f64,
        b: MatRef<'_, T>,
        x: MatRef<'_, T>,
        certificate: &Certificate,
        notes: &mut Vec<Note>,
        warnings: &mut Vec<Note>,
    ) {
        /// Digits that are worth to be called so.
        const USEFUL: f64 = 1e-3;
        let scaled_rcond = self.factored.scaled_rcond(self.a.rows());
        if scaled_rcond > doubtful::<T>(b.nrows()) {
            if rcond >= 2.0 * unit_roundoff::<T>() {
                return;
            }
            notes.push(Note::ConditionOfUnits { rcond, scaled_rcond });
            return;
        }
        let bounds = error_bounds(self.a.as_matrix(), &*self.factored.factors, op, b, x);
        let forward = bounds.iter().fold(0.0, |m: f64, bound| m.max(bound.forward));
        // Factors that leave a row unsolved do not bound the error either.
        if forward <= USEFUL && rows_are_solved::<T>(b.nrows(), certificate) {
            notes.push(Note::ConditionHardlyFelt { rcond, forward_error: forward });
        } else if self.factored.method == Direct::ExactLu {
            warnings.push(Note::SingularButExact { rcond });
        } else {
            warnings.push(Note::SingularToPrecision { rcond });
        }
    }

    /// The factors, as solvers with A, Aᵀ, Aᴴ, determinant and condition estimate.
    pub fn factors(&self) -> &dyn Factorization<T> {
        &*self.factored.factors
    }

    /// log|det A| and the sign.
    pub fn log_det(&self) -> LogDet<T> {
        self.factored.factors.log_det()
    }

    /// Estimate of 1 / (‖A‖₁‖A⁻¹‖₁); `None` where factors in single precision, or with large growth, cannot tell.
    pub fn rcond(&self) -> Option<f64> {
        self.factored.rcond(self.a.rows())
    }

    /// The blocks of A⁻¹ on and beside the diagonal, for the natural block-tridiagonal partition of A.
    ///
    /// # Errors
    /// [`Error::Factor`] when block LU meets a singular block.
    ///
    /// # Cost
    /// A factorization by block LU, and about as much again.
    pub fn selected_inverse(&self) -> Result<SelectedInverse<T>, Error> {
        let lu = BlockLu::new(&self.in_natural_blocks()?)?;
        Ok(SelectedInverse::new(&lu)?)
    }

    /// How many eigenvalues of a Hermitian A are positive, negative and zero.
    ///
    /// # Errors
    /// [`Error::Input`] when A is not Hermitian; [`Error::Factor`] when elimination breaks down.
    ///
    /// # Cost
    /// A factorization without row interchanges across blocks.
    pub fn inertia(&self) -> Result<Inertia, Error> {
        Ok(Inertia::of_blocks(&self.in_natural_blocks()?)?)
    }

    fn in_natural_blocks(&self) -> Result<BlockTridiagonal<T>, Error> {
        let partition = natural_partition(self.a.rows())?;
        ask_for_blocks::<T>(&partition, Direct::BlockLu)?;
        let layout = BlockLu::<T>::layout(&partition);
        Ok(BlockTridiagonal::from_csr(self.a.rows(), partition, layout)?)
    }

    /// The method that factored A.
    pub fn method(&self) -> Direct {
        self.factored.method
    }

    /// The methods that `auto` weighed, in its order; empty for a method asked for by name.
    pub fn explain(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Factors again by another method, or in another order.
    pub(crate) fn replace(&mut self, method: Direct, reorder: Reorder, monitor: &mut dyn Monitor) -> Result<(), Error> {
        let start = Instant::now();
        let transform = transform(self.a.rows(), Some(method), reorder, &mut self.notes)?;
        self.factored = factor(self.a.rows(), method, transform, self.factoring.precision, &self.options, monitor)?;
        (self.doubt, self.regular) = (OnceLock::new(), OnceLock::new());
        self.times.setup += start.elapsed();
        Ok(())
    }
}

/// Whether a failure is the method's, and the matrix may be regular.
fn is_of_method(failure: &Error) -> bool {
    matches!(failure, Error::Factor(FactorError::Breakdown { .. }) | Error::Input(InputError::InvalidStructure { .. }))
}

/// What vectors may take that are kept between solves, where factors take less.
const KEPT_BYTES: usize = 1 << 20;

/// What a solve tells beside X.
struct Told {
    report: SolveReport,
    rcond: Option<f64>,
    warnings: Vec<Note>,
}

fn is_finite<T: Scalar>(x: MatRef<'_, T>) -> bool {
    (0..x.ncols()).all(|j| column(x, j).iter().all(|v| Scalar::is_finite(*v)))
}

/// The method asked for; where it meets a pivot that only it cannot use, and another may take its place, the next stronger one in the
/// same order.
fn named<T: Scalar>(
    a: &Csr<T>,
    mut method: Direct,
    precision: Precision,
    options: &SolveOptions,
    transform: Ordered<T>,
    notes: &mut Vec<Note>,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let mut result = factor(a, method, transform.clone(), precision, options, monitor);
    if let Err(Error::Factor(failure @ FactorError::Breakdown { .. })) = &result
        && options.fallback == Fallback::Stronger
        && let Some(next) = method.fallback()
    {
        notes.push(Note::HandedOver { to: next.name(), why: failure.to_string() });
        method = next;
        result = factor(a, method, transform, precision, options, monitor);
    }
    match result {
        Err(Error::Singular(place)) => Err(no_pivot(a, method.name(), place, options, monitor)),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use bt_direct::Cyclic;
    use bt_formats::{Band, HybridLayout, Partition, Tridiagonal};
    use faer::Mat;

    use super::*;

    #[test]
    fn dominance_bounds_the_condition_in_every_format() {
        let n = 2 * DOUBLED_ROWS;
        let made = |diagonal: f64| {
            let (mut lower, mut upper) = (vec![-1.0; n], vec![-1.0; n]);
            (lower[0], upper[n - 1]) = (0.0, 0.0);
            Tridiagonal::new(lower, vec![diagonal; n], upper).unwrap()
        };
        let b = Mat::from_fn(n, 1, |i, _| 1.0 + i as f64);
        // Σ aᵢⱼ = 3 − 2 = 1 of a row with |aᵢᵢ| = 3; and the second difference, dominant without a margin.
        for (diagonal, bound) in [(3.0, 1.0f64 / 6.0), (2.0, 0.0), (1.5, -0.5 / 3.0)] {
            let a = made(diagonal);
            let rows = a.to_csr().unwrap();
            for given in [Given::from(&a), Given::from(&rows)] {
                let solver = Solver::new(given, &SolveOptions::default(), &mut ()).unwrap();
                let found = solver.a.rcond_bound();
                assert_eq!(found.max(0.0), bound.max(0.0), "{diagonal}");
                assert!(solver.rcond().unwrap() >= 0.99 * found, "{diagonal}");
                // A condition that dominance bounds is not asked for.
                let fresh = Solver::new(given, &SolveOptions::default(), &mut ()).unwrap();
                let answer = fresh.solve(b.as_ref()).unwrap();
                assert!(found <= 0.0 || answer.rcond.is_none(), "{diagonal}");
            }
        }
    }

    #[test]
    fn a_band_that_only_seemed_definite_is_handed_over_as_it_stands() {
        // Wide enough for half of the work to be worth a look.
        let (n, k) = (4 * DOUBLED_ROWS, 48);
        let made = |changed: (usize, usize), value: f64| {
            let mut a = Band::zeros(n, k, k).unwrap();
            for j in 0..n {
                a.column_range(j).for_each(|i| *a.get_mut(i, j) = if i == j { 40.0 } else { 1.0 / (1 + i + j) as f64 });
            }
            *a.get_mut(changed.0, changed.1) = value;
            a
        };
        let b = Mat::from_fn(n, 1, |i, _| 1.0 + i as f64);
        // As it should be; not Hermitian where nobody looks; not definite.
        for (changed, value, method) in [
            ((0, 0), 40.0, Direct::BandCholesky),
            ((100, 97), -3.0, Direct::BandLu),
            ((1000, 1000), -40.0, Direct::BandLu),
        ] {
            let solver = Solver::new(&made(changed, value), &SolveOptions::default(), &mut ()).unwrap();
            assert_eq!(solver.method(), method, "{changed:?}");
            let answer = solver.solve(b.as_ref()).unwrap();
            assert_eq!(answer.report.outcome, Outcome::Converged, "{changed:?}");
            let handed = |note: &Note| matches!(note, Note::HandedOver { to: "band-lu", .. });
            assert_eq!(answer.report.notes.iter().any(handed), method == Direct::BandLu, "{changed:?}");
            assert!(matches!(&solver.a, Held::Format { rows, .. } if rows.get().is_none()), "{changed:?}");
        }
    }

    #[test]
    fn no_rows_are_made_of_a_format_that_is_solved_as_it_stands() {
        fn check<'a>(given: impl Into<Given<'a, f64>>) {
            let solver = Solver::new(given, &SolveOptions::default(), &mut ()).unwrap();
            let answer = solver.solve(Mat::from_fn(solver.a.n(), 1, |i, _| 1.0 + i as f64).as_ref()).unwrap();
            assert_eq!(answer.report.outcome, Outcome::Converged);
            assert!(matches!(&solver.a, Held::Format { rows, .. } if rows.get().is_none()));
            assert!(solver.rcond().is_some());
        }
        let n = 2 * DOUBLED_ROWS;
        let (mut lower, mut upper) = (vec![-1.0; n], vec![-1.0; n]);
        (lower[0], upper[n - 1]) = (0.0, 0.0);
        let band_of_three = Tridiagonal::new(lower, vec![4.0; n], upper).unwrap();
        check(&band_of_three);
        let mut band = Band::zeros(n, 2, 1).unwrap();
        for j in 0..n {
            for i in band.column_range(j) {
                *band.get_mut(i, j) = if i == j { 4.0 } else { 1.0 };
            }
        }
        check(&band);
        let dense = DOUBLED_ROWS + 8;
        check(Mat::from_fn(dense, dense, |i, j| if i == j { 600.0 } else { 1.0 / (1 + i + j) as f64 }).as_ref());
        check(&Cyclic::new(band_of_three, -1.0, -1.0).unwrap());
        let blocks = Partition::uniform(n, 4).unwrap();
        check(&BlockTridiagonal::from_csr(&band.to_csr().unwrap(), blocks, HybridLayout::default()).unwrap());
    }
}
