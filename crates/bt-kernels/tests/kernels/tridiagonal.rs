//! Tridiagonal batches on the device: the host's solutions, and the host's help where rows must be exchanged.

use crate::support::{Numbers, device, epsilon};
use bt_direct::batch::{Layout, Pivoting, SystemStatus, TridiagonalBatch};
use bt_formats::{RealScalar, Scalar};
use bt_kernels::{BlockSolver, Device, DeviceScalar, DeviceTridiagonalBatch};

/// Where row i of system s lies.
fn place(layout: Layout, n: usize, m: usize, s: usize, i: usize) -> usize {
    if layout == Layout::Strided { s * n + i } else { i * m + s }
}

/// Diagonally dominant systems: lower, diag, upper.
fn dominant<T: Scalar>(layout: Layout, n: usize, m: usize) -> [Vec<T>; 3] {
    let mut numbers = Numbers((n * m) as u64);
    let mut a = [const { Vec::new() }; 3].map(|_: Vec<T>| vec![T::default(); n * m]);
    for s in 0..m {
        for i in 0..n {
            let k = place(layout, n, m, s, i);
            a[0][k] = if i > 0 { numbers.real() } else { T::default() };
            a[2][k] = if i + 1 < n { numbers.real() } else { T::default() };
            let sum = a[0][k].abs().to_f64() + a[2][k].abs().to_f64() + 0.5;
            a[1][k] = T::rounded(if numbers.below(2) == 0 { sum } else { -sum }, 0.0);
        }
    }
    a
}

/// The solvers of a thread block, or the only one of a thread.
fn solvers(layout: Layout) -> &'static [BlockSolver] {
    const ALL: [BlockSolver; 3] =
        [BlockSolver::Thomas, BlockSolver::ParallelCyclicReduction, BlockSolver::CyclicReduction];
    if layout == Layout::Interleaved { &ALL[..1] } else { &ALL }
}

fn agrees<T: DeviceScalar>(device: &Device, layout: Layout, n: usize, m: usize) {
    for &solver in solvers(layout) {
        agrees_by::<T>(device, layout, n, m, solver);
    }
}

fn agrees_by<T: DeviceScalar>(device: &Device, layout: Layout, n: usize, m: usize, solver: BlockSolver) {
    let [lower, diag, upper] = dominant::<T>(layout, n, m);
    let b = Numbers(3).vector::<T>(n * m);
    let mut expected = b.clone();
    let host = TridiagonalBatch::new(layout, n, lower.clone(), diag.clone(), upper.clone()).unwrap();
    assert!(host.solve_in_place(&mut expected, Pivoting::Partial).unwrap().all_solved());
    let batch = DeviceTridiagonalBatch::new(device, layout, n, &lower, &diag, &upper).unwrap();
    let mut batch = batch.with_solver(solver).unwrap();
    let mut x = b;
    let report = batch.solve_in_place(&mut x).unwrap();
    assert_eq!(report.on_host, [0; 0], "{solver:?}, {layout:?}, {m} systems of {n} rows");
    assert!(report.failures.is_empty());
    for (k, (&x, &e)) in x.iter().zip(&expected).enumerate() {
        // The condition number is below 2·(1 + 2/0.5).
        let error = (x - e).abs().to_f64();
        assert!(error <= 200.0 * epsilon::<T>(), "{solver:?}, {layout:?}, {m} × {n}: element {k} is off by {error:e}");
    }
}

#[test]
fn solutions_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for layout in [Layout::Strided, Layout::Interleaved] {
        for (n, m) in [(1, 1), (1, 40), (2, 3), (31, 2), (32, 5), (33, 33), (257, 2), (5, 300)] {
            agrees::<f64>(&device, layout, n, m);
            agrees::<f32>(&device, layout, n, m);
        }
    }
    agrees::<f64>(&device, Layout::Strided, 1024, 1);
    agrees::<f64>(&device, Layout::Interleaved, 1100, 2);
}

