//! Modules from PTX text, their kernels and variables.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::codes::Code;
use super::control::copy_text;
use super::state::in_context;
use super::{put, text};
use crate::{KernelId, ModuleId};

/// `CUjit_option`: buffers of the two logs and their sizes; other options change nothing here.
const INFO_LOG_SIZE: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;

/// # Safety
/// `image` is null or PTX text with a zero byte behind it; the options and their values are `count`.
unsafe fn load(
    module: *mut usize,
    image: *const c_void,
    count: usize,
    options: *const c_int,
    values: *mut *mut c_void,
) -> c_int {
    in_context(|state| {
        // SAFETY: the caller's promise.
        let image = unsafe { text(image.cast::<c_char>()) }.map_err(|_| Code::InvalidImage)?;
        if !image.contains(".version") {
            return Err(Code::InvalidImage);
        }
        let loaded = state.device().load(image);
        let log = loaded.as_ref().err().map(ToString::to_string).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { write_logs(&log, count, options, values) };
        let Ok(id) = loaded else {
            eprintln!("bt-ptx-emulator: {log}");
            state.message = log;
            return Err(Code::InvalidPtx);
        };
        // SAFETY: the caller's promise.
        unsafe { put(module, id.to_bits()) }
    })
}

/// Values of sizes are the sizes themselves, going in as coming out.
///
/// # Safety
/// There are `count` options and values, and the error log is as large as its size says.
unsafe fn write_logs(log: &str, count: usize, options: *const c_int, values: *mut *mut c_void) {
    if options.is_null() || values.is_null() {
        return;
    }
    // SAFETY: the caller's promise, for all reads and writes below.
    unsafe {
        let find = |wanted| (0..count).find(|k| *options.add(*k) == wanted).map(|k| values.add(k));
        if let Some(size) = find(INFO_LOG_SIZE) {
            size.write(std::ptr::null_mut());
        }
        if let (Some(buffer), Some(size)) = (find(ERROR_LOG), find(ERROR_LOG_SIZE)) {
            let room = *size as usize;
            copy_text(log, (*buffer).cast(), room);
            size.write(std::ptr::without_provenance_mut(log.len().min(room)));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_void) -> c_int {
    // SAFETY: the caller's promise, and no options.
    unsafe { load(module, image, 0, std::ptr::null(), std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const c_void,
    count: c_uint,
    options: *const c_int,
    values: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { load(module, image, count as usize, options, values) }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: usize) -> c_int {
    in_context(|state| Ok(state.device().unload(ModuleId::from_bits(module))?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> c_int {
    in_context(|state| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        let kernel: KernelId = state.device().kernel(ModuleId::from_bits(module), name)?;
        // SAFETY: the caller's promise.
        unsafe { put(function, kernel.to_bits()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    in_context(|state| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        let (at, size) = state.device().variable(ModuleId::from_bits(module), name)?;
        // SAFETY: the caller's promise; null asks for no result.
        unsafe {
            if !address.is_null() {
                put(address, at)?;
            }
            if !bytes.is_null() {
                put(bytes, size)?;
            }
        }
        Ok(())
    })
}
