//! Krylov methods over ranks: with one rank the bits of bt-iter, with more the same answers, certified over the whole system.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::common::{RANKS, distance, run, scattered, succeed, vector, wind};
use bt_formats::{Baseline, Breakdown, Csr, LinearOperator, Outcome, Progress, SolveReport, StopCriterion, c64};
use bt_iter::{BiCgStab, Cg, Gmres};
use bt_parallel::{
    Comm, DistributedCsr, DistributedPreconditioner, Division, Error, Identity, Krylov, Method, Number, Result,
    SelfComm, Traffic,
};

const METHODS: [Method; 5] =
    [Method::Cg, Method::FlexibleCg, Method::BiCgStab, Method::Gmres { restart: 7 }, Method::Fgmres { restart: 7 }];

/// Reports and x of all ranks, without a preconditioner.
fn solve<T: Number>(
    a: &Csr<T>,
    division: &Division,
    method: Method,
    b: &[T],
    x0: &[T],
    stop: &StopCriterion,
) -> Vec<(SolveReport, Vec<T>)> {
    succeed(division.n_ranks(), |comm| {
        let d = DistributedCsr::from_replicated(comm, a, division)?;
        let mut x = d.own_entries(x0);
        let mut krylov = Krylov::new(&d, method);
        assert!(krylov.bytes() > 0 || d.rows().own().is_empty());
        let report = krylov.solve(&d, &mut Identity::new(&d), &d.own_entries(b), &mut x, stop, &mut ())?;
        Ok((report, d.whole(&x)?))
    })
}

/// The same by bt-iter.
fn serial<T: Number>(a: &Csr<T>, method: Method, b: &[T], x0: &[T], stop: &StopCriterion) -> (SolveReport, Vec<T>) {
    let n = a.nrows();
    let (mut x, mut m) = (x0.to_vec(), bt_iter::Identity::new(n));
    let report = match method {
        Method::Cg => Cg::new(n).solve(a, &mut m, b, &mut x, stop, &mut ()),
        Method::FlexibleCg => Cg::flexible(n).solve(a, &mut m, b, &mut x, stop, &mut ()),
        Method::BiCgStab => BiCgStab::new(n).solve(a, &mut m, b, &mut x, stop, &mut ()),
        Method::Gmres { restart } => Gmres::new(n, restart).solve(a, &mut m, b, &mut x, stop, &mut ()),
        Method::Fgmres { restart } => Gmres::flexible(n, restart).solve(a, &mut m, b, &mut x, stop, &mut ()),
    };
    (report.unwrap(), x)
}

/// One rank has the bits of bt-iter, many the answer to the tolerance, and all ranks the same report.
fn agrees<T: Number>(a: &Csr<T>, methods: &[Method], rtol: f64) {
    let n = a.nrows();
    let (b, x0) = (vector::<T>(n, 1), vector::<T>(n, 2));
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    for &method in methods {
        let (expected, x) = serial(a, method, &b, &x0, &stop);
        assert_eq!(expected.outcome, Outcome::Converged, "{method:?}");
        for p in RANKS {
            let division =
                if p % 2 == 0 { Division::contiguous(n, p) } else { Division::site_expansion(a, p).unwrap() };
            let solved = solve(a, &division, method, &b, &x0, &stop);
            for (report, found) in &solved {
                assert_eq!(report.outcome, Outcome::Converged, "{method:?} on {p}: {report:?}");
                assert_eq!((report.iterations, report.certificate), (solved[0].0.iterations, solved[0].0.certificate));
                assert!(report.certificate.relative_residual <= 1.1 * rtol, "{method:?} on {p}: {report:?}");
                assert!(distance(found, &x) <= 1e3 * rtol, "{method:?} on {p}");
                assert!(report.iterations.abs_diff(expected.iterations) <= 2 + expected.iterations / 5);
            }
            if p == 1 {
                assert_eq!(solved[0].1, x, "{method:?}");
                assert_eq!(solved[0].0.iterations, expected.iterations);
                assert_eq!(solved[0].0.recurrence_residual, expected.recurrence_residual);
            }
        }
    }
}

#[test]
fn answers_are_those_of_one_rank() {
    agrees::<f64>(&wind(7), &METHODS[2..], 1e-10);
    agrees::<f64>(&bt_testkit::stencil(7, 0.0), &METHODS, 1e-10);
    agrees::<c64>(&scattered(26), &METHODS[2..], 1e-10);
    agrees::<f32>(&wind(4), &METHODS[2..], 1e-4);
}

#[test]
fn one_rank_without_threads() {
    let (a, b, stop) = (wind::<f64>(5), vector::<f64>(25, 1), StopCriterion::default());
    for method in &METHODS[2..] {
        let (expected, x) = serial(&a, *method, &b, &[0.0; 25], &stop);
        let d = DistributedCsr::from_replicated(&SelfComm, &a, &Division::contiguous(25, 1)).unwrap();
        let mut found = [0.0; 25];
        let mut krylov = Krylov::new(&d, *method);
        let report = krylov.solve(&d, &mut Identity::new(&d), &b, &mut found, &stop, &mut ()).unwrap();
        assert_eq!((&found[..], report.iterations), (&x[..], expected.iterations), "{method:?}");
    }
}

