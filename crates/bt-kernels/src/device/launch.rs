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
    Gmres,
    Sweep,
    Ilu0,
    BlockJacobi,
    Bcsr,
    Dense,
    TridiagonalOnce,
    BlockLu,
    BandLu,
    Spike,
    Stationary,
    Ilut,
}

impl Family {
    /// All of them, in the order above.
    pub const ALL: [Self; 18] = [
        Self::Blas1,
        Self::Spmv,
        Self::Cg,
        Self::Hbisa,
        Self::Tridiagonal,
        Self::BiCgStab,
        Self::Gmres,
        Self::Sweep,
        Self::Ilu0,
        Self::BlockJacobi,
        Self::Bcsr,
        Self::Dense,
        Self::TridiagonalOnce,
        Self::BlockLu,
        Self::BandLu,
        Self::Spike,
        Self::Stationary,
        Self::Ilut,
    ];
    pub const COUNT: usize = Self::ALL.len();

    fn name(self) -> &'static str {
        match self {
            Self::Blas1 => "kernels/blas1.cu",
            Self::Spmv => "kernels/spmv.cu",
            Self::Cg => "kernels/cg.cu",
            Self::Hbisa => "kernels/hbisa.cu",
            Self::Tridiagonal => "kernels/tridiagonal.cu",
            Self::BiCgStab => "kernels/bicgstab.cu",
            Self::Gmres => "kernels/gmres.cu",
            Self::Sweep => "kernels/sweep.cu",
            Self::Ilu0 => "kernels/ilu0.cu",
            Self::BlockJacobi => "kernels/block_jacobi.cu",
            Self::Bcsr => "kernels/bcsr.cu",
            Self::Dense => "kernels/dense.cu",
            Self::TridiagonalOnce => "kernels/tridiagonal_once.cu",
            Self::BlockLu => "kernels/block_lu.cu",
            Self::BandLu => "kernels/band_lu.cu",
            Self::Spike => "kernels/spike.cu",
            Self::Stationary => "kernels/stationary.cu",
            Self::Ilut => "kernels/ilut.cu",
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
            Self::Gmres => include_str!("../../ptx/gmres.ptx"),
            Self::Sweep => include_str!("../../ptx/sweep.ptx"),
            Self::Ilu0 => include_str!("../../ptx/ilu0.ptx"),
            Self::BlockJacobi => include_str!("../../ptx/block_jacobi.ptx"),
            Self::Bcsr => include_str!("../../ptx/bcsr.ptx"),
            Self::Dense => include_str!("../../ptx/dense.ptx"),
            Self::TridiagonalOnce => include_str!("../../ptx/tridiagonal_once.ptx"),
            Self::BlockLu => include_str!("../../ptx/block_lu.ptx"),
            Self::BandLu => include_str!("../../ptx/band_lu.ptx"),
            Self::Spike => include_str!("../../ptx/spike.ptx"),
            Self::Stationary => include_str!("../../ptx/stationary.ptx"),
            Self::Ilut => include_str!("../../ptx/ilut.ptx"),
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
    /// Whether a parameter of so many bytes can be read from it.
    fn fits(&self, bytes: usize) -> bool {
        match self {
            Self::Word(_) => bytes <= size_of::<u64>(),
            Self::Struct(words) => bytes <= size_of_val(*words),
        }
    }

    fn place(&self) -> *mut c_void {
        match self {
            // Little-endian, as every host of a CUDA device: a shorter number is at the same address.
            Self::Word(word) => std::ptr::from_ref(word).cast_mut().cast(),
            Self::Struct(words) => words.as_ptr().cast_mut().cast(),
        }
    }
}

/// Blocks of a row of the grid, rows of it, threads of a block, and bytes of shared memory beside the kernel's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub blocks: u32,
    /// One, or one for each right-hand side.
    pub rows: u32,
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
        Self { blocks: count.clamp(1, Self::BLOCKS), rows: 1, threads: Self::BLOCK, shared: 0 }
    }
}

