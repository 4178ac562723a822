//! Gaussian integers of any size, made of floating-point numbers and rounded to them.
//!
//! Every finite number of a type with p digits is m·2ᵉ with an integer |m| < 2ᵖ; a quotient of integers is rounded once, to nearest, ties to
//! even, below the normal range too.

use bt_formats::{RealScalar, Scalar};
use num_bigint::{BigInt, BigUint, Sign};

/// m·2ᵉ with m odd, or 0·2⁰.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dyadic {
    pub mantissa: i64,
    pub exponent: i64,
}

impl Dyadic {
    /// A finite number.
    pub fn new(x: f64) -> Self {
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i64, (bits & ((1 << 52) - 1)) as i64);
        let (mantissa, exponent) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        if mantissa == 0 {
            return Self { mantissa: 0, exponent: 0 };
        }
        let zeros = mantissa.trailing_zeros();
        let sign = if x.is_sign_negative() { -1 } else { 1 };
        Self { mantissa: sign * (mantissa >> zeros), exponent: exponent + i64::from(zeros) }
    }

    /// The exponent; `None` of zero, which has any.
    pub fn lowest(self) -> Option<i64> {
        (self.mantissa != 0).then_some(self.exponent)
    }

    /// Bits of m·2^(e − unit).
    fn bits_above(self, unit: i64) -> u64 {
        match self.lowest() {
            Some(e) => u64::from(64 - self.mantissa.unsigned_abs().leading_zeros()) + (e - unit).unsigned_abs(),
            None => 0,
        }
    }

    /// m·2^(e − unit), of a unit no larger than the lowest bit.
    fn in_units(self, unit: i64) -> BigInt {
        match self.lowest() {
            Some(e) => BigInt::from(self.mantissa) << (e - unit).unsigned_abs(),
            None => BigInt::ZERO,
        }
    }
}

/// The parts of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub re: Dyadic,
    pub im: Dyadic,
}

impl Parts {
    pub fn new<T: Scalar>(v: T) -> Self {
        Self { re: Dyadic::new(v.re().to_f64()), im: Dyadic::new(v.im().to_f64()) }
    }

    /// Exponent of the lowest bit; `None` of zero.
    pub fn lowest(self) -> Option<i64> {
        self.re.lowest().into_iter().chain(self.im.lowest()).min()
    }

    /// Bits of the larger part in units of 2ᵘⁿⁱᵗ.
    pub fn bits_above(self, unit: i64) -> u64 {
        self.re.bits_above(unit).max(self.im.bits_above(unit))
    }

    /// In units of 2ᵘⁿⁱᵗ.
    pub fn in_units(self, unit: i64) -> Gaussian {
        Gaussian { re: self.re.in_units(unit), im: self.im.in_units(unit) }
    }
}

/// re + i·im. Those of real matrices have no imaginary part anywhere, and products skip it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaussian {
    pub re: BigInt,
    pub im: BigInt,
}

impl Gaussian {
    pub fn one() -> Self {
        Self { re: BigInt::from(1), im: BigInt::ZERO }
    }

    pub fn is_zero(&self) -> bool {
        self.re.sign() == Sign::NoSign && self.is_real()
    }

    fn is_real(&self) -> bool {
        self.im.sign() == Sign::NoSign
    }

    pub fn conj(self) -> Self {
        Self { im: -self.im, ..self }
    }

    /// Bits of both parts.
    pub fn bits(&self) -> u64 {
        self.re.bits() + self.im.bits()
    }

    pub fn product(&self, b: &Self) -> Self {
        if self.is_zero() || b.is_zero() {
            return Self::default();
        }
        if self.is_real() && b.is_real() {
            return Self { re: &self.re * &b.re, im: BigInt::ZERO };
        }
        Self { re: &self.re * &b.re - &self.im * &b.im, im: &self.re * &b.im + &self.im * &b.re }
    }

    pub fn minus(self, b: &Self) -> Self {
        Self { re: self.re - &b.re, im: self.im - &b.im }
    }

    /// self / d, which has no remainder.
    pub fn exact_quotient(self, d: &Self) -> Self {
        if self.is_zero() {
            return self;
        }
        if d.is_real() {
            return Self { re: self.re / &d.re, im: self.im / &d.re };
        }
        let norm = d.norm();
        let Self { re, im } = self.product(&d.clone().conj());
        Self { re: re / &norm, im: im / norm }
    }

    /// re² + im²
    fn norm(&self) -> BigInt {
        &self.re * &self.re + &self.im * &self.im
    }

    /// (self / d)·2ᵉ, each part rounded once.
    pub fn rounded_quotient<T: Scalar>(&self, d: &Self, exponent: i64) -> T {
        let part = |p: &BigInt, q: &BigInt| rounded_quotient::<T::Real>(p, q, exponent);
        if d.is_real() {
            return T::rounded(part(&self.re, &d.re), part(&self.im, &d.re));
        }
        let (product, norm) = (self.product(&d.clone().conj()), d.norm());
        T::rounded(part(&product.re, &norm), part(&product.im, &norm))
    }

