//! Substitutions in eight right-hand sides at once: a block of X is held row by row, eight values each.
//!
//! Matrices are given by the distances between rows and between columns, so that a transposed one costs the same.

use bt_formats::{Scalar, zero};

use crate::band_lu::kernels::mul_add;
use crate::pivot::Pivot;

/// Right-hand sides that pass through the factors together.
pub(super) const GROUP: usize = 8;

/// Rows whose sums are held in registers.
const TALL: usize = 8;

/// One row of X.
pub(super) type Row<T> = [T; GROUP];

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

/// Y ← Y − A·X
#[inline(always)]
pub(super) fn subtract_product<T: Scalar, const FUSED: bool>(y: &mut [Row<T>], a: Strided<'_, T>, x: &[Row<T>]) {
    let mut r = 0;
    while r + TALL <= y.len() {
        rows_minus::<T, TALL, FUSED>(&mut y[r..r + TALL], a, r, 0, x);
        r += TALL;
    }
    for r in r..y.len() {
        rows_minus::<T, 1, FUSED>(&mut y[r..=r], a, r, 0, x);
    }
}

/// X ← A⁻¹·X, A lower triangular.
#[inline(always)]
pub(super) fn solve_lower<T: Scalar, const FUSED: bool>(x: &mut [Row<T>], a: Strided<'_, T>, diagonal: Diagonal) {
    let k = x.len();
    let mut r = 0;
    while r < k {
        let end = (r + TALL).min(k);
        let (done, rest) = x.split_at_mut(r);
        let rest = &mut rest[..end - r];
        if end - r == TALL {
            rows_minus::<T, TALL, FUSED>(rest, a, r, 0, done);
        } else {
            for i in r..end {
                rows_minus::<T, 1, FUSED>(&mut rest[i - r..=i - r], a, i, 0, done);
            }
        }
        for i in r..end {
            let (above, below) = rest.split_at_mut(i - r);
            let row = &mut below[0];
            for (c, above) in above.iter().enumerate() {
                minus::<T, FUSED>(row, a.get(i, r + c), above);
            }
            if diagonal == Diagonal::Stored {
                divide(row, a.get(i, i));
            }
        }
        r = end;
    }
}

/// X ← A⁻¹·X, A upper triangular.
#[inline(always)]
pub(super) fn solve_upper<T: Scalar, const FUSED: bool>(x: &mut [Row<T>], a: Strided<'_, T>, diagonal: Diagonal) {
    let mut end = x.len();
    while end > 0 {
        let r = end.saturating_sub(TALL);
        let (rest, done) = x.split_at_mut(end);
        let rest = &mut rest[r..];
        if end - r == TALL {
            rows_minus::<T, TALL, FUSED>(rest, a, r, end, done);
        } else {
            for i in r..end {
                rows_minus::<T, 1, FUSED>(&mut rest[i - r..=i - r], a, i, end, done);
            }
        }
        for i in (r..end).rev() {
            let (above, below) = rest.split_at_mut(i + 1 - r);
            let row = &mut above[i - r];
            for (c, below) in below.iter().enumerate() {
                minus::<T, FUSED>(row, a.get(i, i + 1 + c), below);
            }
            if diagonal == Diagonal::Stored {
                divide(row, a.get(i, i));
            }
        }
        end = r;
    }
}

/// R rows of Y from row `r` of A on: Y ← Y − A(r.., c..)·X
#[inline(always)]
fn rows_minus<T: Scalar, const R: usize, const FUSED: bool>(
    y: &mut [Row<T>],
    a: Strided<'_, T>,
    r: usize,
    c: usize,
    x: &[Row<T>],
) {
    let y: &mut [Row<T>; R] = y.try_into().expect("R rows");
    let mut acc = [[zero::<T>(); GROUP]; R];
    acc.copy_from_slice(y);
    for (d, x) in x.iter().enumerate() {
        for i in 0..R {
            minus::<T, FUSED>(&mut acc[i], a.get(r + i, c + d), x);
        }
    }
    y.copy_from_slice(&acc);
}

/// y ← y − a·x
#[inline(always)]
fn minus<T: Scalar, const FUSED: bool>(y: &mut Row<T>, a: T, x: &Row<T>) {
    let a = -a;
    for i in 0..GROUP {
        y[i] = mul_add::<T, FUSED>(a, x[i], y[i]);
    }
}

#[inline(always)]
fn divide<T: Scalar>(row: &mut Row<T>, by: T) {
    let pivot = Pivot::new(by);
    for v in row {
        *v = pivot.divide(*v);
    }
}
