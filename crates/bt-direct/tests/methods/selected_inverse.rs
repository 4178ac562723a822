//! The selected inverse against faer's dense inverse, on random block sizes.

use std::ops::ControlFlow;

use bt_direct::refine::unit_roundoff;
use bt_direct::{BlockLu, FactorError, Factorization, SelectedInverse, inverse_diagonal};
use bt_formats::{BlockTridiagonal, Coo, HybridLayout, Partition, Progress, Scalar, c32, c64};
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, MatRef};
use proptest::prelude::*;

use crate::common::{Random, dense};

/// Dense blocks with a heavy cyclic diagonal inside each: rows must be exchanged.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let mut random = Random::new(seed);
    let mut a = Coo::new(partition.n(), partition.n()).unwrap();
    for i in 0..partition.n() {
        let block = partition.block_of(i);
        let range = partition.range(block);
        for j in 0..partition.n() {
            if partition.block_of(j).abs_diff(block) <= 1 {
                let heavy = range.start + (i - range.start + 1) % range.len() == j;
                let v: T = random.scalar();
                a.push(i, j, v + if heavy { T::rounded(weight, 0.0) } else { bt_formats::zero() }).unwrap();
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn check<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) {
    let a = random::<T>(sizes, weight, seed);
    let lu = match BlockLu::new(&a) {
        Ok(lu) => lu,
        // Without weight a block may come out nearly singular by chance.
        Err(FactorError::Breakdown { .. }) if weight < 1.0 => return,
        Err(e) => panic!("{e}"),
    };
    let inverse = SelectedInverse::new(&lu).unwrap();
    let d = dense(&a);
    let n = a.n();
    let wide = Mat::<c64>::from_fn(n, n, |i, j| d[(i, j)].cast());
    let oracle = wide.partial_piv_lu().inverse();
    let norm = |m: &Mat<c64>| (0..n).map(|j| (0..n).map(|i| m[(i, j)].norm()).sum::<f64>()).fold(0.0, f64::max);
    // ‖S − A⁻¹‖ ≤ c·n·u·growth·κ·‖A⁻¹‖
    let growth = lu.stats().growth.max(1.0);
    let allowed = (20.0 + n as f64) * growth * unit_roundoff::<T>() * norm(&wide) * norm(&oracle) * norm(&oracle);
    let p = a.partition();
    let close = |s: MatRef<'_, T>, rows: usize, cols: usize| {
        let (rows, cols) = (p.range(rows), p.range(cols));
        assert_eq!((s.nrows(), s.ncols()), (rows.len(), cols.len()));
        for (i, r) in rows.enumerate() {
            for (j, c) in cols.clone().enumerate() {
                let v: c64 = s[(i, j)].cast();
                let error = (v - oracle[(r, c)]).norm();
                assert!(error <= allowed, "({r}, {c}): {v} instead of {}, {error:e} > {allowed:e}", oracle[(r, c)]);
            }
        }
    };
    for j in 0..p.n_blocks() {
        close(inverse.diagonal(j), j, j);
        if j > 0 {
            close(inverse.lower(j), j, j - 1);
        }
        if j + 1 < p.n_blocks() {
            close(inverse.upper(j), j, j + 1);
        }
    }
    // The diagonal alone is the same diagonal.
    assert_eq!(inverse_diagonal(&lu).unwrap(), inverse.diagonal_values());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn as_the_dense_inverse(sizes in prop::collection::vec(1usize..10, 1..7), weight in 0.0f64..12.0, seed: u64) {
        check::<f64>(&sizes, weight, seed);
        check::<c64>(&sizes, weight, seed);
    }

    #[test]
    fn in_single_precision(sizes in prop::collection::vec(1usize..7, 1..5), weight in 3.0f64..12.0, seed: u64) {
        check::<f32>(&sizes, weight, seed);
        check::<c32>(&sizes, weight, seed);
    }
}

#[test]
fn sizes_around_the_switch_of_kernels() {
    for sizes in [vec![15, 16, 17], vec![16; 4], vec![40, 1, 33], vec![64], vec![3, 50], vec![33, 32, 31]] {
        check::<f64>(&sizes, 40.0, 3);
        check::<c32>(&sizes, 60.0, 4);
    }
}

#[test]
fn other_factors_in_the_same_memory() {
    let sizes = [3, 5, 2];
    let lu = |seed| BlockLu::new(&random::<f64>(&sizes, 9.0, seed)).unwrap();
    let (first, second) = (lu(1), lu(2));
    let mut inverse = SelectedInverse::new(&first).unwrap();
    inverse.recompute(&second).unwrap();
    assert_eq!(inverse.diagonal_values(), inverse_diagonal(&second).unwrap());
    let other = BlockLu::new(&random::<f64>(&[5, 3, 2], 9.0, 1)).unwrap();
    assert!(matches!(inverse.recompute(&other), Err(FactorError::Input(_))));
    // A stopped computation leaves nothing that looks like an inverse.
    let mut monitor = |p: Progress| match p {
        Progress::Step { done: 1, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(inverse.recompute_with_monitor(&second, &mut monitor), Err(FactorError::Stopped)));
    assert!(inverse.diagonal_values().iter().all(|v| v.is_nan()));
}

#[test]
fn void_factors_give_nan() {
    let a = random::<f64>(&[3, 3], 9.0, 1);
    let mut lu = BlockLu::new(&a).unwrap();
    let mut zeros = a.to_csr().unwrap();
    zeros.values_mut().fill(0.0);
    let zeros = BlockTridiagonal::from_csr(&zeros, a.partition().clone(), HybridLayout::default()).unwrap();
    assert!(lu.refactor(&zeros).is_err());
    assert!(inverse_diagonal(&lu).unwrap().iter().all(|v| v.is_nan()));
}

#[test]
fn costs_by_formula() {
    let p = Partition::from_sizes([2, 1]).unwrap();
    assert_eq!(SelectedInverse::<f64>::bytes(&p), 8.0 * 9.0);
    assert!((SelectedInverse::<f64>::flops(&p) - (32.0 / 3.0 + 16.0 + 8.0 + 4.0 / 3.0)).abs() < 1e-12);
    assert_eq!(SelectedInverse::<f64>::flops(&p), 2.0 * BlockLu::<f64>::flops(&p));
}
