//! Weighted spectral ordering: hidden orders come back, weights count, every input gives a permutation.

use bt_formats::reorder::{bandwidth_under, spectral};
use bt_formats::{Coo, Csr, LinearOperator, Permutation, Scalar, c32, c64};
use proptest::prelude::*;

use crate::rcm::shuffled;

/// Unsymmetric values on the band |i − j| ≤ k: below the diagonal only.
fn band<T: Scalar>(n: usize, k: usize, value: impl Fn(usize, usize) -> f64) -> Csr<T> {
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in i.saturating_sub(k)..i {
            let v = value(i, j);
            a.push(i, j, T::rounded(v, -v)).unwrap();
        }
    }
    a.to_csr().unwrap()
}

fn recovered<T: Scalar>(a: &Csr<T>, seed: u64) -> usize {
    let s = shuffled(a.nrows(), seed);
    let hidden = a.permute(&s, &s);
    let (kl, ku) = bandwidth_under(&hidden, &spectral(&hidden).unwrap());
    kl.max(ku)
}

/// Σ wᵢⱼ (pᵢ − pⱼ)², what the order is to make small, relative to the largest weight.
fn two_sum(a: &Csr<f64>, p: &Permutation) -> f64 {
    let largest = a.values().iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let place = |i: usize| f64::from(p.position()[i]);
    (0..a.nrows())
        .map(|i| {
            let (cols, vals) = a.row(i);
            cols.iter().zip(vals).map(|(&j, v)| v.abs() / largest * (place(i) - place(j as usize)).powi(2)).sum::<f64>()
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shuffled_path_comes_back(n in 1usize..800, seed in any::<u64>()) {
        prop_assert!(recovered(&band::<f64>(n, 1, |_, _| 1.0), seed) <= 1);
    }

    #[test]
    fn a_weighted_path_comes_back(n in 1usize..300, seed in any::<u64>(), decades in 0.0f64..2.0) {
        let weight = |i: usize, _| 10f64.powf(decades * ((i * 7919 % 101) as f64 / 101.0));
        prop_assert!(recovered(&band::<f64>(n, 1, weight), seed) <= 1);
    }

    #[test]
    fn a_shuffled_band_comes_back_nearly(n in 30usize..400, k in 2usize..6, seed in any::<u64>()) {
        let found = recovered(&band::<f64>(n, k, |_, _| -2.0), seed);
        prop_assert!(found <= 2 * k, "{} from {}", found, k);
    }

    #[test]
    fn anything_gives_a_permutation(
        n in 1usize..90, entries in prop::collection::vec((0usize..90, 0usize..90, -300i32..300), 0..250),
    ) {
        let mut a = Coo::new(n, n).unwrap();
        for (i, j, e) in entries {
            a.push(i % n, j % n, 10f64.powi(e)).unwrap();
        }
        let a = a.to_csr().unwrap();
        let p = spectral(&a).unwrap();
        prop_assert_eq!(p.len(), n);
        // Deterministic, and blind to the scale and to the transpose.
        prop_assert_eq!(spectral(&a).unwrap(), p.clone());
        prop_assert_eq!(spectral(&a.transpose()).unwrap(), p);
    }
}

#[test]
fn all_scalars() {
    assert!(recovered(&band::<f32>(200, 1, |_, _| 1e-30), 5) <= 1);
    assert!(recovered(&band::<c32>(200, 1, |_, _| 1e30), 5) <= 1);
    assert!(recovered(&band::<c64>(200, 1, |_, _| 1.7e308), 5) <= 1);
    assert!(recovered(&band::<f64>(200, 1, |_, _| 5e-324), 5) <= 1);
}

#[test]
fn heavy_entries_come_close_to_the_diagonal() {
    // A grid whose lines in one direction are 1000 times as strong: the order follows the strong lines.
    let (w, h) = (12, 25);
    let mut a = Coo::new(w * h, w * h).unwrap();
    for y in 0..h {
        for x in 0..w {
            let i = y * w + x;
            if x + 1 < w {
                a.push(i, i + 1, 1000.0).unwrap();
            }
            if y + 1 < h {
                a.push(i, i + w, 1.0).unwrap();
            }
        }
    }
    let s = shuffled(w * h, 11);
    let a = a.to_csr().unwrap().permute(&s, &s);
    let p = spectral(&a).unwrap();
    let strong = Csr::new(
        w * h,
        w * h,
        a.row_ptr().to_vec(),
        a.col_idx().to_vec(),
        a.values().iter().map(|v| if *v > 10.0 { *v } else { 0.0 }).collect(),
    );
    let (kl, ku) = bandwidth_under(&strong.unwrap(), &p);
    assert!(kl.max(ku) < w, "{}", kl.max(ku));
}

#[test]
fn lines_that_the_vector_cannot_split_are_laid_side_by_side() {
    // The Fiedler vector of a long grid is constant across it: each line is ordered by itself, all in one direction.
    let (w, h) = (10, 40);
    let mut a = Coo::new(w * h, w * h).unwrap();
    for i in 0..w * h {
        if i % w + 1 < w {
            a.push(i, i + 1, 1.0).unwrap();
        }
        if i + w < w * h {
            a.push(i, i + w, 1.0).unwrap();
        }
    }
    assert_eq!(recovered(&a.to_csr().unwrap(), 21), w);
}

#[test]
fn components_of_many_kinds() {
    // 100 paths of lengths 1, 2, …, 5, 1, 2, … shuffled together.
    let lengths: Vec<usize> = (0..100).map(|k| k % 5 + 1).collect();
    let n = lengths.iter().sum();
    let mut a = Coo::new(n, n).unwrap();
    let mut first = 0;
    for (k, length) in lengths.iter().enumerate() {
        for i in first + 1..first + length {
            a.push(i - 1, i, 10f64.powi(k as i32 * 3 - 150)).unwrap();
        }
        first += length;
    }
    assert!(recovered(&a.to_csr().unwrap(), 9) <= 1);
}

#[test]
fn real_matrices() {
    let Some(folder) = crate::shared_data::folder("matrices") else { return };
    // The largest take half a minute without optimizations.
    for (name, a) in crate::shared_data::matrices(&folder).into_iter().filter(|(_, a)| a.nrows() <= 2000) {
        let p = spectral(&a).unwrap();
        let (found, given) = (two_sum(&a, &p), two_sum(&a, &Permutation::identity(a.nrows())));
        println!("{name:20} two-sum {found:.3e} (given order {given:.3e}), bandwidth {:?}", bandwidth_under(&a, &p));
        assert_eq!(p.len(), a.nrows());
        let random = two_sum(&a, &shuffled(a.nrows(), 1));
        assert!(found < 0.5 * random, "{name}: {found:e} against {random:e} of a random order");
    }
}
