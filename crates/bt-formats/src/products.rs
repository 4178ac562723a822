//! The shell of all products Y ← α·op(A)·X + β·Y: splitting among threads, tiling for several vectors.
//!
//! A format says how consecutive rows of op(A)·x are formed ([`RowProduct`]); each element of y is summed in an order
//! that depends on the matrix alone. Whatever way y is cut up, its bits are therefore the same: any number of threads,
//! serial or not. Nothing is allocated.
//!
//! Several vectors: y is cut into tiles whose part of the matrix fits the second-level cache, and all columns are done
//! on one tile before the next, so that the matrix is streamed from memory once.

use std::ops::Range;

use faer::{MatMut, MatRef};

use crate::join::join;
use crate::operator::{Matrix, Op, Par, zero};
use crate::scalar::Scalar;

/// Bytes of matrix in a tile: a fraction of any second-level cache of today.
const TILE_BYTES: usize = 128 << 10;

/// A format whose product can be formed for consecutive rows of op(A) independently of the others.
pub(crate) trait RowProduct<T: Scalar>: Matrix<T> {
    /// y ← α·(op(A)·x)[first .. first + y.len()] + β·y. β = 0 never reads `y`.
    fn rows(&self, op: Op, first: usize, alpha: T, x: &[T], beta: T, y: &mut [T]);

    /// The first row ≥ `row` of op(A) at which y may be cut.
    fn cut(&self, row: usize) -> usize {
        row
    }

    /// Whether rows cost what they hold, so that small pieces are as good as large ones. A format that must search
    /// all of A for any rows of op(A) says no and gets one piece a thread.
    fn is_local(&self, _op: Op) -> bool {
        true
    }

    /// [`RowProduct::rows`] for several vectors.
    fn rows_many(&self, op: Op, first: usize, alpha: T, x: MatRef<'_, T>, beta: T, y: MatMut<'_, T>) {
        tile_rows_many(self, tile_rows(self), op, first, alpha, x, beta, y);
    }
}

/// Rows whose storage makes a tile.
pub(crate) fn tile_rows<T: Scalar>(a: &(impl Matrix<T> + ?Sized)) -> usize {
    let per_row = a.bytes() / a.nrows().max(1) + 1;
    (TILE_BYTES / per_row).max(64)
}

/// All columns on one tile of rows of op(A) after another.
#[inline(never)]
pub(crate) fn tile_rows_many<T: Scalar>(
    a: &(impl RowProduct<T> + ?Sized),
    tile: usize,
    op: Op,
    first: usize,
    alpha: T,
    x: MatRef<'_, T>,
    beta: T,
    mut y: MatMut<'_, T>,
) {
    let end = first + y.nrows();
    let mut start = first;
    while start < end {
        let next = a.cut((start + tile).min(end)).min(end);
        for q in 0..x.ncols() {
            let y = &mut column_mut(&mut y, q)[start - first..next - first];
            a.rows(op, start, alpha, column(x, q), beta, y);
        }
        start = next;
    }
}

/// Column `q` as a slice.
pub(crate) fn column<T>(x: MatRef<'_, T>, q: usize) -> &[T] {
    x.col(q).try_as_col_major().expect("columns of X must be contiguous").as_slice()
}

/// Column `q` as a slice for writing.
pub(crate) fn column_mut<'a, T>(y: &'a mut MatMut<'_, T>, q: usize) -> &'a mut [T] {
    y.as_mut().col_mut(q).try_as_col_major_mut().expect("columns of Y must be contiguous").as_slice_mut()
}

/// y ← α·op(A)·x + β·y.
#[inline(never)]
pub(crate) fn product<T: Scalar, A: RowProduct<T>>(a: &A, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T], par: Par) {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    assert_eq!((x.len(), y.len()), (ncols, nrows), "lengths of x and y");
    let y = MatMut::from_column_major_slice_mut(y, nrows, 1);
    split(a, 0, y, grain(a, op, nrows, par), &|first, mut y| {
        a.rows(op, first, alpha, x, beta, column_mut(&mut y, 0));
    });
}

