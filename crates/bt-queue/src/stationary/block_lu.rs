//! Block LU with one probability pinned: for comparison.
//!
//! With π_s = 1 and the balance of state s left out, π_T(−Q_TT) = q_sT over the other states T, a nonsingular M-matrix. The
//! choice of s decides how many digits survive: pinned at an unlikely state the probabilities overflow or cancel. Ten
//! [sweeps](super::sweeps) guess the mode, and the mode of each answer is pinned next, until the state pinned is nearly as probable.
//! Pivots are differences here, and small probabilities come out without a digit or negative: sweeps refine the answer until
//! its [certificate](super::certificate) gets no better. Where the factorization breaks down they go on from their guess.
//!
//! Storage and cost: those of [`BlockLu`], for two or three factorizations, and of the sweeps.

use bt_direct::{BlockLu, FactorError, Factorization};
use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};

use super::certificate::Certificate;
use super::sweeps::Sweeps;
use super::{ENTRYWISE, Solved, scaled};
use crate::error::Result;
use crate::generator::Generator;
use crate::scaled::Scaled;

/// Modes pinned in turn.
const ATTEMPTS: usize = 8;
/// The most probable state over the one pinned, at most.
const NEAR: f64 = 1e3;
/// Sweeps that guess the mode.
const GUESS: usize = 10;
/// Sweeps of refinement at most, and those without progress before it ends.
const REFINEMENTS: usize = 200;
const PATIENCE: usize = 3;
/// Sweeps of the certificate by jumps.
const JUMPS: usize = 1000;

pub(super) fn solve(q: &Generator, levels: &Partition, notes: &mut Vec<String>) -> Result<Solved> {
    // Any two blocks make a block-tridiagonal matrix.
    let halves;
    let swept = if levels.n_blocks() > 1 {
        levels
    } else {
        halves = Partition::from_sizes([q.n() / 2, q.n().div_ceil(2)])?;
        &halves
    };
    let mut sweeps = Sweeps::new(q, swept)?;
    let mut start = vec![Scaled::ONE; q.n()];
    (0..GUESS).for_each(|_| sweeps.step(&mut start));
    let mut pinned = largest(&start);
    let (mut bytes, mut told) = (0, None);
    for attempt in 1..=ATTEMPTS {
        let (a, mut x) = without(q, pinned)?;
        let a = BlockTridiagonal::from_csr(&a, shortened(levels, pinned)?, HybridLayout::default())?;
        let lu = match BlockLu::new(&a) {
            Ok(lu) => lu,
            Err(FactorError::Input(input)) => return Err(input.into()),
            // −Q_TT is not singular: its pivots have cancelled.
            Err(reason) => {
                told = Some(format!("the pivots have cancelled ({reason})"));
                break;
            }
        };
        bytes = lu.stats().bytes;
        // (−Q_TT)ᵀ π_T = q_sT
        let n = x.len();
        lu.solve_transpose_in_place(faer::MatMut::from_column_major_slice_mut(&mut x, n, 1));
        x.insert(pinned, 1.0);
        // The first overflow, where there is one, is nearer to the mode than what is finite.
        let overflow = x.iter().position(|x| !x.is_finite());
        let mode = overflow.unwrap_or_else(|| largest(&x));
        // A state nearly as probable as the mode does as well: ties are common.
        if overflow.is_none() && x[mode] <= NEAR {
            start = scaled(&x);
            told = Some(format!("state {pinned} pinned, attempt {attempt}"));
            break;
        }
        pinned = mode;
    }
    let told = told.unwrap_or_else(|| format!("no state stayed among the most probable ones in {ATTEMPTS} attempts"));
    let (x, error_bound, refined) = refine(q, &mut sweeps, start)?;
    notes.push(format!("block-lu: {told}; {refined} {} of refinement", if refined == 1 { "sweep" } else { "sweeps" }));
    Ok(Solved { x, bytes, error_bound, goal: ENTRYWISE, ..Solved::direct() })
}

/// The first of the largest.
fn largest<T: PartialOrd>(x: &[T]) -> usize {
    (1..x.len()).fold(0, |m, i| if x[i] > x[m] { i } else { m })
}

/// Sweeps from an answer until its bound does not get better; the best one, its bound, and after how many sweeps it was found.
fn refine(q: &Generator, sweeps: &mut Sweeps, mut x: Vec<Scaled>) -> Result<(Vec<Scaled>, Option<f64>, usize)> {
    let mut certificate = Certificate::new(q);
    let mut best = (x.clone(), certificate.bound(&x, JUMPS)?, 0);
    for step in 1..=REFINEMENTS {
        sweeps.step(&mut x);
        let bound = certificate.bound(&x, JUMPS)?;
        let better = match (bound, best.1) {
            (Some(now), Some(before)) => now < before,
            (now, before) => now.is_some() || before.is_none(),
        };
        if better {
            best = (x.clone(), bound, step);
        }
        if step > best.2 + PATIENCE {
            break;
        }
    }
    Ok(best)
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
