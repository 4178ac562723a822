//! Hybrid block-tridiagonal storage: the paper's two examples to the byte, every layout, and every refusal.

use bt_formats::{
    BlockTridiagonal, CouplingKind, Couplings, Csr, DiagonalBlocks, DiagonalKind, Error, HybridLayout, LinearOperator,
    Matrix, Op, Partition, Scalar, c64,
};
use bt_testkit::PAPER_B as B;
use faer::Mat;

fn csr(rows: &[[f64; 9]]) -> Csr<f64> {
    Csr::from_dense(Mat::from_fn(rows.len(), 9, |i, j| rows[i][j]).as_ref()).unwrap()
}

fn dense(a: &impl Matrix<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), a.ncols());
    a.for_each_entry(&mut |i, j, v| out[(i, j)] = v);
    out
}

fn layouts() -> impl Iterator<Item = HybridLayout> {
    [DiagonalKind::Tridiagonal, DiagonalKind::Band, DiagonalKind::Dense].into_iter().flat_map(|diagonal| {
        [CouplingKind::Coo, CouplingKind::Csr, CouplingKind::Diagonals, CouplingKind::Dense]
            .into_iter()
            .map(move |couplings| HybridLayout { diagonal: Some(diagonal), couplings: Some(couplings) })
    })
}

fn uniform(n: usize, k: usize) -> Partition {
    Partition::uniform(n, k).unwrap()
}

#[test]
fn nine_by_nine_counts() {
    let layout = HybridLayout { diagonal: None, couplings: Some(CouplingKind::Coo) };
    let b = BlockTridiagonal::from_csr(&csr(&B), uniform(9, 3), layout).unwrap();
    assert_eq!(b.diagonal_kind(), DiagonalKind::Tridiagonal);
    assert_eq!((b.nnz_diagonal(), b.len_diagonal(), b.nnz_couplings()), (21, 27, 12));
    let Couplings::Coo { entries, block_ptr } = b.couplings() else { panic!("COO was demanded") };
    // 12 triplets are the paper's 36 units.
    assert_eq!(entries.rows().len() + entries.cols().len() + entries.values().len(), 36);
    assert_eq!(block_ptr, &[0, 3, 9, 12]);
    let DiagonalBlocks::Tridiagonal(t) = b.diagonal() else { panic!("tridiagonal is the smallest") };
    assert_eq!(t.lower(), &[0., -3., -3., 0., -3., -2., 0., -4., -3.]);
    assert_eq!(t.diag(), &[1., 7., 5., 5., 9., 9., 5., 9., 12.]);
    assert_eq!(t.upper(), &[-4., -4., 0., -4., -4., 0., -3., -4., 0.]);
    // 27 values, 12 triplets, block pointers, block offsets.
    assert_eq!(b.bytes(), 27 * 8 + 12 * 16 + 4 * 4 + 4 * 4);
}

#[test]
fn nine_by_nine_determinant() {
    let det = csr(&B).to_dense().determinant();
    assert!((det + 5_831_448.0).abs() <= 1e-9 * 5_831_448.0, "{det}");
}

#[test]
fn every_layout_holds_the_same_matrix() {
    let a = csr(&B);
    let product = |bt: &BlockTridiagonal<f64>| {
        let mut y = [f64::NAN; 9];
        bt.apply(1.0, &[1.0, -2.0, 3.0, 0.5, 4.0, -1.0, 2.0, 8.0, 1.0], 0.0, &mut y);
        y
    };
    let reference = product(&BlockTridiagonal::from_csr(&a, uniform(9, 3), HybridLayout::default()).unwrap());
    assert_eq!(reference[..3], [8.0, -37.0, 19.0]);
    for layout in layouts() {
        let bt = BlockTridiagonal::from_csr(&a, uniform(9, 3), layout).unwrap();
        assert_eq!((Some(bt.diagonal_kind()), Some(bt.coupling_kind())), (layout.diagonal, layout.couplings));
        // Small integers and halves: every order of summation gives the same.
        assert_eq!(product(&bt), reference, "{layout:?}");
        let (mut count, mut last) = (0, None);
        bt.for_each_entry(&mut |i, j, _| {
            assert!(last < Some((i, j)), "{layout:?}: ({i}, {j}) after {last:?}");
            (count, last) = (count + 1, Some((i, j)));
        });
        assert_eq!(dense(&bt), a.to_dense(), "{layout:?}");
        assert_eq!(count, bt.nnz(), "{layout:?}");
    }
}

