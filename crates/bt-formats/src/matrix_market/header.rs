//! Banner, comments and size line.

use super::source::Lines;
use super::token::{careful_size, shown, tokens};
use crate::error::{Error, ParseKind, Result};

/// How the entries are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One `row column value` a line, from 1, any order.
    Coordinate,
    /// All values, one a line, column by column.
    Array,
}

/// What an entry's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A decimal number.
    Real,
    /// A whole number; read as a real one.
    Integer,
    /// Real and imaginary part.
    Complex,
    /// Nothing: the entry is 1.
    Pattern,
}

/// Which entries are left out because others imply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// None.
    General,
    /// The upper triangle: aⱼᵢ = aᵢⱼ.
    Symmetric,
    /// The upper triangle and the zero diagonal: aⱼᵢ = −aᵢⱼ.
    SkewSymmetric,
    /// The upper triangle: aⱼᵢ is the conjugate of aᵢⱼ.
    Hermitian,
}

/// What stands before the entries of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Coordinate or array.
    pub layout: Layout,
    /// Kind of values.
    pub field: Field,
    /// Entries left out.
    pub symmetry: Symmetry,
    /// Rows of the matrix.
    pub nrows: usize,
    /// Columns of the matrix.
    pub ncols: usize,
    /// Entries that the file is to hold: declared (coordinate) or implied by the sizes (array).
    pub entries: usize,
    /// Comment lines without their `%`, in order, as many as fit into 1 MiB; none where only the matrix is read.
    pub comments: Vec<String>,
}

/// Rows and columns that need no entries to be believed: 512 MiB of row pointers.
const FREE_ROWS: usize = 1 << 27;
/// Memory that comments may take.
const KEPT_COMMENTS: usize = 1 << 20;
/// Comments before the size line, at most: a small packed file can hold far more, and nobody writes them.
const LONGEST_HEADER: usize = 64 << 20;

/// What becomes of the comments in a header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Comments {
    Kept,
    Skipped,
}

impl Header {
    /// Reads up to and including the size line.
    pub(super) fn parse(lines: &mut Lines<'_>, wanted: Comments) -> Result<Self> {
        let (layout, field, symmetry) = match lines.next_line()? {
            Some(line) => banner(line)?,
            None => return Err(bad_banner("the file is empty")),
        };
        let mut comments = Vec::new();
        let (mut kept, mut seen) = (0, 0);
        let [nrows, ncols, declared] = loop {
            let Some(line) = lines.next_line()? else {
                let message = "the file ends before its size line".to_owned();
                return Err(Error::parse(lines.number(), ParseKind::BadSize, message));
            };
            seen += line.len() + 1;
            if seen > LONGEST_HEADER {
                let message = format!("no size line within {} MiB of comments and blank lines", LONGEST_HEADER >> 20);
                return Err(Error::parse(lines.number(), ParseKind::BadSize, message));
            }
            if let Some(comment) = line.trim_ascii_start().strip_prefix(b"%") {
                kept += comment.len() + size_of::<String>();
                if wanted == Comments::Kept && kept <= KEPT_COMMENTS {
                    comments.push(String::from_utf8_lossy(comment.trim_ascii()).into_owned());
                }
            } else if tokens(line).next().is_some() {
                let sizes = size_line(line, layout);
                break sizes.map_err(|message| Error::parse(lines.number(), ParseKind::BadSize, message))?;
            }
        };
        let fault = |kind, message: String| Error::parse(lines.number(), kind, message);
        if symmetry != Symmetry::General && nrows != ncols {
            let message = format!("a {} matrix must be square, this one is {nrows} × {ncols}", symmetry.word());
            return Err(fault(ParseKind::BadSize, message));
        }
        let entries = match (layout, symmetry) {
            (Layout::Coordinate, _) => declared,
            (Layout::Array, Symmetry::General) => nrows.saturating_mul(ncols),
            (Layout::Array, Symmetry::SkewSymmetric) => nrows.saturating_mul(nrows.saturating_sub(1)) / 2,
            (Layout::Array, _) => nrows.saturating_mul(nrows.saturating_add(1)) / 2,
        };
        check_believable(nrows, ncols, entries).map_err(|message| fault(ParseKind::TooLarge, message))?;
        Ok(Self { layout, field, symmetry, nrows, ncols, entries, comments })
    }
}

