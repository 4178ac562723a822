//! Block-tridiagonal partitions in the given order: the finest one, and the one a person would draw.
//!
//! A partition of 0..n into consecutive blocks with ends 0 = e₀ < e₁ < … < e_m = n (block j is e_{j−1}..e_j) makes A
//! block tridiagonal when aᵢⱼ ≠ 0 implies |block(i) − block(j)| ≤ 1.
//!
//! **Reach.** R(e) = the smallest r ≥ e with aᵢⱼ = aⱼᵢ = 0 for all i < e, j ≥ r: everything coupled with the first e
//! indices lies below R(e). R does not decrease, and one prefix maximum over first and last non-zeros of rows gives
//! it in O(n).
//!
//! **Lemma.** A is block tridiagonal in the ends e if and only if R(e_j) ≤ e_{j+1} for j = 1..m−1.
//! (An entry breaks the structure exactly when it couples an index below some e_j with one at or beyond e_{j+1}.)
//!
//! **Theorem.** The chain e₁ = 1, e_{j+1} = max(R(e_j), e_j + 1), stopped at n, has the greatest number of blocks.
//! Proof: let f be the ends of any valid partition. f₁ ≥ 1 = e₁, and if f_j ≥ e_j then f_{j+1} ≥ max(R(f_j), f_j + 1) ≥
//! max(R(e_j), e_j + 1) = e_{j+1}, because R is monotone. So e is never ahead of f: f reaches n no later. ∎
//!
//! The finest partition is rarely unique and its first blocks look odd: 4 × 4 blocks with full couplings give the sizes
//! 1, 7, 4, 4, …, as many blocks as 4, 4, 4, 4, … with more fill. [`natural_partition`] chooses by storage.

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::{LinearOperator, Matrix, zero};
use crate::partition::Partition;
use crate::permutation::Permutation;
use crate::scalar::Scalar;

/// The block-tridiagonal partition with the greatest number of blocks, the first of them as small as possible.
///
/// Decoupled diagonal parts give blocks without couplings; n = 0 gives no block.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// That of [`Csr::survey`], once, and O(n). 4n bytes.
///
/// ```
/// use bt_formats::{Csr, detect};
/// // [ × × · · ]
/// // [ × × × × ]    Row 1 couples with all that follows it: 1 + 1 + 2.
/// // [ · × × · ]
/// // [ · · · × ]
/// let a = Csr::new(4, 4, vec![0, 2, 6, 8, 9], vec![0, 1, 0, 1, 2, 3, 1, 2, 3], vec![1.0; 9])?;
/// assert_eq!(detect::finest_partition(&a)?.sizes().collect::<Vec<_>>(), [1, 1, 2]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn finest_partition<T: Scalar>(a: &Csr<T>) -> Result<Partition> {
    Reach::of(a)?.chain_from(1)
}

/// The partition a person would draw: of few candidates, the one whose dense blocks hold the fewest numbers,
/// S = Σ k_j² + 2 Σ k_j k_{j+1} (the second sum over neighbours that are coupled at all).
///
/// Candidates:
/// - *chains*: the first block has any size s up to its reach, and each next block is the smallest one allowed; after
///   a decoupled boundary the size is free again. The best of all of them is found by dynamic programming over the
///   ends. Three or more blocks with full couplings are found exactly: they are the chain from s = k₁; a smaller
///   s has the same second end and adds 2(k₁ − s)k₃, and a larger one adds 2k₁k₃ at least.
/// - *uniform* blocks of size k (a smaller last one), for all k that can be valid: an entry at distance b from the
///   diagonal needs k ≥ (b + 1)/2, and all k ≥ b are valid, so (b + 1)/2 ≤ k ≤ b + 1 is tried; and the one block n.
///
/// The uniform one is taken when its S is at most 1 + 2/m times the chain's, m its number of blocks: the ends of a
/// chain can always save about that much by tapering, which no one wants to see. Ties go to fewer blocks.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(n): Σ n/k over the sizes tried is at most n·ln 2 + O(1). 24n bytes.
///
/// ```
/// use bt_formats::{Coo, detect};
/// // Five 2 × 2 blocks with full couplings: finest 1, 3, 2, 2, 2; drawn 2, 2, 2, 2, 2.
/// let mut a = Coo::new(10, 10)?;
/// for i in 0..10usize {
///     for j in 0..10 {
///         if (i / 2).abs_diff(j / 2) <= 1 {
///             a.push(i, j, 1.0)?;
///         }
///     }
/// }
/// let a = a.to_csr()?;
/// assert_eq!(detect::finest_partition(&a)?.sizes().collect::<Vec<_>>(), [1, 3, 2, 2, 2]);
/// assert_eq!(detect::natural_partition(&a)?.sizes().collect::<Vec<_>>(), [2; 5]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn natural_partition<T: Scalar>(a: &Csr<T>) -> Result<Partition> {
    Reach::of(a)?.natural()
}

