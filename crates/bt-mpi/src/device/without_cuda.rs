//! No GPU: this build is without the feature `cuda`.

use std::convert::Infallible;

use bt_formats::{Csr, Partition, c64};
use bt_iter::Preconditioner;
use bt_parallel::{Fault, FaultKind, Number};

use crate::args::SolveArgs;

/// Is never there.
pub struct Gpu(Infallible);

impl Gpu {
    /// # Errors
    /// Always.
    pub fn open(_rank: u32) -> Result<Self, Fault> {
        let message =
            "no GPU: this build is without the feature cuda (cargo build --release -p bt-mpi --features cuda)";
        Err(Fault::new(FaultKind::Device, message))
    }

    pub fn name(&self) -> String {
        match self.0 {}
    }

    pub fn fault(&self) -> Result<(), Fault> {
        match self.0 {}
    }
}

/// Numbers that a GPU would have.
pub trait Offload: Number {
    fn solver(
        gpu: &Gpu,
        _part: &Csr<Self>,
        _args: &SolveArgs,
        _blocks: Option<&Partition>,
    ) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        match gpu.0 {}
    }

    fn blocks(gpu: &Gpu, _d: &Csr<Self>, _blocks: &Partition) -> bt_direct::Result<Box<dyn Preconditioner<Self>>> {
        match gpu.0 {}
    }
}

impl Offload for f64 {}
impl Offload for c64 {}
