//! Krylov methods: right answers in the expected number of steps, breakdowns by name, never a false success.

use bt_formats::{
    Breakdown, Csr, LinearOperator, Matrix, Op, Outcome, Par, Scalar, SolveReport, StopCriterion, c64, norm2,
};
use bt_iter::{BiCgStab, Cg, DroppedFill, Gmres, Identity, Jacobi, Preconditioner, PreconditionerKind, ilu0};
use bt_testkit::alloc::count_allocations;
use bt_testkit::strategies::{self, well_conditioned};
use bt_testkit::{chain, csr, stencil};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Cg,
    Fcg,
    BiCgStab,
    Gmres(usize),
    Fgmres(usize),
    /// With V in single precision.
    GmresSingle(usize),
    FgmresSingle(usize),
}

const ALL: [Kind; 7] = [
    Kind::Cg,
    Kind::Fcg,
    Kind::BiCgStab,
    Kind::Gmres(20),
    Kind::Fgmres(20),
    Kind::GmresSingle(20),
    Kind::FgmresSingle(20),
];

fn run<T: Scalar>(
    kind: Kind,
    a: &Csr<T>,
    m: &mut dyn Preconditioner<T>,
    b: &[T],
    x: &mut [T],
    stop: &StopCriterion,
) -> SolveReport {
    let n = a.nrows();
    match kind {
        Kind::Cg => Cg::new(n).solve(a, m, b, x, stop, &mut ()),
        Kind::Fcg => Cg::flexible(n).solve(a, m, b, x, stop, &mut ()),
        Kind::BiCgStab => BiCgStab::new(n).solve(a, m, b, x, stop, &mut ()),
        Kind::Gmres(restart) => Gmres::new(n, restart).solve(a, m, b, x, stop, &mut ()),
        Kind::Fgmres(restart) => Gmres::flexible(n, restart).solve(a, m, b, x, stop, &mut ()),
        Kind::GmresSingle(restart) => Gmres::single_basis(n, restart).solve(a, m, b, x, stop, &mut ()),
        Kind::FgmresSingle(restart) => Gmres::flexible_single_basis(n, restart).solve(a, m, b, x, stop, &mut ()),
    }
    .unwrap()
}

/// ‖b − A·x‖₂ / ‖b‖₂, on its own.
fn true_residual<T: Scalar>(a: &Csr<T>, x: &[T], b: &[T]) -> f64 {
    let mut r = b.to_vec();
    a.apply_op(Op::Identity, -bt_formats::one::<T>(), x, bt_formats::one(), &mut r, Par::Seq);
    norm2(&r) / norm2(b)
}

fn rhs<T: Scalar>(a: &Csr<T>) -> Vec<T> {
    let n = a.nrows();
    let x: Vec<T> = (0..n).map(|i| T::rounded(1.0 + ((7 * i) % 11) as f64 / 11.0, (i % 3) as f64)).collect();
    let mut b = vec![T::default(); n];
    a.apply(bt_formats::one(), &x, T::default(), &mut b);
    b
}

#[test]
fn all_solve_a_definite_system_and_tell_the_truth() {
    let a = stencil(24, 0.0);
    let b = rhs(&a);
    for kind in ALL {
        for preconditioned in [false, true] {
            let mut x = vec![0.0; b.len()];
            let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
            let report = if preconditioned {
                run(kind, &a, &mut Jacobi::new(&a).unwrap(), &b, &mut x, &stop)
            } else {
                run(kind, &a, &mut Identity::new(b.len()), &b, &mut x, &stop)
            };
            assert_eq!(report.outcome, Outcome::Converged, "{kind:?}");
            let truth = true_residual(&a, &x, &b);
            assert!(truth <= 1e-10, "{kind:?}: {truth:e}");
            assert!((report.certificate.relative_residual / truth - 1.0).abs() < 1e-3, "{kind:?}");
        }
    }
}

#[test]
fn conjugate_gradients_end_after_as_many_steps_as_eigenvalues() {
    // Diagonal with five values.
    let a = csr(60, |i, j| if i == j { 1.0 + (i % 5) as f64 } else { 0.0 });
    let b = rhs(&a);
    for kind in [Kind::Cg, Kind::Fcg, Kind::Gmres(60), Kind::Fgmres(60)] {
        let mut x = vec![0.0; 60];
        let report = run(kind, &a, &mut Identity::new(60), &b, &mut x, &StopCriterion::default());
        assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 5), "{kind:?}");
    }
}

