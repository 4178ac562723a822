//! From a sparse matrix to the factors of one method: order, scaling, format, factorization.

use std::sync::OnceLock;

use bt_direct::condition::{rcond_of_large, rcond_refined, rcond_scaled};
use bt_direct::refine::unit_roundoff;
use bt_direct::spike::{Partitions, ReducedSystem, SpikeOptions, SpikeReport, TridiagonalSolver};
use bt_direct::{
    BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockCyclicReduction, BlockLu, BlockLuAcross, BlockRbt, Cyclic,
    CyclicReduction, DiagonalPivoting, DoubledLu, FactorError, Factorization, Lowered, NoPivotLu,
    ParallelCyclicReduction, PartialPivotLu, PeriodicTridiagonal, Rbt, RbtOptions, SingularKind, Singularity, SparseLu,
    Spike, Switch, Thomas, TridiagonalLu, TridiagonalSpike,
};
use bt_formats::detect::natural_partition;
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching, rcm, spectral};
use bt_formats::{
    Band, BlockTridiagonal, Csr, Error as InputError, HybridLayout, LinearOperator, Matrix, Monitor, Partition,
    Permutation, RealScalar, Rounded, Scalar, ScalarKind, Tridiagonal,
};
use bt_iter::asymmetry;
use faer::Mat;

use crate::equilibrated;
use crate::error::Error;
use crate::gpu;
use crate::memory::{ask_for, ask_for_blocks};
use crate::options::{Blocks, DeviceChoice, Method, Precision, Reorder, SolveOptions};
use crate::plan::{Candidate, plan};
use crate::reordered::{Factors, Reordered, Scaling, Transform};

/// The blocks a method worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSummary {
    /// Number of blocks.
    pub count: usize,
    /// Smallest block.
    pub min: usize,
    /// Largest block.
    pub max: usize,
}

impl BlockSummary {
    pub(crate) fn of(partition: &Partition) -> Self {
        let (min, max) = partition.min_max_size();
        Self { count: partition.n_blocks(), min, max }
    }
}

/// Factors and what they were made from.
pub(crate) struct Factored<T: Scalar> {
    /// What happened while they were made.
    pub notes: Vec<String>,
    pub method: Method,
    pub reorder: Reorder,
    pub blocks: Option<BlockSummary>,
    pub factors: Factors<T>,
    pub matrix_bytes: usize,
    /// Of the factors.
    pub precision: Precision,
    /// Estimates, made when they are asked for: they depend on the factors alone.
    rcond: OnceLock<Option<f64>>,
    scaled_rcond: OnceLock<f64>,
}

impl<T: Scalar> Factored<T> {
    fn new(factors: Factors<T>, method: Method, matrix_bytes: usize) -> Self {
        Self {
            notes: Vec::new(),
            method,
            reorder: Reorder::None,
            blocks: None,
            factors,
            matrix_bytes,
            precision: Precision::Working,
            rcond: OnceLock::new(),
            scaled_rcond: OnceLock::new(),
        }
    }

    /// Reciprocal condition number of A in the 1-norm; `None` where factors in single precision cannot tell.
    pub fn rcond(&self, a: &Csr<T>) -> Option<f64> {
        *self.rcond.get_or_init(|| match self.precision {
            Precision::Working if self.factors.stats().norm_one.is_infinite() => {
                Some(rcond_of_large(a, &*self.factors))
            }
            Precision::Working => Some(self.factors.rcond()),
            Precision::Single => rcond_refined(a, &*self.factors),
        })
    }

    /// That of A in units that bring a product of as large entries as can be to 1 and all others below (see
    /// [`maximum_product_matching`]): what the units of rows and columns cannot spoil.
    pub fn scaled_rcond(&self, a: &Csr<T>) -> f64 {
        *self.scaled_rcond.get_or_init(|| {
            let made;
            let (factored, factors) = match &self.factors {
                Factors::Plain(factors) => (a, &**factors),
                Factors::Behind(factors) => {
                    made = factors.transform().apply(a);
                    (&made, factors.inner())
                }
            };
            match maximum_product_matching(factored) {
                Ok(m) => rcond_scaled(factored, factors, &m.row_scale, &m.col_scale),
                Err(_) => factors.rcond(),
            }
        })
    }
}

