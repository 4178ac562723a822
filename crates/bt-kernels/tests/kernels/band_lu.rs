//! Band LU on the device: the host's answers for batches of any sizes and bandwidths.

use crate::support::{Numbers, assert_columns_close, device, epsilon};
use bt_direct::{BandLu, FactorError, Factorization};
use bt_formats::{Band, Op, Scalar, certify};
use bt_kernels::{Device, DeviceBandLu, DeviceScalar, SolvedBy};
use faer::Mat;

/// Entries in (−1, 1), no diagonal favoured: rows are exchanged all the time.
fn band<T: Scalar>(n: usize, kl: usize, ku: usize) -> Band<T> {
    let mut numbers = Numbers((n + 100 * kl + 10_000 * ku) as u64);
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = numbers.real();
        }
    }
    a
}

fn agrees<T: DeviceScalar>(device: &Device, systems: &[Band<T>], nrhs: usize) {
    let systems: Vec<_> = systems.iter().collect();
    let n: usize = systems.iter().map(|a| a.n()).sum();
    let mut numbers = Numbers(n as u64);
    let b = Mat::from_fn(n, nrhs, |_, _| numbers.real::<T>());
    let lu = DeviceBandLu::new(device, &systems).unwrap();
    assert!(lu.singular_columns().iter().all(Option::is_none));
    let mut x = b.clone();
    lu.solve_once(x.as_mut()).unwrap();
    let mut row = 0;
    for a in systems {
        let rows = row..row + a.n();
        row = rows.end;
        let host = BandLu::new(a).unwrap();
        let rhs = b.get(rows.clone(), ..);
        let mut expected = rhs.to_owned();
        host.solve_in_place(expected.as_mut());
        let found = x.get(rows, ..);
        let what = format!("{}, n = {}, kl = {}, ku = {}", T::SUFFIX, a.n(), a.kl(), a.ku());
        let ours = certify(a, Op::Identity, found, rhs).backward_error;
        let theirs = certify(a, Op::Identity, expected.as_ref(), rhs).backward_error;
        assert!(ours <= (8.0 + (a.kl() + a.ku()) as f64) * epsilon::<T>(), "{what}: {ours:e}");
        let allowed = 8.0 * (ours + theirs + epsilon::<T>()) / host.rcond();
        assert_columns_close(&what, found, expected.as_ref(), allowed);
    }
}

/// n, kl, ku.
const SHAPES: [[usize; 3]; 12] = [
    [1, 0, 0],
    [2, 1, 1],
    [5, 4, 4],
    [31, 1, 2],
    [32, 3, 0],
    [33, 0, 3],
    [64, 16, 16],
    [100, 5, 2],
    [70, 31, 31],
    [255, 2, 2],
    [256, 1, 1],
    [257, 7, 3],
];

#[test]
fn answers_are_those_of_the_host_for_any_bands() {
    let Some(device) = device() else { return };
    for (s, [n, kl, ku]) in SHAPES.into_iter().enumerate() {
        agrees::<f64>(&device, &[band(n, kl, ku)], 1 + s % 2);
        agrees::<f32>(&device, &[band(n, kl, ku)], 1 + (s + 1) % 2);
    }
    // Too wide for shared memory.
    agrees::<f64>(&device, &[band(90, 40, 33)], 1);
    agrees::<f32>(&device, &[band(110, 50, 52)], 1);
    let batch: Vec<_> = SHAPES.iter().map(|&[n, kl, ku]| band::<f64>(n, kl, ku)).chain([band(80, 35, 35)]).collect();
    agrees(&device, &batch, 3);
    agrees::<f64>(&device, &[], 1);
}

#[test]
fn singular_systems_are_named_and_disturb_no_other() {
    let Some(device) = device() else { return };
    let good = band::<f64>(40, 2, 3);
    let mut singular = band::<f64>(40, 2, 3);
    for i in singular.column_range(17) {
        *singular.get_mut(i, 17) = 0.0;
    }
    // A column of zeros takes what is above it as fill, but never a pivot of its own: the exact one is found on the host.
    let mut empty = Band::zeros(6, 1, 1).unwrap();
    (0..6).for_each(|i| *empty.get_mut(i, i) = if i == 3 { 0.0 } else { 2.0 });
    let systems = [&good, &empty, &good, &singular];
    let lu = DeviceBandLu::new(&device, &systems).unwrap();
    assert_eq!(lu.singular_columns()[..3], [None, Some(3), None]);
    let mut x = Mat::from_fn(126, 1, |i, _| 1.0 + (i % 5) as f64);
    let b = x.clone();
    let reports = lu.solve_in_place(x.as_mut()).unwrap();
    match &reports[1] {
        Err(FactorError::Singular(place)) => assert_eq!(place.column, 3),
        other => panic!("{other:?}"),
    }
    assert!(matches!(reports[3], Err(FactorError::Singular(_))), "{:?}", reports[3]);
    for (s, row) in [(0, 0), (2, 46)] {
        let report = reports[s].as_ref().unwrap();
        let truth = certify(&good, Op::Identity, x.get(row..row + 40, ..), b.get(row..row + 40, ..));
        assert_eq!((report.solved_by, report.certificate), (SolvedBy::Device, truth));
        assert!(truth.backward_error <= 4.0 * f64::EPSILON);
    }
    assert!((40..46).chain(86..126).all(|i| x[(i, 0)].is_nan()));
}

#[test]
fn sizes_and_values_are_checked() {
    let Some(device) = device() else { return };
    let wide = Band::<f64>::zeros(1, 0, 7000).unwrap();
    let error = DeviceBandLu::new(&device, &[&wide]).err().unwrap().to_string();
    assert!(error.contains("system 0 has 7001 diagonals"), "{error}");
    let mut bad = band::<f32>(4, 1, 1);
    *bad.get_mut(2, 3) = f32::NEG_INFINITY;
    let error = DeviceBandLu::new(&device, &[&bad]).err().unwrap().to_string();
    assert!(error.contains("row 2, column 3"), "{error}");
    let good = band::<f64>(4, 1, 1);
    let lu = DeviceBandLu::new(&device, &[&good]).unwrap();
    assert!(lu.solve_in_place(Mat::zeros(5, 1).as_mut()).is_err());
    assert!(lu.solve_once(Mat::zeros(3, 1).as_mut()).is_err());
    assert!(lu.solve_in_place(Mat::from_fn(4, 1, |_, _| f64::NAN).as_mut()).is_err());
    assert_eq!(lu.bytes(), 4 * 4 * 8 + 8 + 4 * (2 + 1 + 1 + 4 + 1));
}