#[test]
fn more_ranks_than_rows() {
    let a = scattered::<f64>(3);
    for method in &METHODS[2..] {
        let solved =
            solve(&a, &Division::contiguous(3, 7), *method, &[1.0, 2.0, 3.0], &[0.0; 3], &StopCriterion::default());
        assert!(solved.iter().all(|(report, _)| report.outcome == Outcome::Converged), "{method:?}");
        let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let solved = solve(&empty, &Division::contiguous(0, 3), *method, &[], &[], &StopCriterion::default());
        assert!(solved.iter().all(|(report, _)| report.outcome == Outcome::Converged), "{method:?}");
    }
}

#[test]
fn right_hand_sides_at_the_ends_of_the_range() {
    let a = wind::<f64>(4);
    for size in [1e308, 1e-300] {
        let b: Vec<f64> = vector::<f64>(16, 3).iter().map(|v| v * size).collect();
        for method in &METHODS[2..] {
            let solved = solve(&a, &Division::contiguous(16, 3), *method, &b, &[0.0; 16], &StopCriterion::default());
            for (report, _) in &solved {
                assert_eq!(report.outcome, Outcome::Converged, "{method:?}");
                assert!(report.certificate.relative_residual <= 1.1e-8);
            }
        }
    }
}

#[test]
fn outcomes_are_the_same_on_all_ranks() {
    // An indefinite matrix under CG, on the last rank alone.
    let a = bt_testkit::csr(9, |i, j| if i == j { if i == 8 { -1.0 } else { 2.0 } } else { 0.0 });
    let solved = solve(&a, &Division::contiguous(9, 4), Method::Cg, &[1.0; 9], &[0.0; 9], &StopCriterion::default());
    let indefinite = Outcome::Breakdown(Breakdown::IndefiniteOperator);
    assert!(solved.iter().all(|(report, _)| report.outcome == indefinite));
    // A singular one under GMRES.
    let a = bt_testkit::csr(9, |i, j| if i == j && i < 8 { 1.0 + i as f64 } else { 0.0 });
    let method = Method::Gmres { restart: 20 };
    let solved = solve(&a, &Division::contiguous(9, 4), method, &[1.0; 9], &[0.0; 9], &StopCriterion::default());
    assert!(solved.iter().all(|(report, _)| report.outcome == solved[0].0.outcome));
    assert_ne!(solved[0].0.outcome, Outcome::Converged);
    let stop =
        StopCriterion { rtol: 0.0, max_iters: 3, baseline: Baseline::InitialResidual, ..StopCriterion::default() };
    let a = wind::<f64>(5);
    for method in &METHODS[2..] {
        let solved = solve(&a, &Division::contiguous(25, 3), *method, &vector(25, 1), &[0.0; 25], &stop);
        assert!(solved.iter().all(|(r, _)| (r.outcome, r.iterations) == (Outcome::IterationLimit, 3)), "{method:?}");
    }
}

#[test]
fn a_monitor_of_any_rank_ends_all() {
    let a = wind::<f64>(6);
    for p in [1, 3] {
        for method in &METHODS[2..] {
            let stop = StopCriterion { rtol: 0.0, max_iters: 1000, ..StopCriterion::default() };
            let reports = succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(36, p))?;
                let mut x = vec![0.0; d.rows().own().len()];
                let last = comm.rank() == p - 1;
                let mut monitor = |progress| match progress {
                    Progress::Iteration { index, .. } if last && index >= 4 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                };
                let b = d.own_entries(&vector(36, 1));
                Krylov::new(&d, *method).solve(&d, &mut Identity::new(&d), &b, &mut x, &stop, &mut monitor)
            });
            for report in &reports {
                assert_eq!((report.outcome, report.iterations), (Outcome::Stopped, reports[0].iterations));
                assert!((4..=5).contains(&report.iterations), "{method:?} on {p}: {}", report.iterations);
            }
        }
    }
    let stop = StopCriterion { rtol: 0.0, time_limit: Some(Duration::ZERO), ..StopCriterion::default() };
    let solved = solve(&a, &Division::contiguous(36, 3), Method::BiCgStab, &vector(36, 1), &[0.0; 36], &stop);
    assert!(solved.iter().all(|(r, _)| r.outcome == Outcome::TimeLimit && r.iterations <= 2));
}

/// The identity, which some ranks take their time for.
struct Late {
    rows: usize,
    pause: Duration,
}

impl DistributedPreconditioner<f64> for Late {
    fn rows(&self) -> usize {
        self.rows
    }
    fn name(&self) -> &'static str {
        "late"
    }
    fn kind(&self) -> bt_iter::PreconditionerKind {
        bt_iter::PreconditionerKind::Spd
    }
    fn apply(&mut self, r: &[f64], z: &mut [f64]) -> Result<()> {
        std::thread::sleep(self.pause);
        z.copy_from_slice(r);
        Ok(())
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}

