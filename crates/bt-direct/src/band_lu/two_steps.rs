//! Narrow bands of doubles in eight lanes (AVX-512 or AVX2): the steps of `narrow.rs` two by two, with multipliers and the order of
//! the lanes in registers.
//!
//! The pivots' rows leave their lanes, the entering rows come in and the multiples are subtracted in one pass over the window, in
//! which a column is loaded and stored once, as whole registers: a lane written by itself would hold up the next load of the
//! column. The first columns of a pass give the pivots of the next one, which are found while the others are updated. Rows come
//! from A and go to U two numbers a column, without a copy in between.

use std::hint::select_unpredictable;
use std::ops::Range;

use bt_formats::RealScalar;
use bt_simd::Eight;
use pulp::bytemuck::{Pod, cast};

use super::Tuning;
use super::end::{Direction, End, EndSizes, Found, Lanes, reciprocal};
use super::kernels::LANES;
use super::narrow::tiny_pivot_lane;
use crate::lines;
use crate::pivot::Pivot;

/// The columns first..last of a narrow band. False without these registers, for bands of a few diagonals, an odd number of columns,
/// and where rows or columns of the window do not exist.
pub(super) fn eliminate(end: &mut End<f64>, source: Option<&[f64]>, first: usize, last: usize) -> bool {
    let EndSizes { kl, rows, ncols, direction, .. } = end.shape;
    let kv = end.shape.kv();
    let Tuning::Narrow { registers, .. } = end.tuning else { return false };
    if kl == 0 || kv < 4 || !(last - first).is_multiple_of(2) || last + kl > rows || last + kv + kl > ncols {
        return false;
    }
    if let Some(simd) = bt_simd::avx512() {
        from(simd, end, source, direction, registers, first..last);
        true
    } else if let Some(simd) = bt_simd::avx2() {
        from(simd, end, source, direction, registers, first..last);
        true
    } else {
        false
    }
}

fn from<E: Eight>(
    simd: E,
    end: &mut End<f64>,
    source: Option<&[f64]>,
    direction: Direction,
    registers: usize,
    columns: Range<usize>,
) {
    match (source, direction) {
        (None, _) => run(simd, end, InPlace, registers, columns),
        (Some(a), Direction::Forward) => run(simd, end, Down(a), registers, columns),
        (Some(a), Direction::Backward) => run(simd, end, Up(a), registers, columns),
    }
}

fn run<E: Eight, R: Rows>(simd: E, end: &mut End<f64>, rows: R, registers: usize, columns: Range<usize>) {
    match registers {
        1 => simd.vectorize(Strip::<E, R, 1> { simd, end, rows, columns }),
        2 => simd.vectorize(Strip::<E, R, 2> { simd, end, rows, columns }),
        _ => simd.vectorize(Strip::<E, R, 4> { simd, end, rows, columns }),
    }
}

/// Where the rows of A come from.
trait Rows: Copy {
    /// Numbers of rows i, i + 1 in the column where row i is at `at`; `factors` are the factors' values.
    fn pair(self, factors: &[f64], at: usize) -> [f64; 2];
    /// A by itself; nothing where it is in the place of its factors.
    fn values(&self) -> &[f64];
    /// Where A(i, j) is.
    #[inline(always)]
    fn at(self, shape: EndSizes, i: usize, j: usize) -> usize {
        shape.source_at(i, j)
    }
}

/// The factors' storage, from the first row.
#[derive(Clone, Copy)]
struct InPlace;

impl Rows for InPlace {
    #[inline(always)]
    fn pair(self, factors: &[f64], at: usize) -> [f64; 2] {
        [factors[at], factors[at + 1]]
    }
    #[inline(always)]
    fn values(&self) -> &[f64] {
        &[]
    }
    #[inline(always)]
    fn at(self, shape: EndSizes, i: usize, j: usize) -> usize {
        shape.at(i, j)
    }
}

/// A, seen from its first row.
#[derive(Clone, Copy)]
struct Down<'a>(&'a [f64]);

impl Rows for Down<'_> {
    #[inline(always)]
    fn pair(self, _: &[f64], at: usize) -> [f64; 2] {
        [self.0[at], self.0[at + 1]]
    }
    #[inline(always)]
    fn values(&self) -> &[f64] {
        self.0
    }
}

