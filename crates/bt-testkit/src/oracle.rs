//! Dense answers to compare with, in double precision whatever the scalar: faer's LU with partial pivoting.
//!
//! Matrices are scaled by a power of two to a largest entry near 1 before anything is computed, so that entries of
//! 1e±300 do no harm. Cost O(n³): for n up to a few hundred.

use bt_formats::{Matrix, Op, RealScalar, Scalar, c64};
use faer::linalg::solvers::{PartialPivLu, Solve};
use faer::{Mat, MatRef};

/// A in c64. Entries stored twice are summed.
pub fn dense<T: Scalar>(a: &(impl Matrix<T> + ?Sized)) -> Mat<c64> {
    let mut d = Mat::<c64>::zeros(a.nrows(), a.ncols());
    a.for_each_entry(&mut |i, j, v| d[(i, j)] += v.cast::<c64>());
    d
}

/// op(A)·x, summed in c64 and rounded once.
pub fn product<T: Scalar>(a: &(impl Matrix<T> + ?Sized), op: Op, x: &[T]) -> Vec<T> {
    let mut y = vec![c64::new(0.0, 0.0); op.shape(a.nrows(), a.ncols()).0];
    a.for_each_entry(&mut |i, j, v| {
        let v = v.cast::<c64>();
        match op {
            Op::Identity => y[i] += v * x[j].cast::<c64>(),
            Op::Transpose => y[j] += v * x[i].cast::<c64>(),
            Op::Adjoint => y[j] += v.conj() * x[i].cast::<c64>(),
        }
    });
    y.into_iter().map(Scalar::cast).collect()
}

/// The factored oracle of a square matrix.
pub struct Oracle {
    /// LU of 2^−e·A.
    lu: PartialPivLu<c64>,
    /// 2^e·(scaled A) = A.
    scale: f64,
    norm_one: f64,
    n: usize,
}

impl Oracle {
    /// Of a square matrix with finite entries.
    ///
    /// # Panics
    /// When it is not square or not finite.
    pub fn new<T: Scalar>(a: &(impl Matrix<T> + ?Sized)) -> Self {
        assert_eq!(a.nrows(), a.ncols(), "an oracle needs a square matrix");
        let largest = a.norm_max().to_f64();
        assert!(largest.is_finite(), "an oracle needs finite entries");
        let scale = if largest > 0.0 { largest.log2().floor().exp2() } else { 1.0 };
        let mut d = dense(a);
        d.col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v /= scale));
        Self { lu: PartialPivLu::new(d.as_ref()), scale, norm_one: norm_one(d.as_ref()), n: a.nrows() }
    }

    /// A⁻¹·B.
    pub fn solve(&self, b: MatRef<'_, c64>) -> Mat<c64> {
        let mut x = self.lu.solve(b);
        x.col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v /= self.scale));
        x
    }

    /// ‖A‖₁‖A⁻¹‖₁, from the inverse itself; infinite for a singular matrix, 1 for n = 0.
    pub fn condition(&self) -> f64 {
        if self.n == 0 {
            return 1.0;
        }
        let condition = self.norm_one * norm_one(self.lu.solve(Mat::<c64>::identity(self.n, self.n)).as_ref());
        if condition.is_nan() { f64::INFINITY } else { condition }
    }

    /// (phase, log|det A|): the phase is 0 for a singular matrix.
    pub fn log_det(&self) -> (c64, f64) {
        let order = self.lu.P().arrays().0;
        let mut phase = c64::new(permutation_sign(order), 0.0);
        let mut log_abs = self.n as f64 * self.scale.ln();
        for i in 0..self.n {
            let pivot = self.lu.U()[(i, i)];
            if pivot.norm() == 0.0 {
                return (c64::new(0.0, 0.0), f64::NEG_INFINITY);
            }
            phase *= pivot / pivot.norm();
            log_abs += pivot.norm().ln();
        }
        (phase, log_abs)
    }
}

/// The largest column sum of moduli; NaN when an entry is NaN.
fn norm_one(a: MatRef<'_, c64>) -> f64 {
    a.col_iter().map(|c| c.iter().map(|v| v.norm()).sum::<f64>()).fold(0.0, RealScalar::max_nan)
}

/// (−1)^(n − number of cycles).
fn permutation_sign(order: &[usize]) -> f64 {
    let mut seen = vec![false; order.len()];
    let mut sign = 1.0;
    for start in 0..order.len() {
        let mut i = start;
        while !seen[i] {
            seen[i] = true;
            i = order[i];
            if i != start {
                sign = -sign;
            }
        }
    }
    sign
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::Csr;

    fn csr(rows: &[[f64; 3]; 3]) -> Csr<f64> {
        Csr::from_dense(Mat::from_fn(3, 3, |i, j| rows[i][j]).as_ref()).unwrap()
    }

    #[test]
    fn determinant_condition_and_solution_by_hand() {
        // det = −24, A⁻¹ = [[0, 1/2, 0], [−1/3, 0, 0], [0, 0, −1/4]] has norm 1/2; ‖A‖₁ = 4
        let a = csr(&[[0.0, -3.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, -4.0]]);
        let oracle = Oracle::new(&a);
        let (phase, log_abs) = oracle.log_det();
        assert!((phase - c64::new(-1.0, 0.0)).norm() < 1e-15);
        assert!((log_abs - 24f64.ln()).abs() < 1e-14);
        assert!((oracle.condition() - 2.0).abs() < 1e-14);
        let b = Mat::from_fn(3, 1, |_, _| c64::new(12.0, 0.0));
        let x = oracle.solve(b.as_ref());
        for (i, expected) in [6.0, -4.0, -3.0].into_iter().enumerate() {
            assert!((x[(i, 0)] - c64::new(expected, 0.0)).norm() < 1e-14);
        }
    }

    #[test]
    fn scale_does_not_matter() {
        let rows = [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]];
        let near = Oracle::new(&csr(&rows));
        let far = Oracle::new(&csr(&rows.map(|r| r.map(|v| v * 1e300))));
        assert!((far.condition() / near.condition() - 1.0).abs() < 1e-12);
        assert!((far.log_det().1 - near.log_det().1 - 900.0 * 10f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn singular_matrices_have_no_condition() {
        let oracle = Oracle::new(&csr(&[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]));
        assert_eq!(oracle.condition(), f64::INFINITY);
        assert_eq!(oracle.log_det().0, c64::new(0.0, 0.0));
    }

    #[test]
    fn signs_of_permutations() {
        assert_eq!(permutation_sign(&[0, 1, 2]), 1.0);
        assert_eq!(permutation_sign(&[1, 0, 2]), -1.0);
        assert_eq!(permutation_sign(&[1, 2, 0]), 1.0);
        assert_eq!(permutation_sign(&[1, 0, 3, 2]), 1.0);
    }
}
