//! Right-hand sides that pass through the factors side by side, and those left over: each has the bits that it has alone.

use bt_direct::{BandCholesky, BandLu, BandLuNoPivot, BlockLu, Factorization, SparseLu, TridiagonalLu};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, Op, Partition, Scalar, Tridiagonal, c32, c64};
use bt_testkit::csr;
use faer::{Mat, MatMut};

use crate::common::Random;

/// Random in the places that `is_entry` names, and not dominant, so that rows are exchanged.
fn random<T: Scalar>(n: usize, is_entry: impl Fn(usize, usize) -> bool) -> Csr<T> {
    let mut r = Random::new(n as u64);
    csr(n, |i, j| if is_entry(i, j) { r.scalar() } else { T::default() })
}

/// Hermitian and positive definite in a band.
fn definite<T: Scalar>(n: usize, k: usize) -> Csr<T> {
    csr(n, |i, j| match i.abs_diff(j) {
        0 => T::rounded(2.0 * k as f64 + 1.0, 0.0),
        d if d <= k => T::rounded(1.0 / d as f64, if i > j { 0.25 } else { -0.25 }),
        _ => T::default(),
    })
}

/// For two, three and seven columns.
fn check<T: Scalar>(name: &str, f: &dyn Factorization<T>) {
    let n = f.n();
    let mut r = Random::new(7);
    let b = Mat::from_fn(n, 7, |_, _| r.scalar::<T>());
    for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
        let alone: Vec<Vec<T>> = b
            .col_iter()
            .map(|b| {
                let mut x: Vec<T> = b.iter().copied().collect();
                f.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut x, n, 1));
                x
            })
            .collect();
        for columns in [2, 3, 7] {
            let mut x = b.subcols(0, columns).to_owned();
            f.solve_op_in_place(op, x.as_mut());
            for (j, alone) in alone[..columns].iter().enumerate() {
                assert!(x.col(j).iter().eq(alone), "{name}, {n} rows, {op:?}, column {j} of {columns}");
            }
        }
    }
}

fn check_all<T: Scalar>() {
    for n in [1, 5, 40, 150] {
        check(
            "tridiagonal-lu",
            &TridiagonalLu::new(&Tridiagonal::from_csr(&random::<T>(n, |i, j| i.abs_diff(j) < 2)).unwrap()).unwrap(),
        );
        for (kl, ku) in [(1, 0), (2, 3), (8, 8), (9, 20), (36, 40)] {
            let a = Band::from_csr(&random::<T>(n, |i, j| i <= j + kl && j <= i + ku)).unwrap();
            check("band-lu", &BandLu::new(&a).unwrap());
        }
        for k in [1, 4, 8, 24, 40] {
            let a = Band::from_csr(&definite::<T>(n, k)).unwrap();
            check("band-cholesky", &BandCholesky::new(&a).unwrap());
            check("band-lu-nopivot", &BandLuNoPivot::new(&a).unwrap());
        }
        check("sparse-lu", &SparseLu::new(&random::<T>(n, |i, j| i == j || (7 * i + 5 * j) % 13 == 0)).unwrap());
    }
    for k in [1, 3, 8, 16, 24, 40] {
        for blocks in [1, 2, 5] {
            let a = random::<T>(k * blocks, |i, j| (i / k).abs_diff(j / k) < 2);
            let partition = Partition::uniform(k * blocks, k).unwrap();
            let a = BlockTridiagonal::from_csr(&a, partition, HybridLayout::default()).unwrap();
            check("block-lu", &BlockLu::new(&a).unwrap());
        }
    }
}

#[test]
fn columns_side_by_side_have_the_bits_of_one_alone() {
    check_all::<f64>();
    check_all::<c64>();
}

#[test]
fn columns_side_by_side_have_the_bits_of_one_alone_in_single_precision() {
    check_all::<f32>();
    check_all::<c32>();
}
