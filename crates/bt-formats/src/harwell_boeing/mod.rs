//! Harwell–Boeing files (`.rua`, `.rsa`, `.pua`, `.cua`, …): reader for assembled matrices.
//!
//! A file is a header of four lines (five with right-hand sides), then column pointers, row indices and values
//! in the fixed columns of Fortran formats, compressed by columns. Symmetric, skew-symmetric and Hermitian files
//! hold the lower triangle; the rest is filled in here. Right-hand sides, full or sparse, are read by
//! [`crate::read_system`]; starting guesses and solutions, which follow them, are not. Rutherford–Boeing headers, which
//! differ in the lines for right-hand sides, are read too.
//!
//! Formats may group and repeat (`(1P,5E16.8)`, `(3(E25.16,1X))`); widths decide, blanks do not. As Fortran has it,
//! a number without a decimal point has the format's decimals, one without an exponent is divided by 10ᵏ under
//! the scale factor kP, and the exponent's letter may be D or missing (`1.5-103`).
//!
//! Format: Duff, Grimes, Lewis, *Sparse matrix test problems*, ACM Trans. Math. Softw. 15 (1989) 1–14,
//! doi:10.1145/62038.62043. Memory follows the text read, not the declared sizes. Cost: O(bytes + n).

mod format;

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use faer::Mat;

use self::format::{Format, parenthesised};
use crate::csr::Csr;
use crate::error::{Error, ParseKind, Result};
use crate::matrix_market::assemble::{Buckets, Entry, Piece, assemble};
use crate::matrix_market::header::check_believable;
use crate::matrix_market::source::{Lines, Source};
use crate::matrix_market::token::{careful_size, shown, tokens};
use crate::matrix_market::{Symmetry, named};
use crate::memory;
use crate::monitor::{Monitor, Progress};
use crate::read::{FileDense, FileMatrix, RhsInFile, System};
use crate::scalar::Scalar;

/// Reads an assembled matrix; pattern files get ones.
///
/// # Errors
/// [`Error::Io`] naming the file; [`Error::Parse`] with file and line, `Unsupported` for elemental matrices.
pub fn read(path: impl AsRef<Path>) -> Result<FileMatrix> {
    let path = path.as_ref();
    named(path, || Ok(any_from(Lines::new(Source::open(path)?)?, RhsInFile::Skip, &mut ())?.matrix))
}

/// [`read`] from anything; `name` stands for the file in errors.
///
/// # Errors
/// As [`read`].
pub fn read_from(reader: impl Read + Send, name: impl AsRef<Path>) -> Result<FileMatrix> {
    let name = name.as_ref();
    named(name, || Ok(any_from(Lines::new(Source::new(reader, name, 0)?)?, RhsInFile::Skip, &mut ())?.matrix))
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

pub(crate) fn any_from(mut lines: Lines<'_>, wanted: RhsInFile, monitor: &mut dyn Monitor) -> Result<System> {
    let header = Header::parse(&mut lines)?;
    let matrix = match header.field {
        Field::Complex => FileMatrix::Complex(body(&mut lines, &header, monitor)?),
        Field::Real | Field::Pattern => FileMatrix::Real(body(&mut lines, &header, monitor)?),
    };
    let mut notes = Vec::new();
    let rhs = match (&header.rhs, wanted) {
        (None, _) => None,
        (Some(found), RhsInFile::Skip) => {
            notes.push(format!("{} in the file not used", found.in_words()));
            None
        }
        (Some(found), RhsInFile::Read) => {
            let values = match header.field {
                Field::Complex => FileDense::Complex(right_hand_sides(&mut lines, &header, found)?),
                Field::Real | Field::Pattern => FileDense::Real(right_hand_sides(&mut lines, &header, found)?),
            };
            if let Some(rest) = found.rest {
                notes.push(format!("{rest} in the file not used"));
            }
            Some(values)
        }
    };
    Ok(System { matrix, rhs, notes })
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
    rhs: Option<RhsHeader>,
}

/// How right-hand sides are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RhsStorage {
    /// n numbers each.
    Full,
    /// Compressed by columns, as the matrix is, with so many entries in all.
    Sparse { entries: usize },
}

/// The fifth line of a header.
struct RhsHeader {
    storage: RhsStorage,
    count: usize,
    format: Format,
    /// Whether every vector starts on a line of its own, which the number of lines tells where it matters.
    on_new_lines: bool,
    /// Vectors that follow.
    rest: Option<&'static str>,
}

