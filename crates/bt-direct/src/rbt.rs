//! Dense systems by random butterflies and elimination without pivoting.
//!
//! ```text
//! Sᵣ = W₁ᵀ·S·W₂ = L·U        S·x = b:  z = (L·U)⁻¹·W₁ᵀ·b,  x = W₂·z        Sᵀ·x = b:  x = W₁·(L·U)⁻ᵀ·W₂ᵀ·b
//! ```
//!
//! W₁ and W₂ are random [`Butterfly`]s, after which the leading blocks of a dense S are mostly well conditioned, so that no
//! search for pivots and no exchange of rows stands between the elimination and the speed of matrix products. (A butterfly of
//! depth d mixes rows that are n/2^d apart: zeros in a regular pattern can survive it.) Baboulin, Dongarra, Herrmann & Tomov, ACM
//! TOMS 39 (2013) 8, doi:10.1145/2427023.2427025.
//!
//! Nothing bounds the growth of elements, so it is checked, and a matrix that fails a check is factored with partial
//! pivoting instead; [`Rbt::fallback`] says so and why:
//! 1. a pivot that cannot be divided by, or below 8u of the largest one: nothing but roundoff, A may be singular;
//! 2. growth, as [`NoPivotLu`] measures it, beyond u^−⅔: an estimate, hence the wide limit;
//! 3. a trial solve A·y = b with random b, 1/2 ≤ |bᵢ| ≤ 1, whose relative residual ‖b − A·y‖₁/‖b‖₁ is beyond 1/100: A may be
//!    singular, which only pivoting can tell (whatever y, the part of b outside the range of A is left);
//! 4. its backward error ‖b − A·y‖₁/(‖A‖₁‖y‖₁ + ‖b‖₁) beyond u^⅔ (2·10⁻¹¹, or 2·10⁻⁵ in single precision). Within it,
//!    [`refine`](crate::refine()) gains all digits back in one or two steps unless κ is near u^−⅔.
//!
//! Departures from the paper: A is scaled by a power of two first, and bordered by an identity to n', the next multiple
//! of 8 and of 2^d (16 for `f32`), not to a power of two, so that the border has elements of the size of A's.
//!
//! Storage: n'·(n' + 8) values and 2·d·n' reals; n² more after a fallback. Cost: ⅔n³ + 6·d·n² + 4n² flops; a solve takes
//! 2n² + 6·d·n. The factors have the same bits for any number of threads.

use std::fmt;

use bt_formats::{Monitor, Op, Par, RealScalar, Scalar, buffers, one};
use faer::{Mat, MatMut, MatRef};

use crate::butterfly::{Butterfly, MAX_DEPTH, uniform};
use crate::columns::check_size;
use crate::dense::{Gathered, Norms, norms, product};
use crate::dense_lu::PartialPivotLu;
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::nopivot::kernels::lanes;
use crate::nopivot::{Factors, NoPivotLu, Stop, load_column};
use crate::refine::unit_roundoff;

const METHOD: &str = "rbt";
/// Relative residual of the trial solve beyond which A may be singular.
const RESIDUAL_LIMIT: f64 = 0.01;
/// How far from 1 the largest entry may be after scaling.
const GUESS: f64 = 1e6;
/// A pivot of fewer units of roundoff, beside the largest pivot, is nothing but roundoff.
const TINY: f64 = 8.0;

/// What to do when elimination without pivoting is not accurate enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// Factor with partial pivoting.
    #[default]
    Pivoted,
    /// Return [`FactorError::Breakdown`].
    Error,
}

/// How [`Rbt`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RbtOptions {
    /// Depth d of the butterflies, at most [`MAX_DEPTH`]; 0 is elimination without butterflies.
    pub depth: usize,
    /// Seed of the butterflies.
    pub seed: u64,
    /// What to do when a check fails.
    pub fallback: Fallback,
}

impl Default for RbtOptions {
    /// Depth 2, which the paper finds enough, and a fixed seed.
    fn default() -> Self {
        Self { depth: 2, seed: 0x0062_7574_7465_7266, fallback: Fallback::Pivoted }
    }
}

