//! HBISA against the iteration counts of the specification, on the ten cloud matrices and the 9 × 9 example.

use bt_formats::{
    BlockTridiagonal, Breakdown, CouplingKind, Csr, DiagonalKind, HybridLayout, Outcome, Partition, Scalar,
    SolveReport, StopCriterion, c32, c64, one, zero,
};
use bt_iter::{Hbisa, QuasiBlockTridiagonal, Relaxation, StopRule, Sweep};
use bt_queue::CloudCase;
use bt_testkit::{PAPER_B, csr, stencil};

/// The paper's rule: x₀ = 0, ‖Δx‖∞ ≤ 1e-7.
const PAPER: StopCriterion =
    StopCriterion { rtol: 0.0, atol: 1e-7, baseline: bt_formats::Baseline::Rhs, max_iters: 3000, time_limit: None };

/// The 9 × 9 example B: tridiagonal blocks of 3, det B = −5 831 448, indefinite.
fn nine() -> Csr<f64> {
    Csr::from_dense(faer::Mat::from_fn(9, 9, |i, j| PAPER_B[i][j]).as_ref()).unwrap()
}

fn run<T: Scalar>(
    a: &BlockTridiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
    stop: &StopCriterion,
) -> (Vec<T>, SolveReport) {
    let n = a.partition().n();
    let mut x = vec![zero(); n];
    let report = Hbisa::new(a, sweep, rule).unwrap().solve(&vec![one(); n], &mut x, stop, &mut ());
    (x, report)
}

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

/// A matrix in blocks of k rows.
fn uniform(a: &Csr<f64>, k: usize) -> BlockTridiagonal<f64> {
    let partition = Partition::uniform(a.row_ptr().len() - 1, k).unwrap();
    BlockTridiagonal::from_csr(a, partition, HybridLayout::default()).unwrap()
}

const TUNED: Sweep = Sweep::Sor(Relaxation::Tuned);

#[test]
fn parallel_sweeps_have_the_same_bits_on_any_number_of_threads() {
    let case = CloudCase::by_name("Cloud64-500").unwrap();
    let a = BlockTridiagonal::from_csr(&case.matrix().unwrap(), case.partition().unwrap(), HybridLayout::default())
        .unwrap();
    for (sweep, max_iters) in [(Sweep::Jacobi, 8), (Sweep::RedBlack, 5), (TUNED, 13), (Sweep::Chebyshev, 13)] {
        let solve = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let stop = StopCriterion { max_iters, ..StopCriterion::default() };
            let (x, report) = pool.install(|| run(&a, sweep, StopRule::Residual, &stop));
            (x, report.iterations)
        };
        let serial = solve(1);
        assert!(solve(2) == serial && solve(3) == serial, "{sweep:?}");
    }
}

#[test]
fn red_black_keeps_the_rate_and_acceleration_halves_the_sweeps() {
    for name in ["Cloud16-100", "Cloud64-100"] {
        let case = CloudCase::by_name(name).unwrap();
        let a = BlockTridiagonal::from_csr(&case.matrix().unwrap(), case.partition().unwrap(), HybridLayout::default())
            .unwrap();
        let count = |sweep| {
            let report = run(&a, sweep, StopRule::Residual, &StopCriterion::default()).1;
            assert_eq!(report.outcome, Outcome::Converged, "{name} {sweep:?}");
            assert!(report.certificate.relative_residual <= 1e-8, "{name} {sweep:?}");
            report.iterations
        };
        let plain = count(Sweep::GaussSeidel);
        assert!(count(Sweep::RedBlack).abs_diff(plain) <= 3, "{name}");
        assert!(count(Sweep::Symmetric) <= plain, "{name}");
        assert!(2 * count(Sweep::Chebyshev) <= plain, "{name}");
        assert!(3 * count(TUNED) <= 9 * plain / 4, "{name}");
    }
}

#[test]
fn tuning_finds_the_type_of_the_spectrum() {
    let stop = StopCriterion::default();
    let note = |report: &SolveReport, text: &str| report.notes.iter().any(|n| n.contains(text));
    // The 9 × 9 example: dominant Jacobi eigenvalues ±0.961i, and real ones.
    let b = uniform(&nine(), 3);
    let fixed = |omega| run(&b, Sweep::Sor(Relaxation::Fixed(omega)), StopRule::Residual, &stop).1;
    // ρ = 0.302: ln 1e-8 / ln 0.302 = 15.4
    assert!(fixed(0.838).iterations.abs_diff(15) <= 2, "{}", fixed(0.838).iterations);
    let diverged = fixed(1.2);
    assert_eq!(diverged.outcome, Outcome::Breakdown(Breakdown::Diverged));
    assert!(diverged.iterations < 200 && note(&diverged, "gmres"), "{diverged:?}");
    for sweep in [TUNED, Sweep::Chebyshev] {
        let (x, report) = run(&b, sweep, StopRule::Residual, &stop);
        assert_eq!(report.outcome, Outcome::Converged);
        assert!(report.iterations <= 30 && (x[0] - -2.230577379751993).abs() < 1e-6, "{sweep:?}: {report:?}");
        assert!(note(&report, "real and imaginary spectrum"), "{:?}", report.notes);
    }
    // Purely imaginary with ρ = 3: Jacobi and Gauss–Seidel diverge, a tuned relaxation does not.
    let skew = csr(40, |i, j| match (i.abs_diff(j), j > i) {
        (0, _) => 1.0,
        (1, true) => 1.5,
        (1, false) => -1.5,
        _ => 0.0,
    });
    let skew = uniform(&skew, 1);
    assert_eq!(run(&skew, Sweep::RedBlack, StopRule::Residual, &stop).1.outcome, diverged.outcome);
    for sweep in [TUNED, Sweep::Chebyshev] {
        let (_, report) = run(&skew, sweep, StopRule::Residual, &stop);
        assert_eq!(report.outcome, Outcome::Converged, "{sweep:?}");
        assert!(note(&report, "imaginary spectrum"), "{:?}", report.notes);
    }
    // Real: the optimal ω of a grid of 16 lines, from ρ = 2cos(π/17)/(4 − 2cos(π/17)).
    let grid = uniform(&stencil(16, 0.0), 16);
    let report = run(&grid, TUNED, StopRule::Residual, &stop).1;
    let plain = run(&grid, Sweep::RedBlack, StopRule::Residual, &stop).1;
    assert!(report.outcome == Outcome::Converged && 3 * report.iterations < plain.iterations, "{report:?}");
    assert!(note(&report, "to a real spectrum"), "{:?}", report.notes);
    assert!(Hbisa::new(&grid, Sweep::Sor(Relaxation::Fixed(2.0)), StopRule::Residual).is_err());
}

