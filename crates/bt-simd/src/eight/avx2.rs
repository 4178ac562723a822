//! Two registers of AVX2.

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
    const VALUES: usize = 8;

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
        [cast(self.avx._mm256_cmp_pd::<_CMP_GE_OQ>(a[0], b[0])), cast(self.avx._mm256_cmp_pd::<_CMP_GE_OQ>(a[1], b[1]))]
    }
    #[inline(always)]
    fn less(self, a: Self::V, b: Self::V) -> Self::M {
        [cast(self.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[0], b[0])), cast(self.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[1], b[1]))]
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
    fn lanes_from<const K: usize>(self, [low, high]: Self::V) -> Self::V {
        let avx = self.avx;
        let zero = avx._mm256_setzero_pd();
        // The upper half of one register and the lower half of the next.
        let middle = avx._mm256_permute2f128_pd::<0x21>(low, high);
        let end = avx._mm256_permute2f128_pd::<0x21>(high, zero);
        match K {
            1 => [avx._mm256_shuffle_pd::<0b0101>(low, middle), avx._mm256_shuffle_pd::<0b0101>(high, end)],
            2 => [middle, end],
            3 => [avx._mm256_shuffle_pd::<0b0101>(middle, high), avx._mm256_shuffle_pd::<0b0101>(end, zero)],
            4 => [high, zero],
            5 => [avx._mm256_shuffle_pd::<0b0101>(high, end), zero],
            6 => [end, zero],
            _ => [avx._mm256_shuffle_pd::<0b0101>(end, zero), zero],
        }
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
