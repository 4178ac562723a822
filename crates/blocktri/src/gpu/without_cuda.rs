//! What a build without CUDA says.

use bt_direct::RbtOptions;
use bt_formats::{Csr, Monitor, Note, Scalar};
use faer::{Mat, MatRef};

use super::card::{Card, Facts};
use super::{Dense, OpenDevice};
use crate::error::Error;
use crate::options::SolveOptions;
use crate::probe::{GivenUp, Run};
use crate::solve::Solution;

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

pub(super) fn fits<T: Scalar>(_: &Csr<T>, _: &SolveOptions) -> Result<String, Error> {
    Err(absent(0))
}

pub(super) fn absent(ordinal: u32) -> Error {
    Error::Device(format!("no GPU {ordinal}: this build is without the feature cuda"))
}

/// Random butterflies and elimination on device `ordinal`.
pub(crate) fn rbt<T: Scalar>(_: &Mat<T>, ordinal: u32, _: RbtOptions) -> Result<Dense<T>, Error> {
    Err(absent(ordinal))
}

/// A note that names device `ordinal`; an error when it was lost in a solve, which left NaN.
pub(crate) fn check(ordinal: u32) -> Result<Note, Error> {
    Err(absent(ordinal))
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
