//! The approximate minimum degree order of A + Aᵀ, with the fill that it causes.
//!
//! P. R. Amestoy, T. A. Davis & I. S. Duff, SIAM J. Matrix Anal. Appl. 17 (1996) 886–905, doi:10.1137/S0895479894278952; faer's.

use std::sync::Arc;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::amd;

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::memory;
use crate::operator::LinearOperator;
use crate::scalar::Scalar;

/// An order of elimination, and what elimination without interchanges in it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct MinimumDegree {
    /// `order[k]`: the row and column that is eliminated as number k.
    pub order: Vec<u32>,
    /// Entries of L below its diagonal.
    pub below: f64,
    /// Multiplications with a subtraction, of L·U.
    pub lu_products: f64,
    /// The same of L·D·Lᴴ.
    pub ldl_products: f64,
}

/// Approximate minimum degree on the pattern of A + Aᵀ, stored zeros included. It is made once for a pattern: copies of A with other
/// values have it too.
///
/// ```
/// use bt_formats::{Csr, reorder::minimum_degree};
/// // An arrow: the dense row goes last, and nothing is filled.
/// let a = Csr::new(3, 3, vec![0, 3, 5, 7], vec![0, 1, 2, 0, 1, 0, 2], vec![4.0, 1.0, 1.0, 1.0, 4.0, 1.0, 4.0])?;
/// let found = minimum_degree(&a)?;
/// assert_eq!((found.order[2], found.below), (0, 2.0));
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::NotEnoughMemory`] and [`Error::TooLarge`] when there is not the memory for it.
///
/// # Cost
/// O(n·nnz) at worst and little more than O(nnz) on grids.
pub fn minimum_degree<T: Scalar>(a: &Csr<T>) -> Result<Arc<MinimumDegree>> {
    a.check_square()?;
    a.minimum_degree_or(|| minimum_degree_of_pattern(a.nrows(), a.row_ptr(), a.col_idx()))
}

/// As [`minimum_degree`], of compressed rows (or columns: only A + Aᵀ counts).
///
/// # Errors
/// As [`minimum_degree`].
pub fn minimum_degree_of_pattern(n: usize, ptr: &[u32], idx: &[u32]) -> Result<MinimumDegree> {
    let too_large = || Error::TooLarge {
        what: "the order of a sparse matrix",
        needed: format!("that of {n} rows with {} entries", idx.len()),
        limit: "32-bit indices and the memory there is".into(),
    };
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, ptr, None, idx);
    let request = amd::order_scratch::<u32>(n, idx.len());
    memory::ask(request.size_bytes() as u64, "the order of a sparse matrix")?;
    let mut memory = MemBuffer::try_new(request).map_err(|_| too_large())?;
    let (mut order, mut position) = (vec![0u32; n], vec![0u32; n]);
    let stack = MemStack::new(&mut memory);
    let count =
        amd::order(&mut order, &mut position, pattern, amd::Control::default(), stack).map_err(|_| too_large())?;
    let (below, lu_products, ldl_products) = (count.n_div, count.n_mult_subs_lu, count.n_mult_subs_ldl);
    Ok(MinimumDegree { order, below, lu_products, ldl_products })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_ordered_once() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]).unwrap();
        let first = minimum_degree(&a).unwrap();
        let mut other = a.clone();
        other.values_mut()[0] = 5.0;
        assert!(Arc::ptr_eq(&first, &minimum_degree(&other).unwrap()));
        // Equality of matrices is that of their entries, whether they were ordered or not.
        assert_eq!(a, Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]).unwrap());
        assert!(minimum_degree(&Csr::<f64>::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap()).is_err());
    }
}
