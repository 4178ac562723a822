//! Methods on a GPU: what of them there is, and the same answers and reports as on the processor.

use bt_formats::{Csr, Monitor, Scalar};
use faer::MatRef;

use crate::error::Error;
use crate::options::SolveOptions;
use crate::solve::Solution;

/// Solves on device `ordinal`.
#[cfg(not(feature = "cuda"))]
pub(crate) fn solve<T: Scalar>(
    _: &Csr<T>,
    _: MatRef<'_, T>,
    ordinal: u32,
    _: &SolveOptions,
    _: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    Err(Error::Device(format!("no GPU {ordinal}: this build of the library is without the feature cuda")))
}

#[cfg(feature = "cuda")]
pub(crate) use with_cuda::solve;

#[cfg(feature = "cuda")]
mod with_cuda {
    use std::any::Any;
    use std::time::Instant;

    use bt_iter::StopRule;
    use bt_kernels::{Device, DeviceCg, DeviceError, DevicePreconditioner, DeviceScalar, Schedule};

    use super::{Csr, Error, MatRef, Monitor, Scalar, Solution, SolveOptions};
    use crate::iterate::{columns, ordered};
    use crate::options::{Method, Precision, Precond};

    impl From<DeviceError> for Error {
        fn from(error: DeviceError) -> Self {
            match error {
                DeviceError::Input(e) => Self::Input(e),
                DeviceError::Factor(e) => e.into(),
                other => Self::Device(other.to_string()),
            }
        }
    }

    pub(crate) fn solve<T: Scalar>(
        a: &Csr<T>,
        b: MatRef<'_, T>,
        ordinal: u32,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let device = Device::open(ordinal)?;
        supported(options)?;
        // Each arm is the caller's own type or none: nothing is converted.
        let (any_a, any_b): (&dyn Any, Box<dyn Any>) = (a, Box::new(b.to_owned()));
        let solved: Option<Box<dyn Any>> = if let (Some(a), Some(b)) = (any_a.downcast_ref(), any_b.downcast_ref()) {
            Some(Box::new(cg::<f64>(&device, a, faer::Mat::as_ref(b), options, monitor)?))
        } else if let (Some(a), Some(b)) = (any_a.downcast_ref(), any_b.downcast_ref()) {
            Some(Box::new(cg::<f32>(&device, a, faer::Mat::as_ref(b), options, monitor)?))
        } else {
            None
        };
        match solved.map(|s| s.downcast::<Solution<T>>()) {
            Some(Ok(solution)) => Ok(*solution),
            _ => {
                Err(Error::Usage { message: "on the GPU there is real arithmetic only; the matrix is complex".into() })
            }
        }
    }

    /// Whether all that is asked for exists on the device.
    fn supported(options: &SolveOptions) -> Result<(), Error> {
        let no =
            |what: String| Err(Error::Usage { message: format!("{what} is not on the GPU yet; use --device cpu") });
        if options.method != Method::Cg {
            return no(format!("--method {} (there is cg)", options.method));
        }
        if options.stop_rule == StopRule::Update {
            return Err(Error::Usage { message: "cg stops on the residual only".into() });
        }
        if options.precision != Precision::Working {
            return no("a preconditioner in single precision under one in double".into());
        }
        match options.precond {
            Precond::Auto | Precond::Jacobi | Precond::None => Ok(()),
            other => no(format!("--precond {} (there are none and jacobi)", other.name())),
        }
    }

    fn cg<T: DeviceScalar>(
        device: &Device,
        a: &Csr<T>,
        b: MatRef<'_, T>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<T>, Error> {
        let start = Instant::now();
        let mut notes = vec![format!(
            "computed on GPU {}, {}, with {} multiprocessors",
            device.ordinal(),
            device.name(),
            device.multiprocessors()
        )];
        let (work, transform, reorder) = ordered(a, options, &mut notes)?;
        let reorder_time = start.elapsed();
        let new = |precond| Ok::<_, Error>((DeviceCg::new(device, &work, precond, Schedule::Auto)?, precond));
        let wanted = match options.precond {
            Precond::None => DevicePreconditioner::Identity,
            _ => DevicePreconditioner::Jacobi,
        };
        let (mut method, precond) = match new(wanted) {
            Err(Error::Factor(why)) if options.precond == Precond::Auto => {
                notes.push(format!("no preconditioner: {why}"));
                new(DevicePreconditioner::Identity)?
            }
            made => made?,
        };
        let setup = start.elapsed().saturating_sub(reorder_time);
        if method.is_persistent() {
            notes.push("all rows fit on the GPU at once: 32 iterations are one launch".into());
        }
        let mut step =
            |rhs: &[T], y: &mut [T], monitor: &mut dyn Monitor| Ok(method.solve(rhs, y, &options.stop, monitor)?);
        let (x, mut report) = columns(a, b, &transform, monitor, &mut step)?;
        (report.times.reorder, report.times.setup) = (reorder_time, setup);
        notes.append(&mut report.notes);
        report.notes = notes;
        let precond = match precond {
            DevicePreconditioner::Jacobi => "jacobi",
            _ => "none",
        };
        Ok(Solution { x, report, reorder, precond, blocks: None, rcond: None, warnings: Vec::new() })
    }
}
