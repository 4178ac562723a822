//! Text input as chunks of whole lines: plain or gzip, file or any reader, bounded memory.
//!
//! A chunk is cut at its last line end; what follows moves to the front of the next one. Memory is two chunks
//! (one being parsed, one being read), whatever the length of the input. An input is opened once and never rewound,
//! so that pipes will do. Archives and other kinds of files are named, not parsed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;
use memchr::{memchr, memrchr};

use crate::error::{Error, ParseKind, Result};
use crate::foreign;
use crate::memory;

/// The first chunk is small, so that headers and small files cost little.
const FIRST_CHUNK: usize = 64 << 10;
/// Bytes of text in a full chunk.
const CHUNK: usize = 8 << 20;
/// No honest line is longer.
const MAX_LINE: usize = 16 << 20;

/// Counts the bytes that pass: progress is measured on the (compressed) file.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The members of a gzip file, one after the other; zeros after the last one are padding, as for gzip itself.
struct Members<R: BufRead> {
    current: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.current {
            let n = decoder.read(buf).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::new(e.kind(), "the gzip data is cut off"),
                _ => e,
            })?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            // The member ended, and its checksum was right.
            let next = self.current.take().map(GzDecoder::into_inner).map(after_zeros).transpose()?.flatten();
            self.current = next.map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// The reader at the next member, or `None` at the end of the input.
