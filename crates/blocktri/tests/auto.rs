//! The automatic choice: which method it takes, when it hands over, how it ends on singular and hopeless systems.

use blocktri::faer::{Mat, MatRef};
use blocktri::formats::{Csr, Matrix, one, zero};
use blocktri::{
    Blocks, Coo, Error, Method, Outcome, Refinement, Reorder, Scalar, SingularKind, Solution, SolveOptions,
    StopCriterion, c32, c64, solve,
};

fn csr(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr<f64> {
    let mut coo = Coo::new(n, n).unwrap();
    for (i, j, v) in entries {
        coo.push(i, j, v).unwrap();
    }
    coo.to_csr().unwrap()
}

fn tridiagonal(n: usize, l: f64, d: f64, u: f64) -> Csr<f64> {
    csr(
        n,
        (0..n).flat_map(|i| [(i, i.wrapping_sub(1), l), (i, i, d), (i, i + 1, u)].into_iter().filter(move |e| e.1 < n)),
    )
}

/// 5-point Laplacian on a k × k grid.
fn poisson(k: usize) -> Csr<f64> {
    csr(
        k * k,
        (0..k * k).flat_map(|p| {
            let (i, j) = (p / k, p % k);
            let mut row = vec![(p, p, 4.0)];
            row.extend((i > 0).then(|| (p, p - k, -1.0)));
            row.extend((j > 0).then(|| (p, p - 1, -1.0)));
            row.extend((j + 1 < k).then_some((p, p + 1, -1.0)));
            row.extend((i + 1 < k).then_some((p, p + k, -1.0)));
            row
        }),
    )
}

fn answer<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> (Mat<T>, Result<Solution<T>, Error>) {
    let n = a.row_ptr().len() - 1;
    let x = Mat::from_fn(n, 2, |i, j| T::from_parts(1.0 + ((7 * i + j) % 11) as f64 / 11.0, 0.0));
    let mut b = Mat::zeros(n, 2);
    a.apply_many(blocktri::formats::Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), blocktri::formats::Par::Seq);
    let solution = solve(a, b.as_ref(), options, &mut ());
    (x, solution)
}

fn method_of(a: &Csr<f64>) -> &'static str {
    let (_, solution) = answer(a, &SolveOptions::default());
    let solution = solution.unwrap();
    assert_eq!(solution.report.outcome, Outcome::Converged, "{:?}", solution.report);
    assert!(solution.report.certificate.backward_error < 1e-15);
    solution.report.method
}

#[test]
fn structure_decides_the_method() {
    assert_eq!(method_of(&tridiagonal(200, -1.0, 2.5, -1.0)), "thomas");
    assert_eq!(method_of(&tridiagonal(200, -1.0, 0.1, 1.0)), "tridiagonal-lu");
    assert_eq!(method_of(&csr(1, [(0, 0, 3.0)])), "thomas");
    // narrow band hidden by a permutation: i → 37·i mod 101
    let hidden = csr(101, {
        let p = |i: usize| 37 * i % 101;
        (0..101usize)
            .flat_map(move |i| [(p(i), p(i), 5.0), (p(i), p((i + 100) % 101), -1.0), (p(i), p((i + 2) % 101), 2.0)])
    });
    let (_, solution) = answer(&hidden, &SolveOptions::default());
    let solution = solution.unwrap();
    assert!(solution.report.certificate.backward_error < 1e-15);
    assert!(solution.report.notes[0].contains("auto chose"), "{:?}", solution.report.notes);
    assert_eq!(method_of(&poisson(60)), "sparse-lu");
}

#[test]
fn every_direct_method_gives_the_same_answer() {
    let a = tridiagonal(50, 1.0, 4.0, -2.0);
    for method in [Method::Thomas, Method::TridiagonalLu, Method::BlockLu, Method::BandLu, Method::SparseLu] {
        for reorder in Reorder::ALL {
            let options = SolveOptions { method, reorder, ..SolveOptions::default() };
            let (x, solution) = answer(&a, &options);
            match solution {
                Ok(s) => {
                    assert_eq!(s.report.method, method.name());
                    assert!(s.report.certificate.backward_error < 1e-15, "{method} {reorder}");
                    assert!((s.x - x).norm_max() < 1e-13, "{method} {reorder}");
                }
                // A reordering may leave the three diagonals; the refusal must say so.
                Err(Error::Usage { message }) => assert!(message.contains("tridiagonal"), "{message}"),
                Err(e) => panic!("{method} {reorder}: {e}"),
            }
        }
    }
}

