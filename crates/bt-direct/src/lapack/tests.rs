//! The elimination entry by entry agrees with the methods, goes on behind a zero pivot, and spreads what is not a number.

use bt_formats::{Scalar, c64};
use faer::{Mat, MatMut, mat};

use super::*;

/// Dyadic numbers in (−1, 1), from a counter.
fn numbers<T: Scalar>(seed: u64) -> impl FnMut() -> T {
    let mut state = seed;
    move || {
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) as f64 / (1u64 << 23) as f64) - 1.0
        };
        let re = next();
        T::rounded(re, next())
    }
}

fn band<T: Scalar>(n: usize, kl: usize, ku: usize) -> Mat<T> {
    let mut next = numbers(n as u64 + 7);
    // What is no entry is NaN: nothing may read it.
    let inside = |r: usize, j: usize| r >= kl && (j + r).checked_sub(kl + ku).is_some_and(|i| i < n);
    Mat::from_fn(2 * kl + ku + 2, n, |r, j| if inside(r, j) { next() } else { T::nan_impl() })
}

fn plain_and_fast_agree<T: Scalar>(n: usize, kl: usize, ku: usize) {
    let a = band::<T>(n, kl, ku);
    let b = Mat::from_fn(n, 2, |i, j| T::from_real(<T::Real as RealScalar>::from_f64((i + 3 * j) as f64 - 2.0)));
    let (mut fast, mut plain) = (a.clone(), a.clone());
    let [mut p, mut q] = [vec![0; n], vec![0; n]];
    let [mut x, mut y] = [b.clone(), b];
    gbsv((kl, ku), fast.as_mut(), &mut p, x.as_mut()).unwrap();
    let mut eliminated = PlainBand { kl, kv: kl + ku, ab: plain.as_mut() };
    eliminated.factor(ku, &mut q).unwrap();
    (0..2).for_each(|c| eliminated.solve(&q, y.as_mut().subcols_mut(c, 1)));
    assert_eq!(p, q);
    for j in 0..n {
        for r in rows_inside(n, (kl, kl + ku), j) {
            let (f, g) = (fast[(r, j)], plain[(r, j)]);
            assert!((f - g).abs1().to_f64() < 1e-9, "row {r}, column {j}: {f} and {g}");
        }
    }
    assert!((0..n).all(|i| (0..2).all(|c| (x[(i, c)] - y[(i, c)]).abs1().to_f64() < 1e-7)), "{x:?} and {y:?}");
}

#[test]
fn both_eliminations_leave_the_same_factors() {
    for (n, kl, ku) in
        [(1, 0, 0), (4, 1, 1), (7, 2, 0), (7, 0, 3), (30, 3, 5), (60, 12, 4), (90, 20, 20), (120, 40, 33)]
    {
        plain_and_fast_agree::<f64>(n, kl, ku);
        plain_and_fast_agree::<c64>(n, kl, ku);
    }
}

#[test]
fn elimination_goes_on_behind_a_zero_pivot() {
    // [ 1 1   ]     [ 1 1   ]
    // [ 1 1 4 ]  →  [ 1 0 4 ]: no pivot in column 1 (row 2 is empty there), then column 2 all the same.
    // [   0 2 ]     [   0 2 ]
    let nan = f64::NAN;
    let mut ab = [nan, nan, 1.0, 1.0, nan, 1.0, 1.0, 0.0, nan, 4.0, 2.0, nan];
    let (mut ipiv, mut b) = ([0; 3], mat![[5.0], [6.0], [7.0]]);
    let kept = b.clone();
    let done = gbsv((1, 1), MatMut::from_column_major_slice_mut(&mut ab, 4, 3), &mut ipiv, b.as_mut());
    assert_eq!(done, Err(NoPivot { column: 1 }));
    assert_eq!((b, ipiv), (kept, [1, 2, 3]));
    assert_eq!((&ab[2..4], &ab[5..8], &ab[8..11]), (&[1.0, 1.0][..], &[1.0, 0.0, 0.0][..], &[0.0, 4.0, 2.0][..]));
}

#[test]
fn what_is_no_number_spreads() {
    let mut ab = [f64::NAN, 2.0];
    let (mut ipiv, mut b) = ([0; 2], mat![[1.0], [4.0]]);
    gbsv((0, 0), MatMut::from_column_major_slice_mut(&mut ab, 1, 2), &mut ipiv, b.as_mut()).unwrap();
    assert!(b[(0, 0)].is_nan() && b[(1, 0)] == 2.0, "{b:?}");
    let (mut d, mut b) = ([f64::NAN, 2.0], mat![[1.0], [4.0]]);
    gtsv(&mut [0.0], &mut d, &mut [0.0], b.as_mut()).unwrap();
    assert!(b[(0, 0)].is_nan(), "{b:?}");
    let mut ab = mat![[f64::NAN, 2.0]];
    assert_eq!(pbsv(Half::Lower, 0, ab.as_mut(), b.as_mut()), Err(NoPivot { column: 0 }));
}

#[test]
fn the_halves_of_a_hermitian_matrix_give_one_answer() {
    let (n, k) = (9, 2);
    let mut next = numbers::<c64>(5);
    let lower = Mat::from_fn(k + 1, n, |r, _| if r == 0 { c64::new(5.0, 0.25) } else { next() });
    let mut upper = Mat::from_fn(k + 1, n, |_, _| c64::new(f64::NAN, 0.0));
    for j in 0..n {
        for i in j..(j + k + 1).min(n) {
            upper[(k + j - i, i)] = lower[(i - j, j)].conj();
        }
    }
    let b = Mat::from_fn(n, 1, |i, _| c64::new(i as f64, 1.0));
    let (mut l, mut u, mut x, mut y) = (lower.clone(), upper, b.clone(), b.clone());
    pbsv(Half::Lower, k, l.as_mut(), x.as_mut()).unwrap();
    pbsv(Half::Upper, k, u.as_mut(), y.as_mut()).unwrap();
    assert_eq!(x, y);
    assert_eq!(u[(0, 5)], l[(2, 3)].conj());
    // Entry by entry.
    let mut again = lower.clone();
    let mut plain = PlainLower { half: Half::Lower, k, ab: again.as_mut() };
    let mut z = b;
    plain.factor().unwrap();
    plain.solve(z.as_mut());
    assert!((&z - &x).norm_max() < 1e-14, "{z:?} and {x:?}");
    let mut indefinite = lower;
    indefinite[(0, 3)] = c64::new(-1.0, 0.0);
    assert_eq!(pbsv(Half::Lower, k, indefinite.as_mut(), z.as_mut()), Err(NoPivot { column: 3 }));
}

#[test]
fn no_rows_are_solved() {
    let mut nothing = Mat::<f64>::zeros(0, 3);
    gbsv((1, 1), Mat::zeros(4, 0).as_mut(), &mut [], nothing.as_mut()).unwrap();
    gtsv(&mut [], &mut [], &mut [], nothing.as_mut()).unwrap();
    pbsv(Half::Upper, 1, Mat::zeros(2, 0).as_mut(), nothing.as_mut()).unwrap();
}
