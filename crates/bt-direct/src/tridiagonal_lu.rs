//! LU of a tridiagonal matrix with partial pivoting: the semantics of LAPACK's `gttrf` and `gttrs`.
//!
//! At step i the larger of the two candidates in column i becomes the pivot; the row exchanged brings a second
//! super-diagonal into U. Backward stable: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
//! §9.5–9.6, doi:10.1137/1.9780898718027 (the growth is at most 2).
//!
//! Storage: 4n values and n flags, 3n of them the matrix's own on request. Cost: at most 5n flops and n divisions to factor, 7n
//! flops and n divisions a right-hand side.

use std::array::from_fn;
use std::cell::Cell;

use bt_formats::{Error, Monitor, Op, RealScalar, Scalar, Tridiagonal, zero};
use faer::{ColMut, MatMut};

use crate::columns::check_size;
use crate::error::{FactorError, Place, Result, SingularKind, Singularity};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::pivot::Pivot;

/// P·A = L·U of a tridiagonal A, rows interchanged with the next where that pivot is larger.
///
/// ```text
/// U = [ d0 u0 s0    ]      at step i, multipliers[i] eliminates row i+1
///     [    d1 u1 s1 ]      with row i, after both were exchanged where
///     [       d2 u2 ]      exchanged[i] says so
///     [          d3 ]
/// ```
///
/// ```
/// use bt_direct::{Factorization, TridiagonalLu};
/// use bt_formats::Tridiagonal;
/// // [0 1; 1 0] has no LU without an exchange.
/// let a = Tridiagonal::new(vec![0.0, 1.0], vec![0.0, 0.0], vec![1.0, 0.0])?;
/// let mut x = [3.0, 4.0];
/// TridiagonalLu::new(&a)?.solve_vec_in_place(&mut x);
/// assert_eq!(x, [4.0, 3.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TridiagonalLu<T> {
    multipliers: Vec<T>,
    diag: Vec<T>,
    upper: Vec<T>,
    second: Vec<T>,
    exchanged: Vec<bool>,
    stats: FactorStats,
}

