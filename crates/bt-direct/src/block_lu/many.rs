//! Substitution in V·8 right-hand sides at once: rows of them side by side, in a window that moves from block to block.
//!
//! Traffic: the factors once for all of the group, X twice.

use std::ops::Range;

use bt_formats::{Op, Scalar};
use faer::MatMut;

use super::BlockLu;
use super::rows::{Diagonal, Strided, solve_lower, solve_upper, subtract_product};
use super::solve::{Block, Direction, Pass, join, pair};
use crate::band_lu::end::Direction as From;
use crate::band_lu::window::{Columns, Order, ROWS, Row, Window, columns_of, put, rows, take};
use crate::lines;
use crate::tridiagonal_once::Kernel;
use crate::tridiagonal_once::lanes::Isa;

/// Rows that a block may have: the window holds two.
pub(super) const TALLEST: usize = ROWS / 2;

/// Rows of small blocks that are in the window together.
const TURN: usize = 64;

const ORDER: Order = Order(From::Forward);

impl<T: Scalar> BlockLu<T> {
    /// V·8 columns.
    pub(super) fn solve_many<const V: usize>(&self, op: Op, x: MatMut<'_, T>) {
        let [before, own, _] = self.order.split_rows();
        let (top, rest) = x.split_at_row_mut(before);
        let (mid, bottom) = rest.split_at_row_mut(own);
        let (mut top, mut mid, mut bottom) = (columns_of::<T, V>(top), columns_of(mid), columns_of(bottom));
        let par = self.par();
        let side = |down, direction| Pass { lu: self, op, down, direction };
        join(
            par,
            || Run { pass: side(true, Direction::Inwards), x: &mut top, mid: None }.run(),
            || Run { pass: side(false, Direction::Inwards), x: &mut bottom, mid: None }.run(),
        );
        Middle { lu: self, op, top: &top, mid: &mut mid, bottom: &bottom }.run();
        let mid = Some(&mid);
        join(
            par,
            || Run { pass: side(true, Direction::Outwards), x: &mut top, mid }.run(),
            || Run { pass: side(false, Direction::Outwards), x: &mut bottom, mid }.run(),
        );
    }
}

/// A pass over the rows `x` of its side; outwards, `mid` is the solution in the middle.
struct Run<'a, 'x, T: Scalar, const V: usize> {
    pass: Pass<'a, T>,
    x: &'a mut Columns<&'x mut [T], V>,
    mid: Option<&'a Columns<&'x mut [T], V>>,
}

impl<T: Scalar, const V: usize> Kernel<T> for Run<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let Self { pass, x, mid } = self;
        let Pass { lu, op, direction, .. } = pass;
        let m = lu.side(pass.down).0.len();
        let mut window = Window::<T, V>::new(ORDER);
        let mut first = 0;
        while first < m {
            // The blocks of this turn, and the neighbour on the side of the middle that they work with.
            let mut wanted = pass.block(first).1;
            let mut end = first + 1;
            let with = |a: &Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
            while end < m && with(&wanted, pass.block(end).1).len() <= TURN {
                wanted = with(&wanted, pass.block(end).1);
                end += 1;
            }
            let neighbour = match direction {
                Direction::Inwards => (end < m).then_some(end),
                Direction::Outwards => first.checked_sub(1),
            };
            if let Some(step) = neighbour {
                wanted = with(&wanted, pass.block(step).1);
            }
            window.slide(isa, x, wanted.clone());
            let place = |rows: Range<usize>| rows.start - wanted.start..rows.end - wanted.start;
            for step in first..end {
                let (j, own) = pass.block(step);
                let (b, own) = (lu.block(j), place(own));
                if step + 1 < m {
                    lu.block(pass.block(step + 1).0).fetch(direction);
                }
                match direction {
                    Direction::Inwards => {
                        b.rows_inwards(isa, op, &mut window.rows[own.clone()]);
                        if step + 1 < m {
                            let next = place(pass.block(step + 1).1);
                            let (x, next) = pair(&mut window.rows, own, next);
                            b.rows_hand_over(isa, op, x, next);
                        }
                    }
                    Direction::Outwards => {
                        if step == 0 {
                            let mut solution = rows::<T, V, TALLEST>();
                            let mid = mid.expect("the solution in the middle");
                            take(isa, &mut solution, mid, 0..b.next, ORDER);
                            b.rows_take(isa, op, &mut window.rows[own.clone()], &solution[..b.next]);
                        } else {
                            let next = place(pass.block(step - 1).1);
                            let (next, x) = pair(&mut window.rows, next, own.clone());
                            b.rows_take(isa, op, x, next);
                        }
                        b.rows_outwards(isa, op, &mut window.rows[own]);
                    }
                }
            }
            first = end;
        }
        window.slide(isa, x, 0..0);
    }
}

