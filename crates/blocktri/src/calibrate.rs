//! The constants of a machine, measured: two systems a kernel, whose times give its seconds a step and its flops a second.
//!
//! Time beyond `call` and `entry` is step·steps + flops/rate. Of two systems, one with many steps of few flops and one with few steps
//! of many, both follow. Each time is the least of some runs, from one end of [`solve`](crate::solve()) to the other.
//!
//! Cost: some seconds, and 100 MB.

use std::time::{Duration, Instant};

use bt_formats::reorder::bandwidth as bandwidth_of;
use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Op, Partition, Progress, StopCriterion, certify};
use faer::Mat;

use crate::cost::{Kernel, Machine, Rate, Work};
use crate::direct::Direct;
use crate::error::Error;
use crate::method::{Krylov, Method};
use crate::options::{Reorder, SolveOptions};
use crate::plan::{
    Fill, band_work, block_work, dense_work, half_band_work, half_block_work, iteration, iteration_work,
    tridiagonal_work,
};
use crate::solve::solve;
use crate::solver::prepared;

/// Measures the constants of this machine with the threads of the current pool. The monitor is told the kernels done; where it breaks,
/// the measurement ends.
///
/// # Errors
/// [`Error::Factor`] when the monitor stopped it.
///
/// # Cost
/// Less than ten seconds.
pub fn calibrate(monitor: &mut dyn Monitor) -> Result<Machine, Error> {
    let mut bench = Bench { monitor, done: 0 };
    let mut machine = Machine::here().clone();
    machine.call = bench.least(&band(4, 1, 1), &Direct::Thomas.into())?;
    machine.entry = entry(&band(3000, 160, 160))?;
    let long = band(200_000, 1, 1);
    let rest = bench.least(&long, &Direct::Thomas.into())? - machine.call - machine.entry * long.nnz() as f64;
    let rows = tridiagonal_work::<f64>(long.nrows()).steps;
    machine.rates[Kernel::Tridiagonal as usize] = Rate { step: rest.max(1e-9) / rows, flops: 1e12 };
    machine.bandwidth = bandwidth();

    let grid = grid(&[120, 120]);
    let ordering = Instant::now();
    let fill = Fill::of(&grid);
    machine.ordering = ordering.elapsed().as_secs_f64() / grid.nnz() as f64;

    let pair = |a: Csr<f64>, work: Work, method: Direct| (a, work, Method::from(method));
    let bands = |method, work: fn(usize, usize) -> Work| {
        [(40_000, 4), (3000, 160)].map(|(n, k)| pair(band(n, k, k), work(n, k), method))
    };
    machine.fit(Kernel::Band, bench.pair(&bands(Direct::BandLu, |n, k| band_work::<f64>(n, k, k)))?);
    machine.fit(Kernel::BandCholesky, bench.pair(&bands(Direct::BandCholesky, half_band_work::<f64>))?);
    let blocks = |method, work: fn(&Partition) -> Work| -> Result<[_; 2], Error> {
        let of = |m: usize, k: usize| -> Result<_, Error> {
            Ok(pair(chain(m, k), work(&Partition::uniform(m * k, k)?), method))
        };
        Ok([of(8000, 4)?, of(40, 96)?])
    };
    machine.fit(Kernel::Blocks, bench.pair(&blocks(Direct::BlockLu, block_work::<f64>)?)?);
    machine.fit(Kernel::BlockCholesky, bench.pair(&blocks(Direct::BlockCholesky, half_block_work::<f64>)?)?);
    let dense = [60, 700].map(|n| pair(band(n, n, n), dense_work::<f64>(n), Direct::DenseLu));
    machine.fit(Kernel::Dense, bench.pair(&dense)?);
    let cube = self::grid(&[20, 20, 20]);
    if let (Some(flat), Some(high)) = (fill, Fill::of(&cube)) {
        let lu = [(grid.clone(), flat.lu_work(&grid)), (cube.clone(), high.lu_work(&cube))];
        machine.fit(Kernel::Sparse, bench.pair(&lu.map(|(a, work)| pair(a, work, Direct::SparseLu)))?);
        let half = [(grid.clone(), flat.half_work(&grid)), (cube.clone(), high.half_work(&cube))];
        let half = half.map(|(a, work)| pair(a, work, Direct::SparseCholesky));
        machine.fit(Kernel::SparseCholesky, bench.pair(&half)?);
    }
    machine.rates[Kernel::Sweep as usize] = bench.sweep(&self::grid(&[40, 40, 40]))?;
    Ok(machine)
}