/// # Errors
/// [`Error::Singular`] naming a column that no matching of rows and columns covers.
pub(crate) fn matching<T: Scalar>(a: &Csr<T>) -> Result<Matching<T::Real>, Error> {
    maximum_product_matching(a).map_err(|e| match e {
        MatchingError::Singular(deficiency) => Error::Singular(Singularity {
            kind: SingularKind::Structural,
            column: deficiency.unmatched_cols[0] as usize,
            block: None,
        }),
        MatchingError::Input(input) => Error::Input(input),
    })
}

/// The transform that `reorder` asks for, and which reordering that is when it was left to the method.
pub(crate) fn transform<T: Scalar>(
    a: &Csr<T>,
    method: Method,
    reorder: Reorder,
    notes: &mut Vec<String>,
) -> Result<(Transform<T>, Reorder), Error> {
    let n = a.nrows();
    let matched = || -> Result<Transform<T>, Error> {
        let m = matching(a)?;
        Ok(Transform {
            rows: m.rows,
            cols: Permutation::identity(n),
            scaling: Some(Scaling { rows: m.row_scale, cols: m.col_scale }),
        })
    };
    Ok(match reorder {
        Reorder::None => (Transform::identity(n), Reorder::None),
        Reorder::Rcm => (Transform::symmetric(rcm(a)?), Reorder::Rcm),
        Reorder::Spectral => (Transform::symmetric(spectral(a)?), Reorder::Spectral),
        Reorder::Matching => (matched()?, Reorder::Matching),
        Reorder::MatchingRcm => {
            let first = matched()?;
            let p = rcm(&first.apply(a))?;
            (first.then(&p), Reorder::MatchingRcm)
        }
        // A named method with the order left open: the cheaper of the given and the RCM order.
        Reorder::Auto => {
            let best = plan(a, Reorder::Auto, &Blocks::Detect)?;
            let alike = |c: &&Candidate| family(c.method) == family(method);
            let chosen = best.candidates.iter().find(alike).map_or(Reorder::None, |c| c.reorder);
            match best.rcm {
                Some(p) if chosen == Reorder::Rcm => {
                    notes.push("the rcm order is cheaper than the given one".into());
                    (Transform::symmetric(p), Reorder::Rcm)
                }
                _ => (Transform::identity(n), Reorder::None),
            }
        }
    })
}

/// The method whose counted cost stands for all methods on the same structure.
#[allow(clippy::match_same_arms)] // a line a structure
fn family(method: Method) -> Method {
    match method {
        Method::Thomas => Method::TridiagonalLu,
        Method::DiagonalPivoting | Method::CyclicReduction | Method::Pcr => Method::TridiagonalLu,
        Method::GSpike | Method::SpikeLu | Method::SpikeDiagonalPivoting => Method::TridiagonalLu,
        Method::BandLuNoPivot | Method::BandCholesky | Method::Spike | Method::SpikeTruncated => Method::BandLu,
        Method::BlockLuAcross | Method::BlockCholesky | Method::BlockRbt => Method::BlockLu,
        Method::BlockCyclicReduction => Method::BlockLu,
        other => other,
    }
}

/// Factors A behind `transform` by one method. What fails in single precision is factored in that of the matrix.
pub(crate) fn factor<T: Scalar>(
    a: &Csr<T>,
    method: Method,
    transform: (Transform<T>, Reorder),
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    // Twice the precision of a rounded matrix would be that of another one.
    if options.precision == Precision::Working || method == Method::DenseLuDoubled {
        let working = SolveOptions { precision: Precision::Working, ..options.clone() };
        return factor_once(a, method, transform, &working, monitor);
    }
    match factor_once(a, method, transform.clone(), options, monitor) {
        Err(failure @ (Error::Singular(_) | Error::Input(_) | Error::Factor(FactorError::Breakdown { .. }))) => {
            let working = SolveOptions { precision: Precision::Working, ..options.clone() };
            let mut made = factor_once(a, method, transform, &working, monitor)?;
            made.notes.push(format!("in single precision {failure}; factored in {} instead", T::KIND));
            Ok(made)
        }
        result => result,
    }
}

