//! HBISA on the device: the host's iterates, norms, outcomes, for blocks of 1 to 1024 rows.

use std::ops::ControlFlow;

use crate::support::{Numbers, device, epsilon};
use bt_formats::{
    BlockTridiagonal, Breakdown, Csr, DiagonalKind, HybridLayout, Monitor, Note, Outcome, Partition, Progress,
    RealScalar, Scalar, StopCriterion,
};
use bt_iter::{Hbisa, StopRule, Sweep};
use bt_kernels::{BlockSolver, Device, DeviceError, DeviceHbisa, DeviceScalar, Place, Schedule, Shares, SplitHbisa};
use faer::Mat;

const SWEEPS: [Sweep; 2] = [Sweep::Jacobi, Sweep::RedBlack];

/// Tridiagonal diagonal blocks that dominate by the factor `weight`, couplings here and there.
fn blocks<T: Scalar>(sizes: &[usize], weight: f64) -> BlockTridiagonal<T> {
    system(sizes, weight, DiagonalKind::Tridiagonal, 1, &|_, i, _| i)
}

/// Diagonal blocks of `reach` diagonals on each side, where the heavy entry of row i of block j, of k rows, is in column
/// `heavy(j, i, k)`, and the diagonal is zero where that is another.
fn system<T: Scalar>(
    sizes: &[usize],
    weight: f64,
    diagonal: DiagonalKind,
    reach: usize,
    heavy: &dyn Fn(usize, usize, usize) -> usize,
) -> BlockTridiagonal<T> {
    let partition = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let n = partition.n();
    let mut numbers = Numbers(n as u64);
    let (mut ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let home = partition.block_of(i);
        let low = if home == 0 { 0 } else { partition.range(home - 1).start };
        let high = if home + 1 == sizes.len() { n } else { partition.range(home + 1).end };
        let mut row: Vec<(usize, f64)> = Vec::new();
        let first = partition.range(home).start;
        let pivot = first + heavy(home, i - first, sizes[home]);
        for c in low..high {
            let inside = partition.block_of(c) == home;
            if (inside && c != i && c != pivot && i.abs_diff(c) <= reach)
                || (!inside && numbers.below(9) == 0 && row.len() < 7)
            {
                row.push((c, numbers.real::<f64>()));
            }
        }
        let sum: f64 = row.iter().map(|(_, v)| v.abs()).sum();
        let place = row.partition_point(|&(c, _)| c < pivot);
        row.insert(place, (pivot, weight * sum + 0.1));
        columns.extend(row.iter().map(|&(c, _)| c as u32));
        values.extend(row.iter().map(|&(_, v)| T::rounded(v, 0.0)));
        ptr.push(columns.len() as u32);
    }
    let a = Csr::new(n, n, ptr, columns, values).unwrap();
    let layout = HybridLayout { diagonal: Some(diagonal), ..HybridLayout::default() };
    BlockTridiagonal::from_csr(&a, partition, layout).unwrap()
}

#[derive(Default)]
struct Norms {
    seen: Vec<f64>,
    until: Option<usize>,
}