/// A, seen from its last row.
#[derive(Clone, Copy)]
struct Up<'a>(&'a [f64]);

impl Rows for Up<'_> {
    #[inline(always)]
    fn pair(self, _: &[f64], at: usize) -> [f64; 2] {
        [self.0[at], self.0[at - 1]]
    }
    #[inline(always)]
    fn values(&self) -> &[f64] {
        self.0
    }
}

/// From a column to the next along a row of A.
#[inline(always)]
fn step<R: Rows>(rows: R, shape: EndSizes) -> usize {
    rows.at(shape, shape.kl, 1).wrapping_sub(rows.at(shape, shape.kl, 0))
}

struct Strip<'a, E, R, const V: usize> {
    simd: E,
    end: &'a mut End<f64>,
    rows: R,
    columns: Range<usize>,
}

/// The pivot of a column and its multipliers; that of the entering row is in the pivot's lane, which it takes.
#[derive(Clone, Copy)]
struct Gauss<E: Eight, const V: usize> {
    /// V·8 stands for the entering row.
    lane: usize,
    pivot: f64,
    l: [E::V; V],
}

impl<E: Eight, R: Rows, const V: usize> pulp::NullaryFnOnce for Strip<'_, E, R, V> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { simd, end, rows, columns: Range { start: first, end: last } } = self;
        let shape = end.shape;
        let EndSizes { kl, ku, .. } = shape;
        let (kv, stride, step) = (shape.kv(), shape.ld() - 1, step(rows, shape));
        // The row that enters with step j, in column j.
        let entering = |j: usize| rows.at(shape, j + kl, j);
        if first == 0 {
            // Whichever row is the first, it goes as far as the band above the diagonal.
            end.tops[..ku].fill(0);
            end.found.reach = ku;
        }
        let mut order = Order::<E, V>::load(end, first);
        let mut largest = simd.splat_bits(0);

        // The pivots of the first two columns.
        let window = end.window.as_chunks_mut::<V>().0;
        let [comes, following] = [0, 1].map(|c| rows.pair(&end.values, entering(first).wrapping_add(c * step)));
        let mut one = Gauss::of(simd, load(&window[0]), &window[0], comes[0]);
        let (w, u) = one.pass(simd, load(&window[1]), &window[1], following[0]);
        window[1] = unload(w);
        end.values[shape.at(first, first + 1)] = u;
        let mut two = Gauss::of(simd, w, &window[1], following[1]);
        for j in (first..last).step_by(2) {
            let ahead = j - first + last + kv;
            if ahead + 1 < shape.n.min(shape.ncols) {
                // What the next strip begins with. A column of A has as many values as from one diagonal to the next.
                let len = step.cast_signed().unsigned_abs() + 1;
                for column in [ahead, ahead + 1] {
                    let head = rows.at(shape, column, column) - kv;
                    lines::fetch(rows.values(), head..head + len);
                    lines::fetch(&end.values, column * shape.ld()..(column + 1) * shape.ld());
                    lines::fetch(&end.lower, column * kl..(column + 1) * kl);
                }
            }
            for (j, gauss) in [(j, &one), (j + 1, &two)] {
                if gauss.pivot == 0.0 {
                    end.found.singular = Some(j);
                    return;
                }
                let position = order.exchange(simd, gauss.lane, kl);
                end.note_pivot_of(j, j + position);
                end.count(j, gauss.pivot);
                let diagonal = shape.at(j, j);
                end.values[diagonal] = gauss.pivot;
                largest = larger(simd, largest, simd.splat(gauss.pivot));
                order.write(simd, gauss.l, &mut shape.multipliers(j, &mut end.values, &mut end.lower)[..kl]);
            }
            let multiplier = {
                let (l, place): ([[f64; LANES]; V], _) = (cast_each(one.l), two.place());
                l[place / LANES][place % LANES]
            };
            // As good as always one of the two: a number that varied would be guessed wrong in every step.
            let reached = if end.found.reach - j - 1 <= ku + 1 { ku + 1 } else { kv };
            let t = j - first;
            let window = &mut end.window.as_chunks_mut::<V>().0[t + 1..=t + kv + 1];
            let values = &mut end.values[..];
            let (mut at, mut to) = (entering(j).wrapping_add(step), shape.at(j, j + 1));
            largest = larger(simd, largest, simd.splat(values[to]));
            // Both steps in column c.
            macro_rules! both {
                ($w:expr) => {{
                    at = at.wrapping_add(step);
                    to += stride;
                    let comes = rows.pair(values, at);
                    let (w, u) = both(simd, &one, &two, $w, comes, multiplier);
                    values[to..to + 2].copy_from_slice(&u);
                    largest = larger(simd, larger(simd, largest, simd.splat(u[0])), simd.splat(u[1]));
                    w
                }};
            }
            let [_, third, fourth, others @ ..] = window else { unreachable!("kv > 3") };
            let (mut next_one, mut next_two) = (one, two);
            let w = both!(third);
            *third = unload(w);
            if j + 2 < last {
                next_one = Gauss::of(simd, w, third, rows.pair(values, entering(j + 2))[0]);
            }
            let mut w = both!(fourth);
            *fourth = unload(w);
            if j + 2 < last {
                let comes = rows.pair(values, entering(j + 2).wrapping_add(step));
                let u;
                (w, u) = next_one.pass(simd, w, fourth, comes[0]);
                *fourth = unload(w);
                values[shape.at(j + 2, j + 3)] = u;
                next_two = Gauss::of(simd, w, fourth, comes[1]);
            }
            let [others @ .., farthest] = others else { unreachable!("kv > 3") };
            let (within, beyond) = others.split_at_mut(reached.saturating_sub(3).min(kv - 3));
            let count = within.len();
            let sweep =
                Sweep { simd, one: &one, two: &two, rows, columns: within, values: &mut *values, at, to, shape };
            largest = larger(simd, largest, cast(sweep.by_lanes()));
            at = at.wrapping_add(count.wrapping_mul(step));
            to += count * stride;
            // Here the pivots' rows are zero.
            for w in beyond {
                at = at.wrapping_add(step);
                to += stride;
                values[to..to + 2].fill(0.0);
                let comes = rows.pair(values, at);
                one.enter(w, comes[0]);
                two.enter(w, comes[1]);
            }
            // The first step ends before the last column.
            at = at.wrapping_add(step);
            to += stride;
            let (w, u) = two.pass(simd, load(farthest), farthest, rows.pair(values, at)[1]);
            *farthest = unload(w);
            values[to + 1] = u;
            largest = larger(simd, largest, simd.splat(u));
            (one, two) = (next_one, next_two);
        }
        end.forget_beyond(kl + 1);
        order.store(end, last);
        end.found.note_u(cast(largest));
        end.slide::<V>(last - first);
    }
}

