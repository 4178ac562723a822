//! Structure detection: partitions against brute force, and on the data of `../shared`.

use bt_formats::detect::{
    Corner, Definiteness, DominanceKind, Side, Symmetry, corner, detect, finest_partition, is_block_tridiagonal,
    natural_partition,
};
use bt_formats::reorder::rcm;
use bt_formats::{Coo, Csr, Error, LinearOperator, Partition, Scalar, c32, c64};
use proptest::prelude::*;

fn from_entries<T: Scalar>(n: usize, entries: &[(usize, usize)]) -> Csr<T> {
    let mut a = Coo::new(n, n).unwrap();
    for &(i, j) in entries {
        a.push(i, j, T::rounded(1.0, 0.5)).unwrap();
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
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

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
    let Some(folder) = crate::shared_data::folder("block") else { return };
    for (name, a) in crate::shared_data::matrices(&folder) {
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
    let place = |k: usize| if k.is_multiple_of(2) { k / 2 } else { n - 1 - k / 2 };
    let entries: Vec<_> = (1..n).flat_map(|k| [(place(k - 1), place(k)), (place(k), place(k - 1))]).collect();
    let a = from_entries::<f64>(n, &entries);
    assert!(finest_partition(&a).unwrap().n_blocks() < 4);
    let p = rcm(&a).unwrap();
    assert_eq!(finest_partition(&a.permute(&p, &p)).unwrap().n_blocks(), n);
}

fn tridiagonal_and(n: usize, more: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let band = (0..n).flat_map(|i| [(i, i), (i, (i + 1).min(n - 1)), ((i + 1).min(n - 1), i)]);
    let mut all: Vec<_> = band.chain(more.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn corners_and_borders_are_named() {
    let of = |n, entries: &[(usize, usize)]| corner(&from_entries::<c32>(n, entries)).unwrap();
    let periodic = |width, inner_bandwidth| Corner::Periodic { width, inner_bandwidth };
    assert_eq!(of(8, &tridiagonal_and(8, &[])), Corner::None);
    for n in [4, 5, 8, 9, 50] {
        assert_eq!(of(n, &tridiagonal_and(n, &[(0, n - 1), (n - 1, 0)])), periodic(1, 1), "{n}");
        assert_eq!(of(n, &tridiagonal_and(n, &[(n - 1, 0)])), periodic(1, 1), "{n}");
    }
    // Three cyclic neighbours on either side.
    let ring: Vec<_> = (0..30).flat_map(|i| (0..4).flat_map(move |d| [(i, (i + d) % 30), ((i + d) % 30, i)])).collect();
    let mut ring = ring;
    ring.sort_unstable();
    ring.dedup();
    assert_eq!(of(30, &ring), periodic(3, 3));
    let arrow = |side, width, inner_bandwidth| Corner::Arrowhead { side, width, inner_bandwidth };
    for n in [6, 7, 40] {
        let last: Vec<_> = (0..n).flat_map(|i| [(n - 1, i), (i, n - 1)]).collect();
        let first: Vec<_> = (0..n).map(|i| (0, i)).collect();
        assert_eq!(of(n, &tridiagonal_and(n, &last)), arrow(Side::Last, 1, 1), "{n}");
        assert_eq!(of(n, &tridiagonal_and(n, &first)), arrow(Side::First, 1, 1), "{n}");
        let diagonal: Vec<_> = (0..n).map(|i| (i, i)).chain((0..n - 1).map(|i| (n - 1, i))).collect();
        assert_eq!(of(n, &diagonal), arrow(Side::Last, 1, 0), "{n}");
    }
    let wide: Vec<_> = (0..40).flat_map(|i| [(i, 38), (39, i)]).collect();
    assert_eq!(of(40, &tridiagonal_and(40, &wide)), arrow(Side::Last, 2, 1));
    // Dense, and everything too small to have far entries.
    for n in 0..4 {
        let dense: Vec<_> = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).collect();
        assert_eq!(of(n, &dense), Corner::None);
    }
    let two = corner(&from_entries::<f32>(3, &[(0, 2)])).unwrap();
    assert_eq!(two.to_string(), "periodic: corners of width 1 on a band of half-width 0");
}

fn dense<T: Scalar>(n: usize, f: impl Fn(usize, usize) -> T) -> Csr<T> {
    Csr::from_dense(faer::Mat::from_fn(n, n, f).as_ref()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// A hint that claims something is never refuted by the eigenvalues.
    #[test]
    fn definiteness_is_never_wrong(
        n in 1usize..6, values in prop::collection::vec(-2i32..=2, 25), imaginary in prop::collection::vec(-1i32..=1, 25),
        shift in -6i32..=6,
    ) {
        let entry = |i: usize, j: usize| {
            let (low, high) = (i.min(j), i.max(j));
            let im = if i == j { 0 } else { imaginary[low * 5 + high] * if i < j { 1 } else { -1 } };
            c64::new(f64::from(values[low * 5 + high] + if i == j { shift } else { 0 }), f64::from(im))
        };
        let a = dense(n, entry);
        let s = detect(&a).unwrap();
        prop_assert!(matches!(s.symmetry, Symmetry::Hermitian));
        let eigenvalues = a.to_dense().self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let (low, high) = (eigenvalues[0], eigenvalues[n - 1]);
        let tiny = 1e-10;
        prop_assert!(match s.definiteness {
            Definiteness::Positive => low > tiny,
            Definiteness::PositiveSemi => low > -tiny,
            Definiteness::Negative => high < -tiny,
            Definiteness::NegativeSemi => high < tiny,
            Definiteness::Indefinite => low < -tiny && high > tiny,
            Definiteness::Unknown => true,
            Definiteness::NotSelfAdjoint => false,
        }, "{:?} ({}): {:?}", s.definiteness, s.definiteness_reason, eigenvalues);
    }

    /// The linear-time answers against their definitions.
    #[test]
    fn everything_agrees_with_the_definitions(
        n in 1usize..8, entries in prop::collection::vec((0usize..8, 0usize..8, -2i32..=2, any::<bool>()), 0..24),
        mirror in 0usize..4,
    ) {
        let mut d = faer::Mat::<f64>::zeros(n, n);
        for (i, j, v, _) in &entries {
            let (i, j, v) = (i % n, j % n, f64::from(*v));
            d[(i, j)] = v;
            match mirror {
                1 => d[(j, i)] = v,
                2 => (d[(i, j)], d[(j, i)]) = if i == j { (0.0, 0.0) } else { (v, -v) },
                3 => d[(j, i)] = 2.0 * v,
                _ => {}
            }
        }
        // Half of the zeros are stored.
        let mut coo = Coo::new(n, n).unwrap();
        for i in 0..n {
            for j in 0..n {
                if d[(i, j)] != 0.0 || entries.iter().any(|e| e.3 && e.0 % n == i && e.1 % n == j) {
                    coo.push(i, j, d[(i, j)]).unwrap();
                }
            }
        }
        let a = coo.to_csr().unwrap();
        let s = detect(&a).unwrap();
        let all = |f: &dyn Fn(usize, usize) -> bool| (0..n).all(|i| (0..n).all(|j| f(i, j)));
        let expected = if all(&|i, j| d[(i, j)] == d[(j, i)]) {
            Symmetry::Symmetric
        } else if all(&|i, j| d[(i, j)] == -d[(j, i)]) {
            Symmetry::SkewSymmetric
        } else if all(&|i, j| (d[(i, j)] == 0.0) == (d[(j, i)] == 0.0)) {
            Symmetry::StructurallySymmetric
        } else {
            Symmetry::Unsymmetric
        };
        prop_assert_eq!(s.symmetry, expected);
        let off: Vec<_> = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| i != j && d[(i, j)] != 0.0).collect();
        let mirrored = off.iter().filter(|&&(i, j)| d[(j, i)] != 0.0).count();
        prop_assert_eq!(s.pattern_symmetry, if off.is_empty() { 1.0 } else { mirrored as f64 / off.len() as f64 });
        let nonzeros = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&p| d[p] != 0.0).count();
        prop_assert_eq!((s.n, s.nnz, s.stored), (n, nonzeros, a.values().len()));
        prop_assert_eq!(s.kl, off.iter().map(|e| e.0.saturating_sub(e.1)).max().unwrap_or(0));
        prop_assert_eq!(s.ku, off.iter().map(|e| e.1.saturating_sub(e.0)).max().unwrap_or(0));
        let empty_row = |i: usize| (0..n).all(|j| d[(i, j)] == 0.0);
        let empty_column = |j: usize| (0..n).all(|i| d[(i, j)] == 0.0);
        prop_assert_eq!(s.empty_rows.first, (0..n).find(|&i| empty_row(i)));
        prop_assert_eq!(s.empty_columns.count, (0..n).filter(|&j| empty_column(j)).count());
        prop_assert_eq!(s.zero_diagonal.count, (0..n).filter(|&i| d[(i, i)] == 0.0).count());
        prop_assert_eq!(s.zero_diagonal.first, (0..n).find(|&i| d[(i, i)] == 0.0));
        // Components by repeated relaxation.
        let mut label: Vec<usize> = (0..n).collect();
        for _ in 0..n {
            for &(i, j) in &off {
                let l = label[i].min(label[j]);
                (label[i], label[j]) = (l, l);
            }
        }
        prop_assert_eq!(s.components, (0..n).filter(|&i| label[i] == i).count());
        // Small integers: sums are exact, dominance can be checked without slack.
        let excess = |i: usize| 2.0 * d[(i, i)].abs() - (0..n).map(|j| d[(i, j)].abs()).sum::<f64>();
        let kind = if (0..n).all(|i| excess(i) > 0.0) {
            DominanceKind::Strict
        } else if (0..n).all(|i| excess(i) >= 0.0) {
            DominanceKind::Weak
        } else {
            DominanceKind::None
        };
        prop_assert_eq!(s.row_dominance.kind, kind);
        prop_assert_eq!(detect(&a.transpose()).unwrap().column_dominance, s.row_dominance);
        prop_assert_eq!(detect(&a.cast::<c32>()).unwrap().row_dominance, s.row_dominance);
    }
}

#[test]
fn hints_say_why() {
    let laplacian = |ends: f64| {
        dense(5, |i, j| match i.abs_diff(j) {
            0 if i == 0 => ends,
            0 if i == 4 => 1.0,
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        })
    };
    let of = |a: &Csr<f64>| detect(a).map(|s| (s.definiteness, s.definiteness_reason)).unwrap();
    assert_eq!(of(&laplacian(2.0)).0, Definiteness::Positive);
    assert_eq!(of(&laplacian(1.0)).0, Definiteness::PositiveSemi);
    assert_eq!(of(&laplacian(0.0)).0, Definiteness::Indefinite);
    assert!(of(&laplacian(0.0)).1.starts_with("diagonal entry 0 is zero"));
    assert!(of(&laplacian(0.25)).1.contains("minor of rows 0 and 1"));
    assert!(of(&laplacian(-1.0)).1.contains("opposite signs"));
    // |aᵢⱼ|² overflows and underflows as a product.
    for scale in [1e300, 1e-300] {
        let a = dense(2, |i, j| if i == j { 2.0 * scale } else { scale });
        assert_eq!(of(&a).0, Definiteness::Positive);
        let b = dense(2, |i, j| if i == j { scale } else { 2.0 * scale });
        assert_eq!(of(&b).0, Definiteness::Indefinite);
    }
    let nan = dense(2, |i, j| if (i, j) == (1, 0) { f64::NAN } else { 1.0 });
    assert!(matches!(detect(&nan), Err(Error::NonFinite { row: 1, col: 0, .. })));
    let none = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    let s = detect(&none).unwrap();
    assert_eq!((s.n, s.components, s.natural.n_blocks(), s.corner), (0, 0, 0, Corner::None));
}

/// ../shared/data/index.csv was computed with SciPy.
#[test]
fn real_matrices_are_as_the_index_says() {
    let Some(folder) = crate::shared_data::folder("matrices") else { return };
    let mut index = csv::Reader::from_path(folder.join("../index.csv")).unwrap();
    let headers = index.headers().unwrap().clone();
    for record in index.records() {
        let record = record.unwrap();
        let get = |name: &str| &record[headers.iter().position(|h| h == name).unwrap()];
        let number = |name: &str| get(name).parse::<usize>().unwrap();
        let name = get("name");
        let s = detect(&crate::shared_data::read(&folder.join(name).with_extension("mtx"))).unwrap();
        assert_eq!((s.n, s.nnz), (number("n"), number("nnz")), "{name}");
        assert_eq!((s.kl, s.ku), (number("kl"), number("ku")), "{name}");
        assert_eq!((s.components, s.zero_diagonal.count), (number("components"), number("zero_diag")), "{name}");
        assert_eq!(s.symmetry == Symmetry::Symmetric, get("sym") == "yes", "{name}");
        let fraction = |name: &str| get(name).parse::<f64>().unwrap();
        // The index counts the diagonal with the pattern.
        let (diagonal, nnz) = ((s.n - s.zero_diagonal.count) as f64, s.nnz as f64);
        let share = (s.pattern_symmetry * (nnz - diagonal) + diagonal) / nnz;
        assert!((share - fraction("pattern_sym_frac")).abs() < 6e-4, "{name}: {share}");
        // Its slack for rounding is absolute, which counts more rows of one circuit with entries down to 1e-306.
        let slack = if name == "adder_dcop_05" { 0.03 } else { 6e-4 };
        let dominant = s.row_dominance.fraction;
        assert!((dominant - fraction("rows_diag_dom")).abs() < slack, "{name}: {dominant}");
        match s.definiteness {
            Definiteness::Positive => assert_eq!(get("spd"), "yes", "{name}"),
            Definiteness::Negative => assert_eq!(get("spd"), "neg-def", "{name}"),
            Definiteness::Indefinite => assert_eq!(get("spd"), "no", "{name}"),
            _ => {}
        }
    }
}
