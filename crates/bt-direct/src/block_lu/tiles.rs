//! One block and its couplings, all k × k with k a multiple of a vector's length w: elimination by tiles of w columns.
//!
//! Every vector begins at a multiple of w from the head of a column, so the only masks are those inside the w × w
//! triangles on the diagonal. With T the tile's unit lower triangle and S what stands below it in D̃:
//!
//! ```text
//! D̃ ← D − H₋·G₋                           from A straight to the panel
//! [T; S]                                   column by column, rows exchanged inside the block
//! X ← T⁻¹·X,  Y ← Y − S·X                  in the columns of D̃ to the right, X the rows of the tile
//! Gₚ ← Tₚ⁻¹·((P·U)ₚ − Σ_{q<p} L̃_{pq}·G_q)   in the rows of the tile
//! Hₚ ← (Lₚ − Σ_{q<p} H_q·Ũ_{qp})·Ũₚₚ⁻¹      by vectors of rows, from A straight to the panel, once D̃ is done
//! ```
//!
//! T⁻¹ is formed (entries of T are at most 1 in modulus, w ≤ 16) so that X is a product without a chain of dependent
//! steps: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §14.2, doi:10.1137/1.9780898718027.
//!
//! Whatever is out of the ordinary (a pivot that is zero, tiny or huge, numbers that are not finite) ends the kernel
//! with nothing done that counts: the general path eliminates the block from A again and names what is wrong.

use bt_formats::{RealScalar, Scalar};
use pulp::Simd;

use super::engine::Job;
use super::factor::Record;
use super::panel::{Dense, exchange, in_order};
use super::simd::{self, Aligned, Lanes, PADDED};
use crate::lines;

/// Largest block: its two panels and their couplings stay in a second-level cache.
const TALLEST: usize = 96;

/// What the next block is made of and where its factors will stand (stores wait for lines, too), to be asked for bit by
/// bit: the hardware does not look far enough ahead along four streams that pause.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'d, T>(pub(super) [&'d [T]; 4]);

impl<T> Ahead<'_, T> {
    /// Bytes of a block's factors; with larger ones the time goes elsewhere.
    pub(super) const LARGEST: usize = 80 << 10;

    /// Part `i` of `n`.
    #[inline(always)]
    pub(super) fn fetch(self, i: usize, n: usize) {
        for values in self.0 {
            lines::fetch(values, values.len() * i / n..values.len() * (i + 1) / n);
        }
    }
}

/// Eliminates a block; none when the shape is not that of the tiles or when something is out of the ordinary.
pub(super) fn eliminate<L: Lanes>(job: &mut Job<'_, L>) -> Option<Record> {
    let k = job.front.k;
    if job.front.next != k || k > TALLEST || job.previous.is_some_and(|p| p.last != k) {
        return None;
    }
    simd::dispatch_for::<L, _>(k, Tiles(job))
}

/// The elimination of one block, as work for a SIMD instruction set.
struct Tiles<'t, 'j, L: Lanes>(&'t mut Job<'j, L>);

impl<L: Lanes> pulp::WithSimd for Tiles<'_, '_, L> {
    type Output = Option<Record>;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Option<Record> {
        let (k, w) = (self.0.front.k, L::lanes::<S>());
        if w < 4 || !k.is_multiple_of(w) {
            return None;
        }
        // The sizes as constants: loops over the tiles of small blocks vanish.
        match k / w {
            1 => run(s, self.0, w),
            2 => run(s, self.0, 2 * w),
            _ => run(s, self.0, k),
        }
    }
}

/// Largest moduli of the factors, vector by vector. A NaN may pass by these: the next block finds no pivot in a column or row of it.
struct Largest<V> {
    u: V,
    h: V,
    g: V,
}

