//! The C functions, through the shared library as a program finds them.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The device is the process's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

struct Driver {
    library: *mut c_void,
    _alone: MutexGuard<'static, ()>,
}

/// A function of the library as a type of function.
macro_rules! call {
    ($driver:expr, $name:ident($($arg:expr => $ty:ty),*) $(-> $result:ty)?) => {{
        let pointer = $driver.find(stringify!($name));
        #[allow(unused_mut, unused_assignments)]
        {
            // SAFETY: the symbol is the driver's function of this type, and what its arguments lead to is alive.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> call!(@ $($result)?)>(pointer)($($arg),*) }
        }
    }};
    (@) => { c_int };
    (@ $result:ty) => { $result };
}

impl Driver {
    /// The library beside the test's executable, its context current and fresh.
    fn open() -> Self {
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::current_exe().unwrap().with_file_name("libbt_ptx_emulator.so");
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a path that ends with a zero; 2 is RTLD_NOW.
        let library = unsafe { dlopen(name.as_ptr(), 2) };
        assert!(!library.is_null(), "{} cannot be opened", path.display());
        let driver = Self { library, _alone: alone };
        assert_eq!(call!(driver, cuInit(0 => c_uint)), 0);
        let mut context = 0usize;
        assert_eq!(call!(driver, cuDevicePrimaryCtxRetain(&raw mut context => *mut usize, 0 => c_int)), 0);
        assert_eq!(call!(driver, cuCtxSetCurrent(context => usize)), 0);
        driver
    }

    fn find(&self, name: &str) -> *mut c_void {
        let text = CString::new(name).unwrap();
        // SAFETY: the library is open for ever.
        let symbol = unsafe { dlsym(self.library, text.as_ptr()) };
        assert!(!symbol.is_null(), "{name} is not exported");
        symbol
    }

    fn load(&self, text: &str) -> Result<usize, c_int> {
        let (mut module, image) = (0, CString::new(text).unwrap());
        match call!(self, cuModuleLoadData(&raw mut module => *mut usize, image.as_ptr() => *const c_char)) {
            0 => Ok(module),
            code => Err(code),
        }
    }

    fn function(&self, module: usize, name: &CStr) -> usize {
        let mut function = 0;
        let code = call!(self, cuModuleGetFunction(&raw mut function => *mut usize, module => usize, name.as_ptr() => *const c_char));
        assert_eq!(code, 0);
        function
    }

    fn allocate(&self, bytes: usize) -> Result<u64, c_int> {
        let mut address = 0;
        match call!(self, cuMemAlloc_v2(&raw mut address => *mut u64, bytes => usize)) {
            0 => Ok(address),
            code => Err(code),
        }
    }

    fn launch(&self, function: usize, threads: c_uint, parameters: &[*const c_void]) -> c_int {
        let p = parameters.as_ptr();
        call!(self, cuLaunchKernel(function => usize, 1 => c_uint, 1 => c_uint, 1 => c_uint, threads => c_uint,
            1 => c_uint, 1 => c_uint, 0 => c_uint, 0 => usize, p => *const *const c_void, null_mut() => *mut c_void))
    }

    fn synchronize(&self) -> c_int {
        call!(self, cuCtxSynchronize())
    }

    fn last_fault(&self) -> String {
        let mut text = [0 as c_char; 300];
        let length = call!(self, bt_emulator_last_fault(text.as_mut_ptr() => *mut c_char, 300 => usize));
        // SAFETY: the text ends with a zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned();
        assert_eq!(length as usize, text.len());
        text
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        assert_eq!(call!(self, cuDevicePrimaryCtxRelease_v2(0 => c_int)), 0);
    }
}

const FILL: &str = ".version 6.3\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 counter = 5;
    .visible .entry fill(.param .u64 to, .param .u8 add, .param .u32 n) {
    .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to]; ld.param.u8 %r1, [add]; ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x;
    setp.ge.u32 %p1, %r3, %r2; @%p1 ret; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; add.u32 %r4, %r3, %r1;
    st.global.u32 [%rd3], %r4; red.global.add.u32 [counter], 1; ret; }";

fn pointer<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

