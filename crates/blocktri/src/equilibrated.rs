//! Rows and columns in units of their own: powers of two that bring them to one size before pivots are judged.
//!
//! Pivots are compared within a column, so that a row in small units never wins and one in large units always does; what is
//! then lost by cancellation may be all of a row (A. van der Sluis, Numer. Math. 14 (1969) 14–23, doi:10.1007/BF02165096).
//! Powers of two change nothing else. A matrix whose lines differ little keeps its values, and the bits of its answers.

use bt_formats::reorder::{Matching, maximum_product_matching};
use bt_formats::{
    Csr, LinearOperator, Matrix, RealScalar, Scalar, column_sizes, equilibrate, equilibrate_diagonal, one, units, zero,
};

use crate::direct::{Direct, Family, Needs};

/// Lines that differ by less are left alone: partial pivoting and refinement cope with that.
const SPREAD: f64 = (1u64 << 16) as f64;

/// The scaling that `a` needs before `method` factors it, if any. Lines of one size near the ends of the range, where products
/// leave it, are all moved by the same power of two, which changes no digit.
pub(crate) fn scaling<T: Scalar>(a: &Csr<T>, method: Direct) -> Option<Scaling<T::Real>> {
    // Methods for Hermitian matrices of any sign scale them by themselves, parts have scalings of their own; where no pivot is chosen, none
    // is to be compared.
    let is_plain = matches!(method.row().family, Family::Diagonal | Family::Triangular | Family::Components);
    let chooses = !is_plain && method != Direct::ExactLu;
    let symmetric = method.row().needs == Needs::PositiveDefinite;
    if method.row().needs == Needs::Hermitian || !chooses || numbers_are_alike(a) || (!symmetric && lines_are_alike(a))
    {
        return None;
    }
    let n = a.nrows();
    let mut rows = vec![zero::<T::Real>(); n];
    let cols = if symmetric {
        equilibrate_diagonal(a, &mut rows);
        rows.clone()
    } else {
        let mut cols = vec![zero::<T::Real>(); n];
        equilibrate(a, &mut rows, &mut cols);
        cols
    };
    let ranges = [range(&rows), range(&cols)];
    if !symmetric
        && ranges.iter().any(is_wide)
        && let Ok(matching) = maximum_product_matching(a)
    {
        return Some(of_matching(a, matching.rows.order(), &matching));
    }
    if ranges.iter().any(|(least, most)| *most > SPREAD * least) {
        return Some(Scaling { rows, cols });
    }
    let far = T::Real::MAX.to_f64().log2() / 4.0;
    let largest = ranges.iter().fold(0.0f64, |m, (least, most)| m.max(most.log2().abs()).max(least.log2().abs()));
    if largest <= far {
        return None;
    }
    let uniform = |factor: T::Real| vec![factor; n];
    let scaling = if symmetric { uniform(rows[0]) } else { uniform(one()) };
    Some(Scaling { rows: uniform(rows[0]), cols: scaling })
}

/// Factors so far apart that rows first and columns second need not have found the units.
fn is_wide((least, most): &(f64, f64)) -> bool {
    const WIDE: f64 = (1u64 << 63) as f64;
    *most > WIDE * least
}

/// The scaling that goes with a matching of `row_of_col`: its own, with which the matched entries are 1 and no other is larger. Where
/// that is wide it may be far from the units, which leave many such scalings; then the units, if they leave the matched entries large.
pub(crate) fn of_matching<T: Scalar>(a: &Csr<T>, row_of_col: &[u32], m: &Matching<T::Real>) -> Scaling<T::Real> {
    const LARGE: f64 = 1.0 / (1u64 << 16) as f64;
    let own = || Scaling { rows: m.row_scale.clone(), cols: m.col_scale.clone() };
    if ![range(&m.row_scale), range(&m.col_scale)].iter().any(is_wide) {
        return own();
    }
    let n = a.nrows();
    let fill = || vec![zero::<T::Real>(); n];
    let (mut rows, mut cols, mut more_rows, mut more_cols) = (fill(), fill(), fill(), fill());
    units(a, &mut rows, &mut cols);
    let near = a.scale(&rows, &cols);
    equilibrate(&near, &mut more_rows, &mut more_cols);
    let matched = |(j, &i): (usize, &u32)| near.get(i as usize, j).abs1() * more_rows[i as usize] * more_cols[j];
    if row_of_col.iter().enumerate().map(matched).any(|size| size.to_f64() < LARGE) {
        return own();
    }
    rows.iter_mut().zip(more_rows).for_each(|(r, more)| *r *= more);
    cols.iter_mut().zip(more_cols).for_each(|(c, more)| *c *= more);
    Scaling { rows, cols }
}

