//! The preconditioned conjugate gradient method for Hermitian positive definite A and M, and its flexible form.
//!
//! M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952), doi:10.6028/jres.049.044; Y. Saad, Iterative
//! Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1, doi:10.1137/1.9780898718003.
//!
//! Non-standard: the norm tested is that of the residual, not of the preconditioned one; every claim of convergence is
//! checked against b − A·x, and the iteration goes on from there while that helps (residual replacement); a step of
//! negative curvature and an indefinite M end it by name; the best iterate is returned.
//!
//! The flexible form takes β = −(A·p, z)/(A·p, p), which keeps the next direction A-orthogonal to the last one whatever M did
//! in between, so that M may change from step to step (Y. Notay, SIAM J. Sci. Comput. 22 (2000) 1444–1460,
//! doi:10.1137/S1064827599362314, with one direction). It needs no further vector: A·p is still there.
//!
//! Storage: 5n scalars. Cost of an iteration: one product, one application of M, 10n flops, and 11n scalars of traffic
//! beside them; the flexible form one inner product more.

use bt_formats::{
    Breakdown, Error, LinearOperator, Monitor, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, zero,
};

use crate::blas1::{axpy, dot, norm, over, xpby};
use crate::krylov::{Best, Next, System, Watch};
use crate::preconditioner::Preconditioner;

/// How β is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// ρ/ρ', which relies on one M.
    Fixed,
    /// By orthogonality.
    Flexible,
}

/// Workspace of the method; `solve` allocates nothing but its report.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_iter::{Cg, Jacobi};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// let mut x = [0.0; 3];
/// let report = Cg::new(3).solve(&a, &mut Jacobi::new(&a)?, &[5.0, 5.0, 3.0], &mut x, &StopCriterion::default(), &mut ())?;
/// assert_eq!(report.outcome, Outcome::Converged);
/// assert!(report.iterations <= 3 && x.iter().all(|v| (v - 1.0f64).abs() < 1e-7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cg<T: Scalar> {
    r: Vec<T>,
    z: Vec<T>,
    p: Vec<T>,
    q: Vec<T>,
    best: Best<T>,
    form: Form,
}

impl<T: Scalar> Cg<T> {
    /// For systems of n unknowns.
    pub fn new(n: usize) -> Self {
        let vector = || vec![zero::<T>(); n];
        Self { r: vector(), z: vector(), p: vector(), q: vector(), best: Best::new(n), form: Form::Fixed }
    }

    /// The flexible form: the preconditioner may change in every step.
    pub fn flexible(n: usize) -> Self {
        Self { form: Form::Flexible, ..Self::new(n) }
    }

    fn method(&self) -> &'static str {
        match self.form {
            Form::Fixed => "cg",
            Form::Flexible => "fcg",
        }
    }

    /// Bytes of the workspace: 5n scalars.
    pub fn bytes(&self) -> usize {
        4 * size_of_val(&*self.r) + self.best.bytes()
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the iterate of the smallest residual seen, and its residual is recomputed. The backward
    /// errors of the report's certificate are NaN, since an operator has no norm: see [`bt_formats::certify`].
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], and [`Error::InvalidStructure`] for a preconditioner of
    /// kind `Variable`, which the flexible form takes.
    pub fn solve(
        &mut self,
        a: &dyn LinearOperator<T>,
        m: &mut dyn Preconditioner<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        let mut system = System { a, m, b };
        system.check(self.r.len(), x)?;
        if self.form == Form::Fixed {
            system.refuse_variable(self.method())?;
        }
        // r ← b − A·x
        let mut residual = system.residual(x, &mut self.r);
        let mut watch = Watch::new(stop, monitor, norm(b), residual);
        self.best.reset();
        // Negative until the first direction: p ← z.
        let mut rho = T::Real::default();
        let mut fresh = true;
        // pᴴ·A·p of the last direction.
        let mut curvature = T::Real::default();
        let outcome = loop {
            match watch.next(&system, x, &mut self.r, &mut residual) {
                Next::End(outcome) => break outcome,
                Next::Restart => fresh = true,
                Next::GoOn => {}
            }
            // z ← M⁻¹r;  ρ ← rᴴz
            system.precondition(&self.r, &mut self.z);
            watch.preconditioner_applications += 1;
            let next = dot(&self.r, &self.z).re();
            if !(next > zero()) {
                break Outcome::Breakdown(if next.to_f64().is_nan() {
                    Breakdown::NonFinite
                } else {
                    Breakdown::IndefinitePreconditioner
                });
            }
            // p ← z + β·p,  β = ρ/ρ' or −(A·p)ᴴz/pᴴA·p
            if fresh {
                self.p.copy_from_slice(&self.z);
            } else {
                let beta = match self.form {
                    Form::Fixed => T::from_real(next / rho),
                    Form::Flexible => -over(dot(&self.q, &self.z), curvature),
                };
                xpby(&self.z, beta, &mut self.p);
            }
            (rho, fresh) = (next, false);
            // q ← A·p;  α ← ρ/pᴴq
            a.apply(bt_formats::one(), &self.p, zero(), &mut self.q);
            watch.operator_applications += 1;
            curvature = dot(&self.p, &self.q).re();
            if !(curvature > zero()) {
                break Outcome::Breakdown(if curvature.to_f64().is_nan() {
                    Breakdown::NonFinite
                } else {
                    Breakdown::IndefiniteOperator
                });
            }
            let alpha = T::from_real(rho / curvature);
            // r ← r − α·q;  x ← x + α·p
            axpy(-alpha, &self.q, &mut self.r);
            let next = norm(&self.r);
            self.best.leave(x, residual, next);
            axpy(alpha, &self.p, x);
            residual = next;
            watch.iterations += 1;
        };
        let workspace = self.bytes();
        Ok(watch.finish(self.method(), outcome, residual, &system, &self.best, x, &mut self.r, workspace))
    }
}
