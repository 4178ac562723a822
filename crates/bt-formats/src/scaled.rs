//! Positive numbers with an exponent of their own: m·2ᵉ, 1 ≤ m < 2, for probabilities far below 1e−308 and norms that overflow.
//!
//! Storage: 16 bytes. Every operation rounds once, as in f64, and none overflows or underflows while exponents stay
//! below 2⁶².

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul};

/// Zero or a positive number m·2ᵉ.
///
/// ```
/// use bt_formats::Scaled;
/// let tiny = Scaled::new(1e-300) * Scaled::new(1e-300);
/// assert_eq!(tiny.to_f64(), 0.0);
/// assert!((tiny.log10() + 600.0).abs() < 1e-12);
/// assert_eq!((tiny / Scaled::new(1e-300)).to_f64(), 1e-300);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaled {
    /// 0, or at least 1 and less than 2.
    mantissa: f64,
    exponent: i64,
}

const MANTISSA_BITS: u32 = 52;
const BIAS: i64 = 1023;

impl Scaled {
    /// 0.
    pub const ZERO: Self = Self { mantissa: 0.0, exponent: 0 };
    /// 1.
    pub const ONE: Self = Self { mantissa: 1.0, exponent: 0 };

    /// From a finite number of at least 0, exactly.
    ///
    /// # Panics
    /// On any other.
    #[inline]
    pub fn new(x: f64) -> Self {
        assert!(x >= 0.0 && x.is_finite(), "{x} is no finite number of at least 0");
        Self::with_exponent(x, 0)
    }

    /// |x|·2ᵉ of a finite x.
    #[inline]
    pub fn with_exponent(x: f64, exponent: i64) -> Self {
        // The sign belongs to a negative zero, the sum of no numbers.
        let bits = x.abs().to_bits();
        let power = (bits >> MANTISSA_BITS) as i64;
        if power == 0 {
            // Zero, or subnormal: its leading zeros are shifted out by an exact product.
            return if x == 0.0 { Self::ZERO } else { Self::with_exponent(x * 2f64.powi(64), exponent - 64) };
        }
        let mantissa = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | (BIAS as u64) << MANTISSA_BITS);
        Self { mantissa, exponent: exponent + power - BIAS }
    }

    /// The number times 2^−`exponent`, flushed to zero below the smallest normal double; infinite above the largest.
    #[inline]
    pub fn relative_to(self, exponent: i64) -> f64 {
        let power = self.exponent - exponent;
        if power < -1022 || self.mantissa == 0.0 {
            0.0
        } else if power > 1023 {
            f64::INFINITY
        } else {
            self.mantissa * f64::from_bits(((power + BIAS) as u64) << MANTISSA_BITS)
        }
    }

    /// As a double: zero below 2⁻¹⁰²², infinite from 2¹⁰²⁴ on.
    #[inline]
    pub fn to_f64(self) -> f64 {
        self.relative_to(0)
    }

    /// Whether it is 0.
    #[inline]
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// m: 0, or at least 1 and less than 2.
    pub fn mantissa(self) -> f64 {
        self.mantissa
    }

    /// e.
    pub fn exponent(self) -> i64 {
        self.exponent
    }

    /// log₁₀, −∞ of 0.
    pub fn log10(self) -> f64 {
        self.mantissa.log10() + self.exponent as f64 * std::f64::consts::LOG10_2
    }

    /// Σx, compensated (A. Neumaier, Z. Angew. Math. Mech. 54 (1974), doi:10.1002/zamm.19740540106) relative to the largest: a relative
    /// error of two roundings or so for any number of terms; 0 of none.
    ///
    /// ```
    /// use bt_formats::Scaled;
    /// let x = [Scaled::new(0.5), Scaled::ZERO, Scaled::new(2.0)];
    /// assert_eq!(Scaled::total(&x).to_f64(), 2.5);
    /// ```
    pub fn total(x: &[Self]) -> Self {
        let largest = x.iter().copied().fold(Self::ZERO, Self::max);
        let (mut sum, mut lost) = (0.0, 0.0);
        for &x in x {
            let x = x.relative_to(largest.exponent());
            let next: f64 = sum + x;
            lost += if sum >= x { (sum - next) + x } else { (x - next) + sum };
            sum = next;
        }
        Self::with_exponent(sum + lost, largest.exponent())
    }

    /// The larger.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

impl PartialOrd for Scaled {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.is_zero() || other.is_zero() {
            return self.mantissa.partial_cmp(&other.mantissa);
        }
        Some(self.exponent.cmp(&other.exponent).then(self.mantissa.total_cmp(&other.mantissa)))
    }
}

impl Add for Scaled {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        let (big, small) = if other > self { (other, self) } else { (self, other) };
        // Beyond 64 places the smaller one is less than half a unit in the last place.
        if small.is_zero() || big.exponent - small.exponent > 64 {
            return big;
        }
        Self::with_exponent(big.mantissa + small.relative_to(big.exponent), big.exponent)
    }
}

impl Mul for Scaled {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self::with_exponent(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }
}

impl Div for Scaled {
    type Output = Self;
    /// The quotient by a positive number.
    #[inline]
    fn div(self, other: Self) -> Self {
        Self::with_exponent(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_survive_the_round_trip() {
        for x in [0.0, 1.0, 1.5, 0.1, 1e300, 1e-300, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(Scaled::new(x).to_f64(), x);
        }
        assert_eq!(Scaled::new(-0.0), Scaled::ZERO);
        // Subnormal numbers are exact inside and flushed on the way out.
        let subnormal = Scaled::new(f64::MIN_POSITIVE / 8.0);
        assert_eq!((subnormal.to_f64(), (subnormal * Scaled::new(8.0)).to_f64()), (0.0, f64::MIN_POSITIVE));
        assert_eq!((Scaled::new(1e300) * Scaled::new(1e300)).to_f64(), f64::INFINITY);
    }

    #[test]
    fn arithmetic_rounds_as_doubles_do() {
        let numbers = [0.0, 1.0, 3.0, 0.1, 1e-17, 1e17, 7.25e10, 1.0 - f64::EPSILON / 2.0];
        for x in numbers {
            for y in numbers {
                let (a, b) = (Scaled::new(x), Scaled::new(y));
                assert_eq!((a + b).to_f64(), x + y, "{x} + {y}");
                assert_eq!((a * b).to_f64(), x * y, "{x} · {y}");
                assert_eq!(a.partial_cmp(&b), x.partial_cmp(&y), "{x}, {y}");
                if y > 0.0 {
                    assert_eq!((a / b).to_f64(), x / y, "{x} / {y}");
                }
            }
        }
    }

    #[test]
    fn logarithms_reach_far_down() {
        let mut x = Scaled::ONE;
        for _ in 0..5000 {
            x = x * Scaled::new(0.1);
        }
        assert!((x.log10() + 5000.0).abs() < 1e-9);
        assert_eq!(Scaled::ZERO.log10(), f64::NEG_INFINITY);
    }
}
