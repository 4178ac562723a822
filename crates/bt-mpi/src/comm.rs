//! Ranks as processes of MPI: the calls of [`bt_parallel::Comm`] over rsmpi, with the same sums and the same count as among threads.
//!
//! One thread of a rank talks, that which started MPI (`MPI_THREAD_FUNNELED`): [`MpiComm`] is neither `Send` nor `Sync`. Elements travel as
//! bytes, so that all ranks must run on machines that keep numbers in the same way.
//!
//! **Sums** are not left to `MPI_Allreduce`, whose order may differ from run to run: the terms are gathered on rank 0 of the communicator, added
//! in the order of the ranks and broadcast, which takes `2⌈log₂ p⌉` steps one after the other, as many as the model counts.
//!
//! **Errors.** MPI itself ends all ranks where it fails, a rank that dies included: nobody waits for one that is gone. Calls that do not match
//! become [`Error::OutOfStep`] (`messages.rs`, `collectives.rs`); the communicator is then of no use, and whoever meets one ends all ranks with
//! [`MpiComm::abort`], since others may wait for what will not come.

use std::cell::RefCell;
use std::rc::Rc;

use bt_parallel::{Comm, Counter, Element, Error, Number, Parts, Result, Tag, Traffic};
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::Communicator;

use crate::collectives::What;
use crate::messages::Messages;

/// A rank that is a process of MPI.
///
/// ```no_run
/// use bt_mpi::MpiComm;
/// use bt_parallel::Comm;
/// let comm = MpiComm::start()?;
/// let mut sum = [comm.rank() as f64];
/// comm.all_sum(&mut sum)?;
/// # Ok::<(), bt_parallel::Error>(())
/// ```
pub struct MpiComm {
    // Dropped in this order: the communicator is freed before MPI ends.
    pub(crate) mpi: SimpleCommunicator,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) messages: RefCell<Messages>,
    pub(crate) counter: Counter,
    failure: RefCell<Option<Error>>,
    universe: Rc<Universe>,
}

impl MpiComm {
    /// Starts MPI: the communicator of all ranks. Once in the life of a process.
    ///
    /// # Errors
    /// [`Error::OutOfStep`] where MPI is started already, or does not allow other threads beside the one that talks.
    pub fn start() -> Result<Self> {
        let refuse = |message: &str| Error::OutOfStep { rank: 0, message: message.into() };
        let (universe, threading) = mpi::initialize_with_threading(Threading::Funneled)
            .ok_or_else(|| refuse("MPI has been started before in this process"))?;
        if threading < Threading::Funneled {
            return Err(refuse("this MPI allows no threads beside the one that talks (MPI_THREAD_FUNNELED)"));
        }
        // Other users of the world's communicator do not meet ours.
        let world = universe.world().duplicate();
        Ok(Self::over(world, Rc::new(universe)))
    }

    fn over(mpi: SimpleCommunicator, universe: Rc<Universe>) -> Self {
        let (rank, size) = (mpi.rank() as usize, mpi.size() as usize);
        let (messages, failure) = (RefCell::default(), RefCell::default());
        Self { mpi, rank, size, messages, counter: Counter::default(), failure, universe }
    }

    /// Ends all ranks with this exit code, wherever they are; for a rank that cannot tell the others.
    pub fn abort(&self, code: u8) -> ! {
        self.mpi.abort(code.into())
    }

    /// What failed before, if anything did.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.borrow().as_ref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Keeps an error, which is final.
    pub(crate) fn keep<V>(&self, result: Result<V>) -> Result<V> {
        if let Err(error) = &result {
            *self.failure.borrow_mut() = Some(error.clone());
        }
        result
    }

    /// An error of this rank.
    pub(crate) fn out_of_step(&self, message: String) -> Error {
        Error::OutOfStep { rank: self.rank, message }
    }

    /// Counts a collective where others take part.
    fn count(&self, bytes: usize) {
        if self.size > 1 {
            self.counter.collective(bytes);
        }
    }
}

impl Comm for MpiComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn traffic(&self) -> Traffic {
        self.counter.traffic()
    }

    fn exchange<T: Element, R>(
        &self,
        tag: Tag,
        sends: &[(usize, &[T])],
        receives: &mut [(usize, &mut [T])],
        meanwhile: impl FnOnce() -> R,
    ) -> Result<R> {
        self.check()?;
        for (to, data) in sends.iter().filter(|send| send.0 != self.rank) {
            if *to >= self.size {
                return self.keep(Err(self.out_of_step(format!("a message to rank {to} of {}", self.size))));
            }
            self.counter.message(size_of_val(*data));
        }
        let exchanged = self.exchange_messages(tag, sends, receives, meanwhile);
        self.keep(exchanged)
    }

    fn all_to_all_into<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()> {
        self.check()?;
        if let Some(parts) = [send, receive].into_iter().find(|parts| parts.n_parts() != self.size) {
            let message = format!("{} parts for {} ranks", parts.n_parts(), self.size);
            return self.keep(Err(self.out_of_step(message)));
        }
        self.count(send.bytes_for_others(self.rank));
        self.keep(self.all_to_all_parts(send, receive))
    }

    fn all_gather<T: Element>(&self, own: &[T]) -> Result<Parts<T>> {
        self.check()?;
        self.count(size_of_val(own));
        self.keep(self.all_gather_parts(own))
    }

    fn gather<T: Element>(&self, root: usize, own: &[T]) -> Result<Option<Parts<T>>> {
        self.check()?;
        self.count(if self.rank == root { 0 } else { size_of_val(own) });
        self.keep(self.gather_parts(root, own))
    }

    fn broadcast<T: Element>(&self, root: usize, data: &mut Vec<T>) -> Result<()> {
        self.check()?;
        self.count(if self.rank == root { size_of_val(&**data) } else { 0 });
        self.keep(self.broadcast_data(root, data))
    }

    fn all_sum<T: Number>(&self, terms: &mut [T]) -> Result<()> {
        self.check()?;
        self.count(size_of_val(terms));
        self.keep(self.fold(What::Sum, terms, |sum, term| sum + term))
    }

    fn all_max(&self, values: &mut [f64]) -> Result<()> {
        self.check()?;
        self.count(size_of_val(values));
        self.keep(self.fold(What::Maximum, values, bt_formats::RealScalar::max_nan))
    }

    fn barrier(&self) -> Result<()> {
        self.check()?;
        self.count(0);
        self.keep(self.fold::<u8>(What::Barrier, &mut [], |a, _| a))
    }

    fn split(&self, color: u32, key: u32) -> Result<Self> {
        // The third number is what threads number communicators with: the count is theirs.
        let named = self.all_gather(&[u64::from(color), u64::from(key), 0])?;
        let mut chosen: Vec<(u64, usize)> = (0..self.size)
            .filter(|&rank| named.part(rank)[0] == u64::from(color))
            .map(|rank| (named.part(rank)[1], rank))
            .collect();
        chosen.sort_unstable();
        // MPI's colors and keys are signed: the first rank of a color stands for it, the place for the key.
        let first = chosen.iter().map(|&(_, rank)| rank).min().unwrap_or(self.rank);
        let place = chosen.iter().position(|&(_, rank)| rank == self.rank).unwrap_or(0);
        let color = Color::with_value(first as i32);
        let mpi = self.mpi.split_by_color_with_key(color, place as i32);
        let mpi = mpi.ok_or_else(|| self.out_of_step("MPI made no communicator of its color".into()))?;
        Ok(Self::over(mpi, Rc::clone(&self.universe)))
    }
}
