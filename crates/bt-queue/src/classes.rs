//! Classes of a Markov chain: the strongly connected components of the graph of its rates.
//!
//! Tarjan, SIAM J. Comput. 1 (1972) 146–160, doi:10.1137/0201010, with a stack of its own instead of recursion: a path of
//! ten million states is no deeper than any other. A class is closed when no rate leads out of it; the others are transient.
//! Storage: 20n bytes at most. Cost: O(n + nnz).

use crate::generator::Generator;

/// The classes of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Class of every state.
    class: Vec<u32>,
    /// Whether each class is closed.
    closed: Vec<bool>,
}

impl Classes {
    /// Number of classes, the transient ones included.
    pub fn count(&self) -> usize {
        self.closed.len()
    }

    /// Class of a state.
    pub fn class_of(&self, state: usize) -> usize {
        self.class[state] as usize
    }

    /// Whether no rate leads out of the class of this state.
    pub fn is_recurrent(&self, state: usize) -> bool {
        self.closed[self.class_of(state)]
    }

    /// The states of each closed class, increasing, the class of the smallest state first.
    pub fn closed(&self) -> Vec<Vec<u32>> {
        let mut place = vec![usize::MAX; self.count()];
        let mut closed: Vec<Vec<u32>> = Vec::new();
        for (state, &class) in (0u32..).zip(&self.class).filter(|e| self.closed[*e.1 as usize]) {
            let place = &mut place[class as usize];
            if *place == usize::MAX {
                *place = closed.len();
                closed.push(Vec::new());
            }
            closed[*place].push(state);
        }
        closed
    }
}

/// Finds the classes of a chain.
///
/// ```
/// use bt_formats::Csr;
/// use bt_queue::{Generator, closed_classes};
/// // 0 → 1 ⇄ 2: state 0 is transient.
/// let q = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 1, 1, 2, 1, 2], vec![-1.0, 1.0, -1.0, 1.0, 2.0, -2.0])?;
/// let classes = closed_classes(&Generator::new(q)?);
/// assert_eq!(classes.closed(), [[1, 2]]);
/// # Ok::<(), bt_queue::Error>(())
/// ```
///
/// # Cost
/// O(n + nnz).
pub fn closed_classes(q: &Generator) -> Classes {
    const NONE: u32 = u32::MAX;
    let n = q.n();
    let (row_ptr, col_idx, values) = (q.matrix().row_ptr(), q.matrix().col_idx(), q.matrix().values());
    // Smallest order of discovery known to be reachable through unfinished components; the class once it is known.
    let (mut low, mut class) = (vec![NONE; n], vec![NONE; n]);
    let mut closed = Vec::new();
    let mut discovered = 0;
    // States of unfinished components; the path from the root, with the next entry of each state's row.
    let (mut open, mut path): (Vec<u32>, Vec<(u32, u32, u32)>) = (Vec::new(), Vec::new());
    for root in 0..n as u32 {
        if class[root as usize] != NONE {
            continue;
        }
        path.push((root, discovered, row_ptr[root as usize]));
        while let Some(&mut (state, order, ref mut next)) = path.last_mut() {
            let s = state as usize;
            if low[s] == NONE {
                low[s] = order;
                open.push(state);
                discovered += 1;
            }
            if *next < row_ptr[s + 1] {
                let k = *next as usize;
                *next += 1;
                let to = col_idx[k] as usize;
                if to == s || values[k] <= 0.0 || class[to] != NONE {
                    continue;
                }
                if low[to] == NONE {
                    path.push((to as u32, discovered, row_ptr[to]));
                } else {
                    low[s] = low[s].min(low[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, ..)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[s]);
            }
            if low[s] == order {
                // The component of `state` is what lies above it.
                let start = open.iter().rposition(|&t| t == state).unwrap_or(0);
                let name = closed.len() as u32;
                for &t in &open[start..] {
                    class[t as usize] = name;
                }
                closed.push(open[start..].iter().all(|&t| q.rates(t as usize).all(|(to, _)| class[to] == name)));
                open.truncate(start);
            }
        }
    }
    Classes { class, closed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::Coo;

    fn chain(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Generator {
        let mut coo = Coo::new(n, n).unwrap();
        for (i, j) in edges {
            coo.push(i, j, 1.0).unwrap();
            coo.push(i, i, -1.0).unwrap();
        }
        Generator::new(coo.to_csr().unwrap()).unwrap()
    }

    #[test]
    fn a_long_path_needs_no_deep_stack() {
        let n = 200_000;
        let classes = closed_classes(&chain(n, (0..n - 1).map(|i| (i, i + 1))));
        assert_eq!((classes.count(), classes.closed()), (n, vec![vec![n as u32 - 1]]));
        let classes = closed_classes(&chain(n, (0..n).map(|i| (i, (i + 1) % n))));
        assert_eq!((classes.count(), classes.closed()[0].len()), (1, n));
    }

    /// Against reachability by squaring, on all graphs of four states.
    #[test]
    fn all_graphs_of_four_states() {
        let pairs: Vec<(usize, usize)> =
            (0..4).flat_map(|i| (0..4).map(move |j| (i, j))).filter(|(i, j)| i != j).collect();
        for mask in 0u32..1 << 12 {
            let edges: Vec<_> = (0..12).filter(|k| mask >> k & 1 == 1).map(|k| pairs[k]).collect();
            let mut reach = [[false; 4]; 4];
            for i in 0..4 {
                reach[i][i] = true;
            }
            for &(i, j) in &edges {
                reach[i][j] = true;
            }
            for k in 0..4 {
                for i in 0..4 {
                    for j in 0..4 {
                        reach[i][j] |= reach[i][k] && reach[k][j];
                    }
                }
            }
            let classes = closed_classes(&chain(4, edges.iter().copied()));
            for i in 0..4 {
                for j in 0..4 {
                    assert_eq!(classes.class_of(i) == classes.class_of(j), reach[i][j] && reach[j][i], "{edges:?}");
                }
                let recurrent = (0..4).all(|j| !reach[i][j] || reach[j][i]);
                assert_eq!(classes.is_recurrent(i), recurrent, "{edges:?}");
            }
        }
    }
}
