//! The device: memory, modules and launches behind a safe interface; the C functions of the driver are thin over it.

use std::collections::HashMap;

use crate::decode::decode;
use crate::error::{DeviceError, Fault, LoadError};
use crate::exec::{self, Tally};
use crate::memory::{Memory, Purpose};
use crate::op::Kernel;
use crate::ptx::{self, Space};

/// Threads of a block at most, as on every device since compute capability 2.0.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Threads that are resident on a multiprocessor at most.
pub const MAX_THREADS_PER_MULTIPROCESSOR: u32 = 2048;
/// Blocks that are resident on a multiprocessor at most.
pub const MAX_BLOCKS_PER_MULTIPROCESSOR: u32 = 32;
/// Bytes of shared memory that a block has without asking.
pub const SHARED_PER_BLOCK: u32 = 48 << 10;
/// Bytes of shared memory that a block may ask for, and that a multiprocessor has: those of compute capability 7.0.
pub const SHARED_PER_MULTIPROCESSOR: u32 = 96 << 10;
/// Blocks of an ordinary launch that take turns.
const RESIDENT: u64 = 3;

/// How the stand-in behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Order of threads and blocks; 0 is the plain one.
    pub seed: u64,
    /// Bytes of device memory.
    pub memory: usize,
    /// Operations that a launch may take.
    pub budget: u64,
    /// Multiprocessors: they bound the blocks of a cooperative launch.
    pub multiprocessors: u32,
    /// Where races are looked for.
    pub races: Races,
    /// Launches that are started; those after them are refused for want of resources, and nothing else is lost.
    pub launches: u64,
}

/// Where races are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Races {
    /// In shared memory.
    Shared,
    /// In global memory too, within each launch: several times slower. A fault is a race; not every race is found.
    Everywhere,
}

impl Default for Settings {
    /// Seed 0, 1 GiB, 4·10⁹ operations, 8 multiprocessors, races in shared memory, any number of launches.
    fn default() -> Self {
        Self {
            seed: 0,
            memory: 1 << 30,
            budget: 4_000_000_000,
            multiprocessors: 8,
            races: Races::Shared,
            launches: u64::MAX,
        }
    }
}

/// A loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleId(usize);

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelId {
    module: usize,
    kernel: usize,
}

impl KernelId {
    /// The kernel as one number above zero, for handles.
    pub(crate) fn to_bits(self) -> usize {
        (self.module << 20 | self.kernel) + 1
    }

    pub(crate) fn from_bits(bits: usize) -> Self {
        let bits = bits.wrapping_sub(1);
        Self { module: bits >> 20, kernel: bits & 0xf_ffff }
    }
}

impl ModuleId {
    pub(crate) fn to_bits(self) -> usize {
        self.0 + 1
    }

    pub(crate) fn from_bits(bits: usize) -> Self {
        Self(bits.wrapping_sub(1))
    }
}

/// What a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Bytes of shared memory that its code declares.
    pub static_shared: u32,
    /// Bytes of local memory of a thread.
    pub local: u32,
    /// Threads of a block at most.
    pub max_threads: u32,
    /// Bytes of dynamic shared memory that it may be launched with.
    pub max_dynamic_shared: u32,
}

/// Whether all blocks of a launch must be resident at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// Blocks come and go in any order.
    Ordinary,
    /// A cooperative launch: blocks may wait for each other.
    Cooperative,
}

/// Sizes of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Ordinary or cooperative.
    pub residency: Residency,
}

/// Floating-point operations: an addition, subtraction, product, quotient or root is one, a fused product with its addition two. Signs,
/// comparisons, minima and conversions are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flops {
    /// On f32.
    pub single: u64,
    /// On f64.
    pub double: u64,
}

struct Module {
    kernels: Vec<Kernel>,
    /// Bytes of dynamic shared memory that each kernel may have.
    dynamic: Vec<u32>,
    variables: HashMap<String, (u64, usize)>,
}

/// Why a launch did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// Refused before anything ran.
    Refused(DeviceError),
    /// Stopped by a fault.
    Fault(Fault),
}

