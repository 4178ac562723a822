//! Eight lanes of numbers and what the eliminations do with them: plain arrays for every scalar and machine, registers of AVX-512, or
//! pairs of registers of AVX2, for `f64`.
//!
//! The transpositions are why the registers are named: written as loops over arrays, 8 × 8 transpositions become
//! gathers, and the whole sweep takes twice the time (measured).

use std::marker::PhantomData;

use bt_formats::{RealScalar, Scalar, ScalarKind, one, zero};
#[cfg(target_arch = "x86_64")]
use bt_formats::{Reals, RealsMut};

use pulp::{Simd, WithSimd};

use crate::lines;
use crate::pivot::Pivot;

/// Lanes of a vector.
pub(crate) const W: usize = 8;
/// Vectors worked on together, so that one hides the latency of the other's divisions.
pub(super) const C: usize = 2;
/// Pieces of a tile.
pub(super) const PIECES: usize = C * W;

/// Arithmetic on vectors of eight. Moduli and their comparisons live in the real parts.
pub(crate) trait Isa<T: Scalar>: Copy {
    /// Eight numbers.
    type V: Copy;
    /// Eight truths.
    type M: Copy;
    fn load(self, from: &[T; W]) -> Self::V;
    fn store(self, v: Self::V, to: &mut [T; W]);
    fn splat(self, v: T) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// c − a·b.
    fn minus_mul(self, c: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// 1/a.
    fn reciprocal(self, a: Self::V) -> Self::V;
    /// a/p.
    fn divide(self, a: Self::V, p: Pivot<T>) -> Self::V;
    /// |re a| + |im a|.
    fn abs1(self, a: Self::V) -> Self::V;
    /// The larger of two moduli.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// a < b of moduli; false for NaN.
    fn less(self, a: Self::V, b: Self::V) -> Self::M;
    fn and(self, a: Self::M, b: Self::M) -> Self::M;
    fn all(self, a: Self::M) -> bool;
    fn truth(self) -> Self::M;
    /// a where m holds, b elsewhere.
    fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// Vector i of the result holds element i of all vectors.
    fn transpose(self, rows: [Self::V; W]) -> [Self::V; W];
    /// Runs a kernel as a function of its own.
    fn apart<K: Kernel<T>>(self, kernel: K) -> K::Output;

    /// Rows `at .. at + 8` of eight pieces that lie `stride` apart, a vector for each row.
    #[inline(always)]
    fn load_rows(self, from: &[T], at: usize, stride: usize) -> [Self::V; W] {
        let mut rows = [self.splat(zero()); W];
        for k in 0..W {
            rows[k] = self.load(from[at + k * stride..].first_chunk().expect("eight rows of every piece"));
        }
        self.transpose(rows)
    }

    /// The inverse of [`Isa::load_rows`].
    #[inline(always)]
    fn store_rows(self, v: [Self::V; W], to: &mut [T], at: usize, stride: usize) {
        let rows = self.transpose(v);
        for k in 0..W {
            self.store(rows[k], to[at + k * stride..].first_chunk_mut().expect("eight rows of every piece"));
        }
    }
}

/// Work for one of the instruction sets.
pub(crate) trait Kernel<T: Scalar>: Sized {
    type Output;
    fn with<S: Isa<T>>(self, isa: S) -> Self::Output;

    /// Runs it on the one in use.
    fn run(self) -> Self::Output {
        if const { !lines::is::<T>(ScalarKind::F64) } {
            return bt_simd::dispatch_short(OnArrays(self, PhantomData));
        }
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = bt_simd::avx512() {
                return Simd::vectorize(simd, Work(Avx512(simd), self, PhantomData));
            }
            if let Some(simd) = bt_simd::avx2() {
                return Simd::vectorize(simd, Work(Avx2(simd), self, PhantomData));
            }
        }
        bt_simd::dispatch_base(OnArrays(self, PhantomData))
    }
}

/// A kernel on an instruction set that has been chosen.
struct Work<I, K, T>(I, K, PhantomData<T>);

impl<T: Scalar, I: Isa<T>, K: Kernel<T>> WithSimd for Work<I, K, T> {
    type Output = K::Output;
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        self.1.with(self.0)
    }
}

/// A kernel on arrays.
struct OnArrays<K, T>(K, PhantomData<T>);

impl<T: Scalar, K: Kernel<T>> WithSimd for OnArrays<K, T> {
    type Output = K::Output;
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> K::Output {
        self.0.with(Plain(simd))
    }
}

/// Arrays, for every scalar, on the instruction set S.
#[derive(Clone, Copy)]
pub(crate) struct Plain<S>(pub(crate) S);

