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

use bt_formats::{RealScalar, Scalar, prefetch};
use pulp::Simd;

use super::job::{Dense, Job, Record};
use super::panel::{exchange, in_order};
use super::simd::{self, Aligned, Lanes, PADDED};
use crate::lines;

/// Largest block: its two panels and their couplings stay in a second-level cache.
const TALLEST: usize = 96;

/// The same with the work on a block. More lines at once than may be on their way make everything wait: of larger blocks (`LARGE`) a few
/// are asked for with each step of the products, of small ones a column while one waits for its pivot.
pub(super) struct Steadily<'d, T, const LARGE: bool> {
    pub(super) left: [&'d [T]; 5],
}

impl<'d, T, const LARGE: bool> Steadily<'d, T, LARGE> {
    /// Two cache lines.
    const STEP: usize = 2 * lines::LINE / size_of::<T>();

    /// Column `c`, of small blocks of k rows.
    #[inline(always)]
    fn column(&self, c: usize, k: usize) {
        if !LARGE {
            let [own, below, beside, g, panel] = self.left;
            for values in [own, below, beside, g] {
                lines::fetch(values, c * k..(c + 1) * k);
            }
            lines::fetch(panel, 2 * c * k..2 * (c + 1) * k);
        }
    }

    /// What so many steps are to ask for, of large blocks.
    #[inline(always)]
    pub(super) fn take(&mut self, steps: usize) -> &'d [T] {
        if !LARGE {
            return &[];
        }
        if self.left[0].is_empty() {
            let [_, others @ ..] = self.left;
            self.left = [others[0], others[1], others[2], others[3], &[]];
        }
        let taken;
        (taken, self.left[0]) = self.left[0].split_at(self.left[0].len().min(steps * Self::STEP));
        taken
    }

    #[inline(always)]
    pub(super) fn step(taken: &[T], step: usize) {
        if LARGE {
            prefetch(taken, step * Self::STEP);
            prefetch(taken, step * Self::STEP + Self::STEP / 2);
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
        if const { size_of::<L::V<S>>() < 4 * size_of::<L>() } {
            return None;
        }
        let (k, w) = (self.0.front.k, L::lanes::<S>());
        if !k.is_multiple_of(w) {
            return None;
        }
        // The sizes as constants: loops over the tiles of small blocks vanish.
        match k / w {
            1 => run::<L, S, false>(s, self.0, w),
            2 => run::<L, S, false>(s, self.0, 2 * w),
            _ => run::<L, S, true>(s, self.0, k),
        }
    }
}

/// Numbers of a vector in memory, as kernels that are functions of their own hand them on.
pub(super) type Lane<L> = Aligned<[L; PADDED]>;

/// Largest moduli of the factors, vector by vector. A NaN may pass by these: the next block finds no pivot in a column or row of it.
pub(super) struct Largest<L> {
    pub(super) u: Lane<L>,
    pub(super) h: Lane<L>,
    pub(super) g: Lane<L>,
}

impl<L: Lanes> Largest<L> {
    #[inline(always)]
    pub(super) fn none() -> Self {
        let [u, h, g] = [[L::default(); PADDED]; 3];
        Self { u: Aligned(u), h: Aligned(h), g: Aligned(g) }
    }

    /// max(|Ũ|, |H|·|G|), see [`Record`].
    #[inline(always)]
    pub(super) fn growth<S: Simd>(&self, s: S) -> f64 {
        let (u, h, g) = (L::load(&self.u.0), L::load(&self.h.0), L::load(&self.g.0));
        let (h, g) = (L::largest(s, h).to_f64(), L::largest(s, g).to_f64());
        L::largest(s, u).to_f64().max(h * g)
    }
}

/// A loop over a large block is a function of its own: the compiler then has registers for it, and not for all of them at once. What is
/// constant in a small one would be lost by that.
#[inline(always)]
pub(super) fn apart<const APART: bool, S: Simd, W: pulp::WithSimd>(s: S, work: W) -> W::Output {
    if APART { lines::apart(s, work) } else { work.with_simd(s) }
}

