//! BiCGSTAB with right preconditioning, for any nonsingular A.
//!
//! H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), doi:10.1137/0913035.
//!
//! Non-standard: ρ = (r̂, r) or (r̂, v) negligible against the norms of its vectors restarts the method once from the
//! present residual before it is a breakdown; ω is taken by the rule of Sleijpen & van der Vorst (Numer. Algorithms 10
//! (1995), doi:10.1007/BF02140769), which keeps it away from zero where s and A·s are nearly orthogonal; claims of
//! convergence are checked against b − A·x, the best iterate is returned. x takes a step when p takes the next. A residual
//! whose square could leave the range is iterated on as s·r, s a power of two.
//!
//! Storage: 8n scalars. Cost of an iteration: two products, two applications of M, 24n flops, and 22n scalars of traffic
//! in five passes beside them.

use bt_formats::{
    Breakdown, Error, LinearOperator, Monitor, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, one, zero,
};

use crate::blas1::{ConjValue, divide, over, pass, square};
use crate::krylov::{Best, Next, Watch, meets, normalize};
use crate::preconditioner::Preconditioner;
use crate::recurrence::{self, Recurrence};
use crate::system::{KrylovSystem, Local, System};

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
    machine: Machine<T>,
    input: Vec<T>,
    output: Vec<T>,
}

impl<T: Scalar> BiCgStab<T> {
    /// For systems of n unknowns.
    pub fn new(n: usize) -> Self {
        Self { machine: Machine::new(n), input: vec![zero(); n], output: vec![zero(); n] }
    }

    /// Bytes of the workspace: 8n scalars.
    pub fn bytes(&self) -> usize {
        self.machine.bytes() + 2 * size_of_val(&*self.input)
    }

    /// Iterates from the `x` given towards the solution of A·x = b; exits as [`crate::Cg::solve`] does.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], and [`Error::InvalidStructure`] for a preconditioner of
    /// kind `Variable`.
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
        let Self { machine, input, output } = self;
        recurrence::solve(machine, System { on: system, b }, [input, output], x, stop, monitor)
    }
}

/// Which product is awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Nothing,
    /// v = A·M⁻¹p.
    First,
    /// t = A·M⁻¹s.
    Second,
}

/// The method but for the vectors of the products.
pub(crate) struct Machine<T: Scalar> {
    r: Vec<T>,
    shadow: Vec<T>,
    p: Vec<T>,
    v: Vec<T>,
    p_hat: Vec<T>,
    best: Best<T>,
    rho: T,
    alpha: T,
    omega: T,
    residual: f64,
    /// s: all vectors are s times those of the system.
    scale: f64,
    /// ‖r̂‖₂, ‖s‖₂ and (r̂, r).
    norm_shadow: f64,
    norm_s: f64,
    next_rho: T,
    /// x ← x + α·p̂ + ω·ŝ is still to be done.
    pending: bool,
    fresh: bool,
    restarts: usize,
    awaits: Awaits,
}

impl<T: Scalar> Machine<T> {
    pub fn new(n: usize) -> Self {
        let vector = || vec![zero::<T>(); n];
        Self {
            r: vector(),
            shadow: vector(),
            p: vector(),
            v: vector(),
            p_hat: vector(),
            best: Best::new(n),
            rho: one(),
            alpha: one(),
            omega: one(),
            residual: 0.0,
            scale: 1.0,
            norm_shadow: 0.0,
            norm_s: 0.0,
            next_rho: zero(),
            pending: false,
            fresh: true,
            restarts: 0,
            awaits: Awaits::Nothing,
        }
    }

    /// α and ω as steps of x.
    fn steps(&self) -> [T; 2] {
        [self.alpha, self.omega].map(|step| step * T::rounded(1.0 / self.scale, 0.0))
    }

    /// x ← x + α·p̂ + ω·ŝ, if that is still to be done.
    fn move_x(&mut self, s_hat: &[T], x: &mut [T]) {
        if std::mem::take(&mut self.pending) {
            let [along_p, along_s] = self.steps();
            pass([&self.p_hat, s_hat], [x], &|[p_hat, s_hat], [x]| ([x + along_p * p_hat + along_s * s_hat], []));
        }
    }
}

impl<T: Scalar> Recurrence<T> for Machine<T> {
    fn check(&self, system: &System<'_, T>, x: &[T]) -> Result<(), Error> {
        system.check(self.r.len(), x)?;
        system.refuse_variable(METHOD)
    }

