//! Sweeps of HBISA.

use bt_formats::{BlockTridiagonal, DiagonalKind, HybridLayout, Partition, StopCriterion};
use bt_iter::{StopRule, Sweep};
use bt_kernels::{BlockSolver, Device, DeviceHbisa, DeviceScalar, Schedule};
use bt_testkit::stencil;

use crate::support::Numbers;
use crate::{alone, beyond, counted, cyclic_reduction, exactly, powers};

/// k blocks of k rows.
fn sweep<T: DeviceScalar>(device: &Device, k: usize, kind: DiagonalKind, method: Sweep, solver: BlockSolver) {
    let a = stencil::<T>(k, 0.0);
    let layout = HybridLayout { diagonal: Some(kind), ..HybridLayout::default() };
    let blocks = BlockTridiagonal::from_csr(&a, Partition::uniform(k * k, k).unwrap(), layout).unwrap();
    let hbisa = DeviceHbisa::new(device, &blocks, method, StopRule::Residual, Schedule::Launches).unwrap();
    let mut hbisa = hbisa.with_solver(solver);
    let b = Numbers(5).vector::<T>(k * k);
    let mut of = |max_iters| {
        let stop = StopCriterion { rtol: 1e-300, max_iters, ..StopCriterion::default() };
        counted(|| {
            assert_eq!(hbisa.solve(&b, &mut vec![T::default(); k * k], &stop, &mut ()).unwrap().iterations, max_iters);
        })
    };
    let less = of(5);
    let found = beyond(of(6), less);

    let (k, s) = (k as u64, size_of::<T>() as u64);
    let (n, z, threads, factored) = (k * k, 2 * (k - 1) * k, k.next_multiple_of(32), kind == DiagonalKind::Dense);
    let (colours, slots) = if method == Sweep::RedBlack { (2, k / 2) } else { (1, k) };
    // Rows whose residual is known: those of the first colour.
    let judged = n / colours;
    // Every thread: the block's rows, and four numbers of the state (six, and where the factors begin). Thread blocks of the first colour read
    // what all have left; eight numbers by one thread.
    let common = z * (2 * s + 4) + 8 * n + slots * colours * 24 * slots + 24 * k + 64;
    let rows = if factored {
        5 * s * n - (n - judged) * 2 * s + k * (s * k * k + 4 * k) + k * threads * 40
    } else {
        6 * s * n + 2 * s * (judged - judged / k) + k * threads * 32
    };
    // The sums of a thread block of whole warps, by all of them.
    let (warps, chunk) = (threads / 32, |c: u64| (k - 32 * c).min(32));
    let sum = 4 * threads + warps + (warps - 1) * threads;
    let solved = match solver {
        _ if factored => {
            // A warp in both triangles, and rows below and above it.
            let triangles = warps * (2 + 1 + 2) * 32 * 32;
            triangles + (0..warps).map(|c| 2 * chunk(c) * (k.saturating_sub(32 * (c + 1)) + 32 * c)).sum::<u64>()
        }
        BlockSolver::ParallelCyclicReduction => powers(k).map(|r| 12 * (k - r)).sum::<u64>() + threads,
        BlockSolver::CyclicReduction => cyclic_reduction(k),
        BlockSolver::Thomas => 8 * k - 7,
    };
    let residual = if factored { 3 * judged } else { 8 * judged - 4 * judged / k };
    let judge = slots * (colours * (slots + sum + threads) + threads);
    let flops = 2 * z + residual + n + k * (solved + sum) + judge;
    exactly(format!("hbisa, {k}, {kind:?}, {method:?}, {solver:?}, {s}"), found, common + rows, flops);
}

#[test]
fn sweeps_take_what_their_header_says() {
    let Some((device, _guard)) = alone() else { return };
    for k in [20, 40] {
        for method in [Sweep::Jacobi, Sweep::RedBlack] {
            for solver in [BlockSolver::ParallelCyclicReduction, BlockSolver::CyclicReduction, BlockSolver::Thomas] {
                sweep::<f64>(&device, k, DiagonalKind::Tridiagonal, method, solver);
                sweep::<f32>(&device, k, DiagonalKind::Tridiagonal, method, solver);
            }
            sweep::<f64>(&device, k, DiagonalKind::Dense, method, BlockSolver::default());
            sweep::<f32>(&device, k, DiagonalKind::Dense, method, BlockSolver::default());
        }
    }
}
