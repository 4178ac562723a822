//! One block and its couplings, all k × k, of real or complex numbers: elimination by tiles of w columns, w a vector's length.
//!
//! D̃ and copies of Ũ, G and H that are made for products stand in work space, in whole vectors: up to a multiple of w there
//! are rows and columns of the identity in D̃ and zeros in the others. With p a tile and T its unit lower triangle:
//!
//! ```text
//! D̃ ← D − H₋·G₋                                        from A straight to the work space
//! D̃ₚ ← D̃ₚ − L̃·Ũₚ                                       the columns of tile p, in its rows and below
//! L̃ₚ                                                    column by column, rows exchanged inside the block
//! Ũₚ, Gₚ ← T⁻¹·((D̃, P·U)ₚ − Σ_{q<p} L̃_{pq}·(Ũ, G)_q)     the rows of tile p
//! Hₚ ← (Lₚ − Σ_{q<p} H_q·Ũ_{qp})·Ũₚₚ⁻¹                    by vectors of rows, from A straight to the panel, once D̃ is done
//! ```
//!
//! Crout's order: every product is as deep as it can be and has its result in registers. T⁻¹ is formed (entries of T are at
//! most 1 in modulus, w ≤ 16) so that it is a product without a chain of dependent steps: Higham, Accuracy and Stability of
//! Numerical Algorithms, 2nd ed., §§9.2 and 14.2, doi:10.1137/1.9780898718027.
//!
//! For real blocks of whole tiles [`super::tiles`], which makes no copies, is up to 1.3 times as fast while they are small.
//! Whatever is out of the ordinary (a pivot that is zero, tiny or huge, numbers that are not finite) ends the kernel
//! with nothing done that counts: the general path eliminates the block from A again and names what is wrong.

use bt_formats::{RealScalar, Scalar, zero};
use pulp::Simd;

use super::job::{Ahead, Dense, Done, Job, Packed, Record};
use super::panel::{exchange, in_order};
use super::simd::{self, Aligned, Lanes, PADDED};
use super::tiles::{Lane, Largest, Steadily, one_by_one};
use super::wide::Wide;
use crate::lines;
use crate::pivot::Pivot;

/// Largest block.
const TALLEST: usize = 256;

/// Real numbers of work space for blocks that all have `k` rows; none where there is no kernel for them.
pub(super) fn space<T: Scalar>(k: usize) -> usize {
    let (parts, k) = (size_of::<T>() / size_of::<T::Real>(), if k > TALLEST { 0 } else { k.next_multiple_of(PADDED) });
    parts * (4 * k * k + (PADDED + 1) * k)
}

/// Eliminates a block; none when the shape is not that of the tiles or when something is out of the ordinary.
pub(super) fn eliminate<T: Wide>(job: &mut Job<'_, T>) -> Option<Record> {
    let k = job.front.k;
    // Blocks of other sizes about them leave no work space.
    if job.front.next != k || job.space.is_empty() || job.previous.is_some_and(|p| p.last != k) {
        return None;
    }
    simd::dispatch_padded::<T::Real, _>(k, Elimination(job))
}

/// The elimination of one block, as work for a SIMD instruction set.
struct Elimination<'t, 'j, T: Wide>(&'t mut Job<'j, T>);

impl<T: Wide> pulp::WithSimd for Elimination<'_, '_, T> {
    type Output = Option<Record>;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Option<Record> {
        // Constants, so that those of other vectors and numbers are not compiled.
        if const { size_of::<<T::Real as Lanes>::V<S>>() < 4 * size_of::<T::Real>() } {
            return None;
        }
        let k = self.0.front.k;
        if const { T::PARTS == 1 && S::REGISTER_COUNT >= 32 } {
            return run::<T, S, 2, 8>(s, self.0, k);
        }
        if const { T::PARTS == 1 } {
            return run::<T, S, 2, 4>(s, self.0, k);
        }
        if const { S::REGISTER_COUNT >= 32 } {
            return run::<T, S, 1, 8>(s, self.0, k);
        }
        run::<T, S, 1, 4>(s, self.0, k)
    }
}