/// Lanes of the rows at the positions j, j + 1, …; no lane behind the kl-th.
#[derive(Clone, Copy)]
pub(super) struct Order<E: Eight, const V: usize>([E::I; V]);

impl<E: Eight, const V: usize> Order<E, V> {
    pub(super) fn load(end: &End<f64>, first: usize) -> Self {
        let (kl, mask) = (end.shape.kl, end.lane_at.len() - 1);
        let mut lanes = [[-1i64; LANES]; V];
        for (i, lane) in lanes.as_flattened_mut()[..kl].iter_mut().enumerate() {
            *lane = i64::from(end.lane_at[(first + i) & mask]);
        }
        Self(cast_each(lanes))
    }

    pub(super) fn store(&self, end: &mut End<f64>, last: usize) {
        let (kl, mask) = (end.shape.kl, end.lane_at.len() - 1);
        let lanes: [[i64; LANES]; V] = cast_each(self.0);
        for (i, &lane) in lanes.as_flattened()[..kl].iter().enumerate() {
            end.lane_at[(last + i) & mask] = lane as u32;
            end.position[lane as usize] = (last + i) as u32;
        }
    }

    /// The pivot's place. The row at position j goes there, and the entering row into the pivot's lane.
    #[inline(always)]
    pub(super) fn exchange(&mut self, simd: E, lane: usize, kl: usize) -> usize {
        let order = &mut self.0;
        let fresh = lane == V * LANES;
        let [displaced, ..]: [u64; LANES] = cast(order[0]);
        let (chosen, displaced) = (simd.splat_bits(lane as u64), simd.splat_bits(displaced));
        let mut found = 0u64;
        for v in 0..V {
            found |= u64::from(simd.bits(simd.equal(order[v], chosen))) << (LANES * v);
        }
        let enters = simd.select_bits(simd.mask(if fresh { u8::MAX } else { 0 }), displaced, chosen);
        let newest = 1u64 << (kl - 1);
        for v in 0..V {
            order[v] = simd.select_bits(simd.mask(part(found, v)), displaced, order[v]);
        }
        for v in 0..V {
            let shifted = simd.next_lanes(order[v], order[(v + 1).min(V - 1)]);
            order[v] = simd.select_bits(simd.mask(part(newest, v)), enters, shifted);
        }
        select_unpredictable(fresh, kl, found.trailing_zeros() as usize)
    }

