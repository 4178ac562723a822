//! Reciprocal condition number by Hager's estimator in Higham's form.
//!
//! N. J. Higham, ACM TOMS 14 (1988) 381–396, doi:10.1145/50063.214386, algorithm SONEST/CONEST: power iteration on the
//! convex function ‖A⁻¹x‖₁ over the unit ball, at most five steps, and an alternating vector as a safeguard.
//! The estimate of ‖A⁻¹‖₁ is a lower bound, almost always within a factor 3.

use bt_formats::{Op, RealScalar, Scalar, one, zero};
use faer::MatMut;

use crate::factorization::Factorization;

/// 1 / (‖A‖₁·est‖A⁻¹‖₁); 0 when a solve overflows, 1 for n = 0.
pub fn rcond<T: Scalar, F: Factorization<T> + ?Sized>(factors: &F) -> f64 {
    let n = factors.n();
    if n == 0 {
        return 1.0;
    }
    let norm_a = factors.stats().norm_one;
    let norm_inverse = norm_one_estimate(n, |op, x| {
        factors.solve_op_in_place(op, MatMut::from_column_major_slice_mut(x, n, 1));
    });
    let condition = norm_a * norm_inverse;
    if condition.is_finite() && condition > 0.0 { (1.0 / condition).min(1.0) } else { 0.0 }
}

/// Lower bound of ‖B‖₁ for an n × n operator known by x ← B·x and x ← Bᴴ·x. Infinite or NaN when a product is.
pub fn norm_one_estimate<T: Scalar>(n: usize, mut apply: impl FnMut(Op, &mut [T])) -> f64 {
    let sum = |x: &[T]| x.iter().map(|v| v.abs().to_f64()).sum::<f64>();
    let mut x = vec![T::from_parts(1.0 / n as f64, 0.0); n];
    apply(Op::Identity, &mut x);
    let mut estimate = sum(&x);
    if n == 1 || !estimate.is_finite() {
        return estimate;
    }
    let mut last = usize::MAX;
    for _ in 0..5 {
        // ξ ← sign(y);  z ← Bᴴξ;  the largest |zⱼ| names the next unit vector
        x.iter_mut().for_each(|v| *v = sign(*v));
        apply(Op::Adjoint, &mut x);
        let j = (0..n).fold(0, |j, i| if x[i].abs() > x[j].abs() { i } else { j });
        if j == last {
            break;
        }
        last = j;
        x.fill(zero());
        x[j] = one();
        apply(Op::Identity, &mut x);
        let next = sum(&x);
        if !next.is_finite() {
            return next;
        }
        if next <= estimate {
            break;
        }
        estimate = next;
    }
    // The alternating vector catches matrices on which the iteration stops early.
    for (i, v) in x.iter_mut().enumerate() {
        let modulus = 1.0 + i as f64 / (n - 1) as f64;
        *v = T::from_parts(if i % 2 == 0 { modulus } else { -modulus }, 0.0);
    }
    apply(Op::Identity, &mut x);
    estimate.max(2.0 * sum(&x) / (3.0 * n as f64))
}

fn sign<T: Scalar>(v: T) -> T {
    let modulus = v.abs();
    if modulus == zero() { one() } else { T::from_parts((v.re() / modulus).to_f64(), (v.im() / modulus).to_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_on_small_dense_matrices() {
        // B = [[1, 2], [3, −4]]: ‖B‖₁ = 6
        let b = [[1.0, 2.0], [3.0, -4.0]];
        let estimate = norm_one_estimate::<f64>(2, |op, x| {
            let [x0, x1] = [x[0], x[1]];
            let at = |i: usize, j: usize| if op == Op::Identity { b[i][j] } else { b[j][i] };
            (x[0], x[1]) = (at(0, 0) * x0 + at(0, 1) * x1, at(1, 0) * x0 + at(1, 1) * x1);
        });
        assert_eq!(estimate, 6.0);
    }
}
