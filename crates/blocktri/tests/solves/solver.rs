//! Factors that are kept: other right-hand sides, the transpose, new values, and what else they tell.

use blocktri::faer::{Mat, mat};
use blocktri::{
    Csr, DeviceChoice, Direct, Error, FactorError, Krylov, KrylovMethod, Op, Outcome, Place, Precond, Reorder, Scalar,
    SolveOptions, Solver, Tridiagonal, c64,
};
use bt_formats::{Matrix, Par, one, zero};
use bt_testkit::alloc::{is_counting, peak_bytes};
use bt_testkit::csr;

/// A chain that is not symmetric, in an order in which it is not a chain.
fn shuffled<T: Scalar>(scale: f64) -> Csr<T> {
    let n = 60;
    let place = |i: usize| (i * 17) % n;
    let mut dense = Mat::<T>::zeros(n, n);
    for i in 0..n {
        for (j, v) in [(i, 4.0 + (i % 3) as f64), ((i + n - 1) % n, -1.0), ((i + 1) % n, 0.5)] {
            if i.abs_diff(j) < 2 {
                dense[(place(i), place(j))] = T::rounded(scale * v, 0.25 * f64::from(u8::from(i == j)));
            }
        }
    }
    Csr::from_dense(dense.as_ref()).unwrap()
}

fn product<T: Scalar>(a: &Csr<T>, op: Op, x: &Mat<T>) -> Mat<T> {
    let mut b = Mat::zeros(x.nrows(), x.ncols());
    a.apply_many(op, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    b
}

/// The largest difference.
fn distance<T: Scalar>(x: Mat<T>, y: &Mat<T>) -> f64 {
    use bt_formats::RealScalar;
    (x - y).norm_max().to_f64()
}

#[test]
fn a_solver_answers_for_a_its_transpose_and_its_adjoint() {
    fn check<T: Scalar>() {
        let a = shuffled::<T>(1.0);
        let x = Mat::from_fn(60, 2, |i, j| T::rounded(1.0 + ((7 * i + j) % 11) as f64, (i % 4) as f64));
        for name in ["auto", "band-lu", "block-lu", "sparse-lu", "dense-lu"] {
            let solver = Solver::new(&a, &SolveOptions::by(crate::common::named(name)), &mut ()).unwrap();
            for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
                let found = solver.solve_op(op, product(&a, op, &x).as_ref()).unwrap();
                assert_eq!(found.report.outcome, Outcome::Converged, "{name} {op:?}");
                assert!(distance(found.x, &x) < 1e-12, "{name} {op:?}");
            }
            let found = solver.solve_transposed(product(&a, Op::Transpose, &x).as_ref()).unwrap();
            assert!(distance(found.x, &x) < 1e-12, "{name}");
        }
    }
    check::<f64>();
    check::<c64>();
}

#[test]
fn an_answer_goes_where_it_is_wanted_or_nowhere() {
    let a = shuffled::<f64>(1.0);
    let solver = Solver::new(&a, &SolveOptions::default(), &mut ()).unwrap();
    let x = Mat::from_fn(60, 2, |i, j| (i + j) as f64);
    let b = product(&a, Op::Identity, &x);
    let mut found = Mat::zeros(60, 2);
    let report = solver.solve_into(b.as_ref(), found.as_mut()).unwrap();
    assert!(report.outcome == Outcome::Converged && (&found - &x).norm_max() < 1e-12);
    let mut narrow = Mat::from_fn(60, 1, |_, _| 7.0);
    let error = solver.solve_into(b.as_ref(), narrow.as_mut()).unwrap_err();
    assert!(error.to_string().contains("columns of X") && narrow[(3, 0)] == 7.0, "{error}");
}

