//! Fortran formats: which columns of a line hold numbers, and how those are read.

use crate::error::ParseKind;
use crate::matrix_market::token::{careful_number, shown};
use crate::scalar::Scalar;

/// Top-level groups in parentheses of the line of formats.
pub(super) fn parenthesised(line: &[u8]) -> Vec<&[u8]> {
    let (mut groups, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (k, c) in line.iter().enumerate() {
        match c {
            b'(' => {
                if depth == 0 {
                    start = k;
                }
                depth += 1;
            }
            b')' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    groups.push(&line[start..=k]);
                }
            }
            _ => {}
        }
    }
    groups
}

/// A numeric field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldSpec {
    pub start: usize,
    pub width: usize,
}

/// A Fortran format: the fields of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    pub fields: Vec<FieldSpec>,
    /// Decimals of a number without a decimal point.
    decimals: i64,
    /// Scale factor of a number without an exponent.
    scale: i64,
}

/// Fields and columns of a line at most: no honest format has more, and a hostile one cannot make us expand it.
const MAX_FIELDS: usize = 4096;
const MAX_COLUMNS: usize = 1 << 16;

impl Format {
    /// Parses `(…)`; `None` when it is malformed or holds anything but I, F, E, D, G, X and P.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: Vec<u8> = text.iter().filter(|c| !c.is_ascii_whitespace()).map(u8::to_ascii_uppercase).collect();
        let mut format = Self::default();
        let mut column = 0;
        let inner = text.strip_prefix(b"(")?.strip_suffix(b")")?;
        format.group(inner, &mut column, 0)?;
        (!format.fields.is_empty()).then_some(format)
    }

    /// Appends the fields of a list of items from `column` on.
    fn group(&mut self, mut s: &[u8], column: &mut usize, depth: usize) -> Option<()> {
        if depth > 4 {
            return None;
        }
        while let Some(c) = s.first() {
            if *c == b',' {
                s = &s[1..];
                continue;
            }
            let (sign, rest) = match s {
                [b'-', rest @ ..] => (-1, rest),
                [b'+', rest @ ..] => (1, rest),
                _ => (1, s),
            };
            let (count, rest) = leading_integer(rest)?;
            let repeat = count.unwrap_or(1);
            match *rest.first()? {
                b'P' => {
                    self.scale = sign * repeat as i64;
                    s = &rest[1..];
                }
                b'X' => {
                    *column += repeat;
                    s = &rest[1..];
                }
                b'(' => {
                    let end = closing(rest)?;
                    for _ in 0..repeat {
                        self.group(&rest[1..end], column, depth + 1)?;
                    }
                    s = &rest[end + 1..];
                }
                b'I' | b'F' | b'E' | b'D' | b'G' => {
                    // ES and EN only differ in output.
                    let ([b'E', b'S' | b'N', rest @ ..] | [_, rest @ ..]) = rest else { return None };
                    let (width, mut rest) = leading_integer(rest)?;
                    let width = width.filter(|w| (1..=MAX_COLUMNS).contains(w))?;
                    if let [b'.', after @ ..] = rest {
                        let (decimals, after) = leading_integer(after)?;
                        self.decimals = decimals? as i64;
                        rest = after;
                    }
                    // Width of the exponent: output only.
                    if let [b'E', after @ ..] = rest
                        && let (Some(_), after) = leading_integer(after)?
                    {
                        rest = after;
                    }
                    for _ in 0..repeat {
                        self.fields.push(FieldSpec { start: *column, width });
                        *column += width;
                        if self.fields.len() > MAX_FIELDS || *column > MAX_COLUMNS {
                            return None;
                        }
                    }
                    s = rest;
                }
                _ => return None,
            }
            if *column > MAX_COLUMNS {
                return None;
            }
        }
        Some(())
    }

    /// A trimmed field as a number, by Fortran's rules for input.
    pub fn number<T: Scalar>(&self, text: &[u8]) -> Result<f64, (ParseKind, String)> {
        // The exponent starts at its letter, or at a sign that is not the first character.
        let letter = text.iter().position(|c| matches!(c.to_ascii_uppercase(), b'E' | b'D'));
        let sign = text.iter().skip(1).position(|c| matches!(c, b'+' | b'-')).map(|k| k + 1);
        let split = letter.or(sign);
        let plain = text.contains(&b'.') && (letter.is_some() || (split.is_none() && self.scale == 0));
        let word = text.iter().all(|c| c.is_ascii_digit() || b"+-.EDed".contains(c));
        if plain || !word {
            return careful_number::<T>(text);
        }
        let (mantissa, exponent) = text.split_at(split.unwrap_or(text.len()));
        let exponent = exponent.strip_prefix(b"E").or(exponent.strip_prefix(b"D")).unwrap_or(exponent);
        let exponent = exponent.strip_prefix(b"e").or(exponent.strip_prefix(b"d")).unwrap_or(exponent);
        let given = if split.is_some() {
            let text = std::str::from_utf8(exponent).ok().and_then(|e| e.parse::<i64>().ok());
            text.ok_or_else(|| {
                (ParseKind::BadNumber, format!("{} is not a number", shown(text_of(mantissa, exponent))))
            })?
        } else {
            -self.scale
        };
        let shift = if mantissa.contains(&b'.') { 0 } else { self.decimals };
        let whole = [mantissa, format!("e{}", given.saturating_sub(shift)).as_bytes()].concat();
        careful_number::<T>(&whole)
    }
}

