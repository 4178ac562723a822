//! Band, tridiagonal and periodic systems from their own storage, one or a batch: LU with partial pivoting, or Cholesky, as LAPACK's drivers
//! do it. One system that fails does not touch the others.
//!
//! Shapes: `ab` batch × rows × n, `b` batch × n × nrhs; X comes as batch × nrhs × n, whose transposed view is what users see.

use std::mem::take;
use std::time::Instant;

use blocktri::faer::{MatMut, MatRef};
use blocktri::{FactorError, Monitor, Op, Outcome, Progress, Scalar, ScalarKind, SolveReport, Tridiagonal};
use bt_direct::batch::{Failure, Layout, Pivoting, SystemStatus, TridiagonalBatch};
use bt_direct::tridiagonal_once::{Elimination, TridiagonalOnce};
use bt_direct::{BandCholesky, BandLu, Cyclic, Factorization, PeriodicTridiagonal, TridiagonalLu};
use bt_formats::{Band, Bytes, Certificate, Matrix, Note, Par, PhaseTimes, RealScalar, certify, memory, zero};
use numpy::ndarray::{
    Array2, Array3, ArrayView1, ArrayView2, ArrayView3, ArrayViewD, Axis, Ix3, ShapeBuilder, ShapeError, s,
};
use numpy::{IntoPyArray, PyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::arrays::{Number, copied, kind_of, room, typed, with_scalar};
use crate::errors::{of_input, row_and_block};
use crate::report::Report;
use crate::run::{run, run_borrowed, size_of_flops};

/// A system that was not solved: its number, the kind of failure, the row or column, and a sentence.
pub(crate) type Failed = (usize, &'static str, Option<usize>, String);

/// X, the systems that failed, and the report of all where it was asked for.
pub(crate) type Answer<'py> = (Bound<'py, PyAny>, Vec<Failed>, Option<Report>);

/// Whether residuals are recomputed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certify {
    Yes,
    No,
}

/// Whether right-hand sides are searched for what is not finite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finite {
    Checked,
    Trusted,
}

/// Systems in band storage, and their right-hand sides.
pub(crate) struct Systems<T> {
    pub(crate) n: usize,
    pub(crate) nrhs: usize,
    /// Right-hand sides, then solutions: system by system, column by column.
    pub(crate) x: Vec<T>,
    pub(crate) certify: Certify,
}

/// What came of them.
pub(crate) struct Solved<T> {
    pub(crate) x: Vec<T>,
    pub(crate) failed: Vec<Failed>,
    pub(crate) method: &'static str,
    pub(crate) certificate: Option<Certificate>,
    /// Entries of the first matrix.
    pub(crate) entries: usize,
}

fn certify_of(asked: bool) -> Certify {
    if asked { Certify::Yes } else { Certify::No }
}

/// Three dimensions of what has two or three.
fn cube<'a, T>(array: &'a ArrayViewD<'_, T>, what: &str) -> PyResult<ArrayView3<'a, T>> {
    let array = array.view();
    let array = if array.ndim() == 2 { array.insert_axis(Axis(0)) } else { array };
    let array = array.into_dimensionality::<Ix3>();
    array.map_err(|_| PyValueError::new_err(format!("{what} must have two or three dimensions")))
}

