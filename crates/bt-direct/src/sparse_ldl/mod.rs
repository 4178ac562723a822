//! Sparse factorization of a Hermitian indefinite matrix: P·S·A·S·Pᵀ = L·D·Lᴴ, D of blocks of order 1 and 2.
//!
//! S is made of powers of two. Rows without a usable diagonal are paired and ordered as one (`pairs`); L is formed by
//! supernodes, inside whose diagonal blocks pivots are chosen as J. R. Bunch & L. Kaufman do, Math. Comp. 31 (1977)
//! 163–179, doi:10.1090/S0025-5718-1977-0428694-0 (faer's kernels). No row leaves its supernode, so that fill and work are those
//! that were counted: O. Schenk & K. Gärtner, ETNA 23 (2006) 158–179, whose pivots are perturbed where these are not. What this
//! restriction costs is measured: growth = max |L|·|D|·|Lᴴ| / max |S·A·S|, column by column, and beyond 1/√u the
//! factorization is given up for one with full pivoting.
//!
//! The signs of the eigenvalues are those of D ([`SparseLdl::inertia`]), by Sylvester's law.
//!
//! Storage and cost: as of [`crate::SparseCholesky`] in this order, and the scaling, the exchanges and what stands
//! beside the diagonal of D.

mod pairs;

use std::sync::Arc;

use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Op, RealScalar, Scalar, equilibrate_symmetric, memory, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::{simplicial, supernodal};
use faer::{Conj, MatMut, Par, Spec};

use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::guard::quietly;
use crate::inertia::Inertia;
use crate::memory::zeros;
use crate::refine::{growth_limit, unit_roundoff};
use crate::sparse_cholesky::{
    Buffers, Interleaved, Structure, SymbolicCholesky, Triangle, hermitian_norm, observe, too_large,
};

const METHOD: &str = "sparse-ldl";

/// P·S·A·S·Pᵀ = L·D·Lᴴ of a sparse Hermitian matrix.
///
/// Growth and the smallest pivot in [`FactorStats`] are those of the scaled matrix, whose largest entries are near 1.
///
/// ```
/// use bt_direct::{Factorization, SparseLdl};
/// use bt_formats::Csr;
/// // Least x₀² + x₁² with x₀ + x₁ = 2:
/// // [ 2   1 ]
/// // [   2 1 ]
/// // [ 1 1   ]
/// let a = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 2, 1, 2, 0, 1], vec![2.0, 1.0, 2.0, 1.0, 1.0, 1.0])?;
/// let ldl = SparseLdl::new(&a)?;
/// let mut x = [0.0, 0.0, 2.0];
/// ldl.solve_vec_in_place(&mut x);
/// assert!((x[0] - 1.0f64).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15 && (x[2] + 2.0).abs() < 1e-15);
/// assert_eq!((ldl.inertia().positive, ldl.inertia().negative), (2, 1));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct SparseLdl<T: Scalar> {
    symbolic: Arc<SymbolicCholesky>,
    /// The diagonal of S.
    scale: Vec<T::Real>,
    triangle: Triangle<T>,
    /// L and the diagonal of D, where `symbolic` says; what stands beside it where a pivot of order 2 begins.
    values: Vec<T>,
    beside: Vec<T>,
    /// Exchanges inside supernodes and their inverse; `order[k]`: the row of A that is number k with them.
    forward: Vec<u32>,
    inverse: Vec<u32>,
    order: Vec<u32>,
    memory: MemBuffer,
    buffers: Buffers<T>,
    stats: FactorStats,
}

impl<T: Scalar> std::fmt::Debug for SparseLdl<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseLdl").field("n", &self.n()).field("stats", &self.stats).finish_non_exhaustive()
    }
}

/// A block of D.
#[derive(Clone, Copy)]
enum PivotBlock {
    One(f64),
    /// Its diagonal in units of the modulus beside it, and that modulus.
    Two(f64, f64, f64),
}

