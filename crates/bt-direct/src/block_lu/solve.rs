//! Substitution, block by block.
//!
//! The chains on both sides of the middle work on their own rows; only what they leave to the middle block, and what
//! they take from it, passes between them, in a fixed order. Right-hand sides are taken 32 and eight at a time
//! ([`super::many`]); those left over, and all where blocks are too tall for that, two columns at a time, here and in
//! [`super::substitution`]: a block is read once for both, and while one waits for a pivot the other goes on.

use std::any::Any;
use std::ops::Range;

use bt_formats::{NumbersMut, Op, Par, RealScalar, Scalar, one, zero};
use faer::MatMut;

use super::panel::TILE;
use super::pass::{Block, Direction, Pass, join, pair};

use super::substitution::{self, Chain};
use super::{BlockLu, Reciprocals, many, small};
use crate::band_lu::kernels::{LANES, axpy_minus, dot_as};
use crate::columns::{columns, numbers_of};
use crate::lines;
use crate::pivot::Pivot;

impl<T: Scalar> BlockLu<T> {
    pub(super) fn solve(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.order.partition.n(), "rows of X");
        if self.order.n_blocks() == 0 {
            return;
        }
        let mut rest = x;
        if self.order.sizes.1 <= many::TALLEST {
            while rest.ncols() >= 4 * LANES {
                let (group, after) = rest.split_at_col_mut(4 * LANES);
                self.solve_many::<4>(op, group);
                rest = after;
            }
            while rest.ncols() >= LANES {
                let (group, after) = rest.split_at_col_mut(LANES);
                self.solve_many::<1>(op, group);
                rest = after;
            }
        }
        while rest.ncols() >= 2 {
            let (pair, after) = rest.split_at_col_mut(2);
            self.solve_columns(op, columns::<T, 2>(pair));
            rest = after;
        }
        if rest.ncols() == 1 {
            self.solve_columns(op, columns::<T, 1>(rest));
        }
    }

    fn solve_columns<const G: usize>(&self, op: Op, mut x: [&mut [T]; G]) {
        if !self.solve_equal(op, &mut x) {
            self.solve_by_blocks(op, x);
        }
    }

    /// Blocks of equal size. Returns whether x has been solved for.
    fn solve_equal<const G: usize>(&self, op: Op, x: &mut [&mut [T]; G]) -> bool {
        let this: &dyn Any = self;
        if let Some(lu) = this.downcast_ref::<BlockLu<f64>>() {
            let x = numbers_of(x, |x| if let NumbersMut::F64(x) = x { Some(x) } else { None });
            return lu.solve_together(op, x, substitution::run);
        }
        if let Some(lu) = this.downcast_ref::<BlockLu<f32>>() {
            let x = numbers_of(x, |x| if let NumbersMut::F32(x) = x { Some(x) } else { None });
            return lu.solve_together(op, x, substitution::run);
        }
        if const { T::IS_REAL } || op != Op::Adjoint {
            return self.solve_together(op, x.each_mut().map(|x| &mut **x), |_, _| false);
        }
        // Aᴴ⁻¹·x is the conjugate of Aᵀ⁻¹·x̄.
        let conjugate = |x: &mut [&mut [T]; G]| x.iter_mut().flat_map(|x| x.iter_mut()).for_each(|v| *v = v.conj());
        conjugate(x);
        let done = self.solve_together(Op::Transpose, x.each_mut().map(|x| &mut **x), |_, _| false);
        conjugate(x);
        done
    }

    /// x ← op(A)⁻¹·x by `tiles`, where they are for blocks of this size, or [`small`] on both sides of the middle.
    fn solve_together<const G: usize>(
        &self,
        op: Op,
        x: [&mut [T]; G],
        tiles: impl Fn(Par, &mut [[Chain<'_, T>; G]; 2]) -> bool,
    ) -> bool {
        let (k, largest) = self.order.sizes;
        if k != largest || self.reciprocals == Reciprocals::Extreme {
            return false;
        }
        let [mut top, mid, mut bottom] = self.sides(x);
        let run = |chains: &mut [[Chain<'_, T>; G]; 2]| {
            (op == Op::Identity && tiles(self.par(), chains)) || small::run(op, self.par(), chains)
        };
        if !run(&mut Chain::both(self, k, Direction::Inwards, &mut top, &mut bottom, &mid)) {
            return false;
        }
        for g in 0..G {
            Middle { lu: self, op, top: top[g], mid: mid[g], bottom: bottom[g] }.dispatch();
        }
        run(&mut Chain::both(self, k, Direction::Outwards, &mut top, &mut bottom, &mid))
    }

    fn solve_by_blocks<const G: usize>(&self, op: Op, x: [&mut [T]; G]) {
        let [mut top, mid, mut bottom] = self.sides(x);
        let par = self.par();
        let side = |down, direction| Pass { lu: self, op, down, direction };
        let join = |[first, second]: [Run<'_, '_, T>; 2]| join(par, || first.dispatch(), || second.dispatch());
        join([
            Run { pass: side(true, Direction::Inwards), x: &mut top, mid: &[] },
            Run { pass: side(false, Direction::Inwards), x: &mut bottom, mid: &[] },
        ]);
        for g in 0..G {
            Middle { lu: self, op, top: top[g], mid: mid[g], bottom: bottom[g] }.dispatch();
        }
        join([
            Run { pass: side(true, Direction::Outwards), x: &mut top, mid: &mid },
            Run { pass: side(false, Direction::Outwards), x: &mut bottom, mid: &mid },
        ]);
    }

    /// The rows of columns before the middle block, its own, and those behind it.
    fn sides<'x, const G: usize>(&self, x: [&'x mut [T]; G]) -> [[&'x mut [T]; G]; 3] {
        let [before, own, _] = self.order.split_rows();
        let mut sides = [(); 3].map(|()| [(); G].map(|()| &mut [][..]));
        for (g, x) in x.into_iter().enumerate() {
            let (top, rest) = x.split_at_mut(before);
            let (mid, bottom) = rest.split_at_mut(own);
            (sides[0][g], sides[1][g], sides[2][g]) = (top, mid, bottom);
        }
        sides
    }
}

/// A pass over the rows of its side of each column; outwards, `mid` is the solution in the middle.
struct Run<'a, 'x, T: Scalar> {
    pass: Pass<'a, T>,
    x: &'a mut [&'x mut [T]],
    mid: &'a [&'x mut [T]],
}

