//! Elimination: two chains of blocks from both ends, each block loaded just before it is needed, then the middle.

use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bt_formats::{BlockTridiagonal, Couplings, DiagonalBlocks, Monitor, Par, Progress, RealScalar, Scalar, c32, c64};
use faer::dyn_stack::MemBuffer;

use super::engine::{Complexes, Vectors};
use super::job::{Ahead, Chain, Dense, Done, Engine, Front, Job, Packed, Record};
use super::order::Order;
use super::packed;
use super::panel;
use super::{BlockLu, Kernels, METHOD, Reciprocals, Stop};
use crate::block_cyclic::front::met_up_to;
use crate::error::{self, FactorError, Result};
use crate::factorization::FactorStats;
use crate::lines::{self, Lines};
use crate::memory::reserve;
use crate::refine::{growth_limit, unit_roundoff};

/// What a chain needs beside its factors.
pub(super) struct ChainScratch<T: Scalar> {
    pub(super) permutation: Vec<u32>,
    pub(super) memory: MemBuffer,
    /// Column sums that the blocks eliminated so far leave to the next one, and those that a block leaves.
    incoming: Vec<f64>,
    outgoing: Vec<f64>,
    space: Lines<T::Real>,
}

impl<T: Scalar> ChainScratch<T> {
    /// For blocks of sizes between these.
    #[inline(never)]
    pub(super) fn new((smallest, largest): (usize, usize)) -> Result<Self> {
        let (mut permutation, mut incoming, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut permutation, largest.saturating_mul(4))?;
        permutation.resize(4 * largest, 0);
        for sums in [&mut incoming, &mut outgoing] {
            reserve(sums, largest)?;
            sums.resize(largest, 0.0);
        }
        let memory = MemBuffer::try_new(panel::scratch::<T>(largest))
            .map_err(|_| super::no_memory(format!("work space for blocks of {largest} rows")))?;
        let space = Lines::zeros(if smallest == largest { packed::space::<T>(largest) } else { 0 })?;
        Ok(Self { permutation, memory, incoming, outgoing, space })
    }
}

/// The blocks on one side of the middle that are still to be eliminated, and all that belongs to them.
struct Remaining<'a, T: Scalar> {
    a: &'a BlockTridiagonal<T>,
    order: &'a Order,
    kernels: Kernels,
    /// Downwards, towards larger numbers, before the middle.
    down: bool,
    blocks: Range<usize>,
    /// From the block that is eliminated next.
    panels: &'a mut [T],
    g: &'a mut [T],
    /// From the smallest row and block.
    pivots: &'a mut [u32],
    records: &'a mut [Record],
    /// What the next block is loaded from, where kernels may take it as a whole.
    from: Option<Dense<'a, T>>,
    previous: Option<Done<'a, T>>,
    work: &'a mut ChainScratch<T>,
}

impl<'a, T: Scalar> Remaining<'a, T> {
    #[inline(never)]
    fn new(
        a: &'a BlockTridiagonal<T>,
        order: &'a Order,
        kernels: Kernels,
        blocks: Range<usize>,
        (panels, g): (&'a mut [T], &'a mut [T]),
        (pivots, records): (&'a mut [u32], &'a mut [Record]),
        work: &'a mut ChainScratch<T>,
    ) -> Self {
        let down = blocks.end == order.middle;
        work.incoming.fill(0.0);
        let mut side =
            Self { a, order, kernels, down, blocks, panels, g, pivots, records, from: None, previous: None, work };
        side.from = side.following();
        side
    }

