//! The automatic choice: which method it takes, when it hands over, how it ends on singular and hopeless systems.

use std::ops::ControlFlow;

use crate::common::{csr, in_single, krylov, named};
use blocktri::faer::{Mat, MatRef};
use blocktri::{
    BlockForm, Blocks, Breakdown, Coo, Direct, Error, FactorError, Factoring, Fallback, Family, Krylov, KrylovMethod,
    Method, Note, Outcome, Precision, Precond, Progress, Refinement, Reorder, Scalar, ScalarKind, SingularKind,
    Solution, SolveOptions, StopCriterion, Sweep, TridiagonalSolver, c32, c64, solve,
};
use bt_formats::{Csr, Matrix, one, zero};

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

/// An iteration solves what has many solutions, and says so where rows or columns sum to zero.
#[test]
fn one_of_many_solutions_is_called_that() {
    // −u″ with Neumann conditions: (1, …, 1) is a null vector; b is in the range.
    let n = 40;
    let a = csr(
        n,
        (0..n).flat_map(|i| {
            let ends = f64::from(u8::from(i == 0) + u8::from(i + 1 == n));
            [(i, i.wrapping_sub(1), -1.0), (i, i, 2.0 - ends), (i, i + 1, -1.0)].into_iter().filter(move |e| e.1 < n)
        }),
    );
    let b = Mat::from_fn(n, 1, |i, _| f64::from(u8::from(i == 3)) - f64::from(u8::from(i == 30)));
    let by_cg = |a: &Csr<f64>| solve(a, b.as_ref(), &SolveOptions::by(krylov("cg", "jacobi")), &mut ()).unwrap();
    let warned = by_cg(&a);
    assert_eq!(warned.report.outcome, Outcome::Converged);
    assert!(warned.warnings.contains(&Note::SumsToZero { lines: "rows" }), "{:?}", warned.warnings);
    // One row of another sum, and nothing is said.
    let mut held = a.clone();
    held.values_mut()[0] += 1.0;
    assert!(!by_cg(&held).warnings.iter().any(|w| matches!(w, Note::SumsToZero { .. })));
}

fn answer<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> (Mat<T>, Result<Solution<T>, Error>) {
    let n = a.row_ptr().len() - 1;
    let x = Mat::from_fn(n, 2, |i, j| T::rounded(1.0 + ((7 * i + j) % 11) as f64 / 11.0, 0.0));
    let mut b = Mat::zeros(n, 2);
    a.apply_many(bt_formats::Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), bt_formats::Par::Seq);
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
    assert!(matches!(solution.report.notes[0], Note::AutoChose { .. }), "{:?}", solution.report.notes);
    assert_eq!(method_of(&poisson(100)), "sparse-cholesky");
}

#[test]
fn every_direct_method_gives_the_same_answer() {
    let a = tridiagonal(50, 1.0, 4.0, -2.0);
    for method in blocktri::DIRECT.iter().map(|row| row.method) {
        if method.row().needs != blocktri::Needs::Nothing {
            continue; // for Hermitian matrices
        }
        for reorder in Reorder::ALL {
            let options = SolveOptions { reorder, ..SolveOptions::by(method) };
            let (x, solution) = answer(&a, &options);
            match solution {
                Ok(s) => {
                    assert_eq!(s.report.method, method.name());
                    assert!(s.report.certificate.backward_error < 1e-15, "{method} {reorder}");
                    assert!((s.x - x).norm_max() < 1e-13, "{method} {reorder}");
                }
                // A method may be for less than this, and a reordering may leave the three diagonals; the refusal must say so.
                Err(Error::Usage { message }) => {
                    let named = ["diagonal matrix", "triangular matrix"].iter().any(|s| message.contains(s));
                    assert!(named, "{message}");
                }
                Err(e) => panic!("{method} {reorder}: {e}"),
            }
        }
    }
}

