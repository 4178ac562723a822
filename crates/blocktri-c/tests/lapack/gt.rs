//! `gtsv`.

use blocktri::faer::Mat;
use blocktri::{Scalar, c32, c64};

use crate::drivers::{Drivers, Lapack, columns, flat, reference};
use crate::types::{
    COLUMNS, Random, SIZES, THRESHOLD, distance, epsilon, product, same_columns, solve_ratio, tridiagonal_types,
};

/// What a driver leaves.
struct Answer<T> {
    info: i32,
    /// `dl`, `d`, `du`.
    diagonals: [Vec<T>; 3],
    x: Mat<T>,
}

fn run<T: Lapack>(drivers: &Drivers<T>, a: &Mat<T>, b: &Mat<T>) -> Answer<T> {
    let n = a.nrows();
    let beside = n.saturating_sub(1);
    let mut dl: Vec<T> = (0..beside).map(|i| a[(i + 1, i)]).collect();
    let mut d: Vec<T> = (0..n).map(|i| a[(i, i)]).collect();
    let mut du: Vec<T> = (0..beside).map(|i| a[(i, i + 1)]).collect();
    let (ldb, mut info) = (n + 1, -1);
    let mut x = flat(b, ldb);
    let [ni, nrhs, ldbi] = [n, b.ncols(), ldb].map(|v| v as i32);
    // SAFETY: arrays of the sizes that LAPACK asks for.
    unsafe {
        (drivers.gtsv)(&ni, &nrhs, dl.as_mut_ptr(), d.as_mut_ptr(), du.as_mut_ptr(), x.as_mut_ptr(), &ldbi, &mut info);
    }
    Answer { info, diagonals: [dl, d, du], x: columns(&x, n, b.ncols(), ldb) }
}

fn every_type<T: Lapack>() {
    let lapack = reference::<T>();
    let mut cases = 0;
    for n in SIZES {
        for kind in tridiagonal_types::<T>() {
            for nrhs in COLUMNS {
                let mut random = Random::new(1000 + cases as u64);
                let a = kind.general::<T>(n, 1, 1, &mut random);
                let b = product(&a, &Mat::from_fn(n, nrhs, |_, _| random.scalar()));
                let what = format!("{}gtsv, n {n}, type {}, nrhs {nrhs}", T::LETTER, kind.number);
                let ours = run(&T::OURS, &a, &b);
                assert_eq!(ours.info, kind.zeros.first(n).map_or(0, |j| j as i32 + 1), "{what}");
                if ours.info == 0 {
                    let ratio = solve_ratio(&a, &ours.x, &b);
                    assert!(ratio < THRESHOLD, "{what}: the residual is {ratio}");
                }
                if let Some(lapack) = &lapack {
                    compare(&what, kind.condition, &run(lapack, &a, &b), &ours);
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 7 * 12 * 3);
}

fn compare<T: Scalar>(what: &str, condition: f64, lapack: &Answer<T>, ours: &Answer<T>) {
    assert_eq!(lapack.info, ours.info, "{what}: info");
    // Random entries have conditions in the thousands; of the others the type tells.
    let condition = if condition < 1.0 { 1e4 } else { condition };
    let n = ours.x.nrows();
    let limit = 100.0 * n as f64 * condition * epsilon::<T>();
    if ours.info != 0 || limit > 0.1 {
        return;
    }
    let kept = [n.saturating_sub(2), n, n.saturating_sub(1)];
    for ((theirs, ours), kept) in lapack.diagonals.iter().zip(&ours.diagonals).zip(kept) {
        let apart = distance(&theirs[..kept], &ours[..kept]);
        assert!(apart <= limit, "{what}: a diagonal of U is {apart:e} apart");
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
    let call = |n: i32, nrhs: i32, ldb: i32| {
        let (mut dl, mut d, mut du, mut b, mut info) = ([0.0; 4], [1.0; 4], [0.0; 4], [1.0; 16], 7);
        // SAFETY: arrays larger than any of the calls asks for.
        unsafe {
            (f64::OURS.gtsv)(
                &n,
                &nrhs,
                dl.as_mut_ptr(),
                d.as_mut_ptr(),
                du.as_mut_ptr(),
                b.as_mut_ptr(),
                &ldb,
                &mut info,
            );
        }
        info
    };
    assert_eq!([call(-1, 1, 1), call(3, -1, 3), call(3, 1, 2), call(0, 1, 0)], [-1, -2, -7, -7]);
    assert_eq!([call(0, 1, 1), call(3, 0, 3), call(3, 2, 3)], [0, 0, 0]);
}
