//! Which rank should own which rows: contiguous ranges, whole blocks, or distributed site expansion; and how good that is.
//!
//! Site expansion: p rows far from one another in the graph of A + Aᵀ are the sites; the smallest domain takes the next row from the
//! level sets that grow around its site, until all rows are taken. Then borders are smoothed: a row goes to the domain that most of its neighbours are
//! in, where sizes allow, and domains that are too large give rows to smaller neighbours. The row of each domain that is farthest from its
//! border becomes its site, and all grow again; the division that cuts fewest edges is kept. Y. Saad, Iterative Methods for Sparse Linear
//! Systems, 2nd ed., Algorithm 14.10 and §14.6.3, doi:10.1137/1.9780898718003; T. Goehring, Y. Saad, Heuristic algorithms for automatic graph
//! partitioning, Tech. Rep. UMSI 94-29, University of Minnesota, 1994. Smoothing is added here.
//!
//! Cost: O(nnz + n·log p) for each of four growths and O(nnz) for each of at most 16 passes over its borders, and O(p·nnz) for the first sites, on the rank that has A; storage O(n + p) and the
//! pattern of Aᵀ.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use bt_formats::{Csr, LinearOperator, Partition, Scalar, zero};

use crate::comm::{Comm, Number, Parts};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};

/// Times that domains grow.
const ROUNDS: usize = 4;
/// Passes of smoothing after each growth, at most.
const PASSES: usize = 16;
/// Rows beyond the mean that a domain may have, by part of it.
const EXCESS: f64 = 0.03;
/// No domain, no distance.
const NONE: u32 = u32::MAX;

/// The owner of each row of a system.
///
/// ```
/// use bt_parallel::Division;
/// let division = Division::contiguous(5, 2);
/// assert_eq!((division.owner(), division.rows(1)), (&[0, 0, 0, 1, 1][..], vec![3, 4]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    owner: Vec<u32>,
    n_ranks: usize,
}

impl Division {
    /// Consecutive rows for each of p ranks, as many for each but for one more on the first ones.
    ///
    /// # Panics
    /// When p is 0, here and in all divisions.
    pub fn contiguous(n: usize, p: usize) -> Self {
        assert!(p > 0, "a division among no ranks");
        let owner = (0..p).flat_map(|rank| vec![rank as u32; n / p + usize::from(rank < n % p)]).collect();
        Self { owner, n_ranks: p }
    }

    /// Consecutive rows for the first ranks, at least `least` for each that has any, where the system has as many: what SPIKE asks of narrow
    /// systems on many ranks.
    ///
    /// ```
    /// use bt_parallel::Division;
    /// assert_eq!(Division::contiguous_of_at_least(7, 4, 3).owner(), [0, 0, 0, 0, 1, 1, 1]);
    /// ```
    pub fn contiguous_of_at_least(n: usize, p: usize, least: usize) -> Self {
        assert!(p > 0, "a division among no ranks");
        let q = (n / least.max(1)).clamp(1, p);
        Self { n_ranks: p, ..Self::contiguous(n, q) }
    }

    /// Consecutive whole blocks, each with the rank whose share of the rows its middle falls into: the block-tridiagonal structure
    /// stays, and ranks beyond the blocks get none.
    pub fn by_blocks(blocks: &Partition, p: usize) -> Self {
        assert!(p > 0, "a division among no ranks");
        let n = blocks.n();
        let rank = |j: usize| {
            let range = blocks.range(j);
            ((range.start + range.end) as u64 * p as u64 / (2 * n as u64)) as u32
        };
        let owner = (0..blocks.n_blocks()).flat_map(|j| vec![rank(j); blocks.size(j)]).collect();
        Self { owner, n_ranks: p }
    }

    /// By distributed site expansion on the pattern of a square matrix.
    ///
    /// # Errors
    /// [`bt_formats::Error::NotSquare`].
    pub fn site_expansion<T: Scalar>(a: &Csr<T>, p: usize) -> Result<Self, bt_formats::Error> {
        assert!(p > 0, "a division among no ranks");
        a.check_square()?;
        let graph = Graph { a, transpose: &a.transpose() };
        let mut sites = first_sites(&graph, p);
        let mut best: Option<(u64, Vec<u32>)> = None;
        for _ in 0..ROUNDS {
            let mut owner = grow(&graph, &sites, p);
            smooth(&graph, &mut owner, p);
            let cut = graph.cut(&owner);
            if best.as_ref().is_none_or(|b| cut < b.0) {
                best = Some((cut, owner.clone()));
            }
            sites = centres(&graph, &owner, p);
        }
        Ok(Self { owner: best.map(|b| b.1).unwrap_or_default(), n_ranks: p })
    }

