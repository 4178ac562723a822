//! Branches, calls and returns (PTX ISA 6.3, section 9.7.11).

use super::function::{Decoded, FunctionDecoder};
use super::layout;
use crate::op::{Call, Op};
use crate::ptx::Operand;

impl FunctionDecoder<'_, '_> {
    pub(super) fn control(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        match (opcode, operands) {
            (["bra"] | ["bra", "uni"], [Operand::Name(label)]) => {
                let label = self.label(label);
                self.emit(Op::Branch(label));
            }
            (["brx", "idx"] | ["brx", "idx", "uni"], [index, Operand::Name(table)]) => {
                let op = Op::BranchTable(self.source(index, "u32")?, self.table(table)?);
                self.emit(op);
            }
            (["call"] | ["call", "uni"], operands) => return self.call(operands),
            (["ret"] | ["ret", "uni"], []) if !self.function.is_entry => self.emit(Op::Return),
            (["ret" | "exit"] | ["ret", "uni"], []) => self.emit(Op::Exit),
            (["trap" | "brkpt"], []) => self.emit(Op::Trap),
            _ => return Err(format!("'{}' is not supported with these operands", opcode.join("."))),
        }
        Ok(())
    }

    /// `call (results), name, (arguments)`, all of them call parameters of this function.
    fn call(&mut self, operands: &[Operand]) -> Decoded<()> {
        let (results, name, arguments): (&[Operand], _, &[Operand]) = match operands {
            [Operand::Name(name)] => (&[], name, &[]),
            [Operand::Name(name), Operand::List(arguments)] => (&[], name, arguments),
            [Operand::List(results), Operand::Name(name)] => (results, name, &[]),
            [Operand::List(results), Operand::Name(name), Operand::List(arguments)] => (results, name, arguments),
            _ => return Err("a call through a pointer is not supported".into()),
        };
        let number = self.linker.function(name).ok_or_else(|| format!("there is no function {name} to call"))?;
        let callee = self.linker.functions[number as usize];
        let (parameters, behind) = layout(&callee.parameters, 0);
        let (returned, _) = layout(&callee.results, behind);
        let copies = |own: &[Operand], theirs: &[(usize, usize)]| -> Decoded<Vec<(u32, u32, u32)>> {
            if own.len() != theirs.len() {
                return Err(format!("{name} has {} parameters or results here, not {}", theirs.len(), own.len()));
            }
            let copy = |(own, theirs): (&Operand, &(usize, usize))| match own {
                Operand::Name(variable) => match self.frame_param(variable) {
                    Some(at) => Ok((at, theirs.0 as u32, theirs.1 as u32)),
                    None => Err(format!("{variable} is no call parameter")),
                },
                other => Err(format!("{other:?} is no call parameter")),
            };
            own.iter().zip(theirs).map(copy).collect()
        };
        let (arguments, results) = (copies(arguments, &parameters)?, copies(results, &returned)?);
        self.code.calls.push(Call { function: number, arguments, results });
        self.emit(Op::Call(self.code.calls.len() as u32 - 1));
        Ok(())
    }
}
