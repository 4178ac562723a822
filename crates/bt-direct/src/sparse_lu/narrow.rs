//! A supernode of a few columns, eliminated by plain loops: calls of kernels for large blocks take longer there than what they do.

use bt_formats::Scalar;

use crate::pivot::Pivot;

/// Columns up to which a supernode is eliminated here.
pub const COLUMNS: usize = 8;

/// P·N[s, s] = L·U, L[Rₛ, s] ← N[Rₛ, s]·U⁻¹, U[s, Rₛ] ← L⁻¹·P·N[s, Rₛ], where `left` has the columns of N[s∪Rₛ, s] and `right` the rows of
/// N[s, Rₛ]. Row `exchange[k]` of the block comes as number k. A pivot of zero is left to be seen.
pub fn eliminate<T: Scalar>(left: &mut [T], right: &mut [T], exchange: &mut [u32]) {
    let width = exchange.len();
    let (rows, below) = (left.len() / width, right.len() / width);
    (0..).zip(&mut *exchange).for_each(|(k, e)| *e = k);
    for c in 0..width {
        let column = &left[c * rows..][..width];
        let (mut pivot, mut largest) = (c, column[c].abs1());
        for (i, v) in column.iter().enumerate().skip(c + 1) {
            if v.abs1() > largest {
                (pivot, largest) = (i, v.abs1());
            }
        }
        if pivot != c {
            exchange.swap(c, pivot);
            left.chunks_exact_mut(rows).for_each(|column| column.swap(c, pivot));
            let (above, from) = right.split_at_mut(pivot * below);
            above[c * below..][..below].swap_with_slice(&mut from[..below]);
        }
        let (own, later) = left[c * rows..].split_at_mut(rows);
        let divisor = Pivot::new(own[c]);
        let multipliers = &mut own[c + 1..];
        for l in &mut *multipliers {
            *l = divisor.divide(*l);
        }
        for column in later.chunks_exact_mut(rows) {
            let u = column[c];
            column[c + 1..].iter_mut().zip(&*multipliers).for_each(|(v, &l)| *v -= l * u);
        }
        let (own, later) = right[c * below..].split_at_mut(below);
        for (row, &l) in later.chunks_exact_mut(below.max(1)).zip(&multipliers[..width - c - 1]) {
            row.iter_mut().zip(&*own).for_each(|(v, &u)| *v -= l * u);
        }
    }
}
