//! Narrow bands of doubles in eight lanes whose window stays in registers, kl ≤ 8 and kl + ku ≤ 16: a register of AVX-512 a column,
//! or two of AVX2, which are kept in the first-level cache where there are too few; a lane a row.
//!
//! Lanes are used as in `narrow.rs`, so that the factors have the same bits. A row enters by broadcasts from A. The factors are
//! staged in the first-level cache, rows of U one number a column, in LAPACK's layout with room between the columns, and leave it
//! column by column; multipliers with an array of their own go there at once. A column of A is measured a strip before the first
//! of its rows enters. What limits a step is the chain from one pivot to the next, the search within a register and two products,
//! all candidates being inverted meanwhile.

use std::ops::Range;

use bt_formats::prefetch;
use bt_simd::Eight;
use pulp::bytemuck::cast;

use super::Tuning;
use super::end::{Direction, End, EndSizes, Found, Place};
use super::kernels::{LANES, copy, max_lanes};
use super::two_steps::{Order, larger, part};

/// Columns that leave the stage at a time, and those behind them that they reach, at most.
const STRIP: usize = 32;
const BEHIND: usize = 16;
/// Columns of A that are on their way into the cache.
const AHEAD: usize = 16;

/// Columns of the factors or of A, S numbers apart, zeros where they have none.
#[repr(align(64))]
struct Stage<const S: usize>([[f64; S]; STRIP + BEHIND + 2]);

impl<const S: usize> Default for Stage<S> {
    fn default() -> Self {
        Self([[0.0; S]; STRIP + BEHIND + 2])
    }
}

/// Eliminates columns from the first on and returns the first one that it does not: all are done, there are no such registers, the
/// window is too large, a value is not finite, or a pivot is zero or has no reciprocal.
pub(super) fn eliminate(end: &mut End<f64>, source: Option<&[f64]>, columns: Range<usize>) -> usize {
    if let Some(simd) = bt_simd::avx512() {
        within(simd, end, source, columns)
    } else if let Some(simd) = bt_simd::avx2() {
        within(simd, end, source, columns)
    } else {
        columns.start
    }
}

fn within<E: Eight>(simd: E, end: &mut End<f64>, source: Option<&[f64]>, columns: Range<usize>) -> usize {
    let (kl, kv) = (end.shape.kl, end.shape.kv());
    let Tuning::Narrow { registers: 1, .. } = end.tuning else { return columns.start };
    match kv {
        _ if kl == 0 || columns.is_empty() => columns.start,
        ..=7 => by_strips::<E, 7, 16, 1>(simd, end, source, columns),
        8..=15 => by_strips::<E, 16, 32, 2>(simd, end, source, columns),
        16 => by_strips::<E, 16, 32, 3>(simd, end, source, columns),
        _ => columns.start,
    }
}

/// A window of C columns, S > C + 8 numbers a column of the stage, V registers a column of A. The parts are functions of their own:
/// they need the registers.
fn by_strips<E: Eight, const C: usize, const S: usize, const V: usize>(
    simd: E,
    end: &mut End<f64>,
    source: Option<&[f64]>,
    columns: Range<usize>,
) -> usize {
    let Range { start: mut first, end: last } = columns;
    let EndSizes { kl, ku, rows, ncols, .. } = end.shape;
    let kv = end.shape.kv();
    let mut norms = Norms::<E, V>::of(&end.found);
    if !norms.measure_to(simd, end, source, first + kv + STRIP) {
        return first;
    }
    let (mut stage, mut staged) = (Stage::<S>::default(), None);
    end.restore(&mut stage.0, first);
    if first == 0 {
        // Whichever row is the first, it goes as far as the band above the diagonal.
        end.found.reach = ku.min(ncols);
        end.tops[..end.found.reach].fill(0);
    }
    let mut order = Order::<E, 1>::load(end, first);
    // Behind these columns the rows that enter end with the matrix.
    let inside = rows.saturating_sub(kl).min(ncols.saturating_sub(kv));
    loop {
        let mut goal = last.min(first + STRIP);
        if goal > inside {
            if first < inside {
                goal = inside;
            } else {
                end.stage_a(source, first..goal + kv, &mut staged.get_or_insert_with(Stage::default).0);
            }
        }
        let a = staged.as_ref().map(|a: &Stage<S>| a.0.as_flattened());
        let steps = Steps::<E, C, S, V> {
            simd,
            end,
            source,
            staged: a,
            stage: stage.0.as_flattened_mut(),
            order: &mut order,
            norms: &mut norms,
            columns: first..goal,
        };
        let done = simd.vectorize(steps);
        simd.vectorize(Leave { simd, end, stage: &stage.0, columns: first..done });
        let finite = norms.measure_to(simd, end, source, done + kv + STRIP);
        if done < goal || done == last || !finite {
            end.keep(&stage.0[done - first..], done);
            order.store(end, done);
            end.forget_beyond(NOTED);
            return done;
        }
        stage.0.copy_within(done - first..done - first + kv, 0);
        first = done;
    }
}

