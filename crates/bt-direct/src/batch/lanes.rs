//! Sixteen systems side by side: rows of lanes, and transposition between them and systems stored one after another.
//!
//! A lane performs the operations of the scalar algorithm in their order, without fused multiply-adds, so that the bits of
//! a solution depend neither on its neighbours nor on the machine's vectors.

use std::any::Any;

use bt_formats::{RealScalar, Scalar, one, zero};
use pulp::Simd;

use crate::pivot::Pivot;

/// Systems in a group. Two 512-bit vectors of doubles hide most of the latency of a division.
pub(super) const LANES: usize = 16;
/// Rows in a tile: what a transposition moves at once.
pub(super) const TILE: usize = 8;

/// One row of every system of a group, on a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Lanes<T>(pub [T; LANES]);

/// Consecutive rows of a group.
pub(super) type Tile<T> = [Lanes<T>; TILE];

impl<T: Scalar> Lanes<T> {
    #[inline(always)]
    pub(super) fn zero() -> Self {
        Self([zero(); LANES])
    }
}

/// Tiles in a block: what is read at once.
pub(super) const BLOCK: usize = 4;

/// Consecutive tiles of a group.
pub(super) type Block<T> = [Tile<T>; BLOCK];

/// A tile of zeros.
#[inline(always)]
pub(super) fn tile<T: Scalar>() -> Tile<T> {
    [Lanes::zero(); TILE]
}

/// A block of zeros.
#[inline(always)]
pub(super) fn block<T: Scalar>() -> Block<T> {
    [tile(); BLOCK]
}

/// v/p: the correctly rounded quotient of real scalars, without spurious overflow for complex ones.
#[inline(always)]
pub(super) fn divide<T: Scalar>(v: T, p: T) -> T {
    if T::IS_REAL { v / p } else { Pivot::new(p).divide(v) }
}

/// 1/p; infinite or NaN where p = 0 or where the reciprocal overflows.
#[inline(always)]
pub(super) fn reciprocal<T: Scalar>(p: T) -> T {
    divide(one(), p)
}

/// The larger of two; a NaN in `v` gets through.
#[inline(always)]
pub(super) fn max_with<R: RealScalar>(v: R, so_far: R) -> R {
    if v < so_far { so_far } else { v }
}

/// mᵀ.
#[inline(always)]
pub(super) fn transposed<S: Simd, T: Scalar>(simd: S, m: [[T; 8]; 8]) -> [[T; 8]; 8] {
    #[cfg(target_arch = "x86_64")]
    if let Some(out) = x86::transposed(simd, &m) {
        return out;
    }
    let _ = simd;
    std::array::from_fn(
        #[inline(always)]
        |i| {
            std::array::from_fn(
                #[inline(always)]
                |j| m[j][i],
            )
        },
    )
}

/// The same value as its own type: how generic code meets the instructions for one scalar. Both tests are of types,
/// decided when the code is compiled.
#[inline(always)]
fn cast<A: Any, B: Any + Copy>(a: &A) -> Option<B> {
    (a as &dyn Any).downcast_ref::<B>().copied()
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::__m256;

    use bt_simd::Eight;
    use pulp::bytemuck;
    use pulp::x86::{V3, V4};

    use super::{Scalar, Simd, cast};

    /// mᵀ where there are instructions for it: f64 and f32 on AVX-512, f64 and f32 on AVX2.
    #[inline(always)]
    pub(super) fn transposed<S: Simd, T: Scalar>(simd: S, m: &[[T; 8]; 8]) -> Option<[[T; 8]; 8]> {
        if let Some(m) = cast::<_, [[f64; 8]; 8]>(m) {
            if let Some(v4) = cast::<_, V4>(&simd) {
                return cast(&doubles(*v4, m));
            }
            if let Some(v3) = cast::<_, V3>(&simd) {
                return cast(&doubles(v3, m));
            }
        }
        if let Some(m) = cast::<_, [[f32; 8]; 8]>(m) {
            if let Some(v4) = cast::<_, V4>(&simd) {
                return cast(&f32_v3(*v4, m));
            }
            if let Some(v3) = cast::<_, V3>(&simd) {
                return cast(&f32_v3(v3, m));
            }
        }
        None
    }

    #[inline(always)]
    fn doubles<E: Eight>(simd: E, m: [[f64; 8]; 8]) -> [[f64; 8]; 8] {
        bytemuck::cast(simd.transpose(bytemuck::cast(m)))
    }

    /// Pairs of rows, pairs of pairs, halves.
    #[inline(always)]
    fn f32_v3(simd: V3, m: [[f32; 8]; 8]) -> [[f32; 8]; 8] {
        let v = simd.avx;
        let m: [__m256; 8] = bytemuck::cast(m);
        let mut q = m;
        for h in [0, 4] {
            let (lo, hi) = (v._mm256_unpacklo_ps(m[h], m[h + 1]), v._mm256_unpackhi_ps(m[h], m[h + 1]));
            let (lo2, hi2) = (v._mm256_unpacklo_ps(m[h + 2], m[h + 3]), v._mm256_unpackhi_ps(m[h + 2], m[h + 3]));
            // Columns c and c + 4 of four rows.
            q[h] = v._mm256_shuffle_ps::<0b01_00_01_00>(lo, lo2);
            q[h + 1] = v._mm256_shuffle_ps::<0b11_10_11_10>(lo, lo2);
            q[h + 2] = v._mm256_shuffle_ps::<0b01_00_01_00>(hi, hi2);
            q[h + 3] = v._mm256_shuffle_ps::<0b11_10_11_10>(hi, hi2);
        }
        let mut out = m;
        for c in 0..4 {
            out[c] = v._mm256_permute2f128_ps::<0x20>(q[c], q[c + 4]);
            out[c + 4] = v._mm256_permute2f128_ps::<0x31>(q[c], q[c + 4]);
        }
        bytemuck::cast(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::{c32, c64};
    use pulp::WithSimd;

    struct Check<T>([[T; 8]; 8]);

    impl<T: Scalar> WithSimd for Check<T> {
        type Output = [[T; 8]; 8];
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            transposed(simd, self.0)
        }
    }

    fn check<T: Scalar>() {
        let m: [[T; 8]; 8] = std::array::from_fn(|i| std::array::from_fn(|j| T::rounded((8 * i + j) as f64, i as f64)));
        let expected: [[T; 8]; 8] = std::array::from_fn(|i| std::array::from_fn(|j| m[j][i]));
        assert_eq!(bt_simd::dispatch(Check(m)), expected);
        assert_eq!(pulp::Scalar::new().vectorize(Check(m)), expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = bt_simd::avx2() {
            assert_eq!(Simd::vectorize(v3, Check(m)), expected);
        }
    }

    #[test]
    fn transposition_on_every_instruction_set() {
        check::<f32>();
        check::<f64>();
        check::<c32>();
        check::<c64>();
    }
}
