//! Additive Schwarz: overlapping subdomains, each with a solver of its own, all in parallel.
//!
//! The rows are cut into parts; part i grows by δ layers of neighbours in the graph of A to Ωᵢ. With Rᵢ the restriction to Ωᵢ
//! and Mᵢ ≈ Aᵢ = Rᵢ·A·Rᵢᵀ:
//!
//! ```text
//! additive     M⁻¹ = Σ Rᵢᵀ·Mᵢ⁻¹·Rᵢ       Hermitian where the Mᵢ are
//! restricted   M⁻¹ = Σ R̃ᵢᵀ·Mᵢ⁻¹·Rᵢ       R̃ᵢ keeps the rows of the part itself: fewer iterations, for general methods
//! ```
//!
//! Each Aᵢ is given to its solver in units of a power of two near the largest entry of the rows of Ωᵢ, as far as no other leaves the
//! range, so that the unit of A decides nothing where a row of Aᵢ is empty.
//!
//! δ = 0 is block Jacobi. M. Dryja, O. B. Widlund, Tech. Rep. 339, Courant Institute, 1987; restricted: X.-C. Cai, M. Sarkis,
//! SIAM J. Sci. Comput. 21 (1999) 792–797, doi:10.1137/S106482759732678X.
//!
//! Storage: the local solvers, and 4 + 2s bytes a row of every Ωᵢ. Cost: the local solves; the sum runs over the subdomains in
//! order, so that the bits do not depend on threads.

use bt_direct::{FactorError, Factorization, Place, Result, Singularity, SparseLu};
use bt_formats::{Csr, Error, LinearOperator, Partition, RealScalar, Scalar, max_abs, zero};
use rayon::prelude::*;

use crate::incomplete_lu::check_refactor;
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// Rows of A from which on subdomains go to different threads.
const PARALLEL: usize = 4096;

/// What becomes of the rows that several subdomains have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Their values are added up.
    Added,
    /// The subdomain whose part they are of decides.
    Restricted,
}

/// The preconditioner.
///
/// ```
/// use bt_formats::{Csr, Partition};
/// use bt_iter::{Factored, Overlap, Preconditioner, Schwarz};
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 4.0]].as_ref())?;
/// // Decoupled parts with exact solvers: M = A.
/// let exact = |local: &Csr<f64>| Ok(Factored::new(bt_direct::SparseLu::new(local)?));
/// let mut m = Schwarz::new(&a, &Partition::from_sizes([2, 1])?, 1, Overlap::Restricted, exact)?;
/// let mut z = [0.0; 3];
/// m.apply(&[3.0, 3.0, 4.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct Schwarz<T: Scalar, P = Box<dyn Preconditioner<T>>> {
    n: usize,
    overlap: Overlap,
    subdomains: Vec<Subdomain<T, P>>,
    /// The last refactorisation failed: applications give NaN.
    failed: bool,
}

struct Subdomain<T, P> {
    /// Rows of Ωᵢ in increasing order.
    rows: Vec<u32>,
    /// Places in `rows` of the part itself.
    own: std::ops::Range<usize>,
    /// Of the matrix in its own unit.
    solver: P,
    /// 1 / that unit.
    scale: T,
    r: Vec<T>,
    z: Vec<T>,
}

impl<T: Scalar, P: Preconditioner<T>> Schwarz<T, P> {
    /// Parts as the blocks of `parts`, `layers` of overlap, and `solver` for each local matrix.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square or not finite, when the parts do not sum to n, and for a local
    /// solver of kind `Variable`; the first error of `solver`, with the subdomain and rows and columns of A.
    ///
    /// # Cost
    /// The local setups, and the entries of the Ωᵢ.
    pub fn new(
        a: &Csr<T>,
        parts: &Partition,
        layers: usize,
        overlap: Overlap,
        mut solver: impl FnMut(&Csr<T>) -> Result<P>,
    ) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = a.nrows();
        if parts.n() != n {
            return Err(Error::DimensionMismatch { what: "sum of the parts", expected: n, found: parts.n() }.into());
        }
        // Neighbours by rows and by columns: overlap has to be symmetric.
        let transpose = a.transpose();
        let mut place = vec![u32::MAX; n];
        let subdomains = (0..parts.n_blocks())
            .map(|i| {
                let rows = grown(a, &transpose, parts.range(i), layers, &mut place);
                let own = rows.partition_point(|&r| (r as usize) < parts.range(i).start);
                let own = own..own + parts.size(i);
                let scale = scale(a, &rows);
                let local = submatrix(a, &rows, scale, &mut place)?;
                let solver = solver(&local).map_err(|e| in_subdomain(e, i, &rows))?;
                if solver.kind() == PreconditionerKind::Variable || solver.n() != rows.len() {
                    let why = format!("{} is not one operator of {} rows", solver.name(), rows.len());
                    return Err(Error::InvalidStructure { what: "local solver", why }.into());
                }
                let vector = || vec![zero::<T>(); rows.len()];
                let (r, z) = (vector(), vector());
                Ok(Subdomain { rows, own, solver, scale, r, z })
            })
            .collect::<Result<_>>()?;
        Ok(Self { n, overlap, subdomains, failed: false })
    }

    /// Rows of the smallest and of the largest subdomain, overlap included.
    pub fn min_max_rows(&self) -> (usize, usize) {
        let sizes = || self.subdomains.iter().map(|s| s.rows.len());
        (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
    }
}

