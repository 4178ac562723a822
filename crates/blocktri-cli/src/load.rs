//! Files in and out: matrices, right-hand sides, block sizes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use blocktri::faer::{Mat, MatRef};
use blocktri::formats::matrix_market::{self, Field};
use blocktri::formats::{AnyMatrix, read_matrix_with};
use blocktri::{CancelToken, Csr, Scalar, c64};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::exit::{Failure, Result};
use crate::output::Output;
use crate::report::plural;

/// Right-hand sides as a file has them.
pub enum AnyDense {
    /// Real, integer or pattern.
    Real(Mat<f64>),
    /// Complex.
    Complex(Mat<c64>),
}

/// Reads a matrix of any shape.
///
/// # Errors
/// With file and line; when `cancel` is raised.
pub fn matrix(file: &Path, cancel: &CancelToken) -> Result<AnyMatrix> {
    read_matrix_with(file, &mut cancel.clone())
        .map_err(|e| if cancel.is_cancelled() { Failure::interrupted() } else { Failure::input(&e, file) })
}

/// Reads right-hand sides for a matrix of `n` rows.
///
/// # Errors
/// With file and line; when there are not n rows, or no columns.
pub fn rhs(file: &Path, n: usize) -> Result<AnyDense> {
    let header = matrix_market::read_header(file).map_err(|e| Failure::input(&e, file))?;
    // Before the body: a matrix named by mistake should not be expanded to a dense one.
    if header.nrows != n {
        return Err(Failure::io(
            file,
            &format_args!("the right-hand side has {}, the matrix has {n}", plural(header.nrows, "row")),
        )
        .detail("expected", n)
        .detail("found", header.nrows));
    }
    if header.ncols == 0 {
        return Err(Failure::io(file, &"there is no right-hand side: the file has 0 columns"));
    }
    match header.field {
        Field::Complex => matrix_market::read_dense(file).map(AnyDense::Complex),
        _ => matrix_market::read_dense(file).map(AnyDense::Real),
    }
    .map_err(|e| Failure::input(&e, file))
}

/// Reads block sizes, one a line; blank lines and what follows `#` or `%` do not count. With `n`, they must sum to it.
///
/// # Errors
/// With file and line.
pub fn block_sizes(file: &Path, n: Option<usize>) -> Result<Vec<usize>> {
    /// No number is longer; a binary file is recognised by it.
    const LONGEST_LINE: u64 = 4096;
    let failed = |e: &dyn std::fmt::Display| Failure::io(file, e);
    let at = |line: u64, what: String| {
        Failure::usage(format!("{}:{line}: {what}", file.display()))
            .help("a file of blocks has one whole number of at least 1 on each line")
            .detail("file", file.display().to_string())
            .detail("line", line)
    };
    let mut reader = BufReader::new(File::open(file).map_err(|e| {
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

/// Writes a sparse matrix; gzip when the name ends in `.gz`.
///
/// # Errors
/// With the system's reason.
pub fn write_matrix<T: Scalar>(output: &mut Output, a: &Csr<T>, comments: &[String]) -> Result<()> {
    write(output, |w| matrix_market::write_csr(a, w, comments))
}

/// Writes the columns of a dense matrix; gzip when the name ends in `.gz`.
///
/// # Errors
/// With the system's reason.
pub fn write_dense<T: Scalar>(output: &mut Output, x: MatRef<'_, T>, comments: &[String]) -> Result<()> {
    write(output, |w| matrix_market::write_dense(x, w, comments))
}

fn write(output: &mut Output, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let gzip = output.name().extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    output.write(|w| {
        if !gzip {
            return fill(w);
        }
        let mut packed = GzEncoder::new(w, Compression::default());
        fill(&mut packed)?;
        packed.finish().map(drop)
    })
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
