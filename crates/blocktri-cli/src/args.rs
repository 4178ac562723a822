//! The command line, defined once: parsing, `--help`, shell completions and man pages all come from here.

pub mod method;
mod queue;
mod reproduce;

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use blocktri::{
    Condition, DeviceChoice, Fallback, HostBlocks, Local, Method, Precision, Precond, Reorder, SolveOptions,
};
use bt_formats::memory::Limit;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use queue::{DiagonalArg, GenerateQueueArgs, MatrixArg, MethodArg, Parameters, QueueArgs, StartArg, SweepArg};
pub use reproduce::ReproduceArgs;

/// Solve block-tridiagonal, banded, tridiagonal and sparse linear systems from files, with a certificate.
#[derive(Debug, Parser)]
#[command(
    name = "blocktri",
    version,
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
    /// spike, and the dense factors of rbt and of --precond arms-rbt; auto takes it where it is there and worth the copies
    #[arg(long, value_name = "cpu|auto|gpu[:i]", default_value = "cpu", value_parser = device)]
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
            method: method::with_options(self),
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

/// Options of `generate`.
#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "KIND",
    subcommand_help_heading = "Kinds",
    disable_help_subcommand = true,
    after_help = "\
Examples:
  blocktri generate cloud --case Cloud16-100 -o cloud.mtx
  blocktri generate poisson2d --nx 100 -o poisson.mtx
  blocktri generate band-random --n 1000 --kl 4 --ku 2 --seed 7 -o band.mtx"
)]
pub struct GenerateArgs {
    /// Kind of matrix.
    #[command(subcommand)]
    pub kind: Kind,
}

/// Where the matrix goes.
#[derive(Debug, Args)]
pub struct Target {
    /// File to write (.mtx or .mtx.gz), atomically; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Seed of a random matrix.
#[derive(Clone, Copy, Debug, Args)]
pub struct Seed {
    /// Seed of the random numbers; the same seed gives the same file
    #[arg(long, default_value = "1", value_parser = seed)]
    pub seed: u64,
}

/// Kinds of matrices.
#[derive(Debug, Subcommand)]
pub enum Kind {
    /// Cloud model of the HBISA paper: one of its ten cases, or a family of random resources
    #[command(after_help = "\
Examples:
  blocktri generate cloud --case Cloud16-100 -o cloud.mtx
  blocktri generate cloud --block-size 16 --levels 1000 --seed 3 -o cloud.mtx")]
    Cloud(CloudArgs),
    /// Generator Q of the cloud model
    Queue(GenerateQueueArgs),
    /// Tridiagonal Toeplitz matrix, or with --seed a random one
    Tridiagonal(TridiagonalArgs),
    /// Random band: entries uniform in (−1, 1)
    BandRandom(BandRandomArgs),
    /// Random block-tridiagonal matrix: entries uniform in (−1, 1)
    BlockRandom(BlockRandomArgs),
    /// Five-point Laplacian on an nx × ny grid
    Poisson2d(Poisson2dArgs),
    /// Seven-point Laplacian on an nx × ny × nz grid
    Poisson3d(Poisson3dArgs),
    /// Linear finite elements on the unit disk
    PoissonDisk(DiskArgs),
    /// Plane elasticity on the unit disk by linear finite elements, two unknowns a node
    ElasticityDisk(ElasticityArgs),
    /// 7-point stencil on 16 × 32 × 32 points, the size of edf
    Edf(CopiesArgs),
    /// Diffusion around two spheres with the pattern of flame2p3d80, values of our own
    Flame(CopiesArgs),
    /// Surrogate of epb3: its size and number of non-zeros, invented structure
    Epb3(CopiesArgs),
    /// −Δu + w·∇u on an nx × ny grid
    ConvectionDiffusion(ConvectionArgs),
}

/// `generate cloud`.
#[derive(Debug, Args)]
pub struct CloudArgs {
    /// Case of the paper, Cloud16-100 for example
    #[arg(long, value_name = "NAME", conflicts_with_all = ["block_size", "levels", "seed"],
          required_unless_present = "block_size")]
    pub case: Option<String>,
    /// Variant of the case
    #[arg(long, value_name = "V", default_value = "n", requires = "case")]
    pub variant: VariantArg,
    /// States of a level, the block size
    #[arg(long, value_name = "K", requires = "levels", value_parser = count)]
    pub block_size: Option<usize>,
    /// Blocks
    #[arg(long, value_name = "M", requires = "block_size", value_parser = count)]
    pub levels: Option<usize>,
    /// Seed of the random numbers [default: 1]
    #[arg(long, requires = "block_size", value_parser = seed)]
    pub seed: Option<u64>,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate tridiagonal`.
#[derive(Debug, Args)]
pub struct TridiagonalArgs {
    /// Rows
    #[arg(long, value_parser = count)]
    pub n: usize,
    /// Sub-diagonal
    #[arg(long, default_value = "-1", allow_negative_numbers = true, value_parser = real)]
    pub lower: f64,
    /// Diagonal
    #[arg(long, default_value = "2", allow_negative_numbers = true, value_parser = real)]
    pub diag: f64,
    /// Super-diagonal
    #[arg(long, default_value = "-1", allow_negative_numbers = true, value_parser = real)]
    pub upper: f64,
    /// Random entries, uniform in (−1, 1), from this seed
    #[arg(long, conflicts_with_all = ["lower", "diag", "upper"], value_parser = seed)]
    pub seed: Option<u64>,
    /// Added to each random diagonal entry: its sign times this multiple of the row's other moduli
    #[arg(long, default_value = "0", requires = "seed", value_parser = tolerance)]
    pub dominance: f64,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate band-random`.