impl RhsHeader {
    /// `(A3, 11X, 2I14)`: storage, G for starting guesses, X for solutions; right-hand sides; entries of sparse ones.
    /// `cards` are the lines of all of them.
    fn parse(text: &[u8], format: Format, cards: usize, nrows: usize, field: Field) -> Result<Self, String> {
        let mut words = tokens(text);
        let code = words.next().unwrap_or_default().to_ascii_uppercase();
        let sizes: Vec<&[u8]> = words.collect();
        let size = |k: usize, what| careful_size(sizes.get(k).copied().unwrap_or(b"0"), what).map_err(|f| f.1);
        let count = size(0, "the number of right-hand sides")?;
        crate::csr::check_nnz(count).map_err(|e| e.to_string())?;
        let storage = match code.first() {
            Some(b'F') => RhsStorage::Full,
            Some(b'M') => {
                let entries = size(1, "the number of entries of the right-hand sides")?;
                crate::csr::check_nnz(entries).map_err(|e| e.to_string())?;
                RhsStorage::Sparse { entries }
            }
            _ => return Err(format!("expected F or M, the storage of right-hand sides, found {}", shown(text))),
        };
        let (guesses, solutions) = (code.contains(&b'G'), code.contains(&b'X'));
        let rest = match (guesses, solutions) {
            (false, false) => None,
            (true, false) => Some("starting guesses"),
            (false, true) => Some("exact solutions"),
            (true, true) => Some("starting guesses and exact solutions"),
        };
        let vectors = 1 + usize::from(guesses) + usize::from(solutions);
        let (numbers, each) = (nrows * field.numbers(), format.fields.len());
        let lines = |numbers: usize| numbers.div_ceil(each.max(1));
        let joined = lines(numbers.saturating_mul(count)).saturating_mul(vectors);
        let apart = lines(numbers).saturating_mul(vectors * count);
        Ok(Self { storage, count, format, on_new_lines: cards == apart && apart != joined, rest })
    }

    fn in_words(&self) -> String {
        match self.count {
            1 => "the right-hand side".into(),
            k => format!("the {k} right-hand sides"),
        }
    }
}

impl Field {
    /// Numbers of a value.
    fn numbers(self) -> usize {
        match self {
            Self::Complex => 2,
            Self::Real | Self::Pattern => 1,
        }
    }
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
        let rhs_cards = cards.get(4).copied().unwrap_or(0);

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
        // Its own place is columns 53 to 72; without one for the values it may be the third.
        let rhs_format = formats.get(52..).and_then(|text| parenthesised(text).first().copied());
        let rhs_format = rhs_format.or(groups.get(3).or(groups.get(2)).copied()).map(<[u8]>::to_vec);
        let rhs = if rhs_cards > 0 {
            let text = rhs_format.unwrap_or_default();
            let format = Format::parse(&text).ok_or_else(|| {
                let message = format!("the format of the right-hand sides, {}, is not understood", shown(&text));
                Error::parse(at, ParseKind::BadBanner, message)
            })?;
            let (at, text) = line(lines, "the line about right-hand sides", ParseKind::BadBanner)?;
            let header = RhsHeader::parse(text, format, rhs_cards, nrows, field)
                .map_err(|message| Error::parse(at, ParseKind::BadBanner, message))?;
            Some(header).filter(|header| header.count > 0)
        } else {
            None
        };
        Ok(Self { field, symmetry, nrows, ncols, nnz, pointers, indices, values, rhs })
    }
}

/// An integer of the body.
fn integer(text: &[u8], what: &str) -> Result<usize, (ParseKind, String)> {
    careful_size(text, what).map_err(|(_, message)| (ParseKind::BadNumber, message))
}

/// Pointers to the starts of `ncols` columns and their end, from 0.
fn column_pointers(lines: &mut Lines<'_>, format: &Format, ncols: usize, nnz: usize, of: &str) -> Result<Vec<u32>> {
    let mut last = 1;
    let mut pointers: Vec<u32> = Vec::new();
    each_field(lines, format, ncols + 1, of, |_, text| {
        let p = integer(text, "a column pointer")?;
        let first_is_one = !pointers.is_empty() || p == 1;
        if p < last || p - 1 > nnz || !first_is_one {
            return Err((ParseKind::BadEntry, format!("column pointer {p}; they must rise from 1 to {}", nnz + 1)));
        }
        last = p;
        pointers.push(p as u32 - 1);
        Ok(())
    })?;
    if last - 1 != nnz {
        let message = format!("the last column pointer is {last}; {nnz} entries need {}", nnz + 1);
        return Err(Error::parse(lines.number(), ParseKind::BadEntry, message));
    }
    Ok(pointers)
}

/// A row index, from 1.
fn row_index(text: &[u8], nrows: usize) -> Result<usize, (ParseKind, String)> {
    match integer(text, "a row index")? {
        i if (1..=nrows).contains(&i) => Ok(i),
        i => Err((ParseKind::IndexOutOfRange, format!("row {i} lies outside 1 to {nrows}"))),
    }
}

/// Hands `count` values to `take`, numbered from 0.
fn each_value<T: Scalar>(
    lines: &mut Lines<'_>,
    format: &Format,
    field: Field,
    count: usize,
    what: &str,
    mut take: impl FnMut(usize, T) -> Result<(), (ParseKind, String)>,
) -> Result<()> {
    match field {
        Field::Pattern | Field::Real => {
            each_field(lines, format, count, what, |k, text| take(k, T::rounded(format.number::<T>(text)?, 0.0)))
        }
        Field::Complex => {
            let mut re = 0.0;
            each_field(lines, format, 2 * count, what, |k, text| {
                let part = format.number::<T>(text)?;
                if k % 2 == 0 {
                    re = part;
                    return Ok(());
                }
                take(k / 2, T::rounded(re, part))
            })
        }
    }
}

