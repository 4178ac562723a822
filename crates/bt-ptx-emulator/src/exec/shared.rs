//! Shared memory of a block: poisoned at its start, bounded, watched for races.

use super::shadow::{Kind, Shadow};
use crate::error::{FaultKind, Stopped, stop};
use crate::memory::{set_word, word};
use crate::op::{Kernel, poison};

#[derive(Debug)]
pub(super) struct Shared {
    bytes: Vec<u8>,
    pub(super) shadow: Shadow,
}

impl Shared {
    pub(super) fn new(kernel: &Kernel, bytes: usize, threads: usize) -> Self {
        let shadow = Shadow::new(bytes, kernel.grain, threads, kernel.has_warp_barriers);
        Self { bytes: vec![0; bytes], shadow }
    }

    /// Poisons all of it for a block that starts.
    pub(super) fn start(&mut self) {
        let bytes = self.bytes.len();
        self.bytes.clear();
        poison(&mut self.bytes, bytes);
        self.shadow.start();
    }

    #[inline]
    pub(super) fn read(&mut self, thread: usize, at: u64, bytes: usize, kind: Kind) -> Result<u64, Stopped> {
        let from = self.check(at, bytes, "read")?;
        self.shadow.access(thread, from, bytes, kind)?;
        Ok(word(&self.bytes[from..from + bytes]))
    }

    #[inline]
    pub(super) fn write(
        &mut self,
        thread: usize,
        at: u64,
        bytes: usize,
        value: u64,
        kind: Kind,
    ) -> Result<(), Stopped> {
        let from = self.check(at, bytes, "write")?;
        self.shadow.access(thread, from, bytes, kind)?;
        set_word(&mut self.bytes[from..from + bytes], value);
        Ok(())
    }

    #[inline]
    fn check(&self, at: u64, bytes: usize, what: &str) -> Result<usize, Stopped> {
        bounded(at, bytes, self.bytes.len(), what, "shared memory")
    }
}

/// The offset of an access that lies within `size` bytes at a multiple of its own size.
#[inline]
pub(super) fn bounded(at: u64, bytes: usize, size: usize, what: &str, place: &str) -> Result<usize, Stopped> {
    if at > size as u64 || at as usize + bytes > size {
        let at = at.cast_signed();
        return stop(
            FaultKind::IllegalAddress,
            format!("a {what} of {bytes} bytes at {at} of {size} bytes of {place}"),
        );
    }
    if !at.is_multiple_of(bytes as u64) {
        return stop(FaultKind::Misaligned, format!("a {what} of {bytes} bytes at {at} of {place}, not a multiple"));
    }
    Ok(at as usize)
}