#[test]
fn estimates_hold_the_true_radius_and_the_true_count() {
    let grid = uniform(&stencil(12, 0.0), 12);
    let c = (std::f64::consts::PI / 13.0).cos();
    let rho = 2.0 * c / (4.0 - 2.0 * c);
    for (sweep, rho) in [(Sweep::Jacobi, rho), (Sweep::GaussSeidel, rho * rho), (Sweep::RedBlack, rho * rho)] {
        let (_, report) = run(&grid, sweep, StopRule::Residual, &StopCriterion::default());
        let numbers = |start: &str| -> Vec<f64> {
            let note = report.notes.iter().find(|n| n.starts_with(start)).unwrap();
            let words = note.split(|c: char| !(c.is_ascii_digit() || c == '.'));
            words.filter_map(|w| w.parse().ok()).collect()
        };
        let found = numbers("estimated spectral radius");
        assert!((found[0] - rho).abs() < 1e-3 && found[1] <= found[0] && found[0] <= found[2], "{found:?} {rho}");
        let predicted = numbers("iterations predicted")[0];
        assert!((predicted / report.iterations as f64 - 1.0).abs() < 0.15, "{predicted} {}", report.iterations);
    }
}

#[test]
fn a_remainder_goes_into_the_products() {
    // Blocks of 4 with entries that reach two blocks far, on both sides.
    let a = csr(24, |i: usize, j| match i.abs_diff(j) {
        0 => 6.0,
        1 => -1.0,
        d if d == 9 || d == 17 => {
            if i > j {
                0.75
            } else {
                -0.5
            }
        }
        _ => 0.0,
    });
    let partition = Partition::uniform(24, 4).unwrap();
    let quasi = QuasiBlockTridiagonal::new(&a, partition, HybridLayout::default()).unwrap();
    assert!(quasi.nnz_remainder() > 30);
    for sweep in [Sweep::Jacobi, Sweep::GaussSeidel, Sweep::Symmetric] {
        let mut x = vec![0.0; 24];
        let report = Hbisa::quasi(&quasi, sweep, StopRule::Residual).unwrap().solve(
            &[1.0; 24],
            &mut x,
            &StopCriterion::default(),
            &mut (),
        );
        // Convergence is only said after the residual of A itself has been formed.
        assert_eq!(report.outcome, Outcome::Converged, "{sweep:?}: {report:?}");
        assert!(report.certificate.relative_residual <= 1e-8 && report.notes.iter().any(|n| n.contains("outside")));
    }
    let error = Hbisa::quasi(&quasi, Sweep::RedBlack, StopRule::Residual).err().unwrap().to_string();
    assert!(error.contains("two colours"), "{error}");
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
        assert!(report.notes.iter().any(|n| n.contains("direct method")));
    }
}

#[test]
fn limits_and_cancellation_are_outcomes() {
    let a = BlockTridiagonal::from_csr(&nine(), Partition::uniform(9, 3).unwrap(), HybridLayout::default()).unwrap();
    let stop = StopCriterion { max_iters: 50, ..StopCriterion::default() };
    let (_, report) = run(&a, Sweep::Jacobi, StopRule::Residual, &stop);
    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 50));
    assert!(report.notes.iter().any(|n| n.contains("more iterations")), "{:?}", report.notes);

    let token = bt_formats::CancelToken::new();
    token.cancel();
    let mut x = vec![0.0; 9];
    let report = Hbisa::new(&a, Sweep::Jacobi, StopRule::Residual).unwrap().solve(
        &[1.0; 9],
        &mut x,
        &StopCriterion::default(),
        &mut token.clone(),
    );
    assert_eq!((report.outcome, report.iterations), (Outcome::Stopped, 0));
}

#[test]
fn a_singular_diagonal_block_is_named() {
    // D_1 = 0 although A is nonsingular
    let a = Csr::from_dense(faer::mat![[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]].as_ref()).unwrap();
    let a = BlockTridiagonal::from_csr(&a, Partition::uniform(3, 1).unwrap(), HybridLayout::default()).unwrap();
    let error = Hbisa::new(&a, Sweep::Jacobi, StopRule::Residual).err().unwrap().to_string();
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
