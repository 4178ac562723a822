//! The block Gauss–Seidel iteration of HBISA with renormalisation: for comparison.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017), doi:10.1007/s11227-016-1881-x, Eq. (7) for A = −Qᵀ and b = 0:
//!
//! ```text
//! (D + L)·xⁱ⁺¹ = −U·xⁱ
//! ```
//!
//! The block Jacobi form of Eq. (6) does not converge here: its iteration has the eigenvalue −1 beside 1.
//!
//! **Departures.** Σx = 1 fixes one of the weights of the levels only; here all of them are renormalised before each sweep, so
//! that the flows between neighbouring levels balance, and every second sweep goes downwards. The solves with D subtract nothing.
//! See [`Sweeps`]. Where one of them is below 1e−290 all probabilities get exponents. It ends when ‖xQ‖₁ is small enough beside
//! the flow Σxᵢ|q_ii| *and* every probability is certified.
//!
//! Storage: that of [`Sweeps`] and 3n doubles. Cost of an iteration: a sweep and a product with Q.

use bt_formats::{Monitor, Partition, StopCriterion};

use super::sweeps::Sweeps;
use super::{Iteration, Solved, normalise, scaled};
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;

/// Products with smaller probabilities lose digits.
const SAFE: f64 = 1e-290;
/// Sums of larger rates may overflow.
const LARGE: f64 = 1e200;

pub(super) fn solve(
    q: &Generator,
    levels: &Partition,
    stop: &StopCriterion,
    monitor: &mut dyn Monitor,
) -> Result<Solved> {
    if levels.n_blocks() < 2 {
        let reason = "one block is the whole chain, and singular".into();
        return Err(Error::Failed { method: "hbisa", reason });
    }
    let mut sweeps = Sweeps::new(q, levels)?;
    let mut x = vec![1.0 / q.n() as f64; q.n()];
    let largest = q.matrix().values().iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let mut exact = (largest > LARGE).then(|| scaled(&x));
    let mut iteration = Iteration::new(q, stop, monitor);
    let outcome = loop {
        if let Some(outcome) = iteration.observe(&x, exact.as_deref())? {
            break outcome;
        }
        // Doubles until they do not reach far enough down.
        match &mut exact {
            None => {
                let before = x.clone();
                sweeps.step(&mut x);
                normalise(&mut x);
                if !x.iter().all(|x| (SAFE..=1.0).contains(x)) {
                    x = before;
                    exact = Some(scaled(&x));
                }
            }
            Some(exact) => {
                sweeps.step(exact);
                let total = Scaled::total(exact);
                for (x, exact) in x.iter_mut().zip(exact) {
                    *exact = *exact / total;
                    *x = exact.to_f64();
                }
            }
        }
    };
    let bytes = sweeps.bytes();
    iteration.finish(outcome, bytes)
}
