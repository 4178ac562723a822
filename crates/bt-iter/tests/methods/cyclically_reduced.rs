//! The system without every other block against direct answers and against the whole one.

use bt_direct::{BlockLu, FactorError, Factorization};
use bt_formats::{
    BlockTridiagonal, Coo, Csr, HybridLayout, LinearOperator, Outcome, Partition, RealScalar, Scalar, StopCriterion,
    c64,
};
use bt_iter::{BiCgStab, BlockForm, BlockPreconditioner, CyclicallyReduced, Gmres, Identity};
use bt_queue::CloudCase;

/// Row dominant, tridiagonal diagonal blocks, one or two couplings a row.
fn matrix<T: Scalar>(sizes: &[usize]) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut a = Coo::new(n, n).unwrap();
    for j in 0..sizes.len() {
        for (r, i) in partition.range(j).enumerate() {
            a.push(i, i, T::rounded(4.0 + (i % 3) as f64, 0.5)).unwrap();
            for next in [i.wrapping_sub(1), i + 1] {
                if partition.range(j).contains(&next) {
                    a.push(i, next, T::rounded(-1.0, 0.2)).unwrap();
                }
            }
            for other in [j.wrapping_sub(1), j + 1] {
                if other < sizes.len() {
                    let column = partition.range(other).start + r % sizes[other];
                    a.push(i, column, T::rounded(-0.7, if other > j { 0.1 } else { -0.3 })).unwrap();
                }
            }
        }
    }
    BlockTridiagonal::from_csr(&a.to_csr().unwrap(), partition, HybridLayout::default()).unwrap()
}

fn agrees<T: Scalar>(sizes: &[usize]) {
    let a = matrix::<T>(sizes);
    let n = a.n();
    let b: Vec<T> = (0..n).map(|i| T::rounded(1.0 + (i % 7) as f64, (i % 2) as f64)).collect();
    let mut expected = b.clone();
    BlockLu::new(&a).unwrap().solve_vec_in_place(&mut expected);
    let mut reduced = CyclicallyReduced::new(a).unwrap();
    let order = reduced.order();
    assert_eq!(order, sizes.iter().skip(1).step_by(2).sum::<usize>());
    let stop = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
    let (mut bicgstab, mut gmres, mut one) = (BiCgStab::new(order), Gmres::new(order, 20), Identity::new(order));
    for method in 0..2 {
        let mut x = vec![T::nan_impl(); n];
        let report = reduced.solve(&b, &mut x, &stop, &mut |operator, g, u, stop| match method {
            0 => bicgstab.solve(operator, &mut one, g, u, stop, &mut ()),
            _ => gmres.solve(operator, &mut one, g, u, stop, &mut ()),
        });
        let report = report.unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{sizes:?}");
        assert!(report.certificate.relative_residual <= 1e-12, "{sizes:?}");
        for (x, e) in x.iter().zip(&expected) {
            assert!((*x - *e).abs().to_f64() <= 1e-10 * (1.0 + e.abs().to_f64()), "{sizes:?}");
        }
    }
}

#[test]
fn answers_are_those_of_a_direct_method() {
    for sizes in [&[5][..], &[3, 4], &[8; 9], &[1, 2, 9, 3, 3, 1, 7], &[16; 40], &[1; 12]] {
        agrees::<f64>(sizes);
        agrees::<c64>(sizes);
    }
}

/// y ← α·B·u + β·y, from what β = 0 gives; NaN in y is not read then.
#[test]
fn products_follow_the_contract_of_operators() {
    let reduced = CyclicallyReduced::new(matrix::<f64>(&[4, 3, 5, 2])).unwrap();
    let u = [1.0, -2.0, 3.0, 0.5, 7.0];
    let mut product = [f64::NAN; 5];
    reduced.apply(1.0, &u, 0.0, &mut product);
    let mut y = [1.0; 5];
    reduced.apply(-2.0, &u, 3.0, &mut y);
    assert!(y.iter().zip(product).all(|(y, p)| (y - (3.0 - 2.0 * p)).abs() <= 1e-14 * p.abs().max(3.0)));
}

/// On a cloud matrix: hardly more steps than with the sweep as a preconditioner, the same tolerance.
#[test]
fn as_few_steps_as_by_the_sweep() {
    let case = CloudCase::by_name("Cloud32-100").unwrap();
    let a = BlockTridiagonal::from_csr(&case.matrix().unwrap(), case.partition().unwrap(), HybridLayout::default());
    let a = a.unwrap();
    let n = a.n();
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    let stop = StopCriterion::default();
    let mut m = BlockPreconditioner::new(a.clone(), BlockForm::RedBlack).unwrap();
    let whole = BiCgStab::new(n).solve(&a, &mut m, &b, &mut x, &stop, &mut ()).unwrap();
    let mut reduced = CyclicallyReduced::new(a).unwrap();
    let (mut bicgstab, mut one) = (BiCgStab::new(reduced.order()), Identity::new(reduced.order()));
    let report = reduced
        .solve(&b, &mut x, &stop, &mut |operator, g, u, stop| bicgstab.solve(operator, &mut one, g, u, stop, &mut ()));
    let report = report.unwrap();
    assert_eq!((whole.outcome, report.outcome), (Outcome::Converged, Outcome::Converged));
    assert!(report.certificate.relative_residual <= 1e-8);
    assert!(report.iterations <= whole.iterations * 3 / 2, "{} {}", report.iterations, whole.iterations);
}

#[test]
fn singular_blocks_and_values_that_are_not_finite_are_named() {
    let csr = |d: f64| {
        Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![2.0, 1.0, 1.0, d, 1.0, 1.0, 2.0]).unwrap()
    };
    let made = |d: f64| {
        let blocks = BlockTridiagonal::from_csr(&csr(d), Partition::uniform(3, 1).unwrap(), HybridLayout::default());
        CyclicallyReduced::new(blocks?).map(|reduced| reduced.order())
    };
    assert!(made(5.0).is_ok_and(|order| order == 1));
    assert!(matches!(made(0.0), Err(FactorError::Singular(_))));
    assert!(matches!(made(f64::NAN), Err(FactorError::Input(_))));
}

/// What a method fails with comes through, and the next solve has its vectors.
#[test]
fn errors_of_the_method_come_through() {
    let mut reduced = CyclicallyReduced::new(matrix::<f64>(&[2, 2, 2])).unwrap();
    let (b, mut x) = ([1.0; 6], [0.0; 6]);
    let mut method = BiCgStab::new(3);
    let stop = StopCriterion::default();
    let failed = reduced.solve(&b, &mut x, &stop, &mut |operator, g, u, stop| {
        method.solve(operator, &mut Identity::new(2), g, u, stop, &mut ())
    });
    assert!(failed.is_err());
    let mut method = BiCgStab::new(2);
    let report = reduced.solve(&b, &mut x, &stop, &mut |operator, g, u, stop| {
        method.solve(operator, &mut Identity::new(2), g, u, stop, &mut ())
    });
    assert_eq!(report.unwrap().outcome, Outcome::Converged);
}
