//! The suites on units and twins accept honest objects and reject those that break one rule each.

use bt_direct::Factorization;
use bt_formats::{Csr, Outcome};
use bt_testkit::contract::{
    Answer, Apply, Make, Units, method_twins_contract, method_units_contract, preconditioner_adjoint_contract,
    preconditioner_units_contract,
};
use bt_testkit::{DenseLu, random_vector, stencil};

/// Dense elimination without a fault, and what one fault makes of it.
fn dense(a: &Csr<f64>, b: &[f64]) -> Answer<f64> {
    let mut x = b.to_vec();
    DenseLu::new(a).unwrap().solve_vec_in_place(&mut x);
    Answer { x, iterations: 1, outcome: Outcome::Converged }
}

/// What spoils an answer to A·x = b.
type Fault<'a> = dyn FnMut(&Csr<f64>, &[f64], &mut Answer<f64>) + 'a;

#[test]
fn methods_with_a_unit_are_found_out() {
    let (a, b) = (stencil::<f64>(4, 0.3), random_vector::<f64>(16, 3));
    assert_eq!(method_units_contract(&a, &b, &mut |a, b| Ok(dense(a, b))), Ok(()));
    let reject = |what: &str, fault: &mut Fault<'_>| {
        let mut solve = |a: &Csr<f64>, b: &[f64]| {
            let mut answer = dense(a, b);
            fault(a, b, &mut answer);
            Ok(answer)
        };
        let verdict = method_units_contract(&a, &b, &mut solve).unwrap_err();
        assert!(verdict.contains(what), "{verdict}");
    };
    // A tolerance that is not relative, a pivot threshold that is not, a small number added, and one lost.
    reject("iterations", &mut |_, b, answer| answer.iterations = if b[0].abs() > 1e3 { 9 } else { 1 });
    reject("ends as", &mut |a, _, answer| {
        if a.get(0, 0) < 1e-9 {
            answer.outcome = Outcome::IterationLimit;
        }
    });
    reject("other bits", &mut |_, _, answer| answer.x[0] += 1e-30);
    reject("other bits", &mut |_, _, answer| {
        answer.x.iter_mut().for_each(|v| *v = if v.abs() < 1e-12 { 0.0 } else { *v });
    });
    assert!(method_units_contract(&a, &b, &mut |_, _| Err("no memory".into())).unwrap_err().contains("no memory"));
}

#[test]
fn methods_that_solve_only_one_twin_are_found_out() {
    let (a, b) = (stencil::<f64>(4, 0.3), random_vector::<f64>(16, 3));
    assert_eq!(method_twins_contract(&a, &b, 1e-12, 1e-12, &mut |a, b| Ok(dense(a, b))), Ok(()));
    let reject = |what: &str, fault: &mut dyn FnMut(usize, &mut Answer<f64>)| {
        let mut call = 0;
        let mut solve = |a: &Csr<f64>, b: &[f64]| {
            let mut answer = dense(a, b);
            fault(call, &mut answer);
            call += 1;
            Ok(answer)
        };
        let verdict = method_twins_contract(&a, &b, 1e-12, 1e-12, &mut solve).unwrap_err();
        assert!(verdict.contains(what), "{verdict}");
    };
    reject("itself has a residual", &mut |call, answer| answer.x[3] *= if call == 0 { 1.0 + 1e-6 } else { 1.0 });
    reject("permuted twin has a residual", &mut |call, answer| answer.x[3] *= if call == 1 { 1.0 + 1e-6 } else { 1.0 });
    reject("transposed twin ends as", &mut |call, answer| {
        if call == 2 {
            answer.outcome = Outcome::IterationLimit;
        }
    });
    // Both have small residuals; the answers are too far apart.
    let loose = method_twins_contract(&a, &b, 1.0, 1e-9, &mut |a, b| {
        let mut answer = dense(a, b);
        answer.x[0] += 1e-3;
        Ok(answer)
    });
    assert!(loose.unwrap_err().contains("another answer"));
}

