//! The syntax tree of a PTX module.

/// A module: variables and functions in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
}

/// State spaces of variables and accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Local,
    Const,
    Param,
}

/// A declared variable or parameter of `size` bytes; `size` is zero for the extern array of dynamic shared memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) align: usize,
    pub(crate) size: usize,
    pub(crate) linkage: Linkage,
    pub(crate) initial: Initial,
}

/// Whether a declaration only announces what another module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Defined,
    Extern,
}

/// Initial bytes of a variable, and addresses of other variables in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Initial {
    /// At most `size` bytes; the rest is zero.
    pub(crate) bytes: Vec<u8>,
    /// (offset, name, addend): eight bytes at offset are the address of the name, plus addend.
    pub(crate) addresses: Vec<(usize, String, u64)>,
}

/// A kernel (`.entry`) or device function (`.func`); announced only where there is no body.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) is_entry: bool,
    pub(crate) parameters: Vec<Variable>,
    pub(crate) results: Vec<Variable>,
    /// Largest or required number of threads of a block.
    pub(crate) max_threads: Option<u32>,
    pub(crate) body: Option<Vec<Item>>,
}

/// What stands in a function's body.
#[derive(Debug)]
pub(crate) enum Item {
    Open,
    Close,
    /// Registers of one width in bytes (0: predicates): a name, or a prefix and how many.
    Registers {
        width: u8,
        name: String,
        count: Option<u32>,
    },
    Variable(Variable),
    Label(String),
    /// A table of labels for `brx.idx`.
    Targets(String, Vec<String>),
    Instruction(Instruction),
}

/// One instruction.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    /// Guard predicate, and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
}

/// An operand as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Name(String),
    Not(String),
    Immediate(Immediate),
    /// `[base + offset]`; the base is empty for an absolute address.
    Address(String, i64),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `a|b`
    Pair(String, String),
    /// `(a, b)`
    List(Vec<Operand>),
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Immediate {
    /// Two's complement.
    Integer(u64),
    /// Bits of an f32.
    Single(u32),
    /// Bits of an f64.
    Double(u64),
}

impl Operand {
    /// All names in the operand.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Name(name) | Self::Not(name) | Self::Address(name, _) => vec![name],
            Self::Pair(a, b) => vec![a, b],
            Self::Vector(all) | Self::List(all) => all.iter().flat_map(Self::names).collect(),
            Self::Immediate(_) => Vec::new(),
        }
    }
}
