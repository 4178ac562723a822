//! Decoded instructions: what the interpreter runs.
//!
//! Every operand is a slot of the thread's register file; literals and special registers are slots too, filled when the
//! thread starts. Arithmetic is a function pointer on 64-bit words: a slot holds the bits of its value, zero above them.

pub(crate) type Slot = u16;
pub(crate) type F1 = fn(u64) -> u64;
pub(crate) type F2 = fn(u64, u64) -> u64;
pub(crate) type F3 = fn(u64, u64, u64) -> u64;

/// A slot that nothing is written to.
pub(crate) const NONE: Slot = Slot::MAX;

/// What registers and fresh memory hold: a NaN as f64 and as two f32, and far out of bounds as an index.
pub(crate) const POISON: u64 = 0x7ffd_ead0_7ffd_ead0;

/// Adds poisoned bytes.
pub(crate) fn poison(memory: &mut Vec<u8>, bytes: usize) {
    let pattern = POISON.to_le_bytes();
    for _ in 0..bytes / 8 {
        memory.extend_from_slice(&pattern);
    }
    memory.extend_from_slice(&pattern[..bytes % 8]);
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

/// How a narrow value fills a wider register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extend {
    Zero,
    /// Sign extension to this many bits.
    Sign(u8),
}

/// Plain accesses race; strong ones (volatile, relaxed, acquire, release, atomic) do not race with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Plain,
    /// `ld.global.nc`
    NonCoherent,
    Strong,
}

/// A load or store of one to four elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) offset: i32,
    pub(crate) base: Slot,
    pub(crate) values: [Slot; 4],
    pub(crate) place: Place,
    /// Bytes of one element.
    pub(crate) bytes: u8,
    pub(crate) count: u8,
    pub(crate) extend: Extend,
    pub(crate) strength: Strength,
}

/// Precision of an operation that counts: an addition, subtraction, product, quotient or root as one, a fused product with its addition
/// as two. Signs, comparisons, choices and conversions do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Single,
    Double,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Move(Slot, Slot),
    Unary(F1, Slot, Slot),
    Binary(F2, Slot, Slot, Slot),
    Ternary(F3, Slot, Slot, Slot, Slot),
    /// A quotient 1/a or a root: one floating-point operation.
    FloatUnary(Precision, F1, Slot, Slot),
    /// One floating-point operation.
    FloatBinary(Precision, F2, Slot, Slot, Slot),
    /// Two floating-point operations: a·b + c.
    FloatTernary(Precision, F3, Slot, Slot, Slot, Slot),
    /// Integer division and remainder: the last operand must not be zero.
    Divide(F2, Slot, Slot, Slot),
    /// d ← p ? a : b, as (d, a, b, p).
    Select(Slot, Slot, Slot, Slot),
    /// (d, offset, bytes, extend) of the launch's parameters.
    Parameter(Slot, u32, u8, Extend),
    /// d ← address of the local variable at this offset of the frame.
    LocalAddress(Slot, u32),
    /// d ← address of the call parameter at this offset of the frame.
    ParamAddress(Slot, u32),
    Load(Access),
    Store(Access),
    /// Index into [`Code::atomics`].
    Atomic(u32),
    Branch(u32),
    BranchIf {
        p: Slot,
        wanted: u64,
        target: u32,
    },
    /// Skips `count` operations unless p has the wanted value.
    SkipUnless {
        p: Slot,
        wanted: u64,
        count: u32,
    },
    /// Slot of the index, and index into [`Code::tables`].
    BranchTable(Slot, u32),
    Call(u32),
    Return,
    Exit,
    Trap,
    /// Index into [`Code::barriers`].
    Barrier(u32),
    /// Index into [`Code::warp_ops`].
    Warp(u32),
    ActiveMask(Slot),
    /// d ← instructions this launch has run.
    Clock(Slot, u8),
    /// Lets other threads run.
    Yield,
    /// A fence of the device.
    Fence,
}

/// An atomic read-modify-write: new ← f(old, b), or compare-and-swap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    pub(crate) place: Place,
    pub(crate) bytes: u8,
    pub(crate) update: Update,
    pub(crate) d: Slot,
    pub(crate) base: Slot,
    pub(crate) offset: i32,
    pub(crate) b: Slot,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Update {
    With(F2),
    /// Old equal to b is replaced by the value of this slot.
    CompareAndSwap(Slot),
}

/// A barrier of the block, with what it reduces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    pub(crate) reduce: Reduce,
    /// Slot of the barrier's number.
    pub(crate) id: Slot,
    pub(crate) d: Slot,
    pub(crate) p: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Nothing,
    And,
    Or,
    Count,
}

/// An operation of the lanes that `mask` names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpOp {
    pub(crate) kind: WarpKind,
    pub(crate) d: Slot,
    /// Predicate result of shuffles and of `match.all`.
    pub(crate) p: Slot,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
    pub(crate) mask: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpKind {
    Barrier,
    ShuffleUp,
    ShuffleDown,
    ShuffleButterfly,
    ShuffleIndex,
    VoteAll,
    VoteAny,
    VoteUniform,
    Ballot,
    MatchAny,
    MatchAll,
}

/// A call: which function, and bytes to copy (from, to, how many) into its frame and back.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: u32,
    pub(crate) arguments: Vec<(u32, u32, u32)>,
    pub(crate) results: Vec<(u32, u32, u32)>,
}

/// Special registers that are constant while a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    LaneMask(LaneMask),
    SmId,
    SmCount,
    GridId,
    DynamicShared,
    TotalShared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneMask {
    Eq,
    Le,
    Lt,
    Ge,
    Gt,
}

/// The operations of one function.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// PTX line of each operation.
    pub(crate) lines: Vec<u32>,
    /// The register file of a thread that starts.
    pub(crate) template: Vec<u64>,
    pub(crate) specials: Vec<(Slot, Special)>,
    pub(crate) atomics: Vec<Atomic>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) warp_ops: Vec<WarpOp>,
    pub(crate) calls: Vec<Call>,
    pub(crate) tables: Vec<Vec<u32>>,
    pub(crate) local_bytes: usize,
    /// Parameters, results and parameters of calls.
    pub(crate) param_bytes: usize,
}

/// An entry with everything it calls.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// The entry first.
    pub(crate) functions: Vec<Code>,
    /// (offset, size) of each parameter.
    pub(crate) parameters: Vec<(usize, usize)>,
    pub(crate) static_shared: usize,
    pub(crate) max_threads: u32,
    /// Bytes of the narrowest access that may go to shared memory, at most 8: the grain of race detection.
    pub(crate) grain: usize,
    /// The same for global memory.
    pub(crate) global_grain: usize,
    /// Whether `bar.warp.sync` occurs, so that threads of a warp can be ordered.
    pub(crate) has_warp_barriers: bool,
}