/// Which check failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FallbackReason {
    /// The pivot of this column of Sᵣ cannot be divided by.
    Pivot(usize),
    /// The smallest pivot, nothing but roundoff beside the largest: A may be singular.
    TinyPivot(f64),
    /// Elements grew by this factor.
    Growth(f64),
    /// Relative residual of the trial solve: A may be singular.
    NearlySingular(f64),
    /// Backward error of the trial solve.
    BackwardError(f64),
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pivot(column) => {
                write!(f, "the pivot of column {column} (from 0) after the butterflies cannot be divided by")
            }
            Self::TinyPivot(pivot) => write!(f, "a pivot of {pivot:.1e} is nothing but roundoff: A may be singular"),
            Self::NearlySingular(ratio) => {
                write!(f, "a trial solve leaves {ratio:.1e} of its right-hand side: A may be singular")
            }
            Self::Growth(growth) => write!(f, "elements grow by {growth:.1e}"),
            Self::BackwardError(error) => write!(f, "a trial solve has a backward error of {error:.1e}"),
        }
    }
}

/// What elimination without pivoting is judged by.
pub(crate) struct Checks {
    pub(crate) n: usize,
    pub(crate) growth: f64,
    /// Moduli of pivots of s·A.
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
    /// s.
    pub(crate) scale: f64,
}

impl Checks {
    /// The check that failed, if one did. `trial` gives the relative residual and the backward error of a trial solve.
    pub(crate) fn failed<T: Scalar>(&self, trial: impl FnOnce() -> (f64, f64)) -> Option<FallbackReason> {
        let u = unit_roundoff::<T>();
        if self.n == 0 {
            return None;
        }
        if !(self.growth <= u.powf(-2.0 / 3.0)) {
            return Some(FallbackReason::Growth(self.growth));
        }
        if !(self.smallest > TINY * u * self.largest) {
            return Some(FallbackReason::TinyPivot(self.smallest / self.scale));
        }
        let (residual, error) = trial();
        if !(residual <= RESIDUAL_LIMIT) {
            return Some(FallbackReason::NearlySingular(residual));
        }
        (!(error <= u.powf(2.0 / 3.0))).then_some(FallbackReason::BackwardError(error))
    }
}

/// 1/2 ≤ s·|bᵢ| ≤ 1 with random signs: of the size of A, so that A⁻¹·b is of the size of κ.
pub(crate) fn trial_rhs<T: Scalar>(b: &mut [T], seed: u64, scale: f64) {
    let mut state = seed;
    for v in b {
        let r = uniform(&mut state);
        *v = T::rounded((r + 0.5f64.copysign(r)) / scale, 0.0);
    }
}

/// s by the first column and row of A.
fn guess<T: Scalar>(a: MatRef<'_, T>) -> T::Real {
    let sample = (0..a.nrows()).map(|k| a[(k, 0)].abs1().max_nan(a[(0, k)].abs1()).to_f64()).fold(0.0, f64::max);
    let scale = Norms { one: sample, max: sample }.scale::<T>();
    if Scalar::is_finite(scale.to_f64()) { scale } else { one() }
}

/// ‖r‖₁/‖b‖₁ and ‖r‖₁/(‖A‖₁‖y‖₁ + ‖b‖₁) of r = b − A·y for y = A⁻¹·b as `solve` has it, |bᵢ| in [1/2, 1]/s with random signs.
/// `work` has 2n values.
fn trial<T: Scalar>(
    a: MatRef<'_, T>,
    norms: &Norms,
    seed: u64,
    scale: f64,
    work: &mut [T],
    par: Par,
    solve: impl FnOnce(&mut [T]),
) -> (f64, f64) {
    let n = a.nrows();
    if n == 0 {
        return (0.0, 0.0);
    }
    let (b, y) = work.split_at_mut(n);
    trial_rhs(b, seed, scale);
    y.copy_from_slice(b);
    solve(y);
    let norm = |x: &[T]| x.iter().map(|v| Scalar::abs(*v).to_f64()).sum::<f64>();
    let (norm_b, norm_y) = (norm(b), norm(y));
    // r ← b − A·y
    let y = MatRef::from_column_major_slice(y, n, 1);
    product(a, Op::Identity, -one::<T>(), y, MatMut::from_column_major_slice_mut(&mut *b, n, 1), par);
    let norm_r = norm(b);
    (norm_r / norm_b, norm_r / (norms.one * norm_y + norm_b))
}

