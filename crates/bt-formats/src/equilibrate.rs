//! Equilibration by powers of two: R·A·C with the largest modulus of every row and column in (¼, 1].
//!
//! Powers of two make the scaling exact (barring underflow), so that it changes the choice of pivots and nothing
//! else. Rows first, then columns, as LAPACK's xGEEQUB does. Cost: two passes over the entries.

use crate::csr::Csr;
use crate::operator::{LinearOperator, Matrix, one, zero};
use crate::rounded::{exponent_of, power_of_two};
use crate::scalar::{RealScalar, Scalar};

/// Fills `rows` and `cols`, the diagonals of R and C, with powers of two. Lines without a nonzero get 1.
///
/// # Panics
/// When their lengths are not the rows and columns of A.
#[inline(never)]
pub fn equilibrate<T: Scalar>(a: &Csr<T>, rows: &mut [T::Real], cols: &mut [T::Real]) {
    assert_eq!((rows.len(), cols.len()), (a.nrows(), a.ncols()), "lengths of R and C");
    // rᵢ ← 2^−⌈log₂ maxⱼ|aᵢⱼ|⌉
    for (i, r) in rows.iter_mut().enumerate() {
        let max = a.row(i).1.iter().fold(zero::<T::Real>(), |m, v| m.max_nan(v.abs1()));
        *r = inverse_power_of_two(max);
    }
    // cⱼ ← 2^−⌈log₂ maxᵢ rᵢ|aᵢⱼ|⌉
    cols.fill(zero());
    a.for_each_entry(&mut |i, j, v| cols[j] = cols[j].max_nan((v * T::from_real(rows[i])).abs1()));
    for c in cols {
        *c = inverse_power_of_two(*c);
    }
}

/// Smallest and largest of the largest |re v| + |im v| of a column, over the columns with nonzeros; infinity and zero where there is
/// none. One pass over the entries, n numbers of memory.
pub fn column_sizes<T: Scalar>(a: &Csr<T>) -> (f64, f64) {
    let mut largest = vec![zero::<T::Real>(); a.ncols()];
    let take = |most: &mut T::Real, v: T| *most = if v.abs1() > *most { v.abs1() } else { *most };
    bt_simd::dispatch(bt_simd::Loops(
        #[inline(always)]
        || {
            for i in 0..a.nrows() {
                let (cols, values) = a.row(i);
                let Some((&first, &last)) = cols.first().zip(cols.last()) else { continue };
                if (last - first) as usize + 1 == cols.len() {
                    // A row without gaps.
                    let run = &mut largest[first as usize..=last as usize];
                    run.iter_mut().zip(values).for_each(|(most, &v)| take(most, v));
                } else {
                    cols.iter().zip(values).for_each(|(&j, &v)| take(&mut largest[j as usize], v));
                }
            }
        },
    ));
    let nonzero = largest.iter().map(|v| v.to_f64()).filter(|v| *v > 0.0);
    nonzero.fold((f64::INFINITY, 0.0), |(least, most), v| (least.min(v), most.max(v)))
}

/// Fills `s` with powers of two for which S·A·S has its diagonal moduli in [1, 4), as Hermitian positive definite matrices need
/// it. A diagonal entry of zero gets 1.
///
/// # Panics
/// When its length is not the rows of A.
pub fn equilibrate_diagonal<T: Scalar>(a: &Csr<T>, s: &mut [T::Real]) {
    assert_eq!(s.len(), a.nrows(), "length of S");
    for (i, s) in s.iter_mut().enumerate() {
        let d = a.get(i, i).abs1().to_f64();
        // The root of a number in the range is far from its ends; with exponents 2e and 2e + 1 alike S·A·S has [1, 4).
        let power = |d: f64| power_of_two(-exponent_of(d).div_euclid(2));
        *s = if d > 0.0 && d.is_finite() { T::Real::from_f64(power(d)) } else { one() };
    }
}

