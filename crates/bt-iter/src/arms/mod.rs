//! ARMS, the algebraic recursive multilevel solver, as a preconditioner.
//!
//! Each level orders its matrix so that a group-independent set comes first, factors the groups approximately, and leaves
//! a Schur complement to the next level:
//!
//! ```text
//! P·A·Pᵀ = [ B F ] ≈ [ L     0 ] [ U  L⁻¹F ]      S = C − (E·U⁻¹)·(L⁻¹·F), with dropping
//!          [ E C ]   [ E·U⁻¹ I ] [ 0    S  ]
//!
//! M⁻¹:  g' = g − E·B⁻¹f,   S·y = g' on the next level,   u = B⁻¹(f − F·y)
//! ```
//!
//! The last S is factored as a dense matrix, by partial pivoting or after random butterflies without pivoting, or by ILUT.
//! Y. Saad, B. Suchomel, Numer. Linear Algebra Appl. 9 (2002) 359–378, doi:10.1002/nla.279; Y. Saad, Iterative Methods for
//! Sparse Linear Systems, 2nd ed., §12.5 and ch. 14, doi:10.1137/1.9780898718003; butterflies on the last level: A. Jamal, M.
//! Baboulin, A. Khabou, M. Sosonkina, A hybrid CPU/GPU approach for the parallel algebraic recursive multilevel solver pARMS.
//!
//! Non-standard: before the first level A is scaled by powers of two, and where its diagonal has zeros its rows are matched
//! with its columns; unknowns of a group whose pivot is small beside their row go to the complement (`interior.rs`), so that
//! no pivot of a level is ever replaced; E·U⁻¹ and L⁻¹·F are forgotten once S is made.
//!
//! Storage: L, U, E and F of every level, n values of work a level, the factors of the last. Cost of an application: 4 flops an
//! entry of L and U, 2 an entry of E and F, and a solve on the last level; groups in parallel. The setup works on rows and
//! groups in parallel; the factors have the same bits for any number of threads.
//!
//! | file | case |
//! |---|---|
//! | `scaling.rs` | A before the first level: scaled, its rows matched with columns |
//! | `groups.rs` | which unknowns make groups |
//! | `interior.rs` | the factors of B, group by group |
//! | `level.rs` | one level, with the Schur complement for the next; a pass through all of them |
//! | `last.rs` | the Schur complement that is left: dense factors or ILUT, and iterations with it |
//! | `sparse_row.rs` | rows with dropping, many made in parallel |

mod groups;
mod interior;
mod last;
mod level;
mod scaling;
mod sparse_row;

use bt_direct::{Factorization, FallbackReason, RbtOptions, Result};
use bt_formats::{Csr, Error, LinearOperator, Scalar};
use faer::Mat;

use crate::ilut::IlutOptions;
use crate::incomplete_lu::check_refactor;
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};
use last::Last;
pub use last::LastLevel;
use level::{Level, sweep};
use scaling::Scaling;

/// Whether rows are matched with columns before the first level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// Where a diagonal entry is zero.
    #[default]
    Auto,
    /// Always: the product of the diagonal entries is as large as it can be.
    Matched,
    /// Never.
    AsGiven,
}

/// What solves with the last Schur complement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastSolver {
    /// ILUT.
    Ilut,
    /// Dense LU with partial pivoting.
    #[default]
    Dense,
    /// Random butterflies, then dense LU without pivoting, checked.
    Butterflies(RbtOptions),
}

/// Makes the factors of the last S, dense, for [`Arms::with_last`], and tells why pivoting took over, if it did.
pub type LastFactors<T> = Box<dyn FnMut(&Mat<T>) -> Result<(Box<dyn Factorization<T>>, Option<FallbackReason>)> + Send>;

/// How [`Arms`] works. Dropping is by size relative to ‖row of the level's matrix‖₂, and by number in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmsOptions {
    /// Levels at most, the last one not counted; 0 leaves everything to the last.
    pub levels: usize,
    /// Rows at which a Schur complement is the last one.
    pub last_size: usize,
    /// Unknowns of a group at most.
    pub group_size: usize,
    /// δ: pivots of a group are at least δ times the largest entry of their row.
    pub pivot_threshold: f64,
    /// What the factors of a group keep in a row of L, and of U.
    pub interior: IlutOptions,
    /// What a row of E·U⁻¹, and of L⁻¹·F, keeps while S is made.
    pub coupling: IlutOptions,
    /// What a row of S keeps beside the diagonal.
    pub schur: IlutOptions,
    /// What solves with the last S.
    pub last: LastSolver,
    /// Rows beyond which the last S is too large for dense factors, and goes to ILUT whatever `last` says.
    pub dense_limit: usize,
    /// What ILUT keeps on the last level.
    pub last_ilut: IlutOptions,
    /// Steps of an inner GMRES with the last S; 0 applies the factors once. With it the preconditioner is `Variable`, for
    /// flexible methods only.
    pub inner_steps: usize,
    /// Matching before the first level.
    pub rows: RowOrder,
}

