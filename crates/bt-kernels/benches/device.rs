//! Products and solvers on a GPU beside what limits them: the time of a copy, and of a launch.
//!
//! `REQUIRE_GPU=1 cargo bench -p bt-kernels --bench device`; criterion's throughput is the bytes that have to move, over time. Times of
//! iterations are differences of two solves. Without `REQUIRE_GPU=1` or `BLOCKTRI_TEST_GPU=1` small systems go through the stand-in
//! driver, which shows that the program runs and nothing else.
//!
//! `cargo bench -p bt-kernels --bench device -- predict` needs no GPU: it prints what the cases move, and the time that takes at the bandwidth
//! of an H200.

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
/// Bytes per second of an H200's memory, by its data sheet: <https://www.nvidia.com/en-us/data-center/h200/>.
const H200: f64 = 4.8e12;

/// Bytes that have to move, gathers counted as one pass over the vector.
mod bytes {
    use super::S;

    /// Of a cube with m points a side: rows, entries.
    pub fn cube(m: u64) -> (u64, u64) {
        (m * m * m, 7 * m * m * m - 6 * m * m)
    }
    pub fn copy(n: u64) -> u64 {
        2 * S * n
    }
    pub fn csr((n, nnz): (u64, u64)) -> u64 {
        nnz * (S + 4) + 4 * (n + 1) + 2 * S * n
    }
    pub fn dia((n, _): (u64, u64)) -> u64 {
        (7 + 2) * S * n
    }
    pub fn cg((n, nnz): (u64, u64)) -> u64 {
        nnz * (S + 4) + (4 + 10 * S) * n
    }
    /// Of lines(k, blocks): three diagonals, two couplings a row but for the first and the last block, row pointers, the
    /// block of each row, first rows.
    pub fn hybrid(k: u64, blocks: u64) -> u64 {
        let n = k * blocks;
        3 * S * n + 2 * (n - k) * (S + 4) + 4 * (n + 1) + 4 * n + 4 * (blocks + 1) + 2 * S * n
    }
    pub fn hbisa(k: u64, blocks: u64) -> u64 {
        let n = k * blocks;
        2 * (n - k) * (S + 4) + 4 * n + 6 * S * n
    }
    /// What must move, and what the two passes do.
    pub fn tridiagonal(n: u64) -> [u64; 2] {
        [5 * S * n, (9.04 * (S * n) as f64) as u64]
    }
    pub fn batch(interleaved: bool, n: u64) -> [u64; 2] {
        [5 * S * n, if interleaved { 13 * S * n } else { 5 * S * n }]
    }
}

/// The cases of a GPU and what limits them, as a table.
fn predict() {
    let line = |case: String, bytes: u64, launches: &str| {
        println!("| {case} | {:.1} | {:.1} | {launches} |", bytes as f64 / 1e6, bytes as f64 / H200 * 1e6);
    };
    println!("| case, f64 | MB | microseconds at 4.8 TB/s | launches |\n|---|---|---|---|");
    line("copy, n = 2^27".into(), bytes::copy(1 << 27), "1");
    let cube = bytes::cube(216);
    line(format!("y <- A*x, csr, n = {}", cube.0), bytes::csr(cube), "1");
    line(format!("the same, dia, n = {}", cube.0), bytes::dia(cube), "1");
    line("the same, hybrid, k = 32, n = 10000000".into(), bytes::hybrid(32, 312_500), "1");
    for m in [32, 216] {
        let cube = bytes::cube(m);
        line(
            format!("iteration of cg, jacobi, n = {}", cube.0),
            bytes::cg(cube),
            if m == 32 { "1 for 32" } else { "2" },
        );
    }
    for (k, blocks) in [(16, 100), (32, 1000), (512, 100), (32, 312_500)] {
        let launches = match blocks {
            100 => "1 for 32, a barrier each",
            1000 => "1 for 32 if all blocks fit, else 1",
            _ => "1",
        };
        line(format!("sweep of hbisa, k = {k}, n = {}", k * blocks), bytes::hbisa(k, blocks), launches);
    }
    let [must, does] = bytes::tridiagonal(1 << 25);
    line("one tridiagonal system, n = 2^25, once through memory".into(), must, "7");
    line("the same, as the two passes move it".into(), does, "7");
    for (interleaved, rows, systems) in [(true, 64, 100_000), (true, 512, 65_536), (false, 512, 65_536)] {
        let name = if interleaved { "interleaved" } else { "strided" };
        let [_, does] = bytes::batch(interleaved, rows * systems);
        line(format!("{systems} tridiagonal systems of {rows}, {name}"), does, "1");
    }
}

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
    group.throughput(Throughput::Bytes(bytes::copy(n as u64)));
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
    let side = sizes.of(8, 216);
    let (a, size) = (cube(side), bytes::cube(side as u64));
    let n = a.nrows();
    assert_eq!((n as u64, a.values().len() as u64), size);
    let x = DeviceVec::from_slice(device, &Numbers(1).vector::<f64>(n)).expect("memory");
    let mut y = DeviceVec::zeros(device, n).expect("memory");
    let csr = DeviceCsr::new(device, &a).expect("memory");
    group.throughput(Throughput::Bytes(bytes::csr(size)));
    let id = BenchmarkId::new("csr", n);
    queued(&mut group, id, device, || csr.apply(1.0, &x, 0.0, &mut y).expect("the device"));
    let dia = DeviceDia::new(device, &Dia::from_csr(&a).expect("few diagonals")).expect("memory");
    group.throughput(Throughput::Bytes(bytes::dia(size)));
    let id = BenchmarkId::new("dia", n);
    queued(&mut group, id, device, || dia.apply(1.0, &x, 0.0, &mut y).expect("the device"));
    let count = sizes.of(8, 312_500);
    let blocks = lines(32, count);
    let n = blocks.nrows();
    let x = DeviceVec::from_slice(device, &Numbers(2).vector::<f64>(n)).expect("memory");
    let mut y = DeviceVec::zeros(device, n).expect("memory");
    let hybrid = DeviceHybrid::new(device, &blocks).expect("memory");
    assert_eq!(hybrid.bytes() as u64 + 2 * S * n as u64, bytes::hybrid(32, count as u64));
    group.throughput(Throughput::Bytes(bytes::hybrid(32, count as u64)));
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
        cg.throughput(Throughput::Bytes(bytes::cg(bytes::cube(side as u64))));
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
        hbisa.throughput(Throughput::Bytes(bytes::hbisa(k as u64, blocks as u64)));
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
    group.throughput(Throughput::Bytes(bytes::tridiagonal(n as u64)[0]));
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
        group.throughput(Throughput::Bytes(bytes::batch(layout == Layout::Interleaved, n as u64)[0]));
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
    if std::env::args().any(|a| a == "predict") {
        return predict();
    }
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
