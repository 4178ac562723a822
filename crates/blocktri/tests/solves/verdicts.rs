//! What is said of answers and matrices: singular only where it is proved, right only where each row says so.
//!
//! The systems are of kinds that other solvers had reports about: chains whose blocks are nearly singular, rows in units of their own,
//! borders. Elements that grow are in `growth`, numbers at the ends of the range in `range`. The right answers are small integers.

use crate::common::{by, csr, entries_of, in_single, named, solved};
use blocktri::faer::Mat;
use blocktri::{
    Blocks, Condition, Direct, Error, FactorError, Note, Outcome, ScalarKind, SingularKind, SolveOptions, Solver, c64,
    solve,
};
use bt_formats::{Csr, Matrix, Op, Par, one, zero};

/// Methods that work on a block-tridiagonal matrix.
const BLOCKED: [&str; 4] = ["block-lu", "block-cyclic-reduction", "block-lu-across", "spike"];

/// A chain with missing bonds: the middle block looks singular once its tiny neighbours have been divided by.
fn chain(t: f64) -> Csr<f64> {
    csr(
        6,
        [
            (0, 0, -1.0),
            (0, 1, -1.0),
            (0, 2, 1.0),
            (1, 0, t),
            (1, 2, -1.0),
            (1, 3, -1.0),
            (2, 0, 1.0),
            (3, 1, -1.0),
            (4, 5, 1.0),
            (5, 4, -1.0),
        ],
    )
}

#[test]
fn tiny_pivots_do_not_make_a_regular_chain_singular() {
    let x = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0];
    for t in [1e-9, 1e-17, 1e-20, 1e-300] {
        let a = chain(t);
        let b = [0.0, t - 4.0, 1.0, -2.0, 3.0, -2.0];
        solved(&a, &b, &x);
        for method in BLOCKED {
            for blocks in [Blocks::Uniform(2), Blocks::Detect] {
                let options = SolveOptions { blocks, ..SolveOptions::by(named(method)) };
                let rhs = Mat::from_fn(6, 1, |i, _| b[i]);
                match solve(&a, rhs.as_ref(), &options, &mut ()) {
                    Ok(s) => {
                        assert!(
                            s.report.outcome != Outcome::Converged || (s.x[(0, 0)] - 1.0).abs() < 1e-13,
                            "{method}"
                        );
                    }
                    Err(e) => assert!(!matches!(e, Error::Singular(_)), "{method}: {e}"),
                }
            }
        }
    }
    // Three rows whose condition number is 9, and five whose is 4.
    let t = 1e-17;
    let three = csr(3, [(0, 0, t), (0, 1, 2.0), (1, 0, 0.5), (1, 1, t), (1, 2, -1.0), (2, 1, 1.0), (2, 2, 1.0)]);
    solved(&three, &[t + 4.0, -2.5, 5.0], &[1.0, 2.0, 3.0]);
    let five = csr(
        5,
        [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 1e-20), (1, 2, 1.0), (2, 1, 1.0), (2, 2, -1.0), (3, 3, -1.0), (4, 4, -1.0)],
    );
    let b = [2.0, 4.0, -1.0, -1.0, -2.0];
    solved(&five, &b, &[1.0, 2.0, 3.0, 1.0, 2.0]);
    for method in ["block-cyclic-reduction", "diagonal-pivoting", "spike-lu"] {
        assert!(!matches!(by(&five, &b, method), Err(Error::Singular(_))), "{method}");
    }
}

#[test]
fn rows_in_large_units_do_not_hide_the_others() {
    let x = [1.0, 2.0, 3.0];
    for s in [1e12, 1e20, 1e100] {
        let rows = [[s, s, s], [1.0, 1.0, 2.0], [1.0, 2.0, 1.0]];
        let mut entries: Vec<_> = (0..9).map(|k| (k / 3, k % 3, rows[k / 3][k % 3])).collect();
        entries[0].2 = 1.0;
        let a = csr(3, entries);
        let b = [5.0 * s + 1.0, 9.0, 8.0];
        let found = solved(&a, &b, &x);
        assert!(found.report.certificate.componentwise_backward_error <= 3.0 * f64::EPSILON);
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        for method in ["band-lu", "dense-lu", "block-lu-across", "sparse-lu"] {
            let found = by(&a, &b, method).unwrap_or_else(|e| panic!("{method}: {e}"));
            assert_eq!(found.report.outcome, Outcome::Converged, "{method}");
            assert!((0..3).all(|i| (found.x[(i, 0)] - x[i]).abs() < 1e-13), "{method}");
        }
    }
}

