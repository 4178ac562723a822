//! Batches of band and block-tridiagonal systems against `BandLu` and `BlockLu` of each system alone.

use bt_direct::batch::{BandBatch, BlockTridiagonalBatch, FactorBatch, Layout, SystemStatus};
use bt_direct::{BandLu, BlockLu, FactorError, Factorization};
use bt_formats::{
    Band, BlockTridiagonal, HybridLayout, Matrix, Op, Par, Partition, RealScalar, Scalar, c32, c64, certify,
};
use faer::Mat;
use proptest::prelude::*;

use crate::common::Random;

fn random<T: Scalar>(n: usize, kl: usize, ku: usize, r: &mut Random) -> Band<T> {
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = r.scalar();
        }
    }
    a
}

fn backward_error<T: Scalar>(a: &impl Matrix<T>, x: &[T], b: &[T]) -> f64 {
    let column = |v: &[T]| Mat::from_fn(v.len(), 1, |i, _| v[i]);
    certify(a, Op::Identity, column(x).as_ref(), column(b).as_ref()).backward_error
}

fn interleave<T: Scalar>(n: usize, x: &[T]) -> Vec<T> {
    let m = x.len() / n.max(1);
    (0..x.len()).map(|at| x[(at % m) * n + at / m]).collect()
}

fn check<T: Scalar>(n: usize, kl: usize, ku: usize, m: usize, seed: u64) {
    let mut r = Random::new(seed);
    let systems: Vec<Band<T>> = (0..m).map(|_| random(n, kl, ku, &mut r)).collect();
    let others: Vec<Band<T>> = (0..m).map(|_| random(n, kl, ku, &mut r)).collect();
    let mut lu = BandBatch::new(&others).unwrap();
    lu.refactor(&systems).unwrap();
    assert!(lu.verdict().all_solved(), "{:?}", lu.verdict());
    let b: Vec<T> = (0..n * m).map(|_| r.scalar()).collect();
    let mut x = b.clone();
    lu.solve_with(&mut x, Layout::Strided, Par::Seq).unwrap();
    let u = T::Real::EPSILON.to_f64() / 2.0;
    for (s, a) in systems.iter().enumerate() {
        let at = s * n..(s + 1) * n;
        let growth = BandLu::new(a).unwrap().stats().growth.max(1.0);
        let error = backward_error(a, &x[at.clone()], &b[at]);
        assert!(error <= (8.0 + n as f64) * growth * u, "system {s}: backward error {error:e}");
    }
    let mut y = interleave(n, &b);
    lu.solve_in_place(&mut y, Layout::Interleaved).unwrap();
    assert!(y == interleave(n, &x), "layouts differ");
    let mut y = b.clone();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.install(|| lu.solve_with(&mut y, Layout::Strided, Par::Rayon)).unwrap();
    assert!(y == x, "threads differ");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn bands_f64(n in 1usize..40, kl in 0usize..7, ku in 0usize..7, m in 1usize..40, seed: u32) {
        check::<f64>(n, kl.min(n - 1), ku.min(n - 1), m, seed.into());
    }
    #[test]
    fn bands_f32(n in 1usize..20, kl in 0usize..4, ku in 0usize..4, m in 1usize..20, seed: u32) {
        check::<f32>(n, kl.min(n - 1), ku.min(n - 1), m, seed.into());
    }
    #[test]
    fn bands_c64(n in 1usize..20, kl in 0usize..4, ku in 0usize..4, m in 1usize..20, seed: u32) {
        check::<c64>(n, kl.min(n - 1), ku.min(n - 1), m, seed.into());
    }
    #[test]
    fn bands_c32(n in 1usize..12, kl in 0usize..4, ku in 0usize..4, m in 1usize..20, seed: u32) {
        check::<c32>(n, kl.min(n - 1), ku.min(n - 1), m, seed.into());
    }
}

/// Batches of several pieces, cut among threads.
#[test]
fn many_systems() {
    check::<f64>(40, 2, 1, 5000, 11);
}

