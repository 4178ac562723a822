//! Block-tridiagonal LU with partial pivoting inside the diagonal blocks, for any block sizes.
//!
//! Blocks are eliminated from both ends towards a middle one. With t the neighbour of block j on the side of the middle,
//! Lⱼ = A(t, j) and Uⱼ = A(j, t):
//!
//! ```text
//! Pⱼ·D̃ⱼ = L̃ⱼ·Ũⱼ      Hⱼ = Lⱼ·Ũⱼ⁻¹      Gⱼ = L̃ⱼ⁻¹·Pⱼ·Uⱼ      D̃ₜ = Dₜ − Hⱼ·Gⱼ      (in the middle from both sides)
//! ```
//!
//! so that, in the order of elimination, A = L·U with the panels [L̃ⱼ; Hⱼ] as block columns of L and [Ũⱼ Gⱼ] as block
//! rows of U: Gaussian elimination whose pivots are sought among the rows of their own block (the same flops as with
//! D̃ⱼ⁻¹Uⱼ, and smaller elements). The two chains of blocks are independent, one thread each, and the middle depends on
//! the sizes alone: any number of threads gives the same bits.
//! Golub & Van Loan, Matrix Computations, 4th ed., §4.5.1; stability: Demmel, Higham & Schreiber, Numer. Linear
//! Algebra Appl. 2 (1995) 173–190, doi:10.1002/nla.1680020208; elimination from both ends: van der Vorst, Parallel
//! Comput. 5 (1987) 45–54, doi:10.1016/0167-8191(87)90005-6.
//!
//! A nonsingular A may have a singular D̃ⱼ. An exactly zero pivot, and growth beyond 1/√u, are therefore reported as
//! [`FactorError::Breakdown`] for a method that pivots across blocks. Only in the middle block, the last one, does a missing
//! pivot prove that A is singular, where elements have not grown beyond 1/√u. The growth measured is maxⱼ max(|Ũⱼ|, |Hⱼ|·|Gⱼ|) /
//! max|A| with the largest moduli of each: what rounding is relative to. An ill-conditioned D̃ⱼ does harm only through Hⱼ and Gⱼ,
//! so no condition number of it is needed.
//!
//! Storage: Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ values, one contiguous panel (kⱼ + kₜ) × kⱼ a block, 4n bytes of pivots, 48 bytes a
//! block. Cost: Σ ⅔kⱼ³ + 2kⱼ²kₜ + 2kⱼkₜ² flops, (14/3)·n·k² for equal blocks; a solve takes 2 flops a stored value.
//! Blocks of one row are allowed, but a block costs as much as hundreds of flops: the tridiagonal methods are twenty
//! times faster there, and `auto` takes them. Dense blocks of equal size, two to eight rows of doubles, are 1.7 to 11 times
//! as fast as others on AVX-512; complex ones of up to 256 rows 1.4 to 5 times as fast with AVX2 or AVX-512, for which
//! 8 squares of such a block are kept as work space.
//!
//! | file | case |
//! |---|---|
//! | `order.rs`, `measure.rs` | the order of the blocks; the norms of A |
//! | `factor.rs`, `job.rs` | elimination along the two chains, and which of the following a block takes; what these share |
//! | `panel.rs`, `engine.rs`, `simd.rs` | a block of any size: own loops, plain or in explicit vectors, and faer's kernels |
//! | `registers.rs` | blocks of up to eight rows of doubles in eight lanes |
//! | `few_rows.rs` | blocks of two to four rows of other numbers |
//! | `tiles.rs` | blocks of a multiple of a vector's length |
//! | `packed.rs`, `wide.rs` | blocks of other sizes, real or complex, in work space of whole vectors |
//! | `pass.rs`, `solve.rs` | a substitution on one side of the middle; solves with one right-hand side or two, and groups of them |
//! | `many.rs`, `rows.rs` | solves with eight or 32 at once, in a window of rows |
//! | `substitution.rs`, `small.rs` | solves with one or two by tiles, and with blocks of up to eight rows |

mod engine;
mod factor;
mod few_rows;
mod job;
mod many;
pub(crate) mod measure;
pub(crate) mod order;
mod packed;
pub(crate) mod panel;
mod pass;
#[cfg(target_arch = "x86_64")]
mod registers;
mod rows;
pub(crate) mod simd;
mod small;
mod solve;
mod substitution;
mod tiles;
mod wide;

