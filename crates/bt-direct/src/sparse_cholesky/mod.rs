//! Sparse Cholesky factorization of a Hermitian positive definite matrix: P·A·Pᵀ = L·Lᴴ.
//!
//! P is the approximate minimum degree order. Where L is sparse to the end it is formed row by row along the elimination
//! tree by faer (T. A. Davis, S. Rajamanickam & W. M. Sid-Lakhdar, Acta Numerica 25 (2016) 383–566, doi:10.1017/S0962492916000076, §4); where
//! it has dense parts, by supernodes. Stable for every order, without growth: |lᵢⱼ|² ≤ aᵢᵢ (N. J. Higham, Accuracy and Stability of Numerical
//! Algorithms, 2nd ed., §10.1, doi:10.1137/1.9780898718027). That A is Hermitian is verified exactly.
//!
//! What it costs is known before a number is touched ([`SymbolicCholesky`]).
//!
//! | file | what it serves |
//! |---|---|
//! | `counts`, `pattern`, `symbolic` | the entries of L from the pattern; the order and a triangle; structure and bytes |
//! | `supernodal` | L by supernodes |
//! | `earlier`, `supernode`, `vectors` | what earlier supernodes take from one; substitution in one; and for vectors side by side; for LU and L·D·Lᴴ too |
//! | `subtrees`, `tasks`, `numbers` | which supernodes are eliminated side by side, on threads, and what each writes, for these too |
//!
//! Storage: the values of L (zeros inside supernodes included), and four bytes an entry of L and one half of A where it is formed row by row, a
//! few bytes a row of a supernode and the largest block for each thread otherwise; faer's products keep twice the size of the last cache for each
//! thread beside it. Cost: Σⱼ bⱼ(bⱼ + 2) flops and n roots for bⱼ entries below
//! the diagonal of column j, 4·fill flops a right-hand side.

mod counts;
pub(crate) mod earlier;
pub(crate) mod numbers;
mod pattern;
pub(crate) mod subtrees;
mod supernodal;
mod supernode;
mod symbolic;
pub(crate) mod tasks;
pub(crate) mod vectors;

use std::cmp::Ordering;
use std::sync::Arc;

use bt_formats::{Csr, LinearOperator, Monitor, Op, Progress, RealScalar, Scalar, memory, zero};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::sparse::linalg::cholesky::simplicial;
use faer::{Conj, MatMut, Par};

pub(crate) use self::counts::{count, inverse};
pub(crate) use self::pattern::{Pattern, Triangle, too_large};
use self::subtrees::Supernodes;
use self::supernodal::{Elimination, before};
use self::supernode::solve_cholesky;
pub(crate) use self::supernode::{Columns, Diagonal, Node, node};
pub(crate) use self::symbolic::Structure;
pub use self::symbolic::SymbolicCholesky;
use self::tasks::Ended;
use self::vectors::{Buffers, Interleaved, Route, Substitution};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::guard::quietly;
use crate::memory::zeros;

const METHOD: &str = "sparse-cholesky";

/// P·A·Pᵀ = L·Lᴴ of a sparse Hermitian positive definite matrix.
///
/// ```
/// use bt_direct::{Factorization, SparseCholesky};
/// use bt_formats::Csr;
/// // [ 4 2   ]
/// // [ 2 5 2 ]
/// // [   2 5 ]
/// let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![4.0, 2.0, 2.0, 5.0, 2.0, 2.0, 5.0])?;
/// let cholesky = SparseCholesky::new(&a)?;
/// let mut x = [6.0, 9.0, 7.0];
/// cholesky.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|x| (x - 1.0f64).abs() < 1e-15));
/// assert!((cholesky.log_det().log_abs - 64f64.ln()).abs() < 1e-14);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct SparseCholesky<T: Scalar> {
    symbolic: Arc<SymbolicCholesky>,
    /// L, where `symbolic` says.
    values: Vec<T>,
    workspace: Workspace<T, Elimination<T>>,
    /// Work space of [`hermitian_norm`].
    next: Vec<u32>,
    buffers: Buffers<T>,
    stats: FactorStats,
}

/// What a factorization works with, kept for the next.
pub(crate) enum Workspace<T, E> {
    /// L is formed row by row.
    Rows(Triangle<T>, MemBuffer),
    Supernodes(E),
}

impl<T: Scalar, E> Workspace<T, E> {
    /// Room for one half of A, and for what faer's kernels ask.
    pub fn by_rows(symbolic: &SymbolicCholesky, kernels: StackReq) -> Result<Self> {
        let (n, entries) = (symbolic.n(), symbolic.triangle_entries());
        let mut triangle = Triangle::default();
        triangle.reserve(n, entries)?;
        Ok(Self::Rows(triangle, MemBuffer::try_new(kernels).map_err(|_| too_large(n, symbolic.pattern.idx.len()))?))
    }
}

