//! Sparse factorizations by subtrees on threads: the same bits on any number of them, the same row named, and monitors heard.

use std::ops::ControlFlow;

use bt_direct::{FactorError, Factorization, Place, SparseCholesky, SparseLdl, SparseLu};
use bt_formats::{Csr, LinearOperator, Progress, Scalar, c64};
use bt_testkit::{grid, random_vector};

/// What `work` gives on one, two and three threads.
fn on_threads<R: Send>(work: impl Fn() -> R + Sync) -> [R; 3] {
    [1, 2, 3].map(|t| rayon::ThreadPoolBuilder::new().num_threads(t).build().unwrap().install(&work))
}

/// A solution with `f`, and log|det|.
fn answer<T: Scalar>(f: &dyn Factorization<T>) -> (Vec<T>, f64) {
    let mut x = random_vector::<T>(f.n(), 3);
    f.solve_vec_in_place(&mut x);
    (x, f.log_det().log_abs)
}

/// The diagonal made `diagonal(i)`, entries above it multiplied by `above`.
fn changed<T: Scalar>(mut a: Csr<T>, diagonal: impl Fn(usize) -> Option<T>, above: T) -> Csr<T> {
    for i in 0..a.nrows() {
        let from = a.row_ptr()[i] as usize;
        let cols = a.row(i).0.to_vec();
        for (&j, v) in cols.iter().zip(&mut a.values_mut()[from..]) {
            match i.cmp(&(j as usize)) {
                std::cmp::Ordering::Less => *v *= above,
                std::cmp::Ordering::Equal => *v = diagonal(i).unwrap_or(*v),
                std::cmp::Ordering::Greater => {}
            }
        }
    }
    a
}

fn same_bits<T: Scalar>(size: usize) {
    let plane = grid::<T>([size, size, 1]);
    let lean = changed(plane.clone(), |_| None, T::rounded(0.5, 0.0));
    // As many eigenvalues of one sign as of the other, or nearly so.
    let indefinite =
        changed(plane.clone(), |i| Some(T::rounded(if i % 2 == 0 { 3.0 } else { -3.0 }, 0.0)), T::rounded(1.0, 0.0));
    let results = on_threads(|| {
        [
            answer(&SparseCholesky::new(&plane).unwrap()),
            answer(&SparseLdl::new(&indefinite).unwrap()),
            answer(&SparseLu::new(&lean).unwrap()),
        ]
    });
    assert!(results[1] == results[0] && results[2] == results[0], "bits of {} differ", std::any::type_name::<T>());
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits::<f64>(130);
    same_bits::<c64>(80);
}

#[test]
fn the_row_without_a_pivot_does_not_depend_on_threads() {
    let n = 130 * 130;
    // Rows that are not positive stand in several subtrees.
    let a = changed(grid::<f64>([130, 130, 1]), |i| (i % 1000 == n % 1000).then_some(-1.0), 1.0);
    let rows = on_threads(|| match SparseCholesky::new(&a) {
        Err(FactorError::Breakdown { place: Some(Place::Row(row)), .. }) => row,
        other => panic!("{other:?}"),
    });
    assert!(rows == [rows[0]; 3], "{rows:?}");
}

#[test]
fn monitors_are_heard_beside_other_threads_and_the_next_factorization_is_whole() {
    let a = grid::<f64>([130, 130, 1]);
    on_threads(|| {
        let mut f = SparseCholesky::new(&a).unwrap();
        let whole = answer(&f);
        let mut seen = 0;
        let mut third = |p: Progress| {
            let Progress::Step { done, total, .. } = p else { panic!("{p:?}") };
            assert!(done <= total, "{done} of {total}");
            seen += 1;
            if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(matches!(f.refactor_with_monitor(&a, &mut third), Err(FactorError::Stopped)));
        f.refactor(&a).unwrap();
        assert!(answer(&f) == whole);
    });
}
