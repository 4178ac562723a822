//! ILUT(p, τ): incomplete LU with dropping by size and by number.
//!
//! Row i of L and U is computed with all fill; what changes the row by less than τ of its norm is dropped, first the multipliers, then
//! the rest, and of what is left the p largest of the L part and the p largest of the U part are kept, beside the diagonal. The size
//! of an element is
//!
//! ```text
//! |lᵢₖ|·‖uₖ‖₂/‖aᵢ‖₂ for a multiplier,   |uᵢⱼ|/‖aᵢ‖₂ for the rest,   or that in A·C where it is larger:  |lᵢₖ|·‖uₖC‖₂/‖aᵢC‖₂, |uᵢⱼ|cⱼ/‖aᵢC‖₂
//! ```
//!
//! with C = diag(c), which takes the units of the columns out where they differ (see `column_units`). None has a unit: neither that of A
//! nor those of its rows or columns decide what is dropped.
//!
//! Y. Saad, Numer. Linear Algebra Appl. 1 (1994) 387–402, doi:10.1002/nla.1680010405. Departure: there lᵢₖ itself, which has
//! another unit than aᵢ, is compared with τ·‖aᵢ‖₂, and there is no C. Pivots follow the rule of [`IncompleteLu`].
//!
//! Storage: at most (2p + 1)·n entries; for the setup 3n values and a few more a row and an entry. Cost: the flops of the entries kept,
//! a heap of the pending columns of a row, and twelve passes over the exponents of A for C.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, norm2, one, zero};

use crate::blas1::divide;
use crate::incomplete_lu::{IncompleteLu, Rule, usable_pivot};
use crate::triangular::Rows;

/// What ILUT keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IlutOptions {
    /// p: entries kept in a row of L, and in a row of U beside the diagonal.
    pub fill: usize,
    /// τ: what changes row i by less than τ·‖aᵢ‖₂ is dropped.
    pub drop_tolerance: f64,
}

impl Default for IlutOptions {
    /// p = 20, τ = 10⁻³.
    fn default() -> Self {
        Self { fill: 20, drop_tolerance: 1e-3 }
    }
}

