//! Errors of the library as exceptions of Python: those of `blocktri._errors`, and the built-in ones that NumPy and SciPy raise.

use std::io::ErrorKind;

use blocktri::{Error, FactorError, Place};
use bt_formats::Error as InputError;
use pyo3::exceptions::{PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let text = match error.help() {
        Some(help) if matches!(error, Error::UnknownName { .. }) => format!("{error}; {help}"),
        _ => error.to_string(),
    };
    match error {
        Error::Input(input) | Error::Factor(FactorError::Input(input)) => of_input(input),
        Error::Singular(place) => own(py, "SingularMatrixError", &text, Some(place.column), place.block),
        Error::Factor(FactorError::Singular(place)) => {
            own(py, "SingularMatrixError", &text, Some(place.column), place.block)
        }
        Error::Factor(FactorError::Stopped) => PyRuntimeError::new_err(text),
        Error::Factor(FactorError::Breakdown { place, .. }) => {
            let (row, block) = row_and_block(*place);
            own(py, "BreakdownError", &text, row, block)
        }
        Error::Factor(_) => own(py, "BreakdownError", &text, None, None),
        Error::Device(_) => own(py, "DeviceError", &text, None, None),
        _ => PyValueError::new_err(text),
    }
}

/// The exception for an input that cannot be used.
pub fn of_input(error: &InputError) -> PyErr {
    let text = match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    };
    match error {
        InputError::NotEnoughMemory { .. } => PyMemoryError::new_err(text),
        InputError::Io { file, source } => {
            // As Python's own: number, reason, name.
            let name = file.display().to_string();
            match (source.kind(), source.raw_os_error()) {
                // By its number it becomes FileNotFoundError, IsADirectoryError and so on.
                (_, Some(number)) => PyOSError::new_err((number, source.to_string(), name)),
                (ErrorKind::NotFound, None) => PyFileNotFoundError::new_err(text),
                // What was to be written or the name cannot be, and no disk is to blame.
                (ErrorKind::InvalidInput | ErrorKind::InvalidData, None) => PyValueError::new_err(text),
                _ => PyOSError::new_err(text),
            }
        }
        _ => PyValueError::new_err(text),
    }
}

/// Row or column, and block, of a place.
pub fn row_and_block(place: Option<Place>) -> (Option<usize>, Option<usize>) {
    match place {
        Some(Place::Row(i) | Place::Column(i)) => (Some(i), None),
        Some(Place::Block(j)) => (None, Some(j)),
        Some(Place::Partition(_)) | None => (None, None),
    }
}

/// An exception of the package, with the place.
pub fn own(py: Python<'_>, name: &str, text: &str, row: Option<usize>, block: Option<usize>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("blocktri._errors")?.getattr(name)?;
        let arguments = PyTuple::new(py, [text.into_pyobject(py)?.into_any()])?;
        let exception = class.call1(arguments)?;
        if let Some(row) = row {
            exception.setattr("row", row)?;
        }
        if let Some(block) = block {
            exception.setattr("block", block)?;
        }
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|failed| failed)
}