/// Refuses sizes beyond 32-bit indices, and rows and columns so many for so few entries that their pointers alone
/// would be a way to exhaust memory with a file of one line.
pub(crate) fn check_believable(nrows: usize, ncols: usize, entries: usize) -> Result<(), String> {
    crate::coo::check_shape(nrows, ncols).map_err(|e| e.to_string())?;
    if nrows.max(ncols) > entries.saturating_mul(64).saturating_add(FREE_ROWS) {
        return Err(format!("{nrows} × {ncols} with only {entries} entries: sizes that no real matrix has"));
    }
    Ok(())
}

fn bad_banner(message: impl Into<String>) -> Error {
    Error::parse(1, ParseKind::BadBanner, message)
}

/// `%%MatrixMarket matrix LAYOUT FIELD SYMMETRY`, in any case.
fn banner(line: &[u8]) -> Result<(Layout, Field, Symmetry)> {
    let text = String::from_utf8_lossy(&line[..line.len().min(200)]).to_ascii_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.first() != Some(&"%%matrixmarket") {
        let found = shown(line.trim_ascii());
        return Err(bad_banner(format!("expected a line that starts with %%MatrixMarket, found {found}")));
    }
    let object = *words.get(1).ok_or_else(|| bad_banner("the banner names no object; expected \"matrix\""))?;
    if object == "vector" {
        return Err(Error::parse(1, ParseKind::Unsupported, "the object is a vector; only \"matrix\" is read"));
    }
    if object != "matrix" {
        return Err(bad_banner(format!("object {} is unknown; expected \"matrix\"", shown(object.as_bytes()))));
    }
    if words.len() != 5 {
        return Err(bad_banner(format!(
            "the banner has {} words; expected 5: %%MatrixMarket matrix LAYOUT FIELD SYMMETRY",
            words.len()
        )));
    }
    let unknown = |what: &str, word: &str, known: &str| {
        bad_banner(format!("{what} {} is unknown; expected {known}", shown(word.as_bytes())))
    };
    let layout = match words[2] {
        "coordinate" => Layout::Coordinate,
        "array" => Layout::Array,
        word => return Err(unknown("layout", word, "coordinate or array")),
    };
    let field = match words[3] {
        "real" => Field::Real,
        "integer" => Field::Integer,
        "complex" => Field::Complex,
        "pattern" => Field::Pattern,
        word => return Err(unknown("field", word, "real, integer, complex or pattern")),
    };
    let symmetry = match words[4] {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::SkewSymmetric,
        "hermitian" => Symmetry::Hermitian,
        word => return Err(unknown("symmetry", word, "general, symmetric, skew-symmetric or hermitian")),
    };
    let illegal = match (layout, field, symmetry) {
        (Layout::Array, Field::Pattern, _) => Some("an array cannot be a pattern"),
        (_, Field::Pattern, Symmetry::SkewSymmetric | Symmetry::Hermitian) => {
            Some("a pattern is either general or symmetric")
        }
        (_, Field::Real | Field::Integer, Symmetry::Hermitian) => {
            Some("only a complex matrix is hermitian; a real one is symmetric")
        }
        _ => None,
    };
    match illegal {
        Some(why) => Err(bad_banner(format!("illegal combination: {why}"))),
        None => Ok((layout, field, symmetry)),
    }
}

fn size_line(line: &[u8], layout: Layout) -> Result<[usize; 3], String> {
    let names: &[&str] = match layout {
        Layout::Coordinate => &["the number of rows", "the number of columns", "the number of entries"],
        Layout::Array => &["the number of rows", "the number of columns"],
    };
    let words: Vec<&[u8]> = tokens(line).take(names.len() + 1).collect();
    if words.len() != names.len() {
        let count = if words.len() > names.len() { "more".to_owned() } else { words.len().to_string() };
        return Err(format!("the size line must have {} numbers, it has {count}", names.len()));
    }
    let mut sizes = [0; 3];
    for ((size, word), name) in sizes.iter_mut().zip(words).zip(names) {
        *size = careful_size(word, name).map_err(|fault| fault.1)?;
    }
    Ok(sizes)
}

impl Layout {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Coordinate => "coordinate",
            Self::Array => "array",
        }
    }
}

impl Symmetry {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "hermitian",
        }
    }
}
