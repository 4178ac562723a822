//! Harwell–Boeing files (`.rua`, `.rsa`, `.pua`, `.cua`, …): reader for assembled matrices.
//!
//! A file is a header of four lines (five with right-hand sides), then column pointers, row indices and values
//! in the fixed columns of Fortran formats, compressed by columns. Symmetric, skew-symmetric and Hermitian files
//! hold the lower triangle; the rest is filled in here. Right-hand sides are skipped. Rutherford–Boeing headers,
//! which differ in the lines for right-hand sides, are read too.
//!
//! Formats may group and repeat (`(1P,5E16.8)`, `(3(E25.16,1X))`); widths decide, blanks do not. As Fortran has it,
//! a number without a decimal point has the format's decimals, one without an exponent is divided by 10ᵏ under
//! the scale factor kP, and the exponent's letter may be D or missing (`1.5-103`).
//!
//! Format: Duff, Grimes, Lewis, *Sparse matrix test problems*, ACM Trans. Math. Softw. 15 (1989) 1–14,
//! doi:10.1145/62038.62043. Memory follows the text read, not the declared sizes. Cost: O(bytes + n).

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use crate::csr::Csr;
use crate::error::{Error, ParseKind, Result};
use crate::matrix_market::assemble::{Buckets, Entry, Piece, assemble};
use crate::matrix_market::header::check_believable;
use crate::matrix_market::source::{Lines, Source};
use crate::matrix_market::token::{careful_number, careful_size, shown, tokens};
use crate::matrix_market::{Symmetry, named};
use crate::monitor::{Monitor, Progress};
use crate::read::AnyMatrix;
use crate::scalar::Scalar;

/// Reads an assembled matrix; pattern files get ones.
///
/// # Errors
/// [`Error::Io`] naming the file; [`Error::Parse`] with file and line, `Unsupported` for elemental matrices.
pub fn read(path: impl AsRef<Path>) -> Result<AnyMatrix> {
    let path = path.as_ref();
    named(path, || any_from(Lines::new(Source::open(path)?)?, &mut ()))
}

/// [`read`] from anything; `name` stands for the file in errors.
///
/// # Errors
/// As [`read`].
pub fn read_from(reader: impl Read + Send, name: impl AsRef<Path>) -> Result<AnyMatrix> {
    let name = name.as_ref();
    named(name, || any_from(Lines::new(Source::new(reader, name, 0)?)?, &mut ()))
}

/// Whether three letters are a type code: R, C, P or I; S, U, H, Z or R; A or E.
pub(crate) fn is_type_code(code: &[u8]) -> bool {
    matches!(code, [a, b, c] if b"RCPI".contains(&a.to_ascii_uppercase())
        && b"SUHZR".contains(&b.to_ascii_uppercase())
        && b"AE".contains(&c.to_ascii_uppercase()))
}

/// Whether the third line of a text starts with a type code, as in this format only.
pub(crate) fn looks_like(text: &[u8]) -> bool {
    let third = text.splitn(4, |c| *c == b'\n').nth(2);
    third.and_then(|line| tokens(line).next()).is_some_and(is_type_code)
}

