//! Memory of the device and page-locked memory of the host.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

use super::codes::Code;
use super::put;
use super::state::{State, in_context};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    in_context(|state| {
        let given = state.device().allocate(bytes)?;
        // SAFETY: the caller's promise.
        unsafe { put(address, given) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    // Freeing nothing is allowed.
    in_context(|state| if address == 0 { Ok(()) } else { Ok(state.device().free(address)?) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        let given = state.device().allocate(bytes)?;
        // SAFETY: the caller's promise.
        unsafe { put(address, given) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: usize) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        Ok(state.device().free(address)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    in_context(|state| {
        let (left, all) = state.device().memory_info();
        // SAFETY: the caller's promise.
        unsafe { put(free, left).and(put(total, all)) }
    })
}

/// Page-locked memory is ordinary memory of the host; kernels cannot reach it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocHost_v2(memory: *mut *mut c_void, bytes: usize) -> c_int {
    in_context(|state| {
        let layout = Layout::from_size_align(bytes, 256).map_err(|_| Code::InvalidValue)?;
        if bytes == 0 || memory.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the size is not zero.
        let given = unsafe { alloc(layout) };
        if given.is_null() {
            return Err(Code::OutOfMemory);
        }
        state.host.insert(given as usize, layout);
        // SAFETY: the caller's promise.
        unsafe { put(memory, given.cast()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(memory: *mut c_void) -> c_int {
    in_context(|state| {
        let layout = state.host.remove(&(memory as usize)).ok_or(Code::InvalidValue)?;
        // SAFETY: `alloc` gave it with this layout, and the map no longer knows it.
        unsafe { dealloc(memory.cast(), layout) };
        Ok(())
    })
}

/// # Safety
/// `from` has `bytes` bytes.
unsafe fn from_host(state: &mut State, to: u64, from: *const c_void, bytes: usize) -> Result<(), Code> {
    if bytes == 0 {
        return Ok(());
    }
    if from.is_null() {
        return Err(Code::InvalidValue);
    }
    let place = state.device().bytes_mut(to, bytes)?;
    // SAFETY: not null, the caller promises the bytes, and the device's memory is never the host's.
    unsafe { place.as_mut_ptr().copy_from_nonoverlapping(from.cast(), bytes) };
    Ok(())
}

/// # Safety
/// `to` has room for `bytes` bytes.
unsafe fn to_host(state: &mut State, to: *mut c_void, from: u64, bytes: usize) -> Result<(), Code> {
    if bytes == 0 {
        return Ok(());
    }
    if to.is_null() {
        return Err(Code::InvalidValue);
    }
    let found = state.device().read(from, bytes)?;
    // SAFETY: not null, the caller promises the room, and the device's memory is never the host's.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(found.as_ptr(), bytes) };
    Ok(())
}

fn within(state: &mut State, to: u64, from: u64, bytes: usize) -> Result<(), Code> {
    if bytes == 0 { Ok(()) } else { Ok(state.device().copy(to, from, bytes)?) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|state| unsafe { from_host(state, to, from, bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|state| unsafe { to_host(state, to, from, bytes) })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> c_int {
    in_context(|state| within(state, to, from, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: usize) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|state| state.check_stream(stream).and_then(|()| unsafe { from_host(state, to, from, bytes) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: usize) -> c_int {
    // SAFETY: the caller's promise.
    in_context(|state| state.check_stream(stream).and_then(|()| unsafe { to_host(state, to, from, bytes) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream).and_then(|()| within(state, to, from, bytes)))
}

/// Between the memories of two contexts.
#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
    stream: usize,
) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        let (to_home, from_home) = (state.of_context(to_context)?, state.of_context(from_context)?);
        if bytes == 0 {
            return Ok(());
        }
        let found = state.chips[from_home].device.read(from, bytes)?.to_vec();
        state.chips[to_home].device.bytes_mut(to, bytes)?.copy_from_slice(&found);
        Ok(())
    })
}

/// Fills `count` elements.
fn fill(state: &mut State, to: u64, element: &[u8], count: usize) -> Result<(), Code> {
    if count == 0 {
        return Ok(());
    }
    let width = element.len();
    let bytes = count.checked_mul(width).ok_or(Code::InvalidValue)?;
    if !to.is_multiple_of(width as u64) {
        return Err(Code::InvalidValue);
    }
    for place in state.device().bytes_mut(to, bytes)?.chunks_exact_mut(width) {
        place.copy_from_slice(element);
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(to: u64, value: c_uchar, count: usize) -> c_int {
    in_context(|state| fill(state, to, &[value], count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16_v2(to: u64, value: c_ushort, count: usize) -> c_int {
    in_context(|state| fill(state, to, &value.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) -> c_int {
    in_context(|state| fill(state, to, &value.to_le_bytes(), count))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream).and_then(|()| fill(state, to, &[value], count)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16Async(to: u64, value: c_ushort, count: usize, stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream).and_then(|()| fill(state, to, &value.to_le_bytes(), count)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream).and_then(|()| fill(state, to, &value.to_le_bytes(), count)))
}
