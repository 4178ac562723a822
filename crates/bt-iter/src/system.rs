//! What a Krylov method asks of a system: products with A, applications of M, and inner products.
//!
//! The recurrences know the rows that are here. Where these are all rows, inner products are those of `blas1.rs` and nothing is added
//! to them; where each of several processes has some, [`KrylovSystem::sum`] and [`KrylovSystem::max`] put the numbers of all of them together, and
//! every process takes the same steps as long as all get the same sums. Which reductions a step takes, of how many numbers each:
//!
//! ```text
//! CG        3 of one (2 without M, the flexible form one more)
//! BiCGSTAB  2 of two (σ and (v, v); (t, s) and (t, t)), 1 of one, 1 of two (‖r‖² and ρ)
//! GMRES     step j (from 0): 2 of j + 2, 1 more of one where orthogonalised again; one of one and a maximum at the end of a cycle
//! ```

use bt_formats::{Bytes, Error, LinearOperator, Scalar, norm2, one};

use crate::blas1::{self, dot};
use crate::krylov::finite;
use crate::preconditioner::{Preconditioner, PreconditionerKind};

/// A, M and sums over all rows; vectors hold the rows that are here.
pub trait KrylovSystem<T: Scalar> {
    /// Rows of A that are here.
    fn nrows(&self) -> usize;
    /// Unknowns that are here.
    fn ncols(&self) -> usize;
    /// y ← α·A·x + β·y. β = 0 never reads y.
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]);
    /// z ← M⁻¹·r
    fn precondition(&mut self, r: &[T], z: &mut [T]);
    /// What a method may assume of M.
    fn kind(&self) -> PreconditionerKind;
    /// Name of M.
    fn name(&self) -> &'static str;
    /// Rows of M that are here.
    fn preconditioner_rows(&self) -> usize;
    /// Bytes of M.
    fn bytes(&self) -> usize;
    /// Each number ← its sum over all places that have rows.
    fn sum(&self, terms: &mut [T]) {
        let _ = terms;
    }
    /// The largest number of all places that have rows; NaN where one is.
    fn max(&self, own: f64) -> f64 {
        own
    }
}

/// A system whose rows are all here.
pub(crate) struct Local<'a, T: Scalar> {
    pub a: &'a dyn LinearOperator<T>,
    pub m: &'a mut dyn Preconditioner<T>,
}

impl<T: Scalar> KrylovSystem<T> for Local<'_, T> {
    fn nrows(&self) -> usize {
        self.a.nrows()
    }
    fn ncols(&self) -> usize {
        self.a.ncols()
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        self.a.apply(alpha, x, beta, y);
    }
    fn precondition(&mut self, r: &[T], z: &mut [T]) {
        self.m.apply(r, z);
    }
    fn kind(&self) -> PreconditionerKind {
        self.m.kind()
    }
    fn name(&self) -> &'static str {
        self.m.name()
    }
    fn preconditioner_rows(&self) -> usize {
        self.m.n()
    }
    fn bytes(&self) -> usize {
        self.m.bytes()
    }
}

/// A system and a right-hand side.
pub(crate) struct System<'a, T: Scalar> {
    pub on: &'a mut dyn KrylovSystem<T>,
    pub b: &'a [T],
}

impl<T: Scalar> System<'_, T> {
    /// r ← b − A·x; ‖r‖₂
    pub fn residual(&self, x: &[T], r: &mut [T]) -> f64 {
        r.copy_from_slice(self.b);
        self.on.apply(-one::<T>(), x, one(), r);
        self.norm(r)
    }

    /// z ← M⁻¹·r
    pub fn precondition(&mut self, r: &[T], z: &mut [T]) {
        self.on.precondition(r, z);
    }

    /// Sums of the rows that are here ← those of all rows.
    pub fn sums<const D: usize>(&self, mut own: [T; D]) -> [T; D] {
        self.on.sum(&mut own);
        own
    }

    /// xᴴy
    pub fn dot(&self, x: &[T], y: &[T]) -> T {
        let [sum] = self.sums([dot(x, y)]);
        sum
    }

    /// ‖x‖₂; scaled where the squares overflow or vanish, NaN when an entry is NaN.
    pub fn norm(&self, x: &[T]) -> f64 {
        self.norm_of(self.dot(x, x), x)
    }

    /// ‖x‖₂ of an x with xᴴx = `square`, summed over all rows.
    pub fn norm_of(&self, square: T, x: &[T]) -> f64 {
        blas1::norm_of(square, || {
            let own = norm2(x);
            let largest = self.on.max(own);
            if largest == 0.0 || !largest.is_finite() {
                return largest;
            }
            // m·(Σ (‖xᵢ‖/m)²)^½ over the places i
            let part = own / largest;
            let [sum] = self.sums([T::rounded(part * part, 0.0)]);
            largest * bt_formats::RealScalar::to_f64(sum.re()).sqrt()
        })
    }

    /// Whether no entry is infinite or NaN.
    pub fn finite(&self, x: &[T]) -> bool {
        self.on.max(if finite(x) { 0.0 } else { 1.0 }) == 0.0
    }

    /// Memory, with that of the method's own vectors.
    pub fn bytes(&self, workspace: usize) -> Bytes {
        Bytes { matrix: 0, factors: self.on.bytes(), workspace }
    }

    /// Sizes of the operator, the preconditioner and the vectors.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`].
    pub fn check(&self, n: usize, x: &[T]) -> Result<(), Error> {
        let (nrows, ncols) = (self.on.nrows(), self.on.ncols());
        if nrows != ncols {
            return Err(Error::NotSquare { nrows, ncols });
        }
        let sizes = [
            ("rows of the operator", nrows),
            ("size of the preconditioner", self.on.preconditioner_rows()),
            ("length of the right-hand side", self.b.len()),
            ("length of x", x.len()),
        ];
        match sizes.into_iter().find(|(_, found)| *found != n) {
            Some((what, found)) => Err(Error::DimensionMismatch { what, expected: n, found }),
            None => Ok(()),
        }
    }

    /// # Errors
    /// [`Error::InvalidStructure`] for a preconditioner that changes from one application to the next.
    pub fn refuse_variable(&self, method: &str) -> Result<(), Error> {
        if self.on.kind() == PreconditionerKind::Variable {
            return Err(Error::InvalidStructure {
                what: "preconditioner",
                why: format!(
                    "{} changes from one application to the next, and {method} relies on one operator: use fgmres",
                    self.on.name()
                ),
            });
        }
        Ok(())
    }
}

/// With a system whose n rows are all here.
#[cfg(test)]
pub(crate) fn here<T: Scalar, R>(n: usize, f: impl FnOnce(&System<'_, T>) -> R) -> R {
    let a = bt_formats::Csr::<T>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    f(&System { on: &mut Local { a: &a, m: &mut crate::preconditioner::Identity::new(n) }, b: &[] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_survive_extremes() {
        fn norm<T: Scalar>(x: &[T]) -> f64 {
            here(x.len(), |system| system.norm(x))
        }
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-30f32, 4e-30]) / 5e-30 - 1.0).abs() < 1e-6);
        assert!(norm(&[1.0, f64::NAN]).is_nan());
    }
}
