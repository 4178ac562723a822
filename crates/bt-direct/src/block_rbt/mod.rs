//! Block-tridiagonal systems by random butterflies inside the blocks and block LU without pivoting.
//!
//! ```text
//! Dⱼ' = Wⱼᵀ·Dⱼ·Vⱼ   Lⱼ' = Wⱼᵀ·Lⱼ·Vⱼ₋₁   Uⱼ' = Wⱼᵀ·Uⱼ·Vⱼ₊₁        A' = Wᵀ·A·V, W = diag(Wⱼ), V = diag(Vⱼ)
//! D̃ⱼ' = L̃ⱼ·Ũⱼ   Hⱼ = Lⱼ₊₁'·Ũⱼ⁻¹   Gⱼ = L̃ⱼ⁻¹·Uⱼ'   D̃ⱼ₊₁' = Dⱼ₊₁' − Hⱼ·Gⱼ
//! ```
//!
//! Wⱼ and Vⱼ are random [`Butterfly`]s. They mix the rows and columns of a block, so that a zero on its diagonal does not
//! matter and no search for pivots stands between its elimination and the speed of matrix products; a block that is
//! singular, after the elimination of those before it, stays singular, and needs pivots from the next block. Baboulin,
//! Dongarra, Herrmann & Tomov, ACM TOMS 39 (2013) 8, doi:10.1145/2427023.2427025; by blocks: Demmel, Higham & Schreiber,
//! Numer. Linear Algebra Appl. 2 (1995) 173–190, doi:10.1002/nla.1680020208.
//!
//! The checks are those of [`Rbt`](crate::Rbt): pivots, growth, and the residual of a trial solve. A matrix that fails one
//! is factored by [`BlockLuAcross`] instead, and [`BlockRbt::fallback`] says so and why. As there, the factors may be good
//! to u^⅔ only: refine.
//!
//! Departures from the paper: A is scaled by a power of two, and each block is bordered by an identity to k', the next
//! multiple of 8 and of 2^d (16 for `f32`).
//!
//! Storage: Σ kⱼ'² + 2kⱼ'kⱼ₊₁' values, 2·d·n' reals, one block and 10n' values of work space; [`BlockLuAcross`]'s more
//! after a fallback. Cost: Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² flops, and 6·d a value of A for the butterflies; a solve takes 2 a
//! value and 6·d·n.

mod core;

use bt_formats::{
    BlockTridiagonal, Error, HybridLayout, LinearOperator, Monitor, Op, Par, Partition, RealScalar, Scalar, buffers,
    one,
};
use faer::MatMut;

use self::core::{Core, Place};
use crate::block_lu::measure::measure;
use crate::block_lu_across::BlockLuAcross;
use crate::butterfly::{Butterfly, MAX_DEPTH};
use crate::columns::for_each_column;
use crate::dense::Norms;
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::nopivot::kernels::lanes;
use crate::nopivot::{Stop, times};
use crate::rbt::{Checks, Fallback, FallbackReason, RbtOptions, trial_rhs};
use crate::spike::scratch::Scratch;

const METHOD: &str = "block-rbt";
/// Right-hand sides that are solved together.
const TOGETHER: usize = 8;

/// A block-tridiagonal matrix factored after random butterflies inside its blocks.
///
/// ```
/// use bt_direct::{BlockRbt, Factorization};
/// use bt_formats::{BlockTridiagonal, Partition};
/// // [ 0 1 | 1   ]
/// // [ 1 0 |   1 ]   zeros wherever elimination without pivoting would divide
/// // [ 1   | 0 3 ]
/// // [   1 | 3 0 ]
/// let diagonal = vec![0.0, 1.0, 1.0, 0.0, 0.0, 3.0, 3.0, 0.0];
/// let couplings = vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
/// let a = BlockTridiagonal::from_dense_blocks(Partition::from_sizes([2, 2])?, diagonal, couplings)?;
/// let f = BlockRbt::new(&a)?;
/// assert!(f.fallback().is_none());
/// let mut x = [2.0, 2.0, 4.0, 4.0];
/// f.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-13));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct BlockRbt<T: Scalar> {
    partition: Partition,
    options: RbtOptions,
    left: Vec<Butterfly<T>>,
    right: Vec<Butterfly<T>>,
    core: Core<T>,
    /// The factors are those of s·A.
    scale: T::Real,
    /// Column sums of |A|.
    sums: Vec<f64>,
    /// Right-hand side and solution of the trial.
    trial: Vec<T>,
    scratch: Scratch<T>,
    stats: FactorStats,
    reason: Option<FallbackReason>,
    /// Made at the first fallback, kept for later ones.
    pivoted: Option<BlockLuAcross<T>>,
}