impl<T: Scalar> std::fmt::Debug for SparseCholesky<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseCholesky").field("n", &self.n()).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<T: Scalar> SparseCholesky<T> {
    /// Factors a Hermitian matrix: aᵢⱼ = conj(aⱼᵢ) in every bit.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row whose pivot is not positive: A is not positive definite (use `sparse-ldl`);
    /// [`FactorError::Input`] with the place when A is not Hermitian or not finite, and when it is too large for memory.
    ///
    /// # Cost
    /// [`SymbolicCholesky::flops`] and [`SymbolicCholesky::bytes`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`SparseCholesky::new`], observed before the order is found and between supernodes; L formed row by row runs to its end.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(a: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        observe(monitor, 0, a.nrows())?;
        Self::with_symbolic(a, Arc::new(SymbolicCholesky::new(a)?), monitor)
    }

    /// Like [`SparseCholesky::with_monitor`], with the symbolic phase of a matrix of the same pattern.
    ///
    /// # Errors
    /// As there, and [`FactorError::Input`] when the pattern is another one.
    #[inline(never)]
    pub fn with_symbolic(a: &Csr<T>, symbolic: Arc<SymbolicCholesky>, monitor: &mut dyn Monitor) -> Result<Self> {
        a.check_square()?;
        symbolic.check_pattern(a)?;
        // What is wrong with the numbers is told before memory is taken for them.
        let mut next = zeros(symbolic.n())?;
        let norm = hermitian_norm(a, &mut next)?;
        let structure = symbolic.structure()?;
        memory::ask(symbolic.bytes::<T>()? as u64, "the factors of sparse-cholesky")?;
        let workspace = match structure {
            Structure::Simplicial(s) => {
                let kernels = simplicial::factorize_simplicial_numeric_llt_scratch::<u32, T>(s.nrows());
                Workspace::by_rows(&symbolic, kernels)?
            }
            Structure::Supernodal(s) => Workspace::Supernodes(Elimination::new(s, symbolic.par())?),
        };
        let mut cholesky = Self {
            values: zeros(structure.values())?,
            workspace,
            next,
            buffers: Buffers::new(symbolic.n(), structure.solve_scratch::<T>())?,
            stats: FactorStats::default(),
            symbolic,
        };
        cholesky.eliminate(a, norm, monitor)?;
        Ok(cholesky)
    }

    /// Factors another matrix of the same pattern without taking memory. After an error the factors are void: solves give
    /// NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`SparseCholesky::new`], and [`FactorError::Input`] when the pattern is another one.
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`SparseCholesky::refactor`], observed as [`SparseCholesky::with_monitor`] is.
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

    fn eliminate(&mut self, a: &Csr<T>, norm_one: f64, monitor: &mut dyn Monitor) -> Result<()> {
        observe(monitor, 0, a.nrows())?;
        let Self { symbolic, values, workspace, .. } = self;
        let structure = symbolic.structure()?;
        let order = (&*symbolic.order, &*symbolic.position);
        // The place of a row that has no pivot.
        let done = quietly(|| match (structure, workspace) {
            (Structure::Simplicial(s), Workspace::Rows(triangle, memory)) => {
                triangle.fill(&symbolic.pattern, order, |_, e| Scalar::conj(a.values()[e]));
                let (matrix, plain) = (triangle.matrix(), faer::prelude::default());
                // Counted from 1.
                simplicial::factorize_simplicial_numeric_llt(values, matrix, plain, s, MemStack::new(memory))
                    .map_err(|e| Ended::NoPivot(before(e) - 1))?;
                let diagonal = || structure.diagonal().map(|at| values[at].re().to_f64());
                let unusable = diagonal().position(|d| !d.is_finite());
                unusable.map_or_else(|| Ok(diagonal().fold(f64::INFINITY, f64::min)), |k| Err(Ended::NoPivot(k)))
            }
            (Structure::Supernodal(s), Workspace::Supernodes(elimination)) => {
                elimination.factor(s, a, order, values, symbolic.par(), monitor)
            }
            _ => unreachable!("work space is made for the structure"),
        });
        let least = match done {
            None => return Err(FactorError::Failed { method: METHOD, reason: "faer panicked".into() }),
            Some(Err(Ended::Stopped)) => return Err(FactorError::Stopped),
            Some(Err(Ended::NoPivot(k))) => {
                let row = symbolic.order[k.min(symbolic.n() - 1)] as usize;
                let reason = format!(
                    "the pivot of row {row} (from 0) is not positive: the matrix is not positive definite; use sparse-ldl"
                );
                return Err(FactorError::breakdown(METHOD, Place::Row(row), reason));
            }
            Some(Ok(least)) => least,
        };
        self.stats = FactorStats {
            norm_one,
            // |lᵢⱼ|² ≤ aᵢᵢ: nothing grows.
            growth: 1.0,
            min_pivot: if a.nrows() == 0 { 0.0 } else { least * least },
            boosted_pivots: 0,
            nnz: symbolic.fill() as usize,
            bytes: symbolic.bytes::<T>()?,
            flops: symbolic.flops(),
        };
        Ok(())
    }

    /// Solves for vectors that stand in the order of L.
    fn solve_in_order(&self, conj: Conj, y: Interleaved<'_, T>) {
        match self.symbolic.structure() {
            Ok(Structure::Simplicial(s)) => {
                let (x, stack) = y.matrix();
                simplicial::SimplicialLltRef::new(s, &self.values).solve_in_place_with_conj(conj, x, Par::Seq, stack);
            }
            Ok(Structure::Supernodal(s)) => y.substitute(&BySupernodes { s, values: &self.values, conj }),
            Err(_) => unreachable!("there are factors only where there was a structure"),
        }
    }
}