/// The columns of a strip up to one without a pivot, which is returned, or the last; the stage begins with the first. As many
/// columns of A are measured, if they have kl + ku + 1 rows.
struct Steps<'a, E: Eight, const C: usize, const S: usize, const V: usize> {
    simd: E,
    end: &'a mut End<f64>,
    source: Option<&'a [f64]>,
    /// A's columns from the first on, instead.
    staged: Option<&'a [f64]>,
    stage: &'a mut [f64],
    order: &'a mut Order<E, 1>,
    norms: &'a mut Norms<E, V>,
    columns: Range<usize>,
}

impl<E: Eight, const C: usize, const S: usize, const V: usize> pulp::NullaryFnOnce for Steps<'_, E, C, S, V> {
    type Output = usize;
    #[inline(always)]
    fn call(self) -> usize {
        let Self { simd, end, source, staged, stage, order, norms, columns: Range { start: first, end: last } } = self;
        let shape @ EndSizes { n, kl, ku, rows, ncols, looks_at, .. } = end.shape;
        let (kv, ld) = (shape.kv(), shape.ld());
        let mut w = [simd.splat(0.0); C];
        for c in 0..C {
            // Behind kl + ku columns there are none, or zeros.
            w[c] = end.window.get(c).map_or(w[c], |column| cast(column.0));
        }
        let (values, lower) = (&end.values[..], &mut end.lower[..]);
        let a = source.unwrap_or(values);
        // Distances from a column of A to the next, and along a row.
        let lda = shape.source_ld();
        let (next_column, along) = match shape.direction {
            Direction::Forward => (lda, lda - 1),
            Direction::Backward => (lda.wrapping_neg(), (lda - 1).wrapping_neg()),
        };
        // Where a step's row enters from, and the distances from step to step and along the row.
        let (enters, mut at, down, across) = match staged {
            Some(a) => (a, kv + kl, S, S - 1),
            None => (a, shape.source_at(first + kl, first), next_column, along),
        };
        let mut measures = shape.source_column(norms.measured) + shape.source_room();
        let whole = n.saturating_sub(kl).min(ncols).min(looks_at);
        let mut smallest = simd.splat(f64::INFINITY);
        let (mut flops, mut reach) = (0, end.found.reach);
        let (pivots, tops) = (&mut end.pivots[first..last], &mut end.tops[..]);
        let (mut lanes, mut sums) = (*order, *norms);
        // Behind the last step there may be none.
        macro_rules! comes {
            ($at:expr) => {
                simd.splat(enters.get($at).map_or(0.0, |&x| x))
            };
        }
        let mut gauss = Gauss::of(simd, w[0], comes!(at));
        // What is known of a step when its pivot is.
        macro_rules! note {
            ($j:expr) => {
                let j = $j;
                smallest = simd.min(smallest, simd.abs(gauss.pivot));
                let [p, ..]: [f64; LANES] = cast(gauss.pivot);
                let position = j + lanes.exchange(simd, first_lane(simd, gauss.lane) as usize, kl);
                let [l]: [[f64; LANES]; 1] = lanes.gather(simd, [gauss.l]);
                let column = &mut stage[(j - first) * S + kv..][..=LANES];
                column[0] = p;
                // Over into columns behind, which are written later, as long as there are any.
                if let Some(apart) = lower.get_mut(j * kl..).and_then(<[f64]>::first_chunk_mut::<LANES>) {
                    *apart = l;
                } else {
                    column[1..].copy_from_slice(&l);
                }
                pivots[j - first] = position as u32;
                // As many stores in every step: too many columns are noted, later steps note those again.
                let reached = reach.max((position + ku + 1).min(ncols));
                if let Some(noted) = tops[reach..].first_chunk_mut::<NOTED>() {
                    *noted = [j as u32; NOTED];
                } else {
                    tops[reach..reached].fill(j as u32);
                }
                reach = reached;
                flops += kl.min(rows - 1 - j) * (2 * (reach - j) - 1);
            };
        }
        let mut j = first;
        let mut usable = USABLE.contains(&gauss.best);
        if usable {
            note!(j);
        }
        while usable {
            let Gauss { lane, taken, l, .. } = gauss;
            let within = simd.mask(if simd.bits(taken) == 0 { 0 } else { u8::MAX });
            let diagonal = (j - first) * S + kv;
            let mut from = at;
            macro_rules! update {
                ($c:expr) => {{
                    from = from.wrapping_add(across);
                    let x = simd.splat(enters[from]);
                    let column = if $c < C { w[$c] } else { simd.splat(0.0) };
                    let next = simd.select(taken, x, column);
                    let u = if $c == 1 {
                        // The next pivot waits for it, and its lane is known before the mask.
                        simd.pick(column, lane, x)
                    } else {
                        simd.pick_late(column, lane, within, x)
                    };
                    w[$c - 1] = simd.minus_mul(next, l, u);
                    let [u, ..]: [f64; LANES] = cast(u);
                    stage[diagonal..][..C * (S - 1) + 1][$c * (S - 1)] = u;
                }};
            }
            update!(1);
            gauss = Gauss::of(simd, w[0], comes!(at.wrapping_add(down)));
            usable = j + 1 < last && USABLE.contains(&gauss.best);
            if usable {
                note!(j + 1);
            }
            // Written out: a loop keeps the window in memory. Blocks of their own: in one, products are put off until the
            // registers do not hold what they wait for.
            macro_rules! columns {
                ($($c:literal)*) => {
                    'columns: {$(
                        if $c > C || $c > kv {
                            break 'columns;
                        }
                        update!($c);
                    )*}
                };
            }
            columns!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
            if sums.measured < whole
                && let Some(column) = a.get(measures..).and_then(|a| a.get(..V * LANES))
            {
                sums.add(simd, column, kl + ku + 1);
                sums.measured += 1;
                measures = measures.wrapping_add(next_column);
            }
            // What comes with the next strip.
            let next = (j + STRIP) * ld;
            prefetch(lower, (j + STRIP) * kl);
            for line in 0..=C / LANES {
                prefetch(values, next + line * LANES);
            }
            let next_of_a = measures.wrapping_add(next_column.wrapping_mul(AHEAD));
            for line in 0..S / LANES {
                prefetch(a, next_of_a.wrapping_add(line * LANES));
            }
            at = at.wrapping_add(down);
            j += 1;
        }
        for c in 0..C {
            if let Some(column) = end.window.get_mut(c) {
                column.0 = cast(w[c]);
            }
        }
        (*order, *norms) = (lanes, sums);
        let [smallest, ..]: [f64; LANES] = cast(smallest);
        end.found.min_pivot = end.found.min_pivot.min(smallest);
        end.found.flops += flops as f64;
        end.found.reach = reach;
        j
    }
}