/// What [`Rbt`] measures and judges, for an elimination that is made elsewhere (on a device): A before it, the factors after it.
///
/// ```
/// use bt_direct::rbt::{Eliminated, Judge};
/// use faer::mat;
/// let a = mat![[4.0, 2.0], [2.0, 2.0]];
/// let judge = Judge::new(a.as_ref())?;
/// assert_eq!((judge.scale(), judge.norm_one()), (0.25, 6.0));
/// // s·A = [1 0; ½ 1]·[1 ½; 0 ¼], and a solver that is off by half.
/// let factors = Eliminated { largest: 1.0, min_pivot: 0.25, max_pivot: 1.0 };
/// let reason = judge.verdict(a.as_ref(), 1, factors, |x| x.copy_from_slice(&[0.5 * (x[0] - x[1]), x[1] - 0.5 * x[0]]));
/// assert_eq!(reason, None);
/// let reason = judge.verdict(a.as_ref(), 1, factors, |x| x.copy_from_slice(&[0.25 * (x[0] - x[1]), x[1] - 0.5 * x[0]]));
/// assert!(reason.unwrap().to_string().contains("trial solve"));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    n: usize,
    norms: Norms,
    scale: f64,
}

/// Measures of the factors of Sᵣ = s·W₁ᵀ·A·W₂.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eliminated {
    /// max(|U|, maxₖ |Lₖ|·|Uₖ|) with the largest moduli of column k of L and of row k of U.
    pub largest: f64,
    /// Smallest modulus of a pivot.
    pub min_pivot: f64,
    /// Largest modulus of a pivot.
    pub max_pivot: f64,
}

impl Judge {
    /// Measures A.
    ///
    /// # Errors
    /// [`FactorError::Input`] for NaN and infinity and when `a` is not square; [`FactorError::Failed`] when ‖A‖₁ overflows.
    pub fn new<T: Scalar>(a: MatRef<'_, T>) -> Result<Self> {
        let norms = norms(METHOD, a, Par::auto(size_of::<T>() * a.nrows() * a.nrows()))?;
        // As `Rbt` guesses it: the border is not scaled, so another s is another Sᵣ.
        let guessed = guess(a).to_f64();
        let fits = (GUESS.recip()..=GUESS).contains(&(norms.max * guessed));
        Ok(Self { n: a.nrows(), norms, scale: if fits { guessed } else { norms.scale::<T>().to_f64() } })
    }

    /// s, a power of two that brings the largest entry of A near 1.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// ‖A‖₁.
    pub fn norm_one(&self) -> f64 {
        self.norms.one
    }

    /// Growth of the elements.
    pub fn growth(&self, factors: Eliminated) -> f64 {
        if self.n == 0 { 1.0 } else { factors.largest / (self.norms.max * self.scale) }
    }

    /// The check that failed, if one did. `solve` replaces a vector by A⁻¹ of it with the factors.
    ///
    /// # Cost
    /// A solve, 2n² flops, and 2n values of memory.
    pub fn verdict<T: Scalar>(
        &self,
        a: MatRef<'_, T>,
        seed: u64,
        factors: Eliminated,
        solve: impl FnOnce(&mut [T]),
    ) -> Option<FallbackReason> {
        let Eliminated { min_pivot: smallest, max_pivot: largest, .. } = factors;
        let checks = Checks { n: self.n, growth: self.growth(factors), smallest, largest, scale: self.scale };
        let par = Par::auto(size_of::<T>() * self.n * self.n);
        let mut work = vec![bt_formats::zero::<T>(); 2 * self.n];
        checks.failed::<T>(|| trial(a, &self.norms, seed, self.scale, &mut work, par, solve))
    }
}

