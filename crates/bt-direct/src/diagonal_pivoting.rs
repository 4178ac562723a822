//! A = L·B·Mᵀ of a tridiagonal matrix with pivots of order 1 and 2 on the diagonal, no rows exchanged.
//!
//! J. B. Erway, R. F. Marcia, J. A. Tyson, Generalized diagonal pivoting methods for tridiagonal systems without
//! interchanges, IAENG Int. J. Appl. Math. 40 (2010); the choice of the order by J. R. Bunch, Math. Comp. 28 (1974),
//! doi:10.1090/S0025-5718-1974-0331751-8, with the five entries of L.-W. Chang, J. A. Stratton, H.-S. Kim, W.-M. W. Hwu,
//! SC'12, doi:10.1109/SC.2012.12. Where the matrix is symmetric, so are the factors.
//!
//! Non-standard: only B's changed diagonal is stored, since L and M follow from it and from A's off-diagonals by one
//! division each; pivots of order 2 are solved by elimination from their second row, in which nothing overflows that the
//! result does not.
//!
//! Storage: 3n values and n flags. Cost: 3n flops and n divisions to factor, 5n flops and 2n divisions a right-hand side.

use bt_formats::{Monitor, Op, RealScalar, Scalar, Tridiagonal, zero};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;
use crate::memory::{reserve, zeros};
use crate::pivot::Pivot;
use crate::tridiagonal_lu::{input_norms, or_void};

/// A = L·B·Mᵀ, B with blocks of order 1 and 2.
///
/// ```text
///     [ d0 u0       ]   pairs = [true, false, false]: rows 0 and 1 are one pivot of order 2,
/// B = [ l1 d1       ]   row 2 a pivot of order 1; d2 is what elimination left of A's
///     [          d2 ]
/// ```
///
/// ```
/// use bt_direct::{DiagonalPivoting, Factorization};
/// use bt_formats::Tridiagonal;
/// // No pivot of order 1 is there to begin with.
/// let a = Tridiagonal::new(vec![0.0, 1.0], vec![0.0, 0.0], vec![1.0, 0.0])?;
/// let mut x = [3.0, 4.0];
/// DiagonalPivoting::new(&a)?.solve_vec_in_place(&mut x);
/// assert_eq!(x, [4.0, 3.0]);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiagonalPivoting<T> {
    lower: Vec<T>,
    diag: Vec<T>,
    upper: Vec<T>,
    /// Whether a pivot of order 2 begins at the row.
    pairs: Vec<bool>,
    stats: FactorStats,
}

/// [p q; r s] with |p|·max(|q|, |r|, |s|) < κ·|q·r|, so that t = p/r and the product t·s are small.
struct Pair<T: Scalar> {
    s: T,
    r: Pivot<T>,
    t: T,
    /// q − t·s, at least (1 − κ)|q|.
    rest: Pivot<T>,
}

impl<T: Scalar> Pair<T> {
    #[inline(always)]
    fn new(p: T, q: T, r: T, s: T) -> Self {
        let r = Pivot::new(r);
        let t = r.divide(p);
        Self { s, r, t, rest: Pivot::new(q - t * s) }
    }
    /// The second unknown of [p q; r s]·x = y.
    #[inline(always)]
    fn second(&self, y0: T, y1: T) -> T {
        self.rest.divide(y0 - self.t * y1)
    }
    /// The first one, once the second is known.
    #[inline(always)]
    fn first(&self, y1: T, x1: T) -> T {
        self.r.divide(y1 - self.s * x1)
    }
}

impl<T: Scalar> DiagonalPivoting<T> {
    const METHOD: &'static str = "diagonal-pivoting";

