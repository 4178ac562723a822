//! Plans of many models at once, in parallel: λ, μ, … over a range.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::PoisonError;

use bt_formats::{BlockTridiagonal, Monitor, Outcome, Partition, Progress};
use rayon::prelude::*;

use crate::capacity::Capacity;
use crate::classes::closed_classes;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::model::{CloudModel, Order};
use crate::scaled::Scaled;
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

/// Chains that [`sweep_by`] has at once, and their states, unless one alone has more.
const GROUP: usize = 4096;
const STATES: usize = 1 << 21;

/// Plans of a sweep whose chains something else eliminated.
#[derive(Clone, Debug)]
pub struct Swept {
    /// One for each parameter, in their order.
    pub plans: Vec<Capacity>,
    /// Parameters whose chains were eliminated here, by their number from 0, increasing, and why.
    pub on_host: Vec<(usize, OnHost)>,
}

/// Why a chain was eliminated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHost {
    /// It has transient states, which were left out first.
    Transient,
    /// There was no answer.
    Refused,
    /// The flows of the answer did not balance to its bound.
    Unbalanced,
}

/// As [`sweep`], the chains eliminated by `eliminate`, many at a time, by levels of as many tasks; a GPU is meant.
///
/// It is given generators whose chains are irreducible and returns a positive multiple of π for each, or `None` where it has none.
/// Such chains, those with transient states, and those whose flows do not balance to the bound of
/// [`Stationary::from_elimination`] are left to [`Stationary::gth`].
///
/// ```
/// use bt_queue::{CloudModel, Error, Form, Generator, Rates, Stationary, sweep_by};
/// let model = |arrival| {
///     let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
///     CloudModel::new(40, 16, rates, Form::Repaired)
/// };
/// let swept = sweep_by(&[2.0, 5.0, 10.0], &mut (), model, |chains| {
///     // Where a GPU would do all of them in one launch.
///     let one_by_one = chains.iter().map(|chain| {
///         let pi = Stationary::gth(&Generator::new(chain.to_csr()?)?)?;
///         Ok(Some(pi.probabilities().to_vec()))
///     });
///     one_by_one.collect::<Result<_, Error>>()
/// })?;
/// assert_eq!(swept.plans.iter().map(|p| p.in_advance()).collect::<Vec<_>>(), [2, 5, 10]);
/// assert!(swept.on_host.is_empty());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`sweep`], and those of `eliminate`.
///
/// # Cost
/// That of `eliminate`, and O(nnz) a parameter; memory for at most 4096 models of 2²¹ states together, or one.
pub fn sweep_by<E: From<Error>>(
    parameters: &[f64],
    monitor: &mut (impl Monitor + Send),
    model: impl Fn(f64) -> Result<CloudModel> + Sync,
    mut eliminate: impl FnMut(&[&BlockTridiagonal<f64>]) -> Result<Vec<Option<Vec<Scaled>>>, E>,
) -> Result<Swept, E> {
    let mut swept = Swept { plans: Vec::new(), on_host: Vec::new() };
    let total = parameters.len();
    while swept.plans.len() < total {
        let first = swept.plans.len();
        let (mut models, mut states) = (Vec::new(), 0usize);
        for &parameter in parameters[first..].iter().take(GROUP) {
            let model = model(parameter)?;
            states = states.saturating_add(model.space().n());
            if states > STATES && !models.is_empty() {
                break;
            }
            models.push(model);
        }
        let chains: Vec<Chain> =
            models.par_iter().map(Chain::new).collect::<Vec<_>>().into_iter().collect::<Result<_>>()?;
        let blocks: Vec<&BlockTridiagonal<f64>> = chains.iter().filter_map(|chain| chain.blocks.as_ref()).collect();
        let mut eliminated = eliminate(&blocks)?.into_iter();
        let found: Vec<Option<Vec<Scaled>>> =
            chains.iter().map(|chain| chain.blocks.as_ref().and_then(|_| eliminated.next().flatten())).collect();
        let plans: Vec<Result<(Capacity, Option<OnHost>)>> = models
            .par_iter()
            .zip(&chains)
            .zip(&found)
            .map(|((model, chain), x)| chain.plan(model, x.as_deref()))
            .collect();
        for plan in plans {
            let (plan, here) = plan?;
            if let Some(why) = here {
                swept.on_host.push((swept.plans.len(), why));
            }
            swept.plans.push(plan);
            let done = swept.plans.len();
            if monitor.observe(Progress::Step { phase: "sweep", done, total }).is_break() {
                return Err(Error::Stopped.into());
            }
        }
    }
    Ok(swept)
}

