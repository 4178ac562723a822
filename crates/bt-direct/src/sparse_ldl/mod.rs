//! Sparse factorization of a Hermitian indefinite matrix: P·S·A·S·Pᵀ = L·D·Lᴴ, D of blocks of order 1 and 2.
//!
//! S is made of powers of two. Rows without a usable diagonal are paired and ordered as one (`pairs`); L is formed by supernodes
//! (`supernodal`, narrow ones by `narrow`), inside whose diagonal blocks pivots are chosen as J. R. Bunch & L. Kaufman do, Math.
//! Comp. 31 (1977) 163–179, doi:10.1090/S0025-5718-1977-0428694-0. No row leaves its supernode, so that fill and work are those
//! that were counted: O. Schenk & K. Gärtner, ETNA 23 (2006) 158–179, whose pivots are perturbed where these are not. What this
//! restriction costs is measured: growth = max |L|·|D|·|Lᴴ| / max |S·A·S|, column by column, and beyond 1/√u the factorization is
//! given up for one with full pivoting.
//!
//! The signs of the eigenvalues are those of D ([`SparseLdl::inertia`]), by Sylvester's law.
//!
//! Storage and cost: as of [`crate::SparseCholesky`] in this order, and the scaling, the exchanges and what stands
//! beside the diagonal of D.
//!
//! | file | case |
//! |---|---|
//! | `pairs.rs` | the order, in which a row without a usable diagonal stays with its partner |
//! | `supernodal.rs` | L and D by supernodes, and solves with them |
//! | `narrow.rs` | the diagonal block of a supernode of up to eight columns, and the rows below it |
//! | `pivots.rs` | D of a supernode: products, inverses and sizes of its pivots of order 1 and 2 |

mod narrow;
mod pairs;
mod pivots;
mod supernodal;

use std::sync::Arc;

use bt_formats::{Csr, LinearOperator, Monitor, Op, RealScalar, Scalar, buffers, equilibrate_symmetric, memory, zero};
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::ldlt::factor::LdltError;
use faer::sparse::linalg::cholesky::simplicial;
use faer::{Conj, MatMut, Par};

use self::pivots::{PivotBlock, blocks, sizes};
use self::supernodal::Elimination;

use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::guard::quietly;
use crate::inertia::Inertia;
use crate::memory::zeros;
use crate::refine::{growth_limit, unit_roundoff};
use crate::sparse_cholesky::numbers::Numbers;
use crate::sparse_cholesky::subtrees::Supernodes;
use crate::sparse_cholesky::tasks::{Ended, Sizes};
use crate::sparse_cholesky::vectors::{Buffers, Interleaved, Route, Substitution};
use crate::sparse_cholesky::{Structure, SymbolicCholesky, Workspace, hermitian_norm, largest, observe};

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
    /// L and the diagonal of D, where `symbolic` says; what stands beside it where a pivot of order 2 begins.
    values: Vec<T>,
    beside: Vec<T>,
    /// Interchanges inside the blocks of supernodes.
    exchange: Vec<u32>,
    workspace: Workspace<T, Elimination<T>>,
    /// Work space of [`hermitian_norm`].
    next: Vec<u32>,
    buffers: Buffers<T>,
    stats: FactorStats,
}

