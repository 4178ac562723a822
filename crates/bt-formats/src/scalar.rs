//! The four scalar types of the library: `f32`, `f64`, [`c32`] and [`c64`].
//!
//! Everything generic in the workspace is bounded by [`Scalar`], which is sealed and rests on faer's
//! [`ComplexField`], so that dense kernels, SIMD paths and generic code see one type.

use std::fmt;
use std::iter::Sum;
use std::ops::Neg;

use faer::traits::{ComplexField, RealField};
use num_traits::NumAssign;

/// Single-precision complex number.
#[allow(non_camel_case_types)]
pub type c32 = num_complex::Complex<f32>;
/// Double-precision complex number.
#[allow(non_camel_case_types)]
pub type c64 = num_complex::Complex<f64>;

/// Which of the four scalars a type is; the value that reports and files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `c32`
    C32,
    /// `c64`
    C64,
}

impl fmt::Display for ScalarKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C32 => "c32",
            Self::C64 => "c64",
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for super::c32 {}
    impl Sealed for super::c64 {}
}

/// A real or complex floating-point number: `f32`, `f64`, [`c32`] or [`c64`].
///
/// `T::Real` (from faer's `ComplexField`) is the type of moduli and norms; its bound [`RealScalar`] is implied
/// wherever `T: Scalar` is.
///
/// ```
/// use bt_formats::{Scalar, c64};
/// fn energy<T: Scalar>(x: &[T]) -> T::Real {
///     x.iter().map(|v| v.abs_sq()).sum()
/// }
/// assert_eq!(energy(&[3.0, 4.0]), 25.0);
/// assert_eq!(energy(&[c64::new(3.0, 4.0)]), 25.0);
/// ```
pub trait Scalar:
    sealed::Sealed
    + ComplexField<Real: RealScalar>
    + NumAssign
    + Neg<Output = Self>
    + Sum
    + Copy
    + Default
    + fmt::Display
    + fmt::LowerExp
    + Send
    + Sync
    + 'static
{
    /// The type's name as a value.
    const KIND: ScalarKind;

    /// The type with as many parts in single precision.
    type Single: Scalar;

    /// The real number `re` as a scalar.
    fn from_real(re: Self::Real) -> Self;
    /// `re + i·im`; a real type drops `im`.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// `re + i·im` rounded to the type; a real type drops `im`.
    fn rounded(re: f64, im: f64) -> Self;
    /// Real part.
    fn re(self) -> Self::Real;
    /// Imaginary part (zero for a real type).
    fn im(self) -> Self::Real;
    /// Complex conjugate (the number itself for a real type).
    fn conj(self) -> Self;
    /// |z|, computed without spurious overflow or underflow.
    fn abs(self) -> Self::Real;
    /// |re| + |im|: within √2 of |z|, cheap, and what LAPACK picks complex pivots by.
    fn abs1(self) -> Self::Real;
    /// |z|².
    fn abs_sq(self) -> Self::Real;
    /// Neither NaN nor infinite, in both parts.
    fn is_finite(self) -> bool;
    /// Numbers by their true type, for kernels in explicit vectors.
    fn numbers_mut(x: &mut [Self]) -> NumbersMut<'_>;
    /// As [`Scalar::numbers_mut`], to be read.
    fn numbers(x: &[Self]) -> Numbers<'_>;
    /// The number rounded to another scalar type (complex to real drops the imaginary part).
    #[inline(always)]
    fn cast<U: Scalar>(self) -> U {
        U::rounded(self.re().to_f64(), self.im().to_f64())
    }
}