#[test]
fn a_kernel_from_text_to_result() {
    let driver = Driver::open();
    let module = driver.load(FILL).unwrap();
    let fill = driver.function(module, c"fill");
    let (to, add, n) = (driver.allocate(40).unwrap(), 7u8, 10u32);
    let traffic = || call!(driver, bt_emulator_traffic(0 => c_uint) -> u64);
    let before = traffic();
    assert_eq!(driver.launch(fill, 32, &[pointer(&to), pointer(&add), pointer(&n)]), 0);
    assert_eq!(driver.synchronize(), 0);
    // Ten stores of four bytes, and ten counters read and written.
    assert_eq!(traffic() - before, 10 * 4 + 10 * 8);
    let mut found = [0u32; 10];
    assert_eq!(call!(driver, cuMemcpyDtoH_v2(found.as_mut_ptr() => *mut u32, to => u64, 40 => usize)), 0);
    assert_eq!(found, std::array::from_fn(|k| k as u32 + 7));
    let (mut address, mut bytes, mut counter) = (0u64, 0usize, 0u32);
    assert_eq!(
        call!(driver, cuModuleGetGlobal_v2(&raw mut address => *mut u64, &raw mut bytes => *mut usize, module => usize, c"counter".as_ptr() => *const c_char)),
        0
    );
    assert_eq!(
        call!(driver, cuMemcpyDtoHAsync_v2(&raw mut counter => *mut u32, address => u64, bytes => usize, 0 => usize)),
        0
    );
    assert_eq!((bytes, counter), (4, 15));
    assert_eq!(call!(driver, cuMemFree_v2(address => u64)), 1, "a variable is the module's");
    assert_eq!(call!(driver, cuMemsetD32_v2(to => u64, 9 => c_uint, 10 => usize)), 0);
    assert_eq!(call!(driver, cuMemcpyDtoD_v2(to => u64, to + 20 => u64, 20 => usize)), 0);
    assert_eq!(call!(driver, cuMemcpyDtoH_v2(found.as_mut_ptr() => *mut u32, to => u64, 40 => usize)), 0);
    assert_eq!(found, [9; 10]);
    assert_eq!(call!(driver, cuMemcpyDtoH_v2(found.as_mut_ptr() => *mut u32, to => u64, 44 => usize)), 1);
    assert_eq!(call!(driver, cuMemFree_v2(to => u64)), 0);
    assert_eq!(call!(driver, cuMemFree_v2(to => u64)), 1);
    assert_eq!(call!(driver, cuModuleUnload(module => usize)), 0);
    assert_eq!(driver.launch(fill, 32, &[]), 400);
}

#[test]
fn a_fault_sticks_until_the_context_is_reset() {
    let driver = Driver::open();
    let fill = driver.function(driver.load(FILL).unwrap(), c"fill");
    let (to, add, n) = (driver.allocate(40).unwrap(), 7u8, 11u32);
    assert_eq!(driver.launch(fill, 32, &[pointer(&to), pointer(&add), pointer(&n)]), 0, "launches succeed");
    for _ in 0..2 {
        assert_eq!(driver.synchronize(), 700);
        assert_eq!(driver.allocate(8), Err(700));
    }
    let message = driver.last_fault();
    assert!(message.starts_with("kernel fill, PTX line 9, block (0, 0, 0), thread (10, 0, 0): "), "{message}");
    assert_eq!(call!(driver, cuDevicePrimaryCtxReset_v2(0 => c_int)), 0);
    assert_eq!(driver.synchronize(), 0);
    assert!(driver.allocate(8).is_ok());
    assert_eq!(call!(driver, cuMemFree_v2(to => u64)), 1, "the reset freed it");
}

#[test]
fn refused_modules_say_why() {
    let driver = Driver::open();
    let text = FILL.replace("mul.wide.u32", "mul.narrow.u32");
    assert_eq!(driver.load(&text), Err(218));
    assert!(driver.last_fault().contains("PTX line 8: in fill: the instruction 'mul.narrow.u32' is not supported"));
    assert_eq!(driver.load("\u{7f}ELF"), Err(200));
    let (mut module, image, mut log) = (0usize, CString::new(text).unwrap(), [0u8; 20]);
    let options = [5, 6];
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut::<c_void>(20)];
    let code = call!(driver, cuModuleLoadDataEx(&raw mut module => *mut usize, image.as_ptr() => *const c_char, 2 => c_uint,
        options.as_ptr() => *const c_int, values.as_mut_ptr() => *mut *mut c_void));
    assert_eq!((code, &log[..], values[1] as usize), (218, &b"PTX line 8: in fill\0"[..], 20));
    assert_eq!(driver.synchronize(), 0, "nothing sticks");
}

