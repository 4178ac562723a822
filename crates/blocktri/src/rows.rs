//! Rows whose unknowns are far below the others, refined by themselves.
//!
//! A step of refinement adds F⁻¹r, whose errors are those of the largest residuals: where an unknown is 10⁻³⁰ of the others they are
//! larger than what its own row asks for. With the residuals of all rows at rounding level set to zero, d = F⁻¹r̃ is as small as the
//! rows that are left, and so are its errors.

use bt_direct::Factorization;
use bt_direct::refine::unit_roundoff;
use bt_formats::{Csr, Matrix, Op, RealScalar, Scalar, certify_with_residual, zero};
use faer::{Mat, MatRef};

/// X ← X + op(F)⁻¹·r̃, r̃ the residuals of the rows above rounding level. Whether there are any.
pub(crate) fn refine_worst<T: Scalar>(
    a: &Csr<T>,
    factors: &dyn Factorization<T>,
    op: Op,
    b: MatRef<'_, T>,
    x: &mut Mat<T>,
) -> bool {
    let mut r = b.to_owned();
    certify_with_residual(a, op, x.as_ref(), b, r.as_mut());
    let level = T::Real::from_f64(4.0 * unit_roundoff::<T>());
    let mut any = false;
    for j in 0..x.ncols() {
        // |op(A)|·|x| + |b|
        let moduli: Vec<T::Real> = x.col_as_slice(j).iter().map(|v| v.abs()).collect();
        let mut size: Vec<T::Real> = (0..b.nrows()).map(|i| b[(i, j)].abs()).collect();
        a.accumulate_abs(op, &moduli, &mut size);
        for (r, size) in r.col_as_slice_mut(j).iter_mut().zip(size) {
            if r.abs() <= level * size {
                *r = zero();
            } else {
                any = true;
            }
        }
    }
    if any {
        factors.solve_op_in_place(op, r.as_mut());
        *x += &r;
    }
    any
}