impl Monitor for Norms {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if let Progress::Iteration { index, residual } = progress {
            assert_eq!(index, self.seen.len());
            self.seen.push(residual);
            if Some(index) == self.until {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

fn agrees<T: DeviceScalar>(device: &Device, sizes: &[usize], rtol: f64, schedules: &[Schedule]) {
    same::<T>(device, &blocks(sizes, 1.3), rtol, schedules);
}

fn same<T: DeviceScalar>(device: &Device, a: &BlockTridiagonal<T>, rtol: f64, schedules: &[Schedule]) {
    let sizes = a.partition().offsets();
    let b = Numbers(9).vector::<T>(a.n());
    for sweep in SWEEPS {
        for rule in [StopRule::Residual, StopRule::Update] {
            let stop = StopCriterion { rtol, ..StopCriterion::default() };
            let (mut expected, mut seen) = (vec![T::default(); a.n()], Norms::default());
            let host = Hbisa::with_options(a, sweep, rule).unwrap().solve(&b, &mut expected, &stop, &mut seen);
            assert_eq!(host.outcome, Outcome::Converged, "{sizes:?}, {sweep:?}, {rule:?}");
            let mut bits: Option<Vec<T>> = None;
            for &schedule in schedules {
                let what = format!("{sizes:?}, {sweep:?}, {rule:?}, {schedule:?}, {}", T::SUFFIX);
                let (mut x, mut norms) = (vec![T::default(); a.n()], Norms::default());
                let mut method = DeviceHbisa::new(device, a, sweep, rule, schedule).unwrap();
                let report = method.solve(&b, &mut x, &stop, &mut norms).unwrap();
                assert_eq!((report.method, report.outcome), (host.method, host.outcome), "{what}: {report:?}");
                assert!(report.iterations.abs_diff(host.iterations) <= 1, "{what}: {} sweeps", report.iterations);
                for (i, (ours, theirs)) in norms.seen.iter().zip(&seen.seen).enumerate().skip(1) {
                    // Of one block all but rounding is zero.
                    let slack = 0.01 * theirs + 1e3 * epsilon::<T>();
                    assert!((ours - theirs).abs() <= slack, "{what}: norm {i} is {ours:e}, not {theirs:e}");
                }
                let error = x.iter().zip(&expected).fold(0.0, |m: f64, (&x, &e)| m.max((x - e).abs().to_f64()));
                let size = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs().to_f64()));
                assert!(error <= (1e2 * rtol + 1e3 * epsilon::<T>()) * size, "{what}: off by {error:e} of {size:e}");
                // The schedule changes no bit.
                assert_eq!(*bits.get_or_insert_with(|| x.clone()), x, "{what}");
            }
        }
    }
}

const BOTH: [Schedule; 2] = [Schedule::Launches, Schedule::Persistent];

#[test]
fn answers_norms_and_counts_are_those_of_the_host() {
    let Some(device) = device() else { return };
    // The last two: several thread blocks of several blocks each, the last one not full.
    let many = [vec![20; 40], [vec![5; 90], vec![1, 4, 5]].concat()];
    for sizes in
        [vec![1], vec![1; 5], vec![33], vec![2, 31, 1, 32, 7], vec![16; 6], vec![255, 257]].into_iter().chain(many)
    {
        agrees::<f64>(&device, &sizes, 1e-9, &BOTH);
    }
    agrees::<f32>(&device, &[2, 31, 1, 32, 7], 1e-4, &BOTH);
}

/// Row i's heavy entry one column to the right, cyclically: elimination as it stands would divide by zero.
fn shifted(_: usize, i: usize, k: usize) -> usize {
    (i + 1) % k
}

/// In the even blocks rows are exchanged in pairs.
fn pairs(j: usize, i: usize, k: usize) -> usize {
    if j.is_multiple_of(2) { exchanged(j, i, k) } else { i }
}

/// Rows exchanged in pairs.
fn exchanged(_: usize, i: usize, k: usize) -> usize {
    if (i ^ 1) < k { i ^ 1 } else { i }
}

fn factored<T: DeviceScalar>(device: &Device, rtol: f64) {
    for sizes in [vec![1], vec![1, 2, 1], vec![33], vec![31, 2, 32, 7], vec![64, 65]] {
        same::<T>(device, &system(&sizes, 1.3, DiagonalKind::Dense, 100, &shifted), rtol, &BOTH);
        same::<T>(device, &system(&sizes, 1.3, DiagonalKind::Band, 3, &|_, i, _| i), rtol, &BOTH);
        let a = system::<T>(&sizes, 1.3, DiagonalKind::Tridiagonal, 1, &pairs);
        same::<T>(device, &a, rtol, &BOTH);
        let pivoted = sizes.iter().step_by(2).filter(|&&k| k > 1).count();
        let mut method = DeviceHbisa::new(device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto).unwrap();
        let (b, mut x) = (vec![bt_formats::one(); a.n()], vec![T::default(); a.n()]);
        let report = method.solve(&b, &mut x, &StopCriterion { rtol, ..StopCriterion::default() }, &mut ()).unwrap();
        let said = report.notes.contains(&Note::InterchangedBlocks { blocks: pivoted });
        assert_eq!(said, pivoted > 0, "{sizes:?}: {:?}", report.notes);
        // D by diagonals is read for its residual.
        let squares: usize = sizes.iter().step_by(2).filter(|&&k| k > 1).map(|k| k * k).sum();
        assert!(method.bytes().factors >= squares * size_of::<T>());
    }
}

#[test]
fn dense_and_banded_blocks_and_those_that_need_interchanges_have_factors() {
    let Some(device) = device() else { return };
    factored::<f64>(&device, 1e-9);
    factored::<f32>(&device, 1e-4);
}

#[test]
fn large_factored_blocks_take_many_warps() {
    let Some(device) = device() else { return };
    same::<f64>(&device, &system(&[257, 3], 1.3, DiagonalKind::Dense, 300, &shifted), 1e-6, &BOTH);
    // More rows than a persistent launch takes; all of them.
    let a = system::<f64>(&[1024, 1], 1.3, DiagonalKind::Band, 2, &exchanged);
    let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto).unwrap();
    assert!(!method.is_persistent());
    let (mut x, mut expected) = (vec![0.0; 1025], vec![0.0; 1025]);
    let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
    let report = method.solve(&[1.0; 1025], &mut x, &stop, &mut ()).unwrap();
    let mut host = Hbisa::new(&a, Sweep::Jacobi).unwrap();
    let host = host.solve(&[1.0; 1025], &mut expected, &stop, &mut ());
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, host.iterations));
    assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() <= 1e-12 * e.abs().max(1e-3)));
}

