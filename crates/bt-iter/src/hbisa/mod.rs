//! HBISA, the hybrid block iteration for block-tridiagonal systems, with its accelerated forms.
//!
//! With A = L + D + U (block lower, diagonal, upper part):
//!
//! ```text
//! Eq. (6)  D·xⁱ⁺¹ = b − L·xⁱ − U·xⁱ         block Jacobi, all blocks independent
//! Eq. (7)  (D + L)·xⁱ⁺¹ = b − U·xⁱ          block Gauss–Seidel, blocks in order
//! ```
//!
//! and from Eq. (7): symmetric (forwards, then backwards); red–black (even blocks, then odd ones: the blocks of a colour
//! are independent, and the rate is that of Eq. (7), ρ(J)², since the block graph is 2-cyclic); SOR in that order,
//! xⱼ ← xⱼ + ω(D⁻¹tⱼ − xⱼ), with ω given or tuned; Chebyshev acceleration of the even blocks, the odd ones eliminated.
//! The last two learn the spectrum from their first sweeps (see `tuning.rs`).
//!
//! Source: Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x. Departures: the paper's
//! Algorithm 1 as printed updates the residual from the previous x and stops after one step; the equations are what is
//! implemented. The paper stops on ‖xⁱ⁺¹ − xⁱ‖∞; here that is one of two rules. It calls Eq. (7) sequential; in red–black
//! order it is parallel. Chebyshev: G. H. Golub, R. S. Varga, Numer. Math. 3 (1961), doi:10.1007/BF01386013.
//!
//! The residual comes for free: with t = b − (L + U)·x and s = D·x, b − A·x = t − s, and every form knows D·x.
//!
//! Jacobi converges iff ρ(D⁻¹(L+U)) < 1, Gauss–Seidel iff ρ((D+L)⁻¹U) < 1.
//!
//! Storage: the factors of D and 4n scalars; for blocks in order max kⱼ more, for two colours n/2, for Chebyshev another n. An
//! iteration costs one product with L + U and one solve with D, the symmetric form three and two. All forms give the same bits
//! for any number of threads; Jacobi and the red–black ones run their blocks in parallel.

mod rate;
mod sweep;
mod tuning;

use std::ops::ControlFlow;
use std::time::Instant;

use bt_direct::Result;
use bt_formats::{
    Baseline, BlockTridiagonal, Breakdown, Bytes, Error, Monitor, Note, Op, Outcome, Par, PhaseTimes, Progress,
    RealScalar, Scalar, SolveReport, StopCriterion, certify, norm2, one, zero,
};
use faer::MatRef;

use crate::balanced::Balanced;
use crate::blas1::{ConjValue, pass};
use crate::block_diagonal::{for_blocks, for_groups};
use crate::block_set::SweepFactors;
use crate::krylov::{finite, judge, meets};
use crate::quasi::QuasiBlockTridiagonal;
use rate::sweeps_left;
pub use rate::{Radius, Rate};
use sweep::Splitting;
use tuning::{Chebyshev, Spectrum, Tuner};

/// Which sweep is iterated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sweep {
    /// Eq. (6): every block from the previous iterate.
    Jacobi,
    /// Eq. (7): the block above from the current iterate.
    GaussSeidel,
    /// Eq. (7) forwards, then backwards.
    Symmetric,
    /// Eq. (7) with the even blocks before the odd ones.
    RedBlack,
    /// The same, relaxed.
    Sor(Relaxation),
    /// The same, accelerated by Chebyshev polynomials on the interval that the first sweeps show; SOR where the spectrum
    /// turns out to be complex.
    Chebyshev,
}

impl Sweep {
    /// Name of the method, as the command spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jacobi => "hbisa",
            Self::GaussSeidel => "hbisa-gs",
            Self::Symmetric => "hbisa-sgs",
            Self::RedBlack => "hbisa-redblack",
            Self::Sor(_) => "hbisa-sor",
            Self::Chebyshev => "hbisa-chebyshev",
        }
    }

    fn is_two_coloured(self) -> bool {
        matches!(self, Self::RedBlack | Self::Sor(_) | Self::Chebyshev)
    }

    fn is_tuned(self) -> bool {
        matches!(self, Self::Sor(Relaxation::Tuned) | Self::Chebyshev)
    }
}

