//! Bytes that kernels access beside the formulas of their families: the stand-in counts them. One test, since it counts all of a device.

mod support;

use bt_formats::{LinearOperator, StopCriterion};
use bt_kernels::{
    Device, DeviceCg, DeviceCsr, DevicePreconditioner, DeviceScalar, DeviceVec, RowRule, Schedule, dot, update,
};
use bt_testkit::stencil;
use support::{Numbers, device};

/// What `work` accesses, if the driver counts it.
fn counted(work: impl FnOnce()) -> Option<u64> {
    let before = bt_cuda_driver::traffic(0)?;
    work();
    Some(bt_cuda_driver::traffic(0)? - before)
}

fn families<T: DeviceScalar>(device: &Device) {
    let (one, s) = (T::from_parts(1.0, 0.0), size_of::<T>() as u64);
    for n in [1, 255, 257, 1000] {
        let vector = || DeviceVec::from_slice(device, &Numbers(1).vector::<T>(n)).unwrap();
        let (x, mut y, values, blocks) = (vector(), vector(), n as u64 * s, n.div_ceil(256) as u64);
        // blas1: 2n values, 3n values, 2n where y is not read; a sum of every thread block, written and read, and theirs.
        let sums = 16 * blocks + 8;
        let found = counted(|| assert!(dot(&x, &y).unwrap().is_finite()));
        assert!(found.is_none_or(|found| found == 2 * values + sums), "dot, n = {n}: {found:?}");
        for (beta, times) in [(one, 3), (T::default(), 2)] {
            let found = counted(|| assert!(update(one, &x, beta, &mut y).unwrap().is_finite()));
            assert!(found.is_none_or(|found| found == times * values + sums), "update, n = {n}: {found:?}");
        }
    }
    // spmv: nnz(s + 4) + 4(n + 1) + 2s·n, with x gathered for every entry in place of once, and both ends of every row by every lane.
    let a = stencil::<T>(20, 0.0);
    let (n, nnz) = (a.nrows() as u64, a.values().len() as u64);
    let x = DeviceVec::from_slice(device, &Numbers(2).vector::<T>(a.nrows())).unwrap();
    for (rule, lanes) in [(RowRule::Thread, 1), (RowRule::Eight, 8), (RowRule::Warp, 32)] {
        let on_device = DeviceCsr::with_rule(device, &a, rule).unwrap();
        for (beta, times) in [(T::default(), 1), (one, 2)] {
            let mut y = DeviceVec::zeros(device, a.nrows()).unwrap();
            let found = counted(|| on_device.apply(one, &x, beta, &mut y).unwrap());
            let ends = found.map(|found| found - nnz * (2 * s + 4) - times * s * n);
            assert!(ends.is_none_or(|ends| ends == 8 * lanes * n), "{rule:?}: {ends:?} bytes of ends of rows");
        }
    }
}

/// cg: nnz(s + 4) + 4n + 10s·n and two gathers an iteration, with both ends of every row; sums of all thread blocks, which each of them adds
/// up. What is left: numbers of the state.
fn cg<T: DeviceScalar>(device: &Device, k: usize) -> Option<u64> {
    let a = stencil::<T>(k, 0.0);
    let (n, nnz, s) = (a.nrows() as u64, a.values().len() as u64, size_of::<T>() as u64);
    let b = Numbers(3).vector::<T>(a.nrows());
    let mut method = DeviceCg::new(device, &a, &DevicePreconditioner::Identity, Schedule::Launches).unwrap();
    let mut of = |max_iters| {
        let stop = StopCriterion { rtol: 1e-300, max_iters, ..StopCriterion::default() };
        let mut x = vec![T::default(); b.len()];
        counted(|| assert_eq!(method.solve(&b, &mut x, &stop, &mut ()).unwrap().iterations, max_iters))
    };
    let (few, more) = (of(3)?, of(4)?);
    let (vectors, blocks) = (nnz * (s + 4) + 8 * n + 2 * s * nnz + 10 * s * n, n.div_ceil(256));
    Some(more - few - vectors - 24 * blocks * blocks - 24 * blocks)
}

#[test]
fn kernels_access_the_bytes_of_their_formulas() {
    let Some(device) = device() else { return };
    // The stand-in does both.
    assert_eq!(bt_cuda_driver::traffic(0).is_some(), bt_cuda_driver::look_for_races());
    families::<f64>(&device);
    families::<f32>(&device);
    for k in [16, 32] {
        for rest in [cg::<f64>(&device, k), cg::<f32>(&device, k)] {
            // Seven numbers of the state by every thread, nine by one.
            assert!(rest.is_none_or(|rest| rest == (7 * 8 * k * k + 72) as u64), "cg, {k} × {k}: {rest:?} bytes more");
        }
    }
}
