//! The command line, defined once: parsing, `--help`, shell completions and man pages all come from here.
//!
//! | file | case |
//! |---|---|
//! | `generate.rs` | `generate`, a struct for each kind of matrix |
//! | `queue.rs` | `queue` and `generate queue` |
//! | `reproduce.rs` | `reproduce` |
//! | `method.rs` | from a name and flags to a method with its settings, and flags that it does not read |
//! | `values.rs` | from the text of a value to the value, for all of these |

mod generate;
pub mod method;
mod queue;
mod reproduce;
mod values;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use blocktri::{
    Condition, DeviceChoice, Fallback, HostBlocks, Local, Method, Precision, Precond, Reorder, SolveOptions, StopRule,
};
use bt_formats::memory::Limit;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use generate::{
    BandRandomArgs, BlockRandomArgs, CloudArgs, ConvectionArgs, CopiesArgs, DiskArgs, ElasticityArgs, GenerateArgs,
    Kind, PlaneArg, Poisson2dArgs, Poisson3dArgs, Scheme, Seed, Target, TridiagonalArgs, VariantArg,
};
pub use queue::{DiagonalArg, GenerateQueueArgs, MatrixArg, MethodArg, Parameters, QueueArgs, StartArg, SweepArg};
pub use reproduce::ReproduceArgs;
use values::{
    count, device, host_blocks, iterations, local, method_name, precision, precond, relaxation, reorder, seconds, seed,
    size, threads, tolerance, weighed_device,
};

/// The version, and the features that were compiled in: the two lines of `--version`.
const LONG_VERSION: &str = match (cfg!(feature = "cuda"), cfg!(feature = "png")) {
    (true, true) => concat!(env!("CARGO_PKG_VERSION"), "\nfeatures: cuda, png"),
    (true, false) => concat!(env!("CARGO_PKG_VERSION"), "\nfeatures: cuda"),
    (false, true) => concat!(env!("CARGO_PKG_VERSION"), "\nfeatures: png"),
    (false, false) => concat!(env!("CARGO_PKG_VERSION"), "\nfeatures: none"),
};

/// Solve block-tridiagonal, banded, tridiagonal and sparse linear systems from files, with a certificate.
#[derive(Debug, Parser)]
#[command(
    name = "blocktri",
    version,
    long_version = LONG_VERSION,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Exit codes:
  0  done, to the tolerance asked        4  the matrix is singular
  2  bad usage or bad input              5  device not available
  3  did not converge (best x written)   130  interrupted, nothing written

Examples:
  blocktri info A.mtx                      what is in the file, and how it would be solved
  blocktri solve A.mtx -b b.mtx -o x.mtx   solve A·x = b
  blocktri solve A.mtx --json              a report for scripts"
)]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line. A negative number is a value of the option before it, so that the option can say why it
    /// is refused, not an option of its own.
    ///
    /// # Errors
    /// What clap has to say, help and version included.
    pub fn read() -> Result<Self, clap::Error> {
        Self::try_parse_from(with_negative_numbers(std::env::args_os()))
    }
}

/// `--rtol -1e-3` becomes `--rtol=-1e-3`.
fn with_negative_numbers(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    for arg in args {
        let text = arg.to_string_lossy();
        let negative = text.strip_prefix('-').is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
        let literal = all.iter().any(|before| before == "--");
        match all.last_mut() {
            Some(option) if negative && !literal && is_long_option(option) => {
                option.push("=");
                option.push(arg);
            }
            _ => all.push(arg),
        }
    }
    all
}

/// An option by its long name, without a value yet.
fn is_long_option(arg: &OsStr) -> bool {
    let text = arg.to_string_lossy();
    text.len() > 2 && text.starts_with("--") && !text.contains('=')
}

/// Options of all commands.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Threads to work with [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Memory that may be taken, as a size (8G) of the whole program or a share (80%) of what is available: what needs more is refused
    /// [default: 80%]
    #[arg(long, global = true, value_name = "SIZE", value_parser = str::parse::<Limit>)]
    pub memory: Option<Limit>,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// Errors and warnings only
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Solve A·X = B and certify the answer
    Solve(Box<SolveArgs>),
    /// Describe a matrix: structure, sizes, the method that fits
    Info(InfoArgs),
    /// Show the methods that auto weighs for a matrix: predicted seconds, bytes, and why one is refused
    Explain(ExplainArgs),
    /// Measure this machine for the predictions of auto, once, in a few seconds
    Calibrate(CalibrateArgs),
    /// Stationary distribution of a queue or any Markov chain, and a plan of resources
    Queue(Box<QueueArgs>),
    /// Write a matrix of a known kind
    Generate(GenerateArgs),
    /// Run published experiments again and write a report beside their figures
    Reproduce(ReproduceArgs),
    /// Print a shell completion script
    #[command(after_help = "\
