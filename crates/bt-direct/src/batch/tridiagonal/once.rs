//! Elimination and substitution of a batch in one go: nothing is kept but what the way back needs.
//!
//! Traffic: the three diagonals and the right-hand sides are read once, x is written once. A group keeps 2 (Thomas) or 4
//! (pivoted) rows of lanes a row, which fit the second-level cache up to some thousands of rows.

use std::ops::Range;

use bt_formats::{RealScalar, Scalar, one, zero};
use pulp::{Simd, WithSimd};

use crate::batch::Pivoting;
use crate::batch::lanes::{BLOCK, Block, LANES, Lanes, TILE, block, max_with, reciprocal};
use crate::batch::shape::{Ask, Part, Sizes, Source};
use crate::lines::apart;

/// Rows of lanes that a group of `rows` rows keeps.
pub(super) fn kept(pivoting: Pivoting, rows: usize) -> usize {
    match pivoting {
        Pivoting::None => 2 * rows,
        Pivoting::Partial => 4 * (rows + 1),
    }
}

/// x ← A⁻¹·x for one group. What it does with a block is a function each, see [`apart`].
pub(super) struct Solution<'a, 'x, T> {
    pub shape: &'a Sizes,
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
        let mut state = Thomas::<T>::new();
        let mut blocks = [block::<T>(); 4];
        for i in (0..rows).step_by(BLOCK * TILE) {
            let rows = i..(i + BLOCK * TILE).min(rows);
            let sources = [lower, diag, upper, x.source()];
            apart(simd, Read { sources, shape, group: &group, rows: rows.clone(), blocks: &mut blocks });
            let ask = Ask::new(shape, &group, i, sources);
            let (ws, ys) = (&mut ws[rows.clone()], &mut ys[rows]);
            apart(simd, Eliminate { state: &mut state, blocks: &blocks, ws, ys, ask });
        }
        let doubtful = state.doubtful();
        let mut next = [zero::<T>(); LANES];
        for i in (0..rows).step_by(BLOCK * TILE).rev() {
            let rows = i..(i + BLOCK * TILE).min(rows);
            let out = blocks[0].as_flattened_mut();
            apart(simd, Back { next: &mut next, ws: &ws[rows.clone()], ys: &ys[rows.clone()], x: out });
            apart(simd, Store { x, shape, group: &group, rows, doubtful: &doubtful, block: &mut blocks[0] });
        }
        doubtful
    }

    /// Rows i and i + 1 exchanged where the pivot below is larger, by selection in each lane. What step i keeps stands in row i + 1.
    #[inline(always)]
    fn pivoted<S: Simd>(self, simd: S) -> [bool; LANES] {
        let Self { shape, group, lower, diag, upper, x, kept, .. } = self;
        let rows = shape.padded(&group);
        let kept = &mut kept[..4 * (rows + 1)];
        let mut state = Pivoted::<T>::new();
        let mut blocks = [block::<T>(); 4];
        for i in (0..rows).step_by(BLOCK * TILE) {
            let rows = i..(i + BLOCK * TILE).min(rows);
            let sources = [lower, diag, upper, x.source()];
            apart(simd, Read { sources, shape, group: &group, rows: rows.clone(), blocks: &mut blocks });
            let ask = Ask::new(shape, &group, i, sources);
            if i == 0 {
                let [_, d, u, b] = &blocks;
                (state.d, state.u, state.y) = (d[0][0].0, u[0][0].0, b[0][0].0);
            }
            let kept = &mut kept.as_chunks_mut::<4>().0[rows];
            apart(simd, Exchange { state: &mut state, blocks: &blocks, first: usize::from(i == 0), kept, ask });
        }
        let kept = kept.as_chunks_mut::<4>().0;
        if rows > 0 {
            let none = [zero::<T>(); LANES];
            state.row(&none, &none, &none, &none, &mut kept[rows]);
        }
        let doubtful = state.doubtful();
        let mut next = [[zero::<T>(); LANES]; 2];
        for i in (0..rows).step_by(BLOCK * TILE).rev() {
            let rows = i..(i + BLOCK * TILE).min(rows);
            let (kept, out) = (&kept[rows.start + 1..=rows.end], blocks[0].as_flattened_mut());
            apart(simd, BackPivoted { next: &mut next, kept, x: out });
            apart(simd, Store { x, shape, group: &group, rows, doubtful: &doubtful, block: &mut blocks[0] });
        }
        doubtful
    }
}

