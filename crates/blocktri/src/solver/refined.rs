//! X from the factors, refined until it is good, and what is tried where it is not.

use bt_direct::{FactorStats, Factorization, Given, LogDet, Refined, Refinement, RefinementVectors, refine, refine_in};
use bt_formats::rounded::scale_by_power;
use bt_formats::{Certificate, Error as InputError, Monitor, Op, Outcome, RealScalar, Scalar, certify, max_abs, zero};
use faer::{Mat, MatMut, MatRef};

use super::{Solver, is_finite};
use crate::check::column;
use crate::reordered::Factors;
use crate::rows::refine_worst;
use crate::verdict::{at_rounding_level, judge};
use crate::zeros::{set_unreached, set_unresolved};

/// Steps for rows by themselves, at most.
const ROW_STEPS: usize = 4;

impl<T: Scalar> Solver<T> {
    /// X from the factors, refined, with more steps than usual where the answer is not good and still gains. Right-hand sides
    /// near the ends of the range are brought to its middle and back.
    /// `x` comes as B.
    pub(super) fn refined(
        &self,
        op: Op,
        b: MatRef<'_, T>,
        mut x: MatMut<'_, T>,
        refinement: Refinement,
        vectors: &mut RefinementVectors<T>,
    ) -> Refined {
        let exponent = |j: usize| middle_exponent::<T>(column(b, j));
        if (0..b.ncols()).all(|j| exponent(j) == 0) {
            self.factored.factors.solve_op_in_place(op, x.as_mut());
            return self.refine(op, b, x, refinement, vectors);
        }
        let times_powers = |mut m: MatMut<'_, T>, sign: i32| {
            for (j, values) in m.as_mut().col_iter_mut().enumerate() {
                let values = values.try_as_col_major_mut().expect("X has contiguous columns").as_slice_mut();
                scale_by_power(sign * exponent(j), values);
            }
        };
        let mut scaled = b.to_owned();
        times_powers(scaled.as_mut(), -1);
        x.copy_from(&scaled);
        self.factored.factors.solve_op_in_place(op, x.as_mut());
        let refined = self.refine(op, scaled.as_ref(), x.as_mut(), refinement, vectors);
        times_powers(vectors.residual_mut(), 1);
        times_powers(x.as_mut(), 1);
        let certificate = certify(self.a.as_matrix(), op, x.as_ref(), b);
        let is_good = |x: MatRef<'_, T>, c: &Certificate| {
            is_finite(x) && judge((self.a.as_matrix(), op), x, b, c, || true) == Outcome::Converged
        };
        if !is_good(x.as_ref(), &certificate) {
            // Unknowns that are small beside the others may have left the range with the scaling.
            let (mut other, mut others) = (b.to_owned(), RefinementVectors::default());
            self.factored.factors.solve_op_in_place(op, other.as_mut());
            let found = self.refine(op, b, other.as_mut(), refinement, &mut others);
            if is_good(other.as_ref(), &found.certificate) {
                x.copy_from(&other);
                *vectors = others;
                return found;
            }
        }
        Refined { certificate, ..refined }
    }

    /// Refines X, and further than usual where the answer is not good.
    fn refine(
        &self,
        op: Op,
        b: MatRef<'_, T>,
        mut x: MatMut<'_, T>,
        refinement: Refinement,
        vectors: &mut RefinementVectors<T>,
    ) -> Refined {
        let a = self.a.as_matrix();
        if !is_finite(x.as_ref()) {
            // Numbers of x that overflow may matter little: without them the others may solve the system.
            let mut without = x.to_owned();
            finite_only(without.as_mut());
            let factors: &dyn Factorization<T> = &FiniteOnly(&*self.factored.factors);
            let refined = refine_in(a, factors, op, b, without.as_mut(), Refinement::Stagnation, vectors);
            if is_finite(without.as_ref()) && at_rounding_level::<T>(&refined.certificate) {
                x.copy_from(&without);
                return refined;
            }
        }
        let first = refine_in(a, &*self.factored.factors, op, b, x.as_mut(), refinement, vectors);
        let good = judge((a, op), x.as_ref(), b, &first.certificate, || true) == Outcome::Converged;
        if good || refinement != Refinement::Auto {
            return first;
        }
        let mut own = x.to_owned();
        let more = self.refine_further(op, b, &mut own, vectors);
        x.copy_from(&own);
        Refined {
            steps: first.steps + more.steps,
            operator_applications: first.operator_applications + more.operator_applications,
            solves: first.solves + more.solves,
            ..more
        }
    }

    /// All that is known for an answer that is not good: more steps, zeros where the pattern asks for them, other units, rows by themselves.
    fn refine_further(&self, op: Op, b: MatRef<'_, T>, x: &mut Mat<T>, vectors: &mut RefinementVectors<T>) -> Refined {
        let (a, factors) = (self.a.as_matrix(), &*self.factored.factors);
        let refine = |x: &mut Mat<T>, refinement, vectors: &mut RefinementVectors<T>| {
            refine_in(a, factors, op, b, x.as_mut(), refinement, vectors)
        };
        let is_good = |x: &Mat<T>, refined: &Refined| {
            judge((a, op), x.as_ref(), b, &refined.certificate, || true) == Outcome::Converged
        };
        // Of what is tried, and not yet taken.
        let mut others = RefinementVectors::default();
        let mut more = refine(x, Refinement::Stagnation, vectors);
        if !is_good(x, &more) && op == Op::Identity && set_unreached(self.a.rows(), b, x) {
            more = refine(x, Refinement::Steps(0), vectors);
        }
        if !is_good(x, &more)
            && op == Op::Identity
            && let Some(mut other) = self.refined_in_units(b)
        {
            let judged = refine(&mut other, Refinement::Steps(0), &mut others);
            if is_good(&other, &judged) {
                (*x, more) = (other, judged);
                std::mem::swap(vectors, &mut others);
            }
        }
        if !is_good(x, &more) {
            let mut zeroed = x.clone();
            if set_unresolved(self.a.rows(), factors, op, b, &mut zeroed) {
                let other = refine(&mut zeroed, Refinement::Auto, &mut others);
                if is_good(&zeroed, &other) {
                    (*x, more) = (zeroed, other);
                    std::mem::swap(vectors, &mut others);
                }
            }
        }
        for _ in 0..ROW_STEPS {
            let mut other = x.clone();
            if is_good(x, &more) || !refine_worst(self.a.rows(), factors, op, b, &mut other) {
                break;
            }
            let judged = refine(&mut other, Refinement::Steps(0), &mut others);
            if !(judged.certificate.componentwise_backward_error < more.certificate.componentwise_backward_error) {
                break;
            }
            (*x, more) = (other, judged);
            std::mem::swap(vectors, &mut others);
        }
        more
    }

    /// X refined as a solution of the scaled system that was factored: residuals of rows at the end of the range, which underflow in
    /// the units of A, do not there.
    fn refined_in_units(&self, b: MatRef<'_, T>) -> Option<Mat<T>> {
        let Factors::Behind(behind) = &self.factored.factors else { return None };
        let (transform, factors) = (behind.transform(), behind.inner());
        transform.scaling.as_ref()?;
        let (a, b) = (transform.apply(self.a.rows()), transform.gathered(b.as_ref()));
        let mut z = b.clone();
        factors.solve_in_place(z.as_mut());
        refine(&a, factors, Op::Identity, b.as_ref(), &mut z, Refinement::Stagnation);
        let mut x = Mat::zeros(z.nrows(), z.ncols());
        transform.scatter_columns(&z, x.as_mut());
        Some(x)
    }
}

