//! Stationary distributions over ranks beside exact ones and those of one process; the count of the header; chains that have none.

mod common;

use bt_formats::{Csr, Scaled};
use bt_parallel::{DistributedCsr, Division, Error, FaultKind, Result, StationaryDistribution, ThreadComm};
use bt_queue::{Generator, Stationary};
use bt_testkit::csr;
use common::{RANKS, run, succeed};

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
        assert_eq!((traffic.collectives, traffic.collective_bytes), (1, 64 * k * k));
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
    // States 3 to 5 are never left for the others.
    let trap = |n| csr(n, |i: usize, j: usize| if i.abs_diff(j) == 1 && (i, j) != (5, 6) { 1.0 } else { 0.0 });
    for p in [1, 2, 3, 4] {
        refused(trap(12), p, FaultKind::Singular, "reducible");
    }
    let negative = csr(8, |i: usize, j: usize| if (i, j) == (6, 7) { -1.0 } else { f64::from(i.abs_diff(j) == 1) });
    refused(negative, 2, FaultKind::Input, "from state 6 to state 7 is -1");
    let wide = csr(9, |i: usize, j: usize| f64::from(i.abs_diff(j) == 4 || i.abs_diff(j) == 1));
    refused(wide, 3, FaultKind::Input, "fewer than the 4");
}
