//! Preconditioners as objects, and Krylov methods on operators that are objects of Python.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use blocktri::faer::{Mat, MatRef};
use blocktri::{
    AnyMatrix, AnyPreconditioner, AnyScalar, AnySolution, Certificate, Krylov, KrylovMethod, Method, Monitor, Op,
    Precision, Precond, PreconditionerKind, Progress, Reorder, ScalarKind, SolveOptions,
};
use bt_formats::{LinearOperator, certify};
use bt_iter::{Identity, Lockstep};
use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Number, array_of, columns, dtype_name, kind_of, line, typed, with_scalar, zeros};
use crate::errors::{exception, of_input};
use crate::matrix::Matrix;
use crate::options::parse;
use crate::report::Report;
use crate::run::run;
use crate::slot::{Slot, Taken};

/// A preconditioner M made from a matrix: z ← M⁻¹·r. Its applications share scratch memory, so that one runs after the other.
#[pyclass(frozen, module = "blocktri._blocktri")]
pub struct Preconditioner {
    of: Slot<AnyPreconditioner>,
    kind: ScalarKind,
    n: usize,
    size: (usize, usize),
    notes: Vec<String>,
}

#[pymethods]
impl Preconditioner {
    #[new]
    #[pyo3(signature = (a, name, options=None, threads=None))]
    fn new(
        py: Python<'_>,
        a: &Matrix,
        name: &str,
        options: Option<&Bound<'_, PyDict>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let given = match options {
            Some(options) => options.copy()?,
            None => PyDict::new(py),
        };
        given.set_item("precond", name)?;
        let options = parse(py, "fgmres", Some(&given))?;
        let Method::Krylov(krylov) = options.method.clone() else {
            return Err(PyValueError::new_err("preconditioners are for Krylov methods"));
        };
        let matrix = Arc::clone(&a.of);
        let made = run(py, threads, a.of.nrows(), move |_| AnyPreconditioner::new(&matrix, &krylov, &options))?;
        let (made, notes) = made.map_err(|e| exception(py, &e))?;
        let notes = notes.iter().map(ToString::to_string).collect();
        Ok(Self { kind: a.of.kind(), n: a.of.nrows(), size: made.size(), of: Slot::new(made), notes })
    }

    /// M⁻¹·r for a vector, or the columns of a matrix.
    fn apply<'py>(&self, py: Python<'py>, r: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
        with_scalar!(self.kind, T => {
            let r = typed::<T>(r)?;
            let ndim = r.as_array().ndim();
            let r = columns(&r.as_array(), "r")?;
            let mut of = self.of.take(py)?;
            let z = py.detach(|| {
                of.held(|m| {
                    let m = T::of_preconditioner(m)?;
                    if r.nrows() != m.n() {
                        return None;
                    }
                    let mut z = match zeros(r.nrows(), r.ncols()) {
                        Ok(z) => z,
                        Err(e) => return Some(Err(e)),
                    };
                    for j in 0..r.ncols() {
                        m.apply(r.col_as_slice(j), z.col_as_slice_mut(j));
                    }
                    Some(Ok(z))
                })
            });
            let z = z.ok_or_else(|| PyValueError::new_err("r must have as many rows as the matrix"))?;
            let z = z.map_err(|e| of_input(&e))?;
            array_of::<T>(py, z.as_ref(), ndim)
        })
    }

    /// Rows of the matrix.
    #[getter]
    fn n(&self) -> usize {
        self.n
    }
    /// Stored values, and bytes.
    #[getter]
    fn size(&self) -> (usize, usize) {
        self.size
    }
    /// NumPy's name of the scalar.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype_name(self.kind)
    }
    /// What was made.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// What a call of Python raised while a method ran.
type Raised = Arc<Mutex<Option<PyErr>>>;