impl<T: Scalar> Run<'_, '_, T> {
    #[inline(never)]
    fn dispatch(self) {
        if self.pass.op == Op::Identity {
            bt_simd::dispatch(As::<_, true>(self));
        } else {
            bt_simd::dispatch_short(As::<_, false>(self));
        }
    }
}

/// A pass with A itself, or with its transpose or adjoint, as work for a SIMD instruction set.
struct As<'a, 'x, T: Scalar, const ITSELF: bool>(Run<'a, 'x, T>);

impl<T: Scalar, const ITSELF: bool> pulp::WithSimd for As<'_, '_, T, ITSELF> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const ITSELF: bool> As<'_, '_, T, ITSELF> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Run { pass, x, mid } = self.0;
        let Pass { lu, op, down, direction } = pass;
        let m = lu.side(down).0.len();
        for step in 0..m {
            let (j, rows) = pass.block(step);
            let b = lu.block(j);
            let next = b.neighbour(&rows, down);
            for (g, x) in x.iter_mut().enumerate() {
                let (rows, next) = (rows.clone(), next.clone());
                match direction {
                    Direction::Inwards => {
                        b.inwards::<FUSED, ITSELF>(op, &mut x[rows.clone()]);
                        if step + 1 < m {
                            let (x, after) = pair(x, rows, next);
                            b.hand_over::<FUSED, ITSELF>(op, x, after);
                        }
                    }
                    Direction::Outwards => {
                        let (after, x) = if step == 0 { (&*mid[g], &mut x[rows]) } else { pair(x, next, rows) };
                        b.take::<FUSED, ITSELF>(op, x, after);
                        b.outwards::<FUSED, ITSELF>(op, x);
                    }
                }
            }
        }
    }
}

/// The middle block, once both sides have reached it, as work for a SIMD instruction set.
struct Middle<'a, T: Scalar> {
    lu: &'a BlockLu<T>,
    op: Op,
    top: &'a [T],
    mid: &'a mut [T],
    bottom: &'a [T],
}

impl<T: Scalar> pulp::WithSimd for Middle<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        match (S::IS_SCALAR || cfg!(target_family = "wasm"), self.op == Op::Identity) {
            (true, true) => self.run::<false, true>(),
            (true, false) => self.run::<false, false>(),
            (false, true) => self.run::<true, true>(),
            (false, false) => self.run::<true, false>(),
        }
    }
}

