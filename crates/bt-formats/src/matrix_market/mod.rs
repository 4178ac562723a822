//! Matrix Market files (`.mtx`, `.mtx.gz`): reader and writer.
//!
//! All of coordinate and array × real, integer, complex and pattern × general, symmetric, skew-symmetric and
//! hermitian is read, with the left-out triangle filled in. Text is streamed in chunks of 8 MiB and parsed in
//! parallel; the result, and the error if there is one, are the same for any number of threads.
//!
//! Beyond the letter of the format the reader takes blank lines and comments anywhere, tabs, CR LF, a UTF-8 byte
//! order mark, a missing last line end, Fortran's D exponents, and duplicates, which it sums in file order. It
//! refuses everything else, by line: wrong counts, entries above the diagonal of a symmetric file, NaN and
//! infinity, values that overflow, indices out of range, sizes that 32-bit indices cannot hold.
//!
//! Format: Boisvert, Pozo, Remington, *The Matrix Market Exchange Formats: Initial Design*, NISTIR 5935, 1996,
//! doi:10.6028/NIST.IR.5935. Numbers: Lemire, *Number parsing at a gigabyte per second*, 2021,
//! doi:10.1002/spe.2984 (crate fast-float2).
//!
//! Memory: the text of two chunks, and (8 + size of T) bytes per entry beside the matrix while it is assembled; asked
//! for ([`crate::memory`]) as entries arrive. Comments are not kept, and at most 64 MiB of them may precede the sizes.
//! Cost: O(bytes + nrows).
//!
//! | file | case |
//! |---|---|
//! | `source.rs`, `token.rs` | text in chunks of whole lines, packed or not; numbers in it: for other formats too |
//! | `header.rs` | banner, comments and sizes |
//! | `body.rs` | entries and values, parsed in parallel |
//! | `assemble.rs` | compressed rows from entries in file order, for other formats too |
//! | `part.rs` | a file read in parts, by readers that see a range of its bytes each |
//! | `write.rs` | files written, general coordinate and array |

pub(crate) mod assemble;
mod body;
pub(crate) mod header;
mod part;
pub(crate) mod source;
pub(crate) mod token;
mod write;

use std::io::Read;
use std::path::Path;

use faer::Mat;

use self::assemble::{Buckets, Piece, assemble};
use self::header::Comments;
use self::source::{Lines, Source};
use crate::csr::Csr;
use crate::error::{Error, ParseKind, Result};
use crate::memory;
use crate::monitor::Monitor;
use crate::operator::zero;
use crate::read::{Columns, FileDense, FileMatrix, System};
use crate::scalar::{Scalar, ScalarKind};

pub use body::Rounded;
pub(crate) use body::check_diagonal;
pub use header::{Field, Header, Layout, Symmetry};
pub use part::{
    Chunks, Head, Part, check_scalar, count_entries, count_error, entries_of, line_of_entry, read_head, values_of,
};
pub use write::{write_csr, write_csr_file, write_dense, write_dense_file};

/// Reads a matrix; its header decides between `f64` and `c64`. Exact zeros of an array file are not stored.
///
/// # Errors
/// [`Error::Io`] naming the file, [`Error::Parse`] with file, line and what was expected, [`Error::TooLarge`],
/// [`Error::NotEnoughMemory`].
pub fn read(path: impl AsRef<Path>) -> Result<FileMatrix> {
    read_with(path, &mut ())
}

/// [`read`] that reports [`crate::Progress::Step`] (phase "read", bytes of the file) after every chunk.
///
/// # Errors
/// As [`read`]; [`Error::Io`] of kind `Interrupted` when the monitor breaks.
pub fn read_with(path: impl AsRef<Path>, monitor: &mut dyn Monitor) -> Result<FileMatrix> {
    named(path.as_ref(), || Ok(any_from(Lines::new(Source::open(path.as_ref())?)?, monitor)?.matrix))
}

