//! One function: slots of registers, literals and special registers; labels; frames of local memory and call parameters.

use std::collections::HashMap;

use super::{Linker, layout};
use crate::error::LoadError;
use crate::op::{Code, LaneMask, Op, POISON, Slot, Special};
use crate::ptx::{Function, Immediate, Instruction, Item, Operand, Space};

/// Why an instruction cannot be decoded; its line is added further up.
pub(super) type Decoded<T> = Result<T, String>;

/// A register: its slot, and its width in bytes (0: predicate).
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub(super) slot: Slot,
    pub(super) width: u8,
}

/// Names between two braces. Registers get their slot when they are first used.
#[derive(Default)]
struct Scope {
    declared: Vec<(String, Option<u32>, u8)>,
    registers: HashMap<String, Register>,
    /// Offsets of call parameters in the frame.
    params: HashMap<String, u32>,
}

pub(super) struct FunctionDecoder<'l, 'a> {
    pub(super) linker: &'l mut Linker<'a>,
    pub(super) function: &'a Function,
    pub(super) code: Code,
    scopes: Vec<Scope>,
    literals: HashMap<u64, Slot>,
    locals: HashMap<String, u32>,
    /// Numbers of labels; branches hold these until the end.
    labels: HashMap<String, u32>,
    /// Where each label stands, and the line that named it first.
    places: Vec<(Option<u32>, u32)>,
    tables: HashMap<String, u32>,
    carry: Option<Slot>,
    line: u32,
}

impl<'l, 'a> FunctionDecoder<'l, 'a> {
    pub(super) fn new(linker: &'l mut Linker<'a>, function: &'a Function) -> Self {
        let none = HashMap::new;
        Self {
            linker,
            function,
            code: Code::default(),
            scopes: vec![Scope::default()],
            literals: HashMap::new(),
            locals: HashMap::new(),
            labels: none(),
            places: Vec::new(),
            tables: none(),
            carry: None,
            line: function.line,
        }
    }

    pub(super) fn decode(mut self) -> Result<Code, LoadError> {
        self.run().map_err(|message| LoadError::new(self.line, format!("in {}: {message}", self.function.name)))?;
        Ok(self.code)
    }

    fn run(&mut self) -> Decoded<()> {
        let function = self.function;
        // Parameters and results of a function lie in its frame; those of a kernel in the launch's buffer.
        if !function.is_entry {
            let variables = [&function.parameters[..], &function.results[..]].concat();
            let (places, end) = layout(&variables, 0);
            for (variable, place) in variables.iter().zip(places) {
                self.scopes[0].params.insert(variable.name.clone(), place.0 as u32);
            }
            self.code.param_bytes = end;
        }
        // Tables stand behind the branches that use them.
        for item in function.body.iter().flatten() {
            if let Item::Targets(name, labels) = item {
                let targets = labels.iter().map(|l| self.label(l)).collect();
                self.tables.insert(name.clone(), self.code.tables.len() as u32);
                self.code.tables.push(targets);
            }
        }
        for item in function.body.iter().flatten() {
            self.item(item)?;
        }
        // A function may end without `ret`.
        self.emit(if function.is_entry { Op::Exit } else { Op::Return });
        self.resolve_labels()
    }

    fn item(&mut self, item: &Item) -> Decoded<()> {
        match item {
            Item::Open => self.scopes.push(Scope::default()),
            Item::Close => {
                self.scopes.pop();
            }
            Item::Registers { width, name, count } => self.scope().declared.push((name.clone(), *count, *width)),
            Item::Variable(v) => match v.space {
                Space::Shared => {}
                Space::Local => {
                    let from = self.code.local_bytes.next_multiple_of(v.align);
                    self.locals.insert(v.name.clone(), from as u32);
                    self.code.local_bytes = from + v.size;
                }
                Space::Param => {
                    let (places, end) = layout(std::slice::from_ref(v), self.code.param_bytes);
                    self.code.param_bytes = end;
                    self.scope().params.insert(v.name.clone(), places[0].0 as u32);
                }
                _ => return Err(format!("{} is declared in a state space that functions have not", v.name)),
            },
            Item::Label(name) => {
                let (label, here) = (self.label(name), self.code.ops.len() as u32);
                if self.places[label as usize].0.replace(here).is_some() {
                    return Err(format!("label {name} stands twice"));
                }
            }
            Item::Targets(..) => {}
            Item::Instruction(instruction) => {
                self.line = instruction.line;
                self.guarded(instruction)?;
            }
        }
        Ok(())
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the outermost scope is never closed: the parser counts braces")
    }

