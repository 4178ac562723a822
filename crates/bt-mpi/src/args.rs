//! The command line: names of options are those of `blocktri solve`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use bt_formats::memory::Limit;
use bt_parallel::Machine;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

/// Solve sparse, banded and block-tridiagonal systems, and Markov chains, over the ranks of MPI, with a certificate.
#[derive(Debug, Parser)]
#[command(
    name = "blocktri-mpi",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Exit codes, the same on all ranks:
  0  done, to the tolerance asked        3  did not converge (best x written)
  2  bad usage or bad input              4  the matrix is singular, the chain has several closed classes
  5  no GPU for --device gpu              130  interrupted, nothing written

Examples:
  mpirun -n 8 blocktri-mpi solve A.mtx -b b.mtx -o x.mtx --precond schur --local arms
  mpirun -n 4 blocktri-mpi solve A.mtx --method cg --precond schwarz --overlap 1 --local ic0
  mpirun -n 8 blocktri-mpi solve band.mtx --method spike -b b.mtx -o x.mtx
  mpirun -n 4 blocktri-mpi solve blocks.mtx --method hbisa --blocks 16
  mpirun -n 4 blocktri-mpi solve A.mtx --method gmres --local ilu0 --device gpu
  mpirun -n 4 blocktri-mpi solve blocks.mtx --method hbisa-redblack --blocks 16 --device gpu
  mpirun -n 8 blocktri-mpi stationary Q.mtx -o pi.mtx --json
  mpirun -n 8 blocktri-mpi stationary counts.mtx --transitions --normalize
  blocktri-mpi solve A.mtx --method cg --precond none --model latency=2e-6,bandwidth=1e10,flops=2e9"
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// That of this process.
    ///
    /// # Errors
    /// What cannot be understood, and requests for help.
    pub fn of_command_line() -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        let mut cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        if let (Command::Solve(args), Some((name, of))) = (&mut cli.command, matches.subcommand()) {
            let ids = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
            let given = |id: &&str| of.value_source(id) == Some(ValueSource::CommandLine);
            args.given = ids.map(|arg| arg.get_id().as_str()).filter(given).map(str::to_owned).collect();
        }
        Ok(cli)
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Solve A·X = B and certify the answer
    Solve(Box<SolveArgs>),
    /// Stationary distribution of a Markov chain, every probability with a bound of its error
    Stationary(StationaryArgs),
    /// Published experiments over ranks, for `blocktri reproduce parms --ranks FILE`
    Reproduce(ReproduceArgs),
}

/// How a command answers.
#[derive(Clone, Copy, Debug, Args)]
pub struct Answer {
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Errors and warnings only
    #[arg(long, short)]
    pub quiet: bool,
}

impl Command {
    /// How it answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Solve(args) => args.answer,
            Self::Stationary(args) => args.answer,
            Self::Reproduce(args) => args.answer,
        }
    }
}

/// Options of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each number of ranks has experiments of its own; runs add to the file:
  for p in 1 2 4; do mpirun -n $p blocktri-mpi reproduce parms --quick -o ranks.json; done
  blocktri reproduce parms --quick --ranks ranks.json")]
pub struct ReproduceArgs {
    /// Whose experiments
    #[arg(value_name = "STUDY")]
    pub study: Study,
    /// Sizes that take seconds
    #[arg(long)]
    pub quick: bool,
    /// Only experiments with this in their name; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// File of results, which earlier runs may have begun
    #[arg(short, long, value_name = "FILE.json")]
    pub output: PathBuf,
    /// How it answers.
    #[command(flatten)]
    pub answer: Answer,
}

/// Experiments over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Study {
    /// FGMRES with the preconditioners of pARMS on 1 to 12 ranks
    Parms,
}

/// Options of `stationary`.
#[derive(Debug, Args)]
pub struct StationaryArgs {
    /// Generator of the chain: rates out of a state in its row (Matrix Market, coordinate; .mtx is read by all ranks, .mtx.gz unpacked by
    /// rank 0)
    #[arg(value_name = "Q.mtx")]
    pub chain: PathBuf,
    /// The file holds transition probabilities: rows that sum to one
    #[arg(long)]
    pub transitions: bool,
    /// Whether the diagonal of the generator is in the file
    #[arg(long, value_name = "WHERE", default_value = "given", conflicts_with = "transitions")]
    pub diagonal: Diagonal,
    /// Divide each row of --transitions by its sum (counts, few digits); make the diagonal of a generator from the rates
    #[arg(long)]
    pub normalize: bool,
    /// Where π goes (.mtx, n × 1, or .csv with log10 π), written by all ranks, whole or not at all
    #[arg(short, long, value_name = "FILE.mtx|csv")]
    pub output: Option<PathBuf>,
    /// Memory that a rank may take, as a size (8G) or a share (20%) of what is available on its node [default: 80%]
    #[arg(long, value_name = "SIZE", value_parser = str::parse::<Limit>)]
    pub memory: Option<Limit>,
    /// How it answers.
    #[command(flatten)]
    pub answer: Answer,
}