/// [`read`] from anything; `name` stands for the file in errors. Gzip is recognised here, too.
///
/// ```
/// use bt_formats::{FileMatrix, matrix_market};
/// let text = b"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 -1\n";
/// let FileMatrix::Real(a) = matrix_market::read_from(&text[..], "inline")? else { unreachable!() };
/// assert_eq!((a.get(0, 1), a.get(1, 0)), (-1.0, -1.0));
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from(reader: impl Read + Send, name: impl AsRef<Path>) -> Result<FileMatrix> {
    named(name.as_ref(), || Ok(any_from(Lines::new(Source::new(reader, name.as_ref(), 0)?)?, &mut ())?.matrix))
}

/// Reads a matrix in a scalar type of the caller's choice; every number is rounded once.
///
/// # Errors
/// As [`read`], and `Unsupported` when a complex file is read into a real type.
pub fn read_csr<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>> {
    named(path.as_ref(), || {
        let mut lines = Lines::new(Source::open(path.as_ref())?)?;
        let header = Header::parse(&mut lines, Comments::Skipped)?;
        Ok(csr_body(lines, &header, &mut ())?.0)
    })
}

/// Reads right-hand sides or solutions: an array or coordinate file, n × s, as a dense matrix.
///
/// # Errors
/// As [`read_csr`].
pub fn read_dense<T: Scalar>(path: impl AsRef<Path>) -> Result<Mat<T>> {
    named(path.as_ref(), || {
        let mut lines = Lines::new(Source::open(path.as_ref())?)?;
        let header = Header::parse(&mut lines, Comments::Skipped)?;
        Ok(dense_body(lines, &header, &mut ())?.0)
    })
}

/// Reads banner, comments and sizes, nothing more.
///
/// # Errors
/// As [`read`].
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    named(path.as_ref(), || Header::parse(&mut Lines::new(Source::open(path.as_ref())?)?, Comments::Kept))
}

/// Puts the file's name into an error that has none.
pub(crate) fn named<R>(name: &Path, run: impl FnOnce() -> Result<R>) -> Result<R> {
    run().map_err(|e| match e {
        Error::Io { file, source } if file.as_os_str().is_empty() => Error::Io { file: name.to_owned(), source },
        e => e.in_file(name),
    })
}

pub(crate) fn any_from(mut lines: Lines<'_>, monitor: &mut dyn Monitor) -> Result<System> {
    let header = Header::parse(&mut lines, Comments::Skipped)?;
    let (matrix, rounded) = if header.field == Field::Complex {
        let (a, rounded) = csr_body(lines, &header, monitor)?;
        (FileMatrix::Complex(a), rounded)
    } else {
        let (a, rounded) = csr_body(lines, &header, monitor)?;
        (FileMatrix::Real(a), rounded)
    };
    Ok(System { matrix, rhs: None, notes: rounded.notes() })
}

/// Right-hand sides whose rows and columns are accepted before the rest of the file is read.
pub(crate) fn columns_from(
    mut lines: Lines<'_>,
    accept: &dyn Fn(usize, usize) -> Result<()>,
    monitor: &mut dyn Monitor,
) -> Result<Columns> {
    let header = Header::parse(&mut lines, Comments::Skipped)?;
    accept(header.nrows, header.ncols)?;
    let (values, rounded) = if header.field == Field::Complex {
        let (x, rounded) = dense_body(lines, &header, monitor)?;
        (FileDense::Complex(x), rounded)
    } else {
        let (x, rounded) = dense_body(lines, &header, monitor)?;
        (FileDense::Real(x), rounded)
    };
    Ok(Columns { values, notes: rounded.notes() })
}

fn check_field<T: Scalar>(h: &Header) -> Result<()> {
    if h.field == Field::Complex && matches!(T::KIND, ScalarKind::F32 | ScalarKind::F64) {
        let message = format!("the file holds complex values, real ones ({}) were asked for", T::KIND);
        return Err(Error::parse(1, ParseKind::Unsupported, message));
    }
    Ok(())
}

