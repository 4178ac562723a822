//! Every method and every preconditioner of the facade on the same system in other units, on its twins, and at the ends of the range.

use crate::common::krylov;
use blocktri::faer::{Mat, MatRef};
use blocktri::{
    Krylov, KrylovMethod, Method, Note, Outcome, Precond, Solution, SolveOptions, StopCriterion, StopRule, solve,
};
use bt_formats::{Csr, Scalar};
use bt_testkit::contract::{Answer, method_twins_contract, method_units_contract};
use bt_testkit::{chain, csr, stencil};

fn column<T: Scalar>(b: &[T]) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(b, b.len(), 1)
}

fn run<T: Scalar>(a: &Csr<T>, b: &[T], options: &SolveOptions) -> Result<Solution<T>, String> {
    solve(a, column(b), options, &mut ()).map_err(|e| e.to_string())
}

fn answer<T: Scalar>(a: &Csr<T>, b: &[T], options: &SolveOptions) -> Result<Answer<T>, String> {
    let Solution { x, report, .. } = run(a, b, options)?;
    Ok(Answer { x: x.col_as_slice(0).to_vec(), iterations: report.iterations, outcome: report.outcome })
}

/// Definite, of 49 unknowns in 7 lines, its diagonal raised unevenly.
fn sample() -> (Csr<f64>, Vec<f64>) {
    let grid = stencil::<f64>(7, 0.0);
    let a = csr(49, |i, j| grid.get(i, j) + if i == j { 0.25 + (i % 5) as f64 } else { 0.0 });
    (a, (0..49).map(|i| 1.0 + ((7 * i) % 11) as f64).collect())
}

fn options(method: &Method) -> SolveOptions {
    to(method, StopCriterion { rtol: 1e-9, ..StopCriterion::default() })
}

/// By the method, to this criterion where it iterates.
fn to(method: &Method, stop: StopCriterion) -> SolveOptions {
    let mut method = method.clone();
    if let Some(criterion) = method.stop_mut() {
        *criterion = stop;
    }
    SolveOptions::by(method)
}

/// Method and preconditioner.
fn name_of(method: &Method) -> String {
    match method {
        Method::Krylov(krylov) => format!("{method} {}", krylov.precond),
        other => other.to_string(),
    }
}

/// The preconditioner's name, "none" where there is none.
fn precond_of(method: &Method) -> &'static str {
    if let Method::Krylov(krylov) = method { krylov.precond.name() } else { "none" }
}

/// The iterative methods with every preconditioner that they take.
fn iterations() -> impl Iterator<Item = Method> {
    let methods = Method::all().into_iter().filter(Method::is_iterative);
    methods.flat_map(|method| {
        let unsymmetric = |p: &Precond| {
            ["block-gs", "block-reduced", "ras", "spike", "spike-truncated", "arms", "arms-rbt", "ilut", "milu0"]
                .contains(&p.name())
        };
        let Method::Krylov(krylov) = method else { return vec![method] };
        let taken = Precond::all().into_iter().filter(|p| !(krylov.method.is_symmetric() && unsymmetric(p)));
        taken.map(|precond| Krylov { precond, ..krylov.clone() }.into()).collect()
    })
}

#[test]
fn iterations_follow_the_units_of_the_system_and_solve_its_twins() {
    let (a, b) = sample();
    for method in iterations() {
        let options = options(&method);
        let what = name_of(&method);
        let mut solve = |a: &Csr<f64>, b: &[f64]| answer(a, b, &options);
        assert_eq!(method_units_contract(&a, &b, &mut solve), Ok(()), "{what}");
        // A random order has no blocks that matter.
        if !method.name().starts_with("hbisa") && precond_of(&method) != "block-reduced" {
            assert_eq!(method_twins_contract(&a, &b, 1e-9, 1e-8, &mut solve), Ok(()), "{what}");
        }
    }
}

#[test]
fn direct_methods_follow_the_units_of_the_system_and_solve_its_twins() {
    let (a, b) = sample();
    let chain = csr(24, |i, j| {
        if i == j {
            4.0 + (i % 3) as f64
        } else if i.abs_diff(j) == 1 {
            -1.0
        } else {
            0.0
        }
    });
    let alone = csr(24, |i, j| if i == j { 4.0 + (i % 3) as f64 } else { 0.0 });
    let mut tried = Vec::new();
    for method in Method::all().into_iter().filter(|method| !method.is_iterative()) {
        for (a, b) in [(&a, &b[..]), (&chain, &b[..24]), (&alone, &b[..24])] {
            let options = options(&method);
            let mut solve = |a: &Csr<f64>, b: &[f64]| answer(a, b, &options);
            // Not every method is for a grid.
            if solve(a, b).is_err() {
                continue;
            }
            tried.push(method.clone());
            assert_eq!(method_units_contract(a, b, &mut solve), Ok(()), "{method}");
            if ["auto", "sparse-lu", "dense-lu", "band-lu", "block-lu"].contains(&method.name()) {
                assert_eq!(method_twins_contract(a, b, 1e-13, 1e-12, &mut solve), Ok(()), "{method}");
            }
        }
    }
    tried.dedup();
    let direct = Method::all().into_iter().filter(|method| !method.is_iterative()).count();
    assert_eq!(tried.len(), direct, "{tried:?}");
}

