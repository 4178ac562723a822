//! Block LU: the contract on random systems with blocks of any sizes, both kinds of kernels, breakdowns, ../shared.

use std::ops::ControlFlow;

use bt_direct::{BlockLu, FactorError, Factorization, Kernels, Refinement, refine};
use bt_formats::{
    BlockTridiagonal, Coo, Couplings, DiagonalBlocks, Error, HybridLayout, Matrix, Monitor, Op, Partition, Progress,
    RealScalar, Scalar, c32, c64, one, zero,
};
use faer::Mat;
use proptest::prelude::*;

use crate::common::{BlockSystem, Random, block_systems, check_contract};

/// Random blocks, the diagonal raised to `weight` (0 leaves pivoting something to do), couplings about half full.
fn random<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut random = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..n {
            let distance = partition.block_of(i).abs_diff(partition.block_of(j));
            let v: T = random.scalar();
            // A cyclic shift inside the block carries the weight: rows must be exchanged.
            let range = partition.range(partition.block_of(i));
            let heavy = range.start + (i - range.start + 1) % range.len() == j;
            if distance == 0 {
                a.push(i, j, v + if heavy { T::rounded(weight, 0.0) } else { zero() }).unwrap();
            } else if distance == 1 && random.real() > 0.0 {
                a.push(i, j, v).unwrap();
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn check<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) {
    let a = random::<T>(sizes, weight, seed);
    let b = random::<T>(sizes, weight + 1.0, seed);
    for kernels in [Kernels::Loops, Kernels::Blocked, Kernels::Auto] {
        let mut lu = match BlockLu::forced(&a, kernels) {
            Ok(lu) => lu,
            // Without weight a block may come out nearly singular by chance.
            Err(FactorError::Breakdown { .. }) if weight < 1.0 => return,
            Err(e) => panic!("{e}"),
        };
        check_contract(&a, &lu, seed);
        let det = lu.log_det();
        if lu.refactor(&b).is_ok() {
            check_contract(&b, &lu, seed);
        }
        // The same values again: the same bits.
        lu.refactor(&a).unwrap();
        assert_eq!(lu.log_det(), det);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn contract_in_double_precision(sizes in prop::collection::vec(1usize..12, 1..6), weight in 0.0f64..12.0, seed: u64) {
        check::<f64>(&sizes, weight, seed);
        check::<c64>(&sizes, weight, seed);
    }

    #[test]
    fn contract_in_single_precision(sizes in prop::collection::vec(1usize..8, 1..5), weight in 3.0f64..12.0, seed: u64) {
        check::<f32>(&sizes, weight, seed);
        check::<c32>(&sizes, weight, seed);
    }

    #[test]
    fn scalar_blocks(n in 1usize..40, weight in 2.5f64..6.0, seed: u64) {
        check::<f64>(&vec![1; n], weight, seed);
    }
}

/// `a` with block row `j` taken from `b`.
fn with_row<T: Scalar>(a: &BlockTridiagonal<T>, b: &BlockTridiagonal<T>, j: usize) -> BlockTridiagonal<T> {
    let (n, partition) = (a.n(), a.partition());
    let mut coo = Coo::new(n, n).unwrap();
    for (from, inside) in [(a, false), (b, true)] {
        from.for_each_entry(&mut |row, col, v| {
            if partition.range(j).contains(&row) == inside {
                coo.push(row, col, v).unwrap();
            }
        });
    }
    let layout = HybridLayout { diagonal: Some(bt_formats::DiagonalKind::Dense), couplings: None };
    BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition.clone(), layout).unwrap()
}

fn check_update<T: Scalar>(sizes: &[usize], seed: u64) {
    let (a, b) = (random::<T>(sizes, 14.0, seed), random::<T>(sizes, 14.0, seed + 1));
    let mut lu = BlockLu::new(&a).unwrap();
    let mut current = a;
    let bits = |lu: &BlockLu<T>| {
        let mut x = Mat::<T>::from_fn(lu.n(), 1, |i, _| T::rounded(i as f64 + 1.0, 0.5));
        lu.solve_in_place(x.as_mut());
        (x, lu.stats(), lu.log_det())
    };
    for j in 0..sizes.len() {
        current = with_row(&current, &b, j);
        lu.update_block(j, &current).unwrap();
        let fresh = BlockLu::new(&current).unwrap();
        assert_eq!(bits(&lu), bits(&fresh), "block {j}");
    }
    // A failure, and an update of what it left.
    let mut zero = current.to_csr().unwrap();
    zero.values_mut().fill(T::default());
    let zero = BlockTridiagonal::from_csr(&zero, current.partition().clone(), HybridLayout::default()).unwrap();
    assert!(lu.update_block(0, &zero).is_err());
    lu.update_block(sizes.len() - 1, &current).unwrap();
    assert_eq!(bits(&lu), bits(&BlockLu::new(&current).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20) })]

    #[test]
    fn updates_of_block_rows(sizes in prop::collection::vec(1usize..7, 1..9), seed in 0u64..1 << 40) {
        check_update::<f64>(&sizes, seed);
        check_update::<c32>(&sizes, seed);
    }
}

