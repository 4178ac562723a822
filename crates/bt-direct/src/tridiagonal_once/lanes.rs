//! Eight lanes of numbers and what the eliminations do with them: plain arrays for every scalar and machine, registers of AVX-512, or
//! pairs of registers of AVX2, for `f64`.
//!
//! The transpositions are why the registers are named: written as loops over arrays, 8 × 8 transpositions become
//! gathers, and the whole sweep takes twice the time (measured).

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use bt_formats::{Numbers, NumbersMut};
use bt_formats::{RealScalar, Scalar, ScalarKind, one, zero};
#[cfg(target_arch = "x86_64")]
use bt_simd::Eight;
#[cfg(target_arch = "x86_64")]
use pulp::bytemuck::cast;
use pulp::{NullaryFnOnce, Simd, WithSimd};

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
                return Eight::vectorize(simd, Work(Eights(simd), self, PhantomData));
            }
            if let Some(simd) = bt_simd::avx2() {
                return Eight::vectorize(simd, Work(Eights(simd), self, PhantomData));
            }
        }
        bt_simd::dispatch_base(OnArrays(self, PhantomData))
    }
}

/// A kernel on an instruction set that has been chosen.
struct Work<I, K, T>(I, K, PhantomData<T>);

impl<T: Scalar, I: Isa<T>, K: Kernel<T>> NullaryFnOnce for Work<I, K, T> {
    type Output = K::Output;
    #[inline(always)]
    fn call(self) -> K::Output {
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

// These fold to nothing once T is known, and do so at once: a call by `dyn Any` would be in the compiler's way.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn doubles<T: Scalar>(from: &[T; W]) -> &[f64; W] {
    let Numbers::F64(from) = T::numbers(from) else { unreachable!("only f64 comes here") };
    from.first_chunk().expect("eight numbers")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn doubles_mut<T: Scalar>(to: &mut [T; W]) -> &mut [f64; W] {
    let NumbersMut::F64(to) = T::numbers_mut(to) else { unreachable!("only f64 comes here") };
    to.first_chunk_mut().expect("eight numbers")
}

/// Registers of eight `f64`; the scalar T must be `f64`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Eights<E>(pub E);

#[cfg(target_arch = "x86_64")]
impl<T: Scalar, E: Eight + Simd> Isa<T> for Eights<E> {
    type V = E::V;
    type M = E::M;
    #[inline(always)]
    fn load(self, from: &[T; W]) -> E::V {
        cast(*doubles(from))
    }
    #[inline(always)]
    fn store(self, v: E::V, to: &mut [T; W]) {
        *doubles_mut(to) = cast::<E::V, [f64; W]>(v);
    }
    #[inline(always)]
    fn splat(self, v: T) -> E::V {
        let [v, ..] = *doubles(&[v; W]);
        self.0.splat(v)
    }
    #[inline(always)]
    fn mul(self, a: E::V, b: E::V) -> E::V {
        self.0.mul(a, b)
    }
    #[inline(always)]
    fn minus_mul(self, c: E::V, a: E::V, b: E::V) -> E::V {
        self.0.minus_mul(c, a, b)
    }
    #[inline(always)]
    fn reciprocal(self, a: E::V) -> E::V {
        self.0.div(self.0.splat(1.0), a)
    }
    #[inline(always)]
    fn divide(self, a: E::V, p: Pivot<T>) -> E::V {
        let (modulus, sign) = p.parts();
        let quotient = self.0.div(a, self.splat(T::from_real(modulus)));
        self.0.mul(quotient, self.splat(sign))
    }
    #[inline(always)]
    fn abs1(self, a: E::V) -> E::V {
        self.0.abs(a)
    }
    #[inline(always)]
    fn max(self, a: E::V, b: E::V) -> E::V {
        self.0.max(a, b)
    }
    #[inline(always)]
    fn less(self, a: E::V, b: E::V) -> E::M {
        self.0.less(a, b)
    }
    #[inline(always)]
    fn and(self, a: E::M, b: E::M) -> E::M {
        self.0.both(a, b)
    }
    #[inline(always)]
    fn all(self, a: E::M) -> bool {
        self.0.bits(a) == u8::MAX
    }
    #[inline(always)]
    fn truth(self) -> E::M {
        self.0.mask(u8::MAX)
    }
    #[inline(always)]
    fn select(self, m: E::M, a: E::V, b: E::V) -> E::V {
        self.0.select(m, a, b)
    }
    #[inline(always)]
    fn apart<K: Kernel<T>>(self, kernel: K) -> K::Output {
        lines::apart(self.0, Work(self, kernel, PhantomData))
    }
    #[inline(always)]
    fn transpose(self, rows: [E::V; W]) -> [E::V; W] {
        self.0.transpose(rows)
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
                transposes(Eights(simd));
            }
            if let Some(simd) = bt_simd::avx2() {
                transposes(Eights(simd));
            }
        }
    }
}
