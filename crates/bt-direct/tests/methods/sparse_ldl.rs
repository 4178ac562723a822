//! Sparse L·D·Lᴴ: saddle points and shifted grids, signs of eigenvalues, memory, and where it gives up.

use std::ops::ControlFlow;
use std::sync::Arc;

use bt_direct::{FactorError, Factorization, Inertia, Place, SparseLdl, SymbolicCholesky};
use bt_formats::{Band, Csr, LinearOperator, Op, Progress, Scalar, c64, certify};
use bt_testkit::alloc::{is_counting, peak_bytes};
use bt_testkit::contract::factorization_contract;
use bt_testkit::strategies;
use bt_testkit::{csr, grid, random_vector};
use faer::Mat;
use proptest::prelude::*;

/// [ H Bᵀ ]
/// [ B  0 ]  of the Laplacian on a grid and of m sums of neighbours.
fn saddle<T: Scalar>(sides: [usize; 3], m: usize, entry: T) -> Csr<T> {
    let h = grid::<T>(sides);
    let n = h.nrows();
    let constrained = |c: usize, j: usize| j == 3 * c || j == 3 * c + 1;
    csr(n + m, |i, j| match (i < n, j < n) {
        (true, true) => h.get(i, j),
        (false, true) if constrained(i - n, j) => entry,
        (true, false) if constrained(j - n, i) => Scalar::conj(entry),
        _ => T::default(),
    })
}

/// A − σ·I.
fn shifted(mut a: Csr<f64>, shift: f64) -> Csr<f64> {
    for i in 0..a.nrows() {
        let (cols, values) = a.row_mut(i);
        let at = cols.iter().position(|&j| j as usize == i).unwrap();
        values[at] -= shift;
    }
    a
}

fn backward_error<T: Scalar>(a: &Csr<T>, f: &SparseLdl<T>) -> f64 {
    let n = a.nrows();
    let random = random_vector::<T>(n, 11);
    let b = Mat::from_fn(n, 3, |i, j| random[(i * 5 + j) % n]);
    let mut x = b.clone();
    f.solve_in_place(x.as_mut());
    certify(a, Op::Identity, x.as_ref(), b.as_ref()).backward_error
}

#[test]
fn saddle_points_have_as_many_negative_eigenvalues_as_constraints() {
    for (sides, m) in [([4, 1, 1], 1), ([9, 7, 1], 20), ([5, 4, 6], 39)] {
        let a = saddle(sides, m, c64::new(0.6, -0.8));
        let n = a.nrows();
        let ldl = SparseLdl::new(&a).unwrap();
        factorization_contract(&ldl, &a).unwrap();
        let inertia = ldl.inertia();
        assert_eq!((inertia.negative, inertia.zero, inertia.positive), (m, 0, n - m));
        assert!(ldl.stats().growth < 100.0, "{:?}", ldl.stats());
    }
    // Larger ones, by backward error alone.
    let a = saddle([30, 30, 1], 299, 1.0);
    let ldl = SparseLdl::new(&a).unwrap();
    assert!(backward_error(&a, &ldl) < 1e-14);
    assert_eq!(ldl.inertia().negative, 299);
}

#[test]
fn shifted_grids_have_the_inertia_of_the_band() {
    for shift in [0.3, 1.7, 3.9, 5.1] {
        let a = shifted(grid::<f64>([12, 11, 1]), shift);
        let ldl = SparseLdl::new(&a).unwrap();
        let band = Inertia::of_band(&Band::from_csr(&a).unwrap()).unwrap();
        assert_eq!((ldl.inertia().negative, ldl.inertia().positive), (band.negative, band.positive), "{shift}");
        assert!(backward_error(&a, &ldl) < 1e-13 * ldl.stats().growth.max(1.0), "{shift}: {:?}", ldl.stats());
    }
}

#[test]
fn the_scale_of_rows_does_not_matter() {
    let a = saddle([6, 6, 1], 11, 1.0);
    let s: Vec<f64> = (0..a.nrows()).map(|i| 2f64.powi((i * 37 % 301) as i32 - 150)).collect();
    let scaled = a.scale(&s, &s);
    let (f, g) = (SparseLdl::new(&a).unwrap(), SparseLdl::new(&scaled).unwrap());
    assert_eq!(f.inertia().negative, g.inertia().negative);
    let b = random_vector::<f64>(a.nrows(), 3);
    let (mut x, mut y) = (b.clone(), b.iter().zip(&s).map(|(b, s)| b * s).collect::<Vec<_>>());
    f.solve_vec_in_place(&mut x);
    g.solve_vec_in_place(&mut y);
    for ((x, y), s) in x.iter().zip(&y).zip(&s) {
        assert!((x - y * s).abs() < 1e-10 * (1.0 + x.abs()), "{x} {}", y * s);
    }
    assert!((f.log_det().log_abs + 2.0 * s.iter().map(|s| s.ln()).sum::<f64>() - g.log_det().log_abs).abs() < 1e-9);
}

