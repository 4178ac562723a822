//! Mean times to reach a set of states, by the elimination of `gth`.
//!
//! The mean time hᵢ from state i to a target solves Σ_j q_ij (h_i − h_j) = 1 with h = 0 on the target. States are eliminated with
//! their rates into the target, exitᵢ, and the mean time spent, cᵢ, 1 at first:
//!
//! ```text
//! e = n−1 … 0   sₑ = exitₑ + Σ_{j<e} q_ej     w_ie = q_ie/sₑ
//!               q_ij += w_ie·q_ej,  exitᵢ += w_ie·exitₑ,  cᵢ += w_ie·cₑ     i, j < e
//! e = 0 … n−1   hₑ = (cₑ + Σ_{j<e} q_ej h_j)/sₑ
//! ```
//!
//! Nothing is subtracted, so that a mean time of 1e400 has as many digits as one of 1: W. K. Grassmann, M. I. Taksar, D. P. Heyman,
//! Oper. Res. 33 (1985) 1107–1116, doi:10.1287/opre.33.5.1107, for the elimination. Storage and cost are those of
//! [`Stationary::gth`](crate::Stationary::gth), on the states outside the target.

use bt_formats::Permutation;

use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;
use crate::stationary::gth::{Border, Envelope, Rate, Underflow, cheapest_order, filled};

/// Mean time from every state until the chain is first in a state of the target; `None` where it is infinite, because the chain may
/// never come there. Zero in the target itself.
///
/// ```
/// use bt_queue::{Generator, Moves, Order, StateSpace, mean_first_passage};
/// // M/M/1: from k tasks to none takes k/(μ − λ) on average, nearly so with room for 200.
/// let space = StateSpace::new([(0, 200)])?;
/// let moves = Moves { arrival: 1.0, service: 3.0, ..Moves::default() };
/// let q = Generator::from_rates(&space, Order::TaskMajor, |_| moves)?;
/// let time = mean_first_passage(&q, |state| state == 0)?;
/// assert!((time[10].unwrap().to_f64() - 5.0).abs() < 1e-13);
/// # Ok::<(), bt_queue::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadParameter`] when no state is in the target; [`bt_formats::Error::TooLarge`].
///
/// # Cost
/// As [`Stationary::gth`](crate::Stationary::gth).
pub fn mean_first_passage(q: &Generator, target: impl Fn(usize) -> bool) -> Result<Vec<Option<Scaled>>> {
    let is_target: Vec<bool> = (0..q.n()).map(target).collect();
    if !is_target.contains(&true) {
        return Err(Error::BadParameter {
            name: "the number of target states",
            value: 0.0,
            why: "at least 1 is needed",
        });
    }
    let finite = certain(q, &is_target);
    let between: Vec<u32> = (0..q.n() as u32).filter(|&i| finite[i as usize] && !is_target[i as usize]).collect();
    let mut times: Vec<Option<Scaled>> = is_target.iter().map(|&t| t.then_some(Scaled::ZERO)).collect();
    if between.is_empty() {
        return Ok(times);
    }
    let exit: Vec<f64> = between
        .iter()
        .map(|&i| q.rates(i as usize).filter(|&(to, _)| is_target[to]).map(|(_, rate)| rate).sum())
        .collect();
    let inner = q.restrict(&between)?;
    let (order, low) = cheapest_order(&inner)?;
    let envelope = Envelope::new(low);
    let order = order.as_ref();
    let h = match solve::<f64>(&inner, order, &envelope, &exit)? {
        Ok(h) => h,
        Err(Underflow) => solve::<Scaled>(&inner, order, &envelope, &exit)?.map_err(|Underflow| Error::Failed {
            method: "first passage",
            reason: "a state leads neither to the target nor to another state".into(),
        })?,
    };
    for (i, &state) in between.iter().enumerate() {
        let place = order.map_or(i, |p| p.position()[i] as usize);
        times[state as usize] = Some(h[place]);
    }
    Ok(times)
}

/// States from which the target is reached with probability one: those that lead to no state from which it cannot be reached.
fn certain(q: &Generator, is_target: &[bool]) -> Vec<bool> {
    let backwards = q.matrix().transpose();
    // All states that lead into a set, the target being passed by none.
    let leading = |start: &dyn Fn(usize) -> bool| {
        let mut found: Vec<bool> = (0..q.n()).map(start).collect();
        let mut queue: Vec<u32> = (0..q.n() as u32).filter(|&i| found[i as usize]).collect();
        while let Some(to) = queue.pop() {
            let (from, rates) = backwards.row(to as usize);
            for (&i, &rate) in from.iter().zip(rates) {
                let (i, reaches) = (i as usize, rate > 0.0);
                if reaches && !found[i] && !is_target[i] {
                    found[i] = true;
                    queue.push(i as u32);
                }
            }
        }
        found
    };
    let reaches = leading(&|i| is_target[i]);
    let lost = leading(&|i| !reaches[i]);
    lost.into_iter().map(|l| !l).collect()
}

/// h in the order of elimination.
fn solve<T: Rate>(
    q: &Generator,
    order: Option<&Permutation>,
    envelope: &Envelope,
    exit: &[f64],
) -> Result<Result<Vec<Scaled>, Underflow>> {
    let n = q.n();
    let mut rates = filled::<T>(q, order, envelope)?;
    let placed = |place: usize| order.map_or(place, |p| p.order()[place] as usize);
    let mut border = Border {
        exit: (0..n).map(|e| T::new(exit[placed(e)])).collect(),
        reward: vec![T::new(1.0); n],
        pivots: vec![T::ZERO; n],
    };
    if let Err(underflow) = T::eliminate(envelope, &mut rates, Some(&mut border)) {
        return Ok(Err(underflow));
    }
    // The first state has nowhere to go but out.
    border.pivots[0] = border.exit[0];
    let mut h: Vec<Scaled> = Vec::with_capacity(n);
    for e in 0..n {
        let pivot = border.pivots[e].scaled();
        if pivot.is_zero() {
            return Ok(Err(Underflow));
        }
        // hₑ = (cₑ + Σ_{j<e} q_ej h_j)/sₑ
        let low = envelope.first(e);
        let sum = (low..e).fold(border.reward[e].scaled(), |s, j| s + rates[envelope.at(e, j)].scaled() * h[j]);
        h.push(sum / pivot);
    }
    Ok(Ok(h))
}
