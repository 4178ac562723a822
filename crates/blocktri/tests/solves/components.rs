//! Matrices that fall into parts: each solved by what suits it, found by `auto` and asked for by name.

use blocktri::faer::Mat;
use blocktri::{
    CancelToken, Csr, Direct, Error, FactorError, Note, Op, Outcome, Scalar, Solution, SolveOptions, Solver, explain,
    solve,
};
use bt_formats::{LinearOperator, Matrix, Par, Permutation, RealScalar, one, zero};
use bt_testkit::contract::factorization_contract;
use bt_testkit::{chain, csr, stencil};

/// These on the diagonal, and their rows and columns strewn all over.
fn strewn<T: Scalar>(parts: &[Csr<T>]) -> (Csr<T>, Permutation) {
    let sizes: Vec<usize> = parts.iter().map(LinearOperator::nrows).collect();
    let n: usize = sizes.iter().sum();
    let (mut ptr, mut idx, mut values, mut start) = (vec![0], Vec::new(), Vec::new(), 0);
    for (a, size) in parts.iter().zip(sizes) {
        for i in 0..size {
            idx.extend(a.row(i).0.iter().map(|j| j + start));
            values.extend_from_slice(a.row(i).1);
            ptr.push(idx.len() as u32);
        }
        start += size as u32;
    }
    // 7919 is a prime that divides no n of these tests.
    let order = Permutation::from_order((0..n).map(|i| (7919 * i % n) as u32).collect()).unwrap();
    (Csr::new(n, n, ptr, idx, values).unwrap().permute(&order, &order), order)
}

/// All numbers, those of the diagonal largest.
fn full<T: Scalar>(n: usize) -> Csr<T> {
    csr(n, |i, j| T::rounded(if i == j { n as f64 } else { 1.0 / (1 + (3 * i + 5 * j) % 7) as f64 }, 0.0))
}

/// With imaginary parts where there are any, and no symmetry.
fn turned<T: Scalar>(mut a: Csr<T>) -> Csr<T> {
    let n = a.nrows();
    for i in 0..n {
        let (cols, values) = a.row_mut(i);
        cols.iter().zip(values).for_each(|(&j, v)| {
            let (up, turn) = (1.0 + f64::from(u8::from(j as usize > i)), T::rounded(0.0, 0.125));
            *v = *v * T::rounded(up, 0.0) + turn * *v;
        });
    }
    a
}

