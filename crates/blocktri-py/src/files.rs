//! Files: Matrix Market, Harwell–Boeing and PETSc in, Matrix Market out.

use std::path::PathBuf;
use std::sync::Arc;

use blocktri::{AnyMatrix, AnyScalar, Error};
use bt_formats::{RhsInFile, matrix_market, read_system};
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::arrays::{columns, kind_of, typed, with_scalar};
use crate::errors::{exception, of_input};
use crate::matrix::Matrix;
use crate::run::run;

/// A matrix from a file, and sentences on what was not taken as it stands.
#[pyfunction]
pub fn read(py: Python<'_>, path: PathBuf) -> PyResult<(Matrix, Vec<String>)> {
    let system = run(py, None, usize::MAX, move |monitor| read_system(path, RhsInFile::Skip, monitor))?;
    let system = system.map_err(|e| of_input(&e))?;
    let matrix = match system.matrix {
        bt_formats::FileMatrix::Real(a) => AnyMatrix::from(a),
        bt_formats::FileMatrix::Complex(a) => AnyMatrix::from(a),
    };
    Ok((Matrix::new(matrix), system.notes))
}

/// Writes a sparse matrix, whole or not at all.
#[pyfunction]
pub fn write_matrix(py: Python<'_>, path: PathBuf, a: &Matrix, comments: Vec<String>) -> PyResult<()> {
    let matrix = Arc::clone(&a.of);
    let done = run(py, None, usize::MAX, move |_| {
        with_scalar!(matrix.kind(), T => {
            let Some(a) = T::of_matrix(&matrix) else { return Ok(()) };
            Ok::<_, Error>(matrix_market::write_csr_file(path, a.rows()?, &comments)?)
        })
    })?;
    done.map_err(|e| exception(py, &e))
}

/// Writes a vector or a dense matrix.
#[pyfunction]
pub fn write_columns(
    py: Python<'_>,
    path: PathBuf,
    x: &Bound<'_, PyUntypedArray>,
    comments: Vec<String>,
) -> PyResult<()> {
    with_scalar!(kind_of(x)?, T => {
        let x = columns(&typed::<T>(x)?.as_array(), "a")?;
        let done = run(py, None, usize::MAX, move |_| matrix_market::write_dense_file(path, x.as_ref(), &comments))?;
        done.map_err(|e| of_input(&e))
    })
}
