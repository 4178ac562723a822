//! Parallel cyclic reduction: every row eliminates both its neighbours, at distance 1, 2, 4, …, until all stand alone.
//!
//! ```text
//! αᵢ = aᵢ/bᵢ₋ₛ   γᵢ = cᵢ/bᵢ₊ₛ   aᵢ ← −αᵢ·aᵢ₋ₛ   bᵢ ← bᵢ − αᵢ·cᵢ₋ₛ − γᵢ·aᵢ₊ₛ   cᵢ ← −γᵢ·cᵢ₊ₛ   (all i; s = 1, 2, 4, …)
//! ```
//!
//! R. W. Hockney & C. R. Jesshope, Parallel Computers 2, Adam Hilger, 1988, §5.4.2; Zhang, Cohen & Owens, PPoPP 2010,
//! doi:10.1145/1693453.1693472. Departures: any n; the multipliers of all levels are kept for further right-hand sides and
//! for transposed ones. No pivoting: rows are watched as in `cyclic_reduction.rs`; and as each
//! unknown is computed on its own, with errors that its neighbours' do not cancel, the factorization also breaks down where
//! a row cancels to less than half its digits. The growth reported is the product of both, so that backward errors are below
//! a small multiple of n·u·growth.
//!
//! det A is the product of the b of row i at the level at which cyclic reduction would eliminate it, the number of trailing
//! ones of i: the rows of one parity are the reduced matrix of the other.
//!
//! Storage: n(2⌈log₂n⌉ + 1) values for the factors, 6n of work kept for refactorisation, 2n a solving thread. Cost: 8n flops
//! and 2n divisions a level; a right-hand side 4n a level and n divisions, in ⌈log₂n⌉ passes of long vectors.

use std::sync::{Mutex, PoisonError};

use bt_formats::{Monitor, Op, Par, Progress, RealScalar, Scalar, Tridiagonal, zero};
use faer::MatMut;
use rayon::prelude::*;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::input_norms;
use crate::watch::Watch;

/// A tridiagonal matrix in the factors of parallel cyclic reduction: D⁻¹·M_L·…·M₂·M₁ = A⁻¹ with rows (−αᵢ, 1, −γᵢ) of Mₖ at
/// distance 2^(k−1).
///
/// ```
/// use bt_direct::{Factorization, ParallelCyclicReduction};
/// use bt_formats::Tridiagonal;
/// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
/// let mut x = [1.0, 0.0, 1.0];
/// ParallelCyclicReduction::new(&a)?.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct ParallelCyclicReduction<T: Scalar> {
    n: usize,
    /// α and γ of each level, n values each.
    multipliers: Vec<T>,
    /// D.
    diag: Vec<T>,
    /// The level at hand and the next during factorization: a, b, c.
    work: [Vec<T>; 6],
    sizes: Vec<T::Real>,
    /// Vectors of the threads that solve at the same time.
    scratch: Mutex<Vec<Vec<T>>>,
    stats: FactorStats,
    det: LogDet<T>,
}

