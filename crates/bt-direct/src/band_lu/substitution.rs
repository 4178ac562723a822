//! Substitution with band factors, several right-hand sides at a time: a column of the factors is read once for a
//! group of them, whose windows stay in the first-level cache.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use bt_formats::{Numbers, NumbersMut};
use bt_formats::{Op, Scalar};
use faer::{MatMut, MatRef};

use super::end::Direction;
use super::kernels::{axpy_minus, dot_as};
use super::packed::{self, Packed};
#[cfg(target_arch = "x86_64")]
use super::single;
use super::triangles::{AHEAD, Factor, Multipliers, Step, Triangles};
use crate::columns::{columns, for_each_column, numbers_of};
use crate::lines;
use crate::pivot::Pivot;
use crate::tridiagonal_once::lanes::Kernel;

/// Right-hand sides that pass through the factors together.
const GROUP: usize = 8;

impl<T: Scalar> Triangles<'_, T> {
    /// One step for the rows of `x`: `rows` of them for L, `cols` for U.
    pub(crate) fn apply(self, step: Step, x: MatMut<'_, T>) {
        self.apply_from(Direction::Forward, step, x);
    }

    /// The same with rows of `x` that count from `direction`.
    pub(super) fn apply_from(self, direction: Direction, step: Step, x: MatMut<'_, T>) {
        let mut rest = x;
        if packed::fits(self.above.max(self.below)) {
            while rest.ncols() >= 4 * GROUP {
                let (group, after) = rest.split_at_col_mut(4 * GROUP);
                Packed::<T, 4> { lu: self, step, x: group, direction }.run();
                rest = after;
            }
            while rest.ncols() >= GROUP {
                let (group, after) = rest.split_at_col_mut(GROUP);
                Packed::<T, 1> { lu: self, step, x: group, direction }.run();
                rest = after;
            }
        }
        let backward = direction == Direction::Backward;
        if backward {
            reverse(rest.as_mut());
        }
        let mut left = rest.as_mut();
        let all = 0..self.cols;
        while left.ncols() >= GROUP {
            let (group, after) = left.split_at_col_mut(GROUP);
            lines::dispatch::<T, _>(Group { lu: self, step, x: columns::<T, GROUP>(group), columns: all.clone() });
            left = after;
        }
        left = self.apply_in_groups::<2>(step, left);
        self.apply_in_groups::<1>(step, left);
        if backward {
            reverse(rest);
        }
    }

    /// G right-hand sides at once, as many times as there are: those left.
    fn apply_in_groups<const G: usize>(self, step: Step, x: MatMut<'_, T>) -> MatMut<'_, T> {
        let mut left = x;
        while left.ncols() >= G {
            let (group, after) = left.split_at_col_mut(G);
            let mut x = columns::<T, G>(group);
            let columns = self.columns_left(step, &mut x);
            lines::dispatch::<T, _>(Group { lu: self, step, x, columns });
            left = after;
        }
        left
    }

    /// G right-hand sides, as far as there are registers for them: the columns left.
    fn columns_left<const G: usize>(self, step: Step, x: &mut [&mut [T]; G]) -> Range<usize> {
        #[cfg(target_arch = "x86_64")]
        if let (Numbers::F64(values), Numbers::F64(l)) = (T::numbers(self.values), T::numbers(self.lower.values)) {
            let x = numbers_of(x, |x| if let NumbersMut::F64(x) = x { Some(x) } else { None });
            let Self { cols, rows, ncols, below, above, ld, diagonal, pivots, tops, diagonal_of, .. } = self;
            let lower = Multipliers { values: l, ld: self.lower.ld, first: self.lower.first };
            let lu =
                Triangles { cols, rows, ncols, below, above, ld, diagonal, values, lower, pivots, tops, diagonal_of };
            return single::columns_left(lu, step, x);
        }
        0..self.cols
    }

    /// The last rows that the columns of U behind `cols` reach.
    pub(super) fn reached(&self) -> usize {
        self.above.min(self.cols)
    }

    /// X ← X − U·Y for the columns of U behind `cols`, X the last rows ([`Triangles::reached`]); row c of Y is `y(c)`.
    pub(super) fn subtract_beyond(self, x: MatMut<'_, T>, y: MatRef<'_, T>, row: impl Fn(usize) -> usize) {
        let (mut j, first) = (0, self.cols - self.reached());
        for_each_column(x, |x| {
            for c in self.cols..self.ncols {
                let (top, u) = self.u(c);
                axpy_minus::<T, false>(y[(row(c - self.cols), j)], u, &mut x[top - first..top - first + u.len()]);
            }
            j += 1;
        });
    }

    /// Y ← Y − op(U)·X for the columns of U behind `cols`, X the last rows.
    pub(super) fn subtract_beyond_transposed(
        self,
        op: Op,
        x: MatRef<'_, T>,
        mut y: MatMut<'_, T>,
        row: impl Fn(usize) -> usize,
    ) {
        let first = self.cols - self.reached();
        for j in 0..x.ncols() {
            let x = x.col(j).try_as_col_major().expect("columns of X must be contiguous").as_slice();
            for c in self.cols..self.ncols {
                let (top, u) = self.u(c);
                let x = &x[top - first..top - first + u.len()];
                y[(row(c - self.cols), j)] -= dot_as::<T, false>(op, u, x);
            }
        }
    }
}

