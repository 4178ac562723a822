//! Block cyclic reduction: the contract on random block sizes, the same bits for any number of threads, honest errors.

use std::ops::ControlFlow;

use bt_direct::{BlockCyclicReduction, FactorError, Factorization, Place, SingularKind};
use bt_formats::{BlockTridiagonal, Coo, HybridLayout, Monitor, Op, Partition, Progress, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{OPS, Random, check_contract};

/// Dense blocks, half of the couplings' entries, and a heavy cyclic diagonal inside each block: rows must be exchanged.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut random = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for bi in 0..partition.n_blocks() {
        let lo = partition.range(bi.saturating_sub(1)).start;
        let hi = partition.range((bi + 1).min(partition.n_blocks() - 1)).end;
        for i in partition.range(bi) {
            for j in lo..hi {
                let v: T = random.scalar();
                let range = partition.range(bi);
                let heavy = range.start + (i - range.start + 1) % range.len() == j;
                if range.contains(&j) {
                    a.push(i, j, v + if heavy { T::rounded(weight, 0.0) } else { bt_formats::zero() }).unwrap();
                } else if random.real() > 0.0 {
                    a.push(i, j, v).unwrap();
                }
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn check<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) {
    let a = random::<T>(sizes, weight, seed);
    let b = random::<T>(sizes, weight + 1.0, seed);
    let mut factors = match BlockCyclicReduction::new(&a) {
        Ok(factors) => factors,
        // Without weight a block may come out nearly singular by chance.
        Err(FactorError::Breakdown { .. }) if weight < 1.0 => return,
        Err(e) => panic!("{e}"),
    };
    check_contract(&a, &factors, seed);
    let stats = factors.stats();
    assert!(stats.bytes as f64 >= BlockCyclicReduction::<T>::bytes(a.partition()));
    assert_eq!(stats.nnz * size_of::<T>() + 4 * a.n(), BlockCyclicReduction::<T>::bytes(a.partition()) as usize);
    let det = factors.log_det();
    if factors.refactor(&b).is_ok() {
        check_contract(&b, &factors, seed);
    }
    // The same values again: the same bits.
    factors.refactor(&a).unwrap();
    assert_eq!(factors.log_det(), det);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn contract_in_double_precision(sizes in prop::collection::vec(1usize..9, 1..11), weight in 0.0f64..12.0, seed: u64) {
        check::<f64>(&sizes, weight, seed);
        check::<c64>(&sizes, weight, seed);
    }

    #[test]
    fn contract_in_single_precision(sizes in prop::collection::vec(1usize..8, 1..7), weight in 4.0f64..12.0, seed: u64) {
        check::<f32>(&sizes, weight, seed);
        check::<c32>(&sizes, weight, seed);
    }

    #[test]
    fn scalar_blocks(n in 1usize..40, weight in 2.5f64..6.0, seed: u64) {
        check::<f64>(&vec![1; n], weight, seed);
    }
}

#[test]
fn sizes_around_the_switch_of_kernels() {
    for sizes in [vec![15, 16, 17, 15, 16], vec![16; 4], vec![40, 1, 33], vec![64], vec![3, 50, 2, 20]] {
        check::<f64>(&sizes, 40.0, 3);
        check::<c32>(&sizes, 60.0, 4);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    // Large enough that factorization and solve go parallel.
    let mut r = Random::new(9);
    let sizes: Vec<usize> = (0..611).map(|_| (10.0 + 8.0 * r.real()) as usize).collect();
    let a = random::<f64>(&sizes, 30.0, 1);
    let b = Mat::<f64>::from_fn(a.n(), 3, |_, _| r.scalar());
    let run = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let factors = BlockCyclicReduction::new(&a).unwrap();
            let solutions = OPS.map(|op: Op| {
                let mut x = b.clone();
                factors.solve_op_in_place(op, x.as_mut());
                x
            });
            (solutions, factors.log_det(), factors.stats())
        })
    };
    let alone = run(1);
    for threads in [2, 3, 8] {
        let together = run(threads);
        for (x, y) in alone.0.iter().zip(&together.0) {
            assert!((0..3).all(|j| x.col_as_slice(j) == y.col_as_slice(j)), "{threads} threads");
        }
        assert_eq!((alone.1, alone.2), (together.1, together.2), "{threads} threads");
    }
    let x = &alone.0[0];
    let error = bt_formats::certify(&a, Op::Identity, x.as_ref(), b.as_ref()).backward_error;
    assert!(error < 1e-14 * alone.2.growth, "{error:e}");
}