use bt_formats::{BlockTridiagonal, Error, HybridLayout, Matrix, Monitor, Op, Partition, Scalar};
use faer::MatMut;
#[cfg(test)]
use faer::MatRef;

use crate::error::{self, FactorError, Result, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines::Lines;
use crate::memory::reserve;
use factor::ChainScratch;
use job::{Dense, Record};
use order::Order;

#[cfg(feature = "forced-kernels")]
pub use panel::Kernels;
#[cfg(not(feature = "forced-kernels"))]
use panel::Kernels;
pub(crate) use pass::Block;

const METHOD: &str = "block-lu";

/// A factored block-tridiagonal matrix.
///
/// ```
/// use bt_direct::{BlockLu, Factorization};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // [ 0 1 | 1   ]
/// // [ 2 0 | 0   ]
/// // [ 1 1 | 4   ]   blocks of 2 and 1
/// let a = Csr::new(3, 3, vec![0, 2, 3, 6], vec![1, 2, 0, 0, 1, 2], vec![1.0, 1.0, 2.0, 1.0, 1.0, 4.0])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::from_sizes([2, 1])?, HybridLayout::default())?;
/// let lu = BlockLu::new(&a)?;
/// let mut x = [2.0, 2.0, 6.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 1.0, 1.0]);
/// assert_eq!(lu.log_det().sign, -1.0);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BlockLu<T: Scalar> {
    order: Order,
    kernels: Kernels,
    /// Panels [L̃ⱼ\Ũⱼ; Hⱼ], (kⱼ + kₜ) × kⱼ by columns, on each side of the middle in the order of elimination, so that a
    /// substitution goes straight through the memory; the side after the middle comes last.
    panels: Lines<T>,
    /// Gⱼ, kⱼ × kₜ by columns, in the same order.
    g: Lines<T>,
    /// Where those of each block begin.
    places: Vec<Place>,
    /// Row exchanged with each row, inside its block.
    pivots: Vec<u32>,
    records: Vec<Record>,
    /// Of the chains before and after the middle, kept for refactorisation.
    work: [ChainScratch<T>; 2],
    state: Validity,
    storage: Storage,
    reciprocals: Reciprocals,
    stats: FactorStats,
}

/// First value of a block's panel, and of its G.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) panel: usize,
    pub(super) g: usize,
}

/// How the blocks of the matrix factored last were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    Dense,
    Other,
}

impl Storage {
    fn of<T: Scalar>(a: &BlockTridiagonal<T>) -> Self {
        if Dense::all(a) { Self::Dense } else { Self::Other }
    }
}

/// Whether a solve may multiply by the reciprocals of pivots: are all of them normal numbers, with room to spare?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reciprocals {
    Normal,
    Extreme,
}

/// Whether the factors are those of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
    Factored,
    Failed,
}

/// The last of several blocks without a pivot is what cancellation in the others may leave of a regular matrix, since rows
/// are not exchanged across blocks: a breakdown.
fn unproved(error: FactorError, n_blocks: usize) -> FactorError {
    match error {
        FactorError::Singular(Singularity { column, block: Some(block), .. }) if n_blocks > 1 => {
            let reason = format!(
                "no pivot inside block {block}, the last one eliminated, for column {column} of the matrix (from 0): \
                 band-lu, which pivots across blocks, tells whether there is any"
            );
            FactorError::breakdown(METHOD, error::Place::Column(column), reason)
        }
        other => other,
    }
}

