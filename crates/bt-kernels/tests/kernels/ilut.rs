//! ILUT by a search of its pattern on the device: the same search row by row on the host, elimination where nothing is dropped, and the
//! steps of Krylov methods beside those with ILUT of the host.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Numbers, assert_close, device};
use bt_formats::{Csr, LinearOperator, Outcome, Scalar, StopCriterion, norm2};
use bt_iter::{
    BiCgStab, Cg, DroppedFill, IlutOptions, Preconditioner, TriangularSolves, column_units, ic0, ilu0, ilut,
};
use bt_kernels::{
    Device, DeviceBiCgStab, DeviceCg, DeviceError, DeviceInverse, DevicePreconditioner, DeviceScalar, DeviceVec,
    Schedule,
};
use bt_testkit::{csr, stencil};

/// The largest number of steps of a search.
const STEPS: usize = 20;

fn options(fill: usize, drop_tolerance: f64) -> IlutOptions {
    IlutOptions { fill, drop_tolerance }
}

fn of(options: IlutOptions) -> DevicePreconditioner {
    DevicePreconditioner::Ilut(options, TriangularSolves::Levels)
}

fn applied<T: DeviceScalar>(device: &Device, m: &mut DeviceInverse<T>, r: &[T]) -> Vec<T> {
    let (r, mut z) = (DeviceVec::from_slice(device, r).unwrap(), DeviceVec::zeros(device, r.len()).unwrap());
    m.apply(&r, &mut z).unwrap();
    let mut host = vec![T::default(); r.len()];
    z.copy_to(&mut host).unwrap();
    host
}

/// Unsymmetric, a few entries a row anywhere, no two alike, all of one size.
fn random(n: usize) -> Csr<f64> {
    csr(n, |i, j| {
        let mut numbers = Numbers((i * 1000 + j) as u64);
        let kept = numbers.below(n.max(8)) < 4;
        if i == j {
            4.0 + numbers.real::<f64>()
        } else if kept {
            let v: f64 = numbers.real();
            0.5 * v + 0.5 * v.signum()
        } else {
            0.0
        }
    })
}

type Rows = Vec<BTreeMap<usize, f64>>;

/// a − L·U without the products of the diagonal, for every entry that there is.
fn differences(a: &Csr<f64>, factors: &Rows) -> Rows {
    let row = |i: usize| {
        let (cols, vals) = a.row(i);
        let mut w: BTreeMap<usize, f64> = cols.iter().map(|&j| j as usize).zip(vals.iter().copied()).collect();
        w.entry(i).or_default();
        for (&k, l) in factors[i].range(..i) {
            for (&j, u) in factors[k].range(k + 1..) {
                *w.entry(j).or_default() -= l * u;
            }
        }
        w
    };
    (0..factors.len()).map(row).collect()
}

/// The values of a sweep: wᵢⱼ/uⱼⱼ left of the diagonal.
fn values(differences: Rows, factors: &Rows) -> Rows {
    let of_row = |(i, w): (usize, BTreeMap<usize, f64>)| {
        w.into_iter().map(|(j, w)| (j, if j < i { w / factors[j][&j] } else { w })).collect()
    };
    differences.into_iter().enumerate().map(of_row).collect()
}

/// The search row by row: L and U of its last step.
fn searched(a: &Csr<f64>, IlutOptions { fill, drop_tolerance }: IlutOptions) -> (Rows, usize) {
    let n = a.nrows();
    let units = column_units(a).unwrap_or_else(|| vec![1.0; n]);
    // ‖v‖₂ and ‖v·C‖₂ of the entries of a row
    let norms = |row: &mut dyn Iterator<Item = (usize, f64)>| {
        let (plain, scaled): (Vec<_>, Vec<_>) = row.map(|(j, v)| (v, v * units[j])).unzip();
        [norm2(&plain), norm2(&scaled)]
    };
    let of_rows: Vec<_> = (0..n)
        .map(|i| {
            let (cols, values) = a.row(i);
            norms(&mut cols.iter().map(|&j| j as usize).zip(values.iter().copied()))
        })
        .collect();
    let mut factors: Rows = (0..n).map(|i| BTreeMap::from([(i, a.get(i, i))])).collect();
    for step in 1..=STEPS {
        let reach: Vec<_> =
            factors.iter().enumerate().map(|(i, row)| norms(&mut row.range(i..).map(|(&j, &u)| (j, u)))).collect();
        let candidates = values(differences(a, &factors), &factors);
        let keep = |(i, row): (usize, &BTreeMap<usize, f64>)| {
            let [plain, scaled] = of_rows[i];
            let size = |(&j, v): (&usize, &f64)| {
                let [left, left_scaled] = if j < i { reach[j] } else { [1.0, units[j]] };
                (v.abs() * left / plain).max(v.abs() * left_scaled / scaled)
            };
            let mut kept = BTreeMap::from([(i, row[&i])]);
            for side in [row.range(..i), row.range(i + 1..)] {
                let mut side: Vec<_> = side.filter(|e| size(*e) >= drop_tolerance && *e.1 != 0.0).collect();
                side.sort_by(|x, y| size(*y).total_cmp(&size(*x)).then(x.0.cmp(y.0)));
                kept.extend(side.into_iter().take(fill).map(|(j, v)| (*j, *v)));
            }
            kept
        };
        let next: Rows = candidates.iter().enumerate().map(keep).collect();
        let better = values(differences(a, &next), &next);
        let on_pattern = |(row, better): (&BTreeMap<usize, f64>, &BTreeMap<usize, f64>)| {
            row.keys().map(|j| (*j, better.get(j).copied().unwrap_or(0.0))).collect()
        };
        let same = next.iter().zip(&factors).all(|(x, y)| x.keys().eq(y.keys()));
        factors = next.iter().zip(&better).map(on_pattern).collect();
        if same {
            return (factors, step);
        }
    }
    (factors, STEPS)
}

