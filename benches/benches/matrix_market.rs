//! Reading Matrix Market text: entries per second for the kinds of files there are.

use std::fmt::Write as _;
use std::hint::black_box;

use bt_formats::matrix_market::{read_from, write_csr};
use bt_formats::{FileMatrix, Matrix as _};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Rows of the test matrices.
const N: usize = 100_000;

/// Five diagonals in column order, the order of most files.
fn five_diagonals(symmetry: &str, value: impl Fn(usize) -> String) -> String {
    let mut body = String::new();
    let mut count = 0;
    for j in 0..N {
        for i in [j.checked_sub(300), j.checked_sub(1), Some(j), Some(j + 1), Some(j + 300)].into_iter().flatten() {
            if i < N && (symmetry == "general" || i >= j) {
                count += 1;
                writeln!(body, "{} {} {}", i + 1, j + 1, value(count)).expect("a string takes all");
            }
        }
    }
    format!("%%MatrixMarket matrix coordinate real {symmetry}\n{N} {N} {count}\n{body}")
}

fn bench(c: &mut Criterion) {
    let long = |k: usize| format!("{}", (k as f64).sin());
    let short = |k: usize| (k % 7).to_string();
    let mut group = c.benchmark_group("read");
    for (name, text) in [
        ("17 digits", five_diagonals("general", long)),
        ("short values", five_diagonals("general", short)),
        ("symmetric", five_diagonals("symmetric", long)),
    ] {
        let entries = text.lines().count() as u64 - 2;
        group.throughput(Throughput::Elements(entries));
        group.bench_function(name, |b| b.iter(|| read_from(black_box(text.as_bytes()), "bench").map(|a| a.nnz())));
    }
    group.finish();

    let Ok(FileMatrix::Real(a)) = read_from(five_diagonals("general", long).as_bytes(), "bench") else { return };
    let mut group = c.benchmark_group("write");
    group.throughput(Throughput::Elements(a.nnz() as u64));
    group.bench_function("17 digits", |b| b.iter(|| write_csr(black_box(&a), &mut std::io::sink(), &[])));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