/// ω of successive over-relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Relaxation {
    /// From the spectrum that the sweeps show.
    #[default]
    Tuned,
    /// Given, 0 < ω < 2.
    Fixed(f64),
}

/// What a red–black sweep does at present.
#[derive(Clone, Copy)]
enum Phase {
    /// Relaxation by ω, and the decrease a sweep predicted for it.
    Relaxed { omega: f64, predicted: Option<f64> },
    /// From the residual norm at its start.
    Chebyshev { polynomial: Chebyshev, start: f64 },
}

impl Phase {
    const PLAIN: Self = Self::Relaxed { omega: 1.0, predicted: None };
}

/// What the tolerance is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StopRule {
    /// ‖b − A·x‖₂ ≤ max(atol, rtol·baseline), the library's rule.
    #[default]
    Residual,
    /// ‖xⁱ⁺¹ − xⁱ‖∞ ≤ max(atol, rtol·‖xⁱ⁺¹‖∞), the paper's rule when rtol = 0. A small update does not bound the
    /// residual: the report's certificate says what the answer is worth.
    Update,
}

/// Claims of convergence that the true residual does not bear out, at most.
const CLAIMS: usize = 3;

/// The iteration on one matrix: factors of D and workspace. `solve` allocates nothing but its report.
pub struct Hbisa<'a, T: Scalar> {
    a: Splitting<'a, T>,
    factors: SweepFactors<T>,
    sweep: Sweep,
    rule: StopRule,
    /// The iterate that is not in the caller's vector.
    other: Vec<T>,
    t: Vec<T>,
    s: Vec<T>,
    best: Vec<T>,
    /// One block, or the rows of a colour.
    work: Vec<T>,
    /// Chebyshev's d and D·d, for the even blocks.
    direction: Vec<T>,
    phase: Phase,
    tuner: Tuner,
    setup: std::time::Duration,
}