#[test]
fn memory_runs_out() {
    let driver = Driver::open();
    call!(driver, bt_emulator_set_memory(1000 => usize) -> ());
    let first = driver.allocate(600).unwrap();
    assert_eq!(driver.allocate(401), Err(2));
    let (mut free, mut total) = (0usize, 0usize);
    assert_eq!(call!(driver, cuMemGetInfo_v2(&raw mut free => *mut usize, &raw mut total => *mut usize)), 0);
    assert_eq!((free, total), (400, 1000));
    assert_eq!(call!(driver, cuMemFree_v2(first => u64)), 0);
    assert!(driver.allocate(401).is_ok());
    call!(driver, bt_emulator_set_memory(1 << 30 => usize) -> ());
}

#[test]
fn streams_events_and_host_memory() {
    let driver = Driver::open();
    let (mut stream, mut start, mut end, mut host) = (0usize, 0usize, 0usize, null_mut::<c_void>());
    assert_eq!(call!(driver, cuStreamCreateWithPriority(&raw mut stream => *mut usize, 1 => c_uint, 0 => c_int)), 0);
    assert_eq!(call!(driver, cuEventCreate(&raw mut start => *mut usize, 0 => c_uint)), 0);
    assert_eq!(call!(driver, cuEventCreate(&raw mut end => *mut usize, 0 => c_uint)), 0);
    let mut time = -1f32;
    assert_eq!(call!(driver, cuEventElapsedTime(&raw mut time => *mut f32, start => usize, end => usize)), 400);
    for event in [start, end] {
        assert_eq!(call!(driver, cuEventRecord(event => usize, stream => usize)), 0);
    }
    assert_eq!(call!(driver, cuStreamWaitEvent(stream => usize, end => usize, 0 => c_uint)), 0);
    assert_eq!(call!(driver, cuEventElapsedTime(&raw mut time => *mut f32, start => usize, end => usize)), 0);
    assert!((0. ..60_000.).contains(&time));
    extern "C" fn set(flag: *mut c_void) {
        // SAFETY: the test passes a u32 that is alive.
        unsafe { *flag.cast::<u32>() = 1 };
    }
    let mut flag = 0u32;
    let function: extern "C" fn(*mut c_void) = set;
    assert_eq!(
        call!(driver, cuLaunchHostFunc(stream => usize, function => extern "C" fn(*mut c_void), (&raw mut flag).cast() => *mut c_void)),
        0
    );
    assert_eq!(flag, 1);
    assert_eq!(call!(driver, cuStreamDestroy_v2(stream => usize)), 0);
    assert_eq!(call!(driver, cuStreamSynchronize(stream => usize)), 400);
    assert_eq!(call!(driver, cuEventDestroy_v2(start => usize)), 0);
    assert_eq!(call!(driver, cuEventRecord(start => usize, 0 => usize)), 400);
    assert_eq!(call!(driver, cuMemAllocHost_v2(&raw mut host => *mut *mut c_void, 100 => usize)), 0);
    assert_eq!(call!(driver, cuMemFreeHost(host => *mut c_void)), 0);
    assert_eq!(call!(driver, cuMemFreeHost(host => *mut c_void)), 1);
}

#[test]
fn attributes_and_occupancy() {
    let driver = Driver::open();
    let fill = driver.function(driver.load(FILL).unwrap(), c"fill");
    let attribute = |k| {
        let mut value = -1;
        assert_eq!(call!(driver, cuDeviceGetAttribute(&raw mut value => *mut c_int, k => c_int, 0 => c_int)), 0);
        value
    };
    assert_eq!([1, 10, 16, 75, 76, 95, 97].map(attribute), [1024, 32, 8, 7, 0, 1, 96 << 10]);
    let (mut blocks, mut grid, mut block) = (0, 0, 0);
    assert_eq!(
        call!(driver, cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks => *mut c_int, fill => usize, 100 => c_int, 0 => usize)),
        0
    );
    assert_eq!(blocks, 16);
    assert_eq!(
        call!(driver, cuOccupancyMaxPotentialBlockSize(&raw mut grid => *mut c_int, &raw mut block => *mut c_int, fill => usize,
        null_mut() => *mut c_void, 0 => usize, 0 => c_int)),
        0
    );
    assert_eq!((grid, block), (16, 1024));
    assert_eq!(call!(driver, cuFuncSetAttribute(fill => usize, 8 => c_int, 96 << 10 => c_int)), 0);
    assert_eq!(call!(driver, cuFuncSetAttribute(fill => usize, 8 => c_int, 97 << 10 => c_int)), 1);
    let mut value = 0;
    assert_eq!(call!(driver, cuFuncGetAttribute(&raw mut value => *mut c_int, 8 => c_int, fill => usize)), 0);
    assert_eq!(value, 96 << 10);
}

