//! Preconditioners on the device: z ← M⁻¹·r of the host, its factors, its errors.

use crate::support::{Numbers, assert_close, device, epsilon, long_rows, on_host};
use bt_formats::{Csr, LinearOperator, Partition, RealScalar};
use bt_iter::{DroppedFill, Refactor, Series, Triangles, TriangularSolves, ic0, ilu0};
use bt_kernels::{Device, DeviceError, DeviceInverse, DevicePreconditioner, DeviceScalar, DeviceVec};
use bt_testkit::{csr, stencil};

const ILU0: DevicePreconditioner = DevicePreconditioner::Ilu0(TriangularSolves::Levels);
const IC0: DevicePreconditioner = DevicePreconditioner::Ic0(TriangularSolves::Levels);

fn applied<T: DeviceScalar>(device: &Device, m: &mut DeviceInverse<T>, r: &[T]) -> Vec<T> {
    let (r, mut z) = (DeviceVec::from_slice(device, r).unwrap(), DeviceVec::zeros(device, r.len()).unwrap());
    m.apply(&r, &mut z).unwrap();
    let mut host = vec![T::default(); r.len()];
    z.copy_to(&mut host).unwrap();
    host
}

/// To so many roundings of the largest element of z; 0: to the bit.
fn agrees<T: DeviceScalar>(device: &Device, a: &Csr<T>, wanted: &DevicePreconditioner, factor: f64) {
    let n = a.nrows();
    let (mut host, mut m) = (on_host(a, wanted).unwrap(), DeviceInverse::new(device, a, wanted).unwrap());
    let what = format!("{wanted:?}, n = {n}, {}", T::SUFFIX);
    // Twice: what an application leaves behind does not disturb the next.
    for seed in [7, 8] {
        let r = Numbers(n as u64 + seed).vector::<T>(n);
        let mut expected = vec![T::default(); n];
        host.apply(&r, &mut expected);
        let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
        assert_close(&what, &applied(device, &mut m, &r), &expected, &vec![largest; n], factor);
    }
}

fn both(device: &Device, a: &Csr<f64>, wanted: &DevicePreconditioner, factor: f64) {
    agrees::<f64>(device, a, wanted, factor);
    let single = a.values().iter().map(|&v| v as f32).collect();
    let single = Csr::new(a.nrows(), a.ncols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), single).unwrap();
    agrees::<f32>(device, &single, wanted, factor);
}

/// Symmetric, with random entries and a diagonal that dominates.
fn random(n: usize) -> Csr<f64> {
    csr(n, |i, j| {
        let (low, high) = (i.min(j) as u64, i.max(j) as u64);
        let mut numbers = Numbers(low * 1000 + high);
        let kept = numbers.below(n.max(8)) < 4;
        if i == j {
            4.0 + (i % 5) as f64
        } else if kept {
            0.3 * numbers.real::<f64>()
        } else {
            0.0
        }
    })
}

fn symmetric() -> Vec<DevicePreconditioner> {
    let approximate = |series, triangles| DevicePreconditioner::SsorAi { omega: 1.1, series, triangles };
    let mut all = vec![DevicePreconditioner::SsorAiMasked { omega: 1.1 }, DevicePreconditioner::Jacobi];
    for triangles in [Triangles::Stored, Triangles::OfMatrix] {
        for series in [Series::First, Series::Second, Series::IncompletePoisson] {
            all.push(approximate(series, triangles));
        }
    }
    all.extend([0, 1, 2, 5].map(|sweeps| DevicePreconditioner::Ilu0(TriangularSolves::Sweeps(sweeps))));
    all
}

#[test]
fn applications_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for n in [1, 2, 33, 130] {
        for wanted in symmetric() {
            both(&device, &random(n), &wanted, 40.0);
        }
    }
    for n in [1, 2, 31, 32, 33, 255, 256, 257] {
        for (wanted, factor) in [(ILU0, 40.0), (IC0, 40.0), (DevicePreconditioner::Identity, 0.0)] {
            both(&device, &random(n), &wanted, factor);
        }
    }
    for wanted in symmetric() {
        both(&device, &long_rows(45, 9, -1.0, -1.0), &wanted, 40.0);
        both(&device, &long_rows(90, 80, -1.0, -1.0), &wanted, 100.0);
    }
}

