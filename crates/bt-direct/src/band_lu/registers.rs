//! Narrow bands of doubles on AVX-512 whose window stays in registers, kl ≤ 8 and kl + ku ≤ 16: a register a column, a lane a row.
//!
//! Lanes are used as in `narrow.rs`, so that the factors have the same bits. The columns at work are staged in the first-level
//! cache, in LAPACK's layout with room between them: a row enters by broadcasts from there, rows of U go there one number a
//! column, and whole columns leave. What limits a step is the chain from one pivot to the next: the search within a register and two
//! products, all candidates being inverted meanwhile.

use std::arch::x86_64::{__m512d, __m512i};
use std::ops::Range;

use bt_formats::prefetch;
use pulp::Simd;
use pulp::bytemuck::cast;
use pulp::x86::V4;

use super::Tuning;
use super::avx512::{Order, larger, part};
use super::end::{Direction, End, Shape};
use super::kernels::{LANES, copy};

/// Columns that leave the stage at a time, and those behind them that they reach, at most.
const STRIP: usize = 32;
const BEHIND: usize = 16;

/// Columns of the factors, S numbers apart.
#[repr(align(64))]
struct Stage<const S: usize>([[f64; S]; STRIP + BEHIND + 2]);

/// Eliminates columns from the first on and returns the first one that it does not: all are done, there are no such registers, the
/// window is too large, a value is not finite, or a pivot is zero or has no reciprocal.
pub(super) fn eliminate(end: &mut End<f64>, source: Option<&[f64]>, columns: Range<usize>) -> usize {
    let (kl, kv) = (end.shape.kl, end.shape.kv());
    let (Tuning::Narrow { registers: 1, .. }, Some(simd)) = (end.tuning, V4::try_new()) else { return columns.start };
    match kv {
        _ if kl == 0 || columns.is_empty() => columns.start,
        ..=7 => by_strips::<7, 16>(simd, end, source, columns),
        8..=16 => by_strips::<16, 32>(simd, end, source, columns),
        _ => columns.start,
    }
}

/// A window of C columns, S > C + 8 numbers a column of the stage. Functions of their own for each part: they need the registers.
fn by_strips<const C: usize, const S: usize>(
    simd: V4,
    end: &mut End<f64>,
    source: Option<&[f64]>,
    columns: Range<usize>,
) -> usize {
    let Range { start: mut first, end: last } = columns;
    let Shape { ku, cols, ncols, .. } = end.shape;
    let kv = end.shape.kv();
    let mut stage = Stage([[0.0; S]; STRIP + BEHIND + 2]);
    if !simd.vectorize(Fill { simd, end, source, stage: &mut stage.0, columns: first..first + kv }) {
        return first;
    }
    end.restore(&mut stage.0, first);
    if first == 0 {
        // Whichever row is the first, it goes as far as the band above the diagonal.
        end.found.reach = ku.min(ncols);
        end.tops[..end.found.reach].fill(0);
    }
    let mut order = Order::load(end, first);
    loop {
        let goal = last.min(first + STRIP);
        let mut done = first;
        if simd.vectorize(Fill { simd, end, source, stage: &mut stage.0[kv..], columns: first + kv..goal + kv }) {
            let stage = stage.0.as_flattened_mut();
            done = simd.vectorize(Steps::<C, S> { simd, end, source, stage, order: &mut order, columns: first..goal });
        }
        let (complete, reached) = stage.0.split_at(done - first);
        simd.vectorize(Empty { simd, end, stage: complete, first, done });
        if done < goal || done == last {
            simd.vectorize(Empty { simd, end, stage: &reached[..kv], first: done, done });
            order.store(end, done);
            // Columns noted too early, left over when all steps are done.
            let reach = end.found.reach;
            let noted = reach.max(cols)..(reach + NOTED).min(ncols);
            if noted.start < noted.end {
                end.tops[noted].fill(cols as u32);
            }
            return done;
        }
        stage.0.copy_within(STRIP..STRIP + kv, 0);
        first = done;
    }
}

