//! The preconditioned conjugate gradient method for Hermitian positive definite A and M, and its flexible form.
//!
//! M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952), doi:10.6028/jres.049.044; Y. Saad, Iterative
//! Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1, doi:10.1137/1.9780898718003.
//!
//! Non-standard: the norm tested is that of the residual, not of the preconditioned one; every claim of convergence is
//! checked against b − A·x, and the iteration goes on from there while that helps (residual replacement); a step of
//! negative curvature and an indefinite M end it by name; the best iterate is returned. x takes a step when p takes the
//! next, in one pass over both. A residual whose square could leave the range is iterated on as s·r, s a power of two.
//!
//! The flexible form takes β = −(A·p, z)/(A·p, p), which keeps the next direction A-orthogonal to the last one whatever M did
//! in between, so that M may change from step to step (Y. Notay, SIAM J. Sci. Comput. 22 (2000) 1444–1460,
//! doi:10.1137/S1064827599362314, with one direction). It needs no further vector: A·p is still there.
//!
//! Storage: 5n scalars. Cost of an iteration: one product, one application of M, 10n flops, and 12n scalars of traffic
//! beside them, 10n without M; the flexible form one inner product more.

use bt_formats::{
    Breakdown, Error, LinearOperator, Monitor, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, zero,
};

use crate::blas1::{axpy, over, pass, square};
use crate::krylov::{Best, Next, Watch, normalize};
use crate::preconditioner::{Preconditioner, PreconditionerKind};
use crate::recurrence::{self, Recurrence};
use crate::system::{KrylovSystem, Local, System};

/// How β is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
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
    machine: Machine<T>,
    p: Vec<T>,
    q: Vec<T>,
}

impl<T: Scalar> Cg<T> {
    /// For systems of n unknowns.
    pub fn new(n: usize) -> Self {
        Self::with_form(n, Form::Fixed)
    }

    /// The flexible form: the preconditioner may change in every step.
    pub fn flexible(n: usize) -> Self {
        Self::with_form(n, Form::Flexible)
    }

    fn with_form(n: usize, form: Form) -> Self {
        Self { machine: Machine::new(n, form), p: vec![zero(); n], q: vec![zero(); n] }
    }

    /// Bytes of the workspace: 5n scalars.
    pub fn bytes(&self) -> usize {
        self.machine.bytes() + 2 * size_of_val(&*self.p)
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the iterate of the smallest residual seen, the start included, and its residual is recomputed: that
    /// decides on the outcome. The backward errors of the report's certificate are NaN, since an operator has no norm: see
    /// [`bt_formats::certify`]. A start other than zero is kept for the time of the call, n scalars more, and so is a right-hand side
    /// at an end of the range, times a power of two ([`crate::Balanced`]).
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], and [`Error::InvalidStructure`] for a preconditioner of
    /// kind `Variable`, which the flexible form takes.
    #[inline(never)]
    pub fn solve(
        &mut self,
        a: &dyn LinearOperator<T>,
        m: &mut dyn Preconditioner<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        self.solve_on(&mut Local { a, m }, b, x, stop, monitor)
    }

    /// The same for a system that is given by what the method asks of it; b and x are the rows that are here.
    ///
    /// # Errors
    /// As `solve`.
    #[inline(never)]
    pub fn solve_on(
        &mut self,
        system: &mut dyn KrylovSystem<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport, Error> {
        recurrence::solve(&mut self.machine, System { on: system, b }, [&mut self.p, &mut self.q], x, stop, monitor)
    }
}

/// The method but for p, which A is applied to, and q = A·p.
pub(crate) struct Machine<T: Scalar> {
    form: Form,
    r: Vec<T>,
    z: Vec<T>,
    best: Best<T>,
    /// rᴴz of the last step.
    rho: T::Real,
    /// pᴴ·A·p of the last direction.
    curvature: T::Real,
    residual: f64,
    /// s: r and p are s times those of the system.
    scale: f64,
    /// The step that x has still to take, along p.
    pending: Option<T>,
    /// No direction yet, or none worth keeping: p ← z.
    fresh: bool,
    /// q is awaited.
    asked: bool,
}

impl<T: Scalar> Machine<T> {
    pub fn new(n: usize, form: Form) -> Self {
        let vector = || vec![zero::<T>(); n];
        Self {
            form,
            r: vector(),
            z: vector(),
            best: Best::new(n),
            rho: zero(),
            curvature: zero(),
            residual: 0.0,
            scale: 1.0,
            pending: None,
            fresh: true,
            asked: false,
        }
    }

