//! What an elimination by supernodes writes, divided among those that need nothing of each other.

use faer::MatRef;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;

use super::earlier::Earlier;
use super::supernode::{Node, node};

/// Numbers of supernodes that follow each other; those that a method does not have are empty slices.
pub(crate) struct Numbers<'a, T> {
    /// L over the rows of each supernode, its block on top.
    pub lower: &'a mut [T],
    /// Uᵀ of the rows below, and where those of each supernode begin.
    pub upper: &'a mut [T],
    pub upper_ptr: &'a [usize],
    /// D beside its diagonal, row by row.
    pub beside: &'a mut [T],
    /// Interchanges: row `exchange[k]` of a supernode's block comes as number k.
    pub exchange: &'a mut [u32],
    /// Where the first of them begins among all.
    pub start: Start,
}

/// Where a supernode begins: in L, in U, and among the rows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Start {
    lower: usize,
    upper: usize,
    row: usize,
}

/// Numbers of the supernodes before one.
pub(crate) struct Before<'a, T> {
    lower: &'a [T],
    upper: &'a [T],
    upper_ptr: &'a [usize],
    beside: &'a [T],
    start: Start,
}

/// Numbers of one supernode.
pub(crate) struct Own<'a, T> {
    pub block: &'a mut [T],
    pub right: &'a mut [T],
    pub beside: &'a mut [T],
    pub exchange: &'a mut [u32],
}

impl<'a, T> Numbers<'a, T> {
    /// Of L alone.
    pub fn of_lower(lower: &'a mut [T]) -> Self {
        Self { lower, upper: &mut [], upper_ptr: &[], beside: &mut [], exchange: &mut [], start: Start::default() }
    }

    pub fn reborrow(&mut self) -> Numbers<'_, T> {
        let Self { lower, upper, upper_ptr, beside, exchange, start } = self;
        Numbers { lower, upper, upper_ptr, beside, exchange, start: *start }
    }

    /// Those before supernode `k`, and from it on.
    pub fn split_at(self, s: &SymbolicSupernodalCholesky<u32>, k: usize) -> (Self, Self) {
        let Self { lower, upper, upper_ptr, beside, exchange, start } = self;
        let row = s.supernode_begin().get(k).map_or(s.nrows(), |&row| row as usize);
        let upper_at = upper_ptr.get(k).copied().unwrap_or(0);
        let at = Start { lower: s.col_ptr_for_val()[k] as usize, upper: upper_at, row };
        let (lower, upper) = (split(lower, at.lower - start.lower), split(upper, at.upper - start.upper));
        let (beside, exchange) = (split(beside, at.row - start.row), split(exchange, at.row - start.row));
        (
            Self { lower: lower.0, upper: upper.0, upper_ptr, beside: beside.0, exchange: exchange.0, start },
            Self { lower: lower.1, upper: upper.1, upper_ptr, beside: beside.1, exchange: exchange.1, start: at },
        )
    }

    /// Those of supernode `k`, and those before it.
    pub fn of(&mut self, s: &SymbolicSupernodalCholesky<u32>, k: usize) -> (Before<'_, T>, Own<'_, T>) {
        let own = node(s, k);
        let (before, from) = self.reborrow().split_at(s, k);
        let Numbers { lower, upper, upper_ptr, beside, start, .. } = before;
        let before = Before { lower, upper, upper_ptr, beside, start };
        let Numbers { lower, upper, beside, exchange, .. } = from;
        let width = own.columns();
        let own = Own {
            block: split(lower, own.rows() * width).0,
            right: split(upper, own.below.len() * width).0,
            beside: split(beside, width).0,
            exchange: split(exchange, width).0,
        };
        (before, own)
    }
}

impl<T> Before<'_, T> {
    /// L of an earlier supernode, in the rows of it that are looked at.
    pub fn lower(&self, d: &Earlier<'_>) -> MatRef<'_, T> {
        d.rows(self.values(&d.node), d.node.rows())
    }

    /// Uᵀ in the same.
    pub fn upper(&self, d: &Earlier<'_>) -> MatRef<'_, T> {
        d.rows(&self.upper[self.upper_ptr[d.number] - self.start.upper..], d.node.below.len())
    }

    /// The numbers from L of a supernode on, and D of it beside its diagonal.
    pub fn values(&self, own: &Node<'_>) -> &[T] {
        &self.lower[own.values - self.start.lower..]
    }

    pub fn beside(&self, own: &Node<'_>) -> &[T] {
        &self.beside[own.begin - self.start.row..own.end - self.start.row]
    }
}

/// Before place `at` and from it on; nothing of an empty slice.
fn split<T>(numbers: &mut [T], at: usize) -> (&mut [T], &mut [T]) {
    numbers.split_at_mut(at.min(numbers.len()))
}
