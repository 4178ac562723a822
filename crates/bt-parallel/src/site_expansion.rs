//! Distributed site expansion: domains that grow in the graph of A + Aᵀ.
//!
//! p rows far from one another are the sites; the smallest domain takes the next row from the level sets that grow around its site, until all
//! rows are taken. Then borders are smoothed: a row goes to the domain that most of its neighbours are
//! in, where sizes allow, and domains that are too large give rows to smaller neighbours. The row of each domain that is farthest from its
//! border becomes its site, and all grow again; the division that cuts fewest edges is kept. Y. Saad, Iterative Methods for Sparse Linear
//! Systems, 2nd ed., Algorithm 14.10 and §14.6.3, doi:10.1137/1.9780898718003; T. Goehring, Y. Saad, Heuristic algorithms for automatic graph
//! partitioning, Tech. Rep. UMSI 94-29, University of Minnesota, 1994. Smoothing is added here.
//!
//! Where the graph is not connected, its components are dealt to the domains first (`components.rs`), and what grows is the piece of a domain in a
//! component. Pieces that are to differ in size are cut off one after the other at first, and of the divisions one is kept whose pieces exceed
//! their limits least.
//!
//! A row may stand for a cluster of rows, and an entry for those between two clusters (`clusters.rs`): sizes and cuts are counted in rows and entries
//! of the system.
//!
//! Cost: O(nnz + n·log p) for each of four growths and O(nnz) for each of at most 16 passes over its borders, and O(p·nnz) for the first sites;
//! storage O(n + p).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bt_formats::{Csr, LinearOperator, Scalar};