pub(crate) fn any_from(mut lines: Lines<'_>, monitor: &mut dyn Monitor) -> Result<AnyMatrix> {
    let header = Header::parse(&mut lines)?;
    Ok(match header.field {
        Field::Complex => AnyMatrix::Complex(body(lines, &header, monitor)?),
        Field::Real | Field::Pattern => AnyMatrix::Real(body(lines, &header, monitor)?),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Complex,
    Pattern,
}

struct Header {
    field: Field,
    symmetry: Symmetry,
    nrows: usize,
    ncols: usize,
    nnz: usize,
    pointers: Format,
    indices: Format,
    values: Format,
}

/// The next line, which must exist; `what` is what stands on it.
fn line<'l>(lines: &'l mut Lines<'_>, what: &str, kind: ParseKind) -> Result<(u64, &'l [u8])> {
    let number = lines.number() + 1;
    match lines.next_line()? {
        Some(line) => Ok((number, line)),
        None => Err(Error::parse(number - 1, kind, format!("the file ends before {what}"))),
    }
}

impl Header {
    fn parse(lines: &mut Lines<'_>) -> Result<Self> {
        line(lines, "its title", ParseKind::BadBanner)?;

        let (at, counts) = line(lines, "its line counts", ParseKind::BadBanner)?;
        let cards: Vec<usize> = tokens(counts)
            .map(|t| careful_size(t, "a line count"))
            .collect::<Result<_, _>>()
            .map_err(|(_, message)| Error::parse(at, ParseKind::BadBanner, message))?;
        if !(3..=5).contains(&cards.len()) {
            let message = format!("expected 4 or 5 line counts, found {}", shown(counts.trim_ascii()));
            return Err(Error::parse(at, ParseKind::BadBanner, message));
        }
        let has_rhs = cards.get(4).is_some_and(|c| *c > 0);

        let (at, sizes) = line(lines, "its type and sizes", ParseKind::BadBanner)?;
        let words: Vec<&[u8]> = tokens(sizes).take(6).collect();
        let code = words.first().copied().filter(|w| is_type_code(w)).ok_or_else(|| {
            let found = shown(sizes.trim_ascii());
            Error::parse(at, ParseKind::BadBanner, format!("expected a type like RUA and three sizes, found {found}"))
        })?;
        let code = code.to_ascii_uppercase();
        if code[2] == b'E' {
            let message = "an elemental (unassembled) matrix; only assembled ones are read";
            return Err(Error::parse(at, ParseKind::Unsupported, message));
        }
        let field = match code[0] {
            b'C' => Field::Complex,
            b'P' => Field::Pattern,
            _ => Field::Real,
        };
        let symmetry = match code[1] {
            b'S' => Symmetry::Symmetric,
            b'Z' => Symmetry::SkewSymmetric,
            b'H' => Symmetry::Hermitian,
            _ => Symmetry::General,
        };
        let bad = |message: String| Error::parse(at, ParseKind::BadSize, message);
        if words.len() < 4 {
            return Err(bad(format!("expected rows, columns and entries, found {}", shown(sizes.trim_ascii()))));
        }
        let size = |k: usize, what| careful_size(words[k], what).map_err(|(_, message)| bad(message));
        let nrows = size(1, "the number of rows")?;
        let ncols = size(2, "the number of columns")?;
        let nnz = size(3, "the number of entries")?;
        if symmetry != Symmetry::General && nrows != ncols {
            return Err(bad(format!("a symmetric type with {nrows} rows and {ncols} columns")));
        }
        check_believable(nrows, ncols, nnz)
            .and_then(|()| crate::csr::check_nnz(nnz).map_err(|e| e.to_string()))
            .map_err(|message| Error::parse(at, ParseKind::TooLarge, message))?;

        let (at, formats) = line(lines, "its formats", ParseKind::BadBanner)?;
        let groups = parenthesised(formats);
        let format = |k: usize, what: &str| {
            let text = groups.get(k).copied().unwrap_or_default();
            Format::parse(text).ok_or_else(|| {
                let message = format!("the format of the {what}, {}, is not understood", shown(text));
                Error::parse(at, ParseKind::BadBanner, message)
            })
        };
        let pointers = format(0, "column pointers")?;
        let indices = format(1, "row indices")?;
        let values = if field == Field::Pattern { Format::default() } else { format(2, "values")? };
        if has_rhs {
            line(lines, "the line about right-hand sides", ParseKind::BadBanner)?;
        }
        Ok(Self { field, symmetry, nrows, ncols, nnz, pointers, indices, values })
    }
}

fn body<T: Scalar>(mut lines: Lines<'_>, h: &Header, monitor: &mut dyn Monitor) -> Result<Csr<T>> {
    let integer = |text: &[u8], what: &str| careful_size(text, what).map_err(|(_, m)| (ParseKind::BadNumber, m));

    let mut last = 1;
    let mut pointers: Vec<u32> = Vec::new();
    each_field(&mut lines, &h.pointers, h.ncols + 1, "column pointers", |_, text| {
        let p = integer(text, "a column pointer")?;
        let first_is_one = !pointers.is_empty() || p == 1;
        if p < last || p - 1 > h.nnz || !first_is_one {
            let message = format!("column pointer {p}; they must rise from 1 to {}", h.nnz + 1);
            return Err((ParseKind::BadEntry, message));
        }
        last = p;
        pointers.push(p as u32 - 1);
        Ok(())
    })?;
    if last - 1 != h.nnz {
        let message = format!("the last column pointer is {last}; {} entries need {}", h.nnz, h.nnz + 1);
        return Err(Error::parse(lines.number(), ParseKind::BadEntry, message));
    }

    // Row indices, each with its column.
    let mut entries: Vec<Entry<T>> = Vec::new();
    let mut col = 0;
    each_field(&mut lines, &h.indices, h.nnz, "row indices", |k, text| {
        let i = integer(text, "a row index")?;
        if i == 0 || i > h.nrows {
            return Err((ParseKind::IndexOutOfRange, format!("row {i} lies outside 1 to {}", h.nrows)));
        }
        while pointers[col + 1] as usize <= k {
            col += 1;
        }
        let (i, j) = (i as u32 - 1, col as u32);
        if h.symmetry != Symmetry::General && i < j {
            let message = format!("entry ({}, {}) above the diagonal of a symmetric type", i + 1, j + 1);
            return Err((ParseKind::BadEntry, message));
        }
        entries.push((i, j, T::from_parts(1.0, 0.0)));
        Ok(())
    })?;
    drop(pointers);
    if !observed(&lines, monitor) {
        let source = io::Error::new(io::ErrorKind::Interrupted, "reading was stopped");
        return Err(Error::Io { file: lines.name().to_owned(), source });
    }

    let check = |e: &Entry<T>| match h.symmetry {
        Symmetry::SkewSymmetric | Symmetry::Hermitian if e.0 == e.1 => {
            crate::matrix_market::check_diagonal(h.symmetry, e.0 as usize + 1, e.2)
        }
        _ => Ok(()),
    };
    match h.field {
        Field::Pattern => {}
        Field::Real => each_field(&mut lines, &h.values, h.nnz, "values", |k, text| {
            entries[k].2 = T::from_parts(h.values.number::<T>(text)?, 0.0);
            check(&entries[k])
        })?,
        Field::Complex => {
            let mut re = 0.0;
            each_field(&mut lines, &h.values, 2 * h.nnz, "values", |k, text| {
                let part = h.values.number::<T>(text)?;
                if k % 2 == 0 {
                    re = part;
                    return Ok(());
                }
                entries[k / 2].2 = T::from_parts(re, part);
                check(&entries[k / 2])
            })?;
        }
    }
    observed(&lines, monitor);

    if h.symmetry != Symmetry::General {
        let mirrored: Vec<Entry<T>> = entries
            .iter()
            .filter(|e| e.0 != e.1)
            .map(|&(i, j, v)| match h.symmetry {
                Symmetry::SkewSymmetric => (j, i, -v),
                Symmetry::Hermitian => (j, i, Scalar::conj(v)),
                _ => (j, i, v),
            })
            .collect();
        entries.extend(mirrored);
    }
    crate::csr::check_nnz(entries.len())?;
    assemble(h.nrows, h.ncols, &[Piece::new(entries, Buckets::of(h.nrows))])
}

/// Reports the bytes read; false when the monitor wants to stop.
fn observed(lines: &Lines<'_>, monitor: &mut dyn Monitor) -> bool {
    let (done, total) = lines.progress();
    monitor.observe(Progress::Step { phase: "read", done, total }) == ControlFlow::Continue(())
}

/// Hands the next `count` fields of a format to `take`, with their numbers from 0, blanks trimmed.
fn each_field(
    lines: &mut Lines<'_>,
    format: &Format,
    count: usize,
    what: &str,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), (ParseKind, String)>,
) -> Result<()> {
    let mut k = 0;
    while k < count {
        let number = lines.number() + 1;
        let Some(line) = lines.next_line()? else {
            let message = format!("the file ends after {k} of {count} {what}");
            return Err(Error::parse(number - 1, ParseKind::TooFewEntries, message));
        };
        for field in format.fields.iter().take(count - k) {
            let text = line.get(field.start..(field.start + field.width).min(line.len())).unwrap_or_default();
            let text = text.trim_ascii();
            if text.is_empty() {
                let message = format!("{what}: columns {} to {} are blank", field.start + 1, field.start + field.width);
                return Err(Error::parse(number, ParseKind::BadEntry, message));
            }
            take(k, text).map_err(|(kind, message)| Error::parse(number, kind, message))?;
            k += 1;
        }
    }
    Ok(())
}

/// Top-level groups in parentheses of the line of formats.
fn parenthesised(line: &[u8]) -> Vec<&[u8]> {
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
struct FieldSpec {
    start: usize,
    width: usize,
}

/// A Fortran format: the fields of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Format {
    fields: Vec<FieldSpec>,
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
    fn parse(text: &[u8]) -> Option<Self> {
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
    fn number<T: Scalar>(&self, text: &[u8]) -> Result<f64, (ParseKind, String)> {
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

    #[test]
    fn sniffing() {
        assert!(looks_like(b"title\n 1 1 1 0 0\nRUA  2 2 3 0\n(I5)\n"));
        assert!(!looks_like(b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n"));
        assert!(!looks_like(b""));
    }
}