#[test]
fn bits_do_not_depend_on_who_is_late() {
    let a = bt_testkit::stencil::<f64>(6, 0.0);
    for method in METHODS {
        let solve = |late: usize| {
            succeed(4, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::site_expansion(&a, 4).unwrap())?;
                let rows = d.rows().own().len();
                let pause = Duration::from_micros(if comm.rank() == late { 300 } else { 0 });
                let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; rows]);
                let mut krylov = Krylov::new(&d, method);
                krylov.solve(&d, &mut Late { rows, pause }, &b, &mut x, &StopCriterion::default(), &mut ())?;
                d.whole(&x)
            })
        };
        let expected = solve(0);
        assert!((1..4).all(|late| solve(late) == expected), "{method:?}");
    }
}

/// The count of a whole solve.
fn traffic(p: usize, method: Method, max_iters: usize) -> Vec<(Traffic, u64, u64)> {
    let a = bt_testkit::stencil::<f64>(6, 0.0);
    succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(36, p))?;
        let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
        let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; d.rows().own().len()]);
        let before = comm.traffic();
        Krylov::new(&d, method).solve(&d, &mut Identity::new(&d), &b, &mut x, &stop, &mut ())?;
        Ok((comm.traffic().since(before), d.halo().n_sends() as u64, d.halo().n_sent() as u64))
    })
}

#[test]
fn an_iteration_costs_what_the_header_says() {
    // Of each method: products and numbers summed in an iteration, for GMRES in the steps 3 and 4 (from 0).
    let table = [
        (Method::Cg, 1, vec![1, 1]),
        (Method::FlexibleCg, 1, vec![1, 1, 1]),
        (Method::BiCgStab, 2, vec![2, 1, 2, 2]),
        (Method::Gmres { restart: 20 }, 1, vec![5, 1]),
        (Method::Fgmres { restart: 20 }, 1, vec![5, 1]),
    ];
    for (method, products, sums) in table {
        for p in [2, 4] {
            // One iteration more.
            let (longer, shorter) = (traffic(p, method, 4), traffic(p, method, 3));
            for ((long, sends, sent), (short, ..)) in longer.into_iter().zip(shorter) {
                let more = long.since(short);
                assert_eq!((more.messages, more.bytes), (products * sends, products * 8 * sent), "{method:?} on {p}");
                let numbers: u64 = sums.iter().map(|n| n + 1).sum();
                assert_eq!(
                    (more.collectives, more.collective_bytes),
                    (sums.len() as u64, 8 * numbers),
                    "{method:?} on {p}"
                );
            }
        }
    }
}

#[test]
fn wrong_lengths_are_one_error_on_all_ranks() {
    let a = wind::<f64>(4);
    let results = run(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(16, 3))?;
        let rows = d.rows().own().len();
        let (b, mut x) = (vec![1.0; rows + usize::from(comm.rank() == 1)], vec![0.0; rows]);
        let mut krylov = Krylov::new(&d, Method::Cg);
        krylov.solve(&d, &mut Identity::new(&d), &b, &mut x, &StopCriterion::default(), &mut ()).map(|_| ())
    });
    for result in &results {
        assert!(
            matches!(result, Err(Error::OnRank { rank: 1, message, .. }) if message.contains("has 6 entries for 5 rows")),
            "{result:?}"
        );
    }
}

/// Fails on one rank after some applications.
struct Failing {
    rows: usize,
    left: usize,
}

impl DistributedPreconditioner<f64> for Failing {
    fn rows(&self) -> usize {
        self.rows
    }
    fn name(&self) -> &'static str {
        "failing"
    }
    fn kind(&self) -> bt_iter::PreconditionerKind {
        bt_iter::PreconditionerKind::General
    }
    fn apply(&mut self, r: &[f64], z: &mut [f64]) -> Result<()> {
        if self.left == 0 {
            return Err(Error::OutOfStep { rank: 2, message: "a device fault".into() });
        }
        self.left -= 1;
        z.copy_from_slice(r);
        Ok(())
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}

#[test]
fn a_rank_that_fails_in_the_middle_ends_all() {
    let a = bt_testkit::stencil::<f64>(6, 0.0);
    for method in METHODS {
        let results = run(4, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(36, 4))?;
            let rows = d.rows().own().len();
            let left = if comm.rank() == 2 { 5 } else { usize::MAX };
            let stop = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
            let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; rows]);
            Krylov::new(&d, method).solve(&d, &mut Failing { rows, left }, &b, &mut x, &stop, &mut ()).map(|_| ())
        });
        assert!(matches!(&results[2], Err(Error::OutOfStep { .. })), "{method:?}: {results:?}");
        for rank in [0, 1, 3] {
            let lost = |r: &Result<()>| matches!(r, Err(Error::Lost { rank: 2, message }) if message.contains("a device fault"));
            assert!(lost(&results[rank]), "{method:?}: {results:?}");
        }
    }
}