    /// The rank of each row.
    pub fn owner(&self) -> &[u32] {
        &self.owner
    }
    /// Ranks.
    pub fn n_ranks(&self) -> usize {
        self.n_ranks
    }
    /// The rows of a rank, increasing.
    pub fn rows(&self, rank: usize) -> Vec<u32> {
        let of_rank = self.owner.iter().zip(0u32..).filter(|(owner, _)| **owner as usize == rank);
        of_rank.map(|(_, row)| row).collect()
    }

    /// How good the division is for a matrix of as many rows.
    ///
    /// # Panics
    /// When the matrix has another size.
    pub fn quality<T: Scalar>(&self, a: &Csr<T>) -> Quality {
        assert_eq!((a.nrows(), a.ncols()), (self.owner.len(), self.owner.len()), "size of the matrix");
        let graph = Graph { a, transpose: &a.transpose() };
        let (mut rows, mut entries, mut interface) = (vec![0usize; self.n_ranks], vec![0usize; self.n_ranks], 0);
        for (i, &owner) in self.owner.iter().enumerate() {
            rows[owner as usize] += 1;
            entries[owner as usize] += a.row(i).0.len();
            interface += usize::from(graph.neighbours(i).any(|j| self.owner[j] != owner));
        }
        let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0);
        let balance = |counts: &[usize]| {
            let mean = counts.iter().sum::<usize>() as f64 / self.n_ranks as f64;
            if mean > 0.0 { most(counts) as f64 / mean } else { 1.0 }
        };
        Quality {
            n_ranks: self.n_ranks,
            cut: graph.cut(&self.owner),
            interface,
            rows: (rows.iter().copied().min().unwrap_or(0), most(&rows)),
            row_balance: balance(&rows),
            entry_balance: balance(&entries),
        }
    }
}

/// What a division costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Ranks.
    pub n_ranks: usize,
    /// Entries of A whose row and column have different owners.
    pub cut: u64,
    /// Rows with a neighbour on another rank.
    pub interface: usize,
    /// Rows of the rank with fewest and of that with most.
    pub rows: (usize, usize),
    /// Rows of the largest rank over the mean.
    pub row_balance: f64,
    /// Entries of the largest rank over the mean.
    pub entry_balance: f64,
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ranks of {} to {} rows (largest over mean {:.3}, of entries {:.3}); {} entries cut, {} interface rows",
            self.n_ranks, self.rows.0, self.rows.1, self.row_balance, self.entry_balance, self.cut, self.interface
        )
    }
}

impl<'c, T: Number, C: Comm> DistributedCsr<'c, T, C> {
    /// From a matrix that every rank has. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where matrix and division disagree in size; as [`DistributedCsr::from_rows`].
    pub fn from_replicated(comm: &'c C, a: &Csr<T>, division: &Division) -> Result<Self> {
        agree(comm, fits(a, division, comm.size()))?;
        let own = division.rows(comm.rank());
        Self::from_rows(comm, a.ncols(), own.clone(), own.iter().map(|&i| a.row(i as usize)))
    }

    /// From a matrix and a division that rank 0 has; what other ranks give is not looked at. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where rank 0 gives none, or they disagree in size; as [`DistributedCsr::from_rows`].
    ///
    /// # Cost
    /// Rank 0 sends 8 + s bytes an entry at most, s the size of a scalar, and 8 a row.
    pub fn from_first_rank(comm: &'c C, given: Option<(&Csr<T>, &Division)>) -> Result<Self> {
        let first = comm.rank() == 0;
        let checked = match given {
            Some((a, division)) if first => fits(a, division, comm.size()),
            None if first => Err(Fault::input("no matrix is given")),
            _ => Ok(()),
        };
        agree(comm, checked)?;
        let given = given.filter(|_| first);
        let mut n = given.map_or(Vec::new(), |(a, _)| vec![a.ncols() as u64]);
        comm.broadcast(0, &mut n)?;
        let rows = |rank| given.map_or(Vec::new(), |(_, division)| division.rows(rank));
        let row = |i: &u32| given.map_or((&[][..], &[][..]), |(a, _)| a.row(*i as usize));
        let p = comm.size();
        let own = comm.all_to_all(&Parts::new((0..p).map(rows)))?;
        let of_rows = |f: &dyn Fn(&u32) -> u32| Parts::new((0..p).map(|r| rows(r).iter().map(f).collect::<Vec<u32>>()));
        let lengths = comm.all_to_all(&of_rows(&|i| row(i).0.len() as u32))?;
        let cols = (0..p).map(|r| rows(r).iter().flat_map(|i| row(i).0).copied().collect::<Vec<u32>>());
        let cols = comm.all_to_all(&Parts::new(cols))?;
        let values = (0..p).map(|r| rows(r).iter().flat_map(|i| row(i).1).copied().collect::<Vec<T>>());
        let values = comm.all_to_all(&Parts::new(values))?;
        let mut end = 0;
        let slices = lengths.part(0).iter().map(|&length| {
            let start = end;
            end += length as usize;
            (&cols.part(0)[start..end], &values.part(0)[start..end])
        });
        Self::from_rows(comm, n.first().map_or(0, |&n| n as usize), own.part(0).to_vec(), slices)
    }

