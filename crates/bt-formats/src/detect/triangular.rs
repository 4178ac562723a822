//! Diagonal matrices, and those that are triangular once rows and columns are put in some order.
//!
//! A row with one nonzero among the columns that are left takes that column with it, until nothing is left: then the rows
//! and columns in the order in which they went make A lower triangular. If rows are left that have two nonzeros or more each, no
//! order does: the first row of a triangular matrix has one. This is the search for singletons of column and row with which
//! sparse LU codes begin (T. A. Davis, ACM TOMS 30 (2004) 165–195, doi:10.1145/992200.992205, §2.1).
//!
//! Which column is left of a row is known without a search: of each row the sum of the columns that are left is kept.
//!
//! Storage: 4·nnz + 32n bytes, none where no row has a single nonzero. Cost: O(nnz + n), three passes.

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, zero};
use crate::reorder::for_each_nonzero;
use crate::scalar::Scalar;

/// Whether all nonzeros stand on the diagonal.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz); the first nonzero elsewhere ends the search.
pub fn is_diagonal<T: Scalar>(a: &Csr<T>) -> Result<bool> {
    a.check_square()?;
    Ok((0..a.nrows()).all(|i| {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).all(|(&j, v)| j as usize == i || *v == zero())
    }))
}

/// An order of rows and one of columns in which a matrix is lower triangular with a diagonal of nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriangularOrder {
    /// `rows[k]`: the row of A that comes as number k.
    pub rows: Vec<u32>,
    /// `cols[k]`: its column of A on the diagonal. Row `rows[k]` has nonzeros in `cols[..=k]` only.
    pub cols: Vec<u32>,
}

/// The order in which A is lower triangular, if there is one. A triangular matrix as it stands has one, an upper triangular one
/// too.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz + n); that of [`Csr::survey`] alone where no row has a single nonzero.
///
/// ```
/// use bt_formats::{Csr, detect::triangular_order};
/// // [ 1   2 ]      row 1, then row 2 without column 1, then row 0
/// // [   3   ]
/// // [   4 5 ]
/// let a = Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 2, 1, 1, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0])?;
/// let order = triangular_order(&a)?.unwrap();
/// assert_eq!((order.rows, order.cols), (vec![1, 2, 0], vec![1, 2, 0]));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn triangular_order<T: Scalar>(a: &Csr<T>) -> Result<Option<TriangularOrder>> {
    a.check_square()?;
    let n = a.nrows();
    if n > 0 && a.survey().single_rows == 0 {
        return Ok(None);
    }
    // The rows of each column; of each row how many columns are left, and their sum.
    let mut start = vec![0u32; n + 1];
    let (mut left, mut sum) = (vec![0u32; n], vec![0u64; n]);
    for_each_nonzero(a, |i, j| {
        start[j + 1] += 1;
        left[i] += 1;
        sum[i] += j as u64;
    });
    (0..n).for_each(|j| start[j + 1] += start[j]);
    let mut next = start.clone();
    let mut rows_of = vec![0u32; start[n] as usize];
    for_each_nonzero(a, |i, j| {
        rows_of[next[j] as usize] = i as u32;
        next[j] += 1;
    });
    let mut rows: Vec<u32> = (0..n as u32).filter(|&i| left[i as usize] == 1).collect();
    let mut cols = Vec::with_capacity(n);
    let mut k = 0;
    while k < rows.len() {
        let i = rows[k] as usize;
        // Two rows with the same column left: nothing is left of the second.
        if left[i] != 1 {
            return Ok(None);
        }
        let j = sum[i];
        cols.push(j as u32);
        for &r in &rows_of[start[j as usize] as usize..start[j as usize + 1] as usize] {
            let r = r as usize;
            left[r] -= 1;
            sum[r] -= j;
            if left[r] == 1 {
                rows.push(r as u32);
            }
        }
        k += 1;
    }
    Ok((k == n).then_some(TriangularOrder { rows, cols }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permutation::Permutation;

    fn csr(n: usize, rows: &[&[u32]]) -> Csr<f64> {
        let (mut ptr, mut idx) = (vec![0], vec![]);
        for row in rows {
            idx.extend_from_slice(row);
            ptr.push(idx.len() as u32);
        }
        let values = vec![1.0; idx.len()];
        Csr::new(n, n, ptr, idx, values).unwrap()
    }

    fn check(a: &Csr<f64>) {
        let order = triangular_order(a).unwrap().expect("triangular");
        let p = |order: &[u32]| Permutation::from_order(order.to_vec()).unwrap();
        let l = a.permute(&p(&order.rows), &p(&order.cols));
        for i in 0..a.nrows() {
            let (cols, values) = l.row(i);
            let mut nonzeros = cols.iter().zip(values).filter(|e| *e.1 != 0.0);
            assert!(l.get(i, i) != 0.0 && nonzeros.all(|e| *e.0 as usize <= i), "{order:?}");
        }
    }

    #[test]
    fn triangles_in_any_order() {
        check(&csr(4, &[&[0], &[0, 1], &[1, 2], &[0, 3]]));
        check(&csr(4, &[&[0, 1, 3], &[1, 2], &[2, 3], &[3]]));
        let shuffled = csr(5, &[&[0, 2, 4], &[2], &[1, 2], &[0, 1, 2, 3, 4], &[1, 2, 4]]);
        check(&shuffled);
        assert_eq!(triangular_order(&csr(0, &[])).unwrap().unwrap().rows.len(), 0);
    }

    #[test]
    fn what_is_not_triangular() {
        for a in [
            csr(2, &[&[0, 1], &[0, 1]]),
            // A triangle above a full block; two rows with one column; an empty row.
            csr(3, &[&[0], &[0, 1, 2], &[1, 2]]),
            csr(3, &[&[0], &[0], &[1, 2]]),
            csr(2, &[&[0], &[]]),
        ] {
            assert_eq!(triangular_order(&a).unwrap(), None);
        }
        // Stored zeros are none.
        let mut a = csr(2, &[&[0, 1], &[0, 1]]);
        a.values_mut()[1] = 0.0;
        check(&a);
        assert!(!is_diagonal(&a).unwrap());
        a.values_mut()[2] = 0.0;
        assert!(is_diagonal(&a).unwrap());
    }
}
