//! Peak memory: a factorization holds no more at one time than the bytes it states, plus a little.

use bt_direct::{
    BandLu, BlockCholesky, BlockLu, BlockLuAcross, BlockRbt, Factorization, Thomas, TridiagonalLu, TridiagonalSpike,
};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, Matrix, Partition, Tridiagonal};
use bt_testkit::alloc::{is_counting, peak_bytes};

/// A dominant band matrix of half-bandwidth b.
fn band(n: usize, b: usize) -> Csr<f64> {
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(b)..(i + b + 1).min(n) {
            idx.push(j as u32);
            val.push(if i == j { 4.0 * b as f64 } else { 1.0 / (1 + (i * 7 + j * 3) % 5) as f64 });
        }
        ptr.push(idx.len() as u32);
    }
    Csr::new(n, n, ptr, idx, val).unwrap()
}

/// Peak of `make` against the bytes that its factors state.
fn check<F: Factorization<f64>>(make: impl FnOnce() -> F) {
    let (factors, peak) = peak_bytes(make);
    let stated = factors.stats().bytes;
    // Work space of a few panels, which does not grow with n, is not among the factors.
    let allowed = stated + stated / 8 + (64 << 10);
    assert!(peak <= allowed, "{}: {peak} bytes at the peak, {stated} stated", factors.method());
}

#[test]
fn peaks_stay_within_the_bytes_stated() {
    assert!(is_counting());
    let n = 20_000;
    let t = Tridiagonal::from_csr(&band(n, 1)).unwrap();
    check(|| Thomas::new(&t).unwrap());
    check(|| TridiagonalLu::new(&t).unwrap());
    let csr = band(n, 6);
    let b = Band::from_csr(&csr).unwrap();
    check(|| BandLu::new(&b).unwrap());
    let blocks = Partition::uniform(n, 8).unwrap();
    let blocks = BlockTridiagonal::from_csr(&csr, blocks, HybridLayout::default()).unwrap();
    check(|| BlockLu::new(&blocks).unwrap());
    check(|| BlockLuAcross::new(&blocks).unwrap());
    check(|| BlockRbt::new(&blocks).unwrap());
    check(|| TridiagonalSpike::new(&t).unwrap());
    let hermitian = symmetric(n, 6);
    let blocks = Partition::uniform(n, 8).unwrap();
    let blocks = BlockTridiagonal::from_csr(&hermitian, blocks, HybridLayout::default()).unwrap();
    check(|| BlockCholesky::new(&blocks).unwrap());
}

/// 1 in a band of half-bandwidth b, and a dominant diagonal.
fn symmetric(n: usize, b: usize) -> Csr<f64> {
    let mut a = band(n, b);
    let rows: Vec<usize> = (0..n).flat_map(|i| vec![i; a.row(i).0.len()]).collect();
    let columns = a.col_idx().to_vec();
    for (v, (row, col)) in a.values_mut().iter_mut().zip(rows.into_iter().zip(columns)) {
        *v = if row == col as usize { 4.0 * b as f64 } else { 1.0 };
    }
    a
}

#[test]
fn factors_take_the_place_of_the_matrix() {
    assert!(is_counting());
    let n = 20_000;
    let t = Tridiagonal::from_csr(&band(n, 1)).unwrap();
    // What is taken while a matrix is factored whose memory was there before.
    let (mut x, mut y) = (vec![1.0; n], vec![1.0; n]);
    let own = Tridiagonal::from_csr(&band(n, 1)).unwrap();
    let (factors, peak) = peak_bytes(|| Thomas::from_tridiagonal(own).unwrap());
    assert!(peak <= 1 << 10, "thomas takes {peak} bytes");
    factors.solve_vec_in_place(&mut x);
    Thomas::new(&t).unwrap().solve_vec_in_place(&mut y);
    assert_eq!(x, y);
    let own = Tridiagonal::from_csr(&band(n, 1)).unwrap();
    let (factors, peak) = peak_bytes(|| TridiagonalLu::from_tridiagonal(own).unwrap());
    // The second super-diagonal and the flags.
    assert!(peak <= n * 9 + (1 << 10), "tridiagonal-lu takes {peak} bytes");
    factors.solve_vec_in_place(&mut x);
    TridiagonalLu::new(&t).unwrap().solve_vec_in_place(&mut y);
    assert_eq!(x, y);
    let own = Band::from_csr(&band(n, 6)).unwrap();
    let size = own.bytes();
    let (_, peak) = peak_bytes(|| BandLu::from_band(own).unwrap());
    // Pivots, and work space of some panels.
    assert!(peak <= size / 8 + (64 << 10), "band-lu takes {peak} bytes beside {size}");
}