impl<T: Scalar> std::fmt::Debug for BlockLu<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockLu")
            .field("partition", &self.order.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> BlockLu<T> {
    /// Factors a block-tridiagonal matrix.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the block when a pivot inside it is zero or elements grow beyond 1/√u, which says
    /// nothing about A; [`FactorError::Singular`] when there is one block only, and no pivot in all its rows;
    /// [`FactorError::Input`] for NaN and infinity, and when there is not the memory.
    ///
    /// # Cost
    /// [`BlockLu::flops`] and [`BlockLu::bytes`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// The storage in which it factors blocks fastest: dense where they are all of one size up to 16 and the processor has the vectors
    /// for it (AVX-512 up to 8 rows of doubles, else AVX2; 1.1 to 12 times as fast, putting together included), otherwise the smallest.
    ///
    /// ```
    /// use bt_direct::BlockLu;
    /// use bt_formats::{HybridLayout, Partition};
    /// let blocks = Partition::from_sizes([3, 30, 3])?;
    /// assert_eq!(BlockLu::<f64>::layout(&blocks), HybridLayout::default());
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn layout(partition: &Partition) -> HybridLayout {
        let (least, most) = partition.min_max_size();
        if least == most && engine::fast_dense::<T>(most) { HybridLayout::DENSE } else { HybridLayout::default() }
    }

    /// Like [`BlockLu::new`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        Self::eliminated(a, Kernels::Auto, monitor)
    }

    /// Like [`BlockLu::new`] with kernels of the caller's choice: for tests, which compare them.
    ///
    /// # Errors
    /// As [`BlockLu::new`].
    #[cfg(any(test, feature = "forced-kernels"))]
    pub fn forced(a: &BlockTridiagonal<T>, kernels: Kernels) -> Result<Self> {
        Self::eliminated(a, kernels, &mut ())
    }

    #[inline(never)]
    fn eliminated(a: &BlockTridiagonal<T>, kernels: Kernels, monitor: &mut dyn Monitor) -> Result<Self> {
        Self::in_order(a, Order::new(a.partition().clone()), kernels, monitor)
            .map_err(|e| unproved(e, a.partition().n_blocks()))
    }

    /// Eliminated from the first block to the last, for methods that need to know which block comes last:
    /// [`FactorError::Singular`] when that is the one without a pivot, also of several, where nothing has grown.
    pub(crate) fn forwards(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::in_order(a, Order::forwards(a.partition().clone()), Kernels::Auto, &mut ())
    }

    fn in_order(a: &BlockTridiagonal<T>, order: Order, kernels: Kernels, monitor: &mut dyn Monitor) -> Result<Self> {
        let m = order.n_blocks();
        let mut places = Vec::new();
        reserve(&mut places, m)?;
        places.resize(m, Place::default());
        let mut end = Place::default();
        for j in (0..m.min(order.middle + 1)).chain((order.middle + 1..m).rev()) {
            places[j] = end;
            end = end.after(order.size(j), order.next_size(j)).ok_or_else(|| too_large(&order.partition))?;
        }
        let (mut pivots, mut records) = (Vec::new(), Vec::new());
        let (panels, g) = (Lines::zeros(end.panel)?, Lines::zeros(end.g)?);
        reserve(&mut pivots, order.partition.n())?;
        pivots.extend(order.partition.sizes().flat_map(|k| 0..k as u32));
        reserve(&mut records, m)?;
        records.resize(m, Record::EMPTY);
        let work = [ChainScratch::new(order.sizes)?, ChainScratch::new(order.sizes)?];
        let storage = Storage::of(a);
        let (state, reciprocals, stats) = (Validity::Failed, Reciprocals::Extreme, FactorStats::default());
        let mut lu =
            Self { order, kernels, panels, g, places, pivots, records, work, state, storage, reciprocals, stats };
        lu.run(a, [0; 2], monitor)?;
        Ok(lu)
    }

    /// Factors a matrix with the same partition and new values, without taking memory.
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockLu::new`], and [`FactorError::Input`] when the partition is another one.
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`BlockLu::refactor`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_forwards(a, monitor).map_err(|e| unproved(e, self.order.n_blocks()))
    }

    /// Like [`BlockLu::refactor_with_monitor`], with the errors of [`BlockLu::forwards`].
    pub(crate) fn refactor_forwards(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.check_partition(a)?;
        self.run(a, [0; 2], monitor)
    }

    /// Factors a matrix that differs from the one factored last in block row `j` only: [Lⱼ Dⱼ Uⱼ]. Eliminated again are
    /// the blocks from the neighbour of block j on, up to the middle one; the factors of all others stay. The bits are
    /// those of a fresh factorization; no memory is taken. After a failure, and when dense storage changes to another or
    /// back, everything is factored anew.
    ///
    /// ```
    /// use bt_direct::{BlockLu, Factorization};
    /// use bt_formats::{BlockTridiagonal, Partition};
    /// let blocks = Partition::from_sizes([1, 1, 1])?;
    /// let couplings = vec![1.0; 4];
    /// let a = BlockTridiagonal::from_dense_blocks(blocks.clone(), vec![4.0, 4.0, 4.0], couplings.clone())?;
    /// let mut lu = BlockLu::new(&a)?;
    /// let b = BlockTridiagonal::from_dense_blocks(blocks, vec![4.0, 4.0, 5.0], couplings)?;
    /// lu.update_block(2, &b)?;
    /// let mut x = [5.0, 6.0, 6.0];
    /// lu.solve_vec_in_place(&mut x);
    /// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`BlockLu::refactor`].
    ///
    /// # Panics
    /// When there is no block `j`.
    ///
    /// # Cost
    /// That of the blocks from j's outer neighbour to the middle, at most two more, and O(m).
    pub fn update_block(&mut self, j: usize, a: &BlockTridiagonal<T>) -> Result<()> {
        self.check_partition(a)?;
        assert!(j < self.order.n_blocks(), "block {j} of {}", self.order.n_blocks());
        // Blocks stored otherwise may go through other kernels, whose last bits differ.
        let same = self.state == Validity::Factored && self.storage == Storage::of(a);
        let skip = if same { self.unchanged(j) } else { [0; 2] };
        self.run(a, skip, &mut ()).map_err(|e| unproved(e, self.order.n_blocks()))
    }

    fn check_partition(&self, a: &BlockTridiagonal<T>) -> Result<()> {
        if *a.partition() != self.order.partition {
            return Err(Error::InvalidStructure {
                what: "matrix for refactorisation",
                why: "its blocks are not those of the matrix that was factored".into(),
            }
            .into());
        }
        Ok(())
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.order.partition
    }

    /// The block that is eliminated last: the first by whose end half of the work is done.
    pub fn middle(&self) -> usize {
        self.order.middle
    }

    /// The order of elimination.
    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    /// The factors of block `j` as matrices, see [`Pieces`].
    #[cfg(test)]
    pub(crate) fn pieces(&self, j: usize) -> Pieces<'_, T> {
        let Block { k, next, panel, g, pivots } = self.block(j);
        let (lu, h) = MatRef::from_column_major_slice(panel, k + next, k).split_at_row(k);
        let g = MatRef::from_column_major_slice(g, k, next);
        Pieces { lu, h, g, pivots }
    }

    /// Flops of the factorization (operations on scalars): Σ ⅔kⱼ³ + 2kⱼ²kₜ + 2kⱼkₜ², kₜ the neighbour towards the middle.
    pub fn flops(partition: &Partition) -> f64 {
        let (m, middle) = (partition.n_blocks(), order::middle_of(partition));
        (0..m)
            .map(|j| {
                let k = partition.size(j) as f64;
                let next = match j.cmp(&middle) {
                    std::cmp::Ordering::Less => partition.size(j + 1) as f64,
                    std::cmp::Ordering::Equal => 0.0,
                    std::cmp::Ordering::Greater => partition.size(j - 1) as f64,
                };
                2.0 / 3.0 * k * k * k + 2.0 * k * k * next + 2.0 * k * next * next
            })
            .sum()
    }

    /// Bytes of the factors: Σ kⱼ² + 2kⱼkⱼ₊₁ values, 4n bytes of pivots and 48 bytes a block.
    pub fn bytes(partition: &Partition) -> f64 {
        let (mut values, mut last) = (0.0, 0.0);
        for k in partition.sizes() {
            values += k as f64 * (k as f64 + 2.0 * last);
            last = k as f64;
        }
        let (n, m) = (partition.n() as f64, partition.n_blocks() as f64);
        values * size_of::<T>() as f64 + 4.0 * n + (size_of::<Record>() + size_of::<Place>()) as f64 * m
    }

    #[inline(never)]
    fn run(&mut self, a: &BlockTridiagonal<T>, skip: [usize; 2], monitor: &mut dyn Monitor) -> Result<()> {
        (self.state, self.storage) = (Validity::Failed, Storage::of(a));
        let done = self.factor(a, skip, monitor).map_err(|e| match e {
            Stop::Error(e) => e,
            Stop::NonFinite => non_finite(METHOD, a),
        });
        match done {
            Ok(()) => self.state = Validity::Factored,
            Err(_) => self.invalidate(),
        }
        done
    }

    /// Makes every solve give NaN: what is left of a factorization that failed must not look like an answer.
    fn invalidate(&mut self) {
        self.panels.fill(T::rounded(f64::NAN, 0.0));
        self.g.fill(T::rounded(f64::NAN, 0.0));
        self.stats.growth = f64::INFINITY;
    }
}

