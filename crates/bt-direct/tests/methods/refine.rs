//! Iterative refinement: it repairs what factors of a neighbouring matrix leave, and never makes an answer worse.

use bt_direct::refine::unit_roundoff;
use bt_direct::{BandLu, Refinement, refine};
use bt_formats::{Band, Scalar, c32, c64, certify};
use faer::Mat;

use crate::common::{OPS, Random};

fn dominant<T: Scalar>(n: usize, seed: u64) -> Band<T> {
    let mut r = Random::new(seed);
    let mut a = Band::zeros(n, 2, 3).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = r.scalar::<T>() + T::rounded(if i == j { 6.0 } else { 0.0 }, 0.0);
        }
    }
    a
}

/// Factors of A(1 + 1e-3·noise) and a start of zero: every step gains three digits until none are left.
fn repairs<T: Scalar>() {
    let n = 60;
    let a = dominant::<T>(n, 3);
    let mut r = Random::new(8);
    let mut near = a.clone();
    near.values_mut().iter_mut().for_each(|v| *v *= T::rounded(1.0 + 1e-3 * r.real(), 0.0));
    let lu = BandLu::new(&near).unwrap();
    let b = Mat::<T>::from_fn(n, 3, |_, _| r.scalar());
    for op in OPS {
        let mut x = Mat::zeros(n, 3);
        let done = refine(&a, &lu, op, b.as_ref(), &mut x, Refinement::Steps(20));
        let allowed = 4.0 * unit_roundoff::<T>();
        assert!(done.certificate.backward_error <= allowed, "{op:?} {:e}", done.certificate.backward_error);
        assert_eq!(done.certificate, certify(&a, op, x.as_ref(), b.as_ref()));
        assert!(done.steps >= 2 && done.steps < 20, "{}", done.steps);
        assert!(done.solves >= 3 * done.steps && done.operator_applications == 3 + done.solves);
    }
}

#[test]
fn repairs_neighbouring_factors() {
    repairs::<f64>();
    repairs::<f32>();
    repairs::<c64>();
    repairs::<c32>();
}

/// Factors of an unrelated matrix help nothing: x must come back as it was.
#[test]
fn a_step_that_does_not_help_is_undone() {
    let a = dominant::<f64>(40, 3);
    let mut wrong = dominant::<f64>(40, 5);
    wrong.values_mut().iter_mut().for_each(|v| *v *= -0.01);
    let lu = BandLu::new(&a).unwrap();
    let b = Mat::from_fn(40, 1, |i, _| i as f64 - 3.0);
    let mut x = b.clone();
    bt_direct::Factorization::solve_in_place(&lu, x.as_mut());
    let good = x.clone();
    let done =
        refine(&a, &BandLu::new(&wrong).unwrap(), bt_formats::Op::Identity, b.as_ref(), &mut x, Refinement::Steps(3));
    assert_eq!((done.steps, done.solves), (0, 1));
    assert_eq!(x, good);
}

/// A right-hand side of zero and an exact answer need no step.
#[test]
fn nothing_to_do_is_nothing_done() {
    let a = dominant::<f64>(10, 3);
    let lu = BandLu::new(&a).unwrap();
    let mut x = Mat::zeros(10, 2);
    let b = Mat::zeros(10, 2);
    let done = refine(&a, &lu, bt_formats::Op::Identity, b.as_ref(), &mut x, Refinement::Auto);
    assert_eq!((done.steps, done.solves, done.operator_applications), (0, 0, 2));
}
