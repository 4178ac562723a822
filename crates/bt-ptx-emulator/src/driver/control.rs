//! Functions that only the stand-in has: tests set it with them and ask what happened.

use std::ffi::{c_char, c_int, c_uint};

use super::state::always;
use crate::{Races, Settings};

fn change(f: impl Fn(&mut Settings)) {
    always(|state| {
        for chip in &mut state.chips {
            let mut settings = chip.device.settings();
            f(&mut settings);
            chip.device.set(settings);
        }
    });
}

/// How many devices there are, before any of them is opened.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_devices(count: c_uint) {
    always(|state| state.set_devices(count));
}

/// Bytes of the memory of one device.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_memory_of(device: c_uint, bytes: usize) {
    always(|state| {
        if let Some(chip) = state.chips.get_mut(device as usize) {
            let settings = Settings { memory: bytes, ..chip.device.settings() };
            chip.device.set(settings);
        }
    });
}

/// Order of threads and blocks from the next launch on; 0 is the plain one.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_seed(seed: u64) {
    change(|s| s.seed = seed);
}

/// Bytes of device memory; what is allocated stays.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_memory(bytes: usize) {
    change(|s| s.memory = bytes);
}

/// Operations that a launch may take.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_budget(operations: u64) {
    change(|s| s.budget = operations);
}

/// Multiprocessors; they bound cooperative launches.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_multiprocessors(count: c_uint) {
    change(|s| s.multiprocessors = count.max(1));
}

/// Whether races in global memory are looked for too (not 0).
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_global_races(wanted: c_int) {
    change(|s| s.races = if wanted == 0 { Races::Shared } else { Races::Everywhere });
}

/// Launches that every device still starts; it refuses those after them.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_set_launches(count: u64) {
    always(|state| {
        for chip in &mut state.chips {
            let launches = chip.device.launches().saturating_add(count);
            chip.device.set(Settings { launches, ..chip.device.settings() });
        }
    });
}

/// Operations that all launches have run.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_operations() -> u64 {
    always(|state| state.chips.iter().map(|chip| chip.device.operations()).sum())
}

/// Bytes of global memory that the launches of a device have read or written, each access counted.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_traffic(device: c_uint) -> u64 {
    always(|state| state.chips.get(device as usize).map_or(0, |chip| chip.device.traffic()))
}

/// Floating-point operations on f32 of the launches of a device, see [`crate::Flops`].
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_flops_single(device: c_uint) -> u64 {
    always(|state| state.chips.get(device as usize).map_or(0, |chip| chip.device.flops().single))
}

/// The same on f64.
#[unsafe(no_mangle)]
extern "C" fn bt_emulator_flops_double(device: c_uint) -> u64 {
    always(|state| state.chips.get(device as usize).map_or(0, |chip| chip.device.flops().double))
}

/// Copies the message of the last fault or refused module, at most `size` bytes and a zero with them; gives its length,
/// 0 where there was none.
#[unsafe(no_mangle)]
unsafe extern "C" fn bt_emulator_last_fault(buffer: *mut c_char, size: usize) -> c_int {
    always(|state| {
        // SAFETY: the caller promises `size` bytes.
        unsafe { copy_text(&state.message, buffer, size) };
        state.message.len() as c_int
    })
}

/// Copies text with a zero behind it, cut to `size` bytes.
///
/// # Safety
/// `to` is null or has `size` bytes.
pub(super) unsafe fn copy_text(text: &str, to: *mut c_char, size: usize) {
    if to.is_null() || size == 0 {
        return;
    }
    let length = text.len().min(size - 1);
    // SAFETY: length + 1 ≤ size bytes are written, and the text is not the caller's buffer.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), length);
        to.add(length).write(0);
    }
}
