//! What the caller asks for: method, order, blocks, tolerances.

use std::fmt;

use bt_direct::Refinement;
use bt_formats::StopCriterion;
use bt_iter::{ArmsOptions, IlutOptions, StopRule, TriangularSolves};

use crate::error::Error;

/// A method of solution, by the name the command knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Method {
    /// The cheapest direct method for the structure found, verified, replaced by a stronger one when it fails.
    #[default]
    Auto,
    /// Thomas algorithm: tridiagonal LU without pivoting.
    Thomas,
    /// Tridiagonal LU with partial pivoting (LAPACK's gtsv).
    TridiagonalLu,
    /// Tridiagonal L·B·Mᵀ with pivots of order 1 and 2.
    DiagonalPivoting,
    /// Tridiagonal SPIKE with Givens rotations in the partitions (g-Spike).
    GSpike,
    /// Tridiagonal SPIKE with LU without pivoting in the partitions.
    SpikeLu,
    /// Tridiagonal SPIKE with pivots of order 1 and 2 in the partitions.
    SpikeDiagonalPivoting,
    /// Tridiagonal cyclic reduction.
    CyclicReduction,
    /// Tridiagonal parallel cyclic reduction.
    Pcr,
    /// Periodic (cyclic) tridiagonal systems: pivoted LU, bordered.
    PeriodicLu,
    /// Block-tridiagonal LU with pivoting inside the diagonal blocks.
    BlockLu,
    /// Block-tridiagonal LU with pivoting across the blocks, as wide as the blocks are.
    BlockLuAcross,
    /// Block-tridiagonal Cholesky for Hermitian positive definite matrices.
    BlockCholesky,
    /// Block-tridiagonal LU without pivoting after random butterflies inside the blocks, checked.
    BlockRbt,
    /// Block cyclic reduction with pivoting inside the diagonal blocks.
    BlockCyclicReduction,
    /// SPIKE on the band, or with given blocks on the blocks: partitions in parallel.
    Spike,
    /// SPIKE with a truncated reduced system, for dominant matrices.
    SpikeTruncated,
    /// Band LU with partial pivoting.
    BandLu,
    /// Band LU without interchanges.
    BandLuNoPivot,
    /// Band Cholesky for Hermitian positive definite matrices.
    BandCholesky,
    /// Sparse LU with partial pivoting: faer's where there is fill, by columns where there is little.
    SparseLu,
    /// Dense LU with partial pivoting.
    DenseLu,
    /// Dense LU with partial pivoting in twice the precision of a double, for small systems.
    DenseLuDoubled,
    /// Dense LU without pivoting.
    Genp,
    /// Dense LU without pivoting after random butterflies, checked.
    Rbt,
    /// Hybrid block iteration, Jacobi form, Eq. (6).
    Hbisa,
    /// Hybrid block iteration, Gauss–Seidel form, Eq. (7).
    HbisaGs,
    /// Hybrid block iteration, symmetric Gauss–Seidel form.
    HbisaSgs,
    /// Hybrid block iteration, Gauss–Seidel form in red–black order.
    HbisaRedBlack,
    /// The same with successive over-relaxation.
    HbisaSor,
    /// The same with Chebyshev acceleration.
    HbisaChebyshev,
    /// Conjugate gradients, for Hermitian positive definite matrices.
    Cg,
    /// Flexible conjugate gradients, for preconditioners that change from step to step.
    Fcg,
    /// Stabilized bi-conjugate gradients.
    BiCgStab,
    /// Restarted generalized minimal residuals.
    Gmres,
    /// GMRES for preconditioners that change from step to step.
    Fgmres,
}