/// Columns that a row reaches behind those that rows before it reached: kl + 1.
const NOTED: usize = LANES + 1;

/// Bits of pivots that have a reciprocal: 2⁻¹⁰²² to 2¹⁰²¹.
const USABLE: Range<u64> = 0x0010_0000_0000_0000..0x7fc0_0000_0000_0000;

/// A column's pivot and multipliers.
#[derive(Clone, Copy)]
struct Gauss<E: Eight> {
    /// Bits of the largest candidate but the last six.
    best: u64,
    /// The pivot's lane, 8 for the entering row; and as a mask.
    lane: E::I,
    taken: E::M,
    pivot: E::V,
    l: E::V,
}

impl<E: Eight> Gauss<E> {
    /// Of a column, `x` in the entering row.
    #[inline(always)]
    fn of(simd: E, column: E::V, x: E::V) -> Self {
        let one = simd.splat(1.0);
        // Of all candidates, while the search goes on.
        let (reciprocals, of_x) = (simd.div(one, column), simd.div(one, x));
        // The last six bits are replaced by 63 − lane, and the largest is brought into all lanes.
        let candidates = key(simd, column, cast([63u64, 62, 61, 60, 59, 58, 57, 56]));
        let best = simd.spread_largest_bits(simd.max_bits(candidates, key(simd, x, simd.splat_bits(55))));
        let lane = simd.and_not(best, simd.splat_bits(63));
        let taken = simd.equal(candidates, best);
        let (pivot, r) = (simd.pick(column, lane, x), simd.pick(reciprocals, lane, of_x));
        let l = simd.mul(simd.select(taken, x, column), r);
        Self { best: first_lane(simd, best), lane, taken, pivot, l }
    }
}

