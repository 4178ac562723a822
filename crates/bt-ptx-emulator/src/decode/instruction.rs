//! Which decoder an opcode goes to; arithmetic, comparison and selection.

use super::function::{Decoded, FunctionDecoder};
use super::{compare, convert, float, integer};
use crate::op::{NONE, Op, Slot};
use crate::ptx::{Instruction, Operand};

impl FunctionDecoder<'_, '_> {
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Decoded<()> {
        let opcode: Vec<&str> = instruction.opcode.split('.').collect();
        let operands = &instruction.operands[..];
        let unknown = || Err(format!("the instruction '{}' is not supported", instruction.opcode));
        let ty = opcode[opcode.len() - 1];
        match opcode[..] {
            ["mov", ty] => self.mov(ty, operands),
            ["ld" | "ldu", ..] => self.load(&opcode, operands),
            ["st", ..] => self.store(&opcode, operands),
            ["atom" | "red", ..] => self.atomic(&opcode, operands),
            ["bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt", ..] => self.control(&opcode, operands),
            ["bar" | "barrier" | "shfl" | "vote" | "match" | "activemask" | "membar" | "fence" | "nanosleep", ..] => {
                self.synchronize(&opcode, operands)
            }
            ["prefetch" | "prefetchu", ..] => Ok(()),
            ["cvt", ref rest @ ..] => match convert::convert(rest) {
                Some(f) => {
                    let to = rest.iter().rev().nth(1).copied().unwrap_or_default();
                    let d = self.destination(destination(operands)?)?;
                    if to == "s8" && d.width != 2 {
                        return Err("cvt to .s8 is supported in registers of 16 bits only".into());
                    }
                    self.apply_unary(f, ty, operands)
                }
                None => unknown(),
            },
            ["cvta", ..] => match convert::address(&opcode) {
                Some(f) => self.convert_address(f, operands),
                None => unknown(),
            },
            ["isspacep", ..] => match convert::address(&opcode) {
                Some(f) => self.apply_unary(f, "u64", operands),
                None => unknown(),
            },
            ["setp" | "set", ..] => self.compare(&opcode, operands),
            ["selp", ty] => {
                let [d, a, b, p] = exactly(operands)?;
                let op = Op::Select(
                    self.destination(d)?.slot,
                    self.source(a, ty)?,
                    self.source(b, ty)?,
                    self.source(p, "pred")?,
                );
                self.emit(op);
                Ok(())
            }
            ["slct", ty, condition] => self.select_by_sign(ty, condition, operands),
            ["bfi", ty @ ("b32" | "b64")] => self.insert(ty, operands),
            ["lop3", "b32"] => self.lop3(operands),
            ["add" | "sub" | "addc" | "subc", "cc", ty] | ["addc" | "subc", ty] => self.extended(&opcode, ty, operands),
            _ => self.arithmetic(&opcode, ty, operands).unwrap_or_else(unknown),
        }
    }

    /// One of the tables of functions, by the number of operands.
    fn arithmetic(&mut self, opcode: &[&str], ty: &str, operands: &[Operand]) -> Option<Decoded<()>> {
        let counted = float::counted(opcode);
        if let Some(f) = integer::unary(opcode).or_else(|| float::unary(opcode)) {
            let op = |d, a| counted.map_or(Op::Unary(f, d, a), |precision| Op::FloatUnary(precision, f, d, a));
            return Some(self.apply_one(op, ty, operands));
        }
        if let Some(f) = integer::division(opcode) {
            return Some(self.apply_binary(|d, a, b| Op::Divide(f, d, a, b), [ty; 2], operands));
        }
        if let Some(f) = integer::binary(opcode).or_else(|| float::binary(opcode)) {
            let second = if matches!(opcode[0], "shl" | "shr") { "u32" } else { ty };
            let op = |d, a, b| counted.map_or(Op::Binary(f, d, a, b), |p| Op::FloatBinary(p, f, d, a, b));
            return Some(self.apply_binary(op, [ty, second], operands));
        }
        let f = integer::ternary(opcode).or_else(|| float::ternary(opcode))?;
        let types = match *opcode {
            ["mad", "wide", "u16"] => [ty, ty, "u32"],
            ["mad", "wide", "s16"] => [ty, ty, "s32"],
            ["mad", "wide", "u32"] => [ty, ty, "u64"],
            ["mad", "wide", "s32"] => [ty, ty, "s64"],
            ["bfe", ..] => [ty, "u32", "u32"],
            _ => [ty; 3],
        };
        let op = |d, a, b, c| counted.map_or(Op::Ternary(f, d, a, b, c), |p| Op::FloatTernary(p, f, d, a, b, c));
        Some(self.apply_ternary(op, types, operands))
    }

