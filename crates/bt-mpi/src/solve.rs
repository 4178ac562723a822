//! `solve`: read, set up, solve, certify, write; every step by all ranks, on any communicator.

use std::path::Path;
use std::time::{Duration, Instant};

use bt_direct::BlockLu;
use bt_formats::matrix_market::Head;
use bt_formats::{
    BlockTridiagonal, Certificate, Outcome, Partition as BlockSizes, SolveReport, StopCriterion, c64, max_abs, memory,
};
use bt_parallel::{
    BlockIteration, BlockSweep, Comm, Coupling, DistributedCsr, Division, Error, Fault, FaultKind, Krylov,
    Method as Recurrence, Number, Origin, Result, RowRanges, Spike, SpikeOptions, Target, Timed, agree,
    entries_from_ranges, is_complex, read_columns_on_all, read_head_on_all,
};

use crate::args::{Blocks, Device, Local, Method, Partition, Precond, SolveArgs, name_of};
use crate::device::{Gpu, Offload};
use crate::files::{Form, check_output, consecutive, reach};
use crate::precond::Parts;
use crate::report::{Facts, Reply, Seconds};
use crate::unread::unread;
use crate::watch::Watch;
use crate::{device, model, precond, report, signals};

/// Runs the command.
///
/// # Errors
/// Those of the ranks, agreed on.
pub fn run(comm: &impl Comm, args: &SolveArgs) -> Result<Reply> {
    agree(comm, check(comm, args).map_err(Fault::input))?;
    if let Some(limit) = args.memory {
        memory::set_limit(limit);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global();
    agree(comm, pool.map_err(|e| Fault::input(format!("cannot start threads: {e}"))))?;
    if let Some(machine) = &args.model {
        return model::run(comm, args, machine);
    }
    let target = args.output.as_deref().map(|path| Target::create(comm, path)).transpose()?;
    signals::set_temporary_file(target.as_ref().and_then(Target::temporary));
    let started = Instant::now();
    let head = read_head_on_all(comm, &args.matrix)?;
    let rhs = args.rhs.as_deref().map(|path| read_head_on_all(comm, path)).transpose()?;
    let given = Given { head, rhs, started, target };
    let gpu = device::open(comm, args.device)?;
    let job = Job { comm: &Timed::new(comm), args, gpu };
    if is_complex(&given.head) || given.rhs.as_ref().is_some_and(is_complex) {
        job.solve::<c64>(given)
    } else {
        job.solve::<f64>(given)
    }
}

/// What has to hold before anything is read or written.
fn check(comm: &impl Comm, args: &SolveArgs) -> std::result::Result<(), String> {
    let method = name_of(args.method);
    if args.precond == Precond::Schur && args.method.is_krylov() && args.method != Method::Fgmres {
        return Err(format!("--precond schur changes from step to step: it is for --method fgmres, not {method}"));
    }
    if args.method.is_hbisa() && args.blocks.is_none() {
        return Err(format!("--method {method} over ranks needs --blocks"));
    }
    check_parts(args)?;
    if args.partition == Partition::Dse && !args.method.is_krylov() {
        return Err(format!("--method {method} needs consecutive rows: --partition dse is for the Krylov methods"));
    }
    let blocks = match &args.blocks {
        Some(Blocks::File(file)) => Some(file.as_path()),
        _ => None,
    };
    let inputs = [("the matrix", Some(args.matrix.as_path())), ("--rhs", args.rhs.as_deref()), ("--blocks", blocks)];
    check_output(comm, args.output.as_deref(), &inputs)
}

/// What the solver of the part of a rank asks for.
fn check_parts(args: &SolveArgs) -> std::result::Result<(), String> {
    let (solved, local) = (args.method.is_krylov() && args.precond != Precond::None, name_of(args.local));
    if solved && args.local == Local::Blocks {
        if args.blocks.is_none() {
            return Err("--local blocks needs --blocks".into());
        }
        if args.precond != Precond::BlockJacobi || args.partition != Partition::Contiguous {
            return Err("--local blocks has whole blocks of consecutive rows on each rank: it is for --precond \
                        block-jacobi and --partition contiguous"
                .into());
        }
    }
    // The blocks of the hbisa methods are exact, whatever --local says.
    if args.device == Device::Cpu || args.method.is_hbisa() {
        return Ok(());
    }
    if !solved {
        let what = if args.method.is_krylov() {
            "--precond none".into()
        } else {
            format!("--method {}", name_of(args.method))
        };
        return Err(format!(
            "--device gpu is for the local solvers of preconditioners and the blocks of the hbisa methods: {what} has none"
        ));
    }
    if !matches!(args.local, Local::Ilu0 | Local::Ic0 | Local::Ilut | Local::ArmsRbt | Local::Blocks) {
        return Err(format!("--device gpu has no --local {local}: it has ilu0, ic0, ilut, arms-rbt and blocks"));
    }
    Ok(())
}

/// Files that are open.
struct Given {
    head: Head,
    rhs: Option<Head>,
    started: Instant,
    target: Option<Target>,
}

struct Job<'a, 't, C: Comm> {
    comm: &'a Timed<'t, C>,
    args: &'a SolveArgs,
    gpu: Option<Gpu>,
}

/// A matrix, and notes on its file.
type MatrixRead<'c, 't, T, C> = (DistributedCsr<'c, T, Timed<'t, C>>, Vec<String>);

/// Own rows of each column, and of x* where b is made of it.
struct RightHandSides<T> {
    columns: Vec<Vec<T>>,
    x_star: Option<Vec<T>>,
    /// On their file.
    notes: Vec<String>,
}

/// A solution: own rows of each column, one report of all, and seconds of making it ready.
struct Solved<T> {
    columns: Vec<Vec<T>>,
    report: SolveReport,
    setup: f64,
    notes: Vec<String>,
}

impl<C: Comm> Job<'_, '_, C> {
    fn solve<T: Offload>(&self, Given { head, rhs, started, target }: Given) -> Result<Reply> {
        let (comm, args) = (self.comm, self.args);
        let n = head.header.nrows;
        let nothing =
            || Fault::input(format!("{}: the matrix is 0 × 0: there is nothing to solve", args.matrix.display()));
        agree(comm, if n == 0 { Err(nothing()) } else { Ok(()) })?;
        let mut watch = Watch::new(args.rtol, comm.rank() == 0 && !args.answer.quiet);
        let blocks = self.blocks(n)?;
        let ranges = match &blocks {
            Some(blocks) => self.ranges_of_blocks(blocks, 1)?,
            None => RowRanges::even(n, comm.size(), 1),
        };
        let (a, mut read_notes) = self.read_matrix::<T>(&head, &ranges, blocks.as_ref(), &mut watch)?;
        let RightHandSides { columns: b, x_star, notes } = self.right_hand_sides(&a, rhs.as_ref(), &mut watch)?;
        read_notes.extend(notes);
        let read = started.elapsed().as_secs_f64();

        let meter = comm.meter();
        let solving = Instant::now();
        let stop = StopCriterion {
            rtol: args.rtol,
            atol: args.atol,
            max_iters: args.max_iters,
            time_limit: args.time_limit.and_then(|s| Duration::try_from_secs_f64(s).ok()),
            ..StopCriterion::default()
        };
        let own_blocks = blocks.as_ref().map(|blocks| self.own_blocks(blocks, &a)).transpose()?;
        let solved = match args.method {
            Method::Spike | Method::SpikeTruncated => self.spike(&a, own_blocks.as_ref(), &b)?,
            Method::Hbisa | Method::HbisaRedblack | Method::HbisaSor => {
                self.hbisa(&a, own_blocks, &b, &stop, &mut watch)?
            }
            Method::Cg | Method::Bicgstab | Method::Gmres | Method::Fgmres => {
                self.krylov(&a, own_blocks.as_ref(), &b, &stop, &mut watch)?
            }
        };
        let elapsed = solving.elapsed().as_secs_f64();
        let costs = meter.stop(comm).over_ranks(comm)?;
        drop(watch);
        let Solved { columns, mut report, setup, mut notes } = solved;
        if report.outcome == Outcome::Stopped {
            return agree(comm, Err(Fault::new(FaultKind::Stopped, "interrupted")));
        }
        let forward_error = x_star.map(|x_star| self.forward_error(&columns, &x_star)).transpose()?;
        let mut slowest = [read, setup, (elapsed - setup).max(0.0), started.elapsed().as_secs_f64()];
        comm.all_max(&mut slowest)?;
        let [read, setup, solve, total] = slowest;
        let bytes = &mut report.bytes;
        let mut sums = [bytes.matrix as f64, bytes.factors as f64, bytes.workspace as f64];
        comm.all_sum(&mut sums)?;
        [bytes.matrix, bytes.factors, bytes.workspace] = sums.map(|s| s as usize);

        let converged = report.outcome == Outcome::Converged;
        notes.splice(0..0, read_notes);
        let mut warnings = Vec::new();
        if !converged {
            let sentence = why_not(&report, args);
            notes.push(sentence.clone());
            warnings.push(sentence);
        }
        notes.extend(report.notes.iter().map(ToString::to_string));
        let unread = unread(args);
        notes.extend(unread.iter().cloned());
        warnings.extend(unread);
        let krylov = args.method.is_krylov();
        let peak = report::peak_memory(comm)?;
        let local = if krylov && args.precond != Precond::None { precond::named(args) } else { None };
        let facts = Facts {
            peak,
            file: &args.matrix,
            scalar: <T as bt_formats::Scalar>::KIND,
            n,
            nnz: a.nnz(),
            nrhs: columns.len(),
            blocks: blocks.as_ref().map(BlockSizes::n_blocks),
            method_requested: name_of(args.method),
            precond: if krylov { name_of(args.precond) } else { "none".into() },
            local: (krylov && args.precond != Precond::None).then(|| name_of(args.local)),
            partition: name_of(args.partition),
            quality: if args.partition == Partition::Dse { Some(a.quality()?) } else { None },
            seed: local.and_then(precond::seed),
            gpus: self.gpus()?,
            threads: args.threads,
            report: &report,
            forward_error,
            seconds: Seconds { read, setup, solve, total },
            costs: &costs,
            notes,
            output: args.output.as_deref(),
        };
        if let Some(target) = target {
            if args.output.as_deref().and_then(Form::of) == Some(Form::Table) {
                target.write_table(comm, a.rows(), &columns)?;
            } else {
                let comment = format!(
                    "solution of {} by blocktri-mpi {} on {} ranks, method {}, backward error {:.2e}",
                    args.matrix.display(),
                    env!("CARGO_PKG_VERSION"),
                    comm.size(),
                    report.method,
                    report.certificate.backward_error
                );
                target.write(comm, a.rows(), &columns, &comment)?;
            }
            signals::set_temporary_file(None);
        }
        let code = if converged { 0 } else { crate::NOT_CONVERGED };
        Ok(Reply { code, json: facts.to_json(), text: facts.to_text(), warnings })
    }

    /// Consecutive rows as `ranges` has them, of SPIKE as many as couplings reach, or those of domains.
    fn read_matrix<T: Number>(
        &self,
        head: &Head,
        ranges: &RowRanges,
        blocks: Option<&BlockSizes>,
        watch: &mut Watch,
    ) -> Result<MatrixRead<'_, '_, T, C>> {
        let (comm, path) = (self.comm, self.args.matrix.as_path());
        if self.args.partition == Partition::Dse {
            let (a, notes) = DistributedCsr::read(comm, path, head, ranges, watch)?;
            return Ok((a.by_site_expansion()?, notes));
        }
        if !self.args.method.is_spike() {
            return DistributedCsr::read(comm, path, head, ranges, watch);
        }
        let Some(blocks) = blocks else { return consecutive(comm, path, head, watch) };
        let (a, notes) = DistributedCsr::read(comm, path, head, ranges, watch)?;
        // Ranges that are joined end where some of them did: couplings reach no farther beyond.
        let joined = self.ranges_of_blocks(blocks, reach(&a)?.0)?;
        if joined == *ranges {
            return Ok((a, notes));
        }
        drop(a);
        DistributedCsr::read(comm, path, head, &joined, watch)
    }

    /// As the file has them, or of the known solution.
    fn right_hand_sides<T: Number>(
        &self,
        a: &DistributedCsr<'_, T, Timed<'_, C>>,
        head: Option<&Head>,
        watch: &mut Watch,
    ) -> Result<RightHandSides<T>> {
        let own = a.rows().own();
        if let (Some(head), Some(path)) = (head, self.args.rhs.as_deref()) {
            let ranges = RowRanges::even(a.rows().n(), self.comm.size(), 1);
            let (columns, notes) = read_columns_on_all::<T>(self.comm, path, head, &ranges, watch)?;
            let columns: Result<Vec<_>> =
                columns.iter().map(|column| entries_from_ranges(self.comm, &ranges, column, own)).collect();
            return Ok(RightHandSides { columns: columns?, x_star: None, notes });
        }
        // x*_i = 1 + ((7·i) mod 11)/11
        let star = |&g: &u32| T::rounded(1.0 + ((7 * u64::from(g)) % 11) as f64 / 11.0, 0.0);
        let x: Vec<T> = own.iter().map(star).collect();
        let mut b = vec![T::default(); own.len()];
        a.apply(T::rounded(1.0, 0.0), &x, T::default(), &mut b)?;
        Ok(RightHandSides { columns: vec![b], x_star: Some(x), notes: Vec::new() })
    }

    /// ‖x − x*‖∞ / ‖x*‖∞
    fn forward_error<T: Number>(&self, columns: &[Vec<T>], x_star: &[T]) -> Result<f64> {
        let x = columns.first().map_or(&[][..], |x| x);
        let difference: Vec<T> = x.iter().zip(x_star).map(|(&x, &s)| x - s).collect();
        let mut largest = [max_abs(&difference), max_abs(x_star)];
        self.comm.all_max(&mut largest)?;
        Ok(largest[0] / largest[1])
    }

    fn krylov<T: Offload>(
        &self,
        a: &DistributedCsr<'_, T, Timed<'_, C>>,
        blocks: Option<&BlockSizes>,
        b: &[Vec<T>],
        stop: &StopCriterion,
        watch: &mut Watch,
    ) -> Result<Solved<T>> {
        let started = Instant::now();
        let parts = Parts { args: self.args, gpu: self.gpu.as_ref(), blocks };
        let made = precond::make(a, &parts);
        if matches!(made, Err(Error::OnRank { .. })) {
            self.check_gpu()?;
        }
        let mut m = made?;
        let setup = started.elapsed().as_secs_f64();
        let restart = self.args.restart;
        let mut krylov = Krylov::new(
            a,
            match self.args.method {
                Method::Cg => Recurrence::Cg,
                Method::Bicgstab => Recurrence::BiCgStab,
                Method::Gmres => Recurrence::Gmres { restart },
                _ => Recurrence::Fgmres { restart },
            },
        );
        let solve = |b: &[T], x: &mut [T], watch: &mut Watch| krylov.solve(a, &mut *m, b, x, stop, watch);
        let solved = self.columns(b, setup, watch, solve)?;
        self.check_gpu()?;
        Ok(solved)
    }

    /// Ends all ranks where one has lost its GPU. A collective.
    fn check_gpu(&self) -> Result<()> {
        self.gpu.as_ref().map_or(Ok(()), |gpu| agree(self.comm, gpu.fault()))
    }

    /// The GPUs, each with the ranks that have it. A collective.
    fn gpus(&self) -> Result<Option<Vec<String>>> {
        let Some(gpu) = &self.gpu else { return Ok(None) };
        let names = self.comm.all_gather(gpu.name().as_bytes())?;
        Ok(Some(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()))
    }

    fn hbisa<T: Offload>(
        &self,
        a: &DistributedCsr<'_, T, Timed<'_, C>>,
        blocks: Option<BlockSizes>,
        b: &[Vec<T>],
        stop: &StopCriterion,
        watch: &mut Watch,
    ) -> Result<Solved<T>> {
        let started = Instant::now();
        let blocks = agree(self.comm, blocks.ok_or_else(|| Fault::input("--blocks is needed")))?;
        let sweep = match self.args.method {
            Method::Hbisa => BlockSweep::Jacobi,
            Method::HbisaRedblack => BlockSweep::RedBlack { omega: 1.0 },
            _ => BlockSweep::RedBlack { omega: self.args.omega },
        };
        let made = match &self.gpu {
            None => BlockIteration::new(a, blocks, sweep),
            Some(gpu) => BlockIteration::with_solver(a, blocks, sweep, |d, blocks| T::blocks(gpu, d, blocks)),
        };
        if matches!(made, Err(Error::OnRank { .. })) {
            self.check_gpu()?;
        }
        let mut hbisa = made?;
        let setup = started.elapsed().as_secs_f64();
        let solve = |b: &[T], x: &mut [T], watch: &mut Watch| hbisa.solve(b, x, stop, watch);
        let solved = self.columns(b, setup, watch, solve)?;
        self.check_gpu()?;
        Ok(solved)
    }

    /// One column after the other; the report of the worst.
    fn columns<T: Number>(
        &self,
        b: &[Vec<T>],
        setup: f64,
        watch: &mut Watch,
        mut solve: impl FnMut(&[T], &mut [T], &mut Watch) -> Result<SolveReport>,
    ) -> Result<Solved<T>> {
        let (mut columns, mut worst): (Vec<Vec<T>>, Option<SolveReport>) = (Vec::new(), None);
        for b in b {
            let mut x = vec![T::default(); b.len()];
            let report = solve(b, &mut x, watch)?;
            columns.push(x);
            let stopped = report.outcome == Outcome::Stopped;
            worst = Some(match worst.take() {
                None => report,
                Some(worst) => worse(worst, report),
            });
            if stopped {
                break;
            }
        }
        let report = agree(self.comm, worst.ok_or_else(|| Fault::input("there is no right-hand side")))?;
        Ok(Solved { columns, report, setup, notes: Vec::new() })
    }

    fn spike<T: Number>(
        &self,
        a: &DistributedCsr<'_, T, Timed<'_, C>>,
        blocks: Option<&BlockSizes>,
        b: &[Vec<T>],
    ) -> Result<Solved<T>> {
        let m = a.rows().own().len();
        let started = Instant::now();
        let truncated = self.args.method == Method::SpikeTruncated;
        let coupling = if truncated { Coupling::Truncated } else { Coupling::Exact };
        let refinements = self.args.refine.unwrap_or(if truncated { 3 } else { 1 });
        let options = SpikeOptions { coupling, refinements };
        let spike = match blocks {
            None => Spike::with_options(a, options)?,
            Some(blocks) => Spike::with_factors(a, options, |local| {
                let layout = BlockLu::<T>::layout(blocks).unless_full(local, blocks);
                Ok(Box::new(BlockLu::new(&BlockTridiagonal::from_csr(local, blocks.clone(), layout)?)?))
            })?,
        };
        let setup = started.elapsed().as_secs_f64();
        let solving = Instant::now();
        let mut x = b.concat();
        spike.solve_in_place(faer_mut(&mut x, m, b.len()))?;
        let columns: Vec<Vec<T>> = (0..b.len()).map(|j| x[j * m..(j + 1) * m].to_vec()).collect();
        let mut certificate = Certificate::default();
        for (x, b) in columns.iter().zip(b) {
            certificate = worst_of(certificate, a.certify(x, b)?);
        }
        let exact = certificate.backward_error <= 16.0 * f64::EPSILON;
        let mut notes = vec![format!("neighbouring ranks couple by {} unknowns", spike.k())];
        if truncated {
            notes.push(format!("tips of the spikes up to {:.1e} are neglected", spike.neglected()));
        }
        let report = SolveReport {
            method: if truncated { "spike-truncated" } else { "spike" },
            outcome: if exact { Outcome::Converged } else { Outcome::Inaccurate },
            iterations: refinements,
            recurrence_residual: None,
            certificate,
            operator_applications: b.len() * refinements,
            preconditioner_applications: b.len() * (refinements + 1),
            times: bt_formats::PhaseTimes { solve: solving.elapsed(), ..bt_formats::PhaseTimes::default() },
            bytes: bt_formats::Bytes {
                matrix: bt_formats::Matrix::bytes(a.local()),
                factors: spike.bytes(),
                workspace: 2 * size_of_val(&*x),
            },
            notes: Vec::new(),
        };
        Ok(Solved { columns, report, setup, notes })
    }

    /// The blocks of the whole matrix.
    fn blocks(&self, n: usize) -> Result<Option<BlockSizes>> {
        let read = match &self.args.blocks {
            None => Ok(None),
            Some(Blocks::Uniform(k)) if *k > n => {
                Err(Fault::input(format!("--blocks {k}: the matrix has only {n} rows")))
            }
            Some(Blocks::Uniform(k)) => BlockSizes::uniform(n, *k).map(Some).map_err(Fault::from),
            Some(Blocks::File(file)) => block_sizes(file, n).map(Some),
        };
        agree(self.comm, read)
    }

    /// Whole blocks for each rank, of `least` rows where it has any.
    fn ranges_of_blocks(&self, blocks: &BlockSizes, least: usize) -> Result<RowRanges> {
        let p = self.comm.size();
        let division = Division::by_blocks_of_at_least(blocks, p, least);
        let owner = division.owner();
        let starts = (0..=p).map(|rank| owner.partition_point(|&o| (o as usize) < rank)).collect();
        agree(self.comm, RowRanges::new(starts).ok_or_else(|| Fault::input("blocks that no ranks can share")))
    }

    /// The blocks of this rank.
    fn own_blocks<T: Number>(
        &self,
        blocks: &BlockSizes,
        a: &DistributedCsr<'_, T, Timed<'_, C>>,
    ) -> Result<BlockSizes> {
        let own = a.rows().own();
        let range = own.first().map_or(0..0, |&first| first as usize..first as usize + own.len());
        let sizes = (0..blocks.n_blocks()).filter(|&j| range.contains(&blocks.range(j).start)).map(|j| blocks.size(j));
        agree(self.comm, BlockSizes::from_sizes(sizes).map_err(Fault::from))
    }
}

fn faer_mut<T>(x: &mut [T], rows: usize, columns: usize) -> faer::MatMut<'_, T> {
    faer::MatMut::from_column_major_slice_mut(x, rows, columns)
}