/// The middle block, once both sides have reached it.
struct Middle<'a, 'x, T: Scalar, const V: usize> {
    lu: &'a BlockLu<T>,
    op: Op,
    top: &'a Columns<&'x mut [T], V>,
    mid: &'a mut Columns<&'x mut [T], V>,
    bottom: &'a Columns<&'x mut [T], V>,
}

impl<T: Scalar, const V: usize> Kernel<T> for Middle<'_, '_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with<S: Isa<T>>(self, isa: S) {
        let Self { lu, op, top, mid, bottom } = self;
        let middle = lu.order.middle;
        let block = lu.block(middle);
        let (mut own, mut other) = (rows::<T, V, TALLEST>(), rows::<T, V, TALLEST>());
        let own = &mut own[..block.k];
        take(isa, own, mid, 0..block.k, ORDER);
        let last = |j: usize, x: &Columns<&'_ mut [T], V>, down: bool| {
            let (b, n) = (lu.block(j), x[0][0].len());
            let from = if down { n - b.k..n } else { 0..b.k };
            (b, from)
        };
        if middle > 0 {
            let (b, from) = last(middle - 1, top, true);
            take(isa, &mut other, top, from, ORDER);
            b.rows_hand_over(isa, op, &other[..b.k], own);
        }
        if middle + 1 < lu.order.n_blocks() {
            let (b, from) = last(middle + 1, bottom, false);
            take(isa, &mut other, bottom, from, ORDER);
            b.rows_hand_over(isa, op, &other[..b.k], own);
        }
        block.rows_inwards(isa, op, own);
        block.rows_outwards(isa, op, own);
        put(isa, own, mid, 0..block.k, ORDER);
    }
}

impl<T: Scalar> Block<'_, T> {
    /// Asks for the factors of a small block that a substitution uses.
    #[inline(always)]
    fn fetch(&self, direction: Direction) {
        const LARGEST: usize = 32 << 10;
        let g = if direction == Direction::Inwards { &[] } else { self.g };
        if size_of_val(self.panel) + size_of_val(self.g) <= LARGEST {
            lines::fetch(self.panel, 0..self.panel.len());
            lines::fetch(g, 0..g.len());
        }
    }

    #[inline(always)]
    fn strided(op: Op, values: &[T], ld: usize) -> Strided<'_, T> {
        let (row, column) = if op == Op::Identity { (1, ld) } else { (ld, 1) };
        Strided { values, row, column, conjugate: op == Op::Adjoint }
    }

    /// [L̃\Ũ], or its transpose.
    #[inline(always)]
    fn own(&self, op: Op) -> Strided<'_, T> {
        Self::strided(op, self.panel, self.k + self.next)
    }

    /// H, or its transpose.
    #[inline(always)]
    fn h(&self, op: Op) -> Strided<'_, T> {
        // The middle block has none.
        Self::strided(op, self.panel.get(self.k..).unwrap_or(&[]), self.k + self.next)
    }

    /// x ← L̃⁻¹·P·x;  of Aᵀ: x ← Ũ⁻ᵀ·x
    #[inline(always)]
    fn rows_inwards<S: Isa<T>, const V: usize>(&self, isa: S, op: Op, x: &mut [Row<T, V>]) {
        let mut diagonal = Diagonal::Stored;
        if op == Op::Identity {
            diagonal = Diagonal::Ones;
            for (r, &p) in self.pivots.iter().enumerate() {
                if p as usize != r {
                    x.swap(r, p as usize);
                }
            }
        }
        solve_lower(isa, x, self.own(op), diagonal);
    }

    /// `after` ← `after` − H·x;  of Aᵀ: `after` ← `after` − Gᵀ·x
    #[inline(always)]
    fn rows_hand_over<S: Isa<T>, const V: usize>(&self, isa: S, op: Op, x: &[Row<T, V>], after: &mut [Row<T, V>]) {
        let a = if op == Op::Identity { self.h(op) } else { Self::strided(op, self.g, self.k) };
        subtract_product(isa, after, a, x);
    }

    /// x ← x − G·`after`;  of Aᵀ: x ← x − Hᵀ·`after`
    #[inline(always)]
    fn rows_take<S: Isa<T>, const V: usize>(&self, isa: S, op: Op, x: &mut [Row<T, V>], after: &[Row<T, V>]) {
        let a = if op == Op::Identity { Self::strided(op, self.g, self.k) } else { self.h(op) };
        subtract_product(isa, x, a, after);
    }

    /// x ← Ũ⁻¹·x;  of Aᵀ: x ← Pᵀ·L̃⁻ᵀ·x
    #[inline(always)]
    fn rows_outwards<S: Isa<T>, const V: usize>(&self, isa: S, op: Op, x: &mut [Row<T, V>]) {
        if op == Op::Identity {
            solve_upper(isa, x, self.own(op), Diagonal::Stored);
        } else {
            solve_upper(isa, x, self.own(op), Diagonal::Ones);
            for (r, &p) in self.pivots.iter().enumerate().rev() {
                if p as usize != r {
                    x.swap(r, p as usize);
                }
            }
        }
    }
}
