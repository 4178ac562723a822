//! The unit of A: a power of two that is taken out of A·x = b on both sides where A is at an end of the range.
//!
//! (A/2ᵉ)·x = b/2ᵉ has the same x. Row sums and products of a matrix of 1e308 overflow, and reciprocals of one of 1e-310; those of
//! A/2ᵉ do not. The middle half of the exponents is left alone, and nothing is rounded: e is less where a small entry of A would lose
//! digits, and where b would overflow.

use bt_formats::rounded::scale_by_power;
use bt_formats::{Csr, RealScalar, Scalar, StopCriterion};
use faer::MatRef;

/// 2ᵉ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    exponent: i32,
}

impl Unit {
    pub fn of<T: Scalar>(a: &Csr<T>, b: MatRef<'_, T>) -> Self {
        let range = T::Real::MAX.to_f64().log2();
        let exponent = |size: f64| size.log2().floor();
        let sizes = a.values().iter().map(|v| v.abs().to_f64()).filter(|size| *size > 0.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(l, m), size| (l.min(size), m.max(size)));
        let wanted = exponent(most);
        if !wanted.is_finite() || wanted.abs() <= range / 4.0 {
            return Self { exponent: 0 };
        }
        let chosen = if wanted > 0.0 {
            // The least entry stays a normal number.
            wanted.min(exponent(least) - exponent(T::Real::MIN_POSITIVE.to_f64())).max(0.0)
        } else {
            let largest = (0..b.ncols()).flat_map(|j| (0..b.nrows()).map(move |i| b[(i, j)].abs().to_f64()));
            let largest = exponent(largest.fold(0.0, f64::max));
            wanted.max(largest + 2.0 - range).min(0.0)
        };
        Self { exponent: chosen as i32 }
    }

    /// Whether nothing is to be taken out.
    pub fn is_one(self) -> bool {
        self.exponent == 0
    }

    /// v ← v/2ᵉ
    pub fn remove<T: Scalar>(self, values: &mut [T]) {
        scale_by_power(-self.exponent, values);
    }

    /// `f` of b/2ᵉ.
    pub fn without<T: Scalar, R>(self, b: &[T], f: impl FnOnce(&[T]) -> R) -> R {
        if self.exponent == 0 {
            return f(b);
        }
        let mut scaled = b.to_vec();
        self.remove(&mut scaled);
        f(&scaled)
    }

    /// The criterion for (b − A·x)/2ᵉ.
    pub fn criterion(self, stop: &StopCriterion) -> StopCriterion {
        let mut atol = [stop.atol];
        self.remove(&mut atol);
        StopCriterion { atol: atol[0].min(f64::MAX), ..*stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponent(entries: [f64; 2], b: f64) -> i32 {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], entries.to_vec()).unwrap();
        Unit::of(&a, faer::mat![[b], [0.0]].as_ref()).exponent
    }

    #[test]
    fn only_the_ends_of_the_range_are_moved_and_nothing_is_rounded() {
        assert_eq!(exponent([1e50, 1e-50], 1.0), 0);
        assert_eq!(exponent([f64::MAX, 1.0], 1.0), 1022);
        // 2⁻¹⁰⁰⁰ may become 2⁻¹⁰²².
        assert_eq!(exponent([f64::MAX, 2f64.powi(-1000)], 1.0), 22);
        assert_eq!(exponent([f64::MIN_POSITIVE / 256.0, 0.0], 2f64.powi(-1000)), -1030);
        assert_eq!(exponent([f64::MIN_POSITIVE / 256.0, 0.0], 1.0), -1022);
        assert_eq!(Unit { exponent: -1074 }.criterion(&StopCriterion::default()).atol, 0.0);
        let mut values = [5e-324, 1e-310];
        let unit = Unit { exponent: -1030 };
        unit.remove(&mut values);
        Unit { exponent: 1030 }.remove(&mut values);
        assert_eq!(values, [5e-324, 1e-310]);
    }
}
