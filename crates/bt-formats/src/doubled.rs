//! Numbers of twice the precision of a double: the unevaluated sum of two.
//!
//! T. J. Dekker, Numer. Math. 18 (1971) 224–242, doi:10.1007/BF01397083, with D. E. Knuth's sum of two numbers; accurate to
//! some 2⁻¹⁰⁴, with the exponents of doubles. Products are split and not fused, so that the bits are those of any processor.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `high` + `low`, |low| ≤ ½·ulp(high).
///
/// ```
/// use bt_formats::Doubled;
/// let third = Doubled::new(1.0) / Doubled::new(3.0);
/// assert_eq!((third + third + third - Doubled::new(1.0)).value().abs() < 1e-31, true);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doubled {
    high: f64,
    low: f64,
}

/// s + e = a + b
#[inline(always)]
pub(crate) fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let z = s - a;
    (s, (a - (s - z)) + (b - z))
}

/// The same for |a| ≥ |b|.
#[inline(always)]
fn sum_of_ordered(a: f64, b: f64) -> Doubled {
    let high = a + b;
    Doubled { high, low: b - (high - a) }
}

/// a as the sum of two numbers of 26 bits.
#[inline(always)]
pub(crate) fn split(a: f64) -> (f64, f64) {
    // 2²⁷ + 1
    let t = 134_217_729.0 * a;
    let high = t - (t - a);
    (high, a - high)
}

/// p + e = a·b
#[inline(always)]
pub(crate) fn product(a: f64, b: f64) -> (f64, f64) {
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    let p = a * b;
    (p, al * bl - (((p - ah * bh) - al * bh) - ah * bl))
}

impl Doubled {
    /// A double.
    #[inline(always)]
    pub fn new(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }

    /// The nearest double.
    #[inline(always)]
    pub fn value(self) -> f64 {
        self.high
    }

    /// Less than its nearest double holds of it.
    #[inline(always)]
    pub fn rest(self) -> f64 {
        self.low
    }
}

impl Add for Doubled {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (s, e) = sum(self.high, other.high);
        let (t, f) = sum(self.low, other.low);
        let first = sum_of_ordered(s, e + t);
        sum_of_ordered(first.high, first.low + f)
    }
}

impl Neg for Doubled {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Doubled {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Doubled {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (p, e) = product(self.high, other.high);
        sum_of_ordered(p, e + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Doubled {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // Three digits in base 2⁵³.
        let q1 = self.high / other.high;
        let r = self - other * Self::new(q1);
        let q2 = r.high / other.high;
        let r = r - other * Self::new(q2);
        let q3 = r.high / other.high;
        sum_of_ordered(q1, q2) + Self::new(q3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_keeps_what_a_double_loses() {
        let (one, tiny) = (Doubled::new(1.0), Doubled::new(2f64.powi(-90)));
        assert_eq!((one + tiny) - one, tiny);
        // (1 + t)·(1 − t) = 1 − t² for t = 2⁻⁴⁰
        let t = Doubled::new(2f64.powi(-40));
        assert_eq!(((one + t) * (one - t) - one).value(), -2f64.powi(-80));
        let third = one / Doubled::new(3.0);
        assert!(((third * Doubled::new(3.0)) - one).value().abs() < 1e-31 && third.rest() != 0.0);
        let seventh = Doubled::new(22.0) / Doubled::new(7.0);
        assert!((seventh * Doubled::new(7.0) - Doubled::new(22.0)).value().abs() < 1e-30);
    }
}