/// Systems that are measured.
const SYSTEMS: usize = 17;
/// Runs of a system, at most.
const RUNS: usize = 5;
/// What the runs of a system may take together.
const TIME: Duration = Duration::from_millis(350);

struct Bench<'a> {
    monitor: &'a mut dyn Monitor,
    done: usize,
}

impl Bench<'_> {
    /// The least seconds of a solve.
    fn least(&mut self, a: &Csr<f64>, method: &Method) -> Result<f64, Error> {
        let b = Mat::from_fn(a.nrows(), 1, |i, _| 1.0 + (i % 7) as f64);
        let options = SolveOptions { reorder: Reorder::None, ..SolveOptions::by(method.clone()) };
        let (start, mut least) = (Instant::now(), f64::INFINITY);
        for _ in 0..RUNS {
            let run = Instant::now();
            solve(a, b.as_ref(), &options, &mut ())?;
            least = least.min(run.elapsed().as_secs_f64());
            if start.elapsed() > TIME {
                break;
            }
        }
        self.tell()?;
        Ok(least)
    }

    fn tell(&mut self) -> Result<(), Error> {
        self.done += 1;
        let progress = Progress::Step { phase: "calibration", done: self.done, total: SYSTEMS };
        let told = self.monitor.observe(progress);
        if told.is_break() { Err(Error::Factor(bt_direct::FactorError::Stopped)) } else { Ok(()) }
    }

    fn pair(&mut self, systems: &[(Csr<f64>, Work, Method); 2]) -> Result<[Measured; 2], Error> {
        let mut measured = |(a, work, method): &(Csr<f64>, Work, Method)| -> Result<_, Error> {
            Ok(Measured { nnz: a.nnz(), work: *work, seconds: self.least(a, method)? })
        };
        Ok([measured(&systems[0])?, measured(&systems[1])?])
    }

    /// Seconds an entry that an iteration visits: its steps are counted as they were made.
    fn sweep(&mut self, a: &Csr<f64>) -> Result<Rate, Error> {
        self.tell()?;
        let (method, precond) = iteration(true);
        let stop = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
        let krylov = Method::from(Krylov { stop, ..Krylov::new(method, precond) });
        let b = Mat::from_fn(a.nrows(), 1, |i, _| 1.0 + (i % 7) as f64);
        let mut least = f64::INFINITY;
        for _ in 0..RUNS {
            let report = solve(a, b.as_ref(), &SolveOptions::by(krylov.clone()), &mut ())?.report;
            let steps = iteration_work(a, method, report.iterations as f64).steps;
            least = least.min((report.times.setup + report.times.solve).as_secs_f64() / steps);
        }
        Ok(Rate { step: least, flops: 1e12 })
    }
}

/// Seconds an entry of `a` in what all methods do: copying, scanning, certifying, and once more for a format of their own.
fn entry(a: &Csr<f64>) -> Result<f64, Error> {
    let x = Mat::<f64>::full(a.nrows(), 1, 1.0);
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let run = Instant::now();
        let copy = prepared(a, &mut Vec::new())?;
        std::hint::black_box((bandwidth_of(&copy), certify(&copy, Op::Identity, x.as_ref(), x.as_ref())));
        least = least.min(run.elapsed().as_secs_f64());
    }
    Ok(1.5 * least / a.nnz() as f64)
}

