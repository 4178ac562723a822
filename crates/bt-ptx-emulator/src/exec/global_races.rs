//! Races in global memory within a launch: two accesses to one place, at least one writing, nothing that orders them.
//!
//! What orders, by the memory model of PTX (PTX ISA 6.3, chapter 8) as far as kernels use it:
//!
//! ```text
//! write x; membar.gl; strong write or atomic of flag  ──▶  strong read or atomic of flag; membar.gl; read x
//! ```
//!
//! and barriers within a block and a warp. Strong accesses do not race with each other. Vector clocks count the fences of
//! each *block*, not of each thread: whatever a block did before one of its threads fenced counts as fenced, and what one
//! thread acquired as acquired by all. Of several readers three are kept. So a fault is a race, and not every race is a
//! fault. Where a fence is missing, it is found though the stand-in's memory needs none.

use rustc_hash::FxHashMap;

use super::shadow::Shadow;
use crate::error::{FaultKind, Stopped, stop};

/// How an access takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    /// `ld.global.nc`: what it reads must not be written in the same launch at all.
    NonCoherentRead,
    Write,
    StrongRead,
    StrongWrite,
    /// Reads and writes.
    Atomic,
}

/// An access, with the time of its block and of its lane.
#[derive(Clone, Copy, Debug)]
struct Access {
    block: u32,
    thread: u32,
    /// Barriers of the block before it.
    epoch: u32,
    /// Fences of the block before it, from 1; 0 where there was no access.
    fences: u32,
    /// Barriers of the warp before it.
    lane_time: u32,
}

const NEVER: Access = Access { block: 0, thread: 0, epoch: 0, fences: 0, lane_time: 0 };

#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Access,
    reads: [Access; 3],
    strong_write: Access,
    strong_read: Access,
}

const UNTOUCHED: Cell = Cell { write: NEVER, reads: [NEVER; 3], strong_write: NEVER, strong_read: NEVER };

/// Fences of each block up to which everything is ordered before.
type View = FxHashMap<u32, u32>;

#[derive(Debug, Default)]
struct Clock {
    fences: u32,
    /// What is ordered before the block now.
    view: View,
    /// What strong reads have seen released; ordered after the next fence.
    seen: View,
    /// What the block's strong writes release: its view at its last fence, itself included.
    fenced: View,
}

/// Everything that a launch did to global memory. Each access looks several things up: hashes are cheap ones.
#[derive(Debug)]
pub(super) struct GlobalRaces {
    grain: u64,
    pages: FxHashMap<u64, Vec<Cell>>,
    clocks: FxHashMap<u32, Clock>,
    /// What a strong read of an address sees.
    released: FxHashMap<u64, View>,
}

/// Grains of a page.
const PAGE: u64 = 512;

impl GlobalRaces {
    pub(super) fn new(grain: usize) -> Self {
        Self {
            grain: grain as u64,
            pages: FxHashMap::default(),
            clocks: FxHashMap::default(),
            released: FxHashMap::default(),
        }
    }

    fn clock(&mut self, block: u64) -> &mut Clock {
        self.clocks.entry(block as u32).or_insert_with(|| Clock { fences: 1, ..Clock::default() })
    }

    /// A fence of the whole device, by a thread of the block.
    pub(super) fn fence(&mut self, block: u64) {
        let clock = self.clock(block);
        let seen = std::mem::take(&mut clock.seen);
        join(&mut clock.view, &seen);
        clock.fenced.clone_from(&clock.view);
        clock.fenced.insert(block as u32, clock.fences);
        clock.fences += 1;
    }

