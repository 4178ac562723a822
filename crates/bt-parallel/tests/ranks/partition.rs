//! Divisions of rows among ranks: every row once, balance, and cuts that site expansion makes smaller, with the whole matrix and without.

use crate::common::{RANKS, scattered, succeed, vector, wind};
use bt_formats::{Csr, LinearOperator, Partition};
use bt_parallel::{DistributedCsr, Division};
use bt_testkit::{grid, stencil};
use proptest::prelude::*;

/// Every row has a rank, and sizes differ by one at most.
fn balanced(division: &Division, n: usize, p: usize) {
    let sizes: Vec<usize> = (0..p).map(|rank| division.rows(rank).len()).collect();
    assert_eq!((sizes.iter().sum::<usize>(), division.owner().len()), (n, n));
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
}

/// Every row has a rank, and every rank a row where there are as many.
fn complete(division: &Division, n: usize, p: usize) {
    let sizes: Vec<usize> = (0..p).map(|rank| division.rows(rank).len()).collect();
    assert_eq!((sizes.iter().sum::<usize>(), division.owner().len()), (n, n));
    assert!(n < p || sizes.iter().all(|size| *size > 0), "{sizes:?}");
}

#[test]
fn every_row_has_a_rank() {
    for p in [1, 2, 3, 5, 40] {
        balanced(&Division::contiguous(17, p), 17, p);
        complete(&Division::site_expansion(&stencil::<f64>(5, 0.1), p).unwrap(), 25, p);
        // Nothing is coupled, and nothing is there.
        let diagonal = Csr::new(6, 6, (0..=6).collect(), (0..6).collect(), vec![1.0; 6]).unwrap();
        balanced(&Division::site_expansion(&diagonal, p).unwrap(), 6, p);
        let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
        balanced(&Division::site_expansion(&empty, p).unwrap(), 0, p);
    }
    assert!(Division::site_expansion(&Csr::<f64>::new(1, 2, vec![0, 0], vec![], vec![]).unwrap(), 2).is_err());
}

#[test]
fn site_expansion_cuts_less_than_stripes_of_a_square() {
    // Stripes of 32 rows of a 32 × 32 grid cut 2·32 entries at each of the 15 borders; squares of 8 × 8 would cut 384.
    let a = grid::<f64>([32, 32, 1]);
    let (stripes, sites) = (Division::contiguous(1024, 16), Division::site_expansion(&a, 16).unwrap());
    let (stripes, sites) = (stripes.quality(&a), sites.quality(&a));
    assert_eq!(stripes.cut, 15 * 64);
    assert!(sites.cut < 560, "{sites}");
    assert!(sites.row_balance < 1.1 && sites.interface < stripes.interface, "{sites}\n{stripes}");
    assert_eq!(
        stripes.to_string(),
        "16 ranks of 64 to 64 rows (largest over mean 1.000, of entries 1.013); 960 entries cut, 960 interface rows"
    );
}

