//! Substitution with one right-hand side, or with two side by side, on AVX-512, narrow factors of doubles: below ≤ 32, above ≤ 64.
//!
//! The rows that a step reaches move along in registers, those nearest to the step in the last lanes, so that nothing waits for
//! memory that was just written: x changes in its own rows only as they leave. Operations and their order are those of the plain
//! loops in `substitution.rs`, but for the order of a transposed step's sums, and for divisions: a pivot's reciprocal is found while
//! the steps before are at work, and the chain from step to step has a product instead. Such a chain keeps the processor waiting; that of a
//! second right-hand side takes place meanwhile.

use std::arch::x86_64::__m512d;
use std::ops::Range;

use pulp::Simd;
use pulp::bytemuck::cast;
use pulp::x86::V4;

use super::kernels::LANES;
use super::triangles::{AHEAD, Factor, Step, Triangles};

/// Does one step as far as whole registers go, and returns the columns that are left.
pub(super) fn columns_left<const G: usize>(lu: Triangles<'_, f64>, step: Step, x: [&mut [f64]; G]) -> Range<usize> {
    let all = 0..lu.cols;
    let reach = if matches!(step, Step::Lower | Step::LowerTransposed(_)) { lu.below } else { lu.above };
    let Some(simd) = bt_simd::avx512().filter(|_| reach > 0) else { return all };
    macro_rules! widths {
        ($kernel:ident: $($registers:literal)*) => {
            match reach.div_ceil(LANES) {
                $(..=$registers => simd.vectorize($kernel::<$registers, G> { simd, lu, x }),)*
                _ => all,
            }
        };
    }
    match step {
        Step::Lower => widths!(Lower: 1 2 3 4),
        Step::LowerTransposed(_) => widths!(LowerTransposed: 1 2 3 4),
        Step::Upper => widths!(Upper: 1 2 3 4 5 6 7 8),
        Step::UpperTransposed(_) => widths!(UpperTransposed: 1 2 3 4 5 6 7 8),
    }
}

/// The first of so many lanes.
#[inline(always)]
fn first(lanes: usize) -> [u8; 8] {
    all_but(lanes).map(|mask| !mask)
}

/// All lanes but the first of so many.
#[inline(always)]
fn all_but(lanes: usize) -> [u8; 8] {
    u64::MAX.checked_shl(lanes as u32).unwrap_or(0).to_le_bytes()
}

/// Lane i − 1 of all; none for i = 0.
#[inline(always)]
fn lane_before(i: usize) -> [u8; 8] {
    1u64.checked_shl(i as u32).map_or(1 << 63, |mask| mask >> 1).to_le_bytes()
}

/// Eight numbers from `at` on, if there are.
#[inline(always)]
fn eight(values: &[f64], at: usize) -> Option<__m512d> {
    values.get(at..at + LANES)?.first_chunk::<LANES>().map(|v| cast(*v))
}

/// Eight numbers from `at` on, zeros where there are none.
#[inline(always)]
fn some(values: &[f64], at: isize) -> __m512d {
    let mut some = [0.0; LANES];
    for (i, v) in (at..).zip(&mut some) {
        *v = usize::try_from(i).ok().and_then(|i| values.get(i)).map_or(0.0, |&v| v);
    }
    cast(some)
}

/// 1/p, where that is a normal number of all digits.
#[inline(always)]
fn reciprocal(p: f64) -> Option<f64> {
    let r = 1.0 / p;
    (r.is_normal() && p.is_normal()).then_some(r)
}

/// y/p
#[inline(always)]
fn over(y: f64, p: f64) -> f64 {
    match reciprocal(p) {
        Some(r) => y * r,
        None => y / p,
    }
}

#[inline(always)]
fn first_lane(v: __m512d) -> f64 {
    let [first, ..]: [f64; LANES] = cast(v);
    first
}

#[inline(always)]
fn store(x: &mut [f64], at: usize, v: __m512d) {
    x[at..at + LANES].copy_from_slice(&cast::<_, [f64; LANES]>(v));
}

