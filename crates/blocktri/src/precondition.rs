//! The preconditioner that the options ask for, made from A in the order of the method.

use std::sync::{Arc, Mutex, PoisonError};

use bt_direct::spike::Partitions;
use bt_direct::{FactorError, Place, Singularity, SparseLu};
use bt_formats::detect::{block_size, line_partition, natural_partition};
use bt_formats::{
    BlockTridiagonal, Csr, Error as InputError, HybridLayout, LinearOperator, Note, Partition, Rounded, Scalar,
    ScalarKind,
};
use bt_iter::{
    Arms, ArmsOptions, BandOrder, BandSpike, BandSpikeOptions, BandWidth, BlockForm, BlockPreconditioner, BlockSsorAi,
    Diagonal, DroppedFill, Factored, Ic0, Identity, IncompleteLu, Jacobi, LastFactors, LastSolver, MixedPrecision,
    Preconditioner, QuasiBlockTridiagonal, Schwarz, SsorAi, SsorAiMasked, Triangles, TriangularSolves, ic0, ilu0, iluk,
    ilut, ssor,
};

use crate::build::spike_notes;
use crate::error::Error;
use crate::gpu::rbt::rbt;
use crate::method::{Krylov, Precision};
use crate::names::names;
use crate::options::{Blocks, DeviceChoice, Reorder, SolveOptions};
use crate::partition::partition;
use crate::preconditioners::{CentralBand, Local, Precond};
use crate::ranges::check_precond;

/// A rounded, where the preconditioner is to be made in single precision.
pub(crate) type Single = Option<Rounded<f32>>;

/// A rounded, if that was asked for and is less than A has.
///
/// # Errors
/// [`Error::Usage`] for preconditioners that are not made in single precision; [`Error::Input`] naming a row or column that vanishes
/// in it.
pub(crate) fn single<T: Scalar>(a: &Csr<T>, given: &Krylov) -> Result<Single, Error> {
    if given.precision == Precision::Working || !matches!(T::KIND, ScalarKind::F64 | ScalarKind::C64) {
        return Ok(None);
    }
    if T::IS_REAL && given.precond.is_in_single() {
        return Ok(Some(Rounded::new(a)?));
    }
    let mut all = Precond::all();
    all.retain(Precond::is_in_single);
    let (asked, there) = (given.precond, names(&all, Precond::name));
    let message = format!("{asked} is not made in single precision; there are {there}, for real matrices");
    Err(Error::Usage { message })
}

/// A by the blocks of a block sweep.
pub(crate) struct Split<T: Scalar> {
    form: BlockForm,
    pub blocks: Arc<BlockTridiagonal<T>>,
    /// Entries that are not in the three block diagonals.
    pub outside: usize,
}

impl<T: Scalar> Split<T> {
    /// Of A in the order that `identity` says is the one given, if the preconditioner asked for sweeps over blocks.
    pub fn of(
        a: &Csr<T>,
        identity: bool,
        precond: Precond,
        blocks: &Blocks,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Self>, Error> {
        let Precond::Blocks(form) = precond else { return Ok(None) };
        let partition = sweep_blocks(a, identity, precond, blocks, notes)?;
        let (blocks, outside) = match BlockTridiagonal::from_csr(a, partition.clone(), HybridLayout::default()) {
            Ok(blocks) => (blocks, 0),
            Err(InputError::OutsideStructure { .. }) => {
                let quasi = QuasiBlockTridiagonal::new(a, partition, HybridLayout::default())?;
                let outside = quasi.nnz_remainder();
                (quasi.into_blocks(), outside)
            }
            Err(other) => return Err(other.into()),
        };
        Ok(Some(Self { form, blocks: Arc::new(blocks), outside }))
    }
}

/// The preconditioner asked for, in the precision of `single` or of A, and which it is. `identity`: A is in the order given; `split`: A
/// by the blocks that a sweep over them is for.
pub(crate) fn preconditioner<'a, T: Scalar>(
    a: &'a Csr<T>,
    split: Option<Split<T>>,
    single: &'a Single,
    identity: bool,
    given: &Krylov,
    options: &SolveOptions,
    notes: &mut Vec<Note>,
) -> Result<(Box<dyn Preconditioner<T> + 'a>, Precond), Error> {
    // By the constant alone, so that nothing is compiled for complex numbers.
    if T::IS_REAL
        && let Some(single) = single
    {
        notes.push(Note::SinglePreconditioner);
        let (made, precond) = in_single(single.matrix(), identity, given, options, notes)?;
        return Ok((Box::new(MixedPrecision::new(made, single.exponent())), precond));
    }
    if let Precond::SsorAi { omega, series, triangles: triangles @ Triangles::OfMatrix } = given.precond {
        return Ok((Box::new(SsorAi::with_options(a, omega, series, triangles)?), given.precond));
    }
    owned(a, split, identity, given, options, notes)
}