/// Factors whose solutions have zeros where numbers overflow.
struct FiniteOnly<'a, T: Scalar>(&'a dyn Factorization<T>);

impl<T: Scalar> Factorization<T> for FiniteOnly<'_, T> {
    fn n(&self) -> usize {
        self.0.n()
    }
    fn method(&self) -> &'static str {
        self.0.method()
    }
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        self.0.solve_op_in_place(op, x.as_mut());
        finite_only(x);
    }
    /// Never: the factors are lent for solves.
    fn refactor(&mut self, _: Given<'_, T>, _: &mut dyn Monitor) -> bt_direct::Result<()> {
        let why = "these factors are lent for solves; refactor those that they are".into();
        Err(InputError::InvalidStructure { what: "refactorisation", why }.into())
    }
    fn stats(&self) -> FactorStats {
        self.0.stats()
    }
    fn log_det(&self) -> LogDet<T> {
        self.0.log_det()
    }
}

/// Zeros in the place of what is not finite.
fn finite_only<T: Scalar>(mut x: MatMut<'_, T>) {
    for column in x.as_mut().col_iter_mut() {
        column.iter_mut().filter(|v| !Scalar::is_finite(**v)).for_each(|v| *v = zero());
    }
}

/// e with 2⁻ᵉ·b half as far from the middle of the range as b, and x with it wherever it is; 0 where b is not near its ends.
fn middle_exponent<T: Scalar>(b: &[T]) -> i32 {
    let range = <T::Real as RealScalar>::MAX.to_f64().log2();
    let exponent = max_abs(b).log2();
    if exponent.is_finite() && exponent.abs() > range / 2.0 { (exponent / 2.0).floor() as i32 } else { 0 }
}