    /// (v, e) with self = v·2ᵉ but for rounding, and parts of v below 2⁶⁴.
    pub fn scaled<T: Scalar>(&self) -> (T, u64) {
        let e = self.re.bits().max(self.im.bits()).saturating_sub(60);
        let part = |p: &BigInt| i64::try_from(p >> e).map_or(f64::NAN, |p| p as f64);
        (T::rounded(part(&self.re), part(&self.im)), e)
    }
}

/// (p / q)·2ᵉ to nearest in the type R, as a double.
fn rounded_quotient<R: RealScalar>(p: &BigInt, q: &BigInt, e: i64) -> f64 {
    // Digits, and the exponent of the smallest number.
    let (digits, least) = if size_of::<R>() == 4 { (24, -149) } else { (53, -1074) };
    let (dividend, divisor) = (p.magnitude(), q.magnitude());
    if p.sign() == Sign::NoSign {
        return 0.0;
    }
    // digits + 2 or + 3 bits of the quotient, and whether anything follows them.
    let shift = digits + 2 + divisor.bits() as i64 - dividend.bits() as i64;
    let up = |x: &BigUint, by: i64| x << by.max(0).unsigned_abs();
    let (dividend, divisor) = (up(dividend, shift), up(divisor, -shift));
    let quotient = &dividend / &divisor;
    let is_inexact = &quotient * &divisor != dividend;
    let quotient = u64::try_from(&quotient).expect("at most digits + 3 bits");
    let lowest = e - shift;
    // The exponent of the last digit that is kept.
    let last = (lowest + i64::from(64 - quotient.leading_zeros()) - digits).max(least);
    let dropped = (last - lowest).unsigned_abs();
    if dropped > 63 {
        return 0.0;
    }
    let (kept, rest, half) = (quotient >> dropped, quotient & ((1 << dropped) - 1), 1u64 << (dropped - 1));
    let up = rest > half || (rest == half && (is_inexact || kept % 2 == 1));
    let sign = if (p.sign() == Sign::Minus) != (q.sign() == Sign::Minus) { -1.0 } else { 1.0 };
    sign * times_power((kept + u64::from(up)) as f64, last)
}

/// x·2ᵉ of an integer x below 2⁵⁴, where that has no more digits than there is room for; infinity beyond the range.
fn times_power(x: f64, e: i64) -> f64 {
    // Two steps, neither of which leaves the normal range before the last does.
    let half = (e / 2).clamp(-1000, 1000) as i32;
    let rest = (e - i64::from(half)).clamp(-1000, 1000) as i32;
    x * 2f64.powi(half) * 2f64.powi(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_integers_times_powers_of_two() {
        assert_eq!(Dyadic::new(-12.0), Dyadic { mantissa: -3, exponent: 2 });
        assert_eq!(Dyadic::new(5e-324), Dyadic { mantissa: 1, exponent: -1074 });
        assert_eq!(Dyadic::new(-0.0), Dyadic { mantissa: 0, exponent: 0 });
        for x in [0.1, f64::MAX, f64::MIN_POSITIVE, -1e-310] {
            let Dyadic { mantissa, exponent } = Dyadic::new(x);
            assert_eq!(times_power(mantissa as f64, exponent), x);
        }
    }

    #[test]
    fn quotients_are_rounded_as_doubles_are() {
        for (p, q) in [(1i64, 3i64), (-2, 3), (1, 10), (7, -49), (i64::MAX, 2), ((1 << 53) + 1, 1), ((1 << 54) + 3, 2)]
        {
            // Of more than 53 bits are only dividends of powers of two, which round once.
            assert_eq!(rounded_quotient::<f64>(&p.into(), &q.into(), 0), p as f64 / q as f64, "{p} / {q}");
            if p.abs() < 1 << 24 {
                assert_eq!(rounded_quotient::<f32>(&p.into(), &q.into(), 0), f64::from(p as f32 / q as f32));
            }
        }
    }

    #[test]
    fn quotients_at_the_ends_of_the_range() {
        let at = |p: i64, q: i64, e| rounded_quotient::<f64>(&p.into(), &q.into(), e);
        assert_eq!(at(1, 1, 1024), f64::INFINITY);
        assert_eq!(at(-1, 1, 5000), f64::NEG_INFINITY);
        assert_eq!(at(1, 1, -1074), 5e-324);
        // Half of the smallest number goes to zero, which is even, and a little more than half does not.
        assert_eq!(at(1, 1, -1075), 0.0);
        assert_eq!(at(5, 4, -1075), 5e-324);
        assert_eq!(at(3, 1, -1075), 1e-323);
        assert_eq!(at(1, 3, -5000), 0.0);
        assert_eq!(rounded_quotient::<f32>(&1.into(), &3.into(), -140) as f32, (2f64.powi(-140) / 3.0) as f32);
        assert_eq!(rounded_quotient::<f32>(&1.into(), &1.into(), 128) as f32, f32::INFINITY);
    }

    #[test]
    fn complex_quotients() {
        let z = |re: i64, im: i64| Gaussian { re: re.into(), im: im.into() };
        let (a, b) = (z(3, -5), z(2, 7));
        assert_eq!(a.product(&b).exact_quotient(&b), a);
        // (1 + i) / (2 + i) = (3 + i) / 5
        let q: bt_formats::c64 = z(1, 1).rounded_quotient(&z(2, 1), 0);
        assert_eq!((q.re, q.im), (0.6, 0.2));
    }
}
