//! Block cyclic reduction with partial pivoting inside the diagonal blocks, for any number of blocks of any sizes.
//!
//! Every second block is eliminated, which leaves a block-tridiagonal system of half as many blocks, and so on down to
//! one. With s = 2ˡ on level l, block j (an odd multiple of s) stands between a = j − s and c = j + s:
//!
//! ```text
//! Pⱼ·D̃ⱼ = L̃ⱼ·Ũⱼ     Hₐ = Aₐⱼ·Ũⱼ⁻¹   H꜀ = A꜀ⱼ·Ũⱼ⁻¹     Gₐ = L̃ⱼ⁻¹·Pⱼ·Aⱼₐ   G꜀ = L̃ⱼ⁻¹·Pⱼ·Aⱼ꜀
//! D̃ₐ ← D̃ₐ − Hₐ·Gₐ    D̃꜀ ← D̃꜀ − H꜀·G꜀    Aₐ꜀ ← −Hₐ·G꜀    A꜀ₐ ← −H꜀·Gₐ
//! ```
//!
//! The blocks of a level are independent of each other: they are factored by as many threads as there are, and since
//! each block is a function of earlier levels alone, the factors have the same bits for any number of them.
//!
//! S. P. Hirshman, K. S. Perumalla, V. E. Lynch & R. Sanchez, *BCYCLIC: A parallel block tridiagonal matrix cyclic
//! solver*, J. Comput. Phys. 229 (2010) 6392–6404, doi:10.1016/j.jcp.2010.04.049, §2. Stability of cyclic reduction as
//! block LU of a permuted matrix: P. Amodio & F. Mazzia, SIAM J. Matrix Anal. Appl. 15 (1994) 1115–1134.
//! Departures: H and G in place of D̃⁻¹A (the flops are the same, the elements smaller, and transposed solves come out of
//! the same factors); blocks may differ in size; a block collects what all earlier levels subtract from it only when its
//! turn comes, so that nothing is written twice.
//!
//! As in [`crate::block_lu`], a nonsingular A may have a singular D̃ⱼ: a zero pivot and growth
//! maxⱼ max(|Ũⱼ|, |H|·|G|) / max|A| beyond 1/√u are a [`FactorError::Breakdown`] that names the block.
//!
//! Storage: Σⱼ kⱼ² + 2kⱼ(kₐ + k꜀) values, 5·n·k at most for equal blocks, and 4n bytes of pivots.
//! Cost: Σⱼ ⅔kⱼ³ + 2kⱼ²(kₐ + k꜀) + 2kⱼ(kₐ + k꜀)² flops, (38/3)·n·k² for equal blocks: 2.7 times block LU, in log₂ m
//! dependent steps in place of m. A solve takes 2 flops a stored value.

mod factor;
pub(crate) mod front;
mod solve;

use std::ops::Range;
use std::sync::Mutex;

use bt_formats::{BlockTridiagonal, Error, HybridLayout, Matrix, Monitor, Op, Partition, Scalar, buffers, zero};
use faer::MatMut;

use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::reserve;
use front::{Front, Workspace};

const METHOD: &str = "block-cyclic-reduction";

/// A block-tridiagonal matrix factored by cyclic reduction.
///
/// ```
/// use bt_direct::{BlockCyclicReduction, Factorization};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // [ 4 1 |   ]
/// // [ 0 4 | 1 ]
/// // [   1 | 4 ]   blocks of 2 and 1
/// let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 1, 1, 2, 1, 2], vec![4.0, 1.0, 4.0, 1.0, 1.0, 4.0])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::from_sizes([2, 1])?, HybridLayout::default())?;
/// let factors = BlockCyclicReduction::new(&a)?;
/// let mut x = [5.0, 5.0, 5.0];
/// factors.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v: &f64| (v - 1.0).abs() < 1e-15));
/// assert!((factors.log_det().log_abs - 60f64.ln()).abs() < 1e-14);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BlockCyclicReduction<T: Scalar> {
    partition: Partition,
    /// Fronts, level after level: of block j the panel [L̃ⱼ\Ũⱼ; Hₐ; H꜀], (kⱼ + kₐ + k꜀) × kⱼ by columns, then
    /// [Gₐ G꜀], kⱼ × (kₐ + k꜀) by columns.
    values: Vec<T>,
    /// First value of each block's front.
    starts: Vec<usize>,
    /// Row exchanged with each row inside its block, in the order of the fronts.
    pivots: Vec<u32>,
    /// First pivot of each block.
    pivot_starts: Vec<u32>,
    /// Column sums of |A| as they were loaded: of each block kⱼ for its own columns, on level 0 kₐ + k꜀ more.
    sums: Vec<f64>,
    /// First sum of each block.
    sum_starts: Vec<usize>,
    /// One work space a thread, made when a thread first needs one.
    workspaces: Mutex<Vec<Workspace>>,
    stats: FactorStats,
}