#[test]
fn methods_on_blocks_and_partitions_take_their_options() {
    let a = poisson(12);
    let blocks = Blocks::Uniform(12);
    for method in [Direct::BlockLu, Direct::BlockLuAcross, Direct::BlockCholesky, Direct::BlockRbt { seed: 3 }] {
        let options = SolveOptions { blocks: blocks.clone(), reorder: Reorder::None, ..SolveOptions::by(method) };
        let (x, solution) = answer(&a, &options);
        let s = solution.unwrap();
        assert!(s.report.certificate.backward_error < 1e-15 && (s.x - x).norm_max() < 1e-12, "{method}");
        assert_eq!((s.report.method, s.blocks.unwrap().count), (method.name(), 12));
    }
    // Partitions of 5 rows of a matrix with a zero diagonal: each is singular.
    let a = tridiagonal(40, 1.0, 0.0, 1.0);
    for (interior, solves) in
        [(TridiagonalSolver::Givens, true), (TridiagonalSolver::Lu, false), (TridiagonalSolver::DiagonalPivoting, true)]
    {
        let method = Direct::TridiagonalSpike { interior, partitions: Some(8) };
        let never = SolveOptions { reorder: Reorder::None, ..SolveOptions::by(method) };
        assert_eq!(answer(&a, &never).1.is_ok(), solves, "{method} is not replaced unless that is asked for");
        let options = SolveOptions { fallback: Fallback::Stronger, ..never };
        let s = answer(&a, &options).1.unwrap();
        assert!(s.report.certificate.backward_error < 1e-15);
        // The others hand over, and say so.
        let name = if solves { method.name() } else { "tridiagonal-lu" };
        let said = s.report.notes.iter().any(|note| match note {
            Note::SpikePartitions { partitions: 8, least_rows: 5, most_rows: 5 } => solves,
            Note::HandedOver { to: "tridiagonal-lu", why } => !solves && why.contains("breaks down"),
            _ => false,
        });
        assert!(s.report.method == name && said, "{method}: {} {:?}", s.report.method, s.report.notes);
    }
}

#[test]
fn krylov_methods_go_through_the_same_report() {
    let a = poisson(12);
    for mut method in KrylovMethod::ALL {
        if let KrylovMethod::Gmres { restart, .. } | KrylovMethod::Fgmres { restart, .. } = &mut method {
            *restart = 10;
        }
        for precond in Precond::all() {
            // Not Hermitian.
            let unsymmetric = ["block-gs", "block-reduced", "ilut", "ras", "arms", "arms-rbt", "spike-truncated"];
            if method.is_symmetric() && unsymmetric.contains(&precond.name()) {
                continue;
            }
            let used = if precond == Precond::Auto { Precond::Jacobi } else { precond };
            for reorder in [Reorder::None, Reorder::Rcm] {
                let options = SolveOptions { reorder, ..SolveOptions::by(Krylov::new(method, precond)) };
                let (x, solution) = answer(&a, &options);
                let s = solution.unwrap();
                assert_eq!((s.report.outcome, s.report.method, s.precond), (Outcome::Converged, method.name(), used));
                assert!(s.report.certificate.relative_residual <= 1e-8, "{method}");
                assert!(s.report.certificate.backward_error <= 1e-8, "{method}");
                assert!((s.x - x).norm_max() < 1e-5, "{method}");
            }
        }
    }
    // 1, 2, … of both signs: not definite, and said so.
    let mixed = csr(6, (0..6).map(|i| (i, i, if i % 2 == 0 { 1.0 } else { -2.0 })));
    let options = SolveOptions::by(krylov("cg", "none"));
    let (_, solution) = answer(&mixed, &options);
    assert_eq!(solution.unwrap().report.outcome, Outcome::Breakdown(Breakdown::IndefiniteOperator));
}

