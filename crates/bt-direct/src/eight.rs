//! What loops over eight doubles side by side share, see [`Eight`].

use bt_simd::Eight;
use pulp::NullaryFnOnce;
use pulp::bytemuck::{Pod, cast};

use crate::band_lu::kernels::LANES;

/// Work over eight lanes.
pub(crate) trait Work {
    type Output;
    /// To be inlined.
    fn work<E: Eight>(self, simd: E) -> Self::Output;
}

struct With<E, W>(E, W);

impl<E: Eight, W: Work> NullaryFnOnce for With<E, W> {
    type Output = W::Output;
    #[inline(always)]
    fn call(self) -> W::Output {
        self.1.work(self.0)
    }
}

/// Whether the processor has such registers, of AVX-512 or AVX2.
pub(crate) fn are_there() -> bool {
    #[cfg(target_arch = "x86_64")]
    return bt_simd::avx2().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Runs `work` with the longest registers; only where [`are_there`].
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = bt_simd::avx512() {
        return simd.vectorize(With(simd, work));
    } else if let Some(simd) = bt_simd::avx2() {
        return simd.vectorize(With(simd, work));
    }
    drop(work);
    unreachable!("work that fits has such registers")
}

/// Eight numbers from `at` on; zeros where there are none.
#[inline(always)]
pub(crate) fn eight<V: Pod>(values: &[f64], at: usize) -> V {
    if let Some(v) = values.get(at..).and_then(<[f64]>::first_chunk::<LANES>) {
        return cast(*v);
    }
    let mut some = [0.0; LANES];
    for (i, v) in some.iter_mut().enumerate() {
        *v = values.get(at + i).map_or(0.0, |&v| v);
    }
    cast(some)
}

#[inline(always)]
pub(crate) fn first_lane<V: Pod>(v: V) -> f64 {
    let [first, ..]: [f64; LANES] = cast(v);
    first
}

/// The lanes before this one.
#[inline(always)]
pub(crate) fn lanes_before(lane: usize) -> u8 {
    !0xffu8.checked_shl(lane as u32).unwrap_or(0)
}