fn factor_once<T: Scalar>(
    a: &Csr<T>,
    method: Method,
    (transform, reorder): (Transform<T>, Reorder),
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    let scaling = if transform.scaling.is_none() { equilibrated::scaling(a, method) } else { None };
    let equilibrated = scaling.is_some();
    let transform = if equilibrated { Transform { scaling, ..transform } } else { transform };
    let permuted;
    let work = if transform.is_identity() {
        a
    } else {
        permuted = transform.apply(a);
        &permuted
    };
    let made = in_precision(work, method, options, transform.keeps_order(), monitor).map_err(|e| match e {
        // The place is told in the columns of A, not of its reordered form.
        Error::Singular(place) => {
            Error::Singular(Singularity { column: transform.cols.order()[place.column] as usize, ..place })
        }
        other => other,
    })?;
    let mut made = Factored { reorder, ..made };
    if equilibrated {
        made.notes.push("rows and columns were scaled by powers of two to one size".into());
    }
    made.factors = match made.factors {
        Factors::Plain(factors) if !transform.is_identity() => {
            Factors::Behind(Reordered::new(factors, transform, a.norm_one().to_f64()))
        }
        factors => factors,
    };
    Ok(made)
}

/// [`factor_in_order`] in the precision asked for.
fn in_precision<T: Scalar>(
    work: &Csr<T>,
    method: Method,
    options: &SolveOptions,
    identity: bool,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    fn lowered<T: Scalar, L: Scalar>(made: Factored<L>, exponent: i32) -> Factored<T> {
        let Factors::Plain(factors) = made.factors else { unreachable!("factored as it stands") };
        let factors = Factors::Plain(Box::new(Lowered::new(factors, exponent)));
        Factored {
            notes: made.notes,
            blocks: made.blocks,
            precision: Precision::Single,
            ..Factored::new(factors, made.method, made.matrix_bytes)
        }
    }
    if options.precision == Precision::Working || T::KIND == ScalarKind::F32 || T::KIND == ScalarKind::C32 {
        return factor_in_order(work, method, options, identity, monitor);
    }
    // By the constant alone, so that nothing is compiled for complex numbers.
    if T::IS_REAL && IN_SINGLE.contains(&method) {
        let a = Rounded::<f32>::new(work)?;
        return Ok(lowered(in_single(a.matrix(), method, options, identity, monitor)?, a.exponent()));
    }
    // A candidate of `auto`: a named one was refused.
    let mut made = factor_in_order(work, method, options, identity, monitor)?;
    made.notes.push(format!("{method} factors in {}: {}", T::KIND, in_single_there_are()));
    Ok(made)
}

/// The methods whose factors gain by single precision, and which are compiled for it.
const IN_SINGLE: [Method; 5] = [Method::BlockLu, Method::BandLu, Method::SparseLu, Method::DenseLu, Method::Rbt];

fn in_single_there_are() -> String {
    format!("in single precision there are {}, for real matrices", IN_SINGLE.map(Method::name).join(", "))
}

/// # Errors
/// [`Error::Usage`] where factors in single precision are asked for of a method that has none for matrices in double.
pub(crate) fn check_precision<T: Scalar>(options: &SolveOptions) -> Result<(), Error> {
    let method = options.method;
    let there = match T::KIND {
        ScalarKind::F64 => method == Method::Auto || IN_SINGLE.contains(&method),
        ScalarKind::C64 => false,
        ScalarKind::F32 | ScalarKind::C32 => true,
    };
    if options.precision == Precision::Working || there {
        return Ok(());
    }
    Err(Error::Usage { message: format!("{method} has no factors in single precision; {}", in_single_there_are()) })
}

/// The matrix, which was rounded, factored as it stands by one of [`IN_SINGLE`].
fn in_single(
    work: &Csr<f32>,
    method: Method,
    options: &SolveOptions,
    identity: bool,
    monitor: &mut dyn Monitor,
) -> Result<Factored<f32>, Error> {
    ask_for(work, method)?;
    let (mut summary, mut notes) = (None, Vec::new());
    let (factors, bytes) = match method {
        Method::BlockLu => block_lu(work, options, identity, monitor, &mut summary)?,
        Method::BandLu => band_lu(work, monitor)?,
        Method::SparseLu => sparse_lu(work, monitor)?,
        Method::DenseLu => dense_lu(work, monitor)?,
        Method::Rbt => rbt(work, options, monitor, &mut notes)?,
        other => unreachable!("{other} is not among those in single precision"),
    };
    Ok(Factored { notes, blocks: summary, ..Factored::new(Factors::Plain(factors), method, bytes) })
}

/// Factors, and the bytes of the matrix in the format they are made from.
type Made<T> = (Box<dyn Factorization<T>>, usize);

