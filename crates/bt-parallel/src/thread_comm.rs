//! Ranks as threads of one process, which talk over channels: any number of them on any machine.
//!
//! A rank that returns an error or panics tells all others, and whatever they wait for then ends with [`Error::Lost`] and the first
//! cause; so does waiting for a rank that has returned. Calls that do not match ([`Error::OutOfStep`]) are found where a rank takes part
//! in another collective than the one it hears from. With a time limit nothing waits longer than that.
//!
//! A collective is carried by messages over rank 0 of the communicator, at most 2(p − 1) of them, which the count knows as one collective
//! ([`crate::Traffic`]); an all-to-all by p − 1 from each rank. Slices are copied once when they are sent and once when they arrive.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::comm::{Comm, Counter, Element, Number, Parts, Tag, Traffic, check_parts};
use crate::error::{Error, Result};
use bt_formats::RealScalar;

/// How long a rank waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as that one runs.
    Endless,
    /// At most so long for one message.
    Limited(Duration),
}

/// Runs `work` on p ranks, each a thread; their results, in the order of the ranks.
///
/// A panic of a rank becomes [`Error::Lost`] on all of them.
///
/// ```
/// use bt_parallel::{Comm, thread_comm};
/// let sums = thread_comm::run(4, |comm| {
///     let mut sum = [comm.rank() as f64];
///     comm.all_sum(&mut sum)?;
///     Ok(sum[0])
/// });
/// assert_eq!(sums, vec![Ok(6.0); 4]);
/// ```
pub fn run<V: Send>(p: usize, work: impl Fn(&ThreadComm) -> Result<V> + Sync) -> Vec<Result<V>> {
    run_with(p, Patience::Endless, work)
}

/// As [`run`], with a limit to how long a rank waits.
pub fn run_with<V: Send>(
    p: usize,
    patience: Patience,
    work: impl Fn(&ThreadComm) -> Result<V> + Sync,
) -> Vec<Result<V>> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..p).map(|_| channel()).unzip();
    let contexts = Arc::new(AtomicU64::new(1));
    thread::scope(|scope| {
        let start = |(rank, receiver)| {
            let (senders, contexts, work) = (senders.clone(), contexts.clone(), &work);
            scope.spawn(move || on_rank(rank, senders, receiver, contexts, patience, work))
        };
        let threads: Vec<_> = receivers.into_iter().enumerate().map(start).collect();
        let joined = threads.into_iter().enumerate().map(|(rank, thread)| {
            thread.join().unwrap_or_else(|panic| Err(Error::Lost { rank, message: text_of(&*panic) }))
        });
        joined.collect()
    })
}

/// The life of one rank.
fn on_rank<V>(
    rank: usize,
    senders: Vec<Sender<Signal>>,
    receiver: Receiver<Signal>,
    contexts: Arc<AtomicU64>,
    patience: Patience,
    work: &(impl Fn(&ThreadComm) -> Result<V> + Sync),
) -> Result<V> {
    let p = senders.len();
    let mailbox = Mailbox { receiver, waiting: VecDeque::new(), ended: vec![false; p], failure: None };
    let world = Rc::new(World { rank, senders, mailbox: RefCell::new(mailbox), patience, contexts });
    let comm = ThreadComm {
        context: 0,
        members: (0..p).collect(),
        rank,
        world: Rc::clone(&world),
        counter: Counter::default(),
    };
    let result = catch_unwind(AssertUnwindSafe(|| work(&comm)))
        .unwrap_or_else(|panic| Err(Error::Lost { rank, message: text_of(&*panic) }));
    for (other, sender) in world.senders.iter().enumerate().filter(|(other, _)| *other != rank) {
        let signal = match &result {
            // What was agreed on the others know, or are about to hear.
            Ok(_) | Err(Error::OnRank { .. }) => Signal::Ended(rank),
            // What one rank lost by another is that one's failure.
            Err(error @ Error::Lost { .. }) => Signal::Failed(error.clone()),
            Err(error) => Signal::Failed(Error::Lost { rank, message: error.to_string() }),
        };
        // A rank that is gone needs no telling.
        let _ = sender.send(signal).map_err(|_| other);
    }
    result
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".into())
}

/// What arrives at a rank.
enum Signal {
    Envelope(Envelope),
    /// This rank has returned.
    Ended(usize),
    Failed(Error),
}