#[inline(always)]
fn run<L: Lanes, S: Simd>(s: S, job: &mut Job<'_, L>, k: usize) -> Option<Record> {
    let Job { front, from, previous, incoming, outgoing, ahead, .. } = job;
    let ahead = *ahead;
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    // A third of the next block with each third of the work on this one.
    let (tiles, parts) = (k / w, 3 * k / w);
    let (panel, g) = (&mut front.panel[..ld * k], &mut front.g[..k * k]);
    let (max_a, norm_one) = load(s, from, g, incoming, outgoing, k);
    if !max_a.is_finite() || !norm_one.is_finite() {
        return None;
    }
    match previous {
        Some(done) => subtract(s, panel, &from.own[..k * k], &done.panel[k..], &done.g[..k * k], k, k, ahead),
        None => subtract(s, panel, &from.own[..k * k], &[], &[], k, 0, ahead),
    }
    let zero = L::splat(s, L::default());
    let mut largest = Largest { u: zero, h: zero, g: zero };
    let mut reciprocals = Aligned([L::default(); TALLEST]);
    let mut min_pivot = L::INFINITY;
    for first in (0..k).step_by(w) {
        ahead.fetch(tiles + first / w, parts);
        let pivots = &mut front.pivots[first..first + w];
        min_pivot = min_pivot.min_nan(factor_tile(s, panel, k, first, pivots, &mut reciprocals.0)?);
        let (left, rest) = panel.split_at_mut(first * ld);
        let (tile, right) = rest.split_at_mut(w * ld);
        if !in_order(first, pivots) {
            for column in left.chunks_exact_mut(ld).chain(right.chunks_exact_mut(ld)) {
                exchange(&mut column[..k], first, pivots);
            }
            for column in g.chunks_exact_mut(k) {
                exchange(column, first, pivots);
            }
        }
        for c in 0..w {
            let u = L::times(s, L::load(&tile[c * ld + first..]), L::load(&L::BEFORE.0[c + 1]));
            largest.u = L::max_modulus(s, largest.u, u);
        }
        let inverse = minus_inverse(s, tile, ld, first);
        right_of_tile(s, tile, ld, first, &inverse, right, k, &mut largest.u);
        if S::REGISTER_COUNT >= 32 {
            rows_of_g::<L, S, 8>(s, left, first, &inverse, g, k, &mut largest.g);
        } else {
            rows_of_g::<L, S, 4>(s, left, first, &inverse, g, k, &mut largest.g);
        }
    }
    let below = &from.below[..k * k];
    let mut r = 0;
    if w <= 8 {
        while r + 2 * w <= k {
            ahead.fetch(2 * tiles + r / w, parts);
            ahead.fetch(2 * tiles + r / w + 1, parts);
            rows_of_h::<L, S, 2>(s, panel, below, k, r, &reciprocals.0, &mut largest.h);
            r += 2 * w;
        }
    }
    while r < k {
        ahead.fetch(2 * tiles + r / w, parts);
        rows_of_h::<L, S, 1>(s, panel, below, k, r, &reciprocals.0, &mut largest.h);
        r += w;
    }
    let (h, g) = (L::largest(s, largest.h).to_f64(), L::largest(s, largest.g).to_f64());
    let growth = L::largest(s, largest.u).to_f64().max(h * g);
    growth.is_finite().then_some(Record { max_a, norm_one, growth, min_pivot: min_pivot.to_f64() })
}

/// R consecutive vectors.
#[inline(always)]
fn vectors<L: Lanes, S: Simd, const R: usize>(s: S, x: &[L]) -> [L::V<S>; R] {
    let mut out = [L::splat(s, L::default()); R];
    for v in 0..R {
        out[v] = L::load(&x[v * L::lanes::<S>()..]);
    }
    out
}