impl<T: Scalar> std::fmt::Debug for BlockCyclicReduction<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCyclicReduction")
            .field("partition", &self.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// The blocks of one elimination step, and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The block.
    j: usize,
    /// Its level; the root, block 0, stands above all others.
    level: u32,
    /// Block before it among those left, unless it is the root.
    a: Option<usize>,
    /// Block after it among those left.
    c: Option<usize>,
}

impl Place {
    fn of(j: usize, m: usize) -> Self {
        if j == 0 {
            return Self { j, level: levels(m) - 1, a: None, c: None };
        }
        let level = j.trailing_zeros();
        Self { j, level, a: Some(j - (1 << level)), c: Some(j + (1 << level)).filter(|&c| c < m) }
    }
}

/// Levels of m blocks: ⌈log₂ m⌉ of eliminations, and one for the root.
fn levels(m: usize) -> u32 {
    if m == 0 { 0 } else { m.next_power_of_two().trailing_zeros() + 1 }
}

/// Number of blocks on a level.
fn count(level: u32, m: usize) -> usize {
    if level + 1 == levels(m) {
        return 1;
    }
    // s, 3s, 5s, … < m
    let s = 1usize << level;
    m.saturating_sub(s).div_ceil(2 * s)
}

/// Block number `i` of a level.
fn block_at(level: u32, i: usize, m: usize) -> usize {
    if level + 1 == levels(m) { 0 } else { (2 * i + 1) << level }
}

/// kⱼ, kₐ, k꜀.
fn sizes(partition: &Partition, p: Place) -> (usize, usize, usize) {
    let size = |j: Option<usize>| j.map_or(0, |j| partition.size(j));
    (partition.size(p.j), size(p.a), size(p.c))
}

