//! Random butterflies and elimination of a dense matrix on a GPU.

use bt_direct::{Factorization, FallbackReason, RbtOptions};
use bt_formats::Scalar;
use faer::Mat;

use crate::error::Error;

#[cfg(feature = "cuda")]
use super::device::complex;
#[cfg(not(feature = "cuda"))]
use super::open::absent;

/// Factors of a dense matrix, and why they are those of the processor, if they are.
pub(crate) type Dense<T> = (Box<dyn Factorization<T>>, Option<FallbackReason>);

/// On the device of this number.
#[cfg(feature = "cuda")]
pub(crate) fn rbt<T: Scalar>(a: &Mat<T>, ordinal: u32, options: RbtOptions) -> Result<Dense<T>, Error> {
    let device = bt_kernels::Device::open(ordinal)?;
    if let Some(made) = rbt_of_real::<T, f64>(&device, a, options) {
        return made;
    }
    rbt_of_real::<T, f32>(&device, a, options).unwrap_or_else(|| Err(complex()))
}

/// Factors if R is T.
#[cfg(feature = "cuda")]
fn rbt_of_real<T: Scalar, R: bt_kernels::DeviceScalar>(
    device: &bt_kernels::Device,
    a: &Mat<T>,
    options: RbtOptions,
) -> Option<Result<Dense<T>, Error>> {
    let a: &dyn std::any::Any = a;
    let made = bt_kernels::DeviceRbt::with_options(
        device,
        a.downcast_ref::<Mat<R>>()?.as_ref(),
        options,
        bt_kernels::Schedule::Auto,
    )
    .map_err(Error::from);
    let made: Result<Dense<R>, Error> = made.map(|rbt| {
        let reason = rbt.fallback();
        (Box::new(rbt) as _, reason)
    });
    let made: Box<dyn std::any::Any> = Box::new(made);
    made.downcast().ok().map(|made| *made)
}

/// There is none.
#[cfg(not(feature = "cuda"))]
pub(crate) fn rbt<T: Scalar>(_: &Mat<T>, ordinal: u32, _: RbtOptions) -> Result<Dense<T>, Error> {
    Err(absent(ordinal))
}