/// A where the factors have a place.
fn masked(a: &Csr<f64>, pattern: &Rows) -> Csr<f64> {
    let (mut ptr, mut col, mut val) = (vec![0], Vec::new(), Vec::new());
    for (i, row) in pattern.iter().enumerate() {
        col.extend(row.keys().map(|&j| j as u32));
        val.extend(row.keys().map(|&j| a.get(i, j)));
        ptr.push(col.len() as u32);
    }
    Csr::new(a.nrows(), a.nrows(), ptr, col, val).unwrap()
}

#[test]
fn the_search_is_that_of_the_host_row_by_row() {
    let Some(device) = device() else { return };
    for (n, fill, drop_tolerance) in
        [(1, 3, 0.0), (2, 1, 0.0), (33, 2, 0.0), (33, 4, 1e-2), (70, 3, 1e-3), (40, 0, 0.0)]
    {
        let (a, options) = (random(n), options(fill, drop_tolerance));
        assert_eq!(column_units(&a), None);
        let (rows, steps) = searched(&a, options);
        let mut m = DeviceInverse::new(&device, &a, &of(options)).unwrap();
        let found = m.facts().search.unwrap();
        let what = format!("n = {n}, p = {fill}, tau = {drop_tolerance}");
        assert_eq!((found.steps, m.facts().nnz), (steps, rows.iter().map(BTreeMap::len).sum()), "{what}");
        let mut host = ilu0(&masked(&a, &rows), DroppedFill::Forgotten).unwrap();
        let r = Numbers(n as u64).vector::<f64>(n);
        let mut expected = vec![0.0; n];
        host.apply(&r, &mut expected);
        let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert_close(&what, &applied(&device, &mut m, &r), &expected, &vec![largest; n], 100.0);
    }
}

#[test]
fn where_nothing_is_dropped_it_is_elimination() {
    let Some(device) = device() else { return };
    // A matrix without zeros has no fill, a chain none either, and the grid less levels than the search has steps.
    let full = csr(20, |i, j| if i == j { 9.0 } else { Numbers((i * 20 + j) as u64).real() });
    for a in [full, stencil(4, 0.3), csr(40, |i, j| [2.5, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0))] {
        let n = a.nrows();
        let mut m = DeviceInverse::new(&device, &a, &of(options(n, 0.0))).unwrap();
        let found = m.facts().search.unwrap();
        assert!(found.left_over[0] < 1e-14 && found.left_over[1] <= found.left_over[0], "{found:?}");
        let x = Numbers(3).vector::<f64>(n);
        let mut b = vec![0.0; n];
        a.apply(1.0, &x, 0.0, &mut b);
        assert_close("A times x", &applied(&device, &mut m, &b), &x, &vec![1.0; n], 1e3);
    }
}