#[test]
fn sizes_around_the_switch_of_kernels() {
    for sizes in [vec![15, 16, 17], vec![16; 4], vec![40, 1, 33], vec![64], vec![3, 50], vec![49, 47, 48]] {
        check::<f64>(&sizes, 40.0, 3);
        check::<c32>(&sizes, 60.0, 4);
    }
}

/// m dense blocks of k rows whose heavy element stands on the diagonal shifted by `shift` inside each block.
fn dense<T: Scalar>(k: usize, m: usize, shift: usize, scale: f64, seed: u64) -> BlockTridiagonal<T> {
    let mut random = Random::new(seed);
    let mut number = |heavy: bool| {
        let v: T = random.scalar();
        (v + T::rounded(if heavy { 3.0 * k as f64 } else { 0.0 }, 0.0)) * T::rounded(scale, 0.0)
    };
    let diagonal = (0..m * k * k).map(|i| number((i % k + shift) % k == i / k % k)).collect();
    let couplings = (0..2 * (m - 1) * k * k).map(|_| number(false)).collect();
    BlockTridiagonal::from_dense_blocks(Partition::uniform(m * k, k).unwrap(), diagonal, couplings).unwrap()
}

/// The contract, and agreement with the loops, on dense blocks of equal size with exchanges inside tiles and across them.
fn check_tiles<T: Scalar>(k: usize, tol: f64) {
    for shift in [0, 1, k / 2] {
        let a = dense::<T>(k, 5, shift, 1.0, k as u64);
        let lu = BlockLu::new(&a).unwrap();
        check_contract(&a, &lu, 1);
        let loops = BlockLu::forced(&a, Kernels::Loops).unwrap();
        let (s, t) = (lu.stats(), loops.stats());
        for (s, t) in [(s.norm_one, t.norm_one), (s.growth, t.growth), (s.min_pivot, t.min_pivot)] {
            assert!((s - t).abs() <= tol * t, "k = {k}, shift {shift}: {s} {t}");
        }
        assert_eq!(lu.log_det().sign.re() > zero(), loops.log_det().sign.re() > zero());
        let (mut x, mut y) = (vec![one::<T>(); 5 * k], vec![one::<T>(); 5 * k]);
        lu.solve_vec_in_place(&mut x);
        loops.solve_vec_in_place(&mut y);
        let distance = x.iter().zip(&y).map(|(&x, &y)| (x - y).abs1().to_f64()).fold(0.0, f64::max);
        let size = y.iter().map(|y| y.abs1().to_f64()).fold(0.0, f64::max);
        assert!(distance <= tol * size, "k = {k}, shift {shift}: {distance} of {size}");
    }
}

#[test]
fn tiles_of_equal_dense_blocks() {
    for k in [2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 40, 64] {
        check_tiles::<f64>(k, 1e-12);
    }
    for k in [2, 3, 5, 7, 8, 16, 24, 48] {
        check_tiles::<f32>(k, 1e-4);
    }
}

#[test]
fn equal_dense_blocks_with_packed_copies() {
    // Of any size; the widest vectors and those of half their length.
    for k in [9, 10, 11, 13, 15, 17, 21, 31, 50] {
        check_tiles::<f64>(k, 1e-12);
    }
    for k in [1, 3, 7, 13, 27] {
        check_tiles::<f32>(k, 1e-4);
        check_tiles::<c32>(k, 1e-4);
    }
    for k in [1, 2, 3, 4, 6, 8, 9, 15, 16, 17] {
        check_tiles::<c64>(k, 1e-12);
    }
}

