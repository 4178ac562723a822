//! Kernels: their PTX, which is loaded when the first kernel of a family is asked for, and their launches.

#![allow(unsafe_code)] // a launch hands untyped pointers to the driver

use std::ffi::c_void;

use cust::module::Module;
use cust::sys::{CUfunction, cuLaunchCooperativeKernel, cuLaunchKernel, cuOccupancyMaxActiveBlocksPerMultiprocessor};

use super::{Device, DeviceError, Result};

/// Files of kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Family {
    Blas1,
    Spmv,
    Cg,
    Hbisa,
    Tridiagonal,
    BiCgStab,
    Sweep,
    Ilu0,
    BlockJacobi,
    Dense,
    TridiagonalOnce,
    BlockLu,
    BandLu,
    Spike,
}

impl Family {
    pub const COUNT: usize = 14;

    fn name(self) -> &'static str {
        match self {
            Self::Blas1 => "kernels/blas1.cu",
            Self::Spmv => "kernels/spmv.cu",
            Self::Cg => "kernels/cg.cu",
            Self::Hbisa => "kernels/hbisa.cu",
            Self::Tridiagonal => "kernels/tridiagonal.cu",
            Self::BiCgStab => "kernels/bicgstab.cu",
            Self::Sweep => "kernels/sweep.cu",
            Self::Ilu0 => "kernels/ilu0.cu",
            Self::BlockJacobi => "kernels/block_jacobi.cu",
            Self::Dense => "kernels/dense.cu",
            Self::TridiagonalOnce => "kernels/tridiagonal_once.cu",
            Self::BlockLu => "kernels/block_lu.cu",
            Self::BandLu => "kernels/band_lu.cu",
            Self::Spike => "kernels/spike.cu",
        }
    }

    fn ptx(self) -> &'static str {
        match self {
            Self::Blas1 => include_str!("../../ptx/blas1.ptx"),
            Self::Spmv => include_str!("../../ptx/spmv.ptx"),
            Self::Cg => include_str!("../../ptx/cg.ptx"),
            Self::Hbisa => include_str!("../../ptx/hbisa.ptx"),
            Self::Tridiagonal => include_str!("../../ptx/tridiagonal.ptx"),
            Self::BiCgStab => include_str!("../../ptx/bicgstab.ptx"),
            Self::Sweep => include_str!("../../ptx/sweep.ptx"),
            Self::Ilu0 => include_str!("../../ptx/ilu0.ptx"),
            Self::BlockJacobi => include_str!("../../ptx/block_jacobi.ptx"),
            Self::Dense => include_str!("../../ptx/dense.ptx"),
            Self::TridiagonalOnce => include_str!("../../ptx/tridiagonal_once.ptx"),
            Self::BlockLu => include_str!("../../ptx/block_lu.ptx"),
            Self::BandLu => include_str!("../../ptx/band_lu.ptx"),
            Self::Spike => include_str!("../../ptx/spike.ptx"),
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg<'a> {
    /// A number of at most eight bytes, or an address.
    Word(u64),
    /// A structure, by value.
    Struct(&'a [u64]),
}

impl From<u32> for Arg<'_> {
    fn from(value: u32) -> Self {
        Self::Word(value.into())
    }
}

impl Arg<'_> {
    fn place(&self) -> *mut c_void {
        match self {
            // Little-endian, as every host of a CUDA device: a shorter number is at the same address.
            Self::Word(word) => std::ptr::from_ref(word).cast_mut().cast(),
            Self::Struct(words) => words.as_ptr().cast_mut().cast(),
        }
    }
}

/// Blocks, threads of a block, and bytes of shared memory beside the kernel's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub blocks: u32,
    pub threads: u32,
    pub shared: u32,
}

impl Shape {
    /// Threads of a block in every kernel that reduces: BLOCK of kernels/device.h.
    pub const BLOCK: u32 = 256;
    /// Blocks at most: what a device of today can run at once. Fixed, so that sums do not depend on the device.
    pub const BLOCKS: u32 = 1024;

    /// For `work` threads; where there is more work than threads, they stride.
    pub fn over(work: u64) -> Self {
        Self::blocks(u32::try_from(work.div_ceil(Self::BLOCK.into())).unwrap_or(u32::MAX))
    }

    /// For the work of `count` blocks; where there is more work than blocks, they stride.
    pub fn blocks(count: u32) -> Self {
        Self { blocks: count.clamp(1, Self::BLOCKS), threads: Self::BLOCK, shared: 0 }
    }
}

/// A kernel of a device.
pub(crate) struct Kernel {
    function: CUfunction,
    name: String,
    device: Device,
}

// SAFETY: a function handle is valid in every thread as long as its module is loaded, which the device keeps.
unsafe impl Send for Kernel {}
// SAFETY: as above; launches do not change it.
unsafe impl Sync for Kernel {}

impl Device {
    /// The kernel of that name.
    pub(crate) fn kernel(&self, family: Family, name: &str) -> Result<Kernel> {
        self.make_current()?;
        let failed = |what: &str| {
            let what = what.to_owned();
            move |e: cust::error::CudaError| DeviceError::launch(&what, e as u32)
        };
        let cell = &self.0.chip.modules[family as usize];
        let module = if let Some(module) = cell.get() {
            module
        } else {
            let module = Module::from_ptx(family.ptx(), &[]).map_err(failed(family.name()))?;
            // Another thread may have been faster; then this module is unloaded.
            cell.get_or_init(|| module)
        };
        let function = module.get_function(name).map_err(failed(name))?.to_raw();
        Ok(Kernel { function, name: name.to_owned(), device: self.clone() })
    }
}

impl Kernel {
    /// Starts it. The arguments are those of the kernel, in order, with lengths that the vectors among them have.
    pub fn launch(&self, shape: Shape, args: &[Arg<'_>]) -> Result<()> {
        self.start(shape, args, false)
    }

    /// Starts it with all blocks on the device at once, so that they may wait for each other.
    pub fn launch_together(&self, shape: Shape, args: &[Arg<'_>]) -> Result<()> {
        self.start(shape, args, true)
    }

    fn start(&self, shape: Shape, args: &[Arg<'_>], together: bool) -> Result<()> {
        self.device.make_current()?;
        let mut places: Vec<*mut c_void> = args.iter().map(Arg::place).collect();
        let Shape { blocks, threads, shared } = shape;
        let (stream, places) = (self.device.0.stream.as_inner(), places.as_mut_ptr());
        // SAFETY: the function is of a loaded module; each place holds as many bytes as the kernel's parameter has, and the
        // driver copies them before it returns. What the kernel does with the vectors is tested with every access checked.
        let code = unsafe {
            if together {
                cuLaunchCooperativeKernel(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, places)
            } else {
                let none = std::ptr::null_mut();
                cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, places, none)
            }
        };
        self.check(code as u32)
    }

    /// How many blocks of a shape the device holds at once.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> Result<u32> {
        self.device.make_current()?;
        let mut each = 0;
        // SAFETY: `each` is a place for the answer.
        let code = unsafe {
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut each, self.function, threads as i32, shared as usize)
        };
        self.check(code as u32)?;
        Ok(each.unsigned_abs() * self.device.multiprocessors())
    }

    fn check(&self, code: u32) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(DeviceError::launch(&self.name, code)) }
    }
}
