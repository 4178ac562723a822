//! Dense vectors from Matrix Market array files: a reader apart from the one under test.

use std::fs;
use std::path::Path;

use crate::process::{Context, Failure, Result};

/// Columns side by side, complex numbers as (re, im), real ones with im = 0.
#[derive(Debug, PartialEq)]
pub(super) struct Dense {
    nrows: usize,
    values: Vec<[f64; 2]>,
}

impl Dense {
    /// One real column.
    pub fn column(values: Vec<f64>) -> Self {
        Self { nrows: values.len(), values: values.into_iter().map(|v| [v, 0.0]).collect() }
    }

    /// Its first column.
    pub fn first_column(&self) -> &[[f64; 2]] {
        self.values.get(..self.nrows).unwrap_or_default()
    }

    /// Rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }
}

/// Reads `%%MatrixMarket matrix array real|integer|complex general`.
pub(super) fn read(file: &Path) -> Result<Dense> {
    let text = fs::read_to_string(file).context(file.display())?;
    parse(&text).map_err(|why| Failure(format!("{}: {why}", file.display())))
}

/// The same from text.
pub(super) fn parse(text: &str) -> Result<Dense, String> {
    let mut lines = text.lines();
    let banner = lines.next().unwrap_or_default().to_lowercase();
    let parts = match banner.split_whitespace().collect::<Vec<_>>()[..] {
        ["%%matrixmarket", "matrix", "array", "real" | "integer", "general"] => 1,
        ["%%matrixmarket", "matrix", "array", "complex", "general"] => 2,
        _ => return Err("not an array file of numbers".into()),
    };
    let mut tokens = lines.filter(|l| !l.starts_with('%')).flat_map(str::split_whitespace);
    let mut size = || tokens.next().and_then(|t| t.parse::<usize>().ok()).ok_or("the size line is not two numbers");
    let (nrows, ncols) = (size()?, size()?);
    let number = |t: &str| t.parse::<f64>().map_err(|_| format!("'{t}' is not a number"));
    let numbers = tokens.map(number).collect::<Result<Vec<_>, _>>()?;
    if Some(numbers.len()) != nrows.checked_mul(ncols).and_then(|n| n.checked_mul(parts)) {
        return Err(format!("{} numbers for {nrows} x {ncols}", numbers.len()));
    }
    let values = numbers.chunks(parts).map(|c| [c[0], c.get(1).copied().unwrap_or(0.0)]).collect();
    Ok(Dense { nrows, values })
}

/// max over columns of ‖x − y‖∞ / ‖y‖∞; infinite when an entry of x is not finite or the shapes differ.
pub(super) fn relative_difference(x: &Dense, y: &Dense) -> f64 {
    if x.nrows != y.nrows || x.values.len() != y.values.len() {
        return f64::INFINITY;
    }
    let mut worst: f64 = 0.0;
    for (x, y) in x.values.chunks(x.nrows.max(1)).zip(y.values.chunks(y.nrows.max(1))) {
        if !x.iter().flatten().all(|v| v.is_finite()) {
            return f64::INFINITY;
        }
        let norm = y.iter().map(|v| v[0].hypot(v[1])).fold(0.0, f64::max);
        let difference = x.iter().zip(y).map(|(x, y)| (x[0] - y[0]).hypot(x[1] - y[1])).fold(0.0, f64::max);
        worst = worst.max(if difference == 0.0 { 0.0 } else { difference / norm });
    }
    worst
}

/// max |x − y|ᵢ/|y|ᵢ; what is zero in y counts by its size beside the largest entry. Infinite as above.
pub(super) fn entrywise_difference(x: &Dense, y: &Dense) -> f64 {
    if x.nrows != y.nrows || x.values.len() != y.values.len() || !x.values.iter().flatten().all(|v| v.is_finite()) {
        return f64::INFINITY;
    }
    let largest = y.values.iter().map(|v| v[0].hypot(v[1])).fold(0.0, f64::max);
    let off = |(x, y): (&[f64; 2], &[f64; 2])| {
        let (difference, size) = ((x[0] - y[0]).hypot(x[1] - y[1]), y[0].hypot(y[1]));
        if difference == 0.0 { 0.0 } else { difference / if size == 0.0 { largest } else { size } }
    };
    x.values.iter().zip(&y.values).map(off).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_and_complex_files() {
        let real = parse("%%MatrixMarket matrix array real general\n% note\n2 1\n3\n-4e0\n").unwrap();
        let complex = parse("%%MatrixMarket matrix array complex general\n2 1\n3 0\n-4 0\n").unwrap();
        assert_eq!(real, complex);
        assert!(parse("%%MatrixMarket matrix array real general\n2 1\n3\n").is_err());
        assert!(parse("%%MatrixMarket matrix coordinate real general\n2 1 0\n").is_err());
    }

    #[test]
    fn differences_are_relative_and_worst_by_column() {
        let file = |body: &str| parse(&format!("%%MatrixMarket matrix array real general\n2 2\n{body}")).unwrap();
        let (x, y) = (file("1 2 10 21"), file("1 2 10 20"));
        assert_eq!(relative_difference(&x, &y), 1.0 / 20.0);
        assert_eq!(relative_difference(&file("1 2 NaN 20"), &y), f64::INFINITY);
        assert_eq!(relative_difference(&y, &y), 0.0);
        assert_eq!(entrywise_difference(&file("1 2.5 10 20"), &y), 0.25);
        assert_eq!(entrywise_difference(&Dense::column(vec![1.0, 1e-3]), &Dense::column(vec![1.0, 0.0])), 1e-3);
        assert_eq!(entrywise_difference(&file("1 inf 10 20"), &y), f64::INFINITY);
    }
}
