//! Lines of memory, read or asked for before they are worked on.

use std::ops::Range;

use bt_formats::prefetch;

/// Bytes along which the hardware reads ahead at most: a page.
pub(crate) const PAGE: usize = 4096;

/// Reads a value of every cache line in order, which leaves them in the second-level cache. The hardware looks ahead along
/// a few long streams, and not along the dozens of short ones of systems or pieces side by side.
pub(crate) fn read<T: Copy>(values: &[T]) {
    for v in values.iter().step_by(64 / size_of::<T>()) {
        std::hint::black_box(*v);
    }
}

/// Asks for the cache lines of `values[part]`, as far as there are such values.
#[inline(always)]
pub(crate) fn fetch<T>(values: &[T], part: Range<usize>) {
    part.step_by(64 / size_of::<T>()).for_each(|at| prefetch(values, at));
}
