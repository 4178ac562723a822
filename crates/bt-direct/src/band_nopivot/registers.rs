//! Narrow bands of doubles on AVX-512, kl ≤ 8 and ku ≤ 16: what a step changes stays in registers, one a column, the eight rows
//! behind the pivot's in its lanes.
//!
//! With every step the rows move on by one lane. The row that enters comes from A by broadcasts, a column that enters as a whole.
//! Rows of a column outside the band hold whatever stands beside it in memory: they leave before their column's first step, or have
//! multipliers of zero. The factors
//! are staged in the first-level cache, with room between the columns, and leave it column by column. A column of A is measured eight
//! steps before the first of its rows enters; the maxima of rows move on by one lane, too. All this is done while a step waits for the
//! chain that limits it: a reciprocal and two products.
//!
//! The operations on an element and their order are those of elimination column by column.

use std::any::Any;
use std::arch::x86_64::{__m512d, __m512i, _CMP_LE_OQ};
use std::ops::Range;

use bt_formats::{Band, RealScalar, Scalar, prefetch};
use pulp::Simd;
use pulp::bytemuck::cast;
use pulp::x86::V4;

use super::{BandLuNoPivot, Stop, Strip, boost};
use crate::band_lu::end::{Place, reciprocal};
use crate::band_lu::kernels::LANES;
use crate::band_lu::two_steps::larger;
use crate::pivot::Pivot;

/// Columns that leave the stage at a time, those behind them that they reach, and the numbers of one: U, the pivot, L and
/// lanes that there are beside it.
const CHUNK: usize = 32;
const BEHIND: usize = 16;
const COLUMN: usize = 32;
/// Where its pivot stands.
const PIVOT: usize = 16;

#[repr(align(64))]
struct Stage([[f64; COLUMN]; CHUNK + BEHIND]);

/// Whether bands of this scalar and width are eliminated here.
pub(super) fn fit<T: Scalar>(kl: usize, ku: usize) -> bool {
    let doubles = (&T::default() as &dyn Any).is::<f64>();
    doubles && (1..=LANES).contains(&kl) && (1..=BEHIND).contains(&ku) && bt_simd::avx512().is_some()
}

/// Measures the columns of the strip; only for what fits.
pub(super) fn measure<T: Scalar>(strip: &mut Strip<'_, T>) {
    let (simd, mut strip) = doubles(strip);
    let columns = strip.first..strip.last;
    if strip.lu.kl + strip.lu.ku < 2 * LANES {
        strip.sums_and_maxima(simd, [cast([0.0; LANES]); 2], columns);
    } else {
        strip.sums_and_maxima(simd, [cast([0.0; LANES]); 4], columns);
    }
}

/// Eliminates the strip; only for what fits.
pub(super) fn eliminate<T: Scalar>(strip: &mut Strip<'_, T>) -> Option<Stop> {
    let (simd, mut strip) = doubles(strip);
    match strip.lu.ku {
        1..=2 => strip.by_chunks::<2, 2>(simd),
        3..=4 => strip.by_chunks::<4, 2>(simd),
        5..=8 => strip.by_chunks::<8, 3>(simd),
        _ => strip.by_chunks::<16, 4>(simd),
    }
}

pub(super) fn doubles<'a, T: Scalar>(strip: &'a mut Strip<'_, T>) -> (V4, Strip<'a, f64>) {
    let Strip { lu, source, found, threshold, first, last } = strip;
    let (lu, found): (&mut dyn Any, &mut dyn Any) = (&mut **lu, &mut **found);
    let strip = Strip {
        lu: lu.downcast_mut().expect("doubles"),
        source: source.map(|a| (a as &dyn Any).downcast_ref().expect("doubles")),
        found: found.downcast_mut().expect("doubles"),
        threshold: threshold.map(|(tiny, step)| (tiny.to_f64(), step.to_f64())),
        first: *first,
        last: *last,
    };
    (bt_simd::avx512().expect("where bands fit there are such registers"), strip)
}

