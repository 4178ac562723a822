//! The distribution of a chain at given times, by uniformisation.
//!
//! ```text
//! p(t) = Σ_k e^{−Λt}(Λt)ᵏ/k! · p(0)Pᵏ,   P = I + Q/Λ,   Λ = max −q_ii
//! ```
//!
//! A. Jensen, Skand. Aktuarietidskr. 36 (1953) 87–91. All terms are positive. The weights are computed from the largest outwards
//! and summed, without e^{−Λt}, as B. L. Fox and P. W. Glynn advise (Commun. ACM 31 (1988) 440–445, doi:10.1145/42404.42409); what
//! is cut off at both ends has less than the tolerance of probability, bounded by a geometric series.
//!
//! **Steady state.** ‖p(0)Pᵏ − ℓ‖₁ does not increase with k for any ℓ with ℓP = ℓ. Such ℓ are the mixtures of the stationary
//! distributions of the closed classes, which elimination gives where that is cheaper than the products. Once p(0)Pᵏ is as close to the
//! mixture with its own masses of the classes as the tolerance, and the rounding of k products, allow, the mixture takes the
//! place of all that follows.
//!
//! A chain of few states that is not steady after as many products as [squaring](crate::squaring) e^{Qh} takes is squared: nearly
//! decomposable chains become steady late.
//!
//! Storage: P transposed and four vectors. Cost: about Λt + 6√(Λt) + 30 products for the time from one of the given times to the
//! next, or as many as it takes to be steady, and the elimination of [`Stationary::gth`](crate::Stationary::gth).

use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Progress};

use crate::classes::closed_classes;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;
use crate::squaring;
use crate::stationary::gth::Elimination;

/// More products than this are refused: the stationary distribution is what is wanted then.
const MOST_PRODUCTS: f64 = 1e9;
/// Products from one look for the steady state to the next.
const LOOK: usize = 16;
/// Flops of eliminations that look for it, at most.
const MOST_FLOPS: f64 = 1e10;

/// Distributions at the times t₁ ≤ t₂ ≤ …, from p(0) = `initial`; each sums to 1 to rounding and differs from the exact one
/// by at most k·`tolerance` in total variation at the k-th time, and the rounding of the products.
///
/// ```
/// use bt_queue::{Generator, Moves, Order, StateSpace, transient};
/// // Decay: from 1 to 0 at rate 2.
/// let space = StateSpace::new([(0, 1)])?;
/// let q = Generator::from_rates(&space, Order::TaskMajor, |_| Moves { service: 2.0, ..Moves::default() })?;
/// let p = transient(&q, &[0.0, 1.0], &[0.5, 3.0], 1e-12, &mut ())?;
/// assert!((p[0][1] - (-1f64).exp()).abs() < 1e-12 && (p[1][1] - (-6f64).exp()).abs() < 1e-12);
/// # Ok::<(), bt_queue::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadParameter`] when `initial` is no distribution, times are negative, not finite or decrease, the tolerance is not
/// in (0, 1), or Λt is so large that 10⁹ products would not do; [`bt_formats::Error::DimensionMismatch`]; [`Error::Stopped`].
///
/// # Cost
/// About Λt products with Q, fewer where the chain becomes steady.
pub fn transient(
    q: &Generator,
    initial: &[f64],
    times: &[f64],
    tolerance: f64,
    monitor: &mut dyn Monitor,
) -> Result<Vec<Vec<f64>>> {
    check(q, initial, times, tolerance)?;
    let uniformised = q.uniformise(1.0)?;
    let (p, rate) = (uniformised.p.transpose(), uniformised.rate);
    if times.last().is_some_and(|t| !(t * rate <= MOST_PRODUCTS)) {
        let value = times.last().map_or(0.0, |t| t * rate);
        return Err(Error::BadParameter {
            name: "time times the largest rate",
            value,
            why: "at most 1e9 can be followed",
        });
    }
    let products = times.last().map_or(0.0, |t| t * rate);
    let steady = SteadyStates::new(q, (2.0 * products * p.nnz() as f64).min(MOST_FLOPS))?;
    // Of a product, relative: as many terms as a column has, and those of the diagonal of P.
    let rounding = (0..q.n()).map(|j| 2 * p.row(j).0.len() + 3).max().unwrap_or(1) as f64 * f64::EPSILON / 2.0;
    let mut chain = Uniformisation { p, steady, rounding, done: 0.0, next: vec![0.0; q.n()], limit: vec![0.0; q.n()] };
    let mut x = initial.to_vec();
    let mut now = 0.0;
    let mut distributions = Vec::with_capacity(times.len());
    for &time in times {
        chain.advance(&mut x, rate * (time - now), tolerance, monitor)?;
        now = time;
        distributions.push(x.clone());
    }
    Ok(distributions)
}

