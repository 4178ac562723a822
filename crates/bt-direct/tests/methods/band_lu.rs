//! `BandLu` against dense LU, LAPACK's test types and the bands in `../shared`.

use std::ops::ControlFlow;

use bt_direct::refine::unit_roundoff;
use bt_direct::{
    BandLu, BandLuNoPivot, BlockLu, DiagonalPivoting, FactorError, Factorization, Place, Spike, TridiagonalLu,
};
use bt_formats::{Band, BlockTridiagonal, Csr, Op, Partition, Progress, Scalar, Tridiagonal, c32, c64, certify};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{Random, check_contract, data, read_matrix, read_vector, unless_singular};

fn random<T: Scalar>(n: usize, kl: usize, ku: usize, seed: u64) -> Band<T> {
    let mut r = Random::new(seed);
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = r.scalar();
        }
    }
    a
}

fn check<T: Scalar>(n: usize, kl: usize, ku: usize, seed: u64) {
    let a = random::<T>(n, kl, ku, seed);
    let Some(lu) = unless_singular(BandLu::new(&a), &a) else { return };
    check_contract(&a, &lu, seed);
    let b = random::<T>(n, kl, ku, seed + 1);
    let Some(mut other) = unless_singular(BandLu::from_band(b.clone()), &b) else { return };
    other.refactor(&a).unwrap();
    assert_same(&lu, &other);
}

/// The same bits in everything that can be seen of two factorizations.
fn assert_same<T: Scalar>(one: &BandLu<T>, other: &BandLu<T>) {
    assert_eq!((one.stats(), one.log_det()), (other.stats(), other.log_det()));
    let mut r = Random::new(9);
    let mut x: Vec<T> = (0..one.n()).map(|_| r.scalar()).collect();
    let mut y = x.clone();
    one.solve_vec_in_place(&mut x);
    other.solve_vec_in_place(&mut y);
    assert_eq!(x, y);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn contract_f64(n in 0usize..60, kl in 0usize..14, ku in 0usize..14, seed: u32) {
        check::<f64>(n, kl, ku, u64::from(seed));
    }
    #[test]
    fn contract_f32(n in 0usize..40, kl in 0usize..10, ku in 0usize..10, seed: u32) {
        check::<f32>(n, kl, ku, u64::from(seed));
    }
    #[test]
    fn contract_c64(n in 0usize..40, kl in 0usize..10, ku in 0usize..10, seed: u32) {
        check::<c64>(n, kl, ku, u64::from(seed));
    }
    #[test]
    fn contract_c32(n in 0usize..40, kl in 0usize..10, ku in 0usize..10, seed: u32) {
        check::<c32>(n, kl, ku, u64::from(seed));
    }
}

#[test]
fn wide_bands_and_edges() {
    for (n, kl, ku) in [
        (1, 0, 0),
        (1, 3, 2),
        (2, 5, 5),
        (150, 70, 66),
        (150, 149, 149),
        (97, 0, 40),
        (97, 40, 0),
        (130, 33, 64),
        (65, 64, 0),
    ] {
        check::<f64>(n, kl, ku, 7);
        check::<c32>(n, kl, ku, 8);
    }
}

/// LAPACK's info: the first zero pivot, with elimination going on behind it.
#[test]
fn the_first_column_without_pivot_is_named_and_the_object_lives_on() {
    for (n, kl, ku) in [(30, 2, 3), (120, 40, 33)] {
        let a = random::<f64>(n, kl, ku, 5);
        let mut lu = BandLu::new(&a).unwrap();
        for zero_columns in [vec![0], vec![n - 1], vec![n / 2, n - 3], (n / 2..n).collect()] {
            let mut singular = a.clone();
            for &j in &zero_columns {
                for i in a.column_range(j) {
                    *singular.get_mut(i, j) = 0.0;
                }
            }
            let Err(FactorError::Singular(place)) = lu.refactor(&singular) else { panic!("not singular") };
            assert_eq!(place.column, zero_columns[0]);
            let mut x = vec![1.0; n];
            lu.solve_vec_in_place(&mut x);
            assert!(x.iter().all(|v| v.is_nan()));
            assert_eq!(lu.rcond(), 0.0);
            lu.refactor(&a).unwrap();
            check_contract(&a, &lu, 1);
        }
    }
}