/// What to show of a broken number.
fn text_of<'t>(mantissa: &'t [u8], exponent: &'t [u8]) -> &'t [u8] {
    if exponent.is_empty() { mantissa } else { exponent }
}

/// Leading digits as a number (`None` without any) and the rest; fails beyond what a format may hold.
fn leading_integer(s: &[u8]) -> Option<(Option<usize>, &[u8])> {
    let n = s.iter().take_while(|c| c.is_ascii_digit()).count();
    if n == 0 {
        return Some((None, s));
    }
    let value = (n <= 6).then(|| s[..n].iter().fold(0, |v, c| 10 * v + usize::from(c - b'0')))?;
    (value <= MAX_COLUMNS).then_some((Some(value), &s[n..]))
}

/// Position of the parenthesis that closes the one at the start.
fn closing(s: &[u8]) -> Option<usize> {
    let mut depth = 0;
    s.iter().position(|c| {
        match c {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(text: &str) -> Option<Vec<(usize, usize)>> {
        Format::parse(text.as_bytes()).map(|f| f.fields.iter().map(|s| (s.start, s.width)).collect())
    }

    #[test]
    fn formats() {
        assert_eq!(widths("(3I5)"), Some(vec![(0, 5), (5, 5), (10, 5)]));
        assert_eq!(widths("( 2 e 16.8 )"), Some(vec![(0, 16), (16, 16)]));
        assert_eq!(widths("(1P,2E16.8)"), widths("(1P2E16.8)"));
        assert_eq!(widths("(2(E25.16E3,1X))"), Some(vec![(0, 25), (26, 25)]));
        assert_eq!(widths("(F7.1)"), Some(vec![(0, 7)]));
        for bad in ["", "()", "(I0)", "(5A4)", "(I5", "(99999999I5)", "(60000I60000)", "((((((I5))))))", "(E.3)", "(I)"]
        {
            assert_eq!(widths(bad), None, "{bad}");
        }
        assert_eq!(Format::parse(b"(60000X,60000X,I5)"), None);
    }

    #[test]
    fn fortran_numbers() {
        let f = Format::parse(b"(10F7.1)").unwrap();
        assert_eq!(f.number::<f64>(b"123"), Ok(12.3));
        assert_eq!(f.number::<f64>(b"123."), Ok(123.0));
        assert_eq!(f.number::<f64>(b"-5e1"), Ok(-5.0));
        let e = Format::parse(b"(1P,5E16.8)").unwrap();
        assert_eq!(e.number::<f64>(b"1.5D+01"), Ok(15.0));
        assert_eq!(e.number::<f64>(b"1.5-103"), Ok(1.5e-103));
        assert_eq!(e.number::<f64>(b"1.5"), Ok(0.15));
        assert_eq!(e.number::<f64>(b"nan").unwrap_err().0, ParseKind::NonFinite);
        for bad in [&b"1.5x"[..], b"e", b"1e+", b"--1", b"1+-2", b"E5", b"."] {
            assert_eq!(e.number::<f64>(bad).unwrap_err().0, ParseKind::BadNumber, "{bad:?}");
        }
    }
}