    fn following(&self) -> Option<Dense<'a, T>> {
        let j = if self.down { self.blocks.clone().next() } else { self.blocks.clone().next_back() };
        if self.kernels == Kernels::Auto { Dense::of(self.a, self.order, j?) } else { None }
    }

    /// Begins behind the first `skip` blocks, whose factors and records stay.
    fn skip<E: Engine<T>>(&mut self, skip: usize) -> Result<(), Stop> {
        for left in (0..skip).rev() {
            let Some(mut block) = self.next() else { break };
            if left == 0 {
                // The column sums that go into the block behind it come from this one: once more.
                let kept = *block.record;
                block.eliminate::<E>()?;
                *block.record = kept;
            } else {
                block.pass(Packed::No);
            }
        }
        Ok(())
    }

    /// All blocks. `go_on` is asked now and then about the next ones.
    fn run<E: Engine<T>>(&mut self, mut go_on: impl FnMut(usize) -> Result<(), Stop>) -> Result<(), Stop> {
        let chains = chains_at_once::<T, E>(self.a, self.order, self.kernels) == 1;
        loop {
            if chains {
                run_chains::<T, E, 1>([self], &mut go_on)?;
            }
            let Some(mut block) = self.next() else { return Ok(()) };
            go_on(1)?;
            block.eliminate::<E>()?;
        }
    }

    /// All blocks, if they are dense ones of one size.
    fn chain(&mut self) -> Chain<'_, T> {
        let (own, couplings) = match (self.a.diagonal(), self.a.couplings()) {
            (DiagonalBlocks::Dense { values: own, .. }, Couplings::Dense { values, .. }) => (&own[..], &values[..]),
            _ => (&[][..], &[][..]),
        };
        let (k, Range { start, end }) = (self.order.sizes.0, self.blocks.clone());
        // Block rows are [Lⱼ Uⱼ], the first one [U₀].
        let pairs = if self.down { start..end } else { start - 1..end - 1 };
        let own = own.get(start * k * k..end * k * k).unwrap_or_default();
        let couplings = couplings.get(2 * pairs.start * k * k..2 * pairs.end * k * k).unwrap_or_default();
        let Self { down, panels, g, pivots, records, previous, work, .. } = self;
        let (down, blocks, previous) = (*down, own.len() / (k * k), *previous);
        let incoming = &mut work.incoming;
        Chain { k, down, blocks, own, couplings, panels, g, pivots, records, previous, incoming }
    }

    /// Goes past so many blocks of a chain, which have been eliminated.
    fn pass(&mut self, blocks: usize) {
        let Some(most) = blocks.checked_sub(1) else { return };
        let (k, Range { start, end }) = (self.order.sizes.0, self.blocks.clone());
        let left = end - start - most;
        let Self { down, blocks, panels, g, pivots, records, .. } = &mut *self;
        *panels = &mut std::mem::take(panels)[most * 2 * k * k..];
        *g = &mut std::mem::take(g)[most * k * k..];
        if *down {
            *pivots = &mut std::mem::take(pivots)[most * k..];
            *records = &mut std::mem::take(records)[most..];
            *blocks = end - left..end;
        } else {
            *pivots = &mut std::mem::take(pivots)[..left * k];
            *records = &mut std::mem::take(records)[..left];
            *blocks = start..start + left;
        }
        if let Some(mut last) = self.next() {
            last.pass(Packed::No);
        }
    }

    /// The next block.
    fn next(&mut self) -> Option<Ready<'_, 'a, T>> {
        let j = if self.down { self.blocks.next()? } else { self.blocks.next_back()? };
        let (k, next) = (self.order.size(j), self.order.next_size(j));
        let following = self.following();
        let from = std::mem::replace(&mut self.from, following);
        let Self { a, order, kernels, panels, g: gs, pivots, records, previous, work, .. } = self;
        let (panel, g) = (panels.split_off_mut(..(k + next) * k)?, gs.split_off_mut(..k * next)?);
        let (pivots, record) = if self.down {
            (pivots.split_off_mut(..k)?, records.split_off_first_mut()?)
        } else {
            (pivots.split_off_mut(pivots.len() - k..)?, records.split_off_last_mut()?)
        };
        let mut ahead = Ahead([&[][..]; 5]);
        if let Some(d) = following
            && size_of_val(panel) <= Ahead::<T>::LARGEST
        {
            let (gs, panels) = (&gs[..gs.len().min(g.len())], &panels[..panels.len().min(panel.len())]);
            ahead = Ahead([d.own, d.below, d.beside, gs, panels]);
        }
        let front = Front { k, next, panel, g, pivots };
        Some(Ready { a, order, kernels: *kernels, j, from, front, previous, ahead, record, work })
    }
}