/// The same of right-hand sides, which may be one vector.
pub(crate) fn right<'a, T>(array: &'a ArrayViewD<'_, T>) -> PyResult<ArrayView3<'a, T>> {
    if array.ndim() != 1 {
        return cube(array, "b");
    }
    let array = array.view().insert_axis(Axis(0)).insert_axis(Axis(2)).into_dimensionality::<Ix3>();
    array.map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The right-hand sides, checked against the matrices.
pub(crate) fn systems<T: Number>(
    b: &ArrayView3<'_, T>,
    batch: usize,
    n: usize,
    certify: Certify,
    finite: Finite,
) -> PyResult<Systems<T>> {
    let (found, rows, nrhs) = b.dim();
    if found != batch || rows != n {
        let why = "shapes of ab and b are not compatible.";
        return Err(PyValueError::new_err(format!(
            "{why} b is {found} × {rows} × {nrhs} and must be {batch} × {n} × any"
        )));
    }
    let count = batch.saturating_mul(n).saturating_mul(nrhs);
    let mut x = room(count, "the solution").map_err(|e| of_input(&e))?;
    for system in b.axis_iter(Axis(0)) {
        for column in system.columns() {
            match column.as_slice() {
                Some(values) => x.extend_from_slice(values),
                None => x.extend(column.iter().copied()),
            }
        }
    }
    if finite == Finite::Checked && !x.iter().all(|v| Scalar::is_finite(*v)) {
        return Err(PyValueError::new_err("array must not contain infs or NaNs"));
    }
    Ok(Systems { n, nrhs, x, certify })
}

pub(crate) fn answer<T: Number>(
    py: Python<'_>,
    solved: Solved<T>,
    shape: (usize, usize, usize),
    ndim: usize,
    start: Instant,
    threads: Option<usize>,
) -> PyResult<Answer<'_>> {
    let report = solved.certificate.map(|certificate| report(&solved, certificate, shape, start, threads));
    let (_, nrhs, n) = shape;
    let wrong = |e: ShapeError| PyValueError::new_err(e.to_string());
    let x = match ndim {
        1 => PyArray1::from_vec(py, solved.x).into_any(),
        2 => Array2::from_shape_vec((n, nrhs).f(), solved.x).map_err(wrong)?.into_pyarray(py).into_any(),
        _ => Array3::from_shape_vec(shape, solved.x).map_err(wrong)?.into_pyarray(py).into_any(),
    };
    Ok((x, solved.failed, report))
}

/// The report of all systems, with the errors of the worst that was solved.
fn report<T: Number>(
    solved: &Solved<T>,
    certificate: Certificate,
    (batch, nrhs, n): (usize, usize, usize),
    start: Instant,
    threads: Option<usize>,
) -> Report {
    /// A backward error of so many units of rounding is no accident.
    const WEAK: f64 = 1e3;
    let epsilon = <T::Real as RealScalar>::EPSILON.to_f64();
    let good = solved.failed.is_empty() && certificate.backward_error <= WEAK * epsilon;
    let mut status = vec!["solved".to_owned(); batch];
    let mut notes = Vec::new();
    for (system, _, _, text) in &solved.failed {
        if let Some(status) = status.get_mut(*system) {
            status.clone_from(text);
        }
    }
    if batch > 1 {
        notes.push(Note::Batch { systems: batch, rows: n, unsolved: solved.failed.len() });
    }
    let total = start.elapsed();
    let report = SolveReport {
        method: solved.method,
        outcome: if good { Outcome::Converged } else { Outcome::Inaccurate },
        iterations: 0,
        recurrence_residual: None,
        certificate,
        operator_applications: 0,
        preconditioner_applications: batch * nrhs,
        times: PhaseTimes { solve: total, ..PhaseTimes::default() },
        bytes: Bytes::default(),
        notes,
    };
    Report {
        scalar: T::KIND,
        sizes: (n, solved.entries, nrhs),
        blocks: None,
        method_requested: solved.method.to_owned(),
        precond: "none",
        reorder: "none",
        device: "cpu".to_owned(),
        threads,
        seed: None,
        rcond: None,
        total,
        of: report,
        warnings: Vec::new(),
        status,
    }
}

