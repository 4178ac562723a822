//! Conjugate gradients on the device: the host's answers, outcomes and reports.

use std::ops::ControlFlow;

use crate::support::{Numbers, device, epsilon, long_rows, on_host};
use bt_formats::{
    Baseline, Breakdown, Csr, LinearOperator, Monitor, Outcome, Partition, Progress, RealScalar, Scalar, StopCriterion,
};
use bt_iter::{Cg, Identity, Series, Triangles, TriangularSolves};
use bt_kernels::{Device, DeviceCg, DeviceError, DevicePreconditioner, DeviceScalar, Schedule};
use bt_testkit::{csr, stencil};

const BOTH: [Schedule; 2] = [Schedule::Launches, Schedule::Persistent];

/// Tridiagonal, positive definite, with a diagonal that varies over two decades.
fn graded<T: Scalar>(n: usize) -> Csr<T> {
    csr(n, |i, j| match i.abs_diff(j) {
        0 => T::rounded(2.5 + (i % 100) as f64, 0.0),
        1 => T::rounded(-1.0, 0.0),
        _ => T::default(),
    })
}

fn relative_error<T: DeviceScalar>(x: &[T], exact: &[T]) -> f64 {
    let largest = exact.iter().fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
    x.iter().zip(exact).fold(0.0, |m: f64, (&a, &b)| m.max((a - b).abs().to_f64())) / largest
}

fn agrees<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    precond: &DevicePreconditioner,
    rtol: f64,
    schedules: &[Schedule],
    slack: usize,
) {
    let n = a.nrows();
    let b = Numbers(n as u64).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    let mut m = on_host(a, precond).unwrap();
    let mut expected = vec![T::default(); n];
    let host = Cg::new(n).solve(a, &mut *m, &b, &mut expected, &stop, &mut ()).unwrap();
    let mut bits: Option<Vec<T>> = None;
    for &schedule in schedules {
        let mut x = vec![T::default(); n];
        let mut cg = DeviceCg::new(device, a, precond, schedule).unwrap();
        assert_eq!(cg.is_persistent(), schedule == Schedule::Persistent);
        let report = cg.solve(&b, &mut x, &stop, &mut ()).unwrap();
        assert_eq!((report.method, report.outcome), ("cg", host.outcome), "n = {n}");
        assert!(report.certificate.relative_residual <= rtol, "n = {n}: {report:?}");
        // Rounding may take or save a few steps.
        assert!(
            report.iterations.abs_diff(host.iterations) <= slack + host.iterations / 20,
            "{precond:?}, n = {n}: {report:?}, {host:?}"
        );
        let error = relative_error(&x, &expected);
        assert!(error <= 1e3 * rtol + 1e3 * epsilon::<T>(), "n = {n}: {error:e}");
        // The schedule changes no bit.
        let first = bits.get_or_insert_with(|| x.clone());
        assert_eq!(*first, x);
    }
}

#[test]
fn answers_and_counts_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for n in [1, 2, 31, 33, 257] {
        for precond in [DevicePreconditioner::Identity, DevicePreconditioner::Jacobi] {
            agrees::<f64>(&device, &graded(n), &precond, 1e-10, &BOTH, 2);
            agrees::<f32>(&device, &graded(n), &precond, 1e-4, &BOTH, 2);
        }
    }
    agrees::<f64>(&device, &stencil(12, 0.0), &DevicePreconditioner::Identity, 1e-9, &BOTH, 1);
}

#[test]
fn long_rows_are_shared_by_lanes() {
    let Some(device) = device() else { return };
    for (n, reach) in [(45, 9), (70, 60)] {
        agrees::<f64>(&device, &long_rows(n, reach, -1.0, -1.0), &DevicePreconditioner::Jacobi, 1e-9, &BOTH, 1);
        agrees::<f32>(&device, &long_rows(n, reach, -1.0, -1.0), &DevicePreconditioner::Jacobi, 1e-4, &BOTH, 1);
    }
}

/// Those with launches of their own.
fn elsewhere(n: usize) -> Vec<DevicePreconditioner> {
    let approximate = |series, triangles| DevicePreconditioner::SsorAi { omega: 1.1, series, triangles };
    vec![
        DevicePreconditioner::BlockJacobi(Partition::uniform(n, 11).unwrap()),
        DevicePreconditioner::Ilu0(TriangularSolves::Levels),
        DevicePreconditioner::Ic0(TriangularSolves::Levels),
        DevicePreconditioner::Ic0(TriangularSolves::Sweeps(2)),
        approximate(Series::First, Triangles::Stored),
        approximate(Series::First, Triangles::OfMatrix),
        approximate(Series::Second, Triangles::OfMatrix),
        approximate(Series::IncompletePoisson, Triangles::Stored),
        DevicePreconditioner::SsorAiMasked { omega: 1.1 },
    ]
}

