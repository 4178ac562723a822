//! Divisions of rows among ranks: every row once, balance, and cuts that site expansion makes smaller.

use bt_formats::{Csr, LinearOperator, Partition};
use bt_parallel::Division;
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_pattern_is_divided(a in bt_testkit::strategies::square::<f64>(1..=30, 0.1), p in 1usize..9) {
        let division = Division::site_expansion(&a, p).unwrap();
        complete(&division, a.nrows(), p);
        prop_assert_eq!(division.quality(&a).n_ranks, p);
    }
}
