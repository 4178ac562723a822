//! Block-tridiagonal LU on the device: the host's answers for batches of any blocks, and its help where a block is singular.

use crate::support::{Numbers, assert_columns_close, device, epsilon};
use bt_direct::{BlockLu, FactorError, Factorization};
use bt_formats::{BlockTridiagonal, Matrix, Op, Par, Partition, Scalar, certify, one};
use bt_kernels::{Device, DeviceBlockLu, DeviceScalar, SolvedBy};
use faer::{Mat, MatRef};

/// Entries in (−1, 1); `weight` times the block size is added to the last diagonal of each diagonal block, mirrored, so that no pivot
/// is where it should be.
fn blocks<T: Scalar>(sizes: &[usize], weight: f64, seed: u64) -> BlockTridiagonal<T> {
    let mut numbers = Numbers(seed);
    let (mut diagonal, mut couplings) = (Vec::new(), Vec::new());
    for (j, &k) in sizes.iter().enumerate() {
        let mut d: Vec<T> = numbers.vector(k * k);
        for c in 0..k {
            d[c * k + (k - 1 - c)] += T::rounded(weight * k as f64, 0.0);
        }
        diagonal.extend(d);
        let beside = if j > 0 { sizes[j - 1] } else { 0 } + sizes.get(j + 1).copied().unwrap_or(0);
        couplings.extend(numbers.vector::<T>(k * beside));
    }
    BlockTridiagonal::from_dense_blocks(Partition::from_sizes(sizes.iter().copied()).unwrap(), diagonal, couplings)
        .unwrap()
}

fn agrees<T: DeviceScalar>(device: &Device, systems: &[BlockTridiagonal<T>], nrhs: usize) {
    let systems: Vec<_> = systems.iter().collect();
    let n: usize = systems.iter().map(|a| a.n()).sum();
    let mut numbers = Numbers(n as u64);
    let b = Mat::from_fn(n, nrhs, |_, _| numbers.real::<T>());
    let lu = DeviceBlockLu::new(device, &systems).unwrap();
    assert!(lu.failed_blocks().iter().all(Option::is_none));
    let mut x = b.clone();
    lu.solve_once(x.as_mut()).unwrap();
    let mut row = 0;
    for a in systems {
        let rows = row..row + a.n();
        row = rows.end;
        let host = BlockLu::new(a).unwrap();
        let rhs = b.get(rows.clone(), ..);
        let mut expected = rhs.to_owned();
        host.solve_in_place(expected.as_mut());
        let found = x.get(rows, ..);
        let what = format!("{}, blocks {:?}, {nrhs} columns", T::SUFFIX, a.partition().sizes().collect::<Vec<_>>());
        // Before any refinement: backward stable, and as far from the host as two such answers may be.
        let error = |x: MatRef<'_, T>| certify(a, Op::Identity, x, rhs).backward_error;
        let [ours, theirs] = [error(found), error(expected.as_ref())];
        let largest = a.partition().min_max_size().1 as f64;
        assert!(ours <= (8.0 + largest) * epsilon::<T>(), "{what}: {ours:e}");
        let allowed = 8.0 * (ours + theirs + epsilon::<T>()) / host.rcond();
        assert_columns_close(&what, found, expected.as_ref(), allowed);
    }
}

#[test]
fn answers_are_those_of_the_host_for_any_blocks() {
    let Some(device) = device() else { return };
    let sizes: [&[usize]; 9] =
        [&[1], &[1; 5], &[2, 31, 1, 32, 7], &[16; 4], &[15, 17, 16], &[33, 32], &[64, 64], &[1, 65, 2], &[4; 33]];
    for (s, sizes) in sizes.into_iter().enumerate() {
        agrees::<f64>(&device, &[blocks(sizes, 2.0, s as u64)], 1 + s % 3);
        agrees::<f32>(&device, &[blocks(sizes, 2.0, s as u64)], 1 + (s + 1) % 3);
    }
    agrees::<f64>(&device, &[blocks(&[128, 3], 2.0, 1)], 9);
    // A batch of all kinds.
    let batch: Vec<_> = sizes.iter().map(|sizes| blocks::<f64>(sizes, 2.0, 7)).collect();
    agrees(&device, &batch, 2);
    agrees::<f64>(&device, &[], 1);
}