#[test]
fn large_blocks_are_launched_sweep_by_sweep() {
    let Some(device) = device() else { return };
    agrees::<f64>(&device, &[513, 3], 1e-6, &[Schedule::Auto]);
    let a = blocks::<f64>(&[1024], 1.3);
    let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto).unwrap();
    assert!(!method.is_persistent());
    let report = method.solve(&vec![1.0; 1024], &mut vec![0.0; 1024], &StopCriterion::default(), &mut ()).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 1));
    let error = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Persistent).err().unwrap();
    assert!(error.to_string().starts_with("invalid schedule: "), "{error}");
}

/// The last so many blocks on the processor.
fn shared<'a, T: DeviceScalar>(
    device: &Device,
    a: &'a BlockTridiagonal<T>,
    sweep: Sweep,
    rule: StopRule,
    count: usize,
) -> Result<SplitHbisa<'a, T>, DeviceError> {
    SplitHbisa::new(&[Place::Device(device.clone()), Place::Host], &Shares::Last(count), a, sweep, rule)
}

fn divided<T: DeviceScalar>(device: &Device, a: &BlockTridiagonal<T>, rtol: f64) {
    let b = Numbers(9).vector::<T>(a.n());
    let m = a.n_blocks();
    let (stop, limited) = (StopCriterion { rtol, ..StopCriterion::default() }, |max_iters| StopCriterion {
        rtol: 1e-300,
        max_iters,
        ..StopCriterion::default()
    });
    for sweep in SWEEPS {
        for rule in [StopRule::Residual, StopRule::Update] {
            let (mut expected, mut seen) = (vec![T::default(); a.n()], Norms::default());
            let host = Hbisa::with_options(a, sweep, rule).unwrap().solve(&b, &mut expected, &stop, &mut seen);
            for count in [0, 1, m / 2, m - 1, m] {
                let what = format!("{count} of {m} blocks on the host, {sweep:?}, {rule:?}, {}", T::SUFFIX);
                let mut method = shared(device, a, sweep, rule, count).unwrap();
                assert_eq!(method.counts(), [m - count, count]);
                let (mut x, mut norms) = (vec![T::default(); a.n()], Norms::default());
                let report = method.solve(&b, &mut x, &stop, &mut norms).unwrap();
                assert_eq!((report.method, report.outcome), (host.method, host.outcome), "{what}: {report:?}");
                assert!(report.iterations.abs_diff(host.iterations) <= 1, "{what}: {} sweeps", report.iterations);
                for (i, (ours, theirs)) in norms.seen.iter().zip(&seen.seen).enumerate().skip(1) {
                    let slack = 0.01 * theirs + 1e3 * epsilon::<T>();
                    assert!((ours - theirs).abs() <= slack, "{what}: norm {i} is {ours:e}, not {theirs:e}");
                }
                let shares = format!("gpu:0 {}, cpu {count}", m - count);
                assert!(report.notes.contains(&Note::SharedOut { what: "blocks", shares }), "{:?}", report.notes);
                // Iterates, one after another.
                for sweeps in [1, 2, 3, 4] {
                    let (mut x, mut y) = (vec![T::default(); a.n()], vec![T::default(); a.n()]);
                    method.solve(&b, &mut x, &limited(sweeps), &mut ()).unwrap();
                    Hbisa::with_options(a, sweep, rule).unwrap().solve(&b, &mut y, &limited(sweeps), &mut ());
                    let off = x.iter().zip(&y).fold(0.0, |m: f64, (&x, &y)| m.max((x - y).abs().to_f64()));
                    assert!(off <= 1e3 * epsilon::<T>(), "{what}: {sweeps} sweeps, off by {off:e}");
                }
            }
        }
    }
}

