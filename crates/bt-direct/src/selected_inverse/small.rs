//! A step of the selected inverse with blocks of a few rows, L numbers side by side.
//!
//! ```text
//! W = −G·S'    [Sⱼⱼ Sⱼₜ] = Ũ⁻¹·[I − W·H  W]    Sₜⱼ = −S'·H    [Sⱼⱼ; Sₜⱼ] ← [Sⱼⱼ; Sₜⱼ]·L̃⁻¹
//! ```
//!
//! The first two by rows, so that a number of a factor meets a row as a whole; the last two by columns. What lies beyond k rows or
//! columns is zero and stays so. Departure from the step of larger blocks: I − W·H is solved with once, where there Ũ⁻¹ and Sⱼₜ·H are formed.

use bt_formats::{Scalar, mul_add, one, zero};
use faer::MatRef;
use pulp::{Simd, WithSimd};

use crate::band_lu::end::divide;
use crate::block_lu::Block;

/// Rows, or columns, of L numbers.
type Square<T, const L: usize> = [[T; L]; L];

/// Σ aᵢ·xᵢ is taken from `y`.
#[inline(always)]
fn subtract<T: Scalar, const L: usize>(a: T, x: &[T; L], y: &mut [T; L]) {
    let minus_a = -a;
    for l in 0..L {
        y[l] = mul_add::<T, false>(minus_a, x[l], y[l]);
    }
}

/// The step of a block `b` of at most L rows, and as many of the next one, whose S' = `s` is known.
pub(super) struct Small<'a, T, const L: usize> {
    pub b: &'a Block<'a, T>,
    pub s: MatRef<'a, T>,
    /// [Sⱼⱼ; Sₜⱼ] before the exchanges of columns, and Sⱼₜ.
    pub panel: &'a mut [T],
    pub upper: &'a mut [T],
}

/// No closure: the loops of a closure this long would be compiled once, for no instruction set.
impl<T: Scalar, const L: usize> WithSimd for Small<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        step::<T, L>(self.b, self.s, self.panel, self.upper);
    }
}

#[inline(always)]
fn step<T: Scalar, const L: usize>(b: &Block<'_, T>, s: MatRef<'_, T>, panel: &mut [T], upper: &mut [T]) {
    let (k, next) = (b.k, b.next);
    let ld = k + next;
    assert!(k <= L && next <= L, "a block of more rows than there are lanes");
    let empty = [[zero::<T>(); L]; L];
    let (mut s_rows, mut s_cols) = (empty, empty);
    for (c, col) in s_cols.iter_mut().enumerate().take(next) {
        let values = s.col(c).try_as_col_major().expect("columns are contiguous").as_slice();
        col[..next].copy_from_slice(values);
        for (row, &v) in s_rows.iter_mut().zip(values) {
            row[c] = v;
        }
    }
    let mut h_rows = empty;
    for c in 0..k {
        for (row, &v) in h_rows.iter_mut().zip(&b.panel[c * ld + k..(c + 1) * ld]) {
            row[c] = v;
        }
    }
    // By rows: W, then V = I − W·H.
    let (mut v, mut w): (Square<T, L>, Square<T, L>) = (empty, empty);
    for i in 0..k {
        let mut sum = [zero::<T>(); L];
        for r in 0..next {
            subtract(b.g[r * k + i], &s_rows[r], &mut sum);
        }
        w[i] = sum;
        let mut sum = [zero::<T>(); L];
        sum[i] = one();
        for r in 0..next {
            subtract(w[i][r], &h_rows[r], &mut sum);
        }
        v[i] = sum;
    }
    // [V W] ← Ũ⁻¹·[V W]
    for i in (0..k).rev() {
        let (mut of_v, mut of_w) = (v[i], w[i]);
        for r in i + 1..k {
            let u = b.panel[r * ld + i];
            subtract(u, &v[r], &mut of_v);
            subtract(u, &w[r], &mut of_w);
        }
        let pivot = b.panel[i * ld + i];
        divide(&mut of_v, pivot);
        divide(&mut of_w, pivot);
        (v[i], w[i]) = (of_v, of_w);
    }
    for (r, column) in upper.chunks_exact_mut(k).enumerate() {
        for (x, row) in column.iter_mut().zip(&w) {
            *x = row[r];
        }
    }
    // By columns: Sⱼⱼ and −S'·H, times L̃⁻¹ from the last column to the first.
    let (mut diagonal, mut lower) = (empty, empty);
    for c in (0..k).rev() {
        let (mut of_diagonal, mut of_lower) = ([zero::<T>(); L], [zero::<T>(); L]);
        for (x, row) in of_diagonal.iter_mut().zip(&v).take(k) {
            *x = row[c];
        }
        let factors = &b.panel[c * ld..(c + 1) * ld];
        for r in 0..next {
            subtract(factors[k + r], &s_cols[r], &mut of_lower);
        }
        for r in c + 1..k {
            subtract(factors[r], &diagonal[r], &mut of_diagonal);
            subtract(factors[r], &lower[r], &mut of_lower);
        }
        (diagonal[c], lower[c]) = (of_diagonal, of_lower);
        let (above, below) = panel[c * ld..(c + 1) * ld].split_at_mut(k);
        above.copy_from_slice(&of_diagonal[..k]);
        below.copy_from_slice(&of_lower[..next]);
    }
}