Examples:
  blocktri completions bash > ~/.local/share/bash-completion/completions/blocktri
  blocktri completions fish > ~/.config/fish/completions/blocktri.fish")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    #[command(after_help = "\
Examples:
  blocktri man | man -l -
  blocktri man --dir ~/.local/share/man/man1")]
    Man {
        /// Write one page for each command into this folder instead
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
}

/// Options of `solve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri solve A.mtx
      b = A·x* for a known x*, so that the forward error is known too
  blocktri solve A.mtx -b b.mtx -o x.mtx
  blocktri solve A.mtx --method block-lu --blocks 16
  blocktri solve A.mtx --method hbisa --blocks sizes.txt --rtol 1e-10 --plot residual.svg
  blocktri solve A.mtx --method cg --precond ssor-ai-masked --omega 1.1
  blocktri solve A.mtx --method hbisa-chebyshev --history residual.csv
  blocktri solve A.mtx --method hbisa-gs --stop update --rtol 0 --atol 1e-6
  blocktri solve A.mtx --json --repeat 5 --threads 1")]
pub struct SolveArgs {
    /// Matrix A (Matrix Market, .mtx; Harwell-Boeing, .rua, .rsa and others; PETSc binary; each also .gz), - is standard input
    #[arg(value_name = "A.mtx")]
    pub matrix: PathBuf,
    /// Right-hand sides, n × s (Matrix Market or a PETSc vector), - is standard input; without it those in the file of A, or else
    /// b = A·x*, x*_i = 1 + ((7·i) mod 11)/11
    #[arg(short = 'b', long, value_name = "FILE")]
    pub rhs: Option<PathBuf>,
    /// Where the solution goes (.mtx, .csv or .json, each also .gz), written atomically; - is standard output, the report then goes to
    /// stderr
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Method of solution
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = method_name())]
    pub method: Method,
    /// Let the next stronger method take the place of the one named where it meets a pivot that it cannot use (auto always does)
    #[arg(long)]
    pub fallback: bool,
    /// Preconditioner
    #[arg(long, value_name = "P", default_value = "auto", value_parser = precond())]
    pub precond: Precond,
    /// Precision of factors and preconditioners: single halves their memory, refinement or iteration makes up for it
    #[arg(long, value_name = "P", default_value = "working", value_parser = precision())]
    pub precision: Precision,
    /// Reordering before the method
    #[arg(long, value_name = "R", default_value = "auto", value_parser = reorder())]
    pub reorder: Reorder,
    /// Uniform block size, or a file with one block size a line [default: detected]
    #[arg(long, value_name = "K|FILE")]
    pub blocks: Option<BlocksArg>,
    /// Tolerance of an iterative method, relative to ‖b‖₂ (with --stop update, to ‖x‖∞) [default: 1e-8]; auto may end there, too
    /// [default: rounding level]
    #[arg(long, value_name = "TOL", value_parser = tolerance)]
    pub rtol: Option<f64>,
    /// Absolute tolerance on ‖b − Ax‖₂ (with --stop update, on the update) [default: 0]
    #[arg(long, value_name = "TOL", value_parser = tolerance)]
    pub atol: Option<f64>,
    /// Iterations at most [default: 10000]
    #[arg(long, value_name = "N", value_parser = iterations)]
    pub max_iters: Option<usize>,
    /// What the tolerances of the hbisa methods are held against [default: residual]
    #[arg(long, value_name = "RULE")]
    pub stop: Option<Stop>,
    /// Refinement steps of a direct method [default: until the backward error stops improving, at most 3]
    #[arg(long, value_name = "N", value_parser = size)]
    pub refine: Option<usize>,
    /// Steps between two restarts of gmres and fgmres [default: 30]
    #[arg(long, value_name = "N", value_parser = count)]
    pub restart: Option<usize>,
    /// Precision in which gmres and fgmres keep their basis V: single halves what orthogonalisation reads
    #[arg(long, value_name = "P", default_value = "working", value_parser = precision())]
    pub basis: Precision,
    /// Entries that ilut keeps in a row of L, and of U [default: 20], and arms in a row of every part [default: 50]
    #[arg(long, value_name = "K", value_parser = count)]
    pub fill: Option<usize>,
    /// Size, relative to its row, below which ilut and arms drop an entry [default: 1e-3]
    #[arg(long, value_name = "TOL", value_parser = tolerance)]
    pub drop_tol: Option<f64>,
    /// Relaxation, between 0 and 2 [default: hbisa-sor tunes it to the spectrum, the ssor preconditioners take 1.1]
    #[arg(long, value_name = "W", value_parser = relaxation)]
    pub omega: Option<f64>,
    /// Level of fill of iluk [default: 1], levels of arms above the last at most [default: 10]
    #[arg(long, value_name = "L", value_parser = size)]
    pub levels: Option<usize>,
    /// Steps of an inner iteration on the last level of arms, for fgmres [default: 0]
    #[arg(long, value_name = "N", value_parser = size)]
    pub inner: Option<usize>,
    /// Jacobi sweeps in place of the triangular solves of ssor, ilu0, iluk, ilut, ic0 [default: exact solves, level by level]
    #[arg(long, value_name = "S", value_parser = size)]
    pub sweeps: Option<usize>,
    /// Half-bandwidth of the preconditioners spike and spike-truncated [default: 0.999 of the Frobenius norm]
    #[arg(long, value_name = "K", value_parser = size)]
    pub bandwidth: Option<usize>,
    /// Partitions of SPIKE [default: left to the method; 4 for the preconditioner spike-truncated], subdomains of schwarz and ras
    /// [default: 4]
    #[arg(long, value_name = "P", value_parser = count)]
    pub partitions: Option<usize>,
    /// Layers of overlap of schwarz and ras [default: 1]
    #[arg(long, value_name = "N", value_parser = size)]
    pub overlap: Option<usize>,
    /// Solver of a subdomain of schwarz and ras [default: ilu0]
    #[arg(long, value_name = "S", value_parser = local())]
    pub local: Option<Local>,
    /// Seed of a randomized method [default: 1]
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub seed: Option<u64>,
    /// Where to compute; on the GPU there are cg, bicgstab, gmres and fgmres, hbisa and hbisa-redblack, tridiagonal-lu, block-lu, band-lu and
    /// spike, and the dense factors of rbt and of --precond arms-rbt; auto takes it where it is there and worth the copies; cg and hbisa are on
    /// several, too: gpu:0,1
    #[arg(long, value_name = "cpu|auto|gpu[:i,…]", default_value = "cpu", value_parser = device)]
    pub device: DeviceChoice,
    /// Diagonal blocks that the processor sweeps while the GPU sweeps the others: none, so many, or by the time of a sweep on each; hbisa and
    /// hbisa-redblack with --device gpu
    #[arg(long, value_name = "none|measured|N", default_value = "none", value_parser = host_blocks)]
    pub host_blocks: HostBlocks,
    /// Seconds that the solve may take; then it ends with the best x so far, and exit code 3
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// Print what auto weighed, and what was predicted beside what it took
    #[arg(long)]
    pub explain: bool,
    /// Solve N times; seconds become {"min", "median"}
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub repeat: usize,
    /// Residual of every iteration, as a table
    #[arg(long, value_name = "FILE.csv|json")]
    pub history: Option<PathBuf>,
    /// Residual of every iteration, as a picture
    #[arg(long, value_name = "FILE.svg|png")]
    pub plot: Option<PathBuf>,
}