fn after_zeros<R: BufRead>(mut reader: R) -> io::Result<Option<R>> {
    loop {
        let text = reader.fill_buf()?;
        let zeros = text.iter().take_while(|c| **c == 0).count();
        match text.get(zeros) {
            None if text.is_empty() => return Ok(None),
            None => reader.consume(zeros),
            Some(0x1f) => {
                reader.consume(zeros);
                return Ok(Some(reader));
            }
            Some(_) => {
                let what = "something that is neither gzip nor padding follows the gzip data";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
}

/// Up to [`foreign::HEAD`] bytes.
fn read_head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(foreign::HEAD);
    input.take(foreign::HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Input cut into chunks of whole lines.
pub(crate) struct Source<'r> {
    input: Box<dyn Read + Send + 'r>,
    /// The first bytes, unpacked, which are still to come.
    head: Vec<u8>,
    name: PathBuf,
    tail: Vec<u8>,
    chunk: usize,
    ended: bool,
    bytes: Arc<AtomicU64>,
    total: u64,
    packed: bool,
}

impl Source<'static> {
    /// Opens a file; gzip is recognised by its first two bytes, whatever the name.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { file: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let total = file.metadata().map_or(0, |m| m.len());
        Self::new(file, path, total)
    }
}

impl<'r> Source<'r> {
    /// Any reader; `total` bytes are expected, 0 if unknown.
    ///
    /// # Errors
    /// Those of the reader; `Unsupported`, with what to do, for archives and other kinds of files.
    pub(crate) fn new(reader: impl Read + Send + 'r, name: &Path, total: u64) -> Result<Self> {
        let io = |source| Error::Io { file: name.to_owned(), source };
        let known = |head: &[u8]| match foreign::describe(head) {
            Some(message) => Err(Error::parse(0, ParseKind::Unsupported, message)),
            None => Ok(()),
        };
        let bytes = Arc::new(AtomicU64::new(0));
        let mut raw = Counted { inner: reader, bytes: bytes.clone() };
        let mut head = read_head(&mut raw).map_err(io)?;
        known(&head)?;
        let packed = head.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn Read + Send + 'r> = if packed {
            let raw = BufReader::with_capacity(1 << 18, Cursor::new(head).chain(raw));
            let mut members = Members { current: Some(GzDecoder::new(raw)) };
            head = read_head(&mut members).map_err(io)?;
            known(&head)?;
            Box::new(Cursor::new(head.clone()).chain(members))
        } else {
            Box::new(Cursor::new(head.clone()).chain(raw))
        };
        Ok(Self { input, head, name: name.to_owned(), tail: Vec::new(), chunk: 0, ended: false, bytes, total, packed })
    }

    /// The first bytes, at most [`foreign::HEAD`] of them, as long as nothing was read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The whole input, unpacked, as long as no chunk was taken.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send + 'r> {
        self.input
    }

    /// Name of the file, for errors.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Whether the input is packed.
    pub(crate) fn is_packed(&self) -> bool {
        self.packed
    }

    /// Bytes read that belong to the next chunk.
    pub(crate) fn tail_len(&self) -> usize {
        self.tail.len()
    }

    /// Bytes read so far and bytes in all (the former again where the latter is unknown).
    pub(crate) fn progress(&self) -> (usize, usize) {
        let done = self.bytes.load(Ordering::Relaxed);
        (done as usize, self.total.max(done) as usize)
    }

    /// No fewer than the bytes that are still to come, one more by which the end is seen; without bound where their number is unknown.
    fn to_come(&self) -> usize {
        let known = !self.packed && self.total > 0;
        let left = self.total.saturating_sub(self.bytes.load(Ordering::Relaxed)) as usize;
        if known { self.head.len() + left + 1 } else { usize::MAX }
    }

    /// The next whole lines, in `spare`'s memory; `None` at the end. Only the last line of the input may lack its end.
    pub(crate) fn next_chunk(&mut self, mut spare: Vec<u8>) -> Result<Option<Vec<u8>>> {
        spare.clear();
        spare.append(&mut self.tail);
        let first = self.chunk == 0;
        self.chunk = if first { FIRST_CHUNK } else { CHUNK };
        loop {
            if self.ended {
                return Ok((!spare.is_empty()).then_some(spare));
            }
            let start = spare.len();
            let room = self.chunk.min(self.to_come());
            // The text, and the entries that are made of it.
            memory::ask(2 * room as u64, &format!("the next lines of {}", self.name.display()))?;
            let io = |source| Error::Io { file: self.name.clone(), source };
            spare.try_reserve(room).map_err(|error| io(error.into()))?;
            let read = self.input.by_ref().take(self.chunk as u64).read_to_end(&mut spare).map_err(io)?;
            self.ended = read < self.chunk;
            if first && spare.starts_with(b"\xEF\xBB\xBF") {
                spare.drain(..3);
            }
            // The part that was there before has no line end.
            if let Some(end) = memrchr(b'\n', &spare[start.min(spare.len())..]) {
                self.tail.extend_from_slice(&spare[start + end + 1..]);
                if !self.ended {
                    spare.truncate(start + end + 1);
                } else {
                    self.tail.clear();
                }
                return Ok(Some(spare));
            }
            if spare.len() > MAX_LINE {
                return Err(Error::parse(0, ParseKind::BadEntry, format!("a line longer than {MAX_LINE} bytes"))
                    .in_file(&self.name));
            }
        }
    }
}

