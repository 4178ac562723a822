//! SSOR-AI: an approximate inverse by products alone, from the Neumann series of the SSOR factors.
//!
//! For Hermitian A = L + D + Lᴴ with a positive diagonal, D̄ = D/ω and N = L·D̄⁻¹, the inverse of the SSOR factor is
//! K⁻¹ = √(2−ω)·D̄^(−1/2)·(I + N)⁻¹, and N is nilpotent. The series cut off:
//!
//! ```text
//! order 1   K̄  = √(2−ω)·D̄^(−1/2)·(I − N)            z = K̄ᴴ·(K̄·r) = (2−ω)·(I − Nᴴ)·D̄⁻¹·(I − N)·r
//! order 2   K̄₂ = √(2−ω)·D̄^(−1/2)·(I − N + N²)        likewise
//! ip        M⁻¹ = (I − L·D⁻¹)·(I − D⁻¹·Lᴴ)            ω = 1 up to the scaling by D
//! ```
//!
//! M⁻¹ is Hermitian positive definite for every ω, and needs no triangular solves: two products with a triangle of A, four
//! for order 2.
//!
//! R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025, where order 2 is
//! future work and a_ji is printed for a_jj in the entries of K̄; ip: M. Ament, G. Knittel, D. Weiskopf, W. Straßer, PDP
//! 2010, doi:10.1109/PDP.2010.51.
//!
//! Storage: N and Nᴴ in compressed rows, 2n of diagonals and work; matrix-free only the 2n. Cost: 2 flops an entry of A, twice
//! for order 2.

use bt_direct::Result;
use bt_formats::{Csr, Error, LinearOperator, Matrix, Op, Par, Scalar, one, zero};
use rayon::prelude::*;

use crate::hermitian::{check_omega, check_positive, relaxed_inverse};
use crate::incomplete_lu::{check_refactor, spread};
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// Where the series ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// I − N.
    First,
    /// I − N + N².
    Second,
    /// (I − L·D⁻¹)·(I − D⁻¹·Lᴴ), the incomplete Poisson preconditioner: ω = 1 whatever is given.
    IncompletePoisson,
}

/// Where the triangles are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangles {
    /// N and Nᴴ are stored.
    Stored,
    /// L and Lᴴ are read from A at every product.
    OfMatrix,
}

#[derive(Debug)]
enum Factors<'a, T> {
    /// N and Nᴴ.
    Stored(Box<[Csr<T>; 2]>),
    OfMatrix(&'a Csr<T>),
}

/// The preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{Preconditioner, Series, SsorAi, Triangles};
/// let a = Csr::from_dense(faer::mat![[2.0, -1.0], [-1.0, 2.0]].as_ref())?;
/// // N = [0 0; −1/2 0]: M⁻¹ = (I − Nᵀ)·D⁻¹·(I − N) = [5/8 1/4; 1/4 1/2]
/// let mut z = [0.0; 2];
/// SsorAi::with_options(&a, 1.0, Series::First, Triangles::OfMatrix)?.apply(&[8.0, 0.0], &mut z);
/// assert_eq!(z, [5.0, 2.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct SsorAi<'a, T: Scalar> {
    series: Series,
    omega: f64,
    /// D̄⁻¹
    inverses: Vec<T>,
    factors: Factors<'a, T>,
    work: Vec<T>,
    /// The last refactorisation failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> SsorAi<'static, T> {
    /// Like [`SsorAi::stored`], with ω = 1 and [`Series::First`].
    ///
    /// # Errors
    /// As [`SsorAi::with_options`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::stored(a, 1.0, Series::First)
    }

    /// [`SsorAi::with_options`] with [`Triangles::Stored`], which reads nothing of `a` later.
    ///
    /// # Errors
    /// As [`SsorAi::with_options`].
    pub fn stored(a: &Csr<T>, omega: f64, series: Series) -> Result<Self> {
        Self::on(a, omega, series, || {
            Ok(Factors::Stored(Box::new([triangle(a, Triangle::Lower)?, triangle(a, Triangle::Upper)?])))
        })
    }
}