impl<T: Scalar> ParallelCyclicReduction<T> {
    /// Factors `a`.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row where a pivot is zero or a row has lost half its digits (the matrix may well
    /// be regular: use `tridiagonal-lu`); [`FactorError::Input`] on a NaN or infinity.
    ///
    /// # Cost
    /// (8 flops and 2 divisions)·n⌈log₂n⌉, n(2⌈log₂n⌉ + 9) values.
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// As [`ParallelCyclicReduction::new`], reporting `Progress::Step { phase: "setup", .. }` in levels.
    ///
    /// # Errors
    /// As [`ParallelCyclicReduction::new`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn with_monitor(a: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let mut out = Self::allocate(a.diag().len())?;
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    #[inline(never)]
    pub(crate) fn allocate(n: usize) -> Result<Self> {
        let mut work = [const { Vec::new() }; 6];
        for w in &mut work {
            *w = zeros(n)?;
        }
        let mut sizes = Vec::new();
        crate::memory::reserve(&mut sizes, n)?;
        sizes.resize(n, zero());
        let mut scratch = Vec::with_capacity(64);
        // Two for a thread that solves a strided part: the part, and its next level.
        scratch.extend([zeros(n)?, zeros(n)?]);
        Ok(Self {
            n,
            multipliers: zeros(n.saturating_mul(2 * n_levels(n)))?,
            diag: zeros(n)?,
            work,
            sizes,
            scratch: Mutex::new(scratch),
            stats: FactorStats::default(),
            det: LogDet::one(),
        })
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`ParallelCyclicReduction::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`ParallelCyclicReduction::refactor`], observed as in [`ParallelCyclicReduction::with_monitor`].
    ///
    /// # Errors
    /// As [`ParallelCyclicReduction::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.diag().len())?;
        let outcome = self.factor_matrix(a, monitor);
        if outcome.is_err() {
            self.void();
        }
        outcome
    }

    fn factor_matrix(&mut self, a: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (norm_one, max_a) = input_norms(a)?;
        let (lower, diag, upper) = (a.lower(), a.diag(), a.upper());
        let mut sizes = std::mem::take(&mut self.sizes);
        for (i, size) in sizes.iter_mut().enumerate() {
            *size = lower[i].abs1().max_nan(diag[i].abs1()).max_nan(upper[i].abs1());
        }
        let mut watch = Watch::new(self.method(), max_a);
        let outcome = self.factor_levels([lower, diag, upper], &sizes, &mut watch, &|i| i, monitor);
        self.sizes = sizes;
        outcome?;
        let n = self.n;
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { watch.growth(max_a) },
            min_pivot: if n == 0 { 0.0 } else { watch.min_pivot },
            boosted_pivots: 0,
            nnz: self.nnz(),
            bytes: self.bytes(),
            flops: 10.0 * (n * n_levels(n)) as f64,
        };
        Ok(())
    }

    /// The levels of (a, b, c), whose rows came from rows of the given `sizes`; `origin` names them.
    #[inline(never)]
    pub(crate) fn factor(
        &mut self,
        source: [&[T]; 3],
        sizes: &[T::Real],
        watch: &mut Watch,
        origin: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        self.factor_levels(source, sizes, watch, origin, &mut ())
    }

    fn factor_levels(
        &mut self,
        source: [&[T]; 3],
        sizes: &[T::Real],
        watch: &mut Watch,
        origin: &dyn Fn(usize) -> usize,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let n = self.n;
        let [a, b, c, next_a, next_b, next_c] = &mut self.work;
        let [mut now, mut next] = [[a, b, c], [next_a, next_b, next_c]];
        for (now, source) in now.iter_mut().zip(source) {
            now.copy_from_slice(source);
        }
        self.det = LogDet::one();
        for k in 0..n_levels(n) {
            let s = 1usize << k;
            let [a, b, c] = &now;
            let (alpha, gamma) = self.multipliers[2 * k * n..2 * (k + 1) * n].split_at_mut(n);
            for i in 0..n {
                watch.pivot(b[i], origin(i))?;
                if i.trailing_ones() as usize == k {
                    self.det.multiply(b[i]);
                }
            }
            for i in 0..n {
                let (mut d, mut terms) = (b[i], [zero(); 4]);
                (alpha[i], gamma[i]) = (zero(), zero());
                if i >= s {
                    alpha[i] = Pivot::new(b[i - s]).divide(a[i]);
                    (terms[0], terms[2]) = (alpha[i] * c[i - s], alpha[i] * a[i - s]);
                }
                if i + s < n {
                    gamma[i] = Pivot::new(b[i + s]).divide(c[i]);
                    (terms[1], terms[3]) = (gamma[i] * a[i + s], gamma[i] * c[i + s]);
                }
                d = d - terms[0] - terms[1];
                watch.row(&terms, d, sizes[i], origin(i))?;
                (next[0][i], next[1][i], next[2][i]) = (-terms[2], d, -terms[3]);
            }
            std::mem::swap(&mut now, &mut next);
            let step = Progress::Step { phase: "setup", done: k + 1, total: n_levels(n) };
            if monitor.observe(step).is_break() {
                return Err(FactorError::Stopped);
            }
        }
        for i in 0..n {
            let d = now[1][i];
            watch.alone(d, sizes[i], origin(i))?;
            if i.trailing_ones() as usize >= n_levels(n) {
                self.det.multiply(d);
            }
            self.diag[i] = d;
        }
        Ok(())
    }

    /// Leaves factors that turn every right-hand side into NaN.
    pub(crate) fn void(&mut self) {
        self.diag.fill(T::nan_impl());
        self.det = LogDet { sign: T::nan_impl(), log_abs: f64::NAN };
        self.stats = self.stats.void();
    }

    pub(crate) fn nnz(&self) -> usize {
        self.multipliers.len() + self.n
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.multipliers.len() + 8 * self.n) * size_of::<T>() + size_of_val(&*self.sizes)
    }

    /// Solves for rows `first`, `first + stride`, … of x.
    pub(crate) fn solve_strided(&self, op: Op, x: &mut [T], first: usize, stride: usize) {
        let mut rows = self.take_scratch();
        let places = (first..).step_by(stride);
        rows.iter_mut().zip(places.clone()).for_each(|(v, at)| *v = x[at]);
        self.solve_column(op, &mut rows);
        rows.iter().zip(places).for_each(|(v, at)| x[at] = *v);
        self.put_scratch(rows);
    }

    fn take_scratch(&self) -> Vec<T> {
        let pooled = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(|| vec![zero(); self.n])
    }

    fn put_scratch(&self, rows: Vec<T>) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(rows);
    }

    fn solve_column(&self, op: Op, x: &mut [T]) {
        let mut y = self.take_scratch();
        let par = Par::auto(4 * size_of_val(x));
        let levels = n_levels(self.n);
        let map = |v: T| if op == Op::Adjoint { Scalar::conj(v) } else { v };
        match op {
            Op::Identity => {
                for k in 0..levels {
                    let (alpha, gamma) = self.level(k);
                    // f ← Mₖ·f
                    pass(&mut y, x, par, 1 << k, &|i, _| alpha[i], &|i, _| gamma[i]);
                    x.copy_from_slice(&y);
                }
                x.iter_mut().zip(&self.diag).for_each(|(x, &d)| *x = Pivot::new(d).divide(*x));
            }
            Op::Transpose | Op::Adjoint => {
                x.iter_mut().zip(&self.diag).for_each(|(x, &d)| *x = Pivot::new(map(d)).divide(*x));
                for k in (0..levels).rev() {
                    let (alpha, gamma) = self.level(k);
                    // f ← Mₖᵀ·f: what row i gave its neighbours
                    pass(&mut y, x, par, 1 << k, &|_, left| map(gamma[left]), &|_, right| map(alpha[right]));
                    x.copy_from_slice(&y);
                }
            }
        }
        self.put_scratch(y);
    }

    fn level(&self, k: usize) -> (&[T], &[T]) {
        let n = self.n;
        self.multipliers[2 * k * n..2 * (k + 1) * n].split_at(n)
    }
}

