//! Products and solvers on a GPU beside what limits them: the time of a copy, and of a launch.
//!
//! `REQUIRE_GPU=1 cargo bench -p bt-kernels --bench device`; criterion's throughput is the bytes that have to move, over time. Times of
//! iterations are differences of two solves. Without `REQUIRE_GPU=1` or `BLOCKTRI_TEST_GPU=1` small systems go through the stand-in
//! driver, which shows that the program runs and nothing else.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use bt_direct::batch::Layout;
use bt_formats::{
    BlockTridiagonal, Csr, Dia, DiagonalKind, HybridLayout, LinearOperator, Partition, StopCriterion, Tridiagonal,
};
use bt_iter::{StopRule, Sweep};
use bt_kernels::{
    Device, DeviceBlockLu, DeviceCg, DeviceCsr, DeviceDia, DeviceHbisa, DeviceHybrid, DevicePreconditioner,
    DeviceTridiagonal, DeviceTridiagonalBatch, DeviceVec, Schedule, dot, update,
};
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use support::Numbers;

/// Bytes of a double.
const S: u64 = 8;

/// The small system of the stand-in driver, or the large one of a GPU.
struct Sizes {
    real: bool,
}

impl Sizes {
    fn of(&self, small: usize, large: usize) -> usize {
        if self.real { large } else { small }
    }
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group
}

/// Times `launch`, which does not wait for the device, by runs of a hundred.
fn queued(group: &mut BenchmarkGroup<'_, WallTime>, id: BenchmarkId, device: &Device, mut launch: impl FnMut()) {
    group.bench_function(id, |b| {
        b.iter_custom(|iters| {
            device.synchronize("starting").expect("the device");
            let start = Instant::now();
            (0..iters).for_each(|_| launch());
            device.synchronize("the benchmark").expect("the device");
            start.elapsed()
        });
    });
}

/// Seven points on a cube with m points a side, by rows.
fn cube(m: usize) -> Csr<f64> {
    let n = m * m * m;
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::with_capacity(7 * n), Vec::with_capacity(7 * n));
    for i in 0..n {
        let (x, y, z) = (i % m, i / m % m, i / (m * m));
        let neighbours = [
            (z > 0).then(|| i - m * m),
            (y > 0).then(|| i - m),
            (x > 0).then(|| i - 1),
            Some(i),
            (x + 1 < m).then_some(i + 1),
            (y + 1 < m).then_some(i + m),
            (z + 1 < m).then_some(i + m * m),
        ];
        for j in neighbours.into_iter().flatten() {
            idx.push(j as u32);
            val.push(if i == j { 6.1 } else { -1.0 });
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(n, n, ptr, idx, val).expect("columns increase")
}

/// Tridiagonal diagonal blocks of k rows, each row coupled to the same one of the neighbouring blocks.
fn lines(k: usize, blocks: usize) -> BlockTridiagonal<f64> {
    let n = k * blocks;
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let neighbours = [
            i.checked_sub(k),
            (i % k > 0).then(|| i - 1),
            Some(i),
            ((i + 1) % k > 0).then_some(i + 1),
            (i + k < n).then_some(i + k),
        ];
        for j in neighbours.into_iter().flatten() {
            idx.push(j as u32);
            val.push(if i == j { 4.2 } else { -1.0 });
        }
        ptr.push(idx.len() as u32);
    }
    let a = Csr::new(n, n, ptr, idx, val).expect("columns increase");
    let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
    BlockTridiagonal::from_csr(&a, Partition::uniform(n, k).expect("sizes"), layout).expect("block-tridiagonal")
}

/// What limits everything else: 2n values copied, and two launches with a wait.
fn floors(c: &mut Criterion, device: &Device, sizes: &Sizes) {
    let mut group = group(c, "floor");
    let n = sizes.of(1 << 10, 1 << 27);
    let x = DeviceVec::from_slice(device, &vec![1.0; n]).expect("memory");
    let mut y = DeviceVec::zeros(device, n).expect("memory");
    group.throughput(Throughput::Bytes(2 * S * n as u64));
    group.bench_function(BenchmarkId::new("copy", n), |b| {
        b.iter(|| update(1.0, &x, 0.0, &mut y).expect("the device"));
    });
    let one = DeviceVec::from_slice(device, &[1.0]).expect("memory");
    group.throughput(Throughput::Elements(1));
    group.bench_function("two launches and a wait", |b| b.iter(|| dot(&one, &one).expect("the device")));
    group.finish();
}

