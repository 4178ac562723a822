//! What can go wrong on a device. The host's data is intact after each of these: nothing is copied back before a run has ended well.

use bt_direct::FactorError;
use bt_formats::Error as InputError;
use cust::error::CudaError;

/// Why a device did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no driver, or it cannot start.
    #[error("no GPU: {reason}")]
    NoDriver {
        /// What the loader or the driver said.
        reason: String,
    },
    /// The driver sees fewer devices.
    #[error("no GPU {ordinal}: the driver sees {count}")]
    NoDevice {
        /// The number asked for, from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// The memory of the device does not suffice.
    #[error("{needed} bytes are needed on the GPU, {free} are free")]
    OutOfMemory {
        /// Bytes of the vector asked for.
        needed: usize,
        /// Bytes free before.
        free: usize,
    },
    /// A kernel could not be loaded or started.
    #[error("the GPU did not start {kernel}: {reason}")]
    Launch {
        /// The kernel, or the family it is in.
        kernel: String,
        /// What the driver said.
        reason: String,
    },
    /// A kernel failed, or the device is gone: everything on it is lost, and a new process is needed to use it again.
    #[error("the GPU was lost while {during}: {reason}")]
    Lost {
        /// What was waited for.
        during: String,
        /// What the driver said.
        reason: String,
    },
    /// The input cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The preconditioner or the blocks cannot be factored.
    #[error(transparent)]
    Factor(#[from] FactorError),
}

/// Result of device operations.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// Codes of the driver that concern a launch alone: invalid value, image, PTX or handle, no such function, too many resources,
/// a cooperative grid that does not fit, not supported.
const HARMLESS: [u32; 11] = [1, 200, 209, 218, 221, 222, 400, 500, 701, 720, 801];

impl DeviceError {
    /// An error of `kernel`'s launch.
    pub(super) fn launch(kernel: &str, code: u32) -> Self {
        if HARMLESS.contains(&code) {
            Self::Launch { kernel: kernel.into(), reason: bt_cuda_driver::describe(code) }
        } else {
            Self::lost(&format!("starting {kernel}"), code)
        }
    }

    pub(super) fn lost(during: &str, code: u32) -> Self {
        Self::Lost { during: during.into(), reason: bt_cuda_driver::describe(code) }
    }

    /// For `map_err`: the device was lost while `during`.
    pub(super) fn while_(during: &str) -> impl Fn(CudaError) -> Self {
        move |error| Self::lost(during, error as u32)
    }
}
