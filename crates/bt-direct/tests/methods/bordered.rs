//! Bordered systems: the contract on random borders, an inside that is singular, honest errors.

use bt_direct::{Bordered, BorderedBlocks, FactorError, Factorization, SparseLu};
use bt_formats::{Coo, Csr, LinearOperator, Matrix, Op, Partition, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{OPS, Random, backward_error, check_contract};

/// Block-tridiagonal over `sizes`, bordered by `q` full rows and columns (arrowhead), or, with q = 0, cyclic.
fn random<T: Scalar>(sizes: &[usize], q: usize, weight: f64, seed: u64) -> (Csr<T>, Partition) {
    let all = Partition::from_sizes(sizes.iter().copied().chain((q > 0).then_some(q))).unwrap();
    let m = all.n_blocks();
    let mut r = Random::new(seed);
    let mut a = Coo::new(all.n(), all.n()).unwrap();
    for i in 0..all.n() {
        let bi = all.block_of(i);
        let range = all.range(bi);
        for j in 0..all.n() {
            let bj = all.block_of(j);
            let distance = bi.abs_diff(bj);
            let inside = distance <= 1 || if q > 0 { bi.max(bj) == m - 1 } else { distance == m - 1 };
            let v: T = r.scalar();
            if inside {
                let heavy = range.start + (i - range.start + 1) % range.len() == j;
                a.push(i, j, v + if heavy { T::rounded(weight, 0.0) } else { bt_formats::zero() }).unwrap();
            }
        }
    }
    let inside = if q > 0 { sizes } else { &sizes[..sizes.len() - 1] };
    (a.to_csr().unwrap(), Partition::from_sizes(inside.iter().copied()).unwrap())
}

fn check<T: Scalar>(sizes: &[usize], q: usize, weight: f64, seed: u64) {
    let (a, inside) = random::<T>(sizes, q, weight, seed);
    let mut factors = match BorderedBlocks::new(&a, inside) {
        Ok(factors) => factors,
        // Without weight a block may come out nearly singular by chance.
        Err(FactorError::Breakdown { .. }) if weight < 1.0 => return,
        Err(e) => panic!("{e}"),
    };
    check_contract(&a, &factors, seed);
    let det = factors.log_det();
    let (b, _) = random::<T>(sizes, q, weight + 1.0, seed + 1);
    if factors.refactor(&b).is_ok() {
        check_contract(&b, &factors, seed);
    }
    factors.refactor(&a).unwrap();
    assert_eq!(factors.log_det(), det);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]

    #[test]
    fn arrowheads(sizes in prop::collection::vec(1usize..7, 1..6), q in 1usize..5, weight in 0.5f64..12.0, seed: u32) {
        check::<f64>(&sizes, q, weight, seed.into());
        check::<c64>(&sizes, q, weight, seed.into());
    }

    #[test]
    fn cyclic(sizes in prop::collection::vec(1usize..7, 3..8), weight in 0.5f64..12.0, seed: u32) {
        check::<f64>(&sizes, 0, weight, seed.into());
        check::<c32>(&sizes, 0, weight + 4.0, seed.into());
    }
}

#[test]
fn wide_blocks_and_borders() {
    check::<f64>(&[9, 12, 8], 10, 60.0, 1);
    check::<c64>(&[9, 11, 8], 0, 60.0, 2);
}

/// A with an inside T = [D 0; 0 N] whose last block N is singular: exactly, or up to `epsilon`.
fn singular_inside(epsilon: f64, scale: f64) -> (Csr<f64>, Partition) {
    let (a, inside) = random::<f64>(&[3, 4, 2], 3, 8.0, 5);
    let mut coo = Coo::new(a.nrows(), a.nrows()).unwrap();
    a.for_each_entry(&mut |i, j, v| {
        let last = inside.range(2);
        let v = match (last.contains(&i), last.contains(&j)) {
            (true, true) => 1.0 + if i == last.start && j == i { epsilon } else { 0.0 },
            // Alone inside, coupled to the border.
            (true, false) if j < last.start => return,
            (false, true) if i < last.start => return,
            _ => v,
        };
        coo.push(i, j, v * scale).unwrap();
    });
    (coo.to_csr().unwrap(), inside)
}

