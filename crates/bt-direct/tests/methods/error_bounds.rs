//! Error bounds against the true error and against |A⁻¹|·f formed with the dense inverse.

use bt_direct::refine::unit_roundoff;
use bt_direct::{Factorization, SparseLu, error_bounds};
use bt_formats::{Coo, Csr, Matrix, Op, RealScalar, Scalar, c32, c64};
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use proptest::prelude::*;

use crate::common::{OPS, Random, dense};

/// A random matrix with a heavy cyclic diagonal, entries of |i − j| ≤ 3, rows scaled by powers of ten.
fn random<T: Scalar>(n: usize, spread: f64, seed: u64) -> Csr<T> {
    let mut r = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        let scale = 10f64.powf(spread * r.real());
        for j in 0..n {
            let v: T = r.scalar();
            if i.abs_diff(j) <= 3 {
                let heavy = if i == j { T::rounded(4.0, 0.0) } else { bt_formats::zero() };
                a.push(i, j, (v + heavy) * T::rounded(scale, 0.0)).unwrap();
            }
        }
    }
    a.to_csr().unwrap()
}

fn wide<T: Scalar>(a: &Mat<T>, op: Op) -> Mat<c64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| match op {
        Op::Identity => a[(i, j)].cast(),
        Op::Transpose => a[(j, i)].cast(),
        Op::Adjoint => Scalar::conj(a[(j, i)]).cast(),
    })
}

fn check<T: Scalar>(n: usize, spread: f64, seed: u64) {
    let a = random::<T>(n, spread, seed);
    let lu = SparseLu::new(&a).unwrap();
    let mut r = Random::new(seed ^ 5);
    let b = Mat::<T>::from_fn(n, 2, |_, _| r.scalar());
    for op in OPS {
        let mut x = b.clone();
        lu.solve_op_in_place(op, x.as_mut());
        let inverse = wide(&dense(&a), op).partial_piv_lu().inverse();
        let full = wide(&dense(&a), op);
        for (j, bounds) in error_bounds(&a, &lu, op, b.as_ref(), x.as_ref()).into_iter().enumerate() {
            let norm_x = (0..n).map(|i| x[(i, j)].abs().to_f64()).fold(0.0, f64::max);
            // The weights again, with plain loops in double precision.
            let mut f = vec![0.0; n];
            let mut backward = 0.0f64;
            let z = (0..n).map(|i| (0..n).filter(|&k| i.abs_diff(k) <= 3).count()).max().unwrap() as f64 + 1.0;
            for i in 0..n {
                let mut residual: c64 = b[(i, j)].cast();
                let mut d = residual.norm();
                for k in 0..n {
                    let v: c64 = x[(k, j)].cast();
                    residual -= full[(i, k)] * v;
                    d += full[(i, k)].norm() * v.norm();
                }
                backward = backward.max(residual.norm() / d);
                f[i] = residual.norm() + z * 2.0 * unit_roundoff::<T>() * d;
            }
            let norm = (0..n).map(|i| (0..n).map(|k| inverse[(i, k)].norm() * f[k]).sum::<f64>()).fold(0.0, f64::max);
            // r was rounded in the working precision: (z + 1)·ε is what it may differ by.
            assert!((bounds.backward - backward).abs() <= 8.0 * unit_roundoff::<T>() * z, "{bounds:?} {backward:e}");
            let exact = norm / norm_x;
            assert!(bounds.forward <= 3.0 * exact && bounds.forward >= exact / 10.0, "{bounds:?} {exact:e}");
        }
    }
}

/// Integers: b = A·x* is exact, so that the true error is known.
fn true_error(n: usize, seed: u64) -> (f64, f64) {
    let mut r = Random::new(seed);
    let mut a = Coo::new(n, n).unwrap();
    for i in 0..n {
        for j in i.saturating_sub(2)..(i + 3).min(n) {
            a.push(i, j, (9.0 * r.real()).round() + if i == j { 5.0 } else { 0.0 }).unwrap();
        }
    }
    let a: Csr<f64> = a.to_csr().unwrap();
    let exact: Vec<f64> = (0..n).map(|_| (9.0 * r.real()).round() + 10.0).collect();
    let mut b = vec![0.0; n];
    a.apply_op(Op::Identity, 1.0, &exact, 0.0, &mut b, bt_formats::Par::Seq);
    let b = Mat::from_fn(n, 1, |i, _| b[i]);
    let Ok(lu) = SparseLu::new(&a) else { return (0.0, 1.0) };
    let mut x = b.clone();
    lu.solve_in_place(x.as_mut());
    let error = (0..n).map(|i| (x[(i, 0)] - exact[i]).abs()).fold(0.0, f64::max);
    let norm = (0..n).map(|i| x[(i, 0)].abs()).fold(0.0, f64::max);
    (error / norm, error_bounds(&a, &lu, Op::Identity, b.as_ref(), x.as_ref())[0].forward)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn as_with_the_dense_inverse(n in 1usize..25, spread in 0.0f64..3.0, seed: u64) {
        check::<f64>(n, spread, seed);
        check::<c64>(n, spread, seed);
        check::<f32>(n, spread / 3.0, seed);
        check::<c32>(n, spread / 3.0, seed);
    }

    #[test]
    fn the_true_error_is_within_the_bound(n in 1usize..60, seed: u64) {
        let (error, bound) = true_error(n, seed);
        prop_assert!(error <= bound, "{error:e} > {bound:e}");
    }
}

#[test]
fn extreme_scales_change_nothing() {
    let a = random::<f64>(12, 0.0, 3);
    let mut r = Random::new(8);
    let b = Mat::<f64>::from_fn(12, 1, |_, _| r.scalar());
    let bounds = |scale: f64| {
        let mut a = a.clone();
        a.values_mut().iter_mut().for_each(|v| *v *= scale);
        let b = Mat::from_fn(12, 1, |i, _| b[(i, 0)] * scale);
        let lu = SparseLu::new(&a).unwrap();
        let mut x = b.clone();
        lu.solve_in_place(x.as_mut());
        error_bounds(&a, &lu, Op::Identity, b.as_ref(), x.as_ref())[0]
    };
    let plain = bounds(1.0);
    // Powers of two scale without rounding.
    for scale in [2f64.powi(960), 2f64.powi(-960)] {
        let scaled = bounds(scale);
        assert!((scaled.forward / plain.forward - 1.0).abs() < 1e-6, "{scaled:?} {plain:?}");
        assert_eq!(scaled.backward, plain.backward);
    }
}

#[test]
fn zero_and_nonsense() {
    let a = random::<f64>(5, 0.0, 1);
    let lu = SparseLu::new(&a).unwrap();
    let zero = Mat::<f64>::zeros(5, 1);
    let one = Mat::<f64>::from_fn(5, 1, |_, _| 1.0);
    let at = |b: &Mat<f64>, x: &Mat<f64>| error_bounds(&a, &lu, Op::Identity, b.as_ref(), x.as_ref())[0];
    let exact = at(&zero, &zero);
    assert_eq!((exact.forward, exact.backward), (0.0, 0.0));
    let wrong = at(&one, &zero);
    assert_eq!((wrong.forward, wrong.backward), (f64::INFINITY, 1.0));
    let nan = at(&one, &Mat::from_fn(5, 1, |_, _| f64::NAN));
    assert_eq!((nan.forward, nan.backward), (f64::INFINITY, f64::INFINITY));
    assert!(error_bounds(&a, &lu, Op::Identity, Mat::zeros(5, 0).as_ref(), Mat::zeros(5, 0).as_ref()).is_empty());
}
