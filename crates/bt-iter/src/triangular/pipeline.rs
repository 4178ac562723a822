//! Blocks of rows for threads, one behind the other.
//!
//! A block of as many rows as a row reaches back takes from the block before and from itself only. Threads take blocks in turn,
//! and a segment of one is solved as soon as the thread before is past the rows that it takes from: along the lines of a grid in
//! the plane, or its planes in space, a thread follows the other at a distance of a segment or two, and one that comes late takes
//! the next block there is. Waiting in pairs, on levels: J. Park, M. Smelyanskiy, N. Sundaram, P. Dubey, ISC 2014, LNCS 8488,
//! 124–140, doi:10.1007/978-3-319-07518-1_8.
//!
//! Rows are summed as one thread does it: the same bits. Storage: 4 bytes a segment, 68 a block.

#![allow(unsafe_code)] // threads write to one vector, each to its own rows

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::segments::{Strict, Wait};

/// Rows of a block, at least: threads wait for each other several times in one.
const SMALLEST: usize = 256;
/// Rows of a triangle, at least: a millisecond of work, where it takes tenths of one to wake a thread.
const ROWS: usize = 1 << 19;
/// Of so many threads' time this part has to be work: levels, where a row costs twice as much, leave a half.
const BUSY: f64 = 0.65;
/// What a row costs, in entries.
const ROW: usize = 2;
/// Looks at a counter before others are let run.
const LOOKS: usize = 1 << 10;

/// Rows of the solve up to which a block is done, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Done(AtomicUsize);

#[derive(Debug)]
pub(super) struct Pipeline {
    /// First segments of the blocks, and the number of segments.
    starts: Vec<u32>,
    /// The row up to which the block before has to be done before each segment; 0 where it takes nothing from there.
    needs: Vec<u32>,
    done: Vec<Done>,
    /// The next block that nobody has taken.
    next: AtomicUsize,
}

impl Clone for Pipeline {
    fn clone(&self) -> Self {
        Self::idle(self.starts.clone(), self.needs.clone())
    }
}

impl Pipeline {
    fn idle(starts: Vec<u32>, needs: Vec<u32>) -> Self {
        let done = (1..starts.len()).map(|_| Done::default()).collect();
        Self { starts, needs, done, next: AtomicUsize::new(0) }
    }

    /// Rows of a block, where there are enough of them for so many threads: as far as a row reaches back, or one less where it
    /// takes from the corners, too; no block may begin with a row that waits for the one before.
    pub(super) fn block(rows: &Strict<'_>, threads: usize) -> Option<usize> {
        let n = rows.n;
        if threads < 2 || n < ROWS {
            return None;
        }
        let earliest = |k| rows.earliest(k).unwrap_or(k);
        let reach = (0..n).map(|k| k - earliest(k)).max()?;
        [reach, reach.saturating_sub(1)].into_iter().find(|&block| {
            let long = block >= SMALLEST && 2 * threads * block <= n;
            long && (0..n).step_by(block).all(|k| rows.wait(k) == Wait::No)
                && (0..n).all(|k| earliest(k) / block + 1 >= k / block)
        })
    }

    /// From the ends of segments, none of which goes beyond its block; none where so many threads would mostly wait for each other.
    pub(super) fn new(rows: &Strict<'_>, block: usize, ends: &[usize], threads: usize) -> Option<Self> {
        let (mut starts, mut needs) = (vec![], Vec::with_capacity(ends.len()));
        // When segments are done, if nothing but entries took time, and the threads.
        let (mut times, mut free, mut all) = (Vec::with_capacity(ends.len()), vec![0; threads], 0);
        let (mut thread, mut first) = (0, 0);
        for (segment, &end) in ends.iter().enumerate() {
            let start = first / block * block;
            if first == start {
                starts.push(segment as u32);
                thread = (0..threads).min_by_key(|&thread| free[thread]).unwrap_or(0);
            }
            let places = rows.places(first..end);
            let before = rows.idx[places.clone()].iter().map(|&j| rows.triangle.row(j as usize, rows.n) + 1);
            let need = before.filter(|&k| k <= start).max().unwrap_or(0);
            needs.push(need as u32);
            let ready = if need > 0 { times[ends[..segment].partition_point(|&end| end < need)] } else { 0 };
            let cost = places.len() + ROW * (end - first);
            free[thread] = ready.max(free[thread]) + cost;
            times.push(free[thread]);
            all += cost;
            first = end;
        }
        starts.push(ends.len() as u32);
        let last = free.into_iter().max().unwrap_or(0);
        (all as f64 >= BUSY * (threads * last) as f64).then(|| Self::idle(starts, needs))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.needs) + size_of_val(&*self.done)
    }

    /// All threads at work on z. No other run goes on at the same time: the caller has the only reference to the triangle.
    pub(super) fn run<T: Send>(&self, z: &[Cell<T>], work: &(impl Fn(&[Cell<T>]) + Sync)) {
        self.next.store(0, Ordering::Relaxed);
        self.done.iter().for_each(|done| done.0.store(0, Ordering::Relaxed));
        let z = Shared(z);
        spread(rayon::current_num_threads().min(self.done.len()), &|| work(z.cells()));
    }

    /// The next block, for a thread that does all of it: whoever has taken the blocks before is at work on them.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<Block<'_>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.done.len()).then_some(Block { pipeline: self, number, seen: 0 })
    }
}

/// A block that a thread is at work on.
pub(super) struct Block<'p> {
    pipeline: &'p Pipeline,
    number: usize,
    /// Up to which row the block before is known to be done.
    seen: usize,
}

impl Block<'_> {
    #[inline(always)]
    pub(super) fn segments(&self) -> Range<usize> {
        let starts = &self.pipeline.starts;
        starts[self.number] as usize..starts[self.number + 1] as usize
    }

    /// Until the rows that a segment takes from are done.
    #[inline(always)]
    pub(super) fn wait(&mut self, segment: usize) {
        let need = self.pipeline.needs[segment] as usize;
        let mut looks = 0usize;
        while self.seen < need {
            self.seen = self.pipeline.done[self.number - 1].0.load(Ordering::Acquire);
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The rows before `end` are done.
    #[inline(always)]
    pub(super) fn done(&self, end: usize) {
        self.pipeline.done[self.number].0.store(end, Ordering::Release);
    }
}

/// Values that threads write to and read from.
struct Shared<'z, T>(&'z [Cell<T>]);

// SAFETY: a row is written by the one thread that has taken its block, and read by another only after that has seen, by an
// acquiring load of what the first stored with release, that it is done: `Pipeline::new` has looked up every entry of every
// segment, nothing changes the places of a triangle after, and no row reaches further back than the block before its own.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'z, T> Shared<'z, T> {
    fn cells(&self) -> &'z [Cell<T>] {
        self.0
    }
}

/// The same work by some threads.
fn spread(threads: usize, work: &(impl Fn() + Sync)) {
    match threads {
        0 | 1 => work(),
        _ => drop(rayon::join(|| spread(threads / 2, work), || spread(threads - threads / 2, work))),
    }
}
