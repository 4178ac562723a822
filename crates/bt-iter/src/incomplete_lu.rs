//! Incomplete factors M = L·U = L·D·Ũ with unit triangles L and Ũ, whatever rule made them, as a preconditioner.
//!
//! Storage: the two triangles (see `triangular/mod.rs`), n values of work and 4n bytes for the next factorization. Cost of an
//! application: 2 flops an entry.

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, zero};

use crate::blas1::{over, zeros};
use crate::hermitian::check_positive;
use crate::ilu0::DroppedFill;
use crate::ilut::{IlutOptions, ilut};
use crate::pattern_lu::{Eliminated, Entries, Pattern, Pivots, eliminate};
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};
use crate::triangular::{Rows, SparseTriangle, Triangle};

/// How factors come about, for the next matrix too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Elimination on the pattern, small pivots replaced.
    Pattern(DroppedFill),
    /// The same of a Hermitian matrix, shifted until all pivots are positive.
    Positive(DroppedFill),
    /// The triangles of A, relaxed by ω.
    Relaxed(f64),
    /// Dropping by size, which finds a pattern anew.
    Dropping(IlutOptions),
}

/// How L and U are solved with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriangularSolves {
    /// Exactly: row by row, or level by level for threads.
    #[default]
    Levels,
    /// By so many Jacobi sweeps each, all rows at once: M is near L·U, and L·U itself from [`IncompleteLu::levels`] − 1 sweeps on.
    /// Of Hermitian positive definite factors it stays so. Where the factors are far from dominated by their diagonal, few sweeps
    /// may be worse than none.
    Sweeps(usize),
}

/// M = L·U.
#[derive(Clone, Debug)]
pub struct IncompleteLu<T> {
    name: &'static str,
    rule: Rule,
    pub(crate) lower: SparseTriangle<T>,
    pub(crate) upper: SparseTriangle<T>,
    pub(crate) work: Vec<T>,
    solves: TriangularSolves,
    /// Three vectors for sweeps.
    buffers: Vec<T>,
    /// The row that `work` belongs to while it is eliminated.
    owner: Vec<u32>,
    replaced: usize,
    pub(crate) kind: PreconditionerKind,
    shift: f64,
    breakdowns: usize,
    /// The last factorization failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> IncompleteLu<T> {
    pub(crate) fn assemble(
        name: &'static str,
        rule: Rule,
        lower: Rows<T>,
        upper: Rows<T>,
        reciprocals: Vec<T>,
        replaced: usize,
    ) -> Self {
        let n = reciprocals.len();
        let owner = if matches!(rule, Rule::Dropping(_)) { 0 } else { n };
        Self {
            name,
            rule,
            lower: SparseTriangle::new(lower, None, Triangle::Lower),
            upper: SparseTriangle::new(upper, Some(reciprocals), Triangle::Upper),
            work: zeros(n),
            solves: TriangularSolves::Levels,
            buffers: Vec::new(),
            owner: vec![0; owner],
            replaced,
            kind: PreconditionerKind::General,
            shift: 0.0,
            breakdowns: 0,
            failed: false,
        }
    }

    /// On a pattern, from `a`.
    #[inline(never)]
    pub(crate) fn on_pattern(name: &'static str, rule: Rule, pattern: &Pattern<'_>, a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let [lower, upper] = pattern.triangles();
        let mut made = Self::assemble(name, rule, lower, upper, zeros(a.nrows()), 0);
        // ILU(0) and its like: nothing of A can be missing or outside.
        let entries = if std::ptr::eq(pattern.idx, a.col_idx()) { Entries::Everywhere } else { Entries::Within };
        made.factor(a, entries)?;
        Ok(made)
    }

    /// The same factors, solved with in another way. Sweeps take 3n values more.
    ///
    /// ```
    /// use bt_formats::Csr;
    /// use bt_iter::{DroppedFill, Preconditioner, TriangularSolves, ilu0};
    /// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 2.0]].as_ref())?;
    /// // Two levels: one sweep is exact.
    /// let mut m = ilu0(&a, DroppedFill::Forgotten)?.solved_by(TriangularSolves::Sweeps(1));
    /// let mut z = [0.0; 2];
    /// m.apply(&[3.0, 3.0], &mut z);
    /// assert!(z.iter().all(|z: &f64| (z - 1.0).abs() < 1e-15));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    #[must_use]
    pub fn solved_by(self, solves: TriangularSolves) -> Self {
        let len = if solves == TriangularSolves::Levels { 0 } else { 3 * self.work.len() };
        Self { solves, buffers: vec![T::default(); len], ..self }
    }

    /// Pivots that were too small to divide by and were replaced; see the rule of the factorization.
    pub fn replaced_pivots(&self) -> usize {
        self.replaced
    }

    /// Levels of L and of U: rows of one level wait for none of each other. O(nnz) where there is no schedule by levels.
    pub fn levels(&self) -> (usize, usize) {
        (self.lower.n_levels(), self.upper.n_levels())
    }

    /// α of the A + α·diag(A) that was factored, and the attempts that met a pivot that was not positive.
    pub(crate) fn shift(&self) -> (f64, usize) {
        (self.shift, self.breakdowns)
    }

    #[inline(never)]
    fn factor(&mut self, a: &Csr<T>, entries: Entries) -> Result<()> {
        self.failed = true;
        check_refactor(self.work.len(), a)?;
        match self.rule {
            Rule::Pattern(dropped) => self.eliminate((a, entries), dropped, Pivots::Replaced)?,
            Rule::Positive(dropped) => {
                check_positive(a, self.name)?;
                self.eliminate((a, entries), dropped, Pivots::Positive)?;
            }
            Rule::Relaxed(omega) => crate::ssor::relax(self, a, omega)?,
            Rule::Dropping(options) => *self = ilut(a, options)?.solved_by(self.solves),
        }
        self.failed = false;
        Ok(())
    }