/// Work space, and its shape. Vectors of numbers are counted: v of them are v·w·PARTS real numbers.
struct Space<'w, T: Wide> {
    /// D̃, by columns of whole vectors.
    d: &'w mut [T::Real],
    /// Ũ above the tiles: C columns after the other, of them row by row the C numbers.
    u: &'w mut [T::Real],
    /// G in the same way; before D̃ is there, that of the block before.
    g: &'w mut [T::Real],
    /// −H: R vectors of rows after the other, of them column by column the R vectors. As G.
    h: &'w mut [T::Real],
    /// −L̃ left of a tile, column by column a vector.
    l: &'w mut [T::Real],
    /// Of the pivots.
    reciprocals: &'w mut [T::Real],
}

/// `$body` for the vectors of rows from `$from` on, `$N` at a time: R while there are so many left, else one.
macro_rules! strips {
    ($v:ident in $from:expr, $tiles:expr; $N:ident of $R:ident: $body:block) => {
        let mut $v = $from;
        while $v < $tiles {
            if $R == 2 && $v + 2 <= $tiles {
                const $N: usize = 2;
                $body
                $v += $N;
            } else {
                const $N: usize = 1;
                $body
                $v += $N;
            }
        }
    };
}

/// Blocks up to this size ask for the next one's memory a tile at a time.
const SMALL: usize = 16;

#[inline(always)]
fn run<T: Wide, S: Simd, const R: usize, const C: usize>(s: S, job: &mut Job<'_, T>, k: usize) -> Option<Record> {
    let Job { front, from, previous, incoming, outgoing, ahead, space } = job;
    let nothing = Ahead([&[][..]; 5]);
    let (bursts, steadily) = if k <= SMALL { (*ahead, nothing) } else { (nothing, *ahead) };
    let ahead = &mut Steadily { left: steadily.0 };
    let w = T::Real::lanes::<S>();
    let (cell, tiles) = (T::PARTS * w, k.div_ceil(w));
    let rows = tiles * w;
    let mut space = {
        let square = rows * rows * T::PARTS;
        let (d, rest) = space.split_at_mut(square);
        let (u, rest) = rest.split_at_mut(square);
        let (g, rest) = rest.split_at_mut(square);
        let (h, rest) = rest.split_at_mut(square);
        let (l, rest) = rest.split_at_mut(rows * cell);
        Space::<T> { d, u, g, h, l, reciprocals: &mut rest[..rows * T::PARTS] }
    };
    let (panel, g) = (&mut front.panel[..2 * k * k], &mut front.g[..k * k]);
    let (max_a, norm_one) = load(s, from, g, incoming, outgoing, k);
    if !(max_a.is_finite() && norm_one.is_finite() && (T::PARTS == 1 || max_a > T::Real::MIN_POSITIVE.to_f64().sqrt()))
    {
        return None;
    }
    let own = &from.own[..k * k];
    if let Some(done) = previous
        && done.packed == Packed::No
    {
        pack::<T, S, R, C>(s, done, &mut space, k);
    }
    let depth = if previous.is_some() { rows } else { 0 };
    lines::apart(s, Subtract::<T, R, C> { space: &mut space, own, k, depth, ahead });
    let mut largest = Largest::none();
    let mut min_pivot = T::Real::INFINITY;
    // Of complex numbers a tile takes four times as long: three parts of its share in three places, one of real ones.
    let parts = 2 * T::PARTS - 1;
    let burst = |p: usize, i: usize| {
        if i < parts {
            bursts.fetch(p * parts + i, parts * tiles);
        }
    };
    for p in 0..tiles {
        burst(p, 0);
        let (first, end) = (p * w, k.min((p + 1) * w));
        if p > 0 {
            strips!(v in p, tiles; N of R: { rows_in_columns::<T, S, N, C>(s, &mut space, tiles, p, v); });
        }
        let pivots = &mut front.pivots[first..end];
        min_pivot = min_pivot.min_nan(factor_tile(s, &mut space, tiles, p, pivots)?);
        burst(p, 1);
        if !in_order(first, pivots) {
            let outside = (0..first).chain(first + w..rows);
            for column in outside.map(|c| c * tiles * cell) {
                for (r, &p) in pivots.iter().enumerate() {
                    swap::<T>(&mut space.d[column..column + tiles * cell], first + r, p as usize, w);
                }
            }
            for column in g.chunks_exact_mut(k) {
                exchange(column, first, pivots);
            }
        }
        let mut max = T::Real::load::<S>(&largest.u.0);
        for c in first..end {
            let own = &space.d[(c * tiles + p) * cell..][..cell];
            let before = T::Real::load::<S>(&T::Real::BEFORE.0[c - first + 1]);
            max = T::Real::larger(s, T::modulus(s, T::scaled(s, T::load(s, own), before)), max);
            let group = &mut space.u[c / C * C * rows * T::PARTS..];
            for r in first..=c {
                T::put(group, r * C * T::PARTS + c % C, C, T::get(own, r - first, w));
            }
        }
        T::Real::store::<S>(&mut largest.u.0, max);
        burst(p, 2);
        lines::apart(s, RowsOfTile::<T, C> { space: &mut space, g, k, p, largest: &mut largest });
    }
    let below = &from.below[..k * k];
    lines::apart(s, RowsOfH::<T, R, C> { space: &mut space, panel, below, k, max: &mut largest.h, ahead });
    for c in 0..k {
        let (column, d) = (&mut panel[2 * c * k..][..k], &space.d[c * tiles * cell..][..tiles * cell]);
        for (to, d) in column.chunks_mut(w).zip(d.chunks_exact(cell)) {
            T::write(s, to, T::load(s, d));
        }
    }
    let growth = largest.growth(s);
    growth.is_finite().then_some(Record { max_a, norm_one, growth, min_pivot: min_pivot.to_f64() })
}

