//! Sweeps of HBISA.

use bt_formats::{BlockTridiagonal, DiagonalKind, HybridLayout, Partition, StopCriterion};
use bt_iter::{StopRule, Sweep};
use bt_kernels::{BlockSolver, Device, DeviceHbisa, DeviceScalar, Schedule};
use bt_testkit::stencil;

use crate::support::Numbers;
use crate::{alone, beyond, counted, cyclic_reduction, exactly, parallel_cyclic_reduction};

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
    let (n, z, factored) = (k * k, 2 * (k - 1) * k, kind == DiagonalKind::Dense);
    // Blocks that a thread block takes, and its threads.
    let together = if factored { 1 } else { 256 / k };
    let threads = (k * together).next_multiple_of(32);
    let colours = if method == Sweep::RedBlack { 2 } else { 1 };
    let slots = (k / colours).div_ceil(together);
    let all = slots * colours;
    // Rows whose residual is known: those of the first colour.
    let judged = n / colours;
    // Every thread: three numbers of the state, and where a block begins; where it ends if it has one (and where the factors begin). Thread
    // blocks of the first colour read what all have left; eight numbers by one thread.
    let common = z * (2 * s + 4) + 8 * n + all * 24 * slots + 24 * all + 64 + all * threads * 28;
    let rows = if factored {
        5 * s * n - (n - judged) * 2 * s + k * (s * k * k + 4 * k) + k * threads * 12
    } else {
        6 * s * n + 2 * s * (judged - judged / k) + 4 * n
    };
    // The sums of a thread block of whole warps: five additions of every thread in its warp but the last, which is one lane's, then five of
    // every thread among warps; the last of them is one thread's where no other wants to know.
    let (warps, chunk) = (threads / 32, |c: u64| (k - 32 * c).min(32));
    let (sum, sum_for_all) = (8 * threads + warps + 1, 9 * threads + warps);
    let solved = match solver {
        _ if factored => {
            // A warp in both triangles, and rows below and above it.
            let triangles = warps * (2 + 1 + 2) * 32 * 32;
            triangles + (0..warps).map(|c| 2 * chunk(c) * (k.saturating_sub(32 * (c + 1)) + 32 * c)).sum::<u64>()
        }
        BlockSolver::ParallelCyclicReduction => parallel_cyclic_reduction(k, k),
        BlockSolver::CyclicReduction => cyclic_reduction(k),
        BlockSolver::Thomas => 8 * k - 7,
    };
    let residual = if factored { 3 * judged } else { 8 * judged - 4 * judged / k };
    let judge = slots * (colours * slots + sum_for_all + threads);
    let flops = 2 * z + residual + n + k * solved + all * sum + judge;
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
