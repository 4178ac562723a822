//! Batches against the factorizations of single systems: bits, layouts, threads, verdicts, extreme scales.

use bt_direct::batch::{BatchLu, Layout, Pivoting, SystemStatus, TridiagonalBatch};
use bt_direct::{FactorError, Factorization, Thomas, TridiagonalLu};
use bt_formats::{Op, Par, RealScalar, Scalar, Tridiagonal, c32, c64, certify};
use faer::{Mat, MatMut};
use proptest::prelude::*;

use crate::common::{OPS, Random};

/// m systems of the given sizes; those not dominant need exchanges.
fn systems<T: Scalar>(sizes: &[usize], dominance: f64, seed: u64) -> Vec<Tridiagonal<T>> {
    let mut r = Random::new(seed);
    let mut system = |n: usize| {
        let (mut lower, mut upper): (Vec<T>, Vec<T>) = (0..n).map(|_| (r.scalar::<T>(), r.scalar::<T>())).unzip();
        if n > 0 {
            (lower[0], upper[n - 1]) = (T::default(), T::default());
        }
        let diag = (0..n).map(|_| r.scalar::<T>() + T::rounded(dominance, 0.0)).collect();
        Tridiagonal::new(lower, diag, upper).unwrap()
    };
    sizes.iter().map(|&n| system(n)).collect()
}

fn random<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
    let mut r = Random::new(seed);
    (0..n).map(|_| r.scalar()).collect()
}

/// From one system after another to interleaved.
fn interleave<T: Scalar>(n: usize, x: &[T]) -> Vec<T> {
    let m = x.len() / n.max(1);
    (0..x.len()).map(|at| x[(at % m) * n + at / m]).collect()
}

fn interleaved<T: Scalar>(a: &TridiagonalBatch<T>) -> TridiagonalBatch<T> {
    let n = a.size(0);
    let (l, d, u) = a.parts();
    TridiagonalBatch::new(Layout::Interleaved, n, interleave(n, l), interleave(n, d), interleave(n, u)).unwrap()
}

fn bits<T: Scalar>(x: &[T]) -> Vec<(u64, u64)> {
    x.iter().map(|v| (v.re().to_f64().to_bits(), v.im().to_f64().to_bits())).collect()
}

fn backward_error<T: Scalar>(a: &Tridiagonal<T>, op: Op, x: &[T], b: &[T]) -> f64 {
    let column = |v: &[T]| Mat::from_fn(v.len(), 1, |i, _| v[i]);
    certify(a, op, column(x).as_ref(), column(b).as_ref()).backward_error
}

/// The same bits from every layout and pool, and backward errors at rounding level.
fn check_solve<T: Scalar>(sizes: &[usize], pivoting: Pivoting, seed: u64) {
    let dominance = if pivoting == Pivoting::None { 4.5 } else { 0.0 };
    let list = systems::<T>(sizes, dominance, seed);
    let a = TridiagonalBatch::from_systems(&list).unwrap();
    let b = random::<T>(a.n_rows(), seed + 1);
    let mut x = b.clone();
    assert!(a.solve_with(&mut x, pivoting, Par::Seq).unwrap().all_solved());
    let u = T::Real::EPSILON.to_f64() / 2.0;
    let mut start = 0;
    for (s, system) in list.iter().enumerate() {
        let at = start..start + a.size(s);
        start = at.end;
        let error = backward_error(system, Op::Identity, &x[at.clone()], &b[at]);
        assert!(error <= 16.0 * u, "system {s}: backward error {error:e}");
    }
    let mut again = b.clone();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert!(pool.install(|| a.solve_with(&mut again, pivoting, Par::Rayon)).unwrap().all_solved());
    assert_eq!(bits(&again), bits(&x));
    // Alone, a system has the bits it has in company.
    for (s, system) in list.iter().enumerate().step_by(7) {
        let start: usize = sizes[..s].iter().sum();
        let mut alone = b[start..start + sizes[s]].to_vec();
        let one = TridiagonalBatch::from_systems(std::slice::from_ref(system)).unwrap();
        assert!(one.solve_in_place(&mut alone, pivoting).unwrap().all_solved());
        assert_eq!(bits(&alone), bits(&x[start..start + sizes[s]]));
        assert_eq!(a.system(s).unwrap(), *system);
    }
}

