//! Memory of factors, asked for before it is taken.
//!
//! Counted from the structure: the matrix in the format of the method and its factors. Sparse LU asks by itself, once its order
//! has counted the fill.

use bt_direct::BlockLu;
use bt_formats::reorder::bandwidth;
use bt_formats::{Csr, LinearOperator, Matrix, Partition, Scalar, memory};

use crate::direct::Direct;
use crate::error::Error;

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
    fn of<T: Scalar>(a: &Csr<T>) -> Self {
        Self { matrix: a.bytes() as u64, ..Self::of_band::<T>(a.nrows(), bandwidth(a)) }
    }

    fn of_band<T: Scalar>(n: usize, (kl, ku): (usize, usize)) -> Self {
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

    /// A band and factors as wide.
    pub fn band(&self) -> u64 {
        self.columns(2 * self.diagonals())
    }

    /// The same with room for the fill that interchanges cause.
    pub fn band_with_fill(&self) -> u64 {
        self.columns(2 * self.diagonals() + self.band.0)
    }

    /// A band and one half of it.
    pub fn half_band(&self) -> u64 {
        self.columns(self.diagonals() + self.band.0 + 1)
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

/// Bytes of a band of so many sub- and super-diagonals (or of all numbers) and of its factors by `method`.
pub(crate) fn bytes_of<T: Scalar>(n: usize, band: (usize, usize), method: Direct) -> u64 {
    (method.row().bytes)(&Extent::of_band::<T>(n, band))
}

/// Bytes of dense blocks and of their factors.
pub(crate) fn bytes_of_blocks<T: Scalar>(partition: &Partition, method: Direct) -> u64 {
    let factors = BlockLu::<T>::bytes(partition);
    let copies = match method {
        Direct::BlockLu | Direct::BlockCholesky => 1.0,
        // Rows that fill across blocks, butterflies, fronts of several levels.
        _ => 2.0,
    };
    // Blocks may be stored dense, at most as large as the factors.
    (factors * (1.0 + copies)).min(u64::MAX as f64) as u64
}

/// Whether a factorization by `method` fits.
///
/// # Errors
/// [`bt_formats::Error::NotEnoughMemory`] with what is needed and what there is.
pub(crate) fn ask_for<T: Scalar>(a: &Csr<T>, method: Direct) -> Result<(), Error> {
    Ok(memory::ask((method.row().bytes)(&Extent::of(a)), &format!("the factors of {method}"))?)
}

/// [`ask_for`] of a method on a band of `kl` sub- and `ku` super-diagonals.
///
/// # Errors
/// As there.
pub(crate) fn ask_for_band<T: Scalar>(n: usize, band: (usize, usize), method: Direct) -> Result<(), Error> {
    Ok(memory::ask(bytes_of::<T>(n, band, method), &format!("the factors of {method}"))?)
}

/// [`ask_for`] of a method on blocks.
///
/// # Errors
/// As there.
pub(crate) fn ask_for_blocks<T: Scalar>(partition: &Partition, method: Direct) -> Result<(), Error> {
    Ok(memory::ask(bytes_of_blocks::<T>(partition, method), &format!("the blocks and factors of {method}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_and_blocks_are_counted_by_formula() {
        let extent = Extent { n: 10, band: (2, 2), number: 8, matrix: 0 };
        // 5 diagonals of the band, and 7 or 3 of the factors.
        assert_eq!((Direct::BandLu.row().bytes)(&extent), 10 * 12 * 8);
        assert_eq!((Direct::BandCholesky.row().bytes)(&extent), 10 * 8 * 8);
        let endless = Extent { n: u64::MAX, ..extent };
        assert_eq!((Direct::BandLu.row().bytes)(&endless), u64::MAX);
        let blocks = Partition::uniform(1000, 100).unwrap();
        let once = BlockLu::<f64>::bytes(&blocks) as u64;
        assert_eq!(bytes_of_blocks::<f64>(&blocks, Direct::BlockLu), 2 * once);
    }
}
