//! How each direct method is made of A: one arm a method, and the conversions that they share.

use std::borrow::Cow;

use bt_direct::spike::{Partitions, ReducedSystem, SpikeOptions, SpikeReport};
use bt_direct::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt,
    CyclicReduction, Diagonal, DiagonalPivoting, DoubledLu, ExactLu, FactorError, Factorization, Given, NoPivotLu,
    ParallelCyclicReduction, PartialPivotLu, PeriodicTridiagonal, PermutedTriangular, Rbt, RbtOptions, SparseCholesky,
    SparseLdl, SparseLu, SparseQr, Spike, Switch, Thomas, TridiagonalLu, TridiagonalSpike,
};
use bt_formats::{
    Band, BlockTridiagonal, Csr, Error as InputError, HybridLayout, Matrix, Monitor, Note, Partition, Scalar,
    Tridiagonal,
};
use faer::{Mat, MatRef};

use crate::components::{self, FactorPart};
use crate::direct::Direct;
use crate::error::Error;
use crate::gpu::rbt::rbt;
use crate::made::Made;
use crate::memory::ask_for_blocks;
use crate::options::{Blocks, DeviceChoice, Fallback};
use crate::partition::partition;
use crate::plan::Found;

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
    /// Whether butterflies that fail their check may make room for pivots.
    pub fallback: Fallback,
    /// What is known of this matrix.
    pub found: Found,
}

