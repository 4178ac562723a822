//! Block-tridiagonal LU with partial pivoting inside the diagonal blocks, for any block sizes.
//!
//! ```text
//! Pⱼ·D̃ⱼ = L̃ⱼ·Ũⱼ      Hⱼ = Lⱼ₊₁·Ũⱼ⁻¹      Gⱼ = L̃ⱼ⁻¹·Pⱼ·Uⱼ      D̃ⱼ₊₁ = Dⱼ₊₁ − Hⱼ·Gⱼ      D̃₁ = D₁
//! ```
//!
//! so that A = L·U with the panels [L̃ⱼ; Hⱼ] as block columns of L and [Ũⱼ Gⱼ] as block rows of U: Gaussian elimination
//! whose pivots are sought among the rows of their own block (the same flops as with D̃ⱼ⁻¹Uⱼ, and smaller elements).
//! Golub & Van Loan, Matrix Computations, 4th ed., §4.5.1; stability: Demmel, Higham & Schreiber, Numer. Linear
//! Algebra Appl. 2 (1995) 173–190, doi:10.1002/nla.1680020208.
//!
//! A nonsingular A may have a singular D̃ⱼ. An exactly zero pivot, and growth beyond 1/√u, are therefore reported as
//! [`FactorError::Breakdown`] for a method that pivots across blocks. The growth measured is
//! maxⱼ max(|Ũⱼ|, |Hⱼ|·|Gⱼ|) / max|A| with the largest moduli of each: what rounding is relative to. An
//! ill-conditioned D̃ⱼ does harm only through Hⱼ and Gⱼ, so no condition number of it is needed.
//!
//! Storage: Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ values, one contiguous panel (kⱼ + kⱼ₊₁) × kⱼ a block, and 4n bytes of pivots.
//! Cost: Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² flops, (14/3)·n·k² for equal blocks; a solve takes 2 flops a stored value.

mod factor;
mod solve;

use bt_formats::{BlockTridiagonal, Error, Matrix, Monitor, Op, Partition, Scalar, zero};
use faer::MatMut;
use faer::dyn_stack::MemBuffer;

use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::tridiagonal_lu::reserve;

const METHOD: &str = "block-lu";

/// Which kernels factor the blocks. The results agree to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernels {
    /// Loops for small blocks, faer for large ones.
    #[default]
    Auto,
    /// Plain column loops.
    Loops,
    /// faer's blocked kernels.
    Blocked,
}

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
    partition: Partition,
    kernels: Kernels,
    /// Panels [L̃ⱼ\Ũⱼ; Hⱼ], (kⱼ + kⱼ₊₁) × kⱼ by columns, and Gⱼ, kⱼ × kⱼ₊₁ by columns, block after block.
    values: Vec<T>,
    /// First value of each block, and their number.
    starts: Vec<usize>,
    /// Row exchanged with each row, inside its block.
    pivots: Vec<u32>,
    /// Column sums of |A|, and the work space of faer's kernels, kept for refactorisation.
    sums: Vec<f64>,
    permutation: Vec<u32>,
    memory: MemBuffer,
    stats: FactorStats,
}

