//! Stationary distributions: π with πQ = 0, Σπ = 1.
//!
//! The chain is reduced to its closed class first; several closed classes are an error that names them, and transient states
//! have probability zero exactly. `gth` is the method to use: the others solve the same equations with cancellation or to a
//! tolerance, and are here to be compared with it.

mod gth;

use crate::classes::closed_classes;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;
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
    recurrent: usize,
    residual: f64,
    balance: f64,
    error_bound: Option<f64>,
    bytes: usize,
    notes: Vec<String>,
}

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
        Self::on_closed_class(q, |q, notes| {
            let elimination = Elimination::new(q)?;
            if elimination.is_scaled() {
                notes.push("rates span more than doubles can hold: every rate carries an exponent of its own".into());
            }
            let (flops, widest) = elimination.work();
            notes.push(format!("gth: at most {widest} states coupled below each, {flops:.2e} flops"));
            let bytes = elimination.bytes();
            Ok(Solved { x: elimination.substitute(), error_bound: Some(elimination.error_bound()), bytes })
        })
    }

    /// Runs a method on the one closed class and measures its answer.
    fn on_closed_class(
        q: &Generator,
        solve: impl FnOnce(&Generator, &mut Vec<String>) -> Result<Solved>,
    ) -> Result<Self> {
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
        let solved = if recurrent == q.n() {
            solve(q, &mut notes)?
        } else {
            notes.push(format!("{} of {} states are transient: their probability is zero", q.n() - recurrent, q.n()));
            if recurrent == 1 {
                notes.push(format!("state {} (from 0) is absorbing", class[0]));
            }
            solve(&q.restrict(&class)?, &mut notes)?
        };
        let total = sum(&solved.x);
        for (&state, &x) in class.iter().zip(&solved.x) {
            states[state as usize] = x / total;
        }
        let (residual, balance) = residuals(q, &states);
        let Solved { error_bound, bytes, .. } = solved;
        Ok(Self { states, recurrent, residual, balance, error_bound, bytes, notes })
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

    /// The largest relative difference between the flows into a state and out of it,
    /// max_j |Σᵢπᵢq_ij| / (Σ_{i≠j}πᵢq_ij + π_j|q_jj|): also states of probability 1e−400 count.
    pub fn balance(&self) -> f64 {
        self.balance
    }

    /// Bound of the relative error of every single probability, to first order in the unit roundoff, where the method has one.
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
    error_bound: Option<f64>,
    bytes: usize,
}

fn several(closed: &[Vec<u32>]) -> Error {
    const NAMED: usize = 4;
    let classes = closed.iter().take(NAMED).map(|c| (c[0] as usize, c.len())).collect();
    Error::SeveralClosedClasses { count: closed.len(), classes }
}

/// Σx, compensated (Neumaier), relative to the largest: two roundings or so for any n.
fn sum(x: &[Scaled]) -> Scaled {
    let largest = x.iter().copied().fold(Scaled::ZERO, Scaled::max);
    let (mut sum, mut lost) = (0.0, 0.0);
    for &x in x {
        let x = x.relative_to(largest.exponent());
        let next: f64 = sum + x;
        lost += if sum >= x { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    Scaled::with_exponent(sum + lost, largest.exponent())
}

/// ‖πQ‖₁ and the largest relative imbalance.
fn residuals(q: &Generator, pi: &[Scaled]) -> (f64, f64) {
    let mut inflow = vec![Scaled::ZERO; q.n()];
    for (i, &p) in pi.iter().enumerate().filter(|(_, p)| !p.is_zero()) {
        for (j, rate) in q.rates(i) {
            inflow[j] = inflow[j] + p * Scaled::new(rate);
        }
    }
    let (mut norm, mut worst) = (0.0, 0.0f64);
    for (j, (&p, &into)) in pi.iter().zip(&inflow).enumerate() {
        let out = p * Scaled::new(q.rate_out(j));
        let largest = into.max(out);
        if !largest.is_zero() {
            let [a, b] = [into, out].map(|f| f.relative_to(largest.exponent()));
            worst = worst.max((a - b).abs() / (a + b));
            norm += Scaled::with_exponent((a - b).abs(), largest.exponent()).to_f64();
        }
    }
    (norm, worst)
}