#[test]
fn blocks_come_out_as_they_went_in() {
    let a = csr(&B);
    let full = a.to_dense();
    let partition = Partition::from_sizes([3, 4, 2]).unwrap();
    let check = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>, copy: &dyn Fn(faer::MatMut<'_, f64>)| {
        let mut out = Mat::from_fn(rows.len(), cols.len(), |_, _| f64::NAN);
        copy(out.as_mut());
        assert_eq!(out, full.get(rows, cols).to_owned());
    };
    for layout in layouts().filter(|l| l.diagonal != Some(DiagonalKind::Tridiagonal)) {
        let bt = BlockTridiagonal::from_csr(&a, partition.clone(), layout).unwrap();
        for j in 0..3 {
            let r = partition.range(j);
            check(r.clone(), r.clone(), &|out| bt.copy_diagonal_block(j, out));
            if j > 0 {
                check(r.clone(), partition.range(j - 1), &|out| bt.copy_lower_block(j, out));
            }
            if j < 2 {
                check(r.clone(), partition.range(j + 1), &|out| bt.copy_upper_block(j, out));
            }
        }
    }
}

#[test]
fn couplings_are_subtracted_from_one_block() {
    let a = csr(&B);
    let x: Vec<f64> = (1..=9).map(f64::from).collect();
    for layout in layouts() {
        let bt = BlockTridiagonal::from_csr(&a, uniform(9, 3), layout).unwrap();
        // L₁x₀ = (−1, −9, −2), U₁x₂ = (−14, −8, −16).
        let mut r = [0.0; 3];
        bt.subtract_lower(1, &x, &mut r);
        assert_eq!(r, [1., 9., 2.], "{layout:?}");
        bt.subtract_upper(1, &x, &mut r);
        assert_eq!(r, [15., 17., 18.], "{layout:?}");
        let mut both = [0.0; 3];
        bt.subtract_couplings(1, &x, &mut both);
        assert_eq!(both, r, "{layout:?}");
        let mut none = [1.0; 3];
        bt.subtract_lower(0, &x, &mut none);
        bt.subtract_upper(2, &x, &mut none);
        assert_eq!(none, [1.0; 3], "{layout:?}");
    }
}

/// Blocks together, apart and in groups, with b elsewhere: the bits of one block after the other.
#[test]
fn residuals_of_several_block_rows() {
    fn check<T: Scalar>() {
        let sizes = [5, 17, 1, 12, 33, 8, 9, 16];
        let partition = Partition::from_sizes(sizes).unwrap();
        let n = partition.n();
        let a = bt_testkit::csr::<T>(n, |i, j| {
            let apart = partition.block_of(i).abs_diff(partition.block_of(j));
            let near = i.abs_diff(j) <= 1 || (i.abs_diff(j) % 7 == 1 && apart == 1);
            if apart <= 1 && near { T::rounded(((31 * i + 17 * j) % 29) as f64 - 14.0, 0.0) } else { T::default() }
        });
        let [b, x] = [1, 2].map(|seed| bt_testkit::random_vector::<T>(n, seed));
        let sets: [&[usize]; 7] =
            [&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 2, 4, 6], &[1, 3, 5, 7], &[1, 2, 4, 5, 6], &[3], &[7], &[]];
        for layout in layouts() {
            let bt = BlockTridiagonal::from_csr(&a, partition.clone(), layout).unwrap();
            for set in sets {
                let mut one_by_one = Vec::new();
                for &j in set {
                    let mut r = b[partition.range(j)].to_vec();
                    bt.subtract_couplings(j, &x, &mut r);
                    one_by_one.extend(r);
                }
                let mut r = vec![T::rounded(f64::NAN, 0.0); one_by_one.len()];
                bt.couplings_residual(set.iter().copied(), &b, &x, &mut r);
                assert_eq!(r, one_by_one, "{layout:?}, blocks {set:?}");
            }
        }
    }
    check::<f64>();
    check::<f32>();
    check::<c64>();
}