    /// Elimination on the pattern; for positive pivots of A + α·diag(A), α the first of 0, 10⁻³, 2·10⁻³, … that works.
    fn eliminate(&mut self, a: (&Csr<T>, Entries), dropped: DroppedFill, pivots: Pivots) -> Result<()> {
        (self.shift, self.breakdowns) = (0.0, 0);
        loop {
            let Self { lower, upper, work, owner, shift, name, .. } = self;
            match eliminate(a, lower, upper, (work, owner), dropped, *shift, pivots, name)? {
                Eliminated::Done { replaced } => {
                    self.replaced = replaced;
                    return Ok(());
                }
                Eliminated::Stopped { row } if *shift >= LAST_SHIFT => {
                    let reason = format!("no positive pivot in row {row} (from 0), also of A + {shift}·diag(A)");
                    return Err(FactorError::breakdown(name, Place::Row(row), reason));
                }
                Eliminated::Stopped { .. } => {
                    self.breakdowns += 1;
                    self.shift = if *shift == 0.0 { FIRST_SHIFT } else { 2.0 * *shift };
                }
            }
        }
    }
}

/// The first α tried after a breakdown.
const FIRST_SHIFT: f64 = 1e-3;
/// The last: A + 16·diag(A) is more diagonal than A.
const LAST_SHIFT: f64 = 16.0;

impl<T: Scalar> Refactor<T> for IncompleteLu<T> {
    /// ILUT finds its pattern anew, and takes memory for it; the others keep theirs, of which A may have less but not more.
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.factor(a, Entries::Within)
    }
}

/// The contract of [`Refactor::refactor`] on sizes and values.
///
/// # Errors
/// [`Error::NotSquare`], [`Error::DimensionMismatch`], [`Error::NonFinite`].
pub(crate) fn check_refactor<T: Scalar>(n: usize, a: &Csr<T>) -> Result<()> {
    a.check_square()?;
    if a.nrows() != n {
        return Err(Error::DimensionMismatch { what: "size of the matrix", expected: n, found: a.nrows() }.into());
    }
    Ok(a.check_finite()?)
}

/// The error for an entry (row, col) of A that the pattern has no place for.
pub(crate) fn outside_pattern(row: usize, col: u32) -> FactorError {
    let why = "is outside the pattern that was factored".into();
    Error::OutsideStructure { row, col: col as usize, why }.into()
}

/// A row on a pattern with its columns and perhaps others, which become zero.
///
/// # Errors
/// [`Error::OutsideStructure`] naming the first column that the pattern has no place for.
pub(crate) fn spread<T: Scalar>(
    row: usize,
    entries: impl Iterator<Item = (u32, T)>,
    (cols, values): (&[u32], &mut [T]),
) -> Result<()> {
    values.fill(zero());
    let mut places = cols.iter().zip(values);
    for (j, v) in entries {
        match places.find(|(col, _)| **col >= j) {
            Some((&col, place)) if col == j => *place = v,
            _ => return Err(outside_pattern(row, j)),
        }
    }
    Ok(())
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
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.work.len(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        // z ← Ũ⁻¹·D⁻¹·L⁻¹·r
        match self.solves {
            TriangularSolves::Levels => {
                self.lower.solve(Some(r), z, &mut self.work);
                self.upper.solve(None, z, &mut self.work);
            }
            TriangularSolves::Sweeps(sweeps) => {
                z.copy_from_slice(r);
                for triangle in [&self.lower, &self.upper] {
                    let (rhs, rest) = self.buffers.split_at_mut(self.work.len());
                    let (x, next) = rest.split_at_mut(self.work.len());
                    triangle.sweep(sweeps, z, [rhs, x, next]);
                }
            }
        }
    }
    fn nnz(&self) -> usize {
        self.lower.nnz() + self.upper.nnz()
    }
    fn bytes(&self) -> usize {
        self.lower.bytes()
            + self.upper.bytes()
            + size_of_val(&*self.work)
            + size_of_val(&*self.buffers)
            + size_of_val(&*self.owner)
    }
}

/// A pivot below this, in units of ε and relative to the terms that made it, is what rounding left of them.
const CANCELLED: f64 = 64.0;
/// It is replaced by this, relative to the same.
const REPLACEMENT: f64 = 1e-4;

/// The rule for pivots: one of modulus at most 64ε·s, s = |aᵢᵢ| + Σ|lᵢₖ·uₖᵢ| the `terms` that were added up to make it, has been
/// cancelled and becomes 10⁻⁴·s with the same sign (phase; + at zero); where there are no terms, 10⁻⁴ of the `largest` entry of its
/// row. It would fill the preconditioner with noise. A pivot that is small beside its row alone is none such: its unknown may be
/// counted in another unit. Returns the pivot and whether it was replaced.
pub(crate) fn usable_pivot<T: Scalar>(pivot: T, terms: T::Real, largest: T::Real) -> (T, bool) {
    let size = pivot.abs();
    if size.to_f64() > CANCELLED * T::Real::EPSILON.to_f64() * terms.to_f64() {
        return (pivot, false);
    }
    let scale = [terms, largest].into_iter().map(RealScalar::to_f64).find(|scale| *scale > 0.0).unwrap_or(1.0);
    let phase = if size == T::Real::default() { bt_formats::one() } else { over(pivot, size) };
    (phase * T::rounded(REPLACEMENT * scale, 0.0), true)
}
