//! Sparse Cholesky: counts against plain symbolic elimination, memory against what is taken, and what is refused.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bt_direct::{FactorError, Factorization, Place, SparseCholesky, SymbolicCholesky};
use bt_formats::{Csr, Error, LinearOperator, Op, Progress, c64, certify};
use bt_testkit::alloc::{is_counting, peak_bytes};
use bt_testkit::strategies;
use bt_testkit::{grid, random_vector};
use faer::Mat;
use proptest::prelude::*;

/// Entries of each column of L, by elimination on sets.
fn eliminate(a: &Csr<f64>, order: &[u32]) -> Vec<usize> {
    let n = order.len();
    let mut position = vec![0; n];
    order.iter().enumerate().for_each(|(k, &i)| position[i as usize] = k);
    let mut columns = vec![BTreeSet::new(); n];
    for i in 0..n {
        for &j in a.row(i).0 {
            let (p, q) = (position[i], position[j as usize]);
            columns[p.min(q)].insert(p.max(q));
        }
    }
    for k in 0..n {
        columns[k].insert(k);
        let below: Vec<usize> = columns[k].iter().copied().filter(|&i| i > k).collect();
        if let Some(&parent) = below.first() {
            columns[parent].extend(below);
        }
    }
    columns.iter().map(BTreeSet::len).collect()
}

fn check_counts(a: &Csr<f64>) -> Result<(), TestCaseError> {
    let symbolic = SymbolicCholesky::new(a).unwrap();
    let columns = eliminate(a, symbolic.order());
    prop_assert_eq!(symbolic.fill(), columns.iter().sum::<usize>() as u64);
    let flops: usize = columns.iter().map(|c| (c - 1) * (c + 1)).sum();
    prop_assert_eq!(symbolic.flops(), flops as f64);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also where the pattern has no symmetry: then that of A + Aᵀ is eliminated.
    #[test]
    fn counts_are_those_of_elimination(a in strategies::square::<f64>(1..=24, 0.15)) {
        check_counts(&a)?;
    }
}

#[test]
fn counts_of_grids() {
    for a in [grid::<f64>([7, 5, 1]), grid([4, 3, 5]), grid([40, 1, 1])] {
        check_counts(&a).unwrap();
    }
    // A chain fills nothing, whatever the order begins with.
    assert_eq!(SymbolicCholesky::new(&grid::<f64>([1000, 1, 1])).unwrap().fill(), 1999);
}

#[test]
fn memory_is_what_was_predicted() {
    assert!(is_counting());
    // By rows of L, by supernodes, and by large ones.
    for (sides, supernodal) in [([40, 40, 1], false), ([150, 150, 1], true), ([17, 17, 17], true)] {
        let a = grid::<f64>(sides);
        let symbolic = Arc::new(SymbolicCholesky::new(&a).unwrap());
        let predicted = symbolic.bytes::<f64>().unwrap();
        // faer's products keep work space for each thread, of the size of a cache, from the first of them on.
        drop(SparseCholesky::new(&a).unwrap());
        let own = Arc::clone(&symbolic);
        let (cholesky, peak) = peak_bytes(|| SparseCholesky::with_symbolic(&a, own, &mut ()).unwrap());
        let stats = cholesky.stats();
        assert_eq!((stats.bytes, stats.nnz as u64, stats.flops), (predicted, symbolic.fill(), symbolic.flops()));
        assert_eq!(stats.flops > 80.0 * stats.nnz as f64, supernodal, "{sides:?}");
        // The symbolic phase was there before.
        let (whole, from_nothing) = peak_bytes(|| SparseCholesky::new(&a).unwrap());
        let ratio = from_nothing as f64 / predicted as f64;
        assert!(
            (0.9..=1.1).contains(&ratio) || sides[2] == 1 && ratio < 1.3,
            "{sides:?}: {from_nothing} of {predicted}"
        );
        assert!(peak <= predicted, "{sides:?}: {peak} beside the symbolic phase, {predicted} predicted");
        assert_eq!(whole.stats(), stats);
    }
}

#[test]
fn grids_are_solved_to_rounding() {
    for sides in [[9, 9, 1], [150, 150, 1], [13, 13, 13]] {
        let a = grid::<f64>(sides);
        let n = a.nrows();
        let cholesky = SparseCholesky::new(&a).unwrap();
        let random = random_vector::<f64>(n, 5);
        let b = Mat::from_fn(n, 6, |i, j| random[(i * 7 + j) % n]);
        let mut x = b.clone();
        cholesky.solve_in_place(x.as_mut());
        let error = certify(&a, Op::Identity, x.as_ref(), b.as_ref()).backward_error;
        assert!(error < 1e-15, "{sides:?}: {error:e}");
    }
}