/// V in single precision: as few steps or hardly more, and the same accuracy, also far beyond that of the basis.
#[test]
fn a_rounded_basis_costs_few_steps() {
    let a = stencil(30, 0.7);
    let b = rhs(&a);
    let mut m = ilu0(&a, DroppedFill::Forgotten).unwrap();
    for rtol in [1e-4, 1e-8, 1e-13] {
        let stop = StopCriterion { rtol, ..StopCriterion::default() };
        for pair in [[Kind::Gmres(20), Kind::GmresSingle(20)], [Kind::Fgmres(20), Kind::FgmresSingle(20)]] {
            let [working, single] = pair.map(|kind| {
                let mut x = vec![0.0; b.len()];
                let report = run(kind, &a, &mut m, &b, &mut x, &stop);
                assert_eq!(report.outcome, Outcome::Converged, "{kind:?} {rtol:e}");
                assert!(true_residual(&a, &x, &b) <= rtol, "{kind:?} {rtol:e}");
                report.iterations
            });
            assert!(single <= working + working / 5 + 1, "{rtol:e}: {single}, {working}");
        }
    }
    // V has eleven columns.
    let (working, single) = (Gmres::<f64>::new(100, 10), Gmres::<f64, f32>::single_basis(100, 10));
    assert_eq!(working.bytes() - single.bytes(), 11 * 100 * 4);
}

#[test]
fn nonsymmetric_and_complex_systems() {
    let a = stencil(20, 0.7);
    let b = rhs(&a);
    for kind in [Kind::BiCgStab, Kind::Gmres(15), Kind::Fgmres(40), Kind::GmresSingle(15), Kind::FgmresSingle(40)] {
        let mut x = vec![0.0; b.len()];
        let report = run(kind, &a, &mut Identity::new(b.len()), &b, &mut x, &StopCriterion::default());
        assert_eq!(report.outcome, Outcome::Converged, "{kind:?}");
        assert!(true_residual(&a, &x, &b) <= 1e-8, "{kind:?}");
    }
    let shifted = csr(80, |i, j| match i.abs_diff(j) {
        0 => c64::new(3.0, 1.0 + i as f64 / 80.0),
        1 => c64::new(-1.0, if j > i { 0.3 } else { -0.8 }),
        _ => c64::new(0.0, 0.0),
    });
    let b = rhs(&shifted);
    for kind in [Kind::BiCgStab, Kind::Gmres(10), Kind::Fgmres(80), Kind::GmresSingle(10), Kind::FgmresSingle(80)] {
        let mut x = vec![c64::default(); b.len()];
        let report = run(kind, &shifted, &mut Identity::new(b.len()), &b, &mut x, &StopCriterion::default());
        assert_eq!(report.outcome, Outcome::Converged, "{kind:?}");
        assert!(true_residual(&shifted, &x, &b) <= 1e-8, "{kind:?}");
    }
}

#[test]
fn indefinite_operators_and_preconditioners_are_named() {
    let a = csr(10, |i, j| if i == j { if i < 5 { 1.0 } else { -2.0 } } else { 0.0 });
    let b = vec![1.0; 10];
    let mut x = vec![0.0; 10];
    let report = run(Kind::Cg, &a, &mut Identity::new(10), &b, &mut x, &StopCriterion::default());
    assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::IndefiniteOperator));
    let spd = stencil(4, 0.0);
    let signs: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 4.0 } else { -4.0 }).collect();
    let mut m = Jacobi::from_diagonal(&signs).unwrap();
    let b: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 0.5 } else { 1.0 }).collect();
    let report = run(Kind::Cg, &spd, &mut m, &b, &mut [0.0; 16], &StopCriterion::default());
    assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::IndefinitePreconditioner));
}

/// A preconditioner that changes its mind.
struct Fickle(f64);
impl Preconditioner<f64> for Fickle {
    fn n(&self) -> usize {
        16
    }
    fn name(&self) -> &'static str {
        "fickle"
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::Variable
    }
    fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        self.0 += 1.0;
        z.iter_mut().zip(r).enumerate().for_each(|(i, (z, r))| *z = r * (1.0 + 0.3 * (self.0 * (i + 1) as f64).sin()));
    }
    fn nnz(&self) -> usize {
        1
    }
    fn bytes(&self) -> usize {
        8
    }
}