#[test]
fn preconditioners_give_the_answers_and_counts_of_the_host() {
    let Some(device) = device() else { return };
    for precond in elsewhere(121) {
        let (DevicePreconditioner::Ilu0(solves) | DevicePreconditioner::Ic0(solves)) = precond else {
            agrees::<f64>(&device, &stencil(11, 0.0), &precond, 1e-9, &BOTH, 1);
            agrees::<f32>(&device, &stencil(11, 0.0), &precond, 1e-4, &BOTH, 1);
            continue;
        };
        // By levels they have launches of their own.
        let swept = matches!(solves, TriangularSolves::Sweeps(_));
        let schedules = if swept { &BOTH[..] } else { &BOTH[..1] };
        agrees::<f64>(&device, &stencil(11, 0.0), &precond, 1e-9, schedules, 1);
        agrees::<f32>(&device, &stencil(11, 0.0), &precond, 1e-4, &[Schedule::Launches], 1);
    }
    // Blocks of two lines, whose inverses are dense.
    let lines = DevicePreconditioner::BlockJacobi(Partition::uniform(121, 22).unwrap());
    agrees::<f64>(&device, &stencil(11, 0.0), &lines, 1e-9, &BOTH, 1);
    let a = graded::<f64>(5);
    let precond = DevicePreconditioner::Ilu0(TriangularSolves::Levels);
    let error = DeviceCg::new(&device, &a, &precond, Schedule::Persistent).err().unwrap();
    assert!(error.to_string().contains("launches of its own"), "{error}");
}

#[test]
fn blocks_of_nodes_give_the_answers_and_counts_of_the_host() {
    let Some(device) = device() else { return };
    // Two unknowns a node, on lines of ten.
    let precond = DevicePreconditioner::BlockSsorAi { omega: 1.1, block_size: 2 };
    agrees::<f64>(&device, &stencil(10, 0.0), &precond, 1e-9, &BOTH[..1], 1);
    agrees::<f32>(&device, &stencil(10, 0.0), &precond, 1e-4, &BOTH[..1], 1);
    let error = DeviceCg::new(&device, &stencil::<f64>(10, 0.0), &precond, Schedule::Persistent).err().unwrap();
    assert!(error.to_string().contains("launches of its own"), "{error}");
}

#[test]
fn a_second_solve_has_the_bits_of_the_first() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(9, 0.0);
    let b = Numbers(2).vector::<f64>(81);
    for precond in elsewhere(81) {
        let mut cg = DeviceCg::new(&device, &a, &precond, Schedule::Auto).unwrap();
        let mut run = |stop: &StopCriterion| {
            let mut x = vec![0.0; 81];
            cg.solve(&b, &mut x, stop, &mut ()).unwrap();
            x
        };
        let first = run(&StopCriterion::default());
        run(&StopCriterion { max_iters: 3, ..StopCriterion::default() });
        assert_eq!(run(&StopCriterion::default()), first, "{precond:?}");
    }
}

#[test]
fn a_good_start_needs_no_step_and_zero_is_an_answer() {
    let Some(device) = device() else { return };
    let a = graded::<f64>(40);
    let mut cg = DeviceCg::new(&device, &a, &DevicePreconditioner::Jacobi, Schedule::Auto).unwrap();
    let b = Numbers(1).vector::<f64>(40);
    let mut x = vec![0.0; 40];
    let stop = StopCriterion { rtol: 1e-9, ..StopCriterion::default() };
    assert!(cg.solve(&b, &mut x, &stop, &mut ()).unwrap().iterations > 0);
    let before = x.clone();
    let report = cg.solve(&b, &mut x, &stop, &mut ()).unwrap();
    assert_eq!((report.outcome, report.iterations, &x), (Outcome::Converged, 0, &before));
    let report = cg.solve(&[0.0; 40], &mut [0.0; 40], &stop, &mut ()).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 0));
    // From the residual of a start that is far off.
    let from_start = StopCriterion { baseline: Baseline::InitialResidual, ..stop };
    let mut x = vec![1e6; 40];
    let report = cg.solve(&b, &mut x, &from_start, &mut ()).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
}

#[test]
fn huge_and_tiny_systems_keep_their_digits() {
    let Some(device) = device() else { return };
    let n = 50;
    for (scale, rhs) in [(1e300, 1e-200), (1e-300, 1e-250), (1e-5, 1e290)] {
        let a = csr::<f64>(n, |i, j| graded::<f64>(n).get(i, j) * scale);
        let b: Vec<f64> = Numbers(3).vector::<f64>(n).iter().map(|v| v * rhs).collect();
        let mut x = vec![0.0; n];
        let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
        let mut cg = DeviceCg::new(&device, &a, &DevicePreconditioner::Jacobi, Schedule::Auto).unwrap();
        let report = cg.solve(&b, &mut x, &stop, &mut ()).unwrap();
        // x underflows in the first case: no method reaches the tolerance then, and none says so.
        let reachable = rhs / scale > 1e-290;
        assert_eq!(report.outcome == Outcome::Converged, reachable, "{scale:e}, {rhs:e}: {report:?}");
    }
}

