//! Dense systems on the device: the host's factors, answers and verdicts, at sizes around those of panels and tiles.

use crate::support::{Numbers, device, epsilon};
use bt_direct::{
    DenseMatrix, FactorError, Factorization, Fallback, FallbackReason, Rbt, RbtOptions, Refinement, SingularKind,
    refine,
};
use bt_formats::{Op, RealScalar, Scalar};
use bt_kernels::{Device, DeviceError, DeviceRbt, DeviceScalar, Schedule};
use faer::{Mat, mat};

fn random<T: Scalar>(n: usize, ncols: usize, seed: u64) -> Mat<T> {
    let mut numbers = Numbers(seed);
    Mat::from_fn(n, ncols, |_, _| numbers.real())
}

/// Well conditioned.
fn shifted<T: Scalar>(n: usize) -> Mat<T> {
    let a = random::<T>(n, n, 1 + n as u64);
    let large = T::rounded(2.0 * (n as f64).sqrt(), 0.0);
    Mat::from_fn(n, n, |i, j| a[(i, j)] + if i == j { large } else { T::default() })
}

fn norm<T: Scalar>(x: &Mat<T>) -> f64 {
    (0..x.ncols()).flat_map(|j| (0..x.nrows()).map(move |i| x[(i, j)].abs().to_f64())).fold(0.0, f64::max)
}

fn agrees<T: DeviceScalar>(device: &Device, n: usize, nrhs: usize, depth: usize) {
    let a = shifted::<T>(n);
    let b = random::<T>(n, nrhs, 7);
    let options = RbtOptions { depth, ..RbtOptions::default() };
    let host = Rbt::with_options(a.as_ref(), options, &mut ()).unwrap();
    let ours = DeviceRbt::with_options(device, a.as_ref(), options, Schedule::Auto).unwrap();
    let what = format!("{n} rows, {nrhs} right-hand sides, depth {depth}, {}", T::SUFFIX);
    assert_eq!((host.fallback(), ours.fallback(), ours.method()), (None, None, "rbt"), "{what}");
    let (theirs, found) = (host.stats(), ours.stats());
    // Factors of one matrix, each with the errors of elimination: growth·n·u, magnified by the condition of leading blocks.
    let rounding = 50.0 * epsilon::<T>() * n as f64 * found.growth / host.rcond();
    assert_eq!((theirs.norm_one, theirs.nnz), (found.norm_one, found.nnz), "{what}");
    for (name, x, y) in [("growth", theirs.growth, found.growth), ("smallest pivot", theirs.min_pivot, found.min_pivot)]
    {
        assert!((x - y).abs() <= rounding * x.abs(), "{what}: {name} is {y:e}, not {x:e}, within {rounding:e}");
    }
    let (theirs, ours_det) = (host.log_det(), ours.log_det());
    assert_eq!(theirs.sign, ours_det.sign, "{what}");
    let off = (theirs.log_abs - ours_det.log_abs).abs();
    assert!(off <= rounding * theirs.log_abs.abs().max(1.0), "{what}: log|det| is off by {off:e}");
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let (mut expected, mut x) = (b.clone(), b.clone());
        host.solve_op_in_place(op, expected.as_mut());
        ours.solve_op_in_place(op, x.as_mut());
        let error = norm(&(&x - &expected)) / norm(&expected);
        assert!(error <= rounding, "{what}, {op:?}: off by {error:e}, more than {rounding:e}");
        // As good a solution as the growth allows.
        let r = &b - if op == Op::Identity { &a * &x } else { a.transpose() * &x };
        let backward = norm(&r) / (norm(&a) * n as f64 * norm(&x) + norm(&b));
        let bound = 4.0 * epsilon::<T>() * found.growth * (n as f64).sqrt();
        assert!(backward <= bound, "{what}, {op:?}: backward error {backward:e}, more than {bound:e}");
    }
    assert!((ours.rcond() / host.rcond() - 1.0).abs() <= rounding, "{what}");
    assert!(ours.bytes() >= n * n * size_of::<T>() && found.bytes == ours.bytes());
}

#[test]
fn factors_and_answers_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for n in [1, 2, 8, 31, 32, 33, 64, 65, 96, 127, 129, 161] {
        agrees::<f64>(&device, n, 1 + n % 10, 2);
        agrees::<f32>(&device, n, 1 + n % 10, 2);
    }
    for depth in [1, 3, 4] {
        agrees::<f64>(&device, 50, 9, depth);
    }
}

#[test]
fn more_than_one_thread_block_takes_part() {
    let Some(device) = device() else { return };
    // Rows below a panel: more than the 256 of a thread block, in panels of four and in the rest.
    for n in [255, 257, 301] {
        agrees::<f64>(&device, n, 2, 2);
    }
    agrees::<f32>(&device, 300, 1, 2);
    // A launch a panel changes no bit.
    let a = shifted::<f64>(280);
    let bits = [Schedule::Launches, Schedule::Persistent].map(|schedule| {
        let f = DeviceRbt::with_options(&device, a.as_ref(), RbtOptions::default(), schedule).unwrap();
        assert_eq!(f.is_persistent(), schedule == Schedule::Persistent);
        [Op::Identity, Op::Transpose].map(|op| {
            let mut x = random::<f64>(280, 10, 2);
            f.solve_op_in_place(op, x.as_mut());
            x
        })
    });
    assert_eq!(bits[0], bits[1]);
}

