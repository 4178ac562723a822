//! Proptest strategies: matrices of every structure.
//!
//! [`csr`], [`tridiagonal`], [`band`] and [`block_tridiagonal`] give wild values, zeros among them; [`dominant`] makes
//! any square matrix diagonally dominant by rows, and [`well_conditioned`] keeps those that an oracle finds so, whatever
//! their pivots are.

use std::ops::RangeInclusive;

use bt_formats::{Coo, Csr, Partition, Permutation, Scalar};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::oracle::Oracle;

/// A number with both parts in [−1, 1]: mostly uniform, sometimes exactly 0, 1 or −1, sometimes small.
pub fn value<T: Scalar>() -> impl Strategy<Value = T> {
    let part = prop_oneof![
        12 => -1.0..=1.0f64,
        1 => Just(0.0),
        1 => Just(1.0),
        1 => Just(-1.0),
        1 => (-1.0..=1.0f64).prop_map(|v| v * 1e-6),
    ];
    (part.clone(), part).prop_map(|(re, im)| T::rounded(re, im))
}

/// `n` numbers.
pub fn vector<T: Scalar>(n: usize) -> impl Strategy<Value = Vec<T>> {
    vec(value(), n)
}

/// A sparse matrix with about `density`·nrows·ncols entries (explicit zeros and empty rows included).
pub fn csr<T: Scalar>(
    nrows: RangeInclusive<usize>,
    ncols: RangeInclusive<usize>,
    density: f64,
) -> impl Strategy<Value = Csr<T>> {
    (nrows, ncols).prop_flat_map(move |(m, n)| {
        let count = (density * (m * n) as f64).ceil() as usize;
        let entry = (0..m.max(1), 0..n.max(1), value::<T>());
        vec(entry, 0..=if m * n == 0 { 0 } else { count }).prop_map(move |list| assemble(m, n, list))
    })
}

/// A square sparse matrix.
pub fn square<T: Scalar>(n: RangeInclusive<usize>, density: f64) -> impl Strategy<Value = Csr<T>> {
    n.prop_flat_map(move |n| csr(n..=n, n..=n, density))
}

/// All places of the three diagonals filled.
pub fn tridiagonal<T: Scalar>(n: RangeInclusive<usize>) -> impl Strategy<Value = Csr<T>> {
    n.prop_flat_map(|n| filled(n, move |i, j| i.abs_diff(j) <= 1))
}

/// All places of a band filled, with 0..=`max_kl` sub-diagonals and 0..=`max_ku` super-diagonals.
pub fn band<T: Scalar>(n: RangeInclusive<usize>, max_kl: usize, max_ku: usize) -> impl Strategy<Value = Csr<T>> {
    (n, 0..=max_kl, 0..=max_ku).prop_flat_map(|(n, kl, ku)| filled(n, move |i, j| i <= j + kl && j <= i + ku))
}

/// A block-tridiagonal matrix and its partition: 1..=`max_blocks` blocks of 1..=`max_size` rows each. Every block is
/// full, so the partition is what the pattern says.
pub fn block_tridiagonal<T: Scalar>(max_blocks: usize, max_size: usize) -> impl Strategy<Value = (Csr<T>, Partition)> {
    partition(max_blocks, max_size).prop_flat_map(|p| {
        let owner = p.clone();
        filled(p.n(), move |i, j| owner.block_of(i).abs_diff(owner.block_of(j)) <= 1).prop_map(move |a| (a, p.clone()))
    })
}

/// 1..=`max_blocks` blocks of 1..=`max_size` rows.
pub fn partition(max_blocks: usize, max_size: usize) -> impl Strategy<Value = Partition> {
    vec(1..=max_size, 1..=max_blocks).prop_map(|sizes| Partition::from_sizes(sizes).expect("small blocks"))
}

/// A permutation of 0..n.
pub fn permutation(n: usize) -> impl Strategy<Value = Permutation> {
    Just((0..n as u32).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|order| Permutation::from_order(order).expect("a shuffle is a permutation"))
}

/// The matrix with diagonal entries enlarged to 1 + twice the other moduli of their row: |aᵢᵢ| > 2·Σ|aᵢⱼ|. The diagonal
/// keeps its phase.
pub fn dominant<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let n = a.row_ptr().len() - 1;
    let mut list = Vec::new();
    for i in 0..n {
        let (cols, values) = a.row(i);
        let (mut sum, mut diagonal) = (T::Real::default(), T::rounded(1.0, 0.0));
        for (&j, &v) in cols.iter().zip(values) {
            if j as usize != i {
                sum += v.abs();
                list.push((i, j as usize, v));
            } else if v != T::default() {
                diagonal = v / T::from_real(v.abs());
            }
        }
        list.push((i, i, diagonal * (T::rounded(1.0, 0.0) + T::from_real(sum + sum))));
    }
    assemble(n, n, list)
}

/// Only the square matrices whose condition number in the 1-norm is below `limit`. Small sizes: each costs an inverse.
pub fn well_conditioned<T: Scalar>(
    matrices: impl Strategy<Value = Csr<T>>,
    limit: f64,
) -> impl Strategy<Value = Csr<T>> {
    matrices.prop_filter("the condition number is too large", move |a| Oracle::new(a).condition() < limit)
}

/// Values in all places that `inside` holds for.
fn filled<T: Scalar>(n: usize, inside: impl Fn(usize, usize) -> bool) -> impl Strategy<Value = Csr<T>> {
    let places: Vec<_> = (0..n * n).map(|k| (k / n, k % n)).filter(|&(i, j)| inside(i, j)).collect();
    vec(value::<T>(), places.len())
        .prop_map(move |values| assemble(n, n, places.iter().zip(values).map(|(&(i, j), v)| (i, j, v)).collect()))
}

fn assemble<T: Scalar>(nrows: usize, ncols: usize, list: Vec<(usize, usize, T)>) -> Csr<T> {
    let mut coo = Coo::new(nrows, ncols).expect("small sizes");
    for (i, j, v) in list {
        coo.push(i, j, v).expect("indices in range");
    }
    coo.to_csr().expect("few entries")
}

#[cfg(test)]
mod tests {
    use bt_formats::c64;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn dominant_matrices_are(a in square::<c64>(1..=12, 0.4).prop_map(|a| dominant(&a))) {
            for i in 0..a.row_ptr().len() - 1 {
                let (cols, values) = a.row(i);
                let others: f64 = cols.iter().zip(values).filter(|e| *e.0 as usize != i).map(|e| e.1.norm()).sum();
                prop_assert!(a.get(i, i).norm() > 1.9 * others);
            }
        }

        #[test]
        fn structures_are_kept((a, p) in block_tridiagonal::<f64>(5, 3), t in tridiagonal::<f64>(1..=9)) {
            prop_assert_eq!(p.n() + 1, a.row_ptr().len());
            let outside = |i: usize, j: u32| p.block_of(i).abs_diff(p.block_of(j as usize)) > 1;
            prop_assert!((0..p.n()).all(|i| !a.row(i).0.iter().any(|&j| outside(i, j))));
            let n = t.row_ptr().len() - 1;
            prop_assert!((0..n).all(|i| t.row(i).0.iter().all(|&j| i.abs_diff(j as usize) <= 1)));
        }

        #[test]
        fn conditions_are_kept(a in well_conditioned(tridiagonal::<f64>(1..=8), 1e6)) {
            prop_assert!(Oracle::new(&a).condition() < 1e6);
        }

        #[test]
        fn permutations_are(p in permutation(9)) {
            prop_assert!(p.after(&p.inverse()).is_identity());
        }
    }
}
