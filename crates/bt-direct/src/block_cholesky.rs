//! Cholesky factorization of a Hermitian positive definite block-tridiagonal matrix, for any block sizes.
//!
//! Blocks are eliminated from both ends towards a middle one, as in [`BlockLu`](crate::BlockLu). With t the neighbour of
//! block j on the side of the middle:
//!
//! ```text
//! D̃ⱼ = Lⱼ·Lⱼᴴ      Hⱼ = A(t, j)·Lⱼ⁻ᴴ      D̃ₜ = Dₜ − Hⱼ·Hⱼᴴ      (in the middle from both sides)
//! ```
//!
//! so that, in the order of elimination, A = L·Lᴴ with the panels [Lⱼ; Hⱼ] as block columns. Always stable, no growth:
//! |lᵢⱼ|² ≤ aᵢᵢ (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §10.1,
//! doi:10.1137/1.9780898718027; by blocks: §13.3.2). That A is Hermitian is verified in every bit.
//!
//! Storage: Σ kⱼ² + kⱼ·kⱼ₊₁ values, one panel (kⱼ + kₜ) × kⱼ a block whose strictly upper triangle is not used, n sums of
//! columns, 8 bytes a block, and work space for one coupling a chain. Cost: Σ ⅓kⱼ³ + kⱼ²kₜ + kⱼkₜ² flops, (7/3)·n·k² for
//! equal blocks, half of block LU's; a solve takes 4 flops a value used.

mod narrow;
mod solve;

use bt_formats::{
    BlockTridiagonal, Error, HybridLayout, Monitor, Op, Par, Partition, Progress, RealScalar, Scalar, buffers, one,
};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef};

use crate::block_lu::measure::measure;
use crate::block_lu::order::Order;
use crate::columns::for_each_column;
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines;
use crate::memory::{reserve, zeros};
use crate::spike::sweep::join;
use narrow::{Panel, Subtract};
use solve::Column;

const METHOD: &str = "block-cholesky";
/// Blocks of this many rows are faster in faer's kernels than in own loops.
const BLOCKED_FROM: usize = 32;
/// Right-hand sides of this number are faster in faer's kernels than one by one.
const MANY: usize = 8;

/// A = L·Lᴴ of a Hermitian positive definite block-tridiagonal matrix.
///
/// ```
/// use bt_direct::{BlockCholesky, Factorization};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // [ 4 2 |   ]
/// // [ 2 5 | 2 ]
/// // [   2 | 5 ]   blocks of 2 and 1
/// let (columns, values) = (vec![0, 1, 0, 1, 2, 1, 2], vec![4.0, 2.0, 2.0, 5.0, 2.0, 2.0, 5.0]);
/// let a = Csr::new(3, 3, vec![0, 2, 5, 7], columns, values)?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::from_sizes([2, 1])?, HybridLayout::default())?;
/// let cholesky = BlockCholesky::new(&a)?;
/// let mut x = [6.0, 9.0, 7.0];
/// cholesky.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BlockCholesky<T: Scalar> {
    order: Order,
    /// Panels [Lⱼ; Hⱼ], (kⱼ + kₜ) × kⱼ by columns, block after block.
    values: Vec<T>,
    /// First value of each block, and their number.
    starts: Vec<usize>,
    /// Σᵢ|aᵢⱼ| of each column.
    sums: Vec<f64>,
    /// Of the chains before and after the middle.
    work: [ChainScratch<T>; 2],
    stats: FactorStats,
}

/// What a chain needs beside its panels: faer's work space, and the mirror image of one coupling.
struct ChainScratch<T> {
    memory: MemBuffer,
    mirror: Vec<T>,
}

