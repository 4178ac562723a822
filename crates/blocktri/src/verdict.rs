//! When an answer is good.
//!
//! An answer of a direct method is good when it solves a nearby system: normwise (32u), and row by row, max(n, 32)·u
//! componentwise, which no unit of a row or column can hide. The second is asked only of matrices that are regular to
//! working precision after scaling: below that no method has the digits, and the report warns.

use bt_direct::refine::unit_roundoff;
use bt_formats::{
    Certificate, Csr, LinearOperator, Matrix, Op, Outcome, RealScalar, Scalar, certify_beyond_underflow, zero,
};
use faer::MatRef;

/// Normwise backward error of a few units of roundoff.
pub(crate) fn at_rounding_level<T: Scalar>(c: &Certificate) -> bool {
    c.backward_error <= 32.0 * unit_roundoff::<T>()
}

/// Componentwise backward error of a method that pivots, with n rows.
pub(crate) fn rows_are_solved<T: Scalar>(n: usize, c: &Certificate) -> bool {
    c.componentwise_backward_error <= n.max(32) as f64 * unit_roundoff::<T>()
}

/// A null vector that one pass over A sees, (1, …, 1): "rows" or "columns" all of which sum to zero, to rounding. Those of a Neumann
/// problem, of a graph's Laplacian, of a generator.
pub(crate) fn sum_to_zero<T: Scalar>(a: &Csr<T>) -> Option<&'static str> {
    let vanishes = |sum: T, size: f64, entries: usize| {
        sum.abs().to_f64() <= entries as f64 * unit_roundoff::<T>() * size && size > 0.0
    };
    let rows_vanish = (0..a.nrows()).all(|i| {
        let values = a.row(i).1;
        let sum = values.iter().fold(zero::<T>(), |sum, &v| sum + v);
        vanishes(sum, values.iter().map(|v| v.abs().to_f64()).sum(), values.len())
    });
    if rows_vanish {
        return Some("rows");
    }
    let mut columns = vec![(zero::<T>(), 0.0, 0); a.ncols()];
    a.for_each_entry(&mut |_, j, v| {
        let (sum, size, entries) = &mut columns[j];
        (*sum, *size, *entries) = (*sum + v, *size + v.abs().to_f64(), *entries + 1);
    });
    columns.into_iter().all(|(sum, size, entries)| vanishes(sum, size, entries)).then_some("columns")
}

/// Which of the two errors is too large, of an answer that is not at rounding level.
pub(crate) fn too_large<T: Scalar>(c: &Certificate) -> String {
    if at_rounding_level::<T>(c) {
        format!("a componentwise backward error of {:.1e}", c.componentwise_backward_error)
    } else {
        format!("a backward error of {:.1e}", c.backward_error)
    }
}

/// The outcome of a direct method with the answer `x` of op(A)·X = B; `regular` says whether the matrix is that to working precision, in the
/// best units.
pub(crate) fn judge<T: Scalar>(
    (a, op): (&dyn Matrix<T>, Op),
    x: MatRef<'_, T>,
    b: MatRef<'_, T>,
    c: &Certificate,
    regular: impl FnOnce() -> bool,
) -> Outcome {
    let good = |c: &Certificate| at_rounding_level::<T>(c) && rows_are_solved::<T>(x.nrows(), c);
    // What underflow took from x must not be all of it.
    let most = unit_roundoff::<T>().sqrt();
    let is_good = good(c)
        || (at_rounding_level::<T>(c) && !regular())
        || (c.backward_error <= most && reaches_below_normal(x) && good(&certify_beyond_underflow(a, op, x, b)));
    if is_good { Outcome::Converged } else { Outcome::Inaccurate }
}

/// Whether some number of x is so small that its type has fewer digits for it.
fn reaches_below_normal<T: Scalar>(x: MatRef<'_, T>) -> bool {
    let small = T::Real::MIN_POSITIVE.to_f64() / unit_roundoff::<T>();
    x.col_iter().any(|x| x.iter().any(|v| v.abs1().to_f64() < small))
}

/// n·u: the reciprocal condition number below which rounding may have made the matrix singular, or regular.
pub(crate) fn working_precision<T: Scalar>(n: usize) -> f64 {
    n as f64 * unit_roundoff::<T>()
}

/// A reciprocal condition number that rounding may have made of a singular matrix: estimates of 1/κ are up to ten times too large.
pub(crate) fn doubtful<T: Scalar>(n: usize) -> f64 {
    (16.0 * working_precision::<T>(n)).min(unit_roundoff::<T>().sqrt())
}
