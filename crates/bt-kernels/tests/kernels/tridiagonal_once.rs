//! One tridiagonal system on the device: the pivoted answers of the host, at all sizes, on hard matrices.

use std::path::Path;

use crate::support::{Numbers, assert_columns_close, device, epsilon};
use bt_direct::{FactorError, Factorization, TridiagonalLu};
use bt_formats::{LinearOperator, Matrix, Op, Scalar, Tridiagonal, certify};
use bt_kernels::{Device, DeviceError, DeviceScalar, DeviceTridiagonal, SolvedBy};
use faer::Mat;

/// Entry (i, j) from three functions of the row.
fn matrix<T: Scalar>(n: usize, mut row: impl FnMut(usize) -> [f64; 3]) -> Tridiagonal<T> {
    let [mut lower, mut diag, mut upper] = [(); 3].map(|()| Vec::with_capacity(n));
    for i in 0..n {
        let [l, d, u] = row(i).map(|v| T::rounded(v, 0.0));
        lower.push(if i > 0 { l } else { T::default() });
        diag.push(d);
        upper.push(if i + 1 < n { u } else { T::default() });
    }
    Tridiagonal::new(lower, diag, upper).unwrap()
}

/// The families of Chang et al. and of Klein and Strzodka that a formula gives; none is singular for even n.
const KINDS: [u32; 12] = [1, 2, 4, 5, 6, 7, 14, 15, 16, 17, 18, 20];

fn kind<T: Scalar>(which: u32, n: usize) -> Tridiagonal<T> {
    let mut numbers = Numbers(u64::from(which) * 1000 + n as u64);
    matrix(n, |i| {
        let [a, b, c] = [(); 3].map(|()| numbers.real::<f64>());
        let halved = |v: f64, keep: usize| if keep == 0 { 0.0 } else { v };
        match which {
            2 => [a, 1e8, c],
            4 => [if i == n / 2 { 1e-50 * a } else { a }, b, c],
            5 => [halved(a, numbers.below(2)), b, halved(c, numbers.below(2))],
            6 => [a, 64.0, c],
            7 => [-0.5, if i == 0 || i + 1 == n { 1.0 } else { 1.25 }, -0.5],
            14 => [a, 1e-8, c],
            15 => [a, 0.0, c],
            16 => [1.0, 1e-8, 1.0],
            17 => [1.0, 1e8, 1.0],
            18 => [-1.0, 4.0, -1.0],
            20 => [-1.0, 4.0, c],
            _ => [a, b, c],
        }
    })
}

/// The device's answer as it comes, without refinement, has a backward error of a few units.
fn backward_stable<T: DeviceScalar>(device: &Device, what: &str, a: &Tridiagonal<T>, nrhs: usize, units: f64) {
    let n = a.diag().len();
    let mut numbers = Numbers(n as u64);
    let truth = Mat::from_fn(n, nrhs, |_, _| numbers.real::<T>());
    let mut b = Mat::zeros(n, nrhs);
    a.apply_many(Op::Identity, T::rounded(1.0, 0.0), truth.as_ref(), T::default(), b.as_mut(), bt_formats::Par::Seq);
    let mut x = b.clone();
    let mut solver = DeviceTridiagonal::new(device, a).unwrap();
    solver.solve_once(x.as_mut()).unwrap();
    let found = certify(a, Op::Identity, x.as_ref(), b.as_ref());
    let bound = units * epsilon::<T>();
    assert!(found.backward_error <= bound, "{what}, {}, n = {n}: {:e}", T::SUFFIX, found.backward_error);
    // Two backward stable answers differ by the condition number times their backward errors.
    let Ok(lu) = TridiagonalLu::new(a) else { return };
    let mut host = b.clone();
    lu.solve_in_place(host.as_mut());
    let allowed = 8.0 * (units + 2.0) * epsilon::<T>() / lu.rcond();
    assert_columns_close(&format!("{what}, {}, n = {n}", T::SUFFIX), x.as_ref(), host.as_ref(), allowed);
}

#[test]
fn answers_are_those_of_the_host_at_all_sizes() {
    let Some(device) = device() else { return };
    for n in [1, 2, 3, 14, 15, 16, 31, 32, 33, 255, 256, 257, 959, 960, 961, 1984, 1985, 2881] {
        backward_stable::<f64>(&device, "random", &kind(1, n), 1, 8.0);
        backward_stable::<f32>(&device, "random", &kind(1, n), 2, 8.0);
    }
}