/// The bits of |v|, the last six replaced.
#[inline(always)]
fn key<E: Eight>(simd: E, v: E::V, last: E::I) -> E::I {
    simd.or(simd.and(cast(v), simd.splat_bits(i64::MAX as u64 & !63)), last)
}

#[inline(always)]
fn first_lane<E: Eight>(_: E, v: E::I) -> u64 {
    let [first, ..]: [u64; LANES] = cast(v);
    first
}

/// Sums of moduli and the largest of A, and the columns measured. NaN and infinity have larger bits than all numbers.
#[derive(Clone, Copy)]
struct Norms<E: Eight, const V: usize> {
    one: u64,
    largest: E::I,
    measured: usize,
}

impl<E: Eight, const V: usize> Norms<E, V> {
    fn of(found: &Found<f64>) -> Self {
        Self { one: found.norm_one.to_bits(), largest: cast([0u64; LANES]), measured: found.measured }
    }

    /// Adds a column, which begins with so many rows.
    #[inline(always)]
    fn add(&mut self, simd: E, column: &[f64], rows: usize) {
        let mut moduli = simd.splat(0.0);
        for v in 0..V {
            let Some(x) = column[v * LANES..].first_chunk::<LANES>() else { return };
            let x = simd.select(simd.mask(part((1 << rows) - 1, v)), simd.abs(cast(*x)), simd.splat(0.0));
            self.largest = simd.max_bits(self.largest, cast(x));
            moduli = simd.add(moduli, x);
        }
        self.one = self.one.max(simd.sum(moduli).to_bits());
    }

    /// Measures the columns that are not yet, before this one. False, and none of them is found measured, when a sum of moduli is
    /// not finite.
    fn measure_to(&mut self, simd: E, end: &mut End<f64>, source: Option<&[f64]>, column: usize) -> bool {
        let EndSizes { ncols, looks_at, .. } = end.shape;
        if self.measured < column.min(ncols) {
            simd.vectorize(Measure { simd, norms: self, end, source, last: column.min(looks_at) });
            self.measured = column.min(ncols);
        }
        let largest: [u64; LANES] = cast(self.largest);
        let (one, largest) = (f64::from_bits(self.one), f64::from_bits(largest.into_iter().fold(0, u64::max)));
        let finite = one.is_finite() && largest.is_finite();
        if finite {
            let found = &mut end.found;
            (found.norm_one, found.max_a[0], found.measured) = (one, found.max_a[0].max(largest), self.measured);
        }
        finite
    }
}

struct Measure<'a, E: Eight, const V: usize> {
    simd: E,
    norms: &'a mut Norms<E, V>,
    end: &'a End<f64>,
    source: Option<&'a [f64]>,
    last: usize,
}

