//! The block-tridiagonal part of A⁻¹, from the factors of [`BlockLu`].
//!
//! ```text
//! S = Ũ⁻¹·L̃⁻¹·P in the middle block, and from there outwards, with t the neighbour towards the middle, S' = Sₜₜ:
//! Sⱼₜ = −Ũⱼ⁻¹·(Gⱼ·S')      Sₜⱼ = −(S'·Hⱼ)·L̃ⱼ⁻¹·Pⱼ      Sⱼⱼ = (Ũⱼ⁻¹ − Sⱼₜ·Hⱼ)·L̃ⱼ⁻¹·Pⱼ
//! ```
//!
//! The blocks on either side of the middle are a thread's work each; the bits do not depend on the threads.
//!
//! K. Takahashi, J. Fagan & M.-S. Chen, Proc. 8th PICA Conf. (1973) 63–69; A. M. Erisman & W. F. Tinney, Commun. ACM 18
//! (1975) 177–179, doi:10.1145/360680.360704; for blocks, as the recursive Green's function of quantum transport:
//! A. Svizhenko et al., J. Appl. Phys. 91 (2002) 2343–2354, doi:10.1063/1.1432117. Departure: no D̃ⱼ⁻¹ is formed; the
//! triangles Ũⱼ and L̃ⱼ are solved with, so that the error is that of the factors.
//!
//! In smoothing, Sⱼⱼ is the covariance of the state of step j and Sⱼ,ⱼ₊₁ the one across two steps; in transport, with
//! A = (E + iη)·I − H, they are the retarded Green's function, whose diagonal gives the local density of states.
//!
//! Storage: Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ values, as of the factors; for the diagonal alone n values and two fronts of
//! (2k)·k + k² for the largest block. Cost: Σ (4/3)kⱼ³ + 4kⱼ²kⱼ₊₁ + 4kⱼkⱼ₊₁² flops, (28/3)·n·k² for equal blocks: twice
//! the factorization.

mod small;

use std::sync::atomic::{AtomicBool, Ordering};

use bt_formats::{Monitor, Partition, Progress, Scalar, one, zero};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_inverse::invert_upper_triangular;
use faer::linalg::triangular_solve::{solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

use crate::block_lu::order::Order;
use crate::block_lu::{Block, BlockLu};
use crate::error::{FactorError, Result};
use crate::lines;
use crate::memory::{reserve, zeros};
use small::Small;

/// Blocks with fewer rows than this (and the next block too) are faster in lanes than in faer's kernels.
const BLOCKED_FROM: usize = 16;

/// The blocks of A⁻¹ on and beside the diagonal.
///
/// ```text
/// A⁻¹ = [ S₀₀ S₀₁  ·  ]     diagonal(j) = Sⱼⱼ, kⱼ × kⱼ
///       [ S₁₀ S₁₁ S₁₂ ]     upper(j) = Sⱼ,ⱼ₊₁, kⱼ × kⱼ₊₁
///       [  ·  S₂₁ S₂₂ ]     lower(j) = Sⱼ,ⱼ₋₁, kⱼ × kⱼ₋₁
/// ```
///
/// ```
/// use bt_direct::{BlockLu, SelectedInverse};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // [  2 −1    ]⁻¹       [ 3 2 1 ]
/// // [ −1  2 −1 ]   = 1/4·[ 2 4 2 ]
/// // [    −1  2 ]         [ 1 2 3 ]
/// let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![2., -1., -1., 2., -1., -1., 2.])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::from_sizes([2, 1])?, HybridLayout::default())?;
/// let inverse = SelectedInverse::new(&BlockLu::new(&a)?)?;
/// assert!((inverse.diagonal(0)[(0, 1)] - 0.5f64).abs() < 1e-15);
/// assert!((inverse.upper(0)[(1, 0)] - 0.5).abs() < 1e-15);
/// assert!((inverse.lower(1)[(0, 0)] - 0.25).abs() < 1e-15);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SelectedInverse<T> {
    order: Order,
    /// Of each block, t its neighbour towards the middle, the panel [Sⱼⱼ; Sₜⱼ], (kⱼ + kₜ) × kⱼ by columns, and Sⱼₜ,
    /// kⱼ × kₜ by columns.
    values: Vec<T>,
    /// First value of each block, and their number.
    starts: Vec<usize>,
}