    /// The multipliers by their rows' positions.
    #[inline(always)]
    pub(super) fn gather(&self, simd: E, l: [E::V; V]) -> [[f64; LANES]; V] {
        {
            let mut out = l;
            for v in 0..V {
                out[v] = simd.gather(l, self.0[v]);
            }
            cast_each(out)
        }
    }

    /// Writes them.
    #[inline(always)]
    fn write(&self, simd: E, l: [E::V; V], column: &mut [f64]) {
        let kl = column.len();
        for (v, l) in self.gather(simd, l).into_iter().enumerate() {
            let rest = &mut column[(v * LANES).min(kl)..];
            if let Some(full) = rest.first_chunk_mut::<LANES>() {
                *full = l;
            } else {
                rest.copy_from_slice(&l[..rest.len()]);
            }
        }
    }
}

/// Two steps in the columns behind the ones that `at` and `to` stand for.
struct Sweep<'a, E: Eight, R, const V: usize> {
    simd: E,
    one: &'a Gauss<E, V>,
    two: &'a Gauss<E, V>,
    rows: R,
    columns: &'a mut [[Lanes<f64>; V]],
    values: &'a mut [f64],
    at: usize,
    to: usize,
    shape: EndSizes,
}

/// Whose rows the pivots are.
mod pivots {
    pub(super) const IN_LANES: u8 = 0;
    /// The row that entered with the first step is the second pivot's.
    pub(super) const SAME_LANE: u8 = 1;
    pub(super) const FIRST_ENTERS: u8 = 2;
    pub(super) const SECOND_ENTERS: u8 = 3;
    pub(super) const BOTH_ENTER: u8 = 4;
}

impl<E: Eight, R: Rows, const V: usize> Sweep<'_, E, R, V> {
    /// A loop for each case, without choices in it; the largest |u| by bits. Not inlined: it needs the registers for itself.
    #[inline(never)]
    fn by_lanes(self) -> E::V {
        let fresh = [self.one.lane, self.two.lane].map(|lane| lane == V * LANES);
        let simd = self.simd;
        match fresh {
            [true, true] => simd.vectorize(Case::<E, R, V, { pivots::BOTH_ENTER }>(self)),
            [true, false] => simd.vectorize(Case::<E, R, V, { pivots::FIRST_ENTERS }>(self)),
            [false, true] => simd.vectorize(Case::<E, R, V, { pivots::SECOND_ENTERS }>(self)),
            _ if self.one.lane == self.two.lane => simd.vectorize(Case::<E, R, V, { pivots::SAME_LANE }>(self)),
            _ => simd.vectorize(Case::<E, R, V, { pivots::IN_LANES }>(self)),
        }
    }
}

struct Case<'a, E: Eight, R, const V: usize, const PIVOTS: u8>(Sweep<'a, E, R, V>);

