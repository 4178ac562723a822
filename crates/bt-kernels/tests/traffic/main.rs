//! Bytes and floating-point operations of kernels beside the formulas that head their families in `kernels/*.cu`: the stand-in counts both.
//!
//! Bytes are those that threads access, each time: what a cache would serve counts again, and so do ends of rows that several lanes read.
//! A fused product with its addition is two operations, a quotient or a root one, in either precision. Every test has the device alone.

#[path = "../support/mod.rs"]
mod support;

mod chains;
mod direct;
mod factors;
mod krylov;
mod preconditioners;
mod products;
mod sweeps;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bt_kernels::Device;

/// Operations of the sum over a thread block of 256: four additions of every thread in its warp and the fifth of one lane of each, then the
/// eight sums by the thread that wants to know.
const SUM: u64 = 4 * 256 + 8 + 7;
/// The same where every thread wants to know.
const SUM_FOR_ALL: u64 = 4 * 256 + 8 + 7 * 256;

/// Bytes of global memory and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    bytes: u64,
    flops: u64,
}

/// What `work` does, if the driver counts it; it is done in any case.
fn counted(work: impl FnOnce()) -> Option<Count> {
    let now = || {
        let flops = bt_cuda_driver::flops(0)?;
        Some(Count { bytes: bt_cuda_driver::traffic(0)?, flops: flops.single + flops.double })
    };
    let before = now();
    work();
    let (before, after) = (before?, now()?);
    Some(Count { bytes: after.bytes - before.bytes, flops: after.flops - before.flops })
}

/// What `more` does beyond `less`.
fn beyond(more: Option<Count>, less: Option<Count>) -> Option<Count> {
    let (more, less) = (more?, less?);
    Some(Count { bytes: more.bytes - less.bytes, flops: more.flops - less.flops })
}

/// The device, for this test alone: counts are of all that it does.
fn alone() -> Option<(Device, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let device = support::device()?;
    // The stand-in does both.
    assert_eq!(bt_cuda_driver::traffic(0).is_some(), bt_cuda_driver::look_for_races());
    assert_eq!(bt_cuda_driver::flops(0).is_some(), bt_cuda_driver::traffic(0).is_some());
    Some((device, guard))
}

/// The bytes and the operations are these.
fn exactly(what: impl Display, found: Option<Count>, bytes: u64, flops: u64) {
    within(what, found, bytes..=bytes, flops..=flops);
}

/// They are between these.
fn within(what: impl Display, found: Option<Count>, bytes: RangeInclusive<u64>, flops: RangeInclusive<u64>) {
    let Some(found) = found else { return };
    let off = |found: u64, expected: &RangeInclusive<u64>| {
        let nearest = if found > *expected.end() { expected.end() } else { expected.start() };
        if expected.contains(&found) { 0 } else { found as i64 - *nearest as i64 }
    };
    let off = [off(found.bytes, &bytes), off(found.flops, &flops)];
    assert_eq!(off, [0, 0], "{what}: {found:?}, not {bytes:?} bytes and {flops:?} operations");
}

/// The steps 1, 2, 4, … below `end`.
fn powers(end: u64) -> impl Iterator<Item = u64> {
    (0..64).map(|k| 1 << k).take_while(move |&step| step < end)
}

/// Operations of the sums over so many lanes a row: every lane adds but the last time, the first of them then too.
fn tree(n: u64, lanes: u64) -> u64 {
    if lanes > 1 { (n * lanes).next_multiple_of(32) * u64::from(lanes.ilog2() - 1) + n } else { 0 }
}

/// Operations of parallel cyclic reduction of k rows, until they are `largest` apart: a quotient and three products a row at first and in every
/// step, five more for each neighbour.
fn parallel_cyclic_reduction(k: u64, largest: u64) -> u64 {
    4 * k + powers(largest).map(|reach| 4 * k + 10 * (k - reach)).sum::<u64>()
}

/// Operations of cyclic reduction of k rows.
fn cyclic_reduction(k: u64) -> u64 {
    let steps: Vec<u64> = powers(k).collect();
    let down: u64 = steps
        .iter()
        .map(|&r| (2 * r - 1..k).step_by(2 * r as usize).map(|i| if i + r < k { 12 } else { 6 }).sum::<u64>())
        .sum();
    let last = steps.last().map_or(1, |r| 2 * r);
    let back = |r: u64| {
        let row = |i: u64| 1 + 2 * (u64::from(i >= r) + u64::from(i + r < k));
        (r - 1..k).step_by(2 * r as usize).map(row).sum::<u64>()
    };
    let up: u64 = (0..=last.ilog2()).map(|l| back(1 << l)).sum();
    down + up
}