/// Where the diagonal of a generator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Diagonal {
    /// In the file: rows sum to zero, and are checked
    Given,
    /// Nowhere: the entries are rates, and what is on the diagonal is not read
    Missing,
    /// In the file where any entry of it is not zero, else nowhere
    Auto,
}

/// Options of `solve`.
#[derive(Debug, Args)]
pub struct SolveArgs {
    /// Matrix A (Matrix Market, coordinate; .mtx is read by all ranks, .mtx.gz unpacked by rank 0)
    #[arg(value_name = "A.mtx")]
    pub matrix: PathBuf,
    /// Right-hand sides, n × s (Matrix Market); without it b = A·x*, x*_i = 1 + ((7·i) mod 11)/11
    #[arg(short = 'b', long, value_name = "FILE")]
    pub rhs: Option<PathBuf>,
    /// Where the solution goes (.mtx, or .csv with a row a line), written by all ranks, whole or not at all
    #[arg(short, long, value_name = "FILE.mtx|csv")]
    pub output: Option<PathBuf>,
    /// Method of solution
    #[arg(long, value_name = "METHOD", default_value = "fgmres")]
    pub method: Method,
    /// Preconditioner of cg, bicgstab, gmres and fgmres; schur is for fgmres
    #[arg(long, value_name = "P", default_value = "block-jacobi")]
    pub precond: Precond,
    /// Solver of the part of a rank
    #[arg(long, value_name = "S", default_value = "ilu0")]
    pub local: Local,
    /// Where the part of a rank is solved
    #[arg(long, value_name = "D", default_value = "cpu")]
    pub device: Device,
    /// Layers of overlap of schwarz and ras [default: 1]
    #[arg(long, value_name = "N", value_parser = overlap)]
    pub overlap: Option<usize>,
    /// Which rows a rank owns: consecutive ones, or those of a domain grown in the graph
    #[arg(long, value_name = "P", default_value = "contiguous")]
    pub partition: Partition,
    /// Uniform block size, or a file with one block size a line: for the hbisa methods, spike of whole blocks, and
    /// --local blocks
    #[arg(long, value_name = "K|FILE")]
    pub blocks: Option<Blocks>,
    /// Tolerance of an iterative method, relative to ‖b‖₂
    #[arg(long, value_name = "TOL", default_value = "1e-8", value_parser = tolerance)]
    pub rtol: f64,
    /// Absolute tolerance on ‖b − Ax‖₂
    #[arg(long, value_name = "TOL", default_value = "0", value_parser = tolerance)]
    pub atol: f64,
    /// Iterations at most
    #[arg(long, alias = "max-iterations", value_name = "N", default_value = "10000", value_parser = iterations)]
    pub max_iters: usize,
    /// Steps between two restarts of gmres and fgmres
    #[arg(long, value_name = "N", default_value = "30", value_parser = count)]
    pub restart: usize,
    /// Refinement steps of the spike methods [default: 1, of spike-truncated 3]
    #[arg(long, value_name = "N", value_parser = iterations)]
    pub refine: Option<usize>,
    /// Relaxation of hbisa-sor, between 0 and 2
    #[arg(long, value_name = "W", default_value = "1.1", value_parser = relaxation)]
    pub omega: f64,
    /// Level of fill of iluk [default: 1], levels of arms above the last at most [default: 10]
    #[arg(long, value_name = "L", value_parser = iterations)]
    pub levels: Option<usize>,
    /// Entries that ilut keeps in a row of L, and of U [default: 20], and arms in a row of every part [default: 50]
    #[arg(long, value_name = "K", value_parser = count)]
    pub fill: Option<usize>,
    /// Size, relative to its row, below which ilut and arms drop an entry [default: 1e-3]
    #[arg(long, value_name = "TOL", value_parser = tolerance)]
    pub drop_tol: Option<f64>,
    /// Seed of the butterflies of arms-rbt [default: 1]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Steps of GMRES on the interface in an application of schur, at most
    #[arg(long, value_name = "N", default_value = "5", value_parser = count)]
    pub inner_steps: usize,
    /// Reduction of the interface's residual that is enough for schur
    #[arg(long, value_name = "TOL", default_value = "1e-2", value_parser = tolerance)]
    pub inner_rtol: f64,
    /// Seconds that the solve may take; then it ends with the best x so far, and exit code 3
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// Print what an iteration without a preconditioner would take on 1 to 4096 ranks of a machine, from counts, and solve nothing
    #[arg(long, value_name = "latency=S,bandwidth=B/S,flops=F/S", value_parser = machine)]
    pub model: Option<Machine>,
    /// Threads of a rank
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub threads: usize,
    /// Memory that a rank may take, as a size (8G) or a share (20%) of what is available on its node [default: 80%]
    #[arg(long, value_name = "SIZE", value_parser = str::parse::<Limit>)]
    pub memory: Option<Limit>,
    /// How it answers.
    #[command(flatten)]
    pub answer: Answer,
    /// The names of those that were given, as fields are called.
    #[arg(skip)]
    pub given: Vec<String>,
}

