//! BiCGSTAB on the device: the host's answers and outcomes.

use crate::support::{Numbers, device, epsilon, long_rows, on_host};
use bt_formats::{Breakdown, Csr, LinearOperator, Outcome, Partition, RealScalar, Scalar, StopCriterion};
use bt_iter::{BiCgStab, Identity, TriangularSolves};
use bt_kernels::{Device, DeviceBiCgStab, DevicePreconditioner, DeviceScalar, Schedule};
use bt_testkit::{csr, stencil};

/// Unsymmetric, with a diagonal over two decades.
pub fn graded<T: Scalar>(n: usize) -> Csr<T> {
    let entry = |i: usize, j: usize| match (i.abs_diff(j), i < j) {
        (0, _) => 3.0 + (i % 100) as f64,
        (1, true) => -1.6,
        (1, false) => 0.7,
        _ => 0.0,
    };
    csr(n, |i, j| T::rounded(entry(i, j), 0.0))
}

fn agrees<T: DeviceScalar>(device: &Device, a: &Csr<T>, precond: &DevicePreconditioner, rtol: f64) -> [usize; 2] {
    let n = a.nrows();
    let b = Numbers(n as u64).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    let mut m = on_host(a, precond).unwrap();
    let (mut x, mut expected) = (vec![T::default(); n], vec![T::default(); n]);
    let host = BiCgStab::new(n).solve(a, &mut *m, &b, &mut expected, &stop, &mut ()).unwrap();
    let mut method = DeviceBiCgStab::new(device, a, precond, Schedule::Auto).unwrap();
    let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
    if method.is_persistent() {
        let mut launched = vec![T::default(); n];
        let mut method = DeviceBiCgStab::new(device, a, precond, Schedule::Launches).unwrap();
        let again = method.solve(&b, &mut launched, &stop, &mut ()).unwrap();
        assert!(!method.is_persistent() && again.iterations == report.iterations && launched == x, "n = {n}");
    }
    assert_eq!((report.method, report.outcome, host.outcome), ("bicgstab", Outcome::Converged, Outcome::Converged));
    assert!(report.certificate.relative_residual <= rtol, "n = {n}: {report:?}");
    // Rounding goes its own ways in this method; the first steps it cannot change.
    let (ours, theirs) = (report.iterations, host.iterations);
    assert!(ours.abs_diff(theirs) <= 3 + theirs / 4, "n = {n}: {ours} iterations, on the host {theirs}");
    let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
    let error = x.iter().zip(&expected).fold(0.0, |m: f64, (&x, &e)| m.max((x - e).abs().to_f64()));
    assert!(error <= (1e3 * rtol + 1e3 * epsilon::<T>()) * largest, "n = {n}: off by {error:e} of {largest:e}");
    [ours, theirs]
}

#[test]
fn answers_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for n in [1, 2, 31, 33, 257] {
        for precond in [DevicePreconditioner::Identity, DevicePreconditioner::Jacobi] {
            agrees::<f64>(&device, &graded(n), &precond, 1e-9);
            agrees::<f32>(&device, &graded(n), &precond, 1e-4);
        }
    }
    agrees::<f64>(&device, &stencil(11, 0.4), &DevicePreconditioner::Jacobi, 1e-9);
}

#[test]
fn long_rows_are_shared_by_lanes() {
    let Some(device) = device() else { return };
    for (n, reach) in [(45, 9), (70, 60)] {
        agrees::<f64>(&device, &long_rows(n, reach, -1.0, 0.5), &DevicePreconditioner::Identity, 1e-9);
        agrees::<f32>(&device, &long_rows(n, reach, -1.0, 0.5), &DevicePreconditioner::Identity, 1e-4);
    }
}

#[test]
fn preconditioners_give_the_answers_of_the_host() {
    let Some(device) = device() else { return };
    for precond in [
        DevicePreconditioner::BlockJacobi(Partition::uniform(121, 11).unwrap()),
        DevicePreconditioner::Ilu0(TriangularSolves::Levels),
        DevicePreconditioner::Ilu0(TriangularSolves::Sweeps(3)),
    ] {
        let double = agrees::<f64>(&device, &stencil(11, 0.4), &precond, 1e-9);
        let single = agrees::<f32>(&device, &stencil(11, 0.4), &precond, 1e-4);
        for [ours, theirs] in [double, single] {
            assert!(ours.abs_diff(theirs) <= 1, "{precond:?}: {ours} iterations, on the host {theirs}");
        }
    }
}

#[test]
fn limits_and_starts_are_as_on_the_host() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(15, 0.4);
    let b = Numbers(4).vector::<f64>(225);
    let mut method = DeviceBiCgStab::new(&device, &a, &DevicePreconditioner::Identity, Schedule::Auto).unwrap();
    for max_iters in [0, 1, 2, 5] {
        let (mut x, mut y) = (vec![0.0; 225], vec![0.0; 225]);
        let stop = StopCriterion { rtol: 1e-14, max_iters, ..StopCriterion::default() };
        let report = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
        assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, max_iters));
        let host = BiCgStab::new(225).solve(&a, &mut Identity::new(225), &b, &mut y, &stop, &mut ()).unwrap();
        let (ours, theirs) = (report.certificate.relative_residual, host.certificate.relative_residual);
        assert!((ours - theirs).abs() <= 1e-9 * theirs, "{max_iters}: {ours:e}, {theirs:e}");
    }
    let stop = StopCriterion::default();
    let mut x = vec![0.0; 225];
    assert!(method.solve(&b, &mut x, &stop, &mut ()).unwrap().iterations > 5);
    assert_eq!(method.solve(&b, &mut x, &stop, &mut ()).unwrap().iterations, 0);
    assert_eq!(method.solve(&[0.0; 225], &mut [0.0; 225], &stop, &mut ()).unwrap().iterations, 0);
}

#[test]
fn breakdowns_have_their_names() {
    let Some(device) = device() else { return };
    let solve = |a: &Csr<f64>, b: &[f64]| {
        let mut x = vec![0.0; b.len()];
        let mut method = DeviceBiCgStab::new(&device, a, &DevicePreconditioner::Identity, Schedule::Launches).unwrap();
        let report = method.solve(b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        let mut method =
            DeviceBiCgStab::new(&device, a, &DevicePreconditioner::Identity, Schedule::Persistent).unwrap();
        let (mut z, stop) = (vec![0.0; b.len()], StopCriterion::default());
        let together = method.solve(b, &mut z, &stop, &mut ()).unwrap();
        assert_eq!((together.outcome, together.iterations, &z), (report.outcome, report.iterations, &x));
        let (mut host, mut y) = (BiCgStab::new(b.len()), vec![0.0; b.len()]);
        let theirs = host.solve(a, &mut Identity::new(b.len()), b, &mut y, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, theirs.outcome);
        report.outcome
    };
    // (r, A·r) = 0 for every r: skew-symmetric.
    let skew = csr::<f64>(2, |i, j| j as f64 - i as f64);
    assert_eq!(solve(&skew, &[1.0, 2.0]), Outcome::Breakdown(Breakdown::RhoZero));
    // The first direction is the solution of the first equation, and the rest is out of reach.
    let singular = csr::<f64>(2, |i, j| if i == 0 && j == 0 { 1.0 } else { 0.0 });
    assert!(matches!(solve(&singular, &[1.0, 1.0]), Outcome::Breakdown(_)));
}
