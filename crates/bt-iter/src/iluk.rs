//! ILU(k): LU on the pattern of A and the fill of level at most k.
//!
//! An entry of A has level 0; fill at (i, j) from (i, m) and (m, j) has level lev(i, m) + lev(m, j) + 1, and the smallest such
//! number counts. Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.3.3, doi:10.1137/1.9780898718003; I.
//! Gustafsson, BIT 18 (1978) 142–156, doi:10.1007/BF01931691. Pivots follow the rule of [`IncompleteLu`].
//!
//! Storage: the entries kept. Cost: a symbolic pass that merges levels, then the elimination of `pattern_lu.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bt_direct::Result;
use bt_formats::{Csr, Error, LinearOperator, Scalar};

use crate::ilu0::DroppedFill;
use crate::incomplete_lu::{IncompleteLu, Rule};
use crate::pattern_lu::Pattern;

/// The ILU(k) preconditioner of `a`; `level` = 0 is ILU(0).
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{DroppedFill, Preconditioner, iluk};
/// // An arrow fills in at level 1: M = A.
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 1.0], [1.0, 4.0, 0.0], [1.0, 0.0, 4.0]].as_ref())?;
/// let mut m = iluk(&a, 1, DroppedFill::Forgotten)?;
/// let mut z = [0.0; 3];
/// m.apply(&[6.0, 5.0, 5.0], &mut z);
/// assert!(m.nnz() == 9 && z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`bt_direct::FactorError::Input`] when A is not square or not finite, or the fill exceeds 32-bit pointers;
/// [`bt_direct::FactorError::Breakdown`] naming the row where an element overflows.
#[inline(never)]
pub fn iluk<T: Scalar>(a: &Csr<T>, level: usize, dropped: DroppedFill) -> Result<IncompleteLu<T>> {
    a.check_square()?;
    a.check_finite()?;
    let (ptr, idx) = fill_pattern(a, level)?;
    IncompleteLu::on_pattern("iluk", Rule::Pattern(dropped), &Pattern { ptr: &ptr, idx: &idx }, a)
}

/// Places of level at most `most`, by rows.
fn fill_pattern<T: Scalar>(a: &Csr<T>, most: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let n = a.nrows();
    let most = most.min(n) as u32;
    let (mut ptr, mut idx, mut levels) = (vec![0u32], Vec::<u32>::new(), Vec::<u32>::new());
    // Where the part right of the diagonal begins in each row.
    let mut right = Vec::with_capacity(n);
    let (mut level, mut owner) = (vec![0u32; n], vec![u32::MAX; n]);
    let (mut pending, mut places) = (BinaryHeap::new(), Vec::new());
    for i in 0..n {
        places.clear();
        for &j in a.row(i).0.iter().chain(std::iter::once(&(i as u32))) {
            if owner[j as usize] != i as u32 {
                (level[j as usize], owner[j as usize]) = (0, i as u32);
                places.push(j);
                if (j as usize) < i {
                    pending.push(Reverse(j));
                }
            }
        }
        // Columns in increasing order: the level of k is final when k comes.
        while let Some(Reverse(k)) = pending.pop() {
            let k = k as usize;
            for e in right[k] as usize..ptr[k + 1] as usize {
                let (j, new) = (idx[e], level[k] + levels[e] + 1);
                if owner[j as usize] == i as u32 {
                    level[j as usize] = level[j as usize].min(new);
                } else if new <= most {
                    (level[j as usize], owner[j as usize]) = (new, i as u32);
                    places.push(j);
                    if (j as usize) < i {
                        pending.push(Reverse(j));
                    }
                }
            }
        }
        places.sort_unstable();
        right.push((idx.len() + places.partition_point(|&j| j as usize <= i)) as u32);
        levels.extend(places.iter().map(|&j| level[j as usize]));
        idx.extend_from_slice(&places);
        ptr.push(u32::try_from(idx.len()).map_err(|_| Error::TooLarge {
            what: "incomplete factors",
            needed: format!("{} entries", idx.len()),
            limit: "32-bit pointers".into(),
        })?);
    }
    Ok((ptr, idx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_grow_with_the_path() {
        // 0–3 and the chain 3–4–…: eliminating 0 … 2 fills nothing, a ring of six fills one place a level.
        let ring = |i: usize, j: usize| {
            let d = i.abs_diff(j);
            if d == 0 {
                4.0
            } else if d == 1 || d == 5 {
                -1.0
            } else {
                0.0
            }
        };
        let a = Csr::from_dense(faer::Mat::from_fn(6, 6, ring).as_ref()).unwrap();
        let count = |level| fill_pattern(&a, level).unwrap().1.len() - 18;
        // Fill of the last row and column: (5, 1) of level 1, (5, 2) of level 2, (5, 3) of level 3.
        assert_eq!([0, 1, 2, 3, 4].map(count), [0, 2, 4, 6, 6]);
    }
}
