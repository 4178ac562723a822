//! Inner loops on contiguous columns, written so that the compiler vectorises them for the caller's instruction set.

use bt_formats::Scalar;

/// y ← y − a·x.
#[inline(always)]
pub(crate) fn axpy_minus<T: Scalar>(a: T, x: &[T], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y -= a * x;
    }
}

/// Σ xᵢyᵢ, in sixteen interleaved partial sums.
#[inline(always)]
pub(crate) fn dot<T: Scalar>(x: &[T], y: &[T], map: impl Fn(T) -> T) -> T {
    const LANES: usize = 16;
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    let mut sums = [T::default(); LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let tail = xs.remainder().iter().zip(ys.remainder()).map(|(&x, &y)| map(x) * y).sum::<T>();
    for (x, y) in xs.zip(ys) {
        for k in 0..LANES {
            sums[k] += map(x[k]) * y[k];
        }
    }
    sums.into_iter().sum::<T>() + tail
}

/// Index of the first element of largest |re| + |im|.
#[inline(always)]
pub(crate) fn index_of_max<T: Scalar>(x: &[T]) -> usize {
    let (mut best, mut at) = (T::default().abs1(), 0);
    for (i, v) in x.iter().enumerate() {
        if v.abs1() > best {
            (best, at) = (v.abs1(), i);
        }
    }
    at
}