impl<E: Eight, R: Rows, const V: usize, const PIVOTS: u8> pulp::NullaryFnOnce for Case<'_, E, R, V, PIVOTS> {
    type Output = E::V;
    /// The lanes that rows enter are computed and stored one by one, behind the column: its next load is a pass away.
    #[inline(always)]
    fn call(self) -> E::V {
        let Sweep { simd, one, two, rows, columns, values, mut at, mut to, shape } = self.0;
        let (stride, step) = (shape.ld() - 1, step(rows, shape));
        let (i, k) = (one.place(), two.place());
        let (first, second): ([[f64; LANES]; V], [[f64; LANES]; V]) = (cast_each(one.l), cast_each(two.l));
        let (l, m) = (one.l, two.l);
        // Multipliers of the first and second step in the lanes of the first and second pivot.
        let of = |l: &[[f64; LANES]; V], place: usize| l[place / LANES][place % LANES];
        let (l_i, l_k, m_i, m_k) = (of(&first, i), of(&first, k), of(&second, i), of(&second, k));
        let mut largest = simd.splat_bits(0);
        for column in columns {
            at = at.wrapping_add(step);
            to += stride;
            let [x, y] = rows.pair(values, at);
            let u = match PIVOTS {
                pivots::FIRST_ENTERS | pivots::BOTH_ENTER => x,
                _ => column[i / LANES].0[i % LANES],
            };
            let entered = l_i.mul_add(-u, x);
            let v = match PIVOTS {
                pivots::SECOND_ENTERS | pivots::BOTH_ENTER => y,
                pivots::SAME_LANE => entered,
                _ => l_k.mul_add(-u, column[k / LANES].0[k % LANES]),
            };
            values[to..to + 2].copy_from_slice(&[u, v]);
            let (us, vs) = (simd.splat(u), simd.splat(v));
            largest = larger(simd, larger(simd, largest, us), vs);
            for r in 0..V {
                let w = simd.minus_mul(cast(column[r].0), l[r], us);
                column[r].0 = cast(simd.minus_mul(w, m[r], vs));
            }
            if matches!(PIVOTS, pivots::IN_LANES | pivots::SECOND_ENTERS) {
                column[i / LANES].0[i % LANES] = m_i.mul_add(-v, entered);
            }
            if matches!(PIVOTS, pivots::IN_LANES | pivots::SAME_LANE | pivots::FIRST_ENTERS) {
                column[k / LANES].0[k % LANES] = m_k.mul_add(-v, y);
            }
        }
        cast(largest)
    }
}

/// Two steps in one column, in which the entering rows hold `comes`; the column and the pivots' rows. `multiplier` is that of
/// the first step in the second pivot's lane.
#[inline(always)]
fn both<E: Eight, const V: usize>(
    simd: E,
    one: &Gauss<E, V>,
    two: &Gauss<E, V>,
    column: &[Lanes<f64>; V],
    comes: [f64; 2],
    multiplier: f64,
) -> ([E::V; V], [f64; 2]) {
    let (w, u) = one.pass(simd, load(column), column, comes[0]);
    // What the second pivot's lane holds by then.
    let place = two.place();
    let before = select_unpredictable(two.lane == one.lane, comes[0], column[place / LANES].0[place % LANES]);
    let after = multiplier.mul_add(-u, before);
    let v = select_unpredictable(two.lane == V * LANES, comes[1], after);
    (two.subtract(simd, w, v, comes[1]), [u, v])
}

/// max(`largest`, |v|) by their bits.
#[inline(always)]
pub(crate) fn larger<E: Eight>(simd: E, largest: E::I, v: E::V) -> E::I {
    simd.max_bits(largest, simd.modulus_bits(v))
}

impl End<f64> {
    /// As [`End::note_pivot`], with as many stores in every step: too many columns are noted, later steps note those again.
    #[inline(always)]
    fn note_pivot_of(&mut self, j: usize, position: usize) {
        self.pivots[j] = position as u32;
        let reach = self.found.reach;
        self.tops[reach..=reach + self.shape.kl].fill(j as u32);
        self.found.reach = reach.max(position + self.shape.ku + 1);
    }

    /// Of so many columns noted too early, those that are left over when all steps are done.
    pub(super) fn forget_beyond(&mut self, noted: usize) {
        let cols = self.shape.cols;
        let start = self.found.reach.max(cols);
        let noted = start..(self.found.reach + noted).clamp(start, self.tops.len());
        self.tops[noted].fill(cols as u32);
    }
}

impl Found<f64> {
    /// Notes the largest of U lane by lane, by their bits: NaN and infinity have larger ones than all numbers.
    #[inline(always)]
    pub(super) fn note_u(&mut self, largest: [u64; LANES]) {
        for (max, bits) in self.max_u.iter_mut().zip(largest) {
            *max = max.max_nan(f64::from_bits(bits));
        }
    }
}