/// X ← op(A)⁻¹·X for A = Pᵀ·L·U.
pub(crate) fn solve<T: Scalar>(lu: Triangles<'_, T>, op: Op, mut x: MatMut<'_, T>) {
    if op == Op::Identity {
        lu.apply(Step::Lower, x.as_mut());
        lu.apply(Step::Upper, x);
    } else {
        lu.apply(Step::UpperTransposed(op), x.as_mut());
        lu.apply(Step::LowerTransposed(op), x);
    }
}

/// X ← op(A)⁻¹·X for A = L·Lᴴ, L below and on the diagonal of `factors`. Aᴴ = A and Aᵀ = conj(A).
pub(crate) fn solve_hermitian<T: Scalar>(factors: Triangles<'_, T>, op: Op, mut x: MatMut<'_, T>) {
    let conjugate = |mut x: MatMut<'_, T>| for_each_column(x.as_mut(), |x| x.iter_mut().for_each(|v| *v = v.conj()));
    let mirrored = op == Op::Transpose && !T::IS_REAL;
    if mirrored {
        conjugate(x.as_mut());
    }
    factors.apply(Step::Lower, x.as_mut());
    factors.apply(Step::LowerTransposed(Op::Adjoint), x.as_mut());
    if mirrored {
        conjugate(x);
    }
}

/// Counts the rows of `x` from the other end.
pub(super) fn reverse<T: Scalar>(x: MatMut<'_, T>) {
    for_each_column(x, <[T]>::reverse);
}

/// A group of right-hand sides, as work for a SIMD instruction set.
struct Group<'a, 'x, T: Scalar, const G: usize> {
    lu: Triangles<'a, T>,
    step: Step,
    x: [&'x mut [T]; G],
    /// Of the factors, those that are left.
    columns: Range<usize>,
}

impl<T: Scalar, const G: usize> pulp::WithSimd for Group<'_, '_, T, G> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.run::<false>() } else { self.run::<true>() }
    }
}

impl<T: Scalar, const G: usize> Group<'_, '_, T, G> {
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        match self.step {
            Step::Lower => self.lower::<FUSED>(),
            Step::Upper => self.upper::<FUSED>(),
            Step::UpperTransposed(op) => self.upper_transposed::<FUSED>(op),
            Step::LowerTransposed(op) => self.lower_transposed::<FUSED>(op),
        }
    }

    #[inline(always)]
    fn lower<const FUSED: bool>(&mut self) {
        for j in self.columns.clone() {
            self.lu.fetch(j + AHEAD, Factor::Lower);
            let (l, p) = (self.lu.l(j), self.lu.exchanged(j));
            let pivot = (self.lu.diagonal_of == Factor::Lower).then(|| Pivot::new(self.lu.pivot(j)));
            for x in &mut self.x {
                x.swap(j, p);
                if let Some(pivot) = pivot {
                    x[j] = pivot.divide(x[j]);
                }
                axpy_minus::<T, FUSED>(x[j], l, &mut x[j + 1..=j + l.len()]);
            }
        }
    }

    #[inline(always)]
    fn upper<const FUSED: bool>(&mut self) {
        for j in self.columns.clone().rev() {
            self.lu.fetch(j.saturating_sub(AHEAD), Factor::Upper);
            let (top, u) = self.lu.u(j);
            let pivot = Pivot::new(self.lu.pivot(j));
            for x in &mut self.x {
                let xj = pivot.divide(x[j]);
                x[j] = xj;
                axpy_minus::<T, FUSED>(xj, u, &mut x[top..j]);
            }
        }
    }

    #[inline(always)]
    fn upper_transposed<const FUSED: bool>(&mut self, op: Op) {
        let map = |v: T| if op == Op::Adjoint { v.conj() } else { v };
        for j in self.columns.clone() {
            self.lu.fetch(j + AHEAD, Factor::Upper);
            let (top, u) = self.lu.u(j);
            let pivot = Pivot::new(map(self.lu.pivot(j)));
            for x in &mut self.x {
                x[j] = pivot.divide(x[j] - dot_as::<T, FUSED>(op, u, &x[top..j]));
            }
        }
    }

    #[inline(always)]
    fn lower_transposed<const FUSED: bool>(&mut self, op: Op) {
        let map = |v: T| if op == Op::Adjoint { v.conj() } else { v };
        for j in self.columns.clone().rev() {
            self.lu.fetch(j.saturating_sub(AHEAD), Factor::Lower);
            let (l, p) = (self.lu.l(j), self.lu.exchanged(j));
            let pivot = (self.lu.diagonal_of == Factor::Lower).then(|| Pivot::new(map(self.lu.pivot(j))));
            for x in &mut self.x {
                let sum = dot_as::<T, FUSED>(op, l, &x[j + 1..=j + l.len()]);
                x[j] -= sum;
                if let Some(pivot) = pivot {
                    x[j] = pivot.divide(x[j]);
                }
                x.swap(j, p);
            }
        }
    }
}
