//! Dense LU with partial pivoting, unblocked: the plainest factorization that keeps the contract.
//!
//! Golub & Van Loan, Matrix Computations, 4th ed., algorithm 3.4.1 (outer products). n² values and n row indices;
//! 2n³/3 operations. It shows what the contract asks for, and tests of the suites bend it to break one rule at a time.

use bt_direct::{DenseMatrix, FactorError, FactorStats, Factorization, Given, LogDet, SingularKind, Singularity};
use bt_formats::{Error, Matrix, Monitor, Op, RealScalar, Scalar, one, zero};
use faer::{Mat, MatMut};

/// P·A = L·U.
#[derive(Clone, Debug)]
pub struct DenseLu<T: Scalar> {
    /// U on and above the diagonal, the multipliers of L below it.
    lu: Mat<T>,
    /// Row exchanged with row k in step k.
    swaps: Vec<usize>,
    stats: FactorStats,
}

impl<T: Scalar> DenseLu<T> {
    /// Factors a square matrix.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the column that has no pivot.
    pub fn new(a: &(impl Matrix<T> + ?Sized)) -> Result<Self, FactorError> {
        let n = a.nrows();
        let mut factors = Self { lu: Mat::zeros(n, n), swaps: vec![0; n], stats: FactorStats::default() };
        factors.refactor(a)?;
        Ok(factors)
    }

    /// Factors another matrix of the same size without allocating.
    ///
    /// # Errors
    /// As [`DenseLu::new`].
    pub fn refactor(&mut self, a: &(impl Matrix<T> + ?Sized)) -> Result<(), FactorError> {
        let n = self.swaps.len();
        assert_eq!((a.nrows(), a.ncols()), (n, n), "size of the matrix");
        let lu = &mut self.lu;
        lu.fill(zero());
        a.for_each_entry(&mut |i, j, v| lu[(i, j)] += v);
        let norm_max = a.norm_max().to_f64();
        let (mut norm_one, mut min_pivot, mut largest) = (0f64, f64::INFINITY, 0f64);
        for j in 0..n {
            norm_one = norm_one.max((0..n).map(|i| lu[(i, j)].abs().to_f64()).sum());
        }
        for k in 0..n {
            let pivot_row = (k..n).fold(k, |p, i| if lu[(i, k)].abs() > lu[(p, k)].abs() { i } else { p });
            let pivot = lu[(pivot_row, k)];
            if pivot == zero() {
                let kind = SingularKind::Numerical;
                return Err(FactorError::Singular(Singularity { kind, column: k, block: None }));
            }
            self.swaps[k] = pivot_row;
            for j in 0..n {
                (lu[(k, j)], lu[(pivot_row, j)]) = (lu[(pivot_row, j)], lu[(k, j)]);
            }
            min_pivot = min_pivot.min(pivot.abs().to_f64());
            for i in k + 1..n {
                lu[(i, k)] = divide(lu[(i, k)], pivot);
            }
            for j in k + 1..n {
                let u = lu[(k, j)];
                for i in k + 1..n {
                    let l = lu[(i, k)];
                    lu[(i, j)] -= l * u;
                }
            }
            largest = (k..n).fold(largest, |m, j| m.max(lu[(k, j)].abs().to_f64()));
        }
        self.stats = FactorStats {
            norm_one,
            growth: if n == 0 { 1.0 } else { largest / norm_max },
            min_pivot,
            boosted_pivots: 0,
            nnz: n * n,
            bytes: n * n * size_of::<T>() + n * size_of::<usize>(),
            flops: 2.0 * (n as f64).powi(3) / 3.0,
        };
        Ok(())
    }
}

impl<T: Scalar> Factorization<T> for DenseLu<T> {
    fn n(&self) -> usize {
        self.swaps.len()
    }

    fn method(&self) -> &'static str {
        "dense-lu"
    }

    fn solve_op_in_place(&self, op: Op, mut x: MatMut<'_, T>) {
        let n = self.n();
        assert_eq!(x.nrows(), n, "rows of X");
        let lu = &self.lu;
        for c in 0..x.ncols() {
            if op == Op::Identity {
                // x ← U⁻¹L⁻¹P·x
                for (k, &p) in self.swaps.iter().enumerate() {
                    (x[(k, c)], x[(p, c)]) = (x[(p, c)], x[(k, c)]);
                }
                for k in 0..n {
                    for i in k + 1..n {
                        let step = lu[(i, k)] * x[(k, c)];
                        x[(i, c)] -= step;
                    }
                }
                for k in (0..n).rev() {
                    x[(k, c)] = divide(x[(k, c)], lu[(k, k)]);
                    for i in 0..k {
                        let step = lu[(i, k)] * x[(k, c)];
                        x[(i, c)] -= step;
                    }
                }
            } else {
                // x ← Pᵀ L⁻ᵀ U⁻ᵀ·x, conjugated for the adjoint
                let entry = |i, k| if op == Op::Adjoint { Scalar::conj(lu[(i, k)]) } else { lu[(i, k)] };
                for k in 0..n {
                    for i in 0..k {
                        let step = entry(i, k) * x[(i, c)];
                        x[(k, c)] -= step;
                    }
                    x[(k, c)] = divide(x[(k, c)], entry(k, k));
                }
                for k in (0..n).rev() {
                    for i in k + 1..n {
                        let step = entry(i, k) * x[(i, c)];
                        x[(k, c)] -= step;
                    }
                }
                for (k, &p) in self.swaps.iter().enumerate().rev() {
                    (x[(k, c)], x[(p, c)]) = (x[(p, c)], x[(k, c)]);
                }
            }
        }
    }

    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> Result<(), FactorError> {
        let mut own = Mat::new();
        let a = a.dense(&mut own)?;
        if a.nrows() != self.n() {
            let (what, expected, found) = ("size of the matrix", self.n(), a.nrows());
            return Err(Error::DimensionMismatch { what, expected, found }.into());
        }
        Self::refactor(self, &DenseMatrix::new(a)).inspect_err(|_| {
            self.lu.fill(T::rounded(f64::NAN, 0.0));
            self.swaps.iter_mut().enumerate().for_each(|(k, p)| *p = k);
        })
    }

    fn stats(&self) -> FactorStats {
        self.stats
    }

    fn log_det(&self) -> LogDet<T> {
        let mut det = LogDet::one();
        for (k, &p) in self.swaps.iter().enumerate() {
            det.multiply(self.lu[(k, k)]);
            if p != k {
                det.negate();
            }
        }
        det
    }
}

/// a / b without squaring b: the division of num-complex overflows for |b| beyond the root of the range.
fn divide<T: Scalar>(a: T, b: T) -> T {
    if b.im() == zero() {
        // Exact rounding, also through f64 for f32.
        return T::rounded(a.re().to_f64() / b.re().to_f64(), a.im().to_f64() / b.re().to_f64());
    }
    let scale = T::from_real(one::<T::Real>() / b.abs1());
    (a * scale) / (b * scale)
}
