//! The two sets of loops that handle a block: explicit vectors for real scalars, plain loops for all.

use bt_formats::{RealScalar, Scalar, ScalarKind};
use pulp::Simd;

use super::few_rows;
use super::job::{Chain, Dense, Done, Engine, Front, Job, Packed, Record};
use super::packed;
use super::panel::{Plain, TILE, exchange, in_order, usable};
#[cfg(target_arch = "x86_64")]
use super::registers;
use super::simd::{self, Aligned, Lanes, PADDED};
use super::tiles;
use super::wide::Wide;
use crate::lines;
use crate::pivot::Pivot;

/// Kernels that hold whole blocks in registers, where the type has some.
pub(super) trait InRegisters: Lanes + Wide {
    /// See [`Engine::whole`].
    fn in_registers(_job: &mut Job<'_, Self>) -> Option<Record> {
        None
    }
    /// See [`Engine::chains_at_once`].
    fn chains_at_once(_k: usize) -> usize {
        0
    }
    /// See [`Engine::chains`].
    fn chains(_chains: &mut [Chain<'_, Self>], _go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        0
    }
}

impl InRegisters for f32 {
    fn in_registers(job: &mut Job<'_, f32>) -> Option<Record> {
        of_few_rows(job)
    }
    fn chains_at_once(k: usize) -> usize {
        usize::from(few_rows::ROWS.contains(&k))
    }
    fn chains(chains: &mut [Chain<'_, f32>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        few_rows::eliminate_chains(chains, go_on)
    }
}

/// A block for which there is a kernel of its size.
fn of_few_rows<T: Scalar>(job: &mut Job<'_, T>) -> Option<Record> {
    job.as_chain::<4, 32>(|chains| few_rows::eliminate_chains(chains, &mut |_| true))
}

#[cfg(not(target_arch = "x86_64"))]
impl InRegisters for f64 {}

#[cfg(target_arch = "x86_64")]
impl InRegisters for f64 {
    fn in_registers(job: &mut Job<'_, f64>) -> Option<Record> {
        registers::eliminate(job)
    }
    fn chains_at_once(k: usize) -> usize {
        registers::chains_at_once(k)
    }
    fn chains(chains: &mut [Chain<'_, f64>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        registers::eliminate_chains(chains, go_on)
    }
}

/// Whether equal dense blocks of `k` rows are eliminated so much faster than others that it pays to store blocks dense.
pub(super) fn fast_dense<T: Scalar>(k: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    let vectors = bt_simd::avx2().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    let vectors = false;
    match T::KIND {
        ScalarKind::F64 if k <= 8 => <f64 as InRegisters>::chains_at_once(k) > 0,
        ScalarKind::F64 | ScalarKind::C64 | ScalarKind::C32 => vectors && k <= 16,
        ScalarKind::F32 => false,
    }
}

/// Explicit vectors of real numbers.
pub(super) struct Vectors;

impl<L: InRegisters> Engine<L> for Vectors {
    fn whole(job: &mut Job<'_, L>) -> Option<(Record, Packed)> {
        match L::in_registers(job).or_else(|| tiles::eliminate(job)) {
            Some(record) => Some((record, Packed::No)),
            None => Some((packed::eliminate(job)?, Packed::Yes)),
        }
    }
    fn chains_at_once(k: usize) -> usize {
        L::chains_at_once(k)
    }
    fn chains(chains: &mut [Chain<'_, L>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        L::chains(chains, go_on)
    }
    fn load(front: &mut Front<'_, L>, from: &Dense<'_, L>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        bt_simd::dispatch(Load { front, from, incoming, outgoing })
    }
    fn norms(front: &Front<'_, L>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        bt_simd::dispatch(Norms { front, incoming, outgoing })
    }
    fn subtract(front: &mut Front<'_, L>, done: &Done<'_, L>) {
        bt_simd::dispatch(Subtract { front, done });
    }
    fn eliminate(front: &mut Front<'_, L>) -> Option<usize> {
        bt_simd::dispatch(Eliminate { front })
    }
    fn measure(front: &Front<'_, L>) -> (f64, f64) {
        let (growth, min_pivot) = bt_simd::dispatch(Measure { front });
        // The quick test for numbers that are not finite also fails where a sum of large ones overflows.
        if growth.is_finite() { (growth, min_pivot) } else { Plain::measure(front) }
    }
}

/// Explicit vectors of complex numbers for what they do as a whole, plain loops for the rest.
pub(super) struct Complexes;

impl<T: Wide> Engine<T> for Complexes {
    fn whole(job: &mut Job<'_, T>) -> Option<(Record, Packed)> {
        match of_few_rows(job) {
            Some(record) => Some((record, Packed::No)),
            None => Some((packed::eliminate(job)?, Packed::Yes)),
        }
    }
    fn chains_at_once(k: usize) -> usize {
        usize::from(few_rows::ROWS.contains(&k))
    }
    fn chains(chains: &mut [Chain<'_, T>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        few_rows::eliminate_chains(chains, go_on)
    }
    fn load(front: &mut Front<'_, T>, from: &Dense<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        Plain::load(front, from, incoming, outgoing)
    }
    fn norms(front: &Front<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64) {
        Plain::norms(front, incoming, outgoing)
    }
    fn subtract(front: &mut Front<'_, T>, done: &Done<'_, T>) {
        Plain::subtract(front, done);
    }
    fn eliminate(front: &mut Front<'_, T>) -> Option<usize> {
        Plain::eliminate(front)
    }
    fn measure(front: &Front<'_, T>) -> (f64, f64) {
        Plain::measure(front)
    }
}

struct Load<'f, 'a, 'd, L> {
    front: &'f mut Front<'a, L>,
    from: &'f Dense<'d, L>,
    incoming: &'f [&'f [f64]],
    outgoing: &'f mut [f64],
}

impl<L: Lanes> pulp::WithSimd for Load<'_, '_, '_, L> {
    type Output = (f64, f64);
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> (f64, f64) {
        let Self { front, from, incoming, outgoing } = self;
        let (k, next) = (front.k, front.next);
        let mut max = L::splat(s, L::default());
        let mut norm = 0.0f64;
        for (c, column) in front.panel.chunks_exact_mut(k + next).enumerate() {
            let (own, below) = column.split_at_mut(k);
            let mut sum = simd::copy_sum_and_max(s, &from.own[c * k..(c + 1) * k], own, &mut max).to_f64();
            sum += simd::copy_sum_and_max(s, &from.below[c * next..(c + 1) * next], below, &mut max).to_f64();
            for sums in incoming {
                sum += sums[c];
            }
            norm = norm.max_nan(sum);
        }
        for (c, sum) in outgoing.iter_mut().enumerate() {
            let part = c * k..(c + 1) * k;
            *sum = simd::copy_sum_and_max(s, &from.beside[part.clone()], &mut front.g[part], &mut max).to_f64();
            // NaN from NaN and infinity, else 0
            norm += *sum * 0.0;
        }
        (L::largest(s, max).to_f64(), norm)
    }
}

struct Norms<'f, 'a, L> {
    front: &'f Front<'a, L>,
    incoming: &'f [&'f [f64]],
    outgoing: &'f mut [f64],
}

impl<L: Lanes> pulp::WithSimd for Norms<'_, '_, L> {
    type Output = (f64, f64);
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> (f64, f64) {
        let Self { front, incoming, outgoing } = self;
        let (k, ld) = (front.k, front.k + front.next);
        let mut max = L::splat(s, L::default());
        let mut norm = 0.0f64;
        for (c, column) in front.panel.chunks_exact(ld).enumerate() {
            let mut sum = simd::sum_and_max(s, column, &mut max).to_f64();
            for sums in incoming {
                sum += sums[c];
            }
            norm = norm.max_nan(sum);
        }
        for (column, sum) in front.g.chunks_exact(k).zip(outgoing) {
            *sum = simd::sum_and_max(s, column, &mut max).to_f64();
            norm += *sum * 0.0;
        }
        (L::largest(s, max).to_f64(), norm)
    }
}

struct Subtract<'f, 'a, 'd, L> {
    front: &'f mut Front<'a, L>,
    done: &'f Done<'d, L>,
}