/// The columns of a strip up to one without a pivot, which is returned, or the last; the stage begins with the first.
struct Steps<'a, const C: usize, const S: usize> {
    simd: V4,
    end: &'a mut End<f64>,
    source: Option<&'a [f64]>,
    stage: &'a mut [f64],
    order: &'a mut Order<1>,
    columns: Range<usize>,
}

impl<const C: usize, const S: usize> pulp::NullaryFnOnce for Steps<'_, C, S> {
    type Output = usize;
    #[inline(always)]
    fn call(self) -> usize {
        let Self { simd, end, source, stage, order, columns: Range { start: first, end: last } } = self;
        let f = simd.avx512f;
        let shape @ Shape { kl, ku, rows, ncols, .. } = end.shape;
        let (kv, ld) = (shape.kv(), shape.ld());
        let mut w = [f._mm512_setzero_pd(); C];
        for c in 0..C {
            // Behind kl + ku columns there are none, or zeros.
            w[c] = end.window.get(c).map_or(w[c], |column| cast(column.0));
        }
        let a = source.unwrap_or_default();
        let mut smallest = f._mm512_set1_pd(f64::INFINITY);
        let (mut flops, mut reach) = (0, end.found.reach);
        let (pivots, tops) = (&mut end.pivots[first..last], &mut end.tops[..]);
        // The row entering with step j in column j + c.
        macro_rules! comes {
            ($j:expr, $c:expr) => {
                f._mm512_set1_pd(stage[($j - first) * S + kv + kl..][..C * (S - 1) + 1][$c * (S - 1)])
            };
        }
        let mut gauss = Gauss::of(simd, w[0], comes!(first, 0));
        let mut j = first;
        while j < last && USABLE.contains(&gauss.best) {
            let Gauss { lane, taken, pivot, l, .. } = gauss;
            let diagonal = (j - first) * S + kv;
            macro_rules! update {
                ($c:expr) => {{
                    let x = comes!(j, $c);
                    let column = if $c < C { w[$c] } else { f._mm512_setzero_pd() };
                    let u = f._mm512_permutex2var_pd(column, lane, x);
                    w[$c - 1] = f._mm512_fnmadd_pd(l, u, f._mm512_mask_blend_pd(taken, column, x));
                    let [u, ..]: [f64; LANES] = cast(u);
                    stage[diagonal..][..C * (S - 1) + 1][$c * (S - 1)] = u;
                }};
            }
            update!(1);
            // The stage has a column behind the last.
            gauss = Gauss::of(simd, w[0], comes!(j + 1, 0));
            for c in 2..=C {
                // Blocks of their own: in one, products are put off until the registers do not hold what they wait for.
                if c > kv {
                    break;
                }
                update!(c);
            }
            smallest = f._mm512_min_pd(smallest, f._mm512_abs_pd(pivot));
            let [p, ..]: [f64; LANES] = cast(pivot);
            let position = j + order.exchange(simd, first_lane(lane) as usize, kl);
            let [l]: [[f64; LANES]; 1] = order.gather(simd, [l]);
            let column = &mut stage[diagonal..][..=LANES];
            column[0] = p;
            column[1..].copy_from_slice(&l);
            pivots[j - first] = position as u32;
            // As many stores in every step: too many columns are noted, later steps note those again.
            let reached = reach.max((position + ku + 1).min(ncols));
            if let Some(noted) = tops[reach..].first_chunk_mut::<NOTED>() {
                *noted = [j as u32; NOTED];
            } else {
                tops[reach..reached].fill(j as u32);
            }
            reach = reached;
            flops += kl.min(rows - 1 - j) * (2 * (reach - j) - 1);
            // What comes with the next strip.
            let next = (j + STRIP) * ld;
            let next_of_a = shape.source_column(j + kv + STRIP);
            for line in 0..S / LANES {
                prefetch(&end.values, next + line * LANES);
                prefetch(a, next_of_a + line * LANES);
            }
            j += 1;
        }
        for c in 0..C {
            if let Some(column) = end.window.get_mut(c) {
                column.0 = cast(w[c]);
            }
        }
        let [smallest, ..]: [f64; LANES] = cast(smallest);
        end.found.min_pivot = end.found.min_pivot.min(smallest);
        end.found.flops += flops as f64;
        end.found.reach = reach;
        j
    }
}

