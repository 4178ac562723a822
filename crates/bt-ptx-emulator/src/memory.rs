//! Global memory: allocations that never share a part of the address space, checked at every access.
//!
//! ```text
//! 63   62     61   58 57        34 33             0
//! local|shared| device | allocation |   offset + BASE
//! ```
//!
//! The number of an allocation is never given out again, so that an access after `free` is found however late it comes.
//! Offsets start at [`BASE`]: addresses are multiples of 256, as the driver promises, and of nothing larger.

use crate::error::{DeviceError, FaultKind, Stopped, stop};
use crate::op::poison;

/// Bit of generic addresses in shared memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 62;
/// Bit of generic addresses in a thread's local memory.
pub(crate) const LOCAL_WINDOW: u64 = 1 << 63;
/// Both.
pub(crate) const WINDOWS: u64 = SHARED_WINDOW | LOCAL_WINDOW;

const OFFSET_BITS: u32 = 34;
const OFFSETS: u64 = (1 << OFFSET_BITS) - 1;
/// Allocations of a device at most.
const NUMBERS: usize = 1 << 24;
const BASE: u64 = 256;

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The program's own, which it frees.
    Buffer,
    /// A module's variable in `.global`.
    Variable,
    /// A module's variable in `.const`: kernels only read it.
    Constant,
}

/// An allocation: its bytes until it is freed, and its size for messages after that.
#[derive(Debug)]
struct Allocation {
    bytes: Vec<u8>,
    size: usize,
    purpose: Purpose,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Freed,
}

/// All allocations of a device.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Number before its first allocation: no two devices share addresses.
    before: usize,
    allocations: Vec<Allocation>,
    capacity: usize,
    used: usize,
}

impl Memory {
    /// Of device `ordinal`, below 16.
    pub(crate) fn new(ordinal: usize, capacity: usize) -> Self {
        Self { before: ordinal * NUMBERS, allocations: Vec::new(), capacity, used: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.capacity.saturating_sub(self.used)
    }

    /// Poisoned memory at a new address.
    pub(crate) fn allocate(&mut self, size: usize, purpose: Purpose) -> Result<u64, DeviceError> {
        if size == 0 {
            return Err(DeviceError::InvalidValue);
        }
        if size > self.free_bytes() || size as u64 > OFFSETS - 2 * BASE || self.allocations.len() + 1 == NUMBERS {
            return Err(DeviceError::OutOfMemory);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| DeviceError::OutOfMemory)?;
        poison(&mut bytes, size);
        self.used += size;
        self.allocations.push(Allocation { bytes, size, purpose, state: State::Live });
        Ok(((self.before + self.allocations.len()) as u64) << OFFSET_BITS | BASE)
    }

    /// Frees a buffer that [`Self::allocate`] gave out at this address.
    pub(crate) fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        self.release(address, |purpose| purpose == Purpose::Buffer)
    }

    /// Frees a module's variable.
    pub(crate) fn free_variable(&mut self, address: u64) -> Result<(), DeviceError> {
        self.release(address, |purpose| purpose != Purpose::Buffer)
    }

    fn release(&mut self, address: u64, fits: impl Fn(Purpose) -> bool) -> Result<(), DeviceError> {
        let (Some(allocation), BASE) = (self.number(address), address & OFFSETS) else {
            return Err(DeviceError::InvalidValue);
        };
        let allocation = &mut self.allocations[allocation];
        if allocation.state == State::Freed || !fits(allocation.purpose) {
            return Err(DeviceError::InvalidValue);
        }
        allocation.state = State::Freed;
        allocation.bytes = Vec::new();
        self.used -= allocation.size;
        Ok(())
    }

    /// Frees everything; the addresses stay used up.
    pub(crate) fn clear(&mut self) {
        for allocation in &mut self.allocations {
            allocation.state = State::Freed;
            allocation.bytes = Vec::new();
        }
        self.used = 0;
    }

    fn number(&self, address: u64) -> Option<usize> {
        let number = ((address >> OFFSET_BITS) as usize).checked_sub(self.before)?;
        (1..=self.allocations.len()).contains(&number).then(|| number - 1)
    }

    /// The bytes of a host's copy; `None` outside one live allocation.
    pub(crate) fn bytes(&self, address: u64, size: usize) -> Option<&[u8]> {
        let from = (address & OFFSETS).checked_sub(BASE)? as usize;
        self.allocations[self.number(address)?].bytes.get(from..from.checked_add(size)?)
    }

    pub(crate) fn bytes_mut(&mut self, address: u64, size: usize) -> Option<&mut [u8]> {
        let from = (address & OFFSETS).checked_sub(BASE)? as usize;
        let number = self.number(address)?;
        self.allocations[number].bytes.get_mut(from..from.checked_add(size)?)
    }

