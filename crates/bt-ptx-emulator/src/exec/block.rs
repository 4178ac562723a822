//! A block: its threads run in a seeded order until all wait, and what they wait for is resolved.

use std::fmt::Write as _;

use super::interpret::{Pause, Place, World, run, set_specials};
use super::shared::Shared;
use super::thread::{State, Thread};
use super::warp::{self, Lanes};
use crate::error::{FaultKind, Stopped, stop};
use crate::op::{Op, Reduce};
use crate::random::Random;

const LANES: usize = 32;
/// After so many warp-level operations other warps have their turn.
const MAX_PASSES: usize = 4096;

pub(super) struct Block {
    pub(super) number: u64,
    pub(super) threads: Vec<Thread>,
    pub(super) shared: Shared,
    /// Warps, and lanes within every warp, in the order in which they run.
    warps: Vec<usize>,
    lanes: Vec<usize>,
    /// Where the lanes of each warp are.
    states: Vec<Lanes>,
    at_barrier: usize,
    exited: usize,
}

/// A fault and the thread that met it.
pub(super) type Failed = (usize, Stopped);

/// What a turn of a block came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Done,
    /// Some thread can go on.
    Going,
}

impl Block {
    /// A block that is still to be started.
    pub(super) fn new(world: &World<'_>) -> Self {
        let count = world.geometry.threads();
        Self {
            number: 0,
            threads: (0..count).map(|_| Thread::default()).collect(),
            shared: Shared::new(world.kernel, world.geometry.total_shared as usize, count),
            warps: Vec::new(),
            lanes: Vec::new(),
            states: Vec::new(),
            at_barrier: 0,
            exited: 0,
        }
    }

    /// Becomes block `number` at its start, in the memory of the one before it.
    pub(super) fn start(&mut self, number: u64, world: &World<'_>, random: &mut Random) {
        let count = self.threads.len();
        for (index, thread) in self.threads.iter_mut().enumerate() {
            thread.start(&world.kernel.functions[0]);
            set_specials(thread, Place { block: number, thread: index }, world);
        }
        self.shared.start();
        (self.number, self.at_barrier, self.exited) = (number, 0, 0);
        (self.warps, self.lanes) = (random.order(count.div_ceil(LANES)), random.order(LANES));
        let present = |warp: usize| u32::MAX >> (LANES - (count - warp * LANES).min(LANES));
        let states = (0..count.div_ceil(LANES)).map(|warp| Lanes { present: present(warp), exited: 0, waiting: 0 });
        self.states = states.collect();
    }

    /// Runs every thread until it waits, yields or exits.
    pub(super) fn turn(&mut self, world: &mut World<'_>, random: &mut Random) -> Result<Turn, Failed> {
        for thread in self.threads.iter_mut().filter(|t| t.state == State::Yielded) {
            thread.state = State::Ready;
        }
        for w in 0..self.warps.len() {
            let first = self.warps[w] * LANES;
            // Lanes that a warp-level operation frees go on in the same turn.
            for _ in 0..MAX_PASSES {
                if !self.warp_pass(first, world, random)? {
                    break;
                }
            }
        }
        let count = self.threads.len();
        if self.exited == count {
            return Ok(Turn::Done);
        }
        if self.at_barrier == count {
            self.barrier(world).map_err(|fault| (0, fault))?;
            return Ok(Turn::Going);
        }
        if self.threads.iter().any(|t| matches!(t.state, State::Yielded | State::Ready)) {
            return Ok(Turn::Going);
        }
        Err(self.stuck(world))
    }

