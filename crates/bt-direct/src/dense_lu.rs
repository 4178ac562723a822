//! Dense LU with partial pivoting: faer's recursive elimination, in the terms of this crate.
//!
//! P·A = L·U; Toledo, SIAM J. Matrix Anal. Appl. 18 (1997) 1065–1081, doi:10.1137/S0895479896297744. What it adds to
//! faer's: the column without a pivot is named, growth is measured, entries near the ends of the range are scaled by a
//! power of two, refactorisation takes no memory, and matrices of more than 1024 rows are eliminated by panels of 512
//! columns, between which the elimination is observed.
//!
//! Storage: n·n values (n·(n + 8) from 512 bytes a column on, so that columns do not fall on the same lines of a cache),
//! 12·n bytes of exchanges. Cost: ⅔n³ flops on the calling thread; a solve takes 2n².

use bt_formats::{Error, Monitor, Op, Par, Progress, RealScalar, Scalar, buffers, one, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, Mat, MatMut, MatRef};

use crate::columns::{check_size, for_each_column};
use crate::dense::norms;
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::nopivot::{NoPivotLu, substitute, times};
use crate::refine::{growth_limit, unit_roundoff};

const METHOD: &str = "dense-lu";

/// P·A = L·U of a dense matrix, with partial pivoting.
///
/// ```
/// use bt_direct::{Factorization, PartialPivotLu};
/// use faer::mat;
/// let lu = PartialPivotLu::new(mat![[0.0, 1.0], [2.0, 0.0]].as_ref())?;
/// let mut x = [3.0, 8.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [4.0, 3.0]);
/// assert_eq!(lu.log_det().sign, -1.0);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct PartialPivotLu<T: Scalar> {
    n: usize,
    ld: usize,
    values: Vec<T>,
    /// Row exchanged with row k in step k.
    pivots: Vec<u32>,
    /// The factors are those of s·A.
    scale: T::Real,
    stats: FactorStats,
    /// faer's permutation, its inverse and work space, kept for refactorisation.
    permutation: Vec<u32>,
    memory: MemBuffer,
}

impl<T: Scalar> std::fmt::Debug for PartialPivotLu<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartialPivotLu").field("n", &self.n).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<T: Scalar> PartialPivotLu<T> {
    /// Factors a square matrix of any strides.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column that has no pivot; [`FactorError::Breakdown`] when a pivot is so small
    /// beside max|A| that its reciprocal overflows, or there is none where elements have grown beyond 1/√u;
    /// [`FactorError::Input`] for NaN and infinity, when `a` is not square, and when there is not the memory;
    /// [`FactorError::Failed`] when ‖A‖₁ overflows.
    ///
    /// # Cost
    /// ⅔n³ flops.
    pub fn new(a: MatRef<'_, T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`PartialPivotLu::new`], observed before the elimination of each panel.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_size("columns of the matrix", n, a.ncols())?;
        buffers::ask(n, METHOD)?;
        let mut lu = Self::with_size(n)?;
        lu.factor(a, monitor)?;
        Ok(lu)
    }

    /// The memory for n rows.
    fn with_size(n: usize) -> Result<Self> {
        let too_large = || Error::TooLarge {
            what: "dense LU",
            needed: format!("{n} × {n} values of {} bytes", size_of::<T>()),
            limit: "the memory there is".into(),
        };
        let ld = if n * size_of::<T>() >= 512 { n.next_multiple_of(8) + 8 } else { n };
        if u32::try_from(n).is_err() {
            return Err(too_large().into());
        }
        let values = zeros(ld.saturating_mul(n))?;
        let (mut pivots, mut permutation) = (Vec::new(), Vec::new());
        reserve(&mut pivots, n)?;
        pivots.resize(n, 0);
        reserve(&mut permutation, 4 * n)?;
        permutation.resize(4 * n, 0);
        let request = lu_in_place_scratch::<u32, T>(n, n, faer::Par::Seq, faer::prelude::default());
        let memory = MemBuffer::try_new(request).map_err(|_| too_large())?;
        Ok(Self { n, ld, values, pivots, scale: one(), stats: FactorStats::default(), permutation, memory })
    }

    /// Factors another matrix of the same size without taking memory. After an error the factors are void: solves give
    /// NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`PartialPivotLu::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`PartialPivotLu::refactor`], observed before the elimination of each panel.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.nrows())?;
        let done = self.factor(a, monitor);
        if done.is_err() {
            self.values.fill(T::rounded(f64::NAN, 0.0));
            self.stats.growth = f64::INFINITY;
        }
        done
    }

    #[inline(never)]
    fn factor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let n = self.n;
        let norms = norms(METHOD, a, Par::Seq)?;
        self.scale = norms.scale::<T>();
        for (j, column) in self.values.chunks_exact_mut(self.ld.max(1)).enumerate() {
            column[..n].iter_mut().enumerate().for_each(|(i, v)| *v = times(a[(i, j)], self.scale));
        }
        let width = if n <= UNOBSERVED { n } else { PANEL };
        let mut k = 0;
        while k < n {
            if monitor.observe(Progress::Step { phase: "setup", done: k, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            self.eliminate(k, width.min(n - k));
            k += width;
        }
        let lu = MatMut::from_column_major_slice_with_stride_mut(&mut self.values, n, n, self.ld);
        let (mut largest, mut smallest) = (0.0f64, f64::INFINITY);
        for j in 0..n {
            // faer goes on through a zero pivot; what follows it is not finite, what precedes it is sound.
            let pivot = lu[(j, j)].abs1().to_f64();
            largest = (0..=j).fold(largest, |m, i| m.max_nan(lu[(i, j)].abs1().to_f64()));
            if pivot == 0.0 {
                let growth = largest / (norms.max * self.scale.to_f64());
                return Err(FactorError::no_pivot(METHOD, j, None, growth, growth_limit(unit_roundoff::<T>())));
            }
            if !(pivot >= <T::Real as RealScalar>::MIN_POSITIVE.to_f64() && pivot.is_finite()) {
                let reason = format!("the pivot of column {j} (from 0) is out of range; scale rows and columns");
                return Err(FactorError::breakdown(METHOD, Place::Column(j), reason));
            }
            if !largest.is_finite() {
                let reason = format!("elimination overflows in column {j} (from 0)");
                return Err(FactorError::breakdown(METHOD, Place::Column(j), reason));
            }
            smallest = smallest.min_nan(Scalar::abs(lu[(j, j)]).to_f64());
        }
        let scale = self.scale.to_f64();
        self.stats = FactorStats {
            norm_one: norms.one,
            growth: if n == 0 { 1.0 } else { largest / (norms.max * scale) },
            min_pivot: if n == 0 { 0.0 } else { smallest / scale },
            boosted_pivots: 0,
            nnz: n * n,
            bytes: size_of_val(&*self.values) + size_of_val(&*self.pivots),
            flops: NoPivotLu::<T>::flops(n),
        };
        Ok(())
    }
}

