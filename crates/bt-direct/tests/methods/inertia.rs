//! Counts of eigenvalues against faer's eigenvalues, on random Hermitian matrices with zero eigenvalues among them.

use std::ops::ControlFlow;

use bt_direct::{FactorError, Inertia, eigenvalues_below};
use bt_formats::{
    Band, BlockTridiagonal, Coo, Csr, HybridLayout, LinearOperator, Partition, Progress, Scalar, Tridiagonal, c32, c64,
};
use faer::{Mat, Side};
use proptest::prelude::*;

use crate::common::{Random, dense};

/// A random Hermitian matrix with the given half-bandwidth rule.
fn hermitian<T: Scalar>(n: usize, inside: impl Fn(usize, usize) -> bool, seed: u64) -> Csr<T> {
    let mut r = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in (0..=i).filter(|&j| inside(i, j)) {
            let v: T = r.scalar();
            let v = if i == j { T::from_real(v.re()) } else { v };
            a.push(i, j, v).unwrap();
            if i != j {
                a.push(j, i, Scalar::conj(v)).unwrap();
            }
        }
    }
    a.to_csr().unwrap()
}

fn eigenvalues<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    let d = dense(a);
    let wide = Mat::<c64>::from_fn(a.nrows(), a.nrows(), |i, j| d[(i, j)].cast());
    wide.self_adjoint_eigenvalues(Side::Lower).unwrap()
}

fn agrees(inertia: &Inertia, eigenvalues: &[f64]) {
    let Inertia { negative, zero, positive, tolerance } = *inertia;
    assert_eq!(negative + zero + positive, eigenvalues.len());
    let below = |v: f64| eigenvalues.iter().filter(|&&e| e < v).count();
    let above = |v: f64| eigenvalues.iter().filter(|&&e| e > v).count();
    // Everything beyond 2δ is decided, and what is decided is right.
    assert!(negative >= below(-2.0 * tolerance) && positive >= above(2.0 * tolerance), "{inertia:?} {eigenvalues:?}");
    assert!(negative <= below(0.0) && positive <= above(0.0), "{inertia:?} {eigenvalues:?}");
}

