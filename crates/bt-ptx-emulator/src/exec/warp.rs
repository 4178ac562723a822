//! Operations of a warp: lanes wait until all that the mask names have come, then each gets its result.
//!
//! PTX ISA 6.3, sections 9.7.8.6 (`shfl.sync`) and 9.7.12 (`vote.sync`, `match.sync`, `bar.warp.sync`). The mask names
//! lanes that exist and have not exited, and all of them come to the same instruction with the same mask.

use super::shared::Shared;
use super::thread::{State, Thread};
use crate::error::{FaultKind, Stopped, stop};
use crate::op::{Kernel, NONE, Op, Slot, WarpKind, WarpOp};

/// Lane `lane` of `warp`, whose first thread is `first`, has come to a warp-level operation.
pub(super) fn arrive(
    warp: &mut [Thread],
    lane: usize,
    first: usize,
    shared: &mut Shared,
    kernel: &Kernel,
) -> Result<(), Stopped> {
    let (function, pc) = (warp[lane].function, warp[lane].pc);
    let code = &kernel.functions[function];
    let Op::Warp(k) = code.ops[pc - 1] else { unreachable!("threads pause as Warp at warp-level operations only") };
    let op = code.warp_ops[k as usize];
    let mask = value(&mut warp[lane], op.mask) as u32;
    if mask >> lane & 1 == 0 {
        return stop(FaultKind::DivergentWarp, format!("the mask {mask:#x} does not name the lane itself, {lane}"));
    }
    let named = (0..32).filter(|k| mask >> k & 1 == 1);
    let mut complete = true;
    for other in named.clone() {
        match warp.get_mut(other) {
            None => {
                return stop(
                    FaultKind::DivergentWarp,
                    format!("the mask {mask:#x} names lane {other}, which is not there"),
                );
            }
            Some(t) if t.state == State::Exited => {
                return stop(
                    FaultKind::DivergentWarp,
                    format!("the mask {mask:#x} names lane {other}, which has exited"),
                );
            }
            Some(t) => {
                complete &= other == lane
                    || t.state == State::Warp
                        && (t.function, t.pc) == (function, pc)
                        && value(t, op.mask) as u32 == mask;
            }
        }
    }
    if complete {
        let results: Vec<_> = named.clone().map(|lane| (lane, result(&op, warp, lane, mask))).collect();
        for (lane, (d, p)) in results {
            set(&mut warp[lane], op.d, d);
            set(&mut warp[lane], op.p, p);
            warp[lane].state = State::Ready;
        }
        if op.kind == WarpKind::Barrier {
            shared.shadow.warp_barrier(first, mask);
        }
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

/// What `lane` gets: the value, and the predicate.
fn result(op: &WarpOp, warp: &mut [Thread], lane: usize, mask: u32) -> (u64, u64) {
    let named = (0..32).filter(|k| mask >> k & 1 == 1);
    let mut votes =
        |wanted: u64| -> u32 { named.clone().filter(|k| value(&mut warp[*k], op.a) == wanted).map(|k| 1 << k).sum() };
    match op.kind {
        WarpKind::Barrier => (0, 0),
        WarpKind::VoteAll => (u64::from(votes(1) == mask), 0),
        WarpKind::VoteAny => (u64::from(votes(1) != 0), 0),
        WarpKind::VoteUniform => (u64::from(votes(1) == mask || votes(1) == 0), 0),
        WarpKind::Ballot => (u64::from(votes(1)), 0),
        WarpKind::MatchAny | WarpKind::MatchAll => {
            let own = value(&mut warp[lane], op.a);
            let same: u32 = named.filter(|k| value(&mut warp[*k], op.a) == own).map(|k| 1 << k).sum();
            match op.kind {
                WarpKind::MatchAny => (u64::from(same), 0),
                _ if same == mask => (u64::from(mask), 1),
                _ => (0, 0),
            }
        }
        WarpKind::ShuffleUp | WarpKind::ShuffleDown | WarpKind::ShuffleButterfly | WarpKind::ShuffleIndex => {
            shuffle(op, warp, lane, mask)
        }
    }
}

/// The lane that is read, as PTX ISA 6.3, section 9.7.8.6, finds it from b and c. A source lane outside the segment gives
/// the lane's own value and a false predicate; one that the mask does not name gives poison.
fn shuffle(op: &WarpOp, warp: &mut [Thread], lane: usize, mask: u32) -> (u64, u64) {
    let (b, c) = (value(&mut warp[lane], op.b) as i64 & 31, value(&mut warp[lane], op.c) as i64);
    let (clamp, segment, own) = (c & 31, c >> 8 & 31, lane as i64);
    let max = own & segment | clamp & !segment;
    let min = own & segment;
    let (source, inside) = match op.kind {
        WarpKind::ShuffleUp => (own - b, own - b >= max),
        WarpKind::ShuffleDown => (own + b, own + b <= max),
        WarpKind::ShuffleButterfly => (own ^ b, own ^ b <= max),
        _ => (min | b & !segment, min | b & !segment <= max),
    };
    let source = if inside { source as usize } else { lane };
    let read = if mask >> source & 1 == 1 { value(&mut warp[source], op.a) } else { crate::op::POISON };
    (u64::from(read as u32), u64::from(inside))
}
