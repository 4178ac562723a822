//! Stationary distributions: π with πQ = 0, Σπ = 1.
//!
//! The chain is reduced to its closed class first; several closed classes are an error that names them, and transient states
//! have probability zero exactly. `gth` is the method to use: the others solve the same equations with cancellation or to a
//! tolerance, and are here to be compared with it. No answer is called converged without a bound of the relative error of each
//! of its probabilities.
//!
//! | file | case |
//! |---|---|
//! | `gth.rs` | elimination without subtraction on the envelope of Q, for other questions to a chain too |
//! | `block_lu.rs` | block LU with one probability pinned |
//! | `hbisa.rs` | block Gauss–Seidel sweeps until they converge |
//! | `power.rs` | power iteration |
//! | `sweeps.rs` | a sweep over the levels, for `hbisa.rs`, and for `block_lu.rs` to refine |
//! | `certificate.rs` | a bound of the relative error of each probability, for all but `gth.rs` |

mod block_lu;
mod certificate;
pub(crate) mod gth;
mod hbisa;
mod power;
mod sweeps;

use std::time::Instant;

use bt_formats::{
    Breakdown, Csr, LinearOperator, Monitor, Outcome, Partition, Progress, StopCriterion, detect::finest_partition,
};

use crate::classes::closed_classes;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;
use certificate::Certificate;
use gth::Elimination;

/// π, and how good it is.
///
/// ```
/// use bt_queue::{CloudModel, Form, Order, Rates, Stationary};
/// let rates = Rates { arrival: 2.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
/// let model = CloudModel::new(6, 4, rates, Form::Repaired)?;
/// let pi = Stationary::gth(&model.generator(Order::TaskMajor)?)?;
/// assert!((pi.probability(0).to_f64() - 0.0019015315501979368).abs() < 1e-17);
/// assert!(pi.balance() < 1e-15 && pi.error_bound().unwrap() < 1e-12);
/// # Ok::<(), bt_queue::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stationary {
    states: Vec<Scaled>,
    method: &'static str,
    outcome: Outcome,
    iterations: usize,
    recurrent: usize,
    residual: f64,
    relative_residual: f64,
    balance: f64,
    error_bound: Option<f64>,
    bytes: usize,
    notes: Vec<String>,
}

/// Largest relative error of a probability in an answer that counts as converged, unless a tolerance asks for less.
const ENTRYWISE: f64 = 1e-8;

impl Stationary {
    /// By elimination without subtraction on the envelope of Q in its cheapest order: every probability to a relative error
    /// of at most [`error_bound`](Self::error_bound), however small it is.
    ///
    /// # Errors
    /// [`Error::SeveralClosedClasses`]; [`bt_formats::Error::TooLarge`]; [`bt_formats::Error::InvalidStructure`] without states.
    ///
    /// # Cost
    /// 2Σwₑ² flops for wₑ entries between the envelope and the diagonal: 8n for the cloud model, 14/3·Σkⱼ³ for blocks of kⱼ
    /// states. Memory: 8·Σ(2wₑ+1) bytes and about 100n more.
    pub fn gth(q: &Generator) -> Result<Self> {
        Self::on_closed_class(q, None, "gth", |q, _, notes| {
            let elimination = Elimination::new(q)?;
            if elimination.is_scaled() {
                notes.push("rates span more than doubles can hold: every rate carries an exponent of its own".into());
            }
            let (flops, widest) = elimination.work();
            let states = if widest == 1 { "state" } else { "states" };
            let flops = if flops < 1e6 { flops.to_string() } else { format!("{flops:.2e}") };
            notes.push(format!("gth: at most {widest} {states} coupled below each, {flops} flops"));
            let (bytes, error_bound) = (elimination.bytes(), Some(elimination.error_bound()));
            Ok(Solved { x: elimination.substitute(), error_bound, bytes, ..Solved::direct() })
        })
    }

