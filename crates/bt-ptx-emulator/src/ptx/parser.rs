//! Recursive descent over the tokens of a module (PTX ISA 6.3, chapters 4 and 5).

use super::syntax::{Function, Immediate, Initial, Instruction, Item, Linkage, Module, Operand, Space, Variable};
use super::token::{Token, tokens};
use crate::error::LoadError;

/// Reads a whole module.
///
/// # Errors
/// The first place that is not PTX 6.3, or a directive that is not known.
pub(crate) fn parse(text: &str) -> Result<Module, LoadError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut module = Module::default();
    while parser.at < tokens.len() {
        parser.declaration(&mut module)?;
    }
    Ok(module)
}

struct Parser<'a> {
    tokens: &'a [(Token<'a>, u32)],
    at: usize,
}

type Parsed<T> = Result<T, LoadError>;

impl<'a> Parser<'a> {
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |t| t.1)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(LoadError::new(self.line(), message))
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|t| t.0)
    }

    fn next(&mut self) -> Parsed<Token<'a>> {
        let token = self.peek().ok_or_else(|| LoadError::new(self.line(), "the text ends here"))?;
        self.at += 1;
        Ok(token)
    }

    fn skip(&mut self, c: u8) -> bool {
        let found = self.peek() == Some(Token::Punctuation(c));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: u8) -> Parsed<()> {
        if self.skip(c) { Ok(()) } else { self.fail(format!("'{}' is missing", char::from(c))) }
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(Token::Word(word));
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> Parsed<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            None => self.fail("the text ends here"),
            _ => self.fail("a name is missing"),
        }
    }

    fn integer(&mut self) -> Parsed<u64> {
        match self.peek() {
            Some(Token::Integer(value)) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.fail("an integer is missing"),
        }
    }

    fn count(&mut self) -> Parsed<u32> {
        let value = self.integer()?;
        u32::try_from(value).or_else(|_| self.fail(format!("{value} is too large")))
    }

    fn declaration(&mut self, module: &mut Module) -> Parsed<()> {
        let mut linkage = Linkage::Defined;
        loop {
            let line = self.line();
            match self.word()? {
                ".visible" | ".weak" => {}
                ".extern" => linkage = Linkage::Extern,
                ".version" => {
                    return if self.next()? == Token::Version { Ok(()) } else { self.fail("a version is missing") };
                }
                ".target" => {
                    self.word()?;
                    while self.skip(b',') {
                        self.word()?;
                    }
                    return Ok(());
                }
                ".address_size" => {
                    return if self.integer()? == 64 { Ok(()) } else { self.fail("addresses must have 64 bits") };
                }
                ".entry" => return self.function(true, line).map(|f| module.functions.push(f)),
                ".func" => return self.function(false, line).map(|f| module.functions.push(f)),
                word => {
                    let Some(space) = space(word) else { return self.fail(format!("directive '{word}' is not known")) };
                    self.variables(space, linkage, &mut module.variables)?;
                    return Ok(());
                }
            }
        }
    }

    /// `.align 8 .b8 name[24] = {…}, …;` after the state space.
    fn variables(&mut self, space: Space, linkage: Linkage, found: &mut Vec<Variable>) -> Parsed<()> {
        let (align, width) = self.alignment_and_type()?;
        loop {
            let mut variable = self.named(space, align, width)?;
            variable.linkage = linkage;
            if self.skip(b'=') {
                variable.initial = self.initial(width)?;
                let Initial { bytes, addresses } = &variable.initial;
                let end = addresses.iter().map(|a| a.0 + 8).max().unwrap_or(0).max(bytes.len());
                if end > variable.size {
                    return self.fail(format!("{} has more initial values than elements", variable.name));
                }
            }
            found.push(variable);
            if !self.skip(b',') {
                return self.expect(b';');
            }
        }
    }

    fn alignment_and_type(&mut self) -> Parsed<(Option<usize>, usize)> {
        let align = if self.skip_word(".align") { Some(self.count()? as usize) } else { None };
        if align.is_some_and(|a| !a.is_power_of_two()) {
            return self.fail("an alignment is a power of two");
        }
        let name = self.word()?;
        match width(name) {
            Some(width @ 1..) => Ok((align, width as usize)),
            _ => self.fail(format!("'{name}' is no type of a variable")),
        }
    }

    /// A name with array bounds.
    fn named(&mut self, space: Space, align: Option<usize>, width: usize) -> Parsed<Variable> {
        let name = self.word()?.to_owned();
        let mut size = width;
        while self.skip(b'[') {
            let length = if self.peek() == Some(Token::Punctuation(b']')) { 0 } else { self.count()? as usize };
            // So small that sums of sizes do not overflow.
            size = match size.checked_mul(length) {
                Some(size) if size <= 1 << 40 => size,
                _ => return self.fail("the array is too large"),
            };
            self.expect(b']')?;
        }
        let (align, linkage) = (align.unwrap_or(width), Linkage::Defined);
        Ok(Variable { name, space, align, size, linkage, initial: Initial::default() })
    }

    fn initial(&mut self, width: usize) -> Parsed<Initial> {
        let mut initial = Initial::default();
        if !self.skip(b'{') {
            self.initial_value(width, &mut initial)?;
            return Ok(initial);
        }
        let mut depth = 1;
        while depth > 0 {
            if self.skip(b'{') {
                depth += 1;
            } else if self.skip(b'}') {
                depth -= 1;
            } else if !self.skip(b',') {
                self.initial_value(width, &mut initial)?;
            }
        }
        Ok(initial)
    }

    fn initial_value(&mut self, width: usize, initial: &mut Initial) -> Parsed<()> {
        if let Some(Token::Word(word)) = self.peek() {
            self.at += 1;
            let name = if word == "generic" && self.skip(b'(') {
                let name = self.word()?;
                self.expect(b')')?;
                name
            } else {
                word
            };
            let addend = if self.skip(b'+') { self.integer()? } else { 0 };
            if width != 8 {
                return self.fail("an address as initial value needs elements of eight bytes");
            }
            initial.addresses.push((initial.bytes.len(), name.to_owned(), addend));
            initial.bytes.extend([0; 8]);
            return Ok(());
        }
        let bits = match self.immediate()? {
            Immediate::Integer(bits) | Immediate::Double(bits) => bits,
            Immediate::Single(bits) => u64::from(bits),
        };
        initial.bytes.extend(&bits.to_le_bytes()[..width]);
        Ok(())
    }

    fn immediate(&mut self) -> Parsed<Immediate> {
        let negative = self.skip(b'-');
        match self.next()? {
            Token::Integer(value) => Ok(Immediate::Integer(if negative { value.wrapping_neg() } else { value })),
            Token::Single(bits) if !negative => Ok(Immediate::Single(bits)),
            Token::Double(bits) if !negative => Ok(Immediate::Double(bits)),
            _ => {
                self.at -= 1;
                self.fail("a literal is missing")
            }
        }
    }

    fn function(&mut self, is_entry: bool, line: u32) -> Parsed<Function> {
        let results = if !is_entry && self.skip(b'(') { self.parameters()? } else { Vec::new() };
        let name = self.word()?.to_owned();
        let parameters = if self.skip(b'(') { self.parameters()? } else { Vec::new() };
        let mut max_threads = None;
        let body = loop {
            if self.skip(b';') {
                break None;
            }
            if self.skip(b'{') {
                break Some(self.body()?);
            }
            match self.word()? {
                ".maxntid" | ".reqntid" => {
                    let mut threads = self.count()?;
                    while self.skip(b',') {
                        threads = threads.saturating_mul(self.count()?);
                    }
                    max_threads = Some(threads);
                }
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" => {
                    self.count()?;
                }
                ".noreturn" => {}
                ".pragma" => self.pragma()?,
                other => return self.fail(format!("directive '{other}' is not known")),
            }
        };
        Ok(Function { name, line, is_entry, parameters, results, max_threads, body })
    }

    fn pragma(&mut self) -> Parsed<()> {
        let Token::Text(_) = self.next()? else { return self.fail("a pragma is a string") };
        self.expect(b';')
    }

    fn parameters(&mut self) -> Parsed<Vec<Variable>> {
        let mut found = Vec::new();
        while !self.skip(b')') {
            match self.word()? {
                ".param" => {
                    let (align, width) = self.alignment_and_type()?;
                    // `.ptr` and its alignment say what a pointer leads to.
                    while self.skip_word(".ptr") || self.skip_word(".global") || self.skip_word(".shared") {}
                    if self.skip_word(".align") {
                        self.count()?;
                    }
                    found.push(self.named(Space::Param, align, width)?);
                }
                other => return self.fail(format!("parameters in '{other}' are not supported")),
            }
            self.skip(b',');
        }
        Ok(found)
    }

    /// Items up to the brace that closes the function.
    fn body(&mut self) -> Parsed<Vec<Item>> {
        let mut items = Vec::new();
        let mut depth = 1;
        loop {
            if self.skip(b'{') {
                depth += 1;
                items.push(Item::Open);
            } else if self.skip(b'}') {
                depth -= 1;
                if depth == 0 {
                    return Ok(items);
                }
                items.push(Item::Close);
            } else if !self.skip(b';') {
                self.item(&mut items)?;
            }
        }
    }

    fn item(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let line = self.line();
        let guard = if self.skip(b'@') {
            let negated = self.skip(b'!');
            Some((self.word()?.to_owned(), negated))
        } else {
            None
        };
        let word = self.word()?;
        if guard.is_none() && self.skip(b':') {
            if self.skip_word(".branchtargets") {
                let mut labels = vec![self.word()?.to_owned()];
                while self.skip(b',') {
                    labels.push(self.word()?.to_owned());
                }
                self.expect(b';')?;
                items.push(Item::Targets(word.to_owned(), labels));
            } else {
                items.push(Item::Label(word.to_owned()));
            }
            return Ok(());
        }
        match word {
            ".reg" => return self.registers(items),
            ".pragma" => return self.pragma(),
            // `.loc file line column` and its tail say where the source is.
            ".loc" => {
                while self.peek().is_some() && self.line() == line {
                    self.at += 1;
                }
                return Ok(());
            }
            _ if word.starts_with('.') => {
                let Some(space) = space(word) else { return self.fail(format!("directive '{word}' is not known")) };
                let mut variables = Vec::new();
                self.variables(space, Linkage::Defined, &mut variables)?;
                items.extend(variables.into_iter().map(Item::Variable));
                return Ok(());
            }
            _ => {}
        }
        let mut operands = Vec::new();
        while !self.skip(b';') {
            operands.push(self.operand()?);
            if !self.skip(b',') && self.peek() != Some(Token::Punctuation(b';')) {
                return self.fail("',' or ';' is missing");
            }
        }
        items.push(Item::Instruction(Instruction { line, guard, opcode: word.to_owned(), operands }));
        Ok(())
    }

    fn registers(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let name = self.word()?;
        let Some(width) = width(name) else { return self.fail(format!("'{name}' is no type of a register")) };
        loop {
            let name = self.word()?.to_owned();
            let count = if self.skip(b'<') {
                let count = self.count()?;
                self.expect(b'>')?;
                Some(count)
            } else {
                None
            };
            items.push(Item::Registers { width, name, count });
            if !self.skip(b',') {
                return self.expect(b';');
            }
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        match self.peek() {
            Some(Token::Word(name)) => {
                self.at += 1;
                if self.skip(b'|') {
                    return Ok(Operand::Pair(name.to_owned(), self.word()?.to_owned()));
                }
                Ok(Operand::Name(name.to_owned()))
            }
            Some(Token::Punctuation(b'!')) => {
                self.at += 1;
                Ok(Operand::Not(self.word()?.to_owned()))
            }
            Some(Token::Punctuation(b'[')) => {
                self.at += 1;
                self.address()
            }
            Some(Token::Punctuation(b'{')) => {
                self.at += 1;
                self.operands(b'}').map(Operand::Vector)
            }
            Some(Token::Punctuation(b'(')) => {
                self.at += 1;
                self.operands(b')').map(Operand::List)
            }
            _ => self.immediate().map(Operand::Immediate),
        }
    }

    fn operands(&mut self, close: u8) -> Parsed<Vec<Operand>> {
        let mut found = Vec::new();
        while !self.skip(close) {
            if let Some(Token::Punctuation(b'{' | b'(' | b'[')) = self.peek() {
                return self.fail("operands are not nested");
            }
            found.push(self.operand()?);
            if !self.skip(b',') && self.peek() != Some(Token::Punctuation(close)) {
                return self.fail("',' is missing");
            }
        }
        Ok(found)
    }

    fn address(&mut self) -> Parsed<Operand> {
        let base = if let Some(Token::Word(name)) = self.peek() {
            self.at += 1;
            name.to_owned()
        } else {
            String::new()
        };
        let mut offset = 0;
        if !base.is_empty() && self.skip(b'+') || base.is_empty() || self.peek() == Some(Token::Punctuation(b'-')) {
            match self.immediate()? {
                Immediate::Integer(value) => offset = value.cast_signed(),
                _ => return self.fail("an offset is an integer"),
            }
        }
        self.expect(b']')?;
        Ok(Operand::Address(base, offset))
    }
}