/// Copies U to G and returns the largest modulus and column sum of A, as [`super::panel::load_block`] does.
#[inline(always)]
fn load<T: Wide, S: Simd>(
    s: S,
    from: &Dense<'_, T>,
    g: &mut [T],
    incoming: &[f64],
    outgoing: &mut [f64],
    k: usize,
) -> (f64, f64) {
    let w = T::Real::lanes::<S>();
    let none = T::Real::splat(s, zero());
    let mut max = none;
    let mut norm = 0.0f64;
    for c in 0..k {
        let (own, below) = (&from.own[c * k..][..k], &from.below[c * k..][..k]);
        let mut sum = none;
        for (own, below) in own.chunks(w).zip(below.chunks(w)) {
            let (own, below) = (T::read(s, own), T::read(s, below));
            max = T::Real::larger(s, T::modulus(s, below), T::Real::larger(s, T::modulus(s, own), max));
            sum = T::plus_modulus(s, T::plus_modulus(s, sum, own), below);
        }
        norm = norm.max_nan(T::Real::total(s, sum).to_f64() + incoming[c]);
    }
    for c in 0..k {
        let (from, to) = (&from.beside[c * k..][..k], &mut g[c * k..][..k]);
        let mut sum = none;
        for (from, to) in from.chunks(w).zip(to.chunks_mut(w)) {
            let v = T::read(s, from);
            T::write(s, to, v);
            max = T::Real::larger(s, T::modulus(s, v), max);
            sum = T::plus_modulus(s, sum, v);
        }
        outgoing[c] = T::Real::total(s, sum).to_f64();
        // NaN from NaN and infinity, else 0
        norm += outgoing[c] * 0.0;
    }
    (T::Real::largest(s, max).to_f64(), norm)
}