impl<T: Scalar> Middle<'_, T> {
    #[inline(never)]
    fn dispatch(self) {
        lines::dispatch::<T, _>(self);
    }

    #[inline(always)]
    fn run<const FUSED: bool, const ITSELF: bool>(self) {
        let Self { lu, op, top, mid, bottom } = self;
        let middle = lu.order.middle;
        let before = middle.checked_sub(1).map(|j| (lu.block(j), true));
        let after = (middle + 1 < lu.order.n_blocks()).then(|| (lu.block(middle + 1), false));
        for (last, down) in [before, after].into_iter().flatten() {
            let x = if down { &top[top.len() - last.k..] } else { &bottom[..last.k] };
            last.hand_over::<FUSED, ITSELF>(op, x, mid);
        }
        let block = lu.block(middle);
        block.inwards::<FUSED, ITSELF>(op, mid);
        block.outwards::<FUSED, ITSELF>(op, mid);
    }
}

impl<T: Scalar> Block<'_, T> {
    /// Rows of the neighbour towards the middle of the block that has `rows` (meaningless next to it).
    #[inline(always)]
    fn neighbour(&self, rows: &Range<usize>, down: bool) -> Range<usize> {
        let next = if down { rows.end } else { rows.start.saturating_sub(self.next) };
        next..next + self.next
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
    fn inwards<const FUSED: bool, const ITSELF: bool>(&self, op: Op, x: &mut [T]) {
        if !ITSELF {
            for c in 0..self.k {
                let column = self.column(c).0;
                let sum = dot_as::<_, FUSED>(op, &column[..c], &x[..c]);
                let pivot = if op == Op::Adjoint { column[c].conj() } else { column[c] };
                x[c] = Pivot::new(pivot).divide(x[c] - sum);
            }
            return;
        }
        for (r, &p) in self.pivots.iter().enumerate() {
            x.swap(r, p as usize);
        }
        if !T::IS_REAL && self.tiled() {
            return self.inwards_by_tiles::<FUSED>(x);
        }
        for c in 0..self.k {
            axpy_minus::<_, FUSED>(x[c], &self.column(c).0[c + 1..], &mut x[c + 1..]);
        }
    }

    /// `after` ← `after` − H·x;  of Aᵀ: `after` ← `after` − Gᵀ·x
    #[inline(always)]
    fn hand_over<const FUSED: bool, const ITSELF: bool>(&self, op: Op, x: &[T], after: &mut [T]) {
        if !ITSELF {
            for (c, y) in after.iter_mut().enumerate() {
                *y -= dot_as::<_, FUSED>(op, self.coupling(c), x);
            }
            return;
        }
        if !T::IS_REAL && self.tiled() {
            return subtract_product::<_, FUSED>(after, &self.panel[self.k..], self.k + self.next, x);
        }
        for (c, &xc) in x.iter().enumerate() {
            axpy_minus::<_, FUSED>(xc, self.column(c).1, after);
        }
    }

    /// x ← x − G·`after`;  of Aᵀ: x ← x − Hᵀ·`after`
    #[inline(always)]
    fn take<const FUSED: bool, const ITSELF: bool>(&self, op: Op, x: &mut [T], after: &[T]) {
        if !ITSELF {
            for (c, y) in x.iter_mut().enumerate() {
                *y -= dot_as::<_, FUSED>(op, self.column(c).1, after);
            }
            return;
        }
        if !T::IS_REAL && self.tiled() {
            return subtract_product::<_, FUSED>(x, self.g, self.k, after);
        }
        for (c, &y) in after.iter().enumerate() {
            axpy_minus::<_, FUSED>(y, self.coupling(c), x);
        }
    }

    /// x ← Ũ⁻¹·x;  of Aᵀ: x ← Pᵀ·L̃⁻ᵀ·x
    #[inline(always)]
    fn outwards<const FUSED: bool, const ITSELF: bool>(&self, op: Op, x: &mut [T]) {
        if !ITSELF {
            for c in (0..self.k).rev() {
                let sum = dot_as::<_, FUSED>(op, &self.column(c).0[c + 1..], &x[c + 1..]);
                x[c] -= sum;
            }
            for (r, &p) in self.pivots.iter().enumerate().rev() {
                x.swap(r, p as usize);
            }
            return;
        }
        if !T::IS_REAL && self.tiled() {
            return self.outwards_by_tiles::<FUSED>(x);
        }
        for c in (0..self.k).rev() {
            let column = self.column(c).0;
            x[c] = Pivot::new(column[c]).divide(x[c]);
            axpy_minus::<_, FUSED>(x[c], &column[..c], &mut x[..c]);
        }
    }

    /// Whether products of complex numbers are taken for tiles of columns at once. (Real blocks that would gain have
    /// [`super::substitution`].)
    #[inline(always)]
    fn tiled(&self) -> bool {
        self.k >= TILE
    }

    /// x ← L̃⁻¹·x
    #[inline(always)]
    fn inwards_by_tiles<const FUSED: bool>(&self, x: &mut [T]) {
        let ld = self.k + self.next;
        for first in (0..self.k).step_by(TILE) {
            let end = self.k.min(first + TILE);
            for c in first..end {
                axpy_minus::<_, FUSED>(x[c], &self.column(c).0[c + 1..end], &mut x[c + 1..end]);
            }
            let (x, below) = x.split_at_mut(end);
            subtract_product::<_, FUSED>(below, &self.panel[first * ld + end..], ld, &x[first..]);
        }
    }

    /// x ← Ũ⁻¹·x
    #[inline(always)]
    fn outwards_by_tiles<const FUSED: bool>(&self, x: &mut [T]) {
        let ld = self.k + self.next;
        for first in (0..self.k).step_by(TILE).rev() {
            let end = self.k.min(first + TILE);
            // What of the divisions does not wait for x.
            let mut pivots = [Pivot::new(one::<T>()); TILE];
            for c in first..end {
                pivots[c - first] = Pivot::new(self.panel[c * ld + c]);
            }
            for c in (first..end).rev() {
                x[c] = pivots[c - first].divide(x[c]);
                axpy_minus::<_, FUSED>(x[c], &self.column(c).0[first..c], &mut x[first..c]);
            }
            let (above, x) = x.split_at_mut(first);
            subtract_product::<_, FUSED>(above, &self.panel[first * ld..], ld, &x[..end - first]);
        }
    }
}

