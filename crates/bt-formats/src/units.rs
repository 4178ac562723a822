//! Units of rows and columns: powers of two that bring all entries near 1, in the mean of their logarithms.
//!
//! Where A = R·K·C with entries of K near 1 and any diagonal R and C, this finds R and C, which scaling rows first and columns second
//! cannot where both have units, or a row meets columns of several. The exponents solve
//!
//! ```text
//! min Σ (log₂|aᵢⱼ| + ρᵢ + γⱼ)²   over the nonzeros
//! ```
//!
//! (A. R. Curtis & J. K. Reid, J. Inst. Maths Applics 10 (1972) 118–124, doi:10.1093/imamat/10.1.118), here by conjugate gradients with
//! the counts of entries as the preconditioner, to a tenth of a factor of two. An entry that is small by itself, and not by its units,
//! pulls at the scales of its row and column: see whether the large entries stay large.
//!
//! Storage: 8 doubles a row and a column. Cost: a pass over the pattern a step, at most [`STEPS`] of them.

use crate::csr::Csr;
use crate::operator::{LinearOperator, zero};
use crate::rounded::exponent_of;
use crate::scalar::{RealScalar, Scalar};

/// Steps of conjugate gradients at most.
const STEPS: usize = 300;

/// Fills `rows` and `cols` with the units, powers of two: R·A·C has entries near 1.
///
/// # Panics
/// When their lengths are not the rows and columns of A.
#[inline(never)]
pub fn units<T: Scalar>(a: &Csr<T>, rows: &mut [T::Real], cols: &mut [T::Real]) {
    let (m, n) = (a.nrows(), a.ncols());
    assert_eq!((rows.len(), cols.len()), (m, n), "lengths of R and C");
    let log = |v: T| {
        // |re| + |im| of a number at the end of the range may be infinite.
        let size = v.abs1().to_f64().min(T::Real::MAX.to_f64());
        let exponent = exponent_of(size);
        f64::from(exponent) + (size * 2f64.powi(-exponent / 2) * 2f64.powi(exponent / 2 - exponent)).log2()
    };
    // The normal equations: counts on the diagonal, the pattern beside it.
    let (mut counts, mut r) = (vec![0.0f64; m + n], vec![0.0; m + n]);
    for_each(a, |i, j, v| {
        for k in [i, m + j] {
            counts[k] += 1.0;
            r[k] -= log(v);
        }
    });
    let mut x = vec![0.0; m + n];
    let precondition = |r: &[f64]| -> Vec<f64> { r.iter().zip(&counts).map(|(r, c)| r / c.max(1.0)).collect() };
    let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>();
    let mut z = precondition(&r);
    let mut p = z.clone();
    let mut rz = dot(&r, &z);
    for _ in 0..STEPS {
        // What the mean of a line is off by.
        if z.iter().all(|z| z.abs() <= 0.1) {
            break;
        }
        let mut q: Vec<f64> = p.iter().zip(&counts).map(|(p, c)| p * c).collect();
        for_each(a, |i, j, _| {
            q[i] += p[m + j];
            q[m + j] += p[i];
        });
        let alpha = rz / dot(&p, &q);
        if !alpha.is_finite() {
            break;
        }
        for k in 0..m + n {
            x[k] += alpha * p[k];
            r[k] -= alpha * q[k];
        }
        z = precondition(&r);
        let before = std::mem::replace(&mut rz, dot(&r, &z));
        for k in 0..m + n {
            p[k] = z[k] + rz / before * p[k];
        }
    }
    // A factor from the rows to the columns changes nothing: as far from both ends of the range as can be.
    let middle = |x: &[f64]| {
        let (least, most) = x.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        if least <= most { f64::midpoint(least, most) } else { 0.0 }
    };
    let shift = ((middle(&x[m..]) - middle(&x[..m])) / 2.0).round();
    let range = if size_of::<T::Real>() == 4 { 125.0 } else { 1020.0 };
    let power = |e: f64| T::Real::from_f64(2f64.powi(e.round().clamp(-range, range) as i32));
    rows.iter_mut().zip(&x[..m]).for_each(|(r, e)| *r = power(e + shift));
    cols.iter_mut().zip(&x[m..]).for_each(|(c, e)| *c = power(e - shift));
}

fn for_each<T: Scalar>(a: &Csr<T>, mut visit: impl FnMut(usize, usize, T)) {
    for i in 0..a.nrows() {
        let (cols, values) = a.row(i);
        for (&j, &v) in cols.iter().zip(values).filter(|e| *e.1 != zero()) {
            visit(i, j as usize, v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coo::Coo;
    use crate::scalar::c32;

    /// A grid's matrix with units of rows and columns over 2^±`reach`.
    fn in_units(side: usize, reach: i32) -> Csr<f64> {
        let n = side * side;
        let mut a = Coo::new(n, n).unwrap();
        let unit = |k: usize| 2f64.powi((k as i32 * 7919 % (2 * reach + 1)) - reach);
        for i in 0..n {
            for (j, v) in [(Some(i), 4.0), (i.checked_sub(side), -1.0), (Some(i + side), -1.0), (Some(i + 1), -1.0)] {
                if let Some(j) = j.filter(|&j| j < n) {
                    a.push(i, j, v * unit(i) * unit(3 * j + 1)).unwrap();
                }
            }
        }
        a.to_csr().unwrap()
    }

    #[test]
    fn units_of_rows_and_columns_are_found() {
        for reach in [3, 100, 400] {
            let a = in_units(12, reach);
            let (mut r, mut c) = (vec![0.0; 144], vec![0.0; 144]);
            units(&a, &mut r, &mut c);
            let (least, most) = a.scale(&r, &c).survey().sizes;
            assert!(least > 0.05 && most < 20.0, "{reach}: {least} {most}");
            assert!(r.iter().chain(&c).all(|v| v.log2().fract() == 0.0));
        }
    }

    #[test]
    fn numbers_whose_moduli_leave_the_range_are_near_its_end() {
        // |re| + |im| is infinite.
        let top = 1.701_411_8e38f32;
        let values = vec![c32::new(top, 0.0), c32::new(-top, top), c32::new(1.0, 0.0), c32::new(1.0, 0.0)];
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values).unwrap();
        let (mut r, mut c) = ([0.0; 2], [0.0; 2]);
        units(&a, &mut r, &mut c);
        let (least, most) = a.scale(&r, &c).survey().sizes;
        assert!(least > 0.2 && most < 5.0, "{least} {most}: {r:?} {c:?}");
    }

    #[test]
    fn lines_without_nonzeros_stay() {
        let a = Csr::<f64>::new(2, 2, vec![0, 1, 1], vec![0], vec![1024.0]).unwrap();
        let (mut r, mut c) = ([0.0; 2], [0.0; 2]);
        units(&a, &mut r, &mut c);
        assert_eq!(r[0] * c[0] * 1024.0, 1.0);
        assert!((r[1] * c[1]).is_normal());
    }
}
