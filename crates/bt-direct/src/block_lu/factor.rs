//! Elimination: two chains of blocks from both ends, each block loaded just before it is needed, then the middle.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bt_formats::{BlockTridiagonal, Monitor, Par, Progress, RealScalar, Scalar};
use faer::dyn_stack::MemBuffer;

use super::engine::{Engine, Vectors};
use super::order::Order;
use super::panel::{self, Dense, Done, Front, Plain};
use super::tiles::Ahead;
use super::{BlockLu, Kernels, METHOD, Place, Reciprocals, Stop};
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::factorization::FactorStats;
use crate::refine::unit_roundoff;
use crate::tridiagonal_lu::reserve;

/// What is remembered of a block, so that an update need not look at the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Largest |re| + |im| in the three blocks of A that it loaded.
    pub(super) max_a: f64,
    /// Largest column sum of |A| among its columns.
    pub(super) norm_one: f64,
    /// max(|Ũ|, |H|·|G|).
    pub(super) growth: f64,
    pub(super) min_pivot: f64,
}

impl Record {
    pub(super) const EMPTY: Self = Self { max_a: 0.0, norm_one: 0.0, growth: 0.0, min_pivot: f64::INFINITY };
}

/// What a chain needs beside its factors.
pub(super) struct Work {
    pub(super) permutation: Vec<u32>,
    pub(super) memory: MemBuffer,
    /// Column sums that the blocks eliminated so far leave to the next one, and those that a block leaves.
    incoming: Vec<f64>,
    outgoing: Vec<f64>,
}

impl Work {
    pub(super) fn new<T: Scalar>(largest: usize) -> Result<Self> {
        let (mut permutation, mut incoming, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut permutation, largest.saturating_mul(4))?;
        permutation.resize(4 * largest, 0);
        for sums in [&mut incoming, &mut outgoing] {
            reserve(sums, largest)?;
            sums.resize(largest, 0.0);
        }
        let memory = MemBuffer::try_new(panel::scratch::<T>(largest))
            .map_err(|_| super::no_memory(format!("work space for blocks of {largest} rows")))?;
        Ok(Self { permutation, memory, incoming, outgoing })
    }
}

/// The blocks on one side of the middle and all that belongs to them.
struct Side<'a, T: Scalar> {
    a: &'a BlockTridiagonal<T>,
    order: &'a Order,
    kernels: Kernels,
    /// Downwards, towards larger numbers, before the middle.
    down: bool,
    blocks: Range<usize>,
    places: &'a [Place],
    /// Of this side alone, from the block that is eliminated first.
    panels: &'a mut [T],
    g: &'a mut [T],
    pivots: &'a mut [u32],
    records: &'a mut [Record],
    work: &'a mut Work,
}