/// The ILUT(p, τ) preconditioner of `a`.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{IlutOptions, Preconditioner, ilut};
/// // Nothing is dropped: M = A.
/// let a = Csr::from_dense(faer::mat![[0.0, 1.0, 4.0], [4.0, 1.0, 0.0], [1.0, 4.0, 1.0]].as_ref())?;
/// let m = ilut(&a, IlutOptions { fill: 3, drop_tolerance: 0.0 })?;
/// assert_eq!(m.replaced_pivots(), 1);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`FactorError::Input`] when A is not square or not finite, or τ is negative or NaN; [`FactorError::Breakdown`]
/// naming the row where an element overflows.
#[inline(never)]
pub fn ilut<T: Scalar>(a: &Csr<T>, options: IlutOptions) -> Result<IncompleteLu<T>> {
    a.check_square()?;
    a.check_finite()?;
    let IlutOptions { fill, drop_tolerance } = options;
    if !(drop_tolerance >= 0.0) {
        return Err(Error::InvalidStructure {
            what: "drop tolerance",
            why: format!("{drop_tolerance} is not a number of at least 0"),
        }
        .into());
    }
    let n = a.nrows();
    let (mut lower, mut upper) = (Rows { ptr: vec![0], ..Rows::default() }, Rows { ptr: vec![0], ..Rows::default() });
    let mut reciprocals = Vec::with_capacity(n);
    let mut replaced = 0;
    let mut norms = Norms { units: column_units(a), scaled: Vec::new() };
    // Of row k of U, and of row i of A.
    let mut reach = Vec::<[f64; 2]>::with_capacity(n);
    // Row i scattered over its columns, and which columns it has by now.
    let (mut w, mut owner) = (vec![zero::<T>(); n], vec![u32::MAX; n]);
    let mut pending = BinaryHeap::new();
    let (mut left, mut right, mut kept) = (Vec::<u32>::new(), Vec::<u32>::new(), Vec::new());
    for i in 0..n {
        let (cols, vals) = a.row(i);
        let whole = norms.of(cols, vals);
        let mut largest = zero::<T::Real>();
        left.clear();
        right.clear();
        (w[i], owner[i]) = (zero(), i as u32);
        for (&j, &v) in cols.iter().zip(vals) {
            (w[j as usize], owner[j as usize]) = (v, i as u32);
            largest = largest.max_nan(v.abs());
            match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => pending.push(Reverse(j)),
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => right.push(j),
            }
        }
        // |aᵢᵢ| + Σ|lᵢₖ·uₖᵢ|
        let mut terms = w[i].abs();
        // Columns left of the diagonal in increasing order, those that fill brings included.
        while let Some(Reverse(k)) = pending.pop() {
            let k = k as usize;
            // lᵢₖ ← wₖ/dₖ
            let w_k = w[k];
            let l: T = w_k * reciprocals[k];
            if !(larger(reach[k].map(|reach| l.abs().to_f64() * reach), whole) >= drop_tolerance) || l == zero() {
                continue;
            }
            let before = w[i];
            w[k] = l;
            left.push(k as u32);
            // w ← w − lᵢₖ·dₖ·uₖ
            for e in upper.ptr[k] as usize..upper.ptr[k + 1] as usize {
                let j = upper.idx[e];
                if owner[j as usize] != i as u32 {
                    (w[j as usize], owner[j as usize]) = (zero(), i as u32);
                    if (j as usize) < i {
                        pending.push(Reverse(j));
                    } else {
                        right.push(j);
                    }
                }
                w[j as usize] -= w_k * upper.val[e];
            }
            terms += (w[i] - before).abs();
        }
        let modulus = |j: u32| w[j as usize].abs().to_f64();
        let size = |j: u32| larger([modulus(j), modulus(j) * norms.unit(j)], whole);
        right.retain(|&j| size(j) >= drop_tolerance && w[j as usize] != zero());
        keep_largest_by(&mut left, fill, |k| larger(reach[k as usize].map(|reach| modulus(k) * reach), whole));
        keep_largest_by(&mut right, fill, size);
        let (pivot, was_replaced) = usable_pivot(w[i], terms, largest);
        right.push(i as u32);
        kept.clear();
        kept.extend(right.iter().map(|&j| if j as usize == i { pivot } else { w[j as usize] }));
        reach.push(norms.of(&right, &kept));
        right.pop();
        replaced += usize::from(was_replaced);
        let reciprocal = divide(one::<T>(), pivot);
        if !Scalar::is_finite(reciprocal) {
            let reason = format!("elements overflow in row {i} (from 0); scale the matrix, or use matching");
            return Err(FactorError::breakdown("ilut", Place::Row(i), reason));
        }
        for (part, rows, scale) in [(&left, &mut lower, one()), (&right, &mut upper, reciprocal)] {
            rows.idx.extend_from_slice(part);
            rows.val.extend(part.iter().map(|&j| w[j as usize] * scale));
            let end = u32::try_from(rows.idx.len()).map_err(|_| Error::TooLarge {
                what: "incomplete factors",
                needed: format!("{} entries", rows.idx.len()),
                limit: "32-bit pointers".into(),
            })?;
            rows.ptr.push(end);
        }
        reciprocals.push(reciprocal);
    }
    Ok(IncompleteLu::assemble("ilut", Rule::Dropping(options), lower, upper, reciprocals, replaced))
}

/// ‖v‖₂ and ‖v·C‖₂ of rows v.
struct Norms<T> {
    /// c; none where all columns have one unit.
    units: Option<Vec<f64>>,
    scaled: Vec<T>,
}

impl<T: Scalar> Norms<T> {
    fn unit(&self, j: u32) -> f64 {
        self.units.as_ref().map_or(1.0, |units| units[j as usize])
    }

