//! The process's devices, their primary contexts, and who may use them now.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::codes::Code;
use crate::{Device, Fault, Races, Settings};

/// What the driver remembers between calls.
pub(super) struct State {
    pub(super) chips: Vec<Chip>,
    /// The device of the current context, in functions that have one.
    here: usize,
    /// The last fault's message, kept after a reset.
    pub(super) message: String,
    pub(super) streams: HashMap<usize, Stream>,
    pub(super) events: HashMap<usize, Event>,
    /// Page-locked memory of the host: address and layout.
    pub(super) host: HashMap<usize, Layout>,
    next: usize,
}

/// A device with its primary context.
pub(super) struct Chip {
    pub(super) device: Device,
    /// How often the primary context is retained.
    pub(super) retained: usize,
    pub(super) fault: Option<Fault>,
}

/// A stream: its device, flags and priority.
pub(super) struct Stream {
    pub(super) home: usize,
    pub(super) flags: u32,
    pub(super) priority: c_int,
}

/// An event: its device, when it was recorded, and whether it keeps time.
pub(super) struct Event {
    pub(super) home: usize,
    pub(super) recorded: Option<Instant>,
    pub(super) timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    On,
    Off,
}

/// The handle of the primary context of device 0; those of the others follow.
const PRIMARY: usize = 0xc0de;
/// Devices at most: their addresses share the numbers of allocations.
const MOST: u32 = 16;

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl State {
    fn new() -> Self {
        let mut state = Self {
            chips: Vec::new(),
            here: 0,
            message: String::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            host: HashMap::new(),
            next: 0,
        };
        state.set_devices(read("DEVICES", 1));
        state
    }

    /// So many devices: those that are added have the settings of the environment.
    pub(super) fn set_devices(&mut self, count: u32) {
        let count = count.clamp(1, MOST) as usize;
        self.chips.truncate(count);
        for ordinal in self.chips.len()..count {
            let device = Device::numbered(ordinal, settings_of_environment());
            self.chips.push(Chip { device, retained: 0, fault: None });
        }
    }

    /// The device of the current context.
    pub(super) fn device(&mut self) -> &mut Device {
        &mut self.chips[self.here].device
    }

    pub(super) fn here(&self) -> usize {
        self.here
    }

    pub(super) fn set_fault(&mut self, fault: Fault) {
        self.message.clone_from(&fault.message);
        self.chips[self.here].fault = Some(fault);
    }

    /// The number of a device that the caller names.
    pub(super) fn ordinal(&self, device: c_int) -> Result<usize, Code> {
        usize::try_from(device).ok().filter(|&d| d < self.chips.len()).ok_or(Code::InvalidDevice)
    }

    /// The device of a context.
    pub(super) fn of_context(&self, context: usize) -> Result<usize, Code> {
        context.checked_sub(PRIMARY).filter(|&d| d < self.chips.len()).ok_or(Code::InvalidContext)
    }

    /// A number that was no handle before.
    pub(super) fn handle(&mut self) -> usize {
        self.next += 1;
        // Three small numbers are streams with names of their own.
        self.next * 16
    }

    /// Ends what the context of a device held.
    pub(super) fn reset(&mut self, home: usize) {
        self.chips[home].device.reset();
        self.chips[home].fault = None;
        self.streams.retain(|_, stream| stream.home != home);
        self.events.retain(|_, event| event.home != home);
    }

    /// Null and the numbers 1 and 2 are the default streams; others belong to the device of the current context.
    pub(super) fn check_stream(&self, stream: usize) -> Result<(), Code> {
        let known = stream <= 2 || self.streams.get(&stream).is_some_and(|stream| stream.home == self.here);
        if known { Ok(()) } else { Err(Code::InvalidHandle) }
    }
}

/// Settings from `BLOCKTRI_EMULATOR_SEED`, `_MEMORY` (bytes), `_BUDGET` (operations), `_MULTIPROCESSORS`,
/// `_GLOBAL_RACES` (0 or 1) and `_LAUNCHES`.
fn settings_of_environment() -> Settings {
    let default = Settings::default();
    Settings {
        seed: read("SEED", default.seed),
        memory: read("MEMORY", default.memory),
        budget: read("BUDGET", default.budget),
        multiprocessors: read("MULTIPROCESSORS", default.multiprocessors).max(1),
        races: if read("GLOBAL_RACES", 0u8) == 0 { Races::Shared } else { Races::Everywhere },
        launches: read("LAUNCHES", default.launches),
    }
}

/// A number of the environment.
fn read<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(format!("BLOCKTRI_EMULATOR_{name}")) else { return default };
    text.parse().unwrap_or_else(|_| {
        eprintln!("bt-ptx-emulator: BLOCKTRI_EMULATOR_{name}={text} is not a number and is ignored");
        default
    })
}

fn lock() -> MutexGuard<'static, Option<State>> {
    // Every operation leaves the state usable, so that a panic in one does not matter to the next.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn result(outcome: Result<(), Code>) -> c_int {
    outcome.map_or_else(|code| code as c_int, |()| 0)
}

/// `cuInit`.
pub(super) fn initialize() {
    lock().get_or_insert_with(State::new);
}

/// Before the first `cuInit` as after it: settings and messages.
pub(super) fn always<T>(f: impl FnOnce(&mut State) -> T) -> T {
    f(lock().get_or_insert_with(State::new))
}

/// Functions that need `cuInit` and no context.
pub(super) fn initialized(f: impl FnOnce(&mut State) -> Result<(), Code>) -> c_int {
    result(lock().as_mut().ok_or(Code::NotInitialized).and_then(f))
}

/// Functions that need a current context, and give the error of a failed launch before anything else.
pub(super) fn in_context(f: impl FnOnce(&mut State) -> Result<(), Code>) -> c_int {
    initialized(|state| {
        state.here = state.of_context(current())?;
        let chip = &state.chips[state.here];
        if chip.retained == 0 {
            return Err(Code::InvalidContext);
        }
        match &chip.fault {
            Some(fault) => Err(fault.kind.into()),
            None => f(state),
        }
    })
}

/// The calling thread's stack of contexts; an empty one while the thread is being torn down.
fn with_stack<T: Default>(f: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    CURRENT.try_with(|stack| f(&mut stack.borrow_mut())).unwrap_or_default()
}

/// The handle of the primary context of a device.
pub(super) fn context_of(ordinal: usize) -> usize {
    PRIMARY + ordinal
}

/// The calling thread's context, zero for none.
pub(super) fn current() -> usize {
    with_stack(|stack| stack.last().copied().unwrap_or(0))
}

pub(super) fn set_current(context: usize) {
    with_stack(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

pub(super) fn push_current(context: usize) {
    with_stack(|stack| stack.push(context));
}

pub(super) fn pop_current() -> Option<usize> {
    with_stack(Vec::pop)
}