    /// From a positive multiple x of π that elimination without subtraction on the levels, the last one first, gave elsewhere: on
    /// a GPU, for many chains at once.
    ///
    /// The bound of the relative error is that of this elimination, with wₑ the states before e in its level and in the level
    /// before. The outcome is `Inaccurate` where flows do not balance to it: then x comes from something else.
    ///
    /// ```
    /// use bt_formats::Partition;
    /// use bt_queue::{CloudModel, Form, Order, Rates, Stationary};
    /// let rates = Rates { arrival: 2.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
    /// let model = CloudModel::new(6, 4, rates, Form::Repaired)?;
    /// let q = model.generator(Order::TaskMajor)?;
    /// let here = Stationary::gth(&q)?;
    /// let there = Stationary::from_elimination(&q, &model.space().partition(Order::TaskMajor)?, here.probabilities())?;
    /// assert_eq!((there.mode(), there.outcome()), (here.mode(), here.outcome()));
    /// # Ok::<(), bt_queue::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Stationary::block_lu`]; [`bt_formats::Error::DimensionMismatch`] for another number of states; [`Error::Failed`] for
    /// a chain with transient states.
    ///
    /// # Cost
    /// O(nnz).
    pub fn from_elimination(q: &Generator, levels: &Partition, x: &[Scaled]) -> Result<Self> {
        if x.len() != q.n() {
            let (expected, found) = (q.n(), x.len());
            return Err(bt_formats::Error::DimensionMismatch { what: "eliminated states", expected, found }.into());
        }
        Self::on_closed_class(q, Some(levels), "gth", |class, _, _| {
            if class.n() < q.n() {
                let reason = "there are transient states, which elimination elsewhere does not leave out".into();
                return Err(Error::Failed { method: "gth", reason });
            }
            let error_bound = Some(gth::error_bound_on_levels(levels));
            Ok(Solved { x: x.to_vec(), error_bound, ..Solved::direct() })
        })
    }

    /// By block LU on the levels, the probability of a likely state pinned, and refinement by sweeps. The outcome is `Inaccurate`
    /// unless every probability is certified to a relative error of 1e-8.
    ///
    /// Without levels the finest block-tridiagonal partition is taken.
    ///
    /// # Errors
    /// As [`Stationary::gth`]; [`bt_formats::Error::OutsideStructure`] for levels that are none; [`Error::Failed`] when the
    /// factorization breaks down.
    ///
    /// # Cost
    /// A few factorizations by [`bt_direct::BlockLu`].
    pub fn block_lu(q: &Generator, levels: Option<&Partition>) -> Result<Self> {
        Self::on_closed_class(q, levels, "block-lu", block_lu::solve)
    }

    /// By the block Gauss–Seidel sweeps of HBISA on the levels, renormalised, until ‖πQ‖₁ ≤ max(atol, rtol·Σπᵢ|q_ii|) and every
    /// probability is certified to a relative error of max(rtol, 1e-8).
    ///
    /// Without levels the finest block-tridiagonal partition is taken.
    ///
    /// # Errors
    /// As [`Stationary::block_lu`]. Not converging is an [`outcome`](Self::outcome).
    ///
    /// # Cost
    /// A sweep takes O(nnz) and a solve with every diagonal block.
    pub fn hbisa(
        q: &Generator,
        levels: Option<&Partition>,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        Self::on_closed_class(q, levels, "hbisa", |q, levels, _| hbisa::solve(q, levels, stop, monitor))
    }

    /// By power iteration, until ‖πQ‖₁ ≤ max(atol, rtol·Σπᵢ|q_ii|) and every probability is certified to a relative error of
    /// max(rtol, 1e-8).
    ///
    /// # Errors
    /// As [`Stationary::gth`]. Not converging is an [`outcome`](Self::outcome).
    ///
    /// # Cost
    /// Two products an iteration.
    pub fn power(q: &Generator, stop: &StopCriterion, monitor: &mut dyn Monitor) -> Result<Self> {
        Self::on_closed_class(q, None, "power", |q, _, _| power::solve(q, stop, monitor))
    }