/// Pivots that the kernels leave to the general path, in a row and column coupled to nothing: the next block works with factors that
/// are not packed.
fn check_tiny_pivot<T: Scalar>(k: usize, block: usize, tiny: f64, tol: f64) {
    let m = 9;
    let plain = dense::<T>(k, m, 0, 1.0, 9);
    let (DiagonalBlocks::Dense { values, .. }, Couplings::Dense { starts, values: couplings }) =
        (plain.diagonal(), plain.couplings())
    else {
        panic!()
    };
    let (mut diagonal, mut couplings) = (values.clone(), couplings.clone());
    let own = &mut diagonal[block * k * k..(block + 1) * k * k];
    // Its row [L U]: the last row; U of the row before and L of the one after: the last column.
    let (before, row, after) = (starts[block] - k * k, starts[block], starts[block + 1]);
    for i in 0..k {
        (own[i * k + k - 1], own[(k - 1) * k + i]) = (zero(), zero());
        (couplings[row + i * k + k - 1], couplings[row + (k + i) * k + k - 1]) = (zero(), zero());
        (couplings[before + (k - 1) * k + i], couplings[after + (k - 1) * k + i]) = (zero(), zero());
    }
    own[k * k - 1] = T::rounded(tiny, 0.0);
    let partition = Partition::uniform(m * k, k).unwrap();
    let a = BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings).unwrap();
    let mut b = vec![one::<T>(); m * k];
    b[block * k + k - 1] = zero();
    let solve = |kernels| {
        let lu = BlockLu::forced(&a, kernels).unwrap();
        let mut x = b.clone();
        lu.solve_vec_in_place(&mut x);
        (x, lu.stats())
    };
    let ((x, s), (y, t)) = (solve(Kernels::Auto), solve(Kernels::Loops));
    for (s, t) in [(s.norm_one, t.norm_one), (s.growth, t.growth), (s.min_pivot, t.min_pivot)] {
        assert!((s - t).abs() <= tol * t, "block {block}, k = {k}: {s} {t}");
    }
    let distance = x.iter().zip(&y).map(|(&x, &y)| (x - y).abs1().to_f64()).fold(0.0, f64::max);
    assert!(distance <= tol, "block {block}, k = {k}: {distance}");
}

#[test]
fn factors_that_are_not_packed() {
    for block in [2, 6] {
        for k in [11, 15, 22] {
            check_tiny_pivot::<f64>(k, block, 1e-307, 1e-12);
        }
        for k in [3, 8, 13] {
            check_tiny_pivot::<c64>(k, block, 1e-307, 1e-12);
            check_tiny_pivot::<c32>(k, block, 2e-38, 1e-4);
        }
    }
}

#[test]
fn updates_of_equal_dense_blocks() {
    for (k, m) in [(3, 20), (4, 5), (4, 20), (5, 9), (8, 5), (8, 20), (13, 9), (16, 5)] {
        let (a, b) = (dense::<f64>(k, m, 1, 1.0, 1), dense::<f64>(k, m, 0, 1.0, 2));
        let mut lu = BlockLu::new(&a).unwrap();
        let mut current = a;
        for j in 0..m {
            current = with_row(&current, &b, j);
            lu.update_block(j, &current).unwrap();
            let fresh = BlockLu::new(&current).unwrap();
            let (mut x, mut y) = (vec![1.0; k * m], vec![1.0; k * m]);
            lu.solve_vec_in_place(&mut x);
            fresh.solve_vec_in_place(&mut y);
            assert_eq!((x, lu.stats()), (y, fresh.stats()), "block {j} of {m}, k = {k}");
        }
    }
}

/// A monitor that ends the work when so many blocks are done.
struct Until(usize);

impl Monitor for Until {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        match progress {
            Progress::Step { done, .. } if done >= self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn chains_of_equal_dense_blocks_stop_and_recover() {
    for (k, m) in [(2, 300), (4, 300), (8, 300)] {
        let a = dense::<f64>(k, m, 0, 1.0, 3);
        let mut lu = BlockLu::new(&a).unwrap();
        let (mut x, mut y) = (vec![1.0; k * m], vec![1.0; k * m]);
        lu.solve_vec_in_place(&mut x);
        for blocks in [0, 100, 299] {
            let stopped = lu.refactor_with_monitor(&a, &mut Until(blocks));
            assert!(matches!(stopped, Err(FactorError::Stopped)), "{blocks} of {m}, k = {k}");
        }
        lu.solve_vec_in_place(&mut y);
        assert!(y.iter().all(|y| y.is_nan()));
        lu.refactor_with_monitor(&a, &mut Until(m)).unwrap();
        y.fill(1.0);
        lu.solve_vec_in_place(&mut y);
        assert_eq!(x, y);
    }
}

/// Pivots whose reciprocals are not normal numbers go through divisions.
#[test]
fn extreme_scales_of_equal_dense_blocks() {
    let plain = dense::<f64>(8, 4, 3, 1.0, 7);
    let mut x = vec![1.0; 32];
    BlockLu::new(&plain).unwrap().solve_vec_in_place(&mut x);
    for scale in [2f64.powi(-1022), 2f64.powi(1015)] {
        let a = dense::<f64>(8, 4, 3, scale, 7);
        let mut y = vec![scale; 32];
        BlockLu::new(&a).unwrap().solve_vec_in_place(&mut y);
        // Products of numbers near the smallest normal one lose digits: only what remains is compared.
        let tol = if scale < 1.0 { 1e-10 } else { 1e-13 };
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= tol), "scale {scale:e}: {x:?} {y:?}");
    }
}

