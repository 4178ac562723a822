//! Power iteration with the uniformised chain: for comparison.
//!
//! xⁱ⁺¹ = xⁱP with P = I + Q/Λ and Λ a tenth above the largest rate, so that no eigenvalue but 1 lies on the unit circle. The
//! rate is that of the chain's own approach to equilibrium measured in steps of 1/Λ: hopeless where rates differ by orders of
//! magnitude, where it ends as not converged. Storage: Pᵀ and 3n doubles. Cost of an iteration: one product with P and one with Q.

use bt_formats::{LinearOperator, Matrix, Monitor, StopCriterion};

use super::{Iteration, Solved, normalise};
use crate::error::Result;
use crate::generator::Generator;

/// Λ over the largest rate.
const MARGIN: f64 = 1.1;

pub(super) fn solve(q: &Generator, stop: &StopCriterion, monitor: &mut dyn Monitor) -> Result<Solved> {
    let p = q.uniformise(MARGIN)?.p.transpose();
    let mut x = vec![1.0 / q.n() as f64; q.n()];
    let mut next = vec![0.0; q.n()];
    let mut iteration = Iteration::new(q, stop, monitor);
    let outcome = loop {
        if let Some(outcome) = iteration.observe(&x, None)? {
            break outcome;
        }
        // xᵀ ← Pᵀxᵀ
        p.apply(1.0, &x, 0.0, &mut next);
        std::mem::swap(&mut x, &mut next);
        normalise(&mut x);
    };
    iteration.finish(outcome, p.bytes())
}
