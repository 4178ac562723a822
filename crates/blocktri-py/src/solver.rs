//! Solves by the facade: in one go, or from factors that are kept.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blocktri::{
    Accuracy, AnyColumns, AnyScalar, AnySelectedInverse, AnySolver, Condition, Error, Method, ScalarKind, SolveOptions,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyList};

use crate::arrays::{Number, array_of, array_of_any, columns, dtype_name, typed, with_scalar};
use crate::errors::exception;
use crate::matrix::{Matrix, operation};
use crate::options::parse;
use crate::report::Report;
use crate::run::run;
use crate::slot::Slot;

/// A copy of the right-hand sides, of the scalar of the matrix.
fn right_hand_sides<T: Number>(b: &Bound<'_, PyUntypedArray>) -> PyResult<AnyColumns> {
    Ok(T::columns(columns(&typed::<T>(b)?.as_array(), "b")?))
}

/// Columns of any scalar: rows and columns.
fn shape(b: &AnyColumns) -> (usize, usize) {
    with_scalar!(b.kind(), T => T::of_columns(b).map_or((0, 0), blocktri::faer::Mat::shape))
}

/// Solves A·X = B by the method of that name with these options. A report that is asked for has the condition number of a direct
/// method's matrix, which costs some five solves.
#[pyfunction]
#[pyo3(signature = (a, b, method, options=None, threads=None, asks_report=false))]
pub fn solve<'py>(
    py: Python<'py>,
    a: &Matrix,
    b: &Bound<'py, PyUntypedArray>,
    method: &str,
    options: Option<&Bound<'py, PyDict>>,
    threads: Option<usize>,
    asks_report: bool,
) -> PyResult<(Bound<'py, PyAny>, Report)> {
    let start = Instant::now();
    let condition = if asks_report { Condition::Always } else { Condition::InDoubt };
    let options = SolveOptions { condition, ..parse(py, method, options)? };
    let ndim = b.ndim();
    let b = with_scalar!(a.of.kind(), T => right_hand_sides::<T>(b))?;
    let (n, nrhs) = shape(&b);
    let (matrix, chosen) = (Arc::clone(&a.of), options.clone());
    let answer = run(py, threads, n.saturating_mul(nrhs), move |monitor| matrix.solve(&b, &chosen, monitor))?;
    let answer = answer.map_err(|e| exception(py, &e))?;
    let report = Report::of(&answer, (n, a.of.nnz(), nrhs), &options, threads, start.elapsed());
    Ok((array_of_any(py, &answer.x, ndim)?, report))
}

/// Factors of a matrix. Solves may run from several threads at once; `refactor` waits for them, and they for it.
#[pyclass(frozen, module = "blocktri._blocktri")]
pub struct Solver {
    of: Slot<Arc<AnySolver>>,
    options: SolveOptions,
    n: usize,
}

impl Solver {
    /// The factors as they are now.
    fn now(&self, py: Python<'_>) -> PyResult<Arc<AnySolver>> {
        Ok(Arc::clone(&*self.of.take(py)?))
    }
}

#[pymethods]
impl Solver {
    #[new]
    #[pyo3(signature = (a, method, options=None, threads=None))]
    fn new(
        py: Python<'_>,
        a: &Matrix,
        method: &str,
        options: Option<&Bound<'_, PyDict>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let options = parse(py, method, options)?;
        for (name, given) in [
            ("rtol", matches!(&options.method, Method::Auto(auto) if auto.accuracy != Accuracy::default())),
            ("time_limit", options.time_limit.is_some()),
        ] {
            if given {
                return Err(PyTypeError::new_err(format!("option '{name}' is not read when factors are made")));
            }
        }
        let (matrix, chosen) = (Arc::clone(&a.of), options.clone());
        let n = a.of.nrows();
        let made = run(py, threads, n, move |monitor| AnySolver::new(&matrix, &chosen, monitor))?;
        let made = made.map_err(|e| exception(py, &e))?;
        Ok(Self { of: Slot::new(Arc::new(made)), options, n })
    }