impl<L: Lanes> pulp::WithSimd for Subtract<'_, '_, '_, L> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) {
        let Self { front, done } = self;
        let (k, last) = (done.k, done.last);
        let ld = front.k + front.next;
        let (l, ldl, x, depth) = (&done.panel[last..], last + k, done.g, last);
        let update = simd::Update { y: front.panel, ldy: ld, rows: k, width: k, l, ldl, x, ldx: last, depth };
        lines::apart(s, update);
    }
}

struct Measure<'f, 'a, L> {
    front: &'f Front<'a, L>,
}

impl<L: Lanes> pulp::WithSimd for Measure<'_, '_, L> {
    type Output = (f64, f64);
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> (f64, f64) {
        let front = self.front;
        let (k, ld) = (front.k, front.k + front.next);
        let zero = L::splat(s, L::default());
        let (mut u, mut h, mut g, mut total) = (zero, zero, zero, zero);
        let mut min_pivot = L::INFINITY;
        for (c, column) in front.panel.chunks_exact(ld).enumerate() {
            simd::max_and_total(s, &column[..=c], &mut u, &mut total);
            simd::max_and_total(s, &column[k..], &mut h, &mut total);
            min_pivot = min_pivot.min_nan(Scalar::abs(column[c]));
        }
        simd::max_and_total(s, front.g, &mut g, &mut total);
        let [u, h, g] = [u, h, g].map(|v| L::largest(s, v).to_f64());
        let total = L::total(s, total).to_f64();
        (if total.is_finite() { u.max(h * g) } else { f64::NAN }, min_pivot.to_f64())
    }
}