/// L by supernodes, or its conjugate.
struct BySupernodes<'a, T> {
    s: &'a Supernodes,
    values: &'a [T],
    conj: Conj,
}

impl<T: Scalar> Substitution<T> for BySupernodes<'_, T> {
    fn substitute<const W: usize>(&self, y: &mut [[T; W]], work: &mut [[T; W]]) {
        if !T::IS_REAL && self.conj == Conj::Yes {
            solve_cholesky((self.s, self.values), y, work, Scalar::conj);
        } else {
            solve_cholesky((self.s, self.values), y, work, |v| v);
        }
    }
}

pub(crate) fn observe(monitor: &mut dyn Monitor, done: usize, total: usize) -> Result<()> {
    if monitor.observe(Progress::Step { phase: "setup", done, total }).is_break() {
        return Err(FactorError::Stopped);
    }
    Ok(())
}

/// The largest of sizes, or NaN where one is: bits of numbers that are not negative are ordered as they are, NaN above all.
pub(crate) fn largest(sizes: impl Iterator<Item = f64>) -> f64 {
    f64::from_bits(sizes.fold(0, |most, size| most.max(size.to_bits())))
}

/// ‖A‖₁ of a Hermitian matrix; `next` is work space of n numbers.
///
/// # Errors
/// [`FactorError::Input`] naming an entry that is not finite or not the conjugate of its mirror image.
pub(crate) fn hermitian_norm<T: Scalar>(a: &Csr<T>, next: &mut Vec<u32>) -> Result<f64> {
    a.check_square()?;
    a.check_finite()?;
    let (ptr, idx, values) = (a.row_ptr(), a.col_idx(), a.values());
    // Entries of each row before the next have met their mirror images, which come in the same order as long as each has one.
    next.clear();
    next.extend(&ptr[..a.nrows()]);
    let mut norm = 0.0f64;
    for row in 0..a.nrows() {
        let mut sum = zero::<T::Real>();
        for e in ptr[row]..ptr[row + 1] {
            let (col, value) = (idx[e as usize] as usize, values[e as usize]);
            sum += value.abs();
            let at = next[col];
            let mirrored = match col.cmp(&row) {
                Ordering::Less if e < next[row] => continue,
                Ordering::Equal => value,
                Ordering::Greater if at < ptr[col + 1] && idx[at as usize] as usize == row => {
                    next[col] += 1;
                    values[at as usize]
                }
                Ordering::Less | Ordering::Greater => a.get(col, row),
            };
            if value != Scalar::conj(mirrored) {
                let why = format!("it is not Hermitian: row {row}, column {col} is {value}, its mirror {mirrored}");
                return Err(bt_formats::Error::InvalidStructure { what: "matrix", why }.into());
            }
        }
        norm = norm.max_nan(sum.to_f64());
    }
    Ok(norm)
}

impl<T: Scalar> Factorization<T> for SparseCholesky<T> {
    fn n(&self) -> usize {
        self.symbolic.n()
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        // A⁻ᵀ is the conjugate of A⁻¹ = A⁻ᴴ.
        let conj = if op == Op::Transpose { Conj::Yes } else { Conj::No };
        let order = Route(&self.symbolic.order, |_, v| v);
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
        if let Ok(structure) = self.symbolic.structure() {
            for at in structure.diagonal() {
                det.multiply(self.values[at]);
                det.multiply(self.values[at]);
            }
        }
        det
    }
}
