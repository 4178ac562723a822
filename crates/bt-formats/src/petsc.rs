//! PETSc binary files: sparse matrices (`MatView`) and vectors (`VecView`), real or complex, 32- or 64-bit indices.
//!
//! A file is a sequence of objects in big-endian order. A matrix: class 1211216, rows, columns, entries, the length of
//! each row, the columns from 0, the values, all row by row. A vector: class 1211214, length, values. A vector of as
//! many rows after a matrix is its right-hand side, as in PETSc's own examples. The format does not say whether values
//! are complex: they are when twice as many stand before the end or the next object.
//!
//! Format: the manual pages of MatLoad and VecLoad, <https://petsc.org/release/manualpages/Mat/MatLoad>. Memory follows
//! the bytes read, not the declared sizes. Cost: O(bytes + n).

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use faer::Mat;

use crate::csr::Csr;
use crate::error::{Error, ParseKind, Result};
use crate::matrix_market::assemble::assembled_bytes;
use crate::matrix_market::header::check_believable;
use crate::memory;
use crate::monitor::{Monitor, Progress};
use crate::read::{Columns, FileDense, FileMatrix, RhsInFile, System};
use crate::scalar::{Scalar, c64};

const MATRIX: u32 = 1_211_216;
const VECTOR: u32 = 1_211_214;
/// Classes of all objects that PETSc writes.
const CLASSES: std::ops::Range<u32> = 1_211_211..1_211_240;

/// Whether a file starts with a matrix or a vector of PETSc.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    first_class(head).is_some_and(|(class, _)| class == MATRIX || class == VECTOR)
}

/// Class of an object, and whether it is written with 64-bit integers.
fn first_class(head: &[u8]) -> Option<(u32, IndexWidth)> {
    let narrow = u32::from_be_bytes(*head.first_chunk()?);
    if CLASSES.contains(&narrow) {
        return Some((narrow, IndexWidth::Four));
    }
    let wide = u64::from_be_bytes(*head.first_chunk()?);
    let class = u32::try_from(wide).ok().filter(|class| CLASSES.contains(class))?;
    Some((class, IndexWidth::Eight))
}

/// A matrix, and the vector after it.
pub(crate) fn system(input: &mut dyn Read, wanted: RhsInFile, monitor: &mut dyn Monitor) -> Result<System> {
    let mut file = File::new(input, monitor)?;
    if file.class()? != Some(MATRIX) {
        return Err(fault(ParseKind::Unsupported, "this is a vector of PETSc; a matrix was expected"));
    }
    let matrix = matrix(&mut file)?;
    let (mut rhs, mut notes) = (None, Vec::new());
    if file.class()? == Some(VECTOR) {
        match wanted {
            RhsInFile::Read => {
                let columns = vector(&mut file)?;
                if columns.nrows() == matrix.nrows() {
                    rhs = Some(columns);
                } else {
                    notes.push(format!("the vector of {} numbers after the matrix was not used", columns.nrows()));
                }
            }
            RhsInFile::Skip => notes.push("the vector after the matrix in the file was not used".into()),
        }
    }
    Ok(System { matrix, rhs, notes })
}

/// A vector as one column.
pub(crate) fn columns(
    input: &mut dyn Read,
    accept: &dyn Fn(usize, usize) -> Result<()>,
    monitor: &mut dyn Monitor,
) -> Result<Columns> {
    let mut file = File::new(input, monitor)?;
    if file.class()? != Some(VECTOR) {
        return Err(fault(ParseKind::Unsupported, "this is a matrix of PETSc; a vector was expected"));
    }
    let values = vector(&mut file)?;
    accept(values.nrows(), values.ncols())?;
    Ok(Columns { values, notes: Vec::new() })
}

fn fault(kind: ParseKind, message: impl Into<String>) -> Error {
    Error::parse(0, kind, message)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexWidth {
    Four,
    Eight,
}

impl IndexWidth {
    fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    fn integer(self, bytes: &[u8]) -> i64 {
        match self {
            Self::Four => i64::from(i32::from_be_bytes(*bytes.first_chunk().expect("four bytes"))),
            Self::Eight => i64::from_be_bytes(*bytes.first_chunk().expect("eight bytes")),
        }
    }
}

struct File<'f> {
    input: &'f mut dyn Read,
    monitor: &'f mut dyn Monitor,
    width: IndexWidth,
    /// Bytes read ahead: the start of the next object, fewer than eight at the end only.
    ahead: Vec<u8>,
    done: usize,
}

