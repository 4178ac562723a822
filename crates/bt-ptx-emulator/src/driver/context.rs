//! The primary contexts; contexts of one's own (`cuCtxCreate`) are not exported.

use std::ffi::{c_int, c_uint};

use super::codes::Code;
use super::put;
use super::state::{context_of, current, in_context, initialized, pop_current, push_current, set_current};

/// CUDA 11.4, the version whose bindings `cust` has.
const VERSION: c_int = 11040;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> c_int {
    if flags != 0 {
        return Code::InvalidValue as c_int;
    }
    super::state::initialize();
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { put(version, VERSION) }.map_or_else(|code| code as c_int, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        // SAFETY: the caller's promise.
        unsafe { put(context, context_of(home)) }?;
        state.chips[home].retained += 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        let retained = &mut state.chips[home].retained;
        *retained = retained.checked_sub(1).ok_or(Code::InvalidContext)?;
        if *retained == 0 {
            state.reset(home);
        }
        Ok(())
    })
}

/// Frees everything that the context held and forgets a fault; it stays retained.
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        state.reset(home);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, _flags: c_uint) -> c_int {
    initialized(|state| state.ordinal(device).map(|_| ()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) -> c_int {
    initialized(|state| {
        let home = state.ordinal(device)?;
        // SAFETY: the caller's promise.
        unsafe {
            put(flags, 0)?;
            put(active, c_int::from(state.chips[home].retained > 0))
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    initialized(|state| {
        if context != 0 {
            state.of_context(context)?;
        }
        set_current(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    initialized(|_| unsafe { put(context, current()) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: usize) -> c_int {
    initialized(|state| {
        state.of_context(context)?;
        push_current(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut usize) -> c_int {
    initialized(|_| {
        let popped = pop_current().ok_or(Code::InvalidContext)?;
        // SAFETY: the caller's promise; null asks for no result.
        if context.is_null() { Ok(()) } else { unsafe { put(context, popped) } }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|state| unsafe { put(device, state.here() as c_int) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetFlags(flags: *mut c_uint) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|_| unsafe { put(flags, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetApiVersion(context: usize, version: *mut c_uint) -> c_int {
    initialized(|state| {
        state.of_context(context)?;
        // SAFETY: the caller's promise.
        unsafe { put(version, VERSION.cast_unsigned()) }
    })
}

/// All work is done when it is enqueued; what is left is the error of a launch.
#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> c_int {
    in_context(|_| Ok(()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|_| unsafe { put(least, 0).and(put(greatest, 0)) })
}

/// Caches and banks have no part in the stand-in: any preference is accepted and forgotten.
#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCacheConfig(_config: c_int) -> c_int {
    in_context(|_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetSharedMemConfig(_config: c_int) -> c_int {
    in_context(|_| Ok(()))
}
