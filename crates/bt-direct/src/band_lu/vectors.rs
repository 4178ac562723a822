//! Narrow bands in explicit vectors: the compiler's own copy columns of real numbers to and from the stack, and take complex ones
//! apart by shuffles.

use bt_formats::{RealScalar, Scalar};
use pulp::Simd;
use pulp::bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::Tuning;
use super::end::{End, Lanes};
use super::kernels::LANES;
use super::narrow::Kernel;
use crate::block_lu::simd::{self, Lanes as Real};

/// A column of real numbers is V vectors.
#[derive(Clone, Copy)]
struct Vectors<S, const V: usize>(S);

/// Vector v of a column.
#[inline(always)]
fn vector<L: Real, S: Simd>(column: &[Lanes<L>], v: usize) -> L::V<S> {
    let (w, each) = (L::lanes::<S>(), LANES / L::lanes::<S>());
    L::load(&column[v / each].0[v % each * w..])
}

#[inline(always)]
fn store<L: Real, S: Simd>(column: &mut [Lanes<L>], v: usize, value: L::V<S>) {
    let (w, each) = (L::lanes::<S>(), LANES / L::lanes::<S>());
    L::store::<S>(&mut column[v / each].0[v % each * w..], value);
}

impl<L: Real, S: Simd, const R: usize, const V: usize> Kernel<L, R> for Vectors<S, V> {
    type Multipliers = [L::V<S>; V];
    #[inline(always)]
    fn load(self, l: &[[L; LANES]; R]) -> [L::V<S>; V] {
        let mut out = [L::splat(self.0, L::default()); V];
        for v in 0..V {
            out[v] = L::load(&l.as_flattened()[v * L::lanes::<S>()..]);
        }
        out
    }
    #[inline(always)]
    fn subtract(self, w: &mut [Lanes<L>; R], l: [L::V<S>; V], u: L) {
        let u = L::splat(self.0, u);
        for v in 0..V {
            let updated = L::minus_product(self.0, l[v], u, vector::<L, S>(w, v));
            store::<L, S>(w, v, updated);
        }
    }
    #[inline(always)]
    fn pivot_lane(self, column: &[Lanes<L>; R], entering: L) -> Option<usize> {
        let s = self.0;
        let place = |v: usize| L::load(&L::RANKS.0[v * L::lanes::<S>()..]);
        let mut best = L::ranked(s, L::splat(s, entering), L::splat(s, L::RANKS.0[R * LANES]));
        for v in 0..V {
            best = L::larger(s, L::ranked(s, vector::<L, S>(column, v), place(v)), best);
        }
        L::rank(L::largest(s, best))
    }
    #[inline(always)]
    fn scaled(self, column: &[Lanes<L>; R], lane: usize, entering: L, r: L) -> [[L; LANES]; R] {
        let s = self.0;
        let (chosen, entering, r) = (L::splat(s, L::RANKS.0[lane]), L::splat(s, entering), L::splat(s, r));
        let mut l = [[L::default(); LANES]; R];
        for v in 0..V {
            let at = v * L::lanes::<S>();
            let column = L::where_equal(s, L::load(&L::RANKS.0[at..]), chosen, entering, vector::<L, S>(column, v));
            L::store(&mut l.as_flattened_mut()[at..], L::times(s, column, r));
        }
        l
    }
    #[inline(always)]
    fn note(self, u: &[[L; LANES]], max: &mut [L; LANES]) {
        let (s, w) = (self.0, L::lanes::<S>());
        let zero = L::splat(s, L::default());
        let mut taint = zero;
        for at in (0..LANES).step_by(w) {
            let mut largest = L::load(&max[at..]);
            for u in u {
                let u = L::load(&u[at..]);
                largest = L::max_modulus(s, largest, u);
                taint = L::minus_product(s, u, zero, taint);
            }
            L::store(&mut max[at..], largest);
        }
        // NaN where some u was not finite
        max[0] += L::total(s, taint);
    }
}

/// A column of complex numbers is V vectors of their parts, real and imaginary ones in turn.
#[derive(Clone, Copy)]
struct Parts<S, const V: usize>(S);

/// A complex number, whose parts are its storage.
pub(super) trait Complex: Scalar<Real: Real + Pod> + Pod {}
impl<T: Scalar<Real: Real + Pod> + Pod> Complex for T {}

