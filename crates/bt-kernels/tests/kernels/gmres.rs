//! GMRES and FGMRES on the device: the host's answers, counts and outcomes.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::bicgstab::graded;
use crate::support::{Numbers, device, epsilon, long_rows, on_host};
use bt_formats::{
    Baseline, Breakdown, Csr, LinearOperator, Monitor, Outcome, Partition, Progress, RealScalar, Scalar, SolveReport,
    StopCriterion,
};
use bt_iter::{Gmres, Identity, Series, Triangles, TriangularSolves};
use bt_kernels::{Device, DeviceGmres, DevicePreconditioner, DeviceScalar, Schedule};
use bt_testkit::{csr, stencil};
use faer::Mat;

const BOTH: [Schedule; 2] = [Schedule::Launches, Schedule::Persistent];

/// x(i) in row i + 1, and that of the last row in the first: no step gains anything before the last.
fn cyclic(n: usize) -> Csr<f64> {
    csr(n, |i, j| if (j + 1) % n == i { 1.0 } else { 0.0 })
}

/// GMRES, or FGMRES, on either.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Gmres(usize),
    Fgmres(usize),
}

impl Kind {
    fn on_host<T: Scalar>(self, n: usize) -> Gmres<T> {
        match self {
            Self::Gmres(m) => Gmres::new(n, m),
            Self::Fgmres(m) => Gmres::flexible(n, m),
        }
    }

    fn on<'a, T: DeviceScalar>(
        self,
        device: &Device,
        a: &'a Csr<T>,
        precond: &DevicePreconditioner,
        schedule: Schedule,
    ) -> DeviceGmres<'a, T> {
        match self {
            Self::Gmres(m) => DeviceGmres::new(device, a, precond, m, schedule),
            Self::Fgmres(m) => DeviceGmres::flexible(device, a, precond, m, schedule),
        }
        .unwrap()
    }
}

fn agrees<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    precond: &DevicePreconditioner,
    kind: Kind,
    rtol: f64,
    schedules: &[Schedule],
) {
    let n = a.nrows();
    let b = Numbers(n as u64).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    let mut m = on_host(a, precond).unwrap();
    let mut expected = vec![T::default(); n];
    let host = kind.on_host(n).solve(a, &mut *m, &b, &mut expected, &stop, &mut ()).unwrap();
    let mut bits: Option<Vec<T>> = None;
    for &schedule in schedules {
        let mut x = vec![T::default(); n];
        let mut method = kind.on(device, a, precond, schedule);
        assert_eq!(method.is_persistent(), schedule == Schedule::Persistent);
        let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
        let what = format!("{kind:?}, {precond:?}, n = {n}: {report:?}, {host:?}");
        assert_eq!((report.method, report.outcome), (host.method, host.outcome), "{what}");
        assert_eq!(report.outcome, Outcome::Converged, "{what}");
        assert!(report.certificate.relative_residual <= rtol, "{what}");
        assert!(report.iterations.abs_diff(host.iterations) <= 1, "{what}");
        if report.iterations == host.iterations {
            assert_eq!(report.operator_applications, host.operator_applications, "{what}");
            assert_eq!(report.preconditioner_applications, host.preconditioner_applications, "{what}");
        }
        let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
        let error = x.iter().zip(&expected).fold(0.0, |m: f64, (&x, &e)| m.max((x - e).abs().to_f64()));
        assert!(error <= (1e3 * rtol + 1e3 * epsilon::<T>()) * largest, "{what}: {error:e} of {largest:e}");
        // The schedule changes no bit.
        let first = bits.get_or_insert_with(|| x.clone());
        assert_eq!(*first, x, "{what}");
    }
}

#[test]
fn answers_and_counts_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for n in [1, 2, 31, 33, 257] {
        for precond in [DevicePreconditioner::Identity, DevicePreconditioner::Jacobi] {
            agrees::<f64>(&device, &graded(n), &precond, Kind::Gmres(30), 1e-9, &BOTH);
            agrees::<f32>(&device, &graded(n), &precond, Kind::Fgmres(30), 1e-4, &BOTH);
        }
    }
}