#[test]
fn norms_that_overflow_are_no_success_and_no_failure() {
    // ‖b‖₂ exceeds the largest number, and so do the row sums of A; x is (1, …).
    let huge = chain(10, 8e307, 2e307);
    let b: Vec<f64> = (0..10).map(|i| if i == 0 || i == 9 { 1e308 } else { 1.2e308 }).collect();
    // The entries of A are ordinary, those of b and x at the end.
    let plain = csr(2, |i, j| [[2.0, 1.0], [1.0, 3.0]][i][j]);
    let b_plain = [1.7e308, 1.7e308];
    for method in iterations().filter(|m| ["auto", "none", "ilu0", "block-reduced"].contains(&precond_of(m))) {
        let what = name_of(&method);
        let found = run(&huge, &b, &options(&method)).unwrap();
        assert_eq!(found.report.outcome, Outcome::Converged, "{what}");
        assert!((0..10).all(|i| (found.x[(i, 0)] - 1.0).abs() < 1e-7), "{what}: {:?}", found.x);
        let found = run(&plain, &b_plain, &options(&method)).unwrap();
        assert_eq!(found.report.outcome, Outcome::Converged, "{what}");
        let off = |i: usize, x: f64| (found.x[(i, 0)] / x - 1.0).abs();
        assert!(off(0, 0.4 * 1.7e308) < 1e-7 && off(1, 0.2 * 1.7e308) < 1e-7, "{what}: {:?}", found.x);
    }
}

#[test]
fn matrices_at_the_small_end_are_solved() {
    // Below the normal numbers: no entry has a finite reciprocal, and all are multiples of the smallest number there is.
    let tiny = chain(6, 4e-310, -1e-310);
    let b: Vec<f64> = (0..6).map(|i| (0..6).map(|j| tiny.get(i, j)).sum()).collect();
    for method in iterations() {
        let what = name_of(&method);
        let found = run(&tiny, &b, &options(&method)).unwrap();
        assert_eq!(found.report.outcome, Outcome::Converged, "{what}: {:?}", found.report);
        assert!((0..6).all(|i| (found.x[(i, 0)] - 1.0).abs() < 1e-6), "{what}: {:?}", found.x);
    }
    let one = csr(1, |_, _| 5e-324);
    let masked = options(&krylov("cg", "ssor-ai-masked").into());
    let found = run(&one, &[5e-324], &masked).unwrap();
    assert_eq!((found.report.outcome, found.x[(0, 0)]), (Outcome::Converged, 1.0));
    // An answer beyond the range is none.
    let found = run(&one, &[1.0], &masked).unwrap();
    assert_ne!(found.report.outcome, Outcome::Converged);
    assert_eq!(found.x[(0, 0)], 0.0);
}

#[test]
fn a_run_that_fails_returns_nothing_worse_than_zero() {
    // A hyperbolic chain: spectral radius 3 of every splitting, indefinite; and a matrix that no M is good for.
    let hyperbolic = chain(30, 1.0, 3.0);
    let b: Vec<f64> = (0..30).map(|i| 1.0 + (i % 3) as f64).collect();
    for method in iterations() {
        for stop_rule in [StopRule::Residual, StopRule::Update] {
            let stop = StopCriterion { rtol: 1e-9, max_iters: 25, ..StopCriterion::default() };
            let mut options = SolveOptions { blocks: blocktri::Blocks::Uniform(1), ..to(&method, stop) };
            match &mut options.method {
                Method::Blocks(blocks) => blocks.rule = stop_rule,
                Method::Krylov(krylov) => {
                    if let KrylovMethod::Gmres { restart, .. } | KrylovMethod::Fgmres { restart, .. } =
                        &mut krylov.method
                    {
                        *restart = 5;
                    }
                }
                _ => {}
            }
            let Ok(found) = run(&hyperbolic, &b, &options) else { continue };
            let (what, report) = (format!("{} {stop_rule:?}", name_of(&method)), &found.report);
            let residual = report.certificate.relative_residual;
            assert!(
                residual <= 1.0
                    && found.x.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>()).all(f64::is_finite),
                "{what}: {residual:e}"
            );
            assert!(
                report.outcome != Outcome::Converged || residual <= 1e-9,
                "{what}: {:?} {residual:e}",
                report.outcome
            );
        }
    }
}

