//! Narrow bands of doubles in eight lanes, kl ≤ 8 and ku ≤ 16: what a step changes stays in registers, one of AVX-512 a column or two
//! of AVX2, which are kept in the first-level cache where there are too few; the eight rows behind the pivot's are its lanes.
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
use std::ops::Range;

use bt_formats::{Numbers, RealScalar, Scalar, ScalarKind, prefetch};
use bt_simd::Eight;
use pulp::bytemuck::{Pod, cast};

use super::{BandLuNoPivot, Columns, Stop, Strip, boost};
use crate::band_lu::end::{Place, reciprocal};
use crate::band_lu::kernels::LANES;
use crate::band_lu::two_steps::{larger, part};
use crate::eight::{are_there, eight, first_lane, lanes_before};
use crate::lines;
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

pub(super) const REGISTERS: &str = "where bands fit there are such registers";

/// Whether bands of this scalar and width are eliminated here.
pub(super) fn fit<T: Scalar>(kl: usize, ku: usize) -> bool {
    lines::is::<T>(ScalarKind::F64) && (1..=LANES).contains(&kl) && (1..=BEHIND).contains(&ku) && are_there()
}

/// Measures the columns of the strip; only for what fits.
pub(super) fn measure<T: Scalar>(strip: &mut Strip<'_, T>) {
    let mut strip = doubles(strip);
    if let Some(simd) = bt_simd::avx512() {
        strip.measured(simd);
    } else {
        strip.measured(bt_simd::avx2().expect(REGISTERS));
    }
}

/// Eliminates the strip; only for what fits.
pub(super) fn eliminate<T: Scalar>(strip: &mut Strip<'_, T>) -> Option<Stop> {
    let mut strip = doubles(strip);
    if let Some(simd) = bt_simd::avx512() {
        strip.eliminated(simd)
    } else {
        strip.eliminated(bt_simd::avx2().expect(REGISTERS))
    }
}

pub(super) fn doubles<'a, T: Scalar>(strip: &'a mut Strip<'_, T>) -> Strip<'a, f64> {
    let Strip { lu, source, found, threshold, first, last } = strip;
    let (lu, found): (&mut dyn Any, &mut dyn Any) = (&mut **lu, &mut **found);
    Strip {
        lu: lu.downcast_mut().expect("doubles"),
        source: source.map(|Columns { values, ld, diagonal, first }| {
            let Numbers::F64(values) = T::numbers(values) else { unreachable!("doubles") };
            Columns { values, ld, diagonal, first }
        }),
        found: found.downcast_mut().expect("doubles"),
        threshold: threshold.map(|(tiny, step)| (tiny.to_f64(), step.to_f64())),
        first: *first,
        last: *last,
    }
}

/// Without its first lane; `next` begins behind it.
#[inline(always)]
fn move_on<E: Eight>(simd: E, v: E::V, next: E::V) -> E::V {
    cast(simd.next_lanes(cast(v), cast(next)))
}

#[cold]
fn quotients<V: Pod>(column: V, pivot: f64) -> V {
    let divisor = Pivot::new(pivot);
    cast(cast::<_, [f64; LANES]>(column).map(|v| divisor.divide(v)))
}

/// What goes from one step to the next; a column of A has up to 8V rows.
struct Carried<E: Eight, const C: usize, const V: usize> {
    /// Rows from the next pivot's on, of the columns from its own on.
    window: [E::V; C],
    /// The largest moduli of these rows of A.
    maxima: E::V,
    /// Of the rows behind them, as far as their columns have been measured.
    reached: [E::V; V],
}

