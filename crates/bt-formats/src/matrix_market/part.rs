//! A file read in parts, for readers that see a range of its bytes each: where the entries begin, and the entries of whole lines.
//!
//! What a part holds, and what is wrong with it, is what [`super::read_from`] finds there. Counting entries and lines over the parts is
//! left to the caller, who has them all: [`count_error`] has the words.

use std::path::Path;

use super::assemble::Buckets;
use super::body::{self, Rounded};
use super::header::{Comments, Header};
use super::source::{Lines, Source};
use super::{check_field, named};
use crate::error::{Error, ParseKind, Result};
use crate::scalar::Scalar;

/// What stands before the entries of a file, and where they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Banner and sizes; comments are not kept.
    pub header: Header,
    /// Lines up to the one with the sizes.
    pub lines: u64,
    /// The byte of the file that follows that line; none in a packed file.
    pub offset: Option<u64>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Reads banner and sizes, nothing more.
///
/// # Errors
/// As [`super::read`].
pub fn read_head(path: impl AsRef<Path>) -> Result<Head> {
    let path = path.as_ref();
    named(path, || Ok(open(path)?.0))
}

fn open(path: &Path) -> Result<(Head, Source<'static>, Vec<u8>)> {
    let source = Source::open(path)?;
    let packed = source.is_packed();
    let mut lines = Lines::new(source)?;
    let header = Header::parse(&mut lines, Comments::Skipped)?;
    let (source, mut chunk, at, number) = lines.into_rest();
    chunk.drain(..at);
    let (read, bytes) = source.progress();
    let offset = (!packed).then(|| (read - source.tail_len() - chunk.len()) as u64);
    Ok((Head { header, lines: number, offset, bytes: bytes as u64 }, source, chunk))
}

/// The text behind the sizes, unpacked, in whole lines of bounded size.
pub struct Chunks {
    source: Source<'static>,
    first: Option<Vec<u8>>,
}

impl Chunks {
    /// Of a file.
    ///
    /// # Errors
    /// As [`super::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        named(path, || open(path).map(|(_, source, chunk)| Self { source, first: Some(chunk) }))
    }

    /// The next lines; none at the end.
    ///
    /// # Errors
    /// Those of the system, and of packed data.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.source.next_chunk(Vec::new()),
        }
    }
}

/// What whole lines hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<D> {
    /// Entries or values up to the fault, in the file's order.
    pub data: D,
    /// How many of the file that were, without those that symmetry implies.
    pub entries: usize,
    /// Lines up to the fault.
    pub lines: u64,
    /// What is wrong with the line that follows.
    pub fault: Option<(ParseKind, String)>,
    /// Numbers that are no doubles.
    pub rounded: Rounded,
}

/// The entries of whole lines, (row, column, value) from 0, with those that symmetry implies; of one place in the file's order.
///
/// ```
/// use bt_formats::matrix_market::{entries_of, read_head};
/// let path = std::env::temp_dir().join("bt-formats-part-example.mtx");
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 -1\n")?;
/// let head = read_head(&path)?;
/// assert_eq!((head.lines, head.offset), (2, Some(54)));
/// assert_eq!(entries_of::<f64>(b"2 1 -1\n", &head.header).data, [(1, 0, -1.0), (0, 1, -1.0)]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn entries_of<T: Scalar>(text: &[u8], header: &Header) -> Part<Vec<(u32, u32, T)>> {
    let body::Parsed { data, rounded, entries, lines, fault } =
        body::coordinate_part::<T>(text, header, Buckets::of(header.nrows));
    Part { data: data.into_entries(), entries, lines, fault, rounded }
}

/// The values of whole lines of an array file.
pub fn values_of<T: Scalar>(text: &[u8], header: &Header) -> Part<Vec<T>> {
    let body::Parsed { data, rounded, entries, lines, fault } = body::values::<T>(text, header);
    Part { data, entries, lines, fault, rounded }
}

/// The line, from 1, of the entry with so many before it in the text; none where there are fewer.
pub fn line_of_entry(text: &[u8], before: usize) -> Option<u64> {
    Some(body::nth_data_line(text, before)).filter(|line| *line > 0)
}

/// The entries in the text, whatever they are.
pub fn count_entries(text: &[u8]) -> usize {
    body::count_data_lines(text)
}

/// A file that ends after `found` entries at this line, or where the line has one more than are declared.
pub fn count_error(header: &Header, found: usize, line: u64) -> Error {
    if found < header.entries {
        Error::parse(line, ParseKind::TooFewEntries, body::too_few(header, found))
    } else {
        Error::parse(line, ParseKind::TooManyEntries, body::too_many(header))
    }
}

/// Refuses complex values where real ones are asked for.
///
/// # Errors
/// [`ParseKind::Unsupported`].
pub fn check_scalar<T: Scalar>(header: &Header) -> Result<()> {
    check_field::<T>(header)
}