/// How many sides at once [`run_chains`] takes as long for as for one; 0 where it does nothing.
fn chains_at_once<T: Scalar, E: Engine<T>>(a: &BlockTridiagonal<T>, order: &Order, kernels: Kernels) -> usize {
    let (smallest, largest) = order.sizes;
    let plain = kernels == Kernels::Auto && smallest == largest && Dense::all(a);
    if plain { E::chains_at_once(largest) } else { 0 }
}

/// Blocks of one side, or of both in turn.
fn run_chains<T: Scalar, E: Engine<T>, const N: usize>(
    mut sides: [&mut Remaining<'_, T>; N],
    go_on: &mut dyn FnMut(usize) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut outcome = Ok(());
    let mut chains = sides.each_mut().map(|side| side.chain());
    let steps = E::chains(&mut chains, &mut |blocks| {
        outcome = go_on(blocks);
        outcome.is_ok()
    });
    for side in sides {
        side.pass(steps);
    }
    outcome
}

/// A block about to be eliminated.
struct Ready<'s, 'a, T: Scalar> {
    a: &'a BlockTridiagonal<T>,
    order: &'a Order,
    kernels: Kernels,
    j: usize,
    from: Option<Dense<'a, T>>,
    front: Front<'a, T>,
    previous: &'s mut Option<Done<'a, T>>,
    ahead: Ahead<'s, T>,
    record: &'a mut Record,
    work: &'s mut ChainScratch<T>,
}

impl<T: Scalar> Ready<'_, '_, T> {
    /// For the kernels that take a block as a whole.
    fn job(&mut self) -> Option<Job<'_, T>> {
        let Front { k, next, panel, g, pivots } = &mut self.front;
        let ChainScratch { incoming, outgoing, space, .. } = &mut *self.work;
        Some(Job {
            front: Front { k: *k, next: *next, panel, g, pivots },
            from: self.from?,
            previous: *self.previous,
            incoming: &incoming[..*k],
            outgoing: &mut outgoing[..*next],
            ahead: self.ahead,
            space,
        })
    }

    /// Leaves the factors to the next block.
    fn pass(&mut self, packed: Packed) {
        let Front { k: last, next: k, panel, g, .. } = &mut self.front;
        let (panel, g) = (std::mem::take(panel), std::mem::take(g));
        *self.previous = Some(Done { last: *last, k: *k, panel, g, packed });
    }

    fn done(&mut self, record: Record, packed: Packed) {
        *self.record = record;
        std::mem::swap(&mut self.work.incoming, &mut self.work.outgoing);
        self.pass(packed);
    }

    fn eliminate<E: Engine<T>>(&mut self) -> Result<(), Stop> {
        if let Some((record, packed)) = self.job().and_then(|mut job| E::whole(&mut job)) {
            self.done(record, packed);
            return Ok(());
        }
        let Self { a, order, kernels, j, front, previous, work, .. } = self;
        let ChainScratch { incoming, outgoing, .. } = &mut **work;
        let (incoming, outgoing) = (&incoming[..front.k], &mut outgoing[..front.next]);
        let norms = panel::load_block::<T, E>(a, order, *j, front, &[incoming], outgoing);
        let first_row = order.rows(*j).start;
        let (record, without_pivot) = eliminate_front::<T, E>(front, &[**previous, None], *kernels, work, norms, *j)?;
        if let Some(column) = without_pivot {
            return Err(no_pivot(*j, column, first_row).into());
        }
        self.done(record, Packed::No);
        Ok(())
    }
}