impl<T: Scalar> std::fmt::Debug for SparseLdl<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseLdl").field("n", &self.n()).field("stats", &self.stats).finish_non_exhaustive()
    }
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

    /// Like [`SparseLdl::new`], observed before the order is found and between supernodes.
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
        let n = symbolic.n();
        let mut next = zeros(n)?;
        let norm = hermitian_norm(a, &mut next)?;
        let structure = symbolic.structure()?;
        memory::ask(symbolic.ldl_bytes::<T>()? as u64, "the factors of sparse-ldl")?;
        let workspace = match structure {
            Structure::Simplicial(s) => {
                let kernels = simplicial::factorize_simplicial_numeric_ldlt_scratch::<u32, T>(s.nrows());
                Workspace::by_rows(&symbolic, kernels)?
            }
            Structure::Supernodal(s) => {
                buffers::ask(2 * s.largest.1, METHOD)?;
                Workspace::Supernodes(Elimination::new(s, symbolic.par())?)
            }
        };
        let mut ldl = Self {
            scale: zeros(n)?,
            values: zeros(structure.values())?,
            beside: zeros(n)?,
            exchange: zeros(n)?,
            workspace,
            next,
            buffers: Buffers::new(n, structure.solve_scratch::<T>())?,
            stats: FactorStats::default(),
            symbolic,
        };
        ldl.eliminate(a, norm, monitor)?;
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

    /// Like [`SparseLdl::refactor`], observed as [`SparseLdl::with_monitor`] is.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.symbolic.check_pattern(a)?;
        let done = hermitian_norm(a, &mut self.next).and_then(|norm| self.eliminate(a, norm, monitor));
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

    fn eliminate(&mut self, a: &Csr<T>, norm_one: f64, monitor: &mut dyn Monitor) -> Result<()> {
        observe(monitor, 0, a.nrows())?;
        let Self { symbolic, scale, values, beside, exchange, workspace, .. } = self;
        let structure = symbolic.structure()?;
        equilibrate_symmetric(a, scale);
        // An entry of S·A·S by its row and its number in A, conjugated: a row is a column.
        let entry = |i: usize, e: usize| {
            let j = a.col_idx()[e] as usize;
            Scalar::conj(a.values()[e]) * T::from_real(scale[i]) * T::from_real(scale[j])
        };
        let entries_of = |i: usize| a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
        let moduli = (0..a.nrows()).flat_map(|i| entries_of(i).map(move |e| entry(i, e).abs().to_f64()));
        let norm_max = largest(moduli);
        beside.fill(zero());
        let (order, position) = (&*symbolic.order, &*symbolic.position);
        let done = quietly(|| match (structure, workspace) {
            (Structure::Simplicial(s), Workspace::Rows(triangle, memory)) => {
                triangle.fill(&symbolic.pattern, (order, position), entry);
                let (matrix, plain) = (triangle.matrix(), faer::prelude::default());
                // Counted from 1.
                simplicial::factorize_simplicial_numeric_ldlt(values, matrix, plain, s, MemStack::new(memory))
                    .map_err(|LdltError::ZeroPivot { index }| Ended::NoPivot(index - 1))?;
                let below = structure.columns().map(|column| &values[column.start + 1..column.end]);
                let largest = below.map(|l| largest(l.iter().map(|l| l.abs().to_f64())));
                Ok(sizes(blocks(structure.diagonal().map(|at| values[at]), beside), largest))
            }
            (Structure::Supernodal(s), Workspace::Supernodes(elimination)) => {
                let load = |l: usize, put: &mut dyn FnMut(usize, T)| {
                    let i = order[l] as usize;
                    for e in entries_of(i) {
                        let k = position[a.col_idx()[e] as usize] as usize;
                        if k >= l {
                            put(k, entry(i, e));
                        }
                    }
                };
                let numbers = Numbers { beside, exchange, ..Numbers::of_lower(values) };
                elimination.factor(s, load, numbers, symbolic.par(), monitor)
            }
            _ => unreachable!("work space is made for the structure"),
        });
        let (growth, min_pivot) = match done {
            None => return Err(FactorError::Failed { method: METHOD, reason: "faer panicked".into() }),
            Some(Err(Ended::Stopped)) => return Err(FactorError::Stopped),
            Some(Err(Ended::NoPivot(k))) => {
                let row = symbolic.order[k] as usize;
                let reason = format!("there is no pivot inside the supernode of row {row} (from 0); use sparse-lu");
                return Err(FactorError::breakdown(METHOD, Place::Row(row), reason));
            }
            Some(Ok(Sizes { product, pivot })) => ((product / norm_max).max_nan(1.0), pivot),
        };
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

    /// D.
    fn blocks(&self) -> impl Iterator<Item = PivotBlock> + '_ {
        let diagonal = self.symbolic.structure().ok().map(Structure::diagonal).into_iter().flatten();
        blocks(diagonal.map(|at| self.values[at]), &self.beside)
    }

    /// Solves for vectors that stand in the order of L without interchanges.
    fn solve_in_order(&self, conj: Conj, y: Interleaved<'_, T>) {
        match self.symbolic.structure() {
            Ok(Structure::Simplicial(s)) => {
                let (x, stack) = y.matrix();
                simplicial::SimplicialLdltRef::new(s, &self.values).solve_in_place_with_conj(conj, x, Par::Seq, stack);
            }
            Ok(Structure::Supernodal(s)) => y.substitute(&BySupernodes { ldl: self, s, conj }),
            Err(_) => unreachable!("there are factors only where there was a structure"),
        }
    }
}

/// L and D by supernodes, or their conjugates.
struct BySupernodes<'a, T: Scalar> {
    ldl: &'a SparseLdl<T>,
    s: &'a Supernodes,
    conj: Conj,
}

impl<T: Scalar> Substitution<T> for BySupernodes<'_, T> {
    fn substitute<const W: usize>(&self, y: &mut [[T; W]], work: &mut [[T; W]]) {
        let factors = (&*self.ldl.values, &*self.ldl.beside, &*self.ldl.exchange);
        if !T::IS_REAL && self.conj == Conj::Yes {
            supernodal::solve(self.s, factors, y, work, Scalar::conj);
        } else {
            supernodal::solve(self.s, factors, y, work, |v| v);
        }
    }
}

impl SymbolicCholesky {
    /// As [`SymbolicCholesky::bytes`], of L·D·Lᴴ.
    ///
    /// # Errors
    /// As there.
    pub fn ldl_bytes<T: Scalar>(&self) -> Result<usize> {
        let structure = self.structure()?;
        // Interchanges, what stands beside the diagonal of D, and the scaling.
        let more = self.n() * (size_of::<u32>() + size_of::<T>() + size_of::<T::Real>());
        let work = match structure {
            Structure::Simplicial(s) => {
                let scratch = simplicial::factorize_simplicial_numeric_ldlt_scratch::<u32, T>(s.nrows());
                scratch.size_bytes() + self.triangle_bytes::<T>()
            }
            Structure::Supernodal(s) => Elimination::<T>::bytes(s, self.par()),
        };
        Ok(self.held::<T>(structure) + work + more)
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
        // A⁻¹ = S·(S·A·S)⁻¹·S; A⁻ᵀ is the conjugate of A⁻¹ = A⁻ᴴ.
        let conj = if op == Op::Transpose { Conj::Yes } else { Conj::No };
        let scaled = |i: usize, v: T| v * T::from_real(self.scale[i]);
        let order = Route(&self.symbolic.order, scaled);
        self.buffers.solve(&order, &order, x, |y| self.solve_in_order(conj, y));
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
