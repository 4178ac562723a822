//! Cyclic reduction of a tridiagonal matrix: half of the unknowns eliminated at a time, all of them independently.
//!
//! Rows 0, 2, 4, … of each level are eliminated; rows 1, 3, … are the next level, a tridiagonal matrix of ⌊n/2⌋ rows:
//!
//! ```text
//! αᵢ = aᵢ/bᵢ₋₁   γᵢ = cᵢ/bᵢ₊₁   aᵢ ← −αᵢ·aᵢ₋₁   bᵢ ← bᵢ − αᵢ·cᵢ₋₁ − γᵢ·aᵢ₊₁   cᵢ ← −γᵢ·cᵢ₊₁   (i odd)
//! ```
//!
//! R. W. Hockney, A fast direct solution of Poisson's equation using Fourier analysis, J. ACM 12 (1965) 95–113,
//! doi:10.1145/321250.321259; W. Gander & G. H. Golub, Cyclic reduction – history and applications, Scientific Computing
//! (Hong Kong 1997), Springer, 73–85. Departures: any n, not only 2^k − 1, by letting couplings beyond the end be absent; the
//! multipliers of all levels are kept, so that a right-hand side costs no divisions but one a row; transposed solves.
//!
//! It is block LU of the matrix with the even rows in front, hence elimination without pivoting: stable for diagonally
//! dominant, definite and M-matrices, and watched on all others. Every reduced row is compared with the row of A it came
//! from, and the factorization breaks down once half the digits of a row are lost. An odd size does not matter to it, a
//! vanishing diagonal does: such matrices break down at the first pivot.
//!
//! [`Switch::Parallel`] ends the reduction at a size from which on [`ParallelCyclicReduction`] takes the rest, with fewer
//! levels to pass one after the other: Y. Zhang, J. Cohen, J. D. Owens, Fast tridiagonal solvers on the GPU, PPoPP 2010,
//! doi:10.1145/1693453.1693472.
//!
//! Storage: at most 5n values for the factors and 4n of work kept for refactorisation. Cost: 6n flops and 2n divisions to
//! factor; 8n flops and n divisions a right-hand side, in place, in log₂n passes each way over strided rows.

use bt_formats::{Monitor, Op, Par, Progress, RealScalar, Scalar, Tridiagonal, zero};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::zeros;
use crate::parallel_cyclic_reduction::ParallelCyclicReduction;
use crate::pivot::Pivot;
use crate::tridiagonal_lu::input_norms;
use crate::watch::Watch;

/// Where cyclic reduction ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// At a single row.
    #[default]
    Never,
    /// At the first level of at most so many rows, which parallel cyclic reduction solves.
    Parallel {
        /// Most rows of that level.
        at_most: usize,
    },
}

/// A tridiagonal matrix in the factors of cyclic reduction.
///
/// ```text
/// level 0, rows in order        level 1        level 2
/// b c            eliminated
/// a b c                         b c            eliminated
///   a b c        eliminated
///     a b c                     a b c                         b
///       a b c    eliminated
///         a b                     a b          eliminated
/// ```
///
/// ```
/// use bt_direct::{CyclicReduction, Factorization};
/// use bt_formats::Tridiagonal;
/// let a = Tridiagonal::new(vec![0.0, -1.0, -1.0], vec![2.0; 3], vec![-1.0, -1.0, 0.0])?;
/// let mut x = [1.0, 0.0, 1.0];
/// CyclicReduction::new(&a)?.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0; 3]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct CyclicReduction<T: Scalar> {
    n: usize,
    switch: Switch,
    levels: Vec<Level>,
    /// For each level α and γ of its odd rows, then a, b, c of its even rows.
    values: Vec<T>,
    /// The rows that the levels leave; none without a switch.
    rest: Option<ParallelCyclicReduction<T>>,
    /// The level at hand during factorization: a, b, c.
    work: [Vec<T>; 3],
    /// The largest modulus of the row of A that each row came from.
    sizes: Vec<T::Real>,
    stats: FactorStats,
    det: LogDet<T>,
}

/// One level: `n` rows, of which the odd ones go on.
#[derive(Clone, Copy, Debug)]
struct Level {
    n: usize,
    start: usize,
}

/// The factors of one level.
struct Factors<'a, T> {
    alpha: &'a [T],
    gamma: &'a [T],
    a: &'a [T],
    b: &'a [T],
    c: &'a [T],
}