impl<E: Eight, const V: usize> Gauss<E, V> {
    /// Of a column, in registers and in memory, and the entering row's value in it. The pivot is the largest but for its last
    /// bits, where its lane stands as the columns are compared.
    #[inline(always)]
    fn of(simd: E, column: [E::V; V], memory: &[Lanes<f64>; V], entering: f64) -> Self {
        let (modulus, mut ranks) = (simd.splat_bits(i64::MAX as u64 & !63), cast([63u64, 62, 61, 60, 59, 58, 57, 56]));
        let mut best = simd.splat_bits(0);
        for v in 0..V {
            let key = simd.or(simd.and(cast(column[v]), modulus), ranks);
            best = simd.max_bits(best, key);
            ranks = simd.sub_bits(ranks, simd.splat_bits(LANES as u64));
        }
        let best =
            simd.largest_bits(best).max((entering.to_bits() & (i64::MAX as u64 & !63)) | (63 - V * LANES) as u64);
        let lane = if best >= 64 { 63 - (best & 63) as usize } else { tiny_pivot_lane(memory, entering) };
        let place = lane.min(V * LANES - 1);
        let pivot = select_unpredictable(lane == V * LANES, entering, memory[place / LANES].0[place % LANES]);
        let (taken, comes) = (1u64 << lane, simd.splat(entering));
        let mut l = column;
        for v in 0..V {
            l[v] = simd.select(simd.mask(part(taken, v)), comes, l[v]);
        }
        if let Some(r) = reciprocal(pivot) {
            let r = simd.splat(r);
            for v in 0..V {
                l[v] = simd.mul(l[v], r);
            }
        } else {
            l = quotients(l.map(cast), pivot).map(cast);
        }
        Self { lane, pivot, l }
    }

    /// The pivot's lane, or some lane when the entering row is the pivot.
    #[inline(always)]
    fn place(&self) -> usize {
        self.lane.min(V * LANES - 1)
    }

    /// This step in a column, in registers and in memory, in which the entering row holds `comes`; the column and the
    /// pivot's row.
    #[inline(always)]
    fn pass(&self, simd: E, w: [E::V; V], memory: &[Lanes<f64>; V], comes: f64) -> ([E::V; V], f64) {
        let place = self.place();
        let u = select_unpredictable(self.lane == V * LANES, comes, memory[place / LANES].0[place % LANES]);
        (self.subtract(simd, w, u, comes), u)
    }

    /// The entering row takes the pivot's lane; w − l·u.
    #[inline(always)]
    fn subtract(&self, simd: E, mut w: [E::V; V], u: f64, comes: f64) -> [E::V; V] {
        let (u, comes, taken) = (simd.splat(u), simd.splat(comes), 1u64 << self.lane);
        for v in 0..V {
            let entered = simd.select(simd.mask(part(taken, v)), comes, w[v]);
            w[v] = simd.minus_mul(entered, self.l[v], u);
        }
        w
    }

    /// As [`Gauss::pass`] where the pivot's row is zero.
    #[inline(always)]
    fn enter(&self, column: &mut [Lanes<f64>; V], comes: f64) {
        if let Some(lanes) = column.get_mut(self.lane / LANES) {
            lanes.0[self.lane % LANES] = comes;
        }
    }
}

/// l/pivot, where the reciprocal over- or underflows.
#[cold]
fn quotients<const V: usize>(mut l: [[f64; LANES]; V], pivot: f64) -> [[f64; LANES]; V] {
    let divisor = Pivot::new(pivot);
    l.as_flattened_mut().iter_mut().for_each(|v| *v = divisor.divide(*v));
    l
}

/// Mask of register v.
#[inline(always)]
pub(crate) fn part(lanes: u64, v: usize) -> u8 {
    (lanes >> (LANES * v)) as u8
}

#[inline(always)]
fn load<X: Pod, const V: usize>(column: &[Lanes<f64>; V]) -> [X; V] {
    cast_each(column.map(|v| v.0))
}

#[inline(always)]
fn unload<X: Pod, const V: usize>(column: [X; V]) -> [Lanes<f64>; V] {
    cast_each(column).map(Lanes)
}

/// Arrays as registers.
#[inline(always)]
fn cast_each<A: Pod, B: Pod, const V: usize>(from: [A; V]) -> [B; V] {
    let mut out = [B::zeroed(); V];
    for v in 0..V {
        out[v] = cast(from[v]);
    }
    out
}