struct Eliminate<'f, 'a, L> {
    front: &'f mut Front<'a, L>,
}

impl<L: Lanes> pulp::WithSimd for Eliminate<'_, '_, L> {
    type Output = Option<usize>;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> Option<usize> {
        let Front { k, next, panel, g, pivots } = self.front;
        let (k, ld) = (*k, *k + *next);
        let mut first = 0;
        while first < k {
            let end = (first + TILE).min(k);
            if let Some(row) = eliminate_columns(s, panel, k, ld, first, end, pivots) {
                return Some(row);
            }
            let pivots = &pivots[first..end];
            let ordered = in_order(first, pivots);
            let (left, rest) = panel.split_at_mut(first * ld);
            if !ordered {
                // The exchanges in the columns to the left; those to the right take them with their update.
                for column in left.chunks_exact_mut(ld) {
                    exchange(column, first, pivots);
                }
            }
            let (tile, right) = rest.split_at_mut((end - first) * ld);
            if !ordered {
                for column in right.chunks_exact_mut(ld).chain(g.chunks_exact_mut(k)) {
                    exchange(column, first, pivots);
                }
            }
            for (right, rows) in [(right, ld), (&mut **g, k)] {
                update_right(s, tile, first, end, ld, right, rows, rows);
            }
            first = end;
        }
        None
    }
}

/// Columns `first..end`, one after the other, below row `first`.
///
/// All vectors begin at multiples of their length from the head of a column, and places that do not take part are masked:
/// a vector that is loaded then covers exactly one that was stored, which processors pass on without a stall.
#[inline(always)]
fn eliminate_columns<L: Lanes, S: Simd>(
    s: S,
    panel: &mut [L],
    k: usize,
    ld: usize,
    first: usize,
    end: usize,
    pivots: &mut [u32],
) -> Option<usize> {
    let tiny = L::MIN_POSITIVE * L::from_f64(16.0);
    let huge = L::from_f64(1.0) / tiny;
    for c in first..end {
        let (before, rest) = panel.split_at_mut(c * ld);
        let (column, rest) = rest.split_at_mut(ld);
        let p = c + index_of_max(s, column, c, k);
        pivots[c] = p as u32;
        let rest = &mut rest[..(end - c - 1) * ld];
        if p != c {
            column.swap(c, p);
            for other in rest.chunks_exact_mut(ld).chain(before[first * ld..].chunks_exact_mut(ld)) {
                other.swap(c, p);
            }
        }
        let pivot = column[c];
        if !usable(pivot) {
            return Some(c);
        }
        let size = Scalar::abs(pivot);
        // The reciprocal of a pivot in this range is normal: as accurate as divisions.
        if size >= tiny && size <= huge {
            scale(s, L::from_f64(1.0) / pivot, column, c + 1);
        } else {
            let pivot = Pivot::new(pivot);
            column[c + 1..].iter_mut().for_each(|v| *v = pivot.divide(*v));
        }
        for other in rest.chunks_exact_mut(ld) {
            axpy_minus(s, other[c], column, other, c + 1);
        }
    }
    None
}

/// Index of the first element of largest modulus among `column[c..k]`, from c on; NaN counts as none.
#[inline(always)]
fn index_of_max<L: Lanes, S: Simd>(s: S, column: &[L], c: usize, k: usize) -> usize {
    let lanes = L::lanes::<S>();
    let mut max = L::splat(s, L::default());
    let mut start = c - c % lanes;
    while start < k {
        let mut v = load(s, &column[start..]);
        if start < c {
            v = L::times(s, v, L::load(&L::FROM.0[c - start]));
        }
        if start + lanes > k {
            v = L::times(s, v, L::load(&L::BEFORE.0[k - start]));
        }
        max = L::max_modulus(s, max, v);
        start += lanes;
    }
    let largest = L::largest(s, max);
    // Mostly the first: a branch that is predicted keeps the search off the path to the next column.
    column[c..k].iter().position(|v| Scalar::abs(*v) >= largest).unwrap_or(0)
}