impl Strip<'_, f64> {
    fn measured<E: Eight>(&mut self, simd: E) {
        let (columns, zero) = (self.first..self.last, simd.splat(0.0));
        if self.lu.kl + self.lu.ku < 2 * LANES {
            self.sums_and_maxima(simd, [zero; 2], columns);
        } else {
            self.sums_and_maxima(simd, [zero; 4], columns);
        }
    }

    fn eliminated<E: Eight>(&mut self, simd: E) -> Option<Stop> {
        match self.lu.ku {
            1..=2 => self.by_chunks::<E, 2, 2>(simd),
            3..=4 => self.by_chunks::<E, 4, 2>(simd),
            5..=8 => self.by_chunks::<E, 8, 3>(simd),
            _ => self.by_chunks::<E, 16, 4>(simd),
        }
    }

    /// A window of C columns, ku ≤ C and 2 ≤ C ([`Leave`]); kl + ku < 8V. The parts are functions of their own: they need the
    /// registers.
    fn by_chunks<E: Eight, const C: usize, const V: usize>(&mut self, simd: E) -> Option<Stop> {
        let mut stage = Stage([[0.0; COLUMN]; CHUNK + BEHIND]);
        let mut state = self.restore::<E, C, V>(&mut stage);
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
    fn sums_and_maxima<E: Eight, const V: usize>(
        &mut self,
        simd: E,
        reached: [E::V; V],
        columns: Range<usize>,
    ) -> (E::V, [E::V; V]) {
        let norms = Norms::<E, V> { norm: 0, max_a: cast(self.found.max_a), maxima: reached[0], reached };
        let Norms { norm, max_a, maxima, reached } =
            simd.vectorize(Measure { simd, lu: &*self.lu, source: self.source, norms, columns });
        self.found.norm = f64::from_bits(norm);
        self.found.max_a = cast(max_a);
        (maxima, reached)
    }

    /// The stage and the state before the first step.
    fn restore<E: Eight, const C: usize, const V: usize>(&mut self, stage: &mut Stage) -> Carried<E, C, V> {
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
    fn put_back<E: Eight, const C: usize, const V: usize>(&mut self, stage: &mut Stage, state: &Carried<E, C, V>) {
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
struct Norms<E: Eight, const V: usize> {
    norm: u64,
    max_a: E::I,
    maxima: E::V,
    reached: [E::V; V],
}

impl<E: Eight, const V: usize> Norms<E, V> {
    /// Measures column j, if there is one.
    #[inline(always)]
    fn next(&mut self, simd: E, a: Columns<'_, f64>, (n, kl, ku): (usize, usize, usize), j: usize) {
        let rows = ku.saturating_sub(j)..(kl + ku + 1).min((n + ku).saturating_sub(j));
        let lanes = if j < n { (1u64 << rows.end) - (1 << rows.start) } else { 0 };
        let top = a.diagonal(j) - ku;
        let mut sum = simd.splat(0.0);
        for v in 0..V {
            let column = eight(a.values, top + v * LANES);
            let moduli = simd.keep(part(lanes, v), simd.abs(column));
            self.reached[v] = simd.max(moduli, self.reached[v]);
            self.max_a = simd.max_bits(self.max_a, cast(moduli));
            sum = if v == 0 { moduli } else { simd.add(sum, moduli) };
        }
        self.norm = self.norm.max(simd.sum(sum).to_bits());
        self.maxima = move_on(simd, self.maxima, self.reached[0]);
        for v in 0..V {
            let next = if v + 1 < V { self.reached[v + 1] } else { simd.splat(0.0) };
            self.reached[v] = move_on(simd, self.reached[v], next);
        }
    }
}

struct Measure<'a, E: Eight, const V: usize> {
    simd: E,
    lu: &'a BandLuNoPivot<f64>,
    source: Option<Columns<'a, f64>>,
    norms: Norms<E, V>,
    columns: Range<usize>,
}

impl<E: Eight, const V: usize> pulp::NullaryFnOnce for Measure<'_, E, V> {
    type Output = Norms<E, V>;
    #[inline(always)]
    fn call(self) -> Norms<E, V> {
        let Self { simd, lu, source, mut norms, columns } = self;
        for j in columns {
            norms.next(simd, lu.columns(source), (lu.n, lu.kl, lu.ku), j);
        }
        norms
    }
}

/// The steps of these columns, up to one without a pivot or one in which a row loses half its digits.
struct Steps<'a, 'b, E: Eight, const C: usize, const V: usize> {
    simd: E,
    strip: &'a mut Strip<'b, f64>,
    stage: &'a mut [[f64; COLUMN]],
    state: &'a mut Carried<E, C, V>,
    columns: Range<usize>,
}

impl<E: Eight, const C: usize, const V: usize> pulp::NullaryFnOnce for Steps<'_, '_, E, C, V> {
    type Output = Option<Stop>;
    #[inline(always)]
    fn call(self) -> Option<Stop> {
        let Self { simd, strip, stage, state, columns } = self;
        let Strip { lu, source, found, threshold, .. } = strip;
        let lu = &**lu;
        let (n, kl, ku) = (lu.n, lu.kl, lu.ku);
        let a = lu.columns(*source);
        let stage = stage.as_flattened_mut();
        let limit = simd.splat(f64::EPSILON.sqrt());
        let mut w = state.window;
        let mut norms = Norms::<E, V> {
            norm: found.norm.to_bits(),
            max_a: cast(found.max_a),
            maxima: state.maxima,
            reached: state.reached,
        };
        let (mut max_u, mut smallest) = (simd.splat_bits(0), simd.splat(f64::INFINITY));
        let mut stopped = None;
        for (s, j) in columns.enumerate() {
            let mut pivot = first_lane(w[0]);
            if let Some(threshold) = *threshold {
                pivot = boost(pivot, threshold, &mut found.boosted);
            }
            let ahead = a.values.get(a.diagonal(j)..).unwrap_or_default();
            if C >= 8 {
                // What leaves with the next columns, and A behind them.
                prefetch(&lu.values, (j + CHUNK) * lu.ld);
                prefetch(&lu.lower, (j + CHUNK) * kl);
                for line in 0..=V {
                    prefetch(a.values, a.diagonal(j + 2 * CHUNK) - ku + line * LANES);
                }
            }
            // The row that enters in column j + c, eight rows below.
            macro_rules! moved_on {
                ($c:expr) => {{
                    let enters = ahead.get(LANES + $c * (a.ld - 1)).map_or(0.0, |&x| x);
                    move_on(simd, w[$c], simd.splat(enters))
                }};
            }
            let below = lanes_before(kl.min(n - 1 - j));
            let column = moved_on!(0);
            let l = match reciprocal(pivot) {
                Some(r) => simd.mul(column, simd.splat(r)),
                None if pivot == 0.0 || !pivot.is_finite() => {
                    stopped = Some(Stop::pivot(j, pivot));
                    break;
                }
                None => quotients(column, pivot),
            };
            let l = simd.keep(below, l);
            // NaN and infinity have larger bits than all numbers.
            let mut largest = larger(simd, simd.splat_bits(0), simd.splat(pivot));
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
                                simd.spread_first(w[$c])
                            } else {
                                simd.splat(ahead.get(place).map_or(0.0, |&u| u))
                            };
                            staged[$c * (COLUMN - 1)] = first_lane(u);
                            largest = larger(simd, largest, u);
                            simd.minus_mul(rows, l, u)
                        } else {
                            rows
                        };
                    }
                )*};
            }
            columns!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
            stage[s * COLUMN + PIVOT + 1..][..LANES].copy_from_slice(&cast::<_, [f64; LANES]>(l));
            smallest = simd.min(smallest, simd.splat(pivot.abs()));
            max_u = simd.max_bits(max_u, largest);
            let largest = first_lane(largest);
            if !largest.is_finite() {
                stopped = Some(Stop::Overflow);
                break;
            }
            if threshold.is_none() {
                norms.next(simd, a, (n, kl, ku), j + LANES + ku);
                // |lᵢⱼ|·max|uⱼ| against row i of A; NaN is not within.
                let grown = simd.mul(simd.abs(l), simd.mul(simd.splat(largest), limit));
                if simd.bits(simd.at_least(norms.maxima, grown)) & below != below {
                    stopped = growth(j, below, cast(grown), cast(norms.maxima));
                    break;
                }
            }
        }
        *state = Carried { window: w, maxima: norms.maxima, reached: norms.reached };
        found.norm = f64::from_bits(norms.norm);
        found.max_a = cast(norms.max_a);
        found.max_u = found.max_u.max(first_lane(max_u));
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
