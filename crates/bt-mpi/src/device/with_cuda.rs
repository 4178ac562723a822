//! Local solvers on a GPU.

use std::cell::RefCell;

use bt_direct::FactorError;
use bt_formats::{Csr, Partition, c64};
use bt_iter::{ArmsOptions, LastSolver, Preconditioner, TriangularSolves};
use bt_kernels::{DeviceError, DevicePreconditioner, Offloaded, arms};
use bt_parallel::{Fault, FaultKind, LocalSolver, Number};

use crate::args::{SolveArgs, name_of};
use crate::precond::named;

/// The GPU of a rank, and what went wrong there while a factorization could not say it.
pub struct Gpu {
    device: bt_kernels::Device,
    fault: RefCell<Option<Fault>>,
}

impl Gpu {
    /// That of the rank of this number on its node.
    ///
    /// # Errors
    /// Where there is no driver, or none that starts.
    pub fn open(rank: u32) -> Result<Self, Fault> {
        let open = || bt_kernels::Device::open(rank % bt_kernels::Device::count()?.max(1));
        Ok(Self { device: open().map_err(|e| fault(&e))?, fault: RefCell::default() })
    }

    /// Its number and name.
    pub fn name(&self) -> String {
        format!("{}, {}", self.device.ordinal(), self.device.name())
    }

    /// What went wrong there, if anything did.
    ///
    /// # Errors
    /// That.
    pub fn fault(&self) -> Result<(), Fault> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.device.check("solving the part of a rank").map_err(|e| fault(&e)),
        }
    }

    /// Keeps what is no error of a factorization.
    fn told<V>(&self, made: Result<V, DeviceError>) -> bt_direct::Result<V> {
        made.map_err(|error| match error {
            DeviceError::Factor(error) => error,
            DeviceError::Input(error) => error.into(),
            other => {
                let reason = other.to_string();
                self.fault.replace(Some(fault(&other)));
                FactorError::Failed { method: "the local solver", reason }
            }
        })
    }
}

fn fault(error: &DeviceError) -> Fault {
    Fault::new(FaultKind::Device, error.to_string())
}

/// Numbers that a GPU has, or not.
pub trait Offload: Number {
    /// The local solver of a part that has rows, on a GPU.
    ///
    /// # Errors
    /// Those of the method, and for one that is not there.
    fn solver(
        gpu: &Gpu,
        part: &Csr<Self>,
        args: &SolveArgs,
        blocks: Option<&Partition>,
    ) -> bt_direct::Result<Box<dyn Preconditioner<Self>>>;

    /// The exact solver of a matrix that has these diagonal blocks alone, on a GPU.
    ///
    /// # Errors
    /// For a singular block, and for one that is not there.
    fn blocks(gpu: &Gpu, d: &Csr<Self>, blocks: &Partition) -> bt_direct::Result<Box<dyn Preconditioner<Self>>>;
}

impl Offload for f64 {
    fn solver(
        gpu: &Gpu,
        part: &Csr<Self>,
        args: &SolveArgs,
        blocks: Option<&Partition>,
    ) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        let levels = TriangularSolves::Levels;
        let wanted = match (named(args), blocks) {
            (Some(LocalSolver::Ilu0), _) => DevicePreconditioner::Ilu0(levels),
            (Some(LocalSolver::Ic0), _) => DevicePreconditioner::Ic0(levels),
            (Some(LocalSolver::Ilut(options)), _) => DevicePreconditioner::Ilut(options, levels),
            (Some(LocalSolver::Arms(options @ ArmsOptions { last: LastSolver::Butterflies(rbt), .. })), _) => {
                return Ok(Box::new(gpu.told(arms(&gpu.device, part, options, rbt))?));
            }
            (None, Some(blocks)) => return Self::blocks(gpu, part, blocks),
            _ => return Err(not_there(&format!("has no --local {}", name_of(args.local)))),
        };
        Ok(Box::new(gpu.told(Offloaded::new(&gpu.device, part, &wanted))?))
    }

    fn blocks(gpu: &Gpu, d: &Csr<Self>, blocks: &Partition) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        let wanted = DevicePreconditioner::BlockJacobi(blocks.clone());
        Ok(Box::new(gpu.told(Offloaded::new(&gpu.device, d, &wanted))?))
    }
}

impl Offload for c64 {
    fn solver(
        _gpu: &Gpu,
        _part: &Csr<Self>,
        _args: &SolveArgs,
        _blocks: Option<&Partition>,
    ) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        Err(not_there(REAL_ONLY))
    }

    fn blocks(_gpu: &Gpu, _d: &Csr<Self>, _blocks: &Partition) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        Err(not_there(REAL_ONLY))
    }
}

const REAL_ONLY: &str = "has real numbers only; the system is complex";

fn not_there(why: &str) -> FactorError {
    bt_formats::Error::InvalidStructure { what: "--device gpu", why: format!("it {why}") }.into()
}
