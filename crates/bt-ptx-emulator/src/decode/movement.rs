//! Moves, addresses, loads, stores and atomics (PTX ISA 6.3, sections 9.7.8 and 9.7.12).

use super::Linker;
use super::function::{Decoded, FunctionDecoder};
use super::instruction::exactly;
use super::number::Bits;
use crate::op::{Access, Atomic, Extend, F1, F2, NONE, Op, Place, Slot, Strength, Update};
use crate::ptx::Operand;

/// Where an address operand leads to: a slot plus an offset.
struct Target {
    base: Slot,
    offset: i32,
}

impl FunctionDecoder<'_, '_> {
    /// `mov`: registers, literals, addresses of variables, and packing (PTX ISA 6.3, 9.7.8.3).
    pub(super) fn mov(&mut self, ty: &str, operands: &[Operand]) -> Decoded<()> {
        let [d, a] = exactly(operands)?;
        match (d, a) {
            (Operand::Vector(parts), a) => {
                let (a, width) = (self.source(a, ty)?, element(ty, parts.len())?);
                for (k, part) in parts.iter().enumerate() {
                    let f: F1 = match (width, k) {
                        (1, 0) => |a| a & 0xff,
                        (1, 1) => |a| a >> 8 & 0xff,
                        (1, 2) => |a| a >> 16 & 0xff,
                        (1, _) => |a| a >> 24 & 0xff,
                        (2, 0) => |a| a & 0xffff,
                        (2, 1) => |a| a >> 16 & 0xffff,
                        (2, 2) => |a| a >> 32 & 0xffff,
                        (2, _) => |a| a >> 48,
                        (_, 0) => |a| a & 0xffff_ffff,
                        _ => |a| a >> 32,
                    };
                    // A part of the source may be written before the last part is read.
                    if !matches!(part, Operand::Name(name) if name == "_") {
                        let d = self.destination(part)?.slot;
                        if d == a && k + 1 < parts.len() {
                            return Err("a register that is unpacked into itself is not supported".into());
                        }
                        self.emit(Op::Unary(f, d, a));
                    }
                }
                Ok(())
            }
            (d, Operand::Vector(parts)) => {
                let (d, width) = (self.destination(d)?.slot, element(ty, parts.len())?);
                let part_type = ["b8", "b16", "b32"][width / 2];
                let join: F2 = match width {
                    1 => |high, low| high << 8 | low & 0xff,
                    2 => |high, low| high << 16 | low & 0xffff,
                    _ => |high, low| high << 32 | low & 0xffff_ffff,
                };
                let mut sum = self.literal(0)?;
                for (k, part) in parts.iter().enumerate().rev() {
                    let (part, to) = (self.source(part, part_type)?, if k == 0 { d } else { self.new_slot(0)? });
                    self.emit(Op::Binary(join, to, sum, part));
                    sum = to;
                }
                Ok(())
            }
            (d, Operand::Name(name)) if matches!(name.as_str(), "%clock" | "%clock_lo") => self.clock(d, 4),
            (d, Operand::Name(name)) if matches!(name.as_str(), "%clock64" | "%globaltimer") => self.clock(d, 8),
            (d, Operand::Name(name)) => {
                let d = self.destination(d)?.slot;
                if self.find_register(name)?.is_none() {
                    if let Some(offset) = self.local(name) {
                        self.emit(Op::LocalAddress(d, offset));
                        return Ok(());
                    }
                    if let Some((offset, _)) = self.kernel_param(name) {
                        let offset = self.literal(u64::from(offset) | KERNEL_PARAM)?;
                        self.emit(Op::Move(d, offset));
                        return Ok(());
                    }
                    if let Some(offset) = self.frame_param(name) {
                        self.emit(Op::ParamAddress(d, offset));
                        return Ok(());
                    }
                }
                let a = self.source(a, ty)?;
                self.emit(Op::Move(d, a));
                Ok(())
            }
            (d, a) => {
                let op = Op::Move(self.destination(d)?.slot, self.source(a, ty)?);
                self.emit(op);
                Ok(())
            }
        }
    }