    fn begin<'a>(
        &mut self,
        system: &System<'_, T>,
        x: &[T],
        stop: &'a StopCriterion,
        monitor: &'a mut dyn Monitor,
    ) -> Watch<'a> {
        self.residual = system.residual(x, &mut self.r);
        self.scale = normalize(self.residual, &mut self.r);
        self.best.begin(x, self.residual);
        (self.fresh, self.restarts, self.awaits, self.pending) = (true, 0, Awaits::Nothing, false);
        Watch::of::<T>(stop, monitor, system.norm(system.b), self.residual)
    }

    #[inline(never)]
    fn advance(
        &mut self,
        system: &mut System<'_, T>,
        watch: &mut Watch<'_>,
        x: &mut [T],
        input: &mut [T],
        output: &mut [T],
    ) -> Option<Outcome> {
        let negligible = T::Real::EPSILON.to_f64();
        match self.awaits {
            Awaits::Nothing => {}
            Awaits::First => {
                // σ ← (r̂, A·M⁻¹p);  α ← ρ/σ
                let own = pass([&self.shadow, output], [], &|[c, v], []| ([], [c.conj_value() * v, square(v)]));
                let [sigma, vv] = system.sums(own);
                if sigma.abs().to_f64() > negligible * self.norm_shadow * system.norm_of(vv, output) {
                    self.alpha = divide(self.rho, sigma);
                    // v ← A·M⁻¹p;  p̂ ← M⁻¹p;  s ← r − α·v, in the place of r
                    let (alpha, written) = (self.alpha, [&mut self.r[..], &mut self.v, &mut self.p_hat]);
                    let [ss] = system.sums(pass([output, input], written, &|[v, p_hat], [r, _, _]| {
                        let s = r - alpha * v;
                        ([s, v, p_hat], [square(s)])
                    }));
                    self.norm_s = system.norm_of(ss, &self.r);
                    system.precondition(&self.r, input);
                    self.awaits = Awaits::Second;
                    return None;
                }
                watch.operator_applications += 1;
                watch.preconditioner_applications += 1;
                if self.restarts == RESTARTS {
                    return Some(Outcome::Breakdown(Breakdown::RhoZero));
                }
                (self.fresh, self.restarts) = (true, self.restarts + 1);
                self.residual = system.residual(x, &mut self.r);
                self.scale = normalize(self.residual, &mut self.r);
                watch.operator_applications += 1;
                watch.iterations += 1;
            }
            Awaits::Second => {
                // t ← A·M⁻¹s, in the place of the product
                watch.operator_applications += 2;
                watch.preconditioner_applications += 2;
                let own = pass([output, &self.r], [], &|[t, s], []| ([], [t.conj_value() * s, square(t)]));
                let [ts, tt] = system.sums(own);
                let (norm_s, norm_t) = (self.norm_s, system.norm_of(tt, output));
                self.omega = if norm_t == 0.0 || norm_s == 0.0 {
                    zero()
                } else {
                    // ω ← (t, s)/(t, t), enlarged to a cosine of 0.7
                    let cosine = ts.abs().to_f64() / norm_t / norm_s;
                    let stretch = if cosine < SMALL_ANGLE && cosine > negligible { SMALL_ANGLE / cosine } else { 1.0 };
                    let norm_t = T::Real::from_f64(norm_t);
                    over(over(ts, norm_t), norm_t) * T::rounded(stretch, 0.0)
                };
                // r ← s − ω·t;  ρ ← (r̂, r)
                let omega = self.omega;
                let [rr, rho] = system.sums(pass([output, &self.shadow], [&mut self.r], &|[t, c], [s]| {
                    let r = s - omega * t;
                    ([r], [square(r), c.conj_value() * r])
                }));
                let next = system.norm_of(rr, &self.r) / self.scale;
                self.best.leave(system, x, self.residual, next);
                (self.residual, self.next_rho, self.pending) = (next, rho, true);
                watch.iterations += 1;
                if self.omega == zero() && !meets(self.residual, watch.threshold) {
                    self.move_x(input, x);
                    return Some(Outcome::Breakdown(Breakdown::OmegaZero));
                }
            }
        }
        loop {
            let verdict = watch.verdict(self.residual);
            if verdict.is_some() {
                self.move_x(input, x);
            }
            match watch.next(verdict, system, x, &mut self.r, &mut self.residual) {
                Next::End(outcome) => return Some(outcome),
                Next::Restart => {
                    self.fresh = true;
                    self.scale = normalize(self.residual, &mut self.r);
                }
                Next::GoOn => {}
            }
            let norm_r = self.residual * self.scale;
            if self.fresh {
                self.shadow.copy_from_slice(&self.r);
                (self.norm_shadow, self.next_rho) = (norm_r, T::rounded(norm_r * norm_r, 0.0));
            }
            let next = self.next_rho;
            if !(next.abs().to_f64() > negligible * self.norm_shadow * norm_r) {
                if self.restarts < RESTARTS && !self.fresh {
                    (self.fresh, self.restarts) = (true, self.restarts + 1);
                    continue;
                }
                self.move_x(input, x);
                return Some(Outcome::Breakdown(Breakdown::RhoZero));
            }
            // x ← x + α·p̂ + ω·ŝ;  p ← r + β(p − ω·v), β = (ρ/ρ')(α/ω)
            if self.fresh {
                self.move_x(input, x);
                self.p.copy_from_slice(&self.r);
            } else {
                let beta = divide(next, self.rho) * divide(self.alpha, self.omega);
                let (omega, [along_p, along_s]) = (self.omega, self.steps());
                let read = [&self.r, &self.v, &self.p_hat, &*input];
                pass(read, [x, &mut self.p], &|[r, v, p_hat, s_hat], [x, p]| {
                    ([x + along_p * p_hat + along_s * s_hat, r + beta * (p - omega * v)], [])
                });
                self.pending = false;
            }
            (self.rho, self.fresh, self.awaits) = (next, false, Awaits::First);
            system.precondition(&self.p, input);
            return None;
        }
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        watch: Watch<'_>,
        system: &System<'_, T>,
        x: &mut [T],
        workspace: usize,
    ) -> SolveReport {
        watch.finish(METHOD, outcome, self.residual, system, &mut self.best, x, &mut self.r, workspace)
    }

    fn bytes(&self) -> usize {
        5 * size_of_val(&*self.r) + self.best.bytes()
    }
}

/// Restarts with a new shadow residual before ρ = 0 is a breakdown.
const RESTARTS: usize = 3;