/// y ← y − A·x, the columns of A `lda` apart.
#[inline(always)]
fn subtract_product<T: Scalar, const FUSED: bool>(y: &mut [T], a: &[T], lda: usize, x: &[T]) {
    let mut r = 0;
    macro_rules! rows {
        ($($rows:literal)*) => {$(
            while y.len() - r >= $rows {
                subtract_rows::<T, $rows, FUSED>(&mut y[r..], &a[r..], lda, x);
                r += $rows;
            }
        )*};
    }
    rows!(32 16 8 4 2 1);
}

/// The same for N rows, which stay in registers: y − (P + i·Q) with P = A·re x and Q = A·im x, so that the real and imaginary parts of A
/// need not be told apart before the end.
#[inline(always)]
fn subtract_rows<T: Scalar, const N: usize, const FUSED: bool>(y: &mut [T], a: &[T], lda: usize, x: &[T]) {
    let (mut p, mut q) = ([zero::<T>(); N], [zero::<T>(); N]);
    for (d, &x) in x.iter().enumerate() {
        let column = &a[d * lda..d * lda + N];
        let (re, im) = (x.re(), x.im());
        for i in 0..N {
            p[i] = plus_scaled::<T, FUSED>(column[i], re, p[i]);
            q[i] = plus_scaled::<T, FUSED>(column[i], im, q[i]);
        }
    }
    for i in 0..N {
        y[i] -= p[i] + T::from_parts(-q[i].im(), q[i].re());
    }
}

/// c + a·r, r real, of complex numbers.
#[inline(always)]
fn plus_scaled<T: Scalar, const FUSED: bool>(a: T, r: T::Real, c: T) -> T {
    let re = plus_product::<T::Real, FUSED>(a.re(), r, c.re());
    T::from_parts(re, plus_product::<T::Real, FUSED>(a.im(), r, c.im()))
}

/// c + a·b of doubles in one rounding if `FUSED`.
#[inline(always)]
fn plus_product<R: RealScalar, const FUSED: bool>(a: R, b: R, c: R) -> R {
    if FUSED && size_of::<R>() == size_of::<f64>() {
        R::from_f64(a.to_f64().mul_add(b.to_f64(), c.to_f64()))
    } else {
        a * b + c
    }
}