#[test]
fn systems_in_need_of_interchanges_are_solved_by_the_host() {
    let Some(device) = device() else { return };
    for layout in [Layout::Strided, Layout::Interleaved] {
        let (n, m) = (6, 4);
        let [lower, mut diag, upper] = dominant::<f64>(layout, n, m);
        let at = |s, i| place(layout, n, m, s, i);
        // System 1: a zero pivot. System 2: singular. System 3: not finite.
        diag[at(1, 0)] = 0.0;
        let mut lower = lower;
        (diag[at(2, 0)], lower[at(2, 1)]) = (0.0, 0.0);
        diag[at(3, 2)] = f64::NAN;
        let b = Numbers(5).vector::<f64>(n * m);
        let mut expected = b.clone();
        let host = TridiagonalBatch::new(layout, n, lower.clone(), diag.clone(), upper.clone()).unwrap();
        let verdict = host.solve_in_place(&mut expected, Pivoting::Partial).unwrap();
        let mut x = b.clone();
        let mut batch = DeviceTridiagonalBatch::new(&device, layout, n, &lower, &diag, &upper).unwrap();
        let report = batch.solve_in_place(&mut x).unwrap();
        assert_eq!(report.on_host, [1, 2, 3], "{layout:?}");
        assert_eq!(report.failures, verdict.failures(), "{layout:?}");
        assert_eq!(report.failures[0].status, SystemStatus::Singular { column: 0 });
        for i in 0..n {
            assert!(f64::abs(x[at(0, i)] - expected[at(0, i)]) <= 1e-13);
            assert_eq!(x[at(1, i)].to_bits(), expected[at(1, i)].to_bits());
            assert!(x[at(2, i)].is_nan() && x[at(3, i)].is_nan());
        }
    }
}

#[test]
fn huge_values_are_no_excuse() {
    let Some(device) = device() else { return };
    // |A|·|x| overflows: the device cannot judge, the host does.
    let (lower, diag, upper) = ([0.0, 1e200], [3e200, 3e200], [1e200, 0.0]);
    let mut batch = DeviceTridiagonalBatch::new(&device, Layout::Strided, 2, &lower, &diag, &upper).unwrap();
    let mut x = [4e300, 4e300];
    assert!(batch.solve_in_place(&mut x).unwrap().failures.is_empty());
    assert!(x.iter().all(|v| f64::abs(v / 1e100 - 1.0) < 1e-14), "{x:?}");
}

#[test]
fn sizes_are_checked() {
    let Some(device) = device() else { return };
    let v = vec![1.0; 2050];
    let new = |layout, n, lower| DeviceTridiagonalBatch::new(&device, layout, n, lower, &v, &v).map(|_| ());
    assert!(new(Layout::Strided, 1025, &v).unwrap_err().to_string().contains("1025 rows"));
    assert!(new(Layout::Interleaved, 1025, &v).is_ok());
    let interleaved = DeviceTridiagonalBatch::new(&device, Layout::Interleaved, 1025, &v, &v, &v).unwrap();
    let refused = interleaved.with_solver(BlockSolver::CyclicReduction).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("CyclicReduction is for a thread block"), "{refused}");
    assert!(new(Layout::Strided, 3, &v).unwrap_err().to_string().contains("not systems of 3"));
    assert!(new(Layout::Strided, 0, &v).is_err());
    assert!(new(Layout::Strided, 2, &v[1..]).is_err());
    let mut batch = DeviceTridiagonalBatch::new(&device, Layout::Strided, 2, &v, &v, &v).unwrap();
    assert!(batch.solve_in_place(&mut [1.0; 3]).is_err());
    let mut none = DeviceTridiagonalBatch::<f32>::new(&device, Layout::Strided, 2, &[], &[], &[]).unwrap();
    assert!(none.solve_in_place(&mut []).unwrap().on_host.is_empty());
}
