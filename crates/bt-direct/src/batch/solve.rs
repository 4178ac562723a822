//! Elimination and substitution of a batch in one go: nothing is kept but what the way back needs.
//!
//! Traffic: the three diagonals and the right-hand sides are read once, x is written once. A group keeps 2 (Thomas) or 4
//! (pivoted) rows of lanes a row, which fit the second-level cache up to some thousands of rows.

use std::ops::Range;

use bt_formats::{RealScalar, Scalar, one, zero};
use pulp::{Simd, WithSimd};

use super::Pivoting;
use super::lanes::{BLOCK, LANES, Lanes, TILE, block, max_with, reciprocal};
use super::shape::{Later, Part, Shape, Source};

/// Rows of lanes that a group of `rows` rows keeps.
pub(super) fn kept(pivoting: Pivoting, rows: usize) -> usize {
    match pivoting {
        Pivoting::None => 2 * rows,
        Pivoting::Partial => 4 * rows,
    }
}

/// x ← A⁻¹·x for one group.
pub(super) struct Solution<'a, 'x, T> {
    pub shape: &'a Shape,
    pub group: Range<usize>,
    pub pivoting: Pivoting,
    pub lower: Source<'a, T>,
    pub diag: Source<'a, T>,
    pub upper: Source<'a, T>,
    pub x: &'a mut Part<'x, T>,
    pub kept: &'a mut [Lanes<T>],
}

impl<T: Scalar> WithSimd for Solution<'_, '_, T> {
    /// Lanes in doubt, whose x is as it was.
    type Output = [bool; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [bool; LANES] {
        match self.pivoting {
            Pivoting::None => self.thomas(simd),
            Pivoting::Partial => self.pivoted(simd),
        }
    }
}

impl<T: Scalar> Solution<'_, '_, T> {
    /// yᵢ = (bᵢ − lᵢ·yᵢ₋₁)/dᵢ, wᵢ = uᵢ/dᵢ with dᵢ = aᵢ − lᵢ·uᵢ₋₁/dᵢ₋₁; back: xᵢ = yᵢ − wᵢ·xᵢ₊₁. One division a row.
    ///
    /// [`crate::Thomas`] accepts a row when max(|lᵢwᵢ₋₁|, |dᵢ|)·√ε ≤ max(|lᵢ|, |aᵢ|, |uᵢ|). Here 6·|lᵢwᵢ₋₁|·√ε ≤ |lᵢ| +
    /// |aᵢ| + |uᵢ| is asked for, which implies it at less work; a lane that fails goes to the exact test.
    #[inline(always)]
    fn thomas<S: Simd>(self, simd: S) -> [bool; LANES] {
        let Self { shape, group, lower, diag, upper, x, kept, .. } = self;
        let rows = shape.padded(&group);
        let (ws, ys) = kept[..2 * rows].split_at_mut(rows);
        let limit = T::Real::from_f64(6.0) * T::Real::EPSILON.sqrt();
        let mut state = Thomas::<T>::new();
        let (mut l, mut d, mut u, mut b) = (block::<T>(), block::<T>(), block::<T>(), block::<T>());
        for i in (0..rows).step_by(BLOCK * TILE) {
            for source in [lower, diag, upper, x.source()] {
                source.read_ahead(shape, &group, i);
            }
            let later = Later::new(shape, &group, i);
            lower.block(simd, shape, &group, i..rows, zero(), &mut l);
            diag.block(simd, shape, &group, i..rows, one(), &mut d);
            upper.block(simd, shape, &group, i..rows, zero(), &mut u);
            x.source().block(simd, shape, &group, i..rows, zero(), &mut b);
            for (t, i) in (i..rows).step_by(TILE).take(BLOCK).enumerate() {
                let (ws, ys) = (&mut ws[i..i + TILE], &mut ys[i..i + TILE]);
                for k in 0..TILE {
                    for source in [lower, diag, upper, x.source()] {
                        source.ask(&later, t * TILE + k);
                    }
                    state.row(&l[t][k].0, &d[t][k].0, &u[t][k].0, &b[t][k].0, limit, &mut ws[k].0, &mut ys[k].0);
                }
            }
        }
        let doubtful = state.doubtful();
        let mut next = [zero::<T>(); LANES];
        for i in (0..rows).step_by(BLOCK * TILE).rev() {
            let rows = i..(i + BLOCK * TILE).min(rows);
            for (k, out) in rows.clone().zip(b.as_flattened_mut()).rev() {
                let (w, y) = (&ws[k].0, &ys[k].0);
                for j in 0..LANES {
                    next[j] = y[j] - w[j] * next[j];
                }
                out.0 = next;
            }
            x.store_block(simd, shape, &group, rows, &doubtful, &mut b);
        }
        doubtful
    }