struct Envelope {
    context: u64,
    /// Of the world.
    from: usize,
    what: What,
    data: Box<dyn Any + Send>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Message(Tag),
    Collective(&'static str),
}

struct Mailbox {
    receiver: Receiver<Signal>,
    /// In the order of arrival.
    waiting: VecDeque<Envelope>,
    ended: Vec<bool>,
    /// The first failure heard of.
    failure: Option<Error>,
}

struct World {
    rank: usize,
    senders: Vec<Sender<Signal>>,
    mailbox: RefCell<Mailbox>,
    patience: Patience,
    /// The next number of a communicator.
    contexts: Arc<AtomicU64>,
}

impl World {
    fn send(&self, context: u64, to: usize, what: What, data: Box<dyn Any + Send>) -> Result<()> {
        if let Some(failure) = &self.mailbox.borrow().failure {
            return Err(failure.clone());
        }
        let envelope = Envelope { context, from: self.rank, what, data };
        // A receiver that has ended shows when something is expected from it.
        let _ = self.senders[to].send(Signal::Envelope(envelope)).map_err(|_| to);
        Ok(())
    }

    /// The next envelope of a communicator from a rank, of this kind.
    fn take(&self, context: u64, from: usize, what: What) -> Result<Box<dyn Any + Send>> {
        let mut mailbox = self.mailbox.borrow_mut();
        loop {
            if let Some(failure) = &mailbox.failure {
                return Err(failure.clone());
            }
            let fits = |e: &Envelope| {
                let alike = matches!(
                    (e.what, what),
                    (What::Collective(_), What::Collective(_)) | (What::Message(_), What::Message(_))
                );
                e.context == context
                    && e.from == from
                    && (e.what == what || alike && matches!(what, What::Collective(_)))
            };
            if let Some(envelope) = mailbox.waiting.iter().position(fits).and_then(|k| mailbox.waiting.remove(k)) {
                if envelope.what == what {
                    return Ok(envelope.data);
                }
                let message = format!("it expects {what:?} from rank {from}, and {:?} came", envelope.what);
                return Err(mailbox.fail(Error::OutOfStep { rank: self.rank, message }));
            }
            if mailbox.ended[from] {
                let message = format!("it ended, and rank {} waits for {what:?} from it", self.rank);
                return Err(mailbox.fail(Error::Lost { rank: from, message }));
            }
            let signal = match self.patience {
                Patience::Endless => mailbox.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Patience::Limited(limit) => mailbox.receiver.recv_timeout(limit),
            };
            match (signal, self.patience) {
                (Ok(Signal::Envelope(envelope)), _) => mailbox.waiting.push_back(envelope),
                (Ok(Signal::Ended(rank)), _) => mailbox.ended[rank] = true,
                (Ok(Signal::Failed(error)), _) => mailbox.failure = Some(error),
                (Err(RecvTimeoutError::Timeout), Patience::Limited(limit)) => {
                    let milliseconds = limit.as_millis() as u64;
                    return Err(mailbox.fail(Error::TimedOut { rank: self.rank, source_rank: from, milliseconds }));
                }
                (Err(_), _) => {
                    let message = "all ranks ended".into();
                    return Err(mailbox.fail(Error::Lost { rank: from, message }));
                }
            }
        }
    }
}

impl Mailbox {
    /// Keeps the error, which is final.
    fn fail(&mut self, error: Error) -> Error {
        self.failure = Some(error.clone());
        error
    }
}

/// A rank that is a thread. Made by [`run`].
pub struct ThreadComm {
    context: u64,
    /// The ranks of the world that take part, by their ranks here.
    members: Vec<usize>,
    rank: usize,
    world: Rc<World>,
    counter: Counter,
}

impl ThreadComm {
    fn send<T: Element>(&self, to: usize, what: What, data: &[T]) -> Result<()> {
        self.world.send(self.context, self.members[to], what, Box::new(data.to_vec()))
    }

    fn take<T: Element>(&self, from: usize, what: What) -> Result<Vec<T>> {
        let data = self.world.take(self.context, self.members[from], what)?;
        match data.downcast::<Vec<T>>() {
            Ok(data) => Ok(*data),
            Err(_) => Err(self.out_of_step(format!("{what:?} from rank {from} is not of {:?}", T::KIND))),
        }
    }

    /// The same of a known length.
    fn take_into<T: Element>(&self, from: usize, what: What, into: &mut [T]) -> Result<()> {
        let data = self.take::<T>(from, what)?;
        if data.len() != into.len() {
            let message = format!("{what:?} from rank {from} has {} elements, not {}", data.len(), into.len());
            return Err(self.out_of_step(message));
        }
        into.copy_from_slice(&data);
        Ok(())
    }

    fn out_of_step(&self, message: String) -> Error {
        self.world.mailbox.borrow_mut().fail(Error::OutOfStep { rank: self.world.rank, message })
    }

