//! Site expansion where no rank has the whole matrix: in the graph of clusters of rows.
//!
//! Each rank joins its rows, by level sets in the graph of its own part, to clusters of n/(1024·p) rows or so; what a cluster
//! leaves enclosed goes to a neighbouring cluster, and rows without a neighbour share one. The graph of all clusters, entries
//! between them as weights, is what rank 0 divides (`site_expansion.rs`); rows go to the owner of their cluster. Up to 1024·p
//! rows clusters are single rows, and the division that of [`Division::site_expansion`]. Coarsening before dividing: B.
//! Hendrickson, R. Leland, A multi-level algorithm for partitioning graphs, Proc. Supercomputing '95, doi:10.1145/224170.224228;
//! here there is one level, and borders are as rough as clusters are.
//!
//! Storage of a rank beside its rows, before and after: O(m + c) for c entries between its clusters, on rank 0 O(1024·p) for the clusters and their
//! entries. Counted: a gather of 12 bytes an entry between clusters and 4 a cluster, a broadcast of 4 a cluster, all-to-alls of 4 bytes an
//! entry of the halo, then 8 a row and 4 + s an entry of A, s the size of a scalar.

use std::collections::VecDeque;

use bt_formats::{Csr, LinearOperator, memory};

use crate::comm::{Comm, Number, Parts};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};
use crate::site_expansion::{Graph, site_expansion};

/// Clusters of a rank, about.
const CLUSTERS: usize = 1024;
/// In no cluster.
const NONE: u32 = u32::MAX;

impl<T: Number, C: Comm> DistributedCsr<'_, T, C> {
    /// The same matrix with the rows of each rank those of a domain grown in its graph; no rank has the whole at any time. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where memory is short; those of the communicator.
    ///
    /// # Cost
    /// O(z) for z entries of a rank, and on rank 0 that of [`crate::Division::site_expansion`] for 1024·p rows; what is counted above.
    ///
    /// ```
    /// use bt_parallel::{DistributedCsr, Division, thread_comm};
    /// let a = bt_testkit::grid::<f64>([16, 16, 1]);
    /// let halos = thread_comm::run(4, |comm| {
    ///     let stripes = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(256, 4))?;
    ///     let wide = stripes.halo().len();
    ///     Ok((wide, stripes.by_site_expansion()?.halo().len()))
    /// });
    /// let (stripe, domain) = halos[1].as_ref().unwrap();
    /// assert!(domain < stripe);
    /// ```
    pub fn by_site_expansion(self) -> Result<Self> {
        let comm = self.comm();
        let (n, p) = (self.rows().n(), comm.size());
        let own = Clusters::new(self.local(), n.div_ceil(CLUSTERS * p).max(1));
        let owner = self.owners_of_clusters(&own)?;
        self.dealt_out(&own, &owner)
    }

    /// The domain of each own cluster. A collective.
    fn owners_of_clusters(&self, own: &Clusters) -> Result<Vec<u32>> {
        let comm = self.comm();
        let counts = comm.all_gather(&[own.sizes.len() as u32])?;
        let first: u32 = counts.values()[..comm.rank()].iter().sum();
        let total: usize = counts.values().iter().map(|&count| count as usize).sum();
        // The clusters of the halo, by owner and place as its rows are.
        let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); comm.size()];
        for (rank, places) in self.halo().sends() {
            wanted[*rank] = places.iter().map(|&i| first + own.of[i as usize]).collect();
        }
        let of_halo = comm.all_to_all(&Parts::new(wanted))?;
        let m = own.of.len();
        let mut cut: Vec<[u32; 2]> = Vec::new();
        for i in 0..m {
            let from = first + own.of[i];
            let to = |j: u32| own.of.get(j as usize).map_or_else(|| of_halo.values()[j as usize - m], |c| first + c);
            cut.extend(self.row(i).map(|(j, _)| [from, to(j)]).filter(|[from, to]| from != to));
        }
        cut.sort_unstable();
        let edges: Vec<u32> = cut.chunk_by(|a, b| a == b).flat_map(|e| [e[0][0], e[0][1], e.len() as u32]).collect();
        let edges = comm.gather(0, &edges)?;
        let sizes = comm.gather(0, &own.sizes)?;
        let divided = match (edges, sizes) {
            (Some(edges), Some(sizes)) => divided(edges.values(), sizes.values(), comm.size()),
            _ => Ok(Vec::new()),
        };
        let mut owner = agree(comm, divided)?;
        comm.broadcast(0, &mut owner)?;
        if owner.len() != total {
            let message = format!("{} owners of {total} clusters came from rank 0", owner.len());
            return Err(crate::Error::OutOfStep { rank: comm.rank(), message });
        }
        Ok(owner[first as usize..][..own.sizes.len()].to_vec())
    }

    /// Rows to the owners of their clusters. A collective.
    fn dealt_out(self, own: &Clusters, owner: &[u32]) -> Result<Self> {
        let (comm, n) = (self.comm(), self.rows().n());
        let mut to: Vec<Vec<usize>> = vec![Vec::new(); comm.size()];
        own.of.iter().enumerate().for_each(|(i, &c)| to[owner[c as usize] as usize].push(i));
        let parts = |f: &dyn Fn(usize) -> u32| {
            Parts::new(to.iter().map(|rows| rows.iter().map(|&i| f(i)).collect::<Vec<u32>>()))
        };
        let numbers = comm.all_to_all(&parts(&|i| self.rows().own()[i]))?;
        let lengths = comm.all_to_all(&parts(&|i| self.row(i).count() as u32))?;
        let entries: u64 = lengths.values().iter().map(|&length| u64::from(length)).sum();
        let asked = memory::ask(entries * (12 + 2 * size_of::<T>()) as u64, "the own rows of the matrix");
        agree(comm, asked.map_err(Fault::from))?;
        let row = |&i: &usize| self.row(i).map(|(j, _)| self.global(j));
        let cols = Parts::new(to.iter().map(|rows| rows.iter().flat_map(row).collect::<Vec<u32>>()));
        let cols = comm.all_to_all(&cols)?;
        let row = |&i: &usize| self.row(i).map(|e| e.1);
        let values = Parts::new(to.iter().map(|rows| rows.iter().flat_map(row).collect::<Vec<T>>()));
        let values = comm.all_to_all(&values)?;
        drop(self);
        let mut end = 0;
        let rows = lengths.values().iter().map(|&length| {
            let start = end;
            end += length as usize;
            (&cols.values()[start..end], &values.values()[start..end])
        });
        Self::from_rows(comm, n, numbers.values().to_vec(), rows)
    }
}

