//! The registry of direct methods: one row each. To add one takes the method itself in `bt-direct` with its tests, its variant and its row
//! here, and how it is made of A in `build.rs`, which does not compile before.

use std::fmt;

use bt_direct::spike::TridiagonalSolver;

use crate::extent::Extent;

/// A direct method, with what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direct {
    /// A diagonal matrix, divided by.
    Diagonal,
    /// Substitution with a matrix that is triangular in some order of its rows and columns.
    Triangular,
    /// Thomas algorithm: tridiagonal LU without pivoting.
    Thomas,
    /// Tridiagonal LU with partial pivoting (LAPACK's gtsv).
    TridiagonalLu,
    /// Tridiagonal L·B·Mᵀ with pivots of order 1 and 2.
    DiagonalPivoting,
    /// Tridiagonal SPIKE.
    TridiagonalSpike {
        /// Elimination of a partition: Givens rotations (`g-spike`), LU (`spike-lu`), pivots of order 1 and 2.
        interior: TridiagonalSolver,
        /// Partitions; `None` leaves their number to the method.
        partitions: Option<usize>,
    },
    /// Tridiagonal cyclic reduction.
    CyclicReduction,
    /// Tridiagonal parallel cyclic reduction.
    Pcr,
    /// Periodic (cyclic) tridiagonal systems: pivoted LU, bordered.
    PeriodicLu,
    /// Connected components, each by the method that `auto` finds for it.
    Components,
    /// Block-tridiagonal LU with pivoting inside the diagonal blocks.
    BlockLu,
    /// Block-tridiagonal LU with pivoting across the blocks, as wide as the blocks are.
    BlockLuAcross,
    /// Block-tridiagonal Cholesky for Hermitian positive definite matrices.
    BlockCholesky,
    /// Block-tridiagonal LU without pivoting after random butterflies inside the blocks, checked.
    BlockRbt {
        /// Seed of the butterflies.
        seed: u64,
    },
    /// Block cyclic reduction with pivoting inside the diagonal blocks.
    BlockCyclicReduction,
    /// SPIKE on the band, or with given blocks on the blocks: partitions in parallel.
    Spike {
        /// Partitions; `None` leaves their number to the method.
        partitions: Option<usize>,
    },
    /// SPIKE with a truncated reduced system, for dominant matrices.
    SpikeTruncated {
        /// Partitions; `None` leaves their number to the method.
        partitions: Option<usize>,
    },
    /// Band LU with partial pivoting.
    BandLu,
    /// Band LU without interchanges.
    BandLuNoPivot,
    /// Band Cholesky for Hermitian positive definite matrices.
    BandCholesky,
    /// Sparse Cholesky for Hermitian positive definite matrices.
    SparseCholesky,
    /// Sparse L·D·Lᴴ for Hermitian matrices, pivots of order 1 and 2.
    SparseLdl,
    /// Sparse LU with partial pivoting: faer's where there is fill, by columns where there is little.
    SparseLu,
    /// Sparse QR by reflections, in which elements cannot grow.
    SparseQr,
    /// Dense LU with partial pivoting.
    DenseLu,
    /// Dense LU with partial pivoting in twice the precision of a double, for small systems.
    DenseLuDoubled,
    /// Dense LU in exact integers, for small systems.
    ExactLu,
    /// Dense LU without pivoting.
    Genp,
    /// Dense LU without pivoting after random butterflies, checked.
    Rbt {
        /// Seed of the butterflies.
        seed: u64,
    },
}

/// What a method works on. One count of work stands for all methods of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// One diagonal.
    Diagonal,
    /// A triangle, in some order of rows and columns.
    Triangular,
    /// Three diagonals.
    Tridiagonal,
    /// Three diagonals and two corners.
    Periodic,
    /// Parts that nothing connects.
    Components,
    /// Dense blocks on three diagonals.
    Blocks,
    /// A band.
    Band,
    /// Sparse matrices of any structure.
    Sparse,
    /// All n² numbers.
    Dense,
}

/// What a method needs of A beside its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A = Aᴴ.
    Hermitian,
    /// A = Aᴴ, positive definite.
    PositiveDefinite,
}

/// What the registry says about a direct method.
#[derive(Clone, Copy, Debug)]
pub struct DirectRow {
    /// The method, with default options.
    pub method: Direct,
    /// Name in commands and reports.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it works on.
    pub family: Family,
    /// What it needs of A.
    pub needs: Needs,
    /// The method to go to where this one breaks down or is weak; `None` for the last.
    pub stronger: Option<Direct>,
    /// Bytes of its factors and of the matrix in its format, but for blocks, which are counted by their sizes.
    pub(crate) bytes: fn(&Extent) -> u64,
}

