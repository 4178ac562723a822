//! Columns side by side have the bits, the steps and the reports they have alone, at one product with A a step.

use std::sync::atomic::{AtomicUsize, Ordering};

use bt_formats::{
    Csr, Error, LinearOperator, Matrix, Op, Outcome, Par, Progress, Scalar, SolveReport, StopCriterion, c32, c64,
};
use bt_iter::{BiCgStab, Cg, DroppedFill, Gmres, Identity, Jacobi, Lockstep, Preconditioner, ilu0};
use bt_testkit::alloc::count_allocations;
use bt_testkit::{csr, stencil};
use faer::{Mat, MatMut, MatRef};

const METHODS: [&str; 5] = ["cg", "fcg", "bicgstab", "gmres", "fgmres"];
const RESTART: usize = 7;

fn lockstep<T: Scalar>(method: &str, n: usize, nrhs: usize) -> Lockstep<T> {
    match method {
        "cg" => Lockstep::cg(n, nrhs),
        "fcg" => Lockstep::flexible_cg(n, nrhs),
        "bicgstab" => Lockstep::bicgstab(n, nrhs),
        "gmres" => Lockstep::gmres(n, nrhs, RESTART),
        _ => Lockstep::fgmres(n, nrhs, RESTART),
    }
}

fn alone<T: Scalar>(
    method: &str,
    a: &Csr<T>,
    m: &mut dyn Preconditioner<T>,
    b: &[T],
    x: &mut [T],
    stop: &StopCriterion,
) -> SolveReport {
    let n = b.len();
    match method {
        "cg" => Cg::new(n).solve(a, m, b, x, stop, &mut ()),
        "fcg" => Cg::flexible(n).solve(a, m, b, x, stop, &mut ()),
        "bicgstab" => BiCgStab::new(n).solve(a, m, b, x, stop, &mut ()),
        "gmres" => Gmres::new(n, RESTART).solve(a, m, b, x, stop, &mut ()),
        _ => Gmres::flexible(n, RESTART).solve(a, m, b, x, stop, &mut ()),
    }
    .unwrap()
}

/// Columns that end at different steps, in no order: one needs none (b = 0), one few.
fn right_hand_sides<T: Scalar>(a: &Csr<T>) -> Mat<T> {
    let n = a.nrows();
    let mut b = Mat::from_fn(n, 6, |i, j| match j {
        1 => T::default(),
        4 => T::rounded(if i == 0 { 1.0 } else { 0.0 }, 0.0),
        _ => T::rounded(1.0 + ((7 * i + 3 * j * j) % 11) as f64, ((i + j) % 5) as f64),
    });
    // A·e₃ for e = (1, …, 1): easy, and not the last.
    let mut smooth = vec![T::default(); n];
    a.apply(bt_formats::one(), &vec![bt_formats::one(); n], T::default(), &mut smooth);
    (0..n).for_each(|i| b[(i, 3)] = smooth[i]);
    b
}

fn as_alone<T: Scalar>(rtol: f64) {
    let a = stencil::<f64>(13, 0.0).cast::<T>();
    let n = a.nrows();
    let b = right_hand_sides(&a);
    let stop = StopCriterion { rtol, max_iters: 60, ..StopCriterion::default() };
    for method in METHODS {
        let mut kinds: [Box<dyn Preconditioner<T>>; 3] = [
            Box::new(Identity::new(n)),
            Box::new(Jacobi::new(&a).unwrap()),
            Box::new(ilu0(&a, DroppedFill::Forgotten).unwrap()),
        ];
        for m in &mut kinds {
            let mut x = Mat::zeros(n, 6);
            // A start that is the solution of one column.
            (0..n).for_each(|i| x[(i, 3)] = if method == "cg" { bt_formats::one() } else { T::default() });
            let mut y = x.clone();
            let mut workspace = lockstep::<T>(method, n, 6);
            let reports = workspace.solve(&a, &mut **m, b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap();
            for (j, report) in reports.iter().enumerate() {
                let (b, y) = (b.col(j).try_as_col_major().unwrap().as_slice(), y.col_as_slice_mut(j));
                let expected = alone(method, &a, &mut **m, b, y, &stop);
                assert_eq!(x.col_as_slice(j), &*y, "{method}, column {j}");
                let key = |r: &SolveReport| {
                    (r.method, r.outcome, r.iterations, r.operator_applications, r.preconditioner_applications, r.bytes)
                };
                assert_eq!(key(report), key(&expected), "{method}, column {j}");
                let residual = |r: &SolveReport| r.certificate.relative_residual.to_bits();
                assert_eq!(residual(report), residual(&expected), "{method}, column {j}");
            }
        }
    }
}

#[test]
fn every_column_is_as_it_would_be_alone() {
    as_alone::<f64>(1e-9);
    as_alone::<c64>(1e-9);
    as_alone::<f32>(1e-4);
    as_alone::<c32>(1e-4);
    // Limits and claims that rounding does not hold.
    as_alone::<f64>(1e-30);
}

/// A matrix that counts how often it is read.
struct Counting<'a> {
    a: &'a Csr<f64>,
    reads: AtomicUsize,
}
impl LinearOperator<f64> for Counting<'_> {
    fn nrows(&self) -> usize {
        self.a.nrows()
    }
    fn ncols(&self) -> usize {
        self.a.ncols()
    }
    fn apply(&self, alpha: f64, x: &[f64], beta: f64, y: &mut [f64]) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.a.apply(alpha, x, beta, y);
    }
}
impl Matrix<f64> for Counting<'_> {
    fn nnz(&self) -> usize {
        self.a.nnz()
    }
    fn bytes(&self) -> usize {
        self.a.bytes()
    }
    fn apply_op(&self, op: Op, alpha: f64, x: &[f64], beta: f64, y: &mut [f64], par: Par) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.a.apply_op(op, alpha, x, beta, y, par);
    }
    fn apply_many(&self, op: Op, alpha: f64, x: MatRef<'_, f64>, beta: f64, y: MatMut<'_, f64>, par: Par) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.a.apply_many(op, alpha, x, beta, y, par);
    }
    fn for_each_entry(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        self.a.for_each_entry(visit);
    }
}

