//! Elimination without pivoting, with and without butterflies, against dense oracles: hard matrices, sizes around those
//! of the kernels, all scalars, threads.

use bt_direct::refine::unit_roundoff;
use bt_direct::{
    DenseMatrix, FactorError, Factorization, Fallback, FallbackReason, NoPivotLu, PartialPivotLu, Place, Rbt,
    RbtOptions, Refinement, refine,
};
use bt_formats::{Op, Progress, Scalar, c32, c64, certify};
use bt_testkit::contract::factorization_contract;
use bt_testkit::random_vector;
use faer::{Mat, MatRef};
use proptest::prelude::*;

const OPS: [Op; 3] = [Op::Identity, Op::Transpose, Op::Adjoint];

fn random<T: Scalar>(n: usize, seed: u64) -> Mat<T> {
    let values = random_vector::<T>(n * n, seed);
    Mat::from_fn(n, n, |i, j| values[j * n + i])
}

/// Diagonally dominant by columns: no pivoting needed.
fn dominant<T: Scalar>(n: usize, seed: u64) -> Mat<T> {
    let mut a = random::<T>(n, seed);
    for j in 0..n {
        a[(j, j)] += T::rounded(2.0 * n as f64, 0.0);
    }
    a
}

/// Q of a random matrix.
fn orthogonal<T: Scalar>(n: usize, seed: u64) -> Mat<T> {
    random::<T>(n, seed).qr().compute_Q()
}

/// 1 on the diagonal and in the last column, −1 below: partial pivoting grows by 2^(n−1).
fn wilkinson<T: Scalar>(n: usize) -> Mat<T> {
    let value = |i: usize, j: usize| if i == j || j + 1 == n { 1.0 } else { -f64::from(i > j) };
    Mat::from_fn(n, n, |i, j| T::rounded(value(i, j), 0.0))
}

/// [0 I; I 0], and a last 1 for odd n: no pivot on the diagonal.
fn exchange<T: Scalar>(n: usize) -> Mat<T> {
    let h = n / 2;
    Mat::from_fn(n, n, |i, j| T::rounded(f64::from(i + h == j || j + h == i || (i == j && i == 2 * h)), 0.0))
}

/// Rows and columns scaled over 2^±`range`.
fn scaled<T: Scalar>(mut a: Mat<T>, range: i32) -> Mat<T> {
    let n = a.nrows();
    let factor = |i: usize| T::rounded(2f64.powi((i as i32 * 7) % (2 * range + 1) - range), 0.0);
    for j in 0..n {
        for i in 0..n {
            a[(i, j)] *= factor(i) * factor(j + 3);
        }
    }
    a
}

/// Largest backward error of refined solutions with A, Aᵀ and Aᴴ, and the one before refinement.
fn errors<T: Scalar>(a: MatRef<'_, T>, f: &dyn Factorization<T>) -> (f64, f64) {
    let n = a.nrows();
    let view = DenseMatrix::new(a);
    let b = Mat::from_fn(n, 5, |i, j| T::rounded(1.0 + ((i + 2 * j) % 7) as f64, ((3 * i + j) % 4) as f64));
    OPS.into_iter().fold((0.0, 0.0), |worst: (f64, f64), op| {
        let mut x = b.clone();
        f.solve_op_in_place(op, x.as_mut());
        let first = certify(&view, op, x.as_ref(), b.as_ref()).backward_error;
        let refined = refine(&view, f, op, b.as_ref(), &mut x, Refinement::Auto).certificate.backward_error;
        (worst.0.max(refined), worst.1.max(first))
    })
}

