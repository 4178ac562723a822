//! Blocks of up to eight rows of doubles in eight lanes (AVX-512, or pairs of registers of AVX2): a block, its couplings and the
//! factors of the one before it in registers.
//!
//! A register holds a column, or those of two blocks of up to four rows, one from either side of the middle, which go through the same
//! steps side by side. Rows of A(t, j) below D̃ take part in the elimination as rows without pivots,
//! columns of A(j, t) beside it as columns without:
//!
//! ```text
//! ⎡ D̃ⱼ       A(j, t) ⎤      ⎡ L̃ⱼ\Ũⱼ  Gⱼ ⎤
//! ⎣ A(t, j)          ⎦  →   ⎣ Hⱼ        ⎦
//! ```
//!
//! As in `tiles.rs`, whatever is out of the ordinary ends the kernel with nothing done that counts.

use bt_simd::{Eight, LANES};
use pulp::bytemuck::cast;

use super::job::{Chain, Job, Record};

/// Steps between two questions whether to go on.
const CHECKED: usize = 32;

/// Steps that memory is asked for ahead.
const AHEAD: usize = 4;

/// Eliminates a block of two to eight rows, as a chain of its own. None for other sizes, without AVX2, and when something is out of the ordinary.
pub(super) fn eliminate(job: &mut Job<'_, f64>) -> Option<Record> {
    if job.front.k < 2 {
        return None;
    }
    job.as_chain::<LANES, { 2 * LANES * LANES }>(|chains| eliminate_chains(chains, &mut |_| true))
}

/// See [`Engine::chains_at_once`](super::job::Engine::chains_at_once).
pub(super) fn chains_at_once(k: usize) -> usize {
    match k {
        2..=4 if bt_simd::avx2().is_some() => 2,
        5..=8 if bt_simd::avx2().is_some() => 1,
        _ => 0,
    }
}

