//! Gaussian elimination with no pivoting on a dense matrix, recursive, at the speed of matrix products.
//!
//! ```text
//! [A₀₀ A₀₁]   [L₀₀    ]   [U₀₀ U₀₁]      L₀₀·U₀₀ = A₀₀          (recursion)
//! [A₁₀ A₁₁] = [L₁₀ L₁₁] · [    U₁₁]      U₀₁ = L₀₀⁻¹·A₀₁,  L₁₀ = A₁₀·U₀₀⁻¹
//!                                        L₁₁·U₁₁ = A₁₁ − L₁₀·U₀₁  (recursion)
//! ```
//!
//! Golub & Van Loan, Matrix Computations, 4th ed., §3.2.11; Toledo, SIAM J. Matrix Anal. Appl. 18 (1997) 1065–1081,
//! doi:10.1137/S0895479896297744. Without the search for pivots the two triangular solves are independent, and nothing
//! but blocks of 32 is left on one thread. It is meant for matrices that need no pivoting: dominant, definite, or
//! randomised ([`Rbt`](crate::Rbt)).
//!
//! The growth measured is max(|U|, maxₖ |Lₖ|·|Uₖ|)/max|A| with the largest moduli of column k of L and of row k of U:
//! what rounding errors are relative to (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §9.3,
//! doi:10.1137/1.9780898718027). Beyond 1/√u it is a breakdown.
//!
//! Non-standard: A is multiplied by a power of two that brings its largest entry near 1, and bordered by an identity to
//! n' rows, the next multiple of 8.
//!
//! Threads: rows or columns of the triangular solves are split by their number alone; faer's product splits rows and
//! columns, never the sum of an element. The factors have the same bits for any number of threads (tested).
//!
//! Storage: n'·(n' + 8) values, and 16·n' bytes of growth measures. Cost: ⅔n³ flops; a solve takes 2n².

pub(crate) mod kernels;

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use bt_formats::{Monitor, Op, Par, Progress, RealScalar, Scalar, ScalarKind, buffers, c32, c64, one, zero};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Accum, Conj, Mat, MatMut, MatRef};
use kernels::{Element, LEAF, Maxima, SMALL, lanes};

use crate::band_lu::kernels::{axpy_minus, block_update, dot};
use crate::columns::{check_size, for_each_column};
use crate::dense::{join, norms};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::guard::parallelism_of;
use crate::lines::{self, Lines};
use crate::memory::zeros;
use crate::pivot::Pivot;
use crate::refine::{growth_limit, unit_roundoff};

const METHOD: &str = "genp";
/// Right-hand sides that pass through the factors together.
const WIDE: usize = 16;
/// Columns (rows) of a triangular solve that one task takes.
const STRIP: usize = 256;

/// A = L·U of a dense matrix, without pivoting.
///
/// ```
/// use bt_direct::{Factorization, NoPivotLu};
/// use faer::mat;
/// let a = mat![[4.0, 1.0], [2.0, 3.0]];
/// let lu = NoPivotLu::new(a.as_ref())?;
/// let mut x = [6.0, 8.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 2.0]);
/// // Without an exchange of rows this one cannot be factored.
/// assert!(NoPivotLu::new(mat![[0.0, 1.0], [1.0, 0.0]].as_ref()).is_err());
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct NoPivotLu<T: Scalar> {
    n: usize,
    factors: Factors<T>,
    /// The factors are those of s·A.
    scale: T::Real,
    stats: FactorStats,
}

impl<T: Scalar> NoPivotLu<T> {
    /// Factors a square matrix of any strides.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming the column, when a pivot cannot be divided by or elements grow beyond 1/√u;
    /// [`FactorError::Input`] for NaN and infinity, when `a` is not square, and when there is not the memory;
    /// [`FactorError::Failed`] when ‖A‖₁ overflows.
    ///
    /// # Cost
    /// ⅔n³ flops, [`NoPivotLu::bytes`].
    pub fn new(a: MatRef<'_, T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`NoPivotLu::new`], observed every 32 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn with_monitor(a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_size("columns of the matrix", n, a.ncols())?;
        buffers::ask(n, METHOD)?;
        let factors = Factors::new(n.next_multiple_of(lanes::<T>()))?;
        let mut lu = Self { n, factors, scale: one(), stats: FactorStats::default() };
        lu.factor(a, monitor)?;
        Ok(lu)
    }

