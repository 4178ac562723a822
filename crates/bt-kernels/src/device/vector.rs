//! Vectors in device memory.

#![allow(unsafe_code)] // copies without the driver's implicit waiting

use std::mem::ManuallyDrop;

use bt_formats::{Error as InputError, Scalar};
use cust::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer, DeviceCopy, mem_get_info};

use super::{Arg, Device, DeviceError, Result};

/// Elements that kernels compute with: f32 and f64.
pub trait DeviceScalar: Scalar + DeviceCopy + sealed::Sealed {
    /// How the kernels for it end: "f32".
    const SUFFIX: &'static str;
    /// The value as an argument of a kernel.
    #[doc(hidden)]
    fn arg(self) -> ArgValue;
}

/// An argument by value, whose kind is the crate's own affair.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ArgValue(pub(crate) Arg<'static>);

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl DeviceScalar for f32 {
    const SUFFIX: &'static str = "f32";
    fn arg(self) -> ArgValue {
        ArgValue(Arg::Word(u64::from(self.to_bits())))
    }
}

impl DeviceScalar for f64 {
    const SUFFIX: &'static str = "f64";
    fn arg(self) -> ArgValue {
        ArgValue(Arg::Word(self.to_bits()))
    }
}

impl Device {
    /// Bytes of its memory that nothing has taken.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub fn free_memory(&self) -> Result<usize> {
        self.make_current()?;
        mem_get_info().map(|memory| memory.0).map_err(DeviceError::while_("asking for its free memory"))
    }
}

/// A vector of fixed length in the memory of a device.
pub struct DeviceVec<T: DeviceCopy> {
    /// Freed with the context current, before the device.
    buffer: ManuallyDrop<DeviceBuffer<T>>,
    device: Device,
}

impl<T: DeviceCopy> DeviceVec<T> {
    /// Memory as it is found: a kernel writes it before another reads it.
    pub(crate) fn uninitialized(device: &Device, len: usize) -> Result<Self> {
        let free = device.free_memory()?;
        let Some(needed) = len.checked_mul(size_of::<T>()).filter(|&needed| needed <= free) else {
            return Err(DeviceError::OutOfMemory { needed: len.saturating_mul(size_of::<T>()), free });
        };
        // SAFETY: every bit pattern of the element types (integers and reals) is a value.
        let buffer = unsafe { DeviceBuffer::uninitialized(len) };
        let buffer = buffer.map_err(|e| match e as u32 {
            // The free memory may be in pieces.
            2 => DeviceError::OutOfMemory { needed, free },
            code => DeviceError::lost("taking memory", code),
        })?;
        Ok(Self { buffer: ManuallyDrop::new(buffer), device: device.clone() })
    }

    /// Zero bytes: the number 0 of every element type.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], [`DeviceError::Lost`].
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        let vector = Self::uninitialized(device, len)?;
        let stream = device.0.stream.as_inner();
        // SAFETY: the vector has that many bytes. On the stream, so that kernels launched later find them written.
        let code = unsafe { cust::sys::cuMemsetD8Async(vector.address(), 0, vector.bytes(), stream) } as u32;
        if code == 0 { Ok(vector) } else { Err(DeviceError::lost("writing zeros", code)) }
    }

    /// A copy of `host`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], [`DeviceError::Lost`].
    pub fn from_slice(device: &Device, host: &[T]) -> Result<Self> {
        let mut vector = Self::uninitialized(device, host.len())?;
        vector.copy_from(host)?;
        Ok(vector)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// self ← host, of the same length.
    ///
    /// # Errors
    /// [`bt_formats::Error::DimensionMismatch`], [`DeviceError::Lost`].
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        self.same_length(host.len())?;
        self.device.make_current()?;
        let lost = DeviceError::while_("copying to it");
        // SAFETY: `host` outlives the copy, which is waited for.
        unsafe { self.buffer.async_copy_from(host, &self.device.0.stream) }.map_err(&lost)?;
        self.device.0.stream.synchronize().map_err(&lost)
    }

    /// host ← self, after everything that was asked of the device before.
    ///
    /// # Errors
    /// [`bt_formats::Error::DimensionMismatch`]; [`DeviceError::Lost`] when a kernel before failed. `host` is as it was then.
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.same_length(host.len())?;
        self.device.synchronize("computing")?;
        let lost = DeviceError::while_("copying from it");
        self.buffer.copy_to(host).map_err(lost)
    }

    /// self[first ..] ← host, as far as that goes.
    pub(crate) fn copy_range_from(&mut self, first: usize, host: &[T]) -> Result<()> {
        if host.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        let lost = DeviceError::while_("copying to it");
        let mut range = self.buffer.index(first..first + host.len());
        // SAFETY: `host` outlives the copy, which is waited for.
        unsafe { range.async_copy_from(host, &self.device.0.stream) }.map_err(&lost)?;
        self.device.0.stream.synchronize().map_err(&lost)
    }

    /// host ← self[first ..], as far as that goes.
    pub(crate) fn copy_range_to(&self, first: usize, host: &mut [T]) -> Result<()> {
        if host.is_empty() {
            return Ok(());
        }
        self.device.synchronize("computing")?;
        let lost = DeviceError::while_("copying from it");
        self.buffer.index(first..first + host.len()).copy_to(host).map_err(lost)
    }

    /// self[first ..] ← other[from ..][.. len], from the memory of another device perhaps, as the next thing on its stream. Nobody waits:
    /// [`Device::wait_for`] puts a reader behind it.
    pub(crate) fn receive(&mut self, first: usize, other: &Self, from: usize, len: usize) -> Result<()> {
        assert!(first + len <= self.len() && from + len <= other.len(), "a copy within both vectors");
        if len == 0 {
            return Ok(());
        }
        let (to, source) = (&self.device, &other.device);
        source.make_current()?;
        let at = |vector: &Self, k: usize| vector.address() + (k * size_of::<T>()) as u64;
        let (stream, bytes) = (source.0.stream.as_inner(), len * size_of::<T>());
        // SAFETY: both ranges lie in their vectors. The driver frees memory in the order of the context's work, and both vectors stay with
        // the solver that waits for the source's stream.
        let code = unsafe {
            cust::sys::cuMemcpyPeerAsync(
                at(self, first),
                to.context(),
                at(other, from),
                source.context(),
                bytes,
                stream,
            )
        };
        if code as u32 == 0 { Ok(()) } else { Err(DeviceError::lost("copying between devices", code as u32)) }
    }

    fn same_length(&self, found: usize) -> Result<()> {
        let expected = self.len();
        if found == expected {
            return Ok(());
        }
        Err(InputError::DimensionMismatch { what: "length of a vector on the device", expected, found }.into())
    }

    pub(crate) fn arg(&self) -> Arg<'static> {
        Arg::Word(self.address())
    }

    /// Where it is on the device.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.as_device_ptr().as_raw()
    }
}

impl<T: DeviceCopy> Drop for DeviceVec<T> {
    fn drop(&mut self) {
        // Where this fails the device is lost, and its memory with it.
        let _ = self.device.make_current();
        // SAFETY: dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.buffer) };
    }
}
