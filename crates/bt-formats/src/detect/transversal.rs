//! Whether rows and columns can be paired by non-zeros.
//!
//! The diagonal first, then augmenting paths by depth-first search that look one step ahead: I. S. Duff, ACM TOMS 7 (1981) 315–330,
//! doi:10.1145/355958.355963. Departure: a search that goes on for too long is given up. Storage: 16n bytes.

use crate::csr::Csr;
use crate::operator::{LinearOperator, Matrix, zero};
use crate::scalar::Scalar;

/// No row, and no column.
const NONE: u32 = u32::MAX;

/// Passes over A after which the search is given up: paths may be as long as A, one for each zero on the diagonal.
const PASSES: usize = 8;

/// Whether the rows of a square matrix can be paired with its columns by non-zeros, without which it is singular; `None` where that takes too long to
/// find out.
///
/// # Cost
/// O(n + nnz) where the zeros on the diagonal have others near by, at most a few times as much.
///
/// ```
/// use bt_formats::{Csr, detect::has_transversal};
/// // [ 1 1 ]    [ 1 1 ]
/// // [ 1 0 ]    [ 0 0 ]
/// let regular = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0; 3])?;
/// let singular = Csr::new(2, 2, vec![0, 2, 2], vec![0, 1], vec![1.0; 2])?;
/// assert_eq!((has_transversal(&regular), has_transversal(&singular)), (Some(true), Some(false)));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn has_transversal<T: Scalar>(a: &Csr<T>) -> Option<bool> {
    let n = a.nrows();
    let (mut row_of, mut col_of): (Vec<u32>, Vec<u32>) = (vec![NONE; n], vec![NONE; n]);
    for i in (0..n).filter(|&i| a.get(i, i) != zero()) {
        (row_of[i], col_of[i]) = (i as u32, i as u32);
    }
    // A column that has a row keeps one: those before this place need not be looked at again.
    let mut ahead = vec![0u32; n];
    let mut seen = vec![NONE; n];
    let mut left = PASSES * (n + a.nnz());
    // Rows of the path, and the places in them from where it goes on.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..n {
        if col_of[start] != NONE {
            continue;
        }
        path.clear();
        path.push((start, 0));
        let free = loop {
            let Some((row, place)) = path.last_mut() else { return Some(false) };
            let (cols, values) = a.row(*row);
            let from = &mut ahead[*row];
            let rest = *from as usize..cols.len();
            let found = rest.clone().find(|&k| values[k] != zero() && row_of[cols[k] as usize] == NONE);
            *from = found.map_or(cols.len(), |k| k + 1) as u32;
            if let Some(k) = found {
                break cols[k];
            }
            let next = (*place..cols.len()).find(|&k| values[k] != zero() && seen[cols[k] as usize] != start as u32);
            left = left.checked_sub(next.map_or(cols.len(), |k| k + 1) - *place + rest.len())?;
            *place = next.map_or(cols.len(), |k| k + 1);
            match next {
                Some(k) => {
                    seen[cols[k] as usize] = start as u32;
                    path.push((row_of[cols[k] as usize] as usize, 0));
                }
                None => {
                    path.pop();
                }
            }
        };
        // Each row of the path takes the column of the next one.
        let mut col = free;
        for &(row, _) in path.iter().rev() {
            row_of[col as usize] = row as u32;
            col = std::mem::replace(&mut col_of[row], col);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Coo;
    use crate::reorder::maximum_product_matching;

    fn matrix(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr<f64> {
        let mut coo = Coo::new(n, n).unwrap();
        entries.into_iter().for_each(|(i, j, v)| coo.push(i, j, v).unwrap());
        coo.to_csr().unwrap()
    }

    proptest! {
        #[test]
        fn it_is_there_where_a_matching_is(n in 1..12usize, entries in prop::collection::vec((0..12usize, 0..12usize, 0..3u8), 0..40)) {
            // Some entries are stored zeros.
            let a = matrix(n, entries.into_iter().map(|(i, j, v)| (i % n, j % n, f64::from(v))));
            let found = has_transversal(&a);
            prop_assert!(found.is_none_or(|found| found == maximum_product_matching(&a).is_ok()), "{found:?}");
            prop_assert!(found.is_some() || n > 3);
        }
    }

    #[test]
    fn long_paths_are_followed() {
        // Row i has columns i and i + 1 but for row 0, which has column 1 alone, and the last, which has column 0 too.
        let chain = |n: usize| {
            let near = (0..n).flat_map(|i| [(i, i), (i, (i + 1) % n)]).filter(|p| *p != (0, 0));
            matrix(n, near.map(|(i, j)| (i, j, 1.0)))
        };
        assert_eq!(has_transversal(&chain(1000)), Some(true));
        // Half of the rows have the same few columns: every search goes through all that it reaches.
        let n = 2000;
        let rows = (0..n).flat_map(|i| (0..40).map(move |k| (i, if i < n / 2 { k } else { i + k })));
        let a = matrix(n, rows.filter(|p| p.1 < n).map(|(i, j)| (i, j, 1.0)));
        assert_eq!(has_transversal(&a), Some(false));
    }

    #[test]
    fn a_search_that_takes_too_long_says_nothing() {
        // Each of the last rows comes through all of a full block, which leads nowhere, before it finds its way: r to x to column r.
        let (full, ways) = (60, 60);
        let (x, r) = (|k: usize| full + k, |k: usize| full + ways + k);
        let block = (0..full).flat_map(|i| (0..full).map(move |j| (i, j, 1.0)));
        let paths =
            (0..ways).flat_map(|k| [(x(k), x(k)), (x(k), r(k)), (r(k), 0), (r(k), x(k))].map(|(i, j)| (i, j, 1.0)));
        let a = matrix(full + 2 * ways, block.chain(paths));
        assert_eq!(has_transversal(&a), None);
        assert!(maximum_product_matching(&a).is_ok());
    }
}
