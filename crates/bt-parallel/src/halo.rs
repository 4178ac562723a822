//! The halo: entries of a vector that other ranks own and this one needs.
//!
//! ```text
//! own rows        0 … m−1        in the order of [`Rows::own`]
//! halo            m … m+h−1      by owner, then by place there: what one rank sends is one slice
//! ```
//!
//! Who needs what is found once, by the directory of rows; then an exchange is one message to each rank that needs something and one from
//! each that owns something, of exactly the entries needed.
//!
//! Communication of the making: four all-to-alls in the directory and two of 4 bytes an entry of the halo. Of an exchange: `n_sends` messages of
//! s·`n_sent` bytes in all from this rank, for scalars of s bytes.

use std::cell::RefCell;

use crate::comm::{Comm, Number, Parts, Tag};
use crate::error::Result;
use crate::rows::{Owner, Rows};

/// The tag of halo exchanges.
const HALO: Tag = Tag(1);
/// And of sums back to the owners.
const BACK: Tag = Tag(2);

/// Which entries travel between this rank and others.
#[derive(Clone, Debug)]
pub struct Halo<T> {
    /// Rows of the system, by owner and place.
    rows: Vec<u32>,
    owners: Vec<Owner>,
    /// To whom, and which own rows.
    sends: Vec<(usize, Vec<u32>)>,
    /// From whom, and which slice of the halo.
    receives: Vec<(usize, std::ops::Range<usize>)>,
    packed: RefCell<Vec<T>>,
}

impl<T: Number> Halo<T> {
    /// For the rows of the system that this rank needs and does not own, each once, in any order. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    pub fn new(comm: &impl Comm, rows: &Rows, needed: &[u32]) -> Result<Self> {
        let owners = rows.owners(comm, needed)?;
        let mut order: Vec<(Owner, u32)> = owners.into_iter().zip(needed.iter().copied()).collect();
        order.sort_unstable();
        let mut asked: Vec<Vec<u32>> = vec![Vec::new(); comm.size()];
        for (owner, _) in &order {
            asked[owner.rank as usize].push(owner.place);
        }
        let asked = Parts::new(asked);
        let mut receives = Vec::new();
        let mut start = 0;
        for (rank, size) in asked.sizes().enumerate().filter(|(_, size)| *size > 0) {
            receives.push((rank, start..start + size));
            start += size;
        }
        let wanted = comm.all_to_all(&asked)?;
        let sends: Vec<(usize, Vec<u32>)> =
            wanted.iter().map(<[u32]>::to_vec).enumerate().filter(|(_, places)| !places.is_empty()).collect();
        let packed = RefCell::new(vec![T::default(); sends.iter().map(|s| s.1.len()).sum()]);
        let (owners, rows) = order.into_iter().unzip();
        Ok(Self { rows, owners, sends, receives, packed })
    }

    /// Rows of the system, in the order of the halo.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Their owners.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }
    /// Entries received, h.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether nothing is received.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Ranks that this one sends to.
    pub fn n_sends(&self) -> usize {
        self.sends.len()
    }
    /// Entries that this one sends, those for several ranks several times.
    pub fn n_sent(&self) -> usize {
        self.sends.iter().map(|s| s.1.len()).sum()
    }
    /// Own rows that some rank needs, for each rank that needs some.
    pub fn sends(&self) -> &[(usize, Vec<u32>)] {
        &self.sends
    }

    /// `halo` ← the entries of x on their owners, while `meanwhile` runs; x has the own rows. All ranks of the plan call.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Cost
    /// `n_sends` messages with `n_sent` scalars in all.
    pub fn exchange<R>(&self, comm: &impl Comm, x: &[T], halo: &mut [T], meanwhile: impl FnOnce() -> R) -> Result<R> {
        let mut packed = self.packed.borrow_mut();
        let places = self.sends.iter().flat_map(|s| &s.1);
        packed.iter_mut().zip(places).for_each(|(packed, &i)| *packed = x[i as usize]);
        let (mut rest, mut sends) = (&packed[..], Vec::with_capacity(self.sends.len()));
        for (rank, places) in &self.sends {
            let (part, after) = rest.split_at(places.len());
            sends.push((*rank, part));
            rest = after;
        }
        let (mut rest, mut receives) = (halo, Vec::with_capacity(self.receives.len()));
        for (rank, range) in &self.receives {
            let (part, after) = rest.split_at_mut(range.len());
            receives.push((*rank, part));
            rest = after;
        }
        comm.exchange(HALO, &sends, &mut receives, meanwhile)
    }

    /// x ← x + what other ranks have for own rows in their halos; the sum runs over the ranks in their order. The other way round of
    /// [`Halo::exchange`].
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Cost
    /// A message to each rank that `exchange` receives from, with the scalars of the halo in all.
    pub fn add_back(&self, comm: &impl Comm, halo: &[T], x: &mut [T]) -> Result<()> {
        let mut packed = self.packed.borrow_mut();
        let sends: Vec<_> = self.receives.iter().map(|(rank, range)| (*rank, &halo[range.clone()])).collect();
        let (mut rest, mut receives) = (&mut packed[..], Vec::with_capacity(self.sends.len()));
        for (rank, places) in &self.sends {
            let (part, after) = rest.split_at_mut(places.len());
            receives.push((*rank, part));
            rest = after;
        }
        comm.exchange(BACK, &sends, &mut receives, || {})?;
        let places = self.sends.iter().flat_map(|s| &s.1);
        places.zip(packed.iter()).for_each(|(&i, &v)| x[i as usize] += v);
        Ok(())
    }
}