/// Eight numbers from `at` on; zeros where there are none.
#[inline(always)]
pub(super) fn eight(values: &[f64], at: usize) -> __m512d {
    if let Some(v) = values.get(at..).and_then(<[f64]>::first_chunk::<LANES>) {
        return cast(*v);
    }
    let mut some = [0.0; LANES];
    for (i, v) in some.iter_mut().enumerate() {
        *v = values.get(at + i).map_or(0.0, |&v| v);
    }
    cast(some)
}

/// The lanes before this one.
#[inline(always)]
fn lanes_before(lane: usize) -> u8 {
    !0xffu8.checked_shl(lane as u32).unwrap_or(0)
}

#[inline(always)]
fn first_lane(v: __m512d) -> f64 {
    let [first, ..]: [f64; LANES] = cast(v);
    first
}

/// Without its first lane; `next` begins behind it.
#[inline(always)]
fn move_on(simd: V4, v: __m512d, next: __m512d) -> __m512d {
    cast(simd.avx512f._mm512_alignr_epi64::<1>(cast(next), cast(v)))
}

#[cold]
fn quotients(column: __m512d, pivot: f64) -> __m512d {
    let divisor = Pivot::new(pivot);
    cast(cast::<_, [f64; LANES]>(column).map(|v| divisor.divide(v)))
}

/// A, where it is or in the place of its factors.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) values: &'a [f64],
    pub(super) ld: usize,
    pub(super) diagonal: usize,
}

impl<'a> Source<'a> {
    pub(super) fn of(lu: &'a BandLuNoPivot<f64>, source: Option<&'a Band<f64>>) -> Self {
        match source {
            Some(a) => Self { values: a.values(), ld: a.ldab(), diagonal: lu.kl + lu.ku },
            None => Self { values: &lu.values, ld: lu.ld, diagonal: lu.diagonal },
        }
    }
}

/// What goes from one step to the next; a column of A has up to 8V rows.
struct Carried<const C: usize, const V: usize> {
    /// Rows from the next pivot's on, of the columns from its own on.
    window: [__m512d; C],
    /// The largest moduli of these rows of A.
    maxima: __m512d,
    /// Of the rows behind them, as far as their columns have been measured.
    reached: [__m512d; V],
}

