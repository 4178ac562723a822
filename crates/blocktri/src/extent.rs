//! What the counts of bytes rest on.

use bt_formats::reorder::bandwidth;
use bt_formats::{Csr, LinearOperator, Matrix, Scalar};

/// What counts rest on.
pub(crate) struct Extent {
    n: u64,
    /// Sub- and super-diagonals.
    band: (u64, u64),
    /// Bytes of a number, and of the matrix in compressed rows.
    number: u64,
    matrix: u64,
}

impl Extent {
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        Self { matrix: a.bytes() as u64, ..Self::of_band::<T>(a.nrows(), bandwidth(a)) }
    }

    pub fn of_band<T: Scalar>(n: usize, (kl, ku): (usize, usize)) -> Self {
        Self { n: n as u64, band: (kl as u64, ku as u64), number: size_of::<T>() as u64, matrix: 0 }
    }

    /// So many numbers a row.
    fn columns(&self, columns: u64) -> u64 {
        self.n.saturating_mul(columns).saturating_mul(self.number)
    }

    fn diagonals(&self) -> u64 {
        self.band.0 + self.band.1 + 1
    }

    /// A few numbers a row.
    pub fn rows(&self) -> u64 {
        self.columns(16)
    }

    /// Factors as wide as the band, and a number a row.
    pub fn band(&self) -> u64 {
        self.columns(self.diagonals() + 1)
    }

    /// The same with room for the fill that interchanges cause.
    pub fn band_with_fill(&self) -> u64 {
        self.columns(self.diagonals() + self.band.0 + 1)
    }

    /// One half of a band.
    pub fn half_band(&self) -> u64 {
        self.columns(self.band.0 + 1)
    }

    /// Partitions and their spikes.
    pub fn band_with_spikes(&self) -> u64 {
        self.columns(3 * self.diagonals())
    }

    /// The matrix, and as much again; the fill is asked for by the method, once its order has counted it.
    pub fn matrix_twice(&self) -> u64 {
        2 * self.matrix
    }

    /// All numbers and their factors.
    pub fn dense_twice(&self) -> u64 {
        self.columns(2 * self.n)
    }

    /// All numbers, and factors of two doubles for each part.
    pub fn dense_doubled(&self) -> u64 {
        (self.number + 32).saturating_mul(self.n).saturating_mul(self.n)
    }
}