/// Band systems by LU with partial pivoting; three diagonals by the methods for them.
#[pyfunction]
#[pyo3(signature = (kl, ku, ab, b, check_finite, certificate, threads=None))]
pub fn solve_band<'py>(
    py: Python<'py>,
    kl: usize,
    ku: usize,
    ab: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
    check_finite: bool,
    certificate: bool,
    threads: Option<usize>,
) -> PyResult<Answer<'py>> {
    let start = Instant::now();
    with_scalar!(kind_of(ab)?, T => {
        let (ab, b) = (typed::<T>(ab)?, typed::<T>(b)?);
        let (ab, b) = (ab.as_array(), b.as_array());
        let ndim = b.ndim();
        let (ab, b) = (cube(&ab, "ab")?, right(&b)?);
        let (batch, rows, n) = ab.dim();
        if rows != kl.saturating_add(ku).saturating_add(1) {
            return Err(PyValueError::new_err(format!("ab has {rows} rows and must have l + u + 1")));
        }
        let finite = if check_finite { Finite::Checked } else { Finite::Trusted };
        if (kl, ku) == (1, 1) && batch > 1 && !certificate && b.dim().0 == batch && b.dim().1 == n && n > 0 {
            let nrhs = b.dim().2;
            let solved = run_borrowed(py, threads, |monitor| in_chunks(&ab, &b, finite, monitor))??;
            return answer::<T>(py, solved, (batch, nrhs, n), ndim, start, threads);
        }
        let systems = systems::<T>(&b, batch, n, certify_of(certificate), finite)?;
        let nrhs = systems.nrhs;
        let [rows_all, below, width, many] = [batch * n, kl, kl + ku, nrhs].map(|count| count as f64);
        let size = size_of_flops(rows_all * (2.0 * below * (width + 1.0) + 4.0 * (width + 1.0) * many));
        let solved = if (kl, ku) == (1, 1) {
            let three = py.detach(|| Diagonals::of_band(&ab)).map_err(|e| of_input(&e))?;
            run(py, threads, size, move |_| tridiagonal(three, systems))?
        } else {
            let bands = py.detach(|| {
                let filled = ab.axis_iter(Axis(0)).map(|one| band(kl, ku, &one));
                filled.collect::<Result<Vec<_>, bt_formats::Error>>()
            });
            let bands = bands.map_err(|e| of_input(&e))?;
            run(py, threads, size, move |monitor| {
                each(bands, systems, ("band-lu", Alone::Beside), monitor, |band, monitor| BandLu::with_monitor(band, monitor), BandLu::from_band)
            })?
        };
        answer::<T>(py, solved, (batch, nrhs, n), ndim, start, threads)
    })
}

/// Hermitian positive definite band systems by Cholesky; `ab` holds the lower triangle: a(j + r, j) at (r, j).
#[pyfunction]
#[pyo3(signature = (ab, b, certificate, threads=None))]
pub fn solve_hermitian_band<'py>(
    py: Python<'py>,
    ab: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
    certificate: bool,
    threads: Option<usize>,
) -> PyResult<Answer<'py>> {
    let start = Instant::now();
    with_scalar!(kind_of(ab)?, T => {
        let (ab, b) = (typed::<T>(ab)?, typed::<T>(b)?);
        let (ab, b) = (ab.as_array(), b.as_array());
        let ndim = b.ndim();
        let (ab, b) = (cube(&ab, "ab")?, right(&b)?);
        let (batch, rows, n) = ab.dim();
        let Some(k) = rows.checked_sub(1) else { return Err(PyValueError::new_err("ab has no rows")) };
        let systems = systems::<T>(&b, batch, n, certify_of(certificate), Finite::Trusted)?;
        let nrhs = systems.nrhs;
        let [rows_all, width, many] = [batch * n, k, nrhs].map(|count| count as f64);
        let size = size_of_flops(rows_all * (width * (width + 2.0) + 4.0 * (width + 1.0) * many));
        let bands = py.detach(|| {
            // A certificate wants all of A; the factorization reads the lower triangle alone.
            let filled =
                ab.axis_iter(Axis(0)).map(|one| if certificate { band(k, k, &whole(&one)?.view()) } else { band(k, 0, &one) });
            filled.collect::<Result<Vec<_>, bt_formats::Error>>()
        });
        let bands = bands.map_err(|e| of_input(&e))?;
        let solved = run(py, threads, size, move |monitor| {
            each(bands, systems, ("band-cholesky", Alone::Inside), monitor, |band, monitor| BandCholesky::with_monitor(band, monitor), BandCholesky::from_lower)
        })?;
        answer::<T>(py, solved, (batch, nrhs, n), ndim, start, threads)
    })
}