#[test]
fn codes_have_names_and_contexts_are_needed() {
    let driver = Driver::open();
    let mut text: *const c_char = std::ptr::null();
    assert_eq!(call!(driver, cuGetErrorName(700 => c_int, &raw mut text => *mut *const c_char)), 0);
    // SAFETY: names are static and end with a zero.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(call!(driver, cuGetErrorString(12345 => c_int, &raw mut text => *mut *const c_char)), 1);
    assert_eq!(call!(driver, cuCtxSetCurrent(0 => usize)), 0);
    assert_eq!(driver.allocate(8), Err(201));
    assert_eq!(call!(driver, cuCtxSetCurrent(1 => usize)), 201);
    let mut device = -1;
    assert_eq!(call!(driver, cuDeviceGet(&raw mut device => *mut c_int, 1 => c_int)), 101);
    assert_eq!(call!(driver, cuMemAlloc_v2(null_mut() => *mut u64, 8 => usize)), 201);
}

#[test]
fn devices_have_memories_faults_and_streams_of_their_own() {
    let driver = Driver::open();
    call!(driver, bt_emulator_set_devices(3 => c_uint) -> ());
    let mut count = 0;
    assert_eq!(call!(driver, cuDeviceGetCount(&raw mut count => *mut c_int)), 0);
    assert_eq!(count, 3);
    let mut contexts = [0usize; 3];
    for (device, context) in contexts.iter_mut().enumerate() {
        assert_eq!(call!(driver, cuDevicePrimaryCtxRetain(context => *mut usize, device as c_int => c_int)), 0);
    }
    let current = |device: usize| assert_eq!(call!(driver, cuCtxSetCurrent(contexts[device] => usize)), 0);
    call!(driver, bt_emulator_set_memory_of(2 => c_uint, 64 => usize) -> ());
    let at: [u64; 3] = std::array::from_fn(|device| {
        current(device);
        driver.allocate(40).unwrap()
    });
    assert_eq!(driver.allocate(40), Err(2), "the third has little");
    // From one memory to another, on the stream of the current context; an address is one device's only.
    current(0);
    let (mut stream, mut found) = (0usize, [0u32; 10]);
    assert_eq!(call!(driver, cuStreamCreate(&raw mut stream => *mut usize, 1 => c_uint)), 0);
    assert_eq!(call!(driver, cuMemsetD32_v2(at[0] => u64, 9 => c_uint, 10 => usize)), 0);
    let peer = |to: u64, bytes: usize| call!(driver, cuMemcpyPeerAsync(to => u64, contexts[1] => usize, at[0] => u64, contexts[0] => usize, bytes => usize, stream => usize));
    assert_eq!([peer(at[1], 40), peer(at[1], 44), peer(at[2], 40)], [0, 1, 1]);
    current(1);
    assert_eq!(peer(at[1], 40), 400, "the stream is the first device's");
    assert_eq!(call!(driver, cuMemcpyDtoH_v2(found.as_mut_ptr() => *mut u32, at[1] => u64, 40 => usize)), 0);
    assert_eq!(found, [9; 10]);
    assert_eq!(call!(driver, cuMemFree_v2(at[0] => u64)), 1, "memory of another device");
    // An event of one device orders the streams of another.
    let mut event = 0usize;
    assert_eq!(call!(driver, cuEventCreate(&raw mut event => *mut usize, 2 => c_uint)), 0);
    assert_eq!(call!(driver, cuEventRecord(event => usize, 0 => usize)), 0);
    current(0);
    assert_eq!(call!(driver, cuStreamWaitEvent(stream => usize, event => usize, 0 => c_uint)), 0);
    assert_eq!(call!(driver, cuEventRecord(event => usize, stream => usize)), 400);
    // A kernel of one device that writes to the memory of another is stopped, and only its device is lost.
    let fill = driver.function(driver.load(FILL).unwrap(), c"fill");
    assert_eq!(driver.launch(fill, 32, &[pointer(&at[1]), pointer(&7u8), pointer(&10u32)]), 0);
    assert_eq!(driver.synchronize(), 700);
    current(1);
    assert_eq!(driver.synchronize(), 0);
    for device in 0..3 {
        assert_eq!(call!(driver, cuDevicePrimaryCtxRelease_v2(device => c_int)), 0);
    }
    call!(driver, bt_emulator_set_devices(1 => c_uint) -> ());
    assert_eq!(call!(driver, cuDevicePrimaryCtxReset_v2(0 => c_int)), 0);
}
