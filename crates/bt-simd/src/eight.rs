//! Eight doubles: one register of AVX-512, or two of AVX2, with the same results bit by bit.
//!
//! A loop written over [`Eight`] is compiled once for each of them. Moduli are compared by their bits, of which infinity has larger
//! ones than all numbers and NaN larger ones than infinity, so that what is not finite gets through every maximum.

use pulp::NullaryFnOnce;
use pulp::bytemuck::{self, Pod};

/// Lanes.
pub const LANES: usize = 8;

/// Arithmetic on eight doubles; a token that their instructions are there. All of it is inlined into what [`Eight::vectorize`] runs.
pub trait Eight: Copy + Send + Sync + 'static {
    /// Eight doubles.
    type V: Copy + Pod;
    /// Eight integers of 64 bits.
    type I: Copy + Pod;
    /// Eight truths.
    type M: Copy;

    /// Runs `work` with these instructions.
    fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output;
    /// x in all lanes.
    fn splat(self, x: f64) -> Self::V;
    /// x in all lanes.
    fn splat_bits(self, x: u64) -> Self::I;
    /// a + b
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// a/b
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// c + a·b, rounded once
    fn plus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// c − a·b, rounded once
    fn minus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller of two; b where one is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// a ∧ b
    fn and(self, a: Self::I, b: Self::I) -> Self::I;
    /// The larger of two; b where one is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// Where a ≥ b; not where one is NaN.
    fn at_least(self, a: Self::V, b: Self::V) -> Self::M;
    /// Where a < b; not where one is NaN.
    fn less(self, a: Self::V, b: Self::V) -> Self::M;
    /// Where both hold.
    fn both(self, a: Self::M, b: Self::M) -> Self::M;
    /// ¬a ∧ b
    fn and_not(self, a: Self::I, b: Self::I) -> Self::I;
    /// a ∨ b
    fn or(self, a: Self::I, b: Self::I) -> Self::I;
    /// a − b
    fn sub_bits(self, a: Self::I, b: Self::I) -> Self::I;
    /// The larger of two integers below 2⁶³.
    fn max_bits(self, a: Self::I, b: Self::I) -> Self::I;
    /// The largest of eight integers below 2⁶³, in all lanes.
    fn spread_largest_bits(self, a: Self::I) -> Self::I;
    /// The largest of eight integers below 2⁶³.
    fn largest_bits(self, a: Self::I) -> u64;
    /// Where a = b.
    fn equal(self, a: Self::I, b: Self::I) -> Self::M;
    /// The lanes whose bits are set.
    fn mask(self, bits: u8) -> Self::M;
    /// A bit for every lane where m holds.
    fn bits(self, m: Self::M) -> u8;
    /// The lanes of v whose bits are set, zeros elsewhere.
    fn keep(self, bits: u8, v: Self::V) -> Self::V;
    /// a where m holds, b elsewhere.
    fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// Lane `lane` of v in all lanes, or x where that is 8; the same number in all lanes of `lane`, and of x.
    fn pick(self, v: Self::V, lane: Self::I, x: Self::V) -> Self::V;
    /// The same, with more time until `lane` is needed and with `within` in all lanes where it is below 8.
    fn pick_late(self, v: Self::V, lane: Self::I, within: Self::M, x: Self::V) -> Self::V;
    /// Lane `lane` of the registers in turn in all lanes, or x where it is the first behind them; V ≤ 4, the same number in all lanes of x.
    fn pick_of<const V: usize>(self, from: [Self::V; V], lane: usize, x: Self::V) -> Self::V;
    /// Lane K in all lanes; `lane` has K in all lanes, as integers that come from memory: a constant permutation would take two instructions.
    fn spread<const K: usize>(self, v: Self::V, lane: Self::I) -> Self::V;
    /// Lane 7 in all lanes.
    fn spread_last(self, v: Self::V) -> Self::V;
    /// Lane 0 in all lanes.
    fn spread_first(self, v: Self::V) -> Self::V;
    /// Lane i of the result is lane `index[i]` of v.
    fn permute(self, v: Self::V, index: Self::I) -> Self::V;
    /// Lane I < 4 of each half in all lanes of that half.
    fn spread_in_halves<const I: usize>(self, v: Self::V) -> Self::V;
    /// The lanes of pairs in turn: 1 0 3 2 5 4 7 6.
    fn swap_in_pairs(self, v: Self::V) -> Self::V;
    /// The pairs of a half in turn: 2 3 0 1 6 7 4 5.
    fn swap_pairs(self, v: Self::V) -> Self::V;
    /// Numbers 0 of the pairs of a and b: a₀ b₀ a₂ b₂ …
    fn firsts_of_pairs(self, a: Self::V, b: Self::V) -> Self::V;
    /// Numbers 1 of the pairs of a and b: a₁ b₁ a₃ b₃ …
    fn seconds_of_pairs(self, a: Self::V, b: Self::V) -> Self::V;
    /// The first pairs of the halves of a and b: a₀ a₁ b₀ b₁ a₄ a₅ b₄ b₅.
    fn first_pairs(self, a: Self::V, b: Self::V) -> Self::V;
    /// The second pairs of the halves of a and b.
    fn second_pairs(self, a: Self::V, b: Self::V) -> Self::V;
    /// The first halves of a and b.
    fn first_halves(self, a: Self::V, b: Self::V) -> Self::V;
    /// The second halves of a and b.
    fn second_halves(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lanes 1 … 7 of a, and lane 0 of b.
    fn next_lanes(self, a: Self::I, b: Self::I) -> Self::I;
    /// Lane 7 of a, and lanes 0 … 6 of b.
    fn lanes_before(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane j of the i-th result is lane i of the j-th argument.
    fn transpose(self, m: [Self::V; LANES]) -> [Self::V; LANES];
    /// The sum of the lanes, pairwise: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
    fn sum(self, a: Self::V) -> f64;

    /// a where m holds, b elsewhere.
    #[inline(always)]
    fn select_bits(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        bytemuck::cast(self.select(m, bytemuck::cast(a), bytemuck::cast(b)))
    }

    /// |a|
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        bytemuck::cast(self.modulus_bits(a))
    }

    /// |a|, as bits.
    #[inline(always)]
    fn modulus_bits(self, a: Self::V) -> Self::I {
        self.and(bytemuck::cast(a), self.splat_bits(u64::MAX >> 1))
    }

    /// Lane i of the result is number `index[i]` of `from`, if there is one.
    fn gather<const V: usize>(self, from: [Self::V; V], index: Self::I) -> Self::V;
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{__m512d, __m512i, _CMP_GE_OQ, _CMP_LT_OQ};

    use pulp::bytemuck::cast;
    use pulp::x86::V4;
    use pulp::{NullaryFnOnce, Simd};

    use super::{Eight, LANES};

    impl Eight for V4 {
        type V = __m512d;
        type I = __m512i;
        type M = u8;

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
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256d, __m256i, _CMP_GE_OQ, _CMP_LT_OQ};

    use pulp::bytemuck::cast;
    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, Simd};

    use super::{Eight, LANES};

    /// The lower lanes, and the upper ones.
    type Pair<T> = [T; 2];

    impl Eight for V3 {
        type V = Pair<__m256d>;
        type I = Pair<__m256i>;
        /// All bits of a lane, or none.
        type M = Pair<__m256i>;

        #[inline(always)]
        fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
            Simd::vectorize(self, work)
        }
        #[inline(always)]
        fn splat(self, x: f64) -> Self::V {
            [self.avx._mm256_set1_pd(x); 2]
        }
        #[inline(always)]
        fn splat_bits(self, x: u64) -> Self::I {
            [self.avx._mm256_set1_epi64x(x.cast_signed()); 2]
        }
        #[inline(always)]
        fn add(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_add_pd(a[0], b[0]), self.avx._mm256_add_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn mul(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_mul_pd(a[0], b[0]), self.avx._mm256_mul_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn div(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_div_pd(a[0], b[0]), self.avx._mm256_div_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn plus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V {
            [self.fma._mm256_fmadd_pd(a[0], b[0], c[0]), self.fma._mm256_fmadd_pd(a[1], b[1], c[1])]
        }
        #[inline(always)]
        fn minus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V {
            [self.fma._mm256_fnmadd_pd(a[0], b[0], c[0]), self.fma._mm256_fnmadd_pd(a[1], b[1], c[1])]
        }
        #[inline(always)]
        fn min(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_min_pd(a[0], b[0]), self.avx._mm256_min_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn and(self, a: Self::I, b: Self::I) -> Self::I {
            [self.avx2._mm256_and_si256(a[0], b[0]), self.avx2._mm256_and_si256(a[1], b[1])]
        }
        #[inline(always)]
        fn max(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_max_pd(a[0], b[0]), self.avx._mm256_max_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn at_least(self, a: Self::V, b: Self::V) -> Self::M {
            [
                cast(self.avx._mm256_cmp_pd::<_CMP_GE_OQ>(a[0], b[0])),
                cast(self.avx._mm256_cmp_pd::<_CMP_GE_OQ>(a[1], b[1])),
            ]
        }
        #[inline(always)]
        fn less(self, a: Self::V, b: Self::V) -> Self::M {
            [
                cast(self.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[0], b[0])),
                cast(self.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[1], b[1])),
            ]
        }
        #[inline(always)]
        fn both(self, a: Self::M, b: Self::M) -> Self::M {
            self.and(a, b)
        }
        #[inline(always)]
        fn and_not(self, a: Self::I, b: Self::I) -> Self::I {
            [self.avx2._mm256_andnot_si256(a[0], b[0]), self.avx2._mm256_andnot_si256(a[1], b[1])]
        }
        #[inline(always)]
        fn or(self, a: Self::I, b: Self::I) -> Self::I {
            [self.avx2._mm256_or_si256(a[0], b[0]), self.avx2._mm256_or_si256(a[1], b[1])]
        }
        #[inline(always)]
        fn sub_bits(self, a: Self::I, b: Self::I) -> Self::I {
            [self.avx2._mm256_sub_epi64(a[0], b[0]), self.avx2._mm256_sub_epi64(a[1], b[1])]
        }
        #[inline(always)]
        fn max_bits(self, a: Self::I, b: Self::I) -> Self::I {
            [self.larger(a[0], b[0]), self.larger(a[1], b[1])]
        }
        #[inline(always)]
        fn spread_largest_bits(self, a: Self::I) -> Self::I {
            let a = self.larger(a[0], a[1]);
            let a = self.larger(a, self.avx2._mm256_permute4x64_epi64::<0b01_00_11_10>(a));
            [self.larger(a, self.avx2._mm256_shuffle_epi32::<0b01_00_11_10>(a)); 2]
        }
        #[inline(always)]
        fn largest_bits(self, a: Self::I) -> u64 {
            let [a, b, c, d]: [u64; 4] = cast(self.larger(a[0], a[1]));
            a.max(b).max(c.max(d))
        }
        #[inline(always)]
        fn equal(self, a: Self::I, b: Self::I) -> Self::M {
            [self.avx2._mm256_cmpeq_epi64(a[0], b[0]), self.avx2._mm256_cmpeq_epi64(a[1], b[1])]
        }
        #[inline(always)]
        fn mask(self, bits: u8) -> Self::M {
            let places: Self::I = cast([1u64, 2, 4, 8, 16, 32, 64, 128]);
            self.equal(self.and(self.splat_bits(u64::from(bits)), places), places)
        }
        #[inline(always)]
        fn bits(self, m: Self::M) -> u8 {
            let [low, high] = [self.avx._mm256_movemask_pd(cast(m[0])), self.avx._mm256_movemask_pd(cast(m[1]))];
            (low | high << 4) as u8
        }
        #[inline(always)]
        fn keep(self, bits: u8, v: Self::V) -> Self::V {
            cast(self.and(self.mask(bits), cast(v)))
        }
        #[inline(always)]
        fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V {
            let avx = self.avx;
            [avx._mm256_blendv_pd(b[0], a[0], cast(m[0])), avx._mm256_blendv_pd(b[1], a[1], cast(m[1]))]
        }
        #[inline(always)]
        fn pick(self, v: Self::V, [lane, _]: Self::I, x: Self::V) -> Self::V {
            let entering = self.avx2._mm256_cmpgt_epi64(lane, cast([7u64; 4]));
            [self.avx._mm256_blendv_pd(self.chosen(v, lane), x[0], cast(entering)); 2]
        }
        #[inline(always)]
        fn pick_late(self, v: Self::V, lane: Self::I, _: Self::M, x: Self::V) -> Self::V {
            self.pick(v, lane, x)
        }
        #[inline(always)]
        fn pick_of<const V: usize>(self, from: [Self::V; V], lane: usize, x: Self::V) -> Self::V {
            // Through the first-level cache: a permutation of two registers is six instructions.
            let mut numbers = [[0.0; LANES]; 5];
            for v in 0..V {
                numbers[v] = cast(from[v]);
            }
            numbers[V] = cast(x);
            self.splat(numbers.as_flattened()[lane])
        }
        #[inline(always)]
        fn spread<const K: usize>(self, v: Self::V, _: Self::I) -> Self::V {
            let half = v[K / 4];
            [match K % 4 {
                0 => self.avx2._mm256_permute4x64_pd::<0b00_00_00_00>(half),
                1 => self.avx2._mm256_permute4x64_pd::<0b01_01_01_01>(half),
                2 => self.avx2._mm256_permute4x64_pd::<0b10_10_10_10>(half),
                _ => self.avx2._mm256_permute4x64_pd::<0b11_11_11_11>(half),
            }; 2]
        }
        #[inline(always)]
        fn spread_last(self, v: Self::V) -> Self::V {
            [self.avx2._mm256_permute4x64_pd::<0b11_11_11_11>(v[1]); 2]
        }
        #[inline(always)]
        fn spread_first(self, v: Self::V) -> Self::V {
            [self.avx2._mm256_permute4x64_pd::<0>(v[0]); 2]
        }
        #[inline(always)]
        fn permute(self, v: Self::V, index: Self::I) -> Self::V {
            [self.chosen(v, index[0]), self.chosen(v, index[1])]
        }
        #[inline(always)]
        fn spread_in_halves<const I: usize>(self, v: Self::V) -> Self::V {
            let i = self.avx2;
            match I {
                0 => [i._mm256_permute4x64_pd::<0b00_00_00_00>(v[0]), i._mm256_permute4x64_pd::<0b00_00_00_00>(v[1])],
                1 => [i._mm256_permute4x64_pd::<0b01_01_01_01>(v[0]), i._mm256_permute4x64_pd::<0b01_01_01_01>(v[1])],
                2 => [i._mm256_permute4x64_pd::<0b10_10_10_10>(v[0]), i._mm256_permute4x64_pd::<0b10_10_10_10>(v[1])],
                _ => [i._mm256_permute4x64_pd::<0b11_11_11_11>(v[0]), i._mm256_permute4x64_pd::<0b11_11_11_11>(v[1])],
            }
        }
        #[inline(always)]
        fn swap_in_pairs(self, v: Self::V) -> Self::V {
            [self.avx._mm256_permute_pd::<0b0101>(v[0]), self.avx._mm256_permute_pd::<0b0101>(v[1])]
        }
        #[inline(always)]
        fn swap_pairs(self, v: Self::V) -> Self::V {
            let i = self.avx2;
            [i._mm256_permute4x64_pd::<0b01_00_11_10>(v[0]), i._mm256_permute4x64_pd::<0b01_00_11_10>(v[1])]
        }
        #[inline(always)]
        fn firsts_of_pairs(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_unpacklo_pd(a[0], b[0]), self.avx._mm256_unpacklo_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn seconds_of_pairs(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_unpackhi_pd(a[0], b[0]), self.avx._mm256_unpackhi_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn first_pairs(self, a: Self::V, b: Self::V) -> Self::V {
            let avx = self.avx;
            [avx._mm256_permute2f128_pd::<0x20>(a[0], b[0]), avx._mm256_permute2f128_pd::<0x20>(a[1], b[1])]
        }
        #[inline(always)]
        fn second_pairs(self, a: Self::V, b: Self::V) -> Self::V {
            let avx = self.avx;
            [avx._mm256_permute2f128_pd::<0x31>(a[0], b[0]), avx._mm256_permute2f128_pd::<0x31>(a[1], b[1])]
        }
        #[inline(always)]
        fn first_halves(self, a: Self::V, b: Self::V) -> Self::V {
            [a[0], b[0]]
        }
        #[inline(always)]
        fn second_halves(self, a: Self::V, b: Self::V) -> Self::V {
            [a[1], b[1]]
        }
        #[inline(always)]
        fn next_lanes(self, a: Self::I, b: Self::I) -> Self::I {
            [self.next(a[0], a[1]), self.next(a[1], b[0])]
        }
        #[inline(always)]
        fn lanes_before(self, a: Self::V, b: Self::V) -> Self::V {
            [self.before(a[1], b[0]), self.before(b[0], b[1])]
        }
        /// Four 4 × 4 blocks, the outer two exchanged.
        #[inline(always)]
        fn transpose(self, m: [Self::V; LANES]) -> [Self::V; LANES] {
            let avx = self.avx;
            let mut out = m;
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let [a, b, c, d] = [m[4 * i][j], m[4 * i + 1][j], m[4 * i + 2][j], m[4 * i + 3][j]];
                let (ab, ba) = (avx._mm256_unpacklo_pd(a, b), avx._mm256_unpackhi_pd(a, b));
                let (cd, dc) = (avx._mm256_unpacklo_pd(c, d), avx._mm256_unpackhi_pd(c, d));
                out[4 * j][i] = avx._mm256_permute2f128_pd::<0x20>(ab, cd);
                out[4 * j + 1][i] = avx._mm256_permute2f128_pd::<0x20>(ba, dc);
                out[4 * j + 2][i] = avx._mm256_permute2f128_pd::<0x31>(ab, cd);
                out[4 * j + 3][i] = avx._mm256_permute2f128_pd::<0x31>(ba, dc);
            }
            out
        }
        #[inline(always)]
        fn sum(self, a: Self::V) -> f64 {
            let [a, b, c, d]: [f64; 4] = cast(self.avx._mm256_add_pd(a[0], a[1]));
            (a + c) + (b + d)
        }
        #[inline(always)]
        fn gather<const V: usize>(self, from: [Self::V; V], index: Self::I) -> Self::V {
            let index: [u64; LANES] = cast(index);
            let mut numbers = [[0.0; LANES]; V];
            for v in 0..V {
                numbers[v] = cast(from[v]);
            }
            let mut out = [0.0; LANES];
            for (out, i) in out.iter_mut().zip(index) {
                *out = numbers[i as usize / LANES % V][i as usize % LANES];
            }
            cast(out)
        }
    }

    /// What one register does.
    trait Half {
        /// The larger of two integers below 2⁶³, lane by lane.
        fn larger(self, a: __m256i, b: __m256i) -> __m256i;
        /// Lanes 1, 2 and 3 of a, and lane 0 of b.
        fn next(self, a: __m256i, b: __m256i) -> __m256i;
        /// Lane 3 of a, and lanes 0, 1 and 2 of b.
        fn before(self, a: __m256d, b: __m256d) -> __m256d;
        /// Lanes `index` mod 8 of v, below 4 of its first register.
        fn chosen(self, v: Pair<__m256d>, index: __m256i) -> __m256d;
    }

    impl Half for V3 {
        #[inline(always)]
        fn larger(self, a: __m256i, b: __m256i) -> __m256i {
            let m = self.avx2._mm256_cmpgt_epi64(a, b);
            self.avx2._mm256_blendv_epi8(b, a, m)
        }
        #[inline(always)]
        fn next(self, a: __m256i, b: __m256i) -> __m256i {
            let moved = self.avx2._mm256_permute4x64_epi64::<0b00_11_10_01>(a);
            let first = self.avx2._mm256_permute4x64_epi64::<0b00_00_00_00>(b);
            self.avx2._mm256_blend_epi32::<0b1100_0000>(moved, first)
        }
        #[inline(always)]
        fn before(self, a: __m256d, b: __m256d) -> __m256d {
            let last = self.avx2._mm256_permute4x64_pd::<0b11_11_11_11>(a);
            self.avx._mm256_blend_pd::<0b0001>(self.avx2._mm256_permute4x64_pd::<0b10_01_00_00>(b), last)
        }
        #[inline(always)]
        fn chosen(self, v: Pair<__m256d>, index: __m256i) -> __m256d {
            let i = self.avx2;
            // The places of both halves of a number, by which only the last three bits count.
            let twice = i._mm256_add_epi64(index, index);
            let halves = i._mm256_or_si256(twice, i._mm256_slli_epi64::<32>(twice));
            let halves = i._mm256_or_si256(halves, cast([1u64 << 32; 4]));
            let low = i._mm256_permutevar8x32_epi32(cast(v[0]), halves);
            let high = i._mm256_permutevar8x32_epi32(cast(v[1]), halves);
            let upper = i._mm256_slli_epi64::<61>(index);
            self.avx._mm256_blendv_pd(cast(low), cast(high), cast(upper))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of every operation, as bits.
    fn results<E: Eight>(e: E) -> Vec<[u64; LANES]> {
        let v = |x: [f64; LANES]| bytemuck::cast::<_, E::V>(x);
        let bits = |x: E::V| bytemuck::cast::<_, [u64; LANES]>(x);
        let integers = |x: E::I| bytemuck::cast::<_, [u64; LANES]>(x);
        let a = v([1.5, -2.25, 1e300, -1e-310, 0.0, 7.0, f64::INFINITY, 3.0]);
        let b = v([2.0, 3.0, 1e10, 5.0, -0.0, 1.0 / 3.0, 2.0, f64::NAN]);
        let c = v([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
        let order: E::I = bytemuck::cast([3u64, 1, 7, 0, 2, 6, 5, 4]);
        let wide: E::I = bytemuck::cast([3u64, 9, 15, 0, 8, 6, 13, 4]);
        let wider: E::I = bytemuck::cast([31u64, 9, 23, 0, 8, 16, 13, 4]);
        let (ma, mb) = (e.modulus_bits(a), e.modulus_bits(b));
        let lanes = |m: E::M| [u64::from(e.bits(m)); LANES];
        vec![
            bits(e.splat(0.1)),
            integers(e.splat_bits(77)),
            bits(e.add(a, c)),
            bits(e.mul(a, c)),
            bits(e.div(c, a)),
            bits(e.minus_mul(c, a, c)),
            bits(e.min(c, b)),
            integers(e.and(ma, mb)),
            integers(e.or(ma, mb)),
            integers(e.and_not(ma, mb)),
            integers(e.spread_largest_bits(ma)),
            bits(e.pick(a, e.splat_bits(1), e.splat(9.0))),
            bits(e.pick(a, e.splat_bits(5), e.splat(9.0))),
            bits(e.pick(a, e.splat_bits(8), e.splat(9.0))),
            bits(e.pick_late(a, e.splat_bits(6), e.mask(0xff), e.splat(9.0))),
            bits(e.pick_late(a, e.splat_bits(8), e.mask(0), e.splat(9.0))),
            integers(e.sub_bits(ma, order)),
            integers(e.max_bits(ma, mb)),
            [e.largest_bits(ma), e.largest_bits(mb), 0, 0, 0, 0, 0, 0],
            lanes(e.equal(ma, mb)),
            lanes(e.equal(order, order)),
            lanes(e.mask(0b1010_0110)),
            bits(e.select(e.mask(0b1001_0110), a, c)),
            integers(e.select_bits(e.mask(0b0000_0001), order, wide)),
            integers(e.next_lanes(order, wide)),
            [e.sum(c).to_bits(); LANES],
            bits(e.max(c, b)),
            lanes(e.at_least(a, c)),
            bits(e.permute(a, order)),
            bits(e.spread_in_halves::<0>(c)),
            bits(e.spread_in_halves::<1>(c)),
            bits(e.spread_in_halves::<2>(c)),
            bits(e.spread_in_halves::<3>(c)),
            bits(e.swap_in_pairs(c)),
            bits(e.swap_pairs(c)),
            bits(e.firsts_of_pairs(a, c)),
            bits(e.seconds_of_pairs(a, c)),
            bits(e.first_pairs(a, c)),
            bits(e.second_pairs(a, c)),
            bits(e.first_halves(a, c)),
            bits(e.second_halves(a, c)),
            bits(e.gather([a], order)),
            bits(e.gather([a, c], wide)),
            bits(e.gather([a, c, b, c], wider)),
            bits(e.plus_mul(c, a, c)),
            bits(e.keep(0b0110_0101, c)),
            bits(e.spread_first(c)),
            bits(e.spread_last(c)),
            bits(e.lanes_before(a, c)),
            bits(e.pick_of([a], 5, e.splat(9.0))),
            bits(e.pick_of([a, c], 16, e.splat(9.0))),
            bits(e.pick_of([a, c, b], 19, e.splat(9.0))),
            bits(e.pick_of([a, b, c, b], 22, e.splat(9.0))),
            bits(e.spread::<2>(c, e.splat_bits(2))),
            bits(e.spread::<5>(c, e.splat_bits(5))),
            lanes(e.both(e.less(c, a), e.less(a, b))),
            bits(e.transpose([a, c, b, a, a, b, c, b])[1]),
            bits(e.transpose([a, c, b, a, a, b, c, b])[6]),
        ]
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn pairs_of_registers_give_the_bits_of_one() {
        let Some(short) = pulp::x86::V3::try_new().map(results) else { return };
        let expected = [
            (1, [77; LANES]),
            (11, [(-2.25f64).to_bits(); LANES]),
            (12, [7f64.to_bits(); LANES]),
            (13, [9f64.to_bits(); LANES]),
            (19, [0b0001_0000; LANES]),
            (21, [0b1010_0110; LANES]),
            (23, [3, 9, 15, 0, 8, 6, 13, 4]),
            (24, [1, 7, 0, 2, 6, 5, 4, 3]),
        ];
        for (which, lanes) in expected {
            assert_eq!(short[which], lanes, "{which}");
        }
        let numbers = |which: usize| short[which].map(f64::from_bits);
        assert_eq!(numbers(45), [0.1, 0.0, 0.3, 0.0, 0.0, 0.6, 0.7, 0.0]);
        assert_eq!((numbers(46), numbers(47)), ([0.1; LANES], [0.8; LANES]));
        assert_eq!(numbers(48), [3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
        assert_eq!((numbers(49), numbers(50)), ([7.0; LANES], [9.0; LANES]));
        assert_eq!((numbers(51), numbers(52)), ([5.0; LANES], [0.7; LANES]));
        assert_eq!(short[55], [0b0000_0001; LANES]);
        assert_eq!((numbers(53), numbers(54)), ([0.3; LANES], [0.6; LANES]));
        assert_eq!(numbers(56), [-2.25, 0.2, 3.0, -2.25, -2.25, 3.0, 0.2, 3.0]);
        assert_eq!(numbers(57), [f64::INFINITY, 0.7, 2.0, f64::INFINITY, f64::INFINITY, 2.0, 0.7, 2.0]);
        assert_eq!(f64::from_bits(short[41][0]), -1e-310);
        assert_eq!(f64::from_bits(short[42][1]), 0.2);
        if let Some(long) = pulp::x86::V4::try_new().map(results) {
            for (which, (a, b)) in short.iter().zip(&long).enumerate() {
                assert_eq!(a, b, "{which}");
            }
        }
    }
}