#[test]
fn hard_matrices_are_solved_backward_stably() {
    let Some(device) = device() else { return };
    for which in KINDS {
        for n in [512, 1030] {
            backward_stable::<f64>(&device, &format!("type {which}"), &kind(which, n), 1, 8.0);
            backward_stable::<f32>(&device, &format!("type {which}"), &kind(which, n), 1, 8.0);
        }
    }
}

#[test]
fn tiles_beyond_a_group_are_merged_in_levels() {
    let Some(device) = device() else { return };
    // 65 tiles: two groups, then one.
    for which in [1, 15] {
        backward_stable::<f64>(&device, "levels", &kind(which, 64 * 960 + 2), 2, 16.0);
    }
    backward_stable::<f32>(&device, "levels", &kind(18, 64 * 1984 + 1), 1, 16.0);
}

/// Three levels of groups: too much for an interpreter.
#[test]
fn millions_of_rows_on_a_real_gpu() {
    if std::env::var("REQUIRE_GPU").is_err() {
        println!("skipped: 4 million rows, for a real GPU");
        return;
    }
    let Some(device) = device() else { return };
    for which in [1, 14, 18] {
        backward_stable::<f64>(&device, "three levels", &kind(which, 64 * 64 * 960 + 2), 1, 32.0);
    }
    backward_stable::<f32>(&device, "three levels", &kind(20, 64 * 64 * 1984 + 1), 2, 32.0);
}

#[test]
fn any_scale_of_rows_will_do() {
    let Some(device) = device() else { return };
    for scale in [1e-300, 1e-150, 1e150, 1e299] {
        let a = matrix::<f64>(100, |i| [1.0, 3.0, -1.0].map(|v| v * if i % 2 == 0 { scale } else { 1.0 }));
        let b: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { scale } else { 1.0 }).collect();
        let mut x = Mat::from_fn(100, 1, |i, _| b[i]);
        DeviceTridiagonal::new(&device, &a).unwrap().solve_once(x.as_mut()).unwrap();
        // Row by row, which the norm of the matrix would not show.
        let mut r = b.clone();
        a.apply_op(Op::Identity, -1.0, x.col_as_slice(0), 1.0, &mut r, bt_formats::Par::Seq);
        for i in 0..100 {
            assert!(r[i].abs() <= 16.0 * f64::EPSILON * b[i], "scale {scale:e}, row {i}: residual {:e}", r[i]);
        }
    }
}

#[test]
fn what_the_device_cannot_solve_the_host_solves_or_names() {
    let Some(device) = device() else { return };
    let mut x = Mat::from_fn(1000, 1, |_, _| 1.0);
    // Odd, with a zero diagonal: singular.
    let singular = kind::<f64>(15, 999);
    let mut solver = DeviceTridiagonal::new(&device, &singular).unwrap();
    let mut y = Mat::from_fn(999, 1, |_, _| 1.0);
    match solver.solve_in_place(y.as_mut()) {
        Err(DeviceError::Factor(FactorError::Singular(_))) => assert_eq!(y, Mat::from_fn(999, 1, |_, _| 1.0)),
        // Rounding may leave a last pivot that is not exactly zero.
        Ok(report) => assert!(report.certificate.backward_error <= 16.0 * f64::EPSILON),
        Err(other) => panic!("{other}"),
    }
    let empty = matrix::<f64>(1000, |i| if i == 400 { [0.0; 3] } else { [-1.0, 3.0, -1.0] });
    let error = DeviceTridiagonal::new(&device, &empty).unwrap().solve_in_place(x.as_mut()).unwrap_err();
    assert!(matches!(error, DeviceError::Factor(FactorError::Singular(_))), "{error}");
    assert_eq!(x, Mat::from_fn(1000, 1, |_, _| 1.0), "b is as it was");
    // Sizes and values.
    let a = kind::<f64>(18, 5);
    let mut solver = DeviceTridiagonal::new(&device, &a).unwrap();
    assert!(solver.solve_in_place(x.as_mut()).unwrap_err().to_string().contains("1000"));
    let mut bad = Mat::from_fn(5, 2, |i, j| if (i, j) == (3, 1) { f64::NAN } else { 1.0 });
    assert!(solver.solve_in_place(bad.as_mut()).unwrap_err().to_string().contains("right-hand side"));
    let a = matrix::<f64>(3, |i| [1.0, if i == 2 { f64::INFINITY } else { 4.0 }, 1.0]);
    let error = DeviceTridiagonal::new(&device, &a).err().unwrap().to_string();
    assert!(error.contains("row 2, column 2"), "{error}");
    let none = matrix::<f64>(0, |_| [0.0; 3]);
    DeviceTridiagonal::new(&device, &none).unwrap().solve_in_place(Mat::zeros(0, 1).as_mut()).unwrap();
}

