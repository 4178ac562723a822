//! Reverse Cuthill–McKee: always a permutation, narrow where narrowness is known, never far from the reference.

use bt_formats::reorder::{bandwidth, bandwidth_under, profile, profile_under, rcm};
use bt_formats::{Coo, Csr, LinearOperator, Permutation, Scalar, c32, c64};
use proptest::prelude::*;

fn pattern<T: Scalar>(n: usize, edges: &[(usize, usize)]) -> Csr<T> {
    let mut a = Coo::new(n, n).unwrap();
    for &(i, j) in edges {
        a.push(i, j, T::rounded(1.0, 1.0)).unwrap();
    }
    a.to_csr().unwrap()
}

pub fn shuffled(n: usize, seed: u64) -> Permutation {
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut state = seed;
    for k in (1..n).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(k, (state >> 33) as usize % (k + 1));
    }
    Permutation::from_order(order).unwrap()
}

proptest! {
    #[test]
    fn counts_agree_with_the_permuted_matrix(
        n in 1usize..40, edges in prop::collection::vec((0usize..40, 0usize..40), 0..120),
    ) {
        let edges: Vec<_> = edges.into_iter().map(|(i, j)| (i % n, j % n)).collect();
        let a = pattern::<f64>(n, &edges);
        let p = rcm(&a).unwrap();
        prop_assert_eq!(p.len(), n);
        let permuted = a.permute(&p, &p);
        prop_assert_eq!(bandwidth_under(&a, &p), bandwidth(&permuted));
        prop_assert_eq!(profile_under(&a, &p), profile(&permuted));
        // The order depends on the pattern of A + Aᵀ alone.
        prop_assert_eq!(rcm(&a.transpose()).unwrap(), p);
    }

    #[test]
    fn a_shuffled_path_comes_back(n in 1usize..300, seed in any::<u64>()) {
        let path: Vec<_> = (1..n).map(|i| (i - 1, i)).collect();
        let s = shuffled(n, seed);
        let a = pattern::<f64>(n, &path).permute(&s, &s);
        let (kl, ku) = bandwidth_under(&a, &rcm(&a).unwrap());
        prop_assert!(kl <= 1 && ku <= 1);
    }

    #[test]
    fn a_shuffled_band_comes_back_nearly(n in 20usize..200, k in 1usize..5, seed in any::<u64>()) {
        let band: Vec<_> = (0..n).flat_map(|i| (1..=k).map(move |d| (i, i + d))).filter(|e| e.1 < n).collect();
        let s = shuffled(n, seed);
        let a = pattern::<f64>(n, &band).permute(&s, &s);
        let (kl, ku) = bandwidth_under(&a, &rcm(&a).unwrap());
        // A level of the search from a good start holds at most k vertices; two adjacent levels span 2k − 1.
        prop_assert!(kl.max(ku) < 2 * k.max(1), "bandwidth {} from {k}", kl.max(ku));
    }
}

#[test]
fn all_scalars_give_one_order_and_stored_zeros_none() {
    let edges = [(0, 5), (5, 2), (2, 4), (4, 1), (1, 3)];
    let p = rcm(&pattern::<f64>(6, &edges)).unwrap();
    assert_eq!(rcm(&pattern::<f32>(6, &edges)).unwrap(), p);
    assert_eq!(rcm(&pattern::<c32>(6, &edges)).unwrap(), p);
    assert_eq!(rcm(&pattern::<c64>(6, &edges)).unwrap(), p);
    let mut a = Coo::new(6, 6).unwrap();
    for (i, j) in edges {
        a.push(i, j, 1.0).unwrap();
    }
    a.push(0, 3, 0.0).unwrap();
    assert_eq!(rcm(&a.to_csr().unwrap()).unwrap(), p);
}

#[test]
fn a_grid_is_as_narrow_as_its_shorter_side() {
    let (w, h) = (7, 30);
    let mut edges = Vec::new();
    for y in 0..h {
        for x in 0..w {
            if x + 1 < w {
                edges.push((y * w + x, y * w + x + 1));
            }
            if y + 1 < h {
                edges.push((y * w + x, y * w + x + w));
            }
        }
    }
    let s = shuffled(w * h, 3);
    let a = pattern::<f64>(w * h, &edges).permute(&s, &s);
    let (kl, ku) = bandwidth_under(&a, &rcm(&a).unwrap());
    assert!(kl.max(ku) <= w + 1, "{}", kl.max(ku));
}

/// The bandwidths of SciPy's RCM stand in ../shared/data/index.csv (rcm_kl, rcm_ku); ours may differ by ties and by
/// the start, not by much.
#[test]
fn real_matrices_are_as_narrow_as_the_reference_makes_them() {
    let Some(folder) = crate::shared_data::folder("matrices") else { return };
    let mut index = csv::Reader::from_path(folder.join("../index.csv")).unwrap();
    let headers = index.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|h| h == name).unwrap();
    let (name, kl, ku) = (column("name"), column("rcm_kl"), column("rcm_ku"));
    let (mut ours, mut reference) = (0.0, 0.0);
    for record in index.records() {
        let record = record.unwrap();
        let a = crate::shared_data::read(&folder.join(&record[name]).with_extension("mtx"));
        let given = record[kl].parse::<usize>().unwrap().max(record[ku].parse().unwrap());
        let (l, u) = bandwidth_under(&a, &rcm(&a).unwrap());
        println!("{:20} n = {:6}: {:5} (reference {given})", &record[name], a.nrows(), l.max(u));
        assert!(l.max(u) as f64 <= 1.5 * given as f64 + 2.0, "{}: {} against {given}", &record[name], l.max(u));
        ours += (l.max(u).max(1) as f64).ln();
        reference += (given.max(1) as f64).ln();
    }
    assert!(ours <= reference + 2.0, "geometric means");
}
