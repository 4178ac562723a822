//! det(A) and det(A)·A⁻¹ of a matrix of integers, or of Gaussian integers, without fractions.
//!
//! Elimination after Bareiss (Math. Comp. 22, 1968, doi:10.1090/S0025-5718-1968-0226829-0) carried to the diagonal: every
//! number that appears is a minor, so that the division by the previous pivot leaves no remainder.
//! Cost: 2n³ products of numbers as long as the determinant.

use num_bigint::BigInt;
use num_traits::{One, Zero};

/// Integers in which known quotients are computed.
pub trait Ring: Clone {
    /// Zero.
    fn zero() -> Self;
    /// One.
    fn one() -> Self;
    /// Whether it is zero.
    fn is_zero(&self) -> bool;
    /// (a·b − c·d)/q, where q divides.
    fn step(a: &Self, b: &Self, c: &Self, d: &Self, q: &Self) -> Self;
}

impl Ring for BigInt {
    fn zero() -> Self {
        Zero::zero()
    }
    fn one() -> Self {
        One::one()
    }
    fn is_zero(&self) -> bool {
        Zero::is_zero(self)
    }
    fn step(a: &Self, b: &Self, c: &Self, d: &Self, q: &Self) -> Self {
        (a * b - c * d) / q
    }
}

/// re + i·im.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    /// Real part.
    pub re: BigInt,
    /// Imaginary part.
    pub im: BigInt,
}

impl Gaussian {
    /// Product.
    pub fn mul(&self, other: &Self) -> Self {
        Self { re: &self.re * &other.re - &self.im * &other.im, im: &self.re * &other.im + &self.im * &other.re }
    }
}

impl Ring for Gaussian {
    fn zero() -> Self {
        Self { re: BigInt::ZERO, im: BigInt::ZERO }
    }
    fn one() -> Self {
        Self { re: One::one(), im: BigInt::ZERO }
    }
    fn is_zero(&self) -> bool {
        Zero::is_zero(&self.re) && Zero::is_zero(&self.im)
    }
    fn step(a: &Self, b: &Self, c: &Self, d: &Self, q: &Self) -> Self {
        let (ab, cd) = (a.mul(b), c.mul(d));
        let difference = Self { re: ab.re - cd.re, im: ab.im - cd.im };
        // z/q = z·q̄/|q|²
        let norm = &q.re * &q.re + &q.im * &q.im;
        let z = difference.mul(&Self { re: q.re.clone(), im: -&q.im });
        Self { re: z.re / &norm, im: z.im / &norm }
    }
}

/// (d, d·A⁻¹) with d = ±det(A); `None` when A is singular. `a` holds the rows.
pub fn adjugate<R: Ring>(a: &[Vec<R>]) -> Option<(R, Vec<Vec<R>>)> {
    let n = a.len();
    let mut work: Vec<Vec<R>> = a.to_vec();
    for (i, row) in work.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { R::one() } else { R::zero() }));
    }
    let mut previous = R::one();
    for k in 0..n {
        let pivot = (k..n).find(|&i| !work[i][k].is_zero())?;
        work.swap(k, pivot);
        let pivot_row = work[k].clone();
        let pivot = &pivot_row[k];
        for i in (0..n).filter(|&i| i != k) {
            let factor = work[i][k].clone();
            for j in (k + 1..2 * n).chain((i < k).then_some(i)) {
                work[i][j] = R::step(pivot, &work[i][j], &factor, &pivot_row[j], &previous);
            }
            work[i][k] = R::zero();
        }
        previous = pivot.clone();
    }
    Some((previous, work.into_iter().map(|mut row| row.split_off(n)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(rows: &[&[i64]]) -> Vec<Vec<BigInt>> {
        rows.iter().map(|row| row.iter().map(|&v| BigInt::from(v)).collect()).collect()
    }

    #[test]
    fn a_matrix_times_its_adjugate_is_the_determinant() {
        let a = integers(&[&[0, 2, 0, 1], &[3, 0, 1, -4], &[0, 5, 2, 0], &[1, 1, 0, 7]]);
        let (d, adjugate) = adjugate(&a).unwrap();
        // By cofactors: det = -89; interchanges may turn its sign.
        assert_eq!(&d * &d, BigInt::from(89 * 89));
        for i in 0..4 {
            for j in 0..4 {
                let sum: BigInt = (0..4).map(|k| &a[i][k] * &adjugate[k][j]).sum();
                assert_eq!(sum, if i == j { d.clone() } else { BigInt::ZERO });
            }
        }
    }

    #[test]
    fn singular_matrices_have_none() {
        assert!(adjugate(&integers(&[&[1, 2], &[2, 4]])).is_none());
        assert!(adjugate(&integers(&[&[1, 2, 3], &[4, 5, 6], &[7, 8, 9]])).is_none());
        assert!(adjugate(&integers(&[&[1, 2, 3], &[4, 5, 6], &[7, 8, 10]])).is_some());
    }

    #[test]
    fn gaussian_integers() {
        let z = |re: i64, im: i64| Gaussian { re: re.into(), im: im.into() };
        // [1 i; -i 2] has determinant 1, [1 i; i -1] has none.
        let (d, inverse) = adjugate(&[vec![z(1, 0), z(0, 1)], vec![z(0, -1), z(2, 0)]]).unwrap();
        assert_eq!(d, z(1, 0));
        assert_eq!(inverse, [vec![z(2, 0), z(0, -1)], vec![z(0, 1), z(1, 0)]]);
        assert!(adjugate(&[vec![z(1, 0), z(0, 1)], vec![z(0, 1), z(-1, 0)]]).is_none());
    }
}