    /// Counts a collective where others take part.
    fn count(&self, bytes: usize) {
        if self.size() > 1 {
            self.counter.collective(bytes);
        }
    }

    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.size()).filter(|&rank| rank != self.rank)
    }

    fn gather_uncounted<T: Element>(&self, root: usize, own: &[T], what: What) -> Result<Option<Parts<T>>> {
        if self.rank != root {
            self.send(root, what, own)?;
            return Ok(None);
        }
        let mut parts = vec![own.to_vec(); self.size()];
        for from in self.others() {
            parts[from] = self.take(from, what)?;
        }
        Ok(Some(Parts::new(parts)))
    }

    fn broadcast_uncounted<T: Element>(&self, root: usize, data: &mut Vec<T>, what: What) -> Result<()> {
        if self.rank == root {
            self.others().try_for_each(|to| self.send(to, what, data))
        } else {
            *data = self.take(root, what)?;
            Ok(())
        }
    }

    /// Each number ← those of all ranks put together by `f`, in the order of the ranks.
    fn fold<T: Element>(&self, what: &'static str, values: &mut [T], f: impl Fn(T, T) -> T) -> Result<()> {
        self.count(size_of_val(values));
        let what = What::Collective(what);
        let mut result = Vec::new();
        if let Some(parts) = self.gather_uncounted(0, values, what)? {
            result = parts.part(0).to_vec();
            for part in parts.iter().skip(1) {
                if part.len() != result.len() {
                    return Err(self.out_of_step(format!(
                        "{what:?} of {} and of {} numbers",
                        result.len(),
                        part.len()
                    )));
                }
                result.iter_mut().zip(part).for_each(|(r, &v)| *r = f(*r, v));
            }
        }
        self.broadcast_uncounted(0, &mut result, what)?;
        if result.len() != values.len() {
            return Err(self.out_of_step(format!("{what:?} of {} and of {} numbers", result.len(), values.len())));
        }
        values.copy_from_slice(&result);
        Ok(())
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.members.len()
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
        let what = What::Message(tag);
        for &(to, data) in sends {
            if to != self.rank {
                self.counter.message(size_of_val(data));
            }
            self.send(to, what, data)?;
        }
        let result = meanwhile();
        for (from, into) in receives {
            self.take_into(*from, what, into)?;
        }
        Ok(result)
    }

    fn all_to_all_into<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()> {
        check_parts(self, &[send, receive])?;
        self.count(send.bytes_for_others(self.rank));
        let what = What::Collective("all-to-all");
        // Its own part travels to itself, so that sizes are checked alike.
        (0..self.size()).try_for_each(|to| self.send(to, what, send.part(to)))?;
        (0..self.size()).try_for_each(|from| self.take_into(from, what, receive.part_mut(from)))
    }

    fn all_gather<T: Element>(&self, own: &[T]) -> Result<Parts<T>> {
        self.count(size_of_val(own));
        let what = What::Collective("all-gather");
        self.others().try_for_each(|to| self.send(to, what, own))?;
        let mut parts = vec![own.to_vec(); self.size()];
        for from in self.others() {
            parts[from] = self.take(from, what)?;
        }
        Ok(Parts::new(parts))
    }

    fn gather<T: Element>(&self, root: usize, own: &[T]) -> Result<Option<Parts<T>>> {
        self.count(if self.rank == root { 0 } else { size_of_val(own) });
        self.gather_uncounted(root, own, What::Collective("gather"))
    }

    fn broadcast<T: Element>(&self, root: usize, data: &mut Vec<T>) -> Result<()> {
        self.count(if self.rank == root { size_of_val(&**data) } else { 0 });
        self.broadcast_uncounted(root, data, What::Collective("broadcast"))
    }

    fn all_sum<T: Number>(&self, terms: &mut [T]) -> Result<()> {
        self.fold("sum", terms, |sum, term| sum + term)
    }

    fn all_max(&self, values: &mut [f64]) -> Result<()> {
        self.fold("maximum", values, RealScalar::max_nan)
    }

    fn barrier(&self) -> Result<()> {
        self.fold::<u8>("barrier", &mut [], |a, _| a)
    }

    fn split(&self, color: u32, key: u32) -> Result<Self> {
        let proposal = self.world.contexts.fetch_add(1, Ordering::Relaxed);
        let named = self.all_gather(&[u64::from(color), u64::from(key), proposal])?;
        let mut chosen: Vec<(u64, usize)> = (0..self.size())
            .filter(|&rank| named.part(rank)[0] == u64::from(color))
            .map(|rank| (named.part(rank)[1], rank))
            .collect();
        chosen.sort_unstable();
        let context = chosen.first().map_or(proposal, |&(_, first)| named.part(first)[2]);
        let rank = chosen.iter().position(|&(_, rank)| rank == self.rank).unwrap_or(0);
        let members = chosen.iter().map(|&(_, rank)| self.members[rank]).collect();
        Ok(Self { context, members, rank, world: Rc::clone(&self.world), counter: Counter::default() })
    }
}