fn products(c: &mut Criterion, device: &Device, sizes: &Sizes) {
    let mut group = group(c, "product");
    let a = cube(sizes.of(8, 216));
    let n = a.nrows();
    let x = DeviceVec::from_slice(device, &Numbers(1).vector::<f64>(n)).expect("memory");
    let mut y = DeviceVec::zeros(device, n).expect("memory");
    let nnz = a.values().len() as u64;
    let csr = DeviceCsr::new(device, &a).expect("memory");
    group.throughput(Throughput::Bytes(nnz * (S + 4) + 4 * (n as u64 + 1) + 2 * S * n as u64));
    let id = BenchmarkId::new("csr", n);
    queued(&mut group, id, device, || csr.apply(1.0, &x, 0.0, &mut y).expect("the device"));
    let dia = DeviceDia::new(device, &Dia::from_csr(&a).expect("few diagonals")).expect("memory");
    group.throughput(Throughput::Bytes((7 + 2) * S * n as u64));
    let id = BenchmarkId::new("dia", n);
    queued(&mut group, id, device, || dia.apply(1.0, &x, 0.0, &mut y).expect("the device"));
    let blocks = lines(32, sizes.of(8, 312_500));
    let n = blocks.nrows();
    let x = DeviceVec::from_slice(device, &Numbers(2).vector::<f64>(n)).expect("memory");
    let mut y = DeviceVec::zeros(device, n).expect("memory");
    let hybrid = DeviceHybrid::new(device, &blocks).expect("memory");
    group.throughput(Throughput::Bytes(hybrid.bytes() as u64 + 2 * S * n as u64));
    let id = BenchmarkId::new("hybrid", n);
    queued(&mut group, id, device, || hybrid.apply(1.0, &x, 0.0, &mut y).expect("the device"));
    group.finish();
}

/// The time of one iteration from solves of 64 and of 192.
fn iterations(b: &mut criterion::Bencher<'_>, mut solve: impl FnMut(usize)) {
    const FEW: usize = 64;
    const MANY: usize = 192;
    b.iter_custom(|iters| {
        let mut total = Duration::ZERO;
        for _ in 0..iters {
            let start = Instant::now();
            solve(FEW);
            let few = start.elapsed();
            let start = Instant::now();
            solve(MANY);
            total += start.elapsed().saturating_sub(few);
        }
        total / (MANY - FEW) as u32
    });
}

fn stop(iterations: usize) -> StopCriterion {
    StopCriterion { rtol: 0.0, max_iters: iterations, ..StopCriterion::default() }
}

fn iterative(c: &mut Criterion, device: &Device, sizes: &Sizes) {
    let mut cg = group(c, "iteration of cg");
    for side in [sizes.of(5, 32), sizes.of(6, 216)] {
        let a = cube(side);
        let n = a.nrows();
        let (rhs, mut x) = (Numbers(3).vector::<f64>(n), vec![0.0; n]);
        let mut method = DeviceCg::new(device, &a, &DevicePreconditioner::Jacobi, Schedule::Auto).expect("memory");
        cg.throughput(Throughput::Bytes(a.values().len() as u64 * (S + 4) + (4 + 10 * S) * n as u64));
        cg.bench_function(BenchmarkId::new("jacobi", n), |b| {
            iterations(b, |count| {
                x.fill(0.0);
                method.solve(&rhs, &mut x, &stop(count), &mut ()).expect("the device");
            });
        });
    }
    cg.finish();
    let mut hbisa = group(c, "sweep of hbisa");
    for (k, blocks) in
        [(16, sizes.of(4, 100)), (32, sizes.of(3, 1000)), (512, sizes.of(2, 100)), (32, sizes.of(5, 312_500))]
    {
        let a = lines(k, blocks);
        let n = a.nrows();
        let (rhs, mut x) = (Numbers(4).vector::<f64>(n), vec![0.0; n]);
        for sweep in [Sweep::Jacobi, Sweep::RedBlack] {
            let mut method = DeviceHbisa::new(device, &a, sweep, StopRule::Residual, Schedule::Auto).expect("memory");
            hbisa.bench_function(BenchmarkId::new(format!("{sweep:?}, k = {k}"), n), |b| {
                iterations(b, |count| {
                    x.fill(0.0);
                    method.solve(&rhs, &mut x, &stop(count), &mut ()).expect("the device");
                });
            });
        }
    }
    hbisa.finish();
}

