//! Result codes of the driver (`CUresult`), with their names and texts.

use std::ffi::{CStr, c_int};

use crate::error::{DeviceError, FaultKind};

macro_rules! codes {
    ($($variant:ident = $value:literal, $name:literal, $text:literal;)*) => {
        /// The codes that this driver gives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub(super) enum Code {
            $($variant = $value,)*
        }

        /// Name and text of a code.
        pub(super) fn describe(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
            match code {
                0 => Some((c"CUDA_SUCCESS", c"no error")),
                $($value => Some(($name, $text)),)*
                _ => None,
            }
        }
    };
}

codes! {
    InvalidValue = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OutOfMemory = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    NotInitialized = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"cuInit was not called";
    InvalidDevice = 101, c"CUDA_ERROR_INVALID_DEVICE", c"no device of this number";
    InvalidImage = 200, c"CUDA_ERROR_INVALID_IMAGE", c"the image is not PTX text";
    InvalidContext = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"no current context, or not this driver's";
    InvalidPtx = 218, c"CUDA_ERROR_INVALID_PTX", c"the PTX text cannot be loaded";
    InvalidHandle = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid handle";
    NotFound = 500, c"CUDA_ERROR_NOT_FOUND", c"no such name";
    IllegalAddress = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"a kernel accessed an illegal address";
    LaunchOutOfResources = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"a block needs more than there is";
    LaunchTimeout = 702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"a kernel ran for too long or waits for ever";
    MisalignedAddress = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"a kernel accessed a misaligned address";
    LaunchFailed = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"a kernel failed";
    CooperativeLaunchTooLarge = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"more blocks than are resident at once";
    NotSupported = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported by the stand-in driver";
}

impl From<DeviceError> for Code {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory => Self::OutOfMemory,
            DeviceError::InvalidValue => Self::InvalidValue,
            DeviceError::InvalidHandle => Self::InvalidHandle,
            DeviceError::NotFound => Self::NotFound,
            DeviceError::OutOfResources => Self::LaunchOutOfResources,
            DeviceError::CooperativeTooLarge => Self::CooperativeLaunchTooLarge,
        }
    }
}

impl From<FaultKind> for Code {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::IllegalAddress => Self::IllegalAddress,
            FaultKind::Misaligned => Self::MisalignedAddress,
            FaultKind::Deadlock | FaultKind::Budget => Self::LaunchTimeout,
            FaultKind::ReadOnly
            | FaultKind::Race
            | FaultKind::DivergentBarrier
            | FaultKind::DivergentWarp
            | FaultKind::Undefined
            | FaultKind::Trap => Self::LaunchFailed,
        }
    }
}