/// Rows up to which one call eliminates all columns, and columns of a panel otherwise: what is left after each is
/// one large product. Up to 1024·n² flops lie between two observations.
const UNOBSERVED: usize = 1024;
const PANEL: usize = 512;

impl<T: Scalar> PartialPivotLu<T> {
    /// Eliminates columns k to k + width from the rows below k:
    /// P·\[A₁₁; A₂₁\] = \[L₁₁; L₂₁\]·U₁₁, U₁₂ = L₁₁⁻¹·A₁₂, A₂₂ ← A₂₂ − L₂₁·U₁₂, with A₁₂ and A₂₂ after the exchanges.
    fn eliminate(&mut self, k: usize, width: usize) {
        let (n, below) = (self.n, self.n - k);
        let mut lu = MatMut::from_column_major_slice_with_stride_mut(&mut self.values, n, n, self.ld);
        let (forward, rest) = self.permutation.split_at_mut(below);
        let (inverse, rest) = rest.split_at_mut(below);
        let panel = lu.as_mut().submatrix_mut(k, k, below, width);
        let stack = MemStack::new(&mut self.memory);
        lu_in_place(panel, forward, inverse, faer::Par::Seq, stack, faer::prelude::default());
        let pivots = &mut self.pivots[k..];
        exchanges(forward, &mut rest[..2 * below], pivots);
        // Those of the last rows belong to columns that are not eliminated yet.
        let pivots = &pivots[..width];
        let exchange = |columns: MatMut<'_, T>| {
            for_each_column(columns, |x| pivots.iter().enumerate().for_each(|(i, &p)| x.swap(i, p as usize)));
        };
        let (_, _, left, right) = lu.split_at_mut(k, k);
        exchange(left);
        let (panel, mut right) = right.split_at_col_mut(width);
        exchange(right.as_mut());
        let (l11, l21) = panel.as_ref().split_at_row(width);
        let (mut u12, a22) = right.split_at_row_mut(width);
        solve_unit_lower_triangular_in_place(l11, u12.as_mut(), faer::Par::Seq);
        matmul(a22, Accum::Add, l21, u12.as_ref(), -one::<T>(), faer::Par::Seq);
        self.pivots[k..k + width].iter_mut().for_each(|p| *p += k as u32);
    }
}

