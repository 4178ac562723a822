//! NumPy arrays to what the solvers take, and back.

use blocktri::faer::{Mat, MatRef};
use blocktri::{AnyColumns, AnyScalar, ScalarKind, c32, c64};
use bt_formats::{memory, zero};
use numpy::ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewD, Ix1, Ix2, ShapeBuilder};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::of_input;

/// A scalar of both worlds.
pub trait Number: AnyScalar + Element + Copy {}

impl Number for f32 {}
impl Number for f64 {}
impl Number for c32 {}
impl Number for c64 {}

/// The scalar of an array of native byte order.
pub fn kind_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<ScalarKind> {
    let py = array.py();
    let found = array.dtype();
    for (kind, known) in [
        (ScalarKind::F64, dtype::<f64>(py)),
        (ScalarKind::F32, dtype::<f32>(py)),
        (ScalarKind::C64, dtype::<c64>(py)),
        (ScalarKind::C32, dtype::<c32>(py)),
    ] {
        if found.is_equiv_to(&known) {
            return Ok(kind);
        }
    }
    Err(PyTypeError::new_err(format!(
        "an array of float32, float64, complex64 or complex128 is needed, not of {found}"
    )))
}

/// NumPy's name of a scalar.
pub fn dtype_name(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::F32 => "float32",
        ScalarKind::F64 => "float64",
        ScalarKind::C32 => "complex64",
        ScalarKind::C64 => "complex128",
    }
}

/// The expression with `$T` the scalar of that kind.
macro_rules! with_scalar {
    ($kind:expr, $T:ident => $body:expr) => {
        match $kind {
            blocktri::ScalarKind::F64 => {
                type $T = f64;
                $body
            }
            blocktri::ScalarKind::F32 => {
                type $T = f32;
                $body
            }
            blocktri::ScalarKind::C64 => {
                type $T = blocktri::c64;
                $body
            }
            blocktri::ScalarKind::C32 => {
                type $T = blocktri::c32;
                $body
            }
        }
    };
}
pub(crate) use with_scalar;

/// The array, if it is of T.
pub fn typed<'py, T: Number>(array: &Bound<'py, PyUntypedArray>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| {
        PyTypeError::new_err(format!("an array of {} is needed, not of {}", dtype_name(T::KIND), array.dtype()))
    })?;
    Ok(regular(array)?.try_readonly()?)
}

/// The array itself where views of Rust can say where its items lie: aligned, and apart by multiples of their size. Fields of records need
/// not be; they are copied.
pub fn regular<'py, T: Element>(array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    /// What the views can hold.
    const DIMENSIONS: usize = 32;
    if array.ndim() > DIMENSIONS {
        return Err(PyValueError::new_err(format!(
            "an array of {} dimensions is too much: {DIMENSIONS} are taken",
            array.ndim()
        )));
    }
    let size = size_of::<T>().cast_signed();
    if array.is_aligned() && array.strides().iter().all(|stride| stride % size == 0) {
        return Ok(array.clone());
    }
    Ok(array.call_method0("copy")?.cast_into::<PyArrayDyn<T>>()?)
}

/// Room for so many values.
///
/// # Errors
/// When there is no memory for them.
pub fn room<T>(count: usize, what: &str) -> Result<Vec<T>, bt_formats::Error> {
    let needed = (count as u64).saturating_mul(size_of::<T>() as u64);
    memory::ask(needed, what)?;
    let mut made = Vec::new();
    let taken = made.try_reserve_exact(count);
    taken.map_err(|_| bt_formats::Error::NotEnoughMemory {
        what: what.to_owned(),
        needed,
        available: memory::available().unwrap_or(0),
    })?;
    Ok(made)
}

/// A copy of a vector.
pub fn copied<T: Copy>(of: &ArrayView1<'_, T>, what: &str) -> PyResult<Vec<T>> {
    let mut made = room(of.len(), what).map_err(|e| of_input(&e))?;
    made.extend(of.iter().copied());
    Ok(made)
}

/// Vectors side by side, where there is memory for them.
pub fn mat<T: Number>(
    nrows: usize,
    ncols: usize,
    what: &str,
    of: impl FnMut(usize, usize) -> T,
) -> Result<Mat<T>, bt_formats::Error> {
    /// To multiples of so many bytes columns are made longer.
    const LINE: usize = 64;
    let padded = nrows.saturating_add(LINE / size_of::<T>());
    // It goes back, and what is made takes it.
    drop(room::<T>(padded.saturating_mul(ncols), what)?);
    Ok(Mat::from_fn(nrows, ncols, of))
}

/// Zeros where products go.
pub fn zeros<T: Number>(nrows: usize, ncols: usize) -> Result<Mat<T>, bt_formats::Error> {
    mat(nrows, ncols, "the product", |_, _| zero())
}

/// One dimension, or an error that says what has more.
pub fn line<'a, T>(array: &'a ArrayViewD<'_, T>, what: &str) -> PyResult<ArrayView1<'a, T>> {
    let dimensions = array.ndim();
    array
        .view()
        .into_dimensionality::<Ix1>()
        .map_err(|_| PyValueError::new_err(format!("{what} must have one dimension, not {dimensions}")))
}

/// Two dimensions, or an error that says what has another number.
pub fn plane<'a, T>(array: &'a ArrayViewD<'_, T>, what: &str) -> PyResult<ArrayView2<'a, T>> {
    let dimensions = array.ndim();
    array
        .view()
        .into_dimensionality::<Ix2>()
        .map_err(|_| PyValueError::new_err(format!("{what} must have two dimensions, not {dimensions}")))
}

/// A copy as columns of a vector, or of a matrix of vectors.
pub fn columns<T: Number>(b: &ArrayViewD<'_, T>, what: &str) -> PyResult<Mat<T>> {
    match b.ndim() {
        1 => {
            let b = line(b, what)?;
            mat(b.len(), 1, what, |i, _| b[i]).map_err(|e| of_input(&e))
        }
        2 => matrix(&plane(b, what)?, what),
        dimensions => Err(PyValueError::new_err(format!("{what} must have one or two dimensions, not {dimensions}"))),
    }
}

/// A copy of a matrix, by columns.
pub fn matrix<T: Number>(a: &ArrayView2<'_, T>, what: &str) -> PyResult<Mat<T>> {
    mat(a.nrows(), a.ncols(), what, |i, j| a[[i, j]]).map_err(|e| of_input(&e))
}

/// An array of as many dimensions as the right-hand side had.
pub fn array_of<'py, T: Number>(py: Python<'py>, x: MatRef<'_, T>, ndim: usize) -> PyResult<Bound<'py, PyAny>> {
    let (n, nrhs) = x.shape();
    let mut values = room(n.saturating_mul(nrhs), "the solution").map_err(|e| of_input(&e))?;
    for column in x.col_iter() {
        values.extend(column.iter().copied());
    }
    if ndim == 1 {
        return Ok(PyArray1::from_vec(py, values).into_any());
    }
    let array = Array2::from_shape_vec((n, nrhs).f(), values).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(array.into_pyarray(py).into_any())
}

/// The same of columns of any scalar.
pub fn array_of_any<'py>(py: Python<'py>, x: &AnyColumns, ndim: usize) -> PyResult<Bound<'py, PyAny>> {
    with_scalar!(x.kind(), T => {
        let x = T::of_columns(x).ok_or_else(|| PyTypeError::new_err("columns of an unknown scalar"))?;
        array_of::<T>(py, x.as_ref(), ndim)
    })
}