impl<T: Scalar> SparseLdl<T> {
    /// Factors a Hermitian matrix: aᵢⱼ = conj(aⱼᵢ) in every bit.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] when the pivots inside supernodes are zero or let elements grow beyond 1/√u (use
    /// `sparse-lu`); [`FactorError::Singular`] naming a column that no matching covers; [`FactorError::Input`] with the
    /// place when A is not Hermitian or not finite, and when it is too large for memory.
    ///
    /// # Cost
    /// [`SymbolicCholesky::flops`] and [`SymbolicCholesky::ldl_bytes`] of [`SparseLdl::analyse`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`SparseLdl::new`], observed before the order is found and before the elimination, which both run to their
    /// end.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        observe(monitor, 0, a.nrows())?;
        Self::with_symbolic(a, Arc::new(Self::analyse(a)?), monitor)
    }

    /// The symbolic phase: rows whose diagonal is small beside their other entries are ordered in pairs.
    ///
    /// # Errors
    /// As [`SymbolicCholesky::new`]; [`FactorError::Singular`] naming a column that no matching covers; [`FactorError::Input`]
    /// with the place of a NaN or an infinity.
    ///
    /// # Cost
    /// As [`SymbolicCholesky::new`], and a matching where there are such rows.
    pub fn analyse(a: &Csr<T>) -> Result<SymbolicCholesky> {
        a.check_square()?;
        a.check_finite()?;
        pairs::symbolic(a)
    }

    /// Like [`SparseLdl::with_monitor`], with the symbolic phase of a matrix of the same pattern: that of
    /// [`SparseLdl::analyse`], or of [`SymbolicCholesky::new`], which does not pair rows.
    ///
    /// # Errors
    /// As there, and [`FactorError::Input`] when the pattern is another one.
    #[inline(never)]
    pub fn with_symbolic(a: &Csr<T>, symbolic: Arc<SymbolicCholesky>, monitor: &mut dyn Monitor) -> Result<Self> {
        a.check_square()?;
        symbolic.check_pattern(a)?;
        // What is wrong with the numbers is told before memory is taken for them.
        hermitian_norm(a)?;
        let n = symbolic.n();
        let structure = symbolic.structure()?;
        memory::ask(symbolic.ldl_bytes::<T>()? as u64, "the factors of sparse-ldl")?;
        let mut triangle = Triangle::default();
        triangle.reserve(n, symbolic.triangle_entries())?;
        let out_of_memory = |_| too_large(n, a.nnz());
        let mut ldl = Self {
            scale: zeros(n)?,
            triangle,
            values: zeros(structure.values())?,
            beside: zeros(n)?,
            forward: zeros(n)?,
            inverse: zeros(n)?,
            order: zeros(n)?,
            memory: MemBuffer::try_new(structure.ldl_scratch::<T>(symbolic.par())).map_err(out_of_memory)?,
            buffers: Buffers::new(structure, n)?,
            stats: FactorStats::default(),
            symbolic,
        };
        ldl.refactor_with_monitor(a, monitor)?;
        Ok(ldl)
    }

    /// Factors another matrix of the same pattern, in the order of the first, without taking memory
    /// (with several threads some bytes for each pivot). After an error the factors
    /// are void: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`SparseLdl::new`], and [`FactorError::Input`] when the pattern is another one.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`SparseLdl::refactor`], observed before the elimination.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.symbolic.check_pattern(a)?;
        let done = hermitian_norm(a).and_then(|norm| {
            observe(monitor, 0, a.nrows())?;
            self.eliminate(a, norm)
        });
        if done.is_err() {
            self.values.fill(T::nan_impl());
            self.stats = self.stats.void();
        }
        done
    }

    /// The symbolic phase, for other matrices of this pattern.
    pub fn symbolic(&self) -> &Arc<SymbolicCholesky> {
        &self.symbolic
    }

    /// The signs of the eigenvalues: those of D. `tolerance` bounds, to first order, what rounding may have moved an eigenvalue
    /// by: those within it may have either sign.
    pub fn inertia(&self) -> Inertia {
        let mut negative = 0;
        for block in self.blocks() {
            negative += match block {
                PivotBlock::One(d) => usize::from(d < 0.0),
                PivotBlock::Two(d, e, _) if d * e < 1.0 => 1,
                PivotBlock::Two(d, ..) => 2 * usize::from(d < 0.0),
            };
        }
        let n = self.n();
        let tolerance = n as f64 * unit_roundoff::<T>() * self.stats.growth * self.stats.norm_one;
        Inertia { negative, zero: 0, positive: n - negative, tolerance }
    }

    fn eliminate(&mut self, a: &Csr<T>, norm_one: f64) -> Result<()> {
        let Self { symbolic, scale, triangle, values, beside, forward, inverse, memory, .. } = self;
        let structure = symbolic.structure()?;
        equilibrate_symmetric(a, scale);
        let mut norm_max = 0.0f64;
        triangle.fill(&symbolic.pattern, structure.half(), (&symbolic.order, &symbolic.position), |i, e| {
            let j = a.col_idx()[e] as usize;
            let v = Scalar::conj(a.values()[e]) * T::from_real(scale[i]) * T::from_real(scale[j]);
            norm_max = norm_max.max_nan(v.abs().to_f64());
            v
        });
        let matrix = triangle.matrix();
        let stack = MemStack::new(memory);
        beside.fill(zero());
        for (k, (f, i)) in forward.iter_mut().zip(&mut *inverse).enumerate() {
            (*f, *i) = (k as u32, k as u32);
        }
        let par = symbolic.par();
        let done = quietly(|| match structure {
            Structure::Simplicial(s) => {
                simplicial::factorize_simplicial_numeric_ldlt(values, matrix, faer::prelude::default(), s, stack)
                    .is_ok()
            }
            Structure::Supernodal(s) => {
                let spec = Spec::default();
                supernodal::factorize_supernodal_numeric_intranode_lblt(
                    values, beside, forward, inverse, matrix, s, par, stack, spec,
                );
                true
            }
        });
        if done.is_none() {
            return Err(FactorError::Failed { method: METHOD, reason: "faer panicked".into() });
        }
        for (k, &f) in self.order.iter_mut().zip(&self.forward) {
            *k = self.symbolic.order[f as usize];
        }
        let (growth, min_pivot) = if done == Some(true) { self.measure(norm_max)? } else { (f64::NAN, 0.0) };
        // Not so of NaN.
        let sound = growth <= growth_limit(unit_roundoff::<T>()) && min_pivot > 0.0;
        if !(sound || a.nrows() == 0) {
            let reason = if min_pivot > 0.0 && growth.is_finite() {
                format!("elements grow by {growth:.1e}; use sparse-lu")
            } else {
                "there is no pivot inside a supernode; use sparse-lu".into()
            };
            return Err(FactorError::breakdown(METHOD, None, reason));
        }
        self.stats = FactorStats {
            norm_one,
            growth: if a.nrows() == 0 { 1.0 } else { growth },
            min_pivot: if a.nrows() == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: self.symbolic.fill() as usize,
            bytes: self.symbolic.ldl_bytes::<T>()?,
            flops: self.symbolic.flops(),
        };
        Ok(())
    }

    /// The growth of elements, at least 1, and the least modulus that the inverse of a pivot block stands for.
    fn measure(&self, norm_max: f64) -> Result<(f64, f64)> {
        let structure = self.symbolic.structure()?;
        let largest = structure.columns().map(|column| {
            // The diagonal of L is 1.
            self.values[column.start + 1..column.end].iter().fold(1.0, |m: f64, l| m.max_nan(l.abs().to_f64()))
        });
        let (mut product, mut least) = (0.0f64, f64::INFINITY);
        let mut largest = largest;
        for block in self.blocks() {
            let mut next = || largest.next().unwrap_or(1.0);
            // |L|·|D|·|Lᴴ| of the columns of this block; the least singular value is above |det|/(|d| + |e| + 2|b|).
            let (size, pivot) = match block {
                PivotBlock::One(d) => (d.abs() * next().powi(2), d.abs()),
                PivotBlock::Two(d, e, b) => {
                    let (l, m) = (next(), next());
                    let size = b * (d.abs() * l * l + 2.0 * l * m + e.abs() * m * m);
                    (size, b * ((d * e - 1.0).abs() / (d.abs() + e.abs() + 2.0)))
                }
            };
            product = product.max_nan(size);
            least = least.min_nan(pivot);
        }
        Ok(((product / norm_max).max_nan(1.0), least))
    }

    /// D.
    fn blocks(&self) -> impl Iterator<Item = PivotBlock> + '_ {
        let mut diagonal = self.symbolic.structure().ok().map(Structure::diagonal).into_iter().flatten();
        let mut k = 0;
        std::iter::from_fn(move || {
            let d = self.values[diagonal.next()?].re().to_f64();
            let beside = self.beside[k].abs().to_f64();
            k += 1;
            if beside == 0.0 {
                return Some(PivotBlock::One(d));
            }
            k += 1;
            let e = self.values[diagonal.next()?].re().to_f64();
            Some(PivotBlock::Two(d / beside, e / beside, beside))
        })
    }

    /// Solves for vectors that stand in the order of L, exchanges included.
    fn solve_in_order(&self, conj: Conj, y: Interleaved<'_, T>) {
        let (x, stack) = y.matrix();
        match self.symbolic.structure() {
            Ok(Structure::Simplicial(s)) => {
                simplicial::SimplicialLdltRef::new(s, &self.values).solve_in_place_with_conj(conj, x, Par::Seq, stack);
            }
            Ok(Structure::Supernodal(s)) => {
                let exchanges = PermRef::new_checked(&self.forward, &self.inverse, self.n());
                supernodal::SupernodalIntranodeLbltRef::new(s, &self.values, &self.beside, exchanges)
                    .solve_in_place_no_numeric_permute_with_conj(conj, x, Par::Seq, stack);
            }
            Err(_) => unreachable!("there are factors only where there was a structure"),
        }
    }
}

impl<T: Scalar> Factorization<T> for SparseLdl<T> {
    fn n(&self) -> usize {
        self.symbolic.n()
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        let Ok(structure) = self.symbolic.structure() else { return };
        // A⁻¹ = S·(S·A·S)⁻¹·S; A⁻ᵀ is the conjugate of A⁻¹ = A⁻ᴴ.
        let conj = if op == Op::Transpose { Conj::Yes } else { Conj::No };
        let scaled = |i: usize, v: T| v * T::from_real(self.scale[i]);
        self.buffers.solve((structure, &self.order), x, scaled, |y| self.solve_in_order(conj, y));
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.csr()?, monitor)
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        let mut multiply = |x: f64| det.multiply(T::rounded(x, 0.0));
        for block in self.blocks() {
            match block {
                PivotBlock::One(d) => multiply(d),
                PivotBlock::Two(d, e, b) => [b, b, d * e - 1.0].into_iter().for_each(&mut multiply),
            }
        }
        // det A = det(S·A·S)/∏sᵢ²; the exponents sum exactly.
        let exponents: f64 = self.scale.iter().map(|s| s.to_f64().log2()).sum();
        det.log_abs -= 2.0 * exponents * std::f64::consts::LN_2;
        det
    }
}