/// Copies of the factors of the block before, where they are not there yet.
#[inline(always)]
fn pack<T: Wide, S: Simd, const R: usize, const C: usize>(
    s: S,
    done: &Done<'_, T>,
    space: &mut Space<'_, T>,
    k: usize,
) {
    let w = T::Real::lanes::<S>();
    let (cell, tiles) = (T::PARTS * w, k.div_ceil(w));
    let minus = T::Real::splat(s, T::Real::from_f64(-1.0));
    space.g.fill(zero());
    space.h.fill(zero());
    for (c, column) in done.g.chunks_exact(k).enumerate() {
        let group = &mut space.g[c / C * C * tiles * cell..];
        for (q, &v) in column.iter().enumerate() {
            T::put(group, q * C * T::PARTS + c % C, C, v);
        }
    }
    for (q, column) in done.panel.chunks_exact(2 * k).enumerate() {
        for (v, h) in column[k..].chunks(w).enumerate() {
            let wide = if R == 2 && v / 2 * 2 + 2 <= tiles { 2 } else { 1 };
            let at = (v / wide * wide * tiles * w + q * wide + v % wide) * cell;
            T::store(s, &mut space.h[at..], T::scaled(s, T::read(s, h), minus));
        }
    }
}

/// Σ `a`·`x` + `acc` for R vectors of rows and C columns, which stay in registers; `lines` are asked for meanwhile.
#[inline(always)]
fn product<T: Wide, S: Simd, const R: usize, const C: usize>(
    s: S,
    a: &[T::Real],
    x: &[T::Real],
    mut acc: [[T::V<S>; R]; C],
    lines: &[T],
) -> [[T::V<S>; R]; C] {
    let cell = T::PARTS * T::Real::lanes::<S>();
    for (q, (a, x)) in a.chunks_exact(R * cell).zip(x.chunks_exact(C * T::PARTS)).enumerate() {
        Steadily::<T, true>::step(lines, q);
        let mut vectors = [T::splat(s, zero()); R];
        for v in 0..R {
            vectors[v] = T::load(s, &a[v * cell..]);
        }
        for i in 0..C {
            let x = T::splat(s, T::get(x, i, C));
            for v in 0..R {
                acc[i][v] = T::plus_product(s, vectors[v], x, acc[i][v]);
            }
        }
    }
    acc
}

/// D̃ ← D − H·G from A and the copies of the block before; `depth` is how many columns these have, if there is one.
struct Subtract<'a, 'w, 'd, T: Wide, const R: usize, const C: usize> {
    space: &'a mut Space<'w, T>,
    own: &'a [T],
    k: usize,
    depth: usize,
    ahead: &'a mut Steadily<'d, T, true>,
}

impl<T: Wide, const R: usize, const C: usize> pulp::WithSimd for Subtract<'_, '_, '_, T, R, C> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { space, own, k, depth, ahead } = self;
        let w = T::Real::lanes::<S>();
        let tiles = k.div_ceil(w);
        strips!(v in 0, tiles; N of R: { subtract_rows::<T, S, N, C>(s, space, own, k, depth, v, ahead); });
        for c in k..tiles * w {
            T::put(&mut space.d[(c * tiles + c / w) * T::PARTS * w..], c % w, w, T::rounded(1.0, 0.0));
        }
    }
}