impl Strip<'_, f64> {
    /// A window of C columns, ku ≤ C and 2 ≤ C ([`Leave`]); kl + ku < 8V. The parts are functions of their own: they need the
    /// registers.
    fn by_chunks<const C: usize, const V: usize>(&mut self, simd: V4) -> Option<Stop> {
        let mut stage = Stage([[0.0; COLUMN]; CHUNK + BEHIND]);
        let mut state = self.restore::<C, V>(&mut stage);
        let watched = self.threshold.is_none();
        if self.first == 0 && watched {
            // Those whose rows the first step needs.
            (state.maxima, state.reached) = self.sums_and_maxima(simd, state.reached, 0..LANES + self.lu.ku);
        }
        let mut first = self.first;
        while first < self.last {
            let last = self.last.min(first + CHUNK);
            let columns = first..last;
            let stopped = simd.vectorize(Steps { simd, strip: self, stage: &mut stage.0, state: &mut state, columns });
            if stopped.is_some() {
                return stopped;
            }
            if watched {
                // The columns from here on are still those of A, if one is not finite.
                if !self.found.max_a().is_finite() {
                    return Some(Stop::Overflow);
                }
                self.found.measured = self.lu.n.min(last + LANES + self.lu.ku);
            }
            simd.vectorize(Leave { lu: &mut *self.lu, stage: &stage.0, first, last });
            stage.0.copy_within(last - first..last - first + BEHIND, 0);
            first = last;
        }
        self.put_back(&mut stage, &state);
        None
    }

    /// Measures columns; then the maxima of eight rows, from that of the last column's top on, and those of the rows behind them.
    fn sums_and_maxima<const V: usize>(
        &mut self,
        simd: V4,
        reached: [__m512d; V],
        columns: Range<usize>,
    ) -> (__m512d, [__m512d; V]) {
        let norms = Norms { norm: 0, max_a: cast(self.found.max_a), maxima: reached[0], reached };
        let Norms { norm, max_a, maxima, reached } =
            simd.vectorize(Measure { simd, lu: &*self.lu, source: self.source, norms, columns });
        self.found.norm = f64::from_bits(norm);
        self.found.max_a = cast(max_a);
        (maxima, reached)
    }

    /// The stage and the state before the first step.
    fn restore<const C: usize, const V: usize>(&mut self, stage: &mut Stage) -> Carried<C, V> {
        let (lu, first) = (&mut *self.lu, self.first);
        for (j, column) in (first..lu.n).zip(&mut stage.0[..C]) {
            let rows = lu.rows_of(j);
            let column = &mut column[PIVOT + rows.start - j..][..rows.len()];
            if let Some(a) = self.source.filter(|_| first == 0) {
                column.copy_from_slice(lu.column(Some(a), j).1);
            } else {
                let [u, l] = lu.split(j, rows);
                let (of_u, of_l) = column.split_at_mut(u.len());
                of_u.copy_from_slice(u);
                of_l.copy_from_slice(l);
            }
        }
        let mut window = [cast([0.0; LANES]); C];
        for (c, (column, staged)) in window.iter_mut().zip(&stage.0).enumerate() {
            *column = eight(staged, PIVOT - c);
        }
        let row = |v: usize| if first == 0 { cast([0.0; LANES]) } else { eight(&lu.rows, first + v * LANES) };
        Carried { window, maxima: row(0), reached: std::array::from_fn(|v| row(1 + v)) }
    }

    /// What stage and state hold of rows from here on goes where it is restored from.
    fn put_back<const C: usize, const V: usize>(&mut self, stage: &mut Stage, state: &Carried<C, V>) {
        let (lu, last) = (&mut *self.lu, self.last);
        for (c, (column, staged)) in state.window.iter().zip(&mut stage.0).enumerate() {
            staged[PIVOT - c..][..LANES].copy_from_slice(&cast::<_, [f64; LANES]>(*column));
        }
        for (j, staged) in (last..lu.n).zip(&stage.0[..C]) {
            let rows = lu.rows_of(j);
            let rows = rows.start..rows.end.min(last + LANES);
            let staged = &staged[PIVOT + rows.start - j..][..rows.len()];
            let [u, l] = lu.split(j, rows);
            u.copy_from_slice(&staged[..u.len()]);
            l.copy_from_slice(&staged[u.len()..]);
        }
        let maxima = [state.maxima].into_iter().chain(state.reached).flat_map(cast::<_, [f64; LANES]>);
        for (to, m) in lu.rows.iter_mut().skip(last).zip(maxima) {
            *to = m;
        }
    }
}

/// Sums of moduli, and their largest. NaN and infinity have larger bits than all numbers.
struct Norms<const V: usize> {
    norm: u64,
    max_a: __m512i,
    maxima: __m512d,
    reached: [__m512d; V],
}

impl<const V: usize> Norms<V> {
    /// Measures column j, if there is one.
    #[inline(always)]
    fn next(&mut self, simd: V4, a: Source<'_>, (n, kl, ku): (usize, usize, usize), j: usize) {
        let f = simd.avx512f;
        let rows = ku.saturating_sub(j)..(kl + ku + 1).min((n + ku).saturating_sub(j));
        let lanes = if j < n { (1u64 << rows.end) - (1 << rows.start) } else { 0 };
        let top = j * a.ld + a.diagonal - ku;
        let mut sum = f._mm512_setzero_pd();
        for v in 0..V {
            let column = eight(a.values, top + v * LANES);
            let moduli = f._mm512_maskz_mov_pd((lanes >> (v * LANES)) as u8, f._mm512_abs_pd(column));
            self.reached[v] = f._mm512_max_pd(moduli, self.reached[v]);
            self.max_a = f._mm512_max_epu64(self.max_a, cast(moduli));
            sum = if v == 0 { moduli } else { f._mm512_add_pd(sum, moduli) };
        }
        self.norm = self.norm.max(simd.reduce_sum_f64s(cast(sum)).to_bits());
        self.maxima = move_on(simd, self.maxima, self.reached[0]);
        for v in 0..V {
            let next = if v + 1 < V { self.reached[v + 1] } else { f._mm512_setzero_pd() };
            self.reached[v] = move_on(simd, self.reached[v], next);
        }
    }
}

