//! What an iteration would take on a stated machine, from exact counts for any number of ranks; no rank has to run.
//!
//! ```text
//! t = flops/f + messages·α + bytes/β + Σ over collectives ⌈log₂ p⌉·(2α + 2·bytes/β)
//! ```
//!
//! with latency α, bandwidth β and flop rate f of a rank, and the time of the slowest rank counting: R. Hockney's α–β model with collectives by
//! recursive doubling, as in R. Thakur, R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19 (2005) 49–66,
//! doi:10.1177/1094342005051521. Nothing is hidden behind computation: an upper bound of what the exchange costs.
//!
//! The counts are those that [`DistributedCsr`](crate::DistributedCsr) and [`Krylov`](crate::Krylov) have for the same division, to the message and
//! byte.

use std::collections::BTreeSet;

use bt_formats::{Csr, LinearOperator, Scalar};

use crate::comm::{Comm, Number, Parts, Traffic};
use crate::csr::DistributedCsr;
use crate::error::Result;
use crate::krylov::Method;
use crate::partition::Division;

/// A machine of equal ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// α: seconds of a message.
    pub latency: f64,
    /// β: bytes a second between two ranks.
    pub bandwidth: f64,
    /// f: flops a second of a rank, in sparse products.
    pub flop_rate: f64,
}

/// What one rank does and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Real operations on real scalars.
    pub flops: f64,
    /// What is sent.
    pub traffic: Traffic,
}

impl Machine {
    /// Seconds that this takes a rank among p.
    ///
    /// ```
    /// use bt_parallel::{Machine, Traffic, Work};
    /// let machine = Machine { latency: 1e-6, bandwidth: 1e9, flop_rate: 1e9 };
    /// let traffic = Traffic { messages: 2, bytes: 1000, collectives: 1, collective_bytes: 0 };
    /// let seconds = machine.seconds(&Work { flops: 1000.0, traffic }, 8);
    /// assert!((seconds - 1e-6 * (1.0 + 2.0 + 1.0 + 3.0 * 2.0)).abs() < 1e-15);
    /// ```
    pub fn seconds(&self, work: &Work, p: usize) -> f64 {
        let Traffic { messages, bytes, collectives, collective_bytes } = work.traffic;
        let levels = f64::from(p.max(1).next_power_of_two().trailing_zeros());
        work.flops / self.flop_rate
            + messages as f64 * self.latency
            + bytes as f64 / self.bandwidth
            + levels * 2.0 * (collectives as f64 * self.latency + collective_bytes as f64 / self.bandwidth)
    }
}

/// Rows, entries and the halo of each rank of a division.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Own rows.
    pub rows: Vec<u64>,
    /// Entries in own rows.
    pub entries: Vec<u64>,
    /// Messages of an exchange.
    pub sends: Vec<u64>,
    /// Entries in them.
    pub sent: Vec<u64>,
}

impl Counts {
    /// Of a matrix among the ranks of a division.
    ///
    /// # Panics
    /// When their sizes differ.
    ///
    /// # Cost
    /// O(nnz·log nnz) time and memory for the entries that are cut.
    ///
    /// ```
    /// use bt_parallel::{Counts, Division};
    /// let counts = Counts::new(&bt_testkit::chain::<f64>(9, 2.0, -1.0), &Division::contiguous(9, 3));
    /// assert_eq!((counts.sends, counts.entries), (vec![1, 2, 1], vec![8, 9, 8]));
    /// ```
    pub fn new<T: Scalar>(a: &Csr<T>, division: &Division) -> Self {
        let (owner, p) = (division.owner(), division.n_ranks());
        assert_eq!((a.nrows(), a.ncols()), (owner.len(), owner.len()), "sizes of matrix and division");
        let (mut rows, mut entries) = (vec![0; p], vec![0; p]);
        // (owner of the entry, who needs it, the entry)
        let mut cut: BTreeSet<(u32, u32, u32)> = BTreeSet::new();
        for (i, &rank) in owner.iter().enumerate() {
            let cols = a.row(i).0;
            rows[rank as usize] += 1;
            entries[rank as usize] += cols.len() as u64;
            cut.extend(cols.iter().map(|&j| (owner[j as usize], rank, j)).filter(|(from, to, _)| from != to));
        }
        let (mut sends, mut sent) = (vec![0; p], vec![0; p]);
        let mut last = None;
        for (from, to, _) in cut {
            sent[from as usize] += 1;
            if last.replace((from, to)) != Some((from, to)) {
                sends[from as usize] += 1;
            }
        }
        Self { rows, entries, sends, sent }
    }