    /// Rows i and i + 1 exchanged where the pivot below is larger, by selection in each lane.
    #[inline(always)]
    fn pivoted<S: Simd>(self, simd: S) -> [bool; LANES] {
        let Self { shape, group, lower, diag, upper, x, kept, .. } = self;
        let rows = shape.padded(&group);
        let (us, ss, ys, is) = quarters(&mut kept[..4 * rows]);
        let mut state = Pivoted::<T>::new();
        let (mut l, mut d, mut u, mut b) = (block::<T>(), block::<T>(), block::<T>(), block::<T>());
        for i in (0..rows).step_by(BLOCK * TILE) {
            for source in [lower, diag, upper, x.source()] {
                source.read_ahead(shape, &group, i);
            }
            let later = Later::new(shape, &group, i);
            lower.block(simd, shape, &group, i..rows, zero(), &mut l);
            diag.block(simd, shape, &group, i..rows, one(), &mut d);
            upper.block(simd, shape, &group, i..rows, zero(), &mut u);
            x.source().block(simd, shape, &group, i..rows, zero(), &mut b);
            if i == 0 {
                (state.d, state.u, state.y) = (d[0][0].0, u[0][0].0, b[0][0].0);
            }
            for (t, i) in (i..rows).step_by(TILE).take(BLOCK).enumerate() {
                // Step i − 1 eliminates row i; the first row has only to come in.
                for k in usize::from(i == 0)..TILE {
                    for source in [lower, diag, upper, x.source()] {
                        source.ask(&later, t * TILE + k);
                    }
                    let at = i + k - 1;
                    let out = [&mut us[at].0, &mut ss[at].0, &mut ys[at].0, &mut is[at].0];
                    state.row(&l[t][k].0, &d[t][k].0, &u[t][k].0, &b[t][k].0, out);
                }
            }
        }
        if rows > 0 {
            let none = [zero::<T>(); LANES];
            let at = rows - 1;
            let out = [&mut us[at].0, &mut ss[at].0, &mut ys[at].0, &mut is[at].0];
            state.row(&none, &none, &none, &none, out);
        }
        let doubtful = state.doubtful();
        let (mut x1, mut x2) = ([zero::<T>(); LANES], [zero::<T>(); LANES]);
        for i in (0..rows).step_by(BLOCK * TILE).rev() {
            let rows = i..(i + BLOCK * TILE).min(rows);
            for (k, out) in rows.clone().zip(b.as_flattened_mut()).rev() {
                let (u, s, y, inverse) = (&us[k].0, &ss[k].0, &ys[k].0, &is[k].0);
                for j in 0..LANES {
                    let v = (y[j] - s[j] * x2[j] - u[j] * x1[j]) * inverse[j];
                    x2[j] = x1[j];
                    x1[j] = v;
                }
                out.0 = x1;
            }
            x.store_block(simd, shape, &group, rows, &doubtful, &mut b);
        }
        doubtful
    }
}

/// What one row of the Thomas algorithm hands to the next.
struct Thomas<T: Scalar> {
    /// 1/dᵢ₋₁, wᵢ₋₁, yᵢ₋₁.
    inverse: [T; LANES],
    w: [T; LANES],
    y: [T; LANES],
    /// The largest 6·|lᵢwᵢ₋₁|·√ε − (|lᵢ| + |aᵢ| + |uᵢ|); a row that makes it NaN makes all later pivots NaN.
    worst: [T::Real; LANES],
    /// The sum of all moduli: not finite where an entry is not, and so small otherwise that no 1/dᵢ is subnormal.
    sum: [T::Real; LANES],
}

impl<T: Scalar> Thomas<T> {
    #[inline(always)]
    fn new() -> Self {
        let none = [zero(); LANES];
        Self { inverse: none, w: none, y: none, worst: [zero(); LANES], sum: [zero(); LANES] }
    }

