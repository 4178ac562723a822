//! Right-hand sides at the ends of the range, iterated on as s·b with a power of two s.
//!
//! ‖b‖₂ may exceed the largest number although every bᵢ is finite, and the residuals of a b that is next to nothing are rounded to
//! nothing. A·(s·x) = s·b has neither trouble, and s rounds nothing but what is negligible beside max|bᵢ|. The middle third of the
//! exponents is left alone: s = 1.

use std::borrow::Cow;

use bt_formats::rounded::scale_by_power;
use bt_formats::{Breakdown, Note, Outcome, RealScalar, Scalar, SolveReport, StopCriterion, max_abs, zero};

/// s·b, copied only where s is not 1.
///
/// ```
/// use bt_iter::Balanced;
/// let huge = Balanced::new(&[1.7e308, 1.7e308]);
/// assert!(bt_formats::norm2(&huge.b).is_finite());
/// assert_eq!(&*Balanced::new(&[1.0, 3.0]).b, [1.0, 3.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Balanced<'a, T: Scalar> {
    /// s·b.
    pub b: Cow<'a, [T]>,
    exponent: i32,
}

impl<'a, T: Scalar> Balanced<'a, T> {
    /// Of a right-hand side b, which is not copied where its entries are in the middle of the range.
    pub fn new(b: &'a [T]) -> Self {
        Self::with_largest(b, max_abs(b))
    }

    /// The same with max|bᵢ|, of which b may be but a part.
    pub fn with_largest(b: &'a [T], largest: f64) -> Self {
        let (exponent, middle) = (largest.log2().floor(), (T::Real::MAX.to_f64().log2() / 2.0).floor());
        if !exponent.is_finite() || exponent.abs() <= middle {
            return Self { b: Cow::Borrowed(b), exponent: 0 };
        }
        let exponent = (exponent.signum() * middle - exponent) as i32;
        let mut scaled = b.to_vec();
        scale_by_power(exponent, &mut scaled);
        Self { b: Cow::Owned(scaled), exponent }
    }

    /// The same with s·b of its own.
    pub fn into_owned(self) -> Balanced<'static, T> {
        Balanced { b: Cow::Owned(self.b.into_owned()), exponent: self.exponent }
    }

    /// The criterion for the residual s·(b − A·x).
    pub fn criterion(&self, stop: &StopCriterion) -> StopCriterion {
        StopCriterion { atol: (stop.atol * f64::from(self.exponent).exp2()).min(f64::MAX), ..*stop }
    }

    /// x ← s·x
    pub fn enter(&self, x: &mut [T]) {
        scale_by_power(self.exponent, x);
    }

    /// x ← x/s, and the report as one on A·x = b. An x that leaves the range becomes zero, and a breakdown.
    pub fn leave(&self, x: &mut [T], report: &mut SolveReport) {
        self.leave_if(x, report, |x| x.iter().all(|v| Scalar::is_finite(*v)));
    }

    /// The same where `finite` says whether x is finite, of which this may be but a part.
    pub fn leave_if(&self, x: &mut [T], report: &mut SolveReport, finite: impl FnOnce(&[T]) -> bool) {
        if self.exponent == 0 {
            return;
        }
        scale_by_power(-self.exponent, x);
        let unscale = f64::from(-self.exponent).exp2();
        report.recurrence_residual = report.recurrence_residual.map(|r| r * unscale).filter(|r| r.is_finite());
        if !finite(x) {
            x.fill(zero());
            report.outcome = Outcome::Breakdown(Breakdown::NonFinite);
            report.certificate.relative_residual = 1.0;
            report.notes.push(Note::ZeroForOverflow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_come_to_its_middle_and_back() {
        for size in [1.7e308, 5e-324, 1e200, 1e-300] {
            let b = [size, -size, 0.0];
            let balanced = Balanced::new(&b);
            assert!(
                bt_formats::norm2(&balanced.b).is_finite() && f64::abs(f64::log2(f64::abs(balanced.b[0]))) <= 513.0,
                "{size}"
            );
            let mut back = balanced.b.to_vec();
            scale_by_power(-balanced.exponent, &mut back);
            assert_eq!(back, b);
        }
        let single = [3e38f32, 1e-45];
        assert!(Balanced::new(&single).b[0] < 1e20);
        assert!(Balanced::new(&[f64::INFINITY]).b[0].is_infinite());
        assert!(matches!(Balanced::<f64>::new(&[]).b, Cow::Borrowed(_)));
    }
}
