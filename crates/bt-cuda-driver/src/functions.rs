//! The functions that cust's sources name, and those it lacks: cooperative launches, function attributes, graphs.
//!
//! Pointers and handles are passed on as they come; handles and enums have the sizes of CUDA's own header.

#![allow(unsafe_code)] // the C interface of the driver
#![allow(non_snake_case, missing_docs)] // CUDA's names, CUDA's documentation
#![allow(clippy::missing_safety_doc)] // what each demands is in the CUDA driver API's manual

use std::ffi::{c_char, c_void};

use crate::driver::{NO_DRIVER, NOT_SUPPORTED, known, library, text};

/// Defines functions of the driver, each forwarding to the one of the same name in the loaded library.
macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> u32 {
            static ADDRESS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
            let Ok(driver) = library() else { return NO_DRIVER };
            let address = *ADDRESS.get_or_init(|| driver.address(concat!(stringify!($name), "\0")));
            if address == 0 {
                return NOT_SUPPORTED;
            }
            // SAFETY: the library exports a function of this name, whose type CUDA's header fixes; the library is never
            // unloaded. The caller keeps the function's own contract.
            known(unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> u32>(address)($($arg),*)
            })
        }
    )*};
}

forward! {
    cuArray3DCreate_v2(a: *mut c_void, b: *mut c_void);
    cuArray3DGetDescriptor_v2(a: *mut c_void, b: *mut c_void);
    cuArrayDestroy(a: *mut c_void);
    cuCtxCreate_v2(a: *mut c_void, b: u32, c: i32);
    cuCtxDestroy_v2(a: *mut c_void);
    cuCtxGetApiVersion(a: *mut c_void, b: *mut c_void);
    cuCtxGetCacheConfig(a: *mut c_void);
    cuCtxGetCurrent(a: *mut c_void);
    cuCtxGetDevice(a: *mut c_void);
    cuCtxGetFlags(a: *mut c_void);
    cuCtxGetLimit(a: *mut c_void, b: u32);
    cuCtxGetSharedMemConfig(a: *mut c_void);
    cuCtxGetStreamPriorityRange(a: *mut c_void, b: *mut c_void);
    cuCtxPopCurrent_v2(a: *mut c_void);
    cuCtxPushCurrent_v2(a: *mut c_void);
    cuCtxSetCacheConfig(a: u32);
    cuCtxSetCurrent(a: *mut c_void);
    cuCtxSetLimit(a: u32, b: usize);
    cuCtxSetSharedMemConfig(a: u32);
    cuCtxSynchronize();
    cuDestroyExternalMemory(a: *mut c_void);
    cuDeviceGet(a: *mut c_void, b: i32);
    cuDeviceGetAttribute(a: *mut c_void, b: u32, c: i32);
    cuDeviceGetCount(a: *mut c_void);
    cuDeviceGetName(a: *mut c_void, b: i32, c: i32);
    cuDeviceGetUuid(a: *mut c_void, b: i32);
    cuDevicePrimaryCtxRelease_v2(a: i32);
    cuDevicePrimaryCtxReset_v2(a: i32);
    cuDevicePrimaryCtxRetain(a: *mut c_void, b: i32);
    cuDevicePrimaryCtxSetFlags_v2(a: i32, b: u32);
    cuDevicePrimaryCtxGetState(a: i32, b: *mut c_void, c: *mut c_void);
    cuDeviceTotalMem_v2(a: *mut c_void, b: i32);
    cuDriverGetVersion(a: *mut c_void);
    cuEventCreate(a: *mut c_void, b: u32);
    cuEventDestroy_v2(a: *mut c_void);
    cuEventElapsedTime(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuEventQuery(a: *mut c_void);
    cuEventRecord(a: *mut c_void, b: *mut c_void);
    cuEventSynchronize(a: *mut c_void);
    cuExternalMemoryGetMappedBuffer(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuFuncGetAttribute(a: *mut c_void, b: u32, c: *mut c_void);
    cuFuncSetAttribute(a: *mut c_void, b: u32, c: i32);
    cuFuncSetCacheConfig(a: *mut c_void, b: u32);
    cuFuncSetSharedMemConfig(a: *mut c_void, b: u32);
    cuGraphAddKernelNode(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: usize, e: *mut c_void);
    cuGraphCreate(a: *mut c_void, b: u32);
    cuGraphDebugDotPrint(a: *mut c_void, b: *mut c_void, c: u32);
    cuGraphDestroy(a: *mut c_void);
    cuGraphGetEdges(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: *mut c_void);
    cuGraphGetNodes(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuGraphKernelNodeGetParams(a: *mut c_void, b: *mut c_void);
    cuGraphNodeGetType(a: *mut c_void, b: *mut c_void);
    cuImportExternalMemory(a: *mut c_void, b: *mut c_void);
    cuInit(a: u32);
    cuLaunchHostFunc(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuLaunchKernel(a: *mut c_void, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32, h: u32, i: *mut c_void, j: *mut c_void, k: *mut c_void);
    cuLaunchCooperativeKernel(a: *mut c_void, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32, h: u32, i: *mut c_void, j: *mut c_void);
    cuLinkAddData_v2(a: *mut c_void, b: u32, c: *mut c_void, d: usize, e: *mut c_void, f: u32, g: *mut c_void, h: *mut c_void);
    cuLinkComplete(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuLinkCreate_v2(a: u32, b: *mut c_void, c: *mut c_void, d: *mut c_void);
    cuLinkDestroy(a: *mut c_void);
    cuMemAdvise(a: u64, b: usize, c: u32, d: i32);
    cuMemAllocAsync(a: *mut c_void, b: usize, c: *mut c_void);
    cuMemAllocHost_v2(a: *mut c_void, b: usize);
    cuMemAllocManaged(a: *mut c_void, b: usize, c: u32);
    cuMemAllocPitch_v2(a: *mut c_void, b: *mut c_void, c: usize, d: usize, e: u32);
    cuMemAlloc_v2(a: *mut c_void, b: usize);
    cuMemFreeAsync(a: u64, b: *mut c_void);
    cuMemFreeHost(a: *mut c_void);
    cuMemFree_v2(a: u64);
    cuMemGetInfo_v2(a: *mut c_void, b: *mut c_void);
    cuMemPrefetchAsync(a: u64, b: usize, c: i32, d: *mut c_void);
    cuMemcpy2D_v2(a: *mut c_void);
    cuMemcpyAtoH_v2(a: *mut c_void, b: *mut c_void, c: usize, d: usize);
    cuMemcpyDtoDAsync_v2(a: u64, b: u64, c: usize, d: *mut c_void);
    cuMemcpyDtoD_v2(a: u64, b: u64, c: usize);
    cuMemcpyDtoHAsync_v2(a: *mut c_void, b: u64, c: usize, d: *mut c_void);
    cuMemcpyDtoH_v2(a: *mut c_void, b: u64, c: usize);
    cuMemcpyHtoA_v2(a: *mut c_void, b: usize, c: *mut c_void, d: usize);
    cuMemcpyHtoDAsync_v2(a: u64, b: *mut c_void, c: usize, d: *mut c_void);
    cuMemcpyHtoD_v2(a: u64, b: *mut c_void, c: usize);
    cuMemcpyPeerAsync(a: u64, b: *mut c_void, c: u64, d: *mut c_void, e: usize, f: *mut c_void);
    cuMemsetD16Async(a: u64, b: u16, c: usize, d: *mut c_void);
    cuMemsetD16_v2(a: u64, b: u16, c: usize);
    cuMemsetD32Async(a: u64, b: u32, c: usize, d: *mut c_void);
    cuMemsetD32_v2(a: u64, b: u32, c: usize);
    cuMemsetD8Async(a: u64, b: u8, c: usize, d: *mut c_void);
    cuMemsetD8_v2(a: u64, b: u8, c: usize);
    cuModuleGetFunction(a: *mut c_void, b: *mut c_void, c: *mut c_void);
    cuModuleGetGlobal_v2(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: *mut c_void);
    cuModuleLoad(a: *mut c_void, b: *mut c_void);
    cuModuleLoadData(a: *mut c_void, b: *mut c_void);
    cuModuleLoadDataEx(a: *mut c_void, b: *mut c_void, c: u32, d: *mut c_void, e: *mut c_void);
    cuModuleUnload(a: *mut c_void);
    cuOccupancyAvailableDynamicSMemPerBlock(a: *mut c_void, b: *mut c_void, c: i32, d: i32);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(a: *mut c_void, b: *mut c_void, c: i32, d: usize);
    cuOccupancyMaxPotentialBlockSize(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: *mut c_void, e: usize, f: i32);
    cuStreamCreate(a: *mut c_void, b: u32);
    cuStreamCreateWithPriority(a: *mut c_void, b: u32, c: i32);
    cuStreamDestroy_v2(a: *mut c_void);
    cuStreamGetFlags(a: *mut c_void, b: *mut c_void);
    cuStreamGetPriority(a: *mut c_void, b: *mut c_void);
    cuStreamSynchronize(a: *mut c_void);
    cuStreamWaitEvent(a: *mut c_void, b: *mut c_void, c: u32);
    cuSurfObjectCreate(a: *mut c_void, b: *mut c_void);
    cuSurfObjectDestroy(a: u64);
    cuSurfObjectGetResourceDesc(a: *mut c_void, b: u64);
    cuTexObjectCreate(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: *mut c_void);
    cuTexObjectDestroy(a: u64);
    cuTexObjectGetResourceDesc(a: *mut c_void, b: u64);
    cuTexObjectGetResourceViewDesc(a: *mut c_void, b: u64);
    cuGraphInstantiate_v2(a: *mut c_void, b: *mut c_void, c: *mut c_void, d: *mut c_void, e: usize);
    cuGraphLaunch(a: *mut c_void, b: *mut c_void);
}

/// A text for every code, with a driver or without.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(error: u32, out: *mut *const c_char) -> u32 {
    tell("cuGetErrorString\0", error, out)
}

/// A name for every code, with a driver or without.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(error: u32, out: *mut *const c_char) -> u32 {
    tell("cuGetErrorName\0", error, out)
}

fn tell(function: &str, error: u32, out: *mut *const c_char) -> u32 {
    if out.is_null() {
        return 1; // CUDA_ERROR_INVALID_VALUE
    }
    let address = library().map_or(0, |driver| driver.address(function));
    // SAFETY: a function of this name has this type; `out` is the caller's place for one pointer.
    let told = address != 0
        && unsafe {
            std::mem::transmute::<usize, unsafe extern "C" fn(u32, *mut *const c_char) -> u32>(address)(error, out) == 0
        };
    if !told {
        // SAFETY: as above; the text is static.
        unsafe { *out = text(error).as_ptr() };
    }
    0
}

/// The text of a code, as a sentence's part.
pub fn describe(code: u32) -> String {
    let mut said = std::ptr::null();
    // SAFETY: `said` is a place for one pointer, and what is written to it is a static text, with every driver.
    let said = unsafe {
        cuGetErrorString(code, &raw mut said);
        std::ffi::CStr::from_ptr(said)
    };
    format!("{} (CUDA error {code})", said.to_string_lossy())
}
