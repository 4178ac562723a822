//! Block iterations over ranks beside those of bt-iter: the same iterations, whatever the number of ranks; counts and faults.

use crate::common::{RANKS, distance, run, succeed, vector, wind};
use bt_direct::SparseLu;
use bt_formats::{
    BlockTridiagonal, Breakdown, Csr, HybridLayout, LinearOperator, Outcome, Partition, SolveReport, StopCriterion, c64,
};
use bt_iter::{Factored, Hbisa, Identity, Preconditioner, Relaxation, Sweep};
use bt_parallel::{
    BlockIteration, BlockSweep, Comm, DistributedCsr, Division, Error, FaultKind, Number, Result, Traffic,
};

/// Blocks of a rank.
fn own_blocks(blocks: &Partition, division: &Division, rank: usize) -> Partition {
    let own = |j: &usize| division.owner()[blocks.range(*j).start] as usize == rank;
    Partition::from_sizes((0..blocks.n_blocks()).filter(own).map(|j| blocks.size(j))).unwrap()
}

fn solve<T: Number>(
    a: &Csr<T>,
    blocks: &Partition,
    p: usize,
    sweep: BlockSweep,
    stop: &StopCriterion,
) -> Vec<(SolveReport, Vec<T>)> {
    let division = Division::by_blocks(blocks, p);
    succeed(p, |comm| {
        let d = DistributedCsr::from_replicated(comm, a, &division)?;
        let mut hbisa = BlockIteration::new(&d, own_blocks(blocks, &division, comm.rank()), sweep)?;
        let (b, mut x) = (d.own_entries(&vector(a.nrows(), 1)), vec![T::default(); d.rows().own().len()]);
        let report = hbisa.solve(&b, &mut x, stop, &mut ())?;
        Ok((report, d.whole(&x)?))
    })
}

fn agrees<T: Number>(a: &Csr<T>, blocks: &Partition, rtol: f64) {
    let split = BlockTridiagonal::from_csr(a, blocks.clone(), HybridLayout::default()).unwrap();
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    let sweeps = [
        (Sweep::Jacobi, BlockSweep::Jacobi),
        (Sweep::RedBlack, BlockSweep::RedBlack { omega: 1.0 }),
        (Sweep::Sor(Relaxation::Fixed(1.2)), BlockSweep::RedBlack { omega: 1.2 }),
    ];
    for (serial, sweep) in sweeps {
        let mut x = vec![T::default(); a.nrows()];
        let expected = Hbisa::new(&split, serial).unwrap().solve(&vector(a.nrows(), 1), &mut x, &stop, &mut ());
        for p in RANKS {
            for (report, found) in solve(a, blocks, p, sweep, &stop) {
                assert_eq!(
                    (report.outcome, expected.outcome),
                    (Outcome::Converged, Outcome::Converged),
                    "{sweep:?} on {p}"
                );
                assert!(
                    report.iterations.abs_diff(expected.iterations) <= 1,
                    "{sweep:?} on {p}: {}",
                    report.iterations
                );
                assert_eq!(report.method, expected.method);
                assert!(distance(&found, &x) <= 1e2 * rtol && report.certificate.relative_residual <= 1.1 * rtol);
            }
        }
    }
}

#[test]
fn iterates_do_not_depend_on_the_ranks() {
    // Five lines of a grid; more ranks than blocks from six on.
    agrees(&wind::<f64>(5), &Partition::uniform(25, 5).unwrap(), 1e-8);
    let blocks = Partition::from_sizes([2, 1, 3, 2, 2, 1, 4]).unwrap();
    let a = bt_testkit::csr(15, |i, j| {
        let apart = blocks.block_of(i).abs_diff(blocks.block_of(j));
        let v = if i == j { 9.0 } else { ((i + 3 * j) % 5) as f64 / 5.0 - 0.3 };
        if apart > 1 { c64::new(0.0, 0.0) } else { c64::new(v, 0.1) }
    });
    agrees(&a, &blocks, 1e-8);
}

/// Exact solvers of the blocks in place of their factors: the same iterations, whichever colours a rank has.
#[test]
fn blocks_may_have_solvers_of_their_own() {
    let a = wind::<f64>(5);
    let blocks = Partition::uniform(25, 5).unwrap();
    let stop = StopCriterion::default();
    for sweep in [BlockSweep::Jacobi, BlockSweep::RedBlack { omega: 1.0 }, BlockSweep::RedBlack { omega: 1.2 }] {
        for p in RANKS {
            let division = Division::by_blocks(&blocks, p);
            let found = succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                let own = own_blocks(&blocks, &division, comm.rank());
                let mut rows = 0;
                let mut hbisa = BlockIteration::with_solver(&d, own, sweep, |part, sizes| {
                    assert_eq!((part.nrows(), sizes.min_max_size()), (sizes.n(), (5, 5)));
                    rows += part.nrows();
                    Ok(Box::new(Factored::new(SparseLu::new(part)?)))
                })?;
                assert_eq!(rows, d.rows().own().len());
                let (b, mut x) = (d.own_entries(&vector(25, 1)), vec![0.0; d.rows().own().len()]);
                let report = hbisa.solve(&b, &mut x, &stop, &mut ())?;
                Ok((report, d.whole(&x)?))
            });
            for ((report, x), (expected, y)) in found.iter().zip(solve::<f64>(&a, &blocks, p, sweep, &stop)) {
                let told = format!("{sweep:?} on {p}");
                assert_eq!((report.outcome, report.iterations), (Outcome::Converged, expected.iterations), "{told}");
                assert_eq!(report.method, expected.method, "{told}");
                assert!(distance(x, &y) <= 1e-12, "{told}: {:e}", distance(x, &y));
            }
        }
    }
}

