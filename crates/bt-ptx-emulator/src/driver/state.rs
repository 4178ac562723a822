//! The process's device, its primary context, and who may use it now.

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
    pub(super) device: Device,
    /// How often the primary context is retained.
    pub(super) retained: usize,
    pub(super) fault: Option<Fault>,
    /// The last fault's message, kept after a reset.
    pub(super) message: String,
    pub(super) streams: HashMap<usize, (u32, c_int)>,
    pub(super) events: HashMap<usize, Event>,
    /// Page-locked memory of the host: address and layout.
    pub(super) host: HashMap<usize, Layout>,
    next: usize,
}

/// An event: when it was recorded, and whether it keeps time.
pub(super) struct Event {
    pub(super) recorded: Option<Instant>,
    pub(super) timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    On,
    Off,
}

/// The handle of the primary context.
pub(super) const PRIMARY: usize = 0xc0de;

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl State {
    fn new() -> Self {
        Self {
            device: Device::new(settings_of_environment()),
            retained: 0,
            fault: None,
            message: String::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            host: HashMap::new(),
            next: 0,
        }
    }

    /// A number that was no handle before.
    pub(super) fn handle(&mut self) -> usize {
        self.next += 1;
        // Three small numbers are streams with names of their own.
        self.next * 16
    }

    /// Ends what the context held.
    pub(super) fn reset(&mut self) {
        self.device.reset();
        self.fault = None;
        self.streams.clear();
        self.events.clear();
    }

    /// Null and the numbers 1 and 2 are the default streams.
    pub(super) fn check_stream(&self, stream: usize) -> Result<(), Code> {
        if stream <= 2 || self.streams.contains_key(&stream) { Ok(()) } else { Err(Code::InvalidHandle) }
    }
}

/// Settings from `BLOCKTRI_EMULATOR_SEED`, `_MEMORY` (bytes), `_BUDGET` (operations), `_MULTIPROCESSORS`
/// and `_GLOBAL_RACES` (0 or 1).
fn settings_of_environment() -> Settings {
    fn read<T: std::str::FromStr>(name: &str, default: T) -> T {
        let Ok(text) = std::env::var(format!("BLOCKTRI_EMULATOR_{name}")) else { return default };
        text.parse().unwrap_or_else(|_| {
            eprintln!("bt-ptx-emulator: BLOCKTRI_EMULATOR_{name}={text} is not a number and is ignored");
            default
        })
    }
    let default = Settings::default();
    Settings {
        seed: read("SEED", default.seed),
        memory: read("MEMORY", default.memory),
        budget: read("BUDGET", default.budget),
        multiprocessors: read("MULTIPROCESSORS", default.multiprocessors).max(1),
        races: if read("GLOBAL_RACES", 0u8) == 0 { Races::Shared } else { Races::Everywhere },
    }
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
        if current() != PRIMARY || state.retained == 0 {
            return Err(Code::InvalidContext);
        }
        match &state.fault {
            Some(fault) => Err(fault.kind.into()),
            None => f(state),
        }
    })
}

/// The calling thread's stack of contexts; an empty one while the thread is being torn down.
fn with_stack<T: Default>(f: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    CURRENT.try_with(|stack| f(&mut stack.borrow_mut())).unwrap_or_default()
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