#[test]
fn threads_do_not_change_the_bits_of_equal_dense_blocks() {
    for (k, m) in [(4, 4001), (5, 2000), (8, 2000), (13, 800), (16, 600)] {
        let a = dense::<f64>(k, m, 0, 1.0, 5);
        let solve = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut x = vec![1.0; k * m];
                let lu = BlockLu::new(&a).unwrap();
                lu.solve_vec_in_place(&mut x);
                (x, lu.stats())
            })
        };
        assert_eq!(solve(1), solve(2), "k = {k}");
    }
}

#[test]
fn breakdowns_in_equal_dense_blocks_are_named() {
    // Column 3 of one block is zero, and nothing is coupled to it.
    for (k, m, block) in [
        (8, 4, 1),
        (8, 200, 70),
        (8, 200, 140),
        (4, 200, 70),
        (4, 200, 140),
        (4, 201, 0),
        (5, 99, 80),
        (13, 9, 2),
        (16, 9, 7),
    ] {
        let mut diagonal: Vec<f64> = (0..m * k * k).map(|i| f64::from(u8::from(i % k == i / k % k))).collect();
        diagonal[block * k * k + 3 * k + 3] = 0.0;
        let couplings = vec![0.0; 2 * (m - 1) * k * k];
        let partition = Partition::uniform(m * k, k).unwrap();
        let a = BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings).unwrap();
        let Err(FactorError::Breakdown { reason, .. }) = BlockLu::new(&a) else { panic!() };
        let named = format!("block {block} for its column 3, column {} ", block * k + 3);
        assert!(reason.contains(&named), "{reason}");
    }
}

/// A block that the kernels for chains leave to the general ones, in either chain.
#[test]
fn a_block_of_tiny_pivots_among_equal_dense_ones() {
    for (k, m, block) in [(4, 100, 30), (4, 100, 80), (6, 100, 80), (8, 100, 30), (8, 100, 80)] {
        let plain = dense::<f64>(k, m, 0, 1.0, 9);
        let (DiagonalBlocks::Dense { values, .. }, Couplings::Dense { starts, values: couplings }) =
            (plain.diagonal(), plain.couplings())
        else {
            panic!()
        };
        let (mut diagonal, mut couplings) = (values.clone(), couplings.clone());
        diagonal[block * k * k..(block + 1) * k * k].iter_mut().for_each(|v| *v *= 1e-310);
        // Nothing is coupled to it: its row [L U], U of the row before, L of the one after.
        couplings[starts[block] - k * k..starts[block + 1] + k * k].fill(0.0);
        let partition = Partition::uniform(m * k, k).unwrap();
        let a = BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings).unwrap();
        let lu = BlockLu::new(&a).unwrap();
        let loops = BlockLu::forced(&a, Kernels::Loops).unwrap();
        let (s, t) = (lu.stats(), loops.stats());
        for (s, t) in [(s.norm_one, t.norm_one), (s.growth, t.growth), (s.min_pivot, t.min_pivot)] {
            assert!((s - t).abs() <= 1e-12 * t, "block {block}, k = {k}: {s} {t}");
        }
    }
}

#[test]
fn what_is_not_finite_in_equal_dense_blocks_is_named() {
    for (k, m, block) in [(4, 100, 30), (4, 100, 80), (6, 100, 80), (8, 100, 30), (8, 100, 80)] {
        for bad in [f64::NAN, f64::INFINITY] {
            let plain = dense::<f64>(k, m, 0, 1.0, 9);
            let (DiagonalBlocks::Dense { values, .. }, Couplings::Dense { values: couplings, .. }) =
                (plain.diagonal(), plain.couplings())
            else {
                panic!()
            };
            let mut diagonal = values.clone();
            diagonal[block * k * k + 2 * k + 1] = bad;
            let partition = Partition::uniform(m * k, k).unwrap();
            let a = BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings.clone()).unwrap();
            let Err(FactorError::Input(Error::NonFinite { row, col, .. })) = BlockLu::new(&a) else { panic!() };
            assert_eq!((row, col), (block * k + 1, block * k + 2));
        }
    }
}