#[test]
fn blocks_stay_whole() {
    let blocks = Partition::from_sizes([3, 1, 4, 1, 5]).unwrap();
    for p in [1, 2, 3, 7] {
        let division = Division::by_blocks(&blocks, p);
        for j in 0..5 {
            assert!(blocks.range(j).all(|i| division.owner()[i] == division.owner()[blocks.range(j).start]));
        }
        assert!(division.owner().is_sorted() && division.owner().iter().all(|&r| (r as usize) < p));
    }
    assert_eq!(Division::by_blocks(&blocks, 2).owner(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    assert_eq!(Division::by_blocks(&Partition::from_sizes([]).unwrap(), 3).owner(), [0u32; 0]);
}

#[test]
fn whole_blocks_are_joined_until_there_are_enough_rows() {
    for sizes in [&[4, 1, 4, 1, 4, 1][..], &[1, 1, 1, 9, 1, 1], &[3, 1, 4, 1, 5], &[7], &[2; 12], &[5, 1, 1]] {
        let blocks = Partition::from_sizes(sizes.iter().copied()).unwrap();
        for (p, least) in (1..9).flat_map(|p| [0, 1, 2, 4, 6, 40].map(|least| (p, least))) {
            let division = Division::by_blocks_of_at_least(&blocks, p, least);
            let told = format!("{sizes:?} on {p}, {least} at least: {:?}", division.owner());
            assert!(division.owner().is_sorted(), "{told}");
            for j in 0..blocks.n_blocks() {
                assert!(blocks.range(j).all(|i| division.owner()[i] == division.owner()[blocks.range(j).start]));
            }
            let rows: Vec<usize> = (0..p).map(|rank| division.rows(rank).len()).collect();
            assert_eq!(rows.iter().sum::<usize>(), blocks.n(), "{told}");
            assert!(rows.iter().all(|&rows| rows == 0 || rows >= least.min(blocks.n())), "{told}");
            if least <= 1 {
                assert_eq!(division, Division::by_blocks(&blocks, p));
            }
        }
    }
}

/// Of each rank the rows that site expansion gives it from consecutive ones, and entries of other domains in them; products are those of A.
fn expanded(a: &Csr<f64>, p: usize) -> Vec<(Vec<u32>, u64)> {
    let n = a.nrows();
    let (x, mut y) = (vector::<f64>(n, 1), vec![0.0; n]);
    a.apply(1.0, &x, 0.0, &mut y);
    succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, a, &Division::contiguous(n, p))?.by_site_expansion()?;
        assert_eq!(d.nnz() as usize, bt_formats::Matrix::nnz(a));
        let mut own = vec![0.0; d.rows().own().len()];
        d.apply(1.0, &d.own_entries(&x), 0.0, &mut own)?;
        assert!(own.iter().zip(d.own_entries(&y)).all(|(a, b)| (a - b).abs() < 1e-12));
        let inside = bt_formats::Matrix::nnz(d.local()) as u64;
        let all: usize = d.rows().own().iter().map(|&i| a.row(i as usize).0.len()).sum();
        Ok((d.rows().own().to_vec(), all as u64 - inside))
    })
}

#[test]
fn small_systems_are_divided_as_with_the_whole_matrix() {
    let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    let diagonal = Csr::new(6, 6, (0..=6).collect(), (0..6).collect(), vec![1.0; 6]).unwrap();
    for a in [wind::<f64>(7), scattered::<f64>(30), grid::<f64>([9, 9, 9]), diagonal, empty] {
        for p in RANKS {
            let division = Division::site_expansion(&a, p).unwrap();
            let quality = division.quality(&a);
            let found = succeed(p, |comm| DistributedCsr::from_replicated(comm, &a, &division)?.quality());
            assert!(found.iter().all(|found| *found == quality), "{found:?} {quality}");
            for (rank, (own, _)) in expanded(&a, p).into_iter().enumerate() {
                assert_eq!(own, division.rows(rank), "rank {rank} of {p}");
            }
        }
    }
}

#[test]
fn clusters_cut_little_more_than_rows() {
    for (a, p) in [(grid::<f64>([120, 120, 1]), 4), (grid::<f64>([24, 24, 24]), 3), (grid::<f64>([24, 24, 24]), 6)] {
        assert!(a.nrows() > 1024 * p);
        let whole = Division::site_expansion(&a, p).unwrap().quality(&a);
        let found = expanded(&a, p);
        let cut: u64 = found.iter().map(|f| f.1).sum();
        let most = found.iter().map(|f| f.0.len()).max().unwrap();
        println!("{p} ranks: {cut} entries cut, {} with the whole matrix; {most} rows at most", whole.cut);
        assert!((cut as f64) < 1.3 * whole.cut as f64, "{cut} for {}", whole.cut);
        assert!((most * p) as f64 <= 1.05 * a.nrows() as f64, "{most} rows on one of {p}");
    }
}