/// A chain of a sweep by levels of as many tasks.
struct Chain {
    q: Generator,
    levels: Partition,
    /// Of irreducible ones.
    blocks: Option<BlockTridiagonal<f64>>,
}

impl Chain {
    fn new(model: &CloudModel) -> Result<Self> {
        let q = model.generator(Order::TaskMajor)?;
        let levels = model.space().partition(Order::TaskMajor)?;
        let irreducible = closed_classes(&q).closed().first().is_some_and(|class| class.len() == q.n());
        let blocks = if irreducible { Some(q.to_block_tridiagonal(levels.clone())?) } else { None };
        Ok(Self { q, levels, blocks })
    }

    /// The plan from a multiple of π, or by elimination here and why.
    fn plan(&self, model: &CloudModel, x: Option<&[Scaled]>) -> Result<(Capacity, Option<OnHost>)> {
        let there = x.map(|x| Stationary::from_elimination(&self.q, &self.levels, x)).transpose()?;
        let (pi, why) = match there {
            Some(pi) if pi.outcome() == Outcome::Converged => (pi, None),
            Some(_) => (Stationary::gth(&self.q)?, Some(OnHost::Unbalanced)),
            None if self.blocks.is_some() => (Stationary::gth(&self.q)?, Some(OnHost::Refused)),
            None => (Stationary::gth(&self.q)?, Some(OnHost::Transient)),
        };
        Ok((Capacity::new(model, Order::TaskMajor, &pi), why))
    }
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

    /// What comes from elsewhere is taken where it balances; the rest is eliminated here.
    #[test]
    fn answers_from_elsewhere_are_judged() {
        let parameters = [1.0, 2.0, 3.0, 0.0];
        let here = sweep(&parameters, &mut (), model).unwrap();
        let swept = sweep_by(&parameters, &mut (), model, |chains| {
            // Without arrivals there are transient states.
            assert_eq!(chains.len(), 3);
            let right = Stationary::gth(&Generator::new(chains[0].to_csr().unwrap()).unwrap()).unwrap();
            let wrong = vec![Scaled::ONE; chains[1].n()];
            Ok::<_, Error>(vec![Some(right.probabilities().to_vec()), Some(wrong), None])
        });
        let swept = swept.unwrap();
        let why = [(1, OnHost::Unbalanced), (2, OnHost::Refused), (3, OnHost::Transient)];
        assert_eq!(swept.on_host, why);
        assert_eq!(swept.plans[1..], here[1..]);
        let mean = |c: &Capacity| c.marginals.tasks.mean();
        assert!((mean(&swept.plans[0]) / mean(&here[0]) - 1.0).abs() < 1e-14);
        let lost =
            sweep_by(&parameters, &mut (), model, |_| Err(Error::Failed { method: "gth", reason: "lost".into() }));
        assert!(matches!(lost, Err(Error::Failed { .. })));
    }

    #[test]
    fn the_first_bad_parameter_is_the_error() {
        let error = sweep(&[1.0, -1.0, f64::NAN], &mut (), model).unwrap_err();
        assert!(error.to_string().contains("-1"), "{error}");
        let mut stop = |_: Progress| ControlFlow::Break(());
        assert!(matches!(sweep(&[1.0], &mut stop, model), Err(Error::Stopped)));
    }
}
