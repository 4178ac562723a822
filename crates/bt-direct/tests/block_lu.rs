//! Block LU: the contract on random systems with blocks of any sizes, both kinds of kernels, breakdowns, ../shared.

mod common;

use std::ops::ControlFlow;

use bt_direct::{BlockLu, FactorError, Factorization, Kernels, Refinement, refine};
use bt_formats::{
    BlockTridiagonal, Coo, Csr, HybridLayout, Matrix, Monitor, Op, Partition, Progress, Scalar, c32, c64,
};
use common::{Random, check_contract, data, read_matrix, read_vector};
use faer::Mat;
use proptest::prelude::*;

/// Random blocks, the diagonal raised to `weight` (0 leaves pivoting something to do), couplings about half full.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut random = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..n {
            let distance = partition.block_of(i).abs_diff(partition.block_of(j));
            let v: T = random.scalar();
            // A cyclic shift inside the block carries the weight: rows must be exchanged.
            let range = partition.range(partition.block_of(i));
            let heavy = range.start + (i - range.start + 1) % range.len() == j;
            if distance == 0 {
                a.push(i, j, v + if heavy { T::from_parts(weight, 0.0) } else { bt_formats::zero() }).unwrap();
            } else if distance == 1 && random.real() > 0.0 {
                a.push(i, j, v).unwrap();
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn check<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) {
    let a = random::<T>(sizes, weight, seed);
    let b = random::<T>(sizes, weight + 1.0, seed);
    for kernels in [Kernels::Loops, Kernels::Blocked, Kernels::Auto] {
        let mut lu = match BlockLu::with_kernels(&a, kernels, &mut ()) {
            Ok(lu) => lu,
            // Without weight a block may come out nearly singular by chance.
            Err(FactorError::Breakdown { .. }) if weight < 1.0 => return,
            Err(e) => panic!("{e}"),
        };
        check_contract(&a, &lu, seed);
        let det = lu.log_det();
        if lu.refactor(&b).is_ok() {
            check_contract(&b, &lu, seed);
        }
        // The same values again: the same bits.
        lu.refactor(&a).unwrap();
        assert_eq!(lu.log_det(), det);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn contract_in_double_precision(sizes in prop::collection::vec(1usize..12, 1..6), weight in 0.0f64..12.0, seed: u64) {
        check::<f64>(&sizes, weight, seed);
        check::<c64>(&sizes, weight, seed);
    }

    #[test]
    fn contract_in_single_precision(sizes in prop::collection::vec(1usize..8, 1..5), weight in 3.0f64..12.0, seed: u64) {
        check::<f32>(&sizes, weight, seed);
        check::<c32>(&sizes, weight, seed);
    }

    #[test]
    fn scalar_blocks(n in 1usize..40, weight in 2.5f64..6.0, seed: u64) {
        check::<f64>(&vec![1; n], weight, seed);
    }
}

/// `a` with block row `j` taken from `b`.
fn with_row<T: Scalar>(a: &BlockTridiagonal<T>, b: &BlockTridiagonal<T>, j: usize) -> BlockTridiagonal<T> {
    let (n, partition) = (a.n(), a.partition());
    let mut coo = Coo::new(n, n).unwrap();
    for (from, inside) in [(a, false), (b, true)] {
        from.for_each_entry(&mut |row, col, v| {
            if partition.range(j).contains(&row) == inside {
                coo.push(row, col, v).unwrap();
            }
        });
    }
    let layout = HybridLayout { diagonal: Some(bt_formats::DiagonalKind::Dense), couplings: None };
    BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition.clone(), layout).unwrap()
}

fn check_update<T: Scalar>(sizes: &[usize], seed: u64) {
    let (a, b) = (random::<T>(sizes, 14.0, seed), random::<T>(sizes, 14.0, seed + 1));
    let mut lu = BlockLu::new(&a).unwrap();
    let mut current = a;
    let bits = |lu: &BlockLu<T>| {
        let mut x = Mat::<T>::from_fn(lu.n(), 1, |i, _| T::from_parts(i as f64 + 1.0, 0.5));
        lu.solve_in_place(x.as_mut());
        (x, lu.stats(), lu.log_det())
    };
    for j in 0..sizes.len() {
        current = with_row(&current, &b, j);
        lu.update_block(j, &current).unwrap();
        let fresh = BlockLu::new(&current).unwrap();
        assert_eq!(bits(&lu), bits(&fresh), "block {j}");
    }
    // A failure, and an update of what it left.
    let mut zero = current.to_csr().unwrap();
    zero.values_mut().fill(T::default());
    let zero = BlockTridiagonal::from_csr(&zero, current.partition().clone(), HybridLayout::default()).unwrap();
    assert!(lu.update_block(0, &zero).is_err());
    lu.update_block(sizes.len() - 1, &current).unwrap();
    assert_eq!(bits(&lu), bits(&BlockLu::new(&current).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20) })]

    #[test]
    fn updates_of_block_rows(sizes in prop::collection::vec(1usize..7, 1..9), seed in 0u64..1 << 40) {
        check_update::<f64>(&sizes, seed);
        check_update::<c32>(&sizes, seed);
    }
}

