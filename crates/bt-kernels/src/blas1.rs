//! Vector operations on the device, with inner products that have the same bits every time.
//!
//! Products of f32 are summed in double precision. The blocks of a launch leave one sum each; one more block adds them up, in order.

use bt_formats::Error as InputError;

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Result, Shape};

/// xᵀ·y of two vectors of one length on one device.
///
/// # Errors
/// [`InputError::DimensionMismatch`]; errors of the device.
///
/// # Cost
/// 2n values of traffic, two launches, and a wait for the answer.
pub fn dot<T: DeviceScalar>(x: &DeviceVec<T>, y: &DeviceVec<T>) -> Result<f64> {
    same_length(x, y)?;
    let (device, shape) = (x.device(), Shape::over(x.len() as u64));
    let partial = DeviceVec::uninitialized(device, shape.blocks as usize)?;
    let kernel = device.kernel(Family::Blas1, &format!("dot_{}", T::SUFFIX))?;
    kernel.launch(shape, &[Arg::Word(x.len() as u64), x.arg(), y.arg(), partial.arg()])?;
    total(device, &partial)
}

/// y ← αx + βy, and yᵀ·y of the new y in the same pass. β = 0 never reads y.
///
/// # Errors
/// As [`dot`].
///
/// # Cost
/// 3n values of traffic (2n with β = 0), two launches, and a wait for the answer.
pub fn update<T: DeviceScalar>(alpha: T, x: &DeviceVec<T>, beta: T, y: &mut DeviceVec<T>) -> Result<f64> {
    same_length(x, y)?;
    let (device, shape) = (x.device(), Shape::over(x.len() as u64));
    let partial = DeviceVec::uninitialized(device, shape.blocks as usize)?;
    let kernel = device.kernel(Family::Blas1, &format!("update_{}", T::SUFFIX))?;
    let n = Arg::Word(x.len() as u64);
    kernel.launch(shape, &[n, alpha.arg().0, x.arg(), beta.arg().0, y.arg(), partial.arg()])?;
    total(device, &partial)
}

fn total(device: &Device, partial: &DeviceVec<f64>) -> Result<f64> {
    let sum = DeviceVec::uninitialized(device, 1)?;
    let kernel = device.kernel(Family::Blas1, "sum_parts")?;
    kernel.launch(Shape::blocks(1), &[Arg::from(partial.len() as u32), partial.arg(), sum.arg()])?;
    let mut host = [0.0];
    sum.copy_to(&mut host)?;
    Ok(host[0])
}

fn same_length<T: DeviceScalar>(x: &DeviceVec<T>, y: &DeviceVec<T>) -> Result<()> {
    if x.len() == y.len() {
        return Ok(());
    }
    Err(InputError::DimensionMismatch { what: "length of y", expected: x.len(), found: y.len() }.into())
}
