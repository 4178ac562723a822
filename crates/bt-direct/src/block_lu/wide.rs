//! Vectors of numbers, real or complex. In work space the w complex numbers of a vector are their real parts, then the imaginary ones.

use bt_formats::{Scalar, c32, c64};
use pulp::Simd;

use super::simd::{Aligned, Lanes, PADDED};

/// A number and its vectors; real ones come from [`Lanes`].
pub(crate) trait Wide: Scalar<Real: Lanes> {
    /// Real numbers in a number.
    const PARTS: usize;
    /// A vector of the instruction set, or two.
    type V<S: Simd>: Copy;
    /// The first numbers of a slice: a vector of them, or fewer and then zeros.
    fn read<S: Simd>(s: S, x: &[Self]) -> Self::V<S>;
    /// To the first numbers of a slice: a vector of them, or as many as it has.
    fn write<S: Simd>(s: S, x: &mut [Self], v: Self::V<S>);
    /// A vector in work space.
    fn load<S: Simd>(s: S, x: &[Self::Real]) -> Self::V<S>;
    /// To a vector in work space.
    fn store<S: Simd>(s: S, x: &mut [Self::Real], v: Self::V<S>);
    /// The number in work space at `at`; its imaginary part is `stride` behind it.
    fn get(x: &[Self::Real], at: usize, stride: usize) -> Self;
    /// To that place.
    fn put(x: &mut [Self::Real], at: usize, stride: usize, v: Self);
    /// One number in all places.
    fn splat<S: Simd>(s: S, x: Self) -> Self::V<S>;
    /// c + a·b, fused where the instruction set can.
    fn plus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// c − a·b
    fn minus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// a·r, r real
    fn scaled<S: Simd>(s: S, a: Self::V<S>, r: Real<Self, S>) -> Self::V<S>;
    /// a·b
    fn times<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// |re a| + |im a|
    fn modulus<S: Simd>(s: S, a: Self::V<S>) -> Real<Self, S>;
    /// sum + |a|, the true modulus: of complex numbers without care for squares that overflow or vanish.
    fn plus_modulus<S: Simd>(s: S, sum: Real<Self, S>, a: Self::V<S>) -> Real<Self, S>;
}

/// A vector of real numbers.
pub(crate) type Real<T, S> = <<T as faer::traits::ComplexField>::Real as Lanes>::V<S>;

macro_rules! real {
    ($($t:ident)*) => {$(
        impl Wide for $t {
            const PARTS: usize = 1;
            type V<S: Simd> = <$t as Lanes>::V<S>;
            #[inline(always)]
            fn read<S: Simd>(s: S, x: &[Self]) -> <$t as Lanes>::V<S> {
                if x.len() >= <$t as Lanes>::lanes::<S>() { <$t as Lanes>::load::<S>(x) } else { <$t as Lanes>::load_part(s, x) }
            }
            #[inline(always)]
            fn write<S: Simd>(s: S, x: &mut [Self], v: <$t as Lanes>::V<S>) {
                if x.len() >= <$t as Lanes>::lanes::<S>() { <$t as Lanes>::store::<S>(x, v) } else { <$t as Lanes>::store_part(s, x, v) }
            }
            #[inline(always)]
            fn load<S: Simd>(_: S, x: &[Self]) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::load::<S>(x)
            }
            #[inline(always)]
            fn store<S: Simd>(_: S, x: &mut [Self], v: <$t as Lanes>::V<S>) {
                <$t as Lanes>::store::<S>(x, v);
            }
            #[inline(always)]
            fn get(x: &[Self], at: usize, _: usize) -> Self {
                x[at]
            }
            #[inline(always)]
            fn put(x: &mut [Self], at: usize, _: usize, v: Self) {
                x[at] = v;
            }
            #[inline(always)]
            fn splat<S: Simd>(s: S, x: Self) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::splat(s, x)
            }
            #[inline(always)]
            fn plus_product<S: Simd>(
                s: S,
                a: <$t as Lanes>::V<S>,
                b: <$t as Lanes>::V<S>,
                c: <$t as Lanes>::V<S>,
            ) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::plus_product(s, a, b, c)
            }
            #[inline(always)]
            fn minus_product<S: Simd>(
                s: S,
                a: <$t as Lanes>::V<S>,
                b: <$t as Lanes>::V<S>,
                c: <$t as Lanes>::V<S>,
            ) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::minus_product(s, a, b, c)
            }
            #[inline(always)]
            fn scaled<S: Simd>(s: S, a: <$t as Lanes>::V<S>, r: <$t as Lanes>::V<S>) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::times(s, a, r)
            }
            #[inline(always)]
            fn times<S: Simd>(s: S, a: <$t as Lanes>::V<S>, b: <$t as Lanes>::V<S>) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::times(s, a, b)
            }
            #[inline(always)]
            fn modulus<S: Simd>(s: S, a: <$t as Lanes>::V<S>) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::modulus(s, a)
            }
            #[inline(always)]
            fn plus_modulus<S: Simd>(s: S, sum: <$t as Lanes>::V<S>, a: <$t as Lanes>::V<S>) -> <$t as Lanes>::V<S> {
                <$t as Lanes>::plus_modulus(s, sum, a)
            }
        }
    )*};
}

