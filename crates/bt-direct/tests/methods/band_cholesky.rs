//! `BandCholesky` against dense oracles; what is not positive definite or not Hermitian is refused by place.

use std::ops::ControlFlow;

use bt_direct::{BandCholesky, FactorError, Factorization};
use bt_formats::{Band, Progress, RealScalar, Scalar, c32, c64};
use proptest::prelude::*;

use crate::common::{Random, check_contract};

/// G·Gᴴ of a random band G with a dominant diagonal, in every bit Hermitian.
fn definite<T: Scalar>(n: usize, k: usize, seed: u64) -> Band<T> {
    let mut r = Random::new(seed);
    let shrink = T::rounded(1.0 / (1.0 + 0.6 * k as f64), 0.0);
    let g: Vec<Vec<T>> = (0..n)
        .map(|i| (0..=k.min(i)).map(|d| if d == 0 { T::rounded(1.0, 0.0) } else { r.scalar::<T>() * shrink }).collect())
        .collect();
    let mut a = Band::zeros(n, k, k).unwrap();
    for i in 0..n {
        for j in i.saturating_sub(k)..=i {
            let mut sum = T::default();
            for t in i.saturating_sub(k)..=j {
                sum += g[i][i - t] * Scalar::conj(g[j][j - t]);
            }
            let sum = if i == j { T::from_real(sum.re()) } else { sum };
            (*a.get_mut(i, j), *a.get_mut(j, i)) = (sum, Scalar::conj(sum));
        }
    }
    a
}

fn lower<T: Scalar>(a: &Band<T>) -> Band<T> {
    let mut out = Band::zeros(a.n(), a.kl(), 0).unwrap();
    for j in 0..a.n() {
        for i in out.column_range(j) {
            *out.get_mut(i, j) = a.get(i, j);
        }
    }
    out
}

