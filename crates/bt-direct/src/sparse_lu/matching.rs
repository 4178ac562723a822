//! A maximum matching of columns with rows: every column gets a row in which it has a nonzero, no row twice.
//!
//! Depth-first augmenting paths with look-ahead: I. S. Duff, ACM TOMS 7 (1981) 315–330, doi:10.1145/355958.355963,
//! with the diagonal and the large entries preferred. A column left over proves that no values in this pattern are
//! nonsingular. Cost: O(n·nnz) at worst, O(nnz) in practice.

use super::scaled::Csc;
use crate::error::{FactorError, Result, SingularKind, Singularity};
use bt_formats::{Scalar, zero};

const NONE: u32 = u32::MAX;

/// The row matched with each column, or the first column that cannot be matched. Stored zeros do not count.
pub(crate) fn match_rows<T: Scalar>(a: &Csc<T>) -> Result<Vec<u32>> {
    let n = a.n();
    let mut row_of = vec![NONE; n];
    let mut col_of = vec![NONE; n];
    // Greedy: the diagonal wherever it is not small in its column, then the largest free entry.
    for pass in 0..2 {
        for j in 0..n {
            if row_of[j] != NONE {
                continue;
            }
            let max = a.col(j).fold(zero::<T::Real>(), |m, (_, v)| if v.abs1() > m { v.abs1() } else { m });
            let threshold = max * <T::Real as bt_formats::RealScalar>::from_f64(0.1);
            let mut best = (NONE, zero::<T::Real>());
            for (i, v) in a.col(j).filter(|e| col_of[e.0] == NONE) {
                let size = v.abs1();
                let wanted = if pass == 0 { i == j && size >= threshold } else { true };
                if wanted && size > best.1 {
                    best = (i as u32, size);
                }
            }
            if best.0 != NONE {
                (row_of[j], col_of[best.0 as usize]) = (best.0, j as u32);
            }
        }
    }
    // Augment: `path` holds columns, each entered through the row matched with it; `next` is where its scan stands.
    let mut visited = vec![NONE; n];
    let mut next = vec![0usize; n];
    let mut look_ahead: Vec<usize> = a.starts().collect();
    let mut path: Vec<u32> = Vec::new();
    for start in 0..n {
        if row_of[start] != NONE {
            continue;
        }
        path.clear();
        path.push(start as u32);
        next[start] = a.range(start).start;
        let free_row = 'search: loop {
            let Some(&j) = path.last() else { return Err(without_row(start)) };
            let j = j as usize;
            let end = a.range(j).end;
            // A free row of this column ends the path; the look-ahead pointer never moves back.
            while look_ahead[j] < end {
                let k = look_ahead[j];
                look_ahead[j] += 1;
                let i = a.row_idx[k] as usize;
                if col_of[i] == NONE && a.values[k] != zero() {
                    break 'search i;
                }
            }
            while next[j] < end {
                let k = next[j];
                next[j] += 1;
                let i = a.row_idx[k] as usize;
                if visited[i] != start as u32 && a.values[k] != zero() {
                    visited[i] = start as u32;
                    let onward = col_of[i];
                    next[onward as usize] = a.range(onward as usize).start;
                    path.push(onward);
                    continue 'search;
                }
            }
            path.pop();
        };
        // Shift every matched row of the path to the column before.
        let mut row = free_row as u32;
        while let Some(j) = path.pop() {
            col_of[row as usize] = j;
            row = std::mem::replace(&mut row_of[j as usize], row);
        }
    }
    Ok(row_of)
}

fn without_row(column: usize) -> FactorError {
    FactorError::Singular(Singularity { kind: SingularKind::Structural, column, block: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csc(n: usize, cols: &[&[u32]]) -> Csc<f64> {
        let mut a = Csc { col_ptr: vec![0], row_idx: vec![], values: vec![] };
        for j in 0..n {
            a.row_idx.extend_from_slice(cols[j]);
            a.col_ptr.push(a.row_idx.len() as u32);
        }
        a.values = vec![1.0; a.row_idx.len()];
        a
    }

    fn left_over(a: &Csc<f64>) -> usize {
        match match_rows(a) {
            Err(FactorError::Singular(Singularity { kind: SingularKind::Structural, column, block: None })) => column,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn augmenting_path_of_three() {
        // Column 2 can only have row 0, column 1 only rows 0 and 1, column 0 rows 0 to 2.
        let a = csc(3, &[&[0, 1, 2], &[0, 1], &[0]]);
        assert_eq!(match_rows(&a).unwrap(), [2, 1, 0]);
    }

    #[test]
    fn names_the_column_left_over() {
        let a = csc(3, &[&[0, 1], &[0, 1], &[0, 1]]);
        assert_eq!(left_over(&a), 2);
        let mut b = csc(2, &[&[0], &[1]]);
        b.values[1] = 0.0;
        assert_eq!(left_over(&b), 1);
    }
}
