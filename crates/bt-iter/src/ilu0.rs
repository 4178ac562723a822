//! ILU(0): the LU factorization on the pattern of A.
//!
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.3.2 (Algorithm 10.4),
//! doi:10.1137/1.9780898718003. A missing diagonal entry is part of the pattern. Pivots follow the rule of
//! [`IncompleteLu`]: replaced where they are too small, and counted.
//!
//! Cost: 2 flops for every pair of entries (i, k), (k, j) with an entry (i, j), k < i, k < j.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, one, zero};

use crate::blas1::divide;
use crate::incomplete_lu::{IncompleteLu, usable_pivot};
use crate::triangular::Rows;

/// What becomes of fill outside the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DroppedFill {
    /// It is forgotten: ILU(0).
    #[default]
    Forgotten,
    /// It is added to the diagonal, so that M·e = A·e for e = (1, …, 1): modified ILU(0).
    ToDiagonal,
}

/// The ILU(0) preconditioner of `a`.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{DroppedFill, Preconditioner, ilu0};
/// // A tridiagonal matrix has no fill: M = A.
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// let mut z = [0.0; 3];
/// ilu0(&a, DroppedFill::Forgotten)?.apply(&[3.0, 4.0, 3.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`FactorError::Input`] when A is not square or not finite; [`FactorError::Breakdown`] naming the row where an
/// element overflows.
pub fn ilu0<T: Scalar>(a: &Csr<T>, dropped: DroppedFill) -> Result<IncompleteLu<T>> {
    a.check_square()?;
    a.check_finite()?;
    let n = a.nrows();
    let (mut lower, mut upper) = (Rows { ptr: vec![0], ..Rows::default() }, Rows { ptr: vec![0], ..Rows::default() });
    let mut reciprocals = Vec::with_capacity(n);
    let mut replaced = 0;
    // Row i scattered over its columns, and which columns it has.
    let (mut w, mut owner) = (vec![zero::<T>(); n], vec![u32::MAX; n]);
    for i in 0..n {
        let (cols, vals) = a.row(i);
        let mut largest = zero::<T::Real>();
        (w[i], owner[i]) = (zero(), i as u32);
        for (&j, &v) in cols.iter().zip(vals) {
            (w[j as usize], owner[j as usize]) = (v, i as u32);
            largest = largest.max_nan(v.abs());
        }
        let mut lost = zero::<T>();
        for &k in cols.iter().take_while(|&&k| (k as usize) < i) {
            let k = k as usize;
            // lᵢₖ ← wₖ/uₖₖ;  wⱼ ← wⱼ − lᵢₖ·uₖⱼ on the pattern
            let l: T = w[k] * reciprocals[k];
            w[k] = l;
            for e in upper.ptr[k] as usize..upper.ptr[k + 1] as usize {
                let j = upper.idx[e] as usize;
                let product: T = l * upper.val[e];
                if owner[j] == i as u32 {
                    w[j] -= product;
                } else {
                    lost -= product;
                }
            }
            lower.idx.push(k as u32);
            lower.val.push(l);
        }
        if dropped == DroppedFill::ToDiagonal {
            w[i] += lost;
        }
        for &j in cols.iter().filter(|&&j| j as usize > i) {
            upper.idx.push(j);
            upper.val.push(w[j as usize]);
        }
        lower.ptr.push(lower.idx.len() as u32);
        upper.ptr.push(upper.idx.len() as u32);
        let (pivot, was_replaced) = usable_pivot(w[i], largest);
        replaced += usize::from(was_replaced);
        let reciprocal = divide(one::<T>(), pivot);
        if !Scalar::is_finite(reciprocal) {
            return Err(FactorError::Breakdown {
                method: "ilu0",
                reason: format!("elements overflow in row {i} (from 0); scale the matrix, or use matching"),
            });
        }
        reciprocals.push(reciprocal);
    }
    let name = match dropped {
        DroppedFill::Forgotten => "ilu0",
        DroppedFill::ToDiagonal => "milu0",
    };
    Ok(IncompleteLu::assemble(name, &lower, &upper, &reciprocals, replaced))
}
