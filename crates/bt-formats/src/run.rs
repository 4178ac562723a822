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
    /// Calls `visit` with the first row, the column and the entries of each column; on a diagonal these have one entry.
    #[inline(always)]
    pub fn for_each_column(&self, mut visit: impl FnMut(usize, usize, &'a [T])) {
        match *self {
            Self::Columns { row, rows, column, stride, values } => {
                let columns = values.chunks(stride.max(1)).zip(column..);
                columns.for_each(|(values, j)| visit(row, j, &values[..rows]));
            }
            Self::Diagonal { row, column, values } => {
                values.chunks(1).enumerate().for_each(|(k, value)| visit(row + k, column + k, value));
            }
            Self::Band { ref rows, n, kl, ku, values } => {
                for j in rows.start.saturating_sub(kl)..(rows.end + ku).min(n) {
                    let (first, end) = (rows.start.max(j.saturating_sub(ku)), rows.end.min(j + kl + 1));
                    let column = (2 * kl + ku) * j + kl + ku;
                    visit(first, j, &values[column + first..column + end]);
                }
            }
        }
    }
}