#[inline(always)]
fn run<L: Lanes, S: Simd, const LARGE: bool>(s: S, job: &mut Job<'_, L>, k: usize) -> Option<Record> {
    let Job { front, from, previous, incoming, outgoing, ahead, .. } = job;
    let ahead = &mut Steadily::<L, LARGE> { left: ahead.0 };
    let (w, ld) = (L::lanes::<S>(), 2 * k);
    let (panel, g) = (&mut front.panel[..ld * k], &mut front.g[..k * k]);
    let (max_a, norm_one) = load(s, from, g, incoming, outgoing, k);
    if !max_a.is_finite() || !norm_one.is_finite() {
        return None;
    }
    let own = &from.own[..k * k];
    let (h, of_previous) = match previous {
        Some(done) => (&done.panel[k..], &done.g[..k * k]),
        None => (&[][..], &[][..]),
    };
    apart::<LARGE, _, _>(s, Subtract { panel, d: own, h, g: of_previous, k, ahead });
    let mut largest = Largest::none();
    let mut reciprocals = Aligned([L::default(); TALLEST]);
    let mut inverse = Aligned([[L::default(); PADDED]; PADDED]);
    let mut min_pivot = L::INFINITY;
    for first in (0..k).step_by(w) {
        let pivots = &mut front.pivots[first..first + w];
        let factored =
            apart::<LARGE, _, _>(s, FactorTile { panel, k, first, pivots, reciprocals: &mut reciprocals.0, ahead });
        min_pivot = min_pivot.min_nan(factored?);
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
        minus_inverse(s, tile, ld, first, &mut inverse.0, &mut largest.u);
        let inverse = &inverse.0;
        apart::<LARGE, _, _>(s, RightOfTile { tile, first, inverse, right, k, max: &mut largest.u });
        apart::<LARGE, _, _>(s, RowsOfG { left, first, inverse, g, k, max: &mut largest.g, ahead });
    }
    let below = &from.below[..k * k];
    let mut r = 0;
    if const { size_of::<L::V<S>>() <= 8 * size_of::<L>() } {
        while r + 2 * w <= k {
            let reciprocals = &reciprocals.0;
            apart::<LARGE, _, _>(
                s,
                RowsOfH::<_, 2, LARGE> { panel, below, k, r, reciprocals, max: &mut largest.h, ahead },
            );
            r += 2 * w;
        }
    }
    while r < k {
        let reciprocals = &reciprocals.0;
        apart::<LARGE, _, _>(s, RowsOfH::<_, 1, LARGE> { panel, below, k, r, reciprocals, max: &mut largest.h, ahead });
        r += w;
    }
    let growth = largest.growth(s);
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

/// `panel` ← D − H·G in its upper half; H stands `2k` apart from column to column. An empty H takes nothing.
struct Subtract<'a, 'd, L, const LARGE: bool> {
    panel: &'a mut [L],
    d: &'a [L],
    h: &'a [L],
    g: &'a [L],
    k: usize,
    ahead: &'a mut Steadily<'d, L, LARGE>,
}

impl<L: Lanes, const LARGE: bool> pulp::WithSimd for Subtract<'_, '_, L, LARGE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, s: S) {
        let (k, w) = (self.k, L::lanes::<S>());
        let mut c = 0;
        macro_rules! columns {
            ($columns:literal) => {
                while c + $columns <= k {
                    let mut r = 0;
                    while r + 2 * w <= k {
                        self.tile::<S, 2, $columns>(s, r, c);
                        r += 2 * w;
                    }
                    if r < k {
                        self.tile::<S, 1, $columns>(s, r, c);
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
}

impl<L: Lanes, const LARGE: bool> Subtract<'_, '_, L, LARGE> {
    /// R vectors of rows and C columns, which stay in registers.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const C: usize>(&mut self, s: S, r: usize, c: usize) {
        let Self { panel, d, h, g, k, ahead } = self;
        let (k, w, ld) = (*k, L::lanes::<S>(), 2 * *k);
        let mut acc = [[L::splat(s, L::default()); R]; C];
        for i in 0..C {
            for v in 0..R {
                acc[i][v] = L::load(&d[(c + i) * k + r + v * w..]);
            }
        }
        if !h.is_empty() {
            let g = &g[c * k..(c + C) * k];
            let lines = ahead.take(k);
            for q in 0..k {
                Steadily::<L, LARGE>::step(lines, q);
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
}

/// w columns from `first` on, one after the other. Returns the smallest pivot; none when one is out of the ordinary.
struct FactorTile<'a, 'd, L, const LARGE: bool> {
    panel: &'a mut [L],
    k: usize,
    first: usize,
    pivots: &'a mut [u32],
    reciprocals: &'a mut [L],
    ahead: &'a Steadily<'d, L, LARGE>,
}

impl<L: Lanes, const LARGE: bool> pulp::WithSimd for FactorTile<'_, '_, L, LARGE> {
    type Output = Option<L>;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Option<L> {
        let Self { panel, k, first, pivots, reciprocals, ahead } = self;
        let (w, ld) = (L::lanes::<S>(), 2 * k);
        let (one, zero) = (L::from_f64(1.0), L::default());
        let tiny = L::MIN_POSITIVE * L::from_f64(16.0);
        let huge = one / tiny;
        let mut smallest = L::INFINITY;
        for i in 0..w {
            let c = first + i;
            ahead.column(c, k);
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
            let l = L::times(s, L::times(s, head, L::load(&L::FROM.0[i + 1])), reciprocal);
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
}

/// The columns of −T⁻¹, T the unit lower triangle of the tile: m_d = −e_d − Σ_{r>d} T(r, d)·m_r; what stands above T goes into `max`.
#[inline(always)]
fn minus_inverse<L: Lanes, S: Simd>(
    s: S,
    tile: &[L],
    ld: usize,
    first: usize,
    inverse: &mut [[L; PADDED]; PADDED],
    max: &mut Lane<L>,
) {
    let w = L::lanes::<S>();
    let zero = L::splat(s, L::default());
    let mut m = [zero; PADDED];
    let mut largest = L::load(&max.0);
    for d in (0..w).rev() {
        let t = &tile[d * ld + first..d * ld + first + w];
        largest = L::max_modulus(s, largest, L::times(s, L::load(t), L::load(&L::BEFORE.0[d + 1])));
        let mut column = L::minus_product(s, L::load(&L::FROM.0[d]), L::load(&L::BEFORE.0[d + 1]), zero);
        for r in d + 1..w {
            column = L::minus_product(s, L::splat(s, t[r]), m[r], column);
        }
        m[d] = column;
        L::store(&mut inverse[d], column);
    }
    L::store(&mut max.0, largest);
}

/// Numbers that were stored by vectors, to be loaded one by one: the compiler takes them from the vectors otherwise, by moves between
/// lanes that cost more than loads do.
#[inline(always)]
pub(super) fn one_by_one<X>(x: &X) -> &X {
    std::hint::black_box(x)
}

/// T⁻¹·x for C columns x, `stride` apart, from the columns of −T⁻¹.
#[inline(always)]
fn solve_tile<L: Lanes, S: Simd, const C: usize>(
    s: S,
    inverse: &[[L; PADDED]; PADDED],
    x: &[L],
    stride: usize,
) -> [L::V<S>; C] {
    let mut acc = [L::splat(s, L::default()); C];
    for d in 0..L::lanes::<S>() {
        let inverse = L::load(&inverse[d]);
        for i in 0..C {
            acc[i] = L::minus_product(s, inverse, L::splat(s, x[i * stride + d]), acc[i]);
        }
    }
    acc
}

/// X ← T⁻¹·X in the rows of the tile, Y ← Y − S·X in those below it, for the columns of D̃ to the right.
struct RightOfTile<'a, L> {
    tile: &'a [L],
    first: usize,
    inverse: &'a [[L; PADDED]; PADDED],
    right: &'a mut [L],
    k: usize,
    max: &'a mut Lane<L>,
}

impl<L: Lanes> pulp::WithSimd for RightOfTile<'_, L> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        const C: usize = 4;
        let Self { tile, first, inverse, right, k, max } = self;
        let (w, ld) = (L::lanes::<S>(), 2 * k);
        let below = first + w;
        let mut largest = L::load(&max.0);
        let mut x = Aligned([[L::default(); PADDED]; C]);
        for group in right.chunks_exact_mut(C * ld) {
            let solved = solve_tile::<L, S, C>(s, inverse, &group[first..], ld);
            for i in 0..C {
                L::store(&mut group[i * ld + first..], solved[i]);
                L::store(&mut x.0[i], solved[i]);
                largest = L::max_modulus(s, largest, solved[i]);
            }
            let x = one_by_one(&x).0.as_flattened();
            if below < k {
                let (y, l, rows, ldx) = (&mut group[below..], &tile[below..], k - below, PADDED);
                let update = simd::Update { y, ldy: ld, rows, width: C, l, ldl: ld, x, ldx, depth: w };
                pulp::WithSimd::with_simd(update, s);
            }
        }
        L::store(&mut max.0, largest);
    }
}

/// G in the rows of a tile, eight or four columns at a time; `left` are the columns of L̃ before it.
struct RowsOfG<'a, 'd, L, const LARGE: bool> {
    left: &'a [L],
    first: usize,
    inverse: &'a [[L; PADDED]; PADDED],
    g: &'a mut [L],
    k: usize,
    max: &'a mut Lane<L>,
    ahead: &'a mut Steadily<'d, L, LARGE>,
}

impl<L: Lanes, const LARGE: bool> pulp::WithSimd for RowsOfG<'_, '_, L, LARGE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        if S::REGISTER_COUNT >= 32 { self.columns::<S, 8>(s) } else { self.columns::<S, 4>(s) }
    }
}

impl<L: Lanes, const LARGE: bool> RowsOfG<'_, '_, L, LARGE> {
    #[inline(always)]
    fn columns<S: Simd, const C: usize>(self, s: S) {
        let Self { left, first, inverse, g, k, max, ahead } = self;
        let mut largest = L::load(&max.0);
        let mut x = Aligned([[L::default(); PADDED]; C]);
        for group in g.chunks_exact_mut(C * k) {
            let mut acc = [L::splat(s, L::default()); C];
            for i in 0..C {
                acc[i] = L::load(&group[i * k + first..]);
            }
            let lines = ahead.take(first);
            let mut done: [&[L]; C] = [&[]; C];
            for i in 0..C {
                done[i] = &group[i * k..i * k + first];
            }
            for q in 0..first {
                Steadily::<L, LARGE>::step(lines, q);
                let l = L::load(&left[q * 2 * k + first..]);
                for i in 0..C {
                    acc[i] = L::minus_product(s, l, L::splat(s, done[i][q]), acc[i]);
                }
            }
            for i in 0..C {
                L::store(&mut x.0[i], acc[i]);
            }
            let solved = solve_tile::<L, S, C>(s, inverse, one_by_one(&x).0.as_flattened(), PADDED);
            for i in 0..C {
                L::store(&mut group[i * k + first..], solved[i]);
                largest = L::max_modulus(s, largest, solved[i]);
            }
        }
        L::store(&mut max.0, largest);
    }
}

/// R vectors of rows of H from row `r` on.
struct RowsOfH<'a, 'd, L, const R: usize, const LARGE: bool> {
    panel: &'a mut [L],
    below: &'a [L],
    k: usize,
    r: usize,
    reciprocals: &'a [L],
    max: &'a mut Lane<L>,
    ahead: &'a mut Steadily<'d, L, LARGE>,
}

impl<L: Lanes, const R: usize, const LARGE: bool> pulp::WithSimd for RowsOfH<'_, '_, L, R, LARGE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { panel, below, k, r, reciprocals, max, ahead } = self;
        let (w, ld) = (L::lanes::<S>(), 2 * k);
        let mut largest = L::load(&max.0);
        for first in (0..k).step_by(w) {
            let (done, tile) = panel.split_at_mut(first * ld);
            let mut acc = [[L::splat(s, L::default()); R]; PADDED];
            for c in 0..w {
                for v in 0..R {
                    acc[c][v] = L::load(&below[(first + c) * k + r + v * w..]);
                }
            }
            // Lₚ − Σ H_q·Ũ_{qp}
            let lines = ahead.take(first);
            let mut columns: [&[L]; PADDED] = [&[]; PADDED];
            for c in 0..w {
                columns[c] = &tile[c * ld..c * ld + first];
            }
            for q in 0..first {
                Steadily::<L, LARGE>::step(lines, q);
                let h = vectors::<L, S, R>(s, &done[q * ld + k + r..]);
                for c in 0..w {
                    let u = L::splat(s, columns[c][q]);
                    for v in 0..R {
                        acc[c][v] = L::minus_product(s, h[v], u, acc[c][v]);
                    }
                }
            }
            // (…)·Ũₚₚ⁻¹, column by column: written out, or they would not stay in registers
            for c in 0..w {
                columns[c] = &tile[c * ld + first..c * ld + first + w];
            }
            let reciprocals = &reciprocals[first..first + w];
            macro_rules! columns {
                ($($c:literal)*) => {$(
                    if $c < w {
                        let reciprocal = L::splat(s, reciprocals[$c]);
                        for v in 0..R {
                            acc[$c][v] = L::times(s, acc[$c][v], reciprocal);
                            largest = L::max_modulus(s, largest, acc[$c][v]);
                        }
                        for later in $c + 1..w {
                            let u = L::splat(s, columns[later][$c]);
                            for v in 0..R {
                                acc[later][v] = L::minus_product(s, acc[$c][v], u, acc[later][v]);
                            }
                        }
                    }
                )*};
            }
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            for c in 0..w {
                for v in 0..R {
                    L::store(&mut tile[c * ld + k + r + v * w..], acc[c][v]);
                }
            }
        }
        L::store(&mut max.0, largest);
    }
}