#[test]
fn cycles_end_where_those_of_the_host_do() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(12, 0.4);
    // Cycles of one step, of few, of more than the host looks at once, and one without an end.
    for (m, rtol) in [(1, 1e-2), (5, 1e-6), (40, 1e-9), (1000, 1e-9)] {
        agrees::<f64>(&device, &a, &DevicePreconditioner::Identity, Kind::Gmres(m), rtol, &[Schedule::Launches]);
    }
    agrees::<f64>(&device, &a, &DevicePreconditioner::Jacobi, Kind::Fgmres(7), 1e-8, &BOTH);
    agrees::<f32>(&device, &stencil(9, 0.4), &DevicePreconditioner::Identity, Kind::Gmres(6), 1e-4, &BOTH);
}

#[test]
fn a_long_cycle_goes_by_panels_of_sums() {
    let Some(device) = device() else { return };
    let n = 133;
    let identity = DevicePreconditioner::Identity;
    agrees::<f64>(&device, &cyclic(n), &identity, Kind::Gmres(n), 1e-9, &[Schedule::Launches]);
}

#[test]
fn long_rows_are_shared_by_lanes() {
    let Some(device) = device() else { return };
    for (n, reach) in [(45, 9), (70, 60)] {
        let identity = DevicePreconditioner::Identity;
        agrees::<f64>(&device, &long_rows(n, reach, -1.0, 0.5), &identity, Kind::Gmres(20), 1e-9, &BOTH);
        agrees::<f32>(&device, &long_rows(n, reach, -1.0, 0.5), &identity, Kind::Gmres(20), 1e-4, &BOTH);
    }
}

