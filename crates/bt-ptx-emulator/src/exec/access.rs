//! Loads, stores and atomics of a thread in every state space.

use super::global_races::Kind as Global;
use super::interpret::{Place as Who, World};
use super::shadow::Kind;
use super::shared::{Shared, bounded};
use super::thread::Thread;
use crate::decode::KERNEL_PARAM;
use crate::error::{FaultKind, Stopped, stop};
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW, WINDOWS, set_word, word};
use crate::op::{Access, Atomic, Extend, NONE, Place, Strength, Update};

/// What the registers of `access` are loaded with.
#[inline]
pub(super) fn load(
    access: &Access,
    who: Who,
    thread: &mut Thread,
    shared: &mut Shared,
    world: &mut World<'_>,
) -> Result<(), Stopped> {
    let base = thread.registers[thread.base + usize::from(access.base)];
    let (mut address, bytes) = (at(base, access.offset), usize::from(access.bytes));
    aligned(address, access)?;
    for k in 0..usize::from(access.count) {
        let value = match resolve(access.place, address) {
            (Place::Shared, at) => {
                let kind = if access.strength == Strength::Strong { Kind::StrongRead } else { Kind::Read };
                shared.read(who.thread, at, bytes, kind)?
            }
            (Place::Local, at) => {
                let from = bounded(at, bytes, thread.local.len(), "read", "local memory")?;
                word(&thread.local[from..from + bytes])
            }
            (Place::Param, at) if at & KERNEL_PARAM != 0 => {
                let from = bounded(at ^ KERNEL_PARAM, bytes, world.parameters.len(), "read", "kernel parameters")?;
                word(&world.parameters[from..from + bytes])
            }
            (Place::Param, at) => {
                let from = bounded(at, bytes, thread.params.len(), "read", "call parameters")?;
                word(&thread.params[from..from + bytes])
            }
            (Place::Global | Place::Generic, at) => {
                let value = world.memory.read(at, bytes)?;
                let kind = match access.strength {
                    Strength::Plain => Global::Read,
                    Strength::NonCoherent => Global::NonCoherentRead,
                    Strength::Strong => Global::StrongRead,
                };
                check_race(world, who, at, bytes, kind, shared)?;
                world.traffic += bytes as u64;
                value
            }
        };
        thread.registers[thread.base + usize::from(access.values[k])] = extended(value, bytes, access.extend);
        address = address.wrapping_add(bytes as u64);
    }
    Ok(())
}

#[inline]
pub(super) fn store(
    access: &Access,
    who: Who,
    thread: &mut Thread,
    shared: &mut Shared,
    world: &mut World<'_>,
) -> Result<(), Stopped> {
    let base = thread.registers[thread.base + usize::from(access.base)];
    let (mut address, bytes) = (at(base, access.offset), usize::from(access.bytes));
    aligned(address, access)?;
    for k in 0..usize::from(access.count) {
        let value = thread.registers[thread.base + usize::from(access.values[k])];
        match resolve(access.place, address) {
            (Place::Shared, at) => {
                let kind = if access.strength == Strength::Strong { Kind::StrongWrite } else { Kind::Write };
                shared.write(who.thread, at, bytes, value, kind)?;
                world.writes += 1;
            }
            (Place::Local, at) => {
                let from = bounded(at, bytes, thread.local.len(), "write", "local memory")?;
                set_word(&mut thread.local[from..from + bytes], value);
            }
            (Place::Param, at) => {
                let from = bounded(at, bytes, thread.params.len(), "write", "call parameters")?;
                set_word(&mut thread.params[from..from + bytes], value);
            }
            (Place::Global | Place::Generic, at) => {
                world.memory.write(at, bytes, value)?;
                let kind = if access.strength == Strength::Strong { Global::StrongWrite } else { Global::Write };
                check_race(world, who, at, bytes, kind, shared)?;
                world.traffic += bytes as u64;
                world.writes += 1;
            }
        }
        address = address.wrapping_add(bytes as u64);
    }
    Ok(())
}

