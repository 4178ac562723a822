//! Stationary distributions over ranks beside exact ones and those of one process; the count of the header; chains that have none.

use crate::common::{RANKS, run, succeed};
use bt_formats::{Csr, Scaled};
use bt_parallel::{DistributedCsr, Division, Error, FaultKind, Result, StationaryDistribution, ThreadComm};
use bt_queue::{Generator, Stationary};
use bt_testkit::csr;

fn distribution(comm: &ThreadComm, q: &Csr<f64>, division: &Division) -> Result<StationaryDistribution> {
    StationaryDistribution::new(&DistributedCsr::from_replicated(comm, q, division)?)
}

/// π of all states, put together from those of the ranks; balance and bound are the same on all of them.
fn over_ranks(q: &Csr<f64>, division: &Division) -> Vec<Scaled> {
    let found = succeed(division.n_ranks(), |comm| distribution(comm, q, division));
    assert!(found.iter().all(|pi| pi.balance() == found[0].balance() && pi.error_bound() == found[0].error_bound()));
    assert!(found[0].balance() < 1e-13 && found[0].error_bound() < 1e-6, "{:?}", found[0].balance());
    found.iter().flat_map(|pi| pi.own().iter().copied()).collect()
}

/// Entry by entry, however small they are.
fn assert_alike(found: &[Scaled], expected: &[Scaled]) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let off = if b.is_zero() { a.mantissa() } else { (*a / *b).to_f64() - 1.0 };
        assert!(off.abs() < 1e-12, "state {i}: {a:?} for {b:?}");
    }
}

/// Blocks of `k` states, rates of all sizes between neighbouring blocks, some of them missing.
fn blocks(n: usize, k: usize, seed: usize, smallest: i32) -> Csr<f64> {
    csr(n, |i, j| {
        let h: usize = (i * 7919 + j * 104_729 + seed * 31) % 1009;
        let near = (i / k).abs_diff(j / k) <= 1;
        // States next to each other always have rates: the chain is irreducible.
        if i == j || !near || (h.is_multiple_of(3) && i.abs_diff(j) != 1) {
            0.0
        } else {
            (1.0 + h as f64) * 10f64.powi(-(h as i32 * smallest / 1009))
        }
    })
}

fn alone(q: &Csr<f64>) -> Vec<Scaled> {
    Stationary::gth(&Generator::from_rates_alone(q.clone()).unwrap()).unwrap().probabilities().to_vec()
}

#[test]
fn chains_of_births_and_deaths_have_their_product_form() {
    let n = 400;
    let q = csr(n, |i, j| {
        if j == i + 1 {
            1e-3
        } else if i == j + 1 {
            1.0 + (i % 5) as f64
        } else {
            0.0
        }
    });
    let mut expected = vec![Scaled::ONE];
    for i in 1..n {
        expected.push(expected[i - 1] * Scaled::new(1e-3) / Scaled::new(1.0 + (i % 5) as f64));
    }
    let sum = expected.iter().fold(Scaled::ZERO, |sum, &x| sum + x);
    for x in &mut expected {
        *x = *x / sum;
    }
    assert!(expected[n - 1].log10() < -1300.0);
    for p in RANKS {
        assert_alike(&over_ranks(&q, &Division::contiguous(n, p)), &expected);
    }
}

#[test]
fn blocks_are_as_on_one_process_to_the_last_digits() {
    for (n, k, smallest) in [(61, 1, 3), (60, 3, 6), (64, 4, 12), (63, 5, 0)] {
        let q = blocks(n, k, n, smallest);
        let expected = alone(&q);
        for p in RANKS {
            // Rates reach 2k − 1 states.
            assert_alike(&over_ranks(&q, &Division::contiguous_of_at_least(n, p, 2 * k)), &expected);
        }
    }
}

#[test]
fn nearly_decoupled_chains_and_rates_beyond_products_of_doubles() {
    // Two halves that change places once in 10²⁰ steps.
    let q = csr(40, |i: usize, j: usize| match (i.abs_diff(j), i.max(j) == 20) {
        (1, true) => 1e-20,
        (1, false) => 1.0 + (i % 3) as f64,
        _ => 0.0,
    });
    for p in [1, 2, 3, 4] {
        assert_alike(&over_ranks(&q, &Division::contiguous(40, p)), &alone(&q));
    }
    let far = blocks(48, 3, 5, 250);
    for p in [1, 2, 4] {
        assert_alike(&over_ranks(&far, &Division::contiguous_of_at_least(48, p, 6)), &alone(&far));
    }
}

#[test]
fn ranks_without_states_and_one_state_alone() {
    assert_eq!(over_ranks(&csr(1, |_, _| 0.0), &Division::contiguous(1, 3)), [Scaled::ONE]);
    let q = blocks(12, 2, 1, 2);
    assert_alike(&over_ranks(&q, &Division::contiguous_of_at_least(12, 7, 4)), &alone(&q));
}

#[test]
fn states_that_are_never_entered_have_no_probability() {
    // State 0 is left and not entered.
    let q = csr(6, |i: usize, j: usize| if i.abs_diff(j) == 1 && j != 0 { 1.0 } else { 0.0 });
    for p in [1, 2, 3] {
        let pi = over_ranks(&q, &Division::contiguous(6, p));
        assert!(pi[0].is_zero() && pi[1..].iter().all(|x| (x.to_f64() - 0.2).abs() < 1e-15), "{pi:?}");
    }
}

