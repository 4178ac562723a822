//! Tokens of PTX text, each with its line.

use crate::error::LoadError;

/// One token; words keep their dots, so `ld.global.f64` and `%tid.x` are single words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// An integer without sign.
    Integer(u64),
    /// `0f` and eight hexadecimal digits.
    Single(u32),
    /// `0d` and sixteen hexadecimal digits.
    Double(u64),
    /// The number behind `.version`.
    Version,
    Text(&'a str),
    Punctuation(u8),
}

/// All tokens with their lines, comments left out.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, LoadError> {
    let bytes = text.as_bytes();
    let (mut at, mut line) = (0, 1);
    let mut found = Vec::new();
    while at < bytes.len() {
        let rest = &text[at..];
        match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
            }
            c if c.is_ascii_whitespace() => at += 1,
            _ if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => {
                let end = rest.find("*/").ok_or_else(|| LoadError::new(line, "a comment is not closed"))? + 2;
                line += rest[..end].matches('\n').count() as u32;
                at += end;
            }
            b'"' => {
                let end = rest[1..].find('"').ok_or_else(|| LoadError::new(line, "a string is not closed"))?;
                found.push((Token::Text(&rest[1..=end]), line));
                at += end + 2;
            }
            c if is_word(c) => {
                let end = rest.bytes().position(|c| !is_word(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                let token = if c.is_ascii_digit() {
                    number(word).ok_or_else(|| LoadError::new(line, format!("'{word}' is not a number")))?
                } else {
                    Token::Word(word)
                };
                found.push((token, line));
                at += end;
            }
            c if c.is_ascii() => {
                found.push((Token::Punctuation(c), line));
                at += 1;
            }
            _ => return Err(LoadError::new(line, "a character outside ASCII")),
        }
    }
    Ok(found)
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

fn number(word: &str) -> Option<Token<'static>> {
    let digits = |from: usize, radix| u64::from_str_radix(word.get(from..)?, radix).ok();
    match word.as_bytes() {
        [b'0', b'f' | b'F', ..] if word.len() == 10 => digits(2, 16).map(|v| Token::Single(v as u32)),
        [b'0', b'd' | b'D', ..] if word.len() == 18 => digits(2, 16).map(Token::Double),
        [b'0', b'x' | b'X', ..] => digits(2, 16).map(Token::Integer),
        [b'0', b'b' | b'B', ..] => digits(2, 2).map(Token::Integer),
        digits if digits.iter().all(|c| c.is_ascii_digit() || *c == b'.') && word.contains('.') => Some(Token::Version),
        [b'0', _, ..] => word.trim_end_matches('U').parse().ok().filter(|v| *v == 0).map(Token::Integer),
        _ => word.trim_end_matches('U').parse().ok().map(Token::Integer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_lines() {
        let found = tokens("ld.u32 %r1, // c\n[a+-8]; /* \n */ 0f3F800000 0d3FF0000000000000 0x1F 12U").unwrap();
        let expected = [
            (Token::Word("ld.u32"), 1),
            (Token::Word("%r1"), 1),
            (Token::Punctuation(b','), 1),
            (Token::Punctuation(b'['), 2),
            (Token::Word("a"), 2),
            (Token::Punctuation(b'+'), 2),
            (Token::Punctuation(b'-'), 2),
            (Token::Integer(8), 2),
            (Token::Punctuation(b']'), 2),
            (Token::Punctuation(b';'), 2),
            (Token::Single(0x3f80_0000), 3),
            (Token::Double(0x3ff0_0000_0000_0000), 3),
            (Token::Integer(31), 3),
            (Token::Integer(12), 3),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nonsense_is_named_with_its_line() {
        for (text, what) in
            [("\n1x", "'1x'"), ("\n/* ", "comment"), ("\n\"a", "string"), ("\nä", "ASCII"), ("\n017", "017")]
        {
            let error = tokens(text).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(what), "{error}");
        }
    }
}
