//! Tridiagonal SPIKE: any partitions agree with pivoted LU, singular partitions are survived or named, ../shared, threads.

use bt_direct::spike::{Partitions, TridiagonalSolver};
use bt_direct::{FactorError, Factorization, TridiagonalLu, TridiagonalSpike};
use bt_formats::{Op, Scalar, Tridiagonal, c64};
use proptest::prelude::*;

use crate::common::{OPS, Random, backward_error, check_agreement, check_contract, data, read_matrix, read_vector};

const SOLVERS: [TridiagonalSolver; 3] =
    [TridiagonalSolver::Givens, TridiagonalSolver::Lu, TridiagonalSolver::DiagonalPivoting];

fn random<T: Scalar>(n: usize, weight: f64, seed: u64) -> Tridiagonal<T> {
    let mut random = Random::new(seed);
    let mut column = |skip: Option<usize>, plus: f64| -> Vec<T> {
        let value = |i| if Some(i) == skip { bt_formats::zero() } else { random.scalar::<T>() + T::rounded(plus, 0.0) };
        (0..n).map(value).collect()
    };
    Tridiagonal::new(column(Some(0), 0.0), column(None, weight), column(Some(n - 1), 0.0)).unwrap()
}

/// Constant diagonals.
fn toeplitz(n: usize, [l, d, u]: [f64; 3]) -> Tridiagonal<f64> {
    let (mut lower, mut upper) = (vec![l; n], vec![u; n]);
    (lower[0], upper[n - 1]) = (0.0, 0.0);
    Tridiagonal::new(lower, vec![d; n], upper).unwrap()
}

fn factor<T: Scalar>(
    a: &Tridiagonal<T>,
    partitions: Vec<usize>,
    solver: TridiagonalSolver,
) -> Result<TridiagonalSpike<T>, FactorError> {
    TridiagonalSpike::with_options(a, &Partitions::Sizes(partitions), solver, &mut ())
}