    /// The own entries of a vector that every rank has whole.
    ///
    /// # Panics
    /// When it has not n entries.
    pub fn own_entries(&self, whole: &[T]) -> Vec<T> {
        assert_eq!(whole.len(), self.rows().n(), "entries of the vector");
        self.rows().own().iter().map(|&g| whole[g as usize]).collect()
    }

    /// The whole vector on every rank, from the own entries of each. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Cost
    /// 4 + s bytes of each own row to all ranks.
    pub fn whole(&self, own: &[T]) -> Result<Vec<T>> {
        let rows = self.comm.all_gather(self.rows().own())?;
        let values = self.comm.all_gather(own)?;
        let mut whole = vec![zero(); self.rows().n()];
        rows.values().iter().zip(values.values()).for_each(|(&g, &v)| whole[g as usize] = v);
        Ok(whole)
    }
}

fn fits<T: Scalar>(a: &Csr<T>, division: &Division, p: usize) -> Result<(), Fault> {
    a.check_square()?;
    if a.nrows() != division.owner.len() || division.n_ranks != p {
        let (n, m, q) = (a.nrows(), division.owner.len(), division.n_ranks);
        return Err(Fault::input(format!("a division of {m} rows among {q} ranks for a matrix of {n} on {p}")));
    }
    Ok(())
}

/// The pattern of A + Aᵀ.
struct Graph<'a, T> {
    a: &'a Csr<T>,
    transpose: &'a Csr<T>,
}

impl<T: Scalar> Graph<'_, T> {
    fn n(&self) -> usize {
        self.a.nrows()
    }

    /// Neighbours of a row, some twice, itself among them.
    fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.a.row(i).0.iter().chain(self.transpose.row(i).0).map(|&j| j as usize)
    }

    fn cut(&self, owner: &[u32]) -> u64 {
        let other = |i: usize| self.a.row(i).0.iter().filter(move |&&j| owner[j as usize] != owner[i]).count() as u64;
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
            for j in self.neighbours(i) {
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
                sizes[rank] += 1;
                fronts[rank].extend(graph.neighbours(i).filter(|&j| owner[j] == NONE));
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
    let n = graph.n();
    let limit = n.div_ceil(p) + (EXCESS * n as f64 / p as f64) as usize;
    let mut sizes = vec![0usize; p];
    for &rank in &*owner {
        sizes[rank as usize] += 1;
    }
    let mut around: Vec<(u32, usize)> = Vec::new();
    for _ in 0..PASSES {
        let mut moves = 0;
        for i in 0..n {
            let own = owner[i];
            // Domains around the row, with the neighbours in each.
            around.clear();
            for rank in graph.neighbours(i).filter(|&j| j != i).map(|j| owner[j]) {
                match around.iter_mut().find(|a| a.0 == rank) {
                    Some(a) => a.1 += 1,
                    None => around.push((rank, 1)),
                }
            }
            let size = sizes[own as usize];
            let inside = around.iter().find(|a| a.0 == own).map_or(0, |a| a.1);
            let better = |&&(rank, neighbours): &&(u32, usize)| {
                let other = sizes[rank as usize];
                let smaller = other + 1 < size;
                rank != own
                    && (neighbours > inside && other < limit
                        || neighbours == inside && smaller
                        || size > limit && smaller)
            };
            let best = around.iter().filter(better).max_by_key(|a| (a.1, Reverse(sizes[a.0 as usize]), Reverse(a.0)));
            if let Some(&(rank, _)) = best.filter(|_| size > 1) {
                owner[i] = rank;
                sizes[own as usize] -= 1;
                sizes[rank as usize] += 1;
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
    let border = (0..graph.n()).filter(|&i| graph.neighbours(i).any(|j| owner[j] != owner[i]));
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
