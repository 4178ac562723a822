//! `gbsv`.

use blocktri::faer::Mat;
use blocktri::{Scalar, c32, c64};
use bt_formats::RealScalar;

use crate::drivers::{Drivers, Lapack, columns, flat, reference};
use crate::types::{
    COLUMNS, Random, SIZES, THRESHOLD, Type, Zeros, band_types, distance, epsilon, factor_ratio, product, same_columns,
    solve_ratio,
};

/// What a driver leaves.
struct Answer<T> {
    info: i32,
    ab: Mat<T>,
    ipiv: Vec<i32>,
    x: Mat<T>,
}

fn run<T: Lapack>(drivers: &Drivers<T>, a: &Mat<T>, (kl, ku): (usize, usize), b: &Mat<T>) -> Answer<T> {
    let (n, height) = (a.nrows(), 2 * kl + ku + 1);
    // What is no entry of the matrix is NaN, which nothing may read.
    let ab = Mat::from_fn(height, n, |r, j| match (j + r).checked_sub(kl + ku) {
        Some(i) if i < n && r >= kl => a[(i, j)],
        _ => T::nan_impl(),
    });
    let (ldab, ldb) = (height + 1, n + 2);
    let (mut ab, mut x, mut ipiv, mut info) = (flat(&ab, ldab), flat(b, ldb), vec![-1; n], -1);
    let [ni, kli, kui, nrhs, ldabi, ldbi] = [n, kl, ku, b.ncols(), ldab, ldb].map(|v| v as i32);
    // SAFETY: arrays of the sizes that LAPACK asks for.
    unsafe {
        (drivers.gbsv)(
            &ni,
            &kli,
            &kui,
            &nrhs,
            ab.as_mut_ptr(),
            &ldabi,
            ipiv.as_mut_ptr(),
            x.as_mut_ptr(),
            &ldbi,
            &mut info,
        );
    }
    Answer { info, ab: columns(&ab, height, n, ldab), ipiv, x: columns(&x, n, b.ncols(), ldb) }
}

/// P·L·U, the exchanges and multipliers undone in the order in which they were made.
fn multiplied<T: Scalar>(answer: &Answer<T>, kl: usize, ku: usize) -> Mat<T> {
    let n = answer.ipiv.len();
    let kv = kl + ku;
    let mut a =
        Mat::from_fn(n, n, |i, j| if i <= j && j - i <= kv { answer.ab[(kv + i - j, j)] } else { T::zero_impl() });
    for j in (0..n).rev() {
        for i in j + 1..(j + kl + 1).min(n) {
            let l = answer.ab[(kv + i - j, j)];
            for c in 0..n {
                let above = a[(j, c)];
                a[(i, c)] += l * above;
            }
        }
        let p = answer.ipiv[j] as usize - 1;
        if p != j {
            (0..n).for_each(|c| (a[(j, c)], a[(p, c)]) = (a[(p, c)], a[(j, c)]));
        }
    }
    a
}

fn bandwidths(n: usize) -> Vec<(usize, usize)> {
    let of = |k: usize| if n == 50 { [0, 1, 5, 37][k] } else { [0, 1, n.saturating_sub(1), 3][k] };
    (0..16).map(|c| (of(c / 4), of(c % 4))).collect()
}