#[test]
fn a_step_reads_the_matrix_once_for_all_columns() {
    let a = stencil::<f64>(13, 0.0);
    let n = a.nrows();
    let b = right_hand_sides(&a);
    for method in METHODS {
        let counting = Counting { a: &a, reads: AtomicUsize::new(0) };
        let mut x = Mat::zeros(n, 6);
        let stop = StopCriterion { max_iters: 200, ..StopCriterion::default() };
        let mut workspace = lockstep(method, n, 6);
        let reports =
            workspace.solve(&counting, &mut Identity::new(n), b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap();
        assert!(reports.iter().all(|r| r.outcome == Outcome::Converged), "{method}");
        let (most, all) = reports
            .iter()
            .map(|r| r.operator_applications)
            .fold((0, 0), |(most, all), k| (usize::max(most, k), all + k));
        // Beside the steps of the slowest column: residuals at the start, of claims and of cycles, each on its own.
        let cycles: usize = reports.iter().map(|r| r.iterations / RESTART).sum();
        let own = 6 * 3 + if method.ends_with("gmres") { cycles } else { 0 };
        let reads = counting.reads.load(Ordering::Relaxed);
        assert!(reads <= most + own && reads < all / 2, "{method}: {reads} of {all}, the slowest column has {most}");
    }
}

#[test]
fn the_monitor_knows_the_column_and_can_end_all() {
    let a = stencil::<f64>(13, 0.0);
    let n = a.nrows();
    let b = right_hand_sides(&a);
    for method in METHODS {
        let (mut column, mut curves) = (0, vec![Vec::new(); 6]);
        let mut monitor = |p: Progress| {
            match p {
                Progress::Column(j) => column = j,
                Progress::Iteration { index, .. } => curves[column].push(index),
                _ => {}
            }
            std::ops::ControlFlow::Continue(())
        };
        let mut x = Mat::zeros(n, 6);
        let stop = StopCriterion { max_iters: 200, ..StopCriterion::default() };
        let mut workspace = lockstep(method, n, 6);
        let mut m = Identity::new(n);
        let reports = workspace.solve(&a, &mut m, b.as_ref(), x.as_mut(), &stop, &mut monitor).unwrap();
        for (report, curve) in reports.iter().zip(&curves) {
            assert_eq!(*curve, (0..=report.iterations).collect::<Vec<_>>(), "{method}");
        }
        let mut monitor = |p: Progress| match p {
            Progress::Iteration { index: 3, .. } => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        };
        let mut x = Mat::zeros(n, 6);
        let reports = workspace.solve(&a, &mut m, b.as_ref(), x.as_mut(), &stop, &mut monitor).unwrap();
        let ended = |r: &SolveReport| (r.outcome == Outcome::Stopped, r.iterations) == (true, 3) || r.iterations < 3;
        assert!(reports.iter().all(ended), "{method}");
    }
}

#[test]
fn sizes_are_checked_and_steps_allocate_nothing() {
    let a = stencil::<f64>(6, 0.0);
    let b = Mat::from_fn(36, 3, |i, j| (1 + i + j) as f64);
    let mut m = Identity::new(36);
    let stop = StopCriterion::default();
    for method in METHODS {
        let mut workspace = lockstep(method, 36, 3);
        let mut x = Mat::zeros(36, 2);
        let error = workspace.solve(&a, &mut m, b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap_err();
        assert!(matches!(error, Error::DimensionMismatch { expected: 3, found: 2, .. }), "{error}");
        let small = csr(35, |i, j| if i == j { 1.0 } else { 0.0 });
        let mut x = Mat::zeros(36, 3);
        assert!(workspace.solve(&small, &mut m, b.as_ref(), x.as_mut(), &stop, &mut ()).is_err());
        let mut allocations = |max_iters| {
            let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
            let mut x = Mat::zeros(36, 3);
            count_allocations(|| workspace.solve(&a, &mut m, b.as_ref(), x.as_mut(), &stop, &mut ())).1
        };
        assert_eq!(allocations(2), allocations(9), "{method}");
    }
    let none = Lockstep::<f64>::cg(36, 0).solve(
        &a,
        &mut m,
        Mat::zeros(36, 0).as_ref(),
        Mat::zeros(36, 0).as_mut(),
        &stop,
        &mut (),
    );
    assert!(none.unwrap().is_empty());
}