/// |A|·x and the largest entry in the order of storage, against the matrix it came from.
#[test]
fn moduli_in_the_order_of_storage() {
    let a = csr(&B);
    for partition in [uniform(9, 3), Partition::from_sizes([3, 4, 2]).unwrap(), uniform(9, 9)] {
        for layout in layouts() {
            let Ok(bt) = BlockTridiagonal::from_csr(&a, partition.clone(), layout) else {
                assert_eq!(layout.diagonal, Some(DiagonalKind::Tridiagonal));
                continue;
            };
            for op in [Op::Identity, Op::Transpose] {
                // Integers: every order of summation gives the same.
                let x: Vec<f64> = (1..=9).map(f64::from).collect();
                let [mut y, mut expected] = [[0.5; 9]; 2];
                bt.accumulate_abs(op, &x, &mut y);
                a.accumulate_abs(op, &x, &mut expected);
                assert_eq!(y, expected, "{layout:?}, {op:?}");
            }
            assert_eq!(bt.norm_max(), a.norm_max(), "{layout:?}");
            for (i, j) in [(0, 0), (4, 3), (8, 7), (2, 3)] {
                let mut b = B;
                b[i][j] = f64::NAN;
                if let Ok(bt) = BlockTridiagonal::from_csr(&csr(&b), partition.clone(), layout) {
                    assert!(bt.norm_max().is_nan(), "{layout:?}: NaN at ({i}, {j}) was lost");
                }
            }
        }
    }
}

#[test]
fn short_diagonals_to_the_byte() {
    // One row short of two slices; blocks of five, so that block boundaries fall inside slices.
    let n = 15;
    let a = Csr::from_dense(
        Mat::from_fn(n, n, |i, j| if j == i + 5 && i != 2 || i == j + 5 && i > 5 { (10 * i + j) as f64 } else { 0.0 })
            .as_ref(),
    )
    .unwrap();
    let layout = HybridLayout { diagonal: None, couplings: Some(CouplingKind::Diagonals) };
    let bt = BlockTridiagonal::from_csr(&a, uniform(n, 5), layout).unwrap();
    let Couplings::Diagonals(d) = bt.couplings() else { panic!("diagonals were demanded") };
    // Rows 0 to 7 have 5 above the diagonal but for row 2, and 5 below from row 6 on; rows 8 to 14 have 5 above up to
    // row 9.
    assert_eq!(d.slice_ptr(), &[0, 2, 4]);
    assert_eq!(
        (d.offsets(), d.masks()),
        (&[-5, 5, -5, 5][..], &[0b1100_0000, 0b1111_1011, 0b0111_1111, 0b0000_0011][..])
    );
    assert_eq!(d.value_ptr(), &[0, 9, 18]);
    assert_eq!(d.values()[..9], [61., 72., 5., 16., 38., 49., 60., 71., 82.]);
    assert_eq!(d.bytes(), 18 * 8 + 4 * 5 + 8 * 3);
    assert_eq!(bt.bytes(), d.bytes() + n * 8 + 4 * 4);
}

