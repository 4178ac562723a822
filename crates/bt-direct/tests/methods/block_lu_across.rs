//! Block LU with pivoting across blocks: agreement with band LU, singular blocks, ../shared.

use bt_direct::{BandLu, BlockLuAcross, FactorError, Factorization};
use bt_formats::{Band, BlockTridiagonal, Coo, Csr, HybridLayout, Op, Partition, Scalar, c32, c64};
use proptest::prelude::*;

use crate::common::{BlockSystem, Random, backward_error, block_systems, check_agreement, check_contract};

/// Blocks of these sizes; of the diagonal blocks as many entries as `fill` says, none at all for 0.
fn random<T: Scalar>(sizes: &[usize], fill: f64, seed: u64) -> (Csr<T>, BlockTridiagonal<T>) {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut random = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..n {
            let distance = partition.block_of(i).abs_diff(partition.block_of(j));
            let v: T = random.scalar();
            if distance == 1 || (distance == 0 && 0.5 * (random.real() + 1.0) < fill) {
                a.push(i, j, v).unwrap();
            }
        }
    }
    let a = a.to_csr().unwrap();
    let blocks = BlockTridiagonal::from_csr(&a, partition, HybridLayout::default()).unwrap();
    (a, blocks)
}

fn check<T: Scalar>(sizes: &[usize], fill: f64, seed: u64) {
    let (csr, a) = random::<T>(sizes, fill, seed);
    let band = BandLu::new(&Band::from_csr(&csr).unwrap());
    match BlockLuAcross::new(&a) {
        Ok(lu) => {
            if lu.rcond() > 1e-5 {
                check_contract(&a, &lu, seed);
                check_agreement(&a, &lu, seed);
                assert!(lu.stats().growth < 100.0);
                assert!(lu.stats().bytes as f64 == BlockLuAcross::<T>::bytes(a.partition()));
                // Determinants of the same matrix by the same pivots, wherever band LU has not turned to two ends.
                let difference = lu.log_det().log_abs - band.unwrap().log_det().log_abs;
                assert!(difference.abs() < 1e-2, "{difference:e}");
            }
        }
        // Some patterns are structurally singular: band LU then finds no better.
        Err(FactorError::Singular(place)) => {
            assert!(place.block.is_some() && band.map_or(0.0, |f| f.rcond()) < 1e-5, "{place:?}");
        }
        Err(e) => panic!("{e}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]

    #[test]
    fn contract_with_small_blocks(sizes in prop::collection::vec(1usize..9, 1..7), fill in 0.0f64..1.5, seed: u64) {
        check::<f64>(&sizes, fill, seed);
        check::<c64>(&sizes, fill, seed);
        check::<f32>(&sizes, fill, seed);
    }
}

#[test]
fn contract_around_the_switch_of_kernels() {
    for sizes in [vec![31, 32, 33], vec![40, 1, 33, 40], vec![3, 50], vec![65], vec![33, 2, 2, 40]] {
        check::<f64>(&sizes, 0.9, 3);
        check::<c32>(&sizes, 0.9, 4);
    }
}

#[test]
fn zero_diagonal_blocks_solve() {
    // An even number of equal blocks, all diagonal ones empty: nonsingular, and no block LU has a pivot.
    let (_, a) = random::<f64>(&[5; 6], 0.0, 2);
    assert!(bt_direct::BlockLu::new(&a).is_err());
    let lu = BlockLuAcross::new(&a).unwrap();
    check_contract(&a, &lu, 1);
    // An odd number: the pattern is singular.
    for sizes in [vec![5; 5], vec![40; 3]] {
        let (_, a) = random::<f64>(&sizes, 0.0, 2);
        let Err(FactorError::Singular(place)) = BlockLuAcross::new(&a) else { panic!("singular") };
        assert_eq!(place.block, Some(sizes.len() - 1));
        assert_eq!(place.column, sizes[0] * (sizes.len() - 1));
    }
}

#[test]
fn an_empty_column_is_named_and_the_object_lives_on() {
    for sizes in [vec![3, 4, 5], vec![40, 36, 33]] {
        let (csr, good) = random::<f64>(&sizes, 1.0, 6);
        let mut bad = csr.clone();
        let column = sizes[0] + 2;
        let (columns, n) = (bad.col_idx().to_vec(), good.n());
        bad.values_mut().iter_mut().zip(columns).for_each(|(v, c)| *v *= f64::from(u8::from(c as usize != column)));
        let bad = BlockTridiagonal::from_csr(&bad, good.partition().clone(), HybridLayout::default()).unwrap();
        let mut lu = BlockLuAcross::new(&good).unwrap();
        let Err(FactorError::Singular(place)) = lu.refactor(&bad) else { panic!("singular") };
        assert_eq!((place.column, place.block), (column, Some(1)));
        let mut x = vec![1.0; n];
        lu.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        lu.refactor(&good).unwrap();
        check_contract(&good, &lu, 1);
    }
}

#[test]
fn shared_block_systems() {
    for BlockSystem { name, csr, blocks, b, .. } in block_systems() {
        match BlockLuAcross::new(&blocks) {
            Ok(lu) => {
                let error = backward_error(&csr, &lu, Op::Identity, &b);
                println!("{name:28} growth {:8.1e} error {error:8.1e}", lu.stats().growth);
                assert!(error <= 1e-14, "{name}: {error:e}");
            }
            Err(e) => {
                println!("{name:28} {e}");
                assert!(name == "structurally_singular_block" && matches!(e, FactorError::Singular(_)), "{name}: {e}");
            }
        }
    }
}
