//! Systems scaled by powers of two before they go to a device, so that sums of squares neither overflow nor vanish there.
//!
//! A' = A/2ᵃ and b' = b/2ᵇ have largest entries between 1 and 2; then x' = x·2ᵃ⁻ᵇ solves A'x' = b', and r' = b' − A'x' = r/2ᵇ.
//! Powers of two change no digit, save of numbers that leave the range: those are below the largest by all of it.

use bt_formats::{Scalar, max_abs};

use crate::device::DeviceScalar;

/// The exponents a and b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exponents {
    matrix: i32,
    rhs: i32,
}

impl Exponents {
    /// Of the values of A; that of b is 0 so far.
    pub fn of<T: DeviceScalar>(values: &[T]) -> Self {
        Self { matrix: exponent(max_abs(values)), rhs: 0 }
    }

    pub fn with_rhs<T: DeviceScalar>(self, b: &[T]) -> Self {
        Self { rhs: exponent(max_abs(b)), ..self }
    }

    pub fn matrix<T: DeviceScalar>(self, values: &[T]) -> Vec<T> {
        times(values, -self.matrix)
    }

    pub fn rhs<T: DeviceScalar>(self, b: &[T]) -> Vec<T> {
        times(b, -self.rhs)
    }

    pub fn to_scaled<T: DeviceScalar>(self, x: &[T]) -> Vec<T> {
        times(x, self.matrix - self.rhs)
    }

    pub fn restore<T: DeviceScalar>(self, x: &mut [T]) {
        let e = self.rhs - self.matrix;
        for v in x {
            *v = shift(*v, e);
        }
    }

    /// A norm of r from that of r'.
    pub fn norm(self, scaled: f64) -> f64 {
        shift(scaled, self.rhs)
    }

    /// A norm of x from that of x'.
    pub fn solution(self, scaled: f64) -> f64 {
        shift(scaled, self.rhs - self.matrix)
    }

    /// A norm of x' from that of x.
    pub fn scaled_solution(self, norm: f64) -> f64 {
        shift(norm, self.matrix - self.rhs)
    }

    /// A norm of r' from that of r.
    pub fn scaled_norm(self, norm: f64) -> f64 {
        shift(norm, -self.rhs)
    }
}

/// e with 2ᵉ ≤ v < 2ᵉ⁺¹, 0 for v = 0.
fn exponent(v: f64) -> i32 {
    if v == 0.0 {
        return 0;
    }
    let bits = |v: f64| ((v.to_bits() >> 52) & 0x7ff) as i32;
    // Subnormal numbers are brought into the range first.
    if v < f64::MIN_POSITIVE { bits(v * 2f64.powi(64)) - 1023 - 64 } else { bits(v) - 1023 }
}

fn times<T: DeviceScalar>(values: &[T], e: i32) -> Vec<T> {
    values.iter().map(|&v| shift(v, e)).collect()
}

/// v·2ᵉ, in steps that stay in the range of f64 as long as the result does.
fn shift<T: Scalar>(v: T, e: i32) -> T {
    let mut v = v.cast::<f64>();
    let mut left = e;
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        v *= 2f64.powi(step);
        left -= step;
    }
    v.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_those_of_the_largest() {
        for (v, e) in [(1.0, 0), (1.9, 0), (2.0, 1), (0.75, -1), (5e-324, -1074), (f64::MAX, 1023), (0.0, 0)] {
            assert_eq!(exponent(v), e, "{v:e}");
        }
    }

    #[test]
    fn shifts_are_exact_over_the_whole_range() {
        assert_eq!(shift(1.5f64, 1023), 1.5 * 2f64.powi(1023));
        assert_eq!(shift(5e-324f64, 2000), 2f64.powi(926));
        assert_eq!(shift(shift(0.1f64, -900), 900), 0.1);
        assert_eq!(shift(0.1f32, 3), 0.8f32);
    }
}