/// The domain of each cluster, from the edges (cluster, cluster, entries) in order.
fn divided(edges: &[u32], sizes: &[u32], p: usize) -> Result<Vec<u32>, Fault> {
    let n = sizes.len();
    let edges = edges.as_chunks::<3>().0;
    let row_ptr = (0..=n).map(|c| edges.partition_point(|e| (e[0] as usize) < c) as u32).collect();
    let (cols, values) = edges.iter().map(|e| (e[1], f64::from(e[2]))).unzip();
    let a = Csr::<f64>::new(n, n, row_ptr, cols, values)?;
    let graph = Graph { a: &a, transpose: &a.transpose(), entries: |v| v as u64, rows: Some(sizes) };
    Ok(site_expansion(&graph, p))
}

/// Clusters of the rows of a rank.
struct Clusters {
    /// Of each row.
    of: Vec<u32>,
    /// Rows of each.
    sizes: Vec<u32>,
}

impl Clusters {
    /// Of `size` rows each, up to twice as many at their largest, in the graph of A₀ + A₀ᵀ.
    fn new<T: Number>(a: &Csr<T>, size: usize) -> Self {
        let m = a.nrows();
        if size == 1 {
            return Self { of: (0..m as u32).collect(), sizes: vec![1; m] };
        }
        let transpose = a.transpose();
        let neighbours = |i: usize| a.row(i).0.iter().chain(transpose.row(i).0).map(|&j| j as usize);
        let mut found = Self { of: vec![NONE; m], sizes: Vec::new() };
        // The cluster of rows that nothing is next to, while it has room.
        let mut alone: Option<u32> = None;
        let (mut front, mut rows) = (VecDeque::new(), Vec::new());
        for start in 0..m {
            if found.of[start] != NONE {
                continue;
            }
            let number = found.sizes.len() as u32;
            front.clear();
            rows.clear();
            front.push_back(start);
            let mut beside = None;
            found.of[start] = number;
            while let Some(i) = front.pop_front() {
                rows.push(i);
                for j in neighbours(i) {
                    let other = found.of[j];
                    if other == NONE && rows.len() + front.len() < size {
                        found.of[j] = number;
                        front.push_back(j);
                    } else if other != NONE && other != number && (found.sizes[other as usize] as usize) < 2 * size {
                        beside = Some(other);
                    }
                }
            }
            let few = 2 * rows.len() < size;
            let joined = if few { beside.or(alone) } else { None };
            let Some(cluster) = joined else {
                found.sizes.push(rows.len() as u32);
                alone = if few { Some(number) } else { alone };
                continue;
            };
            for &i in &rows {
                found.of[i] = cluster;
            }
            let total = &mut found.sizes[cluster as usize];
            *total += rows.len() as u32;
            alone = alone.filter(|&alone| alone != cluster || (*total as usize) < size);
        }
        found
    }
}