/// The same for R vectors of rows from vector `v` on.
#[inline(always)]
fn subtract_rows<T: Wide, S: Simd, const R: usize, const C: usize>(
    s: S,
    space: &mut Space<'_, T>,
    own: &[T],
    k: usize,
    depth: usize,
    v: usize,
    ahead: &mut Steadily<'_, T, true>,
) {
    let w = T::Real::lanes::<S>();
    let (cell, tiles) = (T::PARTS * w, k.div_ceil(w));
    let rows = tiles * w;
    let h = &space.h[v * rows * cell..][..depth * R * cell];
    for first in (0..rows).step_by(C) {
        let d = &mut space.d[first * tiles * cell..][..C * tiles * cell];
        let x = &space.g[first * rows * T::PARTS..][..depth * C * T::PARTS];
        let mut acc = [[T::splat(s, zero()); R]; C];
        for i in 0..C {
            let c = first + i;
            if c < k {
                let column = &own[c * k..(c + 1) * k];
                for j in 0..R {
                    acc[i][j] = T::read(s, &column[(v + j) * w..]);
                }
            }
        }
        let acc = product::<T, S, R, C>(s, h, x, acc, ahead.take(depth));
        for i in 0..C {
            for j in 0..R {
                T::store(s, &mut d[(i * tiles + v + j) * cell..], acc[i][j]);
            }
        }
    }
}

/// D̃ in the columns of tile p, less what the tiles before it contribute, in R vectors of rows from vector `v` on.
#[inline(always)]
fn rows_in_columns<T: Wide, S: Simd, const R: usize, const C: usize>(
    s: S,
    space: &mut Space<'_, T>,
    tiles: usize,
    p: usize,
    v: usize,
) {
    let w = T::Real::lanes::<S>();
    let (cell, rows, first) = (T::PARTS * w, tiles * w, p * w);
    let (left, right) = space.d.split_at_mut(first * tiles * cell);
    for group in (0..w).step_by(C) {
        let d = &mut right[group * tiles * cell..][..C * tiles * cell];
        let x = &space.u[(first + group) * rows * T::PARTS..][..first * C * T::PARTS];
        let mut acc = [[T::splat(s, zero()); R]; C];
        for i in 0..C {
            for j in 0..R {
                acc[i][j] = T::load(s, &d[(i * tiles + v + j) * cell..]);
            }
        }
        for (q, x) in x.chunks_exact(C * T::PARTS).enumerate() {
            let l = &left[(q * tiles + v) * cell..][..R * cell];
            let mut vectors = [T::splat(s, zero()); R];
            for j in 0..R {
                vectors[j] = T::load(s, &l[j * cell..]);
            }
            for i in 0..C {
                let x = T::splat(s, T::get(x, i, C));
                for j in 0..R {
                    acc[i][j] = T::minus_product(s, vectors[j], x, acc[i][j]);
                }
            }
        }
        for i in 0..C {
            for j in 0..R {
                T::store(s, &mut d[(i * tiles + v + j) * cell..], acc[i][j]);
            }
        }
    }
}

/// Exchanges rows `r` and `other` of a column in work space.
#[inline(always)]
fn swap<T: Wide>(column: &mut [T::Real], r: usize, other: usize, w: usize) {
    let at = |r: usize| r / w * w * T::PARTS + r % w;
    let (one, two) = (T::get(column, at(r), w), T::get(column, at(other), w));
    T::put(column, at(r), w, two);
    T::put(column, at(other), w, one);
}

