//! Narrow bands of real numbers in explicit vectors: the compiler's own copy columns to and from the stack.

use pulp::Simd;

use super::Tuning;
use super::end::{End, Lanes};
use super::kernels::LANES;
use super::narrow::Kernel;
use crate::block_lu::simd::{self, Lanes as Real};

/// A column is V vectors.
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

/// The columns first..last of a narrow band. False where the vectors do not fit the lanes.
pub(super) fn eliminate<L: Real>(end: &mut End<L>, source: Option<&[L]>, first: usize, last: usize) -> bool {
    simd::dispatch_for::<L, _>(LANES, Strip { end, source, first, last })
}

struct Strip<'a, L: Real> {
    end: &'a mut End<L>,
    source: Option<&'a [L]>,
    first: usize,
    last: usize,
}

impl<L: Real> pulp::WithSimd for Strip<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: Simd>(self, s: S) -> bool {
        let Self { end, source, first, last } = self;
        let Tuning::Narrow { registers, .. } = end.tuning else { return false };
        // Constants, so that those of other vectors are not compiled.
        if const { size_of::<L::V<S>>() == 8 * size_of::<L>() } {
            match registers {
                1 => end.eliminate_strip::<1>(Vectors::<S, 1>(s), source, first, last),
                2 => end.eliminate_strip::<2>(Vectors::<S, 2>(s), source, first, last),
                _ => end.eliminate_strip::<4>(Vectors::<S, 4>(s), source, first, last),
            }
            return true;
        }
        if const { size_of::<L::V<S>>() == 4 * size_of::<L>() } {
            match registers {
                1 => end.eliminate_strip::<1>(Vectors::<S, 2>(s), source, first, last),
                2 => end.eliminate_strip::<2>(Vectors::<S, 4>(s), source, first, last),
                _ => end.eliminate_strip::<4>(Vectors::<S, 8>(s), source, first, last),
            }
            return true;
        }
        false
    }
}