    /// Solves op(A)·X = B, op being "N", "T" or "C". A report that is asked for has the condition number, found once per factorization.
    #[pyo3(signature = (b, op, nnz, threads=None, asks_report=false))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        b: &Bound<'py, PyUntypedArray>,
        op: &str,
        nnz: usize,
        threads: Option<usize>,
        asks_report: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Report)> {
        let start = Instant::now();
        let op = operation(op)?;
        let ndim = b.ndim();
        let of = self.now(py)?;
        let b = with_scalar!(of.kind(), T => right_hand_sides::<T>(b))?;
        let (n, nrhs) = shape(&b);
        let answer = run(py, threads, n.saturating_mul(nrhs), move |_| {
            if asks_report {
                of.rcond();
            }
            of.solve(op, &b)
        })?;
        let answer = answer.map_err(|e| exception(py, &e))?;
        let report = Report::of(&answer, (n, nnz, nrhs), &self.options, threads, start.elapsed());
        Ok((array_of_any(py, &answer.x, ndim)?, report))
    }

    /// Factors new values, when the solves with the old ones have ended.
    #[pyo3(signature = (a, threads=None))]
    fn refactor(&self, py: Python<'_>, a: &Matrix, threads: Option<usize>) -> PyResult<()> {
        /// Between two looks at whether the last solve has ended.
        const PAUSE: Duration = Duration::from_millis(1);
        let mut of = self.of.take(py)?;
        while Arc::get_mut(&mut of).is_none() {
            py.detach(|| thread::sleep(PAUSE));
            py.check_signals()?;
        }
        let matrix = Arc::clone(&a.of);
        let done: Result<(), Error> = run(py, threads, self.n, move |monitor| {
            of.held(|of| match Arc::get_mut(of) {
                Some(of) => of.refactor(&matrix, monitor),
                None => Err(Error::Usage { message: "the factors are in use".into() }),
            })
        })?;
        done.map_err(|e| exception(py, &e))
    }

    /// Sign, or for complex matrices the phase, and log|det A|.
    fn slogdet<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, f64)> {
        let of = self.now(py)?;
        let det = py.detach(|| of.log_det());
        let (re, im) = det.sign;
        let sign = match of.kind() {
            ScalarKind::C32 | ScalarKind::C64 => PyComplex::from_doubles(py, re, im).into_any(),
            _ => PyFloat::new(py, re).into_any(),
        };
        Ok((sign, det.log_abs))
    }

    /// Estimate of 1 / (‖A‖₁‖A⁻¹‖₁).
    fn rcond(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let of = self.now(py)?;
        run(py, None, self.n, move |_| of.rcond())
    }

    /// How many eigenvalues are negative, zero to rounding, and positive.
    fn inertia(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let of = self.now(py)?;
        let found = run(py, None, self.n, move |_| of.inertia())?;
        let found = found.map_err(|e| exception(py, &e))?;
        Ok((found.negative, found.zero, found.positive))
    }

    /// The sizes of the blocks, and those of A⁻¹ on, above and below the diagonal.
    #[allow(clippy::type_complexity)] // four lists
    fn selected_inverse<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Vec<usize>, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)> {
        let of = self.now(py)?;
        let found = run(py, None, self.n, move |_| of.selected_inverse())?;
        let found = found.map_err(|e| exception(py, &e))?;
        match &found {
            AnySelectedInverse::F64(s) => blocks(py, s),
            AnySelectedInverse::F32(s) => blocks(py, s),
            AnySelectedInverse::C64(s) => blocks(py, s),
            AnySelectedInverse::C32(s) => blocks(py, s),
            _ => Err(PyTypeError::new_err("the matrix is of an unknown scalar")),
        }
    }

    /// The method that factored A.
    fn method(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.now(py)?.method().name())
    }

    /// NumPy's name of the scalar.
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(dtype_name(self.now(py)?.kind()))
    }

    /// Entries of the factors, and their bytes.
    fn size(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        Ok(self.now(py)?.size())
    }

    /// What `auto` counted: method, order, operations and structure of each candidate.
    fn candidates(&self, py: Python<'_>) -> PyResult<Vec<Counted>> {
        let of = self.now(py)?;
        Ok(of
            .explain()
            .iter()
            .map(|c| (c.method.name(), c.reorder.name(), c.work.flops, c.structure.clone()))
            .collect())
    }
}

/// Method, order, operations and structure.
type Counted = (&'static str, &'static str, f64, String);

#[allow(clippy::type_complexity)] // four lists
fn blocks<'py, T: Number>(
    py: Python<'py>,
    s: &blocktri::SelectedInverse<T>,
) -> PyResult<(Vec<usize>, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)> {
    let m = s.partition().n_blocks();
    let list =
        |blocks: Vec<PyResult<Bound<'py, PyAny>>>| PyList::new(py, blocks.into_iter().collect::<PyResult<Vec<_>>>()?);
    let diagonal = list((0..m).map(|j| array_of::<T>(py, s.diagonal(j), 2)).collect())?;
    let upper = list((1..m).map(|j| array_of::<T>(py, s.upper(j - 1), 2)).collect())?;
    let lower = list((1..m).map(|j| array_of::<T>(py, s.lower(j), 2)).collect())?;
    Ok((s.partition().sizes().collect(), diagonal, upper, lower))
}