#[test]
fn blocks_shared_with_the_processor_have_the_same_iterates() {
    let Some(device) = device() else { return };
    divided::<f64>(&device, &blocks(&[2, 31, 1, 7, 32], 1.3), 1e-9);
    divided::<f64>(&device, &system(&[5, 6, 7, 1], 1.3, DiagonalKind::Dense, 9, &shifted), 1e-9);
    divided::<f32>(&device, &system(&[4, 4, 3], 1.3, DiagonalKind::Tridiagonal, 1, &pairs), 1e-4);
    // Scaled, so that what crosses the cut is not of the size of the caller's.
    let a = blocks::<f64>(&[6, 5, 4], 1.3);
    let new = |count| shared(&device, &a, Sweep::RedBlack, StopRule::Residual, count);
    let solution = |scale: f64| {
        let mut x = vec![0.0; 15];
        let b = vec![scale; 15];
        let mut method = new(1).unwrap();
        assert_eq!(method.solve(&b, &mut x, &StopCriterion::default(), &mut ()).unwrap().outcome, Outcome::Converged);
        x
    };
    let (plain, huge) = (solution(1.0), solution(2f64.powi(900)));
    assert!(plain.iter().zip(&huge).all(|(p, h)| p * 2f64.powi(900) == *h));
    // By a measured sweep: any split is one.
    let places = [Place::Device(device.clone()), Place::Host];
    let mut method = SplitHbisa::new(&places, &Shares::Measured, &a, Sweep::RedBlack, StopRule::Residual).unwrap();
    assert_eq!(method.counts().iter().sum::<usize>(), 3);
    let report = method.solve(&[1.0; 15], &mut [0.0; 15], &StopCriterion::default(), &mut ()).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    let error = new(4).err().unwrap();
    assert!(error.to_string().contains("4 blocks for the last place, but there are 3"), "{error}");
}