#[test]
fn only_flexible_methods_take_a_variable_preconditioner() {
    let a = stencil(4, 0.2);
    let b = rhs(&a);
    let mut x = vec![0.0; 16];
    let stop = StopCriterion::default();
    let error = Cg::new(16).solve(&a, &mut Fickle(0.0), &b, &mut x, &stop, &mut ()).unwrap_err().to_string();
    assert!(error.contains("fickle") && error.contains("fgmres"), "{error}");
    assert!(BiCgStab::new(16).solve(&a, &mut Fickle(0.0), &b, &mut x, &stop, &mut ()).is_err());
    assert!(Gmres::new(16, 5).solve(&a, &mut Fickle(0.0), &b, &mut x, &stop, &mut ()).is_err());
    let report = run(Kind::Fgmres(16), &a, &mut Fickle(0.0), &b, &mut x, &stop);
    assert_eq!(report.outcome, Outcome::Converged);
    assert!(true_residual(&a, &x, &b) <= 1e-8);
    let a = stencil(4, 0.0);
    let b = rhs(&a);
    let mut x = vec![0.0; 16];
    let report = run(Kind::Fcg, &a, &mut Fickle(0.0), &b, &mut x, &stop);
    assert_eq!((report.outcome, report.method), (Outcome::Converged, "fcg"));
    assert!(report.iterations <= 50 && true_residual(&a, &x, &b) <= 1e-8, "{report:?}");
}

type Make<T> = fn(&Csr<T>) -> Box<dyn Preconditioner<T>>;

/// A·2ⁱ and b·2ʲ: inner products of the residual, of A·p and of M⁻¹r leave the range where they are not scaled.
fn any_scale<T: Scalar>(powers: &[(i32, i32)], rtol: f64) {
    let plain = stencil::<f64>(9, 0.0).cast::<T>();
    let rhs = rhs(&plain);
    let times = |v: T, power: i32| v * T::rounded(2f64.powi(power), 0.0);
    let stop = StopCriterion { rtol, max_iters: 100, ..StopCriterion::default() };
    for kind in ALL {
        let kinds: [Make<T>; 3] = [
            |a| Box::new(Identity::new(a.nrows())),
            |a| Box::new(Jacobi::new(a).unwrap()),
            |a| Box::new(ilu0(a, DroppedFill::Forgotten).unwrap()),
        ];
        for make in kinds {
            let mut m = make(&plain);
            let expected = run(kind, &plain, &mut *m, &rhs, &mut [T::default(); 81], &stop).iterations;
            for &(i, j) in powers {
                let mut a = plain.clone();
                a.values_mut().iter_mut().for_each(|v| *v = times(*v, i));
                let b: Vec<T> = rhs.iter().map(|&v| times(v, j)).collect();
                let mut x = [T::default(); 81];
                let report = run(kind, &a, &mut *make(&a), &b, &mut x, &stop);
                let what = format!("{kind:?}, {}, A·2^{i}, b·2^{j}", m.name());
                assert_eq!(report.outcome, Outcome::Converged, "{what}");
                assert!(true_residual(&a, &x, &b) <= rtol, "{what}");
                assert!(report.iterations.abs_diff(expected) <= 1, "{what}: {} of {expected}", report.iterations);
            }
        }
    }
}

#[test]
fn scales_of_matrix_and_right_hand_side_do_not_matter() {
    // 1e±200 and 1e±300, together and apart; x stays in the range.
    let together = [(-664, -664), (664, 664), (-996, -996), (996, 996)];
    any_scale::<f64>(&together, 1e-8);
    any_scale::<f64>(&[(0, -996), (0, 996), (-498, 498), (498, -498), (664, 0), (-664, 0)], 1e-8);
    any_scale::<c64>(&together, 1e-8);
    any_scale::<f32>(&[(-100, -100), (100, 100), (0, -100), (0, 100), (-50, 50), (50, -50)], 1e-4);
}