impl<'a, T: Scalar> SsorAi<'a, T> {
    /// For `a` Hermitian with a positive diagonal.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Input`] when A is not square, not finite or not Hermitian, or ω is not between 0 and 2;
    /// [`bt_direct::FactorError::Breakdown`] naming a row whose diagonal entry is not positive.
    ///
    /// # Cost
    /// O(nnz).
    #[inline(never)]
    pub fn with_options(a: &'a Csr<T>, omega: f64, series: Series, triangles: Triangles) -> Result<Self> {
        match triangles {
            Triangles::OfMatrix => Self::on(a, omega, series, || Ok(Factors::OfMatrix(a))),
            Triangles::Stored => SsorAi::stored(a, omega, series),
        }
    }

    fn on(a: &Csr<T>, omega: f64, series: Series, factors: impl FnOnce() -> Result<Factors<'a, T>>) -> Result<Self> {
        check_omega(omega)?;
        a.check_square()?;
        let omega = if series == Series::IncompletePoisson { 1.0 } else { omega };
        let vector = || vec![zero(); a.nrows()];
        let factors = factors()?;
        let mut m = Self { series, omega, inverses: vector(), factors, work: vector(), failed: false };
        m.fill(a)?;
        Ok(m)
    }

    /// D̄⁻¹ and stored triangles from A.
    fn fill(&mut self, a: &Csr<T>) -> Result<()> {
        check_positive(a, "ssor-ai")?;
        for (i, inverse) in self.inverses.iter_mut().enumerate() {
            *inverse = relaxed_inverse(self.omega, a.get(i, i).re(), i, "ssor-ai")?;
        }
        let Factors::Stored(triangles) = &mut self.factors else { return Ok(()) };
        let [lower, upper] = &mut **triangles;
        for i in 0..a.nrows() {
            for (side, triangle) in [(Triangle::Lower, &mut *lower), (Triangle::Upper, &mut *upper)] {
                // N = L·D̄⁻¹, Nᴴ = D̄⁻¹·Lᴴ
                let scaled = side.of_row(a, i).map(|(j, v)| (j, v * self.inverses[i.min(j as usize)]));
                spread(i, scaled, triangle.row_mut(i))?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Triangle {
    Lower,
    Upper,
}

impl Triangle {
    /// Columns and values of row i of A on this side of the diagonal.
    fn of_row<T: Scalar>(self, a: &Csr<T>, i: usize) -> impl Iterator<Item = (u32, T)> {
        let (cols, vals) = a.row(i);
        let range = match self {
            Self::Lower => 0..cols.partition_point(|&j| (j as usize) < i),
            Self::Upper => cols.partition_point(|&j| j as usize <= i)..cols.len(),
        };
        cols[range.clone()].iter().copied().zip(vals[range].iter().copied())
    }
}

/// The strict triangle of A.
fn triangle<T: Scalar>(a: &Csr<T>, side: Triangle) -> Result<Csr<T>> {
    let n = a.nrows();
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for (j, v) in side.of_row(a, i) {
            idx.push(j);
            val.push(v);
        }
        ptr.push(idx.len() as u32);
    }
    Ok(Csr::new(n, n, ptr, idx, val)?)
}

impl<T: Scalar> Refactor<T> for SsorAi<'_, T> {
    /// Stored triangles keep their pattern, of which A may have less but not more. One that reads the triangles of its matrix
    /// refuses: a new one costs as little.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.inverses.len(), a)?;
        if let Factors::OfMatrix(_) = self.factors {
            let why = "ssor-ai-free reads the matrix it was made for: make a new one".into();
            return Err(Error::InvalidStructure { what: "matrix for refactorisation", why }.into());
        }
        self.fill(a)?;
        self.failed = false;
        Ok(())
    }
}

impl<T: Scalar> Factors<'_, T> {
    /// y ← y − N·x
    fn subtract_lower(&self, inverses: &[T], x: &[T], y: &mut [T]) {
        match self {
            Self::Stored(triangles) => subtract(&triangles[0], x, y),
            Self::OfMatrix(a) => by_rows(a, y, |i, cols, vals| {
                let strict = cols.partition_point(|&j| (j as usize) < i);
                let terms = cols[..strict].iter().zip(&vals[..strict]);
                terms.map(|(&j, &v)| v * inverses[j as usize] * x[j as usize]).sum()
            }),
        }
    }
    /// y ← y − Nᴴ·x
    fn subtract_upper(&self, inverses: &[T], x: &[T], y: &mut [T]) {
        match self {
            Self::Stored(triangles) => subtract(&triangles[1], x, y),
            Self::OfMatrix(a) => by_rows(a, y, |i, cols, vals| {
                let strict = cols.partition_point(|&j| j as usize <= i);
                let terms = cols[strict..].iter().zip(&vals[strict..]);
                inverses[i] * terms.map(|(&j, &v)| v * x[j as usize]).sum::<T>()
            }),
        }
    }
}

