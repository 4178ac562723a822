//! The order in which columns are eliminated, and how far pivoting may leave it.
//!
//! Strategies as in UMFPACK (T. A. Davis, ACM TOMS 30 (2004) 165–195, doi:10.1145/992200.992205). A pattern that is nearly
//! symmetric is ordered by approximate minimum degree on A + Aᵀ and the diagonal is preferred as the pivot, also where it is
//! zero and filled later, as in the borders of saddle point problems: rows matched with other columns would break the
//! symmetry. Where the diagonal is mostly zero, or the pattern is nearly symmetric only with the matched rows on the diagonal,
//! those are ordered so; of two such orders the one with the fewer counted flops is taken. Any other pattern is ordered by
//! COLAMD, whose bound on fill holds for every choice of pivots. Both orderings are faer's.

use bt_formats::reorder::minimum_degree;
use bt_formats::{Csr, RealScalar, Scalar, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::colamd;

use super::scaled::{Csc, METHOD};
use crate::error::{FactorError, Result};
use crate::sparse_cholesky::{Pattern, SymbolicCholesky};

/// A column order and the preferred pivots.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// `col_order[k]`: the column of A that is eliminated as number k.
    pub col_order: Vec<u32>,
    /// The preferred row of each column.
    pub row_of: Vec<u32>,
    /// Whether the pattern is nearly symmetric with the preferred pivots on the diagonal, which are left only where they are small; otherwise
    /// the largest candidate of a column is its pivot.
    pub is_symmetric: bool,
}

/// What elimination with the preferred pivots makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Entries of L below its diagonal.
    pub lower: usize,
    /// Entries of U above its diagonal.
    pub upper: usize,
    /// Quotients, products and differences.
    pub flops: f64,
}

/// Orders the columns of a structurally nonsingular A, given by columns and by rows, whose rows are matched with columns by `row_of`. With the
/// structure of L and U for a symmetric pattern, stored zeros left out.
pub fn order<T: Scalar>(a: &Csc<T>, by_rows: &Csr<T>, row_of: &[u32]) -> Result<(Ordering, Option<SymbolicCholesky>)> {
    let n = a.n();
    let identity: Vec<u32> = (0..n as u32).collect();
    let mut best: Option<(Ordering, SymbolicCholesky)> = None;
    let mut consider = |rows: &[u32], col_order: &dyn Fn(&Pattern) -> Result<Vec<u32>>| -> Result<()> {
        let pattern = matched_pattern(a, rows);
        if symmetry(&pattern) >= 0.5 {
            let col_order = col_order(&pattern)?;
            let blocks = SymbolicCholesky::in_order(pattern.of_sum(), None, &col_order, 0.0)?;
            if best.as_ref().is_none_or(|(_, least)| blocks.lu_flops() < least.lu_flops()) {
                best = Some((Ordering { col_order, row_of: rows.to_vec(), is_symmetric: true }, blocks));
            }
        }
        Ok(())
    };
    let diagonal = (0..n).filter(|&j| a.col(j).any(|(i, v)| i == j && v != zero())).count();
    if 2 * diagonal >= n {
        // With the rows where they are, the order is that of A, which may be known.
        consider(&identity, &|_| Ok(minimum_degree(by_rows)?.order.clone()))?;
    }
    if row_of != identity {
        consider(row_of, &Pattern::minimum_degree)?;
    }
    match best {
        Some((ordering, blocks)) => Ok((ordering, Some(blocks))),
        None => Ok((Ordering { col_order: colamd_order(a)?, row_of: row_of.to_vec(), is_symmetric: false }, None)),
    }
}

/// By COLAMD, which is faer's.
pub(crate) fn colamd_order<T: Scalar>(a: &Csc<T>) -> Result<Vec<u32>> {
    let n = a.n();
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, &a.col_ptr, None, &a.row_idx);
    let mut memory =
        MemBuffer::try_new(colamd::order_scratch::<u32>(n, n, a.row_idx.len())).map_err(|_| too_large(n))?;
    let (mut forward, mut inverse) = (vec![0u32; n], vec![0u32; n]);
    colamd::order(&mut forward, &mut inverse, pattern, colamd::Control::default(), MemStack::new(&mut memory))
        .map_err(|e| failed(&e))?;
    Ok(forward)
}

fn failed(error: &dyn std::fmt::Display) -> FactorError {
    FactorError::Failed { method: METHOD, reason: format!("faer's ordering: {error}") }
}

fn too_large(n: usize) -> FactorError {
    bt_formats::Error::TooLarge {
        what: "the ordering of a sparse matrix",
        needed: format!("work arrays for {n} columns"),
        limit: "the memory that could be had".into(),
    }
    .into()
}

/// Pattern of B = P·A with the preferred rows on the diagonal, sorted, without stored zeros.
fn matched_pattern<T: Scalar>(a: &Csc<T>, row_of: &[u32]) -> Pattern {
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
    Pattern { ptr, idx }
}

/// Fraction of the off-diagonal entries (i, j) for which (j, i) is there too; 1 for a diagonal matrix.
fn symmetry(pattern: &Pattern) -> f64 {
    let n = pattern.n();
    let col = |j: usize| pattern.row(j);
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
    /// The preferred pivot is taken down to this fraction of the largest candidate.
    pub fn threshold<R: RealScalar>(&self) -> R {
        R::from_f64(if self.is_symmetric { 0.1 } else { 1.0 })
    }
}