fn check_hard<T: Scalar>() {
    let u = unit_roundoff::<T>();
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 40, 63, 64, 65, 88, 128, 129] {
        let matrices = [
            ("random", random::<T>(n, n as u64)),
            ("orthogonal", orthogonal(n, n as u64)),
            ("wilkinson", wilkinson(n)),
            ("exchange", exchange(n)),
            ("badly scaled", scaled(random::<T>(n, 3 * n as u64), 8)),
        ];
        for (name, a) in matrices {
            let f = Rbt::new(a.as_ref()).unwrap_or_else(|e| panic!("{name}, n = {n}: {e}"));
            let (refined, first) = errors(a.as_ref(), &f);
            // What was accepted is within the trial's tolerance, give or take the right-hand side.
            assert!(first <= 1e3 * u.powf(2.0 / 3.0), "{name}, n = {n}: {first:e}, {:?}", f.fallback());
            assert!(refined <= 4.0 * (n as f64).max(4.0) * u, "{name}, n = {n}: {refined:e}, {:?}", f.fallback());
            // The butterflies mix rows n/4 apart: those that the exchange needs, when n is a power of two.
            // In single precision the tolerance of the trial is near what butterflies leave.
            let double = u < 1e-10;
            if (name == "orthogonal" && double) || (name == "exchange" && n.is_power_of_two() && n > 1) {
                assert_eq!(f.fallback(), None, "{name}, n = {n}");
            }
        }
    }
}

#[test]
fn hard_matrices_f32() {
    check_hard::<f32>();
}
#[test]
fn hard_matrices_f64() {
    check_hard::<f64>();
}
#[test]
fn hard_matrices_c32() {
    check_hard::<c32>();
}
#[test]
fn hard_matrices_c64() {
    check_hard::<c64>();
}

fn check_dominant<T: Scalar>(sizes: &[usize]) {
    for &n in sizes {
        let a = dominant::<T>(n, n as u64);
        for f in [&NoPivotLu::new(a.as_ref()).unwrap() as &dyn Factorization<T>, &Rbt::new(a.as_ref()).unwrap()] {
            factorization_contract(f, &DenseMatrix::new(a.as_ref()))
                .unwrap_or_else(|e| panic!("{}, n = {n}: {e}", f.method()));
        }
        let growth = NoPivotLu::new(a.as_ref()).unwrap().stats().growth;
        assert!(growth <= 2.0 * 2f64.sqrt(), "dominant by columns: growth {growth}");
    }
}

#[test]
fn dominant_matrices_f64() {
    check_dominant::<f64>(&[1, 6, 8, 31, 32, 40, 65, 96, 136]);
}
#[test]
fn dominant_matrices_f32() {
    check_dominant::<f32>(&[1, 6, 8, 31, 32, 65]);
}
#[test]
fn dominant_matrices_c64() {
    check_dominant::<c64>(&[1, 6, 8, 31, 32, 65]);
}
#[test]
fn dominant_matrices_c32() {
    check_dominant::<c32>(&[1, 6, 8, 31, 32, 65]);
}

/// L·U is A, element by element, within what Higham's theorem 9.3 allows; and what is measured is what it says.
#[test]
fn factors_multiply_to_the_matrix() {
    for n in [24, 40, 104, 264, 600] {
        let a = dominant::<f64>(n, 5);
        let lu = NoPivotLu::new(a.as_ref()).unwrap();
        // Unit vectors through A⁻¹ and back through A.
        let mut x = Mat::<f64>::identity(n, n);
        lu.solve_in_place(x.as_mut());
        let difference = &a * &x - Mat::<f64>::identity(n, n);
        assert!(difference.norm_max() < 1e-13, "{n}: {:e}", difference.norm_max());
    }
}

#[test]
fn growth_is_a_breakdown_that_names_the_column() {
    for k in [0, 5, 31, 32, 70] {
        let mut a = dominant::<f64>(100, 1);
        for j in 0..100 {
            (a[(k, j)], a[(j, k)]) = (0.0, 0.0);
        }
        // [1e-13 1; 1 1] in rows and columns k and 99.
        (a[(k, k)], a[(k, 99)], a[(99, k)]) = (1e-11, 200.0, 200.0);
        let Err(FactorError::Breakdown { method, place, reason }) = NoPivotLu::new(a.as_ref()) else {
            panic!("column {k}")
        };
        assert_eq!(place, Some(Place::Column(k)));
        assert!(method == "genp" && reason.contains(&format!("column {k} ")) && reason.contains("rbt"), "{reason}");
        let options = RbtOptions { depth: 0, ..RbtOptions::default() };
        let f = Rbt::with_options(a.as_ref(), options, &mut ()).unwrap();
        assert!(matches!(f.fallback(), Some(FallbackReason::Growth(_))), "{:?}", f.fallback());
        assert!(errors(a.as_ref(), &f).1 < 1e-14);
        // The butterflies need no pivots.
        assert_eq!(Rbt::new(a.as_ref()).unwrap().fallback(), None);
        a[(k, k)] = 0.0;
        let Err(FactorError::Breakdown { place, reason, .. }) = NoPivotLu::new(a.as_ref()) else {
            panic!("column {k}")
        };
        assert_eq!(place, Some(Place::Column(k)));
        assert!(reason.contains(&format!("column {k} ")), "{reason}");
    }
}