/// Parts of the columns of lanes.
const PARTS: usize = 2 * LANES;

/// Vector v of a column's parts.
#[inline(always)]
fn parts<T: Complex, S: Simd>(column: &[Lanes<T>], v: usize) -> <T::Real as Real>::V<S> {
    let (w, each) = (T::Real::lanes::<S>(), PARTS / T::Real::lanes::<S>());
    T::Real::load::<S>(&cast_slice(&column[v / each].0)[v % each * w..])
}

/// re, im, re, im …
#[inline(always)]
fn in_turn<L: Real, S: Simd>(s: S, re: L, im: L) -> L::V<S> {
    let mut places = [L::default(); simd::PADDED];
    places.iter_mut().skip(1).step_by(2).for_each(|p| *p = L::from_f64(1.0));
    L::where_equal(s, L::load(&places), L::splat(s, L::default()), L::splat(s, re), L::splat(s, im))
}

impl<T: Complex, S: Simd, const R: usize, const V: usize> Kernel<T, R> for Parts<S, V> {
    /// l, and (im l, −re l): a product with u takes one of both for each part of u.
    type Multipliers = [[<T::Real as Real>::V<S>; V]; 2];
    #[inline(always)]
    fn load(self, l: &[[T; LANES]; R]) -> Self::Multipliers {
        let (s, w, l) = (self.0, T::Real::lanes::<S>(), cast_slice(l.as_flattened()));
        let (one, mut out) = (T::Real::from_f64(1.0), [[T::Real::splat(s, bt_formats::zero()); V]; 2]);
        for v in 0..V {
            out[0][v] = T::Real::load(&l[v * w..]);
            out[1][v] = T::Real::times(s, T::Real::swapped(s, out[0][v]), in_turn(s, one, -one));
        }
        out
    }
    #[inline(always)]
    fn subtract(self, column: &mut [Lanes<T>; R], [l, turned]: Self::Multipliers, u: T) {
        let (s, w, each) = (self.0, T::Real::lanes::<S>(), PARTS / T::Real::lanes::<S>());
        let (re, im) = (T::Real::splat(s, u.re()), T::Real::splat(s, u.im()));
        for v in 0..V {
            // In the order of `mul_add`.
            let plus_im = T::Real::plus_product(s, turned[v], im, parts::<T, S>(column, v));
            let both = T::Real::minus_product(s, l[v], re, plus_im);
            T::Real::store::<S>(&mut cast_slice_mut(&mut column[v / each].0)[v % each * w..], both);
        }
    }
    #[inline(always)]
    fn pivot_lane(self, column: &[Lanes<T>; R], entering: T) -> Option<usize> {
        let s = self.0;
        let rank = |lane: usize| T::Real::splat(s, T::Real::RANKS.0[lane]);
        let mut best = T::Real::ranked(s, T::Real::splat(s, entering.abs1()), rank(R * LANES));
        for v in 0..V {
            let x = parts::<T, S>(column, v);
            let modulus = T::Real::plus_modulus(s, T::Real::modulus(s, x), T::Real::swapped(s, x));
            let place = T::Real::load(&T::Real::PAIR_RANKS.0[v * T::Real::lanes::<S>()..]);
            best = T::Real::larger(s, T::Real::ranked(s, modulus, place), best);
        }
        T::Real::rank(T::Real::largest(s, best))
    }
    #[inline(always)]
    fn scaled(self, column: &[Lanes<T>; R], lane: usize, entering: T, r: T) -> [[T; LANES]; R] {
        let (s, w) = (self.0, T::Real::lanes::<S>());
        let (chosen, entering) = (T::Real::splat(s, T::Real::RANKS.0[lane]), in_turn(s, entering.re(), entering.im()));
        let (re, im) = (T::Real::splat(s, r.re()), in_turn(s, -r.im(), r.im()));
        let one = T::Real::splat(s, T::Real::from_f64(1.0));
        let mut l = [[T::default(); LANES]; R];
        for v in 0..V {
            let place = T::Real::load(&T::Real::PAIR_RANKS.0[v * w..]);
            let x = T::Real::where_equal(s, place, chosen, entering, parts::<T, S>(column, v));
            // Rounded as a product of two numbers is.
            let other = T::Real::times(s, T::Real::swapped(s, x), im);
            let product = T::Real::plus_product(s, T::Real::times(s, x, re), one, other);
            T::Real::store(&mut cast_slice_mut(l.as_flattened_mut())[v * w..], product);
        }
        l
    }
    #[inline(always)]
    fn note(self, u: &[[T; LANES]], max: &mut [T::Real; LANES]) {
        let (s, w) = (self.0, T::Real::lanes::<S>());
        let zero = T::Real::splat(s, bt_formats::zero());
        let (mut taint, mut sizes) = (zero, [bt_formats::zero::<T::Real>(); PARTS]);
        for at in (0..PARTS).step_by(w) {
            let mut largest = zero;
            for u in u {
                let u = T::Real::load(&cast_slice(u)[at..]);
                let modulus = T::Real::plus_modulus(s, T::Real::modulus(s, u), T::Real::swapped(s, u));
                largest = T::Real::larger(s, modulus, largest);
                taint = T::Real::minus_product(s, u, zero, taint);
            }
            T::Real::store(&mut sizes[at..], largest);
        }
        for k in 0..LANES {
            max[k] = max[k].max_nan(sizes[2 * k]);
        }
        // NaN where some u was not finite
        max[0] += T::Real::total(s, taint);
    }
}

