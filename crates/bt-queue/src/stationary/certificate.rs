//! How far an approximate π̂ is from π, entry by entry: a bound of max |π̂ᵢ − πᵢ|/πᵢ. A small residual proves nothing of the kind: a
//! chain of two parts that hardly lead to each other balances for any weights of the two.
//!
//! **By elimination**, where that takes no more than [`AFFORDABLE`] flops: π̂ is compared with the π of [`gth`](super::gth), which
//! has a bound of its own.
//!
//! **By jumps** otherwise. For y = π/π̂, scaled to y_s = 1 in the most probable state s, πQ = 0 reads
//!
//! ```text
//! y_j − 1 = Σᵢ k_ji (yᵢ − 1) + δ_j     k_ji = π̂ᵢq_ij/(π̂_j|q_jj|),   δ_j = Σᵢ k_ji − 1     j ≠ s
//! ```
//!
//! K is similar to the transpose of the jump chain without s, so that I − K has an inverse, which is not negative: where
//! v > 0 has v − Kv = w > 0, |y_j − 1| ≤ θv_j with θ = max|δ_j|/w_j. Any v will do; the mean number of jumps into s of the reversed
//! chain is nearly the best one. Sweeps approach it from below, and what they reached is measured, not believed.
//! Both bounds hold to first order in the unit roundoff.

use bt_formats::Csr;

use super::gth::Elimination;
use crate::error::Result;
use crate::generator::Generator;
use crate::scaled::Scaled;

/// Flops that a comparison with `gth` may take: a second or so.
const AFFORDABLE: f64 = 2e9;

/// The judge of the approximations of one irreducible chain.
pub(super) struct Certificate<'a> {
    q: &'a Generator,
    affordable: f64,
    judge: Judge,
}

enum Judge {
    /// Nobody has asked yet.
    Unasked,
    /// π by `gth` and its bound.
    Known(Vec<Scaled>, f64),
    /// Qᵀ: elimination is too much.
    Jumps(Csr<f64>),
}

impl<'a> Certificate<'a> {
    pub(super) fn new(q: &'a Generator) -> Self {
        Self { q, affordable: AFFORDABLE, judge: Judge::Unasked }
    }

    /// A bound of the largest relative error of x/Σx, at most 1 if there are zeros; `None` where none was found within so many
    /// sweeps.
    pub(super) fn bound(&mut self, x: &[Scaled], sweeps: usize) -> Result<Option<f64>> {
        if matches!(self.judge, Judge::Unasked) {
            self.judge = match Elimination::within(self.q, self.affordable)? {
                Some(elimination) => {
                    let pi = elimination.substitute();
                    let total = Scaled::total(&pi);
                    Judge::Known(pi.into_iter().map(|p| p / total).collect(), elimination.error_bound())
                }
                None => Judge::Jumps(self.q.matrix().transpose()),
            };
        }
        let total = Scaled::total(x);
        Ok(match &self.judge {
            _ if total.is_zero() => None,
            Judge::Known(pi, bound) => {
                let error = |(&x, &p): (&Scaled, &Scaled)| ((x / total / p).to_f64() - 1.0).abs();
                let largest = x.iter().zip(pi).map(error).fold(0.0, f64::max);
                Some(largest + bound + largest * bound)
            }
            Judge::Jumps(into) => {
                let x: Vec<f64> = x.iter().map(|&x| (x / total).to_f64()).collect();
                by_jumps(self.q, into, &x, sweeps)
            }
            Judge::Unasked => None,
        })
    }

    /// Whether another answer takes no more than a look at each state.
    pub(super) fn is_cheap(&self) -> bool {
        matches!(self.judge, Judge::Known(..))
    }

    /// How it judges, in words.
    pub(super) fn in_words(&self) -> &'static str {
        match self.judge {
            Judge::Unasked => "the error was not looked for",
            Judge::Known(..) => "the error is measured against gth",
            Judge::Jumps(_) => "gth would take long: the error is bounded by jumps of the reversed chain",
        }
    }
}

