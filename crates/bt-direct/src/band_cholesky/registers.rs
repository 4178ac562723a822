//! Narrow bands of doubles in eight lanes (AVX-512 or AVX2), k ≤ 8: what a step changes stays in registers.
//!
//! ```text
//! lanes of w_c: column c of those to come, below its diagonal        d: the diagonals of eight columns
//!
//! r ← 1/d₀     m ← r·u     w_c ← w_c − m_c·(u without its first c lanes)     d ← d − m∘u     l ← u/√d₀
//! ```
//!
//! where u is the first column. Only the diagonals move from lane to lane, and the next pivot waits for a reciprocal, a product and a
//! difference. The operations on an element and their order are those of elimination column by column.

use std::any::Any;
use std::array::from_fn;
use std::hint::black_box;
use std::ops::Range;

use bt_formats::{Numbers, RealScalar, Scalar, ScalarKind, prefetch};
use bt_simd::Eight;
use pulp::bytemuck::{Pod, cast};

use super::halves::Halves;
use super::{BandCholesky, Pivots};
use crate::band_lu::kernels::LANES;
use crate::eight::{Work, are_there, eight, first_lane, lanes_before, run};
use crate::lines;

/// Columns that the memory is asked for before they are read.
const AHEAD: usize = 32;

/// Why an elimination ended.
pub(super) enum Stop {
    /// A column of A that is not finite, or not the mirror of its row.
    Unusable(usize),
    /// A row without a positive pivot, and the pivot.
    Pivot(usize, f64),
}

/// Whether bands of this scalar and half-bandwidth are eliminated here.
pub(super) fn fit<T: Scalar>(k: usize) -> bool {
    (1..=LANES).contains(&k) && lines::is::<T>(ScalarKind::F64) && are_there()
}

/// Columns that are entered before they are eliminated.
pub(super) fn reach(k: usize) -> usize {
    if k <= 4 { 4 } else { 8 }
}

/// Whether the columns that are entered while these are eliminated are all among `halves`.
pub(super) fn are_within<T: Scalar>(halves: &Halves<'_, T>, columns: &Range<usize>, n: usize, k: usize) -> bool {
    let entered = if columns.start == 0 { 0 } else { columns.start + reach(k) };
    let needed = columns.end + reach(k) + LANES;
    entered >= halves.first && (needed <= halves.end || halves.end == n)
}

/// Eliminates columns; only for what fits. Those that enter meanwhile, [`reach`] columns ahead, come from `halves`, which are
/// compared, or from the place of L, and are measured.
pub(super) fn eliminate<T: Scalar>(
    cholesky: &mut BandCholesky<T>,
    halves: Option<Halves<'_, T>>,
    columns: Range<usize>,
    min_pivot: &mut T::Real,
) -> Result<(), Stop> {
    let cholesky = doubles(cholesky);
    let least = match halves {
        Some(halves) => {
            let Numbers::F64(values) = T::numbers(halves.values) else { unreachable!("doubles") };
            by_width(cholesky, halves.with(values), columns)
        }
        None => by_width(cholesky, InPlace, columns),
    };
    *min_pivot = min_pivot.min_nan(T::Real::from_f64(least?));
    Ok(())
}

fn by_width<S: Source>(cholesky: &mut BandCholesky<f64>, source: S, columns: Range<usize>) -> Result<f64, Stop> {
    if reach(cholesky.k) == 4 {
        run(Steps::<S, 4> { cholesky, source, columns })
    } else {
        run(Steps::<S, 8> { cholesky, source, columns })
    }
}

/// These factors, of a scalar that is `f64`.
pub(super) fn doubles<T: Scalar>(cholesky: &mut BandCholesky<T>) -> &mut BandCholesky<f64> {
    (cholesky as &mut dyn Any).downcast_mut().expect("doubles")
}

/// Where columns come from.
trait Source: Copy {
    /// The diagonal of column j < n and what stands below it, and whether it may be used; `below` of it are in the matrix.
    fn column<E: Eight>(self, simd: E, cholesky: &BandCholesky<f64>, j: usize, below: usize) -> Option<(f64, E::V)>;
}

/// The place of L, where they have been found finite.
#[derive(Clone, Copy)]
struct InPlace;

impl Source for InPlace {
    #[inline(always)]
    fn column<E: Eight>(self, _: E, cholesky: &BandCholesky<f64>, j: usize, _: usize) -> Option<(f64, E::V)> {
        let column = &cholesky.values[cholesky.at(j, j)..];
        Some((column[0], eight(column, 1)))
    }
}

impl Source for Halves<'_, f64> {
    #[inline(always)]
    fn column<E: Eight>(self, simd: E, cholesky: &BandCholesky<f64>, j: usize, below: usize) -> Option<(f64, E::V)> {
        let at = self.at(j);
        let ahead = at + AHEAD * self.ld - cholesky.k;
        for line in 0..3 {
            prefetch(self.values, ahead + line * LANES);
        }
        let from = &self.values[at..];
        // Row j of the upper half stands one number higher in each column.
        let (step, mut row) = (self.ld - 1, [0.0; LANES]);
        if from.len() > LANES * step {
            for l in 0..LANES {
                row[l] = from[(l + 1) * step];
            }
        } else {
            for l in 0..below {
                row[l] = from[(l + 1) * step];
            }
        }
        let (column, row): (E::V, E::V) = (eight(from, 1), cast(row));
        // What is equal to a finite number is finite.
        let equal = simd.both(simd.at_least(column, row), simd.at_least(row, column));
        let fine = simd.both(equal, simd.less(simd.abs(column), simd.splat(f64::INFINITY)));
        let lanes = lanes_before(below);
        (simd.bits(fine) & lanes == lanes && from[0].is_finite()).then_some((from[0], column))
    }
}

