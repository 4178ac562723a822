//! Division by pivots without spurious overflow or underflow, for real and complex scalars.

use bt_formats::{RealScalar, Scalar};

/// A nonzero number p, ready to divide by: v/p = (v/s)·(p/s)⁻¹ with s = max(|re p|, |im p|).
///
/// |p/s| lies between 1 and √2, so neither factor overflows unless the quotient does (to within √2). For real
/// scalars (p/s)⁻¹ = ±1 and the result is the correctly rounded quotient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pivot<T: Scalar> {
    modulus: T::Real,
    inverse: T,
}

impl<T: Scalar> Pivot<T> {
    #[inline(always)]
    pub(crate) fn new(p: T) -> Self {
        let modulus = if T::IS_REAL { p.abs1() } else { p.re().abs().max_nan(p.im().abs()) };
        Self { modulus, inverse: Scalar::conj(divide_real(p, modulus)) }.normalized()
    }

    /// v/p.
    #[inline(always)]
    pub(crate) fn divide(self, v: T) -> T {
        divide_real(v, self.modulus) * self.inverse
    }

    /// |p| and ±1: the quotient of real scalars is (v/|p|)·±1.
    #[inline(always)]
    pub(crate) fn parts(self) -> (T::Real, T) {
        (self.modulus, self.inverse)
    }

    /// 1/q = conj(q)/|q|² for the scaled pivot q, |q|² in [1, 2].
    #[inline(always)]
    fn normalized(mut self) -> Self {
        if !T::IS_REAL {
            self.inverse = divide_real(self.inverse, self.inverse.abs_sq());
        }
        self
    }
}

/// 1/p for a nonzero number p: of complex ones by the square of the modulus, unless that leaves the range.
#[inline(always)]
pub(crate) fn inverse<T: Scalar>(p: T) -> T {
    let one = T::Real::from_f64(1.0);
    if T::IS_REAL {
        return T::from_real(one / p.re());
    }
    let squares = p.abs_sq();
    // A part that vanishes is below the last digit of the other.
    if squares * T::Real::EPSILON >= T::Real::MIN_POSITIVE && squares * T::Real::MIN_POSITIVE <= one {
        let r = one / squares;
        T::from_parts(p.re() * r, -(p.im() * r))
    } else {
        Pivot::new(p).divide(T::from_real(one))
    }
}

#[inline(always)]
pub(crate) fn divide_real<T: Scalar>(v: T, s: T::Real) -> T {
    T::from_parts(v.re() / s, v.im() / s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::{c32, c64};

    #[test]
    fn inverses_survive_extreme_scales() {
        for s in [1e-300, 1e-160, 1e-147, 1.0, 1e153, 1e160, 1e300] {
            let r = inverse(c64::new(3.0 * s, -4.0 * s)) * c64::new(s, 0.0);
            assert!((r - c64::new(0.12, 0.16)).norm() < 1e-15, "{s}: {r}");
        }
        assert_eq!(inverse(c64::new(0.0, 2e-308)), c64::new(0.0, -0.5e308));
        assert_eq!(inverse(c32::new(1e-25, 1.0)), c32::new(1e-25, -1.0));
        assert_eq!(inverse(-4.0), -0.25);
    }

    #[test]
    fn quotients_survive_extreme_scales() {
        assert_eq!(Pivot::new(-4.0).divide(6.0), -1.5);
        assert_eq!(Pivot::new(1e-310).divide(1e-310), 1.0);
        assert_eq!(Pivot::new(1e300f64).divide(-2e300), -2.0);
        for s in [1e-300, 1.0, 1e300] {
            let q = Pivot::new(c64::new(3.0 * s, -4.0 * s)).divide(c64::new(2.0 * s, 11.0 * s));
            assert!((q - c64::new(-1.52, 1.64)).norm() < 1e-15, "{q}");
        }
        // |re| + |im| overflows.
        let large = f64::MAX * 0.7;
        assert_eq!(Pivot::new(c64::new(large, large)).divide(c64::new(large, -large)), c64::new(0.0, -1.0));
        let q = Pivot::new(c32::new(0.0, 2e-38)).divide(c32::new(4e-38, 0.0));
        assert_eq!(q, c32::new(0.0, -2.0));
    }
}