#[test]
fn what_is_left_over_is_all_that_was_dropped() {
    let Some(device) = device() else { return };
    // L = I and U = diag(A): the rest of A is left, 2 of 5 in each row.
    let a = csr(9, |i, j| [5.0, 0.0, 0.0, 2.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    let m = DeviceInverse::new(&device, &a, &of(options(0, 0.0))).unwrap();
    let expected = |i: usize| {
        let squares = 4.0 * f64::from(u8::from(i >= 3) + u8::from(i < 6));
        squares / (25.0 + squares)
    };
    let expected = ((0..9).map(expected).sum::<f64>() / 9.0).sqrt();
    let [all, inside] = m.facts().search.unwrap().left_over;
    assert!((all - expected).abs() < 1e-14 && inside == 0.0, "{all} {expected} {inside}");
}

#[test]
fn units_do_not_decide_what_is_dropped() {
    let Some(device) = device() else { return };
    let (n, a) = (36, random(36));
    let kept = |a: &Csr<f64>| {
        let m = DeviceInverse::new(&device, a, &of(options(3, 1e-2))).unwrap();
        (m.facts().nnz, m.facts().search.unwrap())
    };
    let unit = |k: usize| ((k * 37 % 41) as f64 - 20.0).exp2();
    let plain = kept(&a);
    assert!(plain.0 < 7 * n && plain.0 > 3 * n, "{plain:?}");
    for scaled in [
        csr(n, |i, j| a.get(i, j) * 60f64.exp2()),
        csr(n, |i, j| a.get(i, j) * 2f64.powi(-300)),
        csr(n, |i, j| a.get(i, j) * unit(i)),
    ] {
        assert_eq!(kept(&scaled), plain);
    }
    // Columns have powers of two next to the right ones only.
    let columns = kept(&csr(n, |i, j| a.get(i, j) * unit(j)));
    assert!(columns.0.abs_diff(plain.0) * 10 < plain.0, "{columns:?} {plain:?}");
}

/// Steps with the device's ILUT and with the host's, same p and τ.
fn steps(device: &Device, a: &Csr<f64>, options: IlutOptions) -> [usize; 2] {
    let n = a.nrows();
    let b = Numbers(n as u64).vector::<f64>(n);
    let stop = StopCriterion { rtol: 1e-8, ..StopCriterion::default() };
    let mut x = vec![0.0; n];
    let host = BiCgStab::new(n).solve(a, &mut ilut(a, options).unwrap(), &b, &mut x, &stop, &mut ()).unwrap();
    assert_eq!(host.outcome, Outcome::Converged);
    x.fill(0.0);
    let mut method = DeviceBiCgStab::new(device, a, &of(options), Schedule::Auto).unwrap();
    let ours = method.solve(&b, &mut x, &stop, &mut ()).unwrap();
    assert_eq!(ours.outcome, Outcome::Converged, "{} steps on the host", host.iterations);
    [ours.iterations, host.iterations]
}

#[test]
fn bicgstab_takes_hardly_more_steps_than_with_ilut_of_the_host() {
    let Some(device) = device() else { return };
    for (a, options) in [
        (stencil(9, 0.4), IlutOptions::default()),
        (stencil(13, 0.4), options(5, 1e-2)),
        (stencil(13, 0.0), options(4, 1e-3)),
        (random(100), options(10, 1e-2)),
    ] {
        let [ours, theirs] = steps(&device, &a, options);
        assert!(10 * ours <= 13 * theirs + 10, "{options:?}, n = {}: {ours} steps, {theirs} on the host", a.nrows());
    }
}

/// By the search row by row, which is the device's: the stand-in driver would take minutes.
#[test]
fn on_matrices_of_the_collection() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/matrices");
    if !folder.is_dir() {
        println!("skipped: ../shared is absent");
        return;
    }
    for name in ["arc130", "fs_183_3", "gre_115", "lund_a", "nos1", "mcca", "494_bus", "nos7"] {
        let bt_formats::FileMatrix::Real(a) = bt_formats::read_matrix(folder.join(format!("{name}.mtx"))).unwrap()
        else {
            panic!("{name} is real")
        };
        let (n, options) = (a.nrows(), IlutOptions::default());
        let (rows, steps) = searched(&a, options);
        let b = Numbers(n as u64).vector::<f64>(n);
        let stop = StopCriterion { rtol: 1e-8, ..StopCriterion::default() };
        let iterations = |m: &mut dyn Preconditioner<f64>| {
            let mut x = vec![0.0; n];
            let report = BiCgStab::new(n).solve(&a, m, &b, &mut x, &stop, &mut ()).unwrap();
            assert_eq!(report.outcome, Outcome::Converged, "{name}");
            report.iterations
        };
        let theirs = iterations(&mut ilut(&a, options).unwrap());
        let ours = iterations(&mut ilu0(&masked(&a, &rows), DroppedFill::Forgotten).unwrap());
        println!("{name}: {ours} iterations after {steps} steps, {theirs} with ilut of the host");
        assert!(10 * ours <= 13 * theirs + 10, "{name}: {ours} iterations, {theirs} with ilut of the host");
    }
}

#[test]
fn the_symmetric_form_serves_cg() {
    let Some(device) = device() else { return };
    let a = stencil::<f64>(12, 0.0);
    let n = a.nrows();
    let b = Numbers(5).vector::<f64>(n);
    let stop = StopCriterion { rtol: 1e-8, ..StopCriterion::default() };
    let mut x = vec![0.0; n];
    let steps = |precond: DevicePreconditioner, x: &mut [f64]| {
        x.fill(0.0);
        let report =
            DeviceCg::new(&device, &a, &precond, Schedule::Auto).unwrap().solve(&b, x, &stop, &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{precond:?}");
        report.iterations
    };
    let ict = steps(DevicePreconditioner::Ict(IlutOptions::default(), TriangularSolves::Levels), &mut x);
    let mut m = ic0(&a, DroppedFill::Forgotten).unwrap().factors;
    x.fill(0.0);
    let host = Cg::new(n).solve(&a, &mut m, &b, &mut x, &stop, &mut ()).unwrap();
    assert!(2 * ict <= host.iterations, "{ict} steps, {} with ic0", host.iterations);
    let sweeps = steps(DevicePreconditioner::Ict(options(5, 1e-3), TriangularSolves::Sweeps(8)), &mut x);
    assert!(sweeps < host.iterations, "{sweeps}");
    // Not definite: no shift helps.
    let a = csr::<f64>(2, |i, j| if i == j { 1.0 } else { 40.0 });
    let wanted = DevicePreconditioner::Ict(IlutOptions::default(), TriangularSolves::Levels);
    let why = DeviceInverse::new(&device, &a, &wanted).err().unwrap().to_string();
    assert!(why.contains("ict") && why.contains("no positive pivot"), "{why}");
}

#[test]
fn single_precision_zero_pivots_and_empty_rows() {
    let Some(device) = device() else { return };
    let a = random(50);
    let single = Csr::new(
        50,
        50,
        a.row_ptr().to_vec(),
        a.col_idx().to_vec(),
        a.values().iter().map(|&v| v as f32).collect::<Vec<_>>(),
    )
    .unwrap();
    let r = Numbers(1).vector::<f64>(50);
    let wanted = of(options(3, 0.0));
    let double = applied(&device, &mut DeviceInverse::new(&device, &a, &wanted).unwrap(), &r);
    let r: Vec<f32> = r.iter().map(|&v| v as f32).collect();
    let found = applied(&device, &mut DeviceInverse::new(&device, &single, &wanted).unwrap(), &r);
    assert!(found.iter().zip(&double).all(|(f, d)| (f64::from(*f) - d).abs() < 1e-5));
    // A diagonal of zeros: elimination fills it.
    let saddle = csr(30, |i, j| match i.abs_diff(j) {
        0 => f64::from(u8::from(i % 3 > 0)) * 4.0,
        1 => 1.0 + i as f64 / 30.0,
        _ => 0.0,
    });
    let m = DeviceInverse::new(&device, &saddle, &of(IlutOptions::default())).unwrap();
    assert_eq!(m.facts().replaced_pivots, ilut(&saddle, IlutOptions::default()).unwrap().replaced_pivots());
    // A row without entries is no reason to stop.
    let empty = csr(5, |i, j| if i == j && i != 2 { 3.0 } else { 0.0 });
    let mut m = DeviceInverse::new(&device, &empty, &of(IlutOptions::default())).unwrap();
    assert_eq!(m.facts().replaced_pivots, 1);
    assert!(applied(&device, &mut m, &[1.0; 5]).iter().all(|z| Scalar::is_finite(*z)));
    let none = Csr::<f64>::new(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
    assert_eq!(DeviceInverse::new(&device, &none, &of(IlutOptions::default())).unwrap().facts().nnz, 0);
}

#[test]
fn new_values_are_searched_anew_and_wrong_ones_refused() {
    let Some(device) = device() else { return };
    let (a, b) = (random(40), csr(40, |i, j| random(40).get(j, i)));
    let r = Numbers(1).vector::<f64>(40);
    let wanted = of(options(3, 1e-3));
    let mut m = DeviceInverse::new(&device, &a, &wanted).unwrap();
    let first = applied(&device, &mut m, &r);
    m.refactor(&b).unwrap();
    let expected = applied(&device, &mut DeviceInverse::new(&device, &b, &wanted).unwrap(), &r);
    assert_eq!(applied(&device, &mut m, &r), expected);
    m.refactor(&a).unwrap();
    assert_eq!(applied(&device, &mut m, &r), first);
    for tolerance in [-1.0, f64::NAN] {
        let error = DeviceInverse::new(&device, &a, &of(options(3, tolerance))).err().unwrap();
        assert!(matches!(error, DeviceError::Input(_)) && error.to_string().contains("drop tolerance"), "{error}");
    }
    let wide = Csr::<f64>::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert!(DeviceInverse::new(&device, &wide, &wanted).is_err());
}
