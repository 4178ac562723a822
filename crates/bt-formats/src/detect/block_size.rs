//! Natural blocks: the number of unknowns that a mesh has at each of its nodes, when they are numbered node by node.

use crate::bcsr::LARGEST;
use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::scalar::Scalar;

/// The largest k up to 6 that divides rows and columns and for which at most `zero_share` of the places of the k × k blocks hold
/// zeros; 1 where no larger one does. The blocks are those of [`crate::Bcsr::from_csr`]: all that a stored entry meets.
///
/// With a share of 1/4, [`crate::Bcsr`] takes no more bytes than compressed rows in double precision.
///
/// # Cost
/// Five passes over the pattern, O(nnz + n), and 4 bytes a column.
///
/// ```
/// use bt_formats::{Coo, detect::block_size};
/// // Three nodes in a row with two unknowns each, all of which couple.
/// let mut a = Coo::new(6, 6)?;
/// for (i, j) in (0..36).map(|k| (k / 6, k % 6)).filter(|(i, j)| (i / 2usize).abs_diff(j / 2) < 2) {
///     a.push(i, j, 1.0)?;
/// }
/// let a = a.to_csr()?;
/// assert_eq!((block_size(&a, 0.0), block_size(&a, 0.25)), (2, 6));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn block_size<T: Scalar>(a: &Csr<T>, zero_share: f64) -> usize {
    let (nrows, ncols) = (a.nrows(), a.ncols());
    let entries = a.values().iter().filter(|v| **v != zero()).count();
    // Block row, from 1, that has met a block column last.
    let mut last = Vec::new();
    let fits = |k: &usize| {
        if !nrows.is_multiple_of(*k) || !ncols.is_multiple_of(*k) {
            return false;
        }
        last.clear();
        last.resize(ncols / k, 0u32);
        let mut blocks = 0usize;
        for i in 0..nrows {
            for &j in a.row(i).0 {
                let row = (i / k) as u32 + 1;
                blocks += usize::from(std::mem::replace(&mut last[j as usize / k], row) != row);
            }
        }
        let places = (blocks as u64).saturating_mul((k * k) as u64);
        places.saturating_sub(entries as u64) as f64 <= zero_share * places as f64
    };
    (2..=LARGEST).rev().find(fits).unwrap_or(1)
}
