//! What can go wrong: a module that cannot be loaded, a launch that failed.

use std::fmt;

/// A module was refused; nothing of it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// Line of the PTX text, from 1; 0 where no line is at fault.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl LoadError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LoadError {}

/// Kinds of faults of a running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address outside every live allocation, or outside shared, local or parameter memory.
    IllegalAddress,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A write to constant memory.
    ReadOnly,
    /// Two threads at one place of memory, one of them writing, with nothing that orders them.
    Race,
    /// A barrier that not all threads of the block reach.
    DivergentBarrier,
    /// A warp-level operation that names a lane that has exited, is absent, or waits elsewhere.
    DivergentWarp,
    /// Threads wait for each other, or spin on memory that nobody writes any more.
    Deadlock,
    /// The launch ran longer than the budget of instructions.
    Budget,
    /// An integer division by zero, or a predicate that was never set.
    Undefined,
    /// `trap`, or a call nested too deeply.
    Trap,
}

/// A launch that failed, with the place where it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Kernel, PTX line, block and thread, and what was found there.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// A fault before its place is known.
pub(crate) type Stopped = Box<(FaultKind, String)>;

pub(crate) fn stop<T>(kind: FaultKind, message: impl Into<String>) -> Result<T, Stopped> {
    Err(Box::new((kind, message.into())))
}

/// Why an operation on the device was refused; the device is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The device's memory does not suffice.
    OutOfMemory,
    /// A size, pointer or configuration that no device accepts.
    InvalidValue,
    /// A handle that was never given out, or is no longer valid.
    InvalidHandle,
    /// No such name in the module.
    NotFound,
    /// More threads, registers or shared memory than a block may have.
    OutOfResources,
    /// More blocks than are resident at once.
    CooperativeTooLarge,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "out of device memory",
            Self::InvalidValue => "invalid value",
            Self::InvalidHandle => "invalid handle",
            Self::NotFound => "no such name in the module",
            Self::OutOfResources => "a block of this launch needs more than a multiprocessor has",
            Self::CooperativeTooLarge => "a cooperative launch of more blocks than are resident at once",
        })
    }
}

impl std::error::Error for DeviceError {}
