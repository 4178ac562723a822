//! Krylov methods on the device, and their preconditioners.

use std::time::Instant;

use bt_formats::{Csr, Monitor, Note, Scalar, SolveReport, StopCriterion};
use bt_iter::StopRule;
use bt_kernels::{
    Device, DeviceBiCgStab, DeviceCg, DeviceError, DeviceGmres, DevicePreconditioner, DeviceScalar, InverseFacts,
    Place, Schedule, SearchFacts, Shares, SplitCg,
};
use faer::{MatMut, MatRef};

use crate::check::check_hermitian_for;
use crate::columns::{columns, columns_together, ordered};
use crate::error::Error;
use crate::gpu::device::before;
use crate::method::{self, KrylovMethod};
use crate::options::{Blocks, SolveOptions};
use crate::precondition::{incomplete_notes, node_size, shift_note, singular_block, sweep_blocks};
use crate::preconditioners::Precond;
use crate::refining::Inner;
use crate::solution::Solution;

/// A solve of one right-hand side by a Krylov method.
type Solve<'a, T> = Box<dyn FnMut(&[T], &mut [T], &mut dyn Monitor) -> Result<SolveReport, Error> + 'a>;

/// The same for the columns of B and X.
type SolveMany<'a, T> =
    Box<dyn FnMut(MatRef<'_, T>, MatMut<'_, T>, &mut dyn Monitor) -> Result<Vec<SolveReport>, Error> + 'a>;

/// How a method takes several right-hand sides.
enum Columns<'a, T> {
    OneByOne(Solve<'a, T>),
    /// So many at a time.
    InStep(SolveMany<'a, T>, usize),
}

/// A Krylov method on the device.
struct Krylov<'a, T> {
    columns: Columns<'a, T>,
    facts: InverseFacts,
    persistent: bool,
    /// Rows of a block where products are by blocks.
    block_rows: Option<usize>,
}

/// CG, BiCGSTAB, GMRES and FGMRES.
pub(super) fn krylov<T: DeviceScalar>(
    devices: &[Device],
    a: &Csr<T>,
    b: MatRef<'_, T>,
    given: &method::Krylov,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    let mut notes = Vec::new();
    if given.method.is_symmetric() {
        check_hermitian_for(a, given.method, &mut notes)?;
    }
    let (work, transform, reorder) = ordered(a, options, &mut notes)?;
    let reorder_time = start.elapsed();
    let stop = &given.stop;
    // All of them have the same three calls.
    macro_rules! on_device {
        ($made:expr) => {{
            let mut made = $made?;
            let (facts, persistent, block_rows) = (made.preconditioner(), made.is_persistent(), made.block_rows());
            let columns = Columns::OneByOne(Box::new(move |b, x, m| Ok(made.solve(b, x, stop, m)?)));
            Ok(Krylov { columns, facts, persistent, block_rows })
        }};
    }
    let new = |precond: &DevicePreconditioner| -> Result<Krylov<'_, T>, DeviceError> {
        let (device, work, schedule) = (&devices[0], &work, Schedule::Auto);
        match given.method {
            KrylovMethod::Cg if devices.len() > 1 => {
                let places: Vec<Place> = devices.iter().cloned().map(Place::Device).collect();
                let mut made = SplitCg::new(&places, &Shares::Even, work, precond)?;
                let facts = made.preconditioner();
                let columns = Columns::OneByOne(Box::new(move |b, x, m| Ok(made.solve(b, x, stop, m)?)));
                Ok(Krylov { columns, facts, persistent: false, block_rows: None })
            }
            KrylovMethod::Cg => on_device!(DeviceCg::new(device, work, precond, schedule)),
            KrylovMethod::Gmres { restart, .. } => {
                in_step(DeviceGmres::new(device, work, precond, restart, schedule)?, b.ncols(), stop)
            }
            KrylovMethod::Fgmres { restart, .. } => {
                in_step(DeviceGmres::flexible(device, work, precond, restart, schedule)?, b.ncols(), stop)
            }
            _ => on_device!(DeviceBiCgStab::new(device, work, precond, schedule)),
        }
    };
    let wanted = wanted(&work, transform.is_identity(), given, &options.blocks, &mut notes)?;
    let (mut made, precond) = match (new(&wanted), given.precond) {
        (Ok(made), Precond::Auto) => (made, Precond::Jacobi),
        (Err(DeviceError::Factor(why)), Precond::Auto) => {
            notes.push(Note::NoPreconditioner { why: why.to_string() });
            (new(&DevicePreconditioner::Identity)?, Precond::None)
        }
        (Err(DeviceError::Factor(why)), _) => {
            let blocks = if let DevicePreconditioner::BlockJacobi(p) = &wanted { p.n_blocks() } else { 1 };
            return Err(transform.in_given_order(singular_block(why, blocks, given.precond).into()));
        }
        (made, precond) => (made?, precond),
    };
    tell(made.facts, precond, &mut notes);
    let setup = start.elapsed().saturating_sub(reorder_time);
    if made.persistent {
        notes.push(Note::OneLaunch { rows: "rows", steps: "iterations" });
    }
    notes.extend(made.block_rows.map(|rows| Note::ProductsByBlocks { rows }));
    let rule = (StopRule::Residual, stop);
    let (x, mut report) = match &mut made.columns {
        Columns::OneByOne(solve) => columns(a, b, &transform, rule, monitor, &mut **solve)?,
        Columns::InStep(solve, group) => {
            if *group > 1 {
                notes.push(Note::RightHandSidesInStep { columns: b.ncols(), at_a_time: *group });
            }
            let solving = Instant::now();
            let (x, mut report) = columns_together(a, b, &transform, rule, |b, x| solve(b, x, monitor))?;
            // Of all of them at once.
            report.times.solve = solving.elapsed();
            (x, report)
        }
    };
    before(&mut report, reorder_time, setup, notes);
    Ok(Solution { reorder, precond, device: options.device, ..Solution::of(x, report, options.method.clone()) })
}

