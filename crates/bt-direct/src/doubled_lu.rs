//! Dense LU with partial pivoting in twice the precision of a double: what is left where rounding hides a pivot.
//!
//! P·A = L·U by columns, N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Algorithm 9.2,
//! doi:10.1137/1.9780898718027, in numbers of 106 bits (see [`bt_formats::Doubled`]). A is taken as it is, so that a pivot of
//! zero, or of the size of what this precision cannot tell, is a proof in practice: a double matrix that is regular has a
//! reciprocal condition number above 10⁻³⁰ in all but contrived cases.
//!
//! Storage: 32·n² bytes, imaginary parts of real matrices included, and 32·n a thread that solves. Cost: some 20n³ flops on the
//! calling thread, thirty to fifty times that of dense LU; for small systems only.

use std::marker::PhantomData;

use bt_formats::{Doubled, Error, Monitor, Op, Par, Progress, RealScalar, Scalar};
use faer::{Mat, MatMut, MatRef};

use crate::columns::{check_size, for_each_column};
use crate::dense::norms;
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::reserve;
use crate::pool::Pool;
use crate::refine::growth_limit;

const METHOD: &str = "dense-lu-doubled";

/// 2⁻¹⁰⁰, a little more than the rounding of a product.
const ROUNDING: f64 = 1.0 / (1u128 << 100) as f64;

/// A complex number; real matrices have no imaginary parts anywhere, and skip them.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    re: Doubled,
    im: Doubled,
}

impl Number {
    fn new<T: Scalar>(v: T) -> Self {
        Self { re: Doubled::new(v.re().to_f64()), im: Doubled::new(v.im().to_f64()) }
    }

    fn round<T: Scalar>(self) -> T {
        T::rounded(self.re.value(), self.im.value())
    }

    fn conj(self) -> Self {
        Self { im: -self.im, ..self }
    }

    /// |re| + |im|
    fn size(self) -> f64 {
        self.re.value().abs() + self.im.value().abs()
    }

    /// − a·b
    #[inline(always)]
    fn minus_product<const REAL: bool>(self, a: Self, b: Self) -> Self {
        if REAL {
            return Self { re: self.re - a.re * b.re, im: self.im };
        }
        Self { re: self.re - a.re * b.re + a.im * b.im, im: self.im - a.re * b.im - a.im * b.re }
    }

    fn divided_by(self, p: Self) -> Self {
        if p.im == Doubled::default() {
            return Self { re: self.re / p.re, im: self.im / p.re };
        }
        let norm = p.re * p.re + p.im * p.im;
        let re = self.re * p.re + self.im * p.im;
        let im = self.im * p.re - self.re * p.im;
        Self { re: re / norm, im: im / norm }
    }
}

/// P·A = L·U of a dense matrix in twice the precision of a double.
///
/// ```
/// use bt_direct::{DoubledLu, Factorization};
/// use faer::mat;
/// // In doubles the second pivot is 1e20 − 1e20 = 0.
/// let lu = DoubledLu::new(mat![[1e20, 1.0], [1e20, 2.0]].as_ref())?;
/// let mut x = [1e20 + 1.0, 1e20 + 2.0];
/// lu.solve_vec_in_place(&mut x);
/// assert_eq!(x, [1.0, 0.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct DoubledLu<T: Scalar> {
    n: usize,
    /// By columns.
    values: Vec<Number>,
    /// Row exchanged with row k in step k.
    pivots: Vec<u32>,
    stats: FactorStats,
    /// Vectors of the threads that solve at the same time.
    scratch: Pool<Vec<Number>>,
    scalar: PhantomData<T>,
}