impl SolveArgs {
    /// The options without the blocks, which need the matrix.
    pub fn solve_options(&self) -> SolveOptions {
        SolveOptions {
            method: method::with_settings(self),
            reorder: self.reorder,
            fallback: if self.fallback { Fallback::Stronger } else { Fallback::Never },
            device: self.device,
            condition: Condition::Always,
            time_limit: self.time_limit.and_then(|s| Duration::try_from_secs_f64(s).ok()),
            ..SolveOptions::default()
        }
    }
}

/// Options of `info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri info A.mtx
  blocktri info A.mtx --spy A.svg
  blocktri info A.mtx --json")]
pub struct InfoArgs {
    /// Matrix A (Matrix Market, .mtx; Harwell-Boeing, .rua, .rsa and others; PETSc binary; each also .gz), - is standard input
    #[arg(value_name = "A.mtx")]
    pub matrix: PathBuf,
    /// Picture of the non-zeros and of the blocks found
    #[arg(long, value_name = "FILE.svg|png")]
    pub spy: Option<PathBuf>,
}

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri explain A.mtx
  blocktri explain A.mtx --memory 2G
  blocktri explain A.mtx --plot methods.svg --json")]
pub struct ExplainArgs {
    /// Matrix A (Matrix Market, .mtx; Harwell-Boeing, .rua, .rsa and others; PETSc binary; each also .gz), - is standard input
    #[arg(value_name = "A.mtx")]
    pub matrix: PathBuf,
    /// Where methods may compute; auto weighs GPU 0 beside the processor
    #[arg(long, value_name = "cpu|auto", default_value = "cpu", value_parser = weighed_device)]
    pub device: DeviceChoice,
    /// Bars of the predicted seconds
    #[arg(long, value_name = "FILE.svg|png")]
    pub plot: Option<PathBuf>,
}

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri calibrate
  blocktri calibrate --show
  blocktri calibrate --reset")]
