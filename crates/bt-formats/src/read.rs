//! A matrix from a file of any known format.

use std::io::Read;
use std::path::Path;

use faer::Mat;

use crate::csr::Csr;
use crate::error::Result;
use crate::harwell_boeing;
use crate::matrix_market::source::{Lines, Source};
use crate::matrix_market::{self, named};
use crate::monitor::Monitor;
use crate::operator::{LinearOperator, Matrix};
use crate::petsc;
use crate::scalar::c64;

/// A matrix as a file has it: real or complex.
#[derive(Clone, Debug, PartialEq)]
pub enum FileMatrix {
    /// Real, integer or pattern (ones).
    Real(Csr<f64>),
    /// Complex.
    Complex(Csr<c64>),
}

impl FileMatrix {
    /// Rows.
    pub fn nrows(&self) -> usize {
        match self {
            Self::Real(a) => a.nrows(),
            Self::Complex(a) => a.nrows(),
        }
    }
    /// Columns.
    pub fn ncols(&self) -> usize {
        match self {
            Self::Real(a) => a.ncols(),
            Self::Complex(a) => a.ncols(),
        }
    }
    /// Stored entries.
    pub fn nnz(&self) -> usize {
        match self {
            Self::Real(a) => a.nnz(),
            Self::Complex(a) => a.nnz(),
        }
    }
}

/// Right-hand sides as a file has them: real or complex.
#[derive(Clone, Debug, PartialEq)]
pub enum FileDense {
    /// Real, integer or pattern (ones).
    Real(Mat<f64>),
    /// Complex.
    Complex(Mat<c64>),
}

impl FileDense {
    /// Rows.
    pub fn nrows(&self) -> usize {
        match self {
            Self::Real(x) => x.nrows(),
            Self::Complex(x) => x.nrows(),
        }
    }
    /// Columns.
    pub fn ncols(&self) -> usize {
        match self {
            Self::Real(x) => x.ncols(),
            Self::Complex(x) => x.ncols(),
        }
    }
}

/// What becomes of right-hand sides that stand in the file of the matrix (Harwell–Boeing, PETSc).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RhsInFile {
    /// They are read.
    Read,
    /// They are not read, and a note says so.
    Skip,
}

/// What a file of a matrix holds.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The matrix.
    pub matrix: FileMatrix,
    /// Right-hand sides of the file, as many rows as the matrix has.
    pub rhs: Option<FileDense>,
    /// Sentences on what was not taken as it stands: rounded integers, vectors left aside.
    pub notes: Vec<String>,
}

/// What a file of right-hand sides holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The columns, n × s.
    pub values: FileDense,
    /// As in [`System`].
    pub notes: Vec<String>,
}

/// Reads a file of Matrix Market, Harwell–Boeing or PETSc (binary), plain or gzip. The format follows from the bytes
/// of PETSc, else from the name's ending (`.mtx`; `.rua`, `.rsa`, … and `.hb`, `.rb`), else from the text.
///
/// # Errors
/// Those of [`matrix_market::read`] and [`harwell_boeing::read`]; a file of no known format is reported as a
/// Matrix Market file without banner, an archive by its name.
pub fn read_matrix(path: impl AsRef<Path>) -> Result<FileMatrix> {
    read_matrix_with(path, &mut ())
}

/// [`read_matrix`] with progress and cancellation as in [`matrix_market::read_with`].
///
/// # Errors
/// As [`read_matrix`]; [`crate::Error::Io`] of kind `Interrupted` when the monitor breaks.
pub fn read_matrix_with(path: impl AsRef<Path>, monitor: &mut dyn Monitor) -> Result<FileMatrix> {
    Ok(read_system(path, RhsInFile::Skip, monitor)?.matrix)
}

/// [`read_matrix_with`] and the right-hand sides in the same file.
///
/// # Errors
/// As [`read_matrix_with`].
pub fn read_system(path: impl AsRef<Path>, wanted: RhsInFile, monitor: &mut dyn Monitor) -> Result<System> {
    let path = path.as_ref();
    named(path, || system(Source::open(path)?, path, wanted, monitor))
}

/// [`read_system`] from anything that is read once, a pipe for example; `name` stands for the file in errors.
///
/// # Errors
/// As [`read_system`].
pub fn read_system_from(
    reader: impl Read + Send,
    name: impl AsRef<Path>,
    wanted: RhsInFile,
    monitor: &mut dyn Monitor,
) -> Result<System> {
    let name = name.as_ref();
    named(name, || system(Source::new(reader, name, 0)?, name, wanted, monitor))
}

/// Reads right-hand sides: Matrix Market (array or coordinate) or a vector of PETSc, plain or gzip. `accept` judges
/// rows and columns before the rest is read, so that a matrix named by mistake is not made dense.
///
/// # Errors
/// As [`read_matrix`], and those of `accept`.
pub fn read_columns(
    path: impl AsRef<Path>,
    accept: &dyn Fn(usize, usize) -> Result<()>,
    monitor: &mut dyn Monitor,
) -> Result<Columns> {
    let path = path.as_ref();
    named(path, || columns(Source::open(path)?, accept, monitor))
}

/// [`read_columns`] from anything; `name` stands for the file in errors.
///
/// # Errors
/// As [`read_columns`].
pub fn read_columns_from(
    reader: impl Read + Send,
    name: impl AsRef<Path>,
    accept: &dyn Fn(usize, usize) -> Result<()>,
    monitor: &mut dyn Monitor,
) -> Result<Columns> {
    let name = name.as_ref();
    named(name, || columns(Source::new(reader, name, 0)?, accept, monitor))
}

fn system(source: Source<'_>, name: &Path, wanted: RhsInFile, monitor: &mut dyn Monitor) -> Result<System> {
    if petsc::looks_like(source.head()) {
        return petsc::system(&mut source.into_bytes(), wanted, monitor);
    }
    let lines = Lines::new(source)?;
    let harwell_boeing = match known_ending(name) {
        Some(known) => known,
        None => harwell_boeing::looks_like(lines.peek()),
    };
    if harwell_boeing {
        harwell_boeing::any_from(lines, wanted, monitor)
    } else {
        matrix_market::any_from(lines, monitor)
    }
}

fn columns(
    source: Source<'_>,
    accept: &dyn Fn(usize, usize) -> Result<()>,
    monitor: &mut dyn Monitor,
) -> Result<Columns> {
    if petsc::looks_like(source.head()) {
        return petsc::columns(&mut source.into_bytes(), accept, monitor);
    }
    matrix_market::columns_from(Lines::new(source)?, accept, monitor)
}

/// Whether the name says Harwell–Boeing (`Some(true)`) or Matrix Market (`Some(false)`).
fn known_ending(path: &Path) -> Option<bool> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let (_, ending) = name.rsplit_once('.')?;
    match ending {
        "mtx" | "mm" => Some(false),
        "hb" | "rb" => Some(true),
        _ => {
            let kind = ending.as_bytes();
            let code = kind.len() == 3 && harwell_boeing::is_type_code(kind);
            code.then_some(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (name, expected) in [
            ("a.mtx", Some(false)),
            ("a.b.MTX.gz", Some(false)),
            ("x/a.rua", Some(true)),
            ("a.RSA.gz", Some(true)),
            ("a.cha", Some(true)),
            ("a.txt", None),
            ("mtx", None),
        ] {
            assert_eq!(known_ending(Path::new(name)), expected, "{name}");
        }
    }
}
