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
    /// c − a·b, rounded once
    fn minus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller of two; b where one is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// a ∧ b
    fn and(self, a: Self::I, b: Self::I) -> Self::I;
    /// a ∨ b
    fn or(self, a: Self::I, b: Self::I) -> Self::I;
    /// a − b
    fn sub_bits(self, a: Self::I, b: Self::I) -> Self::I;
    /// The larger of two integers below 2⁶³.
    fn max_bits(self, a: Self::I, b: Self::I) -> Self::I;
    /// The largest of eight integers below 2⁶³.
    fn largest_bits(self, a: Self::I) -> u64;
    /// Where a = b.
    fn equal(self, a: Self::I, b: Self::I) -> Self::M;
    /// The lanes whose bits are set.
    fn mask(self, bits: u8) -> Self::M;
    /// A bit for every lane where m holds.
    fn bits(self, m: Self::M) -> u8;
    /// a where m holds, b elsewhere.
    fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// Lanes 1 … 7 of a, and lane 0 of b.
    fn next_lanes(self, a: Self::I, b: Self::I) -> Self::I;
    /// The sum of the lanes, pairwise: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
    fn sum(self, a: Self::V) -> f64;

    /// a where m holds, b elsewhere.
    #[inline(always)]
    fn select_bits(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        bytemuck::cast(self.select(m, bytemuck::cast(a), bytemuck::cast(b)))
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
    use std::arch::x86_64::{__m512d, __m512i};

    use pulp::bytemuck::cast;
    use pulp::x86::V4;
    use pulp::{NullaryFnOnce, Simd};

    use super::Eight;

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
        fn select(self, m: u8, a: __m512d, b: __m512d) -> __m512d {
            self.avx512f._mm512_mask_blend_pd(m, b, a)
        }
        #[inline(always)]
        fn next_lanes(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_alignr_epi64::<1>(b, a)
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
    use std::arch::x86_64::{__m256d, __m256i};

    use pulp::bytemuck::cast;
    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, Simd};

    use super::{Eight, LANES};

    /// The lower lanes, and the upper ones.
    type Pair<T> = [T; 2];

    #[inline(always)]
    fn each<A: Copy, B: Copy, C>(a: Pair<A>, b: Pair<B>, op: impl Fn(A, B) -> C) -> Pair<C> {
        [op(a[0], b[0]), op(a[1], b[1])]
    }

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
            each(a, b, |a, b| self.avx._mm256_add_pd(a, b))
        }
        #[inline(always)]
        fn mul(self, a: Self::V, b: Self::V) -> Self::V {
            each(a, b, |a, b| self.avx._mm256_mul_pd(a, b))
        }
        #[inline(always)]
        fn div(self, a: Self::V, b: Self::V) -> Self::V {
            each(a, b, |a, b| self.avx._mm256_div_pd(a, b))
        }
        #[inline(always)]
        fn minus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V {
            [self.fma._mm256_fnmadd_pd(a[0], b[0], c[0]), self.fma._mm256_fnmadd_pd(a[1], b[1], c[1])]
        }
        #[inline(always)]
        fn min(self, a: Self::V, b: Self::V) -> Self::V {
            each(a, b, |a, b| self.avx._mm256_min_pd(a, b))
        }
        #[inline(always)]
        fn and(self, a: Self::I, b: Self::I) -> Self::I {
            each(a, b, |a, b| self.avx2._mm256_and_si256(a, b))
        }
        #[inline(always)]
        fn or(self, a: Self::I, b: Self::I) -> Self::I {
            each(a, b, |a, b| self.avx2._mm256_or_si256(a, b))
        }
        #[inline(always)]
        fn sub_bits(self, a: Self::I, b: Self::I) -> Self::I {
            each(a, b, |a, b| self.avx2._mm256_sub_epi64(a, b))
        }
        #[inline(always)]
        fn max_bits(self, a: Self::I, b: Self::I) -> Self::I {
            each(a, b, |a, b| self.larger(a, b))
        }
        #[inline(always)]
        fn largest_bits(self, a: Self::I) -> u64 {
            let [a, b, c, d]: [u64; 4] = cast(self.larger(a[0], a[1]));
            a.max(b).max(c.max(d))
        }
        #[inline(always)]
        fn equal(self, a: Self::I, b: Self::I) -> Self::M {
            each(a, b, |a, b| self.avx2._mm256_cmpeq_epi64(a, b))
        }
        #[inline(always)]
        fn mask(self, bits: u8) -> Self::M {
            let places: Self::I = cast([1u64, 2, 4, 8, 16, 32, 64, 128]);
            self.equal(self.and(self.splat_bits(u64::from(bits)), places), places)
        }
        #[inline(always)]
        fn bits(self, m: Self::M) -> u8 {
            let [low, high] = m.map(|m| self.avx._mm256_movemask_pd(cast(m)) as u8);
            low | high << 4
        }
        #[inline(always)]
        fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V {
            let avx = self.avx;
            [avx._mm256_blendv_pd(b[0], a[0], cast(m[0])), avx._mm256_blendv_pd(b[1], a[1], cast(m[1]))]
        }
        #[inline(always)]
        fn next_lanes(self, a: Self::I, b: Self::I) -> Self::I {
            let next = |a, b| {
                // 1 2 3 0 of a, and 0 of b in the place of the last.
                let (a, b) = (self.avx2._mm256_permute4x64_epi64::<0b00_11_10_01>(a), b);
                let b = self.avx2._mm256_permute4x64_epi64::<0b00_00_00_00>(b);
                self.avx2._mm256_blend_epi32::<0b1100_0000>(a, b)
            };
            [next(a[0], a[1]), next(a[1], b[0])]
        }
        #[inline(always)]
        fn sum(self, a: Self::V) -> f64 {
            let [a, b, c, d]: [f64; 4] = cast(self.avx._mm256_add_pd(a[0], a[1]));
            (a + c) + (b + d)
        }
        #[inline(always)]
        fn gather<const V: usize>(self, from: [Self::V; V], index: Self::I) -> Self::V {
            let index: [u64; LANES] = cast(index);
            let numbers: [[f64; LANES]; V] = from.map(cast);
            let mut out = [0.0; LANES];
            for (out, i) in out.iter_mut().zip(index) {
                *out = numbers[i as usize / LANES % V][i as usize % LANES];
            }
            cast(out)
        }
    }

    /// The larger of two integers below 2⁶³, lane by lane.
    trait Larger {
        fn larger(self, a: __m256i, b: __m256i) -> __m256i;
    }

    impl Larger for V3 {
        #[inline(always)]
        fn larger(self, a: __m256i, b: __m256i) -> __m256i {
            let m = self.avx2._mm256_cmpgt_epi64(a, b);
            self.avx2._mm256_blendv_epi8(b, a, m)
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
            bits(e.gather([a], order)),
            bits(e.gather([a, c], wide)),
            bits(e.gather([a, c, b, c], wider)),
        ]
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn pairs_of_registers_give_the_bits_of_one() {
        let Some(short) = pulp::x86::V3::try_new().map(results) else { return };
        let expected = [
            (1, [77; LANES]),
            (12, [0b0001_0000; LANES]),
            (14, [0b1010_0110; LANES]),
            (16, [3, 9, 15, 0, 8, 6, 13, 4]),
            (17, [1, 7, 0, 2, 6, 5, 4, 3]),
        ];
        for (which, lanes) in expected {
            assert_eq!(short[which], lanes, "{which}");
        }
        assert_eq!(f64::from_bits(short[19][0]), -1e-310);
        assert_eq!(f64::from_bits(short[20][1]), 0.2);
        if let Some(long) = pulp::x86::V4::try_new().map(results) {
            for (which, (a, b)) in short.iter().zip(&long).enumerate() {
                assert_eq!(a, b, "{which}");
            }
        }
    }
}
