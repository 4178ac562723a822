//! Matrices given as three diagonals, with corners or without, a band, blocks and all numbers: the answers and verdicts of
//! compressed rows, by methods for the format.

use blocktri::faer::Mat;
use blocktri::{
    Band, BlockTridiagonal, Csr, Cyclic, Error, Given, Op, Outcome, Partition, Reorder, Scalar, SolveOptions, Solver,
    Tridiagonal, c64, solve,
};
use bt_formats::{HybridLayout, Matrix, Par, RealScalar, one, zero};

const N: usize = 1200;

/// Numbers without a pattern, off the diagonal below 1.
fn entry<T: Scalar>(i: usize, j: usize, diagonal: f64) -> T {
    let noise = |a: usize| ((a * 7919 + i * 104_729 + j * 1_299_709) % 1009) as f64 / 1009.0 - 0.5;
    if i == j { T::rounded(diagonal + noise(1), noise(2)) } else { T::rounded(noise(1), noise(2)) }
}

/// A tridiagonal matrix, and the same by rows.
fn tridiagonal<T: Scalar>(n: usize, diagonal: f64) -> Tridiagonal<T> {
    let at = |i: usize, j: usize| entry::<T>(i, j, diagonal);
    let lower = (0..n).map(|i| if i > 0 { at(i, i - 1) } else { zero() }).collect();
    let upper = (0..n).map(|i| if i + 1 < n { at(i, i + 1) } else { zero() }).collect();
    Tridiagonal::new(lower, (0..n).map(|i| at(i, i)).collect(), upper).unwrap()
}

/// The same with corners.
fn cyclic<T: Scalar>(n: usize, diagonal: f64) -> Cyclic<T> {
    Cyclic::new(tridiagonal(n, diagonal), entry(n - 1, 0, diagonal), entry(0, n - 1, diagonal)).unwrap()
}

fn band<T: Scalar>(n: usize, (kl, ku): (usize, usize), diagonal: f64) -> Band<T> {
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = entry(i, j, diagonal);
        }
    }
    a
}

