//! HBISA on the device.

use std::time::Instant;

use bt_formats::{BlockTridiagonal, Csr, Error as InputError, HybridLayout, Monitor, Note, Op, certify};
use bt_kernels::{Device, DeviceError, DeviceHbisa, DeviceScalar, Place, Schedule, Shares, SplitHbisa};
use faer::{Mat, MatRef};

use crate::columns::{merge, no_right_hand_side, ordered};
use crate::error::Error;
use crate::gpu::device::before;
use crate::method::{BlockIteration, HostBlocks};
use crate::options::SolveOptions;
use crate::partition::{BlockSummary, blocks_of};
use crate::solution::Solution;

/// Jacobi or red–black sweeps on blocks of the pattern.
pub(super) fn hbisa<T: DeviceScalar>(
    devices: &[Device],
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
    let BlockIteration { sweep, rule, host_blocks, ref stop, .. } = *given;
    let in_given_order = |e: DeviceError| transform.in_given_order(e.into());
    let gathered = transform.gathered(b);
    let mut y = Mat::zeros(b.nrows(), b.ncols());
    let (setup, solving, reports);
    if let ([device], HostBlocks::None) = (devices, host_blocks) {
        let mut method = DeviceHbisa::new(device, &blocks, sweep, rule, Schedule::Auto).map_err(in_given_order)?;
        if method.is_persistent() {
            notes.push(Note::OneLaunch { rows: "blocks", steps: "sweeps" });
        }
        (setup, solving) = (start.elapsed(), Instant::now());
        reports = method.solve_many(gathered.as_ref(), y.as_mut(), stop, monitor)?;
    } else {
        let mut places: Vec<Place> = devices.iter().cloned().map(Place::Device).collect();
        let shares = match host_blocks {
            HostBlocks::None => Shares::Even,
            HostBlocks::Measured => Shares::Measured,
            HostBlocks::Count(count) => Shares::Last(count),
        };
        if host_blocks != HostBlocks::None {
            places.push(Place::Host);
        }
        let mut method = SplitHbisa::new(&places, &shares, &blocks, sweep, rule).map_err(in_given_order)?;
        (setup, solving) = (start.elapsed(), Instant::now());
        reports = method.solve_many(gathered.as_ref(), y.as_mut(), stop, monitor)?;
    }
    let setup = setup.saturating_sub(reorder_time);
    let mut x = Mat::zeros(b.nrows(), b.ncols());
    transform.scatter_columns(&y, x.as_mut());
    let mut report = reports.into_iter().reduce(merge).ok_or_else(no_right_hand_side)?;
    report.times.solve = solving.elapsed();
    report.certificate = certify(a, Op::Identity, x.as_ref(), b);
    before(&mut report, reorder_time, setup, notes);
    Ok(Solution { reorder, blocks: Some(summary), device: options.device, ..Solution::of(x, report, given.clone()) })
}