    /// A guarded instruction is skipped by an operation before it; branches carry their guard.
    fn guarded(&mut self, instruction: &Instruction) -> Decoded<()> {
        let Some((name, negated)) = &instruction.guard else { return self.instruction(instruction) };
        let p = self.predicate(name)?;
        let wanted = u64::from(!negated);
        let first = self.code.ops.len();
        self.emit(Op::SkipUnless { p, wanted, count: 0 });
        self.instruction(instruction)?;
        let skipped = (self.code.ops.len() - first - 1) as u32;
        match &mut self.code.ops[first..] {
            [at, Op::Branch(target)] => {
                *at = Op::BranchIf { p, wanted, target: *target };
                self.code.ops.pop();
                self.code.lines.pop();
            }
            [Op::SkipUnless { count, .. }, ..] => *count = skipped,
            _ => unreachable!("the first of these operations was put there above"),
        }
        Ok(())
    }

    pub(super) fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
        self.code.lines.push(self.line);
    }

    pub(super) fn label(&mut self, name: &str) -> u32 {
        let next = self.places.len() as u32;
        let label = *self.labels.entry(name.to_owned()).or_insert(next);
        if label == next {
            self.places.push((None, self.line));
        }
        label
    }

    fn resolve_labels(&mut self) -> Decoded<()> {
        for (name, label) in &self.labels {
            let (place, line) = self.places[*label as usize];
            if place.is_none() {
                self.line = line;
                return Err(format!("label {name} is nowhere"));
            }
        }
        let place = |label: &mut u32| *label = self.places[*label as usize].0.unwrap_or_default();
        for op in &mut self.code.ops {
            if let Op::Branch(target) | Op::BranchIf { target, .. } = op {
                place(target);
            }
        }
        self.code.tables.iter_mut().flatten().for_each(place);
        Ok(())
    }

    pub(super) fn table(&self, name: &str) -> Decoded<u32> {
        self.tables.get(name).copied().ok_or_else(|| format!("{name} is no table of labels"))
    }

    /// A new slot that starts with this value.
    pub(super) fn new_slot(&mut self, value: u64) -> Decoded<Slot> {
        let slot = self.code.template.len();
        if slot >= usize::from(Slot::MAX) {
            return Err("the function uses more than 65,534 registers and literals".into());
        }
        self.code.template.push(value);
        Ok(slot as Slot)
    }

    /// A slot that holds a literal.
    pub(super) fn literal(&mut self, value: u64) -> Decoded<Slot> {
        if let Some(slot) = self.literals.get(&value) {
            return Ok(*slot);
        }
        let slot = self.new_slot(value)?;
        self.literals.insert(value, slot);
        Ok(slot)
    }

    /// The slot of the carry flag.
    pub(super) fn carry(&mut self) -> Decoded<Slot> {
        let carry = self.carry.map_or_else(|| self.new_slot(0), Ok)?;
        self.carry = Some(carry);
        Ok(carry)
    }

    pub(super) fn find_register(&mut self, name: &str) -> Decoded<Option<Register>> {
        for at in (0..self.scopes.len()).rev() {
            if let Some(register) = self.scopes[at].registers.get(name) {
                return Ok(Some(*register));
            }
            let declares = |(prefix, count, _): &&(String, Option<u32>, u8)| match count {
                None => prefix == name,
                Some(count) => name
                    .strip_prefix(prefix.as_str())
                    .and_then(|digits| digits.parse::<u32>().ok())
                    .is_some_and(|number| number < *count),
            };
            if let Some(&(_, _, width)) = self.scopes[at].declared.iter().find(declares) {
                let register = Register { slot: self.new_slot(POISON)?, width };
                self.scopes[at].registers.insert(name.to_owned(), register);
                return Ok(Some(register));
            }
        }
        Ok(None)
    }

    pub(super) fn register(&mut self, name: &str) -> Decoded<Register> {
        self.find_register(name)?.ok_or_else(|| format!("{name} is not declared as a register"))
    }

    pub(super) fn predicate(&mut self, name: &str) -> Decoded<Slot> {
        match self.register(name)? {
            Register { slot, width: 0 } => Ok(slot),
            _ => Err(format!("{name} is no predicate")),
        }
    }

    /// The register that an operand writes.
    pub(super) fn destination(&mut self, operand: &Operand) -> Decoded<Register> {
        match operand {
            Operand::Name(name) => self.register(name),
            other => Err(format!("{other:?} cannot be written")),
        }
    }

    /// The slot that an operand of a type is read from.
    pub(super) fn source(&mut self, operand: &Operand, ty: &str) -> Decoded<Slot> {
        match operand {
            Operand::Immediate(value) => self.immediate(*value, ty),
            Operand::Name(name) => {
                if let Some(register) = self.find_register(name)? {
                    return if (register.width == 0) == (ty == "pred") {
                        Ok(register.slot)
                    } else {
                        Err(format!("{name} has not the type .{ty}"))
                    };
                }
                if let Some(special) = special(name) {
                    return self.special(special);
                }
                match name.as_str() {
                    "WARP_SZ" => self.literal(32),
                    _ => match self.linker.address(name) {
                        Some(address) => self.literal(address),
                        None => Err(format!("{name} is not declared")),
                    },
                }
            }
            other => Err(format!("{other:?} is no operand here")),
        }
    }

    fn immediate(&mut self, value: Immediate, ty: &str) -> Decoded<Slot> {
        let bits = match (value, ty) {
            (Immediate::Single(bits), "f32" | "b32") => u64::from(bits),
            (Immediate::Double(bits), "f64" | "b64") => bits,
            // A double literal stands for the nearest single.
            (Immediate::Double(bits), "f32") => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Immediate::Integer(bits), "pred") => u64::from(bits != 0),
            (Immediate::Integer(bits), _) if !ty.starts_with('f') => match ty.get(1..) {
                Some("8") => u64::from(bits as u8),
                Some("16") => u64::from(bits as u16),
                Some("32") => u64::from(bits as u32),
                _ => bits,
            },
            _ => return Err(format!("a literal that does not fit .{ty}")),
        };
        self.literal(bits)
    }

    fn special(&mut self, special: Special) -> Decoded<Slot> {
        if let Some((slot, _)) = self.code.specials.iter().find(|s| s.1 == special) {
            return Ok(*slot);
        }
        let slot = self.new_slot(0)?;
        self.code.specials.push((slot, special));
        Ok(slot)
    }

    /// Offset of a local variable in the frame.
    pub(super) fn local(&self, name: &str) -> Option<u32> {
        self.locals.get(name).copied()
    }

    /// Offset of a call parameter, or of the function's own, in the frame.
    pub(super) fn frame_param(&self, name: &str) -> Option<u32> {
        self.scopes.iter().rev().find_map(|s| s.params.get(name)).copied()
    }

    /// Offset of a kernel's parameter in the launch's buffer, and its size.
    pub(super) fn kernel_param(&self, name: &str) -> Option<(u32, u32)> {
        let k = self.function.parameters.iter().position(|p| p.name == name).filter(|_| self.function.is_entry)?;
        let (offset, size) = layout(&self.function.parameters, 0).0[k];
        Some((offset as u32, size as u32))
    }
}

fn special(name: &str) -> Option<Special> {
    if let Some((base, axis)) = name.rsplit_once('.') {
        let axis = match axis {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return None,
        };
        return Some(match base {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" => Special::Ctaid(axis),
            "%nctaid" => Special::Nctaid(axis),
            _ => return None,
        });
    }
    Some(match name {
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::WarpCount,
        "%lanemask_eq" => Special::LaneMask(LaneMask::Eq),
        "%lanemask_le" => Special::LaneMask(LaneMask::Le),
        "%lanemask_lt" => Special::LaneMask(LaneMask::Lt),
        "%lanemask_ge" => Special::LaneMask(LaneMask::Ge),
        "%lanemask_gt" => Special::LaneMask(LaneMask::Gt),
        "%smid" => Special::SmId,
        "%nsmid" => Special::SmCount,
        "%gridid" => Special::GridId,
        "%dynamic_smem_size" => Special::DynamicShared,
        "%total_smem_size" => Special::TotalShared,
        _ => return None,
    })
}
