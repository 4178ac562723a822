//! How many eigenvalues of a Hermitian matrix are negative, zero and positive, without computing one.
//!
//! With S₁ = D₁ − σ·I and Sⱼ₊₁ = Dⱼ₊₁ − σ·I − Uⱼᴴ·Sⱼ⁻¹·Uⱼ, A − σ·I is congruent to diag(S₁, …, Sₘ), so that by Sylvester's
//! law the eigenvalues of A below σ are as many as the negative ones of all Sⱼ. Each Sⱼ is factored as L·B·Lᴴ with the
//! pivoting of Bunch and Kaufman, and the signs of the 1 × 1 and 2 × 2 blocks of B are counted.
//!
//! J. R. Bunch & L. Kaufman, Math. Comp. 31 (1977) 163–179, doi:10.1090/S0025-5718-1977-0428694-0; for tridiagonal
//! matrices the Sturm count of J. Demmel, I. Dhillon & H. Ren, ETNA 3 (1995) 116–149, §2, which is exact for a matrix whose
//! entries differ by a few units of rounding.
//!
//! **What rounding leaves of it.** The count is that of A + E. Sⱼ is formed with errors of some u·(|Sⱼ| + |V|·|B⁻¹V|) with V = L⁻¹·P·Uⱼ, large
//! where σ is near an eigenvalue of a leading part of A; 4·k·u times the largest of these sizes is returned as the
//! estimate of ‖E‖₂. [`Inertia`] counts below −δ and above δ with ‖E‖₂ ≤ δ, by Weyl's inequality so that what it calls negative or positive
//! is so; δ grows until this holds.
//!
//! Storage: three blocks. Cost: Σ ⅓kⱼ³ + kⱼ²kⱼ₊₁ + 2kⱼkⱼ₊₁² flops a count; an inertia takes two counts or a few more.

use bt_formats::{
    Band, BlockTridiagonal, Error, HybridLayout, Matrix, Monitor, Partition, Progress, RealScalar, Scalar, Tridiagonal,
    one, zero,
};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::lblt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::{FactorError, Result};
use crate::pivot::Pivot;
use crate::refine::unit_roundoff;

const METHOD: &str = "inertia";

/// Attempts at a δ before giving up; each at least doubles it.
const ATTEMPTS: usize = 12;

/// The signs of the eigenvalues of a Hermitian matrix.
///
/// ```
/// use bt_direct::Inertia;
/// use bt_formats::Tridiagonal;
/// // Eigenvalues 1 − √2, 1, 1 + √2; less 1: −√2, 0, √2.
/// let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![0.0; 3], vec![1.0, 1.0, 0.0])?;
/// let inertia = Inertia::of_tridiagonal(&a)?;
/// assert_eq!((inertia.negative, inertia.zero, inertia.positive), (1, 1, 1));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inertia {
    /// Eigenvalues that are negative whatever rounding did.
    pub negative: usize,
    /// Eigenvalues that rounding cannot tell from zero: |λ| ≤ 2·`tolerance`.
    pub zero: usize,
    /// Eigenvalues that are positive whatever rounding did.
    pub positive: usize,
    /// δ.
    pub tolerance: f64,
}

/// A count of eigenvalues below a shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Eigenvalues of A + E below the shift.
    pub below: usize,
    /// Estimate of ‖E‖₂: eigenvalues of A nearer to the shift may have been counted on either side.
    pub perturbation: f64,
}

impl Inertia {
    /// Of a Hermitian block-tridiagonal matrix.
    ///
    /// # Errors
    /// [`FactorError::Input`] for NaN and infinity and for a matrix that is not Hermitian (to 8u·max|A|), with the place;
    /// [`FactorError::Breakdown`] when rounding cannot tell ∛u·‖A‖₁ from zero.
    /// A block of zeros on the diagonal of an indefinite matrix costs half the digits: δ is then some √u·‖A‖₁.
    ///
    /// # Cost
    /// As two counts: Σ ⅔kⱼ³ + 2kⱼ²kⱼ₊₁ + 4kⱼkⱼ₊₁² flops; three blocks of memory.
    pub fn of_blocks<T: Scalar>(a: &BlockTridiagonal<T>) -> Result<Self> {
        Self::of_blocks_with_monitor(a, &mut ())
    }

