//! What every communicator has to do, for the tests of those who make one; behind the feature `suite`.
//!
//! All functions are called by all ranks and assert what they find: [`contract`] and [`count`] on communicators of any size,
//! [`mistake`] on one that is thrown away afterwards. [`methods`] runs every method of this crate, site expansion, reading and
//! writing among them: results, to the last bit, and counts have to be the same on two communicators of equal size, which makes
//! [`crate::ThreadComm`] the reference of all others.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bt_direct::RbtOptions;
use bt_formats::{Csr, Partition, SolveReport, StopCriterion, c64};
use bt_iter::{ArmsOptions, IlutOptions, LastSolver, Overlap};

use crate::chain::ChainEntries;

use crate::comm::{Comm, Number, Parts, Tag, Traffic};
use crate::csr::DistributedCsr;
use crate::error::{Error, Fault, Result, agree};
use crate::hbisa::{BlockIteration, BlockSweep};
use crate::krylov::{Krylov, Method};
use crate::lines::Lines;
use crate::partition::Division;
use crate::precond::{DistributedPreconditioner, Identity, LocalSolver, Schur, Schwarz};
use crate::read::{RowRanges, read_columns_on_all, read_head_on_all};

use crate::spike::{Coupling, Spike, SpikeOptions};
use crate::stationary::StationaryDistribution;
use crate::write::Target;

/// The calls of [`Comm`] do what they say; the sums of all ranks are returned.
///
/// # Errors
/// Those of the communicator.
///
/// # Panics
/// Where something else arrives than was sent.
pub fn contract(comm: &impl Comm) -> Result<Vec<u64>> {
    let (rank, p) = (comm.rank(), comm.size());
    // Sums are taken in the order of the ranks: 1 is lost beside 2⁵³ only if it is added first.
    let mut sum = [if rank == 0 { 2f64.powi(53) } else { 1.0 }, rank as f64];
    comm.all_sum(&mut sum)?;
    let mut expected = 2f64.powi(53);
    (1..p).for_each(|_| expected += 1.0);
    assert_eq!(sum, [expected, (p * (p - 1) / 2) as f64]);
    let mut max = [rank as f64, if rank == p / 2 { f64::NAN } else { 1.0 }];
    comm.all_max(&mut max)?;
    assert!(max[0] == (p - 1) as f64 && max[1].is_nan());

    let all = comm.all_gather(&vec![rank as u32; rank])?;
    assert!((0..p).all(|r| all.part(r) == vec![r as u32; r]));
    let at = comm.gather(p - 1, &[rank as u64])?;
    assert_eq!(at.map(|parts| parts.values().to_vec()), (rank == p - 1).then(|| (0..p as u64).collect()));
    let mut text = if rank == p / 2 { b"pivot".to_vec() } else { Vec::new() };
    comm.broadcast(p / 2, &mut text)?;
    assert_eq!(text, b"pivot");
    comm.barrier()?;

    // r copies of 10·r + j to rank j.
    let send = Parts::new((0..p).map(|j| vec![(10 * rank + j) as f64; rank]));
    let received = comm.all_to_all(&send)?;
    assert!((0..p).all(|r| received.part(r) == vec![(10 * r + rank) as f64; r]));

    // To the next and to the one before, and the same with the tags the other way round.
    let (next, before) = ((rank + 1) % p, (rank + p - 1) % p);
    let (mut a, mut b) = ([0u32], [0u32; 2]);
    let worked = comm.exchange(Tag(1), &[(next, &[rank as u32][..])], &mut [(before, &mut a[..])], || 7)?;
    comm.exchange(Tag(2), &[(before, &[rank as u32, 1][..])], &mut [(next, &mut b[..])], || {})?;
    assert_eq!((a, b, worked), ([before as u32], [next as u32, 1], 7));
    lengths(comm)?;

    // Even and odd ranks by themselves, backwards.
    let half = comm.split((rank % 2) as u32, (p - rank) as u32)?;
    let members = half.all_gather(&[rank as u32])?;
    let mut wanted: Vec<u32> = (0..p as u32).filter(|r| *r as usize % 2 == rank % 2).collect();
    wanted.reverse();
    assert_eq!(members.values(), wanted);
    let mut sum = [1.0f32];
    half.all_sum(&mut sum)?;
    assert_eq!(sum[0] as usize, wanted.len());
    Ok(sum.map(|s| s.to_bits().into()).into_iter().chain([expected.to_bits()]).collect())
}

