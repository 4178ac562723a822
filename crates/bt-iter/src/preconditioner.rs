//! Preconditioners: z ← M⁻¹r, with setup apart from application.

#[cfg(doc)]
use bt_direct::FactorError;
use bt_direct::Result;
use bt_formats::{Csr, Scalar};

/// What a method may assume of M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreconditionerKind {
    /// M = I: methods skip the application.
    Identity,
    /// Hermitian positive definite, and the same at every application.
    Spd,
    /// Linear and the same at every application.
    General,
    /// Another operator at every application, such as an inner iteration: only flexible methods take it.
    Variable,
}

/// An approximation M of A whose inverse is cheap to apply.
///
/// ```
/// use bt_iter::{Jacobi, Preconditioner, PreconditionerKind};
/// let mut m = Jacobi::from_diagonal(&[2.0, 4.0])?;
/// let mut z = [0.0; 2];
/// m.apply(&[2.0, 2.0], &mut z);
/// assert_eq!((z, m.kind()), ([1.0, 0.5], PreconditionerKind::Spd));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub trait Preconditioner<T: Scalar>: Send {
    /// Size n.
    fn n(&self) -> usize;
    /// Name, as the command spells it.
    fn name(&self) -> &'static str;
    /// What a method may assume.
    fn kind(&self) -> PreconditionerKind;
    /// z ← M⁻¹·r. Allocates nothing.
    ///
    /// # Panics
    /// When a length is not n.
    fn apply(&mut self, r: &[T], z: &mut [T]);
    /// Stored values.
    fn nnz(&self) -> usize;
    /// Bytes of all arrays.
    fn bytes(&self) -> usize;
}

impl<T: Scalar, P: Preconditioner<T> + ?Sized> Preconditioner<T> for Box<P> {
    fn n(&self) -> usize {
        (**self).n()
    }
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn kind(&self) -> PreconditionerKind {
        (**self).kind()
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        (**self).apply(r, z);
    }
    fn nnz(&self) -> usize {
        (**self).nnz()
    }
    fn bytes(&self) -> usize {
        (**self).bytes()
    }
}

/// A preconditioner that takes the values of another matrix of the same pattern, in the memory it has.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{DroppedFill, Preconditioner, Refactor, ilu0};
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 2.0]].as_ref())?;
/// let mut m = ilu0(&a, DroppedFill::Forgotten)?;
/// m.refactor(&Csr::from_dense(faer::mat![[4.0, 1.0], [1.0, 3.0]].as_ref())?)?;
/// let mut z = [0.0; 2];
/// m.apply(&[5.0, 4.0], &mut z);
/// assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub trait Refactor<T: Scalar>: Preconditioner<T> {
    /// Makes M from `a` as the constructor did, to the same bits where the pattern is the same. After an error applications
    /// give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// Those of the constructor, and [`FactorError::Input`] for another size, or naming an entry that the pattern has no place for.
    fn refactor(&mut self, a: &Csr<T>) -> Result<()>;
}

impl<T: Scalar, P: Refactor<T> + ?Sized> Refactor<T> for Box<P> {
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        (**self).refactor(a)
    }
}

/// The contract of [`Preconditioner::apply`] on lengths.
pub(crate) fn check_lengths<T>(n: usize, r: &[T], z: &[T]) {
    assert_eq!((r.len(), z.len()), (n, n), "lengths of r and z");
}

/// M = I.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    n: usize,
}

impl Identity {
    /// Of size n.
    pub fn new(n: usize) -> Self {
        Self { n }
    }
}

impl<T: Scalar> Preconditioner<T> for Identity {
    fn n(&self) -> usize {
        self.n
    }
    fn name(&self) -> &'static str {
        "none"
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Identity
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.n, r, z);
        z.copy_from_slice(r);
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}
