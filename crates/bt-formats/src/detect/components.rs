//! Connected components of the graph of A + Aᵀ, by union–find with path halving.
//!
//! Each tree is rooted at its smallest index. Tarjan, J. ACM 22 (1975), doi:10.1145/321879.321884. Cost: near O(nnz)
//! (halving alone gives O(nnz log n) at worst, on inputs made for it). Storage: 4n bytes.

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, zero};
use crate::partition::Partition;
use crate::permutation::Permutation;
use crate::reorder::for_each_nonzero;
use crate::scalar::Scalar;

/// The order that makes A block-diagonal with the connected components of A + Aᵀ as its blocks, and those blocks: components by
/// their smallest rows, the rows of each in their order. Stored zeros connect nothing.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// Near O(nnz), near O(n) where the first and the last entries of the rows connect all; 16n bytes.
///
/// ```
/// use bt_formats::{Csr, detect::components};
/// // [ 1   2 ]
/// // [   3   ]
/// // [     4 ]
/// let a = Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let (order, blocks) = components(&a)?;
/// assert_eq!(order.order(), [0, 2, 1]);
/// assert_eq!(blocks.sizes().collect::<Vec<_>>(), [2, 1]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn components<T: Scalar>(a: &Csr<T>) -> Result<(Permutation, Partition)> {
    a.check_square()?;
    let found = Components::of(a);
    let n = a.nrows();
    let mut size = vec![0u32; n];
    found.root.iter().for_each(|&r| size[r as usize] += 1);
    // Where the next row of each component goes.
    let mut next = vec![0u32; n];
    let mut start = 0;
    for (next, &size) in next.iter_mut().zip(&size).filter(|e| *e.1 > 0) {
        *next = start;
        start += size;
    }
    let mut order = vec![0u32; n];
    for (i, &r) in found.root.iter().enumerate() {
        order[next[r as usize] as usize] = i as u32;
        next[r as usize] += 1;
    }
    let sizes = size.iter().filter(|s| **s > 0).map(|&s| s as usize);
    Ok((Permutation::from_order(order)?, Partition::from_sizes(sizes)?))
}

pub(super) struct Components {
    /// Smallest index of the component of each index.
    root: Vec<u32>,
}

impl Components {
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let n = a.nrows();
        let (mut parent, mut count) = ((0..n as u32).collect::<Vec<_>>(), n);
        let mut join = |i: usize, j: usize| {
            let (i, j) = (find(&mut parent, i as u32), find(&mut parent, j as u32));
            parent[i.max(j) as usize] = i.min(j);
            count -= usize::from(i != j);
            count
        };
        // The first and the last entry of each row connect most matrices: the others need not be read.
        let mut left = n;
        for i in 0..n {
            let (cols, values) = a.row(i);
            let first = values.iter().position(|&v| v != zero());
            let last = values.iter().rposition(|&v| v != zero());
            for k in [first, last].into_iter().flatten() {
                left = join(i, cols[k] as usize);
            }
        }
        if left > 1 {
            for_each_nonzero(a, |i, j| {
                join(i, j);
            });
        }
        // Parents are smaller than their children, so that one pass leads each index to its root.
        for i in 0..parent.len() {
            parent[i] = parent[parent[i] as usize];
        }
        Self { root: parent }
    }

    /// Component of `i`, named by its smallest index.
    pub fn root(&self, i: usize) -> usize {
        self.root[i] as usize
    }

    pub fn count(&self) -> usize {
        self.root.iter().enumerate().filter(|(i, r)| *i == **r as usize).count()
    }
}

fn find(parent: &mut [u32], mut i: u32) -> u32 {
    while parent[i as usize] != i {
        let grandparent = parent[parent[i as usize] as usize];
        parent[i as usize] = grandparent;
        i = grandparent;
    }
    i
}
