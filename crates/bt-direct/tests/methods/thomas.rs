//! `Thomas` and `TridiagonalLu` against dense LU, LAPACK's test types and the ill-conditioned suite in `../shared`.

use bt_direct::{DiagonalPivoting, Elimination, FactorError, Factorization, Thomas, TridiagonalLu, TridiagonalOnce};
use bt_formats::certify;
use bt_formats::{Op, Par, Scalar, Tridiagonal, c32, c64};
use faer::MatRef;
use proptest::prelude::*;

use crate::common::{Random, check_contract, data, read_matrix, read_vector};

fn random<T: Scalar>(n: usize, seed: u64, dominance: f64) -> Tridiagonal<T> {
    let mut r = Random::new(seed);
    let mut off = |edge: usize| (0..n).map(|i| if i == edge { T::default() } else { r.scalar() }).collect::<Vec<T>>();
    let (lower, upper) = (off(0), off(n.wrapping_sub(1)));
    let diag = (0..n).map(|_| r.scalar::<T>() + T::rounded(dominance, 0.0)).collect();
    Tridiagonal::new(lower, diag, upper).unwrap()
}

fn check<T: Scalar>(n: usize, seed: u64) {
    let a = random::<T>(n, seed, 0.0);
    let mut lu = TridiagonalLu::new(&a).unwrap();
    check_contract(&a, &lu, seed);
    // The same object after another matrix gives the same bits as a new one.
    lu.refactor(&random(n, seed + 1, 0.0)).unwrap();
    lu.refactor(&a).unwrap();
    assert_eq!(format!("{lu:?}"), format!("{:?}", TridiagonalLu::new(&a).unwrap()));

    let a = random::<T>(n, seed, 4.5);
    let mut lu = Thomas::new(&a).unwrap();
    check_contract(&a, &lu, seed);
    lu.refactor(&random(n, seed + 1, 4.5)).unwrap();
    lu.refactor(&a).unwrap();
    assert_eq!(format!("{lu:?}"), format!("{:?}", Thomas::new(&a).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn contract_f64(n in 0usize..40, seed: u32) { check::<f64>(n, u64::from(seed)); }
    #[test]
    fn contract_f32(n in 0usize..40, seed: u32) { check::<f32>(n, u64::from(seed)); }
    #[test]
    fn contract_c64(n in 0usize..40, seed: u32) { check::<c64>(n, u64::from(seed)); }
    #[test]
    fn contract_c32(n in 0usize..40, seed: u32) { check::<c32>(n, u64::from(seed)); }
}

#[test]
fn sizes_are_checked() {
    let mut lu = TridiagonalLu::new(&random::<f64>(5, 1, 0.0)).unwrap();
    assert!(matches!(lu.refactor(&random(6, 1, 0.0)), Err(FactorError::Input(_))));
    let mut lu = Thomas::new(&random::<f64>(5, 1, 4.5)).unwrap();
    assert!(matches!(lu.refactor(&random(6, 1, 4.5)), Err(FactorError::Input(_))));
}

#[test]
fn thomas_gives_up_rather_than_lose_half_the_digits() {
    // Klein-Strzodka/Chang 16 loses eight digits without pivoting.
    let n = 64;
    let mut lower = vec![1.0; n];
    let mut upper = vec![1.0; n];
    (lower[0], upper[n - 1]) = (0.0, 0.0);
    let a = Tridiagonal::new(lower, vec![1e-9; n], upper).unwrap();
    let error = Thomas::new(&a).unwrap_err();
    assert!(matches!(error, FactorError::Breakdown { method: "thomas", .. }), "{error}");
    check_contract(&a, &TridiagonalLu::new(&a).unwrap(), 3);
}

/// The whole suite: singular files name LAPACK's column, all others have a tiny backward error and the forward error
/// their condition allows.
#[test]
fn shared_suite() {
    let Some(folder) = data("tridiag") else { return };
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let mut solved = 0;
    for line in index.lines().skip(1) {
        let fields = crate::common::csv_fields(line);
        let (name, cond2, singular) = (&fields[0], &fields[3], &fields[4]);
        let a = Tridiagonal::from_csr(&read_matrix(&folder.join(format!("{name}.mtx")))).unwrap();
        let outcome = TridiagonalLu::new(&a);
        if !singular.is_empty() {
            let column = match singular.rsplit_once("info=") {
                Some((_, info)) => info.trim().parse::<usize>().unwrap() - 1,
                None => a.diag().len() - 1,
            };
            let Err(FactorError::Singular(place)) = outcome else { panic!("{name}: {outcome:?}") };
            assert_eq!(place.column, column, "{name}");
            continue;
        }
        let lu = outcome.unwrap_or_else(|e| panic!("{name}: {e}"));
        let b = read_vector(&folder.join(format!("{name}_b.mtx")));
        let x_ref = read_vector(&folder.join(format!("{name}_xref.mtx")));
        let error = |x: &[f64]| {
            let norm = bt_formats::max_abs(&x_ref);
            x.iter().zip(&x_ref).map(|(x, r)| (x - r).abs() / norm).fold(0.0, f64::max)
        };
        let allowed = 10.0 * cond2.parse::<f64>().unwrap() * 2f64.powi(-53);
        let backward = crate::common::backward_error(&a, &lu, Op::Identity, &b);
        let mut x = b.clone();
        lu.solve_vec_in_place(&mut x);
        assert!(backward <= 1e-15, "{name}: backward error {backward:e}");
        assert!(error(&x) <= allowed.max(4e-16), "{name}: forward error {:e} > {allowed:e}", error(&x));
        let pivots = DiagonalPivoting::new(&a).unwrap_or_else(|e| panic!("{name}: {e}"));
        let backward = crate::common::backward_error(&a, &pivots, Op::Identity, &b);
        assert!(backward <= 3e-15, "{name}: diagonal pivoting, backward error {backward:e}");
        let mut y = b.clone();
        let outcome = TridiagonalOnce::new(b.len()).unwrap().solve_in_place(&a, &mut y, Elimination::Pivoted, Par::Seq);
        outcome.unwrap_or_else(|e| panic!("{name}: {e}"));
        let column = |v| MatRef::from_column_major_slice(v, b.len(), 1);
        let backward = certify(&a, Op::Identity, column(&y), column(&b)).backward_error;
        assert!(backward <= 1e-15, "{name}: once, backward error {backward:e}");
        // Without pivoting: a refusal, or an answer that has lost at most half its digits.
        match Thomas::new(&a) {
            Err(FactorError::Breakdown { .. }) => {}
            Err(e) => panic!("{name}: {e}"),
            Ok(lu) => {
                let backward = crate::common::backward_error(&a, &lu, Op::Identity, &b);
                assert!(backward <= 2f64.powi(-26), "{name}: Thomas backward error {backward:e}");
            }
        }
        solved += 1;
    }
    assert_eq!(solved, 36, "files of the suite");
}