fn check_layouts<T: Scalar>(n: usize, m: usize, pivoting: Pivoting, seed: u64) {
    let dominance = if pivoting == Pivoting::None { 4.5 } else { 0.0 };
    let list = systems::<T>(&vec![n; m], dominance, seed);
    let sized = TridiagonalBatch::from_systems(&list).unwrap();
    let (l, d, u) = sized.parts();
    let a = TridiagonalBatch::new(Layout::Strided, n, l.to_vec(), d.to_vec(), u.to_vec()).unwrap();
    let b = random::<T>(n * m, seed + 1);
    let solve = |a: &TridiagonalBatch<T>, mut x: Vec<T>| {
        assert!(a.solve_in_place(&mut x, pivoting).unwrap().all_solved());
        x
    };
    let x = solve(&a, b.clone());
    assert_eq!(bits(&solve(&sized, b.clone())), bits(&x));
    assert_eq!(bits(&solve(&interleaved(&a), interleave(n, &b))), bits(&interleave(n, &x)));
}

/// Factors have the bits of the factorizations of single systems, in all layouts, for A, Aᵀ and Aᴴ.
fn check_factors<T: Scalar>(sizes: &[usize], pivoting: Pivoting, seed: u64) {
    let dominance = if pivoting == Pivoting::None { 4.5 } else { 0.0 };
    let first = systems::<T>(sizes, dominance, seed + 9);
    let list = systems::<T>(sizes, dominance, seed);
    let mut lu = BatchLu::with_options(&TridiagonalBatch::from_systems(&first).unwrap(), pivoting).unwrap();
    let a = TridiagonalBatch::from_systems(&list).unwrap();
    lu.refactor(&a).unwrap();
    assert!(lu.verdict().all_solved());
    let b = random::<T>(a.n_rows(), seed + 1);
    for op in OPS {
        let mut x = b.clone();
        lu.solve_with(op, &mut x, Layout::Strided, Par::Seq).unwrap();
        let mut parallel = b.clone();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| lu.solve_with(op, &mut parallel, Layout::Strided, Par::Rayon)).unwrap();
        assert_eq!(bits(&parallel), bits(&x));
        // One after the other, apart by different distances, the first ones at once.
        for gap in [0, 1, 5] {
            let mut end = 0;
            let rows: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(s, n)| {
                    let start = end + if gap == 0 { 0 } else { (gap + s) % 6 };
                    end = start + n;
                    start..end
                })
                .collect();
            let places = lu.places(rows.clone()).unwrap();
            let elsewhere = random::<T>(end + gap, seed + 2);
            let mut expected = elsewhere.clone();
            let mut rest = &x[..];
            for rows in rows {
                expected[rows.clone()].copy_from_slice(rest.split_off(..rows.len()).unwrap());
            }
            let mut apart = elsewhere.clone();
            lu.solve_into(op, &b, &places, &mut apart, Par::Seq).unwrap();
            assert_eq!(bits(&apart), bits(&expected));
            let mut apart = elsewhere;
            pool.install(|| lu.solve_into(op, &b, &places, &mut apart, Par::Rayon)).unwrap();
            assert_eq!(bits(&apart), bits(&expected));
        }
        let mut start = 0;
        for (s, system) in list.iter().enumerate() {
            let at = start..start + sizes[s];
            start = at.end;
            let mut alone = b[at.clone()].to_vec();
            let single: Box<dyn Factorization<T>> = match pivoting {
                Pivoting::None => Box::new(Thomas::new(system).unwrap()),
                Pivoting::Partial => Box::new(TridiagonalLu::new(system).unwrap()),
            };
            single.solve_op_in_place(op, MatMut::from_column_major_slice_mut(&mut alone, sizes[s], 1));
            let u = T::Real::EPSILON.to_f64() / 2.0;
            let error = backward_error(system, op, &x[at.clone()], &b[at.clone()]);
            assert!(error <= 16.0 * u, "{op:?}, system {s}: backward error {error:e}");
            let (det, expected) = (lu.log_det(s), single.log_det());
            assert!((det.log_abs - expected.log_abs).abs() <= 1e4 * u * (1.0 + expected.log_abs.abs()));
            assert!((det.sign - expected.sign).abs().to_f64() <= 1e2 * u * (1 + sizes[s]) as f64);
        }
        if sizes.iter().all(|n| *n == sizes[0]) {
            let equal = interleaved(&a);
            let lu = BatchLu::with_options(&equal, pivoting).unwrap();
            let mut y = interleave(sizes[0], &b);
            lu.solve_op_in_place(op, &mut y, Layout::Interleaved).unwrap();
            assert_eq!(bits(&y), bits(&interleave(sizes[0], &x)));
            let mut y = b.clone();
            lu.solve_op_in_place(op, &mut y, Layout::Strided).unwrap();
            assert_eq!(bits(&y), bits(&x));
        }
    }
}

