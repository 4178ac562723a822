//! Races in shared memory: two threads of a block at one place, at least one writing, nothing between that orders them.
//!
//! A barrier of the block orders everything before it before everything after it: epochs. `bar.warp.sync` orders the
//! lanes it names: vector clocks of the lanes of a warp. Shuffles and votes order nothing (PTX ISA 6.3, 9.7.12.3 ff.).
//! Strong accesses (volatile, atomic, …) do not race with each other, but they order nothing either: a flag in shared
//! memory without a barrier counts as a race of what it guards.
//!
//! For each grain of memory the last write, the reads since, and the strong accesses are kept, as in FastTrack (Flanagan,
//! Freund 2009, doi:10.1145/1542476.1542490); of threads of different warps two are enough, since only barriers order
//! those, and forget them all.

use crate::error::{FaultKind, Stopped, stop};

const LANES: usize = 32;
const NOBODY: u16 = u16::MAX;

/// Who accessed a grain in this epoch: lanes of one warp, and one thread of another warp.
#[derive(Clone, Copy, Debug)]
struct Set {
    epoch: u32,
    lanes: u32,
    warp: u16,
    other: u16,
}

const EMPTY: Set = Set { epoch: 0, lanes: 0, warp: 0, other: NOBODY };

#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Set,
    reads: Set,
    strong: Set,
    /// Whether one of the strong accesses wrote.
    strong_wrote: bool,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    StrongRead,
    StrongWrite,
}

#[derive(Debug)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    grain: usize,
    /// From 1; sets of other epochs are empty.
    epoch: u32,
    /// Where lanes of a warp can be ordered: what each thread knows of each lane of its warp.
    clocks: Vec<[u32; LANES]>,
    /// And when each lane made each access: of each cell the write, the reads, the strong accesses.
    times: Vec<[[u32; LANES]; 3]>,
}

impl Shadow {
    pub(super) fn new(bytes: usize, grain: usize, threads: usize, has_warp_barriers: bool) -> Self {
        let cells = bytes.div_ceil(grain);
        let ordered = |n: usize| if has_warp_barriers { n } else { 0 };
        let cell = Cell { write: EMPTY, reads: EMPTY, strong: EMPTY, strong_wrote: false };
        let (clocks, times) = (vec![[0; LANES]; ordered(threads)], vec![[[0; LANES]; 3]; ordered(cells)]);
        let mut shadow = Self { cells: vec![cell; cells], grain, epoch: 0, clocks, times };
        shadow.start();
        shadow
    }

    /// Forgets everything, for a block that starts.
    pub(super) fn start(&mut self) {
        self.epoch += 1;
        for (thread, clock) in self.clocks.iter_mut().enumerate() {
            *clock = [0; LANES];
            clock[thread % LANES] = 1;
        }
    }

    /// All threads of the block have met.
    pub(super) fn block_barrier(&mut self) {
        self.epoch += 1;
    }

    /// The lanes of a warp that the mask names have met.
    pub(super) fn warp_barrier(&mut self, first_thread: usize, mask: u32) {
        let lanes = (0..LANES).filter(|lane| mask >> lane & 1 == 1);
        let mut known = [0; LANES];
        for lane in lanes.clone() {
            for (k, seen) in known.iter_mut().zip(self.clocks[first_thread + lane]) {
                *k = seen.max(*k);
            }
        }
        for lane in lanes {
            self.clocks[first_thread + lane] = known;
            self.clocks[first_thread + lane][lane] += 1;
        }
    }

    /// Barriers of the block so far.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The thread's own time: barriers of its warp so far.
    pub(super) fn time(&self, thread: usize) -> u32 {
        self.clocks.get(thread).map_or(0, |clock| clock[thread % LANES])
    }

    /// Whether what `other` did at `time` is ordered before `thread` by barriers of their warp.
    pub(super) fn knows(&self, thread: usize, other: usize, time: u32) -> bool {
        let same_warp = thread / LANES == other / LANES;
        same_warp && self.clocks.get(thread).is_some_and(|clock| clock[other % LANES] >= time)
    }

    /// Checks an access and remembers it.
    #[inline]
    pub(super) fn access(&mut self, thread: usize, at: usize, bytes: usize, kind: Kind) -> Result<(), Stopped> {
        for cell in at / self.grain..(at + bytes).div_ceil(self.grain) {
            if let Some((other, theirs)) = self.one(thread, cell, kind) {
                return conflict(thread, other, kind, theirs, cell * self.grain);
            }
        }
        Ok(())
    }

    /// A thread and what it did that this access races with.
    #[inline]
    fn one(&mut self, thread: usize, at: usize, kind: Kind) -> Option<(u16, &'static str)> {
        let cell = &self.cells[at];
        if let Some(other) = self.unordered(&cell.write, thread, at, 0) {
            return Some((other, "wrote"));
        }
        let strong = match kind {
            Kind::Read => cell.strong_wrote,
            Kind::Write => true,
            Kind::StrongRead | Kind::StrongWrite => false,
        };
        if strong && let Some(other) = self.unordered(&cell.strong, thread, at, 2) {
            return Some((other, "accessed atomically"));
        }
        if matches!(kind, Kind::Write | Kind::StrongWrite)
            && let Some(other) = self.unordered(&cell.reads, thread, at, 1)
        {
            return Some((other, "read"));
        }
        let epoch = self.epoch;
        match kind {
            Kind::Read => self.insert(thread, at, 1),
            Kind::Write => {
                // All earlier accesses are ordered before this one: whoever is ordered after it is after them too.
                let cell = &mut self.cells[at];
                (cell.write, cell.reads, cell.strong, cell.strong_wrote) = (EMPTY, EMPTY, EMPTY, false);
                self.insert(thread, at, 0);
            }
            Kind::StrongRead | Kind::StrongWrite => {
                let cell = &mut self.cells[at];
                cell.strong_wrote &= cell.strong.epoch == epoch;
                cell.strong_wrote |= kind == Kind::StrongWrite;
                self.insert(thread, at, 2);
            }
        }
        None
    }