/// Fills `s` with powers of two for which the rows of S·A·S, A Hermitian, have their largest moduli near 1 and none above 4:
/// sᵢ ← sᵢ/√maxⱼ sᵢ|aᵢⱼ|sⱼ, three times (D. Ruiz & B. Uçar, SIAM J. Matrix Anal. Appl. 35 (2014) 1256–1284, doi:10.1137/110825753),
/// then each sᵢ as large as the others let it be. A power of two in front of A moves all factors alike.
///
/// # Panics
/// When its length is not the rows of A.
#[inline(never)]
pub fn equilibrate_symmetric<T: Scalar>(a: &Csr<T>, s: &mut [T::Real]) {
    const SWEEPS: usize = 3;
    assert_eq!(s.len(), a.nrows(), "length of S");
    let exponent = |v: &T| exponent_of(v.abs1().to_f64().min(T::Real::MAX.to_f64()));
    // Exponents alone, beside the largest: S holds its own until the end.
    let largest = a.values().iter().filter(|v| **v != zero()).map(exponent).max().unwrap_or(0);
    s.fill(zero());
    for sweep in 0..=SWEEPS {
        for i in 0..s.len() {
            let (cols, values) = a.row(i);
            let own = s[i].to_f64() as i32;
            let others = |s: &[T::Real], j: u32| s[j as usize].to_f64() as i32 - largest;
            let entries = cols.iter().zip(values).filter(|e| *e.1 != zero());
            let step = if sweep < SWEEPS {
                let size = entries.map(|(&j, v)| exponent(v) + others(s, j)).max().map_or(0, |size| size + own);
                // Half of it, rounded away from zero.
                size.midpoint(size.signum())
            } else {
                let room = entries.map(|(&j, v)| {
                    let size = exponent(v) + others(s, j) + own;
                    if j as usize == i { (size + 1).div_euclid(2) } else { size }
                });
                room.max().unwrap_or(0)
            };
            s[i] = T::Real::from_f64(f64::from(own - step));
        }
    }
    let range = if size_of::<T::Real>() == 4 { 125 } else { 1020 };
    for s in s {
        let power = s.to_f64() as i32 - largest.div_euclid(2);
        *s = T::Real::from_f64(power_of_two(power.clamp(-range, range)));
    }
}

/// The power of two p with p·x in (½, 1], kept in the range where p and 1/p are normal; 1 for x = 0. Infinity is the |re| + |im| of
/// a number near the end of the range.
fn inverse_power_of_two<R: RealScalar>(x: R) -> R {
    if x == zero() {
        return one();
    }
    let x = x.to_f64().min(R::MAX.to_f64());
    let range = if size_of::<R>() == 4 { 125 } else { 1020 };
    // ⌈log₂ x⌉ from the bits: a logarithm would round. Subnormal numbers are far below the range.
    let below = exponent_of(x);
    let is_power = x <= power_of_two(below);
    let exponent = (if is_power { below } else { below + 1 }).clamp(-range, range);
    R::from_f64(power_of_two(-exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_reach_one() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1e300, 1e290, 1e-300, 3e-306]).unwrap();
        let (mut r, mut c) = ([0.0f64; 2], [0.0f64; 2]);
        equilibrate(&a, &mut r, &mut c);
        let s = a.scale(&r, &c);
        for max in [0, 1].map(|i| s.row(i).1.iter().fold(0.0, |m: f64, v| m.max(Scalar::abs(*v)))) {
            assert!(max > 0.25 && max <= 1.0, "{max}");
        }
        assert_eq!(column_sizes(&a), (1e290, 1e300));
        assert_eq!(r[0].log2().fract(), 0.0);
        assert_eq!(c[1].log2().fract(), 0.0);
    }

    #[test]
    fn rows_of_hermitian_matrices_reach_one() {
        // [ 1e200   1  1e−150 ]
        // [   1     0  1e−180 ]
        // [ 1e−150 1e−180   0 ]
        let values = vec![1e200, 1.0, 1e-150, 1.0, 1e-180, 1e-150, 1e-180];
        let a = Csr::new(3, 3, vec![0, 3, 5, 7], vec![0, 1, 2, 0, 2, 0, 1], values).unwrap();
        let mut s = [0.0f64; 3];
        equilibrate_symmetric(&a, &mut s);
        let scaled = a.scale(&s, &s);
        for max in [0, 1, 2].map(|i| scaled.row(i).1.iter().fold(0.0, |m: f64, v| m.max(Scalar::abs(*v)))) {
            assert!((0.05..4.1).contains(&max), "{max} {s:?}");
        }
        assert!(s.iter().all(|s| s.log2().fract() == 0.0));
        let mut moved = [0.0f64; 3];
        let less = Csr::new(
            3,
            3,
            a.row_ptr().to_vec(),
            a.col_idx().to_vec(),
            a.values().iter().map(|v| v * (-61f64).exp2()).collect(),
        );
        equilibrate_symmetric(&less.unwrap(), &mut moved);
        assert!(s.iter().zip(&moved).all(|(s, m)| m / s == 30f64.exp2() || m / s == 31f64.exp2()), "{s:?} {moved:?}");
    }

    #[test]
    fn powers_stay_normal() {
        assert_eq!(inverse_power_of_two(0.0f64), 1.0);
        assert_eq!(inverse_power_of_two(f64::INFINITY), (-1020f64).exp2());
        assert_eq!(inverse_power_of_two(1.0f64), 1.0);
        assert_eq!(inverse_power_of_two(3.0f32), 0.25);
        for x in [5e-324, f64::MAX] {
            let p = inverse_power_of_two(x);
            assert!(p.is_normal() && (1.0 / p).is_normal());
        }
        assert!(inverse_power_of_two(f32::MAX).is_normal() && inverse_power_of_two(1e-45f32).is_normal());
    }
}