fn check_all<T: Scalar>(sizes: &[usize], n: usize, m: usize, seed: u64) {
    for pivoting in [Pivoting::None, Pivoting::Partial] {
        check_solve::<T>(sizes, pivoting, seed);
        check_layouts::<T>(n, m, pivoting, seed);
        check_factors::<T>(sizes, pivoting, seed);
        check_factors::<T>(&vec![n; m], pivoting, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn batches_f64(sizes in prop::collection::vec(0usize..40, 1..40), n in 1usize..70, m in 1usize..40, seed: u32) {
        check_all::<f64>(&sizes, n, m, seed.into());
    }
    #[test]
    fn batches_f32(sizes in prop::collection::vec(0usize..40, 1..40), n in 1usize..40, m in 1usize..40, seed: u32) {
        check_all::<f32>(&sizes, n, m, seed.into());
    }
    #[test]
    fn batches_c64(sizes in prop::collection::vec(0usize..20, 1..20), n in 1usize..30, m in 1usize..20, seed: u32) {
        check_all::<c64>(&sizes, n, m, seed.into());
    }
    #[test]
    fn batches_c32(sizes in prop::collection::vec(0usize..20, 1..20), n in 1usize..30, m in 1usize..20, seed: u32) {
        check_all::<c32>(&sizes, n, m, seed.into());
    }
}

#[test]
fn sizes_around_lanes_and_tiles() {
    for n in [1, 2, 7, 8, 9, 15, 16, 17] {
        for m in [1, 7, 8, 15, 16, 17, 33] {
            check_all::<f64>(&vec![n; m], n, m, (31 * n + m) as u64);
        }
    }
}

/// A batch of dominant systems with the given ones in its midst.
fn among<T: Scalar>(special: &[Tridiagonal<T>]) -> Vec<Tridiagonal<T>> {
    let mut list = systems::<T>(&[12; 20], 4.5, 5);
    for (k, a) in special.iter().enumerate() {
        list.insert(3 + 5 * k, a.clone());
    }
    list
}

/// Every system has its own verdict, those that fail NaN, and the others the bits they have without them.
#[test]
fn one_bad_system_harms_no_other() {
    let matrix = |l: &[f64], d: &[f64], u: &[f64]| Tridiagonal::new(l.to_vec(), d.to_vec(), u.to_vec()).unwrap();
    let singular = matrix(&[0.0, 1.0, 0.0], &[1.0, 1.0, 0.0], &[1.0, 0.0, 0.0]);
    let exchange = matrix(&[0.0, 1.0, 1.0], &[0.0, 1.0, 3.0], &[1.0, 1.0, 0.0]);
    let growing = matrix(&[0.0, 1.0, 1.0], &[1e-12, 1.0, 5.0], &[1.0, 1.0, 0.0]);
    let nan = matrix(&[0.0, 1.0, f64::NAN], &[4.0; 3], &[1.0, 1.0, 0.0]);
    let infinite = matrix(&[0.0, 1.0, 1.0], &[4.0, f64::INFINITY, 4.0], &[1.0, 1.0, 0.0]);
    let special = [singular, exchange, growing, nan, infinite];
    let places = [3, 8, 13, 18, 23];
    let list = among(&special);
    let a = TridiagonalBatch::from_systems(&list).unwrap();
    let b = random::<f64>(a.n_rows(), 77);
    let breakdown = |row| SystemStatus::Breakdown { row };
    let not_finite = |row| SystemStatus::NotFinite { row };
    for (pivoting, expected) in [
        (Pivoting::None, [breakdown(1), breakdown(0), breakdown(1), not_finite(2), not_finite(1)]),
        (
            Pivoting::Partial,
            [
                SystemStatus::Singular { column: 1 },
                SystemStatus::Solved,
                SystemStatus::Solved,
                not_finite(2),
                not_finite(1),
            ],
        ),
    ] {
        let mut x = b.clone();
        let verdict = a.solve_in_place(&mut x, pivoting).unwrap();
        let lu = BatchLu::with_options(&a, pivoting).unwrap();
        assert_eq!(*lu.verdict(), verdict);
        let mut y = b.clone();
        lu.solve_in_place(&mut y, Layout::Strided).unwrap();
        for (k, &place) in places.iter().enumerate() {
            assert_eq!(verdict.status(place), expected[k], "{pivoting:?}, system {place}");
        }
        assert!(verdict.failures().iter().all(|f| places.contains(&f.system)));
        let mut start = 0;
        for (s, system) in list.iter().enumerate() {
            let at = start..start + a.size(s);
            start = at.end;
            for x in [&x, &y] {
                if verdict.status(s) == SystemStatus::Solved {
                    assert!(backward_error(system, Op::Identity, &x[at.clone()], &b[at.clone()]) <= 1e-15);
                } else {
                    assert!(x[at.clone()].iter().all(|v| v.is_nan()), "system {s}: {:?}", &x[at.clone()]);
                }
            }
        }
    }
    // Neighbours of a failure, by bits.
    let fine = TridiagonalBatch::from_systems(&systems::<f64>(&[12; 20], 4.5, 5)).unwrap();
    let mut x = b[..36].to_vec();
    x.extend_from_slice(&b[39..39 + 12]);
    let mut with = b.clone();
    let _ = a.solve_in_place(&mut with, Pivoting::Partial).unwrap();
    x.resize(fine.n_rows(), 0.0);
    assert!(fine.solve_in_place(&mut x, Pivoting::Partial).unwrap().all_solved());
    assert_eq!(bits(&x[..36]), bits(&with[..36]));
    assert_eq!(bits(&x[36..48]), bits(&with[39..51]));
    // A refactorisation with good matrices clears the verdict.
    let mut lu = BatchLu::new(&a).unwrap();
    let good: Vec<_> = list.iter().map(|a| systems::<f64>(&[a.diag().len()], 4.5, 3).remove(0)).collect();
    lu.refactor(&TridiagonalBatch::from_systems(&good).unwrap()).unwrap();
    assert!(lu.verdict().all_solved());
    let mut x = b;
    lu.solve_in_place(&mut x, Layout::Strided).unwrap();
    assert!(x.iter().all(|v| v.is_finite()));
}

/// Entries near the ends of the range, where reciprocals or products of two entries leave it.
#[test]
fn extreme_scales() {
    for scale in [1e-310, 1e-305, 1e-300, 1e-200, 1e200, 1e300, 1e307] {
        let list: Vec<_> = systems::<f64>(&[9, 12, 4], 4.5, 8)
            .into_iter()
            .map(|a| {
                let (l, d, u) = a.into_parts();
                let scaled = |v: Vec<f64>| v.into_iter().map(|v| v * scale).collect();
                Tridiagonal::new(scaled(l), scaled(d), scaled(u)).unwrap()
            })
            .collect();
        let a = TridiagonalBatch::from_systems(&list).unwrap();
        let x_true = random::<f64>(a.n_rows(), 4);
        // The right-hand side of the scaled matrix, formed row by row.
        let mut b = Vec::new();
        for (s, system) in list.iter().enumerate() {
            let start: usize = (0..s).map(|t| a.size(t)).sum();
            let mut y = vec![0.0; a.size(s)];
            bt_formats::LinearOperator::apply(system, 1.0, &x_true[start..start + a.size(s)], 0.0, &mut y);
            b.extend(y);
        }
        for pivoting in [Pivoting::None, Pivoting::Partial] {
            let mut x = b.clone();
            assert!(a.solve_in_place(&mut x, pivoting).unwrap().all_solved(), "{scale:e}, {pivoting:?}");
            let mut y = b.clone();
            let lu = BatchLu::with_options(&a, pivoting).unwrap();
            assert!(lu.verdict().all_solved());
            lu.solve_in_place(&mut y, Layout::Strided).unwrap();
            // Subnormal entries carry fewer digits: 1e-310 has 2⁻⁵³·(2.2e-308/1e-310) relative.
            let tolerance = if scale < 1e-307 { 1e-12 } else { 1e-14 };
            for (x, y) in x.iter().zip(&y).zip(&x_true).flat_map(|((x, y), t)| [(x, t), (y, t)]) {
                assert!((x - y).abs() <= tolerance, "{scale:e}, {pivoting:?}: {x} instead of {y}");
            }
        }
    }
}

/// The suite of ill-conditioned matrices, all in one batch: the pivoted elimination reaches rounding level or names the
/// column LAPACK names; the one without pivoting keeps half the digits or refuses, as `Thomas` does.
#[test]
fn shared_suite() {
    let Some(folder) = crate::common::data("tridiag") else { return };
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let (mut names, mut list, mut rhs, mut columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for line in index.lines().skip(1) {
        let fields = crate::common::csv_fields(line);
        let a = Tridiagonal::from_csr(&crate::common::read_matrix(&folder.join(format!("{}.mtx", fields[0])))).unwrap();
        let n = a.diag().len();
        columns.push((!fields[4].is_empty()).then(|| match fields[4].rsplit_once("info=") {
            Some((_, info)) => info.trim().parse::<usize>().unwrap() - 1,
            None => n - 1,
        }));
        let b = folder.join(format!("{}_b.mtx", fields[0]));
        rhs.push(if columns[list.len()].is_none() { crate::common::read_vector(&b) } else { vec![1.0; n] });
        names.push(fields[0].clone());
        list.push(a);
    }
    let a = TridiagonalBatch::from_systems(&list).unwrap();
    let b = rhs.concat();
    for pivoting in [Pivoting::None, Pivoting::Partial] {
        let (mut once, mut kept) = (b.clone(), b.clone());
        let verdict = a.solve_in_place(&mut once, pivoting).unwrap();
        let lu = BatchLu::with_options(&a, pivoting).unwrap();
        lu.solve_in_place(&mut kept, Layout::Strided).unwrap();
        assert_eq!(*lu.verdict(), verdict);
        let mut start = 0;
        for (s, system) in list.iter().enumerate() {
            let at = start..start + a.size(s);
            start = at.end;
            let status = verdict.status(s);
            match (pivoting, columns[s]) {
                (Pivoting::Partial, Some(column)) => {
                    assert_eq!(status, SystemStatus::Singular { column }, "{}", names[s]);
                }
                (Pivoting::None, _) => {
                    assert_eq!(status == SystemStatus::Solved, Thomas::new(system).is_ok(), "{}: {status}", names[s]);
                }
                (Pivoting::Partial, None) => assert_eq!(status, SystemStatus::Solved, "{}", names[s]),
            }
            if status == SystemStatus::Solved {
                let limit = if pivoting == Pivoting::None { 2f64.powi(-26) } else { 1e-15 };
                for x in [&once, &kept] {
                    let error = backward_error(system, Op::Identity, &x[at.clone()], &b[at.clone()]);
                    assert!(error <= limit, "{}, {pivoting:?}: backward error {error:e}", names[s]);
                }
            }
        }
    }
}

/// Some 80 000 rows, enough for two tasks.
#[test]
fn many_systems_apart() {
    for least in [20, 64] {
        let sizes: Vec<usize> = (0..80_000 / (least + 3)).map(|s| least + (s % 3) * (s % 7)).collect();
        check_factors::<f64>(&sizes, Pivoting::None, 1);
        check_factors::<f32>(&sizes, Pivoting::Partial, 2);
    }
}

#[test]
fn places_are_checked() {
    let a = TridiagonalBatch::from_systems(&systems::<f64>(&[2, 3], 4.5, 1)).unwrap();
    let lu = BatchLu::with_options(&a, Pivoting::None).unwrap();
    let why = |rows: &[(usize, usize)]| lu.places(rows.iter().map(|&(i, j)| i..j)).unwrap_err().to_string();
    assert!(why(&[(0, 2)]).contains("systems of the batch"));
    assert!(why(&[(0, 2), (2, 4)]).contains("rows of a system"));
    assert!(why(&[(1, 3), (2, 5)]).contains("system 1 begins in row 2, before row 3"));
    let places = lu.places([1..3, 4..7]).unwrap();
    let solve = |b: &[f64], x: &mut [f64]| lu.solve_into(Op::Identity, b, &places, x, Par::Seq);
    assert!(solve(&[1.0; 4], &mut [0.0; 7]).is_err());
    assert!(solve(&[1.0; 5], &mut [0.0; 6]).is_err());
    assert!(solve(&[1.0; 5], &mut [0.0; 7]).is_ok());
    // Of other systems.
    let other = BatchLu::with_options(
        &TridiagonalBatch::from_systems(&systems::<f64>(&[3, 2], 4.5, 1)).unwrap(),
        Pivoting::None,
    )
    .unwrap();
    assert!(other.solve_into(Op::Identity, &[1.0; 5], &places, &mut [0.0; 7], Par::Seq).is_err());
    // A system that failed has NaN for pivots, the others theirs.
    let a = TridiagonalBatch::with_sizes(&[1, 2], vec![0.0; 3], vec![0.0, 2.0, 3.0], vec![0.0; 3]).unwrap();
    let lu = BatchLu::with_options(&a, Pivoting::None).unwrap();
    assert!(lu.pivots(0).all(f64::is_nan));
    assert_eq!(lu.pivots(1).collect::<Vec<_>>(), [2.0, 3.0]);
}

#[test]
fn sizes_and_padding_are_checked() {
    let zeros = || vec![0.0; 6];
    let input = |outcome: Result<TridiagonalBatch<f64>, FactorError>| matches!(outcome, Err(FactorError::Input(_)));
    assert!(input(TridiagonalBatch::new(Layout::Strided, 4, zeros(), zeros(), zeros())));
    assert!(input(TridiagonalBatch::new(Layout::Strided, 0, zeros(), zeros(), zeros())));
    assert!(input(TridiagonalBatch::new(Layout::Strided, 3, vec![0.0; 5], zeros(), zeros())));
    assert!(input(TridiagonalBatch::with_sizes(&[2, 3], zeros(), zeros(), zeros())));
    assert!(input(TridiagonalBatch::with_sizes(&[usize::MAX, 2], zeros(), zeros(), zeros())));
    let mut padding = zeros();
    padding[3] = 1.0;
    assert!(input(TridiagonalBatch::new(Layout::Strided, 3, padding.clone(), vec![1.0; 6], zeros())));
    // Interleaved, place 3 is row 1 of system 1.
    let mut a = TridiagonalBatch::new(Layout::Interleaved, 3, padding, vec![1.0; 6], zeros()).unwrap();
    assert!(a.update(|_, _, upper| upper[4] = 1.0).is_err());
    assert!(a.update(|_, _, upper| upper[4] = 0.0).is_ok());
    assert!(a.solve_in_place(&mut [1.0; 5], Pivoting::None).is_err());
    let mut lu = BatchLu::with_options(&a, Pivoting::None).unwrap();
    assert!(lu.solve_in_place(&mut [1.0; 7], Layout::Strided).is_err());
    let sized = TridiagonalBatch::with_sizes(&[2, 4], zeros(), vec![1.0; 6], zeros()).unwrap();
    assert!(lu.refactor(&sized).is_err());
    let lu = BatchLu::with_options(&sized, Pivoting::None).unwrap();
    assert!(lu.solve_in_place(&mut [1.0; 6], Layout::Interleaved).is_err());
    // No systems, and systems of no rows.
    let none = TridiagonalBatch::<f64>::new(Layout::Strided, 3, vec![], vec![], vec![]).unwrap();
    assert!(none.solve_in_place(&mut [], Pivoting::Partial).unwrap().all_solved());
    let empty = TridiagonalBatch::<f64>::with_sizes(&[0, 0], vec![], vec![], vec![]).unwrap();
    assert!(empty.solve_in_place(&mut [], Pivoting::Partial).unwrap().all_solved());
    assert_eq!(BatchLu::new(&empty).unwrap().log_det(1).log_abs, 0.0);
}
