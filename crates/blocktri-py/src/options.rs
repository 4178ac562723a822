//! Names and keyword arguments to methods with their options. The keywords are the options of the command without their dashes.

use std::cell::RefCell;
use std::time::Duration;

use blocktri::{
    Accuracy, Blocks, CentralBand, Condition, DeviceChoice, Direct, Factoring, Fallback, IlutOptions, KrylovMethod,
    LastSolver, Local, Method, Precision, Precond, Refinement, Relaxation, Reorder, SolveOptions, StopRule, Sweep,
    TriangularSolves,
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
    let given = &Given { of: given, read: RefCell::default() };
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
    let mut fallback = Fallback::Never;
    if !method.is_iterative() {
        fallback = match given.get::<String>("fallback")?.as_deref() {
            None | Some("never") => Fallback::Never,
            Some("stronger") => Fallback::Stronger,
            Some(_) => return Err(wrong("fallback", "'never' or 'stronger'")),
        };
        let refinement = given.get("refine")?.map_or(Refinement::Auto, Refinement::Steps);
        method = method.with_factoring(Factoring { precision: given.precision("precision")?, refinement });
    }
    let time_limit = given.get::<f64>("time_limit")?.map(Duration::try_from_secs_f64).transpose();
    let mut time_limit = time_limit.map_err(|_| wrong("time_limit", "a number of seconds"))?;
    if let Some(mut stop) = method.stop().copied() {
        stop.rtol = given.tolerance("rtol")?.unwrap_or(stop.rtol);
        stop.atol = given.tolerance("atol")?.unwrap_or(stop.atol);
        stop.max_iters = given.get("maxiter")?.unwrap_or(stop.max_iters);
        stop.time_limit = time_limit.take();
        method = method.with_stop(stop);
    }
    match &mut method {
        Method::Auto(auto) => {
            if let Some(rtol) = given.tolerance("rtol")? {
                auto.accuracy = Accuracy::Residual(rtol);
            }
        }
        Method::Direct(direct, _) => match direct {
            Direct::Spike { partitions }
            | Direct::SpikeTruncated { partitions }
            | Direct::TridiagonalSpike { partitions, .. } => *partitions = given.positive("partitions")?,
            Direct::BlockRbt { seed } | Direct::Rbt { seed } => *seed = given.get("seed")?.unwrap_or(*seed),
            _ => {}
        },
        Method::Krylov(krylov) => {
            if let KrylovMethod::Gmres { restart, basis } | KrylovMethod::Fgmres { restart, basis } = &mut krylov.method
            {
                *restart = given.positive("restart")?.unwrap_or(*restart);
                *basis = given.precision("basis")?;
            }
            krylov.precision = given.precision("precision")?;
            krylov.precond = precond(py, given.get::<String>("precond")?.as_deref(), given)?;
        }
        Method::Blocks(iteration) => {
            if let (Sweep::Sor(relaxation), Some(omega)) = (&mut iteration.sweep, given.get("omega")?) {
                *relaxation = Relaxation::Fixed(omega);
            }
            iteration.rule = match given.get::<String>("stop")?.as_deref() {
                None | Some("residual") => StopRule::Residual,
                Some("update") => StopRule::Update,
                Some(_) => return Err(wrong("stop", "'residual' or 'update'")),
            };
        }
        _ => {}
    }
    given.check_all_read(&method)?;
    // Reports have the condition number, as those of the command do.
    let condition = Condition::Always;
    Ok(SolveOptions { method, reorder, blocks, fallback, device, condition, time_limit })
}

/// A preconditioner by its name, with its options.
fn precond(py: Python<'_>, name: Option<&str>, given: &Given<'_, '_>) -> PyResult<Precond> {
    let Some(name) = name else { return Ok(Precond::Auto) };
    let mut precond: Precond = name.parse().map_err(|e| errors::exception(py, &e))?;
    let sweeps =
        || -> PyResult<_> { Ok(given.get("sweeps")?.map_or(TriangularSolves::Levels, TriangularSolves::Sweeps)) };
    let omega = || given.get("omega");
    let levels = || given.get("levels");
    let filled = |part: IlutOptions| -> PyResult<_> {
        Ok(IlutOptions {
            fill: given.get("fill")?.unwrap_or(part.fill),
            drop_tolerance: given.get("drop_tol")?.unwrap_or(part.drop_tolerance),
        })
    };
    match &mut precond {
        Precond::Ssor { omega: own, solves } => {
            *own = omega()?.unwrap_or(*own);
            *solves = sweeps()?;
        }
        Precond::SsorAi { omega: own, .. }
        | Precond::SsorAiMasked { omega: own }
        | Precond::BlockSsorAi { omega: own } => {
            *own = omega()?.unwrap_or(*own);
        }
        Precond::Ilu0 { solves, .. } | Precond::Ic0 { solves, .. } => *solves = sweeps()?,
        Precond::Iluk { levels: own, solves } => {
            *own = levels()?.unwrap_or(*own);
            *solves = sweeps()?;
        }
        Precond::Ilut { options, solves } => {
            *options = filled(*options)?;
            *solves = sweeps()?;
        }
        Precond::Schwarz { layers, subdomains, local, .. } => {
            *layers = given.get("overlap")?.unwrap_or(*layers);
            *subdomains = given.positive("partitions")?;
            if let Some(name) = given.get::<String>("local")? {
                *local = one_of("local", Local::all(), |local| local.name(), &name)?;
            }
            match local {
                Local::Iluk(own) => *own = levels()?.unwrap_or(*own),
                Local::Ilut(options) => *options = filled(*options)?,
                _ => {}
            }
        }
        Precond::Arms(arms) => {
            *arms = arms.with_dropping(filled(arms.schur)?);
            arms.levels = levels()?.unwrap_or(arms.levels);
            arms.inner_steps = given.get("inner")?.unwrap_or(arms.inner_steps);
            if let LastSolver::Butterflies(rbt) = &mut arms.last {
                rbt.seed = given.get("seed")?.unwrap_or(rbt.seed);
            }
        }
        Precond::Spike(band) | Precond::SpikeTruncated(band) => {
            *band = CentralBand { bandwidth: given.get("bandwidth")?, partitions: given.positive("partitions")? };
        }
        _ => {}
    }
    Ok(precond)
}