#[test]
fn auto_works_in_every_order_and_with_given_blocks() {
    for a in [tridiagonal(50, 1.0, 4.0, -2.0), poisson(9)] {
        for reorder in Reorder::ALL {
            let (x, solution) = answer(&a, &SolveOptions { reorder, ..SolveOptions::default() });
            let s = solution.unwrap();
            assert!(s.report.certificate.backward_error < 1e-15, "{reorder}");
            assert!((s.x - x).norm_max() < 1e-13, "{reorder}");
            assert!(reorder == Reorder::Auto || s.reorder == reorder, "{reorder}");
        }
    }
    let blocks = Blocks::Uniform(10);
    let (_, s) = answer(&poisson(10), &SolveOptions { method: Method::BlockLu, blocks, ..SolveOptions::default() });
    assert_eq!(s.unwrap().blocks.unwrap().count, 10);
}

#[test]
fn a_broken_down_method_hands_over_and_says_so() {
    // Every diagonal block is singular, A is not.
    let n = 12;
    let a = csr(
        n,
        (0..n).flat_map(|i| {
            let mut row = vec![(i, (i / 2) * 2, 1.0), (i, (i / 2) * 2 + 1, 1.0)];
            row.extend((i >= 2).then(|| (i, i - 2, 1.0 + i as f64)));
            row.extend((i + 2 < n).then(|| (i, i + 2, 3.0 - i as f64)));
            row
        }),
    );
    let forced = SolveOptions {
        method: Method::BlockLu,
        blocks: Blocks::Uniform(2),
        reorder: Reorder::None,
        ..SolveOptions::default()
    };
    let error = answer(&a, &forced).1.unwrap_err();
    assert!(matches!(error, Error::Factor(_)), "{error}");
    assert!(error.help().unwrap().contains("band-lu"));
    let (x, solution) = answer(&a, &SolveOptions::default());
    let solution = solution.unwrap();
    assert!(solution.report.certificate.backward_error < 1e-15);
    assert!((solution.x - x).norm_max() < 1e-10);
}

#[test]
fn singular_systems_name_the_place() {
    let place = |a: &Csr<f64>, options: &SolveOptions| match answer(a, options).1 {
        Err(Error::Singular(place)) => place,
        other => panic!("{other:?}"),
    };
    // an empty column
    let structural = csr(3, [(0, 0, 1.0), (1, 0, 2.0), (2, 2, 1.0), (1, 2, 1.0)]);
    let p = place(&structural, &SolveOptions::default());
    assert_eq!((p.kind, p.column), (SingularKind::Structural, 1));
    // two rows that say the same
    let numerical = csr(2, [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)]);
    for method in [Method::Auto, Method::TridiagonalLu, Method::BandLu, Method::SparseLu] {
        let p = place(&numerical, &SolveOptions { method, ..SolveOptions::default() });
        assert_eq!((p.kind, p.column), (SingularKind::Numerical, 1), "{method}");
    }
    // the zero matrix
    let p = place(&csr(3, []), &SolveOptions::default());
    assert_eq!(p.kind, SingularKind::Structural);
    // a column behind a permutation is told in the given numbering
    let hidden = csr(4, [(0, 3, 1.0), (3, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 1.0)]);
    let p = place(&hidden, &SolveOptions { method: Method::BandLu, reorder: Reorder::Rcm, ..SolveOptions::default() });
    assert!(p.column == 1 || p.column == 2, "{p:?}");
}

#[test]
fn ill_conditioned_is_a_warning_and_no_error() {
    let a = csr(2, [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0 + f64::EPSILON)]);
    let s = answer(&a, &SolveOptions::default()).1.unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged);
    assert!(s.rcond.unwrap() < 1e-15);
    assert!(s.warnings[0].contains("singular to working precision"));
    assert!(s.report.notes.contains(&s.warnings[0]));
}