#[test]
fn refinement_reaches_rounding_level() {
    let Some(device) = device() else { return };
    let (a, b) = (random::<f64>(70, 70, 3), random::<f64>(70, 3, 4));
    let f = DeviceRbt::new(&device, a.as_ref()).unwrap();
    let mut x = b.clone();
    f.solve_in_place(x.as_mut());
    let done = refine(&DenseMatrix::new(a.as_ref()), &f, Op::Identity, b.as_ref(), &mut x, Refinement::Auto);
    assert!(done.certificate.backward_error <= 1e-15, "{done:?}");
}

#[test]
fn what_fails_a_check_is_factored_by_the_host_and_said() {
    let Some(device) = device() else { return };
    let plain = |fallback| RbtOptions { depth: 0, fallback, ..RbtOptions::default() };
    let swap = mat![[0.0, 2.0], [1.0, 0.0]];
    let f = DeviceRbt::with_options(&device, swap.as_ref(), plain(Fallback::Pivoted), Schedule::Auto).unwrap();
    assert_eq!(f.fallback(), Some(FallbackReason::Pivot(0)));
    let mut x = [6.0, 5.0];
    f.solve_vec_in_place(&mut x);
    assert_eq!((x, f.log_det().sign), ([5.0, 3.0], -1.0));
    let error = DeviceRbt::with_options(&device, swap.as_ref(), plain(Fallback::Error), Schedule::Auto).err().unwrap();
    assert!(error.to_string().contains("column 0"), "{error}");
    // A pivot that vanishes in the second panel, behind good ones.
    let late = Mat::<f64>::from_fn(70, 70, |i, j| if i == 40 && j == 40 { 0.0 } else { f64::from(i == j) });
    let late =
        Mat::from_fn(70, 70, |i, j| late[(i, j)] + f64::from((i, j) == (40, 41)) + f64::from((i, j) == (41, 40)));
    let f = DeviceRbt::with_options(&device, late.as_ref(), plain(Fallback::Pivoted), Schedule::Auto).unwrap();
    assert_eq!(f.fallback(), Some(FallbackReason::Pivot(40)));
    let tiny = mat![[1e-12, 1.0], [1.0, 1.0]];
    let f = DeviceRbt::with_options(&device, tiny.as_ref(), plain(Fallback::Pivoted), Schedule::Auto).unwrap();
    let host = Rbt::with_options(tiny.as_ref(), plain(Fallback::Pivoted), &mut ()).unwrap();
    assert_eq!(f.fallback(), host.fallback());
    assert!(matches!(f.fallback(), Some(FallbackReason::Growth(_))));
    // Singular: what pivoting says.
    let singular = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]];
    let error = DeviceRbt::with_options(
        &device,
        singular.as_ref(),
        RbtOptions { fallback: Fallback::Error, ..RbtOptions::default() },
        Schedule::Auto,
    );
    assert!(matches!(error.err(), Some(DeviceError::Factor(FactorError::Breakdown { .. }))));
    let error = DeviceRbt::new(&device, Mat::<f64>::zeros(3, 3).as_ref()).err().unwrap();
    assert!(
        matches!(error, DeviceError::Factor(FactorError::Singular(s)) if s.column == 0 && s.kind == SingularKind::Numerical)
    );
}

#[test]
fn other_values_of_the_same_size_and_huge_ones() {
    let Some(device) = device() else { return };
    let (first, second) = (random::<f64>(40, 40, 5), random::<f64>(40, 40, 6));
    let solution = |f: &DeviceRbt<f64>| {
        let mut x = vec![1.0; 40];
        f.solve_vec_in_place(&mut x);
        x
    };
    let new = |a: &Mat<f64>| DeviceRbt::new(&device, a.as_ref()).unwrap();
    let mut f = new(&first);
    let before = solution(&f);
    f.refactor(second.as_ref()).unwrap();
    assert_eq!(solution(&f), solution(&new(&second)));
    assert!(f.refactor(Mat::<f64>::zeros(40, 40).as_ref()).is_err());
    assert!(solution(&f).iter().all(|v| v.is_nan()));
    f.refactor(first.as_ref()).unwrap();
    assert_eq!(solution(&f), before);
    assert!(f.refactor(first.as_ref().submatrix(0, 0, 39, 39)).is_err());
    // Powers of two change no digit.
    for exponent in [-900, 900] {
        let scale = 2f64.powi(exponent);
        let scaled = new(&Mat::from_fn(40, 40, |i, j| first[(i, j)] * scale));
        let x = solution(&scaled);
        assert!(x.iter().zip(&before).all(|(x, b)| *x == b / scale), "2^{exponent}");
    }
}

#[test]
fn input_is_checked_by_name() {
    let Some(device) = device() else { return };
    let mut a = random::<f64>(5, 5, 8);
    a[(3, 1)] = f64::NAN;
    let error = |a: faer::MatRef<'_, f64>, options| {
        DeviceRbt::with_options(&device, a, options, Schedule::Auto).err().unwrap().to_string()
    };
    assert!(error(a.as_ref(), RbtOptions::default()).contains("row 3, column 1"));
    assert!(error(random::<f64>(5, 4, 8).as_ref(), RbtOptions::default()).contains("columns of the matrix"));
    let deep = RbtOptions { depth: 5, ..RbtOptions::default() };
    assert!(error(random::<f64>(5, 5, 8).as_ref(), deep).contains("depth 5"));
    let none = DeviceRbt::new(&device, Mat::<f64>::zeros(0, 0).as_ref()).unwrap();
    none.solve_vec_in_place(&mut []);
    assert_eq!((none.stats().nnz, none.log_det().log_abs), (0, 0.0));
}