/// Rows of the three diagonals and of the right-hand sides into lanes.
struct Read<'a, T> {
    sources: [Source<'a, T>; 4],
    shape: &'a Sizes,
    group: &'a Range<usize>,
    rows: Range<usize>,
    blocks: &'a mut [Block<T>; 4],
}

impl<T: Scalar> WithSimd for Read<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { sources, shape, group, rows, blocks } = self;
        // Where a lane has no row, that of the identity.
        for ((source, block), pad) in sources.iter().zip(blocks).zip([zero(), one(), zero(), zero()]) {
            source.read_ahead(shape, group, rows.start);
            source.block(simd, shape, group, rows.clone(), pad, block);
        }
    }
}

/// A block out of the lanes.
struct Store<'a, 'x, T> {
    x: &'a mut Part<'x, T>,
    shape: &'a Sizes,
    group: &'a Range<usize>,
    rows: Range<usize>,
    doubtful: &'a [bool; LANES],
    block: &'a mut Block<T>,
}

impl<T: Scalar> WithSimd for Store<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.x.store_block(simd, self.shape, self.group, self.rows, self.doubtful, self.block);
    }
}

/// Rows of the Thomas algorithm.
struct Eliminate<'a, T: Scalar> {
    state: &'a mut Thomas<T>,
    blocks: &'a [Block<T>; 4],
    ws: &'a mut [Lanes<T>],
    ys: &'a mut [Lanes<T>],
    ask: Ask<'a, T>,
}

impl<T: Scalar> WithSimd for Eliminate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { state, blocks, ws, ys, ask } = self;
        let [l, d, u, b] = blocks.each_ref().map(|block| block.as_flattened());
        let mut now = *state;
        for (k, (w, y)) in ws.iter_mut().zip(ys).enumerate() {
            ask.with_row(k);
            now.row(&l[k].0, &d[k].0, &u[k].0, &b[k].0, &mut w.0, &mut y.0);
        }
        *state = now;
    }
}

/// Their way back.
struct Back<'a, T> {
    next: &'a mut [T; LANES],
    ws: &'a [Lanes<T>],
    ys: &'a [Lanes<T>],
    x: &'a mut [Lanes<T>],
}

impl<T: Scalar> WithSimd for Back<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let mut next = *self.next;
        for ((w, y), x) in self.ws.iter().zip(self.ys).zip(self.x).rev() {
            for j in 0..LANES {
                next[j] = y.0[j] - w.0[j] * next[j];
            }
            x.0 = next;
        }
        *self.next = next;
    }
}

/// Rows of the elimination with exchanges, from `first` on.
struct Exchange<'a, T: Scalar> {
    state: &'a mut Pivoted<T>,
    blocks: &'a [Block<T>; 4],
    first: usize,
    kept: &'a mut [[Lanes<T>; 4]],
    ask: Ask<'a, T>,
}

impl<T: Scalar> WithSimd for Exchange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { state, blocks, first, kept, ask } = self;
        let [l, d, u, b] = blocks.each_ref().map(|block| block.as_flattened());
        let mut now = *state;
        for (k, out) in kept.iter_mut().enumerate() {
            ask.with_row(k);
            if k >= first {
                now.row(&l[k].0, &d[k].0, &u[k].0, &b[k].0, out);
            }
        }
        *state = now;
    }
}

/// Their way back, with xᵢ₊₁ and xᵢ₊₂.
struct BackPivoted<'a, T> {
    next: &'a mut [[T; LANES]; 2],
    kept: &'a [[Lanes<T>; 4]],
    x: &'a mut [Lanes<T>],
}

impl<T: Scalar> WithSimd for BackPivoted<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let [mut x1, mut x2] = *self.next;
        for ([u, s, y, inverse], x) in self.kept.iter().zip(self.x).rev() {
            for j in 0..LANES {
                let v = (y.0[j] - s.0[j] * x2[j] - u.0[j] * x1[j]) * inverse.0[j];
                x2[j] = x1[j];
                x1[j] = v;
            }
            x.0 = x1;
        }
        *self.next = [x1, x2];
    }
}

/// What one row of the Thomas algorithm hands to the next.
#[derive(Clone, Copy)]
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
        w: &mut [T; LANES],
        y: &mut [T; LANES],
    ) {
        let limit = T::Real::from_f64(6.0) * T::Real::EPSILON.sqrt();
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
#[derive(Clone, Copy)]
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
    fn row(&mut self, l: &[T; LANES], a: &[T; LANES], c: &[T; LANES], b: &[T; LANES], out: &mut [Lanes<T>; 4]) {
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
            (u.0[j], s.0[j], y.0[j], inverses.0[j]) = (first, second, top, inverse);
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