#[test]
fn new_values_are_factored_in_the_same_way() {
    for name in ["auto", "band-lu", "sparse-lu", "block-lu"] {
        let options = SolveOptions::by(crate::common::named(name));
        let mut solver = Solver::new(&shuffled::<f64>(1.0), &options, &mut ()).unwrap();
        let new = shuffled::<f64>(3.0);
        let before = (solver.method(), solver.solve(Mat::zeros(60, 1).as_ref()).unwrap().reorder);
        solver.refactor(&new, &mut ()).unwrap();
        let x = Mat::from_fn(60, 1, |i, _| 1.0 + (i % 5) as f64);
        let found = solver.solve(product(&new, Op::Identity, &x).as_ref()).unwrap();
        assert!((found.x - &x).norm_max() < 1e-12, "{name}");
        assert_eq!((solver.method(), found.reorder), before, "{name}");
        // The same bits as from the beginning.
        let fresh = Solver::new(&new, &options, &mut ()).unwrap();
        assert_eq!(solver.log_det().log_abs.to_bits(), fresh.log_det().log_abs.to_bits(), "{name}");
        let error = solver.refactor(&csr(4, |i, j| if i == j { 1.0 } else { 0.0 }), &mut ()).unwrap_err();
        assert!(error.to_string().contains("expected 60, found 4"), "{error}");
        // What fails leaves the solver as it was.
        assert!(solver.refactor(&csr(60, |_, _| 0.0), &mut ()).is_err());
        let again = solver.solve(product(&new, Op::Identity, &x).as_ref()).unwrap();
        assert_eq!(again.report.outcome, Outcome::Converged, "{name}");
    }
}

#[test]
fn values_that_break_the_chosen_method_down_lead_auto_to_another() {
    let chain = |corner: f64| {
        csr(8, |i, j| {
            if i == j {
                if i == 0 { corner } else { 4.0 }
            } else if i.abs_diff(j) == 1 {
                -1.0
            } else {
                0.0
            }
        })
    };
    let mut auto = Solver::new(&chain(4.0), &SolveOptions::default(), &mut ()).unwrap();
    assert_eq!(auto.method(), Direct::Thomas);
    let hard = csr(8, |i, j| if i.abs_diff(j) == 1 { 1.0 + i as f64 } else { 0.0 });
    auto.refactor(&hard, &mut ()).unwrap();
    assert_ne!(auto.method(), Direct::Thomas);
    let mut thomas = Solver::new(&chain(4.0), &SolveOptions::by(Direct::Thomas), &mut ()).unwrap();
    let error = thomas.refactor(&hard, &mut ()).unwrap_err();
    assert!(matches!(error, Error::Factor(FactorError::Breakdown { method: "thomas", .. })), "{error}");
}

/// The chain 3, 1, 0, 4, 2, whose middle pivot vanishes from whichever end elimination begins.
fn hollow_chain() -> Csr<f64> {
    const ORDER: [usize; 5] = [2, 1, 4, 0, 3];
    csr(5, |i, j| match ORDER[i].abs_diff(ORDER[j]) {
        0 => [4.0, 4.25, 0.25, 4.25, 4.0][ORDER[i]],
        1 => 1.0,
        _ => 0.0,
    })
}

#[test]
fn a_breakdown_of_a_reordered_matrix_has_its_place_in_the_given_order() {
    let place = |result: Result<Solver<f64>, Error>| match result.map(|_| ()) {
        Err(Error::Factor(FactorError::Breakdown { place, reason, .. })) => (place, reason),
        other => panic!("{other:?}"),
    };
    let by = |method| SolveOptions { reorder: Reorder::Rcm, ..SolveOptions::by(method) };
    let (at, reason) = place(Solver::new(&hollow_chain(), &by(Direct::Thomas), &mut ()));
    assert_eq!(at, Some(Place::Row(0)), "{reason}");
    assert!(reason.contains("row 2 "), "{reason}");
    let (at, reason) = place(Solver::new(&hollow_chain(), &by(Direct::BandLuNoPivot), &mut ()));
    assert_eq!(at, Some(Place::Row(0)), "{reason}");
}