/// See [`Engine::chains`](super::job::Engine::chains).
pub(super) fn eliminate_chains(chains: &mut [Chain<'_, f64>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
    if let Some(simd) = bt_simd::avx512() {
        eliminate_all(simd, chains, go_on)
    } else if let Some(simd) = bt_simd::avx2() {
        eliminate_all(simd, chains, go_on)
    } else {
        0
    }
}

#[inline(never)]
fn eliminate_all<E: Eight>(simd: E, chains: &mut [Chain<'_, f64>], go_on: &mut dyn FnMut(usize) -> bool) -> usize {
    match chains[0].k {
        2 => simd.vectorize(SideBySide::<E, 2> { simd, chains, go_on }),
        3 => simd.vectorize(SideBySide::<E, 3> { simd, chains, go_on }),
        4 => simd.vectorize(SideBySide::<E, 4> { simd, chains, go_on }),
        5 => simd.vectorize(InTurn::<E, 5> { simd, chains, go_on }),
        6 => simd.vectorize(InTurn::<E, 6> { simd, chains, go_on }),
        7 => simd.vectorize(InTurn::<E, 7> { simd, chains, go_on }),
        8 => simd.vectorize(InTurn::<E, 8> { simd, chains, go_on }),
        _ => 0,
    }
}

/// A block for each number below K, which is a constant in it: a register cannot be chosen at run time.
macro_rules! each {
    ($i:ident < $k:ident $body:block) => { each!($i < $k $body 0 1 2 3 4 5 6 7) };
    ($i:ident < $k:ident $body:block $($n:literal)*) => {$({
        const $i: usize = $n;
        if $i < $k $body
    })*};
}

/// Number I of each column in all its lanes.
macro_rules! splat {
    ($simd:ident, $k:ident, $v:expr, $i:ident) => {
        if $k <= 4 { $simd.spread_in_halves::<{ $i & 3 }>($v) } else { $simd.permute($v, $simd.splat_bits($i as u64)) }
    };
}

/// `SWAPS[i][p]`: the lanes' numbers with i and p exchanged.
static SWAPS: [[[u64; LANES]; LANES]; LANES] = {
    let mut swaps = [[[0, 1, 2, 3, 4, 5, 6, 7]; LANES]; LANES];
    let mut at = 0;
    while at < LANES * LANES {
        let (i, p) = (at / LANES, at % LANES);
        (swaps[i][p][i], swaps[i][p][p]) = (p as u64, i as u64);
        at += 1;
    }
    swaps
};

/// Column `c` of both blocks of up to four rows, or of one of another size, with zeros below it.
#[inline(always)]
fn column<E: Eight, const K: usize>(_: E, x: [&[f64]; 2], c: usize) -> E::V {
    if K == LANES {
        return cast(x[0].as_chunks::<LANES>().0[c]);
    }
    let mut lanes = [0.0; LANES];
    if K > 4 {
        lanes[..K].copy_from_slice(&x[0][c * K..(c + 1) * K]);
    } else {
        lanes[..4].copy_from_slice(&half_column::<K>(x[0], c));
        lanes[4..].copy_from_slice(&half_column::<K>(x[1], c));
    }
    cast(lanes)
}

/// Column `c` of one block of up to four rows.
#[inline(always)]
fn half_column<const K: usize>(x: &[f64], c: usize) -> [f64; 4] {
    let x = x.as_chunks::<K>().0[c];
    match K {
        2 => [x[0], x[1], 0.0, 0.0],
        3 => [x[0], x[1], x[K - 1], 0.0],
        _ => [x[0], x[1], x[K - 2], x[K - 1]],
    }
}

/// K numbers of one of the two blocks.
#[inline(always)]
fn part<E: Eight, const K: usize>(v: E::V, half: usize) -> [f64; K] {
    let v: [f64; LANES] = cast(v);
    let mut some = [0.0; K];
    for i in 0..K {
        some[i] = v[(half * 4 + i) % LANES];
    }
    some
}

/// The first halves of two registers, or the second ones.
#[inline(always)]
fn halves<E: Eight>(simd: E, half: usize, a: E::V, b: E::V) -> [f64; LANES] {
    cast(if half == 0 { simd.first_halves(a, b) } else { simd.second_halves(a, b) })
}

/// The larger bits; by those infinity is larger than all numbers and NaN than infinity.
#[inline(always)]
fn max_bits<E: Eight>(simd: E, a: E::V, b: E::V) -> E::V {
    cast(simd.max_bits(cast(a), cast(b)))
}

/// max(a, |b|) by bits
#[inline(always)]
fn larger<E: Eight>(simd: E, a: E::V, b: E::V) -> E::V {
    max_bits(simd, a, simd.abs(b))
}

/// Lane i of each half: `op` over that half of register i.
#[inline(always)]
fn fold<E: Eight>(simd: E, v: [E::V; 4], op: impl Fn(E, E::V, E::V) -> E::V) -> E::V {
    let a = op(simd, simd.firsts_of_pairs(v[0], v[1]), simd.seconds_of_pairs(v[0], v[1]));
    let b = op(simd, simd.firsts_of_pairs(v[2], v[3]), simd.seconds_of_pairs(v[2], v[3]));
    op(simd, simd.first_pairs(a, b), simd.second_pairs(a, b))
}

/// Sums of K columns, column by column.
#[inline(always)]
fn totals<E: Eight, const K: usize>(simd: E, v: [E::V; K]) -> E::V {
    let mut all = [simd.splat(0.0); LANES];
    each!(C < K { all[C] = v[C]; });
    let low = fold(simd, [all[0], all[1], all[2], all[3]], E::add);
    if K <= 4 {
        return low;
    }
    let high = fold(simd, [all[4], all[5], all[6], all[7]], E::add);
    simd.add(simd.first_halves(low, high), simd.second_halves(low, high))
}

/// The halves in turn.
#[inline(always)]
fn swap_halves<E: Eight>(simd: E, v: E::V) -> E::V {
    simd.first_halves(simd.second_halves(v, v), v)
}

/// The largest bits in four registers, for each block.
#[inline(always)]
fn maxima<E: Eight, const K: usize>(simd: E, v: [E::V; 4]) -> [[f64; 4]; 2] {
    let mut all = fold(simd, v, max_bits);
    if K > 4 {
        all = max_bits(simd, all, swap_halves(simd, all));
    }
    cast(cast::<_, [f64; LANES]>(all))
}

/// Largest number of each column in all its lanes.
#[inline(always)]
fn largest<E: Eight, const K: usize>(simd: E, v: E::V) -> E::V {
    let v = simd.max(v, simd.swap_in_pairs(v));
    let v = simd.max(v, simd.swap_pairs(v));
    if K <= 4 { v } else { simd.max(v, swap_halves(simd, v)) }
}

/// Columns of D̃, A(t, j) and A(j, t), which become L̃\Ũ, H and G.
#[derive(Clone, Copy)]
struct Columns<E: Eight, const K: usize> {
    d: [E::V; K],
    h: [E::V; K],
    g: [E::V; K],
}

/// What else there is of blocks that have been eliminated.
struct Eliminated<E: Eight, const K: usize> {
    /// Sums of columns, see [`Job`].
    outgoing: E::V,
    pivots: [[u32; K]; 2],
    records: [Record; 2],
}

impl<E: Eight, const K: usize> Columns<E, K> {
    #[inline(always)]
    fn load(simd: E, own: [&[f64]; 2], below: [&[f64]; 2], beside: [&[f64]; 2]) -> Self {
        let zero = simd.splat(0.0);
        let mut out = Self { d: [zero; K], h: [zero; K], g: [zero; K] };
        each!(C < K {
            out.d[C] = column::<E, K>(simd, own, C);
            out.h[C] = column::<E, K>(simd, below, C);
            out.g[C] = column::<E, K>(simd, beside, C);
        });
        out
    }

    /// H and G of the blocks before; zeros where there are none.
    #[inline(always)]
    fn stored(simd: E, panel: [&[f64]; 2], g: [&[f64]; 2]) -> Self {
        let zero = simd.splat(0.0);
        let mut out = Self { d: [zero; K], h: [zero; K], g: [zero; K] };
        each!(C < K {
            out.h[C] = column::<E, K>(simd, panel, 2 * C + 1);
            out.g[C] = column::<E, K>(simd, g, C);
        });
        out
    }

    /// One of the two blocks.
    #[inline(always)]
    fn store(&self, simd: E, half: usize, panel: &mut [f64], beside: &mut [f64]) {
        let Self { d, h, g } = self;
        if K == 4 {
            let panel = panel[..2 * K * K].as_chunks_mut::<LANES>().0;
            let beside = beside[..K * K].as_chunks_mut::<LANES>().0;
            each!(C < K { panel[C] = halves(simd, half, d[C], h[C]); });
            beside[0] = halves(simd, half, g[0], g[1]);
            beside[1] = halves(simd, half, g[2], g[3]);
        } else {
            let panel = panel[..2 * K * K].as_chunks_mut::<K>().0;
            let beside = beside[..K * K].as_chunks_mut::<K>().0;
            if K < 4 {
                each!(C < K {
                    panel[2 * C] = part::<E, K>(d[C], half);
                    panel[2 * C + 1] = part::<E, K>(h[C], half);
                    beside[C] = part::<E, K>(g[C], half);
                });
                return;
            }
            each!(C < K {
                panel[2 * C] = part::<E, K>(d[C], 0);
                panel[2 * C + 1] = part::<E, K>(h[C], 0);
                beside[C] = part::<E, K>(g[C], 0);
            });
        }
    }

    /// All steps, with H₋ and G₋ of the blocks before, whose G₋ is also at `g_last`. None when something is out of the ordinary.
    #[inline(always)]
    #[allow(clippy::absurd_extreme_comparisons)] // constants are compared, zero among them
    fn eliminate(&mut self, simd: E, last: &Self, g_last: &[f64], incoming: E::V) -> Option<Eliminated<E, K>> {
        let (zero, ones) = (simd.splat(0.0), simd.splat(1.0));
        let Self { d, h, g } = self;
        let [mut sums, mut outgoing] = [[zero; K]; 2];
        let [mut max_a, mut max_u, mut max_h, mut max_g] = [zero; 4];
        each!(C < K {
            max_a = larger(simd, larger(simd, larger(simd, max_a, d[C]), h[C]), g[C]);
            sums[C] = simd.add(simd.abs(d[C]), simd.abs(h[C]));
            outgoing[C] = simd.abs(g[C]);
        });
        let norms = simd.add(totals(simd, sums), incoming);
        let outgoing = totals(simd, outgoing);

        // D̃ ← D − H₋·G₋, with G₋ from memory where one number of it is needed: permutations are dearer
        each!(Q < K {
            each!(C < K {
                let x = if K <= 4 { splat!(simd, K, last.g[C], Q) } else { simd.splat(g_last[C * K + Q]) };
                d[C] = simd.minus_mul(d[C], last.h[Q], x);
            });
        });

        let mut sizes_of_pivots = simd.splat(f64::INFINITY);
        let mut pivots = [[0; K]; 2];
        // Lanes of row i of the blocks.
        let row = |i: usize| if K <= 4 { 0x11u8 << i } else { 1 << i };
        let from_row = |i: usize| match K {
            ..=4 => (0x0f << i & (0x0f >> (4 - K))) * 0x11,
            _ => 0xff << i & (0xff >> (LANES - K)),
        };
        each!(I < K {
            // the pivot, mostly where it should be
            let sizes = simd.abs(d[I]);
            let largest = largest::<E, K>(simd, simd.select(simd.mask(from_row(I)), sizes, zero));
            let reached = simd.bits(simd.at_least(sizes, largest)) & from_row(I);
            pivots[0][I] = I as u32;
            pivots[1][I] = I as u32;
            if reached & row(I) != row(I) {
                let first = |mask: u8| (mask != 0).then(|| mask.trailing_zeros() as usize);
                let swap: E::I = if K <= 4 {
                    let (p, q) = (first(reached & 0x0f)?, first(reached & 0xf0)?);
                    (pivots[0][I], pivots[1][I]) = (p as u32, q as u32 - 4);
                    simd.select_bits(simd.mask(0xf0), cast(SWAPS[(I + 4) % LANES][q]), cast(SWAPS[I][p]))
                } else {
                    let p = first(reached)?;
                    pivots[0][I] = p as u32;
                    cast(SWAPS[I][p])
                };
                each!(J < K {
                    d[J] = simd.permute(d[J], swap);
                    g[J] = simd.permute(g[J], swap);
                });
            }
            let reciprocal = simd.div(ones, splat!(simd, K, d[I], I));
            let after = from_row(I) & !row(I);
            let l = simd.select(simd.mask(after), simd.mul(d[I], reciprocal), zero);
            let u = simd.select(simd.mask(after), zero, d[I]);
            max_u = larger(simd, max_u, u);
            sizes_of_pivots = simd.select(simd.mask(row(I)), simd.abs(u), sizes_of_pivots);
            d[I] = simd.select(simd.mask(after), l, u);
            h[I] = simd.mul(h[I], reciprocal);
            max_h = larger(simd, max_h, h[I]);
            each!(J < K {
                if J > I {
                    let x = splat!(simd, K, d[J], I);
                    d[J] = simd.minus_mul(d[J], l, x);
                    h[J] = simd.minus_mul(h[J], h[I], x);
                }
                if I + 1 < K {
                    g[J] = simd.minus_mul(g[J], l, splat!(simd, K, g[J], I));
                }
            });
        });
        each!(C < K { max_g = larger(simd, max_g, g[C]); });

        // The smallest pivot has the largest complement.
        let complements: E::V = cast(simd.and_not(cast(sizes_of_pivots), simd.splat_bits(u64::MAX >> 1)));
        let sizes = maxima::<E, K>(simd, [max_a, max_u, max_h, max_g]);
        let others = maxima::<E, K>(simd, [norms, complements, norms, complements]);
        let tiny = f64::MIN_POSITIVE * 16.0;
        let mut records = [Record::EMPTY; 2];
        for (i, record) in records.iter_mut().enumerate() {
            let [max_a, u, h, g] = sizes[i];
            let (norm_one, min_pivot) = (others[i][0], f64::from_bits(!others[i][1].to_bits() & (u64::MAX >> 1)));
            let growth = u.max(h * g);
            // As accurate as divisions are reciprocals of pivots in this range. (A NaN fails, too.)
            let normal = min_pivot >= tiny && u <= 1.0 / tiny;
            if !(normal && max_a.is_finite() && norm_one.is_finite() && growth.is_finite()) || h.is_nan() || g.is_nan()
            {
                return None;
            }
            *record = Record { max_a, norm_one, growth, min_pivot };
        }

        Some(Eliminated { outgoing, pivots, records })
    }
}

/// In the place of factors where there are none.
static NOTHING: [f64; 2 * LANES * LANES] = [0.0; 2 * LANES * LANES];

/// The panel and G of a block that has been eliminated.
fn stored<'a, const K: usize>(last: Option<(&'a [f64], &'a [f64])>) -> (&'a [f64], &'a [f64]) {
    let (panel, g) = last.unwrap_or((&NOTHING, &NOTHING));
    (&panel[..2 * K * K], &g[..K * K])
}

/// Blocks of up to four rows; the only chain there is goes through both halves of the registers.
struct SideBySide<'k, 'c, E, const K: usize> {
    simd: E,
    chains: &'k mut [Chain<'c, f64>],
    go_on: &'k mut dyn FnMut(usize) -> bool,
}