/// Bytes read at a time, a multiple of all widths.
const PIECE: usize = 1 << 20;

impl<'f> File<'f> {
    fn new(input: &'f mut dyn Read, monitor: &'f mut dyn Monitor) -> Result<Self> {
        let mut file = Self { input, monitor, width: IndexWidth::Four, ahead: Vec::new(), done: 0 };
        file.look_ahead()?;
        if let Some((_, width)) = first_class(&file.ahead) {
            file.width = width;
        }
        Ok(file)
    }

    /// Fills the bytes read ahead.
    fn look_ahead(&mut self) -> Result<()> {
        let missing = 8 - self.ahead.len();
        (&mut *self.input).take(missing as u64).read_to_end(&mut self.ahead).map_err(io_error)?;
        Ok(())
    }

    /// The class of the next object; `None` at the end.
    fn class(&mut self) -> Result<Option<u32>> {
        self.look_ahead()?;
        if self.ahead.is_empty() {
            return Ok(None);
        }
        let known = first_class(&self.ahead).filter(|(_, width)| *width == self.width);
        let Some((class, width)) = known else {
            return Err(fault(ParseKind::TooManyEntries, "what follows the values is no object of PETSc"));
        };
        self.ahead.drain(..width.bytes());
        Ok(Some(class))
    }

    /// Hands `count` items of `width` bytes to `take`.
    fn items(
        &mut self,
        count: usize,
        width: usize,
        what: &str,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut left = count.saturating_mul(width);
        let mut piece = Vec::new();
        while left > 0 {
            let wanted = left.min(PIECE);
            piece.clear();
            let ahead = wanted.min(self.ahead.len());
            piece.extend(self.ahead.drain(..ahead));
            (&mut *self.input).take((wanted - ahead) as u64).read_to_end(&mut piece).map_err(io_error)?;
            if piece.len() < wanted {
                let read = count - left / width + piece.len() / width;
                return Err(fault(ParseKind::TooFewEntries, format!("the file ends after {read} of {count} {what}")));
            }
            piece.chunks_exact(width).try_for_each(&mut take)?;
            left -= wanted;
            self.done += wanted;
            let progress = Progress::Step { phase: "read", done: self.done, total: self.done.saturating_add(left) };
            if self.monitor.observe(progress) == ControlFlow::Break(()) {
                return Err(io_error(io::Error::new(io::ErrorKind::Interrupted, "reading was stopped")));
            }
        }
        Ok(())
    }

    /// Integers, each judged by `take`.
    fn integers(&mut self, count: usize, what: &str, mut take: impl FnMut(i64) -> Result<()>) -> Result<()> {
        let width = self.width;
        self.items(count, width.bytes(), what, |bytes| take(width.integer(bytes)))
    }

    /// A size of at least 0.
    fn size(&mut self, what: &str) -> Result<usize> {
        let mut size = Err(fault(ParseKind::BadSize, format!("{what} is missing")));
        self.integers(1, what, |value| {
            size = usize::try_from(value)
                .map_err(|_| fault(ParseKind::BadSize, format!("{what} is {value}, a negative number")));
            Ok(())
        })?;
        size
    }

    fn doubles(&mut self, count: usize, of: usize, into: &mut Vec<f64>) -> Result<()> {
        let mut asked = into.len();
        self.items(count, 8, "values", |bytes| {
            if into.len() == into.capacity() && into.len() > asked {
                memory::ask(16 * into.len() as u64, "the values in the file")?;
                asked = 2 * into.len();
            }
            into.push(f64::from_be_bytes(*bytes.first_chunk().expect("eight bytes")));
            Ok(())
        })
        .map_err(|e| match e {
            Error::Parse { kind: ParseKind::TooFewEntries, .. } => {
                fault(ParseKind::TooFewEntries, format!("the file ends after {} of {of} values", into.len()))
            }
            other => other,
        })
    }