impl<T: Scalar> SelectedInverse<T> {
    /// The block-tridiagonal part of the inverse of the factored matrix.
    ///
    /// # Errors
    /// [`FactorError::Input`] when there is not the memory.
    ///
    /// # Cost
    /// [`SelectedInverse::flops`] and [`SelectedInverse::bytes`].
    pub fn new(lu: &BlockLu<T>) -> Result<Self> {
        Self::with_monitor(lu, &mut ())
    }

    /// Like [`SelectedInverse::new`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(lu: &BlockLu<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let order = lu.order().clone();
        let m = order.n_blocks();
        let mut starts = Vec::new();
        reserve(&mut starts, m + 1)?;
        starts.push(0usize);
        for j in 0..m {
            // The factors have as many values and are in memory: no overflow.
            starts.push(starts[j] + front_len(order.size(j), order.next_size(j)));
        }
        let values = zeros(starts[m])?;
        let mut out = Self { order, values, starts };
        out.recompute_with_monitor(lu, monitor)?;
        Ok(out)
    }

    /// The same from other factors with the same blocks, in the same memory.
    ///
    /// # Errors
    /// [`FactorError::Input`] when the blocks are others.
    pub fn recompute(&mut self, lu: &BlockLu<T>) -> Result<()> {
        self.recompute_with_monitor(lu, &mut ())
    }

    /// Like [`SelectedInverse::recompute`], observed between blocks. When it is stopped, the values are NaN.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn recompute_with_monitor(&mut self, lu: &BlockLu<T>, monitor: &mut dyn Monitor) -> Result<()> {
        if lu.order().partition != self.order.partition {
            return Err(bt_formats::Error::InvalidStructure {
                what: "factors for the selected inverse",
                why: "their blocks are not those of the inverse".into(),
            }
            .into());
        }
        let (m, middle) = (self.order.n_blocks(), self.order.middle);
        if m == 0 {
            return Ok(());
        }
        let first = Progress::Step { phase: "selected inverse", done: 0, total: middle + 1 };
        let stopped = AtomicBool::new(monitor.observe(first).is_break());
        {
            let (order, starts) = (&self.order, &self.starts[..]);
            let (top, rest) = self.values.split_at_mut(starts[middle]);
            let (mid, bottom) = rest.split_at_mut(starts[middle + 1] - starts[middle]);
            step(&lu.block(middle), MatRef::from_column_major_slice(&[], 0, 0), mid);
            let mid = &*mid;
            // The monitor watches the upper side, whose blocks stand for those of both.
            let mut upper = || {
                for (done, j) in (0..middle).rev().enumerate() {
                    let progress = Progress::Step { phase: "selected inverse", done: done + 1, total: middle + 1 };
                    if monitor.observe(progress).is_break() {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let (front, known) = top.split_at_mut(starts[j + 1]);
                    let known = if j + 1 == middle { mid } else { &*known };
                    step(&lu.block(j), leading(order, j + 1, known), &mut front[starts[j]..]);
                }
            };
            let mut lower = || {
                let base = starts[middle + 1];
                for j in middle + 1..m {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let (known, front) = bottom.split_at_mut(starts[j] - base);
                    let known = if j - 1 == middle { mid } else { &known[starts[j - 1] - base..] };
                    step(&lu.block(j), leading(order, j - 1, known), &mut front[..starts[j + 1] - starts[j]]);
                }
            };
            if starts[m] * size_of::<T>() >= PARALLEL_BYTES && rayon::current_num_threads() > 1 {
                // The monitor stays on this thread.
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| lower());
                    upper();
                });
            } else {
                upper();
                lower();
            }
        }
        if stopped.into_inner() {
            self.values.fill(T::rounded(f64::NAN, f64::NAN));
            return Err(FactorError::Stopped);
        }
        Ok(())
    }

    /// The blocks.
    pub fn partition(&self) -> &Partition {
        &self.order.partition
    }

    /// Sⱼⱼ, kⱼ × kⱼ.
    pub fn diagonal(&self, j: usize) -> MatRef<'_, T> {
        self.panel(j).subrows(0, self.order.size(j))
    }

    /// Sⱼ,ⱼ₊₁, kⱼ × kⱼ₊₁.
    ///
    /// # Panics
    /// When j is the last block.
    pub fn upper(&self, j: usize) -> MatRef<'_, T> {
        assert!(j + 1 < self.order.n_blocks(), "the last block row has no upper block");
        self.beside(j, j + 1)
    }

    /// Sⱼ,ⱼ₋₁, kⱼ × kⱼ₋₁.
    ///
    /// # Panics
    /// When j = 0.
    pub fn lower(&self, j: usize) -> MatRef<'_, T> {
        assert!(j > 0, "block row 0 has no lower block");
        self.beside(j, j - 1)
    }

    /// Sᵢⱼ of neighbours i and j: with the block farther from the middle, as Sⱼₜ or Sₜⱼ.
    fn beside(&self, i: usize, j: usize) -> MatRef<'_, T> {
        let (ki, kj) = (self.order.size(i), self.order.size(j));
        if self.order.toward(i) == Some(j) {
            let first = self.starts[i] + (ki + kj) * ki;
            MatRef::from_column_major_slice(&self.values[first..self.starts[i + 1]], ki, kj)
        } else {
            self.panel(j).subrows(kj, ki)
        }
    }

    /// (A⁻¹)ᵢᵢ for all i: variances, or the trace when summed.
    pub fn diagonal_values(&self) -> Vec<T> {
        (0..self.order.n_blocks())
            .flat_map(|j| {
                let s = self.diagonal(j);
                (0..s.nrows()).map(move |i| s[(i, i)])
            })
            .collect()
    }

    /// Flops (operations on scalars): Σ (4/3)kⱼ³ + 4kⱼ²kₜ + 4kⱼkₜ².
    pub fn flops(partition: &Partition) -> f64 {
        let order = Order::new(partition.clone());
        (0..order.n_blocks())
            .map(|j| {
                let (k, next) = (order.size(j) as f64, order.next_size(j) as f64);
                4.0 / 3.0 * k * k * k + 4.0 * k * k * next + 4.0 * k * next * next
            })
            .sum()
    }

    /// Bytes of the values: Σ kⱼ² + 2kⱼkₜ of them.
    pub fn bytes(partition: &Partition) -> f64 {
        let order = Order::new(partition.clone());
        let values: f64 = (0..order.n_blocks()).map(|j| front_len(order.size(j), order.next_size(j)) as f64).sum();
        values * size_of::<T>() as f64
    }

    fn panel(&self, j: usize) -> MatRef<'_, T> {
        let (k, next) = (self.order.size(j), self.order.next_size(j));
        MatRef::from_column_major_slice(&self.values[self.starts[j]..self.starts[j] + (k + next) * k], k + next, k)
    }
}

