//! What preconditioners for Hermitian matrices ask of A before they use half of it.

use std::cmp::Ordering;

use bt_direct::{FactorError, Place, Result};
use bt_formats::{Csr, Error, LinearOperator, RealScalar, Scalar, zero};

/// Whether A is Hermitian with a positive diagonal. Nothing is allocated.
///
/// # Errors
/// [`FactorError::Input`] when A is not square, not finite, or not Hermitian to 8 ulp, naming the entry;
/// [`FactorError::Breakdown`] naming the row whose diagonal entry is not positive, since A is not definite then.
pub(crate) fn check_positive<T: Scalar>(a: &Csr<T>, method: &'static str) -> Result<()> {
    a.check_square()?;
    a.check_finite()?;
    // Entries right of the diagonal against their mirrors, and those left of it only if not all of them were such.
    let (mut left, mut found, mut not_positive) = (0, 0, None);
    for i in 0..a.nrows() {
        let (cols, vals) = a.row(i);
        let mut diagonal = zero();
        for (&j, &v) in cols.iter().zip(vals) {
            match (j as usize).cmp(&i) {
                Ordering::Less => left += 1,
                Ordering::Equal => {
                    diagonal = v.re();
                    check_mirror(i, j, v, v, method)?;
                }
                Ordering::Greater => found += usize::from(check_entry(a, i, j, v, method)?),
            }
        }
        if !(diagonal > zero()) {
            not_positive = not_positive.or(Some((i, diagonal)));
        }
    }
    if found != left {
        for i in 0..a.nrows() {
            let (cols, vals) = a.row(i);
            for (&j, &v) in cols.iter().zip(vals).take_while(|(j, _)| (**j as usize) < i) {
                check_entry(a, i, j, v, method)?;
            }
        }
    }
    if let Some((i, d)) = not_positive {
        let reason = format!("the diagonal entry {d} of row {i} (from 0) is not positive: A is not definite");
        return Err(FactorError::breakdown(method, Place::Row(i), reason));
    }
    Ok(())
}

/// Whether a(j, i) is stored, where it is zero otherwise; it has to be the conjugate of a(i, j) = v.
fn check_entry<T: Scalar>(a: &Csr<T>, i: usize, j: u32, v: T, method: &'static str) -> Result<bool> {
    let (cols, vals) = a.row(j as usize);
    let place = cols.binary_search(&(i as u32)).ok();
    check_mirror(i, j, v, place.map_or(zero(), |k| vals[k]), method)?;
    Ok(place.is_some())
}

fn check_mirror<T: Scalar>(i: usize, j: u32, v: T, mirror: T, method: &'static str) -> Result<()> {
    let w = Scalar::conj(mirror);
    let off = Scalar::abs(v - w).to_f64();
    if off > 8.0 * T::Real::EPSILON.to_f64() * v.abs().max_nan(w.abs()).to_f64() {
        let why = format!("{method} needs a Hermitian matrix, but a({i}, {j}) = {v} and its mirror {w} (from 0)");
        return Err(Error::InvalidStructure { what: "matrix", why }.into());
    }
    Ok(())
}

/// The diagonal of a finite Hermitian matrix with a positive diagonal: what a preconditioner for `method` asks before it uses half of A.
///
/// ```
/// use bt_formats::Csr;
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [1.0, 3.0]].as_ref())?;
/// assert_eq!(bt_iter::positive_diagonal(&a, "ic0")?, [2.0, 3.0]);
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [0.5, 3.0]].as_ref())?;
/// assert!(bt_iter::positive_diagonal(&a, "ic0").is_err());
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
///
/// # Errors
/// [`FactorError::Input`] when A is not square, not finite, or not Hermitian to 8 ulp, naming the entry;
/// [`FactorError::Breakdown`] naming the row whose diagonal entry is not positive.
pub fn positive_diagonal<T: Scalar>(a: &Csr<T>, method: &'static str) -> Result<Vec<T::Real>> {
    check_positive(a, method)?;
    Ok((0..a.nrows()).map(|i| a.get(i, i).re()).collect())
}

/// The entry of a matrix that is farthest from the conjugate of its mirror.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymmetry<T> {
    /// Row, from 0.
    pub row: usize,
    /// Column, from 0.
    pub col: usize,
    /// a(row, col).
    pub entry: T,
    /// a(col, row).
    pub mirror: T,
    /// |entry − conj(mirror)| beside the larger of |entry|, |mirror| and √|a(row, row)·a(col, col)|, which is no less than them
    /// where A is definite: the unit of A, and one of each unknown, do not matter.
    pub relative: f64,
}

/// ω/d for the positive diagonal entry d of a row.
///
/// # Errors
/// [`FactorError::Breakdown`] naming the row whose d is too small for that.
pub(crate) fn relaxed_inverse<T: Scalar>(omega: f64, d: T::Real, row: usize, method: &'static str) -> Result<T> {
    let inverse = T::rounded(omega / d.to_f64(), 0.0);
    if Scalar::is_finite(inverse) {
        return Ok(inverse);
    }
    let reason = format!(
        "the diagonal entry {d} of row {row} (from 0) has no finite reciprocal; multiply A and b by a power of two"
    );
    Err(FactorError::breakdown(method, Place::Row(row), reason))
}