fn check<T: Scalar>(n: usize, k: usize, seed: u64) {
    let a = definite::<T>(n, k, seed);
    let cholesky = BandCholesky::new(&a).unwrap();
    check_contract(&a, &cholesky, seed);
    let mut other = BandCholesky::new(&definite::<T>(n, k, seed + 1)).unwrap();
    other.refactor(&a).unwrap();
    let in_place = BandCholesky::from_lower(lower(&a)).unwrap();
    let by_rows = BandCholesky::from_csr(&a.to_csr().unwrap(), &mut ()).unwrap();
    let mut r = Random::new(9);
    let b: Vec<T> = (0..n).map(|_| r.scalar()).collect();
    let mut x = b.clone();
    cholesky.solve_vec_in_place(&mut x);
    for f in [&other, &in_place, &by_rows] {
        assert_eq!(f.log_det(), cholesky.log_det());
        let mut y = b.clone();
        f.solve_vec_in_place(&mut y);
        assert_eq!(x, y);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn contract_f64(n in 0usize..60, k in 0usize..14, seed: u32) {
        check::<f64>(n, k, u64::from(seed));
    }
    #[test]
    fn contract_f32(n in 0usize..24, k in 0usize..6, seed: u32) {
        check::<f32>(n, k, u64::from(seed));
    }
    #[test]
    fn contract_c64(n in 0usize..40, k in 0usize..10, seed: u32) {
        check::<c64>(n, k, u64::from(seed));
    }
    #[test]
    fn contract_c32(n in 0usize..24, k in 0usize..6, seed: u32) {
        check::<c32>(n, k, u64::from(seed));
    }
}

#[test]
fn wide_bands_and_edges() {
    for (n, k) in [(1, 0), (1, 3), (2, 5), (150, 70), (150, 149), (97, 40), (130, 33), (170, 16), (171, 9), (300, 15)] {
        check::<f64>(n, k, 7);
        check::<c64>(n, k, 8);
    }
}

/// More columns than are eliminated at a time: of a band, of its lower half in place and of full rows, but for the first and last
/// taken as they stand.
#[test]
fn strips_follow_one_another() {
    for (n, k) in [(1700, 1), (1701, 3), (1702, 4), (1703, 5), (1704, 8), (1205, 9), (1206, 16), (807, 40)] {
        let a = definite::<f64>(n, k, 11);
        let of_band = BandCholesky::new(&a).unwrap();
        let others = [
            BandCholesky::from_lower(lower(&a)).unwrap(),
            BandCholesky::from_csr(&a.to_csr().unwrap(), &mut ()).unwrap(),
        ];
        for j in 0..n {
            for other in &others {
                assert_eq!(of_band.column(j), other.column(j), "n = {n}, k = {k}, column {j}");
            }
            for i in j..(j + k + 1).min(n) {
                let product = |t: usize| of_band.column(t)[i - t] * of_band.column(t)[j - t];
                let sum: f64 = (i.saturating_sub(k)..=j).map(product).sum();
                assert!(
                    (sum - a.get(i, j)).abs() <= 1e-14 * a.get(i, i).max(a.get(j, j)),
                    "n = {n}, k = {k}: ({i}, {j})"
                );
            }
        }
        for other in others {
            assert_eq!(other.stats().norm_one, of_band.stats().norm_one);
            assert_eq!(other.stats().min_pivot, of_band.stats().min_pivot);
        }
    }
}

/// Half of the storage that LU needs, and the statistics that go with it.
#[test]
fn storage_is_half_a_band() {
    let stats = BandCholesky::new(&definite::<f64>(50, 3, 1)).unwrap().stats();
    assert_eq!(stats.nnz, 50 * 4 - (1 + 2 + 3));
    assert_eq!(stats.bytes, 50 * 4 * 8 + 50 * 8);
    assert_eq!(stats.growth, 1.0);
}

#[test]
fn indefinite_matrices_are_refused_by_row() {
    for (n, k) in [(30, 2), (120, 40)] {
        let a = definite::<f64>(n, k, 5);
        let mut cholesky = BandCholesky::new(&a).unwrap();
        for (row, value) in [(0, -1.0), (n - 1, -1.0), (n / 2, 0.0)] {
            let mut bad = a.clone();
            *bad.get_mut(row, row) = value;
            let error = cholesky.refactor(&bad).unwrap_err();
            assert!(matches!(error, FactorError::Breakdown { method: "band-cholesky", .. }));
            assert!(error.to_string().contains(&format!("row {row} ")), "{error}");
            let mut x = vec![1.0; n];
            cholesky.solve_vec_in_place(&mut x);
            assert!(x.iter().all(|v| v.is_nan()));
            cholesky.refactor(&a).unwrap();
            check_contract(&a, &cholesky, 1);
        }
    }
}

#[test]
fn unusable_input_is_named() {
    let a = definite::<c64>(90, 36, 5);
    for (i, j) in [(40, 30), (30, 40)] {
        let mut bad = a.clone();
        *bad.get_mut(i, j) = c64::new(f64::NAN, 0.0);
        let message = BandCholesky::new(&bad).unwrap_err().to_string();
        assert!(message.contains(&format!("row {i}, column {j}")), "{message}");
        let mut bad = a.clone();
        *bad.get_mut(i, j) += c64::new(0.0, 1e-12);
        let message = BandCholesky::new(&bad).unwrap_err().to_string();
        assert!(message.contains("not Hermitian: row 40, column 30"), "{message}");
    }
    let mut bad = a.clone();
    *bad.get_mut(7, 7) += c64::new(0.0, 1.0);
    assert!(BandCholesky::new(&bad).unwrap_err().to_string().contains("row 7"));
    assert!(BandCholesky::from_lower(lower(&bad)).unwrap_err().to_string().contains("row 7"));
    assert!(matches!(BandCholesky::from_lower(a.clone()), Err(FactorError::Input(_))));
    let mut cholesky = BandCholesky::new(&a).unwrap();
    for (n, k) in [(91, 36), (90, 35)] {
        assert!(matches!(cholesky.refactor(&definite(n, k, 1)), Err(FactorError::Input(_))));
    }
}

/// Doubles are compared in whole registers: each place counts, in the first, in the last and in common columns, and −0 is 0.
#[test]
fn every_place_of_doubles_is_looked_at() {
    for (n, k) in [(100, 1), (100, 4), (100, 8), (150, 9), (150, 16), (220, 35)] {
        let mut a = definite::<f64>(n, k, 3);
        let mut cholesky = BandCholesky::new(&a).unwrap();
        let mut refused = |a: &Band<f64>, (i, j): (usize, usize)| {
            let places = [(i, j), (j, i)].map(|(i, j)| format!("row {i}, column {j}"));
            let of_band = cholesky.refactor(a).unwrap_err().to_string();
            assert!(of_band.contains(&places[0]), "n = {n}, k = {k}: {of_band} instead of {places:?}");
            let of_rows = BandCholesky::from_csr(&a.to_csr().unwrap(), &mut ()).unwrap_err().to_string();
            assert!(places.iter().any(|place| of_rows.contains(place)), "n = {n}, k = {k}: {of_rows}, {places:?}");
            assert!(of_band.contains("not Hermitian") == of_rows.contains("not Hermitian"), "{of_band} {of_rows}");
        };
        let places = (0..n).flat_map(|j| (j..(j + k + 1).min(n)).map(move |i| (i, j)));
        let seldom = if k > 9 { 7 } else { 1 };
        for (place, (i, j)) in places.enumerate().filter(|(place, _)| place % seldom == 0) {
            let v = a.get(i, j);
            for bad in [f64::NAN, f64::INFINITY] {
                let (i, j) = if place % 2 == 0 { (i, j) } else { (j, i) };
                *a.get_mut(i, j) = bad;
                refused(&a, (i, j));
                *a.get_mut(i, j) = v;
            }
            if i != j {
                *a.get_mut(i, j) = v.next_up();
                refused(&a, (i, j));
                (*a.get_mut(i, j), *a.get_mut(j, i)) = (v, v);
            }
        }
        (*a.get_mut(1, 0), *a.get_mut(0, 1)) = (0.0, -0.0);
        cholesky.refactor(&a).unwrap();
        check_contract(&a, &cholesky, 1);
    }
}

/// By rows nothing is copied but the half that is factored: gaps of the rows are zeros, and both halves are looked at.
#[test]
fn rows_are_factored_as_they_stand() {
    let mut a = definite::<c64>(90, 36, 5);
    for (i, j) in [(40, 30), (41, 5), (89, 88), (60, 30)] {
        (*a.get_mut(i, j), *a.get_mut(j, i)) = (c64::default(), c64::default());
    }
    (0..90).for_each(|i| *a.get_mut(i, i) += 2.0);
    let rows = a.to_csr().unwrap();
    let mut cholesky = BandCholesky::from_csr(&rows, &mut ()).unwrap();
    check_contract(&a, &cholesky, 1);
    // A narrower matrix in the same memory, then one whose upper half is another.
    let narrow = definite::<c64>(90, 4, 2);
    Factorization::refactor(&mut cholesky, (&narrow.to_csr().unwrap()).into(), &mut ()).unwrap();
    check_contract(&narrow, &cholesky, 2);
    for (i, j, v) in [(30, 39, c64::new(0.5, 0.5)), (7, 7, c64::new(2.0, 1.0)), (39, 30, c64::new(0.0, f64::NAN))] {
        let mut bad = a.clone();
        *bad.get_mut(i, j) = v;
        let bad = bad.to_csr().unwrap();
        let message = BandCholesky::from_csr(&bad, &mut ()).unwrap_err().to_string();
        assert!(message.contains(&format!("row {i}, column {j}")), "{message}");
        let again = Factorization::refactor(&mut cholesky, (&bad).into(), &mut ()).unwrap_err();
        assert_eq!(again.to_string(), message);
        let mut x = vec![c64::from(1.0); 90];
        cholesky.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.re.is_nan()));
    }
    // Beyond the band there is no place.
    let wide = definite::<c64>(90, 37, 3).to_csr().unwrap();
    assert!(matches!(Factorization::refactor(&mut cholesky, (&wide).into(), &mut ()), Err(FactorError::Input(_))));
}

