//! The interpreter: one thread runs until it waits, exits, or has had its share.

use super::access;
use super::geometry::Geometry;
use super::global_races::GlobalRaces;
use super::shared::Shared;
use super::thread::Thread;
use crate::error::{FaultKind, Stopped, stop};
use crate::memory::Memory;
use crate::op::{Kernel, Op};

/// What all threads of a launch share.
pub(super) struct World<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) kernel: &'a Kernel,
    pub(super) parameters: &'a [u8],
    pub(super) geometry: Geometry,
    /// Where races in global memory are looked for.
    pub(super) races: Option<GlobalRaces>,
    /// Operations run so far.
    pub(super) clock: u64,
    /// Stores, and atomic operations that changed something, so far.
    pub(super) writes: u64,
    /// Bytes of global memory that were read or written.
    pub(super) traffic: u64,
    /// Floating-point operations in single and in double precision.
    pub(super) flops: [u64; 2],
}

/// Why a thread no longer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    Exit,
    Barrier,
    Warp,
    Yield,
}

/// A thread's place in its block and grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) block: u64,
    pub(super) thread: usize,
}

/// Runs `thread` for at most `share` operations. Its `pc` then stands behind the last operation that it began.
pub(super) fn run(
    thread: &mut Thread,
    place: Place,
    shared: &mut Shared,
    world: &mut World<'_>,
    share: u64,
) -> Result<Pause, Stopped> {
    let (mut pc, mut spent) = (thread.pc, 0);
    let result = steps(thread, place, shared, world, share, &mut pc, &mut spent);
    thread.pc = pc;
    world.clock += spent;
    result
}

// Inlined, so that `pc` and `spent` are in registers.
#[inline(always)]
fn steps(
    thread: &mut Thread,
    place: Place,
    shared: &mut Shared,
    world: &mut World<'_>,
    share: u64,
    pc: &mut usize,
    spent: &mut u64,
) -> Result<Pause, Stopped> {
    let kernel = world.kernel;
    let mut code = &kernel.functions[thread.function];
    let mut r = &mut thread.registers[thread.base..];
    loop {
        if *spent == share {
            return Ok(Pause::Yield);
        }
        *spent += 1;
        let op = &code.ops[*pc];
        *pc += 1;
        match *op {
            Op::Move(d, a) => r[d as usize] = r[a as usize],
            Op::Unary(f, d, a) => r[d as usize] = f(r[a as usize]),
            Op::Binary(f, d, a, b) => r[d as usize] = f(r[a as usize], r[b as usize]),
            Op::Ternary(f, d, a, b, c) => r[d as usize] = f(r[a as usize], r[b as usize], r[c as usize]),
            Op::FloatUnary(precision, f, d, a) => {
                world.flops[precision as usize] += 1;
                r[d as usize] = f(r[a as usize]);
            }
            Op::FloatBinary(precision, f, d, a, b) => {
                world.flops[precision as usize] += 1;
                r[d as usize] = f(r[a as usize], r[b as usize]);
            }
            Op::FloatTernary(precision, f, d, a, b, c) => {
                world.flops[precision as usize] += 2;
                r[d as usize] = f(r[a as usize], r[b as usize], r[c as usize]);
            }
            Op::Divide(f, d, a, b) => {
                if r[b as usize] == 0 {
                    return stop(FaultKind::Undefined, "an integer is divided by zero");
                }
                r[d as usize] = f(r[a as usize], r[b as usize]);
            }
            Op::Select(d, a, b, p) => r[d as usize] = if r[p as usize] == 1 { r[a as usize] } else { r[b as usize] },
            Op::Parameter(d, from, bytes, extend) => r[d as usize] = access::parameter(world, from, bytes, extend),
            Op::LocalAddress(d, at) => r[d as usize] = thread.local_base as u64 + u64::from(at),
            Op::ParamAddress(d, at) => r[d as usize] = thread.param_base as u64 + u64::from(at),
            Op::Load(ref access) => {
                access::load(access, place, thread, shared, world)?;
                r = &mut thread.registers[thread.base..];
            }
            Op::Store(ref access) => {
                access::store(access, place, thread, shared, world)?;
                r = &mut thread.registers[thread.base..];
            }
            Op::Atomic(k) => {
                access::atomic(&code.atomics[k as usize], place, thread, shared, world)?;
                r = &mut thread.registers[thread.base..];
            }
            Op::Branch(target) => *pc = target as usize,
            Op::BranchIf { p, wanted, target } => {
                if truth(r[p as usize])? == wanted {
                    *pc = target as usize;
                }
            }
            Op::SkipUnless { p, wanted, count } => {
                if truth(r[p as usize])? != wanted {
                    *pc += count as usize;
                }
            }
            Op::BranchTable(index, table) => {
                let index = r[index as usize];
                match code.tables[table as usize].get(index as usize) {
                    Some(target) => *pc = *target as usize,
                    None => return stop(FaultKind::Undefined, format!("{index} is beyond the table of branches")),
                }
            }
            Op::Call(k) => {
                thread.pc = *pc;
                thread.call(kernel, &code.calls[k as usize])?;
                set_specials(thread, place, world);
                (*pc, code) = (thread.pc, &kernel.functions[thread.function]);
                r = &mut thread.registers[thread.base..];
            }
            Op::Return => {
                thread.return_to_caller(kernel);
                (*pc, code) = (thread.pc, &kernel.functions[thread.function]);
                r = &mut thread.registers[thread.base..];
            }
            Op::Exit => return Ok(Pause::Exit),
            Op::Trap => return stop(FaultKind::Trap, "a trap"),
            Op::Barrier(_) => return Ok(Pause::Barrier),
            Op::Warp(_) => return Ok(Pause::Warp),
            // Threads do not run in step: a thread sees itself alone.
            Op::ActiveMask(d) => r[d as usize] = 1 << (place.thread % 32),
            Op::Clock(d, bytes) => {
                let now = world.clock + *spent;
                r[d as usize] = if bytes == 4 { u64::from(now as u32) } else { now };
            }
            Op::Yield => return Ok(Pause::Yield),
            Op::Fence => {
                if let Some(races) = &mut world.races {
                    races.fence(place.block);
                }
            }
        }
    }
}

/// A predicate that was set.
#[inline]
fn truth(p: u64) -> Result<u64, Stopped> {
    if p > 1 { stop(FaultKind::Undefined, "a predicate that was never set decides") } else { Ok(p) }
}

/// Writes the special registers that the running function uses.
pub(super) fn set_specials(thread: &mut Thread, place: Place, world: &World<'_>) {
    let geometry = &world.geometry;
    for &(slot, special) in &world.kernel.functions[thread.function].specials {
        thread.registers[thread.base + usize::from(slot)] = u64::from(geometry.special(special, place));
    }
}