    /// Checks an access by a thread and remembers it.
    pub(super) fn access(
        &mut self,
        (block, thread): (u64, usize),
        at: u64,
        bytes: usize,
        kind: Kind,
        shadow: &Shadow,
    ) -> Result<(), Stopped> {
        let fences = self.clock(block).fences;
        let (epoch, lane_time) = (shadow.epoch(), shadow.time(thread));
        let now = Access { block: block as u32, thread: thread as u32, epoch, fences, lane_time };
        let view = &self.clocks[&now.block].view;
        let ordered = |earlier: &Access| {
            earlier.fences == 0
                || view.get(&earlier.block).is_some_and(|fences| *fences >= earlier.fences)
                || earlier.block == now.block
                    && (earlier.thread == now.thread
                        || earlier.epoch != now.epoch
                        || shadow.knows(thread, earlier.thread as usize, earlier.lane_time))
        };
        for grain in at / self.grain..(at + bytes as u64).div_ceil(self.grain) {
            let page = self.pages.entry(grain / PAGE).or_insert_with(|| vec![UNTOUCHED; PAGE as usize]);
            let cell = &mut page[(grain % PAGE) as usize];
            if let Some((earlier, what)) = cell.conflict(kind, ordered) {
                return report(&earlier, what, kind, grain * self.grain);
            }
            cell.remember(now, kind, ordered);
        }
        self.synchronize(block, at, kind);
        Ok(())
    }

    /// Strong writes release what was fenced, strong reads see what was released.
    fn synchronize(&mut self, block: u64, at: u64, kind: Kind) {
        let Some(clock) = self.clocks.get_mut(&(block as u32)) else { return };
        if matches!(kind, Kind::StrongRead | Kind::Atomic)
            && let Some(released) = self.released.get(&at)
        {
            join(&mut clock.seen, released);
        }
        match kind {
            Kind::StrongWrite => {
                self.released.insert(at, clock.fenced.clone());
            }
            Kind::Atomic if !clock.fenced.is_empty() => join(self.released.entry(at).or_default(), &clock.fenced),
            _ => {}
        }
    }
}

impl Cell {
    /// An earlier access that this one races with, and what it did.
    fn conflict(&self, kind: Kind, ordered: impl Fn(&Access) -> bool) -> Option<(Access, &'static str)> {
        let writes = matches!(kind, Kind::Write | Kind::StrongWrite | Kind::Atomic);
        let strong = matches!(kind, Kind::StrongRead | Kind::StrongWrite | Kind::Atomic);
        if kind == Kind::NonCoherentRead {
            let written = [self.write, self.strong_write].into_iter().find(|a| a.fences > 0);
            return written.map(|a| (a, "wrote in this launch"));
        }
        let unordered = |a: &&Access| !ordered(a);
        let check = |applies: bool, accesses: &[Access], what| {
            accesses.iter().find(unordered).filter(|_| applies).map(|a| (*a, what))
        };
        check(true, &[self.write], "wrote")
            .or_else(|| check(writes, &self.reads, "read"))
            .or_else(|| check(!strong, &[self.strong_write], "wrote atomically"))
            .or_else(|| check(kind == Kind::Write, &[self.strong_read], "read atomically"))
    }

    fn remember(&mut self, now: Access, kind: Kind, ordered: impl Fn(&Access) -> bool) {
        match kind {
            Kind::Read | Kind::NonCoherentRead => {
                let same = |a: &Access| (a.block, a.thread) == (now.block, now.thread);
                let place = self.reads.iter().position(|a| same(a) || ordered(a)).unwrap_or(2);
                self.reads[place] = now;
            }
            // All earlier accesses are ordered before this one.
            Kind::Write => *self = Self { write: now, ..UNTOUCHED },
            Kind::StrongRead => self.strong_read = now,
            Kind::StrongWrite | Kind::Atomic => self.strong_write = now,
        }
    }
}

fn join(view: &mut View, other: &View) {
    for (block, fences) in other {
        let known = view.entry(*block).or_default();
        *known = (*known).max(*fences);
    }
}

#[cold]
fn report(earlier: &Access, what: &str, kind: Kind, at: u64) -> Result<(), Stopped> {
    let ours = match kind {
        Kind::Read => "reads",
        Kind::NonCoherentRead => "reads, by ld.global.nc,",
        Kind::Write => "writes",
        Kind::StrongRead => "reads atomically",
        Kind::StrongWrite | Kind::Atomic => "writes atomically",
    };
    let Access { block, thread, .. } = earlier;
    let what =
        format!("it {ours} {at:#x}, which thread {thread} of block {block} {what}, with nothing that orders them");
    stop(FaultKind::Race, what)
}
