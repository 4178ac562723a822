//! A block-tridiagonal system without every other block: the odd ones' Schur complement, as an operator for Krylov methods.
//!
//! With the even blocks e eliminated and the odd ones o scaled by their own diagonal blocks from the right,
//!
//! ```text
//! B·u = g,   B = I − Aₒₑ·Dₑ⁻¹·Aₑₒ·Dₒ⁻¹,   g = bₒ − Aₒₑ·Dₑ⁻¹·bₑ;   xₒ = Dₒ⁻¹·u,   xₑ = Dₑ⁻¹·(bₑ − Aₑₒ·xₒ)
//! ```
//!
//! b − A·x vanishes in the rows of e, to rounding, and is g − B·u in those of o: a tolerance means the same for both systems. One
//! product solves once with D and passes once over the couplings, what a sweep of `block-redblack` takes but for a third half of D,
//! and there is no product with A beside it; vectors are half as long.
//!
//! H. C. Elman, G. H. Golub, Iterative methods for cyclically reduced non-self-adjoint linear systems, Math. Comp. 54 (1990)
//! 671–700, doi:10.1090/S0025-5718-1990-1011442-X: there for points and lines of a grid. Departure: the reduced matrix is never formed.
//!
//! Storage: the factors of D, A in hybrid storage (shared), 3n + 2nₒ scalars. Cost of a product: a solve with D, the couplings once, and 2n
//! numbers read and n/2 written besides.

use std::sync::{Arc, Mutex, PoisonError};

use bt_direct::Result;
use bt_formats::{
    BlockTridiagonal, LinearOperator, Matrix, Note, Op, Outcome, Par, RealScalar, Scalar, SolveReport, StopCriterion,
    certify, norm2, one, zero,
};
use faer::MatRef;

use crate::balanced::Balanced;
use crate::block_diagonal::check_finite;
use crate::block_set::BlockSet;
use crate::krylov::{finite, judge};

/// The reduced system of a matrix. As an operator it is B.
///
/// ```
/// use bt_formats::{BlockTridiagonal, HybridLayout, Outcome, StopCriterion};
/// use bt_iter::{BiCgStab, CyclicallyReduced, Identity};
/// use bt_queue::CloudCase;
/// let case = CloudCase::by_name("Cloud16-100")?;
/// let a = BlockTridiagonal::from_csr(&case.matrix()?, case.partition()?, HybridLayout::default())?;
/// let mut reduced = CyclicallyReduced::new(a)?;
/// let (mut bicgstab, mut one) = (BiCgStab::new(reduced.order()), Identity::new(reduced.order()));
/// let (b, mut x) = (vec![1.0; 1600], vec![0.0; 1600]);
/// let report = reduced.solve(&b, &mut x, &StopCriterion::default(), &mut |operator, g, u, stop| {
///     bicgstab.solve(operator, &mut one, g, u, stop, &mut ())
/// })?;
/// assert_eq!(report.outcome, Outcome::Converged);
/// assert!(report.certificate.relative_residual <= 1e-8 && report.iterations < 40);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CyclicallyReduced<T: Scalar> {
    a: Arc<BlockTridiagonal<T>>,
    even: BlockSet<T>,
    odd: BlockSet<T>,
    /// n zeros.
    nothing: Vec<T>,
    work: Mutex<Scratch<T>>,
}

struct Scratch<T> {
    /// Of length n.
    x: Vec<T>,
    /// The rows of the even blocks, and of the odd ones.
    even: Vec<T>,
    odd: Vec<T>,
    /// Right-hand side and solution of the reduced system.
    g: Vec<T>,
    u: Vec<T>,
}

/// Runs of the method that go on from a claim which the residual of A·x = b does not bear out, at most.
const CLAIMS: usize = 3;

/// The report of a run that went on where another ended.
fn then(before: SolveReport, last: &SolveReport) -> SolveReport {
    SolveReport {
        outcome: last.outcome,
        iterations: before.iterations + last.iterations,
        recurrence_residual: last.recurrence_residual,
        operator_applications: before.operator_applications + last.operator_applications,
        preconditioner_applications: before.preconditioner_applications + last.preconditioner_applications,
        ..before
    }
}

/// A Krylov method on B·u = g from the u given, zero at first, with the tolerance of the whole system.
pub type OnReduced<'a, T> =
    dyn FnMut(&dyn LinearOperator<T>, &[T], &mut [T], &StopCriterion) -> bt_formats::Result<SolveReport> + 'a;

impl<T: Scalar> CyclicallyReduced<T> {
    /// Factors the diagonal blocks; tridiagonal ones with interchanges where a pivot vanishes.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Singular`] naming a diagonal block that is singular; [`bt_direct::FactorError::Input`] on a NaN or
    /// infinity.
    ///
    /// # Cost
    /// Σ kⱼ for tridiagonal blocks, Σ kⱼ³ for dense ones.
    #[inline(never)]
    pub fn new(a: impl Into<Arc<BlockTridiagonal<T>>>) -> Result<Self> {
        let a = a.into();
        check_finite(&a)?;
        let [even, odd] = BlockSet::colours(&a)?;
        let vector = |n: usize| vec![zero::<T>(); n];
        let (n, rows, order) = (a.n(), even.partition().n(), odd.partition().n());
        let work = Scratch { x: vector(n), even: vector(rows), odd: vector(order), g: vector(order), u: vector(order) };
        Ok(Self { a, even, odd, nothing: vector(n), work: Mutex::new(work) })
    }

    /// Rows of the odd blocks: unknowns of the reduced system.
    pub fn order(&self) -> usize {
        self.odd.partition().n()
    }