/// Y ← α·op(A)·X + β·Y.
#[inline(never)]
pub(crate) fn product_many<T: Scalar, A: RowProduct<T>>(
    a: &A,
    op: Op,
    alpha: T,
    x: MatRef<'_, T>,
    beta: T,
    y: MatMut<'_, T>,
    par: Par,
) {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    assert_eq!((x.nrows(), y.nrows(), x.ncols()), (ncols, nrows, y.ncols()), "shapes of X and Y");
    split(a, 0, y, grain(a, op, nrows, par), &|first, y| a.rows_many(op, first, alpha, x, beta, y));
}

/// Rows in a piece of y that one thread does.
fn grain<T: Scalar>(a: &impl RowProduct<T>, op: Op, nrows: usize, par: Par) -> usize {
    match par {
        Par::Seq => usize::MAX,
        Par::Rayon => {
            let pieces = rayon::current_num_threads() * if a.is_local(op) { 4 } else { 1 };
            nrows.div_ceil(pieces).max(64)
        }
    }
}

/// Halves y until a piece has at most `grain` rows, and does the pieces in parallel.
fn split<T: Scalar, A: RowProduct<T>>(
    a: &A,
    first: usize,
    y: MatMut<'_, T>,
    grain: usize,
    piece: &(impl Fn(usize, MatMut<'_, T>) + Sync),
) {
    let nrows = y.nrows();
    if nrows > grain {
        let cut = a.cut(first + nrows / 2) - first;
        if cut < nrows {
            let (top, bottom) = y.split_at_row_mut(cut);
            join(|| split(a, first, top, grain, piece), || split(a, first + cut, bottom, grain, piece));
            return;
        }
    }
    piece(first, y);
}

/// y ← β·y, never reading y when β = 0.
#[inline(always)]
pub(crate) fn scale<T: Scalar>(beta: T, y: &mut [T]) {
    if beta == zero() {
        y.fill(zero());
    } else if beta != T::one() {
        for v in y {
            *v *= beta;
        }
    }
}

/// v or its conjugate, as op demands.
#[inline(always)]
pub(crate) fn conj_if<T: Scalar>(op: Op, v: T) -> T {
    if op == Op::Adjoint { Scalar::conj(v) } else { v }
}

/// Rows whose sums stay in registers while all diagonals pass.
const LINE: usize = 32;
/// Rows at a time where diagonals leave the matrix: their sums stay in the first-level cache.
const STRIP: usize = 1024;

/// y ← α·(op(A)·x)[first..] + β·y for a matrix given by diagonals of `nrows` values each, stored by rows one after
/// another.
#[inline(never)]
pub(crate) fn diagonals_times<T: Scalar>(
    op: Op,
    nrows: usize,
    values: &[T],
    offsets: &(impl Iterator<Item = isize> + Clone),
    first: usize,
    alpha: T,
    x: &[T],
    beta: T,
    y: &mut [T],
) {
    // Row t of op(A) has op(v(t + dv))·x(t + dx) from the diagonal v.
    let shift = |offset: isize| if op == Op::Identity { (0, offset) } else { (-offset, -offset) };
    let diagonals = values.chunks_exact(nrows.max(1)).zip(offsets.clone().map(shift));
    let end = first + y.len();
    let whole = offsets.clone().map(shift).fold(first..end, |rows, (dv, dx)| {
        let inside = inside(nrows, dv, x.len(), dx, &rows);
        rows.start.max(inside.start)..rows.end.min(inside.end)
    });
    bt_simd::dispatch(
        #[inline(always)]
        move || {
            // Taken over: a closure that could be called twice would not be inlined.
            let y = y;
            let mut t = first;
            while t < end {
                if whole.start <= t && t + LINE <= whole.end {
                    let mut sums = [zero::<T>(); LINE];
                    for (v, (dv, dx)) in diagonals.clone() {
                        let terms = v[at(t, dv)..][..LINE].iter().zip(&x[at(t, dx)..][..LINE]);
                        sums.iter_mut().zip(terms).for_each(|(s, (&v, &x))| *s += conj_if(op, v) * x);
                    }
                    finish(alpha, &sums, beta, &mut y[t - first..][..LINE]);
                    t += LINE;
                    continue;
                }
                let mut sums = [zero::<T>(); STRIP];
                let stop = if t < whole.start { end.min(whole.start) } else { end }.min(t + STRIP);
                for (v, (dv, dx)) in diagonals.clone() {
                    let rows = inside(nrows, dv, x.len(), dx, &(t..stop));
                    if rows.is_empty() {
                        continue;
                    }
                    let terms = v[at(rows.start, dv)..].iter().zip(&x[at(rows.start, dx)..]);
                    let sums = sums[rows.start - t..rows.end - t].iter_mut();
                    sums.zip(terms).for_each(|(s, (&v, &x))| *s += conj_if(op, v) * x);
                }
                finish(alpha, &sums[..stop - t], beta, &mut y[t - first..stop - first]);
                t = stop;
            }
        },
    );
}

/// t + d, where that is not negative.
#[inline(always)]
fn at(t: usize, d: isize) -> usize {
    t.wrapping_add_signed(d)
}

/// Those of `rows` at which t + dv is a row of `nrows` and t + dx one of `ncols`; an empty range within `rows` for none.
fn inside(nrows: usize, dv: isize, ncols: usize, dx: isize, rows: &Range<usize>) -> Range<usize> {
    let start = (-dv).max(-dx).max(rows.start as isize);
    let end = (nrows as isize - dv).min(ncols as isize - dx).min(rows.end as isize);
    if start < end { start as usize..end as usize } else { rows.start..rows.start }
}

/// y ← α·s + β·y
#[inline(always)]
pub(crate) fn finish<T: Scalar>(alpha: T, sums: &[T], beta: T, y: &mut [T]) {
    for (y, &s) in y.iter_mut().zip(sums) {
        *y = if beta == zero() { alpha * s } else { alpha * s + beta * *y };
    }
}

/// Σ op(v)·x in eight interleaved sums: the order depends on the length only.
#[inline(always)]
pub(crate) fn dot<T: Scalar>(op: Op, v: &[T], x: &[T]) -> T {
    let mut sums = [zero::<T>(); 8];
    let (vs, v_rest) = v.as_chunks::<8>();
    let (xs, x_rest) = x.as_chunks::<8>();
    for (v, x) in vs.iter().zip(xs) {
        for l in 0..8 {
            sums[l] += conj_if(op, v[l]) * x[l];
        }
    }
    for ((s, &v), &x) in sums.iter_mut().zip(v_rest).zip(x_rest) {
        *s += conj_if(op, v) * x;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// y ← y + α·B·x for column-major `block` of `y.len()` rows.
#[inline(always)]
pub(crate) fn dense_times<T: Scalar>(block: &[T], alpha: T, x: impl Iterator<Item = T>, y: &mut [T]) {
    for (column, x) in block.chunks_exact(y.len()).zip(x) {
        let ax = alpha * x;
        for (y, &v) in y.iter_mut().zip(column) {
            *y += v * ax;
        }
    }
}

/// y ← y + α·op(B)·x, op transposing, for a column-major `block` of `x.len()` rows.
#[inline(always)]
pub(crate) fn dense_transpose_times<T: Scalar>(op: Op, block: &[T], alpha: T, x: &[T], y: &mut [T]) {
    for (y, column) in y.iter_mut().zip(block.chunks_exact(x.len())) {
        *y += alpha * dot(op, column, x);
    }
}