/// Bytes of the inverse from which on the two sides of the middle go to two threads.
const PARALLEL_BYTES: usize = 1 << 18;

/// Sₜₜ in the front of block t.
fn leading<'a, T: Scalar>(order: &Order, t: usize, front: &'a [T]) -> MatRef<'a, T> {
    let (k, next) = (order.size(t), order.next_size(t));
    MatRef::from_column_major_slice(&front[..(k + next) * k], k + next, k).subrows(0, k)
}

/// The diagonal of A⁻¹ alone, n values, in the time of the selected inverse and with three fronts of memory beside it.
///
/// # Errors
/// [`FactorError::Input`] when there is not the memory.
///
/// ```
/// use bt_direct::{BlockLu, inverse_diagonal};
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 1.0])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::uniform(2, 1)?, HybridLayout::default())?;
/// assert_eq!(inverse_diagonal(&BlockLu::new(&a)?)?, [1.0, 2.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[inline(never)]
pub fn inverse_diagonal<T: Scalar>(lu: &BlockLu<T>) -> Result<Vec<T>> {
    let order = lu.order();
    let m = order.n_blocks();
    let longest = (0..m).map(|j| front_len(order.size(j), order.next_size(j))).max().unwrap_or(0);
    let mut out = zeros(order.partition.n())?;
    if m == 0 {
        return Ok(out);
    }
    let (mut mid, mut front, mut known) = (zeros(longest)?, zeros(longest)?, zeros(longest)?);
    let mut visit = |j: usize, s: MatRef<'_, T>, front: &mut [T]| {
        let (k, next) = (order.size(j), order.next_size(j));
        step(&lu.block(j), s, &mut front[..front_len(k, next)]);
        for (i, v) in out[order.rows(j)].iter_mut().enumerate() {
            *v = front[i * (k + next + 1)];
        }
    };
    visit(order.middle, MatRef::from_column_major_slice(&[], 0, 0), &mut mid);
    let mut side = |blocks: &mut dyn Iterator<Item = usize>| {
        known.copy_from_slice(&mid);
        for j in blocks {
            let t = order.toward(j).expect("a block beside the middle");
            visit(j, leading(order, t, &known), &mut front);
            std::mem::swap(&mut front, &mut known);
        }
    };
    side(&mut (0..order.middle).rev());
    side(&mut (order.middle + 1..m));
    Ok(out)
}