impl Method {
    /// All methods there are, in the order of the help text.
    pub const ALL: [Self; 36] = [
        Self::Auto,
        Self::Thomas,
        Self::TridiagonalLu,
        Self::DiagonalPivoting,
        Self::GSpike,
        Self::SpikeLu,
        Self::SpikeDiagonalPivoting,
        Self::CyclicReduction,
        Self::Pcr,
        Self::PeriodicLu,
        Self::BlockLu,
        Self::BlockLuAcross,
        Self::BlockCholesky,
        Self::BlockRbt,
        Self::BlockCyclicReduction,
        Self::Spike,
        Self::SpikeTruncated,
        Self::BandLu,
        Self::BandLuNoPivot,
        Self::BandCholesky,
        Self::SparseLu,
        Self::DenseLu,
        Self::DenseLuDoubled,
        Self::Genp,
        Self::Rbt,
        Self::Hbisa,
        Self::HbisaGs,
        Self::HbisaSgs,
        Self::HbisaRedBlack,
        Self::HbisaSor,
        Self::HbisaChebyshev,
        Self::Cg,
        Self::Fcg,
        Self::BiCgStab,
        Self::Gmres,
        Self::Fgmres,
    ];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// What it is, in a line.
    pub fn description(self) -> &'static str {
        self.facts().1
    }

    /// The options of the command that it reads.
    pub fn reads(self) -> &'static [&'static str] {
        self.facts().2
    }

    /// One line for help texts: what it is, and which options it reads.
    pub fn summary(self) -> String {
        format!("{}; reads {}", self.description(), self.reads().join(", "))
    }

    fn facts(self) -> (&'static str, &'static str, &'static [&'static str]) {
        const BLOCKED: &[&str] = &["--reorder", "--blocks", "--refine", "--precision"];
        const ORDERED: &[&str] = &["--reorder", "--refine", "--precision"];
        const BLOCKED_PARTITIONED: &[&str] = &["--reorder", "--blocks", "--refine", "--precision", "--partitions"];
        const PARTITIONED: &[&str] = &["--reorder", "--refine", "--precision", "--partitions"];
        const BLOCKED_SEEDED: &[&str] = &["--reorder", "--blocks", "--refine", "--precision", "--seed"];
        const SEEDED: &[&str] = &["--reorder", "--refine", "--precision", "--seed"];
        const ITERATED: &[&str] = &["--reorder", "--blocks", "--rtol", "--atol", "--max-iters", "--stop"];
        const SHARED: &[&str] =
            &["--reorder", "--blocks", "--rtol", "--atol", "--max-iters", "--stop", "--host-blocks"];
        const RELAXED: &[&str] = &["--omega", "--reorder", "--blocks", "--rtol", "--atol", "--max-iters", "--stop"];
        const KRYLOV: &[&str] = &[
            "--precond",
            "--precision",
            "--blocks",
            "--omega",
            "--levels",
            "--fill",
            "--drop-tol",
            "--inner",
            "--partitions",
            "--overlap",
            "--local",
            "--bandwidth",
            "--sweeps",
            "--reorder",
            "--rtol",
            "--atol",
            "--max-iters",
        ];
        const RESTARTED: &[&str] = &[
            "--precond",
            "--precision",
            "--blocks",
            "--omega",
            "--levels",
            "--fill",
            "--drop-tol",
            "--inner",
            "--partitions",
            "--overlap",
            "--local",
            "--bandwidth",
            "--sweeps",
            "--restart",
            "--basis",
            "--reorder",
            "--rtol",
            "--atol",
            "--max-iters",
        ];
        match self {
            Self::Auto => ("auto", "cheapest direct method for the structure found", BLOCKED),
            Self::Thomas => ("thomas", "tridiagonal LU without pivoting", ORDERED),
            Self::TridiagonalLu => ("tridiagonal-lu", "tridiagonal LU with partial pivoting", ORDERED),
            Self::DiagonalPivoting => ("diagonal-pivoting", "tridiagonal LBM with pivots of order 1 and 2", ORDERED),
            Self::GSpike => ("g-spike", "tridiagonal SPIKE, Givens rotations in the partitions", PARTITIONED),
            Self::SpikeLu => ("spike-lu", "tridiagonal SPIKE, no pivoting in the partitions", PARTITIONED),
            Self::SpikeDiagonalPivoting => {
                ("spike-diagonal-pivoting", "tridiagonal SPIKE, pivots of order 1 and 2 in the partitions", PARTITIONED)
            }
            Self::CyclicReduction => ("cyclic-reduction", "tridiagonal cyclic reduction, no pivoting", ORDERED),
            Self::Pcr => ("pcr", "tridiagonal parallel cyclic reduction, no pivoting", ORDERED),
            Self::PeriodicLu => ("periodic-lu", "periodic tridiagonal systems, bordered pivoted LU", ORDERED),
            Self::BlockLu => ("block-lu", "block-tridiagonal LU, pivoting inside blocks", BLOCKED),
            Self::BlockLuAcross => ("block-lu-across", "block-tridiagonal LU, pivoting across blocks", BLOCKED),
            Self::BlockCholesky => {
                ("block-cholesky", "block Cholesky, for Hermitian positive definite matrices", BLOCKED)
            }
            Self::BlockRbt => (
                "block-rbt",
                "random butterflies inside blocks, then block LU without pivoting, checked",
                BLOCKED_SEEDED,
            ),
            Self::BlockCyclicReduction => {
                ("block-cyclic-reduction", "block cyclic reduction, pivoting inside blocks", BLOCKED)
            }
            Self::Spike => {
                ("spike", "SPIKE: partitions of the band (or of given blocks) in parallel", BLOCKED_PARTITIONED)
            }
            Self::SpikeTruncated => (
                "spike-truncated",
                "SPIKE with a truncated reduced system, dropped part bounded, refined",
                BLOCKED_PARTITIONED,
            ),
            Self::BandLu => ("band-lu", "band LU with partial pivoting", ORDERED),
            Self::BandLuNoPivot => ("band-lu-nopivot", "band LU without interchanges", ORDERED),
            Self::BandCholesky => ("band-cholesky", "band Cholesky, for Hermitian positive definite matrices", ORDERED),
            Self::SparseLu => ("sparse-lu", "sparse LU with partial pivoting", ORDERED),
            Self::DenseLu => ("dense-lu", "dense LU with partial pivoting", ORDERED),
            Self::DenseLuDoubled => ("dense-lu-doubled", "the same in twice the precision, for small systems", ORDERED),
            Self::Genp => ("genp", "dense LU without pivoting", ORDERED),
            Self::Rbt => ("rbt", "random butterflies, then dense LU without pivoting, checked", SEEDED),
            Self::Hbisa => ("hbisa", "block Jacobi iteration", SHARED),
            Self::HbisaGs => ("hbisa-gs", "block Gauss–Seidel iteration", ITERATED),
            Self::HbisaSgs => ("hbisa-sgs", "symmetric block Gauss–Seidel iteration", ITERATED),
            Self::HbisaRedBlack => ("hbisa-redblack", "block Gauss–Seidel in red–black order, parallel", SHARED),
            Self::HbisaSor => ("hbisa-sor", "the same with over-relaxation, tuned unless --omega is given", RELAXED),
            Self::HbisaChebyshev => ("hbisa-chebyshev", "the same with Chebyshev acceleration, tuned", ITERATED),
            Self::Cg => ("cg", "conjugate gradients, for Hermitian positive definite matrices", KRYLOV),
            Self::Fcg => ("fcg", "flexible conjugate gradients", KRYLOV),
            Self::BiCgStab => ("bicgstab", "stabilized bi-conjugate gradients", KRYLOV),
            Self::Gmres => ("gmres", "generalized minimal residuals", RESTARTED),
            Self::Fgmres => ("fgmres", "flexible GMRES", RESTARTED),
        }
    }

    /// Whether its result depends on the seed.
    pub fn is_randomized(self) -> bool {
        self.reads().contains(&"--seed")
    }

    /// Whether it iterates to a tolerance.
    pub fn is_iterative(self) -> bool {
        self.reads().contains(&"--rtol")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Method {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| Error::UnknownMethod { name: name.into() })
    }
}

