//! Substitution, block by block, all right-hand sides of a block while its factors are in the cache.
//!
//! The chains on both sides of the middle work on their own rows; only what they leave to the middle block, and what
//! they take from it, passes between them, in a fixed order. Eight right-hand sides are taken at a time, a block of
//! them copied to the stack row by row; those left over, and blocks too tall for that, one column at a time.

use std::any::Any;
use std::ops::Range;

use bt_formats::{Op, Par, RealsMut, Scalar, zero};
use faer::MatMut;

use super::rows::{Diagonal, GROUP, Row, Strided, solve_lower, solve_upper, subtract_product};
use super::simd::Lanes;
use super::substitution::{self, Chain};
use super::{BlockLu, Reciprocals};
use crate::band_lu::kernels::{axpy_minus, dot};
use crate::pivot::Pivot;

/// Rows of a block that eight right-hand sides may have on the stack.
const TALLEST: usize = 256;

/// The factors of one block.
pub(crate) struct Block<'a, T> {
    pub(crate) k: usize,
    pub(crate) next: usize,
    pub(crate) panel: &'a [T],
    pub(crate) g: &'a [T],
    pub(crate) pivots: &'a [u32],
}

/// G columns of one part of the rows of X.
type Columns<'x, T, const G: usize> = [&'x mut [T]; G];