impl<T: Scalar> BlockRbt<T> {
    /// Factors a block-tridiagonal matrix with butterflies of depth 2.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column without a pivot, found by the pivoted fallback;
    /// [`FactorError::Input`] for NaN and infinity, and when there is not the memory.
    ///
    /// # Cost
    /// [`BlockRbt::flops`]; a fallback adds [`BlockLuAcross::flops`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_options(a, RbtOptions::default(), &mut ())
    }

    /// Like [`BlockRbt::new`] with another depth, seed or fallback, observed every 32 columns.
    ///
    /// # Errors
    /// As [`BlockRbt::new`]; [`FactorError::Input`] for a depth above [`MAX_DEPTH`]; [`FactorError::Breakdown`] when a
    /// check fails and the fallback is [`Fallback::Error`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn with_options(a: &BlockTridiagonal<T>, options: RbtOptions, monitor: &mut dyn Monitor) -> Result<Self> {
        let partition = a.partition().clone();
        let (m, n) = (partition.n_blocks(), partition.n());
        buffers::ask(2 * partition.min_max_size().1, METHOD)?;
        let unit = lanes::<T>().max(1 << options.depth.min(MAX_DEPTH));
        let padded = |k: usize| k.next_multiple_of(unit);
        let (mut left, mut right, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut left, m)?;
        reserve(&mut right, m)?;
        for (j, k) in partition.sizes().enumerate() {
            let seed = options.seed.wrapping_add(j as u64);
            left.push(Butterfly::new(padded(k), options.depth, seed)?);
            right.push(Butterfly::new(padded(k), options.depth, !seed)?);
        }
        reserve(&mut sums, n)?;
        sums.resize(n, 0.0);
        let core = Core::new(m, |j| padded(partition.size(j)))?;
        let mut f = Self {
            scratch: Scratch::new(core.n() * TOGETHER)?,
            trial: zeros(2 * n)?,
            partition,
            options,
            left,
            right,
            core,
            scale: one(),
            sums,
            stats: FactorStats::default(),
            reason: None,
            pivoted: None,
        };
        f.refactor_with_monitor(a, monitor)?;
        Ok(f)
    }

    /// Factors a matrix with the same partition and the same butterflies, without taking memory unless it is the first
    /// to fall back. After an error solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockRbt::with_options`], and [`FactorError::Input`] when the partition is another one.
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`BlockRbt::refactor`], observed every 32 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        if *a.partition() != self.partition {
            let why = "its blocks are not those of the matrix that was factored".into();
            return Err(Error::InvalidStructure { what: "matrix for refactorisation", why }.into());
        }
        let done = self.factor(a, monitor);
        if done.is_err() {
            self.reason = None;
            self.core.invalidate();
            self.stats = FactorStats { growth: f64::NAN, min_pivot: f64::NAN, ..self.stats };
        }
        done
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Depth, seed and fallback it was made with.
    pub fn options(&self) -> RbtOptions {
        self.options
    }

    /// Why the factors in use are those of a [`BlockLuAcross`]; `None` when they are those of the butterflies.
    pub fn fallback(&self) -> Option<FallbackReason> {
        self.reason
    }

    /// Flops of the factorization (operations on scalars): Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² + 6·d(kⱼ² + 2kⱼkⱼ₊₁).
    pub fn flops(partition: &Partition, depth: usize) -> f64 {
        let size = |j: usize| if j < partition.n_blocks() { partition.size(j) as f64 } else { 0.0 };
        (0..partition.n_blocks())
            .map(|j| {
                let (k, next) = (size(j), size(j + 1));
                k * (2.0 / 3.0 * k * k + 2.0 * next * (k + next) + 6.0 * depth as f64 * (k + 2.0 * next))
            })
            .sum()
    }

    #[inline(never)]
    fn factor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let norms = measure(METHOD, a, &mut self.sums)?;
        self.scale = norms.scale::<T>();
        self.load(a);
        let par = Par::auto(self.core.bytes());
        self.reason = match self.core.eliminate(par, monitor) {
            Ok(()) => self.judge(a, &norms),
            Err(Stop::Pivot(column)) => Some(FallbackReason::Pivot(column)),
            Err(stop @ Stop::Stopped) => return Err(stop.into_error(METHOD)),
        };
        let Some(reason) = self.reason else { return Ok(()) };
        if self.options.fallback == Fallback::Error {
            let reason = format!("{reason}; pivoting across blocks is needed: block-lu-across");
            // Columns after the butterflies are none of A.
            return Err(FactorError::breakdown(METHOD, None, reason));
        }
        match &mut self.pivoted {
            Some(lu) => lu.refactor_with_monitor(a, monitor),
            None => BlockLuAcross::with_monitor(a, monitor).map(|lu| self.pivoted = Some(lu)),
        }
    }

    /// A' ← s·Wᵀ·A·V, block by block.
    fn load(&mut self, a: &BlockTridiagonal<T>) {
        let Self { partition, left, right, core, scale, .. } = self;
        let (m, scale) = (partition.n_blocks(), *scale);
        for j in 0..m {
            let k = partition.size(j);
            core.load(Place::Diagonal(j), &left[j], &right[j], scale, |mut out| {
                // Bordered by an identity.
                (k..out.nrows()).for_each(|r| out[(r, r)] = T::rounded(1.0 / scale.to_f64(), 0.0));
                a.copy_diagonal_block(j, out.submatrix_mut(0, 0, k, k).transpose_mut());
            });
            if j + 1 < m {
                let next = partition.size(j + 1);
                core.load(Place::Beside(j), &left[j], &right[j + 1], scale, |out| {
                    a.copy_upper_block(j, out.submatrix_mut(0, 0, next, k).transpose_mut());
                });
                core.load(Place::Below(j), &left[j + 1], &right[j], scale, |out| {
                    a.copy_lower_block(j + 1, out.submatrix_mut(0, 0, k, next).transpose_mut());
                });
            }
        }
    }

    /// The check that failed, if one did.
    fn judge(&mut self, a: &BlockTridiagonal<T>, norms: &Norms) -> Option<FallbackReason> {
        let n = self.partition.n();
        let scale = self.scale.to_f64();
        let (smallest, largest) = self.core.pivots();
        let growth = if n == 0 { 1.0 } else { self.core.growth() / (norms.max * scale) };
        self.stats = FactorStats {
            norm_one: norms.one,
            growth,
            min_pivot: if n == 0 { 0.0 } else { smallest / scale },
            boosted_pivots: 0,
            nnz: self.core.nnz(),
            bytes: self.core.bytes()
                + self.left.iter().chain(&self.right).map(Butterfly::bytes).sum::<usize>()
                + self.scratch.bytes()
                + size_of_val(&*self.trial)
                + size_of_val(&*self.sums),
            flops: Self::flops(&self.partition, self.options.depth),
        };
        let checks = Checks { n, growth, smallest, largest, scale };
        checks.failed::<T>(|| self.trial(a, norms))
    }

    /// ‖r‖₁/‖b‖₁ and ‖r‖₁/(‖A‖₁‖y‖₁ + ‖b‖₁) of r = b − A·y for y = A⁻¹·b as solved, b random.
    fn trial(&mut self, a: &BlockTridiagonal<T>, norms: &Norms) -> (f64, f64) {
        let n = self.partition.n();
        let mut trial = std::mem::take(&mut self.trial);
        let (b, y) = trial.split_at_mut(n);
        trial_rhs(b, self.options.seed, self.scale.to_f64());
        y.copy_from_slice(b);
        self.solve_with_butterflies(Op::Identity, MatMut::from_column_major_slice_mut(y, n, 1));
        let norm = |x: &[T]| x.iter().map(|v| Scalar::abs(*v).to_f64()).sum::<f64>();
        let (norm_b, norm_y) = (norm(b), norm(y));
        // r ← b − A·y
        a.apply(-one::<T>(), y, one(), b);
        let norm_r = norm(b);
        self.trial = trial;
        (norm_r / norm_b, norm_r / (norms.one * norm_y + norm_b))
    }

    /// X ← s·V·A'⁻¹·Wᵀ·X, or s·W·A'⁻ᵀ·Vᵀ·X, in the bordered blocks.
    fn solve_with_butterflies(&self, op: Op, mut x: MatMut<'_, T>) {
        let (before, after) = if op == Op::Identity { (&self.left, &self.right) } else { (&self.right, &self.left) };
        let bordered = self.core.n();
        self.scratch.with(|buffer| {
            for first in (0..x.ncols()).step_by(TOGETHER) {
                let count = TOGETHER.min(x.ncols() - first);
                let mut part = x.as_mut().subcols_mut(first, count);
                let buffer = &mut buffer[..bordered * count];
                let mut columns = buffer.chunks_exact_mut(bordered.max(1));
                for_each_column(part.as_mut(), |x| {
                    let Some(y) = columns.next() else { return };
                    for (j, w) in before.iter().enumerate() {
                        let y = &mut y[self.core.rows(j)];
                        let (head, tail) = y.split_at_mut(self.partition.size(j));
                        let x = &x[self.partition.range(j)];
                        head.iter_mut().zip(x).for_each(|(y, &x)| *y = times(x, self.scale));
                        tail.fill(T::default());
                        w.apply(Op::Transpose, y);
                    }
                });
                self.core.solve(op, MatMut::from_column_major_slice_mut(&mut *buffer, bordered, count));
                let mut columns = buffer.chunks_exact_mut(bordered.max(1));
                for_each_column(part, |x| {
                    let Some(y) = columns.next() else { return };
                    for (j, v) in after.iter().enumerate() {
                        let y = &mut y[self.core.rows(j)];
                        v.apply(Op::Identity, y);
                        x[self.partition.range(j)].copy_from_slice(&y[..self.partition.size(j)]);
                    }
                });
            }
        });
    }

    /// The factors with pivoting, when they are the ones in use.
    fn pivoted(&self) -> Option<&BlockLuAcross<T>> {
        self.reason.and(self.pivoted.as_ref())
    }
}

impl<T: Scalar> Factorization<T> for BlockRbt<T> {
    fn n(&self) -> usize {
        self.partition.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        match self.pivoted() {
            Some(lu) => lu.solve_op_in_place(op, x),
            None => self.solve_with_butterflies(op, x),
        }
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let a = a.blocks(&self.partition, HybridLayout::default())?;
        self.refactor_with_monitor(&a, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.pivoted().map_or(self.stats, |lu| {
            let tried = Self::flops(&self.partition, self.options.depth);
            FactorStats { flops: lu.stats().flops + tried, ..lu.stats() }
        })
    }
    fn log_det(&self) -> LogDet<T> {
        if let Some(lu) = self.pivoted() {
            return lu.log_det();
        }
        // det(s·A) = det(A') / (det W·det V)
        let mut det = self.core.log_det();
        det.log_abs -= self.n() as f64 * self.scale.to_f64().ln();
        for w in self.left.iter().chain(&self.right) {
            det.log_abs -= w.log_abs_det();
            if w.is_det_negative() {
                det.negate();
            }
        }
        det
    }
}