/// A path on which states `from`.. to `end` are entered and not left.
fn trap(n: usize, from: usize, end: usize) -> Csr<f64> {
    let leaves = move |i: usize, j: usize| (from..end).contains(&i) && !(from..end).contains(&j);
    csr(n, move |i, j| if i.abs_diff(j) == 1 && !leaves(i, j) { 1.0 + ((i + j) % 4) as f64 } else { 0.0 })
}

#[test]
fn one_closed_class_anywhere_has_all_the_probability() {
    for (from, end) in [(0, 1), (0, 6), (3, 6), (5, 9), (11, 12), (4, 5), (7, 12)] {
        let (q, expected) = (trap(12, from, end), alone(&trap(12, from, end)));
        for p in [1, 2, 3, 4, 5, 12] {
            let division = Division::contiguous(12, p);
            assert_alike(&over_ranks(&q, &division), &expected);
            let found = succeed(p, |comm| distribution(comm, &q, &division));
            assert!(found.iter().all(|pi| pi.recurrent() == (end - from) as u64), "{from}..{end} on {p}");
        }
    }
    // Two states far apart, on different ranks, with transient ones between them.
    let far = csr(10, |i: usize, j: usize| match (i, j) {
        (1, 6) | (6, 1) => 2.0,
        (1 | 6, _) => 0.0,
        _ => f64::from(i.abs_diff(j) == 1),
    });
    for p in [1, 2] {
        assert_alike(&over_ranks(&far, &Division::contiguous(10, p)), &alone(&far));
    }
}

#[test]
fn the_report_is_that_of_one_process() {
    let q = blocks(60, 3, 7, 9);
    let expected = Stationary::gth(&Generator::from_rates_alone(q.clone()).unwrap()).unwrap();
    for p in [1, 3, 6] {
        let division = Division::contiguous_of_at_least(60, p, 6);
        for pi in succeed(p, |comm| distribution(comm, &q, &division)) {
            assert_eq!((pi.outcome(), pi.recurrent()), (expected.outcome(), expected.recurrent() as u64));
            let (state, probability) = pi.mode();
            assert_eq!(state as usize, expected.mode());
            assert_alike(&[probability, pi.least()], &[expected.probability(expected.mode()), expected.least()]);
            assert!(pi.balance() < 1e-14 && pi.relative_residual() < 1e-14);
            let flow = pi.residual() / pi.relative_residual();
            let theirs = expected.residual() / expected.relative_residual();
            assert!((flow / theirs - 1.0).abs() < 1e-12, "{flow} for {theirs}");
        }
    }
}

#[test]
fn the_count_is_that_of_the_header() {
    let (n, p) = (60, 3);
    let (q, k) = (csr(n, |i: usize, j: usize| if i != j && i.abs_diff(j) <= 2 { 1.0 } else { 0.0 }), 2u64);
    let division = Division::contiguous(n, p);
    let traffic = succeed(p, |comm| Ok(distribution(comm, &q, &division)?.traffic()));
    for (rank, traffic) in traffic.iter().enumerate() {
        let (onwards, neighbours) = (u64::from(rank + 1 < p), u64::from(rank > 0) + u64::from(rank + 1 < p));
        assert_eq!(
            (traffic.messages, traffic.bytes),
            (onwards + neighbours, onwards * 8 * k * k + neighbours * 16 * k)
        );
        assert_eq!((traffic.collectives, traffic.collective_bytes), (1, 32 * k * (2 * k + 1)));
    }
}

#[test]
fn the_same_error_on_all_ranks() {
    let refused = |q: Csr<f64>, p: usize, kind: FaultKind, part: &str| {
        let division = Division::contiguous(bt_formats::LinearOperator::nrows(&q), p);
        let errors: Vec<Error> =
            run(p, |comm| distribution(comm, &q, &division)).into_iter().map(|r| r.unwrap_err()).collect();
        assert!(errors.iter().all(|e| *e == errors[0]));
        let Error::OnRank { kind: found, message, .. } = &errors[0] else { panic!("{:?}", errors[0]) };
        assert!(*found == kind && message.contains(part), "{message}");
    };
    refused(csr(0, |_, _| 0.0), 2, FaultKind::Input, "no states");
    // 0 to 2 and 9 to 11 are never left, 5 is absorbing; on one rank, across two, and at the end of one.
    let traps = csr(12, |i: usize, j: usize| {
        f64::from(i.abs_diff(j) == 1 && ![(2, 3), (5, 4), (5, 6), (9, 8)].contains(&(i, j)))
    });
    for p in [1, 2, 3, 4, 5, 12] {
        refused(traps.clone(), p, FaultKind::Singular, "3 closed classes (that of state");
    }
    let absorbing = csr(9, |_, _| 0.0);
    refused(
        absorbing,
        2,
        FaultKind::Singular,
        "9 closed classes (that of state 0, that of state 1, that of state 2, …;",
    );
    let negative = csr(8, |i: usize, j: usize| if (i, j) == (6, 7) { -1.0 } else { f64::from(i.abs_diff(j) == 1) });
    refused(negative, 2, FaultKind::Input, "from state 6 to state 7 (from 0) is -1");
    let wide = csr(9, |i: usize, j: usize| f64::from(i.abs_diff(j) == 4 || i.abs_diff(j) == 1));
    refused(wide, 3, FaultKind::Input, "fewer than the 4");
}