/// Copies U to G and returns the largest modulus and column sum of A, as [`super::panel::load_block`] does.
#[inline(always)]
fn load<L: Lanes, S: Simd>(
    s: S,
    from: &Dense<'_, L>,
    g: &mut [L],
    incoming: &[f64],
    outgoing: &mut [f64],
    k: usize,
) -> (f64, f64) {
    let mut max = L::splat(s, L::default());
    let mut norm = 0.0f64;
    let (own, below) = (from.own.chunks_exact(k), from.below.chunks_exact(k));
    for ((own, below), incoming) in own.zip(below).zip(incoming) {
        let mut sum = L::splat(s, L::default());
        for (own, below) in own.chunks_exact(L::lanes::<S>()).zip(below.chunks_exact(L::lanes::<S>())) {
            let (own, below) = (L::load(own), L::load(below));
            max = L::max_modulus(s, L::max_modulus(s, max, own), below);
            sum = L::plus_modulus(s, L::plus_modulus(s, sum, own), below);
        }
        norm = norm.max_nan(L::total(s, sum).to_f64() + incoming);
    }
    for ((from, to), outgoing) in from.beside.chunks_exact(k).zip(g.chunks_exact_mut(k)).zip(outgoing) {
        *outgoing = simd::copy_sum_and_max(s, from, to, &mut max).to_f64();
        // NaN from NaN and infinity, else 0
        norm += *outgoing * 0.0;
    }
    (L::largest(s, max).to_f64(), norm)
}

/// `panel` ← D − H·G in its upper half; H stands `2k` apart from column to column.
#[inline(always)]
fn subtract<L: Lanes, S: Simd>(
    s: S,
    panel: &mut [L],
    d: &[L],
    h: &[L],
    g: &[L],
    k: usize,
    depth: usize,
    ahead: Ahead<'_, L>,
) {
    let w = L::lanes::<S>();
    let mut c = 0;
    macro_rules! columns {
        ($columns:literal) => {
            while c + $columns <= k {
                ahead.fetch(c / $columns, 3 * (k / $columns));
                let mut r = 0;
                while r + 2 * w <= k {
                    subtract_tile::<L, S, 2, $columns>(s, panel, d, h, g, k, depth, r, c);
                    r += 2 * w;
                }
                if r < k {
                    subtract_tile::<L, S, 1, $columns>(s, panel, d, h, g, k, depth, r, c);
                }
                c += $columns;
            }
        };
    }
    if S::REGISTER_COUNT >= 32 {
        columns!(8);
    }
    columns!(4);
}

/// The same for R vectors of rows and C columns, which stay in registers.
#[inline(always)]
fn subtract_tile<L: Lanes, S: Simd, const R: usize, const C: usize>(
    s: S,
    panel: &mut [L],
    d: &[L],
    h: &[L],
    g: &[L],
    k: usize,
    depth: usize,
    r: usize,
    c: usize,
) {
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    let mut acc = [[L::splat(s, L::default()); R]; C];
    for i in 0..C {
        for v in 0..R {
            acc[i][v] = L::load(&d[(c + i) * k + r + v * w..]);
        }
    }
    if depth > 0 {
        let g = &g[c * k..(c + C) * k];
        for q in 0..k {
            let h = vectors::<L, S, R>(s, &h[q * ld + r..q * ld + r + R * w]);
            for i in 0..C {
                let x = L::splat(s, g[i * k + q]);
                for v in 0..R {
                    acc[i][v] = L::minus_product(s, h[v], x, acc[i][v]);
                }
            }
        }
    }
    for i in 0..C {
        for v in 0..R {
            L::store(&mut panel[(c + i) * ld + r + v * w..], acc[i][v]);
        }
    }
}

