//! Iterations of Krylov methods: cg, bicgstab, gmres.

use bt_formats::{LinearOperator, StopCriterion};
use bt_kernels::{Device, DeviceBiCgStab, DeviceCg, DeviceGmres, DevicePreconditioner, DeviceScalar, Schedule};
use bt_testkit::{csr, stencil};
use faer::Mat;

use crate::support::Numbers;
use crate::{Count, SUM, SUM_FOR_ALL, alone, beyond, counted, exactly};

const JACOBI: DevicePreconditioner = DevicePreconditioner::Jacobi;

fn stop(max_iters: usize) -> StopCriterion {
    StopCriterion { rtol: 1e-300, max_iters, ..StopCriterion::default() }
}

/// What one iteration takes, M = diag(A): the fourth.
fn iteration<T: DeviceScalar>(n: usize, mut run: impl FnMut(&[T], &mut [T], &StopCriterion)) -> Option<Count> {
    let b = Numbers(3).vector::<T>(n);
    let mut of = |iterations| counted(|| run(&b, &mut vec![T::default(); n], &stop(iterations)));
    let less = of(3);
    beyond(of(4), less)
}

fn cg<T: DeviceScalar>(device: &Device, k: usize) {
    let a = stencil::<T>(k, 0.0);
    let (n, nnz, s) = (a.nrows() as u64, a.values().len() as u64, size_of::<T>() as u64);
    for (precond, diagonal) in [(DevicePreconditioner::Identity, 0), (JACOBI, 1)] {
        let mut method = DeviceCg::new(device, &a, &precond, Schedule::Launches).unwrap();
        let found = iteration::<T>(a.nrows(), |b, x, stop| {
            let report = method.solve(b, x, stop, &mut ()).unwrap();
            assert_eq!(report.iterations, stop.max_iters);
        });
        let blocks = n.div_ceil(256);
        let vectors = nnz * (s + 4) + 8 * n + 2 * s * nnz + (10 + 2 * diagonal) * s * n;
        // Sums of all thread blocks, which each of them adds up; seven numbers of the state by every thread, nine by one.
        let bytes = vectors + 24 * blocks * blocks + 24 * blocks + 7 * 8 * blocks * 256 + 72;
        let sums = blocks * (3 * blocks + 3 * SUM_FOR_ALL + 3 * SUM + 3 * 256);
        exactly(format!("cg, {k}, {diagonal}"), found, bytes, 4 * nnz + (12 + diagonal) * n + sums);
    }
}

fn bicgstab<T: DeviceScalar>(device: &Device, k: usize) {
    let a = stencil::<T>(k, 0.3);
    let (n, nnz, s) = (a.nrows() as u64, a.values().len() as u64, size_of::<T>() as u64);
    for (precond, diagonal) in [(DevicePreconditioner::Identity, 0), (JACOBI, 1)] {
        let mut method = DeviceBiCgStab::new(device, &a, &precond, Schedule::Launches).unwrap();
        let found = iteration::<T>(a.nrows(), |b, x, stop| {
            let report = method.solve(b, x, stop, &mut ()).unwrap();
            assert_eq!(report.iterations, stop.max_iters);
        });
        let blocks = n.div_ceil(256);
        // Nineteen numbers of the state by every thread, eleven by one; seventeen operations on them.
        let bytes = 2 * nnz * (s + 4) + 16 * n + 2 * s * nnz + (21 + 2 * diagonal) * s * n;
        let bytes = bytes + 56 * blocks * (blocks + 1) + 19 * 8 * blocks * 256 + 11 * 8;
        let sums = blocks * (7 * blocks + 7 * SUM_FOR_ALL + 7 * SUM + 17 * 256);
        exactly(format!("bicgstab, {k}, {diagonal}"), found, bytes, 4 * nnz + (26 + 2 * diagonal) * n + sums);
    }
}

fn gmres<T: DeviceScalar>(device: &Device, k: usize) {
    let a = stencil::<T>(k, 0.3);
    let (n, nnz, s) = (a.nrows() as u64, a.values().len() as u64, size_of::<T>() as u64);
    for (precond, diagonal) in [(DevicePreconditioner::Identity, 0), (JACOBI, 1)] {
        for columns in [2, 4, 5, 8] {
            let mut method = DeviceGmres::new(device, &a, &precond, 30, Schedule::Launches).unwrap();
            let b = Numbers(3).vector::<T>(a.nrows());
            let mut of = |iterations| {
                let mut x = vec![T::default(); a.nrows()];
                counted(|| {
                    assert_eq!(method.solve(&b, &mut x, &stop(iterations), &mut ()).unwrap().iterations, iterations);
                })
            };
            let less = of(columns - 1);
            let found = beyond(of(columns), less);
            let (c, blocks) = (columns as u64, n.div_ceil(256));
            // With a column more x takes at the end: s*n and 2n, and a step of the substitution.
            let vectors = nnz * (s + 4) + 8 * n + (1 + diagonal) * s * nnz + (4 * c + 8) * s * n + s * n;
            // For every column h, g and g again by every thread; sums of the blocks, written and read, twice; both states by the threads of its
            // totals, twice; its rotation and its part of the substitution.
            let numbers = c * (24 * 256 * blocks + 32 * blocks + 16 + 32 * 256 + 64);
            let rest = (88 * 256 + 32) * blocks + 64 * 256 + 80;
            // For the sums of each group of four columns over a warp, of all warps, of all blocks.
            let tree = n.div_ceil(32) * (4 * 32 * 4 * (c + 1).div_ceil(4) + 2 * (c + 1)) + 8 * (c + 1) * blocks;
            let totals = (c + 1) * (blocks + SUM);
            let project = 2 * ((c + 1) * n + tree + totals) + 2 * c * n;
            let extend = (2 * c + 1) * n + blocks * 256 * (2 * c + 6) + 7 * (c - 1) + 2 * c;
            let flops = (2 + diagonal) * nnz + project + extend + 2 * n + 2 * 256 + 11;
            exactly(format!("gmres, {k}, {diagonal}, column {c}"), found, vectors + numbers + rest, flops);
        }
    }
}