/// The row exchanges that make the permutation `forward` (row i of P·A is row `forward[i]` of A).
fn exchanges(forward: &[u32], work: &mut [u32], pivots: &mut [u32]) {
    // `at[r]`: where row r stands now; `row[i]`: which row stands at i.
    let (at, row) = work.split_at_mut(forward.len());
    for i in 0..forward.len() {
        (at[i], row[i]) = (i as u32, i as u32);
    }
    for (i, (&wanted, pivot)) in forward.iter().zip(pivots).enumerate() {
        let p = at[wanted as usize];
        *pivot = p;
        let moved = row[i];
        row[p as usize] = moved;
        at[moved as usize] = p;
        row[i] = wanted;
    }
}

impl<T: Scalar> Factorization<T> for PartialPivotLu<T> {
    fn n(&self) -> usize {
        self.n
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        for_each_column(x.as_mut(), |x| {
            for v in x.iter_mut() {
                *v = times(*v, self.scale);
            }
            if op == Op::Identity {
                self.pivots.iter().enumerate().for_each(|(k, &p)| x.swap(k, p as usize));
            }
        });
        substitute(op, &self.values, self.ld, x.as_mut());
        if op != Op::Identity {
            for_each_column(x, |x| self.pivots.iter().enumerate().rev().for_each(|(k, &p)| x.swap(k, p as usize)));
        }
    }

    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let mut own = Mat::new();
        self.refactor_with_monitor(a.dense(&mut own)?, monitor)
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for (k, &p) in self.pivots.iter().enumerate() {
            det.multiply(self.values.get(k * (self.ld + 1)).copied().unwrap_or_else(zero));
            if p as usize != k {
                det.negate();
            }
        }
        det.log_abs -= self.n as f64 * self.scale.to_f64().ln();
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn factors_by_hand() {
        // Rows exchanged: [4 2; 1 3], l = 1/4, u₂₂ = 3 − 1/2; scaled by 1/4.
        let lu = PartialPivotLu::new(mat![[1.0, 3.0], [4.0, 2.0]].as_ref()).unwrap();
        assert_eq!((lu.values.as_slice(), lu.pivots.as_slice()), (&[1.0, 0.25, 0.5, 0.625][..], &[1, 1][..]));
        let s = lu.stats();
        assert_eq!((s.norm_one, s.min_pivot, s.growth, s.nnz), (5.0, 2.5, 1.0, 4));
        assert!((lu.log_det().log_abs - 10f64.ln()).abs() < 1e-15 && lu.log_det().sign == -1.0);
    }

    #[test]
    fn panels_solve_and_stop() {
        // Two whole panels and a part of one; no row stays in its place.
        let n = 1100;
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        let a = Mat::from_fn(n, n, |_, _| next());
        let mut lu = PartialPivotLu::new(a.as_ref()).unwrap();
        let exact = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64);
        for (op, b) in [(Op::Identity, &a * &exact), (Op::Transpose, a.transpose() * &exact)] {
            let mut x = b;
            lu.solve_op_in_place(op, x.as_mut());
            assert!((x - &exact).norm_max() < 1e-8, "{op:?}");
        }
        assert!(lu.stats().growth < 100.0);

        let mut seen = Vec::new();
        let mut second = |progress: Progress| {
            if let Progress::Step { done, .. } = progress {
                seen.push(done);
            }
            if seen.len() == 2 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        assert!(matches!(lu.refactor_with_monitor(a.as_ref(), &mut second), Err(FactorError::Stopped)));
        assert_eq!(seen, [0, 512]);
    }

    #[test]
    fn singular_columns_are_named() {
        let mut a = Mat::from_fn(70, 70, |i, j| 1.0 / (1.0 + i as f64 + 2.0 * j as f64) + f64::from(i == j));
        a.col_mut(41).fill(0.0);
        let Err(FactorError::Singular(s)) = PartialPivotLu::new(a.as_ref()) else { panic!() };
        assert_eq!(s.column, 41);
    }

    #[test]
    fn refactorisation_recovers_from_a_failure() {
        let good = mat![[0.0, 1.0], [2.0, 0.0]];
        let mut lu = PartialPivotLu::new(good.as_ref()).unwrap();
        assert!(lu.refactor(mat![[1.0, 1.0], [1.0, 1.0]].as_ref()).is_err());
        let mut x = [3.0f64, 8.0];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| !v.is_finite()));
        lu.refactor(good.as_ref()).unwrap();
        let mut x = [3.0, 8.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [4.0, 3.0]);
        assert!(matches!(lu.refactor(mat![[1.0]].as_ref()), Err(FactorError::Input(_))));
    }
}