real!(f32 f64);

macro_rules! complex {
    ($($t:ident of $r:ident),*) => {$(
        impl Wide for $t {
            const PARTS: usize = 2;
            type V<S: Simd> = [<$r as Lanes>::V<S>; 2];
            #[inline(always)]
            fn read<S: Simd>(_: S, x: &[Self]) -> Self::V<S> {
                let w = <$r as Lanes>::lanes::<S>();
                let mut parts = Aligned([[0.0; PADDED]; 2]);
                if x.len() >= w {
                    for (i, v) in x[..w].iter().enumerate() {
                        (parts.0[0][i], parts.0[1][i]) = (v.re, v.im);
                    }
                } else {
                    for (i, v) in x.iter().enumerate() {
                        (parts.0[0][i], parts.0[1][i]) = (v.re, v.im);
                    }
                }
                [<$r as Lanes>::load::<S>(&parts.0[0]), <$r as Lanes>::load::<S>(&parts.0[1])]
            }
            #[inline(always)]
            fn write<S: Simd>(_: S, x: &mut [Self], v: Self::V<S>) {
                let w = <$r as Lanes>::lanes::<S>();
                let mut parts = Aligned([[0.0; PADDED]; 2]);
                <$r as Lanes>::store::<S>(&mut parts.0[0], v[0]);
                <$r as Lanes>::store::<S>(&mut parts.0[1], v[1]);
                if x.len() >= w {
                    for (i, x) in x[..w].iter_mut().enumerate() {
                        *x = Self::new(parts.0[0][i], parts.0[1][i]);
                    }
                } else {
                    for (i, x) in x.iter_mut().enumerate() {
                        *x = Self::new(parts.0[0][i], parts.0[1][i]);
                    }
                }
            }
            #[inline(always)]
            fn load<S: Simd>(_: S, x: &[$r]) -> Self::V<S> {
                let (re, im) = x.split_at(<$r as Lanes>::lanes::<S>());
                [<$r as Lanes>::load::<S>(re), <$r as Lanes>::load::<S>(im)]
            }
            #[inline(always)]
            fn store<S: Simd>(_: S, x: &mut [$r], v: Self::V<S>) {
                let (re, im) = x.split_at_mut(<$r as Lanes>::lanes::<S>());
                <$r as Lanes>::store::<S>(re, v[0]);
                <$r as Lanes>::store::<S>(im, v[1]);
            }
            #[inline(always)]
            fn get(x: &[$r], at: usize, stride: usize) -> Self {
                Self::new(x[at], x[at + stride])
            }
            #[inline(always)]
            fn put(x: &mut [$r], at: usize, stride: usize, v: Self) {
                (x[at], x[at + stride]) = (v.re, v.im);
            }
            #[inline(always)]
            fn splat<S: Simd>(s: S, x: Self) -> Self::V<S> {
                [<$r as Lanes>::splat(s, x.re), <$r as Lanes>::splat(s, x.im)]
            }
            #[inline(always)]
            fn plus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S> {
                let re = <$r as Lanes>::minus_product(s, a[1], b[1], <$r as Lanes>::plus_product(s, a[0], b[0], c[0]));
                let im = <$r as Lanes>::plus_product(s, a[1], b[0], <$r as Lanes>::plus_product(s, a[0], b[1], c[1]));
                [re, im]
            }
            #[inline(always)]
            fn minus_product<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S> {
                let re = <$r as Lanes>::plus_product(s, a[1], b[1], <$r as Lanes>::minus_product(s, a[0], b[0], c[0]));
                let im = <$r as Lanes>::minus_product(s, a[1], b[0], <$r as Lanes>::minus_product(s, a[0], b[1], c[1]));
                [re, im]
            }
            #[inline(always)]
            fn scaled<S: Simd>(s: S, a: Self::V<S>, r: <$r as Lanes>::V<S>) -> Self::V<S> {
                [<$r as Lanes>::times(s, a[0], r), <$r as Lanes>::times(s, a[1], r)]
            }
            #[inline(always)]
            fn times<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S> {
                let re = <$r as Lanes>::minus_product(s, a[1], b[1], <$r as Lanes>::times(s, a[0], b[0]));
                [re, <$r as Lanes>::plus_product(s, a[1], b[0], <$r as Lanes>::times(s, a[0], b[1]))]
            }
            #[inline(always)]
            fn modulus<S: Simd>(s: S, a: Self::V<S>) -> <$r as Lanes>::V<S> {
                <$r as Lanes>::plus_modulus(s, <$r as Lanes>::modulus(s, a[0]), a[1])
            }
            #[inline(always)]
            fn plus_modulus<S: Simd>(s: S, sum: <$r as Lanes>::V<S>, a: Self::V<S>) -> <$r as Lanes>::V<S> {
                let square = <$r as Lanes>::plus_product(s, a[1], a[1], <$r as Lanes>::times(s, a[0], a[0]));
                <$r as Lanes>::plus_modulus(s, sum, <$r as Lanes>::square_root(s, square))
            }
        }
    )*};
}

complex!(c32 of f32, c64 of f64);
