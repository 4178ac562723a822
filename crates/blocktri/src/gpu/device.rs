//! How methods on a GPU name it, fail and report.

use std::time::Duration;

use bt_formats::{Note, SolveReport};
use bt_kernels::{Device, DeviceError};

use crate::error::Error;

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Input(e) => Self::Input(e),
            DeviceError::Factor(e) => e.into(),
            other => Self::Device(other.to_string()),
        }
    }
}

/// The device as notes call it.
pub(super) fn name(device: &Device) -> String {
    format!("GPU {}, {}, with {} multiprocessors", device.ordinal(), device.name(), device.multiprocessors())
}

/// What complex numbers are told.
pub(super) fn complex() -> Error {
    Error::Usage { message: "on the GPU there is real arithmetic only; the matrix is complex".into() }
}

/// Puts into the report what came before the iteration.
pub(super) fn before(report: &mut SolveReport, reorder: Duration, setup: Duration, notes: Vec<Note>) {
    (report.times.reorder, report.times.setup) = (reorder, setup);
    report.notes.splice(0..0, notes);
}
