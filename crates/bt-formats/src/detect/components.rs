//! Connected components of the graph of A + Aᵀ, by union–find with path halving.
//!
//! Each tree is rooted at its smallest index. Tarjan, J. ACM 22 (1975), doi:10.1145/321879.321884. Cost: near O(nnz)
//! (halving alone gives O(nnz log n) at worst, on inputs made for it). Storage: 4n bytes.

use crate::csr::Csr;
use crate::operator::LinearOperator;
use crate::reorder::for_each_nonzero;
use crate::scalar::Scalar;

pub(super) struct Components {
    /// Smallest index of the component of each index.
    root: Vec<u32>,
}

impl Components {
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let mut parent: Vec<u32> = (0..a.nrows() as u32).collect();
        for_each_nonzero(a, |i, j| {
            let (i, j) = (find(&mut parent, i as u32), find(&mut parent, j as u32));
            parent[i.max(j) as usize] = i.min(j);
        });
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
