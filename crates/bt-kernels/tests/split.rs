//! One system on several devices: the bits of one device where sums are of the same rows or blocks, its answers and counts elsewhere.

mod support;

use std::ops::ControlFlow;

use bt_formats::{
    BlockTridiagonal, Csr, DiagonalKind, HybridLayout, Monitor, Note, Outcome, Partition, Progress, RealScalar, Scalar,
    SolveReport, StopCriterion,
};
use bt_iter::{Cg, Hbisa, StopRule, Sweep, TriangularSolves};
use bt_kernels::{
    Device, DeviceCg, DeviceError, DeviceHbisa, DevicePreconditioner, DeviceScalar, Place, Schedule, Shares, SplitCg,
    SplitHbisa,
};
use bt_testkit::{csr, stencil};
use faer::Mat;
use support::{Numbers, device, devices, epsilon, long_rows, on_host};

/// Norms in the order in which they are told.
#[derive(Default, PartialEq, Debug)]
struct Norms(Vec<f64>);

impl Monitor for Norms {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if let Progress::Iteration { residual, .. } = progress {
            self.0.push(residual);
        }
        ControlFlow::Continue(())
    }
}

fn on(devices: &[Device]) -> Vec<Place> {
    devices.iter().cloned().map(Place::Device).collect()
}

fn furthest<T: DeviceScalar>(x: &[T], y: &[T]) -> f64 {
    let largest = |v: &mut dyn Iterator<Item = T>| v.fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
    largest(&mut x.iter().zip(y).map(|(&x, &y)| x - y)) / largest(&mut y.iter().copied())
}

/// Tridiagonal with corners, positive definite, graded.
fn ring<T: Scalar>(n: usize) -> Csr<T> {
    csr(n, |i, j| match i.abs_diff(j) {
        0 => T::rounded(2.5 + (i % 100) as f64, 0.0),
        d if d == 1 || d + 1 == n => T::rounded(-1.0, 0.0),
        _ => T::default(),
    })
}

fn cg<T: DeviceScalar>(
    places: &[Place],
    shares: &[usize],
    a: &Csr<T>,
    precond: &DevicePreconditioner,
    b: &[T],
    stop: &StopCriterion,
) -> (Vec<T>, SolveReport, Norms) {
    let (mut x, mut norms) = (vec![T::default(); b.len()], Norms::default());
    let mut method = SplitCg::new(places, &Shares::Counts(shares.to_vec()), a, precond).unwrap();
    assert_eq!(method.counts(), shares);
    let report = method.solve(b, &mut x, stop, &mut norms).unwrap();
    (x, report, norms)
}

/// Rows cut anywhere: answers and counts of the processor.
fn cg_agrees<T: DeviceScalar>(places: &[Place], shares: &[usize], a: &Csr<T>, rtol: f64) {
    let n = shares.iter().sum();
    let b = Numbers(n as u64).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    for precond in [DevicePreconditioner::Identity, DevicePreconditioner::Jacobi] {
        let what = format!("{shares:?}, {precond:?}, {}", T::SUFFIX);
        let mut expected = vec![T::default(); n];
        let mut m = on_host(a, &precond).unwrap();
        let host = Cg::new(n).solve(a, &mut *m, &b, &mut expected, &stop, &mut ()).unwrap();
        let (x, report, norms) = cg(places, shares, a, &precond, &b, &stop);
        assert_eq!((report.method, report.outcome), ("cg", host.outcome), "{what}: {report:?}");
        assert!(report.certificate.relative_residual <= rtol, "{what}: {report:?}");
        assert!(report.iterations.abs_diff(host.iterations) <= 2 + host.iterations / 20, "{what}: {report:?}");
        assert!(norms.0.len() > report.iterations, "{what}: every norm is told");
        assert!(furthest(&x, &expected) <= 1e3 * (rtol + epsilon::<T>()), "{what}");
        // Once more: sums are in a fixed order.
        assert_eq!(cg(places, shares, a, &precond, &b, &stop).0, x, "{what}");
    }
}