#[test]
fn columns_in_small_units_keep_their_digits() {
    // [4 1; 1 3] with columns in units of 1e-12 and 1e12, and x in the opposite ones.
    let a = csr(2, [(0, 0, 4e-12), (0, 1, 1e12), (1, 0, 1e-12), (1, 1, 3e12)]);
    let s = solved(&a, &[6.0, 7.0], &[11.0 / 11.0 * 1e12, 2e-12]);
    assert!(s.warnings.is_empty() && s.rcond.unwrap() < 1e-16, "{:?}", s.warnings);
}

#[test]
fn singular_matrices_are_named_by_proof() {
    // The third row is the sum of the others; the structure has full rank.
    let sum = csr(3, [(0, 0, 1.0), (0, 1, 2.0), (1, 1, 3.0), (1, 2, 4.0), (2, 0, 1.0), (2, 1, 5.0), (2, 2, 4.0)]);
    let b = [3.0, 7.0, 10.0];
    for method in ["auto", "band-lu", "dense-lu", "sparse-lu", "dense-lu-doubled", "block-lu"] {
        let Err(Error::Singular(place)) = by(&sum, &b, method) else { panic!("{method}") };
        assert_eq!(place.kind, SingularKind::Numerical, "{method}");
    }
    // In other units too, where doubles lose it or not.
    let units = csr(3, [(0, 0, 1e20), (0, 1, 2e20), (1, 1, 3.0), (1, 2, 4.0), (2, 0, 1.0), (2, 1, 5.0), (2, 2, 4.0)]);
    assert!(matches!(by(&units, &[3e20, 7.0, 10.0], "auto"), Err(Error::Singular(_))));
    let empty = csr(2, [(0, 0, 1.0), (1, 0, 1.0)]);
    let Err(Error::Singular(place)) = by(&empty, &[1.0, 1.0], "auto") else { panic!() };
    assert_eq!((place.kind, place.column), (SingularKind::Structural, 1));
}