struct Measure<'a, const V: usize> {
    simd: V4,
    lu: &'a BandLuNoPivot<f64>,
    source: Option<&'a Band<f64>>,
    norms: Norms<V>,
    columns: Range<usize>,
}

impl<const V: usize> pulp::NullaryFnOnce for Measure<'_, V> {
    type Output = Norms<V>;
    #[inline(always)]
    fn call(self) -> Norms<V> {
        let Self { simd, lu, source, mut norms, columns } = self;
        for j in columns {
            norms.next(simd, Source::of(lu, source), (lu.n, lu.kl, lu.ku), j);
        }
        norms
    }
}

/// The steps of these columns, up to one without a pivot or one in which a row loses half its digits.
struct Steps<'a, 'b, const C: usize, const V: usize> {
    simd: V4,
    strip: &'a mut Strip<'b, f64>,
    stage: &'a mut [[f64; COLUMN]],
    state: &'a mut Carried<C, V>,
    columns: Range<usize>,
}

impl<const C: usize, const V: usize> pulp::NullaryFnOnce for Steps<'_, '_, C, V> {
    type Output = Option<Stop>;
    #[inline(always)]
    fn call(self) -> Option<Stop> {
        let Self { simd, strip, stage, state, columns } = self;
        let f = simd.avx512f;
        let Strip { lu, source, found, threshold, .. } = strip;
        let lu = &**lu;
        let (n, kl, ku) = (lu.n, lu.kl, lu.ku);
        let a = Source::of(lu, *source);
        let stage = stage.as_flattened_mut();
        let limit = f._mm512_set1_pd(f64::EPSILON.sqrt());
        let mut w = state.window;
        let mut norms = Norms {
            norm: found.norm.to_bits(),
            max_a: cast(found.max_a),
            maxima: state.maxima,
            reached: state.reached,
        };
        let (mut max_u, mut smallest) = (f._mm512_setzero_si512(), f._mm512_set1_pd(f64::INFINITY));
        let mut stopped = None;
        for (s, j) in columns.enumerate() {
            let mut pivot = first_lane(w[0]);
            if let Some(threshold) = *threshold {
                pivot = boost(pivot, threshold, &mut found.boosted);
            }
            let ahead = a.values.get(j * a.ld + a.diagonal..).unwrap_or_default();
            if C >= 8 {
                // What leaves with the next columns, and A behind them.
                prefetch(&lu.values, (j + CHUNK) * lu.ld);
                prefetch(&lu.lower, (j + CHUNK) * kl);
                for line in 0..=V {
                    prefetch(a.values, (j + 2 * CHUNK) * a.ld + line * LANES);
                }
            }
            // The row that enters in column j + c, eight rows below.
            macro_rules! moved_on {
                ($c:expr) => {{
                    let enters = ahead.get(LANES + $c * (a.ld - 1)).map_or(0.0, |&x| x);
                    move_on(simd, w[$c], f._mm512_set1_pd(enters))
                }};
            }
            let below = lanes_before(kl.min(n - 1 - j));
            let column = moved_on!(0);
            let l = match reciprocal(pivot) {
                Some(r) => f._mm512_mul_pd(column, f._mm512_set1_pd(r)),
                None if pivot == 0.0 || !pivot.is_finite() => {
                    stopped = Some(Stop::pivot(j, pivot));
                    break;
                }
                None => quotients(column, pivot),
            };
            let l = f._mm512_maskz_mov_pd(below, l);
            // NaN and infinity have larger bits than all numbers.
            let mut largest = larger(simd, f._mm512_setzero_si512(), f._mm512_set1_pd(pivot));
            let staged = &mut stage[s * COLUMN + PIVOT..][..=C * (COLUMN - 1)];
            staged[0] = pivot;
            // Written out: a loop of so many steps keeps the window in memory.
            macro_rules! columns {
                ($($c:literal)*) => {$(
                    if $c <= C {
                        let place = $c * (a.ld - 1);
                        let rows = if $c < C { moved_on!($c) } else { eight(ahead, place + 1) };
                        w[$c - 1] = if $c <= ku {
                            let u = if $c < C {
                                f._mm512_permutexvar_pd(f._mm512_setzero_si512(), w[$c])
                            } else {
                                f._mm512_set1_pd(ahead.get(place).map_or(0.0, |&u| u))
                            };
                            staged[$c * (COLUMN - 1)] = first_lane(u);
                            largest = larger(simd, largest, u);
                            f._mm512_fnmadd_pd(l, u, rows)
                        } else {
                            rows
                        };
                    }
                )*};
            }
            columns!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
            stage[s * COLUMN + PIVOT + 1..][..LANES].copy_from_slice(&cast::<_, [f64; LANES]>(l));
            smallest = f._mm512_min_pd(smallest, f._mm512_set1_pd(pivot.abs()));
            max_u = f._mm512_max_epu64(max_u, largest);
            let largest = first_lane(cast(largest));
            if !largest.is_finite() {
                stopped = Some(Stop::Overflow);
                break;
            }
            if threshold.is_none() {
                norms.next(simd, a, (n, kl, ku), j + LANES + ku);
                // |lᵢⱼ|·max|uⱼ| against row i of A; NaN is not within.
                let grown = f._mm512_mul_pd(f._mm512_abs_pd(l), f._mm512_mul_pd(f._mm512_set1_pd(largest), limit));
                if f._mm512_cmp_pd_mask::<_CMP_LE_OQ>(grown, norms.maxima) & below != below {
                    stopped = growth(j, below, cast(grown), cast(norms.maxima));
                    break;
                }
            }
        }
        *state = Carried { window: w, maxima: norms.maxima, reached: norms.reached };
        found.norm = f64::from_bits(norms.norm);
        found.max_a = cast(norms.max_a);
        found.max_u = found.max_u.max(first_lane(cast(max_u)));
        found.min_pivot = found.min_pivot.min(first_lane(smallest));
        stopped
    }
}