#[test]
fn a_preconditioner_of_a_reordered_matrix_has_its_place_in_the_given_order() {
    // Row 0 has no diagonal entry; it is in the middle of the chain.
    let a = csr(5, |i, j| if (i, j) == (0, 0) { 0.0 } else { hollow_chain().get(i, j) });
    let method = Krylov::new(KrylovMethod::BiCgStab, Precond::Jacobi);
    for reorder in [Reorder::None, Reorder::Rcm] {
        let options = SolveOptions { reorder, ..SolveOptions::by(method.clone()) };
        match blocktri::solve(&a, Mat::from_fn(5, 1, |_, _| 1.0).as_ref(), &options, &mut ()).map(|_| ()) {
            Err(Error::Factor(FactorError::Breakdown { place, .. })) => {
                assert_eq!(place, Some(Place::Row(0)), "{reorder:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn factors_tell_determinant_condition_inverse_and_inertia() {
    // [ 2 −1    ]        1   [ 3 2 1 ]
    // [ −1 2 −1 ]  A⁻¹ = — · [ 2 4 2 ]    eigenvalues 2 and 2 ± √2
    // [    −1 2 ]        4   [ 1 2 3 ]
    let a = Csr::from_dense(mat![[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0f64]].as_ref()).unwrap();
    let solver = Solver::new(&a, &SolveOptions::default(), &mut ()).unwrap();
    assert!((solver.log_det().log_abs - 4f64.ln()).abs() < 1e-15 && solver.log_det().sign == 1.0);
    assert!((solver.rcond().unwrap() - 1.0 / 8.0).abs() < 1e-15);
    let inverse = solver.selected_inverse().unwrap();
    let right = [0.75, 1.0, 0.75];
    assert!(inverse.diagonal_values().iter().zip(right).all(|(found, right)| (found - right).abs() < 1e-15));
    assert_eq!(solver.inertia().unwrap().positive, 3);
    assert_eq!(solver.explain()[0].direct(), Some(solver.method()));
    let shifted = Csr::from_dense(mat![[0.0, -1.0, 0.0], [-1.0, 0.5, -1.0], [0.0, -1.0, 0.0f64]].as_ref());
    let indefinite = Solver::new(&shifted.unwrap(), &SolveOptions::by(Direct::SparseLu), &mut ());
    assert!(indefinite.is_err(), "the first and the last row are equal");
    let skew = Csr::from_dense(mat![[1.0, 2.0], [0.0, 1.0]].as_ref()).unwrap();
    let solver = Solver::new(&skew, &SolveOptions::by(Direct::SparseLu), &mut ()).unwrap();
    assert!(solver.inertia().unwrap_err().to_string().contains("Hermitian"));
    assert!(solver.explain().is_empty());
}

#[test]
fn factors_are_not_kept_on_another_device_than_asked_for() {
    let a = shuffled::<f64>(1.0);
    for device in [DeviceChoice::Gpu(0), DeviceChoice::Gpu(3)] {
        for options in [SolveOptions::default(), SolveOptions::by(Direct::BandLu)] {
            let asked = SolveOptions { device, ..options };
            match Solver::new(&a, &asked, &mut ()) {
                Err(Error::Usage { message }) => assert!(message.contains(&device.to_string()), "{message}"),
                other => panic!("{} on {device}: {:?}", asked.method, other.map(|s| s.method())),
            }
        }
    }
    // Without one the processor is as good.
    let auto = SolveOptions { device: DeviceChoice::Auto, ..SolveOptions::by(Direct::BandLu) };
    let b = product(&a, Op::Identity, &Mat::full(60, 1, 1.0));
    let answer = Solver::new(&a, &auto, &mut ()).unwrap().solve(b.as_ref()).unwrap();
    assert_eq!(answer.device, DeviceChoice::Cpu);
}

/// The second solve of a shape holds its report and what certificates need, however many rows: no vector.
#[test]
fn further_right_hand_sides_take_no_vectors() {
    for n in [1000, 100_000] {
        let diagonal = |v: f64| vec![v; n];
        let mut off = [diagonal(-1.0), diagonal(-1.0)];
        (off[0][0], off[1][n - 1]) = (0.0, 0.0);
        let [lower, upper] = off;
        let a = Tridiagonal::new(lower, diagonal(4.0), upper).unwrap();
        let by_rows = a.to_csr().unwrap();
        let given = Solver::new(&a, &SolveOptions::default(), &mut ()).unwrap();
        let rows = Solver::new(&by_rows, &SolveOptions::default(), &mut ()).unwrap();
        for solver in [given, rows] {
            let b = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 5) as f64);
            let mut x = Mat::zeros(n, 1);
            let first = solver.solve_into(b.as_ref(), x.as_mut()).unwrap();
            let expected = solver.solve(b.as_ref()).unwrap();
            assert_eq!((&x, first.certificate), (&expected.x, expected.report.certificate));
            let (report, peak) = peak_bytes(|| solver.solve_into(b.as_ref(), x.as_mut()).unwrap());
            assert_eq!(report.outcome, Outcome::Converged);
            assert!(is_counting() && peak < 40_000, "{peak} bytes for {n} rows");
        }
    }
}
