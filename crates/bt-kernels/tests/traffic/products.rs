//! Vectors, and products in every format: blas1, spmv, bcsr.

use bt_formats::{Bcsr, BlockTridiagonal, Dia, DiagonalKind, HybridLayout, LinearOperator, Partition};
use bt_kernels::{
    Device, DeviceBcsr, DeviceCsr, DeviceDia, DeviceHybrid, DeviceScalar, DeviceVec, RowRule, dot, update,
};
use bt_testkit::{csr, stencil};

use crate::support::Numbers;
use crate::{SUM, alone, counted, exactly, tree};

fn vectors<T: DeviceScalar>(device: &Device) {
    let (one, s) = (T::rounded(1.0, 0.0), size_of::<T>() as u64);
    for n in [1, 255, 257, 1000] {
        let vector = || DeviceVec::from_slice(device, &Numbers(1).vector::<T>(n)).unwrap();
        let (x, mut y) = (vector(), vector());
        let (n, blocks) = (n as u64, (n as u64).div_ceil(256));
        // A sum of every thread block, written and read, and theirs.
        let (sums, additions) = (16 * blocks + 8, (blocks + 1) * SUM + blocks);
        let found = counted(|| assert!(dot(&x, &y).unwrap().is_finite()));
        exactly(format!("dot, n = {n}"), found, 2 * s * n + sums, 2 * n + additions);
        for (beta, values, flops) in [(one, 3, 5), (T::default(), 2, 3)] {
            let found = counted(|| assert!(update(one, &x, beta, &mut y).unwrap().is_finite()));
            exactly(format!("update, n = {n}"), found, values * s * n + sums, flops * n + additions);
        }
    }
}

fn rows<T: DeviceScalar>(device: &Device) {
    let (one, s) = (T::rounded(1.0, 0.0), size_of::<T>() as u64);
    let a = stencil::<T>(20, 0.0);
    let (n, nnz) = (a.nrows() as u64, a.values().len() as u64);
    let x = DeviceVec::from_slice(device, &Numbers(2).vector::<T>(a.nrows())).unwrap();
    let mut y = DeviceVec::zeros(device, a.nrows()).unwrap();
    for (rule, lanes) in [(RowRule::Thread, 1u64), (RowRule::Eight, 8), (RowRule::Warp, 32)] {
        let on_device = DeviceCsr::with_options(device, &a, rule).unwrap();
        for (beta, values, flops) in [(T::default(), 1, 1), (one, 2, 3)] {
            let found = counted(|| on_device.apply(one, &x, beta, &mut y).unwrap());
            // x for every entry, both ends of a row by every lane; the tree of the lanes.
            let bytes = nnz * (s + 4) + nnz * s + 8 * lanes * n + values * s * n;
            exactly(format!("{rule:?}"), found, bytes, 2 * nnz + flops * n + tree(n, lanes));
        }
    }
    let segments = DeviceCsr::with_options(device, &a, RowRule::Segments).unwrap();
    let found = counted(|| segments.apply(one, &x, T::default(), &mut y).unwrap());
    // One group: its ends and those of its rows by every thread, and both ends of a row.
    exactly("segments", found, nnz * (s + 4) + nnz * s + s * n + 8 * n + 20 * 256, 2 * nnz + n);

    let dia = Dia::from_csr(&a).unwrap();
    let found = counted(|| DeviceDia::new(device, &dia).unwrap().apply(one, &x, T::default(), &mut y).unwrap());
    let (diagonals, outside) = (5, 2 * 20 + 2);
    exactly(
        "dia",
        found,
        (diagonals * n - outside) * 2 * s + 4 * diagonals * n + s * n,
        2 * (diagonals * n - outside) + n,
    );
    for (kind, inside) in [(DiagonalKind::Tridiagonal, 20 * (3 * 20 - 2)), (DiagonalKind::Dense, 20 * 20 * 20)] {
        let layout = HybridLayout { diagonal: Some(kind), ..HybridLayout::default() };
        let blocks = BlockTridiagonal::from_csr(&a, Partition::uniform(400, 20).unwrap(), layout).unwrap();
        let hybrid = DeviceHybrid::new(device, &blocks).unwrap();
        let found = counted(|| hybrid.apply(one, &x, T::default(), &mut y).unwrap());
        let couplings = 2 * 19 * 20;
        // home, first and its end, both ends of a row; where a dense block begins.
        let places = if kind == DiagonalKind::Dense { 28 } else { 20 };
        let bytes = inside * 2 * s + couplings * (2 * s + 4) + places * n + s * n;
        exactly(format!("hybrid, {kind:?}"), found, bytes, 2 * (inside + couplings) + n);
    }
}

fn blocks<T: DeviceScalar>(device: &Device) {
    let (one, s) = (T::rounded(1.0, 0.0), size_of::<T>() as u64);
    for k in 1..=6u64 {
        let n = 60 * k;
        let a =
            csr::<T>(n as usize, |i, j| if (i as u64 / k).abs_diff(j as u64 / k) <= 1 { one } else { T::default() });
        let a = Bcsr::from_csr(&a, k as usize).unwrap();
        let p = a.col_idx().len() as u64;
        let on_device = DeviceBcsr::new(device, &a).unwrap();
        let x = DeviceVec::from_slice(device, &Numbers(3).vector::<T>(n as usize)).unwrap();
        let mut y = DeviceVec::zeros(device, n as usize).unwrap();
        for (beta, values, flops) in [(T::default(), 1, 1), (one, 2, 3)] {
            let found = counted(|| on_device.apply(one, &x, beta, &mut y).unwrap());
            // The k threads of a row of blocks read its columns each, and x for every element.
            let bytes = p * (s * k * k + 4 * k) + 8 * n + s * p * k * k + values * s * n;
            exactly(format!("bcsr, k = {k}"), found, bytes, 2 * p * k * k + flops * n);
        }
    }
}

#[test]
fn products_take_what_their_headers_say() {
    let Some((device, _guard)) = alone() else { return };
    vectors::<f64>(&device);
    vectors::<f32>(&device);
    rows::<f64>(&device);
    rows::<f32>(&device);
    blocks::<f64>(&device);
    blocks::<f32>(&device);
}