/// A chain in steps of 1/Λ.
struct Uniformisation {
    /// P transposed.
    p: Csr<f64>,
    steady: Option<SteadyStates>,
    /// Of a product.
    rounding: f64,
    /// Products so far.
    done: f64,
    next: Vec<f64>,
    limit: Vec<f64>,
}

impl Uniformisation {
    /// x ← x·e^{Qt} for Λt = `events`.
    fn advance(&mut self, x: &mut Vec<f64>, events: f64, tolerance: f64, monitor: &mut dyn Monitor) -> Result<()> {
        let weights = Weights::new(events, 0.5 * tolerance);
        let total = weights.first + weights.values.len();
        let weight = |k: usize| k.checked_sub(weights.first).map_or(0.0, |i| weights.values[i]);
        // A chain that is not steady after a quarter of the time of squaring is squared.
        let squared = squaring::in_products(&self.p, events).filter(|&most| 2.0 * most < total as f64);
        let patience = squared.map(|most| 0.25 * most);
        let start = patience.map(|_| x.clone());
        let mut sum = vec![0.0; x.len()];
        for k in 0..total {
            if let (Some(most), Some(start)) = (patience, &start)
                && k as f64 > most
            {
                x.copy_from_slice(start);
                return squaring::advance(&self.p, x, events, monitor);
            }
            let near = 0.5 * tolerance + self.done * self.rounding;
            if k % LOOK == 0 && self.steady.as_ref().is_some_and(|s| s.distance(x, &mut self.limit) <= near) {
                // No product more: what is left of the weights is all that counts.
                let rest: f64 = (k.max(weights.first)..total).map(weight).sum();
                add(&mut sum, rest, &self.limit);
                break;
            }
            let w = weight(k);
            if w > 0.0 {
                add(&mut sum, w, x);
            }
            if k + 1 < total {
                // xᵀ ← Pᵀxᵀ
                self.p.apply(1.0, x, 0.0, &mut self.next);
                std::mem::swap(x, &mut self.next);
                self.done += 1.0;
            }
            if monitor.observe(Progress::Step { phase: "uniformisation", done: k + 1, total }).is_break() {
                return Err(Error::Stopped);
            }
        }
        // Products lose a rounding each; the distribution does not.
        let mass: f64 = sum.iter().sum();
        for (x, s) in x.iter_mut().zip(&sum) {
            *x = s / mass;
        }
        Ok(())
    }
}

/// x ← x + w·y
fn add(x: &mut [f64], w: f64, y: &[f64]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += w * y;
    }
}

/// The stationary distributions of the closed classes.
struct SteadyStates {
    /// Closed class of each state, or the number of them for a transient state.
    class: Vec<u32>,
    count: usize,
    /// π of a state within its class; zero of a transient state.
    pi: Vec<f64>,
}

impl SteadyStates {
    /// `None` where it takes more flops.
    fn new(q: &Generator, flops: f64) -> Result<Option<Self>> {
        let closed = closed_classes(q).closed();
        let with_rates = closed.iter().filter(|c| c.len() > 1).count();
        if (with_rates * q.n()) as f64 > flops {
            return Ok(None);
        }
        let count = closed.len();
        let mut steady = Self { class: vec![count as u32; q.n()], count, pi: vec![0.0; q.n()] };
        for (name, states) in (0u32..).zip(&closed) {
            for &i in states {
                steady.class[i as usize] = name;
            }
            if let [absorbing] = states[..] {
                steady.pi[absorbing as usize] = 1.0;
                continue;
            }
            let Some(elimination) = Elimination::within(&q.restrict(states)?, flops)? else { return Ok(None) };
            let pi = elimination.substitute();
            let total = Scaled::total(&pi);
            for (&i, &p) in states.iter().zip(&pi) {
                steady.pi[i as usize] = (p / total).to_f64();
            }
        }
        Ok(Some(steady))
    }

