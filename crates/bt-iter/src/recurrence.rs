//! A Krylov method as a machine that asks for products with A: run alone by the methods, side by side by [`crate::Lockstep`].

use bt_formats::{Error, Monitor, Outcome, Scalar, SolveReport, StopCriterion, max_abs, one, zero};

use crate::balanced::Balanced;
use crate::krylov::Watch;
use crate::system::System;

/// One right-hand side of a method.
pub(crate) trait Recurrence<T: Scalar>: Send {
    /// What the method asks of the system.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::DimensionMismatch`], [`Error::InvalidStructure`] for a preconditioner that it cannot take.
    fn check(&self, system: &System<'_, T>, x: &[T]) -> Result<(), Error>;
    /// The residual of x, before the first step.
    fn begin<'a>(
        &mut self,
        system: &System<'_, T>,
        x: &[T],
        stop: &'a StopCriterion,
        monitor: &'a mut dyn Monitor,
    ) -> Watch<'a>;
    /// Goes on with `output` = A·`input` for the `input` it left behind, if this is not the first call. Leaves another `input`, or
    /// ends. Both vectors keep what is written to them.
    fn advance(
        &mut self,
        system: &mut System<'_, T>,
        watch: &mut Watch<'_>,
        x: &mut [T],
        input: &mut [T],
        output: &mut [T],
    ) -> Option<Outcome>;
    /// x ← the best iterate, and the report.
    fn finish(
        &mut self,
        outcome: Outcome,
        watch: Watch<'_>,
        system: &System<'_, T>,
        x: &mut [T],
        workspace: usize,
    ) -> SolveReport;
    /// Bytes of its vectors.
    fn bytes(&self) -> usize;
}

/// Runs one machine on its own; `products` are the vectors that A maps from and to.
pub(crate) fn solve<T: Scalar>(
    machine: &mut dyn Recurrence<T>,
    System { on, b }: System<'_, T>,
    [input, output]: [&mut [T]; 2],
    x: &mut [T],
    stop: &StopCriterion,
    monitor: &mut dyn Monitor,
) -> Result<SolveReport, Error> {
    let balanced = Balanced::with_largest(b, on.max(max_abs(b)));
    let stop = balanced.criterion(stop);
    let mut system = System { on, b: &balanced.b };
    machine.check(&system, x)?;
    balanced.enter(x);
    let mut watch = machine.begin(&system, x, &stop, monitor);
    let outcome = loop {
        if let Some(outcome) = machine.advance(&mut system, &mut watch, x, input, output) {
            break outcome;
        }
        system.on.apply(one(), input, zero(), output);
    };
    let workspace = machine.bytes() + size_of_val(input) + size_of_val(output);
    let mut report = machine.finish(outcome, watch, &system, x, workspace);
    balanced.leave_if(x, &mut report, |x| system.finite(x));
    Ok(report)
}
