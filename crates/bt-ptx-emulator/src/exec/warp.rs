//! Operations of a warp: lanes wait until all that the mask names have come, then each gets its result.
//!
//! PTX ISA 6.3, sections 9.7.8.6 (`shfl.sync`) and 9.7.12 (`vote.sync`, `match.sync`, `bar.warp.sync`). The mask names
//! lanes that exist and have not exited, and all of them come to the same instruction with the same mask.

use super::shared::Shared;
use super::thread::{State, Thread};
use crate::error::{FaultKind, Stopped, stop};
use crate::op::{Kernel, NONE, Op, POISON, Slot, WarpKind, WarpOp};

/// Where the lanes of a warp are, a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    /// Those that there are: the last warp of a block may have fewer than 32.
    pub(super) present: u32,
    pub(super) exited: u32,
    /// Those that wait at a warp-level operation.
    pub(super) waiting: u32,
}

/// Lane `lane` of `warp`, whose first thread is `first`, has come to a warp-level operation.
pub(super) fn arrive(
    warp: &mut [Thread],
    lanes: &mut Lanes,
    lane: usize,
    first: usize,
    shared: &mut Shared,
    kernel: &Kernel,
) -> Result<(), Stopped> {
    lanes.waiting |= 1 << lane;
    let (function, pc) = (warp[lane].function, warp[lane].pc);
    let code = &kernel.functions[function];
    let Op::Warp(k) = code.ops[pc - 1] else { unreachable!("threads pause as Warp at warp-level operations only") };
    let op = code.warp_ops[k as usize];
    let mask = value(&mut warp[lane], op.mask) as u32;
    let refuse = |what: &str, lane: usize| {
        stop(FaultKind::DivergentWarp, format!("the mask {mask:#x} {what}").replace("LANE", &lane.to_string()))
    };
    if mask >> lane & 1 == 0 {
        return refuse("does not name the lane itself, LANE", lane);
    }
    if mask & !lanes.present != 0 {
        return refuse("names lane LANE, which is not there", (mask & !lanes.present).trailing_zeros() as usize);
    }
    if mask & lanes.exited != 0 {
        return refuse("names lane LANE, which has exited", (mask & lanes.exited).trailing_zeros() as usize);
    }
    if mask & !lanes.waiting != 0 {
        return Ok(());
    }
    let named = (0..32).filter(|k| mask >> k & 1 == 1);
    let mut a = [POISON; 32];
    for lane in named.clone() {
        let thread = &mut warp[lane];
        // Those that wait elsewhere, or for others, may still come here.
        if (thread.function, thread.pc) != (function, pc) || value(thread, op.mask) as u32 != mask {
            return Ok(());
        }
        if op.a != NONE {
            a[lane] = value(thread, op.a);
        }
    }
    for lane in named {
        let (d, p) = result(&op, &a, &mut warp[lane], lane, mask);
        set(&mut warp[lane], op.d, d);
        set(&mut warp[lane], op.p, p);
        warp[lane].state = State::Ready;
    }
    lanes.waiting &= !mask;
    if op.kind == WarpKind::Barrier {
        shared.shadow.warp_barrier(first, mask);
    }
    Ok(())
}

fn value(thread: &mut Thread, slot: Slot) -> u64 {
    thread.window()[usize::from(slot)]
}

fn set(thread: &mut Thread, slot: Slot, value: u64) {
    if slot != NONE {
        thread.window()[usize::from(slot)] = value;
    }
}

/// What `lane` gets: the value, and the predicate. `a` holds the first operand of each lane that the mask names.
fn result(op: &WarpOp, a: &[u64; 32], thread: &mut Thread, lane: usize, mask: u32) -> (u64, u64) {
    let who = |wanted: u64| -> u32 { (0..32).filter(|k| mask >> k & 1 == 1 && a[*k] == wanted).map(|k| 1 << k).sum() };
    match op.kind {
        WarpKind::VoteAll => (u64::from(who(1) == mask), 0),
        WarpKind::VoteAny => (u64::from(who(1) != 0), 0),
        WarpKind::VoteUniform => (u64::from(who(1) == mask || who(1) == 0), 0),
        WarpKind::Ballot => (u64::from(who(1)), 0),
        WarpKind::MatchAny => (u64::from(who(a[lane])), 0),
        WarpKind::MatchAll if who(a[lane]) == mask => (u64::from(mask), 1),
        WarpKind::MatchAll | WarpKind::Barrier => (0, 0),
        WarpKind::ShuffleUp | WarpKind::ShuffleDown | WarpKind::ShuffleButterfly | WarpKind::ShuffleIndex => {
            let (b, c) = (value(thread, op.b), value(thread, op.c));
            let (source, inside) = source(op.kind, lane as i64, b as i64 & 31, c as i64);
            (u64::from(a[source.unwrap_or(lane)] as u32), inside)
        }
    }
}

/// The lane that a shuffle reads, as PTX ISA 6.3, section 9.7.8.6, finds it from b and c, and its predicate. `None` outside
/// the segment, where a lane gets its own value; a lane that the mask does not name gives poison.
fn source(kind: WarpKind, own: i64, b: i64, c: i64) -> (Option<usize>, u64) {
    let (clamp, segment) = (c & 31, c >> 8 & 31);
    let (min, max) = (own & segment, own & segment | clamp & !segment);
    let (source, inside) = match kind {
        WarpKind::ShuffleUp => (own - b, own - b >= max),
        WarpKind::ShuffleDown => (own + b, own + b <= max),
        WarpKind::ShuffleButterfly => (own ^ b, own ^ b <= max),
        _ => (min | b & !segment, min | b & !segment <= max),
    };
    (inside.then_some(source as usize), u64::from(inside))
}