/// All keywords.
const KNOWN: [&str; 25] = [
    "reorder",
    "blocks",
    "fallback",
    "device",
    "precision",
    "refine",
    "rtol",
    "atol",
    "maxiter",
    "time_limit",
    "restart",
    "basis",
    "precond",
    "stop",
    "fill",
    "drop_tol",
    "omega",
    "levels",
    "inner",
    "overlap",
    "local",
    "sweeps",
    "bandwidth",
    "partitions",
    "seed",
];

fn check_names(given: &Bound<'_, PyDict>) -> PyResult<()> {
    for name in given.keys() {
        let name: String = name.extract()?;
        if !KNOWN.contains(&name.as_str()) {
            let known = KNOWN.join(", ");
            return Err(PyTypeError::new_err(format!("unknown option '{name}'; options: {known}")));
        }
    }
    Ok(())
}

/// The keywords given, and those that were read.
struct Given<'a, 'py> {
    of: &'a Bound<'py, PyDict>,
    read: RefCell<Vec<&'static str>>,
}

impl<'py> Given<'_, 'py> {
    fn item(&self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read.borrow_mut().push(name);
        Ok(self.of.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn get<V: for<'a> FromPyObject<'a, 'py>>(&self, name: &'static str) -> PyResult<Option<V>> {
        let Some(value) = self.item(name)? else { return Ok(None) };
        value.extract::<V>().map(Some).or_else(|error| {
            let text = format!("option '{name}' cannot be {}", value.repr()?);
            let beyond = Into::<PyErr>::into(error).is_instance_of::<PyOverflowError>(self.of.py());
            Err(if beyond { PyValueError::new_err(text) } else { PyTypeError::new_err(text) })
        })
    }

    /// A number of at least one.
    fn positive(&self, name: &'static str) -> PyResult<Option<usize>> {
        match self.get::<usize>(name)? {
            Some(0) => Err(wrong(name, "at least 1")),
            other => Ok(other),
        }
    }

    fn tolerance(&self, name: &'static str) -> PyResult<Option<f64>> {
        match self.get::<f64>(name)? {
            Some(value) if !(value >= 0.0) => Err(wrong(name, "at least 0")),
            other => Ok(other),
        }
    }

    fn precision(&self, name: &'static str) -> PyResult<Precision> {
        match self.get::<String>(name)? {
            None => Ok(Precision::Working),
            Some(value) => one_of(name, Precision::ALL, Precision::name, &value),
        }
    }

    /// What nobody read would be lost without a word.
    fn check_all_read(&self, method: &Method) -> PyResult<()> {
        for (name, value) in self.of.iter() {
            let name: String = name.extract()?;
            if !value.is_none() && !self.read.borrow().contains(&name.as_str()) {
                let with = match method {
                    Method::Krylov(krylov) => format!(" with preconditioner '{}'", krylov.precond.name()),
                    _ => String::new(),
                };
                return Err(PyTypeError::new_err(format!(
                    "option '{name}' is not read by method '{}'{with}",
                    method.name()
                )));
            }
        }
        Ok(())
    }
}

fn device(name: Option<&str>) -> PyResult<DeviceChoice> {
    match name {
        None | Some("cpu") => Ok(DeviceChoice::Cpu),
        Some("auto") => Ok(DeviceChoice::Auto),
        Some("gpu") => Ok(DeviceChoice::Gpu(0)),
        Some(name) => {
            let number = name.strip_prefix("gpu:").and_then(|n| n.parse().ok());
            number.map(DeviceChoice::Gpu).ok_or_else(|| wrong("device", "'cpu', 'gpu', 'gpu:N' or 'auto'"))
        }
    }
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
