//! BiCGSTAB with right preconditioning, for any nonsingular A.
//!
//! H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), doi:10.1137/0913035.
//!
//! Non-standard: ρ = (r̂, r) or (r̂, v) negligible against the norms of its vectors restarts the method once from the
//! present residual before it is a breakdown; ω is taken by the rule of Sleijpen & van der Vorst (Numer. Algorithms 10
//! (1995), doi:10.1007/BF02140769), which keeps it away from zero where s and A·s are nearly orthogonal; claims of
//! convergence are checked against b − A·x, the best iterate is returned.
//!
//! Storage: 8n scalars. Cost of an iteration: two products, two applications of M, 20n flops beside them.

use bt_formats::{
    Breakdown, Error, LinearOperator, Monitor, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, one, zero,
};

use crate::blas1::{axpy, divide, dot, norm, xpby};
use crate::krylov::{Best, Next, System, Watch};
use crate::preconditioner::Preconditioner;

const METHOD: &str = "bicgstab";

/// |cos| below which s and A·s count as orthogonal.
const SMALL_ANGLE: f64 = 0.7;

/// Workspace of the method; `solve` allocates nothing but its report.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_iter::{BiCgStab, Identity};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [-2.0, 3.0, 1.0], [0.0, -1.0, 2.0]].as_ref())?;
/// let mut x = [0.0; 3];
/// let report =
///     BiCgStab::new(3).solve(&a, &mut Identity::new(3), &[5.0, 2.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
/// assert_eq!(report.outcome, Outcome::Converged);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BiCgStab<T: Scalar> {
    r: Vec<T>,
    shadow: Vec<T>,
    p: Vec<T>,
    v: Vec<T>,
    t: Vec<T>,
    p_hat: Vec<T>,
    s_hat: Vec<T>,
    best: Best<T>,
}

impl<T: Scalar> BiCgStab<T> {
    /// For systems of n unknowns.
    pub fn new(n: usize) -> Self {
        let vector = || vec![zero::<T>(); n];
        Self {
            r: vector(),
            shadow: vector(),
            p: vector(),
            v: vector(),
            t: vector(),
            p_hat: vector(),
            s_hat: vector(),
            best: Best::new(n),
        }
    }

    /// Bytes of the workspace: 8n scalars.
    pub fn bytes(&self) -> usize {
        7 * size_of_val(&*self.r) + self.best.bytes()
    }

    /// Iterates from the `x` given towards the solution of A·x = b; exits as [`crate::Cg::solve`] does.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], and [`Error::InvalidStructure`] for a preconditioner of
    /// kind `Variable`.
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
        system.refuse_variable(METHOD)?;
        let mut residual = system.residual(x, &mut self.r);
        let mut watch = Watch::new(stop, monitor, norm(b), residual);
        self.best.reset();
        let negligible = T::Real::EPSILON.to_f64();
        let (mut rho, mut alpha, mut omega) = (one::<T>(), one::<T>(), one::<T>());
        let (mut fresh, mut restarts) = (true, 0);
        let outcome = loop {
            match watch.next(&system, x, &mut self.r, &mut residual) {
                Next::End(outcome) => break outcome,
                Next::Restart => fresh = true,
                Next::GoOn => {}
            }
            if fresh {
                self.shadow.copy_from_slice(&self.r);
            }
            // ρ ← (r̂, r)
            let next = dot(&self.shadow, &self.r);
            if !(next.abs().to_f64() > negligible * norm(&self.shadow) * residual) {
                if restarts < RESTARTS && !fresh {
                    (fresh, restarts) = (true, restarts + 1);
                    continue;
                }
                break Outcome::Breakdown(Breakdown::RhoZero);
            }
            // p ← r + β(p − ω·v), β = (ρ/ρ')(α/ω)
            if fresh {
                self.p.copy_from_slice(&self.r);
            } else {
                let beta = divide(next, rho) * divide(alpha, omega);
                axpy(-omega, &self.v, &mut self.p);
                xpby(&self.r, beta, &mut self.p);
            }
            (rho, fresh) = (next, false);
            // v ← A·M⁻¹p;  α ← ρ/(r̂, v)
            system.precondition(&self.p, &mut self.p_hat);
            a.apply(one(), &self.p_hat, zero(), &mut self.v);
            let sigma = dot(&self.shadow, &self.v);
            if !(sigma.abs().to_f64() > negligible * norm(&self.shadow) * norm(&self.v)) {
                watch.operator_applications += 1;
                watch.preconditioner_applications += 1;
                if restarts < RESTARTS {
                    (fresh, restarts) = (true, restarts + 1);
                    residual = system.residual(x, &mut self.r);
                    watch.operator_applications += 1;
                    watch.iterations += 1;
                    continue;
                }
                break Outcome::Breakdown(Breakdown::RhoZero);
            }
            alpha = divide(rho, sigma);
            // s ← r − α·v, in the place of r
            axpy(-alpha, &self.v, &mut self.r);
            // t ← A·M⁻¹s
            system.precondition(&self.r, &mut self.s_hat);
            a.apply(one(), &self.s_hat, zero(), &mut self.t);
            watch.operator_applications += 2;
            watch.preconditioner_applications += 2;
            let (norm_s, norm_t) = (norm(&self.r), norm(&self.t));
            omega = if norm_t == 0.0 || norm_s == 0.0 {
                zero()
            } else {
                // ω ← (t, s)/(t, t), enlarged to a cosine of 0.7
                let ts = dot(&self.t, &self.r);
                let cosine = ts.abs().to_f64() / (norm_t * norm_s);
                let stretch = if cosine < SMALL_ANGLE && cosine > negligible { SMALL_ANGLE / cosine } else { 1.0 };
                ts * T::from_parts(stretch / norm_t / norm_t, 0.0)
            };
            // r ← s − ω·t;  x ← x + α·p̂ + ω·ŝ
            axpy(-omega, &self.t, &mut self.r);
            let next = norm(&self.r);
            self.best.leave(x, residual, next);
            axpy(alpha, &self.p_hat, x);
            axpy(omega, &self.s_hat, x);
            residual = next;
            watch.iterations += 1;
            if omega == zero() && !(residual <= watch.threshold) {
                break Outcome::Breakdown(Breakdown::OmegaZero);
            }
        };
        let workspace = self.bytes();
        Ok(watch.finish(METHOD, outcome, residual, &system, &self.best, x, &mut self.r, workspace))
    }
}

/// Restarts with a new shadow residual before ρ = 0 is a breakdown.
const RESTARTS: usize = 3;