    /// Bytes of the factors and vectors.
    pub fn bytes(&self) -> usize {
        let vectors = 3 * self.a.n() + 2 * self.order();
        self.even.bytes() + self.odd.bytes() + vectors * size_of::<T>()
    }

    /// A·x = b from x = 0 by `method` on the reduced system. The report is that of the method, but for the certificate, which is that of
    /// x and A, and the outcome, which the residual of x decides. Allocates nothing but its report.
    ///
    /// # Errors
    /// Those of `method`.
    ///
    /// # Panics
    /// When a length is not n.
    #[inline(never)]
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        method: &mut OnReduced<'_, T>,
    ) -> bt_formats::Result<SolveReport> {
        let n = self.a.n();
        assert_eq!((b.len(), x.len()), (n, n), "lengths of b and x");
        let balanced = Balanced::new(b);
        let mut report = self.on_balanced(&balanced.b, x, &balanced.criterion(stop), method)?;
        balanced.leave(x, &mut report);
        Ok(report)
    }

    fn on_balanced(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        method: &mut OnReduced<'_, T>,
    ) -> bt_formats::Result<SolveReport> {
        let (n, order, par) = (self.a.n(), self.order(), self.parallel());
        let Self { a, even, odd, work, .. } = self;
        let (a, partition) = (&**a, a.partition());
        let work = work.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The method's products want the other vectors. After a panic there these are gone.
        let (mut g, mut u) = (std::mem::take(&mut work.g), std::mem::take(&mut work.u));
        g.resize(order, zero());
        u.resize(order, zero());
        // g ← bₒ − Aₒₑ·Dₑ⁻¹·bₑ
        even.gather(partition, b, &mut work.even);
        even.solve_into(partition, &work.even, x, par);
        odd.couple(a, b, x, &mut g, par);
        u.fill(zero());
        // x = 0 to start with: the residual there is b.
        let norm_b = norm2(b);
        let threshold = stop.threshold(norm_b, norm_b);
        let mut reduced = StopCriterion { rtol: 0.0, atol: threshold, ..*stop };
        let (mut total, mut residual, mut ended) = (None::<SolveReport>, f64::INFINITY, Ok(()));
        for _ in 0..=CLAIMS {
            match method(self, &g, &mut u, &reduced) {
                Ok(report) => {
                    total = Some(match total.take() {
                        None => report,
                        Some(before) => then(before, &report),
                    });
                }
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
            // xₒ ← Dₒ⁻¹·u,  xₑ ← Dₑ⁻¹·(bₑ − Aₑₒ·xₒ)
            let Self { a, even, odd, work, .. } = &mut *self;
            let (a, partition) = (&**a, a.partition());
            let work = work.get_mut().unwrap_or_else(PoisonError::into_inner);
            odd.solve_into(partition, &u, x, par);
            even.couple(a, b, x, &mut work.even, par);
            even.solve_into(partition, &work.even, x, par);
            let before = residual;
            work.x.copy_from_slice(b);
            a.apply_op(Op::Identity, -one::<T>(), x, one(), &mut work.x, par);
            residual = if finite(x) { norm2(&work.x) } else { f64::INFINITY };
            let claimed = total.as_ref().is_some_and(|report| report.outcome == Outcome::Converged);
            if !(claimed && residual > threshold && residual < before) {
                break;
            }
            // The rows of the even blocks have residuals too, of rounding: less is left for the others.
            reduced.atol *= 0.5 * threshold / residual;
            reduced.max_iters = stop.max_iters.saturating_sub(total.as_ref().map_or(0, |report| report.iterations));
        }
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        (work.g, work.u) = (g, u);
        ended?;
        if !(residual <= norm_b && residual.is_finite()) {
            x.fill(zero());
            residual = norm_b;
        }
        let mut report = total.expect("one solve at least");
        let attainable = T::Real::EPSILON.to_f64() * norm_b;
        report.outcome = judge(report.outcome, residual, threshold, attainable);
        let column = |v| MatRef::from_column_major_slice(v, n, 1);
        report.certificate = certify(&*self.a, Op::Identity, column(x), column(b));
        if matches!(report.outcome, Outcome::Loose | Outcome::FalseConvergence) {
            report.notes.push(Note::ReducedResidual { threshold, residual });
        }
        report.notes.push(Note::ReducedSystem { order, unknowns: n });
        Ok(report)
    }

    fn parallel(&self) -> Par {
        Par::auto(Matrix::bytes(&*self.a))
    }
}

impl<T: Scalar> LinearOperator<T> for CyclicallyReduced<T> {
    fn nrows(&self) -> usize {
        self.order()
    }
    fn ncols(&self) -> usize {
        self.order()
    }
    #[inline(never)]
    fn apply(&self, alpha: T, u: &[T], beta: T, y: &mut [T]) {
        assert_eq!((u.len(), y.len()), (self.order(), self.order()), "lengths of u and y");
        let (par, partition) = (self.parallel(), self.a.partition());
        let Scratch { x, even, odd, .. } = &mut *self.work.lock().unwrap_or_else(PoisonError::into_inner);
        // xₒ ← Dₒ⁻¹·u,  xₑ ← −Dₑ⁻¹·Aₑₒ·xₒ,  w ← −Aₒₑ·xₑ,  B·u = u − w
        self.odd.solve_into(partition, u, x, par);
        self.even.couple(&self.a, &self.nothing, x, even, par);
        self.even.solve_into(partition, even, x, par);
        self.odd.couple(&self.a, &self.nothing, x, odd, par);
        for ((y, u), w) in y.iter_mut().zip(u).zip(&*odd) {
            let product = alpha * (*u - *w);
            *y = if beta == zero() { product } else { product + beta * *y };
        }
    }
}