    fn clock(&mut self, d: &Operand, bytes: u8) -> Decoded<()> {
        let d = self.destination(d)?.slot;
        self.emit(Op::Clock(d, bytes));
        Ok(())
    }

    /// `cvta`, of registers and of names.
    pub(super) fn convert_address(&mut self, f: F1, operands: &[Operand]) -> Decoded<()> {
        let [d, a] = exactly(operands)?;
        if let Operand::Name(name) = a
            && self.find_register(name)?.is_none()
            && let Some(offset) = self.local(name)
        {
            let d = self.destination(d)?.slot;
            self.emit(Op::LocalAddress(d, offset));
            self.emit(Op::Unary(f, d, d));
            return Ok(());
        }
        self.apply_unary(f, "u64", operands)
    }

    fn target(&mut self, operand: &Operand, place: Place) -> Decoded<Target> {
        let Operand::Address(name, offset) = operand else { return Err(format!("{operand:?} is no address")) };
        let fits = |offset: i64| i32::try_from(offset).map_err(|_| "an offset beyond 32 bits".to_owned());
        if name.is_empty() {
            return Ok(Target { base: self.literal(offset.cast_unsigned())?, offset: 0 });
        }
        if let Some(register) = self.find_register(name)? {
            return Ok(Target { base: register.slot, offset: fits(*offset)? });
        }
        // Frames move, so addresses in them are computed where they are used.
        let frame = match place {
            Place::Local => self.local(name).map(|at| (Op::LocalAddress as fn(Slot, u32) -> Op, at)),
            Place::Param => self.frame_param(name).map(|at| (Op::ParamAddress as fn(Slot, u32) -> Op, at)),
            _ => None,
        };
        if let Some((op, at)) = frame {
            let base = self.new_slot(0)?;
            self.emit(op(base, at));
            return Ok(Target { base, offset: fits(*offset)? });
        }
        match self.linker.address(name) {
            Some(address) => Ok(Target { base: self.literal(address)?, offset: fits(*offset)? }),
            None => Err(format!("{name} is not declared")),
        }
    }