    /// Runs a method on the one closed class and measures its answer.
    fn on_closed_class(
        q: &Generator,
        levels: Option<&Partition>,
        method: &'static str,
        solve: impl FnOnce(&Generator, &Partition, &mut Vec<String>) -> Result<Solved>,
    ) -> Result<Self> {
        if let Some(levels) = levels.filter(|levels| levels.n() != q.n()) {
            let (expected, found) = (q.n(), levels.n());
            return Err(bt_formats::Error::DimensionMismatch { what: "rows of the levels", expected, found }.into());
        }
        if q.n() == 0 {
            let why = "it has no states".into();
            return Err(bt_formats::Error::InvalidStructure { what: "generator", why }.into());
        }
        let classes = closed_classes(q);
        let mut closed = classes.closed();
        let (Some(class), true) = (closed.pop(), closed.is_empty()) else {
            return Err(several(&classes.closed()));
        };
        let mut notes = Vec::new();
        let recurrent = class.len();
        let mut states = vec![Scaled::ZERO; q.n()];
        let restricted;
        let (whole, class_levels) = if recurrent == q.n() {
            (q, levels.cloned())
        } else {
            notes.push(format!("{} of {} states are transient: their probability is zero", q.n() - recurrent, q.n()));
            if recurrent == 1 {
                notes.push(format!("state {} (from 0) is absorbing", class[0]));
            }
            restricted = q.restrict(&class)?;
            (&restricted, levels.map(|levels| kept(levels, &class)).transpose()?)
        };
        // Methods that need no levels get one block.
        let class_levels = match (class_levels, method) {
            (Some(levels), _) => levels,
            (None, "gth" | "power") => Partition::from_sizes([recurrent])?,
            (None, _) => finest_partition(whole.matrix())?,
        };
        let solved = if recurrent == 1 {
            Solved { x: vec![Scaled::ONE], error_bound: Some(0.0), ..Solved::direct() }
        } else {
            solve(whole, &class_levels, &mut notes)?
        };
        let total = Scaled::total(&solved.x);
        if total.is_zero() {
            return Err(Error::Failed { method, reason: "no iterate is finite".into() });
        }
        for (&state, &x) in class.iter().zip(&solved.x) {
            states[state as usize] = x / total;
        }
        let Residuals { norm: residual, flow, balance } = Residuals::new(q, &states);
        let relative_residual = if flow > 0.0 { residual / flow } else { 0.0 };
        let Solved { outcome, iterations, error_bound, goal, bytes, .. } = solved;
        // The truth decides. Each of the two flows of a balance is a sum of as many terms as the state has rates.
        let sound = error_bound.is_some_and(|bound| bound <= goal && balance <= bound + 1e-14);
        let outcome = if outcome == Outcome::Converged && !sound { Outcome::Inaccurate } else { outcome };
        notes.extend(solved.note);
        Ok(Self {
            states,
            method,
            outcome,
            iterations,
            recurrent,
            residual,
            relative_residual,
            balance,
            error_bound,
            bytes,
            notes,
        })
    }

    /// Name of the method, as the command spells it.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// How it ended: `Converged`, or why the answer is not what was asked for.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Sweeps or iterations; 0 of a direct method.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Number of states.
    pub fn n(&self) -> usize {
        self.states.len()
    }

    /// Number of states in the closed class; the others have probability zero.
    pub fn recurrent(&self) -> usize {
        self.recurrent
    }

    /// π of one state.
    ///
    /// # Panics
    /// When there is no such state.
    pub fn probability(&self, state: usize) -> Scaled {
        self.states[state]
    }

    /// π with the exponents, in the order of the states.
    pub fn probabilities(&self) -> &[Scaled] {
        &self.states
    }

    /// π in doubles: what lies below the smallest normal one, 2.2e−308, is zero.
    pub fn to_f64(&self) -> Vec<f64> {
        self.states.iter().map(|p| p.to_f64()).collect()
    }

    /// The most probable state.
    pub fn mode(&self) -> usize {
        let later = |best: usize, i: usize| if self.states[i] > self.states[best] { i } else { best };
        (1..self.n()).fold(0, later)
    }

    /// The least probable of the recurrent states.
    pub fn least(&self) -> Scaled {
        let positive = self.states.iter().copied().filter(|p| !p.is_zero());
        positive.fold(Scaled::ONE, |least, p| if p < least { p } else { least })
    }

    /// ‖πQ‖₁, in probability per unit of time.
    pub fn residual(&self) -> f64 {
        self.residual
    }

    /// ‖πQ‖₁/Σπᵢ|q_ii|, relative to the flow through the chain.
    pub fn relative_residual(&self) -> f64 {
        self.relative_residual
    }

    /// The largest relative difference between the flows into a state and out of it,
    /// max_j |Σᵢπᵢq_ij| / (Σ_{i≠j}πᵢq_ij + π_j|q_jj|): also states of probability 1e−400 count.
    pub fn balance(&self) -> f64 {
        self.balance
    }

    /// Bound of the relative error of every single probability, to first order in the unit roundoff, where one is known: `gth` has
    /// one of its own, the answers of the other methods are compared with it, or bounded by jumps of the reversed chain where
    /// that would take long. With [`Outcome::Converged`] there always is one.
    pub fn error_bound(&self) -> Option<f64> {
        self.error_bound
    }