    /// Factors `a`.
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] with the row at which both orders fail, and when elimination overflows; [`FactorError::Input`]
    /// on a NaN or infinity.
    ///
    /// # Cost
    /// 3n flops, n divisions, 3n values.
    pub fn new(a: &Tridiagonal<T>) -> Result<Self> {
        let n = a.diag().len();
        let mut pairs = Vec::new();
        reserve(&mut pairs, n)?;
        pairs.resize(n, false);
        let stats = FactorStats::default();
        let mut out = Self { lower: zeros(n)?, diag: zeros(n)?, upper: zeros(n)?, pairs, stats };
        out.refactor(a)?;
        Ok(out)
    }

    /// Factors another matrix of the same size in the same memory. After an error the factors are void: solves
    /// return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`DiagonalPivoting::new`], and [`FactorError::Input`] on another size.
    pub fn refactor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        check_size("size of the matrix", self.diag.len(), a.diag().len())?;
        let outcome = self.factor(a);
        if outcome.is_err() {
            self.pairs.fill(false);
        }
        or_void(outcome, &mut self.diag, &mut self.stats)
    }

    #[inline(never)]
    fn factor(&mut self, a: &Tridiagonal<T>) -> Result<()> {
        let n = a.diag().len();
        let (norm_one, max_a) = input_norms(a)?;
        self.lower.copy_from_slice(a.lower());
        self.diag.copy_from_slice(a.diag());
        self.upper.copy_from_slice(a.upper());
        let (l, d, u) = (&self.lower[..n], &mut self.diag[..n], &self.upper[..n]);
        let kappa = T::Real::from_f64(0.618_033_988_749_894_9);
        let (mut max_d, mut min_pivot) = (0.0f64, f64::INFINITY);
        let mut i = 0;
        while i < n {
            self.pairs[i] = false;
            max_d = max_d.max_nan(d[i].abs1().to_f64());
            let (below, above) = if i + 1 < n { (l[i + 1], u[i]) } else { (zero(), zero()) };
            // σ ← max(|uᵢ|, |lᵢ₊₁|, |dᵢ₊₁|, |uᵢ₊₁|, |lᵢ₊₂|);  order 1 if |dᵢ|σ ≥ κ|lᵢ₊₁uᵢ|
            let mut sigma = above.abs1().max_nan(below.abs1());
            if i + 1 < n {
                sigma = sigma.max_nan(d[i + 1].abs1()).max_nan(u[i + 1].abs1());
            }
            if i + 2 < n {
                sigma = sigma.max_nan(l[i + 2].abs1());
            }
            let coupled = if sigma == zero() { zero() } else { kappa * above.abs1() * (below.abs1() / sigma) };
            if d[i].abs1() >= coupled {
                if d[i] == zero() {
                    let reason = format!(
                        "row {i} (from 0) has no pivot of order 1 or 2: tridiagonal-lu, which exchanges rows, tells \
                         whether there is any"
                    );
                    return Err(FactorError::breakdown(Self::METHOD, Place::Row(i), reason));
                }
                if i + 1 < n {
                    // dᵢ₊₁ ← dᵢ₊₁ − (lᵢ₊₁/dᵢ)·uᵢ
                    d[i + 1] -= Pivot::new(d[i]).divide(below) * above;
                }
                min_pivot = min_pivot.min(d[i].abs().to_f64());
                i += 1;
            } else if d[i].abs1() < coupled {
                let pair = Pair::new(d[i], above, below, d[i + 1]);
                if i + 2 < n {
                    // dᵢ₊₂ ← dᵢ₊₂ − lᵢ₊₂·(B⁻¹)₂₂·uᵢ₊₁
                    d[i + 2] -= l[i + 2] * pair.second(zero(), u[i + 1]);
                }
                (self.pairs[i], self.pairs[i + 1]) = (true, false);
                max_d = max_d.max_nan(d[i + 1].abs1().to_f64());
                // |det B| / max|B|, between its smallest singular value and twice that.
                let smaller = above.abs().to_f64().min(below.abs().to_f64());
                min_pivot = min_pivot.min(smaller);
                i += 2;
            } else {
                break;
            }
        }
        if i < n || !max_d.is_finite() {
            // A NaN ended it in its row; what is infinite alone has passed unseen.
            let row = d.iter().position(|d| !d.abs1().to_f64().is_finite()).or((i < n).then_some(i));
            return Err(FactorError::overflow(Self::METHOD, row.map(Place::Row)));
        }
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { max_d.max(max_a) / max_a },
            min_pivot: if n == 0 { 0.0 } else { min_pivot },
            boosted_pivots: 0,
            nnz: (3 * n).saturating_sub(2),
            bytes: n * (3 * size_of::<T>() + size_of::<bool>()),
            flops: 4.0 * n as f64,
        };
        Ok(())
    }

    /// The solve, with entry (i + 1, i) of op(A) from `low(i)` and (i, i + 1) from `up(i)`.
    #[inline(always)]
    fn solve_column(&self, x: &mut [T], low: impl Fn(usize) -> T, up: impl Fn(usize) -> T, map: impl Fn(T) -> T) {
        let n = x.len();
        let d = |i: usize| map(self.diag[i]);
        let pair = |i: usize| Pair::new(d(i), up(i), low(i), d(i + 1));
        // x ← L⁻¹·x
        let mut i = 0;
        while i < n {
            if self.pairs[i] {
                if i + 2 < n {
                    x[i + 2] -= low(i + 1) * pair(i).second(x[i], x[i + 1]);
                }
                i += 2;
            } else {
                if i + 1 < n {
                    x[i + 1] -= low(i) * Pivot::new(d(i)).divide(x[i]);
                }
                i += 1;
            }
        }
        // x ← M⁻ᵀ·B⁻¹·x
        while i > 0 {
            i -= 1;
            let next = if i + 1 < n { up(i) * x[i + 1] } else { zero() };
            if i > 0 && self.pairs[i - 1] {
                let (pair, y1) = (pair(i - 1), x[i] - next);
                x[i] = pair.second(x[i - 1], y1);
                x[i - 1] = pair.first(y1, x[i]);
                i -= 1;
            } else {
                x[i] = Pivot::new(d(i)).divide(x[i] - next);
            }
        }
    }
}

