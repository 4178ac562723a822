//! Moduli with an exponent of any size: m·2ᵉ with m in double precision, relative error 2⁻⁵² an operation.
//!
//! Norms and condition numbers of systems at the ends of the range neither overflow nor underflow in it.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul};

/// A number that is not negative: m·2ᵉ with 1 ≤ m < 2, or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    mantissa: f64,
    exponent: i64,
}

impl Wide {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0.0, exponent: i64::MIN / 4 };

    /// |x|·2ᵉ for a finite x.
    pub fn scaled(x: f64, exponent: i64) -> Self {
        let x = x.abs();
        if x == 0.0 {
            return Self::ZERO;
        }
        // Subnormal numbers have no leading one.
        let (x, exponent) = if x < f64::MIN_POSITIVE { (x * 2f64.powi(64), exponent - 64) } else { (x, exponent) };
        let bits = x.to_bits();
        let own = (bits >> 52) as i64 - 1023;
        Self { mantissa: f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52), exponent: exponent + own }
    }

    /// |x|.
    pub fn new(x: f64) -> Self {
        Self::scaled(x, 0)
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// The number times 2ᵏ.
    pub fn shifted(self, k: i64) -> Self {
        if self.is_zero() { self } else { Self { exponent: self.exponent + k, ..self } }
    }

    /// Square root.
    pub fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let odd = self.exponent.rem_euclid(2);
        Self::scaled((self.mantissa * (1 << odd) as f64).sqrt(), (self.exponent - odd) / 2)
    }

    /// √(x² + y²).
    pub fn hypot(self, other: Self) -> Self {
        (self * self + other * other).sqrt()
    }

    /// The larger of two.
    pub fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// Base-2 logarithm; −∞ of zero.
    pub fn log2(self) -> f64 {
        if self.is_zero() { f64::NEG_INFINITY } else { self.exponent as f64 + self.mantissa.log2() }
    }

    /// The nearest double; infinite beyond the range.
    pub fn to_f64(self) -> f64 {
        if self.exponent > 1023 {
            return f64::INFINITY;
        }
        if self.exponent < -1200 {
            return 0.0;
        }
        let half = (self.exponent / 2) as i32;
        self.mantissa * 2f64.powi(half) * 2f64.powi(self.exponent as i32 - half)
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.exponent.cmp(&other.exponent).then(self.mantissa.total_cmp(&other.mantissa)).into()
    }
}

impl Add for Wide {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (large, small) = if self < other { (other, self) } else { (self, other) };
        let gap = large.exponent - small.exponent;
        if small.is_zero() || gap > 60 {
            return large;
        }
        Self::scaled(large.mantissa + small.mantissa * 2f64.powi(-(gap as i32)), large.exponent)
    }
}

impl Mul for Wide {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        Self::scaled(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }
}

/// x/0 is larger than any double, but finite; 0/0 is 0.
impl Div for Wide {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        match (self.is_zero(), other.is_zero()) {
            (true, _) => self,
            (false, true) => Self { mantissa: 1.0, exponent: 1 << 40 },
            (false, false) => Self::scaled(self.mantissa / other.mantissa, self.exponent - other.exponent),
        }
    }
}

impl std::iter::Sum for Wide {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_survive() {
        for x in [1.0, 3.5, 0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310, 0.0] {
            assert_eq!(Wide::new(x).to_f64(), x);
            assert_eq!(Wide::new(-x).to_f64(), x);
        }
    }

    #[test]
    fn nothing_overflows() {
        let big = Wide::new(f64::MAX);
        assert_eq!(((big * big) / big).to_f64(), f64::MAX);
        assert_eq!((big * big).sqrt().to_f64(), f64::MAX);
        assert_eq!((big + big).to_f64(), f64::INFINITY);
        assert!(big + big > big);
        let tiny = Wide::new(5e-324);
        assert_eq!((tiny * tiny * tiny / tiny / tiny).to_f64(), 5e-324);
        assert_eq!(Wide::new(3.0).hypot(Wide::new(4.0)).to_f64(), 5.0);
    }

    #[test]
    fn order_and_zero() {
        assert!(Wide::ZERO < Wide::new(5e-324));
        assert!(Wide::new(1.5) > Wide::new(1.25));
        assert!(Wide::new(1.5) < Wide::new(2.0));
        assert_eq!((Wide::ZERO + Wide::new(2.0)).to_f64(), 2.0);
        assert_eq!((Wide::ZERO / Wide::ZERO).to_f64(), 0.0);
        assert_eq!((Wide::new(1.0) / Wide::ZERO).to_f64(), f64::INFINITY);
        assert_eq!(Wide::ZERO.to_f64(), 0.0);
    }
}
