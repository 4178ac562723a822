//! A supernode of a few columns, eliminated by plain loops with pivots as J. R. Bunch & L. Kaufman choose them, among its own rows.

use bt_formats::{RealScalar, Scalar, zero};

use super::pivots::Pivot;
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

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    /// A Hermitian block of `width` rows with `below` rows under it, hardly anything on its diagonal.
    fn block(width: usize, below: usize, seed: usize) -> Vec<c64> {
        let number = |i: usize, j: usize| {
            let place = (7919 * i + 104_729 * j + 31 * seed) % 97;
            c64::new(place as f64 / 48.0 - 1.0, if i == j { 0.0 } else { (place % 13) as f64 / 6.0 - 1.0 })
        };
        let entry = |i: usize, j: usize| if i == j { number(i, i) * 0.1 } else { number(i, j) };
        (0..width).flat_map(|j| (0..width + below).map(move |i| entry(i.max(j), i.min(j)))).collect()
    }

    #[test]
    fn l_d_and_the_adjoint_of_l_are_the_block_with_its_rows_exchanged() {
        let mut exchanged = false;
        for (width, below, seed) in (1..=COLUMNS).flat_map(|w| [(w, 0, w), (w, 3, 5 * w + 1), (w, 11, 9 * w + 2)]) {
            let rows = width + below;
            let a = block(width, below, seed);
            let (mut l, mut beside, mut p) = (a.clone(), vec![c64::default(); width], vec![0; width]);
            eliminate(&mut l, &mut beside, &mut p);
            exchanged |= p.iter().enumerate().any(|(k, &i)| k as u32 != i);
            let entry_of_l = |i: usize, k: usize| match i.cmp(&k) {
                std::cmp::Ordering::Less => c64::default(),
                std::cmp::Ordering::Equal => c64::new(1.0, 0.0),
                std::cmp::Ordering::Greater => l[k * rows + i],
            };
            let entry_of_d = |i: usize, j: usize| match (i.max(j), i.min(j)) {
                (i, j) if i == j => l[i * rows + i],
                (i, j) if i == j + 1 => beside[j],
                _ => c64::default(),
            };
            let d = |i: usize, j: usize| if i < j { entry_of_d(i, j).conj() } else { entry_of_d(i, j) };
            let source = |i: usize| if i < width { p[i] as usize } else { i };
            for (i, j) in (0..rows).flat_map(|i| (0..width.min(i + 1)).map(move |j| (i, j))) {
                let terms = (0..width).flat_map(|k| (0..width).map(move |m| (k, m)));
                let sum: c64 = terms.map(|(k, m)| entry_of_l(i, k) * d(k, m) * entry_of_l(j, m).conj()).sum();
                let (from, to) = (source(i), source(j));
                // Above the diagonal of the block its mirror image stands for it.
                let given = if from < to { a[from * rows + to].conj() } else { a[to * rows + from] };
                assert!((sum - given).norm() < 1e-12, "{width} columns, {below} below: {i}, {j}: {sum} {given}");
            }
        }
        assert!(exchanged, "a block whose rows are exchanged");
    }

    #[test]
    fn a_block_of_zeros_or_of_nan_ends() {
        for value in [0.0, f64::NAN] {
            let (mut block, mut beside, mut p) = (vec![value; 12], vec![0.0; 3], vec![0; 3]);
            eliminate(&mut block, &mut beside, &mut p);
            assert!(!(block[0].abs() > 0.0), "no pivot");
        }
    }
}
