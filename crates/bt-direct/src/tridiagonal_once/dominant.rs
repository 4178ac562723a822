//! Elimination without pivoting: the unknowns at the cuts from short windows around them, then one sweep of every piece.
//!
//! A window of 2K rows around a cut gives the two unknowns beside it as if the rows outside were absent. What their
//! presence would change is |φ|·|x outside|, where φ, the product of the multipliers along the window, comes out of the
//! same elimination; the cut is accepted when φ ≤ u/4.

use bt_formats::{RealScalar, Scalar, one, zero};

use super::lanes::{C, Isa, PIECES, W};
use super::{Arrays, Edge};

/// Rows of a window on one side of a cut, tried in turn. Multiples of 8.
pub(super) const REACHES: [usize; 3] = [96, 192, 384];

/// Terms that form a pivot may be 16 times as large as the row of A: four bits. Dominance, by rows or by columns, keeps
/// them below 2; `thomas` allows half the digits, since refinement is expected behind it.
fn limit<T: Scalar>() -> T {
    T::rounded(1.0 / 16.0, 0.0)
}

/// The influence from outside that is below rounding.
fn negligible<T: Scalar>() -> T::Real {
    T::Real::EPSILON / T::Real::from_f64(8.0)
}

/// State of an elimination towards a cut: x = y − w·x' for the unknowns on its two sides.
struct TowardsCut<V, M> {
    w: V,
    y: V,
    influence: V,
    good: M,
}

/// One row (a, b, c | f) of which a couples to the row before: w ← c/(b − a·w), y ← (f − a·y)/(b − a·w).
#[inline(always)]
fn step<T: Scalar, S: Isa<T>>(isa: S, s: &mut TowardsCut<S::V, S::M>, a: S::V, b: S::V, c: S::V, f: S::V, limit: S::V) {
    let product = isa.mul(a, s.w);
    let d = isa.minus_mul(b, a, s.w);
    let r = isa.reciprocal(d);
    let (modulus, size) = (isa.abs1(a), isa.abs1(d));
    let row = isa.max(isa.max(modulus, isa.abs1(b)), isa.abs1(c));
    // The size second: a NaN there must win.
    let grown = isa.max(isa.abs1(product), size);
    let fine = isa.and(isa.less(isa.mul(grown, limit), row), isa.less(isa.splat(zero()), size));
    s.good = isa.and(s.good, fine);
    s.y = isa.mul(isa.minus_mul(f, a, s.y), r);
    s.w = isa.mul(c, r);
    s.influence = isa.mul(s.influence, isa.mul(modulus, isa.abs1(r)));
}

/// The cuts at `first`, `first + stride`, …, eight of them, from windows of `reach` rows on either side, all inside the
/// matrix. False when a cut is not accepted.
#[inline(always)]
pub(super) fn window<T: Scalar, S: Isa<T>>(
    isa: S,
    a: Arrays<'_, T>,
    b: &[T],
    first: usize,
    stride: usize,
    reach: usize,
    edges: &mut [Edge<T>],
) -> bool {
    let nothing = isa.splat(zero());
    let limit = isa.splat(limit());
    let start = || TowardsCut::<S::V, S::M> { w: nothing, y: nothing, influence: isa.splat(one()), good: isa.truth() };
    let (mut down, mut up) = (start(), start());
    for k in (0..reach).step_by(W) {
        let (at, end) = (first - reach + k, first + reach - k - W);
        // No closure through `map`: it would not be inlined, and lose the instruction set.
        let rows = |v: &[T], at| isa.load_rows(v, at, stride);
        let (l, d, u, f) = (rows(a.lower, at), rows(a.diag, at), rows(a.upper, at), rows(b, at));
        let (l1, d1, u1, f1) = (rows(a.lower, end), rows(a.diag, end), rows(a.upper, end), rows(b, end));
        for j in 0..W {
            step(isa, &mut down, l[j], d[j], u[j], f[j], limit);
            let j = W - 1 - j;
            step(isa, &mut up, u1[j], d1[j], l1[j], f1[j], limit);
        }
    }
    let mut lanes = [[zero::<T>(); W]; 6];
    for (lane, v) in lanes.iter_mut().zip([down.w, down.y, down.influence, up.w, up.y, up.influence]) {
        isa.store(v, lane);
    }
    let mut accepted = isa.all(isa.and(down.good, up.good));
    for k in 0..W {
        let [w, y, below, w1, y1, above] = lanes.map(|l| l[k]);
        accepted &= join(w, y, below.re(), w1, y1, above.re(), &mut edges[k]);
    }
    accepted
}

/// Solves x = y − w·x', x' = y₁ − w₁·x.
fn join<T: Scalar>(w: T, y: T, below: T::Real, w1: T, y1: T, above: T::Real, edge: &mut Edge<T>) -> bool {
    let det = one::<T>() - w * w1;
    *edge = [(y - w * y1) / det, (y1 - w1 * y) / det];
    let (below, above, size) = (below / det.abs1(), above / det.abs1(), T::Real::from_f64(1.0));
    let (w, w1) = (w.abs1(), w1.abs1());
    let enough = negligible::<T>();
    // Complex φ was multiplied in |re| + |im|, which only makes it larger.
    det.abs1() * T::Real::EPSILON.sqrt() < size
        && T::Real::EPSILON.sqrt() < det.abs1()
        && below + w * above <= enough
        && above + w1 * below <= enough
}

