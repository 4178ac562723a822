//! Bordered systems: a matrix that is easy to factor, a few rows and columns around it.
//!
//! ```text
//! A = [ T  E ]     W = T⁻¹·E     S = C − F·W     y = S⁻¹·(b₂ − F·T⁻¹·b₁)     x = T⁻¹·b₁ − W·y
//!     [ F  C ]
//! ```
//!
//! T is n × n with any [`Factorization`], E is n × q, F is q × n, C is q × q, and S is factored with partial pivoting.
//! Arrowhead matrices have this form, and periodic ones: the last block row and column of a cyclic block-tridiagonal
//! matrix are a border of the rest. [`BorderedBlocks`] takes both from compressed rows.
//!
//! **T may be singular although A is not**, and a T that is nearly so costs digits: rounding is relative to |F|·|W| and
//! |T|·|W|. Their size, relative to max|A|, is part of the growth of [`FactorStats`], and above 1/√u the factorization is
//! refused. [`BorderedBlocks`] first tries a T̂ = T + σ·P·Pᵀ with P the columns of the last block of T and σ = 2·max|A|;
//! with z = Pᵀ·x the equivalent system is bordered by q + r rows and columns:
//!
//! ```text
//! [ T̂     E  −σ·P ]   [ x ]   [ b₁ ]
//! [ F     C    0  ] · [ y ] = [ b₂ ]        det = σʳ·det A
//! [ −σ·Pᵀ 0   σ·I ]   [ z ]   [ 0  ]
//! ```
//!
//! W. Govaerts & J. D. Pryce, BIT 30 (1990) 490–507, doi:10.1007/BF01931663 (block elimination of bordered systems, and why
//! one refinement makes it accurate); T. F. Chan, SIAM J. Numer. Anal. 21 (1984) 738–754, doi:10.1137/0721050 (deflation).
//! Departure: T is moved away from singularity by a correction of rank r instead of by its null vectors, which need not
//! be found.
//!
//! Storage: the factors of T, 2·n·q + q² values and 4q bytes; with deflation q + r for q. Cost: the factors of T, q
//! solves with them, 2·n·q² + ⅔q³ flops; a right-hand side takes a solve with T and 4·n·q + 2q² flops.

mod blocks;

pub use blocks::BorderedBlocks;

use std::sync::{Mutex, PoisonError};

use bt_formats::{Csr, Error, LinearOperator, Matrix, Monitor, Op, RealScalar, Scalar, one, zero};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::band_lu::kernels::{axpy_minus, dot};
use crate::block_cyclic::front::{Front, FrontMut, Workspace, largest};
use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::lines;
use crate::memory::reserve;
use crate::refine::{growth_limit, unit_roundoff};

const METHOD: &str = "bordered";

/// A factored [T E; F C] over the factors of T.
///
/// ```
/// use bt_direct::{Bordered, Factorization, Thomas};
/// use bt_formats::Tridiagonal;
/// use faer::Mat;
/// // [ 2 1 | 1 ]
/// // [ 1 2 | 0 ]
/// // [ 1 1 | 0 ]
/// let t = Tridiagonal::new(vec![0.0, 1.0], vec![2.0, 2.0], vec![1.0, 0.0])?;
/// let e = Mat::from_fn(2, 1, |i, _| [1.0, 0.0][i]);
/// let f = Mat::from_fn(1, 2, |_, _| 1.0);
/// let a = Bordered::new(&t, Thomas::new(&t)?, e.as_ref(), f.as_ref(), Mat::zeros(1, 1).as_ref())?;
/// let mut x = [4.0, 3.0, 2.0];
/// a.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v: &f64| (v - 1.0).abs() < 1e-14));
/// assert!(a.log_det().sign == -1.0 && a.log_det().log_abs.abs() < 1e-14);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct Bordered<T: Scalar, F> {
    inner: F,
    n: usize,
    /// Rows of the border of A, and those that deflation added.
    q: usize,
    r: usize,
    /// W, n × (q + r) by columns.
    w: Vec<T>,
    /// Fᵀ, n × (q + r) by columns.
    f: Vec<T>,
    /// Of each column of Fᵀ the longest run of zeros, which is skipped: all but the ends for a periodic matrix.
    gaps: Vec<(usize, usize)>,
    /// P·S = L̃·Ũ.
    s: Vec<T>,
    pivots: Vec<u32>,
    /// σ of the deflation.
    sigma: f64,
    /// Column sums of |A|, kept for refactorisation.
    sums: Vec<f64>,
    workspace: Workspace,
    /// One column [y; z] a thread.
    scratch: Mutex<Vec<Vec<T>>>,
    stats: FactorStats,
}