/// Short and long messages of one tag in turn, several of them in a call, empty ones among them; long collectives.
fn lengths(comm: &impl Comm) -> Result<()> {
    let (rank, p) = (comm.rank(), comm.size());
    let (next, before) = ((rank + 1) % p, (rank + p - 1) % p);
    for length in [0, 1, 5000, 5000, 5000, 600, 5000, 70_000, 70_000, 509, 510, 511, 512, 513, 513, 0] {
        let send: Vec<f64> = (0..length).map(|k| (k * (rank + 1)) as f64).collect();
        let mut received = vec![0.0; length];
        comm.exchange(Tag(7), &[(next, &send[..])], &mut [(before, &mut received[..])], || {})?;
        assert!((0..length).all(|k| received[k] == (k * (before + 1)) as f64), "{length} numbers");
    }
    let send: [Vec<c64>; 3] = [3000, 2, 3000].map(|length| vec![c64::new(rank as f64, length as f64); length]);
    for _ in 0..2 {
        let mut received = [3000, 2, 3000].map(|length| vec![c64::default(); length]);
        let sends: Vec<_> = send.iter().map(|v| (next, &v[..])).collect();
        let mut receives: Vec<_> = received.iter_mut().map(|v| (before, &mut v[..])).collect();
        comm.exchange(Tag(8), &sends, &mut receives, || {})?;
        assert!(received.iter().all(|v| v.iter().all(|z| *z == c64::new(before as f64, v.len() as f64))));
    }
    let mut long = vec![(rank + 1) as f32; 10_000];
    comm.all_sum(&mut long)?;
    assert_eq!(long, vec![(p * (p + 1) / 2) as f32; 10_000]);
    let mut text = if rank == 0 { vec![9u8; 100_000] } else { vec![1, 2] };
    comm.broadcast(0, &mut text)?;
    assert_eq!(text, vec![9; 100_000]);
    let all = comm.all_gather(&vec![rank as u64; 3000 * (rank % 2)])?;
    assert!((0..p).all(|r| all.part(r) == vec![r as u64; 3000 * (r % 2)]));
    let at = comm.gather(0, &vec![rank as u8; 5000])?;
    assert!(at.is_none_or(|at| (0..p).all(|r| at.part(r) == vec![r as u8; 5000])));
    Ok(())
}

/// What is counted is what was sent, the same on every communicator.
///
/// # Errors
/// Those of the communicator.
///
/// # Panics
/// Where the count is another one.
pub fn count(comm: &impl Comm) -> Result<()> {
    let (rank, p) = (comm.rank(), comm.size());
    let before = comm.traffic();
    comm.exchange(
        Tag(0),
        &[((rank + 1) % p, &[1.0f64; 3][..]), (rank, &[1.0f64][..])],
        &mut [((rank + p - 1) % p, &mut [0.0; 3][..]), (rank, &mut [0.0][..])],
        || {},
    )?;
    comm.all_sum(&mut [1.0f32, 2.0])?;
    comm.all_to_all_into(&Parts::new(vec![[1u32, 2]; p]), &mut Parts::zeros(vec![2; p]))?;
    comm.broadcast(p - 1, &mut vec![1u8; 10])?;
    comm.gather(0, &[1u64])?;
    comm.barrier()?;
    let half = comm.split(0, 0)?;
    assert_eq!(half.traffic(), Traffic::default());
    let collective_bytes = 8 + 8 * (p as u64 - 1) + if rank == p - 1 { 10 } else { 0 } + 8 * u64::from(rank > 0) + 24;
    let expected = match p {
        // Nothing travels where there is nobody else.
        1 => Traffic::default(),
        _ => Traffic { messages: 1, bytes: 24, collectives: 6, collective_bytes },
    };
    assert_eq!(comm.traffic().since(before), expected);
    Ok(())
}

/// How many mistakes [`mistake`] knows.
pub const N_MISTAKES: usize = 12;

