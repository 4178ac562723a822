//! Direct methods on the device.

use std::time::Instant;

use bt_direct::FactorError;
use bt_formats::{Band, Bytes, Csr, HybridLayout, Matrix, Note, Op, Outcome, PhaseTimes, SolveReport, certify};
use bt_kernels::{
    Device, DeviceBandLu, DeviceBlockLu, DeviceError, DeviceScalar, DeviceSpike, DeviceTridiagonal, DirectReport,
    SolvedBy,
};
use faer::{Mat, MatRef};

use crate::build::{blocks, partition_note, tridiagonal};
use crate::direct::Direct;
use crate::error::Error;
use crate::options::{Blocks, Reorder, SolveOptions};
use crate::partition::BlockSummary;
use crate::prepare::{order_asked, prepared, transform};
use crate::reordered::Transform;
use crate::solution::Solution;
use crate::verdict::{at_rounding_level, too_large};

/// Direct methods: factored and solved on the device, refined with residuals of the host.
pub(super) fn direct<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    b: MatRef<'_, T>,
    method: Direct,
    options: &SolveOptions,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    let mut notes = Vec::new();
    let a = &prepared(a, &mut notes)?;
    let (transform, reorder) = transform(a, Some(method), order_asked(options), &mut notes)?;
    direct_in_order(device, a, b, (method, options), (&transform, reorder), (start, notes))
        .map_err(|e| transform.in_given_order(e))
}

/// Places of errors are those of the reordered matrix.
fn direct_in_order<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    b: MatRef<'_, T>,
    (method, options): (Direct, &SolveOptions),
    (transform, reorder): (&Transform<T>, Reorder),
    (start, mut notes): (Instant, Vec<Note>),
) -> Result<Solution<T>, Error> {
    let mut summary = None;
    let identity = transform.is_identity();
    let permuted = if identity { None } else { Some(transform.apply(a)) };
    let work = permuted.as_ref().unwrap_or(a);
    let reorder_time = start.elapsed();
    let mut y = transform.gathered(b);
    let setup = || start.elapsed().saturating_sub(reorder_time);
    // The report, bytes of the matrix and of the device, and the time that the factorization took.
    let solved = match method {
        Direct::TridiagonalLu => {
            let t = tridiagonal(work.into(), method)?;
            let mut on_device = DeviceTridiagonal::new(device, &t)?;
            let setup = setup();
            on_device.solve_in_place(y.as_mut()).map(|report| (report, t.bytes(), on_device.bytes(), setup))
        }
        Direct::BlockLu => {
            let hybrid = blocks(work, method, &options.blocks, identity, |_| HybridLayout::default())?;
            summary = Some(BlockSummary::of(hybrid.partition()));
            let lu = DeviceBlockLu::new(device, &[&hybrid])?;
            let (setup, reports) = (setup(), lu.solve_in_place(y.as_mut()));
            reports.and_then(only).map(|report| (report, hybrid.bytes(), lu.bytes(), setup))
        }
        Direct::BandLu => {
            let band = Band::from_csr(work)?;
            let lu = DeviceBandLu::new(device, &[&band])?;
            let (setup, reports) = (setup(), lu.solve_in_place(y.as_mut()));
            reports.and_then(only).map(|report| (report, band.bytes(), lu.bytes(), setup))
        }
        _ => {
            let (hybrid, band);
            let partitions = if let Direct::Spike { partitions } = method { partitions } else { None };
            let (spike, bytes) = if options.blocks == Blocks::Detect {
                band = Band::from_csr(work)?;
                (DeviceSpike::band(device, &band, partitions)?, band.bytes())
            } else {
                hybrid = blocks(work, method, &options.blocks, identity, |_| HybridLayout::default())?;
                summary = Some(BlockSummary::of(hybrid.partition()));
                (DeviceSpike::blocks(device, &hybrid, partitions)?, hybrid.bytes())
            };
            notes.push(partition_note(spike.partitions()));
            let setup = setup();
            spike.solve_in_place(y.as_mut()).map(|report| (report, bytes, spike.bytes(), setup))
        }
    };
    let (done, matrix, factors, setup) = solved?;
    if matches!(method, Direct::BlockLu | Direct::BandLu) {
        notes.push(Note::OneThreadBlock);
    }
    notes.push(Note::Refined { steps: done.steps });
    let mut warnings = Vec::new();
    if done.solved_by == SolvedBy::Host {
        warnings.push(Note::DeviceTooWeak { backward_error: done.device_error, method: method.name() });
    }
    let mut x = Mat::zeros(b.nrows(), b.ncols());
    transform.scatter_columns(&y, x.as_mut());
    let certificate = certify(a, Op::Identity, x.as_ref(), b);
    let outcome = if at_rounding_level::<T>(&certificate) { Outcome::Converged } else { Outcome::Inaccurate };
    if outcome == Outcome::Inaccurate {
        notes.push(Note::NotAtRoundingLevel { reached: too_large::<T>(&certificate) });
    }
    notes.extend(warnings.iter().cloned());
    let solve = start.elapsed().saturating_sub(reorder_time + setup);
    let report = SolveReport {
        method: method.name(),
        outcome,
        iterations: done.steps,
        recurrence_residual: None,
        certificate,
        operator_applications: done.operator_applications,
        preconditioner_applications: done.solves,
        times: PhaseTimes { reorder: reorder_time, setup, solve },
        bytes: Bytes { matrix, factors, workspace: 2 * size_of::<T>() * b.nrows() * b.ncols() },
        notes,
    };
    Ok(Solution {
        reorder,
        blocks: summary,
        device: options.device,
        warnings,
        ..Solution::of(x, report, options.method.clone())
    })
}

/// The report of a batch of one.
fn only(mut reports: Vec<Result<DirectReport, FactorError>>) -> Result<DirectReport, DeviceError> {
    Ok(reports.remove(0)?)
}