/// A method over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Conjugate gradients: symmetric positive definite
    Cg,
    /// BiCGSTAB
    Bicgstab,
    /// GMRES with restarts
    Gmres,
    /// Flexible GMRES: M may change, as schur does
    Fgmres,
    /// SPIKE: bands, or whole blocks with --blocks; exact
    Spike,
    /// The same without the far tips of the spikes: dominant matrices
    SpikeTruncated,
    /// Block Jacobi sweeps
    Hbisa,
    /// Block sweeps, even blocks and then odd ones
    HbisaRedblack,
    /// The same, relaxed
    HbisaSor,
}

impl Method {
    /// Whether it takes a preconditioner.
    pub fn is_krylov(self) -> bool {
        matches!(self, Self::Cg | Self::Bicgstab | Self::Gmres | Self::Fgmres)
    }
    /// Whether it begins anew after some steps.
    pub fn has_restarts(self) -> bool {
        matches!(self, Self::Gmres | Self::Fgmres)
    }
    /// Whether it sweeps over blocks.
    pub fn is_hbisa(self) -> bool {
        matches!(self, Self::Hbisa | Self::HbisaRedblack | Self::HbisaSor)
    }
    /// Whether it eliminates.
    pub fn is_spike(self) -> bool {
        matches!(self, Self::Spike | Self::SpikeTruncated)
    }
}

/// A preconditioner over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Precond {
    /// M = I
    None,
    /// The part of each rank by itself
    BlockJacobi,
    /// Additive Schwarz
    Schwarz,
    /// Restricted additive Schwarz
    Ras,
    /// The Schur complement of the interface, by inner GMRES
    Schur,
}

/// A solver of the part of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Local {
    /// ILU on the pattern
    Ilu0,
    /// ILU with levels of fill
    Iluk,
    /// ILU with dropping
    Ilut,
    /// Incomplete Cholesky: symmetric positive definite
    Ic0,
    /// Multilevel elimination
    Arms,
    /// The same with butterflies on the last level
    ArmsRbt,
    /// Sparse LU
    Direct,
    /// Sparse QR, where elements grow in sparse LU
    SparseQr,
    /// The diagonal blocks of --blocks, each exact
    Blocks,
}

/// Where the part of a rank is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// By the threads of the rank
    Cpu,
    /// On a GPU of its node, which ranks take in turn: ilu0, ic0, ilut, blocks, the last level of arms-rbt, and the blocks of the hbisa
    /// methods
    Gpu,
}

/// Who owns which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Partition {
    /// Consecutive rows
    Contiguous,
    /// Distributed site expansion
    Dse,
}

/// The name of a value, as the command line has it.
pub fn name_of(value: impl ValueEnum + Copy) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}

/// A uniform block size, or a file of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// One size for all.
    Uniform(usize),
    /// A file with one size a line.
    File(PathBuf),
}

impl FromStr for Blocks {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
            return count(text).map(Self::Uniform);
        }
        Ok(Self::File(text.into()))
    }
}

/// `latency=2e-6,bandwidth=1e10,flops=2e9`, in any order.
fn machine(text: &str) -> Result<Machine, String> {
    const FORM: &str =
        "latency=SECONDS,bandwidth=BYTES_PER_SECOND,flops=FLOPS_PER_SECOND is needed, each a positive number";
    let [mut latency, mut bandwidth, mut flops] = [None; 3];
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or(FORM)?;
        let place = match name.trim() {
            "latency" => &mut latency,
            "bandwidth" => &mut bandwidth,
            "flops" => &mut flops,
            _ => return Err(FORM.into()),
        };
        *place = Some(seconds(value.trim()).map_err(|_| FORM)?);
    }
    match (latency, bandwidth, flops) {
        (Some(latency), Some(bandwidth), Some(flop_rate)) => Ok(Machine { latency, bandwidth, flop_rate }),
        _ => Err(FORM.into()),
    }
}

fn whole(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let found = text.parse().ok().filter(|n| range.contains(n));
    found.ok_or_else(|| format!("a whole number from {} to {} is needed", range.start(), range.end()))
}

fn count(text: &str) -> Result<usize, String> {
    whole(text, 1..=u32::MAX as usize - 1)
}

fn iterations(text: &str) -> Result<usize, String> {
    whole(text, 0..=1_000_000_000_000_000)
}

fn overlap(text: &str) -> Result<usize, String> {
    whole(text, 0..=3)
}

fn real(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| "a finite number is needed".into())
}

fn tolerance(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x >= 0.0).ok_or_else(|| "a finite number of at least 0 is needed".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0).ok_or_else(|| "a positive number is needed".into())
}

fn relaxation(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0 && x < 2.0).ok_or_else(|| "a number between 0 and 2 is needed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn machines_parse() {
        let machine = |text| machine(text).ok();
        let found = machine("flops=2e9, latency=1e-6,bandwidth=1e10").unwrap();
        assert_eq!((found.latency, found.bandwidth, found.flop_rate), (1e-6, 1e10, 2e9));
        for bad in ["", "latency=1", "latency=1,bandwidth=0,flops=1", "latency=1,bandwidth=x,flops=1", "a=1,b=2,c=3"] {
            assert!(machine(bad).is_none(), "{bad}");
        }
    }
}