#[test]
fn norms_that_overflow_are_solved_and_never_met() {
    // ‖b‖₂ exceeds the largest number: entries of A at the end of the range, and of b and x alone.
    let huge = csr(10, |i, j| match (i, j) {
        _ if i == j => 8e307,
        _ if j == i + 1 => 3e307,
        _ if i == j + 1 => 1.5e307,
        _ => 0.0,
    });
    let b: Vec<f64> = (0..10).map(|i| [8e307, 6e307, 4e307][i % 3]).collect();
    let plain = csr(2, |i, j| [[2.0, 1.0], [1.0, 3.0]][i][j]);
    for kind in ALL {
        let mut x = vec![0.0; 2];
        let report = run(kind, &plain, &mut Identity::new(2), &[1.7e308; 2], &mut x, &StopCriterion::default());
        assert_eq!(report.outcome, Outcome::Converged, "{kind:?}");
        assert!((x[0] / 0.68e308 - 1.0).abs() < 1e-7 && (x[1] / 0.34e308 - 1.0).abs() < 1e-7, "{kind:?}: {x:?}");
        // From a good start, which is scaled too.
        let report = run(kind, &plain, &mut Identity::new(2), &[1.7e308; 2], &mut x, &StopCriterion::default());
        assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 0), "{kind:?}");
        if matches!(kind, Kind::Cg | Kind::Fcg) {
            continue;
        }
        let mut x = vec![0.0; 10];
        let report = run(kind, &huge, &mut Jacobi::new(&huge).unwrap(), &b, &mut x, &StopCriterion::default());
        assert_eq!(report.outcome, Outcome::Converged, "{kind:?}");
        let mut r: Vec<f64> = b.iter().map(|b| b / 1e308).collect();
        let scaled = csr(10, |i, j| huge.get(i, j) / 1e308);
        scaled.apply(-1.0, &x, 1.0, &mut r);
        assert!(norm2(&r) <= 2e-8, "{kind:?}: {x:?}");
    }
    // An operator that overflows whatever it is applied to.
    for kind in ALL {
        let all = csr(6, |i, j| if i == j { 1.7e308 } else { 1.6e308 });
        let mut x = vec![0.0; 6];
        let report = run(kind, &all, &mut Identity::new(6), &[1.0; 6], &mut x, &StopCriterion::default());
        assert!(report.outcome != Outcome::Converged || norm2(&x) > 0.0, "{kind:?}: {report:?}");
        assert!(x.iter().all(|v| v.is_finite()), "{kind:?}");
    }
    // No residual meets an infinite target.
    let stop = StopCriterion { rtol: f64::INFINITY, max_iters: 1, ..StopCriterion::default() };
    for kind in ALL {
        let report = run(kind, &plain, &mut Identity::new(2), &[1.0; 2], &mut [0.0; 2], &stop);
        assert_ne!(report.outcome, Outcome::Converged, "{kind:?}");
    }
}

/// Recurrences that lose the residual: M of 10¹⁵ and A with rounding of its own. What is returned is never worse than the start.
#[test]
fn the_start_is_an_iterate() {
    let n = 40;
    let a = chain(n, 1.0, 3.0);
    let b = rhs(&a);
    let wild: Vec<f64> = (0..n).map(|i| [1e-15, 1.0, 1e15][i % 3]).collect();
    let near: Vec<f64> = (0..n).map(|i| 1.0 + ((7 * i) % 11) as f64 / 11.0 + 1e-3).collect();
    for kind in ALL {
        for start in [vec![0.0; n], near.clone()] {
            for max_iters in [1, 3, 10, 300] {
                let stop = StopCriterion { max_iters, ..StopCriterion::default() };
                let mut x = start.clone();
                let report = run(kind, &a, &mut Jacobi::from_diagonal(&wild).unwrap(), &b, &mut x, &stop);
                let (truth, before) = (true_residual(&a, &x, &b), true_residual(&a, &start, &b));
                assert!(truth <= before, "{kind:?}, {max_iters}: {truth:e} after {before:e}");
                assert_eq!(report.outcome == Outcome::Converged, truth <= 1e-8, "{kind:?}, {max_iters}: {truth:e}");
            }
        }
    }
}

