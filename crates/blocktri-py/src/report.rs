//! What was done, as an object: the report of a solve with the names of the command's JSON.

use std::fmt::Write as _;
use std::time::Duration;

use blocktri::{AnySolution, BlockSummary, Outcome, ScalarKind, SolveOptions, SolveReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Value, json};

use crate::arrays::dtype_name;

/// The report of a solve.
#[pyclass(frozen, module = "blocktri._blocktri")]
pub struct Report {
    pub scalar: ScalarKind,
    /// Rows, stored entries and right-hand sides of a system.
    pub sizes: (usize, usize, usize),
    pub blocks: Option<BlockSummary>,
    pub method_requested: String,
    pub precond: &'static str,
    pub reorder: &'static str,
    pub device: String,
    pub threads: Option<usize>,
    pub seed: Option<u64>,
    pub rcond: Option<f64>,
    pub total: Duration,
    pub of: SolveReport,
    pub warnings: Vec<String>,
    /// Of each system of a batch, what became of it.
    pub status: Vec<String>,
}

impl Report {
    /// Of a solve.
    pub fn of(
        solution: &AnySolution,
        (n, nnz, nrhs): (usize, usize, usize),
        options: &SolveOptions,
        threads: Option<usize>,
        total: Duration,
    ) -> Self {
        let status =
            if solution.report.outcome == Outcome::Converged { "solved" } else { solution.report.outcome.name() };
        Self {
            scalar: solution.x.kind(),
            sizes: (n, nnz, nrhs),
            blocks: solution.blocks,
            method_requested: options.method.name().to_owned(),
            precond: solution.precond.name(),
            reorder: solution.reorder.name(),
            device: solution.device.to_string(),
            threads,
            seed: options.method.seed(),
            rcond: solution.rcond,
            total,
            of: solution.report.clone(),
            warnings: solution.warnings.iter().map(ToString::to_string).collect(),
            status: vec![status.to_owned()],
        }
    }

    fn breakdown(&self) -> Option<String> {
        match self.of.outcome {
            Outcome::Breakdown(reason) => Some(reason.to_string()),
            _ => None,
        }
    }