impl<T: Scalar> BlockLu<T> {
    pub(crate) fn block(&self, j: usize) -> Block<'_, T> {
        let (k, next) = (self.order.size(j), self.order.next_size(j));
        let (panel, g) = self.values[self.starts[j]..self.starts[j + 1]].split_at((k + next) * k);
        Block { k, next, panel, g, pivots: &self.pivots[self.order.rows(j)] }
    }

    pub(super) fn solve(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.order.partition.n(), "rows of X");
        if self.order.n_blocks() == 0 {
            return;
        }
        let mut rest = x;
        if self.order.sizes.1 <= TALLEST {
            while rest.ncols() >= GROUP {
                let (group, after) = rest.split_at_col_mut(GROUP);
                self.solve_group::<GROUP>(op, group);
                rest = after;
            }
        }
        while rest.ncols() > 0 {
            let (mut column, after) = rest.split_at_col_mut(1);
            if !(op == Op::Identity && self.solve_by_tiles(column.as_mut())) {
                self.solve_group::<1>(op, column);
            }
            rest = after;
        }
    }

    /// One real column, blocks of equal size: the types are found out here. Returns whether x has been solved for.
    fn solve_by_tiles(&self, x: MatMut<'_, T>) -> bool {
        let [x] = columns::<T, 1>(x);
        let this: &dyn Any = self;
        match T::reals_mut(x) {
            Some(RealsMut::F64(x)) => this.downcast_ref().is_some_and(|lu| solve_real::<f64>(lu, x)),
            Some(RealsMut::F32(x)) => this.downcast_ref().is_some_and(|lu| solve_real::<f32>(lu, x)),
            None => false,
        }
    }

    fn par(&self) -> Par {
        Par::auto(size_of_val(&*self.values) / 2)
    }

    fn solve_group<const G: usize>(&self, op: Op, x: MatMut<'_, T>) {
        let [before, own, _] = self.order.split_rows();
        let (top, rest) = x.split_at_row_mut(before);
        let (mid, bottom) = rest.split_at_row_mut(own);
        let (mut top, mut mid, mut bottom) = (columns::<T, G>(top), columns::<T, G>(mid), columns::<T, G>(bottom));
        let par = self.par();
        let arch = pulp::Arch::new();
        let side = |down, direction| Pass { lu: self, op, down, direction };
        join(
            par,
            || arch.dispatch(Run { pass: side(true, Direction::Inwards), x: &mut top, mid: &[] }),
            || arch.dispatch(Run { pass: side(false, Direction::Inwards), x: &mut bottom, mid: &[] }),
        );
        arch.dispatch(Middle { lu: self, op, top: &top, mid: &mut mid, bottom: &bottom });
        let mid = mid.map(|x| &*x);
        join(
            par,
            || arch.dispatch(Run { pass: side(true, Direction::Outwards), x: &mut top, mid: &mid }),
            || arch.dispatch(Run { pass: side(false, Direction::Outwards), x: &mut bottom, mid: &mid }),
        );
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

/// x ← A⁻¹·x by [`substitution`] on both sides of the middle.
fn solve_real<L: Lanes>(lu: &BlockLu<L>, x: &mut [L]) -> bool {
    let (k, largest) = lu.order.sizes;
    if k != largest || lu.reciprocals == Reciprocals::Extreme {
        return false;
    }
    let [before, own, _] = lu.order.split_rows();
    let (top, rest) = x.split_at_mut(before);
    let (mid, bottom) = rest.split_at_mut(own);
    if !substitution::run(lu.par(), Chain::both(lu, k, Direction::Inwards, top, bottom, &[])) {
        return false;
    }
    pulp::Arch::new().dispatch(Middle {
        lu,
        op: Op::Identity,
        top: &[&mut *top],
        mid: &mut [&mut *mid],
        bottom: &[&mut *bottom],
    });
    substitution::run(lu.par(), Chain::both(lu, k, Direction::Outwards, top, bottom, mid))
}

/// The G columns of `x` as slices.
fn columns<T: Scalar, const G: usize>(x: MatMut<'_, T>) -> Columns<'_, T, G> {
    let mut rest = Some(x);
    std::array::from_fn(|_| {
        let (column, after) = rest.take().expect("G columns").split_at_col_mut(1);
        rest = Some(after);
        column.col_mut(0).try_as_col_major_mut().expect("columns of X must be contiguous").as_slice_mut()
    })
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
struct Pass<'a, T: Scalar> {
    lu: &'a BlockLu<T>,
    op: Op,
    down: bool,
    direction: Direction,
}

/// A pass over the rows `x` of its side, as work for a SIMD instruction set; outwards, `mid` is the solution in the middle.
struct Run<'a, 'x, T: Scalar, const G: usize> {
    pass: Pass<'a, T>,
    x: &'a mut Columns<'x, T, G>,
    mid: &'a [&'x [T]],
}

impl<T: Scalar, const G: usize> pulp::WithSimd for Run<'_, '_, T, G> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const G: usize> Run<'_, '_, T, G> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        if G == 1 { self.run_column::<FUSED>() } else { self.run_group::<FUSED>() }
    }

    #[inline(always)]
    fn run_column<const FUSED: bool>(self) {
        let Pass { lu, op, down, direction } = self.pass;
        let (blocks, first_row) = lu.side(down);
        let x = &mut *self.x[0];
        let m = blocks.len();
        for step in 0..m {
            let j = if down == (direction == Direction::Inwards) { blocks.start + step } else { blocks.end - 1 - step };
            let b = lu.block(j);
            let (rows, next) = b.places(lu.order.rows(j).start - first_row, down);
            match direction {
                Direction::Inwards => {
                    b.inwards::<FUSED>(op, &mut x[rows.clone()]);
                    if step + 1 < m {
                        let (x, after) = pair(x, rows, next);
                        b.hand_over::<FUSED>(op, x, after);
                    }
                }
                Direction::Outwards => {
                    if step == 0 {
                        b.take::<FUSED>(op, &mut x[rows.clone()], self.mid[0]);
                    } else {
                        let (after, x) = pair(x, next, rows.clone());
                        b.take::<FUSED>(op, x, after);
                    }
                    b.outwards::<FUSED>(op, &mut x[rows]);
                }
            }
        }
    }

    #[inline(always)]
    fn run_group<const FUSED: bool>(self) {
        let Pass { lu, op, down, direction } = self.pass;
        let (blocks, first_row) = lu.side(down);
        // The rows of the neighbour towards the middle wait here: inwards those to come, outwards those just done.
        let (mut own, mut other) = ([[zero::<T>(); GROUP]; TALLEST], [[zero::<T>(); GROUP]; TALLEST]);
        let (mut own, mut other) = (&mut own, &mut other);
        let m = blocks.len();
        for step in 0..m {
            let j = if down == (direction == Direction::Inwards) { blocks.start + step } else { blocks.end - 1 - step };
            let b = lu.block(j);
            let (rows, next) = b.places(lu.order.rows(j).start - first_row, down);
            match direction {
                Direction::Inwards => {
                    if step == 0 {
                        pack(self.x, rows.start, &mut own[..b.k]);
                    }
                    b.rows_inwards::<FUSED>(op, &mut own[..b.k]);
                    unpack(&own[..b.k], self.x, rows.start);
                    if step + 1 < m {
                        pack(self.x, next.start, &mut other[..b.next]);
                        b.rows_hand_over::<FUSED>(op, &own[..b.k], &mut other[..b.next]);
                    }
                }
                Direction::Outwards => {
                    if step == 0 {
                        pack_shared(self.mid, 0, &mut other[..b.next]);
                    }
                    pack(self.x, rows.start, &mut own[..b.k]);
                    b.rows_take::<FUSED>(op, &mut own[..b.k], &other[..b.next]);
                    b.rows_outwards::<FUSED>(op, &mut own[..b.k]);
                    unpack(&own[..b.k], self.x, rows.start);
                }
            }
            std::mem::swap(&mut own, &mut other);
        }
    }
}