#[test]
fn divergence_and_limits_are_the_same_outcome_on_all_ranks() {
    let a = bt_testkit::chain::<f64>(12, 1.0, -2.0);
    let blocks = Partition::uniform(12, 1).unwrap();
    for (report, _) in solve(&a, &blocks, 3, BlockSweep::Jacobi, &StopCriterion::default()) {
        assert_eq!(report.outcome, Outcome::Breakdown(Breakdown::Diverged));
        // The best iterate is the start.
        assert!(report.certificate.relative_residual <= 1.0);
    }
    let stop = StopCriterion { rtol: 0.0, max_iters: 2, ..StopCriterion::default() };
    for (report, _) in solve(&wind::<f64>(5), &Partition::uniform(25, 5).unwrap(), 4, BlockSweep::Jacobi, &stop) {
        assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 2));
    }
}

#[test]
fn a_sweep_costs_what_the_header_says() {
    let a = wind::<f64>(6);
    let blocks = Partition::uniform(36, 6).unwrap();
    for p in [2, 3] {
        let division = Division::by_blocks(&blocks, p);
        for (sweep, exchanges) in [(BlockSweep::Jacobi, 1), (BlockSweep::RedBlack { omega: 1.0 }, 2)] {
            let count = |max_iters| {
                succeed(p, |comm| {
                    let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                    let mut hbisa = BlockIteration::new(&d, own_blocks(&blocks, &division, comm.rank()), sweep)?;
                    let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; d.rows().own().len()]);
                    let before = comm.traffic();
                    let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
                    hbisa.solve(&b, &mut x, &stop, &mut ())?;
                    Ok((comm.traffic().since(before), d.halo().n_sends() as u64, d.halo().n_sent() as u64))
                })
            };
            for ((long, sends, sent), (short, ..)) in count(4).into_iter().zip(count(3)) {
                let (messages, bytes) = (exchanges * sends, exchanges * 8 * sent);
                assert_eq!(long.since(short), Traffic { messages, bytes, collectives: 1, collective_bytes: 16 });
            }
        }
    }
}

#[test]
fn faults_are_one_error_on_all_ranks() {
    let blocks = Partition::uniform(9, 3).unwrap();
    let division = Division::by_blocks(&blocks, 3);
    let of = |a: &Csr<f64>, blocks_of: &(dyn Fn(usize) -> Partition + Sync), sweep| -> Vec<Result<()>> {
        run(3, |comm| {
            let d = DistributedCsr::from_replicated(comm, a, &division)?;
            BlockIteration::new(&d, blocks_of(comm.rank()), sweep).map(|_| ())
        })
    };
    // A singular block of a nonsingular matrix, on rank 1.
    let a = bt_testkit::csr(9, |i, j| match (i, j) {
        (4, 0) | (0, 4) => 1.0,
        (4, _) | (_, 4) => 0.0,
        _ if i == j => 2.0,
        _ => 0.0,
    });
    let one = |_: usize| Partition::uniform(3, 3).unwrap();
    let singular = of(&a, &one, BlockSweep::Jacobi);
    assert!(
        singular.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 1, kind: FaultKind::Singular, .. }))),
        "{singular:?}"
    );
    for sweep in [BlockSweep::Jacobi, BlockSweep::RedBlack { omega: 1.0 }] {
        let results = run(3, |comm| {
            let d = DistributedCsr::from_replicated(comm, &a, &division)?;
            let solver = |part: &Csr<f64>, _: &Partition| -> bt_direct::Result<Box<dyn Preconditioner<f64>>> {
                Ok(Box::new(Factored::new(SparseLu::new(part)?)))
            };
            BlockIteration::with_solver(&d, one(comm.rank()), sweep, solver).map(|_| ())
        });
        let told = "its diagonal blocks of 3 rows: the matrix is structurally singular: no pivot in column 4";
        assert!(
            results.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 1, kind: FaultKind::Singular, message, .. }) if message.contains(told))),
            "{sweep:?}: {results:?}"
        );
    }
    let a = wind::<f64>(3);
    let wrong = run(3, |comm| {
        let d = DistributedCsr::from_replicated(comm, &a, &division)?;
        let solver = |part: &Csr<f64>, _: &Partition| -> bt_direct::Result<Box<dyn Preconditioner<f64>>> {
            Ok(Box::new(Identity::new(if comm.rank() == 1 { 2 } else { part.nrows() })))
        };
        BlockIteration::with_solver(&d, one(comm.rank()), BlockSweep::Jacobi, solver).map(|_| ())
    });
    assert!(
        wrong.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 1, message, .. }) if message.contains("none is for 2 rows, not 3"))),
        "{wrong:?}"
    );
    let short = of(&a, &|rank| Partition::uniform(if rank == 2 { 2 } else { 3 }, 3).unwrap(), BlockSweep::Jacobi);
    assert!(short.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 2, kind: FaultKind::Input, .. }))), "{short:?}");
    for omega in [0.0, 2.0, f64::NAN] {
        let refused = of(&a, &one, BlockSweep::RedBlack { omega });
        assert!(refused.iter().all(|r| matches!(r, Err(Error::OnRank { rank: 0, .. }))), "{refused:?}");
    }
}
