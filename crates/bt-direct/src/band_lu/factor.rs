//! Elimination: one column after another, exchanges and rank-one updates in the band.

use bt_formats::{Band, Matrix, Monitor, Progress, RealScalar, Scalar, zero};

use super::kernels::{axpy_minus, index_of_max};
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::FactorStats;
use crate::pivot::{Pivot, sum_and_max};

pub(super) fn factor<T: Scalar>(
    a: &mut Band<T>,
    pivots: &mut [u32],
    tops: &mut [u32],
    monitor: &mut dyn Monitor,
) -> Result<FactorStats> {
    let (n, kl, ku, ldab) = (a.n(), a.kl(), a.ku(), a.ldab());
    let kv = kl + ku;
    let (mut norm_one, mut max_a) = (0.0f64, 0.0f64);
    for j in 0..n {
        let rows = a.column_range(j);
        let start = j * ldab + kv + rows.start - j;
        let (sum, max) = sum_and_max(&a.values()[start..start + rows.len()]);
        (norm_one, max_a) = (norm_one.max_nan(sum), max_a.max_nan(max));
        // The room for fill holds zeros whatever the caller left there.
        a.values_mut()[j * ldab..j * ldab + kl].fill(zero());
    }
    if !max_a.is_finite() {
        if let Some(error) = super::first_non_finite(a) {
            return Err(error);
        }
    }
    let nnz = a.nnz();
    let values = a.values_mut();
    let (mut min_pivot, mut max_u, mut flops) = (f64::INFINITY, 0.0f64, 0.0);
    let mut singular = None;
    // Last column that the rows exchanged so far reach.
    let mut reach = 0;
    for j in 0..n {
        if j % 64 == 0 && monitor.observe(Progress::Step { phase: "factor", done: j, total: n }).is_break() {
            return Err(FactorError::Stopped);
        }
        let below = kl.min(n - 1 - j);
        let diagonal = j * ldab + kv;
        let p = index_of_max(&values[diagonal..=diagonal + below]);
        pivots[j] = (j + p) as u32;
        let new_reach = reach.max((j + p + ku).min(n - 1));
        if j == 0 {
            tops[..=new_reach].fill(0);
        } else {
            tops[reach + 1..=new_reach].fill(j as u32);
        }
        reach = new_reach;
        let pivot = values[diagonal + p];
        if pivot == zero() {
            singular = singular.or(Some(j));
            continue;
        }
        values.swap(diagonal, diagonal + p);
        let divisor = Pivot::new(pivot);
        values[diagonal + 1..=diagonal + below].iter_mut().for_each(|v| *v = divisor.divide(*v));
        // The trailing columns: exchange, then subtract u·l.
        let (left, right) = values.split_at_mut((j + 1) * ldab);
        let l = &left[diagonal + 1..=diagonal + below];
        for c in j + 1..=reach {
            let at = (c - j - 1) * ldab + kv + j - c;
            right.swap(at, at + p);
            let u = right[at];
            if u != zero() {
                axpy_minus(u, l, &mut right[at + 1..=at + below]);
            }
        }
        flops += (below * (2 * (reach - j) + 1)) as f64;
        min_pivot = min_pivot.min(pivot.abs().to_f64());
        let top = tops[j] as usize;
        max_u = max_u.max_nan(sum_and_max(&left[diagonal + top - j..=diagonal]).1);
    }
    if let Some(column) = singular {
        return Err(FactorError::Singular(Singularity { kind: SingularKind::Numerical, column, block: None }));
    }
    if !max_u.is_finite() {
        return Err(FactorError::Breakdown {
            method: "band-lu",
            reason: "elimination overflows; scale the matrix down".into(),
        });
    }
    let fill: usize = (0..n).map(|j| (j - tops[j] as usize).saturating_sub(ku)).sum();
    Ok(FactorStats {
        norm_one,
        growth: if n == 0 { 1.0 } else { max_u / max_a },
        min_pivot: if n == 0 { 0.0 } else { min_pivot },
        boosted_pivots: 0,
        nnz: nnz + fill,
        bytes: size_of_val(values) + size_of_val(pivots) + size_of_val(tops),
        flops,
    })
}
