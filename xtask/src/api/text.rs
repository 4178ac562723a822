//! Tokens as one line with single spaces, as rustfmt would space them.
//!
//! Attributes are left out, and commas before a closing bracket, so that the line does not change with the layout of the source.

use std::iter::Peekable;

use proc_macro2::{Delimiter, Punct, Spacing, TokenStream, TokenTree};

/// Operators of more than one character; a longer one stands before those that it begins with.
const OPERATORS: [&str; 12] = ["...", "..=", "::", "->", "=>", "..", "==", "!=", "<=", ">=", "&&", "||"];
/// Words that are no names: a bracket or an operator after them is not theirs.
const KEYWORDS: [&str; 18] = [
    "as", "async", "const", "dyn", "else", "extern", "fn", "for", "if", "impl", "in", "mut", "pub", "return", "static",
    "unsafe", "use", "where",
];

/// The tokens in one line.
pub(super) fn line(tokens: TokenStream) -> String {
    join(&words(tokens))
}

/// Names, literals, lifetimes, operators and brackets, one by one.
pub(super) fn words(tokens: TokenStream) -> Vec<String> {
    let mut out = Vec::new();
    collect(tokens, &mut out);
    out
}

fn collect(tokens: TokenStream, out: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) => out.push(name.to_string()),
            TokenTree::Literal(literal) => out.push(literal.to_string()),
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                out.extend(open.map(str::to_owned));
                let start = out.len();
                collect(group.stream(), out);
                let is_tuple_of_one = open == Some("(") && out[start..].iter().filter(|w| *w == ",").count() == 1;
                if out.last().is_some_and(|w| w == ",") && !is_tuple_of_one {
                    out.pop();
                }
                out.extend(close.map(str::to_owned));
            }
            TokenTree::Punct(first) => {
                let run = together(&first, &mut tokens);
                if is_attribute(&run, tokens.peek()) {
                    tokens.next();
                } else if let Some(before) = run.strip_suffix('\'') {
                    operators(before, out);
                    out.push(tokens.next().map_or_else(String::new, |name| format!("'{name}")));
                } else {
                    operators(&run, out);
                }
            }
        }
    }
}

/// Characters that stand together.
fn together(first: &Punct, tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) -> String {
    let mut run = String::from(first.as_char());
    let mut spacing = first.spacing();
    while spacing == Spacing::Joint
        && let Some(TokenTree::Punct(next)) = tokens.peek()
    {
        run.push(next.as_char());
        spacing = next.spacing();
        tokens.next();
    }
    run
}

fn brackets(delimiter: Delimiter) -> (Option<&'static str>, Option<&'static str>) {
    match delimiter {
        Delimiter::Parenthesis => (Some("("), Some(")")),
        Delimiter::Bracket => (Some("["), Some("]")),
        Delimiter::Brace => (Some("{"), Some("}")),
        Delimiter::None => (None, None),
    }
}

fn is_attribute(run: &str, next: Option<&TokenTree>) -> bool {
    matches!((run, next), ("#" | "#!", Some(TokenTree::Group(g))) if g.delimiter() == Delimiter::Bracket)
}

/// Cuts characters that stand together into operators, and drops a comma before a closing angle bracket.
fn operators(mut run: &str, out: &mut Vec<String>) {
    while !run.is_empty() {
        let operator = OPERATORS.into_iter().find(|o| run.starts_with(o)).unwrap_or(&run[..1]);
        if operator == ">" && out.last().is_some_and(|w| w == ",") {
            out.pop();
        }
        out.push(operator.to_owned());
        run = &run[operator.len()..];
    }
}

/// Words in one line.
pub(super) fn join(words: &[String]) -> String {
    let mut out = String::new();
    let mut before = "";
    let mut last = "";
    for word in words {
        if !last.is_empty() && is_apart(before, last, word) {
            out.push(' ');
        }
        out.push_str(word);
        (before, last) = (last, word);
    }
    out
}

/// Whether a space stands between two words; `before` is the one in front of both.
fn is_apart(before: &str, left: &str, right: &str) -> bool {
    let unary = !is_operand(before);
    match (left, right) {
        ("{", "}") | ("for" | "impl", "<") | ("fn", "(") => false,
        ("{", _) | (_, "{" | "}") => true,
        (_, ")" | "]" | "," | ";" | ":" | "." | ">") | ("(" | "[" | "." | "::" | "<" | "!" | "#" | "?" | "$", _) => {
            false
        }
        ("&" | "*" | "-" | "&&" | "'", _) if unary => false,
        (_, "::" | "(" | "[" | "<" | "!" | "?") => !is_operand(left),
        ("..", _) | (_, "..") => false,
        _ => true,
    }
}

/// Whether a word may be what an operator or a bracket follows.
fn is_operand(word: &str) -> bool {
    let is_name = word.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"' || c == '$');
    matches!(word, ")" | "]" | ">" | "!") || is_name && !KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        line(text.parse().unwrap())
    }

    #[test]
    fn types_are_spaced_as_by_hand() {
        for text in [
            "&'a mut [T]",
            "Result<Self, Error>",
            "Option<&dyn Fn(&[T], usize) -> Result<(), Error>>",
            "impl Iterator<Item = (usize, f64)> + '_",
            "[T; 2 * N + 1]",
            "<T as Scalar>::Real",
            "Box<dyn for<'a> FnMut(MatMut<'a, T>) -> bool>",
            "*const T",
            "T: ?Sized + Send",
            "unsafe extern \"C\" fn(u32) -> u32",
            "(T,)",
            "fn(T) -> !",
            "{ N }",
            "name!(f32 => F32)",
        ] {
            assert_eq!(spaced(text), text);
        }
    }

    #[test]
    fn layout_and_attributes_leave_no_trace() {
        assert_eq!(spaced("Map < A ,\n B ,\n >"), "Map<A, B>");
        assert_eq!(spaced("(A,\n B,\n)"), "(A, B)");
        assert_eq!(spaced("#[doc = \"about\"] x: #[cfg(test)] u8"), "x: u8");
    }
}
