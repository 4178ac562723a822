//! Memory of factors, asked for before it is taken.
//!
//! Counted from the structure: the factors, and the matrix where a method copies it into a format of its own. Sparse LU asks by
//! itself, once its order has counted the fill.

use bt_direct::BlockLu;
use bt_formats::{Csr, Partition, Scalar, memory};

use crate::direct::Direct;
use crate::error::Error;
use crate::extent::Extent;

/// Bytes that `method` takes for a band of so many sub- and super-diagonals (or for all numbers).
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
        let extent = Extent::of_band::<f64>(10, (2, 2));
        // 5 diagonals, 2 of fill and a number a row; 3 diagonals.
        assert_eq!((Direct::BandLu.row().bytes)(&extent), 10 * 8 * 8);
        assert_eq!((Direct::BandCholesky.row().bytes)(&extent), 10 * 3 * 8);
        let endless = Extent::of_band::<f64>(usize::MAX, (2, 2));
        assert_eq!((Direct::BandLu.row().bytes)(&endless), u64::MAX);
        let blocks = Partition::uniform(1000, 100).unwrap();
        let once = BlockLu::<f64>::bytes(&blocks) as u64;
        assert_eq!(bytes_of_blocks::<f64>(&blocks, Direct::BlockLu), 2 * once);
    }
}
