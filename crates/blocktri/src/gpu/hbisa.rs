//! HBISA on the device.

use std::time::Instant;

use bt_formats::{BlockTridiagonal, Csr, Error as InputError, HybridLayout, Monitor, Note, Op, certify};
use bt_kernels::{Device, DeviceHbisa, DeviceScalar, HostShare, Schedule};
use faer::{Mat, MatRef};

use super::with_cuda::{before, place};
use crate::error::Error;
use crate::factors::BlockSummary;
use crate::iterate::{blocks_of, merge, no_right_hand_side, ordered};
use crate::method::BlockIteration;
use crate::options::{HostBlocks, SolveOptions};
use crate::solve::Solution;

/// Jacobi or red–black sweeps on blocks of the pattern.
pub(super) fn hbisa<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    b: MatRef<'_, T>,
    given: &BlockIteration,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let start = Instant::now();
    let mut notes = Vec::new();
    let (work, transform, reorder) = ordered(a, options, &mut notes)?;
    let partition = blocks_of(&work, options, transform.is_identity())?;
    let summary = BlockSummary::of(&partition);
    let blocks = BlockTridiagonal::from_csr(&work, partition, HybridLayout::default()).map_err(|e| match e {
        InputError::OutsideStructure { .. } => {
            Error::Usage { message: format!("on the GPU blocks couple to their neighbours only: {e}") }
        }
        other => other.into(),
    })?;
    let reorder_time = start.elapsed();
    let mut method = DeviceHbisa::new(device, &blocks, given.sweep, given.rule, Schedule::Auto)
        .map_err(|e| transform.in_given_order(e.into()))?
        .shared(share(given))?;
    let setup = start.elapsed().saturating_sub(reorder_time);
    if method.is_persistent() {
        notes.push(Note::OneLaunch { rows: "blocks", steps: "sweeps" });
    }
    let solving = Instant::now();
    let mut y = Mat::zeros(b.nrows(), b.ncols());
    let reports = method.solve_many(transform.gathered(b).as_ref(), y.as_mut(), &given.stop, monitor)?;
    let mut x = Mat::zeros(b.nrows(), b.ncols());
    transform.scatter_columns(&y, x.as_mut());
    let mut report = reports.into_iter().reduce(merge).ok_or_else(no_right_hand_side)?;
    report.times.solve = solving.elapsed();
    report.certificate = certify(a, Op::Identity, x.as_ref(), b);
    before(&mut report, reorder_time, setup, notes);
    Ok(Solution { reorder, blocks: Some(summary), device: place(device), ..Solution::of(x, report) })
}

/// The processor's part.
fn share(given: &BlockIteration) -> HostShare {
    match given.host_blocks {
        HostBlocks::None => HostShare::None,
        HostBlocks::Measured => HostShare::Measured,
        HostBlocks::Count(count) => HostShare::Blocks(count),
    }
}