impl<T: Scalar> std::fmt::Debug for BlockCholesky<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCholesky")
            .field("partition", &self.order.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> BlockCholesky<T> {
    /// Factors `a`, which must be Hermitian: aᵢⱼ = conj(aⱼᵢ) in every bit.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the block and the row whose pivot is not positive: `a` is not positive definite
    /// (use `block-lu`); [`FactorError::Input`] with the place when `a` is not Hermitian or not finite, or when memory is
    /// short.
    ///
    /// # Cost
    /// [`BlockCholesky::flops`] and [`BlockCholesky::bytes`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`BlockCholesky::new`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let order = Order::new(a.partition().clone());
        let m = order.n_blocks();
        let (n, largest) = (order.partition.n(), order.partition.min_max_size().1);
        buffers::ask(2 * largest, METHOD)?;
        let no_memory = || {
            let needed = format!("panels of {n} columns in blocks of up to {largest} rows");
            FactorError::from(Error::TooLarge { what: "block Cholesky", needed, limit: "the memory there is".into() })
        };
        let mut starts = Vec::new();
        reserve(&mut starts, m + 1)?;
        starts.push(0usize);
        for j in 0..m {
            let len = (order.size(j) + order.next_size(j)).checked_mul(order.size(j));
            starts.push(len.and_then(|len| starts[j].checked_add(len)).ok_or_else(no_memory)?);
        }
        let coupling = (0..m).map(|j| order.size(j) * order.next_size(j)).max().unwrap_or(0);
        let work = || -> Result<ChainScratch<T>> {
            let request = cholesky_in_place_scratch::<T>(largest, faer::Par::Seq, faer::prelude::default());
            Ok(ChainScratch { memory: MemBuffer::try_new(request).map_err(|_| no_memory())?, mirror: zeros(coupling)? })
        };
        let mut sums = Vec::new();
        reserve(&mut sums, n)?;
        sums.resize(n, 0.0);
        let (values, work) = (zeros(starts[m])?, [work()?, work()?]);
        let mut out = Self { order, values, starts, sums, work, stats: FactorStats::default() };
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors a matrix with the same partition and new values, without taking memory. After an error solves give NaN
    /// until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockCholesky::new`], and [`FactorError::Input`] when the partition is another one.
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`BlockCholesky::refactor`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        if *a.partition() != self.order.partition {
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
        &self.order.partition
    }

    /// Flops of the factorization: Σ ⅓kⱼ³ + kⱼ²kₜ + kⱼkₜ², kₜ the neighbour towards the middle.
    pub fn flops(partition: &Partition) -> f64 {
        crate::BlockLu::<T>::flops(partition) / 2.0
    }

    /// Bytes of the factors: Σ kⱼ² + kⱼkⱼ₊₁ values, 8n bytes of sums and 8 bytes a block.
    pub fn bytes(partition: &Partition) -> f64 {
        let (mut values, mut last) = (0.0, 0.0);
        for k in partition.sizes() {
            values += k as f64 * (k as f64 + last);
            last = k as f64;
        }
        values * size_of::<T>() as f64 + 8.0 * (partition.n() + partition.n_blocks() + 1) as f64
    }

    #[inline(never)]
    fn factor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let norms = measure(METHOD, a, &mut self.sums)?;
        self.load(a)?;
        let (m, n) = (self.order.n_blocks(), self.order.partition.n());
        let mut min_pivot = f64::INFINITY;
        if m > 0 {
            min_pivot = self.eliminate(monitor)?;
        }
        self.stats = FactorStats {
            norm_one: norms.one,
            // |lᵢⱼ|² ≤ aᵢᵢ: nothing grows.
            growth: 1.0,
            min_pivot: if n == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: (0..m).map(|j| self.order.size(j)).map(|k| k * (k + 1) / 2).sum::<usize>() + self.couplings(),
            bytes: size_of_val(&*self.values) + size_of_val(&*self.sums) + size_of_val(&*self.starts),
            flops: Self::flops(&self.order.partition),
        };
        Ok(())
    }

    fn couplings(&self) -> usize {
        (0..self.order.n_blocks()).map(|j| self.order.size(j) * self.order.next_size(j)).sum()
    }

    /// The panels [Dⱼ; A(t, j)], compared with their mirror images.
    fn load(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        let partition = &self.order.partition;
        for j in 0..self.order.n_blocks() {
            let (k, next, rows) = (self.order.size(j), self.order.next_size(j), self.order.rows(j));
            let panel = &mut self.values[self.starts[j]..self.starts[j + 1]];
            let (mut d, mut h) = MatMut::from_column_major_slice_mut(&mut *panel, k + next, k).split_at_row_mut(k);
            a.copy_diagonal_block(j, d.as_mut());
            let mirror = &mut self.work[0].mirror[..k * next];
            let mut beside = MatMut::from_column_major_slice_mut(&mut *mirror, k, next);
            let t = self.order.toward(j);
            match t {
                Some(t) if t > j => {
                    a.copy_lower_block(t, h.as_mut());
                    a.copy_upper_block(j, beside.as_mut());
                }
                Some(t) => {
                    a.copy_upper_block(t, h.as_mut());
                    a.copy_lower_block(j, beside.as_mut());
                }
                None => {}
            }
            let below = t.map_or(0, |t| partition.range(t).start);
            let ld = k + next;
            let column = |c: usize| &panel[c * ld..(c + 1) * ld];
            let differs = (0..k).find_map(|c| {
                // Dⱼ with itself, then A(t, j) with A(j, t).
                let own = column(c);
                let inside = (c..k).find(|&r| own[r] != Scalar::conj(panel[r * ld + c]));
                let place = inside.map(|r| (rows.start + r, own[r], panel[r * ld + c]));
                place
                    .or_else(|| {
                        let r = (0..next).find(|&r| own[k + r] != Scalar::conj(mirror[r * k + c]))?;
                        Some((below + r, own[k + r], mirror[r * k + c]))
                    })
                    .map(|(row, value, other)| (row, rows.start + c, value, other))
            });
            if let Some((row, col, value, other)) = differs {
                let why = format!("it is not Hermitian: row {row}, column {col} is {value}, its mirror {other}");
                return Err(Error::InvalidStructure { what: "matrix", why }.into());
            }
        }
        Ok(())
    }

    /// Both chains, then the middle. The smallest pivot.
    fn eliminate(&mut self, monitor: &mut dyn Monitor) -> Result<f64> {
        let Self { order, values, starts, work, .. } = self;
        let (order, starts, middle) = (&*order, &**starts, order.middle);
        let m = order.n_blocks();
        let (before, rest) = values.split_at_mut(starts[middle]);
        let (own, after) = rest.split_at_mut(starts[middle + 1] - starts[middle]);
        let [first, second] = work;
        let step = |done| Progress::Step { phase: "setup", done, total: m };
        let mut done = 0;
        let mut go_on = || {
            done += 1;
            if monitor.observe(step(done - 1)).is_break() { Err(FactorError::Stopped) } else { Ok(()) }
        };
        let par = Par::auto(size_of_val(before).min(size_of_val(after)));
        let chain = Chain { order, starts, first: starts[middle + 1] };
        let outcomes = if par == Par::Rayon {
            // One thread reports, the other is short of that.
            go_on()?;
            join(
                par,
                || Chain { first: 0, ..chain }.run(0..middle, before, first, || Ok(())),
                || chain.run((middle + 1..m).rev(), after, second, || Ok(())),
            )
        } else {
            let left = Chain { first: 0, ..chain }.run(0..middle, before, first, &mut go_on);
            let right = left.is_ok().then(|| chain.run((middle + 1..m).rev(), after, second, &mut go_on));
            (left, right.unwrap_or(Ok(f64::INFINITY)))
        };
        let (left, right) = (outcomes.0?, outcomes.1?);
        go_on()?;
        if middle > 0 {
            subtract(&before[starts[middle - 1]..], order.size(middle - 1), own, order.size(middle), 0);
        }
        if middle + 1 < m {
            let panel = &after[..starts[middle + 2] - starts[middle + 1]];
            subtract(panel, order.size(middle + 1), own, order.size(middle), 0);
        }
        let last = panel(own, order.size(middle), 0, first).map_err(|at| not_definite(order, middle, at))?;
        Ok(left.min(right).min(last))
    }
}

