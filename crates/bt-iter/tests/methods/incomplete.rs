//! Incomplete factorizations: exact where nothing is dropped, better than the diagonal where something is.

use bt_formats::{Csr, LinearOperator, Outcome, Scalar, StopCriterion, c32, c64, norm2};
use bt_iter::{
    DroppedFill, Gmres, Identity, IlutOptions, IncompleteLu, Jacobi, Preconditioner, Refactor, TriangularSolves, ilu0,
    ilut,
};
use bt_testkit::strategies::{self, dominant};
use bt_testkit::{csr, stencil};
use proptest::prelude::*;

fn iterations(a: &Csr<f64>, m: &mut dyn Preconditioner<f64>) -> usize {
    let n = a.nrows();
    let b = vec![1.0; n];
    let mut x = vec![0.0; n];
    let report = Gmres::new(n, 60).solve(a, m, &b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
    assert_eq!(report.outcome, Outcome::Converged, "{}", m.name());
    report.iterations
}

#[test]
fn each_is_better_than_the_one_before() {
    let a = stencil(30, 0.4);
    let tight = IlutOptions { fill: 20, drop_tolerance: 1e-3 };
    let mut kinds: [Box<dyn Preconditioner<f64>>; 4] = [
        Box::new(Identity::new(900)),
        Box::new(ilu0(&a, DroppedFill::Forgotten).unwrap()),
        Box::new(ilut(&a, IlutOptions { fill: 5, drop_tolerance: 1e-2 }).unwrap()),
        Box::new(ilut(&a, tight).unwrap()),
    ];
    let counts: Vec<usize> = kinds.iter_mut().map(|m| iterations(&a, &mut **m)).collect();
    assert!(counts.windows(2).all(|w| w[1] < w[0]), "{counts:?}");
    assert_eq!(iterations(&a, &mut Jacobi::new(&a).unwrap()), counts[0]);
    // Fewer entries than the rule allows.
    assert!(kinds[3].nnz() <= 900 * (2 * 20 + 1) && kinds[1].nnz() == 900 * 5 - 4 * 30);
}

#[test]
fn modified_ilu_keeps_row_sums() {
    let a = stencil(12, 0.3);
    let mut m = ilu0(&a, DroppedFill::ToDiagonal).unwrap();
    let (mut sums, mut z) = (vec![0.0; 144], vec![0.0; 144]);
    a.apply(1.0, &[1.0; 144], 0.0, &mut sums);
    // M⁻¹·(A·e) = e
    m.apply(&sums, &mut z);
    assert!(z.iter().all(|z| (z - 1.0).abs() < 1e-12));
    let mut plain = ilu0(&a, DroppedFill::Forgotten).unwrap();
    plain.apply(&sums, &mut z);
    assert!(z.iter().any(|z| (z - 1.0).abs() > 1e-3));
}

#[test]
fn small_pivots_are_replaced_and_counted() {
    // The second pivot is 1 − 1·1 = 0.
    let a = csr(3, |i, j| [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]][i][j]);
    let m = ilu0(&a, DroppedFill::Forgotten).unwrap();
    assert_eq!(m.replaced_pivots(), 1);
    let m = ilut(&a, IlutOptions::default()).unwrap();
    assert_eq!(m.replaced_pivots(), 1);
    // A missing diagonal entry is part of the pattern.
    let cyclic = csr(3, |i, j| if j == (i + 1) % 3 { 1.0 } else { 0.0 });
    assert_eq!(ilu0(&cyclic, DroppedFill::Forgotten).unwrap().replaced_pivots(), 3);
    assert!(ilut(&a, IlutOptions { fill: 1, drop_tolerance: f64::NAN }).is_err());
    let error = ilu0(&csr(2, |_, j| if j == 0 { f64::NAN } else { 1.0 }), DroppedFill::Forgotten).unwrap_err();
    assert!(error.to_string().contains("row 0"), "{error}");
}