    /// Factors another matrix of the same size without taking memory. After an error the factors are void: solves give
    /// NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`NoPivotLu::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`NoPivotLu::refactor`], observed every 32 columns.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    pub fn refactor_with_monitor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.nrows())?;
        let done = self.factor(a, monitor);
        if done.is_err() {
            self.factors.invalidate();
            self.stats.growth = f64::INFINITY;
        }
        done
    }

    /// Flops of the factorization of n rows (operations on scalars): ⅔n³.
    pub fn flops(n: usize) -> f64 {
        2.0 / 3.0 * (n as f64).powi(3)
    }

    /// Bytes of the factors: n'·(n' + 8) values with n' the next multiple of 8.
    pub fn bytes(n: usize) -> f64 {
        let padded = n.next_multiple_of(lanes::<T>()) as f64;
        padded * (padded + lanes::<T>() as f64) * size_of::<T>() as f64
    }

    #[inline(never)]
    fn factor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let par = Par::auto(size_of::<T>() * self.n * self.n);
        let norms = norms(METHOD, a, par)?;
        self.scale = norms.scale::<T>();
        let (columns, ld) = self.factors.columns_mut();
        let scale = self.scale;
        lines::dispatch::<T, _>(bt_simd::Loops(
            #[inline(always)]
            || {
                columns
                    .chunks_exact_mut(ld)
                    .enumerate()
                    .for_each(|(j, column)| load_column(a, j, scale, &mut column[..ld]));
            },
        ));
        self.factors.eliminate(par, monitor).map_err(|e| e.into_error(METHOD))?;
        let max_a = norms.max * self.scale.to_f64();
        let (largest, column) = self.factors.growth();
        let growth = if self.n == 0 { 1.0 } else { largest / max_a };
        if !(growth <= growth_limit(unit_roundoff::<T>())) {
            let reason = format!(
                "elements grow by {growth:.1e} in column {column} (from 0): its pivot is too small; pivoting or random \
                 butterflies are needed: dense-lu, rbt"
            );
            return Err(FactorError::breakdown(METHOD, Place::Column(column), reason));
        }
        self.stats = FactorStats {
            norm_one: norms.one,
            growth,
            min_pivot: self.factors.min_pivot(self.n) / self.scale.to_f64(),
            boosted_pivots: 0,
            nnz: self.n * self.n,
            bytes: self.factors.bytes(),
            flops: Self::flops(self.n),
        };
        Ok(())
    }
}

impl<T: Scalar> Factorization<T> for NoPivotLu<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        self.factors.solve(op, x, self.scale, |_, _| {}, |_, _| {});
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
        let mut det = self.factors.log_det(self.n);
        det.log_abs -= self.n as f64 * self.scale.to_f64().ln();
        det
    }
}

/// Column j of s·A, bordered by an identity.
#[inline(always)]
pub(crate) fn load_column<T: Scalar>(a: MatRef<'_, T>, j: usize, scale: T::Real, to: &mut [T]) {
    let n = a.nrows();
    let (head, tail) = to.split_at_mut(n);
    tail.fill(zero());
    if j >= n {
        head.fill(zero());
        tail[j - n] = one();
        return;
    }
    match a.col(j).try_as_col_major() {
        Some(column) => head.iter_mut().zip(column.as_slice()).for_each(|(t, &v)| *t = times(v, scale)),
        None => head.iter_mut().zip(a.col(j).iter()).for_each(|(t, &v)| *t = times(v, scale)),
    }
}

/// v·s for a real s.
#[inline(always)]
pub(crate) fn times<T: Scalar>(v: T, s: T::Real) -> T {
    T::from_parts(v.re() * s, v.im() * s)
}

/// Why an elimination ends early.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// The pivot of this column cannot be divided by.
    Pivot(usize),
    /// The monitor says so.
    Stopped,
}

impl Stop {
    pub(crate) fn into_error(self, method: &'static str) -> FactorError {
        match self {
            Self::Stopped => FactorError::Stopped,
            Self::Pivot(column) => {
                let reason = format!(
                    "the pivot of column {column} (from 0) is zero or not finite; pivoting or random butterflies are \
                     needed: dense-lu, rbt"
                );
                FactorError::breakdown(method, Place::Column(column), reason)
            }
        }
    }
}