fn blocks<T: Scalar>(n: usize, k: usize, diagonal: f64) -> BlockTridiagonal<T> {
    let a = band::<T>(n, (2 * k - 1, 2 * k - 1), diagonal).to_csr().unwrap();
    let partition = Partition::uniform(n, k).unwrap();
    let of = |i: usize| i / k;
    let mut entries = bt_formats::Coo::new(n, n).unwrap();
    a.for_each_entry(&mut |i, j, v| {
        if of(i).abs_diff(of(j)) < 2 {
            entries.push(i, j, v).unwrap();
        }
    });
    BlockTridiagonal::from_csr(&entries.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn unknowns<T: Scalar>(n: usize) -> Mat<T> {
    Mat::from_fn(n, 2, |i, j| T::rounded(1.0 + ((7 * i + j) % 11) as f64, (i % 4) as f64))
}

/// Answers in the format and by rows: op(A), good certificates, the same unknowns.
fn check<'a, T: Scalar, A: Matrix<T>>(a: &'a A, name: &str, method: &str)
where
    Given<'a, T>: From<&'a A>,
{
    let rows = Given::from(a).csr().unwrap().into_owned();
    let x = unknowns::<T>(a.nrows());
    let solver = Solver::new(a, &SolveOptions::by(crate::common::named(name)), &mut ()).unwrap();
    assert_eq!(solver.method().name(), method);
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let mut b = Mat::zeros(x.nrows(), x.ncols());
        rows.apply_many(op, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
        let found = solver.solve_op(op, b.as_ref()).unwrap();
        assert_eq!(found.report.outcome, Outcome::Converged, "{name} {op:?}");
        assert!((&found.x - &x).norm_max().to_f64() < 1e-9, "{name} {op:?}: {}", (&found.x - &x).norm_max().to_f64());
        let again = bt_formats::certify(&rows, op, found.x.as_ref(), b.as_ref());
        assert!(again.backward_error <= 2.0 * found.report.certificate.backward_error + 1e-16, "{name} {op:?}");
    }
    let by_rows = Solver::new(&rows, &SolveOptions::by(crate::common::named(name)), &mut ()).unwrap();
    let (own, other) = (solver.log_det().log_abs, by_rows.log_det().log_abs);
    assert!((own - other).abs() < 1e-9 * other.abs(), "{name}: {own} and {other}");
    assert!((solver.rcond().unwrap() / by_rows.rcond().unwrap()).ln().abs() < 0.7, "{name}");
}

#[test]
fn a_format_is_solved_by_its_own_methods() {
    fn all<T: Scalar>()
    where
        Csr<T>: Sized,
    {
        check::<T, _>(&tridiagonal::<T>(N, 4.0), "auto", "thomas");
        check::<T, _>(&tridiagonal::<T>(N, 0.5), "auto", "tridiagonal-lu");
        check::<T, _>(&tridiagonal::<T>(N, 4.0), "cyclic-reduction", "cyclic-reduction");
        check::<T, _>(&cyclic::<T>(N, 4.0), "auto", "periodic-lu");
        check::<T, _>(&cyclic::<T>(N, 0.5), "periodic-lu", "periodic-lu");
        check::<T, _>(&band::<T>(N, (3, 2), 0.5), "auto", "band-lu");
        check::<T, _>(&band::<T>(N, (3, 2), 9.0), "band-lu-nopivot", "band-lu-nopivot");
        check::<T, _>(&band::<T>(N, (3, 2), 9.0), "spike", "spike");
        check::<T, _>(&blocks::<T>(N, 5, 6.0), "auto", "block-lu");
        check::<T, _>(&blocks::<T>(N, 5, 0.5), "block-lu-across", "block-lu-across");
    }
    all::<f64>();
    all::<c64>();
}

#[test]
fn half_of_a_hermitian_band_is_factored_where_it_is_definite() {
    // Overlaps of intervals of 40 points, and one on the diagonal: definite, not dominant.
    let mut a = Band::zeros(N, 40, 40).unwrap();
    for j in 0..N {
        for i in a.column_range(j) {
            let overlap = 40.0 - i.abs_diff(j) as f64;
            *a.get_mut(i, j) = c64::from_polar(overlap, i as f64 - j as f64);
        }
        *a.get_mut(j, j) = c64::new(41.0, 0.0);
    }
    check::<c64, _>(&a, "band-cholesky", "band-cholesky");
    *a.get_mut(7, 7) = c64::new(1e-3, 0.0);
    let error = Solver::new(&a, &SolveOptions::by(crate::common::named("band-cholesky")), &mut ()).err().unwrap();
    assert!(error.to_string().contains("not positive definite"), "{error}");
    check::<c64, _>(&a, "auto", "band-lu");
}

#[test]
fn new_values_in_the_format_make_what_a_new_solver_is() {
    fn check<'a, A: Matrix<f64>>(old: &'a A, new: &'a A)
    where
        Given<'a, f64>: From<&'a A>,
    {
        let b = unknowns::<f64>(N);
        let mut solver = Solver::new(old, &SolveOptions::default(), &mut ()).unwrap();
        solver.refactor(new, &mut ()).unwrap();
        let (found, fresh) = (solver.solve(b.as_ref()).unwrap(), Solver::new(new, &SolveOptions::default(), &mut ()));
        assert_eq!(found.x, fresh.unwrap().solve(b.as_ref()).unwrap().x);
        // In another format, and of another size.
        let rows = Given::from(old).csr().unwrap();
        solver.refactor(&*rows, &mut ()).unwrap();
        assert_eq!(solver.solve(b.as_ref()).unwrap().report.outcome, Outcome::Converged);
        let other = tridiagonal::<f64>(7, 4.0);
        assert!(matches!(solver.refactor(&other, &mut ()), Err(Error::Input(_))));
        assert_eq!(solver.solve(b.as_ref()).unwrap().report.outcome, Outcome::Converged);
    }
    check(&tridiagonal(N, 4.0), &tridiagonal(N, 5.0));
    check(&tridiagonal(N, 0.5), &tridiagonal(N, 0.25));
    check(&cyclic(N, 4.0), &cyclic(N, 0.5));
    check(&band(N, (2, 3), 1.5), &band(N, (2, 3), 0.5));
    check(&blocks(N, 4, 5.0), &blocks(N, 4, 6.0));
}

#[test]
fn full_matrices_are_factored_as_they_stand() {
    let full = |diagonal: f64| Mat::from_fn(60, 60, |i, j| entry::<f64>(i, j, diagonal));
    let (old, new) = (full(9.0), full(12.0));
    let b = unknowns::<f64>(60);
    let auto = SolveOptions::default();
    let mut solver = Solver::new(old.as_ref(), &auto, &mut ()).unwrap();
    assert_eq!(solver.method().name(), "dense-lu");
    solver.refactor(new.as_ref(), &mut ()).unwrap();
    let found = solver.solve(b.as_ref()).unwrap();
    assert_eq!(found.report.outcome, Outcome::Converged);
    assert_eq!(found.x, solve(new.as_ref(), b.as_ref(), &auto, &mut ()).unwrap().x);
    let rows = Csr::from_dense(new.as_ref()).unwrap();
    assert!((&found.x - solve(&rows, b.as_ref(), &auto, &mut ()).unwrap().x).norm_max() < 1e-11);
    // By name: where the method works on all numbers, and where it does not.
    for name in ["genp", "dense-lu-doubled", "sparse-lu", "gmres"] {
        let answer = solve(old.as_ref(), b.as_ref(), &SolveOptions::by(crate::common::named(name)), &mut ()).unwrap();
        assert_eq!(answer.report.method, name);
    }
    // Of one that is mostly zeros the structure is found.
    let sparse = tridiagonal::<f64>(60, 4.0).to_csr().unwrap().to_dense();
    assert_eq!(solve(sparse.as_ref(), b.as_ref(), &auto, &mut ()).unwrap().report.method, "thomas");
    let mut broken = old;
    broken[(7, 9)] = f64::NAN;
    let error = solve(broken.as_ref(), b.as_ref(), &auto, &mut ()).unwrap_err().to_string();
    assert!(error.contains("row 7, column 9"), "{error}");
}

#[test]
fn a_failed_refactorization_leaves_the_answers_that_there_were() {
    let (a, b) = (tridiagonal::<f64>(N, 4.0), unknowns::<f64>(N));
    let mut solver = Solver::new(&a, &SolveOptions::default(), &mut ()).unwrap();
    let before = solver.solve(b.as_ref()).unwrap().x;
    let (mut lower, mut diag, mut upper) = a.clone().into_parts();
    (lower[5], diag[5], upper[5]) = (0.0, 0.0, 0.0);
    let singular = Tridiagonal::new(lower, diag, upper).unwrap();
    assert!(matches!(solver.refactor(&singular, &mut ()), Err(Error::Singular(_))));
    assert_eq!(solver.solve(b.as_ref()).unwrap().x, before);
}

#[test]
fn what_the_format_does_not_have_goes_by_rows() {
    let b = unknowns::<f64>(N);
    let a = band::<f64>(N, (2, 2), 6.0);
    for name in ["sparse-lu", "bicgstab", "gmres", "dense-lu", "block-lu", "hbisa"] {
        let answer = solve(&a, b.as_ref(), &SolveOptions::by(crate::common::named(name)), &mut ()).unwrap();
        assert_eq!(answer.report.method, name);
        assert!(answer.report.certificate.relative_residual < 1e-7, "{name}");
    }
    let reordered = SolveOptions { reorder: Reorder::Rcm, ..SolveOptions::default() };
    assert_eq!(solve(&a, b.as_ref(), &reordered, &mut ()).unwrap().reorder, Reorder::Rcm);
    let error = Solver::new(&a, &SolveOptions::by(crate::common::named("cg")), &mut ()).err().unwrap();
    assert!(error.to_string().contains("cg is iterative"), "{error}");
    // Blocks without pivots of their own: pivoting across them solves it.
    let mut dense = Mat::<f64>::zeros(N, N);
    for k in (0..N).step_by(4) {
        (dense[(k, k + 2)], dense[(k + 1, k + 3)], dense[(k + 2, k)], dense[(k + 3, k + 1)]) = (1.0, 2.0, 3.0, 4.0);
    }
    let rows = Csr::from_dense(dense.as_ref()).unwrap();
    let hollow = BlockTridiagonal::from_csr(&rows, Partition::uniform(N, 2).unwrap(), HybridLayout::default()).unwrap();
    let answer = solve(&hollow, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
    assert_eq!(answer.report.outcome, Outcome::Converged);
    assert_ne!(answer.report.method, "block-lu");
}

#[test]
fn verdicts_do_not_depend_on_the_format() {
    let b = Mat::from_fn(40, 1, |i, _| 1.0 + i as f64);
    // Rows that sum to zero.
    let mut lower = vec![-1.0; 40];
    let mut upper = vec![-1.0; 40];
    (lower[0], upper[39]) = (0.0, 0.0);
    let diag: Vec<f64> = (0..40).map(|i| if i == 0 || i == 39 { 1.0 } else { 2.0 }).collect();
    let singular = Tridiagonal::new(lower.clone(), diag.clone(), upper.clone()).unwrap();
    assert!(matches!(solve(&singular, b.as_ref(), &SolveOptions::default(), &mut ()), Err(Error::Singular(_))));
    // Rows in units far apart.
    let unit = |i: usize| if i.is_multiple_of(3) { 1e150 } else { 1e-150 };
    let times = |v: &[f64]| v.iter().enumerate().map(|(i, v)| v * unit(i)).collect::<Vec<_>>();
    let diag: Vec<f64> = diag.iter().map(|d| d + 1.0).collect();
    let scaled = Tridiagonal::new(times(&lower), times(&diag), times(&upper)).unwrap();
    let rhs = Mat::from_fn(40, 1, |i, _| b[(i, 0)] * unit(i));
    let found = solve(&scaled, rhs.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
    let plain = Tridiagonal::new(lower.clone(), diag.clone(), upper.clone()).unwrap();
    let plain = solve(&plain, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
    assert_eq!(found.report.outcome, Outcome::Converged);
    assert!((found.x - plain.x).norm_max() < 1e-12);
    let mut broken = diag;
    broken[17] = f64::NAN;
    let broken = Tridiagonal::new(lower, broken, upper).unwrap();
    let error = solve(&broken, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap_err().to_string();
    assert!(error.contains("row 17") && error.contains("NaN"), "{error}");
    let empty = Tridiagonal::<f64>::new(Vec::new(), Vec::new(), Vec::new());
    if let Ok(empty) = empty {
        assert!(matches!(Solver::new(&empty, &SolveOptions::default(), &mut ()), Err(Error::Usage { .. })));
    }
}