#[derive(Debug, Args)]
pub struct BandRandomArgs {
    /// Rows
    #[arg(long, value_parser = count)]
    pub n: usize,
    /// Sub-diagonals
    #[arg(long, value_parser = size)]
    pub kl: usize,
    /// Super-diagonals
    #[arg(long, value_parser = size)]
    pub ku: usize,
    /// Probability of an entry off the diagonal
    #[arg(long, default_value = "1", value_parser = probability)]
    pub density: f64,
    /// Added to each diagonal entry: its sign times this multiple of the row's other moduli
    #[arg(long, default_value = "0", value_parser = tolerance)]
    pub dominance: f64,
    /// Seed.
    #[command(flatten)]
    pub seed: Seed,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate block-random`.
#[derive(Debug, Args)]
pub struct BlockRandomArgs {
    /// Rows, for uniform blocks
    #[arg(long, value_parser = count)]
    pub n: Option<usize>,
    /// Uniform block size (the last block is smaller when it does not divide n), or a file with one size a line
    #[arg(long, value_name = "K|FILE")]
    pub blocks: BlocksArg,
    /// Probability of an entry in a diagonal block
    #[arg(long, default_value = "1", value_parser = probability)]
    pub density: f64,
    /// Probability of an entry in a block beside it
    #[arg(long, default_value = "1", value_parser = probability)]
    pub coupling: f64,
    /// Added to each diagonal entry: its sign times this multiple of the row's other moduli
    #[arg(long, default_value = "0", value_parser = tolerance)]
    pub dominance: f64,
    /// Seed.
    #[command(flatten)]
    pub seed: Seed,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate poisson2d`.
#[derive(Debug, Args)]
pub struct Poisson2dArgs {
    /// Grid points in x, the fastest index
    #[arg(long, value_parser = count)]
    pub nx: usize,
    /// Grid points in y [default: nx]
    #[arg(long, value_parser = count)]
    pub ny: Option<usize>,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate poisson3d`.
#[derive(Debug, Args)]
pub struct Poisson3dArgs {
    /// Grid points in x, the fastest index
    #[arg(long, value_parser = count)]
    pub nx: usize,
    /// Grid points in y [default: nx]
    #[arg(long, value_parser = count)]
    pub ny: Option<usize>,
    /// Grid points in z [default: nx]
    #[arg(long, value_parser = count)]
    pub nz: Option<usize>,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate poisson-disk`.
#[derive(Debug, Args)]
pub struct DiskArgs {
    /// Unknowns, 7 at least
    #[arg(long, value_parser = count)]
    pub n: usize,
    /// Where the load of e^x·(1 + sin 3y + xy) goes
    #[arg(long, value_name = "FILE")]
    pub rhs: Option<PathBuf>,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate elasticity-disk`.
#[derive(Debug, Args)]
pub struct ElasticityArgs {
    /// Unknowns, two a node: an even number, 14 at least
    #[arg(long, value_parser = count)]
    pub n: usize,
    /// What is plane
    #[arg(long, value_name = "P", default_value = "strain")]
    pub plane: PlaneArg,
    /// Poisson's ratio, between −1 and 1/2; Young's modulus is 1
    #[arg(long, value_name = "NU", default_value = "0.3", allow_negative_numbers = true, value_parser = real)]
    pub nu: f64,
    /// Where the load goes: (f(x, y), f(y, x)) with f = e^x·(1 + sin 3y + xy)
    #[arg(long, value_name = "FILE")]
    pub rhs: Option<PathBuf>,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate edf`, `flame`, `epb3`.
#[derive(Debug, Args)]
pub struct CopiesArgs {
    /// Copies along the diagonal
    #[arg(long, default_value = "1", value_parser = count)]
    pub copies: usize,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// `generate convection-diffusion`.
#[derive(Debug, Args)]
pub struct ConvectionArgs {
    /// Grid points in x, the fastest index
    #[arg(long, value_parser = count)]
    pub nx: usize,
    /// Grid points in y [default: nx]
    #[arg(long, value_parser = count)]
    pub ny: Option<usize>,
    /// Cell Péclet number |w|·h/ε: above 2, central differences lose the M-matrix property
    #[arg(long, default_value = "1", value_parser = tolerance)]
    pub peclet: f64,
    /// Direction of the wind, degrees from the x axis
    #[arg(long, default_value = "45", allow_negative_numbers = true, value_parser = real)]
    pub angle: f64,
    /// Differences for the first derivatives
    #[arg(long, default_value = "upwind")]
    pub scheme: Scheme,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// When the hbisa methods stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stop {
    /// ‖b − Ax‖₂ ≤ max(atol, rtol·‖b‖₂): bounds the error of the equations
    Residual,
    /// ‖xⁱ⁺¹ − xⁱ‖∞ ≤ max(atol, rtol·‖x‖∞), the HBISA paper's rule with --rtol 0: no bound on the residual
    Update,
}

/// Variants of the ten cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VariantArg {
    /// Noise on the rates, and a modified corner at every fifth level
    N,
    /// Without noise
    S,
    /// Without noise and corners: an M-matrix
    M,
    /// Rates of Eq. (8), which cannot be known
    #[value(hide = true)]
    Eq8,
}

/// Differences for a first derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// One-sided, against the wind: an M-matrix for any Péclet number
    Upwind,
    /// Central, second order
    Central,
}

/// What is plane in an elastic body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlaneArg {
    /// The strain: a long cylinder
    Strain,
    /// The stress: a thin plate
    Stress,
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

fn device(text: &str) -> Result<DeviceChoice, String> {
    match text.split_once(':') {
        None if text == "cpu" => Ok(DeviceChoice::Cpu),
        None if text == "auto" => Ok(DeviceChoice::Auto),
        None if text == "gpu" => Ok(DeviceChoice::Gpu(0)),
        Some(("gpu", index)) => {
            index.parse().map(DeviceChoice::Gpu).map_err(|_| format!("'{index}' is not the number of a GPU"))
        }
        _ => Err("devices: cpu, auto, gpu, gpu:0, gpu:1, …".into()),
    }
}

/// A place by name: what `--device auto` weighs is one system.
fn cpu_or_gpu(text: &str) -> Result<DeviceChoice, String> {
    match device(text) {
        Ok(DeviceChoice::Auto) | Err(_) if !text.starts_with("gpu:") => {
            Err("devices: cpu, gpu, gpu:0, gpu:1, …".into())
        }
        other => other,
    }
}

fn host_blocks(text: &str) -> Result<HostBlocks, String> {
    match text {
        "none" => Ok(HostBlocks::None),
        "measured" => Ok(HostBlocks::Measured),
        _ => size(text).map(HostBlocks::Count).map_err(|_| "none, measured or a number of blocks is needed".into()),
    }
}

fn method_name() -> impl TypedValueParser<Value = Method> {
    let names = Method::all().into_iter().map(|m| PossibleValue::new(m.name()).help(method::summary(&m)));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

fn precond() -> impl TypedValueParser<Value = Precond> {
    PossibleValuesParser::new(Precond::all().iter().map(Precond::name)).try_map(|name| name.parse::<Precond>())
}

fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name))
        .try_map(|name| Precision::ALL.into_iter().find(|p| p.name() == name).ok_or("unknown precision"))
}