    pub(super) fn load(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        let shape = Shape::read(opcode)?;
        let [d, a] = exactly(operands)?;
        let destinations = vector(d, shape.count)?;
        let registers = destinations.iter().map(|d| self.destination(d)).collect::<Decoded<Vec<_>>>()?;
        let extend =
            |width: u8| if shape.signed && width > shape.bytes { Extend::Sign(8 * width) } else { Extend::Zero };
        let extend = extend(registers[0].width);
        if registers.iter().any(|r| r.width < shape.bytes) {
            return Err("a register is narrower than what is loaded".into());
        }
        // Parameters of kernels are read from the launch's buffer.
        if let (Place::Param, Operand::Address(name, offset)) = (shape.place, a)
            && let Some((at, size)) = self.kernel_param(name)
        {
            for (k, register) in registers.iter().enumerate() {
                let from = offset + (k * usize::from(shape.bytes)) as i64;
                if from < 0 || from + i64::from(shape.bytes) > i64::from(size) {
                    return Err(format!("{name} has {size} bytes only"));
                }
                self.emit(Op::Parameter(register.slot, at + from as u32, shape.bytes, extend));
            }
            return Ok(());
        }
        let target = self.target(a, shape.place)?;
        let mut values = [NONE; 4];
        for (value, register) in values.iter_mut().zip(&registers) {
            *value = register.slot;
        }
        self.note_grain(shape.place, shape.bytes);
        self.emit(Op::Load(shape.access(&target, values, extend)));
        self.fence_if(shape.acquires);
        if shape.strength == Strength::Strong && shape.place != Place::Shared {
            self.emit(Op::Yield);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        let shape = Shape::read(opcode)?;
        let [a, source] = exactly(operands)?;
        let mut values = [NONE; 4];
        for (value, source) in values.iter_mut().zip(vector(source, shape.count)?) {
            *value = self.source(source, shape.ty)?;
        }
        let target = self.target(a, shape.place)?;
        self.note_grain(shape.place, shape.bytes);
        self.fence_if(shape.releases);
        self.emit(Op::Store(shape.access(&target, values, Extend::Zero)));
        Ok(())
    }

    /// The grain of race detection is the narrowest access that there is.
    fn note_grain(&mut self, place: Place, bytes: u8) {
        let Linker { grain, global_grain, .. } = &mut *self.linker;
        if matches!(place, Place::Shared | Place::Generic) {
            *grain = usize::from(bytes).min(*grain);
        }
        if matches!(place, Place::Global | Place::Generic) {
            *global_grain = usize::from(bytes).min(*global_grain);
        }
    }

    /// Releasing and acquiring accesses are strong ones with a fence of the device before or after them.
    fn fence_if(&mut self, condition: bool) {
        if condition {
            self.emit(Op::Fence);
        }
    }

    /// `atom` and `red`: `.order.scope.space.operation.type` in this order, the first three optional.
    pub(super) fn atomic(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        let unknown = || format!("the instruction '{}' is not supported", opcode.join("."));
        let mut rest = &opcode[1..];
        let wide = !opcode.contains(&"cta");
        let releases = wide && rest.iter().any(|part| matches!(*part, "release" | "acq_rel"));
        let acquires = wide && rest.iter().any(|part| matches!(*part, "acquire" | "acq_rel"));
        rest = skip(rest, &["relaxed", "acquire", "release", "acq_rel"]);
        rest = skip(rest, &["cta", "gpu", "sys"]);
        let place = match rest.first() {
            Some(&"global") => Place::Global,
            Some(&"shared") => Place::Shared,
            _ => Place::Generic,
        };
        rest = skip(rest, &["global", "shared"]);
        // PTX 6.3 lets the scope stand behind the space too.
        rest = skip(rest, &["cta", "gpu", "sys"]);
        let [operation, ty] = *rest else { return Err(unknown()) };
        let (update, bytes) = read_modify_write(operation, ty).ok_or_else(unknown)?;
        let (d, operands) = match (opcode[0], operands) {
            ("atom", [d, rest @ ..]) => (self.destination(d)?.slot, rest),
            (_, all) => (NONE, all),
        };
        let (target, b, update) = match (update, operands) {
            (Some(f), [a, b]) => (self.target(a, place)?, self.source(b, ty)?, Update::With(f)),
            (None, [a, b, c]) => {
                (self.target(a, place)?, self.source(b, ty)?, Update::CompareAndSwap(self.source(c, ty)?))
            }
            _ => return Err("operands are missing or too many".into()),
        };
        let atomic = Atomic { place, bytes, update, d, base: target.base, offset: target.offset, b };
        self.code.atomics.push(atomic);
        self.note_grain(place, bytes);
        self.fence_if(releases);
        self.emit(Op::Atomic(self.code.atomics.len() as u32 - 1));
        self.fence_if(acquires);
        if matches!(operation, "cas" | "exch") {
            self.emit(Op::Yield);
        }
        Ok(())
    }
}

/// Addresses of kernel parameters carry this bit.
pub(crate) const KERNEL_PARAM: u64 = 1 << 61;

/// What the parts of a load's or store's name say.
struct Shape<'a> {
    place: Place,
    strength: Strength,
    acquires: bool,
    releases: bool,
    count: usize,
    bytes: u8,
    signed: bool,
    ty: &'a str,
}