    #[inline(always)]
    fn row(
        &mut self,
        l: &[T; LANES],
        a: &[T; LANES],
        u: &[T; LANES],
        b: &[T; LANES],
        limit: T::Real,
        w: &mut [T; LANES],
        y: &mut [T; LANES],
    ) {
        for j in 0..LANES {
            let product = l[j] * self.w[j];
            let inverse = reciprocal(a[j] - product);
            let size = l[j].abs1() + a[j].abs1() + u[j].abs1();
            self.worst[j] = max_with(product.abs1() * limit - size, self.worst[j]);
            self.sum[j] += size;
            let v = (b[j] - l[j] * self.y[j]) * inverse;
            let ratio = u[j] * inverse;
            (w[j], y[j]) = (ratio, v);
            (self.inverse[j], self.w[j], self.y[j]) = (inverse, ratio, v);
        }
    }

    #[inline(always)]
    fn doubtful(&self) -> [bool; LANES] {
        std::array::from_fn(
            #[inline(always)]
            |j| {
                let small = self.sum[j] <= T::Real::MAX * T::Real::EPSILON;
                let fine = self.worst[j] <= zero() && Scalar::is_finite(self.inverse[j]) && small;
                !fine
            },
        )
    }
}

/// What one step of the pivoted elimination hands to the next: the row that is still to be eliminated.
struct Pivoted<T: Scalar> {
    d: [T; LANES],
    u: [T; LANES],
    y: [T; LANES],
    /// The smallest and the largest pivot.
    smallest: [T::Real; LANES],
    largest: [T::Real; LANES],
}

impl<T: Scalar> Pivoted<T> {
    #[inline(always)]
    fn new() -> Self {
        let none = [zero(); LANES];
        Self { d: none, u: none, y: none, smallest: [T::Real::MAX; LANES], largest: [zero(); LANES] }
    }

    /// Eliminates the row (l, a, c) with right-hand side b by the row at hand, or that by it. `out` gets U's row beyond its
    /// pivot, the right-hand side beside it, and 1/pivot.
    #[inline(always)]
    fn row(&mut self, l: &[T; LANES], a: &[T; LANES], c: &[T; LANES], b: &[T; LANES], out: [&mut [T; LANES]; 4]) {
        let [u, s, y, inverses] = out;
        for j in 0..LANES {
            let exchange = l[j].abs1() > self.d[j].abs1();
            let pick = |yes: T, no: T| if exchange { yes } else { no };
            let (pivot, other) = (pick(l[j], self.d[j]), pick(self.d[j], l[j]));
            let (first, other_first) = (pick(a[j], self.u[j]), pick(self.u[j], a[j]));
            let (second, other_second) = (pick(c[j], zero()), pick(zero(), c[j]));
            let (top, rest) = (pick(b[j], self.y[j]), pick(self.y[j], b[j]));
            let inverse = reciprocal(pivot);
            let m = other * inverse;
            (u[j], s[j], y[j], inverses[j]) = (first, second, top, inverse);
            self.d[j] = other_first - m * first;
            self.u[j] = other_second - m * second;
            self.y[j] = rest - m * top;
            let size = pivot.abs1();
            self.smallest[j] = if size < self.smallest[j] { size } else { self.smallest[j] };
            self.largest[j] = max_with(size, self.largest[j]);
        }
    }

    #[inline(always)]
    fn doubtful(&self) -> [bool; LANES] {
        std::array::from_fn(
            #[inline(always)]
            |j| {
                // All reciprocals are normal numbers then.
                !(self.smallest[j] >= T::Real::MIN_POSITIVE && self.largest[j] <= T::Real::MAX * T::Real::EPSILON)
            },
        )
    }
}

/// Four arrays of the same length.
#[inline(always)]
fn quarters<V>(all: &mut [V]) -> (&mut [V], &mut [V], &mut [V], &mut [V]) {
    let (ab, cd) = all.split_at_mut(all.len() / 2);
    let middle = ab.len() / 2;
    let (a, b) = ab.split_at_mut(middle);
    let (c, d) = cd.split_at_mut(middle);
    (a, b, c, d)
}