#[test]
fn preconditioners_give_the_answers_and_counts_of_the_host() {
    let Some(device) = device() else { return };
    let approximate = |series, triangles| DevicePreconditioner::SsorAi { omega: 1.1, series, triangles };
    let (skewed, symmetric, launches) = (0.4, 0.0, &BOTH[..1]);
    for (precond, skew, schedules) in [
        (DevicePreconditioner::BlockJacobi(Partition::uniform(81, 9).unwrap()), skewed, &BOTH[..]),
        (DevicePreconditioner::BlockJacobi(Partition::uniform(81, 27).unwrap()), skewed, &BOTH[..]),
        (DevicePreconditioner::Ilu0(TriangularSolves::Levels), skewed, launches),
        (DevicePreconditioner::Ilu0(TriangularSolves::Sweeps(2)), skewed, &BOTH[..]),
        (DevicePreconditioner::Ic0(TriangularSolves::Levels), symmetric, launches),
        (approximate(Series::First, Triangles::Stored), symmetric, launches),
        (approximate(Series::First, Triangles::OfMatrix), symmetric, launches),
        (approximate(Series::Second, Triangles::OfMatrix), symmetric, &BOTH[..]),
        (approximate(Series::IncompletePoisson, Triangles::Stored), symmetric, launches),
        (DevicePreconditioner::SsorAiMasked { omega: 1.1 }, symmetric, &BOTH[..]),
    ] {
        agrees::<f64>(&device, &stencil(9, skew), &precond, Kind::Gmres(6), 1e-9, launches);
        agrees::<f64>(&device, &stencil(9, skew), &precond, Kind::Fgmres(6), 1e-9, schedules);
        agrees::<f32>(&device, &stencil(9, skew), &precond, Kind::Gmres(30), 1e-4, launches);
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
fn limits_monitors_and_starts_are_as_on_the_host() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(11, 0.4);
    let b = Numbers(4).vector::<f64>(121);
    let hard = StopCriterion { rtol: 1e-13, ..StopCriterion::default() };
    for schedule in BOTH {
        let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 20, schedule).unwrap();
        let mut host = Gmres::new(121, 20);
        for max_iters in [0, 1, 19, 20, 21, 33] {
            let (mut x, mut y) = (vec![0.0; 121], vec![0.0; 121]);
            let stop = StopCriterion { max_iters, ..hard };
            let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, max_iters));
            let theirs = host.solve(&a, &mut Identity::new(121), &b, &mut y, &stop, &mut ()).unwrap();
            let [ours, theirs] = [&report, &theirs].map(|r| r.certificate.relative_residual);
            assert!((ours - theirs).abs() <= 1e-9 * theirs, "{max_iters}: {ours:e}, {theirs:e}");
        }
        for at in [0, 5, 25] {
            let mut monitors = [(); 2].map(|()| Stop { at, seen: Vec::new() });
            let (mut x, mut y) = (vec![0.0; 121], vec![0.0; 121]);
            let report = method.solve(&b, &mut x, &hard, &mut monitors[0]).unwrap();
            let theirs = host.solve(&a, &mut Identity::new(121), &b, &mut y, &hard, &mut monitors[1]).unwrap();
            assert_eq!((report.outcome, report.iterations), (Outcome::Stopped, at));
            assert_eq!((theirs.iterations, &monitors[0].seen), (at, &monitors[1].seen));
            assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= 1e-10));
        }
    }
    let stop = StopCriterion { rtol: 1e-9, ..StopCriterion::default() };
    let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Jacobi, 20, Schedule::Auto).unwrap();
    let mut x = vec![0.0; 121];
    assert!(method.solve(&b, &mut x, &stop, &mut ()).unwrap().iterations > 20);
    let before = x.clone();
    let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
    assert_eq!((report.outcome, report.iterations, &x), (Outcome::Converged, 0, &before));
    let report = method.solve(&[0.0; 121], &mut [0.0; 121], &stop, &mut ()).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 0));
    let mut x = vec![1e6; 121];
    let from_start = StopCriterion { baseline: Baseline::InitialResidual, ..stop };
    assert_eq!(method.solve(&b, &mut x, &from_start, &mut ()).unwrap().outcome, Outcome::Converged);
    // A second solve has the bits of the first.
    let mut x = vec![0.0; 121];
    method.solve(&b, &mut x, &stop, &mut ()).unwrap();
    assert_eq!(x, before);
}

/// Too long for the limit of time, after the first step.
struct Slow;

impl Monitor for Slow {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if matches!(progress, Progress::Iteration { index: 1, .. }) {
            std::thread::sleep(Duration::from_millis(600));
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn out_of_time_the_steps_that_are_done_are_not_lost() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(6, 0.4);
    let b = Numbers(5).vector::<f64>(36);
    let stop = StopCriterion { rtol: 1e-13, time_limit: Some(Duration::from_millis(500)), ..StopCriterion::default() };
    let mut x = vec![0.0; 36];
    let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 8, Schedule::Auto).unwrap();
    let report = method.solve(&b, &mut x, &stop, &mut Slow).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::TimeLimit, 8));
    let (ours, theirs) = (report.certificate.relative_residual * bt_formats::norm2(&b), report.recurrence_residual);
    assert!(theirs.is_some_and(|theirs| (ours - theirs).abs() <= 1e-9 * theirs), "{ours:e}, {theirs:?}");
}

/// Both, by both schedules: the host's outcome, steps and x.
fn as_on_the_host(device: &Device, kind: Kind, a: &Csr<f64>, b: &[f64], start: f64) -> SolveReport {
    let stop = StopCriterion { max_iters: 50, ..StopCriterion::default() };
    let mut y = vec![start; b.len()];
    let theirs = kind.on_host(b.len()).solve(a, &mut Identity::new(b.len()), b, &mut y, &stop, &mut ()).unwrap();
    for schedule in BOTH {
        let mut x = vec![start; b.len()];
        let mut method = kind.on(device, a, &DevicePreconditioner::Identity, schedule);
        let report = method.solve(b, &mut x, &stop, &mut ()).unwrap();
        let what = format!("{kind:?}: {report:?}, {theirs:?}");
        assert_eq!((report.outcome, report.iterations), (theirs.outcome, theirs.iterations), "{what}");
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= 1e-13), "{what}: {x:?}, {y:?}");
    }
    theirs
}

