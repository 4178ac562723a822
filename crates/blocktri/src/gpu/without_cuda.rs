//! What a build without CUDA says.

use bt_formats::{Csr, Monitor, Note, Scalar};
use faer::MatRef;

use crate::error::Error;
use crate::gpu::card::{Card, Facts};
use crate::gpu::open::{OpenDevice, absent};
use crate::options::SolveOptions;
use crate::refining::{GivenUp, Run};
use crate::solution::Solution;

pub(super) fn facts(_: &OpenDevice) -> Result<Facts, Error> {
    Err(absent(0))
}

/// The iteration on a GPU.
pub(crate) fn probed<T: Scalar>(
    _: &Run<'_, T>,
    _: &Card,
    _: MatRef<'_, T>,
    _: &mut dyn Monitor,
    _: &mut Vec<Note>,
) -> Result<Result<Solution<T>, GivenUp>, Error> {
    Err(absent(0))
}

pub(super) fn fits<T: Scalar>(_: &Csr<T>, _: &SolveOptions) -> Result<(String, OpenDevice), Error> {
    Err(absent(0))
}

/// A note that names the device.
pub(crate) fn check(_: &OpenDevice) -> Result<Note, Error> {
    Err(absent(0))
}

/// Solves on the devices of the options.
pub(crate) fn solve<T: Scalar>(
    _: &Csr<T>,
    _: MatRef<'_, T>,
    options: &SolveOptions,
    _: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    Err(Error::Device(format!("no {}: this build is without the feature cuda", options.device)))
}