/// Of conjugate gradients with the approximate inverse by blocks of two rows: products by them, too.
fn cg_by_blocks<T: DeviceScalar>(device: &Device, nodes: usize) {
    let n = 2 * nodes;
    let a = csr::<T>(n, |i, j| {
        let value = if i == j { 9.0 } else { -1.0 };
        T::rounded(if (i / 2).abs_diff(j / 2) <= 1 { value } else { 0.0 }, 0.0)
    });
    let precond = DevicePreconditioner::BlockSsorAi { omega: 1.2, block_size: 2 };
    let mut method = DeviceCg::new(device, &a, &precond, Schedule::Launches).unwrap();
    assert_eq!(method.block_rows(), Some(2));
    let found = iteration::<T>(n, |b, x, stop| {
        assert_eq!(method.solve(b, x, stop, &mut ()).unwrap().iterations, stop.max_iters);
    });
    let (n, nodes, s) = (n as u64, nodes as u64, size_of::<T>() as u64);
    let (p, blocks, k) = (3 * nodes - 2, n.div_ceil(256), 2);
    let sums = blocks * (3 * blocks + 3 * SUM_FOR_ALL + 4 * SUM + 3 * 256);
    // M: two products with each triangle and one with the diagonal blocks; r'z in a launch of its own.
    let inverse = 2 * (2 * (p - nodes) + nodes) * k * k + 4 * 3 * n + n;
    let product = |p: u64| p * (2 * s * k * k + 4 * k) + 8 * n + s * n;
    let inverse_bytes = 4 * product((p - nodes) / 2) + 4 * s * n + product(nodes);
    let vectors = p * (s * k * k + 4 * k) + 8 * n + 2 * s * p * k * k + 12 * s * n + inverse_bytes;
    // As by rows; whether the run has stopped, by every thread of six launches more, and sums of one.
    let numbers = 24 * blocks * blocks + 32 * blocks + (7 * 8 + 6 * 16) * blocks * 256 + 72;
    let flops = 4 * p * k * k + 14 * n + inverse + sums;
    exactly(format!("cg by blocks, n = {n}, {s}"), found, vectors + numbers, flops);
}

/// Of columns in step each takes the operations that it takes alone: one that has ended takes no more.
fn columns_in_step(device: &Device) {
    let a = stencil::<f64>(16, 0.4);
    let n = a.nrows();
    let stop = StopCriterion { rtol: 1e-6, ..StopCriterion::default() };
    for (precond, schedule) in [(DevicePreconditioner::Identity, Schedule::Launches), (JACOBI, Schedule::Persistent)] {
        let mut method = DeviceGmres::new(device, &a, &precond, 9, schedule).unwrap();
        // Zero, at once; a smooth one; and others.
        let smooth = |i: usize| ((1 + i % 16) as f64 * 0.2).sin();
        let mut numbers = Numbers(9);
        let b = Mat::from_fn(n, 4, |i, j| [0.0, smooth(i), numbers.real::<f64>(), numbers.real::<f64>() * 1e-3][j]);
        let mut apart = 0;
        let mut steps = Vec::new();
        for j in 0..4 {
            let found = counted(|| {
                let mut x = vec![0.0; n];
                steps.push(method.solve(b.col_as_slice(j), &mut x, &stop, &mut ()).unwrap().iterations);
            });
            apart += found.map_or(0, |found| found.flops);
        }
        assert!(steps[0] == 0 && steps[1] != steps[2] && steps[2] != steps[3], "{steps:?}");
        let found = counted(|| {
            let mut x = Mat::zeros(n, 4);
            method.solve_many(b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap();
        });
        assert!(found.is_none_or(|found| found.flops == apart), "{schedule:?}: {found:?}, not {apart} operations");
    }
}

#[test]
fn iterations_take_what_their_headers_say() {
    let Some((device, _guard)) = alone() else { return };
    columns_in_step(&device);
    for k in [16, 32] {
        cg_by_blocks::<f64>(&device, 7 * k);
        cg_by_blocks::<f32>(&device, 7 * k);
        cg::<f64>(&device, k);
        cg::<f32>(&device, k);
        bicgstab::<f64>(&device, k);
        bicgstab::<f32>(&device, k);
        gmres::<f64>(&device, k);
        gmres::<f32>(&device, k);
    }
}