/// A slice of one of the scalar types, see [`Scalar::numbers_mut`].
#[derive(Debug)]
pub enum NumbersMut<'a> {
    /// Of `f32`.
    F32(&'a mut [f32]),
    /// Of `f64`.
    F64(&'a mut [f64]),
    /// Of [`c32`].
    C32(&'a mut [c32]),
    /// Of [`c64`].
    C64(&'a mut [c64]),
}

/// A slice of one of the scalar types, see [`Scalar::numbers`].
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// Of `f32`.
    F32(&'a [f32]),
    /// Of `f64`.
    F64(&'a [f64]),
    /// Of [`c32`].
    C32(&'a [c32]),
    /// Of [`c64`].
    C64(&'a [c64]),
}

/// The real type of moduli and norms: `f32` or `f64`.
///
/// It does not name [`Scalar`] as a supertrait (the two would form a cycle); both types implement both.
pub trait RealScalar:
    sealed::Sealed
    + RealField
    + NumAssign
    + Neg<Output = Self>
    + Sum
    + PartialOrd
    + Copy
    + Default
    + fmt::Display
    + fmt::LowerExp
    + Send
    + Sync
    + 'static
{
    /// Unit in the last place of 1: 2⁻²³ or 2⁻⁵². The unit roundoff u is half of it.
    const EPSILON: Self;
    /// Smallest positive normal number.
    const MIN_POSITIVE: Self;
    /// Largest finite number.
    const MAX: Self;
    /// Positive infinity.
    const INFINITY: Self;

    /// The number as `f64` (exact).
    fn to_f64(self) -> f64;
    /// `x` rounded to this type.
    fn from_f64(x: f64) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// self·b + c, rounded once: by a library where the instruction set of the function does not have it.
    fn fused(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// The larger of two numbers; **NaN if either is NaN**, so that norms cannot hide one.
    fn max_nan(self, other: Self) -> Self;
    /// The larger of two moduli: numbers that are not negative. NaN if either is NaN.
    fn max_of_moduli(self, other: Self) -> Self;
    /// The smaller of two numbers; NaN if either is NaN.
    fn min_nan(self, other: Self) -> Self;
}

/// √(re² + im²), by squares unless one of them overflows or both are so small that they lose digits.
#[inline(always)]
pub(crate) fn modulus(re: f64, im: f64) -> f64 {
    let squares = re * re + im * im;
    if (1e-290..f64::INFINITY).contains(&squares) { squares.sqrt() } else { re.hypot(im) }
}

/// |re| + |im|, and √(re² + im²), whose squares may leave the range where the other is near an end of it; without a choice, so that
/// vectors take it.
#[inline(always)]
pub(crate) fn size_and_modulus<T: Scalar>(re: f64, im: f64) -> (f64, f64) {
    if T::IS_REAL { (re.abs(), re.abs()) } else { (re.abs() + im.abs(), (re * re + im * im).sqrt()) }
}

macro_rules! real_scalar {
    ($t:ident, $c:ident, $kr:ident, $kc:ident) => {
        impl Scalar for $t {
            const KIND: ScalarKind = ScalarKind::$kr;
            type Single = f32;
            #[inline(always)]
            fn from_real(re: $t) -> Self {
                re
            }
            #[inline(always)]
            fn from_parts(re: $t, _im: $t) -> Self {
                re
            }
            #[inline(always)]
            fn rounded(re: f64, _im: f64) -> Self {
                re as $t
            }
            #[inline(always)]
            fn re(self) -> $t {
                self
            }
            #[inline(always)]
            fn im(self) -> $t {
                0.0
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn abs(self) -> $t {
                $t::abs(self)
            }
            #[inline(always)]
            fn abs1(self) -> $t {
                $t::abs(self)
            }
            #[inline(always)]
            fn abs_sq(self) -> $t {
                self * self
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn numbers_mut(x: &mut [$t]) -> NumbersMut<'_> {
                NumbersMut::$kr(x)
            }
            #[inline(always)]
            fn numbers(x: &[$t]) -> Numbers<'_> {
                Numbers::$kr(x)
            }
        }

        impl RealScalar for $t {
            const EPSILON: Self = $t::EPSILON;
            const MIN_POSITIVE: Self = $t::MIN_POSITIVE;
            const MAX: Self = $t::MAX;
            const INFINITY: Self = $t::INFINITY;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                $t::mul_add(self, b, c)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $t::ln(self)
            }
            #[inline(always)]
            fn max_nan(self, other: Self) -> Self {
                if self >= other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn max_of_moduli(self, other: Self) -> Self {
                // NaN has larger bits than all numbers, and moduli are in the order of theirs.
                $t::from_bits(self.to_bits().max(other.to_bits()))
            }
            #[inline(always)]
            fn min_nan(self, other: Self) -> Self {
                if self <= other || self.is_nan() { self } else { other }
            }
        }

        impl Scalar for $c {
            const KIND: ScalarKind = ScalarKind::$kc;
            type Single = c32;
            #[inline(always)]
            fn from_real(re: $t) -> Self {
                Self::new(re, 0.0)
            }
            #[inline(always)]
            fn from_parts(re: $t, im: $t) -> Self {
                Self::new(re, im)
            }
            #[inline(always)]
            fn rounded(re: f64, im: f64) -> Self {
                Self::new(re as $t, im as $t)
            }
            #[inline(always)]
            fn re(self) -> $t {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $t {
                self.im
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Self::new(self.re, -self.im)
            }
            #[inline(always)]
            fn abs(self) -> $t {
                modulus(f64::from(self.re), f64::from(self.im)) as $t
            }
            #[inline(always)]
            fn abs1(self) -> $t {
                self.re.abs() + self.im.abs()
            }
            #[inline(always)]
            fn abs_sq(self) -> $t {
                self.re * self.re + self.im * self.im
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            #[inline(always)]
            fn numbers_mut(x: &mut [$c]) -> NumbersMut<'_> {
                NumbersMut::$kc(x)
            }
            #[inline(always)]
            fn numbers(x: &[$c]) -> Numbers<'_> {
                Numbers::$kc(x)
            }
        }
    };
}

real_scalar!(f32, c32, F32, C32);
real_scalar!(f64, c64, F64, C64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moduli_of_all_sizes_are_right() {
        for scale in [5e-324, 1e-310, 1e-160, 1e-145, 1.0, 1e150, 1e155, 1e307] {
            let (re, im) = (3.0 * scale, -4.0 * scale);
            assert!((Scalar::abs(c64::new(re, im)) / (5.0 * scale) - 1.0).abs() < 1e-15, "{scale}");
            assert_eq!(Scalar::abs(c64::new(re, 0.0)), re.abs());
        }
        // One part whose square vanishes, and one whose square overflows in single precision.
        assert_eq!(Scalar::abs(c64::new(1e-200, 1.0)), 1.0);
        assert_eq!(Scalar::abs(c32::new(3e30, 4e30)), 5e30);
        assert!(Scalar::abs(c64::new(f64::NAN, 1.0)).is_nan());
        assert_eq!(Scalar::abs(c64::new(1.0, f64::NEG_INFINITY)), f64::INFINITY);
    }

    #[test]
    fn nan_survives_max_and_min() {
        assert!(f64::NAN.max_nan(1.0).is_nan());
        assert!(1.0f64.max_nan(f64::NAN).is_nan());
        assert!(1.0f32.min_nan(f32::NAN).is_nan());
        assert!(f64::NAN.max_of_moduli(f64::INFINITY).is_nan());
        assert!(0.0f32.max_of_moduli(f32::NAN).is_nan());
        assert_eq!([1.0f64.max_nan(2.0), 1.0f64.max_of_moduli(2.0), 3.0f64.max_of_moduli(1e-310)], [2.0, 2.0, 3.0]);
        assert_eq!(1.0f64.min_nan(2.0), 1.0);
    }

    #[test]
    fn modulus_does_not_overflow() {
        assert!((Scalar::abs(c64::new(1e300, 1e300)) / 1e300 - 2f64.sqrt()).abs() < 1e-15);
        assert!(Scalar::abs(c64::new(1e-300, 1e-300)) > 0.0);
    }

    #[test]
    fn slices_know_their_type() {
        assert!(matches!(f64::numbers_mut(&mut [1.0]), NumbersMut::F64([1.0])));
        assert!(matches!(f32::numbers_mut(&mut [1.0]), NumbersMut::F32([1.0])));
        assert!(matches!(f64::numbers(&[1.0]), Numbers::F64([1.0])));
        assert!(matches!(c64::numbers_mut(&mut [c64::new(1.0, 0.0)]), NumbersMut::C64([_])));
    }

    #[test]
    fn casts_round_and_drop() {
        assert_eq!(c64::new(1.5, 2.5).cast::<f32>(), 1.5);
        assert_eq!(0.1f64.cast::<c32>(), c32::new(0.1, 0.0));
    }
}
