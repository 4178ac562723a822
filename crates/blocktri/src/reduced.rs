//! `--precond block-reduced`: a Krylov method on the system without the even blocks.

use std::time::Instant;

use bt_formats::{BlockTridiagonal, Csr, Error as InputError, HybridLayout, Matrix, Monitor, Progress, Scalar, norm2};
use bt_iter::{Balanced, CyclicallyReduced, Identity, StopRule};
use faer::MatRef;

use crate::columns::{columns, lockstep, ordered};
use crate::error::Error;
use crate::method::{Krylov, Precision};
use crate::options::SolveOptions;
use crate::partition::BlockSummary;
use crate::precondition::{singular_block, sweep_blocks};
use crate::solution::Solution;
use crate::unit::Unit;

/// `bicgstab`, `gmres` or `fgmres`, one right-hand side after the other.
///
/// # Errors
/// [`Error::Usage`] for another method, for single precision, and for an entry outside the three block diagonals; [`Error::Factor`]
/// naming a singular diagonal block.
pub(crate) fn solve<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    given: &Krylov,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let name = given.precond.name();
    let refused = |message| Err(Error::Usage { message });
    if given.method.is_symmetric() {
        return refused(format!(
            "{name} has no symmetric form for {}: use bicgstab, gmres, fgmres, or block-redblack",
            given.method
        ));
    }
    if given.precision != Precision::Working {
        return refused(format!("{name} solves with the blocks exactly, not in single precision: use block-redblack"));
    }
    let start = Instant::now();
    let mut notes = Vec::new();
    let unit = Unit::of(a, b);
    let (mut work, transform, reorder) = ordered(a, options, &mut notes)?;
    unit.remove(work.values_mut());
    let stop = unit.criterion(&given.stop);
    let reorder_time = start.elapsed();
    let partition = sweep_blocks(&work, transform.is_identity(), given.precond, &options.blocks, &mut notes)?;
    let summary = BlockSummary::of(&partition);
    let blocks = match BlockTridiagonal::from_csr(&work, partition, HybridLayout::default()) {
        Err(outside @ InputError::OutsideStructure { .. }) => {
            return refused(format!(
                "{name} leaves nothing out, and the {outside}: use other blocks, or block-redblack"
            ));
        }
        made => made?,
    };
    let matrix = work.bytes() + blocks.bytes();
    let mut reduced = CyclicallyReduced::new(blocks)
        .map_err(|e| transform.in_given_order(singular_block(e, summary.count, given.precond).into()))?;
    let mut method = lockstep(given.method, reduced.order(), 1, &mut notes);
    let setup = start.elapsed().saturating_sub(reorder_time);
    let mut step = |rhs: &[T], y: &mut [T], monitor: &mut dyn Monitor| {
        let balanced = unit.without(rhs, |rhs| Balanced::new(rhs).into_owned());
        let norm_b = norm2(&balanced.b);
        balanced.enter(y);
        let report = reduced.solve(&balanced.b, y, &balanced.criterion(&stop), &mut |operator, g, u, stop| {
            // Residuals are told relative to ‖b‖, where the method has them relative to ‖g‖.
            let scale = if norm_b > 0.0 { norm2(g) / norm_b } else { 1.0 };
            let mut told = |progress| match progress {
                Progress::Iteration { index, residual } => {
                    monitor.observe(Progress::Iteration { index, residual: residual * scale })
                }
                other => monitor.observe(other),
            };
            method.solve_one(operator, &mut Identity::new(g.len()), g, u, stop, &mut told)
        });
        let mut report = report?;
        balanced.leave(y, &mut report);
        Ok(report)
    };
    let (x, mut report) = columns(a, b, &transform, (StopRule::Residual, &given.stop), monitor, &mut step)?;
    (report.times.reorder, report.times.setup) = (reorder_time, setup);
    (report.bytes.matrix, report.bytes.factors) = (matrix, reduced.bytes());
    report.notes.splice(0..0, notes);
    Ok(Solution { reorder, precond: given.precond, blocks: Some(summary), ..Solution::of(x, report, given.clone()) })
}