#[test]
fn breakdowns_have_their_names() {
    let Some(device) = device() else { return };
    let run = |kind, a: &Csr<f64>, b: &[f64]| as_on_the_host(&device, kind, a, b, 0.0).outcome;
    for kind in [Kind::Gmres(4), Kind::Fgmres(4)] {
        // An eigenvector: the space is exhausted after a step, by the solution.
        let diagonal = csr::<f64>(4, |i, j| if i == j { 1.0 + i as f64 } else { 0.0 });
        assert_eq!(run(kind, &diagonal, &[0.0, 0.0, 6.0, 0.0]), Outcome::Converged);
        // Exhausted without a solution.
        let singular = csr::<f64>(2, |i, j| if i == 0 && j == 0 { 1.0 } else { 0.0 });
        assert!(matches!(run(kind, &singular, &[1.0, 1.0]), Outcome::Breakdown(_)));
        let nilpotent = csr::<f64>(2, |i, j| if (i, j) == (0, 1) { 1.0 } else { 0.0 });
        assert_eq!(run(kind, &nilpotent, &[1.0, 0.0]), Outcome::Breakdown(Breakdown::SingularOperator));
    }
    // No step gains anything before the last of six: GMRES(4) would do the same for ever.
    let e1 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(run(Kind::Gmres(4), &cyclic(6), &e1), Outcome::Breakdown(Breakdown::Stagnated));
    assert_eq!(run(Kind::Fgmres(4), &cyclic(6), &e1), Outcome::IterationLimit);
    assert_eq!(run(Kind::Gmres(6), &cyclic(6), &e1), Outcome::Converged);
    // A start without a residual.
    let far = as_on_the_host(&device, Kind::Gmres(4), &csr(3, |i, j| (i + j + 1) as f64), &[1.0; 3], f64::MAX);
    assert_eq!(far.outcome, Outcome::Breakdown(Breakdown::NonFinite));
}

#[test]
fn numbers_that_leave_the_range_are_a_breakdown() {
    let Some(device) = device() else { return };
    // (A·M⁻¹·v)ᵀ(A·M⁻¹·v) is beyond the range of the device's sums.
    let a = csr::<f64>(2, |i, j| if i == j { 1e-200 } else { 1.0 });
    for schedule in BOTH {
        let mut x = [0.0; 2];
        let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Jacobi, 2, schedule).unwrap();
        let report = method.solve(&[1.0, 2.0], &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!((report.outcome, x), (Outcome::Breakdown(Breakdown::NonFinite), [0.0; 2]));
    }
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
        let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Jacobi, 30, Schedule::Auto).unwrap();
        let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
        // x underflows in the first case: no method reaches the tolerance then, and none says so.
        let reachable = rhs / scale > 1e-290;
        assert_eq!(report.outcome == Outcome::Converged, reachable, "{scale:e}, {rhs:e}: {report:?}");
    }
}

#[test]
fn storage_is_what_the_documentation_says() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(9, 0.4);
    let (n, m, blocks) = (81, 6, 1);
    let ilu0 = DevicePreconditioner::Ilu0(TriangularSolves::Levels);
    for (precond, kind, vectors) in [
        (&DevicePreconditioner::Identity, Kind::Gmres(m), m + 4),
        (&DevicePreconditioner::Jacobi, Kind::Fgmres(m), m + 4),
        (&ilu0, Kind::Gmres(m), m + 5),
        (&ilu0, Kind::Fgmres(m), 2 * m + 4),
    ] {
        let workspace = kind.on(&device, &a, precond, Schedule::Launches).bytes().workspace;
        // Two states of nine fields, 64 norms, and a counter and a number of four bytes beside them.
        let state = (2 * 9 + 64) * 8 + 8;
        assert_eq!(workspace, 8 * (vectors * n + (m + 1) * blocks + m * m + 6 * m + 6) + state, "{kind:?}");
    }
}

