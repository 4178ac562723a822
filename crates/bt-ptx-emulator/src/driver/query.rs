//! What there is: devices of compute capability 7.0, and texts for codes.

use std::ffi::{c_char, c_int};

use super::codes::{Code, describe};
use super::put;
use super::state::initialized;
use crate::device::{
    MAX_BLOCKS_PER_MULTIPROCESSOR, MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_MULTIPROCESSOR, SHARED_PER_BLOCK,
    SHARED_PER_MULTIPROCESSOR,
};

const NAME: &str = "blocktri PTX emulator (no GPU)";

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    initialized(|state| unsafe { put(count, state.chips.len() as c_int) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    initialized(|state| {
        state.ordinal(ordinal)?;
        // SAFETY: the caller's promise.
        unsafe { put(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, size: c_int, device: c_int) -> c_int {
    initialized(|state| {
        state.ordinal(device)?;
        if name.is_null() || size <= 0 {
            return Err(Code::InvalidValue);
        }
        // SAFETY: not null, and the caller promises `size` bytes.
        unsafe { super::control::copy_text(NAME, name, size as usize) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    initialized(|state| {
        let mut id = *b"blocktri-emulat0";
        id[15] += state.ordinal(device)? as u8;
        // SAFETY: the caller's promise.
        unsafe { put(uuid, id) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        // SAFETY: the caller's promise.
        unsafe { put(bytes, state.chips[home].device.memory_info().1) }
    })
}

/// `CUdevice_attribute`; rates and caches are made-up, small numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        let found = match attribute {
            1..=3 => {
                if attribute == 1 {
                    MAX_THREADS_PER_BLOCK
                } else {
                    1024
                }
            }
            4 | 37 => 64,
            5 | 11 => i32::MAX.cast_unsigned(),
            6 | 7 => 65535,
            8 => SHARED_PER_BLOCK,
            9 | 12 | 82 => 65536,
            10 => 32,
            13 | 36 => 1_000_000,
            14 => 512,
            16 => state.chips[home].device.settings().multiprocessors,
            31 | 41 | 78 | 95 => 1,
            38 => 1 << 20,
            39 => MAX_THREADS_PER_MULTIPROCESSOR,
            75 => 7,
            76 | 83 | 88 | 89 | 96 | 115 | 15 | 17..=20 | 32..=35 | 40 => 0,
            81 | 97 => SHARED_PER_MULTIPROCESSOR,
            106 => MAX_BLOCKS_PER_MULTIPROCESSOR,
            _ => return Err(Code::InvalidValue),
        };
        // SAFETY: the caller's promise.
        unsafe { put(value, found.cast_signed()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { describe_to(describe(code).map(|d| d.0.as_ptr()), text) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { describe_to(describe(code).map(|d| d.1.as_ptr()), text) }
}

/// # Safety
/// `to` is null or may be written.
unsafe fn describe_to(text: Option<*const c_char>, to: *mut *const c_char) -> c_int {
    let Some(text) = text else { return Code::InvalidValue as c_int };
    // SAFETY: the caller's promise.
    unsafe { put(to, text) }.map_or_else(|code| code as c_int, |()| 0)
}
