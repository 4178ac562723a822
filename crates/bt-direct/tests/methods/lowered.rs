//! Factors in single precision: right to f32 alone, right to f64 after refinement, and honest where refinement stagnates.

use bt_direct::refine::unit_roundoff;
use bt_direct::{BandLu, Factorization, Lowered, Refinement, refine};
use bt_formats::{Band, Csr, RealScalar, Rounded, Scalar, c32, c64};
use bt_testkit::alloc::count_allocations;
use bt_testkit::csr;
use faer::Mat;

use crate::common::{OPS, Random};

fn lower<L: Scalar, T: Scalar>(a: &Csr<T>) -> Lowered<L> {
    let f = Rounded::<L>::new(a).unwrap();
    Lowered::new(Box::new(BandLu::new(&Band::from_csr(f.matrix()).unwrap()).unwrap()), f.exponent())
}

/// A dominant band of the size `scale`.
fn dominant<T: Scalar>(n: usize, scale: f64) -> Csr<T> {
    let mut r = Random::new(5);
    csr(n, |i: usize, j: usize| match i.abs_diff(j) {
        0 => (r.scalar::<T>() + T::rounded(6.0, 0.0)) * T::rounded(scale, 0.0),
        1 | 2 => r.scalar::<T>() * T::rounded(scale, 0.0),
        _ => T::default(),
    })
}

fn solves<T: Scalar, L: Scalar>() {
    let n = 50;
    for scale in [1.0, 1e-250, 1e250] {
        let a = dominant::<T>(n, scale);
        let factors = lower::<L, T>(&a);
        let exact = BandLu::new(&Band::from_csr(&a).unwrap()).unwrap();
        let mut r = Random::new(6);
        // More columns than go through the buffer at once, of very different sizes, and a zero one.
        let b = Mat::<T>::from_fn(n, 20, |_, j| {
            let size = if j == 7 { 0.0 } else { 10f64.powi(j as i32 - 10) * scale };
            r.scalar::<T>() * T::rounded(size, 0.0)
        });
        for op in OPS {
            let (mut x, mut y) = (b.clone(), b.clone());
            factors.solve_op_in_place(op, x.as_mut());
            exact.solve_op_in_place(op, y.as_mut());
            for j in 0..20 {
                let size = (0..n).map(|i| y[(i, j)].abs().to_f64()).fold(0.0, f64::max);
                let off = (0..n).map(|i| (x[(i, j)] - y[(i, j)]).abs().to_f64()).fold(0.0, f64::max);
                assert!(off <= 1e-5 * size, "{op:?} column {j}: {off:e} of {size:e}");
                assert!(j == 7 || off > 1e-12 * size, "{op:?}: this is not single precision");
            }
            let refined = refine(&a, &factors, op, b.as_ref(), &mut x, Refinement::Stagnation);
            assert!(refined.certificate.backward_error <= 4.0 * unit_roundoff::<T>(), "{refined:?}");
            assert!(refined.steps >= 1 && refined.steps <= 4, "{refined:?}");
        }
        let (found, expected) = (Factorization::<T>::log_det(&factors), exact.log_det());
        assert!((found.log_abs - expected.log_abs).abs() < 1e-4 * n as f64);
        assert!((found.sign - expected.sign).abs().to_f64() < 1e-4);
        let (found, expected) = (Factorization::<T>::stats(&factors), exact.stats());
        assert!((found.norm_one / expected.norm_one - 1.0).abs() < 1e-6);
        assert!((found.min_pivot / expected.min_pivot - 1.0).abs() < 1e-5);
        assert!((Factorization::<T>::rcond(&factors) / exact.rcond() - 1.0).abs() < 1e-4);
        let mut x = b.clone();
        assert_eq!(count_allocations(|| factors.solve_in_place(x.as_mut())).1, 0);
    }
}

#[test]
fn right_to_single_then_to_double_precision() {
    solves::<f64, f32>();
    solves::<c64, c32>();
}

#[test]
fn refinement_takes_more_steps_with_the_condition_and_then_stagnates() {
    // Hilbert matrices: κ = 5e2, 5e5 and 2e13 for orders 3, 5 and 10.
    let run = |n: usize| {
        let a = csr(n, |i, j| 1.0 / (i + j + 1) as f64);
        let factors = lower::<f32, f64>(&a);
        let b = Mat::from_fn(n, 1, |i, _| 1.0 + i as f64);
        let mut x = b.clone();
        factors.solve_in_place(x.as_mut());
        let refined = refine(&a, &factors, bt_formats::Op::Identity, b.as_ref(), &mut x, Refinement::Stagnation);
        (refined.steps, refined.certificate.backward_error)
    };
    let (easy, middle) = (run(3), run(5));
    assert!(easy.1 <= 1e-15 && middle.1 <= 1e-15 && middle.0 > easy.0, "{easy:?} {middle:?}");
    // Beyond 1/u of f32 the factors are those of another matrix.
    let (steps, error) = run(10);
    assert!(error > 1e-12 && steps < 50, "{steps} {error:e}");
}

#[test]
fn values_that_are_not_finite_stay_so() {
    let factors = lower::<f32, f64>(&dominant(5, 1.0));
    let mut x = [1.0, f64::NAN, 0.0, 0.0, 0.0];
    factors.solve_vec_in_place(&mut x);
    assert!(x[1].is_nan());
    let mut none = [0.0f64; 0];
    lower::<f32, f64>(&csr(0, |_, _| 0.0)).solve_vec_in_place(&mut none);
}