/// A dense matrix factored after random butterflies from both sides.
///
/// ```
/// use bt_direct::{Factorization, Rbt};
/// use faer::mat;
/// // No pivot on the diagonal: elimination as it stands would divide by zero.
/// let f = Rbt::new(mat![[0.0, 1.0], [1.0, 0.0]].as_ref())?;
/// let mut x = [3.0, 4.0];
/// f.solve_vec_in_place(&mut x);
/// assert!((x[0] - 4.0f64).abs() < 1e-14 && (x[1] - 3.0f64).abs() < 1e-14);
/// assert!(f.fallback().is_none());
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct Rbt<T: Scalar> {
    n: usize,
    options: RbtOptions,
    left: Butterfly<T>,
    right: Butterfly<T>,
    factors: Factors<T>,
    /// The factors are those of s·A.
    scale: T::Real,
    stats: FactorStats,
    /// Right-hand side and solution of the trial.
    trial: Vec<T>,
    reason: Option<FallbackReason>,
    /// Made at the first fallback, kept for later ones.
    pivoted: Option<PartialPivotLu<T>>,
}

impl<T: Scalar> Rbt<T> {
    /// Factors a square matrix of any strides with butterflies of depth 2.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column without a pivot, found by the pivoted fallback;
    /// [`FactorError::Input`] for NaN and infinity, when `a` is not square, and when there is not the memory;
    /// [`FactorError::Failed`] when ‖A‖₁ overflows.
    ///
    /// # Cost
    /// ⅔n³ + 16n² flops; twice that after a fallback.
    pub fn new(a: MatRef<'_, T>) -> Result<Self> {
        Self::with_options(a, RbtOptions::default(), &mut ())
    }

    /// Like [`Rbt::new`] with another depth, seed or fallback, observed every 32 columns.
    ///
    /// # Errors
    /// As [`Rbt::new`]; [`FactorError::Stopped`]; [`FactorError::Input`] for a depth above [`MAX_DEPTH`];
    /// [`FactorError::Breakdown`] when a check fails and the fallback is [`Fallback::Error`].
    #[inline(never)]
    pub fn with_options(a: MatRef<'_, T>, options: RbtOptions, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_size("columns of the matrix", n, a.ncols())?;
        buffers::ask(n, METHOD)?;
        let [left, right] = Self::butterflies(n, options)?;
        let mut f = Self {
            n,
            options,
            factors: Factors::new(left.n())?,
            left,
            right,
            scale: one(),
            stats: FactorStats::default(),
            trial: zeros(2 * n)?,
            reason: None,
            pivoted: None,
        };
        f.factor(a, monitor)?;
        Ok(f)
    }