impl<T: Scalar> std::fmt::Debug for BlockLu<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockLu")
            .field("partition", &self.partition)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<T: Scalar> BlockLu<T> {
    /// Factors a block-tridiagonal matrix.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the block when a pivot inside it is zero or elements grow beyond 1/√u;
    /// [`FactorError::Singular`] when that is the last block, so that A itself is singular; [`FactorError::Input`]
    /// for NaN and infinity, and when there is not the memory.
    ///
    /// # Cost
    /// [`BlockLu::flops`] and [`BlockLu::bytes`].
    pub fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`BlockLu::new`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        Self::with_kernels(a, Kernels::Auto, monitor)
    }

    /// Like [`BlockLu::with_monitor`] with the kernels forced.
    ///
    /// # Errors
    /// As [`BlockLu::with_monitor`].
    pub fn with_kernels(a: &BlockTridiagonal<T>, kernels: Kernels, monitor: &mut dyn Monitor) -> Result<Self> {
        let partition = a.partition().clone();
        let m = partition.n_blocks();
        let mut starts = Vec::new();
        reserve(&mut starts, m + 1)?;
        starts.push(0usize);
        for j in 0..m {
            let len = block_len(partition.size(j), next_size(&partition, j));
            let sum = len.and_then(|len| starts[j].checked_add(len)).ok_or_else(|| too_large(&partition))?;
            starts.push(sum);
        }
        let (n, len) = (partition.n(), starts[m]);
        let (mut values, mut pivots, mut sums, mut permutation) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        reserve(&mut values, len)?;
        values.resize(len, zero());
        reserve(&mut pivots, n)?;
        pivots.extend(partition.sizes().flat_map(|k| 0..k as u32));
        reserve(&mut sums, n)?;
        sums.resize(n, 0.0);
        let largest = partition.min_max_size().1;
        permutation.resize(4 * largest, 0);
        let memory = MemBuffer::try_new(factor::scratch::<T>(largest)).map_err(|_| too_large(&partition))?;
        let mut lu = Self {
            partition,
            kernels,
            values,
            starts,
            pivots,
            sums,
            permutation,
            memory,
            stats: FactorStats::default(),
        };
        lu.run(a, monitor)?;
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
        if *a.partition() != self.partition {
            return Err(Error::InvalidStructure {
                what: "matrix for refactorisation",
                why: "its blocks are not those of the matrix that was factored".into(),
            }
            .into());
        }
        let done = self.run(a, monitor);
        if done.is_err() {
            self.invalidate();
        }
        done
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Flops of the factorization (operations on scalars): Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁².
    pub fn flops(partition: &Partition) -> f64 {
        (0..partition.n_blocks())
            .map(|j| {
                let (k, next) = (partition.size(j) as f64, next_size(partition, j) as f64);
                2.0 / 3.0 * k * k * k + 2.0 * k * k * next + 2.0 * k * next * next
            })
            .sum()
    }

    /// Bytes of the factors: Σ kⱼ² + 2kⱼkⱼ₊₁ values and 4n bytes of pivots.
    pub fn bytes(partition: &Partition) -> f64 {
        let values: f64 = (0..partition.n_blocks())
            .map(|j| partition.size(j) as f64 * (partition.size(j) + 2 * next_size(partition, j)) as f64)
            .sum();
        values * size_of::<T>() as f64 + 4.0 * partition.n() as f64
    }

    fn run(&mut self, a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.factor(a, monitor).map_err(|e| match e {
            Stop::Error(e) => e,
            Stop::NonFinite => non_finite(a),
        })
    }

    /// Makes every solve give NaN: what is left of a factorization that failed must not look like an answer.
    fn invalidate(&mut self) {
        self.values.fill(T::from_parts(f64::NAN, 0.0));
        self.stats.growth = f64::INFINITY;
    }
}

/// Why a factorization ends early.
enum Stop {
    Error(FactorError),
    /// Some entry of A is NaN or infinite; where is sought only then.
    NonFinite,
}

impl From<FactorError> for Stop {
    fn from(e: FactorError) -> Self {
        Self::Error(e)
    }
}

/// Size of block j + 1; 0 after the last.
fn next_size(partition: &Partition, j: usize) -> usize {
    if j + 1 < partition.n_blocks() { partition.size(j + 1) } else { 0 }
}

/// Values of the panel and of G: (k + next)·k + k·next.
fn block_len(k: usize, next: usize) -> Option<usize> {
    next.checked_mul(2)?.checked_add(k)?.checked_mul(k)
}

fn too_large(partition: &Partition) -> FactorError {
    let (n, largest) = (partition.n(), partition.min_max_size().1);
    Error::TooLarge {
        what: "block LU",
        needed: format!("panels of {n} columns in blocks of up to {largest} rows"),
        limit: "the memory there is".into(),
    }
    .into()
}

fn non_finite<T: Scalar>(a: &BlockTridiagonal<T>) -> FactorError {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    // Finite entries whose sum of moduli is not: beyond the range of every norm.
    found.map_or_else(
        || FactorError::Failed { method: METHOD, reason: "the norm of the matrix overflows; scale it".into() },
        FactorError::Input,
    )
}