fn check<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) {
    let n = sizes.iter().sum();
    let a = random::<T>(n, weight, seed);
    let lu = TridiagonalLu::new(&a).unwrap();
    if lu.rcond() < 1e-5 {
        return;
    }
    for solver in SOLVERS {
        match factor(&a, sizes.to_vec(), solver) {
            Ok(f) if f.stats().growth <= 1e6 => {
                check_contract(&a, &f, seed);
                check_agreement(&a, &f, seed);
            }
            Ok(_) | Err(FactorError::Breakdown { .. }) if solver != TridiagonalSolver::Givens && weight < 3.0 => {}
            other => panic!("{solver:?}: {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn any_partitions(sizes in prop::collection::vec(2usize..9, 1..6), weight in 0.0f64..5.0, seed: u64) {
        check::<f64>(&sizes, weight, seed);
        check::<c64>(&sizes, weight, seed);
        check::<f32>(&sizes, weight, seed);
    }
}

#[test]
fn the_smallest_sizes() {
    for n in 1..8 {
        check::<f64>(&[n], 4.0, n as u64);
    }
    check::<f64>(&[2, 2, 2, 2], 4.0, 5);
    assert!(matches!(
        factor(&toeplitz(4, [1.0, 4.0, 1.0]), vec![1, 3], TridiagonalSolver::Lu),
        Err(FactorError::Input(_))
    ));
}

#[test]
fn singular_partitions_are_survived_by_rotations() {
    // A zero diagonal: every partition of odd size is singular. Then with a diagonal that almost vanishes.
    for d in [0.0, 1e-17, 1e-9] {
        let a = toeplitz(30, [1.0, d, 1.0]);
        for sizes in [vec![15, 15], vec![7, 9, 9, 5], vec![11, 10, 9], vec![3; 10], vec![30]] {
            let f = factor(&a, sizes.clone(), TridiagonalSolver::Givens).unwrap();
            assert!(f.stats().growth < 10.0, "{sizes:?}: {}", f.stats().growth);
            check_contract(&a, &f, 3);
            // An interior of odd size is singular: said, never answered wrongly.
            for solver in [TridiagonalSolver::Lu, TridiagonalSolver::DiagonalPivoting] {
                match factor(&a, sizes.clone(), solver) {
                    Ok(f) => {
                        let b: Vec<f64> = (0..30).map(f64::from).collect();
                        let error = backward_error(&a, &f, Op::Identity, &b);
                        assert!(error <= 1e-15 * f.stats().growth.max(1.0) * 30.0, "{error:e}");
                    }
                    Err(FactorError::Breakdown { reason, .. }) => assert!(reason.contains("row"), "{reason}"),
                    Err(e) => panic!("{e}"),
                }
            }
        }
    }
}

#[test]
fn a_singular_matrix_is_named() {
    // Column 4 is empty.
    let mut a = toeplitz(9, [1.0, 4.0, 1.0]).into_parts();
    (a.0[5], a.1[4], a.2[3]) = (0.0, 0.0, 0.0);
    let a = Tridiagonal::new(a.0, a.1, a.2).unwrap();
    for sizes in [vec![9], vec![4, 5], vec![5, 4], vec![3, 3, 3]] {
        for solver in SOLVERS {
            // Rotations lose nothing and prove it; the others say where they met it.
            match factor(&a, sizes.clone(), solver) {
                Err(FactorError::Singular(place)) if solver == TridiagonalSolver::Givens => {
                    assert_eq!(place.column, 4, "{sizes:?}");
                }
                Err(FactorError::Breakdown { reason, .. }) if solver != TridiagonalSolver::Givens => {
                    assert!(reason.contains("row 4") || reason.contains("column 4"), "{sizes:?} {solver:?}: {reason}");
                }
                _ => panic!("{sizes:?} {solver:?}"),
            }
        }
    }
}

#[test]
fn lu_says_which_row_loses_its_digits() {
    let mut a = toeplitz(12, [1.0, 3.0, 1.0]).into_parts();
    // Row 1 of the interior has the pivot 3, row 2 3 − 1/3, so that next to nothing is left of row 3.
    a.1[3] = 1e-12 + 0.375;
    let a = Tridiagonal::new(a.0, a.1, a.2).unwrap();
    let message = factor(&a, vec![6, 6], TridiagonalSolver::Lu).unwrap_err().to_string();
    assert!(message.contains("spike-lu") && message.contains("row 3 "), "{message}");
}

#[test]
fn threads_do_not_change_bits() {
    // Enough bytes for two threads.
    let a = random::<f64>(40_000, 0.0, 9);
    let solve = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let f = TridiagonalSpike::new(&a).unwrap();
            assert_eq!(f.partitions().count(), 9);
            OPS.map(|op| {
                let mut x = faer::Mat::from_fn(40_000, 1, |i, _| (i % 7) as f64 - 3.0);
                f.solve_op_in_place(op, x.as_mut());
                x
            })
        })
    };
    let one = solve(1);
    assert!((2..4).all(|threads| solve(threads) == one));
}

#[test]
fn shared_tridiagonal_systems() {
    let Some(folder) = data("tridiag") else { return };
    let (mut seen, mut singular, mut solved) = (0, 0, [0; 3]);
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix("_b.mtx") else { continue };
        let a = Tridiagonal::from_csr(&read_matrix(&folder.join(format!("{stem}.mtx")))).unwrap();
        let b = read_vector(&path);
        let n = b.len();
        if !(60..2000).contains(&n) && n != 50 {
            continue;
        }
        seen += 1;
        singular += usize::from(TridiagonalLu::new(&a).is_err());
        // Odd sizes, even ones, and both.
        for sizes in [vec![n], vec![17, n - 17], vec![n / 3, n / 3 + 1, n - n / 3 * 2 - 1], vec![n / 4; 3]] {
            let mut sizes = sizes;
            let rest = n - sizes.iter().sum::<usize>();
            sizes.extend((rest > 0).then_some(rest));
            for (k, solver) in SOLVERS.into_iter().enumerate() {
                match factor(&a, sizes.clone(), solver) {
                    Ok(f) => {
                        let error = backward_error(&a, &f, Op::Identity, &b);
                        let allowed = if k == 0 { 1e-14 } else { 1e-14 * f.stats().growth.max(1.0) };
                        assert!(error <= allowed, "{stem} {sizes:?} {solver:?}: {error:e}");
                        solved[k] += 1;
                    }
                    Err(FactorError::Breakdown { .. } | FactorError::Singular(_)) if k > 0 => {}
                    Err(e) => {
                        // No better than LU with partial pivoting can do.
                        assert!(TridiagonalLu::new(&a).is_err(), "{stem} {sizes:?}: {e}");
                    }
                }
            }
        }
    }
    println!("{seen} systems, solved with {solved:?}");
    assert!(seen >= 15 && solved[0] + 4 * singular >= 4 * seen, "{singular} singular");
}