/// x ← L⁻¹·P·x, the diagonal of L one or stored. Lanes are the rows from the step's on.
struct Lower<'a, 'x, const V: usize, const G: usize> {
    simd: V4,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<const V: usize, const G: usize> pulp::NullaryFnOnce for Lower<'_, '_, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let f = simd.avx512f;
        let reach = V * LANES;
        if lu.rows <= reach {
            return 0..lu.cols;
        }
        let below = first(lu.below);
        let mut w = [[f._mm512_setzero_pd(); V]; G];
        for g in 0..G {
            for v in 0..V {
                w[g][v] = eight(x[g], v * LANES).unwrap_or(w[g][v]);
            }
        }
        let mut j = 0;
        while j < lu.cols && j + reach < lu.rows {
            lu.fetch(j + AHEAD, Factor::Lower);
            let (diagonal, at) = (j * lu.ld + lu.diagonal, lu.lower.at(j));
            let Some(l) = lu.lower.values.get(at..at + reach) else { break };
            let to = lu.exchanged(j) - j;
            let taken = lane_before(to);
            for g in 0..G {
                let (w, x) = (&mut w[g], &mut *x[g]);
                // The exchanged row, which may be the one that comes behind the lanes.
                let comes = f._mm512_set1_pd(x[j + reach]);
                let mut value = row(simd, w, to, comes);
                let displaced = f._mm512_permutexvar_pd(f._mm512_setzero_si512(), w[0]);
                if lu.diagonal_of == Factor::Lower {
                    value = f._mm512_set1_pd(over(first_lane(value), lu.values[diagonal]));
                }
                for v in 0..V {
                    let next = if v + 1 < V { w[v + 1] } else { comes };
                    let next = cast(f._mm512_alignr_epi64::<1>(cast(next), cast(w[v])));
                    let l = f._mm512_maskz_mov_pd(below[v], eight(l, v * LANES).expect("reach of them"));
                    w[v] = f._mm512_fnmadd_pd(l, value, f._mm512_mask_blend_pd(taken[v], next, displaced));
                }
                x[j] = first_lane(value);
            }
            j += 1;
        }
        for g in 0..G {
            for v in 0..V {
                store(x[g], j + v * LANES, w[g][v]);
            }
        }
        j..lu.cols
    }
}

/// The row in a lane of `w`, or the one behind the last lane, in all lanes.
#[inline(always)]
fn row<const V: usize>(simd: V4, w: &[__m512d; V], lane: usize, behind: __m512d) -> __m512d {
    let f = simd.avx512f;
    // The index within a pair of registers is in its last four bits.
    let index = f._mm512_set1_epi64(lane as i64);
    if V == 1 {
        return f._mm512_permutex2var_pd(w[0], index, behind);
    }
    let mut value = behind;
    for pair in 0..V.div_ceil(2) {
        let here = if lane / (2 * LANES) == pair { u8::MAX } else { 0 };
        let second = if 2 * pair + 1 < V { w[2 * pair + 1] } else { behind };
        let of_pair = f._mm512_permutex2var_pd(w[2 * pair], index, second);
        value = f._mm512_mask_blend_pd(here, value, of_pair);
    }
    value
}

/// x ← Pᵀ·L⁻ᵀ·x. Lanes are the rows behind the step's.
struct LowerTransposed<'a, 'x, const V: usize, const G: usize> {
    simd: V4,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<const V: usize, const G: usize> pulp::NullaryFnOnce for LowerTransposed<'_, '_, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let f = simd.avx512f;
        let reach = V * LANES;
        let x = x.map(|x| &mut x[..lu.rows]);
        // Zeros stand behind the last row.
        let mut w = [[f._mm512_setzero_pd(); V]; G];
        for g in 0..G {
            for v in 0..V {
                w[g][v] = some(x[g], (lu.cols + v * LANES).cast_signed());
            }
        }
        for j in (0..lu.cols).rev() {
            lu.fetch(j.saturating_sub(AHEAD), Factor::Lower);
            let diagonal = j * lu.ld + lu.diagonal;
            let below = first(lu.below.min(lu.rows - 1 - j));
            let mut sums = [f._mm512_setzero_pd(); G];
            for v in 0..V {
                let (l, at) = (lu.lower.values, lu.lower.at(j) + v * LANES);
                let l = eight(l, at).unwrap_or_else(|| some(l, at.cast_signed()));
                let l = f._mm512_maskz_mov_pd(below[v], l);
                for g in 0..G {
                    sums[g] = f._mm512_fmadd_pd(l, w[g][v], sums[g]);
                }
            }
            let to = lu.exchanged(j) - j;
            let taken = lane_before(to);
            for g in 0..G {
                let (w, x) = (&mut w[g], &mut *x[g]);
                let mut value = x[j] - simd.reduce_sum_f64s(cast(sums[g]));
                if lu.diagonal_of == Factor::Lower {
                    value = over(value, lu.values[diagonal]);
                }
                // Lane i is row j + i + 1.
                let value = f._mm512_set1_pd(value);
                let mut before = if to > 0 { row(simd, w, to - 1, value) } else { value };
                for v in 0..V {
                    let exchanged = f._mm512_mask_blend_pd(taken[v], w[v], value);
                    w[v] = cast(f._mm512_alignr_epi64::<7>(cast(exchanged), cast(before)));
                    before = exchanged;
                }
                // The last row leaves.
                if let Some(x) = x.get_mut(j + reach) {
                    let [.., leaves]: [f64; LANES] = cast(before);
                    *x = leaves;
                }
            }
        }
        for g in 0..G {
            for (x, w) in x[g].chunks_mut(LANES).zip(w[g]) {
                let w: [f64; LANES] = cast(w);
                x.copy_from_slice(&w[..x.len()]);
            }
        }
        0..0
    }
}

