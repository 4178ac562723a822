//! Entries of a matrix as storage by columns or diagonals has them: many side by side, which loops take several at a time.

use std::ops::Range;

/// Entries of consecutive rows.
#[derive(Clone, Debug)]
pub enum Run<'a, T> {
    /// Columns of equal length.
    Columns {
        /// Row of the first entry of each.
        row: usize,
        /// Entries of each.
        rows: usize,
        /// The first column; each further one is the next.
        column: usize,
        /// Column k has `values[k·stride .. k·stride + rows]`.
        stride: usize,
        /// From the first entry of the first column to the last of the last.
        values: &'a [T],
    },
    /// Each entry is one row below and one column to the right of the one before.
    Diagonal {
        /// Row of the first entry.
        row: usize,
        /// Column of the first entry.
        column: usize,
        /// The entries.
        values: &'a [T],
    },
    /// Some rows of a [`Tridiagonal`](crate::Tridiagonal).
    Tridiagonal {
        /// The rows.
        rows: Range<usize>,
        /// All of its diagonals, from the lower one on: entry (i, i − 1 + d) is `diagonals[d][i]`.
        diagonals: [&'a [T]; 3],
    },
    /// Some rows of a [`Band`](crate::Band).
    Band {
        /// The rows.
        rows: Range<usize>,
        /// Rows and columns of the band.
        n: usize,
        /// Diagonals below the main one.
        kl: usize,
        /// Diagonals above it.
        ku: usize,
        /// All of its storage: entry (i, j) is `values[(2·kl + ku)·j + kl + ku + i]`.
        values: &'a [T],
    },
}

impl<'a, T> Run<'a, T> {
    /// The columns from the first to the last.
    pub fn columns(&self) -> Range<usize> {
        match self {
            Self::Columns { column, stride, values, .. } => *column..column + values.len().div_ceil(*stride),
            Self::Diagonal { column, values, .. } => *column..column + values.len(),
            Self::Tridiagonal { rows, diagonals } => {
                rows.start.saturating_sub(1)..(rows.end + 1).min(diagonals[1].len())
            }
            Self::Band { rows, n, kl, ku, .. } => rows.start.saturating_sub(*kl)..(rows.end + ku).min(*n),
        }
    }

    /// Its diagonals as runs; none where it has columns.
    pub fn diagonals(&self) -> impl Iterator<Item = Self> {
        let runs = match *self {
            Self::Diagonal { row, column, values } => [Some(Self::Diagonal { row, column, values }), None, None],
            Self::Tridiagonal { ref rows, diagonals } => {
                let n = diagonals[1].len();
                [0, 1, 2].map(|d| {
                    let (first, end) = (rows.start.max(1 - d.min(1)), rows.end.min((n + 1).saturating_sub(d.max(1))));
                    let column = (first + d).saturating_sub(1);
                    (first < end).then(|| Self::Diagonal { row: first, column, values: &diagonals[d][first..end] })
                })
            }
            Self::Columns { .. } | Self::Band { .. } => [None, None, None],
        };
        runs.into_iter().flatten()
    }

    /// Calls `visit` with the first row, the column and the entries of each column; on a diagonal these have one entry.
    #[inline(always)]
    pub fn for_each_column(&self, mut visit: impl FnMut(usize, usize, &'a [T])) {
        match *self {
            Self::Columns { row, rows, column, stride, values } => {
                let columns = values.chunks(stride.max(1)).zip(column..);
                columns.for_each(|(values, j)| visit(row, j, &values[..rows]));
            }
            Self::Diagonal { .. } | Self::Tridiagonal { .. } => {
                for run in self.diagonals() {
                    let Self::Diagonal { row, column, values } = run else { continue };
                    values.chunks(1).enumerate().for_each(|(k, value)| visit(row + k, column + k, value));
                }
            }
            Self::Band { ref rows, kl, ku, values, .. } => {
                for j in self.columns() {
                    let (first, end) = (rows.start.max(j.saturating_sub(ku)), rows.end.min(j + kl + 1));
                    let column = (2 * kl + ku) * j + kl + ku;
                    visit(first, j, &values[column + first..column + end]);
                }
            }
        }
    }
}