    /// Factors another matrix of the same size with the same butterflies, without taking memory unless it is the first
    /// to fall back. After an error the factors are void: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`Rbt::with_options`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`Rbt::refactor`], observed every 32 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.nrows())?;
        let done = self.factor(a, monitor);
        if done.is_err() {
            self.reason = None;
            self.factors.invalidate();
            self.stats.growth = f64::INFINITY;
        }
        done
    }

    /// W₁ and W₂ for a matrix of n rows; their size is n'.
    ///
    /// # Errors
    /// [`FactorError::Input`] for a depth above [`MAX_DEPTH`], and when there is not the memory.
    pub fn butterflies(n: usize, options: RbtOptions) -> Result<[Butterfly<T>; 2]> {
        let padded = n.next_multiple_of(lanes::<T>().max(1 << options.depth.min(MAX_DEPTH)));
        Ok([
            Butterfly::new(padded, options.depth, options.seed)?,
            Butterfly::new(padded, options.depth, !options.seed)?,
        ])
    }

    /// Depth, seed and fallback it was made with.
    pub fn options(&self) -> RbtOptions {
        self.options
    }

    /// Why the factors in use are those of a [`PartialPivotLu`]; `None` when they are those of the butterflies.
    pub fn fallback(&self) -> Option<FallbackReason> {
        self.reason
    }

    /// Flops of the factorization (operations on scalars): ⅔n³ + 6·d·n² + 4n².
    pub fn flops(n: usize, depth: usize) -> f64 {
        let n = n as f64;
        n * n * (2.0 / 3.0 * n + 6.0 * depth as f64 + 4.0)
    }

    #[inline(never)]
    fn factor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let par = Par::auto(size_of::<T>() * self.n * self.n);
        let norms = self.load(a, par)?;
        self.reason = match self.eliminate(a, &norms, par, monitor) {
            Ok(reason) => reason,
            Err(Stop::Pivot(column)) => Some(FallbackReason::Pivot(column)),
            Err(stop @ Stop::Stopped) => return Err(stop.into_error(METHOD)),
        };
        let Some(reason) = self.reason else { return Ok(()) };
        if self.options.fallback == Fallback::Error {
            // Columns after the butterflies are none of A.
            return Err(FactorError::breakdown(METHOD, None, format!("{reason}; pivoting is needed: dense-lu")));
        }
        match &mut self.pivoted {
            Some(lu) => lu.refactor_with_monitor(a, monitor),
            None => PartialPivotLu::with_monitor(a, monitor).map(|lu| self.pivoted = Some(lu)),
        }
    }

    /// Sᵣ ← s·W₁ᵀ·A·W₂, in one pass over A that also measures it: s is a guess, from a column and a row of A, and only a
    /// bad guess costs a second pass.
    fn load(&mut self, a: MatRef<'_, T>, par: Par) -> Result<Norms> {
        self.scale = guess(a);
        let found = self.load_scaled(a, par);
        let (s, size) = (self.scale.to_f64(), found.max);
        let unscaled = Norms { one: found.one / s, max: size / s };
        // A NaN shows in the sum; what is not usable is named below.
        if (GUESS.recip()..=GUESS).contains(&size) && unscaled.one.is_finite() {
            return Ok(unscaled);
        }
        let norms = norms(METHOD, a, par)?;
        self.scale = norms.scale::<T>();
        self.load_scaled(a, par);
        Ok(norms)
    }

    /// Sᵣ ← s·W₁ᵀ·A·W₂; the norms of s·A.
    fn load_scaled(&mut self, a: MatRef<'_, T>, par: Par) -> Norms {
        let (n, scale) = (self.n, self.scale);
        let (columns, ld) = self.factors.columns_mut();
        let gathered = Gathered::default();
        let load = |j: usize, to: &mut [T]| {
            load_column(a, j, scale, to);
            if j < n {
                gathered.note(&to[..n]);
            }
        };
        self.left.load_transformed(&self.right, columns, ld, par, &load).expect("butterflies of one size and depth");
        gathered.norms()
    }

    /// Sᵣ = L·U; the check that failed, if one did.
    fn eliminate(
        &mut self,
        a: MatRef<'_, T>,
        norms: &Norms,
        par: Par,
        monitor: &mut dyn Monitor,
    ) -> Result<Option<FallbackReason>, Stop> {
        let (n, scale) = (self.n, self.scale);
        let padded = self.left.n();
        self.factors.eliminate(par, monitor)?;
        let (largest, _) = self.factors.growth();
        let growth = if n == 0 { 1.0 } else { largest / (norms.max * scale.to_f64()) };
        let smallest = self.factors.min_pivot(padded);
        self.stats = FactorStats {
            norm_one: norms.one,
            growth,
            min_pivot: smallest / scale.to_f64(),
            boosted_pivots: 0,
            nnz: padded * padded,
            bytes: self.factors.bytes() + self.left.bytes() + self.right.bytes(),
            flops: Self::flops(n, self.options.depth),
        };
        let largest = self.factors.max_pivot();
        let checks = Checks { n, growth, smallest, largest, scale: scale.to_f64() };
        Ok(checks.failed::<T>(|| self.trial(a, norms, par)))
    }

    fn trial(&mut self, a: MatRef<'_, T>, norms: &Norms, par: Par) -> (f64, f64) {
        let mut work = std::mem::take(&mut self.trial);
        let (n, scale) = (self.n, self.scale.to_f64());
        let solve = |y: &mut [T]| {
            self.solve_with_butterflies(Op::Identity, MatMut::from_column_major_slice_mut(y, n, 1));
        };
        let found = trial(a, norms, self.options.seed, scale, &mut work, par, solve);
        self.trial = work;
        found
    }

    fn solve_with_butterflies(&self, op: Op, x: MatMut<'_, T>) {
        let before = |op: Op, x: MatMut<'_, T>| match op {
            Op::Identity => self.left.apply_many(Op::Transpose, x),
            Op::Transpose | Op::Adjoint => self.right.apply_many(Op::Transpose, x),
        };
        let after = |op: Op, x: MatMut<'_, T>| match op {
            Op::Identity => self.right.apply_many(Op::Identity, x),
            Op::Transpose | Op::Adjoint => self.left.apply_many(Op::Identity, x),
        };
        self.factors.solve(op, x, self.scale, before, after);
    }

    /// The factors with pivoting, when they are the ones in use.
    fn pivoted(&self) -> Option<&PartialPivotLu<T>> {
        self.reason.and(self.pivoted.as_ref())
    }
}