    /// Memory of the factors.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sentences: what was left out, chosen and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What a method returns for an irreducible chain.
struct Solved {
    /// A positive multiple of π.
    x: Vec<Scaled>,
    outcome: Outcome,
    iterations: usize,
    error_bound: Option<f64>,
    /// The bound up to which the answer is what was asked for.
    goal: f64,
    note: Option<String>,
    bytes: usize,
}

impl Solved {
    /// Of a direct method, to be filled in.
    fn direct() -> Self {
        let (outcome, goal) = (Outcome::Converged, f64::INFINITY);
        Self { x: Vec::new(), outcome, iterations: 0, error_bound: None, goal, note: None, bytes: 0 }
    }
}

/// Stopping, progress and best iterate of the iterations.
struct Iteration<'a> {
    transposed: Csr<f64>,
    out: Vec<f64>,
    stop: &'a StopCriterion,
    monitor: &'a mut dyn Monitor,
    started: Instant,
    residual: Vec<f64>,
    best: Vec<Scaled>,
    best_norm: f64,
    first: Option<f64>,
    count: usize,
    certificate: Certificate<'a>,
    /// The norm at which the certificate is asked again.
    ask_at: f64,
    /// How often it had no answer.
    unanswered: usize,
    /// The least bound, and when it was found.
    least: (f64, usize),
}

/// Times that a certificate may have no answer.
const UNANSWERED: usize = 3;
/// Iterations without a better bound before the method gives up.
const PATIENCE: usize = 1000;

impl<'a> Iteration<'a> {
    fn new(q: &'a Generator, stop: &'a StopCriterion, monitor: &'a mut dyn Monitor) -> Self {
        Self {
            transposed: q.matrix().transpose(),
            out: (0..q.n()).map(|i| q.rate_out(i)).collect(),
            stop,
            monitor,
            started: Instant::now(),
            residual: vec![0.0; q.n()],
            best: vec![Scaled::ZERO; q.n()],
            best_norm: f64::INFINITY,
            first: None,
            count: 0,
            certificate: Certificate::new(q),
            ask_at: f64::INFINITY,
            unanswered: 0,
            least: (f64::INFINITY, 0),
        }
    }

    fn goal(&self) -> f64 {
        self.stop.rtol.max(ENTRYWISE)
    }

    /// Looks at an iterate with Σx = 1, `exact` with the exponents where there are any; the outcome once it is time to end.
    fn observe(&mut self, x: &[f64], exact: Option<&[Scaled]>) -> Result<Option<Outcome>> {
        // r = xQ
        self.transposed.apply(1.0, x, 0.0, &mut self.residual);
        let norm: f64 = self.residual.iter().map(|r| r.abs()).sum();
        let flow: f64 = x.iter().zip(&self.out).map(|(x, out)| x * out).sum();
        if !norm.is_finite() {
            return Ok(Some(Outcome::Breakdown(Breakdown::NonFinite)));
        }
        // Until there is a bound to go by.
        if norm < self.best_norm && self.least.0.is_infinite() {
            self.best_norm = norm;
            self.keep(x, exact);
        }
        let threshold = self.stop.threshold(flow, *self.first.get_or_insert(norm));
        let index = self.count;
        self.count += 1;
        let residual = if flow > 0.0 { norm / flow } else { 0.0 };
        let stopped = self.monitor.observe(Progress::Iteration { index, residual }).is_break();
        Ok(if norm <= threshold && self.is_certified(x, exact, norm)? {
            Some(Outcome::Converged)
        } else if stopped {
            Some(Outcome::Stopped)
        } else if index >= self.stop.max_iters {
            Some(Outcome::IterationLimit)
        } else if self.stop.time_limit.is_some_and(|limit| self.started.elapsed() >= limit) {
            Some(Outcome::TimeLimit)
        } else if self.unanswered >= UNANSWERED {
            Some(Outcome::Inaccurate)
        } else if self.least.0.is_finite() && index > self.least.1 + PATIENCE {
            Some(Outcome::Breakdown(Breakdown::Stagnated))
        } else {
            None
        })
    }

    /// Whether every probability has the accuracy asked for. Where the answer takes sweeps it is asked for less often.
    fn is_certified(&mut self, x: &[f64], exact: Option<&[Scaled]>, norm: f64) -> Result<bool> {
        if norm > self.ask_at && !self.certificate.is_cheap() {
            return Ok(false);
        }
        let sweeps = self.sweeps();
        let bound = match exact {
            Some(exact) => self.certificate.bound(exact, sweeps)?,
            None => self.certificate.bound(&scaled(x), sweeps)?,
        };
        let Some(bound) = bound else {
            (self.unanswered, self.ask_at) = (self.unanswered + 1, 0.01 * norm);
            return Ok(false);
        };
        self.ask_at = norm * (0.5 * self.goal() / bound).min(0.5);
        // One that is certified is the last one, and kept.
        if bound < self.least.0 || bound <= self.goal() {
            self.least = (bound, self.count);
            self.keep(x, exact);
        }
        Ok(bound <= self.goal())
    }

