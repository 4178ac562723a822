//! `Spike` in all its variants: against band LU and the contract, the bound of truncation, boosting, breakdowns.

use std::ops::ControlFlow;

use bt_direct::spike::{PartitionSolver, Partitions, ReducedSystem, SpikeOptions, SpikeStorage};
use bt_direct::{BandLu, Boosting, FactorError, Factorization, Place, Refinement, Spike, refine};
use bt_formats::{
    Band, BlockTridiagonal, Csr, HybridLayout, Matrix, Op, Partition, Progress, RealScalar, Scalar, c32, c64,
};
use bt_simd::Isa;
use bt_testkit::contract::{factorization_contract, refactor_contract};
use faer::Mat;
use proptest::prelude::*;

use crate::common::Random;

/// Random values; the diagonal is `dominance` times the sum of the other moduli of its row, in a random direction.
fn band<T: Scalar>(n: usize, kl: usize, ku: usize, dominance: f64, seed: u64) -> Band<T> {
    let mut r = Random::new(seed);
    let mut a = Band::<T>::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = r.scalar();
        }
    }
    for i in 0..n {
        let others = (i.saturating_sub(kl)..(i + ku + 1).min(n)).filter(|&j| j != i);
        let sum: f64 = others.map(|j| a.get(i, j).abs().to_f64()).sum();
        let (v, size): (T, f64) = (r.scalar(), (dominance * sum).max(0.5));
        let modulus = v.abs().to_f64();
        let direction = if modulus > 1e-3 { v * T::rounded(1.0 / modulus, 0.0) } else { T::rounded(1.0, 0.0) };
        *a.get_mut(i, i) = direction * T::rounded(size, 0.0);
    }
    a
}

fn options(p: usize, variant: usize) -> SpikeOptions {
    let base = SpikeOptions { partitions: Partitions::Even(p), ..SpikeOptions::default() };
    match variant {
        0 => base,
        1 => SpikeOptions { storage: SpikeStorage::Tips, partitions: Partitions::Balanced(p), ..base },
        2 => SpikeOptions { reduced: ReducedSystem::Explicit, ..base },
        3 => SpikeOptions { solver: PartitionSolver::NoPivot(None), ..base },
        _ => SpikeOptions { reduced: ReducedSystem::Explicit, storage: SpikeStorage::Tips, ..base },
    }
}

