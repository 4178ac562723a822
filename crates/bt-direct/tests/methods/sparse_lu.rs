//! Sparse LU: the contract on random patterns of every scalar, the matrices of ../shared, monitors and threads.

use bt_direct::{FactorError, Factorization, Refinement, SingularKind, SparseLu, SymbolicLu, refine};
use bt_formats::{Coo, Csr, LinearOperator, Matrix, Monitor, Op, Progress, RealScalar, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;
use std::ops::ControlFlow;

use crate::common::{Random, check_contract, data, read_matrix};

/// About `degree` entries a row, and a permuted diagonal that makes the pattern nonsingular.
fn random<T: Scalar>(n: usize, degree: f64, seed: u64) -> Csr<T> {
    let mut random = Random::new(seed);
    let step = (1..n.max(2)).rev().find(|s| gcd(*s, n) == 1).unwrap_or(1);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..n {
            let on = (i * step + 1) % n == j;
            if on || random.real().abs() * (n as f64) < degree {
                // Rows differ in scale by up to 2⁴⁰.
                let scale = T::rounded(2f64.powi((i as i32 * 13) % 40 - 20), 0.0);
                a.push(i, j, random.scalar::<T>() * scale).unwrap();
            }
        }
    }
    a.to_csr().unwrap()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn check<T: Scalar>(n: usize, degree: f64, seed: u64) {
    let a = random::<T>(n, degree, seed);
    let mut lu = SparseLu::new(&a).unwrap();
    check_contract(&a, &lu, seed);
    let b = a.scale(&vec![bt_formats::one(); n], &vec![<T::Real as RealScalar>::from_f64(3.0); n]);
    lu.refactor(&b).unwrap();
    check_contract(&b, &lu, seed);
    // The same values again: the same bits.
    let before = SparseLu::new(&a).unwrap().log_det();
    lu.refactor(&a).unwrap();
    assert_eq!(lu.log_det(), before);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

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
    let mut seen = 0;
    for folder in ["matrices", "block", "banded", "tridiag"] {
        let Some(folder) = data(folder) else { return };
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let banner = std::fs::read_to_string(&path).unwrap().lines().next().unwrap_or("").to_owned();
            if name.ends_with("_b") || name.ends_with("_xref") || !banner.contains("coordinate real") {
                continue;
            }
            let a = read_matrix(&path);
            seen += 1;
            match SparseLu::new(&a) {
                Ok(lu) => {
                    let error = refined_error(&a, &lu);
                    let (s, n, nnz) = (lu.stats(), a.nrows(), a.nnz());
                    let fill = s.nnz as f64 / nnz as f64;
                    let symbolic = lu.symbolic();
                    println!(
                        "{name:28} n {n:6} nnz {nnz:7} fill {fill:5.1} ({:5.1} counted), flops {:8.1e} ({:8.1e} counted), growth {:8.1e} error {error:8.1e}",
                        symbolic.fill() as f64 / nnz as f64,
                        s.flops,
                        symbolic.flops(),
                        s.growth
                    );
                    assert!(error <= 1e-14, "{name}: {error:e}");
                }
                Err(FactorError::Singular(s)) => {
                    println!("{name:28} {s}");
                    assert!(SINGULAR.contains(&name.as_str()), "{name} is not singular");
                }
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(seen > 80, "{seen}");
}

/// Files whose matrix is exactly singular, and seen to be.
const SINGULAR: [&str; 8] = [
    "structurally_singular_block",
    "neumann_singular_64",
    "lapack_gb2_n60",
    "lapack_gb3_n60",
    "lapack_gb4_n60",
    "lapack_gt08_n50",
    "lapack_gt09_n50",
    "lapack_gt10_n50",
];

/// Backward error of A·x = b after refinement for the b of the data's index: x* = 1 + ((7·i) mod 11)/11.
fn refined_error(a: &Csr<f64>, lu: &SparseLu<f64>) -> f64 {
    let n = a.nrows();
    let x_true: Vec<f64> = (0..n).map(|i| 1.0 + ((7 * i) % 11) as f64 / 11.0).collect();
    let mut b = Mat::zeros(n, 1);
    a.apply(1.0, &x_true, 0.0, b.col_as_slice_mut(0));
    let mut x = b.clone();
    lu.solve_in_place(x.as_mut());
    refine(a, lu, Op::Identity, b.as_ref(), &mut x, Refinement::Auto).certificate.backward_error
}

#[test]
fn counts_of_any_pattern_are_those_of_an_elimination_with_the_preferred_pivots() {
    for (n, degree) in [(40, 1.5), (80, 3.0), (150, 2.0)] {
        // The matched entries rule their columns: no other pivot is taken.
        let mut a = random::<f64>(n, degree, n as u64);
        let step = (1..n).rev().find(|s| gcd(*s, n) == 1).unwrap();
        for i in 0..n {
            let (cols, values) = a.row_mut(i);
            for (&j, v) in cols.iter().zip(values) {
                *v = if (i * step + 1) % n == j as usize { 100.0 } else { *v / v.abs().log2().floor().exp2() };
            }
        }
        let symbolic = SymbolicLu::new(&a).unwrap();
        let lu = SparseLu::new(&a).unwrap();
        assert_eq!((lu.stats().nnz as u64, lu.stats().flops), (symbolic.fill(), symbolic.flops()), "{n} rows");
        assert!(symbolic.is_by_columns());
        let predicted = symbolic.bytes::<f64>().unwrap() as f64;
        assert!((0.5..2.0).contains(&(lu.stats().bytes as f64 / predicted)));
    }
}

#[test]
fn a_symbolic_phase_is_that_of_all_matrices_of_its_pattern() {
    let (a, b) = (random::<f64>(60, 2.0, 1), random::<f64>(60, 2.0, 2));
    let other_values = a.scale(&[4.0; 60], &[1.0; 60]);
    let symbolic = std::sync::Arc::new(SymbolicLu::new(&a).unwrap());
    for a in [&a, &other_values] {
        let lu = SparseLu::with_symbolic(a, symbolic.clone(), &mut ()).unwrap();
        assert!(std::sync::Arc::ptr_eq(lu.symbolic(), &symbolic));
        assert_eq!(lu.log_det(), SparseLu::new(a).unwrap().log_det());
    }
    let refused = SparseLu::with_symbolic(&b, symbolic.clone(), &mut ()).err().unwrap();
    assert!(refused.to_string().contains("column 0 (from 0) has entries in other rows"), "{refused}");
    let refused = SparseLu::with_symbolic(&random::<f64>(5, 2.0, 1), symbolic, &mut ()).err().unwrap();
    assert!(refused.to_string().contains("5 rows, but 60 were analysed"), "{refused}");
    // No values make such a pattern nonsingular.
    let empty_column = Csr::new(2, 2, vec![0, 1, 2], vec![0, 0], vec![1.0, 1.0]).unwrap();
    assert!(matches!(
        SymbolicLu::new(&empty_column),
        Err(FactorError::Singular(s)) if s.kind == SingularKind::Structural && s.column == 1
    ));
}

#[test]
fn a_monitor_stops_the_factorization() {
    let a = random::<f64>(200, 3.0, 5);
    let mut calls = 0;
    let mut monitor = |_: Progress| {
        calls += 1;
        if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