/// A read-modify-write; it counts as a write for the detection of deadlocks only where it changes something.
pub(super) fn atomic(
    atomic: &Atomic,
    who: Who,
    thread: &mut Thread,
    shared: &mut Shared,
    world: &mut World<'_>,
) -> Result<(), Stopped> {
    let registers = &mut thread.registers[thread.base..];
    let (address, bytes) = (at(registers[usize::from(atomic.base)], atomic.offset), usize::from(atomic.bytes));
    let b = registers[usize::from(atomic.b)];
    let new = |old: u64, registers: &[u64]| match atomic.update {
        Update::With(f) => f(old, b),
        Update::CompareAndSwap(new) => {
            if old == b {
                registers[usize::from(new)]
            } else {
                old
            }
        }
    };
    let (old, new) = match resolve(atomic.place, address) {
        (Place::Shared, at) => {
            let old = shared.read(who.thread, at, bytes, Kind::StrongRead)?;
            let new = new(old, registers);
            shared.write(who.thread, at, bytes, new, Kind::StrongWrite)?;
            (old, new)
        }
        (Place::Global | Place::Generic, at) => {
            let old = world.memory.read(at, bytes)?;
            let new = new(old, registers);
            world.memory.write(at, bytes, new)?;
            check_race(world, who, at, bytes, Global::Atomic, shared)?;
            world.traffic += 2 * bytes as u64;
            (old, new)
        }
        (Place::Local | Place::Param, at) => {
            return stop(
                FaultKind::IllegalAddress,
                format!("an atomic operation at {at:#x}, in a thread's own memory"),
            );
        }
    };
    world.writes += u64::from(old != new);
    if atomic.d != NONE {
        registers[usize::from(atomic.d)] = old;
    }
    Ok(())
}

#[inline]
fn check_race(
    world: &mut World<'_>,
    who: Who,
    at: u64,
    bytes: usize,
    kind: Global,
    shared: &Shared,
) -> Result<(), Stopped> {
    match &mut world.races {
        Some(races) => races.access((who.block, who.thread), at, bytes, kind, &shared.shadow),
        None => Ok(()),
    }
}

/// A parameter of the launch.
#[inline]
pub(super) fn parameter(world: &World<'_>, from: u32, bytes: u8, extend: Extend) -> u64 {
    let (from, bytes) = (from as usize, usize::from(bytes));
    extended(word(&world.parameters[from..from + bytes]), bytes, extend)
}

#[inline]
fn at(base: u64, offset: i32) -> u64 {
    base.wrapping_add_signed(i64::from(offset))
}

/// Vectors need the alignment of all their elements together; single elements are checked where they are accessed.
#[inline]
fn aligned(address: u64, access: &Access) -> Result<(), Stopped> {
    let bytes = u64::from(access.bytes) * u64::from(access.count);
    if access.count > 1 && !address.is_multiple_of(bytes) {
        return stop(FaultKind::Misaligned, format!("a vector of {bytes} bytes at {address:#x}, not a multiple"));
    }
    Ok(())
}

/// The state space of a generic address, and the address there.
#[inline]
fn resolve(place: Place, address: u64) -> (Place, u64) {
    match (place, address & WINDOWS) {
        (Place::Generic, SHARED_WINDOW) => (Place::Shared, address ^ SHARED_WINDOW),
        (Place::Generic, LOCAL_WINDOW) => (Place::Local, address ^ LOCAL_WINDOW),
        _ => (place, address),
    }
}

#[inline]
fn extended(value: u64, bytes: usize, extend: Extend) -> u64 {
    match extend {
        Extend::Zero => value,
        Extend::Sign(bits) => {
            let shift = 64 - 8 * bytes as u32;
            let signed = (value << shift).cast_signed() >> shift;
            signed.cast_unsigned() & (u64::MAX >> (64 - u32::from(bits)))
        }
    }
}