fn check_exact<T: Scalar>(n: usize, kl: usize, ku: usize, p: usize, variant: usize, seed: u64) {
    let a = band::<T>(n, kl, ku, 1.1, seed);
    let f = Spike::with_options(&a, &options(p, variant), &mut ()).unwrap();
    let most = if kl.max(ku) == 0 { n } else { (n / (2 * kl.max(ku))).max(1) };
    assert_eq!(f.report().partitions.len(), p.clamp(1, most.max(1)));
    assert!(f.is_exact());
    if let Err(why) = factorization_contract(&f, &a) {
        panic!("{}, n {n}, kl {kl}, ku {ku}, p {p}, variant {variant}, seed {seed}: {why}", T::KIND);
    }
    // The same answer as band LU, to κ·u.
    let lu = BandLu::new(&a).unwrap();
    let mut r = Random::new(seed + 1);
    let mut x: Vec<T> = (0..n).map(|_| r.scalar()).collect();
    let mut y = x.clone();
    f.solve_vec_in_place(&mut x);
    lu.solve_vec_in_place(&mut y);
    let size = y.iter().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
    let u = <T::Real as RealScalar>::EPSILON.to_f64() / 2.0;
    let bound = 20.0 * n as f64 * u * f.stats().growth.max(1.0) / lu.rcond();
    for (x, y) in x.iter().zip(&y) {
        assert!((*x - *y).abs().to_f64() <= bound * size, "n {n}, p {p}, variant {variant}: {x} {y}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_f64(n in 1usize..70, kl in 0usize..5, ku in 0usize..5, p in 1usize..10, variant in 0usize..5, seed: u32) {
        check_exact::<f64>(n, kl, ku, p, variant, u64::from(seed));
    }
    #[test]
    fn exact_others(n in 1usize..40, kl in 0usize..4, ku in 0usize..4, p in 1usize..7, variant in 0usize..5, seed: u32) {
        check_exact::<f32>(n, kl, ku, p, variant, u64::from(seed));
        check_exact::<c64>(n, kl, ku, p, variant, u64::from(seed));
        check_exact::<c32>(n, kl, ku, p, variant, u64::from(seed));
    }

    /// Any given sizes from the least allowed on.
    #[test]
    fn uneven_sizes(extra in proptest::collection::vec(0usize..9, 1..6), kl in 1usize..4, ku in 1usize..4, seed: u32) {
        let sizes: Vec<_> = extra.iter().map(|e| 2 * kl.max(ku) + e).collect();
        let a = band::<f64>(sizes.iter().sum(), kl, ku, 1.1, u64::from(seed));
        let f = Spike::with_options(&a, &SpikeOptions { partitions: Partitions::Sizes(sizes.clone()), ..SpikeOptions::default() }, &mut ());
        let f = f.unwrap();
        prop_assert_eq!(f.report().partitions, sizes);
        factorization_contract(&f, &a).map_err(TestCaseError::fail)?;
    }

    /// What truncation changes stays below what it says; refinement removes it.
    #[test]
    fn the_bound_holds(
        n in 20usize..160, kl in 0usize..4, ku in 0usize..4, p in 2usize..6, dominance in 1.05..4.0f64, pivoted: bool, seed: u32,
    ) {
        let a = band::<f64>(n, kl, ku, dominance, u64::from(seed));
        let solver = if pivoted { PartitionSolver::Pivoted } else { PartitionSolver::NoPivot(None) };
        let options = SpikeOptions {
            partitions: Partitions::Balanced(p),
            reduced: ReducedSystem::Truncated { tolerance: f64::INFINITY },
            solver,
            ..SpikeOptions::default()
        };
        let f = Spike::with_options(&a, &options, &mut ()).unwrap();
        let dropped = f.report().dropped;
        let (x, b) = product(&a);
        let mut y = b.clone();
        f.solve_in_place(y.as_mut());
        let size = (0..n).map(|i| x[(i, 0)].abs()).fold(0.0, f64::max);
        let error = (0..n).map(|i| (x[(i, 0)] - y[(i, 0)]).abs()).fold(0.0, f64::max) / size;
        let rounding = 1e-14 * n as f64 * f.stats().growth.max(1.0) / f.rcond();
        prop_assert!(error <= dropped + rounding, "error {error:e}, bound {dropped:e}");
        // Without a middle partition there is nothing to drop.
        if f.report().partitions.len() <= 2 {
            prop_assert!(f.is_exact());
        }
        if dropped <= 1e-4 {
            for op in [Op::Identity, Op::Transpose] {
                let mut b = Mat::zeros(n, 1);
                a.apply_many(op, 1.0, x.as_ref(), 0.0, b.as_mut(), bt_formats::Par::Seq);
                let mut y = b.clone();
                f.solve_op_in_place(op, y.as_mut());
                let refined = refine(&a, &f, op, b.as_ref(), &mut y, Refinement::Auto);
                prop_assert!(refined.certificate.backward_error < 1e-15 * n as f64, "{:?}", refined.certificate);
            }
        }
    }

    /// Matrices of no kind: either the contract holds, as far as the growth it states allows, or it breaks down.
    #[test]
    fn wild_bands(n in 8usize..60, k in 1usize..4, p in 2usize..6, variant in 0usize..5, seed: u32) {
        let mut r = Random::new(u64::from(seed));
        let mut a = Band::<f64>::zeros(n, k, k).unwrap();
        for j in 0..n {
            for i in a.column_range(j) {
                *a.get_mut(i, j) = r.scalar();
            }
        }
        match Spike::with_options(&a, &options(p, variant), &mut ()) {
            Ok(f) if f.stats().growth <= 1e6 && BandLu::new(&a).unwrap().rcond() > 1e-8 => {
                let (_, b) = product(&a);
                let mut x = b.clone();
                f.solve_in_place(x.as_mut());
                let error = bt_formats::certify(&a, Op::Identity, x.as_ref(), b.as_ref()).backward_error;
                let bound = 30.0 * n as f64 * 1.2e-16 * f.stats().growth;
                prop_assert!(error <= bound, "backward error {error:e}, {:?}", f.stats());
            }
            Ok(_) => {}
            Err(e) => prop_assert!(matches!(e, FactorError::Breakdown { .. }), "{e}"),
        }
    }

    #[test]
    fn cholesky(n in 1usize..60, k in 0usize..4, p in 1usize..6, near: bool, seed: u32) {
        let lower = band::<c64>(n, k, k, 1.0, u64::from(seed));
        let mut a = Band::<c64>::zeros(n, k, k).unwrap();
        for j in 0..n {
            for i in a.column_range(j) {
                // The Hermitian part of A, with a diagonal of twice the half-bandwidth.
                let v = (lower.get(i, j) + lower.get(j, i).conj()) * c64::new(0.5, 0.0);
                *a.get_mut(i, j) = if i == j { c64::new(2.0 + 3.0 * k as f64, 0.0) } else { v };
            }
        }
        let reduced = if near { ReducedSystem::Truncated { tolerance: f64::INFINITY } } else { ReducedSystem::Recursive };
        let options = SpikeOptions {
            partitions: Partitions::Even(p),
            solver: PartitionSolver::Cholesky,
            reduced,
            storage: SpikeStorage::Tips,
        };
        let f = Spike::with_options(&a, &options, &mut ()).unwrap();
        if f.is_exact() {
            factorization_contract(&f, &a).map_err(TestCaseError::fail)?;
        } else {
            prop_assert!(near);
        }
    }

    #[test]
    fn blocks((sizes, p, variant, seed) in (proptest::collection::vec(1usize..5, 2..12), 1usize..5, 0usize..3, any::<u32>())) {
        let a = block_tridiagonal::<f64>(&sizes, u64::from(seed));
        let options = options(p, [0, 1, 2][variant]);
        let f = Spike::with_options(&a, &options, &mut ()).unwrap();
        prop_assert_eq!(f.report().partitions.len(), p.min(sizes.len() / 2));
        factorization_contract(&f, &a).map_err(TestCaseError::fail)?;
        let truncated = SpikeOptions { reduced: ReducedSystem::Truncated { tolerance: f64::INFINITY }, ..options };
        let f = Spike::with_options(&a, &truncated, &mut ()).unwrap();
        let (x, b) = product(&a);
        let mut y = b.clone();
        f.solve_in_place(y.as_mut());
        let n = a.n();
        let size = (0..n).map(|i| x[(i, 0)].abs()).fold(0.0, f64::max);
        let error = (0..n).map(|i| (x[(i, 0)] - y[(i, 0)]).abs()).fold(0.0, f64::max) / size;
        prop_assert!(error <= f.report().dropped + 1e-11, "error {error:e}, bound {:e}", f.report().dropped);
    }

    #[test]
    fn iterative(n in 8usize..80, kl in 0usize..4, ku in 0usize..4, p in 1usize..6, seed: u32) {
        let a = band::<f64>(n, kl, ku, 1.3, u64::from(seed));
        let options = SpikeOptions {
            partitions: Partitions::Even(p),
            reduced: ReducedSystem::iterative::<f64>(),
            ..SpikeOptions::default()
        };
        let f = Spike::with_options(&a, &options, &mut ()).unwrap();
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let (x, _) = product(&a);
            let mut b = Mat::zeros(n, 1);
            a.apply_many(op, 1.0, x.as_ref(), 0.0, b.as_mut(), bt_formats::Par::Seq);
            let mut y = b.clone();
            f.solve_op_in_place(op, y.as_mut());
            let error = bt_formats::certify(&a, op, y.as_ref(), b.as_ref()).backward_error;
            prop_assert!(error <= 1e-13 * n as f64, "{op:?}: {error:e}, {:?}", f.report());
        }
        if let Some(counts) = f.report().iterations {
            prop_assert!(counts.solves == 3 && counts.failures == 0 && counts.iterations >= 1, "{counts:?}");
            prop_assert!(f.log_det().log_abs.is_nan());
        }
    }
}