    pub(super) fn apply_unary(&mut self, f: crate::op::F1, ty: &str, operands: &[Operand]) -> Decoded<()> {
        self.apply_one(|d, a| Op::Unary(f, d, a), ty, operands)
    }

    fn apply_one(&mut self, op: impl Fn(Slot, Slot) -> Op, ty: &str, operands: &[Operand]) -> Decoded<()> {
        let [d, a] = exactly(operands)?;
        let op = op(self.destination(d)?.slot, self.source(a, ty)?);
        self.emit(op);
        Ok(())
    }

    fn apply_binary(
        &mut self,
        op: impl Fn(Slot, Slot, Slot) -> Op,
        types: [&str; 2],
        operands: &[Operand],
    ) -> Decoded<()> {
        let [d, a, b] = exactly(operands)?;
        let op = op(self.destination(d)?.slot, self.source(a, types[0])?, self.source(b, types[1])?);
        self.emit(op);
        Ok(())
    }

    fn apply_ternary(
        &mut self,
        op: impl Fn(Slot, Slot, Slot, Slot) -> Op,
        types: [&str; 3],
        operands: &[Operand],
    ) -> Decoded<()> {
        let [d, a, b, c] = exactly(operands)?;
        let (a, b, c) = (self.source(a, types[0])?, self.source(b, types[1])?, self.source(c, types[2])?);
        let op = op(self.destination(d)?.slot, a, b, c);
        self.emit(op);
        Ok(())
    }

    /// `setp.relation[.join].type p[|q], a, b[, [!]c]` and `set.relation[.join].dtype.type d, a, b[, [!]c]`.
    fn compare(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        let (is_setp, ty) = (opcode[0] == "setp", opcode[opcode.len() - 1]);
        let middle = if is_setp { &opcode[1..opcode.len() - 1] } else { &opcode[1..opcode.len().saturating_sub(2)] };
        let (relation, joined) = match *middle {
            [relation] => (relation, None),
            [relation, join] => (relation, Some(join)),
            _ => return Err(format!("'{}' is not supported", opcode.join("."))),
        };
        let unknown = || format!("'{}' is not supported", opcode.join("."));
        let f = compare::compare(relation, ty).ok_or_else(unknown)?;
        let [d, a, b, rest @ ..] = operands else { return Err("operands are missing".into()) };
        let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
        let (p, q) = match d {
            _ if !is_setp => (self.new_slot(0)?, NONE),
            Operand::Pair(p, q) => (self.predicate(p)?, self.predicate(q)?),
            Operand::Name(p) => (self.predicate(p)?, NONE),
            other => return Err(format!("{other:?} is no predicate")),
        };
        match (joined, rest) {
            (None, []) => {
                self.emit(Op::Binary(f, p, a, b));
                if q != NONE {
                    self.emit(Op::Unary(|p| p ^ 1, q, p));
                }
            }
            (Some(join), [c]) => {
                let join = compare::join(join).ok_or_else(unknown)?;
                // c may be one of the destinations, so the relation waits in slots of its own.
                let (relation, c) = (self.new_slot(0)?, self.condition(c)?);
                self.emit(Op::Binary(f, relation, a, b));
                let joined = if q == NONE { p } else { self.new_slot(0)? };
                self.emit(Op::Binary(join, joined, relation, c));
                if q != NONE {
                    self.emit(Op::Unary(|p| p ^ 1, relation, relation));
                    self.emit(Op::Binary(join, q, relation, c));
                    self.emit(Op::Move(p, joined));
                }
            }
            _ => return Err("a predicate is missing or too many".into()),
        }
        if !is_setp {
            let f: crate::op::F1 = match opcode[opcode.len() - 2] {
                "u32" | "s32" => |p| if p == 1 { u64::from(u32::MAX) } else { 0 },
                "f32" => |p| if p == 1 { u64::from(1f32.to_bits()) } else { 0 },
                _ => return Err(unknown()),
            };
            let d = self.destination(d)?.slot;
            self.emit(Op::Unary(f, d, p));
        }
        Ok(())
    }

