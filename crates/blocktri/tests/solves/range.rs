//! Numbers at the ends of the range, and those that rounding alone takes beyond it.

use crate::common::{by, csr, entries_of, named, solved};
use blocktri::faer::Mat;
use blocktri::{Condition, Note, Outcome, SolveOptions, c64, solve};

#[test]
fn numbers_at_the_ends_of_the_range_are_solved_and_certified() {
    let one_by_one = csr(1, [(0, 0, f64::MAX)]);
    assert_eq!(solved(&one_by_one, &[f64::MAX], &[1.0]).report.certificate.backward_error, 0.0);
    // ‖b‖₂ overflows.
    let two = csr(2, [(0, 0, 2.0), (0, 1, 1.0), (1, 1, 2.0)]);
    solved(&two, &[1.7e308, 1.7e308], &[4.25e307, 8.5e307]);
    // Row sums overflow.
    let n = 10;
    let mut entries: Vec<_> = (0..n).map(|j| (0, j, 1e308)).collect();
    entries.extend((1..n).map(|i| (i, i, 1.0)));
    let mut b = [0.0; 10];
    b[0] = 1e308;
    let s = solved(&csr(n, entries), &b, &[1.0]);
    assert!(s.warnings.is_empty(), "{:?}", s.warnings);
    // Below the normal numbers, A and b alike: the answer is exact, and the error is that of x.
    let t = 2f64.powi(-1000) * 2f64.powi(-50);
    let small = csr(2, [(0, 0, 2.0 * t), (0, 1, t), (1, 0, t), (1, 1, 3.0 * t)]);
    solved(&small, &[4.0 * t, 7.0 * t], &[1.0, 2.0]);
    // x itself is too large: no answer, and no backward error.
    let tiny = csr(1, [(0, 0, 1e-310)]);
    let s = by(&tiny, &[1.0], "auto").unwrap();
    assert_eq!((s.report.outcome, s.report.certificate.backward_error), (Outcome::Inaccurate, f64::INFINITY));
    assert!(s.report.notes.contains(&Note::Overflow), "{:?}", s.report.notes);
    assert!(!s.warnings.iter().any(|w| matches!(w, Note::SingularToPrecision { .. })), "{:?}", s.warnings);
}

#[test]
fn numbers_whose_parts_add_up_beyond_the_range_are_scaled() {
    // |re| + |im| overflows, and so do the sums of elimination: a power of two in front changes nothing else.
    let h = f64::MAX / 2.0 + f64::MAX / 2.0 * f64::EPSILON / 2.0;
    let a = csr(2, [(0, 0, c64::new(-h, h)), (0, 1, c64::new(h, h)), (1, 0, c64::new(h, h)), (1, 1, c64::new(h, h))]);
    for method in ["auto", "band-lu", "block-lu"] {
        let s = by(&a, &[c64::new(0.0, 1e300), c64::new(2e300, 0.0)], method).unwrap();
        assert_eq!(s.report.outcome, Outcome::Converged, "{method}: {:?}", s.report);
    }
}

/// The column of an unknown that is zero is in units in which rounding errors of the right-hand side overflow.
#[test]
fn an_unknown_that_overflows_by_rounding_does_not_spoil_the_others() {
    let column = 2f64.powi(-1016);
    let entries = [
        (0, 0, 3.0),
        (0, 1, -1.0),
        (0, 2, column),
        (1, 0, -1.0),
        (1, 1, 7.0),
        (1, 2, -3.0 * column),
        (2, 0, 1.0),
        (2, 1, 3.0),
        (2, 2, 2.0 * column),
    ];
    // x = (1, 3, 0)·2¹⁰¹⁵/3, and what rounding makes of b.
    let x = 2f64.powi(1015) / 3.0;
    let b = [0.0, 20.0 * x, 10.0 * x];
    let s = by(&csr(3, entries), &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report.notes);
    assert!((s.x[(0, 0)] / x - 1.0).abs() < 1e-15 && (s.x[(1, 0)] / (3.0 * x) - 1.0).abs() < 1e-15);
}

