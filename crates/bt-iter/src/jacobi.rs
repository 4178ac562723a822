//! The Jacobi preconditioner M = diag(A).
//!
//! Storage: n values, the reciprocals. Cost of an application: n multiplications, 3n values of traffic.
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.2, doi:10.1137/1.9780898718003.

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, Matrix, Scalar, one, zero};

use crate::blas1::divide;
use crate::incomplete_lu::check_refactor;
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// M = diag(A).
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Jacobi, Preconditioner};
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 8.0]].as_ref())?;
/// let mut z = [0.0; 2];
/// Jacobi::new(&a)?.apply(&[1.0, 4.0], &mut z);
/// assert_eq!(z, [0.5, 0.5]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Jacobi<T> {
    reciprocals: Vec<T>,
    kind: PreconditionerKind,
}

impl<T: Scalar> Jacobi<T> {
    /// From the diagonal of `a`.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the first row whose diagonal entry is zero or has no finite reciprocal;
    /// [`FactorError::Input`] when A is not square.
    ///
    /// # Cost
    /// One pass over the entries.
    #[inline(never)]
    pub fn new<A: Matrix<T> + ?Sized>(a: &A) -> Result<Self> {
        let n = a.nrows();
        if n != a.ncols() {
            return Err(bt_formats::Error::NotSquare { nrows: n, ncols: a.ncols() }.into());
        }
        let mut diagonal = vec![zero::<T>(); n];
        a.for_each_entry(&mut |i, j, v| {
            if i == j {
                diagonal[i] = v;
            }
        });
        Self::from_diagonal(&diagonal)
    }

    /// From dᵢ.
    ///
    /// # Errors
    /// As [`Jacobi::new`].
    pub fn from_diagonal(diagonal: &[T]) -> Result<Self> {
        let mut m = Self { reciprocals: diagonal.to_vec(), kind: PreconditionerKind::General };
        m.invert()?;
        Ok(m)
    }

    /// 1/dᵢ from dᵢ, in place; all NaN after an error.
    fn invert(&mut self) -> Result<()> {
        let mut positive = true;
        for row in 0..self.reciprocals.len() {
            let d = self.reciprocals[row];
            positive &= d.im() == zero() && d.re() > zero();
            let reciprocal = divide(one::<T>(), d);
            if d == zero() || !Scalar::is_finite(reciprocal) {
                self.reciprocals.fill(T::nan_impl());
                let reason =
                    format!("the diagonal entry {d} of row {row} (from 0) has no reciprocal; use ilut or matching");
                return Err(FactorError::breakdown("jacobi", Place::Row(row), reason));
            }
            self.reciprocals[row] = reciprocal;
        }
        self.kind = if positive { PreconditionerKind::Spd } else { PreconditionerKind::General };
        Ok(())
    }
}

impl<T: Scalar> Refactor<T> for Jacobi<T> {
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        let checked = check_refactor(self.reciprocals.len(), a);
        if checked.is_err() {
            self.reciprocals.fill(T::nan_impl());
            return checked;
        }
        self.reciprocals.iter_mut().enumerate().for_each(|(i, d)| *d = a.get(i, i));
        self.invert()
    }
}

impl<T: Scalar> Preconditioner<T> for Jacobi<T> {
    fn n(&self) -> usize {
        self.reciprocals.len()
    }
    fn name(&self) -> &'static str {
        "jacobi"
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.reciprocals.len(), r, z);
        // zᵢ ← rᵢ/aᵢᵢ
        z.copy_from_slice(r);
        for (z, d) in z.iter_mut().zip(&self.reciprocals) {
            *z *= *d;
        }
    }
    fn nnz(&self) -> usize {
        self.reciprocals.len()
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.reciprocals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_decide_the_kind_and_zeros_are_named() {
        assert_eq!(Jacobi::from_diagonal(&[1.0, -1.0]).unwrap().kind(), PreconditionerKind::General);
        let error = Jacobi::from_diagonal(&[1.0, 0.0]).unwrap_err().to_string();
        assert!(error.contains("row 1"), "{error}");
    }
}
