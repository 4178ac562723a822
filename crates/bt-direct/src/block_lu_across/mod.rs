//! Block-tridiagonal LU with partial pivoting across the blocks: band pivoting, with the band as wide as the blocks are.
//!
//! Step j works on the rows of block j, as the steps before have left them, and on those of block j + 1, all the rows
//! that have entries in the columns of block j:
//!
//! ```text
//!         columns of   j     j + 1   j + 2             j     j + 1   j + 2
//! rows of j          [ D̃ⱼ    Ũⱼ           ]        [ L\U    G       F     ]   kⱼ pivot rows
//! rows of j + 1      [ Lⱼ₊₁  Dⱼ₊₁    Uⱼ₊₁ ]   →    [ H      D̃ⱼ₊₁    Ũⱼ₊₁  ]   kⱼ₊₁ rows for the next step
//! ```
//!
//! Pivot rows come from both, so that a second block F appears above the diagonal. The pivots are those that Gaussian
//! elimination with partial pivoting takes in the whole matrix: no singular or zero diagonal block matters, the backward
//! error is that of band LU (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §9.3 and §9.5,
//! doi:10.1137/1.9780898718027), and a column without a pivot proves that A is singular. LAPACK's `gbtrf` (J. Du Croz,
//! P. Mayes, G. Radicati, LAPACK Working Note 21, 1990) does the same in a rectangle of the widest block's band.
//!
//! Storage: Σ kⱼ² + 2kⱼkⱼ₊₁ + kⱼkⱼ₊₂ values, 4n bytes of pivots, 8n of column sums, 8 bytes a block. Cost: at most
//! Σ ⅔kⱼ³ + kⱼ²(3kⱼ₊₁ + kⱼ₊₂) + 2kⱼkⱼ₊₁(kⱼ₊₁ + kⱼ₊₂) flops, 26/3·n·k² for equal blocks; a solve takes 2 flops a value.

mod panel;
mod solve;

use bt_formats::{
    BlockTridiagonal, Error, HybridLayout, Monitor, Op, Partition, Progress, RealScalar, Scalar, buffers,
};
use faer::dyn_stack::MemBuffer;
use faer::{MatMut, MatRef};

use crate::block_lu::measure::measure;
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::refine::{growth_limit, unit_roundoff};
use panel::{Panel, Trailing};

const METHOD: &str = "block-lu-across";

/// P·A = L·U of a block-tridiagonal matrix, rows exchanged across the blocks.
///
/// ```
/// use bt_direct::{BlockLuAcross, Factorization};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // [ 0 | 1   ]
/// // [ 2 | 0 1 ]
/// // [ 1 | 0 0 ]   The first diagonal block is zero, the second singular.
/// let a = Csr::new(3, 3, vec![0, 1, 3, 4], vec![1, 0, 2, 0], vec![1.0, 2.0, 1.0, 1.0])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::from_sizes([1, 2])?, HybridLayout::default())?;
/// let mut x = [2.0, 5.0, 1.0];
/// BlockLuAcross::new(&a)?.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 2.0, 3.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BlockLuAcross<T: Scalar> {
    partition: Partition,
    /// For each block [L\U; H], (kⱼ + kⱼ₊₁) × kⱼ, then G, kⱼ × kⱼ₊₁, then F, kⱼ × kⱼ₊₂, all by columns.
    values: Vec<T>,
    /// First value of each block, and their number.
    starts: Vec<usize>,
    /// Row exchanged with each row in its turn, counted from the first row of its block.
    pivots: Vec<u32>,
    /// Σᵢ|aᵢⱼ| of each column.
    sums: Vec<f64>,
    memory: MemBuffer,
    permutation: Vec<u32>,
    stats: FactorStats,
}

impl<T: Scalar> std::fmt::Debug for BlockLuAcross<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockLuAcross")
            .field("partition", &self.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// The factors of one block.
#[derive(Clone, Copy)]
struct Block<'a, T> {
    /// [L\U; H].
    panel: MatRef<'a, T>,
    g: MatRef<'a, T>,
    f: MatRef<'a, T>,
    pivots: &'a [u32],
}