#[test]
fn bad_input_is_named() {
    for value in [f64::NAN, f64::INFINITY] {
        let mut a = random::<f64>(90, 36, 35, 5);
        *a.get_mut(40, 30) = value;
        let message = BandLu::new(&a).unwrap_err().to_string();
        assert!(message.contains("row 40, column 30"), "{message}");
    }
    // Finite parts whose sum overflows: refused, not miscomputed.
    let mut a = random::<c64>(20, 3, 2, 1);
    *a.get_mut(9, 9) = c64::new(1.5e308, 1.5e308);
    let place = Some(Place::Column(9));
    assert!(matches!(BandLu::new(&a), Err(FactorError::Breakdown { method: "band-lu", place: p, .. }) if p == place));
    let error = Spike::new(&a).map(|_| ()).unwrap_err();
    assert!(matches!(error, FactorError::Breakdown { method: "spike", place: p, .. } if p == place), "{error:?}");
    let mut lu = BandLu::new(&random::<f64>(20, 3, 2, 1)).unwrap();
    for other in [(21, 3, 2), (20, 2, 2), (20, 3, 3)] {
        let other = random(other.0, other.1, other.2, 1);
        assert!(matches!(lu.refactor(&other), Err(FactorError::Input(_))));
    }
}

#[test]
fn elimination_that_overflows_has_a_place() {
    // u₅₅ = −1.7e308 − 1.7e308
    let mut upper = vec![0.0; 12];
    upper[4] = 1.7e308;
    let lower: Vec<f64> = (0..12).map(|i| if i == 5 { 1.0 } else { 0.0 }).collect();
    let diag: Vec<f64> = (0..12).map(|i| if i == 5 { -1.7e308 } else { 1.0 }).collect();
    let a = Tridiagonal::new(lower, diag, upper).unwrap();
    let band = Band::from_csr(&a.to_csr().unwrap()).unwrap();
    let place = |error: FactorError| match error {
        FactorError::Breakdown { place, .. } => place,
        other => panic!("{other}"),
    };
    assert_eq!(place(BandLu::new(&band).unwrap_err()), Some(Place::Column(5)));
    assert_eq!(place(TridiagonalLu::new(&a).unwrap_err()), Some(Place::Column(5)));
    assert_eq!(place(DiagonalPivoting::new(&a).unwrap_err()), Some(Place::Row(5)));
}

#[test]
fn what_stands_in_the_room_for_fill_does_not_matter() {
    let a = random::<f64>(50, 4, 3, 2);
    let mut dirty = a.clone();
    let ldab = a.ldab();
    for column in dirty.values_mut().chunks_mut(ldab) {
        column[..4].fill(f64::NAN);
    }
    assert_same(&BandLu::new(&a).unwrap(), &BandLu::new(&dirty).unwrap());
    assert_same(&BandLu::new(&a).unwrap(), &BandLu::from_band(dirty).unwrap());
}

#[test]
fn extreme_scales_cost_no_accuracy() {
    fn at<T: Scalar>(exponent: i32, bandwidths: (usize, usize)) {
        let mut a = random::<T>(80, bandwidths.0, bandwidths.1, 3);
        let factor = T::rounded(10f64.powi(exponent), 0.0);
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let lu = BandLu::new(&a).unwrap();
        let mut r = Random::new(1);
        let b: Vec<T> = (0..80).map(|_| r.scalar::<T>() * factor).collect();
        for op in crate::common::OPS {
            let error = crate::common::backward_error(&a, &lu, op, &b);
            assert!(error <= 100.0 * unit_roundoff::<T>() * lu.stats().growth, "{op:?} {error:e}");
        }
        assert!(lu.log_det().log_abs.is_finite() && lu.rcond() > 1e-8);
    }
    for bandwidths in [(3, 2), (40, 37)] {
        for exponent in [-300, 300] {
            at::<f64>(exponent, bandwidths);
            at::<c64>(exponent, bandwidths);
        }
        for exponent in [-34, 34] {
            at::<f32>(exponent, bandwidths);
            at::<c32>(exponent, bandwidths);
        }
    }
}