/// Ranks that are out of step in one of several ways, for two ranks or more: each of them has to end with [`Error::OutOfStep`] or hear of it.
///
/// # Errors
/// On every rank, if the communicator is right.
pub fn mistake(comm: &impl Comm, which: usize) -> Result<()> {
    let (rank, p) = (comm.rank(), comm.size());
    let (next, before) = ((rank + 1) % p, (rank + p - 1) % p);
    let ring = |sent: usize, expected: usize| {
        let (send, mut received) = (vec![1.0f64; sent], vec![0.0; expected]);
        comm.exchange(Tag(3), &[(next, &send[..])], &mut [(before, &mut received[..])], || {})
    };
    match which {
        0 if rank == 0 => comm.barrier(),
        0 => comm.all_sum(&mut [1.0]),
        1 => comm.all_sum(&mut vec![1.0; 1 + rank]),
        2 => {
            let none: &mut [(usize, &mut [f32])] = &mut [];
            comm.exchange(Tag(3), &[(next, &[1.0f32][..])], none, || {})?;
            comm.exchange(Tag(3), &[], &mut [(before, &mut [0.0f64][..])], || {})
        }
        3 => ring(1, 2),
        // Long messages, after one that was as expected.
        4..=7 => {
            let (sent, expected) = [(5000, 10), (7000, 5000), (3, 5000), (5000, 7000)][which - 4];
            ring(5000, 5000)?;
            ring(sent, expected)
        }
        8 => comm.all_to_all_into(&Parts::new(vec![[1u32]; p]), &mut Parts::zeros(vec![2; p])),
        9 => comm.all_to_all_into(&Parts::new(vec![[1u32]; p + 1]), &mut Parts::zeros(vec![1; p + 1])),
        10 => comm.all_sum(&mut vec![1.0; 5000 + rank]),
        _ if rank == 0 => comm.all_gather(&[1u8]).map(|_| ()),
        _ => comm.broadcast(0, &mut vec![1u8]),
    }
}

/// What a method did on this rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Which method, on what.
    pub name: String,
    /// The bytes of its results.
    pub bytes: Vec<u8>,
    /// What this rank sent for it.
    pub traffic: Traffic,
}

/// Runs every method of this crate on small systems; one entry for each, in a fixed order. Rank 0 writes two small files for it to the folder of
/// temporary files, where all ranks have to see them, and removes them.
///
/// # Errors
/// Those of the methods.
pub fn methods<C: Comm>(comm: &C) -> Result<Vec<Run>> {
    let mut runs = Runs { comm, runs: Vec::new() };
    runs.of_system("wind", &wind::<f64>(7, 0.3))?;
    runs.of_system("complex wind", &wind::<c64>(5, 0.2))?;
    // More ranks than rows.
    runs.of_system("three rows", &wind::<f64>(1, 0.1))?;
    runs.krylov("poisson", &wind::<f64>(6, 0.0), &[Method::Cg, Method::FlexibleCg])?;
    runs.local_solvers()?;
    runs.domains()?;
    runs.blocks()?;
    runs.lines()?;
    runs.stationary()?;
    runs.files()?;
    runs.faults();
    Ok(runs.runs)
}

struct Runs<'c, C: Comm> {
    comm: &'c C,
    runs: Vec<Run>,
}