fn csr_body<T: Scalar>(lines: Lines<'_>, h: &Header, monitor: &mut dyn Monitor) -> Result<(Csr<T>, Rounded)> {
    check_field::<T>(h)?;
    let (pieces, rounded) = match h.layout {
        Layout::Coordinate => body::coordinate(lines, h, monitor)?,
        Layout::Array => {
            let (packed, rounded) = body::array::<T>(lines, h, monitor)?;
            let cells = h.nrows as u64 * h.ncols as u64;
            memory::ask(cells * (8 + size_of::<T>() as u64), "the entries of the array")?;
            let mut entries = Vec::new();
            unpack(h, &packed, |i, j, v| {
                if v != zero() {
                    entries.push((i as u32, j as u32, v));
                }
            })?;
            crate::csr::check_nnz(entries.len())?;
            (vec![Piece::new(entries, Buckets::of(h.nrows))], rounded)
        }
    };
    Ok((assemble(h.nrows, h.ncols, &pieces)?, rounded))
}

fn dense_body<T: Scalar>(lines: Lines<'_>, h: &Header, monitor: &mut dyn Monitor) -> Result<(Mat<T>, Rounded)> {
    check_field::<T>(h)?;
    match h.layout {
        Layout::Array => {
            let (packed, rounded) = body::array::<T>(lines, h, monitor)?;
            let mut a = try_zeros(h)?;
            unpack(h, &packed, |i, j, v| a[(i, j)] = v)?;
            Ok((a, rounded))
        }
        Layout::Coordinate => {
            let (pieces, rounded) = body::coordinate::<T>(lines, h, monitor)?;
            let mut a = try_zeros(h)?;
            for &(i, j, v) in pieces.iter().flat_map(Piece::entries) {
                a[(i as usize, j as usize)] += v;
            }
            Ok((a, rounded))
        }
    }
}

/// A dense zero matrix of the header's size, if its memory can be had.
fn try_zeros<T: Scalar>(h: &Header) -> Result<Mat<T>> {
    let cells = h.nrows * h.ncols; // each below 2³²
    // 512 MiB, or 64 cells an entry: more would be a sparse matrix given as a right-hand side.
    let believable = cells <= h.entries.saturating_mul(64).saturating_add(1 << 26);
    let had = believable && Vec::<T>::new().try_reserve_exact(cells).is_ok();
    if !had {
        return Err(Error::TooLarge {
            what: "a dense matrix from file",
            needed: format!("{} × {} values, {} of them in the file", h.nrows, h.ncols, h.entries),
            limit: "the memory that could be had".into(),
        });
    }
    memory::ask((cells * size_of::<T>()) as u64, "the dense matrix in the file")?;
    Ok(Mat::zeros(h.nrows, h.ncols))
}

/// Visits every entry of an array file, the implied triangle included.
fn unpack<T: Scalar>(h: &Header, packed: &[T], mut visit: impl FnMut(usize, usize, T)) -> Result<()> {
    let mut values = packed.iter().copied();
    for j in 0..h.ncols {
        let first = match h.symmetry {
            Symmetry::General => 0,
            Symmetry::SkewSymmetric => j + 1,
            Symmetry::Symmetric | Symmetry::Hermitian => j,
        };
        for (i, v) in (first..h.nrows).zip(values.by_ref()) {
            if i == j {
                check_diagonal(h.symmetry, i + 1, v).map_err(|(kind, message)| Error::parse(0, kind, message))?;
            }
            visit(i, j, v);
            match h.symmetry {
                _ if i == j => {}
                Symmetry::General => {}
                Symmetry::Symmetric => visit(j, i, v),
                Symmetry::SkewSymmetric => visit(j, i, -v),
                Symmetry::Hermitian => visit(j, i, Scalar::conj(v)),
            }
        }
    }
    Ok(())
}