impl<'a> Shape<'a> {
    fn read(opcode: &[&'a str]) -> Decoded<Self> {
        let unknown = || format!("the instruction '{}' is not supported", opcode.join("."));
        let [_, middle @ .., ty] = opcode else { return Err(unknown()) };
        let (mut place, mut strength, mut count) = (Place::Generic, Strength::Plain, 1);
        for part in middle {
            match *part {
                "global" | "const" => place = Place::Global,
                "shared" => place = Place::Shared,
                "local" => place = Place::Local,
                "param" => place = Place::Param,
                "volatile" | "relaxed" | "acquire" | "release" => strength = Strength::Strong,
                // Scopes and cache hints.
                "nc" => strength = Strength::NonCoherent,
                "weak" | "cta" | "gpu" | "sys" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" => {}
                "v2" => count = 2,
                "v4" => count = 4,
                _ => return Err(unknown()),
            }
        }
        let bytes = match ty.get(1..) {
            Some("8") => 1,
            Some("16") => 2,
            Some("32") => 4,
            Some("64") => 8,
            _ => return Err(unknown()),
        };
        if !matches!(ty.as_bytes()[0], b'b' | b'u' | b's') && !matches!(*ty, "f32" | "f64") || count == 4 && bytes == 8
        {
            return Err(unknown());
        }
        let has = |order: &str| middle.contains(&order) && !middle.contains(&"cta");
        let (acquires, releases, signed) = (has("acquire"), has("release"), ty.starts_with('s'));
        Ok(Self { place, strength, acquires, releases, count, bytes, signed, ty })
    }

    fn access(&self, target: &Target, values: [Slot; 4], extend: Extend) -> Access {
        Access {
            offset: target.offset,
            base: target.base,
            values,
            place: self.place,
            bytes: self.bytes,
            count: self.count as u8,
            extend,
            strength: self.strength,
        }
    }
}

/// The elements of a vector operand, or the one operand that is none.
fn vector(operand: &Operand, count: usize) -> Decoded<&[Operand]> {
    let parts = match operand {
        Operand::Vector(parts) => &parts[..],
        single => std::slice::from_ref(single),
    };
    if parts.len() == count { Ok(parts) } else { Err(format!("{count} elements are expected, not {}", parts.len())) }
}

/// Bytes of each of `count` parts of a value.
fn element(ty: &str, count: usize) -> Decoded<usize> {
    match (ty, count) {
        ("b16" | "b32", 2) => Ok(if ty == "b16" { 1 } else { 2 }),
        ("b64", 2) => Ok(4),
        ("b32", 4) => Ok(1),
        ("b64", 4) => Ok(2),
        _ => Err(format!("{count} parts of a .{ty} are not supported")),
    }
}

fn skip<'a, 'b>(parts: &'b [&'a str], any: &[&str]) -> &'b [&'a str] {
    match parts {
        [first, rest @ ..] if any.contains(first) => rest,
        _ => parts,
    }
}

/// The new value from the old one and the operand (`None`: compare and swap), and the bytes it works on.
fn read_modify_write(operation: &str, ty: &str) -> Option<(Option<F2>, u8)> {
    let f: F2 = match (operation, ty) {
        ("cas", "b32") => return Some((None, 4)),
        ("cas", "b64") => return Some((None, 8)),
        ("add", "u32" | "s32") => |a, b| u32::of(a).wrapping_add(u32::of(b)).bits(),
        ("add", "u64") => u64::wrapping_add,
        ("add", "f32") => |a, b| (f32::of(a) + f32::of(b)).bits(),
        ("add", "f64") => |a, b| (f64::of(a) + f64::of(b)).bits(),
        ("and", "b32" | "b64") => |a, b| a & b,
        ("or", "b32" | "b64") => |a, b| a | b,
        ("xor", "b32" | "b64") => |a, b| a ^ b,
        ("exch", "b32" | "b64") => |_, b| b,
        ("min", "u32" | "u64") => u64::min,
        ("max", "u32" | "u64") => u64::max,
        ("min", "s32") => |a, b| i32::of(a).min(i32::of(b)).bits(),
        ("max", "s32") => |a, b| i32::of(a).max(i32::of(b)).bits(),
        ("min", "s64") => |a, b| i64::of(a).min(i64::of(b)).bits(),
        ("max", "s64") => |a, b| i64::of(a).max(i64::of(b)).bits(),
        ("inc", "u32") => |a, b| if a >= b { 0 } else { a + 1 },
        ("dec", "u32") => |a, b| if a == 0 || a > b { b } else { a - 1 },
        _ => return None,
    };
    Some((Some(f), if ty.ends_with("64") { 8 } else { 4 }))
}