fn scalar_blocks_of(rows: &[&[f64]]) -> BlockTridiagonal<f64> {
    let n = rows.len();
    let mut a = Coo::new(n, n).unwrap();
    for (i, row) in rows.iter().enumerate() {
        for (j, &v) in row.iter().enumerate() {
            a.push(i, j, v).unwrap();
        }
    }
    let p = Partition::uniform(n, 1).unwrap();
    BlockTridiagonal::from_csr(&a.to_csr().unwrap().without_zeros(), p, HybridLayout::default()).unwrap()
}

#[test]
fn a_singular_block_is_a_breakdown_and_a_proof_only_where_it_is_all() {
    // Regular, but the pivot of block 1 is zero.
    let a = scalar_blocks_of(&[&[1.0, 1.0, 0.0], &[1.0, 0.0, 1.0], &[0.0, 1.0, 2.0]]);
    let Err(FactorError::Breakdown { method, place, reason }) = BlockCyclicReduction::new(&a) else { panic!() };
    assert_eq!((method, place), ("block-cyclic-reduction", Some(Place::Column(1))));
    assert!(reason.contains("block 1") && reason.contains("band-lu"), "{reason}");
    // D̃₀ = 1 − 1·1 = 0: of several blocks no proof, since rows are not exchanged across them.
    let a = scalar_blocks_of(&[&[1.0, 1.0], &[1.0, 1.0]]);
    let Err(FactorError::Breakdown { reason, .. }) = BlockCyclicReduction::new(&a) else { panic!() };
    assert!(reason.contains("block 0"), "{reason}");
    let a = scalar_blocks_of(&[&[0.0]]);
    let Err(FactorError::Singular(s)) = BlockCyclicReduction::new(&a) else { panic!() };
    assert_eq!((s.kind, s.column, s.block), (SingularKind::Numerical, 0, Some(0)));
    // 1/pivot = 1e12 enters the neighbours.
    let a = scalar_blocks_of(&[&[1.0, 1.0, 0.0], &[1.0, 1e-12, 1.0], &[0.0, 1.0, 2.0]]);
    let Err(FactorError::Breakdown { place, reason, .. }) = BlockCyclicReduction::new(&a) else { panic!() };
    assert!(reason.contains("grow") && reason.contains("block 1"), "{reason}");
    assert_eq!(place, Some(Place::Block(1)));
}

#[test]
fn nan_is_refused_with_its_place_and_refactorisation_recovers() {
    let good = scalar_blocks_of(&[&[2.0, 1.0, 0.0], &[1.0, 3.0, 1.0], &[0.0, 1.0, 2.0]]);
    let mut factors = BlockCyclicReduction::new(&good).unwrap();
    let mut coo = Coo::new(3, 3).unwrap();
    for (i, j, v) in [(0, 0, 2.0), (1, 1, 0.0), (1, 2, f64::INFINITY), (2, 2, 1.0)] {
        coo.push(i, j, v).unwrap();
    }
    let p = Partition::uniform(3, 1).unwrap();
    if let Ok(bad) = BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), p, HybridLayout::default()) {
        let refused = factors.refactor(&bad);
        // Named before the zero pivot of block 1.
        assert!(matches!(refused, Err(FactorError::Input(bt_formats::Error::NonFinite { row: 1, col: 2, .. }))));
        let mut x = [1.0; 3];
        factors.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
    }
    factors.refactor(&good).unwrap();
    let mut x = [3.0, 5.0, 3.0];
    factors.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-15), "{x:?}");
    let p = Partition::from_sizes([2, 1]).unwrap();
    let other = BlockTridiagonal::from_csr(&good.to_csr().unwrap(), p, HybridLayout::default()).unwrap();
    assert!(matches!(factors.refactor(&other), Err(FactorError::Input(_))));
}

#[test]
fn extreme_scales() {
    for scale in [1e300, 1e-300] {
        let a = random::<f64>(&[3, 2, 4, 1, 3], 9.0, 2);
        let mut csr = a.to_csr().unwrap();
        csr.values_mut().iter_mut().for_each(|v| *v *= scale);
        let a = BlockTridiagonal::from_csr(&csr, a.partition().clone(), HybridLayout::default()).unwrap();
        let factors = BlockCyclicReduction::new(&a).unwrap();
        let b = vec![scale; a.n()];
        let error = crate::common::backward_error(&a, &factors, Op::Identity, &b);
        assert!(error < 1e-14, "{scale:e}: {error:e}");
    }
}

#[test]
fn a_monitor_stops_the_factorization() {
    let a = random::<f64>(&[3; 10], 5.0, 1);
    let mut seen = 0;
    let mut monitor = |p: Progress| {
        if let Progress::Step { done: 4, total: 10, .. } = p {
            return ControlFlow::Break(());
        }
        seen += 1;
        ControlFlow::Continue(())
    };
    let stopped = BlockCyclicReduction::with_monitor(&a, &mut monitor as &mut dyn Monitor);
    assert!(matches!(stopped, Err(FactorError::Stopped)));
    assert_eq!(seen, 4);
}