/// x without structure, and A·x.
fn product<A: Matrix<f64>>(a: &A) -> (Mat<f64>, Mat<f64>) {
    let n = a.nrows();
    let mut r = Random::new(77);
    let x = Mat::from_fn(n, 1, |_, _| r.real());
    let mut b = Mat::zeros(n, 1);
    a.apply_many(Op::Identity, 1.0, x.as_ref(), 0.0, b.as_mut(), bt_formats::Par::Seq);
    (x, b)
}

fn block_tridiagonal<T: Scalar>(sizes: &[usize], seed: u64) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut r = Random::new(seed);
    let (mut ptr, mut cols, mut values) = (vec![0], vec![], vec![]);
    for i in 0..n {
        for j in 0..n {
            if partition.block_of(i).abs_diff(partition.block_of(j)) <= 1 {
                let v: T = r.scalar();
                cols.push(j as u32);
                values.push(if i == j { T::rounded(14.0, 0.0) } else { v });
            }
        }
        ptr.push(cols.len() as u32);
    }
    let a = Csr::new(n, n, ptr, cols, values).unwrap();
    BlockTridiagonal::from_csr(&a, partition, HybridLayout::default()).unwrap()
}

#[test]
fn refactorisation() {
    let zeros = |n, kl, ku| Band::<f64>::zeros(n, kl, ku).unwrap();
    for variant in 0..5 {
        for (n, kl, ku, p) in [(40, 2, 3, 3), (40, 2, 3, 1), (24, 1, 0, 4), (30, 0, 0, 2)] {
            let (first, second) = (band::<f64>(n, kl, ku, 1.5, 1), band::<f64>(n, kl, ku, 2.0, 2));
            let make = |a: &Band<f64>| Spike::with_options(a, &options(p, variant), &mut ());
            refactor_contract(&first, &second, Some(&zeros(n, kl, ku)), make, |f, a| f.refactor(a))
                .unwrap_or_else(|why| panic!("variant {variant}, n {n}, p {p}: {why}"));
        }
    }
    let (first, second) =
        (block_tridiagonal::<f64>(&[2, 3, 1, 4, 2, 2], 1), block_tridiagonal::<f64>(&[2, 3, 1, 4, 2, 2], 2));
    for variant in 0..3 {
        let make = |a: &BlockTridiagonal<f64>| Spike::with_options(a, &options(3, variant), &mut ());
        refactor_contract(&first, &second, None, make, |f, a| f.refactor(a))
            .unwrap_or_else(|why| panic!("blocks, variant {variant}: {why}"));
    }
}