/// The preconditioner of a Krylov method, made from A in the order that it has and in its precision, and sentences on what was made. It owns
/// all that it reads: what `ssor-ai-free` would read from A is stored.
///
/// # Errors
/// [`Error::Usage`] for `block-reduced`, which is no preconditioner but another system; [`Error::Factor`] and [`Error::Input`] as the
/// preconditioners say.
///
/// # Example
/// ```
/// use blocktri::{Csr, Krylov, KrylovMethod, Precond, SolveOptions, faer::mat, precondition};
/// let a = Csr::from_dense(mat![[2.0, 1.0], [1.0, 4.0]].as_ref())?;
/// let given = Krylov::new(KrylovMethod::Cg, Precond::Jacobi);
/// let (mut m, _) = precondition(&a, &given, &SolveOptions::default())?;
/// let mut z = [0.0; 2];
/// m.apply(&[2.0, 2.0], &mut z);
/// assert_eq!(z, [1.0, 0.5]);
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn precondition<T: Scalar>(a: &Csr<T>, given: &Krylov, options: &SolveOptions) -> Result<Made<T>, Error> {
    check_precond(given.precond)?;
    a.check_square()?;
    a.check_finite()?;
    if given.precond == Precond::BlockReduced {
        let message = "block-reduced is a smaller system and no preconditioner: name it in a solve".into();
        return Err(Error::Usage { message });
    }
    let mut notes = Vec::new();
    let split = Split::of(a, true, given.precond, &options.blocks, &mut notes)?;
    let (made, _) = owned(a, split, true, given, options, &mut notes)?;
    Ok((made, notes))
}

/// A preconditioner, and sentences on what was made.
type Made<T> = (Box<dyn Preconditioner<T>>, Vec<Note>);

/// All that own what they read.
fn owned<T: Scalar>(
    a: &Csr<T>,
    split: Option<Split<T>>,
    identity: bool,
    given: &Krylov,
    options: &SolveOptions,
    notes: &mut Vec<Note>,
) -> Result<(Box<dyn Preconditioner<T>>, Precond), Error> {
    let made: Box<dyn Preconditioner<T>> = match given.precond {
        Precond::Auto => return Ok(jacobi_or_none(a, notes)),
        Precond::None => Box::new(Identity::new(a.nrows())),
        Precond::Jacobi => Box::new(Jacobi::new(a)?),
        Precond::Blocks(_) => block_sweep(split.expect("a sweep over blocks has A by them"), given.precond, notes)?,
        Precond::Ssor { omega, solves } => Box::new(ssor(a, omega)?.solved_by(solves)),
        Precond::SsorAi { omega, series, .. } => Box::new(SsorAi::stored(a, omega, series)?),
        Precond::SsorAiMasked { omega } => Box::new(SsorAiMasked::with_options(a, omega)?),
        Precond::BlockSsorAi { omega } => {
            let size = node_size(a, identity, given.precond, &options.blocks, notes)?;
            Box::new(BlockSsorAi::with_options(a, size, omega)?)
        }
        Precond::Ilu0 { .. } | Precond::Iluk { .. } | Precond::Ilut { .. } | Precond::Ic0 { .. } => {
            Box::new(incomplete(a, given.precond, notes)?)
        }
        Precond::Schwarz { .. } => Box::new(schwarz(a, given.precond, notes)?),
        Precond::Arms(arms) => Box::new(self::arms(a, arms, options.device, notes)?),
        Precond::Spike(band) => Box::new(band_spike(a, BandSpikeOptions::default(), band, given, options, notes)?),
        Precond::SpikeTruncated(band) => Box::new(band_spike(a, truncated(), band, given, options, notes)?),
        Precond::BlockReduced => unreachable!("not a preconditioner: krylov() goes another way"),
    };
    Ok((made, given.precond))
}

