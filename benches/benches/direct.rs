//! Direct methods on the cases of the peers' harness: one tridiagonal system (t1), batches (t2), bands (b1), dense blocks
//! (bt1) with their selected inverse, cloud matrices as bands (bt2), dense matrices (d1). Same shapes, own numbers.

use std::hint::black_box;
use std::time::Duration;

use bt_direct::batch::{Layout, Pivoting, TridiagonalBatch};
use bt_direct::{
    BandLu, BandLuNoPivot, BlockLu, Elimination, Factorization, NoPivotLu, PartialPivotLu, Rbt, SelectedInverse,
    Thomas, TridiagonalLu, TridiagonalOnce,
};
use bt_formats::Band;
use bt_formats::{BlockTridiagonal, Par, Partition, Scalar, Tridiagonal, c64};
use bt_queue::CloudCase;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;

/// Ten samples of about a tenth of a second.
fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    group
}

/// Uniform numbers in (−1, 1) from a 64-bit linear congruential generator: the same on every machine.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Entries uniform in (−1, 1), diagonal included: pivots are needed everywhere.
fn band(n: usize, half: usize) -> Band<f64> {
    let mut random = Uniform(half as u64);
    let mut a = Band::zeros(n, half, half).expect("memory");
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = random.next();
        }
    }
    a
}

fn bands(c: &mut Criterion) {
    let n = 100_000;
    for half in [8, 16, 32, 64, 128] {
        let mut group = group(c, &format!("b1-{half}"));
        let mut a = band(n, half);
        let mut lu = BandLu::new(&a).expect("regular");
        group.throughput(Throughput::Elements(lu.stats().flops as u64));
        group.bench_function("factor", |b| b.iter(|| lu.refactor(black_box(&a)).expect("regular")));
        (0..n).for_each(|j| *a.get_mut(j, j) += 2.0 * half as f64);
        let mut dominant = BandLuNoPivot::new(&a).expect("dominant");
        group.throughput(Throughput::Elements(dominant.stats().flops as u64));
        group.bench_function("no-pivoting/factor", |b| {
            b.iter(|| dominant.refactor(black_box(&a)).expect("dominant"));
        });
        for nrhs in [1, 64] {
            let rhs = Mat::from_fn(n, nrhs, |i, j| ((7 * i + j) % 11) as f64);
            let mut x = rhs.clone();
            group.bench_function(BenchmarkId::new("solve", nrhs), |b| {
                b.iter(|| {
                    x.copy_from(&rhs);
                    lu.solve_in_place(x.as_mut());
                });
            });
        }
        group.finish();
    }
}

/// The three diagonals of a batch of dominant systems of order n, one after the other.
fn diagonals(n: usize, systems: usize) -> [Vec<f64>; 3] {
    let mut random = Uniform(1);
    let mut off = |edge: usize| (0..n * systems).map(|i| if i % n == edge { 0.0 } else { random.next() }).collect();
    let (lower, upper): (Vec<f64>, Vec<f64>) = (off(0), off(n - 1));
    let diag = lower.iter().zip(&upper).map(|(l, u)| 1.1 * (l.abs() + u.abs())).collect();
    [lower, diag, upper]
}

fn tridiagonal(c: &mut Criterion) {
    for (name, n) in [("t1-1e4", 10_000), ("t1-1e6", 1_000_000), ("t1-1e7", 10_000_000)] {
        one_tridiagonal(c, name, n);
    }
}

fn one_tridiagonal(c: &mut Criterion, name: &str, n: usize) {
    let [lower, diag, upper] = diagonals(n, 1);
    let a = Tridiagonal::new(lower, diag, upper).expect("lengths");
    let mut group = group(c, name);
    group.throughput(Throughput::Elements(n as u64));
    let mut thomas = Thomas::new(&a).expect("dominant");
    let mut pivoted = TridiagonalLu::new(&a).expect("regular");
    group.bench_function("thomas/factor", |b| b.iter(|| thomas.refactor(black_box(&a)).expect("dominant")));
    group.bench_function("tridiagonal-lu/factor", |b| b.iter(|| pivoted.refactor(black_box(&a)).expect("regular")));
    let rhs = vec![1.0; n];
    let mut x = rhs.clone();
    for factors in [&thomas as &dyn Factorization<f64>, &pivoted] {
        group.bench_function(BenchmarkId::new(factors.method(), "solve"), |b| {
            b.iter(|| {
                x.copy_from_slice(&rhs);
                factors.solve_vec_in_place(&mut x);
            });
        });
    }
    let mut once = TridiagonalOnce::new(n).expect("memory");
    for (name, elimination) in [("once/dominant", Elimination::Dominant), ("once/pivoted", Elimination::Pivoted)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                x.copy_from_slice(&rhs);
                once.solve_in_place(black_box(&a), &mut x, elimination, Par::Seq).expect("regular");
            });
        });
    }
    group.finish();
}

fn batches(c: &mut Criterion) {
    for (n, systems) in [(512, 10_000), (64, 100_000)] {
        let [lower, diag, upper] = diagonals(n, systems);
        let a = TridiagonalBatch::new(Layout::Strided, n, lower, diag, upper).expect("lengths");
        let mut group = group(c, &format!("t2-{n}"));
        group.throughput(Throughput::Elements((n * systems) as u64));
        let rhs = vec![1.0; n * systems];
        let mut x = rhs.clone();
        for (name, pivoting) in [("no-pivoting", Pivoting::None), ("partial-pivoting", Pivoting::Partial)] {
            group.bench_function(name, |b| {
                b.iter(|| {
                    x.copy_from_slice(&rhs);
                    a.solve_in_place(&mut x, pivoting).expect("lengths")
                });
            });
        }
        group.finish();
    }
}

