//! Steps of Krylov methods and their preconditioners, on a matrix of the cloud type and on a grid.
//!
//! `cargo bench -p bt-benches --bench iterative`; `setup`, `apply`, and twenty steps of each method from a zero start.

use std::hint::black_box;
use std::time::Duration;

use bt_benches::cloud;
use bt_formats::StopCriterion;
use bt_formats::{Coo, Csr, Dia, Matrix};
use bt_iter::{
    BiCgStab, Cg, DroppedFill, Gmres, Identity, IncompleteLu, Jacobi, Preconditioner, Series, SsorAi, Triangles, ic0,
    ilu0, ssor,
};
use criterion::{Criterion, criterion_group, criterion_main};

const STEPS: usize = 20;

/// The seven-point Laplacian on a grid of k³ points.
fn grid(k: usize) -> Csr<f64> {
    let mut a = Coo::new(k * k * k, k * k * k).expect("the sizes fit 32-bit indices");
    for i in 0..k * k * k {
        for (step, at) in [(k * k, i / (k * k)), (k, i / k % k), (1, i % k)] {
            if at > 0 {
                a.push(i, i - step, -1.0).expect("inside");
            }
            if at + 1 < k {
                a.push(i, i + step, -1.0).expect("inside");
            }
        }
        a.push(i, i, 6.0).expect("inside");
    }
    a.to_csr().expect("the entries fit 32-bit pointers")
}

fn positive_definite(c: &mut Criterion) {
    let a = grid(100);
    let diagonals = Dia::where_full(&a).expect("the diagonals fit memory").expect("a grid has full diagonals");
    let n = a.row_ptr().len() - 1;
    let b = vec![1.0; n];
    let mut x = vec![0.0; n];
    let mut group = c.benchmark_group("grid");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group.bench_function("ic0/setup", |bencher| bencher.iter(|| black_box(ic0(&a, DroppedFill::Forgotten))));
    let mut kinds: [(&str, Box<dyn Preconditioner<f64> + '_>); 5] = [
        ("none", Box::new(Identity::new(n))),
        ("jacobi", Box::new(Jacobi::new(&a).expect("a diagonal of sixes"))),
        ("ssor", Box::new(ssor(&a, 1.0).expect("a positive diagonal"))),
        (
            "ssor-ai",
            Box::new(SsorAi::with_options(&a, 1.1, Series::First, Triangles::Stored).expect("a symmetric matrix")),
        ),
        ("ic0", Box::new(ic0(&a, DroppedFill::Forgotten).expect("an M-matrix").factors)),
    ];
    let stop = StopCriterion { rtol: 0.0, max_iters: STEPS, ..StopCriterion::default() };
    let mut cg = Cg::new(n);
    for (name, m) in &mut kinds {
        group.bench_function(format!("{name}/apply"), |bencher| bencher.iter(|| m.apply(&b, black_box(&mut x))));
        group.bench_function(format!("{name}/cg"), |bencher| {
            bencher.iter(|| {
                x.fill(0.0);
                cg.solve(&diagonals, &mut **m, &b, black_box(&mut x), &stop, &mut ())
            });
        });
    }
    group.finish();
}

fn general(c: &mut Criterion) {
    let (mut a, partition) = cloud(16, 12_500).expect("the sizes fit 32-bit indices");
    a.index_by_diagonals().expect("the index fits memory");
    let n = partition.n();
    let b = vec![1.0; n];
    let mut x = vec![0.0; n];
    let mut group = c.benchmark_group("cloud");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let factor = || -> IncompleteLu<f64> { ilu0(&a, DroppedFill::Forgotten).expect("a dominant matrix") };
    group.bench_function("ilu0/setup", |bencher| bencher.iter(|| black_box(factor())));
    let mut m = factor();
    group.bench_function("ilu0/apply", |bencher| bencher.iter(|| m.apply(&b, black_box(&mut x))));
    let stop = StopCriterion { rtol: 0.0, max_iters: STEPS, ..StopCriterion::default() };
    let (mut bicgstab, mut gmres) = (BiCgStab::new(n), Gmres::new(n, STEPS));
    let operator: &dyn Matrix<f64> = &a;
    group.bench_function("ilu0/bicgstab", |bencher| {
        bencher.iter(|| {
            x.fill(0.0);
            bicgstab.solve(operator, &mut m, &b, black_box(&mut x), &stop, &mut ())
        });
    });
    group.bench_function("ilu0/gmres", |bencher| {
        bencher.iter(|| {
            x.fill(0.0);
            gmres.solve(operator, &mut m, &b, black_box(&mut x), &stop, &mut ())
        });
    });
    group.finish();
}

criterion_group!(benches, positive_definite, general);
criterion_main!(benches);