    /// `count` values: real if then comes the end or an object, complex if it comes after as many numbers again.
    fn values(&mut self, count: usize) -> Result<Values> {
        let mut all = Vec::new();
        self.doubles(count, count, &mut all)?;
        self.look_ahead()?;
        if self.ahead.is_empty() || self.ahead.len() >= 4 && first_class(&self.ahead).is_some() {
            return Ok(Values::Real(all));
        }
        self.doubles(count, 2 * count, &mut all)?;
        self.look_ahead()?;
        if !self.ahead.is_empty() && first_class(&self.ahead).is_none() {
            return Err(fault(ParseKind::TooManyEntries, "what follows the values is no object of PETSc"));
        }
        Ok(Values::Complex(all.chunks_exact(2).map(|z| c64::new(z[0], z[1])).collect()))
    }
}

enum Values {
    Real(Vec<f64>),
    Complex(Vec<c64>),
}

fn io_error(source: io::Error) -> Error {
    Error::Io { file: PathBuf::new(), source }
}

/// What stands after the class of a matrix.
fn matrix(file: &mut File<'_>) -> Result<FileMatrix> {
    let nrows = file.size("the number of rows")?;
    let ncols = file.size("the number of columns")?;
    let mut nnz = 0;
    file.integers(1, "the number of entries", |value| {
        nnz = usize::try_from(value).map_err(|_| {
            fault(
                ParseKind::Unsupported,
                "a matrix in a special format of PETSc (a dense one); only sparse ones are read",
            )
        })?;
        Ok(())
    })?;
    check_believable(nrows, ncols, nnz)
        .and_then(|()| crate::csr::check_nnz(nnz).map_err(|e| e.to_string()))
        .map_err(|message| fault(ParseKind::TooLarge, message))?;

    let mut row_ptr = vec![0u32];
    let mut end = 0usize;
    file.integers(nrows, "row lengths", |length| {
        let row = row_ptr.len() - 1;
        end = usize::try_from(length)
            .ok()
            .and_then(|length| end.checked_add(length))
            .filter(|end| *end <= nnz)
            .ok_or_else(|| fault(ParseKind::BadEntry, format!("row {row} (from 0) has {length} of {nnz} entries")))?;
        row_ptr.push(end as u32);
        Ok(())
    })?;
    if end != nnz {
        return Err(fault(ParseKind::BadEntry, format!("the rows have {end} entries together, {nnz} are declared")));
    }
    let mut col_idx: Vec<u32> = Vec::new();
    file.integers(nnz, "column indices", |col| {
        let inside = usize::try_from(col).is_ok_and(|j| j < ncols);
        if !inside {
            let message = format!("column {col} lies outside 0 to {}", ncols.saturating_sub(1));
            return Err(fault(ParseKind::BadEntry, message));
        }
        col_idx.push(col as u32);
        Ok(())
    })?;
    Ok(match file.values(nnz)? {
        Values::Real(values) => FileMatrix::Real(by_rows(nrows, ncols, row_ptr, col_idx, values)?),
        Values::Complex(values) => FileMatrix::Complex(by_rows(nrows, ncols, row_ptr, col_idx, values)?),
    })
}

/// Rows as they are where their columns increase, as PETSc writes them; else sorted, and duplicates summed.
fn by_rows<T: Scalar>(
    nrows: usize,
    ncols: usize,
    row_ptr: Vec<u32>,
    col_idx: Vec<u32>,
    values: Vec<T>,
) -> Result<Csr<T>> {
    let range = |row: usize| row_ptr[row] as usize..row_ptr[row + 1] as usize;
    let sorted = (0..nrows).all(|row| col_idx[range(row)].is_sorted_by(|a, b| a < b));
    let a = if sorted {
        Csr::new(nrows, ncols, row_ptr, col_idx, values)?
    } else {
        memory::ask(assembled_bytes::<T>(nrows, values.len()), "the matrix in the file")?;
        let rows: Vec<u32> = (0..nrows).flat_map(|row| range(row).map(move |_| row as u32)).collect();
        Csr::from_unsorted(nrows, ncols, &rows, &col_idx, &values)?
    };
    a.check_finite()?;
    Ok(a)
}

/// What stands after the class of a vector.
fn vector(file: &mut File<'_>) -> Result<FileDense> {
    let n = file.size("the length of the vector")?;
    Ok(match file.values(n)? {
        Values::Real(values) => FileDense::Real(column(&values)?),
        Values::Complex(values) => FileDense::Complex(column(&values)?),
    })
}

