//! Files in and out: matrices, right-hand sides, block sizes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use blocktri::faer::{Mat, MatRef};
use blocktri::{CancelToken, Csr, Monitor, Scalar};
use bt_formats::{
    Columns, Error as InputError, FileDense, FileMatrix, RhsInFile, ScalarKind, System, matrix_market, read_columns,
    read_columns_from, read_system, read_system_from,
};

use crate::exit::{Failure, Result};
use crate::output::{Format, Output, is_standard};
use crate::report::plural;

/// A name as it is shown in messages on inputs.
fn label(file: &Path) -> PathBuf {
    if is_standard(file) { "standard input".into() } else { file.to_owned() }
}

/// What an error of a reader means here.
fn failure(error: &InputError, file: &Path, cancel: &CancelToken) -> Failure {
    if cancel.is_cancelled() { Failure::interrupted() } else { Failure::input(error, &label(file)) }
}

/// Reads a matrix of any shape.
///
/// # Errors
/// With file and line; when `cancel` is raised.
pub fn matrix(file: &Path, cancel: &CancelToken) -> Result<FileMatrix> {
    Ok(system(file, RhsInFile::Skip, &mut cancel.clone(), cancel)?.matrix)
}

/// Reads a matrix of any shape and the right-hand sides beside it; `-` is standard input. `watch` is told how far it is
/// and stops when `cancel` is raised.
///
/// # Errors
/// As [`matrix`].
pub fn system(file: &Path, wanted: RhsInFile, watch: &mut dyn Monitor, cancel: &CancelToken) -> Result<System> {
    if is_standard(file) {
        read_system_from(io::stdin(), label(file), wanted, watch)
    } else {
        read_system(file, wanted, watch)
    }
    .map_err(|e| failure(&e, file, cancel))
}

/// Reads right-hand sides for a matrix of `n` rows; `-` is standard input.
///
/// # Errors
/// With file and line; when there are not n rows, or no columns.
pub fn rhs(file: &Path, n: usize, watch: &mut dyn Monitor, cancel: &CancelToken) -> Result<Columns> {
    // Before the body: a matrix named by mistake should not be expanded to a dense one.
    let accept = |rows: usize, columns: usize| match (rows == n, columns) {
        (false, _) => Err(InputError::DimensionMismatch { what: "the rows", expected: n, found: rows }),
        (true, 0) => Err(InputError::DimensionMismatch { what: "the columns", expected: 1, found: 0 }),
        (true, _) => Ok(()),
    };
    columns(file, &accept, watch).map_err(|e| match e {
        InputError::DimensionMismatch { what: "the columns", .. } => {
            Failure::io(&label(file), &"there is no right-hand side: the file has 0 columns")
        }
        InputError::DimensionMismatch { found, .. } => Failure::io(
            &label(file),
            &format_args!("the right-hand side has {}, the matrix has {n}", plural(found, "row")),
        )
        .detail("expected", n)
        .detail("found", found),
        other => failure(&other, file, cancel),
    })
}

/// Reads columns of a shape that `accept` has nothing against; `-` is standard input.
fn columns(
    file: &Path,
    accept: &dyn Fn(usize, usize) -> std::result::Result<(), InputError>,
    watch: &mut dyn Monitor,
) -> std::result::Result<Columns, InputError> {
    if is_standard(file) {
        read_columns_from(io::stdin(), label(file), accept, watch)
    } else {
        read_columns(file, accept, watch)
    }
}

/// Reads one column of n real numbers; `-` is standard input.
///
/// # Errors
/// With file and line; when the file holds something else.
pub fn column(file: &Path, n: usize, cancel: &CancelToken) -> Result<Vec<f64>> {
    let accept = |rows: usize, columns: usize| {
        if (rows, columns) == (n, 1) {
            return Ok(());
        }
        let why = format!("it is {rows} × {columns}, and {n} × 1 is wanted");
        Err(InputError::InvalidStructure { what: "column", why })
    };
    match columns(file, &accept, &mut cancel.clone()).map_err(|e| failure(&e, file, cancel))?.values {
        FileDense::Real(x) => Ok(x.col_as_slice(0).to_vec()),
        FileDense::Complex(_) => Err(Failure::io(&label(file), &"the numbers are complex, and real ones are wanted")),
    }
}

/// Reads block sizes, one a line; blank lines and what follows `#` or `%` do not count. With `n`, they must sum to it.
///
/// # Errors
/// With file and line.
pub fn block_sizes(file: &Path, n: Option<usize>) -> Result<Vec<usize>> {
    /// No number is longer; a binary file is recognised by it.
    const LONGEST_LINE: u64 = 4096;
    let failed = |e: &dyn std::fmt::Display| Failure::io(&label(file), e);
    let at = |line: u64, what: String| {
        Failure::usage(format!("{}:{line}: {what}", label(file).display()))
            .help("a file of blocks has one whole number of at least 1 on each line")
            .detail("file", file.display().to_string())
            .detail("line", line)
    };
    let opened: io::Result<Box<dyn Read>> =
        if is_standard(file) { Ok(Box::new(io::stdin())) } else { File::open(file).map(|f| Box::new(f) as _) };
    let mut reader = BufReader::new(opened.map_err(|e| {
        let failure = failed(&e);
        if e.kind() == io::ErrorKind::NotFound {
            failure.help("--blocks takes a whole number or the name of a file of block sizes")
        } else {
            failure
        }
    })?);
    let (mut sizes, mut sum) = (Vec::new(), 0usize);
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
        if read == 0 {
            break;
        }
        if read as u64 == LONGEST_LINE {
            return Err(at(number, "the line is too long for a block size".into()));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.split(['#', '%']).next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let size = text.parse().ok().filter(|&k: &usize| k > 0);
        let size = size.ok_or_else(|| at(number, format!("'{text}' is not a block size")))?;
        sum = sum.saturating_add(size);
        if let Some(n) = n.filter(|&n| sum > n) {
            return Err(at(number, format!("the block sizes up to here sum to {sum}, but the matrix has {n} rows")));
        }
        sizes.push(size);
    }
    match n {
        Some(n) if sum != n => Err(failed(&format_args!("the block sizes sum to {sum}, but the matrix has {n} rows"))),
        _ if sizes.is_empty() => Err(failed(&"there are no block sizes in the file")),
        _ => Ok(sizes),
    }
}