impl<T: Scalar, F> std::fmt::Debug for Bordered<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bordered")
            .field("n", &self.n)
            .field("q", &self.q)
            .field("deflated", &self.r)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// E, F, C of A.
#[derive(Clone, Copy)]
struct Border<'a, T> {
    e: MatRef<'a, T>,
    f: MatRef<'a, T>,
    c: MatRef<'a, T>,
}

/// How T was changed: T̂ = T + σ·P·Pᵀ for the last `r` columns P of the identity.
#[derive(Clone, Copy)]
struct Deflation {
    r: usize,
    sigma: f64,
}

impl<T: Scalar, F: Factorization<T>> Bordered<T, F> {
    /// Borders T, given as the matrix `t` (for its norm) and its factors `inner`.
    ///
    /// `e` is n × q, `f` is q × n, `c` is q × q.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] when T is so nearly singular that half the digits are lost (A may be regular:
    /// [`BorderedBlocks`] or `sparse-lu`), and when S has no pivot (A is singular or needs pivoting across the border);
    /// [`FactorError::Input`] for shapes that disagree, for NaN and infinity with their place, and when there is not the
    /// memory.
    ///
    /// # Cost
    /// q solves with T, 2·n·q² + ⅔q³ flops, 2·n·q + q² values.
    pub fn new<A: Matrix<T> + ?Sized>(
        t: &A,
        inner: F,
        e: MatRef<'_, T>,
        f: MatRef<'_, T>,
        c: MatRef<'_, T>,
    ) -> Result<Self> {
        let mut out = Self::empty(inner, c.nrows())?;
        out.assemble(t, Border { e, f, c }, None)?;
        Ok(out)
    }