impl<E: Eight, const K: usize> pulp::NullaryFnOnce for SideBySide<'_, '_, E, K> {
    type Output = usize;

    /// The blocks before stay in registers.
    #[inline(always)]
    fn call(self) -> usize {
        let Self { simd, chains, go_on } = self;
        let (width, other) = (chains.len(), chains.len() - 1);
        let steps = chains[0].blocks.min(chains[other].blocks);
        let [(panel, g), (other_panel, other_g)] = [stored::<K>(chains[0].last(0)), stored::<K>(chains[other].last(0))];
        let mut last = Columns::<E, K>::stored(simd, [panel, other_panel], [g, other_g]);
        let mut incoming = column::<E, K>(simd, [&*chains[0].incoming, &*chains[other].incoming], 0);
        let mut step = 0;
        while step < steps && (!step.is_multiple_of(CHECKED) || go_on(width * CHECKED.min(steps - step))) {
            for chain in &*chains {
                chain.fetch(step + AHEAD);
            }
            let [a, b] = [chains[0].block(step), chains[other].block(step)];
            let mut columns = Columns::<E, K>::load(simd, [a.own, b.own], [a.below, b.below], [a.beside, b.beside]);
            let Some(done) = columns.eliminate(simd, &last, &[], incoming) else { break };
            for (half, chain) in chains.iter_mut().enumerate() {
                let (panel, g, pivots, record) = chain.factors(step);
                columns.store(simd, half, panel, g);
                pivots[..K].copy_from_slice(&done.pivots[half]);
                *record = done.records[half];
            }
            (last, incoming) = (columns, done.outgoing);
            step += 1;
        }
        for (half, chain) in chains.iter_mut().enumerate() {
            chain.incoming[..K].copy_from_slice(&part::<E, K>(incoming, half));
        }
        step
    }
}