/// Values of a panel (k + next) × k and of a k × next block.
fn front_len(k: usize, next: usize) -> usize {
    (k + 2 * next) * k
}

/// One step away from the block whose S' = `s` is known: `front` ← panel [Sⱼⱼ; S of the next row], then S of the next
/// column, for the factors `b` of block j.
fn step<T: Scalar>(b: &Block<'_, T>, s: MatRef<'_, T>, front: &mut [T]) {
    let (k, next) = (b.k, b.next);
    let (panel, upper) = front.split_at_mut((k + next) * k);
    match k.max(next) {
        0..=4 => lines::dispatch::<T, _>(Small::<T, 4> { b, s, panel, upper }),
        5..=8 => lines::dispatch::<T, _>(Small::<T, 8> { b, s, panel, upper }),
        9..BLOCKED_FROM => lines::dispatch::<T, _>(Small::<T, BLOCKED_FROM> { b, s, panel, upper }),
        _ => step_blocked(b, s, panel, upper),
    }
    // … ·Pⱼ: the exchanges from the last to the first.
    for (r, &p) in b.pivots.iter().enumerate().rev() {
        if p as usize != r {
            let (left, right) = panel.split_at_mut(p as usize * (k + next));
            left[r * (k + next)..(r + 1) * (k + next)].swap_with_slice(&mut right[..k + next]);
        }
    }
}

fn step_blocked<T: Scalar>(b: &Block<'_, T>, s: MatRef<'_, T>, panel: &mut [T], upper: &mut [T]) {
    let (k, next) = (b.k, b.next);
    let factors = MatRef::from_column_major_slice(b.panel, k + next, k);
    let (lu, h) = (factors.subrows(0, k), factors.subrows(k, next));
    let g = MatRef::from_column_major_slice(b.g, k, next);
    let mut panel = MatMut::from_column_major_slice_mut(panel, k + next, k);
    let mut upper = MatMut::from_column_major_slice_mut(upper, k, next);
    let (mut diagonal, mut lower) = panel.as_mut().split_at_row_mut(k);
    // Sⱼ,ⱼ₊₁ ← −Ũ⁻¹·(G·S')
    matmul(upper.as_mut(), Accum::Replace, g, s, -one::<T>(), Par::Seq);
    solve_upper_triangular_in_place(lu, upper.as_mut(), Par::Seq);
    // Sⱼⱼ ← Ũ⁻¹ − Sⱼ,ⱼ₊₁·H
    diagonal.fill(zero());
    invert_upper_triangular(diagonal.as_mut(), lu, Par::Seq);
    matmul(diagonal.as_mut(), Accum::Add, upper.as_ref(), h, -one::<T>(), Par::Seq);
    // Sⱼ₊₁,ⱼ ← −S'·H
    matmul(lower.as_mut(), Accum::Replace, s, h, -one::<T>(), Par::Seq);
    // [Sⱼⱼ; Sⱼ₊₁,ⱼ] ← [Sⱼⱼ; Sⱼ₊₁,ⱼ]·L̃⁻¹, as L̃ᵀ·Yᵀ = Xᵀ
    solve_unit_upper_triangular_in_place(lu.transpose(), panel.transpose_mut(), Par::Seq);
}