    /// Takes over new values: `update` refactors T, then the border is eliminated again, without taking memory.
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`Bordered::new`], those of `update`, and [`FactorError::Input`] when the border has another width.
    pub fn refactor<A: Matrix<T> + ?Sized>(
        &mut self,
        t: &A,
        update: impl FnOnce(&mut F) -> Result<()>,
        e: MatRef<'_, T>,
        f: MatRef<'_, T>,
        c: MatRef<'_, T>,
    ) -> Result<()> {
        check_size("width of the border", self.q, c.nrows())?;
        let done = update(&mut self.inner).and_then(|()| self.assemble(t, Border { e, f, c }, None));
        if done.is_err() {
            self.invalidate();
        }
        done
    }

    /// The factors of T.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Rows and columns that deflation added to the border; 0 when T itself was factored.
    pub fn deflated(&self) -> usize {
        self.r
    }

    fn empty(inner: F, q: usize) -> Result<Self> {
        let n = inner.n();
        let mut sums = Vec::new();
        reserve(&mut sums, n)?;
        sums.resize(n, 0.0);
        let mut scratch = Vec::with_capacity(64);
        let mut column = Vec::new();
        reserve(&mut column, q)?;
        scratch.push(column);
        Ok(Self {
            inner,
            n,
            q,
            r: 0,
            w: Vec::new(),
            f: Vec::new(),
            gaps: Vec::new(),
            s: Vec::new(),
            pivots: Vec::new(),
            sigma: 1.0,
            sums,
            workspace: Workspace::new::<T>(q)?,
            scratch: Mutex::new(scratch),
            stats: FactorStats::default(),
        })
    }

    fn invalidate(&mut self) {
        let nan = T::rounded(f64::NAN, 0.0);
        self.w.fill(nan);
        self.s.fill(nan);
        self.stats = FactorStats { norm_one: f64::NAN, growth: f64::INFINITY, min_pivot: f64::NAN, ..self.stats };
    }

    /// Sizes for a border of q + r.
    fn resize(&mut self, r: usize) -> Result<()> {
        let p = self.q + r;
        let columns = self.n.checked_mul(p).ok_or_else(|| too_large(self.n, p))?;
        let square = p.checked_mul(p).ok_or_else(|| too_large(self.n, p))?;
        for (buffer, len) in [(&mut self.w, columns), (&mut self.f, columns), (&mut self.s, square)] {
            let more = len.saturating_sub(buffer.len());
            reserve(buffer, more)?;
            buffer.resize(len, zero());
        }
        let more = p.saturating_sub(self.pivots.len());
        reserve(&mut self.pivots, more)?;
        self.pivots.resize(p, 0);
        self.gaps.resize(p, (0, 0));
        if r > self.r {
            self.workspace = Workspace::new::<T>(p)?;
        }
        self.r = r;
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        for column in scratch.iter_mut() {
            column.resize(p, zero());
        }
        Ok(())
    }

    /// W, F, S from the factors of T, or of T̂.
    fn assemble<A: Matrix<T> + ?Sized>(&mut self, t: &A, border: Border<'_, T>, how: Option<Deflation>) -> Result<()> {
        let (n, q) = (self.n, self.q);
        let Border { e, f, c } = border;
        check_size("rows of T", n, t.nrows())?;
        check_size("rows of E", n, e.nrows())?;
        check_size("columns of E", q, e.ncols())?;
        check_size("rows of F", q, f.nrows())?;
        check_size("columns of F", n, f.ncols())?;
        check_size("columns of C", q, c.ncols())?;
        let max_border = check_finite(e, 0, n)?.max(check_finite(f, n, 0)?).max(check_finite(c, n, n)?);
        let Deflation { r, sigma } = how.unwrap_or(Deflation { r: 0, sigma: 1.0 });
        self.resize(r)?;
        self.sigma = sigma;
        let p = q + r;
        // [Fᵀ, −σ·P] and [E, −σ·P]
        let minus_sigma = T::rounded(-sigma, 0.0);
        for (j, (ft, w)) in self.f.chunks_exact_mut(n.max(1)).zip(self.w.chunks_exact_mut(n.max(1))).enumerate() {
            for i in 0..n {
                (ft[i], w[i]) = if j < q {
                    (f[(j, i)], e[(i, j)])
                } else if i == n - r + (j - q) {
                    (minus_sigma, minus_sigma)
                } else {
                    (zero(), zero())
                };
            }
            self.gaps[j] = longest_zeros(ft);
        }
        // ‖A‖₁: columns of T and F, columns of E and C.
        let sums = &mut self.sums;
        sums.fill(0.0);
        let mut max_t = 0.0f64;
        t.for_each_entry(&mut |_, j, v| {
            sums[j] += v.abs().to_f64();
            max_t = max_t.max_nan(v.abs1().to_f64());
        });
        for ft in self.f[..n * q].chunks_exact(n.max(1)) {
            sums.iter_mut().zip(ft).for_each(|(s, v)| *s += v.abs().to_f64());
        }
        let mut norm_one = sums.iter().copied().fold(0.0, f64::max_nan);
        for j in 0..q {
            let column = (0..n).map(|i| e[(i, j)].abs().to_f64()).chain((0..q).map(|i| c[(i, j)].abs().to_f64()));
            norm_one = norm_one.max_nan(column.sum());
        }
        // W ← T⁻¹·E
        self.inner.solve_in_place(MatMut::from_column_major_slice_mut(&mut self.w, n, p));
        // S ← C − F·W, without the rows of W that meet nothing but zeros in F
        for j in 0..p {
            for i in 0..p {
                self.s[j * p + i] = match (i < q, j < q) {
                    (true, true) => c[(i, j)],
                    (false, false) if i == j => T::rounded(sigma, 0.0),
                    _ => zero(),
                };
            }
        }
        let from = self.gaps.iter().map(|g| g.0).max().unwrap_or(0);
        let to = self.gaps.iter().map(|g| g.1).min().unwrap_or(0).max(from);
        for rows in [0..from, to..n] {
            let part = |m| MatRef::from_column_major_slice(m, n, p).subrows(rows.start, rows.len());
            let s = MatMut::from_column_major_slice_mut(&mut self.s, p, p);
            matmul(s, Accum::Add, part(&self.f).transpose(), part(&self.w), -one::<T>(), Par::Seq);
        }
        let max_a = max_t.max_nan(max_border);
        // Rounding in F·W and in T·W, relative to max|A|.
        let grown = largest(&self.w) * (largest(&self.f).max_nan(max_t) / max_a);
        let scaled = largest(&self.s) / max_a;
        let inner = self.inner.stats();
        let growth = inner.growth.max_nan(grown).max_nan(scaled);
        if p > 0 && !(growth <= growth_limit(unit_roundoff::<T>())) {
            let reason = format!(
                "elements grow by {growth:.1e} when the border is eliminated: the matrix inside it is nearly singular; \
                 use sparse-lu, which pivots across the border"
            );
            return Err(FactorError::breakdown(METHOD, None, reason));
        }
        let mut front = FrontMut { k: p, around: 0, panel: &mut self.s, g: &mut [], pivots: &mut self.pivots };
        let measured = if p == 0 { None } else { Some(front.eliminate(&mut self.workspace)) };
        let min_pivot = match measured {
            None => inner.min_pivot,
            Some(Ok(m)) => m.min_pivot.min_nan(inner.min_pivot),
            Some(Err(row)) => {
                // det S = σʳ·det A / det T̂, but S carries the rounding of the inside, where rows of the border were no
                // candidates for pivots. A row of the deflation belongs to a column of T.
                let column = if row < q { n + row } else { n - r + (row - q) };
                let reason = format!(
                    "the Schur complement of the border has no pivot for column {column} of the matrix (from 0): \
                     sparse-lu, which pivots across the border, tells whether there is any"
                );
                return Err(FactorError::breakdown(METHOD, Place::Column(column), reason));
            }
        };
        if !norm_one.is_finite() {
            let reason = "the norm of the matrix overflows; scale it".into();
            return Err(FactorError::Failed { method: METHOD, reason });
        }
        let (nf, pf) = (n as f64, p as f64);
        self.stats = FactorStats {
            norm_one,
            growth,
            min_pivot,
            boosted_pivots: 0,
            nnz: inner.nnz + 2 * n * p + p * p,
            bytes: inner.bytes
                + size_of_val(&*self.w)
                + size_of_val(&*self.f)
                + size_of_val(&*self.s)
                + size_of_val(&*self.pivots)
                + size_of_val(&*self.gaps),
            flops: inner.flops + 2.0 * pf * inner.nnz as f64 + 2.0 * nf * pf * pf + 2.0 / 3.0 * pf * pf * pf,
        };
        Ok(())
    }

    /// Column j of W, and of Fᵀ.
    fn w(&self, j: usize) -> &[T] {
        &self.w[j * self.n..(j + 1) * self.n]
    }
    fn f(&self, j: usize) -> GapRow<'_, T> {
        GapRow { values: &self.f[j * self.n..(j + 1) * self.n], gap: self.gaps[j] }
    }

    /// y ← S⁻¹·(b₂ − F·x₁), then x₁ ← x₁ − W·y, for x₁ = T⁻¹·b₁.
    #[inline(always)]
    fn border_column(&self, x: &mut [T], y: &mut [T]) {
        let (p, (x1, x2)) = (self.q + self.r, x.split_at_mut(self.n));
        for j in 0..p {
            let b2 = if j < self.q { x2[j] } else { zero() };
            y[j] = b2 - self.f(j).dot(x1, |v| v);
        }
        let s = Front::new(p, 0, 0, &self.s);
        s.lower(&self.pivots, y);
        s.upper(y);
        for (j, &v) in y.iter().enumerate() {
            axpy_minus::<_, false>(v, self.w(j), x1);
        }
        x2.copy_from_slice(&y[..self.q]);
    }

    /// y ← S⁻ᵀ·(b₂ − Wᵀ·b₁), then b₁ ← b₁ − Fᵀ·y.
    #[inline(always)]
    fn border_column_transposed(&self, x: &mut [T], y: &mut [T], map: impl Fn(T) -> T + Copy) {
        let (p, (x1, x2)) = (self.q + self.r, x.split_at_mut(self.n));
        for j in 0..p {
            let b2 = if j < self.q { x2[j] } else { zero() };
            y[j] = b2 - dot::<_, false>(self.w(j), x1, map);
        }
        let s = Front::new(p, 0, 0, &self.s);
        s.upper_transposed(y, map);
        s.lower_transposed(&self.pivots, y, map);
        for (j, &v) in y.iter().enumerate() {
            self.f(j).axpy_minus(v, x1, map);
        }
        x2.copy_from_slice(&y[..self.q]);
    }
}

