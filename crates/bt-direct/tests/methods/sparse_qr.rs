//! Sparse QR: what elimination with pivoting calls singular or overflows on, memory, and matrices that are singular.

use bt_direct::{
    BandLu, BlockCyclicReduction, BlockLu, BlockLuAcross, DoubledLu, FactorError, Factorization, PartialPivotLu,
    SingularKind, SparseLu, SparseQr,
};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, LinearOperator, Op, Partition, Scalar, c64, certify};
use bt_testkit::alloc::{is_counting, peak_bytes};
use bt_testkit::contract::factorization_contract;
use bt_testkit::{csr, grid, random_vector, shooting};
use faer::Mat;

#[test]
fn elements_that_grow_do_not_make_a_matrix_singular() {
    // Elements grow by 1.28 a block: 10²¹ in 200 blocks, beyond the range of doubles in 3000.
    for blocks in [200, 3000] {
        let a = shooting::<f64>(blocks, 0.3);
        let n = a.nrows();
        let qr = SparseQr::new(&a).unwrap();
        assert!(qr.stats().growth < 4.0 && qr.rcond() > 0.01, "{:?}, rcond {}", qr.stats(), qr.rcond());
        if blocks == 200 {
            factorization_contract(&qr, &a).unwrap();
        }
        let random = random_vector::<f64>(n, 3);
        let b = Mat::from_fn(n, 1, |i, _| random[i]);
        let mut x = b.clone();
        qr.solve_in_place(x.as_mut());
        let certificate = certify(&a, Op::Identity, x.as_ref(), b.as_ref());
        assert!(certificate.backward_error < n as f64 * f64::EPSILON, "{certificate:?}");
        let is_regular = |outcome: Option<FactorError>| match outcome {
            None => {}
            Some(FactorError::Breakdown { reason, .. }) => assert!(reason.contains("sparse-qr"), "{reason}"),
            Some(other) => panic!("{blocks} blocks: {other}"),
        };
        is_regular(SparseLu::new(&a).err());
        if blocks == 200 {
            is_regular(BandLu::new(&Band::from_csr(&a).unwrap()).err());
            is_regular(PartialPivotLu::new(a.to_dense().as_ref()).err());
            let halves = Partition::uniform(n, n / 2).unwrap();
            let blocks = BlockTridiagonal::from_csr(&a, halves, HybridLayout::default()).unwrap();
            is_regular(BlockLuAcross::new(&blocks).err());
            let one = Partition::uniform(n, n).unwrap();
            let one = BlockTridiagonal::from_csr(&a, one, HybridLayout::default()).unwrap();
            is_regular(BlockLu::new(&one).err());
            is_regular(BlockCyclicReduction::new(&one).err());
        }
    }
}

#[test]
fn twice_the_precision_has_twice_the_way_to_go() {
    // J. H. Wilkinson's: elements of the last columns double in each row, and their difference is lost.
    let n = 114;
    let a = csr(n, |i, j| match (i, j) {
        _ if i == n - 1 && j == n - 1 => 0.5,
        _ if j >= n - 2 => 1.0,
        _ if i == j => 1.0,
        _ if i > j => -1.0,
        _ => 0.0,
    });
    let failed = DoubledLu::new(a.to_dense().as_ref()).err().unwrap();
    assert!(matches!(&failed, FactorError::Breakdown { reason, .. } if reason.contains("sparse-qr")), "{failed}");
    let qr = SparseQr::new(&a).unwrap();
    assert!(qr.rcond() > 1e-4, "{}", qr.rcond());
    factorization_contract(&qr, &a).unwrap();
}

fn check_grid<T: Scalar>() {
    let a = grid::<T>([9, 8, 1]);
    factorization_contract(&SparseQr::new(&a).unwrap(), &a).unwrap();
}

#[test]
fn grids_are_factored_in_all_precisions() {
    check_grid::<f32>();
    check_grid::<f64>();
    check_grid::<c64>();
}

#[test]
fn memory_is_what_was_counted() {
    let a = grid::<f64>([30, 30, 1]);
    let (qr, peak) = peak_bytes(|| SparseQr::new(&a).unwrap());
    let (bytes, flops) = (qr.stats().bytes, qr.stats().flops);
    assert!((flops..1.2 * flops).contains(&SparseQr::flops(&a).unwrap()), "{flops}");
    // Beside the factors: the pattern's tree and order.
    assert!(!is_counting() || (bytes..2 * bytes).contains(&peak), "{bytes} bytes, {peak} taken");
    // R of a band: as many entries as the Cholesky factor of AᵀA.
    let n = 50;
    let band = csr(n, |i, j| {
        if i == j {
            4.0
        } else if i.abs_diff(j) == 1 {
            -1.0
        } else {
            0.0
        }
    });
    let qr = SparseQr::new(&band).unwrap();
    assert!(qr.stats().nnz <= 5 * n && qr.stats().nnz >= 4 * n - 6, "{}", qr.stats().nnz);
}

#[test]
fn singular_matrices_are_named_or_told_by_their_condition() {
    let kind = |a: &Csr<f64>| match SparseQr::new(a) {
        Err(FactorError::Singular(place)) => Some(place.kind),
        Err(other) => panic!("{other}"),
        Ok(qr) => {
            assert!(qr.rcond() < 1e-15, "{}", qr.rcond());
            None
        }
    };
    assert_eq!(kind(&csr(3, |i, j| if j == 1 { 0.0 } else { 1.0 + (i * j) as f64 })), Some(SingularKind::Structural));
    // Rank one, and rows that sum to zero.
    kind(&csr(4, |_, _| 1.0));
    kind(&csr(3, |i, j| {
        if i == j {
            1.0
        } else if j == (i + 1) % 3 {
            -1.0
        } else {
            0.0
        }
    }));
    // A pivot beyond the square root of the smallest number is one.
    let small = csr(2, |i, j| if i == j { [1.0, 1e-200][i] } else { 0.0 });
    let mut x = [1.0, 1e-200];
    SparseQr::new(&small).unwrap().solve_vec_in_place(&mut x);
    assert_eq!(x, [1.0, 1.0]);
}