fn block_lu<T: Scalar>(
    work: &Csr<T>,
    options: &SolveOptions,
    identity: bool,
    monitor: &mut dyn Monitor,
    summary: &mut Option<BlockSummary>,
) -> Result<Made<T>, Error> {
    let partition = partition(work, &options.blocks, identity)?;
    *summary = Some(BlockSummary::of(&partition));
    ask_for_blocks::<T>(&partition, Method::BlockLu)?;
    let layout = BlockLu::<T>::layout(&partition);
    let hybrid = BlockTridiagonal::from_csr(work, partition, layout)?;
    Ok((Box::new(BlockLu::with_monitor(&hybrid, monitor)?), hybrid.bytes()))
}

fn band_lu<T: Scalar>(work: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
    let band = Band::from_csr(work)?;
    Ok((Box::new(BandLu::with_monitor(&band, monitor)?), band.bytes()))
}

fn sparse_lu<T: Scalar>(work: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
    Ok((Box::new(SparseLu::with_monitor(work, monitor)?), work.bytes()))
}

fn dense_lu<T: Scalar>(work: &Csr<T>, monitor: &mut dyn Monitor) -> Result<Made<T>, Error> {
    let dense = dense(work, Method::DenseLu)?;
    Ok((Box::new(PartialPivotLu::with_monitor(dense.as_ref(), monitor)?), dense_bytes(work)))
}

fn rbt<T: Scalar>(
    work: &Csr<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
    notes: &mut Vec<String>,
) -> Result<Made<T>, Error> {
    let dense = dense(work, Method::Rbt)?;
    let butterflies = RbtOptions { seed: options.seed, ..RbtOptions::default() };
    let (rbt, reason): (Box<dyn Factorization<T>>, _) = match options.device {
        DeviceChoice::Gpu(ordinal) => gpu::rbt(&dense, ordinal, butterflies)?,
        DeviceChoice::Cpu | DeviceChoice::Auto => {
            let rbt = Rbt::with_options(dense.as_ref(), butterflies, monitor)?;
            let reason = rbt.fallback();
            (Box::new(rbt), reason)
        }
    };
    let place = if matches!(options.device, DeviceChoice::Gpu(_)) { " on the processor" } else { "" };
    notes.extend(reason.map(|why| format!("rbt factored with partial pivoting{place} instead: {why}")));
    Ok((rbt, dense_bytes(work)))
}