impl<'a, T: Scalar> Hbisa<'a, T> {
    /// Factors the diagonal blocks of `a` and allocates the vectors. The tolerance is held against the residual.
    ///
    /// # Errors
    /// As [`Hbisa::with_options`].
    ///
    /// # Example
    /// ```
    /// use bt_formats::{BlockTridiagonal, HybridLayout, Outcome, StopCriterion};
    /// use bt_iter::{Hbisa, Sweep};
    /// use bt_queue::CloudCase;
    /// let case = CloudCase::by_name("Cloud16-100")?;
    /// let a = BlockTridiagonal::from_csr(&case.matrix()?, case.partition()?, HybridLayout::default())?;
    /// let mut x = vec![0.0; 1600];
    /// let report = Hbisa::new(&a, Sweep::GaussSeidel)?
    ///     .solve(&vec![1.0; 1600], &mut x, &StopCriterion::default(), &mut ());
    /// assert_eq!(report.outcome, Outcome::Converged);
    /// assert!(report.certificate.relative_residual <= 1e-8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(a: &'a BlockTridiagonal<T>, sweep: Sweep) -> Result<Self> {
        Self::with_options(a, sweep, StopRule::default())
    }

    /// Like [`Hbisa::new`], with the rule that says what the tolerance is held against.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Singular`] naming the diagonal block that is singular; [`bt_direct::FactorError::Input`] where the
    /// sweep has no relaxation between 0 and 2.
    #[inline(never)]
    pub fn with_options(a: &'a BlockTridiagonal<T>, sweep: Sweep, rule: StopRule) -> Result<Self> {
        Self::on(Splitting { blocks: a, quasi: None }, sweep, rule)
    }

    /// The same on a matrix with entries outside the three block diagonals: they go into the off-diagonal products.
    ///
    /// # Errors
    /// As [`Hbisa::with_options`], and [`bt_formats::Error::InvalidStructure`] for a sweep in red–black order where there are such
    /// entries: two colours are not enough then.
    pub fn quasi(a: &'a QuasiBlockTridiagonal<'a, T>, sweep: Sweep, rule: StopRule) -> Result<Self> {
        if sweep.is_two_coloured() && a.nnz_remainder() > 0 {
            return Err(Error::InvalidStructure {
                what: "blocks",
                why: format!(
                    "{} has two colours of blocks, but {} entries lie outside the three block diagonals; use hbisa, hbisa-gs or \
                     hbisa-sgs, or larger blocks",
                    sweep.name(),
                    a.nnz_remainder()
                ),
            }
            .into());
        }
        Self::on(Splitting { blocks: a.blocks(), quasi: Some(a) }, sweep, rule)
    }

    fn on(a: Splitting<'a, T>, sweep: Sweep, rule: StopRule) -> Result<Self> {
        if let Sweep::Sor(Relaxation::Fixed(omega)) = sweep
            && !(omega > 0.0 && omega < 2.0)
        {
            let why = format!("{omega} is not between 0 and 2, where relaxation can converge");
            return Err(Error::InvalidStructure { what: "omega", why }.into());
        }
        let start = Instant::now();
        let factors = match sweep {
            Sweep::Jacobi => SweepFactors::all(a.blocks),
            Sweep::GaussSeidel | Sweep::Symmetric => SweepFactors::each(a.blocks),
            Sweep::RedBlack | Sweep::Sor(_) | Sweep::Chebyshev => SweepFactors::colours(a.blocks),
        }?;
        let n = a.blocks.n();
        let vector = |n: usize| vec![zero::<T>(); n];
        let (other, t, s, best) = (vector(n), vector(n), vector(n), vector(n));
        let work = vector(factors.work(a.blocks.partition()));
        let direction = vector(match (&factors, sweep) {
            (SweepFactors::Colours([even, _]), Sweep::Chebyshev) => 2 * even.partition().n(),
            _ => 0,
        });
        let tuner = Tuner::default();
        let setup = start.elapsed();
        Ok(Self { a, factors, sweep, rule, other, t, s, best, work, direction, phase: Phase::PLAIN, tuner, setup })
    }

    /// Bytes of the workspace: 4n scalars; for Gauss–Seidel and its symmetric form max kⱼ more, for the forms with two colours the rows
    /// of the larger one, for Chebyshev twice those of the even blocks besides.
    pub fn bytes(&self) -> usize {
        (4 * self.t.len() + self.direction.len() + self.work.len()) * size_of::<T>()
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b.
    ///
    /// On every exit `x` is the best iterate: the one with the smallest norm that the rule saw, unless the residual of the start is
    /// smaller. That of x is recomputed, and decides on the outcome where the rule is on the residual; where sweeps claim it and the
    /// truth does not meet the target, they go on while that helps. A start other than zero, and a right-hand side at an end of the
    /// range ([`crate::Balanced`]), take n scalars more for the time of the call.
    ///
    /// # Panics
    /// When a length is not n.
    #[inline(never)]
    pub fn solve(&mut self, b: &[T], x: &mut [T], stop: &StopCriterion, monitor: &mut dyn Monitor) -> SolveReport {
        let n = self.t.len();
        assert_eq!((b.len(), x.len()), (n, n), "lengths of b and x");
        let balanced = Balanced::new(b);
        balanced.enter(x);
        let mut report = self.iterate(&balanced.b, x, &balanced.criterion(stop), monitor);
        balanced.leave(x, &mut report);
        report
    }

    fn iterate(&mut self, b: &[T], x: &mut [T], stop: &StopCriterion, monitor: &mut dyn Monitor) -> SolveReport {
        let start = Instant::now();
        let first = x.iter().any(|v| *v != zero()).then(|| x.to_vec());
        let par = Par::auto(self.a.bytes());
        // t⁰ and ‖b − A·x⁰‖
        let mut other = std::mem::take(&mut self.other);
        other.copy_from_slice(b);
        self.a.matrix().apply_op(Op::Identity, -one::<T>(), x, one(), &mut other, par);
        let (norm_b, norm_r0) = (norm2(b), norm2(&other));
        let threshold = stop.threshold(norm_b, norm_r0);
        // Residuals are reported relative to what rtol is relative to, updates as they are.
        let baseline = match (self.rule, stop.baseline) {
            (StopRule::Residual, Baseline::Rhs) if norm_b > 0.0 => norm_b,
            (StopRule::Residual, Baseline::InitialResidual) if norm_r0 > 0.0 => norm_r0,
            _ => 1.0,
        };
        self.begin(b, x, &other, par);

        // The iterate, and the place of the next one.
        let (mut current, mut next_x) = (&mut *x, &mut other[..]);
        let mut rate = Rate::default();
        let mut norm = match self.rule {
            StopRule::Residual => norm_r0,
            StopRule::Update => f64::INFINITY,
        };
        let mut best_norm = f64::INFINITY;
        let mut iterations = 0;
        // What sweeps have to claim, and their claims that the truth did not follow.
        let (mut claimed, mut claims) = (threshold, 0);
        let mut outcome = loop {
            let target = match self.rule {
                StopRule::Residual => claimed,
                StopRule::Update => stop.atol.max(stop.rtol * bt_formats::max_abs(current)),
            };
            let progress = Progress::Iteration { index: iterations, residual: norm / baseline };
            let flow = monitor.observe(progress);
            if norm.is_nan() || (iterations > 0 && norm.is_infinite()) {
                break Outcome::Breakdown(Breakdown::NonFinite);
            }
            if meets(norm, target) {
                if self.rule == StopRule::Update || iterations == 0 || claims == CLAIMS {
                    break Outcome::Converged;
                }
                let truth = self.residual(b, current, next_x, par);
                if !(truth > threshold) {
                    break Outcome::Converged;
                }
                (claimed, claims) = (0.5 * norm.min(threshold * (threshold / truth)), claims + 1);
            }
            if let ControlFlow::Break(()) = flow {
                break Outcome::Stopped;
            }
            if rate.diverges(norm) {
                break Outcome::Breakdown(Breakdown::Diverged);
            }
            if iterations == stop.max_iters {
                break Outcome::IterationLimit;
            }
            if stop.time_limit.is_some_and(|limit| start.elapsed() >= limit) {
                break Outcome::TimeLimit;
            }
            rate.predict(norm, target, iterations);
            let next = self.step(b, current, next_x, par);
            iterations += 1;
            if self.retune(current, next_x, next) {
                rate.restart();
            }
            // The best iterate is set aside only when the next one is worse: a convergent run never copies.
            if !(next <= norm) && norm < best_norm {
                self.best.copy_from_slice(current);
                best_norm = norm;
            }
            norm = next;
            std::mem::swap(&mut current, &mut next_x);
        };
        if !(norm <= best_norm) && best_norm.is_finite() {
            current.copy_from_slice(&self.best);
            norm = best_norm;
        }
        let believed = norm;
        let mut truth = if finite(current) { self.residual(b, current, next_x, par) } else { f64::INFINITY };
        if !(truth <= norm_r0 && truth.is_finite()) {
            match &first {
                Some(first) if norm_r0.is_finite() => current.copy_from_slice(first),
                _ => current.fill(zero()),
            }
            truth = if norm_r0.is_finite() { norm_r0 } else { norm_b };
            if outcome == Outcome::Converged {
                outcome = Outcome::Breakdown(Breakdown::Diverged);
            }
        }
        if iterations % 2 == 1 {
            next_x.copy_from_slice(current);
        }
        self.other = other;
        if self.rule == StopRule::Residual {
            outcome = judge(outcome, truth, threshold, T::Real::EPSILON.to_f64() * norm_b);
        }
        let elapsed = start.elapsed();
        self.report(b, x, outcome, iterations, (believed, truth), threshold, &rate, elapsed)
    }

    /// ‖b − A·x‖₂, by way of `r`.
    fn residual(&self, b: &[T], x: &[T], r: &mut [T], par: Par) -> f64 {
        r.copy_from_slice(b);
        self.a.matrix().apply_op(Op::Identity, -one::<T>(), x, one(), r, par);
        norm2(r)
    }

    /// t and s for x⁰ and r = b − A·x⁰; plain sweeps first.
    fn begin(&mut self, b: &[T], x: &[T], r: &[T], par: Par) {
        let Self { a, factors, t, s, .. } = self;
        let partition = a.blocks.partition();
        match factors {
            SweepFactors::Colours([even, odd]) => {
                let (t_even, t_odd) = t.split_at_mut(even.partition().n());
                let (s_even, s_odd) = s.split_at_mut(even.partition().n());
                for (set, t, s) in [(&*even, t_even, s_even), (odd, t_odd, s_odd)] {
                    set.couple(a.blocks, b, x, t, par);
                    set.gather(partition, r, s);
                }
            }
            SweepFactors::Each(_) if self.sweep == Sweep::GaussSeidel => {
                t.copy_from_slice(b);
                for_blocks(partition, t, par, &|j, t| a.subtract_upper(j, x, t));
                s.copy_from_slice(r);
            }
            _ => {
                s.copy_from_slice(r);
                self.right_hand_side(b, x, par);
            }
        }
        // D·x = t − r
        for (s, t) in self.s.iter_mut().zip(&self.t) {
            *s = *t - *s;
        }
        self.tuner = Tuner::default();
        self.phase = match self.sweep {
            Sweep::Sor(Relaxation::Fixed(omega)) => Phase::Relaxed { omega, predicted: None },
            _ => Phase::PLAIN,
        };
    }

    /// One sweep: x ← the iterate after `previous`. Returns the norm that the rule looks at.
    fn step(&mut self, b: &[T], previous: &[T], x: &mut [T], par: Par) -> f64 {
        // The rows whose b − A·x = t − s need not vanish: with ω = 1 those of the blocks that came first.
        let open = match (&self.factors, self.phase) {
            (SweepFactors::Colours([even, _]), Phase::Relaxed { omega: 1.0, .. }) => even.partition().n(),
            _ => x.len(),
        };
        match self.sweep {
            Sweep::Jacobi => self.jacobi(b, x, par),
            Sweep::GaussSeidel => self.gauss_seidel(b, x, par),
            Sweep::Symmetric => self.symmetric(b, previous, x, par),
            Sweep::RedBlack | Sweep::Sor(_) | Sweep::Chebyshev => self.red_black(b, previous, x, par),
        }
        match self.rule {
            StopRule::Residual => distance2(&self.t[..open], &self.s[..open]),
            // ‖xⁱ⁺¹ − xⁱ‖∞
            StopRule::Update => {
                x.iter().zip(previous).fold(0.0, |m: f64, (&new, &old)| m.max_nan((new - old).abs().to_f64()))
            }
        }
    }

    /// t ← b − (L + U)·x
    fn right_hand_side(&mut self, b: &[T], x: &[T], par: Par) {
        let Self { a, t, .. } = self;
        for_groups(a.blocks.partition(), t, par, &|blocks, t| a.couplings_residual(blocks, b, x, t));
    }

    /// After a sweep of a tuned form: another relaxation where the spectrum is known better now. True on a change.
    fn retune(&mut self, previous: &[T], x: &[T], norm: f64) -> bool {
        if !self.sweep.is_tuned() || !self.tuner.may_fit() {
            return false;
        }
        self.tuner.observe(x, previous);
        // Chebyshev polynomials where the interval allows, ω otherwise.
        let polynomial = |spectrum: &Spectrum| {
            let interval = spectrum.interval().filter(|&(_, high)| self.sweep == Sweep::Chebyshev && high < 1.0);
            interval.map(|(low, high)| Chebyshev::new(low, high))
        };
        let rate = |s: &Spectrum| polynomial(s).map_or_else(|| s.best_omega().1, |p| p.rate());
        let changed = match self.phase {
            Phase::Relaxed { omega, predicted } => self.tuner.learn(omega, predicted, rate),
            Phase::Chebyshev { polynomial, start } if polynomial.steps >= Tuner::PATIENCE => {
                let square = polynomial.explain(norm / start, self.tuner.same_direction());
                if let Some(square) = square {
                    self.tuner.widen(square);
                }
                square.is_some()
            }
            Phase::Chebyshev { .. } => false,
        };
        if changed {
            self.direction.fill(zero());
            self.phase = if let Some(polynomial) = polynomial(&self.tuner.spectrum) {
                Phase::Chebyshev { polynomial, start: norm }
            } else {
                let (omega, radius) = self.tuner.spectrum.best_omega();
                Phase::Relaxed { omega, predicted: Some(radius) }
            };
        }
        changed
    }

    /// What the tuning found.
    fn tuning_notes(&self, notes: &mut Vec<Note>) {
        match self.phase {
            Phase::Relaxed { omega, predicted: Some(radius) } => notes.push(Note::RelaxationTuned {
                omega,
                spectrum: self.tuner.spectrum.kind(),
                radius: self.tuner.spectrum.radius(),
                a_sweep: radius,
            }),
            Phase::Chebyshev { polynomial, .. } => notes.push(Note::ChebyshevTuned {
                spectrum: self.tuner.spectrum.kind(),
                radius: self.tuner.spectrum.radius(),
                a_sweep: polynomial.rate(),
            }),
            Phase::Relaxed { omega, .. } if omega != 1.0 => notes.push(Note::Relaxation { omega }),
            Phase::Relaxed { .. } => {}
        }
    }

    fn report(
        &self,
        b: &[T],
        x: &[T],
        outcome: Outcome,
        iterations: usize,
        (norm, truth): (f64, f64),
        threshold: f64,
        rate: &Rate,
        elapsed: std::time::Duration,
    ) -> SolveReport {
        let n = x.len();
        let certificate = certify(
            self.a.matrix(),
            Op::Identity,
            MatRef::from_column_major_slice(x, n, 1),
            MatRef::from_column_major_slice(b, n, 1),
        );
        let mut notes = vec![match self.rule {
            StopRule::Residual => Note::StoppedByResidual,
            StopRule::Update => Note::StoppedByUpdate { last: norm },
        }];
        if matches!(outcome, Outcome::Loose | Outcome::FalseConvergence) {
            notes.push(Note::ClaimedTooMuch { by: "recurrence", claimed: norm, recomputed: truth });
        }
        self.tuning_notes(&mut notes);
        if let Some(radius) = rate.radius() {
            let (rho, low, high) = (radius.rho, radius.low, radius.high);
            notes.push(Note::SpectralRadius { radius: rho, low, high });
            notes.extend(rate.predicted.map(|iterations| Note::IterationsPredicted { iterations }));
            if outcome == Outcome::IterationLimit
                && let Some(left) = sweeps_left(norm, threshold, rho)
            {
                let most = sweeps_left(norm, threshold, high);
                let least = sweeps_left(norm, threshold, low).unwrap_or(left);
                notes.push(Note::IterationsLeft { about: left, least, most });
            }
        }
        if let Some(quasi) = self.a.quasi.filter(|quasi| quasi.nnz_remainder() > 0) {
            notes.push(Note::OutsideInProducts { entries: quasi.nnz_remainder() });
        }
        if let Outcome::Breakdown(reason) = outcome {
            let cure = match reason {
                Breakdown::Diverged => {
                    "gmres or bicgstab with the preconditioner block-gs may do, a direct method will"
                }
                _ => "a direct method will do",
            };
            notes.push(Note::DirectWillDo { why: reason.to_string(), cure });
        }
        if self.factors.pivoted_blocks() > 0 {
            notes.push(Note::ZeroPivotBlocks { blocks: self.factors.pivoted_blocks() });
        }
        // Products with L + U and solves with D a sweep.
        let (products, solves) = if self.sweep == Sweep::Symmetric { (3, 2) } else { (1, 1) };
        SolveReport {
            method: self.sweep.name(),
            outcome,
            iterations,
            recurrence_residual: (self.rule == StopRule::Residual).then_some(norm),
            certificate,
            operator_applications: products * iterations + 2,
            preconditioner_applications: solves * iterations,
            times: PhaseTimes { setup: self.setup, solve: elapsed, ..PhaseTimes::default() },
            bytes: Bytes { matrix: self.a.bytes(), factors: self.factors.bytes(), workspace: self.bytes() },
            notes,
        }
    }
}

/// ‖x − y‖₂; NaN and infinities show.
pub(super) fn distance2<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    let [sum] = pass([x, y], [], &|[x, y], []| ([], [(x - y).conj_value() * (x - y)]));
    let (sum, ulp) = (sum.re().to_f64(), T::Real::EPSILON.to_f64());
    // Neither overflown nor so small that squares have vanished.
    if sum.is_finite() && sum > T::Real::MIN_POSITIVE.to_f64() / (ulp * ulp) {
        return sum.sqrt();
    }
    let largest = x.iter().zip(y).fold(0.0, |m: f64, (&a, &b)| m.max_nan((a - b).abs().to_f64()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let sum: f64 = x.iter().zip(y).map(|(&a, &b)| ((a - b).abs().to_f64() / largest).powi(2)).sum();
    largest * sum.sqrt()
}