/// w columns from `first` on, one after the other. Returns the smallest pivot; none when one is out of the ordinary.
#[inline(always)]
fn factor_tile<L: Lanes, S: Simd>(
    s: S,
    panel: &mut [L],
    k: usize,
    first: usize,
    pivots: &mut [u32],
    reciprocals: &mut [L],
) -> Option<L> {
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    let (one, zero) = (L::from_f64(1.0), L::default());
    let tiny = L::MIN_POSITIVE * L::from_f64(16.0);
    let huge = one / tiny;
    let mut smallest = L::INFINITY;
    for i in 0..w {
        let c = first + i;
        let column = &panel[c * ld..c * ld + k];
        let mut max = L::times(s, L::load(&column[first..]), L::load(&L::FROM.0[i]));
        max = L::max_modulus(s, L::splat(s, zero), max);
        for x in column[first + w..].chunks_exact(w) {
            max = L::max_modulus(s, max, L::load(x));
        }
        let max = L::largest(s, max);
        // Mostly the pivot is where it should be: a branch that is predicted keeps the search off the path to it.
        let mut p = c;
        if !(Scalar::abs(column[c]) >= max) {
            p = c + column[c..].iter().position(|v| Scalar::abs(*v) >= max)?;
            for column in panel[first * ld..(first + w) * ld].chunks_exact_mut(ld) {
                column.swap(c, p);
            }
        }
        pivots[i] = p as u32;
        let pivot = panel[c * ld + c];
        let size = Scalar::abs(pivot);
        // The reciprocal of a pivot in this range is normal: as accurate as divisions.
        if !(size >= tiny && size <= huge) {
            return None;
        }
        smallest = smallest.min_nan(size);
        reciprocals[c] = one / pivot;
        let (column, rest) = panel[c * ld..(first + w) * ld].split_at_mut(ld);
        let reciprocal = L::splat(s, reciprocals[c]);
        // The first vector holds a piece of Ũ too, which stays.
        let head = L::load(&column[first..]);
        let l = L::times(s, L::times(s, head, reciprocal), L::load(&L::FROM.0[i + 1]));
        let kept = L::times(s, head, L::load(&L::BEFORE.0[i + 1]));
        L::store(&mut column[first..], L::minus_product(s, l, L::splat(s, -one), kept));
        for x in column[first + w..k].chunks_exact_mut(w) {
            let v = L::times(s, L::load(x), reciprocal);
            L::store(x, v);
        }
        for other in rest.chunks_exact_mut(ld) {
            let x = L::splat(s, other[c]);
            let v = L::minus_product(s, l, x, L::load(&other[first..]));
            L::store(&mut other[first..], v);
            for (y, l) in other[first + w..k].chunks_exact_mut(w).zip(column[first + w..k].chunks_exact(w)) {
                let v = L::minus_product(s, L::load(l), x, L::load(y));
                L::store(y, v);
            }
        }
    }
    Some(smallest)
}

/// The columns of −T⁻¹, T the unit lower triangle of the tile: m_d = −e_d − Σ_{r>d} T(r, d)·m_r.
#[inline(always)]
fn minus_inverse<L: Lanes, S: Simd>(s: S, tile: &[L], ld: usize, first: usize) -> [L::V<S>; PADDED] {
    let w = L::lanes::<S>();
    let mut m = [L::splat(s, L::default()); PADDED];
    for d in (0..w).rev() {
        let t = &tile[d * ld + first..d * ld + first + w];
        let zero = L::splat(s, L::default());
        let mut column = L::minus_product(s, L::load(&L::FROM.0[d]), L::load(&L::BEFORE.0[d + 1]), zero);
        for r in d + 1..w {
            column = L::minus_product(s, L::splat(s, t[r]), m[r], column);
        }
        m[d] = column;
    }
    m
}

/// T⁻¹·x for C columns x, `stride` apart, from the columns of −T⁻¹.
#[inline(always)]
fn solve_tile<L: Lanes, S: Simd, const C: usize>(
    s: S,
    inverse: &[L::V<S>; PADDED],
    x: &[L],
    stride: usize,
) -> [L::V<S>; C] {
    let mut acc = [L::splat(s, L::default()); C];
    for d in 0..L::lanes::<S>() {
        for i in 0..C {
            acc[i] = L::minus_product(s, inverse[d], L::splat(s, x[i * stride + d]), acc[i]);
        }
    }
    acc
}