/// The middle block, once both sides have reached it, as work for a SIMD instruction set.
struct Middle<'a, 'x, T: Scalar, const G: usize> {
    lu: &'a BlockLu<T>,
    op: Op,
    top: &'a Columns<'x, T, G>,
    mid: &'a mut Columns<'x, T, G>,
    bottom: &'a Columns<'x, T, G>,
}

impl<T: Scalar, const G: usize> pulp::WithSimd for Middle<'_, '_, T, G> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const G: usize> Middle<'_, '_, T, G> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { lu, op, top, mid, bottom } = self;
        let middle = lu.order.middle;
        let block = lu.block(middle);
        for c in 0..G {
            let x = &mut *mid[c];
            if middle > 0 {
                let last = lu.block(middle - 1);
                last.hand_over::<FUSED>(op, &top[c][top[c].len() - last.k..], x);
            }
            if middle + 1 < lu.order.n_blocks() {
                let last = lu.block(middle + 1);
                last.hand_over::<FUSED>(op, &bottom[c][..last.k], x);
            }
            block.inwards::<FUSED>(op, x);
            block.outwards::<FUSED>(op, x);
        }
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

/// The rows from `start` on of the columns, row by row.
#[inline(always)]
fn pack<T: Scalar, const G: usize>(x: &Columns<'_, T, G>, start: usize, rows: &mut [Row<T>]) {
    for c in 0..G {
        for (row, &v) in rows.iter_mut().zip(&x[c][start..]) {
            row[c] = v;
        }
    }
}

#[inline(always)]
fn pack_shared<T: Scalar>(x: &[&[T]], start: usize, rows: &mut [Row<T>]) {
    for (c, x) in x.iter().enumerate() {
        for (row, &v) in rows.iter_mut().zip(&x[start..]) {
            row[c] = v;
        }
    }
}

#[inline(always)]
fn unpack<T: Scalar, const G: usize>(rows: &[Row<T>], x: &mut Columns<'_, T, G>, start: usize) {
    for c in 0..G {
        for (row, v) in rows.iter().zip(&mut x[c][start..]) {
            *v = row[c];
        }
    }
}

/// Both, on two threads where that pays.
pub(super) fn join(par: Par, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    if par == Par::Rayon {
        rayon::join(first, second);
    } else {
        first();
        second();
    }
}

impl<T: Scalar> Block<'_, T> {
    /// Rows of the block that starts at `start`, and of its neighbour towards the middle (meaningless next to it).
    #[inline(always)]
    fn places(&self, start: usize, down: bool) -> (Range<usize>, Range<usize>) {
        let end = start + self.k;
        let next = if down { end } else { start.saturating_sub(self.next) };
        (start..end, next..next + self.next)
    }

    /// Column `c` of [L̃\Ũ; H].
    #[inline(always)]
    fn column(&self, c: usize) -> (&[T], &[T]) {
        let ld = self.k + self.next;
        self.panel[c * ld..(c + 1) * ld].split_at(self.k)
    }

    /// Column `c` of G.
    #[inline(always)]
    fn coupling(&self, c: usize) -> &[T] {
        &self.g[c * self.k..(c + 1) * self.k]
    }

    /// x ← L̃⁻¹·P·x;  of Aᵀ: x ← Ũ⁻ᵀ·x
    #[inline(always)]
    fn inwards<const FUSED: bool>(&self, op: Op, x: &mut [T]) {
        match op {
            Op::Identity => {
                for (r, &p) in self.pivots.iter().enumerate() {
                    x.swap(r, p as usize);
                }
                for c in 0..self.k {
                    axpy_minus::<_, FUSED>(x[c], &self.column(c).0[c + 1..], &mut x[c + 1..]);
                }
            }
            Op::Transpose => self.divide_transposed::<FUSED>(x, |v| v),
            Op::Adjoint => self.divide_transposed::<FUSED>(x, Scalar::conj),
        }
    }

    /// `after` ← `after` − H·x;  of Aᵀ: `after` ← `after` − Gᵀ·x
    #[inline(always)]
    fn hand_over<const FUSED: bool>(&self, op: Op, x: &[T], after: &mut [T]) {
        match op {
            Op::Identity => {
                for (c, &xc) in x.iter().enumerate() {
                    axpy_minus::<_, FUSED>(xc, self.column(c).1, after);
                }
            }
            Op::Transpose => self.minus_g_transposed::<FUSED>(after, x, |v| v),
            Op::Adjoint => self.minus_g_transposed::<FUSED>(after, x, Scalar::conj),
        }
    }

    /// x ← x − G·`after`;  of Aᵀ: x ← x − Hᵀ·`after`
    #[inline(always)]
    fn take<const FUSED: bool>(&self, op: Op, x: &mut [T], after: &[T]) {
        match op {
            Op::Identity => {
                for (c, &y) in after.iter().enumerate() {
                    axpy_minus::<_, FUSED>(y, self.coupling(c), x);
                }
            }
            Op::Transpose => self.minus_h_transposed::<FUSED>(x, after, |v| v),
            Op::Adjoint => self.minus_h_transposed::<FUSED>(x, after, Scalar::conj),
        }
    }

    /// x ← Ũ⁻¹·x;  of Aᵀ: x ← Pᵀ·L̃⁻ᵀ·x
    #[inline(always)]
    fn outwards<const FUSED: bool>(&self, op: Op, x: &mut [T]) {
        match op {
            Op::Identity => {
                for c in (0..self.k).rev() {
                    let column = self.column(c).0;
                    x[c] = Pivot::new(column[c]).divide(x[c]);
                    axpy_minus::<_, FUSED>(x[c], &column[..c], &mut x[..c]);
                }
            }
            Op::Transpose => self.undo_exchanges::<FUSED>(x, |v| v),
            Op::Adjoint => self.undo_exchanges::<FUSED>(x, Scalar::conj),
        }
    }

    #[inline(always)]
    fn minus_g_transposed<const FUSED: bool>(&self, after: &mut [T], x: &[T], map: impl Fn(T) -> T) {
        for (c, y) in after.iter_mut().enumerate() {
            *y -= dot::<_, FUSED>(self.coupling(c), x, &map);
        }
    }

    #[inline(always)]
    fn minus_h_transposed<const FUSED: bool>(&self, x: &mut [T], after: &[T], map: impl Fn(T) -> T) {
        for (c, y) in x.iter_mut().enumerate() {
            *y -= dot::<_, FUSED>(self.column(c).1, after, &map);
        }
    }

    #[inline(always)]
    fn divide_transposed<const FUSED: bool>(&self, x: &mut [T], map: impl Fn(T) -> T) {
        for c in 0..self.k {
            let column = self.column(c).0;
            let sum = dot::<_, FUSED>(&column[..c], &x[..c], &map);
            x[c] = Pivot::new(map(column[c])).divide(x[c] - sum);
        }
    }

    #[inline(always)]
    fn undo_exchanges<const FUSED: bool>(&self, x: &mut [T], map: impl Fn(T) -> T) {
        for c in (0..self.k).rev() {
            let sum = dot::<_, FUSED>(&self.column(c).0[c + 1..], &x[c + 1..], &map);
            x[c] -= sum;
        }
        for (r, &p) in self.pivots.iter().enumerate().rev() {
            x.swap(r, p as usize);
        }
    }
}