/// The factors of one block j with t its neighbour towards the middle: P·D̃ = L̃·Ũ, H = A(t, j)·Ũ⁻¹, G = L̃⁻¹·P·A(j, t).
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a, T> {
    /// L̃ (unit lower) and Ũ (upper) in one k × k matrix.
    pub(crate) lu: MatRef<'a, T>,
    /// kₜ × k; no rows in the middle block.
    pub(crate) h: MatRef<'a, T>,
    /// k × kₜ; no columns in the middle block.
    pub(crate) g: MatRef<'a, T>,
    /// P: row r was exchanged with row `pivots[r]` (counted inside the block), for r = 0, 1, … in turn.
    pub(crate) pivots: &'a [u32],
}

/// Why a factorization ends early.
pub(crate) enum Stop {
    Error(FactorError),
    /// Some entry of A is NaN or infinite; where is sought only then.
    NonFinite,
}

impl From<FactorError> for Stop {
    fn from(e: FactorError) -> Self {
        Self::Error(e)
    }
}

impl Place {
    /// Behind a block: (k + next)·k values of the panel and k·next of G on.
    fn after(self, k: usize, next: usize) -> Option<Self> {
        let panel = next.checked_add(k)?.checked_mul(k)?;
        Some(Self { panel: self.panel.checked_add(panel)?, g: self.g.checked_add(k.checked_mul(next)?)? })
    }
}

