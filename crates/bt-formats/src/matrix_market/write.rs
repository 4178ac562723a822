//! Writer: general coordinate and array files whose numbers are the shortest decimals that read back exactly.

use std::io::{self, Write};
use std::path::Path;

use faer::MatRef;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::header::Layout;
use crate::atomic_file::write_atomically;
use crate::csr::Csr;
use crate::error::Result;
use crate::operator::{LinearOperator, Matrix};
use crate::scalar::{RealScalar, Scalar, ScalarKind};

/// Writes a sparse matrix as `coordinate real|complex general`, row by row; every stored entry, zeros too.
///
/// Each comment becomes one or more lines that start with `% `.
///
/// ```
/// use bt_formats::{Coo, matrix_market};
/// let mut a = Coo::new(2, 2)?;
/// a.push(0, 1, 0.1)?;
/// let mut text = Vec::new();
/// matrix_market::write_csr(&a.to_csr()?, &mut text, &["one entry".into()])?;
/// assert_eq!(text, b"%%MatrixMarket matrix coordinate real general\n% one entry\n2 2 1\n1 2 0.1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of the writer, and `InvalidData` for a NaN or infinite entry, which no reader would take.
pub fn write_csr<T: Scalar>(a: &Csr<T>, out: &mut (impl Write + ?Sized), comments: &[String]) -> io::Result<()> {
    let mut text = Text::<_>::new(out);
    text.head::<T>(Layout::Coordinate, comments);
    text.line(format_args!("{} {} {}", a.nrows(), a.ncols(), a.nnz()))?;
    for i in 0..a.nrows() {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals) {
            text.index(i + 1);
            text.index(j as usize + 1);
            text.value(v, i, j as usize)?;
        }
    }
    text.finish()
}

/// Writes a dense matrix as `array real|complex general`, column by column.
///
/// # Errors
/// As [`write_csr`].
pub fn write_dense<T: Scalar>(
    a: MatRef<'_, T>,
    out: &mut (impl Write + ?Sized),
    comments: &[String],
) -> io::Result<()> {
    let mut text = Text::new(out);
    text.head::<T>(Layout::Array, comments);
    text.line(format_args!("{} {}", a.nrows(), a.ncols()))?;
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            text.value(a[(i, j)], i, j)?;
        }
    }
    text.finish()
}

/// [`write_csr`] to a file, atomically; gzip when the name ends in `.gz`.
///
/// # Errors
/// [`crate::Error::Io`] naming the file; an existing file is then untouched.
pub fn write_csr_file<T: Scalar>(path: impl AsRef<Path>, a: &Csr<T>, comments: &[String]) -> Result<()> {
    to_file(path.as_ref(), |out| write_csr(a, out, comments))
}

/// [`write_dense`] to a file, atomically; gzip when the name ends in `.gz`.
///
/// # Errors
/// [`crate::Error::Io`] naming the file; an existing file is then untouched.
pub fn write_dense_file<T: Scalar>(path: impl AsRef<Path>, a: MatRef<'_, T>, comments: &[String]) -> Result<()> {
    to_file(path.as_ref(), |out| write_dense(a, out, comments))
}

fn to_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let gzip = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    write_atomically(path, |out| {
        if !gzip {
            return write(out);
        }
        let mut packed = GzEncoder::new(out, Compression::default());
        write(&mut packed)?;
        packed.finish().map(drop)
    })
}

/// Lines gathered into blocks.
struct Text<'w, W: ?Sized> {
    out: &'w mut W,
    buffer: Vec<u8>,
    number: zmij::Buffer,
}

const BLOCK: usize = 1 << 16;

impl<'w, W: Write + ?Sized> Text<'w, W> {
    fn new(out: &'w mut W) -> Self {
        Self { out, buffer: Vec::with_capacity(BLOCK + 256), number: zmij::Buffer::new() }
    }

    fn head<T: Scalar>(&mut self, layout: Layout, comments: &[String]) {
        let field = match T::KIND {
            ScalarKind::F32 | ScalarKind::F64 => "real",
            ScalarKind::C32 | ScalarKind::C64 => "complex",
        };
        self.buffer.extend_from_slice(format!("%%MatrixMarket matrix {} {field} general\n", layout.word()).as_bytes());
        for line in comments.iter().flat_map(|c| c.split(['\n', '\r'])) {
            self.buffer.extend_from_slice(b"% ");
            self.buffer.extend_from_slice(line.as_bytes());
            self.buffer.push(b'\n');
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.buffer, "{text}")
    }

    fn index(&mut self, mut i: usize) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (i % 10) as u8;
            i /= 10;
            if i == 0 {
                break;
            }
        }
        self.buffer.extend_from_slice(&digits[at..]);
        self.buffer.push(b' ');
    }

    /// The value and the end of the line. (i, j) from 0 is its place.
    fn value<T: Scalar>(&mut self, v: T, i: usize, j: usize) -> io::Result<()> {
        if !Scalar::is_finite(v) {
            let message = format!("entry ({}, {}) is {v}: Matrix Market holds finite numbers", i + 1, j + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.real::<T>(v.re());
        if matches!(T::KIND, ScalarKind::C32 | ScalarKind::C64) {
            self.buffer.push(b' ');
            self.real::<T>(v.im());
        }
        self.buffer.push(b'\n');
        if self.buffer.len() >= BLOCK {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Shortest decimal that reads back as the same number of type `T::Real`.
    fn real<T: Scalar>(&mut self, x: T::Real) {
        let x = x.to_f64();
        let text = match T::KIND {
            ScalarKind::F32 | ScalarKind::C32 => self.number.format_finite(x as f32),
            ScalarKind::F64 | ScalarKind::C64 => self.number.format_finite(x),
        };
        let text = text.strip_suffix(".0").unwrap_or(text);
        self.buffer.extend_from_slice(text.as_bytes());
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.out.flush()
    }
}