#[test]
fn a_divided_iteration_that_diverges_returns_its_best() {
    let Some(device) = device() else { return };
    let a = blocks::<f64>(&[4; 6], 0.2);
    let b = Numbers(2).vector::<f64>(24);
    for rule in [StopRule::Residual, StopRule::Update] {
        let (mut x, mut y) = (vec![0.0; 24], vec![0.0; 24]);
        let mut method = shared(&device, &a, Sweep::Jacobi, rule, 3).unwrap();
        let report = method.solve(&b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        let host =
            Hbisa::with_options(&a, Sweep::Jacobi, rule).unwrap().solve(&b, &mut y, &StopCriterion::default(), &mut ());
        assert_eq!((report.outcome, report.iterations), (host.outcome, host.iterations), "{rule:?}");
        assert!(x.iter().zip(&y).all(|(x, y)| f64::abs(x - y) <= 1e-12 * (1.0 + y.abs())), "{rule:?}");
    }
}

#[test]
fn a_divided_iteration_does_not_see_how_the_last_one_ended() {
    let Some(device) = device() else { return };
    let a = system::<f64>(&[5, 6, 7, 1], 1.3, DiagonalKind::Dense, 9, &shifted);
    for rule in [StopRule::Residual, StopRule::Update] {
        let mut method = shared(&device, &a, Sweep::Jacobi, rule, 2).unwrap();
        let mut x = vec![f64::MAX; 19];
        let report = method.solve(&[1.0; 19], &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::NonFinite), "{rule:?}");
        x.fill(0.0);
        let report = method.solve(&[1.0; 19], &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{rule:?}");
    }
}

/// Several right-hand sides of very different sizes and ends: the bits, counts and outcomes that each has alone.
#[test]
fn right_hand_sides_swept_together_are_as_alone() {
    let Some(device) = device() else { return };
    let sizes = [2, 31, 1, 32, 7];
    let pivoted = system::<f64>(&sizes, 1.3, DiagonalKind::Tridiagonal, 1, &pairs);
    let dense = system::<f64>(&sizes, 1.3, DiagonalKind::Dense, 100, &shifted);
    for (a, schedule) in
        [(blocks(&sizes, 1.3), BOTH[0]), (blocks(&sizes, 1.3), BOTH[1]), (pivoted, BOTH[1]), (dense, BOTH[0])]
    {
        for (sweep, rule) in [(Sweep::Jacobi, StopRule::Update), (Sweep::RedBlack, StopRule::Residual)] {
            together(&device, &a, sweep, rule, schedule);
        }
    }
}

/// Cyclic reduction, which the paper has, and Thomas's algorithm: the same sweeps to rounding, at sizes around powers of two.
#[test]
fn blocks_may_be_solved_in_other_ways() {
    let Some(device) = device() else { return };
    let a = blocks::<f64>(&[1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 65], 1.3);
    let (b, stop) = (Numbers(5).vector::<f64>(a.n()), StopCriterion { rtol: 1e-10, ..StopCriterion::default() });
    for schedule in BOTH {
        let solve = |solver| {
            let mut x = vec![0.0; a.n()];
            let method = DeviceHbisa::new(&device, &a, Sweep::RedBlack, StopRule::Residual, schedule).unwrap();
            let report = method.with_solver(solver).solve(&b, &mut x, &stop, &mut ()).unwrap();
            assert_eq!(report.outcome, Outcome::Converged, "{solver:?}");
            (report.iterations, x)
        };
        let (count, expected) = solve(BlockSolver::ParallelCyclicReduction);
        for solver in [BlockSolver::CyclicReduction, BlockSolver::Thomas] {
            let (iterations, x) = solve(solver);
            assert_eq!(iterations, count, "{solver:?}, {schedule:?}");
            assert_ne!(x, expected, "{solver:?} is another method");
            assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() <= 1e-13 * e.abs().max(1e-3)), "{solver:?}");
        }
    }
}