fn direct(c: &mut Criterion, device: &Device, sizes: &Sizes) {
    let mut group = group(c, "direct");
    let n = sizes.of(1000, 1 << 25);
    let mut numbers = Numbers(5);
    let mut diagonal = || numbers.vector::<f64>(n);
    let (mut lower, diag, mut upper) = (diagonal(), diagonal(), diagonal());
    (lower[0], upper[n - 1]) = (0.0, 0.0);
    let a = Tridiagonal::new(lower, diag, upper).expect("lengths");
    let mut method = DeviceTridiagonal::new(device, &a).expect("memory");
    let mut x = DeviceVec::from_slice(device, &Numbers(6).vector::<f64>(n)).expect("memory");
    group.throughput(Throughput::Bytes(5 * S * n as u64));
    // Again and again with the answer of the last solve: values may leave all bounds, the work is the same.
    let id = BenchmarkId::new("tridiagonal", n);
    queued(&mut group, id, device, || method.solve_on_device(&mut x).expect("the device"));
    for (layout, name, rows, systems) in [
        (Layout::Interleaved, "interleaved", 64, sizes.of(20, 100_000)),
        (Layout::Interleaved, "interleaved", 512, sizes.of(20, 65_536)),
        (Layout::Strided, "strided", sizes.of(40, 512), sizes.of(3, 65_536)),
    ] {
        let n = rows * systems;
        let (lower, diag, upper) = (vec![-1.0; n], vec![2.5; n], vec![-1.0; n]);
        let mut batch = DeviceTridiagonalBatch::new(device, layout, rows, &lower, &diag, &upper).expect("memory");
        batch.vectors().0.copy_from(&Numbers(7).vector::<f64>(n)).expect("lengths");
        group.throughput(Throughput::Bytes(5 * S * n as u64));
        let id = BenchmarkId::new(name, format!("{systems} x {rows}"));
        queued(&mut group, id, device, || batch.solve_on_device().expect("the device"));
        assert!(batch.backward_errors().expect("the device").iter().all(|&e| e < 1e-14), "{name}");
    }
    for k in [16, 32, 64] {
        let (blocks, systems) = (sizes.of(2, 100), sizes.of(2, 528));
        let a = lines(k, blocks);
        let batch = vec![&a; systems];
        let (blocks, systems, k3) = (blocks as u64, systems as u64, (k * k * k) as u64);
        // 14/3 k^3 flops a block; the copy of A to the device is in the time.
        group.throughput(Throughput::Elements(systems * blocks * 14 * k3 / 3));
        group.bench_function(BenchmarkId::new("block LU, factored with copies", k), |b| {
            b.iter(|| DeviceBlockLu::new(device, &batch).expect("memory"));
        });
    }
    group.finish();
}

fn main() {
    let asked = |name| std::env::var(name).is_ok_and(|v| v == "1");
    let sizes = Sizes { real: asked("BLOCKTRI_TEST_GPU") || asked("REQUIRE_GPU") };
    let Some(device) = support::device() else { return };
    println!("{}, {} multiprocessors", device.name(), device.multiprocessors());
    let mut c = Criterion::default().configure_from_args();
    floors(&mut c, &device, &sizes);
    products(&mut c, &device, &sizes);
    iterative(&mut c, &device, &sizes);
    direct(&mut c, &device, &sizes);
    c.final_summary();
}
