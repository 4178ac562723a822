//! The smallest and the largest of many numbers, and whether all of them are finite, in one pass.

use crate::scalar::{RealScalar, Scalar};

const LANES: usize = 8;

/// Moduli |re| + |im| of the numbers added so far, eight side by side. One pass over them; storage of 24 doubles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    sum: [f64; LANES],
    /// Of those that are not zero.
    least: [f64; LANES],
    most: [f64; LANES],
}

impl Default for Sizes {
    fn default() -> Self {
        Self { sum: [0.0; LANES], least: [f64::INFINITY; LANES], most: [0.0; LANES] }
    }
}

impl Sizes {
    /// Takes these numbers in.
    #[inline(always)]
    pub fn add<T: Scalar>(&mut self, numbers: &[T]) {
        let (eights, rest) = numbers.as_chunks::<LANES>();
        for eight in eights {
            (0..LANES).for_each(|l| self.add_to(l, eight[l]));
        }
        (0..rest.len()).for_each(|l| self.add_to(l, rest[l]));
    }

    #[inline(always)]
    fn add_to<T: Scalar>(&mut self, l: usize, number: T) {
        let size = number.abs1().to_f64();
        self.sum[l] += size;
        self.least[l] = if size < self.least[l] && size > 0.0 { size } else { self.least[l] };
        self.most[l] = if size > self.most[l] { size } else { self.most[l] };
    }

    /// Whether all numbers are finite, and all of them together are: a sum may leave the range where no number does.
    pub fn are_finite(&self) -> bool {
        self.sum.iter().sum::<f64>().is_finite()
    }

    /// The smallest that is not zero, infinite without one, and the largest.
    pub fn extent(&self) -> (f64, f64) {
        (self.least.iter().copied().fold(f64::INFINITY, f64::min), self.most.iter().copied().fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_do_not_count_and_what_is_not_finite_does() {
        let mut sizes = Sizes::default();
        sizes.add(&[0.0, -3.0, 0.5]);
        assert_eq!(sizes.extent(), (0.5, 3.0));
        assert!(sizes.are_finite());
        sizes.add(&[f64::NAN]);
        assert!(!sizes.are_finite());
    }
}
