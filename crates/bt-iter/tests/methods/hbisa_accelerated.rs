//! HBISA in red–black order, relaxed and accelerated, its estimates, and a remainder outside the blocks.

use crate::common::{nine, run};
use bt_formats::{
    BlockTridiagonal, Breakdown, Csr, HybridLayout, Note, Outcome, Partition, Scalar, SolveReport, StopCriterion, c32,
    c64,
};
use bt_iter::{Hbisa, QuasiBlockTridiagonal, Relaxation, StopRule, Sweep};
use bt_queue::CloudCase;
use bt_testkit::{csr, stencil};

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
    let spectrum = |report: &SolveReport| {
        report.notes.iter().find_map(|note| match note {
            Note::RelaxationTuned { spectrum, .. } | Note::ChebyshevTuned { spectrum, .. } => Some(*spectrum),
            _ => None,
        })
    };
    let to_gmres = |note: &Note| matches!(note, Note::DirectWillDo { cure, .. } if cure.contains("gmres"));
    // The 9 × 9 example: dominant Jacobi eigenvalues ±0.961i, and real ones.
    let b = uniform(&nine(), 3);
    let fixed = |omega| run(&b, Sweep::Sor(Relaxation::Fixed(omega)), StopRule::Residual, &stop).1;
    // ρ = 0.302: ln 1e-8 / ln 0.302 = 15.4
    assert!(fixed(0.838).iterations.abs_diff(15) <= 2, "{}", fixed(0.838).iterations);
    let diverged = fixed(1.2);
    assert_eq!(diverged.outcome, Outcome::Breakdown(Breakdown::Diverged));
    assert!(diverged.iterations < 200 && diverged.notes.iter().any(to_gmres), "{diverged:?}");
    for sweep in [TUNED, Sweep::Chebyshev] {
        let (x, report) = run(&b, sweep, StopRule::Residual, &stop);
        assert_eq!(report.outcome, Outcome::Converged);
        assert!(report.iterations <= 30 && (x[0] - -2.230577379751993).abs() < 1e-6, "{sweep:?}: {report:?}");
        assert_eq!(spectrum(&report), Some("real and imaginary"), "{:?}", report.notes);
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
        assert_eq!(spectrum(&report), Some("imaginary"), "{:?}", report.notes);
    }
    // Real: the optimal ω of a grid of 16 lines, from ρ = 2cos(π/17)/(4 − 2cos(π/17)).
    let grid = uniform(&stencil(16, 0.0), 16);
    let report = run(&grid, TUNED, StopRule::Residual, &stop).1;
    let plain = run(&grid, Sweep::RedBlack, StopRule::Residual, &stop).1;
    assert!(report.outcome == Outcome::Converged && 3 * report.iterations < plain.iterations, "{report:?}");
    assert_eq!(spectrum(&report), Some("real"), "{:?}", report.notes);
    assert!(Hbisa::new(&grid, Sweep::Sor(Relaxation::Fixed(2.0))).is_err());
}

#[test]
fn estimates_hold_the_true_radius_and_the_true_count() {
    let grid = uniform(&stencil(12, 0.0), 12);
    let c = (std::f64::consts::PI / 13.0).cos();
    let rho = 2.0 * c / (4.0 - 2.0 * c);
    for (sweep, rho) in [(Sweep::Jacobi, rho), (Sweep::GaussSeidel, rho * rho), (Sweep::RedBlack, rho * rho)] {
        let (_, report) = run(&grid, sweep, StopRule::Residual, &StopCriterion::default());
        let (mut found, mut predicted) = (None, None);
        for note in &report.notes {
            match *note {
                Note::SpectralRadius { radius, low, high } => found = Some([low, radius, high]),
                Note::IterationsPredicted { iterations } => predicted = Some(iterations as f64),
                _ => {}
            }
        }
        let [low, radius, high] = found.unwrap();
        assert!((radius - rho).abs() < 1e-3 && low <= radius && radius <= high, "{found:?} {rho}");
        assert!(
            (predicted.unwrap() / report.iterations as f64 - 1.0).abs() < 0.15,
            "{predicted:?} {}",
            report.iterations
        );
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
        assert!(
            report.certificate.relative_residual <= 1e-8
                && report.notes.iter().any(|n| matches!(n, Note::OutsideInProducts { .. }))
        );
    }
    let error = Hbisa::quasi(&quasi, Sweep::RedBlack, StopRule::Residual).err().unwrap().to_string();
    assert!(error.contains("two colours"), "{error}");
}

#[test]
fn every_scalar_converges_to_its_precision() {
    fn check<T: Scalar>(rtol: f64) {
        // Complex types: off-diagonal entries with an imaginary part, so that the spectrum is complex.
        let grid = stencil::<f64>(9, 0.2);
        let a = csr(81, |i, j| T::rounded(grid.get(i, j), if i == j { 0.0 } else { 0.4 * grid.get(i, j) }));
        let a = BlockTridiagonal::from_csr(&a, Partition::uniform(81, 9).unwrap(), HybridLayout::default()).unwrap();
        let stop = StopCriterion { rtol, ..StopCriterion::default() };
        for sweep in [Sweep::Symmetric, Sweep::RedBlack, TUNED, Sweep::Chebyshev] {
            for rule in [StopRule::Residual, StopRule::Update] {
                let (_, report) = run(&a, sweep, rule, &stop);
                assert_eq!(report.outcome, Outcome::Converged, "{sweep:?} {rule:?} {}", T::KIND);
                assert!(report.certificate.relative_residual <= 20.0 * rtol, "{sweep:?} {rule:?} {}", T::KIND);
            }
        }
    }
    check::<f64>(1e-10);
    check::<f32>(1e-5);
    check::<c64>(1e-10);
    check::<c32>(1e-5);
}