/// One cut by plain code; windows end at the ends of the matrix, where nothing is left outside.
pub(super) fn window_at<T: Scalar>(a: Arrays<'_, T>, b: &[T], cut: usize, reach: usize, edge: &mut Edge<T>) -> bool {
    let n = a.diag.len();
    let (from, to) = (cut.saturating_sub(reach), (cut + reach).min(n));
    let limit = limit::<T>().re();
    let mut good = true;
    let mut eliminate = |rows: &mut dyn Iterator<Item = usize>, before: &[T], after: &[T], complete: bool| {
        let (mut w, mut y) = (zero::<T>(), zero::<T>());
        let mut influence = T::Real::from_f64(if complete { 0.0 } else { 1.0 });
        for i in rows {
            let product = before[i] * w;
            let d = a.diag[i] - product;
            let row = before[i].abs1().max_nan(a.diag[i].abs1()).max_nan(after[i].abs1());
            let grown = product.abs1().max_nan(d.abs1());
            good &= grown * limit < row && zero::<T::Real>() < d.abs1();
            let pivot = crate::pivot::Pivot::new(d);
            influence *= pivot.divide(before[i]).abs1();
            (w, y) = (pivot.divide(after[i]), pivot.divide(b[i] - before[i] * y));
        }
        (w, y, influence)
    };
    let (w, y, below) = eliminate(&mut (from..cut), a.lower, a.upper, from == 0);
    let (w1, y1, above) = eliminate(&mut (cut..to).rev(), a.upper, a.lower, to == n);
    join(w, y, below, w1, y1, above, edge) && good
}

/// Solves the 16 pieces of a tile of `stride` rows each, neighbours given: x ← A⁻¹·x. False when elements grew.
#[inline(always)]
pub(super) fn sweep<T: Scalar, S: Isa<T>>(
    isa: S,
    a: Arrays<'_, T>,
    x: &mut [T],
    stride: usize,
    before: &[T; PIECES],
    after: &[T; PIECES],
    scratch: &mut [[T; W]],
) -> bool {
    let nothing = isa.splat(zero());
    let limit = isa.splat(limit());
    let (ys, _) = before.as_chunks::<W>();
    let (ends, _) = after.as_chunks::<W>();
    let (mut w, mut y, mut next) = ([nothing; C], [nothing; C], [nothing; C]);
    for c in 0..C {
        (y[c], next[c]) = (isa.load(&ys[c]), isa.load(&ends[c]));
    }
    let mut good = [isa.truth(); C];
    let (scratch, _) = scratch[..2 * C * stride].as_chunks_mut::<{ 2 * C * W }>();
    for (block, kept) in scratch.iter_mut().enumerate() {
        let i = block * W;
        let rows = |v: &[T]| [isa.load_rows(v, i, stride), isa.load_rows(v, W * stride + i, stride)];
        let (l, d, u, f) = (rows(a.lower), rows(a.diag), rows(a.upper), rows(x));
        for j in 0..W {
            for c in 0..C {
                // d ← dᵢ − lᵢ·wᵢ₋₁;  wᵢ ← uᵢ/d;  yᵢ ← (xᵢ − lᵢ·yᵢ₋₁)/d
                let product = isa.mul(l[c][j], w[c]);
                let pivot = isa.minus_mul(d[c][j], l[c][j], w[c]);
                let r = isa.reciprocal(pivot);
                let size = isa.abs1(pivot);
                let row = isa.max(isa.max(isa.abs1(l[c][j]), isa.abs1(d[c][j])), isa.abs1(u[c][j]));
                let grown = isa.max(isa.abs1(product), size);
                let fine = isa.and(isa.less(isa.mul(grown, limit), row), isa.less(nothing, size));
                good[c] = isa.and(good[c], fine);
                y[c] = isa.mul(isa.minus_mul(f[c][j], l[c][j], y[c]), r);
                w[c] = isa.mul(u[c][j], r);
                isa.store(w[c], &mut kept[2 * C * j + c]);
                isa.store(y[c], &mut kept[2 * C * j + C + c]);
            }
        }
    }
    // xᵢ ← yᵢ − wᵢ·xᵢ₊₁
    for (block, kept) in scratch.iter().enumerate().rev() {
        let mut out = [[nothing; W]; C];
        for j in (0..W).rev() {
            for c in 0..C {
                let (w, y) = (isa.load(&kept[2 * C * j + c]), isa.load(&kept[2 * C * j + C + c]));
                next[c] = isa.minus_mul(y, w, next[c]);
                out[c][j] = next[c];
            }
        }
        for c in 0..C {
            isa.store_rows(out[c], x, c * W * stride + block * W, stride);
        }
    }
    good.iter().all(|&m| isa.all(m))
}

/// The rows behind the last tile, with the unknown before them given. `w` and `x` hold as many values.
pub(super) fn sweep_tail<T: Scalar>(a: Arrays<'_, T>, x: &mut [T], before: T, w: &mut [T]) -> bool {
    let (mut last, mut y, mut good) = (zero::<T>(), before, true);
    for i in 0..x.len() {
        let product = a.lower[i] * last;
        let d = a.diag[i] - product;
        let row = a.lower[i].abs1().max_nan(a.diag[i].abs1()).max_nan(a.upper[i].abs1());
        good &= product.abs1().max_nan(d.abs1()) * limit::<T>().re() < row && zero::<T::Real>() < d.abs1();
        let pivot = crate::pivot::Pivot::new(d);
        y = pivot.divide(x[i] - a.lower[i] * y);
        last = pivot.divide(a.upper[i]);
        (x[i], w[i]) = (y, last);
    }
    for i in (0..x.len().saturating_sub(1)).rev() {
        let next = x[i + 1];
        x[i] -= w[i] * next;
    }
    good
}