/// A vector with a run of zeros that is skipped.
#[derive(Clone, Copy)]
struct GapRow<'a, T> {
    values: &'a [T],
    gap: (usize, usize),
}

impl<T: Scalar> GapRow<'_, T> {
    #[inline(always)]
    fn dot(self, x: &[T], map: impl Fn(T) -> T + Copy) -> T {
        let (from, to) = self.gap;
        dot::<_, false>(&self.values[..from], &x[..from], map) + dot::<_, false>(&self.values[to..], &x[to..], map)
    }

    /// y ← y − a·map(self)
    #[inline(always)]
    fn axpy_minus(self, a: T, y: &mut [T], map: impl Fn(T) -> T + Copy) {
        for range in [0..self.gap.0, self.gap.1..y.len()] {
            for (y, &v) in y[range.clone()].iter_mut().zip(&self.values[range]) {
                *y -= a * map(v);
            }
        }
    }
}

/// The longest run of zeros.
fn longest_zeros<T: Scalar>(x: &[T]) -> (usize, usize) {
    let (mut best, mut start) = ((0, 0), 0);
    for (i, v) in x.iter().enumerate() {
        if *v != zero() {
            start = i + 1;
        } else if i + 1 - start > best.1 - best.0 {
            best = (start, i + 1);
        }
    }
    best
}