#[test]
fn single_precision_is_refined_or_replaced() {
    let a = poisson(12);
    let failed = |note: &Note| matches!(note, Note::SingleFailed { scalar: ScalarKind::F64, .. });
    for method in ["auto", "band-lu", "block-lu", "sparse-lu", "rbt"] {
        let (x, solution) = answer(&a, &in_single(method));
        let s = solution.unwrap();
        assert!(s.report.certificate.backward_error < 1e-15 && (s.x.clone() - x).norm_max() < 1e-12, "{method}");
        assert!(
            s.report.notes.contains(&Note::SingleFactors) && s.report.iterations >= 1,
            "{method} {:?}",
            s.report.notes
        );
    }
    // Methods that gain nothing by it say so.
    assert!(
        answer(&a, &in_single("spike")).1.unwrap_err().to_string().contains("spike has no factors in single precision")
    );
    let complex: Csr<c64> = a.cast();
    assert!(answer(&complex, &in_single("auto")).1.unwrap_err().to_string().contains("complex"));
    let line = csr(
        9,
        (0..9).flat_map(|i: usize| {
            (0..9).filter(move |j| i.abs_diff(*j) < 2).map(move |j| (i, j, if i == j { 4.0 } else { -1.0 }))
        }),
    );
    let in_double = answer(&line, &in_single("auto")).1.unwrap().report.notes;
    let told = |note: &Note| matches!(note, Note::NotInSingle { method: "thomas", scalar: ScalarKind::F64, .. });
    assert!(in_double.iter().any(told), "{in_double:?}");
    // 1/(i + j + 1): far beyond the condition that f32 can be refined at, and singular there for some orders.
    let hilbert = |n: usize| {
        csr(n, (0..n).flat_map(|i| (0..n).map(move |j| (i, j, 1.0 / (i + j + 1) as f64))).collect::<Vec<_>>())
    };
    for n in [8, 10] {
        let s = answer(&hilbert(n), &in_single("dense-lu")).1.unwrap();
        assert_eq!(s.report.outcome, Outcome::Converged);
        assert!(
            s.report.notes.iter().any(failed) && s.report.certificate.backward_error < 1e-15,
            "{:?}",
            s.report.notes
        );
    }
    // A row that f32 cannot hold beside the others: an error for a preconditioner, another unit for factors.
    let wide = csr(2, [(0, 0, 1.0), (1, 1, 1e-60)]);
    let s = answer(&wide, &in_single("band-lu")).1.unwrap();
    assert!(s.report.notes.contains(&Note::Equilibrated) && s.report.certificate.componentwise_backward_error < 1e-15);
    let single = |method, precond| SolveOptions::by(Krylov { precision: Precision::Single, ..krylov(method, precond) });
    assert!(
        answer(&wide, &single("gmres", "auto")).1.unwrap_err().to_string().contains("row 1 (from 0) vanishes in f32")
    );
    for (method, precond) in
        [("cg", "ic0"), ("fcg", "jacobi"), ("bicgstab", "block-jacobi"), ("fgmres", "ras"), ("fgmres", "ilut")]
    {
        let s = answer(&a, &single(method, precond)).1.unwrap();
        assert_eq!((s.report.outcome, s.precond.name()), (Outcome::Converged, precond), "{method}");
        assert!(s.report.notes.contains(&Note::SinglePreconditioner));
    }
    assert!(
        answer(&a, &single("fgmres", "arms"))
            .1
            .unwrap_err()
            .to_string()
            .contains("arms is not made in single precision")
    );
}

