//! Memory of factors, asked for before it is taken.
//!
//! Counted from the structure: the matrix in the format of the method and its factors. Sparse LU asks by itself, once its order
//! has counted the fill.

use bt_direct::BlockLu;
use bt_formats::reorder::bandwidth;
use bt_formats::{Csr, LinearOperator, Matrix, Partition, Scalar, memory};

use crate::error::Error;
use crate::options::Method;

/// Bytes of a band of n rows and of its factors, with room for the fill that interchanges cause.
fn band_bytes<T>(n: usize, kl: usize, ku: usize, method: Method) -> u64 {
    let diagonals = (kl + ku + 1) as u64;
    let factors = match method {
        Method::BandCholesky => kl as u64 + 1,
        Method::BandLuNoPivot => diagonals,
        // Partitions and their spikes.
        Method::Spike | Method::SpikeTruncated => 2 * diagonals,
        _ => diagonals + kl as u64,
    };
    (n as u64).saturating_mul(diagonals + factors).saturating_mul(size_of::<T>() as u64)
}

/// Bytes of dense blocks and of their factors.
fn block_bytes<T: Scalar>(partition: &Partition, method: Method) -> u64 {
    let factors = BlockLu::<T>::bytes(partition);
    let copies = match method {
        Method::BlockLu | Method::BlockCholesky => 1.0,
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
pub(crate) fn ask_for<T: Scalar>(a: &Csr<T>, method: Method) -> Result<(), Error> {
    let (n, size) = (a.nrows(), size_of::<T>() as u64);
    let bytes = match method {
        Method::BandLu | Method::BandLuNoPivot | Method::BandCholesky | Method::Spike | Method::SpikeTruncated => {
            let (kl, ku) = bandwidth(a);
            band_bytes::<T>(n, kl, ku, method)
        }
        Method::DenseLu | Method::Genp | Method::Rbt => 2 * size * (n as u64).saturating_mul(n as u64),
        Method::DenseLuDoubled => (size + 32) * (n as u64).saturating_mul(n as u64),
        Method::SparseLu => 2 * a.bytes() as u64,
        _ => 16 * size * n as u64,
    };
    Ok(memory::ask(bytes, &format!("the factors of {method}"))?)
}

/// [`ask_for`] of a method on blocks.
///
/// # Errors
/// As there.
pub(crate) fn ask_for_blocks<T: Scalar>(partition: &Partition, method: Method) -> Result<(), Error> {
    Ok(memory::ask(block_bytes::<T>(partition, method), &format!("the blocks and factors of {method}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_and_blocks_are_counted_by_formula() {
        // 5 diagonals of the band, and 7 or 3 of the factors.
        assert_eq!(band_bytes::<f64>(10, 2, 2, Method::BandLu), 10 * 12 * 8);
        assert_eq!(band_bytes::<f64>(10, 2, 2, Method::BandCholesky), 10 * 8 * 8);
        assert_eq!(band_bytes::<f32>(usize::MAX, 2, 2, Method::BandLu), u64::MAX);
        let blocks = Partition::uniform(1000, 100).unwrap();
        let once = BlockLu::<f64>::bytes(&blocks) as u64;
        assert_eq!(block_bytes::<f64>(&blocks, Method::BlockLu), 2 * once);
    }
}
