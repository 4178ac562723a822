//! `BandLuNoPivot` against dense oracles and band LU; what it refuses, and what boosting does.

use std::ops::ControlFlow;

use bt_direct::{BandLu, BandLuNoPivot, Boosting, FactorError, Factorization, Place, Refinement, refine};
use bt_formats::{Band, Op, Progress, RealScalar, Scalar, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{Random, check_contract};

/// Dominant by columns, so that elimination without interchanges is stable.
fn dominant<T: Scalar>(n: usize, kl: usize, ku: usize, seed: u64) -> Band<T> {
    let mut r = Random::new(seed);
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = r.scalar::<T>();
        }
        let sum: f64 = a.column_range(j).map(|i| a.get(i, j).abs().to_f64()).sum();
        *a.get_mut(j, j) = T::rounded(sum + 0.1, 0.3 * sum);
    }
    a
}

fn check<T: Scalar>(n: usize, kl: usize, ku: usize, seed: u64) {
    let a = dominant::<T>(n, kl, ku, seed);
    let lu = BandLuNoPivot::new(&a).unwrap();
    assert_eq!(lu.stats().boosted_pivots, 0);
    check_contract(&a, &lu, seed);
    let mut other = BandLuNoPivot::from_band(dominant::<T>(n, kl, ku, seed + 1), None).unwrap();
    other.refactor(&a).unwrap();
    let boosted = BandLuNoPivot::with_options(&a, Some(Boosting::of::<T>()), &mut ()).unwrap();
    let mut r = Random::new(9);
    let b: Vec<T> = (0..n).map(|_| r.scalar()).collect();
    let mut x = b.clone();
    lu.solve_vec_in_place(&mut x);
    for f in [&other, &boosted] {
        assert_eq!((f.log_det(), f.stats().growth), (lu.log_det(), lu.stats().growth));
        let mut y = b.clone();
        f.solve_vec_in_place(&mut y);
        assert_eq!(x, y);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
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
    for (n, kl, ku) in
        [(1, 0, 0), (1, 3, 2), (2, 5, 5), (150, 70, 66), (150, 149, 149), (97, 0, 40), (97, 40, 0), (130, 33, 64)]
    {
        check::<f64>(n, kl, ku, 7);
        check::<c32>(n, kl, ku, 8);
    }
}

/// A zero pivot, lost digits and an overflow are refused by row; boosting goes on and says how often it stepped in.
#[test]
fn bad_pivots_are_refused_or_boosted() {
    for (n, kl, ku) in [(30, 2, 3), (120, 40, 33)] {
        let a = dominant::<f64>(n, kl, ku, 5);
        let mut lu = BandLuNoPivot::new(&a).unwrap();
        for (value, word) in [(0.0, "is zero"), (1e-12, "half its digits")] {
            let mut bad = a.clone();
            *bad.get_mut(0, 0) = value;
            let error = lu.refactor(&bad).unwrap_err();
            // The row that has no pivot, or one of those that a small pivot makes grow: the one that the sentence names.
            let row_of = |error: &FactorError| match error {
                FactorError::Breakdown { method: "band-lu-nopivot", place: Some(Place::Row(row)), .. } => *row,
                other => panic!("{other:?}"),
            };
            let row = row_of(&error);
            assert!(error.to_string().contains(&format!("row {row} (from 0)")), "{error}");
            assert!(if value == 0.0 { row == 0 } else { row <= kl }, "{error}");
            assert!(error.to_string().contains(word), "{error}");
            let mut x = vec![1.0; n];
            lu.solve_vec_in_place(&mut x);
            assert!(x.iter().all(|v| v.is_nan()));
            // A row that is coupled to none.
            let row = n / 2 + 1;
            bad = a.clone();
            for k in 0..n {
                if bad.column_range(k).contains(&row) {
                    *bad.get_mut(row, k) = 0.0;
                }
            }
            let error = lu.refactor(&bad).unwrap_err();
            assert_eq!(row_of(&error), row, "{error}");
            lu.refactor(&a).unwrap();
            check_contract(&a, &lu, 1);
        }

        let mut bad = a.clone();
        *bad.get_mut(0, 0) = 0.0;
        let boosted = BandLuNoPivot::with_options(&bad, Some(Boosting::of::<f64>()), &mut ()).unwrap();
        assert_eq!(boosted.stats().boosted_pivots, 1);
        let norm = boosted.stats().norm_one;
        assert!((boosted.stats().min_pivot - Boosting::of::<f64>().eps * norm).abs() < 1e-12 * norm);
        assert!(boosted.stats().growth > 1e4);
        // The boosted factors are inexact, and refinement repairs that.
        let b = Mat::<f64>::from_fn(n, 1, |i, _| (i as f64).cos());
        let mut x = b.clone();
        boosted.solve_in_place(x.as_mut());
        refine(&bad, &boosted, Op::Identity, b.as_ref(), &mut x, Refinement::Steps(5));
        let mut exact = b.clone();
        BandLu::new(&bad).unwrap().solve_in_place(exact.as_mut());
        let difference = (0..n).map(|i| (x[(i, 0)] - exact[(i, 0)]).abs()).fold(0.0, f64::max);
        assert!(difference < 1e-12, "{difference:e}");
    }
}

/// Boosts go in the pivot's own direction.
#[test]
fn boosted_pivots_keep_their_sign() {
    let boosting = Boosting { zero: 1e-3, eps: 0.25 };
    for (pivot, expected) in [(1e-4, 0.5 + 1e-4), (-1e-4, -0.5 - 1e-4), (0.0, 0.5), (1e-2, 1e-2)] {
        let mut a = Band::zeros(2, 1, 1).unwrap();
        (*a.get_mut(0, 0), *a.get_mut(1, 1)) = (pivot, 2.0);
        let lu = BandLuNoPivot::with_options(&a, Some(boosting), &mut ()).unwrap();
        let det = lu.log_det();
        assert!((det.sign * det.log_abs.exp() - 2.0 * expected).abs() < 1e-14);
        assert_eq!(lu.stats().boosted_pivots, usize::from(pivot.abs() < 1e-3));
    }
}

#[test]
fn bad_input_is_named() {
    for value in [f64::NAN, f64::INFINITY] {
        let mut a = dominant::<f64>(90, 36, 35, 5);
        *a.get_mut(40, 30) = value;
        let message = BandLuNoPivot::new(&a).unwrap_err().to_string();
        assert!(message.contains("row 40, column 30"), "{message}");
    }
    let mut lu = BandLuNoPivot::new(&dominant::<f64>(20, 3, 2, 1)).unwrap();
    for other in [(21, 3, 2), (20, 2, 2), (20, 3, 3)] {
        let other = dominant(other.0, other.1, other.2, 1);
        assert!(matches!(lu.refactor(&other), Err(FactorError::Input(_))));
    }
}

#[test]
fn extreme_scales_cost_no_accuracy() {
    fn at<T: Scalar>(exponent: i32) {
        let mut a = dominant::<T>(80, 20, 18, 3);
        let factor = T::rounded(10f64.powi(exponent), 0.0);
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let lu = BandLuNoPivot::new(&a).unwrap();
        let mut r = Random::new(1);
        let b: Vec<T> = (0..80).map(|_| r.scalar::<T>() * factor).collect();
        for op in crate::common::OPS {
            let error = crate::common::backward_error(&a, &lu, op, &b);
            assert!(error <= 100.0 * refine::unit_roundoff::<T>() * lu.stats().growth, "{op:?} {error:e}");
        }
    }
    for exponent in [-300, 300] {
        at::<f64>(exponent);
        at::<c64>(exponent);
    }
    for exponent in [-34, 34] {
        at::<f32>(exponent);
        at::<c32>(exponent);
    }
}

#[test]
fn monitors_see_columns_and_stop() {
    let a = dominant::<f64>(900, 40, 40, 3);
    let mut seen = Vec::new();
    let mut watch = |p: Progress| {
        if let Progress::Step { phase: "setup", done, total: 900 } = p {
            seen.push(done);
        }
        ControlFlow::Continue(())
    };
    BandLuNoPivot::with_options(&a, None, &mut watch).unwrap();
    assert!(seen.len() > 3 && seen.is_sorted() && *seen.last().unwrap() < 900, "{seen:?}");
    let mut stop = |_: Progress| ControlFlow::Break(());
    assert!(matches!(BandLuNoPivot::with_options(&a, None, &mut stop), Err(FactorError::Stopped)));
}
