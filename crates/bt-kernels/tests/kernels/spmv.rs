//! Products on the device agree with the host's to rounding, in every format and for every rule of rows.

use crate::support::{Numbers, assert_close, device};
use bt_formats::{
    Bcsr, BlockTridiagonal, Csr, Dia, DiagonalKind, HybridLayout, LinearOperator, Matrix, Partition, RealScalar,
    Scalar, one,
};
use bt_kernels::{
    Device, DeviceBcsr, DeviceCsr, DeviceDia, DeviceError, DeviceHybrid, DeviceScalar, DeviceVec, Result, RowRule,
};

const SIZES: [usize; 8] = [1, 2, 31, 32, 33, 255, 256, 257];
const RULES: [RowRule; 4] = [RowRule::Thread, RowRule::Eight, RowRule::Warp, RowRule::Segments];

/// y ← αAx + βy
type Apply<'a, T> = dyn Fn(T, &DeviceVec<T>, T, &mut DeviceVec<T>) -> Result<()> + 'a;

/// `apply` against the host, with two pairs of α and β; the second must not read y, which is NaN then.
fn check<T: DeviceScalar>(
    what: &str,
    device: &Device,
    a: &dyn LinearOperator<T>,
    sizes: &dyn Fn(&[T]) -> Vec<f64>,
    apply: &Apply<'_, T>,
) {
    let mut numbers = Numbers(7);
    let (x, y) = (numbers.vector::<T>(a.ncols()), numbers.vector::<T>(a.nrows()));
    let device_x = DeviceVec::from_slice(device, &x).unwrap();
    let nan = vec![T::rounded(f64::NAN, 0.0); a.nrows()];
    for (alpha, beta, y) in [(1.5, -0.75, &y), (-1.0, 0.0, &nan)] {
        let (alpha, beta) = (T::rounded(alpha, 0.0), T::rounded(beta, 0.0));
        let mut expected = y.clone();
        a.apply(alpha, &x, beta, &mut expected);
        let mut device_y = DeviceVec::from_slice(device, y).unwrap();
        apply(alpha, &device_x, beta, &mut device_y).unwrap();
        let mut found = vec![T::default(); a.nrows()];
        device_y.copy_to(&mut found).unwrap();
        assert_close(what, &found, &expected, &sizes(&x), 4.0);
    }
}

/// (1 + length)·(|A|·|x|) + 1 for every row: what rounding is held against.
fn sizes<T: Scalar>(a: &Csr<T>, x: &[T]) -> Vec<f64> {
    let row = |i| {
        let (columns, values) = a.row(i);
        let sum = |(&c, &v): (&u32, &T)| (v * x[c as usize]).abs().to_f64();
        1.0 + (1 + columns.len()) as f64 * columns.iter().zip(values).map(sum).sum::<f64>()
    };
    (0..a.nrows()).map(row).collect()
}

fn compressed_rows<T: DeviceScalar>(device: &Device) {
    let mut numbers = Numbers(1);
    for n in SIZES {
        // Empty rows, rows of one entry, rows of all.
        let lengths: Vec<usize> = (0..n).map(|i| [0, 1, 3, 9, 40, n][(i + n) % 6]).collect();
        let a = numbers.rows::<T>(n + 3, &lengths);
        for rule in RULES {
            let matrix = DeviceCsr::with_options(device, &a, rule).unwrap();
            assert_eq!(matrix.rule(), rule);
            let what = format!("{} rows, {rule:?}, {}", n, T::SUFFIX);
            check(&what, device, &a, &|x| sizes(&a, x), &|alpha, x, beta, y| matrix.apply(alpha, x, beta, y));
        }
    }
}

#[test]
fn compressed_rows_agree_with_the_host() {
    let Some(device) = device() else { return };
    compressed_rows::<f64>(&device);
    compressed_rows::<f32>(&device);
}

fn blocks_of_rows<T: DeviceScalar>(device: &Device) {
    let mut numbers = Numbers(6);
    for k in 1..=6 {
        for n in [1, 3, 50, 86] {
            // Empty rows, rows of one entry, rows of all.
            let lengths: Vec<usize> = (0..n * k).map(|i| [0, 1, 3, 9, n][(i / k + n) % 5]).collect();
            let rows = numbers.rows::<T>((n + 2) * k, &lengths);
            let a = Bcsr::from_csr(&rows, k).unwrap();
            let matrix = DeviceBcsr::new(device, &a).unwrap();
            assert_eq!(matrix.bytes(), a.bytes());
            let what = format!("{n} rows of blocks of {k}, {}", T::SUFFIX);
            check(&what, device, &a, &|x| sizes(&rows, x), &|alpha, x, beta, y| matrix.apply(alpha, x, beta, y));
        }
    }
    let a = Bcsr::<T>::new(4, 2, 2, vec![0, 1, 1], vec![0], vec![T::rounded(f64::NAN, 0.0); 4]).unwrap();
    assert!(matches!(DeviceBcsr::new(device, &a), Err(DeviceError::Input(_))));
    let a = Bcsr::<T>::new(4, 2, 2, vec![0, 1, 1], vec![0], vec![one(); 4]).unwrap();
    let (matrix, x) = (DeviceBcsr::new(device, &a).unwrap(), DeviceVec::zeros(device, 4).unwrap());
    let mut y = DeviceVec::zeros(device, 4).unwrap();
    assert!(matrix.apply(one(), &x, one(), &mut y).unwrap_err().to_string().contains("length of x"));
}

#[test]
fn blocks_of_rows_agree_with_the_host() {
    let Some(device) = device() else { return };
    blocks_of_rows::<f64>(&device);
    blocks_of_rows::<f32>(&device);
}