#[test]
fn input_is_checked_by_name() {
    let Some(device) = device() else { return };
    let a = graded::<f64>(3);
    let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 3, Schedule::Auto).unwrap();
    let (mut x, stop) = ([0.0; 3], StopCriterion::default());
    assert!(method.solve(&[1.0; 2], &mut x, &stop, &mut ()).is_err());
    let error = method.solve(&[1.0, f64::NAN, 0.0], &mut x, &stop, &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "right-hand side: entry at row 1, column 0 (from 0) is NaN, not a finite number");
    let precond = DevicePreconditioner::Ilu0(TriangularSolves::Levels);
    let error = DeviceGmres::new(&device, &a, &precond, 3, Schedule::Persistent).err().unwrap();
    assert!(error.to_string().contains("launches of its own"), "{error}");
}

/// Every column has the report and the bits that it has alone.
fn columns_are_as_alone<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    precond: &DevicePreconditioner,
    kind: Kind,
    schedule: Schedule,
    stop: &StopCriterion,
    b: &Mat<T>,
) -> Vec<SolveReport> {
    let (n, nrhs) = (b.nrows(), b.ncols());
    let mut x = Mat::zeros(n, nrhs);
    let mut method = kind.on(device, a, precond, schedule);
    let reports = method.solve_many(b.as_ref(), x.as_mut(), stop, &mut ()).unwrap();
    assert_eq!(reports.len(), nrhs);
    for (j, report) in reports.iter().enumerate() {
        let mut alone = vec![T::default(); n];
        let mut method = kind.on(device, a, precond, schedule);
        let expected = method.solve(b.col_as_slice(j), &mut alone, stop, &mut ()).unwrap();
        let what = format!("{kind:?}, {precond:?}, {schedule:?}, column {j}: {report:?}, {expected:?}");
        let counts = |r: &SolveReport| {
            (r.method, r.outcome, r.iterations, r.operator_applications, r.preconditioner_applications)
        };
        assert_eq!(counts(report), counts(&expected), "{what}");
        assert_eq!(report.recurrence_residual, expected.recurrence_residual, "{what}");
        assert_eq!(x.col_as_slice(j), alone, "{what}");
    }
    reports
}

#[test]
fn columns_in_step_are_those_that_are_alone() {
    let Some(device) = device() else { return };
    let n = 81;
    let a = stencil::<f64>(9, 0.4);
    // Random; zero; random and large; an eigenvector of no step but the first, nearly; random and small.
    let mut numbers = Numbers(5);
    let mut b = Mat::from_fn(n, 5, |_, j| numbers.real::<f64>() * [1.0, 0.0, 1e200, 1.0, 1e-200][j]);
    let smooth: Vec<f64> = (0..n).map(|i| ((1 + i % 9) as f64 * 0.3).sin()).collect();
    a.apply(1.0, &smooth, 0.0, b.col_as_slice_mut(3));
    let stop = StopCriterion { rtol: 1e-7, ..StopCriterion::default() };
    let levels = TriangularSolves::Levels;
    let ssor = DevicePreconditioner::SsorAi { omega: 1.1, series: Series::First, triangles: Triangles::Stored };
    let cases = [
        (DevicePreconditioner::Identity, Kind::Gmres(7), &BOTH[..]),
        (DevicePreconditioner::Jacobi, Kind::Fgmres(40), &BOTH[..]),
        (DevicePreconditioner::Ilu0(levels), Kind::Gmres(4), &BOTH[..1]),
        (DevicePreconditioner::Ilu0(levels), Kind::Fgmres(4), &BOTH[..1]),
    ];
    for (precond, kind, schedules) in cases {
        for &schedule in schedules {
            let reports = columns_are_as_alone(&device, &a, &precond, kind, schedule, &stop, &b);
            assert!(reports.iter().all(|r| r.outcome == Outcome::Converged), "{precond:?}");
            assert_eq!(reports[1].iterations, 0);
            let steps: Vec<_> = reports.iter().map(|r| r.iterations).collect();
            assert!(steps.iter().max() > steps.iter().filter(|s| **s > 0).min(), "some end earlier: {steps:?}");
        }
    }
    // A preconditioner that has memory of its own, in one launch for a column alone.
    let symmetric = stencil::<f64>(9, 0.0);
    for &schedule in &BOTH {
        columns_are_as_alone(&device, &symmetric, &ssor, Kind::Fgmres(6), schedule, &stop, &b);
    }
    let single = Mat::from_fn(n, 3, |_, _| numbers.real::<f32>());
    let stop = StopCriterion { rtol: 1e-4, ..StopCriterion::default() };
    columns_are_as_alone(
        &device,
        &stencil(9, 0.4),
        &DevicePreconditioner::Jacobi,
        Kind::Gmres(6),
        BOTH[1],
        &stop,
        &single,
    );
}

