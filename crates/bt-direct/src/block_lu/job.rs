//! The elimination of a block: what it is given, what it leaves, and what every way of doing it offers.

use bt_formats::{BlockTridiagonal, Couplings, DiagonalBlocks, Scalar};

use super::order::Order;
use crate::lines;

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

/// The panel [D̃; L] of one block and its U, to become [L̃\Ũ; H] and G.
pub(super) struct Front<'a, T> {
    pub(super) k: usize,
    pub(super) next: usize,
    pub(super) panel: &'a mut [T],
    pub(super) g: &'a mut [T],
    pub(super) pivots: &'a mut [u32],
}

/// H and G of a block that has been eliminated: `last` columns of H, `k` rows.
#[derive(Clone, Copy)]
pub(super) struct Done<'a, T> {
    pub(super) last: usize,
    pub(super) k: usize,
    pub(super) panel: &'a [T],
    pub(super) g: &'a [T],
    pub(super) packed: Packed,
}

/// Whether the work space of [`super::packed`] holds copies of H and G.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    Yes,
    No,
}

/// The blocks that an elimination loads, where they are stored dense: Dⱼ, A(t, j), A(j, t), by columns.
#[derive(Clone, Copy)]
pub(super) struct Dense<'a, T> {
    pub(super) own: &'a [T],
    pub(super) below: &'a [T],
    pub(super) beside: &'a [T],
}

impl<'a, T: Scalar> Dense<'a, T> {
    /// Whether every block is stored dense.
    pub(super) fn all(a: &BlockTridiagonal<T>) -> bool {
        matches!(a.diagonal(), DiagonalBlocks::Dense { .. }) && matches!(a.couplings(), Couplings::Dense { .. })
    }

    /// Of block j; none when something is stored otherwise.
    pub(super) fn of(a: &'a BlockTridiagonal<T>, order: &Order, j: usize) -> Option<Self> {
        let DiagonalBlocks::Dense { starts, values } = a.diagonal() else { return None };
        let own = &values[starts[j]..starts[j + 1]];
        let Some(t) = order.toward(j) else { return Some(Self { own, below: &[], beside: &[] }) };
        let Couplings::Dense { starts, values } = a.couplings() else { return None };
        // Block row j is [Lⱼ Uⱼ]: its block in the columns of t, and that of row t in the columns of j.
        let len = order.size(j) * order.size(t);
        let (row_j, row_t) = (&values[starts[j]..starts[j + 1]], &values[starts[t]..starts[t + 1]]);
        let (beside, below) =
            if t > j { (&row_j[row_j.len() - len..], row_t) } else { (row_j, &row_t[row_t.len() - len..]) };
        Some(Self { own, below: &below[..len], beside: &beside[..len] })
    }
}

/// A dense block between two others, and what is needed to eliminate it.
pub(super) struct Job<'j, T: Scalar> {
    pub(super) front: Front<'j, T>,
    pub(super) from: Dense<'j, T>,
    pub(super) previous: Option<Done<'j, T>>,
    /// Sums of columns, see [`super::panel::load_block`].
    pub(super) incoming: &'j [f64],
    pub(super) outgoing: &'j mut [f64],
    pub(super) ahead: Ahead<'j, T>,
    /// See [`super::packed::space`]; empty if blocks differ in size.
    pub(super) space: &'j mut [T::Real],
}

impl<T: Scalar> Job<'_, T> {
    /// The block as a chain of its own, for kernels of blocks of at most `MOST` rows; none when `eliminate` does nothing.
    #[inline(always)]
    pub(super) fn as_chain<const MOST: usize, const COUPLINGS: usize>(
        &mut self,
        eliminate: impl FnOnce(&mut [Chain<'_, T>]) -> usize,
    ) -> Option<Record> {
        const { assert!(COUPLINGS == 2 * MOST * MOST) };
        let k = self.front.k;
        let Self { front, from, previous, incoming, outgoing, .. } = self;
        if k > MOST || front.next != k || previous.is_some_and(|p| p.last != k) {
            return None;
        }
        let mut couplings = [T::default(); COUPLINGS];
        let (beside, below) = couplings[..2 * k * k].split_at_mut(k * k);
        beside.copy_from_slice(&from.beside[..k * k]);
        below.copy_from_slice(&from.below[..k * k]);
        let mut sums = [0.0; MOST];
        sums[..k].copy_from_slice(&incoming[..k]);
        let mut records = [Record::EMPTY];
        let chain = Chain {
            k,
            down: true,
            blocks: 1,
            own: from.own,
            couplings: &couplings[..2 * k * k],
            panels: front.panel,
            g: front.g,
            pivots: front.pivots,
            records: &mut records,
            previous: *previous,
            incoming: &mut sums,
        };
        if eliminate(&mut [chain]) == 0 {
            return None;
        }
        outgoing[..k].copy_from_slice(&sums[..k]);
        Some(records[0])
    }
}

/// Dense blocks of one size on one side of the middle, still to be eliminated, and the places of their factors.
pub(super) struct Chain<'c, T> {
    pub(super) k: usize,
    /// Downwards, towards larger numbers, before the middle.
    pub(super) down: bool,
    pub(super) blocks: usize,
    /// D by D, from the smallest number.
    pub(super) own: &'c [T],
    /// The two couplings of each with its neighbour towards the middle: beside and below it where that comes after it, below and
    /// beside it where that comes before it.
    pub(super) couplings: &'c [T],
    /// In the order of elimination.
    pub(super) panels: &'c mut [T],
    pub(super) g: &'c mut [T],
    /// From the smallest number.
    pub(super) pivots: &'c mut [u32],
    pub(super) records: &'c mut [Record],
    pub(super) previous: Option<Done<'c, T>>,
    /// Sums of columns that have come from the blocks before, see [`Job`].
    pub(super) incoming: &'c mut [f64],
}