/// That of P·A·Pᵀ, which is not made.
///
/// # Errors
/// [`crate::Error::NotSquare`]; [`crate::Error::DimensionMismatch`] when `order` is of another length.
///
/// # Cost
/// O(nnz). 24n bytes.
///
/// ```
/// use bt_formats::{Csr, Permutation, detect};
/// // Unknowns 0 and 2, 2 and 1 are coupled: in the order 0, 2, 1 a chain.
/// let a = Csr::from_dense(faer::mat![[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 2.0]].as_ref())?;
/// let order = Permutation::from_order(vec![0, 2, 1])?;
/// assert_eq!(detect::natural_partition(&a)?.n_blocks(), 1);
/// assert_eq!(detect::natural_partition_under(&a, &order)?.n_blocks(), 3);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn natural_partition_under<T: Scalar>(a: &Csr<T>, order: &Permutation) -> Result<Partition> {
    Reach::under(a, order)?.natural()
}

/// The partition into *lines*: maximal runs of consecutive indices linked by the first off-diagonals, when it makes A
/// block tridiagonal with more than one block and every diagonal block tridiagonal; `None` otherwise.
///
/// This is how grids, levels of queues and lines of unknowns are numbered, and the partition that line methods such as
/// the hybrid block iteration want: their blocks are solved at the cost of reading them.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz).
///
/// ```
/// use bt_formats::{Coo, detect};
/// // Two lines of three unknowns, coupled index by index.
/// let mut a = Coo::new(6, 6)?;
/// for (i, j) in [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)] {
///     a.push(i, j, -1.0)?;
///     a.push(j, i, -1.0)?;
/// }
/// let lines = detect::line_partition(&a.to_csr()?)?;
/// assert_eq!(lines.unwrap().sizes().collect::<Vec<_>>(), [3, 3]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub fn line_partition<T: Scalar>(a: &Csr<T>) -> Result<Option<Partition>> {
    let reach = Reach::of(a)?;
    let n = reach.n();
    let mut linked = vec![false; n];
    a.for_each_entry(&mut |i, j, v| {
        if i.abs_diff(j) == 1 && v != zero() {
            linked[i.min(j)] = true;
        }
    });
    let lines = from_ends((1..=n).filter(|&e| !linked[e - 1]).map(|e| e as u32).collect())?;
    let mut within = true;
    a.for_each_entry(&mut |i, j, v| {
        let far = i.abs_diff(j) > 1 && v != zero();
        within &= !(far && lines.block_of(i) == lines.block_of(j));
    });
    Ok((within && lines.n_blocks() > 1 && is_block_tridiagonal(a, &lines)?).then_some(lines))
}

/// Whether every non-zero of A lies in the three block diagonals of `partition`. O(n).
///
/// # Errors
/// [`crate::Error::NotSquare`]; [`crate::Error::DimensionMismatch`] when the blocks do not sum to n.
pub fn is_block_tridiagonal<T: Scalar>(a: &Csr<T>, partition: &Partition) -> Result<bool> {
    let reach = Reach::of(a)?;
    if partition.n() != reach.n() {
        return Err(Error::DimensionMismatch {
            what: "sum of the block sizes",
            expected: reach.n(),
            found: partition.n(),
        });
    }
    // R(e_j) ≤ e_{j+1}
    Ok(partition.offsets()[1..].windows(2).all(|e| reach.0[e[0] as usize] <= e[1]))
}

fn from_ends(ends: Vec<u32>) -> Result<Partition> {
    let mut start = 0;
    Partition::from_sizes(ends.into_iter().map(move |e| (e - std::mem::replace(&mut start, e)) as usize))
}

/// R(0), …, R(n).
struct Reach(Vec<u32>);

