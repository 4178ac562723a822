//! Streams and events. Work is done when it is enqueued, so that nothing is ever pending.

use std::ffi::{c_int, c_uint, c_void};
use std::time::Instant;

use super::codes::Code;
use super::put;
use super::state::{Event, State, Stream, Timing, in_context};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut usize, flags: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cuStreamCreateWithPriority(stream, flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) -> c_int {
    in_context(|state| {
        if flags > 1 {
            return Err(Code::InvalidValue);
        }
        let handle = state.handle();
        // SAFETY: the caller's promise.
        unsafe { put(stream, handle) }?;
        let home = state.here();
        state.streams.insert(handle, Stream { home, flags, priority });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    in_context(|state| state.streams.remove(&stream).map(|_| ()).ok_or(Code::InvalidHandle))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: usize) -> c_int {
    in_context(|state| state.check_stream(stream))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetFlags(stream: usize, flags: *mut c_uint) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        // SAFETY: the caller's promise.
        unsafe { put(flags, state.streams.get(&stream).map_or(0, |s| s.flags)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetPriority(stream: usize, priority: *mut c_int) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        // SAFETY: the caller's promise.
        unsafe { put(priority, state.streams.get(&stream).map_or(0, |s| s.priority)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> c_int {
    in_context(|state| state.check_stream(stream).and_then(|()| find(state, event).map(|_| ())))
}

/// Calls the host's function at once: everything before it in the stream is done.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchHostFunc(
    stream: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> c_int {
    let Some(function) = function else { return Code::InvalidValue as c_int };
    let code = in_context(|state| state.check_stream(stream));
    if code == 0 {
        // SAFETY: the caller promises that the function takes this data; no lock is held while it runs.
        unsafe { function(data) };
    }
    code
}

/// The flag of events that keep no time.
const DISABLE_TIMING: c_uint = 2;

fn find(state: &mut State, event: usize) -> Result<&mut Event, Code> {
    state.events.get_mut(&event).ok_or(Code::InvalidHandle)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut usize, flags: c_uint) -> c_int {
    in_context(|state| {
        let handle = state.handle();
        // SAFETY: the caller's promise.
        unsafe { put(event, handle) }?;
        let home = state.here();
        let timing = if flags & DISABLE_TIMING != 0 { Timing::Off } else { Timing::On };
        state.events.insert(handle, Event { home, recorded: None, timing });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: usize) -> c_int {
    in_context(|state| state.events.remove(&event).map(|_| ()).ok_or(Code::InvalidHandle))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: usize, stream: usize) -> c_int {
    in_context(|state| {
        state.check_stream(stream)?;
        let home = state.here();
        let event = find(state, event)?;
        if event.home != home {
            return Err(Code::InvalidHandle);
        }
        event.recorded = Some(Instant::now());
        Ok(())
    })
}

/// An event that was never recorded counts as reached.
#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: usize) -> c_int {
    in_context(|state| find(state, event).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    in_context(|state| find(state, event).map(|_| ()))
}

/// Milliseconds of the host between two events: how long the stand-in took, nothing about a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> c_int {
    in_context(|state| {
        let mut recorded = |event| match *find(state, event)? {
            Event { recorded: Some(when), timing: Timing::On, .. } => Ok(when),
            _ => Err(Code::InvalidHandle),
        };
        let (start, end) = (recorded(start)?, recorded(end)?);
        let signed = |a: Instant, b: Instant| b.saturating_duration_since(a).as_secs_f64() * 1e3;
        // SAFETY: the caller's promise.
        unsafe { put(milliseconds, (signed(start, end) - signed(end, start)) as f32) }
    })
}
