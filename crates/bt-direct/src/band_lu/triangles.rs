//! The triangular factors of a band, and the steps of a substitution with them.

use bt_formats::{Op, Scalar};

use crate::lines;

/// Columns between the one in use and the one that is asked for.
pub(super) const AHEAD: usize = 8;

/// Factors by columns: U ends on the diagonal.
#[derive(Clone, Copy)]
pub(crate) struct Triangles<'a, T> {
    /// Columns eliminated, rows of L, columns of U.
    pub(crate) cols: usize,
    pub(crate) rows: usize,
    pub(crate) ncols: usize,
    /// Sub-diagonals of L, super-diagonals of U.
    pub(crate) below: usize,
    pub(crate) above: usize,
    /// Values of a column of U, and which of them is the diagonal.
    pub(crate) ld: usize,
    pub(crate) diagonal: usize,
    pub(crate) values: &'a [T],
    pub(crate) lower: Multipliers<'a, T>,
    /// Row exchanged with row j at step j; empty when none ever is.
    pub(crate) pivots: &'a [u32],
    /// First row of each column of U that may differ from zero; empty when that is the band.
    pub(crate) tops: &'a [u32],
    /// Whether the diagonal of L is one, or that of U (Cholesky).
    pub(crate) diagonal_of: Factor,
}

/// The multipliers of L by columns.
#[derive(Clone, Copy)]
pub(crate) struct Multipliers<'a, T> {
    /// Values of a column, and which of them is the first below the diagonal.
    pub(crate) ld: usize,
    pub(crate) first: usize,
    pub(crate) values: &'a [T],
}

impl<'a, T> Multipliers<'a, T> {
    /// Behind the diagonal in the columns of U.
    pub(crate) fn behind(ld: usize, diagonal: usize, values: &'a [T]) -> Self {
        Self { ld, first: diagonal + 1, values }
    }
    /// Where those of step j begin.
    #[inline(always)]
    pub(crate) fn at(&self, j: usize) -> usize {
        j * self.ld + self.first
    }
}

/// One of the factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Factor {
    Lower,
    Upper,
}

/// What is done to the right-hand sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// x ← L⁻¹·P·x
    Lower,
    /// x ← U⁻¹·x
    Upper,
    /// x ← op(U)⁻¹·x, op transposed or adjoint
    UpperTransposed(Op),
    /// x ← Pᵀ·op(L)⁻¹·x
    LowerTransposed(Op),
}

impl<'a, T: Scalar> Triangles<'a, T> {
    #[inline(always)]
    pub(super) fn exchanged(&self, j: usize) -> usize {
        self.pivots.get(j).map_or(j, |&p| p as usize)
    }
    #[inline(always)]
    pub(super) fn pivot(&self, j: usize) -> T {
        self.values[j * self.ld + self.diagonal]
    }
    /// Multipliers of step j.
    #[inline(always)]
    pub(super) fn l(&self, j: usize) -> &'a [T] {
        let at = self.lower.at(j);
        &self.lower.values[at..at + self.below.min(self.rows - 1 - j)]
    }
    /// First row and values of column j of U above the diagonal, and not below the eliminated rows.
    #[inline(always)]
    pub(super) fn u(&self, j: usize) -> (usize, &'a [T]) {
        let end = j.min(self.cols);
        let top = self.tops.get(j).map_or(j.saturating_sub(self.above), |&t| t as usize).min(end);
        let at = j * self.ld + self.diagonal;
        (top, &self.values[at + top - j..at + end - j])
    }

    /// Asks for the multipliers, or for the column of U, of a step [`AHEAD`] columns away. Where columns of one factor are parted by
    /// those of the other the hardware does not look over a gap of some lines, and of long columns it does not bring enough.
    #[inline(always)]
    pub(super) fn fetch(&self, j: usize, factor: Factor) {
        let (diagonal, at) = (j * self.ld + self.diagonal, self.lower.at(j));
        let (ld, values, part) = match factor {
            Factor::Lower => (self.lower.ld, self.lower.values, at..at + self.below),
            Factor::Upper => (self.ld, self.values, diagonal.saturating_sub(self.above)..diagonal + 1),
        };
        let least = if self.lower.first > 0 { 256 } else { 512 };
        if ld * size_of::<T>() < least {
            return;
        }
        lines::fetch(values, part.clone());
        // They need not begin a line.
        lines::fetch(values, part.end - 1..part.end);
    }
}