/// Blocks of five to eight rows.
struct InTurn<'k, 'c, E, const K: usize> {
    simd: E,
    chains: &'k mut [Chain<'c, f64>],
    go_on: &'k mut dyn FnMut(usize) -> bool,
}

impl<E: Eight, const K: usize> pulp::NullaryFnOnce for InTurn<'_, '_, E, K> {
    type Output = usize;

    /// A block of either chain in turn: while one waits for its pivots, the processor goes on with the other.
    #[inline(always)]
    fn call(self) -> usize {
        let Self { simd, chains, go_on } = self;
        let (width, steps) = (chains.len(), chains.iter().map(|chain| chain.blocks).min().unwrap_or(0));
        let mut step = 0;
        while step < steps && (!step.is_multiple_of(CHECKED) || go_on(width * CHECKED.min(steps - step))) {
            let before: [f64; K] = std::array::from_fn(|i| chains[0].incoming[i]);
            for at in 0..width {
                let chain = &mut chains[at];
                chain.fetch(step + 1);
                let (block, (panel, g)) = (chain.block(step), stored::<K>(chain.last(step)));
                let mut columns = Columns::<E, K>::load(simd, [block.own; 2], [block.below; 2], [block.beside; 2]);
                let last = Columns::stored(simd, [panel; 2], [g; 2]);
                let incoming = column::<E, K>(simd, [&*chain.incoming; 2], 0);
                let Some(done) = columns.eliminate(simd, &last, g, incoming) else {
                    // The first chain goes back to where the second one is.
                    chains[0].incoming[..K].copy_from_slice(&before);
                    return step;
                };
                let (panel, g, pivots, record) = chain.factors(step);
                columns.store(simd, 0, panel, g);
                pivots[..K].copy_from_slice(&done.pivots[0]);
                *record = done.records[0];
                chain.incoming[..K].copy_from_slice(&part::<E, K>(done.outgoing, 0));
            }
            step += 1;
        }
        step
    }
}