/// Rows 3 to 5 of A_1 are zero inside the partition; A couples them to the next one.
fn singular_partition() -> Band<f64> {
    let mut a = Band::zeros(12, 3, 3).unwrap();
    for i in 0..12 {
        let target = match i {
            3..6 => i + 3,
            6..9 => i - 3,
            _ => i,
        };
        *a.get_mut(i, target) = 2.0 + i as f64;
        if i > 0 && !(3..6).contains(&i) {
            *a.get_mut(i, i - 1) = 0.25;
        }
    }
    a
}

#[test]
fn a_singular_partition_is_no_singular_matrix() {
    let a = singular_partition();
    assert!(BandLu::new(&a).unwrap().rcond() > 1e-3);
    let even = SpikeOptions { partitions: Partitions::Sizes(vec![6, 6]), ..SpikeOptions::default() };
    for solver in [PartitionSolver::Pivoted, PartitionSolver::NoPivot(None)] {
        let error = Spike::with_options(&a, &SpikeOptions { solver, ..even.clone() }, &mut ()).unwrap_err();
        let FactorError::Breakdown { method: "spike", place, reason } = &error else { panic!("{error}") };
        assert!(reason.contains("partition 0") && reason.contains("band-lu"), "{reason}");
        let found = if solver == PartitionSolver::Pivoted { Place::Partition(0) } else { Place::Row(3) };
        assert_eq!(*place, Some(found), "{reason}");
    }
    // Boosted it can be factored, and the solution refined.
    let boosted = SpikeOptions { solver: PartitionSolver::NoPivot(Some(Boosting::of::<f64>())), ..even };
    let f = Spike::with_options(&a, &boosted, &mut ()).unwrap();
    assert_eq!(f.stats().boosted_pivots, f.report().boosted_pivots);
    assert!(f.stats().boosted_pivots >= 3 && !f.is_exact(), "{:?}", f.stats());
    let (_, b) = product(&a);
    let mut x = b.clone();
    f.solve_in_place(x.as_mut());
    let refined = refine(&a, &f, Op::Identity, b.as_ref(), &mut x, Refinement::Steps(10));
    assert!(refined.certificate.backward_error < 1e-14, "{:?}", refined.certificate);
}

#[test]
fn a_nearly_singular_partition_is_noticed() {
    // The same with 1e-14 on the diagonal: A_0 can be inverted, its spike has the size 1e14.
    let mut a = singular_partition();
    for i in 3..9 {
        *a.get_mut(i, i) = 1e-14;
    }
    let options = SpikeOptions { partitions: Partitions::Sizes(vec![6, 6]), ..SpikeOptions::default() };
    for reduced in [ReducedSystem::Recursive, ReducedSystem::Explicit] {
        let error = Spike::with_options(&a, &SpikeOptions { reduced, ..options.clone() }, &mut ()).unwrap_err();
        let FactorError::Breakdown { place, reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains("band-lu"), "{reason}");
        // Without fused products what is left of the reduced system may tell instead.
        if Isa::in_use() == Isa::Portable && reason.contains("no more than rounding") {
            assert_eq!(*place, Some(Place::Partition(0)));
        } else {
            assert!(reason.contains("spikes of size"), "{reason}");
            assert!(matches!(place, Some(Place::Partition(0 | 1))), "{reason}");
        }
    }
}