impl<T: Scalar> BlockLuAcross<T> {
    /// Factors a block-tridiagonal matrix.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column without a pivot and its block; [`FactorError::Breakdown`] when elimination
    /// overflows, or leaves no pivot where elements have grown beyond 1/√u; [`FactorError::Input`] for NaN and infinity, and when
    /// there is not the memory.
    ///
    /// # Cost
    /// [`BlockLuAcross::flops`] and [`BlockLuAcross::bytes`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`BlockLuAcross::new`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let partition = a.partition().clone();
        let (m, n) = (partition.n_blocks(), partition.n());
        buffers::ask(2 * partition.min_max_size().1, METHOD)?;
        let no_memory = || {
            let needed = format!("panels of {n} columns in blocks of up to {} rows", partition.min_max_size().1);
            FactorError::from(Error::TooLarge {
                what: "block LU across blocks",
                needed,
                limit: "the memory there is".into(),
            })
        };
        let mut starts = Vec::new();
        reserve(&mut starts, m + 1)?;
        starts.push(0usize);
        let size = |j: usize| if j < m { partition.size(j) } else { 0 };
        let tallest = (0..m).map(|j| size(j) + size(j + 1)).max().unwrap_or(0);
        for j in 0..m {
            let width = size(j) + 2 * size(j + 1) + size(j + 2);
            let end = width.checked_mul(size(j)).and_then(|len| starts[j].checked_add(len)).ok_or_else(no_memory)?;
            starts.push(end);
        }
        let filled = |n: usize| -> Result<Vec<u32>> {
            let mut out = Vec::new();
            reserve(&mut out, n)?;
            out.resize(n, 0);
            Ok(out)
        };
        let mut sums = Vec::new();
        reserve(&mut sums, n)?;
        sums.resize(n, 0.0);
        let memory =
            MemBuffer::try_new(panel::scratch::<T>(tallest, partition.min_max_size().1)).map_err(|_| no_memory())?;
        let (values, pivots, permutation) = (zeros(starts[m])?, filled(n)?, filled(4 * tallest)?);
        let stats = FactorStats::default();
        let mut out = Self { partition, values, starts, pivots, sums, memory, permutation, stats };
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors a matrix with the same partition and new values, without taking memory. After an error solves give NaN
    /// until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockLuAcross::new`], and [`FactorError::Input`] when the partition is another one.
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`BlockLuAcross::refactor`], observed between blocks.
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
            self.values.fill(T::nan_impl());
            self.stats = self.stats.void();
        }
        done
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Flops of the factorization (operations on scalars) with all its fill:
    /// Σ ⅔kⱼ³ + kⱼ²(3kⱼ₊₁ + kⱼ₊₂) + 2kⱼkⱼ₊₁(kⱼ₊₁ + kⱼ₊₂).
    pub fn flops(partition: &Partition) -> f64 {
        let m = partition.n_blocks();
        let size = |j: usize| if j < m { partition.size(j) as f64 } else { 0.0 };
        (0..m)
            .map(|j| {
                let (k, next, after) = (size(j), size(j + 1), size(j + 2));
                k * k * (2.0 / 3.0 * k + next * 2.0 + next + after) + 2.0 * k * next * (next + after)
            })
            .sum()
    }

    /// Bytes of the factors: Σ kⱼ² + 2kⱼkⱼ₊₁ + kⱼkⱼ₊₂ values, 4n bytes of pivots, 8n of sums and 8 bytes a block.
    pub fn bytes(partition: &Partition) -> f64 {
        let m = partition.n_blocks();
        let size = |j: usize| if j < m { partition.size(j) as f64 } else { 0.0 };
        let values: f64 = (0..m).map(|j| size(j) * (size(j) + 2.0 * size(j + 1) + size(j + 2))).sum();
        values * size_of::<T>() as f64 + 12.0 * partition.n() as f64 + 8.0 * (m + 1) as f64
    }

    fn size(&self, j: usize) -> usize {
        if j < self.partition.n_blocks() { self.partition.size(j) } else { 0 }
    }

    fn block(&self, j: usize) -> Block<'_, T> {
        let [k, next, after] = [0, 1, 2].map(|d| self.size(j + d));
        let (panel, rest) = self.values[self.starts[j]..self.starts[j + 1]].split_at((k + next) * k);
        let (g, f) = rest.split_at(k * next);
        Block {
            panel: MatRef::from_column_major_slice(panel, k + next, k),
            g: MatRef::from_column_major_slice(g, k, next),
            f: MatRef::from_column_major_slice(f, k, after),
            pivots: &self.pivots[self.partition.range(j)],
        }
    }

    #[inline(never)]
    fn factor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (m, n) = (self.partition.n_blocks(), self.partition.n());
        let norms = measure(METHOD, a, &mut self.sums)?;
        let (mut largest, mut min_pivot) = (0.0f64, f64::INFINITY);
        if m > 0 {
            self.load(a, 0);
        }
        for j in 0..m {
            if monitor.observe(Progress::Step { phase: "setup", done: j, total: m }).is_break() {
                return Err(FactorError::Stopped);
            }
            if j + 1 < m {
                self.load(a, j + 1);
            }
            let found = self.step(j).map_err(|stop| self.name(j, stop, largest / norms.max))?;
            largest = largest.max_nan(found.largest);
            min_pivot = min_pivot.min_nan(found.min_pivot);
        }
        self.stats = FactorStats {
            norm_one: norms.one,
            growth: if n == 0 { 1.0 } else { largest / norms.max },
            min_pivot: if n == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: self.values.len(),
            bytes: size_of_val(&*self.values)
                + size_of_val(&*self.pivots)
                + size_of_val(&*self.sums)
                + size_of_val(&*self.starts),
            flops: Self::flops(&self.partition),
        };
        Ok(())
    }

    /// Block row j into its places: D on top of its own panel, L at the bottom of the one before, U where G will be.
    fn load(&mut self, a: &BlockTridiagonal<T>, j: usize) {
        let (k, next) = (self.size(j), self.size(j + 1));
        if j > 0 {
            let before = self.size(j - 1);
            let panel = &mut self.values[self.starts[j - 1]..][..(before + k) * before];
            let panel = MatMut::from_column_major_slice_mut(panel, before + k, before);
            a.copy_lower_block(j, panel.subrows_mut(before, k));
        }
        let (panel, rest) = self.values[self.starts[j]..self.starts[j + 1]].split_at_mut((k + next) * k);
        a.copy_diagonal_block(j, MatMut::from_column_major_slice_mut(panel, k + next, k).subrows_mut(0, k));
        let (g, f) = rest.split_at_mut(k * next);
        if j + 1 < self.partition.n_blocks() {
            a.copy_upper_block(j, MatMut::from_column_major_slice_mut(g, k, next));
        }
        f.fill(bt_formats::zero());
    }

    fn step(&mut self, j: usize) -> Result<panel::Measured, panel::Stop> {
        let [k, next, after] = [0, 1, 2].map(|d| self.size(j + d));
        let (own, rest) = self.values[self.starts[j]..].split_at_mut(self.starts[j + 1] - self.starts[j]);
        let (values, trailing) = own.split_at_mut((k + next) * k);
        let (g, f) = trailing.split_at_mut(k * next);
        let pivots = &mut self.pivots[self.partition.range(j)];
        let mut panel = Panel { values, k, next, pivots };
        let found = panel.eliminate(&mut self.permutation, &mut self.memory)?;
        // [G; D̃ⱼ₊₁] in the columns of block j + 1, [F; Ũⱼ₊₁] in those of block j + 2.
        let (below, beside) = rest.split_at_mut(((next + after) * next).min(rest.len()));
        let first = panel.update(Trailing { top: g, bottom: below, ld: next + after, columns: next });
        let second = panel.update(Trailing { top: f, bottom: beside, ld: next, columns: after });
        Ok(panel::Measured { largest: found.largest.max_nan(first).max_nan(second), ..found })
    }

    fn name(&self, block: usize, stop: panel::Stop, growth: f64) -> FactorError {
        match stop {
            panel::Stop::NoPivot(column) => {
                let column = self.partition.range(block).start + column;
                FactorError::no_pivot(METHOD, column, Some(block), growth, growth_limit(unit_roundoff::<T>()))
            }
            panel::Stop::Overflow => FactorError::overflow(METHOD, Some(Place::Block(block))),
        }
    }
}

impl<T: Scalar> Factorization<T> for BlockLuAcross<T> {
    fn n(&self) -> usize {
        self.partition.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        self.solve(op, x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let a = a.blocks(&self.partition, HybridLayout::default())?;
        self.refactor_with_monitor(&a, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.partition.n_blocks() {
            let Block { panel, pivots, .. } = self.block(j);
            for (r, &p) in pivots.iter().enumerate() {
                det.multiply(panel[(r, r)]);
                if p as usize != r {
                    det.negate();
                }
            }
        }
        det
    }
}