/// A device of one's own, with its memory and modules.
///
/// ```
/// use bt_ptx_emulator::{Device, Residency, Settings, Shape};
/// let mut device = Device::new(Settings::default());
/// let module = device.load(
///     ".version 6.3\n.target sm_70\n.address_size 64\n
///      .visible .entry twice(.param .u64 x) {
///         .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .f64 %fd<3>;
///         ld.param.u64 %rd1, [x];
///         mov.u32 %r1, %tid.x;
///         mul.wide.u32 %rd2, %r1, 8;
///         add.s64 %rd1, %rd1, %rd2;
///         ld.global.f64 %fd1, [%rd1];
///         add.rn.f64 %fd2, %fd1, %fd1;
///         st.global.f64 [%rd1], %fd2;
///         ret;
///      }",
/// )?;
/// let x = device.allocate(16)?;
/// device.write(x, &[1.5f64.to_le_bytes(), 4f64.to_le_bytes()].concat())?;
/// let shape = Shape { grid: [1; 3], block: [2, 1, 1], dynamic_shared: 0, residency: Residency::Ordinary };
/// let kernel = device.kernel(module, "twice")?;
/// device.launch(kernel, shape, &x.to_le_bytes()).unwrap();
/// assert_eq!(device.read(x, 16)?, [3f64.to_le_bytes(), 8f64.to_le_bytes()].concat());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Device {
    settings: Settings,
    memory: Memory,
    modules: Vec<Option<Module>>,
    launches: u64,
    operations: u64,
    traffic: u64,
    flops: Flops,
}

impl Device {
    /// A device with empty memory.
    pub fn new(settings: Settings) -> Self {
        Self::numbered(0, settings)
    }

    /// Device `ordinal` of several, below 16: no two share addresses.
    pub(crate) fn numbered(ordinal: usize, settings: Settings) -> Self {
        let memory = Memory::new(ordinal, settings.memory);
        Self { settings, memory, modules: Vec::new(), launches: 0, operations: 0, traffic: 0, flops: Flops::default() }
    }

    /// How the device behaves.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Changes how the device behaves from the next operation on.
    pub fn set(&mut self, settings: Settings) {
        self.memory.set_capacity(settings.memory);
        self.settings = settings;
    }

    /// Frees all memory and modules; their addresses and handles stay invalid.
    pub fn reset(&mut self) {
        self.memory.clear();
        self.modules.iter_mut().for_each(|m| *m = None);
    }

    /// Operations that all launches have run.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Launches so far.
    pub(crate) fn launches(&self) -> u64 {
        self.launches
    }

    /// Bytes of global memory that the threads of all launches read or wrote, each access counted: caches are not modelled.
    pub fn traffic(&self) -> u64 {
        self.traffic
    }

    /// Floating-point operations of the threads of all launches.
    pub fn flops(&self) -> Flops {
        self.flops
    }

    /// Parses and decodes PTX text.
    ///
    /// # Errors
    /// The first thing in it that is not supported, or a variable that does not fit in memory.
    pub fn load(&mut self, text: &str) -> Result<ModuleId, LoadError> {
        let parsed = ptx::parse(text)?;
        let mut variables = HashMap::new();
        let loaded = self.place(&parsed, &mut variables).and_then(|()| {
            let addresses = variables.iter().map(|(name, v): (&String, &(u64, usize))| (name.clone(), v.0)).collect();
            decode(&parsed, &addresses)
        });
        match loaded {
            Ok(kernels) => {
                let dynamic = kernels.iter().map(|k| SHARED_PER_BLOCK.saturating_sub(k.static_shared as u32)).collect();
                self.modules.push(Some(Module { kernels, dynamic, variables }));
                Ok(ModuleId(self.modules.len() - 1))
            }
            Err(error) => {
                self.free_all(&variables);
                Err(error)
            }
        }
    }