/// The second bound of the header for x with Σx = 1.
fn by_jumps(q: &Generator, into: &Csr<f64>, x: &[f64], sweeps: usize) -> Option<f64> {
    const U: f64 = f64::EPSILON / 2.0;
    /// Progress below it per sweep leaves enough of w.
    const ENOUGH: f64 = 0.25;
    // Products with what is subnormal have lost digits.
    if x.iter().any(|x| !(*x > 1e-290)) {
        return None;
    }
    let n = q.n();
    let s = (1..n).fold(0, |s, i| if x[i] > x[s] { i } else { s });
    let flow_out: Vec<f64> = (0..n).map(|j| x[j] * q.rate_out(j)).collect();
    // Σ_{i≠j} xᵢq_ij v_i
    let inflow = |j: usize, v: &[f64]| -> f64 {
        let (from, rates) = into.row(j);
        let others = from.iter().zip(rates).filter(|e| *e.0 as usize != j);
        others.map(|(&i, rate)| x[i as usize] * rate * v[i as usize]).sum()
    };
    let mut v = vec![0.0; n];
    for sweep in 0..sweeps {
        // v_j ← 1 + Σᵢ k_ji vᵢ, up and down in turn
        let mut least = 1.0f64;
        let mut update = |j: usize| {
            if j != s {
                let new = 1.0 + inflow(j, &v) / flow_out[j];
                least = least.min(1.0 - (new - v[j]));
                v[j] = new;
            }
        };
        if sweep % 2 == 0 {
            (0..n).for_each(&mut update);
        } else {
            (0..n).rev().for_each(&mut update);
        }
        if least >= ENOUGH {
            break;
        }
    }
    let ones = vec![1.0; n];
    let mut theta = 0.0f64;
    for j in (0..n).filter(|&j| j != s) {
        // Sums of so many terms of one sign, a product or two in each.
        let rounding = (into.row(j).0.len() + 4) as f64 * U;
        let delta = ((inflow(j, &ones) - flow_out[j]) / flow_out[j]).abs() + 2.0 * rounding;
        let w = v[j] - inflow(j, &v) / flow_out[j] - 2.0 * rounding * v[j];
        // Flows that overflow prove nothing.
        if !(w > 0.0 && delta.is_finite()) {
            return None;
        }
        theta = theta.max(delta / w);
    }
    let largest = v.iter().copied().fold(0.0, f64::max);
    let mean: f64 = x.iter().zip(&v).map(|(x, v)| x * v).sum();
    let (worst, average) = (theta * largest, theta * mean);
    // π̂ⱼ/πⱼ = ȳ/y_j with |y_j − 1| ≤ worst, |ȳ − 1| ≤ average
    (worst < 1.0).then(|| (worst + average) / (1.0 - worst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CloudModel, Form, Order, Rates, Stationary};

    /// Both bounds hold for approximations of every quality, and the second is of use where the chain mixes.
    #[test]
    fn both_bounds_hold() {
        for (m, k, r, useful) in [
            (6, 4, [2.0, 1.0, 1.0, 1.0], Some(1e-9)),
            (12, 5, [6.0, 1.0, 1e-6, 1e-6], None),
            (3, 9, [5.0, 2.0, 1.0, 1.0], Some(1e-9)),
        ] {
            let rates = Rates { arrival: r[0], service: r[1], turn_on: r[2], turn_off: r[3] };
            let q = CloudModel::new(m, k, rates, Form::Repaired).unwrap().generator(Order::LevelMajor).unwrap();
            let pi = Stationary::gth(&q).unwrap();
            for size in [0.3, 1e-3, 1e-6, 1e-12, 0.0] {
                // Errors of one sign in one half of the states are the worst for decomposable chains.
                for pattern in [|i: usize, n: usize| if i < n / 2 { 1.0 } else { -1.0 }, |i, _| (i % 3) as f64 - 1.0] {
                    let n = q.n();
                    let factor = |i: usize| Scaled::new(1.0 + size * pattern(i, n));
                    let x: Vec<Scaled> = (0..n).map(|i| pi.probability(i) * factor(i)).collect();
                    let total = Scaled::total(&x);
                    let error =
                        (0..n).map(|i| ((x[i] / total / pi.probability(i)).to_f64() - 1.0).abs()).fold(0.0, f64::max);
                    let known = Certificate::new(&q).bound(&x, 0).unwrap().unwrap();
                    assert!((error..=1.001 * error + 1e-11).contains(&known), "{m} {size}: {error:e} {known:e}");
                    let mut by_jumps = Certificate { affordable: 0.0, ..Certificate::new(&q) };
                    let bound = by_jumps.bound(&x, 20_000).unwrap();
                    assert!(matches!(by_jumps.judge, Judge::Jumps(_)));
                    assert!(bound.is_none_or(|b| b >= error), "{m} {size}: {error:e} beyond {bound:?}");
                    if let (true, Some(useful)) = (size == 0.0, useful) {
                        assert!(bound.unwrap() < useful, "{m}: {bound:?}");
                    }
                }
            }
            // One sweep is not enough to know anything, and a state that was lost has no bound.
            let mut by_jumps = Certificate { affordable: 0.0, ..Certificate::new(&q) };
            assert_eq!(by_jumps.bound(pi.probabilities(), 1).unwrap(), None);
            let mut lost = pi.probabilities().to_vec();
            lost[0] = Scaled::ZERO;
            assert_eq!(by_jumps.bound(&lost, 1000).unwrap(), None);
            assert!(Certificate::new(&q).bound(&lost, 1000).unwrap().unwrap() >= 1.0);
        }
    }
}
