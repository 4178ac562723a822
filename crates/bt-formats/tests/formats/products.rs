//! y ← α·op(A)·x + β·y in every format: right, and the same bits for any number of threads and of vectors.

use bt_formats::{
    Band, Bcsr, BlockTridiagonal, Coo, CouplingKind, Csr, Dia, DiagonalKind, HybridLayout, LinearOperator, Matrix, Op,
    Par, Partition, RealScalar, Scalar, Tridiagonal, c32, c64,
};
use faer::Mat;

/// Reproducible numbers in (−1, 1).
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn real(&mut self) -> f64 {
        self.bits() as f64 / (1u64 << 30) as f64 - 1.0
    }
    fn scalar<T: Scalar>(&mut self) -> T {
        T::rounded(self.real(), self.real())
    }
    fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.scalar()).collect()
    }
}

/// Some rows are empty, some have two entries, some many: every path of the row kernels.
fn sparse<T: Scalar>(nrows: usize, ncols: usize, share: impl Fn(usize, usize) -> u64, numbers: &mut Numbers) -> Csr<T> {
    let mut coo = Coo::new(nrows, ncols).unwrap();
    for i in 0..nrows {
        for j in 0..ncols {
            if numbers.bits() % 100 < share(i, j) {
                coo.push(i, j, numbers.scalar()).unwrap();
            }
        }
    }
    coo.to_csr().unwrap()
}

/// Every format that can hold the matrix.
fn formats<T: Scalar>(numbers: &mut Numbers) -> Vec<(String, Box<dyn Matrix<T>>)> {
    let mut out: Vec<(String, Box<dyn Matrix<T>>)> = Vec::new();
    // 301 × 333 and 333 × 301, rows of 0 to 30 entries.
    for (nrows, ncols) in [(301, 333), (333, 301)] {
        let a = sparse::<T>(nrows, ncols, |i, _| [0, 1, 2, 3, 8][i % 5], numbers);
        let (rows, cols) = (Coo::from_csr(&a).rows().to_vec(), a.col_idx().to_vec());
        // Triplets out of order, and one of them in two parts.
        let (mut rows, mut cols, mut values) = (rows, cols, a.values().to_vec());
        rows.reverse();
        cols.reverse();
        values.reverse();
        rows.push(rows[5]);
        cols.push(cols[5]);
        values.push(numbers.scalar());
        out.push(("csr".into(), Box::new(a)));
        out.push(("coo".into(), Box::new(Coo::from_triplets(nrows, ncols, rows, cols, values).unwrap())));
        let few = sparse::<T>(nrows, ncols, |i, j| if (i + 370 - j) % 37 == 0 { 90 } else { 0 }, numbers);
        out.push(("dia".into(), Box::new(Dia::from_csr(&few).unwrap())));
    }
    // Blocks of every size, beside rows without any.
    for k in 1..=6 {
        let few =
            sparse::<T>(60 * k, 36 * k, |i, j| if (i / k + j / k) % 7 == 0 && i % 11 > 0 { 80 } else { 0 }, numbers);
        out.push((format!("bcsr {k}"), Box::new(Bcsr::from_csr(&few, k).unwrap())));
    }
    // Rows on up to eight and on more diagonals of eight rows, some of them empty: the second index of compressed rows.
    for (n, step) in [(262, 40), (263, 23), (11, 3)] {
        let mut near =
            sparse::<T>(n, n + 3, |i, j| if (i + 2 * n - j) % step < 3 && i % 9 < 8 { 90 } else { 0 }, numbers);
        assert!(near.index_by_diagonals().unwrap(), "{n}");
        out.push((format!("indexed csr {n}"), Box::new(near)));
    }
    let short = sparse::<T>(257, 257, |i, j| if i.abs_diff(j) <= 3 { 30 } else { 0 }, numbers);
    out.push(("short csr".into(), Box::new(short)));
    let band = sparse::<T>(400, 400, |i, j| if i <= j + 3 && j <= i + 11 { 95 } else { 0 }, numbers);
    out.push(("band".into(), Box::new(Band::from_csr(&band).unwrap())));
    for n in [1, 2, 3, 300] {
        let t = sparse::<T>(n, n, |i, j| if i.abs_diff(j) <= 1 { 95 } else { 0 }, numbers);
        out.push((format!("tridiagonal {n}"), Box::new(Tridiagonal::from_csr(&t).unwrap())));
    }
    let partition = Partition::from_sizes((0..60).map(|j| 1 + j * 7 % 13)).unwrap();
    let n = partition.n();
    let block: Vec<usize> = (0..n).map(|i| partition.block_of(i)).collect();
    for (diagonal, width) in [(DiagonalKind::Tridiagonal, 1), (DiagonalKind::Band, 3), (DiagonalKind::Dense, 99)] {
        for couplings in [CouplingKind::Coo, CouplingKind::Csr, CouplingKind::Diagonals, CouplingKind::Dense] {
            let share = |i: usize, j: usize| match block[i].abs_diff(block[j]) {
                0 if i.abs_diff(j) <= width => 95,
                1 => 12,
                _ => 0,
            };
            let a = sparse::<T>(n, n, share, numbers);
            let layout = HybridLayout { diagonal: Some(diagonal), couplings: Some(couplings) };
            let hybrid = BlockTridiagonal::from_csr(&a, partition.clone(), layout).unwrap();
            out.push((format!("{diagonal:?} + {couplings:?}"), Box::new(hybrid)));
        }
    }
    out
}

