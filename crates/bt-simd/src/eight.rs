//! Eight doubles: one register of AVX-512, or two of AVX2, with the same results bit by bit.
//!
//! A loop written over [`Eight`] is compiled once for each of them. Moduli are compared by their bits, of which infinity has larger
//! ones than all numbers and NaN larger ones than infinity, so that what is not finite gets through every maximum.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

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
    /// Values of eight doubles for which there are registers.
    const VALUES: usize;

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
    /// Lanes K … 7 of v, zeros behind them; 0 < K < 8.
    fn lanes_from<const K: usize>(self, v: Self::V) -> Self::V;
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
            bits(e.lanes_from::<1>(c)),
            bits(e.lanes_from::<2>(c)),
            bits(e.lanes_from::<3>(c)),
            bits(e.lanes_from::<4>(c)),
            bits(e.lanes_from::<5>(c)),
            bits(e.lanes_from::<6>(c)),
            bits(e.lanes_from::<7>(c)),
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
        for from in 1..LANES {
            let moved = |lane: usize| if from + lane < LANES { (from + lane + 1) as f64 / 10.0 } else { 0.0 };
            assert_eq!(numbers(57 + from), std::array::from_fn(moved), "{from}");
        }
        assert_eq!(f64::from_bits(short[41][0]), -1e-310);
        assert_eq!(f64::from_bits(short[42][1]), 0.2);
        if let Some(long) = pulp::x86::V4::try_new().map(results) {
            for (which, (a, b)) in short.iter().zip(&long).enumerate() {
                assert_eq!(a, b, "{which}");
            }
        }
    }
}