/// Columns that a row reaches behind those that rows before it reached: kl + 1.
const NOTED: usize = LANES + 1;

/// Bits of pivots that have a reciprocal: 2⁻¹⁰²² to 2¹⁰²¹.
const USABLE: Range<u64> = 0x0010_0000_0000_0000..0x7fc0_0000_0000_0000;

/// A column's pivot and multipliers.
#[derive(Clone, Copy)]
struct Gauss {
    /// Bits of the largest candidate but the last six.
    best: u64,
    /// The pivot's lane, 8 for the entering row; and as a mask.
    lane: __m512i,
    taken: u8,
    pivot: __m512d,
    l: __m512d,
}

impl Gauss {
    /// Of a column, `x` in the entering row.
    #[inline(always)]
    fn of(simd: V4, column: __m512d, x: __m512d) -> Self {
        let f = simd.avx512f;
        let one = f._mm512_set1_pd(1.0);
        // Of all candidates, while the search goes on.
        let (reciprocals, of_x) = (f._mm512_div_pd(one, column), f._mm512_div_pd(one, x));
        let modulus = f._mm512_set1_epi64(i64::MAX & !63);
        // The last six bits are replaced by 63 − lane, and the largest is brought into all lanes.
        let key = |v, lanes| f._mm512_or_si512(f._mm512_and_si512(cast(v), modulus), lanes);
        let candidates = key(column, cast([63u64, 62, 61, 60, 59, 58, 57, 56]));
        let best = f._mm512_max_epu64(candidates, key(x, f._mm512_set1_epi64(55)));
        let best = f._mm512_max_epu64(best, f._mm512_shuffle_i64x2::<0b01_00_11_10>(best, best));
        let best = f._mm512_max_epu64(best, f._mm512_shuffle_i64x2::<0b10_11_00_01>(best, best));
        let best = f._mm512_max_epu64(best, cast(f._mm512_permute_pd::<0b0101_0101>(cast(best))));
        let lane = f._mm512_andnot_si512(best, f._mm512_set1_epi64(63));
        let taken = f._mm512_cmpeq_epi64_mask(candidates, best);
        let pivot = f._mm512_permutex2var_pd(column, lane, x);
        let r = f._mm512_permutex2var_pd(reciprocals, lane, of_x);
        let l = f._mm512_mul_pd(f._mm512_mask_blend_pd(taken, column, x), r);
        Self { best: first_lane(best), lane, taken, pivot, l }
    }
}

#[inline(always)]
fn first_lane(v: __m512i) -> u64 {
    let [first, ..]: [u64; LANES] = cast(v);
    first
}

/// Stages columns of A, zeros around them, and measures those that are not yet. False when a sum of moduli is not finite.
struct Fill<'a, const S: usize> {
    simd: V4,
    end: &'a mut End<f64>,
    source: Option<&'a [f64]>,
    stage: &'a mut [[f64; S]],
    columns: Range<usize>,
}

