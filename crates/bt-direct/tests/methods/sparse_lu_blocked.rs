//! Sparse LU where there is fill and the pattern is symmetric: counts, memory, accuracy, and what takes over from it.

use bt_direct::{Factorization, SparseLu, SymbolicCholesky, SymbolicLu};
use bt_formats::{Csr, LinearOperator, Op, certify};
use bt_testkit::alloc::{is_counting, peak_bytes};
use bt_testkit::{grid, random_vector};
use faer::Mat;

/// The Laplacian with wind: −1 ± w beside the diagonal, and d on it.
fn windy(sides: [usize; 3], w: f64, d: Option<f64>) -> Csr<f64> {
    let mut a = grid::<f64>(sides);
    for i in 0..a.nrows() {
        let (cols, values) = a.row_mut(i);
        for (&j, v) in cols.iter().zip(values) {
            *v = match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => *v - w,
                std::cmp::Ordering::Equal => d.unwrap_or(*v),
                std::cmp::Ordering::Greater => *v + w,
            };
        }
    }
    a
}

fn backward_error(a: &Csr<f64>, lu: &SparseLu<f64>, op: Op) -> f64 {
    let n = a.nrows();
    let random = random_vector::<f64>(n, 8);
    let b = Mat::from_fn(n, 5, |i, j| random[(i * 3 + j) % n]);
    let mut x = b.clone();
    lu.solve_op_in_place(op, x.as_mut());
    certify(a, op, x.as_ref(), b.as_ref()).backward_error
}

#[test]
fn counts_are_twice_those_of_the_symmetric_factor() {
    for sides in [[30, 20, 1], [7, 8, 9]] {
        let a = windy(sides, 0.3, None);
        let (lu, cholesky) = (SymbolicLu::new(&a).unwrap(), SymbolicCholesky::new(&a).unwrap());
        assert_eq!(lu.fill(), 2 * cholesky.fill() - a.nrows() as u64);
        // Elimination by columns finds the same where no row is exchanged.
        let stats = SparseLu::new(&a).unwrap().stats();
        let ratio = stats.nnz as f64 / lu.fill() as f64;
        assert!((0.95..1.05).contains(&ratio), "{} of {}", stats.nnz, lu.fill());
        let ratio = stats.flops / lu.flops();
        assert!((0.9..1.1).contains(&ratio), "{} of {}", stats.flops, lu.flops());
    }
}

#[test]
fn memory_is_what_was_predicted() {
    assert!(is_counting());
    for (sides, by_columns) in
        [([1000, 4, 1], true), ([400, 2, 2], true), ([60, 60, 1], false), ([160, 160, 1], false), ([17, 17, 17], false)]
    {
        let a = windy(sides, 0.3, None);
        let symbolic = SymbolicLu::new(&a).unwrap();
        assert_eq!(symbolic.is_by_columns(), by_columns, "{sides:?}: {:e}", symbolic.flops());
        let predicted = symbolic.bytes::<f64>().unwrap() as f64;
        // faer's products keep work space for each thread from the first of them on.
        drop(SparseLu::new(&a).unwrap());
        let (lu, peak) = peak_bytes(|| SparseLu::new(&a).unwrap());
        let ratios = [peak as f64 / predicted, lu.stats().bytes as f64 / predicted];
        assert!(ratios.iter().all(|r| (0.9..1.1).contains(r)), "{sides:?}: {ratios:?}");
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let error = backward_error(&a, &lu, op);
            assert!(error < 3.5e-15, "{sides:?} {op:?}: {error:e}");
        }
    }
}