impl ArmsOptions {
    /// The same dropping in every part, but for ten times the fill in rows of E·U⁻¹ and L⁻¹·F: they are not kept, and what they
    /// lose by number is rarely small.
    #[must_use]
    pub fn with_dropping(self, part: IlutOptions) -> Self {
        let coupling = IlutOptions { fill: part.fill.saturating_mul(10), ..part };
        Self { interior: part, coupling, schur: part, last_ilut: part, ..self }
    }
}

impl Default for ArmsOptions {
    /// At most 10 levels, down to 100 rows, in groups of 50, δ = 0.1; 50 entries and 10⁻³ by [`ArmsOptions::with_dropping`];
    /// dense factors up to 4000 rows.
    fn default() -> Self {
        let part = IlutOptions { fill: 50, drop_tolerance: 1e-3 };
        Self {
            levels: 10,
            last_size: 100,
            group_size: 50,
            pivot_threshold: 0.1,
            interior: part,
            coupling: part,
            schur: part,
            last: LastSolver::Dense,
            dense_limit: 4000,
            last_ilut: part,
            inner_steps: 0,
            rows: RowOrder::Auto,
        }
        .with_dropping(part)
    }
}

impl ArmsOptions {
    fn check(&self) -> Result<()> {
        let invalid = |what, why| Err(Error::InvalidStructure { what, why }.into());
        for part in [self.interior, self.coupling, self.schur, self.last_ilut] {
            if !(part.drop_tolerance >= 0.0) {
                return invalid("drop tolerance", format!("{} is not a number of at least 0", part.drop_tolerance));
            }
        }
        if !(self.pivot_threshold > 0.0 && self.pivot_threshold <= 1.0) {
            return invalid("threshold of pivots", format!("{} is not in (0, 1]", self.pivot_threshold));
        }
        if self.group_size == 0 {
            return invalid("size of groups", "it must be at least 1".into());
        }
        Ok(())
    }
}

/// What became of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFacts {
    /// Rows of its matrix.
    pub n: usize,
    /// Rows of B.
    pub interior: usize,
    /// Groups, the blocks of B.
    pub groups: usize,
    /// Unknowns that were in a group and went to the complement for want of a pivot.
    pub rejected: usize,
    /// Values of L, U, E and F.
    pub nnz: usize,
}

/// The ARMS preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Arms, ArmsOptions, IlutOptions, Preconditioner};
/// // A ring of eight: two groups of three, a complement of two. Nothing is dropped, so M = A.
/// let ring = |i: usize, j: usize| match (i + 8 - j) % 8 {
///     0 => 4.0,
///     1 | 7 => -1.0,
///     _ => 0.0,
/// };
/// let a = Csr::from_dense(faer::Mat::from_fn(8, 8, ring).as_ref())?;
/// let exact = IlutOptions { fill: 8, drop_tolerance: 0.0 };
/// let options = ArmsOptions { last_size: 2, group_size: 3, ..ArmsOptions::default() }.with_dropping(exact);
/// let mut m = Arms::with_options(&a, options)?;
/// assert_eq!((m.levels()[0].groups, m.last_level().n), (2, 2));
/// let mut z = [0.0; 8];
/// m.apply(&[2.0; 8], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct Arms<T: Scalar> {
    options: ArmsOptions,
    scaling: Scaling<T>,
    levels: Vec<Level<T>>,
    facts: Vec<LevelFacts>,
    last: Last<T>,
    given: Option<LastFactors<T>>,
}