fn local() -> impl TypedValueParser<Value = Local> {
    PossibleValuesParser::new(Local::all().iter().map(Local::name))
        .try_map(|name| Local::all().into_iter().find(|l| l.name() == name).ok_or("unknown local solver"))
}

fn reorder() -> impl TypedValueParser<Value = Reorder> {
    PossibleValuesParser::new(Reorder::ALL.map(Reorder::name))
        .try_map(|name| Reorder::ALL.into_iter().find(|r| r.name() == name).ok_or("unknown reordering"))
}

/// Rows, columns and entries at most: indices are 32-bit. Nothing that is counted in them can be more.
const MOST: usize = u32::MAX as usize - 1;

fn whole(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| range.contains(n))
        .ok_or_else(|| format!("a whole number from {} to {} is needed", range.start(), range.end()))
}

fn count(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST)
}

/// A number of things that may be none.
fn size(text: &str) -> Result<usize, String> {
    whole(text, 0..=MOST)
}

fn iterations(text: &str) -> Result<usize, String> {
    whole(text, 0..=1_000_000_000_000_000)
}

fn threads(text: &str) -> Result<usize, String> {
    whole(text, 1..=1024)
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", u64::MAX))
}

fn real(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| "a finite number is needed".into())
}

fn tolerance(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x >= 0.0).ok_or_else(|| "a finite number of at least 0 is needed".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0).ok_or_else(|| "a positive number of seconds is needed".into())
}