/// The columns of a tile, one after the other. Returns the smallest pivot; none when one is out of the ordinary.
#[inline(always)]
fn factor_tile<T: Wide, S: Simd>(
    s: S,
    space: &mut Space<'_, T>,
    tiles: usize,
    p: usize,
    pivots: &mut [u32],
) -> Option<T::Real> {
    let w = T::Real::lanes::<S>();
    let (cell, first) = (T::PARTS * w, p * w);
    let ld = tiles * cell;
    let tiny = T::Real::MIN_POSITIVE * T::Real::from_f64(16.0);
    let huge = T::Real::from_f64(1.0) / tiny;
    let mut smallest = T::Real::INFINITY;
    let tile = &mut space.d[first * ld..(first + w) * ld];
    for i in 0..pivots.len() {
        let column = &mut tile[i * ld..(i + 1) * ld];
        let mut max =
            T::Real::times(s, T::modulus(s, T::load(s, &column[p * cell..])), T::Real::load::<S>(&T::Real::FROM.0[i]));
        for x in column[(p + 1) * cell..].chunks_exact(cell) {
            max = T::Real::larger(s, T::modulus(s, T::load(s, x)), max);
        }
        let max = T::Real::largest(s, max);
        // Mostly the pivot is where it should be: a branch that is predicted keeps the search off the path to it.
        let mut pivot = T::get(column, p * cell + i, w);
        let mut row = first + i;
        if !(pivot.abs1() >= max) {
            row = (row + 1..tiles * w).find(|&r| T::get(column, r / w * cell + r % w, w).abs1() >= max)?;
            for column in tile.chunks_exact_mut(ld) {
                swap::<T>(column, first + i, row, w);
            }
            pivot = T::get(&tile[i * ld..], p * cell + i, w);
        }
        pivots[i] = row as u32;
        let size = pivot.abs1();
        // The reciprocal of a pivot in this range is normal: as accurate as divisions.
        if !(size >= tiny && size <= huge) {
            return None;
        }
        smallest = smallest.min_nan(Scalar::abs(pivot));
        let reciprocal = Pivot::new(pivot).divide(T::rounded(1.0, 0.0));
        T::put(space.reciprocals, first + i, tiles * w, reciprocal);
        let reciprocal = T::splat(s, reciprocal);
        let (column, rest) = tile[i * ld..].split_at_mut(ld);
        // The first vector holds a piece of Ũ too, which stays.
        let head = T::load(s, &column[p * cell..]);
        let l = T::scaled(s, T::times(s, head, reciprocal), T::Real::load::<S>(&T::Real::FROM.0[i + 1]));
        let kept = T::scaled(s, head, T::Real::load::<S>(&T::Real::BEFORE.0[i + 1]));
        T::store(s, &mut column[p * cell..], T::plus_product(s, l, T::splat(s, T::rounded(1.0, 0.0)), kept));
        for x in column[(p + 1) * cell..].chunks_exact_mut(cell) {
            let v = T::times(s, T::load(s, x), reciprocal);
            T::store(s, x, v);
        }
        let below = &column[(p + 1) * cell..];
        for later in 0..w - i - 1 {
            let other = &mut rest[later * ld..][..ld];
            let x = T::splat(s, T::get(other, p * cell + i, w));
            let v = T::minus_product(s, l, x, T::load(s, &other[p * cell..]));
            T::store(s, &mut other[p * cell..], v);
            for (y, l) in other[(p + 1) * cell..].chunks_exact_mut(cell).zip(below.chunks_exact(cell)) {
                let v = T::minus_product(s, T::load(s, l), x, T::load(s, y));
                T::store(s, y, v);
            }
        }
    }
    Some(smallest)
}

/// The columns of T⁻¹, T the unit lower triangle of the tile: m_d = e_d − Σ_{r>d} T(r, d)·m_r.
#[inline(always)]
fn inverse<T: Wide, S: Simd>(s: S, tile: &[T::Real], ld: usize, p: usize) -> [T::V<S>; PADDED] {
    let w = T::Real::lanes::<S>();
    let mut m = [T::splat(s, zero()); PADDED];
    for d in (0..w).rev() {
        let t = &tile[d * ld + p * T::PARTS * w..][..T::PARTS * w];
        let (from, before) = (T::Real::load::<S>(&T::Real::FROM.0[d]), T::Real::load::<S>(&T::Real::BEFORE.0[d + 1]));
        let mut column = T::scaled(s, T::scaled(s, T::splat(s, T::rounded(1.0, 0.0)), from), before);
        for r in d + 1..w {
            column = T::minus_product(s, T::splat(s, T::get(t, r, w)), m[r], column);
        }
        m[d] = column;
    }
    m
}

/// The rows of tile p to the right of it in D̃, and in G.
struct RowsOfTile<'a, 'w, T: Wide, const C: usize> {
    space: &'a mut Space<'w, T>,
    g: &'a mut [T],
    k: usize,
    p: usize,
    largest: &'a mut Largest<T::Real>,
}