#[test]
fn a_system_that_breaks_down_disturbs_no_other() {
    let Some(device) = device() else { return };
    let good = blocks::<f64>(&[3, 2, 4], 2.0, 3);
    // D₀ is singular and A is not: block LU has no pivot, on the host either.
    let blocks_of = || Partition::from_sizes([1, 1]).unwrap();
    let swap = BlockTridiagonal::from_dense_blocks(blocks_of(), vec![0.0, 0.0], vec![1.0, 1.0]).unwrap();
    // A last block without a pivot: A is singular, which block LU does not prove.
    let singular = BlockTridiagonal::from_dense_blocks(blocks_of(), vec![1.0, 1.0], vec![1.0, 1.0]).unwrap();
    let systems = [&swap, &good, &singular, &good];
    let lu = DeviceBlockLu::new(&device, &systems).unwrap();
    assert_eq!(lu.failed_blocks(), [Some(0), None, Some(1), None]);
    let mut x = Mat::from_fn(22, 2, |i, j| (i + j) as f64);
    let b = x.clone();
    let reports = lu.solve_in_place(x.as_mut()).unwrap();
    assert!(matches!(&reports[0], Err(FactorError::Breakdown { method: "block-lu", .. })), "{:?}", reports[0]);
    assert!(matches!(&reports[2], Err(FactorError::Breakdown { .. })), "{:?}", reports[2]);
    for (s, row) in [(1, 2), (3, 13)] {
        let report = reports[s].as_ref().unwrap();
        let rows = row..row + 9;
        let truth = certify(&good, Op::Identity, x.get(rows.clone(), ..), b.get(rows, ..));
        assert_eq!((report.solved_by, report.certificate), (SolvedBy::Device, truth));
        assert!(truth.backward_error <= 4.0 * f64::EPSILON);
    }
    assert!((0..2).chain(11..13).all(|i| x[(i, 0)].is_nan() && x[(i, 1)].is_nan()));
}

#[test]
fn the_host_solves_what_lacks_a_pivot_from_one_end() {
    let Some(device) = device() else { return };
    // [1 1 .; 1 1 1; . 1 1]: D₁ − 1·1·1 = 0 from the front; the host comes from both ends.
    let partition = Partition::from_sizes([1, 1, 1]).unwrap();
    let a = BlockTridiagonal::from_dense_blocks(partition, vec![1.0; 3], vec![1.0; 4]).unwrap();
    let lu = DeviceBlockLu::new(&device, &[&a]).unwrap();
    assert_eq!(lu.failed_blocks(), [Some(1)]);
    let mut x = Mat::from_fn(3, 1, |i, _| [2.0, 3.0, 2.0][i]);
    let report = lu.solve_in_place(x.as_mut()).unwrap().remove(0).unwrap();
    assert_eq!((report.solved_by, report.device_error), (SolvedBy::Host, f64::INFINITY));
    assert_eq!(x, Mat::from_fn(3, 1, |_, _| 1.0));
}

#[test]
fn refinement_gains_what_growth_lost() {
    let Some(device) = device() else { return };
    // Small diagonal blocks under large couplings: elements grow a thousandfold.
    let mut weak = blocks::<f64>(&[6; 5], 0.0, 12);
    let scaled: Vec<f64> = match weak.diagonal() {
        bt_formats::DiagonalBlocks::Dense { values, .. } => values.iter().map(|v| 1e-3 * v).collect(),
        _ => unreachable!("dense blocks"),
    };
    let couplings = match weak.couplings() {
        bt_formats::Couplings::Dense { values, .. } => values.clone(),
        _ => unreachable!("dense couplings"),
    };
    weak = BlockTridiagonal::from_dense_blocks(weak.partition().clone(), scaled, couplings).unwrap();
    let truth = Mat::from_fn(30, 1, |i, _| 1.0 + i as f64);
    let mut x = Mat::zeros(30, 1);
    weak.apply_many(Op::Identity, one(), truth.as_ref(), 0.0, x.as_mut(), Par::Seq);
    let mut once = x.clone();
    let lu = DeviceBlockLu::new(&device, &[&weak]).unwrap();
    lu.solve_once(once.as_mut()).unwrap();
    let before = certify(&weak, Op::Identity, once.as_ref(), x.as_ref()).backward_error;
    let report = lu.solve_in_place(x.as_mut()).unwrap().remove(0).unwrap();
    assert!(before > 1e-14, "the case shows nothing: {before:e}");
    assert!(report.steps > 0 && report.certificate.backward_error <= 1e-15, "{report:?}");
}

#[test]
fn sizes_and_values_are_checked() {
    let Some(device) = device() else { return };
    let wide = blocks::<f64>(&[2, 129], 2.0, 1);
    let error = DeviceBlockLu::new(&device, &[&wide]).err().unwrap().to_string();
    assert!(error.contains("block 1 of system 0 has 129 rows"), "{error}");
    let mut values = vec![1.0; 4];
    values[2] = f64::NAN;
    let bad = BlockTridiagonal::from_dense_blocks(Partition::from_sizes([2]).unwrap(), values, vec![]).unwrap();
    let error = DeviceBlockLu::new(&device, &[&bad]).err().unwrap().to_string();
    assert!(error.contains("row 0, column 1"), "{error}");
    let good = blocks::<f64>(&[2, 2], 2.0, 1);
    let lu = DeviceBlockLu::new(&device, &[&good]).unwrap();
    assert!(lu.solve_in_place(Mat::zeros(5, 1).as_mut()).is_err());
    assert!(lu.solve_once(Mat::zeros(3, 1).as_mut()).is_err());
    let mut x = Mat::from_fn(4, 1, |_, _| f64::INFINITY);
    assert!(lu.solve_in_place(x.as_mut()).is_err());
    // Two panels of 4 × 2 and 2 × 2 values, a coupling of 2 × 2; 4 rows; two systems' worth of tables.
    assert_eq!(lu.bytes(), (8 + 4 + 4) * 8 + 4 * (4 + 1 + 2 + 3) + 8 * 4);
}