impl<T: Copy> Chain<'_, T> {
    /// Number of the block eliminated in a step.
    #[inline(always)]
    fn at(&self, step: usize) -> usize {
        if self.down { step } else { self.blocks - 1 - step }
    }

    #[inline(always)]
    pub(super) fn block(&self, step: usize) -> Dense<'_, T> {
        let (at, square) = (self.at(step), self.k * self.k);
        let own = &self.own[at * square..(at + 1) * square];
        let (one, two) = self.couplings[2 * at * square..2 * (at + 1) * square].split_at(square);
        if self.down { Dense { own, beside: one, below: two } } else { Dense { own, below: one, beside: two } }
    }

    /// Panel and G of the block before a step, if there is one.
    #[inline(always)]
    pub(super) fn last(&self, step: usize) -> Option<(&[T], &[T])> {
        let square = self.k * self.k;
        match step.checked_sub(1) {
            Some(last) => {
                Some((&self.panels[2 * last * square..2 * step * square], &self.g[last * square..step * square]))
            }
            None => self.previous.map(|done| (done.panel, done.g)),
        }
    }

    /// Panel, G, pivots and record.
    #[inline(always)]
    pub(super) fn factors(&mut self, step: usize) -> (&mut [T], &mut [T], &mut [u32], &mut Record) {
        let (at, k, square) = (self.at(step), self.k, self.k * self.k);
        let panel = &mut self.panels[2 * step * square..2 * (step + 1) * square];
        let g = &mut self.g[step * square..(step + 1) * square];
        (panel, g, &mut self.pivots[at * k..(at + 1) * k], &mut self.records[at])
    }

    /// Asks for the memory of a step, if there is one.
    #[inline(always)]
    pub(super) fn fetch(&self, step: usize) {
        if step < self.blocks {
            let (at, square) = (self.at(step), self.k * self.k);
            lines::fetch(self.own, at * square..(at + 1) * square);
            lines::fetch(self.couplings, 2 * at * square..2 * (at + 1) * square);
            lines::fetch(self.panels, 2 * step * square..2 * (step + 1) * square);
            lines::fetch(self.g, step * square..(step + 1) * square);
        }
    }
}

/// What is done with a block, on any instruction set.
pub(super) trait Engine<T: Scalar> {
    /// Everything that is done with a dense block between two others, in one go; none when there is no such kernel for
    /// its size or something is out of the ordinary: the steps below then start from A again.
    fn whole(_job: &mut Job<'_, T>) -> Option<(Record, Packed)> {
        None
    }
    /// How many chains of blocks of `k` rows [`Engine::chains`] takes as long for as for one, so that a second thread is no help; 0 where
    /// there is no kernel for it.
    fn chains_at_once(_k: usize) -> usize {
        0
    }
    /// Blocks of every chain in turn. Returns how many of each, fewer than all of them have when something is out of the ordinary, and
    /// when `go_on`, which is asked now and then about so many blocks, says no.
    fn chains(_chains: &mut [Chain<'_, T>], _go_on: &mut dyn FnMut(usize) -> bool) -> usize {
        0
    }
    /// Loads dense blocks; returns what [`super::panel::load_block`] does.
    fn load(front: &mut Front<'_, T>, from: &Dense<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64);
    /// The same for what has been loaded.
    fn norms(front: &Front<'_, T>, incoming: &[&[f64]], outgoing: &mut [f64]) -> (f64, f64);
    /// D ← D − H·G
    fn subtract(front: &mut Front<'_, T>, done: &Done<'_, T>);
    /// P·D̃ = L̃·Ũ, H ← L·Ũ⁻¹, G ← L̃⁻¹·P·U; the row without a pivot if there is one.
    fn eliminate(front: &mut Front<'_, T>) -> Option<usize>;
    /// max(|Ũ|, |H|·|G|), not finite when some of them is not, and the smallest pivot.
    fn measure(front: &Front<'_, T>) -> (f64, f64);
}

/// What the next block is made of and where its factors will stand (stores wait for lines, too), to be asked for bit by
/// bit: the hardware does not look far enough ahead along five streams that pause.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'d, T>(pub(super) [&'d [T]; 5]);

impl<T> Ahead<'_, T> {
    /// Bytes of a panel; larger ones do not stay in a second-level cache until they are wanted.
    pub(super) const LARGEST: usize = 300 << 10;

    /// Part `i` of `n`.
    #[inline(always)]
    pub(super) fn fetch(self, i: usize, n: usize) {
        for values in self.0 {
            lines::fetch(values, values.len() * i / n..values.len() * (i + 1) / n);
        }
    }
}
