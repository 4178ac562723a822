//! How a call ended: codes, the sentence behind the last failure of a thread, and the border that no panic crosses.

#![allow(unsafe_code)] // functions for C

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use blocktri::{Error, FactorError, Outcome, SolveReport};
use bt_formats::Error as InputError;

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum blocktri_status {
    /// All is well.
    BLOCKTRI_OK = 0,
    /// A null pointer, a size below 0, an unknown name, indices that contradict each other, options that do not fit the method.
    BLOCKTRI_INVALID_ARGUMENT = 1,
    /// A NaN or infinity in a matrix or right-hand side; the message has row and column.
    BLOCKTRI_NOT_FINITE = 2,
    /// The matrix is singular; the message has the column.
    BLOCKTRI_SINGULAR = 3,
    /// The method cannot factor this matrix, or the iteration cannot go on; another method may do.
    BLOCKTRI_BREAKDOWN = 4,
    /// More memory is needed than there is, or more than 32-bit indices can count.
    BLOCKTRI_OUT_OF_MEMORY = 5,
    /// x is the best that was found, and weaker than asked for: the report says how weak.
    BLOCKTRI_NOT_ACCURATE = 6,
    /// The monitor ended it. x is the best so far where the call has one.
    BLOCKTRI_INTERRUPTED = 7,
    /// The time limit ended it. x is the best so far where the call has one.
    BLOCKTRI_TIME_LIMIT = 8,
    /// A bug in this library.
    BLOCKTRI_INTERNAL = 9,
}

use blocktri_status::{
    BLOCKTRI_BREAKDOWN, BLOCKTRI_INTERNAL, BLOCKTRI_INTERRUPTED, BLOCKTRI_INVALID_ARGUMENT, BLOCKTRI_NOT_ACCURATE,
    BLOCKTRI_NOT_FINITE, BLOCKTRI_OK, BLOCKTRI_OUT_OF_MEMORY, BLOCKTRI_SINGULAR, BLOCKTRI_TIME_LIMIT,
};

/// A code and its sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: blocktri_status,
    pub message: String,
}

/// Result of a call.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// An argument that cannot be used.
    pub fn argument(message: impl Into<String>) -> Self {
        Self { status: BLOCKTRI_INVALID_ARGUMENT, message: message.into() }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let status = match error {
            InputError::NonFinite { .. } => BLOCKTRI_NOT_FINITE,
            InputError::NotEnoughMemory { .. } | InputError::TooLarge { .. } => BLOCKTRI_OUT_OF_MEMORY,
            _ => BLOCKTRI_INVALID_ARGUMENT,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Input(input) | Error::Factor(FactorError::Input(input)) => return input.into(),
            Error::UnknownName { ref known, .. } => {
                return Self::argument(format!("{error}; there are {known}"));
            }
            Error::Singular(_) | Error::Factor(FactorError::Singular(_)) => BLOCKTRI_SINGULAR,
            Error::Factor(FactorError::Stopped) => BLOCKTRI_INTERRUPTED,
            Error::Factor(_) | Error::Device(_) => BLOCKTRI_BREAKDOWN,
            _ => BLOCKTRI_INVALID_ARGUMENT,
        };
        Self { status, message: error.to_string() }
    }
}

/// Whether the answer of a report is as good as was asked for.
pub(crate) fn judged(report: &SolveReport) -> Result<()> {
    let status = match report.outcome {
        Outcome::Converged => return Ok(()),
        Outcome::Breakdown(_) => BLOCKTRI_BREAKDOWN,
        Outcome::Stopped => BLOCKTRI_INTERRUPTED,
        Outcome::TimeLimit => BLOCKTRI_TIME_LIMIT,
        _ => BLOCKTRI_NOT_ACCURATE,
    };
    let why = match report.outcome {
        Outcome::Breakdown(reason) => format!("{}: {reason}", report.outcome.name()),
        other => other.name().to_owned(),
    };
    let (method, error) = (report.method, report.certificate.backward_error);
    Err(Failure { status, message: format!("{method} ended with {why}; the backward error of x is {error:.1e}") })
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the sentence for this thread. Where the thread is ending there is nobody left to read it.
fn remember(message: &str) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Why the last call of this thread failed, in a sentence that names row, column or block where there is one; empty before the first
/// failure. Calls that succeed leave it alone. The text is this library's and stands until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn blocktri_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The name of a status: `"singular"`, ….
#[unsafe(no_mangle)]
pub extern "C" fn blocktri_status_name(status: i32) -> *const c_char {
    const NAMES: [&CStr; 10] = [
        c"ok",
        c"invalid argument",
        c"not finite",
        c"singular",
        c"breakdown",
        c"out of memory",
        c"not accurate",
        c"interrupted",
        c"time limit",
        c"internal error",
    ];
    let name = usize::try_from(status).ok().and_then(|i| NAMES.get(i));
    name.map_or(c"unknown status".as_ptr(), |name| name.as_ptr())
}

/// The version of this library: `"0.1.0"`.
#[unsafe(no_mangle)]
pub extern "C" fn blocktri_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Does the work of a call; failures and panics become its status.
pub(crate) fn guard(work: impl FnOnce() -> Result<()>) -> blocktri_status {
    let failure = match caught(work) {
        Ok(()) => return BLOCKTRI_OK,
        Err(failure) => failure,
    };
    remember(&failure.message);
    failure.status
}

/// Does work that cannot fail; `otherwise` where it panics.
pub(crate) fn guard_value<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    caught(|| Ok(work())).unwrap_or_else(|failure| {
        remember(&failure.message);
        otherwise
    })
}

/// A panic as a failure.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let panic: &(dyn Any + Send) = &*panic;
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("a bug in blocktri: {}", text.unwrap_or("it panicked"));
        Err(Failure { status: BLOCKTRI_INTERNAL, message })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the text of this thread.
        unsafe { CStr::from_ptr(blocktri_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn failures_and_panics_are_codes_with_a_sentence() {
        assert_eq!(last(), "");
        assert_eq!(guard(|| Err(Failure::argument("n is -1"))), BLOCKTRI_INVALID_ARGUMENT);
        assert_eq!(last(), "n is -1");
        assert_eq!(guard(|| Ok(())), BLOCKTRI_OK);
        assert_eq!(last(), "n is -1");
        assert_eq!(guard(|| panic!("with a\0 inside")), BLOCKTRI_INTERNAL);
        assert_eq!(last(), "a bug in blocktri: with a  inside");
        assert_eq!(guard_value(7, || panic!("none")), 7);
    }

    #[test]
    fn a_thread_has_its_own_sentence() {
        assert_eq!(guard(|| Err(Failure::argument("here"))), BLOCKTRI_INVALID_ARGUMENT);
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(last(), "here");
    }

    #[test]
    fn every_status_has_a_name() {
        let name = |status: i32| {
            // SAFETY: a constant.
            unsafe { CStr::from_ptr(blocktri_status_name(status)) }.to_str().unwrap()
        };
        assert_eq!(name(BLOCKTRI_INTERNAL as i32), "internal error");
        assert_eq!(name(BLOCKTRI_NOT_ACCURATE as i32), "not accurate");
        assert_eq!((name(-1), name(10)), ("unknown status", "unknown status"));
    }
}