    /// ‖x − ℓ‖₁ for the mixture ℓ in which every closed class has the mass it has in x.
    fn distance(&self, x: &[f64], limit: &mut [f64]) -> f64 {
        let mut masses = vec![0.0; self.count + 1];
        for (&class, x) in self.class.iter().zip(x) {
            masses[class as usize] += x;
        }
        for ((l, &class), pi) in limit.iter_mut().zip(&self.class).zip(&self.pi) {
            *l = masses[class as usize] * pi;
        }
        x.iter().zip(limit).map(|(x, l)| (x - *l).abs()).sum()
    }
}

fn check(q: &Generator, initial: &[f64], times: &[f64], tolerance: f64) -> Result<()> {
    if initial.len() != q.n() {
        let (expected, found) = (q.n(), initial.len());
        return Err(bt_formats::Error::DimensionMismatch { what: "initial distribution", expected, found }.into());
    }
    let bad = |name, value, why| Err(Error::BadParameter { name, value, why });
    if let Some(&p) = initial.iter().find(|p| !(**p >= 0.0)) {
        return bad("an initial probability", p, "it must be at least 0");
    }
    let sum: f64 = initial.iter().sum();
    if !((sum - 1.0).abs() <= 1e-9) {
        return bad("the sum of the initial probabilities", sum, "it must be 1");
    }
    let mut before = 0.0;
    for &t in times {
        if !(t >= before && t.is_finite()) {
            return bad("a time", t, "times are finite, not negative and do not decrease");
        }
        before = t;
    }
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return bad("the tolerance", tolerance, "it lies between 0 and 1");
    }
    Ok(())
}

/// Poisson probabilities of `first`, `first` + 1, …, summing to 1.
struct Weights {
    first: usize,
    values: Vec<f64>,
}

impl Weights {
    /// Of mean a, less than `tolerance` left out.
    fn new(a: f64, tolerance: f64) -> Self {
        let mode = a.floor();
        // Relative to the weight of the mode, which is at least 1/(number of weights): half the tolerance on each side.
        let negligible = 0.5 * tolerance;
        let mut below = Vec::new();
        let (mut k, mut w) = (mode, 1.0);
        while k > 0.0 {
            // w_{k−1} = w_k·k/a; what is further down is less than a geometric series.
            let ratio = k / a;
            w *= ratio;
            k -= 1.0;
            let below_it = k / a;
            if w / (1.0 - below_it) <= negligible {
                k += 1.0;
                break;
            }
            below.push(w);
        }
        let first = k as usize;
        let mut values: Vec<f64> = below.into_iter().rev().collect();
        values.push(1.0);
        let (mut k, mut w) = (mode, 1.0);
        loop {
            // w_{k+1} = w_k·a/(k+1)
            k += 1.0;
            w *= a / k;
            if w / (1.0 - a / (k + 1.0)) <= negligible {
                break;
            }
            values.push(w);
        }
        let sum: f64 = values.iter().sum();
        for w in &mut values {
            *w /= sum;
        }
        Self { first, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_poisson() {
        for a in [0.0, 1e-9, 0.3, 1.0, 7.0, 50.5, 1e4, 1e6] {
            let w = Weights::new(a, 1e-14);
            assert!((w.values.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            let mean: f64 = (w.first..).zip(&w.values).map(|(k, w)| k as f64 * w).sum();
            assert!((mean - a).abs() <= 1e-12 * a.max(1e-3), "{a}: {mean}");
            assert!((w.values.len() as f64) < 20.0 * a.sqrt() + 40.0, "{a}: {}", w.values.len());
            if a < 100.0 {
                let direct = (-a).exp() * (1..=w.first).fold(1.0, |p, k| p * a / k as f64);
                assert!((w.values[0] - direct).abs() <= 1e-12 * direct.max(1e-3), "{a}");
            }
        }
    }
}