#[test]
fn a_monitor_stops_it_between_supernodes() {
    let a = saddle([12, 12, 8], 380, 1.0);
    let mut stop = |progress: Progress| match progress {
        Progress::Step { done: 1.., .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(SparseLdl::with_monitor(&a, &mut stop), Err(FactorError::Stopped)));
}

#[test]
fn memory_is_what_was_predicted() {
    assert!(is_counting());
    for a in [shifted(grid::<f64>([60, 60, 1]), 1.0), saddle([12, 12, 8], 380, 1.0)] {
        let symbolic = Arc::new(SparseLdl::analyse(&a).unwrap());
        let predicted = symbolic.ldl_bytes::<f64>().unwrap();
        // faer's products keep work space for each thread from the first of them on.
        drop(SparseLdl::new(&a));
        let own = Arc::clone(&symbolic);
        let (ldl, peak) = peak_bytes(|| SparseLdl::with_symbolic(&a, own, &mut ()).unwrap());
        assert_eq!(ldl.stats().bytes, predicted);
        assert!(peak <= predicted && 2 * peak > predicted, "{peak} of {predicted}");
    }
}

#[test]
fn a_zero_diagonal_is_a_pivot_in_a_pair_only() {
    // [ 0 1 ]
    // [ 1 0 ]  twice, behind each other: by rows of L there is no pivot, in pairs there is.
    let a = csr::<f64>(4, |i, j| if i ^ 1 == j { 1.0 } else { 0.0 });
    let alone = Arc::new(SymbolicCholesky::new(&a).unwrap());
    let outcome = SparseLdl::with_symbolic(&a, alone, &mut ());
    let Err(FactorError::Breakdown { method: "sparse-ldl", place: Some(Place::Row(row)), reason }) = outcome else {
        panic!("factored")
    };
    assert!(row < 4 && reason.contains(&format!("row {row} (from 0)")), "{reason}");
    let ldl = SparseLdl::new(&a).unwrap();
    assert!(ldl.inertia().negative == 2 && ldl.stats().growth <= 2.0);
    let zero = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![0.0, 1.0]).unwrap();
    assert!(matches!(SparseLdl::new(&zero), Err(FactorError::Singular(_))));
    let ones = csr::<f64>(3, |_, _| 1.0);
    assert!(matches!(SparseLdl::new(&ones), Err(FactorError::Breakdown { place: Some(Place::Row(_)), .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// A + Aᴴ of wild matrices: solved, or given up.
    #[test]
    fn wild_hermitian_matrices(a in strategies::square::<c64>(1..=16, 0.3).prop_map(|a| {
        csr(a.nrows(), |i, j| a.get(i, j) + Scalar::conj(a.get(j, i)))
    })) {
        match SparseLdl::new(&a) {
            Ok(ldl) => {
                let error = backward_error(&a, &ldl);
                let bound = 30.0 * (a.nrows() + 1) as f64 * f64::EPSILON * ldl.stats().growth;
                prop_assert!(error <= bound, "{error:e} > {bound:e}");
            }
            Err(FactorError::Breakdown { .. } | FactorError::Singular(_)) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// Dominant ones with diagonals of both signs must be solved, with the inertia of their diagonal.
    #[test]
    fn dominant_indefinite_matrices(a in strategies::square::<f64>(2..=14, 0.4)) {
        let n = a.nrows();
        let off = |i: usize, j: usize| if i == j { 0.0 } else { a.get(i, j) + a.get(j, i) };
        let own = |i: usize| (0..n).map(|j| off(i, j).abs()).sum::<f64>() + 0.5;
        let a = csr(n, |i, j| if i == j { if i % 3 == 1 { -own(i) } else { own(i) } } else { off(i, j) });
        let ldl = SparseLdl::new(&a).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(ldl.inertia().negative, (0..n).filter(|i| i % 3 == 1).count());
        factorization_contract(&ldl, &a).map_err(TestCaseError::fail)?;
    }
}
