//! The registry of direct methods: one row each. To add one takes its variant and its row here, the method itself in `bt-direct`, and
//! its tests.

use std::borrow::Cow;
use std::fmt;

use bt_direct::spike::{Partitions, ReducedSystem, SpikeOptions, SpikeReport, TridiagonalSolver};
use bt_direct::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt, Cyclic,
    CyclicReduction, Diagonal, DiagonalPivoting, DoubledLu, ExactLu, FactorError, Factorization, Given, NoPivotLu,
    ParallelCyclicReduction, PartialPivotLu, PeriodicTridiagonal, PermutedTriangular, Rbt, RbtOptions, SparseCholesky,
    SparseLdl, SparseLu, Spike, Switch, Thomas, TridiagonalLu, TridiagonalSpike,
};
use bt_formats::{
    Band, BlockTridiagonal, Csr, Error as InputError, HybridLayout, Matrix, Monitor, Note, Partition, Scalar,
    Tridiagonal,
};
use faer::Mat;

use crate::components;
use crate::error::Error;
use crate::factors::{BlockSummary, partition};
use crate::gpu;
use crate::memory::{Extent, ask_for_blocks};
use crate::options::{Blocks, DeviceChoice};
use crate::plan::Found;

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
pub const DIRECT: [DirectRow; 30] = {
    use Direct::{
        BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt,
        Components, CyclicReduction, DenseLu, DenseLuDoubled, Diagonal, DiagonalPivoting, ExactLu, Genp, Pcr, PeriodicLu, Rbt, SparseCholesky, SparseLdl,
        SparseLu, Spike, SpikeTruncated, Thomas, Triangular, TridiagonalLu,
    };
    use Family::{Band, Blocks, Dense, Periodic, Sparse, Tridiagonal};
    const DEFINITE: DirectRow = DirectRow {
        needs: Needs::PositiveDefinite,
        ..row(BlockCholesky, "block-cholesky", "block Cholesky, for Hermitian positive definite matrices", Blocks, Some(BlockLu), Extent::rows)
    };
    [
        row(Diagonal, "diagonal", "a diagonal matrix, divided by", Family::Diagonal, Some(SparseLu), Extent::rows),
        row(Triangular, "triangular", "substitution, triangular in some order of rows and columns", Family::Triangular, Some(SparseLu), Extent::matrix_twice),
        row(Thomas, "thomas", "tridiagonal LU without pivoting", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(TridiagonalLu, "tridiagonal-lu", "tridiagonal LU with partial pivoting", Tridiagonal, Some(SparseLu), Extent::rows),
        row(DiagonalPivoting, "diagonal-pivoting", "tridiagonal LBM with pivots of order 1 and 2", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(G_SPIKE, "g-spike", "tridiagonal SPIKE, Givens rotations in the partitions", Tridiagonal, Some(SparseLu), Extent::rows),
        row(SPIKE_LU, "spike-lu", "tridiagonal SPIKE, no pivoting in the partitions", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(SPIKE_DIAGONAL_PIVOTING, "spike-diagonal-pivoting", "tridiagonal SPIKE, pivots of order 1 and 2 in the partitions", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(CyclicReduction, "cyclic-reduction", "tridiagonal cyclic reduction, no pivoting", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(Pcr, "pcr", "tridiagonal parallel cyclic reduction, no pivoting", Tridiagonal, Some(TridiagonalLu), Extent::rows),
        row(PeriodicLu, "periodic-lu", "periodic tridiagonal systems, bordered pivoted LU", Periodic, Some(SparseLu), Extent::rows),
        row(Components, "components", "connected components, each by the method that auto finds for it", Family::Components, Some(SparseLu), Extent::matrix_twice),
        row(BlockLu, "block-lu", "block-tridiagonal LU, pivoting inside blocks", Blocks, Some(BandLu), Extent::rows),
        row(BlockLuAcross, "block-lu-across", "block-tridiagonal LU, pivoting across blocks", Blocks, Some(SparseLu), Extent::rows),
        DEFINITE,
        row(BlockRbt { seed: SEED }, "block-rbt", "random butterflies inside blocks, then block LU without pivoting, checked", Blocks, Some(BlockLuAcross), Extent::rows),
        row(BlockCyclicReduction, "block-cyclic-reduction", "block cyclic reduction, pivoting inside blocks", Blocks, Some(BandLu), Extent::rows),
        row(Spike { partitions: None }, "spike", "SPIKE: partitions of the band (or of given blocks) in parallel", Band, Some(BandLu), Extent::band_with_spikes),
        row(SpikeTruncated { partitions: None }, "spike-truncated", "SPIKE with a truncated reduced system, dropped part bounded, refined", Band, Some(BandLu), Extent::band_with_spikes),
        row(BandLu, "band-lu", "band LU with partial pivoting", Band, Some(SparseLu), Extent::band_with_fill),
        row(BandLuNoPivot, "band-lu-nopivot", "band LU without interchanges", Band, Some(BandLu), Extent::band),
        DirectRow {
            needs: Needs::PositiveDefinite,
            ..row(BandCholesky, "band-cholesky", "band Cholesky, for Hermitian positive definite matrices", Band, Some(BandLu), Extent::half_band)
        },
        DirectRow {
            needs: Needs::PositiveDefinite,
            ..row(SparseCholesky, "sparse-cholesky", "sparse Cholesky, for Hermitian positive definite matrices", Sparse, Some(SparseLdl), Extent::matrix_twice)
        },
        DirectRow {
            needs: Needs::Hermitian,
            ..row(SparseLdl, "sparse-ldl", "sparse LDL, pivots of order 1 and 2, for Hermitian matrices", Sparse, Some(SparseLu), Extent::matrix_twice)
        },
        row(SparseLu, "sparse-lu", "sparse LU with partial pivoting", Sparse, None, Extent::matrix_twice),
        row(DenseLu, "dense-lu", "dense LU with partial pivoting", Dense, Some(SparseLu), Extent::dense_twice),
        row(DenseLuDoubled, "dense-lu-doubled", "the same in twice the precision, for small systems", Dense, None, Extent::dense_doubled),
        row(ExactLu, "exact-lu", "the same in exact integers, for small systems", Dense, None, Extent::dense_twice),
        row(Genp, "genp", "dense LU without pivoting", Dense, Some(DenseLu), Extent::dense_twice),
        row(Rbt { seed: SEED }, "rbt", "random butterflies, then dense LU without pivoting, checked", Dense, Some(SparseLu), Extent::dense_twice),
    ]
};

impl Direct {
    /// Its row in the registry.
    pub fn row(&self) -> &'static DirectRow {
        static ROWS: [DirectRow; 30] = DIRECT;
        ROWS.iter().find(|row| row.method.is_like(self)).expect("a row for every method")
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

/// A matrix as it is factored, in the order of the method.
pub(crate) struct Problem<'a, T: Scalar> {
    pub work: Given<'a, T>,
    pub method: Direct,
    pub directions: Directions<'a>,
}

/// What the method is told beside its matrix.
pub(crate) struct Directions<'a> {
    pub blocks: &'a Blocks,
    /// Whether the order is the one given, which given blocks belong to.
    pub identity: bool,
    pub device: DeviceChoice,
    /// What is known of this matrix.
    pub found: Found,
}

/// Factors, and what is told of them.
pub(crate) struct Made<T: Scalar> {
    pub factors: Box<dyn Factorization<T>>,
    /// Bytes of the matrix in the format they are made from.
    pub matrix_bytes: usize,
    pub blocks: Option<BlockSummary>,
    pub notes: Vec<Note>,
}

impl<T: Scalar> Made<T> {
    pub fn new(factors: impl Factorization<T> + 'static, matrix_bytes: usize) -> Self {
        Self { factors: Box::new(factors), matrix_bytes, blocks: None, notes: Vec::new() }
    }

    fn on(self, partition: &Partition) -> Self {
        Self { blocks: Some(BlockSummary::of(partition)), ..self }
    }

    pub fn noted(mut self, notes: impl IntoIterator<Item = Note>) -> Self {
        self.notes.extend(notes);
        self
    }
}

impl<T: Scalar> Problem<'_, T> {
    /// The factors.
    pub fn factor(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        match self.method {
            Direct::Diagonal => {
                let a = self.work.csr()?;
                let made = Diagonal::new(&a).map_err(|e| self.wrong_structure(e, "diagonal"))?;
                Ok(Made::new(made, a.bytes()))
            }
            Direct::Triangular => {
                let a = self.work.csr()?;
                let made = PermutedTriangular::new(&a).map_err(|e| self.wrong_structure(e, "triangular"))?;
                Ok(Made::new(made, a.bytes()))
            }
            Direct::Thomas => {
                let t = self.tridiagonal()?;
                let bytes = t.bytes();
                Ok(Made::new(Thomas::from_tridiagonal(t.into_owned())?, bytes))
            }
            Direct::TridiagonalLu => {
                let t = self.tridiagonal()?;
                Ok(Made::new(TridiagonalLu::new(&t)?, t.bytes()))
            }
            Direct::DiagonalPivoting => {
                let t = self.tridiagonal()?;
                Ok(Made::new(DiagonalPivoting::new(&t)?, t.bytes()))
            }
            Direct::CyclicReduction => {
                let t = self.tridiagonal()?;
                Ok(Made::new(CyclicReduction::with_options(&t, Switch::Never, monitor)?, t.bytes()))
            }
            Direct::Pcr => {
                let t = self.tridiagonal()?;
                Ok(Made::new(ParallelCyclicReduction::with_monitor(&t, monitor)?, t.bytes()))
            }
            Direct::PeriodicLu => {
                let a = Cyclic::from_csr(&*self.work.csr()?)
                    .map_err(|e| wrong_structure(e, self.method, "periodic tridiagonal"))?;
                Ok(Made::new(PeriodicTridiagonal::with_monitor(&a, monitor)?, a.bytes()))
            }
            Direct::TridiagonalSpike { interior, partitions } => {
                let t = self.tridiagonal()?;
                let partitions = partitions.map_or(Partitions::Auto, Partitions::Even);
                let spike = TridiagonalSpike::with_options(&t, &partitions, interior, monitor)?;
                let note = partition_note(&spike.partitions().collect::<Vec<_>>());
                Ok(Made::new(spike, t.bytes()).noted([note]))
            }
            Direct::Components => {
                components::factor(&*self.work.csr()?, self.directions.found.parts.as_deref(), monitor)
            }
            Direct::BlockLu => self.block_lu(monitor),
            Direct::BlockLuAcross => {
                let a = self.blocks()?;
                Ok(Made::new(BlockLuAcross::with_monitor(&a, monitor)?, a.bytes()).on(a.partition()))
            }
            Direct::BlockCholesky => {
                let a = self.blocks()?;
                Ok(Made::new(BlockCholesky::with_monitor(&a, monitor)?, a.bytes()).on(a.partition()))
            }
            Direct::BlockRbt { seed } => {
                let a = self.blocks()?;
                let rbt = BlockRbt::with_options(&a, RbtOptions { seed, ..RbtOptions::default() }, monitor)?;
                let note = rbt.fallback().map(|why| Note::PivotedInstead {
                    method: "block-rbt",
                    how: "pivoting across blocks",
                    why: why.to_string(),
                });
                Ok(Made::new(rbt, a.bytes()).on(a.partition()).noted(note))
            }
            Direct::BlockCyclicReduction => {
                let a = self.blocks()?;
                Ok(Made::new(BlockCyclicReduction::with_monitor(&a, monitor)?, a.bytes()).on(a.partition()))
            }
            Direct::Spike { partitions } => self.spike(ReducedSystem::Recursive, partitions, monitor),
            Direct::SpikeTruncated { partitions } => self.spike(ReducedSystem::truncated::<T>(), partitions, monitor),
            Direct::BandLu => self.band_lu(monitor),
            Direct::BandLuNoPivot => {
                let band = self.band()?;
                Ok(Made::new(BandLuNoPivot::with_options(&band, None, monitor)?, band.bytes()))
            }
            Direct::BandCholesky => {
                let band = self.band()?;
                Ok(Made::new(BandCholesky::with_monitor(&band, monitor)?, band.bytes()))
            }
            Direct::SparseCholesky => {
                let a = self.work.csr()?;
                Ok(Made::new(SparseCholesky::with_monitor(&a, monitor)?, a.bytes()))
            }
            Direct::SparseLdl => {
                let a = self.work.csr()?;
                Ok(Made::new(SparseLdl::with_monitor(&a, monitor)?, a.bytes()))
            }
            Direct::SparseLu => self.sparse_lu(monitor),
            Direct::DenseLu => self.dense_lu(monitor),
            Direct::DenseLuDoubled => {
                let dense = self.dense()?;
                Ok(Made::new(DoubledLu::with_monitor(dense.as_ref(), monitor)?, self.dense_bytes()))
            }
            Direct::ExactLu => {
                let dense = self.dense()?;
                Ok(Made::new(ExactLu::with_monitor(dense.as_ref(), monitor)?, self.dense_bytes()))
            }
            Direct::Genp => {
                let dense = self.dense()?;
                Ok(Made::new(NoPivotLu::with_monitor(dense.as_ref(), monitor)?, self.dense_bytes()))
            }
            Direct::Rbt { seed } => self.rbt(seed, monitor),
        }
    }

    /// By one of [`IN_SINGLE`]: of others nothing is compiled for T.
    pub fn factor_in_single(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        match self.method {
            Direct::BlockLu => self.block_lu(monitor),
            Direct::BandLu => self.band_lu(monitor),
            Direct::SparseLu => self.sparse_lu(monitor),
            Direct::DenseLu => self.dense_lu(monitor),
            Direct::Rbt { seed } => self.rbt(seed, monitor),
            other => unreachable!("{other} is not among those in single precision"),
        }
    }

    fn block_lu(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let a = self.blocks_for(BlockLu::<T>::layout)?;
        Ok(Made::new(BlockLu::with_monitor(&a, monitor)?, a.bytes()).on(a.partition()))
    }

    fn band_lu(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let band = self.band()?;
        Ok(Made::new(BandLu::with_monitor(&band, monitor)?, band.bytes()))
    }

    fn sparse_lu(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let a = self.work.csr()?;
        let lu = match &self.directions.found.sparse_lu {
            Some(symbolic) => SparseLu::with_symbolic(&a, symbolic.clone(), monitor),
            None => SparseLu::with_monitor(&a, monitor),
        };
        Ok(Made::new(lu?, a.bytes()))
    }

    fn dense_lu(&self, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let dense = self.dense()?;
        Ok(Made::new(PartialPivotLu::with_monitor(dense.as_ref(), monitor)?, self.dense_bytes()))
    }

    fn rbt(&self, seed: u64, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let dense = self.dense()?;
        let butterflies = RbtOptions { seed, ..RbtOptions::default() };
        let (factors, reason): (Box<dyn Factorization<T>>, _) = match self.directions.device {
            DeviceChoice::Gpu(ordinal) => gpu::rbt(&dense, ordinal, butterflies)?,
            DeviceChoice::Gpus(_) => {
                let message = "rbt is not on several GPUs; use one of them (--device gpu:0)".into();
                return Err(Error::Usage { message });
            }
            DeviceChoice::Cpu | DeviceChoice::Auto => {
                let rbt = Rbt::with_options(dense.as_ref(), butterflies, monitor)?;
                let reason = rbt.fallback();
                (Box::new(rbt), reason)
            }
        };
        let how = if matches!(self.directions.device, DeviceChoice::Gpu(_)) {
            "partial pivoting on the processor"
        } else {
            "partial pivoting"
        };
        let note = reason.map(|why| Note::PivotedInstead { method: "rbt", how, why: why.to_string() });
        Ok(Made { factors, matrix_bytes: self.dense_bytes(), blocks: None, notes: note.into_iter().collect() })
    }

    /// SPIKE on given blocks, otherwise on the band.
    fn spike(
        &self,
        reduced: ReducedSystem,
        partitions: Option<usize>,
        monitor: &mut dyn Monitor,
    ) -> Result<Made<T>, Error> {
        let polyalgorithm = reduced == ReducedSystem::Recursive && partitions.is_none();
        let chosen = SpikeOptions {
            partitions: partitions.map_or(Partitions::Auto, Partitions::Balanced),
            reduced,
            ..SpikeOptions::default()
        };
        if *self.directions.blocks != Blocks::Detect {
            let a = self.blocks()?;
            let spike = Spike::with_options(&*a, &chosen, monitor)?;
            let notes = spike_notes(&spike.report());
            return Ok(Made::new(spike, a.bytes()).on(a.partition()).noted(notes));
        }
        let band = self.band()?;
        // The polyalgorithm tells its choice and reason in its report.
        let spike = if polyalgorithm {
            Spike::auto(&band, rayon::current_num_threads(), monitor)?
        } else {
            Spike::with_options(&*band, &chosen, monitor)?
        };
        let notes = spike_notes(&spike.report());
        Ok(Made::new(spike, band.bytes()).noted(notes))
    }

    fn tridiagonal(&self) -> Result<Cow<'_, Tridiagonal<T>>, Error> {
        match self.work {
            Given::Tridiagonal(a) => Ok(Cow::Borrowed(a)),
            other => Ok(Cow::Owned(tridiagonal(&*other.csr()?, self.method)?)),
        }
    }

    fn band(&self) -> Result<Cow<'_, Band<T>>, Error> {
        match self.work {
            Given::Band(a) => Ok(Cow::Borrowed(a)),
            other => Ok(Cow::Owned(Band::from_csr(&*other.csr()?)?)),
        }
    }

    /// What another method is for.
    fn wrong_structure(&self, e: FactorError, structure: &str) -> Error {
        match e {
            FactorError::Input(InputError::InvalidStructure { why, .. }) => {
                let message = format!("{} needs a {structure} matrix, but {why}", self.method);
                Error::Usage { message }
            }
            FactorError::Input(e) => wrong_structure(e, self.method, structure),
            other => other.into(),
        }
    }

    fn blocks(&self) -> Result<Cow<'_, BlockTridiagonal<T>>, Error> {
        self.blocks_for(|_| HybridLayout::default())
    }

    /// In blocks stored as `layout` says, unless they are given.
    fn blocks_for(&self, layout: impl Fn(&Partition) -> HybridLayout) -> Result<Cow<'_, BlockTridiagonal<T>>, Error> {
        if let Given::Blocks(a) = self.work {
            ask_for_blocks::<T>(a.partition(), self.method)?;
            return Ok(Cow::Borrowed(a));
        }
        Ok(Cow::Owned(blocks(
            &*self.work.csr()?,
            self.method,
            self.directions.blocks,
            self.directions.identity,
            layout,
        )?))
    }

    /// A with all its zeros.
    fn dense(&self) -> Result<Mat<T>, Error> {
        /// 8 GiB of f64.
        const MAX_VALUES: f64 = 1e9;
        let (n, method) = (self.n(), self.method);
        if (n as f64).powi(2) > MAX_VALUES {
            let message =
                format!("{method} stores all {n} × {n} values, more than the {MAX_VALUES:e} it may; use auto");
            return Err(Error::Usage { message });
        }
        Ok(self.work.csr()?.to_dense())
    }

    fn dense_bytes(&self) -> usize {
        self.n() * self.n() * size_of::<T>()
    }

    fn n(&self) -> usize {
        self.work.shape().0
    }
}