/// The right-hand sides, which stand after the values of the matrix.
fn right_hand_sides<T: Scalar>(lines: &mut Lines<'_>, h: &Header, found: &RhsHeader) -> Result<Mat<T>> {
    let (n, count) = (h.nrows, found.count);
    let what = "values of right-hand sides";
    let zeros = |lines: &Lines<'_>, entries: usize| {
        let cells = n.saturating_mul(count);
        // As for any dense matrix from a file: the file must hold a fair part of it.
        if cells > entries.saturating_mul(64).saturating_add(1 << 26) {
            let message = format!("{count} right-hand sides of {n} rows with {entries} entries");
            return Err(Error::parse(lines.number(), ParseKind::TooLarge, message));
        }
        memory::ask(cells as u64 * size_of::<T>() as u64, "the right-hand sides in the file")?;
        Ok(Mat::zeros(n, count))
    };
    match found.storage {
        RhsStorage::Full => {
            // Appended as they are read: the sizes may lie.
            let mut all: Vec<T> = Vec::new();
            let (reads, length) = if found.on_new_lines { (count, n) } else { (1, n.saturating_mul(count)) };
            for _ in 0..reads {
                each_value(lines, &found.format, h.field, length, what, |_, value| {
                    all.push(value);
                    Ok(())
                })?;
            }
            let mut b = zeros(lines, all.len())?;
            all.chunks_exact(n.max(1)).enumerate().for_each(|(j, column)| {
                column.iter().enumerate().for_each(|(i, value)| b[(i, j)] = *value);
            });
            Ok(b)
        }
        RhsStorage::Sparse { entries } => {
            let pointers = column_pointers(lines, &h.pointers, count, entries, "pointers of right-hand sides")?;
            let mut rows = Vec::new();
            each_field(lines, &h.indices, entries, "row indices of right-hand sides", |_, text| {
                rows.push(row_index(text, n)? - 1);
                Ok(())
            })?;
            let mut values: Vec<T> = Vec::new();
            each_value(lines, &found.format, h.field, entries, what, |_, value| {
                values.push(value);
                Ok(())
            })?;
            let mut b = zeros(lines, entries)?;
            for j in 0..count {
                for k in pointers[j] as usize..pointers[j + 1] as usize {
                    b[(rows[k], j)] += values[k];
                }
            }
            Ok(b)
        }
    }
}

fn body<T: Scalar>(lines: &mut Lines<'_>, h: &Header, monitor: &mut dyn Monitor) -> Result<Csr<T>> {
    let pointers = column_pointers(lines, &h.pointers, h.ncols, h.nnz, "column pointers")?;

    // Row indices, each with its column.
    let mut entries: Vec<Entry<T>> = Vec::new();
    let mut col = 0;
    each_field(lines, &h.indices, h.nnz, "row indices", |k, text| {
        let i = row_index(text, h.nrows)?;
        while pointers[col + 1] as usize <= k {
            col += 1;
        }
        let (i, j) = (i as u32 - 1, col as u32);
        if h.symmetry != Symmetry::General && i < j {
            let message = format!("entry ({}, {}) above the diagonal of a symmetric type", i + 1, j + 1);
            return Err((ParseKind::BadEntry, message));
        }
        if entries.len() == entries.capacity() {
            memory::ask((2 * entries.len() * size_of::<Entry<T>>()) as u64, "the entries in the file")
                .map_err(|e| (ParseKind::TooLarge, e.to_string()))?;
        }
        entries.push((i, j, T::rounded(1.0, 0.0)));
        Ok(())
    })?;
    drop(pointers);
    if !observed(lines, monitor) {
        let source = io::Error::new(io::ErrorKind::Interrupted, "reading was stopped");
        return Err(Error::Io { file: lines.name().to_owned(), source });
    }
    if h.field != Field::Pattern {
        each_value(lines, &h.values, h.field, h.nnz, "values", |k, value| {
            let (i, j, _) = entries[k];
            entries[k].2 = value;
            match h.symmetry {
                Symmetry::SkewSymmetric | Symmetry::Hermitian if i == j => {
                    crate::matrix_market::check_diagonal(h.symmetry, i as usize + 1, value)
                }
                _ => Ok(()),
            }
        })?;
    }
    observed(lines, monitor);
    // They are mirrored, and become a matrix beside their list.
    let mirrored = if h.symmetry == Symmetry::General { 1 } else { 2 } * entries.len();
    memory::ask((mirrored * size_of::<Entry<T>>()) as u64, "the matrix in the file")?;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sniffing() {
        assert!(looks_like(b"title\n 1 1 1 0 0\nRUA  2 2 3 0\n(I5)\n"));
        assert!(!looks_like(b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n"));
        assert!(!looks_like(b""));
    }
}