/// Bytes of the parameters of an entry, from its PTX: `.param .u64 NAME_param_0` or `.param .align 8 .b8 NAME_param_1[48]`.
fn parameters_of(ptx: &str, name: &str) -> Option<Vec<usize>> {
    let (_, from) = ptx.split_once(&format!(".entry {name}("))?;
    let (list, _) = from.split_once(')')?;
    list.split(',').filter(|parameter| parameter.contains(".param")).map(bytes_of).collect()
}

fn bytes_of(parameter: &str) -> Option<usize> {
    let kind = parameter.split_whitespace().rev().nth(1)?;
    // .u64, .f32, .b8: the bits of one element
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let count = match parameter.split_once('[') {
        Some((_, count)) => count.trim().trim_end_matches(']').parse().ok()?,
        None => 1,
    };
    Some(bits / 8 * count)
}

/// A kernel of a device.
pub(crate) struct Kernel {
    function: CUfunction,
    name: String,
    /// Bytes of its parameters, in order.
    parameters: Vec<usize>,
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
        let parameters = parameters_of(family.ptx(), name).unwrap_or_default();
        Ok(Kernel { function, name: name.to_owned(), parameters, device: self.clone() })
    }
}

impl Kernel {
    /// Starts it. The arguments are those of the kernel, in order, with lengths that the vectors among them have.
    ///
    /// # Panics
    /// When their number or sizes are not those of the kernel's parameters.
    pub fn launch(&self, shape: Shape, args: &[Arg<'_>]) -> Result<()> {
        self.start(shape, args, false)
    }

    /// Starts it with all blocks on the device at once, so that they may wait for each other.
    pub fn launch_together(&self, shape: Shape, args: &[Arg<'_>]) -> Result<()> {
        self.start(shape, args, true)
    }

    fn start(&self, shape: Shape, args: &[Arg<'_>], together: bool) -> Result<()> {
        let name = &self.name;
        assert_eq!(args.len(), self.parameters.len(), "arguments of {name}");
        for (i, (arg, bytes)) in args.iter().zip(&self.parameters).enumerate() {
            assert!(arg.fits(*bytes), "argument {i} of {name}, which has {bytes} bytes");
        }
        self.device.make_current()?;
        let mut places: Vec<*mut c_void> = args.iter().map(Arg::place).collect();
        let Shape { blocks, rows, threads, shared } = shape;
        let (stream, places) = (self.device.0.stream.as_inner(), places.as_mut_ptr());
        // SAFETY: the function is of a loaded module; each place holds as many bytes as the kernel's parameter has, and the
        // driver copies them before it returns. What the kernel does with the vectors is tested with every access checked.
        let code = unsafe {
            if together {
                cuLaunchCooperativeKernel(self.function, blocks, rows, 1, threads, 1, 1, shared, stream, places)
            } else {
                let none = std::ptr::null_mut();
                cuLaunchKernel(self.function, blocks, rows, 1, threads, 1, 1, shared, stream, places, none)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_the_entry() {
        let ptx = ".visible .entry other(\n\t.param .u32 other_param_0\n)\n.visible .entry f(\n\t.param .u64 f_param_0,\n\t.param .f32 \
                   f_param_1,\n\t.param .align 8 .b8 f_param_2[48]\n)\n{ }";
        assert_eq!(parameters_of(ptx, "f"), Some(vec![8, 4, 48]));
        assert_eq!(parameters_of(ptx, "other"), Some(vec![4]));
        assert_eq!(parameters_of(ptx, "g"), None);
        assert!(Arg::Word(1).fits(4) && Arg::Word(1).fits(8) && !Arg::Word(1).fits(48));
        assert!(Arg::Struct(&[0; 6]).fits(48) && !Arg::Struct(&[0; 5]).fits(48));
    }

    #[test]
    fn every_entry_of_every_family_has_parameters_that_are_read() {
        for family in Family::ALL {
            let mut entries = 0;
            for (_, rest) in
                family.ptx().match_indices(".entry ").map(|(at, word)| family.ptx().split_at(at + word.len()))
            {
                let name = rest.split('(').next().expect("a name");
                assert!(
                    parameters_of(family.ptx(), name).is_some_and(|list| list.iter().all(|bytes| *bytes > 0)),
                    "{name}"
                );
                entries += 1;
            }
            assert!(entries > 0, "{}", family.name());
        }
    }
}