#[test]
fn rows_cut_anywhere_give_the_answers_and_counts_of_the_processor() {
    let Some(devices) = devices(3) else { return };
    let (two, three) = (on(&devices[..2]), on(&devices));
    for shares in [[0, 1], [1, 0], [1, 1], [30, 1], [2, 31], [100, 157]] {
        cg_agrees::<f64>(&two, &shares, &ring(shares.iter().sum()), 1e-10);
    }
    for shares in [[0, 1, 0], [1, 1, 1], [1, 0, 2], [3, 30, 1], [257, 0, 44], [100, 100, 100]] {
        cg_agrees::<f64>(&three, &shares, &ring(shares.iter().sum()), 1e-10);
    }
    cg_agrees::<f32>(&three, &[60, 41, 20], &stencil(11, 0.0), 1e-4);
    cg_agrees::<f64>(&three, &[60, 41, 20], &stencil(11, 0.0), 1e-9);
    // Rows that refer to all of the others.
    cg_agrees::<f64>(&three, &[10, 50, 10], &long_rows(70, 60, -1.0, -1.0), 1e-9);
    cg_agrees::<f32>(&two, &[9, 36], &long_rows(45, 9, -1.0, -1.0), 1e-4);
}

/// The bits of `shares` and of one device: x, norms, outcome.
fn cg_bits<T: DeviceScalar>(places: &[Place], shares: &[&[usize]], a: &Csr<T>, scale: f64, stop: &StopCriterion) {
    let n = shares[0].iter().sum();
    let b: Vec<T> = Numbers(7).vector::<T>(n).iter().map(|&v| v * T::rounded(scale, 0.0)).collect();
    let Place::Device(first) = &places[0] else { panic!("a device") };
    for precond in [DevicePreconditioner::Identity, DevicePreconditioner::Jacobi] {
        let (mut expected, mut seen) = (vec![T::default(); n], Norms::default());
        let mut alone = DeviceCg::new(first, a, &precond, Schedule::Launches).unwrap();
        let one = alone.solve(&b, &mut expected, stop, &mut seen).unwrap();
        for shares in shares {
            let (x, report, norms) = cg(places, shares, a, &precond, &b, stop);
            let what = format!("{shares:?}, {precond:?}");
            assert_eq!((report.outcome, report.iterations), (one.outcome, one.iterations), "{what}");
            let residuals = [&report, &one].map(|report| report.certificate.relative_residual.to_bits());
            assert_eq!(residuals[0], residuals[1], "{what}");
            assert!(x == expected && norms == seen, "{what}: other bits");
        }
    }
}

#[test]
fn rows_cut_between_thread_blocks_give_the_bits_of_one_device() {
    let Some(devices) = devices(3) else { return };
    let (two, three) = (on(&devices[..2]), on(&devices));
    let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
    cg_bits::<f64>(&two, &[&[256, 444], &[512, 188], &[0, 700], &[700, 0]], &ring(700), 1.0, &stop);
    cg_bits::<f64>(&three, &[&[256, 256, 188], &[512, 0, 188], &[0, 256, 444]], &ring(700), 1.0, &stop);
    cg_bits::<f32>(&two, &[&[256, 44]], &ring(300), 1.0, &StopCriterion { rtol: 1e-4, ..stop });
    // Far from 1, with claims that do not hold and new starts, and to the limit.
    cg_bits::<f64>(&two, &[&[256, 44]], &ring(300), 2f64.powi(900), &stop);
    let hard = StopCriterion { rtol: 1e-16, max_iters: 150, ..stop };
    cg_bits::<f64>(&two, &[&[256, 44]], &ring(300), 1.0, &hard);
    cg_bits::<f64>(&two, &[&[256, 44]], &ring(300), 1.0, &StopCriterion { max_iters: 5, ..stop });
}

