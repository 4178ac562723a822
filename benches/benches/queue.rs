//! Stationary distributions: GTH beside the other methods, on the cloud model of 1320 to 10⁶ states and on dense blocks of the
//! peers' case q1. Power iteration and block Gauss–Seidel stop at a residual of 1e-10; GTH has no tolerance.
//!
//! `cargo bench -p bt-benches --bench queue`; criterion's throughput is states over time.

use std::hint::black_box;
use std::time::Duration;

use bt_formats::{Coo, Partition, StopCriterion};
use bt_queue::{CloudModel, Form, Generator, Order, Rates, Stationary, sweep};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// m resources of K tasks at a load of a quarter.
fn model(resources: usize, tasks: usize) -> CloudModel {
    let rates = Rates { arrival: resources as f64 / 4.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
    CloudModel::new(resources, tasks, rates, Form::Repaired).expect("valid rates")
}

fn cloud(c: &mut Criterion) {
    let mut group = c.benchmark_group("stationary");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    // 1320, 33 000 and 1 002 000 states.
    for (resources, tasks) in [(40, 16), (1000, 16), (6000, 83)] {
        let model = model(resources, tasks);
        let q = model.generator(Order::TaskMajor).expect("memory");
        let n = q.n();
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("gth", n), |b| {
            b.iter(|| Stationary::gth(black_box(&q)).expect("irreducible"));
        });
        if n > 1320 {
            continue;
        }
        let stop = StopCriterion { rtol: 1e-10, max_iters: 10_000_000, ..StopCriterion::default() };
        let levels = model.generator(Order::LevelMajor).expect("memory");
        let partition = model.space().partition(Order::LevelMajor).expect("levels");
        group.bench_function(BenchmarkId::new("block-lu", n), |b| {
            b.iter(|| Stationary::block_lu(black_box(&levels), Some(&partition)).expect("irreducible"));
        });
        group.bench_function(BenchmarkId::new("hbisa", n), |b| {
            b.iter(|| Stationary::hbisa(black_box(&levels), Some(&partition), &stop, &mut ()).expect("irreducible"));
        });
        group.bench_function(BenchmarkId::new("power", n), |b| {
            b.iter(|| Stationary::power(black_box(&q), &stop, &mut ()).expect("irreducible"));
        });
    }
    group.finish();
}

/// m levels of k states, every rate inside a level and to its neighbours there.
fn dense_levels(k: usize, m: usize) -> (Generator, Partition) {
    let n = k * m;
    let mut coo = Coo::new(n, n).expect("32-bit indices");
    for i in 0..n {
        let levels = (i / k).saturating_sub(1)..(i / k + 2).min(m);
        for j in levels.flat_map(|level| level * k..(level + 1) * k).filter(|&j| j != i) {
            // Rates between 1 and 2, without a pattern.
            let rate = 1.0 + ((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0;
            coo.push(i, j, rate).expect("inside");
        }
    }
    let q = Generator::new(coo.to_csr().expect("memory")).expect("rates");
    (q, Partition::uniform(n, k).expect("sizes"))
}

fn dense(c: &mut Criterion) {
    let mut group = c.benchmark_group("stationary-levels");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for (k, m) in [(16, 500), (64, 100)] {
        let (q, partition) = dense_levels(k, m);
        group.throughput(Throughput::Elements((k * m) as u64));
        group.bench_function(BenchmarkId::new("gth", format!("{m}x{k}")), |b| {
            b.iter(|| Stationary::gth(black_box(&q)).expect("irreducible"));
        });
        group.bench_function(BenchmarkId::new("block-lu", format!("{m}x{k}")), |b| {
            b.iter(|| Stationary::block_lu(black_box(&q), Some(&partition)).expect("irreducible"));
        });
    }
    group.finish();
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("sweep");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    let arrivals: Vec<f64> = (1..=30).map(f64::from).collect();
    group.throughput(Throughput::Elements(arrivals.len() as u64));
    group.bench_function("30 plans of 1320 states", |b| {
        b.iter(|| {
            sweep(black_box(&arrivals), &mut (), |arrival| {
                let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
                CloudModel::new(40, 16, rates, Form::Repaired)
            })
            .expect("irreducible")
        });
    });
    group.finish();
}

criterion_group!(benches, cloud, dense, plans);
criterion_main!(benches);