fn column<T: Scalar>(values: &[T]) -> Result<Mat<T>> {
    if let Some(row) = values.iter().position(|v| !Scalar::is_finite(*v)) {
        let value = values[row].to_string();
        return Err(Error::NonFinite { what: "right-hand side", row, col: 0, value });
    }
    Ok(Mat::from_fn(values.len(), 1, |i, _| values[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [[2, 1], [0, 3]] and after it (3, 6).
    fn example(width: IndexWidth, unsorted: bool) -> Vec<u8> {
        let int = |value: i64| match width {
            IndexWidth::Four => (value as i32).to_be_bytes().to_vec(),
            IndexWidth::Eight => value.to_be_bytes().to_vec(),
        };
        let ints = |values: &[i64]| values.iter().flat_map(|v| int(*v)).collect::<Vec<_>>();
        let reals = |values: &[f64]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<_>>();
        let (cols, values) = if unsorted { ([1, 0, 1], [1.0, 2.0, 3.0]) } else { ([0, 1, 1], [2.0, 1.0, 3.0]) };
        let parts =
            [ints(&[1_211_216, 2, 2, 3, 2, 1]), ints(&cols), reals(&values), ints(&[1_211_214, 2]), reals(&[3.0, 6.0])];
        parts.concat()
    }

    fn read(bytes: &[u8]) -> Result<System> {
        system(&mut &bytes[..], RhsInFile::Read, &mut ())
    }

    #[test]
    fn a_matrix_and_its_right_hand_side() {
        for (width, unsorted) in [(IndexWidth::Four, false), (IndexWidth::Eight, false), (IndexWidth::Four, true)] {
            let bytes = example(width, unsorted);
            assert!(looks_like(&bytes));
            let System { matrix: FileMatrix::Real(a), rhs: Some(FileDense::Real(b)), .. } = read(&bytes).unwrap()
            else {
                panic!("a real system")
            };
            assert_eq!(a.to_dense(), faer::mat![[2.0, 1.0], [0.0, 3.0]]);
            assert_eq!(b, faer::mat![[3.0], [6.0]]);
            let skipped = system(&mut &bytes[..], RhsInFile::Skip, &mut ()).unwrap();
            assert!(skipped.rhs.is_none() && skipped.notes.len() == 1);
        }
    }

    #[test]
    fn complex_values_are_twice_as_many() {
        let ints: Vec<u8> = [1_211_216, 1, 1, 1, 1, 0].iter().flat_map(|v: &i32| v.to_be_bytes()).collect();
        let z: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let b: Vec<u8> = [1_211_214i32, 1].iter().flat_map(|v| v.to_be_bytes()).chain(z.clone()).collect();
        let found = read(&[ints, z, b.clone()].concat()).unwrap();
        let (FileMatrix::Complex(a), Some(FileDense::Complex(rhs))) = (found.matrix, found.rhs) else {
            panic!("complex")
        };
        assert_eq!((a.get(0, 0), rhs[(0, 0)]), (c64::new(1.5, -2.0), c64::new(1.5, -2.0)));
        let alone = columns(&mut &b[..], &|_, _| Ok(()), &mut ()).unwrap();
        assert!(matches!(alone.values, FileDense::Complex(_)));
    }

    #[test]
    fn every_cut_and_every_wrong_index_is_an_error() {
        let bytes = example(IndexWidth::Four, false);
        let matrix = bytes.len() - 24;
        for end in (0..bytes.len()).filter(|end| *end != matrix) {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
        assert!(read(&bytes[..matrix]).unwrap().rhs.is_none());
        for (at, value) in [(4, -1i32), (12, -1), (12, 7), (16, 9), (20, -4), (24, 2), (28, -1)] {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&value.to_be_bytes());
            assert!(read(&wrong).is_err(), "{value} at byte {at}");
        }
        let mut nan = bytes.clone();
        nan[36..44].copy_from_slice(&f64::NAN.to_be_bytes());
        assert!(matches!(read(&nan), Err(Error::NonFinite { row: 0, col: 0, .. })));
        assert!(read(&[&bytes[..], b"more"].concat()).is_err(), "neither the end nor an object");
    }
}
