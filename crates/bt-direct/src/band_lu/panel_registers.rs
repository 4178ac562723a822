//! Panels of wide bands of doubles on AVX-512: what products leave to do, in registers.
//!
//! The operations on an element and their order are those of the loops in `panels.rs`, so that the factors have the same bits.
//! Written as loops, transpositions become gathers and the search for a pivot is two passes; a third of the time went there.

use std::arch::x86_64::{__m512d, __m512i, _CMP_EQ_OQ, _CMP_GT_OQ};

use pulp::Simd;
use pulp::bytemuck::cast;
use pulp::x86::V4;

use super::Tuning;
use super::end::{End, GROUP};
use super::narrow::Loops;
use super::panels::{Panel, PanelKernels, solve_from};
use crate::tridiagonal_once::lanes::{Eights, Isa};

/// Eliminates the columns first..last; false where there are no such registers, or the band is narrow.
pub(super) fn eliminate(end: &mut End<f64>, source: Option<&[f64]>, first: usize, last: usize) -> bool {
    let (Tuning::Wide { .. }, Some(simd)) = (end.tuning, bt_simd::avx512()) else { return false };
    simd.vectorize(PanelPass { simd, end, source: source.unwrap_or_default(), first, last });
    true
}

struct PanelPass<'a> {
    simd: V4,
    end: &'a mut End<f64>,
    source: &'a [f64],
    first: usize,
    last: usize,
}

impl pulp::NullaryFnOnce for PanelPass<'_> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { simd, end, source, first, last } = self;
        end.eliminate_panel::<true, V4, Registers>(simd, Registers(simd), source, first, last);
        end.finish_columns(first, last);
    }
}

/// A row of X in a register.
#[derive(Clone, Copy)]
struct Registers(V4);

impl PanelKernels<f64> for Registers {
    #[inline(always)]
    fn solve(self, x: &mut [[f64; GROUP]], l: &[f64], ldl: usize) {
        let f = self.0.avx512f;
        let whole = x.len() / GROUP * GROUP;
        for k in (0..whole).step_by(GROUP) {
            let (done, x) = x.split_at_mut(k);
            let x: &mut [[f64; GROUP]; GROUP] = x.first_chunk_mut().expect("eight rows");
            let mut v = [f._mm512_setzero_pd(); GROUP];
            for r in 0..GROUP {
                v[r] = cast(x[r]);
            }
            macro_rules! subtract {
                ($r:expr, $l:expr, $x:expr) => {
                    v[$r] = f._mm512_fnmadd_pd(f._mm512_set1_pd($l[$r]), $x, v[$r]);
                };
            }
            for (d, x) in done.iter().enumerate() {
                let l: &[f64; GROUP] = l[d * ldl + k..].first_chunk().expect("eight rows of the panel");
                let x = cast(*x);
                for r in 0..GROUP {
                    subtract!(r, l, x);
                }
            }
            for q in 0..GROUP {
                let l: &[f64; GROUP] = l[(k + q) * ldl + k..].first_chunk().expect("eight rows of the panel");
                let x = v[q];
                for r in q + 1..GROUP {
                    subtract!(r, l, x);
                }
            }
            for r in 0..GROUP {
                x[r] = cast(v[r]);
            }
        }
        solve_from::<f64, true>(whole, x, l, ldl);
    }
    #[inline(always)]
    fn write(self, x: &[[f64; GROUP]; GROUP], columns: &mut [f64], stride: usize) {
        let mut v = [self.0.avx512f._mm512_setzero_pd(); GROUP];
        for r in 0..GROUP {
            v[r] = cast(x[r]);
        }
        Eights(self.0).store_rows(v, columns, 0, stride);
    }
    #[inline(always)]
    fn reduce<S: Simd>(self, s: S, l: Panel<'_, f64>, y: &mut [f64]) -> usize {
        macro_rules! by_depth {
            ($($depth:literal)*) => {
                match (l.columns, y.as_chunks_mut()) {
                    $(($depth, (vectors, [])) => reduce::<$depth>(self.0, l, vectors),)*
                    (_, (_, _)) => Loops::<true>.reduce(s, l, y),
                }
            };
        }
        by_depth!(0 1 2 3 4 5 6 7)
    }
}

/// See [`PanelKernels::reduce`].
#[inline(always)]
fn reduce<const DEPTH: usize>(simd: V4, l: Panel<'_, f64>, y: &mut [[f64; GROUP]]) -> usize {
    let f = simd.avx512f;
    let len = y.len() * GROUP;
    let mut columns: [&[[f64; GROUP]]; DEPTH] = [&[]; DEPTH];
    for d in 0..DEPTH {
        columns[d] = l.values[d * l.ld..d * l.ld + len].as_chunks().0;
    }
    // U in the first rows
    let mut u = [f._mm512_setzero_pd(); DEPTH];
    let mut head: __m512d = cast(y[0]);
    for d in 0..DEPTH {
        u[d] = f._mm512_permutexvar_pd(f._mm512_set1_epi64(d as i64), head);
        let below = f._mm512_maskz_mov_pd(0xfe << d, cast(columns[d][0]));
        head = f._mm512_fnmadd_pd(below, u[d], head);
    }
    y[0] = cast(head);
    // The largest of each lane, and where they were first met.
    let (mut best, mut place) = (f._mm512_setzero_pd(), f._mm512_set1_epi64(DEPTH as i64));
    let mut at: __m512i = cast([0u64, 1, 2, 3, 4, 5, 6, 7]);
    let mut candidates = 0xff << DEPTH;
    for (v, y) in y.iter_mut().enumerate() {
        let mut left: __m512d = cast(*y);
        if v > 0 {
            for d in 0..DEPTH {
                left = f._mm512_fnmadd_pd(cast(columns[d][v]), u[d], left);
            }
            *y = cast(left);
        }
        let modulus = f._mm512_abs_pd(left);
        let larger = candidates & f._mm512_cmp_pd_mask::<_CMP_GT_OQ>(modulus, best);
        candidates = 0xff;
        best = f._mm512_mask_mov_pd(best, larger, modulus);
        place = f._mm512_mask_mov_epi64(place, larger, at);
        at = f._mm512_add_epi64(at, f._mm512_set1_epi64(GROUP as i64));
    }
    let largest = f._mm512_set1_pd(simd.reduce_max_f64s(cast(best)));
    let those = f._mm512_cmp_pd_mask::<_CMP_EQ_OQ>(best, largest);
    let places: [u64; GROUP] = cast(f._mm512_mask_mov_epi64(f._mm512_set1_epi64(-1), those, place));
    places.into_iter().fold(u64::MAX, u64::min) as usize
}