impl<T: Scalar> TridiagonalLu<T> {
    /// Factors `a`.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column whose pivot is exactly zero; [`FactorError::Input`] on a NaN
    /// or infinity.
    ///
    /// # Cost
    /// 5n flops, n divisions, 4n values.
    #[inline(never)]
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        let n = a.diag().len();
        let mut out = Self::around(zeros(n)?, zeros(n)?, zeros(n)?)?;
        out.refactor(a)?;
        Ok(out)
    }

    /// Factors `a` in its own storage: of the factors only the second super-diagonal and the flags are new memory.
    ///
    /// ```
    /// use bt_direct::{Factorization, TridiagonalLu};
    /// use bt_formats::Tridiagonal;
    /// let a = Tridiagonal::new(vec![0.0, 1.0], vec![0.0, 0.0], vec![1.0, 0.0])?;
    /// let mut x = [3.0, 4.0];
    /// TridiagonalLu::from_tridiagonal(a)?.solve_vec_in_place(&mut x);
    /// assert_eq!(x, [4.0, 3.0]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TridiagonalLu::new`].
    ///
    /// # Cost
    /// As [`TridiagonalLu::new`], with n values and n flags of memory where no clone shares the values.
    pub fn from_tridiagonal(a: Tridiagonal<T>) -> Result<Self> {
        let norms = input_norms(&a)?;
        let (lower, diag, upper) = a.into_parts();
        let mut out = Self::around(lower, diag, upper)?;
        out.factor(norms, None)?;
        Ok(out)
    }

    fn around(multipliers: Vec<T>, diag: Vec<T>, upper: Vec<T>) -> Result<Self> {
        let n = diag.len();
        let mut exchanged = Vec::new();
        reserve(&mut exchanged, n)?;
        exchanged.resize(n, false);
        Ok(Self { multipliers, diag, upper, second: zeros(n)?, exchanged, stats: FactorStats::default() })
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`TridiagonalLu::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        check_size("size of the matrix", self.diag.len(), a.diag().len())?;
        let outcome = input_norms(a).and_then(|norms| self.factor(norms, Some(a)));
        or_void(outcome, &mut self.diag, &mut self.stats)
    }

    /// Factors `a`, or what stands where the factors will be: row i + 1 is read before row i is written.
    #[inline(never)]
    fn factor(&mut self, (norm_one, max_a): (f64, f64), a: Option<&Tridiagonal<T>>) -> Result<()> {
        let n = self.diag.len();
        let [l, d, u] = [&mut self.multipliers, &mut self.diag, &mut self.upper].map(|v| in_cells(v));
        let rest = (&mut self.second[..], &mut self.exchanged[..]);
        let (max_u, min_pivot) = match a {
            Some(a) => {
                let (lower, diag, upper) = (&a.lower()[..n], &a.diag()[..n], &a.upper()[..n]);
                eliminate(n, |i| [lower[i], diag[i], upper[i]], [l, d, u], rest)
            }
            None => eliminate(n, |i| [l[i].get(), d[i].get(), u[i].get()], [l, d, u], rest),
        }?;
        if !max_u.is_finite() {
            let of_u =
                |j: usize| [self.diag.get(j), self.upper.get(j.wrapping_sub(1)), self.second.get(j.wrapping_sub(2))];
            let is_infinite = |u: &T| !u.abs1().to_f64().is_finite();
            let column = (0..n).find(|&j| of_u(j).into_iter().flatten().any(is_infinite));
            return Err(FactorError::overflow(self.method(), column.map(Place::Column)));
        }
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { max_u / max_a },
            min_pivot: if n == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: (4 * n).saturating_sub(4).max(n),
            bytes: n * (4 * size_of::<T>() + size_of::<bool>()),
            flops: 6.0 * n as f64,
        };
        Ok(())
    }

    /// A division waits for the one of the row before: columns go side by side.
    fn solve_columns<const N: usize>(&self, op: Op, x: MatMut<'_, T>) {
        let mut columns = x.col_iter_mut();
        let x: &mut [&mut [T]; N] = &mut from_fn(|_| {
            let column = columns.next().and_then(ColMut::try_as_col_major_mut);
            &mut column.expect("columns of X must be contiguous").as_slice_mut()[..self.diag.len()]
        });
        match op {
            Op::Identity => self.solve_plain(x),
            Op::Adjoint if !T::IS_REAL => self.solve_transposed(x, Scalar::conj),
            Op::Transpose | Op::Adjoint => self.solve_transposed(x, |v| v),
        }
    }

    fn solve_plain<const N: usize>(&self, x: &mut [&mut [T]; N]) {
        let n = self.diag.len();
        if n == 0 {
            return;
        }
        // x ← L⁻¹·P·x, the exchanges as they were made.
        let (l, exchanged) = (&self.multipliers[..n], &self.exchanged[..n]);
        let mut current: [T; N] = from_fn(|c| x[c][0]);
        for i in 0..n - 1 {
            for c in 0..N {
                let below = x[c][i + 1];
                let (top, rest) = if exchanged[i] { (below, current[c]) } else { (current[c], below) };
                x[c][i] = top;
                current[c] = rest - l[i] * top;
            }
        }
        for c in 0..N {
            x[c][n - 1] = current[c];
        }
        // xᵢ ← (xᵢ − uᵢ·xᵢ₊₁ − sᵢ·xᵢ₊₂)/dᵢ; the terms beyond the end have zero factors.
        let (d, u, s) = (&self.diag[..n], &self.upper[..n], &self.second[..n]);
        let (mut x1, mut x2) = ([zero::<T>(); N], [zero::<T>(); N]);
        for i in (0..n).rev() {
            let pivot = Pivot::new(d[i]);
            for c in 0..N {
                let sum = x[c][i] - s[i] * x2[c] - u[i] * x1[c];
                (x2[c], x1[c]) = (x1[c], pivot.divide(sum));
                x[c][i] = x1[c];
            }
        }
    }

    fn solve_transposed<const N: usize>(&self, x: &mut [&mut [T]; N], map: impl Fn(T) -> T) {
        let n = self.diag.len();
        // Uᵀy = x
        for i in 0..n {
            let pivot = Pivot::new(map(self.diag[i]));
            for c in 0..N {
                let mut sum = x[c][i];
                if i > 0 {
                    sum -= map(self.upper[i - 1]) * x[c][i - 1];
                }
                if i > 1 {
                    sum -= map(self.second[i - 2]) * x[c][i - 2];
                }
                x[c][i] = pivot.divide(sum);
            }
        }
        // x ← Pᵀ·L⁻ᵀ·y, last step first.
        for i in (0..n.saturating_sub(1)).rev() {
            for c in 0..N {
                let below = x[c][i + 1];
                x[c][i] -= map(self.multipliers[i]) * below;
                if self.exchanged[i] {
                    x[c].swap(i, i + 1);
                }
            }
        }
    }
}

impl<T: Scalar> Factorization<T> for TridiagonalLu<T> {
    fn n(&self) -> usize {
        self.diag.len()
    }
    fn method(&self) -> &'static str {
        "tridiagonal-lu"
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        while x.ncols() > 0 {
            let width = if x.ncols() >= 4 { 4 } else { x.ncols().min(2) };
            let (columns, rest) = x.split_at_col_mut(width);
            match width {
                4 => self.solve_columns::<4>(op, columns),
                2 => self.solve_columns::<2>(op, columns),
                _ => self.solve_columns::<1>(op, columns),
            }
            x = rest;
        }
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> Result<()> {
        self.refactor(&*a.tridiagonal()?)
    }
    fn stats(&self) -> FactorStats {
        self.stats
    }
    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for (&d, &exchanged) in self.diag.iter().zip(&self.exchanged) {
            det.multiply(d);
            if exchanged {
                det.negate();
            }
        }
        det
    }
}

/// The elimination; max|U| and the smallest pivot.
#[inline(always)]
fn eliminate<T: Scalar>(
    n: usize,
    row: impl Fn(usize) -> [T; 3],
    [multipliers, diag, upper]: [&[Cell<T>]; 3],
    (seconds, exchanged): (&mut [T], &mut [bool]),
) -> Result<(f64, f64)> {
    let (multipliers, diag, upper) = (&multipliers[..n], &diag[..n], &upper[..n]);
    let (seconds, exchanged) = (&mut seconds[..n], &mut exchanged[..n]);
    let (mut max_u, mut min_pivot) = (0.0f64, f64::INFINITY);
    let mut singular = None;
    // Row i as the eliminations before left it: (d, u).
    let [_, mut d, mut u] = if n > 0 { row(0) } else { [zero(); 3] };
    for i in 0..n {
        // Candidates: row i = (d, u, 0) and row i + 1 = (a, b, c).
        let [below, b, c] = if i + 1 < n { row(i + 1) } else { [zero(); 3] };
        let exchange = below.abs1() > d.abs1();
        let [pivot, first, second, other, other_first, other_second] =
            if exchange { [below, b, c, d, u, zero()] } else { [d, u, zero(), below, b, c] };
        // l ← other/pivot;  next row ← other row − l·pivot row
        let l = if pivot == zero() { zero() } else { Pivot::new(pivot).divide(other) };
        exchanged[i] = exchange;
        multipliers[i].set(l);
        diag[i].set(pivot);
        upper[i].set(first);
        seconds[i] = second;
        d = other_first - l * first;
        u = other_second - l * second;
        if pivot == zero() && singular.is_none() {
            singular = Some(i);
        }
        max_u = max_u.max_nan(pivot.abs1().max_nan(first.abs1()).max_nan(second.abs1()).to_f64());
        min_pivot = min_pivot.min(pivot.abs().to_f64());
    }
    match singular {
        None => Ok((max_u, min_pivot)),
        Some(column) => Err(FactorError::Singular(Singularity { kind: SingularKind::Numerical, column, block: None })),
    }
}

/// Values that are read through one reference and written through another.
pub(crate) fn in_cells<T>(values: &mut [T]) -> &[Cell<T>] {
    Cell::from_mut(values).as_slice_of_cells()
}

/// The outcome of a factorization; after a failure the pivots are NaN, so that every solve is.
pub(crate) fn or_void<T: Scalar>(outcome: Result<()>, pivots: &mut [T], stats: &mut FactorStats) -> Result<()> {
    if outcome.is_err() {
        pivots.fill(T::nan_impl());
        *stats = stats.void();
    }
    outcome
}

/// ‖A‖₁ and max(|re aᵢⱼ| + |im aᵢⱼ|); [`Error::NonFinite`] with the place of the first NaN or infinity.
#[inline(never)]
pub(crate) fn input_norms<T: Scalar>(a: &Tridiagonal<T>) -> Result<(f64, f64)> {
    let (lower, diag, upper) = (a.lower(), a.diag(), a.upper());
    let n = diag.len();
    const LANES: usize = 8;
    let (mut norms, mut sizes) = ([zero::<T::Real>(); LANES], [zero::<T::Real>(); LANES]);
    let mut take = |l: usize, above: T, d: T, below: T| {
        norms[l] = norms[l].max_of_moduli(above.abs() + d.abs() + below.abs());
        sizes[l] = sizes[l].max_of_moduli(above.abs1()).max_of_moduli(d.abs1()).max_of_moduli(below.abs1());
    };
    if n == 1 {
        take(0, zero(), diag[0], zero());
    } else if n > 1 {
        take(0, zero(), diag[0], lower[1]);
        take(0, upper[n - 2], diag[n - 1], zero());
        bt_simd::dispatch(bt_simd::Loops(
            #[inline(always)]
            || {
                // Columns 1 to n − 2, every eighth in the same lane.
                let (above, above_rest) = upper[..n - 2].as_chunks::<LANES>();
                let (on, on_rest) = diag[1..n - 1].as_chunks::<LANES>();
                let (below, below_rest) = lower[2..].as_chunks::<LANES>();
                for ((above, on), below) in above.iter().zip(on).zip(below) {
                    (0..LANES).for_each(|l| take(l, above[l], on[l], below[l]));
                }
                for ((&above, &on), &below) in above_rest.iter().zip(on_rest).zip(below_rest) {
                    take(0, above, on, below);
                }
            },
        ));
    }
    let [norm, max] = [norms, sizes].map(|lanes| lanes.into_iter().fold(zero(), T::Real::max_of_moduli));
    if !max.to_f64().is_finite() {
        for i in 0..n {
            for (col, value) in [(i.wrapping_sub(1), lower[i]), (i, diag[i]), (i + 1, upper[i])] {
                if !Scalar::is_finite(value) {
                    return Err(Error::NonFinite { what: "matrix", row: i, col, value: value.to_string() }.into());
                }
            }
        }
    }
    Ok((norm.to_f64(), max.to_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(lower: &[f64], diag: &[f64], upper: &[f64]) -> Tridiagonal<f64> {
        Tridiagonal::new(lower.to_vec(), diag.to_vec(), upper.to_vec()).unwrap()
    }

    #[test]
    fn hand_checked_factors_with_exchanges() {
        // [1 2 .; 2 4 1; . 3 5]: step 0 exchanges (2 > 1), row 1 becomes (0, −½), step 1 exchanges (3 > 0).
        let lu = TridiagonalLu::new(&matrix(&[0.0, 2.0, 3.0], &[1.0, 4.0, 5.0], &[2.0, 1.0, 0.0])).unwrap();
        assert_eq!(lu.exchanged, [true, true, false]);
        assert_eq!(lu.multipliers, [0.5, 0.0, 0.0]);
        assert_eq!(lu.diag, [2.0, 3.0, -0.5]);
        assert_eq!(lu.upper, [4.0, 5.0, 0.0]);
        assert_eq!(lu.second, [1.0, 0.0, 0.0]);
        let det = lu.log_det();
        assert_eq!((det.sign, det.log_abs), (-1.0, 2f64.ln() + 3f64.ln() + 0.5f64.ln()));
        // A·(1, 1, 1)
        let mut x = [3.0, 7.0, 8.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [1.0; 3]);
    }

    #[test]
    fn the_first_zero_pivot_is_named_and_the_object_lives_on() {
        let good = matrix(&[0.0, 1.0, 1.0], &[2.0, 2.0, 2.0], &[1.0, 1.0, 0.0]);
        let bad = matrix(&[0.0, 1.0, 0.0], &[1.0, 1.0, 0.0], &[1.0, 0.0, 0.0]);
        let mut lu = TridiagonalLu::new(&good).unwrap();
        let Err(FactorError::Singular(place)) = lu.refactor(&bad) else { panic!("singular") };
        assert_eq!((place.column, place.kind), (1, SingularKind::Numerical));
        let mut x = [1.0; 3];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        lu.refactor(&good).unwrap();
        let mut x = [3.0, 4.0, 3.0];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-15));
    }

    #[test]
    fn non_finite_entries_are_named() {
        let error = TridiagonalLu::new(&matrix(&[0.0, f64::NAN], &[1.0, 1.0], &[1.0, 0.0])).unwrap_err();
        assert!(error.to_string().contains("row 1, column 0"), "{error}");
    }
}