/// One of those that are made in single precision.
fn in_single<'a>(
    a: &'a Csr<f32>,
    identity: bool,
    given: &Krylov,
    options: &SolveOptions,
    notes: &mut Vec<Note>,
) -> Result<(Box<dyn Preconditioner<f32> + 'a>, Precond), Error> {
    let precond = given.precond;
    if let Some(split) = Split::of(a, identity, precond, &options.blocks, notes)? {
        return Ok((block_sweep(split, precond, notes)?, precond));
    }
    let made: Box<dyn Preconditioner<f32>> = match precond {
        Precond::Auto => return Ok(jacobi_or_none(a, notes)),
        Precond::None => Box::new(Identity::new(a.nrows())),
        Precond::Jacobi => Box::new(Jacobi::new(a)?),
        Precond::Schwarz { .. } => Box::new(schwarz(a, precond, notes)?),
        _ => Box::new(incomplete(a, precond, notes)?),
    };
    Ok((made, precond))
}

/// Incomplete LU and Cholesky factors, and what happened while they were made.
fn incomplete<T: Scalar>(a: &Csr<T>, precond: Precond, notes: &mut Vec<Note>) -> Result<IncompleteLu<T>, Error> {
    Ok(match precond {
        Precond::Ilu0 { fill, solves } => counted(ilu0(a, fill)?, solves, notes),
        Precond::Iluk { levels, solves } => counted(iluk(a, levels, DroppedFill::Forgotten)?, solves, notes),
        Precond::Ilut { options, solves } => counted(ilut(a, options)?, solves, notes),
        Precond::Ic0 { fill, solves } => shifted(ic0(a, fill)?, solves, notes),
        other => unreachable!("{other} has no incomplete factors"),
    })
}

fn jacobi_or_none<'a, T: Scalar>(a: &Csr<T>, notes: &mut Vec<Note>) -> (Box<dyn Preconditioner<T> + 'a>, Precond) {
    match Jacobi::new(a) {
        Ok(jacobi) => {
            notes.push(Note::JacobiSinceFull);
            (Box::new(jacobi), Precond::Jacobi)
        }
        Err(why) => {
            notes.push(Note::NoPreconditioner { why: why.to_string() });
            (Box::new(Identity::new(a.nrows())), Precond::None)
        }
    }
}

/// Largest block of the natural partition that is worth factoring as a dense one.
const LARGEST: usize = 512;
/// Blocks where the pattern has none.
const UNIFORM: usize = 64;

/// A sweep over the blocks.
fn block_sweep<T: Scalar>(
    split: Split<T>,
    precond: Precond,
    notes: &mut Vec<Note>,
) -> Result<Box<dyn Preconditioner<T>>, Error> {
    let Split { form, blocks: a, outside } = split;
    let blocks = a.n_blocks();
    let m = BlockPreconditioner::new(a, form).map_err(|e| singular_block(e, blocks, precond))?;
    if outside > 0 && form != BlockForm::Jacobi {
        notes.push(Note::LeftOutOfPreconditioner { name: m.name().to_owned(), entries: outside });
    }
    if m.pivoted_blocks() > 0 {
        notes.push(Note::InterchangedBlocks { blocks: m.pivoted_blocks() });
    }
    Ok(Box::new(m))
}

/// The blocks of a block sweep: those given, or lines, or the natural blocks; uniform ones where those are too large.
pub(crate) fn sweep_blocks<T: Scalar>(
    a: &Csr<T>,
    identity: bool,
    precond: Precond,
    blocks: &Blocks,
    notes: &mut Vec<Note>,
) -> Result<Partition, Error> {
    let partition = if *blocks == Blocks::Detect { detected(a)? } else { partition(a, blocks, identity)? };
    let ((least_rows, most_rows), blocks) = (partition.min_max_size(), partition.n_blocks());
    notes.push(Note::PreconditionerBlocks { name: precond.to_string(), blocks, least_rows, most_rows });
    Ok(partition)
}

/// Zeros in the places of natural blocks: up to so many, block compressed rows take no more bytes than compressed rows.
const ZERO_SHARE: f64 = 0.25;

/// Rows of the blocks of `block-ssor-ai2`: all as many as given, or those of the nodes that A seems to be made of.
pub(crate) fn node_size<T: Scalar>(
    a: &Csr<T>,
    identity: bool,
    precond: Precond,
    blocks: &Blocks,
    notes: &mut Vec<Note>,
) -> Result<usize, Error> {
    let size = if *blocks == Blocks::Detect {
        block_size(a, ZERO_SHARE)
    } else {
        let (min, max) = partition(a, blocks, identity)?.min_max_size();
        if min != max {
            let message = format!(
                "{precond} needs blocks of one size that divides the {} rows, not of {min} to {max}",
                a.nrows()
            );
            return Err(Error::Usage { message });
        }
        max
    };
    notes.push(Note::PreconditionerNodes { name: precond.to_string(), blocks: a.nrows() / size.max(1), rows: size });
    Ok(size)
}

