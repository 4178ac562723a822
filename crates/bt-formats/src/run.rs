//! Entries of a matrix as storage by columns or diagonals has them: many side by side, which loops take several at a time.

use std::ops::Range;

use crate::kernels::prefetch;

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
    pub(crate) fn columns(&self) -> Range<usize> {
        match self {
            Self::Columns { column, stride, values, .. } => *column..column + values.len().div_ceil(*stride),
            Self::Diagonal { column, values, .. } => *column..column + values.len(),
            Self::Tridiagonal { rows, diagonals } => {
                rows.start.saturating_sub(1)..(rows.end + 1).min(diagonals[1].len())
            }
            Self::Band { rows, n, kl, ku, .. } => rows.start.saturating_sub(*kl)..(rows.end + ku).min(*n),
        }
    }

    /// First row, first column and entries of each diagonal; none where it has columns.
    pub(crate) fn diagonals(&self) -> impl Iterator<Item = (usize, usize, &'a [T])> {
        let diagonals = match *self {
            Self::Diagonal { row, column, values } => {
                [(row, column, values), (row, column, &[][..]), (row, column, &[][..])]
            }
            Self::Tridiagonal { ref rows, diagonals: [lower, diag, upper] } => {
                let below = rows.start.max(1)..rows.end;
                let above = rows.start..rows.end.min(diag.len().saturating_sub(1));
                [
                    (below.start, below.start - 1, lower.get(below).unwrap_or_default()),
                    (rows.start, rows.start, &diag[rows.clone()]),
                    (above.start, above.start + 1, upper.get(above).unwrap_or_default()),
                ]
            }
            Self::Columns { .. } | Self::Band { .. } => [(0, 0, &[][..]); 3],
        };
        diagonals.into_iter().filter(|(_, _, values)| !values.is_empty())
    }

    /// Calls `visit` with the first row, the column and the entries of each column; of none where it has diagonals.
    #[inline(always)]
    pub(crate) fn for_each_column(&self, mut visit: impl FnMut(usize, usize, &'a [T])) {
        match *self {
            Self::Columns { row, rows, column, stride, values } => {
                let columns = values.chunks(stride.max(1)).zip(column..);
                columns.for_each(|(values, j)| visit(row, j, &values[..rows]));
            }
            Self::Band { ref rows, kl, ku, values, .. } => {
                for j in self.columns() {
                    fetch(values, (kl, ku), j + AHEAD);
                    let (first, end) = (rows.start.max(j.saturating_sub(ku)), rows.end.min(j + kl + 1));
                    let column = (2 * kl + ku) * j + kl + ku;
                    visit(first, j, &values[column + first..column + end]);
                }
            }
            Self::Diagonal { .. } | Self::Tridiagonal { .. } => {}
        }
    }
}

/// How many columns of a band are asked for before they are read, and how many entries of one make that pay.
pub(crate) const AHEAD: usize = 24;
const LONG: usize = 32;

/// Asks for a column of a band where columns are long: between two of them is room for fill, over which no processor looks ahead.
#[inline(always)]
pub(crate) fn fetch<T>(values: &[T], (kl, ku): (usize, usize), j: usize) {
    const LINE: usize = 64;
    let ldab = 2 * kl + ku + 1;
    if kl + ku + 1 < LONG {
        return;
    }
    // Eight rows at an end of the column reach over it.
    let (first, end) = ((j * ldab + kl).saturating_sub(7), (j + 1) * ldab + 7);
    (first..end + LINE / size_of::<T>()).step_by(LINE / size_of::<T>()).for_each(|at| prefetch(values, at));
}

/// N numbers from `at` on.
#[inline(always)]
pub(crate) fn lanes<T, const N: usize>(numbers: &[T], at: usize) -> &[T; N] {
    numbers[at..].first_chunk().expect("the rows of a run")
}

/// The same, to be written.
#[inline(always)]
pub(crate) fn lanes_mut<T, const N: usize>(numbers: &mut [T], at: usize) -> &mut [T; N] {
    numbers[at..].first_chunk_mut().expect("the rows of a run")
}
