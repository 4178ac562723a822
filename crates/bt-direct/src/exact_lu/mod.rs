//! Exact LU of a dense matrix, in integers: the last word where rounding hides a pivot from every other method.
//!
//! Floating-point numbers are integers times powers of two. With powers of two taken out of rows and columns, A = R·M·C, elimination without
//! fractions keeps every entry an integer, a minor of M, E. H. Bareiss, Math. Comp. 22 (1968) 565–578,
//! doi:10.1090/S0025-5718-1968-0226829-0:
//!
//! ```text
//! mᵢⱼ ← (mₖₖ·mᵢⱼ − mᵢₖ·mₖⱼ) / m₍ₖ₋₁₎₍ₖ₋₁₎      exactly; the last one is ±det M
//! zᵢ  = (det·yᵢ − Σ_{j>i} mᵢⱼ·zⱼ) / mᵢᵢ         exactly; xᵢ = zᵢ / det, rounded once
//! ```
//!
//! A matrix is singular here where its determinant is zero, and nowhere else. Complex matrices are eliminated in Gaussian integers.
//!
//! Storage: minors of k rows have the bits of k rows of M, by Hadamard's bound; n²·n/2·(bits of a row) in all. Cost: ⅔n³
//! products, whose length grows alike: some n⁵·(bits/64)²/30 products of words, on the calling thread. For small systems only.

mod gaussian;

use std::marker::PhantomData;

use bt_formats::{Error, Monitor, Op, Par, Progress, RealScalar, Scalar, memory};
use faer::{Mat, MatMut, MatRef};

use crate::columns::{check_size, for_each_column};
use crate::dense::norms_or_overflow;
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::reserve;
use gaussian::{Gaussian, Parts};

const METHOD: &str = "exact-lu";

/// Powers of two of rows and columns, and the integers that are left, by their lengths.
struct Units {
    rows: Vec<i64>,
    cols: Vec<i64>,
    /// Bits of the largest number of each row, the longest first.
    bits: Vec<u64>,
}

impl Units {
    /// The largest powers that divide rows, then columns.
    fn of<T: Scalar>(a: MatRef<'_, T>) -> Self {
        let n = a.nrows();
        let lowest = |i: usize, j: usize| Parts::new(a[(i, j)]).lowest();
        let least = |exponents: &mut dyn Iterator<Item = i64>| exponents.min().unwrap_or(0);
        let rows: Vec<i64> = (0..n).map(|i| least(&mut (0..n).filter_map(|j| lowest(i, j)))).collect();
        let cols: Vec<i64> = (0..n).map(|j| least(&mut (0..n).filter_map(|i| Some(lowest(i, j)? - rows[i])))).collect();
        let longest = |i: usize| (0..n).map(|j| Parts::new(a[(i, j)]).bits_above(rows[i] + cols[j])).max().unwrap_or(0);
        let mut bits: Vec<u64> = (0..n).map(longest).collect();
        bits.sort_unstable_by(|a, b| b.cmp(a));
        Self { rows, cols, bits }
    }

    /// Bits that a minor of 1, 2, … n rows has at most: Π ‖mᵢ‖₂.
    fn minors(&self) -> impl Iterator<Item = f64> + '_ {
        let norm = 0.5 * (self.bits.len() as f64).log2() + 0.5;
        self.bits.iter().scan(0.0, move |sum, &bits| {
            *sum += bits as f64 + norm;
            Some(*sum)
        })
    }
}

