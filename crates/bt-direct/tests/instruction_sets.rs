//! The same bits on AVX2 and on AVX-512: the factors of narrow bands, Cholesky factors of all bands, and factors and solutions of small
//! blocks, do not depend on the length of registers. (Substitutions of bands, and blocks of eight and more rows, still do.)
//!
//! One test alone in its program, since it changes what the whole process runs on.

use bt_direct::{BandCholesky, BandLu, BlockLu, Factorization};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, Partition};
use bt_simd::{Isa, for_each_isa};

/// Numbers in [−1, 1] from a linear congruence.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn band(n: usize, kl: usize, ku: usize, diagonal: f64) -> Band<f64> {
    let (mut a, mut next) = (Band::zeros(n, kl, ku).unwrap(), numbers(n as u64));
    for j in 0..n {
        for i in j.saturating_sub(ku)..(j + kl + 1).min(n) {
            *a.get_mut(i, j) = if i == j { diagonal * next() } else { next() };
        }
    }
    a
}

/// Symmetric and dominant.
fn definite(n: usize, k: usize) -> Band<f64> {
    let (mut a, mut next) = (Band::zeros(n, k, k).unwrap(), numbers(k as u64));
    for j in 0..n {
        *a.get_mut(j, j) = 2.0 * k as f64 + 1.5 + next();
        for i in j + 1..(j + k + 1).min(n) {
            let v = next();
            (*a.get_mut(i, j), *a.get_mut(j, i)) = (v, v);
        }
    }
    a
}

fn chain(blocks: usize, k: usize) -> BlockTridiagonal<f64> {
    let (n, mut next) = (blocks * k, numbers(k as u64));
    let dense = faer::Mat::from_fn(n, n, |i, j| match (i / k).abs_diff(j / k) {
        0 if i == j => 2.0 + next(),
        0 | 1 => next(),
        _ => 0.0,
    });
    let a = Csr::from_dense(dense.as_ref()).unwrap();
    BlockTridiagonal::from_csr(&a, Partition::uniform(n, k).unwrap(), HybridLayout::default()).unwrap()
}

/// Bits of what is told of the factors: the product of the pivots, the largest of U and the smallest pivot.
fn factor_bits(factors: &dyn Factorization<f64>) -> Vec<u64> {
    let stats = factors.stats();
    let told = [stats.norm_one, stats.growth, stats.min_pivot, factors.log_det().log_abs, factors.log_det().sign];
    told.into_iter().map(f64::to_bits).collect()
}

/// The same, and the bits of L.
fn cholesky_bits(cholesky: &BandCholesky<f64>) -> Vec<u64> {
    let l = (0..cholesky.n()).flat_map(|j| cholesky.column(j)).map(|v| v.to_bits());
    factor_bits(cholesky).into_iter().chain(l).collect()
}

/// The same, and the bits of solutions.
fn all_bits(factors: &dyn Factorization<f64>) -> Vec<u64> {
    let mut next = numbers(9);
    let mut columns = faer::Mat::from_fn(factors.n(), 5, |_, _| next());
    factors.solve_in_place(columns.as_mut());
    factors.solve_transpose_in_place(columns.as_mut());
    let x = (0..5).flat_map(|j| columns.col_as_slice(j).to_vec()).map(f64::to_bits);
    factor_bits(factors).into_iter().chain(x).collect()
}

/// What was found on each instruction set.
type OnEach = Vec<(Isa, Vec<u64>)>;

#[test]
fn factors_have_the_same_bits() {
    let mut systems: Vec<(String, OnEach)> = Vec::new();
    for_each_isa(|isa| {
        // Without fused multiply-adds there are two roundings for one; vectors of 128 bits have loops of their own.
        if isa < Isa::Avx2 {
            return;
        }
        let mut found = Vec::new();
        for (kl, ku) in [(1, 1), (2, 1), (4, 4), (8, 8), (3, 12), (12, 5), (16, 16), (20, 31)] {
            for diagonal in [1.0, 40.0] {
                let lu = BandLu::new(&band(203, kl, ku, diagonal)).unwrap();
                found.push((format!("band {kl} {ku}, diagonal {diagonal}"), factor_bits(&lu)));
            }
        }
        for k in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 33, 64, 90] {
            // Of a band, and of its rows in the place of L: they are measured on the way or before.
            let (a, name) = (definite(203, k), format!("symmetric band {k}"));
            let of_band = cholesky_bits(&BandCholesky::new(&a).unwrap());
            let of_rows = cholesky_bits(&BandCholesky::from_csr(&a.to_csr().unwrap(), &mut ()).unwrap());
            assert_eq!(of_band, of_rows, "{name} on {isa}");
            found.push((name, of_band));
        }
        for k in [1, 2, 3, 4, 5, 6, 7] {
            let lu = BlockLu::new(&chain(40, k)).unwrap();
            found.push((format!("blocks of {k}"), all_bits(&lu)));
        }
        for (system, bits) in found {
            match systems.iter_mut().find(|(name, _)| *name == system) {
                Some((_, all)) => all.push((isa, bits)),
                None => systems.push((system, vec![(isa, bits)])),
            }
        }
    });
    let mut differ = Vec::new();
    for (system, all) in &systems {
        for pair in all.windows(2) {
            if pair[0].1 != pair[1].1 {
                let places = pair[0].1.iter().zip(&pair[1].1).filter(|(a, b)| a != b).count();
                differ.push(format!(
                    "{system}: {} and {} in {places} numbers of {}",
                    pair[0].0,
                    pair[1].0,
                    all[0].1.len()
                ));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
