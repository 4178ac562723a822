//! Dyadic numbers, m·2ᵉ with an integer m of any length, and complex ones: sums and products of floating-point numbers
//! without rounding.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::wide::Wide;

/// m·2ᵉ.
#[derive(Clone, Debug, Default)]
pub struct Dyadic {
    m: BigInt,
    e: i64,
}

impl Dyadic {
    /// m·2ᵉ.
    pub fn new(m: BigInt, e: i64) -> Self {
        Self { m, e }
    }

    /// A finite double, exactly, its mantissa odd.
    pub fn from_f64(x: f64) -> Self {
        if x == 0.0 {
            return Self::default();
        }
        let bits = x.abs().to_bits();
        let (own, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        let (m, e) = if own == 0 { (fraction, -1074) } else { (fraction | 1 << 52, own - 1075) };
        let zeros = m.trailing_zeros();
        let m = BigInt::from(m >> zeros);
        Self { m: if x < 0.0 { -m } else { m }, e: e + i64::from(zeros) }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.m.is_zero()
    }

    /// The power of two that divides it, of a number that is not zero.
    pub fn trailing(&self) -> i64 {
        self.e + self.m.trailing_zeros().unwrap_or(0) as i64
    }

    /// The number times 2ᵏ.
    pub fn shifted(&self, k: i64) -> Self {
        Self { m: self.m.clone(), e: self.e + k }
    }

    /// Its integer value over 2ᵉ, for an e that is at most that of the number.
    pub fn over(&self, e: i64) -> BigInt {
        if self.is_zero() { BigInt::zero() } else { &self.m << (self.e - e) as u64 }
    }

    /// Sum.
    pub fn add(&self, other: &Self) -> Self {
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() {
            return self.clone();
        }
        let e = self.e.min(other.e);
        Self { m: self.over(e) + other.over(e), e }
    }

    /// Negative.
    pub fn neg(&self) -> Self {
        Self { m: -&self.m, e: self.e }
    }

    /// Product.
    pub fn mul(&self, other: &Self) -> Self {
        Self { m: &self.m * &other.m, e: self.e + other.e }
    }

    /// Modulus.
    pub fn wide(&self) -> Wide {
        let bits = self.m.bits();
        let drop = bits.saturating_sub(64);
        let top = (self.m.abs() >> drop).to_u64().unwrap_or(0);
        Wide::scaled(top as f64, self.e + drop as i64)
    }

    /// A double within an ulp of it.
    pub fn to_f64(&self) -> f64 {
        let modulus = self.wide().to_f64();
        if self.m.is_negative() { -modulus } else { modulus }
    }
}

/// A complex dyadic number.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// Real part.
    pub re: Dyadic,
    /// Imaginary part.
    pub im: Dyadic,
}

impl Exact {
    /// From two finite doubles.
    pub fn new([re, im]: [f64; 2]) -> Self {
        Self { re: Dyadic::from_f64(re), im: Dyadic::from_f64(im) }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.re.is_zero() && self.im.is_zero()
    }

    /// Sum.
    pub fn add(&self, other: &Self) -> Self {
        Self { re: self.re.add(&other.re), im: self.im.add(&other.im) }
    }

    /// Difference.
    pub fn sub(&self, other: &Self) -> Self {
        Self { re: self.re.add(&other.re.neg()), im: self.im.add(&other.im.neg()) }
    }

    /// Product.
    pub fn mul(&self, other: &Self) -> Self {
        if self.im.is_zero() && other.im.is_zero() {
            return Self { re: self.re.mul(&other.re), im: Dyadic::default() };
        }
        Self {
            re: self.re.mul(&other.re).add(&self.im.mul(&other.im).neg()),
            im: self.re.mul(&other.im).add(&self.im.mul(&other.re)),
        }
    }

    /// The number times 2ᵏ.
    pub fn shifted(&self, k: i64) -> Self {
        Self { re: self.re.shifted(k), im: self.im.shifted(k) }
    }

    /// Modulus.
    pub fn wide(&self) -> Wide {
        if self.im.is_zero() { self.re.wide() } else { self.re.wide().hypot(self.im.wide()) }
    }

    /// Both parts rounded to doubles.
    pub fn to_f64(&self) -> [f64; 2] {
        [self.re.to_f64(), self.im.to_f64()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_taken_exactly() {
        for x in [1.0, -0.1, 1e300, -5e-324, 3e-310, 0.0, f64::MAX] {
            assert_eq!(Dyadic::from_f64(x).to_f64(), x);
        }
        let third = Dyadic::from_f64(1.0 / 3.0);
        // 3·fl(1/3) is below 1 by 2⁻⁵⁴.
        let gap = Dyadic::from_f64(1.0).add(&third.mul(&Dyadic::from_f64(3.0)).neg());
        assert_eq!(gap.to_f64(), (-54f64).exp2());
    }

    #[test]
    fn sums_lose_nothing() {
        let sum = [1e300, 1e-300, -1e300].map(Dyadic::from_f64).iter().fold(Dyadic::default(), |s, x| s.add(x));
        assert_eq!(sum.to_f64(), 1e-300);
        assert!(sum.add(&Dyadic::from_f64(-1e-300)).is_zero());
    }

    #[test]
    fn complex_products() {
        let (x, y) = (Exact::new([1.0, 2.0]), Exact::new([3.0, -1.0]));
        assert_eq!(x.mul(&y).to_f64(), [5.0, 5.0]);
        assert_eq!(x.sub(&y).to_f64(), [-2.0, 3.0]);
        assert_eq!(Exact::new([3.0, -4.0]).wide().to_f64(), 5.0);
        assert_eq!(Exact::new([3.0, 0.0]).shifted(-1).to_f64(), [1.5, 0.0]);
    }
}