impl<E: Eight, const V: usize> pulp::NullaryFnOnce for Measure<'_, E, V> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { simd, norms, end, source, last } = self;
        let shape @ EndSizes { n, kl, ku, ncols, .. } = end.shape;
        let a = source.unwrap_or(&end.values);
        for c in norms.measured..last.min(ncols) {
            let whole = (ku..n.saturating_sub(kl)).contains(&c);
            let from = shape.source_column(c) + shape.source_room();
            if let (true, Some(column)) = (whole, a.get(from..from + V * LANES)) {
                norms.add(simd, column, kl + ku + 1);
            } else {
                let a = end.column(source, c);
                let mut column = [0.0; 3 * LANES];
                column[..a.len()].copy_from_slice(a);
                norms.add(simd, &column, column.len());
            }
        }
    }
}

impl End<f64> {
    /// Column j of A, ascending in A itself.
    fn column<'a>(&'a self, source: Option<&'a [f64]>, j: usize) -> &'a [f64] {
        &source.unwrap_or(&self.values)[self.shape.source_entries(j)]
    }

    /// Stages columns of A, in place with rows of U above.
    fn stage_a<const S: usize>(&self, source: Option<&[f64]>, columns: Range<usize>, stage: &mut [[f64; S]]) {
        let EndSizes { kl, ku, ncols, direction, .. } = self.shape;
        for (column, c) in stage.iter_mut().zip(columns.start..columns.end.min(ncols)) {
            let a = self.column(source, c);
            let to = &mut column[kl + ku.saturating_sub(c)..][..a.len()];
            copy(a, to);
            if direction == Direction::Backward {
                to.reverse();
            }
        }
    }

    /// Stages the rows of U before these columns.
    fn restore<const S: usize>(&self, stage: &mut [[f64; S]], first: usize) {
        let (ncols, kv, ld) = (self.shape.ncols, self.shape.kv(), self.shape.ld());
        for (column, c) in stage.iter_mut().zip(first..ncols.min(first + kv)) {
            let places = kv.saturating_sub(c)..kv + first - c;
            column[places.clone()].copy_from_slice(&self.values[c * ld..][places]);
        }
    }

    /// Puts them back.
    fn keep<const S: usize>(&mut self, stage: &[[f64; S]], first: usize) {
        let (ncols, kv, ld) = (self.shape.ncols, self.shape.kv(), self.shape.ld());
        for (column, c) in stage.iter().zip(first..ncols.min(first + kv)) {
            let rows = kv + first - c;
            self.values[c * ld..][..rows].copy_from_slice(&column[..rows]);
            max_lanes(&column[..rows], &mut self.found.max_u);
        }
    }
}

/// Columns leave the stage, and the largest of U is noted.
struct Leave<'a, E, const S: usize> {
    simd: E,
    end: &'a mut End<f64>,
    stage: &'a [[f64; S]],
    columns: Range<usize>,
}

impl<E: Eight, const S: usize> pulp::NullaryFnOnce for Leave<'_, E, S> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { simd, end, stage, columns } = self;
        let EndSizes { kl, cols, .. } = end.shape;
        let (kv, ld, first) = (end.shape.kv(), end.shape.ld(), columns.start);
        let mut largest = simd.splat_bits(0);
        let values = &mut end.values[..];
        for (column, c) in stage.iter().zip(columns.clone()) {
            let (vectors, to) = (column.as_chunks::<LANES>().0, &mut values[c * ld..]);
            for (v, u) in vectors.iter().enumerate() {
                let u = simd.select(simd.mask(part((2 << kv) - 1, v)), cast(*u), simd.splat(0.0));
                largest = larger(simd, largest, u);
            }
            match to.get_mut(..S) {
                // Into columns behind, at most three, that leave after this one.
                Some(to) if c + 3 < columns.end => {
                    for (v, (to, from)) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(vectors).enumerate() {
                        if v * LANES < ld {
                            *to = *from;
                        }
                    }
                }
                _ => copy(&column[..ld], &mut to[..ld]),
            }
        }
        if end.shape.place == Place::Apart {
            let lower = &mut end.lower[..];
            for c in columns.filter(|c| c * kl + LANES > cols * kl) {
                lower[c * kl..][..kl].copy_from_slice(&stage[c - first][kv + 1..][..kl]);
            }
        }
        end.found.note_u(cast(largest));
    }
}