/// The same in eight right-hand sides.
impl<T: Scalar> Block<'_, T> {
    /// [L̃\Ũ], and its transpose.
    #[inline(always)]
    fn own(&self, op: Op) -> Strided<'_, T> {
        Self::strided(op, self.panel, self.k + self.next)
    }

    #[inline(always)]
    fn strided(op: Op, values: &[T], ld: usize) -> Strided<'_, T> {
        let (row, column) = if op == Op::Identity { (1, ld) } else { (ld, 1) };
        Strided { values, row, column, conjugate: op == Op::Adjoint }
    }

    #[inline(always)]
    fn rows_inwards<const FUSED: bool>(&self, op: Op, x: &mut [Row<T>]) {
        if op == Op::Identity {
            for (r, &p) in self.pivots.iter().enumerate() {
                x.swap(r, p as usize);
            }
            solve_lower::<T, FUSED>(x, self.own(op), Diagonal::Ones);
        } else {
            solve_lower::<T, FUSED>(x, self.own(op), Diagonal::Stored);
        }
    }

    #[inline(always)]
    fn rows_hand_over<const FUSED: bool>(&self, op: Op, x: &[Row<T>], after: &mut [Row<T>]) {
        let h = Self::strided(op, &self.panel[self.k..], self.k + self.next);
        let a = if op == Op::Identity { h } else { Self::strided(op, self.g, self.k) };
        subtract_product::<T, FUSED>(after, a, x);
    }

    #[inline(always)]
    fn rows_take<const FUSED: bool>(&self, op: Op, x: &mut [Row<T>], after: &[Row<T>]) {
        let h = Self::strided(op, &self.panel[self.k..], self.k + self.next);
        let a = if op == Op::Identity { Self::strided(op, self.g, self.k) } else { h };
        subtract_product::<T, FUSED>(x, a, after);
    }

    #[inline(always)]
    fn rows_outwards<const FUSED: bool>(&self, op: Op, x: &mut [Row<T>]) {
        if op == Op::Identity {
            solve_upper::<T, FUSED>(x, self.own(op), Diagonal::Stored);
        } else {
            solve_upper::<T, FUSED>(x, self.own(op), Diagonal::Ones);
            for (r, &p) in self.pivots.iter().enumerate().rev() {
                x.swap(r, p as usize);
            }
        }
    }
}