#[test]
fn what_is_not_positive_definite_is_named() {
    let mut a = grid::<f64>([5, 5, 1]);
    // Row 12 loses its diagonal, which is above those of its neighbours in any order but not without them.
    let at = a.row_ptr()[12] as usize + a.row(12).0.iter().position(|&j| j == 12).unwrap();
    a.values_mut()[at] = -1.0;
    let Err(FactorError::Breakdown { method, place, reason }) = SparseCholesky::new(&a) else { panic!("factored") };
    assert_eq!((method, place), ("sparse-cholesky", Some(Place::Row(12))));
    assert!(reason.starts_with("the pivot of row 12 (from 0) is not positive"), "{reason}");
    // In a supernode.
    let dense = bt_testkit::csr::<f64>(90, |i, j| {
        if i != j {
            1.0
        } else if i == 40 {
            0.5
        } else {
            90.0
        }
    });
    let Err(FactorError::Breakdown { reason, .. }) = SparseCholesky::new(&dense) else { panic!("factored") };
    assert!(reason.contains("not positive"), "{reason}");
    // Rows of several supernodes.
    for row in [3, 300, 700, 1000, 1330] {
        let mut a = grid::<f64>([11, 11, 11]);
        let at = a.row_ptr()[row] as usize + a.row(row).0.iter().position(|&j| j as usize == row).unwrap();
        a.values_mut()[at] = -1.0;
        let Err(FactorError::Breakdown { place, reason, .. }) = SparseCholesky::new(&a) else { panic!("factored") };
        assert_eq!(place, Some(Place::Row(row)), "{reason}");
    }
}

#[test]
fn input_is_refused_by_name() {
    let unsymmetric = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, 1.0, 4.0]).unwrap();
    let text = SparseCholesky::new(&unsymmetric).unwrap_err().to_string();
    assert!(text.contains("not Hermitian: row 0, column 1 is 1, its mirror 0"), "{text}");
    let turned = Csr::new(1, 1, vec![0, 1], vec![0], vec![c64::new(1.0, 1.0)]).unwrap();
    assert!(SparseCholesky::new(&turned).unwrap_err().to_string().contains("row 0, column 0"));
    let nan = Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::NAN]).unwrap();
    assert!(matches!(SparseCholesky::new(&nan), Err(FactorError::Input(Error::NonFinite { row: 0, col: 0, .. }))));
    let mut cholesky = SparseCholesky::new(&grid::<f64>([3, 1, 1])).unwrap();
    let other =
        Csr::new(3, 3, vec![0, 2, 4, 7], vec![0, 2, 1, 2, 0, 1, 2], vec![4.0, 1.0, 4.0, 1.0, 1.0, 1.0, 4.0]).unwrap();
    let text = cholesky.refactor(&other).unwrap_err().to_string();
    assert!(text.contains("row 0, column 2"), "{text}");
    // Refused before it was touched: the factors are still those of the first.
    let mut x = [1.0, 0.0, 1.0];
    cholesky.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_finite()));
}

#[test]
fn a_monitor_stops_it_between_supernodes() {
    let a = grid::<f64>([40, 40, 1]);
    let mut cholesky = SparseCholesky::new(&a).unwrap();
    let mut shown = 0;
    let mut stop = |progress: Progress| {
        let Progress::Step { done, .. } = progress else { return ControlFlow::Continue(()) };
        shown += 1;
        if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(matches!(cholesky.refactor_with_monitor(&a, &mut stop), Err(FactorError::Stopped)));
    assert!(shown > 1);
    let solved = |cholesky: &SparseCholesky<f64>| {
        let mut x = vec![1.0; 1600];
        cholesky.solve_vec_in_place(&mut x);
        x
    };
    assert!(solved(&cholesky).iter().all(|x| x.is_nan()));
    cholesky.refactor(&a).unwrap();
    assert!(solved(&cholesky).iter().all(|x| x.is_finite()));
}

#[test]
fn a_failed_refactorisation_gives_nan_and_the_next_one_recovers() {
    let good = grid::<f64>([4, 4, 1]);
    let mut bad = good.clone();
    bad.values_mut().iter_mut().for_each(|v| *v = -*v);
    let mut cholesky = SparseCholesky::new(&good).unwrap();
    assert!(matches!(cholesky.refactor(&bad), Err(FactorError::Breakdown { .. })));
    let mut x = [1.0; 16];
    cholesky.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_nan()) && cholesky.rcond() == 0.0);
    cholesky.refactor(&good).unwrap();
    let mut x = [1.0; 16];
    cholesky.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_finite()));
}

#[test]
fn smallest_sizes() {
    let empty = SparseCholesky::new(&Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap()).unwrap();
    empty.solve_vec_in_place(&mut []);
    assert_eq!((empty.rcond(), empty.stats().nnz), (1.0, 0));
    let zero = Csr::new(1, 1, vec![0, 0], vec![], vec![]).unwrap();
    assert!(matches!(SparseCholesky::<f64>::new(&zero), Err(FactorError::Breakdown { .. })));
}