/// Storage and factors of a dense matrix whose size is a multiple of 8: the part that [`NoPivotLu`] and
/// [`Rbt`](crate::Rbt) share.
#[derive(Debug)]
pub(crate) struct Factors<T: Scalar> {
    n: usize,
    /// Distance of columns: n, or n + 8 where columns would fall on the same lines of a cache.
    ld: usize,
    values: Lines<T>,
    maxima: Maxima,
    /// Right-hand sides, bordered: one buffer per thread that has solved at the same time.
    scratch: Mutex<Vec<Vec<T>>>,
}

impl<T: Scalar> Factors<T> {
    pub(crate) fn new(n: usize) -> Result<Self> {
        debug_assert!(n.is_multiple_of(lanes::<T>()));
        let ld = if n * size_of::<T>() >= 512 { n + lanes::<T>() } else { n };
        let values = Lines::zeros(ld.saturating_mul(n))?;
        let mut scratch = Vec::with_capacity(64);
        scratch.push(zeros(n * WIDE)?);
        Ok(Self { n, ld, values, maxima: Maxima::new(n), scratch: Mutex::new(scratch) })
    }

    pub(crate) fn matrix(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice_with_stride(&self.values, self.n, self.n, self.ld)
    }

    /// The values column by column, `ld` apart.
    pub(crate) fn columns_mut(&mut self) -> (&mut [T], usize) {
        (&mut self.values, self.ld)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ld * self.n * size_of::<T>()
    }

    /// What is left of a factorization that failed must not look like an answer.
    pub(crate) fn invalidate(&mut self) {
        self.values.fill(T::rounded(f64::NAN, 0.0));
    }

    pub(crate) fn eliminate(&mut self, par: Par, monitor: &mut dyn Monitor) -> Result<(), Stop> {
        self.maxima.reset();
        let Self { n, ld, values, maxima, .. } = self;
        let shape = Placement { n: *n, ld: *ld };
        // The kernels want the scalar by its name.
        let values: &mut dyn Any = values;
        match T::KIND {
            ScalarKind::F32 => shape.eliminate::<f32>(values, par, maxima, monitor),
            ScalarKind::F64 => shape.eliminate::<f64>(values, par, maxima, monitor),
            ScalarKind::C32 => shape.eliminate::<c32>(values, par, maxima, monitor),
            ScalarKind::C64 => shape.eliminate::<c64>(values, par, maxima, monitor),
        }
    }

    /// max(|U|, |L|·|U|), and the column where it is.
    pub(crate) fn growth(&self) -> (f64, usize) {
        self.maxima.growth()
    }

    /// The smallest modulus of the first n pivots.
    pub(crate) fn min_pivot(&self, n: usize) -> f64 {
        let lu = self.matrix();
        let smallest = (0..n).map(|k| lu[(k, k)].abs().to_f64()).fold(f64::INFINITY, f64::min_nan);
        if n == 0 { 0.0 } else { smallest }
    }

    /// The largest modulus of the pivots.
    pub(crate) fn max_pivot(&self) -> f64 {
        let lu = self.matrix();
        (0..self.n).map(|k| lu[(k, k)].abs().to_f64()).fold(0.0, f64::max_nan)
    }

    /// Determinant of the leading n rows.
    pub(crate) fn log_det(&self, n: usize) -> LogDet<T> {
        let lu = self.matrix();
        let mut det = LogDet::one();
        (0..n).for_each(|k| det.multiply(lu[(k, k)]));
        det
    }