impl<T: Scalar, S: Simd> Isa<T> for Plain<S> {
    type V = [T; W];
    type M = [bool; W];
    #[inline(always)]
    fn load(self, from: &[T; W]) -> [T; W] {
        *from
    }
    #[inline(always)]
    fn store(self, v: [T; W], to: &mut [T; W]) {
        *to = v;
    }
    #[inline(always)]
    fn splat(self, v: T) -> [T; W] {
        [v; W]
    }
    #[inline(always)]
    fn mul(self, mut a: [T; W], b: [T; W]) -> [T; W] {
        for k in 0..W {
            a[k] *= b[k];
        }
        a
    }
    #[inline(always)]
    fn minus_mul(self, mut c: [T; W], a: [T; W], b: [T; W]) -> [T; W] {
        for k in 0..W {
            c[k] -= a[k] * b[k];
        }
        c
    }
    #[inline(always)]
    fn reciprocal(self, mut a: [T; W]) -> [T; W] {
        for k in 0..W {
            a[k] = if T::IS_REAL { one::<T>() / a[k] } else { Pivot::new(a[k]).divide(one()) };
        }
        a
    }
    #[inline(always)]
    fn divide(self, mut a: [T; W], p: Pivot<T>) -> [T; W] {
        for k in 0..W {
            a[k] = p.divide(a[k]);
        }
        a
    }
    #[inline(always)]
    fn abs1(self, mut a: [T; W]) -> [T; W] {
        for k in 0..W {
            a[k] = T::from_real(a[k].abs1());
        }
        a
    }
    #[inline(always)]
    fn max(self, mut a: [T; W], b: [T; W]) -> [T; W] {
        for k in 0..W {
            a[k] = T::from_real(a[k].re().max_nan(b[k].re()));
        }
        a
    }
    #[inline(always)]
    fn less(self, a: [T; W], b: [T; W]) -> [bool; W] {
        let mut m = [false; W];
        for k in 0..W {
            m[k] = a[k].re() < b[k].re();
        }
        m
    }
    #[inline(always)]
    fn and(self, mut a: [bool; W], b: [bool; W]) -> [bool; W] {
        for k in 0..W {
            a[k] &= b[k];
        }
        a
    }
    #[inline(always)]
    fn all(self, a: [bool; W]) -> bool {
        a == [true; W]
    }
    #[inline(always)]
    fn truth(self) -> [bool; W] {
        [true; W]
    }
    #[inline(always)]
    fn select(self, m: [bool; W], mut a: [T; W], b: [T; W]) -> [T; W] {
        for k in 0..W {
            a[k] = if m[k] { a[k] } else { b[k] };
        }
        a
    }
    #[inline(always)]
    fn apart<K: Kernel<T>>(self, kernel: K) -> K::Output {
        lines::apart(self.0, Work(self, kernel, PhantomData))
    }
    #[inline(always)]
    fn transpose(self, rows: [[T; W]; W]) -> [[T; W]; W] {
        let mut out = rows;
        for i in 0..W {
            for k in 0..W {
                out[i][k] = rows[k][i];
            }
        }
        out
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;

// These fold to nothing once T is known, and do so at once: a call by `dyn Any` would be in the compiler's way.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn doubles<T: Scalar>(from: &[T; W]) -> &[f64; W] {
    let Some(Reals::F64(from)) = T::reals(from) else { unreachable!("only f64 comes here") };
    from.first_chunk().expect("eight numbers")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn doubles_mut<T: Scalar>(to: &mut [T; W]) -> &mut [f64; W] {
    let Some(RealsMut::F64(to)) = T::reals_mut(to) else { unreachable!("only f64 comes here") };
    to.first_chunk_mut().expect("eight numbers")
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{__m512d, _CMP_LT_OQ};

    use bt_formats::Scalar;
    use pulp::bytemuck::cast;
    use pulp::x86::V4;

    use super::{Isa, Kernel, PhantomData, Pivot, W, Work, doubles, doubles_mut, lines};

    /// Registers of eight `f64`; the scalar T must be `f64`.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(pub V4);

    impl<T: Scalar> Isa<T> for Avx512 {
        type V = __m512d;
        type M = u8;
        #[inline(always)]
        fn load(self, from: &[T; W]) -> __m512d {
            cast(*doubles(from))
        }
        #[inline(always)]
        fn store(self, v: __m512d, to: &mut [T; W]) {
            *doubles_mut(to) = cast::<__m512d, [f64; W]>(v);
        }
        #[inline(always)]
        fn splat(self, v: T) -> __m512d {
            cast(*doubles(&[v; W]))
        }
        #[inline(always)]
        fn mul(self, a: __m512d, b: __m512d) -> __m512d {
            self.0.avx512f._mm512_mul_pd(a, b)
        }
        #[inline(always)]
        fn minus_mul(self, c: __m512d, a: __m512d, b: __m512d) -> __m512d {
            self.0.avx512f._mm512_fnmadd_pd(a, b, c)
        }
        #[inline(always)]
        fn reciprocal(self, a: __m512d) -> __m512d {
            self.0.avx512f._mm512_div_pd(cast([1.0f64; W]), a)
        }
        #[inline(always)]
        fn divide(self, a: __m512d, p: Pivot<T>) -> __m512d {
            let (modulus, sign) = p.parts();
            let quotient = self.0.avx512f._mm512_div_pd(a, self.splat(T::from_real(modulus)));
            self.0.avx512f._mm512_mul_pd(quotient, self.splat(sign))
        }
        #[inline(always)]
        fn abs1(self, a: __m512d) -> __m512d {
            self.0.avx512f._mm512_abs_pd(a)
        }
        #[inline(always)]
        fn max(self, a: __m512d, b: __m512d) -> __m512d {
            self.0.avx512f._mm512_max_pd(a, b)
        }
        #[inline(always)]
        fn less(self, a: __m512d, b: __m512d) -> u8 {
            self.0.avx512f._mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b)
        }
        #[inline(always)]
        fn and(self, a: u8, b: u8) -> u8 {
            a & b
        }
        #[inline(always)]
        fn all(self, a: u8) -> bool {
            a == u8::MAX
        }
        #[inline(always)]
        fn truth(self) -> u8 {
            u8::MAX
        }
        #[inline(always)]
        fn select(self, m: u8, a: __m512d, b: __m512d) -> __m512d {
            self.0.avx512f._mm512_mask_blend_pd(m, b, a)
        }
        #[inline(always)]
        fn apart<K: Kernel<T>>(self, kernel: K) -> K::Output {
            lines::apart(self.0, Work(self, kernel, PhantomData))
        }
        #[inline(always)]
        fn transpose(self, r: [__m512d; W]) -> [__m512d; W] {
            let f = self.0.avx512f;
            let (mut s, mut t, mut out) = (r, r, r);
            // Pairs of lanes, pairs of pairs, halves.
            for k in 0..4 {
                s[2 * k] = f._mm512_unpacklo_pd(r[2 * k], r[2 * k + 1]);
                s[2 * k + 1] = f._mm512_unpackhi_pd(r[2 * k], r[2 * k + 1]);
            }
            for h in [0, 4] {
                for q in 0..2 {
                    t[h + q] = f._mm512_shuffle_f64x2::<0x88>(s[h + q], s[h + q + 2]);
                    t[h + q + 2] = f._mm512_shuffle_f64x2::<0xdd>(s[h + q], s[h + q + 2]);
                }
            }
            for q in 0..4 {
                out[q] = f._mm512_shuffle_f64x2::<0x88>(t[q], t[q + 4]);
                out[q + 4] = f._mm512_shuffle_f64x2::<0xdd>(t[q], t[q + 4]);
            }
            out
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256d, _CMP_LT_OQ};

    use bt_formats::Scalar;
    use pulp::bytemuck::cast;
    use pulp::x86::V3;

    use super::{Isa, Kernel, PhantomData, Pivot, W, Work, doubles, doubles_mut, lines};

    /// Two registers of four `f64`; the scalar T must be `f64`.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(pub V3);

    /// The lower lanes, and the upper ones.
    type Pair = [__m256d; 2];

    impl<T: Scalar> Isa<T> for Avx2 {
        type V = Pair;
        /// All bits of a lane, or none.
        type M = Pair;
        #[inline(always)]
        fn load(self, from: &[T; W]) -> Pair {
            cast(*doubles(from))
        }
        #[inline(always)]
        fn store(self, v: Pair, to: &mut [T; W]) {
            *doubles_mut(to) = cast::<Pair, [f64; W]>(v);
        }
        #[inline(always)]
        fn splat(self, v: T) -> Pair {
            let [v, ..] = *doubles(&[v; W]);
            [self.0.avx._mm256_set1_pd(v); 2]
        }
        #[inline(always)]
        fn mul(self, a: Pair, b: Pair) -> Pair {
            [self.0.avx._mm256_mul_pd(a[0], b[0]), self.0.avx._mm256_mul_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn minus_mul(self, c: Pair, a: Pair, b: Pair) -> Pair {
            let fma = self.0.fma;
            [fma._mm256_fnmadd_pd(a[0], b[0], c[0]), fma._mm256_fnmadd_pd(a[1], b[1], c[1])]
        }
        #[inline(always)]
        fn reciprocal(self, a: Pair) -> Pair {
            let one = self.0.avx._mm256_set1_pd(1.0);
            [self.0.avx._mm256_div_pd(one, a[0]), self.0.avx._mm256_div_pd(one, a[1])]
        }
        #[inline(always)]
        fn divide(self, a: Pair, p: Pivot<T>) -> Pair {
            let (modulus, sign) = p.parts();
            let (avx, p, s): (_, Pair, Pair) = (self.0.avx, self.splat(T::from_real(modulus)), self.splat(sign));
            let quotient = [avx._mm256_div_pd(a[0], p[0]), avx._mm256_div_pd(a[1], p[1])];
            [avx._mm256_mul_pd(quotient[0], s[0]), avx._mm256_mul_pd(quotient[1], s[1])]
        }
        #[inline(always)]
        fn abs1(self, a: Pair) -> Pair {
            let sign = self.0.avx._mm256_set1_pd(-0.0);
            [self.0.avx._mm256_andnot_pd(sign, a[0]), self.0.avx._mm256_andnot_pd(sign, a[1])]
        }
        #[inline(always)]
        fn max(self, a: Pair, b: Pair) -> Pair {
            [self.0.avx._mm256_max_pd(a[0], b[0]), self.0.avx._mm256_max_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn less(self, a: Pair, b: Pair) -> Pair {
            [self.0.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[0], b[0]), self.0.avx._mm256_cmp_pd::<_CMP_LT_OQ>(a[1], b[1])]
        }
        #[inline(always)]
        fn and(self, a: Pair, b: Pair) -> Pair {
            [self.0.avx._mm256_and_pd(a[0], b[0]), self.0.avx._mm256_and_pd(a[1], b[1])]
        }
        #[inline(always)]
        fn all(self, a: Pair) -> bool {
            self.0.avx._mm256_movemask_pd(self.0.avx._mm256_and_pd(a[0], a[1])) == 0xf
        }
        #[inline(always)]
        fn truth(self) -> Pair {
            [cast([u64::MAX; 4]); 2]
        }
        #[inline(always)]
        fn select(self, m: Pair, a: Pair, b: Pair) -> Pair {
            let avx = self.0.avx;
            [avx._mm256_blendv_pd(b[0], a[0], m[0]), avx._mm256_blendv_pd(b[1], a[1], m[1])]
        }
        #[inline(always)]
        fn apart<K: Kernel<T>>(self, kernel: K) -> K::Output {
            lines::apart(self.0, Work(self, kernel, PhantomData))
        }
        #[inline(always)]
        fn transpose(self, r: [Pair; W]) -> [Pair; W] {
            let mut out = r;
            // Quarters of four by four; those off the diagonal change places.
            for (rows, half) in [(0, 0), (0, 1), (4, 0), (4, 1)] {
                let quarter = self.four([r[rows][half], r[rows + 1][half], r[rows + 2][half], r[rows + 3][half]]);
                for k in 0..4 {
                    out[4 * half + k][rows / 4] = quarter[k];
                }
            }
            out
        }
    }

    impl Avx2 {
        #[inline(always)]
        fn four(self, r: [__m256d; 4]) -> [__m256d; 4] {
            let avx = self.0.avx;
            let (a, b) = (avx._mm256_unpacklo_pd(r[0], r[1]), avx._mm256_unpackhi_pd(r[0], r[1]));
            let (c, d) = (avx._mm256_unpacklo_pd(r[2], r[3]), avx._mm256_unpackhi_pd(r[2], r[3]));
            [
                avx._mm256_permute2f128_pd::<0x20>(a, c),
                avx._mm256_permute2f128_pd::<0x20>(b, d),
                avx._mm256_permute2f128_pd::<0x31>(a, c),
                avx._mm256_permute2f128_pd::<0x31>(b, d),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transposes<S: Isa<f64>>(isa: S) {
        let from: Vec<f64> = (0..11 * W).map(|i| i as f64).collect();
        let rows = isa.load_rows(&from, 1, 11);
        for (i, &v) in rows.iter().enumerate() {
            let mut out = [0.0; W];
            isa.store(v, &mut out);
            for (k, &x) in out.iter().enumerate() {
                assert_eq!(x, (1 + i + 11 * k) as f64);
            }
        }
        let mut back = vec![0.0; from.len()];
        isa.store_rows(rows, &mut back, 1, 11);
        for (i, (&x, &y)) in from.iter().zip(&back).enumerate() {
            let stored = (1..=W).contains(&(i % 11));
            assert_eq!(if stored { x } else { 0.0 }, y, "{i}");
        }
    }

    #[test]
    fn rows_of_pieces_are_loaded_and_stored_as_vectors() {
        transposes(Plain(pulp::Scalar::new()));
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = bt_simd::avx512() {
                transposes(Avx512(simd));
            }
            if let Some(simd) = bt_simd::avx2() {
                transposes(Avx2(simd));
            }
        }
    }
}