    /// Like [`Inertia::of_blocks`], observed between blocks.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn of_blocks_with_monitor<T: Scalar>(a: &BlockTridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let norm = check_hermitian(a)?;
        let start = 8.0 * a.partition().min_max_size().1 as f64 * unit_roundoff::<T>() * norm;
        let mut work = CountBlocks::new(a)?;
        search::<T>(a.n(), norm, start, |shift| work.count(a, shift, monitor))
    }

    /// Of a Hermitian band matrix, as blocks of as many rows as its half-bandwidth.
    ///
    /// # Errors
    /// As [`Inertia::of_blocks`].
    #[inline(never)]
    pub fn of_band<T: Scalar>(a: &Band<T>) -> Result<Self> {
        let partition = Partition::uniform(a.n(), a.kl().max(a.ku()).max(1))?;
        Self::of_blocks(&BlockTridiagonal::from_csr(&a.to_csr()?, partition, HybridLayout::default())?)
    }

    /// Of a Hermitian tridiagonal matrix.
    ///
    /// # Errors
    /// [`FactorError::Input`] as [`Inertia::of_blocks`].
    ///
    /// # Cost
    /// 8n flops and 2n divisions.
    #[inline(never)]
    pub fn of_tridiagonal<T: Scalar>(a: &Tridiagonal<T>) -> Result<Self> {
        let norm = check_hermitian(a)?;
        search::<T>(a.diag().len(), norm, 16.0 * unit_roundoff::<T>() * norm, |shift| Ok(sturm(a, norm, shift)))
    }
}

/// How many eigenvalues of a Hermitian block-tridiagonal matrix lie below `shift`.
///
/// # Errors
/// [`FactorError::Input`] as [`Inertia::of_blocks`]; [`FactorError::Breakdown`] when the shift is so near an eigenvalue of a
/// leading part of A that half the digits are lost (another shift nearby will do).
///
/// ```
/// use bt_direct::eigenvalues_below;
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// // Eigenvalues 1 and 3.
/// let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0])?;
/// let a = BlockTridiagonal::from_csr(&a, Partition::uniform(2, 1)?, HybridLayout::default())?;
/// let count = |shift| eigenvalues_below(&a, shift).map(|c| c.below);
/// assert_eq!((count(0.5)?, count(2.5)?, count(3.5)?), (0, 1, 2));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[inline(never)]
pub fn eigenvalues_below<T: Scalar>(a: &BlockTridiagonal<T>, shift: f64) -> Result<Count> {
    let norm = check_hermitian(a)?;
    let count = CountBlocks::new(a)?.count(a, shift, &mut ())?;
    let limit = unit_roundoff::<T>().sqrt() * (norm + shift.abs());
    if count.perturbation > limit {
        let reason = format!(
            "the shift {shift:e} is too near an eigenvalue of a leading part of the matrix: rounding moves eigenvalues \
             by {:.1e}; use another shift",
            count.perturbation
        );
        return Err(FactorError::breakdown(METHOD, None, reason));
    }
    Ok(count)
}

/// Counts on both sides of zero, at a distance δ that rounding respects.
fn search<T: Scalar>(n: usize, norm: f64, start: f64, mut count: impl FnMut(f64) -> Result<Count>) -> Result<Inertia> {
    if norm == 0.0 {
        return Ok(Inertia { negative: 0, zero: n, positive: 0, tolerance: 0.0 });
    }
    let mut delta = start.max(f64::MIN_POSITIVE);
    for _ in 0..ATTEMPTS {
        let (low, high) = (count(-delta)?, count(delta)?);
        let perturbation = low.perturbation.max_nan(high.perturbation);
        if perturbation <= delta && low.below <= high.below {
            return Ok(Inertia {
                negative: low.below,
                zero: high.below - low.below,
                positive: n - high.below,
                tolerance: delta,
            });
        }
        // Odd factors, lest the shift follow an eigenvalue that is a multiple of the last.
        let wanted = if perturbation.is_finite() { 1.375 * perturbation } else { 0.0 };
        delta = wanted.clamp(2.125 * delta, 64.0 * delta);
        if delta > unit_roundoff::<T>().cbrt() * norm {
            break;
        }
    }
    let reason = format!(
        "rounding cannot tell the eigenvalues within {delta:.1e} from zero: leading parts of the matrix are nearly singular; \
         count with eigenvalues_below at shifts of that size"
    );
    Err(FactorError::breakdown(METHOD, None, reason))
}

/// The blocks that a count needs.
struct CountBlocks<T: Scalar> {
    s: Mat<T>,
    v: Mat<T>,
    x: Mat<T>,
    subdiagonal: Mat<T>,
    permutation: [Vec<usize>; 2],
    memory: MemBuffer,
}

impl<T: Scalar> CountBlocks<T> {
    fn new(a: &BlockTridiagonal<T>) -> Result<Self> {
        let k = a.partition().min_max_size().1;
        let scratch = cholesky_in_place_scratch::<usize, T>(k, Par::Seq, faer::prelude::default());
        let memory = MemBuffer::try_new(scratch).map_err(|_| Error::TooLarge {
            what: "inertia",
            needed: format!("blocks of {k} rows"),
            limit: "the memory there is".into(),
        })?;
        let square = || Mat::zeros(k, k);
        Ok(Self {
            s: square(),
            v: square(),
            x: square(),
            subdiagonal: Mat::zeros(k, 1),
            permutation: [vec![0; k], vec![0; k]],
            memory,
        })
    }

