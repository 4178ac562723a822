//! Butterflies inside blocks: hard diagonals, sizes around those of the kernels, fallbacks by name, threads.

use bt_direct::refine::unit_roundoff;
use bt_direct::{
    BlockLuAcross, BlockRbt, FactorError, Factorization, Fallback, FallbackReason, RbtOptions, Refinement, refine,
};
use bt_formats::{BlockTridiagonal, Op, Partition, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{Random, check_agreement, check_contract};

/// Dense blocks of these sizes with a zero diagonal; `weight` stands on the antidiagonals of the diagonal blocks.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let mut random = Random::new(seed);
    let (mut diagonal, mut couplings) = (Vec::new(), Vec::new());
    for (j, &k) in sizes.iter().enumerate() {
        diagonal.extend((0..k * k).map(|e| {
            let (row, col): (usize, usize) = (e % k, e / k);
            let v: T = random.scalar();
            match (row == col && k > 1, row + col + 1 == k) {
                (true, _) => T::default(),
                (_, heavy) => v + T::rounded(if heavy { weight } else { 0.0 }, 0.0),
            }
        }));
        if let Some(next) = sizes.get(j + 1) {
            couplings.extend((0..2 * k * next).map(|_| random.scalar::<T>()));
        }
    }
    BlockTridiagonal::from_dense_blocks(Partition::from_sizes(sizes.iter().copied()).unwrap(), diagonal, couplings)
        .unwrap()
}

/// Refined solutions in all operations, and the contract where growth is harmless.
fn check<T: Scalar>(sizes: &[usize], seed: u64) {
    let a = random::<T>(sizes, 2.0 * *sizes.iter().max().unwrap() as f64, seed);
    let f = BlockRbt::new(&a).unwrap();
    if BlockLuAcross::new(&a).unwrap().rcond() < 1e-4 {
        return;
    }
    check_agreement(&a, &f, seed);
    if f.stats().growth < 1e3 {
        check_contract(&a, &f, seed);
    }
    let mut random = Random::new(seed + 1);
    for op in crate::common::OPS {
        let b = Mat::<T>::from_fn(a.n(), 2, |_, _| random.scalar());
        let mut x = b.clone();
        f.solve_op_in_place(op, x.as_mut());
        let refined = refine(&a, &f, op, b.as_ref(), &mut x, Refinement::Auto);
        let allowed = 40.0 * unit_roundoff::<T>();
        assert!(refined.certificate.backward_error <= allowed, "{op:?}: {:e}", refined.certificate.backward_error);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn zero_diagonals(sizes in prop::collection::vec(1usize..20, 1..5), seed in 0u64..1 << 40) {
        check::<f64>(&sizes, seed);
        check::<c64>(&sizes, seed);
    }

    #[test]
    fn zero_diagonals_in_single_precision(sizes in prop::collection::vec(1usize..10, 1..4), seed in 0u64..1 << 40) {
        check::<f32>(&sizes, seed);
        check::<c32>(&sizes, seed);
    }
}

#[test]
fn sizes_around_those_of_the_kernels() {
    for sizes in [vec![31, 33], vec![64, 65, 8], vec![70, 3, 40]] {
        check::<f64>(&sizes, 5);
    }
    check::<c32>(&[33, 17], 6);
}

#[test]
fn singular_blocks_fall_back_and_say_so() {
    // Zero diagonal blocks need pivots from the next block, whatever is done inside them.
    let good = random::<f64>(&[6; 4], 12.0, 3);
    let mut csr = good.to_csr().unwrap();
    let partition = good.partition().clone();
    let rows: Vec<usize> = (0..24).flat_map(|i| vec![i; csr.row(i).0.len()]).collect();
    let columns = csr.col_idx().to_vec();
    for (v, (row, col)) in csr.values_mut().iter_mut().zip(rows.into_iter().zip(columns)) {
        *v = if partition.block_of(row) == partition.block_of(col as usize) { 0.0 } else { *v };
    }
    let bad = BlockTridiagonal::from_csr(&csr, partition, bt_formats::HybridLayout::default()).unwrap();
    let mut f = BlockRbt::new(&bad).unwrap();
    // Rounding leaves a tiny pivot, or growth, where the exact pivot is zero.
    assert!(f.fallback().is_some());
    check_contract(&bad, &f, 1);
    f.refactor(&good).unwrap();
    assert_eq!(f.fallback(), None);
    check_contract(&good, &f, 1);
    let options = RbtOptions { fallback: Fallback::Error, ..RbtOptions::default() };
    let message = BlockRbt::with_options(&bad, options, &mut ()).unwrap_err().to_string();
    assert!(message.contains("block-rbt") && message.contains("block-lu-across"), "{message}");
}

#[test]
fn without_butterflies_a_zero_pivot_is_met() {
    let a = random::<f64>(&[5, 4], 10.0, 2);
    let options = RbtOptions { depth: 0, ..RbtOptions::default() };
    let f = BlockRbt::with_options(&a, options, &mut ()).unwrap();
    assert_eq!(f.fallback(), Some(FallbackReason::Pivot(0)));
    assert_eq!(BlockRbt::new(&a).unwrap().fallback(), None);
}

#[test]
fn singular_matrices_are_for_pivoting_to_judge() {
    let a = random::<f64>(&[3, 3], 6.0, 2);
    let mut csr = a.to_csr().unwrap();
    let columns = csr.col_idx().to_vec();
    csr.values_mut().iter_mut().zip(columns).for_each(|(v, c)| *v *= f64::from(u8::from(c != 4)));
    let bad = BlockTridiagonal::from_csr(&csr, a.partition().clone(), bt_formats::HybridLayout::default()).unwrap();
    assert!(matches!(BlockRbt::new(&bad), Err(FactorError::Singular(place)) if place.column == 4));
}

#[test]
fn seeds_and_threads() {
    let a = random::<f64>(&[96, 100, 90], 200.0, 4);
    let solve = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let f = BlockRbt::with_options(&a, RbtOptions { seed, ..RbtOptions::default() }, &mut ()).unwrap();
            let mut x = Mat::<f64>::from_fn(286, 1, |i, _| (i % 5) as f64);
            f.solve_op_in_place(Op::Identity, x.as_mut());
            x
        })
    };
    assert_eq!(solve(1, 7), solve(2, 7));
    assert_ne!(solve(1, 7), solve(1, 8));
}
