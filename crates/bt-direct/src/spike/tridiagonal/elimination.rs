//! The interior of one partition eliminated: three candidate rows a column, one pivot row, two rows carried on.
//!
//! ```text
//! columns      ℓ  f | i i+1 i+2        ℓ the last unknown of the partition before, f the first of this one
//! row a        x  x | x  x             what is left of the partition's first row
//! row b           x | x  x             what is left of row i
//! row c             | x  x  x          row i + 1 of A
//! ```
//!
//! A step makes zeros of two of the three entries in column i; the row that keeps its entry is the pivot row.

use bt_formats::{RealScalar, Scalar, one, zero};

use crate::pivot::{Pivot, divide_real};

/// Columns ℓ, f, i, i + 1, i + 2.
pub(super) type Wide<T> = [T; 5];

/// A pivot row: its entries in the columns i, i + 1, i + 2, ℓ and f. The two rows that are left of a partition are kept
/// in the same form, i the last unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row<T> {
    pub(super) d: T,
    pub(super) u1: T,
    pub(super) u2: T,
    pub(super) left: T,
    pub(super) first: T,
}

impl<T: Scalar> Row<T> {
    #[inline(always)]
    pub(super) fn new([left, first, d, u1, u2]: Wide<T>) -> Self {
        Self { d, u1, u2, left, first }
    }
}

/// (a, b, c) → (pivot row, a, b), a nonsingular linear map.
pub(super) trait Step<T: Scalar>: Copy + Send + Sync + Default {
    /// The map applied to a right-hand side.
    fn apply(&self, a: T, b: T, c: T) -> [T; 3];
    /// Its transpose, of the values that `map` makes.
    fn apply_transposed(&self, pivot: T, a: T, b: T, map: impl Fn(T) -> T) -> [T; 3];
    /// Whether its determinant is −1; it is 1 otherwise.
    fn is_negative(&self) -> bool;
}

/// How the pivot row is made.
pub(super) trait Rule<T: Scalar>: Default {
    type Step: Step<T>;
    /// The step for the rows [a, b, c] and the result in their place: [pivot row, a, b]. `ahead` is the entry of A below
    /// (i + 1, i + 1). `None` where the pivot is zero.
    fn eliminate(&mut self, rows: &mut [Wide<T>; 3], ahead: T) -> Option<Self::Step>;
    /// Whether row c must keep its digits by itself, as nothing in the rule sees to it.
    const WATCHED: bool;
    /// Whether a column without a pivot proves that A is singular: only where no step can have lost anything.
    const PROVES: bool;
}

/// [c s; −s̄ c], c² + |s|² = 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation<T: Scalar> {
    c: T::Real,
    s: T,
}

impl<T: Scalar> Default for Rotation<T> {
    fn default() -> Self {
        Self { c: one(), s: zero() }
    }
}

impl<T: Scalar> Rotation<T> {
    /// The one that takes (f, g) to (r, 0).
    #[inline(always)]
    fn new(f: T, g: T) -> Self {
        if g == zero() {
            return Self::default();
        }
        // Scaled to (½, 1] in the larger modulus: the squares neither overflow nor, where they count, underflow.
        let scale = f.abs1().max_nan(g.abs1());
        let (f, g) = (divide_real(f, scale), divide_real(g, scale));
        let r = (f.abs_sq() + g.abs_sq()).sqrt();
        let modulus = f.abs();
        let phase = if modulus == zero() { one() } else { divide_real(f, modulus) };
        Self { c: modulus / r, s: phase * divide_real(Scalar::conj(g), r) }
    }
    #[inline(always)]
    fn apply(&self, f: T, g: T) -> (T, T) {
        let c = T::from_real(self.c);
        (c * f + self.s * g, c * g - Scalar::conj(self.s) * f)
    }
    #[inline(always)]
    fn apply_transposed(&self, p: T, q: T, map: impl Fn(T) -> T) -> (T, T) {
        let (c, s) = (T::from_real(self.c), map(self.s));
        (c * p - Scalar::conj(s) * q, s * p + c * q)
    }
}

/// Of b with c, then of what that makes of b with a.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotations<T: Scalar>([Rotation<T>; 2]);

impl<T: Scalar> Default for Rotations<T> {
    fn default() -> Self {
        Self([Rotation::default(); 2])
    }
}

impl<T: Scalar> Step<T> for Rotations<T> {
    #[inline(always)]
    fn apply(&self, a: T, b: T, c: T) -> [T; 3] {
        let (b, c) = self.0[0].apply(b, c);
        let (pivot, a) = self.0[1].apply(b, a);
        [pivot, a, c]
    }
    #[inline(always)]
    fn apply_transposed(&self, pivot: T, a: T, b: T, map: impl Fn(T) -> T) -> [T; 3] {
        let (p, a) = self.0[1].apply_transposed(pivot, a, &map);
        let (p, c) = self.0[0].apply_transposed(p, b, &map);
        [a, p, c]
    }
    fn is_negative(&self) -> bool {
        false
    }
}

/// QR by Givens rotations.
#[derive(Default)]
pub(super) struct Givens;

impl<T: Scalar> Rule<T> for Givens {
    type Step = Rotations<T>;
    const WATCHED: bool = false;
    const PROVES: bool = true;
    #[inline(always)]
    fn eliminate(&mut self, rows: &mut [Wide<T>; 3], _: T) -> Option<Rotations<T>> {
        let [a, b, c] = rows;
        let below = Rotation::new(b[2], c[2]);
        (0..5).for_each(|k| (b[k], c[k]) = below.apply(b[k], c[k]));
        let above = Rotation::new(b[2], a[2]);
        (0..5).for_each(|k| (b[k], a[k]) = above.apply(b[k], a[k]));
        let [a, b, c] = *rows;
        *rows = [b, a, c];
        (b[2] != zero()).then_some(Rotations([below, above]))
    }
}