/// What brings the largest entry of each row to 1, then that of each column, as numbers that those of A need not have room for.
pub(crate) fn in_double<T: Scalar>(a: &dyn Matrix<T>) -> (Vec<f64>, Vec<f64>) {
    let inverse = |largest: f64| if largest > 0.0 { largest.recip().min(f64::MAX) } else { 1.0 };
    let (mut rows, mut cols) = (vec![0.0f64; a.nrows()], vec![0.0f64; a.ncols()]);
    a.for_each_entry(&mut |i, _, v| rows[i] = rows[i].max(v.abs().to_f64()));
    for r in &mut rows {
        *r = inverse(*r);
    }
    a.for_each_entry(&mut |i, j, v| cols[j] = cols[j].max(v.abs().to_f64() * rows[i]));
    for c in &mut cols {
        *c = inverse(*c);
    }
    (rows, cols)
}

/// Whether all numbers are so near to each other, and to 1, that no line can need a scaling.
fn numbers_are_alike<T: Scalar>(a: &Csr<T>) -> bool {
    let sizes = a.survey().sizes;
    are_in_the_middle::<T>(sizes) && are_alike(sizes)
}

/// Whether the largest numbers of all lines are.
fn lines_are_alike<T: Scalar>(a: &Csr<T>) -> bool {
    are_in_the_middle::<T>(a.survey().sizes) && extents_are_alike(a.survey().row_sizes, || column_sizes(a))
}

/// Whether numbers from the least to the most are so near that no line of them can need a scaling.
pub(crate) fn are_alike((least, most): (f64, f64)) -> bool {
    // Factors are powers of two, each up to twice what its line asks for.
    4.0 * most < SPREAD * least
}

/// Whether lines need no scaling whose largest numbers are from the least to the most, of rows and of columns.
pub(crate) fn extents_are_alike(rows: (f64, f64), cols: impl FnOnce() -> (f64, f64)) -> bool {
    let ratio = |(least, most): (f64, f64)| most / least;
    let rows = ratio(rows);
    // What a row's factor does to a column is no more than the factors differ by.
    4.0 * rows < SPREAD && 8.0 * rows * ratio(cols()) < SPREAD
}

/// Whether the factors of rows, then of columns, that bring the largest numbers of lines to 1 differ too little to be worth it: two passes over A.
pub(crate) fn need_no_scaling<T: Scalar>(a: &dyn Matrix<T>) -> bool {
    let (rows, cols) = in_double(a);
    are_alike(range(&rows)) && are_alike(range(&cols))
}

/// Whether products of numbers from the least to the most stay far from the ends of the range.
pub(crate) fn are_in_the_middle<T: Scalar>((least, most): (f64, f64)) -> bool {
    let far = (T::Real::MAX.to_f64().log2() / 4.0 - 1.0).exp2();
    most < far && least > 1.0 / far
}

/// The smallest and the largest factor.
fn range<R: RealScalar>(factors: &[R]) -> (f64, f64) {
    let factors = factors.iter().map(|f| f.to_f64());
    factors.fold((f64::INFINITY, 0.0), |(least, most), f| (least.min(f), most.max(f)))
}

/// Diagonals of R and C, in the order of A.
#[derive(Clone, Debug)]
pub(crate) struct Scaling<R> {
    pub rows: Vec<R>,
    pub cols: Vec<R>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn lines_of_one_size_stay_and_others_are_brought_to_it() {
        let plain = Csr::from_dense(mat![[1.0, 1e-3], [1e3, 2.0]].as_ref()).unwrap();
        assert!(scaling(&plain, Direct::BandLu).is_none());
        for (unit, large) in [(1e15, [(0, 1), (1, 1)]), (1e200, [(0, 1), (1, 0)])] {
            let units = Csr::from_dense(mat![[1.0, unit], [1.0, 2.0]].as_ref()).unwrap();
            let s = scaling(&units, Direct::BandLu).unwrap();
            let scaled = units.scale(&s.rows, &s.cols);
            assert!(scaled.values().iter().all(|v| Scalar::abs(*v) <= 1.0), "{unit}: {scaled:?}");
            assert!(large.iter().all(|&(i, j)| scaled.get(i, j) > 0.25), "{unit}: {scaled:?}");
        }
        let tiny = Csr::from_dense(mat![[1e-300, 0.0], [0.0, 2e-300]].as_ref()).unwrap();
        assert!(scaling(&tiny, Direct::BandLu).is_some());
    }

    #[test]
    fn hermitian_matrices_stay_hermitian() {
        let a = Csr::from_dense(mat![[4e12, 1e3], [1e3, 1e-4]].as_ref()).unwrap();
        let s = scaling(&a, Direct::BandCholesky).unwrap();
        assert_eq!(s.rows, s.cols);
        let scaled = a.scale(&s.rows, &s.cols);
        assert!((0..2).all(|i| (1.0..4.0).contains(&scaled.get(i, i))));
    }
}
