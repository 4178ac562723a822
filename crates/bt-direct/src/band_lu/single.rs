//! Substitution with one right-hand side, or with two side by side, narrow factors of doubles: below ≤ 32 and above ≤ 64 on AVX-512; on
//! AVX2, where registers are pairs, up to eight and no interchanges, beyond which the plain loops are as fast.
//!
//! The rows that a step reaches move along in registers, those nearest to the step in the last lanes, so that nothing waits for
//! memory that was just written: x changes in its own rows only as they leave. Operations and their order are those of the plain
//! loops in `substitution.rs`, but for the order of a transposed step's sums, and for divisions: a pivot's reciprocal is found while
//! the steps before are at work, and the chain from step to step has a product instead. Such a chain keeps the processor waiting; that of a
//! second right-hand side takes place meanwhile.

use std::ops::Range;

use bt_simd::Eight;
use pulp::bytemuck::{Pod, cast};

use super::kernels::LANES;
use super::triangles::{AHEAD, Factor, Step, Triangles};
use crate::eight::first_lane;

/// Does one step as far as whole registers go, and returns the columns that are left.
pub(super) fn columns_left<const G: usize>(lu: Triangles<'_, f64>, step: Step, x: [&mut [f64]; G]) -> Range<usize> {
    let all = 0..lu.cols;
    let reach = if matches!(step, Step::Lower | Step::LowerTransposed(_)) { lu.below } else { lu.above };
    // A band that is wider than its matrix has the bits of one that is not.
    let reach = reach.min(lu.rows.saturating_sub(1));
    let registers = reach.div_ceil(LANES);
    macro_rules! widths {
        ($simd:ident, $kernel:ident: $($registers:literal)*) => {
            match registers {
                $($registers => $simd.vectorize($kernel::<_, $registers, G> { simd: $simd, lu, x }),)*
                _ => all,
            }
        };
    }
    if let Some(simd) = bt_simd::avx512() {
        match step {
            Step::Lower => widths!(simd, Lower: 1 2 3 4),
            Step::LowerTransposed(_) => widths!(simd, LowerTransposed: 1 2 3 4),
            Step::Upper => widths!(simd, Upper: 1 2 3 4 5 6 7 8),
            Step::UpperTransposed(_) => widths!(simd, UpperTransposed: 1 2 3 4 5 6 7 8),
        }
    } else if lu.pivots.is_empty()
        && let Some(simd) = bt_simd::avx2()
    {
        match step {
            Step::Lower => widths!(simd, Lower: 1),
            Step::LowerTransposed(_) => widths!(simd, LowerTransposed: 1),
            Step::Upper => widths!(simd, Upper: 1),
            Step::UpperTransposed(_) => widths!(simd, UpperTransposed: 1),
        }
    } else {
        all
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
fn eight<V: Pod>(values: &[f64], at: usize) -> Option<V> {
    values.get(at..at + LANES)?.first_chunk::<LANES>().map(|v| cast(*v))
}

/// Eight numbers from `at` on, zeros where there are none.
#[inline(always)]
fn some<V: Pod>(values: &[f64], at: isize) -> V {
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
fn store<V: Pod>(x: &mut [f64], at: usize, v: V) {
    x[at..at + LANES].copy_from_slice(&cast::<_, [f64; LANES]>(v));
}

/// x ← L⁻¹·P·x, the diagonal of L one or stored. Lanes are the rows from the step's on.
struct Lower<'a, 'x, E: Eight, const V: usize, const G: usize> {
    simd: E,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<E: Eight, const V: usize, const G: usize> pulp::NullaryFnOnce for Lower<'_, '_, E, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let reach = V * LANES;
        if lu.rows <= reach {
            return 0..lu.cols;
        }
        let below = first(lu.below);
        let mut w = [[simd.splat(0.0); V]; G];
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
            let exchanged = lu.pivots.get(j).map(|&to| to as usize - j);
            for g in 0..G {
                let (w, x) = (&mut w[g], &mut *x[g]);
                let comes = simd.splat(x[j + reach]);
                let displaced = simd.spread_first(w[0]);
                // The exchanged row, which may be the one that comes behind the lanes.
                let mut value = exchanged.map_or(displaced, |to| simd.pick_of(*w, to, comes));
                if lu.diagonal_of == Factor::Lower {
                    value = simd.splat(over(first_lane(value), lu.values[diagonal]));
                }
                for v in 0..V {
                    let next = if v + 1 < V { w[v + 1] } else { comes };
                    let mut next = cast(simd.next_lanes(cast(w[v]), cast(next)));
                    if let Some(to) = exchanged {
                        next = simd.select(simd.mask(lane_before(to)[v]), displaced, next);
                    }
                    let l = simd.keep(below[v], eight(l, v * LANES).expect("reach of them"));
                    w[v] = simd.minus_mul(next, l, value);
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

/// x ← Pᵀ·L⁻ᵀ·x. Lanes are the rows behind the step's.
struct LowerTransposed<'a, 'x, E: Eight, const V: usize, const G: usize> {
    simd: E,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<E: Eight, const V: usize, const G: usize> pulp::NullaryFnOnce for LowerTransposed<'_, '_, E, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let reach = V * LANES;
        let x = x.map(|x| &mut x[..lu.rows]);
        // Zeros stand behind the last row.
        let mut w = [[simd.splat(0.0); V]; G];
        for g in 0..G {
            for v in 0..V {
                w[g][v] = some(x[g], (lu.cols + v * LANES).cast_signed());
            }
        }
        for j in (0..lu.cols).rev() {
            lu.fetch(j.saturating_sub(AHEAD), Factor::Lower);
            let diagonal = j * lu.ld + lu.diagonal;
            let below = first(lu.below.min(lu.rows - 1 - j));
            let mut sums = [simd.splat(0.0); G];
            for v in 0..V {
                let (l, at) = (lu.lower.values, lu.lower.at(j) + v * LANES);
                let l = eight(l, at).unwrap_or_else(|| some(l, at.cast_signed()));
                let l = simd.keep(below[v], l);
                for g in 0..G {
                    sums[g] = simd.plus_mul(sums[g], l, w[g][v]);
                }
            }
            let to = lu.exchanged(j) - j;
            let taken = lane_before(to);
            for g in 0..G {
                let (w, x) = (&mut w[g], &mut *x[g]);
                let mut value = x[j] - simd.sum(sums[g]);
                if lu.diagonal_of == Factor::Lower {
                    value = over(value, lu.values[diagonal]);
                }
                // Lane i is row j + i + 1.
                let value = simd.splat(value);
                let mut before = if to > 0 { simd.pick_of(*w, to - 1, value) } else { value };
                for v in 0..V {
                    let exchanged = simd.select(simd.mask(taken[v]), value, w[v]);
                    w[v] = simd.lanes_before(before, exchanged);
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
struct Upper<'a, 'x, E: Eight, const V: usize, const G: usize> {
    simd: E,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<E: Eight, const V: usize, const G: usize> pulp::NullaryFnOnce for Upper<'_, '_, E, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let reach = V * LANES;
        if lu.diagonal_of == Factor::Lower || lu.cols <= reach {
            return 0..lu.cols;
        }
        let above = all_but(reach - lu.above.min(reach));
        let mut w = [[simd.splat(0.0); V]; G];
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
                let y = simd.spread_last(w[V - 1]);
                let value = match reciprocal(lu.values[diagonal]) {
                    Some(r) => simd.mul(y, simd.splat(r)),
                    None => simd.div(y, simd.splat(lu.values[diagonal])),
                };
                x[j] = first_lane(value);
                let mut before = simd.splat(x[j - reach]);
                for v in 0..V {
                    let u = eight(lu.values, diagonal - reach + v * LANES).expect("columns before this one");
                    let next = simd.lanes_before(before, w[v]);
                    before = w[v];
                    w[v] = simd.minus_mul(next, simd.keep(above[v], u), value);
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
struct UpperTransposed<'a, 'x, E: Eight, const V: usize, const G: usize> {
    simd: E,
    lu: Triangles<'a, f64>,
    x: [&'x mut [f64]; G],
}

impl<E: Eight, const V: usize, const G: usize> pulp::NullaryFnOnce for UpperTransposed<'_, '_, E, V, G> {
    type Output = Range<usize>;
    #[inline(always)]
    fn call(self) -> Range<usize> {
        let Self { simd, lu, x } = self;
        let reach = V * LANES;
        if lu.diagonal_of == Factor::Lower {
            return 0..lu.cols;
        }
        // Zeros stand before the first row.
        let mut w = [[simd.splat(0.0); V]; G];
        let mut last = [0.0; G];
        for j in 0..lu.cols {
            let diagonal = j * lu.ld + lu.diagonal;
            lu.fetch(j + AHEAD, Factor::Upper);
            let there = all_but(reach + 1 - lu.above.min(j));
            let mut sums = [simd.splat(0.0); G];
            for v in 0..V {
                let at = (diagonal + v * LANES).cast_signed() - (reach + 1).cast_signed();
                let u = usize::try_from(at).ok().and_then(|at| eight(lu.values, at));
                let u = simd.keep(there[v], u.unwrap_or_else(|| some(lu.values, at)));
                for g in 0..G {
                    sums[g] = simd.plus_mul(sums[g], u, w[g][v]);
                }
            }
            let u = if j > 0 { lu.values[diagonal - 1] } else { 0.0 };
            for g in 0..G {
                let (w, last) = (&mut w[g], &mut last[g]);
                let rest = x[g][j] - simd.sum(sums[g]);
                let comes = simd.splat(*last);
                for v in 0..V {
                    let next = if v + 1 < V { w[v + 1] } else { comes };
                    w[v] = cast(simd.next_lanes(cast(w[v]), cast(next)));
                }
                *last = over(u.mul_add(-*last, rest), lu.values[diagonal]);
                x[g][j] = *last;
            }
        }
        0..0
    }
}
