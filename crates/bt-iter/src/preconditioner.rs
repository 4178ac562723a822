//! Preconditioners: z ← M⁻¹r, with setup apart from application.

use bt_formats::Scalar;

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
