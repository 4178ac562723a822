//! Matrices of chains over ranks: rates as those of one process, and the same words for what is no such matrix.

use crate::common::{RANKS, run, succeed};
use bt_formats::Csr;
use bt_parallel::{
    ChainEntries, Comm, DistributedCsr, Division, Error, FaultKind, Result, StationaryDistribution, ThreadComm,
};
use bt_queue::{Generator, Stationary};
use bt_testkit::csr;

fn checked(comm: &ThreadComm, a: &Csr<f64>, entries: ChainEntries) -> Result<Vec<f64>> {
    let n = bt_formats::LinearOperator::nrows(a);
    let a = DistributedCsr::from_replicated(comm, a, &Division::contiguous_of_at_least(n, comm.size(), 2))?;
    let q = entries.check(a)?;
    Ok(StationaryDistribution::new(&q)?.own().iter().map(|p| p.to_f64()).collect())
}

/// Counts of steps by 1 and 2, either way, and of none.
fn counts(n: usize) -> Csr<f64> {
    csr(n, |i: usize, j: usize| if i.abs_diff(j) <= 2 { (1 + (3 * i + j) % 5) as f64 } else { 0.0 })
}

fn generator(n: usize) -> Csr<f64> {
    Generator::from_rates_alone(counts(n)).unwrap().into_matrix()
}

/// Rows divided by their sums, and each entry rounded to so many digits.
fn probabilities(n: usize, digits: i32) -> Csr<f64> {
    let mut a = counts(n);
    let unit = 10f64.powi(digits);
    let row_ptr = a.row_ptr().to_vec();
    for i in 0..n {
        let row = &mut a.values_mut()[row_ptr[i] as usize..row_ptr[i + 1] as usize];
        let sum: f64 = row.iter().sum();
        for v in row {
            *v = (*v / sum * unit).round() / unit;
        }
    }
    a
}

/// A generator whose rates have so many digits, and its diagonal too.
fn rounded(n: usize, digits: i32) -> Csr<f64> {
    let mut a = generator(n);
    let unit = 10f64.powi(digits);
    for v in a.values_mut() {
        *v = (*v / 7.0 * unit).round() / unit;
    }
    a
}

#[test]
fn every_kind_of_matrix_has_the_distribution_of_one_process() {
    let n = 24;
    let cases = [
        (ChainEntries::Generator, generator(n), Generator::new(generator(n))),
        (ChainEntries::RoundedGenerator, rounded(n, 4), Generator::from_rounded(rounded(n, 4))),
        (ChainEntries::Rates, counts(n), Generator::from_rates_alone(counts(n))),
        (ChainEntries::Transitions, probabilities(n, 14), Generator::from_stochastic(&probabilities(n, 14))),
        (ChainEntries::Weights, counts(n), Generator::from_weights(counts(n))),
        (ChainEntries::Weights, probabilities(n, 4), Generator::from_weights(probabilities(n, 4))),
    ];
    for (entries, a, expected) in cases {
        let expected = Stationary::gth(&expected.unwrap()).unwrap().to_f64();
        for p in RANKS {
            let found: Vec<f64> = succeed(p, |comm| checked(comm, &a, entries)).concat();
            assert_eq!(found.len(), n);
            assert!(found.iter().zip(&expected).all(|(x, y)| (x / y - 1.0).abs() < 1e-13), "{entries:?} on {p}");
        }
    }
}

#[test]
fn the_norm_is_that_of_the_divided_rows() {
    for norm in succeed(3, |comm| {
        let a = DistributedCsr::from_replicated(comm, &counts(9), &Division::contiguous(9, 3))?;
        Ok(ChainEntries::Weights.check(a)?.norm_inf())
    }) {
        assert!((norm - 1.0).abs() < 1e-15, "{norm}");
    }
}

#[test]
fn other_matrices_are_refused_and_recognised() {
    let n = 12;
    let p = probabilities(n, 14);
    let huge = csr(3, |i: usize, j: usize| if i == j { -1.7e308 } else { 1.7e308 });
    let negative = csr(4, |i: usize, j: usize| if (i, j) == (2, 3) { -0.5 } else { f64::from(i.abs_diff(j) == 1) });
    let unlikely = csr(4, |i: usize, j: usize| match (i, j) {
        (0, 1) | (1, 0) | (3, 2) => 1.0,
        (2, 1) => 1.5,
        (2, 3) => -0.5,
        _ => 0.0,
    });
    let empty = csr(4, |i: usize, j: usize| if i == 3 { 0.0 } else { f64::from(j == i + 1) });
    let cases: [(ChainEntries, Csr<f64>, &[&str]); 14] = [
        (ChainEntries::Generator, p.clone(), &["row 0 (from 0) sums to", "not to zero", "the rows sum to 1"]),
        (ChainEntries::Generator, p.transpose(), &["the columns sum to 1"]),
        (ChainEntries::Generator, generator(n).transpose(), &["not a generator; the columns sum to zero"]),
        (ChainEntries::RoundedGenerator, generator(n).transpose(), &["the columns sum to zero"]),
        (ChainEntries::Generator, rounded(n, 4), &["the rounding of a few printed digits"]),
        (ChainEntries::Generator, counts(n), &["the entries are whole numbers"]),
        (ChainEntries::Rates, negative, &["the rate from state 2 to state 3 (from 0) is -0.5"]),
        (ChainEntries::Rates, huge, &["sum to more than the largest number"]),
        (ChainEntries::Transitions, unlikely, &["the probability of going from state 2 to state 3"]),
        (ChainEntries::Transitions, generator(n), &["the rows sum to zero, as those of a generator do"]),
        (ChainEntries::Transitions, counts(n), &["no transition probabilities; the entries are whole numbers"]),
        (ChainEntries::Transitions, empty.clone(), &["row 3 (from 0) is empty"]),
        (ChainEntries::Weights, empty, &["row 3 (from 0) is empty"]),
        (ChainEntries::Weights, p.transpose(), &["the columns sum to 1"]),
    ];
    for (entries, a, parts) in cases {
        for ranks in [1, 2, 4] {
            let errors: Vec<Error> =
                run(ranks, |comm| checked(comm, &a, entries)).into_iter().map(Result::unwrap_err).collect();
            assert!(errors.iter().all(|e| *e == errors[0]));
            let Error::OnRank { kind, message, .. } = &errors[0] else { panic!("{:?}", errors[0]) };
            assert_eq!(*kind, FaultKind::Input);
            assert!(parts.iter().all(|part| message.contains(part)), "{entries:?} on {ranks}: {message}");
        }
    }
}