/// Factors the matrix as it stands.
#[inline(never)]
pub(crate) fn factor_in_order<T: Scalar>(
    work: &Csr<T>,
    method: Method,
    options: &SolveOptions,
    identity: bool,
    monitor: &mut dyn Monitor,
) -> Result<Factored<T>, Error> {
    if matches!(method, Method::BandCholesky | Method::BlockCholesky) {
        check_hermitian(work)?;
    }
    ask_for(work, method)?;
    let mut summary = None;
    let mut notes = Vec::new();
    let (factors, matrix_bytes): (Box<dyn Factorization<T>>, usize) = match method {
        Method::Thomas => {
            let t = tridiagonal(work, method)?;
            (Box::new(Thomas::new(&t)?), t.bytes())
        }
        Method::TridiagonalLu => {
            let t = tridiagonal(work, method)?;
            (Box::new(TridiagonalLu::new(&t)?), t.bytes())
        }
        Method::DiagonalPivoting => {
            let t = tridiagonal(work, method)?;
            (Box::new(DiagonalPivoting::new(&t)?), t.bytes())
        }
        Method::CyclicReduction => {
            let t = tridiagonal(work, method)?;
            (Box::new(CyclicReduction::with_monitor(&t, Switch::Never, monitor)?), t.bytes())
        }
        Method::Pcr => {
            let t = tridiagonal(work, method)?;
            (Box::new(ParallelCyclicReduction::with_monitor(&t, monitor)?), t.bytes())
        }
        Method::PeriodicLu => {
            let a = Cyclic::from_csr(work).map_err(|e| wrong_structure(e, method, "periodic tridiagonal"))?;
            (Box::new(PeriodicTridiagonal::with_monitor(&a, monitor)?), a.bytes())
        }
        Method::BandLu => band_lu(work, monitor)?,
        Method::BandLuNoPivot => {
            let band = Band::from_csr(work)?;
            (Box::new(BandLuNoPivot::with_monitor(&band, None, monitor)?), band.bytes())
        }
        Method::BandCholesky => {
            let band = Band::from_csr(work)?;
            (Box::new(BandCholesky::with_monitor(&band, monitor)?), band.bytes())
        }
        Method::BlockLu => block_lu(work, options, identity, monitor, &mut summary)?,
        Method::BlockLuAcross => {
            let hybrid = blocks(work, method, options, identity, &mut summary)?;
            (Box::new(BlockLuAcross::with_monitor(&hybrid, monitor)?), hybrid.bytes())
        }
        Method::BlockCholesky => {
            let hybrid = blocks(work, method, options, identity, &mut summary)?;
            (Box::new(BlockCholesky::with_monitor(&hybrid, monitor)?), hybrid.bytes())
        }
        Method::BlockRbt => {
            let hybrid = blocks(work, method, options, identity, &mut summary)?;
            let butterflies = RbtOptions { seed: options.seed, ..RbtOptions::default() };
            let rbt = BlockRbt::with_options(&hybrid, butterflies, monitor)?;
            if let Some(reason) = rbt.fallback() {
                notes.push(format!("block-rbt factored with pivoting across blocks instead: {reason}"));
            }
            (Box::new(rbt), hybrid.bytes())
        }
        Method::BlockCyclicReduction => {
            let hybrid = blocks(work, method, options, identity, &mut summary)?;
            (Box::new(BlockCyclicReduction::with_monitor(&hybrid, monitor)?), hybrid.bytes())
        }
        Method::GSpike | Method::SpikeLu | Method::SpikeDiagonalPivoting => {
            let t = tridiagonal(work, method)?;
            let solver = match method {
                Method::SpikeLu => TridiagonalSolver::Lu,
                Method::SpikeDiagonalPivoting => TridiagonalSolver::DiagonalPivoting,
                _ => TridiagonalSolver::Givens,
            };
            let partitions = options.partitions.map_or(Partitions::Auto, Partitions::Even);
            let spike = TridiagonalSpike::with_options(&t, &partitions, solver, monitor)?;
            notes.push(partition_note(&spike.partitions().collect::<Vec<_>>()));
            (Box::new(spike), t.bytes())
        }
        Method::Spike | Method::SpikeTruncated => {
            let (spike, bytes) = spike(work, method, options, identity, monitor, &mut summary)?;
            notes.extend(spike_notes(&spike.report()));
            (Box::new(spike), bytes)
        }
        Method::DenseLu => dense_lu(work, monitor)?,
        Method::DenseLuDoubled => {
            let dense = dense(work, method)?;
            (Box::new(DoubledLu::with_monitor(dense.as_ref(), monitor)?), dense_bytes(work))
        }
        Method::Genp => {
            let dense = dense(work, method)?;
            (Box::new(NoPivotLu::with_monitor(dense.as_ref(), monitor)?), dense_bytes(work))
        }
        Method::Rbt => rbt(work, options, monitor, &mut notes)?,
        Method::SparseLu => sparse_lu(work, monitor)?,
        other => unreachable!("{other} is resolved to a factorization, or iterates"),
    };
    Ok(Factored { notes, blocks: summary, ..Factored::new(Factors::Plain(factors), method, matrix_bytes) })
}

/// Before a band or blocks are made of A, which may be far larger.
///
/// # Errors
/// [`InputError::InvalidStructure`] with the entry farthest from its mirror, unless rounding can have moved it there.
fn check_hermitian<T: Scalar>(a: &Csr<T>) -> Result<(), Error> {
    match asymmetry(a) {
        Some(worst) if worst.relative > 64.0 * unit_roundoff::<T>() => Err(InputError::InvalidStructure {
            what: "matrix",
            why: format!(
                "it is not Hermitian: row {}, column {} is {}, its mirror {}",
                worst.row, worst.col, worst.entry, worst.mirror
            ),
        }
        .into()),
        _ => Ok(()),
    }
}

