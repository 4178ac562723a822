//! Distributed site expansion: domains that grow in the graph of A + Aᵀ.
//!
//! p rows far from one another are the sites; the smallest domain takes the next row from the level sets that grow around its site, until all
//! rows are taken. Then borders are smoothed: a row goes to the domain that most of its neighbours are
//! in, where sizes allow, and domains that are too large give rows to smaller neighbours. The row of each domain that is farthest from its
//! border becomes its site, and all grow again; the division that cuts fewest edges is kept. Y. Saad, Iterative Methods for Sparse Linear
//! Systems, 2nd ed., Algorithm 14.10 and §14.6.3, doi:10.1137/1.9780898718003; T. Goehring, Y. Saad, Heuristic algorithms for automatic graph
//! partitioning, Tech. Rep. UMSI 94-29, University of Minnesota, 1994. Smoothing is added here.
//!
//! A row may stand for a cluster of rows, and an entry for those between two clusters (`clusters.rs`): sizes and cuts are counted in rows and entries
//! of the system.
//!
//! Cost: O(nnz + n·log p) for each of four growths and O(nnz) for each of at most 16 passes over its borders, and O(p·nnz) for the first sites;
//! storage O(n + p).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bt_formats::{Csr, LinearOperator, Scalar};

/// Times that domains grow.
const ROUNDS: usize = 4;
/// Passes of smoothing after each growth, at most.
const PASSES: usize = 16;
/// Rows beyond the mean that a domain may have, by part of it.
const EXCESS: f64 = 0.03;
/// No domain, no distance.
const NONE: u32 = u32::MAX;

/// The domain of each row.
pub(crate) fn site_expansion<T: Scalar>(graph: &Graph<'_, T>, p: usize) -> Vec<u32> {
    let mut sites = first_sites(graph, p);
    let mut best: Option<(u64, Vec<u32>)> = None;
    for _ in 0..ROUNDS {
        let mut owner = grow(graph, &sites, p);
        smooth(graph, &mut owner, p);
        let cut = graph.cut(&owner);
        if best.as_ref().is_none_or(|b| cut < b.0) {
            best = Some((cut, owner.clone()));
        }
        sites = centres(graph, &owner, p);
    }
    best.map(|b| b.1).unwrap_or_default()
}

/// The pattern of A + Aᵀ, or of clusters of rows.
pub(crate) struct Graph<'a, T> {
    pub a: &'a Csr<T>,
    pub transpose: &'a Csr<T>,
    /// How many entries of the system an entry stands for.
    pub entries: fn(T) -> u64,
    /// Of the system, in each row; one where there are none.
    pub rows: Option<&'a [u32]>,
}

impl<T: Scalar> Graph<'_, T> {
    fn n(&self) -> usize {
        self.a.nrows()
    }

    /// Rows of the system in a row.
    fn weight(&self, i: usize) -> usize {
        self.rows.map_or(1, |rows| rows[i] as usize)
    }

    fn total(&self) -> usize {
        (0..self.n()).map(|i| self.weight(i)).sum()
    }

    /// Neighbours of a row with entries, some twice, itself among them.
    pub fn neighbours(&self, i: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let ((cols, values), (rows, others)) = (self.a.row(i), self.transpose.row(i));
        let both = cols.iter().zip(values).chain(rows.iter().zip(others));
        both.map(|(&j, &v)| (j as usize, (self.entries)(v)))
    }

    /// Entries of A between domains.
    pub fn cut(&self, owner: &[u32]) -> u64 {
        let other = |i: usize| {
            let (cols, values) = self.a.row(i);
            let away = cols.iter().zip(values).filter(|e| owner[*e.0 as usize] != owner[i]);
            away.map(|e| (self.entries)(*e.1)).sum::<u64>()
        };
        (0..self.n()).map(other).sum()
    }

    /// Distances from the nearest of `from`, in edges, among the rows that `within` allows.
    fn distances(&self, from: impl IntoIterator<Item = usize>, within: impl Fn(usize, usize) -> bool) -> Vec<u32> {
        let mut distance = vec![NONE; self.n()];
        let mut queue: VecDeque<usize> = from.into_iter().collect();
        for &i in &queue {
            distance[i] = 0;
        }
        while let Some(i) = queue.pop_front() {
            for (j, _) in self.neighbours(i) {
                if distance[j] == NONE && within(i, j) {
                    distance[j] = distance[i] + 1;
                    queue.push_back(j);
                }
            }
        }
        distance
    }
}