/// The columns first..last of a narrow band of real numbers. False where the vectors do not fit the lanes.
pub(super) fn eliminate<L: Real>(end: &mut End<L>, source: Option<&[L]>, first: usize, last: usize) -> bool {
    simd::dispatch_for::<L, _>(LANES, Reals(Strip { end, source, first, last }))
}

/// The same of complex numbers.
pub(super) fn eliminate_complex<T: Complex>(end: &mut End<T>, source: Option<&[T]>, first: usize, last: usize) -> bool {
    simd::dispatch_for::<T::Real, _>(PARTS, Complexes(Strip { end, source, first, last }))
}

struct Strip<'a, T: Scalar> {
    end: &'a mut End<T>,
    source: Option<&'a [T]>,
    first: usize,
    last: usize,
}

impl<T: Scalar> Strip<'_, T> {
    /// In registers of a column each: one, two or four times the vectors of the first kernel.
    #[inline(always)]
    fn run(self, one: impl Kernel<T, 1>, two: impl Kernel<T, 2>, four: impl Kernel<T, 4>) -> bool {
        let Self { end, source, first, last } = self;
        let Tuning::Narrow { registers, .. } = end.tuning else { return false };
        match registers {
            1 => end.eliminate_strip::<1>(one, source, first, last),
            2 => end.eliminate_strip::<2>(two, source, first, last),
            _ => end.eliminate_strip::<4>(four, source, first, last),
        }
        true
    }
}

struct Reals<'a, L: Real>(Strip<'a, L>);

impl<L: Real> pulp::WithSimd for Reals<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> bool {
        // Constants, so that those of other vectors are not compiled.
        if const { size_of::<L::V<S>>() == 8 * size_of::<L>() } {
            return self.0.run(Vectors::<S, 1>(s), Vectors::<S, 2>(s), Vectors::<S, 4>(s));
        }
        if const { size_of::<L::V<S>>() == 4 * size_of::<L>() } {
            return self.0.run(Vectors::<S, 2>(s), Vectors::<S, 4>(s), Vectors::<S, 8>(s));
        }
        false
    }
}

struct Complexes<'a, T: Complex>(Strip<'a, T>);

impl<T: Complex> pulp::WithSimd for Complexes<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> bool {
        if const { size_of::<<T::Real as Real>::V<S>>() == 8 * size_of::<T>() } {
            return self.0.run(Parts::<S, 1>(s), Parts::<S, 2>(s), Parts::<S, 4>(s));
        }
        if const { size_of::<<T::Real as Real>::V<S>>() == 4 * size_of::<T>() } {
            return self.0.run(Parts::<S, 2>(s), Parts::<S, 4>(s), Parts::<S, 8>(s));
        }
        if const { size_of::<<T::Real as Real>::V<S>>() == 2 * size_of::<T>() } {
            return self.0.run(Parts::<S, 4>(s), Parts::<S, 8>(s), Parts::<S, 16>(s));
        }
        false
    }
}