impl<T: Scalar> CyclicReduction<T> {
    /// Factors `a` by cyclic reduction down to one row.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row where a pivot is zero or a row has lost half its digits (the matrix may well
    /// be regular: use `tridiagonal-lu`); [`FactorError::Input`] on a NaN or infinity.
    ///
    /// # Cost
    /// 6n flops, 2n divisions, 9n values.
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        Self::with_options(a, Switch::Never, &mut ())
    }

    /// Factors `a`, the last levels as told, reporting `Progress::Step { phase: "setup", .. }` in levels.
    ///
    /// # Errors
    /// As [`CyclicReduction::new`]; [`FactorError::Stopped`] when the monitor says so.
    #[inline(never)]
    pub fn with_options(a: &Tridiagonal<T>, switch: Switch, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.diag().len();
        let least = match switch {
            Switch::Never => 0,
            Switch::Parallel { at_most } => at_most,
        };
        let (mut levels, mut rows, mut start) = (Vec::new(), n, 0);
        while rows > least {
            levels.push(Level { n: rows, start });
            start += 2 * (rows / 2) + 3 * rows.div_ceil(2);
            rows /= 2;
        }
        let rest = (rows > 0).then(|| ParallelCyclicReduction::allocate(rows)).transpose()?;
        let mut sizes = Vec::new();
        crate::memory::reserve(&mut sizes, n)?;
        sizes.resize(n, zero());
        let mut out = Self {
            n,
            switch,
            levels,
            values: zeros(start)?,
            rest,
            work: [zeros(n)?, zeros(n)?, zeros(n)?],
            sizes,
            stats: FactorStats::default(),
            det: LogDet::one(),
        };
        out.refactor_with_monitor(a, monitor)?;
        Ok(out)
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`CyclicReduction::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// As [`CyclicReduction::refactor`], observed as in [`CyclicReduction::with_options`].
    ///
    /// # Errors
    /// As [`CyclicReduction::refactor`]; [`FactorError::Stopped`] when the monitor says so.
    pub fn refactor_with_monitor(&mut self, a: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.diag().len())?;
        let outcome = self.factor(a, monitor);
        if outcome.is_err() {
            self.values.fill(T::nan_impl());
            if let Some(rest) = &mut self.rest {
                rest.void();
            }
            self.det = LogDet::void();
            self.stats = self.stats.void();
        }
        outcome
    }

    #[inline(never)]
    fn factor(&mut self, matrix: &Tridiagonal<T>, monitor: &mut dyn Monitor) -> Result<()> {
        let (norm_one, max_a) = input_norms(matrix)?;
        let method = self.method();
        let [a, b, c] = &mut self.work;
        a.copy_from_slice(matrix.lower());
        b.copy_from_slice(matrix.diag());
        c.copy_from_slice(matrix.upper());
        for i in 0..self.n {
            self.sizes[i] = a[i].abs1().max_nan(b[i].abs1()).max_nan(c[i].abs1());
        }
        self.det = LogDet::one();
        let mut watch = Watch::new(method, max_a);
        let mut rows = self.n;
        for (k, level) in self.levels.iter().enumerate() {
            // Row i of this level came from this row of A.
            let origin = |i: usize| ((i + 1) << k) - 1;
            rows = level.n / 2;
            let (odd, even) = (level.n / 2, level.n.div_ceil(2));
            let place = &mut self.values[level.start..level.start + 2 * odd + 3 * even];
            let (alpha, place) = place.split_at_mut(odd);
            let (gamma, place) = place.split_at_mut(odd);
            let (ea, place) = place.split_at_mut(even);
            let (eb, ec) = place.split_at_mut(even);
            for j in 0..even {
                (ea[j], eb[j], ec[j]) = (a[2 * j], b[2 * j], c[2 * j]);
                watch.pivot(eb[j], origin(2 * j))?;
                self.det.multiply(eb[j]);
            }
            for j in 0..odd {
                let i = 2 * j + 1;
                let size = self.sizes[i];
                let right = i + 1 < level.n;
                let left = a[i];
                let [over, next_a] = if right { [c[i], ea[j + 1]] } else { [zero(); 2] };
                alpha[j] = Pivot::new(eb[j]).divide(left);
                gamma[j] = if right { Pivot::new(eb[j + 1]).divide(over) } else { zero() };
                // The products αᵢcᵢ₋₁, γᵢaᵢ₊₁, αᵢaᵢ₋₁, γᵢcᵢ₊₁ by way of ratios of a row, which do not overflow before them.
                let products = [
                    alpha[j] * ec[j],
                    gamma[j] * next_a,
                    alpha[j] * ea[j],
                    if right { gamma[j] * ec[j + 1] } else { zero() },
                ];
                let d = b[i] - products[0] - products[1];
                watch.row(&products, d, size, origin(i))?;
                // Row j of the next level; this level's rows up to 2j are done with.
                (a[j], b[j], c[j]) = (-products[2], d, -products[3]);
                self.sizes[j] = size;
            }
            let step = Progress::Step { phase: "setup", done: k + 1, total: self.levels.len() };
            if monitor.observe(step).is_break() {
                return Err(FactorError::Stopped);
            }
        }
        if let Some(rest) = &mut self.rest {
            let shift = self.levels.len();
            let source = [&a[..rows], &b[..rows], &c[..rows]];
            rest.factor(source, &self.sizes[..rows], &mut watch, &|i| ((i + 1) << shift) - 1)?;
            let det = rest.log_det();
            self.det.sign *= det.sign;
            self.det.log_abs += det.log_abs;
        }
        let n = self.n;
        let rest = self.rest.as_ref().map(|r| (r.nnz(), r.bytes())).unwrap_or_default();
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { watch.growth(max_a) },
            min_pivot: if n == 0 { 0.0 } else { watch.min_pivot },
            boosted_pivots: 0,
            nnz: self.values.len() + rest.0,
            bytes: (self.values.len() + 3 * n) * size_of::<T>() + size_of_val(&*self.sizes) + rest.1,
            flops: 8.0 * n as f64,
        };
        Ok(())
    }

    fn level(&self, level: &Level) -> Factors<'_, T> {
        let (odd, even) = (level.n / 2, level.n.div_ceil(2));
        let (alpha, values) = self.values[level.start..].split_at(odd);
        let (gamma, values) = values.split_at(odd);
        let (a, values) = values.split_at(even);
        let (b, values) = values.split_at(even);
        Factors { alpha, gamma, a, b, c: &values[..even] }
    }

    fn solve_column(&self, op: Op, x: &mut [T]) {
        let par = Par::auto(2 * size_of_val(x));
        let map = |v: T| if op == Op::Adjoint { Scalar::conj(v) } else { v };
        // Down: the odd rows get what the even ones contribute.
        for (k, level) in self.levels.iter().enumerate() {
            let f = self.level(level);
            let rows = Rows { first: (1 << k) - 1, stride: 1 << k, n: level.n };
            if op == Op::Identity {
                // fᵢ ← fᵢ − αᵢ·fᵢ₋₁ − γᵢ·fᵢ₊₁, i odd
                rows.update_odd(x, par, &|j, v, left, right| v - f.alpha[j] * left - f.gamma[j] * right);
            } else {
                // z ← f/b on the even rows; fᵢ ← fᵢ − cᵢ₋₁·zᵢ₋₁ − aᵢ₊₁·zᵢ₊₁ on the odd ones
                rows.update_even(x, par, &|j, v, _, _| Pivot::new(map(f.b[j])).divide(v));
                rows.update_odd(x, par, &|j, v, left, right| {
                    let above = f.a.get(j + 1).map_or(zero(), |a| map(*a) * right);
                    v - map(f.c[j]) * left - above
                });
            }
        }
        if let Some(rest) = &self.rest {
            let k = self.levels.len();
            rest.solve_strided(op, x, (1 << k) - 1, 1 << k);
        }
        // Up: the even rows from their solved neighbours.
        for (k, level) in self.levels.iter().enumerate().rev() {
            let f = self.level(level);
            let rows = Rows { first: (1 << k) - 1, stride: 1 << k, n: level.n };
            if op == Op::Identity {
                // xᵢ ← (fᵢ − aᵢ·xᵢ₋₁ − cᵢ·xᵢ₊₁)/bᵢ, i even
                rows.update_even(x, par, &|j, v, left, right| {
                    Pivot::new(f.b[j]).divide(v - f.a[j] * left - f.c[j] * right)
                });
            } else {
                // xᵢ ← zᵢ − αᵢ₊₁·xᵢ₊₁ − γᵢ₋₁·xᵢ₋₁
                rows.update_even(x, par, &|j, v, left, right| {
                    let below = f.alpha.get(j).map_or(zero(), |a| map(*a) * right);
                    let above = if j > 0 { map(f.gamma[j - 1]) * left } else { zero() };
                    v - below - above
                });
            }
        }
    }
}

/// The rows of a level in the vector: `first`, `first + stride`, …
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    stride: usize,
    n: usize,
}

impl Rows {
    /// v ← f(j, v, left, right) for the odd rows i = 2j + 1; a neighbour beyond the end is 0.
    fn update_odd<T: Scalar>(self, x: &mut [T], par: Par, f: &(impl Fn(usize, T, T, T) -> T + Sync)) {
        self.update(x, 1, par, f);
    }

    /// The same for the even rows i = 2j.
    fn update_even<T: Scalar>(self, x: &mut [T], par: Par, f: &(impl Fn(usize, T, T, T) -> T + Sync)) {
        self.update(x, 0, par, f);
    }

    fn update<T: Scalar>(self, x: &mut [T], parity: usize, par: Par, f: &(impl Fn(usize, T, T, T) -> T + Sync)) {
        if self.n > 0 {
            let x = &mut x[self.first..];
            update(x, self.stride, 0, self.n, parity, [zero(); 2], par, f);
        }
    }
}

/// Rows `start..start + n` of a level, the first of which is x[0]; `beside` are the rows before and after them. Rows of one
/// parity read rows of the other only, so that they may be done in any order and cut anywhere.
fn update<T: Scalar>(
    x: &mut [T],
    stride: usize,
    start: usize,
    n: usize,
    parity: usize,
    beside: [T; 2],
    par: Par,
    f: &(impl Fn(usize, T, T, T) -> T + Sync),
) {
    const ROWS: usize = 1 << 14;
    if par == Par::Rayon && n > ROWS {
        let half = n / 2;
        let [before, after] = [x[(half - 1) * stride], x[half * stride]];
        let (left, right) = x.split_at_mut(half * stride);
        bt_formats::join(
            || update(left, stride, start, half, parity, [beside[0], after], par, f),
            || update(right, stride, start + half, n - half, parity, [before, beside[1]], par, f),
        );
        return;
    }
    let mut i = (start + parity) % 2;
    while i < n {
        let left = if i > 0 { x[(i - 1) * stride] } else { beside[0] };
        let right = if i + 1 < n { x[(i + 1) * stride] } else { beside[1] };
        let j = (start + i - parity) / 2;
        x[i * stride] = f(j, x[i * stride], left, right);
        i += 2;
    }
}

impl<T: Scalar> Factorization<T> for CyclicReduction<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        match self.switch {
            Switch::Never => "cyclic-reduction",
            Switch::Parallel { .. } => "cr-pcr",
        }
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
        // [2 1 .; 1 3 1; . 1 4]: row 1 becomes 3 − 1/2 − 1/4.
        let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![2.0, 3.0, 4.0], vec![1.0, 1.0, 0.0]).unwrap();
        let f = CyclicReduction::new(&a).unwrap();
        assert_eq!(f.levels.iter().map(|l| l.n).collect::<Vec<_>>(), [3, 1]);
        let level = f.level(&f.levels[0]);
        assert_eq!((level.alpha, level.gamma, level.b), (&[0.5][..], &[0.25][..], &[2.0, 4.0][..]));
        assert_eq!(f.level(&f.levels[1]).b, [2.25]);
        assert!(f64::abs(f.log_det().log_abs - 18f64.ln()) < 1e-15);
    }

    #[test]
    fn breakdowns_name_the_row_of_the_matrix() {
        // Row 1 cancels: 1 − 1/1 − 0; it is the pivot of level 1.
        let a = Tridiagonal::new(vec![0.0, 1.0, 0.0], vec![1.0, 1.0, 1.0], vec![1.0, 0.0, 0.0]).unwrap();
        let message = CyclicReduction::new(&a).unwrap_err().to_string();
        assert!(message.contains("row 1 ") && message.contains("tridiagonal-lu"), "{message}");
        let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![1.0, 1.0, 0.0], vec![1.0, 1.0, 0.0]).unwrap();
        assert!(CyclicReduction::new(&a).unwrap_err().to_string().contains("row 2 "));
        let a = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![1e-12, 1.0, 1.0], vec![1.0, 1.0, 0.0]).unwrap();
        assert!(CyclicReduction::new(&a).unwrap_err().to_string().contains("row 1 "));
    }
}
