//! Block SSOR-AI of order 2: [`SsorAi`](crate::SsorAi) with k × k blocks in place of entries, k unknowns at a node of a mesh.
//!
//! For Hermitian A = L + D + Lᴴ, D its k × k diagonal blocks and L the blocks below them, D̄ = D/ω and N = L·D̄⁻¹:
//!
//! ```text
//! z = (2−ω)·(I − Nᴴ + (Nᴴ)²)·D̄⁻¹·(I − N + N²)·r
//! ```
//!
//! It is Hermitian positive definite for every ω when the diagonal blocks are, as those of a definite A. They are inverted by
//! L·D·Lᴴ without square roots, so that powers of two in units leave all bits alone.
//!
//! R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025, name order 2 and block
//! compressed rows as future work. With k = 1 it is their formula.
//!
//! Storage: N, Nᴴ and D̄⁻¹ in block compressed rows, n of work. Cost: twice 2 flops a place of the blocks outside the diagonal, 2k·n for
//! D̄⁻¹; setup O(k) a place.

use std::cmp::Ordering;

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Bcsr, Csr, Error, LinearOperator, Matrix, Op, Par, RealScalar, Scalar, memory, one, zero};

use crate::blas1::{over, zeros};
use crate::hermitian::{check_omega, check_positive, relaxed_inverse};
use crate::incomplete_lu::{check_refactor, outside_pattern};
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

const NAME: &str = "block-ssor-ai2";
/// Rows of the largest block of a [`Bcsr`].
const LARGEST: usize = 6;

/// Pivots of a diagonal block below so many roundings of its diagonal entry, for each of its rows, are what rounding left of them.
const CANCELLED: f64 = 4.0;

/// The preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{BlockSsorAi, Preconditioner};
/// let a = [[2.0, 1.0, -1.0, 0.0], [1.0, 2.0, 0.0, -1.0], [-1.0, 0.0, 2.0, 1.0], [0.0, -1.0, 1.0, 2.0]];
/// let a = Csr::from_dense(faer::Mat::from_fn(4, 4, |i, j| a[i][j]).as_ref())?;
/// // D⁻¹ = [2 −1; −1 2]/3, N has −D⁻¹ in block (1, 0), N² = 0: M⁻¹ = [D⁻¹ + D⁻³ D⁻²; D⁻² D⁻¹].
/// let mut z = [0.0; 4];
/// BlockSsorAi::new(&a, 2)?.apply(&[27.0, 0.0, 0.0, 0.0], &mut z);
/// assert!(z.iter().zip([32.0f64, -22.0, 15.0, -12.0]).all(|(z, exact)| (exact - z).abs() < 1e-13));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockSsorAi<T> {
    omega: f64,
    /// N
    lower: Bcsr<T>,
    /// D̄⁻¹
    inverses: Bcsr<T>,
    /// Nᴴ
    upper: Bcsr<T>,
    work: Vec<T>,
    /// The last refactorisation failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> BlockSsorAi<T> {
    /// Like [`BlockSsorAi::with_options`], with ω = 1.
    ///
    /// # Errors
    /// As [`BlockSsorAi::with_options`].
    pub fn new(a: &Csr<T>, block_size: usize) -> Result<Self> {
        Self::with_options(a, block_size, 1.0)
    }

    /// For `a` Hermitian with definite diagonal blocks of `block_size` rows, 1 … 6, such as [`bt_formats::detect::block_size`] finds.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square, not finite or not Hermitian, the block size is not 1 … 6 or does not divide n, ω is
    /// not between 0 and 2, or there is no memory for the blocks; [`FactorError::Breakdown`] naming a row whose diagonal entry or pivot
    /// in its block is not positive, or whose elements overflow.
    ///
    /// # Cost
    /// O(nnz + k·places of the blocks).
    #[inline(never)]
    pub fn with_options(a: &Csr<T>, block_size: usize, omega: f64) -> Result<Self> {
        check_omega(omega)?;
        a.check_square()?;
        let pattern = Bcsr::from_csr(a, block_size)?;
        let bytes = pattern.bytes() + (block_size + 1) * size_of::<T>() * a.nrows();
        memory::ask(bytes as u64, NAME)?;
        let part = |keep| part(&pattern, keep);
        let [lower, inverses, upper] = [part(Ordering::Less)?, part(Ordering::Equal)?, part(Ordering::Greater)?];
        let mut m = Self { omega, lower, inverses, upper, work: zeros(a.nrows()), failed: false };
        m.fill(a)?;
        Ok(m)
    }

    /// Rows of a block.
    pub fn block_size(&self) -> usize {
        self.lower.block_size()
    }

    /// N, D̄⁻¹ and Nᴴ: all that an application reads.
    pub fn parts(&self) -> [&Bcsr<T>; 3] {
        [&self.lower, &self.inverses, &self.upper]
    }

    /// The three of them from A.
    fn fill(&mut self, a: &Csr<T>) -> Result<()> {
        check_positive(a, NAME)?;
        let k = self.block_size();
        let Self { omega, lower, inverses, upper, .. } = self;
        for i in 0..a.nrows() / k {
            let parts = [lower.block_row_mut(i), inverses.block_row_mut(i), upper.block_row_mut(i)];
            spread_blocks(a, i, k, parts)?;
        }
        // D̄⁻¹ = ω·D⁻¹
        for (i, block) in inverses.values_mut().chunks_exact_mut(k * k).enumerate() {
            invert(block, k, *omega, i * k)?;
        }
        let inverse = |i: usize| inverses.block_row(i).1;
        for i in 0..a.nrows() / k {
            // N = L·D̄⁻¹, Nᴴ = D̄⁻¹·Lᴴ
            let (cols, values) = lower.block_row_mut(i);
            for (&j, block) in cols.iter().zip(values.chunks_exact_mut(k * k)) {
                multiply(k, &copy(block), inverse(j as usize), block);
            }
            for block in upper.block_row_mut(i).1.chunks_exact_mut(k * k) {
                multiply(k, inverse(i), &copy(block), block);
            }
        }
        [&*inverses, lower, upper].into_iter().try_for_each(check_range)
    }
}