impl<T: Scalar> Factorization<T> for BlockLu<T> {
    fn n(&self) -> usize {
        self.partition.n()
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        self.solve(op, x);
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for j in 0..self.partition.n_blocks() {
            let ld = self.partition.size(j) + next_size(&self.partition, j);
            for (r, &p) in self.pivots[self.partition.range(j)].iter().enumerate() {
                det.multiply(self.values[self.starts[j] + r * (ld + 1)]);
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
    use crate::error::{SingularKind, Singularity};
    use bt_formats::{Csr, HybridLayout};

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
        // P₁D₁ = [[2, 0], [0, 1]], H₁ = [1/2, 1], G₁ = (0, 1)ᵀ, D̃₂ = 4 − 1 = 3
        let a = blocks(&[2, 1], &[&[0.0, 1.0, 1.0], &[2.0, 0.0, 0.0], &[1.0, 1.0, 4.0]]);
        for kernels in [Kernels::Loops, Kernels::Blocked] {
            let lu = BlockLu::with_kernels(&a, kernels, &mut ()).unwrap();
            assert_eq!(lu.values, [2.0, 0.0, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 3.0]);
            assert_eq!(lu.pivots, [1, 1, 0]);
            let s = lu.stats();
            assert_eq!((s.norm_one, s.min_pivot, s.growth, s.nnz), (5.0, 1.0, 0.75, 9));
            let mut x = [2.0, 2.0, 6.0];
            lu.solve_transpose_in_place(MatMut::from_column_major_slice_mut(&mut x, 3, 1));
            // Aᵀ·x gives the right-hand side back.
            let mut b = [0.0; 3];
            a.apply_op(Op::Transpose, 1.0, &x, 0.0, &mut b, bt_formats::Par::Seq);
            assert!(b.iter().zip([2.0, 2.0, 6.0]).all(|(b, e)| (b - e).abs() < 1e-15), "{b:?}");
        }
    }

    #[test]
    fn a_singular_block_is_a_breakdown_and_the_last_one_a_proof() {
        // [[0, 1], [1, 0]] in blocks of one needs a pivot from the other block.
        let a = blocks(&[1, 1], &[&[0.0, 1.0], &[1.0, 0.0]]);
        let Err(FactorError::Breakdown { method, reason }) = BlockLu::new(&a) else { panic!() };
        assert_eq!(method, METHOD);
        assert!(reason.contains("block 0") && reason.contains("band-lu"), "{reason}");
        let singular = blocks(&[1, 2], &[&[1.0, 1.0, 0.0], &[0.0, 1.0, 2.0], &[0.0, 2.0, 4.0]]);
        for kernels in [Kernels::Loops, Kernels::Blocked] {
            let Err(FactorError::Singular(s)) = BlockLu::with_kernels(&singular, kernels, &mut ()) else { panic!() };
            assert_eq!(s, Singularity { kind: SingularKind::Numerical, column: 2, block: Some(1) });
        }
        let zero = blocks(&[2], &[&[0.0, 0.0], &[0.0, 1.0]]);
        assert!(matches!(BlockLu::new(&zero), Err(FactorError::Singular(Singularity { column: 0, .. }))));
    }

    #[test]
    fn growth_beyond_the_limit_is_a_breakdown() {
        let a = blocks(&[1, 1], &[&[1e-12, 1.0], &[1.0, 1.0]]);
        assert!(matches!(BlockLu::new(&a), Err(FactorError::Breakdown { .. })));
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
    fn costs_by_formula() {
        let p = Partition::from_sizes([2, 1]).unwrap();
        assert_eq!(BlockLu::<f64>::flops(&p), 16.0 / 3.0 + 8.0 + 4.0 + 2.0 / 3.0);
        assert_eq!(BlockLu::<f64>::bytes(&p), 8.0 * 9.0 + 12.0);
        let a = blocks(&[2, 1], &[&[0.0, 1.0, 1.0], &[2.0, 0.0, 0.0], &[1.0, 1.0, 4.0]]);
        assert_eq!(BlockLu::new(&a).unwrap().stats().flops, BlockLu::<f64>::flops(&p));
    }
}