#[test]
fn blocks_of_nodes_are_those_of_the_host() {
    let Some(device) = device() else { return };
    for block_size in 1..=6 {
        let wanted = DevicePreconditioner::BlockSsorAi { omega: 1.2, block_size };
        for n in [block_size, 60, 300] {
            both(&device, &random(n), &wanted, 40.0);
        }
    }
    let of = |block_size| DevicePreconditioner::BlockSsorAi { omega: 1.0, block_size };
    let indefinite = csr::<f64>(4, |i, j| if i == j { 1.0 } else { f64::from(i / 2 == j / 2) * 3.0 });
    for (a, wanted) in [(&indefinite, of(2)), (&indefinite, of(3)), (&stencil(4, 0.2), of(2))] {
        assert_eq!(error(&device, a, &wanted).to_string(), on_host(a, &wanted).err().unwrap().to_string());
    }
}

#[test]
fn lanes_share_long_rows_and_many_blocks_wait_for_each_other() {
    let Some(device) = device() else { return };
    for (n, reach) in [(33, 9), (70, 9), (90, 80), (100, 90)] {
        both(&device, &long_rows(n, reach, -1.0, -1.0), &ILU0, 100.0);
        // 1 / the diagonal of U.
        both(&device, &long_rows(n, reach, -1.0, -1.0), &DevicePreconditioner::Ilu0(TriangularSolves::Sweeps(0)), 40.0);
    }
    agrees::<f64>(&device, &long_rows(70, 9, -1.0, -1.0), &IC0, 100.0);
    // More blocks than run at a time, and rows that wait for the one before throughout.
    agrees::<f64>(&device, &stencil(40, 0.0), &ILU0, 100.0);
    let chain = csr(300, |i, j| [2.5, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    agrees::<f64>(&device, &chain, &ILU0, 40.0);
}

#[test]
fn missing_diagonals_and_small_pivots_are_as_on_the_host() {
    let Some(device) = device() else { return };
    let n = 40;
    let mut numbers = Numbers(5);
    let a = csr::<f64>(n, |i, j| match i.abs_diff(j) {
        // Every fifth row without a diagonal entry.
        0 if i % 5 == 0 => 0.0,
        0 => 3.0,
        // Rows 6 and 12 alone with a pivot that elimination makes small.
        _ if numbers.below(6) == 0 => numbers.real(),
        _ => 0.0,
    });
    let cases = [
        a,
        csr(3, |i, j| if i == j { [0.0, -1e-14, 2.0][i] } else { f64::from(j == 2) }),
        csr(2, |i, j| f64::from(j == 1 && i == 0)),
        csr(4, |_, _| 1.0),
    ];
    for a in cases {
        let host = ilu0(&a, DroppedFill::Forgotten).unwrap();
        let m = DeviceInverse::new(&device, &a, &ILU0).unwrap();
        assert!(host.replaced_pivots() > 0);
        assert_eq!(m.facts().replaced_pivots, host.replaced_pivots());
        assert_eq!(m.facts().levels, Some(host.levels()));
        assert_eq!(m.facts().nnz, bt_iter::Preconditioner::nnz(&host));
        agrees(&device, &a, &ILU0, if a.nrows() == n { 1e3 } else { 40.0 });
    }
}

#[test]
fn incomplete_cholesky_takes_the_shift_of_the_host() {
    let Some(device) = device() else { return };
    // D. S. Kershaw, J. Comput. Phys. 26 (1978), doi:10.1016/0021-9991(78)90098-0: definite, and its third pivot is not positive.
    let kershaw =
        faer::mat![[3.0, -2.0, 0.0, 2.0], [-2.0, 3.0, -2.0, 0.0], [0.0, -2.0, 3.0, -2.0], [2.0, 0.0, -2.0, 3.0]];
    let a = Csr::from_dense(kershaw.as_ref()).unwrap();
    let (host, m) = (ic0(&a, DroppedFill::Forgotten).unwrap(), DeviceInverse::new(&device, &a, &IC0).unwrap());
    assert!(host.breakdowns > 0);
    assert_eq!((m.facts().breakdowns, m.facts().shift), (host.breakdowns, host.shift));
    agrees(&device, &a, &IC0, 40.0);
    // Not definite: no shift helps.
    let a = csr::<f64>(2, |i, j| if i == j { 1.0 } else { 40.0 });
    let (ours, theirs) = (error(&device, &a, &IC0), ic0(&a, DroppedFill::Forgotten).err().unwrap());
    assert_eq!(ours.to_string(), theirs.to_string());
}

#[test]
fn new_values_take_the_old_pattern() {
    let Some(device) = device() else { return };
    let (a, n) = (random(60), 60);
    let scaled = csr(n, |i, j| a.get(i, j) * (1.0 + 0.01 * (i + j) as f64));
    let fewer = csr(n, |i, j| if i.abs_diff(j) < 20 { a.get(i, j) } else { 0.0 });
    let r = Numbers(8).vector::<f64>(n);
    for solves in [TriangularSolves::Levels, TriangularSolves::Sweeps(2)] {
        for wanted in [DevicePreconditioner::Ilu0(solves), DevicePreconditioner::Ic0(solves)] {
            let mut m = DeviceInverse::new(&device, &a, &wanted).unwrap();
            let mut host = ilu0(&a, DroppedFill::Forgotten).unwrap().solved_by(solves);
            for new in [&scaled, &fewer, &a] {
                m.refactor(new).unwrap();
                host.refactor(new).unwrap();
                let mut expected = vec![0.0; n];
                bt_iter::Preconditioner::apply(&mut host, &r, &mut expected);
                assert_close("refactored", &applied(&device, &mut m, &r), &expected, &vec![1.0; n], 40.0);
            }
            // A failure leaves NaN, and the next success all as it should be.
            let before = applied(&device, &mut m, &r);
            let wider = csr(n, |i, j| a.get(i, j) + f64::from(i + j == n - 1));
            assert!(m.refactor(&wider).unwrap_err().to_string().contains("outside the pattern"));
            assert!(applied(&device, &mut m, &r).iter().all(|v| v.is_nan()));
            assert!(m.refactor(&random(59)).is_err());
            m.refactor(&a).unwrap();
            assert_eq!(applied(&device, &mut m, &r), before);
        }
    }
    // The others are made anew.
    let mut m = DeviceInverse::new(&device, &a, &DevicePreconditioner::Jacobi).unwrap();
    assert!(m.refactor(&random(59)).is_err());
    m.refactor(&scaled).unwrap();
    assert_eq!(applied(&device, &mut m, &r)[1], r[1] * (1.0 / scaled.get(1, 1)));
}

#[test]
fn blocks_of_any_kind_are_solved() {
    let Some(device) = device() else { return };
    let of = |sizes: &[usize]| DevicePreconditioner::BlockJacobi(Partition::from_sizes(sizes.iter().copied()).unwrap());
    let band = |n, width: usize| {
        csr(n, |i, j| match i.abs_diff(j) {
            0 => 3.0,
            d if d <= width => 0.4,
            _ => 0.0,
        })
    };
    // Tridiagonal: groups of blocks, blocks of one row, a block a group, the largest there is.
    for sizes in [&[1][..], &[1; 40], &[2, 31, 1, 32, 33, 7], &[17; 32], &[255, 257, 2], &[1024]] {
        both(&device, &band(sizes.iter().sum(), 1), &of(sizes), 40.0);
    }
    // Dense, and tridiagonal but too large.
    for sizes in [&[1, 2, 5, 33, 4][..], &[60]] {
        both(&device, &band(sizes.iter().sum(), 3), &of(sizes), 40.0);
    }
    agrees(&device, &band(1030, 1), &of(&[1025, 5]), 40.0);
    // Interchanges: the host's inverse.
    let swap = csr::<f64>(4, |i, j| f64::from(i / 2 == j / 2 && i != j));
    agrees(&device, &swap, &of(&[2, 2]), 4.0);
    let singular = csr::<f64>(4, |i, j| f64::from(i / 2 == j / 2));
    assert!(error(&device, &singular, &of(&[2, 2])).to_string().contains("singular"));
    assert!(matches!(error(&device, &swap, &of(&[2, 1])), DeviceError::Input(_)));
}

fn error<T: DeviceScalar>(device: &Device, a: &Csr<T>, wanted: &DevicePreconditioner) -> DeviceError {
    DeviceInverse::new(device, a, wanted).err().unwrap()
}

#[test]
fn errors_are_those_of_the_host() {
    let Some(device) = device() else { return };
    let approximate =
        |omega| DevicePreconditioner::SsorAi { omega, series: Series::First, triangles: Triangles::OfMatrix };
    let unsymmetric = stencil::<f64>(3, 0.2);
    let negative = csr::<f64>(3, |i, j| if i == j { [1.0, -2.0, 3.0][i] } else { 0.0 });
    let infinite = csr::<f64>(2, |i, j| if i == j { f64::INFINITY } else { 0.0 });
    let overflowing = csr::<f32>(3, |i, j| if i == j { 1e-39 } else { 0.0 });
    for wanted in [approximate(1.1), DevicePreconditioner::SsorAiMasked { omega: 1.1 }, IC0] {
        for a in [&unsymmetric, &negative, &infinite] {
            let theirs = on_host(a, &wanted).err().unwrap();
            assert_eq!(error(&device, a, &wanted).to_string(), theirs.to_string());
        }
    }
    for (a, wanted) in [(&infinite, ILU0), (&stencil(3, 0.0), approximate(2.0))] {
        assert_eq!(error(&device, a, &wanted).to_string(), on_host(a, &wanted).err().unwrap().to_string());
    }
    let theirs = on_host(&overflowing, &ILU0).err().unwrap();
    assert_eq!(error(&device, &overflowing, &ILU0).to_string(), theirs.to_string());
    let wide = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert!(matches!(error(&device, &wide, &ILU0), DeviceError::Input(_)));
    let mut m = DeviceInverse::new(&device, &stencil::<f64>(3, 0.0), &ILU0).unwrap();
    let (short, mut z) = (DeviceVec::zeros(&device, 8).unwrap(), DeviceVec::zeros(&device, 9).unwrap());
    assert!(m.apply(&short, &mut z).is_err() && epsilon::<f64>() < 1e-15);
}

#[test]
fn bytes_and_launches_are_as_documented() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(10, 0.0);
    let (n, z, s) = (100, 460 - 100, 8);
    let of = |wanted: &DevicePreconditioner| {
        let m = DeviceInverse::new(&device, &a, wanted).unwrap();
        (m.bytes(), m.facts().launches)
    };
    let ssor = |series, triangles| DevicePreconditioner::SsorAi { omega: 1.0, series, triangles };
    assert_eq!(of(&DevicePreconditioner::Jacobi), (s * n, 0));
    assert_eq!(of(&ssor(Series::First, Triangles::Stored)), ((s + 4) * z + 8 * (n + 1) + 2 * s * n, 2));
    assert_eq!(of(&ssor(Series::Second, Triangles::OfMatrix)), (4 * n + 3 * s * n, 4));
    assert_eq!(of(&DevicePreconditioner::SsorAiMasked { omega: 1.0 }), ((s + 4) * (z + n) + 4 * (n + 1), 1));
    // N, Nᴴ, D̄⁻¹ and two vectors: 50 blocks of two on the diagonal, 80 beside and 90 above and below them.
    let blocks = (4 * s + 4) * (50 + 170) + 3 * 4 * 51 + 2 * s * n;
    assert_eq!(of(&DevicePreconditioner::BlockSsorAi { omega: 1.0, block_size: 2 }), (blocks, 5));
    // Pattern, diagonal, order; A, the factors and their reciprocals; a word of status each.
    let factored = 4 * (z + n) + 4 * (n + 1) + 8 * n + 2 * s * (z + n) + s * n + 16;
    let levels = (8 + s) * z + 8 * (n + 1) + 12 * n + 3 * s * n + 8;
    assert_eq!(of(&ILU0), (factored + levels, 2));
    assert_eq!(of(&DevicePreconditioner::Ic0(TriangularSolves::Sweeps(3))), (factored + 2 * s * n, 7));
    let lines = DevicePreconditioner::BlockJacobi(Partition::uniform(n, 10).unwrap());
    assert_eq!(of(&lines), (3 * s * n + 4 * 2, 1));
    let one = DevicePreconditioner::BlockJacobi(Partition::uniform(n, n).unwrap());
    assert!(of(&one).1 == 1 && of(&one).0 >= s * n * n / 2);
}