pub struct CalibrateArgs {
    /// Print the constants that predictions rest on, and measure nothing
    #[arg(long)]
    pub show: bool,
    /// Remove what was measured: predictions rest on the constants of the instruction set again
    #[arg(long, conflicts_with = "show")]
    pub reset: bool,
}

/// When the hbisa methods stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stop {
    /// ‖b − Ax‖₂ ≤ max(atol, rtol·‖b‖₂): bounds the error of the equations
    Residual,
    /// ‖xⁱ⁺¹ − xⁱ‖∞ ≤ max(atol, rtol·‖x‖∞), the HBISA paper's rule with --rtol 0: no bound on the residual
    Update,
}

impl Stop {
    fn rule(self) -> StopRule {
        match self {
            Self::Residual => StopRule::Residual,
            Self::Update => StopRule::Update,
        }
    }
}

/// A uniform block size, or a file of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlocksArg {
    /// One size for all.
    Uniform(usize),
    /// A file with one size a line.
    File(PathBuf),
}

impl FromStr for BlocksArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
            return count(text).map(Self::Uniform);
        }
        Ok(Self::File(text.into()))
    }
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
    fn blocks_are_a_size_or_a_file() {
        assert_eq!("16".parse(), Ok(BlocksArg::Uniform(16)));
        assert_eq!("sizes.txt".parse(), Ok(BlocksArg::File("sizes.txt".into())));
        assert!("0".parse::<BlocksArg>().is_err());
        assert!("99999999999999999999999".parse::<BlocksArg>().is_err());
    }

    #[test]
    fn negative_numbers_belong_to_the_option_before_them() {
        let joined = |line: &str| {
            let args = with_negative_numbers(line.split(' ').map(OsString::from));
            args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(joined("b solve A --rtol -1e-3 -o x"), "b solve A --rtol=-1e-3 -o x");
        assert_eq!(joined("b --lower -.5 --upper=2 -1 -b - -q"), "b --lower=-.5 --upper=2 -1 -b - -q");
        assert_eq!(joined("b solve -- --rtol -1"), "b solve -- --rtol -1");
    }

    #[test]
    fn options_a_method_does_not_read_are_found() {
        let parse = |line: &str| match Cli::parse_from(line.split(' ')).command {
            Command::Solve(args) => method::unread(&args),
            other => panic!("{other:?}"),
        };
        assert_eq!(parse("blocktri solve A.mtx --method band-lu --rtol 1e-3 --refine 2"), ["--rtol"]);
        assert_eq!(parse("blocktri solve A.mtx --method hbisa --refine 2 --blocks 3"), ["--refine"]);
        assert!(parse("blocktri solve A.mtx --reorder rcm --blocks 4").is_empty());
        assert!(parse("blocktri solve A.mtx --method hbisa-gs --reorder rcm --stop update").is_empty());
        assert_eq!(parse("blocktri solve A.mtx --stop update"), ["--stop"]);
        let krylov = "blocktri solve A.mtx --method gmres --restart 5 --levels 2 --overlap 1 --precond";
        assert_eq!(parse(&format!("{krylov} iluk")), ["--overlap"]);
        assert_eq!(parse(&format!("{krylov} ras --local iluk")), [""; 0]);
        for (method, unread) in [("sparse-qr", true), ("band-lu", true), ("thomas", false), ("rbt", false)] {
            let found = parse(&format!("blocktri solve A.mtx --method {method} --fallback"));
            assert_eq!(found.contains(&"--fallback"), unread, "{method}");
        }
    }
}
