//! One system of a batch alone, by divisions: what a lane is left to when its reciprocals overflow or its growth is near
//! the limit, and the judge of what is wrong with it.

use bt_formats::{RealScalar, Scalar, zero};

use crate::batch::SystemStatus;
use crate::batch::lanes::divide;

/// A system as it was given, in slices of n values.
#[derive(Clone, Copy)]
pub(super) struct System<'a, T> {
    pub lower: &'a [T],
    pub diag: &'a [T],
    pub upper: &'a [T],
}

impl<T: Scalar> System<'_, T> {
    /// The first row that holds a NaN or an infinity.
    fn not_finite(&self) -> Option<usize> {
        let finite = |i: usize| [self.lower[i], self.diag[i], self.upper[i]].into_iter().all(|v| Scalar::is_finite(v));
        (0..self.diag.len()).find(|&i| !finite(i))
    }

    /// The Thomas algorithm with the test of [`crate::Thomas`]: half the digits of a row may be lost. x ← A⁻¹·x where it
    /// succeeds; `ratios` is scratch.
    pub(super) fn thomas(&self, ratios: &mut [T], x: Option<&mut [T]>) -> SystemStatus {
        if let Some(row) = self.not_finite() {
            return SystemStatus::NotFinite { row };
        }
        let n = self.diag.len();
        let limit = T::Real::EPSILON.sqrt();
        let mut w = zero::<T>();
        for i in 0..n {
            let product = self.lower[i] * w;
            let d = self.diag[i] - product;
            let row = self.lower[i].abs1().max_nan(self.diag[i].abs1()).max_nan(self.upper[i].abs1());
            let size = d.abs1();
            if size == zero() || !Scalar::is_finite(d) || product.abs1().max_nan(size) * limit > row {
                return SystemStatus::Breakdown { row: i };
            }
            w = divide(self.upper[i], d);
            ratios[i] = w;
        }
        let Some(x) = x else { return SystemStatus::Solved };
        // yᵢ ← (bᵢ − lᵢ·yᵢ₋₁)/dᵢ with dᵢ formed again;  xᵢ ← yᵢ − wᵢ·xᵢ₊₁
        let (mut y, mut w) = (zero::<T>(), zero::<T>());
        for i in 0..n {
            y = divide(x[i] - self.lower[i] * y, self.diag[i] - self.lower[i] * w);
            w = ratios[i];
            x[i] = y;
        }
        for i in (0..n.saturating_sub(1)).rev() {
            let next = x[i + 1];
            x[i] -= ratios[i] * next;
        }
        SystemStatus::Solved
    }

    /// Elimination with exchanges of neighbouring rows, as LAPACK's `gtsv`. x ← A⁻¹·x where it succeeds; `factors` is
    /// scratch of 3n values.
    #[inline(never)]
    pub(super) fn pivoted(&self, factors: &mut [T], x: Option<&mut [T]>) -> SystemStatus {
        if let Some(row) = self.not_finite() {
            return SystemStatus::NotFinite { row };
        }
        let n = self.diag.len();
        let (pivots, rest) = factors.split_at_mut(n);
        let (uppers, seconds) = rest.split_at_mut(n);
        let mut none: [T; 0] = [];
        let has_x = x.is_some();
        let x = x.unwrap_or(&mut none);
        let (mut d, mut u) =
            (self.diag.first().copied().unwrap_or_default(), self.upper.first().copied().unwrap_or_default());
        for i in 0..n {
            let last = i + 1 == n;
            let [below, b, c] =
                if last { [zero(); 3] } else { [self.lower[i + 1], self.diag[i + 1], self.upper[i + 1]] };
            let exchange = below.abs1() > d.abs1();
            let [pivot, first, second, other, other_first, other_second] =
                if exchange { [below, b, c, d, u, zero()] } else { [d, u, zero(), below, b, c] };
            if pivot == zero() {
                return SystemStatus::Singular { column: i };
            }
            if !Scalar::is_finite(pivot) || !Scalar::is_finite(first) {
                return SystemStatus::Breakdown { row: i };
            }
            let l = divide(other, pivot);
            if has_x && !last {
                if exchange {
                    x.swap(i, i + 1);
                }
                let top = x[i];
                x[i + 1] -= l * top;
            }
            (pivots[i], uppers[i], seconds[i]) = (pivot, first, second);
            (d, u) = (other_first - l * first, other_second - l * second);
        }
        if has_x {
            let (mut x1, mut x2) = (zero::<T>(), zero::<T>());
            for i in (0..n).rev() {
                (x2, x1) = (x1, divide(x[i] - seconds[i] * x2 - uppers[i] * x1, pivots[i]));
                x[i] = x1;
            }
        }
        SystemStatus::Solved
    }
}