/// Sweeps over blocks: products are taken with A by these blocks where they hold all of it and are smaller.
#[test]
fn sweeps_over_blocks_converge_whether_or_not_they_hold_all_of_a() {
    let n = 480;
    // Couplings shifted by another distance from block to block: no full diagonals; the last one far outside the blocks.
    let entries = |far: bool| {
        let row = move |i: usize| {
            let shift = 16 + i / 16 % 3;
            let near =
                [(i, 5.0), (i + 1, -1.0), (i.wrapping_sub(1), -1.5), (i + shift, 0.5), (i.wrapping_sub(shift), -1.0)];
            let far = (far && i == 3).then_some((n - 5, 0.25));
            let near = near.into_iter().filter(move |(j, _)| *j < n && (j / 16).abs_diff(i / 16) <= 1);
            near.chain(far).map(move |(j, v)| (i, j, v))
        };
        (0..n).flat_map(row).collect::<Vec<_>>()
    };
    for far in [false, true] {
        let a = csr(n, entries(far));
        for form in [BlockForm::Jacobi, BlockForm::GaussSeidel, BlockForm::Symmetric, BlockForm::RedBlack] {
            let precond = Precond::Blocks(form);
            let method = Krylov::new(KrylovMethod::BiCgStab, precond);
            let options = SolveOptions { blocks: Blocks::Uniform(16), ..SolveOptions::by(method) };
            let (x, solution) = answer(&a, &options);
            let s = solution.unwrap();
            assert_eq!((s.report.outcome, s.precond), (Outcome::Converged, precond));
            assert!(s.report.certificate.relative_residual <= 1e-8 && (s.x - x).norm_max() < 1e-6, "{precond:?}");
            let left_out = s.report.notes.iter().any(|n| matches!(n, Note::LeftOutOfPreconditioner { .. }));
            assert_eq!(left_out, far && form != BlockForm::Jacobi, "{precond:?}");
            // Block-jacobi has no use for the couplings itself; the others share theirs.
            assert!(far || (s.report.bytes.matrix > a.bytes()) == (form == BlockForm::Jacobi), "{precond:?}");
        }
    }
}