/// The blocks on one side of the middle; `first` is where their values begin.
#[derive(Clone, Copy)]
struct Chain<'a> {
    order: &'a Order,
    starts: &'a [usize],
    first: usize,
}

impl Chain<'_> {
    fn run<T: Scalar>(
        self,
        blocks: impl Iterator<Item = usize>,
        values: &mut [T],
        work: &mut ChainScratch<T>,
        mut go_on: impl FnMut() -> Result<()>,
    ) -> Result<f64> {
        let order = self.order;
        let mut smallest = f64::INFINITY;
        let mut last: Option<usize> = None;
        let range = |j: usize| self.starts[j] - self.first..self.starts[j + 1] - self.first;
        for j in blocks {
            go_on()?;
            let (k, next) = (order.size(j), order.next_size(j));
            // D̃ⱼ ← Dⱼ − H·Hᴴ of the block before it in the chain.
            if let Some(last) = last {
                let (own, other) = (range(j), range(last));
                let split = own.start.max(other.start);
                let (low, high) = values.split_at_mut(split);
                let (to, from) = if own.start < other.start {
                    (&mut low[own], &high[..other.end - split])
                } else {
                    (&mut high[..own.end - split], &low[other])
                };
                subtract(from, order.size(last), to, k, next);
            }
            let pivot = panel(&mut values[range(j)], k, next, work).map_err(|at| not_definite(order, j, at))?;
            smallest = smallest.min(pivot);
            last = Some(j);
        }
        Ok(smallest)
    }
}

