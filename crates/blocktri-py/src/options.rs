//! Names and keyword arguments to methods with their options. The keywords are the options of the command without their dashes.

use std::time::Duration;

use blocktri::{
    Blocks, CentralBand, Condition, DeviceChoice, Direct, Factoring, Fallback, IlutOptions, KrylovMethod, LastSolver,
    Local, Method, Precision, Precond, Refinement, Relaxation, Reorder, SolveOptions, StopRule, Sweep,
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
    let reorder = match get::<String>(given, "reorder")? {
        None => Reorder::Auto,
        Some(name) => one_of("reorder", Reorder::ALL, Reorder::name, &name)?,
    };
    let blocks = match given.get_item("blocks")?.filter(|v| !v.is_none()) {
        None => Blocks::Detect,
        Some(value) => match value.extract::<usize>() {
            Ok(size) => Blocks::Uniform(size),
            Err(_) => Blocks::Sizes(value.extract().map_err(|_| wrong("blocks", "a size or a list of sizes"))?),
        },
    };
    let fallback = match get::<String>(given, "fallback")?.as_deref() {
        None | Some("never") => Fallback::Never,
        Some("stronger") => Fallback::Stronger,
        Some(_) => return Err(wrong("fallback", "'never' or 'stronger'")),
    };
    let device = device(get::<String>(given, "device")?.as_deref())?;
    let precision = precision(given, "precision")?;
    let refinement = get(given, "refine")?.map_or(Refinement::Auto, Refinement::Steps);
    method = method.with_factoring(Factoring { precision, refinement });
    if let Some(mut stop) = method.stop().copied() {
        stop.rtol = get(given, "rtol")?.unwrap_or(stop.rtol);
        stop.atol = get(given, "atol")?.unwrap_or(stop.atol);
        stop.max_iters = get(given, "maxiter")?.unwrap_or(stop.max_iters);
        if let Some(seconds) = get::<f64>(given, "time_limit")? {
            let limit = Duration::try_from_secs_f64(seconds).map_err(|_| wrong("time_limit", "a number of seconds"))?;
            stop.time_limit = Some(limit);
        }
        if !(stop.rtol >= 0.0 && stop.atol >= 0.0) {
            return Err(PyValueError::new_err("rtol and atol must be at least 0"));
        }
        method = method.with_stop(stop);
    }
    match &mut method {
        Method::Direct(direct, _) => match direct {
            Direct::Spike { partitions }
            | Direct::SpikeTruncated { partitions }
            | Direct::TridiagonalSpike { partitions, .. } => *partitions = positive(given, "partitions")?,
            Direct::BlockRbt { seed } | Direct::Rbt { seed } => *seed = get(given, "seed")?.unwrap_or(*seed),
            _ => {}
        },
        Method::Krylov(krylov) => {
            if let KrylovMethod::Gmres { restart, basis } | KrylovMethod::Fgmres { restart, basis } = &mut krylov.method
            {
                *restart = positive(given, "restart")?.unwrap_or(*restart);
                *basis = self::precision(given, "basis")?;
            }
            krylov.precision = precision;
            krylov.precond = precond(py, get::<String>(given, "precond")?.as_deref(), given)?;
        }
        Method::Blocks(iteration) => {
            if let (Sweep::Sor(relaxation), Some(omega)) = (&mut iteration.sweep, get(given, "omega")?) {
                *relaxation = Relaxation::Fixed(omega);
            }
            iteration.rule = match get::<String>(given, "stop")?.as_deref() {
                None | Some("residual") => StopRule::Residual,
                Some("update") => StopRule::Update,
                Some(_) => return Err(wrong("stop", "'residual' or 'update'")),
            };
        }
        _ => {}
    }
    // Reports have the condition number, as those of the command do.
    let condition = Condition::Always;
    Ok(SolveOptions { method, reorder, blocks, fallback, device, condition, time_limit: None })
}

/// A preconditioner by its name, with its options.
fn precond(py: Python<'_>, name: Option<&str>, given: &Bound<'_, PyDict>) -> PyResult<Precond> {
    let Some(name) = name else { return Ok(Precond::Auto) };
    let mut precond: Precond = name.parse().map_err(|e| errors::exception(py, &e))?;
    let sweeps = get(given, "sweeps")?.map_or(TriangularSolves::Levels, TriangularSolves::Sweeps);
    let (fill, drop_tol) = (get(given, "fill")?, get(given, "drop_tol")?);
    let (omega, levels, partitions) = (get(given, "omega")?, get(given, "levels")?, positive(given, "partitions")?);
    let filled = |part: IlutOptions| IlutOptions {
        fill: fill.unwrap_or(part.fill),
        drop_tolerance: drop_tol.unwrap_or(part.drop_tolerance),
    };
    match &mut precond {
        Precond::Ssor { omega: own, solves } => {
            *own = omega.unwrap_or(*own);
            *solves = sweeps;
        }
        Precond::SsorAi { omega: own, .. }
        | Precond::SsorAiMasked { omega: own }
        | Precond::BlockSsorAi { omega: own } => {
            *own = omega.unwrap_or(*own);
        }
        Precond::Ilu0 { solves, .. } | Precond::Ic0 { solves, .. } => *solves = sweeps,
        Precond::Iluk { levels: own, solves } => {
            *own = levels.unwrap_or(*own);
            *solves = sweeps;
        }
        Precond::Ilut { options, solves } => {
            *options = filled(*options);
            *solves = sweeps;
        }
        Precond::Schwarz { layers, subdomains, local, .. } => {
            *layers = get(given, "overlap")?.unwrap_or(*layers);
            *subdomains = partitions;
            if let Some(name) = get::<String>(given, "local")? {
                *local = one_of("local", Local::all(), |local| local.name(), &name)?;
            }
            match local {
                Local::Iluk(own) => *own = levels.unwrap_or(*own),
                Local::Ilut(options) => *options = filled(*options),
                _ => {}
            }
        }
        Precond::Arms(arms) => {
            *arms = arms.with_dropping(filled(arms.schur));
            arms.levels = levels.unwrap_or(arms.levels);
            arms.inner_steps = get(given, "inner")?.unwrap_or(arms.inner_steps);
            if let LastSolver::Butterflies(rbt) = &mut arms.last {
                rbt.seed = get(given, "seed")?.unwrap_or(rbt.seed);
            }
        }
        Precond::Spike(band) | Precond::SpikeTruncated(band) => {
            *band = CentralBand { bandwidth: get(given, "bandwidth")?, partitions };
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

fn get<'py, V: for<'a> FromPyObject<'a, 'py>>(given: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<V>> {
    match given.get_item(name)?.filter(|value| !value.is_none()) {
        None => Ok(None),
        Some(value) => match value.extract::<V>() {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let text = format!("option '{name}' cannot be {}", value.repr()?);
                let beyond = Into::<PyErr>::into(error).is_instance_of::<PyOverflowError>(given.py());
                Err(if beyond { PyValueError::new_err(text) } else { PyTypeError::new_err(text) })
            }
        },
    }
}

/// A number of at least one.
fn positive(given: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<usize>> {
    match get::<usize>(given, name)? {
        Some(0) => Err(wrong(name, "at least 1")),
        other => Ok(other),
    }
}

fn precision(given: &Bound<'_, PyDict>, name: &str) -> PyResult<Precision> {
    match get::<String>(given, name)? {
        None => Ok(Precision::Working),
        Some(value) => one_of(name, Precision::ALL, Precision::name, &value),
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