/// What a singular block out of several means: A itself may be regular.
pub(crate) fn singular_block(error: FactorError, blocks: usize, precond: Precond) -> FactorError {
    match error {
        FactorError::Singular(Singularity { block: Some(block), .. }) if blocks > 1 => {
            let place = match precond {
                Precond::Schwarz { .. } => Place::Partition(block),
                _ => Place::Block(block),
            };
            let reason = format!("diagonal block {block} (from 0) is singular; use other blocks, or ilut");
            FactorError::breakdown(precond.name(), place, reason)
        }
        other => other,
    }
}

/// Lines, natural blocks of a moderate size, or uniform ones.
fn detected<T: Scalar>(a: &Csr<T>) -> Result<Partition, Error> {
    if let Some(lines) = line_partition(a)? {
        return Ok(lines);
    }
    let natural = natural_partition(a)?;
    Ok(if natural.min_max_size().1 <= LARGEST { natural } else { Partition::uniform(a.nrows(), UNIFORM)? })
}

/// Subdomains and partitions where no number is given: it must not depend on the machine.
const PARTS: usize = 4;

/// Subdomains of contiguous rows, four unless told otherwise.
fn schwarz<T: Scalar>(a: &Csr<T>, precond: Precond, notes: &mut Vec<Note>) -> Result<Schwarz<T>, Error> {
    let Precond::Schwarz { values, layers, subdomains, local } = precond else {
        unreachable!("{precond} has no subdomains")
    };
    let n = a.nrows();
    let parts = subdomains.unwrap_or(PARTS).clamp(1, n.max(1));
    // Sizes that differ by one row at most.
    let partition = Partition::from_sizes((0..parts).map(|i| (i + 1) * n / parts - i * n / parts))?;
    let mut replaced = 0;
    let m = Schwarz::new(a, &partition, layers, values, |part| -> Result<Box<dyn Preconditioner<T>>, _> {
        let factors = match local {
            Local::Ilu0 => ilu0(part, DroppedFill::Forgotten)?,
            Local::Iluk(levels) => iluk(part, levels, DroppedFill::Forgotten)?,
            Local::Ilut(options) => ilut(part, options)?,
            Local::Ic0 => ic0(part, DroppedFill::Forgotten)?.factors,
            Local::Direct => return Ok(Box::new(Factored::new(SparseLu::new(part)?))),
        };
        replaced += factors.replaced_pivots();
        Ok(Box::new(factors))
    })
    .map_err(|e| singular_block(e, parts, precond))?;
    let (least_rows, most_rows) = m.min_max_rows();
    notes.push(Note::PreconditionerSubdomains {
        name: m.name().to_owned(),
        subdomains: parts,
        least_rows,
        most_rows,
        overlap: layers,
        local: local.name(),
    });
    if replaced > 0 {
        notes.push(Note::ReplacedPivots { of: "the subdomains".to_owned(), pivots: replaced });
    }
    Ok(m)
}

/// ARMS, and what became of its levels. Butterflies of the last level may be on a device.
fn arms<T: Scalar>(
    a: &Csr<T>,
    options: ArmsOptions,
    device: DeviceChoice,
    notes: &mut Vec<Note>,
) -> Result<Arms<T>, Error> {
    let m = match (device, options.last) {
        (DeviceChoice::Gpu(ordinal), LastSolver::Butterflies(butterflies)) => {
            // What is no error of a factorization goes round it.
            let failure = Arc::new(Mutex::new(None));
            let noted = Arc::clone(&failure);
            let factors: LastFactors<T> = Box::new(move |s| {
                rbt(s, ordinal, butterflies).map_err(|e| match e {
                    Error::Factor(e) => e,
                    other => {
                        let reason = other.to_string();
                        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(other);
                        FactorError::Failed { method: "rbt", reason }
                    }
                })
            });
            Arms::with_last(a, options, factors).map_err(|e| {
                failure.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Error::Factor(e))
            })?
        }
        _ => Arms::with_options(a, options)?,
    };
    let (levels, last) = (m.levels(), m.last_level());
    let sizes: Vec<_> = levels.iter().map(|l| l.n).chain([last.n]).map(|n| n.to_string()).collect();
    notes.push(Note::PreconditionerLevels {
        name: m.name().to_owned(),
        entries: m.nnz(),
        rows: sizes.join(", "),
        last_entries: last.nnz,
        last: last.method,
    });
    if m.is_matched() {
        notes.push(Note::RowsMatched);
    }
    let rejected: usize = levels.iter().map(|l| l.rejected).sum();
    if rejected > 0 {
        notes.push(Note::WentToNextLevel { unknowns: rejected });
    }
    if last.n > options.dense_limit && options.last != LastSolver::Ilut {
        notes.push(Note::LastLevelByIlut { most_rows: options.dense_limit });
    }
    if let Some(reason) = last.fallback {
        let place = if device.is_gpu() { " on the processor" } else { "" };
        notes.push(Note::LastLevelPivoted { place, why: reason.to_string() });
    }
    if last.shift > 0.0 {
        notes.push(Note::LastLevelShifted { shift: last.shift });
    }
    if last.replaced_pivots > 0 {
        notes.push(Note::ReplacedPivots { of: "the last level".to_owned(), pivots: last.replaced_pivots });
    }
    Ok(m)
}