/// X ← T⁻¹·X in the rows of the tile, Y ← Y − S·X in those below it, for the columns of D̃ to the right.
#[inline(always)]
fn right_of_tile<L: Lanes, S: Simd>(
    s: S,
    tile: &[L],
    ld: usize,
    first: usize,
    inverse: &[L::V<S>; PADDED],
    right: &mut [L],
    k: usize,
    max: &mut L::V<S>,
) {
    const C: usize = 4;
    let w = L::lanes::<S>();
    let below = first + w;
    for group in right.chunks_exact_mut(C * ld) {
        let mut x = Aligned([[L::default(); PADDED]; C]);
        let solved = solve_tile::<L, S, C>(s, inverse, &group[first..], ld);
        for i in 0..C {
            L::store(&mut group[i * ld + first..], solved[i]);
            L::store(&mut x.0[i], solved[i]);
            *max = L::max_modulus(s, *max, solved[i]);
        }
        if below < k {
            simd::update(s, &mut group[below..], ld, k - below, C, &tile[below..], ld, x.0.as_flattened(), PADDED, w);
        }
    }
}

/// G in the rows of a tile, C columns at a time; `left` are the columns of L̃ before it.
#[inline(always)]
fn rows_of_g<L: Lanes, S: Simd, const C: usize>(
    s: S,
    left: &[L],
    first: usize,
    inverse: &[L::V<S>; PADDED],
    g: &mut [L],
    k: usize,
    max: &mut L::V<S>,
) {
    for group in g.chunks_exact_mut(C * k) {
        let mut acc = [L::splat(s, L::default()); C];
        for i in 0..C {
            acc[i] = L::load(&group[i * k + first..]);
        }
        for (q, l) in left.chunks_exact(2 * k).enumerate() {
            let l = L::load(&l[first..]);
            for i in 0..C {
                acc[i] = L::minus_product(s, l, L::splat(s, group[i * k + q]), acc[i]);
            }
        }
        let mut x = Aligned([[L::default(); PADDED]; C]);
        for i in 0..C {
            L::store(&mut x.0[i], acc[i]);
        }
        let solved = solve_tile::<L, S, C>(s, inverse, x.0.as_flattened(), PADDED);
        for i in 0..C {
            L::store(&mut group[i * k + first..], solved[i]);
            *max = L::max_modulus(s, *max, solved[i]);
        }
    }
}

/// R vectors of rows of H from row `r` on.
#[inline(always)]
fn rows_of_h<L: Lanes, S: Simd, const R: usize>(
    s: S,
    panel: &mut [L],
    below: &[L],
    k: usize,
    r: usize,
    reciprocals: &[L],
    max: &mut L::V<S>,
) {
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    for first in (0..k).step_by(w) {
        let (done, tile) = panel.split_at_mut(first * ld);
        let mut acc = [[L::splat(s, L::default()); R]; PADDED];
        for c in 0..w {
            for v in 0..R {
                acc[c][v] = L::load(&below[(first + c) * k + r + v * w..]);
            }
        }
        // Lₚ − Σ H_q·Ũ_{qp}
        for (q, h) in done.chunks_exact(ld).enumerate() {
            let h = vectors::<L, S, R>(s, &h[k + r..k + r + R * w]);
            for c in 0..w {
                let u = L::splat(s, tile[c * ld + q]);
                for v in 0..R {
                    acc[c][v] = L::minus_product(s, h[v], u, acc[c][v]);
                }
            }
        }
        // (…)·Ũₚₚ⁻¹, column by column
        for c in 0..w {
            let reciprocal = L::splat(s, reciprocals[first + c]);
            for v in 0..R {
                acc[c][v] = L::times(s, acc[c][v], reciprocal);
                *max = L::max_modulus(s, *max, acc[c][v]);
                L::store(&mut tile[c * ld + k + r + v * w..], acc[c][v]);
            }
            for later in c + 1..w {
                let u = L::splat(s, tile[later * ld + first + c]);
                for v in 0..R {
                    acc[later][v] = L::minus_product(s, acc[c][v], u, acc[later][v]);
                }
            }
        }
    }
}