impl<T: Scalar> Side<'_, T> {
    /// The steps that eliminate all blocks but the first `skip` ones, once the work space is ready for them.
    ///
    /// The column sums that go into the first block of interest come from the one before it: once more, with its record
    /// kept, because the sums that went into that one are not known.
    fn steps(&mut self, skip: usize) -> Range<usize> {
        self.work.incoming.fill(0.0);
        skip.saturating_sub(1)..self.blocks.len()
    }

    /// Eliminates one block, if `go_on` says so; its record stays when it is one of the first `skip`.
    fn step<E: Engine<T>>(&mut self, step: usize, skip: usize, go_on: bool) -> Result<(), Stop> {
        if !go_on {
            return Err(FactorError::Stopped.into());
        }
        let Range { start, end } = self.blocks;
        let j = if self.down { start + step } else { end - 1 - step };
        let kept = self.records[j - start];
        self.eliminate::<E>(j, step > 0)?;
        if step < skip {
            self.records[j - start] = kept;
        }
        Ok(())
    }

    /// All blocks. `go_on` is asked before each.
    fn run<E: Engine<T>>(&mut self, mut go_on: impl FnMut() -> bool) -> Result<(), Stop> {
        self.steps(0).try_for_each(|step| self.step::<E>(step, 0, go_on()))
    }

    fn eliminate<E: Engine<T>>(&mut self, j: usize, has_previous: bool) -> Result<(), Stop> {
        let Range { start, end } = self.blocks;
        let (k, next) = (self.order.size(j), self.order.next_size(j));
        let (first, last, following) =
            if self.down { (start, j.wrapping_sub(1), j + 1) } else { (end - 1, j + 1, j.wrapping_sub(1)) };
        let (place, first) = (self.places[j], self.places[first]);
        // The block, those eliminated before it, the last of which is its other neighbour, and those to come.
        let (before, rest) = self.panels.split_at_mut(place.panel - first.panel);
        let (panel, after) = rest.split_at_mut((k + next) * k);
        let (g_before, rest) = self.g.split_at_mut(place.g - first.g);
        let g = &mut rest[..k * next];
        let previous = has_previous.then(|| Done::last_of(before, g_before, self.order.size(last), k));
        let rows = self.order.rows(j);
        let first_row = self.order.rows(start).start;
        let pivots = &mut self.pivots[rows.start - first_row..rows.end - first_row];
        let Work { incoming, outgoing, .. } = &mut *self.work;
        let mut front = Front { k, next, panel, g, pivots };
        let record = &mut self.records[j - start];
        if self.kernels == Kernels::Auto
            && let Some(from) = Dense::of(self.a, self.order, j)
            && let Some(done) = {
                let small = self.blocks.contains(&following) && size_of_val(&*front.panel) <= Ahead::<T>::LARGEST;
                let ahead = if small { Dense::of(self.a, self.order, following) } else { None };
                let to = &after[..after.len().min(front.panel.len())];
                let ahead = Ahead(ahead.map_or([&[][..]; 4], |d| [d.own, d.below, d.beside, to]));
                E::whole(&mut front, &from, previous.as_ref(), &incoming[..k], &mut outgoing[..next], ahead)
            }
        {
            *record = done;
            std::mem::swap(&mut self.work.incoming, &mut self.work.outgoing);
            return Ok(());
        }
        (record.max_a, record.norm_one) =
            panel::load_block::<T, E>(self.a, self.order, j, &mut front, &[&incoming[..k]], &mut outgoing[..next]);
        eliminate_front::<T, E>(front, &[previous, None], self.kernels, self.work, record, j, rows.start, false)?;
        std::mem::swap(&mut self.work.incoming, &mut self.work.outgoing);
        Ok(())
    }
}