/// A reordering before the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reorder {
    /// As the file has it.
    None,
    /// Reverse Cuthill–McKee.
    Rcm,
    /// Weighted spectral (Fiedler vector).
    Spectral,
    /// Maximum-product matching with scaling: a heavy, zero-free diagonal.
    Matching,
    /// Matching, then reverse Cuthill–McKee.
    MatchingRcm,
    /// Whatever makes the cheapest factorization.
    #[default]
    Auto,
}

impl Reorder {
    /// All reorderings, in the order of the help text.
    pub const ALL: [Self; 6] = [Self::None, Self::Rcm, Self::Spectral, Self::Matching, Self::MatchingRcm, Self::Auto];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rcm => "rcm",
            Self::Spectral => "spectral",
            Self::Matching => "matching",
            Self::MatchingRcm => "matching+rcm",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A preconditioner of the Krylov methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Precond {
    /// Chosen by the method, and said in the report.
    #[default]
    Auto,
    /// None.
    None,
    /// The diagonal of A.
    Jacobi,
    /// The diagonal blocks.
    BlockJacobi,
    /// One block Gauss–Seidel sweep.
    BlockGs,
    /// One symmetric block Gauss–Seidel sweep.
    BlockSgs,
    /// The same with the even blocks before the odd ones, blocks of a colour in parallel.
    BlockRedBlack,
    /// No preconditioner but the system without the even blocks, scaled by the odd diagonal blocks.
    BlockReduced,
    /// One symmetric over-relaxation sweep by points.
    Ssor,
    /// The SSOR approximate inverse of order 1, its triangles stored.
    SsorAi,
    /// The same, its triangles read from A.
    SsorAiFree,
    /// The same, multiplied out on the pattern of A.
    SsorAiMasked,
    /// The SSOR approximate inverse of order 2.
    SsorAi2,
    /// The incomplete Poisson preconditioner.
    Ip,
    /// Incomplete LU on the pattern of A.
    Ilu0,
    /// The same with dropped fill added to the diagonal.
    Milu0,
    /// Incomplete LU by level of fill.
    Iluk,
    /// Incomplete LU with dropping by size and number.
    Ilut,
    /// Incomplete Cholesky on the pattern of A, shifted where it breaks down.
    Ic0,
    /// The same with dropped fill added to the diagonal.
    Mic0,
    /// Additive Schwarz: overlapping subdomains, values added.
    Schwarz,
    /// Restricted additive Schwarz: values from the subdomain's own rows.
    Ras,
    /// Multilevel elimination of independent groups (ARMS), its last level by dense LU.
    Arms,
    /// The same, its last level by random butterflies and dense LU without pivoting.
    ArmsRbt,
    /// SPIKE on the central band after matching and reordering.
    Spike,
    /// The same with a truncated reduced system.
    SpikeTruncated,
}

impl Precond {
    /// All preconditioners, in the order of the help text.
    pub const ALL: [Self; 26] = [
        Self::Auto,
        Self::None,
        Self::Jacobi,
        Self::BlockJacobi,
        Self::BlockGs,
        Self::BlockSgs,
        Self::BlockRedBlack,
        Self::BlockReduced,
        Self::Ssor,
        Self::SsorAi,
        Self::SsorAiFree,
        Self::SsorAiMasked,
        Self::SsorAi2,
        Self::Ip,
        Self::Ilu0,
        Self::Milu0,
        Self::Iluk,
        Self::Ilut,
        Self::Ic0,
        Self::Mic0,
        Self::Schwarz,
        Self::Ras,
        Self::Arms,
        Self::ArmsRbt,
        Self::Spike,
        Self::SpikeTruncated,
    ];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::BlockJacobi => "block-jacobi",
            Self::BlockGs => "block-gs",
            Self::BlockSgs => "block-sgs",
            Self::BlockRedBlack => "block-redblack",
            Self::BlockReduced => "block-reduced",
            Self::Ssor => "ssor",
            Self::SsorAi => "ssor-ai",
            Self::SsorAiFree => "ssor-ai-free",
            Self::SsorAiMasked => "ssor-ai-masked",
            Self::SsorAi2 => "ssor-ai2",
            Self::Ip => "ip",
            Self::Ilu0 => "ilu0",
            Self::Milu0 => "milu0",
            Self::Iluk => "iluk",
            Self::Ilut => "ilut",
            Self::Ic0 => "ic0",
            Self::Mic0 => "mic0",
            Self::Schwarz => "schwarz",
            Self::Ras => "ras",
            Self::Arms => "arms",
            Self::ArmsRbt => "arms-rbt",
            Self::Spike => "spike",
            Self::SpikeTruncated => "spike-truncated",
        }
    }

    /// Whether it depends on the seed.
    pub fn is_randomized(self) -> bool {
        self == Self::ArmsRbt
    }
}

