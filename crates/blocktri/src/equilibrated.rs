//! Rows and columns in units of their own: powers of two that bring them to one size before pivots are judged.
//!
//! Pivots are compared within a column, so that a row in small units never wins and one in large units always does; what is
//! then lost by cancellation may be all of a row (A. van der Sluis, Numer. Math. 14 (1969) 14–23, doi:10.1007/BF02165096).
//! Powers of two change nothing else. A matrix whose lines differ little keeps its values, and the bits of its answers.

use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, equilibrate, equilibrate_diagonal, one, zero};

use crate::direct::{Direct, Family, Needs};
use crate::reordered::Scaling;

/// Lines that differ by less are left alone: partial pivoting and refinement cope with that.
const SPREAD: f64 = (1u64 << 16) as f64;

/// The scaling that `a` needs before `method` factors it, if any. Lines of one size near the ends of the range, where products
/// leave it, are all moved by the same power of two, which changes no digit.
pub(crate) fn scaling<T: Scalar>(a: &Csr<T>, method: Direct) -> Option<Scaling<T::Real>> {
    // Methods for Hermitian matrices of any sign scale them by themselves; where no pivot is chosen, none is to be compared.
    let chooses = !matches!(method.row().family, Family::Diagonal | Family::Triangular);
    if method.row().needs == Needs::Hermitian || !chooses || are_alike(a) {
        return None;
    }
    let n = a.nrows();
    let mut rows = vec![zero::<T::Real>(); n];
    let symmetric = method.row().needs == Needs::PositiveDefinite;
    let cols = if symmetric {
        equilibrate_diagonal(a, &mut rows);
        rows.clone()
    } else {
        let mut cols = vec![zero::<T::Real>(); n];
        equilibrate(a, &mut rows, &mut cols);
        cols
    };
    let ranges = [range(&rows), range(&cols)];
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

/// Whether all numbers are so near to each other, and to 1, that no line can need a scaling.
fn are_alike<T: Scalar>(a: &Csr<T>) -> bool {
    let (least, most) = a.values().iter().fold((T::Real::MAX, zero::<T::Real>()), |(least, most), v| {
        let size = v.abs1();
        // Zero counts for neither.
        let nonzero = if size > zero() { size } else { T::Real::MAX };
        (if nonzero < least { nonzero } else { least }, if size > most { size } else { most })
    });
    let (least, most) = (least.to_f64(), most.to_f64());
    let far = (T::Real::MAX.to_f64().log2() / 4.0 - 1.0).exp2();
    // Factors are powers of two, each up to twice what its line asks for.
    4.0 * most < SPREAD * least && most < far && least > 1.0 / far
}

/// The smallest and the largest factor.
fn range<R: RealScalar>(factors: &[R]) -> (f64, f64) {
    let factors = factors.iter().map(|f| f.to_f64());
    factors.fold((f64::INFINITY, 0.0), |(least, most), f| (least.min(f), most.max(f)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn lines_of_one_size_stay_and_others_are_brought_to_it() {
        let plain = Csr::from_dense(mat![[1.0, 1e-3], [1e3, 2.0]].as_ref()).unwrap();
        assert!(scaling(&plain, Direct::BandLu).is_none());
        let units = Csr::from_dense(mat![[1.0, 1e20], [1.0, 2.0]].as_ref()).unwrap();
        let s = scaling(&units, Direct::BandLu).unwrap();
        let scaled = units.scale(&s.rows, &s.cols);
        assert!(scaled.values().iter().all(|v| Scalar::abs(*v) <= 1.0) && scaled.get(1, 1) > 0.25);
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