/// Line by line over a [`Source`], for headers and for fixed formats.
pub(crate) struct Lines<'r> {
    source: Source<'r>,
    chunk: Vec<u8>,
    at: usize,
    line: u64,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(mut source: Source<'r>) -> Result<Self> {
        let chunk = source.next_chunk(Vec::new())?.unwrap_or_default();
        Ok(Self { source, chunk, at: 0, line: 0 })
    }

    /// Number of the line returned last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// Name of the file, for errors.
    pub(crate) fn name(&self) -> &Path {
        self.source.name()
    }

    /// Bytes read so far and bytes in all.
    pub(crate) fn progress(&self) -> (usize, usize) {
        self.source.progress()
    }

    /// What is left of the chunk at hand: a look ahead that consumes nothing.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.chunk[self.at..]
    }

    /// The next line without its end (LF or CR LF).
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>> {
        if self.at == self.chunk.len() {
            let Some(chunk) = self.source.next_chunk(std::mem::take(&mut self.chunk))? else {
                return Ok(None);
            };
            (self.chunk, self.at) = (chunk, 0);
        }
        let rest = &self.chunk[self.at..];
        let (line, step) = match memchr(b'\n', rest) {
            Some(end) => (&rest[..end], end + 1),
            None => (rest, rest.len()),
        };
        self.at += step;
        self.line += 1;
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// The source, the chunk whose lines from the second number on are unread, and how many lines were read.
    pub(crate) fn into_rest(self) -> (Source<'r>, Vec<u8>, usize, u64) {
        (self.source, self.chunk, self.at, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &[u8]) -> Source<'_> {
        Source::new(text, Path::new("t"), text.len() as u64).unwrap()
    }

    #[test]
    fn chunks_are_whole_lines_and_lose_nothing() {
        let mut text = Vec::new();
        for k in 0..200_000u32 {
            text.extend_from_slice(format!("{k}\n").as_bytes());
        }
        text.extend_from_slice(b"last without end");
        let mut s = source(&text);
        let (mut all, mut chunks) = (Vec::new(), 0);
        while let Some(c) = s.next_chunk(Vec::new()).unwrap() {
            all.extend_from_slice(&c);
            chunks += 1;
            assert!(c.ends_with(b"\n") || all.len() == text.len());
        }
        assert!(chunks > 1);
        assert_eq!(all, text);
    }

    #[test]
    fn a_file_takes_memory_in_proportion() {
        let text = b"1 1 1.0\n".repeat(12 << 10);
        let mut s = source(&text);
        let first = s.next_chunk(Vec::new()).unwrap().unwrap();
        assert!(first.capacity() <= 2 * FIRST_CHUNK, "{}", first.capacity());
        let second = s.next_chunk(Vec::new()).unwrap().unwrap();
        assert_eq!(first.len() + second.len(), text.len());
        assert!(second.capacity() <= text.len(), "{}", second.capacity());
    }

    #[test]
    fn byte_order_mark_is_skipped_and_lines_are_counted() {
        let mut lines = Lines::new(source(b"\xEF\xBB\xBFa\r\n\nb")).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some(&b"a"[..]));
        assert_eq!(lines.next_line().unwrap(), Some(&b""[..]));
        assert_eq!(lines.next_line().unwrap(), Some(&b"b"[..]));
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn zeros_after_gzip_are_padding_and_anything_else_is_named() {
        use std::io::Write;
        let packed = |text: &[u8]| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        };
        let read = |bytes: &[u8]| {
            let mut all = Vec::new();
            let mut s = Source::new(bytes, Path::new("t"), 0)?;
            while let Some(chunk) = s.next_chunk(Vec::new())? {
                all.extend_from_slice(&chunk);
            }
            Ok::<_, Error>(all)
        };
        let (one, two) = (packed(b"one\n"), packed(b"two\n"));
        assert_eq!(read(&[&one[..], &two].concat()).unwrap(), b"one\ntwo\n");
        assert_eq!(read(&[&one[..], &vec![0; 1 << 19]].concat()).unwrap(), b"one\n");
        assert_eq!(read(&[&one[..], &[0; 7], &two].concat()).unwrap(), b"one\ntwo\n");
        let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(told(&[&one[..], &[0; 3], b"x"].concat()).contains("follows the gzip data"));
        assert!(told(&one[..one.len() - 9]).contains("cut off"));
        let mut wrong = one.clone();
        let crc = wrong.len() - 8;
        wrong[crc] ^= 1;
        assert!(told(&wrong).contains("checksum"), "{}", told(&wrong));
    }

    #[test]
    fn an_endless_line_is_refused() {
        let text = vec![b'x'; MAX_LINE + CHUNK + FIRST_CHUNK];
        let mut s = source(&text);
        assert!(matches!(s.next_chunk(Vec::new()), Err(Error::Parse { kind: ParseKind::BadEntry, .. })));
    }
}
