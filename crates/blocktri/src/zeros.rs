//! Unknowns that are zero, where elimination leaves noise, which is then all of the residual of their rows: a componentwise
//! backward error of 1.
//!
//! **Whatever the values of A**: those that no nonzero of b reaches. Match rows with columns, aᵣ₍ₖ₎ₖ ≠ 0, and let j lead to k where row r(k) has an entry in column j. Let U be the unknowns that
//! cannot be reached from any k with b_r(k) ≠ 0. Their rows have entries in U alone and no right-hand side: A(r(U), U)·x_U = 0, and
//! x_U = 0 since A is regular (J. R. Gilbert, SIAM J. Matrix Anal. Appl. 15 (1994) 62–79, doi:10.1137/S0895479889139455).
//!
//! Cost: a matching and a pass over A a column.
//!
//! **By cancellation**: those that a step of refinement would change wholly, |dᵢ| ≥ |xᵢ|/2 with d = F⁻¹(b − A·x), have no digit
//! that the factors resolve. Zero is as near as what stands there, and the certificate says whether it is right.

use bt_direct::Factorization;
use bt_formats::{Csr, LinearOperator, Op, RealScalar, Scalar, certify_with_residual, zero};
use faer::{Mat, MatRef};

use crate::prepare::matching;

/// Sets them to zero. Whether that changed a number of `x`.
pub(crate) fn set_unreached<T: Scalar>(a: &Csr<T>, b: MatRef<'_, T>, x: &mut Mat<T>) -> bool {
    let n = a.nrows();
    let Ok(matched) = matching(a) else { return false };
    // The column that each row is matched with.
    let mut column_of = vec![0u32; n];
    for (j, &row) in matched.rows.order().iter().enumerate() {
        column_of[row as usize] = j as u32;
    }
    let columns = a.transpose();
    let mut changed = false;
    for col in 0..b.ncols() {
        let mut reached = vec![false; n];
        let mut stack: Vec<usize> = (0..n).filter(|&i| b[(i, col)] != zero()).map(|i| column_of[i] as usize).collect();
        for &k in &stack {
            reached[k] = true;
        }
        while let Some(j) = stack.pop() {
            // Rows with an entry in column j.
            for &row in columns.row(j).0 {
                let k = column_of[row as usize] as usize;
                if !std::mem::replace(&mut reached[k], true) {
                    stack.push(k);
                }
            }
        }
        for j in (0..n).filter(|&j| !reached[j]) {
            changed |= x[(j, col)] != zero();
            x[(j, col)] = zero();
        }
    }
    changed
}

/// Sets the unknowns to zero that the factors do not resolve. Whether that changed a number of `x`.
pub(crate) fn set_unresolved<T: Scalar>(
    a: &Csr<T>,
    factors: &dyn Factorization<T>,
    op: Op,
    b: MatRef<'_, T>,
    x: &mut Mat<T>,
) -> bool {
    // d ← op(F)⁻¹·(b − op(A)·x)
    let mut d = b.to_owned();
    certify_with_residual(a, op, x.as_ref(), b, d.as_mut());
    factors.solve_op_in_place(op, d.as_mut());
    let mut changed = false;
    for j in 0..x.ncols() {
        for (x, d) in x.col_as_slice_mut(j).iter_mut().zip(d.col_as_slice(j)) {
            let unresolved = *x != zero() && d.abs1().to_f64() >= 0.5 * x.abs1().to_f64();
            if unresolved {
                *x = zero();
            }
            changed |= unresolved;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use faer::mat;

    use super::*;

    #[test]
    fn only_what_no_number_of_b_reaches_is_zero() {
        // x₀ from row 1, x₁ with x₂ from rows 0 and 2, where x₀ counts too.
        let a = Csr::from_dense(mat![[1.0, 2.0, 3.0], [4.0, 0.0, 0.0], [0.0, 5.0, 6.0]].as_ref()).unwrap();
        let mut x = mat![[1e-30], [1.0], [2.0]];
        assert!(set_unreached(&a, mat![[1.0], [0.0], [0.0]].as_ref(), &mut x));
        assert_eq!((x[(0, 0)], x[(1, 0)], x[(2, 0)]), (0.0, 1.0, 2.0));
        // From row 1 on everything is reached.
        assert!(!set_unreached(&a, mat![[0.0], [1.0], [0.0]].as_ref(), &mut x));
        let mut noise = mat![[0.0], [1e-30], [1e-30]];
        assert!(set_unreached(&a, mat![[0.0], [0.0], [0.0]].as_ref(), &mut noise));
        assert_eq!(noise.norm_max(), 0.0);
    }
}