/// z = M⁻¹r for M = A, spoilt.
fn spoilt(
    fault: impl Fn(&Csr<f64>, &[f64], &mut [f64]) + Copy + 'static,
) -> impl Fn(&Csr<f64>) -> Result<Apply<f64>, String> {
    move |a: &Csr<f64>| {
        // The diagonal: dense elimination would pick other pivots in other units.
        let a = a.clone();
        Ok(Box::new(move |r: &[f64], z: &mut [f64]| {
            z.iter_mut().zip(r).enumerate().for_each(|(i, (z, r))| *z = r / a.get(i, i));
            fault(&a, r, z);
        }) as Apply<f64>)
    }
}

#[test]
fn preconditioners_with_a_unit_are_found_out() {
    let a = stencil::<f64>(4, 0.3);
    for units in [Units::Whole, Units::Rows, Units::Symmetric, Units::Both] {
        assert_eq!(preconditioner_units_contract(&a, units, &mut spoilt(|_, _, _| ())), Ok(()));
    }
    let reject = |units, what: &str, make: &mut Make<'_, f64>| {
        let verdict = preconditioner_units_contract(&a, units, make).unwrap_err();
        assert!(verdict.contains(what), "{verdict}");
    };
    // A drop tolerance with a unit; one relative to the largest entry of A, and of the row.
    reject(Units::Whole, "A·2^60", &mut spoilt(|a, _, z| z[0] *= if a.get(0, 0) > 1e9 { 2.0 } else { 1.0 }));
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let of_all = spoilt(move |a, _, z| z[0] *= if a.get(0, 0) < 1e-3 * largest(a.values()) { 2.0 } else { 1.0 });
    assert_eq!(preconditioner_units_contract(&a, Units::Whole, &mut { of_all }), Ok(()));
    let of_all = |a: &Csr<f64>| {
        spoilt(move |a, _, z| {
            z[1] *= if a.get(1, 1) < 1e-3 * a.values().iter().fold(0.0f64, |m, v| m.max(v.abs())) { 2.0 } else { 1.0 }
        })(a)
    };
    reject(Units::Rows, "equations", &mut { of_all });
    reject(Units::Symmetric, "D·A·D", &mut { of_all });
    let of_row = |a: &Csr<f64>| {
        spoilt(move |a, _, z| {
            z[1] *= if a.get(1, 1) < 1e-3 * a.row(1).1.iter().fold(0.0f64, |m, v| m.max(v.abs())) { 2.0 } else { 1.0 }
        })(a)
    };
    assert_eq!(preconditioner_units_contract(&a, Units::Rows, &mut { of_row }), Ok(()));
    reject(Units::Both, "D·A·D", &mut { of_row });
    // Neither every third equation nor every fifth line changes what 4 and 5 are to each other; every fifth unknown does.
    let of_pair =
        |a: &Csr<f64>| spoilt(|a, _, z| z[4] *= if a.get(4, 5).abs() > 1e3 * a.get(5, 4).abs() { 2.0 } else { 1.0 })(a);
    reject(Units::Both, "unknowns", &mut { of_pair });
    // M⁻¹ without a unit is no M⁻¹ of A, and the other way round.
    let unitless =
        |a: &Csr<f64>| spoilt(|a, r, z| (0..r.len()).for_each(|i| z[i] = r[i] * a.get(0, 1) / a.get(i, i)))(a);
    assert_eq!(preconditioner_units_contract(&a, Units::None, &mut { unitless }), Ok(()));
    reject(Units::Whole, "A·2^60", &mut { unitless });
    reject(Units::None, "A·2^60", &mut spoilt(|_, _, _| ()));
}

#[test]
fn a_preconditioner_that_does_not_transpose_is_found_out() {
    let a = stencil::<f64>(4, 0.3);
    assert_eq!(preconditioner_adjoint_contract(&a, &mut spoilt(|_, _, _| ())), Ok(()));
    let one_sided = spoilt(|a, r, z| z[0] += r[1] * a.get(0, 1));
    assert!(preconditioner_adjoint_contract(&a, &mut { one_sided }).unwrap_err().contains("ᴴ"));
}