    /// What a bound by jumps may cost: as much as the iteration did.
    fn sweeps(&self) -> usize {
        2 * self.count + 200
    }

    fn keep(&mut self, x: &[f64], exact: Option<&[Scaled]>) {
        match exact {
            Some(exact) => self.best.copy_from_slice(exact),
            None => self.best.iter_mut().zip(x).for_each(|(best, &x)| *best = Scaled::new(x.max(0.0))),
        }
    }

    /// With the best iterate, which is the last one of an iteration that converged.
    fn finish(mut self, outcome: Outcome, bytes: usize) -> Result<Solved> {
        let sweeps = self.sweeps();
        let error_bound =
            if outcome == Outcome::Stopped { None } else { self.certificate.bound(&self.best, sweeps)? };
        let note = Some(self.certificate.in_words().to_owned());
        let (iterations, goal) = (self.count.saturating_sub(1), self.goal());
        Ok(Solved { x: self.best, outcome, iterations, error_bound, goal, note, bytes })
    }
}

/// With exponents; rounding may have left a zero with a sign.
fn scaled(x: &[f64]) -> Vec<Scaled> {
    x.iter().map(|x| Scaled::new(x.max(0.0))).collect()
}

/// The levels of the states of a class.
fn kept(levels: &Partition, class: &[u32]) -> Result<Partition> {
    let mut sizes = vec![0; levels.n_blocks()];
    for &state in class {
        sizes[levels.block_of(state as usize)] += 1;
    }
    Ok(Partition::from_sizes(sizes.into_iter().filter(|&k| k > 0))?)
}

fn several(closed: &[Vec<u32>]) -> Error {
    const NAMED: usize = 4;
    let classes = closed.iter().take(NAMED).map(|c| (c[0] as usize, c.len())).collect();
    Error::SeveralClosedClasses { count: closed.len(), classes }
}

/// x ← x/Σx
fn normalise(x: &mut [f64]) {
    let sum: f64 = x.iter().sum();
    for x in x {
        *x /= sum;
    }
}

/// How well flows balance.
struct Residuals {
    /// ‖πQ‖₁.
    norm: f64,
    /// Σπᵢ|q_ii|.
    flow: f64,
    /// The largest relative imbalance of one state.
    balance: f64,
}

impl Residuals {
    fn new(q: &Generator, pi: &[Scaled]) -> Self {
        // Products of these can neither underflow nor overflow.
        let moderate = |v: &f64| *v == 0.0 || (1e-30..1e30).contains(&v.abs());
        let plain = pi.iter().all(|p| p.is_zero() || p.exponent() > -800) && q.matrix().values().iter().all(moderate);
        let mut residuals = Self { norm: 0.0, flow: 0.0, balance: 0.0 };
        if plain {
            let mut inflow = vec![0.0; q.n()];
            for (i, p) in pi.iter().enumerate().filter(|(_, p)| !p.is_zero()) {
                let p = p.to_f64();
                for (j, rate) in q.rates(i) {
                    inflow[j] += p * rate;
                }
            }
            for (j, (p, into)) in pi.iter().zip(inflow).enumerate() {
                residuals.add(into, p.to_f64() * q.rate_out(j), 0);
            }
            return residuals;
        }
        let mut inflow = vec![Scaled::ZERO; q.n()];
        for (i, &p) in pi.iter().enumerate().filter(|(_, p)| !p.is_zero()) {
            for (j, rate) in q.rates(i) {
                inflow[j] = inflow[j] + p * Scaled::new(rate);
            }
        }
        for (j, (&p, &into)) in pi.iter().zip(&inflow).enumerate() {
            let out = p * Scaled::new(q.rate_out(j));
            let power = into.max(out).exponent();
            residuals.add(into.relative_to(power), out.relative_to(power), power);
        }
        residuals
    }

    /// The flows into a state and out of it, both times 2^`power`.
    fn add(&mut self, into: f64, out: f64, power: i64) {
        if into.max(out) > 0.0 {
            self.balance = self.balance.max((into - out).abs() / (into + out));
            self.norm += Scaled::with_exponent((into - out).abs(), power).to_f64();
            self.flow += Scaled::with_exponent(out, power).to_f64();
        }
    }
}
