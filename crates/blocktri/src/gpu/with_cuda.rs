//! What is on the device: whether a method is, and the way to its file.

use std::any::Any;

use bt_direct::Refinement;
use bt_formats::{Csr, LinearOperator, Matrix, Monitor, Note, Scalar, memory};
use bt_iter::{BlockForm, DroppedFill, Sweep};
use bt_kernels::{Device, DeviceScalar};
use faer::{Mat, MatRef};

use crate::direct::Direct;
use crate::error::Error;
use crate::gpu::card::{Card, Facts};
use crate::gpu::device::{complex, name};
use crate::gpu::direct::direct;
use crate::gpu::hbisa::hbisa;
use crate::gpu::krylov::{inner, krylov};
use crate::gpu::open::OpenDevice;
use crate::method::{BlockIteration, Factoring, KrylovMethod, Method, Precision};
use crate::names::names;
use crate::options::{DeviceChoice, SolveOptions};
use crate::preconditioners::Precond;
use crate::refining::{GivenUp, Run};
use crate::solution::Solution;

pub(crate) fn solve<T: Scalar>(
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let ordinals: Vec<u32> = match options.device {
        DeviceChoice::Gpus(gpus) => gpus.ordinals().collect(),
        DeviceChoice::Gpu(ordinal) => vec![ordinal],
        DeviceChoice::Cpu | DeviceChoice::Auto => vec![0],
    };
    let devices: Vec<Device> = ordinals.into_iter().map(Device::open).collect::<Result<_, _>>()?;
    if devices.len() > 1 {
        splittable(options)?;
    }
    supported(options)?;
    let b = b.to_owned();
    if let Some(solved) = as_real::<T, f64>(&devices, a, &b, options, monitor) {
        return solved;
    }
    as_real::<T, f32>(&devices, a, &b, options, monitor).unwrap_or_else(|| Err(complex()))
}

/// The name of device 0, held open, if it is there, has the method and may have the memory.
pub(super) fn fits<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> Result<(String, OpenDevice), Error> {
    let open = OpenDevice::open(0)?;
    let device = &open.0;
    if !T::IS_REAL {
        return Err(complex());
    }
    let needed = if matches!(options.method, Method::Direct(Direct::Rbt { .. }, _)) {
        2 * size_of::<T>() * a.nrows() * a.nrows()
    } else {
        supported(options)?;
        let vectors = size_of::<T>().saturating_mul(a.nrows()).saturating_mul(vectors(&options.method, a.nrows()));
        a.bytes().saturating_add(beside(a, &options.method)).saturating_add(vectors)
    };
    let free = device.free_memory()?;
    if needed > free {
        let in_words = |bytes: usize| memory::in_words(bytes as u64);
        let (needed, free, name) = (in_words(needed), in_words(free), name(device));
        return Err(Error::Usage {
            message: format!("about {needed} are more than the {free} that are free on {name}"),
        });
    }
    Ok((name(device), open))
}

pub(super) fn facts(open: &OpenDevice) -> Result<Facts, Error> {
    let device = &open.0;
    let (free, bandwidth) = (device.free_memory()? as u64, device.bandwidth());
    if bandwidth == 0.0 {
        return Err(Error::Device(format!("the driver does not tell the bandwidth of {}", name(device))));
    }
    Ok(Facts { ordinal: device.ordinal(), free, bandwidth })
}

/// The iteration on a GPU.
pub(crate) fn probed<T: Scalar>(
    run: &Run<'_, T>,
    card: &Card,
    b: MatRef<'_, T>,
    monitor: &mut dyn Monitor,
    notes: &mut Vec<Note>,
) -> Result<Result<Solution<T>, GivenUp>, Error> {
    let b = b.to_owned();
    if let Some(solved) = probed_as::<T, f64>(run, &card.open.0, &b, monitor, notes) {
        return solved;
    }
    probed_as::<T, f32>(run, &card.open.0, &b, monitor, notes).unwrap_or_else(|| Err(complex()))
}

/// Solves if R is T.
fn probed_as<T: Scalar, R: DeviceScalar>(
    run: &Run<'_, T>,
    device: &Device,
    b: &Mat<T>,
    monitor: &mut dyn Monitor,
    notes: &mut Vec<Note>,
) -> Option<Result<Result<Solution<T>, GivenUp>, Error>> {
    let (a, b): (&dyn Any, &dyn Any) = (run.a, b);
    let (a, b) = (a.downcast_ref::<Csr<R>>()?, b.downcast_ref::<Mat<R>>()?);
    let run = run.on(a);
    let made = |notes: &mut Vec<Note>| {
        notes.push(Note::ComputedOn { device: name(device) });
        inner(device, a, run.given.method)
    };
    let solved: Box<dyn Any> = Box::new(run.solve(b.as_ref(), made, monitor, notes));
    solved.downcast().ok().map(|solved| *solved)
}

/// Bytes of what an iteration has on the device beside A and its vectors: blocks or a preconditioner, about.
fn beside<T: Scalar>(a: &Csr<T>, method: &Method) -> usize {
    let (n, number) = (a.nrows(), size_of::<T>());
    match method {
        Method::Krylov(krylov) => match krylov.precond {
            Precond::None => 0,
            Precond::Auto | Precond::Jacobi => number * n,
            // p entries with their columns in a row of L and of U, and a diagonal.
            Precond::Ilut { options, .. } => {
                let kept = (number + size_of::<u32>()).saturating_mul(options.fill.min(n));
                n.saturating_mul(kept.saturating_mul(2) + number)
            }
            // On the pattern of A, or on blocks of it.
            _ => a.bytes(),
        },
        _ => a.bytes(),
    }
}

