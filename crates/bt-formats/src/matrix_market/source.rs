//! Text input as chunks of whole lines: plain or gzip, file or any reader, bounded memory.
//!
//! A chunk is cut at its last line end; what follows moves to the front of the next one. Memory is two chunks
//! (one being parsed, one being read), whatever the length of the input.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memrchr};

use crate::error::{Error, ParseKind, Result};

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

/// Input cut into chunks of whole lines.
pub(crate) struct Source<'r> {
    input: Box<dyn Read + Send + 'r>,
    name: PathBuf,
    tail: Vec<u8>,
    chunk: usize,
    ended: bool,
    bytes: Arc<AtomicU64>,
    total: u64,
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
    pub(crate) fn new(reader: impl Read + Send + 'r, name: &Path, total: u64) -> Result<Self> {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut raw = Counted { inner: reader, bytes: bytes.clone() };
        let mut magic = Vec::with_capacity(2);
        let io = |source| Error::Io { file: name.to_owned(), source };
        raw.by_ref().take(2).read_to_end(&mut magic).map_err(io)?;
        let gzip = magic == [0x1f, 0x8b];
        let raw = Cursor::new(magic).chain(raw);
        let input: Box<dyn Read + Send + 'r> =
            if gzip { Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 18, raw))) } else { Box::new(raw) };
        Ok(Self { input, name: name.to_owned(), tail: Vec::new(), chunk: 0, ended: false, bytes, total })
    }

    /// Name of the file, for errors.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Bytes read so far and bytes in all (the former again where the latter is unknown).
    pub(crate) fn progress(&self) -> (usize, usize) {
        let done = self.bytes.load(Ordering::Relaxed);
        (done as usize, self.total.max(done) as usize)
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
            if first {
                // Small files take small memory.
                spare.reserve(self.chunk.min(self.total as usize + 1));
            } else {
                spare.reserve(self.chunk);
            }
            let read = self.input.by_ref().take(self.chunk as u64).read_to_end(&mut spare);
            read.map_err(|source| Error::Io { file: self.name.clone(), source })?;
            self.ended = spare.len() - start < self.chunk;
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
    fn byte_order_mark_is_skipped_and_lines_are_counted() {
        let mut lines = Lines::new(source(b"\xEF\xBB\xBFa\r\n\nb")).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some(&b"a"[..]));
        assert_eq!(lines.next_line().unwrap(), Some(&b""[..]));
        assert_eq!(lines.next_line().unwrap(), Some(&b"b"[..]));
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let text = vec![b'x'; MAX_LINE + CHUNK + FIRST_CHUNK];
        let mut s = source(&text);
        assert!(matches!(s.next_chunk(Vec::new()), Err(Error::Parse { kind: ParseKind::BadEntry, .. })));
    }
}