const SEED: u64 = 1;
const G_SPIKE: Direct = Direct::TridiagonalSpike { interior: TridiagonalSolver::Givens, partitions: None };
const SPIKE_LU: Direct = Direct::TridiagonalSpike { interior: TridiagonalSolver::Lu, partitions: None };
const SPIKE_DIAGONAL_PIVOTING: Direct =
    Direct::TridiagonalSpike { interior: TridiagonalSolver::DiagonalPivoting, partitions: None };

/// A row for methods that need nothing of A.
const fn row(
    method: Direct,
    name: &'static str,
    summary: &'static str,
    family: Family,
    stronger: Option<Direct>,
    bytes: fn(&Extent) -> u64,
) -> DirectRow {
    DirectRow { method, name, summary, family, needs: Needs::Nothing, stronger, bytes }
}

/// All direct methods, in the order of help texts.
#[rustfmt::skip] // a line or two a method
pub static DIRECT: &[DirectRow] = {
    use Family::{Band, Blocks, Dense, Periodic, Sparse, Tridiagonal};
    &[
        row(Direct::Diagonal, "diagonal", "a diagonal matrix, divided by", Family::Diagonal, Some(Direct::SparseLu), Extent::rows),
        row(Direct::Triangular, "triangular", "substitution, triangular in some order of rows and columns", Family::Triangular, Some(Direct::SparseLu), Extent::matrix_twice),
        row(Direct::Thomas, "thomas", "tridiagonal LU without pivoting", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(Direct::TridiagonalLu, "tridiagonal-lu", "tridiagonal LU with partial pivoting", Tridiagonal, Some(Direct::SparseLu), Extent::rows),
        row(Direct::DiagonalPivoting, "diagonal-pivoting", "tridiagonal LBM with pivots of order 1 and 2", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(G_SPIKE, "g-spike", "tridiagonal SPIKE, Givens rotations in the partitions", Tridiagonal, Some(Direct::SparseLu), Extent::rows),
        row(SPIKE_LU, "spike-lu", "tridiagonal SPIKE, no pivoting in the partitions", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(SPIKE_DIAGONAL_PIVOTING, "spike-diagonal-pivoting", "tridiagonal SPIKE, pivots of order 1 and 2 in the partitions", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(Direct::CyclicReduction, "cyclic-reduction", "tridiagonal cyclic reduction, no pivoting", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(Direct::Pcr, "pcr", "tridiagonal parallel cyclic reduction, no pivoting", Tridiagonal, Some(Direct::TridiagonalLu), Extent::rows),
        row(Direct::PeriodicLu, "periodic-lu", "periodic tridiagonal systems, bordered pivoted LU", Periodic, Some(Direct::SparseLu), Extent::rows),
        row(Direct::Components, "components", "connected components, each by the method that auto finds for it", Family::Components, Some(Direct::SparseLu), Extent::matrix_twice),
        row(Direct::BlockLu, "block-lu", "block-tridiagonal LU, pivoting inside blocks", Blocks, Some(Direct::BandLu), Extent::rows),
        row(Direct::BlockLuAcross, "block-lu-across", "block-tridiagonal LU, pivoting across blocks", Blocks, Some(Direct::SparseLu), Extent::rows),
        DirectRow {
            needs: Needs::PositiveDefinite,
            ..row(Direct::BlockCholesky, "block-cholesky", "block Cholesky, for Hermitian positive definite matrices", Blocks, Some(Direct::BlockLu), Extent::rows)
        },
        row(Direct::BlockRbt { seed: SEED }, "block-rbt", "random butterflies inside blocks, then block LU without pivoting, checked", Blocks, Some(Direct::BlockLuAcross), Extent::rows),
        row(Direct::BlockCyclicReduction, "block-cyclic-reduction", "block cyclic reduction, pivoting inside blocks", Blocks, Some(Direct::BandLu), Extent::rows),
        row(Direct::Spike { partitions: None }, "spike", "SPIKE: partitions of the band (or of given blocks) in parallel", Band, Some(Direct::BandLu), Extent::band_with_spikes),
        row(Direct::SpikeTruncated { partitions: None }, "spike-truncated", "SPIKE with a truncated reduced system, dropped part bounded, refined", Band, Some(Direct::BandLu), Extent::band_with_spikes),
        row(Direct::BandLu, "band-lu", "band LU with partial pivoting", Band, Some(Direct::SparseLu), Extent::band_with_fill),
        row(Direct::BandLuNoPivot, "band-lu-nopivot", "band LU without interchanges", Band, Some(Direct::BandLu), Extent::band),
        DirectRow {
            needs: Needs::PositiveDefinite,
            ..row(Direct::BandCholesky, "band-cholesky", "band Cholesky, for Hermitian positive definite matrices", Band, Some(Direct::BandLu), Extent::half_band)
        },
        DirectRow {
            needs: Needs::PositiveDefinite,
            ..row(Direct::SparseCholesky, "sparse-cholesky", "sparse Cholesky, for Hermitian positive definite matrices", Sparse, Some(Direct::SparseLdl), Extent::matrix_twice)
        },
        DirectRow {
            needs: Needs::Hermitian,
            ..row(Direct::SparseLdl, "sparse-ldl", "sparse LDL, pivots of order 1 and 2, for Hermitian matrices", Sparse, Some(Direct::SparseLu), Extent::matrix_twice)
        },
        row(Direct::SparseLu, "sparse-lu", "sparse LU with partial pivoting", Sparse, Some(Direct::SparseQr), Extent::matrix_twice),
        row(Direct::SparseQr, "sparse-qr", "sparse QR by reflections, for what elimination cannot do", Sparse, None, Extent::matrix_twice),
        row(Direct::DenseLu, "dense-lu", "dense LU with partial pivoting", Dense, Some(Direct::SparseLu), Extent::dense_twice),
        row(Direct::DenseLuDoubled, "dense-lu-doubled", "the same in twice the precision, for small systems", Dense, Some(Direct::SparseQr), Extent::dense_doubled),
        row(Direct::ExactLu, "exact-lu", "the same in exact integers, for small systems", Dense, None, Extent::dense_twice),
        row(Direct::Genp, "genp", "dense LU without pivoting", Dense, Some(Direct::DenseLu), Extent::dense_twice),
        row(Direct::Rbt { seed: SEED }, "rbt", "random butterflies, then dense LU without pivoting, checked", Dense, Some(Direct::SparseLu), Extent::dense_twice),
    ]
};

impl Direct {
    /// Its row in the registry.
    pub fn row(&self) -> &'static DirectRow {
        DIRECT.iter().find(|row| row.method.is_like(self)).expect("a row for every method")
    }

    /// Name in commands and reports.
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// The same method, whatever options it has.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TridiagonalSpike { interior, .. }, Self::TridiagonalSpike { interior: other, .. }) => {
                interior == other
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The method that takes its place with [`Fallback::Stronger`](crate::Fallback): the next stronger one on the same structure, if there is one.
    ///
    /// ```
    /// use blocktri::Direct;
    /// assert_eq!(Direct::Thomas.fallback(), Some(Direct::TridiagonalLu));
    /// assert_eq!(Direct::TridiagonalLu.fallback(), None); // what pivoting cannot do on this structure, nothing can
    /// ```
    pub fn fallback(&self) -> Option<Self> {
        let row = self.row();
        match self {
            // By the butterflies' own dense factors.
            Self::Rbt { .. } => Some(Self::DenseLu),
            _ => row.stronger.filter(|next| *next != Self::SparseLu || row.family == Family::Sparse),
        }
    }

    /// The seed that its result depends on.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::BlockRbt { seed } | Self::Rbt { seed } => Some(*seed),
            _ => None,
        }
    }

    /// Whether it computes in more than twice the working precision, so that pivots of its own prove A regular.
    pub(crate) fn is_beyond_rounding(&self) -> bool {
        matches!(self, Self::DenseLuDoubled | Self::ExactLu)
    }

    /// Whether it has factors in single precision for real matrices in double: the methods whose kernels gain by it.
    pub fn is_in_single(&self) -> bool {
        IN_SINGLE.iter().any(|method| method.is_like(self))
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// See [`Direct::is_in_single`].
pub(crate) const IN_SINGLE: [Direct; 5] =
    [Direct::BlockLu, Direct::BandLu, Direct::SparseLu, Direct::DenseLu, Direct::Rbt { seed: SEED }];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_a_stronger_method_ends_at_one_that_no_growth_defeats() {
        for row in DIRECT {
            let (mut at, mut steps) = (row, 0);
            while let Some(next) = at.method.row().stronger {
                at = next.row();
                steps += 1;
                assert!(steps < 6, "{} goes in a circle", row.name);
            }
            let last = [Direct::SparseQr, Direct::ExactLu];
            assert!(last.contains(&at.method), "{} ends at {}", row.name, at.name);
        }
    }

    #[test]
    fn options_do_not_make_another_method() {
        assert_eq!(Direct::Spike { partitions: Some(3) }.name(), "spike");
        assert_eq!(Direct::Rbt { seed: 9 }.name(), "rbt");
        assert_eq!(SPIKE_LU.name(), "spike-lu");
        assert!(Direct::BandLu.is_in_single() && !Direct::Thomas.is_in_single());
    }
}
