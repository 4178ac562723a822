//! Tridiagonal and band factorizations and solves, on the cases t1 and b1-8, -32, -128 of the peers' harness.

use std::hint::black_box;
use std::time::Duration;

use blocktri::Band;
use blocktri::direct::{BandLu, Factorization, Thomas, TridiagonalLu};
use blocktri::faer::Mat;
use blocktri::formats::Tridiagonal;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

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
    for half in [8, 32, 128] {
        let mut group = c.benchmark_group(format!("b1-{half}"));
        group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        let a = band(n, half);
        let mut lu = BandLu::new(&a).expect("regular");
        group.throughput(Throughput::Elements(lu.stats().flops as u64));
        group.bench_function("factor", |b| b.iter(|| lu.refactor(black_box(&a)).expect("regular")));
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

fn tridiagonal(c: &mut Criterion) {
    let n = 1_000_000;
    let mut random = Uniform(1);
    let mut off = |edge: usize| (0..n).map(|i| if i == edge { 0.0 } else { random.next() }).collect::<Vec<_>>();
    let (lower, upper) = (off(0), off(n - 1));
    let diag = lower.iter().zip(&upper).map(|(l, u): (&f64, &f64)| 1.1 * (l.abs() + u.abs())).collect();
    let a = Tridiagonal::new(lower, diag, upper).expect("lengths");
    let mut group = c.benchmark_group("t1-1e6");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Elements(n as u64));
    let mut thomas = Thomas::new(&a).expect("dominant");
    let mut pivoted = TridiagonalLu::new(&a).expect("regular");
    group.bench_function("thomas/factor", |b| b.iter(|| thomas.refactor(black_box(&a)).expect("dominant")));
    group.bench_function("tridiagonal-lu/factor", |b| b.iter(|| pivoted.refactor(black_box(&a)).expect("regular")));
    let rhs = vec![1.0; n];
    let mut x = rhs.clone();
    group.bench_function("thomas/solve", |b| {
        b.iter(|| {
            x.copy_from_slice(&rhs);
            thomas.solve_vec_in_place(&mut x);
        });
    });
    group.bench_function("tridiagonal-lu/solve", |b| {
        b.iter(|| {
            x.copy_from_slice(&rhs);
            pivoted.solve_vec_in_place(&mut x);
        });
    });
    group.finish();
}

criterion_group!(benches, bands, tridiagonal);
criterion_main!(benches);