fn dense<T: Scalar>(a: &dyn Matrix<T>, op: Op) -> Mat<T> {
    let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
    let mut out = Mat::zeros(nrows, ncols);
    a.for_each_entry(&mut |i, j, v| match op {
        Op::Identity => out[(i, j)] = v,
        Op::Transpose => out[(j, i)] = v,
        Op::Adjoint => out[(j, i)] = Scalar::conj(v),
    });
    out
}

fn products_are_right<T: Scalar>() {
    let mut numbers = Numbers(7);
    for (name, a) in formats::<T>(&mut numbers) {
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let reference = dense(&*a, op);
            let (nrows, ncols) = (reference.nrows(), reference.ncols());
            let x = numbers.vector::<T>(ncols);
            let y = numbers.vector::<T>(nrows);
            let sums: Vec<(T, T::Real)> = (0..nrows)
                .map(|i| {
                    let terms = (0..ncols).map(|j| reference[(i, j)] * x[j]);
                    (terms.clone().sum(), terms.map(Scalar::abs).sum())
                })
                .collect();
            for (alpha, beta) in [(T::one(), T::zero()), (numbers.scalar(), T::one()), (-T::one(), numbers.scalar())] {
                let mut out = if beta == T::zero() { vec![T::rounded(f64::NAN, f64::NAN); nrows] } else { y.clone() };
                a.apply_op(op, alpha, &x, beta, &mut out, Par::Seq);
                for (i, &(sum, size)) in sums.iter().enumerate() {
                    let expected = alpha * sum + if beta == T::zero() { beta } else { beta * y[i] };
                    let error = (out[i] - expected).abs();
                    let bound = T::Real::EPSILON * T::Real::from_f64(8.0) * (size + T::one().re());
                    assert!(error <= bound, "{name}, {op:?}, α = {alpha}, β = {beta}, row {i}: {error} off");
                }
            }
        }
    }
}