/// Rows far from one another: each the farthest from those before, the first the farthest from row 0; unreached ones are farthest.
fn first_sites<T: Scalar>(graph: &Graph<'_, T>, p: usize) -> Vec<usize> {
    let farthest = |distance: &[u32]| (0..distance.len()).max_by_key(|&i| (distance[i], Reverse(i)));
    let n = graph.n();
    let mut sites: Vec<usize> = Vec::new();
    let Some(first) = farthest(&graph.distances((0..n).take(1), |_, _| true)) else { return sites };
    sites.push(first);
    while sites.len() < p.min(n) {
        let distance = graph.distances(sites.iter().copied(), |_, _| true);
        sites.extend(farthest(&distance));
    }
    sites
}

/// Domains around the sites. The smallest takes the next row of its level sets; one that others enclose stops; where all have stopped the smallest
/// goes on from the lowest row that nobody has.
fn grow<T: Scalar>(graph: &Graph<'_, T>, sites: &[usize], p: usize) -> Vec<u32> {
    let n = graph.n();
    let mut owner = vec![NONE; n];
    let mut fronts: Vec<VecDeque<usize>> = sites.iter().map(|&site| VecDeque::from([site])).collect();
    fronts.resize(p, VecDeque::new());
    let mut sizes = vec![0usize; p];
    // The lowest rank among equals.
    let mut turns: BinaryHeap<Reverse<(usize, usize)>> = (0..p).map(|rank| Reverse((0, rank))).collect();
    let (mut lowest, mut left) = (0, n);
    while left > 0 {
        let Some(Reverse((_, rank))) = turns.pop() else {
            while owner[lowest] != NONE {
                lowest += 1;
            }
            let smallest = (0..p).min_by_key(|&rank| sizes[rank]).unwrap_or(0);
            fronts[smallest].push_back(lowest);
            turns.push(Reverse((sizes[smallest], smallest)));
            continue;
        };
        while let Some(i) = fronts[rank].pop_front() {
            if owner[i] == NONE {
                owner[i] = rank as u32;
                left -= 1;
                sizes[rank] += graph.weight(i);
                fronts[rank].extend(graph.neighbours(i).map(|e| e.0).filter(|&j| owner[j] == NONE));
                turns.push(Reverse((sizes[rank], rank)));
                break;
            }
        }
    }
    owner
}

/// Rows go to the domain that most of their neighbours are in, as long as that stays within [`EXCESS`] of the mean; domains beyond it give rows to
/// smaller neighbours whatever is cut.
fn smooth<T: Scalar>(graph: &Graph<'_, T>, owner: &mut [u32], p: usize) {
    let (n, total) = (graph.n(), graph.total());
    let limit = total.div_ceil(p) + (EXCESS * total as f64 / p as f64) as usize;
    let mut sizes = vec![0usize; p];
    for (i, &rank) in owner.iter().enumerate() {
        sizes[rank as usize] += graph.weight(i);
    }
    let mut around: Vec<(u32, u64)> = Vec::new();
    for _ in 0..PASSES {
        let mut moves = 0;
        for i in 0..n {
            let own = owner[i];
            // Domains around the row, with the neighbours in each.
            around.clear();
            for (rank, entries) in graph.neighbours(i).filter(|e| e.0 != i).map(|(j, entries)| (owner[j], entries)) {
                match around.iter_mut().find(|a| a.0 == rank) {
                    Some(a) => a.1 += entries,
                    None => around.push((rank, entries)),
                }
            }
            let (size, weight) = (sizes[own as usize], graph.weight(i));
            let inside = around.iter().find(|a| a.0 == own).map_or(0, |a| a.1);
            let better = |&&(rank, neighbours): &&(u32, u64)| {
                let other = sizes[rank as usize];
                let smaller = other + weight < size;
                rank != own
                    && (neighbours > inside && other + weight <= limit
                        || neighbours == inside && smaller
                        || size > limit && smaller)
            };
            let best = around.iter().filter(better).max_by_key(|a| (a.1, Reverse(sizes[a.0 as usize]), Reverse(a.0)));
            if let Some(&(rank, _)) = best.filter(|_| size > weight) {
                owner[i] = rank;
                sizes[own as usize] -= weight;
                sizes[rank as usize] += weight;
                moves += 1;
            }
        }
        if moves == 0 {
            break;
        }
    }
}

/// Of each domain the row farthest from its border, the lowest among equals.
fn centres<T: Scalar>(graph: &Graph<'_, T>, owner: &[u32], p: usize) -> Vec<usize> {
    let border = (0..graph.n()).filter(|&i| graph.neighbours(i).any(|(j, _)| owner[j] != owner[i]));
    let distance = graph.distances(border, |i, j| owner[i] == owner[j]);
    let mut centre: Vec<Option<usize>> = vec![None; p];
    for i in 0..graph.n() {
        let best = &mut centre[owner[i] as usize];
        // A domain without a border is not reached: any row will do.
        if best.is_none_or(|b| distance[i] > distance[b]) {
            *best = Some(i);
        }
    }
    centre.into_iter().flatten().collect()
}