    /// Addition and subtraction with carry in (`addc`, `subc`) and out (`.cc`); the carry has a slot of the function.
    fn extended(&mut self, opcode: &[&str], ty: &str, operands: &[Operand]) -> Decoded<()> {
        let (sum, carried) = integer::extended(&opcode[0][..3], ty)
            .ok_or_else(|| format!("the instruction '{}' is not supported", opcode.join(".")))?;
        let [d, a, b] = exactly(operands)?;
        let (d, a, b) = (self.destination(d)?.slot, self.source(a, ty)?, self.source(b, ty)?);
        let carry = self.carry()?;
        let carry_in = if opcode[0].ends_with('c') { carry } else { self.literal(0)? };
        let carry_out = self.new_slot(0)?;
        // Before d is written, which may be a or b.
        self.emit(Op::Ternary(carried, carry_out, a, b, carry_in));
        self.emit(Op::Ternary(sum, d, a, b, carry_in));
        if opcode[1] == "cc" {
            self.emit(Op::Move(carry, carry_out));
        }
        Ok(())
    }

    /// The slot of `p` or `!p`.
    pub(super) fn condition(&mut self, operand: &Operand) -> Decoded<Slot> {
        let Operand::Not(name) = operand else { return self.source(operand, "pred") };
        let (p, negated) = (self.predicate(name)?, self.new_slot(0)?);
        self.emit(Op::Unary(|p| p ^ 1, negated, p));
        Ok(negated)
    }

    /// `slct.type.s32|f32 d, a, b, c`: a where c ≥ 0.
    fn select_by_sign(&mut self, ty: &str, condition: &str, operands: &[Operand]) -> Decoded<()> {
        let [d, a, b, c] = exactly(operands)?;
        let f = compare::compare("ge", condition).filter(|_| matches!(condition, "s32" | "f32"));
        let f = f.ok_or_else(|| format!("slct by .{condition} is not supported"))?;
        let (c, zero, p) = (self.source(c, condition)?, self.literal(0)?, self.new_slot(0)?);
        self.emit(Op::Binary(f, p, c, zero));
        let op = Op::Select(self.destination(d)?.slot, self.source(a, ty)?, self.source(b, ty)?, p);
        self.emit(op);
        Ok(())
    }

    /// `bfi d, a, b, position, length`, in two steps: the mask of the field, then both sources under it.
    fn insert(&mut self, ty: &str, operands: &[Operand]) -> Decoded<()> {
        let [d, a, b, at, len] = exactly(operands)?;
        let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
        let (at, len) = (self.source(at, "u32")?, self.source(len, "u32")?);
        let (mask, moved, d) = (self.new_slot(0)?, self.new_slot(0)?, self.destination(d)?.slot);
        self.emit(Op::Binary(integer::field, mask, at, len));
        self.emit(Op::Binary(|a, at| a.checked_shl(at as u8 as u32).unwrap_or(0), moved, a, at));
        if ty == "b32" {
            self.emit(Op::Ternary(|mask, a, b| u64::from((a & mask | b & !mask) as u32), d, mask, moved, b));
        } else {
            self.emit(Op::Ternary(|mask, a, b| a & mask | b & !mask, d, mask, moved, b));
        }
        Ok(())
    }

    /// `lop3.b32 d, a, b, c, table`: bit k of the result is bit 4a + 2b + c of the table; a sum of its minterms.
    fn lop3(&mut self, operands: &[Operand]) -> Decoded<()> {
        let [d, a, b, c, table] = exactly(operands)?;
        let sources = [self.source(a, "b32")?, self.source(b, "b32")?, self.source(c, "b32")?];
        let Operand::Immediate(crate::ptx::Immediate::Integer(table @ 0..256)) = *table else {
            return Err("the table of lop3 is a number below 256".into());
        };
        let d = self.destination(d)?.slot;
        let (sum, term) = (self.new_slot(0)?, self.new_slot(0)?);
        let (none, all) = (self.literal(0)?, self.literal(u64::from(u32::MAX))?);
        self.emit(Op::Move(sum, none));
        for k in (0..8).filter(|k| table >> k & 1 == 1) {
            self.emit(Op::Move(term, all));
            for (place, source) in [4, 2, 1].into_iter().zip(sources) {
                let f: crate::op::F2 = if k & place != 0 { |t, x| t & x } else { |t, x| t & !x };
                self.emit(Op::Binary(f, term, term, source));
            }
            self.emit(Op::Binary(|s, t| s | t, sum, sum, term));
        }
        self.emit(Op::Move(d, sum));
        Ok(())
    }
}

fn destination(operands: &[Operand]) -> Decoded<&Operand> {
    operands.first().ok_or_else(|| "operands are missing".into())
}

/// The operands, when there are as many as the instruction has.
pub(super) fn exactly<const N: usize>(operands: &[Operand]) -> Decoded<[&Operand; N]> {
    if operands.len() != N {
        return Err(format!("{N} operands are expected, not {}", operands.len()));
    }
    Ok(std::array::from_fn(|k| &operands[k]))
}