fn note(raised: &Raised, error: PyErr) {
    raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// y ← f(x) for an `f` of Python that takes and returns a vector.
fn call<T: Number>(f: &Py<PyAny>, x: &[T], y: &mut [T], raised: &Raised) {
    let done = Python::attach(|py| -> PyResult<()> {
        let value = f.bind(py).call1((PyArray1::from_slice(py, x),))?;
        let value = value.cast::<PyUntypedArray>().map_err(|_| {
            PyTypeError::new_err(format!("an operator must return a vector of {}", dtype_name(T::KIND)))
        })?;
        let value = typed::<T>(value)?;
        let value = value.as_array();
        let value = line(&value, "what an operator returns")?;
        if value.len() != y.len() {
            let (found, expected) = (value.len(), y.len());
            return Err(PyValueError::new_err(format!("an operator returned {found} values in place of {expected}")));
        }
        y.iter_mut().zip(value.iter()).for_each(|(y, v)| *y = *v);
        Ok(())
    });
    if let Err(error) = done {
        note(raised, error);
        y.fill(bt_formats::zero());
    }
}

/// A as a callable.
struct Called<T> {
    f: Py<PyAny>,
    n: usize,
    raised: Raised,
    scratch: Mutex<Vec<T>>,
}

impl<T: Number> LinearOperator<T> for Called<T> {
    fn nrows(&self) -> usize {
        self.n
    }
    fn ncols(&self) -> usize {
        self.n
    }
    fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) {
        let mut product = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        product.resize(self.n, bt_formats::zero());
        call(&self.f, x, &mut product, &self.raised);
        for (y, &p) in y.iter_mut().zip(product.iter()) {
            // y ← α·Ax + β·y; β = 0 does not read y
            *y = if beta == bt_formats::zero() { alpha * p } else { alpha * p + beta * *y };
        }
    }
}

/// M⁻¹ as a callable.
struct CalledPreconditioner {
    f: Py<PyAny>,
    n: usize,
    kind: PreconditionerKind,
    raised: Raised,
}

impl<T: Number> blocktri::Preconditioner<T> for CalledPreconditioner {
    fn n(&self) -> usize {
        self.n
    }
    fn name(&self) -> &'static str {
        "given"
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        call(&self.f, r, z, &self.raised);
    }
    fn nnz(&self) -> usize {
        0
    }
    fn bytes(&self) -> usize {
        0
    }
}

/// A preconditioner that other objects share, held for the whole solve.
struct Shared<'a> {
    of: &'a mut AnyPreconditioner,
    n: usize,
    kind: PreconditionerKind,
}

impl<T: Number> blocktri::Preconditioner<T> for Shared<'_> {
    fn n(&self) -> usize {
        self.n
    }
    fn name(&self) -> &'static str {
        "given"
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        match T::of_preconditioner(self.of) {
            Some(m) => m.apply(r, z),
            None => z.fill(bt_formats::zero()),
        }
    }
    fn nnz(&self) -> usize {
        self.of.size().0
    }
    fn bytes(&self) -> usize {
        self.of.size().1
    }
}

/// M of a solve.
enum Given {
    None,
    Own(Taken<AnyPreconditioner>),
    Called(CalledPreconditioner),
}

/// Passes progress on, and stops where a call of Python raised something.
struct Telling<'a> {
    inner: &'a mut dyn Monitor,
    callback: Option<Py<PyAny>>,
    raised: Raised,
}

impl Monitor for Telling<'_> {
    fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if let (Some(f), Progress::Iteration { index, residual }) = (&self.callback, progress)
            && let Err(error) = Python::attach(|py| f.call1(py, (index, residual)).map(|_| ()))
        {
            note(&self.raised, error);
        }
        if self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return ControlFlow::Break(());
        }
        self.inner.observe(progress)
    }
}

/// A Krylov method or block iteration: A is a `Matrix` or a callable, M a `Preconditioner`, a callable, or none, which leaves it to the
/// options. The callback gets iteration and residual.
#[pyfunction]
#[pyo3(signature = (a, b, method, options=None, m=None, x0=None, callback=None, threads=None))]
#[allow(clippy::too_many_arguments)] // those of the function that users call
pub fn iterate<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyUntypedArray>,
    method: &str,
    options: Option<&Bound<'py, PyDict>>,
    m: Option<&Bound<'py, PyAny>>,
    x0: Option<&Bound<'py, PyUntypedArray>>,
    callback: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, Report)> {
    let options = parse(py, method, options)?;
    with_scalar!(kind_of(b)?, T => typed_iterate::<T>(py, a, b, &options, m, x0, callback, threads))
}