/// What a reader of the report should know of the partitions.
pub(crate) fn spike_notes(report: &SpikeReport) -> Vec<Note> {
    let mut notes = vec![partition_note(&report.partitions)];
    notes.extend(report.choice.as_ref().map(|choice| Note::SpikeChose { reason: choice.reason.clone() }));
    if report.dropped > 0.0 {
        notes.push(Note::SpikeDropped { bound: Some(report.dropped).filter(|&bound| bound < 1.0) });
    }
    if report.boosted_pivots > 0 {
        notes.push(Note::BoostedPivots { pivots: report.boosted_pivots });
    }
    notes
}

pub(crate) fn partition_note(sizes: &[usize]) -> Note {
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    let (least_rows, most_rows) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
    Note::SpikePartitions { partitions: sizes.len(), least_rows, most_rows }
}

/// A in the blocks asked for, stored as `layout` says.
pub(crate) fn blocks<T: Scalar>(
    work: &Csr<T>,
    method: Direct,
    blocks: &Blocks,
    identity: bool,
    layout: impl Fn(&Partition) -> HybridLayout,
) -> Result<BlockTridiagonal<T>, Error> {
    let partition = partition(work, blocks, identity)?;
    ask_for_blocks::<T>(&partition, method)?;
    let layout = layout(&partition);
    Ok(BlockTridiagonal::from_csr(work, partition, layout)?)
}

pub(crate) fn tridiagonal<T: Scalar>(a: &Csr<T>, method: Direct) -> Result<Tridiagonal<T>, Error> {
    Tridiagonal::from_csr(a).map_err(|e| wrong_structure(e, method, "tridiagonal"))
}

fn wrong_structure(e: InputError, method: Direct, structure: &str) -> Error {
    match e {
        InputError::OutsideStructure { row, col, .. } => Error::Usage {
            message: format!(
                "{method} needs a {structure} matrix, but there is an entry at row {row}, column {col} (from 0); use band-lu or auto"
            ),
        },
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_a_stronger_method_ends_at_one_that_pivots_over_all_rows() {
        for row in &DIRECT {
            let (mut at, mut steps) = (row, 0);
            while let Some(next) = at.method.row().stronger {
                at = next.row();
                steps += 1;
                assert!(steps < 4, "{} goes in a circle", row.name);
            }
            let last = [Direct::SparseLu, Direct::DenseLuDoubled, Direct::ExactLu, Direct::PeriodicLu];
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
