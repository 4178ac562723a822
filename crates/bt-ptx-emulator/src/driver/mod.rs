//! The C functions of the driver that `cust` 0.3.2 and `bt-kernels` call, over the [`Device`](crate::Device)s of a process.
//!
//! Work is done when it is enqueued, in the order of the calls: one of the schedules that streams allow. A fault of a
//! launch shows as with a real device: the launch itself succeeds, and every later call gives the error until the
//! primary context is reset or released for the last time. The message goes to stderr and to
//! `bt_emulator_last_fault`.
//!
//! What a function promises its caller is what the driver's documentation says; pointers that are null are refused,
//! other invalid pointers cannot be told.
//!
//! | file | case |
//! |---|---|
//! | `state.rs` | devices, contexts and what else is remembered between calls |
//! | `codes.rs` | result codes with their names and texts |
//! | `query.rs` | what devices there are; texts of codes for the caller |
//! | `context.rs` | `cuInit`, and primary contexts |
//! | `memory.rs` | memory of devices, page-locked memory, copies and fills |
//! | `module.rs` | modules from PTX text, their kernels and variables |
//! | `execution.rs` | launches, attributes of kernels, occupancy |
//! | `stream.rs` | streams, events and calls of the host |
//! | `control.rs` | what a real driver does not have: settings and counts, for tests |
#![allow(unsafe_code, non_snake_case, clippy::missing_safety_doc)]

mod codes;
mod context;
mod control;
mod execution;
mod memory;
mod module;
mod query;
mod state;
mod stream;

use codes::Code;

/// Writes a result for the caller.
///
/// # Safety
/// `to` is null or may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, and the caller of the driver promises room for the result.
    unsafe { to.write(value) };
    Ok(())
}

/// Text of the caller.
///
/// # Safety
/// `text` is null or ends with a zero byte.
unsafe fn text<'a>(text: *const std::ffi::c_char) -> Result<&'a str, Code> {
    if text.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, and the caller of the driver promises the zero byte.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    text.to_str().map_err(|_| Code::InvalidValue)
}
