//! A launch: which blocks are resident, whose turn it is, and when it has gone on for too long.

use super::block::{Block, Turn};
use super::geometry::Geometry;
use super::global_races::GlobalRaces;
use super::interpret::World;
use crate::device::Races;
use crate::error::{Fault, FaultKind, Stopped};
use crate::memory::Memory;
use crate::op::Kernel;
use crate::random::Random;

/// What to run, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) parameters: &'a [u8],
    /// Blocks that take turns; all of them in a cooperative launch.
    pub(crate) resident: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) seed: u64,
    pub(crate) budget: u64,
    pub(crate) number: u32,
    pub(crate) races: Races,
}

/// What a launch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    /// Bytes of global memory that threads read or wrote, each access counted.
    pub(crate) traffic: u64,
    /// Floating-point operations in single and in double precision.
    pub(crate) flops: [u64; 2],
}

/// So many rounds in which nobody writes or exits mean that threads spin on what never changes.
const IDLE_ROUNDS: u32 = 20_000;

/// Runs a kernel to its end.
///
/// # Errors
/// The first fault. Memory is left as it is then.
pub(crate) fn launch(kernel: &Kernel, memory: &mut Memory, launch: &Launch<'_>) -> Result<Tally, Fault> {
    let geometry = Geometry {
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.dynamic_shared,
        total_shared: kernel.static_shared as u32 + launch.dynamic_shared,
        multiprocessors: launch.multiprocessors,
        number: launch.number,
    };
    let races = (launch.races == Races::Everywhere).then(|| GlobalRaces::new(kernel.global_grain));
    let (clock, writes, traffic, flops) = (0, 0, 0, [0; 2]);
    let mut world =
        World { memory, kernel, parameters: launch.parameters, geometry, races, clock, writes, traffic, flops };
    let mut random = Random::new(launch.seed);
    let mut waiting = Order::new(geometry.blocks(), &mut random);
    // Blocks that are done lend their memory to those that come.
    let (mut resident, mut spare): (Vec<Block>, Vec<Block>) = (Vec::new(), Vec::new());
    let (mut idle, mut seen) = (0, 0);
    loop {
        while (resident.len() as u64) < launch.resident
            && let Some(number) = waiting.next()
        {
            let mut block = spare.pop().unwrap_or_else(|| Block::new(&world));
            block.start(number, &world, &mut random);
            resident.push(block);
            seen += 1;
        }
        if resident.is_empty() {
            return Ok(Tally { operations: world.clock, traffic: world.traffic, flops: world.flops });
        }
        let before = (world.writes, seen, resident.len());
        let mut k = 0;
        while k < resident.len() {
            let block = &mut resident[k];
            match block.turn(&mut world, &mut random) {
                Ok(Turn::Going) => k += 1,
                Ok(Turn::Done) => {
                    spare.push(resident.remove(k));
                }
                Err((thread, stopped)) => return Err(fault(&world, block, thread, &stopped)),
            }
        }
        if world.clock > launch.budget && !resident.is_empty() {
            let what = format!("the launch has run {} operations, more than its budget", world.clock);
            return Err(fault(&world, &resident[0], 0, &Box::new((FaultKind::Budget, what))));
        }
        idle = if before == (world.writes, seen, resident.len()) { idle + 1 } else { 0 };
        if idle == IDLE_ROUNDS {
            let what = "threads wait for memory that nobody writes any more".to_owned();
            return Err(fault(&world, &resident[0], 0, &Box::new((FaultKind::Deadlock, what))));
        }
    }
}

/// The numbers of all blocks: k·step + start modulo their count, with a step that is prime to it.
struct Order {
    count: u64,
    step: u64,
    start: u64,
    given: u64,
}

impl Order {
    fn new(count: u64, random: &mut Random) -> Self {
        let (mut step, start) = (1 + random.below(count), random.below(count));
        while gcd(step, count) != 1 {
            step += 1;
        }
        Self { count, step: step % count.max(1), start, given: 0 }
    }
}

impl Iterator for Order {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        if self.given == self.count {
            return None;
        }
        let number = (u128::from(self.given) * u128::from(self.step) + u128::from(self.start)) % u128::from(self.count);
        self.given += 1;
        Some(number as u64)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The fault with its place.
fn fault(world: &World<'_>, block: &Block, thread: usize, stopped: &Stopped) -> Fault {
    let (at, code) = (&block.threads[thread], &world.kernel.functions[block.threads[thread].function]);
    let line = code.lines[at.pc.saturating_sub(1)];
    let ([bx, by, bz], [tx, ty, tz]) = (world.geometry.block_index(block.number), world.geometry.thread_index(thread));
    let message = format!(
        "kernel {}, PTX line {line}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz}): {}",
        world.kernel.name, stopped.1
    );
    Fault { kind: stopped.0, message }
}