fn solved<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> (Solution<T>, f64) {
    let n = a.nrows();
    let x = Mat::from_fn(n, 2, |i, j| T::rounded(1.0 + ((i + j) % 7) as f64, (i % 3) as f64));
    let mut b = Mat::zeros(n, 2);
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    let s = solve(a, b.as_ref(), options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
    let error = (&s.x - &x).norm_max().to_f64();
    (s, error)
}

fn by_name() -> SolveOptions {
    SolveOptions::by(Direct::Components)
}

/// Components and parts, and what the parts were factored by.
fn told<T: Scalar>(s: &Solution<T>) -> (usize, usize, &str) {
    let found = s.report.notes.iter().find_map(|note| match note {
        Note::Components { components, parts, methods } => Some((*components, *parts, &**methods)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{:?}", s.report.notes))
}

#[test]
fn auto_finds_parts_of_very_different_kinds() {
    let lone = csr(1, |_, _| 3.0);
    let (a, _) = strewn(&[full(150), chain(6000, 3.0, -1.0), turned(stencil(12, 0.0)), lone.clone(), lone, full(4)]);
    let (s, error) = solved(&a, &SolveOptions::default());
    assert_eq!((s.report.method, s.report.outcome), ("components", Outcome::Converged), "{:#?}", s.candidates);
    assert!(error < 1e-11, "{error:e}");
    // 150, 6000, 144 rows, and the small ones together.
    let (components, parts, methods) = told(&s);
    assert_eq!((components, parts), (6, 4));
    assert!(methods.contains("dense-lu") && methods.contains("thomas"), "{methods}");
    let chosen = &s.candidates[0];
    assert!(chosen.structure.starts_with("6 components in 4 parts: "), "{chosen:?}");
    assert!(chosen.bytes > 8 * 150 * 150 && chosen.work.flops > 2.0 / 3.0 * 150f64.powi(3), "{chosen:?}");
    // What is counted is a function of the matrix.
    let again = explain(&a, &SolveOptions::default()).unwrap().candidates;
    assert_eq!((again[0].seconds, again[0].bytes), (chosen.seconds, chosen.bytes));
}

#[test]
fn one_component_has_no_parts() {
    let (grid, _) = strewn(&[turned(stencil::<f64>(20, 0.0))]);
    for candidates in [explain(&grid, &SolveOptions::default()), explain(&full::<f64>(60), &SolveOptions::default())] {
        assert!(candidates.unwrap().candidates.iter().all(|c| c.direct() != Some(Direct::Components)));
    }
    let (s, error) = solved(&grid, &by_name());
    assert_eq!((s.report.method, s.report.outcome), ("components", Outcome::Converged));
    assert!(matches!(told(&s), (1, 1, _)) && error < 1e-11, "{:?} {error:e}", told(&s));
}

#[test]
fn components_of_few_rows_are_one_part() {
    let (a, _) = strewn(&(0..300).map(|k| turned(full::<f64>(1 + k % 7))).collect::<Vec<_>>());
    let (s, error) = solved(&a, &by_name());
    assert!(matches!(told(&s), (300, 1, _)) && error < 1e-12, "{:?} {error:e}", told(&s));
}

#[test]
fn factors_keep_the_contract_in_every_scalar() {
    fn check<T: Scalar>() {
        let (a, _) =
            strewn(&[turned(full::<T>(40)), turned(chain(90, one::<T>(), T::rounded(-0.25, 0.0))), stencil(7, 0.0)]);
        let solver = Solver::new(&a, &by_name(), &mut ()).unwrap();
        assert_eq!(factorization_contract(solver.factors(), &a), Ok(()), "{}", T::KIND);
        let other = Solver::new(&a, &SolveOptions::by(Direct::SparseLu), &mut ()).unwrap();
        let tolerance = 1e3 * T::Real::EPSILON.to_f64();
        let (own, whole) = (solver.log_det(), other.log_det());
        assert!((own.log_abs / whole.log_abs - 1.0).abs() < tolerance, "{own:?} {whole:?}");
        assert!((own.sign - whole.sign).abs().to_f64() < tolerance, "{own:?} {whole:?}");
        let (own, whole) = (solver.rcond().unwrap(), other.rcond().unwrap());
        assert!((own / whole - 1.0).abs() < 0.5, "{own:e} {whole:e}");
        let b = Mat::from_fn(a.nrows(), 1, |i, _| T::rounded((i % 5) as f64 - 1.0, 1.0));
        let (x, y) = (solver.solve_transposed(b.as_ref()).unwrap(), other.solve_transposed(b.as_ref()).unwrap());
        assert_eq!(x.report.outcome, Outcome::Converged);
        assert!((x.x - y.x).norm_max().to_f64() < tolerance, "{}", T::KIND);
    }
    check::<f64>();
    check::<f32>();
    check::<blocktri::c64>();
    check::<blocktri::c32>();
}

#[test]
fn a_singular_part_is_named_in_the_matrix_given() {
    // The second part sums to zero by rows; its columns are known. Rows of different units: Cholesky's roots would round the last pivot.
    let singular = csr(40, |i, j| {
        let unit = (1 + i % 3) as f64;
        match i.abs_diff(j) {
            0 if i == 0 || i == 39 => unit,
            0 => 2.0 * unit,
            1 => -unit,
            _ => 0.0,
        }
    });
    let (a, order) = strewn(&[full(50), singular, chain(70, 3.0, -1.0)]);
    let of_second = |column: usize| (50..90).contains(&order.order()[column]);
    for options in [by_name(), SolveOptions::default()] {
        match Solver::new(&a, &options, &mut ()) {
            Err(Error::Singular(place)) => assert!(of_second(place.column), "{place}"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("factored"),
        }
    }
}

#[test]
fn a_singular_part_that_is_symmetric_is_not_solved_quietly() {
    let ends = |i: usize| if i == 0 || i == 39 { 1.0 } else { 2.0 };
    let singular = csr(40, |i, j| [ends(i), -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    let (a, _) = strewn(&[full(50), singular, chain(70, 3.0, -1.0)]);
    let b = Mat::from_fn(a.nrows(), 1, |i, _| (i % 5) as f64);
    for options in [by_name(), SolveOptions::default()] {
        match solve(&a, b.as_ref(), &options, &mut ()) {
            Err(Error::Singular(_)) => {}
            Err(other) => panic!("{other}"),
            Ok(s) => {
                let doubts = |note: &Note| {
                    matches!(
                        note,
                        Note::SingularToPrecision { .. } | Note::SingularButExact { .. } | Note::SumsToZero { .. }
                    )
                };
                let doubted = s.report.notes.iter().any(doubts);
                assert!(doubted || s.report.outcome != Outcome::Converged, "{:?}", s.report.notes);
            }
        }
    }
}

#[test]
fn every_part_has_units_of_its_own() {
    let (a, order) = strewn(&[turned(full::<f64>(40)), chain(90, 3.0, -1.0), turned(chain(50, 3.0, -1.0))]);
    let unit = |i: usize| match order.order()[i] {
        k if k < 40 => [1e150, 1e-10][k as usize % 2],
        k if k < 130 => 1e-200,
        _ => 1.0,
    };
    let (mut b, n) = (Mat::zeros(180, 1), 180);
    let x = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64);
    a.apply_many(Op::Identity, 1.0, x.as_ref(), 0.0, b.as_mut(), Par::Seq);
    let units: Vec<f64> = (0..n).map(unit).collect();
    let b = Mat::from_fn(n, 1, |i, _| units[i] * b[(i, 0)]);
    let s = solve(&a.scale(&units, &vec![1.0; n]), b.as_ref(), &by_name(), &mut ()).unwrap();
    assert_eq!((s.report.method, s.report.outcome), ("components", Outcome::Converged), "{:?}", s.report.notes);
    let error = (&s.x - &x).norm_max();
    assert!(error < 1e-11, "{error:e} {:?} {:?}", s.rcond, s.report.certificate);
}

#[test]
fn new_values_may_ask_for_other_methods() {
    let (first, _) = strewn(&[full(40), chain(900, 3.0, -1.0)]);
    let (second, _) = strewn(&[full(40), chain(900, 1.0, -3.0)]);
    let mut solver = Solver::new(&first, &by_name(), &mut ()).unwrap();
    let b = Mat::from_fn(940, 1, |i, _| 1.0 + (i % 5) as f64);
    let s = solver.solve(b.as_ref()).unwrap();
    assert!(told(&s).2.contains("thomas"), "{:?}", told(&s));
    solver.refactor(&second, &mut ()).unwrap();
    let (s, fresh) = (solver.solve(b.as_ref()).unwrap(), solve(&second, b.as_ref(), &by_name(), &mut ()).unwrap());
    assert!(told(&s).2.contains("tridiagonal-lu"), "{:?}", told(&s));
    assert_eq!(s.x, fresh.x, "the bits of a new solver");
}

#[test]
fn what_is_stopped_is_told() {
    let (a, _) = strewn(&[full(40), chain(90, 3.0, -1.0)]);
    let mut cancelled = CancelToken::new();
    cancelled.cancel();
    let stopped = Solver::new(&a, &by_name(), &mut cancelled).err();
    assert!(matches!(stopped, Some(Error::Factor(FactorError::Stopped))), "{stopped:?}");
}