impl<C: Comm> Runs<'_, C> {
    /// Adds a run of `work`.
    fn run<T: Number>(&mut self, name: String, work: impl FnOnce() -> Result<(Vec<T>, Traffic)>) -> Result<()> {
        let before = self.comm.traffic();
        let (x, own) = work()?;
        let mut traffic = self.comm.traffic().since(before);
        traffic.messages += own.messages;
        traffic.bytes += own.bytes;
        self.runs.push(Run { name, bytes: T::bytes(&x).to_vec(), traffic });
        Ok(())
    }

    fn of_system<T: Number>(&mut self, name: &str, a: &Csr<T>) -> Result<()> {
        let (comm, n) = (self.comm, bt_formats::LinearOperator::nrows(a));
        let division = Division::site_expansion(a, comm.size()).map_err(|e| broken(comm, &e))?;
        let methods = [Method::BiCgStab, Method::Gmres { restart: 5 }, Method::Fgmres { restart: 40 }];
        self.krylov(name, a, &methods)?;
        self.run(format!("{name}: product and certificate"), || {
            let d = DistributedCsr::from_first_rank(comm, (comm.rank() == 0).then_some((a, &division)))?;
            let x = d.own_entries(&vector(n, 1));
            let mut y = d.own_entries(&vector(n, 2));
            d.apply(T::rounded(-0.5, 0.0), &x, T::rounded(2.0, 0.0), &mut y)?;
            let c = d.certify(&x, &y)?;
            let found = [c.relative_residual, c.backward_error, c.componentwise_backward_error];
            y.extend(found.map(|v| T::rounded(v, 0.0)));
            Ok((y, Traffic::default()))
        })?;
        let local =
            [LocalSolver::Ilu0, LocalSolver::Ilut(IlutOptions::default()), LocalSolver::Arms(ArmsOptions::default())];
        for (layers, overlap, solver) in
            [(0, Overlap::Added, local[0]), (1, Overlap::Added, local[1]), (2, Overlap::Restricted, local[2])]
        {
            self.run(format!("{name}: schwarz {layers} {overlap:?}"), || {
                let d = DistributedCsr::from_replicated(comm, a, &division)?;
                let mut m = Schwarz::new(&d, layers, overlap, |local| solver.of(local))?;
                solve(&d, &mut m, Method::Gmres { restart: 30 })
            })?;
        }
        for solver in [LocalSolver::SparseLu, local[1]] {
            self.run(format!("{name}: schur"), || {
                let d = DistributedCsr::from_replicated(comm, a, &division)?;
                let mut m = Schur::new(&d, |local| solver.of(local))?;
                solve(&d, &mut m, Method::Fgmres { restart: 30 })
            })?;
        }
        for coupling in [Coupling::Exact, Coupling::Truncated] {
            self.run(format!("{name}: spike {coupling:?}"), || {
                let bandwidth = bandwidth(a);
                let division = Division::contiguous_of_at_least(n, comm.size(), bandwidth);
                let d = DistributedCsr::from_replicated(comm, a, &division)?;
                let spike = Spike::with_options(&d, SpikeOptions { coupling, ..SpikeOptions::default() })?;
                let mut x = d.own_entries(&vector(n, 1));
                x.extend(d.own_entries(&vector(n, 2)));
                let m = d.rows().own().len();
                spike.solve_in_place(faer::MatMut::from_column_major_slice_mut(&mut x, m, 2))?;
                Ok((x, spike.traffic()))
            })?;
        }
        Ok(())
    }

    fn krylov<T: Number>(&mut self, name: &str, a: &Csr<T>, methods: &[Method]) -> Result<()> {
        let comm = self.comm;
        for &method in methods {
            self.run(format!("{name}: {method:?}"), || {
                let n = bt_formats::LinearOperator::nrows(a);
                let d = DistributedCsr::from_replicated(comm, a, &Division::contiguous(n, comm.size()))?;
                solve(&d, &mut Identity::new(&d), method)
            })?;
        }
        Ok(())
    }

    /// Those that no other run has.
    fn local_solvers(&mut self) -> Result<()> {
        let comm = self.comm;
        let butterflies = LastSolver::Butterflies(RbtOptions { seed: 7, ..RbtOptions::default() });
        let arms = LocalSolver::Arms(ArmsOptions { last: butterflies, ..ArmsOptions::default() });
        for (wind_of, method, solver) in [
            (0.3, Method::Gmres { restart: 30 }, LocalSolver::IluK { level: 1 }),
            (0.3, Method::Gmres { restart: 30 }, arms),
            (0.0, Method::Cg, LocalSolver::Ic0),
        ] {
            let a = wind::<f64>(7, wind_of);
            self.run(format!("{method:?} with {solver:?}"), || {
                let n = bt_formats::LinearOperator::nrows(&a);
                let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n, comm.size()))?;
                let mut m = Schwarz::new(&d, 1, Overlap::Added, |local| solver.of(local))?;
                solve(&d, &mut m, method)
            })?;
        }
        Ok(())
    }

    /// Rows by themselves among those of a grid, divided where no rank has the whole.
    fn domains(&mut self) -> Result<()> {
        let comm = self.comm;
        self.run("site expansion".into(), || {
            let grid = wind::<f64>(9, 0.2);
            let n = bt_formats::LinearOperator::nrows(&grid);
            let rows =
                (0..n).flat_map(|i| grid.row(i).0.iter().zip(grid.row(i).1).map(move |(&j, &v)| (i as u32, j, v)));
            let entries: Vec<(u32, u32, f64)> = rows.chain((n as u32..n as u32 + 30).map(|i| (i, i, 1.0))).collect();
            let a = csr(n + 30, &entries)?;
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n + 30, comm.size()))?;
            let d = d.by_site_expansion()?;
            let quality = d.quality()?;
            let own = d.rows().own().iter().map(|&i| f64::from(i));
            Ok((own.chain([quality.cut as f64, quality.row_balance]).collect(), Traffic::default()))
        })
    }

    /// A queue with room for 39.
    fn stationary(&mut self) -> Result<()> {
        let comm = self.comm;
        self.run("stationary distribution".into(), || {
            let n = 40u32;
            let rates = (0..n).flat_map(|i| [(i, i.wrapping_sub(1), 2.0), (i, i + 1, 1.0)]);
            let a = csr(n as usize, &rates.filter(|&(_, j, _)| j < n).collect::<Vec<_>>())?;
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n as usize, comm.size()))?;
            let pi = StationaryDistribution::new(&ChainEntries::Rates.check(d)?)?;
            let own = pi.own().iter().map(|p| p.to_f64());
            Ok((own.chain([pi.balance(), pi.error_bound()]).collect(), Traffic::default()))
        })
    }

    /// A matrix read by all ranks, and a vector that all have written and read.
    fn files(&mut self) -> Result<()> {
        let comm = self.comm;
        let a = wind::<f64>(6, 0.3);
        let n = bt_formats::LinearOperator::nrows(&a);
        let [matrix, solution] = ["a", "x"].map(|name| temporary(comm, name));
        let (matrix, solution) = (matrix?, solution?);
        self.run("read and write".into(), || {
            let mut text = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", a.values().len());
            for i in 0..n {
                for (j, v) in a.row(i).0.iter().zip(a.row(i).1) {
                    let _ = writeln!(text, "{} {} {v}", i + 1, j + 1);
                }
            }
            let written = if comm.rank() == 0 { std::fs::write(&matrix, text) } else { Ok(()) };
            agree(comm, written.map_err(|e| Fault::input(format!("{}: {e}", matrix.display()))))?;
            let ranges = RowRanges::even(n, comm.size(), 1);
            let head = read_head_on_all(comm, &matrix)?;
            let (d, _) = DistributedCsr::<f64, _>::read(comm, &matrix, &head, &ranges, &mut ())?;
            let x = d.own_entries(&vector(n, 1));
            Target::create(comm, &solution)?.write(comm, d.rows(), &[x], "")?;
            let head = read_head_on_all(comm, &solution)?;
            let (columns, _) = read_columns_on_all::<f64>(comm, &solution, &head, &ranges, &mut ())?;
            let mut y = vec![0.0; d.rows().own().len()];
            d.apply(1.0, &columns[0], 0.0, &mut y)?;
            y.extend_from_slice(&columns[0]);
            Ok((y, Traffic::default()))
        })?;
        comm.barrier()?;
        if comm.rank() == 0 {
            // What is left of temporary files is nobody's fault.
            let _ = [matrix, solution].map(std::fs::remove_file);
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<()> {
        let comm = self.comm;
        let a = wind::<f64>(6, 0.3);
        let blocks = Partition::uniform(48, 8).map_err(|e| broken(comm, &e))?;
        for sweep in [BlockSweep::Jacobi, BlockSweep::RedBlack { omega: 1.0 }, BlockSweep::RedBlack { omega: 1.2 }] {
            self.run(format!("{sweep:?}"), || {
                let d = DistributedCsr::from_replicated(comm, &a, &Division::by_blocks(&blocks, comm.size()))?;
                let own = Partition::from_sizes(vec![8; d.rows().own().len() / 8]).map_err(|e| broken(comm, &e))?;
                let mut hbisa = BlockIteration::new(&d, own, sweep)?;
                let (b, mut x) = (d.own_entries(&vector(48, 1)), vec![0.0; d.rows().own().len()]);
                let report = hbisa.solve(&b, &mut x, &StopCriterion::default(), &mut ())?;
                Ok((told(x, &report), Traffic::default()))
            })?;
        }
        Ok(())
    }

    fn lines(&mut self) -> Result<()> {
        let comm = self.comm;
        self.run("lines".into(), || {
            let (n, n_lines) = (23, 5);
            let rows = Division::contiguous(n, comm.size()).rows(comm.rank());
            let of = |seed| -> Vec<f64> {
                let whole = vector::<f64>(n * n_lines, seed);
                rows.iter().flat_map(|&i| whole[i as usize * n_lines..][..n_lines].to_vec()).collect()
            };
            let own: Vec<f64> = of(2).iter().map(|v| v + 4.0).collect();
            let lines = Lines::new(comm, n_lines, &of(1), &own, &of(3))?;
            let mut x = of(4);
            lines.solve_in_place(&mut x)?;
            Ok((x, Traffic::default()))
        })
    }

    /// A part without factors: the same sentence on all ranks.
    fn faults(&mut self) {
        let comm = self.comm;
        let n = 3 * comm.size();
        let mut entries: Vec<(u32, u32, f64)> = (0..n as u32).map(|i| (i, i, f64::from(i32::from(i != 1)))).collect();
        entries.push((0, n as u32 - 1, 1.0));
        let made = csr(n, &entries).and_then(|a| {
            let d = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(n, comm.size()))?;
            Schwarz::new(&d, 0, Overlap::Added, |local| LocalSolver::SparseLu.of(local)).map(|_| ())
        });
        let text = made.map_or_else(|e| e.to_string(), |()| "no fault".into());
        self.runs.push(Run { name: text.clone(), bytes: text.into_bytes(), traffic: Traffic::default() });
    }
}