    /// Someone else in the set whose access is not ordered before this thread.
    #[inline]
    fn unordered(&self, set: &Set, thread: usize, cell: usize, which: usize) -> Option<u16> {
        if set.epoch != self.epoch {
            return None;
        }
        let first = usize::from(set.warp) * LANES;
        let mut lanes = set.lanes;
        if thread / LANES == usize::from(set.warp) {
            if set.other != NOBODY {
                return Some(set.other);
            }
            lanes &= !(1 << (thread % LANES));
            if !self.clocks.is_empty() {
                let (known, times) = (&self.clocks[thread], &self.times[cell][which]);
                let ordered = |lane: &usize| lanes >> lane & 1 == 1 && times[*lane] > known[*lane];
                return (0..LANES).find(ordered).map(|lane| (first + lane) as u16);
            }
        }
        (lanes != 0).then(|| first as u16 + lanes.trailing_zeros() as u16)
    }

    #[inline]
    fn insert(&mut self, thread: usize, at: usize, which: usize) {
        let cell = &mut self.cells[at];
        let set = match which {
            0 => &mut cell.write,
            1 => &mut cell.reads,
            _ => &mut cell.strong,
        };
        let (warp, lane) = ((thread / LANES) as u16, thread % LANES);
        if set.epoch != self.epoch {
            *set = Set { epoch: self.epoch, lanes: 0, warp, other: NOBODY };
        }
        if set.warp == warp {
            set.lanes |= 1 << lane;
            if let Some(clock) = self.clocks.get(thread) {
                self.times[at][which][lane] = clock[lane];
            }
        } else {
            set.other = thread as u16;
        }
    }
}

#[cold]
fn conflict(thread: usize, other: u16, kind: Kind, theirs: &str, at: usize) -> Result<(), Stopped> {
    let ours = match kind {
        Kind::Read => "reads",
        Kind::Write => "writes",
        Kind::StrongRead | Kind::StrongWrite => "accesses atomically",
    };
    let what =
        format!("thread {thread} {ours} shared byte {at}, which thread {other} {theirs} without a barrier between");
    stop(FaultKind::Race, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn races(shadow: &mut Shadow, thread: usize, at: usize, kind: Kind) -> bool {
        shadow.access(thread, at, 4, kind).is_err()
    }

    /// Each pair of accesses by two threads, in one warp and in two.
    #[test]
    fn pairs_of_accesses() {
        let kinds = [Kind::Read, Kind::Write, Kind::StrongRead, Kind::StrongWrite];
        for (a, row) in kinds.into_iter().zip([
            [false, true, false, true],
            [true; 4],
            [false, true, false, false],
            [true, true, false, false],
        ]) {
            for (b, expected) in kinds.into_iter().zip(row) {
                for other in [1, 40] {
                    for has_warp_barriers in [false, true] {
                        let mut shadow = Shadow::new(64, 4, 64, has_warp_barriers);
                        assert!(!races(&mut shadow, 0, 8, a));
                        assert!(!races(&mut shadow, other, 12, b), "another place");
                        assert_eq!(races(&mut shadow, other, 8, b), expected, "{a:?} then {b:?} by {other}");
                        let mut shadow = Shadow::new(64, 4, 64, has_warp_barriers);
                        assert!(!races(&mut shadow, 0, 8, a));
                        assert!(!races(&mut shadow, 0, 8, b), "the same thread");
                        shadow.block_barrier();
                        assert!(!races(&mut shadow, other, 8, Kind::Write), "behind a barrier");
                    }
                }
            }
        }
    }

    #[test]
    fn many_readers_before_a_writer() {
        // The reader that the writer races with is neither the first nor the last.
        for readers in [[5, 7, 5], [5, 40, 5], [40, 5, 40], [5, 40, 70]] {
            let mut shadow = Shadow::new(64, 4, 96, false);
            for reader in readers {
                assert!(!races(&mut shadow, reader, 0, Kind::Read));
            }
            assert!(races(&mut shadow, 5, 0, Kind::Write), "{readers:?}");
        }
    }

    #[test]
    fn warp_barriers_order_the_lanes_they_name() {
        let mut shadow = Shadow::new(64, 4, 64, true);
        assert!(!races(&mut shadow, 0, 0, Kind::Write));
        shadow.warp_barrier(0, 0b0011);
        assert!(!races(&mut shadow, 1, 0, Kind::Read));
        assert!(races(&mut shadow, 2, 0, Kind::Read), "lane 2 was not named");
        // Lane 2 learns of lane 0 through lane 1.
        shadow.warp_barrier(0, 0b0110);
        assert!(!races(&mut shadow, 2, 0, Kind::Write));
        assert!(races(&mut shadow, 0, 0, Kind::Read), "lane 0 knows nothing of lane 2");
        assert!(races(&mut shadow, 33, 0, Kind::Read), "nor does another warp");
    }

    #[test]
    fn narrow_grains_tell_bytes_apart() {
        let mut shadow = Shadow::new(8, 1, 32, false);
        assert!(shadow.access(0, 0, 1, Kind::Write).is_ok());
        assert!(shadow.access(1, 1, 1, Kind::Write).is_ok());
        assert!(shadow.access(2, 0, 2, Kind::Read).is_err());
    }
}
