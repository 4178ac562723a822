//! Sparse LU against dense LU, on random patterns and on the matrices of ../shared.

mod common;

use bt_direct::{FactorError, Factorization, SparseLu};
use bt_formats::{Csr, LinearOperator, Matrix, Monitor, RealScalar, Scalar, c32, c64};
use common::{Random, assert_same_det, assert_solves, dense_log_det, from_entries, read, refined_error, shared};
use proptest::prelude::*;

/// About `degree` entries a row, and a permuted diagonal that makes the pattern nonsingular.
fn random<T: Scalar>(n: usize, degree: f64, seed: u64) -> Csr<T> {
    let mut random = Random(seed | 1);
    let step = (1..n.max(2)).rev().find(|s| gcd(*s, n) == 1).unwrap_or(1);
    let mut entries = Vec::new();
    for i in 0..n {
        for j in 0..n {
            let on = (i * step + 1) % n == j;
            if on || random.unit().abs() * (n as f64) < degree {
                // Rows differ in scale by up to 2⁴⁰.
                let scale = T::from_parts(2f64.powi((i as i32 * 13) % 40 - 20), 0.0);
                entries.push((i as u32, j as u32, random.scalar::<T>() * scale));
            }
        }
    }
    from_entries(n, entries.into_iter())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn check<T: Scalar>(n: usize, degree: f64, seed: u64) {
    let a = random::<T>(n, degree, seed);
    let mut lu = SparseLu::new(&a).unwrap();
    assert_solves(&a, &lu, 6, 200.0);
    // A random matrix may be ill-conditioned, and its determinant then uncertain by as much.
    let tolerance = 50.0 / lu.rcond().max(1e-30);
    assert_same_det(lu.log_det(), dense_log_det(a.to_dense().as_ref()), n, tolerance);
    let b = a.scale(&vec![bt_formats::one(); n], &vec![<T::Real as RealScalar>::from_f64(3.0); n]);
    lu.refactor(&b).unwrap();
    assert_solves(&b, &lu, 1, 200.0);
    // The same values again: the same bits.
    let before = SparseLu::new(&a).unwrap().log_det();
    lu.refactor(&a).unwrap();
    assert_eq!(lu.log_det(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn agrees_with_dense_lu(n in 1usize..60, degree in 0.0f64..6.0, seed: u64) {
        check::<f64>(n, degree, seed);
        check::<c64>(n, degree, seed);
    }

    #[test]
    fn agrees_with_dense_lu_in_single_precision(n in 1usize..25, degree in 0.0f64..3.0, seed: u64) {
        check::<f32>(n, degree, seed);
        check::<c32>(n, degree, seed);
    }
}

#[test]
fn files_are_solved_or_named_singular() {
    let Some(root) = shared(".") else { return };
    let mut seen = 0;
    for folder in ["matrices", "block", "banded", "tridiag"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_none_or(|e| e != "mtx") || name.ends_with("_b") || name.ends_with("_xref") {
                continue;
            }
            let Some(a) = read(&path) else { continue };
            if a.nrows() > 20_000 {
                continue;
            }
            seen += 1;
            let start = std::time::Instant::now();
            match SparseLu::new(&a) {
                Ok(lu) => {
                    let time = start.elapsed();
                    let error = refined_error(&a, &lu);
                    let s = lu.stats();
                    println!(
                        "{name:28} n {:6} nnz {:7} fill {:5.1} growth {:8.1e} rcond {:8.1e} error {error:8.1e} {time:?}",
                        a.nrows(),
                        a.nnz(),
                        s.nnz as f64 / a.nnz() as f64,
                        s.growth,
                        lu.rcond(),
                    );
                    assert!(error <= 1e-14, "{name}: {error:e}");
                }
                Err(FactorError::Singular(s)) => println!("{name:28} {s}"),
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn a_monitor_stops_the_factorization() {
    let a = random::<f64>(200, 3.0, 5);
    let mut calls = 0;
    let mut monitor = |_: bt_formats::Progress| {
        calls += 1;
        if calls == 2 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    assert!(matches!(SparseLu::with_monitor(&a, &mut monitor as &mut dyn Monitor), Err(FactorError::Stopped)));
    assert_eq!(calls, 2);
}

#[test]
fn threads_may_solve_at_once() {
    let a = random::<f64>(100, 3.0, 9);
    let lu = SparseLu::new(&a).unwrap();
    let reference = {
        let mut x = vec![1.0; 100];
        lu.solve_vec_in_place(&mut x);
        x
    };
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..50 {
                    let mut x = vec![1.0; 100];
                    lu.solve_vec_in_place(&mut x);
                    assert_eq!(x, reference);
                }
            });
        }
    });
}
