//! HBISA against the iteration counts of the specification, on the ten cloud matrices and the 9 × 9 example.

use crate::common::{nine, run};
use bt_formats::{
    BlockTridiagonal, Breakdown, CouplingKind, Csr, DiagonalKind, HybridLayout, Note, Outcome, Partition, Scalar,
    SolveReport, StopCriterion, c32, c64,
};
use bt_iter::{Hbisa, StopRule, Sweep};
use bt_queue::CloudCase;

/// The paper's rule: x₀ = 0, ‖Δx‖∞ ≤ 1e-7.
const PAPER: StopCriterion =
    StopCriterion { rtol: 0.0, atol: 1e-7, baseline: bt_formats::Baseline::Rhs, max_iters: 3000, time_limit: None };

fn assert_count(name: &str, report: &SolveReport, expected: usize) {
    assert_eq!(report.outcome, Outcome::Converged, "{name}: {report:?}");
    assert!(report.iterations.abs_diff(expected) <= 1, "{name}: {} iterations, not {expected}", report.iterations);
}

#[test]
fn counts_on_the_ten_cloud_matrices() {
    // Columns HBISA and GS of the table in the specification.
    let expected = [
        (136, 71),
        (130, 68),
        (127, 67),
        (129, 67),
        (119, 63),
        (181, 94),
        (171, 90),
        (191, 100),
        (302, 158),
        (308, 161),
    ];
    for (case, (jacobi, gauss_seidel)) in CloudCase::all().into_iter().zip(expected) {
        let a = BlockTridiagonal::from_csr(&case.matrix().unwrap(), case.partition().unwrap(), HybridLayout::default())
            .unwrap();
        assert_eq!(a.diagonal_kind(), DiagonalKind::Tridiagonal);
        let (_, report) = run(&a, Sweep::Jacobi, StopRule::Update, &PAPER);
        assert_count(case.name(), &report, jacobi);
        let (_, report) = run(&a, Sweep::GaussSeidel, StopRule::Update, &PAPER);
        assert_count(case.name(), &report, gauss_seidel);
    }
}

#[test]
fn counts_on_the_nine_by_nine_example_in_every_layout() {
    let layouts = [
        (DiagonalKind::Tridiagonal, CouplingKind::Coo),
        (DiagonalKind::Tridiagonal, CouplingKind::Csr),
        (DiagonalKind::Tridiagonal, CouplingKind::Diagonals),
        (DiagonalKind::Band, CouplingKind::Csr),
        (DiagonalKind::Dense, CouplingKind::Dense),
    ];
    for (diagonal, couplings) in layouts {
        let layout = HybridLayout { diagonal: Some(diagonal), couplings: Some(couplings) };
        let a = BlockTridiagonal::from_csr(&nine(), Partition::uniform(9, 3).unwrap(), layout).unwrap();
        let by_residual = StopCriterion { rtol: 1e-7, max_iters: 1000, ..StopCriterion::default() };
        let (x, report) = run(&a, Sweep::Jacobi, StopRule::Update, &PAPER);
        assert_count("Jacobi by update", &report, 407);
        assert!((x[0] - -2.230577379751993).abs() < 1e-5, "{}", x[0]);
        assert_count("Jacobi by residual", &run(&a, Sweep::Jacobi, StopRule::Residual, &by_residual).1, 400);
        assert_count("GS by update", &run(&a, Sweep::GaussSeidel, StopRule::Update, &PAPER).1, 212);
        assert_count("GS by residual", &run(&a, Sweep::GaussSeidel, StopRule::Residual, &by_residual).1, 201);
    }
}

#[test]
fn divergence_is_an_outcome_and_keeps_the_best_iterate() {
    // ρ(D⁻¹(L+U)) = 2 with 1 × 1 blocks
    let a = Csr::from_dense(faer::mat![[1.0, 2.0], [2.0, 1.0]].as_ref()).unwrap();
    let a = BlockTridiagonal::from_csr(&a, Partition::uniform(2, 1).unwrap(), HybridLayout::default()).unwrap();
    for sweep in [Sweep::Jacobi, Sweep::GaussSeidel] {
        let (x, report) = run(&a, sweep, StopRule::Residual, &StopCriterion::default());
        assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::Diverged));
        assert!(report.certificate.relative_residual <= 1.0, "{x:?}");
        assert!(report.notes.iter().any(|n| matches!(n, Note::DirectWillDo { .. })));
    }
}

