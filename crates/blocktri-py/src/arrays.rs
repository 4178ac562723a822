//! NumPy arrays to what the solvers take, and back.

use blocktri::faer::{Mat, MatRef};
use blocktri::{AnyColumns, AnyScalar, ScalarKind, c32, c64};
use numpy::ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewD, Ix1, Ix2, ShapeBuilder};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

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
    Ok(array.try_readonly()?)
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
pub fn columns<T: Number>(b: &ArrayViewD<'_, T>) -> PyResult<Mat<T>> {
    match b.ndim() {
        1 => {
            let b = line(b, "b")?;
            Ok(Mat::from_fn(b.len(), 1, |i, _| b[i]))
        }
        _ => Ok(matrix(&plane(b, "b")?)),
    }
}

/// A copy of a matrix, by columns.
pub fn matrix<T: Number>(a: &ArrayView2<'_, T>) -> Mat<T> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[[i, j]])
}

/// An array of as many dimensions as the right-hand side had.
pub fn array_of<'py, T: Number>(py: Python<'py>, x: MatRef<'_, T>, ndim: usize) -> PyResult<Bound<'py, PyAny>> {
    let (n, nrhs) = x.shape();
    let mut values = Vec::with_capacity(n * nrhs);
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
