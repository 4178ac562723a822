//! Elements that grow in elimination: what is said of the matrix then, and who solves it.

use crate::common::{by, csr, named, solved};
use blocktri::faer::Mat;
use blocktri::{Condition, Error, FactorError, Note, Outcome, SolveOptions, Solver, solve};
use bt_formats::{Csr, LinearOperator, c32};

/// Multiple shooting, rows and columns in an order of their own.
fn shuffled_shooting(blocks: usize, seed: u64) -> Csr<f64> {
    let a = bt_testkit::shooting::<f64>(blocks, 0.3);
    let n = a.nrows();
    let order = |seed| {
        let (keys, mut order) = (bt_testkit::random_vector::<f64>(n, seed), (0..n as u32).collect::<Vec<_>>());
        order.sort_by(|&i, &j| keys[i as usize].total_cmp(&keys[j as usize]));
        bt_formats::Permutation::from_order(order).unwrap()
    };
    a.permute(&order(seed), &order(seed + 100))
}

#[test]
fn a_matrix_in_which_elements_grow_is_not_singular() {
    // 1.28 a block: 10²⁸ in 260 blocks, and in 3000 beyond the range of doubles.
    let mut methods = Vec::new();
    for (blocks, seed) in [(260, 1), (260, 2), (260, 3), (3000, 1)] {
        let a = shuffled_shooting(blocks, seed);
        let x: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + (i % 7) as f64).collect();
        let mut b = vec![0.0; a.nrows()];
        a.apply(1.0, &x, 0.0, &mut b);
        let s = solved(&a, &b, &x);
        assert!(s.warnings.is_empty(), "{:?}", s.warnings);
        methods.push(s.report.method);
        match by(&a, &b, "sparse-lu") {
            Ok(s) => assert_eq!(s.report.outcome, Outcome::Converged),
            Err(e) => assert!(matches!(&e, Error::Factor(FactorError::Breakdown { .. })), "{e}"),
        }
        let qr = Solver::new(&a, &SolveOptions::by(named("sparse-qr")), &mut ()).unwrap();
        assert!(qr.rcond().unwrap() > 0.01);
    }
    assert!(methods.contains(&"sparse-qr"), "{methods:?}");
    // One row twice: singular, however elements grow.
    let a = shuffled_shooting(260, 1);
    let (from, to) = (a.row(7), 8);
    let entries_of = |i: usize| {
        let (cols, values) = if i == to { from } else { a.row(i) };
        cols.iter().zip(values).map(move |(&j, &v)| (i, j as usize, v))
    };
    let twice = csr(520, (0..520).flat_map(entries_of));
    match by(&twice, &vec![1.0; 520], "auto") {
        Err(Error::Singular(_)) => {}
        Ok(s) => assert!(!s.warnings.is_empty() || s.report.outcome != Outcome::Converged, "{:?}", s.rcond),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn growth_that_dense_elimination_cannot_stand_is_handed_over() {
    // Partial pivoting grows by 2^(n − 1); sparse LU orders the columns otherwise.
    let n = 300;
    let entries = (0..n).flat_map(|i| {
        let below = (0..i).map(move |j| (i, j, -1.0));
        below.chain([(i, i, 1.0)]).chain((i + 1 < n).then_some((i, n - 1, 1.0)))
    });
    let a = csr(n, entries);
    let x: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
    let b: Vec<f64> = (0..n)
        .map(|i| {
            let (cols, values) = a.row(i);
            cols.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum()
        })
        .collect();
    let s = by(&a, &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    assert!((0..n).all(|i| (s.x[(i, 0)] / x[i] - 1.0).abs() < 1e-9), "{:?}", s.report.notes);
}

/// Elements grow by 2e7 without interchanges: factors of another matrix, which is regular, do not tell how near to a singular one A is.
#[test]
fn grown_factors_do_not_tell_the_condition() {
    let t = 1.0 / 128.0;
    let a: Csr<f64> = csr(
        8,
        [
            (0, 0, -t),
            (0, 4, t),
            (1, 1, -0.0625),
            (1, 5, 0.0625),
            (2, 2, -0.25),
            (2, 6, 0.25),
            (3, 3, 128.0),
            (3, 7, -128.0),
            (4, 0, -0.0625),
            (4, 4, 0.06250000100000008),
            (4, 5, -1e-9),
            (4, 6, -1.0),
            (4, 7, 1.0),
            (5, 1, 32.0),
            (5, 4, -1.0),
            (5, 5, -30.0),
            (5, 6, -1.0),
            (5, 7, -1e-20),
            (6, 2, 1.0),
            (6, 4, -1.0),
            (6, 5, -1.0),
            (6, 7, 1.0),
            (7, 3, 64.0),
            (7, 4, -1.0),
            (7, 5, -1.0),
            (7, 6, -1.0),
            (7, 7, -61.0),
        ],
    );
    let b = Mat::from_fn(8, 1, |i, _| [-t / 4.0, -5.0 / 256.0, 5.0 / 64.0, 32.0, 0.375, 2.0, -0.4375, 20.0][i]);
    for (method, told) in [("genp", false), ("dense-lu-doubled", true)] {
        let options = SolveOptions { condition: Condition::Always, ..SolveOptions::by(named(method)) };
        let s = solve(&a, b.as_ref(), &options, &mut ()).unwrap();
        assert_eq!(s.rcond.is_some(), told, "{method}: {:?}", s.rcond);
        assert_eq!(s.report.notes.contains(&Note::ConditionBeyondFactors), !told, "{method}: {:?}", s.report.notes);
        assert_eq!(s.report.outcome == Outcome::Converged, told, "{method}");
    }
}

/// Elements that double with each row leave no digit of what the factors in single precision say of the condition; but powers of two are
/// exact, and so are the answers.
#[test]
fn grown_factors_do_not_call_a_matrix_singular() {
    let n = 58;
    let c = |re, im| c32::new(re, im);
    let last = [
        (n - 2, n - 2, c(-1.0, 0.0)),
        (n - 2, n - 1, c(0.0, 8.0)),
        (n - 1, n - 2, c(0.0, -2.0)),
        (n - 1, n - 1, c(8.0, 0.0)),
    ];
    let first = (0..n - 2).flat_map(|i| [i, n - 2, n - 1].map(|j| (i, j, c(1.0, 0.0))));
    let below = (0..n).flat_map(|i| (0..i.min(n - 2)).map(move |j| (i, j, c(-1.0, 0.0))));
    let a = csr(n, first.chain(below).chain(last));
    for unknown in [n - 3, n - 2, n - 1] {
        let x: Vec<c32> = (0..n).map(|i| c(f32::from(u8::from(i == unknown)), 0.0)).collect();
        let mut b = Mat::zeros(n, 1);
        a.apply(c(1.0, 0.0), &x, c(0.0, 0.0), b.col_as_slice_mut(0));
        let s = solve(&a, b.as_ref(), &SolveOptions::by(named("dense-lu")), &mut ()).unwrap();
        assert_eq!((s.report.outcome, s.rcond), (Outcome::Converged, None), "{:?}", s.report.notes);
        assert!(s.warnings.is_empty() && (0..n).all(|i| (s.x[(i, 0)] - x[i]).norm() < 1e-6), "{:?}", s.warnings);
        assert!(s.report.notes.iter().any(|note| matches!(note, Note::Growth { .. })), "{:?}", s.report.notes);
    }
}