fn solve<T: Scalar>(m: &mut IncompleteLu<T>, b: &[T], threads: usize) -> Vec<T> {
    let mut z = vec![T::default(); b.len()];
    pool(threads).install(|| m.apply(b, &mut z));
    z
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn threads_do_not_change_bits() {
    // Two levels of 6000 rows: wide enough to be shared.
    let n = 12_000;
    let (mut ptr, mut idx, mut val) = (vec![0u32], Vec::new(), Vec::new());
    for i in 0..n {
        if i >= 6000 {
            idx.push(i - 6000);
            val.push(0.5 + f64::from(i % 7));
        }
        idx.push(i);
        val.push(9.0);
        if i < 6000 {
            idx.push(i + 6000);
            val.push(1.0 / f64::from(1 + i % 5));
        }
        ptr.push(idx.len() as u32);
    }
    let a = Csr::new(n as usize, n as usize, ptr, idx, val).unwrap();
    let b: Vec<f64> = (0..n).map(|i| f64::from(i % 13) - 6.0).collect();
    // Made by one thread its rows stay as they are, by three they lie level by level.
    let made = [1, 3].map(|threads| pool(threads).install(|| ilu0(&a, DroppedFill::Forgotten).unwrap()));
    assert!(made[0].bytes() < made[1].bytes());
    let one = solve(&mut made[0].clone(), &b, 1);
    for m in made {
        assert_eq!(m.levels(), (2, 2));
        let mut again = m.clone();
        again.refactor(&a).unwrap();
        let mut swept = m.clone().solved_by(TriangularSolves::Sweeps(1));
        for mut m in [m, again] {
            assert_eq!((&one, &one), (&solve(&mut m, &b, 1), &solve(&mut m, &b, 3)));
        }
        assert_eq!((&one, &one), (&solve(&mut swept, &b, 1), &solve(&mut swept, &b, 3)));
    }
    // No fill: M = A.
    let mut product = vec![0.0; n as usize];
    a.apply(1.0, &one, 0.0, &mut product);
    assert!(product.iter().zip(&b).all(|(p, b)| (p - b).abs() < 1e-12));
}

/// From levels − 1 sweeps on nothing is left to sweep.
fn sweeps_end_in_the_solve<T: Scalar>() {
    let a = stencil::<f64>(9, 0.3).cast::<T>();
    let n = 81;
    let b: Vec<T> = (0..n).map(|i| T::rounded(f64::from(i % 13) - 6.0, f64::from(i % 3))).collect();
    for m in [ilu0(&a, DroppedFill::Forgotten).unwrap(), ilut(&a, IlutOptions::default()).unwrap()] {
        let (below, above) = m.levels();
        let most = below.max(above) - 1;
        let exact = solve(&mut m.clone(), &b, 1);
        let distance = |sweeps| {
            let z = solve(&mut m.clone().solved_by(TriangularSolves::Sweeps(sweeps)), &b, 1);
            norm2(&z.iter().zip(&exact).map(|(&z, &e)| z - e).collect::<Vec<T>>())
        };
        assert_eq!((distance(most), distance(most + 3)), (0.0, 0.0));
        let few = [0, 1, 3, 6].map(distance);
        assert!(few.windows(2).all(|w| w[1] < 0.9 * w[0]) && few[3] > 0.0, "{few:?}");
    }
}

#[test]
fn jacobi_sweeps_approach_the_triangular_solves() {
    sweeps_end_in_the_solve::<f32>();
    sweeps_end_in_the_solve::<f64>();
    sweeps_end_in_the_solve::<c32>();
    sweeps_end_in_the_solve::<c64>();
    // Rows in pieces for threads: the same bits.
    let a = stencil(60, 0.4);
    let b: Vec<f64> = (0..3600).map(|i| f64::from(i % 13) - 6.0).collect();
    let mut m = ilu0(&a, DroppedFill::Forgotten).unwrap().solved_by(TriangularSolves::Sweeps(3));
    assert_eq!(solve(&mut m, &b, 1), solve(&mut m, &b, 3));
    // More sweeps, fewer iterations, down to those of exact solves.
    let a = stencil(30, 0.4);
    let factors = ilu0(&a, DroppedFill::Forgotten).unwrap();
    let with = |sweeps| iterations(&a, &mut factors.clone().solved_by(TriangularSolves::Sweeps(sweeps)));
    let counts = [1, 3, 58].map(with);
    assert!(counts[2] < counts[1] && counts[1] < counts[0], "{counts:?}");
    assert_eq!(counts[2], iterations(&a, &mut factors.clone()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// With all fill kept, ILUT is the LU factorization of a dominant matrix.
    #[test]
    fn ilut_without_dropping_is_exact(a in strategies::square::<c64>(1..=16, 0.4).prop_map(|a| dominant(&a))) {
        let n = a.nrows();
        let mut m = ilut(&a, IlutOptions { fill: n, drop_tolerance: 0.0 }).unwrap();
        let x: Vec<c64> = (0..n).map(|i| c64::new(1.0 + i as f64, -0.5)).collect();
        let (mut b, mut z) = (vec![c64::default(); n], vec![c64::default(); n]);
        a.apply(c64::new(1.0, 0.0), &x, c64::default(), &mut b);
        m.apply(&b, &mut z);
        for (z, x) in z.iter().zip(&x) {
            prop_assert!((z - x).norm() <= 1e-11 * (n as f64 + 1.0), "{} {}", z, x);
        }
        prop_assert_eq!(m.replaced_pivots(), 0);
    }
}
