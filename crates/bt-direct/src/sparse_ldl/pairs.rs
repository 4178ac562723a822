//! An order of a Hermitian indefinite matrix that keeps rows together whose diagonal is too small to be a pivot.
//!
//! Such a row is paired with another so that the 2 × 2 block of the two is a good pivot: pairs come from a matching of
//! rows and columns with large entries, of whose cycles each is cut into pairs. The two rows of a pair are then ordered and
//! eliminated as one, with the entries of both. I. S. Duff & S. Pralet, SIAM J. Matrix Anal. Appl. 27 (2005) 313–340,
//! doi:10.1137/04061043X, §§3 and 4; the matching is that of [`maximum_product_matching`].
//!
//! Storage: the pattern of the paired matrix, at most four times that of A. Cost: the matching, near O(nnz) in practice.

use bt_formats::reorder::{MatchingError, maximum_product_matching, minimum_degree};
use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, equilibrate_symmetric, one};

use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::sparse_cholesky::{Pattern, SymbolicCholesky};

/// A diagonal entry below this fraction of the largest of its row, both scaled, is no pivot of its own.
const WEAK: f64 = 0.01;

const NONE: u32 = u32::MAX;

/// The symbolic phase of a Hermitian matrix with its weak rows paired, always by supernodes, inside which pivots are sought.
#[inline(never)]
pub fn symbolic<T: Scalar>(a: &Csr<T>) -> Result<SymbolicCholesky> {
    let pattern = Pattern::of(a);
    let partner = partners(a)?;
    let (eliminated, order) = if partner.iter().all(|&p| p == NONE) {
        let sum = (!pattern.is_symmetric()).then(|| pattern.of_sum());
        (sum, minimum_degree(a)?.order.clone())
    } else {
        let (paired, order) = together(&pattern.of_sum(), &partner)?;
        (Some(paired), order)
    };
    SymbolicCholesky::in_order(pattern, eliminated, &order, 0.0)
}

/// The row that each row is paired with, or `NONE`.
fn partners<T: Scalar>(a: &Csr<T>) -> Result<Vec<u32>> {
    let n = a.nrows();
    let mut partner = vec![NONE; n];
    let mut s = vec![one::<T::Real>(); n];
    equilibrate_symmetric(a, &mut s);
    let weak: Vec<bool> = (0..n)
        .map(|i| {
            let (cols, values) = a.row(i);
            let (mut own, mut largest) = (0.0f64, 0.0f64);
            for (&j, &v) in cols.iter().zip(values) {
                let size = (v * T::from_real(s[i]) * T::from_real(s[j as usize])).abs1().to_f64();
                largest = largest.max_nan(size);
                own = if j as usize == i { size } else { own };
            }
            own < WEAK * largest || largest == 0.0
        })
        .collect();
    if !weak.contains(&true) {
        return Ok(partner);
    }
    let matching = maximum_product_matching(a).map_err(|e| match e {
        MatchingError::Singular(deficiency) => FactorError::Singular(Singularity {
            kind: SingularKind::Structural,
            column: deficiency.unmatched_cols[0] as usize,
            block: None,
        }),
        MatchingError::Input(input) => input.into(),
    })?;
    let matched = matching.rows.order();
    let mut seen = vec![false; n];
    let mut cycle = Vec::new();
    for start in 0..n {
        if seen[start] || !weak[start] {
            continue;
        }
        // The cycle of the matching through this row.
        cycle.clear();
        let mut at = start;
        while !seen[at] {
            seen[at] = true;
            cycle.push(at as u32);
            at = matched[at] as usize;
        }
        // Of an odd cycle one row stays alone: one that is a pivot, if there is one.
        let alone =
            if cycle.len() % 2 == 1 { cycle.iter().position(|&i| !weak[i as usize]).unwrap_or(0) + 1 } else { 0 };
        cycle.rotate_left(alone);
        for pair in cycle.chunks_exact(2) {
            (partner[pair[0] as usize], partner[pair[1] as usize]) = (pair[1], pair[0]);
        }
    }
    Ok(partner)
}