#[test]
fn monitors_see_columns_and_stop() {
    let a = random::<f64>(300, 40, 40, 3);
    let mut seen = Vec::new();
    let mut watch = |p: Progress| {
        if let Progress::Step { phase: "setup", done, total: 300 } = p {
            seen.push(done);
        }
        ControlFlow::Continue(())
    };
    BandLu::with_monitor(&a, &mut watch).unwrap();
    assert!(seen.len() > 3 && seen.is_sorted() && *seen.last().unwrap() < 300, "{seen:?}");
    let mut calls = 0;
    let mut stop = |_: Progress| {
        calls += 1;
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(matches!(BandLu::with_monitor(&a, &mut stop), Err(FactorError::Stopped)));
    assert_eq!(calls, 3);
}

/// No exchange, no fill: the statistics count what the pivots really did.
#[test]
fn fill_and_flops_follow_the_exchanges() {
    let mut a = Band::zeros(50, 3, 2).unwrap();
    for j in 0..50 {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = if i == j { 10.0 } else { 1.0 };
        }
    }
    let stats = BandLu::new(&a).unwrap().stats();
    assert_eq!(stats.nnz, bt_formats::Matrix::nnz(&a));
    assert_eq!(stats.flops, (0..50usize).map(|j| 3.min(49 - j) * (2 * 2.min(49 - j) + 1)).sum::<usize>() as f64);
    assert_eq!(stats.growth, 1.0);
}

/// Singular files name LAPACK's column, all others have a tiny backward error.
#[test]
fn shared_bands() {
    let Some(folder) = data("banded") else { return };
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let mut solved = 0;
    for line in index.lines().skip(1) {
        let fields = crate::common::csv_fields(line);
        let (name, info) = (&fields[0], fields[7].parse::<usize>().unwrap());
        let a = Band::from_csr(&read_matrix(&folder.join(format!("{name}.mtx")))).unwrap();
        match BandLu::new(&a) {
            Err(FactorError::Singular(place)) => assert_eq!(place.column + 1, info, "{name}"),
            Err(e) => panic!("{name}: {e}"),
            Ok(lu) => {
                assert_eq!(info, 0, "{name}");
                let b = read_vector(&folder.join(format!("{name}_b.mtx")));
                let error = crate::common::backward_error(&a, &lu, Op::Identity, &b);
                assert!(error <= 2e-15, "{name}: {error:e}");
                solved += 1;
            }
        }
    }
    assert_eq!(solved, 10, "regular files");
}

/// 45 right-hand sides: 32 and 8 in rows side by side, 5 alone, in matrices longer than the window of the rows.
fn many_right_hand_sides<T: Scalar>(n: usize, kl: usize, ku: usize) {
    let a = random::<T>(n, kl, ku, 3);
    let Some(lu) = unless_singular(BandLu::new(&a), &a) else { panic!("another seed, please") };
    let mut r = Random::new(4);
    let b = Mat::<T>::from_fn(n, 45, |_, _| r.scalar());
    let u = unit_roundoff::<T>();
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let mut x = b.clone();
        lu.solve_op_in_place(op, x.as_mut());
        for j in 0..45 {
            let error = certify(&a, op, x.subcols(j, 1), b.subcols(j, 1)).backward_error;
            let allowed = 100.0 * lu.stats().growth.max(1.0) * u;
            assert!(error <= allowed, "n {n}, kl {kl}, ku {ku}, {op:?}, column {j}: {error:e} > {allowed:e}");
        }
    }
}

#[test]
fn many_right_hand_sides_side_by_side() {
    for (n, kl, ku) in [(5, 2, 1), (511, 3, 4), (513, 4, 3), (1300, 8, 8), (1303, 2, 40), (1302, 40, 2), (900, 70, 60)]
    {
        many_right_hand_sides::<f64>(n, kl, ku);
    }
    many_right_hand_sides::<f32>(1100, 5, 6);
    many_right_hand_sides::<c64>(1100, 5, 6);
    many_right_hand_sides::<c32>(700, 6, 5);
}

/// Columns of 3 + 4i and halves: their squares vanish, or overflow, at the ends of the range.
#[test]
fn norms_of_complex_columns_of_any_size() {
    let n = 24;
    for scale in [1e-290, 1e-160, 1.0, 1e160, 1e290] {
        let full = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => c64::new(3.0, 4.0) * scale,
            1 | 2 => c64::new(0.4, -0.3) * scale,
            _ => c64::new(0.0, 0.0),
        });
        let rows = Csr::from_dense(full.as_ref()).unwrap();
        let band = Band::from_csr(&rows).unwrap();
        let partition = Partition::uniform(n, 4).unwrap();
        let blocks = BlockTridiagonal::from_csr(&rows, partition.clone(), BlockLu::<c64>::layout(&partition)).unwrap();
        let norms = [
            BandLu::new(&band).unwrap().stats().norm_one,
            BandLuNoPivot::new(&band).unwrap().stats().norm_one,
            BlockLu::new(&blocks).unwrap().stats().norm_one,
        ];
        for norm in norms {
            assert!((norm / (7.0 * scale) - 1.0).abs() < 1e-14, "{scale}: {norms:?}");
        }
    }
}