impl<T: Scalar> std::fmt::Debug for DoubledLu<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoubledLu").field("n", &self.n).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<T: Scalar> DoubledLu<T> {
    /// Factors a square matrix of any strides, whose rows and columns should have one size.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column all of whose candidates are at most n·2⁻¹⁰⁰ times the largest number met;
    /// [`FactorError::Breakdown`] where that has grown beyond 2⁵⁰; [`FactorError::Input`] for NaN and infinity, when `a` is not
    /// square, and when there is not the memory.
    ///
    /// # Cost
    /// Some 20n³ flops, four times as many for complex scalars.
    pub fn new(a: MatRef<'_, T>) -> Result<Self> {
        Self::with_monitor(a, &mut ())
    }

    /// Like [`DoubledLu::new`], observed at every column.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn with_monitor(a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<Self> {
        let n = a.nrows();
        check_size("columns of the matrix", n, a.ncols())?;
        if u32::try_from(n).is_err() {
            let (what, limit) = ("dense LU in twice the precision", "32-bit row numbers".into());
            return Err(Error::TooLarge { what, needed: format!("{n} rows"), limit }.into());
        }
        // What is wrong with the numbers is told before memory is taken for them.
        norms(METHOD, a, Par::Seq)?;
        let (mut values, mut pivots) = (Vec::new(), Vec::new());
        reserve(&mut values, n.saturating_mul(n))?;
        reserve(&mut pivots, n)?;
        let (stats, scratch) = (FactorStats::default(), Pool::new());
        scratch.put(vec![Number::default(); n]);
        let mut lu = Self { n, values, pivots, stats, scratch, scalar: PhantomData };
        lu.factor(a, monitor)?;
        Ok(lu)
    }

    /// Factors another matrix of the same size without taking memory. After an error the factors are void: solves give NaN until a
    /// refactorisation succeeds.
    ///
    /// # Errors
    /// As [`DoubledLu::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        self.refactor_with_monitor(a, &mut ())
    }

    /// Like [`DoubledLu::refactor`], observed at every column.
    ///
    /// # Errors
    /// Also [`FactorError::Stopped`].
    #[inline(never)]
    pub fn refactor_with_monitor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        check_size("size of the matrix", self.n, a.nrows())?;
        check_size("columns of the matrix", self.n, a.ncols())?;
        let done = self.factor(a, monitor);
        if done.is_err() {
            let nan = Number { re: Doubled::new(f64::NAN), im: Doubled::new(f64::NAN) };
            self.values.clear();
            self.values.resize(self.n * self.n, nan);
            self.pivots.clear();
            self.pivots.extend(0..self.n as u32);
            self.stats = self.stats.void();
        }
        done
    }

    fn factor(&mut self, a: MatRef<'_, T>, monitor: &mut dyn Monitor) -> Result<()> {
        let n = self.n;
        let norms = norms(METHOD, a, Par::Seq)?;
        self.values.clear();
        (0..n).for_each(|j| self.values.extend((0..n).map(|i| Number::new(a[(i, j)]))));
        self.pivots.clear();
        let (largest, smallest) =
            if T::IS_REAL { self.eliminate::<true>(monitor) } else { self.eliminate::<false>(monitor) }?;
        let max_a = (0..n).flat_map(|j| (0..n).map(move |i| a[(i, j)].abs1().to_f64())).fold(0.0, f64::max);
        self.stats = FactorStats {
            norm_one: norms.one,
            growth: if max_a > 0.0 { largest / max_a } else { 1.0 },
            min_pivot: if n == 0 { 0.0 } else { smallest },
            boosted_pivots: 0,
            nnz: n * n,
            bytes: size_of_val(&*self.values) + size_of_val(&*self.pivots),
            flops: 2.0 / 3.0 * (n as f64).powi(3),
        };
        Ok(())
    }

    /// The largest number met and the smallest pivot.
    fn eliminate<const REAL: bool>(&mut self, monitor: &mut dyn Monitor) -> Result<(f64, f64)> {
        let n = self.n;
        let max_a = self.values.iter().fold(0.0f64, |m, v| m.max(v.size()));
        let mut largest = max_a;
        let mut smallest = f64::INFINITY;
        for k in 0..n {
            if monitor.observe(Progress::Step { phase: "setup", done: k, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            let (done, rest) = self.values.split_at_mut((k + 1) * n);
            let column = &mut done[k * n..];
            let p = (k..n).fold(k, |p, i| if column[i].size() > column[p].size() { i } else { p });
            let size = column[p].size();
            if !(size > n as f64 * ROUNDING * largest) {
                return Err(FactorError::no_pivot(METHOD, k, None, largest / max_a, growth_limit(ROUNDING)));
            }
            smallest = smallest.min(column[p].re.value().hypot(column[p].im.value()));
            self.pivots.push(p as u32);
            column.swap(k, p);
            let pivot = column[k];
            // lᵢₖ ← aᵢₖ / aₖₖ
            column[k + 1..].iter_mut().for_each(|v| *v = v.divided_by(pivot));
            // aᵢⱼ ← aᵢⱼ − lᵢₖ·uₖⱼ
            for other in rest.chunks_exact_mut(n) {
                other.swap(k, p);
                let u = other[k];
                if u.size() == 0.0 {
                    continue;
                }
                for (v, &l) in other[k + 1..].iter_mut().zip(&column[k + 1..]) {
                    *v = v.minus_product::<REAL>(l, u);
                    largest = largest.max(v.size());
                }
            }
            // Earlier columns hold L, whose rows move too.
            done[..k * n].chunks_exact_mut(n).for_each(|column| column.swap(k, p));
        }
        Ok((largest, smallest))
    }

    /// y ← A⁻¹·y, or A⁻ᵀ·y.
    fn substitute<const REAL: bool>(&self, transposed: bool, y: &mut [Number]) {
        let n = self.n;
        let column = |k: usize| &self.values[k * n..(k + 1) * n];
        if transposed {
            // Uᵀ·Lᵀ·P
            for k in 0..n {
                let sum = (0..k).fold(y[k], |s, i| s.minus_product::<REAL>(column(k)[i], y[i]));
                y[k] = sum.divided_by(column(k)[k]);
            }
            for k in (0..n).rev() {
                y[k] = (k + 1..n).fold(y[k], |s, i| s.minus_product::<REAL>(column(k)[i], y[i]));
            }
            for (k, &p) in self.pivots.iter().enumerate().rev() {
                y.swap(k, p as usize);
            }
            return;
        }
        for (k, &p) in self.pivots.iter().enumerate() {
            y.swap(k, p as usize);
        }
        for k in 0..n {
            let v = y[k];
            (k + 1..n).for_each(|i| y[i] = y[i].minus_product::<REAL>(column(k)[i], v));
        }
        for k in (0..n).rev() {
            y[k] = y[k].divided_by(column(k)[k]);
            let v = y[k];
            (0..k).for_each(|i| y[i] = y[i].minus_product::<REAL>(column(k)[i], v));
        }
    }
}

impl<T: Scalar> Factorization<T> for DoubledLu<T> {
    fn n(&self) -> usize {
        self.n
    }

    fn method(&self) -> &'static str {
        METHOD
    }

    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        let mut y = self.scratch.take(|| vec![Number::default(); self.n]);
        for_each_column(x, |x| {
            // A⁻ᴴ·b = conj(A⁻ᵀ·conj(b))
            for (y, &v) in y.iter_mut().zip(&*x) {
                *y = if op == Op::Adjoint { Number::new(v).conj() } else { Number::new(v) };
            }
            if T::IS_REAL {
                self.substitute::<true>(op != Op::Identity, &mut y);
            } else {
                self.substitute::<false>(op != Op::Identity, &mut y);
            }
            for (x, y) in x.iter_mut().zip(&y) {
                *x = if op == Op::Adjoint { y.conj().round() } else { y.round() };
            }
        });
        self.scratch.put(y);
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
            det.multiply(self.values[k * self.n + k].round());
            if p as usize != k {
                det.negate();
            }
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use bt_formats::c64;
    use faer::{Mat, mat};

    use super::*;

    #[test]
    fn a_pivot_that_doubles_lose_is_found() {
        // The last pivot is −1e-17 + 1 − 1 in doubles.
        let a = mat![[5.0, -4.0, -1.0, 1.0], [-4.0, 7.0, 1.0, -1.0], [-1.0, 1.0, -1e-17, 0.0], [1.0, -1.0, 0.0, 0.0]];
        let lu = DoubledLu::new(a.as_ref()).unwrap();
        // A·(1, 2, 0, 1)
        let mut x = [-2.0, 9.0, 1.0, -1.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!((x[0], x[1], x[3]), (1.0, 2.0, 1.0));
        assert!(-1e-14 < x[2] && x[2] < 1e-14, "{x:?}");
        // det = −1e-17·det [[5, −4, 1], [−4, 7, −1], [1, −1, 0]] = −1e-17·(−4)
        let det = lu.log_det();
        assert!((det.sign * det.log_abs.exp() / 4e-17 - 1.0f64).abs() < 1e-12, "{det:?}");
    }

    #[test]
    fn singular_matrices_are_named_also_where_rounding_leaves_something() {
        let rank_one = Mat::from_fn(3, 3, |i, j| ((i + 1) * (j + 1)) as f64);
        let Err(FactorError::Singular(place)) = DoubledLu::new(rank_one.as_ref()) else { panic!("rank one") };
        assert_eq!(place.column, 1);
        // The third row is the sum of the others; its multipliers are 3/4 and 1/4, then thirds.
        let sum = mat![[3.0, 1.0, 1.0], [1.0, 1.0, 0.0], [4.0, 2.0, 1.0]];
        assert!(matches!(DoubledLu::new(sum.as_ref()), Err(FactorError::Singular(p)) if p.column == 2));
    }

    #[test]
    fn complex_systems_and_their_transposes() {
        let c = c64::new;
        let a = mat![[c(0.0, 1.0), c(2.0, 0.0)], [c(1.0, 1.0), c(0.0, -3.0)]];
        let lu = DoubledLu::new(a.as_ref()).unwrap();
        let x = [c(1.0, 2.0), c(-1.0, 0.5)];
        let at = |op: Op, i: usize, j: usize| match op {
            Op::Identity => a[(i, j)],
            Op::Transpose => a[(j, i)],
            Op::Adjoint => a[(j, i)].conj(),
        };
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let mut b: Vec<c64> = (0..2).map(|i| at(op, i, 0) * x[0] + at(op, i, 1) * x[1]).collect();
            lu.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut b, 2, 1));
            assert!(b.iter().zip(&x).all(|(b, x)| (b - x).norm() < 1e-15), "{op:?}: {b:?}");
        }
        // det = i·(−3i) − 2·(1 + i) = 1 − 2i
        let det = lu.log_det();
        assert!((det.sign * det.log_abs.exp() - c(1.0, -2.0)).norm() < 1e-14);
    }
}
