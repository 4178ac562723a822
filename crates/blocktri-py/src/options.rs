//! Names and keyword arguments to methods with their options. The keywords are the options of the command without their dashes.

use std::time::Duration;

use blocktri::{
    Blocks, Condition, DeviceChoice, Fallback, Local, Method, Precision, Precond, Refinement, Reorder, Setting,
    SolveOptions, StopRule,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// The names of all methods, with a line on each.
#[pyfunction]
pub fn method_names() -> Vec<(String, String)> {
    Method::all().iter().map(|m| (m.name().to_owned(), m.summary().to_owned())).collect()
}

/// The names of all preconditioners.
#[pyfunction]
pub fn preconditioner_names() -> Vec<&'static str> {
    Precond::all().iter().map(Precond::name).collect()
}

/// The options of a solve.
pub fn parse(py: Python<'_>, method: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<SolveOptions> {
    let mut method: Method = method.parse().map_err(|e| errors::exception(py, &e))?;
    let Some(given) = given else { return Ok(SolveOptions { method, ..SolveOptions::default() }) };
    check_names(given)?;
    let given = &Given(given);
    let reorder = match given.get::<String>("reorder")? {
        None => Reorder::Auto,
        Some(name) => one_of("reorder", Reorder::ALL, Reorder::name, &name)?,
    };
    let blocks = match given.item("blocks")? {
        None => Blocks::Detect,
        Some(value) => match value.extract::<usize>() {
            Ok(size) => Blocks::Uniform(size),
            Err(_) => Blocks::Sizes(value.extract().map_err(|_| wrong("blocks", "a size or a list of sizes"))?),
        },
    };
    let device = device(given.get::<String>("device")?.as_deref())?;
    let fallback = match given.get::<String>("fallback")?.as_deref() {
        None | Some("never") => Fallback::Never,
        Some("stronger") => Fallback::Stronger,
        Some(_) => return Err(wrong("fallback", "'never' or 'stronger'")),
    };
    let time_limit = given.get::<f64>("time_limit")?.map(Duration::try_from_secs_f64).transpose();
    let mut time_limit = time_limit.map_err(|_| wrong("time_limit", "a number of seconds"))?;
    if let Some(stop) = method.stop_mut() {
        stop.time_limit = time_limit.take();
    }
    for (name, read) in SETTINGS {
        if let Some(setting) = read(py, given, name)?
            && !method.set(setting)
        {
            return Err(unread(name, &method));
        }
    }
    let has_fallback = match &method {
        Method::Direct(direct, _) => direct.fallback().is_some(),
        other => other.is_auto(),
    };
    for (name, read) in [("blocks", method.reads_blocks()), ("fallback", has_fallback)] {
        if !read && given.item(name)?.is_some() {
            return Err(unread(name, &method));
        }
    }
    Ok(SolveOptions { method, reorder, blocks, fallback, device, condition: Condition::InDoubt, time_limit })
}