fn bits_never_change<T: Scalar>() {
    let mut numbers = Numbers(11);
    let pools: Vec<_> =
        [2, 3].map(|t| rayon::ThreadPoolBuilder::new().num_threads(t).build().unwrap()).into_iter().collect();
    for (name, a) in formats::<T>(&mut numbers) {
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let (nrows, ncols) = op.shape(a.nrows(), a.ncols());
            let nrhs = 5;
            let x = Mat::from_fn(ncols, nrhs, |_, _| numbers.scalar::<T>());
            let y = Mat::from_fn(nrows, nrhs, |_, _| numbers.scalar::<T>());
            let (alpha, beta) = (numbers.scalar(), numbers.scalar());
            let column = |m: &Mat<T>, q: usize| m.col(q).try_as_col_major().unwrap().as_slice().to_vec();
            let mut serial = y.clone();
            for q in 0..nrhs {
                let mut out = column(&y, q);
                a.apply_op(op, alpha, &column(&x, q), beta, &mut out, Par::Seq);
                for pool in &pools {
                    let mut again = column(&y, q);
                    pool.install(|| a.apply_op(op, alpha, &column(&x, q), beta, &mut again, Par::Rayon));
                    assert_eq!(out, again, "{name}, {op:?}, {} threads", pool.current_num_threads());
                }
                for i in 0..nrows {
                    serial[(i, q)] = out[i];
                }
            }
            let mut many = y.clone();
            a.apply_many(op, alpha, x.as_ref(), beta, many.as_mut(), Par::Seq);
            assert_eq!(many, serial, "{name}, {op:?}: several vectors");
            for pool in &pools {
                let mut many = y.clone();
                pool.install(|| a.apply_many(op, alpha, x.as_ref(), beta, many.as_mut(), Par::Rayon));
                assert_eq!(many, serial, "{name}, {op:?}: several vectors, {} threads", pool.current_num_threads());
            }
        }
    }
}

#[test]
fn products_in_f32() {
    products_are_right::<f32>();
}

#[test]
fn products_in_f64() {
    products_are_right::<f64>();
}

#[test]
fn products_in_c32() {
    products_are_right::<c32>();
}

#[test]
fn products_in_c64() {
    products_are_right::<c64>();
}

#[test]
fn bits_in_f32() {
    bits_never_change::<f32>();
}

#[test]
fn bits_in_f64() {
    bits_never_change::<f64>();
}

#[test]
fn bits_in_c32() {
    bits_never_change::<c32>();
}

#[test]
fn bits_in_c64() {
    bits_never_change::<c64>();
}

#[test]
fn infinities_stay_in_their_rows() {
    // Masked lanes must not multiply what they do not own: 0·∞ would be NaN.
    let share = |i: usize, j: usize| if i.abs_diff(j) <= 1 || (i < 60 && j == i + 20) { 100 } else { 0 };
    let csr = sparse::<f64>(100, 100, share, &mut Numbers(3));
    let mut indexed = csr.clone();
    assert!(indexed.index_by_diagonals().unwrap());
    let layout = HybridLayout { diagonal: None, couplings: Some(CouplingKind::Diagonals) };
    let hybrid = BlockTridiagonal::from_csr(&csr, Partition::uniform(100, 20).unwrap(), layout).unwrap();
    let mut x = vec![1.0; 100];
    x[50] = f64::INFINITY;
    for a in [&csr as &dyn Matrix<f64>, &indexed, &hybrid] {
        let mut y = vec![0.0; 100];
        a.apply(1.0, &x, 0.0, &mut y);
        for (i, v) in y.iter().enumerate() {
            assert_eq!(v.is_finite(), i.abs_diff(50) > 1 && i != 30, "row {i}: {v}");
        }
    }
}