    fn of(&mut self, cols: &[u32], vals: &[T]) -> [f64; 2] {
        let plain = norm2(vals);
        let Self { units: Some(units), scaled } = self else { return [plain, plain] };
        scaled.clear();
        scaled.extend(cols.iter().zip(vals).map(|(&j, &v)| v * T::rounded(units[j as usize], 0.0)));
        [plain, norm2(scaled)]
    }
}

/// The larger of two sizes, each relative to its norm.
fn larger(sizes: [f64; 2], norms: [f64; 2]) -> f64 {
    (sizes[0] / norms[0]).max(sizes[1] / norms[1])
}

/// Rounds of columns and rows for [`column_units`].
const ROUNDS: usize = 6;
/// Columns that differ by less than two to this power have one unit.
const ALIKE: f64 = 4.0;

/// c: powers of two such that log₂|rᵢ·aᵢⱼ·cⱼ| is small in the sense of least squares, with r for the rows (A. R. Curtis, J. K. Reid,
/// IMA J. Appl. Math. 10 (1972) 118–124, doi:10.1093/imamat/10.1.118): whatever units rows and columns have, c takes them out; none
/// where columns have about one size. It is to the bit the same where A or a row is multiplied by a power of two.
///
/// ```
/// let a = bt_formats::Csr::from_dense(faer::mat![[1.0, 1e-6], [2.0, 3e-6]].as_ref())?;
/// assert_eq!(bt_iter::column_units(&a), Some(vec![1.0, 2f64.powi(20)]));
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Cost
/// Twelve passes over the exponents of A.
pub fn column_units<T: Scalar>(a: &Csr<T>) -> Option<Vec<f64>> {
    let n = a.nrows();
    let size = |v: T| (v != zero()).then(|| v.abs().to_f64().log2().floor());
    let logs: Vec<Option<f64>> = a.values().iter().map(|v| size(*v)).collect();
    let row = |i: usize| {
        let range = a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
        let pairs = a.col_idx()[range.clone()].iter().zip(&logs[range]);
        pairs.filter_map(|(&j, log)| log.map(|log| (j as usize, log)))
    };
    // Whole numbers, which units of rows leave the same.
    let largest = |i: usize| row(i).map(|(_, log)| log).fold(f64::NEG_INFINITY, f64::max);
    let tops: Vec<f64> = (0..n).map(largest).collect();
    let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; n]);
    let mut sums = vec![(0.0, 0u32); n];
    for _ in 0..ROUNDS {
        sums.fill((0.0, 0));
        for i in 0..n {
            for (j, log) in row(i) {
                sums[j] = (sums[j].0 + (log - tops[i]) + rows[i], sums[j].1 + 1);
            }
        }
        columns.iter_mut().zip(&sums).for_each(|(c, (sum, count))| *c = -sum / f64::from((*count).max(1)));
        for i in 0..n {
            let (sum, count) = row(i).fold((0.0, 0u32), |(s, k), (j, log)| (s + (log - tops[i]) + columns[j], k + 1));
            rows[i] = -sum / f64::from(count.max(1));
        }
    }
    // What c has in common says nothing; the range of T is enough for the rest.
    let least = columns.iter().copied().fold(f64::INFINITY, f64::min);
    if columns.iter().all(|c| c - least < ALIKE) {
        return None;
    }
    let limit = T::Real::MAX.to_f64().log2() / 2.0;
    Some(columns.into_iter().map(|c| (c - least).round().min(limit).exp2()).collect())
}

/// The `count` columns with the largest |w|, in increasing order; of equal ones the first.
pub(crate) fn keep_largest<T: Scalar>(columns: &mut Vec<u32>, count: usize, w: &[T]) {
    keep_largest_by(columns, count, |j| w[j as usize].abs().to_f64());
}

/// The same by another size.
fn keep_largest_by(columns: &mut Vec<u32>, count: usize, size: impl Fn(u32) -> f64) {
    if columns.len() > count {
        if count > 0 {
            columns.select_nth_unstable_by(count - 1, |&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
        }
        columns.truncate(count);
    }
    columns.sort_unstable();
}