    /// Copies within the device; ranges may overlap. `None` outside live allocations.
    pub(crate) fn copy(&mut self, to: u64, from: u64, size: usize) -> Option<()> {
        let bytes = self.bytes(from, size)?.to_vec();
        self.bytes_mut(to, size)?.copy_from_slice(&bytes);
        Some(())
    }

    /// What a kernel reads.
    #[inline]
    pub(crate) fn read(&self, address: u64, bytes: usize) -> Result<u64, Stopped> {
        match self.bytes(address, bytes) {
            Some(found) if address.is_multiple_of(bytes as u64) => Ok(word(found)),
            _ => self.refuse(address, bytes, "read"),
        }
    }

    /// What a kernel writes.
    #[inline]
    pub(crate) fn write(&mut self, address: u64, bytes: usize, value: u64) -> Result<(), Stopped> {
        let writable = self.number(address).is_some_and(|k| self.allocations[k].purpose != Purpose::Constant);
        match self.bytes_mut(address, bytes) {
            Some(found) if address.is_multiple_of(bytes as u64) && writable => {
                set_word(found, value);
                Ok(())
            }
            _ => self.refuse(address, bytes, "write"),
        }
    }

    #[cold]
    fn refuse<T>(&self, address: u64, bytes: usize, what: &str) -> Result<T, Stopped> {
        if self.bytes(address, bytes).is_some() {
            if !address.is_multiple_of(bytes as u64) {
                return stop(
                    FaultKind::Misaligned,
                    format!("a {what} of {bytes} bytes at {address:#x}, not a multiple"),
                );
            }
            return stop(FaultKind::ReadOnly, format!("a {what} at {address:#x}, in constant memory"));
        }
        let place = match self.number(address) {
            None => "which is in no allocation".to_owned(),
            Some(k) => {
                let (size, offset) = (self.allocations[k].size, (address & OFFSETS).cast_signed() - BASE.cast_signed());
                let freed = if self.allocations[k].state == State::Freed { "a freed " } else { "an " };
                format!("offset {offset} of {freed}allocation of {size} bytes")
            }
        };
        stop(FaultKind::IllegalAddress, format!("a {what} of {bytes} bytes at {address:#x}, {place}"))
    }
}

/// One, two, four or eight bytes as a number.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("accesses have 1, 2, 4 or 8 bytes"),
    }
}

#[inline]
pub(crate) fn set_word(bytes: &mut [u8], value: u64) {
    match bytes.len() {
        1 => bytes[0] = value as u8,
        2 => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
        4 => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
        _ => bytes.copy_from_slice(&value.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::POISON;

    #[test]
    fn memory_is_poisoned_bounded_and_counted() {
        let mut memory = Memory::new(0, 100);
        let a = memory.allocate(60, Purpose::Buffer).unwrap();
        assert_eq!(memory.read(a + 8, 8), Ok(POISON));
        assert!(f64::from_bits(POISON).is_nan() && f32::from_bits(POISON as u32).is_nan());
        assert_eq!(memory.allocate(41, Purpose::Buffer), Err(DeviceError::OutOfMemory));
        assert_eq!(memory.allocate(0, Purpose::Buffer), Err(DeviceError::InvalidValue));
        memory.write(a + 56, 4, 7).unwrap();
        assert_eq!(memory.read(a + 56, 4), Ok(7));
        for (address, kind) in [
            (a + 60, FaultKind::IllegalAddress),
            (a - 4, FaultKind::IllegalAddress),
            (0, FaultKind::IllegalAddress),
            (a + 57, FaultKind::IllegalAddress),
            (a + 54, FaultKind::Misaligned),
        ] {
            assert_eq!(memory.read(address, 4).unwrap_err().0, kind, "{address:#x}");
            assert_eq!(memory.write(address, 4, 0).unwrap_err().0, kind, "{address:#x}");
        }
        assert_eq!(memory.free(a + 4), Err(DeviceError::InvalidValue));
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(DeviceError::InvalidValue));
        assert!(memory.read(a, 4).unwrap_err().1.contains("freed"));
        assert_eq!(memory.free_bytes(), 100);
        assert_ne!(memory.allocate(60, Purpose::Buffer), Ok(a));
    }

    #[test]
    fn constants_are_read_only() {
        let mut memory = Memory::new(0, 100);
        let a = memory.allocate(8, Purpose::Constant).unwrap();
        assert_eq!(memory.write(a, 4, 0).unwrap_err().0, FaultKind::ReadOnly);
        assert!(memory.read(a, 8).is_ok());
    }
}