/// The solver of a subdomain of a Schwarz preconditioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Local {
    /// Incomplete LU on the pattern.
    #[default]
    Ilu0,
    /// Incomplete LU by level of fill.
    Iluk,
    /// Incomplete LU with dropping.
    Ilut,
    /// Incomplete Cholesky.
    Ic0,
    /// Sparse LU.
    Direct,
}

impl Local {
    /// All of them, in the order of the help text.
    pub const ALL: [Self; 5] = [Self::Ilu0, Self::Iluk, Self::Ilut, Self::Ic0, Self::Direct];

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ilu0 => "ilu0",
            Self::Iluk => "iluk",
            Self::Ilut => "ilut",
            Self::Ic0 => "ic0",
            Self::Direct => "direct",
        }
    }
}

/// The precision of factors and preconditioners, or of a Krylov basis; matrices, residuals and answers keep that of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// That of the matrix.
    #[default]
    Working,
    /// f32, or complex f32: factors are refined until the backward error stagnates. `solve` replaces them by ones in the
    /// precision of the matrix where that is not at rounding level; a `Solver` reports [`bt_formats::Outcome::Inaccurate`].
    Single,
}

impl Precision {
    /// Both, in the order of the help text.
    pub const ALL: [Self; 2] = [Self::Working, Self::Single];

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Single => "single",
        }
    }
}

