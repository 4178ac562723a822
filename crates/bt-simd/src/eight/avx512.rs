//! A register of AVX-512.

use std::arch::x86_64::{__m512d, __m512i, _CMP_GE_OQ, _CMP_LT_OQ};

use pulp::bytemuck::cast;
use pulp::x86::V4;
use pulp::{NullaryFnOnce, Simd};

use super::{Eight, LANES};

impl Eight for V4 {
    type V = __m512d;
    type I = __m512i;
    type M = u8;
    const VALUES: usize = 32;

    #[inline(always)]
    fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
        Simd::vectorize(self, work)
    }
    #[inline(always)]
    fn splat(self, x: f64) -> __m512d {
        self.avx512f._mm512_set1_pd(x)
    }
    #[inline(always)]
    fn splat_bits(self, x: u64) -> __m512i {
        self.avx512f._mm512_set1_epi64(x.cast_signed())
    }
    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_add_pd(a, b)
    }
    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_mul_pd(a, b)
    }
    #[inline(always)]
    fn div(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_div_pd(a, b)
    }
    #[inline(always)]
    fn plus_mul(self, c: __m512d, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_fmadd_pd(a, b, c)
    }
    #[inline(always)]
    fn minus_mul(self, c: __m512d, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_fnmadd_pd(a, b, c)
    }
    #[inline(always)]
    fn min(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_min_pd(a, b)
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_and_si512(a, b)
    }
    #[inline(always)]
    fn max(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_max_pd(a, b)
    }
    #[inline(always)]
    fn at_least(self, a: __m512d, b: __m512d) -> u8 {
        self.avx512f._mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b)
    }
    #[inline(always)]
    fn less(self, a: __m512d, b: __m512d) -> u8 {
        self.avx512f._mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b)
    }
    #[inline(always)]
    fn both(self, a: u8, b: u8) -> u8 {
        a & b
    }
    #[inline(always)]
    fn and_not(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_andnot_si512(a, b)
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_or_si512(a, b)
    }
    #[inline(always)]
    fn sub_bits(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_sub_epi64(a, b)
    }
    #[inline(always)]
    fn max_bits(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_max_epu64(a, b)
    }
    #[inline(always)]
    fn spread_largest_bits(self, a: __m512i) -> __m512i {
        let f = self.avx512f;
        let a = f._mm512_max_epu64(a, f._mm512_shuffle_i64x2::<0b01_00_11_10>(a, a));
        let a = f._mm512_max_epu64(a, f._mm512_shuffle_i64x2::<0b10_11_00_01>(a, a));
        f._mm512_max_epu64(a, cast(f._mm512_permute_pd::<0b0101_0101>(cast(a))))
    }
    #[inline(always)]
    fn largest_bits(self, a: __m512i) -> u64 {
        let [low, high]: [_; 2] = cast(a);
        let [low, high]: [_; 2] = cast(self.avx512vl._mm256_max_epu64(low, high));
        let [low, high]: [u64; 2] = cast(self.avx512vl._mm_max_epu64(low, high));
        low.max(high)
    }
    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> u8 {
        self.avx512f._mm512_cmpeq_epi64_mask(a, b)
    }
    #[inline(always)]
    fn mask(self, bits: u8) -> u8 {
        bits
    }
    #[inline(always)]
    fn bits(self, m: u8) -> u8 {
        m
    }
    #[inline(always)]
    fn keep(self, bits: u8, v: __m512d) -> __m512d {
        self.avx512f._mm512_maskz_mov_pd(bits, v)
    }
    #[inline(always)]
    fn select(self, m: u8, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_mask_blend_pd(m, b, a)
    }
    #[inline(always)]
    fn pick(self, v: __m512d, lane: __m512i, x: __m512d) -> __m512d {
        self.avx512f._mm512_permutex2var_pd(v, lane, x)
    }
    #[inline(always)]
    fn pick_late(self, v: __m512d, lane: __m512i, within: u8, x: __m512d) -> __m512d {
        self.avx512f._mm512_mask_permutexvar_pd(x, within, lane, v)
    }
    #[inline(always)]
    fn pick_of<const V: usize>(self, from: [__m512d; V], lane: usize, x: __m512d) -> __m512d {
        let f = self.avx512f;
        // The index within a pair of registers is in its last four bits.
        let index = f._mm512_set1_epi64(lane as i64);
        if V == 1 {
            return f._mm512_permutex2var_pd(from[0], index, x);
        }
        let mut value = x;
        for pair in 0..V.div_ceil(2) {
            let here = if lane / (2 * LANES) == pair { u8::MAX } else { 0 };
            let second = if 2 * pair + 1 < V { from[2 * pair + 1] } else { x };
            let of_pair = f._mm512_permutex2var_pd(from[2 * pair], index, second);
            value = f._mm512_mask_blend_pd(here, value, of_pair);
        }
        value
    }
    #[inline(always)]
    fn spread<const K: usize>(self, v: __m512d, lane: __m512i) -> __m512d {
        self.avx512f._mm512_permutexvar_pd(lane, v)
    }
    #[inline(always)]
    fn spread_last(self, v: __m512d) -> __m512d {
        self.avx512f._mm512_permutexvar_pd(cast([7u64; LANES]), v)
    }
    #[inline(always)]
    fn spread_first(self, v: __m512d) -> __m512d {
        self.avx512f._mm512_permutexvar_pd(cast([0u64; LANES]), v)
    }
    #[inline(always)]
    fn permute(self, v: __m512d, index: __m512i) -> __m512d {
        self.avx512f._mm512_permutexvar_pd(index, v)
    }
    #[inline(always)]
    fn spread_in_halves<const I: usize>(self, v: __m512d) -> __m512d {
        let f = self.avx512f;
        match I {
            0 => f._mm512_permutex_pd::<0b00_00_00_00>(v),
            1 => f._mm512_permutex_pd::<0b01_01_01_01>(v),
            2 => f._mm512_permutex_pd::<0b10_10_10_10>(v),
            _ => f._mm512_permutex_pd::<0b11_11_11_11>(v),
        }
    }
    #[inline(always)]
    fn swap_in_pairs(self, v: __m512d) -> __m512d {
        self.avx512f._mm512_permute_pd::<0b0101_0101>(v)
    }
    #[inline(always)]
    fn swap_pairs(self, v: __m512d) -> __m512d {
        self.avx512f._mm512_permutex_pd::<0b01_00_11_10>(v)
    }
    #[inline(always)]
    fn firsts_of_pairs(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_unpacklo_pd(a, b)
    }
    #[inline(always)]
    fn seconds_of_pairs(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_unpackhi_pd(a, b)
    }
    #[inline(always)]
    fn first_pairs(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_permutex2var_pd(a, cast([0i64, 1, 8, 9, 4, 5, 12, 13]), b)
    }
    #[inline(always)]
    fn second_pairs(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_permutex2var_pd(a, cast([2i64, 3, 10, 11, 6, 7, 14, 15]), b)
    }
    #[inline(always)]
    fn first_halves(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_shuffle_f64x2::<0x44>(a, b)
    }
    #[inline(always)]
    fn second_halves(self, a: __m512d, b: __m512d) -> __m512d {
        self.avx512f._mm512_shuffle_f64x2::<0xee>(a, b)
    }
    #[inline(always)]
    fn next_lanes(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_alignr_epi64::<1>(b, a)
    }
    #[inline(always)]
    fn lanes_from<const K: usize>(self, v: __m512d) -> __m512d {
        let (f, zero, v) = (self.avx512f, cast([0u64; LANES]), cast(v));
        cast(match K {
            1 => f._mm512_alignr_epi64::<1>(zero, v),
            2 => f._mm512_alignr_epi64::<2>(zero, v),
            3 => f._mm512_alignr_epi64::<3>(zero, v),
            4 => f._mm512_alignr_epi64::<4>(zero, v),
            5 => f._mm512_alignr_epi64::<5>(zero, v),
            6 => f._mm512_alignr_epi64::<6>(zero, v),
            _ => f._mm512_alignr_epi64::<7>(zero, v),
        })
    }
    #[inline(always)]
    fn lanes_before(self, a: __m512d, b: __m512d) -> __m512d {
        cast(self.avx512f._mm512_alignr_epi64::<7>(cast(b), cast(a)))
    }
    /// 24 shuffles: pairs of rows, then pairs of 128-bit quarters twice.
    #[inline(always)]
    fn transpose(self, m: [__m512d; LANES]) -> [__m512d; LANES] {
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        let f = self.avx512f;
        let (mut a, mut b, mut out) = (m, m, m);
        // Quarter q of a[2p] holds column 2q of rows 2p and 2p + 1, of a[2p + 1] column 2q + 1.
        for p in 0..4 {
            a[2 * p] = f._mm512_unpacklo_pd(m[2 * p], m[2 * p + 1]);
            a[2 * p + 1] = f._mm512_unpackhi_pd(m[2 * p], m[2 * p + 1]);
        }
        // Columns c and c + 4 of four rows: c = 0, 1, 2, 3 of the upper, then of the lower rows.
        for h in [0, 4] {
            for c in 0..2 {
                b[h + c] = f._mm512_shuffle_f64x2::<EVEN>(a[h + c], a[h + c + 2]);
                b[h + c + 2] = f._mm512_shuffle_f64x2::<ODD>(a[h + c], a[h + c + 2]);
            }
        }
        for c in 0..4 {
            out[c] = f._mm512_shuffle_f64x2::<EVEN>(b[c], b[c + 4]);
            out[c + 4] = f._mm512_shuffle_f64x2::<ODD>(b[c], b[c + 4]);
        }
        out
    }
    #[inline(always)]
    fn sum(self, a: __m512d) -> f64 {
        self.reduce_sum_f64s(cast(a))
    }
    #[inline(always)]
    fn gather<const V: usize>(self, from: [__m512d; V], index: __m512i) -> __m512d {
        let f = self.avx512f;
        match V {
            1 => f._mm512_permutexvar_pd(index, from[0]),
            2 => f._mm512_permutex2var_pd(from[0], index, from[V - 1]),
            _ => {
                let low = f._mm512_permutex2var_pd(from[0], index, from[1 % V]);
                let high = f._mm512_permutex2var_pd(from[2 % V], index, from[V - 1]);
                let in_high = f._mm512_test_epi64_mask(index, f._mm512_set1_epi64(16));
                f._mm512_mask_blend_pd(in_high, low, high)
            }
        }
    }
}