/// A name in the folder of temporary files that rank 0 has chosen. A collective.
fn temporary(comm: &impl Comm, name: &str) -> Result<PathBuf> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = if comm.rank() == 0 { CALLS.fetch_add(1, Ordering::Relaxed) } else { 0 };
    let mut chosen = [f64::from(std::process::id()), call as f64].map(|v| if comm.rank() == 0 { v } else { 0.0 });
    comm.all_sum(&mut chosen)?;
    Ok(std::env::temp_dir().join(format!("blocktri-suite-{}-{}-{name}.mtx", chosen[0], chosen[1])))
}

/// x and the report of a solve with random right-hand side.
fn solve<T: Number, C: Comm>(
    a: &DistributedCsr<'_, T, C>,
    m: &mut dyn DistributedPreconditioner<T>,
    method: Method,
) -> Result<(Vec<T>, Traffic)> {
    let (b, mut x) = (a.own_entries(&vector(a.rows().n(), 1)), vec![T::default(); a.rows().own().len()]);
    let report = Krylov::new(a, method).solve(a, m, &b, &mut x, &StopCriterion::default(), &mut ())?;
    Ok((told(x, &report), Traffic::default()))
}

/// x and what the report says about it.
fn told<T: Number>(mut x: Vec<T>, report: &SolveReport) -> Vec<T> {
    let c = report.certificate;
    let found = [report.iterations as f64, c.relative_residual, c.backward_error, c.componentwise_backward_error];
    x.extend(found.map(|v| T::rounded(v, 0.0)));
    x
}