/// The system without every other block: exact elimination, so nothing may lie outside the three block diagonals.
#[test]
fn the_reduced_system_answers_for_the_whole_one_or_refuses() {
    let a = poisson(12);
    let reduced = |method: Krylov, block: usize| SolveOptions {
        blocks: Blocks::Uniform(block),
        ..SolveOptions::by(Krylov { precond: Precond::BlockReduced, ..method })
    };
    let by = |method| Krylov::new(method, Precond::BlockReduced);
    let b = Mat::from_fn(144, 3, |i, j| ((i * (j + 2)) % 7) as f64 - 1.5);
    for (method, basis) in [
        (KrylovMethod::BiCgStab, Precision::Working),
        (KrylovMethod::Gmres { restart: 40, basis: Precision::Working }, Precision::Working),
        (KrylovMethod::Gmres { restart: 40, basis: Precision::Single }, Precision::Single),
        (KrylovMethod::Fgmres { restart: 40, basis: Precision::Single }, Precision::Single),
    ] {
        let mut told = Vec::new();
        let mut monitor = |progress| {
            if let Progress::Iteration { residual, .. } = progress {
                told.push(residual);
            }
            ControlFlow::Continue(())
        };
        let options = reduced(by(method), 12);
        let s = solve(&a, b.as_ref(), &options, &mut monitor).unwrap();
        assert_eq!(
            (s.report.outcome, s.report.method, s.precond),
            (Outcome::Converged, method.name(), Precond::BlockReduced)
        );
        assert!(s.report.notes.contains(&Note::ReducedSystem { order: 72, unknowns: 144 }));
        assert_eq!(s.report.notes.contains(&Note::SingleBasis), basis == Precision::Single);
        assert_eq!(s.blocks.as_ref().unwrap().count, 12);
        assert!(s.report.certificate.relative_residual <= 1e-8);
        // Relative to ‖b‖, not to the right-hand side iterated with: the tolerance is where the last one ends.
        let (last, before) = told.split_last().unwrap();
        assert!(*last <= 1e-8 && before.last().unwrap() > &1e-8 && told[0] != 1.0, "{told:?}");
        assert!(s.report.bytes.factors > 8 * 144 && s.report.bytes.workspace > 8 * 72);
    }
    let refused = |a: &Csr<f64>, options: &SolveOptions, why: &str| {
        let error = answer(a, options).1.unwrap_err();
        assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains(why), "{error}");
    };
    refused(&a, &reduced(by(KrylovMethod::Cg), 12), "no symmetric form for cg");
    let single = Krylov { precision: Precision::Single, ..by(KrylovMethod::BiCgStab) };
    refused(&a, &reduced(single, 12), "not in single precision");
    refused(&a, &reduced(by(KrylovMethod::BiCgStab), 6), "entry at row 0, column 12");
    let singular = csr(4, [(0, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (3, 3, 1.0)]);
    let error = answer(&singular, &reduced(by(KrylovMethod::BiCgStab), 1)).1.unwrap_err();
    assert!(error.to_string().contains("diagonal block 2 (from 0) is singular"), "{error}");
    // One block: nothing is left to iterate on.
    let s = answer(&a, &reduced(by(KrylovMethod::BiCgStab), 144)).1.unwrap();
    assert_eq!((s.report.outcome, s.report.iterations), (Outcome::Converged, 0));
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
    let (_, s) = answer(&poisson(10), &SolveOptions { blocks, ..SolveOptions::by(Direct::BlockLu) });
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
    let forced = |method: Method| SolveOptions {
        blocks: Blocks::Uniform(2),
        reorder: Reorder::None,
        fallback: Fallback::Stronger,
        ..SolveOptions::by(method)
    };
    let block_lu = forced(Direct::BlockLu.into());
    let error = answer(&a, &SolveOptions { fallback: Fallback::Never, ..block_lu.clone() }).1.unwrap_err();
    assert!(matches!(error, Error::Factor(FactorError::Breakdown { method: "block-lu", .. })), "{error}");
    let handed = answer(&a, &block_lu).1.unwrap();
    assert_eq!(handed.report.method, "band-lu");
    assert!(handed.report.certificate.backward_error < 1e-15);
    let to_band = |note: &Note| matches!(note, Note::HandedOver { to: "band-lu", .. });
    assert!(handed.report.notes.iter().any(to_band), "{:?}", handed.report.notes);
    assert_eq!(handed.warnings, [Note::MethodReplaced { asked: "block-lu", by: "band-lu" }]);
    // The iteration with these blocks does not exist; nobody may conclude that A is singular.
    for sweep in [Sweep::Jacobi, Sweep::GaussSeidel] {
        let error = answer(&a, &forced(sweep.into())).1.unwrap_err();
        assert!(matches!(error, Error::Factor(FactorError::Breakdown { .. })), "{error}");
        assert!(error.to_string().contains("block 0"), "{error}");
        assert!(error.help().unwrap().contains("auto"));
    }
    let (x, solution) = answer(&a, &SolveOptions::default());
    let solution = solution.unwrap();
    assert!(solution.report.certificate.backward_error < 1e-15);
    assert!((solution.x - x).norm_max() < 1e-10);
}

#[test]
fn a_scaled_order_does_not_loosen_the_tolerance() {
    // Rows from 1 to 10¹²: the residual of a row-scaled system says nothing about the one asked for.
    let n = 40;
    let a = csr(
        n,
        (0..n).flat_map(|i| {
            let s = 10f64.powi((i % 13) as i32);
            [(i, i.wrapping_sub(1), s), (i, i, 4.0 * s), (i, i + 1, s)].into_iter().filter(move |e| e.1 < n)
        }),
    );
    for (method, reorder) in [("hbisa", Reorder::Matching), ("hbisa-gs", Reorder::MatchingRcm)] {
        let options = SolveOptions { reorder, ..SolveOptions::by(named(method)) };
        let b = Mat::from_fn(n, 1, |i, _| if i % 13 == 0 { 1.0 } else { 0.0 });
        let solution = solve(&a, b.as_ref(), &options, &mut ()).unwrap();
        assert_ne!(solution.report.outcome, Outcome::FalseConvergence);
        let residual = solution.report.certificate.relative_residual;
        assert!(
            solution.report.outcome != Outcome::Converged || residual <= 1.01e-8,
            "{method} {reorder}: {residual:e}"
        );
    }
}