/// SPIKE on given blocks, otherwise on the band.
fn spike<T: Scalar>(
    work: &Csr<T>,
    method: Method,
    options: &SolveOptions,
    identity: bool,
    monitor: &mut dyn Monitor,
    summary: &mut Option<BlockSummary>,
) -> Result<(Spike<T>, usize), Error> {
    let truncated = method == Method::SpikeTruncated;
    let chosen = SpikeOptions {
        partitions: options.partitions.map_or(Partitions::Auto, Partitions::Balanced),
        reduced: if truncated { ReducedSystem::truncated::<T>() } else { ReducedSystem::Recursive },
        ..SpikeOptions::default()
    };
    if options.blocks != Blocks::Detect {
        let hybrid = blocks(work, method, options, identity, summary)?;
        return Ok((Spike::blocks_with_monitor(&hybrid, &chosen, monitor)?, hybrid.bytes()));
    }
    let band = Band::from_csr(work)?;
    let spike = match (method, options.partitions) {
        // The polyalgorithm: its choice and reason are in the report.
        (Method::Spike, None) => Spike::auto(&band, rayon::current_num_threads())?,
        _ => Spike::band_with_monitor(&band, &chosen, monitor)?,
    };
    Ok((spike, band.bytes()))
}

/// What a reader of the report should know of the partitions.
pub(crate) fn spike_notes(report: &SpikeReport) -> Vec<String> {
    let mut notes = vec![partition_note(&report.partitions)];
    notes.extend(report.choice.as_ref().map(|choice| format!("spike: {}", choice.reason)));
    if report.dropped > 0.0 {
        notes.push(if report.dropped < 1.0 {
            format!("what the truncated reduced system dropped is at most {:.1e}", report.dropped)
        } else {
            "what the truncated reduced system dropped has no useful bound".into()
        });
    }
    if report.boosted_pivots > 0 {
        notes.push(format!("{} pivots were boosted", report.boosted_pivots));
    }
    notes
}

pub(crate) fn partition_note(sizes: &[usize]) -> String {
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
    format!("spike: {} partitions of {least} to {most} rows", sizes.len())
}

/// A in the blocks asked for, which `summary` describes.
pub(crate) fn blocks<T: Scalar>(
    work: &Csr<T>,
    method: Method,
    options: &SolveOptions,
    identity: bool,
    summary: &mut Option<BlockSummary>,
) -> Result<BlockTridiagonal<T>, Error> {
    let partition = partition(work, &options.blocks, identity)?;
    ask_for_blocks::<T>(&partition, method)?;
    *summary = Some(BlockSummary::of(&partition));
    Ok(BlockTridiagonal::from_csr(work, partition, HybridLayout::default())?)
}

pub(crate) fn tridiagonal<T: Scalar>(a: &Csr<T>, method: Method) -> Result<Tridiagonal<T>, Error> {
    Tridiagonal::from_csr(a).map_err(|e| wrong_structure(e, method, "tridiagonal"))
}

fn wrong_structure(e: InputError, method: Method, structure: &str) -> Error {
    match e {
        InputError::OutsideStructure { row, col, .. } => Error::Usage {
            message: format!(
                "{method} needs a {structure} matrix, but there is an entry at row {row}, column {col} (from 0); use band-lu or auto"
            ),
        },
        other => other.into(),
    }
}

/// A with all its zeros.
fn dense<T: Scalar>(a: &Csr<T>, method: Method) -> Result<Mat<T>, Error> {
    /// 8 GiB of f64.
    const MAX_VALUES: f64 = 1e9;
    let n = a.nrows();
    if (n as f64).powi(2) > MAX_VALUES {
        let message = format!("{method} stores all {n} × {n} values, more than the {MAX_VALUES:e} it may; use auto");
        return Err(Error::Usage { message });
    }
    Ok(a.to_dense())
}

fn dense_bytes<T: Scalar>(a: &Csr<T>) -> usize {
    a.nrows() * a.nrows() * size_of::<T>()
}

/// The partition asked for. Given blocks are those of the matrix as given, so they exclude a reordering.
pub(crate) fn partition<T: Scalar>(a: &Csr<T>, blocks: &Blocks, identity: bool) -> Result<Partition, Error> {
    if *blocks != Blocks::Detect && !identity {
        return Err(Error::Usage {
            message: "given blocks belong to the given order; use them with --reorder none".into(),
        });
    }
    match blocks {
        Blocks::Detect => Ok(natural_partition(a)?),
        Blocks::Uniform(k) => Ok(Partition::uniform(a.nrows(), *k)?),
        Blocks::Sizes(sizes) => {
            let partition = Partition::from_sizes(sizes.iter().copied())?;
            if partition.n() != a.nrows() {
                return Err(InputError::DimensionMismatch {
                    what: "sum of the block sizes",
                    expected: a.nrows(),
                    found: partition.n(),
                }
                .into());
            }
            Ok(partition)
        }
    }
}