#[test]
fn zeros_are_found_where_a_condition_number_of_1e12_hides_them() {
    // x₀ = x₁ = x₃ = 0: a step of refinement wins four digits of x₃, of which row 0, 10⁻²⁰x₀ = x₃, needs thirty-six.
    let entries = [
        (0, 0, 1e-20),
        (0, 3, -1.0),
        (1, 1, 1e-12),
        (1, 4, 1.0),
        (2, 2, -1e-16),
        (2, 5, 1.0),
        (3, 0, -1.0),
        (3, 3, -1.0),
        (3, 4, 1.0),
        (3, 5, -1.0),
        (3, 6, 1.0),
        (3, 7, 1.0),
        (4, 1, 1.0),
        (4, 3, -1.0),
        (4, 4, 1.0),
        (4, 5, 1.0),
        (4, 6, -1.0),
        (4, 8, 1.0),
        (5, 2, 1.0),
        (5, 3, 1.0),
        (5, 4, -1.0),
        (5, 5, 1.0),
        (5, 6, 1.0),
        (6, 3, 1.0),
        (6, 4, -1.0),
        (6, 5, 1.0),
        (6, 6, 1.0),
        (7, 3, 1.0),
        (7, 7, 1.0),
        (7, 8, 1.0),
        (8, 4, -1.0),
        (8, 7, 1.0),
        (8, 8, 1.0),
    ];
    let b = [0.0, -8.0, 1.9999999999999991, -5.0, -15.0, 24.0, 15.0, -4.0, 4.0];
    let s = by::<f64>(&csr(9, entries), &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    assert!((s.x[(3, 0)] - 1e-20 * s.x[(0, 0)]).abs() <= 1e-35 * s.x[(0, 0)].abs());
    assert!((s.x[(2, 0)] - 9.0).abs() < 1e-3);
}

#[test]
fn an_unknown_far_below_the_others_gets_all_its_digits() {
    // 10⁻²⁰x₂ + 5x₄ = 0 with an x₂ that is itself 10⁻¹⁵ of the others: x₄ is 10⁻³⁶ of them, and still has a row of its own.
    let entries = [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (1, 0, 1.0),
        (1, 1, 1.0),
        (1, 3, 4.0),
        (2, 2, -1e-20),
        (2, 4, -5.0),
        (3, 1, 4.0),
        (3, 3, 1e-16),
        (3, 5, -2.0),
        (4, 2, -6.0),
        (4, 4, 1.0),
        (4, 5, 1.0),
        (4, 6, 1.0),
        (5, 3, -5.0),
        (5, 4, 1.0),
        (5, 5, 1.0),
        (5, 7, 8.0),
        (6, 4, 3.0),
        (6, 6, -1e-12),
        (6, 7, 1.0),
        (6, 8, 4.0),
        (7, 5, -4.0),
        (7, 6, 9.313225746154785e-10),
        (7, 7, 1.0),
        (7, 9, 8.0),
        (8, 6, 4.0),
        (8, 8, -8.673617379884035e-19),
        (8, 9, 8.673617379884035e-19),
        (8, 10, -8.0),
        (9, 7, 8.0),
        (9, 8, 2.220446049250313e-16),
        (9, 9, 9.313225746154785e-10),
        (9, 11, -5.0),
        (10, 8, -8.0),
        (10, 10, 1.0),
        (10, 11, 1.0),
        (11, 9, -5.0),
        (11, 10, 1.0),
        (11, 11, 1.0),
        (11, 13, -7.0),
        (12, 12, -2.220446049250313e-16),
        (13, 11, -5.0),
        (13, 13, 2.220446049250313e-16),
    ];
    let b = [
        -1.4044477616111843e+306,
        1.5448925377723027e+307,
        0.0,
        -7.022238808055922e+306,
        4.213343284833553e+306,
        -3.1600074636251647e+307,
        -2.3875611947393646e+307,
        -9.831134328008305e+306,
        1.4044477616111843e+307,
        -3.2302298517711236e+307,
        4.915567165639145e+307,
        2.8088955232223686e+306,
        1.2474001934592e+291,
        -2.1066716424167765e+307,
    ];
    let s = by::<f64>(&csr(14, entries), &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    assert!((s.x[(4, 0)] / 2.8021955811596466e270 - 1.0).abs() < 1e-14);
}

#[test]
fn a_pivot_that_rounding_hides_is_found_in_twice_the_precision() {
    // A saddle point whose multiplier block is −1e-17: doubles cancel it.
    let dense = [[5.0, -4.0, -1.0, 1.0], [-4.0, 7.0, 1.0, -1.0], [-1.0, 1.0, -1e-17, 0.0], [1.0, -1.0, 0.0, 0.0]];
    let entries: Vec<_> = (0..16).map(|k| (k / 4, k % 4, dense[k / 4][k % 4])).filter(|e| e.2 != 0.0).collect();
    let a = csr(4, entries);
    let b = [-2.0, 9.0, 1.0, -1.0];
    let s = solved(&a, &b, &[1.0, 2.0]);
    assert_eq!(s.report.method, "dense-lu-doubled");
    // Named methods say what they met, and no more.
    let Err(Error::Factor(FactorError::Breakdown { reason, .. })) = by(&a, &b, "dense-lu") else { panic!() };
    assert!(reason.contains("column 3") && reason.contains("regular"), "{reason}");
}

/// Refinement contracts on the vectors of the estimate, and factors in single precision have lost what A is nearly singular by.
#[test]
fn a_condition_number_beyond_single_precision_is_not_told() {
    let text = "1 1 1e-9|1 2 -1e-20|1 3 1e-9|1 4 7|1 6 6|2 1 1e-20|2 2 1e-16|2 3 1e-16|2 4 5|2 5 -3|2 6 8|3 1 1e-16|\
                3 2 -2.220446049250313e-16|3 3 8.673617379884035e-19|3 4 -6|3 5 -6|3 6 2|4 1 7|4 2 5|4 3 -6|4 4 -1e-17|\
                4 5 -8.673617379884035e-19|4 6 -1e-16|4 7 8|4 8 -6|4 9 -7|5 2 -3|5 3 -6|5 4 -1e-12|5 5 9.313225746154785e-10|\
                5 6 -1e-16|5 7 2|5 8 3|5 9 -2|6 1 6|6 2 8|6 3 2|6 4 8.673617379884035e-19|6 5 -1e-17|6 6 -1e-16|6 7 -8|6 8 -8|\
                6 9 9|7 4 3|7 5 2|7 6 -5|7 7 1|7 8 1|7 9 1|8 4 -9|8 5 6|8 6 -8|8 7 1|8 8 1|8 9 1|9 4 9|9 5 8|9 6 -3|9 7 1|\
                9 8 1|9 9 1";
    let a = csr(9, entries_of(text));
    let b = Mat::<f64>::zeros(9, 1);
    let double = solve(&a, b.as_ref(), &SolveOptions::by(named("dense-lu-doubled")), &mut ()).unwrap().rcond.unwrap();
    assert!(double < 1e-17, "{double:e}");
    for method in ["auto", "band-lu", "dense-lu"] {
        let s = solve(&a, b.as_ref(), &in_single(method), &mut ()).unwrap();
        assert!(s.rcond.is_none_or(|rcond| rcond < 1e-15), "{method}: {:?}", s.rcond);
        assert!(s.rcond.is_some() || s.report.outcome == Outcome::Inaccurate, "{method}");
    }
}

/// Two constraints of a saddle point differ by 1e-20, and its determinant needs 1e-40 of its numbers.
#[test]
fn a_determinant_that_twice_the_precision_loses_is_found_by_exact_elimination() {
    let text = "1 1 1|1 2 -2.220446049250313e-16|1 6 1|1 8 1|2 1 -2.220446049250313e-16|2 2 1|2 7 -1|2 9 -1|3 3 1|\
                3 4 -2.220446049250313e-16|3 8 -1e-20|4 3 -2.220446049250313e-16|4 4 1|4 6 1|4 7 -1|4 8 1|4 9 1|5 5 1|5 7 -1|\
                5 9 -1|6 1 1|6 4 1|7 2 -1|7 4 -1|7 5 -1|8 1 1|8 3 -1e-20|8 4 1|9 2 -1|9 4 1|9 5 -1";
    let a = csr(9, entries_of(text));
    let b = [6.999999999999943, 261.0, 2.0, 18.75, -4.0, 0.75, -246.75, 0.75, -247.25];
    let s = by(&a, &b, "auto").unwrap();
    assert_eq!((s.report.outcome, s.report.method), (Outcome::Converged, "exact-lu"), "{:?}", s.report.notes);
    let Err(Error::Factor(FactorError::Breakdown { reason, .. })) = by(&a, &b, "dense-lu-doubled") else { panic!() };
    assert!(reason.contains("by exact-lu it is regular"), "{reason}");
    // The same constraint twice is singular, by every method that says so.
    let entries = entries_of(text);
    let twice: Vec<_> = entries.into_iter().filter(|e| e.2 != -1e-20).collect();
    for method in ["auto", "dense-lu-doubled", "exact-lu", "sparse-lu"] {
        assert!(matches!(by(&csr(9, twice.clone()), &b, method), Err(Error::Singular(_))), "{method}");
    }
}

/// Factors in single precision find a pivot where those in double find none.
#[test]
fn weak_factors_in_single_precision_leave_the_choice_to_auto() {
    let text = "1 1 1|1 3 1|1 4 1|1 5 1|1 8 1|1 9 -1|1 10 1|2 1 -9.313225746154785e-10|2 3 1|2 8 1|3 4 -2.220446049250313e-16|4 1 1|\
                5 4 1|5 5 1e-20|5 6 -1|5 9 1e-9|5 11 1|6 6 -1|6 7 -1|6 9 1|6 10 -1|7 1 -1|7 3 -1e-9|7 5 1|8 3 1|8 4 -1|8 5 -1|\
                8 6 1e-16|8 8 1|8 10 -1|9 4 -1|9 7 1|9 8 2.220446049250313e-16|9 10 1e-9|9 11 2.220446049250313e-16|9 12 -1|10 1 1|\
                10 8 -9.313225746154785e-10|10 9 -1|11 8 -1|12 1 -1|12 2 -1|12 3 -1|12 4 1|12 6 1|12 8 1|12 9 -1|12 12 1";
    let a = csr(12, entries_of(text));
    let x = Mat::from_fn(12, 1, |i, _| [1.0, -2.0, 3.0][i % 3]);
    let mut b = Mat::<f64>::zeros(12, 1);
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    let single = in_single("auto");
    let s = solve(&a, b.as_ref(), &single, &mut ()).unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report.notes);
}

#[test]
fn the_number_of_threads_and_partitions_does_not_decide() {
    // −ε·u″ + u′ on a mesh that is too coarse: odd partitions lose all digits.
    let (n, e) = (400, 1e-6);
    let h = 1.0 / 401.0;
    let entries: Vec<_> = (0..n)
        .flat_map(|i: usize| {
            [(i, i.wrapping_sub(1), -e / h / h - 0.5 / h), (i, i, 2.0 * e / h / h), (i, i + 1, -e / h / h + 0.5 / h)]
        })
        .filter(|entry| entry.1 < n)
        .collect();
    let a = csr(n, entries);
    let mut b = Mat::<f64>::zeros(n, 1);
    let x = Mat::from_fn(n, 1, |i, _| 1.0 + f64::from(u8::from(i % 3 == 0)));
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    for partitions in [None, Some(1), Some(2), Some(3), Some(5)] {
        let options = SolveOptions::by(Direct::Spike { partitions });
        let verdict = solve(&a, b.as_ref(), &options, &mut ());
        assert!(!matches!(verdict, Err(Error::Singular(_))), "{partitions:?}");
        let s = verdict.unwrap_or_else(|e| panic!("{partitions:?}: {e}"));
        assert_eq!(s.report.outcome, Outcome::Converged, "{partitions:?}");
    }
}

#[test]
fn single_precision_does_not_certify_what_it_cannot_tell() {
    // A path whose ends are nearly free: the condition number is 4·n²·1e12, beyond what f32 can see.
    let n = 64;
    let d = |i: usize| if i == 0 || i + 1 == n { 1.0 + 1e-13 } else { 2.0 };
    let entries: Vec<_> = (0..n)
        .flat_map(|i: usize| [(i, i.wrapping_sub(1), -1.0), (i, i, d(i)), (i, i + 1, -1.0)])
        .filter(|entry| entry.1 < n)
        .collect();
    let a = csr(n, entries);
    let x = Mat::from_fn(n, 1, |i, _| if i % 2 == 0 { 1.0 } else { -1.0 });
    let mut b = Mat::<f64>::zeros(n, 1);
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    let working = solve(&a, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
    let single = in_single("auto");
    let s = solve(&a, b.as_ref(), &single, &mut ()).unwrap();
    let (found, right) = (s.rcond.unwrap(), working.rcond.unwrap());
    assert!(found < 1e-12 && found / right < 3.0 && right / found < 3.0, "{found:e} for {right:e}");
    let replaced = |note: &Note| {
        let doubled = matches!(note, Note::NearlySingular { factored_by: "dense-lu-doubled", .. });
        doubled || matches!(note, Note::SingleFailed { scalar: ScalarKind::F64, .. })
    };
    assert!(s.report.notes.iter().any(replaced), "{:?}", s.report.notes);
}

#[test]
fn a_border_with_zeros_on_its_diagonal_costs_what_was_planned() {
    // A path of 3000 and 20 rows of multipliers, each on 50 of its places.
    let (n, q) = (3000, 20);
    let mut entries = Vec::new();
    for i in 0..n {
        entries.push((i, i, 3.0));
        if i > 0 {
            entries.extend([(i, i - 1, -1.0), (i - 1, i, -1.0)]);
        }
    }
    for k in 0..q * 50 {
        let (row, place) = (n + k % q, (k * 7919) % n);
        let v = [1.0, 2.0, -1.0][k % 3];
        entries.extend([(row, place, v), (place, row, v)]);
    }
    let a = csr(n + q, entries);
    let x = Mat::from_fn(n + q, 1, |i, _| 1.0 + (i % 3) as f64);
    let mut b = Mat::<f64>::zeros(n + q, 1);
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    let s = Solver::new(&a, &SolveOptions::default(), &mut ()).unwrap().solve(b.as_ref()).unwrap();
    assert!(s.report.method.starts_with("sparse-"), "{}: {:?}", s.report.method, s.report.notes);
    assert_eq!(s.report.outcome, Outcome::Converged);
    // Twelve bytes a number of L, which by columns are few, and what stands beside it.
    assert!(s.report.bytes.factors > 0 && s.report.bytes.factors < 12 * 40 * (n + q), "{}", s.report.bytes.factors);
}

#[test]
fn a_triangle_is_not_scaled_out_of_its_shape() {
    // Triangular in some order, with numbers from 10⁻²⁰ to 10³⁰⁷: equilibration takes some of them to zero.
    let entries = [
        (0, 0, c64::new(0.0, -1e-09)),
        (0, 3, c64::new(-4.0, 0.0)),
        (1, 1, c64::new(1e-20, 1e-12)),
        (2, 2, c64::new(8.673617379884035e-19, -8.673617379884035e-19)),
        (2, 5, c64::new(0.0, -3.3706746278668423e+307)),
        (3, 0, c64::new(-9.0, -4.0)),
        (3, 3, c64::new(0.0, -7.0)),
        (3, 4, c64::new(-1.0, -3.0)),
        (3, 5, c64::new(-3.932453732511316e+307, 0.0)),
        (3, 6, c64::new(0.0, 1.0)),
        (4, 3, c64::new(-7.0, -2.0)),
        (4, 4, c64::new(0.0, -5.0)),
        (4, 5, c64::new(2.8088955232223686e+307, -2.8088955232223686e+307)),
        (4, 7, c64::new(-2.0, 0.0)),
        (5, 2, c64::new(0.0, -4.0)),
        (5, 3, c64::new(9.0, -9.0)),
        (5, 4, c64::new(8.0, 0.0)),
        (5, 5, c64::new(0.0, -4.49423283715579e+307)),
        (5, 8, c64::new(2.0, 5.0)),
        (6, 3, c64::new(-4.0, -1.0)),
        (7, 4, c64::new(5.0, 0.0)),
        (8, 5, c64::new(3.3706746278668423e+307, 0.0)),
    ];
    let b = [
        c64::new(1.25, 0.0),
        c64::new(6.25e-14, 0.0),
        c64::new(0.0, 0.0),
        c64::new(0.0, 0.0),
        c64::new(1.0533358212083882e+307, 0.0),
        c64::new(0.0, 0.0),
        c64::new(0.0, -0.75),
        c64::new(1.5625, 0.0),
        c64::new(0.0, 0.0),
    ];
    let s = by(&csr(9, entries), &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
}

#[test]
fn complex_chains_are_treated_alike() {
    let t = c64::new(0.0, 1e-20);
    let i = c64::new(0.0, 1.0);
    let r = |v: f64| c64::new(v, 0.0);
    let a = csr(3, [(0, 0, t), (0, 1, i), (1, 0, i), (1, 2, r(1.0)), (2, 1, r(1.0)), (2, 2, t)]);
    // det = −t·1 − i·i·t = 0 + …: the two tiny corners cancel unless they differ.
    let b = csr(3, [(0, 0, t), (0, 1, i), (1, 0, i), (1, 2, r(1.0)), (2, 1, r(1.0)), (2, 2, t * 2.0)]);
    assert!(matches!(by(&a, &[r(1.0); 3], "auto"), Err(Error::Singular(_))));
    assert!(by(&b, &[r(1.0); 3], "auto").is_ok());
}

/// A grid of three dimensions whose columns, and rows where `both`, are in units over 2^±`reach`: neighbours meet in every unit.
fn in_wide_units(side: usize, reach: i32, both: bool) -> (Csr<f64>, Vec<f64>, Vec<f64>) {
    let n = side.pow(3);
    let unit = |k: usize| 2f64.powi((k as i32 * 7919 + 31) % (2 * reach + 1) - reach);
    let row_unit = |i: usize| if both { unit(5 * i + 2) } else { 1.0 };
    let mut entries = Vec::new();
    for i in 0..n {
        entries.push((i, i, 6.0 * row_unit(i) * unit(i)));
        for stride in [1, side, side * side] {
            let at = i / stride % side;
            for j in [(at > 0).then(|| i - stride), (at + 1 < side).then(|| i + stride)].into_iter().flatten() {
                entries.push((i, j, -row_unit(i) * unit(j)));
            }
        }
    }
    let x: Vec<f64> = (0..n).map(|i| (1.0 + (i % 5) as f64) / unit(i)).collect();
    // Products of powers of two by small whole numbers: exact.
    let mut b = vec![0.0; n];
    for &(i, j, v) in &entries {
        b[i] += v * x[j];
    }
    (csr(n, entries), b, x)
}

#[test]
fn units_that_rows_first_and_columns_second_do_not_find_are_found() {
    // More rows than twice the precision is tried on.
    for (reach, both) in [(60, true), (166, false), (200, true), (400, false)] {
        let (a, b, x) = in_wide_units(9, reach, both);
        solved(&a, &b, &x);
        for method in ["sparse-lu", "block-lu-across", "spike"] {
            let s = by(&a, &b, method).unwrap_or_else(|e| panic!("2^±{reach}, {method}: {e}"));
            let error = s.x.col_as_slice(0).iter().zip(&x).fold(0.0f64, |m, (s, x)| m.max((s / x - 1.0).abs()));
            assert!(error < 1e-11, "2^±{reach}, {method}: {error:e}, {:?}", s.report);
        }
    }
}

#[test]
fn an_iteration_that_leaves_a_row_unsolved_says_so() {
    // The second unknown stands in units far below: its row counts nothing in the norm.
    let a = csr(3, [(0, 0, 2.0), (0, 2, 1.0), (1, 0, 1e-20), (1, 1, 1e-20), (2, 0, 1.0), (2, 2, 3.0)]);
    let s = by::<f64>(&a, &[3.0, 2e-20, 4.0], "gmres").unwrap();
    let wrong = (s.x[(1, 0)] - 1.0).abs() > 1e-3;
    assert_eq!(wrong, s.warnings.iter().any(|w| matches!(w, Note::RowNotSolved { .. })), "{:?}", s.report);
}

/// Units that bring the largest entry of each line to 1 leave a condition number of 3e6, those of the matching one of 44.
#[test]
fn the_best_units_decide_whether_a_matrix_is_singular_to_working_precision() {
    let a: Csr<f32> = csr(
        7,
        [
            (0, 0, 5.04871e-29),
            (0, 1, -7.0),
            (1, 0, -3.534_097e-28),
            (1, 1, 1.0),
            (1, 2, -9.0),
            (2, 1, 9.0),
            (2, 2, 1e-7),
            (2, 3, 2.0),
            (3, 2, -8.0),
            (3, 4, -3.0),
            (4, 3, -3.0),
            (4, 4, 1e-9),
            (4, 5, 6.0),
            (5, 4, 6.0),
            (5, 6, 9.0),
            (6, 5, -8.0),
            (6, 6, 1.0),
        ],
    );
    let b = Mat::from_fn(7, 1, |i, _| [7.0, 143.0, -9.000_002, 134.0, -18.0, -12.0, 24.0][i]);
    for method in ["exact-lu", "dense-lu"] {
        let options = SolveOptions { condition: Condition::Always, ..SolveOptions::by(named(method)) };
        let s = solve(&a, b.as_ref(), &options, &mut ()).unwrap();
        assert_eq!((s.report.outcome, &s.warnings[..]), (Outcome::Converged, &[][..]), "{method}");
        let felt = |note: &Note| matches!(note, Note::ConditionOfUnits { scaled_rcond, .. } if *scaled_rcond > 1e-3);
        assert!(s.report.notes.iter().any(felt), "{method}: {:?}", s.report.notes);
    }
}
