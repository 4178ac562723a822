//! The library behind the functions: which one, whether it is there, and its result codes.

#![allow(unsafe_code)] // loading a library runs its initializers

use std::ffi::CStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

/// CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: what every function returns where there is no driver.
pub const NO_DRIVER: u32 = 303;
/// CUDA_ERROR_NOT_SUPPORTED: what a function returns that the driver does not have.
pub const NOT_SUPPORTED: u32 = 801;
/// CUDA_ERROR_UNKNOWN.
const UNKNOWN: u32 = 999;

/// Environment variable that names another library.
const VARIABLE: &str = "BLOCKTRI_CUDA_DRIVER";
/// The driver as its package installs it.
const DEFAULT: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();
static LOADED: OnceLock<Result<Driver, NoDriver>> = OnceLock::new();

/// Why there is no driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDriver {
    /// The library that was asked for.
    pub library: PathBuf,
    /// What the loader said.
    pub reason: String,
}

impl fmt::Display for NoDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the CUDA driver {} cannot be loaded: {}", self.library.display(), self.reason)
    }
}

impl std::error::Error for NoDriver {}

/// The loaded library.
pub(crate) struct Driver(Library);

impl Driver {
    /// Address of a function, 0 where the library lacks it; `name` ends with a NUL.
    pub fn address(&self, name: &str) -> usize {
        // SAFETY: the symbol is only looked at as an address.
        unsafe { self.0.get::<*const ()>(name.as_bytes()).map_or(0, |symbol| *symbol as usize) }
    }
}

/// Takes `library` for the driver: for tests on another driver, before anything else of this crate or of CUDA is called.
///
/// # Errors
/// The path in use, where the library was chosen or loaded before and is another one.
pub fn choose(library: &Path) -> Result<(), PathBuf> {
    let chosen = CHOSEN.get_or_init(|| library.to_owned());
    if chosen == library { Ok(()) } else { Err(chosen.clone()) }
}

/// Loads the driver, if it is not loaded: the chosen library, or the one that `BLOCKTRI_CUDA_DRIVER` names, or
/// `libcuda.so.1`.
///
/// # Errors
/// [`NoDriver`] with the loader's reason.
pub fn load() -> Result<(), NoDriver> {
    library().map(|_| ()).map_err(Clone::clone)
}

/// The order in which a stand-in driver runs threads, for tests; false with a driver that has no such thing.
pub fn set_seed(seed: u64) -> bool {
    let address = library().map_or(0, |driver| driver.address("bt_emulator_set_seed\0"));
    if address != 0 {
        // SAFETY: the stand-in driver's function of this name takes a number.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u64)>(address)(seed) };
    }
    address != 0
}

/// Has a stand-in driver look for races in global memory, for tests; false with a driver that cannot. After a device is opened.
pub fn look_for_races() -> bool {
    let address = library().map_or(0, |driver| driver.address("bt_emulator_set_global_races\0"));
    if address != 0 {
        // SAFETY: the stand-in driver's function of this name takes a number.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(i32)>(address)(1) };
    }
    address != 0
}

/// How many devices a stand-in driver has, for tests; false with a driver that has what it has. Before a device is opened.
pub fn set_devices(count: u32) -> bool {
    let address = library().map_or(0, |driver| driver.address("bt_emulator_set_devices\0"));
    if address != 0 {
        // SAFETY: the stand-in driver's function of this name takes a number.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u32)>(address)(count) };
    }
    address != 0
}

/// Bytes of memory of a device of a stand-in driver, for tests; false with a driver whose devices have what they have.
pub fn set_memory(device: u32, bytes: usize) -> bool {
    let address = library().map_or(0, |driver| driver.address("bt_emulator_set_memory_of\0"));
    if address != 0 {
        // SAFETY: the stand-in driver's function of this name takes two numbers.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u32, usize)>(address)(device, bytes) };
    }
    address != 0
}