/// Partitions are eliminated downwards, the last one upwards, a middle one of the truncated variant both ways.
#[test]
fn breakdowns_inside_a_partition_have_their_row_in_the_matrix() {
    let place = |error: FactorError| match error {
        FactorError::Breakdown { place, .. } => place,
        other => panic!("{other}"),
    };
    for row in [2usize, 4, 7, 10, 14] {
        let mut a = band::<f64>(15, 1, 1, 2.0, 3);
        for j in row.saturating_sub(1)..(row + 2).min(15) {
            *a.get_mut(row, j) = 0.0;
        }
        for reduced in [ReducedSystem::Recursive, ReducedSystem::Truncated { tolerance: 1.0 }] {
            let partitions = Partitions::Sizes(vec![5, 5, 5]);
            let solver = PartitionSolver::NoPivot(None);
            let options = SpikeOptions { partitions, solver, reduced, ..SpikeOptions::default() };
            assert_eq!(
                place(Spike::with_options(&a, &options, &mut ()).unwrap_err()),
                Some(Place::Row(row)),
                "{reduced:?}"
            );
        }
    }
    // The second of two blocks of the last of three partitions has no pivot for its second column.
    let mut csr = block_tridiagonal::<f64>(&[2; 6], 1).to_csr().unwrap();
    for i in 0..12 {
        let (start, at) = (csr.row_ptr()[i] as usize, csr.row(i).0.binary_search(&11));
        if let Ok(at) = at {
            csr.values_mut()[start + at] = 0.0;
        }
    }
    let partition = Partition::uniform(12, 2).unwrap();
    let a = BlockTridiagonal::from_csr(&csr, partition, HybridLayout::default()).unwrap();
    let options = SpikeOptions { partitions: Partitions::Even(3), ..SpikeOptions::default() };
    assert_eq!(place(Spike::with_options(&a, &options, &mut ()).unwrap_err()), Some(Place::Column(11)));
}