use crate::components::{Dealt, Piece};

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
    let dealt = Dealt::new(graph, p, EXCESS);
    let mut sites = first_sites(graph, &dealt);
    let mut best: Option<((usize, u64), Vec<u32>)> = None;
    for round in 0..ROUNDS {
        let mut owner = grow(graph, &dealt, &sites);
        if round == 0 {
            peel(graph, &dealt, &mut owner);
        }
        smooth(graph, &dealt.pieces, &mut owner);
        let judged = (dealt.excess(graph, &owner), graph.cut(&owner));
        if best.as_ref().is_none_or(|b| judged < b.0) {
            best = Some((judged, owner.clone()));
        }
        sites = centres(graph, &owner, dealt.pieces.len());
    }
    dealt.domains(graph, &best.map(|b| b.1).unwrap_or_default(), p)
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
    pub fn n(&self) -> usize {
        self.a.nrows()
    }

    /// Rows of the system in a row.
    pub fn weight(&self, i: usize) -> usize {
        self.rows.map_or(1, |rows| rows[i] as usize)
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

/// Of the pieces of each component rows far from one another: each the farthest from those before, the first the farthest from the lowest row.
fn first_sites<T: Scalar>(graph: &Graph<'_, T>, dealt: &Dealt) -> Vec<Option<usize>> {
    let mut sites = vec![None; dealt.pieces.len()];
    let mut k = 0;
    for pieces in dealt.pieces.chunk_by(|a, b| a.component == b.component) {
        let rows = &dealt.components[pieces[0].component].rows;
        let farthest = |distance: &[u32]| rows.iter().map(|&i| i as usize).max_by_key(|&i| (distance[i], Reverse(i)));
        // The only one goes through all of them, from wherever.
        sites[k] = match pieces {
            [_] => Some(rows[0] as usize),
            _ => farthest(&graph.distances([rows[0] as usize], |_, _| true)),
        };
        for j in 1..pieces.len().min(rows.len()) {
            let before = sites[k..k + j].iter().copied().flatten();
            sites[k + j] = farthest(&graph.distances(before, |_, _| true));
        }
        k += pieces.len();
    }
    sites
}

/// Pieces around the sites, light components left as one more. The smallest for its share takes the next row of its level sets; one that others
/// enclose stops.
fn grow<T: Scalar>(graph: &Graph<'_, T>, dealt: &Dealt, sites: &[Option<usize>]) -> Vec<u32> {
    let mut owner = vec![NONE; graph.n()];
    for &c in &dealt.light {
        dealt.components[c].rows.iter().for_each(|&i| owner[i as usize] = sites.len() as u32);
    }
    let mut fronts: Vec<VecDeque<usize>> = sites.iter().map(|site| VecDeque::from_iter(*site)).collect();
    let mut sizes = vec![0usize; sites.len()];
    // Sizes and shares are below 2³²: no two sizes of a piece are as much for its share. The lowest among equals.
    let filled = |size: usize, k: usize| (u64::from(u32::MAX) * size as u64) / dealt.pieces[k].share;
    let mut turns: BinaryHeap<Reverse<(u64, usize)>> = (0..sites.len()).map(|k| Reverse((0, k))).collect();
    while let Some(Reverse((_, k))) = turns.pop() {
        while let Some(i) = fronts[k].pop_front() {
            if owner[i] == NONE {
                owner[i] = k as u32;
                sizes[k] += graph.weight(i);
                fronts[k].extend(graph.neighbours(i).map(|e| e.0).filter(|&j| owner[j] == NONE));
                turns.push(Reverse((filled(sizes[k], k), k)));
                break;
            }
        }
    }
    owner
}

/// Components whose pieces are to differ: the smallest first takes the level sets around the row that is farthest from the lowest
/// one, up to its share, and the largest what is left. A large piece that grew beside small ones would be enclosed by them.
fn peel<T: Scalar>(graph: &Graph<'_, T>, dealt: &Dealt, owner: &mut [u32]) {
    let numbered: Vec<(usize, &Piece)> = dealt.pieces.iter().enumerate().collect();
    for pieces in numbered.chunk_by(|a, b| a.1.component == b.1.component) {
        if pieces.iter().all(|piece| piece.1.share == pieces[0].1.share) {
            continue;
        }
        let mut pieces = pieces.to_vec();
        pieces.sort_by_key(|&(k, piece)| (piece.share, k));
        let Some(((last, _), smaller)) = pieces.split_last() else { continue };
        let rows = &dealt.components[pieces[0].1.component].rows;
        let distance = graph.distances([rows[0] as usize], |_, _| true);
        let mut farthest: Vec<usize> = rows.iter().map(|&i| i as usize).collect();
        farthest.sort_by_key(|&i| (Reverse(distance[i]), i));
        for &i in &farthest {
            owner[i] = NONE;
        }
        let mut next = farthest.iter().copied();
        for &(k, piece) in smaller {
            let (mut front, mut size) = (VecDeque::new(), 0);
            while size < piece.share as usize {
                let Some(i) = front.pop_front().or_else(|| next.find(|&i| owner[i] == NONE)) else { break };
                if owner[i] == NONE {
                    owner[i] = k as u32;
                    size += graph.weight(i);
                    front.extend(graph.neighbours(i).map(|e| e.0).filter(|&j| owner[j] == NONE));
                }
            }
        }
        for &i in farthest.iter().filter(|&&i| owner[i] == NONE).collect::<Vec<_>>() {
            owner[i] = *last as u32;
        }
    }
}

/// Rows go to the piece that most of their neighbours are in, as long as that stays within its limit; pieces beyond theirs give rows to neighbours
/// that are smaller for their share, whatever is cut.
fn smooth<T: Scalar>(graph: &Graph<'_, T>, pieces: &[Piece], owner: &mut [u32]) {
    let n = graph.n();
    // The last one is that of the light components, which nothing is next to.
    let mut sizes = vec![0usize; pieces.len() + 1];
    for (i, &rank) in owner.iter().enumerate() {
        sizes[rank as usize] += graph.weight(i);
    }
    let mut around: Vec<(u32, u64)> = Vec::new();
    for _ in 0..PASSES {
        let mut moves = 0;
        for i in 0..n {
            let own = owner[i];
            let Some(piece) = pieces.get(own as usize) else { continue };
            // Pieces around the row, with the neighbours in each.
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
                if rank == own {
                    return false;
                }
                let (there, other) = (sizes[rank as usize] + weight, &pieces[rank as usize]);
                let smaller = (there as u64) * piece.share < size as u64 * other.share;
                neighbours > inside && there <= other.limit
                    || neighbours == inside && smaller
                    || size > piece.limit && smaller
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

/// Of each of p pieces the row farthest from its border, the lowest among equals.
fn centres<T: Scalar>(graph: &Graph<'_, T>, owner: &[u32], p: usize) -> Vec<Option<usize>> {
    let border = (0..graph.n()).filter(|&i| graph.neighbours(i).any(|(j, _)| owner[j] != owner[i]));
    let distance = graph.distances(border, |i, j| owner[i] == owner[j]);
    let mut centre: Vec<Option<usize>> = vec![None; p];
    for i in 0..graph.n() {
        let Some(best) = centre.get_mut(owner[i] as usize) else { continue };
        // A piece without a border is not reached: any row will do.
        if best.is_none_or(|b| distance[i] > distance[b]) {
            *best = Some(i);
        }
    }
    centre
}