#[test]
fn reports_say_who_solved_and_how_well() {
    let Some(device) = device() else { return };
    let a = kind::<f64>(14, 700);
    let mut x = Mat::from_fn(700, 3, |i, j| (i + j) as f64);
    let b = x.clone();
    let mut solver = DeviceTridiagonal::new(&device, &a).unwrap();
    let report = solver.solve_in_place(x.as_mut()).unwrap();
    assert_eq!(report.solved_by, SolvedBy::Device);
    let truth = certify(&a, Op::Identity, x.as_ref(), b.as_ref());
    assert_eq!(report.certificate.backward_error, truth.backward_error);
    assert_eq!(solver.bytes(), (3 + 3) * 700 * 8);
    // Fewer right-hand sides afterwards.
    let mut one = Mat::from_fn(700, 1, |i, _| b[(i, 1)]);
    solver.solve_once(one.as_mut()).unwrap();
    let again = certify(&a, Op::Identity, one.as_ref(), b.get(.., 1..2));
    assert!(again.backward_error <= 8.0 * f64::EPSILON);
}

/// The condition numbers and what is singular: index.csv there.
#[test]
fn the_collection_of_tridiagonal_systems() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/tridiag");
    let Ok(index) = std::fs::read_to_string(folder.join("index.csv")) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let Some(device) = device() else { return };
    let mut count = 0;
    for name in index.lines().skip(1).filter_map(|line| line.split(',').next()) {
        let file = |end: &str| folder.join(format!("{name}{end}.mtx"));
        let a = bt_formats::matrix_market::read_csr::<f64>(file("")).unwrap();
        let t = Tridiagonal::from_csr(&a).unwrap();
        let b: Mat<f64> = bt_formats::matrix_market::read_dense(file("_b")).unwrap();
        let mut x = b.clone();
        let solved = DeviceTridiagonal::new(&device, &t).unwrap().solve_in_place(x.as_mut());
        count += 1;
        let Ok(xref) = bt_formats::matrix_market::read_dense::<f64>(file("_xref")) else {
            // Singular, or so near it that rounding decides.
            let singular = matches!(solved, Err(DeviceError::Factor(FactorError::Singular(_))));
            assert!(singular || solved.is_ok_and(|report| report.certificate.backward_error < 1e-15), "{name}");
            continue;
        };
        let report = solved.unwrap();
        assert_eq!(report.solved_by, SolvedBy::Device, "{name}: {report:?}");
        assert!(report.device_error <= 2.0 * f64::EPSILON, "{name}: {report:?}");
        // |x - xref| of the order that the condition number allows.
        let allowed = 20.0 * f64::EPSILON / TridiagonalLu::new(&t).unwrap().rcond();
        let size = bt_formats::max_abs(xref.col_as_slice(0));
        let off = (0..a.nrows()).fold(0.0, |m: f64, i| m.max((x[(i, 0)] - xref[(i, 0)]).abs()));
        assert!(off <= allowed * size, "{name}: off by {off:e} of {size:e}");
        // As it comes, without refinement.
        let mut once = b.clone();
        DeviceTridiagonal::new(&device, &t).unwrap().solve_once(once.as_mut()).unwrap();
        let error = certify(&t, Op::Identity, once.as_ref(), b.as_ref()).backward_error;
        println!("{name}: {error:.1e} as it comes, {:.1e} in {} steps", report.device_error, report.steps);
        assert!(error <= 4.0 * f64::EPSILON, "{name}, unrefined: {error:e}");
    }
    assert!(count >= 40, "{count} systems");
}