/// Growth of some hundreds passes the first checks; only the trial solve can tell.
#[test]
fn the_trial_solve_catches_what_growth_lets_pass() {
    let options = RbtOptions { depth: 0, ..RbtOptions::default() };
    let (mut accepted, mut caught) = (0, 0);
    for seed in 0..40 {
        let a = random::<f32>(64, seed);
        let f = Rbt::with_options(a.as_ref(), options, &mut ()).unwrap();
        let error = errors(a.as_ref(), &f).1;
        match f.fallback() {
            None => {
                accepted += 1;
                assert!(error < 1e-3, "seed {seed}: {error:e}");
            }
            Some(reason) => {
                assert!(error < 1e-5, "seed {seed}: {error:e} after a fallback");
                if let FallbackReason::BackwardError(_) = reason {
                    caught += 1;
                    let refused = RbtOptions { fallback: Fallback::Error, ..options };
                    let e = Rbt::with_options(a.as_ref(), refused, &mut ()).unwrap_err().to_string();
                    assert!(e.contains("backward error") && e.contains("dense-lu"), "{e}");
                }
            }
        }
    }
    assert!(accepted > 0 && caught > 0, "{accepted} accepted, {caught} caught");
}

#[test]
fn scales_at_the_ends_of_the_range() {
    for exponent in [-1000, -300, 300, 1000] {
        let s = 2f64.powi(exponent);
        let mut a = orthogonal::<f64>(20, 3);
        a *= faer::Scale(s);
        for f in [&Rbt::new(a.as_ref()).unwrap() as &dyn Factorization<f64>, &PartialPivotLu::new(a.as_ref()).unwrap()]
        {
            let x: Vec<f64> = random_vector(20, 4);
            let mut b = vec![0.0; 20];
            bt_formats::LinearOperator::apply(&DenseMatrix::new(a.as_ref()), 1.0, &x, 0.0, &mut b);
            f.solve_vec_in_place(&mut b);
            let error = x.iter().zip(&b).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
            assert!(error < 1e-12, "{}, 2^{exponent}: {error:e}", f.method());
            let log = f.log_det().log_abs - 20.0 * f64::from(exponent) * std::f64::consts::LN_2;
            assert!(log.abs() < 1e-10, "{}: {log}", f.method());
        }
    }
}

#[test]
fn threads_do_not_change_bits() {
    let n = 600;
    let a = random::<f64>(n, 9);
    let solve = || {
        let f = Rbt::new(a.as_ref()).unwrap();
        let mut x = vec![1.0; n];
        f.solve_vec_in_place(&mut x);
        (x, f.log_det().log_abs, f.stats().growth, f.fallback())
    };
    let pools = [1, 2, 3].map(|t| rayon::ThreadPoolBuilder::new().num_threads(t).build().unwrap().install(solve));
    assert!(pools[0].3.is_none(), "{:?}", pools[0].3);
    assert!(pools[0] == pools[1] && pools[0] == pools[2]);
}

#[test]
fn seeds_and_depths_are_the_callers() {
    let a = random::<f64>(60, 1);
    let solve = |depth, seed| {
        let f = Rbt::with_options(a.as_ref(), RbtOptions { depth, seed, fallback: Fallback::Error }, &mut ()).unwrap();
        assert_eq!((f.options().depth, f.options().seed), (depth, seed));
        let mut x = vec![1.0; 60];
        f.solve_vec_in_place(&mut x);
        x
    };
    assert_eq!(solve(2, 1), solve(2, 1));
    assert_ne!(solve(2, 1), solve(2, 2));
    for depth in 1..=4 {
        let close = solve(depth, 5).iter().zip(solve(2, 1)).all(|(x, y)| (x - y).abs() < 1e-7 * (1.0 + y.abs()));
        assert!(close, "depth {depth}");
    }
    let deep = RbtOptions { depth: 5, ..RbtOptions::default() };
    assert!(matches!(Rbt::with_options(a.as_ref(), deep, &mut ()), Err(FactorError::Input(_))));
}

