//! Peak memory: a factorization holds no more at one time than the bytes it states, plus a little.

use bt_direct::{BandLu, BlockLu, Factorization, Thomas, TridiagonalLu};
use bt_formats::{Band, BlockTridiagonal, Csr, HybridLayout, Partition, Tridiagonal};
use bt_testkit::alloc::{CountingAllocator, is_counting, peak_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

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
}