/// Writes a sparse matrix as Matrix Market.
///
/// # Errors
/// With the system's reason.
pub fn write_matrix<T: Scalar>(output: &mut Output, a: &Csr<T>, comments: &[String]) -> Result<()> {
    output.write(|w| matrix_market::write_csr(a, w, comments))
}

/// Writes the columns of a dense matrix as Matrix Market.
///
/// # Errors
/// With the system's reason.
pub fn write_dense<T: Scalar>(output: &mut Output, x: MatRef<'_, T>, comments: &[String]) -> Result<()> {
    output.write(|w| matrix_market::write_dense(x, w, comments))
}

/// Formats of solutions.
pub const SOLUTIONS: [Format; 3] = [Format::MatrixMarket, Format::Csv, Format::Json];

/// Writes a solution in the format that the name asks for: Matrix Market; a table with a line for each row (from 0) and
/// a column for each right-hand side, or two where it is complex; a JSON object whose `x` lists the columns, complex
/// numbers as \[re, im\].
///
/// # Errors
/// With the system's reason.
pub fn write_solution<T: Scalar>(output: &mut Output, x: MatRef<'_, T>, comments: &[String]) -> Result<()> {
    match Format::of(output.name(), &SOLUTIONS)? {
        Format::MatrixMarket => write_dense(output, x, comments),
        Format::Csv => output.write(|w| write_table(x, w)),
        Format::Json => output.write(|w| write_json(x, w)),
    }
}

fn is_complex<T: Scalar>() -> bool {
    matches!(T::KIND, ScalarKind::C32 | ScalarKind::C64)
}

fn write_table<T: Scalar>(x: MatRef<'_, T>, w: &mut dyn Write) -> io::Result<()> {
    let parts: &[&str] = if is_complex::<T>() { &["_re", "_im"] } else { &[""] };
    write!(w, "row")?;
    for j in 1..=x.ncols() {
        for part in parts {
            write!(w, ",x{j}{part}")?;
        }
    }
    writeln!(w)?;
    for i in 0..x.nrows() {
        write!(w, "{i}")?;
        for j in 0..x.ncols() {
            let (re, im) = (x[(i, j)].re(), x[(i, j)].im());
            write!(w, ",{re:e}")?;
            if is_complex::<T>() {
                write!(w, ",{im:e}")?;
            }
        }
        writeln!(w)?;
    }
    Ok(())
}

fn write_json<T: Scalar>(x: MatRef<'_, T>, w: &mut dyn Write) -> io::Result<()> {
    write!(w, "{{\"schema\":1,\"n\":{},\"nrhs\":{},\"x\":[", x.nrows(), x.ncols())?;
    for j in 0..x.ncols() {
        write!(w, "{}[", if j > 0 { "," } else { "" })?;
        for i in 0..x.nrows() {
            let (re, im) = (x[(i, j)].re(), x[(i, j)].im());
            write!(w, "{}", if i > 0 { "," } else { "" })?;
            if is_complex::<T>() { write!(w, "[{re:e},{im:e}]")? } else { write!(w, "{re:e}")? }
        }
        write!(w, "]")?;
    }
    writeln!(w, "]}}")
}

/// The same numbers in another type.
pub fn cast<T: Scalar, U: Scalar>(x: &Mat<T>) -> Mat<U> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)].cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str, n: usize) -> Result<Vec<usize>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        block_sizes(file.path(), Some(n))
    }

    #[test]
    fn blocks_with_comments_and_blank_lines() {
        assert_eq!(sizes("# three\n2\r\n\n 3 % middle\n1", 6).unwrap(), [2, 3, 1]);
    }

    #[test]
    fn mistakes_name_their_line() {
        let message = |text: &str, n| sizes(text, n).unwrap_err().message;
        assert!(message("2\n0\n", 2).contains(":2: '0' is not a block size"));
        assert!(message("2\nx\n", 2).contains(":2: 'x' is not"));
        assert!(message("2\n-1\n", 2).contains(":2: '-1' is not"));
        assert!(message("2\n3\n9\n", 4).contains(":2: the block sizes up to here sum to 5, but the matrix has 4"));
        assert!(message("2\n", 4).contains("sum to 2, but the matrix has 4 rows"));
        assert!(message("", 4).contains("sum to 0"));
        assert!(message(&"1 ".repeat(1 << 14), 4).contains(":1: the line is too long"));
        assert!(message("18446744073709551615\n18446744073709551615\n", 4).contains(":1:"));
        assert!(sizes("\0\u{1}\u{2}binary", 3).is_err());
    }
}
