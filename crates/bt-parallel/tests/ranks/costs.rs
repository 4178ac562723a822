//! Times, counts and the model: what ranks report is what they did, and the model has the counts of real ranks.

use std::thread::sleep;
use std::time::Duration;

use crate::common::{RANKS, scattered, succeed, vector, wind};
use bt_formats::{LinearOperator, StopCriterion};
use bt_parallel::{
    Comm, Costs, Counts, DistributedCsr, Division, Identity, Krylov, Machine, Method, RankCost, Tag, Timed, Traffic,
};

/// An exchange with a pause behind it, then a sum that rank 1 is late for.
fn measured(pause: Duration) -> Vec<(RankCost, Costs)> {
    succeed(2, |comm| {
        let timed = Timed::new(comm);
        let meter = timed.meter();
        let other = 1 - comm.rank();
        timed.exchange(Tag(0), &[(other, &[1.0f64][..])], &mut [(other, &mut [0.0][..])], || sleep(pause))?;
        if comm.rank() == 1 {
            sleep(pause);
        }
        timed.all_sum(&mut [1.0])?;
        let half = timed.split(0, 0)?;
        half.barrier()?;
        assert_eq!(half.spent(), timed.spent());
        let cost = meter.stop(&timed);
        Ok((cost, cost.over_ranks(&timed)?))
    })
}

#[test]
fn time_behind_an_exchange_is_computation_and_waiting_is_not() {
    let pause = Duration::from_millis(20);
    let costs = measured(pause);
    for (cost, all) in &costs {
        assert_eq!(*all, costs[0].1);
        assert!(cost.seconds - cost.communication >= 0.0199);
        assert_eq!((cost.traffic.messages, cost.traffic.bytes, cost.traffic.collectives), (1, 8, 2));
        assert!(all.computation.most >= 0.0399, "{all}");
        assert_eq!((all.messages.least, all.bytes.mean, all.collectives.most), (1.0, 8.0, 2.0));
        let text = all.to_string();
        assert!(text.starts_with("2 ranks") && text.contains("communication") && text.lines().count() == 8, "{text}");
    }
    // Rank 0 waits for rank 1, unless the system has kept rank 0 as long.
    assert!((0..20).any(|_| measured(pause)[0].0.communication >= 0.015));
}

#[test]
fn the_model_counts_what_ranks_count() {
    for p in 1..=12 {
        for (a, division) in [
            (wind::<f64>(7), Division::contiguous(49, p)),
            (wind::<f64>(7), Division::site_expansion(&wind::<f64>(7), p).unwrap()),
            (scattered::<f64>(30), Division::contiguous(30, p)),
        ] {
            let counts = Counts::new(&a, &division);
            succeed(p, |comm| {
                let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                let rank = comm.rank();
                let own = [d.halo().n_sends(), d.halo().n_sent(), d.rows().own().len()].map(|n| n as u64);
                assert_eq!(own, [counts.sends[rank], counts.sent[rank], counts.rows[rank]]);
                assert_eq!(counts.entries.iter().sum::<u64>(), d.nnz());
                // A product sends what an iteration with one does, an inner product is one sum.
                let (x, mut y) = (d.own_entries(&vector(a.nrows(), 1)), vec![0.0; d.rows().own().len()]);
                let before = comm.traffic();
                d.apply(1.0, &x, 0.0, &mut y)?;
                let product = comm.traffic().since(before);
                let sent = (counts.sends[rank], 8 * counts.sent[rank]);
                assert_eq!((product.messages, product.bytes, product.collectives), (sent.0, sent.1, 0));
                let of_model = counts.iteration(Method::Cg, 8)[rank].traffic;
                assert_eq!((of_model.messages, of_model.bytes), sent);
                let before = comm.traffic();
                comm.all_sum(&mut [1.0, 2.0])?;
                let sum = comm.traffic().since(before);
                let alone = p == 1;
                assert_eq!((sum.collectives, sum.collective_bytes), if alone { (0, 0) } else { (1, 16) });
                Ok(())
            });
        }
    }
}

#[test]
fn ranks_count_for_any_number_of_others() {
    for (a, n) in [(wind::<f64>(7), 49), (scattered::<f64>(30), 30), (bt_testkit::chain::<f64>(5, 2.0, -1.0), 5)] {
        for ranks in RANKS {
            // Any rows in any order, and consecutive ones.
            let divisions = [Division::contiguous(n, ranks), Division::site_expansion(&a, ranks).unwrap()];
            for (division, p) in divisions.iter().flat_map(|d| [1, 2, 3, 5, 8, 64].map(|p| (d, p))) {
                let expected = Counts::new(&a, &Division::contiguous(n, p));
                for found in succeed(ranks, |comm| {
                    Counts::of_contiguous(&DistributedCsr::from_replicated(comm, &a, division)?, p)
                }) {
                    assert_eq!(found, expected, "{p} counted on {ranks}");
                }
            }
        }
    }
}

#[test]
fn an_iteration_of_the_model_is_one_of_the_ranks() {
    let a = bt_testkit::stencil::<f64>(6, 0.0);
    // Whatever they have: consecutive rows and domains.
    let domains = |p| Division::site_expansion(&a, p).unwrap();
    for division in (1..=12).flat_map(|p| [Division::contiguous(36, p), domains(p)]) {
        let p = division.n_ranks();
        let counts = Counts::new(&a, &division);
        for (method, first) in
            [(Method::Cg, 3), (Method::FlexibleCg, 3), (Method::BiCgStab, 3), (Method::Gmres { restart: 5 }, 2)]
        {
            let traffic = |max_iters| {
                succeed(p, |comm| {
                    let d = DistributedCsr::from_replicated(comm, &a, &division)?;
                    // GMRES in the middle of a cycle has the mean of it.
                    let method = if let Method::Gmres { .. } = method { Method::Gmres { restart: 20 } } else { method };
                    let stop = StopCriterion { rtol: 0.0, max_iters, ..StopCriterion::default() };
                    let (b, mut x) = (d.own_entries(&vector(36, 1)), vec![0.0; d.rows().own().len()]);
                    let before = comm.traffic();
                    Krylov::new(&d, method).solve(&d, &mut Identity::new(&d), &b, &mut x, &stop, &mut ())?;
                    Ok(comm.traffic().since(before))
                })
            };
            let measured: Vec<Traffic> =
                traffic(first + 1).into_iter().zip(traffic(first)).map(|(long, short)| long.since(short)).collect();
            let modelled: Vec<Traffic> = counts.iteration(method, 8).iter().map(|work| work.traffic).collect();
            assert_eq!(measured, modelled, "{method:?} on {p}");
        }
    }
}

#[test]
fn latency_takes_over_where_ranks_are_many() {
    let a = bt_testkit::grid::<f64>([64, 64, 1]);
    let machine = Machine { latency: 1e-6, bandwidth: 1e10, flop_rate: 1e9 };
    let seconds = |p: usize| Counts::new(&a, &Division::contiguous(4096, p)).seconds(Method::Cg, 8, &machine);
    let (one, four, all) = (seconds(1), seconds(4), seconds(4096));
    // 2·nnz + 10·n flops on one rank, nnz = 5·64² − 4·64.
    let flops = f64::from(2 * (5 * 4096 - 256) + 10 * 4096);
    assert!((one - flops / 1e9).abs() < 1e-15, "{one:e} for {flops:e} flops");
    assert!(four < one / 2.0);
    // Two sums of 12 levels, out and back.
    assert!(all > 2.0 * 12.0 * 2.0 * 1e-6 && all < 1e-4, "{all:e}");
}
