//! A supernode of a few columns, eliminated by plain loops with pivots as J. R. Bunch & L. Kaufman choose them, among its own rows.

use bt_formats::{RealScalar, Scalar, zero};

use super::supernodal::Pivot;
use crate::pivot::divide_real;

/// Columns up to which a supernode is eliminated here.
pub const COLUMNS: usize = 8;

/// P·N[s, s]·Pᵀ = L·D·Lᴴ on the rows on top, L[Rₛ, s] = N[Rₛ, s]·Pᵀ·L[s, s]⁻ᴴ·D⁻¹ below, of `block`, whose upper triangle is not looked at.
/// D stands on the diagonal and in `beside`; row `exchange[k]` of the block comes as number k. A pivot of zero is left to be seen.
pub fn eliminate<T: Scalar>(block: &mut [T], beside: &mut [T], exchange: &mut [u32]) {
    let width = exchange.len();
    let rows = block.len() / width;
    (0..).zip(&mut *exchange).for_each(|(k, e)| *e = k);
    beside.fill(zero());
    let mut c = 0;
    while c < width {
        match choose(block, rows, c, width) {
            Choice::One(first) => {
                swap(block, rows, (c, first), exchange);
                let (own, later) = block[c * rows..].split_at_mut(rows);
                let d = own[c].re();
                own[c] = T::from_real(d);
                for (j, column) in (c + 1..).zip(later.chunks_exact_mut(rows)) {
                    // l̄ⱼ of the multiplier that own[j] becomes.
                    let factor = Scalar::conj(divide_real(own[j], d));
                    column[j..].iter_mut().zip(&own[j..]).for_each(|(v, &x)| *v -= x * factor);
                }
                own[c + 1..].iter_mut().for_each(|x| *x = divide_real(*x, d));
                c += 1;
            }
            Choice::Two(second) => {
                swap(block, rows, (c + 1, second), exchange);
                let (own, later) = block[c * rows..].split_at_mut(rows);
                let (next, later) = later.split_at_mut(rows);
                let (d, b, e) = (own[c].re(), own[c + 1], next[c + 1].re());
                (own[c], own[c + 1], next[c + 1]) = (T::from_real(d), zero(), T::from_real(e));
                beside[c] = b;
                let divide = Pivot::divide_two((d, b, e));
                for (j, column) in (c + 2..).zip(later.chunks_exact_mut(rows)) {
                    let (l, m) = divide(own[j], next[j]);
                    let (l, m) = (Scalar::conj(l), Scalar::conj(m));
                    for (v, (&x, &y)) in column[j..].iter_mut().zip(own[j..].iter().zip(&next[j..])) {
                        *v -= x * l + y * m;
                    }
                }
                for (x, y) in own[c + 2..].iter_mut().zip(&mut next[c + 2..]) {
                    (*x, *y) = divide(*x, *y);
                }
                c += 2;
            }
        }
    }
}

/// The row that comes first, or second of a pivot of order 2.
enum Choice {
    One(usize),
    Two(usize),
}

/// The pivot of column `c`, of what is left of the first `width` rows and columns.
fn choose<T: Scalar>(block: &[T], rows: usize, c: usize, width: usize) -> Choice {
    // (1 + √17)/8
    const ALPHA: f64 = 0.640_388_203_202_208;
    let at = |i: usize, j: usize| block[j * rows + i].abs1().to_f64();
    let largest = |entries: &mut dyn Iterator<Item = (usize, f64)>| {
        entries.fold((c, 0.0), |best, next| if next.1 > best.1 { next } else { best })
    };
    let own = at(c, c);
    let (row, beside) = largest(&mut (c + 1..width).map(|i| (i, at(i, c))));
    if row == c || own >= ALPHA * beside {
        return Choice::One(c);
    }
    let (_, in_row) = largest(&mut (c..row).map(|j| (j, at(row, j))).chain((row + 1..width).map(|i| (i, at(i, row)))));
    if own * in_row >= ALPHA * beside * beside {
        Choice::One(c)
    } else if at(row, row) >= ALPHA * in_row {
        Choice::One(row)
    } else {
        Choice::Two(row)
    }
}

/// Rows and columns p ≤ q change places.
fn swap<T: Scalar>(block: &mut [T], rows: usize, (p, q): (usize, usize), exchange: &mut [u32]) {
    if p == q {
        return;
    }
    exchange.swap(p, q);
    // Rows of columns before p.
    block.chunks_exact_mut(rows).take(p).for_each(|column| column.swap(p, q));
    // Between them a column comes to a row.
    for i in p + 1..q {
        let (x, y) = (block[p * rows + i], block[i * rows + q]);
        (block[p * rows + i], block[i * rows + q]) = (Scalar::conj(y), Scalar::conj(x));
    }
    block[p * rows + q] = Scalar::conj(block[p * rows + q]);
    block.swap(p * rows + p, q * rows + q);
    let (before, from) = block.split_at_mut(q * rows);
    before[p * rows + q + 1..][..rows - q - 1].swap_with_slice(&mut from[q + 1..rows]);
}