#[test]
fn extreme_scales_cost_no_accuracy() {
    fn at<T: Scalar>(exponent: i32) {
        let mut a = definite::<T>(80, 6, 3);
        let factor = T::rounded(10f64.powi(exponent), 0.0);
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let cholesky = BandCholesky::new(&a).unwrap();
        let mut r = Random::new(1);
        let b: Vec<T> = (0..80).map(|_| r.scalar::<T>() * factor).collect();
        for op in crate::common::OPS {
            let error = crate::common::backward_error(&a, &cholesky, op, &b);
            assert!(error <= 100.0 * bt_direct::refine::unit_roundoff::<T>(), "{op:?} {error:e}");
        }
        assert!(cholesky.stats().min_pivot.to_f64() > 0.0);
    }
    for exponent in [-290, 290] {
        at::<f64>(exponent);
        at::<c64>(exponent);
    }
    for exponent in [-30, 30] {
        at::<f32>(exponent);
        at::<c32>(exponent);
    }
}

#[test]
fn monitors_see_columns_and_stop() {
    let a = definite::<f64>(900, 40, 3);
    let mut seen = Vec::new();
    let mut watch = |p: Progress| {
        if let Progress::Step { phase: "setup", done, total: 900 } = p {
            seen.push(done);
        }
        ControlFlow::Continue(())
    };
    BandCholesky::with_monitor(&a, &mut watch).unwrap();
    assert!(seen.len() > 3 && seen.is_sorted() && *seen.last().unwrap() < 900, "{seen:?}");
    let mut stop = |_: Progress| ControlFlow::Break(());
    assert!(matches!(BandCholesky::with_monitor(&a, &mut stop), Err(FactorError::Stopped)));
}
