//! A matrix from a file of any known format.

use std::path::Path;

use crate::csr::Csr;
use crate::error::Result;
use crate::harwell_boeing;
use crate::matrix_market::source::{Lines, Source};
use crate::matrix_market::{self, named};
use crate::monitor::Monitor;
use crate::operator::{LinearOperator, Matrix};
use crate::scalar::c64;

/// A matrix as a file has it: real or complex.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyMatrix {
    /// Real, integer or pattern (ones).
    Real(Csr<f64>),
    /// Complex.
    Complex(Csr<c64>),
}

impl AnyMatrix {
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

/// Reads a Matrix Market or Harwell–Boeing file, plain or gzip. The format follows from the name's ending
/// (`.mtx`; `.rua`, `.rsa`, … and `.hb`, `.rb`), else from the text.
///
/// # Errors
/// Those of [`matrix_market::read`] and [`harwell_boeing::read`]; a file of no known format is reported as a
/// Matrix Market file without banner.
pub fn read_matrix(path: impl AsRef<Path>) -> Result<AnyMatrix> {
    read_matrix_with(path, &mut ())
}

/// [`read_matrix`] with progress and cancellation as in [`matrix_market::read_with`].
///
/// # Errors
/// As [`read_matrix`]; [`crate::Error::Io`] of kind `Interrupted` when the monitor breaks.
pub fn read_matrix_with(path: impl AsRef<Path>, monitor: &mut dyn Monitor) -> Result<AnyMatrix> {
    let path = path.as_ref();
    named(path, || {
        let lines = Lines::new(Source::open(path)?)?;
        let harwell_boeing = match known_ending(path) {
            Some(known) => known,
            None => harwell_boeing::looks_like(lines.peek()),
        };
        if harwell_boeing { harwell_boeing::any_from(lines, monitor) } else { matrix_market::any_from(lines, monitor) }
    })
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