#[test]
fn given_blocks_keep_the_given_order() {
    let a = poisson(12);
    for method in ["auto", "block-lu"] {
        let options = SolveOptions { blocks: Blocks::Uniform(12), ..SolveOptions::by(named(method)) };
        let solution = answer(&a, &options).1.unwrap();
        assert_eq!((solution.report.outcome, solution.reorder), (Outcome::Converged, Reorder::None), "{method}");
        match solution.blocks {
            Some(blocks) => assert_eq!((blocks.count, blocks.max), (12, 12), "{method}"),
            None => assert!(solution.report.notes.iter().any(|n| matches!(n, Note::BlocksNotUsed { .. }))),
        }
    }
}

#[test]
fn a_stop_request_ends_every_direct_method() {
    let a = poisson(20);
    for method in ["auto", "block-lu", "band-lu", "sparse-lu"] {
        let options = SolveOptions::by(named(method));
        let b = Mat::from_fn(400, 1, |_, _| 1.0);
        let stop = &mut |_: Progress| ControlFlow::Break(());
        let error = solve(&a, b.as_ref(), &options, stop).unwrap_err();
        assert!(matches!(error, Error::Factor(FactorError::Stopped)), "{method}: {error}");
    }
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
    for method in ["auto", "tridiagonal-lu", "band-lu", "sparse-lu"] {
        let p = place(&numerical, &SolveOptions::by(named(method)));
        assert_eq!((p.kind, p.column), (SingularKind::Numerical, 1), "{method}");
    }
    // the zero matrix
    let p = place(&csr(3, []), &SolveOptions::default());
    assert_eq!(p.kind, SingularKind::Structural);
    // a column behind a permutation is told in the given numbering
    let hidden = csr(4, [(0, 3, 1.0), (3, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 1.0)]);
    let p = place(&hidden, &SolveOptions { reorder: Reorder::Rcm, ..SolveOptions::by(Direct::BandLu) });
    assert!(p.column == 1 || p.column == 2, "{p:?}");
}

#[test]
fn ill_conditioned_is_a_warning_and_no_error() {
    let a = csr(2, [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0 + f64::EPSILON)]);
    let s = answer(&a, &SolveOptions::default()).1.unwrap();
    assert_eq!(s.report.outcome, Outcome::Converged);
    assert!(s.rcond.unwrap() < 1e-15);
    assert!(matches!(s.warnings[0], Note::SingularToPrecision { .. }));
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
    let sizes =
        SolveOptions { reorder: Reorder::None, blocks: Blocks::Sizes(vec![1, 2]), ..SolveOptions::by(Direct::BlockLu) };
    let message = solve(&two, Mat::zeros(2, 1).as_ref(), &sizes, &mut ()).unwrap_err().to_string();
    assert!(message.contains("sum of the block sizes"), "{message}");
    let outside =
        SolveOptions { reorder: Reorder::None, blocks: Blocks::Uniform(1), ..SolveOptions::by(Sweep::RedBlack) };
    let corner = csr(3, [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (0, 2, 1.0)]);
    let message = solve(&corner, Mat::zeros(3, 1).as_ref(), &outside, &mut ()).unwrap_err().to_string();
    assert!(message.contains("two colours") && message.contains("1 entries lie outside"), "{message}");
    let s = solve(
        &corner,
        Mat::from_fn(3, 1, |_, _| 1.0).as_ref(),
        &SolveOptions { method: Sweep::Jacobi.into(), ..outside },
        &mut (),
    );
    let s = s.unwrap();
    assert_eq!((s.report.outcome, s.x[(0, 0)]), (Outcome::Converged, 0.0));
    let outside = |note: &Note| matches!(note, Note::OutsideInProducts { .. });
    assert!(s.report.notes.iter().any(outside), "{:?}", s.report.notes);
    assert!("qmr".parse::<Method>().unwrap_err().help().unwrap().contains("band-lu"));
}