impl<T: Scalar> Problem<'_, T> {
    /// The factors; those of components by `factor_part`.
    pub fn factor(&self, factor_part: FactorPart<T>, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        match self.method {
            Direct::Diagonal => {
                let a = self.work.csr()?;
                let made = Diagonal::new(&a).map_err(|e| wrong_structure(e, self.method, "diagonal"))?;
                Ok(Made::new(made, a.bytes()))
            }
            Direct::Triangular => {
                let a = self.work.csr()?;
                let made = PermutedTriangular::new(&a).map_err(|e| wrong_structure(e, self.method, "triangular"))?;
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
                let a = self.work.periodic().map_err(|e| wrong_structure(e, self.method, "periodic tridiagonal"))?;
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
                components::factor(&*self.work.csr()?, self.directions.found.parts.as_deref(), factor_part, monitor)
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
                let rbt = BlockRbt::with_options(&a, self.butterflies(seed), monitor)?;
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
                let of_band = |a: &Band<T>, monitor: &mut dyn Monitor| BandLuNoPivot::with_options(a, None, monitor);
                self.of_band_or_rows(of_band, BandLuNoPivot::from_csr, monitor)
            }
            Direct::BandCholesky => self.of_band_or_rows(BandCholesky::with_monitor, BandCholesky::from_csr, monitor),
            Direct::SparseCholesky => {
                let a = self.work.csr()?;
                Ok(Made::new(SparseCholesky::with_monitor(&a, monitor)?, a.bytes()))
            }
            Direct::SparseLdl => {
                let a = self.work.csr()?;
                let ldl = match &self.directions.found.sparse_ldl {
                    Some(symbolic) => SparseLdl::with_symbolic(&a, symbolic.clone(), monitor),
                    None => SparseLdl::with_monitor(&a, monitor),
                };
                Ok(Made::new(ldl?, a.bytes()))
            }
            Direct::SparseLu => self.sparse_lu(monitor),
            Direct::SparseQr => {
                let a = self.work.csr()?;
                Ok(Made::new(SparseQr::with_monitor(&a, monitor)?, a.bytes()))
            }
            Direct::DenseLu => self.dense_lu(monitor),
            Direct::DenseLuDoubled => {
                let mut own = Mat::new();
                Ok(Made::new(DoubledLu::with_monitor(self.dense(&mut own)?, monitor)?, self.dense_bytes()))
            }
            Direct::ExactLu => {
                let mut own = Mat::new();
                Ok(Made::new(ExactLu::with_monitor(self.dense(&mut own)?, monitor)?, self.dense_bytes()))
            }
            Direct::Genp => {
                let mut own = Mat::new();
                Ok(Made::new(NoPivotLu::with_monitor(self.dense(&mut own)?, monitor)?, self.dense_bytes()))
            }
            Direct::Rbt { seed } => self.rbt(seed, monitor),
        }
    }

    /// By one of [`IN_SINGLE`](crate::direct::IN_SINGLE): of others nothing is compiled for T.
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
        self.of_band_or_rows(BandLu::with_monitor, BandLu::from_csr, monitor)
    }

    /// Factors of the band that is given, or of compressed rows without a copy of them.
    fn of_band_or_rows<F: Factorization<T> + 'static>(
        &self,
        of_band: impl FnOnce(&Band<T>, &mut dyn Monitor) -> Result<F, FactorError>,
        of_rows: impl FnOnce(&Csr<T>, &mut dyn Monitor) -> Result<F, FactorError>,
        monitor: &mut dyn Monitor,
    ) -> Result<Made<T>, Error> {
        match self.work {
            Given::Band(a) => Ok(Made::new(of_band(a, monitor)?, a.bytes())),
            other => {
                let a = other.csr()?;
                Ok(Made::new(of_rows(&a, monitor)?, a.bytes()))
            }
        }
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
        let mut own = Mat::new();
        Ok(Made::new(PartialPivotLu::with_monitor(self.dense(&mut own)?, monitor)?, self.dense_bytes()))
    }

    fn butterflies(&self, seed: u64) -> RbtOptions {
        let fallback = match self.directions.fallback {
            Fallback::Never => bt_direct::Fallback::Error,
            Fallback::Stronger => bt_direct::Fallback::Pivoted,
        };
        RbtOptions { seed, fallback, ..RbtOptions::default() }
    }

    fn rbt(&self, seed: u64, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
        let butterflies = self.butterflies(seed);
        let (factors, reason): (Box<dyn Factorization<T>>, _) = match self.directions.device {
            DeviceChoice::Gpu(ordinal) => {
                self.check_values()?;
                rbt(&self.work.csr()?.to_dense(), ordinal, butterflies)?
            }
            DeviceChoice::Gpus(_) => {
                let message = "rbt is not on several GPUs; use one of them (device gpu:0)".into();
                return Err(Error::Usage { message });
            }
            DeviceChoice::Cpu | DeviceChoice::Auto => {
                let mut own = Mat::new();
                let rbt = Rbt::with_options(self.dense(&mut own)?, butterflies, monitor)?;
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
        tridiagonal(self.work, self.method)
    }

    fn band(&self) -> Result<Cow<'_, Band<T>>, Error> {
        match self.work {
            Given::Band(a) => Ok(Cow::Borrowed(a)),
            other => Ok(Cow::Owned(Band::from_csr(&*other.csr()?)?)),
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

    /// A with all its zeros, in `own` unless it is given so.
    fn dense<'b>(&'b self, own: &'b mut Mat<T>) -> Result<MatRef<'b, T>, Error> {
        self.check_values()?;
        Ok(self.work.dense(own)?)
    }

    /// Whether all n² values may be stored.
    fn check_values(&self) -> Result<(), Error> {
        /// 8 GiB of f64.
        const MAX_VALUES: f64 = 1e9;
        let (n, method) = (self.n(), self.method);
        if (n as f64).powi(2) <= MAX_VALUES {
            return Ok(());
        }
        let message = format!("{method} stores all {n} × {n} values, more than the {MAX_VALUES:e} it may; use auto");
        Err(Error::Usage { message })
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
    let layout = layout(&partition).unless_full(work, &partition);
    Ok(BlockTridiagonal::from_csr(work, partition, layout)?)
}

/// A as three diagonals.
pub(crate) fn tridiagonal<T: Scalar>(a: Given<'_, T>, method: Direct) -> Result<Cow<'_, Tridiagonal<T>>, Error> {
    a.tridiagonal().map_err(|e| wrong_structure(e, method, "tridiagonal"))
}

/// What the method needs, where A has another structure.
fn wrong_structure(e: FactorError, method: Direct, structure: &str) -> Error {
    let message = match e {
        FactorError::Input(InputError::InvalidStructure { why, .. }) => {
            format!("{method} needs a {structure} matrix, but {why}")
        }
        FactorError::Input(InputError::OutsideStructure { row, col, .. }) => format!(
            "{method} needs a {structure} matrix, but there is an entry at row {row}, column {col} (from 0); use band-lu or auto"
        ),
        other => return other.into(),
    };
    Error::Usage { message }
}