#[test]
fn measured_and_even_shares_are_cut_between_thread_blocks() {
    let Some(devices) = devices(3) else { return };
    let (a, b) = (ring::<f64>(1000), vec![1.0; 1000]);
    let mut answers = Vec::new();
    for shares in [Shares::Even, Shares::Measured] {
        let mut method = SplitCg::new(&on(&devices), &shares, &a, &DevicePreconditioner::Jacobi).unwrap();
        let counts = method.counts().to_vec();
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (3, 1000));
        // A device that was slow when it was measured may have no rows.
        let cuts = [counts[0], counts[0] + counts[1]];
        assert!(cuts.iter().all(|cut| cut.is_multiple_of(256) || *cut == 1000), "{counts:?}");
        let mut x = vec![0.0; 1000];
        let report = method.solve(&b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        let shares = format!("gpu:0 {}, gpu:1 {}, gpu:2 {}", counts[0], counts[1], counts[2]);
        assert!(report.notes.contains(&Note::SharedOut { what: "rows", shares }), "{:?}", report.notes);
        answers.push(x);
    }
    assert_eq!(answers[0], answers[1]);
}

/// Blocks that dominate, with couplings here and there.
fn blocks<T: Scalar>(sizes: &[usize], diagonal: DiagonalKind) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let mut numbers = Numbers(3);
    let a = csr(partition.n(), |i, j| {
        let (home, other) = (partition.block_of(i), partition.block_of(j));
        let value = match home.abs_diff(other) {
            0 if i == j => 9.0,
            0 if i.abs_diff(j) == 1 || diagonal == DiagonalKind::Dense => numbers.real::<f64>(),
            1 if numbers.below(9) == 0 => numbers.real::<f64>(),
            _ => 0.0,
        };
        T::rounded(value, 0.0)
    });
    let layout = HybridLayout { diagonal: Some(diagonal), ..HybridLayout::default() };
    BlockTridiagonal::from_csr(&a, partition, layout).unwrap()
}

fn hbisa<T: DeviceScalar>(places: &[Place], shares: &[usize], a: &BlockTridiagonal<T>, rtol: f64) {
    let Place::Device(first) = &places[0] else { panic!("a device") };
    let only_devices = places.iter().all(|place| matches!(place, Place::Device(_)));
    let n = a.partition().n();
    let b = Numbers(9).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    for sweep in [Sweep::Jacobi, Sweep::RedBlack] {
        for rule in [StopRule::Residual, StopRule::Update] {
            let what = format!("{shares:?}, {sweep:?}, {rule:?}, {}", T::SUFFIX);
            let mut method = SplitHbisa::new(places, &Shares::Counts(shares.to_vec()), a, sweep, rule).unwrap();
            let mut alone = DeviceHbisa::new(first, a, sweep, rule, Schedule::Launches).unwrap();
            // Iterates, one after another.
            for max_iters in [1, 2, 3, 4] {
                let stop = StopCriterion { rtol: 1e-300, max_iters, ..stop };
                let (mut x, mut y) = (vec![T::default(); n], vec![T::default(); n]);
                method.solve(&b, &mut x, &stop, &mut ()).unwrap();
                alone.solve(&b, &mut y, &stop, &mut ()).unwrap();
                let same = if only_devices { x == y } else { furthest(&x, &y) <= 1e2 * epsilon::<T>() };
                assert!(same, "{what}: {max_iters} sweeps");
            }
            let (mut x, mut norms) = (vec![T::default(); n], Norms::default());
            let report = method.solve(&b, &mut x, &stop, &mut norms).unwrap();
            let (mut y, mut seen) = (vec![T::default(); n], Norms::default());
            let host = Hbisa::with_options(a, sweep, rule).unwrap().solve(&b, &mut y, &stop, &mut seen);
            assert_eq!((report.method, report.outcome), (host.method, host.outcome), "{what}: {report:?}");
            assert!(report.iterations.abs_diff(host.iterations) <= 1, "{what}: {report:?}");
            for (i, (ours, theirs)) in norms.0.iter().zip(&seen.0).enumerate().skip(1) {
                assert!((ours - theirs).abs() <= 0.01 * theirs + 1e3 * epsilon::<T>(), "{what}: norm {i}");
            }
            assert!(furthest(&x, &y) <= 1e2 * rtol + 1e3 * epsilon::<T>(), "{what}");
        }
    }
}