/// x ← U⁻¹·x, the diagonal of U stored. Lanes are the rows up to the step's, the later ones in the last register.
struct Upper<'a, 'x, const V: usize, const G: usize> {
    simd: V4,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<const V: usize, const G: usize> pulp::NullaryFnOnce for Upper<'_, '_, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let f = simd.avx512f;
        let reach = V * LANES;
        if lu.diagonal_of == Factor::Lower || lu.cols <= reach {
            return 0..lu.cols;
        }
        let above = all_but(reach - lu.above);
        let mut w = [[f._mm512_setzero_pd(); V]; G];
        let mut j = lu.cols - 1;
        for g in 0..G {
            for v in 0..V {
                w[g][v] = eight(x[g], j + 1 - reach + v * LANES).unwrap_or(w[g][v]);
            }
        }
        while j >= reach {
            lu.fetch(j.saturating_sub(AHEAD), Factor::Upper);
            let diagonal = j * lu.ld + lu.diagonal;
            for g in 0..G {
                let (w, x) = (&mut w[g], &mut *x[g]);
                let y = f._mm512_permutexvar_pd(f._mm512_set1_epi64(7), w[V - 1]);
                let value = match reciprocal(lu.values[diagonal]) {
                    Some(r) => f._mm512_mul_pd(y, f._mm512_set1_pd(r)),
                    None => f._mm512_div_pd(y, f._mm512_set1_pd(lu.values[diagonal])),
                };
                x[j] = first_lane(value);
                let mut before = f._mm512_set1_pd(x[j - reach]);
                for v in 0..V {
                    let u = eight(lu.values, diagonal - reach + v * LANES).expect("columns before this one");
                    let next = cast(f._mm512_alignr_epi64::<7>(cast(w[v]), cast(before)));
                    before = w[v];
                    w[v] = f._mm512_fnmadd_pd(f._mm512_maskz_mov_pd(above[v], u), value, next);
                }
            }
            j -= 1;
        }
        for g in 0..G {
            for v in 0..V {
                store(x[g], j + 1 - reach + v * LANES, w[g][v]);
            }
        }
        0..j + 1
    }
}

/// x ← U⁻ᵀ·x, the diagonal of U stored. Lanes are the rows before the step's but the last, whose product comes last.
struct UpperTransposed<'a, 'x, const V: usize, const G: usize> {
    simd: V4,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<const V: usize, const G: usize> pulp::NullaryFnOnce for UpperTransposed<'_, '_, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let f = simd.avx512f;
        let reach = V * LANES;
        if lu.diagonal_of == Factor::Lower {
            return 0..lu.cols;
        }
        // Zeros stand before the first row.
        let mut w = [[f._mm512_setzero_pd(); V]; G];
        let mut last = [0.0; G];
        for j in 0..lu.cols {
            let diagonal = j * lu.ld + lu.diagonal;
            lu.fetch(j + AHEAD, Factor::Upper);
            let there = all_but(reach + 1 - lu.above.min(j));
            let mut sums = [f._mm512_setzero_pd(); G];
            for v in 0..V {
                let at = (diagonal + v * LANES).cast_signed() - (reach + 1).cast_signed();
                let u = usize::try_from(at).ok().and_then(|at| eight(lu.values, at));
                let u = f._mm512_maskz_mov_pd(there[v], u.unwrap_or_else(|| some(lu.values, at)));
                for g in 0..G {
                    sums[g] = f._mm512_fmadd_pd(u, w[g][v], sums[g]);
                }
            }
            let u = if j > 0 { lu.values[diagonal - 1] } else { 0.0 };
            for g in 0..G {
                let (w, last) = (&mut w[g], &mut last[g]);
                let rest = x[g][j] - simd.reduce_sum_f64s(cast(sums[g]));
                let comes = f._mm512_set1_pd(*last);
                for v in 0..V {
                    let next = if v + 1 < V { w[v + 1] } else { comes };
                    w[v] = cast(f._mm512_alignr_epi64::<1>(cast(next), cast(w[v])));
                }
                *last = over(u.mul_add(-*last, rest), lu.values[diagonal]);
                x[g][j] = *last;
            }
        }
        0..0
    }
}