#[test]
fn an_update_that_diverges_is_no_success() {
    // ρ of every splitting is far above 1: the iterates overflow before the alarm has 32 sweeps to look at.
    let a = bt_testkit::chain(40, 1.0, 1e30);
    let a = BlockTridiagonal::from_csr(&a, Partition::uniform(40, 1).unwrap(), HybridLayout::default()).unwrap();
    let sweeps = [Sweep::Jacobi, Sweep::GaussSeidel, Sweep::Symmetric, Sweep::RedBlack];
    for (sweep, rule) in sweeps.iter().flat_map(|s| [(*s, StopRule::Update), (*s, StopRule::Residual)]) {
        let (x, report) = run(&a, sweep, rule, &StopCriterion::default());
        assert!(matches!(report.outcome, Outcome::Breakdown(_)), "{sweep:?} {rule:?}: {report:?}");
        assert!(x.iter().all(|v| v.is_finite()) && report.certificate.relative_residual <= 1.0, "{sweep:?} {rule:?}");
    }
}

#[test]
fn right_hand_sides_at_the_ends_of_the_range() {
    let a = BlockTridiagonal::from_csr(&nine(), Partition::uniform(9, 3).unwrap(), HybridLayout::default()).unwrap();
    for sweep in [Sweep::GaussSeidel, Sweep::Chebyshev] {
        let (x, report) = run(&a, sweep, StopRule::Residual, &StopCriterion::default());
        let largest = x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for size in [1.7e308 / largest, 1e-310] {
            let mut y = vec![0.0; 9];
            let mut method = Hbisa::new(&a, sweep).unwrap();
            let found = method.solve(&[size; 9], &mut y, &StopCriterion::default(), &mut ());
            assert_eq!(
                (found.outcome, found.iterations),
                (Outcome::Converged, report.iterations),
                "{sweep:?} {size:e}"
            );
            assert!(x.iter().zip(&y).all(|(x, y)| (y / size - x).abs() <= 1e-9 * largest), "{sweep:?}: {y:?}");
        }
    }
}

#[test]
fn limits_and_cancellation_are_outcomes() {
    let a = BlockTridiagonal::from_csr(&nine(), Partition::uniform(9, 3).unwrap(), HybridLayout::default()).unwrap();
    let stop = StopCriterion { max_iters: 50, ..StopCriterion::default() };
    let (_, report) = run(&a, Sweep::Jacobi, StopRule::Residual, &stop);
    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 50));
    assert!(report.notes.iter().any(|n| matches!(n, Note::IterationsLeft { .. })), "{:?}", report.notes);

    let token = bt_formats::CancelToken::new();
    token.cancel();
    let mut x = vec![0.0; 9];
    let report =
        Hbisa::new(&a, Sweep::Jacobi).unwrap().solve(&[1.0; 9], &mut x, &StopCriterion::default(), &mut token.clone());
    assert_eq!((report.outcome, report.iterations), (Outcome::Stopped, 0));
}

#[test]
fn a_singular_diagonal_block_is_named() {
    // D_1 = 0 although A is nonsingular
    let a = Csr::from_dense(faer::mat![[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]].as_ref()).unwrap();
    let a = BlockTridiagonal::from_csr(&a, Partition::uniform(3, 1).unwrap(), HybridLayout::default()).unwrap();
    let error = Hbisa::new(&a, Sweep::Jacobi).err().unwrap().to_string();
    assert!(error.contains("column 1") && error.contains("block 1"), "{error}");
}

#[test]
fn every_scalar_converges_to_its_precision() {
    fn check<T: Scalar>(rtol: f64) {
        let case = CloudCase::by_name("Cloud16-100").unwrap();
        let a: Csr<T> = case.matrix().unwrap().cast();
        let a = BlockTridiagonal::from_csr(&a, case.partition().unwrap(), HybridLayout::default()).unwrap();
        let stop = StopCriterion { rtol, ..StopCriterion::default() };
        for sweep in [Sweep::Jacobi, Sweep::GaussSeidel] {
            let (_, report) = run(&a, sweep, StopRule::Residual, &stop);
            assert_eq!(report.outcome, Outcome::Converged, "{}", T::KIND);
            assert!(report.certificate.relative_residual <= 2.0 * rtol);
        }
    }
    check::<f64>(1e-10);
    check::<f32>(1e-5);
    check::<c64>(1e-10);
    check::<c32>(1e-5);
}