/// Four partitions: with two nothing is truncated.
fn truncated() -> BandSpikeOptions {
    let mut chosen = BandSpikeOptions::truncated();
    chosen.spike.partitions = Partitions::Balanced(PARTS);
    chosen
}

/// SPIKE on a band. Where an order was asked for, A is in it already; a matching would make M unsymmetric for `cg`.
fn band_spike<T: Scalar>(
    a: &Csr<T>,
    mut chosen: BandSpikeOptions,
    band: CentralBand,
    given: &Krylov,
    options: &SolveOptions,
    notes: &mut Vec<Note>,
) -> Result<BandSpike<T>, Error> {
    if options.reorder != Reorder::Auto {
        chosen.order = BandOrder::Given;
    }
    let symmetric = given.method.is_symmetric();
    if symmetric || matches!(options.reorder, Reorder::None | Reorder::Rcm | Reorder::Spectral) {
        chosen.diagonal = Diagonal::Given;
    }
    if let Some(k) = band.bandwidth {
        chosen.width = BandWidth::Half(k);
    }
    if let Some(p) = band.partitions {
        chosen.spike.partitions = Partitions::Balanced(p);
    }
    let m = BandSpike::with_options(a, &chosen)?;
    let report = m.report();
    let matched = if chosen.diagonal == Diagonal::Matched { "matched and scaled, " } else { "" };
    notes.push(Note::PreconditionerBand {
        name: m.name().to_owned(),
        kl: report.kl,
        ku: report.ku,
        matched,
        order: report.order.name(),
        left_out: report.left_out,
    });
    notes.extend(report.replaced.clone().map(|why| Note::WithoutInterchanges { why }));
    notes.extend(spike_notes(&report.spike));
    Ok(m)
}

/// Incomplete factors, and what happened while they were made.
fn counted<T: Scalar>(m: IncompleteLu<T>, solves: TriangularSolves, notes: &mut Vec<Note>) -> IncompleteLu<T> {
    incomplete_notes(m.name(), m.nnz(), m.replaced_pivots(), || m.levels(), solves, notes);
    m.solved_by(solves)
}

/// Size of incomplete factors, pivots replaced, and sweeps in place of solves on their levels.
pub(crate) fn incomplete_notes(
    name: &str,
    nnz: usize,
    replaced: usize,
    levels: impl FnOnce() -> (usize, usize),
    solves: TriangularSolves,
    notes: &mut Vec<Note>,
) {
    notes.push(Note::PreconditionerEntries { name: name.to_owned(), entries: nnz });
    if replaced > 0 {
        notes.push(Note::ReplacedPivots { of: name.to_owned(), pivots: replaced });
    }
    if let TriangularSolves::Sweeps(sweeps) = solves {
        let (lower_levels, upper_levels) = levels();
        notes.push(Note::SweepsForSolves { sweeps, lower_levels, upper_levels });
    }
}

/// Incomplete Cholesky factors, and the shift they took.
fn shifted<T: Scalar>(m: Ic0<T>, solves: TriangularSolves, notes: &mut Vec<Note>) -> IncompleteLu<T> {
    shift_note(m.factors.name(), m.breakdowns, m.shift, notes);
    counted(m.factors, solves, notes)
}

/// The shift that incomplete Cholesky factors took, if any.
pub(crate) fn shift_note(name: &str, breakdowns: usize, shift: f64, notes: &mut Vec<Note>) {
    if breakdowns > 0 {
        notes.push(Note::ShiftedDiagonal { name: name.to_owned(), breakdowns, shift });
    }
}