fn not_definite(order: &Order, block: usize, at: usize) -> FactorError {
    let row = order.rows(block).start + at;
    let reason = format!(
        "the pivot of row {row} (from 0), row {at} of block {block}, is not positive: the matrix is not positive \
         definite; use block-lu"
    );
    FactorError::breakdown(METHOD, Place::Row(row), reason)
}

/// The lower half of D̃ ← D̃ − H·Hᴴ: H below the `from_k` rows of the panel `from`, D̃ the first `k` of k + `next` rows.
fn subtract<T: Scalar>(from: &[T], from_k: usize, to: &mut [T], k: usize, next: usize) {
    if from_k.max(k) < BLOCKED_FROM {
        lines::dispatch::<T, _>(Subtract { from, from_k, to, k, next });
        return;
    }
    let h = MatRef::from_column_major_slice(from, from_k + k, from_k).subrows(from_k, k);
    let d = MatMut::from_column_major_slice_mut(to, k + next, k).subrows_mut(0, k);
    let (lower, all, minus) = (BlockStructure::TriangularLower, BlockStructure::Rectangular, -one::<T>());
    triangular::matmul(d, lower, Accum::Add, h, all, h.adjoint(), all, minus, faer::Par::Seq);
}

/// [D̃; A(t, j)] → [L; H]; the smallest pivot, or the row of the block whose pivot is not positive.
fn panel<T: Scalar>(values: &mut [T], k: usize, next: usize, work: &mut ChainScratch<T>) -> Result<f64, usize> {
    if k < BLOCKED_FROM {
        return lines::dispatch::<T, _>(Panel { values, k, next });
    }
    let (mut d, mut h) = MatMut::from_column_major_slice_mut(values, k + next, k).split_at_row_mut(k);
    let (stack, parameters) = (MemStack::new(&mut work.memory), faer::prelude::default());
    cholesky_in_place(d.as_mut(), faer::prelude::default(), faer::Par::Seq, stack, parameters)
        .map_err(|LltError::NonPositivePivot { index }| index)?;
    let mut smallest = f64::INFINITY;
    for r in 0..k {
        let root = d[(r, r)].re().to_f64();
        if !(root > 0.0 && root.is_finite()) {
            return Err(r);
        }
        smallest = smallest.min(root * root);
    }
    // conj(L)·Hᵀ = A(t, j)ᵀ
    solve_lower_triangular_in_place(d.as_ref().conjugate(), h.as_mut().transpose_mut(), faer::Par::Seq);
    Ok(smallest)
}

impl<T: Scalar> Factorization<T> for BlockCholesky<T> {
    fn n(&self) -> usize {
        self.order.partition.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        // Aᵀ·x = b is A·conj(x) = conj(b).
        let conjugate = |x: MatMut<'_, T>| {
            if op == Op::Transpose && !T::IS_REAL {
                for_each_column(x, |x| x.iter_mut().for_each(|v| *v = Scalar::conj(*v)));
            }
        };
        conjugate(x.as_mut());
        if x.ncols() >= MANY && self.order.partition.min_max_size().1 >= BLOCKED_FROM {
            self.solve_many(x.as_mut());
        } else {
            for_each_column(x.as_mut(), |x| lines::dispatch::<T, _>(Column { cholesky: self, x }));
        }
        conjugate(x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let a = a.blocks(&self.order.partition, HybridLayout::default())?;
        self.refactor_with_monitor(&a, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.order.n_blocks() {
            let (k, panel) = (self.order.size(j), self.panel(j));
            for r in 0..k {
                let root = panel[r * (k + self.order.next_size(j) + 1)];
                det.multiply(root);
                det.multiply(root);
            }
        }
        det
    }
}