fn together(device: &Device, a: &BlockTridiagonal<f64>, sweep: Sweep, rule: StopRule, schedule: Schedule) {
    let (n, columns) = (a.n(), 4);
    let mut b =
        Mat::from_fn(n, columns, |i, j| Numbers(7 + (i + j * n) as u64).real::<f64>() * 1e40f64.powi(j as i32 - 1));
    b.col_mut(2).fill(0.0);
    let stop = StopCriterion { rtol: 1e-9, ..StopCriterion::default() };
    let mut method = DeviceHbisa::new(device, a, sweep, rule, schedule).unwrap();
    // The last column starts at its solution.
    let mut x = Mat::<f64>::zeros(n, columns);
    method.solve(b.col_as_slice(3), x.col_as_slice_mut(3), &stop, &mut ()).unwrap();
    let (start, mut told) = (x.clone(), Vec::new());
    let mut monitor = |progress| {
        told.push(progress);
        ControlFlow::Continue(())
    };
    let reports = method.solve_many(b.as_ref(), x.as_mut(), &stop, &mut monitor).unwrap();
    assert_eq!(reports.len(), columns);
    for (j, report) in reports.iter().enumerate() {
        let (mut alone, mut norms) = (start.col_as_slice(j).to_vec(), Norms::default());
        let expected = method.solve(b.col_as_slice(j), &mut alone, &stop, &mut norms).unwrap();
        let what = format!("{sweep:?}, {rule:?}, {schedule:?}, column {j}");
        assert_eq!((report.outcome, report.iterations), (expected.outcome, expected.iterations), "{what}");
        assert_eq!(x.col_as_slice(j), alone, "{what}");
        let of_column = told.chunks(2).filter(|pair| matches!(pair[0], Progress::Column(c) if c == j));
        let seen: Vec<f64> = of_column
            .filter_map(|pair| if let Progress::Iteration { residual, .. } = pair[1] { Some(residual) } else { None })
            .collect();
        assert_eq!(seen, norms.seen, "{what}");
    }
    assert!(reports[0].iterations > 3 && reports[2].iterations <= 1, "{reports:?}");
}

#[test]
fn a_limit_ends_all_columns_and_more_than_fit_are_swept_in_groups() {
    let Some(device) = device() else { return };
    let a = blocks::<f64>(&[3, 4], 1.3);
    let b = Mat::from_fn(7, 40, |i, j| Numbers((i + 7 * j) as u64).real::<f64>());
    let mut x = Mat::<f64>::zeros(7, 40);
    let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto).unwrap();
    let stop = StopCriterion { rtol: 1e-10, ..StopCriterion::default() };
    let reports = method.solve_many(b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap();
    assert!(reports.len() == 40 && reports.iter().all(|r| r.outcome == Outcome::Converged), "{reports:?}");
    // 32 and 8: the smaller group has the vectors of the larger, as has one alone.
    let mut alone = vec![0.0; 7];
    let report = method.solve(b.col_as_slice(39), &mut alone, &stop, &mut ()).unwrap();
    assert_eq!((reports[39].bytes, report.bytes), (reports[0].bytes, reports[0].bytes));
    assert_eq!(alone, x.col_as_slice(39));
    let limited = StopCriterion { max_iters: 2, ..stop };
    let reports = method.solve_many(b.as_ref(), Mat::zeros(7, 40).as_mut(), &limited, &mut ()).unwrap();
    assert!(reports.iter().all(|r| (r.outcome, r.iterations) == (Outcome::IterationLimit, 2)), "{reports:?}");
    let found = method.solve_many(b.as_ref(), Mat::zeros(7, 39).as_mut(), &stop, &mut ()).unwrap_err();
    assert_eq!(found.to_string(), "columns of X: expected 40, found 39");
}

#[test]
fn divergence_is_seen_and_the_best_iterate_returned() {
    let Some(device) = device() else { return };
    // Couplings that outweigh the diagonal blocks: every sweep multiplies the error by about two.
    let a = blocks::<f64>(&[4; 6], 0.2);
    let b = Numbers(2).vector::<f64>(24);
    for schedule in BOTH {
        let mut x = vec![0.0; 24];
        let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, schedule).unwrap();
        let report = method.solve(&b, &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::Diverged), "{report:?}");
        assert!(report.certificate.relative_residual <= 1.0, "{report:?}");
    }
}