/// The blocks of a pattern whose columns are so to their rows, or all of the diagonal, with zeros.
fn part<T: Scalar>(pattern: &Bcsr<T>, side: Ordering) -> Result<Bcsr<T>> {
    let (n, k) = (pattern.nrows(), pattern.block_size());
    let (mut ptr, mut idx) = (vec![0], Vec::new());
    for i in 0..n / k {
        match side {
            Ordering::Equal => idx.push(i as u32),
            _ => idx.extend(pattern.block_row(i).0.iter().filter(|j| (**j as usize).cmp(&i) == side)),
        }
        ptr.push(idx.len() as u32);
    }
    let values = zeros(idx.len() * k * k);
    Ok(Bcsr::new(n, n, k, ptr, idx, values)?)
}

/// Block row i of A to the places of its blocks below, on and above the diagonal.
///
/// # Errors
/// [`FactorError::Input`] naming an entry whose block is not there.
fn spread_blocks<T: Scalar>(a: &Csr<T>, i: usize, k: usize, mut parts: [(&[u32], &mut [T]); 3]) -> Result<()> {
    for (_, values) in &mut parts {
        values.fill(zero());
    }
    for row in i * k..(i + 1) * k {
        let (cols, vals) = a.row(row);
        for (&j, &v) in cols.iter().zip(vals) {
            let block = j as usize / k;
            let (cols, values) = &mut parts[match block.cmp(&i) {
                Ordering::Less => 0,
                Ordering::Equal => 1,
                Ordering::Greater => 2,
            }];
            let place = cols.binary_search(&(block as u32)).map_err(|_| outside_pattern(row, j))?;
            values[(place * k + j as usize % k) * k + row % k] = v;
        }
    }
    Ok(())
}

/// A copy of a block, so that a product may replace it.
fn copy<T: Scalar>(block: &[T]) -> [T; LARGEST * LARGEST] {
    let mut out = [zero(); LARGEST * LARGEST];
    out[..block.len()].copy_from_slice(block);
    out
}

/// out ← X·Y for k × k blocks by columns.
fn multiply<T: Scalar>(k: usize, x: &[T], y: &[T], out: &mut [T]) {
    for c in 0..k {
        for r in 0..k {
            out[c * k + r] = (0..k).map(|t| x[t * k + r] * y[c * k + t]).sum();
        }
    }
}