impl<T: Scalar> BlockCyclicReduction<T> {
    /// Factors a block-tridiagonal matrix, on the current rayon pool where it is large enough.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the block when a pivot inside it is zero or elements grow beyond 1/√u (use
    /// `band-lu`); [`FactorError::Singular`] when there is one block only, and no pivot in all its rows;
    /// [`FactorError::Input`] for NaN and infinity, and when there is not the memory.
    ///
    /// # Cost
    /// [`BlockCyclicReduction::flops`] and [`BlockCyclicReduction::bytes`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`BlockCyclicReduction::new`], observed some 64 times.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let partition = a.partition().clone();
        let (m, n) = (partition.n_blocks(), partition.n());
        buffers::ask(2 * partition.min_max_size().1, METHOD)?;
        let (mut starts, mut pivot_starts, mut sum_starts) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut sum_starts, m)?;
        sum_starts.resize(m, 0usize);
        reserve(&mut starts, m)?;
        reserve(&mut pivot_starts, m)?;
        starts.resize(m, 0usize);
        pivot_starts.resize(m, 0u32);
        let (mut len, mut pivot_len, mut sum_len) = (0usize, 0u32, 0usize);
        for level in 0..levels(m) {
            for i in 0..count(level, m) {
                let place = Place::of(block_at(level, i, m), m);
                let (k, ka, kc) = sizes(&partition, place);
                (starts[place.j], pivot_starts[place.j], sum_starts[place.j]) = (len, pivot_len, sum_len);
                len = front_len(k, ka + kc).and_then(|l| len.checked_add(l)).ok_or_else(|| too_large(&partition))?;
                pivot_len += k as u32;
                sum_len += sum_len_of(k, ka + kc, level);
            }
        }
        let (mut values, mut pivots, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut values, len)?;
        values.resize(len, zero());
        reserve(&mut pivots, n)?;
        pivots.resize(n, 0);
        reserve(&mut sums, sum_len)?;
        sums.resize(sum_len, 0.0);
        let first = Workspace::new::<T>(partition.min_max_size().1)?;
        let mut workspaces = Vec::with_capacity(64);
        workspaces.push(first);
        let mut out = Self {
            partition,
            values,
            starts,
            pivots,
            pivot_starts,
            sums,
            sum_starts,
            workspaces: Mutex::new(workspaces),
            stats: FactorStats::default(),
        };
        out.factor(a, monitor)?;
        Ok(out)
    }

    /// Factors a matrix with the same partition and new values, without taking memory (but for a work space of
    /// 20 bytes a row of the largest block for each thread that takes part for the first time).
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockCyclicReduction::new`], and [`FactorError::Input`] when the partition is another one.
    pub fn refactor(&mut self, a: &BlockTridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`BlockCyclicReduction::refactor`], observed.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        if *a.partition() != self.partition {
            return Err(Error::InvalidStructure {
                what: "matrix for refactorisation",
                why: "its blocks are not those of the matrix that was factored".into(),
            }
            .into());
        }
        let done = self.factor(a, monitor);
        if done.is_err() {
            self.values.fill(T::rounded(f64::NAN, 0.0));
            self.pivots.fill(0);
            self.stats = FactorStats { norm_one: f64::NAN, growth: f64::INFINITY, min_pivot: f64::NAN, ..self.stats };
        }
        done
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Flops of the factorization (operations on scalars): Σ ⅔kⱼ³ + 2kⱼ²(kₐ + k꜀) + 2kⱼ(kₐ + k꜀)².
    pub fn flops(partition: &Partition) -> f64 {
        places(partition)
            .map(|(k, ka, kc)| {
                let (k, around) = (k as f64, (ka + kc) as f64);
                2.0 / 3.0 * k * k * k + 2.0 * k * k * around + 2.0 * k * around * around
            })
            .sum()
    }

    /// Bytes of the factors: Σ kⱼ² + 2kⱼ(kₐ + k꜀) values and 4n bytes of pivots.
    pub fn bytes(partition: &Partition) -> f64 {
        let values: f64 = places(partition).map(|(k, ka, kc)| k as f64 * (k + 2 * (ka + kc)) as f64).sum();
        values * size_of::<T>() as f64 + 4.0 * partition.n() as f64
    }

    /// The factors of one block.
    #[inline]
    fn front(&self, j: usize) -> Front<'_, T> {
        let place = Place::of(j, self.partition.n_blocks());
        let (k, ka, kc) = sizes(&self.partition, place);
        Front::new(k, ka, kc, &self.values[self.starts[j]..])
    }

    fn pivots_of(&self, j: usize) -> &[u32] {
        let start = self.pivot_starts[j] as usize;
        &self.pivots[start..start + self.partition.size(j)]
    }

    /// Rows of blocks `j`, none beyond the last.
    fn start_of(&self, j: usize) -> usize {
        self.partition.offsets()[j.min(self.partition.n_blocks())] as usize
    }
}

/// (kⱼ, kₐ, k꜀) of every block.
fn places(partition: &Partition) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let m = partition.n_blocks();
    (0..m).map(move |j| sizes(partition, Place::of(j, m)))
}

/// Values of a front: (k + around)·k + k·around.
fn front_len(k: usize, around: usize) -> Option<usize> {
    around.checked_mul(2)?.checked_add(k)?.checked_mul(k)
}

/// Column sums kept of a block.
fn sum_len_of(k: usize, around: usize, level: u32) -> usize {
    if level == 0 { k + around } else { k }
}

fn too_large(partition: &Partition) -> FactorError {
    let (n, largest) = (partition.n(), partition.min_max_size().1);
    Error::TooLarge {
        what: "block cyclic reduction",
        needed: format!("fronts of {n} columns in blocks of up to {largest} rows"),
        limit: "the memory there is".into(),
    }
    .into()
}

/// Where A is not finite, if it is not.
fn non_finite<T: Scalar>(a: &BlockTridiagonal<T>) -> Option<FactorError> {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    found.map(FactorError::Input)
}

/// `range` cut in two.
fn halves(range: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let middle = range.start + range.len() / 2;
    (range.start..middle, middle..range.end)
}

impl<T: Scalar> Factorization<T> for BlockCyclicReduction<T> {
    fn n(&self) -> usize {
        self.partition.n()
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
        let a = a.blocks(&self.partition, HybridLayout::default())?;
        self.refactor_with_monitor(&a, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        // Rows and columns of A were permuted alike: no sign comes from that.
        let mut det = LogDet::one();
        for j in 0..self.partition.n_blocks() {
            let front = self.front(j);
            for (r, &p) in self.pivots_of(j).iter().enumerate() {
                det.multiply(front.column(r)[r]);
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

    #[test]
    fn every_block_has_one_place_in_the_order() {
        for m in 0..40 {
            let mut seen = vec![false; m];
            for level in 0..levels(m) {
                for i in 0..count(level, m) {
                    let j = block_at(level, i, m);
                    let place = Place::of(j, m);
                    assert_eq!(place.level, level, "block {j} of {m}");
                    assert!(!std::mem::replace(&mut seen[j], true));
                    // Neighbours are eliminated later.
                    for other in [place.a, place.c].into_iter().flatten() {
                        assert!(Place::of(other, m).level > level && !seen[other]);
                    }
                }
            }
            assert!(seen.iter().all(|&s| s), "{m}: {seen:?}");
        }
    }

    #[test]
    fn costs_by_formula() {
        // Blocks 2 1 3: block 1 between both, then block 2 next to block 0, then block 0.
        let p = Partition::from_sizes([2, 1, 3]).unwrap();
        assert_eq!(BlockCyclicReduction::<f64>::bytes(&p), 8.0 * (11.0 + (9.0 + 12.0) + 4.0) + 24.0);
        let third = 2.0 / 3.0;
        let expected = (third + 10.0 + 50.0) + (27.0 * third + 36.0 + 24.0) + 8.0 * third;
        assert!((BlockCyclicReduction::<f64>::flops(&p) - expected).abs() < 1e-12);
    }
}