#[test]
fn monitors_stop_and_factors_come_back() {
    let a = dominant::<f64>(100, 3);
    let mut f = Rbt::new(a.as_ref()).unwrap();
    let mut seen = Vec::new();
    let mut stop_late = |p: Progress| {
        if let Progress::Step { done, total, .. } = p {
            seen.push((done, total));
        }
        if seen.len() == 3 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    assert!(matches!(f.refactor_with_monitor(a.as_ref(), &mut stop_late), Err(FactorError::Stopped)));
    assert_eq!(seen, [(0, 104), (32, 104), (64, 104)]);
    let mut x = vec![1.0; 100];
    f.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|v| v.is_nan()));
    f.refactor(a.as_ref()).unwrap();
    assert!(errors(a.as_ref(), &f).1 < 1e-14);
    let mut genp = NoPivotLu::new(a.as_ref()).unwrap();
    let stop = &mut |_: Progress| std::ops::ControlFlow::Break(());
    assert!(matches!(genp.refactor_with_monitor(a.as_ref(), stop), Err(FactorError::Stopped)));
    assert!(matches!(genp.refactor(dominant::<f64>(99, 3).as_ref()), Err(FactorError::Input(_))));
}

#[test]
fn any_strides_are_read() {
    let a = random::<f64>(37, 8);
    let transposed = a.transpose().to_owned();
    let mut x = vec![1.0; 37];
    let mut y = x.clone();
    Rbt::new(a.as_ref()).unwrap().solve_vec_in_place(&mut x);
    Rbt::new(transposed.as_ref().transpose()).unwrap().solve_vec_in_place(&mut y);
    assert_eq!(x, y);
}

#[test]
fn storage_is_what_the_formula_says() {
    for n in [8, 64, 100] {
        let a = dominant::<f64>(n, 1);
        let padded = n.next_multiple_of(8);
        let ld = if padded * 8 >= 512 { padded + 8 } else { padded };
        assert_eq!(NoPivotLu::new(a.as_ref()).unwrap().stats().bytes, 8 * padded * ld);
        assert_eq!(Rbt::new(a.as_ref()).unwrap().stats().bytes, 8 * padded * ld + 2 * 2 * 8 * padded);
        assert!(NoPivotLu::<f64>::bytes(n) >= (8 * padded * ld) as f64);
    }
    assert_eq!(NoPivotLu::<f64>::flops(30), 18000.0);
    assert_eq!(Rbt::<f64>::flops(30, 2), 18000.0 + 900.0 * 16.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every method, on any matrix of any size, gives a small backward error, an error, or says that it pivots.
    #[test]
    fn answers_are_right_or_refused(n in 1usize..=40, seed in any::<u64>(), zeros in 0usize..4) {
        let mut a = random::<f64>(n, seed);
        // Zeros in places that elimination in order would divide by.
        for k in 0..zeros.min(n) {
            a[(k, k)] = 0.0;
        }
        let u = unit_roundoff::<f64>();
        match Rbt::new(a.as_ref()) {
            Ok(f) => {
                let (refined, first) = errors(a.as_ref(), &f);
                prop_assert!(refined <= 4.0 * n.max(4) as f64 * u && first < 1e-8, "{first:e}, {refined:e}");
            }
            // A 1 × 1 zero, or rows of zeros.
            Err(FactorError::Singular(_)) => prop_assert!(zeros > 0),
            Err(e) => prop_assert!(false, "{e}"),
        }
        match NoPivotLu::new(a.as_ref()) {
            Ok(f) => {
                let allowed = 30.0 * (n + 1) as f64 * u * f.stats().growth.max(1.0);
                prop_assert!(errors(a.as_ref(), &f).1 <= allowed);
            }
            Err(FactorError::Breakdown { .. }) => {}
            Err(e) => prop_assert!(false, "{e}"),
        }
    }
}
