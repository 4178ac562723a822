//! `pbsv`.

use blocktri::faer::Mat;
use blocktri::{Scalar, c32, c64};

use crate::drivers::{Drivers, Lapack, columns, flat, reference};
use crate::types::{
    COLUMNS, Random, SIZES, THRESHOLD, Zeros, band_types, distance, epsilon, factor_ratio, product, same_columns,
    solve_ratio,
};

/// What a driver leaves.
struct Answer<T> {
    info: i32,
    ab: Mat<T>,
    x: Mat<T>,
}

fn run<T: Lapack>(drivers: &Drivers<T>, uplo: u8, a: &Mat<T>, k: usize, b: &Mat<T>) -> Answer<T> {
    let n = a.nrows();
    let above = if uplo == b'U' { k } else { 0 };
    let ab = Mat::from_fn(k + 1, n, |r, j| match (j + r).checked_sub(above) {
        Some(i) if i < n => a[(i, j)],
        _ => T::nan_impl(),
    });
    let (ldab, ldb, mut info) = (k + 2, n + 2, -1);
    let (mut ab, mut x) = (flat(&ab, ldab), flat(b, ldb));
    let [ni, ki, nrhs, ldabi, ldbi] = [n, k, b.ncols(), ldab, ldb].map(|v| v as i32);
    let uplo = uplo as std::ffi::c_char;
    // SAFETY: arrays of the sizes that LAPACK asks for.
    unsafe {
        (drivers.pbsv)(&uplo, &ni, &ki, &nrhs, ab.as_mut_ptr(), &ldabi, x.as_mut_ptr(), &ldbi, &mut info);
    }
    Answer { info, ab: columns(&ab, k + 1, n, ldab), x: columns(&x, n, b.ncols(), ldb) }
}

/// L·Lᴴ.
fn multiplied<T: Scalar>(answer: &Answer<T>, uplo: u8, k: usize) -> Mat<T> {
    let n = answer.ab.ncols();
    let inside = |i: usize, j: usize| i >= j && i - j <= k;
    let l = Mat::from_fn(n, n, |i, j| match uplo {
        _ if !inside(i, j) => T::zero_impl(),
        b'U' => Scalar::conj(answer.ab[(k + j - i, i)]),
        _ => answer.ab[(i - j, j)],
    });
    product(&l, &l.adjoint().to_owned())
}

fn every_type<T: Lapack>() {
    let lapack = reference::<T>();
    let mut cases = 0;
    for n in SIZES {
        for k in [0, 1, n.saturating_sub(1).min(20), n.div_ceil(4)] {
            for kind in band_types::<T>() {
                for uplo in [b'U', b'L'] {
                    let nrhs = COLUMNS[cases / 2 % 3];
                    let mut random = Random::new(2000 + cases as u64);
                    let mut a = kind.definite::<T>(n, k, &mut random);
                    // A row and column of zeros, not a column alone.
                    if kind.zeros != Zeros::None {
                        a = Mat::from_fn(
                            n,
                            n,
                            |i, j| if kind.zeros.contains(n, i) { T::zero_impl() } else { a[(i, j)] },
                        );
                    }
                    let b = product(&a, &Mat::from_fn(n, nrhs, |_, _| random.scalar()));
                    let half = uplo as char;
                    let what = format!("{}pbsv, {half}, n {n}, k {k}, type {}, nrhs {nrhs}", T::LETTER, kind.number);
                    let ours = run(&T::OURS, uplo, &a, k, &b);
                    assert_eq!(ours.info, kind.zeros.first(n).map_or(0, |j| j as i32 + 1), "{what}");
                    if ours.info == 0 {
                        let ratio = factor_ratio(&a, &multiplied(&ours, uplo, k));
                        assert!(ratio < THRESHOLD, "{what}: factors miss A by {ratio}");
                        let ratio = solve_ratio(&a, &ours.x, &b);
                        assert!(ratio < THRESHOLD, "{what}: the residual is {ratio}");
                    } else {
                        assert_eq!(ours.x, b, "{what}: B was touched");
                    }
                    if let Some(lapack) = &lapack {
                        compare(&what, kind.condition, &run(lapack, uplo, &a, k, &b), &ours, (uplo, k));
                    }
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 7 * 4 * 8 * 2);
}

fn compare<T: Scalar>(what: &str, condition: f64, lapack: &Answer<T>, ours: &Answer<T>, (uplo, k): (u8, usize)) {
    assert_eq!(lapack.info, ours.info, "{what}: info");
    let n = ours.x.nrows();
    let limit = 100.0 * n as f64 * condition * epsilon::<T>();
    if ours.info != 0 || limit > 0.1 {
        return;
    }
    for j in 0..n {
        let rows = if uplo == b'U' { k.saturating_sub(j)..k + 1 } else { 0..1 + k.min(n - 1 - j) };
        let apart = distance(&lapack.ab.col_as_slice(j)[rows.clone()], &ours.ab.col_as_slice(j)[rows]);
        assert!(apart <= limit, "{what}: column {j} of the factor is {apart:e} apart");
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
fn wrong_arguments_have_lapacks_numbers() {
    let call = |uplo: u8, n: i32, kd: i32, nrhs: i32, ldab: i32, ldb: i32| {
        let (mut ab, mut b, mut info, uplo) = ([1.0; 16], [1.0; 16], 7, uplo as std::ffi::c_char);
        // SAFETY: arrays larger than any of the calls asks for.
        unsafe { (f64::OURS.pbsv)(&uplo, &n, &kd, &nrhs, ab.as_mut_ptr(), &ldab, b.as_mut_ptr(), &ldb, &mut info) };
        info
    };
    assert_eq!([call(b'X', 2, 0, 1, 1, 2), call(b'U', -1, 0, 1, 1, 2), call(b'U', 2, -1, 1, 1, 2)], [-1, -2, -3]);
    assert_eq!([call(b'U', 2, 0, -1, 1, 2), call(b'L', 2, 1, 1, 1, 2), call(b'l', 2, 0, 1, 1, 1)], [-4, -6, -8]);
    assert_eq!([call(b'u', 2, 0, 1, 1, 2), call(b'L', 0, 0, 1, 1, 1), call(b'L', 2, 0, 0, 1, 2)], [0, 0, 0]);
    // [ 1 1 ]: the minor of order 2 is not positive definite.
    // [ 1 1 ]
    assert_eq!(call(b'L', 2, 1, 1, 2, 2), 2);
}
