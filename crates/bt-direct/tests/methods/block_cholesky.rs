//! Block Cholesky: the contract on blocks of any sizes, agreement with block LU, what is not positive definite by name.

use bt_direct::{BlockCholesky, BlockLu, FactorError, Factorization, Place};
use bt_formats::{BlockTridiagonal, Coo, HybridLayout, Partition, RealScalar, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{Random, check_agreement, check_contract};

/// Hermitian with blocks of these sizes, the diagonal raised by `weight`; couplings about half full.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut random = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..=i {
            let distance = partition.block_of(i) - partition.block_of(j);
            let v: T = random.scalar();
            if i == j {
                a.push(i, i, T::rounded(v.re().to_f64() + weight, 0.0)).unwrap();
            } else if distance == 0 || (distance == 1 && random.real() > 0.0) {
                a.push(i, j, v).unwrap();
                a.push(j, i, Scalar::conj(v)).unwrap();
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn check<T: Scalar>(sizes: &[usize], seed: u64) {
    let largest = *sizes.iter().max().unwrap() as f64;
    let a = random::<T>(sizes, 5.0 * largest + 3.0, seed);
    let cholesky = BlockCholesky::new(&a).unwrap();
    check_contract(&a, &cholesky, seed);
    check_agreement(&a, &cholesky, seed);
    // The flops of block LU by half, the bytes by less.
    let (stats, lu) = (cholesky.stats(), BlockLu::new(&a).unwrap().stats());
    assert!(stats.flops <= 0.5 * lu.flops && stats.bytes <= lu.bytes + 16 * a.n(), "{stats:?} {lu:?}");
    assert!(stats.bytes as f64 == BlockCholesky::<T>::bytes(a.partition()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]

    #[test]
    fn contract_with_small_blocks(sizes in prop::collection::vec(1usize..10, 1..7), seed: u64) {
        check::<f64>(&sizes, seed);
        check::<c64>(&sizes, seed);
        check::<f32>(&sizes, seed);
        check::<c32>(&sizes, seed);
    }
}

#[test]
fn contract_around_the_switch_of_kernels() {
    for sizes in [vec![31, 32, 33], vec![12, 15, 17, 22], vec![40, 1, 33], vec![3, 50], vec![65], vec![33, 2, 2, 40]] {
        check::<f64>(&sizes, 3);
        check::<c32>(&sizes, 4);
    }
}

#[test]
fn two_threads_give_the_bits_of_one() {
    let a = random::<f64>(&[20; 150], 200.0, 8);
    let solve = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut x = Mat::<f64>::from_fn(3000, 1, |i, _| (i % 5) as f64);
            BlockCholesky::new(&a).unwrap().solve_in_place(x.as_mut());
            x
        })
    };
    assert_eq!(solve(1), solve(2));
}

#[test]
fn what_is_not_definite_or_not_hermitian_is_named() {
    let sizes = [2, 40, 3];
    for (row, block) in [(0, 0), (20, 1), (44, 2)] {
        let good = random::<f64>(&sizes, 220.0, 1);
        let mut csr = good.to_csr().unwrap();
        let place = csr.row_ptr()[row] as usize + csr.row(row).0.iter().position(|&c| c as usize == row).unwrap();
        csr.values_mut()[place] = -1.0;
        let remake = |csr| BlockTridiagonal::from_csr(csr, good.partition().clone(), HybridLayout::default()).unwrap();
        let Err(FactorError::Breakdown { place, reason, .. }) = BlockCholesky::new(&remake(&csr)) else {
            panic!("indefinite")
        };
        assert_eq!(place, Some(Place::Row(row)));
        assert!(reason.contains(&format!("row {row} ")) && reason.contains(&format!("block {block},")), "{reason}");
        let mut cholesky = BlockCholesky::new(&good).unwrap();
        assert!(cholesky.refactor(&remake(&csr)).is_err());
        let mut x = vec![1.0; 45];
        cholesky.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.is_nan()));
        cholesky.refactor(&good).unwrap();
        check_contract(&good, &cholesky, 2);
    }
    let mut csr = random::<f64>(&sizes, 220.0, 1).to_csr().unwrap();
    csr.values_mut()[1] += 1.0;
    let partition = Partition::from_sizes(sizes).unwrap();
    let a = BlockTridiagonal::from_csr(&csr, partition, HybridLayout::default()).unwrap();
    let message = BlockCholesky::new(&a).unwrap_err().to_string();
    assert!(message.contains("Hermitian") && message.contains("row"), "{message}");
}