impl<T: Scalar> Arms<T> {
    /// The preconditioner of a square matrix, with [`ArmsOptions::default`].
    ///
    /// # Errors
    /// As [`Arms::with_options`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_options(a, ArmsOptions::default())
    }

    /// The preconditioner of a square matrix.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Input`] when A is not square or not finite, an option is out of range, a part exceeds 32-bit
    /// pointers, or there is not the memory for the last level; [`bt_direct::FactorError::Singular`] when rows are to be
    /// matched and no matching exists; [`bt_direct::FactorError::Breakdown`] when elements overflow, or when the last level
    /// is singular even with a shift.
    pub fn with_options(a: &Csr<T>, options: ArmsOptions) -> Result<Self> {
        Self::make(a, options, &mut None)
    }

    /// The same with factors of the last S made by `factors`, on a device say: `options.last` then gives the name alone. A last S of over
    /// `options.dense_limit` rows goes to ILUT all the same.
    ///
    /// ```
    /// use bt_direct::PartialPivotLu;
    /// use bt_formats::Csr;
    /// use bt_iter::{Arms, ArmsOptions, Preconditioner};
    /// let a = Csr::from_dense(faer::mat![[4.0, 1.0], [1.0, 3.0]].as_ref())?;
    /// let factors = |s: &faer::Mat<f64>| Ok((Box::new(PartialPivotLu::new(s.as_ref())?) as _, None));
    /// let mut m = Arms::with_last(&a, ArmsOptions { levels: 0, ..ArmsOptions::default() }, Box::new(factors))?;
    /// let mut z = [0.0; 2];
    /// m.apply(&[5.0, 4.0], &mut z);
    /// assert_eq!((m.last_level().method, z), ("dense-lu", [1.0, 1.0]));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Arms::with_options`], and those of `factors`.
    pub fn with_last(a: &Csr<T>, options: ArmsOptions, factors: LastFactors<T>) -> Result<Self> {
        let mut given = Some(factors);
        let made = Self::make(a, options, &mut given)?;
        Ok(Self { given, ..made })
    }

    #[inline(never)]
    fn make(a: &Csr<T>, options: ArmsOptions, given: &mut Option<LastFactors<T>>) -> Result<Self> {
        options.check()?;
        let scaling = Scaling::new(a, options.rows)?;
        let (levels, last) = factor(scaling.apply(a), &options, given)?;
        let facts = levels.iter().map(|l| l.facts).collect();
        Ok(Self { options, scaling, levels, facts, last, given: None })
    }

    /// The levels above the last.
    pub fn levels(&self) -> &[LevelFacts] {
        &self.facts
    }

    /// The last level.
    pub fn last_level(&self) -> LastLevel {
        self.last.facts
    }

    /// Whether rows were matched with columns.
    pub fn is_matched(&self) -> bool {
        self.scaling.is_matched
    }
}

/// Levels of A until few rows are left, no level is worth having, or there are enough.
fn factor<T: Scalar>(
    a: Csr<T>,
    options: &ArmsOptions,
    given: &mut Option<LastFactors<T>>,
) -> Result<(Vec<Level<T>>, Last<T>)> {
    let (mut levels, mut rest) = (Vec::new(), a);
    while levels.len() < options.levels && rest.nrows() > options.last_size {
        let Some((level, s)) = Level::new(&rest, options)? else { break };
        levels.push(level);
        rest = s;
    }
    Ok((levels, Last::new(rest, options, given)?))
}

impl<T: Scalar> Refactor<T> for Arms<T> {
    /// As it was made, in new memory: matching, pivots and what is dropped depend on the values, so that nothing can stay.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        let mut given = self.given.take();
        let made = check_refactor(self.scaling.n(), a).and_then(|()| Self::make(a, self.options, &mut given));
        let done = made.map(|m| *self = m).inspect_err(|_| self.scaling.invalidate());
        self.given = given;
        done
    }
}

impl<T: Scalar> Preconditioner<T> for Arms<T> {
    fn n(&self) -> usize {
        self.scaling.n()
    }
    fn name(&self) -> &'static str {
        match self.options.last {
            LastSolver::Butterflies(_) => "arms-rbt",
            LastSolver::Dense | LastSolver::Ilut => "arms",
        }
    }
    fn kind(&self) -> PreconditionerKind {
        if self.options.inner_steps > 0 { PreconditionerKind::Variable } else { PreconditionerKind::General }
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.n(), r, z);
        self.scaling.load(r, z);
        sweep(&mut self.levels, &mut self.last, z);
        self.scaling.finish(z);
    }
    fn nnz(&self) -> usize {
        self.facts.iter().map(|l| l.nnz).sum::<usize>() + self.last.facts.nnz_factors
    }
    fn bytes(&self) -> usize {
        self.levels.iter().map(Level::bytes).sum::<usize>() + self.last.bytes() + self.scaling.bytes()
    }
}