fn space(word: &str) -> Option<Space> {
    Some(match word {
        ".global" => Space::Global,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        ".const" => Space::Const,
        ".param" => Space::Param,
        _ => return None,
    })
}

/// Bytes of a fundamental type, 0 for predicates.
fn width(name: &str) -> Option<u8> {
    Some(match name {
        ".pred" => 0,
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 6.3\n.target sm_70\n.address_size 64\n";

    #[test]
    fn a_kernel_with_everything_that_is_declared() {
        let text = format!(
            "{HEAD}.visible .const .align 8 .b8 tab[16] = {{0, 0, 128, 63}};\n.extern .shared .align 16 .b8 dyn[];\n\
             .global .u64 where = generic(tab)+8;\n\
             .visible .entry k(.param .u32 k_0, .param .align 8 .b8 k_1[24])\n.maxntid 8, 4, 1\n{{\n.reg .b32 %r<3>;\n\
             .reg .pred p, q;\nL: ld.param.u32 %r1, [k_0+-4];\n@!p bra L;\n{{ .reg .b32 t; mov.b64 {{t, %r2}}, 7; }}\n\
             setp.eq.s32 p|q, %r1, -1;\nret;\n}}"
        );
        let module = parse(&text).unwrap();
        let [table, dynamic, pointer] = &module.variables[..] else { panic!("{:?}", module.variables) };
        assert_eq!((table.size, &table.initial.bytes[..], table.align), (16, &[0, 0, 128, 63][..], 8));
        assert_eq!((dynamic.size, dynamic.linkage, dynamic.space), (0, Linkage::Extern, Space::Shared));
        assert_eq!(pointer.initial.addresses, [(0, "tab".to_owned(), 8)]);
        let kernel = &module.functions[0];
        assert_eq!((kernel.max_threads, kernel.parameters[1].size, kernel.line), (Some(32), 24, 7));
        let instructions: Vec<_> = kernel
            .body
            .as_ref()
            .unwrap()
            .iter()
            .filter_map(|i| match i {
                Item::Instruction(i) => Some((i.line, i.opcode.as_str(), i.operands.clone())),
                _ => None,
            })
            .collect();
        let name = |n: &str| Operand::Name(n.to_owned());
        assert_eq!(instructions[0], (12, "ld.param.u32", vec![name("%r1"), Operand::Address("k_0".into(), -4)]));
        assert_eq!(instructions[2].2[0], Operand::Vector(vec![name("t"), name("%r2")]));
        assert_eq!(instructions[3].2[0], Operand::Pair("p".into(), "q".into()));
        assert_eq!(instructions[3].2[2], Operand::Immediate(Immediate::Integer(u64::MAX)));
    }

    #[test]
    fn nonsense_is_named_with_its_line() {
        for (text, what) in [
            (".texref t;", "'.texref'"),
            (".global .f16 x;", "'.f16'"),
            (".entry k() { add.s32 %r1 %r2; }", "','"),
            (".entry k() { ret;", "ends"),
            (".global .align 3 .b8 x[4];", "power"),
            (".entry k() { mov.b64 {{", "nested"),
            (".global .b8 x[2] = {1, 2, 3};", "more initial values"),
        ] {
            let error = parse(&format!("{HEAD}{text}")).unwrap_err();
            assert!(error.line == 4 && error.message.contains(what), "{error}");
        }
    }
}