#[test]
fn a_zero_right_hand_side_has_the_zero_solution() {
    for method in Method::all() {
        let options = SolveOptions::by(method.clone());
        // Without its neighbours for methods that have no use for them.
        let family = if let Method::Direct(direct, _) = &method { Some(direct.row().family) } else { None };
        let alone = matches!(family, Some(Family::Diagonal | Family::Triangular));
        let a = if alone { tridiagonal(9, 0.0, 4.0, 0.0) } else { tridiagonal(9, 1.0, 4.0, 1.0) };
        let s = solve(&a, Mat::zeros(9, 1).as_ref(), &options, &mut ()).unwrap();
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
            for method in ["auto", "band-lu", "sparse-lu", "block-lu"] {
                let (_, s) = answer(&a, &SolveOptions::by(named(method)));
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
        for method in ["auto", "tridiagonal-lu", "band-lu", "block-lu", "sparse-lu"] {
            let (x, s) = answer(&a, &SolveOptions::by(named(method)));
            let s = s.unwrap();
            assert_eq!(s.report.outcome, Outcome::Converged, "{method} {scale:e} {:?}", s.report);
            assert!((s.x - x).norm_max() < 1e-12, "{method} {scale:e}");
        }
    }
}

#[test]
fn refinement_steps_are_counted_and_iterations_report() {
    let a = tridiagonal(30, 1.0, 4.0, 1.0);
    let none = SolveOptions::by(
        Method::default()
            .with_factoring(Factoring { refinement: Refinement::Steps(0), ..Factoring::default() })
            .unwrap(),
    );
    assert_eq!(answer(&a, &none).1.unwrap().report.iterations, 0);
    let stop = StopCriterion { rtol: 1e-3, ..StopCriterion::default() };
    let loose =
        SolveOptions { blocks: Blocks::Uniform(5), ..SolveOptions::by(named("hbisa-gs").with_stop(stop).unwrap()) };
    let s = answer(&a, &loose).1.unwrap();
    assert_eq!((s.report.outcome, s.blocks.unwrap().count), (Outcome::Converged, 6));
    assert!(s.report.certificate.relative_residual <= 1e-3 && s.report.iterations > 0);
}

#[test]
fn butterflies_asked_for_by_name_make_room_for_pivots_only_where_that_is_allowed() {
    // Hilbert's matrix of order 12 is regular, and its last pivots are roundoff.
    let a = Csr::from_dense(Mat::from_fn(12, 12, |i, j| 1.0 / (1 + i + j) as f64).as_ref()).unwrap();
    let b = Mat::from_fn(12, 1, |i, _| 1.0 + i as f64);
    for method in [Direct::Rbt { seed: 1 }, Direct::BlockRbt { seed: 1 }] {
        let never = SolveOptions::by(method);
        let refused = solve(&a, b.as_ref(), &never, &mut ()).unwrap_err();
        assert!(matches!(refused, Error::Factor(FactorError::Breakdown { .. })), "{method}: {refused}");
        let stronger = SolveOptions { fallback: Fallback::Stronger, ..never };
        let answer = solve(&a, b.as_ref(), &stronger, &mut ()).unwrap();
        assert!(answer.report.certificate.backward_error < 1e-14, "{method}");
        let said = |notes: &[Note]| notes.iter().filter(|note| matches!(note, Note::PivotedInstead { .. })).count();
        assert_eq!((said(&answer.warnings), said(&answer.report.notes)), (1, 1), "{method}");
        assert_eq!(answer.method.name(), method.name());
    }
}