/// Periodic tridiagonal systems: `dl`, `d` and `du` batch × 1 × n, with dl[0] at (0, n − 1) and du[n − 1] at (n − 1, 0).
#[pyfunction]
#[pyo3(signature = (dl, d, du, b, certificate, threads=None))]
pub fn solve_periodic<'py>(
    py: Python<'py>,
    dl: &Bound<'py, PyUntypedArray>,
    d: &Bound<'py, PyUntypedArray>,
    du: &Bound<'py, PyUntypedArray>,
    b: &Bound<'py, PyUntypedArray>,
    certificate: bool,
    threads: Option<usize>,
) -> PyResult<Answer<'py>> {
    let start = Instant::now();
    with_scalar!(kind_of(d)?, T => {
        let (dl, d, du, b) = (typed::<T>(dl)?, typed::<T>(d)?, typed::<T>(du)?, typed::<T>(b)?);
        let (dl, d, du, b) = (dl.as_array(), d.as_array(), du.as_array(), b.as_array());
        let ndim = b.ndim();
        let (dl, d, du, b) = (cube(&dl, "dl")?, cube(&d, "d")?, cube(&du, "du")?, right(&b)?);
        let (batch, _, n) = d.dim();
        if dl.dim() != d.dim() || du.dim() != d.dim() || n < 3 {
            return Err(PyValueError::new_err("dl, d and du must be of one length, at least 3"));
        }
        let systems = systems::<T>(&b, batch, n, certify_of(certificate), Finite::Trusted)?;
        let nrhs = systems.nrhs;
        let size = size_of_flops((batch * n) as f64 * (20.0 + 14.0 * nrhs as f64));
        let mut cyclic = room(batch, "the systems").map_err(|e| of_input(&e))?;
        for s in 0..batch {
            let of = |a: &ArrayView3<'_, T>| copied(&a.slice(s![s, 0, ..]), "the diagonals");
            let (mut lower, mut upper) = (of(&dl)?, of(&du)?);
            let (above, below) = (take(&mut lower[0]), take(&mut upper[n - 1]));
            let three = Tridiagonal::new(lower, of(&d)?, upper).map_err(|e| of_input(&e))?;
            cyclic.push(Cyclic::new(three, below, above).map_err(|e| of_input(&e))?);
        }
        let solved = run(py, threads, size, move |monitor| {
            each(cyclic, systems, ("periodic-lu", Alone::Beside), monitor, |a, monitor| PeriodicTridiagonal::with_monitor(a, monitor), |a| PeriodicTridiagonal::new(&a))
        })?;
        answer::<T>(py, solved, (batch, nrhs, n), ndim, start, threads)
    })
}

/// The band of one system: line r of `ab` holds a(j + r − ku, j).
fn band<T: Number>(kl: usize, ku: usize, ab: &ArrayView2<'_, T>) -> Result<Band<T>, bt_formats::Error> {
    let (rows, n) = ab.dim();
    if let Some(columns) = ab.t().as_slice() {
        return Band::from_lapack(kl, ku, MatRef::from_column_major_slice(columns, rows, n));
    }
    if !ab.is_standard_layout() {
        memory::ask(ab.len() as u64 * size_of::<T>() as u64, "a copy of the bands")?;
    }
    let ab = ab.as_standard_layout();
    Band::from_lapack(kl, ku, MatRef::from_row_major_slice(ab.as_slice().unwrap_or_default(), rows, n))
}

/// The whole of a Hermitian band from its lower triangle: what is above the diagonal line by line, then what is given.
fn whole<T: Number>(lower: &ArrayView2<'_, T>) -> Result<Array2<T>, bt_formats::Error> {
    let (k, n) = (lower.nrows() - 1, lower.ncols());
    memory::ask(2 * lower.len() as u64 * size_of::<T>() as u64, "the bands")?;
    Ok(Array2::from_shape_fn((2 * k + 1, n), |(r, j)| {
        if r >= k {
            return lower[[r - k, j]];
        }
        // a(j − d, j) = conj(a(j, j − d)) with d = k − r
        let d = k - r;
        if j >= d { Scalar::conj(lower[[d, j - d]]) } else { zero() }
    }))
}

/// Adds the numbers of a row.
fn extend<T: Copy>(into: &mut Vec<T>, row: &ArrayView1<'_, T>) {
    match row.as_slice() {
        Some(row) => into.extend_from_slice(row),
        None => into.extend(row.iter().copied()),
    }
}

/// The diagonals of many systems, one system after the other.
struct Diagonals<T> {
    batch: usize,
    lower: Vec<T>,
    diag: Vec<T>,
    upper: Vec<T>,
}