#[test]
fn kernels_agree_to_rounding() {
    let a = random::<f64>(&[20, 31, 5, 18], 8.0, 11);
    let solve = |kernels| {
        let lu = BlockLu::forced(&a, kernels).unwrap();
        let mut x: Vec<f64> = (0..74).map(f64::from).collect();
        lu.solve_vec_in_place(&mut x);
        x
    };
    for (x, y) in solve(Kernels::Loops).iter().zip(solve(Kernels::Blocked)) {
        assert!((x - y).abs() <= 1e-11 * x.abs().max(1.0), "{x} {y}");
    }
}

#[test]
fn a_block_without_pivot_is_named() {
    // Block 2 has rank one after elimination: its rows are equal, and its own are not coupled to block 3.
    let sizes = [4, 20, 20, 3];
    let a = random::<f64>(&sizes, 25.0, 5);
    let (start, end) = (24, 44);
    let mut coo = Coo::new(47, 47).unwrap();
    a.for_each_entry(&mut |i, j, v| {
        let inside = |k| (start..end).contains(&k);
        if inside(i) && inside(j) {
            coo.push(i, j, 1.0).unwrap();
        } else if !(inside(i) && j >= end) {
            coo.push(i, j, v).unwrap();
        }
    });
    let partition = Partition::from_sizes(sizes).unwrap();
    let a = BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition, HybridLayout::default()).unwrap();
    for kernels in [Kernels::Loops, Kernels::Blocked] {
        match BlockLu::forced(&a, kernels) {
            Err(FactorError::Breakdown { reason, .. }) => {
                assert!(reason.contains("block 2") && reason.contains("column 25"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nan_is_refused_with_its_place() {
    let mut coo = Coo::new(3, 3).unwrap();
    for i in 0..3 {
        coo.push(i, i, 1.0).unwrap();
    }
    coo.push(2, 1, f64::NAN).unwrap();
    let partition = Partition::uniform(3, 1).unwrap();
    match BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), partition, HybridLayout::default()) {
        Err(Error::NonFinite { row: 2, col: 1, .. }) => {}
        Ok(a) => assert!(matches!(BlockLu::new(&a), Err(FactorError::Input(Error::NonFinite { row: 2, col: 1, .. })))),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_monitor_stops_the_factorization() {
    let a = random::<f64>(&[3; 10], 5.0, 1);
    let mut monitor = |p: Progress| match p {
        Progress::Step { done: 4, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = BlockLu::with_monitor(&a, &mut monitor as &mut dyn Monitor);
    assert!(matches!(stopped, Err(FactorError::Stopped)));
}

#[test]
fn shared_block_systems() {
    for system in block_systems() {
        let BlockSystem { name, csr, blocks, b, .. } = &system;
        match BlockLu::new(blocks) {
            Ok(lu) => {
                let b = Mat::from_fn(b.len(), 1, |i, _| b[i]);
                let mut x = b.clone();
                lu.solve_in_place(x.as_mut());
                let refined = refine(csr, &lu, Op::Identity, b.as_ref(), &mut x, Refinement::Auto);
                let error = refined.certificate.backward_error;
                println!("{name:28} growth {:8.1e} error {error:8.1e}", lu.stats().growth);
                assert!(error <= 1e-14, "{name}: {error:e}");
                // ‖x − x_ref‖∞ ≤ 10·κ·u·‖x_ref‖∞
                let exact = system.reference();
                let norm = exact.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let difference = exact.iter().zip(x.col_as_slice(0)).fold(0.0f64, |m, (e, x)| m.max((e - x).abs()));
                let allowed = 10.0 / lu.rcond() * 2f64.powi(-53);
                assert!(difference <= allowed * norm, "{name}: {difference:e} > {allowed:e}·{norm:e}");
            }
            Err(e) => {
                println!("{name:28} {e}");
                assert!(name == "singular_diag_blocks_3" || name == "structurally_singular_block", "{name}: {e}");
                assert!(matches!(e, FactorError::Breakdown { .. }), "{e}");
            }
        }
    }
}
