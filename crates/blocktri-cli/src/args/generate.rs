//! Options of `generate`: one struct a kind of matrix.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::values::{count, probability, real, seed, size, tolerance};
use super::{BlocksArg, GenerateQueueArgs};

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
