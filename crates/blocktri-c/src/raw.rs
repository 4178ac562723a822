//! Pointers of C to slices, matrices and handles: the only place where they are followed.
//!
//! Each function checks what can be checked: null, alignment, sizes that overflow. That the memory is there is the caller's word.

#![allow(unsafe_code)] // memory of another language

use std::ffi::{CStr, c_char};

use blocktri::faer::{MatMut, MatRef};

use crate::status::{Failure, Result};

/// A size of C: at least 0.
pub(crate) fn size(what: &str, value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Failure::argument(format!("{what} is {value} and must be at least 0")))
}

/// Null or misaligned, or larger than any memory.
fn check<T>(what: &str, at: *const T, count: usize) -> Result<()> {
    if at.is_null() {
        return Err(Failure::argument(format!("{what} is a null pointer")));
    }
    if !at.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::argument(format!("{what}: {count} numbers are more than any memory holds")));
    }
    Ok(())
}

/// `count` numbers; where there are none the pointer may be null.
///
/// # Safety
/// They are there, and nobody writes them while the slice lives.
pub(crate) unsafe fn slice<'a, T>(what: &str, at: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(what, at, count)?;
    // SAFETY: neither null nor misaligned, of a size that memory can have; the rest is the caller's.
    Ok(unsafe { std::slice::from_raw_parts(at, count) })
}

/// `count` numbers to be written.
///
/// # Safety
/// They are there, and nobody else reads or writes them while the slice lives.
pub(crate) unsafe fn slice_mut<'a, T>(what: &str, at: *mut T, count: usize) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(what, at, count)?;
    // SAFETY: as of `slice`.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, count) })
}

/// Numbers from the first to the last of `ncols` columns of `nrows`, `ld` apart; none where a dimension is 0.
fn extent(what: &str, nrows: usize, ncols: usize, ld: usize) -> Result<usize> {
    if ncols > 1 && ld < nrows {
        return Err(Failure::argument(format!("the leading dimension of {what} is {ld} and must be at least {nrows}")));
    }
    if nrows == 0 || ncols == 0 {
        return Ok(0);
    }
    let extent = (ncols - 1).checked_mul(ld).and_then(|last| last.checked_add(nrows));
    extent
        .ok_or_else(|| Failure::argument(format!("{what}: {ncols} columns {ld} apart are more than any memory holds")))
}

/// A matrix of `ncols` columns of `nrows` numbers, `ld` apart.
///
/// # Safety
/// As of [`slice`], of the columns.
pub(crate) unsafe fn columns<'a, T>(
    what: &str,
    at: *const T,
    (nrows, ncols): (usize, usize),
    ld: usize,
) -> Result<MatRef<'a, T>> {
    let count = extent(what, nrows, ncols, ld)?;
    if count == 0 {
        return Ok(MatRef::from_column_major_slice(&[], nrows, ncols));
    }
    check(what, at, count)?;
    // SAFETY: neither null nor misaligned, of a size that memory can have, the columns apart; the rest is the caller's.
    Ok(unsafe { MatRef::from_raw_parts(at, nrows, ncols, 1, ld as isize) })
}

/// [`columns`] to be written.
///
/// # Safety
/// As of [`slice_mut`], of the columns.
pub(crate) unsafe fn columns_mut<'a, T>(
    what: &str,
    at: *mut T,
    (nrows, ncols): (usize, usize),
    ld: usize,
) -> Result<MatMut<'a, T>> {
    let count = extent(what, nrows, ncols, ld)?;
    if count == 0 {
        return Ok(MatMut::from_column_major_slice_mut(&mut [], nrows, ncols));
    }
    check(what, at, count)?;
    // SAFETY: as of `columns`.
    Ok(unsafe { MatMut::from_raw_parts_mut(at, nrows, ncols, 1, ld as isize) })
}

