//! Preconditioners as values: which one, with all that it reads.

use std::fmt;

use bt_iter::{
    ArmsOptions, BlockForm, DroppedFill, IlutOptions, LastSolver, Overlap, Series, Triangles, TriangularSolves,
};

use crate::error::Error;
use crate::names::by_name;

/// ω of the SSOR preconditioners where nothing else is said: that of Helfenstein & Koko.
pub(crate) const OMEGA: f64 = 1.1;

/// A preconditioner of the Krylov methods. A name parses into one with default options, and prints back.
///
/// ```
/// use blocktri::Precond;
/// let ilut: Precond = "ilut".parse()?;
/// assert!(matches!(ilut, Precond::Ilut { options, .. } if options.fill == 20));
/// # Ok::<(), blocktri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Precond {
    /// Chosen by the method, and said in the report.
    #[default]
    Auto,
    /// None.
    None,
    /// The diagonal of A.
    Jacobi,
    /// A sweep over the blocks.
    Blocks(BlockForm),
    /// No preconditioner but the system without the even blocks, scaled by the odd diagonal blocks.
    BlockReduced,
    /// One symmetric over-relaxation sweep by points.
    Ssor {
        /// Relaxation, 0 < ω < 2.
        omega: f64,
        /// How its triangles are solved with.
        solves: TriangularSolves,
    },
    /// The SSOR approximate inverse; with ω = 1 and another series the incomplete Poisson preconditioner.
    SsorAi {
        /// Relaxation, 0 < ω < 2.
        omega: f64,
        /// Where the series ends.
        series: Series,
        /// Where the triangles are read from.
        triangles: Triangles,
    },
    /// The same, multiplied out on the pattern of A.
    SsorAiMasked {
        /// Relaxation, 0 < ω < 2.
        omega: f64,
    },
    /// That of order 2 with the blocks of the nodes of a mesh in place of entries, 1 to 6 rows each: those given, or the largest that are
    /// no more than a quarter zeros.
    BlockSsorAi {
        /// Relaxation, 0 < ω < 2.
        omega: f64,
    },
    /// Incomplete LU on the pattern of A.
    Ilu0 {
        /// What becomes of fill.
        fill: DroppedFill,
        /// How its triangles are solved with.
        solves: TriangularSolves,
    },
    /// Incomplete LU by level of fill.
    Iluk {
        /// Level of fill.
        levels: usize,
        /// How its triangles are solved with.
        solves: TriangularSolves,
    },
    /// Incomplete LU with dropping by size and number.
    Ilut {
        /// What it keeps.
        options: IlutOptions,
        /// How its triangles are solved with.
        solves: TriangularSolves,
    },
    /// Incomplete Cholesky on the pattern of A, shifted where it breaks down.
    Ic0 {
        /// What becomes of fill.
        fill: DroppedFill,
        /// How its triangles are solved with.
        solves: TriangularSolves,
    },
    /// Overlapping subdomains.
    Schwarz {
        /// What becomes of rows that several of them have.
        values: Overlap,
        /// Layers of overlap.
        layers: usize,
        /// Subdomains of contiguous rows; four where none are given.
        subdomains: Option<usize>,
        /// Solver of a subdomain.
        local: Local,
    },
    /// Multilevel elimination of independent groups (ARMS).
    Arms(ArmsOptions),
    /// SPIKE on the central band after matching and reordering.
    Spike(CentralBand),
    /// The same with a truncated reduced system.
    SpikeTruncated(CentralBand),
}

/// The band that SPIKE preconditions by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CentralBand {
    /// Half-bandwidth; `None` keeps 0.999 of the Frobenius norm.
    pub bandwidth: Option<usize>,
    /// Partitions; `None` leaves the number to SPIKE, and is four where it is truncated.
    pub partitions: Option<usize>,
}

/// The solver of a subdomain of a Schwarz preconditioner.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Local {
    /// Incomplete LU on the pattern.
    #[default]
    Ilu0,
    /// Incomplete LU up to this level of fill.
    Iluk(usize),
    /// Incomplete LU with dropping.
    Ilut(IlutOptions),
    /// Incomplete Cholesky.
    Ic0,
    /// Sparse LU.
    Direct,
}

impl Local {
    /// All of them, with default options, in the order of help texts.
    pub fn all() -> [Self; 5] {
        [Self::Ilu0, Self::Iluk(1), Self::Ilut(IlutOptions::default()), Self::Ic0, Self::Direct]
    }

    /// Name in commands.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ilu0 => "ilu0",
            Self::Iluk(_) => "iluk",
            Self::Ilut(_) => "ilut",
            Self::Ic0 => "ic0",
            Self::Direct => "direct",
        }
    }
}