/// D ← ω·D⁻¹ for a Hermitian positive definite k × k block by columns, whose lower triangle is read; `first` is its first row in A.
///
/// # Errors
/// [`FactorError::Breakdown`] naming the row of a pivot that is not positive beyond rounding, or whose reciprocal overflows.
fn invert<T: Scalar>(d: &mut [T], k: usize, omega: f64, first: usize) -> Result<()> {
    let cancelled = CANCELLED * k as f64 * T::Real::EPSILON.to_f64();
    let mut l = [[zero::<T>(); LARGEST]; LARGEST];
    let mut scaled = l;
    let mut inverses = [zero::<T>(); LARGEST];
    // D = L·E·Lᴴ, column by column: `scaled` is L·E.
    for j in 0..k {
        let row = first + j;
        let left = |i: usize| d[j * k + i] - (0..j).map(|t| scaled[i][t] * Scalar::conj(l[j][t])).sum::<T>();
        let pivot = left(j).re();
        if !(pivot.to_f64() > cancelled * d[j * k + j].re().to_f64()) {
            let reason = format!(
                "the pivot {pivot} of row {row} (from 0) in its diagonal block is not positive beyond rounding: A is not \
                 definite, or nearly singular in this block; use ssor-ai2"
            );
            return Err(FactorError::breakdown(NAME, Place::Row(row), reason));
        }
        inverses[j] = relaxed_inverse(omega, pivot, row, NAME)?;
        let column: [T; LARGEST] = std::array::from_fn(|i| if (j + 1..k).contains(&i) { left(i) } else { zero() });
        for i in j + 1..k {
            (scaled[i][j], l[i][j]) = (column[i], over(column[i], pivot));
        }
    }
    // W = L⁻¹
    let mut w = [[zero::<T>(); LARGEST]; LARGEST];
    for c in 0..k {
        w[c][c] = one();
        for r in c + 1..k {
            w[r][c] = -(c..r).map(|t| l[r][t] * w[t][c]).sum::<T>();
        }
    }
    // ω·D⁻¹ = Wᴴ·(ω·E⁻¹)·W
    for c in 0..k {
        for r in c..k {
            let v = (r..k).map(|t| Scalar::conj(w[t][r]) * inverses[t] * w[t][c]).sum::<T>();
            (d[c * k + r], d[r * k + c]) =
                if r == c { (T::from_real(v.re()), T::from_real(v.re())) } else { (v, Scalar::conj(v)) };
        }
    }
    Ok(())
}

/// # Errors
/// [`FactorError::Breakdown`] naming a row with an element that has overflowed.
fn check_range<T: Scalar>(part: &Bcsr<T>) -> Result<()> {
    part.check_finite().map_err(|error| {
        let row = if let Error::NonFinite { row, .. } = error { Some(Place::Row(row)) } else { None };
        let reason = "elements of D⁻¹ or of L·D⁻¹ overflow; multiply A and b by a power of two, or use ssor-ai2";
        FactorError::breakdown(NAME, row, reason)
    })
}

impl<T: Scalar> Refactor<T> for BlockSsorAi<T> {
    /// Keeps the blocks, of which A may have less but not more.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.work.len(), a)?;
        self.fill(a)?;
        self.failed = false;
        Ok(())
    }
}

/// y ← α·A·x + β·y
fn product<T: Scalar>(a: &Bcsr<T>, alpha: T, x: &[T], beta: T, y: &mut [T]) {
    a.apply_op(Op::Identity, alpha, x, beta, y, Par::auto(a.bytes()));
}

impl<T: Scalar> Preconditioner<T> for BlockSsorAi<T> {
    fn n(&self) -> usize {
        self.work.len()
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Spd
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.work.len(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        let Self { omega, lower, inverses, upper, work: y, .. } = self;
        // y ← (I − N)·r;  z ← r − N·y
        y.copy_from_slice(r);
        product(lower, -one::<T>(), r, one(), y);
        z.copy_from_slice(r);
        product(lower, -one::<T>(), y, one(), z);
        // y ← (2−ω)·D̄⁻¹·z
        product(inverses, T::rounded(2.0 - *omega, 0.0), z, zero(), y);
        // z ← (I − Nᴴ)·y;  y ← y − Nᴴ·z
        z.copy_from_slice(y);
        product(upper, -one::<T>(), y, one(), z);
        product(upper, -one::<T>(), z, one(), y);
        z.copy_from_slice(y);
    }
    fn nnz(&self) -> usize {
        self.parts().map(Matrix::nnz).into_iter().sum()
    }
    fn bytes(&self) -> usize {
        self.parts().map(Matrix::bytes).into_iter().sum::<usize>() + size_of_val(&*self.work)
    }
}