impl<T: Scalar> Factorization<T> for DiagonalPivoting<T> {
    fn n(&self) -> usize {
        self.diag.len()
    }
    fn method(&self) -> &'static str {
        Self::METHOD
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n(), "rows of X");
        let (lower, upper) = (&self.lower, &self.upper);
        for_each_column(x, |x| match op {
            Op::Identity => self.solve_column(x, |i| lower[i + 1], |i| upper[i], |v| v),
            // Aᵀ = M·Bᵀ·Lᵀ has the same pivots.
            Op::Transpose => self.solve_column(x, |i| upper[i], |i| lower[i + 1], |v| v),
            Op::Adjoint => {
                self.solve_column(x, |i| Scalar::conj(upper[i]), |i| Scalar::conj(lower[i + 1]), Scalar::conj);
            }
        });
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
        let mut i = 0;
        while i < self.diag.len() {
            if self.pairs[i] {
                // det [p q; r s] = −r·(q − (p/r)·s)
                let (r, t) = (self.lower[i + 1], Pivot::new(self.lower[i + 1]).divide(self.diag[i]));
                det.multiply(r);
                det.multiply(self.upper[i] - t * self.diag[i + 1]);
                det.negate();
                i += 2;
            } else {
                det.multiply(self.diag[i]);
                i += 1;
            }
        }
        det
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_checked_pivots() {
        // A pivot of order 2 at row 0 (|0|·σ < κ·2), B⁻¹ = [−2 1; 2 0]/2 for B = [0 1; 2 2], then d₂ ← 5 − 1·0·3.
        let a = Tridiagonal::new(vec![0.0, 2.0, 1.0], vec![0.0, 2.0, 5.0], vec![1.0, 3.0, 0.0]).unwrap();
        let lu = DiagonalPivoting::new(&a).unwrap();
        assert_eq!(lu.pairs, [true, false, false]);
        assert_eq!(lu.diag, [0.0, 2.0, 5.0]);
        let det = lu.log_det();
        assert_eq!((det.sign, det.log_abs), (-1.0, 2f64.ln() + 5f64.ln()));
        // A·(1, 2, 3)
        let mut x = [2.0, 15.0, 17.0];
        lu.solve_vec_in_place(&mut x);
        assert_eq!(x, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn rows_without_a_pivot_are_named_and_the_object_lives_on() {
        let good = Tridiagonal::new(vec![0.0, 1.0, 1.0], vec![0.0, 0.5, 2.0], vec![1.0, 1.0, 0.0]).unwrap();
        let mut lu = DiagonalPivoting::new(&good).unwrap();
        // Column 0 is empty.
        let bad = Tridiagonal::new(vec![0.0, 0.0, 1.0], vec![0.0, 1.0, 2.0], vec![1.0, 1.0, 0.0]).unwrap();
        let Err(FactorError::Breakdown { reason, .. }) = lu.refactor(&bad) else { panic!("no pivot") };
        assert!(reason.contains("row 0"), "{reason}");
        let mut x = [1.0f64; 3];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        lu.refactor(&good).unwrap();
        let mut x = [1.0, 2.5, 3.0];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
    }
}
