//! The device layer, the only folder that names cust: the device, its vectors, its kernels.
//!
//! Primary contexts only. A [`Device`] is one stream, so that everything happens in the order it was asked for; others that work
//! beside it come from [`Device::new_stream`].

mod error;
mod launch;
mod vector;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cust::context::{Context, ContextHandle, CurrentContext};
use cust::device::{Device as CudaDevice, DeviceAttribute};
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};

pub use error::{DeviceError, Result};
pub(crate) use launch::{Arg, Family, Kernel, Shape};
pub use vector::{DeviceScalar, DeviceVec};

/// A stream of a CUDA device: what is asked of it happens in that order. Clones are the same stream.
///
/// Solvers and vectors belong to the stream they were made on.
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
pub struct Device(Arc<Queue>);

/// Fields are dropped in this order.
struct Queue {
    stream: Stream,
    chip: Arc<Chip>,
    /// The first error of work that could not return it.
    unsaid: Mutex<Option<DeviceError>>,
}

/// What all streams of a device share: its context, the kernels loaded so far, and facts. Fields are dropped in this order.
struct Chip {
    modules: [OnceLock<Module>; Family::COUNT],
    context: Context,
    ordinal: u32,
    name: String,
    memory: usize,
    multiprocessors: u32,
    capability: (u32, u32),
    shared_memory: u32,
    bandwidth: f64,
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The stream is given back to the current context, in whatever thread this is.
        let _ = CurrentContext::set_current(&self.chip.context);
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        // Modules alike.
        let _ = CurrentContext::set_current(&self.context);
    }
}

impl Device {
    /// How many devices the driver sees.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver that starts.
    pub fn count() -> Result<u32> {
        bt_cuda_driver::load().map_err(|e| DeviceError::NoDriver { reason: e.to_string() })?;
        let no_driver = |e: CudaError| DeviceError::NoDriver { reason: bt_cuda_driver::describe(e as u32) };
        cust::init(cust::CudaFlags::empty()).map_err(no_driver)?;
        CudaDevice::num_devices().map_err(no_driver)
    }

    /// Opens device `ordinal`, from 0.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver that starts, [`DeviceError::NoDevice`] when there are fewer devices or
    /// it has a compute capability below 7.0, [`DeviceError::Lost`] when it does not answer.
    pub fn open(ordinal: u32) -> Result<Self> {
        let count = Self::count()?;
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
        Self::on(Arc::new(Chip {
            modules: Default::default(),
            context,
            ordinal,
            name,
            memory: device.total_memory().map_err(&lost)?,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            capability,
            shared_memory: attribute(DeviceAttribute::MaxSharedMemoryPerBlock)?,
            // Two transfers a cycle; the clock is in kHz and the width in bits. A driver that does not tell is no reason not to open it.
            bandwidth: [DeviceAttribute::MemoryClockRate, DeviceAttribute::GlobalMemoryBusWidth]
                .map(|which| f64::from(attribute(which).unwrap_or(0)))
                .into_iter()
                .product::<f64>()
                * 250.0,
        }))
    }

    fn on(chip: Arc<Chip>) -> Result<Self> {
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(DeviceError::while_("making a stream"))?;
        Ok(Self(Arc::new(Queue { stream, chip, unsaid: Mutex::default() })))
    }

    /// Another stream of the same device: what is asked of the two may run at the same time, from different threads too.
    ///
    /// ```
    /// # use bt_kernels::{Device, DeviceCg, DevicePreconditioner, Schedule};
    /// # use bt_formats::{Csr, StopCriterion};
    /// let solve = |device: &Device, shift: f64| {
    ///     let a = Csr::from_dense(faer::mat![[2.0 + shift, -1.0], [-1.0, 2.0]].as_ref())?;
    ///     let mut x = [0.0; 2];
    ///     let none = &DevicePreconditioner::Identity;
    ///     DeviceCg::new(device, &a, none, Schedule::Auto)?.solve(&[1.0, 1.0], &mut x, &StopCriterion::default(), &mut ())?;
    ///     Ok::<_, bt_kernels::DeviceError>(x)
    /// };
    /// if let Ok(device) = Device::open(0) {
    ///     let other = device.new_stream()?;
    ///     let (first, second) = std::thread::scope(|scope| {
    ///         let beside = scope.spawn(|| solve(&other, 1.0));
    ///         (solve(&device, 0.0), beside.join().unwrap())
    ///     });
    ///     assert!((first?[0] - 1.0).abs() < 1e-15 && (second?[0] - 0.6).abs() < 1e-15);
    /// }
    /// # Ok::<(), bt_kernels::DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub fn new_stream(&self) -> Result<Self> {
        self.make_current()?;
        Self::on(self.0.chip.clone())
    }

    /// What is asked of this stream from now on begins when all that was asked of `other` until now is done. Nobody waits here.
    ///
    /// Needed where a vector or factors made on one stream are used on another.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub fn wait_for(&self, other: &Self) -> Result<()> {
        let lost = DeviceError::while_("putting streams in order");
        other.make_current()?;
        let event = Event::new(EventFlags::DISABLE_TIMING).map_err(&lost)?;
        event.record(&other.0.stream).map_err(&lost)?;
        self.make_current()?;
        self.0.stream.wait_event(event, StreamWaitEventFlags::DEFAULT).map_err(&lost)
    }

    /// Its number, from 0.
    pub fn ordinal(&self) -> u32 {
        self.0.chip.ordinal
    }

    /// Its name, as the driver tells it.
    pub fn name(&self) -> &str {
        &self.0.chip.name
    }

    /// Bytes of its memory.
    pub fn memory(&self) -> usize {
        self.0.chip.memory
    }

    /// Bytes a second of its memory, by its clock and width: what the data sheet says, which no kernel reaches; 0 where the driver does not
    /// tell.
    pub fn bandwidth(&self) -> f64 {
        self.0.chip.bandwidth
    }

    /// Its multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.0.chip.multiprocessors
    }

    /// Its compute capability: (9, 0) for 9.0.
    pub fn capability(&self) -> (u32, u32) {
        self.0.chip.capability
    }

    /// Bytes of shared memory that a block may have without asking for more.
    pub fn shared_memory(&self) -> u32 {
        self.0.chip.shared_memory
    }

    /// Waits until all that was asked for is done.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] when a kernel failed.
    pub fn synchronize(&self, during: &str) -> Result<()> {
        self.make_current()?;
        self.0.stream.synchronize().map_err(DeviceError::while_(during))
    }

    /// Waits like [`Device::synchronize`], and tells what work of this stream met that could not say it itself: an application of
    /// [`crate::Offloaded`] or a solve with [`crate::DeviceRbt`], which leaves NaN. The first such error since the last call, a launch that
    /// the driver refused, say, and the device is as it was.
    ///
    /// # Errors
    /// That; [`DeviceError::Lost`] when a kernel failed.
    pub fn check(&self, during: &str) -> Result<()> {
        let unsaid = self.0.unsaid.lock().unwrap_or_else(PoisonError::into_inner).take();
        unsaid.map_or_else(|| self.synchronize(during), Err)
    }

    /// Keeps an error for [`Device::check`].
    pub(crate) fn keep(&self, error: DeviceError) {
        self.0.unsaid.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The handle of its context.
    fn context(&self) -> cust::sys::CUcontext {
        self.0.chip.context.get_inner()
    }

    /// For this thread: every call of the driver is to the current context.
    fn make_current(&self) -> Result<()> {
        CurrentContext::set_current(&self.0.chip.context).map_err(DeviceError::while_("switching to it"))
    }
}