/// D̃ ← D − Σ H·G, then P·D̃ = L̃·Ũ, H ← L·Ũ⁻¹, G ← L̃⁻¹·P·U: what was measured, as far as it went, and the first column without a
/// pivot. Fails where there is no finite number.
fn eliminate_front<T: Scalar, E: Engine<T>>(
    front: &mut Front<'_, T>,
    previous: &[Option<Done<'_, T>>; 2],
    kernels: Kernels,
    work: &mut ChainScratch<T>,
    (max_a, norm_one): (f64, f64),
    block: usize,
) -> Result<(Record, Option<usize>), Stop> {
    if !max_a.is_finite() || !norm_one.is_finite() {
        return Err(Stop::NonFinite);
    }
    for done in previous.iter().flatten() {
        front.subtract::<E>(done, kernels);
    }
    if let Some(column) = front.eliminate::<E>(kernels, &mut work.permutation, &mut work.memory) {
        let growth = met_up_to(column, front.panel, front.k + front.next);
        return Ok((Record { max_a, norm_one, growth, min_pivot: 0.0 }, Some(column)));
    }
    let (growth, min_pivot) = E::measure(front);
    if !growth.is_finite() {
        return Err(too_much_growth(block, growth).into());
    }
    Ok((Record { max_a, norm_one, growth, min_pivot }, None))
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
        let without_pivot = if m > 0 { self.eliminate_with_best_loops(a, skip, monitor)? } else { None };
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
        let has_grown = !(growth <= growth_limit(unit_roundoff::<T>()));
        match without_pivot {
            // No other block has rows left, or ever had.
            Some(column) if m == 1 || !has_grown => {
                let (column, block) = (self.order.rows(self.order.middle).start + column, Some(self.order.middle));
                return Err(
                    FactorError::no_pivot(METHOD, column, block, growth, growth_limit(unit_roundoff::<T>())).into()
                );
            }
            _ if has_grown => return Err(too_much_growth(worst, growth).into()),
            _ => {}
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

    /// Numbers go through explicit vectors: their type is found out here, once.
    fn eliminate_with_best_loops(
        &mut self,
        a: &BlockTridiagonal<T>,
        skip: [usize; 2],
        monitor: &mut dyn Monitor,
    ) -> Result<Option<usize>, Stop> {
        let (this, matrix): (&mut dyn Any, &dyn Any) = (self, a);
        macro_rules! engines {
            ($($t:ty: $engine:ty),*) => {$(
                // A constant first, so that other types are not compiled.
                if const { lines::is::<T>(<$t as Scalar>::KIND) }
                    && let (Some(this), Some(a)) = (this.downcast_mut::<BlockLu<$t>>(), matrix.downcast_ref())
                {
                    return this.eliminate_all::<$engine>(a, skip, monitor);
                }
            )*};
        }
        engines!(f64: Vectors, f32: Vectors, c64: Complexes, c32: Complexes);
        unreachable!("one of the four types")
    }

    /// All blocks; the first column of the middle one that has no pivot.
    fn eliminate_all<E: Engine<T>>(
        &mut self,
        a: &BlockTridiagonal<T>,
        skip: [usize; 2],
        monitor: &mut dyn Monitor,
    ) -> Result<Option<usize>, Stop> {
        let (m, middle) = (self.order.n_blocks(), self.order.middle);
        let Self { order, kernels, panels, g, places, pivots, records, work, .. } = self;
        let (order, kernels) = (&*order, *kernels);
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
        let mut left = Remaining::new(
            a,
            order,
            kernels,
            0..middle,
            (before, g_before),
            (pivots_before, records_before),
            left_work,
        );
        let mut right = Remaining::new(
            a,
            order,
            kernels,
            middle + 1..m,
            (after, g_after),
            (pivots_after, records_after),
            right_work,
        );
        left.skip::<E>(skip[0])?;
        let skipped = right.skip::<E>(skip[1]);
        // Of two failures the one before the middle is told, whichever thread is faster.
        let chains = chains_at_once::<T, E>(a, order, kernels);
        let outcome = if skip == [0; 2] && chains < 2 && worth_threads(order) {
            let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
            let (mut first, mut second) = (Ok(()), Ok(()));
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| {
                    second = right.run::<E>(|blocks| {
                        done.fetch_add(blocks, Ordering::Relaxed);
                        if stop.load(Ordering::Relaxed) { Err(FactorError::Stopped.into()) } else { Ok(()) }
                    });
                });
                first = left.run::<E>(|blocks| {
                    let done = done.fetch_add(blocks, Ordering::Relaxed);
                    observe(monitor, done, m).inspect_err(|_| stop.store(true, Ordering::Relaxed))
                });
            });
            first.and(second)
        } else {
            let mut done = 0;
            let mut go_on = |blocks: usize| {
                done += blocks;
                observe(monitor, done - blocks, m)
            };
            let mut outcome = skipped;
            loop {
                if outcome.is_ok() {
                    match (chains, left.blocks.is_empty(), right.blocks.is_empty()) {
                        (0, ..) | (_, true, true) => {}
                        (_, false, false) => run_chains::<T, E, 2>([&mut left, &mut right], &mut go_on)?,
                        (_, false, true) => run_chains::<T, E, 1>([&mut left], &mut go_on)?,
                        (_, true, false) => run_chains::<T, E, 1>([&mut right], &mut go_on)?,
                    }
                }
                // A block of either side in turn: while one waits for its pivots, the processor goes on with the other.
                let (one, other) = (left.next(), if outcome.is_ok() { right.next() } else { None });
                if one.is_none() && other.is_none() {
                    break;
                }
                if let Some(mut one) = one {
                    go_on(1)?;
                    one.eliminate::<E>()?;
                }
                if let Some(mut other) = other {
                    outcome = go_on(1).and_then(|()| other.eliminate::<E>());
                }
            }
            outcome
        };
        outcome?;
        observe(monitor, m - 1, m)?;
        let previous = [left.previous, right.previous];
        let sums = [&left.work.incoming[..k], &right.work.incoming[..k]];
        let mut front = Front { k, next: 0, panel: own, g: &mut [], pivots: own_pivots };
        let norms = panel::load_block::<T, E>(a, order, middle, &mut front, &sums, &mut []);
        let without_pivot;
        (record[0], without_pivot) = eliminate_front::<T, E>(&mut front, &previous, kernels, left.work, norms, middle)?;
        Ok(without_pivot)
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

/// Blocks of chains are counted before they are done, and again where a kernel left them to another.
fn observe(monitor: &mut dyn Monitor, done: usize, total: usize) -> Result<(), Stop> {
    let done = done.min(total - 1);
    match monitor.observe(Progress::Step { phase: "setup", done, total }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(FactorError::Stopped.into()),
    }
}

/// Whether both chains are long enough to wake a thread for one of them.
fn worth_threads(order: &Order) -> bool {
    let [before, _, after] = order.split_rows();
    let width = order.partition.n() / order.n_blocks().max(1);
    Par::auto(before.min(after).saturating_mul(24 * width.max(1))) == Par::Rayon
}

fn no_pivot(block: usize, row: usize, start: usize) -> FactorError {
    let column = start + row;
    let reason = format!(
        "no pivot inside block {block} for its column {row}, column {column} of the matrix (from 0); pivoting across \
         blocks is needed: band-lu"
    );
    FactorError::breakdown(METHOD, error::Place::Column(column), reason)
}

fn too_much_growth(block: usize, growth: f64) -> FactorError {
    let reason = format!(
        "elements grow by {growth:.1e} in block {block}: what elimination left of it is nearly singular; pivoting across \
         blocks is needed: band-lu"
    );
    FactorError::breakdown(METHOD, error::Place::Block(block), reason)
}