impl<T: Wide, const C: usize> pulp::WithSimd for RowsOfTile<'_, '_, T, C> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { space, g, k, p, largest } = self;
        let w = T::Real::lanes::<S>();
        let (cell, tiles, first) = (T::PARTS * w, k.div_ceil(w), p * w);
        let (ld, rows) = (tiles * cell, tiles * w);
        let (left, right) = space.d.split_at_mut(first * ld);
        let (tile, right) = right.split_at_mut(w * ld);
        let minus = T::Real::splat(s, T::Real::from_f64(-1.0));
        let l = &mut space.l[..first * cell];
        for (q, to) in l.chunks_exact_mut(cell).enumerate() {
            T::store(s, to, T::scaled(s, T::load(s, &left[q * ld + p * cell..]), minus));
        }
        let l = &*l;
        let inverse = inverse::<T, S>(s, tile, ld, p);
        let mut x = Aligned([[zero::<T::Real>(); 2 * PADDED]; C]);
        let (mut of_u, mut of_g) = (T::Real::load::<S>(&largest.u.0), T::Real::load::<S>(&largest.g.0));
        for c in (first + w..rows).step_by(C) {
            let d = &mut right[(c - first - w) * ld..][..C * ld];
            let u = &mut space.u[c * rows * T::PARTS..][..C * rows * T::PARTS];
            let mut acc = [[T::splat(s, zero()); 1]; C];
            for i in 0..C {
                acc[i][0] = T::load(s, &d[i * ld + p * cell..]);
            }
            let x = solve_rows::<T, S, C>(s, l, &inverse, acc, u, first, &mut x);
            for i in 0..C {
                T::store(s, &mut d[i * ld + p * cell..], x[i]);
                of_u = T::Real::larger(s, T::modulus(s, x[i]), of_u);
            }
        }
        let end = k.min(first + w);
        for c in (0..k).step_by(C) {
            let packed = &mut space.g[c * rows * T::PARTS..][..C * rows * T::PARTS];
            let mut acc = [[T::splat(s, zero()); 1]; C];
            for i in 0..C {
                if c + i < k {
                    acc[i][0] = T::read(s, &g[(c + i) * k + first..(c + i) * k + end]);
                }
            }
            let x = solve_rows::<T, S, C>(s, l, &inverse, acc, packed, first, &mut x);
            for i in 0..C {
                if c + i < k {
                    T::write(s, &mut g[(c + i) * k + first..(c + i) * k + end], x[i]);
                    of_g = T::Real::larger(s, T::modulus(s, x[i]), of_g);
                }
            }
        }
        T::Real::store::<S>(&mut largest.u.0, of_u);
        T::Real::store::<S>(&mut largest.g.0, of_g);
    }
}

/// X ← T⁻¹·(`acc` + `l`·X) for the rows of a tile of C columns; X above them is packed, and X is added to it.
#[inline(always)]
fn solve_rows<T: Wide, S: Simd, const C: usize>(
    s: S,
    l: &[T::Real],
    inverse: &[T::V<S>; PADDED],
    acc: [[T::V<S>; 1]; C],
    packed: &mut [T::Real],
    first: usize,
    x: &mut Aligned<[[T::Real; 2 * PADDED]; C]>,
) -> [T::V<S>; C] {
    let w = T::Real::lanes::<S>();
    let (above, own) = packed.split_at_mut(first * C * T::PARTS);
    let acc = product::<T, S, 1, C>(s, l, above, acc, &[]);
    for i in 0..C {
        T::store(s, &mut x.0[i], acc[i][0]);
    }
    let mut solved = [T::splat(s, zero()); C];
    let accumulated = &one_by_one(&*x).0;
    for d in 0..w {
        for i in 0..C {
            solved[i] = T::plus_product(s, inverse[d], T::splat(s, T::get(&accumulated[i], d, w)), solved[i]);
        }
    }
    for i in 0..C {
        T::store(s, &mut x.0[i], solved[i]);
    }
    let x = one_by_one(&*x);
    for (d, own) in own[..w * C * T::PARTS].chunks_exact_mut(C * T::PARTS).enumerate() {
        for i in 0..C {
            T::put(own, i, C, T::get(&x.0[i], d, w));
        }
    }
    solved
}

