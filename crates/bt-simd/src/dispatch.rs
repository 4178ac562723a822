//! Loops run on the instruction set in use.

use pulp::{Scalar, Simd, WithSimd};

use crate::isa::Isa;

/// Runs `work` on the instruction set in use.
///
/// ```
/// use bt_simd::pulp::{Simd, WithSimd};
/// struct Sum<'a>(&'a [f64]);
/// impl WithSimd for Sum<'_> {
///     type Output = f64;
///     #[inline(always)]
///     fn with_simd<S: Simd>(self, simd: S) -> f64 {
///         let (vectors, rest) = S::as_simd_f64s(self.0);
///         let sum = vectors.iter().fold(simd.splat_f64s(0.0), |sum, &v| simd.add_f64s(sum, v));
///         simd.reduce_sum_f64s(sum) + rest.iter().sum::<f64>()
///     }
/// }
/// assert_eq!(bt_simd::dispatch(Sum(&[1.0; 19])), 19.0);
/// ```
#[inline(always)]
pub fn dispatch<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = avx512() {
        return Simd::vectorize(simd, work);
    }
    dispatch_short(work)
}

/// Runs `work` on vectors of 256 bits at most: what longer ones gain nothing by is not compiled for them.
#[inline(always)]
pub fn dispatch_short<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = avx2() {
        return Simd::vectorize(simd, work);
    }
    dispatch_base(work)
}

/// Runs `work` on what every processor has: what has been written in registers of 256 bits is not compiled for them once more.
#[inline(always)]
pub fn dispatch_base<W: WithSimd>(work: W) -> W::Output {
    #[cfg(all(target_arch = "x86_64", feature = "base128"))]
    if let Some(simd) = base128() {
        return Simd::vectorize(simd, work);
    }
    Simd::vectorize(Scalar, work)
}

/// Loops, as work: a closure, marked `#[inline(always)]`, that is compiled for each instruction set.
///
/// A closure is work by itself too, but one that could be called twice is then called through a function of the compiler's, into which no
/// attribute reaches: long loops stay outside, compiled once, for no instruction set.
///
/// ```
/// use bt_simd::Loops;
/// let mut y = [1.0; 19];
/// bt_simd::dispatch(Loops(
///     #[inline(always)]
///     || y.iter_mut().for_each(|y| *y += 2.0),
/// ));
/// assert_eq!(y, [3.0; 19]);
/// ```
pub struct Loops<F>(pub F);

impl<R, F: FnMut() -> R> WithSimd for Loops<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// The token of registers of 512 bits, where these are in use.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn avx512() -> Option<pulp::x86::V4> {
    pulp::x86::V4::try_new().filter(|_| Isa::in_use() >= Isa::Avx512)
}

/// The token of registers of 256 bits, where these or longer ones are in use.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn avx2() -> Option<pulp::x86::V3> {
    pulp::x86::V3::try_new().filter(|_| Isa::in_use() >= Isa::Avx2)
}

#[cfg(all(target_arch = "x86_64", feature = "base128"))]
#[inline(always)]
fn base128() -> Option<pulp::x86::V3_128b> {
    let simd = pulp::x86::V3::try_new().filter(|_| Isa::in_use() >= Isa::Base128);
    simd.map(pulp::x86::V3_128b)
}