    /// Whether some lane of the warp ran.
    fn warp_pass(&mut self, first: usize, world: &mut World<'_>, random: &mut Random) -> Result<bool, Failed> {
        let mut ran = false;
        for l in 0..LANES {
            let index = first + self.lanes[l];
            let Some(thread) = self.threads.get_mut(index).filter(|t| t.state == State::Ready) else { continue };
            ran = true;
            let place = Place { block: self.number, thread: index };
            let pause = run(thread, place, &mut self.shared, world, random.share()).map_err(|fault| (index, fault))?;
            thread.state = match pause {
                Pause::Exit => State::Exited,
                Pause::Barrier => State::Barrier,
                Pause::Warp => State::Warp,
                Pause::Yield => State::Yielded,
            };
            let (lanes, lane) = (&mut self.states[first / LANES], index - first);
            match pause {
                Pause::Exit => {
                    self.exited += 1;
                    lanes.exited |= 1 << lane;
                }
                Pause::Barrier => self.at_barrier += 1,
                Pause::Yield => {}
                Pause::Warp => {
                    let last = self.threads.len().min(first + LANES);
                    warp::arrive(&mut self.threads[first..last], lanes, lane, first, &mut self.shared, world.kernel)
                        .map_err(|fault| (index, fault))?;
                }
            }
        }
        Ok(ran)
    }

    /// All threads wait at barriers: at one and the same, or they have diverged.
    fn barrier(&mut self, world: &World<'_>) -> Result<(), Stopped> {
        let (function, pc) = (self.threads[0].function, self.threads[0].pc);
        let code = &world.kernel.functions[function];
        if let Some(k) = self.threads.iter().position(|t| (t.function, t.pc) != (function, pc)) {
            let line = |t: &Thread| world.kernel.functions[t.function].lines[t.pc - 1];
            let lines = (line(&self.threads[0]), line(&self.threads[k]));
            let what =
                format!("it waits at the barrier in line {}, thread {k} at the one in line {}", lines.0, lines.1);
            return stop(FaultKind::DivergentBarrier, what);
        }
        let Op::Barrier(k) = code.ops[pc - 1] else { unreachable!("threads pause as Barrier at barriers only") };
        let barrier = code.barriers[k as usize];
        let id = self.threads[0].window()[usize::from(barrier.id)];
        if id > 15 || self.threads.iter_mut().any(|t| t.window()[usize::from(barrier.id)] != id) {
            return stop(FaultKind::DivergentBarrier, "the numbers of the barrier differ, or are above 15");
        }
        if barrier.reduce != Reduce::Nothing {
            let (count, mut holds) = (self.threads.len(), 0);
            for thread in &mut self.threads {
                holds += usize::from(thread.window()[usize::from(barrier.p)] == 1);
            }
            let value = match barrier.reduce {
                Reduce::And => usize::from(holds == count),
                Reduce::Or => usize::from(holds > 0),
                Reduce::Count | Reduce::Nothing => holds,
            };
            for thread in &mut self.threads {
                thread.window()[usize::from(barrier.d)] = value as u64;
            }
        }
        self.at_barrier = 0;
        self.shared.shadow.block_barrier();
        for thread in &mut self.threads {
            thread.state = State::Ready;
        }
        Ok(())
    }

    /// Nobody can go on: who waits where, and for whom.
    fn stuck(&self, world: &World<'_>) -> Failed {
        let line = |t: &Thread| world.kernel.functions[t.function].lines[t.pc - 1];
        let find = |state| self.threads.iter().position(|t| t.state == state);
        let (waits, kind) = match find(State::Warp) {
            Some(thread) => (thread, FaultKind::DivergentWarp),
            None => (find(State::Barrier).unwrap_or_default(), FaultKind::DivergentBarrier),
        };
        let mut others = String::new();
        for (state, what) in
            [(State::Exited, "exited"), (State::Barrier, "wait at a barrier"), (State::Warp, "wait for lanes")]
        {
            let count = self.threads.iter().filter(|t| t.state == state).count();
            if let Some(first) = find(state) {
                // Writing to a string cannot fail.
                let _ = write!(others, "; {count} {what} (thread {first}, line {})", line(&self.threads[first]));
            }
        }
        (waits, Box::new((kind, format!("it waits for threads that never come{others}"))))
    }
}
