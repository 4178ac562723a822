//! Launches, attributes of functions, occupancy.

use std::ffi::{c_int, c_uint, c_void};
use std::slice;

use super::codes::Code;
use super::put;
use super::state::{State, in_context};
use crate::device::{LaunchError, MAX_THREADS_PER_BLOCK};
use crate::{KernelId, Residency, Shape};

/// Runs a kernel to its end; a fault becomes the error of all later calls.
///
/// # Safety
/// `parameters` leads to one pointer for each of the kernel's parameters, to as many bytes as it has.
unsafe fn launch(
    state: &mut State,
    function: usize,
    shape: Shape,
    stream: usize,
    parameters: *const *const c_void,
) -> Result<(), Code> {
    state.check_stream(stream)?;
    let kernel = KernelId::from_bits(function);
    let places = state.device().parameters(kernel)?;
    let mut buffer = vec![0; places.last().map_or(0, |(at, size)| at + size)];
    if parameters.is_null() && !places.is_empty() {
        return Err(Code::InvalidValue);
    }
    for (k, &(at, size)) in places.iter().enumerate() {
        // SAFETY: the caller promises a pointer for each parameter.
        let parameter = unsafe { *parameters.add(k) };
        if parameter.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the caller promises the bytes of the parameter.
        buffer[at..at + size].copy_from_slice(unsafe { slice::from_raw_parts(parameter.cast(), size) });
    }
    match state.device().launch(kernel, shape, &buffer) {
        Ok(()) => Ok(()),
        Err(LaunchError::Refused(error)) => Err(error.into()),
        Err(LaunchError::Fault(fault)) => {
            eprintln!("bt-ptx-emulator: {fault}");
            state.set_fault(fault);
            Ok(())
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_shared: c_uint,
    stream: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> c_int {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    in_context(|state| {
        if !extra.is_null() {
            return Err(Code::NotSupported);
        }
        let shape = Shape { grid, block, dynamic_shared, residency: Residency::Ordinary };
        // SAFETY: the caller's promise.
        unsafe { launch(state, function, shape, stream, parameters) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchCooperativeKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_shared: c_uint,
    stream: usize,
    parameters: *const *const c_void,
) -> c_int {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    in_context(|state| {
        let shape = Shape { grid, block, dynamic_shared, residency: Residency::Cooperative };
        // SAFETY: the caller's promise.
        unsafe { launch(state, function, shape, stream, parameters) }
    })
}

/// `CUfunction_attribute`. Registers are those of the text before any allocation, so a fixed number stands for them.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: usize) -> c_int {
    in_context(|state| {
        let info = state.device().info(KernelId::from_bits(function))?;
        let found = match attribute {
            0 => info.max_threads,
            1 => info.static_shared,
            2 | 7 => 0,
            3 => info.local,
            4 => 32,
            5 => 63,
            6 => 70,
            8 => info.max_dynamic_shared,
            // The preferred carveout: none.
            9 => u32::MAX,
            _ => return Err(Code::InvalidValue),
        };
        // SAFETY: the caller's promise.
        unsafe { put(value, found.cast_signed()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) -> c_int {
    in_context(|state| {
        let kernel = KernelId::from_bits(function);
        state.device().info(kernel)?;
        match (attribute, u32::try_from(value)) {
            (8, Ok(bytes)) => Ok(state.device().set_max_dynamic_shared(kernel, bytes)?),
            (9, _) if (-1..=100).contains(&value) => Ok(()),
            _ => Err(Code::InvalidValue),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetCacheConfig(function: usize, _config: c_int) -> c_int {
    in_context(|state| Ok(state.device().info(KernelId::from_bits(function)).map(|_| ())?))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetSharedMemConfig(function: usize, _config: c_int) -> c_int {
    in_context(|state| Ok(state.device().info(KernelId::from_bits(function)).map(|_| ())?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: usize,
    threads: c_int,
    dynamic_shared: usize,
) -> c_int {
    in_context(|state| {
        let threads = u32::try_from(threads).map_err(|_| Code::InvalidValue)?;
        let dynamic = u32::try_from(dynamic_shared).unwrap_or(u32::MAX);
        let found = state.device().occupancy(KernelId::from_bits(function), threads, dynamic)?;
        // SAFETY: the caller's promise.
        unsafe { put(blocks, found.cast_signed()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    function: usize,
    threads: c_int,
    dynamic_shared: usize,
    _flags: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_shared) }
}

/// The block of whole warps with most resident threads, the largest of several, and the grid that fills the device.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    function: usize,
    dynamic_of_block: Option<unsafe extern "C" fn(c_int) -> usize>,
    dynamic_shared: usize,
    limit: c_int,
) -> c_int {
    in_context(|state| {
        let kernel = KernelId::from_bits(function);
        let limit = if limit <= 0 { MAX_THREADS_PER_BLOCK } else { limit.cast_unsigned() };
        let mut best = (0, 0, 0);
        for threads in (32..=limit.min(MAX_THREADS_PER_BLOCK)).step_by(32) {
            // SAFETY: the caller promises a function of block sizes; it must not call the driver.
            let dynamic = dynamic_of_block.map_or(dynamic_shared, |f| unsafe { f(threads.cast_signed()) });
            let dynamic = u32::try_from(dynamic).unwrap_or(u32::MAX);
            let blocks = state.device().occupancy(kernel, threads, dynamic)?;
            best = best.max((blocks * threads, threads, blocks));
        }
        let blocks = best.2 * state.device().settings().multiprocessors;
        // SAFETY: the caller's promise.
        unsafe { put(grid, blocks.cast_signed()).and(put(block, best.1.cast_signed())) }
    })
}