#[test]
fn unusable_input_is_refused_by_name() {
    let options = SolveOptions::default();
    let refuse = |a: &Csr<f64>, b: MatRef<'_, f64>| solve(a, b, &options, &mut ()).unwrap_err().to_string();
    let two = tridiagonal(2, 1.0, 3.0, 1.0);
    assert!(refuse(&two, Mat::zeros(3, 1).as_ref()).contains("expected 2, found 3"));
    assert!(refuse(&two, Mat::from_fn(2, 1, |_, _| f64::NAN).as_ref()).contains("row 0, column 0"));
    assert!(refuse(&two, Mat::zeros(2, 0).as_ref()).contains("no right-hand side"));
    assert!(refuse(&csr(2, [(0, 0, 1.0), (1, 0, f64::INFINITY)]), Mat::zeros(2, 1).as_ref()).contains("row 1"));
    let wide = Coo::<f64>::new(2, 3).unwrap().to_csr().unwrap();
    assert!(refuse(&wide, Mat::zeros(2, 1).as_ref()).contains("2 × 3"));
    assert!(refuse(&csr(0, []), Mat::zeros(0, 1).as_ref()).contains("0 × 0"));
    let sizes = SolveOptions {
        method: Method::BlockLu,
        reorder: Reorder::None,
        blocks: Blocks::Sizes(vec![1, 2]),
        ..options.clone()
    };
    let message = solve(&two, Mat::zeros(2, 1).as_ref(), &sizes, &mut ()).unwrap_err().to_string();
    assert!(message.contains("sum of the block sizes"), "{message}");
    let outside =
        SolveOptions { method: Method::Hbisa, reorder: Reorder::None, blocks: Blocks::Uniform(1), ..options.clone() };
    let corner = csr(3, [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (0, 2, 1.0)]);
    let message = solve(&corner, Mat::zeros(3, 1).as_ref(), &outside, &mut ()).unwrap_err().to_string();
    assert!(message.contains("row 0, column 2"), "{message}");
    assert!("bicgstab".parse::<Method>().unwrap_err().help().unwrap().contains("band-lu"));
}

#[test]
fn a_zero_right_hand_side_has_the_zero_solution() {
    for method in Method::ALL {
        let options = SolveOptions { method, ..SolveOptions::default() };
        let s = solve(&tridiagonal(9, 1.0, 4.0, 1.0), Mat::zeros(9, 1).as_ref(), &options, &mut ()).unwrap();
        assert_eq!(s.report.outcome, Outcome::Converged, "{method}");
        assert_eq!(s.x.norm_max(), 0.0);
        assert_eq!(s.report.certificate.backward_error, 0.0);
    }
}

#[test]
fn every_scalar_reaches_its_rounding_level() {
    fn check<T: Scalar>(level: f64) {
        for a in [poisson(12), tridiagonal(40, 1.0, 0.3, -2.0)] {
            let a: Csr<T> = a.cast();
            for method in [Method::Auto, Method::BandLu, Method::SparseLu, Method::BlockLu] {
                let (_, s) = answer(&a, &SolveOptions { method, ..SolveOptions::default() });
                let s = s.unwrap();
                assert_eq!(s.report.outcome, Outcome::Converged, "{method} {}", T::KIND);
                assert!(s.report.certificate.backward_error < level, "{method} {}", T::KIND);
            }
        }
    }
    check::<f64>(1e-15);
    check::<c64>(1e-15);
    check::<f32>(1e-6);
    check::<c32>(1e-6);
}

#[test]
fn extreme_scales_solve_without_overflow() {
    for scale in [1e300, 1e-300] {
        let mut a = tridiagonal(30, 1.0, 2.5, -1.0);
        a.values_mut().iter_mut().for_each(|v| *v *= scale);
        for method in [Method::Auto, Method::TridiagonalLu, Method::BandLu, Method::BlockLu, Method::SparseLu] {
            let (x, s) = answer(&a, &SolveOptions { method, ..SolveOptions::default() });
            let s = s.unwrap();
            assert_eq!(s.report.outcome, Outcome::Converged, "{method} {scale:e} {:?}", s.report);
            assert!((s.x - x).norm_max() < 1e-12, "{method} {scale:e}");
        }
    }
}

#[test]
fn refinement_steps_are_counted_and_iterations_report() {
    let a = tridiagonal(30, 1.0, 4.0, 1.0);
    let none = SolveOptions { refinement: Refinement::Steps(0), ..SolveOptions::default() };
    assert_eq!(answer(&a, &none).1.unwrap().report.iterations, 0);
    let loose = SolveOptions {
        method: Method::HbisaGs,
        blocks: Blocks::Uniform(5),
        stop: StopCriterion { rtol: 1e-3, ..StopCriterion::default() },
        ..SolveOptions::default()
    };
    let s = answer(&a, &loose).1.unwrap();
    assert_eq!((s.report.outcome, s.blocks.unwrap().count), (Outcome::Converged, 6));
    assert!(s.report.certificate.relative_residual <= 1e-3 && s.report.iterations > 0);
}