impl Reach {
    fn of<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let (n, survey) = (a.nrows(), a.survey());
        let mut r = vec![0u32; n + 1];
        for i in 0..n {
            let (first, last) = survey.extent(i);
            // aᵢⱼ ≠ 0 with j > i: index i reaches j. With j < i: j reaches i; for the prefix maximum the smallest
            // such j says it for the others.
            let (low, high) = (first.min(i), last.max(i));
            r[low + 1] = r[low + 1].max(i as u32 + 1);
            r[i + 1] = r[i + 1].max(high as u32 + 1);
        }
        Ok(Self::from_farthest(r))
    }

    /// Of P·A·Pᵀ.
    fn under<T: Scalar>(a: &Csr<T>, order: &Permutation) -> Result<Self> {
        a.check_square()?;
        let (n, position) = (a.nrows(), order.position());
        if position.len() != n {
            return Err(Error::DimensionMismatch { what: "length of the order", expected: n, found: position.len() });
        }
        let mut r = vec![0u32; n + 1];
        for i in 0..n {
            let at = position[i];
            let (cols, values) = a.row(i);
            // Where the row ends on either side, its diagonal included.
            let (mut low, mut high) = (at, at);
            for (&j, v) in cols.iter().zip(values) {
                if *v != zero() {
                    let place = position[j as usize];
                    (low, high) = (low.min(place), high.max(place));
                }
            }
            let (low, i) = (low as usize, at as usize);
            r[low + 1] = r[low + 1].max(at + 1);
            r[i + 1] = r[i + 1].max(high + 1);
        }
        Ok(Self::from_farthest(r))
    }

    /// From the farthest end that each index reaches by itself, one later.
    fn from_farthest(mut r: Vec<u32>) -> Self {
        for e in 1..r.len() {
            r[e] = r[e].max(r[e - 1]);
        }
        Self(r)
    }

    /// See [`natural_partition`].
    fn natural(&self) -> Result<Partition> {
        let n = self.n();
        if n == 0 {
            return Partition::from_sizes([]);
        }
        let (chain_slots, ends) = self.best_chain();
        let (uniform_slots, k) = self.best_uniform();
        let blocks = n.div_ceil(k) as f64;
        if uniform_slots as f64 <= (1.0 + 2.0 / blocks) * chain_slots as f64 {
            Partition::uniform(n, k)
        } else {
            from_ends(ends)
        }
    }

    fn n(&self) -> usize {
        self.0.len() - 1
    }

    /// Smallest end allowed after the end e < n.
    fn next(&self, e: usize) -> usize {
        (self.0[e] as usize).max(e + 1)
    }

    /// The chain with e₁ = `first`.
    fn chain_from(&self, first: usize) -> Result<Partition> {
        let mut ends = Vec::new();
        let mut e = first;
        while e < self.n() {
            ends.push(e as u32);
            e = self.next(e);
        }
        if self.n() > 0 {
            ends.push(self.n() as u32);
        }
        from_ends(ends)
    }

    /// Least S of a chain, and its ends.
    ///
    /// Let G(e) be the least S of what lies at and beyond the end e. Where e is a decoupled boundary, R(e) = e,
    /// the next end is free: G(e) = min over e < f ≤ R(e + 1) of k² + C(e, f) + G(f), k = f − e. Elsewhere it is
    /// f = R(e). C(e, f) = 2k·(next(f) − f) counts the couplings of the block e..f with the one after it, 0 if none.
    /// Parts between decoupled boundaries do not overlap, so that all the minima together cost O(n).
    fn best_chain(&self) -> (u64, Vec<u32>) {
        let n = self.n();
        // (S, blocks): ties go to fewer blocks. S ≤ (Σ k_j)² = n² < 2⁶⁴.
        let mut least: Vec<(u64, u32)> = vec![(0, 0); n + 1];
        let mut choice = vec![n as u32; n + 1];
        for e in (0..n).rev() {
            let r = self.0[e] as usize;
            let candidates = if r == e { e + 1..=self.0[e + 1] as usize } else { r..=r };
            let (mut best, mut end) = ((u64::MAX, u32::MAX), n);
            for f in candidates {
                let k = (f - e) as u64;
                let coupled = if f < n && self.0[f] as usize > f { (self.0[f] as usize - f) as u64 } else { 0 };
                let (s, blocks) = least[f];
                let total = (k * k + 2 * k * coupled + s, blocks + 1);
                if total < best {
                    (best, end) = (total, f);
                }
            }
            (least[e], choice[e]) = (best, end as u32);
        }
        let mut ends = Vec::new();
        let mut e = 0;
        while e < n {
            e = choice[e] as usize;
            ends.push(e as u32);
        }
        (least[0].0, ends)
    }

    /// Least S of a valid uniform partition, and its block size; the larger size when several are as good.
    fn best_uniform(&self) -> (u64, usize) {
        let n = self.n();
        // No entry is further from the diagonal than b.
        let b = (0..n).map(|e| (self.0[e + 1] as usize).saturating_sub(e + 1)).max().unwrap_or(0);
        let mut best = ((n as u64).pow(2), n);
        for k in (b.div_ceil(2).max(1)..=(b + 1).min(n)).rev() {
            if let Some(slots) = self.uniform_slots(k).filter(|s| *s < best.0) {
                best = (slots, k);
            }
        }
        best
    }

    /// S of uniform blocks of size `k`, if A is block tridiagonal in them.
    fn uniform_slots(&self, k: usize) -> Option<u64> {
        let n = self.n();
        let mut slots = 0u64;
        for start in (0..n).step_by(k) {
            let end = (start + k).min(n);
            let next = (end + k).min(n);
            let r = self.0[end] as usize;
            if r > next {
                return None;
            }
            let size = (end - start) as u64;
            slots += size * size + if r > end { 2 * size * (next - end) as u64 } else { 0 };
        }
        Some(slots)
    }
}
