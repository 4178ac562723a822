//! One substitution on one side of the middle: its blocks in order, their factors, their rows.

use std::ops::Range;

use bt_formats::{Op, Par, Scalar};

use super::{BlockLu, Place};

/// The factors of one block.
pub(crate) struct Block<'a, T> {
    pub(crate) k: usize,
    pub(crate) next: usize,
    pub(crate) panel: &'a [T],
    pub(crate) g: &'a [T],
    pub(crate) pivots: &'a [u32],
}

/// The two substitutions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the ends to the middle.
    Inwards,
    /// Back.
    Outwards,
}

/// One substitution on one side of the middle.
pub(super) struct Pass<'a, T: Scalar> {
    pub(super) lu: &'a BlockLu<T>,
    pub(super) op: Op,
    pub(super) down: bool,
    pub(super) direction: Direction,
}

impl<T: Scalar> Pass<'_, T> {
    /// The block of a step, and its rows counted from the first of this side.
    #[inline(always)]
    pub(super) fn block(&self, step: usize) -> (usize, Range<usize>) {
        let (blocks, first_row) = self.lu.side(self.down);
        let rising = self.down == (self.direction == Direction::Inwards);
        let j = if rising { blocks.start + step } else { blocks.end - 1 - step };
        let rows = self.lu.order.rows(j);
        (j, rows.start - first_row..rows.end - first_row)
    }
}

/// Two disjoint pieces of `x`: the first to read, the second to write.
#[inline(always)]
pub(super) fn pair<T>(x: &mut [T], first: Range<usize>, second: Range<usize>) -> (&[T], &mut [T]) {
    if first.start < second.start {
        let (a, b) = x.split_at_mut(second.start);
        (&a[first], &mut b[..second.len()])
    } else {
        let (a, b) = x.split_at_mut(first.start);
        (&b[..first.len()], &mut a[second])
    }
}

/// Both, on two threads where that pays.
pub(super) fn join(par: Par, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    if par == Par::Rayon {
        bt_formats::join(first, second);
    } else {
        first();
        second();
    }
}

impl<T: Scalar> BlockLu<T> {
    pub(crate) fn block(&self, j: usize) -> Block<'_, T> {
        let (k, next) = (self.order.size(j), self.order.next_size(j));
        let Place { panel, g } = self.places[j];
        let (panel, g) = (&self.panels[panel..panel + (k + next) * k], &self.g[g..g + k * next]);
        Block { k, next, panel, g, pivots: &self.pivots[self.order.rows(j)] }
    }

    pub(super) fn par(&self) -> Par {
        Par::auto(size_of_val(&*self.panels))
    }

    /// The number of the first block before or after the middle.
    pub(super) fn side_start(&self, down: bool) -> usize {
        if down { 0 } else { self.order.middle + 1 }
    }

    /// Blocks before or after the middle, and the first row of their side.
    pub(super) fn side(&self, down: bool) -> (Range<usize>, usize) {
        let middle = self.order.middle;
        if down { (0..middle, 0) } else { (middle + 1..self.order.n_blocks(), self.order.rows(middle).end) }
    }
}
