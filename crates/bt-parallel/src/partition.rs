//! Which rank should own which rows: contiguous ranges, whole blocks, or distributed site expansion (`site_expansion.rs`); and how good that is.

use std::fmt;

use bt_formats::{Csr, LinearOperator, Partition, Scalar, zero};

use crate::comm::{Comm, Number, Parts};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};
use crate::site_expansion::{Graph, site_expansion};

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

    /// The same, joined to those that follow until each rank that has any rows has at least `least`, where the system has as many: what SPIKE asks
    /// of small blocks beside large ones.
    ///
    /// ```
    /// use bt_formats::Partition;
    /// use bt_parallel::Division;
    /// let blocks = Partition::from_sizes([2, 1, 2, 1])?;
    /// assert_eq!(Division::by_blocks(&blocks, 4).owner(), [0, 0, 1, 2, 2, 3]);
    /// assert_eq!(Division::by_blocks_of_at_least(&blocks, 4, 2).owner(), [0, 0, 1, 1, 1, 1]);
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn by_blocks_of_at_least(blocks: &Partition, p: usize, least: usize) -> Self {
        let Self { mut owner, n_ranks } = Self::by_blocks(blocks, p);
        let n = owner.len();
        // Where the rows of the last rank that has enough begin, and those of the next.
        let (mut last, mut start) = (0, 0);
        while start < n {
            let rank = owner[start];
            let end = (start + least).max(owner.partition_point(|&o| o <= rank));
            let Some(&through) = owner.get(end - 1) else {
                // Too few are left: they go to the rank before.
                let before = owner[last];
                owner[last..].fill(before);
                break;
            };
            let end = owner.partition_point(|&o| o <= through);
            owner[start..end].fill(rank);
            (last, start) = (start, end);
        }
        Self { owner, n_ranks }
    }

    /// By distributed site expansion on the pattern of a square matrix. [`DistributedCsr::by_site_expansion`] does it where no rank has the whole.
    ///
    /// # Errors
    /// [`bt_formats::Error::NotSquare`].
    ///
    /// # Cost
    /// O(nnz + n·log p) for each of four growths, O(nnz) for each of at most 64 passes over borders, and O(p·nnz) for the first sites; the
    /// pattern of Aᵀ.
    pub fn site_expansion<T: Scalar>(a: &Csr<T>, p: usize) -> Result<Self, bt_formats::Error> {
        assert!(p > 0, "a division among no ranks");
        a.check_square()?;
        let graph = Graph { a, transpose: &a.transpose(), entries: |_| 1, rows: None };
        Ok(Self { owner: site_expansion(&graph, p), n_ranks: p })
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
        let graph = Graph { a, transpose: &a.transpose(), entries: |_| 1, rows: None };
        let (mut rows, mut entries, mut interface) = (vec![0usize; self.n_ranks], vec![0usize; self.n_ranks], 0);
        for (i, &owner) in self.owner.iter().enumerate() {
            rows[owner as usize] += 1;
            entries[owner as usize] += a.row(i).0.len();
            interface += usize::from(graph.neighbours(i).any(|(j, _)| self.owner[j] != owner));
        }
        Quality::new(&rows, &entries, graph.cut(&self.owner), interface)
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

impl Quality {
    /// From rows and entries of each rank.
    fn new(rows: &[usize], entries: &[usize], cut: u64, interface: usize) -> Self {
        let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0);
        let balance = |counts: &[usize]| {
            let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
            if mean > 0.0 { most(counts) as f64 / mean } else { 1.0 }
        };
        Self {
            n_ranks: rows.len(),
            cut,
            interface,
            rows: (rows.iter().copied().min().unwrap_or(0), most(rows)),
            row_balance: balance(rows),
            entry_balance: balance(entries),
        }
    }
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

    /// How good the division of its rows is, the same on all ranks; no rank has the whole. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Cost
    /// 32 bytes of each rank to all; O(m) time for m own rows.
    ///
    /// ```
    /// use bt_parallel::{DistributedCsr, Division, thread_comm};
    /// let (a, division) = (bt_testkit::grid::<f64>([8, 8, 1]), Division::contiguous(64, 3));
    /// let found = thread_comm::run(3, |comm| DistributedCsr::from_replicated(comm, &a, &division)?.quality());
    /// assert!(found.iter().all(|quality| *quality == Ok(division.quality(&a))));
    /// ```
    pub fn quality(&self) -> Result<Quality> {
        let own = [
            self.rows().own().len(),
            self.local().values().len() + self.external.values().len(),
            self.external.values().len(),
            self.internal_and_interface().1.len(),
        ];
        let all = self.comm().all_gather(&own.map(|count| count as u64))?;
        let of_ranks = |k: usize| -> Vec<usize> { all.iter().map(|counts| counts[k] as usize).collect() };
        let [rows, entries, cut, interface] = [0, 1, 2, 3].map(of_ranks);
        Ok(Quality::new(&rows, &entries, cut.iter().sum::<usize>() as u64, interface.iter().sum()))
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
