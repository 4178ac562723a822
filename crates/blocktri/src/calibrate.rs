//! The constants of a machine, measured: some systems a kernel, whose times give its seconds a step, bytes and flops a second.
//!
//! Time beyond `call`, `entry` and `ordering` is step·steps + moved/bandwidth + flops/rate + analysis·analysed. The systems go from many
//! steps of few flops to few steps of many, sparse ones from hardly any fill to much; the constants are those of the least squares of
//! relative errors, none of them negative. Each time is the
//! least of some runs, from one end of [`solve`](crate::solve()) to the other.
//!
//! Cost: some seconds, and 250 MB.

use std::ops::Range;
use std::time::{Duration, Instant};

use bt_direct::{SparseLdl, SymbolicLu};
use bt_formats::reorder::bandwidth as bandwidth_of;
use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Op, Partition, Progress, StopCriterion, certify};
use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::cost::{Kernel, Machine, Rate, Work};
use crate::counts::{
    Fill, band_flops, band_nopivot_work, band_work, block_work, dense_work, elimination_products, half_band_work,
    half_block_work, iteration_work, paired, pivoted_band_flops, sparse_ldl_work, sparse_lu_work, tridiagonal_work,
};
use crate::direct::Direct;
use crate::error::Error;
use crate::method::{Krylov, KrylovMethod, Method};
use crate::options::{Reorder, SolveOptions};
use crate::plan::iteration;
use crate::preconditioners::Precond;
use crate::prepare::prepared;
use crate::solve::solve;

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
    machine.rates[Kernel::Tridiagonal as usize] = Rate { step: rest.max(1e-9) / rows, ..FREE };

    let grid = grid(&[120, 120]);
    let ordering = Instant::now();
    std::hint::black_box(Fill::of(&grid));
    machine.ordering = ordering.elapsed().as_secs_f64() / grid.nnz() as f64;

    machine.pairing = pairing()?;
    let pair = |a: Csr<f64>, work: Work, method: Direct| (a, work, Method::from(method));
    let bands = |method, work: fn(usize, usize) -> Work| {
        [(40_000, 2), (20_000, 12), (3000, 100), (2500, 400)].map(|(n, k)| pair(band(n, k, k), work(n, k), method))
    };
    let mut bands_by_lu = bands(Direct::BandLu, |n, k| band_work::<f64>(n, (k, k), band_flops(n, k, k))).to_vec();
    // Rows that are exchanged: more flops on the same bytes.
    let reversed = exchanged(&band(2500, 200, 200), 200);
    let sides = bandwidth_of(&reversed);
    let work = band_work::<f64>(reversed.nrows(), sides, pivoted_band_flops(&reversed, |i| i, sides));
    bands_by_lu.push(pair(reversed, work, Direct::BandLu));
    machine.fit(Kernel::Band, &bench.all(&bands_by_lu)?);
    let without = bands(Direct::BandLuNoPivot, |n, k| band_nopivot_work::<f64>(n, (k, k)));
    machine.fit(Kernel::BandNoPivot, &bench.all(&without)?);
    machine.fit(Kernel::BandCholesky, &bench.all(&bands(Direct::BandCholesky, half_band_work::<f64>))?);
    let blocks = |method, work: fn(&Partition) -> Work| -> Result<[_; 4], Error> {
        let of = |m: usize, k: usize| -> Result<_, Error> {
            let partition = Partition::from_sizes((0..m).map(|i| k + i % 2))?;
            Ok(pair(chain(&partition), work(&partition), method))
        };
        Ok([of(8000, 2)?, of(1000, 12)?, of(60, 60)?, of(8, 200)?])
    };
    let mut blocks_by_lu = blocks(Direct::BlockLu, block_work::<f64>)?.to_vec();
    for (m, k) in [(60, 60), (16, 128), (8, 200)] {
        let partition = Partition::uniform(m * k, k)?;
        blocks_by_lu.push(pair(exchanged(&chain(&partition), k), block_work::<f64>(&partition), Direct::BlockLu));
    }
    machine.fit(Kernel::Blocks, &bench.all(&blocks_by_lu)?);
    // Without the vectors for it these blocks go as others do. The last two are too large for memory that has been used before.
    machine.rates[Kernel::EqualBlocks as usize] = machine.rate(Kernel::Blocks);
    let mut equal = Vec::new();
    for (m, k) in [(16_000, 2), (8000, 4), (3000, 8), (12_000, 12), (6000, 16)] {
        let partition = Partition::uniform(m * k, k)?;
        let system = pair(chain(&partition), block_work::<f64>(&partition), Direct::BlockLu);
        equal.extend(bench.all(&[system])?);
    }
    if equal.iter().all(|m| m.work.kernel == Kernel::EqualBlocks) {
        machine.fit(Kernel::EqualBlocks, &equal);
    }
    machine.fit(Kernel::BlockCholesky, &bench.all(&blocks(Direct::BlockCholesky, half_block_work::<f64>)?)?);
    let dense = [60, 250, 700].map(|n| pair(band(n, n, n), dense_work::<f64>(n), Direct::DenseLu));
    machine.fit(Kernel::Dense, &bench.all(&dense)?);
    // The narrow and the small ones are eliminated by columns, the others by supernodes.
    let columns: [&[usize]; 4] = [&[2, 9000], &[3, 4000], &[5, 2000], &[14, 14]];
    let supernodes: [&[usize]; 5] = [&[40, 40], &[230, 230], &[14, 14, 14], &[20, 20, 20], &[28, 28, 28]];
    let sides = columns.into_iter().chain(supernodes);
    let grids: Vec<_> = sides.map(self::grid).chain([grid]).collect();
    let fills: Vec<(&Csr<f64>, Fill)> = grids.iter().filter_map(|a| Some((a, Fill::of(a)?))).collect();
    let systems = |method: Direct, work: fn(&Fill, &Csr<f64>) -> Work| -> Vec<_> {
        fills.iter().map(|(a, fill)| pair((*a).clone(), work(fill, a), method)).collect()
    };
    let mut by_lu = systems(Direct::SparseLu, Fill::lu_work);
    for a in [circuit(500), circuit(2000)] {
        let work = sparse_lu_work(&a, &SymbolicLu::new(&a)?);
        by_lu.push(pair(a, work, Direct::SparseLu));
    }
    let lu = bench.all(&by_lu)?;
    let (columns, supernodes): (Vec<_>, Vec<_>) = lu.into_iter().partition(|m| m.work.kernel == Kernel::SparseColumns);
    machine.fit(Kernel::SparseColumns, &columns);
    machine.fit(Kernel::Sparse, &supernodes);
    machine.fit(Kernel::SparseCholesky, &bench.all(&systems(Direct::SparseCholesky, Fill::half_work))?);
    let alone = fills.iter().map(|(a, _)| with_signs(a));
    let in_pairs = [[30, 30], [100, 100]].map(|sides| constrained(&self::grid(&sides)));
    let indefinite = alone.chain(in_pairs).map(|a| {
        let work = sparse_ldl_work(&a, &SparseLdl::analyse(&a)?);
        Ok(pair(a, work, Direct::SparseLdl))
    });
    let indefinite = indefinite.collect::<Result<Vec<_>, Error>>()?;
    machine.fit(Kernel::SparseLdl, &bench.all(&indefinite)?);
    // Grids of this size hardly tell flops from entries: no sparse kernel is faster than dense products are.
    let fastest = machine.rate(Kernel::Dense).flops;
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_sparse()) {
        let rate = &mut machine.rates[kernel as usize];
        rate.flops = rate.flops.min(fastest);
    }
    // What is worth a try against a direct method should not be expected to go as fast as on full diagonals.
    let full = bench.sweep(&self::grid(&[40, 40, 40]), iteration(true))?;
    let scattered = bench.sweep(&with_gaps(&[40, 40, 10]), iteration(false))?;
    machine.rates[Kernel::Sweep as usize] = Rate { step: full.max(scattered), ..FREE };
    Ok(machine)
}