impl<T: Scalar, P: Refactor<T>> Refactor<T> for Schwarz<T, P> {
    /// Keeps the subdomains, and takes memory for one local matrix at a time. What the local solvers have no place for is refused;
    /// entries between rows that share no subdomain play no part.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.n, a)?;
        let mut place = vec![u32::MAX; self.n];
        for (i, s) in self.subdomains.iter_mut().enumerate() {
            s.scale = scale(a, &s.rows);
            let local = submatrix(a, &s.rows, s.scale, &mut place)?;
            s.solver.refactor(&local).map_err(|e| in_subdomain(e, i, &s.rows))?;
        }
        self.failed = false;
        Ok(())
    }
}

/// An error of a local solver, with rows and columns of A.
fn in_subdomain(error: FactorError, i: usize, rows: &[u32]) -> FactorError {
    let global = |local: usize| rows.get(local).map_or(local, |&r| r as usize);
    match error {
        FactorError::Input(Error::OutsideStructure { row, col, why }) => {
            Error::OutsideStructure { row: global(row), col: global(col), why }.into()
        }
        FactorError::Singular(s) => {
            FactorError::Singular(Singularity { column: global(s.column), block: Some(i), kind: s.kind })
        }
        FactorError::Breakdown { method, place, reason } => {
            let (first, last) = (global(0), global(rows.len().saturating_sub(1)));
            let row = |local: usize| rows.get(local).map(|&r| r as usize);
            let place = place.and_then(|place| place.renumbered(row, row)).unwrap_or(Place::Partition(i));
            FactorError::breakdown(method, place, format!("in subdomain {i}, rows within {first}..={last}: {reason}"))
        }
        other => other,
    }
}

/// The rows of a part and those at most `layers` edges away, in increasing order. `place` is all MAX before and after.
#[inline(never)]
fn grown<T: Scalar>(
    a: &Csr<T>,
    transpose: &Csr<T>,
    part: std::ops::Range<usize>,
    layers: usize,
    place: &mut [u32],
) -> Vec<u32> {
    let mut rows: Vec<u32> = part.map(|i| i as u32).collect();
    mark(&rows, place, 0);
    let mut first = 0;
    for _ in 0..layers {
        let end = rows.len();
        if first == end {
            // Nothing is left to grow into.
            break;
        }
        for k in first..end {
            let i = rows[k] as usize;
            for &j in a.row(i).0.iter().chain(transpose.row(i).0) {
                if place[j as usize] == u32::MAX {
                    place[j as usize] = 0;
                    rows.push(j);
                }
            }
        }
        first = end;
    }
    mark(&rows, place, u32::MAX);
    rows.sort_unstable();
    rows
}

fn mark(rows: &[u32], place: &mut [u32], value: u32) {
    for &i in rows {
        place[i as usize] = value;
    }
}

/// Of these rows of A, entries outside the subdomain included.
fn scale<T: Scalar>(a: &Csr<T>, rows: &[u32]) -> T {
    scale_of_rows(rows.iter().map(|&i| a.row(i as usize).1))
}

/// 1 over the unit that the matrix of a subdomain is given to its solver in, by the rows of the subdomain: a power of two that brings the largest
/// entry near 1, as far as the least stays a normal number; 1 where there is none.
///
/// ```
/// assert_eq!(bt_iter::scale_of_rows([&[3.0, -5.0][..], &[]].into_iter()), 0.25);
/// // Nothing is rounded to zero.
/// assert!(1e-200 * bt_iter::scale_of_rows([&[1e200, 1e-200][..]].into_iter()) > 0.0);
/// ```
pub fn scale_of_rows<'v, T: Scalar>(rows: impl Iterator<Item = &'v [T]>) -> T {
    let (mut largest, mut least) = (0.0f64, f64::INFINITY);
    for row in rows {
        largest = largest.max(max_abs(row));
        for part in row.iter().flat_map(|v| [v.re(), v.im()]).map(|part| part.to_f64().abs()) {
            least = if part > 0.0 { least.min(part) } else { least };
        }
    }
    let exponent = |size: f64| size.log2().floor();
    // The range has more small numbers than large ones: the scale is a number too.
    let range = exponent(T::Real::MAX.to_f64()) - 1.0;
    let unit = exponent(largest).min(exponent(least) + range);
    let unit = if unit.is_finite() { unit.clamp(-range, range) } else { 0.0 };
    T::rounded((-unit).exp2(), 0.0)
}