/// A symmetric pattern whose paired rows have the entries of both, and an order in which they follow each other.
fn together(pattern: &Pattern, partner: &[u32]) -> Result<(Pattern, Vec<u32>)> {
    let n = pattern.n();
    // Groups of one row or two, by their first row; the group of each row.
    let firsts: Vec<u32> = (0..n as u32).filter(|&i| partner[i as usize] == NONE || i < partner[i as usize]).collect();
    let mut group = vec![0u32; n];
    for (g, &i) in firsts.iter().enumerate() {
        group[i as usize] = g as u32;
        if partner[i as usize] != NONE {
            group[partner[i as usize] as usize] = g as u32;
        }
    }
    let rows_of = |g: u32| {
        let i = firsts[g as usize];
        [Some(i), (partner[i as usize] != NONE).then_some(partner[i as usize])].into_iter().flatten()
    };
    // Groups as single rows.
    let mut of_groups = Pattern { ptr: vec![0], idx: Vec::new() };
    for g in 0..firsts.len() as u32 {
        let start = of_groups.idx.len();
        of_groups.idx.push(g);
        for i in rows_of(g) {
            of_groups.idx.extend(pattern.row(i as usize).iter().map(|&j| group[j as usize]));
        }
        of_groups.idx[start..].sort_unstable();
        let mut kept = start;
        for e in start..of_groups.idx.len() {
            if e == start || of_groups.idx[e] != of_groups.idx[kept - 1] {
                of_groups.idx[kept] = of_groups.idx[e];
                kept += 1;
            }
        }
        of_groups.idx.truncate(kept);
        of_groups.ptr.push(kept as u32);
    }
    let order: Vec<u32> = of_groups.minimum_degree()?.into_iter().flat_map(rows_of).collect();
    // Every row of a group meets every row of its neighbours.
    let mut paired = Pattern { ptr: vec![0], idx: Vec::new() };
    for &g in &group {
        let start = paired.idx.len();
        paired.idx.extend(of_groups.row(g as usize).iter().flat_map(|&h| rows_of(h)));
        paired.idx[start..].sort_unstable();
        paired.ptr.push(paired.idx.len() as u32);
    }
    Ok((paired, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_rows_are_paired_and_follow_each_other() {
        // A chain of masses with constraints: rows 3 and 4 have no diagonal.
        // [ 2 1   1   ]
        // [ 1 2 1   1 ]
        // [   1 2     ]
        // [ 1         ]
        // [   1       ]
        let a = Csr::new(
            5,
            5,
            vec![0, 3, 7, 9, 10, 11],
            vec![0, 1, 3, 0, 1, 2, 4, 1, 2, 0, 1],
            vec![2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0],
        )
        .unwrap();
        assert_eq!(partners(&a).unwrap(), [3, 4, NONE, 0, 1]);
        let symbolic = symbolic(&a).unwrap();
        let at = |i: u32| symbolic.order().iter().position(|&k| k == i).unwrap();
        assert_eq!((at(0).abs_diff(at(3)), at(1).abs_diff(at(4))), (1, 1));
        assert!(symbolic.has_pairs() && !SymbolicCholesky::new(&a).unwrap().has_pairs());
    }

    #[test]
    fn an_odd_cycle_leaves_a_strong_row_alone() {
        // Weak rows 0 and 1, and row 2: the best matching is 0 → 1 → 2 → 0 when the diagonal of row 2 is small enough.
        let rows = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.5]];
        let a = Csr::from_dense(faer::Mat::from_fn(3, 3, |i, j| rows[i][j]).as_ref()).unwrap();
        let found = partners(&a).unwrap();
        assert_eq!(found, [1, 0, NONE]);
    }

    #[test]
    fn a_structurally_singular_matrix_is_named() {
        let a = Csr::new(2, 2, vec![0, 1, 1], vec![0], vec![1.0]).unwrap();
        assert!(matches!(partners(&a), Err(FactorError::Singular(Singularity { column: 1, .. }))));
    }
}