/// The steps of these columns, k ≤ C.
struct Steps<'a, S, const C: usize> {
    cholesky: &'a mut BandCholesky<f64>,
    source: S,
    columns: Range<usize>,
}

impl<S: Source, const C: usize> Work for Steps<'_, S, C> {
    /// The least pivot.
    type Output = Result<f64, Stop>;
    #[inline(always)]
    fn work<E: Eight>(self, simd: E) -> Self::Output {
        let Self { cholesky, source, columns } = self;
        let &mut BandCholesky { n, k, ld, diagonal, .. } = cholesky;
        let (at, below) = (|j: usize| j * ld + diagonal, |j: usize| k.min(n - 1 - j));
        let lanes: [E::I; LANES] = cast(black_box(from_fn::<_, LANES, _>(|lane| [lane as u64; LANES])));
        let zero = simd.splat(0.0);
        let (mut w, mut d) = ([zero; C], [0.0; LANES]);
        // The sums of the columns that come, as far as they are known.
        let mut sums: E::V = zero;
        macro_rules! enter {
            ($j:expr) => {{
                let j = $j;
                if j < n {
                    let Some((diagonal, column)) = source.column(simd, cholesky, j, below(j)) else {
                        return Err(Stop::Unusable(j));
                    };
                    let moduli = simd.keep(lanes_before(below(j)), simd.abs(column));
                    cholesky.sums[j] = first_lane(sums) + (diagonal.abs() + simd.sum(moduli));
                    sums = simd.add(next(simd, sums, 0.0), moduli);
                    (diagonal, column)
                } else {
                    (0.0, zero)
                }
            }};
        }
        if columns.start == 0 {
            for c in 0..C {
                (d[c], w[c]) = enter!(c);
            }
        } else {
            for c in 0..C.min(n - columns.start) {
                let column = &cholesky.values[at(columns.start + c)..];
                (d[c], w[c]) = (column[0], eight(column, 1));
            }
            sums = eight(&cholesky.sums, columns.start + C);
        }
        let mut d: E::V = cast(d);
        let mut least = f64::INFINITY;
        for j in columns.clone() {
            let pivot = first_lane(d);
            let Some(Pivots { root, reciprocal }) = Pivots::<f64>::of(pivot) else { return Err(Stop::Pivot(j, pivot)) };
            least = least.min(pivot);
            let a = simd.keep(lanes_before(below(j)), w[0]);
            let l = simd.mul(a, simd.splat(1.0 / root));
            let (u, m) = match reciprocal {
                Some(r) => (a, simd.mul(a, simd.splat(r))),
                None => (l, l),
            };
            let (diagonal, entering) = enter!(j + C);
            d = next(simd, d, diagonal);
            if C < LANES {
                d = simd.select(simd.mask(1 << (C - 1)), simd.splat(diagonal), d);
            }
            d = simd.minus_mul(d, m, u);
            // Written out: a loop of so many steps keeps the window in memory.
            macro_rules! columns {
                ($(($c:literal, $before:literal))*) => {$(
                    if $c < C {
                        let factor = simd.spread::<$before>(m, lanes[$before]);
                        w[$before] = simd.minus_mul(w[$c], simd.lanes_from::<$c>(u), factor);
                    }
                )*};
            }
            columns!((1, 0)(2, 1)(3, 2)(4, 3)(5, 4)(6, 5)(7, 6));
            w[C - 1] = entering;
            // Whole vectors go over into columns behind, which are in registers.
            let to = &mut cholesky.values[at(j)..];
            to[0] = root;
            match to[1..].first_chunk_mut::<LANES>() {
                Some(to) => *to = cast(l),
                None => put(&mut to[1..][..below(j)], l),
            }
        }
        // Columns that are not finished go back.
        let (d, sums): ([f64; LANES], [f64; LANES]) = (cast(d), cast(sums));
        for ((j, column), d) in (columns.end..n).zip(w).zip(d) {
            cholesky.values[at(j)] = d;
            put(&mut cholesky.values[at(j) + 1..][..below(j)], column);
        }
        for (to, sum) in cholesky.sums.iter_mut().skip(columns.end + C).zip(sums) {
            *to = sum;
        }
        Ok(least)
    }
}

/// Without its first lane; x is the last one.
#[inline(always)]
fn next<E: Eight>(simd: E, v: E::V, x: f64) -> E::V {
    cast(simd.next_lanes(cast(v), cast(simd.splat(x))))
}

/// The first lanes of v.
fn put<V: Pod>(to: &mut [f64], v: V) {
    to.copy_from_slice(&cast::<_, [f64; LANES]>(v)[..to.len()]);
}