#[test]
fn limits_and_monitors_end_a_run() {
    let Some(device) = device() else { return };
    let a = blocks::<f64>(&[8; 5], 0.8);
    let b = Numbers(3).vector::<f64>(40);
    for sweep in SWEEPS {
        for rule in [StopRule::Residual, StopRule::Update] {
            for schedule in BOTH {
                let mut method = DeviceHbisa::new(&device, &a, sweep, rule, schedule).unwrap();
                let mut run = |max_iters, until| {
                    let stop = StopCriterion { rtol: 1e-300, max_iters, ..StopCriterion::default() };
                    let mut x = vec![0.0; 40];
                    let mut norms = Norms { until, ..Norms::default() };
                    let report = method.solve(&b, &mut x, &stop, &mut norms).unwrap();
                    let host = StopCriterion { max_iters: report.iterations, ..stop };
                    let mut y = vec![0.0; 40];
                    Hbisa::with_options(&a, sweep, rule).unwrap().solve(&b, &mut y, &host, &mut ());
                    (report, x, y)
                };
                for max_iters in [0, 1, 2, 5, 31, 33] {
                    let (report, x, y) = run(max_iters, None);
                    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, max_iters));
                    let off = x.iter().zip(&y).fold(0.0, |m: f64, (x, y)| m.max((x - y).abs()));
                    assert!(off <= 1e-12, "{sweep:?}, {rule:?}, {schedule:?}: {max_iters} sweeps, off by {off:e}");
                }
                let (report, ..) = run(1000, Some(7));
                assert_eq!((report.outcome, report.iterations), (Outcome::Stopped, 7));
            }
        }
    }
}

#[test]
fn a_solution_out_of_range_is_not_converged() {
    let Some(device) = device() else { return };
    let a = Csr::from_dense(faer::mat![[1e-200, 0.0], [0.0, 1e-200]].as_ref()).unwrap();
    let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
    let a = BlockTridiagonal::from_csr(&a, Partition::uniform(2, 1).unwrap(), layout).unwrap();
    for rule in [StopRule::Residual, StopRule::Update] {
        let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, rule, Schedule::Auto).unwrap();
        let mut x = [0.0; 2];
        let report = method.solve(&[1e200, 1e100], &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!((report.outcome, x), (Outcome::Breakdown(Breakdown::NonFinite), [0.0; 2]), "{rule:?}");
        // In range: any scale will do.
        let report = method.solve(&[1e100, 1e50], &mut x, &StopCriterion::default(), &mut ()).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        assert!(f64::abs(x[0] / 1e300 - 1.0) < 1e-14 && f64::abs(x[1] / 1e250 - 1.0) < 1e-14, "{x:?}");
    }
}

#[test]
fn what_the_device_cannot_do_is_refused_by_name() {
    let Some(device) = device() else { return };
    let refused = |a: &BlockTridiagonal<f64>, sweep| {
        DeviceHbisa::new(&device, a, sweep, StopRule::Residual, Schedule::Auto).err().unwrap()
    };
    let a = blocks::<f64>(&[3, 3], 1.5);
    assert!(refused(&a, Sweep::GaussSeidel).to_string().contains("hbisa-gs is not on the device"));
    let large = blocks::<f64>(&[1025], 1.5);
    assert!(refused(&large, Sweep::Jacobi).to_string().contains("1025 rows"));
    let of = |rows: [[f64; 2]; 2]| {
        let a = Csr::from_dense(Mat::from_fn(2, 2, |i, j| rows[i][j]).as_ref()).unwrap();
        let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
        BlockTridiagonal::from_csr(&a, Partition::uniform(2, 2).unwrap(), layout).unwrap()
    };
    let error = refused(&of([[1.0, 1.0], [1.0, 1.0]]), Sweep::Jacobi);
    assert!(matches!(&error, DeviceError::Factor(_)) && error.to_string().contains("singular"), "{error}");
    let mut method = DeviceHbisa::new(&device, &a, Sweep::Jacobi, StopRule::Residual, Schedule::Auto).unwrap();
    assert!(method.solve(&[f64::NAN; 6], &mut [0.0; 6], &StopCriterion::default(), &mut ()).is_err());
}