/// max(|re| + |im|) of a part of A that begins at the given row and column; an error at the first NaN or infinity.
fn check_finite<T: Scalar>(part: MatRef<'_, T>, row: usize, col: usize) -> Result<f64> {
    let mut max = 0.0f64;
    for i in 0..part.nrows() {
        for j in 0..part.ncols() {
            let v = part[(i, j)];
            if !Scalar::is_finite(v) {
                let value = v.to_string();
                return Err(Error::NonFinite { what: "matrix", row: row + i, col: col + j, value }.into());
            }
            max = max.max(v.abs1().to_f64());
        }
    }
    Ok(max)
}

/// The first n rows and columns of A, with the zeros that it stores.
fn leading<T: Scalar>(a: &Csr<T>, n: usize) -> Result<Csr<T>> {
    let (mut ptr, mut idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let (cols, row) = a.row(i);
        let inside = cols.partition_point(|&j| (j as usize) < n);
        idx.extend_from_slice(&cols[..inside]);
        values.extend_from_slice(&row[..inside]);
        ptr.push(idx.len() as u32);
    }
    Ok(Csr::new(n, n, ptr, idx, values)?)
}

fn too_large(n: usize, p: usize) -> FactorError {
    Error::TooLarge {
        what: "a bordered factorization",
        needed: format!("2 · {n} · {p} values"),
        limit: "the memory there is".into(),
    }
    .into()
}

impl<T: Scalar, F: Factorization<T>> Factorization<T> for Bordered<T, F> {
    fn n(&self) -> usize {
        self.n + self.q
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n + self.q, "rows of X");
        let lock = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let pooled = lock().pop();
        let mut y = pooled.unwrap_or_else(|| vec![zero(); self.q + self.r]);
        let solve_inner = |mut x: MatMut<'_, T>| {
            let first = x.as_mut().subrows_mut(0, self.n);
            self.inner.solve_op_in_place(op, first);
        };
        match op {
            Op::Identity => {
                solve_inner(x.as_mut());
                for_each_column(x, |x| {
                    lines::dispatch::<T, _>(bt_simd::Loops(
                        #[inline(always)]
                        || self.border_column(x, &mut y),
                    ));
                });
            }
            Op::Adjoint if !T::IS_REAL => {
                for_each_column(x.as_mut(), |x| {
                    lines::dispatch::<T, _>(bt_simd::Loops(
                        #[inline(always)]
                        || self.border_column_transposed(x, &mut y, Scalar::conj),
                    ));
                });
                solve_inner(x);
            }
            Op::Transpose | Op::Adjoint => {
                for_each_column(x.as_mut(), |x| {
                    lines::dispatch::<T, _>(bt_simd::Loops(
                        #[inline(always)]
                        || self.border_column_transposed(x, &mut y, |v| v),
                    ));
                });
                solve_inner(x);
            }
        }
        lock().push(y);
    }
    /// The leading n rows and columns are T, which the factors of T are given by compressed rows; E, F and C are copied.
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (n, q) = (self.n, self.q);
        let a = a.csr()?;
        check_size("size of the matrix", n + q, a.nrows())?;
        check_size("columns of the matrix", n + q, a.ncols())?;
        let t = leading(&a, n)?;
        let (mut e, mut f, mut c) = (Mat::zeros(n, q), Mat::zeros(q, n), Mat::zeros(q, q));
        blocks::fill_border(&a, n, &mut e, &mut f, &mut c);
        let update = |inner: &mut F| inner.refactor(Given::Csr(&t), monitor);
        Self::refactor(self, &t, update, e.as_ref(), f.as_ref(), c.as_ref())
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let p = self.q + self.r;
        let mut det = self.inner.log_det();
        for (i, &pivot) in self.pivots.iter().enumerate() {
            det.multiply(self.s[i * (p + 1)]);
            if pivot as usize != i {
                det.negate();
            }
        }
        // σʳ·det A was found.
        det.log_abs -= self.r as f64 * self.sigma.ln();
        det
    }
}
