//! A preconditioner in single precision under an iteration in double: half the memory and half the traffic of M⁻¹.
//!
//! A = 2^e·F + E with F in single precision ([`bt_formats::Rounded`]), M made from F there. An application scales r by a power of
//! two so that its largest entry is about 1, rounds, applies, and widens:
//!
//! ```text
//! M⁻¹·r = 2^(f−e)·M_F⁻¹·round(2^(−f)·r)
//! ```
//!
//! so that neither small residuals nor large matrices leave the range of f32. M⁻¹ is linear to u₃₂ only. The iteration's accuracy
//! does not suffer where it is flexible (`fgmres`, `fcg`) or checks its claims against b − A·x, as all methods here do: they go
//! on from the true residual (`gmres` with a new cycle: take `fgmres`). A. Buttari et al., ACM Trans. Math. Softw. 34 (2008) 17,
//! doi:10.1145/1377596.1377597; E. Carson, N. J. Higham, SIAM J. Sci. Comput. 40 (2018) A817–A847, doi:10.1137/17M1140819.
//!
//! Storage: M in single precision, 2n values of single precision. Cost: that of M, and 2n conversions.

use bt_direct::Result;
use bt_formats::rounded::{round, widen};
use bt_formats::{Csr, Rounded, Scalar, zero};

use crate::incomplete_lu::check_refactor;
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// The preconditioner P of F in the scalar L, as one of A ≈ 2^e·F in any scalar.
///
/// ```
/// use bt_formats::{Csr, Rounded};
/// use bt_iter::{DroppedFill, MixedPrecision, Preconditioner, ilu0};
/// let a = Csr::from_dense(faer::mat![[4e100, 1e100], [1e100, 4e100]].as_ref())?;
/// let f = Rounded::<f32>::new(&a)?;
/// let mut m = MixedPrecision::new(ilu0(f.matrix(), DroppedFill::Forgotten)?, f.exponent());
/// let mut z = [0.0; 2];
/// m.apply(&[5e100, 5e100], &mut z);
/// assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-6));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MixedPrecision<P, L> {
    inner: P,
    exponent: i32,
    r: Vec<L>,
    z: Vec<L>,
    /// The last refactorisation failed: applications give NaN.
    failed: bool,
}

impl<L: Scalar, P: Preconditioner<L>> MixedPrecision<P, L> {
    /// Of a preconditioner of F, for A ≈ 2^`exponent`·F.
    pub fn new(inner: P, exponent: i32) -> Self {
        let vector = || vec![zero(); inner.n()];
        let (r, z) = (vector(), vector());
        Self { inner, exponent, r, z, failed: false }
    }

    /// The preconditioner in single precision.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<T: Scalar, L: Scalar, P: Refactor<L>> Refactor<T> for MixedPrecision<P, L> {
    /// Rounds A to a new F, in memory taken for the time of the call, and hands F to the inner one.
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.r.len(), a)?;
        let rounded = Rounded::<L>::new(a)?;
        self.inner.refactor(rounded.matrix())?;
        self.exponent = rounded.exponent();
        self.failed = false;
        Ok(())
    }
}

impl<T: Scalar, L: Scalar, P: Preconditioner<L>> Preconditioner<T> for MixedPrecision<P, L> {
    fn n(&self) -> usize {
        self.r.len()
    }
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    /// That of the inner one; an identity rounds, and is not skipped.
    fn kind(&self) -> PreconditionerKind {
        match self.inner.kind() {
            PreconditionerKind::Identity => PreconditionerKind::Spd,
            other => other,
        }
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.r.len(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        let exponent = round(r, &mut self.r).unwrap_or(0);
        self.inner.apply(&self.r, &mut self.z);
        widen(exponent - self.exponent, &self.z, z);
    }
    fn nnz(&self) -> usize {
        self.inner.nnz()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes() + size_of_val(&*self.r) + size_of_val(&*self.z)
    }
}