#[test]
fn columns_that_break_down_or_run_out_of_steps_disturb_no_other() {
    let Some(device) = device() else { return };
    // [C 0; 0 0] with a cyclic C: what lies in the first rows is reached, what lies in the last is not.
    let n = 12;
    let a = csr::<f64>(n + 2, |i, j| if i < n && j < n && (j + 1) % n == i { 1.0 } else { 0.0 });
    let b = Mat::from_fn(n + 2, 4, |i, j| match j {
        0 => f64::from(u8::from(i == 0)),
        1 => f64::from(u8::from(i == n)),
        2 => 1.0,
        _ => f64::from(u8::from(i < n)),
    });
    for &schedule in &BOTH {
        for max_iters in [5, 100] {
            let stop = StopCriterion { rtol: 1e-9, max_iters, ..StopCriterion::default() };
            let identity = DevicePreconditioner::Identity;
            let reports = columns_are_as_alone(&device, &a, &identity, Kind::Gmres(30), schedule, &stop, &b);
            let found: Vec<_> = reports.iter().map(|r| (r.outcome, r.iterations)).collect();
            let first = if max_iters == 5 { (Outcome::IterationLimit, 5) } else { (Outcome::Converged, 12) };
            assert_eq!((found[0], found[3]), (first, (Outcome::Converged, 1)), "{found:?}");
            for broken in [found[1], found[2]] {
                assert!(matches!(broken.0, Outcome::Breakdown(_)) && broken.1 <= 2, "{found:?}");
            }
        }
    }
}

#[test]
fn a_monitor_hears_of_each_column_and_ends_all() {
    let Some(device) = device() else { return };
    let (n, a) = (81, stencil::<f64>(9, 0.4));
    let mut numbers = Numbers(8);
    let b = Mat::from_fn(n, 3, |_, _| numbers.real::<f64>());
    let stop = StopCriterion { rtol: 1e-8, ..StopCriterion::default() };
    let mut method = DeviceGmres::new(&device, &a, &DevicePreconditioner::Identity, 10, Schedule::Auto).unwrap();
    let (mut x, mut heard, mut column) = (Mat::zeros(n, 3), [0; 3], 0);
    let mut monitor = |progress: Progress| {
        match progress {
            Progress::Column(j) => column = j,
            Progress::Iteration { .. } => heard[column] += 1,
            _ => {}
        }
        if heard[2] > 15 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let reports = method.solve_many(b.as_ref(), x.as_mut(), &stop, &mut monitor).unwrap();
    assert!(reports.iter().all(|r| r.outcome == Outcome::Stopped), "{reports:?}");
    assert!(heard.iter().all(|h| *h > 10), "{heard:?}");
    // Columns that must be the same, and of the right length.
    let mut short = Mat::zeros(n, 2);
    assert!(method.solve_many(b.as_ref(), short.as_mut(), &stop, &mut ()).is_err());
}
