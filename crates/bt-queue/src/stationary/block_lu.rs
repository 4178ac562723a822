//! Block LU with one probability pinned: for comparison.
//!
//! With π_s = 1 and the balance of state s left out, π_T(−Q_TT) = q_sT over the other states T, a nonsingular M-matrix. The
//! choice of s decides how many digits survive: pinned at an unlikely state the probabilities overflow or cancel. Ten sweeps of
//! `hbisa` guess the mode, and the mode of each answer is pinned next, until it stays. Pivots are differences here; small
//! probabilities carry no guarantee.
//!
//! Storage and cost: those of [`BlockLu`], for two or three factorizations.

use bt_direct::{BlockLu, FactorError, Factorization};
use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition, StopCriterion};

use super::Solved;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::scaled::Scaled;

/// Modes pinned in turn.
const ATTEMPTS: usize = 8;

pub(super) fn solve(q: &Generator, levels: &Partition, notes: &mut Vec<String>) -> Result<Solved> {
    let failed = |reason: String| Error::Failed { method: "block-lu", reason };
    let sweeps = StopCriterion { max_iters: 10, ..StopCriterion::default() };
    // One block cannot be swept, and any state will do where the chain is that small.
    let guess = super::hbisa::solve(q, levels, &sweeps, &mut ()).map_or_else(|_| Vec::new(), |guess| guess.x);
    let mut pinned = (1..guess.len()).fold(0, |m, i| if guess[i] > guess[m] { i } else { m });
    for attempt in 1..=ATTEMPTS {
        let (a, mut x) = without(q, pinned)?;
        let a = BlockTridiagonal::from_csr(&a, shortened(levels, pinned)?, HybridLayout::default())?;
        let lu = BlockLu::new(&a).map_err(|e| match e {
            FactorError::Input(input) => Error::Input(input),
            other => failed(other.to_string()),
        })?;
        // (−Q_TT)ᵀ π_T = q_sT
        let n = x.len();
        lu.solve_transpose_in_place(faer::MatMut::from_column_major_slice_mut(&mut x, n, 1));
        x.insert(pinned, 1.0);
        // The first overflow, where there is one, is nearer to the mode than what is finite.
        let overflow = x.iter().position(|x| !x.is_finite());
        let mode = overflow.unwrap_or_else(|| (1..x.len()).fold(0, |m, i| if x[i] > x[m] { i } else { m }));
        if mode == pinned {
            let negative = x.iter().filter(|x| **x < 0.0).count();
            if negative > 0 {
                notes.push(format!("{negative} probabilities came out negative, and were set to zero"));
            }
            notes.push(format!("block-lu: state {pinned} pinned, attempt {attempt}"));
            let x = x.into_iter().map(|x| Scaled::new(x.max(0.0))).collect();
            return Ok(Solved { x, bytes: lu.stats().bytes, ..Solved::direct() });
        }
        pinned = mode;
    }
    Err(failed(format!("no state stayed the most probable one in {ATTEMPTS} attempts")))
}

/// −Q without row and column s, and row s of Q without its diagonal entry.
fn without(q: &Generator, s: usize) -> Result<(Csr<f64>, Vec<f64>)> {
    let mut row_s = vec![0.0; q.n() - 1];
    let place = |i: usize| if i > s { i - 1 } else { i };
    for (to, rate) in q.rates(s) {
        row_s[place(to)] = rate;
    }
    let (mut row_ptr, mut col_idx, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for i in (0..q.n()).filter(|&i| i != s) {
        let (cols, row) = q.matrix().row(i);
        for (&j, &v) in cols.iter().zip(row).filter(|e| *e.0 as usize != s) {
            col_idx.push(place(j as usize) as u32);
            values.push(-v);
        }
        row_ptr.push(col_idx.len() as u32);
    }
    Ok((Csr::new(q.n() - 1, q.n() - 1, row_ptr, col_idx, values)?, row_s))
}

/// The partition without state s.
fn shortened(levels: &Partition, s: usize) -> Result<Partition> {
    let block = levels.block_of(s);
    let sizes = levels.sizes().enumerate().map(|(j, k)| k - usize::from(j == block)).filter(|&k| k > 0);
    Ok(Partition::from_sizes(sizes)?)
}
