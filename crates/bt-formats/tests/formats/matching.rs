//! Maximum-product matching: against brute force, and proved optimal by its own scalings on real matrices.

use bt_formats::reorder::{Matching, MatchingError, StructuralDeficiency, maximum_product_matching};
use bt_formats::{Coo, Csr, LinearOperator, RealScalar, Scalar, c32, c64};
use proptest::prelude::*;

/// Largest Σ log₂|aᵢ,σ(i)| over all permutations, −∞ when every one meets a zero.
fn brute_force(a: &Csr<f64>, row: usize, used: u32) -> f64 {
    if row == a.nrows() {
        return 0.0;
    }
    (0..a.ncols())
        .filter(|j| used >> j & 1 == 0 && a.get(row, *j) != 0.0)
        .map(|j| a.get(row, j).abs().log2() + brute_force(a, row + 1, used | 1 << j))
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Entries ≤ 2 and the diagonal ≥ 1/2 in modulus: with exact factors 1 and 1. As Σ log of any other diagonal of the
/// exactly scaled matrix is ≤ 0, this is also the proof that the matching is the best one.
fn check<T: Scalar>(a: &Csr<T>, m: &Matching<T::Real>, name: &str) {
    let slack = 1.0 + 1e-6;
    let scaled = m.apply(a);
    for v in scaled.values() {
        assert!(v.abs().to_f64() <= 2.0 * slack, "{name}: {v:e}");
    }
    for i in 0..a.nrows() {
        assert!(scaled.get(i, i).abs().to_f64() * slack >= 0.5, "{name}: diagonal {i} is {:e}", scaled.get(i, i));
    }
    for s in m.row_scale.iter().chain(&m.col_scale) {
        assert_eq!(s.to_f64().log2().fract(), 0.0);
    }
}

/// The short rows have no non-zero outside one fewer columns.
fn prove(a: &Csr<f64>, d: &StructuralDeficiency) {
    assert_eq!(d.structural_rank + d.unmatched_rows.len(), a.nrows());
    assert_eq!(d.unmatched_rows.len(), d.unmatched_cols.len());
    assert_eq!(d.short_rows.len(), d.short_cols.len() + 1);
    for &i in &d.short_rows {
        let (cols, vals) = a.row(i as usize);
        assert!(cols.iter().zip(vals).all(|(j, v)| *v == 0.0 || d.short_cols.contains(j)));
    }
}

fn from_entries<T: Scalar>(n: usize, entries: &[(usize, usize, i32, bool)]) -> Csr<T> {
    let mut a = Coo::new(n, n).unwrap();
    let mut seen = std::collections::HashSet::new();
    for &(i, j, e, negative) in entries {
        if seen.insert((i % n, j % n)) {
            let v = 1.37 * 10f64.powi(e) * if negative { -1.0 } else { 1.0 };
            a.push(i % n, j % n, T::rounded(v, -v)).unwrap();
        }
    }
    a.to_csr().unwrap()
}

fn entries(largest: i32) -> impl Strategy<Value = Vec<(usize, usize, i32, bool)>> {
    prop::collection::vec((0usize..7, 0usize..7, -largest..=largest, any::<bool>()), 1..50)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_product_is_larger(n in 1usize..8, entries in entries(8)) {
        let a = from_entries::<f64>(n, &entries);
        let best = brute_force(&a, 0, 0);
        match maximum_product_matching(&a) {
            Ok(m) => {
                check(&a, &m, "random");
                let sum: f64 = (0..n).map(|j| a.get(m.rows.order()[j] as usize, j).abs().log2()).sum();
                prop_assert!((sum - best).abs() <= 1e-9 * (1.0 + best.abs()), "{} against {}", sum, best);
            }
            Err(MatchingError::Singular(d)) => {
                prop_assert_eq!(best, f64::NEG_INFINITY);
                prove(&a, &d);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn every_scalar_and_scale(n in 1usize..8, entries in entries(35)) {
        let diagonal = (0..n).map(|i| (i, i, 0, false));
        let entries: Vec<_> = entries.into_iter().chain(diagonal).collect();
        let (a, b) = (from_entries::<f32>(n, &entries), from_entries::<c32>(n, &entries));
        let (c, d) = (from_entries::<f64>(n, &entries), from_entries::<c64>(n, &entries));
        check(&c, &maximum_product_matching(&c).unwrap(), "f64");
        check(&d, &maximum_product_matching(&d).unwrap(), "c64");
        // In single precision the factors themselves may leave the range of the type; the matching is still found.
        prop_assert_eq!(maximum_product_matching(&a).unwrap().rows.len(), n);
        prop_assert_eq!(maximum_product_matching(&b).unwrap().rows.len(), n);
    }

    #[test]
    fn single_precision_within_its_range(n in 1usize..8, entries in entries(6)) {
        let entries: Vec<_> = entries.into_iter().chain((0..n).map(|i| (i, i, 0, false))).collect();
        let (a, b) = (from_entries::<f32>(n, &entries), from_entries::<c32>(n, &entries));
        check(&a, &maximum_product_matching(&a).unwrap(), "f32");
        check(&b, &maximum_product_matching(&b).unwrap(), "c32");
    }
}

#[test]
fn real_matrices_get_a_heavy_diagonal() {
    let mut singular = Vec::new();
    for name in ["matrices", "banded", "tridiag", "block"] {
        let Some(folder) = crate::shared_data::folder(name) else { return };
        for (name, a) in crate::shared_data::matrices(&folder) {
            match maximum_product_matching(&a) {
                Ok(m) => check(&a, &m, &name),
                Err(MatchingError::Singular(d)) => {
                    println!("{name}: {d}");
                    singular.push(name);
                    prove(&a, &d);
                }
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(singular.contains(&"structurally_singular_block".to_owned()));
}