/// Reads a keyword as a setting, where it is given.
type Read = fn(Python<'_>, &Given<'_, '_>, &str) -> PyResult<Option<Setting>>;

/// The keywords that are settings of a method, each before those that its value decides on: a preconditioner before what it reads.
const SETTINGS: [(&str, Read); 20] = [
    ("refine", |_, given, name| Ok(given.get(name)?.map(Refinement::Steps).map(Setting::Refinement))),
    ("precond", |py, given, name| {
        let precond = given.get::<String>(name)?.map(|name| name.parse::<Precond>()).transpose();
        Ok(precond.map_err(|e| errors::exception(py, &e))?.map(Setting::Precond))
    }),
    ("precision", |_, given, name| Ok(given.precision(name)?.map(Setting::Precision))),
    ("rtol", |_, given, name| Ok(given.tolerance(name)?.map(Setting::RelativeTolerance))),
    ("atol", |_, given, name| Ok(given.tolerance(name)?.map(Setting::AbsoluteTolerance))),
    ("maxiter", |_, given, name| Ok(given.get(name)?.map(Setting::Iterations))),
    ("stop", |_, given, name| match given.get::<String>(name)?.as_deref() {
        None => Ok(None),
        Some("residual") => Ok(Some(Setting::StopRule(StopRule::Residual))),
        Some("update") => Ok(Some(Setting::StopRule(StopRule::Update))),
        Some(_) => Err(wrong(name, "'residual' or 'update'")),
    }),
    ("restart", |_, given, name| Ok(given.positive(name)?.map(Setting::Restart))),
    ("basis", |_, given, name| Ok(given.precision(name)?.map(Setting::Basis))),
    ("partitions", |_, given, name| Ok(given.positive(name)?.map(Setting::Partitions))),
    ("overlap", |_, given, name| Ok(given.get(name)?.map(Setting::Layers))),
    ("local", |_, given, name| {
        let local = given.get::<String>(name)?.map(|local| one_of(name, Local::all(), |local| local.name(), &local));
        Ok(local.transpose()?.map(Setting::Local))
    }),
    ("omega", |_, given, name| Ok(given.get(name)?.map(Setting::Omega))),
    ("sweeps", |_, given, name| Ok(given.get(name)?.map(Setting::Sweeps))),
    ("levels", |_, given, name| Ok(given.get(name)?.map(Setting::Levels))),
    ("fill", |_, given, name| Ok(given.get(name)?.map(Setting::Fill))),
    ("drop_tol", |_, given, name| Ok(given.get(name)?.map(Setting::DropTolerance))),
    ("inner", |_, given, name| Ok(given.get(name)?.map(Setting::InnerSteps))),
    ("bandwidth", |_, given, name| Ok(given.get(name)?.map(Setting::Bandwidth))),
    ("seed", |_, given, name| Ok(given.get(name)?.map(Setting::Seed))),
];

/// Keywords that are not settings of a method.
const OTHERS: [&str; 5] = ["reorder", "blocks", "fallback", "device", "time_limit"];

fn check_names(given: &Bound<'_, PyDict>) -> PyResult<()> {
    let known = || OTHERS.into_iter().chain(SETTINGS.map(|(name, _)| name));
    for name in given.keys() {
        let name: String = name.extract()?;
        if !known().any(|known| known == name) {
            let known = known().collect::<Vec<_>>().join(", ");
            return Err(PyTypeError::new_err(format!("unknown option '{name}'; options: {known}")));
        }
    }
    Ok(())
}

/// The keywords given; one that is `None` is not.
struct Given<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    fn item(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn get<V: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<Option<V>> {
        let Some(value) = self.item(name)? else { return Ok(None) };
        value.extract::<V>().map(Some).or_else(|error| {
            let text = format!("option '{name}' cannot be {}", value.repr()?);
            let beyond = Into::<PyErr>::into(error).is_instance_of::<PyOverflowError>(self.0.py());
            Err(if beyond { PyValueError::new_err(text) } else { PyTypeError::new_err(text) })
        })
    }

    /// A number of at least one.
    fn positive(&self, name: &str) -> PyResult<Option<usize>> {
        match self.get::<usize>(name)? {
            Some(0) => Err(wrong(name, "at least 1")),
            other => Ok(other),
        }
    }

    fn tolerance(&self, name: &str) -> PyResult<Option<f64>> {
        match self.get::<f64>(name)? {
            Some(value) if !(value >= 0.0) => Err(wrong(name, "at least 0")),
            other => Ok(other),
        }
    }

    fn precision(&self, name: &str) -> PyResult<Option<Precision>> {
        let precision = self.get::<String>(name)?;
        precision.map(|precision| one_of(name, Precision::ALL, Precision::name, &precision)).transpose()
    }
}

/// An option that would be lost without a word.
fn unread(name: &str, method: &Method) -> PyErr {
    let with = match method {
        Method::Krylov(krylov) => format!(" with preconditioner '{}'", krylov.precond.name()),
        _ => String::new(),
    };
    PyTypeError::new_err(format!("option '{name}' is not read by method '{}'{with}", method.name()))
}

fn device(name: Option<&str>) -> PyResult<DeviceChoice> {
    let place = name.map_or(Ok(DeviceChoice::Cpu), str::parse);
    place.map_err(|_| wrong("device", "'cpu', 'gpu', 'gpu:N', 'gpu:N,M' or 'auto'"))
}

fn one_of<V, const N: usize>(option: &str, all: [V; N], name_of: impl Fn(V) -> &'static str, name: &str) -> PyResult<V>
where
    V: Copy,
{
    let found = all.iter().copied().find(|one| name_of(*one) == name);
    found.ok_or_else(|| wrong(option, &format!("one of {}", all.map(&name_of).join(", "))))
}

fn wrong(option: &str, what: &str) -> PyErr {
    PyValueError::new_err(format!("option '{option}' must be {what}"))
}
