//! A matrix and vectors in single precision, scaled so that their range does not matter.
//!
//! f64 reaches from 10⁻³⁰⁸ to 10³⁰⁸, f32 from 10⁻³⁸ to 10³⁸. A matrix is divided by a power of two that brings its largest entry
//! to [1, 2), a vector likewise at every conversion: nothing overflows, the division is exact, and Hermitian stays
//! Hermitian. What is smaller than 2⁻¹²⁶ times the largest loses digits, then vanishes. In a vector that is far below rounding; in
//! a matrix it is too, unless a whole row or column goes with it, which is an error that names it.
//!
//! ```text
//! A = 2^e·F + E,  |eᵢⱼ| ≤ u₃₂·|aᵢⱼ| + 2^(e−150)
//! ```

use crate::csr::Csr;
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{RealScalar, Scalar, ScalarKind};

/// F of A = 2^e·F + E, and e.
///
/// ```
/// use bt_formats::{Csr, Rounded};
/// let a = Csr::from_dense(faer::mat![[3e200, 1e200], [0.0, -8e199]].as_ref())?;
/// let f = Rounded::<f32>::new(&a)?;
/// assert!((f64::from(f.matrix().get(1, 1)) * 2f64.powi(f.exponent()) / -8e199 - 1.0).abs() < 6e-8);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rounded<L> {
    matrix: Csr<L>,
    exponent: i32,
}

impl<L: Scalar> Rounded<L> {
    /// Of `a`.
    ///
    /// # Errors
    /// [`Error::NonFinite`]; [`Error::InvalidStructure`] for a complex A and a real L, and naming a row or column whose
    /// entries are all below 2⁻¹⁵⁰ times the largest of A.
    ///
    /// # Cost
    /// Three passes over the entries.
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        let real = |kind| matches!(kind, ScalarKind::F32 | ScalarKind::F64);
        if real(L::KIND) && !real(T::KIND) {
            let why = format!("it is complex, {} is not", L::KIND);
            return Err(Error::InvalidStructure { what: "matrix to round", why });
        }
        a.check_finite()?;
        let mut matrix = a.cast::<L>();
        let exponent = round(a.values(), matrix.values_mut()).unwrap_or(0);
        // Rows and columns with an entry before, and after.
        let (mut rows, mut cols) = (vec![(false, false); a.nrows()], vec![(false, false); a.ncols()]);
        for i in 0..a.nrows() {
            let (idx, before) = a.row(i);
            for ((&j, &v), &f) in idx.iter().zip(before).zip(matrix.row(i).1) {
                let (had, has) = (v != T::default(), f != L::default());
                for line in [&mut rows[i], &mut cols[j as usize]] {
                    *line = (line.0 || had, line.1 || has);
                }
            }
        }
        for (line, all) in [("row", rows), ("column", cols)] {
            if let Some(i) = all.iter().position(|&(had, has)| had && !has) {
                let why = format!(
                    "{line} {i} (from 0) vanishes in {}: its entries are below 2⁻¹⁵⁰ times the largest; scale the matrix, or keep its precision",
                    L::KIND
                );
                return Err(Error::InvalidStructure { what: "matrix to round", why });
            }
        }
        Ok(Self { matrix, exponent })
    }

    /// F.
    pub fn matrix(&self) -> &Csr<L> {
        &self.matrix
    }

    /// e.
    pub fn exponent(&self) -> i32 {
        self.exponent
    }
}

/// y ← 2^(−e)·x, max |re yᵢ|, |im yᵢ| in [1, 2). Returns e; nothing for x = 0 (y = 0 then) and when an entry is not finite (y is
/// not either). The slices have one length.
pub fn round<T: Scalar, L: Scalar>(x: &[T], y: &mut [L]) -> Option<i32> {
    let largest = x.iter().fold(0.0f64, |m, v| m.max_nan(v.re().to_f64().abs()).max_nan(v.im().to_f64().abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x.cast());
        return None;
    }
    let exponent = exponent_of(largest);
    let scale = Power::of(-exponent);
    for (y, x) in y.iter_mut().zip(x) {
        *y = L::rounded(scale.times(x.re().to_f64()), scale.times(x.im().to_f64()));
    }
    Some(exponent)
}