impl<T: Scalar> Factorization<T> for Rbt<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        match self.pivoted() {
            Some(lu) => lu.solve_op_in_place(op, x),
            None => self.solve_with_butterflies(op, x),
        }
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let mut own = Mat::new();
        self.refactor_with_monitor(a.dense(&mut own)?, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.pivoted().map_or(self.stats, |lu| {
            let tried = NoPivotLu::<T>::flops(self.n);
            FactorStats { flops: lu.stats().flops + tried, ..lu.stats() }
        })
    }
    fn log_det(&self) -> LogDet<T> {
        if let Some(lu) = self.pivoted() {
            return lu.log_det();
        }
        // det(s·A) = det(L·U) / (det W₁·det W₂)
        let mut det = self.factors.log_det(self.left.n());
        det.log_abs -= self.left.log_abs_det() + self.right.log_abs_det() + self.n as f64 * self.scale.to_f64().ln();
        if self.left.is_det_negative() != self.right.is_det_negative() {
            det.negate();
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    fn no_butterflies(fallback: Fallback) -> RbtOptions {
        RbtOptions { depth: 0, fallback, ..RbtOptions::default() }
    }

    #[test]
    fn a_zero_pivot_falls_back_and_says_so() {
        let a = mat![[0.0, 2.0], [1.0, 0.0]];
        let f = Rbt::with_options(a.as_ref(), no_butterflies(Fallback::Pivoted), &mut ()).unwrap();
        assert_eq!(f.fallback(), Some(FallbackReason::Pivot(0)));
        let mut x = [6.0, 5.0];
        f.solve_vec_in_place(&mut x);
        assert_eq!(x, [5.0, 3.0]);
        assert!((f.log_det().log_abs - 2f64.ln()).abs() < 1e-15 && f.log_det().sign == -1.0);
        let e = Rbt::with_options(a.as_ref(), no_butterflies(Fallback::Error), &mut ()).unwrap_err();
        assert!(
            matches!(e, FactorError::Breakdown { method: METHOD, .. }) && e.to_string().contains("column 0"),
            "{e}"
        );
    }

    #[test]
    fn growth_falls_back_and_says_so() {
        for (tiny, expected) in [(1e-12, "elements grow"), (1e-4, "")] {
            let a = mat![[tiny, 1.0], [1.0, 1.0]];
            let f = Rbt::with_options(a.as_ref(), no_butterflies(Fallback::Pivoted), &mut ()).unwrap();
            let reason = f.fallback().map_or(String::new(), |r| r.to_string());
            assert!(reason.starts_with(expected) && reason.is_empty() == expected.is_empty(), "{tiny}: {reason}");
        }
    }

    #[test]
    fn singular_matrices_are_for_pivoting_to_judge() {
        let a = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]];
        let e =
            Rbt::with_options(a.as_ref(), RbtOptions { fallback: Fallback::Error, ..RbtOptions::default() }, &mut ());
        assert!(matches!(e, Err(FactorError::Breakdown { .. })), "{e:?}");
        let zero = Mat::<f64>::zeros(3, 3);
        assert!(matches!(Rbt::new(zero.as_ref()), Err(FactorError::Singular(s)) if s.column == 0));
    }

    #[test]
    fn solutions_come_back_after_a_fallback_and_after_a_failure() {
        let good = Mat::from_fn(11, 11, |i, j| 1.0 / (1.0 + (i * i + 3 * j) as f64) + f64::from(i == j));
        let solution = |f: &Rbt<f64>| {
            let mut x = vec![1.0; 11];
            f.solve_vec_in_place(&mut x);
            x
        };
        let mut f = Rbt::new(good.as_ref()).unwrap();
        let first = solution(&f);
        assert!(f.fallback().is_none());
        assert!(f.refactor(Mat::<f64>::zeros(11, 11).as_ref()).is_err());
        assert!(solution(&f).iter().all(|v| v.is_nan()));
        f.refactor(good.as_ref()).unwrap();
        assert_eq!(solution(&f), first);
    }
}