impl Precond {
    /// All preconditioners, with default options, in the order of help texts.
    pub fn all() -> Vec<Self> {
        let solves = TriangularSolves::Levels;
        let omega = OMEGA;
        let inverse = |series, triangles| Self::SsorAi { omega, series, triangles };
        let schwarz = |values| Self::Schwarz { values, layers: 1, subdomains: None, local: Local::Ilu0 };
        let [forgotten, kept] = [DroppedFill::Forgotten, DroppedFill::ToDiagonal];
        let arms = ArmsOptions::default();
        vec![
            Self::Auto,
            Self::None,
            Self::Jacobi,
            Self::Blocks(BlockForm::Jacobi),
            Self::Blocks(BlockForm::GaussSeidel),
            Self::Blocks(BlockForm::Symmetric),
            Self::Blocks(BlockForm::RedBlack),
            Self::BlockReduced,
            Self::Ssor { omega, solves },
            inverse(Series::First, Triangles::Stored),
            inverse(Series::First, Triangles::OfMatrix),
            Self::SsorAiMasked { omega },
            inverse(Series::Second, Triangles::Stored),
            Self::BlockSsorAi { omega },
            inverse(Series::IncompletePoisson, Triangles::Stored),
            Self::Ilu0 { fill: forgotten, solves },
            Self::Ilu0 { fill: kept, solves },
            Self::Iluk { levels: 1, solves },
            Self::Ilut { options: IlutOptions::default(), solves },
            Self::Ic0 { fill: forgotten, solves },
            Self::Ic0 { fill: kept, solves },
            schwarz(Overlap::Added),
            schwarz(Overlap::Restricted),
            Self::Arms(arms),
            Self::Arms(ArmsOptions { last: LastSolver::Butterflies(bt_direct::RbtOptions::default()), ..arms }),
            Self::Spike(CentralBand::default()),
            Self::SpikeTruncated(CentralBand::default()),
        ]
    }

    /// Name in commands and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::Blocks(BlockForm::Jacobi) => "block-jacobi",
            Self::Blocks(BlockForm::GaussSeidel) => "block-gs",
            Self::Blocks(BlockForm::Symmetric) => "block-sgs",
            Self::Blocks(BlockForm::RedBlack) => "block-redblack",
            Self::BlockReduced => "block-reduced",
            Self::Ssor { .. } => "ssor",
            Self::SsorAi { series: Series::First, triangles: Triangles::Stored, .. } => "ssor-ai",
            Self::SsorAi { series: Series::First, triangles: Triangles::OfMatrix, .. } => "ssor-ai-free",
            Self::SsorAi { series: Series::Second, .. } => "ssor-ai2",
            Self::SsorAi { series: Series::IncompletePoisson, .. } => "ip",
            Self::SsorAiMasked { .. } => "ssor-ai-masked",
            Self::BlockSsorAi { .. } => "block-ssor-ai2",
            Self::Ilu0 { fill: DroppedFill::Forgotten, .. } => "ilu0",
            Self::Ilu0 { fill: DroppedFill::ToDiagonal, .. } => "milu0",
            Self::Iluk { .. } => "iluk",
            Self::Ilut { .. } => "ilut",
            Self::Ic0 { fill: DroppedFill::Forgotten, .. } => "ic0",
            Self::Ic0 { fill: DroppedFill::ToDiagonal, .. } => "mic0",
            Self::Schwarz { values: Overlap::Added, .. } => "schwarz",
            Self::Schwarz { values: Overlap::Restricted, .. } => "ras",
            Self::Arms(ArmsOptions { last: LastSolver::Butterflies(_), .. }) => "arms-rbt",
            Self::Arms(_) => "arms",
            Self::Spike(_) => "spike",
            Self::SpikeTruncated(_) => "spike-truncated",
        }
    }

    /// The seed that it depends on.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Arms(ArmsOptions { last: LastSolver::Butterflies(rbt), .. }) => Some(rbt.seed),
            _ => None,
        }
    }

    /// Whether it is made in single precision for real matrices in double: those that are large beside A, or dense.
    pub fn is_in_single(&self) -> bool {
        matches!(
            self,
            Self::Auto
                | Self::None
                | Self::Jacobi
                | Self::Blocks(_)
                | Self::Ilu0 { .. }
                | Self::Iluk { .. }
                | Self::Ilut { .. }
                | Self::Ic0 { .. }
                | Self::Schwarz { .. }
        )
    }
}

impl fmt::Display for Precond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Precond {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("preconditioner", Self::all(), Self::name, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_into_its_preconditioner_and_prints_back() {
        let all = Precond::all();
        assert_eq!(all.len(), 27);
        for precond in all {
            assert_eq!(precond.to_string().parse::<Precond>().unwrap(), precond);
        }
        assert!("ilu".parse::<Precond>().unwrap_err().help().unwrap().contains("ilu0, milu0, iluk"));
    }
}
