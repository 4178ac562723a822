//! Plans of many models at once, in parallel: λ, μ, … over a range.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::PoisonError;

use bt_formats::{Monitor, Progress};
use rayon::prelude::*;

use crate::capacity::Capacity;
use crate::error::{Error, Result};
use crate::model::{CloudModel, Order};
use crate::stationary::Stationary;

/// One plan for each parameter, in their order; the models are solved in parallel, each on one thread, so that the results do
/// not depend on the number of threads. The monitor sees [`Progress::Step`] after each.
///
/// ```
/// use bt_queue::{CloudModel, Form, Rates, sweep};
/// let plans = sweep(&[2.0, 5.0, 10.0], &mut (), |arrival| {
///     let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
///     CloudModel::new(40, 16, rates, Form::Repaired)
/// })?;
/// assert_eq!(plans.iter().map(|p| p.in_advance()).collect::<Vec<_>>(), [2, 5, 10]);
/// # Ok::<(), bt_queue::Error>(())
/// ```
///
/// # Errors
/// That of the first parameter whose model has no answer; [`Error::Stopped`] when the monitor breaks.
///
/// # Cost
/// That of [`Stationary::gth`] a parameter; memory for as many models as there are threads.
pub fn sweep(
    parameters: &[f64],
    monitor: &mut (impl Monitor + Send),
    model: impl Fn(f64) -> Result<CloudModel> + Sync,
) -> Result<Vec<Capacity>> {
    let progress = Mutex::new((0, monitor));
    let total = parameters.len();
    let plan = |&parameter: &f64| {
        let model = model(parameter)?;
        let pi = Stationary::gth(&model.generator(Order::TaskMajor)?)?;
        let capacity = Capacity::new(&model, Order::TaskMajor, &pi);
        let mut guard = progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, monitor) = &mut *guard;
        *done += 1;
        match monitor.observe(Progress::Step { phase: "sweep", done: *done, total }) {
            ControlFlow::Continue(()) => Ok(capacity),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    };
    // Every answer is collected, so that the error returned is the first in order and not in time.
    parameters.par_iter().map(plan).collect::<Vec<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Form, Rates};

    fn model(arrival: f64) -> Result<CloudModel> {
        CloudModel::new(8, 3, Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 }, Form::Repaired)
    }

    #[test]
    fn same_plans_as_one_by_one() {
        let parameters: Vec<f64> = (1..20).map(|i| 0.5 * f64::from(i)).collect();
        let mut seen = 0;
        let mut count = |p: Progress| {
            assert!(matches!(p, Progress::Step { total: 19, .. }));
            seen += 1;
            ControlFlow::Continue(())
        };
        let plans = sweep(&parameters, &mut count, model).unwrap();
        for (&parameter, plan) in parameters.iter().zip(&plans) {
            assert_eq!(*plan, sweep(&[parameter], &mut (), model).unwrap()[0]);
        }
        assert_eq!(seen, 19);
    }

    #[test]
    fn the_first_bad_parameter_is_the_error() {
        let error = sweep(&[1.0, -1.0, f64::NAN], &mut (), model).unwrap_err();
        assert!(error.to_string().contains("-1"), "{error}");
        let mut stop = |_: Progress| ControlFlow::Break(());
        assert!(matches!(sweep(&[1.0], &mut stop, model), Err(Error::Stopped)));
    }
}
