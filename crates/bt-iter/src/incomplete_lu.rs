//! Incomplete factors M = L·U with unit lower triangular L, whatever rule made them, as a preconditioner.
//!
//! Storage: the two triangles (see `triangular.rs`) and n values of work. Cost of an application: 2 flops an entry.

use bt_formats::{RealScalar, Scalar};

use crate::blas1::over;
use crate::preconditioner::{Preconditioner, PreconditionerKind, check_lengths};
use crate::triangular::{LevelTriangle, Rows, Triangle};

/// M = L·U.
#[derive(Clone, Debug)]
pub struct IncompleteLu<T> {
    name: &'static str,
    lower: LevelTriangle<T>,
    upper: LevelTriangle<T>,
    work: Vec<T>,
    replaced: usize,
    kind: PreconditionerKind,
}

impl<T: Scalar> IncompleteLu<T> {
    pub(crate) fn assemble(
        name: &'static str,
        lower: &Rows<T>,
        upper: &Rows<T>,
        reciprocals: &[T],
        replaced: usize,
    ) -> Self {
        Self {
            name,
            lower: LevelTriangle::new(lower, None, Triangle::Lower),
            upper: LevelTriangle::new(upper, Some(reciprocals), Triangle::Upper),
            work: vec![T::default(); reciprocals.len()],
            replaced,
            kind: PreconditionerKind::General,
        }
    }

    /// The same, known to be of another kind.
    pub(crate) fn claiming(self, kind: PreconditionerKind) -> Self {
        Self { kind, ..self }
    }

    /// Pivots that were too small to divide by and were replaced; see the rule of the factorization.
    pub fn replaced_pivots(&self) -> usize {
        self.replaced
    }

    /// Levels of L and of U: rows of one level are solved together.
    pub fn levels(&self) -> (usize, usize) {
        (self.lower.n_levels(), self.upper.n_levels())
    }
}

impl<T: Scalar> Preconditioner<T> for IncompleteLu<T> {
    fn n(&self) -> usize {
        self.work.len()
    }
    fn name(&self) -> &'static str {
        self.name
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.work.len(), r, z);
        // z ← U⁻¹·L⁻¹·r
        z.copy_from_slice(r);
        self.lower.solve(z, &mut self.work);
        self.upper.solve(z, &mut self.work);
    }
    fn nnz(&self) -> usize {
        self.lower.nnz() + self.upper.nnz()
    }
    fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes() + size_of_val(&*self.work)
    }
}

/// A pivot below this, relative to the largest entry of its row of A, is replaced.
const SMALLEST: f64 = 1e-10;
/// By this, relative to the same.
const REPLACEMENT: f64 = 1e-4;

/// The rule for pivots: one of modulus at most 10⁻¹⁰·maxⱼ|aᵢⱼ| becomes 10⁻⁴·maxⱼ|aᵢⱼ| with the same sign (phase; + at
/// zero). Smaller ones would fill the preconditioner with noise. Returns the pivot and whether it was replaced.
pub(crate) fn usable_pivot<T: Scalar>(pivot: T, largest: T::Real) -> (T, bool) {
    let size = pivot.abs();
    let scale = if largest > T::Real::default() { largest.to_f64() } else { 1.0 };
    // Within the range of f32 too: a few hundred units of its roundoff.
    let smallest = SMALLEST.max(T::Real::EPSILON.to_f64());
    if size.to_f64() > smallest * scale {
        return (pivot, false);
    }
    let phase = if size == T::Real::default() { bt_formats::one() } else { over(pivot, size) };
    (phase * T::from_parts(REPLACEMENT * scale, 0.0), true)
}