#[test]
fn singular_and_impossible_systems_never_succeed() {
    // Row and column 3 are zero; b has a component there.
    let a = csr(12, |i, j| if i == j && i != 3 { 2.0 + i as f64 } else { 0.0 });
    // A nilpotent shift: e₁ has no preimage.
    let shift = csr(12, |i, j| if j == i + 1 { 1.0 } else { 0.0 });
    for a in [a, shift] {
        for kind in ALL {
            let b = vec![1.0; 12];
            let mut x = vec![0.0; 12];
            let report = run(kind, &a, &mut Identity::new(12), &b, &mut x, &StopCriterion::default());
            assert_ne!(report.outcome, Outcome::Converged, "{kind:?}");
            assert!(x.iter().all(|v| v.is_finite()), "{kind:?}: {x:?}");
            let truth = true_residual(&a, &x, &b);
            assert!((report.certificate.relative_residual - truth).abs() <= 1e-12, "{kind:?}");
            // The best iterate is never worse than the start.
            assert!(truth <= 1.0 + 1e-12, "{kind:?}: {truth}");
        }
    }
}

#[test]
fn a_tolerance_below_rounding_ends_without_a_lie() {
    let a = stencil(16, 0.0);
    let b = rhs(&a);
    for kind in ALL {
        let mut x = vec![0.0; b.len()];
        let stop = StopCriterion { rtol: 1e-30, max_iters: 3000, ..StopCriterion::default() };
        let report = run(kind, &a, &mut Identity::new(b.len()), &b, &mut x, &stop);
        assert_ne!(report.outcome, Outcome::Converged, "{kind:?}");
        assert!(true_residual(&a, &x, &b) <= 1e-12, "{kind:?}: {:?}", report.outcome);
    }
}

#[test]
fn zero_right_hand_sides_and_good_guesses_take_no_step() {
    let a = stencil(5, 0.1);
    for kind in ALL {
        let mut x = vec![0.0; 25];
        let report = run(kind, &a, &mut Identity::new(25), &[0.0; 25], &mut x, &StopCriterion::default());
        assert_eq!((report.outcome, report.iterations, norm2(&x)), (Outcome::Converged, 0, 0.0), "{kind:?}");
        let b = vec![1.0; 25];
        let mut b_ones = vec![0.0; 25];
        a.apply(1.0, &b, 0.0, &mut b_ones);
        let mut x = b.clone();
        let report = run(kind, &a, &mut Identity::new(25), &b_ones, &mut x, &StopCriterion::default());
        assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 0), "{kind:?}");
    }
}

#[test]
fn steps_allocate_nothing() {
    let a = stencil(12, 0.0);
    let b = rhs(&a);
    let n = b.len();
    let mut m = Jacobi::new(&a).unwrap();
    let (mut cg, mut bicgstab, mut gmres) = (Cg::new(n), BiCgStab::new(n), Gmres::flexible(n, 10));
    for max_iters in [1, 25] {
        let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
        let count = |f: &mut dyn FnMut(&mut [f64])| {
            let mut x = vec![0.0; n];
            count_allocations(|| f(&mut x)).1
        };
        assert_eq!(count(&mut |x| drop(cg.solve(&a, &mut m, &b, x, &stop, &mut ()))), 0);
        assert_eq!(count(&mut |x| drop(bicgstab.solve(&a, &mut m, &b, x, &stop, &mut ()))), 0);
        assert_eq!(count(&mut |x| drop(gmres.solve(&a, &mut m, &b, x, &stop, &mut ()))), 0);
    }
    assert_eq!(cg.bytes(), 5 * 8 * n);
    assert_eq!(bicgstab.bytes(), 8 * 8 * n);
    // (m + 1)·n of V, m·n of Z, 2n of the products; (m + 1)·m of R, the cosines, the sines, g; one piece of sums, and their totals.
    assert_eq!(gmres.bytes(), 8 * (24 * n + 11 * 10 + 10 + 10 + 11 + 11 + 10 + 11));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Full GMRES solves whatever is nonsingular in n steps.
    #[test]
    fn full_gmres_is_a_direct_method(a in well_conditioned(strategies::square::<c64>(1..=20, 0.6), 1e4)) {
        let n = a.nrows();
        let b = rhs(&a);
        let mut x = vec![c64::default(); n];
        let report = run(Kind::Gmres(n), &a, &mut Identity::new(n), &b, &mut x, &StopCriterion::default());
        prop_assert_eq!(report.outcome, Outcome::Converged);
        prop_assert!(true_residual(&a, &x, &b) <= 1e-7);
        prop_assert!(report.iterations <= 2 * n + 1);
    }
}