impl<T: Number> Diagonals<T> {
    fn of_band(ab: &ArrayView3<'_, T>) -> Result<Self, bt_formats::Error> {
        let (batch, _, n) = ab.dim();
        let line = || room(batch.saturating_mul(n), "the diagonals");
        let mut of = Self { batch, lower: line()?, diag: line()?, upper: line()? };
        for system in ab.axis_iter(Axis(0)) {
            // Row i of the matrix has a(i, i + 1) in column i + 1, and a(i, i − 1) in column i − 1.
            extend(&mut of.upper, &system.slice(s![0, 1..]));
            of.upper.push(zero());
            extend(&mut of.diag, &system.row(1));
            of.lower.push(zero());
            extend(&mut of.lower, &system.slice(s![2, ..n - 1]));
        }
        Ok(of)
    }
}

/// Whether |lᵢ| + |uᵢ| ≤ 0.9·|dᵢ| in every row: elimination without pivoting is safe then, and the influence of an unknown is below
/// rounding after 384 rows.
fn is_dominant<T: Scalar>(a: &Tridiagonal<T>) -> bool {
    let share = T::Real::from_f64(0.9);
    let rows = a.lower().iter().zip(a.diag()).zip(a.upper());
    rows.fold(true, |all, ((l, d), u)| all & (Scalar::abs(*l) + Scalar::abs(*u) <= Scalar::abs(*d) * share))
}

/// Rows from which one system is solved in pieces.
const IN_PIECES: usize = 512;

/// Three diagonals: a batch in lanes, one system in pieces, many right-hand sides from factors.
fn tridiagonal<T: Number>(three: Diagonals<T>, systems: Systems<T>) -> Solved<T> {
    let Systems { n, nrhs, mut x, certify: asked } = systems;
    let batch = three.batch;
    let given = (asked == Certify::Yes).then(|| x.clone());
    let (mut failed, mut method) = (Vec::new(), "tridiagonal-lu");
    let Diagonals { mut lower, mut diag, mut upper, .. } = three;
    let invalid = |e: &dyn std::fmt::Display| vec![(0, "invalid", None, e.to_string())];
    let mut matrices = Vec::new();
    if batch == 1 {
        match Tridiagonal::new(take(&mut lower), take(&mut diag), take(&mut upper)) {
            Ok(a) => matrices.push(a),
            Err(e) => failed = invalid(&e),
        }
    } else if given.is_some() {
        for s in 0..batch {
            let of = |v: &[T]| v[s * n..(s + 1) * n].to_vec();
            match Tridiagonal::new(of(&lower), of(&diag), of(&upper)) {
                Ok(a) => matrices.push(a),
                Err(e) => failed = invalid(&e),
            }
        }
    }
    if batch == 1 && nrhs > 0 && failed.is_empty() {
        let a = &matrices[0];
        let done = if nrhs == 1 && n >= IN_PIECES {
            once(a, &mut x).map(|name| method = name)
        } else {
            TridiagonalLu::new(a).map(|lu| lu.solve_in_place(MatMut::from_column_major_slice_mut(&mut x, n, nrhs)))
        };
        if let Err(e) = done {
            x.fill(nan());
            failed.push(failure(0, &e));
        }
    } else if batch > 1 && failed.is_empty() {
        match TridiagonalBatch::new(Layout::Strided, n, lower, diag, upper) {
            Err(e) => failed = invalid(&e),
            Ok(matrix) => failed = lanes(&matrix, &mut x, (batch, n, nrhs)),
        }
    }
    let certificate = given.map(|b| worst(&matrices, &x, &b, (n, nrhs), &mut failed));
    let entries = matrices.first().map_or(0, Matrix::nnz);
    Solved { x, failed, method, certificate, entries }
}

/// One system in pieces: without pivoting where the matrix is dominant and the cuts hold, else with it. The method taken.
fn once<T: Number>(a: &Tridiagonal<T>, x: &mut [T]) -> Result<&'static str, FactorError> {
    let mut once = TridiagonalOnce::new(x.len())?;
    let par = Par::auto(4 * size_of_val(x));
    if is_dominant(a) {
        let b = x.to_vec();
        if once.solve_in_place(a, x, Elimination::Dominant, par).is_ok() {
            return Ok("tridiagonal-once");
        }
        x.copy_from_slice(&b);
    }
    once.solve_in_place(a, x, Elimination::Pivoted, par).map(|_| "tridiagonal-lu")
}

fn of_status(failure: &Failure) -> Failed {
    let (kind, row) = match failure.status {
        SystemStatus::Singular { column } => ("singular", Some(column)),
        SystemStatus::Breakdown { row } => ("breakdown", Some(row)),
        SystemStatus::NotFinite { row } => ("not-finite", Some(row)),
        _ => ("failed", None),
    };
    (failure.system, kind, row, failure.status.to_string())
}

