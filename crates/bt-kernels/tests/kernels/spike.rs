//! SPIKE on the device: bands and blocks in any number of partitions, the host's answers.

use crate::support::{Numbers, assert_columns_close, device, epsilon};
use bt_direct::{BandLu, BlockLu, FactorError, Factorization, Place};
use bt_formats::{Band, BlockTridiagonal, Matrix, Op, Partition, Scalar, certify};
use bt_kernels::{Device, DeviceError, DeviceScalar, DeviceSpike, SolvedBy};
use faer::Mat;

/// Entries in (−1, 1) and a diagonal that does not quite dominate.
fn band<T: Scalar>(n: usize, kl: usize, ku: usize) -> Band<T> {
    let mut numbers = Numbers((n + 100 * kl + 10_000 * ku) as u64);
    let mut a = Band::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            let weight = if i == j { 0.4 * (kl + ku + 1) as f64 } else { 0.0 };
            *a.get_mut(i, j) = numbers.real::<T>() + T::rounded(weight, 0.0);
        }
    }
    a
}

fn blocks<T: Scalar>(sizes: &[usize]) -> BlockTridiagonal<T> {
    let mut numbers = Numbers(sizes.len() as u64);
    let (mut diagonal, mut couplings) = (Vec::new(), Vec::new());
    for (j, &k) in sizes.iter().enumerate() {
        let mut d: Vec<T> = numbers.vector(k * k);
        for c in 0..k {
            d[c * k + (c + 1) % k] += T::rounded(1.2 * k as f64, 0.0);
        }
        diagonal.extend(d);
        let beside = if j > 0 { sizes[j - 1] } else { 0 } + sizes.get(j + 1).copied().unwrap_or(0);
        couplings.extend(numbers.vector::<T>(k * beside));
    }
    BlockTridiagonal::from_dense_blocks(Partition::from_sizes(sizes.iter().copied()).unwrap(), diagonal, couplings)
        .unwrap()
}

fn check<T: DeviceScalar, A: Matrix<T>>(what: &str, a: &A, host: &dyn Factorization<T>, spike: &DeviceSpike<'_, T>) {
    let mut numbers = Numbers(5);
    let b = Mat::from_fn(a.nrows(), 2, |_, _| numbers.real::<T>());
    let (mut expected, mut once, mut x) = (b.clone(), b.clone(), b.clone());
    host.solve_in_place(expected.as_mut());
    spike.solve_once(once.as_mut()).unwrap();
    let reached = certify(a, Op::Identity, once.as_ref(), b.as_ref()).backward_error;
    assert!(reached <= 500.0 * epsilon::<T>(), "{what}, unrefined: {reached:e}");
    let report = spike.solve_in_place(x.as_mut()).unwrap();
    assert_eq!(report.solved_by, SolvedBy::Device, "{what}: {report:?}");
    assert_eq!(report.certificate, certify(a, Op::Identity, x.as_ref(), b.as_ref()), "{what}");
    assert!(report.certificate.backward_error <= 4.0 * epsilon::<T>(), "{what}: {report:?}");
    let allowed = 100.0 * epsilon::<T>() / host.rcond();
    assert_columns_close(what, x.as_ref(), expected.as_ref(), allowed);
}

fn bands<T: DeviceScalar>(device: &Device) {
    for [n, kl, ku, p] in
        [[1, 0, 0, 4], [33, 1, 1, 3], [64, 1, 1, 32], [65, 2, 1, 5], [70, 0, 3, 4], [71, 3, 0, 4], [256, 5, 7, 9]]
    {
        let a = band::<T>(n, kl, ku);
        let spike = DeviceSpike::band(device, &a, Some(p)).unwrap();
        assert_eq!(spike.partitions().iter().sum::<usize>(), n);
        assert_eq!(spike.partitions().len(), if n == 1 { 1 } else { p.min(n / (2 * kl.max(ku))) });
        check(&format!("{}, band {n}, {kl}, {ku}, {p} partitions", T::SUFFIX), &a, &BandLu::new(&a).unwrap(), &spike);
    }
}

#[test]
fn bands_in_any_number_of_partitions() {
    let Some(device) = device() else { return };
    bands::<f64>(&device);
    bands::<f32>(&device);
}

#[test]
fn blocks_in_any_number_of_partitions() {
    let Some(device) = device() else { return };
    let sizes: [(&[usize], usize); 5] =
        [(&[3], 2), (&[4; 9], 4), (&[2, 5, 1, 7, 3, 4, 6], 3), (&[1; 12], 6), (&[17, 16, 15, 18], 2)];
    for (sizes, p) in sizes {
        let a = blocks::<f64>(sizes);
        let spike = DeviceSpike::blocks(&device, &a, Some(p)).unwrap();
        assert_eq!(spike.partitions().len(), p.min(sizes.len() / 2).max(1));
        check(&format!("blocks {sizes:?}, {p} partitions"), &a, &BlockLu::new(&a).unwrap(), &spike);
    }
    // By default eight blocks at least.
    let a = blocks::<f32>(&[2; 40]);
    let spike = DeviceSpike::blocks(&device, &a, None).unwrap();
    assert!(spike.partitions().iter().all(|rows| *rows >= 16));
    check("default", &a, &BlockLu::new(&a).unwrap(), &spike);
}

#[test]
fn a_singular_partition_is_named() {
    let Some(device) = device() else { return };
    // Three rows of a zero diagonal are singular; the six together are not.
    let mut a = Band::<f64>::zeros(6, 1, 1).unwrap();
    for i in 1..6 {
        (*a.get_mut(i, i - 1), *a.get_mut(i - 1, i)) = (1.0, 1.0);
    }
    match DeviceSpike::band(&device, &a, Some(2)).err() {
        Some(DeviceError::Factor(FactorError::Breakdown { method: "spike", place, reason })) => {
            assert_eq!(place, Some(Place::Partition(0)));
            assert!(reason.starts_with("partition 0 has no pivot in its column 2"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let spike = DeviceSpike::band(&device, &a, Some(1)).unwrap();
    let mut x = Mat::from_fn(6, 1, |i, _| [1.0, 2.0, 2.0, 2.0, 2.0, 1.0][i]);
    spike.solve_in_place(x.as_mut()).unwrap();
    assert_eq!(x, Mat::from_fn(6, 1, |_, _| 1.0));
    assert!(spike.solve_in_place(Mat::zeros(5, 1).as_mut()).is_err());
    // A value between the partitions, in none of them.
    *a.get_mut(3, 2) = f64::NAN;
    let error = DeviceSpike::band(&device, &a, Some(2)).err().unwrap().to_string();
    assert!(error.contains("row 3, column 2"), "{error}");
}
