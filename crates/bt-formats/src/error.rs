//! What can go wrong with input: one error type for formats, files and sizes.
//!
//! Errors carry the place (file and line, or row and column, or block) as data, and [`Error::help`] says
//! what to do where something can be done.

use std::path::PathBuf;

/// Result of an operation on formats and files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file could not be read as a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseKind {
    /// First line is not a banner of this format.
    BadBanner,
    /// Legal file, but of a kind this reader does not take (complex values in a real reader, a vector object).
    Unsupported,
    /// Size line missing, malformed, negative, overflowing, or inconsistent with the symmetry.
    BadSize,
    /// An entry line has the wrong number of tokens or breaks the declared symmetry.
    BadEntry,
    /// A token is not a number of the required kind.
    BadNumber,
    /// A row or column index outside the declared size.
    IndexOutOfRange,
    /// The file ends before the declared number of entries.
    TooFewEntries,
    /// Data after the declared number of entries.
    TooManyEntries,
    /// A NaN or infinite value, or one that overflows the type.
    NonFinite,
    /// Declared sizes beyond what indices or memory can hold.
    TooLarge,
}

/// An input that cannot be used, with its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that is not what its format demands. `line` counts from 1; 0 when no single line is to blame.
    #[error("{}", place(file, *line, message))]
    Parse {
        /// File as named by the caller, empty when read from memory.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Class of the error.
        kind: ParseKind,
        /// What was found and what was expected.
        message: String,
    },
    /// The operating system refused to read or write.
    #[error("{}: {source}", file.display())]
    Io {
        /// File or folder concerned.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    DimensionMismatch {
        /// Which sizes.
        what: &'static str,
        /// What the other operand demands.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A matrix that must be square is not.
    #[error("the matrix is {nrows} × {ncols}; a linear system needs a square one")]
    NotSquare {
        /// Rows.
        nrows: usize,
        /// Columns.
        ncols: usize,
    },
    /// A NaN or infinite entry. Row and column count from 0.
    #[error("{what}: entry at row {row}, column {col} (from 0) is {value}, not a finite number")]
    NonFinite {
        /// Matrix or right-hand side.
        what: &'static str,
        /// Row from 0.
        row: usize,
        /// Column from 0.
        col: usize,
        /// The value as text: NaN, inf, -inf, or a complex number with one.
        value: String,
    },
    /// An entry outside the structure it was to be stored in (band, three block diagonals, …).
    #[error("entry at row {row}, column {col} (from 0) {why}")]
    OutsideStructure {
        /// Row from 0.
        row: usize,
        /// Column from 0.
        col: usize,
        /// Which structure, and how far outside; names the blocks where there are blocks.
        why: String,
    },
    /// A structural array that contradicts itself (pointers not increasing, columns unsorted, index too large).
    #[error("invalid {what}: {why}")]
    InvalidStructure {
        /// Which array or argument.
        what: &'static str,
        /// What is wrong with it, and where.
        why: String,
    },
    /// Memory that would be needed and is not there, found by [`crate::memory::ask`] before it was taken.
    #[error(
        "not enough memory: {what} needs about {}, {} available",
        crate::memory::in_words(*needed),
        crate::memory::in_words(*available)
    )]
    NotEnoughMemory {
        /// What the memory is for.
        what: String,
        /// Bytes needed, by estimate.
        needed: u64,
        /// Bytes that may be taken.
        available: u64,
    },
    /// Sizes beyond 32-bit indices, or beyond the memory that could be had.
    #[error("{what} needs {needed}, more than {limit}")]
    TooLarge {
        /// What was to be stored.
        what: &'static str,
        /// How much it takes.
        needed: String,
        /// The limit and whose it is.
        limit: String,
    },
}

fn place(file: &std::path::Path, line: u64, message: &str) -> String {
    match (file.as_os_str().is_empty(), line) {
        (true, 0) => message.to_owned(),
        (true, l) => format!("line {l}: {message}"),
        (false, 0) => format!("{}: {message}", file.display()),
        (false, l) => format!("{}:{l}: {message}", file.display()),
    }
}

impl Error {
    /// A [`Error::Parse`] without a file name; the opener of the file adds it with [`Error::in_file`].
    pub fn parse(line: u64, kind: ParseKind, message: impl Into<String>) -> Self {
        Self::Parse { file: PathBuf::new(), line, kind, message: message.into() }
    }

    /// The same error with the file's name filled in where it was missing.
    pub fn in_file(mut self, name: &std::path::Path) -> Self {
        if let Self::Parse { file, .. } = &mut self
            && file.as_os_str().is_empty()
        {
            name.clone_into(file);
        }
        self
    }

    /// What the user can do about it, where something is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Parse { kind, .. } => Some(match kind {
                ParseKind::BadBanner => {
                    "the first line must read: %%MatrixMarket matrix coordinate|array real|integer|complex|pattern general|symmetric|skew-symmetric|hermitian"
                }
                ParseKind::TooFewEntries => "the file is cut off, or its size line declares too many entries",
                ParseKind::TooManyEntries => "the sizes declare or imply fewer entries than the file holds",
                ParseKind::IndexOutOfRange => "Matrix Market counts rows and columns from 1",
                ParseKind::NonFinite => "replace the value: no solver can use NaN or infinity",
                _ => return None,
            }),
            Self::NotSquare { .. } => Some("least-squares problems are not solved here"),
            Self::TooLarge { limit, .. } if limit.contains("32-bit") => {
                Some("indices are 32-bit: at most 4294967294 rows, columns and entries")
            }
            Self::NotEnoughMemory { .. } => Some(
                "take a method that needs less, a smaller problem, or a higher limit (80 % of what is available by default)",
            ),
            Self::TooLarge { .. } => Some("take another method or order (auto counts the memory), or smaller blocks"),
            _ => None,
        }
    }
}