#[test]
fn fewest_bytes_are_chosen() {
    let pick = |a: &Csr<f64>, p: Partition| {
        let auto = BlockTridiagonal::from_csr(a, p.clone(), HybridLayout::default()).unwrap();
        for layout in layouts() {
            if let Ok(forced) = BlockTridiagonal::from_csr(a, p.clone(), layout) {
                assert!(auto.bytes() <= forced.bytes(), "{layout:?} takes fewer bytes");
            }
        }
        (auto.diagonal_kind(), auto.coupling_kind())
    };
    let from_fn = |n, f: fn(usize, usize) -> bool| {
        Csr::from_dense(Mat::from_fn(n, n, |i, j| f64::from(f(i, j) as u8)).as_ref()).unwrap()
    };
    assert_eq!(pick(&csr(&B), uniform(9, 3)), (DiagonalKind::Tridiagonal, CouplingKind::Diagonals));
    // Four couplings a row, no two of eight rows on one diagonal.
    let scattered = from_fn(80, |i, j| i == j || (i / 40 != j / 40 && (j % 40).wrapping_sub(i % 8 * 5) < 4));
    assert_eq!(pick(&scattered, uniform(80, 40)), (DiagonalKind::Band, CouplingKind::Csr));
    // 40 rows with one coupling: triplets.
    let tridiagonal = from_fn(40, |i, j| i.abs_diff(j) <= 1);
    assert_eq!(pick(&tridiagonal, uniform(40, 20)), (DiagonalKind::Tridiagonal, CouplingKind::Coo));
    let full = from_fn(8, |_, _| true);
    assert_eq!(pick(&full, uniform(8, 4)), (DiagonalKind::Dense, CouplingKind::Dense));
    // Nothing off the blocks: dense couplings of no values would still hold k² zeros each.
    let wide = from_fn(40, |i, j| i.abs_diff(j) <= 2 && i / 20 == j / 20);
    assert_eq!(pick(&wide, uniform(40, 20)), (DiagonalKind::Band, CouplingKind::Coo));
}

#[test]
fn entries_outside_are_named() {
    let mut rows = B;
    rows[1][7] = 5.0;
    let error = BlockTridiagonal::from_csr(&csr(&rows), uniform(9, 3), HybridLayout::default()).unwrap_err();
    assert!(matches!(error, Error::OutsideStructure { row: 1, col: 7, .. }));
    let text = error.to_string();
    assert!(text.contains("block 0") && text.contains("block 2"), "{text}");

    let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), couplings: None };
    let error = BlockTridiagonal::from_csr(&csr(&B), uniform(9, 4), layout);
    assert!(matches!(error, Err(Error::OutsideStructure { row: 0, col: 3, .. })));

    let error = BlockTridiagonal::from_csr(&csr(&B), uniform(10, 5), HybridLayout::default());
    assert!(matches!(error, Err(Error::DimensionMismatch { expected: 9, found: 10, .. })));
    let error = BlockTridiagonal::from_csr(&csr(&B[..8]), uniform(8, 4), HybridLayout::default());
    assert!(matches!(error, Err(Error::NotSquare { nrows: 8, ncols: 9 })));
}

#[test]
fn stored_zeros_outside_do_no_harm() {
    let a = Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, 2, 1, 2], vec![1.0, 0.0, 2.0, 3.0]).unwrap();
    let bt = BlockTridiagonal::from_csr(&a, uniform(3, 1), HybridLayout::default()).unwrap();
    assert_eq!((bt.nnz_diagonal(), bt.nnz_couplings()), (3, 0));
}

#[test]
fn values_are_refreshed_in_place() {
    let a = csr(&B);
    let mut doubled = B;
    doubled.iter_mut().flatten().for_each(|v| *v *= 2.0);
    doubled[3][0] = 0.0; // not stored any more: must become zero
    doubled[4][4] = 0.0;
    let a2 = csr(&doubled);
    let mut beyond = B;
    beyond[0][5] = 1.0; // a coupling without a place
    for layout in layouts() {
        let mut bt = BlockTridiagonal::from_csr(&a, uniform(9, 3), layout).unwrap();
        bt.update_values(&a2).unwrap();
        assert_eq!(dense(&bt), a2.to_dense(), "{layout:?}");
        if layout.couplings != Some(CouplingKind::Dense) {
            let before = bt.clone();
            let error = bt.update_values(&csr(&beyond));
            assert!(matches!(error, Err(Error::OutsideStructure { row: 0, col: 5, .. })), "{layout:?}");
            assert_eq!(bt, before, "{layout:?}: a refused matrix changed values");
        }
    }
}

#[test]
fn one_block_and_no_block() {
    let a = csr(&B);
    let bt = BlockTridiagonal::from_csr(&a, uniform(9, 9), HybridLayout::default()).unwrap();
    assert_eq!((bt.n_blocks(), bt.nnz_couplings()), (1, 0));
    let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    let bt = BlockTridiagonal::from_csr(&empty, uniform(0, 3), HybridLayout::default()).unwrap();
    assert_eq!((bt.n(), bt.nnz()), (0, 0));
    bt.apply(1.0, &[], 0.0, &mut []);
}