#[test]
fn one_bad_system_harms_no_other() {
    let mut r = Random::new(5);
    let mut systems: Vec<Band<f64>> = (0..20).map(|_| random(6, 1, 2, &mut r)).collect();
    // A column of zeros, a NaN, and an infinity.
    for i in systems[4].column_range(3) {
        *systems[4].get_mut(i, 3) = 0.0;
    }
    *systems[9].get_mut(2, 2) = f64::NAN;
    *systems[17].get_mut(5, 4) = f64::INFINITY;
    let lu = BandBatch::new(&systems).unwrap();
    assert_eq!(lu.verdict().failures().iter().map(|f| f.system).collect::<Vec<_>>(), [4, 9, 17]);
    assert_eq!(lu.verdict().status(4), SystemStatus::Singular { column: 3 });
    assert_eq!(lu.verdict().status(9), SystemStatus::NotFinite { row: 2 });
    assert_eq!(lu.verdict().status(17), SystemStatus::NotFinite { row: 5 });
    let b: Vec<f64> = (0..120).map(|i| f64::from(i % 7) - 3.0).collect();
    let mut x = b.clone();
    lu.solve_in_place(&mut x, Layout::Strided).unwrap();
    for (s, a) in systems.iter().enumerate() {
        let at = 6 * s..6 * s + 6;
        if lu.verdict().status(s) == SystemStatus::Solved {
            assert!(backward_error(a, &x[at.clone()], &b[at]) < 1e-14);
        } else {
            assert!(x[at].iter().all(|v| v.is_nan()), "system {s}");
        }
    }
    // The same verdicts from the factorizations of single systems.
    let each = FactorBatch::new(&systems, BandLu::new).unwrap();
    assert_eq!(each.failures().iter().map(|f| f.0).collect::<Vec<_>>(), [4, 9, 17]);
    assert!(matches!(&each.failures()[0].1, FactorError::Singular(place) if place.column == 3));
    let mut y = b;
    each.solve_in_place(&mut y).unwrap();
    assert!(
        x.iter()
            .zip(&y)
            .all(|(x, y)| x.is_nan() == y.is_nan() && (x.is_nan() || (x - y).abs() < 1e-10 * (1.0 + y.abs())))
    );
}

#[test]
fn tiny_and_larger_blocks() {
    let mut r = Random::new(8);
    for k in [1, 2, 3, 8] {
        let n = 5 * k;
        let partition = Partition::uniform(n, k).unwrap();
        let systems: Vec<BlockTridiagonal<f64>> = (0..19)
            .map(|_| {
                let mut coo = bt_formats::Coo::new(n, n).unwrap();
                for i in 0..n {
                    for j in (0..n).filter(|j| (i / k).abs_diff(j / k) <= 1) {
                        coo.push(i, j, r.real() + if i == j { 3.0 * k as f64 } else { 0.0 }).unwrap();
                    }
                }
                let a = coo.to_csr().unwrap();
                BlockTridiagonal::from_csr(&a, partition.clone(), HybridLayout::default()).unwrap()
            })
            .collect();
        let b: Vec<f64> = (0..19 * n).map(|_| r.real()).collect();
        let (mut x, mut y) = (b.clone(), b.clone());
        let lanes = BandBatch::new(&systems).unwrap();
        assert_eq!(lanes.bandwidths(), (2 * k - 1, 2 * k - 1));
        lanes.solve_in_place(&mut x, Layout::Strided).unwrap();
        let blocks: BlockTridiagonalBatch<f64> = FactorBatch::new(&systems, BlockLu::new).unwrap();
        assert!(blocks.failures().is_empty() && blocks.get(18).is_some());
        blocks.solve_in_place(&mut y).unwrap();
        for (s, a) in systems.iter().enumerate() {
            let at = s * n..(s + 1) * n;
            assert!(backward_error(a, &x[at.clone()], &b[at.clone()]) < 1e-15);
            assert!(backward_error(a, &y[at.clone()], &b[at]) < 1e-15);
        }
    }
}

#[test]
fn sizes_are_checked() {
    let mut r = Random::new(5);
    let a: Vec<Band<f64>> = (0..3).map(|_| random(6, 1, 1, &mut r)).collect();
    let mut lu = BandBatch::new(&a).unwrap();
    assert!(lu.solve_in_place(&mut [0.0; 17], Layout::Strided).is_err());
    assert!(lu.refactor(&a[..2]).is_err());
    let wider: Vec<Band<f64>> = (0..3).map(|_| random(6, 2, 1, &mut r)).collect();
    let message = lu.refactor(&wider).unwrap_err().to_string();
    assert!(message.contains("row 2, column 0") && message.contains("system 0"), "{message}");
    let mut x = [1.0; 18];
    lu.solve_in_place(&mut x, Layout::Strided).unwrap();
    assert!(x.iter().all(|v| v.is_nan()), "factors after a failed refactorisation");
    lu.refactor(&a).unwrap();
    let mut x = [1.0; 18];
    lu.solve_in_place(&mut x, Layout::Strided).unwrap();
    assert!(x.iter().all(|v| v.is_finite()));
    assert!(BandBatch::new(&[random::<f64>(4, 1, 1, &mut r), random(5, 1, 1, &mut r)]).is_err());
    let none = BandBatch::<f64>::new::<Band<f64>>(&[]).unwrap();
    none.solve_in_place(&mut [], Layout::Interleaved).unwrap();
    let each = FactorBatch::new(&a, BandLu::new).unwrap();
    assert!(each.solve_in_place(&mut [0.0; 17]).is_err());
}