/// A batch of tridiagonal systems without a certificate: some at a time, so that what is copied stays in a cache.
fn in_chunks<T: Number>(
    ab: &ArrayView3<'_, T>,
    b: &ArrayView3<'_, T>,
    finite: Finite,
    monitor: &mut dyn Monitor,
) -> PyResult<Solved<T>> {
    /// Values of the three diagonals that are copied at a time.
    const VALUES: usize = 1 << 17;
    /// Systems side by side.
    const LANES: usize = 16;
    let ((batch, _, n), nrhs) = (ab.dim(), b.dim().2);
    let chunk = (VALUES / (3 * n) / LANES).max(1) * LANES;
    let count = batch.saturating_mul(nrhs).saturating_mul(n);
    let mut x = room(count, "the solution").map_err(|e| of_input(&e))?;
    x.resize(count, zero::<T>());
    let mut failed: Vec<Failed> = Vec::new();
    // So many at a time that every thread has some, and signals are looked at in between.
    let round = chunk * 4 * rayon::current_num_threads();
    for first in (0..batch).step_by(round) {
        let last = (first + round).min(batch);
        let part = &mut x[first * nrhs * n..last * nrhs * n];
        let found: Vec<PyResult<Vec<Failed>>> = part
            .par_chunks_mut((chunk * nrhs * n).max(1))
            .enumerate()
            .map(|(c, x)| {
                let from = first + c * chunk;
                let of = from..(from + chunk).min(last);
                let (ab, b) = (ab.slice(s![of.clone(), .., ..]), b.slice(s![of.clone(), .., ..]));
                let right = systems::<T>(&b, of.len(), n, Certify::No, finite)?;
                let solved = tridiagonal(Diagonals::of_band(&ab).map_err(|e| of_input(&e))?, right);
                x.copy_from_slice(&solved.x);
                Ok(solved.failed.into_iter().map(|(s, kind, row, text)| (from + s, kind, row, text)).collect())
            })
            .collect();
        for found in found {
            failed.extend(found?);
        }
        let progress = Progress::Step { phase: "solve", done: last, total: batch };
        if monitor.observe(progress).is_break() {
            break;
        }
    }
    Ok(Solved { x, failed, method: "tridiagonal-lu", certificate: None, entries: 0 })
}

/// One column of every system at a time.
fn lanes<T: Number>(matrix: &TridiagonalBatch<T>, x: &mut [T], (batch, n, nrhs): (usize, usize, usize)) -> Vec<Failed> {
    let mut column = vec![zero(); batch * n];
    let mut failed: Vec<Failed> = Vec::new();
    if nrhs == 1 {
        return match matrix.solve_in_place(x, Pivoting::Partial) {
            Err(e) => vec![(0, "invalid", None, e.to_string())],
            Ok(verdict) => verdict.failures().iter().map(of_status).collect(),
        };
    }
    for j in 0..nrhs {
        let place = |s: usize| (s * nrhs + j) * n..(s * nrhs + j + 1) * n;
        for s in 0..batch {
            column[s * n..(s + 1) * n].copy_from_slice(&x[place(s)]);
        }
        match matrix.solve_in_place(&mut column, Pivoting::Partial) {
            Err(e) => return vec![(0, "invalid", None, e.to_string())],
            Ok(verdict) => {
                // What fails fails for every column.
                if j == 0 {
                    failed.extend(verdict.failures().iter().map(of_status));
                }
            }
        }
        for s in 0..batch {
            x[place(s)].copy_from_slice(&column[s * n..(s + 1) * n]);
        }
    }
    failed
}

/// How the matrix of a single system without a certificate becomes factors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    /// In memory of their own, observed, where there is a second thread: one takes either end.
    Beside,
    /// In the memory of the matrix.
    Inside,
}