/// x ← 2^e·y. The slices have one length.
pub fn widen<T: Scalar, L: Scalar>(exponent: i32, y: &[L], x: &mut [T]) {
    let scale = Power::of(exponent);
    for (x, y) in x.iter_mut().zip(y) {
        *x = T::rounded(scale.times(y.re().to_f64()), scale.times(y.im().to_f64()));
    }
}

/// x ← 2^e·x. Exact but for numbers that leave the range or become subnormal.
pub fn scale_by_power<T: Scalar>(exponent: i32, x: &mut [T]) {
    if exponent == 0 {
        return;
    }
    let scale = Power::of(exponent);
    for x in x {
        *x = T::rounded(scale.times(x.re().to_f64()), scale.times(x.im().to_f64()));
    }
}

/// ⌊log₂ x⌋ of a positive finite number.
pub(crate) fn exponent_of(x: f64) -> i32 {
    let biased = |x: f64| (x.to_bits() >> 52) as i32 - 1023;
    // Subnormal numbers are brought into the normal range first.
    if x < f64::MIN_POSITIVE { biased(x * power_of_two(54)) - 54 } else { biased(x) }
}

/// 2^`exponent`, from its bits where it is a normal number.
#[inline]
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        -1022..=1023 => f64::from_bits(((1023 + exponent) as u64) << 52),
        _ => 2f64.powi(exponent),
    }
}

/// A power of two as two factors, each in range where the power need not be.
#[derive(Clone, Copy)]
pub(crate) struct Power(f64, f64);

impl Power {
    pub(crate) fn of(exponent: i32) -> Self {
        let half = exponent / 2;
        Self(power_of_two(half), power_of_two(exponent - half))
    }

    pub(crate) fn times(self, x: f64) -> f64 {
        x * self.0 * self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::c64;

    #[test]
    fn powers_of_two_are_found_and_undone() {
        assert!((-1022..=1024).all(|e| power_of_two(e) == f64::from(e).exp2()));
        for (x, e) in
            [(1.0, 0), (1.999, 0), (2.0, 1), (0.5, -1), (f64::MAX, 1023), (f64::MIN_POSITIVE, -1022), (5e-324, -1074)]
        {
            assert_eq!(exponent_of(x), e, "{x:e}");
            let (mut y, mut back) = ([0.0f32; 2], [0.0f64; 2]);
            assert_eq!(round(&[x, -x / 2.0], &mut y), Some(e));
            assert!(y[0] >= 1.0 && y[0] <= 2.0);
            widen(e, &y, &mut back);
            assert!((back[0] / x - 1.0).abs() < 6e-8 || !back[0].is_finite(), "{x:e}");
        }
        let mut y = [1.0f32; 2];
        assert_eq!((round(&[0.0, 0.0], &mut y), y), (None, [0.0; 2]));
        assert!(round(&[1.0, f64::NAN], &mut y).is_none() && y[1].is_nan());
        assert!(round(&[1.0, f64::INFINITY], &mut y).is_none() && y[1].is_infinite());
    }

    #[test]
    fn lines_that_vanish_are_named() {
        let of = |a: faer::Mat<f64>| Rounded::<f32>::new(&Csr::from_dense(a.as_ref()).unwrap());
        let small = 1e-60;
        assert!(of(faer::mat![[1.0, small], [small, 1.0]]).is_ok());
        let error = of(faer::mat![[1.0, 0.0], [0.0, small]]).unwrap_err().to_string();
        assert!(error.contains("row 1"), "{error}");
        let error = of(faer::mat![[1.0, small], [1.0, small]]).unwrap_err().to_string();
        assert!(error.contains("column 1"), "{error}");
        assert!(of(faer::mat![[1.0, f64::NAN], [1.0, 1.0]]).is_err());
        let complex = Csr::from_dense(faer::mat![[c64::new(1.0, 1.0)]].as_ref()).unwrap();
        assert!(Rounded::<f32>::new(&complex).unwrap_err().to_string().contains("complex"));
    }
}
