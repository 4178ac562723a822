//! The block Gauss–Seidel iteration of HBISA with renormalisation: for comparison.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017), doi:10.1007/s11227-016-1881-x, Eq. (7) for A = −Qᵀ and b = 0:
//!
//! ```text
//! (D + L)·xⁱ⁺¹ = −U·xⁱ,   xⁱ⁺¹ ← xⁱ⁺¹/Σxⁱ⁺¹
//! ```
//!
//! The block Jacobi form of Eq. (6) does not converge here: its iteration has the eigenvalue −1 beside 1. All terms of the sum
//! are positive, so that the iterates are, but sweeps reach small probabilities late: the stopping rule, ‖xQ‖₁ relative to the
//! flow Σxᵢ|q_ii|, does not see them.
//!
//! Storage: the factors of D and 3n doubles. Cost of a sweep: one product with U, L and Q, and a solve with D.

use bt_direct::FactorError;
use bt_formats::{BlockTridiagonal, HybridLayout, Matrix, Monitor, Partition, StopCriterion};
use bt_iter::BlockDiagonal;

use super::{Iteration, Solved};
use crate::error::{Error, Result};
use crate::generator::Generator;

pub(super) fn solve(
    q: &Generator,
    levels: &Partition,
    stop: &StopCriterion,
    monitor: &mut dyn Monitor,
) -> Result<Solved> {
    let failed = |reason: String| Error::Failed { method: "hbisa", reason };
    if levels.n_blocks() < 2 {
        return Err(failed("one block is the whole chain, and singular".into()));
    }
    let mut a = q.matrix().transpose();
    for v in a.values_mut() {
        *v = -*v;
    }
    let a = BlockTridiagonal::from_csr(&a, levels.clone(), HybridLayout::default())?;
    let factors = BlockDiagonal::new(&a).map_err(|e| match e {
        FactorError::Input(input) => Error::Input(input),
        other => failed(other.to_string()),
    })?;
    let mut x = vec![1.0 / q.n() as f64; q.n()];
    let mut block = vec![0.0; levels.min_max_size().1];
    let mut iteration = Iteration::new(q, stop, monitor);
    let outcome = loop {
        if let Some(outcome) = iteration.observe(&x) {
            break outcome;
        }
        for j in 0..levels.n_blocks() {
            // D_j x_j ← −L_j x_{j−1} − U_j x_{j+1}, x_{j−1} being new
            let r = &mut block[..levels.size(j)];
            r.fill(0.0);
            a.subtract_couplings(j, &x, r);
            factors.solve_block(j, r);
            x[levels.range(j)].copy_from_slice(r);
        }
        let sum: f64 = x.iter().sum();
        for x in &mut x {
            *x /= sum;
        }
    };
    let bytes = factors.bytes() + a.bytes();
    Ok(iteration.finish(&x, outcome, bytes))
}