/// What a pointer points to.
///
/// # Safety
/// It is there, and nobody writes it while the reference lives.
pub(crate) unsafe fn reference<'a, T>(what: &str, at: *const T) -> Result<&'a T> {
    check(what, at, 1)?;
    // SAFETY: neither null nor misaligned; the rest is the caller's.
    Ok(unsafe { &*at })
}

/// Writes what is returned through an argument; nowhere where the pointer is null.
///
/// # Safety
/// There is room for it.
pub(crate) unsafe fn write<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the room is the caller's word; what was there is not read.
        unsafe { to.write_unaligned(value) }
    }
}

/// Whether there is somewhere to write.
pub(crate) fn check_out<T>(what: &str, to: *mut T) -> Result<()> {
    check(what, to.cast_const(), 1)
}

/// A value on the heap, which the caller frees by [`release`].
///
/// # Safety
/// As of [`write`].
pub(crate) unsafe fn give<T>(to: *mut *mut T, value: T) {
    let made = Box::into_raw(Box::new(value));
    // SAFETY: as of `write`.
    unsafe { write(to, made) }
}

/// Frees what [`give`] gave; nothing where the pointer is null.
///
/// # Safety
/// It came from `give`, was not freed, and is not in use.
pub(crate) unsafe fn release<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: made by `Box::into_raw`, once, as the caller says.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// A text in UTF-8; `None` of a null pointer.
///
/// # Safety
/// It ends with a zero, and nobody writes it while the reference lives.
pub(crate) unsafe fn text<'a>(what: &str, at: *const c_char) -> Result<Option<&'a str>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; its end is the caller's word.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(Some).map_err(|_| Failure::argument(format!("{what} is not in UTF-8")))
}

/// The first `known` bytes of a structure whose size its first field tells; those that it does not have keep the values of `value`.
///
/// # Safety
/// `from` points to a structure of `size` bytes, which begins as `T` does.
pub(crate) unsafe fn read_prefix<T: Copy>(value: &mut T, from: *const T, size: usize) {
    let size = size.min(size_of::<T>());
    // SAFETY: both have so many bytes, and every field of `T` may be any bytes that C has put there.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut *value).cast::<u8>(), size) }
}

/// The first bytes of a value into a structure of `size` bytes.
///
/// # Safety
/// `to` has room for `size` bytes.
pub(crate) unsafe fn write_prefix<T: Copy>(to: *mut T, value: &T, size: usize) {
    let size = size.min(size_of::<T>());
    // SAFETY: both have so many bytes.
    unsafe { std::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>(), to.cast::<u8>(), size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_looked_at() {
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0];
        let at = numbers.as_ptr();
        // SAFETY: the numbers are there where the checks pass.
        unsafe {
            assert_eq!(slice("a", at, 2).unwrap(), [1.0, 2.0]);
            assert!(slice::<f64>("a", std::ptr::null(), 0).unwrap().is_empty());
            assert!(slice::<f64>("a", std::ptr::null(), 1).unwrap_err().message.contains("a is a null pointer"));
            assert!(slice("a", at.byte_add(1), 1).unwrap_err().message.contains("not aligned"));
            assert!(slice("a", at, usize::MAX / 4).unwrap_err().message.contains("more than any memory"));
            assert_eq!(columns("b", at, (2, 2), 3).unwrap()[(1, 1)], 5.0);
            assert!(columns("b", at, (2, 2), 1).unwrap_err().message.contains("leading dimension of b is 1"));
            assert!(columns("b", at, (2, usize::MAX), 3).is_err());
            assert_eq!(columns::<f64>("b", std::ptr::null(), (0, 3), 0).unwrap().shape(), (0, 3));
        }
        assert!(size("n", -1).unwrap_err().message.contains("n is -1"));
    }

    #[test]
    fn handles_are_given_and_released() {
        let mut handle = std::ptr::null_mut();
        // SAFETY: made, looked at and freed once.
        unsafe {
            give(&raw mut handle, String::from("x"));
            assert_eq!(reference("a handle", handle).unwrap(), "x");
            release(handle);
            release::<String>(std::ptr::null_mut());
        }
    }
}
