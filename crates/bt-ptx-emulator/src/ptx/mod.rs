//! PTX text to syntax trees: tokens, then declarations and instructions. Nothing here knows an opcode.

mod parser;
mod syntax;
mod token;

pub(crate) use parser::parse;
pub(crate) use syntax::{Function, Immediate, Instruction, Item, Module, Operand, Space, Variable};