impl<const S: usize> pulp::NullaryFnOnce for Fill<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn call(self) -> bool {
        let Self { simd, end, source, stage, columns } = self;
        let f = simd.avx512f;
        let shape @ Shape { n, kl, ku, ncols, looks_at, .. } = end.shape;
        let (kv, ld, width) = (shape.kv(), shape.ld(), kl + ku + 1);
        let backward = source.is_some() && shape.direction == Direction::Backward;
        let reversed: __m512i = cast([7u64, 6, 5, 4, 3, 2, 1, 0]);
        let (mut norm, mut largest) = (end.found.norm_one.to_bits(), f._mm512_setzero_si512());
        let a = source.unwrap_or(&end.values);
        let unmeasured = end.found.measured..looks_at;
        let last = columns.end.min(ncols);
        for (column, c) in stage.iter_mut().zip(columns) {
            if c >= ncols {
                *column = [0.0; S];
                continue;
            }
            // Places of the rows that there are, in the stage and, in ascending order, in A.
            let places = kl + ku.saturating_sub(c)..ld.min(kv + n - c);
            let from = if backward {
                (n - 1 - c) * (2 * ku + kl + 1) + 2 * kv + 1 - places.end
            } else {
                c * ld + places.start
            };
            let (mut moduli, mut of_column) = (f._mm512_setzero_pd(), f._mm512_setzero_si512());
            // Whole registers where there is memory around the column.
            let around = (from + width).checked_sub(S).and_then(|first| a.get(first..from + S));
            if let (Some(around), true) = (around, places.len() == width) {
                // The room for fill.
                column[..LANES].fill(0.0);
                for v in 0..width.div_ceil(LANES) {
                    let load = |at: usize| -> __m512d { cast(*around[at..].first_chunk::<LANES>().expect("a column")) };
                    let there = part((1 << width) - 1, v);
                    let mut x = f._mm512_maskz_mov_pd(there, load(S - width + v * LANES));
                    moduli = f._mm512_add_pd(moduli, f._mm512_abs_pd(x));
                    of_column = larger(simd, of_column, x);
                    if backward {
                        x = f._mm512_permutexvar_pd(reversed, load(S - (v + 1) * LANES));
                        x = f._mm512_maskz_mov_pd(there, x);
                    }
                    column[kl + v * LANES..][..LANES].copy_from_slice(&cast::<_, [f64; LANES]>(x));
                }
            } else {
                *column = [0.0; S];
                let a = &a[from..][..places.len()];
                for x in a.chunks(LANES) {
                    let mut lanes = [0.0; LANES];
                    lanes[..x.len()].copy_from_slice(x);
                    moduli = f._mm512_add_pd(moduli, f._mm512_abs_pd(cast(lanes)));
                    of_column = larger(simd, of_column, cast(lanes));
                }
                column[places.clone()].copy_from_slice(a);
                if backward {
                    column[places].reverse();
                }
            }
            // Others may hold rows of U where factors replace A.
            if unmeasured.contains(&c) {
                largest = f._mm512_max_epu64(largest, of_column);
                norm = norm.max(simd.reduce_sum_f64s(cast(moduli)).to_bits());
            }
        }
        let largest: [u64; LANES] = cast(largest);
        let largest = f64::from_bits(largest.into_iter().fold(0, u64::max));
        let finite = f64::from_bits(norm).is_finite() && largest.is_finite();
        if finite {
            end.found.norm_one = f64::from_bits(norm);
            end.found.max_a[0] = end.found.max_a[0].max(largest);
            end.found.measured = end.found.measured.max(last);
        }
        finite
    }
}

impl End<f64> {
    /// Stages the rows of U before these columns.
    fn restore<const S: usize>(&self, stage: &mut [[f64; S]], first: usize) {
        let (ncols, kv, ld) = (self.shape.ncols, self.shape.kv(), self.shape.ld());
        for (column, c) in stage.iter_mut().zip(first..ncols.min(first + kv)) {
            let rows = kv + first - c;
            column[..rows].copy_from_slice(&self.values[c * ld..][..rows]);
        }
    }
}

/// Columns leave the stage, the first of which is `first`, and the largest of U in the rows before `done` is noted.
struct Empty<'a, const S: usize> {
    simd: V4,
    end: &'a mut End<f64>,
    stage: &'a [[f64; S]],
    first: usize,
    done: usize,
}

impl<const S: usize> pulp::NullaryFnOnce for Empty<'_, S> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { simd, end, stage, first, done } = self;
        let f = simd.avx512f;
        let (ncols, kv, ld) = (end.shape.ncols, end.shape.kv(), end.shape.ld());
        let mut largest = f._mm512_setzero_si512();
        for (column, c) in stage.iter().zip(first..ncols) {
            let rows = (kv + 1).min(kv + done - c);
            for (v, u) in column.as_chunks::<LANES>().0.iter().enumerate() {
                let u = f._mm512_maskz_mov_pd(part((1 << rows) - 1, v), cast(*u));
                largest = larger(simd, largest, u);
            }
            copy(&column[..ld], &mut end.values[c * ld..][..ld]);
        }
        // NaN and infinity have larger bits than all numbers.
        let largest: [u64; LANES] = cast(largest);
        for (max, bits) in end.found.max_u.iter_mut().zip(largest) {
            let u = f64::from_bits(bits);
            *max = if u.is_nan() { u } else { max.max(u) };
        }
    }
}