/// P·A = L·U of a dense matrix in integers.
///
/// ```
/// use bt_direct::{ExactLu, Factorization};
/// use faer::mat;
/// // Two constraints that differ by 1e-20. The determinant is 1e-40, the last pivot −1 − 1e-40 + 1.
/// let a = mat![[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, -1e-20], [1.0, 0.0, 0.0, 0.0], [1.0, -1e-20, 0.0, 0.0]];
/// let lu = ExactLu::new(a.as_ref())?;
/// let mut x = [1.0, 1.0, 0.0, -1e-20];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct ExactLu<T: Scalar> {
    n: usize,
    /// Exponents of R and C.
    rows: Vec<i64>,
    cols: Vec<i64>,
    /// By rows: row k of U in and right of the diagonal, column k of L in and below it.
    values: Vec<Gaussian>,
    /// Row of A that is row k of P·A.
    order: Vec<u32>,
    /// Whether P is odd.
    is_odd: bool,
    stats: FactorStats,
    /// Whether the last refactorisation failed.
    failed: bool,
    scalar: PhantomData<T>,
}

impl<T: Scalar> std::fmt::Debug for ExactLu<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactLu").field("n", &self.n).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<T: Scalar> ExactLu<T> {
    /// Factors a square matrix of any strides.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column that depends on those before it; [`FactorError::Input`] for NaN and infinity, when `a`
    /// is not square, and when there is not the memory.
    ///
    /// # Cost
    /// [`ExactLu::work`] products of words, four times as many for complex scalars.
    pub fn new(a: MatRef<'_, T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`ExactLu::new`], observed at every column.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_size("columns of the matrix", n, a.ncols())?;
        if u32::try_from(n).is_err() {
            let (what, limit) = ("exact LU", "32-bit row numbers".into());
            return Err(Error::TooLarge { what, needed: format!("{n} rows"), limit }.into());
        }
        let norms = norms_or_overflow(a, Par::Seq)?;
        let units = Units::of(a);
        // Step k leaves n − k of either kind, minors of k + 1 rows.
        let bits: f64 = units.minors().enumerate().map(|(k, bits)| 2.0 * (n - k) as f64 * bits).sum();
        let parts = if T::IS_REAL { 1.0 } else { 2.0 };
        let words = parts * bits / 8.0 + (n * n * size_of::<Gaussian>()) as f64;
        memory::ask(words.min(u64::MAX as f64) as u64, "the factors of exact-lu")?;
        let Units { rows, cols, .. } = units;
        let (mut values, mut order) = (Vec::new(), Vec::new());
        reserve(&mut values, n.saturating_mul(n))?;
        reserve(&mut order, n)?;
        values.extend((0..n * n).map(|at| {
            let (i, j) = (at / n, at % n);
            Parts::new(a[(i, j)]).in_units(rows[i] + cols[j])
        }));
        order.extend(0..n as u32);
        let (stats, is_odd) = (FactorStats::default(), false);
        let mut lu = Self { n, rows, cols, values, order, is_odd, stats, failed: false, scalar: PhantomData };
        lu.eliminate(monitor)?;
        let bytes: u64 = lu.values.iter().map(|v| v.bits() / 8).sum();
        lu.stats = FactorStats {
            norm_one: norms.one,
            growth: 1.0,
            min_pivot: lu.smallest_pivot(),
            boosted_pivots: 0,
            nnz: n * n,
            bytes: bytes as usize + size_of_val(&*lu.values) + size_of_val(&*lu.order),
            flops: 2.0 / 3.0 * (n as f64).powi(3),
        };
        Ok(lu)
    }

    /// Factors another matrix of the same size, anew: integers take what memory they need. After an error the factors are void: solves
    /// give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`ExactLu::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`ExactLu::refactor`], observed at every column.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.nrows())?;
        check_size("columns of the matrix", self.n, a.ncols())?;
        // The numbers that there are make place for the new ones.
        self.failed = true;
        self.values = Vec::new();
        self.stats = self.stats.void();
        *self = Self::with_monitor(a, monitor)?;
        Ok(())
    }

    /// Products of 64-bit words that the factorization takes at most, some nanoseconds each.
    ///
    /// ```
    /// use bt_direct::ExactLu;
    /// use faer::Mat;
    /// let work = |n| ExactLu::work(Mat::<f64>::identity(n, n).as_ref());
    /// assert!(work(8) < 1e4 && work(16) > 4.0 * work(8));
    /// ```
    pub fn work(a: MatRef<'_, T>) -> f64 {
        let n = a.nrows();
        let parts = if T::IS_REAL { 1.0 } else { 4.0 };
        let words = |bits: f64| (bits / 64.0).ceil();
        // Two products and a quotient of an entry.
        let step = |(k, bits): (usize, f64)| 3.0 * ((n - k) as f64).powi(2) * words(bits).powi(2);
        parts * Units::of(a).minors().enumerate().map(step).sum::<f64>()
    }

    #[inline(never)]
    fn eliminate(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        let n = self.n;
        let mut before = Gaussian::one();
        for k in 0..n {
            if monitor.observe(Progress::Step { phase: "setup", done: k, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            // Any pivot but zero will do: the shortest makes short products.
            let candidates = (k..n).filter(|&i| !self.values[i * n + k].is_zero());
            let Some(p) = candidates.min_by_key(|&i| self.values[i * n + k].bits()) else {
                let place = Singularity { kind: SingularKind::Numerical, column: k, block: None };
                return Err(FactorError::Singular(place));
            };
            if p != k {
                let (above, below) = self.values.split_at_mut(p * n);
                above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
                self.order.swap(k, p);
                self.is_odd = !self.is_odd;
            }
            let (done, rest) = self.values.split_at_mut((k + 1) * n);
            let row = &done[k * n..];
            let pivot = &row[k];
            // mᵢⱼ ← (mₖₖ·mᵢⱼ − mᵢₖ·mₖⱼ) / m₍ₖ₋₁₎₍ₖ₋₁₎
            for other in rest.chunks_exact_mut(n) {
                let (left, right) = other.split_at_mut(k + 1);
                for (v, u) in right.iter_mut().zip(&row[k + 1..]) {
                    *v = pivot.product(v).minus(&left[k].product(u)).exact_quotient(&before);
                }
            }
            before = pivot.clone();
        }
        Ok(())
    }

    /// z with x = z / det M of M·x = y, or of Mᵀ·x = y; y is in the order of the rows of A, or of M transposed of its columns.
    #[inline(never)]
    fn substitute(&self, transposed: bool, y: Vec<Gaussian>) -> Vec<Gaussian> {
        let n = self.n;
        // The factors of the transpose are those of P·M transposed, since minors are.
        let at = |i: usize, j: usize| if transposed { &self.values[j * n + i] } else { &self.values[i * n + j] };
        let mut y = if transposed { y } else { self.order.iter().map(|&i| y[i as usize].clone()).collect() };
        let mut before = Gaussian::one();
        for k in 0..n {
            let (done, rest) = y.split_at_mut(k + 1);
            for (i, v) in rest.iter_mut().enumerate() {
                *v = at(k, k).product(v).minus(&at(k + 1 + i, k).product(&done[k])).exact_quotient(&before);
            }
            before = at(k, k).clone();
        }
        let det = self.determinant();
        for i in (0..n).rev() {
            let sum = (i + 1..n).fold(det.product(&y[i]), |sum, j| sum.minus(&at(i, j).product(&y[j])));
            y[i] = sum.exact_quotient(at(i, i));
        }
        if transposed {
            let mut x = vec![Gaussian::default(); n];
            y.into_iter().zip(&self.order).for_each(|(y, &i)| x[i as usize] = y);
            return x;
        }
        y
    }

    /// That of P·M.
    fn determinant(&self) -> Gaussian {
        self.values.last().map_or_else(Gaussian::one, Clone::clone)
    }

    /// min |uₖₖ|, in the units of A.
    fn smallest_pivot(&self) -> f64 {
        let n = self.n;
        let mut before = Gaussian::one();
        let mut least = f64::INFINITY;
        for k in 0..n {
            let pivot = &self.values[k * n + k];
            let unit = self.rows[self.order[k] as usize] + self.cols[k];
            least = least.min(pivot.rounded_quotient::<T>(&before, unit).abs1().to_f64());
            before = pivot.clone();
        }
        if n == 0 { 0.0 } else { least }
    }
}

impl<T: Scalar> Factorization<T> for ExactLu<T> {
    fn n(&self) -> usize {
        self.n
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    /// Every number of X is that of the exact solution, rounded once. Unlike those of other methods these solves allocate.
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        // R·M·C·x = b, or C·Mᵀ·R·x = b
        let (left, right) = if op == Op::Identity { (&self.rows, &self.cols) } else { (&self.cols, &self.rows) };
        // A⁻ᴴ·b = conj(A⁻ᵀ·conj(b))
        let conj = |v: Gaussian| if op == Op::Adjoint { v.conj() } else { v };
        let det = self.determinant();
        for_each_column(x, |x| {
            if self.failed || x.iter().any(|&v| !Scalar::is_finite(v)) {
                return x.fill(T::rounded(f64::NAN, f64::NAN));
            }
            let b: Vec<Parts> = x.iter().map(|&v| Parts::new(v)).collect();
            let unit = b.iter().zip(left).filter_map(|(b, r)| Some(b.lowest()? - r)).min().unwrap_or(0);
            let y = b.iter().zip(left).map(|(b, r)| conj(b.in_units(r + unit))).collect();
            let z = self.substitute(op != Op::Identity, y);
            for ((x, z), c) in x.iter_mut().zip(z).zip(right) {
                let value: T = z.rounded_quotient(&det, unit - c);
                *x = if op == Op::Adjoint { Scalar::conj(value) } else { value };
            }
        });
    }

    fn refactor(&mut self, a: Given<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let mut own = Mat::new();
        self.refactor_with_monitor(a.dense(&mut own)?, monitor)
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        if self.failed {
            return LogDet::void();
        }
        let (value, bits) = self.determinant().scaled::<T>();
        let mut det = LogDet::one();
        det.multiply(value);
        let exponent = self.rows.iter().chain(&self.cols).sum::<i64>() as f64 + bits as f64;
        det.log_abs += exponent * std::f64::consts::LN_2;
        if self.is_odd {
            det.negate();
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::c64;
    use faer::mat;

    use super::*;
    use crate::DoubledLu;

    #[test]
    fn a_determinant_that_twice_the_precision_loses_is_found() {
        let a = mat![[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, -1e-20], [1.0, 0.0, 0.0, 0.0], [1.0, -1e-20, 0.0, 0.0]];
        assert!(matches!(DoubledLu::new(a.as_ref()), Err(FactorError::Singular(_))));
        let det = ExactLu::new(a.as_ref()).unwrap().log_det();
        assert!((det.log_abs - 2.0 * 1e-20f64.ln()).abs() < 1e-12 && det.sign == 1.0, "{det:?}");
    }

    #[test]
    fn a_matrix_is_singular_where_its_determinant_is_zero_and_nowhere_else() {
        let rank_two = mat![[3.0, 1.0, 1.0], [1.0, 1.0, 0.0], [4.0, 2.0, 1.0]];
        assert!(matches!(ExactLu::new(rank_two.as_ref()), Err(FactorError::Singular(p)) if p.column == 2));
        // 0.1 + 0.2 is not 0.3 in doubles, and rounding makes it regular.
        let mut rounded = rank_two * faer::Scale(0.1);
        assert!(ExactLu::new(rounded.as_ref()).is_ok());
        (0..3).for_each(|j| rounded[(2, j)] = 2.0 * rounded[(1, j)]);
        assert!(matches!(ExactLu::new(rounded.as_ref()), Err(FactorError::Singular(p)) if p.column == 2));
    }

    /// Entries, rows and columns from one end of the range to the other.
    fn spread<T: Scalar>(n: usize, exponent: i32) -> Mat<T> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i32
        };
        Mat::from_fn(n, n, |_, _| {
            let mut part = || f64::from(next() % 1000) * 2f64.powi(next() % exponent - exponent / 2);
            T::rounded(part(), part())
        })
    }

    fn every_operator_is_solved_to_the_last_digit<T: Scalar>(exponent: i32) {
        let n = 7;
        let a = spread::<T>(n, exponent);
        let lu = ExactLu::new(a.as_ref()).unwrap();
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            // Right-hand sides that are exact: the columns of op(A).
            for j in 0..n {
                let mut b: Vec<T> = (0..n)
                    .map(|i| match op {
                        Op::Identity => a[(i, j)],
                        Op::Transpose => a[(j, i)],
                        Op::Adjoint => Scalar::conj(a[(j, i)]),
                    })
                    .collect();
                lu.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut b, n, 1));
                for (i, v) in b.iter().enumerate() {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!(*v == T::rounded(expected, 0.0), "{op:?}, row {i} of column {j}: {v}");
                }
            }
        }
    }

    #[test]
    fn all_scalars_over_all_of_the_range() {
        every_operator_is_solved_to_the_last_digit::<f64>(1800);
        every_operator_is_solved_to_the_last_digit::<c64>(1800);
        every_operator_is_solved_to_the_last_digit::<f32>(200);
        every_operator_is_solved_to_the_last_digit::<bt_formats::c32>(200);
    }

    #[test]
    fn determinants_of_complex_matrices_have_a_phase() {
        let c = c64::new;
        let a = mat![[c(0.0, 1.0), c(2.0, 0.0)], [c(1.0, 1.0), c(0.0, -3.0)]];
        // det = i·(−3i) − 2·(1 + i) = 1 − 2i
        let det = ExactLu::new(a.as_ref()).unwrap().log_det();
        assert!((det.sign * det.log_abs.exp() - c(1.0, -2.0)).norm() < 1e-14);
    }

    #[test]
    fn other_right_hand_sides_and_the_smallest_pivot() {
        let lu = ExactLu::new(mat![[2.0, 1.0], [1.0, 2.0]].as_ref()).unwrap();
        let mut x = [1.0, f64::INFINITY];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|x: &f64| x.is_nan()));
        let mut x = [0.0, 0.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [0.0, 0.0]);
        let mut x = [1.0, 0.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [2.0 / 3.0, -1.0 / 3.0]);
        // The shorter pivot is 1: u = 1, 2, then 1 − 2·2.
        assert_eq!(lu.stats().min_pivot, 1.0);
        assert!((lu.rcond() - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn norms_that_overflow_are_no_obstacle() {
        let lu = ExactLu::new(mat![[f64::MAX, 0.0], [f64::MAX, f64::MAX]].as_ref()).unwrap();
        let mut x = [f64::MAX, 0.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!((x, lu.stats().norm_one), ([1.0, -1.0], f64::INFINITY));
        let nan = ExactLu::new(mat![[1.0, 0.0], [f64::NAN, 1.0]].as_ref());
        assert!(matches!(nan, Err(FactorError::Input(Error::NonFinite { row: 1, col: 0, .. }))));
    }

    #[test]
    fn nothing_at_all() {
        let lu = ExactLu::new(Mat::<f64>::zeros(0, 0).as_ref()).unwrap();
        assert_eq!((lu.n(), lu.log_det().log_abs), (0, 0.0));
    }

    #[test]
    fn the_work_bounds_what_is_done() {
        let a = spread::<f64>(6, 1800);
        let lu = ExactLu::new(a.as_ref()).unwrap();
        let units = Units::of(a.as_ref());
        let longest = lu.values.iter().map(Gaussian::bits).max().unwrap() as f64;
        assert!(longest <= units.minors().last().unwrap() && longest > 0.2 * units.minors().last().unwrap());
    }
}