#[test]
fn a_singular_inside_is_moved() {
    for (epsilon, scale) in [(0.0, 1.0), (1e-14, 1.0), (1e-10, 1.0), (0.0, 1e280), (0.0, 1e-280)] {
        let (a, inside) = singular_inside(epsilon, scale);
        let mut factors = BorderedBlocks::new(&a, inside.clone()).unwrap();
        assert_eq!(factors.factors().deflated(), 2, "{epsilon:e}");
        assert!(factors.stats().growth < 1e4, "{}", factors.stats().growth);
        let b: Vec<f64> = (0..a.nrows()).map(|i| scale * (i as f64 - 3.5)).collect();
        for op in OPS {
            let error = backward_error(&a, &factors, op, &b);
            assert!(error < 1e-13, "{op:?} {epsilon:e}: {error:e}");
        }
        if scale == 1.0 {
            check_contract(&a, &factors, 7);
        }
        let sparse = SparseLu::new(&a).unwrap().log_det();
        let ours = factors.log_det();
        assert!(
            (ours.log_abs - sparse.log_abs).abs() < 1e-9 * (1.0 + sparse.log_abs.abs()) && ours.sign == sparse.sign
        );
        // To a regular inside and back.
        let (regular, _) = singular_inside(3.0, scale);
        factors.refactor(&regular).unwrap();
        assert_eq!(factors.factors().deflated(), 0);
        assert!(backward_error(&regular, &factors, Op::Identity, &b) < 1e-14);
        factors.refactor(&a).unwrap();
        assert_eq!(factors.factors().deflated(), 2);
        assert!(backward_error(&a, &factors, Op::Transpose, &b) < 1e-13);
    }
}

#[test]
fn over_any_factors() {
    let (a, inside) = random::<f64>(&[2, 3, 2], 2, 6.0, 11);
    let n = inside.n();
    let dense = crate::common::dense(&a);
    let t = Csr::from_dense(dense.as_ref().submatrix(0, 0, n, n)).unwrap();
    let e = dense.as_ref().submatrix(0, n, n, 2);
    let f = dense.as_ref().submatrix(n, 0, 2, n);
    let c = dense.as_ref().submatrix(n, n, 2, 2);
    let mut factors = Bordered::new(&t, SparseLu::new(&t).unwrap(), e, f, c).unwrap();
    check_contract(&a, &factors, 3);
    // A singular S is a singular A: the last column repeats the first of the border.
    let twice = Mat::from_fn(n, 2, |i, _| e[(i, 0)]);
    let corner = Mat::from_fn(2, 2, |i, _| c[(i, 0)]);
    let same = factors.refactor(&t, |lu| lu.refactor(&t), twice.as_ref(), f, corner.as_ref());
    match same {
        Err(FactorError::Breakdown { reason, .. }) => {
            assert!(reason.contains(&format!("column {}", n + 1)), "{reason}");
        }
        // Rounding may leave a pivot of the size of u.
        Ok(()) => assert!(factors.rcond() < 1e-14),
        Err(e) => panic!("{e}"),
    }
    let nan = Mat::from_fn(n, 2, |i, j| if (i, j) == (3, 1) { f64::NAN } else { 1.0 });
    let refused = factors.refactor(&t, |lu| lu.refactor(&t), nan.as_ref(), f, c);
    assert!(
        matches!(refused, Err(FactorError::Input(bt_formats::Error::NonFinite { row: 3, col, .. })) if col == n + 1)
    );
    let mut x = vec![1.0; n + 2];
    factors.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_nan()), "{x:?}");
    factors.refactor(&t, |lu| lu.refactor(&t), e, f, c).unwrap();
    check_contract(&a, &factors, 4);
    assert!(factors.refactor(&t, |_| Ok(()), e, f, Mat::zeros(3, 3).as_ref()).is_err());
}

#[test]
fn a_nearly_singular_inside_under_plain_factors_is_refused() {
    // T = diag(1, 1e-12), a regular A.
    let t = Csr::from_dense(Mat::from_fn(2, 2, |i, j| if i == j { [1.0, 1e-12][i] } else { 0.0 }).as_ref()).unwrap();
    let ones = Mat::from_fn(2, 1, |_, _| 1.0);
    let refused =
        Bordered::new(&t, SparseLu::new(&t).unwrap(), ones.as_ref(), ones.transpose(), Mat::zeros(1, 1).as_ref());
    match refused {
        Err(FactorError::Breakdown { method: "bordered", reason, .. }) => {
            assert!(reason.contains("sparse-lu"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_outside_the_structure_are_refused() {
    let (a, inside) = random::<f64>(&[2, 2, 2], 1, 6.0, 1);
    let mut factors = BorderedBlocks::new(&a, inside.clone()).unwrap();
    let mut far = Coo::from_csr(&a);
    far.push(0, 5, 1.0).unwrap();
    let far = far.to_csr().unwrap();
    assert!(matches!(BorderedBlocks::new(&far, inside), Err(FactorError::Input(_))));
    let refused = factors.refactor(&far);
    assert!(matches!(refused, Err(FactorError::Input(bt_formats::Error::OutsideStructure { row: 0, col: 5, .. }))));
    let larger = Partition::from_sizes([8]).unwrap();
    assert!(matches!(BorderedBlocks::new(&a, larger), Err(FactorError::Input(_))));
}
