//! A thread: registers, frames, local memory, and where it is.

use crate::error::{FaultKind, Stopped, stop};
use crate::op::{Call, Code, Kernel, Op, poison};

/// Calls nested deeper than this overflow the stack.
const MAX_DEPTH: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Ready,
    /// Ran its share or waits for memory to change; ready in the next round.
    Yielded,
    Barrier,
    Warp,
    Exited,
}

/// Where a caller goes on.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: usize,
    pc: usize,
    base: usize,
    local_base: usize,
    param_base: usize,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) state: State,
    pub(super) function: usize,
    pub(super) pc: usize,
    /// Registers of the running function start here.
    pub(super) base: usize,
    pub(super) registers: Vec<u64>,
    pub(super) local: Vec<u8>,
    pub(super) local_base: usize,
    pub(super) params: Vec<u8>,
    pub(super) param_base: usize,
    frames: Vec<Frame>,
}

impl Thread {
    /// Stands before the first operation of `entry`, with nothing of what it did before.
    pub(super) fn start(&mut self, entry: &Code) {
        let Self { registers, local, params, frames, .. } = self;
        registers.clear();
        registers.extend_from_slice(&entry.template);
        for (memory, bytes) in [(&mut *local, entry.local_bytes), (&mut *params, entry.param_bytes)] {
            memory.clear();
            poison(memory, bytes);
        }
        frames.clear();
        (self.state, self.function, self.pc, self.base) = (State::Ready, 0, 0, 0);
        (self.local_base, self.param_base) = (0, 0);
    }

    /// The registers of the running function.
    pub(super) fn window(&mut self) -> &mut [u64] {
        &mut self.registers[self.base..]
    }

    /// Enters the function that a call names; its special registers are still to be set.
    pub(super) fn call(&mut self, kernel: &Kernel, call: &Call) -> Result<(), Stopped> {
        if self.frames.len() == MAX_DEPTH {
            return stop(FaultKind::Trap, format!("calls are nested more than {MAX_DEPTH} deep"));
        }
        let callee = &kernel.functions[call.function as usize];
        let Self { function, pc, base, local_base, param_base, .. } = *self;
        self.frames.push(Frame { function, pc, base, local_base, param_base });
        (self.function, self.pc, self.base) = (call.function as usize, 0, self.registers.len());
        self.registers.extend(&callee.template);
        self.local_base = grow(&mut self.local, callee.local_bytes);
        self.param_base = grow(&mut self.params, callee.param_bytes);
        for &(own, theirs, bytes) in &call.arguments {
            let own = param_base + own as usize;
            self.params.copy_within(own..own + bytes as usize, self.param_base + theirs as usize);
        }
        Ok(())
    }

    /// Leaves the running function for its caller.
    pub(super) fn return_to_caller(&mut self, kernel: &Kernel) {
        let frame = self.frames.pop().expect("only functions that were called decode `ret` as a return");
        let caller = &kernel.functions[frame.function];
        if let Op::Call(call) = caller.ops[frame.pc - 1] {
            for &(own, theirs, bytes) in &caller.calls[call as usize].results {
                let theirs = self.param_base + theirs as usize;
                self.params.copy_within(theirs..theirs + bytes as usize, frame.param_base + own as usize);
            }
        }
        self.registers.truncate(self.base);
        self.local.truncate(self.local_base);
        self.params.truncate(self.param_base);
        Frame {
            function: self.function,
            pc: self.pc,
            base: self.base,
            local_base: self.local_base,
            param_base: self.param_base,
        } = frame;
    }
}

/// Poisoned bytes at the end, from a multiple of the largest alignment there is.
fn grow(memory: &mut Vec<u8>, bytes: usize) -> usize {
    let from = memory.len().next_multiple_of(16);
    memory.resize(from, 0);
    poison(memory, bytes);
    from
}
