//! Reading memory in order before it is worked on in another order.

/// Bytes along which the hardware reads ahead at most: a page.
pub(crate) const PAGE: usize = 4096;

/// Reads a value of every cache line in order, which leaves them in the second-level cache. The hardware looks ahead along
/// a few long streams, and not along the dozens of short ones of systems or pieces side by side.
pub(crate) fn read<T: Copy>(values: &[T]) {
    for v in values.iter().step_by(64 / size_of::<T>()) {
        std::hint::black_box(*v);
    }
}
