//! What the caller asks for: method, order, blocks, tolerances.

use std::fmt;

use bt_direct::Refinement;
use bt_formats::StopCriterion;
use bt_iter::StopRule;

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
    /// Block-tridiagonal LU with pivoting inside the diagonal blocks.
    BlockLu,
    /// Band LU with partial pivoting.
    BandLu,
    /// Sparse LU with partial pivoting: faer's where there is fill, by columns where there is little.
    SparseLu,
    /// Hybrid block iteration, Jacobi form, Eq. (6).
    Hbisa,
    /// Hybrid block iteration, Gauss–Seidel form, Eq. (7).
    HbisaGs,
}

impl Method {
    /// All methods there are, in the order of the help text.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Thomas,
        Self::TridiagonalLu,
        Self::BlockLu,
        Self::BandLu,
        Self::SparseLu,
        Self::Hbisa,
        Self::HbisaGs,
    ];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Thomas => "thomas",
            Self::TridiagonalLu => "tridiagonal-lu",
            Self::BlockLu => "block-lu",
            Self::BandLu => "band-lu",
            Self::SparseLu => "sparse-lu",
            Self::Hbisa => "hbisa",
            Self::HbisaGs => "hbisa-gs",
        }
    }

    /// One line for help texts: what it is, and which options it reads.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Auto => "cheapest direct method for the structure found; reads --reorder, --blocks, --refine",
            Self::Thomas => "tridiagonal LU without pivoting; reads --reorder, --refine",
            Self::TridiagonalLu => "tridiagonal LU with partial pivoting; reads --reorder, --refine",
            Self::BlockLu => "block-tridiagonal LU, pivoting inside blocks; reads --reorder, --blocks, --refine",
            Self::BandLu => "band LU with partial pivoting; reads --reorder, --refine",
            Self::SparseLu => "sparse LU with partial pivoting; reads --reorder, --refine",
            Self::Hbisa => "block Jacobi iteration; reads --reorder, --blocks, --rtol, --atol, --max-iters, --stop",
            Self::HbisaGs => {
                "block Gauss–Seidel iteration; reads --reorder, --blocks, --rtol, --atol, --max-iters, --stop"
            }
        }
    }

    /// Whether it iterates to a tolerance.
    pub fn is_iterative(self) -> bool {
        matches!(self, Self::Hbisa | Self::HbisaGs)
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
        }
    }
}