/// How far a square matrix is from a Hermitian one; none where every entry is the conjugate of its mirror. O(nnz): rows are passed
/// over once, and the left half of each as its mirrors come.
///
/// ```
/// use bt_formats::Csr;
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0], [0.5, 4.0]].as_ref())?;
/// let worst = bt_iter::asymmetry(&a).unwrap();
/// assert_eq!((worst.row, worst.col, worst.mirror, worst.relative), (0, 1, 0.5, 0.125));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[inline(never)]
pub fn asymmetry<T: Scalar>(a: &Csr<T>) -> Option<Asymmetry<T>> {
    let n = a.nrows();
    if is_hermitian_band(a) {
        return None;
    }
    let roots: Vec<f64> = (0..n).map(|i| a.get(i, i).abs().to_f64().sqrt()).collect();
    let mut worst: Option<Asymmetry<T>> = None;
    let mut compare = |row: usize, col: usize, entry: T, mirror: T| {
        let off = Scalar::abs(entry - Scalar::conj(mirror)).to_f64();
        if off == 0.0 {
            return;
        }
        let relative = off / entry.abs().to_f64().max(mirror.abs().to_f64()).max(roots[row] * roots[col]);
        if worst.as_ref().is_none_or(|w| relative > w.relative) {
            worst = Some(Asymmetry { row, col, entry, mirror, relative });
        }
    };
    // Entries of each row that have met their mirror.
    let mut met = vec![0; n];
    for row in 0..n {
        let (cols, vals) = a.row(row);
        for (&col, &entry) in cols.iter().zip(vals).skip_while(|(col, _)| (**col as usize) < row) {
            let col = col as usize;
            if col == row {
                compare(row, row, entry, entry);
                continue;
            }
            let (left, entries) = a.row(col);
            let next = &mut met[col];
            while (left[*next..]).first().is_some_and(|j| (*j as usize) < row) {
                compare(col, left[*next] as usize, entries[*next], zero());
                *next += 1;
            }
            let has_mirror = left.get(*next).is_some_and(|j| *j as usize == row);
            compare(row, col, entry, if has_mirror { entries[*next] } else { zero() });
            *next += usize::from(has_mirror);
        }
    }
    for (row, met) in met.into_iter().enumerate() {
        let (cols, vals) = a.row(row);
        let rest = cols.iter().zip(vals).skip(met).take_while(|(col, _)| (**col as usize) < row);
        rest.for_each(|(&col, &entry)| compare(row, col as usize, entry, zero()));
    }
    worst
}

/// Whether every row has all entries of a band, so that their places are known, and each is the conjugate of its mirror.
fn is_hermitian_band<T: Scalar>(a: &Csr<T>) -> bool {
    let Some(k) = a.full_band() else { return false };
    let (n, ptr, values) = (a.nrows(), a.row_ptr(), a.values());
    let diagonal = |i: usize| ptr[i] as usize + i.min(k);
    let is_mirrored = |i: usize| {
        let right = &values[diagonal(i)..ptr[i + 1] as usize];
        right.iter().enumerate().all(|(d, &v)| v == Scalar::conj(values[diagonal(i + d) - d]))
    };
    (0..n).all(is_mirrored)
}

/// # Errors
/// [`Error::InvalidStructure`] unless 0 < ω < 2.
pub(crate) fn check_omega(omega: f64) -> Result<()> {
    if omega > 0.0 && omega < 2.0 {
        return Ok(());
    }
    Err(Error::InvalidStructure { what: "omega", why: format!("{omega} is not between 0 and 2") }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::c64;

    /// Entry by entry.
    fn plainly(a: &Csr<c64>) -> f64 {
        let mut worst = 0.0f64;
        for i in 0..a.nrows() {
            for j in 0..a.nrows() {
                let (v, w) = (a.get(i, j), a.get(j, i));
                let size = v.norm().max(w.norm()).max((a.get(i, i).norm() * a.get(j, j).norm()).sqrt());
                if v != w.conj() {
                    worst = worst.max((v - w.conj()).norm() / size);
                }
            }
        }
        worst
    }

    /// Rows that have all entries of a band, whose mirrors are found without a look at their columns.
    #[test]
    fn full_bands_are_compared_as_any_others() {
        for (n, k) in [(1, 0), (5, 0), (6, 1), (9, 3), (7, 6), (8, 7), (30, 5)] {
            let entry = |i: usize, j: usize| c64::new(1.0 + (i * j) as f64, i as f64 - j as f64);
            let band = |(p, q): (usize, usize), v: c64| {
                let inside = move |i: usize, j: usize| i.abs_diff(j) <= k;
                bt_testkit::csr(n, move |i, j| {
                    if (i, j) == (p, q) {
                        v
                    } else if inside(i, j) {
                        entry(i, j)
                    } else {
                        c64::default()
                    }
                })
            };
            assert_eq!(asymmetry(&band((n, n), c64::default())), None);
            for i in 0..n {
                for j in i.saturating_sub(k)..(i + k + 1).min(n) {
                    let v = entry(i, j) + c64::new(0.0, 0.25);
                    let worst = asymmetry(&band((i, j), v)).expect("another mirror");
                    assert!(
                        [(i, j), (j, i)].contains(&(worst.row, worst.col)),
                        "n = {n}, k = {k}: ({i}, {j}) {worst:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn asymmetry_finds_the_worst_pair_of_any_pattern() {
        let random = bt_testkit::random_vector::<f64>(2000, 5);
        for (k, seeds) in random.chunks_exact(100).enumerate() {
            let a = bt_testkit::csr(7, |i, j| {
                let s = seeds[7 * i + j];
                // Sparse patterns, symmetric or not, with a diagonal or without.
                if s.abs() < 0.6 && (i != j || k % 2 == 0) {
                    c64::default()
                } else {
                    c64::new(s, seeds[50 + (i + j) % 50])
                }
            });
            let found = asymmetry(&a).map_or(0.0, |worst| worst.relative);
            let expected = plainly(&a);
            assert!((found - expected).abs() <= 1e-14 * expected, "{k}: {found} {expected}");
            // Its Hermitian part.
            let b = bt_testkit::csr(7, |i, j| a.get(i, j) + a.get(j, i).conj());
            assert_eq!(asymmetry(&b), None);
        }
    }
}