/// x ← a·x for `column[r..]`.
#[inline(always)]
fn scale<L: Lanes, S: Simd>(s: S, a: L, column: &mut [L], r: usize) {
    let lanes = L::lanes::<S>();
    let mut start = r - r % lanes;
    while start < column.len() {
        let factor = if start < r {
            // a where the mask is one, otherwise 1, both exactly
            let (from, before) = (L::load(&L::FROM.0[r - start]), L::load(&L::BEFORE.0[r - start]));
            L::minus_product(s, L::splat(s, -a), from, before)
        } else {
            L::splat(s, a)
        };
        let v = L::times(s, factor, load(s, &column[start..]));
        store(s, &mut column[start..], v);
        start += lanes;
    }
}

/// y ← y − a·x in the rows from `r` on.
#[inline(always)]
fn axpy_minus<L: Lanes, S: Simd>(s: S, a: L, x: &[L], y: &mut [L], r: usize) {
    let lanes = L::lanes::<S>();
    let a = L::splat(s, a);
    let mut start = r - r % lanes;
    while start < y.len() {
        let mut v = load(s, &x[start..]);
        if start < r {
            v = L::times(s, v, L::load(&L::FROM.0[r - start]));
        }
        let sum = L::minus_product(s, a, v, load(s, &y[start..]));
        store(s, &mut y[start..], sum);
        start += lanes;
    }
}

/// A vector, or what there is of it.
#[inline(always)]
fn load<L: Lanes, S: Simd>(s: S, x: &[L]) -> L::V<S> {
    if x.len() >= L::lanes::<S>() { L::load(x) } else { L::load_part(s, x) }
}

#[inline(always)]
fn store<L: Lanes, S: Simd>(s: S, x: &mut [L], v: L::V<S>) {
    if x.len() >= L::lanes::<S>() {
        L::store(x, v);
    } else {
        L::store_part(s, x, v);
    }
}

/// The columns of `right`, `ldr` apart with `rows` rows: triangular solve in the rows of the tile, product below them.
#[inline(always)]
fn update_right<L: Lanes, S: Simd>(
    s: S,
    tile: &[L],
    first: usize,
    end: usize,
    ld: usize,
    right: &mut [L],
    ldr: usize,
    rows: usize,
) {
    let depth = end - first;
    // The columns of L̃ strictly below the diagonal of the tile, filled up with zeros.
    let mut l = Aligned([[L::default(); PADDED]; TILE]);
    for d in 0..depth {
        l.0[d][d + 1..depth].copy_from_slice(&tile[d * ld + first + d + 1..d * ld + end]);
    }
    let mut x = Aligned([[L::default(); PADDED]; TILE]);
    let (l, x) = (&l.0, &mut x.0);
    for group in right.chunks_mut(TILE * ldr) {
        let width = group.len() / ldr;
        for (x, column) in x.iter_mut().zip(group.chunks_exact(ldr)) {
            x[..depth].copy_from_slice(&column[first..end]);
        }
        // X ← L̃⁻¹·X in the rows of the tile, all columns side by side
        if L::lanes::<S>() >= TILE {
            // A column is one vector: it stays in a register and is stored only to pick the next number from.
            let mut vectors: [L::V<S>; TILE] = std::array::from_fn(|i| L::load(&x[i]));
            for d in 0..depth - 1 {
                let l = L::load(&l[d]);
                for i in 0..TILE {
                    vectors[i] = L::minus_product(s, l, L::splat(s, x[i][d]), vectors[i]);
                    L::store(&mut x[i], vectors[i]);
                }
            }
        } else {
            for d in 0..depth - 1 {
                for x in x.iter_mut() {
                    let above = L::splat(s, x[d]);
                    let vectors = TILE.div_ceil(L::lanes::<S>());
                    let columns = x.chunks_exact_mut(L::lanes::<S>()).zip(l[d].chunks_exact(L::lanes::<S>()));
                    for (x, l) in columns.take(vectors) {
                        L::store(x, L::minus_product(s, L::load(l), above, L::load(x)));
                    }
                }
            }
        }
        for (x, column) in x.iter().zip(group.chunks_exact_mut(ldr)) {
            column[first..end].copy_from_slice(&x[..depth]);
        }
        if end < rows {
            let x = x.as_flattened();
            let (y, l, ldx) = (&mut group[end..], &tile[end..], PADDED);
            lines::apart(s, simd::Update { y, ldy: ldr, rows: rows - end, width, l, ldl: ld, x, ldx, depth });
        }
    }
}
