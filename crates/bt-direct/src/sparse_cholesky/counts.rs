//! The elimination tree of a Hermitian matrix and the number of entries in each column of its Cholesky factor, from the
//! pattern alone and without forming the factor.
//!
//! J. R. Gilbert, E. G. Ng & B. W. Peyton, SIAM J. Matrix Anal. Appl. 15 (1994) 1075–1091, doi:10.1137/S0895479892236921;
//! the tree by J. W. H. Liu, ACM TOMS 12 (1986) 127–148, doi:10.1145/6497.6499. Row i of L is the subtree of the tree that the
//! entries of row i of A span; of it only the leaves are looked at, and where the paths of two leaves meet. Counts of
//! cancellations are not made: they are of a generic matrix of this pattern.
//!
//! Storage: 32n bytes. Cost: near O(nnz).

use super::pattern::Pattern;

const NONE: u32 = u32::MAX;

/// What elimination in an order does.
pub struct Counts {
    /// `order[k]`: the row that is eliminated as number k. That given, so changed that every subtree of the elimination tree
    /// stands together and before its root: it causes the same fill.
    pub order: Vec<u32>,
    /// Its inverse.
    pub position: Vec<u32>,
    /// Entries of each column of L, the diagonal included.
    pub columns: Vec<u32>,
}

/// Eliminates a pattern that is symmetric, in the order given.
pub fn count(pattern: &Pattern, order: &[u32]) -> Counts {
    let n = order.len();
    let before = inverse(order);
    let parent = tree(pattern, order, &before);
    let post = postorder(&parent);
    // New names: node `post[k]` of the old order is number k.
    let name = inverse(&post);
    let order: Vec<u32> = post.iter().map(|&k| order[k as usize]).collect();
    let position = inverse(&order);
    let mut up = vec![NONE; n];
    for (old, &p) in parent.iter().enumerate() {
        if p != NONE {
            up[name[old] as usize] = name[p as usize];
        }
    }
    let columns = column_counts(pattern, &order, &position, &up);
    Counts { order, position, columns }
}

pub fn inverse(order: &[u32]) -> Vec<u32> {
    let mut position = vec![0; order.len()];
    for (k, &i) in order.iter().enumerate() {
        position[i as usize] = k as u32;
    }
    position
}

/// Parent of each node: the first row below the diagonal in its column of L.
fn tree(pattern: &Pattern, order: &[u32], position: &[u32]) -> Vec<u32> {
    let n = order.len();
    let mut parent = vec![NONE; n];
    // Shortcuts towards the root of what has been seen of the tree.
    let mut ancestor = vec![NONE; n];
    for k in 0..n as u32 {
        for &j in pattern.row(order[k as usize] as usize) {
            let mut i = position[j as usize];
            while i < k {
                let next = std::mem::replace(&mut ancestor[i as usize], k);
                if next == NONE {
                    parent[i as usize] = k;
                    break;
                }
                i = next;
            }
        }
    }
    parent
}

/// The nodes such that every subtree stands together, its root last; children in their order.
fn postorder(parent: &[u32]) -> Vec<u32> {
    let n = parent.len();
    let (mut child, mut sibling) = (vec![NONE; n], vec![NONE; n]);
    for k in (0..n).rev() {
        if parent[k] != NONE {
            sibling[k] = std::mem::replace(&mut child[parent[k] as usize], k as u32);
        }
    }
    let mut post = Vec::with_capacity(n);
    let mut path = Vec::new();
    for root in (0..n as u32).filter(|&k| parent[k as usize] == NONE) {
        path.push(root);
        while let Some(&k) = path.last() {
            let next = std::mem::replace(&mut child[k as usize], NONE);
            if next == NONE {
                path.pop();
                post.push(k);
            } else {
                // The rest of the children comes when this one is done.
                child[k as usize] = sibling[next as usize];
                path.push(next);
            }
        }
    }
    post
}

/// Entries of each column of L, for a tree in postorder.
fn column_counts(pattern: &Pattern, order: &[u32], position: &[u32], parent: &[u32]) -> Vec<u32> {
    let n = order.len();
    // The first (deepest, leftmost) descendant of each node.
    let mut first: Vec<u32> = (0..n as u32).collect();
    // δ: column j has Σ δ over the subtree of j entries. A leaf has its diagonal.
    let mut delta: Vec<i64> = vec![1; n];
    for k in 0..n {
        if parent[k] != NONE {
            let p = parent[k] as usize;
            first[p] = first[p].min(first[k]);
            delta[p] = 0;
        }
    }
    // The last leaf that was met of the subtree of each row; sets of nodes, named by their root so far.
    let mut last_leaf = vec![NONE; n];
    let mut set: Vec<u32> = (0..n as u32).collect();
    for j in 0..n as u32 {
        let at = j as usize;
        if parent[at] != NONE {
            // What came up from j is counted once more by the entry of its parent's diagonal.
            delta[parent[at] as usize] -= 1;
        }
        for &i in pattern.row(order[at] as usize) {
            let i = position[i as usize];
            if i <= j {
                continue;
            }
            let row = i as usize;
            // The subtree of j is first[j]..=j: j is a leaf for row i unless one was met in there.
            if last_leaf[row] != NONE && last_leaf[row] >= first[at] {
                continue;
            }
            delta[at] += 1;
            let previous = std::mem::replace(&mut last_leaf[row], j);
            if previous != NONE {
                // The paths of two leaves to i are one from where they meet.
                delta[find(&mut set, previous) as usize] -= 1;
            }
        }
        if parent[at] != NONE {
            set[at] = parent[at];
        }
    }
    for k in 0..n {
        if parent[k] != NONE {
            delta[parent[k] as usize] += delta[k];
        }
    }
    delta.into_iter().map(|d| d as u32).collect()
}

/// The root of the set of `i`, with path halving.
fn find(set: &mut [u32], mut i: u32) -> u32 {
    while set[i as usize] != i {
        let next = set[set[i as usize] as usize];
        set[i as usize] = next;
        i = next;
    }
    i
}