    fn method(&self) -> &'static str {
        match self.form {
            Form::Fixed => "cg",
            Form::Flexible => "fcg",
        }
    }

    /// x ← x + α·p, if that is still to be done.
    fn move_x(&mut self, p: &[T], x: &mut [T]) {
        if let Some(step) = self.pending.take() {
            axpy(step, p, x);
        }
    }
}

impl<T: Scalar> Recurrence<T> for Machine<T> {
    fn check(&self, system: &System<'_, T>, x: &[T]) -> Result<(), Error> {
        system.check(self.r.len(), x)?;
        if self.form == Form::Fixed { system.refuse_variable(self.method()) } else { Ok(()) }
    }

    fn begin<'a>(
        &mut self,
        system: &System<'_, T>,
        x: &[T],
        stop: &'a StopCriterion,
        monitor: &'a mut dyn Monitor,
    ) -> Watch<'a> {
        // r ← b − A·x
        self.residual = system.residual(x, &mut self.r);
        self.scale = normalize(self.residual, &mut self.r);
        self.best.begin(x, self.residual);
        (self.fresh, self.asked, self.pending) = (true, false, None);
        Watch::of::<T>(stop, monitor, system.norm(system.b), self.residual)
    }

    #[inline(never)]
    fn advance(
        &mut self,
        system: &mut System<'_, T>,
        watch: &mut Watch<'_>,
        x: &mut [T],
        p: &mut [T],
        q: &mut [T],
    ) -> Option<Outcome> {
        if self.asked {
            // q = A·p;  α ← ρ/pᴴq
            watch.operator_applications += 1;
            self.curvature = system.dot(p, q).re();
            if !self.curvature.to_f64().is_finite() {
                return Some(Outcome::Breakdown(Breakdown::NonFinite));
            }
            if !(self.curvature > zero()) {
                return Some(Outcome::Breakdown(Breakdown::IndefiniteOperator));
            }
            let alpha = T::from_real(self.rho / self.curvature);
            // r ← r − α·q
            let [rr] = system.sums(pass([q], [&mut self.r], &|[q], [r]| {
                let r = r - alpha * q;
                ([r], [square(r)])
            }));
            let next = system.norm_of(rr, &self.r) / self.scale;
            self.best.leave(system, x, self.residual, next);
            self.pending = Some(alpha * T::rounded(1.0 / self.scale, 0.0));
            self.residual = next;
            watch.iterations += 1;
        }
        let verdict = watch.verdict(self.residual);
        if verdict.is_some() {
            self.move_x(p, x);
        }
        match watch.next(verdict, system, x, &mut self.r, &mut self.residual) {
            Next::End(outcome) => return Some(outcome),
            Next::Restart => {
                self.fresh = true;
                self.scale = normalize(self.residual, &mut self.r);
            }
            Next::GoOn => {}
        }
        // z ← M⁻¹r;  ρ ← rᴴz
        watch.preconditioner_applications += 1;
        let (z, next) = if system.on.kind() == PreconditionerKind::Identity {
            let norm = self.residual * self.scale;
            (&self.r, T::Real::from_f64(norm * norm))
        } else {
            system.precondition(&self.r, &mut self.z);
            (&self.z, system.dot(&self.r, &self.z).re())
        };
        if !(next > zero() && next.to_f64().is_finite()) {
            self.move_x(p, x);
            return Some(Outcome::Breakdown(if next.to_f64().is_finite() {
                Breakdown::IndefinitePreconditioner
            } else {
                Breakdown::NonFinite
            }));
        }
        // x ← x + α·p;  p ← z + β·p,  β = ρ/ρ' or −(A·p)ᴴz/pᴴA·p
        if self.fresh {
            p.copy_from_slice(z);
        } else {
            let beta = match self.form {
                Form::Fixed => T::from_real(next / self.rho),
                Form::Flexible => -over(system.dot(q, z), self.curvature),
            };
            let step = self.pending.take().unwrap_or_default();
            pass([z], [x, p], &|[z], [x, p]| ([x + step * p, z + beta * p], []));
        }
        (self.rho, self.fresh, self.asked) = (next, false, true);
        None
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        watch: Watch<'_>,
        system: &System<'_, T>,
        x: &mut [T],
        workspace: usize,
    ) -> SolveReport {
        watch.finish(self.method(), outcome, self.residual, system, &mut self.best, x, &mut self.r, workspace)
    }

    fn bytes(&self) -> usize {
        2 * size_of_val(&*self.r) + self.best.bytes()
    }
}