/// Long results are written past the caches in whole lines, from wherever y begins; short ones, and those added to y, are
/// not. Both must be the same, and nothing beside y may change.
fn long_results<T: Scalar>(n: usize) {
    let mut numbers = Numbers(5);
    let mut rows = Vec::new();
    let mut cols = Vec::new();
    for i in 0..n {
        for d in [-17isize, -1, 0, 1, 16] {
            if let Some(c) = i.checked_add_signed(d).filter(|&c| c < n && i % 7 != d.unsigned_abs() % 7) {
                rows.push(i as u32);
                cols.push(c as u32);
            }
        }
    }
    let values = numbers.vector::<T>(rows.len());
    let csr = Coo::from_triplets(n, n, rows, cols, values).unwrap().to_csr().unwrap();
    let layout = HybridLayout { diagonal: None, couplings: Some(CouplingKind::Diagonals) };
    let hybrid = BlockTridiagonal::from_csr(&csr, Partition::uniform(n, 32).unwrap(), layout).unwrap();
    let mut indexed = csr.clone();
    assert!(indexed.index_by_diagonals().unwrap());
    let x = numbers.vector::<T>(n);
    for (name, a) in [("csr", &csr as &dyn Matrix<T>), ("indexed csr", &indexed), ("hybrid", &hybrid)] {
        let mut expected = vec![T::zero(); n];
        a.apply_op(Op::Identity, T::one(), &x, T::one(), &mut expected, Par::Seq);
        for start in [0, 1, 3, 4, 8] {
            let mut y = vec![T::rounded(7.0, 0.0); n + 16];
            a.apply_op(Op::Identity, T::one(), &x, T::zero(), &mut y[start..start + n], Par::Seq);
            assert!(y[start..start + n] == expected, "{name}, y from element {start}");
            let outside = y[..start].iter().chain(&y[start + n..]);
            assert!(outside.copied().all(|v| v == T::rounded(7.0, 0.0)), "{name}, y from element {start}");
        }
    }
}

#[test]
fn long_results_of_any_alignment() {
    long_results::<f64>((4 << 20) / 8 + 5);
    long_results::<f32>((4 << 20) / 4 + 3);
}

/// Any number of rows whose entries do not fit in the kernel's buffer together: every way to halve a pass.
#[test]
fn long_rows_in_any_number() {
    let mut numbers = Numbers(8);
    for n in 1..=70 {
        let a = sparse::<f64>(n, 300, |_, _| 90, &mut numbers);
        let x: Vec<f64> = numbers.vector(300);
        let mut y = vec![0.0; n];
        a.apply(1.0, &x, 0.0, &mut y);
        for (i, (y, row)) in y.iter().zip(dense(&a, Op::Identity).row_iter()).enumerate() {
            let (sum, scale) = row.iter().zip(&x).fold((0.0, 0.0), |(s, t), (a, x)| (s + a * x, t + (a * x).abs()));
            assert!((y - sum).abs() <= 300.0 * f64::EPSILON * scale, "row {i} of {n}");
        }
    }
}

#[test]
fn an_index_needs_rows_that_resemble_each_other() {
    let mut numbers = Numbers(9);
    let mut scattered = sparse::<f64>(300, 300, |_, _| 1, &mut numbers);
    let before = scattered.clone();
    assert!(!scattered.index_by_diagonals().unwrap());
    assert_eq!((&scattered, scattered.bytes()), (&before, before.bytes()));
    let mut band = sparse::<f64>(300, 300, |i, j| if i.abs_diff(j) <= 3 { 100 } else { 0 }, &mut numbers);
    let before = band.clone();
    assert!(band.index_by_diagonals().unwrap());
    // 38 slices, each on seven diagonals.
    assert_eq!((&band, band.bytes()), (&before, before.bytes() + 38 * 40 + 39 * 4));
    assert_eq!(band.clone().bytes(), band.bytes());
}

#[test]
#[should_panic(expected = "lengths of x and y")]
fn a_short_x_is_refused() {
    let a = sparse::<f64>(10, 10, |_, _| 50, &mut Numbers(3));
    a.apply(1.0, &[1.0; 9], 0.0, &mut [0.0; 10]);
}

#[test]
fn empty_matrices_multiply() {
    let tall = Csr::<f64>::new(3, 0, vec![0; 4], vec![], vec![]).unwrap();
    let mut y = [f64::NAN; 3];
    tall.apply(1.0, &[], 0.0, &mut y);
    assert_eq!(y, [0.0; 3]);
    let mut none = [];
    tall.apply_op(Op::Transpose, 1.0, &[1.0; 3], 0.0, &mut none, Par::Rayon);
    let mut y = [2.0; 3];
    Dia::from_csr(&tall).unwrap().apply(1.0, &[], 0.5, &mut y);
    assert_eq!(y, [1.0; 3]);
}