/// H, R vectors of rows at a time.
struct RowsOfH<'a, 'w, 'd, T: Wide, const R: usize, const C: usize> {
    space: &'a mut Space<'w, T>,
    panel: &'a mut [T],
    below: &'a [T],
    k: usize,
    max: &'a mut Lane<T::Real>,
    ahead: &'a mut Steadily<'d, T, true>,
}

impl<T: Wide, const R: usize, const C: usize> pulp::WithSimd for RowsOfH<'_, '_, '_, T, R, C> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { space, panel, below, k, max, ahead } = self;
        let tiles = k.div_ceil(T::Real::lanes::<S>());
        strips!(v in 0, tiles; N of R: { rows_of_h::<T, S, N, C>(s, space, panel, below, k, v, max, ahead); });
    }
}

/// R vectors of rows of H from vector `v` on.
#[inline(always)]
fn rows_of_h<T: Wide, S: Simd, const R: usize, const C: usize>(
    s: S,
    space: &mut Space<'_, T>,
    panel: &mut [T],
    below: &[T],
    k: usize,
    v: usize,
    max: &mut Lane<T::Real>,
    ahead: &mut Steadily<'_, T, true>,
) {
    let w = T::Real::lanes::<S>();
    let (cell, tiles) = (T::PARTS * w, k.div_ceil(w));
    let rows = tiles * w;
    let minus = T::Real::splat(s, T::Real::from_f64(-1.0));
    let h = &mut space.h[v * rows * cell..][..rows * R * cell];
    let mut largest = T::Real::load::<S>(&max.0);
    for first in (0..k).step_by(C) {
        let (done, next) = h.split_at_mut(first * R * cell);
        let mut acc = [[T::splat(s, zero()); R]; C];
        for i in 0..C {
            if first + i < k {
                let column = &below[(first + i) * k..][..k];
                for j in 0..R {
                    acc[i][j] = T::read(s, &column[(v + j) * w..]);
                }
            }
        }
        // Lₚ − Σ H_q·Ũ_{qp}
        let mut acc = product::<T, S, R, C>(s, done, &space.u[first * rows * T::PARTS..], acc, ahead.take(first));
        // (…)·Ũₚₚ⁻¹, column by column
        let u = &space.u[first * (rows + C) * T::PARTS..][..C * C * T::PARTS];
        for c in 0..C {
            let reciprocal = T::splat(s, T::get(space.reciprocals, first + c, rows));
            for j in 0..R {
                acc[c][j] = T::times(s, acc[c][j], reciprocal);
            }
            let u = &u[c * C * T::PARTS..][..C * T::PARTS];
            for later in c + 1..C {
                let u = T::splat(s, T::get(u, later, C));
                for j in 0..R {
                    acc[later][j] = T::minus_product(s, acc[c][j], u, acc[later][j]);
                }
            }
        }
        for (acc, to) in acc.iter().zip(next.chunks_exact_mut(R * cell)) {
            for j in 0..R {
                largest = T::Real::larger(s, T::modulus(s, acc[j]), largest);
                T::store(s, &mut to[j * cell..], T::scaled(s, acc[j], minus));
            }
        }
        for i in 0..C {
            if first + i < k {
                let column = &mut panel[(2 * (first + i) + 1) * k..][..k];
                for j in 0..R {
                    T::write(s, &mut column[(v + j) * w..], acc[i][j]);
                }
            }
        }
    }
    T::Real::store::<S>(&mut max.0, largest);
}
