//! What a sparse LU will cost, told from the pattern.

use bt_formats::{Csr, Matrix, Scalar};

use super::{blocked, by_columns_pays, held};
use crate::error::Result;
use crate::sparse_cholesky::SymbolicCholesky;

/// What elimination without interchanges does in the approximate minimum degree order of A + Aᵀ.
///
/// [`crate::SparseLu`] works in that order where the pattern is nearly symmetric with a diagonal, and leaves it only as far as
/// pivots demand: elimination by columns may then fill more, by supernodes it does not. For other patterns the counts are a guess.
///
/// ```
/// use bt_direct::SymbolicLu;
/// use bt_formats::Csr;
/// // [ 4 1   ]
/// // [ 2 4 1 ]
/// // [   2 4 ]
/// let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![4.0, 1.0, 2.0, 4.0, 1.0, 2.0, 4.0])?;
/// let symbolic = SymbolicLu::new(&a)?;
/// // Two quotients, and two products that are taken from a pivot.
/// assert_eq!((symbolic.fill(), symbolic.flops()), (7, 6.0));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct SymbolicLu {
    cholesky: SymbolicCholesky,
    nnz: usize,
}

impl SymbolicLu {
    /// Of a square matrix; stored zeros count as entries.
    ///
    /// # Errors
    /// As [`SymbolicCholesky::new`].
    ///
    /// # Cost
    /// As [`SymbolicCholesky::new`].
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        Ok(Self { cholesky: SymbolicCholesky::new(a)?.by_supernodes(), nnz: a.nnz() })
    }

    /// Whether [`SparseLu`](crate::SparseLu) eliminates by columns, not by supernodes, where so many flops are counted for a matrix of `nnz` entries.
    pub fn pays_by_columns(flops: f64, nnz: usize) -> bool {
        by_columns_pays(flops, nnz)
    }

    /// Entries of L and U, the diagonal once.
    pub fn fill(&self) -> u64 {
        2 * self.cholesky.fill() - self.cholesky.n() as u64
    }

    /// Operations of the factorization: Σⱼ bⱼ(2bⱼ + 1) for bⱼ entries below the diagonal of column j of L.
    pub fn flops(&self) -> f64 {
        self.cholesky.lu_flops()
    }

    /// Operations of a right-hand side.
    pub fn solve_flops(&self) -> f64 {
        2.0 * self.fill() as f64
    }

    /// Bytes of a factorization with all that it holds on to, which is also the most that its making takes, but for orders of
    /// matrices that hardly fill.
    ///
    /// # Errors
    /// As [`SymbolicCholesky::bytes`].
    pub fn bytes<T: Scalar>(&self) -> Result<usize> {
        let n = self.cholesky.n();
        let held = held::<T>(n, self.nnz);
        if !by_columns_pays(self.flops(), self.nnz) {
            return Ok(held + blocked::bytes::<T>(&self.cholesky)?);
        }
        // L and U by columns, and work arrays: see `Simplicial`.
        let entries = self.fill() as usize - n;
        let columns = entries * (size_of::<T>() + size_of::<u32>()) + 2 * (n + 1) * size_of::<usize>();
        Ok(held + columns + n * (2 * size_of::<T>() + 4 * size_of::<u32>() + size_of::<(u32, usize)>()))
    }
}