fn relaxation(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0 && x < 2.0).ok_or_else(|| "a number between 0 and 2 is needed".into())
}

fn probability(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "a number from 0 to 1 is needed".into())
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
    fn blocks_and_devices_parse() {
        assert_eq!("16".parse(), Ok(BlocksArg::Uniform(16)));
        assert_eq!("sizes.txt".parse(), Ok(BlocksArg::File("sizes.txt".into())));
        assert!("0".parse::<BlocksArg>().is_err());
        assert!("99999999999999999999999".parse::<BlocksArg>().is_err());
        assert_eq!(device("gpu:3"), Ok(DeviceChoice::Gpu(3)));
        assert!(device("gpu:x").is_err() && device("tpu").is_err());
        assert_eq!(cpu_or_gpu("gpu:1"), Ok(DeviceChoice::Gpu(1)));
        assert_eq!(cpu_or_gpu("cpu"), Ok(DeviceChoice::Cpu));
        assert!(cpu_or_gpu("auto").is_err() && cpu_or_gpu("gpu:x").is_err());
        assert_eq!(host_blocks("3"), Ok(HostBlocks::Count(3)));
        assert_eq!(host_blocks("measured"), Ok(HostBlocks::Measured));
        assert!(host_blocks("-1").is_err() && host_blocks("all").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_told_the_range() {
        assert_eq!(size("18446744073709551615").unwrap_err(), "a whole number from 0 to 4294967294 is needed");
        assert_eq!(count("0").unwrap_err(), "a whole number from 1 to 4294967294 is needed");
        assert_eq!((size("0"), count("4294967294")), (Ok(0), Ok(4_294_967_294)));
        assert!(seed("-1").is_err() && iterations("18446744073709551615").is_err() && threads("1025").is_err());
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
        assert_eq!(parse("blocktri solve A.mtx --method sparse-lu --fallback"), ["--fallback"]);
    }
}
