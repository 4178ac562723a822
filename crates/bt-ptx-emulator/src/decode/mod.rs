//! From syntax trees to what the interpreter runs: names become slots, addresses and indices.
//!
//! | file | case |
//! |---|---|
//! | `function.rs` | one function: its registers, literals, labels and frame |
//! | `instruction.rs` | where an opcode goes; operands of arithmetic, comparison and selection |
//! | `integer.rs`, `float.rs` | functions for integer and logical instructions; for floating-point ones |
//! | `compare.rs`, `convert.rs` | functions for comparisons; for `cvt` and `cvta` |
//! | `number.rs` | the bits of a register as numbers, for these functions |
//! | `movement.rs` | moves, loads, stores and atomics |
//! | `control.rs` | branches, calls and returns |
//! | `synchronize.rs` | barriers, operations of a warp, fences |

mod compare;
mod control;
mod convert;
mod float;
mod function;
mod instruction;
mod integer;
mod movement;
mod number;
mod synchronize;

use std::collections::HashMap;

use crate::error::LoadError;
use crate::op::Kernel;
use crate::ptx::{Function, Item, Module, Space, Variable};
use function::FunctionDecoder;
pub(crate) use movement::KERNEL_PARAM;

/// All kernels of a module. `addresses` are those of its global and constant variables.
///
/// Functions that no kernel calls are decoded too, so that nothing unknown stays in a module that was loaded.
///
/// # Errors
/// The first instruction that is not supported, name that is not declared, or operand that does not fit.
pub(crate) fn decode(module: &Module, addresses: &HashMap<String, u64>) -> Result<Vec<Kernel>, LoadError> {
    let roots = module.functions.iter().filter(|f| f.body.is_some());
    let decoded = roots.map(|root| Linker::new(module, addresses).kernel(root).map(|k| (root.is_entry, k)));
    decoded.filter_map(|k| k.map(|(is_entry, k)| is_entry.then_some(k)).transpose()).collect()
}

/// Where the parameters of functions and calls lie, in order and aligned.
pub(crate) fn layout(variables: &[Variable], mut at: usize) -> (Vec<(usize, usize)>, usize) {
    let places = variables.iter().map(|v| {
        let from = at.next_multiple_of(v.align.max(1));
        at = from.saturating_add(v.size);
        (from, v.size)
    });
    (places.collect(), at)
}

/// What the functions of one kernel share: their numbers and the layout of shared memory.
struct Linker<'a> {
    module: &'a Module,
    addresses: &'a HashMap<String, u64>,
    /// Functions in the order of their numbers.
    functions: Vec<&'a Function>,
    shared: HashMap<String, u64>,
    shared_bytes: usize,
    /// Dynamic shared memory: its names, which all start behind the static variables.
    dynamic: HashMap<String, u64>,
    grain: usize,
    global_grain: usize,
    has_warp_barriers: bool,
}

/// What a block, or a thread, has at most: static shared memory, local memory, kernel parameters, and those of calls.
const MAX_STATIC_SHARED: usize = 48 << 10;
const MAX_LOCAL: usize = 512 << 10;
const MAX_PARAMETERS: usize = 4352;

fn check_size(what: &str, bytes: usize, limit: usize, function: &Function) -> Result<(), LoadError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(LoadError::new(function.line, format!("{} has {bytes} bytes of {what}, more than {limit}", function.name)))
}

/// Dynamic shared memory starts at a multiple of this.
const DYNAMIC_ALIGN: usize = 16;

impl<'a> Linker<'a> {
    fn new(module: &'a Module, addresses: &'a HashMap<String, u64>) -> Self {
        let none = HashMap::new;
        let (functions, shared, dynamic) = (Vec::new(), none(), none());
        let (shared_bytes, grain, global_grain, has_warp_barriers) = (0, 8, 8, false);
        Self { module, addresses, functions, shared, shared_bytes, dynamic, grain, global_grain, has_warp_barriers }
    }

    fn kernel(mut self, root: &'a Function) -> Result<Kernel, LoadError> {
        self.functions.push(root);
        self.place_shared(root)?;
        let mut codes = Vec::new();
        while let Some(&function) = self.functions.get(codes.len()) {
            let code = FunctionDecoder::new(&mut self, function).decode()?;
            check_size("local memory", code.local_bytes, MAX_LOCAL, function)?;
            check_size("call parameters", code.param_bytes, MAX_LOCAL, function)?;
            codes.push(code);
        }
        let (parameters, end) = layout(&root.parameters, 0);
        check_size("parameters", end, MAX_PARAMETERS, root)?;
        check_size("static shared memory", self.shared_bytes, MAX_STATIC_SHARED, root)?;
        Ok(Kernel {
            name: root.name.clone(),
            functions: codes,
            parameters,
            static_shared: self.shared_bytes,
            max_threads: root.max_threads.unwrap_or(1024),
            grain: self.grain,
            global_grain: self.global_grain,
            has_warp_barriers: self.has_warp_barriers,
        })
    }

    /// Places the shared variables that the root and what it calls may name: dynamic memory lies behind all of them.
    fn place_shared(&mut self, root: &'a Function) -> Result<(), LoadError> {
        let (mut reached, mut at) = (vec![root], 0);
        let mut names: Vec<&str> = Vec::new();
        while let Some(function) = reached.get(at).copied() {
            at += 1;
            for item in function.body.iter().flatten() {
                match item {
                    Item::Variable(v) if v.space == Space::Shared => self.place(v, function.line)?,
                    Item::Instruction(instruction) => {
                        for name in instruction.operands.iter().flat_map(crate::ptx::Operand::names) {
                            names.push(name);
                            let called = self.module.functions.iter().find(|f| f.name == name && f.body.is_some());
                            if let Some(called) = called.filter(|f| !reached.iter().any(|r| std::ptr::eq(*r, *f))) {
                                reached.push(called);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        let shared = self.module.variables.iter().filter(|v| v.space == Space::Shared);
        for variable in shared.clone().filter(|v| v.size > 0 && names.contains(&v.name.as_str())) {
            self.place(variable, root.line)?;
        }
        let end = self.shared_bytes.next_multiple_of(DYNAMIC_ALIGN);
        for variable in shared.filter(|v| v.size == 0 && names.contains(&v.name.as_str())) {
            self.dynamic.insert(variable.name.clone(), end as u64);
            self.shared_bytes = end;
        }
        Ok(())
    }

    fn place(&mut self, variable: &Variable, line: u32) -> Result<(), LoadError> {
        let from = self.shared_bytes.next_multiple_of(variable.align);
        if self.shared.insert(variable.name.clone(), from as u64).is_some() {
            return Err(LoadError::new(line, format!("two shared variables are named {}", variable.name)));
        }
        self.shared_bytes = from.saturating_add(variable.size);
        Ok(())
    }

    /// The number of a function that is called.
    fn function(&mut self, name: &str) -> Option<u32> {
        if let Some(k) = self.functions.iter().position(|f| f.name == name) {
            return Some(k as u32);
        }
        let function = self.module.functions.iter().find(|f| f.name == name && !f.is_entry && f.body.is_some())?;
        self.functions.push(function);
        Some(self.functions.len() as u32 - 1)
    }

    /// The address of a variable of the module in its own state space.
    fn address(&self, name: &str) -> Option<u64> {
        [&self.shared, &self.dynamic, self.addresses].into_iter().find_map(|names| names.get(name)).copied()
    }
}