#[test]
fn blocks_on_several_devices_have_the_iterates_of_one() {
    let Some(devices) = devices(3) else { return };
    let (two, three) = (on(&devices[..2]), on(&devices));
    let a = blocks::<f64>(&[2, 31, 1, 32, 7], DiagonalKind::Tridiagonal);
    for shares in [[2, 3], [4, 1], [0, 5]] {
        hbisa(&two, &shares, &a, 1e-9);
    }
    for shares in [[2, 2, 1], [2, 0, 3], [0, 4, 1]] {
        hbisa(&three, &shares, &a, 1e-9);
    }
    hbisa(&two, &[1, 0], &blocks::<f64>(&[33], DiagonalKind::Tridiagonal), 1e-9);
    hbisa(&three, &[0, 2, 0], &blocks::<f64>(&[1, 1], DiagonalKind::Tridiagonal), 1e-9);
    hbisa(&three, &[2, 2, 1], &blocks::<f64>(&[5, 6, 7, 1, 9], DiagonalKind::Dense), 1e-9);
    hbisa(&two, &[2, 1], &blocks::<f32>(&[4, 4, 3], DiagonalKind::Tridiagonal), 1e-4);
    // With the processor behind them, and between them.
    let [first, second] = [0, 1].map(|k| Place::Device(devices[k].clone()));
    hbisa(&[first.clone(), second.clone(), Place::Host], &[2, 2, 1], &a, 1e-9);
    hbisa(&[first, Place::Host, second], &[2, 2, 1], &a, 1e-9);
}

