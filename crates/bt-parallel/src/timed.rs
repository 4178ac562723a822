//! A communicator that knows how long it took, and what the ranks of a solve did: least, mean, most.
//!
//! Time in communication is that inside calls of the communicator, but for the work that an exchange hides behind; it includes waiting for ranks that
//! are late. All else is computation.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::comm::{Comm, Element, Number, Parts, Tag, Traffic};
use crate::error::Result;

/// A communicator with a clock. Those split from it share the clock.
///
/// ```
/// use bt_parallel::{Comm, Timed, thread_comm};
/// let costs = thread_comm::run(2, |comm| {
///     let timed = Timed::new(comm);
///     let meter = timed.meter();
///     timed.all_sum(&mut [1.0])?;
///     meter.stop(&timed).over_ranks(&timed)
/// });
/// let costs = costs[0].clone().unwrap();
/// assert_eq!((costs.n_ranks, costs.collectives.mean), (2, 1.0));
/// assert!(costs.communication.most <= costs.seconds.most);
/// ```
pub struct Timed<'c, C: Comm> {
    comm: Held<'c, C>,
    spent: Rc<Cell<Duration>>,
}

enum Held<'c, C> {
    Borrowed(&'c C),
    Owned(C),
}

impl<'c, C: Comm> Timed<'c, C> {
    /// With the clock at zero.
    pub fn new(comm: &'c C) -> Self {
        Self { comm: Held::Borrowed(comm), spent: Rc::default() }
    }

    /// Time in communication so far.
    pub fn spent(&self) -> Duration {
        self.spent.get()
    }

    /// Begins to measure.
    pub fn meter(&self) -> Meter {
        Meter { start: Instant::now(), spent: self.spent(), traffic: self.traffic() }
    }

    fn inner(&self) -> &C {
        match &self.comm {
            Held::Borrowed(comm) => comm,
            Held::Owned(comm) => comm,
        }
    }

    fn timed<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        let start = Instant::now();
        let result = f(self.inner());
        self.spent.set(self.spent.get() + start.elapsed());
        result
    }
}

impl<C: Comm> Comm for Timed<'_, C> {
    fn rank(&self) -> usize {
        self.inner().rank()
    }
    fn size(&self) -> usize {
        self.inner().size()
    }
    fn traffic(&self) -> Traffic {
        self.inner().traffic()
    }
    fn exchange<T: Element, R>(
        &self,
        tag: Tag,
        sends: &[(usize, &[T])],
        receives: &mut [(usize, &mut [T])],
        meanwhile: impl FnOnce() -> R,
    ) -> Result<R> {
        let (start, mut hidden) = (Instant::now(), Duration::ZERO);
        let result = self.inner().exchange(tag, sends, receives, || {
            let start = Instant::now();
            let result = meanwhile();
            hidden = start.elapsed();
            result
        });
        self.spent.set(self.spent.get() + start.elapsed().saturating_sub(hidden));
        result
    }
    fn all_to_all_into<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()> {
        self.timed(|comm| comm.all_to_all_into(send, receive))
    }
    fn all_gather<T: Element>(&self, own: &[T]) -> Result<Parts<T>> {
        self.timed(|comm| comm.all_gather(own))
    }
    fn gather<T: Element>(&self, root: usize, own: &[T]) -> Result<Option<Parts<T>>> {
        self.timed(|comm| comm.gather(root, own))
    }
    fn broadcast<T: Element>(&self, root: usize, data: &mut Vec<T>) -> Result<()> {
        self.timed(|comm| comm.broadcast(root, data))
    }
    fn all_sum<T: Number>(&self, terms: &mut [T]) -> Result<()> {
        self.timed(|comm| comm.all_sum(terms))
    }
    fn all_max(&self, values: &mut [f64]) -> Result<()> {
        self.timed(|comm| comm.all_max(values))
    }
    fn barrier(&self) -> Result<()> {
        self.timed(C::barrier)
    }
    fn split(&self, color: u32, key: u32) -> Result<Self> {
        let comm = self.timed(|comm| comm.split(color, key))?;
        Ok(Self { comm: Held::Owned(comm), spent: Rc::clone(&self.spent) })
    }
}

/// A measurement that runs.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    start: Instant,
    spent: Duration,
    traffic: Traffic,
}

impl Meter {
    /// What this rank did since, by the communicator that the measurement began with.
    pub fn stop<C: Comm>(self, timed: &Timed<'_, C>) -> RankCost {
        RankCost {
            seconds: self.start.elapsed().as_secs_f64(),
            communication: timed.spent().saturating_sub(self.spent).as_secs_f64(),
            traffic: timed.traffic().since(self.traffic),
        }
    }
}

/// What one rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankCost {
    /// Wall time.
    pub seconds: f64,
    /// Of it in communication.
    pub communication: f64,
    /// What was sent.
    pub traffic: Traffic,
}

impl RankCost {
    /// What all ranks did, on every rank. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    pub fn over_ranks(&self, comm: &impl Comm) -> Result<Costs> {
        let Traffic { messages, bytes, collectives, collective_bytes } = self.traffic;
        let counts = [messages, bytes, collectives, collective_bytes].map(|count| count as f64);
        let own = [&[self.seconds, self.communication, self.seconds - self.communication], &counts[..]].concat();
        let all = comm.all_gather(&own)?;
        let spread = |k: usize| Spread::of(&all.iter().map(|own| own[k]).collect::<Vec<f64>>());
        Ok(Costs {
            n_ranks: comm.size(),
            seconds: spread(0),
            communication: spread(1),
            computation: spread(2),
            messages: spread(3),
            bytes: spread(4),
            collectives: spread(5),
            collective_bytes: spread(6),
        })
    }
}

/// A number of each rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// Of at least one number.
    fn of(values: &[f64]) -> Self {
        Self {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// What all ranks did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Ranks.
    pub n_ranks: usize,
    /// Wall time.
    pub seconds: Spread,
    /// Of it in communication.
    pub communication: Spread,
    /// And the rest.
    pub computation: Spread,
    /// Messages sent to other ranks.
    pub messages: Spread,
    /// Their bytes.
    pub bytes: Spread,
    /// Collectives.
    pub collectives: Spread,
    /// Bytes contributed to them.
    pub collective_bytes: Spread,
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ranks                   least         mean         most", self.n_ranks)?;
        let rows = [
            ("seconds", self.seconds),
            ("  computation", self.computation),
            ("  communication", self.communication),
            ("messages", self.messages),
            ("  bytes", self.bytes),
            ("collectives", self.collectives),
            ("  bytes", self.collective_bytes),
        ];
        for (name, Spread { least, mean, most }) in rows {
            writeln!(f, "{name:<20} {least:>12.6} {mean:>12.6} {most:>12.6}")?;
        }
        Ok(())
    }
}
