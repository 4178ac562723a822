//! The order in which columns are eliminated, and how far pivoting may leave it.
//!
//! Two strategies, as in UMFPACK (T. A. Davis, ACM TOMS 30 (2004) 165–195, doi:10.1145/992200.992205). With the
//! matched rows moved to the diagonal, a pattern that is nearly symmetric is ordered by approximate minimum degree on
//! A + Aᵀ and the diagonal is preferred as the pivot; any other pattern is ordered by COLAMD, whose bound on fill
//! holds for every choice of pivots. Both orderings are faer's.

use bt_formats::{RealScalar, Scalar, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::{amd, colamd};

use super::{Csc, METHOD};
use crate::error::{FactorError, Result};

/// A column order and the threshold of the preferred pivots.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// `col_order[k]`: the column of A that is eliminated as number k.
    pub col_order: Vec<u32>,
    /// The preferred pivot is taken down to this fraction of the largest candidate.
    pub threshold: f64,
}

/// Orders the columns of a structurally nonsingular A whose rows are matched with columns by `row_of`.
pub fn order<T: Scalar>(a: &Csc<T>, row_of: &[u32]) -> Result<Ordering> {
    let n = a.n();
    let b = matched_pattern(a, row_of);
    let symmetric = symmetry(&b, n) >= 0.5;
    let (ptr, idx) = if symmetric { (&b.0, &b.1) } else { (&a.col_ptr, &a.row_idx) };
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, ptr, None, idx);
    let scratch =
        if symmetric { amd::order_scratch::<u32>(n, idx.len()) } else { colamd::order_scratch::<u32>(n, n, idx.len()) };
    let mut memory = MemBuffer::try_new(scratch).map_err(|_| too_large(n))?;
    let stack = MemStack::new(&mut memory);
    let (mut forward, mut inverse) = (vec![0u32; n], vec![0u32; n]);
    if symmetric {
        amd::order(&mut forward, &mut inverse, pattern, amd::Control::default(), stack).map(|_| ())
    } else {
        colamd::order(&mut forward, &mut inverse, pattern, colamd::Control::default(), stack)
    }
    .map_err(|e| FactorError::Failed { method: METHOD, reason: format!("faer's ordering: {e}") })?;
    Ok(Ordering { col_order: forward, threshold: if symmetric { 0.1 } else { 1.0 } })
}

fn too_large(n: usize) -> FactorError {
    bt_formats::Error::TooLarge {
        what: "the ordering of a sparse matrix",
        needed: format!("work arrays for {n} columns"),
        limit: "the memory that could be had".into(),
    }
    .into()
}

/// Pattern of B = P·A with the matched rows on the diagonal, sorted, without stored zeros.
fn matched_pattern<T: Scalar>(a: &Csc<T>, row_of: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut position = vec![0u32; a.n()];
    for (j, &i) in row_of.iter().enumerate() {
        position[i as usize] = j as u32;
    }
    let (mut ptr, mut idx) = (vec![0u32], Vec::with_capacity(a.row_idx.len()));
    for j in 0..a.n() {
        let start = idx.len();
        idx.extend(a.col(j).filter(|e| e.1 != zero()).map(|(i, _)| position[i]));
        idx[start..].sort_unstable();
        ptr.push(idx.len() as u32);
    }
    (ptr, idx)
}

/// Fraction of the off-diagonal entries (i, j) for which (j, i) is there too; 1 for a diagonal matrix.
fn symmetry((ptr, idx): &(Vec<u32>, Vec<u32>), n: usize) -> f64 {
    let col = |j: usize| &idx[ptr[j] as usize..ptr[j + 1] as usize];
    let (mut pairs, mut entries) = (0usize, 0usize);
    for j in 0..n {
        for &i in col(j).iter().filter(|&&i| i as usize != j) {
            entries += 1;
            pairs += usize::from(col(i as usize).binary_search(&(j as u32)).is_ok());
        }
    }
    if entries == 0 { 1.0 } else { pairs as f64 / entries as f64 }
}

impl Ordering {
    /// The threshold as a real of the scalar's kind.
    pub fn threshold<R: RealScalar>(&self) -> R {
        R::from_f64(self.threshold)
    }
}