/// The block partition to work with.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Blocks {
    /// The natural block-tridiagonal partition of the pattern; for the hybrid block iteration its lines, if it has lines.
    #[default]
    Detect,
    /// Uniform blocks of this size, the last one smaller when it does not divide n.
    Uniform(usize),
    /// These sizes.
    Sizes(Vec<usize>),
}

/// Where a system is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the processor.
    #[default]
    Cpu,
    /// On the NVIDIA GPU of this number, from 0, in real arithmetic: cg and bicgstab without a preconditioner or with Jacobi's,
    /// hbisa and hbisa-redblack, tridiagonal-lu, block-lu, band-lu and spike, and the factors of rbt and of the last level of arms-rbt.
    /// Needs the feature `cuda`.
    Gpu(u32),
    /// On GPU 0 where it is there, has the method, and the work outweighs the copies to it, else on the processor; the first note
    /// says why.
    Auto,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(ordinal) => write!(f, "gpu:{ordinal}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// The diagonal blocks that the processor sweeps while a GPU sweeps the others, for [`Method::Hbisa`] and [`Method::HbisaRedBlack`] with
/// [`DeviceChoice::Gpu`]. The iterates are those of the undivided iteration, to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBlocks {
    /// None of them.
    #[default]
    None,
    /// By the time that one sweep over all blocks takes on each.
    Measured,
    /// The last so many.
    Count(usize),
}

/// Options of a solve. `SolveOptions::default()` is what `blocktri solve A.mtx` uses.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveOptions {
    /// Method.
    pub method: Method,
    /// Reordering.
    pub reorder: Reorder,
    /// Block partition, for methods on blocks.
    pub blocks: Blocks,
    /// Tolerance and limits of iterative methods.
    pub stop: StopCriterion,
    /// What the tolerance of an iterative method is held against.
    pub stop_rule: StopRule,
    /// Refinement of direct methods.
    pub refinement: Refinement,
    /// Precision of factors and preconditioners.
    pub precision: Precision,
    /// Preconditioner of a Krylov method.
    pub precond: Precond,
    /// What `Precond::Ilut` keeps.
    pub ilut: IlutOptions,
    /// How `Precond::Arms` works, and but for its last level `Precond::ArmsRbt`.
    pub arms: ArmsOptions,
    /// Level of fill of `Precond::Iluk`.
    pub levels: usize,
    /// ω of over-relaxation and of the SSOR preconditioners; `None` leaves it to the method, and is 1.1 for SSOR.
    pub omega: Option<f64>,
    /// Solver of a subdomain of the Schwarz preconditioners.
    pub local: Local,
    /// Layers of overlap of their subdomains.
    pub overlap: usize,
    /// How the triangles of incomplete factors are solved with, those of `Precond::Ssor` included.
    pub triangular: TriangularSolves,
    /// Half-bandwidth of `Precond::Spike` and `Precond::SpikeTruncated`; `None` keeps 0.999 of the Frobenius norm.
    pub bandwidth: Option<usize>,
    /// Steps between two restarts of GMRES.
    pub restart: usize,
    /// Precision in which GMRES and FGMRES keep V: `Single` halves what orthogonalisation reads.
    pub basis: Precision,
    /// Partitions of SPIKE, subdomains of the Schwarz preconditioners; `None` leaves the number to them.
    pub partitions: Option<usize>,
    /// Seed of the randomized methods, and of `Precond::ArmsRbt`.
    pub seed: u64,
    /// Where to compute.
    pub device: DeviceChoice,
    /// The processor's part of hybrid block iterations on a GPU; anything but `None` is refused elsewhere.
    pub host_blocks: HostBlocks,
}

impl Default for SolveOptions {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            reorder: Reorder::Auto,
            blocks: Blocks::Detect,
            stop: StopCriterion::default(),
            stop_rule: StopRule::Residual,
            refinement: Refinement::Auto,
            precision: Precision::Working,
            precond: Precond::Auto,
            ilut: IlutOptions::default(),
            arms: ArmsOptions::default(),
            levels: 1,
            omega: None,
            local: Local::Ilu0,
            overlap: 1,
            triangular: TriangularSolves::Levels,
            bandwidth: None,
            restart: 30,
            basis: Precision::Working,
            partitions: None,
            seed: 1,
            device: DeviceChoice::Cpu,
            host_blocks: HostBlocks::None,
        }
    }
}