    fn count(&mut self, a: &BlockTridiagonal<T>, shift: f64, monitor: &mut dyn Monitor) -> Result<Count> {
        let p = a.partition();
        let m = p.n_blocks();
        let sigma = T::rounded(shift, 0.0);
        let Self { s, v, x, subdiagonal, permutation, memory } = self;
        let (mut below, mut size) = (0, 0.0f64);
        for j in 0..m {
            if monitor.observe(Progress::Step { phase: "inertia", done: j, total: m }).is_break() {
                return Err(FactorError::Stopped);
            }
            let k = p.size(j);
            let mut sj = s.as_mut().submatrix_mut(0, 0, k, k);
            a.copy_diagonal_block(j, sj.as_mut());
            for i in 0..k {
                sj[(i, i)] -= sigma;
            }
            if j > 0 {
                // Sⱼ ← Dⱼ − σ·I − Vᴴ·B⁻¹·V
                let last = p.size(j - 1);
                let (v, x) = (v.as_ref().submatrix(0, 0, last, k), x.as_ref().submatrix(0, 0, last, k));
                matmul(sj.as_mut(), Accum::Add, v.adjoint(), x, -one::<T>(), Par::Seq);
            }
            size = size.max_nan(largest(sj.as_ref()));
            if !size.is_finite() {
                break;
            }
            let mut sub = subdiagonal.as_mut().subrows_mut(0, k).col_mut(0);
            let [forward, inverse] = &mut *permutation;
            cholesky_in_place(
                sj.as_mut(),
                sub.as_mut().as_diagonal_mut(),
                &mut forward[..k],
                &mut inverse[..k],
                Par::Seq,
                MemStack::new(memory),
                faer::prelude::default(),
            );
            below += negative_pivots(sj.as_ref(), |i| sub[i]);
            if j + 1 < m {
                // V ← L⁻¹·P·Uⱼ;  X ← B⁻¹·V
                let next = p.size(j + 1);
                let mut xj = x.as_mut().submatrix_mut(0, 0, k, next);
                a.copy_upper_block(j, xj.as_mut());
                let mut vj = v.as_mut().submatrix_mut(0, 0, k, next);
                for c in 0..next {
                    for (i, &from) in forward[..k].iter().enumerate() {
                        vj[(i, c)] = xj[(from, c)];
                    }
                }
                solve_unit_lower_triangular_in_place(sj.as_ref(), vj.as_mut(), Par::Seq);
                divide(sj.as_ref(), |i| sub[i], vj.as_ref(), xj.as_mut());
                size = size.max_nan(largest(vj.as_ref()) * largest(xj.as_ref()));
            }
        }
        let k = p.min_max_size().1 as f64;
        let perturbation = 4.0 * k * unit_roundoff::<T>() * size;
        Ok(Count { below, perturbation: if perturbation.is_nan() { f64::INFINITY } else { perturbation } })
    }
}

/// Negative eigenvalues of the block-diagonal B: its diagonal in `s`, what lies below in `sub`.
fn negative_pivots<T: Scalar>(s: MatRef<'_, T>, sub: impl Fn(usize) -> T) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < s.nrows() {
        let d = s[(i, i)].re().to_f64();
        let below = sub(i).abs().to_f64();
        if i + 1 < s.nrows() && below != 0.0 {
            // λ₁·λ₂ = d·e − |b|², in units of |b|.
            let e = s[(i + 1, i + 1)].re().to_f64();
            let determinant = (d / below) * (e / below) - 1.0;
            count += if determinant < 0.0 { 1 } else { 2 * usize::from(d < 0.0) };
            i += 2;
        } else {
            count += usize::from(d < 0.0);
            i += 1;
        }
    }
    count
}