#[test]
fn refactored_blocks_are_those_made_anew() {
    let first = windy([16, 16, 16], 0.3, None);
    let second = windy([16, 16, 16], -0.2, Some(5.0));
    assert!(SymbolicLu::new(&first).unwrap().flops() > 1e8);
    let mut lu = SparseLu::new(&first).unwrap();
    lu.refactor(&second).unwrap();
    let fresh = SparseLu::new(&second).unwrap();
    let b = random_vector::<f64>(first.nrows(), 1);
    let (mut x, mut y) = (b.clone(), b);
    lu.solve_vec_in_place(&mut x);
    fresh.solve_vec_in_place(&mut y);
    assert!(x.iter().zip(&y).all(|(x, y)| x.to_bits() == y.to_bits()));
    assert_eq!(lu.stats(), fresh.stats());
    assert!((lu.log_det().log_abs - fresh.log_det().log_abs).abs() < 1e-9);
}

#[test]
fn after_a_failure_the_factors_there_were_come_back_bit_for_bit() {
    let sides = [16, 16, 16];
    let first = windy(sides, 0.3, None);
    let mut singular = first.clone();
    singular.values_mut().fill(0.0);
    let solution = |lu: &SparseLu<f64>| {
        let mut x = random_vector::<f64>(first.nrows(), 1);
        lu.solve_vec_in_place(&mut x);
        x
    };
    // By blocks, then by faer's supernodes, to which blocks give way once for all.
    for next in [windy(sides, -0.2, Some(5.0)), windy(sides, 0.4, Some(1e-13))] {
        let mut lu = SparseLu::new(&first).unwrap();
        lu.refactor(&next).unwrap();
        // Once as it began from the first, and once from where that led to.
        for _ in 0..2 {
            let before = solution(&lu);
            assert!(lu.refactor(&singular).is_err());
            assert!(solution(&lu).iter().all(|v| v.is_nan()));
            lu.refactor(&next).unwrap();
            assert!(solution(&lu).iter().zip(&before).all(|(x, y)| x.to_bits() == y.to_bits()));
            lu.refactor(&next).unwrap();
        }
    }
}

#[test]
fn blocks_that_grow_give_way_to_pivoting_over_all_rows() {
    // Next to nothing on the diagonal: no pivot inside small supernodes.
    let a = windy([17, 17, 17], 0.4, Some(1e-13));
    assert!(SymbolicLu::new(&a).unwrap().flops() > 1e8);
    let lu = SparseLu::new(&a).unwrap();
    let stats = lu.stats();
    assert!(stats.growth.is_nan() || stats.growth < 1e6, "{stats:?}");
    assert!(stats.nnz > a.nrows() && stats.bytes > 8 * stats.nnz, "{stats:?}");
    assert!(backward_error(&a, &lu, Op::Identity) < 1e-9);
}

#[test]
fn blocks_of_few_flops_that_grow_give_way_to_columns() {
    let good = windy([8, 8, 8], 0.4, None);
    // Next to nothing on the diagonal of some rows.
    let mut weak = good.clone();
    for i in (0..good.nrows()).step_by(50) {
        let (cols, values) = weak.row_mut(i);
        cols.iter().zip(values).filter(|(j, _)| **j as usize == i).for_each(|(_, v)| *v = 1e-13);
    }
    assert!(!SymbolicLu::new(&weak).unwrap().is_by_columns());
    let lu = SparseLu::new(&weak).unwrap();
    // faer would not tell how much they grow.
    assert!(lu.stats().growth < 1e6, "{:?}", lu.stats());
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let error = backward_error(&weak, &lu, op);
        assert!(error < 1e-11, "{op:?}: {error:e}");
    }
    // From blocks and from columns, there and back.
    let solution = |lu: &SparseLu<f64>| {
        let mut x = random_vector::<f64>(good.nrows(), 1);
        lu.solve_vec_in_place(&mut x);
        x
    };
    let mut again = SparseLu::new(&good).unwrap();
    for _ in 0..2 {
        again.refactor(&weak).unwrap();
        assert_eq!(solution(&again), solution(&lu));
    }
    again.refactor(&good).unwrap();
    assert!(backward_error(&good, &again, Op::Identity) < 3.5e-15);
}