/// a ← a − `a`·pivot row and the same for the other row; the pivot row is c where `exchanged`, else b.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Multipliers<T> {
    a: T,
    b: T,
    exchanged: bool,
}

impl<T: Scalar> Multipliers<T> {
    #[inline(always)]
    fn eliminate(rows: &mut [Wide<T>; 3], exchanged: bool) -> Option<Self> {
        let [a, b, c] = *rows;
        let (pivot, other) = if exchanged { (c, b) } else { (b, c) };
        if pivot[2] == zero() {
            return None;
        }
        let divisor = Pivot::new(pivot[2]);
        let step = Self { a: divisor.divide(a[2]), b: divisor.divide(other[2]), exchanged };
        let minus = |row: Wide<T>, l: T| std::array::from_fn(|k| row[k] - l * pivot[k]);
        *rows = [pivot, minus(a, step.a), minus(other, step.b)];
        Some(step)
    }
}

impl<T: Scalar> Step<T> for Multipliers<T> {
    #[inline(always)]
    fn apply(&self, a: T, b: T, c: T) -> [T; 3] {
        let (pivot, other) = if self.exchanged { (c, b) } else { (b, c) };
        [pivot, a - self.a * pivot, other - self.b * pivot]
    }
    #[inline(always)]
    fn apply_transposed(&self, pivot: T, a: T, b: T, map: impl Fn(T) -> T) -> [T; 3] {
        let pivot = pivot - map(self.a) * a - map(self.b) * b;
        if self.exchanged { [a, b, pivot] } else { [a, pivot, b] }
    }
    fn is_negative(&self) -> bool {
        self.exchanged
    }
}

/// LU with row b always the pivot row.
#[derive(Default)]
pub(super) struct NoPivoting;

impl<T: Scalar> Rule<T> for NoPivoting {
    type Step = Multipliers<T>;
    const WATCHED: bool = true;
    const PROVES: bool = false;
    #[inline(always)]
    fn eliminate(&mut self, rows: &mut [Wide<T>; 3], _: T) -> Option<Multipliers<T>> {
        Multipliers::eliminate(rows, false)
    }
}

/// Pivots of order 1 and 2 by Bunch's criterion on five entries. A pivot of order 2, [p q; r s] with |p| small, is
/// eliminated from its second row: that is row c as the pivot row, and then what it leaves of row b.
#[derive(Default)]
pub(super) struct Diagonal {
    /// The pivot of order 2 that began a column before ends here.
    open: bool,
}

impl<T: Scalar> Rule<T> for Diagonal {
    type Step = Multipliers<T>;
    const WATCHED: bool = false;
    const PROVES: bool = false;
    #[inline(always)]
    fn eliminate(&mut self, rows: &mut [Wide<T>; 3], ahead: T) -> Option<Multipliers<T>> {
        let [_, b, c] = rows;
        // σ ← max(|q|, |r|, |s|, |uᵢ₊₁|, |lᵢ₊₂|);  order 1 if |p|·σ ≥ κ·|q·r|
        let (q, r) = (b[3].abs1(), c[2].abs1());
        let sigma = q.max_nan(r).max_nan(c[3].abs1()).max_nan(c[4].abs1()).max_nan(ahead.abs1());
        let kappa = T::Real::from_f64(0.618_033_988_749_894_9);
        let coupled = if sigma == zero() { zero() } else { kappa * q * (r / sigma) };
        self.open = !self.open && b[2].abs1() < coupled;
        Multipliers::eliminate(rows, self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    #[test]
    fn rotations_annihilate_at_any_scale() {
        for (f, g) in [((3.0, 4.0), (1.0, -2.0)), ((0.0, 0.0), (2.0, 1.0)), ((1.0, 0.0), (0.0, 0.0))] {
            for scale in [1e-300, 1.0, 1e300] {
                let [f, g] = [f, g].map(|(re, im): (f64, f64)| c64::new(re * scale, im * scale));
                let rotation = Rotation::new(f, g);
                let (r, zero) = rotation.apply(f, g);
                let norm = f.norm().hypot(g.norm());
                assert!((r.norm() - norm).abs() <= 1e-15 * norm && zero.norm() <= 1e-15 * norm, "{r} {zero}");
                // Gᴴ·(G·v) = v
                let (back, other) = rotation.apply_transposed(r, zero, Scalar::conj);
                assert!((back - f).norm() <= 1e-15 * norm && (other - g).norm() <= 1e-15 * norm, "{back} {other}");
            }
        }
    }

    #[test]
    fn a_pivot_of_order_two_by_hand() {
        // [0 2; 4 1] in the columns i, i + 1: row c is the pivot row, row b stays as it is.
        let mut rows = [[1.0, 0.0, 8.0, 0.0, 0.0], [0.0, 3.0, 0.0, 2.0, 0.0], [0.0, 0.0, 4.0, 1.0, 5.0]];
        let mut rule = Diagonal::default();
        let step = rule.eliminate(&mut rows, 1.0).unwrap();
        assert!(step.exchanged && rule.open);
        assert_eq!(rows, [[0.0, 0.0, 4.0, 1.0, 5.0], [1.0, 0.0, 0.0, -2.0, -10.0], [0.0, 3.0, 0.0, 2.0, 0.0]]);
        assert_eq!(step.apply(8.0, 0.0, 4.0), [4.0, 0.0, 0.0]);
        assert_eq!(step.apply_transposed(1.0, 1.0, 1.0, |v| v), [1.0, 1.0, -1.0]);
    }
}