/// The first row behind row j that has lost half its digits.
#[cold]
fn growth(j: usize, below: u8, grown: [f64; LANES], rows: [f64; LANES]) -> Option<Stop> {
    let i = (0..LANES).find(|i| below >> i & 1 == 1 && !(grown[*i] <= rows[*i]))?;
    Some(Stop::Growth(j + 1 + i, grown[i] / rows[i] / f64::EPSILON.sqrt()))
}

/// Columns leave the stage.
struct Leave<'a> {
    lu: &'a mut BandLuNoPivot<f64>,
    stage: &'a [[f64; COLUMN]],
    first: usize,
    last: usize,
}

impl pulp::NullaryFnOnce for Leave<'_> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { lu, stage, first, last } = self;
        let (kl, ku, ld, diagonal, n) = (lu.kl, lu.ku, lu.ld, lu.diagonal, lu.n);
        let below = |j: usize| kl.min(n - 1 - j);
        let behind_u = lu.place == Place::BehindU;
        let vectors = (if behind_u { kl + ku + 1 } else { ku + 1 }).div_ceil(LANES);
        for (j, staged) in (first..last).zip(stage) {
            let column = staged[PIVOT - ku..].as_chunks::<LANES>().0;
            let to = &mut lu.values[j * ld + diagonal - ku..];
            // Whole vectors go over into the columns behind; what they reach is still in the stage or in registers.
            if let Some(to) = to.get_mut(..vectors * LANES) {
                for (to, from) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(column) {
                    *to = *from;
                }
            } else {
                let rows = ku + 1 + if behind_u { below(j) } else { 0 };
                to[..rows].copy_from_slice(&staged[PIVOT - ku..][..rows]);
            }
        }
        if behind_u {
            return;
        }
        for (j, staged) in (first..last).zip(stage) {
            let (to, l) = (&mut lu.lower[j * kl..], &staged[PIVOT + 1..]);
            match (to.first_chunk_mut::<LANES>(), l.first_chunk::<LANES>()) {
                (Some(to), Some(l)) => *to = *l,
                _ => to[..below(j)].copy_from_slice(&l[..below(j)]),
            }
        }
    }
}