#[allow(clippy::too_many_arguments)] // as of `iterate`
fn typed_iterate<'py, T: Number>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyUntypedArray>,
    options: &SolveOptions,
    m: Option<&Bound<'py, PyAny>>,
    x0: Option<&Bound<'py, PyUntypedArray>>,
    callback: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, Report)> {
    let start = Instant::now();
    let ndim = b.ndim();
    let b = columns(&typed::<T>(b)?.as_array(), "b")?;
    let (n, nrhs) = b.shape();
    let x0 = x0.map(|x0| columns(&typed::<T>(x0)?.as_array(), "x0")).transpose()?;
    if x0.as_ref().is_some_and(|x0| x0.shape() != b.shape()) {
        return Err(PyValueError::new_err("x0 must have the shape of b"));
    }
    let raised: Raised = Arc::default();
    let matrix = a.cast::<Matrix>().ok().map(|a| Arc::clone(&a.get().of));
    let nnz = matrix.as_ref().map_or(0, |a| a.nnz());
    // By the facade, which certifies and reorders, where no object of Python takes part in the products.
    if let (Some(matrix), None, None) = (&matrix, m, &x0) {
        let (matrix, chosen, inside) = (Arc::clone(matrix), options.clone(), Arc::clone(&raised));
        let b = T::columns(b);
        let size = if callback.is_some() { usize::MAX } else { n.saturating_mul(nrhs) };
        let answer = run(py, threads, size, move |monitor| {
            matrix.solve(&b, &chosen, &mut Telling { inner: monitor, callback, raised: inside })
        })?;
        rethrow(&raised)?;
        let answer = answer.map_err(|e| exception(py, &e))?;
        let report = Report::of(&answer, (n, nnz, nrhs), options, threads, start.elapsed());
        return Ok((crate::arrays::array_of_any(py, &answer.x, ndim)?, report));
    }
    let Method::Krylov(krylov) = options.method.clone() else {
        return Err(PyValueError::new_err(format!("{} takes a matrix, and neither M nor x0", options.method)));
    };
    let Krylov { method, stop, precond, .. } = krylov;
    if m.is_none() && !matches!(precond, Precond::None | Precond::Auto) {
        return Err(PyValueError::new_err("a preconditioner is named for an operator without entries, or beside x0"));
    }
    let rows = |a: Arc<AnyMatrix>| {
        let a = T::of_matrix(&a).ok_or_else(|| PyTypeError::new_err("A and b differ in dtype"))?;
        Ok::<_, PyErr>(a.rows().map_err(|e| exception(py, &e))?.clone())
    };
    let matrix = matrix.map(rows).transpose()?;
    let operator = match &matrix {
        Some(_) => None,
        None => Some(Called { f: a.clone().unbind(), n, raised: Arc::clone(&raised), scratch: Mutex::default() }),
    };
    // What a plain callable is cannot be known: flexible methods take anything, the others what the caller vouches for.
    let kind = match method {
        KrylovMethod::Cg => PreconditionerKind::Spd,
        KrylovMethod::Fgmres { .. } | KrylovMethod::Fcg => PreconditionerKind::Variable,
        _ => PreconditionerKind::General,
    };
    let given = match m {
        None => Given::None,
        Some(m) => match m.cast::<Preconditioner>() {
            Ok(own) => {
                let own = own.get();
                if own.kind != T::KIND || own.n != n {
                    return Err(PyValueError::new_err("M is of another dtype or size than b"));
                }
                Given::Own(own.of.take(py)?)
            }
            Err(_) => {
                Given::Called(CalledPreconditioner { f: m.clone().unbind(), n, kind, raised: Arc::clone(&raised) })
            }
        },
    };
    let inside = Arc::clone(&raised);
    let work = move |monitor: &mut dyn Monitor| -> Result<_, bt_formats::Error> {
        let mut x = x0.map_or_else(|| zeros(n, nrhs), Ok)?;
        let mut monitor = Telling { inner: monitor, callback, raised: inside };
        let operator: &dyn LinearOperator<T> = match (&matrix, &operator) {
            (Some(a), _) => a,
            (None, Some(f)) => f,
            (None, None) => unreachable!("there is a matrix or a callable"),
        };
        let mut by = |m: &mut dyn blocktri::Preconditioner<T>| {
            let one = |j| {
                let mut workspace = lockstep::<T>(method, n);
                let (b, x) = (b.col_as_slice(j), x.col_as_slice_mut(j));
                workspace.solve_one(operator, &mut *m, b, x, &stop, &mut monitor)
            };
            (0..nrhs).map(one).collect::<Result<Vec<_>, _>>()
        };
        let reports = match given {
            Given::None => by(&mut Identity::new(n)),
            Given::Own(mut taken) => taken.held(|of| by(&mut Shared { of, n, kind })),
            Given::Called(mut called) => by(&mut called),
        }?;
        let certificate = matrix.as_ref().map(|a| certify(a, Op::Identity, x.as_ref(), b.as_ref()));
        Ok((x, reports, certificate))
    };
    let (x, reports, certificate) = run(py, threads, usize::MAX, work)?.map_err(|e| {
        // What Python raised says more than what came of it.
        rethrow(&raised).err().unwrap_or_else(|| of_input(&e))
    })?;
    rethrow(&raised)?;
    let x_out = array_of::<T>(py, MatRef::as_ref(&x.as_ref()), ndim)?;
    let mut reports = reports.into_iter();
    let Some(mut report) = reports.next() else { return Err(PyValueError::new_err("there is no right-hand side")) };
    for other in reports {
        report.iterations += other.iterations;
        if report.outcome == blocktri::Outcome::Converged {
            report.outcome = other.outcome;
        }
        let residual = report.certificate.relative_residual.max(other.certificate.relative_residual);
        report.certificate = Certificate { relative_residual: residual, ..report.certificate };
    }
    if let Some(certificate) = certificate {
        report.certificate = certificate;
    }
    let solution = AnySolution {
        x: T::columns(Mat::zeros(0, 0)),
        report,
        method: options.method.clone(),
        reorder: Reorder::None,
        precond: Precond::None,
        blocks: None,
        rcond: None,
        device: blocktri::DeviceChoice::Cpu,
        warnings: Vec::new(),
        candidates: Vec::new(),
    };
    let mut report = Report::of(&solution, (n, nnz, nrhs), options, threads, start.elapsed());
    if m.is_some() {
        report.precond = "given";
    }
    Ok((x_out, report))
}

/// Raises what a call of Python raised. `StopIteration` from a callback is a request to stop, and no error.
fn rethrow(raised: &Raised) -> PyResult<()> {
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) if Python::attach(|py| error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py)) => Ok(()),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn lockstep<T: Number>(method: KrylovMethod, n: usize) -> Lockstep<T> {
    let single = |basis: Precision| basis == Precision::Single;
    match method {
        KrylovMethod::Cg => Lockstep::cg(n, 1),
        KrylovMethod::Fcg => Lockstep::flexible_cg(n, 1),
        KrylovMethod::Gmres { restart, basis } if single(basis) => Lockstep::gmres_single_basis(n, 1, restart),
        KrylovMethod::Gmres { restart, .. } => Lockstep::gmres(n, 1, restart),
        KrylovMethod::Fgmres { restart, basis } if single(basis) => Lockstep::fgmres_single_basis(n, 1, restart),
        KrylovMethod::Fgmres { restart, .. } => Lockstep::fgmres(n, 1, restart),
        _ => Lockstep::bicgstab(n, 1),
    }
}