/// x₂ = 0: the rounding of the others, divided by the pivot 1.8e-316, overflows, and unknowns that depend on it with it.
#[test]
fn what_overflows_by_rounding_alone_is_solved_exactly() {
    let text = "1 2 128|2 1 128|2 3 -2.781342323134e-309|3 2 32|3 3 1.7800591e-316|3 4 0.015625|4 3 2.848094538889218e-306|\
                4 4 -1e-12|4 5 16|5 4 -128";
    let b = [
        -7.864907465022632e+307,
        -3.511119404027961e+305,
        -1.966295442806518e+307,
        4.388899255034951e+292,
        5.617791046444737e+306,
    ];
    let s = by(&csr(5, entries_of(text)), &b, "auto").unwrap();
    assert_eq!((s.report.outcome, s.x[(2, 0)]), (Outcome::Converged, 0.0), "{:?}", s.report);
    let text = "1 1 4|1 2 -1|1 5 -1|2 1 -1|2 2 4|2 3 -1|2 6 -1|3 2 -1|3 3 4|3 4 -1|3 7 -1|4 3 -1|4 4 4|4 8 -1|5 1 -1|5 5 4|\
                5 6 -1|5 9 -1|6 2 -1|6 5 -1|6 6 4|6 7 -1|6 10 -1|7 3 -1|7 6 -1|7 7 4|7 8 -1|7 11 -1|8 4 -1|8 7 -1|8 8 4|\
                8 12 -1|9 5 -1|9 9 4|9 10 -1|9 13 -1|10 6 -1|10 9 -1|10 10 4|10 11 -1|10 14 -1|11 7 -1|11 10 -1|11 11 4|\
                11 12 -1|11 15 -1|12 8 -1|12 11 -1|12 12 4|12 16 -1.7800590868057611e-307|13 9 -1|13 13 4|13 14 -1|13 17 -1|\
                14 10 -1|14 13 -1|14 14 4|14 15 -1|14 18 -1|15 11 -1|15 14 -1|15 15 4|15 16 -1.7800590868057611e-307|15 19 -1|\
                16 12 -1|16 15 -1|16 16 7.120236347223045e-307|16 20 -1|17 13 -1|17 17 4|17 18 -1|18 14 -1|18 17 -1|18 18 4|\
                18 19 -1|19 15 -1|19 18 -1|19 19 4|19 20 -1|20 16 -1.7800590868057611e-307|20 19 -1|20 20 4";
    let b = [
        1.5800037318125823e+306,
        -1.0796692167385979e+307,
        1.8433376871146794e+306,
        -5.705569031545436e+305,
        1.5361147392622328e+306,
        2.8088955232223686e+306,
        1.3166697765104853e+305,
        -4.388899255034951e+305,
        -4.388899255034951e+304,
        -3.511119404027961e+305,
        1.0533358212083882e+306,
        -8.777798510069902e+304,
        -1.246447388429926e+307,
        1.3166697765104853e+305,
        -4.388899255034951e+304,
        0.25,
        4.507399534920895e+307,
        -1.0313913249332135e+307,
        -1.0533358212083882e+306,
        2.1944496275174755e+305,
    ];
    let s = by(&csr(20, entries_of(text)), &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
}

#[test]
fn a_row_of_subnormal_numbers_is_solved() {
    // The first row says x₆ = x₀·4e−323/v, and x₀ is small beside what it is the difference of.
    let (t, v) = (1e-20, -1.7800590868057611e-307);
    let rows: [&[(usize, f64)]; 8] = [
        &[(0, -4e-323), (6, v)],
        &[(1, -t), (4, 1.0), (5, -1.0), (6, -1.0), (7, -1.0)],
        &[(2, 1e-17), (4, 1.0), (7, 1.0)],
        &[(3, 1e-16)],
        &[(1, -1.0), (2, 1.0), (4, 1.0), (5, 1.0), (6, 1.0), (7, -1.0)],
        &[(1, 1.0), (4, 1.0), (5, -1.0), (6, -1.0), (7, 1.0)],
        &[(0, 1.0), (1, 1.0), (4, -t), (5, 1.0), (6, 1e-17), (7, -1e-9)],
        &[(1, 1.0), (2, 1.0), (4, 1e-12), (5, 1.0), (6, -1.0), (7, 1.0)],
    ];
    let entries: Vec<_> =
        rows.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |&(j, v)| (i, j, v))).collect();
    let a = csr(8, entries);
    let b = [0.0, 0.0, 0.0, -4.3749999999999996e-17, 0.0, 0.375, -0.375, 0.5625];
    let s = by(&a, &b, "auto").unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    // 4e−323 is 8·2⁻¹⁰⁷⁴.
    let x6 = s.x[(0, 0)] * (8.0 * 5e-324 * 2f64.powi(500)) / (v * 2f64.powi(500));
    assert!((s.x[(6, 0)] / x6 - 1.0).abs() < 1e-13, "{:e} {x6:e}", s.x[(6, 0)]);
}

/// |re| + |im| of each entry overflows, their moduli do not.
#[test]
fn diagonals_and_triangles_at_the_end_of_the_range() {
    let h = f64::MAX / 2.0 + f64::MAX / 2.0 * f64::EPSILON / 2.0;
    let diagonal = csr(2, [(0, 0, c64::new(h, h)), (1, 1, c64::new(0.0, -h))]);
    let triangle = csr(2, [(0, 1, c64::new(-h, h)), (1, 0, c64::new(h, h)), (1, 1, c64::new(0.0, -h))]);
    for (a, method) in [(&diagonal, "diagonal"), (&triangle, "triangular"), (&diagonal, "auto"), (&triangle, "auto")] {
        let b = Mat::from_fn(2, 1, |_, _| c64::new(h, h));
        let options = SolveOptions { condition: Condition::Always, ..SolveOptions::by(named(method)) };
        let s = solve(a, b.as_ref(), &options, &mut ()).unwrap();
        assert_eq!((s.report.outcome, &s.warnings[..]), (Outcome::Converged, &[][..]), "{method}: {:?}", s.report);
    }
}