fn every_type<T: Lapack>() {
    let lapack = reference::<T>();
    let mut cases = 0;
    for n in SIZES {
        for (kl, ku) in bandwidths(n) {
            for kind in band_types::<T>() {
                let nrhs = COLUMNS[cases % 3];
                let mut random = Random::new(cases as u64);
                let a = kind.general::<T>(n, kl, ku, &mut random);
                let b = product(&a, &Mat::from_fn(n, nrhs, |_, _| random.scalar()));
                let what = format!("{}gbsv, n {n}, kl {kl}, ku {ku}, type {}, nrhs {nrhs}", T::LETTER, kind.number);
                let ours = run(&T::OURS, &a, (kl, ku), &b);
                judge(&what, kind, &a, (kl, ku), &b, &ours);
                if let Some(lapack) = &lapack {
                    compare(&what, kind, &run(lapack, &a, (kl, ku), &b), &ours, (kl, ku));
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 7 * 16 * 8);
}

fn judge<T: Scalar>(what: &str, kind: Type, a: &Mat<T>, (kl, ku): (usize, usize), b: &Mat<T>, ours: &Answer<T>) {
    let n = a.nrows();
    assert_eq!(ours.info, kind.zeros.first(n).map_or(0, |j| j as i32 + 1), "{what}");
    for j in 0..n {
        let p = ours.ipiv[j] as usize - 1;
        assert!((j..=(j + kl).min(n - 1)).contains(&p), "{what}: row {j} was exchanged with row {p}");
        for i in j + 1..(j + kl + 1).min(n) {
            let l = ours.ab[(kl + ku + i - j, j)].abs1().to_f64();
            assert!(l <= 2.0, "{what}: a multiplier of {l} in column {j}");
        }
    }
    let ratio = factor_ratio(a, &multiplied(ours, kl, ku));
    assert!(ratio < THRESHOLD, "{what}: factors miss A by {ratio}");
    if ours.info == 0 {
        let ratio = solve_ratio(a, &ours.x, b);
        assert!(ratio < THRESHOLD, "{what}: the residual is {ratio}");
    } else {
        assert_eq!(&ours.x, b, "{what}: B was touched");
    }
}

fn compare<T: Scalar>(what: &str, kind: Type, lapack: &Answer<T>, ours: &Answer<T>, (kl, ku): (usize, usize)) {
    assert_eq!(lapack.info, ours.info, "{what}: info");
    let (n, kv) = (ours.ipiv.len(), kl + ku);
    if kind.condition * epsilon::<T>() > 0.01 {
        // The last pivots are what rounding left: two eliminations may choose differently.
        return;
    }
    assert_eq!(lapack.ipiv, ours.ipiv, "{what}: ipiv");
    let limit = 100.0 * n as f64 * kind.condition * epsilon::<T>();
    for j in 0..n {
        let column = |answer: &Answer<T>, rows: std::ops::Range<usize>| answer.ab.col_as_slice(j)[rows].to_vec();
        let u = kv.saturating_sub(j)..kv + 1;
        let apart = distance(&column(lapack, u.clone()), &column(ours, u));
        assert!(apart <= limit, "{what}: column {j} of U is {apart:e} apart");
        // Multipliers are of size 1 whatever U is.
        let l = kv + 1..kv + 1 + kl.min(n - 1 - j);
        for (theirs, ours) in column(lapack, l.clone()).into_iter().zip(column(ours, l)) {
            let apart = (theirs - ours).abs().to_f64();
            assert!(apart <= limit, "{what}: a multiplier of column {j} is {apart:e} apart");
        }
    }
    same_columns(what, &lapack.x, &ours.x, limit);
}

#[test]
fn doubles() {
    every_type::<f64>();
}
#[test]
fn floats() {
    every_type::<f32>();
}
#[test]
fn complex_doubles() {
    every_type::<c64>();
}
#[test]
fn complex_floats() {
    every_type::<c32>();
}

#[test]
fn factors_wide_enough_for_panels_are_those_of_lapack() {
    let kind = band_types::<f64>()[0];
    for (n, kl, ku) in [(150, 40, 33), (120, 64, 2), (90, 70, 70)] {
        let a = kind.general::<f64>(n, kl, ku, &mut Random::new(3));
        let b = product(&a, &Mat::from_fn(n, 2, |i, j| (i + j) as f64));
        let what = format!("dgbsv, n {n}, kl {kl}, ku {ku}");
        let ours = run(&f64::OURS, &a, (kl, ku), &b);
        judge(&what, kind, &a, (kl, ku), &b, &ours);
        if let Some(lapack) = reference::<f64>() {
            compare(&what, kind, &run(&lapack, &a, (kl, ku), &b), &ours, (kl, ku));
        }
    }
}

#[test]
fn wrong_arguments_have_lapacks_numbers() {
    let call = |n: i32, kl: i32, ku: i32, nrhs: i32, ldab: i32, ldb: i32| {
        let (mut ab, mut ipiv, mut b, mut info) = ([1.0; 64], [0; 8], [0.0; 64], 7);
        // SAFETY: arrays larger than any of the calls asks for.
        unsafe {
            (f64::OURS.gbsv)(
                &n,
                &kl,
                &ku,
                &nrhs,
                ab.as_mut_ptr(),
                &ldab,
                ipiv.as_mut_ptr(),
                b.as_mut_ptr(),
                &ldb,
                &mut info,
            );
        }
        info
    };
    assert_eq!(call(-1, 1, 1, 1, 4, 3), -1);
    assert_eq!(call(3, -1, 1, 1, 4, 3), -2);
    assert_eq!(call(3, 1, -1, 1, 4, 3), -3);
    assert_eq!(call(3, 1, 1, -1, 4, 3), -4);
    assert_eq!(call(3, 1, 1, 1, 3, 3), -6);
    assert_eq!(call(3, 1, 1, 1, 4, 2), -9);
    assert_eq!(call(0, 1, 1, 1, 4, 0), -9);
    assert_eq!(call(0, 1, 1, 1, 4, 1), 0);
    assert_eq!(call(2, 0, 0, 0, 1, 2), 0);
    let (n, mut info, null) = (2, 7, std::ptr::null_mut());
    let (mut ipiv, mut b) = ([0; 2], [0.0; 2]);
    // SAFETY: `ab` is null, which is found out.
    unsafe { (f64::OURS.gbsv)(&n, &0, &0, &1, null, &1, ipiv.as_mut_ptr(), b.as_mut_ptr(), &n, &mut info) };
    assert_eq!(info, -5);
    assert_eq!(Zeros::SecondHalf.first(5), Some(2));
}