    /// Allocates the global and constant variables and writes their initial values.
    fn place(&mut self, parsed: &ptx::Module, variables: &mut HashMap<String, (u64, usize)>) -> Result<(), LoadError> {
        let in_memory = || parsed.variables.iter().filter(|v| matches!(v.space, Space::Global | Space::Const));
        for variable in in_memory().filter(|v| v.size > 0) {
            let purpose = if variable.space == Space::Const { Purpose::Constant } else { Purpose::Variable };
            let failed = |error: DeviceError| LoadError::new(0, format!("{}: {error}", variable.name));
            let address = self.memory.allocate(variable.size, purpose).map_err(failed)?;
            if variables.insert(variable.name.clone(), (address, variable.size)).is_some() {
                return Err(LoadError::new(0, format!("two variables are named {}", variable.name)));
            }
        }
        for variable in in_memory() {
            let Some(&(address, size)) = variables.get(&variable.name) else { continue };
            let mut bytes = variable.initial.bytes.clone();
            bytes.resize(size, 0);
            for (at, name, addend) in &variable.initial.addresses {
                let Some((target, _)) = variables.get(name) else {
                    return Err(LoadError::new(
                        0,
                        format!("{} holds the address of {name}, which is not there", variable.name),
                    ));
                };
                bytes[*at..at + 8].copy_from_slice(&target.wrapping_add(*addend).to_le_bytes());
            }
            if let Some(place) = self.memory.bytes_mut(address, size) {
                place.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn free_all(&mut self, variables: &HashMap<String, (u64, usize)>) {
        for (address, _) in variables.values() {
            // Addresses that were given out above are live.
            let _ = self.memory.free_variable(*address);
        }
    }

    /// Forgets a module and frees its variables.
    ///
    /// # Errors
    /// [`DeviceError::InvalidHandle`]: it is not loaded.
    pub fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        let module = self.modules.get_mut(module.0).and_then(Option::take).ok_or(DeviceError::InvalidHandle)?;
        self.free_all(&module.variables);
        Ok(())
    }

    fn module(&self, module: usize) -> Result<&Module, DeviceError> {
        self.modules.get(module).and_then(Option::as_ref).ok_or(DeviceError::InvalidHandle)
    }

    /// A kernel by its name.
    ///
    /// # Errors
    /// [`DeviceError::NotFound`], or [`DeviceError::InvalidHandle`] for a module that is not loaded.
    pub fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId, DeviceError> {
        let kernels = &self.module(module.0)?.kernels;
        let kernel = kernels.iter().position(|k| k.name == name).ok_or(DeviceError::NotFound)?;
        Ok(KernelId { module: module.0, kernel })
    }

    /// Address and bytes of a global or constant variable.
    ///
    /// # Errors
    /// [`DeviceError::NotFound`], or [`DeviceError::InvalidHandle`] for a module that is not loaded.
    pub fn variable(&self, module: ModuleId, name: &str) -> Result<(u64, usize), DeviceError> {
        self.module(module.0)?.variables.get(name).copied().ok_or(DeviceError::NotFound)
    }

    fn find(&self, id: KernelId) -> Result<(&Kernel, u32), DeviceError> {
        let module = self.module(id.module)?;
        let kernel = module.kernels.get(id.kernel).ok_or(DeviceError::InvalidHandle)?;
        Ok((kernel, module.dynamic[id.kernel]))
    }

    /// What a kernel needs.
    ///
    /// # Errors
    /// [`DeviceError::InvalidHandle`]
    pub fn info(&self, kernel: KernelId) -> Result<KernelInfo, DeviceError> {
        let (kernel, max_dynamic_shared) = self.find(kernel)?;
        Ok(KernelInfo {
            static_shared: kernel.static_shared as u32,
            local: kernel.functions.iter().map(|f| f.local_bytes as u32).sum(),
            max_threads: kernel.max_threads.min(MAX_THREADS_PER_BLOCK),
            max_dynamic_shared,
        })
    }

    /// Offset and bytes of each parameter in the buffer of a launch.
    ///
    /// # Errors
    /// [`DeviceError::InvalidHandle`]
    pub fn parameters(&self, kernel: KernelId) -> Result<&[(usize, usize)], DeviceError> {
        Ok(&self.find(kernel)?.0.parameters)
    }

    /// Lets a kernel have more dynamic shared memory than it has without asking.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: together with the static memory it is more than a multiprocessor has.
    pub fn set_max_dynamic_shared(&mut self, kernel: KernelId, bytes: u32) -> Result<(), DeviceError> {
        let (found, _) = self.find(kernel)?;
        if bytes > SHARED_PER_MULTIPROCESSOR.saturating_sub(found.static_shared as u32) {
            return Err(DeviceError::InvalidValue);
        }
        if let Some(module) = &mut self.modules[kernel.module] {
            module.dynamic[kernel.kernel] = bytes;
        }
        Ok(())
    }

    /// Blocks of a kernel that are resident on one multiprocessor: bounded by threads, blocks and shared memory.
    /// Registers are not counted.
    ///
    /// # Errors
    /// [`DeviceError::InvalidHandle`], or [`DeviceError::InvalidValue`] for blocks without threads.
    pub fn occupancy(&self, kernel: KernelId, threads: u32, dynamic_shared: u32) -> Result<u32, DeviceError> {
        let info = self.info(kernel)?;
        if threads == 0 {
            return Err(DeviceError::InvalidValue);
        }
        if threads > info.max_threads || dynamic_shared > info.max_dynamic_shared {
            return Ok(0);
        }
        // Warps are whole.
        let by_threads = MAX_THREADS_PER_MULTIPROCESSOR / threads.next_multiple_of(32);
        let by_shared = SHARED_PER_MULTIPROCESSOR / (info.static_shared + dynamic_shared).max(1);
        Ok(by_threads.min(by_shared).min(MAX_BLOCKS_PER_MULTIPROCESSOR))
    }

    /// Poisoned memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or [`DeviceError::InvalidValue`] for no bytes.
    pub fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError> {
        self.memory.allocate(bytes, Purpose::Buffer)
    }

    /// Frees what [`Self::allocate`] gave out.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: no allocation starts there.
    pub fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        self.memory.free(address)
    }

    /// Free bytes, and all bytes.
    pub fn memory_info(&self) -> (usize, usize) {
        (self.memory.free_bytes(), self.memory.capacity())
    }

    /// Copies from the host.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: the range is not in one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.bytes_mut(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// The bytes of a range, to read.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: the range is not in one allocation.
    pub fn read(&self, address: u64, size: usize) -> Result<&[u8], DeviceError> {
        self.memory.bytes(address, size).ok_or(DeviceError::InvalidValue)
    }

    /// The bytes of a range, to write.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: the range is not in one allocation.
    pub fn bytes_mut(&mut self, address: u64, size: usize) -> Result<&mut [u8], DeviceError> {
        self.memory.bytes_mut(address, size).ok_or(DeviceError::InvalidValue)
    }

    /// Copies within the device; the ranges may overlap.
    ///
    /// # Errors
    /// [`DeviceError::InvalidValue`]: a range is not in one allocation.
    pub fn copy(&mut self, to: u64, from: u64, size: usize) -> Result<(), DeviceError> {
        self.memory.copy(to, from, size).ok_or(DeviceError::InvalidValue)
    }

    /// Runs a kernel to its end, with its parameters laid out as [`Self::parameters`] says.
    ///
    /// # Errors
    /// A shape that no device runs, or the first fault, with memory as it was left.
    pub fn launch(&mut self, id: KernelId, shape: Shape, parameters: &[u8]) -> Result<(), LaunchError> {
        let resident = self.check(id, shape, parameters).map_err(LaunchError::Refused)?;
        let Some(Some(module)) = self.modules.get(id.module) else {
            return Err(LaunchError::Refused(DeviceError::InvalidHandle));
        };
        if self.launches >= self.settings.launches {
            return Err(LaunchError::Refused(DeviceError::OutOfResources));
        }
        self.launches += 1;
        let launch = exec::Launch {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.dynamic_shared,
            parameters,
            resident,
            multiprocessors: self.settings.multiprocessors,
            seed: self.settings.seed,
            budget: self.settings.budget,
            number: self.launches as u32,
            races: self.settings.races,
        };
        let Tally { operations, traffic, flops: [single, double] } =
            exec::launch(&module.kernels[id.kernel], &mut self.memory, &launch).map_err(LaunchError::Fault)?;
        self.operations += operations;
        self.traffic += traffic;
        self.flops.single += single;
        self.flops.double += double;
        Ok(())
    }

    /// How many blocks take turns.
    fn check(&self, id: KernelId, shape: Shape, parameters: &[u8]) -> Result<u64, DeviceError> {
        let info = self.info(id)?;
        let product = |[x, y, z]: [u32; 3]| u64::from(x) * u64::from(y) * u64::from(z);
        let (blocks, threads) = (product(shape.grid), product(shape.block));
        let [_, gy, gz] = shape.grid;
        let in_bounds = shape.grid[0] <= i32::MAX.cast_unsigned() && gy <= 65535 && gz <= 65535 && shape.block[2] <= 64;
        let needed = self.parameters(id)?.last().map_or(0, |(at, size)| at + size);
        if blocks == 0 || threads == 0 || !in_bounds || parameters.len() < needed {
            return Err(DeviceError::InvalidValue);
        }
        if threads > u64::from(MAX_THREADS_PER_BLOCK) || shape.dynamic_shared > info.max_dynamic_shared {
            return Err(DeviceError::InvalidValue);
        }
        if threads > u64::from(info.max_threads) {
            return Err(DeviceError::OutOfResources);
        }
        let at_once = u64::from(self.occupancy(id, threads as u32, shape.dynamic_shared)?)
            * u64::from(self.settings.multiprocessors);
        match shape.residency {
            Residency::Ordinary if at_once == 0 => Err(DeviceError::OutOfResources),
            Residency::Ordinary => Ok(RESIDENT),
            Residency::Cooperative if blocks > at_once => Err(DeviceError::CooperativeTooLarge),
            Residency::Cooperative => Ok(blocks),
        }
    }
}