/// A system, its counts, and its time.
struct Measured {
    nnz: usize,
    work: Work,
    seconds: f64,
}

impl Machine {
    /// step·sᵢ + fᵢ/rate = tᵢ, neither of them negative.
    fn fit(&mut self, kernel: Kernel, systems: [Measured; 2]) {
        let [(s0, f0, t0), (s1, f1, t1)] = systems.map(|m| {
            let other = self.call + self.entry * m.nnz as f64 + self.ordering * m.work.ordered;
            // What an entry costs differs between methods; a tenth of the time is the method's in any case.
            (m.work.steps, m.work.flops, (m.seconds - other).max(0.1 * m.seconds))
        });
        let determinant = s0 * f1 - s1 * f0;
        let (mut step, mut flop) = ((t0 * f1 - t1 * f0) / determinant, (s0 * t1 - s1 * t0) / determinant);
        if !(step > 0.0) {
            (step, flop) = (0.0, t1 / f1);
        } else if !(flop > 0.0) {
            (step, flop) = (t0 / s0, 1e-12);
        }
        self.rates[kernel as usize] = Rate { step, flops: 1.0 / flop };
    }
}

/// Bytes a second that are read and written.
fn bandwidth() -> f64 {
    const NUMBERS: usize = 4 << 20;
    let mut numbers = vec![1.0f64; NUMBERS];
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let run = Instant::now();
        for v in &mut numbers {
            *v += 1.0;
        }
        std::hint::black_box(&numbers);
        least = least.min(run.elapsed().as_secs_f64());
    }
    (2 * 8 * NUMBERS) as f64 / least
}

/// A matrix from its rows, given as columns and values in any order.
fn rows(n: usize, mut row: impl FnMut(usize, &mut Vec<(usize, f64)>)) -> Csr<f64> {
    let (mut starts, mut cols, mut values, mut entries) = (vec![0u32], Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        entries.clear();
        row(i, &mut entries);
        entries.sort_by_key(|(j, _)| *j);
        cols.extend(entries.iter().map(|(j, _)| *j as u32));
        values.extend(entries.iter().map(|(_, v)| *v));
        starts.push(cols.len() as u32);
    }
    Csr::new(n, n, starts, cols, values).expect("rows in order")
}

/// Numbers in [−½, ½] that depend on the place alone, symmetrically.
fn coupling(i: usize, j: usize) -> f64 {
    let place = 31 * i.min(j) + 17 * i.max(j);
    (place % 97) as f64 / 97.0 - 0.5
}

/// A symmetric, diagonally dominant band (or all numbers).
fn band(n: usize, kl: usize, ku: usize) -> Csr<f64> {
    rows(n, |i, row| {
        for j in i.saturating_sub(kl)..(i + ku + 1).min(n) {
            row.push((j, if i == j { (kl + ku) as f64 } else { coupling(i, j) }));
        }
    })
}

/// m symmetric dense blocks of k rows on each of three block diagonals.
fn chain(m: usize, k: usize) -> Csr<f64> {
    rows(m * k, |i, row| {
        let block = i / k;
        for j in k * block.saturating_sub(1)..(k * (block + 2)).min(m * k) {
            row.push((j, if i == j { 3.0 * k as f64 } else { coupling(i, j) }));
        }
    })
}

/// The Laplacian of a grid by central differences.
fn grid(sides: &[usize]) -> Csr<f64> {
    rows(sides.iter().product(), |i, row| {
        row.push((i, 2.0 * sides.len() as f64));
        let mut stride = 1;
        for side in sides {
            let x = i / stride % side;
            if x > 0 {
                row.push((i - stride, -1.0));
            }
            if x + 1 < *side {
                row.push((i + stride, -1.0));
            }
            stride *= side;
        }
    })
}
