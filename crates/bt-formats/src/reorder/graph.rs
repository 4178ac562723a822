//! The undirected graph of a square matrix: an edge {i, j} where aᵢⱼ ≠ 0 or aⱼᵢ ≠ 0, i ≠ j.
//!
//! Storage: 8(n + 1) + 4·(2·edges) bytes, and as much again while it is built.

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, zero};
use crate::scalar::Scalar;

/// Adjacency lists, each sorted by index.
pub(crate) struct Graph {
    ptr: Vec<usize>,
    adjacent: Vec<u32>,
}

impl Graph {
    /// Pattern of A + Aᵀ without the diagonal. O(nnz + n): one counting sort for Aᵀ, then a merge of sorted rows.
    #[inline(never)]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let n = a.nrows();
        let edges_of = |i: usize| {
            let (cols, vals) = a.row(i);
            cols.iter().zip(vals).filter(move |(j, v)| **j as usize != i && **v != zero()).map(|(j, _)| *j)
        };
        // Aᵀ by a counting sort over columns.
        let mut column = vec![0usize; n + 1];
        for i in 0..n {
            for j in edges_of(i) {
                column[j as usize + 1] += 1;
            }
        }
        for j in 0..n {
            column[j + 1] += column[j];
        }
        let mut next = column.clone();
        let mut rows = vec![0u32; column[n]];
        for i in 0..n {
            for j in edges_of(i) {
                rows[next[j as usize]] = i as u32;
                next[j as usize] += 1;
            }
        }
        // Row i of A + Aᵀ is the union of two sorted lists; `next` and `column` are not needed any more after it.
        let mut graph = Self { ptr: Vec::with_capacity(n + 1), adjacent: Vec::with_capacity(rows.len()) };
        graph.ptr.push(0);
        for i in 0..n {
            let mut transposed = rows[column[i]..column[i + 1]].iter().copied().peekable();
            for j in edges_of(i) {
                while let Some(k) = transposed.next_if(|&k| k < j) {
                    graph.adjacent.push(k);
                }
                transposed.next_if_eq(&j);
                graph.adjacent.push(j);
            }
            graph.adjacent.extend(transposed);
            graph.ptr.push(graph.adjacent.len());
        }
        Ok(graph)
    }

    /// Number of vertices.
    pub fn n(&self) -> usize {
        self.ptr.len() - 1
    }
    /// Neighbours of `v`, increasing.
    pub fn neighbours(&self, v: u32) -> &[u32] {
        &self.adjacent[self.range(v)]
    }
    /// Where the neighbours of `v` stand among all adjacency lists.
    pub fn range(&self, v: u32) -> std::ops::Range<usize> {
        self.ptr[v as usize]..self.ptr[v as usize + 1]
    }
    /// Number of neighbours of `v`.
    pub fn degree(&self, v: u32) -> usize {
        self.range(v).len()
    }
}
