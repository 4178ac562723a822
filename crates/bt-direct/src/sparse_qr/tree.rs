//! What the pattern of A alone says of its QR factorization: an order of columns, one of rows, the tree of columns, and how many entries
//! R and the reflections have.
//!
//! A. George & M. T. Heath, Linear Algebra Appl. 34 (1980) 69–83, doi:10.1016/0024-3795(80)90159-7: R has the pattern of the
//! Cholesky factor of AᵀA at most. In the elimination tree of that matrix, which is found without forming it, the columns of a row lie on one
//! way to the root, and a row takes part in the reflections of that way from its first column on: J. W. H. Liu, SIAM J. Matrix Anal. Appl.
//! 11 (1990) 134–172, doi:10.1137/0611010.

use bt_formats::Scalar;

use crate::error::Result;
use crate::sparse_lu::{Csc, colamd_order};

const NONE: u32 = u32::MAX;

/// The symbolic phase. Columns and rows are numbered in the order of elimination, but for the indices of `col_order` and of the arrays by rows
/// of A.
#[derive(Debug)]
pub(super) struct Tree {
    /// `col_order[k]`: the column of A that is number k.
    pub col_order: Vec<u32>,
    /// The column after which a column is taken up next; none for a root.
    pub parent: Vec<u32>,
    /// The first column of each row of A.
    pub first: Vec<u32>,
    /// The number of each row of A.
    pub position: Vec<u32>,
    /// Entries of the reflections below their ones.
    pub below: usize,
    /// Entries of R above its diagonal.
    pub above: usize,
    /// Operations on scalars, at most.
    pub flops: f64,
}

impl Tree {
    /// Of a structurally nonsingular matrix.
    pub fn of<T: Scalar>(a: &Csc<T>) -> Result<Self> {
        let n = a.n();
        let col_order = colamd_order(a)?;
        let rows = |k: usize| a.row_idx[a.range(col_order[k] as usize)].iter().map(|&i| i as usize);
        let (mut parent, mut ancestor, mut first) = (vec![NONE; n], vec![NONE; n], vec![NONE; n]);
        // The last column of each row so far.
        let mut last = vec![NONE; n];
        for k in 0..n {
            for i in rows(k) {
                // From the column of this row before k up to the root, which becomes a child of k; ways are shortened as they are gone.
                let mut c = last[i];
                while c != NONE && c != k as u32 {
                    let next = std::mem::replace(&mut ancestor[c as usize], k as u32);
                    if next == NONE {
                        parent[c as usize] = k as u32;
                    }
                    c = next;
                }
                last[i] = k as u32;
                if first[i] == NONE {
                    first[i] = k as u32;
                }
            }
        }
        let (position, lengths) = positions(&parent, &first);
        let (above, applied) = count_above(n, rows, &parent, &first, &lengths);
        let below = lengths.iter().sum();
        let flops = applied + (5 * below + 4 * n) as f64;
        Ok(Self { col_order, parent, first, position, below, above, flops })
    }
}

/// One of the rows that meet in a column becomes its pivot, which A's structural rank provides for; the others go on to the parent.
/// With how many went on from each column.
fn positions(parent: &[u32], first: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let n = parent.len();
    // Rows that wait in a column, as a list from `head`; joined to another at its `tail`.
    let (mut head, mut tail, mut waiting, mut next) = (vec![NONE; n], vec![NONE; n], vec![0usize; n], vec![NONE; n]);
    for i in (0..n).rev() {
        let c = first[i] as usize;
        next[i] = head[c];
        if head[c] == NONE {
            tail[c] = i as u32;
        }
        head[c] = i as u32;
        waiting[c] += 1;
    }
    let mut position = vec![NONE; n];
    for k in 0..n {
        let i = head[k] as usize;
        position[i] = k as u32;
        waiting[k] -= 1;
        if waiting[k] == 0 {
            continue;
        }
        // Rows that are left at a root have no further column: structural rank leaves none.
        let p = parent[k] as usize;
        if head[p] == NONE {
            tail[p] = tail[k];
        } else {
            next[tail[k] as usize] = head[p];
        }
        head[p] = next[i];
        waiting[p] += waiting[k];
    }
    (position, waiting)
}

/// Entries of R above its diagonal: of column k those on the ways from the first columns of its rows up to k. With the operations of their
/// reflections, which have so many entries beside their ones. O(entries).
fn count_above<R: Iterator<Item = usize>>(
    n: usize,
    rows: impl Fn(usize) -> R,
    parent: &[u32],
    first: &[u32],
    lengths: &[usize],
) -> (usize, f64) {
    let (mut marked, mut above, mut flops) = (vec![NONE; n], 0, 0.0);
    for k in 0..n {
        marked[k] = k as u32;
        for i in rows(k) {
            let mut c = first[i] as usize;
            while marked[c] != k as u32 {
                marked[c] = k as u32;
                above += 1;
                flops += (4 * lengths[c] + 3) as f64;
                c = parent[c] as usize;
            }
        }
    }
    (above, flops)
}