    /// The JSON of `blocktri solve --json`, without a file.
    fn json(&self) -> Value {
        let ((n, nnz, nrhs), times) = (self.sizes, self.of.times);
        let system = json!({
            "schema": 1,
            "file": null,
            "scalar": self.scalar.to_string(),
            "n": n,
            "nnz": nnz,
            "nrhs": nrhs,
            "blocks": self.blocks.map(|b| json!({ "count": b.count, "min": b.min, "max": b.max })),
            "method_requested": self.method_requested,
            "precond": self.precond,
            "reorder": self.reorder,
            "device": self.device,
            "threads": self.threads(),
            "seed": self.seed,
        });
        let run = json!({
            "forward_error": null,
            "rcond": self.rcond,
            "seconds": {
                "read": 0.0,
                "reorder": times.reorder.as_secs_f64(),
                "setup": times.setup.as_secs_f64(),
                "solve": times.solve.as_secs_f64(),
                "total": self.total.as_secs_f64(),
            },
        });
        self.of.to_json(system, run)
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[pymethods]
impl Report {
    /// How it ended: "converged", "loose", "false-convergence", "iteration-limit", "time-limit", "breakdown", "stopped" or "inaccurate".
    #[getter]
    fn outcome(&self) -> &'static str {
        self.of.outcome.name()
    }
    /// Whether the answer is as good as was asked for.
    #[getter]
    fn converged(&self) -> bool {
        self.of.outcome == Outcome::Converged
    }
    /// The method that gave the answer.
    #[getter]
    fn method(&self) -> &'static str {
        self.of.method
    }
    /// The method that was asked for.
    #[getter]
    fn method_requested(&self) -> &str {
        &self.method_requested
    }
    /// The preconditioner.
    #[getter]
    fn precond(&self) -> &'static str {
        self.precond
    }
    /// The order in which the method worked.
    #[getter]
    fn reorder(&self) -> &'static str {
        self.reorder
    }
    /// Where it was solved.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }
    /// Threads that there were.
    #[getter]
    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }
    /// NumPy's name of the scalar.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype_name(self.scalar)
    }
    /// Rows of the matrix.
    #[getter]
    fn n(&self) -> usize {
        self.sizes.0
    }
    /// Stored entries of the matrix.
    #[getter]
    fn nnz(&self) -> usize {
        self.sizes.1
    }
    /// Right-hand sides.
    #[getter]
    fn nrhs(&self) -> usize {
        self.sizes.2
    }
    /// Iterations, or steps of refinement.
    #[getter]
    fn iterations(&self) -> usize {
        self.of.iterations
    }
    /// ‖b − Ax‖₂ / ‖b‖₂.
    #[getter]
    fn relative_residual(&self) -> Option<f64> {
        finite(self.of.certificate.relative_residual)
    }
    /// ‖b − Ax‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞).
    #[getter]
    fn backward_error(&self) -> Option<f64> {
        finite(self.of.certificate.backward_error)
    }
    /// max |b − Ax| / (|A||x| + |b|).
    #[getter]
    fn componentwise_backward_error(&self) -> Option<f64> {
        finite(self.of.certificate.componentwise_backward_error)
    }
    /// Estimate of 1 / (‖A‖₁‖A⁻¹‖₁), of direct methods.
    #[getter]
    fn rcond(&self) -> Option<f64> {
        self.rcond
    }
    /// Seconds from call to answer.
    #[getter]
    fn seconds(&self) -> f64 {
        self.total.as_secs_f64()
    }
    /// Why the method broke down, where it did.
    #[getter(breakdown)]
    fn why(&self) -> Option<String> {
        self.breakdown()
    }
    /// What was chosen and why, and what happened on the way.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.of.notes.iter().map(ToString::to_string).collect()
    }
    /// The notes as data: dictionaries with a "kind", numbers and names.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &json!(self.of.notes))
    }
    /// What must not be overlooked although the outcome is good.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
    /// What became of each system: "solved", or why not.
    #[getter]
    fn status(&self) -> Vec<String> {
        self.status.clone()
    }

    /// The same as a dictionary, with the names of the command's JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.json())
    }

    fn __repr__(&self) -> String {
        self.lines().iter().map(|(name, value)| format!("{name:>18}: {value}")).collect::<Vec<_>>().join("\n")
    }

    fn _repr_html_(&self) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut table = String::from("<table>");
        for (name, value) in self.lines() {
            let _ = write!(table, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(&value));
        }
        table.push_str("</table>");
        table
    }
}

impl Report {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let (n, nnz, nrhs) = self.sizes;
        let certificate = self.of.certificate;
        let chosen = if self.method_requested == "auto" { " (chosen by auto)" } else { "" };
        let mut lines = vec![
            ("system", format!("n = {n}, nnz = {nnz}, {}, right-hand sides: {nrhs}", dtype_name(self.scalar))),
            ("method", format!("{}{chosen}", self.of.method)),
            ("outcome", self.of.outcome.name().to_owned()),
            ("iterations", self.of.iterations.to_string()),
        ];
        if self.status.len() > 1 {
            let solved = self.status.iter().filter(|s| *s == "solved").count();
            lines.push(("systems", format!("{solved} of {} solved", self.status.len())));
        }
        lines.extend(self.breakdown().map(|why| ("breakdown", why)));
        if certificate.relative_residual.is_finite() {
            lines.push(("relative residual", format!("{:.2e}", certificate.relative_residual)));
        }
        if certificate.backward_error.is_finite() {
            lines.push(("backward error", format!("{:.2e}", certificate.backward_error)));
        }
        lines.extend(self.rcond.map(|rcond| ("rcond", format!("{rcond:.2e}"))));
        lines.extend(self.notes().into_iter().map(|note| ("note", note)));
        lines
    }
}

/// JSON as objects of Python.
pub fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => value.into_pyobject(py)?.into_any(),
            (_, Some(value), _) => value.into_pyobject(py)?.into_any(),
            (.., value) => value.into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let items = values.iter().map(|v| python(py, v)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
