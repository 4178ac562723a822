//! Substitutions in V·8 right-hand sides at once: a block of X is held row by row.
//!
//! Matrices are given by the distances between rows and between columns, so that a transposed one costs the same.

use bt_formats::{Scalar, zero};

use crate::band_lu::window::{Row, load, store};
use crate::pivot::Pivot;
use crate::tridiagonal_once::lanes::Isa;

/// A matrix inside a slice: element (r, c) at r·`row` + c·`column`, conjugated if `conjugate`.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a, T> {
    pub(super) values: &'a [T],
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) conjugate: bool,
}

impl<T: Scalar> Strided<'_, T> {
    #[inline(always)]
    fn get(&self, r: usize, c: usize) -> T {
        let v = self.values[r * self.row + c * self.column];
        if self.conjugate { v.conj() } else { v }
    }
}

/// What stands on the diagonal of a triangle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Diagonal {
    Ones,
    Stored,
}

/// Runs `$do` with R rows at a time: sixteen or eight vectors of sums stay in registers, single rows are left.
macro_rules! by_rows {
    ($v:expr, $tile:ident => $do:expr) => {
        if $v == 1 {
            const $tile: usize = 8;
            $do
        } else {
            const $tile: usize = 4;
            $do
        }
    };
}

/// Y ← Y − A·X
#[inline(always)]
pub(super) fn subtract_product<T: Scalar, S: Isa<T>, const V: usize>(
    isa: S,
    y: &mut [Row<T, V>],
    a: Strided<'_, T>,
    x: &[Row<T, V>],
) {
    by_rows!(V, TALL => {
        let mut r = 0;
        while r + TALL <= y.len() {
            Sums::<S::V, V, TALL>::of(isa, &y[r..]).minus(isa, a, r, 0, x).to(isa, &mut y[r..]);
            r += TALL;
        }
        for r in r..y.len() {
            Sums::<S::V, V, 1>::of(isa, &y[r..]).minus(isa, a, r, 0, x).to(isa, &mut y[r..]);
        }
    });
}

/// X ← A⁻¹·X, A lower triangular.
#[inline(always)]
pub(super) fn solve_lower<T: Scalar, S: Isa<T>, const V: usize>(
    isa: S,
    x: &mut [Row<T, V>],
    a: Strided<'_, T>,
    diagonal: Diagonal,
) {
    by_rows!(V, TALL => {
        let mut r = 0;
        while r + TALL <= x.len() {
            let (done, rest) = x.split_at_mut(r);
            Sums::<S::V, V, TALL>::of(isa, rest).minus(isa, a, r, 0, done).lower(isa, a, r, diagonal).to(isa, rest);
            r += TALL;
        }
        for r in r..x.len() {
            let (done, rest) = x.split_at_mut(r);
            Sums::<S::V, V, 1>::of(isa, rest).minus(isa, a, r, 0, done).lower(isa, a, r, diagonal).to(isa, rest);
        }
    });
}

/// X ← A⁻¹·X, A upper triangular.
#[inline(always)]
pub(super) fn solve_upper<T: Scalar, S: Isa<T>, const V: usize>(
    isa: S,
    x: &mut [Row<T, V>],
    a: Strided<'_, T>,
    diagonal: Diagonal,
) {
    by_rows!(V, TALL => {
        let mut end = x.len();
        while end >= TALL {
            let (rest, done) = x.split_at_mut(end);
            let (r, rest) = (end - TALL, &mut rest[end - TALL..]);
            Sums::<S::V, V, TALL>::of(isa, rest).minus(isa, a, r, end, done).upper(isa, a, r, diagonal).to(isa, rest);
            end = r;
        }
        for r in (0..end).rev() {
            let (rest, done) = x.split_at_mut(r + 1);
            let rest = &mut rest[r..];
            Sums::<S::V, V, 1>::of(isa, rest).minus(isa, a, r, r + 1, done).upper(isa, a, r, diagonal).to(isa, rest);
        }
    });
}

/// R rows in registers.
struct Sums<W, const V: usize, const R: usize>([[W; V]; R]);

impl<W: Copy, const V: usize, const R: usize> Sums<W, V, R> {
    #[inline(always)]
    fn of<T: Scalar, S: Isa<T, V = W>>(isa: S, y: &[Row<T, V>]) -> Self {
        let mut acc = [[isa.splat(zero()); V]; R];
        for i in 0..R {
            acc[i] = load(isa, &y[i]);
        }
        Self(acc)
    }

    #[inline(always)]
    fn to<T: Scalar, S: Isa<T, V = W>>(self, isa: S, y: &mut [Row<T, V>]) {
        for i in 0..R {
            store(isa, self.0[i], &mut y[i]);
        }
    }

    /// self − A(r.., c..)·X
    #[inline(always)]
    fn minus<T: Scalar, S: Isa<T, V = W>>(
        mut self,
        isa: S,
        a: Strided<'_, T>,
        r: usize,
        c: usize,
        x: &[Row<T, V>],
    ) -> Self {
        for (d, x) in x.iter().enumerate() {
            let x = load(isa, x);
            for i in 0..R {
                self.row_minus(isa, i, a.get(r + i, c + d), x);
            }
        }
        self
    }

    /// T⁻¹·self, T the lower triangle of A from row r on.
    #[inline(always)]
    fn lower<T: Scalar, S: Isa<T, V = W>>(mut self, isa: S, a: Strided<'_, T>, r: usize, diagonal: Diagonal) -> Self {
        for i in 0..R {
            for c in 0..i {
                self.row_minus(isa, i, a.get(r + i, r + c), self.0[c]);
            }
            self.divide(isa, i, a.get(r + i, r + i), diagonal);
        }
        self
    }

    /// T⁻¹·self, T the upper triangle of A from row r on.
    #[inline(always)]
    fn upper<T: Scalar, S: Isa<T, V = W>>(mut self, isa: S, a: Strided<'_, T>, r: usize, diagonal: Diagonal) -> Self {
        for i in (0..R).rev() {
            for c in i + 1..R {
                self.row_minus(isa, i, a.get(r + i, r + c), self.0[c]);
            }
            self.divide(isa, i, a.get(r + i, r + i), diagonal);
        }
        self
    }

    #[inline(always)]
    fn row_minus<T: Scalar, S: Isa<T, V = W>>(&mut self, isa: S, i: usize, a: T, x: [W; V]) {
        let a = isa.splat(a);
        for v in 0..V {
            self.0[i][v] = isa.minus_mul(self.0[i][v], x[v], a);
        }
    }

    #[inline(always)]
    fn divide<T: Scalar, S: Isa<T, V = W>>(&mut self, isa: S, i: usize, by: T, diagonal: Diagonal) {
        if diagonal == Diagonal::Stored {
            let pivot = Pivot::new(by);
            for v in 0..V {
                self.0[i][v] = isa.divide(self.0[i][v], pivot);
            }
        }
    }
}