/// scale·A(rows, rows). `place` is all MAX before and after.
#[inline(never)]
fn submatrix<T: Scalar>(a: &Csr<T>, rows: &[u32], scale: T, place: &mut [u32]) -> Result<Csr<T>> {
    for (k, &i) in rows.iter().enumerate() {
        place[i as usize] = k as u32;
    }
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for &i in rows {
        let (cols, vals) = a.row(i as usize);
        for (&j, &v) in cols.iter().zip(vals).filter(|(j, _)| place[**j as usize] != u32::MAX) {
            idx.push(place[j as usize]);
            val.push(v * scale);
        }
        ptr.push(idx.len() as u32);
    }
    mark(rows, place, u32::MAX);
    Ok(Csr::new(rows.len(), rows.len(), ptr, idx, val)?)
}

impl<T: Scalar, P: Preconditioner<T>> Subdomain<T, P> {
    /// z ← Mᵢ⁻¹·Rᵢ·r
    fn solve(&mut self, r: &[T]) {
        for (local, &i) in self.r.iter_mut().zip(&self.rows) {
            *local = r[i as usize];
        }
        self.solver.apply(&self.r, &mut self.z);
        for z in &mut self.z {
            *z *= self.scale;
        }
    }
}

impl<T: Scalar, P: Preconditioner<T>> Preconditioner<T> for Schwarz<T, P> {
    fn n(&self) -> usize {
        self.n
    }
    fn name(&self) -> &'static str {
        match self.overlap {
            Overlap::Added => "schwarz",
            Overlap::Restricted => "ras",
        }
    }
    fn kind(&self) -> PreconditionerKind {
        let definite = self.subdomains.iter().all(|s| s.solver.kind() == PreconditionerKind::Spd);
        if definite && self.overlap == Overlap::Added { PreconditionerKind::Spd } else { PreconditionerKind::General }
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.n, r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        if self.n >= PARALLEL && rayon::current_num_threads() > 1 {
            self.subdomains.par_iter_mut().for_each(|s| s.solve(r));
        } else {
            self.subdomains.iter_mut().for_each(|s| s.solve(r));
        }
        z.fill(zero());
        for s in &self.subdomains {
            match self.overlap {
                Overlap::Added => s.rows.iter().zip(&s.z).for_each(|(&i, &v)| z[i as usize] += v),
                Overlap::Restricted => {
                    // The part is contiguous in A and in Ωᵢ.
                    let own = &s.z[s.own.clone()];
                    if let Some(&first) = s.rows.get(s.own.start) {
                        z[first as usize..first as usize + own.len()].copy_from_slice(own);
                    }
                }
            }
        }
    }
    fn nnz(&self) -> usize {
        self.subdomains.iter().map(|s| s.solver.nnz()).sum()
    }
    fn bytes(&self) -> usize {
        let vectors = |s: &Subdomain<T, P>| size_of_val(&*s.rows) + size_of_val(&*s.r) + size_of_val(&*s.z);
        self.subdomains.iter().map(|s| s.solver.bytes() + vectors(s)).sum()
    }
}

/// The factors of a direct method as a preconditioner: M = A, or whatever was factored.
///
/// ```
/// use bt_direct::Thomas;
/// use bt_formats::Tridiagonal;
/// use bt_iter::{Factored, Preconditioner};
/// let a = Tridiagonal::new(vec![0.0, 1.0], vec![2.0, 2.0], vec![1.0, 0.0])?;
/// let mut z = [0.0; 2];
/// Factored::new(Thomas::new(&a)?).apply(&[3.0, 3.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Factored<F> {
    factors: F,
}

impl<F> Factored<F> {
    /// Of these factors.
    pub fn new(factors: F) -> Self {
        Self { factors }
    }
}

impl<T: Scalar> Refactor<T> for Factored<SparseLu<T>> {
    /// For a matrix of exactly the pattern that was factored; order of columns and memory are kept.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.factors.refactor(a)
    }
}

impl<T: Scalar, F: Factorization<T>> Preconditioner<T> for Factored<F> {
    fn n(&self) -> usize {
        self.factors.n()
    }
    fn name(&self) -> &'static str {
        self.factors.method()
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::General
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.factors.n(), r, z);
        z.copy_from_slice(r);
        self.factors.solve_vec_in_place(z);
    }
    fn nnz(&self) -> usize {
        self.factors.stats().nnz
    }
    fn bytes(&self) -> usize {
        self.factors.stats().bytes
    }
}
