//! Stationary distributions of Markov chains, and plans of the cloud model.

use std::sync::Arc;

use blocktri::Csr;
use bt_queue::{Capacity, CloudModel, Costs, Error, Form, Generator, Order, Rates, Stationary, TimeUnit};
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{of_input, own};
use crate::matrix::Matrix;
use crate::run::run;

fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let text = match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    };
    match error {
        Error::Input(input) => of_input(input),
        Error::Stopped => PyRuntimeError::new_err(text),
        Error::Failed { .. } | Error::SeveralClosedClasses { .. } => own(py, "BreakdownError", &text, None, None),
        _ => PyValueError::new_err(text),
    }
}

/// What a matrix of a chain holds.
fn generator(a: &Csr<f64>, kind: &str) -> Result<Generator, Error> {
    match kind {
        "generator" => Generator::from_rounded(a.clone()),
        "rates" => Generator::from_rates_alone(a.clone()),
        _ => Generator::from_stochastic(a),
    }
}

/// π of a generator ("generator"), of rates whose diagonal is not read ("rates") or of transition probabilities ("stochastic"), with what is
/// known about it.
#[pyfunction]
#[pyo3(signature = (q, kind, threads=None))]
pub fn stationary<'py>(
    py: Python<'py>,
    q: &Matrix,
    kind: &str,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyDict>)> {
    if !["generator", "rates", "stochastic"].contains(&kind) {
        return Err(PyValueError::new_err("kind must be 'generator', 'rates' or 'stochastic'"));
    }
    if q.typed::<f64>().is_err() {
        return Err(PyTypeError::new_err("rates and probabilities must be float64"));
    }
    let (matrix, kind) = (Arc::clone(&q.of), kind.to_owned());
    let found = run(py, threads, q.of.nrows(), move |_| {
        let a = <f64 as blocktri::AnyScalar>::of_matrix(&matrix);
        let a = a.ok_or(Error::Failed { method: "gth", reason: "the matrix is of another scalar".into() })?;
        let a = a.rows().map_err(|e| Error::Failed { method: "gth", reason: e.to_string() })?;
        Stationary::gth(&generator(a, &kind)?)
    })?;
    let pi = found.map_err(|e| exception(py, &e))?;
    let facts = PyDict::new(py);
    facts.set_item("method", pi.method())?;
    facts.set_item("residual", pi.residual())?;
    facts.set_item("error_bound", pi.error_bound())?;
    facts.set_item("recurrent", pi.recurrent())?;
    facts.set_item("least_log10", pi.least().log10())?;
    facts.set_item("notes", pi.notes())?;
    Ok((PyArray1::from_vec(py, pi.to_f64()), facts))
}

/// The capacity plan of the cloud model.
#[pyfunction]
#[pyo3(signature = (resources, threshold, rates, costs=None, threads=None))]
pub fn plan<'py>(
    py: Python<'py>,
    resources: usize,
    threshold: usize,
    rates: (f64, f64, f64, f64),
    costs: Option<(f64, f64, f64)>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (arrival, service, turn_on, turn_off) = rates;
    let rates = Rates { arrival, service, turn_on, turn_off };
    let made = run(py, threads, resources.saturating_mul(threshold), move |_| {
        let model = CloudModel::new(resources, threshold, rates, Form::Repaired)?;
        let pi = Stationary::gth(&model.generator(Order::TaskMajor)?)?;
        Ok::<_, Error>((Capacity::new(&model, Order::TaskMajor, &pi), pi.n()))
    })?;
    let (capacity, states) = made.map_err(|e| exception(py, &e))?;
    let facts = PyDict::new(py);
    let of = |d: &bt_queue::Distribution| -> PyResult<Bound<'py, PyDict>> {
        let facts = PyDict::new(py);
        facts.set_item("mean", d.mean())?;
        facts.set_item("variance", d.variance())?;
        facts.set_item("mode", d.mode())?;
        let (values, probabilities): (Vec<i64>, Vec<f64>) = d.iter().map(|(k, p)| (k as i64, p)).unzip();
        facts.set_item("values", PyArray1::from_vec(py, values))?;
        facts.set_item("probabilities", PyArray1::from_vec(py, probabilities))?;
        for level in [0.5, 0.95, 0.99] {
            facts.set_item(format!("quantile_{level}"), d.quantile(level))?;
        }
        Ok(facts)
    };
    facts.set_item("states", states)?;
    facts.set_item("resources", of(&capacity.marginals.level)?)?;
    facts.set_item("tasks", of(&capacity.marginals.tasks)?)?;
    facts.set_item("in_advance", capacity.in_advance())?;
    facts.set_item("throughput", capacity.throughput)?;
    facts.set_item("utilisation", capacity.utilisation)?;
    facts.set_item("loss", capacity.loss)?;
    facts.set_item("log10_loss", capacity.log10_loss())?;
    facts.set_item("waiting", capacity.waiting)?;
    facts.set_item("waiting_tasks", capacity.waiting_tasks)?;
    facts.set_item("time", capacity.time)?;
    if let Some((resource_hour, switch, waiting_task_hour)) = costs {
        let costs = Costs { resource_hour, switch, waiting_task_hour };
        facts.set_item("cost_per_hour", capacity.cost_per_hour(&costs, TimeUnit::Hour))?;
        facts.set_item("cheapest_in_advance", capacity.cheapest_in_advance(&costs))?;
    }
    Ok(facts)
}
