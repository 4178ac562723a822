//! The device layer, the only folder that names cust: the device, its vectors, its kernels.
//!
//! Primary contexts only, one stream a device, so that everything happens in the order it was asked for.

mod error;
mod launch;
mod vector;

use std::sync::{Arc, OnceLock};

use cust::context::{Context, CurrentContext};
use cust::device::{Device as CudaDevice, DeviceAttribute};
use cust::error::CudaError;
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};

pub use error::{DeviceError, Result};
pub(crate) use launch::{Arg, Family, Kernel, Shape};
pub use vector::{DeviceScalar, DeviceVec};

/// A CUDA device: its context and stream, and the kernels loaded so far. Clones are the same device.
///
/// ```
/// use bt_kernels::{Device, DeviceError};
/// match Device::open(0) {
///     Ok(device) => println!("{}: {} multiprocessors", device.name(), device.multiprocessors()),
///     Err(DeviceError::NoDriver { reason }) => println!("no GPU: {reason}"),
///     Err(other) => println!("{other}"),
/// }
/// ```
#[derive(Clone)]
pub struct Device(Arc<Inner>);

/// Fields are dropped in this order.
struct Inner {
    modules: [OnceLock<Module>; Family::COUNT],
    stream: Stream,
    context: Context,
    ordinal: u32,
    name: String,
    memory: usize,
    multiprocessors: u32,
    capability: (u32, u32),
    shared_memory: u32,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Modules and the stream are given back to the current context, in whatever thread this is.
        let _ = CurrentContext::set_current(&self.context);
    }
}

impl Device {
    /// Opens device `ordinal`, from 0.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver that starts, [`DeviceError::NoDevice`] when there are fewer devices or
    /// it has a compute capability below 7.0, [`DeviceError::Lost`] when it does not answer.
    pub fn open(ordinal: u32) -> Result<Self> {
        bt_cuda_driver::load().map_err(|e| DeviceError::NoDriver { reason: e.to_string() })?;
        let no_driver = |e: CudaError| DeviceError::NoDriver { reason: bt_cuda_driver::describe(e as u32) };
        cust::init(cust::CudaFlags::empty()).map_err(no_driver)?;
        let count = CudaDevice::num_devices().map_err(no_driver)?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        let lost = DeviceError::while_("opening it");
        let device = CudaDevice::get_device(ordinal).map_err(&lost)?;
        let attribute = |which| device.get_attribute(which).map(i32::unsigned_abs).map_err(&lost);
        let capability =
            (attribute(DeviceAttribute::ComputeCapabilityMajor)?, attribute(DeviceAttribute::ComputeCapabilityMinor)?);
        let name = device.name().map_err(&lost)?;
        if capability.0 < 7 {
            let (major, minor) = capability;
            let reason = format!("{name} has compute capability {major}.{minor}, and 7.0 is needed");
            return Err(DeviceError::NoDriver { reason });
        }
        let context = Context::new(device).map_err(&lost)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(&lost)?;
        Ok(Self(Arc::new(Inner {
            modules: Default::default(),
            stream,
            context,
            ordinal,
            name,
            memory: device.total_memory().map_err(&lost)?,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            capability,
            shared_memory: attribute(DeviceAttribute::MaxSharedMemoryPerBlock)?,
        })))
    }

    /// Its number, from 0.
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal
    }

    /// Its name, as the driver tells it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Bytes of its memory.
    pub fn memory(&self) -> usize {
        self.0.memory
    }

    /// Its multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.0.multiprocessors
    }

    /// Its compute capability: (9, 0) for 9.0.
    pub fn capability(&self) -> (u32, u32) {
        self.0.capability
    }

    /// Bytes of shared memory that a block may have without asking for more.
    pub fn shared_memory(&self) -> u32 {
        self.0.shared_memory
    }

    /// Waits until all that was asked for is done.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] when a kernel failed.
    pub fn synchronize(&self, during: &str) -> Result<()> {
        self.make_current()?;
        self.0.stream.synchronize().map_err(DeviceError::while_(during))
    }

    /// For this thread: every call of the driver is to the current context.
    fn make_current(&self) -> Result<()> {
        CurrentContext::set_current(&self.0.context).map_err(DeviceError::while_("switching to it"))
    }
}