/// Vectors of n values that a method has on the device, about.
fn vectors(method: &Method, n: usize) -> usize {
    let basis = match method {
        Method::Krylov(krylov) => match krylov.method {
            KrylovMethod::Gmres { restart, .. } => restart.min(n),
            KrylovMethod::Fgmres { restart, .. } => 2 * restart.min(n),
            _ => 0,
        },
        _ => 0,
    };
    16 + basis
}

/// A note that names the device; an error when it was lost in a solve, which left NaN.
pub(crate) fn check(OpenDevice(device): &OpenDevice) -> Result<Note, Error> {
    device.synchronize("solving with its factors")?;
    Ok(Note::DenseFactorsOn { device: name(device) })
}

/// Solves if R is T: nothing is converted.
fn as_real<T: Scalar, R: DeviceScalar>(
    devices: &[Device],
    a: &Csr<T>,
    b: &Mat<T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Option<Result<Solution<T>, Error>> {
    let (a, b): (&dyn Any, &dyn Any) = (a, b);
    let (a, b) = (a.downcast_ref::<Csr<R>>()?, b.downcast_ref::<Mat<R>>()?);
    let solved: Box<dyn Any> = Box::new(on(devices, a, b.as_ref(), options, monitor));
    solved.downcast().ok().map(|solved| *solved)
}

/// Whether the preconditioner exists on the device.
fn is_there(precond: &Precond) -> bool {
    matches!(
        precond,
        Precond::Auto
            | Precond::None
            | Precond::Jacobi
            | Precond::Blocks(BlockForm::Jacobi)
            | Precond::Ilu0 { fill: DroppedFill::Forgotten, .. }
            | Precond::Ic0 { fill: DroppedFill::Forgotten, .. }
            | Precond::Ilut { .. }
            | Precond::SsorAi { .. }
            | Precond::SsorAiMasked { .. }
            | Precond::BlockSsorAi { .. }
    )
}

/// Whether all that is asked for exists on the device.
fn supported(options: &SolveOptions) -> Result<(), Error> {
    let no = |what: String| {
        Err(Error::Usage { message: format!("{what} is not on the GPU yet; use the processor (device cpu)") })
    };
    match &options.method {
        Method::Blocks(BlockIteration { sweep: Sweep::Jacobi | Sweep::RedBlack, .. }) => Ok(()),
        Method::Direct(
            Direct::TridiagonalLu | Direct::BlockLu | Direct::BandLu | Direct::Spike { .. },
            Factoring { precision, refinement },
        ) => {
            if *precision != Precision::Working {
                return no("a direct method in single precision".into());
            }
            if *refinement != Refinement::Auto {
                return no("a given number of refinements".into());
            }
            Ok(())
        }
        Method::Krylov(krylov) if krylov.method != KrylovMethod::Fcg => {
            if let KrylovMethod::Gmres { basis: Precision::Single, .. }
            | KrylovMethod::Fgmres { basis: Precision::Single, .. } = krylov.method
            {
                return no("a basis in single precision".into());
            }
            if krylov.precision != Precision::Working {
                return no("a preconditioner in single precision under one in double".into());
            }
            if is_there(&krylov.precond) {
                return Ok(());
            }
            let mut all = Precond::all();
            all.retain(is_there);
            no(format!("the preconditioner {} (there are {})", krylov.precond, names(&all, Precond::name)))
        }
        other => no(format!(
            "the method {other} (there are cg, bicgstab, gmres, fgmres, hbisa, hbisa-redblack, tridiagonal-lu, block-lu, band-lu, spike, rbt)"
        )),
    }
}

/// Whether several devices can share the work.
fn splittable(options: &SolveOptions) -> Result<(), Error> {
    let what = match &options.method {
        Method::Blocks(_) => return Ok(()),
        Method::Krylov(krylov) if krylov.method == KrylovMethod::Cg => match krylov.precond {
            Precond::Auto | Precond::None | Precond::Jacobi => return Ok(()),
            precond => format!("the preconditioner {precond} (there are none and jacobi)"),
        },
        other => format!("the method {other} (there are cg, hbisa, hbisa-redblack)"),
    };
    Err(Error::Usage { message: format!("{what} is not on several GPUs; use one of them (device gpu:0)") })
}

fn on<T: DeviceScalar>(
    devices: &[Device],
    a: &Csr<T>,
    b: MatRef<'_, T>,
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Solution<T>, Error> {
    let mut solution = match &options.method {
        Method::Blocks(given) => hbisa(devices, a, b, given, options, monitor)?,
        Method::Krylov(given) => krylov(devices, a, b, given, options, monitor)?,
        Method::Direct(method, _) => direct(&devices[0], a, b, *method, options)?,
        Method::Auto(_) => unreachable!("auto is not on the GPU"),
    };
    solution
        .report
        .notes
        .insert(0, Note::ComputedOn { device: devices.iter().map(name).collect::<Vec<_>>().join("; ") });
    Ok(solution)
}
