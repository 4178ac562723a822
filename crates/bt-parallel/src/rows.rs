//! Who owns which rows, and where the owner of any row is found.
//!
//! Rows have the numbers of the whole system, 0 … n − 1, and each is owned by one rank, in any order that the rank likes: its local
//! row i is row `own()[i]` of the system, and vectors have the same order. A rank may own none.
//!
//! No rank knows all owners. A directory, spread evenly, does: rank ⌊g/s⌋ with s = ⌈n/p⌉ keeps owner and place of row g, as in A.
//! Pinar, B. Hendrickson, Communication support for adaptive computation, Proc. 10th SIAM Conf. on Parallel Processing (2001).
//!
//! Storage: 4 bytes an own row, 8 a row of the directory. Communication: the making takes an all-to-all of 8 bytes a row, a question two of
//! 4 and 8 bytes each.

use crate::comm::{Comm, Parts};
use crate::error::{Error, Fault, Result, agree};

/// A row of another rank: which rank, and the row's place among that rank's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The rank.
    pub rank: u32,
    /// The local row there.
    pub place: u32,
}

/// The rows of one rank among those of all.
///
/// ```
/// use bt_parallel::{Rows, SelfComm};
/// let rows = Rows::new(&SelfComm, 3, vec![2, 0, 1])?;
/// assert_eq!((rows.n(), rows.own(), rows.counts()), (3, &[2, 0, 1][..], &[3][..]));
/// # Ok::<(), bt_parallel::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows {
    n: usize,
    own: Vec<u32>,
    counts: Vec<usize>,
    /// Rows of the directory that are kept here, from row `rank`·s on.
    directory: Vec<Owner>,
}

/// Nobody's.
const NONE: Owner = Owner { rank: u32::MAX, place: u32::MAX };

impl Rows {
    /// Of a system of n rows, with the rows that this rank owns. A collective.
    ///
    /// # Errors
    /// [`Error::OnRank`] for a row beyond n, one that two ranks or one rank twice own, and one that nobody owns, naming it and the ranks; and where
    /// n differs between ranks.
    pub fn new(comm: &impl Comm, n: usize, own: Vec<u32>) -> Result<Self> {
        let (p, rank) = (comm.size(), comm.rank());
        let mut range = [n as f64, -(n as f64)];
        comm.all_max(&mut range)?;
        let same = if range[0] == -range[1] {
            Ok(())
        } else {
            Err(Fault::input(format!("a system of {n} rows here, and of {} to {} elsewhere", -range[1], range[0])))
        };
        agree(comm, same)?;
        let outside = match own.iter().find(|&&g| g as usize >= n) {
            _ if n > u32::MAX as usize => Err(Fault::input(format!("{n} rows are more than 32-bit indices hold"))),
            Some(g) => Err(Fault::input(format!("row {g} is beyond the {n} rows of the system"))),
            None => Ok(()),
        };
        agree(comm, outside)?;
        // Row and place to the rank that keeps the row in the directory.
        let mut told: Vec<Vec<u32>> = vec![Vec::new(); p];
        for (place, &g) in own.iter().enumerate() {
            told[keeper(g, n, p)].extend([g, place as u32]);
        }
        let told = comm.all_to_all(&Parts::new(told))?;
        let (first, last) = kept(rank, n, p);
        let mut directory = vec![NONE; last - first];
        let mut fault = Ok(());
        for from in 0..p {
            for pair in told.part(from).chunks_exact(2) {
                let owner = &mut directory[pair[0] as usize - first];
                if owner.rank != NONE.rank && fault.is_ok() {
                    fault = Err(Fault::input(format!("row {} is owned by ranks {} and {from}", pair[0], owner.rank)));
                }
                *owner = Owner { rank: from as u32, place: pair[1] };
            }
        }
        if let (Ok(()), Some(k)) = (&fault, directory.iter().position(|owner| *owner == NONE)) {
            fault = Err(Fault::input(format!("row {} is owned by no rank", first + k)));
        }
        agree(comm, fault)?;
        let counts = comm.all_gather(&[own.len() as u64])?.values().iter().map(|&c| c as usize).collect();
        Ok(Self { n, own, counts, directory })
    }

    /// Rows of the system.
    pub fn n(&self) -> usize {
        self.n
    }
    /// The rows that this rank owns, by their numbers in the system.
    pub fn own(&self) -> &[u32] {
        &self.own
    }
    /// Own rows of every rank.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The owners of rows of the system. A collective: every rank asks, if for nothing.
    ///
    /// # Errors
    /// [`Error::OnRank`] for a row beyond n.
    pub fn owners(&self, comm: &impl Comm, wanted: &[u32]) -> Result<Vec<Owner>> {
        let p = comm.size();
        let beyond = match wanted.iter().find(|&&g| g as usize >= self.n) {
            Some(g) => Err(Fault::input(format!("row {g} is beyond the {} rows of the system", self.n))),
            None => Ok(()),
        };
        agree(comm, beyond)?;
        let mut asked: Vec<Vec<u32>> = vec![Vec::new(); p];
        for &g in wanted {
            asked[keeper(g, self.n, p)].push(g);
        }
        let asked = Parts::new(asked);
        let questions = comm.all_to_all(&asked)?;
        let (first, _) = kept(comm.rank(), self.n, p);
        let mut unknown = None;
        let answers = Parts::new(questions.iter().map(|part| {
            let pairs = part.iter().flat_map(|&g| {
                let owner = (g as usize).checked_sub(first).and_then(|k| self.directory.get(k)).copied();
                let owner = owner.unwrap_or_else(|| {
                    unknown = Some(g);
                    NONE
                });
                [owner.rank, owner.place]
            });
            pairs.collect::<Vec<_>>()
        }));
        if let Some(g) = unknown {
            let message = format!("it was asked for row {g}, which is not of its part of the directory");
            return Err(Error::OutOfStep { rank: comm.rank(), message });
        }
        let mut heard = Parts::zeros(asked.sizes().map(|size| 2 * size));
        comm.all_to_all_into(&answers, &mut heard)?;
        let mut next = vec![0; p];
        let owner = |&g: &u32| {
            let keeper = keeper(g, self.n, p);
            let pair = &heard.part(keeper)[2 * next[keeper]..];
            next[keeper] += 1;
            Owner { rank: pair[0], place: pair[1] }
        };
        Ok(wanted.iter().map(owner).collect())
    }
}

/// The rank that keeps row g in the directory.
fn keeper(g: u32, n: usize, p: usize) -> usize {
    g as usize / n.div_ceil(p).max(1)
}

/// The rows that a rank keeps.
fn kept(rank: usize, n: usize, p: usize) -> (usize, usize) {
    let s = n.div_ceil(p).max(1);
    ((rank * s).min(n), ((rank + 1) * s).min(n))
}