#[test]
fn a_row_longer_than_a_tile_has_a_block_of_its_own() {
    let Some(device) = device() else { return };
    let mut lengths = vec![3; 300];
    (lengths[0], lengths[17], lengths[299]) = (9000, 9000, 9000);
    let a = Numbers(2).rows::<f64>(4000, &lengths);
    assert_eq!(RowRule::for_rows(&a), RowRule::Segments);
    assert!(a.row(17).0.len() > 2048);
    let matrix = DeviceCsr::new(&device, &a).unwrap();
    check("long rows", &device, &a, &|x| sizes(&a, x), &|alpha, x, beta, y| matrix.apply(alpha, x, beta, y));
}

#[test]
fn rules_follow_the_lengths_of_rows() {
    let rule = |lengths: &[usize]| RowRule::for_rows(&Numbers(3).rows::<f64>(100_000, lengths));
    assert_eq!(rule(&[]), RowRule::Thread);
    assert_eq!(rule(&[5; 40]), RowRule::Thread);
    assert_eq!(rule(&[20; 40]), RowRule::Eight);
    assert_eq!(rule(&[90; 40]), RowRule::Warp);
    assert_eq!(rule(&[vec![2; 40], vec![90]].concat()), RowRule::Segments);
}

fn diagonals<T: DeviceScalar>(device: &Device) {
    let mut numbers = Numbers(4);
    for n in SIZES {
        for ncols in [n, n + 5] {
            let m = n as i32;
            let mut offsets = vec![1 - m, -1, 0, 1, m - 1];
            offsets.retain(|o| *o > -m && i64::from(*o) < ncols as i64);
            offsets.sort_unstable();
            offsets.dedup();
            let inside = |i: usize, o: i32| (0..ncols as i64).contains(&(i as i64 + i64::from(o)));
            let mut values = Vec::new();
            for &o in &offsets {
                values.extend((0..n).map(|i| if inside(i, o) { numbers.real() } else { T::default() }));
            }
            let a = Dia::new(n, ncols, offsets, values).unwrap();
            let rows = a.to_csr().unwrap();
            let matrix = DeviceDia::new(device, &a).unwrap();
            let what = format!("{n} × {ncols} by diagonals, {}", T::SUFFIX);
            check(&what, device, &a, &|x| sizes(&rows, x), &|alpha, x, beta, y| matrix.apply(alpha, x, beta, y));
        }
    }
}

#[test]
fn diagonals_agree_with_the_host() {
    let Some(device) = device() else { return };
    diagonals::<f64>(&device);
    diagonals::<f32>(&device);
}

fn hybrid<T: DeviceScalar>(device: &Device) {
    // One block, blocks of one row, uneven ones; couplings empty and full.
    for sizes_of_blocks in [vec![1], vec![33], vec![1, 1, 1], vec![2, 31, 1, 7], vec![16; 17], vec![255, 2]] {
        let partition = Partition::from_sizes(sizes_of_blocks.clone()).unwrap();
        let n = partition.n();
        let mut numbers = Numbers(5);
        let mut rows = Vec::new();
        for i in 0..n {
            let j = partition.block_of(i);
            let mut row: Vec<(usize, T)> = Vec::new();
            for c in 0..n {
                let near = i.abs_diff(c) <= 1 && partition.block_of(c) == j;
                let coupled = partition.block_of(c).abs_diff(j) == 1 && (i + c) % 5 == 0 && j != 1;
                if near || coupled {
                    row.push((c, numbers.real()));
                }
            }
            rows.push(row);
        }
        let ptr = std::iter::once(0).chain(rows.iter().scan(0, |k, row| {
            *k += row.len() as u32;
            Some(*k)
        }));
        let (columns, values) = rows.iter().flatten().map(|&(c, v)| (c as u32, v)).unzip();
        let a = Csr::new(n, n, ptr.collect(), columns, values).unwrap();
        for diagonal in [DiagonalKind::Tridiagonal, DiagonalKind::Band, DiagonalKind::Dense] {
            let layout = HybridLayout { diagonal: Some(diagonal), ..HybridLayout::default() };
            let blocks = BlockTridiagonal::from_csr(&a, partition.clone(), layout).unwrap();
            let matrix = DeviceHybrid::new(device, &blocks).unwrap();
            let what = format!("blocks of {sizes_of_blocks:?}, {diagonal:?}, {}", T::SUFFIX);
            check(&what, device, &blocks, &|x| sizes(&a, x), &|alpha, x, beta, y| matrix.apply(alpha, x, beta, y));
            assert!(matrix.bytes() >= blocks.nnz() * size_of::<T>());
        }
    }
}

#[test]
fn block_tridiagonal_matrices_agree_with_the_host() {
    let Some(device) = device() else { return };
    hybrid::<f64>(&device);
    hybrid::<f32>(&device);
}

#[test]
fn lengths_and_entries_are_checked() {
    let Some(device) = device() else { return };
    let a = Numbers(6).rows::<f64>(3, &[1, 2]);
    let matrix = DeviceCsr::new(&device, &a).unwrap();
    let vector = |n| DeviceVec::from_slice(&device, &vec![1.0; n]).unwrap();
    for (x, y, expected) in [(2, 2, "length of x: expected 3, found 2"), (3, 3, "length of y: expected 2, found 3")] {
        let error = matrix.apply(one(), &vector(x), one(), &mut vector(y)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let nan = Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::NAN]).unwrap();
    assert!(matches!(DeviceCsr::new(&device, &nan), Err(DeviceError::Input(_))));
    assert!(vector(2).copy_to(&mut [0.0; 3]).is_err());
}
