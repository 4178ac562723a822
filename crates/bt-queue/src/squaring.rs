//! The transition matrix of a small chain over a long time, by squaring.
//!
//! ```text
//! E₀ = Σ_k (Qh)ᵏ/k! by uniformisation, Λh ≤ 1;   E_{j+1} = E_j²;   e^{Qt} = E_s,  t = 2ˢh
//! ```
//!
//! All terms are positive. Rows are divided by their sums after each squaring, which keeps the relative error of an entry from
//! doubling with each of them: a perturbed chain of the same kind takes its place, with probabilities changed by n·u. Without
//! uniformisation the exponential would cancel, as C. Moler and C. Van Loan show (SIAM Rev. 45 (2003) 3–49,
//! doi:10.1137/S00361445024180).
//!
//! Storage: three dense matrices. Cost: 2n³ flops a squaring, s = log₂ Λt of them.

use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Progress};
use faer::Mat;

use crate::error::{Error, Result};

/// Larger matrices are not squared.
const MOST_STATES: usize = 2000;
/// Terms of E₀: 1/32! is far below the rounding of anything that 2ˢ < 1e10 steps make of it.
const TERMS: usize = 32;
/// Flops of a sparse product in the time of one of a dense one.
const DENSE_SPEED: f64 = 4.0;

/// Number of products with P that take as long as a time of `events` expected ones by squaring; `None` where that is not to be done.
pub(crate) fn in_products(p: &Csr<f64>, events: f64) -> Option<f64> {
    let n = p.nrows() as f64;
    let squarings = events.log2().ceil().max(0.0) + 1.0;
    let flops = squarings * 2.0 * n.powi(3) / DENSE_SPEED + (TERMS * 2 * p.nnz()) as f64 * n;
    (p.nrows() <= MOST_STATES).then(|| flops / (2.0 * p.nnz() as f64))
}

/// x ← x·e^{Qt} for Λt = `events`; `p` is P transposed.
///
/// # Errors
/// [`Error::Stopped`].
pub(crate) fn advance(p: &Csr<f64>, x: &mut [f64], events: f64, monitor: &mut dyn Monitor) -> Result<()> {
    let n = x.len();
    let squarings = events.log2().ceil().max(0.0) as i32;
    let step = events * 0.5f64.powi(squarings);
    // Columns are the rows of E: what each state leads to.
    let mut e = Mat::<f64>::zeros(n, n);
    let (mut term, mut next) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        term.fill(0.0);
        term[i] = 1.0;
        let column = e.col_as_slice_mut(i);
        column.copy_from_slice(&term);
        for k in 1..TERMS {
            // wₖ = wₖ₋₁·Λh/k
            p.apply(step / k as f64, &term, 0.0, &mut next);
            std::mem::swap(&mut term, &mut next);
            column.iter_mut().zip(&term).for_each(|(e, t)| *e += t);
        }
    }
    normalise(&mut e);
    let total = squarings as usize;
    for done in 1..=total {
        e = &e * &e;
        normalise(&mut e);
        if monitor.observe(Progress::Step { phase: "squaring", done, total }).is_break() {
            return Err(Error::Stopped);
        }
    }
    next.fill(0.0);
    for (i, &x) in x.iter().enumerate().filter(|e| *e.1 > 0.0) {
        next.iter_mut().zip(e.col(i).iter()).for_each(|(next, e)| *next += x * e);
    }
    let mass: f64 = next.iter().sum();
    x.iter_mut().zip(&next).for_each(|(x, next)| *x = next / mass);
    Ok(())
}

/// Every state leads somewhere.
fn normalise(e: &mut Mat<f64>) {
    for i in 0..e.ncols() {
        let sum: f64 = e.col(i).iter().sum();
        e.col_mut(i).iter_mut().for_each(|e| *e /= sum);
    }
}