/// X ← B⁻¹·V for the block-diagonal B: its diagonal in `s`, what lies below in `sub`.
fn divide<T: Scalar>(s: MatRef<'_, T>, sub: impl Fn(usize) -> T, v: MatRef<'_, T>, mut x: MatMut<'_, T>) {
    let mut i = 0;
    while i < s.nrows() {
        let modulus = sub(i).abs();
        if i + 1 < s.nrows() && modulus != zero() {
            // B = |b|·[α conj(β); β γ] with |β| = 1, so that B⁻¹ = [γ −conj(β); −β α]/(|b|·(αγ − 1)).
            let beta = sub(i) / T::from_real(modulus);
            let (alpha, gamma) = (s[(i, i)].re() / modulus, s[(i + 1, i + 1)].re() / modulus);
            let determinant = T::from_real(alpha * gamma - one::<T::Real>());
            let (alpha, gamma) = (T::from_real(alpha), T::from_real(gamma));
            for c in 0..v.ncols() {
                let (v0, v1) = (v[(i, c)] / T::from_real(modulus), v[(i + 1, c)] / T::from_real(modulus));
                x[(i, c)] = (gamma * v0 - Scalar::conj(beta) * v1) / determinant;
                x[(i + 1, c)] = (alpha * v1 - beta * v0) / determinant;
            }
            i += 2;
        } else {
            let d = Pivot::new(T::from_real(s[(i, i)].re()));
            for c in 0..v.ncols() {
                x[(i, c)] = d.divide(v[(i, c)]);
            }
            i += 1;
        }
    }
}

fn largest<T: Scalar>(m: MatRef<'_, T>) -> f64 {
    let mut max = 0.0f64;
    for j in 0..m.ncols() {
        for i in 0..m.nrows() {
            max = max.max_nan(m[(i, j)].abs1().to_f64());
        }
    }
    max
}

/// dᵢ = (aᵢ − σ) − |bᵢ₋₁|²/dᵢ₋₁, all in units of ‖A‖₁; a pivot of zero counts as a tiny negative one.
fn sturm<T: Scalar>(a: &Tridiagonal<T>, norm: f64, shift: f64) -> Count {
    let (mut below, mut d) = (0, 1.0f64);
    for (i, (diag, lower)) in a.diag().iter().zip(a.lower()).enumerate() {
        let b = if i == 0 { 0.0 } else { lower.abs().to_f64() / norm };
        let coupling = if b == 0.0 { 0.0 } else { b * (b / d) };
        d = diag.re().to_f64() / norm - shift / norm - coupling;
        if d.abs() < f64::MIN_POSITIVE {
            d = -f64::MIN_POSITIVE;
        }
        below += usize::from(d < 0.0);
    }
    Count { below, perturbation: 8.0 * f64::EPSILON / 2.0 * (norm + shift.abs()) }
}

/// ‖A‖₁ of a Hermitian A; where it is not finite or not Hermitian otherwise.
fn check_hermitian<T: Scalar, A: Matrix<T> + ?Sized>(a: &A) -> Result<f64> {
    let n = a.nrows();
    let mut not_finite = None;
    let mut max = 0.0f64;
    let mut sums = vec![0.0f64; n];
    a.for_each_entry(&mut |row, col, v| {
        if !Scalar::is_finite(v) && not_finite.is_none() {
            not_finite = Some(Error::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
        max = max.max(v.abs1().to_f64());
        sums[col] += v.abs().to_f64();
    });
    if let Some(e) = not_finite {
        return Err(e.into());
    }
    // Entries (row, col) above the diagonal in row order meet those of the mirror image in a second visit.
    let mut upper: Vec<(u32, u32, T)> = Vec::new();
    let mut lower: Vec<(u32, u32, T)> = Vec::new();
    let mut wrong: Option<(usize, usize)> = None;
    let noise = 8.0 * unit_roundoff::<T>() * max;
    a.for_each_entry(&mut |i, j, v| {
        if i < j {
            upper.push((i as u32, j as u32, v));
        } else if i > j {
            lower.push((j as u32, i as u32, Scalar::conj(v)));
        } else if v.im().to_f64().abs() > noise {
            wrong = wrong.or(Some((i, j)));
        }
    });
    lower.sort_unstable_by_key(|&(i, j, _)| (i, j));
    let (mut u, mut l) = (upper.iter().peekable(), lower.iter().peekable());
    while wrong.is_none() {
        // Places that only one side stores hold zero on the other.
        let key = |e: Option<&&(u32, u32, T)>| e.map_or((u32::MAX, u32::MAX), |e| (e.0, e.1));
        let (ku, kl) = (key(u.peek()), key(l.peek()));
        let at = ku.min(kl);
        if at == (u32::MAX, u32::MAX) {
            break;
        }
        let up = u.next_if(|e| (e.0, e.1) == at).map_or(zero(), |e| e.2);
        let low = l.next_if(|e| (e.0, e.1) == at).map_or(zero(), |e| e.2);
        if (up - low).abs1().to_f64() > noise {
            wrong = Some((at.0 as usize, at.1 as usize));
        }
    }
    if let Some((row, col)) = wrong {
        let why = "is not the conjugate of its mirror image: the matrix is not Hermitian".into();
        return Err(Error::OutsideStructure { row, col, why }.into());
    }
    Ok(sums.into_iter().fold(0.0, f64::max))
}