    /// Of a matrix whose rows are spread over ranks, were they those of [`Division::contiguous`] among p: no rank has the whole. The same on all
    /// ranks. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Panics
    /// When p is 0.
    ///
    /// # Cost
    /// One all-to-all of 12 bytes an entry that is cut at most, and a sum of 4p numbers; O(z·log z) time for the entries of a rank that are cut.
    ///
    /// ```
    /// use bt_parallel::{Counts, DistributedCsr, Division, thread_comm};
    /// let a = bt_testkit::chain::<f64>(9, 2.0, -1.0);
    /// let counted = thread_comm::run(2, |comm| {
    ///     Counts::of_contiguous(&DistributedCsr::from_replicated(comm, &a, &Division::contiguous(9, 2))?, 3)
    /// });
    /// assert_eq!(counted[0], Ok(Counts::new(&a, &Division::contiguous(9, 3))));
    /// ```
    pub fn of_contiguous<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>, p: usize) -> Result<Self> {
        assert!(p > 0, "a division among no ranks");
        let (comm, n) = (a.comm(), a.rows().n());
        let (each, more) = (n / p, n % p);
        let owner = |row: u32| {
            let row = row as usize;
            let longer = more * (each + 1);
            if row < longer { row / (each + 1) } else { more + (row - longer) / each }
        };
        // Rows, entries, sends and sent of each of the p.
        let mut counts = vec![0.0; 4 * p];
        let mut cut: Vec<[u32; 3]> = Vec::new();
        for (i, &g) in a.rows().own().iter().enumerate() {
            let to = owner(g);
            counts[to] += 1.0;
            for (j, _) in a.row(i) {
                counts[p + to] += 1.0;
                let column = a.global(j);
                let from = owner(column);
                if from != to {
                    cut.push([from as u32, to as u32, column]);
                }
            }
        }
        cut.sort_unstable();
        cut.dedup();
        // Several ranks may have rows of one of the p: what that one needs is counted on one rank.
        let mut homes: Vec<Vec<u32>> = vec![Vec::new(); comm.size()];
        for entry in cut {
            homes[entry[1] as usize * comm.size() / p].extend(entry);
        }
        let gathered = comm.all_to_all(&Parts::new(homes))?;
        let mut cut: Vec<[u32; 3]> = gathered.values().as_chunks().0.to_vec();
        cut.sort_unstable();
        cut.dedup();
        let mut last = None;
        for [from, to, _] in cut {
            counts[3 * p + from as usize] += 1.0;
            if last.replace((from, to)) != Some((from, to)) {
                counts[2 * p + from as usize] += 1.0;
            }
        }
        comm.all_sum(&mut counts)?;
        let part = |k: usize| counts[k * p..(k + 1) * p].iter().map(|&count| count as u64).collect();
        Ok(Self { rows: part(0), entries: part(1), sends: part(2), sent: part(3) })
    }

    /// What an iteration of a method without a preconditioner is on each rank, for scalars of `size` bytes; for GMRES the mean over a cycle without
    /// re-orthogonalisation, rounded down, and without its end.
    pub fn iteration(&self, method: Method, size: usize) -> Vec<Work> {
        // Products, vector flops a row, collectives and numbers in them, the wish to stop included.
        let (products, flops, collectives, numbers) = match method {
            Method::Cg => (1, 10, 2, 2 + 2),
            Method::FlexibleCg => (1, 12, 3, 3 + 3),
            Method::BiCgStab => (2, 24, 4, 7 + 4),
            Method::Gmres { restart } | Method::Fgmres { restart } => {
                let m = restart.max(1) as u64;
                // Step j: 4(j + 1) flops a row, sums of j + 3 and of 2 numbers; the mean of j is (m − 1)/2.
                (1, 2 * (m + 1), 2, m.div_ceil(2) + 4)
            }
        };
        let of_rank = |rank: usize| {
            let (sends, sent) = (self.sends[rank], self.sent[rank]);
            let alone = self.rows.len() == 1;
            let size = size as u64;
            Work {
                flops: (2 * products * self.entries[rank] + flops * self.rows[rank]) as f64,
                traffic: Traffic {
                    messages: products * sends,
                    bytes: products * size * sent,
                    collectives: if alone { 0 } else { collectives },
                    collective_bytes: if alone { 0 } else { size * numbers },
                },
            }
        };
        (0..self.rows.len()).map(of_rank).collect()
    }

    /// Seconds of an iteration on a machine: those of the slowest rank.
    pub fn seconds(&self, method: Method, size: usize, machine: &Machine) -> f64 {
        let p = self.rows.len();
        self.iteration(method, size).iter().map(|work| machine.seconds(work, p)).fold(0.0, f64::max)
    }
}