/// One report of two columns: the first that did not converge, and the largest numbers.
fn worse(a: SolveReport, b: SolveReport) -> SolveReport {
    let certificate = worst_of(a.certificate, b.certificate);
    let iterations = a.iterations.max(b.iterations);
    let report = if a.outcome == Outcome::Converged { b } else { a };
    SolveReport { certificate, iterations, ..report }
}

fn worst_of(a: Certificate, b: Certificate) -> Certificate {
    use bt_formats::RealScalar;
    Certificate {
        relative_residual: a.relative_residual.max_nan(b.relative_residual),
        backward_error: a.backward_error.max_nan(b.backward_error),
        componentwise_backward_error: a.componentwise_backward_error.max_nan(b.componentwise_backward_error),
    }
}

/// Block sizes, one a line; blank lines and what follows `#` or `%` do not count.
fn block_sizes(file: &Path, n: usize) -> std::result::Result<BlockSizes, Fault> {
    let fault = |line: Option<u64>, message: String, help: &str| {
        let place = line.map_or(String::new(), |line| format!(":{line}"));
        let origin = Origin { file: Some(file.display().to_string()), line, help: Some(help.to_owned()) };
        Fault::input(format!("{}{place}: {message}", file.display())).from_file(origin)
    };
    let (whole, one_a_line) = (
        "--blocks takes a whole number or the name of a file of block sizes",
        "a file of blocks has one whole number of at least 1 on each line",
    );
    let text = std::fs::read_to_string(file).map_err(|e| fault(None, e.to_string(), whole))?;
    let mut sizes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let word = line.split(['#', '%']).next().unwrap_or_default().trim();
        if !word.is_empty() {
            let size = word.parse().ok().filter(|&k: &usize| k > 0);
            sizes.push(size.ok_or_else(|| fault(Some(number), format!("'{word}' is not a block size"), one_a_line))?);
        }
    }
    let sum = sizes.iter().fold(0usize, |sum, &k| sum.saturating_add(k));
    if sum != n {
        return Err(fault(None, format!("the block sizes sum to {sum}, but the matrix has {n} rows"), one_a_line));
    }
    Ok(BlockSizes::from_sizes(sizes)?)
}

/// Why there is no convergence, and what to try.
fn why_not(report: &SolveReport, args: &SolveArgs) -> String {
    let asked = format!("the relative residual is {:.2e}, not {:.0e}", report.certificate.relative_residual, args.rtol);
    let better = if args.method.is_hbisa() {
        "take larger --blocks, or --method spike with these"
    } else {
        "take a stronger --local, more --overlap, or --precond schur"
    };
    let (why, then) = match report.outcome {
        Outcome::IterationLimit => (format!("{} iterations were not enough: {asked}", report.iterations), better),
        Outcome::TimeLimit => (format!("the time is up: {asked}"), "allow more time"),
        Outcome::Breakdown(reason) => {
            (format!("{} broke down after {} iterations: {reason}; {asked}", report.method, report.iterations), better)
        }
        Outcome::Inaccurate => (
            format!("the backward error {:.2e} is above rounding level", report.certificate.backward_error),
            "raise --refine, or take --method spike on fewer ranks",
        ),
        Outcome::FalseConvergence | Outcome::Loose => {
            (format!("the attainable accuracy is reached: {asked}"), "raise --rtol")
        }
        other => (format!("the solve ended as {}: {asked}", other.name()), better),
    };
    format!("not converged: {why}; to try: {then}")
}
