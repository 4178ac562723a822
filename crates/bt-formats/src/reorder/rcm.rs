//! Reverse Cuthill–McKee from a pseudo-peripheral vertex: a narrow band around the diagonal.
//!
//! Cuthill & McKee, Proc. 24th ACM Nat. Conf. (1969), doi:10.1145/800195.805928: breadth-first search that numbers the
//! neighbours of each vertex by increasing degree; reversed (George 1971), the same band with a smaller profile.
//! The start is found as by George & Liu, ACM TOMS 5 (1979), doi:10.1145/355841.355845: from any vertex go to one of
//! least degree in the last level of the search, as long as that deepens the level structure.
//!
//! Non-standard: the search for the start stops after [`MAX_SEARCHES`] level structures (more than four are rare), so
//! that the cost is bounded; components keep the order of their smallest indices, each reversed in itself.
//!
//! Cost: O(nnz + n log d), d the largest degree (the logarithm sorts each vertex once among its siblings). Memory:
//! the graph of A + Aᵀ, at most 16·nnz bytes while it is built, and 10n bytes.

use super::Graph;
use crate::csr::Csr;
use crate::error::Result;
use crate::permutation::Permutation;
use crate::scalar::Scalar;

/// Level structures built at most in search of a start.
const MAX_SEARCHES: u8 = 10;

/// The reverse Cuthill–McKee order of the pattern of A + Aᵀ; take it as `a.permute(&p, &p)`.
///
/// Self-loops and stored zeros are ignored; an isolated vertex is a component of its own. Deterministic.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz + n log d), d the largest number of entries in a row of A + Aᵀ.
///
/// ```
/// use bt_formats::{Coo, reorder};
/// // The path 0 – 3 – 1 – 4 – 2 as a matrix: bandwidth 3 as numbered, 1 along the path.
/// let mut a = Coo::new(5, 5)?;
/// for (i, j) in [(0, 3), (3, 1), (1, 4), (4, 2)] {
///     a.push(i, j, 1.0)?;
///     a.push(j, i, 1.0)?;
/// }
/// let a = a.to_csr()?;
/// let p = reorder::rcm(&a)?;
/// assert_eq!(reorder::bandwidth(&a), (3, 3));
/// assert_eq!(reorder::bandwidth_under(&a, &p), (1, 1));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn rcm<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    let graph = Graph::of(a)?;
    let n = graph.n();
    let mut order: Vec<u32> = Vec::with_capacity(n);
    let mut numbered = vec![false; n];
    let mut levels = LevelStructure::new(n);
    for v in 0..n as u32 {
        if numbered[v as usize] {
            continue;
        }
        let first = order.len();
        let root = levels.pseudo_peripheral(&graph, v);
        // Cuthill–McKee: `order[first..]` is the queue.
        order.push(root);
        numbered[root as usize] = true;
        let mut head = first;
        while head < order.len() {
            let children = order.len();
            for &w in graph.neighbours(order[head]) {
                if !numbered[w as usize] {
                    numbered[w as usize] = true;
                    order.push(w);
                }
            }
            // Neighbours stand by index, so that a stable sort breaks ties by index.
            order[children..].sort_by_key(|&w| graph.degree(w));
            head += 1;
        }
        order[first..].reverse();
    }
    Permutation::from_order(order)
}

/// Breadth-first search that can be repeated: vertices by level, and the number of the search that saw each last.
struct LevelStructure {
    queue: Vec<u32>,
    seen: Vec<u8>,
}

impl LevelStructure {
    fn new(n: usize) -> Self {
        Self { queue: Vec::with_capacity(n), seen: vec![0; n] }
    }

    /// Levels from `root`: returns their number; the last one is `queue[start..]` for the `start` returned with it.
    /// `search` counts from 1 in each component, whose vertices no search has seen before.
    fn build(&mut self, graph: &Graph, root: u32, search: u8) -> (usize, usize) {
        self.queue.clear();
        self.queue.push(root);
        self.seen[root as usize] = search;
        let (mut depth, mut start) = (0, 0);
        loop {
            depth += 1;
            let end = self.queue.len();
            for head in start..end {
                for &w in graph.neighbours(self.queue[head]) {
                    if self.seen[w as usize] != search {
                        self.seen[w as usize] = search;
                        self.queue.push(w);
                    }
                }
            }
            if self.queue.len() == end {
                return (depth, start);
            }
            start = end;
        }
    }

    /// George & Liu: a vertex whose level structure is deep, in the component of `v`.
    fn pseudo_peripheral(&mut self, graph: &Graph, v: u32) -> u32 {
        let mut root = v;
        if graph.degree(v) == 0 {
            return root;
        }
        let (mut depth, mut last) = self.build(graph, root, 1);
        for search in 2..=MAX_SEARCHES {
            let level = &self.queue[last..];
            let Some(&candidate) = level.iter().min_by_key(|&&w| (graph.degree(w), w)) else { break };
            let (new_depth, new_last) = self.build(graph, candidate, search);
            if new_depth <= depth {
                // As deep from the candidate, which has the smaller degree of the two ends.
                return if new_depth == depth { candidate } else { root };
            }
            (root, depth, last) = (candidate, new_depth, new_last);
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coo::Coo;
    use crate::reorder::{bandwidth, bandwidth_under, profile, profile_under};

    fn graph(n: usize, edges: &[(usize, usize)]) -> Csr<f64> {
        let mut a = Coo::new(n, n).unwrap();
        for &(i, j) in edges {
            a.push(i, j, 1.0).unwrap();
            a.push(j, i, 1.0).unwrap();
        }
        a.to_csr().unwrap()
    }

    #[test]
    fn two_paths_an_isolated_vertex_and_a_loop() {
        // 0 – 4 – 2, 1 – 6 – 3 and 5 with a loop.
        let a = graph(7, &[(0, 4), (4, 2), (1, 6), (6, 3), (5, 5)]);
        let p = rcm(&a).unwrap();
        assert_eq!(bandwidth_under(&a, &p), (1, 1));
        // Components by smallest index: {0, 2, 4}, {1, 3, 6}, {5}.
        assert_eq!(p.order()[6], 5);
        assert_eq!(p.position()[4], 1);
        assert_eq!(p.position()[6], 4);
        assert_eq!((profile_under(&a, &p), profile(&a)), (4, 4 + 5));
    }

    #[test]
    fn a_star_starts_at_a_leaf() {
        // The centre of a star with n − 1 leaves: any order has bandwidth ≥ (n − 1)/2, RCM from a leaf has n − 2.
        let a = graph(6, &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        assert_eq!(bandwidth_under(&a, &rcm(&a).unwrap()), (4, 4));
        assert_eq!(bandwidth(&a), (5, 5));
    }

    #[test]
    fn empty_and_rectangular() {
        assert!(rcm(&graph(0, &[])).unwrap().is_empty());
        assert_eq!(rcm(&graph(1, &[(0, 0)])).unwrap().order(), [0]);
        let wide = Csr::<f64>::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        assert!(matches!(rcm(&wide), Err(crate::Error::NotSquare { nrows: 1, ncols: 2 })));
        assert_eq!(bandwidth(&wide), (0, 1));
    }
}