/// D̃ ← D − Σ H·G, then P·D̃ = L̃·Ũ, H ← L·Ũ⁻¹, G ← L̃⁻¹·P·U; fails where there is no pivot or no finite number.
fn eliminate_front<T: Scalar, E: Engine<T>>(
    mut front: Front<'_, T>,
    previous: &[Option<Done<'_, T>>; 2],
    kernels: Kernels,
    work: &mut Work,
    record: &mut Record,
    block: usize,
    first_row: usize,
    last: bool,
) -> Result<(), Stop> {
    if !record.max_a.is_finite() || !record.norm_one.is_finite() {
        return Err(Stop::NonFinite);
    }
    for done in previous.iter().flatten() {
        front.subtract::<E>(done, kernels);
    }
    if let Some(row) = front.eliminate::<E>(kernels, &mut work.permutation, &mut work.memory) {
        return Err(no_pivot(block, row, first_row, last).into());
    }
    (record.growth, record.min_pivot) = E::measure(&front);
    if !record.growth.is_finite() {
        return Err(too_much_growth(block, record.growth).into());
    }
    Ok(())
}

impl<T: Scalar> BlockLu<T> {
    /// Eliminates what is not skipped: numbers of blocks before and after the middle whose factors stay.
    pub(super) fn factor(
        &mut self,
        a: &BlockTridiagonal<T>,
        skip: [usize; 2],
        monitor: &mut dyn Monitor,
    ) -> Result<(), Stop> {
        let m = self.order.n_blocks();
        if m > 0 {
            self.eliminate_with_best_loops(a, skip, monitor)?;
        }
        let mut all = Record { growth: 0.0, ..Record::EMPTY };
        let mut worst = 0;
        for (j, r) in self.records.iter().enumerate() {
            all.max_a = all.max_a.max(r.max_a);
            all.norm_one = all.norm_one.max_nan(r.norm_one);
            all.min_pivot = all.min_pivot.min(r.min_pivot);
            if r.growth > all.growth {
                (all.growth, worst) = (r.growth, j);
            }
        }
        let growth = if all.max_a > 0.0 { all.growth / all.max_a } else { 1.0 };
        if !(growth <= 1.0 / unit_roundoff::<T>().sqrt()) {
            return Err(too_much_growth(worst, growth).into());
        }
        if !all.norm_one.is_finite() {
            return Err(Stop::NonFinite);
        }
        // Pivots are elements of Ũ, so the growth bounds them.
        let tiny = T::Real::MIN_POSITIVE.to_f64() * 16.0;
        let normal = all.min_pivot >= tiny && all.growth <= 1.0 / tiny;
        self.reciprocals = if normal { Reciprocals::Normal } else { Reciprocals::Extreme };
        self.stats = FactorStats {
            norm_one: all.norm_one,
            growth,
            min_pivot: if m > 0 { all.min_pivot } else { 0.0 },
            boosted_pivots: 0,
            nnz: self.panels.len() + self.g.len(),
            bytes: size_of_val(&*self.panels)
                + size_of_val(&*self.g)
                + size_of_val(&*self.pivots)
                + size_of_val(&*self.places)
                + size_of_val(&*self.records),
            flops: Self::flops(&self.order.partition),
        };
        Ok(())
    }

    /// Real numbers go through explicit vectors: their type is found out here, once.
    fn eliminate_with_best_loops(
        &mut self,
        a: &BlockTridiagonal<T>,
        skip: [usize; 2],
        monitor: &mut dyn Monitor,
    ) -> Result<(), Stop> {
        let matrix: &dyn Any = a;
        if let Some(a) = matrix.downcast_ref::<BlockTridiagonal<f64>>() {
            let this: &mut dyn Any = self;
            if let Some(this) = this.downcast_mut::<BlockLu<f64>>() {
                return this.eliminate_all::<Vectors>(a, skip, monitor);
            }
        } else if let Some(a) = matrix.downcast_ref::<BlockTridiagonal<f32>>() {
            let this: &mut dyn Any = self;
            if let Some(this) = this.downcast_mut::<BlockLu<f32>>() {
                return this.eliminate_all::<Vectors>(a, skip, monitor);
            }
        }
        self.eliminate_all::<Plain>(a, skip, monitor)
    }

    fn eliminate_all<E: Engine<T>>(
        &mut self,
        a: &BlockTridiagonal<T>,
        skip: [usize; 2],
        monitor: &mut dyn Monitor,
    ) -> Result<(), Stop> {
        let (m, middle) = (self.order.n_blocks(), self.order.middle);
        let Self { order, kernels, panels, g, places, pivots, records, work, .. } = self;
        let kernels = *kernels;
        let rows = order.rows(middle);
        let k = rows.len();
        let (before, rest) = panels.split_at_mut(places[middle].panel);
        let (own, after) = rest.split_at_mut(k * k);
        let (g_before, g_after) = g.split_at_mut(places[middle].g);
        let (pivots_before, rest) = pivots.split_at_mut(rows.start);
        let (own_pivots, pivots_after) = rest.split_at_mut(k);
        let (records_before, rest) = records.split_at_mut(middle);
        let (record, records_after) = rest.split_at_mut(1);
        let [left_work, right_work] = work;
        let (order, places) = (&*order, &**places);
        let mut left = Side {
            a,
            order,
            kernels,
            down: true,
            blocks: 0..middle,
            places,
            panels: before,
            g: g_before,
            pivots: pivots_before,
            records: records_before,
            work: left_work,
        };
        let mut right = Side {
            a,
            order,
            kernels,
            down: false,
            blocks: middle + 1..m,
            places,
            panels: after,
            g: g_after,
            pivots: pivots_after,
            records: records_after,
            work: right_work,
        };
        // Of two failures the one before the middle is told, whichever thread is faster.
        let outcome = if skip == [0; 2] && worth_threads(order) {
            let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
            let (mut first, mut second) = (Ok(()), Ok(()));
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| {
                    second = right.run::<E>(|| {
                        done.fetch_add(1, Ordering::Relaxed);
                        !stop.load(Ordering::Relaxed)
                    });
                });
                first = left.run::<E>(|| {
                    let done = done.fetch_add(1, Ordering::Relaxed);
                    let go_on = monitor.observe(step(done, m)).is_continue();
                    stop.fetch_or(!go_on, Ordering::Relaxed);
                    go_on
                });
            });
            first.and(second)
        } else {
            let mut done = 0;
            let mut go_on = || {
                done += 1;
                monitor.observe(step(done - 1, m)).is_continue()
            };
            // A block of either side in turn: while one waits for its pivots, the processor goes on with the other.
            let (mut first, mut second) = (left.steps(skip[0]), right.steps(skip[1]));
            let mut outcome = Ok(());
            while !(first.is_empty() && second.is_empty()) {
                if let Some(step) = first.next() {
                    left.step::<E>(step, skip[0], go_on())?;
                }
                if let Some(step) = second.next() {
                    outcome = right.step::<E>(step, skip[1], go_on());
                    if outcome.is_err() {
                        second = 0..0;
                    }
                }
            }
            outcome
        };
        outcome?;
        if monitor.observe(step(m - 1, m)).is_break() {
            return Err(FactorError::Stopped.into());
        }
        let previous = [
            (middle > 0).then(|| Done::last_of(left.panels, left.g, order.size(middle.max(1) - 1), k)),
            (middle + 1 < m).then(|| Done::last_of(right.panels, right.g, order.size(middle + 1), k)),
        ];
        let sums = [&left.work.incoming[..k], &right.work.incoming[..k]];
        let mut front = Front { k, next: 0, panel: own, g: &mut [], pivots: own_pivots };
        let record = &mut record[0];
        (record.max_a, record.norm_one) = panel::load_block::<T, E>(a, order, middle, &mut front, &sums, &mut []);
        eliminate_front::<T, E>(front, &previous, kernels, left.work, record, middle, rows.start, true)
    }

    /// The blocks on either side whose factors do not depend on block row `j` of A.
    pub(super) fn unchanged(&self, j: usize) -> [usize; 2] {
        let (m, middle) = (self.order.n_blocks(), self.order.middle);
        // Row j holds Lⱼ, which the block before loads, and Uⱼ, which is G of block j or L of the block after it.
        let before = if j <= middle { j.saturating_sub(1) } else { middle };
        let after = if j >= middle { m - 1 - (j + 1).min(m - 1) } else { m - 1 - middle };
        [before, after]
    }
}

fn step(done: usize, total: usize) -> Progress {
    Progress::Step { phase: "setup", done, total }
}

/// Whether both chains are long enough to wake a thread for one of them.
fn worth_threads(order: &Order) -> bool {
    let [before, _, after] = order.split_rows();
    let width = order.partition.n() / order.n_blocks().max(1);
    Par::auto(before.min(after).saturating_mul(24 * width.max(1))) == Par::Rayon
}

fn no_pivot(block: usize, row: usize, start: usize, last: bool) -> FactorError {
    if last {
        let column = start + row;
        return FactorError::Singular(Singularity { kind: SingularKind::Numerical, column, block: Some(block) });
    }
    FactorError::Breakdown {
        method: METHOD,
        reason: format!(
            "no pivot inside block {block} for its column {row}, column {} of the matrix (from 0); pivoting across \
             blocks is needed: band-lu",
            start + row
        ),
    }
}

fn too_much_growth(block: usize, growth: f64) -> FactorError {
    FactorError::Breakdown {
        method: METHOD,
        reason: format!(
            "elements grow by {growth:.1e} in block {block}: what elimination left of it is nearly singular; pivoting across \
             blocks is needed: band-lu"
        ),
    }
}