fn blocks<T: Scalar>(sizes: &[usize], seed: u64) {
    let p = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let a = hermitian::<T>(p.n(), |i, j| p.block_of(i).abs_diff(p.block_of(j)) <= 1, seed);
    let exact = eigenvalues(&a);
    let h = BlockTridiagonal::from_csr(&a, p.clone(), HybridLayout::default()).unwrap();
    let inertia = Inertia::of_blocks(&h).unwrap();
    agrees(&inertia, &exact);
    assert!(inertia.tolerance < 1e-2 * exact.iter().fold(0.0, |m: f64, e| m.max(e.abs())), "{inertia:?}");
    // Between all eigenvalues.
    for w in exact.windows(2) {
        let shift = 0.5 * (w[0] + w[1]);
        match eigenvalues_below(&h, shift) {
            Ok(count) if w[1] - w[0] > 2.0 * count.perturbation => {
                assert_eq!(count.below, exact.iter().filter(|&&e| e < shift).count(), "{shift} {exact:?}");
            }
            Ok(_) | Err(FactorError::Breakdown { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn of_random_blocks(sizes in prop::collection::vec(1usize..7, 1..7), seed: u64) {
        blocks::<f64>(&sizes, seed);
        blocks::<c64>(&sizes, seed);
    }

    #[test]
    fn of_single_precision(sizes in prop::collection::vec(1usize..5, 1..4), seed: u64) {
        let p = Partition::from_sizes(sizes.iter().copied()).unwrap();
        let a = hermitian::<c32>(p.n(), |i, j| p.block_of(i).abs_diff(p.block_of(j)) <= 1, seed);
        let h = BlockTridiagonal::from_csr(&a, p, HybridLayout::default()).unwrap();
        match Inertia::of_blocks(&h) {
            Ok(inertia) => agrees(&inertia, &eigenvalues(&a)),
            Err(FactorError::Breakdown { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    #[test]
    fn of_bands_and_tridiagonals(n in 1usize..30, width in 1usize..4, seed: u64) {
        let a = hermitian::<f64>(n, |i, j| i - j <= width, seed);
        agrees(&Inertia::of_band(&Band::from_csr(&a).unwrap()).unwrap(), &eigenvalues(&a));
        let t = hermitian::<c64>(n, |i, j| i - j <= 1, seed);
        agrees(&Inertia::of_tridiagonal(&Tridiagonal::from_csr(&t).unwrap()).unwrap(), &eigenvalues(&t));
    }
}

/// The Laplacian of a path, diagonal 2 but 1 at both ends: one eigenvalue is zero, λₖ = 2 − 2cos(πk/n).
fn path(n: usize, scale: f64) -> Csr<f64> {
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        a.push(i, i, scale * if i == 0 || i + 1 == n { 1.0 } else { 2.0 }).unwrap();
        if i > 0 {
            a.push(i, i - 1, -scale).unwrap();
            a.push(i - 1, i, -scale).unwrap();
        }
    }
    a.to_csr().unwrap()
}

#[test]
fn zero_eigenvalues_are_zero_at_any_scale() {
    for scale in [1.0, 1e280, 1e-280] {
        let a = path(60, scale);
        let expected = (0, 1, 59);
        let t = Inertia::of_tridiagonal(&Tridiagonal::from_csr(&a).unwrap()).unwrap();
        let h = BlockTridiagonal::from_csr(&a, Partition::uniform(60, 7).unwrap(), HybridLayout::default()).unwrap();
        let h = Inertia::of_blocks(&h).unwrap();
        for i in [t, h] {
            assert_eq!((i.negative, i.zero, i.positive), expected, "{scale:e} {i:?}");
            assert!(i.tolerance <= 1e-11 * scale, "{i:?}");
        }
    }
    let nothing = Csr::new(4, 4, vec![0; 5], vec![], Vec::<f64>::new()).unwrap();
    let h = BlockTridiagonal::from_csr(&nothing, Partition::uniform(4, 2).unwrap(), HybridLayout::default()).unwrap();
    assert_eq!(Inertia::of_blocks(&h).unwrap().zero, 4);
}

#[test]
fn singular_leading_blocks_do_not_matter() {
    // [0 1; 1 0] ⊗ I₂ with zero diagonal blocks: every leading block is singular, the eigenvalues are ±1.
    let mut a = Coo::new(4, 4).unwrap();
    for (i, j) in [(0, 2), (1, 3), (2, 0), (3, 1)] {
        a.push(i, j, 1.0).unwrap();
    }
    let a = a.to_csr().unwrap();
    let h = BlockTridiagonal::from_csr(&a, Partition::uniform(4, 2).unwrap(), HybridLayout::default()).unwrap();
    let i = Inertia::of_blocks(&h).unwrap();
    assert_eq!((i.negative, i.zero, i.positive), (2, 0, 2), "{i:?}");
    // A shift on the eigenvalue of a leading block is refused or right; exactly on it the count means nothing.
    assert!(matches!(eigenvalues_below(&h, 0.0), Err(FactorError::Breakdown { .. })));
    assert_eq!(eigenvalues_below(&h, 0.5).unwrap().below, 2);
}

#[test]
fn what_is_not_hermitian_is_refused_with_its_place() {
    let refused = |entries: &[(usize, usize, c64)]| {
        let mut a = Coo::new(3, 3).unwrap();
        for &(i, j, v) in entries {
            a.push(i, j, v).unwrap();
        }
        let t = Tridiagonal::from_csr(&a.to_csr().unwrap()).unwrap();
        match Inertia::of_tridiagonal(&t) {
            Err(FactorError::Input(bt_formats::Error::OutsideStructure { row, col, .. })) => (row, col),
            other => panic!("{other:?}"),
        }
    };
    let i = c64::new(0.0, 1.0);
    assert_eq!(refused(&[(0, 1, i), (1, 0, i)]), (0, 1));
    assert_eq!(refused(&[(1, 1, i)]), (1, 1));
    assert_eq!(refused(&[(2, 1, i)]), (1, 2));
    let fine = Tridiagonal::new(vec![i * 0.0, i, -i], vec![i * 0.0; 3], vec![-i, i, i * 0.0]).unwrap();
    assert_eq!(Inertia::of_tridiagonal(&fine).unwrap().zero, 1);
}

#[test]
fn a_monitor_stops_the_count() {
    let a = path(20, 1.0);
    let h = BlockTridiagonal::from_csr(&a, Partition::uniform(20, 2).unwrap(), HybridLayout::default()).unwrap();
    let mut monitor = |p: Progress| match p {
        Progress::Step { done: 3, total: 10, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(Inertia::of_blocks_with_monitor(&h, &mut monitor), Err(FactorError::Stopped)));
}