/// How many more launches a stand-in driver starts before it refuses them, for tests; false with a driver that starts what it can.
pub fn set_launches(count: u64) -> bool {
    let address = library().map_or(0, |driver| driver.address("bt_emulator_set_launches\0"));
    if address != 0 {
        // SAFETY: the stand-in driver's function of this name takes a number.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u64)>(address)(count) };
    }
    address != 0
}

/// Bytes of global memory that the kernels of a device have accessed, for tests; none with a driver that does not count them.
pub fn traffic(device: u32) -> Option<u64> {
    counter("bt_emulator_traffic\0", device)
}

/// Floating-point operations, counted by a stand-in driver: a fused product with its addition as two, a quotient or a root as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flops {
    /// On f32.
    pub single: u64,
    /// On f64.
    pub double: u64,
}

/// Floating-point operations of the kernels of a device, for tests; none with a driver that does not count them.
pub fn flops(device: u32) -> Option<Flops> {
    let single = counter("bt_emulator_flops_single\0", device)?;
    Some(Flops { single, double: counter("bt_emulator_flops_double\0", device)? })
}

/// What a stand-in driver has counted on a device.
fn counter(name: &str, device: u32) -> Option<u64> {
    let address = library().map_or(0, |driver| driver.address(name));
    // SAFETY: the stand-in driver's functions of these names take a number and give one.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u32) -> u64>(address)(device) })
}

pub(crate) fn library() -> Result<&'static Driver, &'static NoDriver> {
    let load = || {
        let path = CHOSEN.get_or_init(|| std::env::var_os(VARIABLE).map_or_else(|| DEFAULT.into(), PathBuf::from));
        // SAFETY: the initializers of a CUDA driver, or of the library that the user named as one, may run in any thread.
        unsafe { Library::new(path) }.map(Driver).map_err(|e| NoDriver { library: path.clone(), reason: e.to_string() })
    };
    LOADED.get_or_init(load).as_ref()
}

/// The code, or 999 for one that CUDA 11.4 did not have: cust's enum is closed.
pub(crate) fn known(code: u32) -> u32 {
    match code {
        0..=8
        | 34
        | 100..=102
        | 200..=202
        | 205..=224
        | 300..=304
        | 400..=401
        | 500
        | 600
        | 700..=705
        | 708..=720
        | 800..=809
        | 900..=911 => code,
        _ => UNKNOWN,
    }
}

/// What can be said of a code without a driver.
pub(crate) fn text(code: u32) -> &'static CStr {
    match code {
        0 => c"no error",
        2 => c"out of memory",
        100 => c"no CUDA device",
        NO_DRIVER => c"the CUDA driver cannot be loaded",
        NOT_SUPPORTED => c"the CUDA driver does not have this function",
        _ => c"an error of the CUDA driver without a name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{cuGetErrorString, cuInit};

    #[test]
    fn codes_that_cust_does_not_know_become_999() {
        assert_eq!([known(0), known(2), known(719), known(999)], [0, 2, 719, 999]);
        // CUDA 12 and 13: UNSUPPORTED_DEVSIDE_SYNC, CONTAINED, TENSOR_MEMORY_LEAK, INVALID_CLUSTER_SIZE, and gaps.
        assert_eq!([known(225), known(721), known(912), known(9), known(203)], [999; 5]);
    }

    #[test]
    fn without_a_driver_every_function_says_so() {
        let nowhere = Path::new("/no/such/driver.so");
        assert_eq!(choose(nowhere), Ok(()));
        let error = load().unwrap_err();
        assert!(error.to_string().starts_with("the CUDA driver /no/such/driver.so cannot be loaded: "), "{error}");
        assert_eq!(choose(Path::new("/another.so")), Err(nowhere.to_owned()));
        let mut said = std::ptr::null();
        // SAFETY: neither function is reached; `said` is a place for one pointer.
        let said = unsafe {
            assert_eq!(cuInit(0), NO_DRIVER);
            assert_eq!(cuGetErrorString(NO_DRIVER, &raw mut said), 0);
            CStr::from_ptr(said)
        };
        assert_eq!(said, c"the CUDA driver cannot be loaded");
    }
}