/// yᵢ ← xᵢ − l(i, i − s)·xᵢ₋ₛ − r(i, i + s)·xᵢ₊ₛ, where the neighbours exist.
fn pass<T: Scalar>(
    y: &mut [T],
    x: &[T],
    par: Par,
    s: usize,
    l: &(impl Fn(usize, usize) -> T + Sync),
    r: &(impl Fn(usize, usize) -> T + Sync),
) {
    const ROWS: usize = 1 << 14;
    let n = x.len();
    let rows = |first: usize, y: &mut [T]| {
        for (i, y) in (first..).zip(y) {
            let mut v = x[i];
            if i >= s {
                v -= l(i, i - s) * x[i - s];
            }
            if i + s < n {
                v -= r(i, i + s) * x[i + s];
            }
            *y = v;
        }
    };
    if par == Par::Rayon {
        y.par_chunks_mut(ROWS).enumerate().for_each(|(k, y)| rows(k * ROWS, y));
    } else {
        rows(0, y);
    }
}

/// ⌈log₂n⌉.
fn n_levels(n: usize) -> usize {
    n.max(1).next_power_of_two().trailing_zeros() as usize
}

impl<T: Scalar> Factorization<T> for ParallelCyclicReduction<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        "pcr"
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        for_each_column(x, |x| self.solve_column(op, x));
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        self.refactor_with_monitor(&*a.tridiagonal()?, monitor)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        self.det
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_checked_levels() {
        // [2 1 .; 1 3 1; . 1 4] after s = 1: 2 − 1/3, 3 − 1/2 − 1/4, 4 − 1/3 and −1/3 at distance 2.
        let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![2.0, 3.0, 4.0], vec![1.0, 1.0, 0.0]).unwrap();
        let f = ParallelCyclicReduction::new(&a).unwrap();
        assert_eq!(f.level(0), (&[0.0, 0.5, 1.0 / 3.0][..], &[1.0 / 3.0, 0.25, 0.0][..]));
        assert_eq!(f.diag[1], 2.25);
        let first: f64 = f.diag[0] - (5.0 / 3.0 - 1.0 / 9.0 / (11.0 / 3.0));
        assert!(f64::abs(first) < 1e-15);
        assert!(f64::abs(f.log_det().log_abs - 18f64.ln()) < 1e-14);
        assert_eq!([1, 2, 3, 4, 5, 8, 9].map(n_levels), [0, 1, 2, 2, 3, 3, 4]);
    }
}