#[test]
fn many_rows_that_nothing_couples_are_balanced() {
    let n = 5000;
    let diagonal = Csr::new(n, n, (0..=n as u32).collect(), (0..n as u32).collect(), vec![1.0; n]).unwrap();
    let sizes: Vec<usize> = expanded(&diagonal, 2).iter().map(|f| f.0.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), n);
    assert!(sizes.iter().all(|size| size.abs_diff(n / 2) <= 75), "{sizes:?}");
    // Pairs, and rows by themselves, more than a cluster has.
    let pairs = bt_testkit::csr(n, |i: usize, j: usize| {
        f64::from(i == j || i % 10 == 3 && j == i + 1 || j % 10 == 3 && i == j + 1)
    });
    let sizes: Vec<usize> = expanded(&pairs, 3).iter().map(|f| f.0.len()).collect();
    assert!(sizes.iter().all(|size| size.abs_diff(n / 3) <= 75), "{sizes:?}");
}

/// Matrices side by side, nothing coupling them.
fn side_by_side(parts: &[Csr<f64>]) -> Csr<f64> {
    let (mut row_ptr, mut cols, mut values, mut first) = (vec![0u32], Vec::new(), Vec::new(), 0);
    for a in parts {
        for i in 0..a.nrows() {
            cols.extend(a.row(i).0.iter().map(|j| j + first));
            values.extend_from_slice(a.row(i).1);
            row_ptr.push(cols.len() as u32);
        }
        first += a.nrows() as u32;
    }
    Csr::new(first as usize, first as usize, row_ptr, cols, values).unwrap()
}

fn isolated(n: usize) -> Csr<f64> {
    Csr::new(n, n, (0..=n as u32).collect(), (0..n as u32).collect(), vec![1.0; n]).unwrap()
}

/// What no domain exceeds: 1.03 of the mean.
fn limit(n: usize, p: usize) -> usize {
    n.div_ceil(p) + 3 * n / (100 * p)
}

#[test]
fn what_is_not_connected_is_balanced() {
    let square = |k| grid::<f64>([k, k, 1]);
    let with_rows = side_by_side(&[square(20), isolated(50)]);
    let equal = side_by_side(&[square(15), square(15), square(15), square(15), square(15)]);
    let copies = side_by_side(&[square(16), isolated(30), square(16), square(16), isolated(34), square(16)]);
    let sizes = side_by_side(&[square(3), square(30), square(8), isolated(7), square(11), square(2)]);
    let chains = side_by_side(&[48, 42, 35, 70, 137].map(|n| bt_testkit::chain::<f64>(n, 2.0, -1.0)));
    // Entries that straight cuts through the grids would have, about.
    for (a, cuts) in [
        (&with_rows, [40, 80, 80, 200]),
        (&equal, [40, 80, 80, 280]),
        (&copies, [0, 96, 0, 128]),
        (&sizes, [60, 100, 140, 260]),
        // A small piece between two large ones would enclose them.
        (&chains, [2, 4, 6, 16]),
    ] {
        let n = a.nrows();
        for (p, cut) in [2, 3, 4, 8].into_iter().zip(cuts) {
            let division = Division::site_expansion(a, p).unwrap();
            complete(&division, n, p);
            let quality = division.quality(a);
            println!("{quality}");
            assert!(quality.rows.1 <= limit(n, p), "{quality}");
            assert!(quality.cut <= cut * 2, "{quality}");
            // No rank has the whole, and all find the same.
            let found = expanded(a, p);
            assert!((0..p).all(|rank| found[rank].0 == division.rows(rank)), "{p} ranks");
        }
    }
    // Clusters of several rows.
    let large = side_by_side(&[grid::<f64>([50, 50, 1]), isolated(900), grid::<f64>([60, 30, 1]), isolated(100)]);
    for p in [2, 3] {
        let sizes: Vec<usize> = expanded(&large, p).iter().map(|f| f.0.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), large.nrows());
        assert!(sizes.iter().all(|&size| size <= limit(large.nrows(), p)), "{sizes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_pattern_is_divided(a in bt_testkit::strategies::square::<f64>(1..=30, 0.1), p in 1usize..9) {
        let division = Division::site_expansion(&a, p).unwrap();
        complete(&division, a.nrows(), p);
        prop_assert_eq!(division.quality(&a).n_ranks, p);
    }
}