/// CG or BiCGSTAB with M = diag(A), as `auto` takes it.
pub(super) fn inner<'a, T: DeviceScalar>(
    device: &Device,
    a: &'a Csr<T>,
    method: KrylovMethod,
) -> Result<Inner<'a, T>, Error> {
    macro_rules! on_device {
        ($made:expr) => {{
            let mut made = $made?;
            let bytes = made.bytes();
            Inner { bytes, solve: Box::new(move |r, d, stop, monitor| Ok(made.solve(r, d, stop, monitor)?)) }
        }};
    }
    let (precond, schedule) = (&DevicePreconditioner::Jacobi, Schedule::Auto);
    Ok(if method == KrylovMethod::Cg {
        on_device!(DeviceCg::new(device, a, precond, schedule))
    } else {
        on_device!(DeviceBiCgStab::new(device, a, precond, schedule))
    })
}

/// GMRES for so many right-hand sides.
fn in_step<'a, T: DeviceScalar>(
    mut made: DeviceGmres<'a, T>,
    nrhs: usize,
    stop: &'a StopCriterion,
) -> Result<Krylov<'a, T>, DeviceError> {
    let group = made.reserve(nrhs)?;
    let (facts, persistent, block_rows) = (made.preconditioner(), made.is_persistent_for(group), made.block_rows());
    let columns = if nrhs > 1 {
        Columns::InStep(Box::new(move |b, x, m| Ok(made.solve_many(b, x, stop, m)?)), group)
    } else {
        Columns::OneByOne(Box::new(move |b, x, m| Ok(made.solve(b, x, stop, m)?)))
    };
    Ok(Krylov { columns, facts, persistent, block_rows })
}

/// The preconditioner that the options ask for.
fn wanted<T: Scalar>(
    work: &Csr<T>,
    identity: bool,
    given: &method::Krylov,
    blocks: &Blocks,
    notes: &mut Vec<Note>,
) -> Result<DevicePreconditioner, Error> {
    let precond = given.precond;
    Ok(match precond {
        Precond::None => DevicePreconditioner::Identity,
        Precond::Blocks(_) => DevicePreconditioner::BlockJacobi(sweep_blocks(work, identity, precond, blocks, notes)?),
        Precond::Ilu0 { solves, .. } => DevicePreconditioner::Ilu0(solves),
        Precond::Ic0 { solves, .. } => DevicePreconditioner::Ic0(solves),
        Precond::Ilut { options, solves } if given.method.is_symmetric() => {
            notes.push(Note::SymmetricIlut);
            DevicePreconditioner::Ict(options, solves)
        }
        Precond::Ilut { options, solves } => DevicePreconditioner::Ilut(options, solves),
        Precond::SsorAi { omega, series, triangles } => DevicePreconditioner::SsorAi { omega, series, triangles },
        Precond::SsorAiMasked { omega } => DevicePreconditioner::SsorAiMasked { omega },
        Precond::BlockSsorAi { omega } => {
            let block_size = node_size(work, identity, precond, blocks, notes)?;
            DevicePreconditioner::BlockSsorAi { omega, block_size }
        }
        _ => DevicePreconditioner::Jacobi,
    })
}

/// What the preconditioner is made of, as on the processor.
fn tell(facts: InverseFacts, precond: Precond, notes: &mut Vec<Note>) {
    let (Precond::Ilu0 { solves, .. } | Precond::Ic0 { solves, .. } | Precond::Ilut { solves, .. }) = precond else {
        return;
    };
    if let Some(levels) = facts.levels {
        shift_note(precond.name(), facts.breakdowns, facts.shift, notes);
        incomplete_notes(precond.name(), facts.nnz, facts.replaced_pivots, || levels, solves, notes);
    }
    if let Some(SearchFacts { steps, left_over: [missed, missed_inside] }) = facts.search {
        notes.push(Note::PatternFound { steps, missed, missed_inside });
    }
}