/// Systems that are measured.
const SYSTEMS: usize = 70;
/// Bytes or flops a second where they take no time of their own.
const NONE: f64 = 1e15;
/// What takes no time.
const FREE: Rate = Rate { step: 1.0 / NONE, bandwidth: NONE, flops: NONE, analysis: 0.0 };
/// Runs of a system, at most.
const RUNS: usize = 5;
/// What the runs of a system may take together.
const TIME: Duration = Duration::from_millis(250);

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

    fn all(&mut self, systems: &[(Csr<f64>, Work, Method)]) -> Result<Vec<Measured>, Error> {
        let measured = |(a, work, method): &(Csr<f64>, Work, Method)| {
            Ok(Measured { nnz: a.nnz(), work: *work, seconds: self.least(a, method)? })
        };
        systems.iter().map(measured).collect()
    }

    /// Seconds an entry that an iteration visits: its steps are counted as they were made.
    fn sweep(&mut self, a: &Csr<f64>, (method, precond): (KrylovMethod, Precond)) -> Result<f64, Error> {
        self.tell()?;
        let stop = StopCriterion { rtol: 1e-12, ..StopCriterion::default() };
        let krylov = Method::from(Krylov { stop, ..Krylov::new(method, precond) });
        let b = Mat::from_fn(a.nrows(), 1, |i, _| 1.0 + (i % 7) as f64);
        let products = elimination_products(a);
        let mut least = f64::INFINITY;
        for _ in 0..RUNS {
            let report = solve(a, b.as_ref(), &SolveOptions::by(krylov.clone()), &mut ())?.report;
            let steps = iteration_work(a, products, method, report.iterations as f64).steps;
            least = least.min((report.times.setup + report.times.solve).as_secs_f64() / steps);
        }
        Ok(least)
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

/// Seconds a count of [`paired`] for the symbolic phase of LU of a pattern that is not symmetric.
fn pairing() -> Result<f64, Error> {
    let a = circuit(2000);
    let (mut least, mut counted) = (f64::INFINITY, f64::NAN);
    for _ in 0..RUNS {
        let run = Instant::now();
        let symbolic = SymbolicLu::new(&a)?;
        least = least.min(run.elapsed().as_secs_f64());
        counted = paired(&a, &symbolic);
    }
    Ok(least / counted)
}

/// A system, its counts, and its time.
struct Measured {
    nnz: usize,
    work: Work,
    seconds: f64,
}

impl Machine {
    /// step·steps + moved/bandwidth + flops/rate + analysis·analysed = seconds, in the least squares of relative errors.
    fn fit(&mut self, kernel: Kernel, systems: &[Measured]) {
        // What an entry costs differs between methods; a tenth of the time is the method's in any case.
        let rows: Vec<[f64; 4]> = systems
            .iter()
            .map(|m| {
                // All runs but the first find the order with the pattern.
                let other = self.call + self.entry * m.nnz as f64 + self.pairing * m.work.paired;
                let own = (m.seconds - other).max(0.1 * m.seconds);
                [m.work.steps, m.work.moved, m.work.flops, m.work.analysed].map(|count| count / own)
            })
            .collect();
        let [step, byte, flop, row] = nonnegative(&rows);
        let (least, rate) = (|seconds: f64| seconds.max(1.0 / NONE), |seconds: f64| (1.0 / seconds).min(NONE));
        self.rates[kernel as usize] =
            Rate { step: least(step), bandwidth: rate(byte), flops: rate(flop), analysis: least(row) };
    }
}

/// c ≥ 0 with the least Σ(rᵢ·c − 1)²: of the normal equations of all choices of numbers that are not zero.
fn nonnegative<const N: usize>(rows: &[[f64; N]]) -> [f64; N] {
    let error = |c: &[f64; N]| -> f64 {
        rows.iter().map(|r| (r.iter().zip(c).map(|(r, c)| r * c).sum::<f64>() - 1.0).powi(2)).sum()
    };
    let mut best = ([0.0; N], f64::INFINITY);
    for chosen in 1..1usize << N {
        let places: Vec<usize> = (0..N).filter(|i| chosen >> i & 1 == 1).collect();
        // Columns of length one: counts differ by powers of ten.
        let norm = |i: usize| rows.iter().map(|r| r[i] * r[i]).sum::<f64>().sqrt();
        if places.iter().any(|&i| norm(i) == 0.0) {
            continue;
        }
        let m = places.len();
        let column = |i: usize, r: &[f64; N]| r[places[i]] / norm(places[i]);
        let gram = Mat::from_fn(m, m, |i, j| rows.iter().map(|r| column(i, r) * column(j, r)).sum::<f64>());
        let right = Mat::from_fn(m, 1, |i, _| rows.iter().map(|r| column(i, r)).sum::<f64>());
        let found = gram.full_piv_lu().solve(&right);
        let mut c = [0.0f64; N];
        for (i, &place) in places.iter().enumerate() {
            c[place] = found[(i, 0)] / norm(place);
        }
        if c.iter().all(|c| c.is_finite() && *c >= 0.0) && error(&c) < best.1 {
            best = (c, error(&c));
        }
    }
    best.0
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

/// Symmetric, positive definite rows of the columns `cols(i)`, with `diagonal(i)`, which is larger than all else in its row together. In the last
/// row it is half of that: dominance everywhere bounds the condition, which solves of other systems ask the factors for.
fn definite(n: usize, cols: impl Fn(usize) -> Range<usize>, diagonal: impl Fn(usize) -> f64) -> Csr<f64> {
    rows(n, |i, row| {
        let beside: Vec<_> = cols(i).filter(|&j| j != i).map(|j| (j, coupling(i, j))).collect();
        let all = || beside.iter().map(|(_, v)| v.abs()).sum::<f64>();
        row.push((i, if i + 1 < n { diagonal(i) } else { all() / 2.0 }));
        row.extend(beside);
    })
}

/// A band, or all numbers.
fn band(n: usize, kl: usize, ku: usize) -> Csr<f64> {
    definite(n, |i| i.saturating_sub(kl)..(i + ku + 1).min(n), |_| (kl + ku) as f64)
}

/// A dominant matrix with its rows reversed, k at a time: elimination exchanges all of them back.
fn exchanged(a: &Csr<f64>, k: usize) -> Csr<f64> {
    let n = a.nrows();
    rows(n, |i, row| {
        let first = i / k * k;
        let (cols, values) = a.row((first + k).min(n) - 1 - (i - first));
        row.extend(cols.iter().zip(values).map(|(&j, &v)| (j as usize, v)));
    })
}

/// Every third diagonal entry of the other sign: symmetric, and not definite.
fn with_signs(a: &Csr<f64>) -> Csr<f64> {
    rows(a.nrows(), |i, row| {
        let (cols, values) = a.row(i);
        let sign = |j: usize| if i == j && i % 3 == 0 { -1.0 } else { 1.0 };
        row.extend(cols.iter().zip(values).map(|(&j, &v)| (j as usize, sign(j as usize) * v)));
    })
}

/// Every unknown of A with a constraint of its own: [A I; I 0], whose rows are eliminated in pairs.
fn constrained(a: &Csr<f64>) -> Csr<f64> {
    let n = a.nrows();
    rows(2 * n, |i, row| {
        if i >= n {
            row.push((i - n, 1.0));
            return;
        }
        let (cols, values) = a.row(i);
        row.extend(cols.iter().zip(values).map(|(&j, &v)| (j as usize, v)));
        row.push((n + i, 1.0));
    })
}

/// Symmetric dense blocks on three block diagonals. Where all blocks of a few rows have one size, elimination goes several times as fast as
/// these constants say; what a matrix from a file has mostly does not.
fn chain(partition: &Partition) -> Csr<f64> {
    let block_of: Vec<usize> =
        (0..partition.n_blocks()).flat_map(|b| std::iter::repeat_n(b, partition.range(b).len())).collect();
    let neighbours = |i: usize| {
        let (first, last) = (block_of[i].saturating_sub(1), (block_of[i] + 1).min(partition.n_blocks() - 1));
        partition.range(first).start..partition.range(last).end
    };
    definite(partition.n(), neighbours, |i| 3.0 * partition.size(block_of[i]) as f64)
}

/// Rows of one to five entries without symmetry, most near the diagonal, which has zeros in every third row: as of a circuit or a plant.
fn circuit(n: usize) -> Csr<f64> {
    rows(n, |i, row| {
        let near = [(i + 1) % n, (i + n - 2 - i % 5) % n, (i + 3 + i % 7) % n];
        let mut cols = near[..=i % 3].to_vec();
        if i % 10 == 0 {
            cols.push(31 * i % n);
        }
        if i % 3 != 0 {
            cols.push(i);
        }
        cols.sort_unstable();
        cols.dedup();
        row.extend(cols.into_iter().map(|j| (j, if j == (i + 1) % n { 1.0 } else { 0.1 + coupling(i, j).abs() })));
    })
}

/// The Laplacian of a grid by central differences.
pub(crate) fn grid(sides: &[usize]) -> Csr<f64> {
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

/// Such a grid in which one entry beside the diagonal of three is missing, so that no diagonal is full, and the others have no symmetry.
fn with_gaps(sides: &[usize]) -> Csr<f64> {
    let whole = grid(sides);
    rows(whole.nrows(), |i, row| {
        let (cols, values) = whole.row(i);
        let kept =
            cols.iter().zip(values).filter(|&(&j, _)| j as usize == i || !(5 * i + j as usize).is_multiple_of(3));
        row.extend(kept.map(|(&j, &v)| {
            (j as usize, if j as usize == i { v } else { v * (1.0 + coupling(i, j as usize).abs()) / 1.5 })
        }));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_that_times_were_made_of_and_never_negative() {
        fn check<const N: usize>(constants: [f64; N], counts: &[[f64; N]]) {
            let seconds =
                |c: &[f64; N]| -> f64 { c.iter().zip(&constants).map(|(count, constant)| count * constant).sum() };
            let rows: Vec<_> = counts.iter().map(|c| c.map(|count| count / seconds(c))).collect();
            for (found, expected) in nonnegative(&rows).iter().zip(constants) {
                assert!((found / expected - 1.0).abs() < 1e-6 || *found == expected, "{found} {expected}");
            }
        }
        check([2e-7, 3e-11, 5e-11], &[[4e4, 5e6, 3e6], [2e4, 1e7, 1e8], [3e3, 1e7, 2e9], [2.5e3, 4e7, 2e10]]);
        // Sparse factors: entries, no bytes of their own, flops, rows and entries of A.
        let grids = [[5e4, 0.0, 5e5, 6e4], [1e4, 0.0, 2e5, 5e3], [3e5, 0.0, 2e7, 9e4], [4e6, 0.0, 3e9, 2e5]];
        check([3e-8, 0.0, 4e-11, 2e-7], &grids);
        // Times that fall while the bytes grow: nothing is paid for bytes.
        let rows = [[1.0, 1.0, 0.0], [1.0, 4.0, 0.0]].map(|[s, b, f]| [s / 2.0, b / 2.0, f]);
        assert_eq!(nonnegative(&rows)[1..], [0.0, 0.0]);
    }
}
