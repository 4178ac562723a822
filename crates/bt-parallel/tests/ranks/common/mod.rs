//! What the tests of distributed methods share.

use std::time::Duration;

use bt_formats::{Csr, Scalar};
use bt_parallel::{Number, Patience, Result, ThreadComm, thread_comm};

/// Numbers of ranks of every test.
pub const RANKS: [usize; 6] = [1, 2, 3, 4, 6, 7];

/// Runs on p ranks, none of which waits for long.
pub fn run<V: Send>(p: usize, work: impl Fn(&ThreadComm) -> Result<V> + Sync) -> Vec<Result<V>> {
    thread_comm::run_with(p, Patience::Limited(Duration::from_secs(60)), work)
}

/// The same where all ranks have to succeed.
pub fn succeed<V: Send>(p: usize, work: impl Fn(&ThreadComm) -> Result<V> + Sync) -> Vec<V> {
    let unwrap = |(rank, result): (usize, Result<V>)| match result {
        Ok(value) => value,
        Err(error) => panic!("{p} ranks, on rank {rank}: {error}"),
    };
    run(p, work).into_iter().enumerate().map(unwrap).collect()
}

/// Convection and diffusion on a k × k grid: unsymmetric, five points.
pub fn wind<T: Number>(k: usize) -> Csr<T> {
    bt_testkit::stencil(k, 0.3)
}

/// An n × n matrix with a heavy diagonal and a few entries anywhere, of an unsymmetric pattern.
pub fn scattered<T: Number>(n: usize) -> Csr<T> {
    bt_testkit::csr(n, |i, j| {
        if i == j {
            T::rounded(8.0, 1.0)
        } else if (7 * i + 13 * j) % 11 == 0 && i.abs_diff(j) < n / 2 + 1 {
            T::rounded(((i + 2 * j) % 5) as f64 / 5.0 - 0.3, 0.2)
        } else {
            T::default()
        }
    })
}

/// A vector without pattern.
pub fn vector<T: Number>(n: usize, seed: u64) -> Vec<T> {
    bt_testkit::random_vector(n, seed)
}

/// max|xᵢ − yᵢ|
pub fn distance<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    let difference: Vec<T> = x.iter().zip(y).map(|(&x, &y)| x - y).collect();
    bt_formats::max_abs(&difference)
}
