//! Products with a matrix of the cloud type, 10⁶ rows: every format beside the stream that bounds them.
//!
//! `cargo bench -p bt-benches --bench spmv`; criterion's throughput is bytes of storage and vectors over time, so that
//! the formats stand beside `triad` (16-byte reads, 8-byte writes) on one scale.

use std::hint::black_box;
use std::time::Duration;

use bt_benches::cloud;
use bt_formats::{BlockTridiagonal, Coo, CouplingKind, DiagonalKind, HybridLayout, Matrix, Op, Par};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;

const BLOCK_SIZE: usize = 16;
const N_BLOCKS: usize = 62_500;
const NRHS: usize = 4;

fn formats(c: &mut Criterion) {
    let (a, partition) = cloud(BLOCK_SIZE, N_BLOCKS).expect("the sizes fit 32-bit indices");
    let n = partition.n();
    let hybrid = |diagonal, couplings| {
        let layout = HybridLayout { diagonal: Some(diagonal), couplings: Some(couplings) };
        BlockTridiagonal::from_csr(&a, partition.clone(), layout).expect("the matrix is block tridiagonal")
    };
    let mut indexed = a.clone();
    assert!(indexed.index_by_diagonals().expect("the index fits memory"), "cloud matrices have few diagonals");
    let matrices: [(&str, Box<dyn Matrix<f64>>); 7] = [
        ("coo", Box::new(Coo::from_csr(&a))),
        ("csr", Box::new(a.clone())),
        ("indexed csr", Box::new(indexed)),
        ("tridiagonal+diagonals", Box::new(hybrid(DiagonalKind::Tridiagonal, CouplingKind::Diagonals))),
        ("tridiagonal+csr", Box::new(hybrid(DiagonalKind::Tridiagonal, CouplingKind::Csr))),
        ("tridiagonal+coo", Box::new(hybrid(DiagonalKind::Tridiagonal, CouplingKind::Coo))),
        ("band+csr", Box::new(hybrid(DiagonalKind::Band, CouplingKind::Csr))),
    ];
    let x = vec![1.0; n];
    let mut y = vec![0.0; n];

    let mut group = c.benchmark_group("spmv");
    group.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Bytes(24 * n as u64));
    let factor = black_box(1.5);
    let z = vec![2.0; n];
    group.bench_function("triad", |b| {
        b.iter(|| {
            for ((y, &x), &z) in y.iter_mut().zip(&x).zip(&z) {
                *y = x + factor * z;
            }
            black_box(&mut y);
        });
    });
    for (name, matrix) in &matrices {
        group.throughput(Throughput::Bytes((matrix.bytes() + 16 * n) as u64));
        for (op, product) in [(Op::Identity, "A"), (Op::Transpose, "A^T")] {
            for par in [Par::Seq, Par::Rayon] {
                group.bench_function(BenchmarkId::new(format!("{name}/{product}"), format!("{par:?}")), |b| {
                    b.iter(|| matrix.apply_op(op, 1.0, &x, 0.0, black_box(&mut y), par));
                });
            }
        }
    }
    let x = Mat::from_fn(n, NRHS, |_, _| 1.0);
    let mut y = Mat::zeros(n, NRHS);
    for (name, matrix) in &matrices {
        group.throughput(Throughput::Bytes((matrix.bytes() + 16 * NRHS * n) as u64));
        group.bench_function(BenchmarkId::new(format!("{name}/A, {NRHS} vectors"), "Seq"), |b| {
            b.iter(|| matrix.apply_many(Op::Identity, 1.0, x.as_ref(), 0.0, black_box(y.as_mut()), Par::Seq));
        });
    }
    group.finish();
}

criterion_group!(benches, formats);
criterion_main!(benches);