    /// X ← s·after(op(LU)⁻¹·before(X)) for X of any number of rows up to n, bordered by zeros. `before` and `after` see
    /// the bordered columns.
    pub(crate) fn solve(
        &self,
        op: Op,
        mut x: MatMut<'_, T>,
        scale: T::Real,
        before: impl Fn(Op, MatMut<'_, T>),
        after: impl Fn(Op, MatMut<'_, T>),
    ) {
        let (n, rows) = (self.n, x.nrows());
        let pooled = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = pooled.unwrap_or_else(|| vec![zero(); n * WIDE]);
        for first in (0..x.ncols()).step_by(WIDE) {
            let count = WIDE.min(x.ncols() - first);
            let mut part = x.as_mut().subcols_mut(first, count);
            let buffer = &mut buffer[..n * count];
            let mut at = 0;
            for_each_column(part.as_mut(), |x| {
                let (head, tail) = buffer[at..at + n].split_at_mut(rows);
                head.iter_mut().zip(&*x).for_each(|(b, &x)| *b = times(x, scale));
                tail.fill(zero());
                at += n;
            });
            let mut y = MatMut::from_column_major_slice_mut(&mut *buffer, n, count);
            before(op, y.as_mut());
            substitute(op, &self.values, self.ld, y.as_mut());
            after(op, y.as_mut());
            let mut at = 0;
            for_each_column(part, |x| {
                x.copy_from_slice(&buffer[at..at + rows]);
                at += n;
            });
        }
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// How the matrix stands among the values.
struct Placement {
    n: usize,
    ld: usize,
}

impl Placement {
    fn eliminate<E: Element>(
        &self,
        values: &mut dyn Any,
        par: Par,
        maxima: &Maxima,
        monitor: &mut dyn Monitor,
    ) -> Result<(), Stop> {
        let values = values.downcast_mut::<Lines<E>>().expect("the scalar by its name");
        let a = MatMut::from_column_major_slice_with_stride_mut(values, self.n, self.n, self.ld);
        eliminate(a, 0, par, maxima, monitor)
    }
}

/// Rows of the first half, a multiple of 8.
fn split<E>(n: usize) -> usize {
    if n <= 2 * SMALL { SMALL } else { (n / 2).next_multiple_of(LEAF).min(n - lanes::<E>()) }
}

/// A ← L\U; `first` is the column of the whole matrix that `a` starts at.
pub(crate) fn eliminate<E: Element>(
    mut a: MatMut<'_, E>,
    first: usize,
    par: Par,
    maxima: &Maxima,
    monitor: &mut dyn Monitor,
) -> Result<(), Stop> {
    let n = a.nrows();
    if n <= SMALL {
        if monitor.observe(Progress::Step { phase: "setup", done: first, total: maxima.n() }).is_break() {
            return Err(Stop::Stopped);
        }
        return kernels::eliminate(a, first, maxima).map_or(Ok(()), |column| Err(Stop::Pivot(column)));
    }
    let h = split::<E>(n);
    let (mut a00, mut a01, mut a10, mut a11) = a.as_mut().split_at_mut(h, h);
    eliminate(a00.as_mut(), first, par, maxima, monitor)?;
    // U₀₁ ← L₀₀⁻¹·A₀₁;  L₁₀ ← A₁₀·U₀₀⁻¹
    let (a00, u01, l10) = (a00.as_ref(), a01.as_mut(), a10.as_mut());
    join(par, || lower(a00, u01, first, par, maxima), || upper(a00, l10, first, par, maxima));
    // A₁₁ ← A₁₁ − L₁₀·U₀₁
    matmul(a11.as_mut(), Accum::Add, a10.as_ref(), a01.as_ref(), -one::<E>(), parallelism_of(par));
    eliminate(a11, first + h, par, maxima, monitor)
}

/// X ← L⁻¹·X with the unit lower triangle of `l`.
pub(crate) fn lower<E: Element>(l: MatRef<'_, E>, x: MatMut<'_, E>, first: usize, par: Par, maxima: &Maxima) {
    if x.ncols() > STRIP {
        let half = (x.ncols() / 2).next_multiple_of(lanes::<E>());
        let (left, right) = x.split_at_col_mut(half);
        join(par, || lower(l, left, first, par, maxima), || lower(l, right, first, par, maxima));
        return;
    }
    let n = l.nrows();
    if n <= LEAF {
        kernels::solve_unit_lower(l, x, first, maxima);
        return;
    }
    let h = split::<E>(n);
    let (l00, _, l10, l11) = l.split_at(h, h);
    let (mut x0, mut x1) = x.split_at_row_mut(h);
    lower(l00, x0.as_mut(), first, par, maxima);
    matmul(x1.as_mut(), Accum::Add, l10, x0.as_ref(), -one::<E>(), faer::Par::Seq);
    lower(l11, x1, first + h, par, maxima);
}

/// X ← X·U⁻¹ with the upper triangle of `u`.
pub(crate) fn upper<E: Element>(u: MatRef<'_, E>, x: MatMut<'_, E>, first: usize, par: Par, maxima: &Maxima) {
    if x.nrows() > STRIP {
        let half = (x.nrows() / 2).next_multiple_of(lanes::<E>());
        let (top, bottom) = x.split_at_row_mut(half);
        join(par, || upper(u, top, first, par, maxima), || upper(u, bottom, first, par, maxima));
        return;
    }
    let n = u.nrows();
    if n <= LEAF {
        kernels::solve_upper_right(u, x, first, maxima);
        return;
    }
    let h = split::<E>(n);
    let (u00, u01, _, u11) = u.split_at(h, h);
    let (mut x0, mut x1) = x.split_at_col_mut(h);
    upper(u00, x0.as_mut(), first, par, maxima);
    matmul(x1.as_mut(), Accum::Add, x0.as_ref(), u01, -one::<E>(), faer::Par::Seq);
    upper(u11, x1, first + h, par, maxima);
}

/// X ← op(L·U)⁻¹·X with both triangles in one square matrix, its columns `ld` apart.
pub(crate) fn substitute<T: Scalar>(op: Op, values: &[T], ld: usize, mut x: MatMut<'_, T>) {
    let n = x.nrows();
    let lu = MatRef::from_column_major_slice_with_stride(values, n, n, ld);
    if x.ncols() < 4 {
        for_each_column(x, |x| {
            lines::dispatch::<T, _>(bt_simd::Loops(
                #[inline(always)]
                || match op {
                    Op::Identity => substitute_column(values, ld, x),
                    Op::Adjoint if !T::IS_REAL => substitute_column_transposed(lu, x, Scalar::conj),
                    Op::Transpose | Op::Adjoint => substitute_column_transposed(lu, x, |v| v),
                },
            ));
        });
        return;
    }
    let seq = faer::Par::Seq;
    match op {
        Op::Identity => {
            solve_unit_lower_triangular_in_place_with_conj(lu, Conj::No, x.as_mut(), seq);
            solve_upper_triangular_in_place_with_conj(lu, Conj::No, x, seq);
        }
        Op::Transpose | Op::Adjoint => {
            let conj = if op == Op::Adjoint { Conj::Yes } else { Conj::No };
            solve_lower_triangular_in_place_with_conj(lu.transpose(), conj, x.as_mut(), seq);
            solve_unit_upper_triangular_in_place_with_conj(lu.transpose(), conj, x, seq);
        }
    }
}

/// Columns that are subtracted from the rest of x together.
const TOGETHER: usize = 8;

#[inline(always)]
fn substitute_column<T: Scalar>(lu: &[T], ld: usize, x: &mut [T]) {
    let n = x.len();
    for left in (0..n).step_by(TOGETHER) {
        let right = (left + TOGETHER).min(n);
        for c in left..right {
            axpy_minus::<_, false>(x[c], &lu[c * ld + c + 1..c * ld + right], &mut x[c + 1..right]);
        }
        let (done, rest) = x.split_at_mut(right);
        subtract_columns(&lu[left * ld..], ld, right..n, &done[left..], rest);
    }
    for left in (0..n).step_by(TOGETHER).rev() {
        let right = (left + TOGETHER).min(n);
        for c in (left..right).rev() {
            x[c] = Pivot::new(lu[c * ld + c]).divide(x[c]);
            axpy_minus::<_, false>(x[c], &lu[c * ld + left..c * ld + c], &mut x[left..c]);
        }
        let (rest, done) = x.split_at_mut(left);
        subtract_columns(&lu[left * ld..], ld, 0..left, &done[..right - left], rest);
    }
}

/// y ← y − A·x for these rows of the columns that `a` begins with, a register of each at a time.
#[inline(always)]
fn subtract_columns<T: Scalar>(a: &[T], ld: usize, rows: std::ops::Range<usize>, x: &[T], y: &mut [T]) {
    const ROWS: usize = 32;
    let (columns, _) = x.as_chunks::<1>();
    let (mut at, end) = (rows.start, rows.end);
    let mut y = y;
    while end - at >= ROWS {
        let (head, rest) = std::mem::take(&mut y).split_at_mut(ROWS);
        block_update::<T, ROWS, 1, 1, false>(head, ROWS, &a[at..], ld, columns);
        (y, at) = (rest, at + ROWS);
    }
    for (k, &x) in x.iter().enumerate() {
        axpy_minus::<_, false>(x, &a[k * ld + at..k * ld + end], y);
    }
}

#[inline(always)]
fn substitute_column_transposed<T: Scalar>(lu: MatRef<'_, T>, x: &mut [T], map: impl Fn(T) -> T) {
    let n = x.len();
    let column = |j: usize| lu.col(j).try_as_col_major().expect("own").as_slice();
    for c in 0..n {
        let column = column(c);
        let sum = dot::<_, false>(&column[..c], &x[..c], &map);
        x[c] = Pivot::new(map(column[c])).divide(x[c] - sum);
    }
    for c in (0..n).rev() {
        let sum = dot::<_, false>(&column(c)[c + 1..], &x[c + 1..], &map);
        x[c] -= sum;
    }
}