#[test]
fn a_singular_matrix_is_a_breakdown_at_a_cut() {
    // Two equal columns at the cut; every partition is regular.
    let mut a = band::<f64>(8, 2, 2, 2.0, 3);
    for i in 0..8 {
        for j in [3, 4] {
            if a.column_range(j).contains(&i) {
                *a.get_mut(i, j) = 0.0;
            }
        }
    }
    for (i, v) in [(3, 1.0), (4, 2.0)] {
        *a.get_mut(i, 3) = v;
        *a.get_mut(i, 4) = v;
    }
    let options = SpikeOptions { partitions: Partitions::Even(2), ..SpikeOptions::default() };
    match Spike::with_options(&a, &options, &mut ()).unwrap_err() {
        FactorError::Breakdown { place, reason, .. } => {
            assert!(reason.contains("partition 0"), "{reason}");
            // A column where elimination itself ends, the cut where its pivots are no more than rounding.
            assert!(matches!(place, Some(Place::Partition(0) | Place::Column(2..6))), "{place:?}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn truncation_that_drops_too_much_breaks_down() {
    let a = band::<f64>(60, 2, 2, 1.05, 5);
    let options = |tolerance, p| SpikeOptions {
        partitions: Partitions::Even(p),
        reduced: ReducedSystem::Truncated { tolerance },
        ..SpikeOptions::default()
    };
    let error = Spike::with_options(&a, &options(1e-12, 10), &mut ()).unwrap_err();
    let FactorError::Breakdown { method: "spike-truncated", reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("recursive"), "{reason}");
    // Longer partitions drop less; the bound is of use.
    let a = band::<f64>(4000, 2, 2, 1.5, 5);
    let short = Spike::with_options(&a, &options(1.0, 200), &mut ()).unwrap().report().dropped;
    let long = Spike::with_options(&a, &options(1.0, 20), &mut ()).unwrap().report().dropped;
    assert!(long < 1e-15 && short < 0.1 && short > 1e-12, "{short:e} {long:e}");
}

#[test]
fn an_iteration_that_does_not_converge_is_no_factorization() {
    let a = band::<f64>(60, 3, 3, 1.0, 5);
    let options = SpikeOptions {
        partitions: Partitions::Even(6),
        reduced: ReducedSystem::Iterative { rtol: 1e-15, max_iters: 1 },
        ..SpikeOptions::default()
    };
    let error = Spike::with_options(&a, &options, &mut ()).unwrap_err();
    assert!(error.to_string().contains("BiCGSTAB"), "{error}");
}

#[test]
fn unusable_input_is_named() {
    for p in 1..4 {
        let mut a = band::<c32>(30, 2, 3, 2.0, 1);
        *a.get_mut(14, 15) = c32::new(0.0, f32::NAN);
        let error = Spike::with_options(&a, &options(p, 0), &mut ()).unwrap_err().to_string();
        assert!(error.contains("row 14, column 15"), "{error}");
    }
    let a = band::<f64>(30, 2, 3, 2.0, 1);
    let sizes = SpikeOptions { partitions: Partitions::Sizes(vec![5, 25]), ..SpikeOptions::default() };
    assert!(matches!(Spike::with_options(&a, &sizes, &mut ()), Err(FactorError::Input(_))));
    let cholesky = SpikeOptions { solver: PartitionSolver::Cholesky, ..SpikeOptions::default() };
    assert!(matches!(Spike::with_options(&a, &cholesky, &mut ()), Err(FactorError::Input(_))));
    let square = band::<f64>(30, 2, 2, 2.0, 1);
    let error = Spike::with_options(&square, &cholesky, &mut ()).unwrap_err().to_string();
    assert!(error.contains("Hermitian"), "{error}");
    let blocks = block_tridiagonal::<f64>(&[2, 2], 1);
    assert!(matches!(Spike::with_options(&blocks, &cholesky, &mut ()), Err(FactorError::Input(_))));
    let mut f = Spike::with_options(&a, &options(2, 0), &mut ()).unwrap();
    assert!(f.refactor(&square).is_err() && f.refactor(&blocks).is_err());
}

#[test]
fn scales_do_not_matter() {
    for scale in [1e-300, 1e300] {
        for p in [1, 3] {
            let mut a = band::<f64>(40, 2, 1, 1.2, 9);
            a.values_mut().iter_mut().for_each(|v| *v *= scale);
            factorization_contract(&Spike::with_options(&a, &options(p, 0), &mut ()).unwrap(), &a).unwrap();
        }
    }
}

#[test]
fn a_failed_refactorisation_gives_nan() {
    let a = band::<f64>(40, 2, 2, 1.5, 1);
    let mut f = Spike::with_options(&a, &options(3, 0), &mut ()).unwrap();
    let mut stop = |_: Progress| ControlFlow::Break(());
    assert!(matches!(f.refactor_with_monitor(&a, &mut stop), Err(FactorError::Stopped)));
    for op in [Op::Identity, Op::Transpose] {
        let mut x = Mat::from_fn(40, 3, |_, _| 1.0);
        f.solve_op_in_place(op, x.as_mut());
        assert!((0..40).all(|i| (0..3).all(|j| x[(i, j)].is_nan())));
    }
    assert!(f.log_det().log_abs.is_nan() && f.stats().growth.is_nan());
    f.refactor(&a).unwrap();
    factorization_contract(&f, &a).unwrap();
}

#[test]
fn auto_says_why() {
    let a = band::<f64>(2000, 3, 3, 1.5, 1);
    for (threads, p, word) in [(1, 1, "one thread"), (2, 2, "both ends"), (4, 4, "truncated")] {
        let f = Spike::auto(&a, threads, &mut ()).unwrap();
        let report = f.report();
        assert_eq!(report.partitions.len(), p);
        let choice = report.choice.unwrap();
        assert!(choice.reason.contains(word) && choice.dominance > 1.4, "{choice:?}");
        assert_eq!(f.method(), if threads == 4 { "spike-truncated" } else { "spike" });
    }
    let f = Spike::auto(&band::<f64>(2000, 3, 3, 0.9, 1), 4, &mut ()).unwrap();
    assert!(f.report().choice.unwrap().reason.contains("recursive"));
}

/// Large enough for the thread pool.
#[test]
fn threads_do_not_change_bits() {
    let a = band::<f64>(6000, 12, 9, 1.2, 4);
    let b = Mat::from_fn(6000, 3, |i, j| ((i + 3 * j) % 11) as f64 - 5.0);
    for variant in 0..5 {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let f = Spike::with_options(&a, &options(5, variant), &mut ()).unwrap();
                let mut x = b.clone();
                f.solve_in_place(x.as_mut());
                f.solve_transpose_in_place(x.as_mut());
                x
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}