/// Every system by a factorization of its own, threads over systems. Where nobody asks for a certificate the factors of a batch take the
/// memory of the matrices.
fn each<T: Number, A: Matrix<T> + Send + Sync, F: Factorization<T>>(
    mut matrices: Vec<A>,
    systems: Systems<T>,
    (method, alone): (&'static str, Alone),
    monitor: &mut dyn Monitor,
    factor: impl Fn(&A, &mut dyn Monitor) -> Result<F, FactorError> + Sync,
    consume: impl Fn(A) -> Result<F, FactorError> + Sync,
) -> Solved<T> {
    let Systems { n, nrhs, mut x, certify: asked } = systems;
    let given = (asked == Certify::Yes).then(|| x.clone());
    let solve = |s: usize, factors: Result<F, FactorError>, x: &mut [T]| match factors {
        Ok(factors) => {
            factors.solve_in_place(MatMut::from_column_major_slice_mut(x, n, nrhs));
            None
        }
        Err(e) => {
            x.fill(nan());
            Some(failure(s, &e))
        }
    };
    let mut failed: Vec<Failed> = Vec::new();
    if !x.is_empty() {
        let part = n * nrhs;
        let beside = alone == Alone::Beside && rayon::current_num_threads() > 1;
        if given.is_none() && (matrices.len() > 1 || !beside) {
            let taken = take(&mut matrices);
            let found = taken.into_par_iter().zip(x.par_chunks_mut(part)).enumerate();
            failed = found.filter_map(|(s, (a, x))| solve(s, consume(a), x)).collect();
        } else if let [a] = &*matrices {
            failed.extend(solve(0, factor(a, monitor), &mut x));
        } else {
            let found = matrices.par_iter().zip(x.par_chunks_mut(part)).enumerate();
            failed = found.filter_map(|(s, (a, x))| solve(s, factor(a, &mut ()), x)).collect();
        }
    }
    failed.sort_by_key(|f| f.0);
    let certificate = given.map(|b| worst(&matrices, &x, &b, (n, nrhs), &mut failed));
    let entries = matrices.first().map_or(0, Matrix::nnz);
    Solved { x, failed, method, certificate, entries }
}

/// The largest errors of all systems that were solved. One whose solution is not finite was not, whatever its factors said.
fn worst<T: Number, A: Matrix<T>>(
    matrices: &[A],
    x: &[T],
    b: &[T],
    (n, nrhs): (usize, usize),
    failed: &mut Vec<Failed>,
) -> Certificate {
    let mut most = Certificate::default();
    for (s, a) in matrices.iter().enumerate().filter(|_| n * nrhs > 0) {
        let part = s * n * nrhs..(s + 1) * n * nrhs;
        let of = |v| MatRef::from_column_major_slice(v, n, nrhs);
        let (x, b) = (&x[part.clone()], &b[part]);
        if let Some(one) = overflow(s, x, n) {
            if failed.iter().all(|f| f.0 != s) {
                failed.push(one);
            }
            continue;
        }
        let c = certify(a, Op::Identity, of(x), of(b));
        most.relative_residual = most.relative_residual.max(c.relative_residual);
        most.backward_error = most.backward_error.max(c.backward_error);
        most.componentwise_backward_error = most.componentwise_backward_error.max(c.componentwise_backward_error);
    }
    failed.sort_by_key(|f| f.0);
    most
}

/// What there is to say of a solution that is not finite.
pub(crate) fn overflow<T: Scalar>(system: usize, x: &[T], n: usize) -> Option<Failed> {
    let row = x.iter().position(|v| !Scalar::is_finite(*v))? % n;
    Some((system, "overflow", Some(row), format!("the solution is not finite in row {row} (from 0)")))
}

pub(crate) fn nan<T: Scalar>() -> T {
    let im = if matches!(T::KIND, ScalarKind::F32 | ScalarKind::F64) { 0.0 } else { f64::NAN };
    T::rounded(f64::NAN, im)
}

pub(crate) fn failure(system: usize, error: &FactorError) -> Failed {
    let text = error.to_string();
    match error {
        FactorError::Singular(place) => (system, "singular", Some(place.column), text),
        FactorError::Breakdown { place, .. } => (system, "breakdown", row_and_block(*place).0, text),
        FactorError::Failed { .. } => (system, "breakdown", None, text),
        FactorError::Input(bt_formats::Error::NonFinite { row, .. }) => (system, "not-finite", Some(*row), text),
        FactorError::Stopped => (system, "stopped", None, text),
        FactorError::Input(_) => (system, "invalid", None, text),
        _ => (system, "failed", None, text),
    }
}
