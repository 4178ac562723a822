//! Structure detection: partitions against brute force, and on the data of `../shared`.

mod shared_data;

use bt_formats::detect::{finest_partition, is_block_tridiagonal, natural_partition};
use bt_formats::reorder::rcm;
use bt_formats::{Coo, Csr, LinearOperator, Partition, Scalar};
use proptest::prelude::*;

fn from_entries<T: Scalar>(n: usize, entries: &[(usize, usize)]) -> Csr<T> {
    let mut a = Coo::new(n, n).unwrap();
    for &(i, j) in entries {
        a.push(i, j, T::from_parts(1.0, 0.5)).unwrap();
    }
    a.to_csr().unwrap()
}

/// Block tridiagonal by the definition, entry by entry.
fn valid(a: &Csr<f64>, p: &Partition) -> bool {
    (0..a.nrows()).all(|i| a.row(i).0.iter().all(|&j| p.block_of(i).abs_diff(p.block_of(j as usize)) <= 1))
}

/// All partitions of 0..n, by the bits of a mask: bit i says that a block ends after index i.
fn all_partitions(n: usize) -> impl Iterator<Item = Partition> {
    (0u32..1 << (n - 1)).map(move |mask| {
        let mut sizes = vec![0];
        for i in 0..n {
            *sizes.last_mut().unwrap() += 1;
            if i + 1 < n && mask >> i & 1 == 1 {
                sizes.push(0);
            }
        }
        Partition::from_sizes(sizes).unwrap()
    })
}

/// S: numbers held by dense blocks, couplings counted where the neighbours are coupled at all.
fn slots(a: &Csr<f64>, p: &Partition) -> usize {
    (0..p.n_blocks())
        .map(|j| {
            let coupled = j + 1 < p.n_blocks()
                && (0..a.nrows()).any(|r| {
                    a.row(r).0.iter().any(|&c| {
                        let (b, d) = (p.block_of(r), p.block_of(c as usize));
                        b.min(d) == j && b.max(d) == j + 1
                    })
                });
            p.size(j).pow(2) + if coupled { 2 * p.size(j) * p.size(j + 1) } else { 0 }
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_partition_is_finer(
        n in 1usize..10, near in prop::collection::vec((0usize..10, -3isize..=3), 0..18),
        far in prop::collection::vec((0usize..10, 0usize..10), 0..2),
    ) {
        let near = near.into_iter().map(|(i, d)| (i % n, (i % n).saturating_add_signed(d).min(n - 1)));
        let entries: Vec<_> = near.chain(far.into_iter().map(|(i, j)| (i % n, j % n))).collect();
        let a = from_entries::<f64>(n, &entries);
        let finest = finest_partition(&a).unwrap();
        prop_assert!(valid(&a, &finest));
        let natural = natural_partition(&a).unwrap();
        prop_assert!(valid(&a, &natural));
        let mut most = 0;
        let mut least = usize::MAX;
        for p in all_partitions(n) {
            let is_valid = valid(&a, &p);
            prop_assert_eq!(is_valid, is_block_tridiagonal(&a, &p).unwrap());
            if is_valid {
                most = most.max(p.n_blocks());
                least = least.min(slots(&a, &p));
            }
        }
        prop_assert_eq!(finest.n_blocks(), most);
        // The natural one is a choice among few candidates; the finest chain is one of them.
        let m = natural.n_blocks() as f64;
        prop_assert!(slots(&a, &natural) as f64 <= (1.0 + 2.0 / m) * slots(&a, &finest) as f64);
        prop_assert!(slots(&a, &natural) >= least);
    }

    #[test]
    fn full_blocks_are_found_exactly(sizes in prop::collection::vec(1usize..7, 3..14)) {
        let p = Partition::from_sizes(sizes).unwrap();
        let a = from_entries::<f64>(p.n(), &full(&p, 1));
        let natural = natural_partition(&a).unwrap();
        // Uniform blocks may win when they cost no more than the tapering at two ends.
        prop_assert!(natural == p || slots(&a, &natural) as f64 <= (1.0 + 2.0 / natural.n_blocks() as f64) * slots(&a, &p) as f64);
        prop_assert!(natural == p || natural.sizes().skip(1).all(|k| k <= natural.size(0)));
        prop_assert_eq!(finest_partition(&a).unwrap().n_blocks(), p.n_blocks());
    }

    #[test]
    fn equal_blocks_are_found_exactly(k in 1usize..9, m in 3usize..12, coupled in 0usize..2) {
        let p = Partition::uniform(k * m, k).unwrap();
        prop_assert_eq!(natural_partition(&from_entries::<f64>(k * m, &full(&p, coupled))).unwrap(), p);
    }
}

/// All places of blocks at distance at most `couplings` from the diagonal block.
fn full(p: &Partition, couplings: usize) -> Vec<(usize, usize)> {
    let n = p.n();
    (0..n)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .filter(|&(i, j)| p.block_of(i).abs_diff(p.block_of(j)) <= couplings)
        .collect()
}

#[test]
fn shapes_that_are_none() {
    let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    assert_eq!(finest_partition(&empty).unwrap().n_blocks(), 0);
    assert_eq!(natural_partition(&empty).unwrap().n_blocks(), 0);
    let wide = Csr::<f64>::new(1, 2, vec![0, 0], vec![], vec![]).unwrap();
    assert!(finest_partition(&wide).is_err() && natural_partition(&wide).is_err());
    let one = from_entries::<f64>(1, &[]);
    assert!(is_block_tridiagonal(&one, &Partition::from_sizes([2]).unwrap()).is_err());
    // A stored zero couples nothing.
    let zero = Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, 2, 1, 2], vec![1.0, 0.0, 1.0, 1.0]).unwrap();
    assert_eq!(finest_partition(&zero).unwrap().n_blocks(), 3);
}