#[test]
fn norms_and_bits_do_not_depend_on_the_shares() {
    let Some(devices) = devices(3) else { return };
    let places = on(&devices);
    let a = blocks::<f64>(&[3; 12], DiagonalKind::Tridiagonal);
    let b = Numbers(9).vector::<f64>(36);
    for sweep in [Sweep::Jacobi, Sweep::RedBlack] {
        let mut first: Option<(Vec<f64>, Norms)> = None;
        for shares in [vec![12, 0, 0], vec![2, 8, 2], vec![0, 4, 8]]
            .map(Shares::Counts)
            .into_iter()
            .chain([Shares::Even, Shares::Measured])
        {
            let mut method = SplitHbisa::new(&places, &shares, &a, sweep, StopRule::Residual).unwrap();
            let (mut x, mut norms) = (vec![0.0; 36], Norms::default());
            let report = method.solve(&b, &mut x, &StopCriterion::default(), &mut norms).unwrap();
            assert_eq!(report.outcome, Outcome::Converged, "{shares:?}");
            let found = (x, norms);
            assert!(*first.get_or_insert_with(|| (found.0.clone(), Norms(found.1.0.clone()))) == found, "{shares:?}");
        }
    }
    // Columns one after the other, as each alone.
    let mut method = SplitHbisa::new(&places, &Shares::Even, &a, Sweep::Jacobi, StopRule::Residual).unwrap();
    let many = Mat::from_fn(36, 2, |i, j| b[i] * (1.0 + 3.0 * j as f64));
    let mut x = Mat::zeros(36, 2);
    let reports = method.solve_many(many.as_ref(), x.as_mut(), &StopCriterion::default(), &mut ()).unwrap();
    for (j, report) in reports.iter().enumerate() {
        let mut y = vec![0.0; 36];
        let alone = method.solve(many.col_as_slice(j), &mut y, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!((x.col_as_slice(j), report.iterations), (&y[..], alone.iterations), "column {j}");
    }
}

#[test]
fn what_cannot_be_split_is_refused_by_name() {
    let Some(devices) = devices(2) else { return };
    let places = on(&devices);
    let a = ring::<f64>(9);
    let even = |places: &[Place], precond| SplitCg::new(places, &Shares::Even, &a, &precond).err().unwrap().to_string();
    let none = DevicePreconditioner::Identity;
    let ilu0 = DevicePreconditioner::Ilu0(TriangularSolves::Levels);
    assert_eq!(even(&places, ilu0), "invalid preconditioner: ilu0 is not split over GPUs; none and jacobi are");
    assert!(even(&[places[0].clone(), Place::Host], none.clone()).contains("cg is split over GPUs only; cpu is among"));
    assert!(even(&[places[1].clone(), places[1].clone()], none.clone()).contains("gpu:1 is named twice"));
    assert!(even(&[], none.clone()).contains("there is none"));
    let error = SplitCg::new(&places, &Shares::Counts(vec![4, 4]), &a, &none).err().unwrap();
    assert!(error.to_string().contains("2 shares with 8 rows in all, for 2 places and 9 rows"), "{error}");
    let blocks = blocks::<f64>(&[3; 4], DiagonalKind::Tridiagonal);
    let split = |sweep| {
        let shares = Shares::Counts(vec![1, 3]);
        SplitHbisa::new(&places, &shares, &blocks, sweep, StopRule::Residual).err().map(|e| e.to_string())
    };
    assert_eq!(split(Sweep::Jacobi), None);
    assert!(
        split(Sweep::RedBlack).is_some_and(|e| e.contains("a GPU begins at block 1; red–black sweeps need an even"))
    );
    assert!(split(Sweep::GaussSeidel).is_some_and(|e| e.contains("hbisa-gs is not on the device")));
    // A diagonal without an entry, named as the caller's.
    let holed = csr(3, |i, j| if i.abs_diff(j) == 1 { 1.0 } else { f64::from(u8::from(i != 1 && i == j)) });
    let error = SplitCg::new(&places, &Shares::Even, &holed, &DevicePreconditioner::Jacobi).err().unwrap();
    assert!(matches!(error, DeviceError::Factor(_)), "{error}");
}

#[test]
fn devices_that_are_not_there_or_too_small_are_named() {
    let Some(devices) = devices(2) else { return };
    assert!(matches!(Device::open(99), Err(DeviceError::NoDevice { ordinal: 99, .. })));
    // The fourth of the stand-in's has 20 KB.
    let Ok(small) = Device::open(3) else { return };
    if small.memory() > 20_000 {
        return;
    }
    let a = ring::<f64>(2000);
    let places = [Place::Device(devices[0].clone()), Place::Device(small)];
    let error = SplitCg::new(&places, &Shares::Even, &a, &DevicePreconditioner::Identity).err().unwrap();
    assert!(matches!(error, DeviceError::OutOfMemory { free: ..=20_000, .. }), "{error}");
    let blocks = blocks::<f64>(&[100; 8], DiagonalKind::Tridiagonal);
    let error = SplitHbisa::new(&places, &Shares::Even, &blocks, Sweep::Jacobi, StopRule::Residual).err().unwrap();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
    // What is left of it is nothing: a small system fits, with the first device as before.
    cg_agrees::<f64>(&places, &[100, 20], &ring(120), 1e-10);
}

#[test]
fn one_place_is_one_device() {
    let Some(device) = device() else { return };
    cg_agrees::<f64>(&[Place::Device(device.clone())], &[33], &ring(33), 1e-10);
    hbisa(&[Place::Device(device)], &[3], &blocks::<f64>(&[5, 6, 7], DiagonalKind::Tridiagonal), 1e-9);
}