fn too_large(partition: &Partition) -> FactorError {
    let (n, largest) = (partition.n(), partition.min_max_size().1);
    no_memory(format!("panels of {n} columns in blocks of up to {largest} rows"))
}

fn no_memory(needed: String) -> FactorError {
    Error::TooLarge { what: "block LU", needed, limit: "the memory there is".into() }.into()
}

/// The error for a matrix in which something is not finite.
pub(crate) fn non_finite<T: Scalar>(method: &'static str, a: &BlockTridiagonal<T>) -> FactorError {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    // Finite entries whose sum of moduli is not: beyond the range of every norm.
    found.map_or_else(
        || FactorError::Failed { method, reason: "the norm of the matrix overflows; scale it".into() },
        FactorError::Input,
    )
}

impl<T: Scalar> Factorization<T> for BlockLu<T> {
    fn n(&self) -> usize {
        self.order.partition.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        self.solve(op, x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let a = a.blocks(&self.order.partition, Self::layout(&self.order.partition))?;
        self.refactor_with_monitor(&a, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    #[inline(never)]
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.order.n_blocks() {
            let Block { k, next, panel, pivots, .. } = self.block(j);
            for (r, &p) in pivots.iter().enumerate() {
                det.multiply(panel[r * (k + next) + r]);
                if p as usize != r {
                    det.negate();
                }
            }
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SingularKind;
    use bt_formats::Csr;

    fn blocks(sizes: &[usize], rows: &[&[f64]]) -> BlockTridiagonal<f64> {
        let n = rows.len();
        let (mut ptr, mut idx, mut val) = (vec![0], vec![], vec![]);
        for row in rows {
            for (j, &v) in row.iter().enumerate().filter(|e| *e.1 != 0.0) {
                idx.push(j as u32);
                val.push(v);
            }
            ptr.push(idx.len() as u32);
        }
        let a = Csr::new(n, n, ptr, idx, val).unwrap();
        let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
        BlockTridiagonal::from_csr(&a, partition, HybridLayout::default()).unwrap()
    }

    #[test]
    fn factors_by_hand() {
        // Block 1 goes first: H₁ = (1/4, 0)ᵀ, G₁ = [1, 1], D̃₀ = [[−1/4, 3/4], [2, 0]], whose rows are exchanged.
        let a = blocks(&[2, 1], &[&[0.0, 1.0, 1.0], &[2.0, 0.0, 0.0], &[1.0, 1.0, 4.0]]);
        for kernels in [Kernels::Loops, Kernels::Blocked] {
            let lu = BlockLu::forced(&a, kernels).unwrap();
            assert_eq!(*lu.panels, [2.0, -0.125, 0.0, 0.75, 4.0, 0.25, 0.0]);
            assert_eq!(*lu.g, [1.0, 1.0]);
            assert_eq!(lu.pivots, [1, 1, 0]);
            let s = lu.stats();
            assert_eq!((s.norm_one, s.min_pivot, s.growth, s.nnz), (5.0, 0.75, 1.0, 9));
            let mut x = [2.0, 2.0, 6.0];
            lu.solve_transpose_in_place(MatMut::from_column_major_slice_mut(&mut x, 3, 1));
            // Aᵀ·x gives the right-hand side back.
            let mut b = [0.0; 3];
            a.apply_op(Op::Transpose, 1.0, &x, 0.0, &mut b, bt_formats::Par::Seq);
            assert!(b.iter().zip([2.0, 2.0, 6.0]).all(|(b, e)| (b - e).abs() < 1e-15), "{b:?}");
        }
    }

    #[test]
    fn a_singular_block_is_a_breakdown_and_a_proof_only_where_it_is_all() {
        // [[0, 1], [1, 0]] in blocks of one needs a pivot from the other block.
        let a = blocks(&[1, 1], &[&[0.0, 1.0], &[1.0, 0.0]]);
        let Err(FactorError::Breakdown { method, place, reason }) = BlockLu::new(&a) else { panic!() };
        assert_eq!((method, place), (METHOD, Some(error::Place::Column(0))));
        assert!(reason.contains("block 0") && reason.contains("band-lu"), "{reason}");
        let singular = blocks(&[1, 2], &[&[1.0, 1.0, 0.0], &[0.0, 1.0, 2.0], &[0.0, 2.0, 4.0]]);
        for kernels in [Kernels::Loops, Kernels::Blocked] {
            let Err(FactorError::Breakdown { place, reason, .. }) = BlockLu::forced(&singular, kernels) else {
                panic!()
            };
            assert_eq!(place, Some(error::Place::Column(2)));
            assert!(reason.contains("block 1") && reason.contains("column 2"), "{reason}");
        }
        let Err(FactorError::Singular(s)) = BlockLu::forwards(&singular) else { panic!() };
        assert_eq!(s, Singularity { kind: SingularKind::Numerical, column: 2, block: Some(1) });
        let zero = blocks(&[2], &[&[0.0, 0.0], &[0.0, 1.0]]);
        assert!(matches!(BlockLu::new(&zero), Err(FactorError::Singular(Singularity { column: 0, .. }))));
    }

    #[test]
    fn cancellation_in_near_singular_blocks_does_not_make_a_matrix_singular() {
        // det = 4e-20 − 1 − … : the condition number is below 4, and 1/1e-9 swallows what the middle block holds.
        let t = 1e-9;
        let a = blocks(&[1, 1, 1], &[&[t, 1.0, 0.0], &[1.0, 1.0, 1.0], &[0.0, -1.0, t]]);
        let exact_zero = blocks(&[1, 1, 1], &[&[t, 1.0, 0.0], &[1.0, 0.0, 1.0], &[0.0, -1.0, t]]);
        for a in [a, exact_zero] {
            assert!(!matches!(BlockLu::new(&a), Err(FactorError::Singular(_))));
            let mut lu =
                BlockLu::new(&blocks(&[1, 1, 1], &[&[4.0, 1.0, 0.0], &[1.0, 4.0, 1.0], &[0.0, 1.0, 4.0]])).unwrap();
            assert!(!matches!(lu.refactor(&a), Err(FactorError::Singular(_))));
            assert!(!matches!(lu.update_block(1, &a), Err(FactorError::Singular(_))));
        }
        // det = −2, condition number 4; what the first block adds to the last one swallows it.
        let t = 2f64.powi(-60);
        let a = blocks(&[1, 2], &[&[t, 1.0, 1.0], &[1.0, 1.0, 0.0], &[1.0, 0.0, 1.0]]);
        assert!(matches!(BlockLu::forwards(&a), Err(FactorError::Breakdown { .. })));
    }

    #[test]
    fn growth_beyond_the_limit_is_a_breakdown() {
        let a = blocks(&[1, 1], &[&[1e-12, 1.0], &[1.0, 1.0]]);
        let at = |a| match BlockLu::new(a) {
            Err(FactorError::Breakdown { place, .. }) => place,
            other => panic!("{other:?}"),
        };
        assert_eq!(at(&a), Some(error::Place::Block(0)));
        let fine = blocks(&[1, 1], &[&[1e-3, 1.0], &[1.0, 1.0]]);
        assert!((BlockLu::new(&fine).unwrap().stats().growth - 1e3).abs() < 1.0);
    }

    #[test]
    fn refactorisation_recovers_from_a_failure() {
        let good = blocks(&[1, 1], &[&[2.0, 1.0], &[1.0, 3.0]]);
        let bad = blocks(&[1, 1], &[&[0.0, 1.0], &[1.0, 3.0]]);
        let mut lu = BlockLu::new(&good).unwrap();
        assert!(lu.refactor(&bad).is_err());
        let mut x = [3.0, 4.0];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        lu.refactor(&good).unwrap();
        let mut x = [3.0, 4.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [1.0, 1.0]);
        let other = blocks(&[2], &[&[2.0, 1.0], &[1.0, 3.0]]);
        assert!(matches!(lu.refactor(&other), Err(FactorError::Input(_))));
    }

    #[test]
    fn pieces_multiply_to_the_matrix() {
        // Dⱼ of the Schur complement = Pᵀ·L̃·Ũ, A(t, j) = H·Ũ, A(j, t) = Pᵀ·L̃·G
        let rows: [&[f64]; 5] = [
            &[1.0, 5.0, 2.0, 0.0, 0.0],
            &[4.0, 1.0, 1.0, 0.0, 0.0],
            &[1.0, 3.0, 9.0, 1.0, 2.0],
            &[0.0, 0.0, 2.0, 1.0, 6.0],
            &[0.0, 0.0, 1.0, 7.0, 1.0],
        ];
        let a = blocks(&[2, 1, 2], &rows);
        let lu = BlockLu::new(&a).unwrap();
        assert_eq!(lu.middle(), 1);
        let full = |i: usize, j: usize| rows[i][j];
        for j in [0, 2] {
            let Pieces { lu: f, h, g, pivots } = lu.pieces(j);
            let t = lu.order().toward(j).unwrap();
            let (own, other) = (lu.partition().range(j), lu.partition().range(t));
            let k = own.len();
            let upper = |r: usize, c: usize| if r <= c { f[(r, c)] } else { 0.0 };
            let lower = |r: usize, c: usize| if r > c { f[(r, c)] } else { f64::from(u8::from(r == c)) };
            for i in 0..other.len() {
                for c in 0..k {
                    let sum: f64 = (0..k).map(|r| h[(i, r)] * upper(r, c)).sum();
                    assert!((sum - full(other.start + i, own.start + c)).abs() < 1e-14);
                }
                let mut column: Vec<f64> = (0..k).map(|r| (0..k).map(|c| lower(r, c) * g[(c, i)]).sum()).collect();
                for (r, &p) in pivots.iter().enumerate().rev() {
                    column.swap(r, p as usize);
                }
                for r in 0..k {
                    assert!((column[r] - full(own.start + r, other.start + i)).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn one_chain_solves_what_two_solve() {
        for k in [2, 3, 4, 5, 8, 16] {
            let m = 40;
            let number = |i: usize| ((i * i + 7 * i) % 23) as f64 / 23.0 - 0.5;
            let heavy = |i: usize| if i.is_multiple_of(k + 1) { 3.0 * k as f64 } else { 0.0 };
            let diagonal = (0..m * k * k).map(|i| number(i) + heavy(i % (k * k))).collect();
            let couplings = (0..2 * (m - 1) * k * k).map(number).collect();
            let partition = Partition::uniform(m * k, k).unwrap();
            let a = BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings).unwrap();
            let (mut x, mut y) = (vec![1.0; m * k], vec![1.0; m * k]);
            let (both, one) = (BlockLu::new(&a).unwrap(), BlockLu::forwards(&a).unwrap());
            assert_eq!((both.middle(), one.middle()), (m / 2, m - 1));
            both.solve_vec_in_place(&mut x);
            one.solve_vec_in_place(&mut y);
            assert!(x.iter().zip(&y).all(|(x, y): (&f64, &f64)| (x - y).abs() <= 1e-14 * (1.0 + y.abs())), "k = {k}");
            assert!((both.stats().norm_one - one.stats().norm_one).abs() <= 1e-14 * one.stats().norm_one);
        }
    }

    #[test]
    fn costs_by_formula() {
        let p = Partition::from_sizes([2, 1]).unwrap();
        assert_eq!(BlockLu::<f64>::flops(&p), 16.0 / 3.0 + 8.0 + 4.0 + 2.0 / 3.0);
        assert_eq!(BlockLu::<f64>::bytes(&p), 8.0 * 9.0 + 12.0 + 96.0);
        let a = blocks(&[2, 1], &[&[0.0, 1.0, 1.0], &[2.0, 0.0, 0.0], &[1.0, 1.0, 4.0]]);
        assert_eq!(BlockLu::new(&a).unwrap().stats().flops, BlockLu::<f64>::flops(&p));
    }
}
