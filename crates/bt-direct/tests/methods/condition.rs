//! The condition estimator against exact condition numbers.

use bt_direct::condition::{norm_one_estimate, rcond_refined};
use bt_direct::{BandLu, Factorization, TridiagonalLu};
use bt_formats::{Band, Op, Scalar, Tridiagonal, c32, c64};
use faer::Mat;
use proptest::prelude::*;

use crate::common::Random;

/// The estimate of a dense matrix's norm is a lower bound, and no worse than a tenth of it.
fn check<T: Scalar>(n: usize, seed: u64) {
    let mut r = Random::new(seed);
    let b = Mat::<T>::from_fn(n, n, |_, _| r.scalar());
    let exact = (0..n)
        .map(|j| (0..n).map(|i| bt_formats::RealScalar::to_f64(Scalar::abs(b[(i, j)]))).sum::<f64>())
        .fold(0.0, f64::max);
    let mut products = 0;
    let estimate = norm_one_estimate::<T>(n, |op, x| {
        products += 1;
        let columns = Mat::from_fn(n, x.len() / n, |i, j| x[j * n + i]);
        let y = match op {
            Op::Identity => &b * &columns,
            Op::Transpose => unreachable!("only A and its adjoint are asked for"),
            Op::Adjoint => b.adjoint() * &columns,
        };
        x.iter_mut().enumerate().for_each(|(i, v)| *v = y[(i % n, i / n)]);
    });
    assert!(estimate <= exact * (1.0 + 1e-5) && estimate >= 0.1 * exact, "{estimate} {exact}");
    assert!(products <= 12, "{products}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn norms_of_dense_matrices(n in 1usize..30, seed: u32) {
        check::<f64>(n, u64::from(seed));
        check::<f32>(n, u64::from(seed));
        check::<c64>(n, u64::from(seed));
        check::<c32>(n, u64::from(seed));
    }
}

/// The second-difference matrix: ‖A‖₁ = 4 and ‖A⁻¹‖₁ = (n + 1)²/8 for odd n, found exactly.
#[test]
fn laplacian() {
    let n = 99;
    let off = |edge: usize| (0..n).map(|i| if i == edge { 0.0 } else { -1.0 }).collect::<Vec<f64>>();
    let a = Tridiagonal::new(off(0), vec![2.0; n], off(n - 1)).unwrap();
    let rcond = TridiagonalLu::new(&a).unwrap().rcond();
    assert!((rcond * 5000.0 - 1.0).abs() < 1e-10, "{rcond}");
}

/// Good factors tell by refined solves what they tell without: corrections that are rounding errors need not become smaller.
#[test]
fn refined_estimates_of_good_factors() {
    let mut r = Random::new(7);
    for n in 20..60 {
        let mut a = Band::<f64>::zeros(n, 2, 2).unwrap();
        for j in 0..n {
            for i in j.saturating_sub(2)..(j + 3).min(n) {
                *a.get_mut(i, j) = r.scalar();
            }
        }
        let lu = BandLu::new(&a).unwrap();
        let (refined, plain) = (rcond_refined(&a, &lu).expect("an estimate"), lu.rcond());
        assert!((refined / plain - 1.0).abs() < 1e-6, "{n}: {refined} {plain}");
    }
}

/// The condition does not depend on the scale, up to the edges of the range.
#[test]
fn scales_do_not_matter() {
    fn at<T: Scalar>(exponents: &[i32]) {
        let mut r = Random::new(4);
        let mut a = Band::<T>::zeros(30, 2, 2).unwrap();
        for j in 0..30 {
            for i in a.column_range(j) {
                *a.get_mut(i, j) = r.scalar::<T>() + T::rounded(if i == j { 4.0 } else { 0.0 }, 0.0);
            }
        }
        let rcond = BandLu::new(&a).unwrap().rcond();
        for &e in exponents {
            let mut scaled = a.clone();
            scaled.values_mut().iter_mut().for_each(|v| *v *= T::rounded(2f64.powi(e), 0.0));
            let other = BandLu::new(&scaled).unwrap().rcond();
            assert!((other / rcond - 1.0).abs() < 1e-5, "2^{e}: {other} {rcond}");
        }
    }
    at::<f64>(&[-1010, -500, 500, 1010]);
    at::<c64>(&[-1010, -500, 500, 1010]);
    at::<f32>(&[-115, 115]);
    at::<c32>(&[-115, 115]);
}