/// Row dominant blocks of k rows.
fn blocks<T: Scalar>(k: usize, m: usize) -> BlockTridiagonal<T> {
    let mut random = Uniform(k as u64);
    let mut value = || T::rounded(random.next(), if T::IS_REAL { 0.0 } else { random.next() });
    let mut values = |count: usize| (0..count * k * k).map(|_| value()).collect::<Vec<T>>();
    let (mut diag, couplings) = (values(m), values(2 * m - 2));
    for block in diag.chunks_exact_mut(k * k) {
        block.iter_mut().step_by(k + 1).for_each(|d| *d = T::rounded(3.0 * k as f64, 0.0));
    }
    BlockTridiagonal::from_dense_blocks(Partition::uniform(k * m, k).expect("sizes"), diag, couplings).expect("sizes")
}

fn block_tridiagonal(c: &mut Criterion) {
    let small = [(2, 100_000), (3, 100_000), (4, 100_000), (5, 50_000), (6, 50_000), (7, 50_000), (8, 50_000)];
    let middling = [(10, 32_000), (15, 14_000), (16, 20_000), (32, 10_000), (63, 2_000), (64, 4_000)];
    for (k, m) in small.into_iter().chain(middling).chain([(128, 1_000), (256, 100)]) {
        equal_blocks::<f64>(c, &format!("bt1-{k}"), k, m);
    }
    for (k, m) in [(4, 100_000), (8, 25_000), (16, 6_000), (32, 1_500), (64, 400)] {
        equal_blocks::<c64>(c, &format!("bt1-c64-{k}"), k, m);
    }
}

fn equal_blocks<T: Scalar>(c: &mut Criterion, name: &str, k: usize, m: usize) {
    let a = blocks::<T>(k, m);
    let mut lu = BlockLu::new(&a).expect("dominant");
    let mut group = group(c, name);
    group.throughput(Throughput::Elements(lu.stats().flops as u64));
    group.bench_function("factor", |b| b.iter(|| lu.refactor(black_box(&a)).expect("dominant")));
    let rhs = vec![T::rounded(1.0, 0.0); k * m];
    let mut x = rhs.clone();
    group.bench_function("solve", |b| {
        b.iter(|| {
            x.copy_from_slice(&rhs);
            lu.solve_vec_in_place(&mut x);
        });
    });
    if k <= 64 {
        let mut inverse = SelectedInverse::new(&lu).expect("memory");
        group.bench_function("selected-inverse", |b| b.iter(|| inverse.recompute(&lu).expect("factored")));
    }
    group.finish();
}

/// The cloud matrices in their own order: into the band, with and without pivoting.
fn clouds(c: &mut Criterion) {
    for (name, k, levels) in [("bt2-16", 16, 2000), ("bt2-32", 32, 1000), ("bt2-64", 64, 500), ("bt2-big", 16, 62_500)]
    {
        let sparse = CloudCase::family(k, levels, 1).and_then(|case| case.matrix()).expect("a matrix of the family");
        let a = Band::from_csr(&sparse).expect("memory");
        let n = a.n();
        let mut group = group(c, name);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function("band", |b| b.iter(|| Band::from_csr(black_box(&sparse)).expect("memory")));
        let mut pivoted = BandLu::new(&a).expect("regular");
        group.bench_function("band-lu/factor", |b| b.iter(|| pivoted.refactor(black_box(&a)).expect("regular")));
        let mut lu = BandLuNoPivot::new(&a).expect("no row loses its digits");
        group.bench_function("no-pivoting/factor", |b| b.iter(|| lu.refactor(black_box(&a)).expect("as before")));
        let rhs = vec![1.0; n];
        let mut x = rhs.clone();
        for (name, factors) in [("band-lu/solve", &pivoted as &dyn Factorization<f64>), ("no-pivoting/solve", &lu)] {
            group.bench_function(name, |b| {
                b.iter(|| {
                    x.copy_from_slice(&rhs);
                    factors.solve_vec_in_place(&mut x);
                });
            });
        }
        group.finish();
    }
}

fn dense(c: &mut Criterion) {
    for n in [512, 2048] {
        let mut random = Uniform(n as u64);
        let a = Mat::from_fn(n, n, |_, _| random.next());
        let mut group = group(c, &format!("d1-{n}"));
        group.throughput(Throughput::Elements((2 * n * n * n / 3) as u64));
        let mut rbt = Rbt::new(a.as_ref()).expect("regular");
        group.bench_function("rbt", |b| b.iter(|| rbt.refactor(black_box(a.as_ref())).expect("regular")));
        // The diagonal of a random matrix is too small to go without butterflies.
        let dominant = Mat::from_fn(n, n, |i, j| a[(i, j)] + if i == j { n as f64 } else { 0.0 });
        let mut genp = NoPivotLu::new(dominant.as_ref()).expect("dominant");
        group.bench_function("genp", |b| b.iter(|| genp.refactor(black_box(dominant.as_ref())).expect("dominant")));
        let mut lu = PartialPivotLu::new(a.as_ref()).expect("regular");
        group.bench_function("dense-lu", |b| b.iter(|| lu.refactor(black_box(a.as_ref())).expect("regular")));
        group.finish();
    }
}

criterion_group!(benches, tridiagonal, batches, bands, block_tridiagonal, clouds, dense);
criterion_main!(benches);