/// The partitions that data/block was made with are found exactly, all but one, for which a much finer one exists.
#[test]
fn the_partitions_of_the_block_systems() {
    let Some(folder) = shared_data::folder("block") else { return };
    for (name, a) in shared_data::matrices(&folder) {
        let text = std::fs::read_to_string(folder.join(&name).with_extension("blocks")).unwrap();
        let given = Partition::from_sizes(text.split_whitespace().map(|t| t.parse().unwrap())).unwrap();
        let (finest, natural) = (finest_partition(&a).unwrap(), natural_partition(&a).unwrap());
        assert!(is_block_tridiagonal(&a, &given).unwrap() && is_block_tridiagonal(&a, &natural).unwrap(), "{name}");
        assert!(finest.n_blocks() >= given.n_blocks().max(natural.n_blocks()), "{name}");
        println!(
            "{name}: {} blocks given, {} finest, {} natural",
            given.n_blocks(),
            finest.n_blocks(),
            natural.n_blocks()
        );
        if name == "mpc_double_integrator" {
            // Stages (λ, x, u) of 5 split further, into u with λ and x by turns: twice the blocks, half the storage.
            assert_eq!((given.n_blocks(), natural.n_blocks(), natural.min_max_size()), (120, 242, (1, 3)));
            assert!(2 * slots(&a, &natural) < slots(&a, &given));
        } else {
            assert_eq!(natural, given, "{name}");
        }
    }
}

#[test]
fn a_hidden_band_shows_after_reordering() {
    // A path numbered from both ends: 0 n−1 1 n−2 …
    let n = 100;
    let place = |k: usize| if k % 2 == 0 { k / 2 } else { n - 1 - k / 2 };
    let entries: Vec<_> = (1..n).flat_map(|k| [(place(k - 1), place(k)), (place(k), place(k - 1))]).collect();
    let a = from_entries::<f64>(n, &entries);
    assert!(finest_partition(&a).unwrap().n_blocks() < 4);
    let p = rcm(&a).unwrap();
    assert_eq!(finest_partition(&a.permute(&p, &p)).unwrap().n_blocks(), n);
}