#[test]
fn an_outcome_is_what_the_residual_says() {
    // Hilbert's matrix: the attainable accuracy is far from every tolerance below.
    let hilbert = csr(12, |i, j| 1.0 / (i + j + 1) as f64);
    let b = vec![1.0; 12];
    for method in iterations() {
        for rtol in [0.0, 1e-15, 1e-12, 1e-8, 1e-4] {
            let options = to(&method, StopCriterion { rtol, max_iters: 300, ..StopCriterion::default() });
            let Ok(found) = run(&hilbert, &b, &options) else { continue };
            let residual = found.report.certificate.relative_residual;
            let what = format!("{} to {rtol:e}: {:?} at {residual:e}", name_of(&method), found.report.outcome);
            assert_eq!(found.report.outcome == Outcome::Converged, residual <= rtol, "{what}");
        }
    }
    // A tolerance that rounding does not allow is no false convergence of a system that is solved as well as can be.
    let (a, b) = sample();
    for method in iterations().filter(|m| ["auto", "none"].contains(&precond_of(m))) {
        let options = to(&method, StopCriterion { rtol: 0.0, max_iters: 2000, ..StopCriterion::default() });
        let found = run(&a, &b, &options).unwrap();
        let (outcome, residual) = (found.report.outcome, found.report.certificate.relative_residual);
        assert!(residual <= 1e-14 && outcome != Outcome::FalseConvergence, "{method}: {outcome:?} at {residual:e}");
    }
}

#[test]
fn a_singular_part_does_not_make_a_matrix_singular() {
    // Two halves without a diagonal, coupled by identities.
    let swapped = csr(8, |i, j| if i.abs_diff(j) == 4 { 1.0 } else { 0.0 });
    let halves = Precond::Schwarz {
        values: blocktri::Overlap::Added,
        layers: 0,
        subdomains: Some(2),
        local: blocktri::Local::Direct,
    };
    let schwarz = options(&Krylov { precond: halves, ..krylov("gmres", "none") }.into());
    let error = run(&swapped, &[1.0; 8], &schwarz).unwrap_err();
    assert!(error.contains("block 0 (from 0) is singular") && !error.contains("matrix is"), "{error}");
}

#[test]
fn every_column_counts() {
    let (a, b) = sample();
    let columns = Mat::from_fn(49, 3, |i, j| b[i] * [1.0, 1e-200, 1e200][j]);
    let found = solve(&a, columns.as_ref(), &options(&krylov("gmres", "ilu0").into()), &mut ()).unwrap();
    assert_eq!(found.report.outcome, Outcome::Converged);
    assert!((0..49).all(|i| (found.x[(i, 1)] * 1e200 / found.x[(i, 0)] - 1.0).abs() < 1e-12));
    // The second column is hard, the others take a step.
    let hard = Mat::from_fn(49, 3, |i, j| if j == 1 { b[i] } else { (0..49).map(|k| a.get(i, k)).sum() });
    let options =
        to(&krylov("cg", "none").into(), StopCriterion { rtol: 1e-9, max_iters: 2, ..StopCriterion::default() });
    let found = solve(&a, hard.as_ref(), &options, &mut ()).unwrap();
    assert_eq!(found.report.outcome, Outcome::IterationLimit);
}

#[test]
fn conjugate_gradients_look_at_the_symmetry_first() {
    let wind = stencil::<f64>(5, 0.3);
    let b = vec![1.0; 25];
    for method in ["cg", "fcg"].map(|name| krylov(name, "none").into()) {
        let error = run(&wind, &b, &options(&method)).unwrap_err();
        assert!(error.contains("Hermitian") && error.contains("a(0, 1)") && error.contains("bicgstab"), "{error}");
        // What printing with few digits does is noted, what rounding does is not.
        let (a, b) = sample();
        for (off, noted) in [(1e-10, true), (1e-16, false)] {
            let near = csr(49, |i, j| a.get(i, j) * if (i, j) == (0, 1) { 1.0 + off } else { 1.0 });
            let found = run(&near, &b, &options(&method)).unwrap();
            assert_eq!(found.report.outcome, Outcome::Converged);
            assert_eq!(found.report.notes.iter().any(|n| matches!(n, Note::TakenAsHermitian { .. })), noted, "{off:e}");
        }
    }
}