#[test]
fn sizes_around_the_switch_of_kernels() {
    for sizes in [vec![15, 16, 17], vec![16; 4], vec![40, 1, 33], vec![64], vec![3, 50], vec![97, 95, 96]] {
        check::<f64>(&sizes, 40.0, 3);
        check::<c32>(&sizes, 60.0, 4);
    }
}

#[test]
fn kernels_agree_to_rounding() {
    let a = random::<f64>(&[20, 31, 5, 18], 8.0, 11);
    let solve = |kernels| {
        let lu = BlockLu::with_kernels(&a, kernels, &mut ()).unwrap();
        let mut x: Vec<f64> = (0..74).map(f64::from).collect();
        lu.solve_vec_in_place(&mut x);
        x
    };
    for (x, y) in solve(Kernels::Loops).iter().zip(solve(Kernels::Blocked)) {
        assert!((x - y).abs() <= 1e-11 * x.abs().max(1.0), "{x} {y}");
    }
}

#[test]
fn a_block_without_pivot_is_named() {
    // Block 2 has rank one after elimination: its rows are equal, and its own are not coupled to block 3.
    let sizes = [4, 20, 20, 3];
    let a = random::<f64>(&sizes, 25.0, 5);
    let (start, end) = (24, 44);
    let mut coo = Coo::new(47, 47).unwrap();
    a.for_each_entry(&mut |i, j, v| {
        let inside = |k| (start..end).contains(&k);
        if inside(i) && inside(j) {
            coo.push(i, j, 1.0).unwrap();
        } else if !(inside(i) && j >= end) {
            coo.push(i, j, v).unwrap();
        }
    });
    let partition = Partition::from_sizes(sizes).unwrap();
    let a = BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition, HybridLayout::default()).unwrap();
    for kernels in [Kernels::Loops, Kernels::Blocked] {
        match BlockLu::with_kernels(&a, kernels, &mut ()) {
            Err(FactorError::Breakdown { reason, .. }) => {
                assert!(reason.contains("block 2") && reason.contains("column 25"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nan_is_refused_with_its_place() {
    let mut coo = Coo::new(3, 3).unwrap();
    for i in 0..3 {
        coo.push(i, i, 1.0).unwrap();
    }
    coo.push(2, 1, f64::NAN).unwrap();
    let partition = Partition::uniform(3, 1).unwrap();
    match BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition, HybridLayout::default()) {
        Err(bt_formats::Error::NonFinite { row: 2, col: 1, .. }) => {}
        Ok(a) => assert!(matches!(
            BlockLu::new(&a),
            Err(FactorError::Input(bt_formats::Error::NonFinite { row: 2, col: 1, .. }))
        )),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_monitor_stops_the_factorization() {
    let a = random::<f64>(&[3; 10], 5.0, 1);
    let mut monitor = |p: Progress| match p {
        Progress::Step { done: 4, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = BlockLu::with_monitor(&a, &mut monitor as &mut dyn Monitor);
    assert!(matches!(stopped, Err(FactorError::Stopped)));
}

#[test]
fn shared_block_systems() {
    let Some(folder) = data("block") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "blocks") {
            continue;
        }
        seen += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let sizes: Vec<usize> =
            std::fs::read_to_string(&path).unwrap().split_whitespace().map(|t| t.parse().unwrap()).collect();
        let csr: Csr<f64> = read_matrix(&path.with_extension("mtx"));
        let partition = Partition::from_sizes(sizes).unwrap();
        let a = BlockTridiagonal::from_csr(&csr, partition, HybridLayout::default()).unwrap();
        match BlockLu::new(&a) {
            Ok(lu) => {
                let b = read_vector(&folder.join(format!("{name}_b.mtx")));
                let b = Mat::from_fn(b.len(), 1, |i, _| b[i]);
                let mut x = b.clone();
                lu.solve_in_place(x.as_mut());
                let refined = refine(&csr, &lu, Op::Identity, b.as_ref(), &mut x, Refinement::Auto);
                let error = refined.certificate.backward_error;
                println!("{name:28} growth {:8.1e} error {error:8.1e}", lu.stats().growth);
                assert!(error <= 1e-14, "{name}: {error:e}");
                // ‖x − x_ref‖∞ ≤ 10·κ·u·‖x_ref‖∞
                let exact = read_vector(&folder.join(format!("{name}_xref.mtx")));
                let norm = exact.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let difference = exact.iter().zip(x.col_as_slice(0)).fold(0.0f64, |m, (e, x)| m.max((e - x).abs()));
                let allowed = 10.0 / lu.rcond() * 2f64.powi(-53);
                assert!(difference <= allowed * norm, "{name}: {difference:e} > {allowed:e}·{norm:e}");
            }
            Err(e) => {
                println!("{name:28} {e}");
                assert!(name == "singular_diag_blocks_3" || name == "structurally_singular_block", "{name}: {e}");
                assert!(matches!(e, FactorError::Breakdown { .. }), "{e}");
            }
        }
    }
    assert_eq!(seen, 8);
}