#[test]
fn indefinite_systems_break_down_by_name() {
    let Some(device) = device() else { return };
    let indefinite = csr::<f64>(4, |i, j| if i == j { [1.0, -2.0, 3.0, 4.0][i] } else { 0.0 });
    let cases = [
        (DevicePreconditioner::Identity, [0.0, 1.0, 0.0, 0.0], Breakdown::IndefiniteOperator),
        (DevicePreconditioner::Jacobi, [0.0, 1.0, 0.0, 0.0], Breakdown::IndefinitePreconditioner),
    ];
    for (precond, b, why) in cases {
        for schedule in BOTH {
            let mut x = [0.0; 4];
            let mut cg = DeviceCg::new(&device, &indefinite, &precond, schedule).unwrap();
            let report = cg.solve(&b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
            assert_eq!((report.outcome, report.iterations, x), (Outcome::Breakdown(why), 0, [0.0; 4]));
        }
    }
}

struct Stop {
    at: usize,
    seen: Vec<usize>,
}

impl Monitor for Stop {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if let Progress::Iteration { index, residual } = progress {
            assert!(residual.is_finite());
            self.seen.push(index);
            if index == self.at {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn limits_and_monitors_end_a_run_with_its_best_iterate() {
    let Some(device) = device() else { return };
    // Residuals that fall, and residuals that rise and fall.
    limits(&device, &stencil(20, 0.0), &[0, 1, 31, 32, 33]);
    limits(&device, &wild(), &[1, 2, 3, 4, 5, 6, 7, 8]);
}

/// A diagonal over eight decades, so that residual norms rise by decades before they fall.
fn wild() -> Csr<f64> {
    csr(400, |i, j| match i.abs_diff(j) {
        0 => 10f64.powi((i % 9) as i32) * (2.5 + i as f64 / 400.0),
        1 => -1.0,
        _ => 0.0,
    })
}

fn limits(device: &Device, a: &Csr<f64>, max: &[usize]) {
    let b = Numbers(4).vector::<f64>(400);
    let hard = StopCriterion { rtol: 1e-14, ..StopCriterion::default() };
    for schedule in BOTH {
        let mut cg = DeviceCg::new(device, a, &DevicePreconditioner::Identity, schedule).unwrap();
        for &max_iters in max {
            let (mut x, mut y) = (vec![0.0; 400], vec![0.0; 400]);
            let stop = StopCriterion { max_iters, ..hard };
            let report = cg.solve(&b, &mut x, &stop, &mut ()).unwrap();
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, max_iters));
            let host = Cg::new(400).solve(a, &mut Identity::new(400), &b, &mut y, &stop, &mut ()).unwrap();
            let (ours, theirs) = (report.certificate.relative_residual, host.certificate.relative_residual);
            assert!((ours - theirs).abs() <= 1e-6 * theirs, "{max_iters}: {ours:e}, {theirs:e}");
        }
        let mut monitor = Stop { at: 5, seen: Vec::new() };
        let report = cg.solve(&b, &mut vec![0.0; 400], &hard, &mut monitor).unwrap();
        assert_eq!(report.outcome, Outcome::Stopped);
        // The host looks once in 32 steps.
        assert_eq!((report.iterations, monitor.seen.last()), (32, Some(&5)));
        assert!(report.certificate.relative_residual <= 1.0);
    }
}

#[test]
fn input_is_checked_by_name() {
    let Some(device) = device() else { return };
    let new = |a: &Csr<f64>, m| DeviceCg::new(&device, a, &m, Schedule::Auto).map(|_| ()).unwrap_err();
    let wide = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert!(matches!(new(&wide, DevicePreconditioner::Identity), DeviceError::Input(_)));
    let hollow = csr::<f64>(2, |i, j| if i == j { 0.0 } else { 1.0 });
    let error = new(&hollow, DevicePreconditioner::Jacobi);
    assert!(matches!(error, DeviceError::Factor(_)) && error.to_string().contains("row 0"), "{error}");
    let unsymmetric = csr::<f64>(2, |i, j| [[30.0, 7.0], [5.0, 30.0]][i][j]);
    let precond = DevicePreconditioner::Ic0(TriangularSolves::Levels);
    let theirs = on_host(&unsymmetric, &precond).err().unwrap().to_string();
    assert!(theirs.contains("= 7") && new(&unsymmetric, precond).to_string() == theirs, "{theirs}");

    let a = graded::<f64>(3);
    let mut cg = DeviceCg::new(&device, &a, &DevicePreconditioner::Identity, Schedule::Auto).unwrap();
    let stop = StopCriterion::default();
    let mut x = [0.0; 3];
    assert!(cg.solve(&[1.0; 2], &mut x, &stop, &mut ()).is_err());
    let error = cg.solve(&[1.0, f64::INFINITY, 0.0], &mut x, &stop, &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "right-hand side: entry at row 1, column 0 (from 0) is inf, not a finite number");
}