/// Convection and diffusion on a grid of k × (k + 2) points, k + 2 the fastest; `wind` = 0 is symmetric.
fn wind<T: Number>(k: usize, wind: f64) -> Csr<T> {
    let (w, n) = (k + 2, k * (k + 2));
    let mut entries = Vec::new();
    for i in 0..n {
        let (x, y) = (i % w, i / w);
        let mut push = |j: usize, v: f64| entries.push((i as u32, j as u32, T::rounded(v, wind)));
        if y > 0 {
            push(i - w, -1.0 - wind);
        }
        if x > 0 {
            push(i - 1, -1.0 - wind);
        }
        push(i, 4.5);
        if x + 1 < w {
            push(i + 1, -1.0 + wind);
        }
        if y + 1 < k {
            push(i + w, -1.0 + wind);
        }
    }
    csr(n, &entries).unwrap_or_else(|e| panic!("{e}"))
}

/// From entries sorted by rows and columns.
fn csr<T: Number>(n: usize, entries: &[(u32, u32, T)]) -> Result<Csr<T>> {
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|e| (e.0, e.1));
    let mut ptr = vec![0u32; n + 1];
    for e in &sorted {
        ptr[e.0 as usize + 1] += 1;
    }
    (0..n).for_each(|i| ptr[i + 1] += ptr[i]);
    let (cols, values) = sorted.iter().map(|e| (e.1, e.2)).unzip();
    Csr::new(n, n, ptr, cols, values).map_err(|e| Error::OutOfStep { rank: 0, message: e.to_string() })
}

fn bandwidth<T: Number>(a: &Csr<T>) -> usize {
    let rows = 0..bt_formats::LinearOperator::nrows(a);
    rows.flat_map(|i| a.row(i).0.iter().map(move |&j| (j as usize).abs_diff(i))).max().unwrap_or(0)
}

/// Numbers between −1 and 1 without pattern.
fn vector<T: Number>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // Xorshift, 64 bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / 2f64.powi(52) - 1.0
    };
    (0..n).map(|_| T::rounded(next(), next())).collect()
}

fn broken(comm: &impl Comm, error: &bt_formats::Error) -> Error {
    Error::OutOfStep { rank: comm.rank(), message: error.to_string() }
}
