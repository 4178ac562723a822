//! How ranks end together: each may wish to, and all do after the next sum.
//!
//! A monitor that breaks on one rank, or the time limit on rank 0, is a wish. Wishes travel as one number more of the sums that an iteration
//! takes anyway: no message of their own, and every rank hears of them at the same place.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bt_formats::{Monitor, Outcome, Progress, StopCriterion};

use crate::comm::{Comm, Number};
use crate::error::Result;

/// Why a rank would end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    GoOn = 0,
    Time = 1,
    Stop = 2,
}

/// What ranks agree on, one sum later.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    wish: Cell<Wish>,
    /// To end, once a sum has said so to all ranks.
    agreed: Cell<Wish>,
}

impl Agreement {
    /// [`Comm::all_sum`], with the wish of every rank as one number more.
    pub fn all_sum<T: Number>(&self, comm: &impl Comm, terms: &mut [T], sums: &mut Vec<T>) -> Result<()> {
        sums.clear();
        sums.extend_from_slice(terms);
        sums.push(T::rounded(if self.wish.get() == Wish::GoOn { 0.0 } else { 1.0 }, 0.0));
        comm.all_sum(sums)?;
        if let Some((wishes, sums)) = sums.split_last() {
            terms.copy_from_slice(sums);
            if *wishes != T::default() {
                self.agreed.set(Wish::Stop);
            }
        }
        Ok(())
    }

    /// Of a solve that ended so on all ranks: stopped by the time, or by a monitor, whose request counts more.
    pub fn outcome(&self, comm: &impl Comm, outcome: Outcome) -> Result<Outcome> {
        if outcome != Outcome::Stopped || comm.size() == 1 {
            return Ok(outcome);
        }
        let mut reason = [f64::from(self.wish.get() as u8)];
        comm.all_max(&mut reason)?;
        Ok(if reason[0] == f64::from(Wish::Time as u8) { Outcome::TimeLimit } else { outcome })
    }
}

/// The monitor of a rank, which breaks when all have agreed to.
pub(crate) struct Told<'a> {
    monitor: &'a mut dyn Monitor,
    agreement: &'a Agreement,
    rank: usize,
    n_ranks: usize,
    limit: Option<Duration>,
    start: Instant,
}

impl<'a> Told<'a> {
    /// Of a solve that begins; where there are other ranks the time limit is taken from `stop`, which each would judge by itself.
    pub fn new(
        comm: &impl Comm,
        monitor: &'a mut dyn Monitor,
        agreement: &'a Agreement,
        stop: &mut StopCriterion,
    ) -> Self {
        let (rank, n_ranks) = (comm.rank(), comm.size());
        let limit = if n_ranks > 1 { stop.time_limit.take() } else { None };
        Self { monitor, agreement, rank, n_ranks, limit, start: Instant::now() }
    }
}

impl Monitor for Told<'_> {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        let flow = self.monitor.observe(progress);
        if self.n_ranks == 1 {
            return flow;
        }
        if flow.is_break() {
            self.agreement.wish.set(Wish::Stop);
        } else if self.rank == 0
            && self.agreement.wish.get() == Wish::GoOn
            && self.limit.is_some_and(|limit| self.start.elapsed() >= limit)
        {
            self.agreement.wish.set(Wish::Time);
        }
        if self.agreement.agreed.get() == Wish::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