fn subtract<T: Scalar>(a: &Csr<T>, x: &[T], y: &mut [T]) {
    a.apply_op(Op::Identity, -one::<T>(), x, one(), y, Par::auto(a.bytes()));
}

/// yᵢ ← yᵢ − sum(i, row i of A), rows in parallel where that is worth it.
fn by_rows<T: Scalar>(a: &Csr<T>, y: &mut [T], sum: impl Fn(usize, &[u32], &[T]) -> T + Sync) {
    const ROWS: usize = 4096;
    let rows = |(chunk, y): (usize, &mut [T])| {
        for (i, y) in (chunk * ROWS..).zip(y) {
            let (cols, vals) = a.row(i);
            *y -= sum(i, cols, vals);
        }
    };
    match Par::auto(a.bytes()) {
        Par::Seq => y.chunks_mut(ROWS).enumerate().for_each(rows),
        Par::Rayon => y.par_chunks_mut(ROWS).enumerate().for_each(rows),
    }
}

impl<T: Scalar> Preconditioner<T> for SsorAi<'_, T> {
    fn n(&self) -> usize {
        self.inverses.len()
    }
    fn name(&self) -> &'static str {
        match (self.series, &self.factors) {
            (Series::First, Factors::Stored(_)) => "ssor-ai",
            (Series::First, Factors::OfMatrix(_)) => "ssor-ai-free",
            (Series::Second, _) => "ssor-ai2",
            (Series::IncompletePoisson, _) => "ip",
        }
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Spd
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.inverses.len(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        let Self { series, omega, inverses, factors, work: y, .. } = self;
        if *series == Series::IncompletePoisson {
            // y ← (I − Nᴴ)·r;  z ← (I − N)·y
            y.copy_from_slice(r);
            factors.subtract_upper(inverses, r, y);
            z.copy_from_slice(y);
            factors.subtract_lower(inverses, y, z);
            return;
        }
        // y ← (I − N)·r, of order 2 (I − N·(I − N))·r
        y.copy_from_slice(r);
        factors.subtract_lower(inverses, r, y);
        if *series == Series::Second {
            z.copy_from_slice(r);
            factors.subtract_lower(inverses, y, z);
            y.copy_from_slice(z);
        }
        // y ← (2−ω)·D̄⁻¹·y
        let scale = T::rounded(2.0 - *omega, 0.0);
        y.iter_mut().zip(inverses.iter()).for_each(|(y, d)| *y *= scale * *d);
        // z ← (I − Nᴴ)·y, of order 2 (I − Nᴴ·(I − Nᴴ))·y
        z.copy_from_slice(y);
        factors.subtract_upper(inverses, y, z);
        if *series == Series::Second {
            // With w = (I − Nᴴ)·y in z: y − Nᴴ·w
            factors.subtract_upper(inverses, z, y);
            z.copy_from_slice(y);
        }
    }
    fn nnz(&self) -> usize {
        let triangles = match &self.factors {
            Factors::Stored(triangles) => triangles.iter().map(Matrix::nnz).sum(),
            Factors::OfMatrix(_) => 0,
        };
        triangles + self.inverses.len()
    }
    fn bytes(&self) -> usize {
        let triangles = match &self.factors {
            Factors::Stored(triangles) => triangles.iter().map(Matrix::bytes).sum(),
            Factors::OfMatrix(_) => 0,
        };
        triangles + size_of_val(&*self.inverses) + size_of_val(&*self.work)
    }
}
